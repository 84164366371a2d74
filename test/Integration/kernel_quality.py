#!/usr/bin/env python3
"""Every kernel selected for Dense is free of spills; those for many rows are tight.

For M = T and M = 16·T, T = 1…128, N = 2304, K = 768, weights K × N and N × K, on a built-in device of every compute
capability that ptxas knows (sm_75 and newer), by the figures in the manifest: no spill, no local memory, one `.entry` for each family. For M = 16·T at T ≥ 64 on a100 and h200: at most one barrier in each
main-loop step, only 16-byte cp.async, vector loads from shared memory, vector
stores, and at least 85 % of the main loop's instructions are FMAs. Older devices
must emit PTX without cp.async. Sizes that forbid vectors must not spill either,
with operands stored either way round, nor must kernels with a
reduce axis of few steps, for which SIA chooses the smallest tiles.
Modules of the folder Inputs beside this file, products whose copies pass through registers, must not spill either:
each on one device.

The suite looks at a part. A device has M = T in one of the layouts, another one than the device before it; M = 16·T is
looked at on t4, a100 and h200, in one layout each, odd sizes on b200, and of the corners those marked so. It plans as
many kernels as by default for M = 16·T on h200, and at most six elsewhere. With `--all` everything is looked at
on every built-in device, with the default.
"""

import json
import os
import sys

import harness
import models
import ptx

RANGES = {"M": "#ukernel.range<1 to 128>", "16M": "#ukernel.range<16 to 2048 step 16>"}
TIGHT_DEVICES = ("a100", "h200")
# Where the suite looks at M = 16·T: whether the weights are N × K.
LONG = {"t4": False, "a100": False, "h200": True}
SIZES = (2304, 768)
# N and K that allow no vectors, K no whole reduce tiles.
ODD_SIZES = (4097, 770)
ODD_DEVICES = ("t4", "a100", "b200")
ODD_PART = ("b200",)
# Products with a K × M lhs, and of few steps: device, cost model, transpositions of lhs and
# rhs, M, N, K; whether the suite looks at it. Open and odd sizes of M have scalar accesses.
CORNERS = [
    ("t4", "latency", "TN", "#ukernel.range<1 to 512>", 4097, 770, True),
    ("a100", "latency", "TT", "#ukernel.range<1 to 512>", 4097, 770, True),
    ("h200", "latency", "TN", "#ukernel.range<16 to 2048 step 16>", 2304, 768, False),
    ("b200", "latency", "TT", "#ukernel.range<64 to 4096 step 64>", 770, 2304, False),
    ("rtx3090", "sia-program", "TN", "#ukernel.range<300 to 5000>", 96, 48, True),
    ("h200", "sia", "TT", "#ukernel.range<300 to 5000 step 53>", 53, 64, False),
    ("t4", "sia", "TT", "#ukernel.range<300 to 5000 step 53>", 53, 64, False),
    ("a100", "sia", "NT", "#ukernel.range<300 to 5000 step 53>", 53, 24, True),
]
TIGHT_ROWS = 16 * 64
FEW = ("--max-kernels=6",)
# Modules of the folder, and the device on which the suite looks at each.
STAGED = {
    "factors_across_k": "h100",
    "two_prologues": "a100",
    "byte_prologue": "rtx3090",
    "scaled_slices": "h200",
}
INPUTS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "Inputs")


def compile_model(h, label, device, model, *flags):
    """Returns the text of the PTX and the manifest."""
    path = h.write(label.replace(" ", "_") + ".mlir", model.text())
    return h.translate(path, f"--device={device}", *flags)


def check_staged(h, label, name, device, *flags):
    """No kernel of a module spills."""
    run = h.tool(
        "ftuner-translate",
        os.path.join(INPUTS, name + ".mlir"),
        "--ftuner-to-manifest",
        f"--device={device}",
        *flags,
    )
    if run.returncode != 0:
        raise RuntimeError(run.stderr)
    kernels = json.loads(run.stdout)["kernels"]
    problems, registers = check_resources(kernels)
    h.describe(label, f"{len(kernels)} kernels, {min(registers)} to {max(registers)} registers")
    return problems


def check_resources(kernels):
    """Spills of kernels by the figures in their manifest, and the registers of each."""
    problems, registers = [], []
    for kernel in kernels:
        used = kernel["resources"]
        if used["spill_store_bytes"] or used["spill_load_bytes"] or used["stack_bytes"]:
            problems.append(f"{kernel['entry']}: spills or stack: {used}")
        registers.append(used["registers_per_thread"])
    return problems, registers


def tight_entries(manifest):
    """Names of the kernels that serve M = 16·T with T ≥ 64."""
    program = manifest["workloads"][0]
    families = {
        entry["family"]
        for entry in program["dispatch"]
        if entry["box"][0].get("max") is None or entry["box"][0]["max"] >= TIGHT_ROWS
    }
    return {program["families"][family]["kernel"] for family in families}


