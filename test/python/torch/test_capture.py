"""CUDA graphs: which calls PyTorch may capture, and for which sizes.

That a captured call of a compiled function is right is tested over the emulator's driver
(test/Integration/graphs.py); PyTorch itself captures nothing without a GPU.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from torch._inductor.custom_graph_pass import CustomGraphPass

import ftuner
import ftuner.torch as ft
import torch
from checks import COMPILER, compile_model, relative_error
from ftuner.frontend.torch import capture
from ftuner.frontend.torch.hosts import operator
from torch import Tensor, fx, nn


@pytest.fixture(autouse=True)
def nothing_called(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(capture, "_called", {})


@pytest.fixture(scope="module", autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Hides what Inductor compiled before."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path_factory.mktemp("inductor")))
        yield


class Seen(CustomGraphPass):
    """Records whether PyTorch would capture each of FTuner's calls in a graph."""

    def __init__(self) -> None:
        self.captured: dict[str, bool] = {}

    def __call__(self, graph: fx.Graph) -> None:
        utils = pytest.importorskip("torch._inductor.utils")
        for node in graph.nodes:
            if getattr(node.target, "namespace", "") == "ftuner":
                self.captured[str(node.target)] = not utils.is_cudagraph_unsafe_fx_node(node)

    def uuid(self) -> str:
        return "seen"


def test_what_is_captured() -> None:
    """All but what reads a tensor of the CPU at each call."""
    layer, half = nn.Linear(16, 24), nn.Linear(24, 16)
    scale = torch.tensor(0.5)

    def model(x: Tensor) -> Tensor:
        return half(torch.sin(layer(x) * scale))

    seen = Seen()
    own = ft.inductor_pass(take="all", **COMPILER)
    options: dict[str, Any] = {"post_grad_custom_pre_pass": [own, seen]}
    compiled = torch.compile(model, dynamic=True, options=options)
    with torch.no_grad():
        x = torch.randn(6, 16)
        assert relative_error(compiled(x), model(x)) < 1e-6
        # Its value at the call counts.
        scale.fill_(2)
        assert relative_error(compiled(x), model(x)) < 1e-6
    assert seen.captured == {"ftuner.product.default": True, "ftuner.product.scalars": False}
    assert ft.report().taken == 2


def test_operators_differ_in_one_tag() -> None:
    for name in operator.NAMES:
        plain, scalars = operator.operator_of(name, False), operator.operator_of(name, True)
        assert {*plain.tags} <= {*scalars.tags}
        assert {*scalars.tags} - {*plain.tags} == {torch.Tag.cudagraph_unsafe}


def rows_model(width: int = 96, **options: Any) -> Any:
    model = nn.Linear(32, width)
    compiled = compile_model(model, **{"max_kernels": 4, "cost_model": "latency", **options})
    with torch.no_grad():
        x = torch.randn(9, 32)
        torch._dynamo.mark_dynamic(x, 0, min=2, max=1024)
        compiled(x)
    return compiled


def families(function: ftuner.Function) -> dict[int, int]:
    """The family that computes each size, as the manifest lists them."""
    (plan,) = function.module.manifest["workloads"]
    return {program["size"]: program["family"] for program in plan["programs"]}


def test_sizes_at_which_a_plan_changes() -> None:
    rows_model()
    (function,) = capture._called.values()
    of_size = families(function)
    assert {*range(1, 1025)} <= {*of_size}
    changes = [size for size in range(1, 1024) if of_size[size] != of_size[size + 1]]
    assert 1 <= len(changes) <= 16
    sizes = ft.capture_sizes(1024)
    assert {*changes, 1024} <= {*sizes} and list(sizes) == sorted({*sizes})
    # Nothing but ends of the plan's boxes.
    boxes = [entry["box"] for entry in function.module.manifest["workloads"][0]["dispatch"]]
    assert {*sizes} <= {axis["max"] for box in boxes for axis in box} | {1024}
    # Only up to a size, which is one of them, whether the plan changes there or not.
    assert ft.capture_sizes(100) == tuple(size for size in sizes if size < 100) + (100,)
    # The length of each of three sequences.
    assert ft.capture_sizes(64, rows=3) == tuple(
        sorted({size // 3 for size in sizes if 3 <= size < 192} | {64})
    )
    assert ft.capture_sizes(1024, functions=[function]) == sizes


def test_sizes_of_all_functions() -> None:
    rows_model()
    single = ft.capture_sizes(1024)
    rows_model(width=608)
    assert len(capture._called) == 2 and {*single} <= {*ft.capture_sizes(1024)}


@pytest.mark.parametrize(
    ("largest", "rows", "error", "words"),
    [
        (0, 1, ValueError, "expected largest to be 1 or more, but got 0"),
        (8, -1, ValueError, "expected rows to be 1 or more, but got -1"),
        (8.5, 1, TypeError, "expected largest to be a number, but got 8.5"),
        (8, True, TypeError, "expected rows to be a number, but got True"),
        (8, 1, ValueError, "no graph of this process calls one"),
    ],
)
def test_arguments_that_do_not_fit(largest: Any, rows: Any, error: Any, words: str) -> None:
    with pytest.raises(error, match=re.escape(words)):
        ft.capture_sizes(largest, rows=rows)
