#!/usr/bin/env python3
"""Tables how evenly the warps of chosen programs lie on the schedulers of an SM.

For each device, Dense (N = 2304, K = 768) with M = T and M = 16·T rows, and the two
products of attention, 192 × [T, 64] × [64, T] and 192 × [T, T] × [T, 64], for
T = 1…128: the share of sizes whose program gives the busiest scheduler more than a
tenth above the mean (warps stay with the scheduler that they are dealt to, in
turn), and what that costs by the model: the mean, over those sizes, of the issue
term's share of the time times what the imbalance adds to it, an upper bound.
Nothing is measured: these are properties of the programs.

Writes Markdown.
"""

import argparse
import functools
import os
import tempfile

import workloads
from search_table import explain

MIN_IMBALANCE = 1.1
CASES = {
    f"Dense, {label}": functools.partial(workloads.write, rows=rows)
    for label, rows in workloads.RANGES.items()
}
CASES["192 × [T, 64] × [64, T]"] = functools.partial(workloads.write_batch_matmul, rows="1 to 128")
CASES["192 × [T, T] × [T, 64]"] = functools.partial(
    workloads.write_batch_matmul, rows="1 to 128", n=64, k="T"
)


def cell(shapes):
    """Share of uneven sizes, and the bound of what that costs."""
    uneven = cost = 0
    for shape in shapes:
        program = shape["program"]
        factor = program["predicted_figures"]["scheduler_imbalance"]
        if factor <= MIN_IMBALANCE:
            continue
        uneven += 1
        share = next(
            term["share"] for term in program["predicted_terms"] if term["name"] == "issue"
        )
        cost += share * (1 - 1 / factor)
    mean = f", {100 * cost / uneven:.0f} %" if uneven else ""
    return f"{100 * uneven / len(shapes):.0f} %{mean}"


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--bin-dir", default=workloads.BIN)
    parser.add_argument("--devices", default="v100,a100,h200,t4")
    options = parser.parse_args()
    tool = os.path.join(options.bin_dir, "ftuner-translate")
    print("| device | " + " | ".join(CASES) + " |")
    print("|---" * (len(CASES) + 1) + "|")
    with tempfile.TemporaryDirectory() as folder:
        for device in options.devices.split(","):
            cells = [device]
            for write in CASES.values():
                path = write(os.path.join(folder, "workload.mlir"))
                shapes = explain(tool, path, device, [])["shapes"]
                cells.append(cell(shapes))
            print("| " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
