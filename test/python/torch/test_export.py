"""Whole models through torch-mlir's importer."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn
from torch.export import Dim

import ftuner
import ftuner.torch as ft

from checks import relative_error

pytest.importorskip("iree.compiler")
pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning")

BATCH, LENGTH = Dim("B", min=2, max=16), Dim("T", min=2, max=128)


class Attention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(32)
        self.q, self.k, self.v, self.o = (nn.Linear(32, 32) for _ in range(4))

    def forward(self, x: Tensor) -> Tensor:
        b, t, _ = x.shape
        y = self.norm(x)
        q, k, v = (f(y).view(b, t, 4, 8).transpose(1, 2) for f in (self.q, self.k, self.v))
        y = torch.softmax(q @ k.mT / math.sqrt(8), -1) @ v
        return x + self.o(y.transpose(1, 2).reshape(b, t, 32))



def mlp() -> nn.Module:
    return nn.Sequential(nn.Linear(32, 48), nn.GELU(), nn.Linear(48, 16))


@pytest.mark.parametrize(("make", "workloads"), [(mlp, 2), (Attention, 4)])
def test_models(make: Callable[[], nn.Module], workloads: int) -> None:
    """Products become workloads; those of q, k and v are one, listed once."""
    model = make().eval()
    exported = ft.export(model, (torch.randn(3, 7, 32),), dynamic_shapes=({0: BATCH, 1: LENGTH},))
    assert 'ukernel.shape = ["B", "T", 32' in exported.text
    assert "B = #ukernel.range<2 to 16>" in exported.text
    assert "T = #ukernel.range<2 to 128>" in exported.text
    assert list(exported.parameters) == [name for name, _ in model.named_parameters()]
    manifest = ftuner.compile(exported.text, max_kernels=2, emulate=True).manifest
    assert len(manifest["workloads"]) == workloads
    run = exported.compile(max_kernels=2, emulate=True)
    with torch.no_grad():
        for batch, length in ((3, 7), (2, 2), (5, 31)):
            x = torch.randn(batch, length, 32)
            assert relative_error(run(x), model(x)) < 1e-6


def test_several_arguments_and_results() -> None:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("scale", torch.randn(6))

        def forward(self, pair: tuple[Tensor, Tensor], z: Tensor) -> tuple[Tensor, Tensor]:
            product = pair[0] @ pair[1]
            return product * self.scale, product + z

    args = ((torch.randn(5, 4), torch.randn(4, 6)), torch.randn(5, 6))
    shapes = (({0: LENGTH}, None), {0: LENGTH})
    exported = ft.export(Model(), args, dynamic_shapes=shapes, name="pair")
    assert exported.name == "pair" and list(exported.parameters) == ["scale"]
    module = ftuner.compile(exported.text, max_kernels=1, emulate=True)
    x, y, z = torch.randn(9, 4), args[0][1], torch.randn(9, 6)
    scale = exported.parameters["scale"]
    for result, expected in zip(module["pair"](x, y, z, scale), ((x @ y) * scale, x @ y + z)):
        assert relative_error(result, expected) < 1e-6


def test_models_that_write_are_refused() -> None:
    class Counter(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("count", torch.zeros(()))

        def forward(self, x: Tensor) -> Tensor:
            self.count += 1
            return x + self.count

    with pytest.raises(ValueError, match="changes nothing"):
        ft.export(Counter(), (torch.randn(3),))


def test_embedding() -> None:
    """Where an index is out of range, the importer's assertion fails: NaN there, and only there."""
    model = nn.Sequential(nn.Embedding(50, 32), nn.Linear(32, 64))
    tokens = torch.randint(0, 50, (2, 7))
    exported = ft.export(model, (tokens,), dynamic_shapes=({1: LENGTH},))
    run = exported.compile(max_kernels=2, emulate=True)
    with torch.no_grad():
        for length in (2, 31):
            tokens = torch.randint(0, 50, (2, length))
            wanted = model(tokens)
            assert relative_error(run(tokens), wanted) < 1e-6
            tokens[0, 1], tokens[1, 0] = 50, -1
            result = run(tokens)
            is_bad = (tokens < 0) | (tokens >= 50)
            assert result[is_bad].isnan().all()
            assert relative_error(result[~is_bad], wanted[~is_bad]) < 1e-6


def test_bert() -> None:
    """A whole model: embeddings, also of integers, attention, layer norm."""
    transformers = pytest.importorskip("transformers")
    config = transformers.BertConfig(
        hidden_size=32,
        num_hidden_layers=1,
        num_attention_heads=4,
        intermediate_size=64,
        vocab_size=100,
        max_position_embeddings=64,
        attn_implementation="eager",
    )
    bert = transformers.BertModel(config, add_pooling_layer=False).eval()

    class Hidden(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.bert = bert

        def forward(self, tokens: Tensor) -> Tensor:
            return self.bert(tokens).last_hidden_state

    model = Hidden()
    tokens = torch.randint(0, 100, (2, 7))
    exported = ft.export(
        model, (tokens,), dynamic_shapes=({1: Dim("T", min=2, max=64)},)
    )
    run = exported.compile(max_kernels=2, emulate=True)
    with torch.no_grad():
        for length in (2, 7, 53):
            tokens = torch.randint(0, 100, (2, length))
            assert relative_error(run(tokens), model(tokens)) < 1e-6
