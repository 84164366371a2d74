"""Reductions of axes, positions of extremes, and normalizations along an axis."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from onnx import TensorProto

from ..emitter import Emitter
from ..registry import Node, lowers
from ..scalars import Body, Scalar
from ..sizes import Size, product
from ..values import FLOATS, HALVES, INDEX, UNSIGNED, Value, bits_of
from .pointwise import of_widened
from .shapes import axes_of, axis_of, operands

F32, I64, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL


def limit_of(kind: int, *, is_lowest: bool) -> Any:
    """The lowest or the highest element of a type."""
    if kind in FLOATS:
        return -math.inf if is_lowest else math.inf
    if kind == BOOL:
        return not is_lowest
    bits = bits_of(kind)
    if kind in UNSIGNED:
        return 0 if is_lowest else 2**bits - 1
    return -(2 ** (bits - 1)) if is_lowest else 2 ** (bits - 1) - 1


def sums_kind(kind: int) -> int:
    """The type of sums of elements: halves are summed up in f32."""
    return F32 if kind in HALVES else kind


Prepare = Callable[[Body, Scalar], Scalar]


def total(
    e: Emitter, x: Value, axes: list[int], keepdims: bool = True, prepare: Prepare | None = None
) -> Value:
    """A sum, in f32 for halves."""
    kind = sums_kind(x.kind)

    def wide(b: Body, a: Scalar) -> Scalar:
        a = b.cast(a, kind)
        return prepare(b, a) if prepare else a

    return e.reduce(x, axes, 0, lambda b, a, s: b.add(a, s), keepdims, wide, kind)


def count_of(x: Value, axes: list[int]) -> Size:
    return product(x.dims[axis] for axis in axes)


def divided(e: Emitter, x: Value, count: Size) -> Value:
    """The elements divided by a size."""
    if isinstance(count, int):
        return e.pointwise(x.kind, [x], lambda b, a: b.div(a, b.like(count, a)))
    e.index(count)
    return e.pointwise(x.kind, [x], lambda b, a: b.div(a, b.cast(b.size(count), a.kind)))


def _square(b: Body, a: Scalar) -> Scalar:
    return b.mul(a, a)


def _absolute(b: Body, a: Scalar) -> Scalar:
    if a.is_float:
        return b.unary("absf", a)
    return a if a.is_unsigned else b.max(a, b.neg(a))


@lowers(
    *("ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL1", "ReduceL2"),
    *("ReduceLogSum", "ReduceLogSumExp", "ReduceSumSquare"),
)
def reduce(e: Emitter, n: Node) -> Value:
    x = n.inputs[0]
    assert x is not None
    axes = axes_of(n, 1, x.rank)
    if not axes:
        if n.attr("noop_with_empty_axes", 0):
            return _reduced(e, n, x, [], True)
        axes = [*range(x.rank)]
    return _reduced(e, n, x, [*axes], bool(n.attr("keepdims", 1)))


def _reduced(e: Emitter, n: Node, x: Value, axes: list[int], keepdims: bool) -> Value:
    operator = n.operator
    if operator in ("ReduceMax", "ReduceMin"):
        is_max = operator == "ReduceMax"
        begin = limit_of(x.kind, is_lowest=is_max)
        if x.kind == BOOL:
            # A bool is a number of one bit.
            wide = e.cast(x, TensorProto.UINT8)
            return e.cast(_reduced(e, n, wide, axes, keepdims), BOOL)
        return e.reduce(
            x, axes, begin, lambda b, a, s: b.max(a, s) if is_max else b.min(a, s), keepdims
        )
    kind = sums_kind(x.kind)
    if operator == "ReduceProd":
        found = e.reduce(
            x, axes, 1, lambda b, a, s: b.mul(a, s), keepdims, lambda b, a: b.cast(a, kind), kind
        )
        return e.cast(found, x.kind)
    if operator == "ReduceLogSumExp":
        return e.cast(_log_sum_exp(e, x, axes, keepdims), x.kind)
    prepare = {"ReduceL1": _absolute, "ReduceL2": _square, "ReduceSumSquare": _square}.get(operator)
    found = total(e, x, axes, keepdims, prepare)
    if operator == "ReduceMean":
        found = divided(e, found, count_of(x, axes))
    if operator == "ReduceL2":
        found = _through_float(e, found, "sqrt")
    if operator == "ReduceLogSum":
        found = _through_float(e, found, "log")
    return e.cast(found, x.kind)


def _through_float(e: Emitter, x: Value, name: str) -> Value:
    kind = x.kind if x.is_float else TensorProto.DOUBLE
    return e.pointwise(x.kind, [x], lambda b, a: b.cast(b.unary(name, b.cast(a, kind)), x.kind))


def _log_sum_exp(e: Emitter, x: Value, axes: list[int], keepdims: bool) -> Value:
    """The logarithm of a sum of exponentials, whose arguments are shifted by a finite maximum."""
    kind = x.kind if x.kind == TensorProto.DOUBLE or x.is_float else TensorProto.DOUBLE
    x = e.cast(x, F32 if kind in HALVES else kind)
    top = e.reduce(x, axes, -math.inf, lambda b, a, s: b.max(a, s))

    def finite(b: Body, a: Scalar) -> Scalar:
        magnitude = b.unary("absf", a)
        return b.select(b.compare("eq", magnitude, b.like(math.inf, a)), b.like(0, a), a)

    shift = e.pointwise(x.kind, [top], finite)
    powers = e.pointwise(x.kind, [x, shift], lambda b, a, t: b.unary("exp", b.sub(a, t)))
    sums = total(e, powers, axes)
    result = e.pointwise(x.kind, [sums, shift], lambda b, s, t: b.add(b.unary("log", s), t))
    if keepdims:
        return result
    return e.reshape(result, [dim for axis, dim in enumerate(x.dims) if axis not in axes])


@lowers("ArgMax", "ArgMin")
def arg_extreme(e: Emitter, n: Node) -> Value:
    """The position of the extreme, of several the first or the last one; NaN counts as an extreme."""
    (x,) = operands(n)
    axis = axis_of(n, 0, x.rank)
    is_max, is_last = n.operator == "ArgMax", bool(n.attr("select_last_index", 0))
    if x.kind == BOOL:
        x = e.cast(x, TensorProto.UINT8)
    begin = limit_of(x.kind, is_lowest=is_max)
    access = [i for i in range(x.rank) if i != axis]

    def body(b: Body, a: Scalar, best: Scalar, place: Scalar) -> list[Scalar]:
        here = b.cast(b.index(axis), I64)
        name = ("ge" if is_last else "gt") if is_max else ("le" if is_last else "lt")
        is_better = b.compare(name, a, best)
        if x.is_float:
            best_is_nan = b.is_nan(best)
            is_better = b.bit_or(is_better, b.is_nan(a))
            is_better = b.bit_and(is_better, b.invert(best_is_nan))
        extreme = b.max(a, best) if is_max else b.min(a, best)
        return [extreme, b.select(is_better, here, place)]

    _, found = e.generic(
        x.dims, [(x, range(x.rank))], [(x.kind, access, begin), (I64, access, 0)], body, [axis]
    )
    if not n.attr("keepdims", 1):
        return found
    return e.reshape(found, [1 if i == axis else dim for i, dim in enumerate(x.dims)])


def softmax(e: Emitter, x: Value, axes: list[int], *, is_log: bool = False) -> Value:
    """Softmax over axes, in f32 for halves."""
    kind = x.kind
    x = e.cast(x, sums_kind(kind))
    top = e.reduce(x, axes, -math.inf, lambda b, a, s: b.max(a, s))
    shifted = e.pointwise(x.kind, [x, top], lambda b, a, t: b.sub(a, t))
    powers = e.pointwise(x.kind, [shifted], lambda b, a: b.unary("exp", a))
    sums = total(e, powers, axes)
    if is_log:
        logs = e.pointwise(x.kind, [sums], lambda b, s: b.unary("log", s))
        result = e.pointwise(x.kind, [shifted, logs], lambda b, a, s: b.sub(a, s))
    else:
        result = e.pointwise(x.kind, [powers, sums], lambda b, p, s: b.div(p, s))
    return e.cast(result, kind)


def _flattened(e: Emitter, n: Node, x: Value, compute: Callable[[Value, int], Value]) -> Value:
    """The computation along an axis; before operator set 13 of a matrix, whose rows begin at the axis."""
    if n.version >= 13:
        return compute(x, axis_of(n, -1, x.rank))
    axis = axis_of(n, 1, x.rank, may_be_end=True)
    if axis == x.rank - 1:
        return compute(x, axis)
    matrix = e.reshape(x, [product(x.dims[:axis]), product(x.dims[axis:])])
    return e.reshape(compute(matrix, 1), x.dims)


@lowers("Softmax", "LogSoftmax")
def softmax_of_axis(e: Emitter, n: Node) -> Value:
    (x,) = operands(n)
    is_log = n.operator == "LogSoftmax"
    return _flattened(e, n, x, lambda v, axis: softmax(e, v, [axis], is_log=is_log))


@lowers("Hardmax")
def hardmax(e: Emitter, n: Node) -> Value:
    """1 at the position of the maximum, the first one of several."""
    (x,) = operands(n)

    def compute(v: Value, axis: int) -> Value:
        place = e.call("ArgMax", v, axis=axis, keepdims=1)

        def body(b: Body, found: Scalar) -> Scalar:
            is_there = b.compare("eq", b.cast(b.index(axis), I64), found)
            return b.select(is_there, b.const(1, v.kind), b.const(0, v.kind))

        return e.pointwise(v.kind, [place], body, v.dims)

    return _flattened(e, n, x, compute)


@lowers("LpNormalization")
def lp_normalization(e: Emitter, n: Node) -> Value:
    """Divides by the norm along an axis; elements with the norm 0 stay 0."""
    (x,) = operands(n)
    axis, p = axis_of(n, -1, x.rank), n.attr("p", 2)
    norm = total(e, x, [axis], True, _absolute if p == 1 else _square)

    def divisor(b: Body, s: Scalar) -> Scalar:
        root = s if p == 1 else b.unary("sqrt", s)
        return b.select(b.compare("eq", root, b.like(0, root)), b.like(1, root), root)

    root = e.pointwise(norm.kind, [norm], divisor)
    return e.pointwise(
        x.kind, [x, root], lambda b, a, s: b.cast(b.div(b.cast(a, s.kind), s), x.kind)
    )


@lowers("GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool")
def global_pool(e: Emitter, n: Node) -> Value:
    (x,) = operands(n)
    axes = [*range(2, x.rank)]
    if n.operator == "GlobalMaxPool":
        return e.reduce(x, axes, -math.inf, lambda b, a, s: b.max(a, s))
    if n.operator == "GlobalAveragePool":
        return e.cast(divided(e, total(e, x, axes), count_of(x, axes)), x.kind)
    p = float(n.attr("p", 2 if n.version >= 2 else 2.0))
    return e.cast(norm_of(e, x, axes, p), x.kind)


def norm_of(e: Emitter, x: Value, axes: list[int], p: float) -> Value:
    sums = total(e, x, axes, True, lambda b, a: power_of_absolute(b, a, p))
    return e.pointwise(sums.kind, [sums], lambda b, s: root_of(b, s, p))


def power_of_absolute(b: Body, a: Scalar, p: float) -> Scalar:
    if p == 2:
        return b.mul(a, a)
    magnitude = b.unary("absf", a)
    return magnitude if p == 1 else b.pow(magnitude, b.like(p, a))


def root_of(b: Body, s: Scalar, p: float) -> Scalar:
    if p == 1:
        return s
    return b.unary("sqrt", s) if p == 2 else b.pow(s, b.like(1 / p, s))


_NORM_KINDS: Mapping[int, int] = {TensorProto.FLOAT: F32}

__all__ = [
    "INDEX", "count_of", "divided", "limit_of", "norm_of", "np", "of_widened", "power_of_absolute", "root_of",
    "softmax", "sums_kind", "total",
]  # fmt: skip
