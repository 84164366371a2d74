#!/usr/bin/env python3
"""Measures what plans of a whole range lose at the sizes that people use, as the latency model predicts it.

Products of T rows: the four projections of Llama-2-7B in f16 (of "up" one half), Dense of the paper in f16
and f32, Dense with 16 · T rows, and the layers of BERT-base in f32. At every number of rows of the range that is a power of two, its neighbour, a
multiple of 64, or one of 200 random ones, the regret of the plan: its predicted time over that of the fastest program
that the search finds for the size, less 1. Beside it the number of families, the intervals of sizes that the host tells
apart, the bytes of the host's machine code (.text of the object file of a library), the bytes of PTX, and the seconds
that a compilation to PTX takes, the least of three.

Prints a table. --write FILE writes it with the date and the compiler's commit; --before DIR adds the figures of an
older build, whose programs judge themselves.
"""

import argparse
import json
import os
import random
import sys
import tempfile
import time

from token_products import BIN, explain, run, write_module, write_table

WHOLE, STEPS = "1 to 4096", "16 to 4096 step 16"
# Type, columns, k, rows, and whether the weights are [N, K].
PRODUCTS = {
    "qkv": ("f16", 12288, 4096, WHOLE, True),
    "out": ("f16", 4096, 4096, WHOLE, True),
    "up": ("f16", 11008, 4096, WHOLE, True),
    "down": ("f16", 4096, 11008, WHOLE, True),
    "dense f16": ("f16", 2304, 768, WHOLE, False),
    "dense f32": ("f32", 2304, 768, WHOLE, False),
    "dense 16·T f16": ("f16", 2304, 768, STEPS, False),
    "dense 16·T f32": ("f32", 2304, 768, STEPS, False),
    "bert out": ("f32", 768, 768, WHOLE, True),
    "bert up": ("f32", 3072, 768, WHOLE, True),
    "bert down": ("f32", 768, 3072, WHOLE, True),
}


def judged_sizes(rows):
    numbers = [int(word) for word in rows.split() if word.isdigit()]
    low, high, step = (numbers + [1])[:3]
    powers = [2**exponent + offset for exponent in range(13) for offset in (-1, 0, 1)]
    draw = random.Random(1)
    sizes = powers + list(range(64, high + 1, 64)) + [draw.randint(low, high) for _ in range(200)]
    return sorted({size for size in sizes if low <= size <= high and (size - low) % step == 0})


def compile_seconds(translate, path, flags, folder, runs):
    """Seconds of the fastest run, and bytes of PTX."""
    ptx = os.path.join(folder, "product.ptx")
    best = float("inf")
    for _ in range(runs):
        start = time.perf_counter()
        run([translate, path, "--ftuner-to-ptx", *flags, "-o", ptx])
        best = min(best, time.perf_counter() - start)
    return best, os.path.getsize(ptx)


def host_bytes(translate, path, flags, folder):
    """Machine code of the host's functions: the object file holds PTX as data."""
    library = os.path.join(folder, "product.o")
    run([translate, path, "--ftuner-to-library", *flags, "-o", library])
    sections = (line.split() for line in run(["size", "-A", library]).splitlines())
    return sum(
        int(section[1]) for section in sections if section and section[0].startswith(".text")
    )


def judge(bin_dir, device, name, flags, folder, is_timed):
    path = write_module(folder, *PRODUCTS[name])
    flags = [f"--device={device}", *flags]
    workload = explain(bin_dir, path, flags, judged_sizes(PRODUCTS[name][3]))
    regrets = [(shape["regret"], shape["shape"][0]) for shape in workload["shapes"]]
    translate = os.path.join(bin_dir, "ftuner-translate")
    # Others are for cards without the path.
    planned, *_ = json.loads(run([translate, path, "--ftuner-to-manifest", *flags]))["workloads"]
    seconds, ptx = compile_seconds(translate, path, flags, folder, 3 if is_timed else 1)
    worst, size = max(regrets)
    return {
        "mean": sum(regret for regret, _ in regrets) / len(regrets),
        "worst": worst,
        "size": size,
        "above": sum(regret > 0.03 for regret, _ in regrets),
        "sizes": len(regrets),
        "families": len(workload["families"]),
        "ptx": ptx,
        "seconds": f"{seconds:.2f}" if is_timed else "",
        "intervals": len(planned["dispatch"] + planned["unaligned_dispatch"]),
        "host": host_bytes(translate, path, flags, folder),
    }


def row(name, build, result):
    return (
        f"| {name} | {build} | {100 * result['mean']:.2f} | {100 * result['worst']:.1f} | {result['size']} | "
        f"{result['above']} of {result['sizes']} | {result['families']} | {result['intervals']} | {result['host']} | {result['ptx'] / 1024:.0f} | "
        f"{result['seconds']} |"
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bin-dir", default=BIN)
    parser.add_argument("--before", metavar="DIR", help="the programs of an older build")
    parser.add_argument("--device", default="h100")
    parser.add_argument("--products", nargs="+", choices=PRODUCTS, default=list(PRODUCTS))
    parser.add_argument(
        "--flags",
        nargs="+",
        default=[],
        help="further flags, such as max-kernels=24 for --max-kernels=24",
    )
    parser.add_argument(
        "--untimed",
        action="store_true",
        help="compile once and leave the seconds out, as on a busy machine",
    )
    parser.add_argument("--write", metavar="FILE")
    options = parser.parse_args()
    flags = ["--" + flag for flag in options.flags]
    builds = {"now": options.bin_dir}
    if options.before:
        builds = {"before": options.before, **builds}
    lines = [
        "| product | build | mean regret, % | worst, % | at rows | above 3 % | families | intervals | host code, B | PTX, KiB | compilation, s |",
        "|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    with tempfile.TemporaryDirectory() as folder:
        for name in options.products:
            for build, bin_dir in builds.items():
                print(f"{name}, {build}", file=sys.stderr)
                lines.append(
                    row(
                        name,
                        build,
                        judge(bin_dir, options.device, name, flags, folder, not options.untimed),
                    )
                )
    table = "\n".join(lines)
    print(table)
    if options.write:
        write_table(
            options.write,
            "Regret of plans over their range",
            "Predicted, not measured; each build by its own model.",
            table,
        )


if __name__ == "__main__":
    main()
