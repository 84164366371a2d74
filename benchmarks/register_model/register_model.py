#!/usr/bin/env python3
"""Judges what a codegen path's model says of registers and instructions by ptxas.

Draws random kernels of the path, `simt` or `mma` (register_model.cpp beside this file), most of them near
the limit of registers, assembles them, and prints

  spills        how many kernels spill, how many of these the estimate of
                `CodegenModel::spillFreeRegisters` refuses, and how many others it refuses
  asked         how many kernels that ask for several blocks of an SM spill for it
  registers     what `BlockWork::registersPerThread` says beside what ptxas takes: how many
                blocks an SM holds by either
  least         with --least: by how many registers the estimate exceeds the least with which
                a kernel does not spill
  instructions  with --nvdisasm: what `BlockWork::otherInstructions` says beside what is
                in the main loops of the kernels with one part

Comments in lib/Codegen cite results.md beside this file, what one run printed;
measured.json, measured_mma.json and measured_mma_staged.json hold what ptxas made of the kernels. Needs ptxas (tools/setup.sh), and

  ninja -C build/release register_model
  python3 benchmarks/register_model/register_model.py --count 480

takes ten minutes on one core; after a change of the model alone, --measured takes seconds.
"""

import argparse
import concurrent.futures
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
# One device of each processor that ptxas 13 knows.
DEVICES = "t4,a100,rtx3090,l4,h200,b200"
# The instructions of SASS that multiply.
MULTIPLY = {"simt": ("FFMA",), "mma": ("HMMA", "IMMA")}
# What ptxas and nvdisasm say of a kernel.
MEASURED = ("registers", "spilled", "least", "observed_other")
# Registers to which the least are found, and the fewest that ptxas is asked for.
GRANULE, FEWEST = 4, 24


def draw(options, folder):
    """Kernels as register_model describes them, with the path of their PTX if a folder is given."""
    program = os.path.join(options.bin_dir, "register_model")
    if not os.path.exists(program):
        sys.exit(f"{program} is missing: ninja -C build/release register_model")
    run = subprocess.run(
        [
            program,
            options.path,
            options.kind,
            str(options.seed),
            str(options.count),
            folder,
            *options.devices.split(","),
        ],
        capture_output=True,
        text=True,
    )
    if run.returncode != 0:
        sys.exit(run.stderr)
    kernels = [json.loads(line) for line in run.stdout.splitlines()]
    for number, kernel in enumerate(kernels if folder else []):
        kernel["ptx"] = os.path.join(folder, f"{number}.ptx")
        with open(kernel["ptx"], encoding="utf-8") as file:
            kernel["asked"] = int(re.search(r"\.minnctapersm (\d+)", file.read()).group(1))
    return kernels


def multiplications(opcodes, path):
    return sum(opcode.split(".")[0] in MULTIPLY[path] for opcode in opcodes)


def main_loop(text, path):
    """Opcodes of the loop with the most multiplications, or None.

    text: SASS as nvdisasm prints it, branches with the names of their targets.
    """
    opcodes, labels, best = [], {}, None
    for line in text.splitlines():
        if label := re.match(r"\s*(\.L_x?_?\w+):", line):
            labels[label.group(1)] = len(opcodes)
        elif found := re.search(r"/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P\w+ )?([A-Z0-9_.]+)(.*);", line):
            opcodes.append(found.group(1))
            target = re.search(r"`\(([^)]+)\)", found.group(2))
            if opcodes[-1].startswith("BRA") and target and target.group(1) in labels:
                body = opcodes[labels[target.group(1)] :]
                if best is None or multiplications(body, path) > multiplications(best, path):
                    best = body
    return best


def spilled_with(kernel, most):
    """Whether the kernel spills where it may have so many registers."""
    with open(kernel["ptx"], encoding="utf-8") as file:
        text = re.sub(r"(\.maxntid [^\n]*)", rf"\1\n.maxnreg {most}", file.read(), count=1)
    name = f"{kernel['ptx']}.{most}"
    with open(name, "w", encoding="utf-8") as file:
        file.write(text)
    run = subprocess.run(
        ["ptxas", "-v", f"-arch={kernel['arch']}", name, "-o", os.devnull],
        capture_output=True,
        text=True,
    )
    os.remove(name)
    if run.returncode != 0:
        raise RuntimeError(f"{kernel['kernel']}: {run.stderr}")
    return int(re.search(r"(\d+) bytes spill stores", run.stderr).group(1)) > 0


