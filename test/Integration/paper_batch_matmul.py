#!/usr/bin/env python3
"""BatchMatmul, one of the paper's two operators, by options near the paper's text.

192 products of T × 64 and 64 × T, and of T × T and T × 64, in both layouts of the
right factor, for the paper's lengths, with tiles of its rules alone (docs/paper.md):
planned for its five devices, each length right in the emulator (with bounds and
race checks where T is small), without spills where ptxas knows the device. Plans
must have blocks of several batch elements and pairs, as the rules make them.
The suite runs each product on two of the devices, with FTUNER_TEST_SCALE above 1
on all.
"""

import json

import harness
from batches import Batched

OPTIONS = ["--preset=paper", "--main-axis=dynamic", "--paths=simt"]
DEVICES = ["v100", "k80", "a100", "rtx3090", "rtx4090"]
# Those whose architecture ptxas assembles for.
ASSEMBLED = ["a100", "rtx3090", "rtx4090"]
BATCH, WIDTH = 192, 64
# The last one breaks the step of the others: the general family serves it.
LENGTHS = [5, 24, 43, 62, 81, 100, 119, 128]
RANGE = "#ukernel.range<5 to 119 step 19>"
SMALL = 24


def products():
    """(label, model)."""
    for layout, rhs in (("nn", "bkn"), ("nt", "bnk")):
        yield (
            f"scores {layout}",
            Batched("bmk", rhs, "bmn", {"b": BATCH, "m": "T", "n": "T", "k": WIDTH}),
        )
        yield (
            f"values {layout}",
            Batched("bmk", rhs, "bmn", {"b": BATCH, "m": "T", "n": WIDTH, "k": "T"}),
        )


def families(h, source, device):
    """Those of the plan, and the resources of kernels; (families, kernels, problems)."""
    result = h.tool(
        "ftuner-translate", source, "--ftuner-to-manifest", f"--device={device}", *OPTIONS
    )
    if result.returncode != 0:
        return [], [], [result.stderr]
    manifest = json.loads(result.stdout)
    return manifest["workloads"][0]["families"], manifest["kernels"], []


def run(h, label, model, device):
    text = model.text().replace("#ukernel.range<1 to 64>", RANGE)
    source = h.write(f"{label}_{device}.mlir".replace(" ", "_"), text)
    found, kernels, problems = families(h, source, device)
    if problems:
        return problems
    tiles = [ukernel["block_tile"] for family in found for ukernel in family["ukernels"]]
    if not any(tile[3] > 1 for tile in tiles):
        problems.append(f"expected blocks of several batch elements, but got {tiles}")
    if device in ASSEMBLED:
        problems += [
            f"{kernel['entry']}: {kernel['resources']}"
            for kernel in kernels
            if not kernel["resources"] or kernel["resources"]["spill_store_bytes"] > 0
        ]
    for lengths, flags in (
        ([t for t in LENGTHS if t <= SMALL], ["--check-bounds", "--check-races"]),
        ([t for t in LENGTHS if t > SMALL], ["--check-bounds"]),
    ):
        result = h.tool(
            "ftuner-run",
            source,
            f"--function={model.name}",
            f"--device={device}",
            *OPTIONS,
            "--executor=emulator",
            "--thread-order=shuffled",
            "--check",
            "--json",
            *flags,
            *[f"--args={model.args(T=t)}" for t in lengths],
        )
        reports = [json.loads(line) for line in result.stdout.splitlines() if line.startswith("{")]
        if result.returncode != 0 or len(reports) != len(lengths):
            problems.append(
                f"exit {result.returncode}, {len(reports)} of {len(lengths)} runs: {result.stderr[-800:]}"
            )
        problems += [
            f"{report['args']}: relative error {checked['relative_error']}"
            for report in reports
            for checked in report["results"]
            if not checked["ok"]
        ]
    return problems


def main():
    h, options = harness.start(__doc__, {"--devices": {"default": ",".join(DEVICES)}})
    devices = options.devices.split(",")
    for number, (label, model) in enumerate(products()):
        chosen = (
            devices
            if harness.SCALE > 1
            else [devices[(2 * number + i) % len(devices)] for i in range(2)]
        )
        for device in chosen:
            h.add(f"{label} {device}", run, h, label, model, device)
    h.finish()


if __name__ == "__main__":
    main()
