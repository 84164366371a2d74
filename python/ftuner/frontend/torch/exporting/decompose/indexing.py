"""Reads and writes by index tensors.

A read by several index tensors becomes a read by a single position in the joined dimensions. A write is computed
for each place of the result, from all writes that hit it, since a kernel cannot order the writes of others.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from torch.fx.experimental.symbolic_shapes import statically_known_true

import torch
from torch import Tensor

aten = torch.ops.aten


def _places(size: int, like: Tensor) -> Tensor:
    return torch.arange(size, device=like.device)


def _broadcast(tensors: Sequence[Tensor]) -> list[Tensor]:
    """The tensors with one shape."""
    shape = torch.broadcast_shapes(  # type: ignore[no-untyped-call]
        *(tensor.shape for tensor in tensors)
    )
    return [tensor.expand(shape) for tensor in tensors]


def _joined_index(indices: Sequence[Tensor | None], sizes: Sequence[int]) -> Tensor:
    """One position in the joined dimensions for index tensors of several dimensions.

    Negative positions count from the end. If one lies outside of its dimension, then so does the result.
    """
    result: Any = 0
    is_inside: Any = None
    total: Any = 1
    for index, size in zip(_broadcast([index for index in indices if index is not None]), sizes):
        index = index.to(torch.int64)
        index = torch.where(index < 0, index + size, index)
        inside = (index >= 0) & (index < size)
        result = result * size + index
        is_inside = inside if is_inside is None else is_inside & inside
        total = total * size
    return torch.where(is_inside, result, result * 0 + total)


def _with_indexed_first(x: Tensor, dims: Sequence[int]) -> Tensor:
    """The tensor with the dimensions that are indexed joined, as the first one."""
    rest = [dim for dim in range(x.dim()) if dim not in dims]
    if [*dims, *rest] != list(range(x.dim())):
        x = x.permute([*dims, *rest])
    return x.flatten(0, len(dims) - 1) if len(dims) > 1 else x


def _split_mask(indices: Sequence[Tensor | None]) -> bool:
    return any(index is not None and index.dtype in (torch.bool, torch.uint8) for index in indices)


def _index(x: Tensor, indices: Sequence[Tensor | None]) -> Any:
    """Returns NotImplemented for one index tensor, which torch-mlir supports, and for masks."""
    dims = [dim for dim, index in enumerate(indices) if index is not None]
    if _split_mask(indices) or len(dims) < 2:
        return NotImplemented
    position = _joined_index([indices[dim] for dim in dims], [x.shape[dim] for dim in dims])
    first, last = dims[0], dims[-1]
    if dims == list(range(first, last + 1)):
        return aten.index.Tensor(x.flatten(first, last), [None] * first + [position])
    return aten.index.Tensor(_with_indexed_first(x, dims), [position])


def _gather(x: Tensor, dim: int, index: Tensor, *, sparse_grad: bool = False) -> Any:
    if x.dim() == 0:
        return x.expand(index.shape).clone()
    if index.dim() == 0:
        return x.index_select(0, index.reshape(1)).squeeze(0)
    if any(statically_known_true(size == 0) for size in index.shape):
        return x.new_zeros(index.shape)
    return NotImplemented


def _take(x: Tensor, index: Tensor) -> Any:
    index = torch.where(index < 0, index + x.numel(), index)
    return aten.index.Tensor(x.reshape(-1), [index])


def _index_select(x: Tensor, dim: int, index: Tensor) -> Any:
    if x.dim() == 0:
        return (
            x.expand(index.reshape(-1).shape).squeeze(0)
            if index.dim() == 0
            else x.expand(1)[:1].squeeze(0)
        )
    if index.dim() == 0:
        return aten.index.Tensor(x, [None] * (dim % x.dim()) + [index.reshape(1)])
    return NotImplemented


class _Writes:
    """Writes of values along the last dimension, and the places that they hit.

    Attributes:
        hit: [..., places, writes].
        values: [..., 1, writes].
    """

    def __init__(self, index: Tensor, values: Tensor, size: int) -> None:
        places = _places(size, index)
        self.hit = index.unsqueeze(-2) == places.unsqueeze(-1)
        self.values = values.unsqueeze(-2)

    def chosen(self, otherwise: Any) -> Tensor:
        """The values that hit a place, and another value for writes that do not."""
        other = torch.full((), otherwise, dtype=self.values.dtype, device=self.values.device)
        return torch.where(self.hit, self.values, other)

    def any(self) -> Tensor:
        return self.hit.any(-1)

    def count(self) -> Tensor:
        return self.hit.to(torch.int32).sum(-1, dtype=torch.int32)

    def total(self) -> Tensor:
        return self.chosen(0).sum(-1, dtype=self.values.dtype)

    def last(self) -> Tensor:
        """The value of the last write to each place."""
        numbers = torch.arange(1, self.hit.shape[-1] + 1, dtype=torch.int32, device=self.hit.device)
        last = torch.where(self.hit, numbers, 0).amax([-1], True)
        zero = torch.zeros((), dtype=self.values.dtype, device=self.values.device)
        return torch.where(last == numbers, self.values, zero).sum(-1, dtype=self.values.dtype)


def _reduced(x: Tensor, writes: _Writes, reduce: str, include_self: bool) -> Tensor:
    """The elements of x after writes of one kind of reduction."""
    if statically_known_true(writes.hit.shape[-1] == 0):
        return x.clone()
    if reduce == "replace":
        return torch.where(writes.any(), writes.last(), x)
    if reduce in ("sum", "add"):
        result = writes.total()
        result = result + x if include_self else result
    elif reduce in ("prod", "multiply"):
        result = writes.chosen(1).prod(-1)
        result = result * x if include_self else result
    elif reduce == "mean":
        count, result = writes.count(), writes.total()
        count, result = (
            (count + 1, result + x) if include_self else (torch.clamp(count, min=1), result)
        )
        if x.dtype.is_floating_point:
            result = result / count
        else:
            result = torch.div(result, count, rounding_mode="floor")
    else:
        is_max = reduce == "amax"
        kind: Any = torch.finfo(x.dtype) if x.dtype.is_floating_point else torch.iinfo(x.dtype)
        highest = math.inf if x.dtype.is_floating_point else kind.max
        lowest = -math.inf if x.dtype.is_floating_point else kind.min
        chosen = writes.chosen(lowest if is_max else highest)
        result = chosen.amax(-1) if is_max else chosen.amin(-1)
        if include_self:
            result = torch.maximum(result, x) if is_max else torch.minimum(result, x)
    return torch.where(writes.any(), result.to(x.dtype), x)


def _as_numbers(function: Callable[..., Any]) -> Callable[..., Any]:
    """Lets a rule compute booleans in integers."""

    def rule(x: Tensor, *args: Any, **options: Any) -> Any:
        if x.dtype != torch.bool:
            return function(x, *args, **options)
        args = tuple(
            value.to(torch.int32)
            if isinstance(value, Tensor) and value.dtype == torch.bool and number
            else value
            for number, value in enumerate(args)
        )
        return function(x.to(torch.int32), *args, **options).to(torch.bool)

    return rule


def _scatter_reduce(
    x: Tensor,
    dim: int,
    index: Tensor,
    src: Any,
    reduce: str = "replace",
    *,
    include_self: bool = True,
) -> Any:
    if x.dim() == 0:
        given = src.reshape(1) if isinstance(src, Tensor) else src
        return _scatter_reduce(
            x.reshape(1), 0, index.reshape(1), given, reduce, include_self=include_self
        ).squeeze(0)
    if index.dim() == 0:
        index = index.reshape(1)
    if isinstance(src, Tensor):
        src = src.reshape(1) if src.dim() == 0 else src
        for place in range(x.dim()):
            if not statically_known_true(src.shape[place] == index.shape[place]):
                src = src.narrow(place, 0, index.shape[place])
    else:
        src = torch.full((), src, dtype=x.dtype, device=x.device).expand(index.shape)
    if any(statically_known_true(size == 0) for size in index.shape):
        return x.clone()
    moved, where = x.movedim(dim, -1), index.movedim(dim, -1)
    writes = _Writes(where, src.to(x.dtype).movedim(dim, -1), moved.shape[-1])
    # Places outside of the index's sizes are not written.
    for place in range(moved.dim() - 1):
        missing = moved.shape[place] - where.shape[place]
        if not statically_known_true(missing == 0):
            pad = [0, 0] * (moved.dim() - place) + [0, missing]
            writes.hit = _padded(writes.hit, pad)
            writes.values = aten.constant_pad_nd(writes.values, pad, 0)
    return _reduced(moved, writes, reduce, include_self).movedim(-1, dim)


def _padded(mask: Tensor, pad: list[Any]) -> Any:
    return aten.constant_pad_nd(mask.to(torch.int32), pad, 0) > 0


def _scatter(x: Tensor, dim: int, index: Tensor, src: Any) -> Any:
    return _scatter_reduce(x, dim, index, src)


def _scatter_with(x: Tensor, dim: int, index: Tensor, src: Any, *, reduce: str) -> Any:
    return _scatter_reduce(x, dim, index, src, reduce)


def _scatter_add(x: Tensor, dim: int, index: Tensor, src: Tensor) -> Any:
    return _scatter_reduce(x, dim, index, src, "sum")


def _index_reduce(
    x: Tensor, dim: int, index: Tensor, source: Tensor, reduce: str, *, include_self: bool = True
) -> Tensor:
    """Writes of whole slices; `index` has one dimension."""
    if x.dim() == 0:
        result = _index_reduce(
            x.reshape(1), 0, index.reshape(1), source.reshape(1), reduce, include_self=include_self
        )
        return result.squeeze(0)
    if source.dim() < x.dim():
        source = source.reshape([1] * (x.dim() - source.dim()) + list(source.shape))
    moved, values = x.movedim(dim, -1), source.to(x.dtype).movedim(dim, -1)
    writes = _Writes(index.reshape(-1), values, moved.shape[-1])
    return _reduced(moved, writes, reduce, include_self).movedim(-1, dim)


def _index_add(x: Tensor, dim: int, index: Tensor, source: Tensor, *, alpha: Any = 1) -> Tensor:
    return _index_reduce(x, dim, index, source if alpha == 1 else source * alpha, "sum")


def _index_copy(x: Tensor, dim: int, index: Tensor, source: Tensor) -> Tensor:
    return _index_reduce(x, dim, index, source, "replace")


def _index_fill(x: Tensor, dim: int, index: Tensor, value: Any) -> Tensor:
    if x.dim() == 0:
        return _index_fill(x.reshape(1), 0, index, value).squeeze(0)
    places = _places(x.shape[dim], x)
    hit = (index.reshape(-1) == places.unsqueeze(-1)).any(-1)
    hit = hit.view([-1] + [1] * (x.dim() - 1 - dim % x.dim()))
    if not isinstance(value, Tensor):
        value = torch.full((), value, dtype=x.dtype, device=x.device)
    return torch.where(hit, value.to(x.dtype), x)


def _index_put(
    x: Tensor, indices: Sequence[Tensor | None], values: Tensor, accumulate: bool = False
) -> Any:
    dims = [dim for dim, index in enumerate(indices) if index is not None]
    if _split_mask(indices):
        (mask,) = [index for index in indices if index is not None] if len(dims) == 1 else (None,)
        # A dimension of the values that counts the mask's places has a size that depends on data.
        if mask is None or values.dim() > x.dim() - mask.dim() or dims != [0]:
            return NotImplemented
        mask = mask.reshape(list(mask.shape) + [1] * (x.dim() - mask.dim()))
        return torch.where(mask, x + values if accumulate else values, x)
    index = _joined_index([indices[dim] for dim in dims], [x.shape[dim] for dim in dims])
    rest = [dim for dim in range(x.dim()) if dim not in dims]
    # Among the values' dimensions, the index takes the place of the first of adjacent indexed dimensions.
    before = dims[0] if dims == list(range(dims[0], dims[-1] + 1)) else 0
    sizes = [x.shape[dim] for dim in rest]
    values = values.to(x.dtype).expand([*sizes[:before], *index.shape, *sizes[before:]])
    order = [
        *range(before),
        *range(before + index.dim(), values.dim()),
        *range(before, before + index.dim()),
    ]
    values = values.permute(order)
    values = (
        values.flatten(len(rest))
        if index.dim() > 1
        else values
        if index.dim()
        else values.unsqueeze(-1)
    )
    last = x.permute([*rest, *dims])
    joined = last.flatten(len(rest)) if len(dims) > 1 else last
    writes = _Writes(index.reshape(-1), values, joined.shape[-1])
    result = _reduced(joined, writes, "sum" if accumulate else "replace", True)
    if len(dims) > 1:
        result = result.unflatten(len(rest), [x.shape[dim] for dim in dims])  # type: ignore[no-untyped-call]
    order = [*rest, *dims]
    return result.permute([order.index(dim) for dim in range(x.dim())])


def _put(x: Tensor, index: Tensor, source: Tensor, accumulate: bool = False) -> Any:
    index, source = index.reshape(-1), source.reshape(-1)
    result = _index_put(x.reshape(-1), [index], source, accumulate)
    return result.view(x.shape)


def _masked_scatter(x: Tensor, mask: Tensor, source: Tensor) -> Tensor:
    shape = torch.broadcast_shapes(x.shape, mask.shape)  # type: ignore[no-untyped-call]
    x, mask = x.expand(shape), mask.expand(shape)
    flat = mask.reshape(-1)
    number = torch.cumsum(flat.to(torch.int64), 0) - 1
    values = aten.index.Tensor(source.reshape(-1), [torch.where(flat, number, 0)])
    return torch.where(mask, values.view(shape), x)


def _diagonal_scatter(
    x: Tensor, src: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1
) -> Tensor:
    moved = x.movedim((dim1, dim2), (-2, -1))
    rows = _places(moved.shape[-2], x).unsqueeze(-1)
    columns = _places(moved.shape[-1], x)
    number = (rows if offset >= 0 else columns) + 0 * (rows + columns)
    count = src.shape[-1]
    values = aten.index.Tensor(
        src, [None] * (src.dim() - 1) + [torch.where(number < count, number, 0)]
    )
    result = torch.where(columns - rows == offset, values, moved)
    return result.movedim((-2, -1), (dim1, dim2))


def _masked_index(x: Tensor, mask: Tensor, indices: Sequence[Tensor | None], fill: Any) -> Tensor:
    indices = [
        index if index is None else torch.clamp(index, 0, size - 1)
        for index, size in zip(indices, x.shape)
    ]
    result = aten.index.Tensor(x, indices)
    return torch.where(mask, result, torch.full((), fill, dtype=x.dtype, device=x.device))


RULES: dict[Any, Callable[..., Any]] = {
    aten.index.Tensor: _index,
    aten._unsafe_index.Tensor: lambda x, indices: aten.index.Tensor(x, indices),
    aten._unsafe_masked_index.default: _masked_index,
    aten.gather.default: _gather,
    aten.take.default: _take,
    aten.index_select.default: _index_select,
    aten.scatter.src: _as_numbers(_scatter),
    aten.scatter.value: _as_numbers(_scatter),
    aten.scatter.reduce: _as_numbers(_scatter_with),
    aten.scatter.value_reduce: _as_numbers(_scatter_with),
    aten.scatter_add.default: _as_numbers(_scatter_add),
    aten.scatter_reduce.two: _as_numbers(_scatter_reduce),
    aten.index_reduce.default: _as_numbers(_index_reduce),
    aten.index_add.default: _as_numbers(_index_add),
    aten.index_copy.default: _as_numbers(_index_copy),
    aten.index_fill.int_Scalar: _index_fill,
    aten.index_fill.int_Tensor: _index_fill,
    aten.index_put.default: _as_numbers(_index_put),
    aten._unsafe_index_put.default: _as_numbers(_index_put),
    aten.put.default: _as_numbers(_put),
    aten.masked_scatter.default: _masked_scatter,
    aten.diagonal_scatter.default: _diagonal_scatter,
}
