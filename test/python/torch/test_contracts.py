"""Contracts of FTuner's backend of torch.compile with the compiler, and of its registries."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from torch.fx.experimental.proxy_tensor import make_fx

import ftuner
import ftuner.torch as ft
import torch
from checks import OPTIONS
from ftuner.frontend.torch.regions import kernels
from ftuner.frontend.torch.regions.row_registry import ROW_RULES, row_rule
from ftuner.frontend.torch.settings import Settings
from torch import Tensor

EPILOGUES: dict[str, tuple[Callable[..., Tensor], tuple[tuple[int, ...], ...], bool]] = {
    "a summand of the whole result": (
        lambda x, w, e: x @ w + e, ((5, 7, 16), (16, 24), (5, 7, 24)), True,
    ),
    "a bias": (lambda x, w, e: x @ w + e, ((5, 7, 16), (16, 24), (24,)), True),
    "positions of joined rows": (
        lambda x, w, e: x @ w + e, ((5, 7, 16), (16, 24), (7, 24)), False,
    ),
    "a scale of batches of joined rows": (
        lambda x, w, e: x @ w * e, ((5, 7, 16), (16, 24), (5, 1, 1)), False,
    ),
    "a scale inside of heads": (
        lambda x, w, e: (x @ w).view(x.shape[0], x.shape[1], 4, 6) * e,
        ((5, 7, 16), (16, 24), (6,)),
        False,
    ),
    "a mask for all batches": (
        lambda x, w, e: torch.bmm(x, w) + e, ((5, 7, 16), (5, 16, 24), (7, 24)), True,
    ),
}  # fmt: skip


@pytest.fixture
def requests(monkeypatch: pytest.MonkeyPatch) -> list[list[bool]]:
    """The functions of each request that are one kernel; the compiler knows nothing from before."""
    made: list[list[bool]] = []
    known = kernels._form

    def form(*arguments: Any) -> list[tuple[str, ...]]:
        found = known(*arguments)
        made.append([one == ("ukernel",) for one in found])
        return found

    monkeypatch.setattr(kernels, "_form", form)
    monkeypatch.setattr(kernels, "_answers", {})
    return made


def run(function: Callable[..., Any], *args: Tensor, **options: Any) -> ft.Report:
    torch._dynamo.reset()
    ft.reset_report()
    compiled = torch.compile(
        function, backend="ftuner", dynamic=True, options={**OPTIONS, **options}
    )
    with torch.no_grad():
        torch.testing.assert_close(compiled(*args), function(*args), atol=1e-4, rtol=1e-4)
    return ft.report()


@pytest.mark.parametrize("name", EPILOGUES)
def test_fused_epilogues(name: str, requests: list[list[bool]]) -> None:
    """An epilogue that would be a separate kernel of the compiler stays with the host."""
    function, shapes, is_fused = EPILOGUES[name]
    report = run(function, *map(torch.randn, shapes))
    assert requests[0] == [is_fused]
    # Only the product is asked about, with the rest of what the region grew from.
    assert len(requests) == 2 - is_fused and all(requests[-1][:1])
    assert report.taken == 1 and (report.fused > 0) == is_fused


def test_one_request_for_a_graph(requests: list[list[bool]]) -> None:
    """Equal layers are asked about once, and all of them at once; the second graph asks nothing."""
    weights = [torch.randn(24, 24) for _ in range(4)]
    bias = torch.randn(24)

    def model(x: Tensor) -> Tensor:
        for w in weights:
            x = torch.relu(x @ w + bias)
        return (x @ weights[0]).sum(-1)

    x = torch.randn(5, 24)
    report = run(model, x, rows="always")
    assert requests == [[True, True], [True]]  # Products, then rows.
    assert report.taken == 5 and report.rows_taken == 1
    run(model, x, rows="always")
    assert len(requests) == 2


def test_split_regions(requests: list[list[bool]]) -> None:
    """The largest part that is one kernel is taken, and the rest by regions that come later."""

    def model(x: Tensor, w: Tensor, e: Tensor, v: Tensor) -> Tensor:
        first = torch.relu(x @ w)
        return torch.relu(first * e) + x @ v

    shapes = (5, 7, 16), (16, 24), (5, 1, 1), (16, 24)
    report = run(model, *map(torch.randn, shapes))
    assert not requests[0][0] and report.taken == 2
    # The first product keeps its first activation.
    assert sorted(report.functions) == ["mm_add", "mm_relu"]
    assert report.operators == {"mul.Tensor": 1, "relu.default": 1}


def test_without_a_compiler_regions_stay_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> Any:
        raise ftuner.Error(f"no {name}")

    monkeypatch.setattr(kernels.locations, "tool", missing)
    oracle = kernels.KernelOracle(Settings("h200", True))
    assert oracle.is_wanted("anything", 1)
    oracle.note(["anything"])
    oracle.ask()


def test_functions_that_the_compiler_refuses() -> None:
    """They count as one kernel, so that their compilation says why; others are asked about one by one."""
    oracle = kernels.KernelOracle(Settings("h200", True))
    oracle.note(["module {", "module { func.func @function() { return } }"])
    oracle.ask()
    assert oracle.is_wanted("module {", 1)
    assert oracle.is_wanted("module { func.func @function() { return } }", 1) is False


def test_rows_of_rules() -> None:
    """Each rule says what its rows are; an operator without `dim` has to."""
    aten = torch.ops.aten
    with pytest.raises(TypeError, match="expected rows, as it has no argument 'dim'"):
        row_rule(aten.native_layer_norm_backward.default)(lambda: None)
    assert aten.native_layer_norm_backward.default not in ROW_RULES

    x = torch.randn(2, 6, 4, 5)
    graph = make_fx(
        lambda x: (
            torch.softmax(x, 1), x.sum(), x.sum((0, -1)), x.mean(-2), x.amax((1, 2)), x.max(),
            torch.nn.functional.layer_norm(x, (4, 5)), torch.nn.functional.group_norm(x, 3),
            x.argmax(), x.var(), torch.linalg.vector_norm(x, dim=3),
        )
    )(x).graph  # fmt: skip
    nodes = [node for node in graph.nodes if node.target in ROW_RULES]
    rows = [ROW_RULES[node.target].rows(node).dims for node in nodes]
    everything = (0, 1, 2, 3)
    assert rows == [
        (1,), everything, (0, 3), (2,), (1, 2), everything, (2, 3), (1, 2, 3), everything,
        everything, (3,),
    ]  # fmt: skip
