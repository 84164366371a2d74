"""Operators that move elements: parts, rows of indices, borders, repetitions."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from onnx import TensorProto

from .. import sizes as arithmetic
from ..emitter import Emitter
from ..registry import Node, lowers
from ..scalars import Body, Scalar
from ..sizes import Size
from ..values import INDEX, Value
from .shapes import axes_of, axis_of, operands

I64 = TensorProto.INT64
#: An end from this number on means the end of the axis.
_FAR = 2**31 - 2


def index_of(b: Body, place: Scalar, size: Size) -> Scalar:
    """An index of ONNX, which counts from the end if it is negative; it must be inside."""
    index = b.cast(place, INDEX) if place.kind != INDEX else place
    if not place.is_unsigned:
        zero = b.const(0, INDEX)
        index = b.select(b.compare("lt", index, zero), b.add(index, b.size(size)), index)
    return index


def known_places(n: Node, value: Value, size: Size) -> None:
    """Refuses indices that are known to be outside."""
    if value.array is None or not isinstance(size, int):
        return
    bad = value.array[(value.array < -size) | (value.array >= size)]
    if bad.size:
        raise n.refuse(f"its index {bad[0]} is outside of {size} elements", "give it another index")


@lowers("Gather")
def gather(e: Emitter, n: Node) -> Value:
    x, indices = operands(n)
    axis = axis_of(n, 0, x.rank)
    known_places(n, indices, x.dims[axis])
    if indices.array is not None and indices.array.size == 1 and indices.is_small:
        return _part_of(e, x, axis, int(indices.array.flat[0]), indices.rank)
    dims = [*x.dims[:axis], *indices.dims, *x.dims[axis + 1 :]]
    e.use(x)
    e.index(x.dims[axis])

    def body(b: Body, place: Scalar) -> Scalar:
        chosen = []
        for dim in range(x.rank):
            if dim == axis:
                chosen.append(index_of(b, place, x.dims[axis]))
            else:
                chosen.append(b.index(dim if dim < axis else dim + indices.rank - 1))
        return b.extract(x, chosen)

    access = [*range(axis, axis + indices.rank)]
    e.use(indices)
    (result,) = e.generic(dims, [(indices, access)], [(x.kind, range(len(dims)), None)], body)
    return result


def _part_of(e: Emitter, x: Value, axis: int, place: int, rank: int) -> Value:
    """The elements at one place of an axis, which is known."""
    offset: Size = place if place >= 0 else x.dims[axis] + place
    dims = [1 if dim == axis else size for dim, size in enumerate(x.dims)]
    part = e.slice(x, [offset if dim == axis else 0 for dim in range(x.rank)], dims)
    return e.reshape(part, [*x.dims[:axis], *[1] * rank, *x.dims[axis + 1 :]])


@lowers("GatherElements")
def gather_elements(e: Emitter, n: Node) -> Value:
    x, indices = operands(n)
    axis = axis_of(n, 0, x.rank)
    known_places(n, indices, x.dims[axis])
    e.use(x)
    e.index(x.dims[axis])

    def body(b: Body, place: Scalar) -> Scalar:
        chosen = [
            index_of(b, place, size) if dim == axis else b.index(dim)
            for dim, size in enumerate(x.dims)
        ]
        return b.extract(x, chosen)

    return e.pointwise(x.kind, [indices], body)


@lowers("GatherND")
def gather_nd(e: Emitter, n: Node) -> Value:
    x, indices = operands(n)
    batch = n.attr("batch_dims", 0)
    count = indices.dims[-1]
    if not isinstance(count, int):
        raise n.refuse("the size of its last dimension of indices is not known", "declare it")
    for dim in range(batch):
        e.check_equal(
            indices.dims[dim], x.dims[dim], f"expected equal sizes of batch dimension {dim}"
        )
    places = [*indices.dims[:-1]]
    dims = [*places, *x.dims[batch + count :]]
    for value in (x, indices):
        e.use(value)
    for size in x.dims:
        e.index(size)

    def body(b: Body, *at: Scalar) -> Scalar:
        outer = at[: len(places)]
        chosen = [*at[:batch]]
        for number in range(count):
            place = b.extract(indices, [*outer, b.const(number, INDEX)])
            chosen.append(index_of(b, place, x.dims[batch + number]))
        return b.extract(x, [*chosen, *at[len(places) :]])

    return e.compute(dims, x.kind, body)


def clamped(place: Size, size: Size, low: Size, high: Size) -> Size:
    """A place that counts from the end if it is negative, in bounds."""
    if isinstance(place, int):
        if place > _FAR:
            return high
        if place < -_FAR:
            return low
    place = arithmetic.wrapped(place, size)
    return arithmetic.minimum(arithmetic.maximum(place, low), high)


@lowers("Slice")
def slice_(e: Emitter, n: Node) -> Value:
    x = n.inputs[0]
    assert x is not None
    if n.version < 10:
        starts, ends = n.attr("starts"), n.attr("ends")
        axes, steps = n.attr("axes"), None
    else:
        starts, ends = n.numbers(1), n.numbers(2)
        axes = n.integers(3) if n.input(3) is not None else None
        steps = n.integers(4) if n.input(4) is not None else None
    axes = [*range(len(starts))] if axes is None else [axis % x.rank for axis in axes]
    steps = [1] * len(starts) if steps is None else steps
    offsets: list[Size] = [0] * x.rank
    dims, all_steps = [*x.dims], [1] * x.rank
    for axis, start, end, step in zip(axes, starts, ends, steps):
        size = x.dims[axis]
        if step == 0:
            raise n.refuse("it has a step of 0", "give it another step")
        if step > 0:
            begin = clamped(start, size, 0, size)
            length = clamped(end, size, 0, size) - begin
            count = arithmetic.ceildiv(arithmetic.maximum(length, 0), step)
        else:
            begin = clamped(start, size, 0, size - 1)
            length = begin - clamped(end, size, -1, size - 1)
            count = arithmetic.ceildiv(arithmetic.maximum(length, 0), -step)
            count = arithmetic.minimum(count, size)
        offsets[axis], dims[axis], all_steps[axis] = begin, count, step
    return e.slice(x, offsets, dims, all_steps)


@lowers("Split")
def split(e: Emitter, n: Node) -> list[Value]:
    x = n.inputs[0]
    assert x is not None
    axis = axis_of(n, 0, x.rank)
    size, count = x.dims[axis], n.attr("num_outputs", len(n.outputs))
    given = n.attr("split")
    if given is None and n.input(1) is not None:
        given = n.numbers(1)
    if given is None:
        part = arithmetic.ceildiv(size, count)
        if n.version < 18:
            part = arithmetic.floordiv(size, count)
            clause = f"expected a size of dimension {axis} that is a multiple of its {count} parts"
            e.check_equal(part * count, size, clause)
        given = [part] * (count - 1) + [size - part * (count - 1)]
        if n.version >= 18 and not isinstance(size, int):
            given = [
                arithmetic.maximum(arithmetic.minimum(part, size - part * i), 0)
                for i in range(count)
            ]
    else:
        total: Size = 0
        for part in given:
            total = total + part
        e.check_equal(
            total, size, f"expected parts that have the size of dimension {axis} together"
        )
    results = []
    offset: Size = 0
    for part in given:
        dims = [part if dim == axis else other for dim, other in enumerate(x.dims)]
        results.append(e.slice(x, [offset if d == axis else 0 for d in range(x.rank)], dims))
        offset = offset + part
        if not isinstance(size, int) and n.input(1) is None:
            offset = arithmetic.minimum(offset, size)
    return results


@lowers("Concat")
def concat(e: Emitter, n: Node) -> Value:
    values = operands(n)
    return e.concat(values, axis_of(n, 1 if n.version < 4 else 0, values[0].rank))


@lowers("Tile")
def tile(e: Emitter, n: Node) -> Value:
    x = n.inputs[0]
    assert x is not None
    if n.version < 6:
        repeats: list[Size] = [1] * x.rank
        repeats[n.integers(2)[0]] = n.numbers(1)[0]
    else:
        repeats = n.numbers(1)
    if len(repeats) != x.rank:
        raise n.refuse(
            f"it has {len(repeats)} repeats for {x.rank} dimensions", "give it one of each"
        )
    # Each dimension that is repeated gets one before it, of the repeats.
    wide, flat, access = [], [], []
    for size, repeat in zip(x.dims, repeats):
        if repeat != 1:
            wide.append(repeat)
        access.append(len(wide))
        wide.append(size)
        flat.append(size * repeat)
    if len(wide) == x.rank:
        return e.slice(x, [0] * x.rank, x.dims)
    e.use(x)
    (found,) = e.generic(wide, [(x, access)], [(x.kind, range(len(wide)), None)], lambda b, a: a)
    return e.reshape(found, flat)


@lowers("Pad")
def pad(e: Emitter, n: Node) -> Value:
    x = n.inputs[0]
    assert x is not None
    mode = n.attr("mode", "constant")
    fill: Value | float | None
    if n.version < 11:
        pads = n.attr("pads", n.attr("paddings"))
        axes, fill = [*range(x.rank)], n.attr("value", 0.0)
    else:
        pads, fill = n.numbers(1), n.input(2)
        axes = [*range(x.rank)]
        if n.input(3) is not None:
            axes = [axis % x.rank for axis in n.integers(3)]
    low: list[Size] = [0] * x.rank
    high: list[Size] = [0] * x.rank
    for place, axis in enumerate(axes):
        low[axis], high[axis] = pads[place], pads[place + len(axes)]
    return padded(e, n, x, low, high, mode, fill)


def padded(
    e: Emitter,
    n: Node,
    x: Value,
    low: Sequence[Size],
    high: Sequence[Size],
    mode: str,
    fill: Value | float | None,
) -> Value:
    """Pads `x`; a negative pad first takes elements away."""
    cut_low = [arithmetic.maximum(-size, 0) for size in low]
    cut_high = [arithmetic.maximum(-size, 0) for size in high]
    dims = [s - a - b for s, a, b in zip(x.dims, cut_low, cut_high)]
    x = e.slice(x, cut_low, [arithmetic.maximum(size, 0) for size in dims])
    low = [arithmetic.maximum(size, 0) for size in low]
    high = [arithmetic.maximum(size, 0) for size in high]
    if mode == "constant":
        return e.pad(x, low, high, _fill_of(e, x, fill))
    e.use(x)
    for size in [*low, *x.dims]:
        e.index(size)

    def body(b: Body, *at: Scalar) -> Scalar:
        return b.extract(x, [
            place if a == 0 and c == 0 else _inside(b, b.sub(place, b.size(a)), size, mode)
            for place, a, c, size in zip(at, low, high, x.dims)
        ])  # fmt: skip

    return e.compute([a + s + b for a, s, b in zip(low, x.dims, high)], x.kind, body)


def _fill_of(e: Emitter, x: Value, fill: Value | float | None) -> float | Scalar:
    if fill is None:
        return 0
    if isinstance(fill, Value):
        if fill.array is not None:
            found: float = fill.array.reshape(-1)[0]
            return found
        places = ", ".join(e.scalar(0, INDEX) for _ in fill.dims)
        return Scalar(e.op(f"tensor.extract {e.use(fill)}[{places}] : {fill.type}"), fill.kind)
    return fill


def _inside(b: Body, place: Scalar, size: Size, mode: str) -> Scalar:
    """The place that a place beyond the ends stands for."""
    length, zero = b.size(size), b.const(0, INDEX)
    if mode == "edge":
        return b.clamp(place, zero, b.sub(length, b.const(1, INDEX)))
    if mode == "wrap":
        return _modulo(b, place, length)
    # A reflection has a period of 2 (n - 1), and of 1 where there is one element.
    one = b.const(1, INDEX)
    period = b.max(b.mul(b.sub(length, one), b.const(2, INDEX)), one)
    rest = _modulo(b, place, period)
    return b.min(rest, b.sub(period, rest)) if size != 1 else zero


def _modulo(b: Body, place: Scalar, length: Scalar) -> Scalar:
    zero = b.const(0, INDEX)
    safe = b.max(length, b.const(1, INDEX))
    rest = b.rem(place, safe)
    return b.select(b.compare("lt", rest, zero), b.add(rest, safe), rest)


@lowers("DepthToSpace")
def depth_to_space(e: Emitter, n: Node) -> Value:
    (x,) = operands(n)
    block = n.attr("blocksize")
    batch, channels, height, width = x.dims
    part = arithmetic.floordiv(channels, block * block)
    clause = f"expected a number of channels that is a multiple of {block * block}"
    e.check_equal(part * block * block, channels, clause)
    if n.attr("mode", "DCR") == "CRD":
        wide = e.reshape(x, [batch, part, block, block, height, width])
        moved = e.transpose(wide, [0, 1, 4, 2, 5, 3])
    else:
        wide = e.reshape(x, [batch, block, block, part, height, width])
        moved = e.transpose(wide, [0, 3, 4, 1, 5, 2])
    return e.reshape(moved, [batch, part, height * block, width * block])


@lowers("SpaceToDepth")
def space_to_depth(e: Emitter, n: Node) -> Value:
    (x,) = operands(n)
    block = n.attr("blocksize")
    batch, channels, height, width = x.dims
    rows, columns = (arithmetic.floordiv(size, block) for size in (height, width))
    for size, part in ((height, rows), (width, columns)):
        e.check_equal(part * block, size, f"expected sides that are multiples of {block}")
    wide = e.reshape(x, [batch, channels, rows, block, columns, block])
    is_crd = n.attr("mode", "DCR") == "CRD"
    moved = e.transpose(wide, [0, 1, 3, 5, 2, 4] if is_crd else [0, 3, 5, 1, 2, 4])
    return e.reshape(moved, [batch, channels * block * block, rows, columns])


@lowers("Range")
def range_(e: Emitter, n: Node) -> Value:
    start, limit, delta = operands(n)
    begin, end, step = n.numbers(0)[0], n.numbers(1)[0], n.integers(2)[0]
    length = end - begin if step > 0 else begin - end
    count = arithmetic.ceildiv(arithmetic.maximum(length, 0), abs(step))
    e.index(begin)

    def body(b: Body, place: Scalar) -> Scalar:
        number = b.add(b.size(begin), b.mul(place, b.const(step, INDEX)))
        return b.cast(number, start.kind)

    if start.is_float:
        raise n.refuse("its bounds are of floats that depend on sizes", "make them integers")
    return e.compute([count], start.kind, body)


@lowers("OneHot")
def one_hot(e: Emitter, n: Node) -> Value:
    indices, _, values = operands(n)
    depth = n.numbers(1)[0]
    rank = indices.rank + 1
    axis = n.attr("axis", -1) % rank
    dims = [*indices.dims[:axis], depth, *indices.dims[axis:]]
    access = [dim if dim < axis else dim + 1 for dim in range(indices.rank)]
    off_value, on_value = (e.slice(values, [place], [1]) for place in (0, 1))
    e.index(depth)

    def body(b: Body, place: Scalar, low: Scalar, high: Scalar) -> Scalar:
        index = index_of(b, b.cast(place, I64), depth)
        return b.select(b.compare("eq", index, b.index(axis)), high, low)

    e.use(indices)
    (result,) = e.generic(
        dims,
        [(indices, access), (off_value, [None]), (on_value, [None])],
        [(values.kind, range(rank), None)],
        body,
    )
    return result


@lowers("ReverseSequence")
def reverse_sequence(e: Emitter, n: Node) -> Value:
    x, lengths = operands(n)
    batch, time = n.attr("batch_axis", 1), n.attr("time_axis", 0)
    for value in (x, lengths):
        e.use(value)

    def body(b: Body, *at: Scalar) -> Scalar:
        length = b.cast(b.extract(lengths, [at[batch]]), INDEX)
        last = b.sub(length, b.const(1, INDEX))
        place = b.select(b.compare("lt", at[time], length), b.sub(last, at[time]), at[time])
        return b.extract(x, [place if dim == time else p for dim, p in enumerate(at)])

    return e.compute(x.dims, x.kind, body)


__all__ = ["axes_of", "clamped", "index_of", "np", "padded"]
