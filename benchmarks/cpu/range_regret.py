#!/usr/bin/env python3
"""Measures what plans of a whole range lose at the sizes that people use, as the latency model predicts it.

Products of T rows: the four projections of Llama-2-7B and the output of another layer in f16, Dense of the paper in f16
and f32, and Dense with 16 · T rows. At every number of rows of the range that is a power of two, its neighbour, a
multiple of 64, or one of 200 random ones, the regret of the plan: its predicted time over that of the fastest program
that the search finds for the size, less 1. Beside it the number of families, the bytes of PTX, and the seconds that a
compilation to PTX takes, the least of three.

Prints a table. --write FILE writes it with the date and the compiler's commit; --before DIR adds the figures of an
older build, whose programs judge themselves.
"""

import argparse
import datetime
import json
import os
import random
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
WHOLE, STEPS = "1 to 4096", "16 to 4096 step 16"
# Type, columns, k, rows.
PRODUCTS = {
    "qkv": ("f16", 12288, 4096, WHOLE),
    "out": ("f16", 4096, 4096, WHOLE),
    "up": ("f16", 11008, 4096, WHOLE),
    "down": ("f16", 4096, 11008, WHOLE),
    "dense f16": ("f16", 2304, 768, WHOLE),
    "dense f32": ("f32", 2304, 768, WHOLE),
    "dense 16·T f16": ("f16", 2304, 768, STEPS),
    "dense 16·T f32": ("f32", 2304, 768, STEPS),
}
# `ftuner-translate` takes that many sizes at once without a command line that is too long.
SIZES_AT_ONCE = 100


def module(element, n, k, rows):
    """Projections have weights [N, K], as PyTorch stores them, Dense [K, N]."""
    is_transposed = k >= 4096
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


def judged_sizes(rows):
    numbers = [int(word) for word in rows.split() if word.isdigit()]
    least, most, step = (numbers + [1])[:3]
    powers = [2**exponent + by for exponent in range(13) for by in (-1, 0, 1)]
    draw = random.Random(1)
    sizes = powers + list(range(64, most + 1, 64)) + [draw.randint(least, most) for _ in range(200)]
    return sorted({size for size in sizes if least <= size <= most and (size - least) % step == 0})


def run(command):
    result = subprocess.run(command, capture_output=True, text=True)
    if result.returncode != 0:
        sys.exit(result.stderr)
    return result.stdout


def compile_seconds(translate, path, flags, folder):
    ptx = os.path.join(folder, "product.ptx")
    best = float("inf")
    for _ in range(3):
        start = time.perf_counter()
        run([translate, path, "--ftuner-to-ptx", *flags, "-o", ptx])
        best = min(best, time.perf_counter() - start)
    return best, os.path.getsize(ptx)


def judge(bin_dir, device, name, flags, folder):
    element, n, k, rows = PRODUCTS[name]
    path = os.path.join(folder, "product.mlir")
    with open(path, "w", encoding="utf-8") as file:
        file.write(module(element, n, k, rows))
    translate = os.path.join(bin_dir, "ftuner-translate")
    flags = [f"--device={device}", *flags]
    sizes = judged_sizes(rows)
    regrets = []
    for first in range(0, len(sizes), SIZES_AT_ONCE):
        asked = [f"--size=T={size}" for size in sizes[first:first + SIZES_AT_ONCE]]
        explanation = json.loads(run([translate, path, "--ftuner-explain", "--json", *flags, *asked]))
        workload, = explanation["workloads"]
        regrets += [(shape["regret"], shape["shape"][0]) for shape in workload["shapes"]]
    seconds, ptx = compile_seconds(translate, path, flags, folder)
    worst, size = max(regrets)
    return {"mean": sum(regret for regret, _ in regrets) / len(regrets), "worst": worst, "size": size,
            "above": sum(regret > 0.03 for regret, _ in regrets), "sizes": len(regrets),
            "families": len(workload["families"]), "ptx": ptx, "seconds": seconds}


def row(name, build, result):
    return (f"| {name} | {build} | {100 * result['mean']:.2f} | {100 * result['worst']:.1f} | {result['size']} | "
            f"{result['above']} of {result['sizes']} | {result['families']} | {result['ptx'] / 1024:.0f} | "
            f"{result['seconds']:.2f} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bin-dir", default=os.path.join(ROOT, "build", "release", "bin"))
    parser.add_argument("--before", metavar="DIR", help="the programs of an older build")
    parser.add_argument("--device", default="h100")
    parser.add_argument("--products", nargs="+", choices=PRODUCTS, default=list(PRODUCTS))
    parser.add_argument("--flags", nargs="+", default=[], help="further flags, such as max-kernels=24 for --max-kernels=24")
    parser.add_argument("--write", metavar="FILE")
    options = parser.parse_args()
    flags = ["--" + flag for flag in options.flags]
    builds = {"now": options.bin_dir}
    if options.before:
        builds = {"before": options.before, **builds}
    lines = ["| product | build | mean regret, % | worst, % | at rows | above 3 % | families | PTX, KiB | compilation, s |",
             "|---|---|---|---|---|---|---|---|---|"]
    with tempfile.TemporaryDirectory() as folder:
        for name in options.products:
            for build, bin_dir in builds.items():
                print(f"{name}, {build}", file=sys.stderr)
                lines.append(row(name, build, judge(bin_dir, options.device, name, flags, folder)))
    table = "\n".join(lines)
    print(table)
    if not options.write:
        return
    commit = run(["git", "-C", ROOT, "rev-parse", "--short", "HEAD"]).strip()
    shown = " ".join(["benchmarks/cpu/range_regret.py", *sys.argv[1:]])
    with open(options.write, "w", encoding="utf-8") as file:
        file.write(f"# Regret of plans over their range\n\n{datetime.date.today()}, commit {commit}, `{shown}`. "
                   f"Predicted, not measured; each build by its own model.\n\n{table}\n")


if __name__ == "__main__":
    main()
