#!/usr/bin/env python3
"""Predicts f16 products by today's default plans beside what was measured on an H200.

Dense (T and 16 · T rows) and the projections of Llama-2-7B (up with both halves of the gate): the faster of cuBLAS and
cuBLASLt, FTuner's plans of then, and the prediction of today's (cold caches, graphs;
benchmarks/results/h200-2026-11-26-2). The constants of the model were fitted to other programs of FTuner's at some of
these sizes, so the columns are no independent test; FTuner's own times of then say how far the model is off.

Prints a table. --write FILE writes it with the date and the compiler's commit.
"""

import argparse
import collections
import csv
import datetime
import json
import lzma
import math
import os
import subprocess
import sys
import tempfile

import range_regret

MEASURED = os.path.join(range_regret.ROOT, "benchmarks", "results", "h200-2026-11-26-2", "tensor_cores",
                        "products.csv.xz")
MODE = "graph_cold"
#: Type, columns, k and rows of the measured workloads.
PRODUCTS = {
    "dense_f16": ("f16", 2304, 768, "1 to 128"),
    "dense16_f16": ("f16", 2304, 768, "16 to 2048 step 16"),
    "llama_qkv": ("f16", 12288, 4096, "1 to 4096"),
    "llama_out": ("f16", 4096, 4096, "1 to 4096"),
    "llama_up": ("f16", 22016, 4096, "1 to 4096"),
    "llama_down": ("f16", 4096, 11008, "1 to 4096"),
}
RANGES = ((1, 64), (65, 256), (257, 1024), (1025, 4096))


def measurements():
    """Microseconds by workload, rows and peer."""
    found = collections.defaultdict(dict)
    with lzma.open(MEASURED, "rt", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            if row["workload"] in PRODUCTS and row["mode"] == MODE and not row["problem"]:
                found[row["workload"], int(row["m"])][row["peer"]] = float(row["median_us"])
    return found


def predict(options, name, rows):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "product.mlir")
        with open(path, "w", encoding="utf-8") as file:
            file.write(range_regret.module(*PRODUCTS[name]))
        found = {}
        for first in range(0, len(rows), range_regret.SIZES_AT_ONCE):
            sizes = [f"--size=T={count}" for count in rows[first:first + range_regret.SIZES_AT_ONCE]]
            explanation = json.loads(range_regret.run(
                [os.path.join(options.bin_dir, "ftuner-translate"), path, "--ftuner-explain", "--json", "--device=h200",
                 *options.flags, *sizes]))
            for shape in explanation["workloads"][0]["shapes"]:
                found[shape["shape"][0]] = shape["program"]["predicted_us"]
    return found


def mean(ratios):
    return math.exp(sum(map(math.log, ratios)) / len(ratios))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bin-dir", default=os.path.join(range_regret.ROOT, "build", "release", "bin"))
    parser.add_argument("--flags", nargs="+", default=[], type="--{}".format,
                        help="further flags, such as failed-paths=wgmma for --failed-paths=wgmma")
    parser.add_argument("--write", metavar="FILE")
    options = parser.parse_args()
    measured = measurements()
    lines = ["| product | rows | sizes | library / predicted | ahead | library / FTuner then | FTuner then / predicted |",
             "|---|---|---|---|---|---|---|"]
    all_ratios = []
    for name in PRODUCTS:
        print(name, file=sys.stderr)
        rows = sorted(m for workload, m in measured if workload == name)
        predicted = predict(options, name, rows)
        for least, most in RANGES:
            own = [m for m in rows if least <= m <= most]
            if not own:
                continue
            library = {m: min(time for peer, time in measured[name, m].items() if peer != "ftuner") for m in own}
            ratios = [library[m] / predicted[m] for m in own]
            all_ratios += ratios
            then = [m for m in own if "ftuner" in measured[name, m]]
            lines.append(
                f"| {name} | {least} to {most} | {len(own)} | {mean(ratios):.2f} | "
                f"{100 * sum(ratio > 1 for ratio in ratios) / len(own):.0f} % | "
                f"{mean([library[m] / measured[name, m]['ftuner'] for m in then]):.2f} | "
                f"{mean([measured[name, m]['ftuner'] / predicted[m] for m in then]):.2f} |")
    lines.append(f"| all | | {len(all_ratios)} | {mean(all_ratios):.2f} | "
                 f"{100 * sum(ratio > 1 for ratio in all_ratios) / len(all_ratios):.0f} % | | |")
    table = "\n".join(lines)
    print(table)
    if options.write:
        commit = range_regret.run(["git", "-C", range_regret.ROOT, "rev-parse", "--short", "HEAD"]).strip()
        shown = " ".join(["benchmarks/cpu/measured_products.py", *sys.argv[1:]])
        with open(options.write, "w", encoding="utf-8") as file:
            file.write(f"# Products by today's plans beside measured ones\n\n{datetime.date.today()}, commit {commit}, "
                       f"`{shown}`. Today's plans were predicted, not measured.\n\n{table}\n")


if __name__ == "__main__":
    main()
