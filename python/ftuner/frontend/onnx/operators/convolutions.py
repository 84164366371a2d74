"""Convolutions: sums of products over windows, with the padding of `auto_pad` as expressions of sizes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .. import sizes as arithmetic
from ..emitter import Emitter
from ..registry import Node, lowers
from ..sizes import Size
from ..values import Value
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
    if groups == 1:
        image, weights = x, w
        lhs, rhs = [0, deep, *sides], [1, deep, *taps]
    elif is_depthwise:
        image = x
        weights = e.reshape(w, [groups, *windows.kernel])
        lhs, rhs = [0, 1, *sides], [1, *taps]
    else:
        image = e.reshape(x, [batch, groups, part, *x.dims[2:]])
        weights = e.reshape(w, [groups, each, depth, *windows.kernel])
        lhs, rhs = [0, 1, deep, *sides], [1, 2, deep, *taps]
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
    """A convolution of the image, with zeros between its elements, by the reversed weights."""
    x, w, bias = n.inputs[0], n.inputs[1], n.input(2)
    assert x is not None and w is not None
    kernel, groups = kernel_of(n, w), n.attr("group", 1)
    rank = len(kernel)
    strides, dilations = n.attr("strides", [1] * rank), n.attr("dilations", [1] * rank)
    more = n.attr("output_padding", [0] * rank)
    pads = _pads_of_transposed(n, x, kernel, strides, dilations, more)
    batch, channels, *sides = x.dims
    wide: list[Size] = [
        arithmetic.maximum((size - 1) * stride + 1, 0) for size, stride in zip(sides, strides)
    ]
    image = x
    if any(stride != 1 for stride in strides):
        zeros = e.filled([batch, channels, *wide], 0, x.kind)
        image = Value(x.kind, zeros.dims, e.insert(x, zeros, [0] * x.rank, [1, 1, *strides]))
    low = [(k - 1) * d - pad for k, d, pad in zip(kernel, dilations, pads[:rank])]
    high = [(k - 1) * d - pad + o for k, d, pad, o in zip(kernel, dilations, pads[rank:], more)]
    image = padded(e, n, image, [0, 0, *low], [0, 0, *high], "constant", None)
    ones = (1,) * rank
    counts = [
        arithmetic.maximum(size - (k - 1) * d, 0)
        for size, k, d in zip(image.dims[2:], kernel, dilations)
    ]
    windows = Windows(
        tuple(image.dims[2:]), tuple(kernel), ones, tuple(dilations), (0,) * rank, (0,) * rank,
        tuple(counts),
    )  # fmt: skip
    weights = _flipped(e, w, groups, kernel)
    found = convolve(e, n, image, weights, windows, groups, sums_kind(x.kind))
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


def _flipped(e: Emitter, w: Value, groups: int, kernel: Sequence[int]) -> Value:
    """Weights (channels, filters of a group, window) as (filters, channels of a group, reversed window)."""
    channels, each = w.dims[:2]
    part = arithmetic.floordiv(channels, groups)
    rank = len(kernel)
    if any(size > 1 for size in kernel):
        last = [0, 0, *(size - 1 for size in kernel)]
        w = e.slice(w, last, w.dims, [1, 1, *[-1] * rank])
    if groups == 1:
        return e.transpose(w, [1, 0, *range(2, 2 + rank)])
    wide = e.reshape(w, [groups, part, each, *kernel])
    moved = e.transpose(wide, [0, 2, 1, *range(3, 3 + rank)])
    return e.reshape(moved, [each * groups, part, *kernel])


__all__ = ["convolve", "kernel_of"]
