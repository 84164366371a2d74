"""Special functions in f32: error functions, gamma functions, the normal distribution's, and Bessel functions.

Each is a Chebyshev series of a smooth, scaled form of the function (tools/fits/fit_special.py derives the coefficients), or
an asymptotic series (Abramowitz and Stegun, 6.1.40, 6.3.18 and 6.4.12). Tensors of f64 are left to the importer,
which refuses them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

aten = torch.ops.aten

#: The range of each series' argument, and its coefficients.
_SERIES: dict[str, tuple[float, float, tuple[float, ...]]] = {
    "ERFCX": (
        -1,
        1,
        (
            1.177483201,
            -0.00726079662,
            -0.08126512324,
            0.06009212804,
            -0.02875393558,
            0.01059566336,
            -0.003136927295,
            0.0007456494373,
            -0.0001369696503,
            1.71838616e-05,
            -7.158364635e-07,
            -2.426139944e-07,
            5.576570841e-08,
        ),
    ),
    "LGAMMA": (
        -1,
        1,
        (
            0.4414890255,
            -0.1111958032,
            0.01951044826,
            -0.003922461463,
            0.0008478989896,
            -0.0001915385534,
            4.454470186e-05,
            -1.057287438e-05,
            2.547433693e-06,
            -6.208535935e-07,
            1.526867789e-07,
            -3.782638176e-08,
            9.428105534e-09,
            -2.362004681e-09,
        ),
    ),
    "ERFINV_NEAR": (
        0,
        5,
        (
            1.49129894,
            0.6017563034,
            -0.0091705595,
            -0.004962635327,
            0.00091537967,
            -3.889562757e-06,
            -2.420259941e-05,
            3.266571592e-06,
            2.775888971e-07,
            -1.302336307e-07,
            8.104641808e-09,
        ),
    ),
    "ERFINV_FAR": (
        2.23606797749979,
        4.2,
        (
            3.054380335,
            0.9851388638,
            0.002776067815,
            -0.0006627567453,
            0.0001041469789,
            -1.039939941e-05,
            -2.501392971e-07,
            4.03828659e-07,
            -9.689042248e-08,
            9.665335692e-09,
        ),
    ),
    "NDTRI_CENTER": (
        0,
        0.18062499999999998,
        (
            2.873473539,
            0.4249523687,
            0.06986317633,
            0.01442711813,
            0.003320100487,
            0.0008138065761,
            0.0002078684075,
            5.465725367e-05,
            1.468387347e-05,
            4.010738978e-06,
            1.109982421e-06,
            3.104897742e-07,
            8.762399087e-08,
            2.491357498e-08,
        ),
    ),
    "NDTRI_NEAR": (
        1.6,
        5,
        (
            4.084183336,
            2.607797887,
            -0.04139414374,
            0.008948780213,
            -0.002004192061,
            0.0004599375499,
            -0.0001075687596,
            2.556077111e-05,
            -6.158767531e-06,
            1.502377275e-06,
            -3.705538868e-07,
            9.229516706e-08,
            -2.318820362e-08,
        ),
    ),
    "NDTRI_FAR": (
        5,
        10.3,
        (
            10.49986437,
            3.828339019,
            -0.01156077409,
            0.001740307036,
            -0.000269203218,
            4.237741437e-05,
            -6.753512359e-06,
            1.086207698e-06,
            -1.759606408e-07,
        ),
    ),
    "I0_NEAR": (
        0,
        8,
        (
            0.3383976372,
            -0.3046826723,
            0.1716209015,
            -0.09490109705,
            0.04930528424,
            -0.02373741481,
            0.01054646039,
            -0.004324309995,
            0.001639475617,
            -0.0005763755745,
            0.0001885028851,
            -5.75419501e-05,
            1.644844807e-05,
            -4.416738358e-06,
            1.117387539e-06,
            -2.67079385e-07,
            6.04699496e-08,
            -1.300024971e-08,
            2.659823228e-09,
        ),
    ),
    "I0_FAR": (
        0,
        0.125,
        (
            0.4022452055,
            0.003369116478,
            6.889758347e-05,
            2.891370521e-06,
            2.04891859e-07,
            2.266668987e-08,
            3.396231989e-09,
        ),
    ),
    "I1_NEAR": (
        0,
        8,
        (
            0.1262935932,
            -0.1764165184,
            0.1026436587,
            -0.05294598121,
            0.02472644903,
            -0.01056408489,
            0.004156422944,
            -0.001513572451,
            0.0005122859562,
            -0.0001617608158,
            4.781565108e-05,
            -1.327316366e-05,
            3.470251308e-06,
            -8.568720263e-07,
            2.003294751e-07,
            -4.445059105e-08,
            9.381537107e-09,
            -1.8872495e-09,
        ),
    ),
    "I1_FAR": (
        0,
        0.125,
        (
            0.3892881175,
            -0.009761097491,
            -0.0001105889388,
            -3.882564809e-06,
            -2.512236238e-07,
            -2.631468845e-08,
            -3.835380426e-09,
        ),
    ),
}

#: The asymptotic series hold from this argument on.
_FAR = 8


def _series(name: str, x: Tensor) -> Tensor:
    """The value of a series, by Clenshaw's recurrence; `x` outside of its range is moved to its end."""
    low, high, coefficients = _SERIES[name]
    t = (torch.clamp(x, low, high) - (low + high) / 2) * (4 / (high - low))
    last, before = torch.full_like(x, 0.0), torch.full_like(x, 0.0)
    for coefficient in reversed(coefficients[1:]):
        last, before = t * last - before + coefficient, last
    return t * last * 0.5 - before + coefficients[0]


