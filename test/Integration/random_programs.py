#!/usr/bin/env python3
"""Runs random members of what strategies search, not what they choose, in the emulator.

Of `ftuner`, `roller` and `gensor` all programs that are ranked for a shape (`top-k`), of `dietcode` the micro-kernels
that it draws and has measured without a model (`measure-log`). Products with odd extents and epilogues; each drawn
program is a family of a plan, which serves the shape that it was ranked for. The emulator's results are compared with
NumPy on fresh data, or with the reference; it fills results with 0xff bytes, and checks guard bands, bounds and races,
with threads in random order. Where there is ptxas, on a device that it knows, it must spill no register.

The suite draws --count programs of each strategy for one of the products, which take turns, and with FTUNER_TEST_SCALE
above 1 as many times more for each; --seed S draws the same again.
"""

import json
import random

import numpy

import harness
import kernel_families
import models

#: ptxas of CUDA 13 assembles from sm_75 on.
DEVICES = ("a100", "t4")
STRATEGIES = ("ftuner", "roller", "gensor", "dietcode")
#: Programs that a shape's ranking keeps, and micro-kernels that are drawn.
MOST = 4096
MICRO_KERNELS = 48
TOLERANCE = 1e-5


def cases(rng):
    """Products by label."""
    sizes = {
        "m": "M",
        "n": 8 * rng.randint(2, 24) + rng.choice([0, 4]),
        "k": 4 * rng.randint(8, 40),
    }
    ranges = {"M": "#ukernel.range<1 to 96>"}
    return {
        "nn": models.Matmul(**sizes, ranges=ranges, epilogue="bias_n"),
        "nt": models.Matmul(**sizes, ranges=ranges, transpose_b=True, epilogue="residual"),
        "tn": models.Matmul(**sizes, ranges=ranges, transpose_a=True),
    }


def text_of(program):
    """A family of the manifest as a plan has it."""
    fields = dict(program["schedule"])
    schedule = {
        "threads": [fields.pop("threads_m"), fields.pop("threads_n")],
        "stages": fields.pop("stages"),
        "vector": fields.pop("vector_width"),
    }
    schedule |= {
        name: value
        for name, value in fields.items()
        if value != (name in ("threads_batch", "threads_k"))
    }
    tiles = [ukernel["block_tile"] for ukernel in program["ukernels"]]
    return (
        f"<#ukernel.simt<{', '.join(f'{name} = {value}' for name, value in schedule.items())}>, "
        f"axis = {program['axis']}, tiles = {tiles}"
        + (f", split = {program['reduce_split']}" if program["reduce_split"] != 1 else "")
        + (f", balanced = {program['balanced_sms']}" if program.get("balanced_sms") else "")
        + ">"
    )


def members(h, path, device, strategy, seed):
    """(rows, family) of all programs that a strategy ranks, or draws; and problems."""
    name = f"{path}.{strategy}"
    flags = [f"--device={device}", f"--strategy={strategy}", "--paths=simt", f"--top-k={MOST}"]
    if strategy == "gensor":
        flags.append(f"--gensor-seed={seed}")
    if strategy == "dietcode":
        flags += [
            f"--dietcode-seed={seed}",
            "--throughput-model=none",
            f"--trials={MICRO_KERNELS}",
            "--measurer=model:latency",
            f"--measure-log={name}.jsonl",
        ]
    done = h.tool(
        "ftuner-translate",
        path,
        "--ftuner-to-manifest",
        *flags,
        "-o",
        f"{name}.json",
        environment=harness.NO_TOOLKIT,
    )
    if done.returncode != 0:
        return [], [done.stderr[-800:]]
    if strategy == "dietcode":
        with open(f"{name}.jsonl", encoding="utf-8") as file:
            drawn = [json.loads(line) for line in file]
        return [(None, line["family"]) for line in drawn], []
    with open(f"{name}.json", encoding="utf-8") as file:
        (workload,) = json.load(file)["workloads"]
    return [
        (ranking["shape"][0], program)
        for ranking in workload["rankings"]
        for program in ranking["programs"]
    ], []


