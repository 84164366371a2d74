#!/usr/bin/env python3
"""Elementary functions in kernels, against NumPy's in f64, in units of the last place.

Inputs are random floats of every exponent and of ordinary sizes, multiples of pi/2, and special values: zeros,
infinities, NaN, and floats below the normal ones. docs/math.md says how large each error may be.
"""

import math
import re
from pathlib import Path

import numpy as np

import harness

PAGE = Path(__file__).parents[2] / "docs/math.md"
# Results of exponentials below it are 0.
LEAST_POWER = 1.71e-38
FLUSHED = {"erfc", "exp", "exp2", "powf"}
FUNCTIONS = {
    "acos": np.arccos,
    "acosh": np.arccosh,
    "asin": np.arcsin,
    "asinh": np.arcsinh,
    "atan": np.arctan,
    "atan2": np.arctan2,
    "atanh": np.arctanh,
    "cbrt": np.cbrt,
    "cos": np.cos,
    "cosh": np.cosh,
    "erf": np.vectorize(math.erf, otypes=[float]),
    "erfc": np.vectorize(math.erfc, otypes=[float]),
    "exp": np.exp,
    "exp2": np.exp2,
    "expm1": np.expm1,
    "log": np.log,
    "log10": np.log10,
    "log1p": np.log1p,
    "log2": np.log2,
    "powf": np.power,
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "sin": np.sin,
    "sinh": np.sinh,
    "sqrt": np.sqrt,
    "tan": np.tan,
    "tanh": np.tanh,
}
OF_TWO = {"atan2", "powf"}
SPECIAL = np.array(
    [
        0,
        np.inf,
        np.nan,
        1,
        0.5,
        2,
        3,
        1e-45,
        1e-40,
        2.0**-126,
        3.4028235e38,
        1e-20,
        87.3,
        88.72,
        89.4,
        104,
        117435.99,
        117436,
        1e5,
        1e8,
        1e22,
        2.0**100,
    ],
    np.float32,
)
SPECIAL = np.concatenate([SPECIAL, -SPECIAL])


def allowed():
    """The errors of the page's table."""
    rows = re.findall(r"^\| `math\.(\w+)` \| ([\d.]+) \|", PAGE.read_text(), re.MULTILINE)
    return {name: float(error) for name, error in rows}


def function(name, element="f32"):
    count = 2 if name in OF_TWO else 1
    tensor = f"tensor<?x{element}>"
    tensors = ", ".join([tensor] * count)
    maps = ", ".join(["affine_map<(i) -> (i)>"] * (count + 1))
    names = [f"x{number}" for number in range(count)]
    arguments = ", ".join(f"%{n}: {tensor}" for n in names)
    elements = ", ".join(f"%e{n}: {element}" for n in names)
    return f"""
func.func @{name}({arguments}) -> {tensor} {{
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x0, %c0 : {tensor}
  %e = tensor.empty(%n) : {tensor}
  %r = linalg.generic {{indexing_maps = [{maps}], iterator_types = ["parallel"]}}
      ins({", ".join(f"%{n}" for n in names)} : {tensors}) outs(%e : {tensor}) {{
  ^bb0({elements}, %o: {element}):
    %y = math.{name} {", ".join(f"%e{n}" for n in names)} : {element}
    linalg.yield %y : {element}
  }} -> {tensor}
  return %r : {tensor}
}}
"""


def inputs(count):
    """Values for each of a function's arguments; with two, all pairs of special values are among them."""
    rng = np.random.default_rng(harness.next_seed())

    def floats():
        bits = rng.integers(0, 1 << 32, 60000, np.uint64).astype(np.uint32).view(np.float32)
        ranges = [rng.uniform(-limit, limit, 20000) for limit in (1, 4, 120, 1.2e5)]
        angles = rng.integers(1, 1 << 20, 20000) * (math.pi / 2)
        near = 1 + rng.uniform(-1e-3, 1e-3, 10000)
        return np.concatenate(
            [bits, *(np.float32(part) for part in (*ranges, angles, -angles, near))]
        )

    if count == 1:
        return [np.concatenate([SPECIAL, floats()])]
    x, y = (values.ravel() for values in np.meshgrid(SPECIAL, SPECIAL))
    a, b = floats(), rng.permutation(floats())
    # Powers that are finite.
    base, power = rng.uniform(0, 10, 40000), rng.uniform(-38, 38, 40000)
    return [np.concatenate([x, a, np.float32(base)]), np.concatenate([y, b, np.float32(power)])]


