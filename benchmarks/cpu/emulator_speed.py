#!/usr/bin/env python3
"""Measures the emulator: FTuner's kernels on the CPU, without a GPU.

Dense (T, 2304, 768) at several T, in seconds of a call:

  library      kernels compiled ahead of time, called through libftrt (docs/libraries.md)
  ftuner-run   kernels compiled just in time, the run alone
  checked      the same with bounds and races checked
  reference    ftuner-run's reference, upstream's own lowering to loops in f64
  NumPy        the product by NumPy's BLAS, on as many threads as it takes

The result of the library is compared with NumPy's in float64. Goal: 1 s for T = 53.

Writes a table, and JSON with --json FILE.
"""

import argparse
import ctypes
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np

import workloads

sys.path.insert(0, os.path.join(workloads.ROOT, "benchmarks", "gpu"))
from ftuner_bench.workloads import FULL

WORKLOAD = FULL[0]


def tool(options, name, *arguments):
    done = subprocess.run(
        [os.path.join(options.bin_dir, name), *arguments], capture_output=True, text=True
    )
    if done.returncode != 0:
        sys.exit(f"{name} {' '.join(arguments)}\n{done.stderr}")
    return done.stdout


def median_seconds(repeat, call):
    seconds = []
    for _ in range(repeat):
        start = time.perf_counter()
        call()
        seconds.append(time.perf_counter() - start)
    return statistics.median(seconds)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--bin-dir", default=workloads.BIN)
    parser.add_argument("--device", default="h200")
    parser.add_argument("--sizes", default="1,16,53,128")
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--json")
    options = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        source, library_path = (
            os.path.join(folder, "dense.mlir"),
            os.path.join(folder, "libdense.so"),
        )
        with open(source, "w", encoding="utf-8") as file:
            file.write(WORKLOAD.mlir())
        tool(
            options,
            "ftuner-translate",
            source,
            "--ftuner-to-library",
            "--emulator",
            f"--device={options.device}",
            "-o",
            library_path,
        )
        runtime = ctypes.CDLL(
            os.path.join(options.bin_dir, "..", "lib", "libftrt.so.1"), mode=ctypes.RTLD_GLOBAL
        )
        runtime.ftrt_emulator_stream.restype = ctypes.c_void_p
        runtime.ftrt_last_error.restype = ctypes.c_char_p
        stream = ctypes.c_void_p(runtime.ftrt_emulator_stream())
        dense = ctypes.CDLL(library_path).dense
        columns = ["library", "ftuner-run", "checked", "reference", "NumPy"]
        print(f"{'T':>5}" + "".join(f"{name:>12}" for name in columns) + f"{'GFLOP/s':>12}")
        for size in (int(text) for text in options.sizes.split(",")):
            generator = np.random.default_rng()
            a, b = (
                generator.standard_normal(shape, np.float32)
                for shape in WORKLOAD.argument_shapes(size)
            )
            c = np.full(WORKLOAD.result_shape(size), np.nan, np.float32)

            def call():
                code = dense(
                    *[ctypes.c_void_p(array.ctypes.data) for array in (a, b, c)],
                    ctypes.c_int64(size),
                    None,
                    stream,
                )
                if code != 0:
                    sys.exit(f"T = {size}: {runtime.ftrt_last_error().decode()}")

            call()
            exact = a.astype(np.float64) @ b.astype(np.float64)
            error = np.linalg.norm(c - exact) / np.linalg.norm(exact)
            if not error < 1e-5:
                sys.exit(f"T = {size}: relative error {error:.3g}")
            seconds = {"library": median_seconds(options.repeat, call)}
            arguments = [
                source,
                "--function=dense",
                f"--device={options.device}",
                "--json",
                f"--args={size}x768xf32,768x2304xf32",
            ]
            for name, flags in (
                ("ftuner-run", ["--executor=emulator"]),
                ("checked", ["--executor=emulator", "--check-bounds", "--check-races"]),
                ("reference", ["--executor=reference"]),
            ):
                seconds[name] = statistics.median(
                    json.loads(tool(options, "ftuner-run", *arguments, *flags))["seconds"]
                    for _ in range(options.repeat)
                )
            seconds["NumPy"] = median_seconds(options.repeat * 4, lambda: np.matmul(a, b, out=c))
            rows.append({"t": size, "seconds": seconds, "error": float(error)})
            print(
                f"{size:5}"
                + "".join(f"{seconds[name]:12.4f}" for name in columns)
                + f"{WORKLOAD.flops(size) / seconds['library'] / 1e9:12.2f}",
                flush=True,
            )
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump({"device": options.device, "rows": rows}, file, indent=2)


if __name__ == "__main__":
    main()
