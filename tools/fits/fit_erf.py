#!/usr/bin/env python3
"""Derives the coefficients of erf in lib/Conversion/UKernelToGPU/ExpandMath.cpp.

Prints them and the largest error of the arithmetic with them, in ulp of erf, over
floats as dense as --stride says; 1 takes all, in about ten minutes. Also how often
it falls from one to the next. ex2.approx is taken as exact and as off by 2^-22 of
its result, 2 ulp at most, up and down.
"""

import argparse

import numpy as np
from scipy import special

# x + x · S(x²) up to THRESHOLD, 1 - 2^L(x) beyond; at END erf rounds to 1.
THRESHOLD, END = 1.0, 3.92
DEGREE = 5
EXP2_ERROR = 2.0**-22


def fit(function, weight, first, low, high, fixed):
    """Coefficients of the powers first..DEGREE that make the largest weighted error least, by Remez's exchange.

    The error is that of the whole polynomial. fixed: the coefficients of the powers below first.
    """
    count = DEGREE - first + 2
    points = low + (high - low) * (1 - np.cos(np.linspace(0, np.pi, 4001))) / 2
    powers = points[:, None] ** np.arange(DEGREE + 1)
    wanted, weights = function(points) - powers[:, :first] @ fixed, weight(points)
    powers = powers[:, first:]
    # Without a constant, the error cannot alternate at 0.
    extrema = np.linspace(0, len(points) - 1, count + (first > 0))[first > 0 :].astype(int)
    best = None
    for _ in range(40):
        system = np.column_stack([powers[extrema], (-1.0) ** np.arange(count) / weights[extrema]])
        scale = np.abs(system).max(axis=0)
        coefficients = (np.linalg.solve(system / scale, wanted[extrema]) / scale)[:-1]
        errors = weights * (powers @ coefficients - wanted)
        if best is None or np.abs(errors).max() < best[1]:
            best = coefficients, np.abs(errors).max()
        runs = np.split(np.arange(len(points)), np.flatnonzero(np.diff(np.sign(errors))) + 1)
        found = [run[np.argmax(np.abs(errors[run]))] for run in runs]
        while len(found) > count:
            found.pop(0 if abs(errors[found[0]]) < abs(errors[found[-1]]) else -1)
        if len(found) < count or np.array_equal(found, extrema):
            break
        extrema = np.array(found)
    return best[0]


def fit_floats(function, weight, low, high):
    """Rounds one coefficient after the other to f32, and fits the higher coefficients again."""
    coefficients = []
    for first in range(DEGREE + 1):
        fitted = fit(function, weight, first, low, high, np.array(coefficients))
        coefficients.append(float(np.float32(fitted[0])))
    return coefficients


def small(square):
    x = np.sqrt(np.maximum(square, 1e-12))
    return special.erf(x) / x - 1


def large(x):
    return np.log2(special.erfc(x))


def fma(a, b, c):
    """In f32; rounded to f64 before, which differs where that lies between two floats."""
    return (a.astype(np.float64) * b + c).astype(np.float32)


def polynomial(x, coefficients):
    result = np.full_like(x, coefficients[-1])
    for coefficient in coefficients[-2::-1]:
        result = fma(result, x, coefficient)
    return result


def erf(x, small_coefficients, large_coefficients, exp2_error):
    """The arithmetic of the kernels on floats from 0 on."""
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        below = fma(polynomial(x * x, small_coefficients), x, x)
        power = np.exp2(polynomial(x, large_coefficients).astype(np.float64)) * (1 + exp2_error)
    return np.where(x > THRESHOLD, np.float32(1) - power.astype(np.float32), below)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--stride",
        type=int,
        default=61,
        help="floats from one checked to the next (default: %(default)s)",
    )
    options = parser.parse_args()
    small_coefficients = fit_floats(small, lambda square: 1 / (1 + small(square)), 0, THRESHOLD**2)
    large_coefficients = fit_floats(
        large, lambda x: special.erfc(x) / special.erf(x), THRESHOLD, END
    )
    for name, coefficients in (("small", small_coefficients), ("large", large_coefficients)):
        print(f"{name}: " + ", ".join(f"{coefficient:.9g}f" for coefficient in coefficients))
    infinity = int(np.float32(np.inf).view(np.uint32))
    for exp2_error in (0.0, EXP2_ERROR, -EXP2_ERROR):
        largest, previous, falls, deepest = 0.0, np.float32(0), 0, 0.0
        for first in range(0, infinity + 1, options.stride << 22):
            last = min(first + (options.stride << 22), infinity + 1)
            x = np.arange(first, last, options.stride, dtype=np.uint32).view(np.float32)
            y, exact = (
                erf(x, small_coefficients, large_coefficients, exp2_error),
                special.erf(x.astype(np.float64)),
            )
            ulp = np.spacing(exact.astype(np.float32)).astype(np.float64)
            largest = max(largest, (np.abs(y - exact) / ulp).max())
            fall = -np.diff(y, prepend=previous) / ulp
            falls, deepest = falls + np.count_nonzero(fall > 0), max(deepest, fall.max())
            previous = y[-1]
        print(
            f"ex2.approx off by {exp2_error:.3g}: at most {largest:.3f} ulp, "
            f"falls {falls} times, by at most {deepest:g} ulp, ends at {previous}",
            flush=True,
        )


if __name__ == "__main__":
    main()
