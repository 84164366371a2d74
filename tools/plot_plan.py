#!/usr/bin/env python3
"""Draws how a plan serves the sizes of each workload.

The input comes from `ftuner-translate IN.mlir --ftuner-explain --json`, without
--size. For each workload there is one figure: the share of padded work, the
occupancy, the compute-to-memory ratio and the score over the sizes of the main
axis, of the chosen program and of the best single uKernel, above a band that
tells which kernel family is chosen.

usage: plot_plan.py EXPLANATION.json -o FIGURE.svg [--workload NAME]

The suffix of the output (.svg, .png or .pdf) is the format. With several
workloads each figure gets the workload's name: FIGURE-NAME.svg.
"""

import argparse
import json
import pathlib
import sys

FORMAT_VERSION = 1
SUFFIXES = (".svg", ".png", ".pdf")
# Of Okabe and Ito, who chose colours that colour-blind readers tell apart.
CHOSEN, SINGLE = "#0072B2", "#D55E00"
# Families outnumber the colours; white lines part them, and numbers name them.
BAND = ("#56B4E9", "#F0E442", "#009E73", "#E69F00", "#CC79A7", "#BBBBBB")
# Sizes that lie further apart than this are drawn on a logarithmic axis.
LOGARITHMIC_RATIO = 1024


class InputError(Exception):
    """What is wrong with the input, for the user."""


def load(path):
    try:
        with open(path, encoding="utf-8") as file:
            explanation = json.load(file)
    except OSError as error:
        raise InputError(f"cannot read '{path}': {error.strerror}") from error
    except ValueError as error:
        raise InputError(f"'{path}' is no JSON: {error}") from error
    if not isinstance(explanation, dict) or not isinstance(explanation.get("workloads"), list) or not all(
            isinstance(workload, dict) and "shapes" in workload for workload in explanation["workloads"]):
        raise InputError(f"'{path}': expected the JSON of ftuner-translate --ftuner-explain --json")
    version = explanation.get("format_version")
    if version != FORMAT_VERSION:
        raise InputError(f"'{path}': expected format version {FORMAT_VERSION}, but got {version}")
    return explanation


def choose(explanation, name):
    """The workloads to draw: those with several sizes, or the named one."""
    workloads = explanation["workloads"]
    if name is not None:
        workloads = [workload for workload in workloads if workload["name"] == name]
        if not workloads:
            known = ", ".join(workload["name"] for workload in explanation["workloads"])
            raise InputError(f"unknown workload '{name}': expected one of {known}")
    drawable = [workload for workload in workloads if len(workload["shapes"]) > 1]
    if not drawable:
        raise InputError("expected a workload with several sizes: explain without --size, "
                         "a workload with a dynamic axis")
    return drawable


def series(workload, kind, value):
    """`value` of the programs of a kind over the sizes; NaN where there is none."""
    programs = [shape[kind] for shape in workload["shapes"]]
    return [float("nan") if program is None else value(program) for program in programs]


def axis_text(axis):
    """The axis, and the symbols that its extent is a product of."""
    factors = ([str(axis["factor"])] if axis["factor"] != 1 else []) + axis["symbols"]
    return f"{axis['name']} = {' · '.join(factors)}" if axis["symbols"] else axis["name"]


def other_axes(workload):
    """The extents of all axes but the main one; some follow the main one."""
    first, last = (workload["shapes"][index]["shape"] for index in (0, -1))
    return ", ".join(f"{axis['name']} = {first[index]}" if first[index] == last[index] else axis_text(axis)
                     for index, axis in enumerate(workload["axes"]) if index != workload["main_axis"])


def band_colours(families):
    """A colour for each family; neighbours along the sizes differ where six colours allow it."""
    neighbours = {family: set() for family in families}
    for one, other in zip(families, families[1:]):
        if one != other:
            neighbours[one].add(other)
            neighbours[other].add(one)
    colours = {}
    for family in dict.fromkeys(families):
        taken = {colours.get(other) for other in neighbours[family]}
        used = list(colours.values())
        colours[family] = min(BAND, key=lambda colour: (colour in taken, used.count(colour)))
    return colours


