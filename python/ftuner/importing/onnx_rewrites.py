"""Operators of ONNX in other operators, where torch-mlir's lowering is of another meaning or none.

Each function of `REWRITES` writes nodes for one node, or none where torch-mlir's lowering serves.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from onnx import TensorProto, helper, numpy_helper

from .onnx_values import Values, is_own, replace_nodes, version_of

#: Matrices up to this size have a determinant: each row more is some kernels more.
_MAX_DETERMINANT = 16


class Writer:
    """Writes the nodes that stand for one."""

    def __init__(
        self, node: Any, values: Values, version: int, producers: Mapping[str, Any]
    ) -> None:
        self.node = node
        self.values = values
        self.version = version
        self.producers = producers
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self.attributes = {a.name: helper.get_attribute_value(a) for a in node.attribute}

    def add(self, operator: str, *inputs: str, result: str | None = None, **attributes: Any) -> str:
        """Adds a node; returns its result."""
        name = result or self._name(operator)
        self.nodes.append(
            helper.make_node(operator, inputs, [name], name=self.node.name, **attributes)
        )
        return name

    def constant(self, value: Any, dtype: Any) -> str:
        name = self._name("constant")
        self.constants.append(numpy_helper.from_array(np.asarray(value, dtype), name))
        return name

    def axes(self, *axes: int) -> str:
        return self.constant(axes, np.int64)

    def _name(self, word: str) -> str:
        number = len(self.nodes) + len(self.constants)
        return f"{self.node.output[0]}/{self.node.op_type}/{word}_{number}"

    def slice(self, value: str, axis: int, start: int, end: int) -> str:
        bounds = (self.axes(number) for number in (start, end, axis))
        return self.add("Slice", value, *bounds)

    def reduce(self, operator: str, value: str, axis: int) -> str:
        """A reduction that keeps its dimension; most have the axes as an input since version 18."""
        if self.version >= 18 or operator == "ReduceSum":
            return self.add(operator, value, self.axes(axis), keepdims=1)
        return self.add(operator, value, axes=[axis], keepdims=1)

    def dtype_of(self, value: str) -> Any:
        kind = self.values.element_of(value)
        return None if kind is None else helper.tensor_dtype_to_np_dtype(kind)


def rewrite(model: Any) -> bool:
    """Rewrites the main graph's nodes; whether there was one."""
    values, version = Values(model), version_of(model)
    producers = {name: node for node in model.graph.node for name in node.output}
    nodes, constants = [], []
    for node in model.graph.node:
        write = REWRITES.get(node.op_type) if is_own(node.domain) else None
        writer = Writer(node, values, version, producers)
        if write is not None:
            write(writer)
        if not any(node.output[0] in written.output for written in writer.nodes):
            # It could not be written.
            nodes.append(node)
            continue
        nodes += writer.nodes
        constants += writer.constants
    has_changed = len(nodes) != len(model.graph.node) or bool(constants)
    if has_changed:
        replace_nodes(model.graph, nodes)
        model.graph.initializer.extend(constants)
    return has_changed


def _lp_normalization(writer: Writer) -> None:
    """What has the norm 0 stays 0."""
    (x,), (y,) = writer.node.input, writer.node.output
    dtype = writer.dtype_of(x)
    if dtype is None:
        return
    axis = writer.attributes.get("axis", -1)
    norm = writer.reduce(f"ReduceL{writer.attributes.get('p', 2)}", x, axis)
    is_zero = writer.add("Equal", norm, writer.constant(0, dtype))
    divisor = writer.add("Where", is_zero, writer.constant(1, dtype), norm)
    writer.add("Div", x, divisor, result=y)


def _det(writer: Writer) -> None:
    """Elimination by columns, each with its largest element as the pivot."""
    (matrix,), (result,) = writer.node.input, writer.node.output
    shape, dtype = writer.values.shape_of(matrix), writer.dtype_of(matrix)
    size = shape[-1] if shape else None
    if shape is None or dtype is None or size is None or not 0 < size <= _MAX_DETERMINANT:
        return
    rank = len(shape)
    one, zero = writer.constant(1, dtype), writer.constant(0, dtype)
    product = None
    for left in range(size, 1, -1):
        column = writer.slice(matrix, rank - 1, 0, 1)
        place = writer.add("ArgMax", writer.add("Abs", column), axis=rank - 2, keepdims=1)
        rows = writer.constant(np.arange(left).reshape(left, 1), np.int64)
        is_pivot = writer.add("Equal", rows, place)
        kept = writer.add("Where", is_pivot, matrix, zero)
        pivot_row = writer.reduce("ReduceSum", kept, rank - 2)
        pivot = writer.slice(pivot_row, rank - 1, 0, 1)
        # The first row takes the place of the pivot's.
        first = writer.slice(matrix, rank - 2, 0, 1)
        others = writer.slice(matrix, rank - 2, 1, left)
        is_swapped = writer.slice(is_pivot, rank - 2, 1, left)
        others = writer.add("Where", is_swapped, first, others)
        is_first = writer.add("Equal", place, writer.constant(0, np.int64))
        signed = writer.add("Where", is_first, pivot, writer.add("Neg", pivot))
        product = signed if product is None else writer.add("Mul", product, signed)
        is_singular = writer.add("Equal", pivot, zero)
        divisor = writer.add("Where", is_singular, one, pivot)
        factors = writer.add("Div", writer.slice(others, rank - 1, 0, 1), divisor)
        others = writer.slice(others, rank - 1, 1, left)
        rest = writer.slice(pivot_row, rank - 1, 1, left)
        matrix = writer.add("Sub", others, writer.add("Mul", factors, rest))
    last = matrix if product is None else writer.add("Mul", product, matrix)
    writer.add("Squeeze", last, writer.axes(rank - 2, rank - 1), result=result)


