#!/usr/bin/env python3
"""Runs families of rows that are given, not searched, in the emulator, against NumPy in float64.

Softmax, a norm with a residual, weights, a bias of each row and statistics, a norm whose statistics are in f64, sums
with extremes, and an extreme with its position, of f32, f16 and bf16; rows along memory and across it, of two and three dimensions; few lanes and several
warps, slices that blocks share out, rows one after the other in a loop; held in part, whole or not at all; wide accesses and single elements; static and
dynamic lengths. Bounds and races are checked, threads run in random order, some addresses are off their alignment.

All families give the same bits, and so does one row by itself. Some count what they move through memory: as many bytes
as operands and passes have, within 2 %, and no bank conflicts. FTUNER_TEST_SCALE above 1 runs every combination.
"""

import itertools
import json
import math
import os
import re

import numpy

import harness

LENGTHS = (0, 1, 2, 31, 32, 33, 64, 127, 300, 768, 1031, 4097)
LONG = (50257, 131077)
TOLERANCE = {"f32": 2e-6, "f16": 1e-3, "bf16": 8e-3}
BYTES = {"f32": 4, "f16": 2, "bf16": 2}
MOST_REGISTERS = 64
# With elements in f64 beside those that are held.
MOST_DOUBLE_REGISTERS = 96
# Of bytes moved, relatively; of rows that begin within sectors of memory, more.
BYTES_OFF, SECTORS_OFF = 0.02, 0.15


def rounded(array, kind):
    """The values of an array in an element type, as float64."""
    if kind == "bf16":
        bits = array.astype(numpy.float32).view(numpy.uint32)
        bits = (bits + 0x7FFF + ((bits >> 16) & 1)) & 0xFFFF0000
        return bits.astype(numpy.uint32).view(numpy.float32).astype(numpy.float64)
    return array.astype({"f32": numpy.float32, "f16": numpy.float16}[kind]).astype(numpy.float64)


def stored(values, kind):
    """An array as .npy files have it."""
    if kind == "bf16":
        return (values.astype(numpy.float32).view(numpy.uint32) >> 16).astype(numpy.uint16)
    return values.astype({"f32": numpy.float32, "f16": numpy.float16}[kind])


def loaded(array, kind):
    if kind == "bf16" and array.dtype == numpy.uint16:
        return (array.astype(numpy.uint32) << 16).view(numpy.float32).astype(numpy.float64)
    return array.astype(numpy.float64)


