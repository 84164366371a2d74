"""Frequencies of sizes, from arguments of a model to the ranges of its products."""

from __future__ import annotations

from typing import Any

import pytest
import sympy

import ftuner.torch as ft
import torch
from checks import OPTIONS, relative_error
from ftuner.frontend.torch import replacement
from ftuner.frontend.torch.histograms import of_extent, of_symbols
from ftuner.frontend.torch.regions.linalg import Range
from torch import Tensor, nn


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(16, 24)

    def forward(self, x: Tensor, scale: Tensor) -> Tensor:
        return self.layer(x) * scale


def ranges_of(monkeypatch: pytest.MonkeyPatch, histogram: Any, **more: Any) -> list[Range]:
    """The ranges that the compiled functions have."""
    found: list[Range] = []
    known = replacement.import_region

    def spy(*arguments: Any) -> Any:
        imported = known(*arguments)
        found.extend(sizes for _, sizes in imported.function.symbols)
        return imported

    monkeypatch.setattr(replacement, "import_region", spy)
    model, x = Model(), torch.randn(3, 5, 16)
    torch._dynamo.mark_dynamic(x, 0, min=2, max=16)
    torch._dynamo.mark_dynamic(x, 1, min=2, max=64)
    options = {**OPTIONS, "histogram": histogram, **more}
    compiled = torch.compile(model, backend="ftuner", dynamic=True, options=options)
    with torch.no_grad():
        result = compiled(x, torch.randn(24))
        assert result.shape == (3, 5, 24)
        for sizes in ((3, 7), (2, 64)):
            x, scale = torch.randn(*sizes, 16), torch.randn(24)
            assert relative_error(compiled(x, scale), model(x, scale)) < 1e-6
    return found


@pytest.mark.parametrize("host", ["eager", "inductor"])
def test_products_of_sizes(host: str, monkeypatch: pytest.MonkeyPatch) -> None:
    histogram = {"x.0": {3: 1.0, 4: 3.0, 99: 5.0}, "x.1": {8: 0.5, 6: 0.5}}
    (sizes,) = ranges_of(monkeypatch, histogram, host=host)
    # 99 is outside of x.0's range: of 3·8, 3·6, 4·8 and 4·6 two are equal.
    # From one row on, as functions of weights are.
    assert sizes.lower == 1 and sizes.upper == 16 * 64
    assert sizes.weights == ((18, 0.5), (24, 2.0), (32, 1.5))


def test_a_size_without_histogram_has_none(monkeypatch: pytest.MonkeyPatch) -> None:
    (sizes,) = ranges_of(monkeypatch, {"x.0": {3: 1.0}})
    assert sizes.weights == ()


def test_unknown_arguments_are_warned_of(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.warns(
        UserWarning, match=r"'y.0': a graph has no such size .*x\.0, x\.1, x\.2, scale\.0"
    ):
        ranges_of(monkeypatch, {"y.0": {3: 1.0}})


class Nested(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(37, 53)

    def forward(self, batch: dict[str, list[Tensor]]) -> Tensor:
        result: Tensor = self.layer(batch["parts"][1])
        return result


@pytest.mark.parametrize(
    ("model", "name", "wrap"),
    [
        (nn.Sequential(nn.Linear(37, 53)), "args.0", lambda x: x),
        (Nested(), "batch.parts.1", lambda x: {"parts": [x[:, 0], x]}),
    ],
)
def test_arguments_without_a_name_of_their_own(model: nn.Module, name: str, wrap: Any) -> None:
    """Parts of an argument, and arguments of PyTorch's own modules."""
    found: list[Any] = []

    def spy(gm: Any, _: Any) -> Any:
        found.extend(of_symbols(gm, {f"{name}.0": {5: 1.0, 7: 2.0}}).values())
        of_symbols(gm, {"input.0": {5: 1.0}})
        return gm

    with pytest.warns(UserWarning, match=rf"'input.0': .* but .*{name}\.0, {name}\.1$"):
        torch.compile(model, backend=spy, dynamic=True)(wrap(torch.randn(3, 37)))
    assert found == [{5: 1.0, 7: 2.0}]


def test_expressions() -> None:
    s, t = sympy.Symbol("s", integer=True), sympy.Symbol("t", integer=True)
    symbols = {"s": {2: 1.0, 5: 1.0}, "t": {3: 2.0}}
    assert of_extent(s * t + 1, symbols, 0, None) == ((7, 2.0), (16, 2.0))
    assert of_extent(s * t + 1, symbols, 8, 20) == ((16, 2.0),)
    assert of_extent(s + sympy.Symbol("u", integer=True), symbols, 0, None) == ()
    text = str(Range(2, None, ((7, 0.5), (16, 2.0))))
    assert text == "#ukernel.range<2 to ? weights [7 : 5.000000000e-01, 16 : 2.000000000e+00]>"


@pytest.mark.parametrize(
    ("histogram", "error"),
    [
        ([1], "expected option histogram as"),
        ({"x": {1: 1.0}}, "but got the name 'x'"),
        ({"x.0": {}}, "but got {} for 'x.0'"),
        ({"x.0": {-1: 1.0}}, "sizes from 0 on with frequencies above 0, but got -1: 1.0"),
        ({"x.0": {1: 0.0}}, "but got 1: 0.0"),
        ({"x.0": {True: 1.0}}, "but got True: 1.0"),
        ({"x.0": {1: float("nan")}}, "but got 1: nan"),
    ],
)
def test_histograms_that_are_not_valid(histogram: Any, error: str) -> None:
    with pytest.raises((TypeError, ValueError), match=error):
        ft.Options.parse({"histogram": histogram})
