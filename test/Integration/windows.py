#!/usr/bin/env python3
"""Runs random operators over windows in the emulator, against the reference.

Sums, averages, maxima, minima and convolutions of each channel, with one filter or several for a channel, named or as
generics, of one to three spatial dimensions, channels first or last, with strides, dilations and padding before them,
which counts in an average or does not; of f32, f16, bf16, i8 in i32, and f64; NaN and infinities among the elements;
static and dynamic sizes, smaller than the window and 0, too; an elementwise operator behind them: a scale, a bias of
each channel and a ReLU, another tensor; accumulators that start from a number, a vector or a tensor; windows that are
the whole image; bounds and race checks, threads in random order, addresses off their alignment. Each must be one kernel
of the codegen path chains; that of a whole image one of rows.

`--count=N` is the number of cases; `--seed=S --count=1` runs one again.
"""

import math
import random

import numpy

import harness

DEVICES = ("v100", "a100", "h200")
LEAST = {
    "f64": "0xFFF0000000000000",
    "f32": "0xFF800000",
    "f16": "0xFC00",
    "bf16": "0xFF80",
    "i8": "-128",
}
MOST = {
    "f64": "0x7FF0000000000000",
    "f32": "0x7F800000",
    "f16": "0x7C00",
    "bf16": "0x7F80",
    "i8": "127",
}
OPERATIONS = {
    "sum": ("addf", "addi"),
    "average": ("addf", None),
    "maximum": ("maximumf", "maxsi"),
    "maxnum": ("maxnumf", "maxui"),
    "minimum": ("minimumf", "minsi"),
    "channel": ("addf", "addi"),
}
NAMES = {"sum": "sum", "average": "sum", "maximum": "max", "minimum": "min"}


