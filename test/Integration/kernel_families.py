#!/usr/bin/env python3
"""Runs kernel families that are given, not searched, in the emulator.

Pairs of heights that follow each other and that do not, one or several threads
along m, sizes that they cover exactly and sizes that they pad, one product and
batches of them. The plan is written into the module after its workload is
formed. Results are compared with the reference's on the module itself, with
bounds and race checks and shuffled threads.
"""

import os

import numpy

import batches
import harness
import models

TOLERANCE = 1e-5


def family(parts, stages=2, vector=1, batch_axes=0):
    """Text of a family. parts: (block tile, register tile) along m, n and k."""
    ones = [1] * batch_axes
    return (f"<#ukernel.simt<stages = {stages}, vector = {vector}>, axis = 0, parts = ["
            + ", ".join(f"<smem = {[*tile, *ones]}, reg = {[*registers, *ones]}>"
                        for tile, registers in parts) + "]>")


def form(h, name, text, plan):
    """The module with its one workload formed and planned; (path, problems)."""
    source = h.write(name + ".mlir", text)
    passes = ["--canonicalize", "--cse", "--ukernel-normalize-linalg", "--canonicalize", "--cse",
              "--ukernel-form-workloads"]
    result = h.tool("ftuner-opt", source, *passes)
    if result.returncode != 0:
        return None, [result.stderr]
    count = result.stdout.count("ukernel.workload ins")
    if count != 1:
        return None, [f"expected one workload, but got {count}"]
    head, brace, rest = result.stdout.partition("{\n  func.func")
    planned = rest.replace("ukernel.workload ins", "ukernel.workload plan(@given) ins")
    return h.write(name + "_planned.mlir", f"{head}{{\n  ukernel.plan @given {plan}\n  func.func{planned}"), []


def run(h, label, model, families, device, sizes, flags):
    """Runs every size by families[0], aligned operands or not."""
    name = label.replace(" ", "_")
    plan = (f"<families = [{', '.join(families)}], choices = [], general = 0, "
            f"fallback = {len(families) - 1}>")
    planned, problems = form(h, name, model.text(), plan)
    for number, size in enumerate(sizes if planned else []):
        args = f"--args={model.args(**size)}"
        results = []
        for path, executor in ((planned, "emulator"), (h.path(name + ".mlir"), "reference")):
            folder = h.path(f"{name}_{number}_{executor}")
            os.makedirs(folder)
            checks = ["--check-bounds", "--check-races", "--thread-order=shuffled", *flags] if executor == "emulator" else []
            result = h.tool("ftuner-run", path, f"--function={model.name}", f"--device={device}",
                            f"--executor={executor}", f"--save-dir={folder}", args, *checks)
            if result.returncode != 0:
                problems.append(f"{args} by the {executor}: {result.stderr}")
                break
            results.append(numpy.load(os.path.join(folder, "result0.npy")).astype(numpy.float64))
        if len(results) < 2:
            continue
        actual, expected = results
        error = numpy.linalg.norm(actual - expected) / max(numpy.linalg.norm(expected), 1e-30)
        if actual.shape != expected.shape or not error <= TOLERANCE:
            problems.append(f"{args}: relative error {error}")
    return problems


# Block tile and register tile of each part.
PAIRS = {
    "5 and 8 of one thread": [((5, 128, 8), (5, 4, 1)), ((8, 128, 8), (8, 4, 1))],
    "2 and 9 of four threads": [((8, 32, 16), (2, 4, 1)), ((36, 32, 16), (9, 4, 1))],
    "1 and 2 of 16 threads": [((16, 32, 8), (1, 4, 1)), ((32, 32, 8), (2, 4, 1))],
    "4 and 6 of two threads": [((8, 64, 8), (4, 4, 1)), ((12, 64, 8), (6, 4, 1))],
    "7 and 8 of one thread": [((7, 128, 16), (7, 4, 1)), ((8, 128, 16), (8, 4, 1))],
}


def main():
    h, options = harness.start(__doc__, {"--devices": {"default": "h200,t4"}})
    devices = options.devices.split(",")

    def check(label, model, parts, sizes, vector=1, batch_axes=0, flags=()):
        for device in devices:
            given = [family(parts, 2, vector, batch_axes)]
            if vector > 1:  # for operands that are not aligned
                given.append(family(parts[-1:], 2, 1, batch_axes))
            h.add(f"{label} {device}", run, h, f"{label} {device}", model, given, device, sizes, flags)

    pairs = list(PAIRS.items())
    for label, parts in pairs:
        check(label, models.Matmul(n=64, k=48, epilogue="bias_n"), parts,
              [{"T": t} for t in (0, 1, 5, 13, 28, 53, 113)], vector=4)
        check(label + " odd", models.Matmul(n=61, k=37, transpose_b=True, epilogue="residual"), parts,
              [{"T": t} for t in (4, 27, 64, 150)])
    for number, (label, model, sizes) in enumerate(batches.group()):
        pair, parts = pairs[number % len(pairs)]
        check(f"{label} by {pair}", model, parts, sizes[:3], batch_axes=model.batch_axes())
    check("unaligned pointers", models.Matmul(n=64, k=48), pairs[0][1], [{"T": 53}], vector=4, flags=("--misalign=4",))
    h.finish()


if __name__ == "__main__":
    main()
