#!/usr/bin/env python3
"""Draws how a plan serves the sizes of each workload.

The input comes from `ftuner-translate IN.mlir --ftuner-explain --json`, without
--size. For each workload there is one figure over the sizes of the main axis:
the predicted time of the chosen programs, of the best single uKernels and of
what SIA would choose, beside the roofline; by how much each is slower than the
fastest program that was seen; the share of each term in the time of the chosen
programs; and a band that tells which kernel family is chosen. With --metrics
the panels are padding, occupancy, compute-to-memory ratio and score.

`ftuner explain IN.mlir --plot FIGURE.svg` does both steps at once.

usage: plot_plan.py EXPLANATION.json -o FIGURE.svg [--workload NAME] [--metrics]

The suffix of the output (.svg, .png or .pdf) is the format. With several
workloads each figure gets the workload's name: FIGURE-NAME.svg.
"""

import argparse
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "python"))


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("explanation", help="JSON of ftuner-translate --ftuner-explain --json")
    parser.add_argument("-o", "--output", required=True, help="figure to write: .svg, .png or .pdf")
    parser.add_argument(
        "--workload", help="draw this workload alone, or the one that it is equal to"
    )
    parser.add_argument(
        "--metrics", action="store_true", help="draw padding, Occ, CMR and score instead of times"
    )
    options = parser.parse_args()
    try:
        from ftuner.describe import plotting
    except ImportError as error:
        sys.exit(
            f"error: {error}: use the Python of .venv, where tools/setup.sh installs what is needed"
        )
    from ftuner.errors import Error

    try:
        plotting.check_output(options.output)
        explanation = plotting.load(options.explanation)
        for path in plotting.draw_plan(
            explanation, options.output, workload=options.workload, metrics=options.metrics
        ):
            print(path)
    except Error as error:
        sys.exit(f"error: {error}")


if __name__ == "__main__":
    main()
