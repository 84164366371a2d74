#!/usr/bin/env python3
"""Transform specs: iree-compile itself puts FTuner's kernels into the modules that it compiles.

A product with transposed weights, bias and residual as linalg, one in a loop whose fill stands before it, and two layers and a transformer's layer of PyTorch's.
The specs come from IREE's own phase; iree-compile takes the modules as they are. Every product must be found. Runs as
in iree_cuda.py and iree_cpu.py.
"""

import os
import sys

import harness
import iree_cases

DRIVERS = {"cuda": "cuda", "llvm-cpu": "local-sync"}


def check(tests, name, target):
    seed = harness.next_seed()
    compiled, problems = iree_cases.compile_by_spec(tests, name, seed[0] % 2**31, target)
    if problems:
        return problems
    error, launched, problems = iree_cases.check_run(tests, compiled, DRIVERS[target], seed)
    tests.describe(
        f"{name}, {target}",
        f"{len(iree_cases.CASES[name].sizes)} sizes by {len(set(launched))} kernels, error up to {error:.1e}",
    )
    return problems


def main():
    tests, _ = harness.start(__doc__)
    if not os.path.exists(iree_cases.program("iree-compile")):
        sys.exit("error: no iree-compile found: run tools/setup.sh")
    for name, target in (
        ("residual", "cuda"),
        ("residual", "llvm-cpu"),
        ("linear", "cuda"),
        ("loop", "llvm-cpu"),
        ("bert", "llvm-cpu"),
    ):
        tests.add(f"{name}, {target}", check, tests, name, target)
    tests.finish()


if __name__ == "__main__":
    main()