def _in_f32(function: Callable[[Tensor], Tensor]) -> Callable[..., Any]:
    """A rule that computes integers and halves in f32; NotImplemented for f64."""

    def rule(x: Tensor) -> Any:
        if x.dtype == torch.float64:
            return NotImplemented
        dtype = x.dtype if x.dtype.is_floating_point else torch.get_default_dtype()
        return function(x.float()).to(dtype)

    return rule


def _scaled_erfc(x: Tensor) -> Tensor:
    """exp(x²) erfc(x) of numbers that are not negative."""
    bounded = torch.clamp(x, max=1e10)
    return _series("ERFCX", (bounded - 4) / (bounded + 4)) / (1 + 2 * x)


def _exp_of_square(x: Tensor, sign: float) -> Tensor:
    """exp(±x²): the square of a number of 12 bits is exact, and what it lacks is a second factor."""
    bounded = torch.clamp(x, -16, 16)
    rounded = torch.round(bounded * 256) * (1 / 256)
    found = torch.exp(sign * rounded * rounded) * torch.exp(
        sign * (bounded - rounded) * (bounded + rounded)
    )
    return torch.where(x.abs() > 16, math.inf if sign > 0 else 0.0, found)


def _erfc(x: Tensor) -> Tensor:
    size = x.abs()
    tail = _exp_of_square(size, -1) * _scaled_erfc(size)
    return torch.where(size < 0.5, 1 - torch.erf(x), torch.where(x < 0, 2 - tail, tail))


def _erfcx(x: Tensor) -> Tensor:
    size = x.abs()
    found = _scaled_erfc(size)
    return torch.where(x < 0, 2 * _exp_of_square(size, 1) - found, found)


def _log_ndtr(x: Tensor) -> Tensor:
    t = x * math.sqrt(0.5)
    low = torch.log(_erfcx(-torch.clamp(t, max=0)) / 2) - t * t
    return torch.where(x < -1, low, torch.log1p(-_erfc(t) / 2))


def _erfinv(x: Tensor) -> Tensor:
    w = -torch.log((1 - x) * (1 + x))
    far = torch.where(x < 0, -1.0, 1.0) * _series("ERFINV_FAR", torch.sqrt(w))
    found = torch.where(w < 5, x * _series("ERFINV_NEAR", w), far)
    found = torch.where(x.abs() == 1, x * math.inf, found)
    return torch.where(x.abs() > 1, math.nan, found)


def _ndtri(p: Tensor) -> Tensor:
    q = p - 0.5
    r = torch.sqrt(-torch.log(torch.minimum(p, 1 - p)))
    tail = torch.where(r < 5, _series("NDTRI_NEAR", r), _series("NDTRI_FAR", r))
    found = torch.where(
        q.abs() <= 0.425, q * _series("NDTRI_CENTER", q * q), torch.where(q < 0, -tail, tail)
    )
    found = torch.where(p == 0, -math.inf, torch.where(p == 1, math.inf, found))
    return torch.where((p < 0) | (p > 1), math.nan, found)


