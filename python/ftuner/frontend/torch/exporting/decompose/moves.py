"""Operators that move elements: pads that repeat them, rotations, and copies of views."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

aten = torch.ops.aten


def _pad(x: Tensor, pad: Sequence[Any], mode: str = "constant", value: float | None = None) -> Any:
    if mode == "constant":
        return _constant_pad(x, pad, 0.0 if value is None else value)
    return _repeated(x, pad, mode)


def _constant_pad(x: Tensor, pad: Sequence[Any], value: Any = 0) -> Any:
    """Takes away what negative pads say, and then pads; NotImplemented without a negative pad."""
    if not any(isinstance(size, int) and size < 0 for size in pad):
        return NotImplemented
    for place in range(len(pad) // 2):
        dim = x.dim() - 1 - place
        before, after = (
            -size if isinstance(size, int) and size < 0 else 0
            for size in pad[2 * place : 2 * place + 2]
        )
        if before or after:
            x = aten.slice.Tensor(x, dim, before, x.shape[dim] - after)
    kept = [0 if isinstance(size, int) and size < 0 else size for size in pad]
    return x.clone() if _are_zero(*kept) else aten.constant_pad_nd(x, kept, value)


def _repeated(x: Tensor, pad: Sequence[Any], mode: str) -> Tensor:
    """One read at places of all dimensions from the first to the last one that is padded."""
    pads = {
        x.dim() - 1 - place: (pad[2 * place], pad[2 * place + 1]) for place in range(len(pad) // 2)
    }
    padded = [dim for dim, ends in pads.items() if not _are_zero(*ends)]
    if not padded:
        return x.clone()
    first, last = min(padded), max(padded)
    indices: list[Tensor | None] = [None] * first
    sizes = list(x.shape)
    for dim in range(first, last + 1):
        before, after = pads[dim]
        cut_before, cut_after = _greater(-before, 0), _greater(-after, 0)
        if mode == "circular" and not _are_zero(cut_before, cut_after):
            x = aten.slice.Tensor(x, dim, cut_before, x.shape[dim] - cut_after)
            before, after = _greater(before, 0), _greater(after, 0)
        sizes[dim] = before + x.shape[dim] + after
        places = _inside(torch.arange(sizes[dim], device=x.device) - before, x.shape[dim], mode)
        indices.append(places.view([-1] + [1] * (last - dim)))
    if any(_are_zero(size) for size in x.shape):
        return x.new_zeros(sizes)
    result: Tensor = aten.index.Tensor(x, indices)
    return result


def _are_zero(*numbers: Any) -> bool:
    return all(isinstance(number, int) and number == 0 for number in numbers)


def _greater(x: Any, y: Any) -> Any:
    """The greater one of two sizes."""
    return torch.sym_max(x, y)  # type: ignore[no-untyped-call]


def _inside(place: Tensor, size: Any, mode: str) -> Tensor:
    """The places whose elements stand at places beyond the ends."""
    if mode == "replicate":
        return torch.clamp(place, 0, size - 1)
    if mode == "circular":
        place = torch.where(place < 0, place + size, place)
        return torch.where(place >= size, place - size, place)
    reflected: Tensor = (size - 1) - ((size - 1) - place.abs()).abs()
    return reflected


def _of_mode(mode: str) -> Callable[[Tensor, Sequence[Any]], Tensor]:
    return lambda x, padding: _repeated(x, padding, mode)


def _roll(x: Tensor, shifts: Any, dims: Sequence[int] = ()) -> Tensor:
    if not dims:
        return _roll(x.reshape(-1), shifts, [0]).view(x.shape)
    for shift, dim in zip(shifts, dims):
        size = x.shape[dim]
        shift = shift % _greater(size, 1)
        first = size - shift
        x = torch.cat(
            [aten.slice.Tensor(x, dim, first, size), aten.slice.Tensor(x, dim, 0, first)], dim
        )
    return x.clone()


def _copy_of(operator: Any) -> Callable[..., Any]:
    """A rule for an operator that copies a view."""

    def rule(*args: Any, **options: Any) -> Any:
        found = operator(*args, **options)
        return (
            [part.clone() for part in found] if isinstance(found, (list, tuple)) else found.clone()
        )

    return rule


#: Views that PyTorch has an operator for which copies them, such as `permute_copy`.
_VIEWS = """
    as_strided alias detach diagonal expand narrow permute select slice split split_with_sizes squeeze t transpose
    unbind unfold unsqueeze view
""".split()


def _copies() -> dict[Any, Callable[..., Any]]:
    rules = {}
    for name in _VIEWS:
        view, copy = getattr(aten, name), getattr(aten, f"{name}_copy")
        for overload in set(copy.overloads()) & set(view.overloads()):
            rules[getattr(copy, overload)] = _copy_of(getattr(view, overload))
    return rules


RULES: dict[Any, Callable[..., Any]] = {
    **_copies(),
    aten.pad.default: _pad,
    aten.constant_pad_nd.default: _constant_pad,
    aten.roll.default: _roll,
    **{getattr(aten, f"reflection_pad{rank}d").default: _of_mode("reflect") for rank in (1, 2, 3)},
    **{
        getattr(aten, f"replication_pad{rank}d").default: _of_mode("replicate")
        for rank in (1, 2, 3)
    },
}
