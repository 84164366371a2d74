#!/usr/bin/env python3
"""Mixed models on IREE's CPU: IREE's kernels by its own compiler, FTuner's in the emulator, by the plugin.

Products with epilogues, batches, f16 on tensor cores and products that add to what is there; a softmax of IREE's
between two of FTuner's; a transformer's layer that comes from PyTorch through IREE's phases. Results at sizes of the
range and beyond, with fresh random data, against NumPy and PyTorch in float64. IREE's two CPU drivers run every other
case, and with FTUNER_TEST_SCALE above 1 both run all, and more cases.
"""

import os
import sys

import harness
import iree_cases

DRIVERS = ("local-sync", "local-task")


def check(tests, name, drivers, phase=None):
    seed = harness.next_seed()
    compiled, problems = iree_cases.compile_case(tests, name, seed[0] % 2**31, "llvm-cpu", phase)
    if problems:
        return problems
    errors, kernels = [], set()
    for driver in drivers:
        error, launched, found = iree_cases.check_run(tests, compiled, driver, seed)
        problems += [f"{driver}: {problem}" for problem in found]
        errors.append(error)
        kernels.update(launched)
    tests.describe(
        f"{name}, {phase}" if phase else name,
        f"{len(iree_cases.CASES[name].sizes)} sizes by {len(kernels)} kernels, error up to {max(errors):.1e}",
    )
    return problems


def check_program(tests):
    """By IREE's own program, whose results are known by the eye: a softmax of equal numbers."""
    compiled, problems = iree_cases.compile_case(tests, "mixed", 0, "llvm-cpu", "input")
    if problems:
        return problems
    plugin = os.path.join(tests.bin_dir, "..", "lib", "libftuner_iree_plugin.so")
    answer = iree_cases.run(
        [
            iree_cases.program("iree-run-module"),
            "--device=local-sync",
            f"--executable_plugin={plugin}",
            f"--module={compiled.module}",
            "--function=mixed",
            "--input=3x96xf32=1",
            "--input=96x160xf32=1",
            "--input=160x24xf32=2",
            "--expected_output=3x160xf32=0.00625",
            "--expected_output=3x24xf32=2",
        ],
        env={**os.environ, "FTRT_EMULATED_LIBRARIES": compiled.kernels},
    )
    return [] if answer.returncode == 0 else [answer.stdout[-500:], answer.stderr[-500:]]


def check_words(tests):
    """What is missing is told in words."""
    compiled, problems = iree_cases.compile_case(tests, "update", 0, "llvm-cpu", "input")
    return problems or iree_cases.check_words(
        tests,
        compiled,
        "local-sync",
        "no library of FTRT_EMULATED_LIBRARIES has the kernel update_0_",
    )


def check_odd_address(tests):
    """A tensor that kernels cannot take is told in words, unless they are such that can."""
    compiled, problems = iree_cases.compile_case(tests, "update", 0, "llvm-cpu")
    if problems:
        return problems
    answer, words = (
        iree_cases.run_compiled(tests, compiled, "local-sync", 1, "odd address"),
        "expected tensors at multiples of 16 bytes",
    )
    if answer.returncode == 0 or words not in answer.stderr:
        problems.append(f"expected '{words}', but got {answer.returncode}: {answer.stderr[-500:]}")
    compiled, found = iree_cases.compile_case(
        tests, "update", 0, "llvm-cpu", flags=("--iree-any-address",)
    )
    if found:
        return problems + found
    answer = iree_cases.run_compiled(tests, compiled, "local-sync", 1, "odd address")
    return problems if answer.returncode == 0 else problems + [answer.stderr[-500:]]


def main():
    tests, _ = harness.start(__doc__)
    if not os.path.exists(iree_cases.program("iree-compile")):
        sys.exit("error: no iree-compile found: run tools/setup.sh")
    names = (
        "dense",
        "scores",
        "projection",
        "update",
        "mixed",
        "rows",
        "pair",
        "many",
        "packed",
        "slices",
        "slices_batch",
        "slices_half",
        "slices_update",
    )
    if harness.SCALE == 1:  # Without those that are parts of others.
        names = [name for name in names if name not in ("scores", "pair", "slices")]
    for number, name in enumerate(names):
        tests.add(name, check, tests, name, harness.share(DRIVERS, number))
    if harness.SCALE > 1:  # In the suite test_iree.py runs one.
        tests.add(
            "bert, preprocessing", check, tests, "bert", harness.share(DRIVERS, 1), "preprocessing"
        )
    tests.add("program", check_program, tests)
    tests.add("words", check_words, tests)
    tests.add("odd address", check_odd_address, tests)
    tests.finish()


if __name__ == "__main__":
    main()
