"""Operators on shapes, distances and searches without a right rule in torch-mlir."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

aten = torch.ops.aten


def _split_with_sizes(x: Tensor, sizes: Sequence[int], dim: int = 0) -> list[Tensor]:
    begins: list[Any] = [0]
    for size in sizes[:-1]:
        begins.append(begins[-1] + size)
    return [x.narrow(dim, begin, size) for begin, size in zip(begins, sizes)]


def _as_strided(
    x: Tensor, size: Sequence[int], stride: Sequence[int], storage_offset: int | None = None
) -> Any:
    """NotImplemented for a view, whose memory has more than its elements."""
    if not x.is_contiguous() or x._base is not None:
        return NotImplemented
    place: Any = torch.full((), storage_offset or 0, dtype=torch.int64, device=x.device)
    for dim, (count, step) in enumerate(zip(size, stride)):
        shape = [1] * len(size)
        shape[dim] = -1
        place = place + (torch.arange(count, device=x.device) * step).view(shape)
    return aten.index.Tensor(x.reshape(-1), [place])


def _dist(x: Tensor, y: Tensor, p: float = 2) -> Any:
    difference = x - y
    return torch.linalg.vector_norm(difference, p, list(range(difference.dim())))


def _cdist(x: Tensor, y: Tensor, p: float, compute_mode: int | None = None) -> Any:
    """Norms of differences. As PyTorch has it, NaN stays with a norm of order 0, and is lost with an infinite one."""
    difference = x.unsqueeze(-2) - y.unsqueeze(-3)
    is_nan = difference != difference
    if p == 0:
        return torch.where(difference == 0, 0.0, torch.where(is_nan, difference, 1.0)).sum(-1)
    if p == math.inf:
        difference = torch.where(is_nan, 0.0, difference)
    return torch.linalg.vector_norm(difference, p, [-1])


def _isin(x: Tensor, tests: Tensor, *, assume_unique: bool = False, invert: bool = False) -> Tensor:
    if not tests.numel():
        return torch.full_like(x, invert, dtype=torch.bool)
    result = (x.unsqueeze(-1) == tests.reshape(-1)).any(-1)
    return torch.logical_not(result) if invert else result


def _before(places: Tensor, x: Tensor, is_right: bool, is_int32: bool) -> Tensor:
    """The number of places, in the last dimension, that lie before each value."""
    after = (
        places.unsqueeze(-2) > x.unsqueeze(-1)
        if is_right
        else places.unsqueeze(-2) >= x.unsqueeze(-1)
    )
    count = torch.logical_not(after).to(torch.int32).sum(-1, dtype=torch.int32)
    return count if is_int32 else count.to(torch.int64)


def _bucketize(
    x: Tensor, boundaries: Tensor, *, out_int32: bool = False, right: bool = False
) -> Tensor:
    return _before(
        boundaries.expand([*x.shape[:-1], boundaries.shape[0]]) if x.dim() else boundaries,
        x.reshape(x.shape if x.dim() else [1]),
        right,
        out_int32,
    ).reshape(x.shape)


def _searchsorted(
    places: Tensor,
    x: Tensor,
    *,
    out_int32: bool = False,
    right: bool = False,
    side: str | None = None,
    sorter: Tensor | None = None,
) -> Tensor:
    if sorter is not None:
        places = torch.gather(places, -1, sorter)
    is_right = right or side == "right"
    if x.dim() == 0:
        return _before(places, x.reshape(1), is_right, out_int32).squeeze(0)
    if places.dim() == 1:
        places = places.expand([*x.shape[:-1], places.shape[0]])
    return _before(places, x, is_right, out_int32)


def _searchsorted_scalar(places: Tensor, x: Any, **options: Any) -> Tensor:
    return _searchsorted(
        places, torch.full((), x, dtype=places.dtype, device=places.device), **options
    )


def _angle(x: Tensor) -> Tensor:
    wide = x if x.dtype.is_floating_point else x.to(torch.get_default_dtype())
    result = torch.where(
        wide < 0, torch.full((), math.pi, dtype=wide.dtype, device=x.device), wide * 0
    )
    result = torch.where(
        wide == math.inf, torch.zeros((), dtype=wide.dtype, device=x.device), result
    )
    return torch.where(
        wide == -math.inf, torch.full((), math.pi, dtype=wide.dtype, device=x.device), result
    )


def _softmax(x: Tensor, dim: int, dtype: torch.dtype | None = None) -> Any:
    """NotImplemented for what torch-mlir has: tensors with dimensions, in their own type."""
    if dtype is not None and dtype != x.dtype:
        return torch.softmax(x.to(dtype), dim)
    return (
        torch.exp(x - x)
        if not x.dim()
        else torch.softmax(x, dim)
        if dtype is not None
        else NotImplemented
    )


def _log_softmax(x: Tensor, dim: int, dtype: torch.dtype | None = None) -> Any:
    if dtype is not None and dtype != x.dtype:
        return torch.log_softmax(x.to(dtype), dim)
    return (
        x - x if not x.dim() else torch.log_softmax(x, dim) if dtype is not None else NotImplemented
    )


def _of_bytes(operator: Any) -> Callable[..., Any]:
    """Returns a rule that widens bytes before a reduction, since torch-mlir extends their sign."""

    def rule(x: Tensor, *places: Any, dtype: torch.dtype | None = None, **named: Any) -> Any:
        if x.dtype != torch.uint8:
            return NotImplemented
        return operator(x.to(dtype or torch.int64), *places, dtype=dtype, **named)

    return rule


def _empty_permuted(size: Sequence[int], physical_layout: Sequence[int], **options: Any) -> Tensor:
    return torch.zeros(size, dtype=options.get("dtype"), device=options.get("device"))


RULES: dict[Any, Callable[..., Any]] = {
    **{
        operator: _of_bytes(operator)
        for operator in (
            *(aten.sum.default, aten.sum.dim_IntList, aten.prod.default, aten.prod.dim_int),
            *(aten.mean.default, aten.mean.dim),
        )
    },
    aten.split_with_sizes.default: _split_with_sizes,
    aten.as_strided.default: _as_strided,
    aten.empty_permuted.default: _empty_permuted,
    aten.dist.default: _dist,
    aten._cdist_forward.default: _cdist,
    aten.isin.Tensor_Tensor: _isin,
    aten.bucketize.Tensor: _bucketize,
    aten.searchsorted.Tensor: _searchsorted,
    aten.searchsorted.Scalar: _searchsorted_scalar,
    aten.angle.default: _angle,
    aten.softmax.int: _softmax,
    aten.log_softmax.int: _log_softmax,
}
