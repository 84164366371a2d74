"""Operators on square matrices."""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx import TensorProto

from ..emitter import Emitter
from ..registry import Node, lowers
from ..values import INDEX, Value, dtype_of
from .shapes import operands

#: Matrices up to this size have a determinant: each row more is some kernels more.
_MAX_DETERMINANT = 16


@lowers("Det")
def det(e: Emitter, n: Node) -> Value:
    """Elimination by columns, each with its largest element as the pivot."""
    (matrix,) = operands(n)
    size, rank = matrix.dims[-1], matrix.rank
    if not isinstance(size, int) or not 0 < size <= _MAX_DETERMINANT:
        raise n.refuse(
            f"its matrices have {size if isinstance(size, int) else 'an unknown number of'} rows",
            f"make them matrices of 1 to {_MAX_DETERMINANT} rows",
        )
    e.check_equal(matrix.dims[-2], size, "expected square matrices")
    batch = [*matrix.dims[:-2]]

    def part(x: Value, axis: int, start: int, end: int) -> Value:
        dims = [*x.dims]
        dims[axis] = end - start
        return e.slice(x, [start if d == axis % rank else 0 for d in range(rank)], dims)

    def call(operator: str, *values: Value, **attributes: Any) -> Any:
        return e.call(operator, *values, **attributes)

    dtype = dtype_of(matrix.kind)
    one, zero = (e.constant(np.array(number, dtype)) for number in (1, 0))
    result = None
    for left in range(size, 1, -1):
        place = call("ArgMax", call("Abs", part(matrix, -1, 0, 1)), axis=rank - 2, keepdims=1)
        rows = e.constant(np.arange(left).reshape(left, 1))
        is_pivot = call("Equal", rows, place)
        kept = call("Where", is_pivot, matrix, zero)
        pivot_row = call("ReduceSum", kept, e.constant(np.array([rank - 2])), keepdims=1)
        pivot = part(pivot_row, -1, 0, 1)
        # The first row takes the place of the pivot's.
        first = part(matrix, -2, 0, 1)
        others = part(matrix, -2, 1, left)
        others = call("Where", part(is_pivot, -2, 1, left), first, others)
        is_first = call("Equal", place, e.constant(np.array(0)))
        signed = call("Where", is_first, pivot, call("Neg", pivot))
        result = signed if result is None else call("Mul", result, signed)
        divisor = call("Where", call("Equal", pivot, zero), one, pivot)
        factors = call("Div", part(others, -1, 0, 1), divisor)
        rest = part(pivot_row, -1, 1, left)
        matrix = call("Sub", part(others, -1, 1, left), call("Mul", factors, rest))
    last: Value = matrix if result is None else call("Mul", result, matrix)
    return e.reshape(last, batch)


@lowers("Trilu")
def trilu(e: Emitter, n: Node) -> Value:
    x, shift = n.inputs[0], n.input(1)
    assert x is not None
    k = n.integers(1)[0] if shift is not None else 0
    is_upper = bool(n.attr("upper", 1))
    rank = x.rank

    def body(b: Any, a: Any) -> Any:
        diagonal = b.add(b.index(rank - 2), b.const(k, INDEX))
        is_kept = b.compare("ge" if is_upper else "le", b.index(rank - 1), diagonal)
        return b.select(is_kept, a, b.like(0, a))

    return e.pointwise(x.kind, [x], body)


@lowers("EyeLike")
def eye_like(e: Emitter, n: Node) -> Value:
    (x,) = operands(n)
    kind, k = n.attr("dtype", x.kind), n.attr("k", 0)

    def body(b: Any, row: Any, column: Any) -> Any:
        is_one = b.compare("eq", column, b.add(row, b.const(k, INDEX)))
        return b.cast(is_one, kind) if kind == TensorProto.BOOL else (
            b.select(is_one, b.const(1, kind), b.const(0, kind)))  # fmt: skip

    return e.compute(x.dims, kind, body)


__all__ = ["det"]
