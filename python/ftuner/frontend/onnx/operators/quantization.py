"""Quantized tensors, and products of them as products of integers."""

from __future__ import annotations

import numpy as np
from onnx import TensorProto

from ..emitter import Emitter
from ..registry import Node, lowers
from ..scalars import Body, Scalar
from ..values import FLOATS, Value
from .contractions import matrix_product

F32, I32 = TensorProto.FLOAT, TensorProto.INT32
_INTEGERS = frozenset([
    TensorProto.INT8, TensorProto.UINT8, TensorProto.INT16, TensorProto.UINT16, TensorProto.INT32,
])  # fmt: skip
_LIMITS: dict[int, tuple[int, int]] = {
    TensorProto.INT8: (-128, 127), TensorProto.UINT8: (0, 255),
    TensorProto.INT16: (-32768, 32767), TensorProto.UINT16: (0, 65535),
}  # fmt: skip


def _of_axis(e: Emitter, n: Node, value: Value, x: Value) -> Value:
    """A scale or zero point with the dimensions of the tensor."""
    block = n.attr("block_size", 0)
    if block:
        return _of_blocks(e, n, value, x, block)
    if value.rank == 0 or (value.rank == 1 and value.dims[0] == 1):
        return e.reshape(value, [])
    if value.rank != 1:
        raise n.refuse("its scale has several dimensions", "give it one for the tensor or an axis")
    axis = n.attr("axis", 1) % max(x.rank, 1)
    e.check_equal(
        value.dims[0], x.dims[axis], f"expected a scale for each place of dimension {axis}"
    )
    return e.reshape(value, [x.dims[axis], *[1] * (x.rank - 1 - axis)])


def _of_blocks(e: Emitter, n: Node, value: Value, x: Value, block: int) -> Value:
    axis = n.attr("axis", 1) % max(x.rank, 1)
    e.use(value)

    def body(b: Body, *places: Scalar) -> Scalar:
        chosen = [b.floordiv(p, block) if d == axis else p for d, p in enumerate(places)]
        return b.extract(value, chosen)

    return e.compute(x.dims, value.kind, body)


@lowers("QuantizeLinear")
def quantize(e: Emitter, n: Node) -> Value:
    """Rounded to even, shifted by the zero point, and saturated."""
    x, scale, point = n.inputs[0], n.inputs[1], n.input(2)
    assert x is not None and scale is not None
    kind = point.kind if point is not None else n.attr("output_dtype", 0) or TensorProto.UINT8
    if kind not in _LIMITS:
        raise n.refuse(
            f"its result has elements of type {TensorProto.DataType.Name(kind)}",
            "quantize to integers of 8 or 16 bits",
        )
    low, high = _LIMITS[kind]
    values = [x, _of_axis(e, n, scale, x)]
    if point is not None:
        values.append(_of_axis(e, n, point, x))

    def body(b: Body, a: Scalar, s: Scalar, *p: Scalar) -> Scalar:
        # The quotient has the precision of the scale from set 23 on, unless the node specifies another one.
        precision = (n.attr("precision", 0) or s.kind) if n.version >= 23 else F32
        quotient = b.cast(b.div(b.cast(a, F32), b.cast(s, F32)), precision)
        rounded = b.unary("roundeven", b.cast(quotient, F32))
        if p:
            rounded = b.add(rounded, b.cast(p[0], F32))
        clipped = b.clamp(rounded, b.like(low, rounded), b.like(high, rounded))
        return b.cast(clipped, kind)

    return e.pointwise(kind, values, body, x.dims)


@lowers("DequantizeLinear")
def dequantize(e: Emitter, n: Node) -> Value:
    x, scale, point = n.inputs[0], n.inputs[1], n.input(2)
    assert x is not None and scale is not None
    if x.kind not in _INTEGERS:
        raise n.refuse(
            "its elements are not integers of 8, 16 or 32 bits", "quantize to integers of 8 bits"
        )
    kind = n.attr("output_dtype", 0) or scale.kind
    values = [x, _of_axis(e, n, scale, x)]
    if point is not None and not (point.array is not None and not point.array.any()):
        values.append(_of_axis(e, n, point, x))

    def body(b: Body, a: Scalar, s: Scalar, *p: Scalar) -> Scalar:
        wide = b.cast(a, I32)
        if p:
            wide = b.sub(wide, b.cast(p[0], I32))
        product = b.mul(b.cast(wide, F32), b.cast(s, F32))
        return b.cast(product, kind)

    return e.pointwise(kind, values, body, x.dims)


def integer_product(
    e: Emitter,
    a: Value,
    b: Value,
    a_point: Value | None,
    b_point: Value | None,
    *,
    is_transposed: bool = False,
) -> Value:
    """The product of factors of 8 bits in 32, with zero points.

    Matrices are multiplied without their zero points, whose share follows from sums over the matrices:

        sum (a - p) (b - q) = sum a b - p (sum b - k q) - q sum a

    All terms wrap around as the sums of ONNX do. Sums over weights are known before a run.
    """
    p, q = _point(e, a_point, is_of_rows=True), _point(e, b_point, is_of_rows=False)
    if min(a.rank, b.rank) < 2:
        factors = []
        for value, point in ((a, p), (b, q)):
            wide = e.cast(value, I32)
            if point is not None:
                point = e.reshape(point, []) if point.rank else point
                wide = _binary(e, "sub", wide, point)
            factors.append(wide)
        return matrix_product(e, factors[0], factors[1], I32)
    product = matrix_product(e, a, b, I32, is_transposed=is_transposed)
    if p is not None:
        columns = _sum(e, b, -1 if is_transposed else -2, -2)
        if q is not None:
            length = e.cast(e.of_sizes(a.dims[-1]), I32) if isinstance(a.dims[-1], int) else (
                e.of_sizes(a.dims[-1], I32))  # fmt: skip
            columns = _binary(e, "sub", columns, _binary(e, "mul", length, q))
        product = _binary(e, "sub", product, _binary(e, "mul", p, columns))
    if q is not None:
        product = _binary(e, "sub", product, _binary(e, "mul", q, _sum(e, a, -1, -1)))
    return product


