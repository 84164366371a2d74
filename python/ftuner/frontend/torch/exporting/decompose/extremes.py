"""Positions of extremes as PyTorch defines them: the first extreme, or the first NaN."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

aten = torch.ops.aten

#: A position after every position of a dimension.
_NOWHERE = 2**31 - 1


def _extreme(x: Tensor, dim: int, is_max: bool) -> Tensor:
    """The extreme along a dimension, which is kept; NaN if any element is NaN."""
    if x.dtype == torch.bool:
        return _extreme(x.to(torch.int32), dim, is_max).to(torch.bool)
    return (torch.amax if is_max else torch.amin)(x, [dim], True)


def _position(x: Tensor, dim: int, extreme: Tensor) -> Tensor:
    """The first position of an extreme along a dimension, which is kept."""
    hit = x == extreme
    if x.dtype.is_floating_point:
        hit = hit | (x != x)
    places = torch.arange(x.shape[dim], dtype=torch.int32, device=x.device)
    places = places.view([-1] + [1] * (x.dim() - 1 - dim % x.dim()))
    return torch.where(hit, places, _NOWHERE).amin([dim], True).to(torch.int64)


def _position_rule(is_max: bool) -> Callable[..., Any]:
    def rule(x: Tensor, dim: int | None = None, keepdim: bool = False) -> Tensor:
        flat, place = (x, dim) if dim is not None else (x.reshape(-1), 0)
        if flat.dim() == 0:
            return torch.zeros((), dtype=torch.int64, device=x.device)
        result = _position(flat, place, _extreme(flat, place, is_max))
        if dim is None:
            return result.view([1] * x.dim() if keepdim else [])
        return result if keepdim else result.squeeze(dim)

    return rule


def _extreme_rule(is_max: bool) -> Callable[..., Any]:
    def rule(x: Tensor, dim: int, keepdim: bool = False) -> tuple[Tensor, Tensor]:
        if x.dim() == 0:
            return x.clone(), torch.zeros((), dtype=torch.int64, device=x.device)
        value = _extreme(x, dim, is_max)
        position = _position(x, dim, value)
        return (value, position) if keepdim else (value.squeeze(dim), position.squeeze(dim))

    return rule


def _of_all(is_max: bool) -> Callable[..., Any]:
    def rule(x: Tensor) -> Any:
        if x.dtype != torch.bool:
            return NotImplemented
        return (x.any if is_max else x.all)()

    return rule


def _amax(is_max: bool) -> Callable[..., Any]:
    def rule(x: Tensor, dim: list[int] | None = None, keepdim: bool = False) -> Any:
        if x.dim() == 0:
            return x.clone()
        if x.dtype == torch.bool:
            wide = x.to(torch.int32)
            return (torch.amax if is_max else torch.amin)(wide, dim or [], keepdim).to(torch.bool)
        if not dim:
            return (torch.amax if is_max else torch.amin)(x, list(range(x.dim())), keepdim)
        return NotImplemented

    return rule


def _aminmax(x: Tensor, *, dim: int | None = None, keepdim: bool = False) -> tuple[Tensor, Tensor]:
    dims = list(range(x.dim())) if dim is None else [dim]
    return torch.amin(x, dims, keepdim), torch.amax(x, dims, keepdim)


RULES: dict[Any, Callable[..., Any]] = {
    aten.argmax.default: _position_rule(True),
    aten.argmin.default: _position_rule(False),
    aten.max.dim: _extreme_rule(True),
    aten.min.dim: _extreme_rule(False),
    aten.max.default: _of_all(True),
    aten.min.default: _of_all(False),
    aten.amax.default: _amax(True),
    aten.amin.default: _amax(False),
    aten.aminmax.default: _aminmax,
}
