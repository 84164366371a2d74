#!/usr/bin/env python3
"""Runs random products whose factors are computed on the way in, against the reference.

Each factor comes from an elementwise operator or none: rounded to a narrower type, dequantized by scales (of
each row or column, of each group along k, or one for all) with and without zero points, with a bias and ReLU, or
gated by another tensor of any layout. Types (f32 rounded to tf32, cut off or neither), layouts, extents (static or not, aligned or not, now and then k = 0),
batches, epilogues and devices are random. Every case must run in one kernel, which is no fallback, with bounds and
race checks, threads in random order, and give the reference's numbers, which are rounded where the program rounds.

`--count=N` is the number of cases; `--seed=S --count=1` runs one again.
"""

import random

import harness
import tensor_cores

DEVICES = ("v100", "t4", "a100", "a100", "rtx3090", "h200")
#: Those with tf32.
NEW = ("a100", "rtx3090", "h200")
IDENTITY = "affine_map<(m, n) -> (m, n)>"


class Factor:
    """What one factor of a product is computed from, in `kind`, the type that is multiplied."""

    def __init__(self, rng, name, kind, space, is_transposed, batch):
        self.name, self.kind, self.space = name, kind, space
        inner = space + "k" if not is_transposed else "k" + space
        self.axes = batch + inner
        choices = ["none", "dequantize", "dequantize", "bias", "gate", "scale"]
        if kind != "f32":
            choices += ["round", "round"]
        self.how = rng.choice(choices)
        self.source = {"round": "f32", "dequantize": "i8"}.get(self.how, kind)
        self.has_zero_point = rng.random() < 0.5
        self.scale_type = rng.choice([kind, "f32"])
        # The axes of what the operator reads beside the factor.
        beside = {
            "dequantize": [space, space, "k", ""],
            "bias": ["k", space],
            "scale": ["", space],
            "gate": [self.axes, batch + inner[::-1], inner],
        }.get(self.how, [])
        self.beside = rng.choice(beside) if beside else None

    def properties(self):
        properties = {"how": self.how, "is_transposed": self.axes[-1] != "k"}
        if self.beside is not None:
            properties["beside"] = self.beside
        if self.how == "dequantize":
            properties |= {
                "has_zero_point": self.has_zero_point,
                "has_wide_scale": self.scale_type != self.kind,
            }
        return properties

    def is_behind_end(self):
        """Whether it is not zero where its source and all that lies along k are."""
        return self.beside in (self.space, "") and (
            self.how == "bias" or (self.how == "dequantize" and self.has_zero_point)
        )

    def operands(self):
        """(axes, type) of the tensors and scalars that are read, the factor first."""
        result = [(self.axes, self.source)]
        if self.how == "dequantize":
            result.append((self.beside, self.scale_type))
            if self.has_zero_point:
                result.append((self.beside, "i8"))
        elif self.beside is not None:
            result.append((self.beside, self.kind))
        return result

    def body(self):
        """Lines of %x0, %x1, … to %y."""
        kind = self.kind
        if self.how == "round":
            return [f"%y = arith.truncf %x0 : f32 to {kind}"]
        if self.how == "scale":
            return [f"%y = arith.mulf %x0, %x1 : {kind}"]
        if self.how == "bias":
            return [
                f"%b = arith.addf %x0, %x1 : {kind}",
                f"%z = arith.constant 0.0 : {kind}",
                f"%y = arith.maximumf %b, %z : {kind}",
            ]
        if self.how == "gate":
            return [f"%b = arith.negf %x1 : {kind}", f"%y = arith.mulf %x0, %b : {kind}"]
        scaled = self.scale_type
        lines = [f"%f = arith.sitofp %x0 : i8 to {scaled}"]
        value = "%f"
        if self.has_zero_point:
            lines += [
                "%w = arith.extsi %x0 : i8 to i32",
                "%z = arith.extsi %x2 : i8 to i32",
                "%d = arith.subi %w, %z : i32",
                f"%g = arith.sitofp %d : i32 to {scaled}",
            ]
            lines, value = lines[1:], "%g"
        if scaled == kind:
            return lines + [f"%y = arith.mulf {value}, %x1 : {kind}"]
        return lines + [
            f"%s = arith.mulf {value}, %x1 : {scaled}",
            f"%y = arith.truncf %s : {scaled} to {kind}",
        ]


