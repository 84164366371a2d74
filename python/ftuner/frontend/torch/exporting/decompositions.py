"""Decompositions of PyTorch's operators for torch-mlir's importer.

torch-mlir lowers most operators of ATen itself, and some of them better than PyTorch
decomposes them: `linear` keeps its batch, `layer_norm` and `softmax` have lowerings of
their own. PyTorch's decompositions serve the rest, with a few of this module where
neither gives operators that linalg on tensors has.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from .decompose import (
    contractions,
    convolutions,
    extremes,
    indexing,
    moves,
    others,
    pointwise,
    scans,
    special,
)

aten = torch.ops.aten

#: Operators that torch-mlir lowers well as they are.
_KEPT = (
    aten.linear,
    aten.matmul,
    aten.baddbmm,
    aten.einsum,
    aten.conv1d,
    aten.conv2d,
    aten.conv3d,
    aten.layer_norm,
    aten.softmax,
    aten.log_softmax,
    aten.silu,
    aten.squeeze,
    aten.pad,
    aten.max_pool1d,
    aten.max_pool2d,
    aten.max_pool3d,
    aten.avg_pool1d,
)


def table() -> dict[Any, Callable[..., Any]]:
    """The decompositions for `ExportedProgram.run_decompositions`."""
    kept = {
        getattr(packet, overload)
        for packet in _KEPT
        for overload in packet.overloads()  # type: ignore[no-untyped-call]
    }
    defaults = torch.export.default_decompositions()
    result = {
        operator: decomposition
        for operator, decomposition in defaults.items()  # type: ignore[no-untyped-call]
        if operator not in kept
    }
    result[aten._native_batch_norm_legit_no_training.default] = _batch_norm
    result |= torch._decomp.get_decompositions([aten.upsample_bilinear2d.vec])
    result[aten.var.correction] = _var
    result[aten.var_mean.correction] = _var_mean
    result[aten.std.correction] = _std
    result[aten.group_norm.default] = _group_norm
    result[aten.native_group_norm.default] = _native_group_norm
    result[aten._native_batch_norm_legit.no_stats] = _norm_of_batch
    result[aten._native_batch_norm_legit_functional.default] = _norm_with_statistics
    result[aten.squeeze.dims] = _squeeze
    result[aten.squeeze.dim] = _squeeze_one
    result[aten.unbind.int] = _unbind
    result[aten.scaled_dot_product_attention.default] = attention
    for module in (
        contractions,
        convolutions,
        extremes,
        indexing,
        moves,
        others,
        pointwise,
        scans,
        special,
    ):
        result |= module.RULES
    return result


#: Operators that IREE computes as they are.
_OF_IREE = (aten.scaled_dot_product_attention.default, aten.cumsum.default)


def table_for_iree(attention_as_products: bool) -> dict[Any, Callable[..., Any]]:
    """The decompositions of a program that IREE compiles, which keeps what IREE has itself."""
    result = table()
    for operator in _OF_IREE:
        del result[operator]
    if attention_as_products:
        result[aten.scaled_dot_product_attention.default] = _attention_for_iree
    return result


def _squeeze_one(x: Tensor, dim: int) -> Any:
    """A dimension that was traced as another size than 1 stays."""
    size = x.shape[dim] if x.dim() else 0
    return NotImplemented if isinstance(size, int) and size == 1 else x.clone()


def _squeeze(x: Tensor, dims: list[int]) -> Tensor:
    """One dimension after the other, the last one first."""
    if x.dim() == 0:
        return x.clone()
    for dim in sorted((dim % x.dim() for dim in dims), reverse=True):
        x = x.squeeze(dim)
    return x


def _unbind(x: Tensor, dim: int = 0) -> list[Tensor]:
    return [x.select(dim, place) for place in range(x.shape[dim])]


def _batch_norm(
    x: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor,
    running_var: Tensor,
    momentum: float,
    eps: float,
) -> tuple[Tensor, Tensor, Tensor]:
    """A scale and an addend for each channel; the statistics of a batch stay empty."""
    scale = torch.rsqrt(running_var + eps)
    if weight is not None:
        scale = scale * weight
    addend = -running_mean * scale
    if bias is not None:
        addend = addend + bias
    shape = [-1] + [1] * (x.dim() - 2)
    empty = torch.zeros(0, dtype=scale.dtype, device=x.device)
    y = x * scale.view(shape) + addend.view(shape)
    return y.to(x.dtype), empty, empty


def _var_mean(
    x: Tensor,
    dim: Sequence[int] | None = None,
    *,
    correction: float | None = None,
    keepdim: bool = False,
) -> Any:
    """Variance, as the mean of squares of deviations, and mean, in f32: torch-mlir takes f64.

    NotImplemented for complex numbers.
    """
    if x.dim() == 0:
        return _var_mean(x.reshape(1), correction=correction)
    if x.dtype.is_complex:
        return NotImplemented
    dims = [place % x.dim() for place in dim] if dim else list(range(x.dim()))
    wide = x.float() if x.element_size() < 4 else x
    if any(isinstance(x.shape[place], int) and x.shape[place] == 0 for place in dims):
        nothing = torch.full_like(wide.sum(dims, keepdim=keepdim), math.nan).to(x.dtype)
        return nothing, nothing
    count = math.prod(x.shape[place] for place in dims)
    correction = 1 if correction is None else correction
    mean = wide.mean(dims, keepdim=True)
    deviation = wide - mean
    squares = deviation * deviation
    if not correction:
        variance = squares.mean(dims, keepdim=keepdim)
    elif isinstance(count, int):
        rest = max(count - correction, 0)
        variance = squares.mean(dims, keepdim=keepdim) * (count / rest if rest else math.inf)
    else:
        rest = torch.clamp(
            torch.full((), count, dtype=wide.dtype, device=x.device) - correction, min=0
        )
        variance = squares.sum(dims, keepdim=keepdim) / rest
    if not keepdim:
        mean = mean.squeeze(dims)
    return variance.to(x.dtype), mean.to(x.dtype)


def _var(x: Tensor, dim: Sequence[int] | None = None, **options: Any) -> Any:
    found = _var_mean(x, dim, **options)
    return found if found is NotImplemented else found[0]


def _std(x: Tensor, dim: Sequence[int] | None = None, **options: Any) -> Any:
    found = _var_mean(x, dim, **options)
    return found if found is NotImplemented else found[0].sqrt()


def _normalized(x: Tensor, dims: list[int], eps: float) -> tuple[Tensor, Tensor, Tensor]:
    """A tensor scaled to mean 0 and variance 1 over some dimensions, in f32; mean and 1 / deviation."""
    wide = x.float() if x.element_size() < 4 else x
    variance, mean = _var_mean(wide, dims, correction=0, keepdim=True)
    scale = torch.rsqrt(variance + eps)
    return (wide - mean) * scale, mean, scale


def _affine(x: Tensor, weight: Tensor | None, bias: Tensor | None) -> Tensor:
    """A scale and an addend for each channel, dimension 1."""
    shape = [-1] + [1] * (x.dim() - 2)
    if weight is not None:
        x = x * weight.view(shape)
    if bias is not None:
        x = x + bias.view(shape)
    return x


def _group_norm(
    x: Tensor,
    num_groups: int,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
    cudnn_enabled: bool = True,
) -> Tensor:
    if any(isinstance(size, int) and size == 0 for size in x.shape):
        return x.clone()  # No element tells how many a group has.
    grouped = x.reshape(x.shape[0], num_groups, -1)
    y = _normalized(grouped, [2], eps)[0].view(x.shape)
    return _affine(y, weight, bias).to(x.dtype)


def _native_group_norm(
    x: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    batch: Any,
    channels: Any,
    size: Any,
    num_groups: int,
    eps: float,
) -> tuple[Tensor, Tensor, Tensor]:
    """The norm, with the mean and 1 / deviation of each group; groups without elements have NaN."""
    grouped = x.reshape(batch, num_groups, channels // num_groups * size)
    y, mean, scale = _normalized(grouped, [2], eps)
    y = _affine(y.view(x.shape), weight, bias).to(x.dtype)
    return y, mean.squeeze(2).to(x.dtype), scale.squeeze(2).to(x.dtype)


def _norm_of_batch(
    x: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    training: bool,
    momentum: float,
    eps: float,
) -> tuple[Tensor, Tensor, Tensor]:
    """The norm of a batch; statistics of a single image, as in instance norm, are over its last dimensions."""
    dims = [*([] if x.shape[0] == 1 else [0]), *range(2, x.dim())]
    y, mean, scale = _normalized(x, dims, eps)
    return _affine(y, weight, bias).to(x.dtype), mean.flatten(), scale.flatten()


def _norm_with_statistics(
    x: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor,
    running_var: Tensor,
    training: bool,
    momentum: float,
    eps: float,
) -> tuple[Tensor, ...]:
    """The norm of a batch, and the new values of the running statistics."""
    if not training:
        y, mean, scale = _batch_norm(x, weight, bias, running_mean, running_var, momentum, eps)
        return y, mean, scale, running_mean, running_var
    y, mean, scale = _norm_of_batch(x, weight, bias, training, momentum, eps)
    count = x.numel() // x.shape[1]
    wide = x.float() if x.element_size() < 4 else x
    dims = [0, *range(2, x.dim())]
    variance = _var_mean(wide, dims, correction=0)[0] * (count / (count - 1))
    new_mean = running_mean * (1 - momentum) + mean * momentum
    new_variance = running_var * (1 - momentum) + variance * momentum
    types = (running_mean.dtype, running_var.dtype)
    return y, mean, scale, new_mean.to(types[0]), new_variance.to(types[1])


def _attention_scale(query: Tensor, scale: float | None) -> float | Tensor:
    """The factor of scores: that of the caller, or one over the root of the number of channels."""
    if scale is not None:
        return scale
    channels: Any = query.shape[-1]  # May be a torch.SymInt.
    if isinstance(channels, int):
        return 1 / math.sqrt(channels)
    # A number would be that of the example: an unknown number of channels stays in the graph.
    count: Tensor = torch.full((), channels, dtype=torch.float32, device=query.device)
    root = count.rsqrt()
    return root.to(query.dtype)


def _masked_scores(
    query: Tensor,
    key: Tensor,
    attn_mask: Tensor | None,
    is_causal: bool,
    scale: float | None,
) -> Tensor:
    """The products of queries and keys, scaled; -inf for keys that a query does not attend to."""
    scores = torch.matmul(query, key.transpose(-2, -1)) * _attention_scale(query, scale)
    if is_causal:
        rows = torch.arange(query.shape[-2], device=query.device).unsqueeze(-1)
        attends = torch.arange(key.shape[-2], device=query.device) <= rows
        return torch.where(attends, scores, -math.inf)
    if attn_mask is None:
        return scores
    if attn_mask.dtype == torch.bool:
        return torch.where(attn_mask, scores, -math.inf)
    return scores + attn_mask


def _repeat_heads(query: Tensor, heads: Tensor) -> Tensor:
    """Repeats each head of keys or of values for its group of heads of queries."""
    return heads.repeat_interleave(query.shape[-3] // heads.shape[-3], -3)


def attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    scale: float | None = None,
    enable_gqa: bool = False,
    selects_result: bool = False,
) -> Tensor:
    """Returns two products and a softmax. A row without any key is 0, as in PyTorch.

    The softmax selects these zeros, or, with `selects_result`, the last operator does.
    """
    if enable_gqa:
        key, value = _repeat_heads(query, key), _repeat_heads(query, value)
    scores = _masked_scores(query, key, attn_mask, is_causal, scale)
    if attn_mask is None or selects_result:
        result = torch.matmul(torch.softmax(scores, -1), value)
        if attn_mask is None:
            return result
        attends = attn_mask if attn_mask.dtype == torch.bool else attn_mask != -math.inf
        return torch.where(attends.any(-1, keepdim=True), result, 0.0)
    wide = scores.float() if scores.element_size() < 4 else scores
    maximum = wide.amax(-1, keepdim=True)
    powers = (wide - maximum).exp()
    weights = powers / powers.sum(-1, keepdim=True)
    weights = torch.where(maximum == -math.inf, 0.0, weights).to(scores.dtype)
    return torch.matmul(weights, value)


def _attention_for_iree(*args: Any, **kwargs: Any) -> Tensor:
    """Calls `attention` with `selects_result`.

    IREE does not compile for CUDA a softmax that ends in a select.
    """
    return attention(*args, selects_result=True, **kwargs)
