#!/usr/bin/env python3
"""Predicts the gain of slices of k within a block for f32 products of few rows, beside measurements on an H200.

Dense (T, 2304, 768) and linear (T, 3072, 768; weights [N, K]): predicted times of the plans without slices and with
them, FTuner's time on the card, whose plans had none, and the faster of cuBLAS and cuBLASLt (cold caches, graphs;
benchmarks/results/h200-2026-11-26-2). The prediction without slices beside FTuner's measurement says how far the model
is off at that size; the plans of then and of today may differ. Nothing here was measured with slices.

Prints a table. --write FILE writes it with the date and the compiler's commit.
"""

import argparse
import csv
import datetime
import json
import lzma
import math
import os
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
MEASURED = os.path.join(ROOT, "benchmarks", "results", "h200-2026-11-26-2", "f32", "products.csv.xz")
# Columns and k, most rows of the range, and whether the weights are [N, K].
PRODUCTS = {"dense": (2304, 768, 128, False), "linear": (3072, 768, 2048, True)}
# Numbers of rows; those that were measured are shown.
ROWS = (1, 2, 4, 8, 16, 32, 53, 62, 63, 64, 96, 114, 120, 128, 192, 256, 512)


def module(n, k, most, is_transposed):
    weights = f"tensor<{n}x{k}xf32>" if is_transposed else f"tensor<{k}x{n}xf32>"
    rhs = "(n, k)" if is_transposed else "(k, n)"
    return f"""
module attributes {{ukernel.symbols = {{T = #ukernel.range<1 to {most}>}}}} {{
  func.func @product(%x: tensor<?x{k}xf32> {{ukernel.shape = ["T", {k}]}}, %w: {weights}) -> tensor<?x{n}xf32> {{
    %c0 = arith.constant 0 : index
    %zero = arith.constant 0.0 : f32
    %t = tensor.dim %x, %c0 : tensor<?x{k}xf32>
    %empty = tensor.empty(%t) : tensor<?x{n}xf32>
    %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<?x{n}xf32>) -> tensor<?x{n}xf32>
    %p = linalg.matmul indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> {rhs}>,
                                        affine_map<(m, n, k) -> (m, n)>]
        ins(%x, %w : tensor<?x{k}xf32>, {weights}) outs(%init : tensor<?x{n}xf32>) -> tensor<?x{n}xf32>
    return %p : tensor<?x{n}xf32>
  }}
}}
"""


def predict(options, folder, product, rows, *flags):
    """Returns the explanation of the product's workload, with an entry of `shapes` for each number of rows."""
    path = os.path.join(folder, product + ".mlir")
    with open(path, "w", encoding="utf-8") as file:
        file.write(module(*PRODUCTS[product]))
    sizes = [flag for count in rows for flag in ("--size", f"T={count}")]
    run = subprocess.run([os.path.join(options.bin_dir, "ftuner-translate"), path, "--ftuner-explain", "--json",
                          f"--device={options.device}", *flags, *sizes], capture_output=True, text=True)
    if run.returncode != 0:
        sys.exit(run.stderr)
    (workload,) = json.loads(run.stdout)["workloads"]
    return workload


def measured(product):
    """Rows to the times of FTuner and of the faster library."""
    times = {}
    with lzma.open(MEASURED, "rt") as file:
        for row in csv.DictReader(file):
            if row["workload"] == product and row["mode"] == "graph_cold":
                times.setdefault(int(row["t"]), {})[row["peer"]] = float(row["median_us"])
    return {rows: (of["ftuner"], min(of["cublas"], of["cublaslt"])) for rows, of in times.items()
            if "ftuner" in of and "cublas" in of}


def mean(ratios):
    return math.exp(sum(map(math.log, ratios)) / len(ratios))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin-dir", default=os.path.join(ROOT, "build", "release", "bin"))
    parser.add_argument("--device", default="h200")
    parser.add_argument("--write", metavar="FILE")
    options = parser.parse_args()
    lines = ["| product | rows | predicted without | FTuner measured, without | predicted with | slices | library measured "
             "| library / predicted |", "| --- | --- | --- | --- | --- | --- | --- | --- |"]
    summaries = []
    with tempfile.TemporaryDirectory() as folder:
        for product in PRODUCTS:
            times = measured(product)
            rows = [count for count in ROWS if count in times]
            without, sliced = (predict(options, folder, product, rows, *flags) for flags in (["--sliced-k=false"], []))
            ratios, errors = [], []
            for count, old, new in zip(rows, without["shapes"], sliced["shapes"]):
                ours, library = times[count]
                before, after = (shape["program"]["predicted_us"] for shape in (old, new))
                slices = new["program"]["schedule"]["threads_k"]
                ratios.append(library / after)
                errors.append(abs(before / ours - 1))
                lines.append(f"| {product} | {count} | {before:.2f} | {ours:.2f} | {after:.2f} | {slices} | {library:.2f} | "
                             f"{library / after:.2f} |")
            summaries.append(f"{product}: the library's time over the predicted one {mean(ratios):.2f} in the mean, "
                             f"{min(ratios):.2f} at least; the model is off by {sum(errors) / len(errors):.0%} in the mean, "
                             f"{max(errors):.0%} at most, where it can be compared.")
    text = "\n".join(lines) + "\n\n" + "\n".join(f"* {line}" for line in summaries) + "\n"
    print(text, end="")
    if options.write:
        commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True)
        with open(options.write, "w", encoding="utf-8") as file:
            file.write(f"{datetime.date.today()}, compiler of {commit.stdout.strip()}: `benchmarks/cpu/sliced_k.py`. "
                       f"Predictions for {options.device} and measurements, µs.\n\n{text}")


if __name__ == "__main__":
    main()