class Case:
    """One operator: its kind, the order of its tensors, its type, and whether it knows the length of rows."""

    def __init__(self, kind, order, element, length=None):
        self.kind, self.order, self.element, self.length = kind, order, element, length
        self.is_across = order.index("r") + 1 < len(order)
        self.space = sorted(set(order) - {"r"})

    def __str__(self):
        return f"{self.kind} {''.join(self.order)} {self.element} {self.length or 'any'}"

    # The module.

    def operands(self):
        """(name, axes, element type) of inputs, then of outputs."""
        x = self.element
        if self.kind == "softmax":
            return [("x", self.order, x)], [("y", self.order, x)]
        if self.kind == "norm":
            return (
                [
                    ("x", self.order, x),
                    ("z", self.order, x),
                    ("w", "r", x),
                    ("b", self.space, "f32"),
                ],
                [("s", self.space, "f32"), ("t", self.order, x), ("y", self.order, x)],
            )
        if self.kind == "variance":
            return [("x", self.order, x)], [("s", self.space, "f32"), ("y", self.order, x)]
        if self.kind == "argmax":
            return [("x", self.order, x)], [("h", self.space, "f32"), ("p", self.space, "i32")]
        return [("x", self.order, x)], [("s", self.space, "f32"), ("h", self.space, "f32")]

    def module(self, plans, calls):
        """Computes each of so many calls, each of operands of its own, by each of the plans."""
        loops = [*self.space, "r"]
        size = {"r": str(self.length or "?")}
        inputs, outputs = self.operands()

        def tensor(axes, element):
            return f"tensor<{'x'.join([*(size.get(axis, '?') for axis in axes), element])}>"

        def map_of(axes):
            return f"affine_map<({', '.join(loops)}) -> ({', '.join(axes)})>"

        arguments = [f"%a_{name}: {element}" for name, _, element in inputs]
        of_rows = [text for text, (_, axes, _) in zip(arguments, inputs) if "r" not in axes]

        results_of = {"argmax": ("f32", "i32"), "variance": ("f64", "f64")}.get(
            self.kind, ("f32", "f32")
        )

        def region(number, is_reduction, lines, values, types, arguments=arguments):
            accumulators = [f"%r{index}: {results_of[index]}" for index in range(number)]
            if is_reduction:
                accumulators.append(f"%acc: {results_of[number]}")
            body = "\n      ".join(
                [
                    *lines,
                    f"ukernel.yield {', '.join(values)} : {', '.join(types)}"
                    if values
                    else "ukernel.yield",
                ]
            )
            return f"{{\n    ^bb0({', '.join([*arguments, *accumulators])}):\n      {body}\n    }}"

        wide, x = [], "%a_x"
        if self.element != "f32":
            wide.append(f"%x32 = arith.extf %a_x : {self.element} to f32")
            x = "%x32"

        def narrow(name, value):
            if self.element == "f32":
                return [], value
            return [f"%{name} = arith.truncf {value} : f32 to {self.element}"], f"%{name}"

        if self.kind == "softmax":
            exponent = [*wide, f"%e0 = arith.subf {x}, %r0 : f32", "%e = math.exp %e0 : f32"]
            reductions = [
                region(0, True, [*wide, f"%n = arith.maximumf %acc, {x} : f32"], ["%n"], ["f32"]),
                region(1, True, [*exponent, "%n = arith.addf %acc, %e : f32"], ["%n"], ["f32"]),
            ]
            lines_, y = narrow("y16", "%y")
            values = region(2, False, [], [], [], of_rows)
            mapped = region(
                2, False, [*exponent, "%y = arith.divf %e, %r1 : f32", *lines_], [y], [self.element]
            )
        elif self.kind == "norm":
            if self.element == "f32":
                wide = ["%v = arith.addf %a_x, %a_z : f32"]
            else:
                wide = [
                    f"%v16 = arith.addf %a_x, %a_z : {self.element}",
                    f"%v = arith.extf %v16 : {self.element} to f32",
                ]
            # The sum of squares behind the sum: Σ (v − s/64)², a dependence as a norm's.
            centred = [
                *wide,
                "%k = arith.constant 0.015625 : f32",
                "%m = arith.mulf %r0, %k : f32",
                "%d = arith.subf %v, %m : f32",
            ]
            reductions = [
                region(0, True, [*wide, "%n = arith.addf %acc, %v : f32"], ["%n"], ["f32"]),
                region(
                    1,
                    True,
                    [*centred, "%p = arith.mulf %d, %d : f32", "%n = arith.addf %acc, %p : f32"],
                    ["%n"],
                    ["f32"],
                ),
            ]
            scale = [
                "%one = arith.constant 1.0 : f32",
                "%q = arith.addf %r1, %one : f32",
                "%i = math.rsqrt %q : f32",
            ]
            values = region(2, False, scale, ["%i"], ["f32"], of_rows)
            weight = (
                ([], "%a_w")
                if self.element == "f32"
                else ([f"%w32 = arith.extf %a_w : {self.element} to f32"], "%w32")
            )
            lines_, y = narrow("y16", "%y")
            mapped = region(
                2,
                False,
                [
                    *centred,
                    *scale,
                    *weight[0],
                    "%f = arith.mulf %d, %i : f32",
                    f"%g = arith.mulf %f, {weight[1]} : f32",
                    "%y = arith.addf %g, %a_b : f32",
                    *lines_,
                ],
                ["%v" if self.element == "f32" else "%v16", y],
                [self.element] * 2,
            )
        elif self.kind == "variance":
            wide = [f"%v = arith.extf %a_x : {self.element} to f64"]
            centred = [
                *wide,
                "%k = arith.constant 0.015625 : f64",
                "%m = arith.mulf %r0, %k : f64",
                "%d = arith.subf %v, %m : f64",
            ]
            reductions = [
                region(0, True, [*wide, "%n = arith.addf %acc, %v : f64"], ["%n"], ["f64"]),
                region(
                    1,
                    True,
                    [*centred, "%p = arith.mulf %d, %d : f64", "%n = arith.addf %acc, %p : f64"],
                    ["%n"],
                    ["f64"],
                ),
            ]
            scale = [
                "%one = arith.constant 1.0 : f64",
                "%q = arith.addf %r1, %one : f64",
                "%q32 = arith.truncf %q : f64 to f32",
                "%i = math.rsqrt %q32 : f32",
            ]
            values = region(2, False, scale, ["%i"], ["f32"], of_rows)
            lines_, y = narrow("y16", "%y")
            mapped = region(
                2,
                False,
                [
                    *centred,
                    *scale,
                    "%d32 = arith.truncf %d : f64 to f32",
                    "%y = arith.mulf %d32, %i : f32",
                    *lines_,
                ],
                [y],
                [self.element],
            )
        elif self.kind == "argmax":
            # The first position of the extreme.
            position = [
                *wide,
                f"%at = ukernel.index {len(self.space)}",
                "%i = arith.index_cast %at : index to i32",
                "%none = arith.constant 2147483647 : i32",
                f"%is = arith.cmpf oeq, {x}, %r0 : f32",
                "%own = arith.select %is, %i, %none : i32",
                "%n = arith.minsi %acc, %own : i32",
            ]
            reductions = [
                region(0, True, [*wide, f"%n = arith.maximumf %acc, {x} : f32"], ["%n"], ["f32"]),
                region(1, True, position, ["%n"], ["i32"]),
            ]
            values = region(2, False, [], ["%r0", "%r1"], ["f32", "i32"], of_rows)
            mapped = region(2, False, [], [], [])
        else:
            reductions = [
                region(0, True, [*wide, f"%n = arith.addf %acc, {x} : f32"], ["%n"], ["f32"]),
                region(1, True, [*wide, f"%n = arith.maximumf %acc, {x} : f32"], ["%n"], ["f32"]),
            ]
            values = region(2, False, [], ["%r0", "%r1"], ["f32", "f32"], of_rows)
            mapped = region(2, False, [], [], [])
        maps = ", ".join(map_of(axes) for _, axes, _ in inputs + outputs)
        types = [tensor(axes, element) for _, axes, element in outputs]
        ranges = ", ".join(
            ["#ukernel.range<0 to ?>"] * len(self.space)
            + [
                f"#ukernel.range<{self.length} to {self.length}>"
                if self.length
                else "#ukernel.range<0 to ?>"
            ]
        )
        parameters, lines, results = [], [], []
        for call in range(calls):
            parameters += [
                f"%{name}{call}: {tensor(axes, element)}" for name, axes, element in inputs
            ]
            for number, axis in enumerate(self.order):
                lines.append(f"%c{call}_{axis} = arith.constant {number} : index")
                lines.append(
                    f"%d{call}_{axis} = tensor.dim %x{call}, %c{call}_{axis} : {tensor(self.order, self.element)}"
                )
            for number in range(len(plans)):
                for name, axes, element in outputs:
                    dynamic = ", ".join(
                        f"%d{call}_{axis}" for axis in axes if size.get(axis, "?") == "?"
                    )
                    lines.append(
                        f"%o{call}_{number}_{name} = tensor.empty({dynamic}) : {tensor(axes, element)}"
                    )
                result = f"%v{call}_{number}"
                lines.append(
                    f"{result}{f':{len(outputs)}' if len(outputs) > 1 else ''} = ukernel.row_reduction plan(@given{number}) "
                    f"ins({', '.join(f'%{name}{call}' for name, _, _ in inputs)} : "
                    f"{', '.join(tensor(axes, element) for _, axes, element in inputs)}) "
                    f"outs({', '.join(f'%o{call}_{number}_{name}' for name, _, _ in outputs)} : {', '.join(types)}) "
                    f"maps = [{maps}] ranges = [{ranges}] reduce {', '.join(reductions)} values {values} "
                    f"map {mapped} -> {', '.join(types)}"
                )
                results += (
                    [f"{result}#{index}" for index in range(len(outputs))]
                    if len(outputs) > 1
                    else [result]
                )
        body = "\n    ".join(lines)
        given = "\n  ".join(
            f"ukernel.plan @given{number} {plan}" for number, plan in enumerate(plans)
        )
        all_types = ", ".join(types * (calls * len(plans)))
        return f"""module {{
  {given}
  func.func @f({", ".join(parameters)}) -> ({all_types}) {{
    {body}
    return {", ".join(results)} : {all_types}
  }}
}}
"""

    # Data.

    def sizes(self, rows, length):
        return dict(zip(self.space, (rows, 3, 2))) | {"r": length}

    def data(self, rng, rows, length):
        sizes = self.sizes(rows, length)
        return {
            name: rounded(rng.standard_normal([sizes[axis] for axis in axes]), element)
            for name, axes, element in self.operands()[0]
        }

    def reference(self, data):
        """The outputs in float64, rounded where the program rounds what it reads again."""
        loops = [*self.space, "r"]

        def along(name):
            """An input with all loops, rows last."""
            axes = next(axes for other, axes, _ in self.operands()[0] if other == name)
            array = data[name].transpose([axes.index(axis) for axis in loops if axis in axes])
            return array.reshape(
                [
                    array.shape[sorted(axes, key=loops.index).index(axis)] if axis in axes else 1
                    for axis in loops
                ]
            )

        def ordered(array):
            return array.transpose([loops.index(axis) for axis in self.order])

        x = along("x")
        if self.kind == "softmax":
            if not x.shape[-1]:
                return [ordered(x)]
            e = numpy.exp(x - x.max(-1, keepdims=True))
            return [ordered(e / e.sum(-1, keepdims=True))]
        if self.kind == "norm":
            v = rounded(x + along("z"), self.element)
            d = v - v.sum(-1, keepdims=True) / 64
            i = 1 / numpy.sqrt((d * d).sum(-1, keepdims=True) + 1)
            return [i[..., 0], ordered(v), ordered(d * i * along("w") + along("b"))]
        if self.kind == "variance":
            d = x - x.sum(-1, keepdims=True) / 64
            i = 1 / numpy.sqrt((d * d).sum(-1, keepdims=True) + 1)
            return [i[..., 0], ordered(d * i)]
        largest = x.max(-1, initial=-numpy.inf)
        if self.kind == "argmax":
            return [largest, x.argmax(-1) if x.shape[-1] else numpy.full(largest.shape, 2**31 - 1)]
        return [x.sum(-1), largest]

    # Families.

    def place(self):
        return min(16 // BYTES[self.element], 8)

    def families(self):
        """(schedule as text, block tile) of every way to lay a row out."""
        unit = self.place()
        found = []
        along = [axes for _, axes, _ in self.operands()[0] if "r" in axes]
        wide = unit * BYTES[self.element]

        def add(rows, lane_rows, lanes, warps, held, access, slices=1, loop=1):
            # A loop holds the next row, too, but what rows share once.
            # Without one, what rows share may be loaded behind the reductions.
            inputs = sum(
                2 if axes != "r" and loop > 1 else axes != "r" or loop > 1 for axes in along
            )
            elements = lane_rows if self.is_across else unit
            registers = held * inputs * -(-BYTES[self.element] * elements // 4)
            if self.kind == "variance":
                if registers + 2 * held * elements > MOST_DOUBLE_REGISTERS:
                    return
            elif registers > MOST_REGISTERS:
                return
            tile = [1] * len(self.space) + [8 if self.is_across else 32 * unit * warps]
            axis = self.space.index(self.order[-1]) if self.is_across else 0
            tile[axis] = rows * loop
            looped = f", row_loop = {loop}" if loop > 1 else ""
            text = (
                f"<#ukernel.rows<rows = {rows * loop}, lane_rows = {lane_rows}, lanes = {lanes}, warps = {warps}, "
                f"held_units = {held}, access = {access}{looped}>, axis = {axis}, tiles = [{tile}], "
                f"reduce = [{len(self.space)}]{f', split = {slices}' if slices > 1 else ''}>"
            )
            found.append((text, access))

        accesses = (1, wide // 2, wide) if wide // 2 >= 2 * BYTES[self.element] else (1, wide)
        if self.is_across:
            for warps, held, lanes in itertools.product((1, 2, 8), (0, 1, 4, 8, 16), (32, 64)):
                if held > 8 // warps and held % (8 // warps):
                    continue
                for access in accesses:
                    lane_rows = max(access // BYTES[self.element], 1)
                    add(lanes * lane_rows, lane_rows, 1, warps, held, access)
            for (warps, slices), held, access in itertools.product(
                ((1, 2), (1, 8), (2, 4), (4, 2)), (0, 16), accesses
            ):
                lane_rows = max(access // BYTES[self.element], 1)
                add(32 * lane_rows, lane_rows, 1, warps, held, access, slices)
            for warps, held, loop in itertools.product((1, 8), (0, 8), (2, 4)):
                for access in (1, wide):
                    lane_rows = max(access // BYTES[self.element], 1)
                    add(32 * lane_rows, lane_rows, 1, warps, held, access, loop=loop)
            return found
        for lanes, held in itertools.product((1, 2, 4, 8, 16, 32), (0, 1, 2, 8, 32)):
            if held > 32 // lanes and held % (32 // lanes):
                continue
            for access, threads in zip(accesses, (32, 64, 128)):
                add(threads // lanes, 1, lanes, 1, held, access)
        for warps, held, rows in itertools.product((2, 4, 16), (0, 1, 3), (1, 2)):
            for access in accesses[::2] if len(accesses) > 2 else accesses:
                if rows * warps <= 16:
                    add(rows, 1, 32, warps, held, access)
        for (warps, slices), held, rows in itertools.product(
            ((1, 2), (1, 32), (2, 16), (4, 2), (8, 4), (1, 64), (4, 32), (8, 128)),
            (0, 3, 16),
            (1, 2),
        ):
            for access in accesses[::2] if len(accesses) > 2 else accesses:
                add(rows, 1, 32, warps, held, access, slices)
        for (rows, lanes, warps), held, loop in itertools.product(
            ((8, 4, 1), (2, 32, 1), (1, 32, 4), (2, 32, 4), (1, 32, 16)), (0, 1, 2, 8), (2, 4, 16)
        ):
            if held <= 32 // lanes or held % (32 // lanes) == 0:
                for access in (1, wide):
                    add(rows, 1, lanes, warps, held, access, loop=loop)
        return found


def run(tests, case, device, families, lengths, number=0):
    """The case by some families: right, and all of the same bits."""
    seed = harness.next_seed()
    rng = numpy.random.default_rng(seed)
    # Other families of the case run beside these.
    name = str(case).replace(" ", "_") + f"_{device}_{seed[-1]}"
    inputs, outputs = case.operands()
    arguments, expected, shapes = [], [], []
    for length, rows in itertools.product(lengths, (1, 5)):
        if rows == 1:
            several = case.data(rng, 5, length)
        data = (
            several
            if rows == 5
            else {
                array: values.take([0], axes.index(case.space[0]))
                if case.space[0] in axes
                else values
                for (array, axes, _), values in zip(inputs, several.values())
            }
        )
        texts = []
        for array, axes, element in inputs:
            path = tests.path(f"{name}_{rows}_{length}_{array}.npy")
            numpy.save(path, stored(data[array], element))
            texts.append(f"{'x'.join([*map(str, data[array].shape), element])}@{path}")
        arguments.append(",".join(texts))
        shapes.append(f"{rows} rows of {length}")
        expected.append(case.reference(data))
    # Operands that accesses do not fit go by the single elements of the last one.
    single = next(text for text, access in case.families() if access == 1)
    plans = [
        f"<families = [{text}{f', {single}' if access > 1 else ''}], choices = [], general = 0, "
        f"unaligned_general = {int(access > 1)}>"
        for text, access in families
    ]
    folder = tests.path(name)
    flags = ["--misalign=4"] if rng.random() < 0.3 else []
    result = tests.tool(
        "ftuner-run",
        tests.write(f"{name}.mlir", case.module(plans, len(arguments))),
        "--function=f",
        f"--device={device}",
        *harness.CHECKED,
        f"--save-dir={folder}",
        *flags,
        f"--args={','.join(arguments)}",
    )
    if result.returncode != 0:
        return [result.stderr[-1200:]]
    problems, bits, count = [], {}, len(outputs)
    for file, (index, (family, _), output) in enumerate(
        itertools.product(range(len(expected)), families, range(count))
    ):
        value, kind = expected[index][output], outputs[output][2]
        array = numpy.load(os.path.join(folder, f"result{file}.npy"))
        got = loaded(array, kind)
        finite = numpy.isfinite(value)
        # A sum of numbers of both signs may come close to 0; its error is that of a sum as large as they make it.
        least = math.sqrt(length) if case.kind == "sums" else 1e-30
        error = (
            numpy.linalg.norm(got[finite] - value[finite])
            / max(numpy.linalg.norm(value[finite]), least)
            if value.size
            else 0
        )
        limit = TOLERANCE[case.element if kind != "f32" or case.kind != "sums" else "f32"]
        if got.shape != value.shape or not error <= limit or (got[~finite] != value[~finite]).any():
            problems.append(f"{family}: {shapes[index]}, result {output}: error {error}")
        if bits.setdefault((index, output), array).tobytes() != array.tobytes():
            problems.append(
                f"{family}: {shapes[index]}: other bits than {families[0][0]} in result {output}"
            )
    # A row by itself is computed as it is among others.
    for index in range(0, len(expected), 2):
        for output, (_, axes, _) in enumerate(outputs):
            axis = axes.index(case.space[0])
            if bits[index, output].tobytes() != bits[index + 1, output].take([0], axis).tobytes():
                problems.append(f"{shapes[index]}: other bits than among five rows")
    return problems[:6]


def run_counters(tests, case, families, rows, length, off=BYTES_OFF):
    """Each family moves the bytes that the operands and the passes over them have, at most so much more by the sectors
    of its accesses, and exchanges without bank conflicts. Operands that rows share are read once by a group of lanes
    with a loop, else for each row."""
    inputs, outputs = case.operands()
    sizes = case.sizes(rows, length)
    problems = []

    def bytes_of(axes, element):
        return BYTES[element] * math.prod(sizes[axis] for axis in axes)

    for number, (family, access) in enumerate(families):
        plan = f"<families = [{family}], choices = [], general = 0, unaligned_general = 0>"
        if access > 1:
            single = next(text for text, other in case.families() if other == 1)
            plan = f"<families = [{family}, {single}], choices = [], general = 0, unaligned_general = 1>"
        fields = {name: int(value) for name, value in re.findall(r"(\w+) = (\d+)", family)}
        if "split" in fields:
            # Several launches, each with a pass and numbers of its own.
            continue
        loop = fields.get("row_loop", 1)
        unit = case.place() if not case.is_across else 1
        held = fields["held_units"] * (
            fields["warps"] if case.is_across else fields["lanes"] * unit * fields["warps"]
        )
        is_held = held >= length
        passes = 1 if is_held else {"softmax": 3, "norm": 3, "variance": 3, "sums": 2}[case.kind]
        reads = 0
        for _, axes, element in inputs:
            if "r" not in axes:
                # Every warp has a sector of 32 bytes of each row, in a loop also of the one behind the last.
                ahead = loop + 1 if loop > 1 and is_held else loop
                reads += 32 * fields["warps"] * rows // loop * ahead
                continue
            again = 1
            if axes == "r":
                # By groups of lanes that have rows, each for one row or all of its rows.
                at_once = fields["rows"] // loop
                again = (
                    -(-rows // fields["rows"]) * min(at_once, rows)
                    if loop > 1 and is_held
                    else rows
                )
            reads += (
                again * bytes_of(axes, element) * (1 if axes == "r" and not is_held else passes)
            )
        writes = sum(bytes_of(axes, element) for _, axes, element in outputs)
        texts = ",".join(
            "x".join([*(str(sizes[axis]) for axis in axes), element]) for _, axes, element in inputs
        )
        name = f"counters_{str(case).replace(chr(32), chr(95))}_{length}_{number}.mlir"
        result = tests.tool(
            "ftuner-run",
            tests.write(name, case.module([plan], 1)),
            "--function=f",
            "--device=a100",
            "--executor=emulator",
            "--counters",
            "--json",
            f"--args={texts}",
        )
        if result.returncode != 0:
            return [result.stderr[-1200:]]
        counters = json.loads(result.stdout)["counters"][0]
        requests = counters["requests"]
        for kind, counted, expected in (
            ("loads", 32 * requests["global_load"]["sectors"], reads),
            ("stores", requests["global_store"]["bytes"], writes),
            ("sectors stored", 32 * requests["global_store"]["sectors"], writes),
        ):
            # Values of rows are stored by one lane each.
            if kind == "sectors stored" and not any("r" in axes for _, axes, _ in outputs):
                continue
            if not -BYTES_OFF <= counted / expected - 1 <= off:
                problems.append(f"{family}: {kind} of {counted} bytes, expected {expected}")
        if counters["bank_conflicts"]:
            problems.append(f"{family}: {counters['bank_conflicts']} bank conflicts")
    return problems


def main():
    tests, _ = harness.start(__doc__)
    for kind, element in (
        ("softmax", "f32"),
        ("norm", "f16"),
        ("sums", "f32"),
        ("variance", "f32"),
    ):
        case = Case(kind, "mr", element)
        some = [
            family for family in case.families() if family[1] == 16 and "lanes = 32" in family[0]
        ]
        every = 24 if harness.SCALE == 1 else 3
        tests.add(f"bytes of {case}", run_counters, tests, case, some[::every], 32, 1024)
        single = [
            family for family in case.families() if family[1] == 1 and "lanes = 32" in family[0]
        ]
        tests.add(
            f"bytes of single elements, {case}",
            run_counters,
            tests,
            case,
            single[::every],
            32,
            1001,
            SECTORS_OFF,
        )
    kinds = ("softmax", "norm", "sums", "argmax", "variance")
    orders = ("mr", "mnr", "rm", "mrn")
    elements = ("f32", "f16", "bf16")
    rng = numpy.random.default_rng(harness.SEED)
    for number, (kind, order, element) in enumerate(itertools.product(kinds, orders, elements)):
        length = None if number % 3 else (33, 768, 1031)[number // 3 % 3]
        case = Case(kind, order, element, length)
        families = case.families()
        lengths = [length] if length else list(LENGTHS)
        if harness.SCALE == 1:
            # Of each kind and order one type, another one with each seed.
            if number % 3 != (number // 3 + harness.SEED) % 3:
                continue
            sliced = [family for family in families if "split" in family[0]]
            looped = [family for family in families if "row_loop" in family[0]]
            plain = [family for family in families if family not in sliced and family not in looped]
            families = [some[rng.integers(len(some))] for some in (plain, sliced, looped)]
            if not length:
                # A short and a long one; the longest with one dimension of rows, of which there are fewer.
                lengths = [
                    int(rng.choice(LENGTHS[:7])),
                    int(rng.choice(LENGTHS[7:] if order == "mr" else LENGTHS[7:-1])),
                ]
        device = ("v100", "a100", "h200")[number % 3]
        # The first family stands beside all others.
        for first in range(1, len(families), 15):
            tests.add(
                f"{case} {device} {first}",
                run,
                tests,
                case,
                device,
                [families[0], *families[first : first + 15]],
                lengths,
            )
    for kind, element, length in (
        ("softmax", "f32", LONG[0]),
        ("norm", "f16", LONG[0]),
        ("sums", "f32", LONG[1]),
        ("argmax", "f16", LONG[0]),
        ("norm", "f32", LONG[1]),
        ("variance", "f32", LONG[0]),
    ):
        case = Case(kind, "mr", element)
        whole = next(
            text for text in case.families() if "warps = 16" in text[0] and "rows = 1," in text[0]
        )
        # Slices of slots, and of segments.
        of_slots, of_segments = (
            [family for family in case.families() if re.search(f"split = ({splits})>", family[0])]
            for splits in ("32|4", "64|128")
        )
        some = [*of_slots, *of_segments] if harness.SCALE > 1 else [of_slots[-1], of_segments[-1]]
        tests.add(f"{case} {length}", run, tests, case, "a100", [whole, *some], [length])
    tests.finish()


if __name__ == "__main__":
    main()
