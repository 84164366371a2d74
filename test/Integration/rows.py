#!/usr/bin/env python3
"""Runs random reductions of rows in the emulator, against the reference.

Softmax, log-softmax, norms, sums and maxima of f32, f16 and bf16 with sums in f32, as importers write them: with and
without unit dimensions, of two to four dimensions, behind the sum with a residual which others may use, too, with
weights along the row, a factor of each row and masks, two reductions of one tensor, of static and dynamic lengths, none included; bounds and race checks,
threads in random order, addresses off their alignment. Each must be one kernel of rows.

`--count=N` is the number of cases; `--seed=S --count=1` runs one again.
"""

import random

import harness

DEVICES = ("v100", "a100", "h200")


class Rows:
    def __init__(self, rng):
        self.device = rng.choice(DEVICES)
        self.kind = rng.choice(["softmax", "log_softmax", "layer_norm", "rms_norm", "sum", "maximum", "both"])
        self.type = rng.choice(["f32", "f32", "f16", "bf16"])
        self.rank = rng.choice([2, 3, 4])
        self.keeps = rng.random() < 0.5
        self.residual = rng.choice([None, "inner", "result"])
        self.has_weights = self.kind.endswith("norm") and rng.random() < 0.7
        self.has_factor = rng.random() < 0.3
        self.has_mask = self.kind.endswith("softmax") and rng.random() < 0.4
        self.is_static = rng.random() < 0.4
        self.misalign = rng.random() < 0.3
        length = rng.choice([1, 7, 32, 33, 64, 100, 128, 257, 520, 1000, 2048, rng.randint(1, 700)])
        if not self.is_static and self.kind in ("sum", "softmax") and rng.random() < 0.1:
            length = 0
        self.sizes = [rng.choice([1, 2, 3]) for _ in range(self.rank - 2)] + [rng.choice([1, 2, 5, 9, 17]), length]

    def properties(self):
        names = ("device", "kind", "type", "rank", "keeps", "residual", "has_weights", "has_factor", "has_mask",
                 "is_static", "misalign")
        length = self.sizes[-1]
        return {name: getattr(self, name) for name in names} | {
            "length": "none" if length == 0 else "short" if length <= 32 else "long" if length > 512 else "middle",
            "even": length % 4 == 0}

    # Types and maps.

    def tensor(self, kind, unit=False, rows=False):
        dims = ["?"] * (self.rank - 1)
        if unit:
            dims.append("1")
        elif not rows:
            dims.append(str(self.sizes[-1]) if self.is_static else "?")
        return f"tensor<{'x'.join([*dims, kind])}>"

    def row_tensor(self, kind):
        return self.tensor(kind, unit=self.keeps, rows=True)

    def map(self, what):
        loops = ["a", "b", "c"][:self.rank - 1]
        results = {"all": [*loops, "r"], "row": [*loops, "0"] if self.keeps else loops, "column": ["r"], "factor": loops}
        return f"affine_map<({', '.join([*loops, 'r'])}) -> ({', '.join(results[what])})>"

    def arguments(self):
        """Name and type of each argument, and what it is called with."""
        shape = "x".join(map(str, self.sizes))
        found = [("%x", self.tensor(self.type), f"{shape}x{self.type}")]
        if self.residual:
            found.append(("%r", self.tensor(self.type), f"{shape}x{self.type}"))
        if self.has_weights:
            column = str(self.sizes[-1]) if self.is_static else "?"
            found.append(("%w", f"tensor<{column}x{self.type}>", f"{self.sizes[-1]}x{self.type}"))
        if self.has_factor:
            rows = "x".join(map(str, self.sizes[:-1]))
            found.append(("%f", self.tensor("f32", rows=True), f"{rows}xf32"))
        if self.has_mask:
            found.append(("%mask", self.tensor("i1"), f"{shape}xi1"))
        return found

    # Operators.

    def element(self, name):
        """Lines that make f32 of an element, and its name then."""
        return ([], name) if self.type == "f32" else ([f"{name}32 = arith.extf {name} : {self.type} to f32"], f"{name}32")

    def generic(self, result, operands, output, lines, value, is_reduction=False, of_rows=False):
        """One linalg.generic: `operands` are of (value, type, access, argument), `output` of (value, type, element)."""
        kinds = ["parallel"] * self.rank
        if is_reduction:
            kinds[-1] = "reduction"
        maps = [self.map(access) for _, _, access, _ in operands] + [self.map("row" if is_reduction else "all")]
        if of_rows and self.keeps:
            loops = ", ".join(["a", "b", "c"][:self.rank - 1] + ["u"])
            maps = [f"affine_map<({loops}) -> ({loops})>"] * (len(operands) + 1)
        elif of_rows:
            loops = ", ".join(["a", "b", "c"][:self.rank - 1])
            maps, kinds = [f"affine_map<({loops}) -> ({loops})>"] * (len(operands) + 1), kinds[:-1]
        names = [argument for _, _, _, argument in operands] + ["%acc"]
        types = [tensor.rstrip(">").split("x")[-1] for _, tensor, _, _ in operands] + [output[2]]
        body = "\n      ".join([*lines, f"linalg.yield {value} : {output[2]}"])
        return f"""
    {result} = linalg.generic {{indexing_maps = [{', '.join(maps)}],
        iterator_types = [{', '.join(f'"{kind}"' for kind in kinds)}]}}
        ins({', '.join(value for value, _, _, _ in operands)} : {', '.join(tensor for _, tensor, _, _ in operands)})
        outs({output[0]} : {output[1]}) {{
    ^bb0({', '.join(f'{name}: {kind}' for name, kind in zip(names, types))}):
      {body}
    }} -> {output[1]}"""

    def reduction(self, result, operation, start, operands, lines, value):
        row = self.row_tensor("f32")
        return (f"\n    {result}s = linalg.fill ins({start} : f32) outs(%er : {row}) -> {row}" + self.generic(
            result, operands, (f"{result}s", row, "f32"),
            [*lines, f"%n = arith.{operation} %acc, {value} : f32"], "%n", is_reduction=True))

    def once(self, result, operand, lines, value):
        row = self.row_tensor("f32")
        return self.generic(result, [(operand, row, "row", "%v")], ("%er", row, "f32"), lines, value, of_rows=True)

    def parts(self, x):
        """The operators behind the input, and what the elements of the result are computed by."""
        all_, row = self.tensor(self.type), self.row_tensor("f32")
        lines, value = self.element("%a")
        ins = [(x, all_, "all", "%a")]

        def with_row(name):
            return [*ins, (name, row, "row", "%m")]

        if self.kind == "sum":
            return self.reduction("%s", "addf", "%zero", ins, lines, value), None
        if self.kind == "both":
            return (self.reduction("%s", "addf", "%zero", ins, lines, value)
                    + self.reduction("%most", "maximumf", "%low", ins, lines, value)), None
        if self.kind == "maximum":
            return self.reduction("%s", "maximumf", "%low", ins, lines, value), None
        if self.kind.endswith("softmax"):
            exponent = [*lines, f"%d = arith.subf {value}, %m : f32", "%e = math.exp %d : f32"]
            text = self.reduction("%m0", "maximumf", "%low", ins, lines, value) + self.reduction(
                "%s", "addf", "%zero", with_row("%m0"), exponent, "%e")
            operands = [*with_row("%m0"), ("%s", row, "row", "%t")]
            if self.kind == "softmax":
                return text, (operands, [*exponent, "%y = arith.divf %e, %t : f32"])
            return text, (operands, [*exponent[:-1], "%l = math.log %t : f32", "%y = arith.subf %d, %l : f32"])
        text, centred, operands = "", value, ins
        if self.kind == "layer_norm":
            text = self.reduction("%s", "addf", "%zero", ins, lines, value) + self.once(
                "%m0", "%s", ["%q = arith.divf %v, %length : f32"], "%q")
            operands, centred = with_row("%m0"), "%d"
            lines = [*lines, f"%d = arith.subf {value}, %m : f32"]
        text += self.reduction("%v0", "addf", "%zero", operands, [*lines, f"%p = arith.mulf {centred}, {centred} : f32"], "%p")
        text += self.once("%i0", "%v0", ["%q = arith.divf %v, %length : f32", "%o = arith.addf %q, %eps : f32",
                                         "%i = math.rsqrt %o : f32"], "%i")
        return text, ([*operands, ("%i0", row, "row", "%i")], [*lines, f"%y = arith.mulf {centred}, %i : f32"])

    def module(self):
        all_, row, x, text = self.tensor(self.type), self.row_tensor("f32"), "%x", ""
        if self.residual:
            x = "%h"
            text = self.generic("%h", [("%x", all_, "all", "%a"), ("%r", all_, "all", "%b")], ("%ea", all_, self.type),
                                [f"%t = arith.addf %a, %b : {self.type}"], "%t")
        if self.has_mask:
            text += self.generic("%masked", [(x, all_, "all", "%a"), ("%mask", self.tensor("i1"), "all", "%b")],
                                 ("%ea", all_, self.type), [f"%t = arith.select %b, %a, %hidden : {self.type}"], "%t")
            x = "%masked"
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
                operands = [*operands, ("%w", self.arguments()[1 + bool(self.residual)][1], "column", "%g")]
                lines, value = [*lines, *more, f"%yw = arith.mulf {value}, {weight} : f32"], "%yw"
            if self.has_factor:
                operands = [*operands, ("%f", self.tensor("f32", rows=True), "factor", "%k")]
                lines, value = [*lines, f"%yk = arith.mulf {value}, %k : f32"], "%yk"
            if self.type != "f32":
                lines, value = [*lines, f"%z = arith.truncf {value} : f32 to {self.type}"], "%z"
            text += self.generic("%out", operands, ("%ea", all_, self.type), lines, value)
            results, types = ["%out"], [all_]
        if self.residual == "result":
            results, types = [*results, "%h"], [*types, all_]
        dims = "\n    ".join(f"%c{dim} = arith.constant {dim} : index\n    "
                             f"%d{dim} = tensor.dim %x, %c{dim} : {all_}" for dim in range(self.rank))
        rows = ", ".join(f"%d{dim}" for dim in range(self.rank - 1))
        every = rows if self.is_static else f"{rows}, %d{self.rank - 1}"
        arguments = ", ".join(f"{name}: {kind}" for name, kind, _ in self.arguments())
        return f"""
func.func @f({arguments}) -> ({', '.join(types)}) {{
    {dims}
    %zero = arith.constant 0.0 : f32
    %low = arith.constant 0xFF800000 : f32
    %hidden = arith.constant -100.0 : {self.type}
    %eps = arith.constant 1.0e-5 : f32
    %integer = arith.index_cast %d{self.rank - 1} : index to i64
    %length = arith.sitofp %integer : i64 to f32
    %ea = tensor.empty({every}) : {all_}
    %er = tensor.empty({rows}) : {row}{text}
    return {', '.join(results)} : {', '.join(types)}
}}
"""

    def __str__(self):
        said = [self.device, self.kind, self.type, "x".join(map(str, self.sizes)), "static" if self.is_static else "dynamic"]
        return ", ".join(said + [name for name in ("keeps", "has_weights", "has_factor", "has_mask", "misalign") if getattr(self, name)]
                         + ([f"residual {self.residual}"] if self.residual else []))


def run(tests, rows):
    seed, label = rows.seed, f"seed {rows.seed}"
    tests.describe(label, str(rows))
    path = tests.write(f"{seed}.mlir", rows.module())
    arguments = ",".join(argument for _, _, argument in rows.arguments())
    result = tests.tool("ftuner-run", path, "--function=f", f"--args={arguments}", f"--device={rows.device}",
                        "--paths=simt,rows", "--check", *harness.CHECKED, f"--seed={seed % 2**31}", "--max-kernels=3",
                        *(["--misalign=2"] if rows.misalign else []))
    report, problems = harness.report_of(result)
    if not report:
        return problems
    if not all(checked["ok"] for checked in report["results"]):
        problems.append(f"relative errors {[checked['relative_error'] for checked in report['results']]}")
    kernels = [launch["kernel"] for launch in report["launches"]]
    if len(kernels) != 1 or "fallback" in kernels[0]:
        problems.append(f"expected one kernel of rows, but got {kernels}")
    return problems


def main():
    tests, options = harness.start(__doc__, harness.random_cases(16))
    harness.add_random_cases(tests, options, lambda seed: Rows(random.Random(seed)), run)
    tests.finish()


if __name__ == "__main__":
    main()
