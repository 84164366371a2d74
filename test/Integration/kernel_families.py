#!/usr/bin/env python3
"""Runs kernel families that are given, not searched, in the emulator.

Pairs of heights that follow each other and that do not, one or several threads
along m, sizes that they cover exactly and sizes that they pad, one product and
batches of them; balanced partitions for every size of a range, beside another
dynamic axis, size 0 included; fixed extents that the higher height divides. The plan is written into the module after its workload is
formed. Results are compared with the reference's on the module itself, with
bounds and race checks and shuffled threads. The suite runs each on one of the
devices, with FTUNER_TEST_SCALE above 1 on both.
"""

import json

import batches
import harness
import models

TOLERANCE = 1e-5


def family(parts, stages=2, vector=1, batch_axes=0, balanced=0, axis=0, split=1, **fields):
    """Text of a family. parts: (block tile, register tile) along m, n, k and, where a block has more than one element
    along them, batch axes, of the same threads; balanced: SMs, 0 for exact partitions; fields: of the schedule."""
    tiles = [[*tile, *[1] * (3 + batch_axes - len(tile))] for tile, _ in parts]
    threads = [size // of_thread for size, of_thread in zip(*parts[0])][:2]
    fields = {"threads": threads, "stages": stages, "vector": vector, **fields}
    schedule = ", ".join(f"{name} = {value}" for name, value in fields.items())
    return (
        f"<#ukernel.simt<{schedule}>, axis = {axis}, tiles = {tiles}"
        + (f", split = {split}" if split != 1 else "")
        + (f", balanced = {balanced}" if balanced else "")
        + ">"
    )


def form(h, name, text, plan, precision="f32", packs_for=None):
    """The module with its one workload formed and planned, its constant weights packed for a device if one is given;
    (path, problems)."""
    source = h.write(name + ".mlir", text)
    passes = [
        "--canonicalize",
        "--cse",
        "--ukernel-normalize-linalg",
        "--canonicalize",
        "--cse",
        f"--ukernel-form-workloads=precision={precision}",
    ]
    if packs_for:
        passes += [f"--ukernel-attach-device=device={packs_for}", "--ukernel-pack-weights"]
    result = h.tool("ftuner-opt", source, *passes)
    if result.returncode != 0:
        return None, [result.stderr]
    count = result.stdout.count("ukernel.workload ins")
    if count != 1:
        return None, [f"expected one workload, but got {count}"]
    if (
        packs_for
        and "\n      packed\n" not in result.stdout
        and " packed contract" not in result.stdout
    ):
        return None, ["expected packed weights"]
    head, brace, rest = result.stdout.partition("{\n  func.func")
    planned = rest.replace("ukernel.workload ins", "ukernel.workload plan(@given) ins")
    return h.write(
        name + "_planned.mlir", f"{head}{{\n  ukernel.plan @given {plan}\n  func.func{planned}"
    ), []


def run(h, label, model, families, device, sizes, flags, precision="f32", tolerance=TOLERANCE):
    """Runs every size by families[0], aligned operands or not."""
    name = label.replace(" ", "_")
    plan = (
        f"<families = [{', '.join(families)}], choices = [], general = 0, "
        f"unaligned_general = {len(families) - 1}>"
    )
    planned, problems = form(h, name, model.text(), plan, precision)
    if not planned:
        return problems
    return run_planned(
        h,
        planned,
        h.path(name + ".mlir"),
        model.name,
        device,
        [model.args(**size) for size in sizes],
        tolerance,
        flags,
    )[1]


def run_planned(h, planned, source, function, device, arguments, tolerance, flags=()):
    """Runs a planned module in the emulator with all checks, beside the reference on its source, for each of the
    arguments; (reports, problems)."""
    result = h.tool(
        "ftuner-run",
        planned,
        f"--function={function}",
        f"--device={device}",
        "--check",
        *harness.CHECKED,
        f"--reference={source}",
        f"--tolerance={tolerance}",
        *flags,
        *[f"--args={text}" for text in arguments],
    )
    problems = [line for line in result.stderr.splitlines() if "error:" in line][:8]
    reports = [json.loads(line) for line in result.stdout.splitlines() if line.startswith("{")]
    if result.returncode != 0 or len(reports) != len(arguments):
        problems.append(
            f"exit {result.returncode}, {len(reports)} of {len(arguments)} runs: {result.stderr[-800:]}"
        )
    problems += [
        f"{report['args']}: relative error {checked['relative_error']}"
        for report in reports
        for checked in report["results"]
        if not checked["ok"]
    ]
    return reports, problems


def balanced_blocks(low, high, sms, beside, rows):
    """Blocks along an axis: the most that need no more rounds of the SMs than the fewest do."""
    fewest, most = -(-rows // high), -(-rows // low)
    rounds = -(-fewest * beside // sms)
    return max(count for count in range(fewest, most + 1) if -(-count * beside // sms) <= rounds)


def run_balanced(h, label, model, parts, sms, device, sizes):
    """Runs sizes by a balanced pair: the blocks of every launch, and the results of a few."""
    given = [family(parts, balanced=sms), family(parts[-1:])]
    problems = run(h, label + " results", model, given, device, sizes[::31], ())
    name = label.replace(" ", "_")
    plan = f"<families = [{', '.join(given)}], choices = [], general = 0, unaligned_general = 1>"
    planned, errors = form(h, name, model.text(), plan)
    if not planned:
        return errors
    result = h.tool(
        "ftuner-run",
        planned,
        f"--function={model.name}",
        f"--device={device}",
        "--json",
        "--check-bounds",
        *[f"--args={model.args(**size)}" for size in sizes],
    )
    reports = [json.loads(line) for line in result.stdout.splitlines()]
    if result.returncode != 0 or len(reports) != len(sizes):
        return problems + [f"{len(reports)} of {len(sizes)} runs: {result.stderr}"]
    (low, high), wide = (part[0][0] for part in parts), parts[0][0][1]
    mixed = 0
    for size, report in zip(sizes, reports):
        rows, columns = (
            size[axis] if isinstance(axis, str) else axis for axis in (model.m, model.n)
        )
        expected = []
        if rows > 0 and columns > 0:
            beside = -(-columns // wide)
            along = balanced_blocks(low, high, sms, beside, rows)
            mixed += along * low < rows < along * high
            expected = [along * beside]
        blocks = [launch["blocks"] for launch in report["launches"]]
        if blocks != expected:
            problems.append(f"{size}: expected launches of {expected} blocks, but got {blocks}")
    if mixed == 0:
        problems.append("expected sizes that blocks of both heights cover")
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
        for device in harness.share(devices, len(h.jobs)):
            given = [family(parts, 2, vector, batch_axes)]
            if vector > 1:  # for operands that are not aligned
                given.append(family(parts[-1:], 2, 1, batch_axes))
            h.add(
                f"{label} {device}", run, h, f"{label} {device}", model, given, device, sizes, flags
            )

    pairs = list(PAIRS.items())
    for label, parts in pairs:
        check(
            label,
            models.Matmul(n=64, k=48, epilogue="bias_n"),
            parts,
            [{"T": t} for t in (0, 1, 5, 13, 28, 53, 113)],
            vector=4,
        )
        check(
            label + " odd",
            models.Matmul(n=61, k=37, transpose_b=True, epilogue="residual"),
            parts,
            [{"T": t} for t in (4, 27, 64, 150)],
        )
    for number, (label, model, sizes) in enumerate(batches.group()):
        pair, parts = pairs[number % len(pairs)]
        check(f"{label} by {pair}", model, parts, sizes[:3], batch_axes=model.batch_axes())
    # Small tiles and few SMs: several rounds in a few rows.
    low, high = PAIRS["2 and 9 of four threads"]
    for sms in (1, 5, 16):
        h.add(
            f"balanced over {sms}",
            run_balanced,
            h,
            f"balanced over {sms}",
            models.Matmul(n=61, k=17),
            (low, high),
            sms,
            "h200",
            [{"T": t} for t in range(131)],
        )
    sizes = [{"T": t, "N": n} for t in range(0, 90, 7) for n in (0, 1, 32, 33, 97)]
    for sms in (3, 7):
        h.add(
            f"balanced over {sms} beside N",
            run_balanced,
            h,
            f"balanced over {sms} beside N",
            models.Matmul(n="N", k=17),
            PAIRS["7 and 8 of one thread" if sms == 3 else "4 and 6 of two threads"],
            sms,
            "t4",
            sizes,
        )
    # The higher height divides a fixed extent, but higher blocks do not begin at its multiples: 2 · 5 + 8 covers 16.
    for sms in (0, 1, 3):
        parts = PAIRS["5 and 8 of one thread"]
        h.add(
            f"fixed rows over {sms}",
            run,
            h,
            f"fixed rows over {sms}",
            models.Matmul(m=16, n=61, k=17),
            [family(parts, balanced=sms), family(parts[-1:])],
            "h200",
            [{}],
            (),
        )
    check(
        "unaligned pointers",
        models.Matmul(n=64, k=48),
        pairs[0][1],
        [{"T": 53}],
        vector=4,
        flags=("--misalign=4",),
    )
    h.finish()


if __name__ == "__main__":
    main()
