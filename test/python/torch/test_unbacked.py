"""Sizes of which PyTorch knows a range and a hint only, and sizes of 0."""

from __future__ import annotations

from typing import Any

import pytest
from torch._dynamo.utils import counters
from torch.fx.experimental.dynamic_spec import ParamsSpec, ShapesSpec, ShapeVar, TensorSpec

import ftuner.torch as ft
import torch
from checks import COMPILER
from ftuner.frontend.torch.graph.hints import hint_of
from ftuner.latency import vendor
from torch import Tensor, nn


@pytest.fixture(autouse=True)
def fresh() -> None:
    torch._dynamo.reset()
    counters.clear()
    ft.reset_report()


class Attention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(16)
        self.q, self.k, self.v, self.o = (nn.Linear(16, 16) for _ in range(4))

    def forward(self, x: Tensor, bias: Tensor) -> Tensor:
        b, t, _ = x.shape
        y = self.norm(x)
        q, k, v = (f(y).view(b, t, 2, 8).transpose(1, 2) for f in (self.q, self.k, self.v))
        y = torch.softmax(q @ k.mT / 8**0.5 + bias, -1) @ v
        return x + self.o(y.transpose(1, 2).reshape(b, t, 16))


def attention_spec(hint: int | None) -> ShapesSpec:
    batch = ShapeVar("batch", max=16, optimization_hint=hint)
    length = ShapeVar("length", min=1, max=128, optimization_hint=hint)
    return ShapesSpec(
        ParamsSpec({"x": TensorSpec([batch, length, None]), "bias": TensorSpec([length])})
    )


def test_shapes_spec() -> None:
    """One graph serves batches of 0 and 1, too; ranges are read, and products are taken whole."""
    model = Attention().eval()
    options: dict[str, Any] = {**COMPILER, "host": "eager"}
    compiled = torch.compile(
        model, backend="ftuner", shapes_spec=attention_spec(8), options=options
    )
    with torch.no_grad():
        for batch, length in ((2, 7), (1, 1), (0, 5), (3, 64)):
            x, bias = torch.randn(batch, length, 16), torch.randn(length)
            assert torch.allclose(compiled(x, bias), model(x, bias), atol=1e-5)
    report = ft.report()
    assert counters["stats"]["unique_graphs"] == 1 and report.graphs == 1
    assert report.taken == report.products == 6 and report.rows_taken == 2
    assert report.time_share is not None
    assert "m = 1 to 2048, n = 16, k = 16" in str(report)


def hints(function: Any, *inputs: Tensor, **options: Any) -> set[int | None]:
    """The sizes that predictions of a graph's operators are made at."""
    found: set[int | None] = set()

    def look(gm: torch.fx.GraphModule, _: Any) -> Any:
        for node in gm.graph.nodes:
            value = node.meta.get("example_value")
            for size in value.shape if isinstance(value, Tensor) else ():
                if isinstance(size, torch.SymInt):
                    found.add(hint_of(size))
        return gm.forward

    torch.compile(function, backend=look, **options)(*inputs)
    return found


def double(x: Tensor) -> Tensor:
    return torch.cat([x, x])


def test_hints() -> None:
    """A hint takes precedence over the end of a range; a size without both lacks a hint."""
    spec = ShapesSpec({"x": TensorSpec([ShapeVar("n", max=64, optimization_hint=32), None])})
    assert hints(double, torch.randn(5, 3), shapes_spec=spec) == {32, 64}
    torch._dynamo.reset()
    bounded = ShapesSpec({"x": TensorSpec([ShapeVar("n", max=100), None])})
    assert hints(double, torch.randn(5, 3), shapes_spec=bounded) == {100, 200}
    for options, expected in (
        ({"hint_override": 24}, {24, 48}),
        ({"max": 9}, {9, 18}),
        ({}, {None}),
    ):
        torch._dynamo.reset()
        x = torch.randn(5, 3)
        torch._dynamo.decorators.mark_unbacked(x, 0, **options)  # type: ignore[arg-type]
        assert hints(double, x) == expected


@pytest.mark.parametrize("host", ["eager", "inductor"])
def test_products_without_rows(host: str) -> None:
    """An empty product costs nothing, and the others beside it are predicted."""
    layer = nn.Linear(8, 8)
    compiled = torch.compile(
        lambda x, y: (layer(x), torch.softmax(layer(y), -1)),
        backend="ftuner",
        dynamic=True,
        options={**COMPILER, "host": host},
    )
    with torch.no_grad():
        for rows in (3, 0, 1):
            x, y = torch.randn(rows, 8), torch.randn(0, 8)
            result, empty = compiled(x, y)
            assert torch.allclose(result, layer(x), atol=1e-6) and empty.shape == (0, 8)
    report = ft.report()
    assert report.time_share == 1.0 and report.others_us == 0.0


def test_times_of_empty_products() -> None:
    products = [(1, 128, 128, 128), (1, 0, 8, 8), (0, 7, 8, 9), (2, 64, 64, 64), (1, 8, 8, 0)]
    for dtype in ("f32", "f16"):
        times = vendor.predict("h200", dtype, products)
        nonempty = vendor.predict("h200", dtype, [products[0], products[3]])
        assert times is not None and nonempty is not None
        assert list(times) == [nonempty[0], 0, 0, nonempty[1], 0]
        second = vendor.second_kernels("h200", dtype, products[1:3])
        assert second is not None and list(second) == [0, 0]
