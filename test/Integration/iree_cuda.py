#!/usr/bin/env python3
"""Modules for IREE: compiled by iree-compile, and run by IREE's own CUDA runtime without a GPU.

The driver is the one over the emulator (lib/CudaEmulator). Results at random sizes of the range and beyond, with fresh
random data, against NumPy in float64; which kernels are launched, against what the plan chooses. A module with a
softmax, which IREE compiles for itself, is compiled alone: nothing here runs IREE's own kernels (iree_cpu.py does).
"""

import json
import os
import sys

import harness
import iree_cases
import ptx


def check(tests, name, phase=None, has_plan=True, flags=()):
    compiled, problems = iree_cases.compile_case(
        tests, name, harness.next_seed()[0], phase=phase, flags=flags
    )
    if problems:
        return problems
    error, launched, problems = iree_cases.check_run(tests, compiled, "cuda", harness.next_seed())
    if phase is None and has_plan:
        problems += check_choice(tests, name, launched)
    tests.describe(
        ", ".join([name, *filter(None, [phase]), *flags]),
        f"{len(iree_cases.CASES[name].sizes)} sizes by {len(set(launched))} kernels, error up to {error:.1e}",
    )
    return problems


def check_choice(tests, name, launched):
    """Each size runs by the family that the plan has for it; rows that are not aligned by one for those."""
    answer = tests.tool(
        "ftuner-translate",
        tests.write(f"{name}.mlir", iree_cases.CASES[name].text(0)),
        "--ftuner-to-manifest",
        f"--device={iree_cases.DEVICE}",
        "--tensor-maps=off",
        environment=harness.NO_TOOLKIT,
    )
    if answer.returncode != 0:
        return [answer.stderr]
    # IREE has the plan of the exact image, not the portable one behind it.
    plan, *_ = json.loads(answer.stdout)["workloads"]
    problems = []
    for size, kernel in zip((size for (size,) in iree_cases.CASES[name].sizes if size), launched):
        if name in ("scores", "slices") and size % 4 != 0:
            continue
        # Of scores, T rows and columns of 24 for each of three elements of the batch; others have one dynamic axis.
        shape = [size, size, 24, 3] if name == "scores" else [size]
        family = next(
            (
                entry["family"]
                for entry in plan["dispatch"]
                if all(
                    box["min"] <= extent <= (box["max"] or extent)
                    for box, extent in zip(entry["box"], shape)
                )
            ),
            plan["general_family"],
        )
        wanted = (
            f"{family}_sum" if plan["families"][family].get("reduce_split", 1) > 1 else str(family)
        )
        if kernel.rsplit("_k", 1)[1] != wanted:
            problems.append(f"T = {size}: expected family {wanted}, but got {kernel}")
    if name == "slices_half" and len({kernel.endswith("_sum") for kernel in launched}) != 2:
        problems.append(f"expected families with slices and without, but got {launched}")
    return problems


def check_mixed(tests):
    compiled, problems = iree_cases.compile_case(tests, "mixed", 0)
    return problems or ([] if os.path.getsize(compiled.module) else ["an empty module"])


def check_driver(tests):
    """What is missing is told in words."""
    compiled, problems = iree_cases.compile_case(tests, "phases", 0, phase="preprocessing")
    return problems or iree_cases.check_words(
        tests, compiled, "cuda", "no library of FTRT_EMULATED_LIBRARIES has the kernel"
    )


def check_packed(tests):
    """Packed weights come by bulk copies; those that IREE computes are put in order by IREE."""
    compiled, problems = iree_cases.compile_case(tests, "packed", 0)
    if problems:
        return problems
    with open(compiled.output) as file:
        text = file.read()
    # PTX is there in hexadecimal digits.
    wanted = {
        "bulk copies": b"cp.async.bulk.shared".hex().upper(),
        "weights in another order": "linalg.transpose",
    }
    return [f"expected {what}" for what, words in wanted.items() if words not in text]


def main():
    tests, _ = harness.start(__doc__)
    if not os.path.exists(iree_cases.program("iree-compile")):
        sys.exit("error: no iree-compile found: run tools/setup.sh")
    for name in ("dense", "scores", "projection", "update", "slices", "slices_half"):
        tests.add(name, check, tests, name)
    for name in ("packed", "pair", "many", "slices_batch", "slices_update", "rows"):
        tests.add(name, check, tests, name, None, False)
    for phase in ("input", "preprocessing"):
        tests.add(f"phases, {phase}", check, tests, "phases", phase)
    if ptx.find_ptxas():
        tests.add("dense, --cubins=sm_90", check, tests, "dense", None, True, ("--cubins=sm_90",))
    tests.add("packed weights", check_packed, tests)
    tests.add("mixed", check_mixed, tests)
    tests.add("driver", check_driver, tests)
    tests.finish()


if __name__ == "__main__":
    main()
