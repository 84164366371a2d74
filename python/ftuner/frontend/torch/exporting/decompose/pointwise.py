"""Elementwise operators, with NaN, infinities and the accuracy that PyTorch has.

torch-mlir orders by comparisons that are false for NaN, compares with numbers in f64, and takes short
constants and `exp(x) - 1` in activations.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

aten = torch.ops.aten

Number = bool | int | float


def is_nan(x: Tensor) -> Tensor:
    return x != x


def maximum(x: Tensor, y: Tensor) -> Tensor:
    """The greater one; NaN if one of them is."""
    x, y = _promoted(x, y)
    greater = x > y
    return torch.where(greater | is_nan(x) if x.dtype.is_floating_point else greater, x, y)


def minimum(x: Tensor, y: Tensor) -> Tensor:
    """The smaller one; NaN if one of them is."""
    x, y = _promoted(x, y)
    less = x < y
    return torch.where(less | is_nan(x) if x.dtype.is_floating_point else less, x, y)


def _promoted(*tensors: Tensor) -> tuple[Tensor, ...]:
    """The tensors in their common type, which booleans leave for one that has an order."""
    dtype = tensors[0].dtype
    for tensor in tensors[1:]:
        dtype = torch.promote_types(dtype, tensor.dtype)
    return tuple(tensor.to(dtype) for tensor in tensors)


def _of_booleans(function: Callable[..., Tensor], on_booleans: Callable[..., Tensor]) -> Any:
    def rule(x: Tensor, y: Tensor) -> Tensor:
        return on_booleans(x, y) if x.dtype == y.dtype == torch.bool else function(x, y)

    return rule


def _fmax(x: Tensor, y: Tensor) -> Tensor:
    x, y = _promoted(x, y)
    return torch.where((x > y) | is_nan(y), x, y) if x.dtype.is_floating_point else maximum(x, y)


def _fmin(x: Tensor, y: Tensor) -> Tensor:
    x, y = _promoted(x, y)
    return torch.where((x < y) | is_nan(y), x, y) if x.dtype.is_floating_point else minimum(x, y)


def number(value: Number, dtype: torch.dtype, device: torch.device) -> Tensor:
    """A number as a tensor without dimensions."""
    return torch.full((), value, dtype=dtype, device=device)


def clamp(x: Tensor, min: Number | None = None, max: Number | None = None) -> Tensor:
    bounds = [bound for bound in (min, max) if bound is not None]
    dtype = x.dtype
    for bound in bounds:
        dtype = torch.promote_types(dtype, torch.result_type(x, bound))
    x = x.to(dtype)
    for bound in bounds:
        if isinstance(bound, float) and math.isnan(bound):
            return torch.full_like(x, math.nan)
    if min is not None:
        lower = number(min, dtype, x.device)
        x = torch.where(x < lower, lower, x)
    if max is not None:
        upper = number(max, dtype, x.device)
        x = torch.where(x > upper, upper, x)
    return x


def _clamp_tensor(x: Tensor, min: Tensor | None = None, max: Tensor | None = None) -> Tensor:
    if min is not None:
        x = torch.maximum(x, min)
    return x if max is None else torch.minimum(x, max)


def _clamp_max(x: Tensor, max: Number) -> Tensor:
    return clamp(x, None, max)


def _clamp_max_tensor(x: Tensor, max: Tensor) -> Tensor:
    return torch.minimum(x, max)


def _comparison(operator: Any) -> Callable[[Tensor, Number], Tensor]:
    """A comparison with a number, which is rounded to the type that PyTorch compares in."""

    def rule(x: Tensor, other: Number) -> Any:
        dtype = torch.result_type(x, other)
        if isinstance(other, (torch.SymInt, torch.SymFloat)) or not dtype.is_floating_point:
            return NotImplemented
        return operator(x.to(dtype), number(other, dtype, x.device))

    return rule


def _wide(x: Tensor) -> Tensor:
    """The tensor in f32 if its type is a narrower one: what PyTorch computes activations in."""
    return x.float() if x.element_size() < 4 else x


def _in_f32(function: Callable[..., Any]) -> Callable[..., Tensor]:
    """A rule that computes in f32 and rounds once."""

    def rule(x: Tensor, *args: Any, **options: Any) -> Tensor:
        result: Tensor = function(_wide(x), *args, **options)
        return result.to(x.dtype)

    return rule


def _hardsigmoid(x: Tensor) -> Tensor:
    return clamp(x + 3, 0, 6) / 6


def _hardswish(x: Tensor) -> Tensor:
    return x * clamp(x + 3, 0, 6) / 6


def _leaky_relu(x: Tensor, negative_slope: float = 0.01) -> Tensor:
    return torch.where(x > 0, x, x * negative_slope)


def _elu(x: Tensor, alpha: float = 1, scale: float = 1, input_scale: float = 1) -> Tensor:
    grown = torch.expm1(x if input_scale == 1 else x * input_scale) * (alpha * scale)
    return torch.where(x > 0, x if scale == 1 else x * scale, grown)


def _gelu(x: Tensor, *, approximate: str = "none") -> Any:
    if approximate != "tanh":
        return 0.5 * x * (1 + torch.erf(x * math.sqrt(0.5)))
    inner = math.sqrt(2 / math.pi) * (x + 0.044715 * (x * x * x))
    return 0.5 * x * (1 + torch.tanh(inner))


def _softplus(x: Tensor, beta: float = 1, threshold: float = 20) -> Tensor:
    scaled = x * beta
    return torch.where(scaled > threshold, x, torch.log1p(torch.exp(scaled)) / beta)


def _mish(x: Tensor) -> Tensor:
    return x * torch.tanh(_softplus(x))


def _log_sigmoid(x: Tensor) -> tuple[Tensor, Tensor]:
    negative_part = torch.where(x > 0, 0.0, x)
    result = negative_part - torch.log1p(torch.exp(-torch.abs(x)))
    return result.to(x.dtype), torch.zeros(0, dtype=x.dtype, device=x.device)


def _softshrink(x: Tensor, lambd: float = 0.5) -> Tensor:
    return torch.where(x > lambd, x - lambd, torch.where(x < -lambd, x + lambd, x * 0))


def _hardshrink(x: Tensor, lambd: float = 0.5) -> Tensor:
    return torch.where((x >= -lambd) & (x <= lambd), 0.0, x)


def _threshold(x: Tensor, threshold: float, value: float) -> Tensor:
    return torch.where(x <= threshold, number(value, x.dtype, x.device), x)


def _prelu(x: Tensor, weight: Tensor) -> Tensor:
    return torch.where(x > 0, x, x * weight)


def _hypot(x: Tensor, y: Tensor) -> Tensor:
    """sqrt(x² + y²) without overflow; infinite if one of them is, even beside NaN."""
    x, y = (tensor.abs() for tensor in _promoted(x, y))
    greater, less = maximum(x, y), minimum(x, y)
    ratio = less / torch.where(greater == 0, 1.0, greater)
    result = greater * torch.sqrt(1 + ratio * ratio)
    return torch.where((x == math.inf) | (y == math.inf), math.inf, result)


def _asinh(x: Tensor) -> Tensor:
    """Avoids a difference of large numbers, and the overflow of a square."""
    x = x.to(torch.get_default_dtype()) if not x.dtype.is_floating_point else x
    wide = _wide(x)
    size = wide.abs()
    small = torch.where(size < 1e8, size, 0.0)
    grown = torch.log1p(small + small * small / (1 + torch.sqrt(1 + small * small)))
    result = torch.where(size < 1e8, grown, torch.log(size) + math.log(2))
    return torch.where(wide < 0, -result, result).to(x.dtype)


def _signbit(x: Tensor) -> Tensor:
    if not x.dtype.is_floating_point:
        return x < 0 if x.dtype != torch.bool else torch.zeros_like(x)
    return (x < 0) | ((x == 0) & (torch.reciprocal(x) < 0))


def _copysign(x: Tensor, y: Tensor | Number) -> Tensor:
    dtype = torch.result_type(x, y)
    dtype = dtype if dtype.is_floating_point else torch.get_default_dtype()
    size = x.to(dtype).abs()
    if isinstance(y, Tensor):
        return torch.where(_signbit(y), -size, size)
    return -size if math.copysign(1, y) < 0 else size.clone()


def _reciprocal(x: Tensor) -> Tensor:
    """Omits the check for zeros that torch-mlir adds."""
    dtype = x.dtype if x.dtype.is_floating_point else torch.get_default_dtype()
    return number(1, dtype, x.device) / x


def _fmod(x: Tensor, y: Tensor | Number) -> Any:
    """The remainder with the sign of `x`, exact at any quotient. NotImplemented for integers."""
    dtype = torch.result_type(x, y)
    if not dtype.is_floating_point:
        return NotImplemented
    x = x.to(dtype)
    y = y.to(dtype) if isinstance(y, Tensor) else number(y, dtype, x.device)
    rest = torch.remainder(x.abs(), y.abs())
    return torch.where(_signbit(x), -rest, rest)


def _floor_divide(x: Tensor, y: Tensor | Number) -> Any:
    """The floor of the exact quotient, as PyTorch has it: NaN for an infinite `x`. NotImplemented for integers."""
    dtype = torch.result_type(x, y)
    if not dtype.is_floating_point:
        return NotImplemented
    x = _wide(x.to(dtype))
    y = _wide(y.to(dtype)) if isinstance(y, Tensor) else number(y, x.dtype, x.device)
    rest = torch.fmod(x, y)
    quotient = (x - rest) / y
    quotient = torch.where((rest != 0) & ((rest < 0) != (y < 0)), quotient - 1, quotient)
    # The quotient is an integer, but for its rounding.
    floor = torch.floor(quotient)
    result = torch.where(quotient - floor > 0.5, floor + 1, floor)
    result = torch.where(
        quotient == 0,
        torch.copysign(torch.zeros_like(x), x) / torch.where(y < 0, -1.0, 1.0),
        result,
    )
    return torch.where(y == 0, x / y, result).to(dtype)


def _divide(x: Tensor, y: Tensor | Number, *, rounding_mode: str | None = None) -> Any:
    """NotImplemented unless the quotient's floor is taken."""
    return _floor_divide(x, y) if rounding_mode == "floor" else NotImplemented