def _shifted(x: Tensor, term: Callable[[Tensor], Tensor]) -> tuple[Tensor, Tensor]:
    """A number of at least _FAR that integers make of `x`, and the sum of the terms of those below it."""
    total = torch.full_like(x, 0.0)
    for _ in range(_FAR):
        is_near = x < _FAR
        total = torch.where(is_near, total + term(x), total)
        x = torch.where(is_near, x + 1, x)
    return x, total


def _horner(x: Tensor, coefficients: list[float]) -> Tensor:
    result = torch.full_like(x, coefficients[-1])
    for coefficient in reversed(coefficients[:-1]):
        result = result * x + coefficient
    return result


def _cot_of_pi(x: Tensor) -> Tensor:
    """cot(pi x), from the nearer one of its pole and its zero, where x is -0.5 to 0.5."""
    from_zero = torch.tan(math.pi * (0.5 - x.abs()))
    return torch.where(
        x.abs() < 0.25, 1 / torch.tan(math.pi * x), torch.where(x < 0, -from_zero, from_zero)
    )


def _digamma(x: Tensor) -> Tensor:
    y = torch.where(x < 0, 1 - x, x)
    far, terms = _shifted(torch.where(y == 0, 1.0, y), torch.reciprocal)
    inverse = 1 / (far * far)
    series = inverse * _horner(inverse, [1 / 12, -1 / 120, 1 / 252, -1 / 240])
    found = torch.log(far) - 0.5 / far - series - terms
    found = torch.where(x == math.inf, math.inf, found)
    rest = x - torch.round(x)
    reflected = found - math.pi * _cot_of_pi(rest)
    found = torch.where(x < 0, torch.where(rest == 0, math.nan, reflected), found)
    return torch.where(x == 0, -1 / x, found)


def _derivative_of_cot(n: int) -> list[float]:
    """Coefficients, by powers of c = cot(pi x), of the n-th derivative of cot(pi x)."""
    found = [0.0, 1.0]
    for _ in range(n):
        slope = [power * coefficient for power, coefficient in enumerate(found)][1:]
        found = [0.0] * (len(slope) + 2)
        for power, coefficient in enumerate(slope):
            found[power] -= math.pi * coefficient
            found[power + 2] -= math.pi * coefficient
    return found


def _polygamma_of(n: int) -> Callable[[Tensor], Tensor]:
    """The n-th derivative of digamma, n >= 1."""
    sign, factorial = (-1.0) ** (n + 1), float(math.factorial(n))
    #: Bernoulli's numbers of 2, 4, 6 and 8.
    bernoulli = (1 / 6, -1 / 30, 1 / 42, -1 / 30)
    series = [
        number * math.factorial(2 * k + n - 1) / math.factorial(2 * k) / factorial
        for k, number in enumerate(bernoulli, 1)
    ]

    def power(x: Tensor, exponent: int) -> Tensor:
        result = x
        for _ in range(exponent - 1):
            result = result * x
        return result

    def rule(x: Tensor) -> Tensor:
        y = torch.where(x < 0.5, 1 - x, x)
        far, terms = _shifted(y, lambda z: power(1 / z, n + 1))
        inverse = 1 / far
        square = inverse * inverse
        found = power(inverse, n) * (1 / n + inverse / 2 + square * _horner(square, series)) + terms
        found = torch.where(x == math.inf, 0.0 if n == 1 else math.nan, found) * (sign * factorial)
        rest = x - torch.round(x)
        reflected = -math.pi * _horner(_cot_of_pi(rest), _derivative_of_cot(n)) - sign * found
        is_pole = rest == 0 if n == 1 else (rest == 0) | (x == -math.inf)
        reflected = torch.where(is_pole, sign * math.inf, reflected)
        return torch.where(x < 0.5, reflected, found)

    return rule


