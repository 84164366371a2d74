"""Surroundings of a model in PyTorch: stances, experts, checkpoints, tensors of other kinds."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
from torch._dynamo.utils import counters
from torch.utils.checkpoint import checkpoint

import ftuner.torch as ft
import torch
from checks import OPTIONS, check_gradients, relative_error
from scale import SCALE
from torch import Tensor, nn

HOSTS = ("eager", "inductor") if SCALE > 1 else ("eager",)

pytestmark = pytest.mark.parametrize("host", HOSTS)


def compile_for(host: str, model: Any, **options: Any) -> Any:
    settings = {**OPTIONS, "host": host}
    return torch.compile(model, backend="ftuner", dynamic=True, options=settings, **options)


def test_stances(host: str) -> None:
    model = nn.Linear(24, 40).eval()
    compiled = compile_for(host, model)

    def calls(rows: int) -> int:
        """Calls of FTuner's functions by one call of the model."""
        before = ft.report().calls
        x = torch.randn(rows, 24)
        with torch.no_grad():
            assert relative_error(compiled(x), model(x)) < 1e-6
        return ft.report().calls - before

    assert calls(6) == 1
    with torch.compiler.set_stance("force_eager"):
        assert calls(6) == 0
    with torch.compiler.set_stance("fail_on_recompile"):
        assert calls(9) == 1
        with pytest.raises(RuntimeError, match="fail_on_recompile"), torch.no_grad():
            compiled(torch.randn(9, 24, dtype=torch.float64))
    with torch.compiler.set_stance("eager_on_recompile"):
        assert calls(17) == 1
    assert calls(7) == 1 and ft.report().graphs == 1


class Experts(nn.Module):
    """Each row by the two experts that the router prefers for it."""

    def __init__(self) -> None:
        super().__init__()
        self.router = nn.Linear(16, 4)
        self.experts = nn.ModuleList(
            nn.Sequential(nn.Linear(16, 24), nn.SiLU(), nn.Linear(24, 16)) for _ in range(4)
        )

    def forward(self, x: Tensor) -> Tensor:
        weights, chosen = torch.softmax(self.router(x), -1).topk(2)
        result = torch.zeros_like(x)
        for number, expert in enumerate(self.experts):
            rows, place = torch.where(chosen == number)
            result = result.index_add(0, rows, expert(x[rows]) * weights[rows, place, None])
        return result


@pytest.mark.parametrize("captures", [False, True])
def test_mixture_of_experts(captures: bool, host: str) -> None:
    """As many graphs as with another backend, whether PyTorch breaks graphs at the experts' rows or not."""
    model = Experts().eval()
    exact = copy.deepcopy(model).double()
    graphs = []
    inputs = [torch.randn(rows, 16) for rows in (12, 7, 30)]
    with torch._dynamo.config.patch(capture_dynamic_output_shape_ops=captures), torch.no_grad():
        for compiled in (
            torch.compile(model, backend="eager", dynamic=True),
            compile_for(host, model),
        ):
            torch._dynamo.reset()
            counters.clear()
            results = [compiled(x) for x in inputs]
            graphs.append(counters["stats"]["unique_graphs"])
        assert graphs[1] <= graphs[0]
        for x, result in zip(inputs, results):
            reference = exact(x.double())
            limit = max(1.5 * relative_error(model(x), reference), 2e-7)
            assert relative_error(result, reference) <= limit
    report = ft.report()
    assert report.taken == report.products
    # Without rows of unknown number PyTorch compiles nothing of a loop, and hands nothing over.
    assert (report.calls == 9 * len(inputs)) if captures else (report.calls == graphs[0] == 0)


class Layer(nn.Module):
    """A layer like Llama's, whose two halves are computed again for the gradients."""

    def __init__(self) -> None:
        super().__init__()
        self.norms = nn.ModuleList(nn.RMSNorm(32) for _ in range(2))
        self.q, self.k, self.v, self.out = (nn.Linear(32, 32, bias=False) for _ in range(4))
        self.gate, self.up = (nn.Linear(32, 48, bias=False) for _ in range(2))
        self.down = nn.Linear(48, 32, bias=False)

    def attend(self, x: Tensor) -> Tensor:
        y = self.norms[0](x)
        heads = (part(y).unflatten(-1, (4, 8)).transpose(1, 2) for part in (self.q, self.k, self.v))
        q, k, v = heads
        weights = torch.softmax(q @ k.mT / 8**0.5, -1)
        return x + self.out((weights @ v).transpose(1, 2).flatten(2))

    def feed(self, x: Tensor) -> Tensor:
        y = self.norms[1](x)
        return x + self.down(nn.functional.silu(self.gate(y)) * self.up(y))

    def forward(self, x: Tensor) -> Tensor:
        parts: tuple[Callable[[Tensor], Tensor], ...] = (self.attend, self.feed)
        for part in parts:
            x = checkpoint(part, x, use_reentrant=False)
        return x


def test_activation_checkpointing(host: str) -> None:
    model = Layer()
    compiled = compile_for(host, model, fullgraph=True)
    with torch._dynamo.config.patch(error_on_recompile=True):
        for batch, length in ((2, 5), (3, 9)):
            x = torch.randn(batch, length, 32)
            check_gradients(model, compiled, x, factor=1.5, floor=5e-7)
    report = ft.report()
    assert report.graphs == 2
    if host == "eager":
        # Nine forwards, seven of them again for the gradients, and two for each there.
        assert report.taken == report.products == 9 + 7 + 2 * 9
    else:  # Inductor recognizes attention before a pass sees its products.
        assert report.products - report.taken == len(report.left) <= 1


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda x: x.double(), "operands of float64"),
        (lambda x: torch.complex(x, x), "operands of complex64"),
    ],
)
def test_other_numbers(make: Callable[[Tensor], Tensor], reason: str, host: str) -> None:
    x, w = make(torch.randn(6, 16)), make(torch.randn(16, 24))
    compiled = compile_for(host, torch.matmul)
    torch.testing.assert_close(compiled(x, w), x @ w)
    (left,) = ft.report().left
    assert left.reason.startswith(reason)


def test_sparse_factors(host: str) -> None:
    """The result is right on every path, and the report says what was not seen or left."""
    dense = torch.randn(12, 16) * (torch.rand(12, 16) < 0.2)
    x = torch.randn(16, 8)
    for sparse in (dense.to_sparse_csr(), dense.to_sparse_coo()):
        torch._dynamo.reset()
        ft.reset_report()
        compiled = compile_for(host, lambda a, b: torch.relu(a @ b))
        torch.testing.assert_close(compiled(sparse, x), torch.relu(dense @ x))
        report = ft.report()
        assert report.taken == 0 and (report.left or report.breaks or report.graphs == 0)


def test_nested_tensors(host: str) -> None:
    parts = [torch.randn(rows, 16) for rows in (3, 5, 2)]
    nested = torch.nested.nested_tensor(parts, layout=torch.jagged)
    model = nn.Linear(16, 24).eval()
    compiled = compile_for(host, model)
    with torch.no_grad():
        for result, part in zip(compiled(nested).unbind(), parts):
            torch.testing.assert_close(result, model(part))
    # The rows of all parts are one product, or PyTorch's.
    report = ft.report()
    assert report.products == report.taken + len(report.left)
