#!/usr/bin/env python3
"""Runs random convolutions in the emulator, against the reference.

One to three spatial dimensions, channels first or last, groups, windows of 1 to 7 elements, even ones too, strides,
dilations, padding that differs at both ends; filters with channels before or behind windows; f32, f16, bf16, i8 in i32;
named operators and generics; static and dynamic sizes, none and odd ones; a bias as what sums start from, or behind
them, with an activation, a residual or a cast; bounds and race checks, threads in random order, addresses off their
alignment. Each must be one kernel of a codegen path.

`--count=N` is the number of cases; `--seed=S --count=1` runs one again.
"""

import random

import harness

DEVICES = ("v100", "t4", "a100", "h100")
#: Types of factors, of sums, and of the result.
TYPES = [
    ("f32", "f32", "f32"),
    ("f32", "f32", "f32"),
    ("f16", "f32", "f32"),
    ("f16", "f32", "f16"),
    ("bf16", "f32", "bf16"),
    ("i8", "i32", "i32"),
]
NAMED = {
    (1, True, False): "conv_1d_nwc_wcf",
    (1, False, True): "conv_1d_ncw_fcw",
    (2, True, False): "conv_2d_nhwc_hwcf",
    (2, True, True): "conv_2d_nhwc_fhwc",
    (2, False, True): "conv_2d_nchw_fchw",
    (3, True, False): "conv_3d_ndhwc_dhwcf",
    (3, False, True): "conv_3d_ncdhw_fcdhw",
}