def _isinf(x: Tensor) -> Tensor:
    if not x.dtype.is_floating_point:
        return torch.zeros_like(x, dtype=torch.bool)
    return x.abs() == math.inf


def _nan_to_num(
    x: Tensor, nan: float | None = None, posinf: float | None = None, neginf: float | None = None
) -> Tensor:
    if not x.dtype.is_floating_point:
        return x.clone()
    largest = torch.finfo(x.dtype).max
    high = largest if posinf is None else posinf
    low = -largest if neginf is None else neginf
    result = torch.where(is_nan(x), number(nan or 0.0, x.dtype, x.device), x)
    result = torch.where(x == math.inf, number(high, x.dtype, x.device), result)
    return torch.where(x == -math.inf, number(low, x.dtype, x.device), result)


def _rules() -> dict[Any, Callable[..., Any]]:
    rules: dict[Any, Callable[..., Any]] = {
        aten.maximum.default: _of_booleans(maximum, torch.logical_or),
        aten.minimum.default: _of_booleans(minimum, torch.logical_and),
        aten.fmax.default: _of_booleans(_fmax, torch.logical_or),
        aten.fmin.default: _of_booleans(_fmin, torch.logical_and),
        aten.clamp.default: clamp,
        aten.clamp.Tensor: _clamp_tensor,
        aten.clamp_min.default: clamp,
        aten.clamp_min.Tensor: _clamp_tensor,
        aten.clamp_max.default: _clamp_max,
        aten.clamp_max.Tensor: _clamp_max_tensor,
        aten.hardtanh.default: lambda x, min_val=-1, max_val=1: clamp(x, min_val, max_val),
        aten.relu6.default: lambda x: clamp(x, 0, 6),
        aten.log_sigmoid_forward.default: _log_sigmoid,
        aten.threshold.default: _threshold,
        aten.hardshrink.default: _hardshrink,
        aten.softshrink.default: _softshrink,
        aten.hypot.default: _hypot,
        aten.signbit.default: _signbit,
        aten.asinh.default: _asinh,
        aten.copysign.Tensor: _copysign,
        aten.copysign.Scalar: _copysign,
        aten.isinf.default: _isinf,
        aten.reciprocal.default: _reciprocal,
        aten.fmod.Tensor: _fmod,
        aten.fmod.Scalar: _fmod,
        aten.floor_divide.default: _floor_divide,
        aten.div.Tensor_mode: _divide,
        aten.div.Scalar_mode: _divide,
        aten.nan_to_num.default: _nan_to_num,
    }
    activations: dict[Any, Callable[..., Any]] = {
        aten.hardsigmoid.default: _hardsigmoid,
        aten.hardswish.default: _hardswish,
        aten.leaky_relu.default: _leaky_relu,
        aten.elu.default: _elu,
        aten.gelu.default: _gelu,
        aten.softplus.default: _softplus,
        aten.mish.default: _mish,
        aten._prelu_kernel.default: _prelu,
    }
    for operator, rule in activations.items():
        rules[operator] = _in_f32(rule)
    for name in ("lt", "le", "gt", "ge", "eq", "ne"):
        packet = getattr(aten, name)
        rules[packet.Scalar] = _comparison(packet.Tensor)
    return rules


RULES = _rules()
