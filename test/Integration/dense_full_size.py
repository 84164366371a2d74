#!/usr/bin/env python3
"""Runs every family that Dense (N = 2304, K = 768) selects, at full size.

For M = T and M = 16·T, T = 1…128, on several devices: the smallest size that
each family serves, in the emulator with bounds and race checks, against the
reference. So each tile shape that is ever selected there is run, 53 among them.
"""

import json

import harness
import models

RANGES = {"M": "#ukernel.range<1 to 128>", "16M": "#ukernel.range<16 to 2048 step 16>"}


def sizes_of(manifest, step):
    """The smallest size of each family that serves the declared range."""
    sizes = {}
    for entry in manifest["workloads"][0]["dispatch"]:
        least = entry["box"][0]["min"]
        least += -least % step
        most = entry["box"][0].get("max")
        if least and (most is None or least <= most):
            sizes.setdefault(entry["family"], least)
    return sorted(set(sizes.values()) | {53})


def run(h, device, rows, transpose_b):
    model = models.Matmul(m="M", n=2304, k=768, transpose_b=transpose_b, epilogue="bias_gelu",
                          ranges={"M": RANGES[rows]}, name="dense")
    path = h.write(f"{device}_{rows}_{transpose_b}.mlir", model.text())
    result = h.tool("ftuner-translate", path, "--ftuner-to-manifest", f"--device={device}")
    if result.returncode != 0:
        return [result.stderr]
    sizes = sizes_of(json.loads(result.stdout), 16 if rows == "16M" else 1)
    # Checked runs are slow: race checks for what they can show in small sizes.
    problems = []
    for checks, chosen in ((["--check-bounds", "--check-races"], [s for s in sizes if s <= 256]),
                           ([], [s for s in sizes if s > 256])):
        if not chosen:
            continue
        result = h.tool("ftuner-run", path, "--function=dense", f"--device={device}", "--executor=emulator",
                        "--check", "--thread-order=reverse", *checks,
                        *[f"--args={model.args(M=size)}" for size in chosen])
        if result.returncode != 0:
            problems += [line for line in (result.stdout + result.stderr).splitlines() if "error:" in line]
            problems = problems or [f"exit {result.returncode}"]
    return problems


def main():
    h, _ = harness.start(__doc__)
    for device, transpose_b in (("v100", False), ("a100", False), ("h200", False), ("h200", True), ("t4", True)):
        for rows in RANGES:
            h.add(f"{device} {rows} {'NT' if transpose_b else 'NN'}", run, h, device, rows, transpose_b)
    h.finish()


if __name__ == "__main__":
    main()