class Convolution:
    def __init__(self, rng):
        self.device = rng.choice(DEVICES)
        self.rank = rng.choice([1, 2, 2, 2, 3])
        self.type, self.sum, self.out = rng.choice(TYPES)
        self.is_integer = self.sum == "i32"
        self.is_last = rng.random() < 0.5
        #: Filters come first in their tensor.
        self.is_filter_first = not self.is_last or rng.random() < 0.5
        self.groups = rng.choice([1, 1, 1, 2, 3])
        self.is_static = rng.random() < 0.4
        self.misalign = rng.random() < 0.2
        # Upstream folds padding of a tensor that is known to be empty into something that it cannot lower.
        self.batch = rng.choice([1 if self.is_static else 0, 1, 1, 2, 3, 5])
        self.channels = rng.choice([1, 2, 3, 4, 6, 8, 16, 24, 32])
        self.filters = rng.choice([1, 2, 5, 8, 16, 24, 40])
        self.start = rng.choice([None, None, "bias", "tensor"])
        self.behind = rng.choice([None, None, "relu", "bias", "residual"])
        if self.is_integer:
            self.behind = None
        self.windows, self.strides, self.dilations = [], [], []
        self.low, self.high, self.sizes = [], [], []
        is_padded = rng.random() < 0.7
        for _ in range(self.rank):
            window = rng.choice([1, 1, 2, 3, 3, 4, 5, 7] if self.rank < 3 else [1, 2, 3])
            stride, dilation = rng.choice([1, 1, 2, 3]), rng.choice([1, 1, 1, 2])
            low, high = (rng.choice([0, 1, 2, 3]), rng.choice([0, 1, 2])) if is_padded else (0, 0)
            least = max(dilation * (window - 1) + 1 - low - high, 1)
            more = rng.choice([0, 1, 2, 5, 9, 13] if self.rank < 3 else [0, 1, 3])
            for values, value in (
                (self.windows, window),
                (self.strides, stride),
                (self.dilations, dilation),
                (self.low, low),
                (self.high, high),
                (self.sizes, least + more),
            ):
                values.append(value)
        self.is_padded = any(self.low + self.high)
        self.is_named = (
            self.groups == 1
            and (self.rank, self.is_last, self.is_filter_first) in NAMED
            and rng.random() < 0.7
        )
        # Named operators cast both factors and multiply in the type of sums.
        self.is_point = all(window == 1 for window in self.windows)

    def properties(self):
        names = (
            "device rank type out is_last is_filter_first groups is_static misalign start behind is_padded is_named "
            "is_point"
        ).split()
        return {name: getattr(self, name) for name in names} | {
            "strided": any(stride > 1 for stride in self.strides),
            "dilated": any(step > 1 for step in self.dilations),
            "aligned": self.channels % 8 == 0,
            "empty": self.batch == 0,
        }

    # Shapes, in the order in memory. A group is a dimension of its own where there are several.

    def image(self, batch, space, channels):
        groups = [self.groups] if self.groups > 1 else []
        return (
            [batch, *space, *groups, channels]
            if self.is_last
            else [batch, *groups, channels, *space]
        )

    def filter(self, filters, space, channels):
        groups = [self.groups] if self.groups > 1 else []
        if not self.is_filter_first:
            return [*space, *groups, channels, filters]
        return (
            [*groups, filters, *space, channels]
            if self.is_last
            else [*groups, filters, channels, *space]
        )

    def padded(self):
        return [low + size + high for low, size, high in zip(self.low, self.sizes, self.high)]

    def places(self):
        return [
            (size - dilation * (window - 1) - 1) // stride + 1
            for size, window, stride, dilation in zip(
                self.padded(), self.windows, self.strides, self.dilations
            )
        ]

    def tensor(self, sizes, kind, static=None):
        """The type of a tensor; of dynamic ones, sizes are unknown but for groups."""
        if not self.is_static:
            keep = static or []
            sizes = [size if place in keep else "?" for place, size in enumerate(sizes)]
        return f"tensor<{'x'.join(map(str, [*sizes, kind]))}>"

    def group_places(self, sizes_of):
        """The place of the group among dimensions."""
        if self.groups == 1:
            return []
        marks = sizes_of("a", ["s"] * self.rank, "c")
        return [marks.index(self.groups)]

    def image_type(self):
        return self.tensor(
            self.image(self.batch, self.sizes, self.channels),
            self.type,
            self.group_places(self.image),
        )

    def padded_type(self):
        return self.tensor(
            self.image(self.batch, self.padded(), self.channels),
            self.type,
            self.group_places(self.image),
        )

    def filter_type(self):
        return self.tensor(
            self.filter(self.filters, self.windows, self.channels),
            self.type,
            self.group_places(self.filter),
        )

    def out_type(self, kind):
        return self.tensor(
            self.image(self.batch, self.places(), self.filters), kind, self.group_places(self.image)
        )

    def bias_sizes(self):
        return [*([self.groups] if self.groups > 1 else []), self.filters]

    def bias_type(self):
        return self.tensor(self.bias_sizes(), self.sum, [0] if self.groups > 1 else [])

    def arguments(self):
        def item(name, type_name, sizes, kind):
            return (name, type_name, "x".join(map(str, sizes)) + f"x{kind}")

        out = self.image(self.batch, self.places(), self.filters)
        found = [
            item(
                "%x",
                self.image_type(),
                self.image(self.batch, self.sizes, self.channels),
                self.type,
            ),
            item(
                "%w",
                self.filter_type(),
                self.filter(self.filters, self.windows, self.channels),
                self.type,
            ),
        ]
        if "bias" in (self.start, self.behind):
            found.append(item("%bias", self.bias_type(), self.bias_sizes(), self.sum))
        if self.start == "tensor":
            found.append(item("%s", self.out_type(self.sum), out, self.sum))
        if self.behind == "residual":
            found.append(item("%r", self.out_type(self.out), out, self.out))
        return found

    # Text.

    def loops(self):
        space = [f"p{dim}" for dim in range(self.rank)]
        taps = [f"r{dim}" for dim in range(self.rank)]
        group = ["g"] if self.groups > 1 else []
        return ["n", *group, *space, "f"], [*taps, "c"]

    def convolution(self, image, init):
        out = self.out_type(self.sum)
        operands = (
            f"ins({image}, %w : {self.padded_type()}, {self.filter_type()}) outs({init} : {out})"
        )
        if self.is_named:
            name = NAMED[(self.rank, self.is_last, self.is_filter_first)]
            return f"""
    %o = linalg.{name} {{dilations = dense<{self.dilations}> : vector<{self.rank}xi64>,
        strides = dense<{self.strides}> : vector<{self.rank}xi64>}} {operands} -> {out}"""
        parallel, reduced = self.loops()

        def names(sizes):
            return ["g" if size == self.groups and self.groups > 1 else size for size in sizes]

        read = [
            f"p{dim} * {stride} + r{dim} * {dilation}"
            for dim, (stride, dilation) in enumerate(zip(self.strides, self.dilations))
        ]
        domain = f"({', '.join([*parallel, *reduced])})"
        maps = [
            names(self.image("n", read, "c")),
            names(self.filter("f", [f"r{dim}" for dim in range(self.rank)], "c")),
            names(self.image("n", [f"p{dim}" for dim in range(self.rank)], "f")),
        ]
        maps = ", ".join(f"affine_map<{domain} -> ({', '.join(results)})>" for results in maps)
        kinds = ", ".join(['"parallel"'] * len(parallel) + ['"reduction"'] * len(reduced))
        lines, values = [], ["%a", "%b"]
        if self.type != self.sum:
            extend = "extsi" if self.is_integer else "extf"
            lines = [
                f"%{name}w = arith.{extend} %{name} : {self.type} to {self.sum}" for name in "ab"
            ]
            values = ["%aw", "%bw"]
        letter = "i" if self.is_integer else "f"
        lines.append(f"%m = arith.mul{letter} {values[0]}, {values[1]} : {self.sum}")
        lines.append(f"%y = arith.add{letter} %acc, %m : {self.sum}")
        body = "\n      ".join(lines)
        return f"""
    %o = linalg.generic {{indexing_maps = [{maps}], iterator_types = [{kinds}]}} {operands} {{
    ^bb0(%a: {self.type}, %b: {self.type}, %acc: {self.sum}):
      {body}
      linalg.yield %y : {self.sum}
    }} -> {out}"""

    def bias_map(self):
        rank = self.rank + 2 + (self.groups > 1)
        loops = [f"d{dim}" for dim in range(rank)]
        marks = self.image("n", ["s"] * self.rank, "f")
        places = [loops[marks.index(self.groups)]] if self.groups > 1 else []
        places.append(loops[marks.index("f")])
        return f"affine_map<({', '.join(loops)}) -> ({', '.join(places)})>", rank

    def generic(self, result, operands, maps, out, lines, kind):
        rank = self.rank + 2 + (self.groups > 1)
        kinds = ", ".join(['"parallel"'] * rank)
        names = ", ".join(
            f"%e{number}: {element}" for number, (_, _, element) in enumerate(operands)
        )
        values = ", ".join(name for name, _, _ in operands)
        types = ", ".join(type_name for _, type_name, _ in operands)
        return f"""
    {result} = linalg.generic {{indexing_maps = [{", ".join(maps)}], iterator_types = [{kinds}]}}
        ins({values} : {types}) outs({out} : {self.out_type(kind)}) {{
    ^bb0({names}, %old: {kind}):
      {chr(10).join(lines)}
      linalg.yield %z : {kind}
    }} -> {self.out_type(kind)}"""

    def elementwise(self):
        """What is behind the sums: a cast, and what the case asks for."""
        if self.behind is None and self.out == self.sum:
            return "", "%o"
        bias_map, rank = self.bias_map()
        loops = ", ".join(f"d{dim}" for dim in range(rank))
        identity = f"affine_map<({loops}) -> ({loops})>"
        operands, maps, lines, value = (
            [("%o", self.out_type(self.sum), self.sum)],
            [identity],
            [],
            "%e0",
        )
        if self.behind == "relu":
            lines.append(f"%t = arith.maximumf {value}, %zero_sum : {self.sum}")
            value = "%t"
        if self.behind == "bias":
            operands.append(("%bias", self.bias_type(), self.sum))
            maps.append(bias_map)
            lines.append(f"%t = arith.addf {value}, %e1 : {self.sum}")
            value = "%t"
        if self.behind == "residual":
            operands.append(("%r", self.out_type(self.out), self.out))
            maps.append(identity)
        if self.out != self.sum:
            lines.append(f"%c = arith.truncf {value} : {self.sum} to {self.out}")
            value = "%c"
        if self.behind == "residual":
            lines.append(f"%u = arith.addf {value}, %e1 : {self.out}")
            value = "%u"
        lines[-1] = lines[-1].replace(f"{value} =", "%z =", 1)
        text = f"\n    %last = tensor.empty({self.dynamic}) : {self.out_type(self.out)}"
        return text + self.generic(
            "%y", operands, [*maps, identity], "%last", lines, self.out
        ), "%y"

    def module(self):
        kind = self.image_type()
        marks = self.image("n", [f"s{dim}" for dim in range(self.rank)], "c")
        filter_marks = self.filter("f", [f"r{dim}" for dim in range(self.rank)], "c")
        lines = ["%one = arith.constant 1 : index"]
        values = {}
        for dim, mark in enumerate(marks):
            if mark == self.groups and self.groups > 1:
                continue
            lines += [
                f"%i{dim} = arith.constant {dim} : index",
                f"%d{dim} = tensor.dim %x, %i{dim} : {kind}",
            ]
            values[mark] = f"%d{dim}"
        for dim, mark in enumerate(filter_marks):
            if mark == self.groups and self.groups > 1:
                continue
            lines += [
                f"%j{dim} = arith.constant {dim} : index",
                f"%v{dim} = tensor.dim %w, %j{dim} : {self.filter_type()}",
            ]
            values[mark] = f"%v{dim}"
        for dim in range(self.rank):
            lines += [
                f"%pad{dim} = arith.constant {self.low[dim] + self.high[dim] + self.dilations[dim] - 1} : index",
                f"%dilation{dim} = arith.constant {self.dilations[dim]} : index",
                f"%stride{dim} = arith.constant {self.strides[dim]} : index",
                f"%taps{dim} = arith.muli {values[f'r{dim}']}, %dilation{dim} : index",
                f"%whole{dim} = arith.addi {values[f's{dim}']}, %pad{dim} : index",
                f"%span{dim} = arith.subi %whole{dim}, %taps{dim} : index",
                f"%steps{dim} = arith.floordivsi %span{dim}, %stride{dim} : index",
                f"%places{dim} = arith.addi %steps{dim}, %one : index",
            ]
        sizes = self.image("n", [f"%places{dim}" for dim in range(self.rank)], "f")
        sizes = [
            values.get(size, size)
            for size in sizes
            if not (size == self.groups and self.groups > 1)
        ]
        self.dynamic = "" if self.is_static else ", ".join(sizes)
        zero = "0" if self.is_integer else "0.0"
        out = self.out_type(self.sum)
        pad, image = "", "%x"
        if self.is_padded:
            low, high = (self.image(0, amounts, 0) for amounts in (self.low, self.high))
            group = self.group_places(self.image)
            for amounts in (low, high):
                for place in group:
                    amounts[place] = 0
            indices = ", ".join(f"%q{dim}: index" for dim in range(len(low)))
            pad = f"""
    %p = tensor.pad %x low{low} high{high} {{
    ^bb0({indices}):
      tensor.yield %edge : {self.type}
    }} : {kind} to {self.padded_type()}"""
            image = "%p"
        init = f"""
    %f = linalg.fill ins(%zero_sum : {self.sum}) outs(%empty : {out}) -> {out}"""
        name = "%f"
        if self.start == "bias":
            bias_map, rank = self.bias_map()
            loops = ", ".join(f"d{dim}" for dim in range(rank))
            init = self.generic(
                "%f",
                [("%bias", self.bias_type(), self.sum)],
                [bias_map, f"affine_map<({loops}) -> ({loops})>"],
                "%empty",
                [],
                self.sum,
            ).replace("linalg.yield %z", "linalg.yield %e0")
        if self.start == "tensor":
            init, name = "", "%s"
        behind, value = self.elementwise()
        arguments = ", ".join(f"{name}: {kind}" for name, kind, _ in self.arguments())
        text = "\n    ".join(lines)
        return f"""
func.func @f({arguments}) -> {self.out_type(self.out)} {{
    {text}
    %edge = arith.constant {zero} : {self.type}
    %zero_sum = arith.constant {zero} : {self.sum}
    %empty = tensor.empty({self.dynamic}) : {out}{init}{pad}{self.convolution(image, name)}{behind}
    return {value} : {self.out_type(self.out)}
}}
"""

    def __str__(self):
        flags = ("is_last", "is_filter_first", "is_static", "is_named", "misalign")
        return (
            f"{self.device}, {self.type} to {self.out}, {self.batch} x {self.sizes}, {self.groups} groups of "
            f"{self.channels} to {self.filters}, windows {self.windows}, strides {self.strides}, dilations "
            f"{self.dilations}, padding {self.low} {self.high}, start {self.start}, behind {self.behind}"
            + "".join(f", {name}" for name in flags if getattr(self, name))
        )


def run(tests, case):
    tests.describe(f"seed {case.seed}", str(case))
    kernels, problems = harness.run_case(tests, case, *(["--misalign=2"] if case.misalign else []))
    if kernels is None:
        return problems
    kernels = [kernel for kernel in kernels if not kernel.endswith("_sum")]
    expected = 0 if case.batch == 0 else 1
    if any("fallback" in kernel for kernel in kernels) or len(kernels) != expected:
        problems.append(f"expected one kernel of a path, but got {kernels}")
    return problems


def main():
    tests, options = harness.start(__doc__, harness.random_cases(24))
    harness.add_random_cases(tests, options, lambda seed: Convolution(random.Random(seed)), run)
    tests.finish()


if __name__ == "__main__":
    main()
