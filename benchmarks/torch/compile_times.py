#!/usr/bin/env python3
"""Seconds of the first call of a model compiled with FTuner, beside Inductor alone, without caches and with them.

The models are those of examples/python/torch_models.py, small and with random weights, in f32 on tensors on the CPU:
Inductor makes C++, FTuner kernels for the emulator and for the GPU. Each call is the first of a process of its own:

* cold: the caches of Inductor and of FTuner are empty;
* warm: they hold what the process before made.

Runs with FTuner and without take turns; the table has medians of --rounds. From each first call the second one is
subtracted, which computes alone. "FTuner's own" is the time that the compilation waited for FTuner's functions
(`Report.compile_seconds`). The ratio of cold runs is without it: (FTuner - own) / Inductor.

Exits with 1 if the ratio is above 1.3 in a cold run, or above 1.2 in a warm one.
--write FILE writes what is printed, with the date and the commit before it.
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

import tables

ROOT = pathlib.Path(__file__).resolve().parents[2]
MODELS = ("bert", "gpt2", "llama", "t5", "vit", "recommender")
#: Limits of the wait for a first call, over Inductor's, in cold and warm runs.
MAX_RATIOS = {"cold": 1.3, "warm": 1.2}

CHILD = """
import json, sys, time, warnings
warnings.simplefilter("ignore")
import torch
import torch._inductor.compile_fx
import torch_models
import ftuner.torch
name, options = sys.argv[1], json.loads(sys.argv[2])
torch.manual_seed(0)
case = torch_models.MODELS[name]()
model, inputs = case.model.eval(), case.inputs(*case.sizes[0])
compiled = torch.compile(model, dynamic=True, **options)
seconds = []
with torch.no_grad():
    for _ in range(2):
        begin = time.monotonic()
        compiled(*inputs)
        seconds.append(time.monotonic() - begin)
report = ftuner.torch.report()
print(json.dumps({
    "seconds": seconds[0] - seconds[1], "own": report.compile_seconds, "taken": report.taken, "products": report.products,
}))
"""


def first_call(name, options, caches):
    """Returns the figures of a model's first call, measured in a separate process."""
    environment = {
        **os.environ,
        "TORCHINDUCTOR_CACHE_DIR": f"{caches}/inductor",
        "FTUNER_CACHE_DIR": f"{caches}/ftuner",
        "PYTHONPATH": os.pathsep.join(
            [str(ROOT / "python"), str(ROOT / "examples/python"), os.environ.get("PYTHONPATH", "")]
        ),
    }
    done = subprocess.run(
        [sys.executable, "-c", CHILD, name, json.dumps(options)],
        env=environment,
        capture_output=True,
        text=True,
    )
    if done.returncode:
        raise RuntimeError(f"{name}: {done.stderr.strip()[-500:]}")
    return json.loads(done.stdout.splitlines()[-1])


def measure(name, rounds, options_of_ftuner):
    """Medians of the processes' figures, by compiler and by state of the caches."""
    found = {(compiler, state): [] for compiler in ("ftuner", "inductor") for state in MAX_RATIOS}
    for _ in range(rounds):
        with tempfile.TemporaryDirectory() as folder:
            for state in MAX_RATIOS:
                for compiler, options in (("ftuner", options_of_ftuner), ("inductor", {})):
                    found[compiler, state].append(first_call(name, options, f"{folder}/{compiler}"))
    return {
        key: {figure: statistics.median(run[figure] for run in runs) for figure in runs[0]}
        for key, runs in found.items()
    }


def row_of(name, found):
    """A row of the table, and whether it is as asked."""
    row, is_fine = [name], True
    for state, max_ratio in MAX_RATIOS.items():
        with_ftuner, plain = found["ftuner", state], found["inductor", state]
        ratio = (with_ftuner["seconds"] - (with_ftuner["own"] if state == "cold" else 0)) / plain[
            "seconds"
        ]
        is_fine &= ratio <= max_ratio
        row += [
            f"{plain['seconds']:.1f}",
            f"{with_ftuner['seconds']:.1f}",
            f"{with_ftuner['own']:.1f}",
            f"{ratio:.2f}",
        ]
    cold = found["ftuner", "cold"]
    return [*row, f"{cold['taken']:.0f} of {cold['products']:.0f}"], is_fine


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="*", help=f"default: {', '.join(MODELS)}")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--take", choices=("faster", "all"), default="faster")
    parser.add_argument("--max-kernels", type=int, help="of each function; default: the compiler's")
    parser.add_argument("--write", metavar="FILE")
    options = parser.parse_args()
    if options.rounds < 1:
        parser.error(f"expected 1 round or more, but got {options.rounds}")
    sys.path[:0] = [str(ROOT / "python"), str(ROOT / "examples/python")]
    import torch_models

    if unknown := set(options.models) - set(torch_models.MODELS):
        parser.error(
            f"expected some of {', '.join(torch_models.MODELS)}, but got {', '.join(sorted(unknown))}"
        )
    settings = {
        "take": options.take,
        **({"max_kernels": options.max_kernels} if options.max_kernels else {}),
    }
    options_of_ftuner = {"backend": "ftuner", "options": settings}
    columns = [
        f"{column}, {state}"
        for state in MAX_RATIOS
        for column in ("Inductor", "with FTuner", "FTuner's own", "ratio")
    ]
    lines = [["model", *columns, "products"]]
    all_fine = True
    for name in options.models or MODELS:
        row, is_fine = row_of(name, measure(name, options.rounds, options_of_ftuner))
        all_fine &= is_fine
        lines.append(row)
        print(" | ".join(row), flush=True)
    if options.write:
        how = (
            f": seconds, medians of {options.rounds}, take={options.take!r}, {os.cpu_count()} cores"
        )
        pathlib.Path(options.write).write_text(tables.made(lines, how), encoding="utf-8")
    return 0 if all_fine else 1


if __name__ == "__main__":
    sys.exit(main())
