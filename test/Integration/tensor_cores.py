#!/usr/bin/env python3
"""Runs random products on tensor cores in the emulator, against the reference.

Every case has its own element types (f16, bf16, i8, f32 rounded to tf32, f16 or bf16 beside i8), layout of
both factors, epilogue, extents (static or not, with alignments of 1 to 16 elements, now and then 0 or beyond the
declared range) and device. It must run in one kernel, with bounds and race checks, threads in random order, and
give the reference's numbers; on aligned sizes that one must be of a path for tensor cores, unless the plan says
that another is faster.

`--count=N` is the number of cases; `--seed=S --count=1` runs one again.
"""

import json
import random

import harness

#: Devices by what their tensor cores multiply.
OLD = ("t4", "a100", "rtx3090", "l4", "h200", "b200")
NEW = OLD[1:]
DEVICES = {"f16": OLD, "bf16": NEW, "i8": OLD, "tf32": NEW, "f16i8": NEW, "bf16i8": NEW}
#: Of lhs, rhs and the sum.
TYPES = {"f16": ("f16", "f16", "f32"), "bf16": ("bf16", "bf16", "f32"), "i8": ("i8", "i8", "i32"),
         "tf32": ("f32", "f32", "f32"), "f16i8": ("f16", "i8", "f32"), "bf16i8": ("i8", "bf16", "f32")}
LAYOUTS = ("nn", "nt", "tn", "tt")
IDENTITY = "affine_map<(m, n) -> (m, n)>"