def check_tight(entry):
    problems = []
    loops = entry.main_loops()
    if not loops:
        problems.append("has no main loop")
    for loop in loops:
        if loop.count(r"^(bar|barrier)\.") > 1:
            problems.append(f"{loop.count(r'^(bar|barrier)[.]')} barriers in the main loop")
        if loop.fma_share < 0.85:
            problems.append(f"{100 * loop.fma_share:.1f} % of the main loop are FMAs")
        if loop.count(r"^ld\.shared") != loop.count(r"^ld\.shared\.v[24]"):
            problems.append("scalar loads from shared memory in the main loop")
    copies = entry.count(r"^cp\.async\.c[ag]")
    if copies == 0 or copies != entry.count(
        r"^cp\.async\.cg\.shared\.global \[[^\]]*\], \[[^\]]*\], 16"
    ):
        problems.append("copies that are not cp.async of 16 bytes")
    if entry.count(r"^st\.global") != entry.count(r"^st\.global\.v[24]"):
        problems.append("scalar stores")
    return problems


def check_kernels(h, label, chip, text, manifest):
    """What holds for every kernel, and the entries of the PTX."""
    problems, registers = [], []
    if ".extern .func" in text:
        problems.append("external functions in the PTX")
    entries = ptx.entries(text)
    if sorted(e.name for e in entries) != sorted(k["entry"] for k in manifest["kernels"]):
        problems.append("entries and manifest differ")
    version = int(chip.removeprefix("sm_"))
    if version < 80 and any(e.count(r"^cp\.async") for e in entries):
        problems.append("cp.async below sm_80")
    if version >= 75:
        found, registers = check_resources(manifest["kernels"])
        problems += found
    for entry in entries:
        if entry.count(r"\.local"):
            problems.append(f"{entry.name}: local memory")
    span = f", {min(registers)} to {max(registers)} registers" if registers else ""
    h.describe(label, f"{len(entries)} kernels{span}")
    return problems, entries


def check_corner(h, label, chip, device, cost_model, transposed, rows, n, k, *flags):
    model = models.Matmul(
        m="M",
        n=n,
        k=k,
        transpose_a=transposed[0] == "T",
        transpose_b=transposed[1] == "T",
        ranges={"M": rows},
        name="f",
    )
    text, manifest = compile_model(h, label, device, model, f"--cost-model={cost_model}", *flags)
    return check_kernels(h, label, chip, text, manifest)[0]


def check_device(h, label, device, chip, rows, sizes, transpose_b, *flags):
    model = models.Matmul(
        m="M",
        n=sizes[0],
        k=sizes[1],
        transpose_b=transpose_b,
        epilogue="bias_gelu",
        ranges={"M": RANGES[rows]},
        name="dense",
    )
    text, manifest = compile_model(h, label, device, model, *flags)
    problems, entries = check_kernels(h, label, chip, text, manifest)
    if rows == "16M" and sizes == SIZES and device in TIGHT_DEVICES:
        names = tight_entries(manifest)
        if not names:
            problems.append("no kernel serves many rows")
        for entry in entries:
            if entry.name in names:
                problems += [f"{entry.name}: {p}" for p in check_tight(entry)]
    return problems


def main():
    h, options = harness.start(
        __doc__,
        {
            "--devices": {"required": True, "help": "folder of the built-in devices' JSON files"},
            "--only": {"help": "one device"},
            "--all": {
                "action": "store_true",
                "help": "every built-in device, and all modules of the folder quality on each",
            },
        },
    )
    if not ptx.find_ptxas():
        sys.exit("error: no ptxas found: run tools/setup.sh")
    devices = {}
    for file in sorted(os.listdir(options.devices)):
        if file.endswith(".json"):
            with open(os.path.join(options.devices, file)) as stream:
                spec = json.load(stream)
            devices[spec["name"]] = "sm_" + spec["compute_capability"].replace(".", "")
    if options.only:
        devices = {options.only: devices[options.only]}
    is_whole = options.all or options.only
    few = () if is_whole else FEW
    first_of = {}  # Of the devices of a chip, those with cases of their own before.
    for device in sorted(devices, key=lambda name: name not in (*TIGHT_DEVICES, *ODD_DEVICES)):
        first_of.setdefault(devices[device], device)
    looked_at = [device for device, chip in devices.items() if is_whole or device == first_of[chip]]
    for number, device in enumerate(looked_at):
        chip = devices[device]
        for rows in RANGES:
            for transpose_b in (False, True):
                part = {"M": number % 2, "16M": LONG.get(device)}[rows]
                if not is_whole and part != transpose_b:
                    continue
                label = f"{device} {rows} {'NT' if transpose_b else 'NN'}"
                flags = () if rows == "16M" and device in TIGHT_DEVICES else few
                h.add(label, check_device, h, label, device, chip, rows, SIZES, transpose_b, *flags)
        if device in (ODD_DEVICES if is_whole else ODD_PART):
            label = f"{device} M NT, odd sizes"
            h.add(label, check_device, h, label, device, chip, "M", ODD_SIZES, True, *few)
    for device, cost_model, transposed, rows, n, k, is_part in CORNERS:
        if device in devices and (is_part or is_whole):
            label = f"{device} {transposed} {n} {k} by {cost_model}"
            h.add(
                label,
                check_corner,
                h,
                label,
                devices[device],
                device,
                cost_model,
                transposed,
                rows,
                n,
                k,
                *few,
            )
    for name, device in STAGED.items():
        for other, chip in devices.items():
            if int(chip.removeprefix("sm_")) >= 75 and (options.all or other == device):
                label = f"{name} on {other}"
                h.add(label, check_staged, h, label, name, other, *few)
    h.finish()


if __name__ == "__main__":
    main()
