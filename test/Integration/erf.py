#!/usr/bin/env python3
"""math.erf in kernels, element by element against the C library's in f64.

Scalars of f32 and, behind a product with the identity, vectors; f16, which is
computed in f32. Random floats of every size, those around the places where the
arithmetic changes, and special values. Likewise math.exp, of scalars.
"""

import math

import numpy as np

import harness

ERROR_ULP = 2.0  # of f32
DEVICES = ("v100", "h200")

ELEMENTWISE = """
func.func @f(%x: tensor<?x{type}>) -> tensor<?x{type}> {{
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?x{type}>
  %e = tensor.empty(%n) : tensor<?x{type}>
  %r = linalg.erf ins(%x : tensor<?x{type}>) outs(%e : tensor<?x{type}>) -> tensor<?x{type}>
  return %r : tensor<?x{type}>
}}
"""
PRODUCT = """
func.func @f(%x: tensor<?x48xf32>, %w: tensor<48x48xf32>) -> tensor<?x48xf32> {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %n = tensor.dim %x, %c0 : tensor<?x48xf32>
  %e = tensor.empty(%n) : tensor<?x48xf32>
  %i = linalg.fill ins(%zero : f32) outs(%e : tensor<?x48xf32>) -> tensor<?x48xf32>
  %p = linalg.matmul ins(%x, %w : tensor<?x48xf32>, tensor<48x48xf32>) outs(%i : tensor<?x48xf32>) -> tensor<?x48xf32>
  %r = linalg.erf ins(%p : tensor<?x48xf32>) outs(%e : tensor<?x48xf32>) -> tensor<?x48xf32>
  return %r : tensor<?x48xf32>
}
"""


def inputs():
    """Floats of f32 and their negatives, NaN last."""
    rng = np.random.default_rng(harness.next_seed())
    infinity = int(np.float32(np.inf).view(np.uint32))
    # 0, the smallest normal, where the form changes, where the result becomes 1, and infinity.
    places = np.array([0, 2.0**-126, 1, 3.92, np.inf], np.float32).view(np.uint32).astype(np.int64)
    bits = np.concatenate(
        [rng.integers(0, infinity, 40000), (places[:, None] + np.arange(-200, 201)).ravel()]
    )
    x = np.concatenate(
        [
            np.clip(bits, 0, infinity).astype(np.uint32).view(np.float32),
            rng.uniform(0, 4.5, 80000).astype(np.float32),
        ]
    )
    return np.concatenate([x, -x, np.array([np.nan], np.float32)])


def reference(x):
    return np.vectorize(math.erf, otypes=[float])(x.astype(np.float64))


def ulps(y, exact):
    """Errors in the unit of the last place of y's type at the exact value."""
    return np.abs(y - exact) / np.spacing(np.abs(exact).astype(y.dtype)).astype(np.float64)


