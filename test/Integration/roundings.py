#!/usr/bin/env python3
"""Roundings that a program writes, against NumPy operation by operation.

Chains of elementwise operators on f32, f16 and bf16, fused to one kernel or, as
results of their own, not; the same behind products of f32 and of f16, whose data
are such that every sum is exact. Kernels in the emulator and the reference must
both give NumPy's bits. Without a rounding, the results must lie outside of the
tolerance of --check.
"""

import json
import random
import re

import numpy as np

import harness

SEED = 20
SIZE = 4096
LENGTH = 12
TYPES = ("f32", "f16", "bf16")
MAP = "affine_map<(i) -> (i)>"
IDENTITY = "affine_map<(i, j) -> (i, j)>"


def round_to(values, kind):
    """float64 to the nearest values of a type, in float64; ties to even."""
    if kind == "bf16":
        mantissa, exponent = np.frexp(values)
        return np.ldexp(np.rint(mantissa * 256) / 256, exponent)
    with np.errstate(over="ignore"):
        return values.astype(
            {"f64": np.float64, "f32": np.float32, "f16": np.float16}[kind]
        ).astype(np.float64)


def to_npy(values, kind):
    if kind == "bf16":
        return (values.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)
    return values.astype({"f64": np.float64, "f32": np.float32, "f16": np.float16}[kind])


def from_npy(array, kind):
    if kind == "bf16":
        array = (array.astype(np.uint32) << 16).view(np.float32)
    return array.astype(np.float64)


class Chain:
    """A random program on one element of each argument, and what NumPy makes of it."""

    BINARY = {
        "addf": np.add,
        "subf": np.subtract,
        "mulf": np.multiply,
        "divf": np.divide,
        "maximumf": np.maximum,
    }
    UNARY = {"math.absf": np.abs, "arith.negf": np.negative}

    def __init__(self, rng, arguments, length):
        self.values = [(name, kind, data) for name, (kind, data) in arguments.items()]
        self.arguments = list(self.values)
        self.lines = []
        for index in range(length):
            name, kind, data = rng.choice(self.values[-2:])
            choice = rng.random()
            if choice < 0.4:
                self.cast(f"%v{index}", name, kind, data, rng)
            elif choice < 0.5:
                operation = rng.choice(list(self.UNARY))
                self.append(
                    f"%v{index}", kind, self.UNARY[operation](data), f"{operation} {{}}", [name]
                )
            else:
                operation = rng.choice(list(self.BINARY))
                other = rng.choice([value for value in self.values if value[1] == kind])
                with np.errstate(all="ignore"):
                    result = self.BINARY[operation](data, other[2])
                self.append(
                    f"%v{index}", kind, result, f"arith.{operation} {{}}, {{}}", [name, other[0]]
                )

    def cast(self, name, source, kind, data, rng):
        if kind == "f32":
            to = rng.choice(["f16", "bf16"])
            self.append(name, to, data, "arith.truncf {}", [source], f"f32 to {to}")
        else:
            self.append(name, "f32", data, "arith.extf {}", [source], f"{kind} to f32")

    def append(self, name, kind, data, text, operands, types=None):
        with np.errstate(all="ignore"):
            self.values.append((name, kind, round_to(data, kind)))
        self.lines.append((name, kind, text, operands, types or kind))

    def function(self, name, split):
        """A linalg.generic for each operation; all of their results, or the last."""
        kinds = {value[0]: value[1] for value in self.values}
        results = [line[0] for line in self.lines] if split else [self.lines[-1][0]]
        types = ", ".join(f"tensor<?x{kinds[result]}>" for result in results)
        arguments = ", ".join(f"{value[0]}: tensor<?x{value[1]}>" for value in self.arguments)
        text = f"func.func @{name}({arguments}) -> ({types}) {{\n  %c0 = arith.constant 0 : index\n"
        text += (
            f"  %n = tensor.dim {self.arguments[0][0]}, %c0 : tensor<?x{self.arguments[0][1]}>\n"
        )
        for result, kind, operation, operands, operation_types in self.lines:
            inputs = ", ".join(operands)
            input_types = ", ".join(f"tensor<?x{kinds[operand]}>" for operand in operands)
            elements = [f"%a{index}" for index in range(len(operands))]
            block = ", ".join(
                f"{element}: {kinds[operand]}" for element, operand in zip(elements, operands)
            )
            maps = ", ".join([MAP] * (len(operands) + 1))
            text += f"""  {result}_e = tensor.empty(%n) : tensor<?x{kind}>
  {result} = linalg.generic {{indexing_maps = [{maps}], iterator_types = ["parallel"]}}
      ins({inputs} : {input_types}) outs({result}_e : tensor<?x{kind}>) {{
  ^bb0({block}, %o: {kind}):
    %r = {operation.format(*elements)} : {operation_types}
    linalg.yield %r : {kind}
  }} -> tensor<?x{kind}>
"""
        return text + f"  return {', '.join(results)} : {types}\n}}\n"

    def expected(self, split):
        values = self.values[len(self.arguments) :]
        return values if split else values[-1:]


