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

    def __init__(self, node: Any, values: Values, version: int) -> None:
        self.node = node
        self.values = values
        self.version = version
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
    nodes, constants = [], []
    for node in model.graph.node:
        write = REWRITES.get(node.op_type) if is_own(node.domain) else None
        writer = Writer(node, values, version)
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
    """A vector is a matrix of one row or column where the other operand has batches."""
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
    """An integer product, scaled: where a scale is no constant, or operands are no matrices."""
    a, a_scale, a_point, b, b_scale, b_point, y_scale, y_point = writer.node.input
    shapes = [writer.values.shape_of(name) for name in (a, b)]
    if all(shape is not None and len(shape) == 2 for shape in shapes) and _is_left(
        writer, a_scale, [a_point, b_scale, b_point, y_scale, y_point]
    ):
        return
    if None in shapes:
        return
    shape = writer.values.shape_of(a_scale)
    if shape is None:
        return
    rows = a_scale
    if len(shape) == 1 and shape != [1]:
        rows = writer.add("Unsqueeze", a_scale, writer.axes(1))
    points = []
    for point, other in ((a_point, 1), (b_point, 0)):
        point_shape = writer.values.shape_of(point)
        if point_shape is None:
            writer.nodes.clear()
            return
        value = writer.add("Cast", point, to=TensorProto.INT32)
        if other and len(point_shape) == 1 and point_shape != [1]:
            value = writer.add("Unsqueeze", value, writer.axes(1))
        points.append(value)
    factors = [
        writer.add("Sub", writer.add("Cast", value, to=TensorProto.INT32), point)
        for value, point in zip((a, b), points)
    ]
    product = _float(writer, writer.add("MatMul", *factors))
    scale = writer.add("Mul", _float(writer, rows), _float(writer, b_scale))
    scale = writer.add("Div", scale, _float(writer, y_scale))
    scaled = writer.add("Mul", product, scale)
    one = writer.constant(1, np.float32)
    writer.add("QuantizeLinear", scaled, one, y_point, result=writer.node.output[0])


def _float(writer: Writer, value: str) -> str:
    return writer.add("Cast", value, to=TensorProto.FLOAT)


def _is_left(writer: Writer, scale: str, point: Sequence[str]) -> bool:
    """Whether scale and zero point are known; torch-mlir then has a lowering."""
    return all(writer.values.array_of(name) is not None for name in [scale, *point] if name)


REWRITES: Mapping[str, Callable[[Writer], None]] = {
    "BitShift": _bit_shift,
    "DequantizeLinear": _dequantize,
    "Det": _det,
    "LpNormalization": _lp_normalization,
    "MatMul": _matmul,
    "QLinearMatMul": _qlinear_matmul,
    "QuantizeLinear": _quantize,
}

__all__ = ["REWRITES", "Writer", "rewrite"]
