"""Pools: reductions of windows, of any padding, stride and dilation.

The sizes of results and the padding of `auto_pad` are expressions of the sizes of the operand. With
`ceil_mode` a last window counts if it begins inside of the operand or its padding before.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from onnx import TensorProto

from .. import sizes as arithmetic
from ..emitter import Emitter
from ..registry import Node, lowers
from ..scalars import Body, Scalar
from ..sizes import Size, product
from ..values import INDEX, Value
from .reductions import limit_of, power_of_absolute, root_of, sums_kind
from .shapes import operands

I64 = TensorProto.INT64


@dataclass(frozen=True)
class Windows:
    """Windows over the sides of an image, from dimension 2 on.

    Attributes:
        kernel: sizes.
        low: padding before, which moves the windows.
        high: padding after, as the operator declares it.
        counts: how many windows there are.
    """

    sides: tuple[Size, ...]
    kernel: tuple[int, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    low: tuple[Size, ...]
    high: tuple[Size, ...]
    counts: tuple[Size, ...]

    @property
    def extents(self) -> list[int]:
        return [(k - 1) * d + 1 for k, d in zip(self.kernel, self.dilations)]

    def reach(self, dim: int) -> Size:
        """Number of elements after the end that the last window contains, padding included."""
        last = (self.counts[dim] - 1) * self.strides[dim] + self.extents[dim]
        return arithmetic.maximum(last - self.low[dim] - self.sides[dim], 0)


def windows_of(n: Node, sides: list[Size], kernel: list[int]) -> Windows:
    """The windows that a node's attributes describe."""
    rank = len(sides)
    strides = [*n.attr("strides", [1] * rank)]
    dilations = [*n.attr("dilations", [1] * rank)]
    pads = [*n.attr("pads", [0] * 2 * rank)]
    auto = n.attr("auto_pad", "NOTSET")
    low: list[Size] = [*pads[:rank]]
    high: list[Size] = [*pads[rank:]]
    counts: list[Size] = []
    for dim, size in enumerate(sides):
        extent = (kernel[dim] - 1) * dilations[dim] + 1
        stride = strides[dim]
        if auto in ("SAME_UPPER", "SAME_LOWER"):
            count = arithmetic.ceildiv(size, stride)
            missing = arithmetic.maximum((count - 1) * stride + extent - size, 0)
            less = arithmetic.floordiv(missing, 2)
            low[dim] = less if auto == "SAME_UPPER" else missing - less
            high[dim] = missing - low[dim]
            counts.append(count)
            continue
        if auto == "VALID":
            low[dim] = high[dim] = 0
        room = size + low[dim] + high[dim] - extent
        if n.attr("ceil_mode", 0):
            count = arithmetic.ceildiv(room, stride) + 1
            # A window that begins after the operand does not count.
            max_count = arithmetic.ceildiv(size + low[dim], stride)
            count = arithmetic.minimum(count, max_count)
        else:
            count = arithmetic.floordiv(room, stride) + 1
        counts.append(arithmetic.maximum(count, 0))
    return Windows(*map(tuple, (sides, kernel, strides, dilations, low, high, counts)))  # type: ignore[arg-type]


def window_access(windows: Windows, first: int) -> list[str]:
    """Accesses of padded sides, by the loops from `first` on: the windows, and then their elements."""
    count = len(windows.kernel)
    return [
        f"d{first + dim} * {windows.strides[dim]} + d{first + count + dim} * {windows.dilations[dim]}"
        for dim in range(count)
    ]


def reduce_windows(
    e: Emitter,
    x: Value,
    windows: Windows,
    fill: Any,
    outputs: list[tuple[int, Any]],
    body: Callable[..., Any],
) -> list[Value]:
    """Reductions of the windows of (batch, channels, sides...), padded by `fill`."""
    rank = len(windows.kernel)
    zeros: list[Size] = [0, 0]
    padded = e.pad(
        x, [*zeros, *windows.low], [*zeros, *(windows.reach(dim) for dim in range(rank))], fill
    )
    shape = Value(x.kind, windows.kernel)
    shape.ssa = e.empty(windows.kernel, x.kind)
    loops = [*x.dims[:2], *windows.counts, *windows.kernel]
    result = range(2 + rank)
    inner = range(2 + rank, 2 + 2 * rank)

    def at(b: Body, a: Scalar, _: Scalar, *totals: Scalar) -> Any:
        return body(b, a, *totals)

    return e.generic(
        loops,
        [(padded, [0, 1, *window_access(windows, 2)]), (shape, inner)],
        [(kind, result, begin) for kind, begin in outputs],
        at,
        inner,
    )


@lowers("MaxPool")
def max_pool(e: Emitter, n: Node) -> list[Value]:
    (x,) = operands(n)
    windows = windows_of(n, [*x.dims[2:]], n.attr("kernel_shape"))
    fill = limit_of(x.kind, is_lowest=True)
    if not n.wants(1):
        return reduce_windows(e, x, windows, fill, [(x.kind, fill)], lambda b, a, s: b.max(a, s))
    return _with_places(e, n, x, windows, fill)