class Windows:
    def __init__(self, rng):
        self.device = rng.choice(DEVICES)
        self.kind = rng.choice(sorted(OPERATIONS))
        self.type = rng.choice(["f32", "f32", "f16", "bf16", "i8", "f64"])
        self.is_integer = self.type == "i8"
        if self.kind == "average" and self.is_integer:
            self.kind = "sum"
        self.wide = "i32" if self.is_integer and self.kind in ("sum", "channel") else self.type
        self.rank = rng.choice([1, 2, 2, 2, 3])
        self.is_last = rng.random() < 0.4
        self.is_whole = rng.random() < 0.2
        self.is_named = (
            self.kind in NAMES
            and not self.is_whole
            and self.type == self.wide
            and (self.kind != "minimum" or self.is_last)
            and (self.rank < 3 or self.is_last)
            and rng.random() < 0.6
        )
        self.is_static = rng.random() < 0.5
        self.has_start = rng.random() < 0.2 and not self.is_whole
        #: An accumulator starts from a vector of channels, which is broadcast.
        self.has_bias = rng.random() < 0.15 and not self.has_start and not self.is_whole
        self.epilogue = rng.choice([None, "scale", "add", "relu"]) if not self.is_integer else None
        #: Filters of each channel; None if the result has no dimension of them.
        self.filters = (
            rng.choice([1, 3, 4, 8]) if self.kind == "channel" and rng.random() < 0.4 else None
        )
        self.counts_padding = rng.random() < 0.5
        self.misalign = rng.random() < 0.3
        #: Whether the value of the padding stands in it, and not before it.
        self.is_inside = rng.random() < 0.3
        self.batch, self.channels = rng.choice([1, 2, 3]), rng.choice([1, 3, 8, 33])
        self.strides, self.dilations, self.windows, self.low, self.high, self.sizes = (
            [],
            [],
            [],
            [],
            [],
            [],
        )
        is_padded = rng.random() < 0.7
        for _ in range(self.rank):
            window, stride, dilation = (
                rng.choice([1, 2, 3, 3, 5]),
                rng.choice([1, 1, 2, 3]),
                rng.choice([1, 1, 2]),
            )
            low, high = (rng.choice([0, 1, 2]), rng.choice([0, 1, 2])) if is_padded else (0, 0)
            if is_padded and rng.random() < 0.15:
                # The window may lie outside as a whole.
                low, high = dilation * (window - 1) + 1, rng.choice([0, dilation * (window - 1)])
            least = 0 if not self.is_static and rng.random() < 0.1 else 1
            size = max(dilation * (window - 1) + 1 - low - high, least) + rng.choice(
                [0, 1, 2, 5, 9]
            )
            if self.is_whole:
                size = max(size, 1)
                window, stride, dilation, low, high = size, rng.choice([1, size]), 1, 0, 0
            for values, value in (
                (self.windows, window),
                (self.strides, stride),
                (self.dilations, dilation),
                (self.low, low),
                (self.high, high),
                (self.sizes, size),
            ):
                values.append(value)
        # Rows of whole vectors, in which neighbours share elements.
        if not self.is_last and not self.is_whole and rng.random() < 0.5:
            while self.places()[-1] % 8 or not self.places()[-1]:
                self.sizes[-1] += 1
        # A window of one element is an element.
        self.is_whole = (
            self.kind != "channel"
            and math.prod(self.windows) > 1
            and self.windows == self.padded() == self.sizes
        )
        self.is_padded = any(self.low + self.high)
        self.is_counted = (
            self.kind == "average" and not self.counts_padding and self.is_padded and self.is_static
        )
        self.data = None

    def properties(self):
        names = (
            "device",
            "kind",
            "type",
            "rank",
            "is_last",
            "is_whole",
            "is_named",
            "is_static",
            "has_start",
            "has_bias",
            "epilogue",
            "filters",
            "misalign",
            "is_padded",
            "is_counted",
            "is_inside",
        )
        return {name: getattr(self, name) for name in names} | {
            "strided": any(stride > 1 for stride in self.strides),
            "dilated": any(step > 1 for step in self.dilations),
        }

    # Shapes: batch, channels and space, in the order in memory.

    def ordered(self, batch, channel, space):
        return [batch, *space, channel] if self.is_last else [batch, channel, *space]

    def result(self, batch, channel, filters, space):
        """Values in the order of the result in memory, which may have a dimension of each channel's filters."""
        if self.filters is None:
            return self.ordered(batch, channel, space)
        if self.is_last:
            return [batch, *space, channel, filters]
        return [batch, channel, filters, *space]

    def place(self, dim):
        """The number of a spatial dimension of the result."""
        return dim + (1 if self.is_last else 2 if self.filters is None else 3)

    def tensor(self, space, kind):
        sizes = self.ordered(
            "?",
            self.channels if self.is_static else "?",
            space if self.is_static else ["?"] * self.rank,
        )
        return f"tensor<{'x'.join(map(str, sizes))}x{kind}>"

    def shape(self):
        return self.result(self.batch, self.channels, self.filters or 1, self.places())

    def out(self):
        """The type of the result."""
        sizes = self.result(
            "?",
            self.channels if self.is_static else "?",
            self.filters if self.is_static else "?",
            self.places() if self.is_static else ["?"] * self.rank,
        )
        return f"tensor<{'x'.join(map(str, sizes))}x{self.wide}>"

    def vector(self):
        return f"tensor<{self.channels if self.is_static else '?'}x{self.wide}>"

    def padded(self):
        return [low + size + high for low, size, high in zip(self.low, self.sizes, self.high)]

    def places(self):
        return [
            (size - dilation * (window - 1) - 1) // stride + 1
            for size, window, stride, dilation in zip(
                self.padded(), self.windows, self.strides, self.dilations
            )
        ]

    def arguments(self):
        data = f"@{self.data}" if self.data else ""
        image = "x".join(map(str, self.ordered(self.batch, self.channels, self.sizes)))
        out = "x".join(
            map(str, self.result(self.batch, self.channels, self.filters, self.places()))
        )
        found = [("%x", self.tensor(self.sizes, self.type), f"{image}x{self.type}{data}")]
        if self.kind == "channel":
            window = "x".join(map(str, self.windows))
            filters = [self.channels, *([] if self.filters is None else [self.filters])]
            static = "x".join(map(str, filters))
            found.append(
                (
                    "%k",
                    f"tensor<{window}x{static if self.is_static else 'x'.join('?' * len(filters))}x{self.type}>",
                    f"{window}x{static}x{self.type}",
                )
            )
        if self.has_start:
            found.append(("%s", self.out(), f"{out}x{self.wide}"))
        if self.has_bias:
            found.append(("%v", self.vector(), f"{self.channels}x{self.wide}"))
        if self.epilogue == "add":
            found.append(("%r", self.out(), f"{out}x{self.wide}"))
        if self.epilogue == "relu":
            found.append(("%r", self.vector(), f"{self.channels}x{self.wide}"))
        return found

    # Text.

    def start(self):
        """What the operator starts from, and what lies around an image."""
        if self.kind in ("maximum", "maxnum"):
            return "0" if self.kind == "maxnum" and self.is_integer else LEAST[self.type]
        return MOST[self.type] if self.kind == "minimum" else "0" if self.is_integer else "0.0"

    def operation(self):
        return OPERATIONS[self.kind][self.is_integer]

    def pad(self):
        if not self.is_padded:
            return "", "%x"
        low, high = (self.ordered(0, 0, amounts) for amounts in (self.low, self.high))
        indices = ", ".join(f"%i{dim}: index" for dim in range(self.rank + 2))
        inner = (
            f"%around = arith.constant {self.start()} : {self.type}\n      "
            if self.is_inside
            else ""
        )
        return (
            f"""
    %p = tensor.pad %x low{low} high{high} {{
    ^bb0({indices}):
      {inner}tensor.yield {"%around" if self.is_inside else "%edge"} : {self.type}
    }} : {self.tensor(self.sizes, self.type)} to {self.tensor(self.padded(), self.type)}""",
            "%p",
        )

    def window(self, image, init):
        shape = "x".join(map(str, self.windows))
        kind = self.tensor(self.padded(), self.type)
        out = self.out()
        if self.is_named:
            layout = {1: ("nwc", "ncw"), 2: ("nhwc", "nchw"), 3: ("ndhwc", None)}[self.rank][
                not self.is_last
            ]
            return f"""
    %w = tensor.empty() : tensor<{shape}x{self.type}>
    %o = linalg.pooling_{layout}_{NAMES[self.kind]} {{dilations = dense<{self.dilations}> : vector<{self.rank}xi64>,
        strides = dense<{self.strides}> : vector<{self.rank}xi64>}}
        ins({image}, %w : {kind}, tensor<{shape}x{self.type}>) outs({init} : {out}) -> {out}"""
        loops = self.result("n", "c", "f", [f"p{dim}" for dim in range(self.rank)])
        inner = [f"r{dim}" for dim in range(self.rank)]
        read = self.ordered(
            "n",
            "c",
            [
                f"p{dim} * {stride} + r{dim} * {dilation}"
                for dim, (stride, dilation) in enumerate(zip(self.strides, self.dilations))
            ],
        )
        domain = f"({', '.join([*loops, *inner])})"
        is_channel = self.kind == "channel"
        filters = ["c"] if self.filters is None else ["c", "f"]
        maps = [read, [*inner, *(filters if is_channel else [])], loops]
        maps = ", ".join(f"affine_map<{domain} -> ({', '.join(results)})>" for results in maps)
        kinds = ", ".join(['"parallel"'] * len(loops) + ['"reduction"'] * self.rank)
        operands = f"{image}, {'%k' if is_channel else '%w'}"
        second = self.arguments()[1][1] if is_channel else f"tensor<{shape}x{self.type}>"
        lines, values = [], ["%a", "%b"]
        if self.type != self.wide:
            lines = [f"%{name}w = arith.extsi %{name} : i8 to i32" for name in "ab"]
            values = ["%aw", "%bw"]
        if is_channel:
            lines.append(
                f"%m = arith.mul{'i' if self.is_integer else 'f'} {values[0]}, {values[1]} : {self.wide}"
            )
            values = ["%m"]
        lines.append(f"%y = arith.{self.operation()} %acc, {values[0]} : {self.wide}")
        body = "\n      ".join(lines)
        empty = "" if is_channel else f"\n    %w = tensor.empty() : tensor<{shape}x{self.type}>"
        return f"""{empty}
    %o = linalg.generic {{indexing_maps = [{maps}], iterator_types = [{kinds}]}}
        ins({operands} : {kind}, {second}) outs({init} : {out}) {{
    ^bb0(%a: {self.type}, %b: {self.type}, %acc: {self.wide}):
      {body}
      linalg.yield %y : {self.wide}
    }} -> {out}"""

    def counted(self):
        """Lines that count the elements of a window that lie in the image, as a float."""
        lines, product = [], "%one"
        for dim in range(self.rank):
            lines += [
                f"%i{dim} = linalg.index {self.place(dim)} : index",
                f"%n{dim}_0 = arith.constant 0 : index",
            ]
            for tap in range(self.windows[dim]):
                name = f"{dim}_{tap + 1}"
                lines += [
                    f"%k{name} = arith.constant {self.low[dim] - tap * self.dilations[dim]} : index",
                    f"%j{name} = arith.muli %i{dim}, %stride{dim} : index",
                    f"%a{name} = arith.subi %j{name}, %k{name} : index",
                    f"%s{name} = arith.constant {self.sizes[dim]} : index",
                    f"%b{name} = arith.cmpi ult, %a{name}, %s{name} : index",
                    f"%c{name} = arith.select %b{name}, %one, %zero : index",
                    f"%n{name} = arith.addi %n{dim}_{tap}, %c{name} : index",
                ]
            lines.append(f"%q{dim} = arith.muli {product}, %n{dim}_{self.windows[dim]} : index")
            product = f"%q{dim}"
        return [
            *lines,
            f"%some = arith.maxsi {product}, %one : index",
            "%integer = arith.index_cast %some : index to i32",
            f"%count = arith.sitofp %integer : i32 to {self.wide}",
        ]

    def elementwise(self):
        """What is behind the windows: a generic for an average, and one more."""
        out, value, text = self.out(), "%o", ""
        rank = self.rank + (2 if self.filters is None else 3)
        loops = ", ".join(f"d{dim}" for dim in range(rank))
        identity = f"affine_map<({loops}) -> ({loops})>"
        kinds = ", ".join(['"parallel"'] * rank)

        channel = rank - (1 if self.filters is None else 2) if self.is_last else 1
        broadcast = f"affine_map<({loops}) -> (d{channel})>"

        def generic(result, operands, lines, vector=None):
            names = ", ".join(
                f"%e{number}: {self.wide}"
                for number in range(len(operands) + (1 if vector is None else 2))
            )
            maps = [identity] * len(operands)
            types = [out] * len(operands)
            if vector is not None:
                maps, types = [*maps, broadcast], [*types, self.vector()]
                operands = [*operands, vector]
            return f"""
    {result} = linalg.generic {{indexing_maps = [{", ".join([*maps, identity])}], iterator_types = [{kinds}]}}
        ins({", ".join(operands)} : {", ".join(types)}) outs(%empty : {out}) {{
    ^bb0({names}):
      {chr(10).join(lines)}
      linalg.yield %z : {self.wide}
    }} -> {out}"""

        if self.kind == "average":
            count = (
                self.counted()
                if self.is_counted
                else [f"%count = arith.constant {math.prod(self.windows)}.0 : {self.wide}"]
            )
            text += generic(
                "%mean", [value], [*count, f"%z = arith.divf %e0, %count : {self.wide}"]
            )
            value = "%mean"
        if self.epilogue == "scale":
            text += generic("%scaled", [value], [f"%z = arith.mulf %e0, %half : {self.wide}"])
            value = "%scaled"
        if self.epilogue == "add":
            text += generic("%sum", [value, "%r"], [f"%z = arith.addf %e0, %e1 : {self.wide}"])
            value = "%sum"
        if self.epilogue == "relu":
            lines = [
                f"%b = arith.addf %e0, %e1 : {self.wide}",
                f"%none = arith.constant 0.0 : {self.wide}",
                f"%z = arith.maximumf %b, %none : {self.wide}",
            ]
            text += generic("%relu", [value], lines, "%r")
            value = "%relu"
        start = generic("%start", [], [], "%v").replace("yield %z", "yield %e0")
        return text, value, start if self.has_bias else ""

    def module(self):
        pad, image = self.pad()
        out, kind = self.out(), self.tensor(self.sizes, self.type)
        rank = self.rank + 2
        lines = [
            f"%x{dim} = arith.constant {dim} : index\n    %d{dim} = tensor.dim %x, %x{dim} : {kind}"
            for dim in range(rank)
        ]
        sizes = [f"%d{dim}" for dim in range(rank)]
        for dim in range(self.rank):
            place = dim + (1 if self.is_last else 2)
            more = (
                self.low[dim] + self.high[dim] - self.dilations[dim] * (self.windows[dim] - 1) - 1
            )
            lines += [
                f"%more{dim} = arith.constant {more} : index",
                f"%stride{dim} = arith.constant {self.strides[dim]} : index",
                f"%span{dim} = arith.addi %d{place}, %more{dim} : index",
                f"%steps{dim} = arith.divsi %span{dim}, %stride{dim} : index",
                f"%o{dim} = arith.addi %steps{dim}, %one : index",
            ]
            sizes[place] = f"%o{dim}"
        if self.filters is not None:
            sizes.insert(rank if self.is_last else 2, "%filters")
            if not self.is_static:
                lines += [
                    f"%last = arith.constant {self.rank + 1} : index",
                    f"%filters = tensor.dim %k, %last : {self.arguments()[1][1]}",
                ]
        dynamic = sizes[:1] if self.is_static else sizes
        behind, value, start_text = self.elementwise()
        init = "%s" if self.has_start else "%start" if self.has_bias else "%f"
        arguments = ", ".join(f"{name}: {kind}" for name, kind, _ in self.arguments())
        half = "" if self.is_integer else f"\n    %half = arith.constant 0.5 : {self.wide}"
        start = "0" if self.wide == "i32" else self.start()
        return f"""
func.func @f({arguments}) -> {out} {{
    %zero = arith.constant 0 : index
    %one = arith.constant 1 : index
    {chr(10).join(lines)}
    %edge = arith.constant {self.start()} : {self.type}
    %first = arith.constant {start} : {self.wide}{half}
    %empty = tensor.empty({", ".join(dynamic)}) : {out}
    %f = linalg.fill ins(%first : {self.wide}) outs(%empty : {out}) -> {out}{start_text}{pad}{self.window(image, init)}{behind}
    return {value} : {out}
}}
"""

    def __str__(self):
        flags = (
            "is_last",
            "is_whole",
            "is_named",
            "is_static",
            "has_start",
            "has_bias",
            "misalign",
            "is_padded",
            "is_counted",
        )
        return (
            f"{self.device}, {self.kind}, {self.type}, {self.batch} x {self.channels} x {self.sizes}, filters {self.filters}, windows {self.windows}, "
            f"strides {self.strides}, dilations {self.dilations}, padding {self.low} {self.high}, epilogue {self.epilogue}"
            + "".join(f", {name}" for name in flags if getattr(self, name))
        )


