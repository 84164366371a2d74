"""Values of weights only, which calls do not compute again."""

from __future__ import annotations

from typing import Any

import pytest
from torch.export import Dim

import ftuner.torch as ft
import torch
from checks import relative_error
from torch import Tensor, nn

pytest.importorskip("iree.compiler")
pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning")

COMPILER: dict[str, Any] = {"device": "h200", "emulate": True, "max_kernels": 1}


class Model(nn.Module):
    """A weight norm, a product of weights, one that is quantized, and one that is transposed."""

    def __init__(self) -> None:
        super().__init__()
        self.normed = nn.utils.parametrizations.weight_norm(nn.Linear(96, 96))
        self.weight = nn.Parameter(torch.randn(96, 96))
        self.left, self.right = nn.Parameter(torch.randn(96, 4)), nn.Parameter(torch.randn(4, 96))
        self.quantized: Tensor
        self.register_buffer("quantized", torch.randint(-9, 9, (192, 96), dtype=torch.int8))
        self.plain = nn.Parameter(torch.randn(96, 96))

    def forward(self, x: Tensor) -> Tensor:
        y = self.normed(x) @ (self.weight + self.left @ self.right)
        return (y @ (self.quantized.float() / 9).t()) + torch.cat([x @ self.plain.t()] * 2, -1)


def test_values_of_weights() -> None:
    """They are arguments, unless they are larger than the weights; changes in place are seen."""
    model = Model().eval()
    exported = ft.export(model, (torch.randn(5, 96),), dynamic_shapes=({0: Dim("T", max=64)},))
    names = list(exported.parameters)
    assert set(names) >= {"normed.bias", "quantized", "plain"} and len(names) == 5
    assert sum(name.startswith("folded.") for name in names) == 2
    # Products of the model, but neither the norm nor the product of weights.
    assert exported.text.count("linalg.matmul") == 4 and "math.sqrt" not in exported.text
    x = torch.randn(7, 96)
    run = exported.compile(**COMPILER)
    with torch.no_grad():
        before = run(x)
        assert relative_error(before, model(x)) < 1e-5
        model.left.mul_(-3)
        model.normed.parametrizations.weight.original0.add_(1)
        assert relative_error(before, model(x)) > 1e-2
        assert relative_error(run(x), model(x)) < 1e-5


def test_results_of_weights() -> None:
    """A result that is a value of weights only is computed by the function."""

    class Scaled(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = nn.Parameter(torch.randn(40))

        def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
            scale = self.weight.exp()
            return x * scale, scale.view(5, 8)

    model = Scaled()
    exported = ft.export(model, (torch.randn(5, 40),), dynamic_shapes=({0: Dim("T")},))
    assert list(exported.parameters) == ["weight"]
    x = torch.randn(3, 40)
    with torch.no_grad():
        for actual, exact in zip(exported.compile(**COMPILER)(x), model(x)):
            assert relative_error(actual, exact) < 1e-6
