#!/usr/bin/env python3
"""Measures the host's share of a call of a compiled function from Python, in microseconds of CPU time.

First the emulator's side: calls of Dense (examples/dense.mlir) with no rows, which launch nothing, so that what is
left is checking the arguments, allocating the result, and the host code. Beside it, in the same process: the C function
alone through ctypes, with pointers at hand, and NumPy's own empty product of the same arrays.

Then the GPU's side, in a process of its own: calls that launch, over the driver of the tests, which checks launches and
counts them (test/unit/Runtime/FakeDriver.h), with tensors of the CPU in place of a GPU's: a call of the package, and one
in a graph of torch.compile, which is a sixteenth of what a chain of 17 products with one weight takes longer than one
product. The unit is `torch.mm(out=)` of tensors of one element on the CPU, measured in turns with them. A ratio is the
median over the rounds.

Needs the package (installed, or FTUNER_HOME and PYTHONPATH), and for the second part a build tree in FTUNER_HOME
(`ninja FTunerFakeDriver`) and PyTorch. Prints tables, or JSON with --json.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import ftuner
from ftuner.host import runtime

SOURCE = Path(__file__).resolve().parents[2] / "examples" / "dense.mlir"
DRIVER = Path(os.environ.get("FTUNER_HOME", ""), "test/unit/Runtime/libFTunerFakeDriver.so")
CALLS = 5000
#: Calls of a round of the second part: short, so that the unit is measured close to what it is compared with.
SHORT_CALLS = 1000
#: Products of the chain beside a single one.
CHAIN = 17
WIDTH = 64


def microseconds(call: Callable[[], Any], rounds: int) -> float:
    """Median of the rounds; CPU time, so that other processes count less."""
    call()
    return statistics.median(time_call(call, CALLS) for _ in range(rounds))


def time_call(call: Callable[[], Any], count: int) -> float:
    """Microseconds of CPU time of a call, on average."""
    begin = time.process_time()
    for _ in range(count):
        call()
    return (time.process_time() - begin) / count * 1e6


def measure_calls(rounds: int) -> dict[str, float]:
    """Microseconds of calls that launch nothing."""
    try:
        import torch  # First, so that `compile` compiles calls for it.
    except ImportError:
        torch = None
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
    if torch is not None:
        tensors = [torch.from_numpy(array) for array in (x, w, bias)]
        calls["PyTorch tensors"] = lambda: dense(*tensors)
    calls["the C function through ctypes"] = lambda: function(*pointers, 0, None, stream)
    calls["NumPy's x @ w + bias"] = lambda: x @ w + bias
    return {name: round(microseconds(call, rounds), 2) for name, call in calls.items()}


def measure_launches(rounds: int, keeps: bool) -> dict[str, dict[str, float]]:
    """Microseconds of calls that launch over the driver of the tests, and their ratios to the unit.

    With `keeps` a chain gives the results of all its products, so that no buffer is used again.
    """
    import ftuner.torch
    import torch

    torch.set_num_threads(1)
    # Tensors of the CPU run on the driver's default stream: the driver's memory is the host's.
    runtime.get().emulator_stream = 0
    runtime.get().select_device(0)
    dense = ftuner.compile(SOURCE, device="h200", emulate=True).dense
    x, w, bias = torch.ones(1, 768), torch.ones(768, 2304), torch.ones(2304)
    out = torch.empty(1, 2304)
    one, other, result = torch.ones(1, 1), torch.ones(1, 1), torch.ones(1, 1)

    def chain(count: int, host: str) -> Callable[[], Any]:
        def model(rows: torch.Tensor, weight: torch.Tensor) -> Any:
            results = [rows]
            for _ in range(count):
                results.append(results[-1] @ weight)
            return results[1:] if keeps else results[-1]

        options = {
            "device": "h200",
            "host": host,
            "take": "all",
            "max_kernels": 1,
            "cost_model": "sia",
        }
        compiled = torch.compile(model, backend="ftuner", dynamic=True, options=options)
        rows, weight = torch.ones(2, WIDTH), torch.ones(WIDTH, WIDTH)
        return lambda: compiled(rows, weight)

    calls = {
        "unit": lambda: torch.mm(one, other, out=result),
        "package, out=": lambda: dense(x, w, bias, out=out),
        "package": lambda: dense(x, w, bias),
    }
    hosts = "inductor", "eager"
    chains = {(host, count): chain(count, host) for host in hosts for count in (1, CHAIN)}
    times: dict[Any, list[float]] = {name: [] for name in (*calls, *hosts)}
    with torch.no_grad():
        for call in (*calls.values(), *chains.values()):
            for _ in range(SHORT_CALLS // 10):
                call()
        for _ in range(rounds):
            for name, call in calls.items():
                times[name].append(time_call(call, SHORT_CALLS))
            for host in hosts:
                longer, one_call = (
                    time_call(chains[host, count], SHORT_CALLS // 5) for count in (CHAIN, 1)
                )
                times[host].append((longer - one_call) / (CHAIN - 1))
    report = ftuner.torch.report()
    assert report.calls > CHAIN * rounds and report.pytorch_calls == report.copied_arguments == 0, (
        report
    )
    units = times.pop("unit")
    figures = {
        "torch.mm(out=), the unit": {
            "microseconds": round(statistics.median(units), 2),
            "ratio": 1.0,
        }
    }
    for name, label in (
        ("package, out=", "call of the package, out="),
        ("package", "call of the package"),
        ("inductor", "call in a graph"),
        ("eager", "call in a graph, host eager"),
    ):
        figures[label] = {
            "microseconds": round(statistics.median(times[name]), 2),
            "ratio": round(statistics.median(a / b for a, b in zip(times[name], units)), 2),
        }
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--rounds", type=int, default=9, help="of the first part; the second has 9 times as many"
    )
    parser.add_argument("--part", choices=["calls", "launches", "all"], default="all")
    parser.add_argument(
        "--keep", action="store_true", help="keep the results of all products of a chain"
    )
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()

    if options.part == "launches" and "FTRT_CUDA_DRIVER" in os.environ:
        launches = measure_launches(9 * options.rounds, options.keep)
        if options.json:
            print(json.dumps(launches, indent=1))
            return
        print("| call that launches | microseconds | ratio |\n|---|---|---|")
        for name, figures in launches.items():
            print(f"| {name} | {figures['microseconds']} | {figures['ratio']} |")
        return
    if options.part != "launches":
        calls = measure_calls(options.rounds)
        if options.json:
            print(json.dumps(calls, indent=1))
        else:
            print("| call | microseconds |\n|---|---|")
            for name, figure in calls.items():
                print(f"| {name} | {figure} |")
    if options.part != "calls":
        if not DRIVER.is_file():
            sys.exit(
                f"expected the driver of the tests, '{DRIVER}': ninja FTunerFakeDriver builds it"
            )
        command = [sys.executable, __file__, "--part=launches", f"--rounds={options.rounds}"]
        sys.stdout.flush()
        with tempfile.TemporaryDirectory() as folder:  # Inductor does not know the graphs.
            environment = {
                **os.environ,
                "FTRT_CUDA_DRIVER": str(DRIVER),
                "TORCHINDUCTOR_CACHE_DIR": folder,
            }
            flags = [f"--{name}" for name in ("json", "keep") if getattr(options, name)]
            done = subprocess.run([*command, *flags], env=environment)
        sys.exit(done.returncode)


if __name__ == "__main__":
    main()