class Product:
    """f(lhs, rhs, bias, residual): a product, an epilogue, and an output."""

    def __init__(self, rng):
        self.kind = rng.choice(list(DEVICES))
        self.lhs, self.rhs, self.sum = TYPES[self.kind]
        self.device = rng.choice(DEVICES[self.kind])
        self.layout = "nt" if self.kind == "i8" else rng.choice(LAYOUTS)
        self.wide = self.lhs if self.lhs != "i8" else self.rhs
        self.output = self.sum if self.kind == "i8" else rng.choice(["f32", self.wide])
        self.epilogue = "none" if self.kind == "i8" else rng.choice(["none", "bias", "residual"])
        self.casts = [rng.choice(["extsi", "extui"]) for _ in range(2)]
        self.is_static = rng.random() < 0.5
        alignment = rng.choice([16, 8, 8, 4, 2, 1])

        def extent():
            size = rng.choice([rng.randint(1, 40), rng.randint(1, 300), rng.choice([1, 7, 13, 16, 31, 64, 127, 257])])
            return max(alignment, size // alignment * alignment)

        self.m, self.n, self.k = extent(), extent(), extent()
        self.is_misaligned = rng.random() < 0.1
        # Sizes beyond the range are right, too.
        self.range = (1, self.m) if rng.random() < 0.7 else (self.m + 1, 2 * self.m + 1)
        if rng.random() < 0.05:
            self.m = 0

    def shape(self, axes):
        return [{"m": self.m, "n": self.n, "k": self.k}[axis] for axis in axes]

    def tensor(self, axes, kind):
        extents = {"m": "?", "n": self.n if self.is_static else "?", "k": self.k if self.is_static else "?"}
        return "tensor<" + "".join(f"{extents[axis]}x" for axis in axes) + f"{kind}>"

    def factors(self):
        lhs = "km" if self.layout[0] == "t" else "mk"
        rhs = "nk" if self.layout[1] == "t" else "kn"
        return lhs, rhs

    def arguments(self):
        lhs, rhs = self.factors()
        shapes = [(self.shape(lhs), self.lhs), (self.shape(rhs), self.rhs),
                  ([self.n], self.wide), ([self.m, self.n], self.output)]
        return ",".join("x".join(map(str, shape)) + f"x{kind}" for shape, kind in shapes)

    def epilogue_lines(self):
        """Of %p: sum, %b: wide, %r: output, to %y: output."""
        lines, value = [], "%p"
        if self.epilogue != "none":
            bias = "%b"
            if self.wide != "f32":
                lines.append(f"%be = arith.extf %b : {self.wide} to f32")
                bias = "%be"
            lines += [f"%pb = arith.addf %p, {bias} : f32", "%pr = arith.maximumf %pb, %zero : f32"]
            value = "%pr"
        if self.epilogue == "residual":
            residual = "%r"
            if self.output != "f32":
                lines.append(f"%re = arith.extf %r : {self.output} to f32")
                residual = "%re"
            lines.append(f"%pe = arith.mulf {value}, {residual} : f32")
            value = "%pe"
        if self.output == self.sum:
            return lines, value
        return lines + [f"%y = arith.truncf {value} : f32 to {self.output}"], "%y"

    def cast(self, number, name, kind):
        """A factor in the sum's type."""
        if kind == self.sum:
            return ""
        if kind == "i8":
            operation = self.casts[number] if self.sum == "i32" else {"extsi": "sitofp", "extui": "uitofp"}[
                self.casts[number]]
        else:
            operation = "extf"
        return f"%{name}e = arith.{operation} %{name} : {kind} to {self.sum}"

    def factor(self, name, kind):
        return f"%{name}" if kind == self.sum else f"%{name}e"

    def module(self):
        lhs, rhs = self.factors()
        a, w = self.tensor(lhs, self.lhs), self.tensor(rhs, self.rhs)
        product, out, bias = self.tensor("mn", self.sum), self.tensor("mn", self.output), self.tensor("n", self.wide)
        suffix = "i" if self.sum == "i32" else "f"
        zero = "0" if self.sum == "i32" else "0.0"
        sizes = "%m" if self.is_static else "%m, %n"
        maps = ", ".join(f"affine_map<(m, n, k) -> ({', '.join(axes)})>" for axes in (lhs, rhs, "mn"))
        lines, value = self.epilogue_lines()
        epilogue = "\n".join(f"      {line}" for line in lines)
        dims = ['"T"' if axis == "m" else str({"n": self.n, "k": self.k}[axis]) if self.is_static else '"' + axis + '"'
                for axis in lhs]
        return f"""
module attributes {{ukernel.symbols = {{T = #ukernel.range<{self.range[0]} to {self.range[1]}>}}}} {{
  func.func @f(%a: {a} {{ukernel.shape = [{", ".join(dims)}]}}, %w: {w}, %bias: {bias}, %residual: {out}) -> {out} {{
    %cm = arith.constant {lhs.index("m")} : index
    %cn = arith.constant {rhs.index("n")} : index
    %m = tensor.dim %a, %cm : {a}
    %n = tensor.dim %w, %cn : {w}
    %zero = arith.constant {zero} : {self.sum}
    %e = tensor.empty({sizes}) : {product}
    %init = linalg.fill ins(%zero : {self.sum}) outs(%e : {product}) -> {product}
    %product = linalg.generic {{indexing_maps = [{maps}],
        iterator_types = ["parallel", "parallel", "reduction"]}}
        ins(%a, %w : {a}, {w}) outs(%init : {product}) {{
    ^bb0(%x: {self.lhs}, %y: {self.rhs}, %s: {self.sum}):
      {self.cast(0, "x", self.lhs)}
      {self.cast(1, "y", self.rhs)}
      %q = arith.mul{suffix} {self.factor("x", self.lhs)}, {self.factor("y", self.rhs)} : {self.sum}
      %t = arith.add{suffix} %s, %q : {self.sum}
      linalg.yield %t : {self.sum}
    }} -> {product}
    %o = tensor.empty({sizes}) : {out}
    %result = linalg.generic {{indexing_maps = [{IDENTITY}, affine_map<(m, n) -> (n)>, {IDENTITY}, {IDENTITY}],
        iterator_types = ["parallel", "parallel"]}}
        ins(%product, %bias, %residual : {product}, {bias}, {out}) outs(%o : {out}) {{
    ^bb0(%p: {self.sum}, %b: {self.wide}, %r: {self.output}, %old: {self.output}):
{epilogue}
      linalg.yield {value} : {self.output}
    }} -> {out}
    return %result : {out}
  }}
}}
"""

    def __str__(self):
        extents = "static" if self.is_static else "dynamic"
        return (f"{self.device}, {self.kind} to {self.output}, {self.layout}, {self.epilogue}, "
                f"{self.m}x{self.n}x{self.k} {extents}, range {self.range[0]} to {self.range[1]}"
                f"{', misaligned' if self.is_misaligned else ''}")


def run(tests, seed):
    product = Product(random.Random(seed))
    label = f"seed {seed}"
    path = tests.write(f"{seed}.mlir", product.module())
    flags = ["--precision=tf32"] if product.kind == "tf32" else []
    compile_flags = [*flags, f"--device={product.device}"]
    if product.is_misaligned:
        flags.append(f"--misalign={ {'f16': 2, 'bf16': 2, 'i8': 1, 'f32': 4}[product.lhs] }")
    if product.kind == "tf32":
        # Each factor is off by up to 2^-11, and sums of few products cancel.
        flags.append("--tolerance=2e-3")
    result = tests.tool("ftuner-run", path, "--function=f", f"--args={product.arguments()}",
                        f"--device={product.device}", "--executor=emulator", "--check", "--check-bounds",
                        "--check-races", "--thread-order=shuffled", f"--seed={seed % 2**31}", "--json", *flags)
    tests.describe(label, str(product))
    problems = [line for line in result.stderr.splitlines() if "error:" in line][:3]
    reports = [json.loads(line) for line in result.stdout.splitlines() if line.startswith("{")]
    if result.returncode != 0 or len(reports) != 1:
        return problems + [f"exit {result.returncode}", result.stdout[-400:]]
    (report,) = reports
    if not all(checked["ok"] for checked in report["results"]):
        problems.append(f"relative errors {[checked['relative_error'] for checked in report['results']]}")
    if product.m == 0:
        return problems
    launches = [launch["kernel"] for launch in report["launches"]]
    if len(launches) != 1:
        return problems + [f"expected one kernel, but got {launches}"]
    listing = tests.tool("ftuner-translate", path, "--ftuner-to-ptx", *compile_flags)
    if listing.returncode != 0:
        return problems + [listing.stderr[:400]]
    entry = listing.stdout[listing.stdout.index(f".entry {launches[0]}("):]
    body = entry[:entry.find(".entry", 1)] if ".entry" in entry[1:] else entry
    if "mma.sync" not in body:
        # The path on the CUDA cores may be faster for a size.
        if ".entry" not in listing.stdout or "mma.sync" not in listing.stdout:
            problems.append("expected kernels for tensor cores")
        tests.describe(label, f"{product}, on CUDA cores")
    return problems


def main():
    tests, options = harness.start(__doc__, {
        "--count": {"type": int, "default": 48},
        "--seed": {"type": int, "help": "of the first case; others follow"},
    })
    first = options.seed if options.seed is not None else harness.SEED
    for index in range(options.count):
        tests.add(f"seed {first + index}", run, tests, first + index)
    tests.finish()


if __name__ == "__main__":
    main()