def errors_of(y, exact, name):
    """Errors in units of the last place; infinite where a result is of another kind."""
    with np.errstate(all="ignore"):
        rounded = exact.astype(y.dtype)
        is_same = (y == rounded) & (np.signbit(y) == np.signbit(rounded)) | np.isnan(y) & np.isnan(
            rounded
        )
        if name == "powf":  # The sign of a power that is 0 beside the rounded one's.
            is_same |= y == rounded
        digits, least = (24, -149) if y.dtype == np.float32 else (11, -24)
        unit = np.ldexp(1.0, np.maximum(np.frexp(exact)[1] - digits, least))
        errors = np.abs(y.astype(np.float64) - exact) / unit
        is_finite = np.isfinite(y) & np.isfinite(rounded) & ~((y == 0) & (rounded == 0))
        errors = np.where(
            is_same, np.where(np.isfinite(errors), errors, 0), np.where(is_finite, errors, np.inf)
        )
        if name in FLUSHED:
            errors = np.where((np.abs(exact) < LEAST_POWER) & (np.abs(y) <= LEAST_POWER), 0, errors)
    return errors


class Test:
    def __init__(self, run):
        self.harness = run

    def execute(self, source, name, arguments):
        items = []
        for index, data in enumerate(arguments):
            path = self.harness.path(f"{name}_{index}.npy")
            np.save(path, data)
            items.append(f"{data.size}xf{8 * data.itemsize}@{path}")
        folder = self.harness.path(f"{name}_results")
        answer = self.harness.tool(
            "ftuner-run",
            source,
            f"--function={name}",
            "--device=h200",
            "--args=" + ",".join(items),
            f"--save-dir={folder}",
        )
        if answer.returncode:
            raise RuntimeError(answer.stderr.strip())
        return np.load(f"{folder}/result0.npy")

    def singles(self):
        limits, problems = allowed(), []
        if limits.keys() != FUNCTIONS.keys():
            return [
                f"{PAGE.name} and the functions differ: {sorted(limits.keys() ^ FUNCTIONS.keys())}"
            ]
        for name in FUNCTIONS:
            source = self.harness.write(f"{name}.mlir", function(name))
            arguments = inputs(2 if name in OF_TWO else 1)
            y = self.execute(source, name, arguments)
            with np.errstate(all="ignore"):
                exact = FUNCTIONS[name](*(a.astype(np.float64) for a in arguments))
            errors = errors_of(y, exact, name)
            worst = int(np.argmax(errors))
            self.harness.describe(f"math.{name}", f"at most {errors[worst]:.3f} ulp")
            if not errors[worst] <= limits[name]:
                at = ", ".join(repr(a[worst]) for a in arguments)
                problems.append(
                    f"math.{name}({at}) is {y[worst]!r} instead of {exact[worst]!r}: {errors[worst]:.3g} ulp"
                )
        return problems

    def halves(self):
        """All floats of f16, through f32."""
        x = np.arange(1 << 16, dtype=np.uint32).astype(np.uint16).view(np.float16)
        problems = []
        for name in ("log", "sin", "tan"):
            y = self.execute(
                self.harness.write(f"{name}_f16.mlir", function(name, "f16")), name, [x]
            )
            with np.errstate(all="ignore"):
                errors = errors_of(y, FUNCTIONS[name](x.astype(np.float64)), name)
            worst = int(np.argmax(errors))
            if not errors[worst] <= 0.501:
                problems.append(
                    f"math.{name}({x[worst]!r}) is {y[worst]!r}: {errors[worst]:.3g} ulp"
                )
        return problems


def main():
    run, _ = harness.start(__doc__)
    test = Test(run)
    run.add("f32", test.singles)
    run.add("f16", test.halves)
    run.finish()


if __name__ == "__main__":
    main()
