#!/usr/bin/env python3
"""Runs random products of every element type in the emulator, against the reference.

Factors of f32, f16, bf16 and i8 (with and without a sign), of one type or of two; results of the
accumulator's type or of a narrower one; casts in the product's own body or by operators before it;
sums that start from a scalar or a tensor; epilogues that compute and round in the result's type;
layouts, extents, batches, misaligned pointers; devices of every age, most without tensor cores.
Every case must run in one kernel, which is no fallback, with bounds and race checks, threads in random
order, and give the reference's numbers: those of integers exactly, of floats within the roundings of
their chain.

`--count=N` is the number of cases; `--seed=S --count=1` runs one again.
"""

import random

import harness

DEVICES = ("k80", "p100", "v100", "v100", "t4", "a100", "rtx3090", "h200")
FLOATS = ("f32", "f16", "bf16")
#: Types of lhs and rhs, and whether integers have a sign.
FACTORS = [(kind, kind) for kind in ("f16", "bf16", "i8", "i8")] + [
    ("f16", "i8"),
    ("bf16", "i8"),
    ("f32", "i8"),
    ("f32", "f16"),
    ("bf16", "f32"),
    ("f16", "bf16"),
    ("i8", "f16"),
]
EXACT_SUMS = "i32"
UNARY = {
    "relu": "%v = arith.maximumf %u, %zero : {t}",
    "tanh": "%v = math.tanh %u : {t}",
    "gelu": """%g0 = arith.mulf %u, %half : {t}
      %g1 = math.erf %u : {t}
      %g2 = arith.addf %g1, %one : {t}
      %v = arith.mulf %g0, %g2 : {t}""",
    "silu": """%x2 = arith.negf %u : {t}
      %x0 = math.exp %x2 : {t}
      %x1 = arith.addf %x0, %one : {t}
      %v = arith.divf %u, %x1 : {t}""",
}


def cast(source, kind, result, target, is_signed):
    """A cast from `kind` to the wider `target`, or none."""
    if kind == target:
        return None
    if kind == "i8":
        sign = "s" if is_signed else "u"
        operation = f"ext{sign}i" if target == "i32" else f"{sign}itofp"
    else:
        operation = "extf"
    return f"{result} = arith.{operation} {source} : {kind} to {target}"