def _with_places(e: Emitter, n: Node, x: Value, windows: Windows, fill: Any) -> list[Value]:
    """The maxima and their places in the operand; of several maxima, the place of the first one."""
    rank = len(windows.kernel)
    order = [*range(rank)]
    if n.attr("storage_order", 0):
        order.reverse()
    for size in [*x.dims, *windows.low]:
        e.index(size)

    def body(b: Body, a: Scalar, best: Scalar, place: Scalar) -> list[Scalar]:
        flat = b.const(0, INDEX)
        is_inside = b.const(True, TensorProto.BOOL)
        for dim in order:
            start = b.mul(b.index(2 + dim), b.const(windows.strides[dim], INDEX))
            step = b.mul(b.index(2 + rank + dim), b.const(windows.dilations[dim], INDEX))
            here = b.sub(b.add(start, step), b.size(windows.low[dim]))
            size = b.size(x.dims[2 + dim])
            is_inside = b.bit_and(is_inside, b.compare("ge", here, b.const(0, INDEX)))
            is_inside = b.bit_and(is_inside, b.compare("lt", here, size))
            flat = b.add(b.mul(flat, size), here)
        image = b.add(b.mul(b.index(0), b.size(x.dims[1])), b.index(1))
        flat = b.add(b.mul(image, b.size(product(x.dims[2:]))), flat)
        is_first = b.compare("lt", place, b.const(0, I64))
        is_better = b.bit_or(b.compare("gt", a, best), is_first)
        if x.is_float:
            is_better = b.bit_or(is_better, b.bit_and(b.is_nan(a), b.invert(b.is_nan(best))))
        is_better = b.bit_and(is_better, is_inside)
        return [b.max(a, best), b.select(is_better, b.cast(flat, I64), place)]

    for total in (product(x.dims[2:]),):
        e.index(total)
    return reduce_windows(e, x, windows, fill, [(x.kind, fill), (I64, -1)], body)


@lowers("AveragePool", "LpPool")
def sum_pool(e: Emitter, n: Node) -> Value:
    (x,) = operands(n)
    kernel = n.attr("kernel_shape")
    windows = windows_of(n, [*x.dims[2:]], kernel)
    kind = sums_kind(x.kind)
    wide = e.cast(x, kind)
    if n.operator == "LpPool":
        p = float(n.attr("p", 2))
        (sums,) = reduce_windows(
            e, wide, windows, 0, [(kind, 0)],
            lambda b, a, s: b.add(power_of_absolute(b, a, p), s),
        )  # fmt: skip
        return e.pointwise(x.kind, [sums], lambda b, s: b.cast(root_of(b, s, p), x.kind))
    (sums,) = reduce_windows(e, wide, windows, 0, [(kind, 0)], lambda b, a, s: b.add(a, s))
    counts_pads = bool(n.attr("count_include_pad", 0))
    is_full = all(
        windows.reach(dim) == (windows.high[dim] if counts_pads else 0)
        or (counts_pads and not n.attr("ceil_mode", 0))
        for dim in range(len(kernel))
    ) and (counts_pads or all(size == 0 for size in windows.low))
    if is_full or (
        not n.attr("ceil_mode", 0) and all(s == 0 for s in (*windows.low, *windows.high))
    ):
        number = int(product(kernel))  # type: ignore[arg-type]
        return e.pointwise(x.kind, [sums], lambda b, s: b.cast(b.div(s, b.like(number, s)), x.kind))
    return _by_counts(e, x, sums, windows, counts_pads)


def _by_counts(e: Emitter, x: Value, sums: Value, windows: Windows, counts_pads: bool) -> Value:
    """Sums divided by the number of elements that count in each window."""
    for dim in range(len(windows.kernel)):
        e.index(windows.low[dim])
        e.index(windows.sides[dim] + (windows.high[dim] if counts_pads else 0))

    def body(b: Body, s: Scalar) -> Scalar:
        zero, one = b.const(0, INDEX), b.const(1, INDEX)
        total = one
        for dim, (size, step) in enumerate(zip(windows.kernel, windows.dilations)):
            start = b.mul(b.index(2 + dim), b.const(windows.strides[dim], INDEX))
            start = b.sub(start, b.size(windows.low[dim]))
            end = b.size(windows.sides[dim] + (windows.high[dim] if counts_pads else 0))
            # Elements at start + i * step in [0, end), i below the size.
            stop = _steps_up_to(b, b.sub(end, start), step)
            stop = b.clamp(stop, zero, b.const(size, INDEX))
            if counts_pads:
                first = zero
            else:
                first = b.clamp(_steps_up_to(b, b.sub(zero, start), step), zero, stop)
            total = b.mul(total, b.sub(stop, first))
        total = b.max(total, one)
        return b.cast(b.div(s, b.cast(total, s.kind)), x.kind)

    return e.pointwise(x.kind, [sums], body)


def _steps_up_to(b: Body, distance: Scalar, step: int) -> Scalar:
    """Steps whose sum is less than a distance."""
    if step == 1:
        return distance
    return b.floordiv(b.add(distance, b.const(step - 1, INDEX)), step)


@lowers("MaxUnpool")
def max_unpool(e: Emitter, n: Node) -> Value:
    """Moves each element to the place that its index names; other places are 0."""
    raise n.refuse("indices decide where its elements are", "write it with ScatterElements")


__all__ = ["Windows", "reduce_windows", "window_access", "windows_of"]