def choose(rng, model, found, count):
    """Of so many different programs the texts, each with rows that it is ranked for."""
    found = list(found)
    rng.shuffle(found)
    chosen = {}
    for rows, program in found:
        if len(chosen) == count:
            break
        # Vectors of a transposed factor lie along its rows.
        rows = rows or rng.randint(1, 96)
        chosen.setdefault(text_of(program), -(-rows // 4) * 4 if model.transpose_a else rows)
    return [(rows, text) for text, rows in chosen.items()]


def data(rng, model, rows):
    """Arrays of the arguments, in order, and the result by NumPy in double precision."""
    sizes = {"M": rows}
    arrays = {
        name: numpy.array(
            rng.standard_normal([sizes.get(extent, extent) for extent in extents]), numpy.float32
        )
        for name, extents in model.operands()
    }
    a, b = (
        array.astype(numpy.float64).T if is_transposed else array.astype(numpy.float64)
        for array, is_transposed in (
            (arrays["a"], model.transpose_a),
            (arrays["b"], model.transpose_b),
        )
    )
    result = a @ b
    if "x" in arrays:
        result = result + arrays["x"]
    if "y" in arrays:
        result = result + arrays["y"]
    return arrays, result


def run(h, strategy, label, device, count, seed):
    """Draws programs of a strategy for a product, and runs each."""
    rng = random.Random(f"{seed} {strategy} {label}")
    model = cases(rng)[label]
    name = f"{strategy}_{label}_{device}"
    path = h.write(f"{name}.mlir", model.text())
    found, problems = members(h, path, device, strategy, rng.randrange(1_000_000))
    drawn = choose(rng, model, found, count)
    if problems or not drawn:
        return problems + [f"expected programs of {strategy}, but got {len(found)}"]
    # Sizes of a program's own; what no alignment serves is a kernel of single elements.
    families = [text for _, text in drawn]
    plain = kernel_families.family([((8, 64, 8), (4, 4, 1))], stages=2)
    for number, (rows, text) in enumerate(drawn):
        plan = f"<families = [{text}, {plain}], choices = [], general = 0, unaligned_general = 1>"
        planned, errors = kernel_families.form(h, f"{name}_{number}", model.text(), plan)
        if not planned:
            problems += [f"{text}: {error}" for error in errors]
            continue
        arrays, expected = data(numpy.random.default_rng([seed, number]), model, rows)
        arguments = []
        for argument, array in arrays.items():
            file = h.path(f"{name}_{number}_{argument}.npy")
            numpy.save(file, array)
            arguments.append(f"{'x'.join(map(str, array.shape))}xf32@{file}")
        folder = h.path(f"{name}_{number}")
        done = h.tool(
            "ftuner-run",
            planned,
            f"--function={model.name}",
            f"--device={device}",
            *harness.CHECKED,
            f"--args={','.join(arguments)}",
            f"--save-dir={folder}",
        )
        report, errors = harness.report_of(done)
        if not report:
            problems += [f"{text}, {rows} rows: {error}" for error in errors]
            continue
        launches = harness.launched(report)
        if len(launches) != 1 or not launches[0].endswith("k0"):
            problems.append(
                f"{text}, {rows} rows: expected a launch of the drawn program, but got {launches}"
            )
        result = numpy.load(f"{folder}/result0.npy").astype(numpy.float64)
        error = numpy.linalg.norm(result - expected) / numpy.linalg.norm(expected)
        if not error <= TOLERANCE:
            problems.append(f"{text}, {rows} rows: relative error {error}")
    return problems + spills(h, name, model, device, families, plain)


def spills(h, name, model, device, families, plain):
    """Problems where ptxas spills registers of a kernel of wide accesses."""
    # Families that serve no size have no kernel.
    choices = ", ".join(
        f"<[<{1 + number} to {1 + number}>, <{model.n} to {model.n}>, <{model.k} to {model.k}>] to {number}>"
        for number in range(len(families))
    )
    plan = (
        f"<families = [{', '.join([*families, plain])}], choices = [{choices}], general = {len(families)}, "
        f"unaligned_general = {len(families)}>"
    )
    planned, problems = kernel_families.form(h, f"{name}_all", model.text(), plan)
    if not planned:
        return problems
    done = h.tool("ftuner-translate", planned, "--ftuner-to-manifest", f"--device={device}")
    if done.returncode != 0:
        return [done.stderr[-800:]]
    kernels = json.loads(done.stdout)["kernels"]
    if len(kernels) < len(families):
        problems.append(
            f"expected a kernel for each of {len(families)} programs, but got {len(kernels)}"
        )
    for kernel in kernels:
        resources = kernel.get("resources")
        if resources and resources["spill_store_bytes"]:
            of = [[*families, plain][use["family"]] for use in kernel["workloads"]]
            problems.append(f"{', '.join(of)}: spills: {resources}")
    return problems


def main():
    h, options = harness.start(
        __doc__,
        {"--count": {"type": int, "default": 3}, "--seed": {"type": int, "default": harness.SEED}},
    )
    labels = list(cases(random.Random(0)))
    for turn, strategy in enumerate(STRATEGIES, options.seed):
        for number, label in enumerate(harness.share(labels, turn)):
            for device in harness.share(DEVICES, turn // len(labels) + number):
                h.add(
                    f"{strategy} {label} {device}",
                    run,
                    h,
                    strategy,
                    label,
                    device,
                    options.count * harness.SCALE,
                    options.seed,
                )
    h.finish()


if __name__ == "__main__":
    main()