class Product:
    """f(lhs, rhs, bias, residual, start)."""

    def __init__(self, rng):
        self.device = rng.choice(DEVICES)
        self.kinds = rng.choice(FACTORS)
        self.signs = rng.random() < 0.6, rng.random() < 0.6
        floats = [kind for kind in self.kinds if kind in FLOATS]
        self.accumulator = "f32" if floats else EXACT_SUMS
        # A program may sum in a narrow type where both factors are of it, or keep it by casts.
        narrow = floats[0] if len(set(floats)) == 1 and floats[0] != "f32" else None
        self.sum_type = narrow if narrow and rng.random() < 0.6 else self.accumulator
        self.layout = rng.choice(("nn", "nt", "tn", "tt"))
        self.batch = rng.choice((0, 0, 0, 2))
        self.casts_before = rng.random() < 0.4
        self.start = rng.choice(("zero", "zero", "constant", "scalar", "tensor"))
        self.epilogue = (
            rng.choice(("none", "bias", "residual", *UNARY))
            if self.accumulator == "f32"
            else (rng.choice(("none", "bias", "requantize")))
        )
        if self.accumulator == "f32":
            self.output = (
                self.sum_type if self.epilogue == "none" else rng.choice(("f32", "f16", "bf16"))
            )
            # The epilogue casts nothing wide: it rounds at once, then computes in the result's type.
            if self.sum_type != "f32" and self.output != "f32":
                self.output = self.sum_type
        else:
            self.output = {"requantize": "i8"}.get(self.epilogue, "i32")
        self.is_static = rng.random() < 0.5
        alignment = rng.choice((16, 8, 8, 4, 2, 1))

        def extent():
            size = rng.choice(
                (rng.randint(1, 40), rng.randint(1, 150), rng.choice((1, 7, 13, 16, 31, 64, 127)))
            )
            return max(alignment, size // alignment * alignment)

        self.m, self.n, self.k = extent(), extent(), extent()
        self.misalign = rng.choice((0, 0, 0, 0, 4, 8))
        self.range = (1, self.m) if rng.random() < 0.7 else (self.m + 1, 2 * self.m + 1)
        if rng.random() < 0.05:
            self.m = 0

    def properties(self):
        properties = {
            name: getattr(self, name)
            for name in (
                "device",
                "kinds",
                "sum_type",
                "layout",
                "batch",
                "casts_before",
                "start",
                "epilogue",
                "output",
                "is_static",
                "misalign",
            )
        }
        for name, kind, is_signed in zip(("lhs_sign", "rhs_sign"), self.kinds, self.signs):
            if kind == "i8":
                properties[name] = is_signed
        lhs, rhs, _ = self.axes()
        sizes = {"m": self.m, "n": self.n, "k": self.k}
        properties["aligned_rows"] = [sizes[axis] % 8 == 0 for axis in (lhs[-1], rhs[-1], "n")]
        properties["in_range"] = self.range[0] == 1
        return properties

    def tensor(self, axes, kind):
        extents = {
            "m": "?",
            "n": self.n if self.is_static else "?",
            "k": self.k if self.is_static else "?",
            "b": self.batch,
        }
        return "tensor<" + "".join(f"{extents[axis]}x" for axis in axes) + f"{kind}>"

    def shape(self, axes, kind):
        sizes = {"m": self.m, "n": self.n, "k": self.k, "b": self.batch}
        return "".join(f"{sizes[axis]}x" for axis in axes) + kind

    def axes(self):
        batch = "b" if self.batch else ""
        return (
            batch + ("km" if self.layout[0] == "t" else "mk"),
            batch + ("nk" if self.layout[1] == "t" else "kn"),
            batch + "mn",
        )

    def arguments(self):
        lhs, rhs, out = self.axes()
        start = "-0.75" if self.sum_type in FLOATS else "-3"
        return ",".join(
            (
                self.shape(lhs, self.kinds[0]),
                self.shape(rhs, self.kinds[1]),
                self.shape("n", self.bias_type()),
                self.shape(out, self.bias_type()),
                self.shape(out, self.sum_type) if self.start == "tensor" else start,
            )
        )

    def bias_type(self):
        return self.output if self.output in FLOATS else "i32"

    def multiplied_types(self):
        """The types that casts before the product give its factors: the sum's, or the other factor's."""
        if not self.casts_before:
            return self.kinds
        target = self.sum_type
        return tuple(kind if kind == target else target for kind in self.kinds)

    def body(self):
        kinds = self.multiplied_types()
        lines = []
        factors = []
        for name, kind, is_signed in zip("xy", kinds, self.signs):
            line = cast(f"%{name}", kind, f"%{name}w", self.sum_type, is_signed)
            lines += [line] if line else []
            factors.append(f"%{name}w" if line else f"%{name}")
        suffix = "i" if self.sum_type == "i32" else "f"
        lines += [
            f"%q = arith.mul{suffix} {factors[0]}, {factors[1]} : {self.sum_type}",
            f"%t = arith.add{suffix} %s, %q : {self.sum_type}",
            f"linalg.yield %t : {self.sum_type}",
        ]
        return kinds, "\n      ".join(lines)

    def before(self, name, axes, number, kinds):
        """An operator that casts a factor, where the product does not."""
        if kinds[number] == self.kinds[number]:
            return "", name
        source, target = self.tensor(axes, self.kinds[number]), self.tensor(axes, kinds[number])
        identity = ", ".join(axes)
        dynamic = [
            f"%{axis}" for axis in axes if axis == "m" or (axis in "nk" and not self.is_static)
        ]
        line = cast("%x", self.kinds[number], "%y", kinds[number], self.signs[number])
        return (
            f"""
    {name}_e = tensor.empty({", ".join(dynamic)}) : {target}
    {name}_w = linalg.generic {{indexing_maps = [affine_map<({identity}) -> ({identity})>,
        affine_map<({identity}) -> ({identity})>], iterator_types = [{", ".join(['"parallel"'] * len(axes))}]}}
        ins({name} : {source}) outs({name}_e : {target}) {{
    ^bb0(%x: {self.kinds[number]}, %o: {kinds[number]}):
      {line}
      linalg.yield %y : {kinds[number]}
    }} -> {target}""",
            name + "_w",
        )

    def epilogue_body(self):
        """Of %p: sum_type, %b and %r: bias_type, to the output's type."""
        target = self.output
        if target == "i8":
            return """%z = arith.addi %p, %b : i32
      %sh = arith.shrsi %z, %four : i32
      %lo = arith.maxsi %sh, %least : i32
      %hi = arith.minsi %lo, %most : i32
      %v = arith.trunci %hi : i32 to i8
      linalg.yield %v : i8"""
        if target == "i32":
            return "%v = arith.addi %p, %b : i32\n      linalg.yield %v : i32"
        lines, value = [], "%p"
        if self.sum_type != target:
            wide = self.sum_type == "f32"
            lines.append(
                f"%c = arith.{'truncf' if wide else 'extf'} %p : {self.sum_type} to {target}"
            )
            value = "%c"
        lines.append(f"%u = arith.addf {value}, %b : {target}")
        if self.epilogue in UNARY:
            lines.append(UNARY[self.epilogue].format(t=target))
        elif self.epilogue == "residual":
            lines.append(f"%v = arith.mulf %u, %r : {target}")
        else:
            lines.append(f"%v = arith.negf %u : {target}")
        return "\n      ".join(lines + [f"linalg.yield %v : {target}"])

    def module(self):
        lhs, rhs, out = self.axes()
        a, w = self.tensor(lhs, self.kinds[0]), self.tensor(rhs, self.kinds[1])
        product, result = self.tensor(out, self.sum_type), self.tensor(out, self.output)
        bias, residual = self.tensor("n", self.bias_type()), self.tensor(out, self.bias_type())
        kinds, body = self.body()
        start_type = product if self.start == "tensor" else self.sum_type
        batch = ["b"] if self.batch else []
        loops = ", ".join((*batch, "m", "n", "k"))
        maps = ", ".join(
            f"affine_map<({loops}) -> ({', '.join(axes)})>" for axes in (lhs, rhs, out)
        )
        outer = ", ".join((*batch, "m", "n"))
        identity = f"affine_map<({outer}) -> ({outer})>"
        before_a, lhs_name = self.before("%a", lhs, 0, kinds)
        before_w, rhs_name = self.before("%w", rhs, 1, kinds)
        zero = "0.0" if self.sum_type in FLOATS else "0"
        value = {"zero": zero, "constant": "1.1" if self.sum_type in FLOATS else "5"}.get(
            self.start, zero
        )
        scalar = "%start" if self.start == "scalar" else "%value"
        sizes = "%m" if self.is_static else "%m, %n"
        constants = f"%value = arith.constant {value} : {self.sum_type}"
        if self.output in FLOATS:
            constants += "".join(
                f"\n    %{name} = arith.constant {number} : {self.output}"
                for name, number in (("zero", "0.0"), ("half", "0.5"), ("one", "1.0"))
            )
        else:
            constants += "".join(
                f"\n    %{name} = arith.constant {number} : i32"
                for name, number in (("four", 4), ("least", -128), ("most", 127))
            )
        init = "%start" if self.start == "tensor" else "%init"
        fill = (
            ""
            if self.start == "tensor"
            else (
                f"%init = linalg.fill ins({scalar} : {self.sum_type}) outs(%e : {product}) -> {product}"
            )
        )
        loop_kinds = ", ".join(['"parallel"'] * (len(batch) + 2) + ['"reduction"'])
        last = "return %product : " + product
        if self.epilogue != "none":
            last = f"""%o = tensor.empty({sizes}) : {result}
    %result = linalg.generic {{indexing_maps = [{identity}, affine_map<({outer}) -> (n)>, {identity}, {identity}],
        iterator_types = [{", ".join(['"parallel"'] * (len(batch) + 2))}]}}
        ins(%product, %bias, %residual : {product}, {bias}, {residual}) outs(%o : {result}) {{
    ^bb0(%p: {self.sum_type}, %b: {self.bias_type()}, %r: {self.bias_type()}, %old: {self.output}):
      {self.epilogue_body()}
    }} -> {result}
    return %result : {result}"""
        dims = [
            '"T"'
            if axis == "m"
            else str({"n": self.n, "k": self.k, "b": self.batch}[axis])
            if self.is_static or axis == "b"
            else f'"{axis}"'
            for axis in lhs
        ]
        return f"""
module attributes {{ukernel.symbols = {{T = #ukernel.range<{self.range[0]} to {self.range[1]}>}}}} {{
  func.func @f(%a: {a} {{ukernel.shape = [{", ".join(dims)}]}}, %w: {w}, %bias: {bias}, %residual: {residual},
               %start: {start_type}) -> {product if self.epilogue == "none" else result} {{
    %cm = arith.constant {lhs.index("m")} : index
    %ck = arith.constant {lhs.index("k")} : index
    %cn = arith.constant {rhs.index("n")} : index
    %m = tensor.dim %a, %cm : {a}
    %k = tensor.dim %a, %ck : {a}
    %n = tensor.dim %w, %cn : {w}
    {constants}
    %e = tensor.empty({sizes}) : {product}
    {fill}{before_a}{before_w}
    %product = linalg.generic {{indexing_maps = [{maps}], iterator_types = [{loop_kinds}]}}
        ins({lhs_name}, {rhs_name} : {self.tensor(lhs, kinds[0])}, {self.tensor(rhs, kinds[1])}) outs({init} : {product}) {{
    ^bb0(%x: {kinds[0]}, %y: {kinds[1]}, %s: {self.sum_type}):
      {body}
    }} -> {product}
    {last}
  }}
}}
"""

    def __str__(self):
        return (
            f"{self.device}, {self.kinds[0]} by {self.kinds[1]} in {self.sum_type} to {self.output}, {self.layout}, "
            f"{self.epilogue}, start {self.start}, {'casts before, ' if self.casts_before else ''}"
            f"{self.batch or 1}x{self.m}x{self.n}x{self.k} {'static' if self.is_static else 'dynamic'}, "
            f"range {self.range[0]} to {self.range[1]}, misaligned by {self.misalign}"
        )


def run(tests, product):
    seed, label = product.seed, f"seed {product.seed}"
    tests.describe(label, str(product))
    path = tests.write(f"{seed}.mlir", product.module())
    flags = [f"--misalign={product.misalign}"] if product.misalign else []
    result = tests.tool(
        "ftuner-run",
        path,
        "--function=f",
        f"--args={product.arguments()}",
        f"--device={product.device}",
        "--check",
        *harness.CHECKED,
        f"--seed={seed % 2**31}",
        *flags,
    )
    report, problems = harness.report_of(result)
    if not report:
        return problems
    for checked in report["results"]:
        if not checked["ok"]:
            problems.append(f"relative error {checked['relative_error']}")
        if product.accumulator == EXACT_SUMS and checked["relative_error"] != 0:
            problems.append(
                f"expected the reference's integers, but got an error of {checked['relative_error']}"
            )
    launches = harness.launched(report)
    if product.m and (len(launches) != 1 or "_fallback_" in launches[0]):
        problems.append(f"expected one kernel that is no fallback, but got {launches}")
    return problems


def main():
    tests, options = harness.start(__doc__, harness.random_cases(34))
    harness.add_random_cases(tests, options, lambda seed: Product(random.Random(seed)), run)
    tests.finish()


if __name__ == "__main__":
    main()
