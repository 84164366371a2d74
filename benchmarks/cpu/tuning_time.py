#!/usr/bin/env python3
"""Measures FTuner's tuning time on this machine: from .mlir to PTX.

For Dense with N = 2304, K = 768, bias and GELU, M = T and M = 16·T, T = 1…128:
the whole of ftuner-translate, and the part up to the plan (selection); the rest
is code generation. Then one emulated run of 53 × 2304 × 768. Medians of several
runs, in seconds of wall time, starting the program included. Goals: 8.4 s from
.mlir to PTX, 1 s for the emulated run.

Writes a table, and JSON with --json FILE.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import time

import workloads


def timed(repeat, command):
    """Median, least and largest seconds of a command."""
    seconds = []
    for _ in range(repeat):
        start = time.perf_counter()
        run = subprocess.run(command, capture_output=True, text=True)
        seconds.append(time.perf_counter() - start)
        if run.returncode != 0:
            sys.exit(run.stderr)
    return statistics.median(seconds), min(seconds), max(seconds), run.stdout


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--bin-dir", default=workloads.BIN)
    parser.add_argument("--devices", default="v100,a100,h200")
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--json")
    options = parser.parse_args()
    tool = lambda name: os.path.join(options.bin_dir, name)  # noqa: E731
    rows = []
    folder = os.path.join(options.bin_dir, "..", "benchmarks")
    os.makedirs(folder, exist_ok=True)
    print(
        f"{'device':8} {'rows':9} {'to PTX':>8} {'(min max)':>15} {'selection':>10} {'code':>6} {'kernels':>8}"
    )
    for device in options.devices.split(","):
        for label, text in workloads.RANGES.items():
            path = workloads.write(os.path.join(folder, "dense.mlir"), text, epilogue="bias_gelu")
            total, low, high, ptx = timed(
                options.repeat,
                [tool("ftuner-translate"), path, "--ftuner-to-ptx", f"--device={device}"],
            )
            selection, *_ = timed(
                options.repeat,
                [tool("ftuner-opt"), path, f"--ftuner-front-end=device={device}", "-o", os.devnull],
            )
            kernels = ptx.count(".entry ")
            rows.append(
                {
                    "device": device,
                    "rows": label,
                    "total_s": total,
                    "selection_s": selection,
                    "kernels": kernels,
                }
            )
            print(
                f"{device:8} {label:9} {total:7.2f}s {f'({low:.2f} {high:.2f})':>15} {selection:9.2f}s {total - selection:5.2f}s {kernels:8}"
            )
    path = os.path.join(workloads.ROOT, "examples", "dense.mlir")
    run = subprocess.run(
        [
            tool("ftuner-run"),
            path,
            "--device=h200",
            "--executor=emulator",
            "--json",
            "--args=53x768xf32,768x2304xf32,2304xf32",
        ],
        capture_output=True,
        text=True,
    )
    if run.returncode != 0:
        sys.exit(run.stderr)
    emulated = json.loads(run.stdout)
    print("emulated 53 × 2304 × 768:", json.dumps(emulated))
    if options.json:
        with open(options.json, "w") as file:
            json.dump({"tuning": rows, "emulated": emulated}, file, indent=2)


if __name__ == "__main__":
    main()
