"""Operators that change sizes and keep the order of elements."""

from __future__ import annotations

import numpy as np
from onnx import TensorProto

from .. import sizes as arithmetic
from ..emitter import Emitter
from ..registry import Node, lowers
from ..sizes import Size, product
from ..values import Value


@lowers("Identity")
def identity(e: Emitter, n: Node) -> Value:
    (x,) = operands(n)
    return Value(x.kind, x.dims, e.use(x), x.array, x.sizes, x.origin)


@lowers("Dropout")
def dropout(e: Emitter, n: Node) -> list[Value]:
    """The input itself: a model is not trained, unless it says so."""
    x = n.inputs[0]
    assert x is not None
    training = n.input(2)
    if training is not None and n.array(2).any():
        raise n.refuse("its training_mode is true", "leave it out, or set training_mode to false")
    if n.version < 7 and not n.attr("is_test", 0):
        raise n.refuse("it is in training mode", "leave it out, or set is_test to 1")
    results = [Value(x.kind, x.dims, e.use(x), x.array, x.sizes, x.origin)]
    if n.wants(1):
        kind = TensorProto.BOOL if n.version >= 10 else x.kind
        # onnxruntime does so; the text does not specify the mask before operator set 12.
        results.append(e.filled(x.dims, n.version >= 12, kind))
    return results


@lowers("Constant")
def constant(e: Emitter, n: Node) -> Value:
    """Emits constants that the evaluator does not support: larger ones, which become weights."""
    from ..graph import constant_of

    tensor = n.attr("value")
    value = None if tensor is None else constant_of(tensor)
    if value is None:
        raise n.refuse(
            "FTuner does not support its type of elements", "make it a tensor of numbers"
        )
    value.name = n.outputs[0]
    return value


def operands(n: Node) -> list[Value]:
    """The operands of an operator that needs all of them."""
    values = [value for value in n.inputs if value is not None]
    assert len(values) == len(n.inputs)
    return values


def axes_of(n: Node, index: int, rank: int) -> list[int] | None:
    """Axes that are an attribute or an input, as numbers from 0; None if the node has neither."""
    axes = n.attr("axes")
    if axes is None and n.input(index) is not None:
        axes = n.integers(index)
    if axes is None:
        return None
    bad = [axis for axis in axes if not -rank <= axis < rank]
    if bad:
        raise n.refuse(
            f"its axis {bad[0]} is not one of the {rank} dimensions", "give it another axis"
        )
    return [axis % rank for axis in axes]


def axis_of(n: Node, default: int, rank: int, *, may_be_end: bool = False) -> int:
    axis = n.attr("axis", default)
    if not -rank <= axis < rank + may_be_end:
        raise n.refuse(
            f"its axis {axis} is not one of the {rank} dimensions", "give it another axis"
        )
    return int(axis % rank if rank and axis < rank else axis)


@lowers("Reshape")
def reshape(e: Emitter, n: Node) -> Value:
    """Computes a size -1 as the number of elements by the other sizes; a size 0 is the operand's own size."""
    x = n.inputs[0]
    assert x is not None
    shape = n.attr("shape") if n.version < 5 else n.numbers(1)
    return e.reshape(x, reshaped(n, x, shape, bool(n.attr("allowzero"))))


def reshaped(n: Node, x: Value, shape: list[Size], allows_zero: bool) -> list[Size]:
    dims: list[Size] = []
    for place, size in enumerate(shape):
        if size == 0 and not allows_zero:
            if place >= x.rank:
                raise n.refuse(
                    f"its shape copies dimension {place} of an operand of {x.rank} dimensions",
                    "give it a shape that fits",
                )
            size = x.dims[place]
        dims.append(size)
    unknown = [place for place, size in enumerate(dims) if size == -1]
    if len(unknown) > 1:
        raise n.refuse("its shape has several sizes of -1", "give it a shape with one of them")
    if unknown:
        others = product(size for size in dims if size != -1)
        if others == 0:
            raise n.refuse("its shape has a size of -1 beside one of 0", "give it the size itself")
        dims[unknown[0]] = arithmetic.floordiv(product(x.dims), others)
    return dims


