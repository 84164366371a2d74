#!/usr/bin/env python3
"""Runs random reductions of rows in the emulator, against the reference.

Softmax, log-softmax, norms, sums, maxima, quantisation to i8 and the positions of extremes, of f32, f16 and bf16 with
sums in f32, in f64 or in the type itself, as importers write them: with and without unit dimensions, of two to four dimensions,
along one loop or two, behind the sum with a residual which others may use, too, with weights along the row, a factor of
each row, masks that are given or computed by position, two reductions of one tensor, from another start, of static and
dynamic lengths, none included; bounds and race checks, threads in random order, addresses off their alignment. Rows of
extremes have ties, NaN and infinities. Each must be one kernel of rows.

`--count=N` is the number of cases; `--seed=S --count=1` runs one again.
"""

import math
import random

import numpy

import harness

DEVICES = ("v100", "a100", "h200")
INFINITIES = {
    "f64": ("0xFFF0000000000000", "0x7FF0000000000000"),
    "f32": ("0xFF800000", "0x7F800000"),
    "f16": ("0xFC00", "0x7C00"),
    "bf16": ("0xFF80", "0x7F80"),
}


class RowCase:
    def __init__(self, rng):
        self.device = rng.choice(DEVICES)
        self.kind = rng.choice(
            [
                "softmax",
                "log_softmax",
                "layer_norm",
                "rms_norm",
                "sum",
                "maximum",
                "both",
                "quantize",
                "argmax",
                "argmin",
            ]
        )
        self.type = rng.choice(["f32", "f32", "f16", "bf16"])
        self.is_narrow = self.type != "f32" and rng.random() < 0.4
        self.wide = self.type if self.is_narrow or self.kind.startswith("arg") else "f32"
        if (
            not self.is_narrow
            and self.kind in ("layer_norm", "rms_norm", "sum", "maximum", "both")
            and rng.random() < 0.3
        ):
            self.wide = "f64"
        self.rank = rng.choice([2, 3, 4])
        self.keeps = rng.random() < 0.5
        self.residual = rng.choice([None, "inner", "result"])
        self.has_weights = self.kind.endswith("norm") and rng.random() < 0.7
        self.has_factor = rng.random() < 0.3
        self.mask = None
        if self.kind.endswith("softmax"):
            self.mask = rng.choice([None, None, "given", "causal"])
        self.has_start = self.kind in ("sum", "both", "maximum") and rng.random() < 0.4
        self.is_along_two = self.kind[:3] != "arg" and self.mask != "causal" and rng.random() < 0.3
        #: What of an extreme and its position others ask for.
        self.asked = rng.choice([("%s",), ("%at",), ("%s", "%at")])
        self.is_static = rng.random() < 0.4
        self.misalign = rng.random() < 0.3
        length = rng.choice([1, 7, 32, 33, 64, 100, 128, 257, 520, 1000, 2048, rng.randint(1, 700)])
        if not self.is_static and self.kind in ("sum", "softmax") and rng.random() < 0.1:
            length = 0
        self.data = None
        self.factors = [length]
        if self.is_along_two:
            inner = rng.choice(
                [part for part in (1, 2, 3, 4, 7, 8, 10, 16) if length % part == 0] or [1]
            )
            self.factors = [length // inner, inner]
        self.sizes = [rng.choice([1, 2, 3]) for _ in range(self.rank - 2)] + [
            rng.choice([1, 2, 5, 9, 17]),
            *self.factors,
        ]
        if len(self.sizes) > 4:
            self.sizes = self.sizes[1:]
        self.rank = len(self.sizes)
        self.num_rows = self.rank - len(self.factors)

    def properties(self):
        names = (
            "device",
            "kind",
            "type",
            "wide",
            "rank",
            "keeps",
            "residual",
            "has_weights",
            "has_factor",
            "mask",
            "is_static",
            "misalign",
            "is_narrow",
            "is_along_two",
            "has_start",
        )
        length = math.prod(self.factors)
        return {name: getattr(self, name) for name in names} | {
            "length": "none"
            if length == 0
            else "short"
            if length <= 32
            else "long"
            if length > 512
            else "middle",
            "even": length % 4 == 0,
        }

    # Types and maps.

    def tensor(self, kind, unit=False, rows=False):
        dims = ["?"] * self.num_rows
        if unit:
            dims += ["1"] * len(self.factors)
        elif not rows:
            dims += [str(size) if self.is_static else "?" for size in self.factors]
        return f"tensor<{'x'.join([*dims, kind])}>"

    def row_tensor(self, kind):
        return self.tensor(kind, unit=self.keeps, rows=True)

    def map(self, what):
        loops, along = self.loops()
        results = {
            "all": [*loops, *along],
            "row": [*loops, *["0" for _ in along]] if self.keeps else loops,
            "column": along,
            "factor": loops,
        }
        return f"affine_map<({', '.join([*loops, *along])}) -> ({', '.join(results[what])})>"

    def loops(self):
        """Loops of rows, and along them."""
        return ["a", "b", "c"][: self.num_rows], ["r", "q"][: len(self.factors)]

    def arguments(self):
        """Name and type of each argument, and what it is called with."""
        shape = "x".join(map(str, self.sizes))
        data = f"@{self.data}" if self.data else ""
        found = [("%x", self.tensor(self.type), f"{shape}x{self.type}{data}")]
        if self.residual:
            found.append(("%r", self.tensor(self.type), f"{shape}x{self.type}"))
        if self.has_weights:
            columns = "x".join(str(size) if self.is_static else "?" for size in self.factors)
            found.append(
                (
                    "%w",
                    f"tensor<{columns}x{self.type}>",
                    f"{'x'.join(map(str, self.factors))}x{self.type}",
                )
            )
        if self.has_factor:
            rows = "x".join(map(str, self.sizes[: self.num_rows]))
            found.append(("%f", self.tensor(self.wide, rows=True), f"{rows}x{self.wide}"))
        if self.mask == "given":
            found.append(("%mask", self.tensor("i1"), f"{shape}xi1"))
        return found

    # Operators.

    def element(self, name):
        """Lines that make f32 of an element, and its name then."""
        return (
            ([], name)
            if self.type == self.wide
            else ([f"{name}w = arith.extf {name} : {self.type} to {self.wide}"], f"{name}w")
        )

    def generic(self, result, operands, output, lines, value, is_reduction=False, of_rows=False):
        """One linalg.generic: `operands` are of (value, type, access, argument), `output` of (value, type, element)."""
        kinds = ["parallel"] * self.num_rows + ["reduction" if is_reduction else "parallel"] * len(
            self.factors
        )
        maps = [self.map(access) for _, _, access, _ in operands] + [
            self.map("row" if is_reduction else "all")
        ]
        if of_rows:
            loops, along = self.loops()
            loops = ", ".join([*loops, *along] if self.keeps else loops)
            maps = [f"affine_map<({loops}) -> ({loops})>"] * (len(operands) + 1)
            kinds = ["parallel"] * (self.rank if self.keeps else self.num_rows)
        names = [argument for _, _, _, argument in operands] + ["%acc"]
        types = [tensor.rstrip(">").split("x")[-1] for _, tensor, _, _ in operands] + [output[2]]
        body = "\n      ".join([*lines, f"linalg.yield {value} : {output[2]}"])
        return f"""
    {result} = linalg.generic {{indexing_maps = [{", ".join(maps)}],
        iterator_types = [{", ".join(f'"{kind}"' for kind in kinds)}]}}
        ins({", ".join(value for value, _, _, _ in operands)} : {", ".join(tensor for _, tensor, _, _ in operands)})
        outs({output[0]} : {output[1]}) {{
    ^bb0({", ".join(f"{name}: {kind}" for name, kind in zip(names, types))}):
      {body}
    }} -> {output[1]}"""

    def reduction(self, result, operation, start, operands, lines, value):
        row = self.row_tensor(self.wide)
        start = "%start" if self.has_start else start
        return (
            f"\n    {result}s = linalg.fill ins({start} : {self.wide}) outs(%er : {row}) -> {row}"
            + self.generic(
                result,
                operands,
                (f"{result}s", row, self.wide),
                [*lines, f"%n = arith.{operation} %acc, {value} : {self.wide}"],
                "%n",
                is_reduction=True,
            )
        )

    def once(self, result, operand, lines, value):
        row = self.row_tensor(self.wide)
        return self.generic(
            result,
            [(operand, row, "row", "%v")],
            ("%er", row, self.wide),
            lines,
            value,
            of_rows=True,
        )

    def extreme(self, x):
        """An extreme and its position, as torch-mlir writes them."""
        values, places = self.row_tensor(self.type), self.row_tensor("i64")
        operation, start = ("maximumf", "%low") if self.kind == "argmax" else ("minimumf", "%high")
        maps = [self.map("all"), self.map("row"), self.map("row")]
        kinds = ["parallel"] * self.num_rows + ["reduction"]
        return f"""
    %none = arith.constant 0 : i64
    %ep = tensor.empty({", ".join(f"%d{dim}" for dim in range(self.num_rows))}) : {places}
    %ev = tensor.empty({", ".join(f"%d{dim}" for dim in range(self.num_rows))}) : {values}
    %zp = linalg.fill ins(%none : i64) outs(%ep : {places}) -> {places}
    %zv = linalg.fill ins({start} : {self.type}) outs(%ev : {values}) -> {values}
    %s, %at = linalg.generic {{indexing_maps = [{", ".join(maps)}],
        iterator_types = [{", ".join(f'"{kind}"' for kind in kinds)}]}}
        ins({x} : {self.tensor(self.type)}) outs(%zv, %zp : {values}, {places}) {{
    ^bb0(%a: {self.type}, %best: {self.type}, %place: i64):
      %i = linalg.index {self.rank - 1} : index
      %j = arith.index_cast %i : index to i64
      %m = arith.{operation} %a, %best : {self.type}
      %c = arith.cmpf {"ogt" if self.kind == "argmax" else "olt"}, %a, %best : {self.type}
      %p = arith.select %c, %j, %place : i64
      linalg.yield %m, %p : {self.type}, i64
    }} -> ({values}, {places})"""

    def parts(self, x):
        """The operators behind the input, and what the elements of the result are computed by."""
        all_, row = self.tensor(self.type), self.row_tensor(self.wide)
        lines, value = self.element("%a")
        ins = [(x, all_, "all", "%a")]

        def with_row(name):
            return [*ins, (name, row, "row", "%m")]

        if self.kind == "sum":
            return self.reduction("%s", "addf", "%zero", ins, lines, value), None
        if self.kind == "both":
            return (
                self.reduction("%s", "addf", "%zero", ins, lines, value)
                + self.reduction("%most", "maximumf", "%low", ins, lines, value)
            ), None
        if self.kind == "maximum":
            return self.reduction("%s", "maximumf", "%low", ins, lines, value), None
        if self.kind == "quantize":
            text = self.reduction("%m0", "minimumf", "%high", ins, lines, value) + self.reduction(
                "%s", "maximumf", "%low", ins, lines, value
            )
            return text, (
                [*with_row("%m0"), ("%s", row, "row", "%t")],
                [
                    *lines,
                    f"%width = arith.subf %t, %m : {self.wide}",
                    f"%scale = arith.addf %width, %eps : {self.wide}",
                    f"%above = arith.subf {value}, %m : {self.wide}",
                    f"%part = arith.divf %above, %scale : {self.wide}",
                    f"%y = arith.mulf %part, %levels : {self.wide}",
                ],
            )
        if self.kind.endswith("softmax"):
            exponent = [
                *lines,
                f"%d = arith.subf {value}, %m : {self.wide}",
                f"%e = math.exp %d : {self.wide}",
            ]
            text = self.reduction("%m0", "maximumf", "%low", ins, lines, value) + self.reduction(
                "%s", "addf", "%zero", with_row("%m0"), exponent, "%e"
            )
            operands = [*with_row("%m0"), ("%s", row, "row", "%t")]
            if self.kind == "softmax":
                return text, (operands, [*exponent, f"%y = arith.divf %e, %t : {self.wide}"])
            return text, (
                operands,
                [
                    *exponent[:-1],
                    f"%l = math.log %t : {self.wide}",
                    f"%y = arith.subf %d, %l : {self.wide}",
                ],
            )
        text, centred, operands = "", value, ins
        if self.kind == "layer_norm":
            text = self.reduction("%s", "addf", "%zero", ins, lines, value) + self.once(
                "%m0", "%s", [f"%q = arith.divf %v, %length : {self.wide}"], "%q"
            )
            operands, centred = with_row("%m0"), "%d"
            lines = [*lines, f"%d = arith.subf {value}, %m : {self.wide}"]
        text += self.reduction(
            "%v0",
            "addf",
            "%zero",
            operands,
            [*lines, f"%p = arith.mulf {centred}, {centred} : {self.wide}"],
            "%p",
        )
        text += self.once(
            "%i0",
            "%v0",
            [
                f"%q = arith.divf %v, %length : {self.wide}",
                f"%o = arith.addf %q, %eps : {self.wide}",
                f"%i = math.rsqrt %o : {self.wide}",
            ],
            "%i",
        )
        return text, (
            [*operands, ("%i0", row, "row", "%i")],
            [*lines, f"%y = arith.mulf {centred}, %i : {self.wide}"],
        )

    def module(self):
        all_, row, x, text = self.tensor(self.type), self.row_tensor(self.wide), "%x", ""
        if self.residual:
            x = "%h"
            text = self.generic(
                "%h",
                [("%x", all_, "all", "%a"), ("%r", all_, "all", "%b")],
                ("%ea", all_, self.type),
                [f"%t = arith.addf %a, %b : {self.type}"],
                "%t",
            )
        if self.mask == "given":
            text += self.generic(
                "%masked",
                [(x, all_, "all", "%a"), ("%mask", self.tensor("i1"), "all", "%b")],
                ("%ea", all_, self.type),
                [f"%t = arith.select %b, %a, %hidden : {self.type}"],
                "%t",
            )
            x = "%masked"
        if self.mask == "causal":
            text += self.generic(
                "%masked",
                [(x, all_, "all", "%a")],
                ("%ea", all_, self.type),
                [
                    f"%row = linalg.index {self.rank - 2} : index",
                    f"%col = linalg.index {self.rank - 1} : index",
                    "%last = arith.addi %row, %offset : index",
                    "%b = arith.cmpi sle, %col, %last : index",
                    f"%t = arith.select %b, %a, %hidden : {self.type}",
                ],
                "%t",
            )
            x = "%masked"
        if self.kind.startswith("arg"):
            text += self.extreme(x)
            results = list(self.asked)
            types = [self.row_tensor(self.type if result == "%s" else "i64") for result in results]
            elements = None
        else:
            body, elements = self.parts(x)
            text += body
            results, types = ["%s"], [row]
        if self.kind == "both":
            results, types = ["%s", "%most"], [row, row]
        if elements:
            operands, lines = elements
            value = "%y"
            if self.has_weights:
                more, weight = self.element("%g")
                operands = [
                    *operands,
                    ("%w", self.arguments()[1 + bool(self.residual)][1], "column", "%g"),
                ]
                lines, value = (
                    [*lines, *more, f"%yw = arith.mulf {value}, {weight} : {self.wide}"],
                    "%yw",
                )
            if self.has_factor and self.kind != "quantize":
                operands = [*operands, ("%f", self.tensor(self.wide, rows=True), "factor", "%k")]
                lines, value = [*lines, f"%yk = arith.mulf {value}, %k : {self.wide}"], "%yk"
            output, out, kind = all_, "%ea", self.type
            if self.kind == "quantize":
                output, out, kind = self.tensor("i8"), "%eq", "i8"
                lines, value = [*lines, f"%z = arith.fptoui {value} : {self.wide} to i8"], "%z"
            elif self.type != self.wide:
                lines, value = (
                    [*lines, f"%z = arith.truncf {value} : {self.wide} to {self.type}"],
                    "%z",
                )
            text += self.generic("%out", operands, (out, output, kind), lines, value)
            results, types = ["%out"], [output]
        if self.residual == "result":
            results, types = [*results, "%h"], [*types, all_]
        dims = "\n    ".join(
            f"%c{dim} = arith.constant {dim} : index\n    %d{dim} = tensor.dim %x, %c{dim} : {all_}"
            for dim in range(self.rank)
        )
        rows = ", ".join(f"%d{dim}" for dim in range(self.num_rows))
        every = rows if self.is_static else ", ".join(f"%d{dim}" for dim in range(self.rank))
        arguments = ", ".join(f"{name}: {kind}" for name, kind, _ in self.arguments())
        return f"""
func.func @f({arguments}) -> ({", ".join(types)}) {{
    {dims}
    %zero = arith.constant 0.0 : {self.wide}
    %start = arith.constant 1.5 : {self.wide}
    %levels = arith.constant 200.0 : {self.wide}
    %low = arith.constant {INFINITIES[self.wide][0]} : {self.wide}
    %high = arith.constant {INFINITIES[self.wide][1]} : {self.wide}
    %hidden = arith.constant -100.0 : {self.type}
    %eps = arith.constant 1.0e-5 : {self.wide}
    %offset = arith.subi %d{self.rank - 1}, %d{self.rank - 2} : index
    %count = arith.muli %d{self.num_rows}, {f"%d{self.rank - 1}" if self.is_along_two else "%c1"} : index
    %integer = arith.index_cast %count : index to i64
    %length = arith.sitofp %integer : i64 to {self.wide}
    %eq = tensor.empty({every}) : {self.tensor("i8")}
    %ea = tensor.empty({every}) : {all_}
    %er = tensor.empty({rows}) : {row}{text}
    return {", ".join(results)} : {", ".join(types)}
}}
"""

    def __str__(self):
        said = [
            self.device,
            self.kind,
            self.type,
            self.wide,
            "x".join(map(str, self.sizes)),
            "static" if self.is_static else "dynamic",
        ]
        return ", ".join(
            said
            + [
                name
                for name in (
                    "keeps",
                    "has_weights",
                    "has_factor",
                    "misalign",
                    "is_narrow",
                    "is_along_two",
                    "has_start",
                )
                if getattr(self, name)
            ]
            + ([f"residual {self.residual}"] if self.residual else [])
            + ([f"mask {self.mask}"] if self.mask else [])
        )


def special_rows(rows):
    """Rows with ties, of which some have NaN and infinities, or nothing else; bf16 as its bits."""
    rng = numpy.random.default_rng(rows.seed)
    shape = (math.prod(rows.sizes[:-1]), rows.sizes[-1])
    values = rng.integers(-3, 4, shape).astype(numpy.float32)
    for row in values:
        for special in (numpy.nan, numpy.inf, -numpy.inf):
            if rng.random() < 0.4:
                row[rng.random(row.shape) < rng.choice([0.02, 0.3, 1.0])] = special
    values = values.reshape(rows.sizes)
    if rows.type == "bf16":
        return (values.view(numpy.uint32) >> 16).astype(numpy.uint16)
    return values.astype({"f32": numpy.float32, "f16": numpy.float16}[rows.type])


def run(tests, rows):
    seed, label = rows.seed, f"seed {rows.seed}"
    if rows.kind.startswith("arg"):
        rows.data = tests.write(f"{seed}.npy", "")
        numpy.save(rows.data, special_rows(rows))
    tests.describe(label, str(rows))
    kernels, problems = harness.run_case(
        tests, rows, "--paths=simt,rows", *(["--misalign=2"] if rows.misalign else [])
    )
    if kernels is None:
        return problems
    if len(kernels) != 1 or "fallback" in kernels[0]:
        problems.append(f"expected one kernel of rows, but got {kernels}")
    return problems


def main():
    tests, options = harness.start(__doc__, harness.random_cases(16))
    harness.add_random_cases(tests, options, lambda seed: RowCase(random.Random(seed)), run)
    tests.finish()


if __name__ == "__main__":
    main()