class Product:
    def __init__(self, rng):
        self.device = rng.choice(DEVICES)
        self.kind = rng.choice(["f16", "f16", "bf16", "f32", "f32"])
        # Products of f32 may round what they multiply.
        self.precision = (
            rng.choice(["tf32", "tf32", "tf32-truncate", "f32", "f32"])
            if self.kind == "f32"
            else "f32"
        )
        if self.precision != "f32":
            self.device = rng.choice(NEW)
        self.batch = rng.choice(["", "", "", "b"])
        self.output = rng.choice(["f32", self.kind])
        while True:
            self.factors = [
                Factor(rng, "a", self.kind, "m", rng.random() < 0.3, self.batch),
                Factor(rng, "w", self.kind, "n", rng.random() < 0.5, self.batch),
            ]
            if any(factor.how != "none" for factor in self.factors):
                break
        self.is_static = rng.random() < 0.5
        alignment = rng.choice([16, 16, 8, 4, 2, 1])

        def extent():
            size = rng.choice(
                [rng.randint(1, 40), rng.randint(1, 200), rng.choice([1, 7, 13, 16, 31, 64, 127])]
            )
            return max(alignment, size // alignment * alignment)

        self.sizes = {"m": extent(), "n": extent(), "k": extent(), "b": 2}
        self.is_misaligned = rng.random() < 0.1
        self.has_bias = rng.random() < 0.5
        self.max_rows = self.sizes["m"]
        if rng.random() < 0.05:
            self.sizes["k"], self.is_static = 0, False

    def properties(self):
        properties = {
            name: getattr(self, name)
            for name in (
                "device",
                "kind",
                "precision",
                "batch",
                "output",
                "is_static",
                "is_misaligned",
                "has_bias",
            )
        }
        for factor in self.factors:
            properties |= {
                f"{factor.name}_{name}": value for name, value in factor.properties().items()
            }
            properties[f"{factor.name}_aligned"] = self.sizes[factor.axes[-1]] % 8 == 0
        properties["empty"] = self.sizes["k"] == 0
        # What both would compute behind the end of k adds to the sum, unless it is made zero.
        properties["has_both_behind_end"] = (
            all(f.is_behind_end() for f in self.factors) and self.sizes["k"] % 16 != 0
        )
        return properties

    def tensor(self, axes, kind):
        if not axes:
            return kind
        extents = {
            axis: self.sizes[axis] if self.is_static and axis != "m" else "?" for axis in "mnk"
        }
        extents["b"] = self.sizes["b"]
        return "tensor<" + "".join(f"{extents[axis]}x" for axis in axes) + f"{kind}>"

    def argument(self, axes, kind):
        if not axes:
            return "0.375" if kind != "i8" else "3"
        return "x".join(str(self.sizes[axis]) for axis in axes) + f"x{kind}"

    def operands(self):
        """Names, axes and types of all arguments."""
        result = []
        for factor in self.factors:
            for number, (axes, kind) in enumerate(factor.operands()):
                result.append((f"%{factor.name}{number}", axes, kind))
        return result + [("%bias", "n", "f32")]

    def arguments(self):
        return ",".join(self.argument(axes, kind) for _, axes, kind in self.operands())

    def dynamic(self, axes):
        return ", ".join(
            f"%{axis}" for axis in axes if axis == "m" or (axis in "nk" and not self.is_static)
        )

    def map(self, axes, of):
        return f"affine_map<({', '.join(of)}) -> ({', '.join(axes)})>"

    def prologue(self, factor):
        if factor.how == "none":
            return "", f"%{factor.name}0"
        result = self.tensor(factor.axes, factor.kind)
        operands = factor.operands()
        tensors = [number for number, (axes, _) in enumerate(operands) if axes]
        names = ", ".join(f"%{factor.name}{number}" for number in tensors)
        types = ", ".join(self.tensor(*operands[number]) for number in tensors)
        maps = ", ".join(
            [self.map(operands[number][0], factor.axes) for number in tensors]
            + [self.map(factor.axes, factor.axes)]
        )
        arguments = ", ".join(
            [f"%x{number}: {operands[number][1]}" for number in tensors] + [f"%o: {factor.kind}"]
        )
        body = "\n".join(f"      {line}" for line in factor.body())
        for number, (axes, _) in enumerate(operands):
            if not axes:
                body = body.replace(f"%x{number}", f"%{factor.name}{number}")
        iterators = ", ".join(['"parallel"'] * len(factor.axes))
        return (
            f"""
    %{factor.name}e = tensor.empty({self.dynamic(factor.axes)}) : {result}
    %{factor.name}p = linalg.generic {{indexing_maps = [{maps}], iterator_types = [{iterators}]}}
        ins({names} : {types}) outs(%{factor.name}e : {result}) {{
    ^bb0({arguments}):
{body}
      linalg.yield %y : {factor.kind}
    }} -> {result}""",
            f"%{factor.name}p",
        )

    def module(self):
        lhs, rhs = self.factors
        out, product = (
            self.tensor(self.batch + "mn", self.output),
            self.tensor(self.batch + "mn", "f32"),
        )
        loops = self.batch + "mnk"
        maps = ", ".join(self.map(axes, loops) for axes in (lhs.axes, rhs.axes, self.batch + "mn"))
        iterators = ", ".join(['"reduction"' if axis == "k" else '"parallel"' for axis in loops])

        def shape(axes):
            return (
                "["
                + ", ".join(
                    '"T"'
                    if axis == "m"
                    else str(self.sizes[axis])
                    if self.is_static or axis == "b"
                    else f'"{axis.upper()}"'
                    for axis in axes
                )
                + "]"
            )

        arguments = ", ".join(
            f"{name}: {self.tensor(axes, kind)}"
            + (f" {{ukernel.shape = {shape(axes)}}}" if axes else "")
            for name, axes, kind in self.operands()
        )
        ranges = [f"T = #ukernel.range<1 to {self.max_rows}>"]
        if not self.is_static:
            # The range says that tiles of n are few, too.
            ranges += [
                f"N = #ukernel.range<1 to {self.sizes['n']}>",
                f"K = #ukernel.range<1 to {max(self.sizes['k'], 1)}>",
            ]
        dims = []
        for axis in "mnk":
            name, axes, kind = next(operand for operand in self.operands() if axis in operand[1])
            dims.append(
                f"%c_{axis} = arith.constant {axes.index(axis)} : index\n    "
                f"%{axis} = tensor.dim {name}, %c_{axis} : {self.tensor(axes, kind)}"
            )
        (before_lhs, a), (before_rhs, w) = self.prologue(lhs), self.prologue(rhs)
        kind = self.kind
        body = (
            "%q = arith.mulf %x, %y : f32"
            if kind == "f32"
            else (
                f"%xe = arith.extf %x : {kind} to f32\n      %ye = arith.extf %y : {kind} to f32\n"
                "      %q = arith.mulf %xe, %ye : f32"
            )
        )
        lines, value = [], "%p"
        if self.has_bias:
            lines, value = ["%s = arith.addf %p, %v : f32"], "%s"
        if self.output != "f32":
            lines, value = [*lines, f"%t = arith.truncf {value} : f32 to {self.output}"], "%t"
        epilogue = "\n".join(f"      {line}" for line in lines)
        axes = self.batch + "mn"
        parallel = ", ".join(['"parallel"'] * len(axes))
        new_line = "\n    "
        return f"""
module attributes {{ukernel.symbols = {{{", ".join(ranges)}}}}} {{
  func.func @f({arguments}) -> {out} {{
    {new_line.join(dims)}
    %zero = arith.constant 0.0 : f32{before_lhs}{before_rhs}
    %e = tensor.empty({self.dynamic(axes)}) : {product}
    %init = linalg.fill ins(%zero : f32) outs(%e : {product}) -> {product}
    %product = linalg.generic {{indexing_maps = [{maps}], iterator_types = [{iterators}]}}
        ins({a}, {w} : {self.tensor(lhs.axes, kind)}, {self.tensor(rhs.axes, kind)}) outs(%init : {product}) {{
    ^bb0(%x: {kind}, %y: {kind}, %s: f32):
      {body}
      %t = arith.addf %s, %q : f32
      linalg.yield %t : f32
    }} -> {product}
    %o = tensor.empty({self.dynamic(axes)}) : {out}
    %result = linalg.generic {{indexing_maps = [{self.map(axes, axes)}, {self.map("n", axes)}, {self.map(axes, axes)}],
        iterator_types = [{parallel}]}} ins(%product, %bias : {product}, {self.tensor("n", "f32")}) outs(%o : {out}) {{
    ^bb0(%p: f32, %v: f32, %old: {self.output}):
{epilogue}
      linalg.yield {value} : {self.output}
    }} -> {out}
    return %result : {out}
  }}
}}
"""

    def __str__(self):
        factors = ", ".join(
            f"{factor.how} {factor.source} {factor.axes}"
            + (f" by {factor.beside or 'a scalar'}" if factor.beside is not None else "")
            for factor in self.factors
        )
        sizes = "x".join(str(self.sizes[axis]) for axis in "mnk")
        kind = self.kind if self.precision == "f32" else self.precision
        return (
            f"{self.device}, {kind} to {self.output}, {factors}, {sizes} "
            f"{'static' if self.is_static else 'dynamic'}{', misaligned' if self.is_misaligned else ''}"
        )


def run(tests, product):
    seed, label = product.seed, f"seed {product.seed}"
    path = tests.write(f"{seed}.mlir", product.module())
    flags = ["--misalign=4"] if product.is_misaligned else []
    if product.precision != "f32":
        flags += [
            f"--precision={product.precision}",
            f"--tolerance={tensor_cores.TOLERANCES[product.precision]}",
        ]
    tests.describe(label, str(product))
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
    if not all(checked["ok"] for checked in report["results"]):
        problems.append(
            f"relative errors {[checked['relative_error'] for checked in report['results']]}"
        )
    launches = harness.launched(report)
    if len(launches) != 1 or "fallback" in launches[0]:
        problems.append(f"expected one kernel, but got {launches}")
    return problems


def main():
    tests, options = harness.start(__doc__, harness.random_cases(28))
    harness.add_random_cases(tests, options, lambda seed: Product(random.Random(seed)), run)
    tests.finish()


if __name__ == "__main__":
    main()
