"""Convolutions: sums of products over windows, with the padding of `auto_pad` as expressions of sizes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from onnx import TensorProto

from .. import sizes as arithmetic
from ..emitter import Emitter
from ..registry import Node, lowers
from ..scalars import Body, Scalar
from ..sizes import Size
from ..values import INDEX, Array, Value
from .moves import padded
from .reductions import sums_kind
from .windows import Windows, windows_of


def kernel_of(n: Node, w: Value) -> list[int]:
    """The sizes of the window, from the weights or the attribute."""
    kernel = [*w.dims[2:]]
    given = n.attr("kernel_shape")
    if given is not None:
        kernel = [*given]
    if not all(isinstance(size, int) for size in kernel):
        raise n.refuse("the sizes of its windows are not known", "declare the sizes of its weights")
    return [int(size) for size in kernel if isinstance(size, int)]


def convolve(
    e: Emitter, n: Node, x: Value, w: Value, windows: Windows, groups: int, kind: int
) -> Value:
    """A convolution of a padded image (batch, channels, sides...), in `kind`."""
    batch, channels = x.dims[:2]
    filters, depth = w.dims[:2]
    part = channels if groups == 1 else arithmetic.floordiv(channels, groups)
    clause = "expected as many channels as the weights have"
    e.check_equal(
        depth * groups, channels, clause + (f" in its {groups} groups" if groups > 1 else "")
    )
    rank = len(windows.kernel)
    each = filters if groups == 1 else arithmetic.floordiv(filters, groups)
    if groups > 1:
        e.check_equal(each * groups, filters, f"expected filters in {groups} equal groups")
    is_depthwise = groups > 1 and depth == 1 and each == 1
    outer: list[Size] = [batch, groups, *([] if is_depthwise else [each])]
    if groups == 1:
        outer = [batch, filters]
    inner: list[Size] = [] if is_depthwise else [part if groups > 1 else channels]
    first, deep = len(outer), len(outer) + rank
    sides = [
        f"d{first + dim} * {windows.strides[dim]} + d{deep + len(inner) + dim} * {windows.dilations[dim]}"
        for dim in range(rank)
    ]
    taps = [deep + len(inner) + dim for dim in range(rank)]
    lhs: list[Any]
    rhs: list[Any]
    # A step of a kernel along the channels of known weights stays in one tap of the window.
    array = None if is_depthwise else w.array
    order: list[Size] = [depth, *windows.kernel]
    if array is not None:
        w = _laid_out(e, w, np.moveaxis(array, 1, -1))
        order = [*windows.kernel, depth]
    walk = [deep, *taps] if array is None else [*taps, deep]
    if groups == 1:
        image, weights = x, w
        lhs, rhs = [0, deep, *sides], [1, *walk]
    elif is_depthwise:
        image = x
        weights = e.reshape(w, [groups, *windows.kernel])
        lhs, rhs = [0, 1, *sides], [1, *taps]
    else:
        image = e.reshape(x, [batch, groups, part, *x.dims[2:]])
        weights = e.reshape(w, [groups, each, *order])
        lhs, rhs = [0, 1, deep, *sides], [1, 2, *walk]
    e.use(image)
    e.use(weights)
    loops = [*outer, *windows.counts, *inner, *windows.kernel]
    (found,) = e.generic(
        loops,
        [(image, lhs), (weights, rhs)],
        [(kind, range(deep), 0)],
        lambda b, p, q, s: b.add(s, b.mul(b.cast(p, kind), b.cast(q, kind))),
        range(deep, len(loops)),
    )
    return e.reshape(found, [batch, filters, *windows.counts])


def _laid_out(e: Emitter, w: Value, array: Array) -> Value:
    """Known weights in another order, with their name."""
    result = e.constant(np.ascontiguousarray(array), w.kind)
    result.name = w.name
    return result


def _with_bias(e: Emitter, n: Node, found: Value, bias: Value | None) -> Value:
    if bias is None:
        return found
    e.check_equal(bias.dims[0], found.dims[1], "expected a bias of one number for each filter")
    bias = e.reshape(e.cast(bias, found.kind), [found.dims[1], *[1] * (found.rank - 2)])
    return e.pointwise(found.kind, [found, bias], lambda b, p, q: b.add(p, q), found.dims)


@lowers("Conv")
def conv(e: Emitter, n: Node) -> Value:
    x, w, bias = n.inputs[0], n.inputs[1], n.input(2)
    assert x is not None and w is not None
    windows = windows_of(n, [*x.dims[2:]], kernel_of(n, w))
    image = e.pad(x, [0, 0, *windows.low], [0, 0, *windows.high], 0)
    found = convolve(e, n, image, w, windows, n.attr("group", 1), sums_kind(x.kind))
    return e.cast(_with_bias(e, n, found, bias), x.kind)


@lowers("ConvTranspose")
def conv_transpose(e: Emitter, n: Node) -> Value:
    """A convolution of stride 1, whose filters are those of all phases.

    The output at o = t u + f - p, of stride u and p elements cut off before it, is the sum over j of
    x[t - j] w[f + j u]: each phase f has every u-th tap of the weights. Phases are interleaved afterwards.
    """
    x, w, bias = n.inputs[0], n.inputs[1], n.input(2)
    assert x is not None and w is not None
    kernel, groups = kernel_of(n, w), n.attr("group", 1)
    rank = len(kernel)
    strides, dilations = n.attr("strides", [1] * rank), n.attr("dilations", [1] * rank)
    more = n.attr("output_padding", [0] * rank)
    pads = _pads_of_transposed(n, x, kernel, strides, dilations, more)
    extents = [(size - 1) * dilation + 1 for size, dilation in zip(kernel, dilations)]
    taps = [-(-extent // stride) for extent, stride in zip(extents, strides)]
    each = w.dims[1]
    filters = each * groups
    # Places of outputs, with those that are cut off before them.
    ends = [
        (size - 1) * stride + extent + o - high
        for size, stride, extent, o, high in zip(x.dims[2:], strides, extents, more, pads[rank:])
    ]
    counts = [
        arithmetic.maximum(arithmetic.ceildiv(end, stride), 0) for end, stride in zip(ends, strides)
    ]
    low = [tap - 1 for tap in taps]
    high = [count - size for count, size in zip(counts, x.dims[2:])]
    image = padded(e, n, x, [0, 0, *low], [0, 0, *high], "constant", None)
    ones = (1,) * rank
    windows = Windows(
        tuple(image.dims[2:]), tuple(taps), ones, ones, (0,) * rank, (0,) * rank, tuple(counts)
    )
    weights = _weights_of_phases(e, w, groups, kernel, strides, dilations, taps)
    found = convolve(e, n, image, weights, windows, groups, sums_kind(x.kind))
    if any(stride != 1 for stride in strides):
        parts = e.reshape(found, [x.dims[0], groups, *strides, each, *counts])
        places = [place for dim in range(rank) for place in (3 + rank + dim, 2 + dim)]
        parts = e.transpose(parts, [0, 1, 2 + rank, *places])
        whole = [count * stride for count, stride in zip(counts, strides)]
        found = e.reshape(parts, [x.dims[0], filters, *whole])
    sizes = [arithmetic.maximum(end - begin, 0) for begin, end in zip(pads, ends)]
    begin: list[Size] = [*pads[:rank]]
    # Outputs before the first tap are zeros, which more padding would write: none is cut off there.
    before = [arithmetic.maximum(-place, 0) for place in begin]
    found = e.slice(
        found,
        [0, 0, *(arithmetic.maximum(place, 0) for place in begin)],
        [x.dims[0], filters, *(size - zeros for size, zeros in zip(sizes, before))],
    )
    found = e.pad(found, [0, 0, *before], [0] * (2 + rank), 0)
    return e.cast(_with_bias(e, n, found, bias), x.kind)


def _pads_of_transposed(
    n: Node,
    x: Value,
    kernel: Sequence[int],
    strides: Sequence[int],
    dilations: Sequence[int],
    more: Sequence[int],
) -> list[Size]:
    """Numbers of elements to cut off before and after each side; negative numbers add elements."""
    rank = len(kernel)
    auto, shape = n.attr("auto_pad", "NOTSET"), n.attr("output_shape")
    if shape is None and auto in ("NOTSET", "VALID"):
        return [*(n.attr("pads", [0] * 2 * rank) if auto == "NOTSET" else [0] * 2 * rank)]
    if shape is not None and len(shape) > rank:
        shape = shape[-rank:]
    low: list[Size] = []
    high: list[Size] = []
    for dim, size in enumerate(x.dims[2:]):
        extent = (kernel[dim] - 1) * dilations[dim] + 1
        wanted = size * strides[dim] if shape is None else shape[dim]
        total = (size - 1) * strides[dim] + more[dim] + extent - wanted
        total = arithmetic.maximum(total, 0) if shape is None else total
        less = arithmetic.floordiv(total, 2)
        low.append(less if auto == "SAME_UPPER" else total - less)
        high.append(total - low[-1])
    return [*low, *high]


def _weights_of_phases(
    e: Emitter,
    w: Value,
    groups: int,
    kernel: Sequence[int],
    strides: Sequence[int],
    dilations: Sequence[int],
    taps: Sequence[int],
) -> Value:
    """Weights (channels, filters of a group, window) as (groups, phases and filters, channels of a group, taps).

    Taps are reversed, and zeros where the window has none.
    """
    channels, each = w.dims[:2]
    part = arithmetic.floordiv(channels, groups)
    phases = math.prod(strides)
    dims = [each * phases * groups, part, *taps]
    if w.array is not None:
        return _laid_out(e, w, _known_phases(w.array, groups, strides, dilations, taps))
    e.use(w)
    e.index(each)
    e.index(part)

    def body(b: Body, place: Scalar, channel: Scalar, *at: Scalar) -> Scalar:
        def number(value: int) -> Scalar:
            return b.const(value, INDEX)

        filters, size = b.rem(place, b.size(each)), b.div(place, b.size(each))
        found = []
        inside = b.const(1, TensorProto.BOOL)
        for dim in reversed(range(len(kernel))):
            phase, size = b.rem(size, number(strides[dim])), b.div(size, number(strides[dim]))
            turned = b.mul(b.sub(number(taps[dim] - 1), at[dim]), number(strides[dim]))
            reached = b.add(phase, turned)
            tap, rest = (operation(reached, number(dilations[dim])) for operation in (b.div, b.rem))
            inside = b.bit_and(inside, b.compare("lt", tap, number(kernel[dim])))
            inside = b.bit_and(inside, b.compare("eq", rest, number(0)))
            found.append(b.min(tap, number(kernel[dim] - 1)))
        group = b.mul(size, b.size(part))
        value = b.extract(w, [b.add(group, channel), filters, *reversed(found)])
        return b.select(inside, value, b.const(0, w.kind))

    return e.compute(dims, w.kind, body)


def _known_phases(
    w: Array,
    groups: int,
    strides: Sequence[int],
    dilations: Sequence[int],
    taps: Sequence[int],
) -> Array:
    channels, each, *kernel = w.shape
    sizes = [tap * stride for tap, stride in zip(taps, strides)]
    wide = np.zeros([channels, each, *sizes], w.dtype)
    places = tuple(slice(0, (size - 1) * step + 1, step) for size, step in zip(kernel, dilations))
    wide[(slice(None), slice(None), *places)] = w
    rank = len(kernel)
    pairs = [size for pair in zip(taps, strides) for size in pair]
    split = wide.reshape([groups, channels // groups, each, *pairs])
    of_taps, phases = ([3 + 2 * dim + more for dim in range(rank)] for more in (0, 1))
    turned: Array = np.flip(split, tuple(of_taps))
    moved: Array = turned.transpose([0, *phases, 2, 1, *of_taps])
    return moved.reshape([-1, channels // groups, *taps])


__all__ = ["convolve", "kernel_of"]