def draw_band(panel, workload, sizes):
    """One stripe for each run of sizes that one family serves, with its number."""
    families = [shape["family"] for shape in workload["shapes"]]
    colours = band_colours(families)
    starts = [0] + [i for i in range(1, len(sizes)) if families[i] != families[i - 1]]
    ends = starts[1:] + [len(sizes) - 1]
    panel.set_xlim(sizes[0], sizes[-1])
    to_axes = panel.transData + panel.transAxes.inverted()
    for start, end in zip(starts, ends):
        panel.axvspan(sizes[start], sizes[end], facecolor=colours[families[start]], edgecolor="white", linewidth=0.5)
        first, last = (to_axes.transform((sizes[index], 0))[0] for index in (start, end))
        if last - first > 0.025:  # There is room for the number.
            panel.text((first + last) / 2, 0.5, str(families[start]), ha="center", va="center", fontsize=7,
                       transform=panel.transAxes)
    panel.set_yticks([])
    panel.set_ylabel("family", rotation=0, ha="right", va="center")


PANELS = (
    ("padding (% of the work)", lambda program: 100 * (1 - program["metrics"]["pad"])),
    ("Occ (% of SMs busy)", lambda program: 100 * program["metrics"]["occ"]),
    ("CMR (compute / memory time)", lambda program: program["metrics"]["cmr"]),
    ("score", lambda program: program["score"]),
)


def draw(pyplot, explanation, workload):
    main_axis = workload["main_axis"]
    sizes = [shape["shape"][main_axis] for shape in workload["shapes"]]
    figure, panels = pyplot.subplots(
        len(PANELS) + 1, 1, sharex=True, figsize=(8, 10.5), layout="constrained",
        gridspec_kw={"height_ratios": [3] * len(PANELS) + [0.6]})
    for panel, (label, value) in zip(panels, PANELS):
        panel.plot(sizes, series(workload, "best_single", value), color=SINGLE, linewidth=1.2, linestyle="--",
                   label="best single uKernel")
        panel.plot(sizes, series(workload, "program", value), color=CHOSEN, linewidth=1.4, label="chosen program")
        panel.set_ylabel(label)
        panel.grid(True, color="#dddddd", linewidth=0.5)
        panel.margins(x=0)
    panels[3].plot(sizes, [shape["best_score"] for shape in workload["shapes"]], color="black", linewidth=0.9,
                   linestyle=":", label="best program of the size")
    figure.legend(*panels[3].get_legend_handles_labels(), loc="outside lower center", ncols=3, fontsize=9)
    if sizes[-1] > LOGARITHMIC_RATIO * sizes[0]:
        panels[0].set_xscale("log", base=2)
    draw_band(panels[-1], workload, sizes)
    panels[-1].set_xlabel(f"size of axis {axis_text(workload['axes'][main_axis])} (elements)")
    panels[0].set_title(f"{workload['name']} on {explanation['device']}, {other_axes(workload)}\n"
                        f"{explanation['strategy']}, {explanation['cost_model']}", fontsize=10)
    return figure


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("explanation", help="JSON of ftuner-translate --ftuner-explain --json")
    parser.add_argument("-o", "--output", required=True, help="figure to write: .svg, .png or .pdf")
    parser.add_argument("--workload", help="draw this workload alone")
    options = parser.parse_args()
    output = pathlib.Path(options.output)
    try:
        if output.suffix not in SUFFIXES:
            raise InputError(f"expected an output that ends in one of {', '.join(SUFFIXES)}, but got '{output}'")
        explanation = load(options.explanation)
        workloads = choose(explanation, options.workload)
        try:
            import matplotlib
        except ImportError as error:
            raise InputError("Matplotlib is missing: tools/setup.sh installs it in .venv; "
                             "run .venv/bin/python tools/plot_plan.py") from error
        matplotlib.use("Agg")
        # Text stays text, and equal input gives equal bytes.
        matplotlib.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "ftuner", "savefig.dpi": 150})
        from matplotlib import pyplot
        for workload in workloads:
            path = output if len(workloads) == 1 else output.with_name(
                f"{output.stem}-{workload['name']}{output.suffix}")
            metadata = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}}.get(path.suffix)
            figure = draw(pyplot, explanation, workload)
            figure.savefig(path, metadata=metadata)
            pyplot.close(figure)
            print(path)
    except (KeyError, TypeError, IndexError) as error:
        sys.exit(f"error: '{options.explanation}' lacks what a figure needs: {error!r}")
    except (InputError, OSError) as error:
        sys.exit(f"error: {error}")


if __name__ == "__main__":
    main()
