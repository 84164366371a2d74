"""Products that share an input become one product of joined weights, where that saves a launch."""

from __future__ import annotations

import collections
import math
from typing import Any

import pytest
from torch.export import Dim
from torch.nn.functional import linear, scaled_dot_product_attention, silu, softmax

import ftuner.torch as ft
import torch
from checks import relative_error
from ftuner.frontend.importing.joins import Kind, Projection, Step, groups
from torch import Tensor, nn

pytest.importorskip("iree.compiler")
pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning")

COMPILER: dict[str, Any] = {
    "device": "h200", "emulate": True, "max_kernels": 1, "cost_model": "sia",
}  # fmt: skip
BATCH, QUERIES, KEYS = Dim("B", max=8), Dim("T", max=64), Dim("L", max=64)


class Attention(nn.Module):
    """Attention with grouped heads and its projections; queries may be turned and scaled, keys have no bias."""

    def __init__(self, rng: Any, form: str, is_cross: bool) -> None:
        super().__init__()
        self.groups, shared = int(rng.integers(1, 4)), int(rng.integers(1, 4))
        self.width, self.is_cross, self.form = int(rng.choice((8, 16, 24))), is_cross, form
        size, heads = int(rng.integers(20, 70)), self.groups * shared
        columns = self.groups * self.width
        self.q = nn.Linear(size, heads * self.width)
        self.k = nn.Linear(size, columns, bias=False)
        self.v = nn.Linear(size, columns)
        self.out = nn.Linear(heads * self.width, size, bias=False)

    def forward(self, x: Tensor, y: Tensor | None = None) -> Tensor:
        source = x if y is None else y
        q = self.q(x)
        if self.form == "scaled":
            q = q * 0.25
        q, k, v = (
            part.unflatten(2, (-1, self.width)).transpose(1, 2)
            for part in (q, self.k(source), self.v(source))
        )
        if self.form == "turned":
            q, k = self.turn(q), self.turn(k)
        result = scaled_dot_product_attention(q, k, v, enable_gqa=True)
        return self.out(result.transpose(1, 2).flatten(2))

    def turn(self, x: Tensor) -> Tensor:
        half = self.width // 2
        angles = torch.arange(x.shape[2], dtype=x.dtype)[:, None] / (1 + torch.arange(self.width))
        turned = torch.cat((-x[..., half:], x[..., :half]), -1)
        return x * angles.cos() + turned * angles.sin()


@pytest.mark.parametrize("form", ["scaled", "turned"])
def test_attention(form: str, rng: Any) -> None:
    """Only the number of launches differs: no part is copied, and no bit changes."""
    is_cross = form == "turned"
    model = Attention(rng, form, is_cross).eval()
    print(model)
    size = model.q.in_features

    def tensors(batch: int, queries: int, keys: int) -> tuple[Tensor, ...]:
        """Queries, and keys where they have another input."""
        lengths = (queries, keys) if is_cross else (queries,)
        return tuple(torch.randn(batch, length, size) for length in lengths)

    shapes = ({0: BATCH, 1: QUERIES}, {0: BATCH, 1: KEYS})[: 1 + is_cross]
    runs = {}
    for projections in ("joined", "separate"):
        exported = ft.export(
            model, tensors(2, 5, 9), dynamic_shapes=shapes, projections=projections
        )
        runs[projections] = exported.compile(**COMPILER)
    joined, separate = (
        collections.Counter(
            kernel["kind"]
            for kind in ("workloads", "fallback_kernels")
            for kernel in run.report.data[kind]
        )
        for run in runs.values()
    )
    # Six products and a softmax, beside what moves and turns.
    assert separate["contraction"] == 6
    assert separate - joined == {"contraction": 1 if is_cross else 2}
    for sizes in ((1, 1, 1), (3, 7, 5), (1, 71, 67), (2, 0, 3)):
        given = tensors(*sizes)
        with torch.no_grad():
            wanted = model.double()(*(x.double() for x in given))
            model.float()
        results = [run(*given) for run in runs.values()]
        assert torch.equal(*results), sizes
        assert not wanted.numel() or relative_error(results[0], wanted) < 1e-5, sizes


