#!/usr/bin/env python3
"""Runs every family that Dense (N = 2304, K = 768) selects, at full size.

For M = T and M = 16·T, T = 1…128, on several devices, one of them made up: for
each family the smallest size that it serves, and for a pair the smallest one
that runs both of its parts, in the emulator with bounds and race checks, against
the reference. So each tile shape that is ever selected for these is run, 53 among
them (with FTUNER_TEST_SCALE above 1; the suite has three of the ten devices and ranges, and sizes up to 256): each
size in one launch, of the kernel and with the blocks that the manifest tells.
"""

import json
import os

import harness
import models

RANGES = {"M": "#ukernel.range<1 to 128>", "16M": "#ukernel.range<16 to 2048 step 16>"}
#: Rows of the suite, and rows up to which accesses are checked there; beside those with FTUNER_TEST_SCALE above 1.
LARGEST, LARGEST_CHECKED = (256, 128) if harness.SCALE == 1 else (2048, 256)
DEVICES = os.path.join(
    os.path.dirname(os.path.abspath(__file__)), "..", "..", "lib", "Device", "devices"
)


def made_up_device(h):
    """A device that nobody built: few odd SMs, little shared memory."""
    with open(os.path.join(DEVICES, "a100.json"), encoding="utf-8") as file:
        device = json.load(file)
    device.update(
        name="made-up",
        sm_count=23,
        clock_mhz=1111,
        fp32_tflops=6.5,
        dram_gbps=333,
        shared_memory_per_sm_bytes=40960,
        shared_memory_per_block_bytes=36864,
        max_threads_per_block=512,
    )
    device.pop("source", None)
    return h.write("made_up.json", json.dumps(device))


def sizes_of(manifest, step):
    """For each family the smallest size that runs it, and that runs it whole."""
    sizes = {}
    for program in manifest["workloads"][0]["programs"]:
        if program["size"] % step == 0:
            sizes.setdefault((program["family"], False), program["size"])
            if len(program["blocks"]) == 2 and all(program["blocks"]):
                sizes.setdefault((program["family"], True), program["size"])
    return sorted(size for size in set(sizes.values()) | {53} if size <= LARGEST)


def problems_of(manifest, size, one):
    """What is wrong with a finished run of a size."""
    (workload,) = manifest["workloads"]
    (program,) = [program for program in workload["programs"] if program["size"] == size]
    family = workload["families"][program["family"]]
    # Along the axis across the one that is partitioned.
    across, extent = (1, 2304) if program["axis"] == 0 else (0, size)
    blocks = sum(program["blocks"]) * -(-extent // family["ukernels"][0]["block_tile"][across])
    expected = [(family["kernel"], blocks * family["reduce_split"])]
    launches = [(launch["kernel"], launch["blocks"]) for launch in one["launches"]]
    # A kernel of its own adds slices up, whose blocks are those of elementwise operators.
    if family["reduce_split"] != 1:
        expected += [(family["sum_kernel"], blocks) for _, blocks in launches[1:]]
        if len(expected) != 2:
            return [f"{size} rows: expected two launches, but got {launches}"]
    problems = [
        f"{size} rows: relative error {checked['relative_error']}"
        for checked in one["results"]
        if not checked["ok"]
    ]
    if launches != expected:
        problems.append(f"{size} rows: expected the launches {expected}, but got {launches}")
    return problems


def run(h, device, rows, transpose_b):
    model = models.Matmul(
        m="M",
        n=2304,
        k=768,
        transpose_b=transpose_b,
        epilogue="bias_gelu",
        ranges={"M": RANGES[rows]},
        name="dense",
    )
    label = os.path.splitext(os.path.basename(device))[0]
    path = h.write(f"{label}_{rows}_{transpose_b}.mlir", model.text())
    result = h.tool(
        "ftuner-translate",
        path,
        "--ftuner-to-manifest",
        f"--device={device}",
        environment=harness.NO_TOOLKIT,
    )
    if result.returncode != 0:
        return [result.stderr]
    manifest = json.loads(result.stdout)
    sizes = sizes_of(manifest, 16 if rows == "16M" else 1)
    # Checked runs are slow: race checks for what they can show in small sizes.
    problems = []
    for checks, chosen in (
        (["--check-bounds", "--check-races"], [s for s in sizes if s <= LARGEST_CHECKED]),
        ([], [s for s in sizes if s > LARGEST_CHECKED]),
    ):
        if not chosen:
            continue
        result = h.tool(
            "ftuner-run",
            path,
            "--function=dense",
            f"--device={device}",
            "--executor=emulator",
            "--check",
            "--thread-order=reverse",
            "--json",
            *checks,
            *[f"--args={model.args(M=size)}" for size in chosen],
        )
        problems += [line for line in result.stderr.splitlines() if "error:" in line]
        runs = [json.loads(line) for line in result.stdout.splitlines() if line.startswith("{")]
        if result.returncode != 0 or len(runs) != len(chosen):
            problems.append(f"exit {result.returncode}, {len(runs)} of {len(chosen)} runs")
        for size, one in zip(chosen, runs):
            problems += problems_of(manifest, size, one)
    return problems


def main():
    h, _ = harness.start(__doc__)
    cases = [
        ("v100", "M", False),
        ("v100", "16M", False),
        ("t4", "M", True),
        ("a100", "16M", False),
        ("rtx3090", "M", True),
        ("h200", "M", True),
        ("h200", "16M", False),
        ("orin-nano", "M", False),
        (made_up_device(h), "M", False),
        (made_up_device(h), "16M", False),
    ]
    if (
        harness.SCALE == 1
    ):  # Without ranges that others have, too, on devices with tiles that are much the same.
        part = ("t4", "M"), ("h200", "16M"), ("made_up.json", "M")
        cases = [case for case in cases if (os.path.basename(case[0]), case[1]) in part]
    for device, rows, transpose_b in cases:
        label = f"{os.path.basename(device)} {rows} {'NT' if transpose_b else 'NN'}"
        h.add(label, run, h, device, rows, transpose_b)
    h.finish()


if __name__ == "__main__":
    main()
