"""Operators that sample images at computed places, or gather windows back to images."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

from onnx import TensorProto

from .. import sizes as arithmetic
from ..emitter import Emitter
from ..registry import Node, lowers
from ..scalars import Body, Scalar
from ..sizes import Size, product
from ..values import HALVES, INDEX, Value
from .shapes import operands

F32, I64, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL

#: Elements of a window of Col2Im, each of which is some lines of a kernel.
_MAX_WINDOW = 256
#: The factor of cubic interpolation.
_CUBIC = -0.75


@lowers("GridSample")
def grid_sample(e: Emitter, n: Node) -> Value:
    x, grid = operands(n)
    sides = x.rank - 2
    if grid.dims[-1] != sides:
        raise n.refuse(f"the last dimension of its grid is not known to be {sides}", "declare it")
    e.check_equal(grid.dims[0], x.dims[0], "expected as many grids as images")
    for size in (*x.dims, *grid.dims):
        e.index(size)
    for value in (x, grid):
        e.use(value)
    mode = n.attr("mode", "linear").removeprefix("bi")
    aligned, padding = bool(n.attr("align_corners", 0)), n.attr("padding_mode", "zeros")
    kind = F32 if x.kind in HALVES else x.kind
    dims = [x.dims[0], x.dims[1], *grid.dims[1:-1]]

    def body(b: Body, batch: Scalar, channel: Scalar, *places: Scalar) -> Scalar:
        samplers = []
        for axis in range(sides):
            number = b.const(sides - 1 - axis, INDEX)
            normal = b.cast(b.extract(grid, [batch, *places, number]), kind)
            samplers.append(_Axis(b, x.dims[2 + axis], normal, mode, aligned, padding))
        total = None
        for taps in itertools.product(*(sampler.taps for sampler in samplers)):
            index, weight, inside = [batch, channel], None, None
            for place, factor, valid in taps:
                index.append(place)
                weight = factor if weight is None or factor is None else b.mul(weight, factor)
                inside = valid if inside is None or valid is None else b.bit_and(inside, valid)
            pixel = b.cast(b.extract(x, index), kind)
            if inside is not None:
                pixel = b.select(inside, pixel, b.const(0, kind))
            part = pixel if weight is None else b.mul(pixel, weight)
            total = part if total is None else b.add(total, part)
        assert total is not None
        return b.cast(total, x.kind)

    return e.compute(dims, x.kind, body)


class _Axis:
    """The places of an axis that a sample reads.

    Attributes:
        taps: indices inside of the image, their weights (None for 1), and whether they count (None for yes).
    """

    def __init__(
        self, b: Body, size: Size, normal: Scalar, mode: str, aligned: bool, padding: str
    ) -> None:
        self.b, self.padding = b, padding
        self.kind = normal.kind
        self.size = b.cast(b.size(size), self.kind)
        one, half = b.like(1, normal), b.like(0.5, normal)
        self.last = b.sub(self.size, one)
        self.low = b.like(0, normal) if aligned else b.like(-0.5, normal)
        self.high = self.last if aligned else b.sub(self.size, half)
        if aligned:
            at = b.mul(b.mul(b.add(normal, one), half), self.last)
        else:
            at = b.mul(b.sub(b.mul(b.add(normal, one), self.size), one), half)
        if mode == "nearest":
            at = b.unary("roundeven", at)
        outside = b.bit_or(b.compare("lt", at, self.low), b.compare("gt", at, self.high))
        if padding == "border" and mode != "cubic":
            at = b.select(outside, b.clamp(at, b.like(0, at), self.last), at)
        elif padding == "reflection":
            at = b.select(outside, self._reflected(at), at)
        if mode == "nearest":
            self.taps = [self._tap(at, None)]
            return
        first = b.unary("floor", at)
        rest = b.sub(at, first)
        if mode == "linear":
            weights = [b.sub(one, rest), rest]
            self.taps = [self._tap(b.add(first, b.like(i, at)), weights[i]) for i in range(2)]
        else:
            weights = _cubic_weights(b, rest)
            self.taps = [self._tap(b.add(first, b.like(i - 1, at)), weights[i]) for i in range(4)]

    def _reflected(self, at: Scalar) -> Scalar:
        """The place, mirrored at both ends until it is inside."""
        b = self.b
        zero, two = b.like(0, at), b.like(2, at)
        extent = b.sub(self.high, self.low)
        below = b.sub(self.low, at)
        distance = b.select(b.compare("gt", below, zero), below, b.sub(at, self.high))
        turns = b.unary("trunc", b.div(distance, extent))
        rest = b.sub(distance, b.mul(turns, extent))
        half = b.unary("floor", b.div(turns, two))
        is_even = b.compare("eq", b.mul(half, two), turns)
        from_low = b.select(b.compare("gt", below, zero), is_even, b.invert(is_even))
        found = b.select(from_low, b.add(self.low, rest), b.sub(self.high, rest))
        # An axis of one element has one place.
        return b.select(b.compare("gt", extent, zero), found, zero)

    def _tap(
        self, at: Scalar, weight: Scalar | None
    ) -> tuple[Scalar, Scalar | None, Scalar | None]:
        b, inside = self.b, None
        zero = b.like(0, at)
        if self.padding == "zeros":
            inside = b.bit_and(b.compare("ge", at, zero), b.compare("le", at, self.last))
        elif self.padding == "reflection":
            outside = b.bit_or(b.compare("lt", at, self.low), b.compare("gt", at, self.high))
            at = b.select(outside, b.unary("trunc", self._reflected(at)), at)
        # Taps that do not count read the first element.
        at = b.select(b.compare("gt", at, zero), at, zero)
        at = b.select(b.compare("lt", at, self.last), at, b.max(self.last, zero))
        return b.cast(at, INDEX), weight, inside


def _cubic_weights(b: Body, x: Scalar) -> list[Scalar]:
    def value(coefficients: Sequence[float], at: Scalar) -> Scalar:
        total = b.like(coefficients[0], at)
        for coefficient in coefficients[1:]:
            total = b.add(b.mul(total, at), b.like(coefficient, at))
        return total

    outer = [_CUBIC, -5 * _CUBIC, 8 * _CUBIC, -4 * _CUBIC]
    inner = [_CUBIC + 2, -(_CUBIC + 3), 0, 1]
    one = b.like(1, x)
    rest = b.sub(one, x)
    return [
        value(outer, b.add(x, one)),
        value(inner, x),
        value(inner, rest),
        value(outer, b.add(rest, one)),
    ]


@lowers("Col2Im")
def col2im(e: Emitter, n: Node) -> Value:
    """Sums the elements of all windows that contain an element of the image."""
    x = n.inputs[0]
    assert x is not None
    image, block = n.numbers(1), n.integers(2)
    sides = len(block)
    strides, dilations = n.attr("strides", [1] * sides), n.attr("dilations", [1] * sides)
    pads = n.attr("pads", [0] * 2 * sides)
    counts: list[Size] = []
    for axis in range(sides):
        room = (
            image[axis] + pads[axis] + pads[sides + axis] - dilations[axis] * (block[axis] - 1) - 1
        )
        counts.append(room // strides[axis] + 1)
    e.check_equal(x.dims[2], product(counts), "expected a column for each place of the window")
    window = math.prod(block)
    if window > _MAX_WINDOW:
        raise n.refuse(f"its window has {window} elements", f"use windows of up to {_MAX_WINDOW}")
    channels = x.dims[1] // window
    e.check_equal(channels * window, x.dims[1], f"expected a multiple of {window} rows")
    for size in [*counts, *x.dims, *image]:
        e.index(size)
    e.use(x)
    dims = [x.dims[0], channels, *image]

    def body(b: Body, batch: Scalar, channel: Scalar, *places: Scalar) -> Scalar:
        zero, total = b.const(0, INDEX), b.const(0, x.kind)
        for taps in itertools.product(*map(range, block)):
            row, column, valid = channel, zero, b.const(True, BOOL)
            for axis, tap in enumerate(taps):
                row = b.add(b.mul(row, b.const(block[axis], INDEX)), b.const(tap, INDEX))
                start = b.add(places[axis], b.const(pads[axis] - tap * dilations[axis], INDEX))
                place = b.floordiv(start, strides[axis])
                is_whole = b.compare("eq", b.mul(place, b.const(strides[axis], INDEX)), start)
                is_inside = b.bit_and(
                    b.compare("ge", place, zero), b.compare("lt", place, b.size(counts[axis]))
                )
                valid = b.bit_and(valid, b.bit_and(is_whole, is_inside))
                column = b.add(b.mul(column, b.size(counts[axis])), place)
            element = b.extract(x, [batch, row, b.select(valid, column, zero)])
            total = b.add(total, b.select(valid, element, b.like(0, element)))
        return total

    return e.compute(dims, x.kind, body)


@lowers("CenterCropPad")
def center_crop_pad(e: Emitter, n: Node) -> Value:
    """The middle of each axis, or the axis in the middle of zeros; its size may decide which."""
    x = n.inputs[0]
    assert x is not None
    axes = [axis % x.rank for axis in n.attr("axes", range(x.rank))]
    dims, starts = [*x.dims], [*[0] * x.rank]
    offsets: list[Size] = [*starts]
    for axis, size in zip(axes, n.numbers(1)):
        own = x.dims[axis]
        before = arithmetic.maximum(size - own, 0) // 2
        offsets[axis] = arithmetic.maximum(own - size, 0) // 2 - before
        dims[axis] = size
    if all(isinstance(size, int) and size == 0 for size in offsets) and tuple(dims) == x.dims:
        return x
    for size in (*x.dims, *dims, *offsets):
        e.index(size)
    e.use(x)
    kept, moved = _clipped(e, x, dims), [axis for axis, size in enumerate(offsets) if size != 0]

    def body(b: Body, *places: Scalar) -> Scalar:
        zero, valid, chosen = b.const(0, INDEX), b.const(True, BOOL), [*places]
        for axis in moved:
            at = b.add(places[axis], b.size(offsets[axis]))
            inside = b.bit_and(b.compare("ge", at, zero), b.compare("lt", at, b.size(x.dims[axis])))
            valid = b.bit_and(valid, inside)
            chosen[axis] = at
        chosen = [b.select(valid, place, zero) for place in chosen]
        element = b.extract(kept, chosen)
        return b.select(valid, element, b.like(0, element))

    return e.compute(dims, x.kind, body)


def _clipped(e: Emitter, x: Value, dims: Sequence[Size]) -> Value:
    """The value, with a zero where an axis may be empty although the result is not."""
    low: list[Size] = [0] * x.rank
    high = [
        0 if isinstance(own, int) and own > 0 or own == size else arithmetic.maximum(1 - own, 0)
        for own, size in zip(x.dims, dims)
    ]
    return e.pad(x, low, high, 0)


__all__ = ["center_crop_pad", "col2im", "grid_sample"]