class Several(nn.Module):
    """Products of one input, of which two pairs are joined."""

    def __init__(self, rng: Any) -> None:
        super().__init__()
        size = int(rng.integers(30, 60))

        def weight(*shape: int) -> nn.Parameter:
            return nn.Parameter(torch.randn(shape))

        self.a, self.b, self.tied, self.odd = (weight(n, size) for n in (24, 8, 16, 13))
        self.gate, self.up, self.result = (weight(40, size) for _ in range(3))
        self.left, self.right = weight(size, 16), weight(size, 28)
        self.bias = weight(24)

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        first, second = linear(x, self.a, self.bias), linear(x, self.b)
        one, two = x @ self.left, x @ self.right
        parts = (first, second, one, two, linear(x, self.tied), linear(x, self.odd))
        product = silu(linear(x, self.gate)) * linear(x, self.up)
        return (
            *(softmax(part, -1) for part in parts),
            product,
            linear(x, self.result),
            self.tied.sum(0),
        )


def test_what_is_joined(rng: Any) -> None:
    """Only weights that nothing else reads, of aligned parts, of products without an epilogue."""
    model = Several(rng)
    size = model.left.shape[0]
    exported = ft.export(model, (torch.randn(5, size),), dynamic_shapes=({0: QUERIES},))
    separate = {"tied", "odd", "gate", "up", "result"}
    names = set(exported.parameters)
    assert separate <= names and names.isdisjoint({"a", "b", "bias", "left", "right"})
    assert exported.text.count("linalg.matmul") == 7
    run = exported.compile(**COMPILER)
    x = torch.randn(3, size)

    def check() -> None:
        with torch.no_grad():
            for result, wanted in zip(run(x), model(x)):
                assert relative_error(result, wanted) < 1e-5

    check()
    # The parameters have their names, and changes of them are seen.
    state = {name: torch.randn_like(value) for name, value in model.state_dict().items()}
    model.load_state_dict(state)
    check()


def test_bias_that_is_missing() -> None:
    """A product without a bias keeps its zeros of either sign."""

    class Signs(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a, self.b = nn.Linear(4, 4), nn.Linear(4, 4, bias=False)

        def forward(self, x: Tensor) -> Tensor:
            return torch.stack([self.a(x)[:, :2], self.b(x)[:, :2]])

    model = Signs()
    exported = ft.export(model, (torch.randn(5, 4),), dynamic_shapes=({0: QUERIES},))
    joined = {name: value for name, value in exported.parameters.items() if "biases" in name}
    (biases,) = joined.values()
    assert torch.equal(biases[:4], model.a.bias)
    assert all(math.copysign(1, float(bias)) == -1 for bias in biases[4:])


def step(kind: Kind, reads: str, results: str, columns: int = 0) -> Step[Projection]:
    own = Projection(reads[0], "f32", columns, 4) if columns else None
    return Step(kind, [*reads], [*results], own)


def test_groups_of_layers() -> None:
    """Keys of each layer's cross attention share an input; a later layer's are not computed before it."""
    steps = [
        step(Kind.PRODUCT, "e", "k", 8),
        step(Kind.PRODUCT, "x", "q", 12),
        step(Kind.PRODUCT, "qk", "s"),
        step(Kind.OTHER, "s", "p"),
        step(Kind.PRODUCT, "e", "v", 16),
        step(Kind.PRODUCT, "pv", "y"),
        step(Kind.PRODUCT, "y", "o", 28),
        step(Kind.PRODUCT, "e", "l", 20),
        step(Kind.PRODUCT, "e", "w", 24),
        step(Kind.PRODUCT, "olw", "z"),
        step(Kind.PLACE, "z", ""),
    ]
    assert [[own.columns for own in group] for group in groups(steps)] == [[8, 16], [20, 24]]