# Exact sums: multiples of 2^-5 of few bits, so that a product of 40 has at most
# 20 bits, and more than f16 or bf16 hold.
PRODUCT = """
func.func @{name}(%a: tensor<?x40x{operand}>, %b: tensor<40x48x{operand}>, %bias: tensor<48x{narrow}>) -> tensor<?x48xf32> {{
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %m = tensor.dim %a, %c0 : tensor<?x40x{operand}>
  %e = tensor.empty(%m) : tensor<?x48xf32>
  %i = linalg.fill ins(%zero : f32) outs(%e : tensor<?x48xf32>) -> tensor<?x48xf32>
  %p = linalg.matmul ins(%a, %b : tensor<?x40x{operand}>, tensor<40x48x{operand}>)
                     outs(%i : tensor<?x48xf32>) -> tensor<?x48xf32>
  %ne = tensor.empty(%m) : tensor<?x48x{narrow}>
  %s = linalg.generic {{indexing_maps = [{identity}, affine_map<(i, j) -> (j)>, {identity}],
                       iterator_types = ["parallel", "parallel"]}}
      ins(%p, %bias : tensor<?x48xf32>, tensor<48x{narrow}>) outs(%ne : tensor<?x48x{narrow}>) {{
  ^bb0(%x: f32, %y: {narrow}, %o: {narrow}):
    {body}
  }} -> tensor<?x48x{narrow}>
  %w = linalg.generic {{indexing_maps = [{identity}, {identity}], iterator_types = ["parallel", "parallel"]}}
      ins(%s : tensor<?x48x{narrow}>) outs(%e : tensor<?x48xf32>) {{
  ^bb0(%x: {narrow}, %o: f32):
    {widen}
  }} -> tensor<?x48xf32>
  return %w : tensor<?x48xf32>
}}
"""
ROUNDED = """%t = arith.truncf %x : f32 to {narrow}
    %r = arith.addf %t, %y : {narrow}
    linalg.yield %r : {narrow}"""
WIDENED = """%r = arith.extf %x : {narrow} to f32
    linalg.yield %r : f32"""
