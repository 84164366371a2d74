#!/usr/bin/env python3
"""Measures Python's share of a call of a compiled function, in microseconds of CPU time.

Calls Dense (examples/dense.mlir) with no rows, which launches nothing: what is left is checking the
arguments, allocating the result, and the host code. Beside it, in the same process: the C function
alone through ctypes, with pointers at hand, and NumPy's own empty product of the same arrays.

Needs the package (installed, or FTUNER_HOME and PYTHONPATH). Prints a table, or JSON with --json.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import statistics
import time
from pathlib import Path
from typing import Any, Callable

import numpy as np

import ftuner
from ftuner import runtime

SOURCE = Path(__file__).resolve().parents[2] / "examples" / "dense.mlir"
CALLS = 5000


def microseconds(call: Callable[[], Any], rounds: int) -> float:
    """Median of the rounds; CPU time, so that other processes count less."""
    call()
    times = []
    for _ in range(rounds):
        begin = time.process_time()
        for _ in range(CALLS):
            call()
        times.append((time.process_time() - begin) / CALLS * 1e6)
    return statistics.median(times)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()

    module = ftuner.compile(SOURCE, device="h200", emulate=True)
    dense = module.dense
    x = np.empty((0, 768), np.float32)
    w, bias = np.ones((768, 2304), np.float32), np.ones(2304, np.float32)
    out = np.empty((0, 2304), np.float32)

    library = ctypes.CDLL(str(module.library_path))
    function = library.dense
    pointer = ctypes.c_void_p
    function.argtypes = [pointer] * 4 + [ctypes.c_int64] + [pointer] * 2
    pointers = [array.ctypes.data for array in (x, w, bias, out)]
    stream = runtime.get().emulator_stream

    calls: dict[str, Callable[[], Any]] = {
        "NumPy arrays": lambda: dense(x, w, bias),
        "NumPy arrays, out=": lambda: dense(x, w, bias, out=out),
    }
    try:
        import torch
    except ImportError:
        pass
    else:
        tensors = [torch.from_numpy(array) for array in (x, w, bias)]
        calls["PyTorch tensors"] = lambda: dense(*tensors)
    calls["the C function through ctypes"] = lambda: function(*pointers, 0, None, stream)
    calls["NumPy's x @ w + bias"] = lambda: x @ w + bias
    figures = {name: round(microseconds(call, options.rounds), 2) for name, call in calls.items()}
    if options.json:
        print(json.dumps(figures, indent=1))
        return
    print("| call | microseconds |\n|---|---|")
    for name, figure in figures.items():
        print(f"| {name} | {figure} |")


if __name__ == "__main__":
    main()
