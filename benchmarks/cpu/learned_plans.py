#!/usr/bin/env python3
"""Choices of the cost model `learned` beside `latency`, and its cost.

For Dense in f32 and the products of a layer of Llama-3-8B in f16, 1 to 128 rows each: the plan of
the strategy `ftuner` under both cost models, the processor's seconds of its search (the least of
several runs), and the mean time of its programs by either model. Nothing is measured.

By build/release/bin/learned_plans (`ninja -C build/release learned_plans`). Prints a Markdown table.
"""

import argparse
import os
import subprocess
import sys

import workloads


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--bin-dir", default=workloads.BIN)
    parser.add_argument("--device", default="h200")
    parser.add_argument("--repeat", type=int, default=3)
    options = parser.parse_args()
    program = os.path.join(options.bin_dir, "learned_plans")
    if not os.path.exists(program):
        sys.exit(f"{program} is missing: ninja -C build/release learned_plans")
    run = subprocess.run(
        [program, options.device, str(options.repeat)], capture_output=True, text=True
    )
    if run.returncode != 0:
        sys.exit(f"{program}: {run.stderr}")
    print(
        "| product | cost model | sizes | search, s | families | mean by `latency`, µs | by `learned`, µs |"
    )
    print("|---|---|---|---|---|---|---|")
    for line in run.stdout.splitlines():
        product, model, sizes, seconds, families, by_latency, by_learned = line.split()
        print(
            f"| {product} | `{model}` | {sizes} | {float(seconds):.2f} | {families} "
            f"| {float(by_latency):.2f} | {float(by_learned):.2f} |"
        )


if __name__ == "__main__":
    main()
