#!/usr/bin/env python3
"""Runs random chains of elementwise operators in the emulator, against the reference.

Zero to eight loops; operands that have all of them, the last one, others, none or the loops in another order; dimensions
of extent 1; slices of larger tensors, also with steps; f64 to i1, casts between them; several outputs, in several
orders; positions of the loops; a bias that is read twice; static and dynamic sizes, 0, 1 and odd ones; bounds and race
checks, threads in random order, addresses off their alignment. Each must be one kernel of the path of chains.

`--count=N` is the number of cases; `--seed=S --count=1` runs one again.
"""

import random

import harness

DEVICES = ("v100", "a100", "h100")
TYPES = ["f32", "f16", "bf16", "f64", "i8", "i16", "i32", "i64", "i1"]
WIDTHS = {"f64": 64, "f32": 32, "f16": 16, "bf16": 16}
#: What an input is along the loops.
KINDS = ["all", "all", "last", "scalar", "first", "unit", "permuted", "slice", "step", "number"]
#: What an input of tensors without dimensions is.
KINDS_WITHOUT_LOOPS = ["all", "all", "number"]
SIZES = [1, 2, 3, 4, 5, 7, 8, 16, 17, 24, 64]


class Chain:
    def __init__(self, rng):
        self.device = rng.choice(DEVICES)
        self.rank = rng.choice([0, 1, 1, 2, 2, 2, 3, 3, 4, 8])
        self.is_static = rng.random() < 0.4
        most = {0: 1, 1: 5000, 2: 200, 3: 40, 4: 16, 8: 3}[self.rank]
        self.sizes = [rng.choice([*SIZES, rng.randrange(most) + 1]) for _ in range(self.rank)]
        self.sizes = [min(size, most) for size in self.sizes]
        if rng.random() < 0.5 and self.rank > 0:
            self.sizes[-1] = -(-self.sizes[-1] // 8) * 8
        self.is_empty = rng.random() < 0.05 and self.rank > 0
        if self.is_empty:
            self.sizes[rng.randrange(self.rank)] = 0
        types = rng.sample(TYPES, rng.choice([1, 2, 3]))
        self.inputs = [
            (rng.choice(KINDS if self.rank > 0 else KINDS_WITHOUT_LOOPS), rng.choice(types))
            for _ in range(rng.choice([0, 1, 2, 2, 3] if self.rank > 0 else [1, 2, 3]))
        ]
        self.outputs = [
            (rng.random() < 0.25 and self.rank > 1, rng.choice(types))
            for _ in range(rng.choice([1, 1, 1, 2, 3]))
        ]
        self.compute = rng.choice(["f32", "f32", "i32"])
        self.has_index = (rng.random() < 0.25 or not self.inputs) and self.rank > 0
        if self.has_index and self.is_static and not self.is_empty:
            # The position in a loop of size 1 is a constant, which can make the results constant.
            self.sizes[0], self.sizes[-1] = max(self.sizes[0], 2), max(self.sizes[-1], 2)
        self.orders = {}
        #: The dimensions of a slice that are read as wholes.
        self.is_whole = {}
        self.rng = random.Random(rng.random())
        self.misalign = rng.random() < 0.3
        for number, (kind, _) in enumerate(self.inputs):
            order = list(range(self.rank))
            if kind == "permuted":
                self.rng.shuffle(order)
            self.orders[number] = order
            # A slice cannot begin in a dimension without elements.
            self.is_whole[number] = [
                self.rng.random() < 0.4 and not self.is_empty for _ in range(self.rank)
            ]
        self.output_orders = []
        for is_permuted, _ in self.outputs:
            order = list(range(self.rank))
            if is_permuted:
                self.rng.shuffle(order)
            self.output_orders.append(order)
        self.operations = [self.rng.randrange(4) for _ in range(8)]

    def properties(self):
        return {
            "device": self.device,
            "rank": self.rank,
            "is_static": self.is_static,
            "kind": self.inputs[0][0] if self.inputs else None,
            "second": self.inputs[1][0] if len(self.inputs) > 1 else None,
            "type": self.inputs[0][1] if self.inputs else None,
            "result": self.outputs[0][1],
            "outputs": len(self.outputs),
            "compute": self.compute,
            "has_index": self.has_index,
            "misalign": self.misalign,
            "is_empty": self.is_empty,
            "whole": self.rank > 0 and self.sizes[-1] % 8 == 0,
        }

    # Operands.

    def loops_of(self, number):
        """The loops that an input has, by dimension."""
        kind = self.inputs[number][0]
        return {
            "last": [self.rank - 1],
            "first": list(range(self.rank - 1)),
            "scalar": [],
            "number": [],
        }.get(kind, self.orders[number])

    def shape(self, number):
        """The sizes of an argument, and those of the slice that is read of it."""
        kind = self.inputs[number][0]
        sizes = [self.sizes[loop] for loop in self.loops_of(number)]
        if kind == "unit":
            return [1 if loop == 0 else size for loop, size in enumerate(sizes)], None
        if kind in ("slice", "step"):
            whole = self.is_whole[number]
            return [size if whole[loop] else 2 * size + 3 for loop, size in enumerate(sizes)], sizes
        return sizes, None

    def tensor(self, sizes, kind, fixed=()):
        dims = [str(size) if self.is_static or size in fixed else "?" for size in sizes]
        return f"tensor<{''.join(dim + 'x' for dim in dims)}{kind}>"

    def type_of(self, number):
        kind, element = self.inputs[number]
        sizes, _ = self.shape(number)
        if kind == "number":
            return element
        if kind == "unit":
            dims = ["1" if loop == 0 else str(size) for loop, size in enumerate(sizes)]
            if not self.is_static:
                dims = ["1", *["?"] * (self.rank - 1)]
            return f"tensor<{''.join(dim + 'x' for dim in dims)}{element}>"
        return self.tensor(sizes, element)

    def arguments(self):
        result = []
        for number, (kind, element) in enumerate(self.inputs):
            sizes, _ = self.shape(number)
            value = "1" if element == "i1" else "2"
            text = "".join(f"{size}x" for size in sizes) + element
            result.append(
                (f"%a{number}", self.type_of(number), text if kind != "number" else value)
            )
        shape = "".join(f"{size}x" for size in self.sizes)
        return [*result, ("%shape", self.tensor(self.sizes, "i8"), f"{shape}i8")]

    # Text.

    def cast(self, value, name, source, target):
        """Lines that cast a number."""
        if source == target:
            return [], value
        is_float = (source in WIDTHS, target in WIDTHS)
        if is_float == (True, True):
            if WIDTHS[source] == WIDTHS[target]:
                return [
                    f"%{name}w = arith.extf {value} : {source} to f32",
                    f"%{name} = arith.truncf %{name}w : f32 to {target}",
                ], f"%{name}"
            operation = "extf" if WIDTHS[source] < WIDTHS[target] else "truncf"
        elif is_float == (False, True):
            operation = "uitofp" if source == "i1" else "sitofp"
        elif is_float == (True, False):
            wide = "f64" if source == "f64" else "f32"
            lines, value = self.cast(value, f"{name}w", source, wide)
            # Beyond the range a cast has no value.
            return [
                *lines,
                f"%{name}l = arith.constant -1.0 : {wide}",
                f"%{name}h = arith.constant {'1.0' if target == 'i1' else '100.0'} : {wide}",
                f"%{name}n = arith.cmpf uno, {value}, {value} : {wide}",
                f"%{name}m = arith.maximumf {value}, %{name}l : {wide}",
                f"%{name}c = arith.minimumf %{name}m, %{name}h : {wide}",
                f"%{name}s = arith.select %{name}n, %{name}l, %{name}c : {wide}",
                *(
                    [f"%{name} = arith.cmpf ogt, %{name}s, %{name}l : {wide}"]
                    if target == "i1"
                    else [f"%{name} = arith.fptosi %{name}s : {wide} to {target}"]
                ),
            ], f"%{name}"
        else:
            width = {"i1": 1, "i8": 8, "i16": 16, "i32": 32, "i64": 64}
            operation = (
                "trunci"
                if width[source] > width[target]
                else "extui"
                if source == "i1"
                else "extsi"
            )
        return [f"%{name} = arith.{operation} {value} : {source} to {target}"], f"%{name}"

    def body(self):
        lines, values = [], []
        for number, (_, element) in enumerate(self.inputs):
            more, value = self.cast(f"%x{number}", f"v{number}", element, self.compute)
            lines += more
            values.append(value)
        if self.has_index:
            for loop in {0, self.rank - 1}:
                lines.append(f"%i{loop} = linalg.index {loop} : index")
                lines.append(f"%j{loop} = arith.index_cast %i{loop} : index to i32")
                more, value = self.cast(f"%j{loop}", f"k{loop}", "i32", self.compute)
                lines += more
                values.append(value)
        letter = "f" if self.compute == "f32" else "i"
        names = ["add", "mul", "sub", "maximum" if letter == "f" else "maxs"]
        value = values[0]
        for number, other in enumerate(values[1:] or values[:1]):
            # A value less itself is a constant.
            name = names[self.operations[number] if other != value else 0]
            lines.append(f"%r{number} = arith.{name}{letter} {value}, {other} : {self.compute}")
            value = f"%r{number}"
        results = []
        for number, (_, element) in enumerate(self.outputs):
            # Equal results would be one, and a copy.
            amount = f"{number}.0" if letter == "f" else number
            lines.append(f"%p{number} = arith.constant {amount} : {self.compute}")
            lines.append(f"%q{number} = arith.add{letter} {value}, %p{number} : {self.compute}")
            more, result = self.cast(f"%q{number}", f"o{number}", self.compute, element)
            lines += more
            results.append(result)
        kinds = ", ".join(element for _, element in self.outputs)
        lines.append(f"linalg.yield {', '.join(results)} : {kinds}")
        return "\n      ".join(lines)

    def module(self):
        lines = []
        for loop in range(self.rank):
            lines.append(f"%c{loop} = arith.constant {loop} : index")
            lines.append(
                f"%n{loop} = tensor.dim %shape, %c{loop} : {self.tensor(self.sizes, 'i8')}"
            )
        names, kinds, maps = [], [], []
        domain = ", ".join(f"d{loop}" for loop in range(self.rank))

        def affine_map(results):
            return f"affine_map<({domain}) -> ({', '.join(results)})>"

        for number, (kind, element) in enumerate(self.inputs):
            loops = self.loops_of(number)
            name, type = f"%a{number}", self.type_of(number)
            if kind in ("slice", "step"):
                step = 2 if kind == "step" else 1
                sizes = [self.sizes[loop] for loop in loops]
                part = self.tensor(sizes, element)
                size = [str(n) if self.is_static else f"%n{loop}" for n, loop in zip(sizes, loops)]
                # Along the last dimension the step is 1.
                whole = self.is_whole[number]
                steps = [1 if whole[dim] else step for dim in range(len(loops) - 1)] + [1]
                offsets = ["0" if whole[dim] else "2" for dim in range(len(loops))]
                lines.append(
                    f"%s{number} = tensor.extract_slice {name}[{', '.join(offsets)}] "
                    f"[{', '.join(size)}] [{', '.join(map(str, steps))}] : {type} to {part}"
                )
                name, type = f"%s{number}", part
            names.append(name)
            kinds.append(type)
            maps.append(
                affine_map("0" if kind == "unit" and loop == 0 else f"d{loop}" for loop in loops)
            )
        outs, out_kinds = [], []
        for number, (order, (_, element)) in enumerate(zip(self.output_orders, self.outputs)):
            kind = self.tensor([self.sizes[loop] for loop in order], element)
            sizes = "" if self.is_static else ", ".join(f"%n{loop}" for loop in order)
            lines.append(f"%e{number} = tensor.empty({sizes}) : {kind}")
            outs.append(f"%e{number}")
            out_kinds.append(kind)
            maps.append(affine_map(f"d{loop}" for loop in order))
        iterators = ", ".join(['"parallel"'] * self.rank)
        ins = f"ins({', '.join(names)} : {', '.join(kinds)})" if names else ""
        given = [f"%x{number}: {element}" for number, (_, element) in enumerate(self.inputs)]
        given += [f"%y{number}: {element}" for number, (_, element) in enumerate(self.outputs)]
        results = ", ".join(out_kinds)
        count = len(self.outputs)
        values = ", ".join(f"%r#{number}" if count > 1 else "%r" for number in range(count))
        setup = "\n    ".join(lines)
        return f"""func.func @f({", ".join(f"{name}: {type}" for name, type, _ in self.arguments())}) -> ({results}) {{
    {setup}
    %r{f":{count}" if count > 1 else ""} = linalg.generic {{indexing_maps = [{", ".join(maps)}], iterator_types = [{iterators}]}}
        {ins} outs({", ".join(outs)} : {results}) {{
    ^bb0({", ".join(given)}):
      {self.body()}
    }} -> ({results})
    return {values} : {results}
}}
"""


def run(tests, chain):
    flags = ["--paths=chains", *(["--misalign=1"] if chain.misalign else [])]
    kernels, problems = harness.run_case(tests, chain, *flags)
    if kernels is None:
        return problems
    wanted = 0 if chain.is_empty else 1
    if len(kernels) != wanted or not all(kernel.startswith("f_0_k") for kernel in kernels):
        problems.append(f"expected {wanted} kernel of a uKernel, but got {kernels}")
    return problems


def main():
    tests, options = harness.start(__doc__, harness.random_cases(60))
    harness.add_random_cases(tests, options, lambda seed: Chain(random.Random(seed)), run)
    tests.finish()


if __name__ == "__main__":
    main()
