#!/usr/bin/env python3
"""Runs batches of matrix products in the emulator, against the reference.

linalg.batch_matmul and attention's products with batch axes in any place, axes
that one factor lacks, every extent dynamic and 0, epilogues with batch axes,
aligned and unaligned pointers. Each module must run in one kernel; with bounds
and race checks and shuffled threads. Tolerance: ftuner-run's default for f32. The
suite runs each on one of the devices, with FTUNER_TEST_SCALE above 1 on both.
"""

import json

import batches
import harness


def run(h, label, model, device, sizes, flags):
    """Compiles once and runs each of `sizes` (dicts from symbol to extent)."""
    path = h.write(label.replace(" ", "_") + ".mlir", model.text())
    result = h.tool(
        "ftuner-run",
        path,
        f"--function={model.name}",
        f"--device={device}",
        "--executor=emulator",
        "--json",
        "--check",
        "--check-bounds",
        "--check-races",
        "--thread-order=shuffled",
        *flags,
        *[f"--args={model.args(**size)}" for size in sizes],
    )
    problems = [line for line in result.stderr.splitlines() if "error:" in line][:8]
    runs = [json.loads(line) for line in result.stdout.splitlines() if line.startswith("{")]
    if result.returncode != 0 or len(runs) != len(sizes):
        problems.append(f"exit {result.returncode}, {len(runs)} of {len(sizes)} runs")
    for one, size in zip(runs, sizes):
        kernels = harness.launched(one)
        # Nothing is launched for a result without elements.
        expected = (
            0
            if any(
                model.extents[axis] in size and size[model.extents[axis]] == 0 for axis in model.out
            )
            else 1
        )
        if len(kernels) != expected or any("fallback" in kernel for kernel in kernels):
            problems.append(
                f"{one['args']}: expected {expected} launches of a workload, but got {kernels}"
            )
        problems += [
            f"{one['args']}: relative error {checked['relative_error']}"
            for checked in one["results"]
            if not checked["ok"]
        ]
    return problems


def main():
    h, options = harness.start(__doc__, {"--devices": {"default": "h200,t4"}})
    devices = options.devices.split(",")
    for number, (label, model, sizes) in enumerate(batches.group()):
        for device in harness.share(devices, number):
            h.add(f"{label} {device}", run, h, f"{label} {device}", model, device, sizes, ())
    for label, model, sizes in batches.group()[3:6]:
        h.add(
            f"{label} unaligned",
            run,
            h,
            f"{label} unaligned",
            model,
            "h200",
            sizes,
            ("--misalign=4",),
        )
    h.finish()


if __name__ == "__main__":
    main()