@lowers("Flatten")
def flatten(e: Emitter, n: Node) -> Value:
    (x,) = operands(n)
    axis = axis_of(n, 1, x.rank, may_be_end=True)
    return e.reshape(x, [product(x.dims[:axis]), product(x.dims[axis:])])


@lowers("Squeeze")
def squeeze(e: Emitter, n: Node) -> Value:
    x = n.inputs[0]
    assert x is not None
    axes = axes_of(n, 1, x.rank)
    if axes is None:
        if not all(isinstance(dim, int) for dim in x.dims):
            raise n.refuse(
                "it drops all sizes of 1, and some sizes are not known", "give it the axes to drop"
            )
        axes = [axis for axis, dim in enumerate(x.dims) if dim == 1]
    for axis in axes:
        e.check_equal(
            x.dims[axis], 1, f"expected dimension {axis} of its operand to have the size 1"
        )
    return e.reshape(x, [dim for axis, dim in enumerate(x.dims) if axis not in axes])


@lowers("Unsqueeze")
def unsqueeze(e: Emitter, n: Node) -> Value:
    x = n.inputs[0]
    assert x is not None
    given = n.attr("axes")
    count = len(given if given is not None else n.integers(1))
    axes = axes_of(n, 1, x.rank + count) or []
    if len({*axes}) < count:
        raise n.refuse("it has an axis twice", "give it each axis once")
    rest = iter(x.dims)
    return e.reshape(x, [1 if axis in axes else next(rest) for axis in range(x.rank + count)])


@lowers("Transpose")
def transpose(e: Emitter, n: Node) -> Value:
    (x,) = operands(n)
    return e.transpose(x, n.attr("perm", [*range(x.rank)][::-1]))


@lowers("Cast")
def cast(e: Emitter, n: Node) -> Value:
    (x,) = operands(n)
    return cast_to(e, n, x, n.attr("to"))


@lowers("CastLike")
def cast_like(e: Emitter, n: Node) -> Value:
    x, like = operands(n)
    return cast_to(e, n, x, like.kind)


def cast_to(e: Emitter, n: Node, x: Value, kind: int) -> Value:
    from ..values import ELEMENTS

    if kind not in ELEMENTS:
        raise n.refuse(
            f"its value '{n.outputs[0]}' has elements of type {TensorProto.DataType.Name(kind)}",
            "compute with those of FLOAT, FLOAT16, BFLOAT16, DOUBLE, BOOL or integers of 8 to 64 bits",
        )
    if x.kind == kind:
        return Value(x.kind, x.dims, e.use(x), x.array, x.sizes, x.origin)
    return e.cast(x, kind)


@lowers("Expand")
def expand(e: Emitter, n: Node) -> Value:
    x = n.inputs[0]
    assert x is not None
    shape = Value(x.kind, tuple(n.numbers(1)))
    return e.expand(x, e.broadcast_dims([x.dims, shape.dims]))


@lowers("ConstantOfShape")
def constant_of_shape(e: Emitter, n: Node) -> Value:
    from onnx import numpy_helper

    tensor = n.attr("value")
    array = np.zeros(1, np.float32) if tensor is None else numpy_helper.to_array(tensor)
    kind = TensorProto.FLOAT if tensor is None else tensor.data_type
    return e.filled(n.numbers(0), array.reshape(-1)[0], kind)


@lowers("ConstantFill")
def constant_fill(e: Emitter, n: Node) -> Value:
    """An operator that ONNX never settled; old exporters write it for states of recurrent layers."""
    kind = n.attr("dtype", TensorProto.FLOAT)
    x = n.input(0)
    if x is None:
        dims: list[Size] = [*n.attr("shape", [])]
    elif n.attr("input_as_shape", 0):
        dims = n.numbers(0)
    else:
        dims = [*x.dims]
    dims += n.attr("extra_shape", [])
    return e.filled(dims, n.attr("value", 0.0), kind)


__all__ = ["axes_of", "axis_of", "operands", "reshaped"]
