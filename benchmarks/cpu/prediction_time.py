#!/usr/bin/env python3
"""Measures what predictions cost: a program, a uKernel, a whole selection.

For Dense with N = 2304, K = 768, M = T and M = 16·T, T = 1…128, and each cost model:

  program    one program for one size, its uKernels known (goal of `latency`: 2 µs)
  uKernel    the first program of a uKernel, which prices it
  selection  choosing the kernels for the 128 sizes (goal: a few seconds)

Medians of several runs, by build/release/bin/prediction_time
(`ninja -C build/release prediction_time`). Prints a Markdown table, and writes JSON
with --json FILE.
"""

import argparse
import json
import os
import subprocess
import sys

import workloads

FIELDS = (
    "cost_model",
    "first_row",
    "last_row",
    "program_us",
    "ukernel_us",
    "selection_us",
    "candidates",
)


def measure(program: str, device: str, repeat: int) -> list[dict]:
    """One entry for each range of rows and cost model."""
    run = subprocess.run([program, device, str(repeat)], capture_output=True, text=True)
    if run.returncode != 0:
        sys.exit(f"{program}: {run.stderr}")
    rows = [dict(zip(FIELDS, line.split())) for line in run.stdout.splitlines()]
    return [
        {key: value if key == "cost_model" else float(value) for key, value in row.items()}
        for row in rows
    ]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--bin-dir", default=workloads.BIN)
    parser.add_argument("--devices", default="h200")
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--json")
    options = parser.parse_args()
    program = os.path.join(options.bin_dir, "prediction_time")
    if not os.path.exists(program):
        sys.exit(f"{program} is missing: ninja -C build/release prediction_time")
    found = {}
    print("| device | rows | cost model | program | uKernel | selection | candidates |")
    print("|---|---|---|---|---|---|---|")
    for device in options.devices.split(","):
        found[device] = measure(program, device, options.repeat)
        for row in found[device]:
            print(
                f"| {device} | {row['first_row']:.0f} to {row['last_row']:.0f} "
                f"| `{row['cost_model']}` | {row['program_us']:.2f} µs "
                f"| {row['ukernel_us']:.1f} µs | {row['selection_us'] / 1e6:.2f} s "
                f"| {row['candidates']:,.0f} |"
            )
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump(found, file, indent=2)


if __name__ == "__main__":
    main()
