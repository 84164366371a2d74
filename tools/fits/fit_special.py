#!/usr/bin/env python3
"""Derives the coefficients of special functions in python/ftuner/frontend/torch/exporting/decompose/special.py.

Each is a Chebyshev series of a smooth, scaled form of the function, cut off where its terms fall below the error of
f32. Prints the table of the file; --check fails if the file has another one.
"""

import argparse
import ast
import sys
from pathlib import Path

import numpy as np
from numpy.polynomial import Chebyshev
from scipy import special

FILE = (
    Path(__file__).parents[2]
    / "python"
    / "ftuner"
    / "frontend"
    / "torch"
    / "decompose"
    / "special.py"
)
MIN_COEFFICIENT = 3e-9


def erfcx(t):
    """(1 + 2 x) erfcx(x) at t = (x - 4) / (x + 4)."""
    x = 4 * (1 + t) / np.maximum(1 - t, 1e-12)
    return (1 + 2 * x) * special.erfcx(x)


def gamma_between(u):
    """lgamma(2 + u) / (u (u + 1)); its zeros are at 1 and 2."""
    zero, one = np.abs(u) < 1e-9, np.abs(u + 1) < 1e-9
    inner = np.where(zero | one, 0.5, u)
    found = special.gammaln(2 + inner) / (inner * (inner + 1))
    return np.where(zero, special.digamma(2), np.where(one, -special.digamma(1), found))


def inverse_near(w):
    """erfinv(x) / x at w = -log(1 - x²)."""
    x = np.sqrt(-np.expm1(-np.maximum(w, 1e-12)))
    return special.erfinv(x) / x


def inverse_far(s):
    """erfinv(x) at s = sqrt(-log(1 - x²)), where a double cannot hold 1 - x."""
    # (1 - x) (1 + x) = exp(-s²), so that 1 - x = q / (1 + x) for q = exp(-s²).
    q = np.exp(-(s**2))
    return special.erfcinv(q / (1 + np.sqrt(1 - q)))


def normal_center(v):
    """ndtri(0.5 + q) / q at v = q², up to 0.425²."""
    q = np.sqrt(np.maximum(v, 1e-14))
    return special.ndtri(0.5 + q) / q


def normal_tail(r):
    """-ndtri(p) at r = sqrt(-log(p))."""
    return -special.ndtri_exp(-(r**2))


def bessel_near(order):
    """exp(-x) I(x) of order 0, and of order 1 over x."""
    if order == 0:
        return special.i0e
    return lambda x: np.where(
        x < 1e-6, 0.5 * np.exp(-x), special.i1e(np.maximum(x, 1e-6)) / np.maximum(x, 1e-6)
    )


def bessel_far(order):
    """sqrt(x) exp(-x) I(x) at 1 / x."""
    return lambda z: special.ive(order, 1 / np.maximum(z, 1e-9)) / np.sqrt(np.maximum(z, 1e-9))


FITS = {
    "ERFCX": (erfcx, -1, 1),
    "LGAMMA": (gamma_between, -1, 1),
    "ERFINV_NEAR": (inverse_near, 0, 5),
    "ERFINV_FAR": (inverse_far, 5**0.5, 4.2),
    "NDTRI_CENTER": (normal_center, 0, 0.425**2),
    "NDTRI_NEAR": (normal_tail, 1.6, 5),
    "NDTRI_FAR": (normal_tail, 5, 10.3),
    "I0_NEAR": (bessel_near(0), 0, 8),
    "I0_FAR": (bessel_far(0), 0, 1 / 8),
    "I1_NEAR": (bessel_near(1), 0, 8),
    "I1_FAR": (bessel_far(1), 0, 1 / 8),
}


def table():
    found = {}
    for name, (function, low, high) in FITS.items():
        series = Chebyshev.interpolate(function, 40, [low, high]).coef
        scale = np.abs(series).max()
        count = 1 + max(np.flatnonzero(np.abs(series) > MIN_COEFFICIENT * scale))
        found[name] = (low, high, tuple(float(f"{c:.9e}") for c in series[:count]))
    return found


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--check", action="store_true", help="compares with the file")
    arguments = parser.parse_args()
    fits = table()
    if not arguments.check:
        for name, (low, high, series) in fits.items():
            print(f'    "{name}": ({low!r}, {high!r}, (')
            for begin in range(0, len(series), 5):
                print("        " + ", ".join(map(repr, series[begin : begin + 5])) + ",")
            print("    )),")
        return 0
    for node in ast.walk(ast.parse(FILE.read_text())):
        if isinstance(node, ast.AnnAssign) and getattr(node.target, "id", "") == "_SERIES":
            kept = ast.literal_eval(node.value)
            wrong = [
                name
                for name, (*_, series) in fits.items()
                if not np.allclose(kept[name][2], series, rtol=1e-6)
            ]
            print("differ: " + ", ".join(wrong) if wrong else f"{len(fits)} series are as derived")
            return bool(wrong)
    sys.exit("error: special.py has no table _SERIES")


if __name__ == "__main__":
    sys.exit(main())
