"""Transposed convolutions as convolutions of the image itself, and forms that torch-mlir does not lower."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

aten = torch.ops.aten


def _transposed(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Sequence[int] = (1,),
    padding: Sequence[int] = (0,),
    output_padding: Sequence[int] = (0,),
    groups: int = 1,
    dilation: Sequence[int] = (1,),
) -> Any:
    """A convolution of stride 1, whose filters are those of all phases.

    The output at o = t u + f - p, of stride u and padding p, is the sum over j of x[t - j] w[f + j u]: each phase f
    has every u-th tap of the weights, which are padded with zeros to whole phases. Phases are interleaved
    afterwards. Dilated weights have zeros between their taps.
    """
    rank = weight.dim() - 2
    if x.dim() == rank + 1:
        y = _transposed(
            x.unsqueeze(0), weight, bias, stride, padding, output_padding, groups, dilation
        )
        return y.squeeze(0)
    stride, padding, output_padding, dilation = (
        [*values] * rank if len(values) == 1 else [*values]
        for values in (stride, padding, output_padding, dilation)
    )
    weight = _dilated(weight, dilation)
    dims = range(rank)
    taps = [-(-size // step) for size, step in zip(weight.shape[2:], stride)]
    y = _with_zeros_around(x, weight, stride, padding, output_padding, taps)
    filters = weight.shape[1]
    weights = _weights_of_phases(weight, groups, stride, taps)
    biases = None
    if bias is not None:
        # The filters of one group are those of its first phase, then of the next one.
        biases = torch.cat([bias.view(groups, 1, filters)] * math.prod(stride), 1).reshape(-1)
    y = _FORWARD[rank](y, weights, biases, [1] * rank, [0] * rank, [1] * rank, groups)
    if all(step == 1 for step in stride):
        parts = y
    else:
        sizes = y.shape[2:]
        y = y.reshape(x.shape[0], groups, *stride, filters, *sizes)
        places = [place for dim in dims for place in (3 + rank + dim, 2 + dim)]
        y = y.permute(0, 1, 2 + rank, *places)
        parts = y.reshape(
            x.shape[0], groups * filters, *(size * step for size, step in zip(sizes, stride))
        )
    for dim in dims:
        size = (
            (x.shape[2 + dim] - 1) * stride[dim]
            + weight.shape[2 + dim]
            - 2 * padding[dim]
            + output_padding[dim]
        )
        parts = parts.narrow(2 + dim, padding[dim], size)
    return parts


def _dilated(weight: Tensor, dilation: Sequence[int]) -> Tensor:
    for dim, step in enumerate(dilation, 2):
        size = weight.shape[dim]
        if step == 1 or size == 1:
            continue
        amounts = [0, 0] * (weight.dim() - 1 - dim) + [0, step - 1]
        wide = aten.constant_pad_nd(weight.unsqueeze(dim + 1), amounts)
        sizes = [*weight.shape[:dim], size * step, *weight.shape[dim + 1 :]]
        weight = wide.reshape(sizes).narrow(dim, 0, (size - 1) * step + 1)
    return weight


def _with_zeros_around(
    x: Tensor,
    weight: Tensor,
    stride: Sequence[int],
    padding: Sequence[int],
    output_padding: Sequence[int],
    taps: Sequence[int],
) -> Tensor:
    """The image with the zeros that taps of the first and the last outputs read; fewer elements than it has where
    outputs are cut off."""
    amounts: list[int] = []
    for dim in reversed(range(len(stride))):
        reached = weight.shape[2 + dim] + output_padding[dim] - padding[dim]
        amounts += [taps[dim] - 1, -(-reached // stride[dim]) - 1]
    return aten.constant_pad_nd(x, amounts) if any(amounts) else x


def _weights_of_phases(
    weight: Tensor, groups: int, stride: Sequence[int], taps: Sequence[int]
) -> Tensor:
    """Weights (channels, filters, windows) as (groups, phases and filters, channels of a group, reversed taps)."""
    rank, filters = len(stride), weight.shape[1]
    amounts: list[int] = []
    for dim in reversed(range(rank)):
        amounts += [0, taps[dim] * stride[dim] - weight.shape[2 + dim]]
    padded = aten.constant_pad_nd(weight, amounts) if any(amounts) else weight
    sizes = [size for pair in zip(taps, stride) for size in pair]
    # Places: group, channel, filter, then tap and phase of each dimension.
    split = padded.reshape(groups, weight.shape[0] // groups, filters, *sizes)
    of_taps, phases = ([3 + 2 * dim + more for dim in range(rank)] for more in (0, 1))
    # What is computed last is folded: the flip, of weights that lie as they are wanted.
    moved = split.permute(0, *phases, 2, 1, *of_taps)
    turned = moved.flip(list(range(3 + rank, 3 + 2 * rank)))
    return turned.reshape(-1, weight.shape[0] // groups, *taps)


def _convolution(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    transposed: bool,
    output_padding: Sequence[int],
    groups: int,
) -> Any:
    if not transposed:
        return NotImplemented
    return _transposed(x, weight, bias, stride, padding, output_padding, groups, dilation)


def _unbatched(x: Tensor, weight: Tensor, bias: Tensor | None = None, *more: Any) -> Any:
    """A convolution of one image without a dimension of images; NotImplemented for others."""
    rank = weight.dim() - 2
    if x.dim() != rank + 1:
        return NotImplemented
    return _FORWARD[rank](x.unsqueeze(0), weight, bias, *more).squeeze(0)


def _padded(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Sequence[int] = (1,),
    padding: str = "valid",
    dilation: Sequence[int] = (1,),
    groups: int = 1,
) -> Any:
    """A convolution with padding "same" or "valid"; the odd element of "same" is behind the image."""
    rank = weight.dim() - 2
    dilation = [*dilation] * rank if len(dilation) == 1 else dilation
    if padding == "same":
        amounts: list[int] = []
        for size, step in reversed([*zip(weight.shape[2:], dilation)]):
            total = (size - 1) * step
            amounts += [total // 2, total - total // 2]
        x = aten.constant_pad_nd(x, amounts) if any(amounts) else x
    if x.dim() == rank + 1:
        return _unbatched(x, weight, bias, stride, [0] * rank, dilation, groups)
    return _FORWARD[rank](x, weight, bias, stride, [0] * rank, dilation, groups)


_FORWARD = {1: aten.conv1d.default, 2: aten.conv2d.default, 3: aten.conv3d.default}

RULES: dict[Any, Callable[..., Any]] = {
    aten.conv_transpose1d.default: _transposed,
    aten.conv_transpose2d.input: _transposed,
    aten.conv_transpose3d.input: _transposed,
    aten.convolution.default: _convolution,
    **dict.fromkeys(_FORWARD.values(), _unbatched),
    aten.conv1d.padding: _padded,
    aten.conv2d.padding: _padded,
    aten.conv3d.padding: _padded,
}