class Test:
    def __init__(self, run):
        self.harness = run

    def execute(self, label, text, device, *arguments):
        source = self.harness.write(f"{label}.mlir", text)
        items = []
        for index, data in enumerate(arguments):
            path = self.harness.path(f"{label}_{index}.npy")
            np.save(path, data)
            items.append("x".join(map(str, (*data.shape, f"f{8 * data.itemsize}"))) + "@" + path)
        folder = self.harness.path(f"{label}_results")
        answer = self.harness.tool(
            "ftuner-run",
            source,
            f"--device={device}",
            "--args=" + ",".join(items),
            f"--save-dir={folder}",
        )
        if answer.returncode:
            raise RuntimeError(answer.stderr.strip())
        return np.load(f"{folder}/result0.npy")

    def scalars(self, device):
        x = inputs()
        y = self.execute(f"scalars_{device}", ELEMENTWISE.format(type="f32"), device, x)
        if not np.isnan(y[-1]):
            return [f"erf(nan) is {y[-1]}"]
        x, y = x[:-1], y[:-1]
        exact = reference(x)
        errors = ulps(y, exact)
        worst = np.argmax(errors)
        self.harness.describe(f"scalars on {device}", f"at most {errors[worst]:.2f} ulp")
        problems = []
        if not errors[worst] <= ERROR_ULP:  # also NaN
            problems.append(f"erf({x[worst]!r}) is {y[worst]!r} instead of {exact[worst]!r}")
        if not (np.abs(y) <= 1).all():
            problems.append("some results are beyond 1")
        if not (y[np.abs(x) > 4] == np.sign(x[np.abs(x) > 4])).all():
            problems.append("some results are not 1 beyond 4")
        half = len(x) // 2
        if not np.array_equal(
            y[:half].view(np.uint32) ^ np.uint32(1 << 31), y[half:].view(np.uint32)
        ):
            problems.append("erf(-x) is not -erf(x), or the sign of zero is lost")
        y = y[np.argsort(x)]
        if (np.diff(y) < -np.spacing(np.abs(y[1:]))).any():
            problems.append("results fall by more than 1 ulp where arguments grow")
        return problems

    def vectors(self, device):
        # Normal ones, whose products with 0 and 1 are exact, without infinity.
        x = inputs()
        x = x[np.isfinite(x) & (np.abs(x) >= 2.0**-126)]
        x = x[: len(x) // 48 * 48]
        y = self.execute(
            f"vectors_{device}", PRODUCT, device, x.reshape(-1, 48), np.eye(48, dtype=np.float32)
        )
        scalars = self.execute(
            f"vectors_{device}_scalars", ELEMENTWISE.format(type="f32"), device, x
        )
        wrong = np.flatnonzero(y.ravel() != scalars)
        return (
            [
                f"erf({x[wrong[0]]!r}) is {y.ravel()[wrong[0]]!r} in a vector, {scalars[wrong[0]]!r} as a scalar, "
                f"and {wrong.size} like it"
            ]
            if wrong.size
            else []
        )

    def halves(self, device):
        x = np.arange(1 << 16, dtype=np.uint32).astype(np.uint16).view(np.float16)
        x = x[~np.isnan(x)]
        y = self.execute(f"halves_{device}", ELEMENTWISE.format(type="f16"), device, x)
        errors = ulps(y, reference(x))
        worst = np.argmax(errors)
        # Half a unit, and those of f32, of which 2^13 are one of f16.
        return (
            []
            if errors[worst] <= 0.5 + ERROR_ULP * 2.0**-13
            else [f"erf({x[worst]!r}) is {y[worst]!r}"]
        )

    def exponentials(self, device):
        rng = np.random.default_rng(harness.next_seed())
        # The ends of the normal floats, where the exponent changes, and what is 0 or infinite.
        places = (np.arange(-126, 129) + 0.5) * np.log(2)
        x = np.concatenate(
            [
                rng.uniform(-86.5, 88.7, 80000),
                rng.standard_normal(40000),
                rng.uniform(-1e-3, 1e-3, 10000),
                (places[:, None] * (1 + 1e-7 * np.arange(-20, 21))).ravel(),
            ]
        ).astype(np.float32)
        x = x[(x > -86.5) & (x < 88.72)]
        special = np.array([0, -0.0, np.inf, -np.inf, np.nan, 88.73, 1e30, -88, -1e30], np.float32)
        text = ELEMENTWISE.format(type="f32").replace("linalg.erf", "linalg.exp")
        y = self.execute(f"exponentials_{device}", text, device, np.concatenate([x, special]))
        exact = np.exp(x.astype(np.float64))
        errors = ulps(y[: len(x)], exact)
        worst = np.argmax(errors)
        self.harness.describe(f"exponentials on {device}", f"at most {errors[worst]:.2f} ulp")
        problems = []
        if not errors[worst] <= ERROR_ULP:
            problems.append(f"exp({x[worst]!r}) is {y[worst]!r} instead of {exact[worst]!r}")
        expected = np.array([1, 1, np.inf, 0, np.nan, np.inf, np.inf, 0, 0], np.float32)
        if not np.array_equal(y[len(x) :], expected, equal_nan=True):
            problems.append(f"exp of {special} is {y[len(x) :]}")
        return problems


def main():
    run, _ = harness.start(__doc__)
    test = Test(run)
    for device in DEVICES:
        run.add(f"exponentials on {device}", test.exponentials, device)
        run.add(f"scalars on {device}", test.scalars, device)
        run.add(f"vectors on {device}", test.vectors, device)
    run.add("f16", test.halves, DEVICES[-1])
    run.finish()


if __name__ == "__main__":
    main()
