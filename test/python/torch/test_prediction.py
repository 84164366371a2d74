"""Predicted times of whole graphs: FTuner's kernels, products that stay, and bytes of everything else."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import pytest
from torch.fx.experimental.proxy_tensor import make_fx

import ftuner.torch as ft
import torch
from checks import compile_model
from ftuner.frontend.torch import replacement
from ftuner.frontend.torch.graph.nodes import is_collective, launches_kernel
from ftuner.frontend.torch.prediction import Prediction, kernels_of, predict
from ftuner.frontend.torch.regions.elementwise import fold_casts
from ftuner.frontend.torch.report import Launches, RejectedOp
from ftuner.latency import vendor
from torch import Tensor, fx, nn

ROWS = 6


class Found:
    """The prediction for a graph, and the functions and rates that it was made from."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.products: list[Any] = []
        self.prediction: Prediction | None = None
        known = replacement.predict

        def spy(graph: Any, kernels: Any, products: Any) -> Prediction | None:
            self.products, self.prediction = products, known(graph, kernels, products)
            return self.prediction

        monkeypatch.setattr(replacement, "predict", spy)

    def ftuner_us(self, rows: int) -> float:
        total = 0.0
        for product in self.products:
            report = product.function.report
            total += report.share_at(dict.fromkeys(report.sizes, rows))["ukernel_us"]
        return total

    def kernel_us(self, launches: int, elements: float) -> float:
        """So many kernels of f32 tensors with so many elements in all."""
        rates = self.products[0].function.report.data["rates"]
        return launches * rates["launch_us"] + 4 * elements * rates["us_per_byte"]


def run(model: Any, *arguments: Tensor, max_rows: int = 64, **options: Any) -> None:
    torch._dynamo.mark_dynamic(arguments[0], 0, min=2, max=max_rows)
    with torch.no_grad():
        compile_model(model, **{"cost_model": "latency", **options})(*arguments)


