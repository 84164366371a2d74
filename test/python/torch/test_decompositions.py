"""Decompositions for export against PyTorch's own operators, and views as joins and splits."""

from __future__ import annotations

import math
from typing import Any

import pytest
import sympy

import torch
from ftuner.frontend.torch.exporting import decompositions
from ftuner.frontend.torch.exporting.decompose import scans, special
from ftuner.frontend.torch.exporting.views import Group, group_dimensions

attention = torch.nn.functional.scaled_dot_product_attention
B, T, H = (sympy.Symbol(name, integer=True, positive=True) for name in "BTH")


def masks() -> dict[str, dict[str, Any]]:
    """Arguments of attention, some of them with a row without a key."""
    some = torch.rand(2, 1, 5, 7) > 0.5
    some[0, 0, 2] = False
    return {
        "none": {},
        "boolean": {"attn_mask": some},
        "infinite": {"attn_mask": torch.where(some, 0.3, -math.inf)},
        "finite": {"attn_mask": torch.randn(5, 7)},
        "causal": {"is_causal": True},
        "scale": {"scale": 0.3},
    }


@pytest.mark.parametrize("mask", masks())
@pytest.mark.parametrize("heads", [4, 2])
def test_attention(mask: str, heads: int) -> None:
    q, k, v = (torch.randn(2, n, t, 8) for n, t in ((4, 5), (heads, 7), (heads, 7)))
    arguments = {**masks()[mask], "enable_gqa": heads != 4}
    wanted = attention(q, k, v, **arguments)
    torch.testing.assert_close(decompositions.attention(q, k, v, **arguments), wanted)


@pytest.mark.parametrize("dim", [0, 1, -1])
@pytest.mark.parametrize("dtype", [torch.float32, torch.int32, torch.bool])
def test_cumsum(dtype: torch.dtype, dim: int) -> None:
    x = (torch.randn(3, 4, 5) * 3).to(dtype)
    result = scans.RULES[torch.ops.aten.cumsum.default](x, dim)
    torch.testing.assert_close(result, x.cumsum(dim))


SPECIAL = {
    "erfc": torch.erfc, "erfcx": torch.special.erfcx, "log_ndtr": torch.special.log_ndtr, "erfinv": torch.erfinv,
    "ndtri": torch.special.ndtri, "digamma": torch.digamma, "lgamma": torch.lgamma, "i0": torch.i0,
    "i0e": torch.special.i0e, "i1": torch.special.i1, "i1e": torch.special.i1e,
    "spherical_bessel_j0": torch.special.spherical_bessel_j0,
}  # fmt: skip


@pytest.mark.parametrize("name", [*SPECIAL, "polygamma1", "polygamma2", "polygamma4"])
def test_special_functions(name: str) -> None:
    """Values against PyTorch in f64, where the largest terms that cancel decide the error near zeros."""
    if name.startswith("polygamma"):
        order = int(name[-1])
        arguments, function = (order,), lambda x: torch.polygamma(order, x)
        operator = torch.ops.aten.polygamma
    else:
        arguments, function = (), SPECIAL[name]
        operator = getattr(torch.ops.aten, name, None) or getattr(torch.ops.aten, f"special_{name}")
    rule = special.RULES[operator.default]
    bound = {"erfinv": 1.0, "ndtri": 1.0}.get(name, 9.0)
    low = 0.0 if name in ("ndtri", "digamma") or name.startswith("polygamma") else -bound
    x = torch.cat(
        [torch.linspace(low, bound, 2001), torch.tensor([-0.5, 1e-3, 30.0, math.inf, math.nan])]
    )
    result, exact = rule(*arguments, x), function(x.double())
    error = 1e-5 if name.startswith("polygamma") else 4e-6
    is_close = (result - exact).abs() <= error * exact.abs() + 1e-6
    assert (is_close | (result == exact) | (result.isnan() & exact.isnan())).all(), x[~is_close]
    assert rule(*arguments, x.double()) is NotImplemented


def test_batch_norm() -> None:
    x, mean, bias = torch.randn(3, 4, 5, 6), torch.randn(4), torch.randn(4)
    variance, weight = torch.rand(4) + 0.1, torch.randn(4)
    for w, b in ((weight, bias), (None, None)):
        wanted = torch.nn.functional.batch_norm(x, mean, variance, w, b, eps=1e-3)
        result = decompositions._batch_norm(x, w, b, mean, variance, 0.1, 1e-3)[0]
        torch.testing.assert_close(result, wanted)


@pytest.mark.parametrize("correction", [0, 1, 2.5, 20])
@pytest.mark.parametrize("dim", [None, [], [1], [0, -1]])
@pytest.mark.parametrize("keepdim", [False, True])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16])
def test_variance(
    dtype: torch.dtype, keepdim: bool, dim: list[int] | None, correction: float
) -> None:
    x = (torch.randn(3, 4, 5) + 2).to(dtype)
    options = {"correction": correction, "keepdim": keepdim}
    wanted = torch.var_mean(x, dim, **options)
    result = decompositions._var_mean(x, dim, **options)
    torch.testing.assert_close(result, wanted)
    torch.testing.assert_close(decompositions._var(x, dim, **options), wanted[0])
    torch.testing.assert_close(decompositions._std(x, dim, **options), x.std(dim, **options))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
def test_group_norm(dtype: torch.dtype) -> None:
    x, weight, bias = (torch.randn(*shape).to(dtype) for shape in ((3, 4, 5, 6), (4,), (4,)))
    for w, b in ((weight, bias), (None, None)):
        wanted = torch.nn.functional.group_norm(x, 2, w, b, eps=1e-3)
        torch.testing.assert_close(decompositions._group_norm(x, 2, w, b, 1e-3), wanted)


@pytest.mark.parametrize("images", [1, 3])
def test_norm_of_batch(images: int) -> None:
    x, weight, bias = torch.randn(images, 4, 5, 6), torch.randn(4), torch.randn(4)
    for w, b in ((weight, bias), (None, None)):
        wanted = torch.ops.aten._native_batch_norm_legit.no_stats(x, w, b, True, 0.1, 1e-3)
        result = decompositions._norm_of_batch(x, w, b, True, 0.1, 1e-3)
        torch.testing.assert_close(result, wanted)


@pytest.mark.parametrize(
    ("shape", "result", "groups"),
    [
        ((B, T, 32), (B * T, 32), [(2, 1), (1, 1)]),
        ((B * T, 32), (B, T, 4, 8), [(1, 2), (1, 2)]),
        ((B, T, 4, 8), (B, T, 32), [(1, 1), (1, 1), (2, 1)]),
        ((B, 1, T), (B, T, 1), [(1, 1), (1, 0), (1, 1), (0, 1)]),
        ((B, 6, T), (B, 2, 3 * T), [(1, 1), (2, 2)]),
        ((1, 1), (), [(1, 0), (1, 0)]),
        # Symbols do not tell: one group.
        ((B, T), (T, B), [(2, 2)]),
        ((sympy.floor(H / 2), B), (B * sympy.floor(H / 2),), [(2, 1)]),
    ],
)
def test_groups_of_dimensions(shape: Any, result: Any, groups: list[tuple[int, int]]) -> None:
    assert group_dimensions(shape, result) == [Group(*group) for group in groups]
