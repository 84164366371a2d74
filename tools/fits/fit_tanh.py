#!/usr/bin/env python3
"""Derives the coefficients of tanh in lib/Conversion/UKernelToGPU/ElementaryFunctions.cpp.

Prints them and the largest error of the arithmetic with them, in ulp of tanh, over
floats as dense as --stride says; 1 takes all. ex2.approx is taken as exact and as
off by 2^-22 of its result, up and down, and rcp.approx by 2^-23.
"""

import argparse

import fit_erf
import numpy as np
from fit_erf import fma, polynomial

# x + x³ · S(x²) up to THRESHOLD, 1 - 2e / (1 + e) with e = exp(-2x) beyond.
THRESHOLD, DEGREE = 0.75, 4
LOWEST, HIGHEST = 1e-8, 12.0


def series(square):
    """(tanh(x) / x - 1) / x², by its first terms where x² is small."""
    square = np.maximum(square, 1e-10)
    x = np.sqrt(square)
    return np.where(
        square < 1e-3, -1 / 3 + square * (2 / 15 - square * 17 / 315), (np.tanh(x) / x - 1) / square
    )


def weight(square):
    """The relative error of tanh for an absolute one of the series."""
    square = np.maximum(square, 1e-6)
    return square / (1 + square * series(square))


def tanh(x, coefficients, power_error, reciprocal_error):
    """The arithmetic of the kernels on floats from 0 on."""
    square = x * x
    small = fma(polynomial(square, coefficients) * square, x, x)
    power = (np.exp2((x * np.float32(-2.88539004)).astype(np.float64)) * (1 + power_error)).astype(
        np.float32
    )
    below = (np.float32(1) + power).astype(np.float64)
    reciprocal = ((1 + reciprocal_error) / below).astype(np.float32)
    return np.where(x > THRESHOLD, fma(np.float32(-2) * power, reciprocal, np.float32(1)), small)


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
    fit_erf.DEGREE = DEGREE
    coefficients = fit_erf.fit_floats(series, weight, 0, THRESHOLD**2)
    print(", ".join(f"{coefficient:.9g}f" for coefficient in coefficients))
    first, last = (int(np.float32(bound).view(np.uint32)) for bound in (LOWEST, HIGHEST))
    x = np.arange(first, last, options.stride, dtype=np.uint32).view(np.float32)
    exact = np.tanh(x.astype(np.float64))
    ulp = np.spacing(exact.astype(np.float32)).astype(np.float64)
    for power_error in (0.0, 2.0**-22, -(2.0**-22)):
        for reciprocal_error in (0.0, 2.0**-23, -(2.0**-23)):
            errors = np.abs(tanh(x, coefficients, power_error, reciprocal_error) - exact) / ulp
            print(
                f"ex2.approx off by {power_error:.3g}, rcp.approx by {reciprocal_error:.3g}: "
                f"at most {errors.max():.3f} ulp, at {x[errors.argmax()]}",
                flush=True,
            )


if __name__ == "__main__":
    main()
