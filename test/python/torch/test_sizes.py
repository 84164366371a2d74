"""Formulas of sizes in models."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch.nn.functional as F
from torch.export import Dim

import ftuner
import ftuner.torch as ft
import torch
from torch import Tensor, nn

pytest.importorskip("iree.compiler")
pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning")


class Formulas(nn.Module):
    """Several functions of the same arguments, whose results are the model's."""

    def __init__(self, *functions: Callable[..., Tensor]) -> None:
        super().__init__()
        self.functions = functions

    def forward(self, *args: Tensor) -> tuple[Tensor, ...]:
        return tuple(function(*args) for function in self.functions)


def check(model: Formulas, shapes: list[tuple[tuple[int, ...], ...]], dynamic: object) -> None:
    """Compares a model at several shapes with PyTorch in double precision."""
    examples = [tuple(torch.randn(shape) for shape in each) for each in shapes]
    exported = ft.export(model, examples[0], dynamic_shapes=dynamic)  # type: ignore[arg-type]
    run = exported.compile(device="h200", emulate=True, max_kernels=1)
    for args in examples:
        for number, (actual, exact) in enumerate(
            zip(run(*args), model(*(arg.double() for arg in args)))
        ):
            assert actual.shape == exact.shape, number
            torch.testing.assert_close(actual.double(), exact.double(), atol=1e-4, rtol=1e-4)


def test_sizes_of_results() -> None:
    """Remainders, extremes, quotients, roundings and powers of sizes, also of float factors."""
    dim = Dim.DYNAMIC
    model = Formulas(
        lambda x, y: F.pad(x, (0, 0, 0, (8 - x.shape[0] % 8) % 8)),
        lambda x, y: F.pad(x, (0, 0, 0, -x.shape[0] % 5)),
        lambda x, y: x[: min(x.shape[0], y.shape[0])] * 2,
        lambda x, y: F.pad(x, (0, 0, 0, max(x.shape[0], y.shape[0]) - x.shape[0])),
        lambda x, y: x.sum(0).expand(x.shape[0] // 2 + 1, 3) * 1.0,
        lambda x, y: x[x.shape[0] // 2 :] * 2,
        lambda x, y: x.sum() + torch.zeros(math.ceil(x.shape[0] / 3)),
        lambda x, y: x.sum() + torch.zeros(math.floor(x.shape[0] * 1.3)),
        lambda x, y: x.sum() + torch.zeros(math.ceil(x.shape[0] * 0.3) + 1),
        lambda x, y: x.sum() + torch.zeros(round(x.shape[0] * 0.5) + 2),
        lambda x, y: x.sum() + torch.zeros(x.shape[0] ** 2),
        lambda x, y: x.sum() + torch.zeros(-(-x.shape[0] // 3) + 1),
        lambda x, y: x.view(-1, x.shape[0] * 3) * 2,
    )
    shapes = [((n, 3), (m, 3)) for n, m in ((5, 7), (9, 7), (8, 8), (14, 3), (23, 40))]
    check(model, shapes, ({0: dim}, {0: dim}))


def test_sizes_as_factors() -> None:
    """Numbers of sizes as operands of tensors, on both sides."""
    model = Formulas(
        lambda x: x * x.shape[0],
        lambda x: x.shape[0] - x,
        lambda x: x.shape[0] / (x.abs() + 1),
        lambda x: x * x.shape[0] ** -0.5,
        lambda x: x + x.shape[0] / 3,
        lambda x: x / x.numel(),
        lambda x: x.sum(0) / max(x.shape[0] - 1, 1),
        lambda x: x.clamp(max=x.shape[0] / 10),
        lambda x: torch.where(x > 0, x, x.shape[0]),
        lambda x: x.long() < x.shape[0],
        lambda x: torch.arange(2 * x.shape[0]) % x.shape[0] + x.shape[0] // 2,
        lambda x: x + torch.full((x.shape[0], 3), x.shape[0] * 0.1),
        lambda x: torch.tril(x @ x.mT, diagonal=x.shape[0] // 2),
    )
    check(model, [((n, 3),) for n in (5, 1, 2, 13)], ({0: Dim.DYNAMIC},))


def test_interpolation() -> None:
    """Images of unknown size by factors and to sizes."""

    def interpolated(**options: object) -> Callable[[Tensor], Tensor]:
        return lambda x: F.interpolate(x, **options)  # type: ignore[arg-type]

    model = Formulas(
        interpolated(scale_factor=0.5, mode="bilinear"),
        interpolated(scale_factor=0.7, mode="bilinear", recompute_scale_factor=True),
        interpolated(scale_factor=2, mode="bilinear", align_corners=True),
        interpolated(size=(7, 9), mode="bilinear", align_corners=True),
        interpolated(scale_factor=1.5, mode="nearest-exact"),
        lambda x: F.interpolate(x, size=(x.shape[2] // 2 + 1, 5), mode="nearest"),
    )
    shapes = [((1, 2, h, w),) for h, w in ((8, 8), (9, 13), (11, 30))]
    check(model, shapes, ({2: Dim("H", min=4, max=64), 3: Dim("W", min=4, max=64)},))


def test_unknown_formula() -> None:
    """A function of a size that nothing computes is named."""
    model = Formulas(lambda x: x * x.shape[0] ** 0.3)
    with pytest.raises(ftuner.CompileError, match="FTuner does not compute sizes by 'pow'"):
        ft.export(model, (torch.randn(5, 3),), dynamic_shapes=({0: Dim.DYNAMIC},))
