"""Operators that compute each element from one of each operand."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from onnx import TensorProto

from ..emitter import Emitter
from ..registry import Node, lowers
from ..scalars import Body, Scalar
from ..values import FLOATS, HALVES, UNSIGNED, Value, bits_of
from .shapes import operands

F32, BOOL = TensorProto.FLOAT, TensorProto.BOOL

Unary = Callable[[Body, Scalar], Scalar]


def of_widened(function: Callable[..., Scalar]) -> Callable[..., Scalar]:
    """The function of halves computed in f32, and rounded once."""

    def widened(b: Body, *values: Scalar) -> Scalar:
        result = function(b, *(b.widened(value) for value in values))
        return b.cast(result, values[0].kind) if values[0].kind in HALVES else result

    return widened


def _math(name: str) -> Unary:
    return lambda b, x: b.unary(name, x)


def sigmoid(b: Body, x: Scalar) -> Scalar:
    one = b.like(1, x)
    return b.div(one, b.add(one, b.unary("exp", b.neg(x))))


def _softplus(b: Body, x: Scalar) -> Scalar:
    """log(1 + exp(x)), without an overflow."""
    magnitude = b.unary("absf", x)
    rest = b.unary("log1p", b.unary("exp", b.neg(magnitude)))
    return b.add(b.max(x, b.like(0, x)), rest)


def _mish(b: Body, x: Scalar) -> Scalar:
    return b.mul(x, b.unary("tanh", _softplus(b, x)))


def _sign(b: Body, x: Scalar) -> Scalar:
    zero = b.like(0, x)
    above = b.select(b.compare("gt", x, zero), b.like(1, x), zero)
    if x.is_unsigned:
        return above
    signed = b.select(b.compare("lt", x, zero), b.like(-1, x), above)
    return b.select(b.is_nan(x), x, signed) if x.is_float else signed


def _abs(b: Body, x: Scalar) -> Scalar:
    if x.is_float:
        return b.unary("absf", x)
    return x if x.is_unsigned else b.max(x, b.neg(x))


def _reciprocal(b: Body, x: Scalar) -> Scalar:
    return b.div(b.like(1, x), x)


def _relu(b: Body, x: Scalar) -> Scalar:
    return x if x.is_unsigned else b.max(x, b.like(0, x))


def _hard_swish(b: Body, x: Scalar) -> Scalar:
    part = b.add(b.mul(x, b.like(1 / 6, x)), b.like(0.5, x))
    return b.mul(x, b.clamp(part, b.like(0, x), b.like(1, x)))


def _softsign(b: Body, x: Scalar) -> Scalar:
    return b.div(x, b.add(b.unary("absf", x), b.like(1, x)))


_UNARY: Mapping[str, Unary] = {
    "Abs": _abs,
    "Acos": of_widened(_math("acos")),
    "Acosh": of_widened(_math("acosh")),
    "Asin": of_widened(_math("asin")),
    "Asinh": of_widened(_math("asinh")),
    "Atan": of_widened(_math("atan")),
    "Atanh": of_widened(_math("atanh")),
    "Ceil": _math("ceil"),
    "Cos": _math("cos"),
    "Cosh": _math("cosh"),
    "Erf": _math("erf"),
    "Exp": _math("exp"),
    "Floor": _math("floor"),
    "HardSwish": of_widened(_hard_swish),
    "Log": _math("log"),
    "Mish": of_widened(_mish),
    "Neg": lambda b, x: b.neg(x),
    "Reciprocal": of_widened(_reciprocal),
    "Relu": _relu,
    "Round": _math("roundeven"),
    "Sigmoid": of_widened(sigmoid),
    "Sign": _sign,
    "Sin": _math("sin"),
    "Sinh": _math("sinh"),
    "Softplus": of_widened(_softplus),
    "Softsign": of_widened(_softsign),
    "Sqrt": _math("sqrt"),
    "Tan": _math("tan"),
    "Tanh": _math("tanh"),
    "BitwiseNot": lambda b, x: b.invert(x),
    "Not": lambda b, x: b.invert(x),
}


@lowers(*_UNARY)
def unary(e: Emitter, n: Node) -> Value:
    (x,) = operands(n)
    return e.pointwise(x.kind, [x], _UNARY[n.operator])


def _elu(b: Body, x: Scalar, alpha: float) -> Scalar:
    below = b.mul(b.like(alpha, x), b.unary("expm1", x))
    return b.select(b.compare("gt", x, b.like(0, x)), x, below)


def _selu(b: Body, x: Scalar, alpha: float, gamma: float) -> Scalar:
    return b.mul(b.like(gamma, x), _elu(b, x, alpha))


def _celu(b: Body, x: Scalar, alpha: float) -> Scalar:
    zero = b.like(0, x)
    below = b.mul(b.like(alpha, x), b.unary("expm1", b.div(x, b.like(alpha, x))))
    return b.add(b.max(x, zero), b.min(below, zero))


def _leaky_relu(b: Body, x: Scalar, alpha: float) -> Scalar:
    return b.select(b.compare("lt", x, b.like(0, x)), b.mul(x, b.like(alpha, x)), x)


def _thresholded_relu(b: Body, x: Scalar, alpha: float) -> Scalar:
    return b.select(b.compare("gt", x, b.like(alpha, x)), x, b.like(0, x))


def _hard_sigmoid(b: Body, x: Scalar, alpha: float, beta: float) -> Scalar:
    line = b.add(b.mul(x, b.like(alpha, x)), b.like(beta, x))
    return b.clamp(line, b.like(0, x), b.like(1, x))


def _shrink(b: Body, x: Scalar, bias: float, lambd: float) -> Scalar:
    zero = b.like(0, x)
    above = b.select(b.compare("gt", x, b.like(lambd, x)), b.sub(x, b.like(bias, x)), zero)
    return b.select(b.compare("lt", x, b.like(-lambd, x)), b.add(x, b.like(bias, x)), above)


#: Functions with the names of their attributes and what these are by default.
_PARAMETRIC: Mapping[str, tuple[Callable[..., Scalar], Mapping[str, float]]] = {
    "Celu": (_celu, {"alpha": 1.0}),
    "Elu": (_elu, {"alpha": 1.0}),
    "HardSigmoid": (_hard_sigmoid, {"alpha": 0.2, "beta": 0.5}),
    "LeakyRelu": (_leaky_relu, {"alpha": 0.01}),
    "Selu": (_selu, {"alpha": 1.67326319217681884765625, "gamma": 1.05070102214813232421875}),
    "ThresholdedRelu": (_thresholded_relu, {"alpha": 1.0}),
}


@lowers(*_PARAMETRIC)
def parametric(e: Emitter, n: Node) -> Value:
    (x,) = operands(n)
    function, defaults = _PARAMETRIC[n.operator]
    numbers = [n.attr(name, default) for name, default in defaults.items()]
    body = of_widened(lambda b, a: function(b, a, *numbers))
    return e.pointwise(x.kind, [x], body)


@lowers("Shrink")
def shrink(e: Emitter, n: Node) -> Value:
    (x,) = operands(n)
    bias, lambd = n.attr("bias", 0.0), n.attr("lambd", 0.5)
    if x.is_float:
        body = of_widened(lambda b, a: _shrink(b, a, bias, lambd))
        return e.pointwise(x.kind, [x], body)
    kind = TensorProto.DOUBLE
    return e.pointwise(
        x.kind, [x], lambda b, a: b.cast(_shrink(b, b.cast(a, kind), bias, lambd), x.kind)
    )


@lowers("Gelu")
def gelu(e: Emitter, n: Node) -> Value:
    (x,) = operands(n)

    def exact(b: Body, a: Scalar) -> Scalar:
        erf = b.unary("erf", b.mul(a, b.like(math.sqrt(0.5), a)))
        return b.mul(b.mul(a, b.like(0.5, a)), b.add(erf, b.like(1, a)))

    def by_tanh(b: Body, a: Scalar) -> Scalar:
        cube = b.mul(b.mul(a, a), b.mul(a, b.like(0.044715, a)))
        inner = b.mul(b.add(a, cube), b.like(math.sqrt(2 / math.pi), a))
        return b.mul(b.mul(a, b.like(0.5, a)), b.add(b.unary("tanh", inner), b.like(1, a)))

    body = by_tanh if n.attr("approximate", "none") == "tanh" else exact
    return e.pointwise(x.kind, [x], of_widened(body))


_LARGEST = (2 - 2**-23) * 2.0**127


@lowers("Clip")
def clip(e: Emitter, n: Node) -> Value:
    """NaN stays; where the minimum is larger, the maximum decides."""
    x = n.inputs[0]
    assert x is not None
    if n.version < 11:
        # Older sets have the largest numbers of f32 where a bound is left out.
        bounds: list[Any] = [n.attr("min", -_LARGEST), n.attr("max", _LARGEST)]
    else:
        bounds = [n.input(1), n.input(2)]
    values = [x, *(bound for bound in bounds if isinstance(bound, Value))]

    def body(b: Body, a: Scalar, *rest: Scalar) -> Scalar:
        left = [*rest]
        for bound, function in zip(bounds, (b.max, b.min)):
            if bound is not None:
                a = function(a, left.pop(0) if isinstance(bound, Value) else b.like(bound, a))
        return a

    return e.pointwise(x.kind, values, body, x.dims)


@lowers("IsNaN")
def is_nan(e: Emitter, n: Node) -> Value:
    (x,) = operands(n)
    return e.pointwise(BOOL, [x], lambda b, a: b.is_nan(a))


@lowers("IsInf")
def is_inf(e: Emitter, n: Node) -> Value:
    (x,) = operands(n)
    signs = []
    if n.attr("detect_positive", 1):
        signs.append(math.inf)
    if n.attr("detect_negative", 1):
        signs.append(-math.inf)

    def body(b: Body, a: Scalar) -> Scalar:
        result = b.const(False, BOOL)
        for sign in signs:
            result = b.bit_or(result, b.compare("eq", a, b.like(sign, a)))
        return result

    return e.pointwise(BOOL, [x], body)


@lowers("Where")
def where(e: Emitter, n: Node) -> Value:
    condition, x, y = operands(n)
    return e.pointwise(x.kind, [condition, x, y], lambda b, c, p, q: b.select(c, p, q))


def dims_of_old_broadcast(e: Emitter, n: Node, values: list[Value]) -> list[Value]:
    """Operands of an operator set before 7, whose second one has an axis, made to fit the first."""
    if n.version >= 7 or len(values) != 2:
        return values
    a, b = values
    if not n.attr("broadcast", 0) or a.dims == b.dims:
        return values
    axis = n.attr("axis", a.rank - b.rank) % max(a.rank, 1)
    return [a, e.reshape(b, [*b.dims, *[1] * (a.rank - axis - b.rank)])]


_BINARY: Mapping[str, Callable[[Body, Scalar, Scalar], Scalar]] = {
    "Add": lambda b, x, y: b.add(x, y),
    "Sub": lambda b, x, y: b.sub(x, y),
    "Mul": lambda b, x, y: b.mul(x, y),
    "Div": lambda b, x, y: b.div(x, y),
    "And": lambda b, x, y: b.bit_and(x, y),
    "Or": lambda b, x, y: b.bit_or(x, y),
    "Xor": lambda b, x, y: b.bit_xor(x, y),
    "BitwiseAnd": lambda b, x, y: b.bit_and(x, y),
    "BitwiseOr": lambda b, x, y: b.bit_or(x, y),
    "BitwiseXor": lambda b, x, y: b.bit_xor(x, y),
}


@lowers(*_BINARY)
def binary(e: Emitter, n: Node) -> Value:
    values = dims_of_old_broadcast(e, n, operands(n))
    return e.pointwise(values[0].kind, values, _BINARY[n.operator])


_COMPARISONS = {
    "Equal": "eq", "Greater": "gt", "Less": "lt", "GreaterOrEqual": "ge", "LessOrEqual": "le",
}  # fmt: skip


@lowers(*_COMPARISONS)
def comparison(e: Emitter, n: Node) -> Value:
    values = dims_of_old_broadcast(e, n, operands(n))
    predicate = _COMPARISONS[n.operator]
    return e.pointwise(BOOL, values, lambda b, x, y: b.compare(predicate, x, y))


@lowers("Max", "Min", "Sum", "Mean")
def variadic(e: Emitter, n: Node) -> Value:
    values = operands(n)
    kind = values[0].kind

    def body(b: Body, *elements: Scalar) -> Scalar:
        result = b.widened(elements[0])
        for element in elements[1:]:
            combine = {"Max": b.max, "Min": b.min}.get(n.operator, b.add)
            result = combine(result, b.widened(element))
        if n.operator == "Mean":
            result = b.div(result, b.like(len(elements), result))
        return b.cast(result, kind)

    return e.pointwise(kind, values, body)


@lowers("PRelu")
def prelu(e: Emitter, n: Node) -> Value:
    x, slope = operands(n)
    if n.version < 7 and slope.rank == 1 and slope.dims[0] != 1 and x.rank > 1:
        slope = e.reshape(slope, [slope.dims[0], *[1] * (x.rank - 2)])

    def body(b: Body, a: Scalar, s: Scalar) -> Scalar:
        return b.select(b.compare("lt", a, b.like(0, a)), b.mul(a, s), a)

    return e.pointwise(x.kind, [x, slope], body, x.dims)


@lowers("Mod")
def mod(e: Emitter, n: Node) -> Value:
    """The sign is that of the divisor, or of the dividend with `fmod`."""
    values = operands(n)
    is_fmod = bool(n.attr("fmod", 0))

    def body(b: Body, x: Scalar, y: Scalar) -> Scalar:
        rest = b.rem(x, y)
        if is_fmod or x.is_unsigned:
            return rest
        zero = b.like(0, x)
        is_other = b.compare("ne", b.compare("lt", rest, zero), b.compare("lt", y, zero))
        is_needed = b.bit_and(is_other, b.compare("ne", rest, zero))
        return b.select(is_needed, b.add(rest, y), rest)

    return e.pointwise(values[0].kind, values, of_widened(body))


@lowers("Pow")
def power(e: Emitter, n: Node) -> Value:
    """Computed in the type of the base; integers in f64, which is exact up to 2^53."""
    base, exponent = dims_of_old_broadcast(e, n, operands(n))
    kind = base.kind
    known = exponent.array
    if known is not None and known.size == 1 and kind in FLOATS:
        number = float(known.reshape(-1)[0])
        short = _POWERS.get(number)
        if short is not None:
            return e.pointwise(
                kind, [base], of_widened(short), e.broadcast_dims([base.dims, exponent.dims])
            )
    wide_kind = TensorProto.DOUBLE if kind == TensorProto.DOUBLE or kind not in FLOATS else F32

    def body(b: Body, x: Scalar, y: Scalar) -> Scalar:
        if kind not in FLOATS and y.kind not in FLOATS:
            return b.cast(_integer_power(b, x, y), kind)
        wide = b.cast(x, wide_kind)
        return b.cast(b.pow(wide, b.cast(y, wide_kind)), kind)

    return e.pointwise(kind, [base, exponent], body)


_POWERS: Mapping[float, Unary] = {
    1.0: lambda b, x: x,
    2.0: lambda b, x: b.mul(x, x),
    3.0: lambda b, x: b.mul(b.mul(x, x), x),
    0.5: lambda b, x: b.unary("sqrt", x),
    -1.0: lambda b, x: b.div(b.like(1, x), x),
    -0.5: lambda b, x: b.div(b.like(1, x), b.unary("sqrt", x)),
}


def _integer_power(b: Body, x: Scalar, y: Scalar) -> Scalar:
    """Squares and products for each bit of the exponent, as integers wrap around."""
    wide = TensorProto.INT64
    base, exponent = b.cast(x, wide), b.cast(y, wide)
    one, zero = b.like(1, base), b.like(0, base)
    result = one
    for _ in range(6):
        is_odd = b.compare("ne", b.bit_and(exponent, one), zero)
        result = b.mul(result, b.select(is_odd, base, one))
        base = b.mul(base, base)
        exponent = b.op(f"arith.shrsi {exponent.ssa}, {one.ssa} : i64", wide)
    return result


@lowers("BitShift")
def bit_shift(e: Emitter, n: Node) -> Value:
    """Shifts by the width or more push every bit out; so do negative ones."""
    values = operands(n)
    width = bits_of(values[0].kind)
    is_right = n.attr("direction") == "RIGHT"

    def body(b: Body, x: Scalar, y: Scalar) -> Scalar:
        is_out = b.compare("ge", y, b.like(width, y))
        if not y.is_unsigned:
            is_out = b.bit_or(is_out, b.compare("lt", y, b.like(0, y)))
        keeps_sign = is_right and x.kind not in UNSIGNED
        shift = b.select(is_out, b.like(width - 1 if keeps_sign else 0, y), y)
        name = "shli" if not is_right else "shrsi" if keeps_sign else "shrui"
        moved = b.op(f"arith.{name} {x.ssa}, {shift.ssa} : {x.element}", x.kind)
        return moved if keeps_sign else b.select(is_out, b.like(0, x), moved)

    return e.pointwise(values[0].kind, values, body)


__all__ = ["of_widened", "sigmoid"]
