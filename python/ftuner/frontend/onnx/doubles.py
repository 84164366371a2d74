"""Functions of f64, which kernels have no instructions for, as arithmetic.

Arguments are reduced exactly as the C library does (fdlibm): exp to multiples of log 2, log to a factor between
sqrt(1/2) and sqrt(2), sine and cosine to multiples of pi/2 (three parts of it, up to 2^20 of them; beyond that
sine, cosine and tangent are NaN). Errors are a few units in the last place.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from onnx import TensorProto

if TYPE_CHECKING:
    from .scalars import Body, Scalar

F64, I64 = TensorProto.DOUBLE, TensorProto.INT64

#: log 2 and pi/2 in parts; all parts except the last end in zero bits.
_LN2 = (6.93147180369123816490e-01, 1.90821492927058770002e-10)
_HALF_PI = (1.57079632673412561417e00, 6.07710050630396597660e-11, 2.02226624879595063154e-21)


def _polynomial(b: Body, x: Scalar, coefficients: Sequence[float]) -> Scalar:
    """The sum of powers of x, the lowest first."""
    total = b.like(coefficients[-1], x)
    for coefficient in reversed(coefficients[:-1]):
        total = b.add(b.mul(total, x), b.like(coefficient, x))
    return total


def _bits(b: Body, x: Scalar) -> Scalar:
    return b.op(f"arith.bitcast {x.ssa} : f64 to i64", I64)


def _from_bits(b: Body, x: Scalar) -> Scalar:
    return b.op(f"arith.bitcast {x.ssa} : i64 to f64", F64)


def _shift(b: Body, x: Scalar, name: str, amount: int) -> Scalar:
    return b.op(f"arith.{name} {x.ssa}, {b.const(amount, I64).ssa} : i64", I64)


def _power_of_two(b: Body, k: Scalar) -> Scalar:
    """2^k of an integer from -1022 to 1023."""
    return _from_bits(b, _shift(b, b.add(k, b.const(1023, I64)), "shli", 52))


def _rounded(b: Body, x: Scalar) -> tuple[Scalar, Scalar]:
    """The nearest integer to a number below 2^51, and as an i64; 0 for NaN."""
    magic = b.like(1.5 * 2.0**52, x)
    whole = b.sub(b.add(x, magic), magic)
    whole = b.select(b.is_nan(whole), b.like(0, x), whole)
    return whole, b.op(f"arith.fptosi {whole.ssa} : f64 to i64", I64)


def exp(b: Body, x: Scalar) -> Scalar:
    bounded = b.clamp(x, b.like(-760, x), b.like(760, x))
    whole, k = _rounded(b, b.mul(bounded, b.like(1 / math.log(2), x)))
    rest = b.sub(b.sub(bounded, b.mul(whole, b.like(_LN2[0], x))), b.mul(whole, b.like(_LN2[1], x)))
    value = _polynomial(b, rest, [1 / math.factorial(n) for n in range(14)])
    # In two steps, since 2^k may be beyond the type although the result is not.
    half = _shift(b, k, "shrsi", 1)
    return b.mul(b.mul(value, _power_of_two(b, half)), _power_of_two(b, b.sub(k, half)))


def log(b: Body, x: Scalar) -> Scalar:
    tiny = b.compare("lt", x, b.like(2.0**-1022, x))
    scaled = b.select(tiny, b.mul(x, b.like(2.0**54, x)), x)
    bits = _bits(b, scaled)
    # The bits of sqrt(1/2) are subtracted, so that the factor lies about 1.
    offset = b.const(0x3FE6A09E00000000, I64)
    exponent = _shift(b, b.sub(bits, offset), "shrsi", 52)
    factor = _from_bits(b, b.sub(bits, _shift(b, exponent, "shli", 52)))
    k = b.cast(exponent, F64)
    k = b.sub(k, b.select(tiny, b.like(54, x), b.like(0, x)))
    f = b.sub(factor, b.like(1, x))
    s = b.div(f, b.add(f, b.like(2, x)))
    series = _polynomial(b, b.mul(s, s), [2 / (2 * n + 1) for n in range(1, 12)])
    s2 = b.mul(s, s)
    low = b.mul(s, b.mul(s2, series))
    # 2s = f - s*f, without a rounding of f.
    value = b.sub(f, b.sub(b.mul(s, f), low))
    value = b.add(b.mul(k, b.like(_LN2[0], x)), b.add(value, b.mul(k, b.like(_LN2[1], x))))
    zero = b.like(0, x)
    value = b.select(b.compare("eq", x, zero), b.like(-math.inf, x), value)
    value = b.select(b.compare("eq", x, b.like(math.inf, x)), x, value)
    value = b.select(b.compare("lt", x, zero), b.like(math.nan, x), value)
    return b.select(b.is_nan(x), x, value)


def log1p(b: Body, x: Scalar) -> Scalar:
    one = b.like(1, x)
    u = b.add(x, one)
    difference = b.sub(u, one)
    value = b.mul(log(b, u), b.div(x, difference))
    value = b.select(b.compare("eq", difference, b.like(0, x)), x, value)
    return b.select(b.compare("eq", x, b.like(math.inf, x)), x, value)


def expm1(b: Body, x: Scalar) -> Scalar:
    one = b.like(1, x)
    series = b.mul(x, _polynomial(b, x, [1 / math.factorial(n + 1) for n in range(14)]))
    is_small = b.compare("lt", b.unary("absf", x), b.like(0.35, x))
    return b.select(is_small, series, b.sub(exp(b, x), one))


def tanh(b: Body, x: Scalar) -> Scalar:
    magnitude = b.min(b.unary("absf", x), b.like(20, x))
    t = expm1(b, b.mul(magnitude, b.like(2, x)))
    value = b.div(t, b.add(t, b.like(2, x)))
    return b.select(b.compare("lt", x, b.like(0, x)), b.neg(value), value)


def _quarter_turns(b: Body, x: Scalar) -> tuple[Scalar, Scalar, Scalar]:
    """The number of quarter turns, and sine and cosine of the remainder."""
    whole, k = _rounded(b, b.mul(x, b.like(2 / math.pi, x)))
    rest = x
    for part in _HALF_PI:
        rest = b.sub(rest, b.mul(whole, b.like(part, x)))
    square = b.mul(rest, rest)
    sine = _polynomial(b, square, [(-1) ** n / math.factorial(2 * n + 1) for n in range(9)])
    cosine = _polynomial(b, square, [(-1) ** n / math.factorial(2 * n) for n in range(10)])
    return k, b.mul(rest, sine), cosine


#: Maximum argument whose quarter turns can be subtracted exactly by three parts of pi/2.
_MAX_ANGLE = 2**20 * math.pi / 2


def _turned(b: Body, x: Scalar, shift: int) -> Scalar:
    is_small = b.compare("le", b.unary("absf", x), b.like(_MAX_ANGLE, x))
    k, sine, cosine = _quarter_turns(b, b.select(is_small, x, b.like(0, x)))
    k = b.add(k, b.const(shift, I64))
    zero = b.const(0, I64)
    is_odd = b.compare("ne", b.bit_and(k, b.const(1, I64)), zero)
    is_negative = b.compare("ne", b.bit_and(k, b.const(2, I64)), zero)
    value = b.select(is_odd, cosine, sine)
    value = b.select(is_negative, b.neg(value), value)
    return b.select(is_small, value, b.like(math.nan, x))


def sin(b: Body, x: Scalar) -> Scalar:
    return b.select(b.compare("eq", x, b.like(0, x)), x, _turned(b, x, 0))


def cos(b: Body, x: Scalar) -> Scalar:
    return _turned(b, x, 1)


def tan(b: Body, x: Scalar) -> Scalar:
    return b.div(sin(b, x), cos(b, x))


def roundeven(b: Body, x: Scalar) -> Scalar:
    """The nearest integer. Adding 2^52 drops the fraction; all numbers from 2^52 on are integers."""
    magnitude, whole = b.unary("absf", x), b.like(2.0**52, x)
    rounded = b.sub(b.add(magnitude, whole), whole)
    rounded = b.op(f"math.copysign {rounded.ssa}, {x.ssa} : f64", F64)
    return b.select(b.compare("lt", magnitude, whole), rounded, x)


#: exp(x^2) * erfc(x) from 1 to 6 as a polynomial of (x - 2.5) / (x + 2.5); scipy.special.erfcx, by Chebyshev's points.
_ERFCX: Sequence[float] = (
    0.21080636406114348,
    -0.37173673394897455,
    0.2517131932175176,
    -0.12503305237845616,
    0.0399225390662423,
    -0.003993701197395769,
    -0.0026423654181576845,
    0.0008759166088268327,
    0.000228363488445701,
    -0.0001288993301379307,
    -3.388223430502425e-05,
    1.8850196038691808e-05,
    4.407863561440844e-06,
    -3.695908085716496e-06,
    1.735013174637391e-05,
    4.37087507949584e-06,
    -6.217996160224251e-05,
    -5.211182448018215e-06,
    8.44849069167587e-05,
)


def erf(b: Body, x: Scalar) -> Scalar:
    magnitude = b.unary("absf", x)
    square = b.mul(x, x)
    series = [
        2 / math.sqrt(math.pi) * (-1) ** n / math.factorial(n) / (2 * n + 1) for n in range(20)
    ]
    inner = b.mul(x, _polynomial(b, square, series))
    outer = b.min(magnitude, b.like(6, x))
    place = b.div(b.sub(outer, b.like(2.5, x)), b.add(outer, b.like(2.5, x)))
    rest = b.mul(exp(b, b.neg(b.mul(outer, outer))), _polynomial(b, place, _ERFCX))
    value = b.sub(b.like(1, x), rest)
    value = b.select(b.compare("lt", x, b.like(0, x)), b.neg(value), value)
    return b.select(b.compare("lt", magnitude, b.like(1, x)), inner, value)


def pow(b: Body, x: Scalar, y: Scalar) -> Scalar:  # noqa: A001
    """x^y as C defines it, for integers y up to 2^53."""
    zero, one, infinity = b.like(0, x), b.like(1, x), b.like(math.inf, x)
    value = exp(b, b.mul(y, log(b, b.unary("absf", x))))
    whole = b.unary("floor", y)
    half = b.mul(y, b.like(0.5, y))
    is_whole = b.compare("eq", whole, y)
    is_odd = b.select(
        is_whole, b.compare("ne", b.unary("floor", half), half), b.const(False, TensorProto.BOOL)
    )
    is_negative = b.compare("lt", x, zero)
    signed = b.select(is_odd, b.neg(value), b.select(is_whole, value, b.like(math.nan, x)))
    finite = b.compare("gt", x, b.neg(infinity))
    signed = b.select(finite, signed, b.select(is_odd, b.neg(value), value))
    value = b.select(is_negative, signed, value)
    value = b.select(b.compare("eq", y, zero), one, value)
    return b.select(b.compare("eq", x, one), one, value)


FUNCTIONS: dict[str, Callable[[Body, Scalar], Scalar]] = {
    "exp": exp, "log": log, "log1p": log1p, "expm1": expm1, "tanh": tanh, "sin": sin, "cos": cos, "tan": tan, "erf": erf,
    "roundeven": roundeven,
}  # fmt: skip

__all__ = ["FUNCTIONS", "pow"]
