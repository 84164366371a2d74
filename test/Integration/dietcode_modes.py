#!/usr/bin/env python3
"""Runs kernels of every mode of the strategy 'dietcode' in the emulator, checked, at sizes inside tiles and at their ends.

In the suite a small product; with FTUNER_TEST_SCALE above 1 examples/dense.mlir as well.
"""

import os

import harness

ROOT = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
MODES = ("joint", "per-shape", "largest", "loop-partitioning", "bucket", "global-padding")
SMALL = """
module attributes {ukernel.symbols = {T = #ukernel.range<1 to 128>}} {
  func.func @dense(%x: tensor<?x40xf32> {ukernel.shape = ["T", 40]}, %w: tensor<40x96xf32>) -> tensor<?x96xf32> {
    %c0 = arith.constant 0 : index
    %zero = arith.constant 0.0 : f32
    %t = tensor.dim %x, %c0 : tensor<?x40xf32>
    %empty = tensor.empty(%t) : tensor<?x96xf32>
    %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<?x96xf32>) -> tensor<?x96xf32>
    %product = linalg.matmul ins(%x, %w : tensor<?x40xf32>, tensor<40x96xf32>)
                             outs(%init : tensor<?x96xf32>) -> tensor<?x96xf32>
    return %product : tensor<?x96xf32>
  }
}
"""


def check(tests, path, arguments, mode, size):
    result = tests.tool(
        "ftuner-run",
        path,
        "--function=dense",
        f"--args={size}{arguments}",
        "--device=v100",
        "--check",
        *harness.CHECKED,
        f"--seed={harness.SEED % 2**31}",
        "--strategy=dietcode",
        "--trials=64",
        f"--dietcode-mode={mode}",
        "--instances=4",
        "--buckets=4",
    )
    report, problems = harness.report_of(result)
    if report and not all(checked["ok"] for checked in report["results"]):
        problems.append(
            f"relative errors {[checked['relative_error'] for checked in report['results']]}"
        )
    if report and len(report["launches"]) != 1:
        problems.append(
            f"expected one kernel, but got {[launch['kernel'] for launch in report['launches']]}"
        )
    return problems


def main():
    tests, _ = harness.start(__doc__)
    cases = [("small", tests.write("small.mlir", SMALL), "x40xf32,40x96xf32", (1, 53, 97, 128))]
    if harness.SCALE > 1:
        cases.append(
            (
                "dense",
                os.path.join(ROOT, "examples", "dense.mlir"),
                "x768xf32,768x2304xf32,2304xf32",
                (1, 5, 53, 97, 128),
            )
        )
    for name, path, arguments, sizes in cases:
        for number, mode in enumerate(MODES):
            # In the suite two sizes of each mode.
            for size in (
                sizes if harness.SCALE > 1 else (sizes[number % 4], sizes[(number + 1) % 4])
            ):
                tests.add(f"{name} {mode} T={size}", check, tests, path, arguments, mode, size)
    tests.finish()


if __name__ == "__main__":
    main()
