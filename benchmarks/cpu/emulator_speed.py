#!/usr/bin/env python3
"""Measures how fast kernels run in the emulator, on the cores of this machine.

Dense (N = 2304, K = 768, bias and GELU) with several numbers of rows: seconds and
GFLOP/s of an emulated call, beside the reference executor (upstream's own
lowering to loops on the CPU, in f64) and NumPy's product in f32 with the threads
that it takes by itself. Medians; the goal is 1 s for 53 rows.

Writes a table, and JSON with --json FILE.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

import numpy
import workloads

COLUMNS, REDUCE = 2304, 768


def run_tool(options, source, rows, executor, *more):
    """Seconds of a run as ftuner-run measures it: the call alone."""
    command = [os.path.join(options.bin_dir, "ftuner-run"), source, f"--device={options.device}", f"--executor={executor}", "--json",
               f"--args={rows}x{REDUCE}xf32,{REDUCE}x{COLUMNS}xf32,{COLUMNS}xf32", *more]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"error: {' '.join(command)}\n{done.stderr}")
    return json.loads(done.stdout)["seconds"]


def run_numpy(rows, random):
    x, w = (random.standard_normal(shape, dtype=numpy.float32) for shape in ((rows, REDUCE), (REDUCE, COLUMNS)))
    start = time.perf_counter()
    x @ w
    return time.perf_counter() - start


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin-dir", default=workloads.BIN)
    parser.add_argument("--device", default="h200")
    parser.add_argument("--rows", default="1,16,53,128,512")
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--json")
    options = parser.parse_args()
    random = numpy.random.default_rng()
    table = []
    names = ["emulator", "with checks", "reference", "numpy"]
    print(f"{'rows':>5} " + " ".join(f"{name:>22}" for name in names))
    with tempfile.TemporaryDirectory() as folder:
        source = workloads.write(os.path.join(folder, "dense.mlir"), "#ukernel.range<1 to 128>", epilogue="bias_gelu")
        for rows in map(int, options.rows.split(",")):
            gflop = 2e-9 * rows * COLUMNS * REDUCE
            calls = [lambda: run_tool(options, source, rows, "emulator"),
                     lambda: run_tool(options, source, rows, "emulator", "--check-bounds", "--check-races"),
                     lambda: run_tool(options, source, rows, "reference"),
                     lambda: run_numpy(rows, random)]
            seconds = [statistics.median(call() for _ in range(options.repeat)) for call in calls]
            table.append({"rows": rows, "gflop": gflop, **dict(zip(names, seconds))})
            print(f"{rows:5} " + " ".join(f"{value:9.4f} s {gflop / value:6.2f} GF/s" for value in seconds), flush=True)
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump({"device": options.device, "cores": os.cpu_count(), "rows": table}, file, indent=2)


if __name__ == "__main__":
    main()