def _matmul(writer: Writer) -> None:
    """A product of integers where there are some behind the factors.

    A vector is a matrix of one row or column where the other operand has batches.
    """
    a, b = writer.node.input
    product = _dequantized_product(writer, a, b)
    if product is not None:
        writer.add("Identity", product, result=writer.node.output[0])
        return
    ranks = [len(writer.values.shape_of(name) or ()) for name in writer.node.input]
    if 1 not in ranks or max(ranks) < 3:
        return
    left, right = writer.node.input
    if ranks[0] == 1:
        left, dropped = writer.add("Unsqueeze", left, writer.axes(0)), -2
    else:
        right, dropped = writer.add("Unsqueeze", right, writer.axes(1)), -1
    product = writer.add("MatMul", left, right)
    writer.add("Squeeze", product, writer.axes(dropped), result=writer.node.output[0])


def _bit_shift(writer: Writer) -> None:
    """Shifts by the width or more, and by negative numbers, push every bit out."""
    x, shift = writer.node.input
    dtype = writer.dtype_of(x)
    if dtype is None or shift.endswith(_SAFE):
        return
    known = writer.values.array_of(shift)
    width = dtype.itemsize * 8
    if known is not None and np.all((known >= 0) & (known < width)):
        return
    is_out = writer.add("GreaterOrEqual", shift, writer.constant(width, dtype))
    if dtype.kind == "i":
        is_negative = writer.add("Less", shift, writer.constant(0, dtype))
        is_out = writer.add("Or", is_out, is_negative)
    is_right = writer.attributes["direction"] == b"RIGHT"
    result = writer.node.output[0]
    # The sign stays where there is one.
    most = width - 1 if is_right and dtype.kind == "i" else 0
    safe = f"{result}{_SAFE}"
    writer.add("Where", is_out, writer.constant(most, dtype), shift, result=safe)
    direction = writer.attributes["direction"].decode()
    if most:
        writer.add("BitShift", x, safe, result=result, direction=direction)
        return
    shifted = writer.add("BitShift", x, safe, direction=direction)
    writer.add("Where", is_out, writer.constant(0, dtype), shifted, result=result)


#: Ends the names of shifts that are less than the width.
_SAFE = "/safe_shift"


def _per_axis(writer: Writer, value: str, rank: int) -> str | None:
    """A scale or zero point with the dimensions of the tensor; None if it is of blocks."""
    shape = writer.values.shape_of(value)
    if shape is None or len(shape) > 1:
        return None
    if not shape:
        return value
    axis = writer.attributes.get("axis", 1) % max(rank, 1)
    return writer.add("Unsqueeze", value, writer.axes(*(i for i in range(rank) if i != axis)))


def _quantize(writer: Writer) -> None:
    """Arithmetic where the scale is no constant, which torch-mlir would read on the host."""
    x, scale, *point = writer.node.input
    if _is_left(writer, scale, point):
        return
    rank = len(writer.values.shape_of(x) or ())
    kind = writer.values.element_of(writer.node.output[0])
    dtype = None if kind is None else helper.tensor_dtype_to_np_dtype(kind)
    divisor = _per_axis(writer, scale, rank)
    if divisor is None or dtype is None or dtype.kind not in "iu":
        return
    limits = np.iinfo(dtype)
    quotient = writer.add("Div", writer.add("Cast", x, to=TensorProto.FLOAT), _float(writer, divisor))
    rounded = writer.add("Round", quotient)
    if point and point[0]:
        offset = _per_axis(writer, point[0], rank)
        if offset is None:
            writer.nodes.clear()
            return
        rounded = writer.add("Add", rounded, _float(writer, offset))
    bounds = (writer.constant(bound, np.float32) for bound in (limits.min, limits.max))
    clipped = writer.add("Clip", rounded, *bounds)
    writer.add("Cast", clipped, to=kind, result=writer.node.output[0])