def _log_gamma_of_positive(x: Tensor) -> Tensor:
    # Below 1: the function of x + 1, which is 2 + (x - 1). From 3 on: that of the number between 2 and 3.
    below = x < 1
    bounded = torch.clamp(x, 0, _FAR)
    down, product = bounded, torch.full_like(x, 1.0)
    for _ in range(_FAR - 3):
        is_large = down >= 3
        down = torch.where(is_large, down - 1, down)
        product = torch.where(is_large, product * down, product)
    u = torch.where(below, bounded - 1, down - 2)
    small = u * (u + 1) * _series("LGAMMA", u)
    small = torch.where(below, small - torch.log(bounded), small + torch.log(product))
    far = torch.clamp(x, min=_FAR)
    inverse = 1 / far
    series = inverse * _horner(inverse * inverse, [1 / 12, -1 / 360, 1 / 1260])
    stirling = (far - 0.5) * (torch.log(far) - 1) + (0.5 * math.log(2 * math.pi) - 0.5) + series
    return torch.where(x < _FAR, small, torch.where(x == math.inf, math.inf, stirling))


def _lgamma(x: Tensor) -> Tensor:
    size = x.abs()
    found = _log_gamma_of_positive(size)
    rest = size - torch.round(size)
    reflected = math.log(math.pi) - torch.log(size * torch.sin(math.pi * rest).abs()) - found
    reflected = torch.where((rest == 0) | (size == math.inf), math.inf, reflected)
    found = torch.where(x < 0, reflected, found)
    return torch.where(x == 0, math.inf, found)


def _mvlgamma(x: Tensor, p: int) -> Any:
    if x.dtype == torch.float64:
        return NotImplemented
    x = x if x.dtype.is_floating_point else x.to(torch.get_default_dtype())
    result = torch.lgamma(x)
    for number in range(1, p):
        result = result + torch.lgamma(x - number / 2)
    return result + p * (p - 1) / 4 * math.log(math.pi)


def _polygamma(n: int, x: Tensor) -> Any:
    return _in_f32(_polygamma_of(n) if n else _digamma)(x)


def _scaled_bessel_0(x: Tensor) -> Tensor:
    """exp(-|x|) I of order 0."""
    size = x.abs()
    inverse = 1 / torch.clamp(size, min=8)
    found = torch.where(
        size < 8, _series("I0_NEAR", size), _series("I0_FAR", inverse) * torch.rsqrt(size)
    )
    return torch.where(size == math.inf, 0.0, found)


def _scaled_bessel_1(x: Tensor) -> Tensor:
    """exp(-|x|) I of order 1."""
    size = x.abs()
    inverse = 1 / torch.clamp(size, min=8)
    far = torch.where(x < 0, -1.0, 1.0) * _series("I1_FAR", inverse) * torch.rsqrt(size)
    found = torch.where(size < 8, x * _series("I1_NEAR", size), far)
    return torch.where(size == math.inf, 0.0, found)


def _unscaled(function: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
    """The function times exp(|x|), whose halves do not overflow before it does."""

    def rule(x: Tensor) -> Tensor:
        half = torch.exp(x.abs() / 2)
        return function(x) * half * half

    return rule


def _spherical_bessel_j0(x: Tensor) -> Tensor:
    square = x * x
    series = _horner(square, [1, -1 / 6, 1 / 120, -1 / 5040, 1 / 362880])
    found = torch.where(x.abs() < 0.5, series, torch.sin(x) / x)
    return torch.where(x.abs() == math.inf, 0.0, found)


def _rules() -> dict[Any, Callable[..., Any]]:
    functions = {
        aten.erfc: _erfc,
        aten.erfinv: _erfinv,
        aten.special_erfcx: _erfcx,
        aten.special_log_ndtr: _log_ndtr,
        aten.special_ndtri: _ndtri,
        aten.digamma: _digamma,
        aten.lgamma: _lgamma,
        aten.i0: _unscaled(_scaled_bessel_0),
        aten.special_i0e: _scaled_bessel_0,
        aten.special_i1: _unscaled(_scaled_bessel_1),
        aten.special_i1e: _scaled_bessel_1,
        aten.special_modified_bessel_i0: _unscaled(_scaled_bessel_0),
        aten.special_modified_bessel_i1: _unscaled(_scaled_bessel_1),
        aten.special_spherical_bessel_j0: _spherical_bessel_j0,
    }
    rules: dict[Any, Callable[..., Any]] = {
        packet.default: _in_f32(function) for packet, function in functions.items()
    }
    rules[aten.mvlgamma.default] = _mvlgamma
    return rules | dict.fromkeys(
        [aten.polygamma.default, aten.special_polygamma.default], _polygamma
    )


RULES = _rules()