def special_image(windows):
    """Small numbers, some of them NaN or infinite; bf16 as its bits."""
    rng = numpy.random.default_rng(windows.seed)
    shape = windows.ordered(windows.batch, windows.channels, windows.sizes)
    values = rng.standard_normal(shape).astype(numpy.float32)
    specials = (
        [numpy.nan, numpy.inf, -numpy.inf]
        if windows.kind in ("maximum", "minimum")
        else [numpy.inf]
    )
    for special in specials:
        values[rng.random(shape) < 0.03] = special
    if windows.type == "bf16":
        return (values.view(numpy.uint32) >> 16).astype(numpy.uint16)
    return values.astype(
        {"f64": numpy.float64, "f32": numpy.float32, "f16": numpy.float16}[windows.type]
    )


def run(tests, windows):
    seed, label = windows.seed, f"seed {windows.seed}"
    if windows.kind in ("maximum", "minimum", "maxnum") and not windows.is_integer:
        windows.data = tests.write(f"{seed}.npy", "")
        numpy.save(windows.data, special_image(windows))
    tests.describe(label, str(windows))
    kernels, problems = harness.run_case(
        tests, windows, *(["--misalign=2"] if windows.misalign else [])
    )
    if kernels is None:
        return problems
    if len(kernels) != (1 if math.prod(windows.shape()) else 0):
        problems.append(f"expected one kernel, but got {kernels}")
    path = tests.path(f"{seed}.mlir")
    formed = tests.tool("ftuner-opt", path, f"--ftuner-front-end=device={windows.device}").stdout
    # A window of one element may be either.
    is_of_rows = windows.is_whole and windows.is_static
    if math.prod(windows.windows) == 1 and "ukernel.row_reduction" in formed:
        is_of_rows = True
    expected = "ukernel.row_reduction" if is_of_rows else "ukernel.pointwise"
    if formed.count(expected) != 1 or "linalg" in formed:
        problems.append(f"expected {expected} and no other operator")
    return problems


def main():
    tests, options = harness.start(__doc__, harness.random_cases(16))
    harness.add_random_cases(tests, options, lambda seed: Windows(random.Random(seed)), run)
    tests.finish()


if __name__ == "__main__":
    main()