def _dequantize(writer: Writer) -> None:
    """As `_quantize`."""
    x, scale, *point = writer.node.input
    if _is_left(writer, scale, point):
        return
    rank = len(writer.values.shape_of(x) or ())
    factor = _per_axis(writer, scale, rank)
    kind = writer.values.element_of(scale)
    if factor is None or kind is None:
        return
    value = writer.add("Cast", x, to=TensorProto.INT32)
    if point and point[0]:
        offset = _per_axis(writer, point[0], rank)
        if offset is None:
            writer.nodes.clear()
            return
        value = writer.add("Sub", value, writer.add("Cast", offset, to=TensorProto.INT32))
    writer.add("Mul", writer.add("Cast", value, to=kind), factor, result=writer.node.output[0])


def _qlinear_matmul(writer: Writer) -> None:
    """An integer product, scaled."""
    a, a_scale, a_point, b, b_scale, b_point, y_scale, y_point = writer.node.input
    product = _integer_product(writer, a, b, a_point, b_point)
    shape = writer.values.shape_of(a_scale)
    if product is None or shape is None:
        writer.nodes.clear()
        return
    rows = a_scale
    if len(shape) == 1 and shape != [1]:
        rows = writer.add("Unsqueeze", a_scale, writer.axes(1))
    scale = writer.add("Mul", _float(writer, rows), _float(writer, b_scale))
    scale = writer.add("Div", scale, _float(writer, y_scale))
    scaled = writer.add("Mul", _float(writer, product), scale)
    one = writer.constant(1, np.float32)
    writer.add("QuantizeLinear", scaled, one, y_point, result=writer.node.output[0])


def _matmul_integer(writer: Writer) -> None:
    """A product of integers, which torch-mlir subtracts zero points from first."""
    product = _integer_product(writer, *writer.node.input)
    if product is None:
        writer.nodes.clear()
        return
    writer.add("Identity", product, result=writer.node.output[0])


def _gemm(writer: Writer) -> None:
    """A product of integers where there are some behind the factors."""
    a, b, *addend = writer.node.input
    if writer.attributes.get("transA"):
        return
    alpha, beta = (writer.attributes.get(name, 1.0) for name in ("alpha", "beta"))
    is_transposed = bool(writer.attributes.get("transB"))
    product = _dequantized_product(writer, a, b, is_transposed, alpha)
    if product is None:
        return
    (result,) = writer.node.output
    if not any(addend) or beta == 0:
        writer.add("Identity", product, result=result)
        return
    (c,) = addend
    if beta != 1:
        c = writer.add("Mul", c, writer.constant(beta, np.float32))
    writer.add("Add", product, c, result=result)


def _integer_product(
    writer: Writer,
    a: str,
    b: str,
    a_point: str = "",
    b_point: str = "",
    is_transposed: bool = False,
) -> str | None:
    """The product of factors of 8 bits in 32, with zero points; None if it cannot be written.

    Matrices are multiplied as they are, and zero points by sums over them:

        sum (a - p) (b - q) = sum a b - p (sum b - k q) - q sum a

    All of it wraps around as the sums of ONNX do. Sums over weights are known before a run.
    """
    shapes = [writer.values.shape_of(name) for name in (a, b)]
    p, q = _zero_point(writer, a_point, 1), _zero_point(writer, b_point, 0)
    if None in shapes or p is None or q is None:
        return None
    right = writer.add("Transpose", b, perm=[1, 0]) if is_transposed else b
    factors = [writer.add("Cast", name, to=TensorProto.INT32) for name in (a, right)]
    if min(len(shape) for shape in shapes if shape is not None) < 2:
        factors = [writer.add("Sub", x, y) if y else x for x, y in zip(factors, (p, q))]
        return writer.add("MatMul", *factors)
    product = writer.add("MatMul", *factors)
    if p:
        columns = _sum(writer, b, -1 if is_transposed else -2, -2)
        if q:
            columns = writer.add("Sub", columns, writer.add("Mul", _length(writer, a), q))
        product = writer.add("Sub", product, writer.add("Mul", p, columns))
    if q:
        rows = _sum(writer, a, -1, -1)
        product = writer.add("Sub", product, writer.add("Mul", q, rows))
    return product


def _zero_point(writer: Writer, point: str, axis: int) -> str | None:
    """A zero point in 32 bits, of which a list gets a dimension; empty for 0, None if unknown."""
    if not point:
        return ""
    shape, known = writer.values.shape_of(point), writer.values.array_of(point)
    if shape is None:
        return None
    if known is not None and not known.any():
        return ""
    wide = writer.add("Cast", point, to=TensorProto.INT32)
    if axis == 1 and len(shape) == 1 and shape != [1]:
        wide = writer.add("Unsqueeze", wide, writer.axes(1))
    return wide


