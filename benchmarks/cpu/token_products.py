"""Products of T rows, as modules, explained by the compiler and beside measured times: what benchmarks of them share."""

import collections
import csv
import datetime
import json
import lzma
import math
import os
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BIN = os.path.join(ROOT, "build", "release", "bin")
#: The second run on an H200.
RESULTS = os.path.join(ROOT, "benchmarks", "results", "h200-2026-11-26-2")
# A command line has so many sizes at most.
SIZES_AT_ONCE = 100


def module(element, n, k, rows, is_transposed):
    """T rows of a range by n columns; weights are [N, K] where transposed, as PyTorch stores them, else [K, N]."""
    weights = f"tensor<{n}x{k}x{element}>" if is_transposed else f"tensor<{k}x{n}x{element}>"
    rhs = "(n, k)" if is_transposed else "(k, n)"
    return f"""
module attributes {{ukernel.symbols = {{T = #ukernel.range<{rows}>}}}} {{
  func.func @product(%x: tensor<?x{k}x{element}> {{ukernel.shape = ["T", {k}]}}, %w: {weights})
      -> tensor<?x{n}x{element}> {{
    %c0 = arith.constant 0 : index
    %zero = arith.constant 0.0 : {element}
    %t = tensor.dim %x, %c0 : tensor<?x{k}x{element}>
    %empty = tensor.empty(%t) : tensor<?x{n}x{element}>
    %init = linalg.fill ins(%zero : {element}) outs(%empty : tensor<?x{n}x{element}>) -> tensor<?x{n}x{element}>
    %p = linalg.matmul indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> {rhs}>,
                                        affine_map<(m, n, k) -> (m, n)>]
        ins(%x, %w : tensor<?x{k}x{element}>, {weights})
        outs(%init : tensor<?x{n}x{element}>) -> tensor<?x{n}x{element}>
    return %p : tensor<?x{n}x{element}>
  }}
}}
"""


def write_module(folder, *arguments):
    path = os.path.join(folder, "product.mlir")
    with open(path, "w", encoding="utf-8") as file:
        file.write(module(*arguments))
    return path


def run(command):
    """Returns what a command prints; exits with its errors where it fails."""
    result = subprocess.run(command, capture_output=True, text=True)
    if result.returncode != 0:
        sys.exit(result.stderr)
    return result.stdout


def explain(bin_dir, path, flags, rows):
    """Returns the explanation of a module's workload, with an entry of `shapes` for each number of rows."""
    shapes = []
    for first in range(0, len(rows), SIZES_AT_ONCE):
        sizes = [f"--size=T={count}" for count in rows[first : first + SIZES_AT_ONCE]]
        command = [
            os.path.join(bin_dir, "ftuner-translate"),
            path,
            "--ftuner-explain",
            "--json",
            *flags,
            *sizes,
        ]
        (workload,) = json.loads(run(command))["workloads"]
        shapes += workload["shapes"]
    return {**workload, "shapes": shapes}


def measured(part, workload):
    """Microseconds by rows and peer, with cold caches in graphs; `part` of the run is f32 or tensor_cores."""
    times = collections.defaultdict(dict)
    with lzma.open(os.path.join(RESULTS, part, "products.csv.xz"), "rt", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            if row["workload"] == workload and row["mode"] == "graph_cold" and not row["problem"]:
                times[int(row["m"])][row["peer"]] = float(row["median_us"])
    return times


def mean(ratios):
    """The geometric mean."""
    return math.exp(sum(map(math.log, ratios)) / len(ratios))


def write_table(path, title, note, table):
    """Writes a table with the date, the compiler's commit and the command, without folders of this machine."""
    commit = run(["git", "-C", ROOT, "rev-parse", "--short", "HEAD"]).strip()
    command = " ".join(
        [
            "benchmarks/cpu/" + os.path.basename(sys.argv[0]),
            *("DIR" if os.path.isabs(word) else word for word in sys.argv[1:]),
        ]
    )
    with open(path, "w", encoding="utf-8") as file:
        file.write(
            f"# {title}\n\n{datetime.date.today()}, compiler of {commit}: `{command}`. {note}\n\n{table}\n"
        )
