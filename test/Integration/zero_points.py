#!/usr/bin/env python3
"""Runs random quantized products with zero points in the emulator, against the reference: exactly.

Named operators and bodies of their own (signs of both factors, one zero point or two, constants or arguments,
batches, requantization behind them), all layouts, odd extents, k = 0, bounds and race checks, threads in random
order. The product must be a uKernel.

`--count=N` is the number of cases; `--seed=S --count=1` runs one again.
"""

import random

import harness

DEVICES = ("v100", "t4", "a100", "h200")


class Product:
    def __init__(self, rng):
        self.device = rng.choice(DEVICES)
        self.form = rng.choice(["named", "named", "batch", "generic", "generic"])
        self.layout = rng.choice(["nn", "nt", "tn", "tt"]) if self.form == "generic" else "nn"
        self.casts = [
            rng.choice(["extsi", "extui"]) if self.form == "generic" else "extsi" for _ in range(2)
        ]
        self.has = (
            rng.choice([(True, True), (True, False), (False, True)])
            if self.form == "generic"
            else (True, True)
        )
        self.points = [rng.choice(["0", str(rng.randint(-128, 255)), None]) for _ in range(2)]
        self.requantizes = rng.random() < 0.5
        self.is_static = rng.random() < 0.5

        def extent():
            return rng.choice([1, 7, 16, 48, 64, rng.randint(1, 100), 16 * rng.randint(1, 8)])

        self.sizes = {"b": 3, "m": extent(), "n": extent(), "k": extent()}
        if rng.random() < 0.1:
            self.sizes["k"], self.is_static = 0, False

    def properties(self):
        properties = {
            name: getattr(self, name)
            for name in ("device", "form", "layout", "has", "requantizes", "is_static")
        }
        for name, point, of_factor in zip(("lhs", "rhs"), self.points, self.casts):
            properties |= {
                f"{name}_point": "dynamic" if point is None else point != "0",
                f"{name}_cast": of_factor,
            }
        properties["empty"] = self.sizes["k"] == 0
        return properties

    def tensor(self, axes, kind):
        return (
            "tensor<"
            + "".join(
                f"{self.sizes[axis] if self.is_static or axis == 'b' else '?'}x" for axis in axes
            )
            + f"{kind}>"
        )

    def axes(self):
        batch = "b" if self.form == "batch" else ""
        return (
            batch + ("km" if self.layout[0] == "t" else "mk"),
            batch + ("nk" if self.layout[1] == "t" else "kn"),
            batch + "mn",
        )

    def arguments(self):
        shapes = [
            "x".join(str(self.sizes[axis]) for axis in axes) + "xi8" for axes in self.axes()[:2]
        ]
        return ",".join(shapes + ["5", "-11"])

    def product(self):
        lhs, rhs, out = self.axes()
        types = [self.tensor(lhs, "i8"), self.tensor(rhs, "i8"), self.tensor(out, "i32")]
        points = [
            f"%z{number}" if point is None else f"%p{number}"
            for number, point in enumerate(self.points)
        ]
        if self.form != "generic":
            name = "quantized_matmul" if self.form == "named" else "quantized_batch_matmul"
            return (
                f"linalg.{name} ins(%a, %w, {points[0]}, {points[1]} : {types[0]}, {types[1]}, i32, i32) "
                f"outs(%init : {types[2]}) -> {types[2]}"
            )
        maps = ", ".join(
            f"affine_map<(m, n, k) -> ({', '.join(axes)})>" for axes in (lhs, rhs, out)
        )
        lines, values = [], []
        for number, name in enumerate("xy"):
            lines.append(f"%{name}e = arith.{self.casts[number]} %{name} : i8 to i32")
            values.append(f"%{name}e")
            if self.has[number]:
                lines.append(f"%{name}d = arith.subi %{name}e, {points[number]} : i32")
                values[-1] = f"%{name}d"
        body = "\n      ".join([*lines, f"%q = arith.muli {values[0]}, {values[1]} : i32"])
        return f"""linalg.generic {{indexing_maps = [{maps}],
        iterator_types = ["parallel", "parallel", "reduction"]}}
        ins(%a, %w : {types[0]}, {types[1]}) outs(%init : {types[2]}) {{
    ^bb0(%x: i8, %y: i8, %s: i32):
      {body}
      %t = arith.addi %s, %q : i32
      linalg.yield %t : i32
    }} -> {types[2]}"""

    def module(self):
        lhs, rhs, out = self.axes()
        result, product = (
            self.tensor(out, "i8" if self.requantizes else "i32"),
            self.tensor(out, "i32"),
        )
        dynamic = "" if self.is_static else "%m, %n"
        constants = "\n    ".join(
            f"%p{number} = arith.constant {point or 0} : i32"
            for number, point in enumerate(self.points)
        )
        identity = f"affine_map<({', '.join(out)}) -> ({', '.join(out)})>"
        parallel = ", ".join(['"parallel"'] * len(out))
        after, returned = "", "%product"
        if self.requantizes:
            returned = "%result"
            after = f"""
    %o = tensor.empty({dynamic}) : {result}
    %result = linalg.generic {{indexing_maps = [{identity}, {identity}], iterator_types = [{parallel}]}}
        ins(%product : {product}) outs(%o : {result}) {{
    ^bb0(%v: i32, %old: i8):
      %shifted = arith.shrsi %v, %seven : i32
      %low = arith.maxsi %shifted, %least : i32
      %high = arith.minsi %low, %most : i32
      %narrow = arith.trunci %high : i32 to i8
      linalg.yield %narrow : i8
    }} -> {result}"""
        return f"""
func.func @f(%a: {self.tensor(lhs, "i8")}, %w: {self.tensor(rhs, "i8")}, %z0: i32, %z1: i32) -> {result} {{
    %cm = arith.constant {lhs.index("m")} : index
    %cn = arith.constant {rhs.index("n")} : index
    %m = tensor.dim %a, %cm : {self.tensor(lhs, "i8")}
    %n = tensor.dim %w, %cn : {self.tensor(rhs, "i8")}
    %zero = arith.constant 0 : i32
    %seven = arith.constant 7 : i32
    %least = arith.constant -128 : i32
    %most = arith.constant 127 : i32
    {constants}
    %e = tensor.empty({dynamic}) : {product}
    %init = linalg.fill ins(%zero : i32) outs(%e : {product}) -> {product}
    %product = {self.product()}{after}
    return {returned} : {result}
}}
"""

    def __str__(self):
        sizes = "x".join(str(self.sizes[axis]) for axis in "mnk")
        return (
            f"{self.device}, {self.form} {self.layout}, {' and '.join(self.casts)}, zero points "
            f"{[point or 'dynamic' for point in self.points]}, {sizes}{', requantized' if self.requantizes else ''}"
        )


def run(tests, product):
    seed, label = product.seed, f"seed {product.seed}"
    tests.describe(label, str(product))
    path = tests.write(f"{seed}.mlir", product.module())
    result = tests.tool(
        "ftuner-run",
        path,
        "--function=f",
        f"--args={product.arguments()}",
        f"--device={product.device}",
        "--check",
        *harness.CHECKED,
        f"--seed={seed % 2**31}",
        "--max-kernels=2",
    )
    report, problems = harness.report_of(result)
    if not report:
        return problems
    if not all(checked["ok"] for checked in report["results"]):
        problems.append(
            f"relative errors {[checked['relative_error'] for checked in report['results']]}"
        )
    if "fallback" in report["launches"][-1]["kernel"]:
        problems.append(
            f"expected a uKernel, but got {[launch['kernel'] for launch in report['launches']]}"
        )
    return problems


def main():
    tests, options = harness.start(__doc__, harness.random_cases(9))
    harness.add_random_cases(tests, options, lambda seed: Product(random.Random(seed)), run)
    tests.finish()


if __name__ == "__main__":
    main()