# Sums, whose accumulators are wide: of elements, of products, which are not
# rounded, of products by an operator of their own, which are, and of windows.
SUMS = """
func.func @sum(%x: tensor<?x64x{narrow}>, %y: tensor<?x64x{narrow}>) -> (tensor<?x{narrow}>, tensor<?x{narrow}>, tensor<?x{narrow}>, tensor<?x{narrow}>) {{
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : {narrow}
  %m = tensor.dim %x, %c0 : tensor<?x64x{narrow}>
  %e = tensor.empty(%m) : tensor<?x{narrow}>
  %e2 = tensor.empty(%m) : tensor<?x64x{narrow}>
  %i = linalg.fill ins(%zero : {narrow}) outs(%e : tensor<?x{narrow}>) -> tensor<?x{narrow}>
  %r0 = linalg.reduce {{ arith.addf }} ins(%x : tensor<?x64x{narrow}>) outs(%i : tensor<?x{narrow}>) dimensions = [1]
  %r1 = linalg.generic {{indexing_maps = [{identity}, {identity}, affine_map<(i, j) -> (i)>],
                        iterator_types = ["parallel", "reduction"]}}
      ins(%x, %y : tensor<?x64x{narrow}>, tensor<?x64x{narrow}>) outs(%i : tensor<?x{narrow}>) {{
  ^bb0(%a: {narrow}, %b: {narrow}, %o: {narrow}):
    %p = arith.mulf %a, %b : {narrow}
    %s = arith.addf %o, %p : {narrow}
    linalg.yield %s : {narrow}
  }} -> tensor<?x{narrow}>
  %xy = linalg.mul ins(%x, %y : tensor<?x64x{narrow}>, tensor<?x64x{narrow}>) outs(%e2 : tensor<?x64x{narrow}>) -> tensor<?x64x{narrow}>
  %r2 = linalg.reduce {{ arith.addf }} ins(%xy : tensor<?x64x{narrow}>) outs(%i : tensor<?x{narrow}>) dimensions = [1]
  %z = linalg.max ins(%x, %y : tensor<?x64x{narrow}>, tensor<?x64x{narrow}>) outs(%e2 : tensor<?x64x{narrow}>) -> tensor<?x64x{narrow}>
  %r3 = linalg.generic {{indexing_maps = [affine_map<(i, k, l) -> (i, k + l)>, affine_map<(i, k, l) -> (k, l)>, affine_map<(i, k, l) -> (i)>],
                        iterator_types = ["parallel", "reduction", "reduction"]}}
      ins(%z, %y4 : tensor<?x64x{narrow}>, tensor<4x61x{narrow}>) outs(%i : tensor<?x{narrow}>) {{
  ^bb0(%a: {narrow}, %b: {narrow}, %o: {narrow}):
    %p = arith.mulf %a, %b : {narrow}
    %s = arith.addf %o, %p : {narrow}
    linalg.yield %s : {narrow}
  }} -> tensor<?x{narrow}>
  return %r0, %r1, %r2, %r3 : tensor<?x{narrow}>, tensor<?x{narrow}>, tensor<?x{narrow}>, tensor<?x{narrow}>
}}
""".replace(
    "%y: tensor<?x64x{narrow}>) ->", "%y: tensor<?x64x{narrow}>, %y4: tensor<4x61x{narrow}>) ->"
)