def find_least(kernel):
    """Adds the least registers with which a kernel does not spill, to within GRANULE; none where it always does."""
    if kernel["spilled"]:
        return
    low, high = 0, -(-kernel["registers"] // GRANULE)
    while high - low > 1:
        middle = (low + high) // 2
        if GRANULE * middle < FEWEST or spilled_with(kernel, GRANULE * middle):
            low = middle
        else:
            high = middle
    kernel["least"] = min(GRANULE * high, kernel["registers"])


def assemble(kernel, options):
    """Adds registers, spilled bytes and, with nvdisasm, instructions that do not multiply."""
    path, nvdisasm = options.path, options.nvdisasm
    cubin = kernel["ptx"] + ".cubin"
    run = subprocess.run(
        ["ptxas", "-v", f"-arch={kernel['arch']}", kernel["ptx"], "-o", cubin],
        capture_output=True,
        text=True,
    )
    if run.returncode != 0:
        raise RuntimeError(f"{kernel['kernel']}: {run.stderr}")
    kernel["registers"] = int(re.search(r"Used (\d+) registers", run.stderr).group(1))
    kernel["spilled"] = int(re.search(r"(\d+) bytes spill stores", run.stderr).group(1))
    if nvdisasm and kernel["parts"] == 1:
        sass = subprocess.run([nvdisasm, "-c", cubin], capture_output=True, text=True).stdout
        loop = main_loop(sass, path)
        # Loops of one step are none; others are whole where they multiply as often.
        if loop and multiplications(loop, path) == kernel["multiplications"]:
            kernel["observed_other"] = len(loop) - multiplications(loop, path)
    if options.least:
        find_least(kernel)
    os.remove(cubin)
    del kernel["ptx"]


def blocks_of_registers(kernel, registers):
    """Blocks of the kernel on an SM, as far as registers decide."""
    of_warp = (registers + 7) // 8 * 256
    warps = kernel["threads"] // 32
    # Each of four schedulers has a quarter of the registers.
    of_scheduler = kernel["registers_per_sm"] // 4 // of_warp
    return min(4 * of_scheduler, kernel["max_warps"]) // warps


def report_spills(kernels):
    print("| processor | kernels | spill | of which refused | others | of which refused |")
    print("|---|---|---|---|---|---|")
    for arch in sorted({k["arch"] for k in kernels}, key=lambda a: int(a[3:])) + ["all"]:
        group = [k for k in kernels if arch in (k["arch"], "all")]
        spill = [k for k in group if k["spilled"]]
        other = [k for k in group if not k["spilled"]]
        refused = [sum(k["spill_free"] > k["limit"] for k in part) for part in (spill, other)]
        print(
            f"| {arch} | {len(group)} | {len(spill)} | {refused[0]} | {len(other)} "
            f"| {refused[1]} ({100 * refused[1] / max(len(other), 1):.0f} %) |"
        )
    missed = [k for k in kernels if k["spilled"] and k["spill_free"] <= k["limit"]]
    for kernel in missed:
        print(
            f"\nmissed: {kernel['arch']} {kernel['kernel']}: spills {kernel['spilled']} bytes, "
            f"estimate {kernel['spill_free']} of {kernel['limit']}"
        )


def report_asked(kernels):
    asked = [k for k in kernels if k.get("asked", 1) > 1 and k["spill_free"] <= k["limit"]]
    if asked:
        print(
            f"\nOf {len(asked)} legal kernels that ask for several blocks of an SM, "
            f"{sum(k['spilled'] > 0 for k in asked)} spill."
        )


def report_registers(kernels):
    fitting = [k for k in kernels if k["spill_free"] <= k["limit"]]
    pairs = [
        (blocks_of_registers(k, int(k["taken"])), blocks_of_registers(k, k["registers"]))
        for k in fitting
    ]
    right = sum(a == b for a, b in pairs)
    mean = statistics.mean(a / b for a, b in pairs if b)
    error = statistics.median(abs(k["taken"] - k["registers"]) for k in fitting)
    print(
        f"\nOf {len(fitting)} kernels that are legal, the registers that the model expects differ "
        f"by {error:.0f} in the median from those that ptxas takes; the blocks on an SM are "
        f"the same for {100 * right / len(fitting):.0f} %, their mean ratio is {mean:.2f}."
    )


def report_least(kernels):
    known = [k for k in kernels if "least" in k]
    if not known:
        return
    excess = sorted(k["spill_free"] - k["least"] for k in known)
    print(
        f"\nOf {len(known)} kernels that do not spill the estimate exceeds the least registers with which they do not "
        f"by {statistics.median(excess):.0f} in the median, {excess[len(excess) // 10]} to "
        f"{excess[-1 - len(excess) // 10]} for eight in ten, at least by {excess[0]}."
    )


def report_instructions(kernels):
    seen = [k for k in kernels if "observed_other" in k]
    if not seen:
        return
    errors = [abs(k["other"] - k["observed_other"]) for k in seen]
    ratios = sorted(k["other"] / k["observed_other"] for k in seen)
    typical = statistics.median(k["observed_other"] for k in seen)
    print(
        f"\nOf {len(seen)} main loops, instructions beside multiplications that the model expects differ by "
        f"{statistics.median(errors):.0f} of {typical:.0f} for a warp in the median; expected over "
        f"observed is {ratios[len(ratios) // 2]:.2f} in the median, "
        f"{ratios[len(ratios) // 10]:.2f} to {ratios[-1 - len(ratios) // 10]:.2f} "
        f"for eight in ten."
    )


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--bin-dir", default=os.path.join(ROOT, "build", "release", "bin"))
    parser.add_argument("--path", choices=sorted(MULTIPLY), default="simt")
    parser.add_argument(
        "--kind",
        choices=("plain", "staged", "batches"),
        default="plain",
        help="staged: most copies pass through registers (single elements, prologues), more sizes are "
        "dynamic, more factors across k, some blocks of slices of k",
    )
    parser.add_argument("--devices", default=DEVICES)
    parser.add_argument("--count", type=int, default=600)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument(
        "--least",
        action="store_true",
        help="finds the least registers with which each kernel does not spill: some five times as long",
    )
    parser.add_argument("--nvdisasm", help="path of the disassembler")
    parser.add_argument("--json", help="writes what ptxas made of every kernel here")
    parser.add_argument(
        "--measured",
        help="takes what ptxas made of the same kernels from a file "
        "that --json wrote: for changes of the model",
    )
    options = parser.parse_args()
    if options.measured:
        with open(options.measured, encoding="utf-8") as file:
            measured = json.load(file)
        options.path, options.seed, options.devices = (
            measured[name] for name in ("path", "seed", "devices")
        )
        options.kind = measured.get("kind", "plain")
        options.count = len(measured["kernels"])
        kernels = draw(options, "")
        for kernel, known in zip(kernels, measured["kernels"]):
            if kernel["kernel"] != known["kernel"]:
                sys.exit(f"{options.measured} has other kernels")
            kernel.update({name: known[name] for name in MEASURED if name in known})
    else:
        with tempfile.TemporaryDirectory() as folder:
            kernels = draw(options, folder)
            with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
                list(pool.map(lambda kernel: assemble(kernel, options), kernels))
    report_spills(kernels)
    report_asked(kernels)
    report_least(kernels)
    report_registers(kernels)
    report_instructions(kernels)
    if options.json:
        version = subprocess.run(["ptxas", "--version"], capture_output=True, text=True).stdout
        measured = [
            {name: kernel[name] for name in ("kernel", *MEASURED) if name in kernel}
            for kernel in kernels
        ]
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump(
                {
                    "ptxas": version.split("release ")[1].split(",")[0],
                    "path": options.path,
                    "kind": options.kind,
                    "seed": options.seed,
                    "devices": options.devices,
                    "kernels": measured,
                },
                file,
                indent=0,
            )
            file.write("\n")


if __name__ == "__main__":
    main()