def _sum(writer: Writer, factor: str, axis: int, place: int) -> str:
    """The sum over a dimension in 32 bits, with one of size 1 in a place."""
    known = writer.values.array_of(factor)
    if known is not None:
        total = known.sum(axis, np.int32)
        return writer.constant(np.expand_dims(total, place), np.int32)
    wide = writer.add("Cast", factor, to=TensorProto.INT32)
    total = writer.add("ReduceSum", wide, writer.axes(axis), keepdims=0)
    return writer.add("Unsqueeze", total, writer.axes(place))


def _length(writer: Writer, a: str) -> str:
    """How many products are summed up, in 32 bits."""
    shape = writer.values.shape_of(a)
    if shape is not None and shape[-1] is not None:
        return writer.constant(shape[-1], np.int32)
    sizes = writer.add("Shape", a)
    last = writer.add("Gather", sizes, writer.constant(-1, np.int64))
    return writer.add("Cast", last, to=TensorProto.INT32)


#: Up to this length, sums of products of 8 bits, less zero points, are exact in 32 bits.
_MAX_LENGTH = (2**31 - 1) // 255**2


def _dequantized_product(
    writer: Writer, a: str, b: str, is_transposed: bool = False, alpha: float = 1.0
) -> str | None:
    """A product of dequantized factors as one of their integers, scaled; None if it is none.

    Scales of `a` are of the whole tensor, those of `b` of columns or the whole tensor. What the
    integers are summed up to is exact, and rounded once before the scales.
    """
    values = writer.values
    lhs, rhs = _dequantized(writer, a), _dequantized(writer, b)
    if lhs is None or rhs is None:
        return None
    (a, a_scale, a_point, _), (b, b_scale, b_point, axis) = lhs, rhs
    a_shape, b_shape = values.shape_of(a), values.shape_of(b)
    a_scales, b_scales = values.shape_of(a_scale), values.shape_of(b_scale)
    if a_shape is None or b_shape is None or a_scales is None or b_scales is None:
        return None
    rank = len(b_shape)
    if min(len(a_shape), rank) < 2:
        return None
    reduced, column = (rank - 1, rank - 2) if is_transposed else (rank - 2, rank - 1)
    lengths = [size for size in (a_shape[-1], b_shape[reduced]) if size is not None]
    if not lengths or not 0 < min(lengths) <= _MAX_LENGTH:
        return None
    is_of_columns = len(b_scales) == 1 and axis % rank == column
    if a_scales not in ([], [1]) or not (b_scales in ([], [1]) or is_of_columns):
        return None
    product = _integer_product(writer, a, b, a_point, b_point, is_transposed)
    if product is None:
        writer.nodes.clear()
        return None
    scale = writer.add("Mul", a_scale, b_scale)
    if alpha != 1:
        scale = writer.add("Mul", scale, writer.constant(alpha, np.float32))
    return writer.add("Mul", _float(writer, product), scale)


def _dequantized(writer: Writer, value: str) -> tuple[str, str, str, int] | None:
    """The integers of 8 bits behind a value of f32, their scale, zero point and axis."""
    node = writer.producers.get(value)
    if node is None or node.op_type != "DequantizeLinear" or not is_own(node.domain):
        return None
    given = {a.name: helper.get_attribute_value(a) for a in node.attribute}
    x, scale, *point = node.input
    kinds = [writer.values.element_of(name) for name in (x, scale, value)]
    if kinds[0] not in (TensorProto.UINT8, TensorProto.INT8) or given.get("block_size"):
        return None
    if kinds[1:] != [TensorProto.FLOAT] * 2:
        return None
    return x, scale, point[0] if point else "", given.get("axis", 1)


def _float(writer: Writer, value: str) -> str:
    return writer.add("Cast", value, to=TensorProto.FLOAT)


def _is_left(writer: Writer, scale: str, point: Sequence[str]) -> bool:
    """Whether scale and zero point are known; torch-mlir then has a lowering."""
    return all(writer.values.array_of(name) is not None for name in [scale, *point] if name)


REWRITES: Mapping[str, Callable[[Writer], None]] = {
    "BitShift": _bit_shift,
    "DequantizeLinear": _dequantize,
    "Det": _det,
    "Gemm": _gemm,
    "LpNormalization": _lp_normalization,
    "MatMul": _matmul,
    "MatMulInteger": _matmul_integer,
    "QLinearMatMul": _qlinear_matmul,
    "QuantizeLinear": _quantize,
}

__all__ = ["REWRITES", "Writer", "rewrite"]