class Test:
    def __init__(self, run):
        self.harness = run

    def execute(self, label, source, function, arguments, *flags):
        """Runs a function on (kind, float64 array) pairs; returns the report and its arrays."""
        items = []
        for index, (kind, data) in enumerate(arguments):
            path = self.harness.path(f"{label}_{index}.npy")
            np.save(path, to_npy(data, kind))
            items.append("x".join(map(str, (*data.shape, kind))) + "@" + path)
        folder = self.harness.path(f"{label}_results")
        answer = self.harness.tool(
            "ftuner-run",
            source,
            f"--function={function}",
            "--device=h200",
            "--args=" + ",".join(items),
            f"--save-dir={folder}",
            "--json",
            *flags,
        )
        if answer.returncode:
            raise RuntimeError(answer.stderr.strip())
        report = json.loads(answer.stdout)
        kinds = [result["element_type"] for result in report["results"]]
        return report, [
            from_npy(np.load(result["file"]), kind)
            for result, kind in zip(report["results"], kinds)
        ]

    def compare(self, label, source, function, arguments, expected):
        problems = []
        for executor in ("emulator", "reference"):
            flags = ["--check"] if executor == "emulator" else []
            report, results = self.execute(
                f"{label}_{executor}", source, function, arguments, f"--executor={executor}", *flags
            )
            for index, (result, wanted) in enumerate(zip(results, expected)):
                wrong = ~((result == wanted) | (np.isnan(result) & np.isnan(wanted)))
                if wrong.any():
                    where = np.argwhere(wrong)[0]
                    problems.append(
                        f"{executor}, result {index}: {wrong.sum()} of {wrong.size} elements differ, "
                        f"at {where} {result[tuple(where)]!r} instead of {wanted[tuple(where)]!r}"
                    )
        return problems

    def chains(self, index):
        rng = random.Random(SEED + index)
        data = np.random.default_rng(SEED + index).standard_normal((len(TYPES), SIZE))
        arguments = {
            f"%{kind}": (kind, round_to(values, kind)) for kind, values in zip(TYPES, data)
        }
        chain = Chain(rng, arguments, LENGTH)
        source = self.harness.write(
            f"chain{index}.mlir", chain.function("f", False) + chain.function("g", True)
        )
        problems = []
        for function, split in (("f", False), ("g", True)):
            expected = [value[2] for value in chain.expected(split)]
            problems += [
                f"{'split' if split else 'fused'}: {problem}"
                for problem in self.compare(
                    f"chain{index}{function}", source, function, list(arguments.values()), expected
                )
            ]
        return problems

    def products(self, operand, narrow):
        label = f"product_{operand}_{narrow}"
        fill = {"name": "f", "operand": operand, "narrow": narrow, "identity": IDENTITY}
        text = PRODUCT.format(
            body=ROUNDED.format(narrow=narrow), widen=WIDENED.format(narrow=narrow), **fill
        )
        source = self.harness.write(label + ".mlir", text)
        rng = np.random.default_rng(SEED)
        a, b = (rng.integers(-127, 128, shape) / 32 for shape in ((96, 40), (40, 48)))
        bias = round_to(rng.standard_normal(48), narrow)
        exact = a @ b
        expected = round_to(round_to(exact, narrow) + bias, narrow)
        arguments = [(operand, a), (operand, b), (narrow, bias)]
        problems = self.compare(label, source, "f", arguments, [expected])

        # What a dropped rounding would give must not pass.
        report, _ = self.execute(label + "_tolerance", source, "f", arguments, "--check")
        tolerance = report["results"][0]["tolerance"]
        for what, values in (
            ("both roundings", exact + bias),
            ("one rounding", round_to(exact + bias, narrow)),
        ):
            error = np.linalg.norm(values - expected) / np.linalg.norm(expected)
            if error <= tolerance:
                problems.append(
                    f"without {what} the error {error:.3g} is within the tolerance {tolerance:.3g}"
                )
        if operand == "f32" and narrow == "f16":
            problems += self.ptx(source)
        return problems

    def ptx(self, source):
        """Both roundings are instructions of the product's own kernels."""
        path = self.harness.path("roundings.ptx")
        answer = self.harness.tool(
            "ftuner-translate", source, "--ftuner-to-ptx", "--device=h200", "-o", path
        )
        if answer.returncode:
            return [answer.stderr.strip()]
        with open(path) as file:
            kernels = file.read().split(".entry")[1:]
        problems = []
        for kernel in kernels:
            roundings = len(re.findall(r"cvt\.rn\.f16(?:x2)?\.f32", kernel))
            sums = len(re.findall(r"add(?:\.rn)?\.f16(?:x2)?", kernel))
            if roundings == 0 or roundings + sums < 2:
                problems.append(
                    f"expected two roundings to f16 in {kernel.split('(')[0].strip()}, but got "
                    f"{roundings} and {sums} sums in f16"
                )
        return problems if kernels else ["no kernels"]

    def sums(self, narrow):
        source = self.harness.write(
            f"sums_{narrow}.mlir", SUMS.format(narrow=narrow, identity=IDENTITY)
        )
        # Exact in f32.
        rng = np.random.default_rng(SEED)
        x = round_to(rng.integers(-15, 16, (32, 64)) / 80, narrow)
        y, y4 = (rng.integers(-15, 16, shape) / 8 for shape in ((32, 64), (4, 61)))

        larger = np.maximum(x, y)
        windows = sum(larger[:, k : k + 61] @ y4[k] for k in range(4))
        sums = [x.sum(1), (x * y).sum(1), round_to(x * y, narrow).sum(1), windows]
        expected = [round_to(total, narrow) for total in sums]
        return self.compare(
            f"sums_{narrow}", source, "sum", [(narrow, x), (narrow, y), (narrow, y4)], expected
        )


def main():
    run, _ = harness.start(__doc__)
    test = Test(run)
    for index in range(3 * harness.SCALE):
        run.add(f"chain {index}", test.chains, index)
    for operand in ("f32", "f16"):
        for narrow in ("f16", "bf16"):
            run.add(f"product of {operand} rounded to {narrow}", test.products, operand, narrow)
    for narrow in ("f16", "bf16"):
        run.add(f"sums of {narrow}", test.sums, narrow)
    run.finish()


if __name__ == "__main__":
    main()