class Model(nn.Module):
    """Two products, with two functions of the first's result between them, and a sum behind."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(16, 24, bias=False), nn.Linear(24, 32, bias=False)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        y = self.first(x)
        # The second reads what was joined, and so does the result.
        y = torch.cumsum(torch.flip(y, [1]), 1)
        return self.second(y), y.amax(1)


@pytest.mark.parametrize(
    ("host", "launches", "elements"),
    [
        # flip, cumsum and amax, each with a tensor in and one out.
        ("eager", 3, ROWS * (5 * 24 + 1)),
        # One kernel: reads a result, and writes the factor and the maxima.
        ("inductor", 1, ROWS * (2 * 24 + 1)),
    ],
)
def test_kernels_beside_products(
    host: str, launches: int, elements: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = Found(monkeypatch)
    run(Model(), torch.randn(ROWS, 16), host=host)
    assert len(found.products) == 2 and found.prediction is not None
    assert found.prediction.ftuner_us == pytest.approx(found.ftuner_us(ROWS)) and found.ftuner_us(
        ROWS
    )
    assert found.prediction.others_us == pytest.approx(found.kernel_us(launches, elements))
    report = ft.report()
    assert (report.ftuner_us, report.others_us) == (
        found.prediction.ftuner_us, found.prediction.others_us,
    )  # fmt: skip
    share = report.ftuner_us / (report.ftuner_us + report.others_us)
    assert report.time_share == pytest.approx(share) and report.others_unknown == 0
    assert f"at most {share:.1%} of the time by FTuner: {report.ftuner_us:.1f} us, " in str(report)


def test_tables_are_read_in_part(monkeypatch: pytest.MonkeyPatch) -> None:
    """An embedding reads the rows that are asked for, and their numbers, which have eight bytes."""
    found = Found(monkeypatch)
    model = nn.Sequential(nn.Embedding(1000, 16), nn.Linear(16, 24))
    run(model, torch.randint(0, 1000, (ROWS, 1)))
    assert found.prediction is not None
    expected = found.kernel_us(1, 2 * ROWS * 16 + 2 * ROWS)
    assert found.prediction.others_us == pytest.approx(expected)


def test_products_that_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the bytes of convolutions are known."""

    class Kept(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(16, 24)

        def forward(self, x: Tensor, image: Tensor) -> tuple[Tensor, Tensor]:
            return self.layer(x), nn.functional.conv2d(image, torch.ones(2, 3, 3, 3))

    found = Found(monkeypatch)
    run(Kept(), torch.randn(ROWS, 16), torch.randn(2, 3, 8, 8))
    assert (
        found.prediction is not None and found.prediction.unknown == ft.report().others_unknown == 1
    )
    assert "without 1 larger operators and collectives whose time is not known" in str(ft.report())


def test_intervals_of_pytorch(monkeypatch: pytest.MonkeyPatch) -> None:
    """If PyTorch computes a product at these sizes, its time is PyTorch's."""

    def price(device: Any, dtype: str, products: Any, **layout: bool) -> Any:
        return np.array([1e6 if b * m < 4000 else 1e-3 for b, m, n, k in products])

    monkeypatch.setattr(vendor, "predict", price)
    for rows, is_ftuners in ((4, True), (8000, False)):
        torch._dynamo.reset()
        ft.reset_report()
        found = Found(monkeypatch)
        run(
            nn.Linear(16, 24, bias=False),
            torch.randn(rows, 16),
            max_rows=8192,
            take="faster",
            max_kernels=4,
        )
        assert found.prediction is not None
        if is_ftuners:
            assert found.prediction.ftuner_us == pytest.approx(found.ftuner_us(rows))
            assert found.prediction.others_us == 0
        else:
            assert found.prediction.ftuner_us == 0 and 0 < found.prediction.others_us < 0.01


@pytest.mark.parametrize("is_transposed", [False, True])
def test_prices_say_how_the_right_factor_lies(
    monkeypatch: pytest.MonkeyPatch, is_transposed: bool
) -> None:
    """Prices take the layout of the right factor, for products that FTuner takes and for others."""
    asked: list[tuple[Any, bool]] = []

    def price(device: Any, dtype: str, products: Any, *, is_transposed: bool) -> Any:
        asked.extend((product, is_transposed) for product in products)
        return np.full(len(products), 1e-3)

    monkeypatch.setattr(vendor, "predict", price)
    weights = torch.randn(24, 16) if is_transposed else torch.randn(16, 24)
    run(
        lambda x, w: x @ (w.t() if is_transposed else w),
        torch.randn(ROWS, 16), weights, take="faster", max_kernels=4,
    )  # fmt: skip
    assert asked and all(layout == is_transposed for _, layout in asked)


def test_graphs_without_functions() -> None:
    run(lambda x: x.sin(), torch.randn(ROWS, 16))
    assert ft.report().time_share is None and "predicted" not in str(ft.report())


class Deep(nn.Module):
    """Layers of two products, of which the first has an epilogue, and a norm; more behind them."""

    def __init__(self) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(
            nn.Sequential(nn.Linear(16, 24), nn.ReLU(), nn.Linear(24, 16), nn.LayerNorm(16))
            for _ in range(11)
        )

    def forward(self, x: Tensor) -> Tensor:
        for block in self.blocks:
            x = block(x)
        return x.sin().flip(1)


@pytest.mark.parametrize("host", ["eager", "inductor"])
def test_launches_of_layers(host: str) -> None:
    """Beside two products a norm, and without FTuner the function between them, too."""
    x = torch.randn(ROWS, 16)
    run(Deep().eval(), x, host=host)
    layers, text = ft.report().layers, str(ft.report())
    assert all(layers[f"blocks.{number}"] == Launches(2, 1, 4) for number in range(11))
    assert "\n  blocks.0 to blocks.10: 2 by FTuner and 1 by others, 4 without FTuner\n" in text
    if host == "eager":
        assert layers[""] == Launches(0, 2, 2) and len(layers) == 12
        assert "\n  in no layer: 0 by FTuner and 2 by others, 2 without FTuner\n" in text
    else:  # What is behind is joined to the last norm.
        assert len(layers) == 11 and ft.report().inductor_kernels == 11


def _graph(function: Any, *inputs: Tensor) -> fx.Graph:
    graph: fx.Graph = make_fx(function, tracing_mode="fake")(*inputs).graph
    return graph


def test_nodes_without_a_kernel() -> None:
    """Waits and single numbers on the CPU launch nothing; a reduction to one number does."""

    def model(x: Tensor, step: Tensor) -> tuple[Tensor, ...]:
        return x.sum(), x * step.to(torch.float64).add(1), torch.ops.aten.view.default(x, [-1])

    graph = _graph(model, torch.randn(4, 8), torch.tensor(3.0))
    assert [node.target for node in graph.nodes if launches_kernel(node)] == [
        torch.ops.aten.sum.default, torch.ops.aten.mul.Tensor,
    ]  # fmt: skip


def test_collectives_are_not_known() -> None:
    """A collective is a kernel of its own whose time nothing predicts; its wait is none."""
    functional = torch.ops._c10d_functional
    graph = _graph(lambda x: x + 1, torch.randn(4, 8))
    add = next(node for node in graph.nodes if node.op == "call_function")
    with graph.inserting_after(add):
        reduced = graph.call_function(functional.all_reduce.default, (add, "sum", "0"))
    with graph.inserting_after(reduced):
        wait = graph.call_function(functional.wait_tensor.default, (reduced,))
    reduced.meta["val"] = wait.meta["val"] = add.meta["val"]
    next(iter(reversed(graph.nodes))).args = (wait,)
    assert [is_collective(node) for node in (add, reduced)] == [False, True]
    assert launches_kernel(reduced) and not launches_kernel(wait)
    assert kernels_of(graph, joins=True) == [[add], [reduced]]

    class Product:
        class function:
            class report:
                data: ClassVar[dict[str, Any]] = {"rates": {"launch_us": 1.0, "us_per_byte": 0.0}}
                sizes: ClassVar[list[str]] = []
                share_at = staticmethod(lambda sizes: {"ukernel_us": 2.0, "fallback_us": None})

        imported = choice = None

    found = predict(graph, kernels_of(graph, joins=True), [Product])  # type: ignore[list-item]
    assert found == Prediction(ftuner_us=2.0, others_us=1.0, unknown=1)


def test_casts_that_change_nothing_fold() -> None:
    convert = torch.ops.prims.convert_element_type.default

    def model(x: Tensor, y: Tensor) -> tuple[Tensor, ...]:
        same, other = convert(x, torch.float32), convert(x, torch.float16)
        kept = convert(y, torch.float32)
        return same + 1, other + 1, kept, y + 1

    graph = _graph(model, torch.randn(4, 8), torch.randn(4, 8))
    fold_casts(graph)
    casts = [node.meta["val"].dtype for node in graph.nodes if node.target is convert]
    # A result is a separate tensor.
    assert casts == [torch.float16, torch.float32]

    def written(x: Tensor) -> Tensor:
        before = convert(x, torch.float32)
        x.mul_(2)
        return before + x

    graph = _graph(written, torch.randn(4, 8))
    count = len(graph.nodes)
    fold_casts(graph)
    assert len(graph.nodes) == count


def test_equal_rejections_are_one_line() -> None:
    report = ft.Report()
    rejected = [RejectedOp("mm.default", "m is 0", 'File "a.py", line 3, in f') for _ in range(3)]
    report.kind("product").rejected = [*rejected, RejectedOp("bmm.default", "m is 0", "")]
    lines = str(report).splitlines()
    at = lines.index("left to PyTorch, 4 of 4 products:")
    assert lines[at + 1 : at + 3] == [
        '  mm.default: m is 0 (File "a.py", line 3, in f) (3 times)',
        "  bmm.default: m is 0",
    ]
