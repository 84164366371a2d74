"""Convolutions of integers of 8 bits, whose zero points are subtracted before."""

from __future__ import annotations

import numpy as np
from onnx import TensorProto

from ..emitter import Emitter
from ..registry import Node, lowers
from ..values import Value
from .convolutions import convolve, kernel_of
from .windows import windows_of

F32, I32 = TensorProto.FLOAT, TensorProto.INT32


def integer_convolution(
    e: Emitter, n: Node, x: Value, filters: Value, x_point: Value | None, w_point: Value | None
) -> Value:
    """The convolution in 32 bits."""
    rank = x.rank - 2
    groups = n.attr("group", 1)
    windows = windows_of(n, [*x.dims[2:]], kernel_of(n, filters))
    wide, factors = e.cast(x, I32), e.cast(filters, I32)
    if x_point is not None:
        wide = e.call("Sub", wide, e.cast(e.reshape(x_point, []), I32))
    if w_point is not None:
        point = e.cast(w_point, I32)
        if point.rank:
            point = e.reshape(point, [point.dims[0], *[1] * (rank + 1)])
        factors = e.call("Sub", factors, point)
    image = e.pad(wide, [0, 0, *windows.low], [0, 0, *windows.high], 0)
    return convolve(e, n, image, factors, windows, groups, I32)


@lowers("ConvInteger")
def conv_integer(e: Emitter, n: Node) -> Value:
    x, filters = n.inputs[0], n.inputs[1]
    assert x is not None and filters is not None
    return integer_convolution(e, n, x, filters, n.input(2), n.input(3))


@lowers("QLinearConv")
def qlinear_conv(e: Emitter, n: Node) -> Value:
    x, x_scale, x_point, filters, w_scale, w_point, y_scale, y_point = n.inputs[:8]
    assert x is not None and filters is not None and x_scale is not None and w_scale is not None
    assert y_scale is not None and y_point is not None
    found = integer_convolution(e, n, x, filters, x_point, w_point)
    shape = [1, -1, *[1] * (found.rank - 2)]

    def of_channels(value: Value) -> Value:
        """A number of each filter, or one of all."""
        if value.rank == 0 or value.dims == (1,):
            return e.reshape(value, [])
        result: Value = e.call("Reshape", value, e.constant(np.array(shape)))
        return result

    bias = n.input(8)
    if bias is not None:
        found = e.call("Add", found, of_channels(bias))
    scale = e.call(
        "Div", e.call("Mul", e.reshape(x_scale, []), of_channels(w_scale)), e.reshape(y_scale, [])
    )
    scaled = e.call("Mul", e.cast(found, F32), scale)
    result: Value = e.call(
        "QuantizeLinear", scaled, e.constant(np.float32(1)), e.reshape(y_point, [])
    )
    return result


__all__ = ["integer_convolution"]