def _binary(e: Emitter, name: str, x: Value, y: Value) -> Value:
    result: Value = e.call(name.capitalize(), x, y)
    return result


def _point(e: Emitter, point: Value | None, *, is_of_rows: bool) -> Value | None:
    """A zero point in 32 bits, of which a list of rows gets a dimension; None for 0."""
    if point is None or (point.array is not None and not point.array.any()):
        return None
    if point.rank == 1 and point.dims[0] == 1:
        point = e.reshape(point, [])
    wide = e.cast(point, I32)
    return e.reshape(wide, [*wide.dims, 1]) if is_of_rows and wide.rank == 1 else wide


def _sum(e: Emitter, factor: Value, axis: int, place: int) -> Value:
    """The sum over a dimension in 32 bits, with a dimension of size 1 at a place."""
    if factor.array is not None:
        total = np.expand_dims(factor.array.sum(axis, np.int32), place)
        return e.constant(total)
    axis %= factor.rank
    found = e.reduce(
        factor, [axis], 0, lambda b, x, s: b.add(x, s), False, lambda b, x: b.cast(x, I32), I32
    )
    dims = [*found.dims]
    dims.insert(place % (len(dims) + 1), 1)
    return e.reshape(found, dims)


@lowers("MatMulInteger")
def matmul_integer(e: Emitter, n: Node) -> Value:
    a, b = n.inputs[0], n.inputs[1]
    assert a is not None and b is not None
    return integer_product(e, a, b, n.input(2), n.input(3))


@lowers("QLinearMatMul")
def qlinear_matmul(e: Emitter, n: Node) -> Value:
    """An integer product, scaled."""
    a, a_scale, a_point, b, b_scale, b_point, y_scale, y_point = n.inputs
    assert a is not None and a_scale is not None and b is not None and b_scale is not None
    assert y_scale is not None and y_point is not None
    product = integer_product(e, a, b, a_point, b_point)
    rows = e.cast(a_scale, F32)
    if rows.rank == 1 and rows.dims[0] != 1:
        rows = e.reshape(rows, [*rows.dims, 1])
    scale = _binary(e, "mul", rows, e.cast(b_scale, F32))
    scale = _binary(e, "div", scale, e.cast(y_scale, F32))
    found = _binary(e, "mul", e.cast(product, F32), scale)
    found = e.reshape(found, product.dims)
    result: Value = e.call("QuantizeLinear", found, e.constant(np.float32(1)), y_point)
    return result


#: Up to this length, sums of products of 8 bits, less zero points, are exact in 32 bits.
_MAX_LENGTH = (2**31 - 1) // 255**2


def dequantized_product(
    e: Emitter, a: Value, b: Value, is_transposed: bool = False, alpha: float = 1.0
) -> Value | None:
    """A product of dequantized factors as a scaled product of their integers; None for other factors.

    `a` has one scale, and `b` has one scale or a scale for each column. The sum of the integers is
    exact, and rounded once before it is scaled.
    """
    lhs, rhs = _dequantized(a), _dequantized(b)
    if lhs is None or rhs is None:
        return None
    (a, a_scale, a_point, _), (b, b_scale, b_point, axis) = lhs, rhs
    if min(a.rank, b.rank) < 2:
        return None
    reduced, column = (b.rank - 1, b.rank - 2) if is_transposed else (b.rank - 2, b.rank - 1)
    lengths = [size for size in (a.dims[-1], b.dims[reduced]) if isinstance(size, int)]
    if not lengths or not 0 < min(lengths) <= _MAX_LENGTH:
        return None
    is_of_columns = b_scale.rank == 1 and axis % b.rank == column
    if a_scale.dims not in ((), (1,)) or not (b_scale.dims in ((), (1,)) or is_of_columns):
        return None
    product = integer_product(e, a, b, a_point, b_point, is_transposed=is_transposed)
    scale = _binary(e, "mul", e.call("Reshape", a_scale, e.of_sizes([])), b_scale)
    if alpha != 1:
        scale = _binary(e, "mul", scale, e.constant(np.float32(alpha)))
    found = e.cast(product, F32)
    return e.pointwise(F32, [found, scale], lambda s, x, y: s.mul(x, y), product.dims)


def _dequantized(value: Value) -> tuple[Value, Value, Value | None, int] | None:
    """The integers of 8 bits that a value of f32 was dequantized from, their scale, zero point and axis."""
    node = value.origin
    if node is None or node.operator != "DequantizeLinear" or value.kind != F32:
        return None
    x, scale, point = node.inputs[0], node.inputs[1], node.input(2)
    if x.kind not in (TensorProto.UINT8, TensorProto.INT8) or node.attr("block_size"):
        return None
    return (x, scale, point, node.attr("axis", 1)) if scale.kind == F32 else None


__all__ = ["FLOATS", "dequantized_product", "integer_product"]
