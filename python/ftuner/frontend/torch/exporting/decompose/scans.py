"""Running sums, products and extremes: parallel, and quadratic in the length."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

aten = torch.ops.aten


def _before(x: Tensor, neutral: Any) -> Tensor:
    """All elements up to each element of the last dimension, and a neutral one in place of the others."""
    places = torch.arange(x.shape[-1], device=x.device)
    is_before = places <= places.unsqueeze(-1)
    other = torch.full((), neutral, dtype=x.dtype, device=x.device)
    return torch.where(is_before, x.unsqueeze(-2), other)


def _summed_type(x: Tensor, dtype: torch.dtype | None) -> torch.dtype:
    if dtype is not None:
        return dtype
    return x.dtype if x.dtype.is_floating_point else torch.int64


def _cumsum(x: Tensor, dim: int, *, dtype: torch.dtype | None = None) -> Tensor:
    dtype = _summed_type(x, dtype)
    x = x.to(dtype)
    if x.dim() == 0:
        return x.clone()
    return _before(x.movedim(dim, -1), 0).sum(-1, dtype=dtype).movedim(-1, dim)


def _cumprod(x: Tensor, dim: int, *, dtype: torch.dtype | None = None) -> Tensor:
    dtype = _summed_type(x, dtype)
    x = x.to(dtype)
    if x.dim() == 0:
        return x.clone()
    return _before(x.movedim(dim, -1), 1).prod(-1).movedim(-1, dim)


def _logcumsumexp(x: Tensor, dim: int) -> Tensor:
    if x.dim() == 0:
        return x.clone()
    return torch.logsumexp(_before(x.movedim(dim, -1), -math.inf), -1).movedim(-1, dim)


def _running_extreme(is_max: bool) -> Callable[..., Any]:
    """Running extremes with the last position of each; NaN stays, with its own last position."""

    def rule(x: Tensor, dim: int) -> tuple[Tensor, Tensor]:
        if x.dim() == 0:
            return x.clone(), torch.zeros((), dtype=torch.int64, device=x.device)
        moved = x.movedim(dim, -1)
        if x.dtype == torch.bool:
            moved = moved.to(torch.int32)
        kind: Any = torch.finfo if moved.dtype.is_floating_point else torch.iinfo
        neutral = kind(moved.dtype).min if is_max else kind(moved.dtype).max
        if moved.dtype.is_floating_point:
            neutral = -math.inf if is_max else math.inf
        all_before = _before(moved, neutral)
        values = (torch.amax if is_max else torch.amin)(all_before, [-1], True)
        places = torch.arange(moved.shape[-1], dtype=torch.int32, device=x.device)
        hit = moved.unsqueeze(-2) == values
        if moved.dtype.is_floating_point:
            hit = hit | (moved != moved).unsqueeze(-2)
        hit = hit & (places <= places.unsqueeze(-1))
        last = torch.where(hit, places, -1).amax(-1).to(torch.int64)
        return values.squeeze(-1).to(x.dtype).movedim(-1, dim), last.movedim(-1, dim)

    return rule


RULES: dict[Any, Callable[..., Any]] = {
    aten.cumsum.default: _cumsum,
    aten.cumprod.default: _cumprod,
    aten.logcumsumexp.default: _logcumsumexp,
    aten.cummax.default: _running_extreme(True),
    aten.cummin.default: _running_extreme(False),
}
