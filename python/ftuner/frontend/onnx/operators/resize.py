"""Images of other sizes: Resize and Upsample of every operator set.

A coordinate transformation mode gives each place of the result its coordinate in the operand; before
operator set 11 this is the place divided by the scale. The sizes of results, and scales that come from
sizes, are expressions of sizes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from onnx import TensorProto

from .. import sizes as arithmetic
from ..emitter import Emitter
from ..registry import Node, lowers
from ..scalars import Body, Scalar
from ..sizes import Size
from ..values import INDEX, Value
from .reductions import limit_of, sums_kind

F32 = TensorProto.FLOAT


@dataclass(frozen=True)
class _Axis:
    """An axis that is resized.

    Attributes:
        scale: None for a quotient of sizes.
        begin: begin of the part that is resized, with tf_crop_and_resize.
        end: end of the part.
        ratios: sizes after and before, whose smallest or largest quotient is the scale.
        is_smallest: says that the smallest quotient is the scale.
    """

    dim: int
    before: Size
    after: Size
    scale: float | None
    begin: float = 0.0
    end: float = 1.0
    ratios: tuple[tuple[Size, Size], ...] = ()
    is_smallest: bool = True

    def divided(self, b: Body, x: Scalar) -> Scalar:
        """A number by the scale."""
        if self.scale is not None:
            return b.div(x, b.const(self.scale, F32))
        if not self.ratios:
            return b.div(
                b.mul(x, b.cast(b.size(self.before), F32)), b.cast(b.size(self.after), F32)
            )
        return b.div(x, self.factor(b))

    def factor(self, b: Body) -> Scalar:
        """The scale of an axis whose scale is not the quotient of its own sizes."""
        if self.scale is not None:
            return b.const(self.scale, F32)
        quotients = [
            b.div(b.cast(b.size(after), F32), b.cast(b.size(before), F32))
            for after, before in self.ratios
        ]
        found = quotients[0]
        for quotient in quotients[1:]:
            found = (b.min if self.is_smallest else b.max)(found, quotient)
        return found


@dataclass(frozen=True)
class _Sampling:
    """Weighted sums of neighbours.

    Attributes:
        axes: the axes that are resized.
        transform: coordinate transformation mode.
        is_linear: says that weights are linear instead of cubic.
        cubic_a: coefficient of cubic weights.
        excludes: says that places outside of the operand get no weight.
        outside: value of elements whose coordinate is outside of the operand; None to compute them too.
    """

    axes: Sequence[_Axis]
    transform: str
    is_linear: bool
    cubic_a: float
    excludes: bool
    outside: float | None


@lowers("Resize", "Upsample")
def resize(e: Emitter, n: Node) -> Value:
    x = n.inputs[0]
    assert x is not None
    mode = n.attr("mode", "nearest")
    mode = {"bilinear": "linear", "trilinear": "linear", "bicubic": "cubic"}.get(mode, mode)
    if mode not in ("nearest", "linear", "cubic"):
        raise n.refuse(f"its mode is {mode}", "make it nearest, linear or cubic")
    axes = _axes(e, n, x)
    transform = n.attr("coordinate_transformation_mode", "half_pixel")
    if n.operator == "Upsample" or n.version < 11:
        transform = "asymmetric"
    rounding = n.attr("nearest_mode", "round_prefer_floor")
    if n.operator == "Upsample" or n.version < 11:
        rounding = "floor_of_old"
    dims = [*x.dims]
    for axis in axes:
        dims[axis.dim] = axis.after
        for size in (axis.before, axis.after, *(part for pair in axis.ratios for part in pair)):
            e.index(size)
    if not axes:
        return e.slice(x, [0] * x.rank, x.dims)
    e.use(x)
    outside = n.attr("extrapolation_value", 0.0) if transform == "tf_crop_and_resize" else None

    if mode == "nearest":

        def nearest(b: Body, *at: Scalar) -> Scalar:
            chosen = [*at]
            is_inside = b.const(True, TensorProto.BOOL)
            for axis in axes:
                place = _coordinate(b, axis, at[axis.dim], transform)
                is_inside = b.bit_and(is_inside, _is_inside(b, axis, place))
                chosen[axis.dim] = _rounded(b, axis, place, rounding)
            found = b.extract(x, chosen)
            return (
                found if outside is None else b.select(is_inside, found, b.const(outside, x.kind))
            )

        return e.compute(dims, x.kind, nearest)
    if n.attr("antialias", 0) and not x.is_float:
        raise n.refuse(
            "it filters integers (antialias), and ONNX does not tell how they are rounded between",
            "cast its operand to FLOAT before and its result after",
        )
    sampling = _Sampling(
        axes,
        transform,
        mode == "linear",
        n.attr("cubic_coeff_a", -0.75),
        bool(n.attr("exclude_outside", 0)),
        outside,
    )
    return (_filtered if n.attr("antialias", 0) else _interpolated)(e, x, dims, sampling)


def _axes(e: Emitter, n: Node, x: Value) -> list[_Axis]:
    """The axes that get another size."""
    places = [axis % x.rank for axis in n.attr("axes", range(x.rank))]
    sizes: list[Size] | None = None
    scales: list[float] | None = None
    roi: list[float] = []
    if n.operator == "Upsample" and n.version < 9:
        scales = _old_scales(n, x)
    elif n.operator == "Upsample" or n.version < 11:
        scales = [float(s) for s in n.array(1).reshape(-1)]
    else:
        if n.input(3) is not None and n.inputs[3].dims != (0,):  # type: ignore[union-attr]
            sizes = n.numbers(3)
        elif n.input(2) is not None:
            scales = [float(s) for s in n.array(2).reshape(-1)]
        else:
            raise n.refuse("it has neither scales nor sizes", "give it one of them")
        if n.attr("coordinate_transformation_mode") == "tf_crop_and_resize":
            roi = [float(s) for s in n.array(1).reshape(-1)]
    count = len(places)
    given = sizes if sizes is not None else scales
    assert given is not None
    if len(given) != count:
        raise n.refuse(f"it has {len(given)} scales for {count} axes", "give it one of each")
    found = []
    for number, dim in enumerate(places):
        box = (roi[number], roi[count + number]) if roi else (0.0, 1.0)
        before = x.dims[dim]
        if sizes is not None:
            found.append(_Axis(dim, before, sizes[number], None, *box))
        else:
            assert scales is not None
            found.append(
                _Axis(dim, before, _scaled(before, scales[number], box), scales[number], *box)
            )
    if sizes is not None and n.attr("keep_aspect_ratio_policy", "stretch") != "stretch":
        found = _of_one_scale(n, found)
    return [
        axis
        for axis in found
        if axis.after != axis.before
        or (axis.scale not in (None, 1.0))
        or axis.begin
        or axis.end != 1
    ]


def _old_scales(n: Node, x: Value) -> list[float]:
    if n.version < 7:
        if n.attr("height_scale") is not None:
            return [1.0] * (x.rank - 2) + [n.attr("height_scale"), n.attr("width_scale")]
        if n.attr("scales") is None:
            raise n.refuse("it has no scales", "give it scales")
    return [float(s) for s in n.attr("scales")]


def _scaled(size: Size, scale: float, box: tuple[float, float]) -> Size:
    """The size by the scale, rounded down."""
    scale = float(np.float32(scale))
    if isinstance(size, int):
        return int(np.floor(size * (box[1] - box[0]) * scale))
    # Most scales are small fractions, or the nearest number of f32 to one.
    ratio = Fraction(scale * (box[1] - box[0]))
    if ratio.denominator > 64:
        nearest = ratio.limit_denominator(64)
        if abs(nearest - ratio) < Fraction(1, 10**6):
            ratio = nearest
    return arithmetic.floordiv(size * ratio.numerator, ratio.denominator)


def _of_one_scale(n: Node, axes: list[_Axis]) -> list[_Axis]:
    """All axes by the smallest or the largest of their scales."""
    is_smallest = n.attr("keep_aspect_ratio_policy") == "not_larger"
    ratios = tuple((axis.after, axis.before) for axis in axes)
    choose = arithmetic.minimum if is_smallest else arithmetic.maximum
    found = []
    for axis in axes:
        # The size by each quotient, rounded; rounding keeps the order.
        size: Size | None = None
        for after, before in ratios:
            part = arithmetic.floordiv(axis.before * after * 2 + before, before * 2)
            size = part if size is None else choose(size, part)
        assert size is not None
        found.append(_Axis(axis.dim, axis.before, size, None, 0.0, 1.0, ratios, is_smallest))
    return found


def _coordinate(b: Body, axis: _Axis, place: Scalar, transform: str) -> Scalar:
    """The place of an element of the result in the operand, in f32."""
    x = b.cast(place, F32)
    before = b.cast(b.size(axis.before), F32)
    after = b.cast(b.size(axis.after), F32)
    one, half, zero = (b.const(number, F32) for number in (1, 0.5, 0))
    if transform == "align_corners":
        is_one = b.compare("eq", after, one)
        step = b.div(b.mul(x, b.sub(before, one)), b.select(is_one, one, b.sub(after, one)))
        return b.select(is_one, zero, step)
    if transform == "tf_crop_and_resize":
        last = b.sub(before, one)
        is_one = b.compare("eq", after, one)
        begin, end = b.const(axis.begin, F32), b.const(axis.end, F32)
        wide = b.mul(b.mul(b.sub(end, begin), last), x)
        step = b.add(b.mul(begin, last), b.div(wide, b.select(is_one, one, b.sub(after, one))))
        return b.select(is_one, b.mul(b.mul(half, b.add(begin, end)), last), step)

    if transform == "asymmetric":
        return axis.divided(b, x)
    if transform == "tf_half_pixel_for_nn":
        return axis.divided(b, b.add(x, half))
    scaled = axis.divided(b, b.add(x, half))
    if transform == "half_pixel_symmetric" and (axis.scale is not None or axis.ratios):
        # The middle of the result lies in the middle of the operand.
        rest = b.sub(one, b.div(after, b.mul(axis.factor(b), before)))
        scaled = b.add(b.mul(b.div(before, b.const(2, F32)), rest), scaled)
    found = b.sub(scaled, half)
    if transform == "pytorch_half_pixel":
        return b.select(b.compare("gt", after, one), found, zero)
    return found


def _is_inside(b: Body, axis: _Axis, place: Scalar) -> Scalar:
    last = b.cast(b.sub(b.size(axis.before), b.const(1, INDEX)), F32)
    return b.bit_and(b.compare("ge", place, b.const(0, F32)), b.compare("le", place, last))


def _clamped_index(b: Body, axis: _Axis, place: Scalar) -> Scalar:
    """A place of f32, a whole number, as an index inside of the operand."""
    index = b.cast(place, INDEX)
    last = b.sub(b.size(axis.before), b.const(1, INDEX))
    return b.clamp(index, b.const(0, INDEX), last)


def _rounded(b: Body, axis: _Axis, place: Scalar, rounding: str) -> Scalar:
    half = b.const(0.5, F32)
    if rounding == "floor_of_old":
        # Enlarged images repeat elements; others take the next one.
        name = "floor" if axis.scale is None or axis.scale >= 1 else "ceil"
        whole = b.unary(name, place)
    elif rounding == "floor":
        whole = b.unary("floor", place)
    elif rounding == "ceil":
        whole = b.unary("ceil", place)
    elif rounding == "round_prefer_ceil":
        whole = b.unary("floor", b.add(place, half))
    else:
        whole = b.unary("ceil", b.sub(place, half))
    return _clamped_index(b, axis, whole)


def _interpolated(e: Emitter, x: Value, dims: Sequence[Size], sampling: _Sampling) -> Value:
    """Sums of neighbours by their weights, along all axes at once."""
    axes, outside = sampling.axes, sampling.outside
    kind = sums_kind(x.kind) if x.is_float else F32

    def body(b: Body, *at: Scalar) -> Scalar:
        is_inside = b.const(True, TensorProto.BOOL)
        options: list[list[tuple[Scalar, Scalar]]] = []
        for axis in axes:
            place = _coordinate(b, axis, at[axis.dim], sampling.transform)
            is_inside = b.bit_and(is_inside, _is_inside(b, axis, place))
            taps = (
                _linear(b, axis, place) if sampling.is_linear else _cubic(b, axis, place, sampling)
            )
            options.append(taps)

        def summed(number: int, chosen: list[Scalar]) -> Scalar:
            if number == len(axes):
                return b.cast(b.extract(x, chosen), kind)
            total = None
            for place, weight in options[number]:
                inner = [*chosen]
                inner[axes[number].dim] = place
                part = b.mul(summed(number + 1, inner), b.cast(weight, kind))
                total = part if total is None else b.add(total, part)
            assert total is not None
            return total

        found = summed(0, [*at])
        if outside is not None:
            found = b.select(is_inside, found, b.const(outside, kind))
        return b.cast(found, x.kind)

    return e.compute(dims, x.kind, body)


def _linear(b: Body, axis: _Axis, place: Scalar) -> list[tuple[Scalar, Scalar]]:
    one, zero = b.const(1, F32), b.const(0, F32)
    last = b.cast(b.sub(b.size(axis.before), b.const(1, INDEX)), F32)
    place = b.clamp(place, zero, last)
    low = b.unary("floor", place)
    weight = b.sub(place, low)
    return [
        (_clamped_index(b, axis, low), b.sub(one, weight)),
        (_clamped_index(b, axis, b.add(low, one)), weight),
    ]


def _cubic(b: Body, axis: _Axis, place: Scalar, sampling: _Sampling) -> list[tuple[Scalar, Scalar]]:
    """Four neighbours with their weights."""
    a = sampling.cubic_a

    def number(value: float) -> Scalar:
        return b.const(value, F32)

    def polynomial(t: Scalar, *factors: float) -> Scalar:
        total = number(factors[0])
        for factor in factors[1:]:
            total = b.add(b.mul(total, t), number(factor))
        return total

    low = b.unary("floor", place)
    t = b.sub(place, low)
    rest = b.sub(number(1), t)
    outer = (a, -5 * a, 8 * a, -4 * a)
    inner = (a + 2, -(a + 3), 0.0, 1.0)
    weights = [
        polynomial(b.add(t, number(1)), *outer),
        polynomial(t, *inner),
        polynomial(rest, *inner),
        polynomial(b.add(rest, number(1)), *outer),
    ]
    places = [b.add(low, number(offset)) for offset in (-1, 0, 1, 2)]
    if sampling.excludes:
        weights = [b.select(_is_inside(b, axis, p), w, number(0)) for p, w in zip(places, weights)]
        total = weights[0]
        for weight in weights[1:]:
            total = b.add(total, weight)
        weights = [b.div(weight, total) for weight in weights]
    return [(_clamped_index(b, axis, p), w) for p, w in zip(places, weights)]


def _filtered(e: Emitter, x: Value, dims: Sequence[Size], sampling: _Sampling) -> Value:
    """Sums of all elements under a filter, which is as wide as the elements that become one."""
    axes, outside = sampling.axes, sampling.outside
    reach = 1 if sampling.is_linear else 2
    kind = sums_kind(x.kind) if x.is_float else F32
    taps: list[Size] = []
    for axis in axes:
        if axis.scale is not None:
            taps.append(int(np.ceil(2 * reach * max(1 / axis.scale, 1))) + 1)
        else:
            widths: list[Size] = [1]
            for after, before in axis.ratios or ((axis.after, axis.before),):
                widths.append(arithmetic.ceildiv(before, arithmetic.maximum(after, 1)))
            width = widths[0]
            for other in widths[1:]:
                width = arithmetic.maximum(width, other)
            taps.append(width * 2 * reach + 1)
        e.index(taps[-1])
    window = Value(kind, tuple(taps), e.empty(taps, kind))
    rank = len(dims)

    def body(b: Body, _: Scalar, total: Scalar, weights: Scalar) -> list[Scalar]:
        chosen = [b.index(dim) for dim in range(rank)]
        product = b.const(1, F32)
        for number, axis in enumerate(axes):
            place, weight = _tap(b, axis, chosen[axis.dim], b.index(rank + number), sampling)
            chosen[axis.dim] = place
            product = b.mul(product, weight)
        weight = b.cast(product, kind)
        part = b.mul(b.cast(b.extract(x, chosen), kind), weight)
        return [b.add(total, part), b.add(weights, weight)]

    access = range(rank)
    sums, weights = e.generic(
        [*dims, *taps],
        [(window, [rank + number for number in range(len(taps))])],
        [(kind, access, 0), (kind, access, 0)],
        body,
        range(rank, rank + len(taps)),
    )

    def result(b: Body, total: Scalar, weight: Scalar) -> Scalar:
        found = b.div(total, weight)
        if outside is not None:
            for axis in axes:
                place = _coordinate(b, axis, b.index(axis.dim), sampling.transform)
                found = b.select(_is_inside(b, axis, place), found, b.const(outside, kind))
        if x.is_float:
            return b.cast(found, x.kind)
        low, high = (limit_of(x.kind, is_lowest=is_lowest) for is_lowest in (True, False))
        found = b.unary("floor", b.add(found, b.like(0.5, found)))
        return b.cast(b.clamp(found, b.like(low, found), b.like(high, found)), x.kind)

    return e.pointwise(x.kind, [sums, weights], result)


def _tap(
    b: Body, axis: _Axis, place: Scalar, number: Scalar, sampling: _Sampling
) -> tuple[Scalar, Scalar]:
    """The place and the weight of an element under the filter."""
    one, half, zero = (b.const(value, F32) for value in (1, 0.5, 0))
    center = b.add(_coordinate(b, axis, place, sampling.transform), half)
    width = b.max(axis.divided(b, one), one)
    support = b.mul(width, b.const(1 if sampling.is_linear else 2, F32))
    first = b.unary("floor", b.add(b.sub(center, support), half))
    end = b.unary("floor", b.add(b.add(center, support), half))
    at = b.add(first, b.cast(number, F32))
    distance = b.unary("absf", b.div(b.add(b.sub(at, center), half), width))
    if sampling.is_linear:
        weight = b.max(b.sub(one, distance), zero)
    else:
        weight = _cubic_weight(b, distance, sampling.cubic_a)
    weight = b.select(b.compare("lt", at, end), weight, zero)
    if sampling.excludes:
        weight = b.select(_is_inside(b, axis, at), weight, zero)
    return _clamped_index(b, axis, at), weight


def _cubic_weight(b: Body, t: Scalar, a: float) -> Scalar:
    """The kernel of cubic interpolation at a distance."""

    def polynomial(*factors: float) -> Scalar:
        total = b.const(factors[0], F32)
        for factor in factors[1:]:
            total = b.add(b.mul(total, t), b.const(factor, F32))
        return total

    inner, outer = polynomial(a + 2, -(a + 3), 0, 1), polynomial(a, -5 * a, 8 * a, -4 * a)
    outer = b.select(b.compare("lt", t, b.const(2, F32)), outer, b.const(0, F32))
    return b.select(b.compare("lt", t, b.const(1, F32)), inner, outer)


__all__: list[Any] = ["resize"]
