"""Forms of models that `ftuner.torch.export` takes, what they assume of sizes, and what they do."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from torch.export import Dim

import ftuner
import ftuner.torch as ft
import torch
from checks import relative_error
from torch import Tensor, nn

pytest.importorskip("iree.compiler")
pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning")

COMPILER: dict[str, Any] = {"device": "h200", "emulate": True, "max_kernels": 1}


def test_programs_and_files(tmp_path: Path) -> None:
    """A program and its file are the module, with its ranges; a program remembers names."""
    model = nn.Sequential(nn.Linear(3, 4), nn.ReLU()).eval()
    shapes = ({0: Dim("T", min=3, max=77)},)
    args = (torch.randn(5, 3),)
    program = torch.export.export(model, args, dynamic_shapes=shapes)
    file = tmp_path / "model.pt2"
    torch.export.save(program, file)
    given = [
        ft.export(model, args, dynamic_shapes=shapes),
        ft.export(program),
        ft.export(str(file)),
        ft.export(file, args, dynamic_shapes=shapes),
        ft.export(program, args, dynamic_shapes=({0: Dim("N")},)),
    ]
    symbols = []
    for exported in given:
        assert list(exported.parameters) == ["0.weight", "0.bias"]
        assert "#ukernel.range<3 to 77>" in exported.text
        symbols.append(exported.text.partition(" = #ukernel.range")[0].rpartition("{")[2])
    assert symbols[0] == symbols[1] == symbols[3] == "T" and symbols[4] == "N"
    assert symbols[2].startswith("s")
    run = given[2].compile(**COMPILER)
    x = torch.randn(7, 3)
    assert relative_error(run(x), model(x).detach()) < 1e-6
    # The program is as it was.
    assert torch.equal(program.module()(x), model(x))


def test_what_is_no_program(tmp_path: Path) -> None:
    file = tmp_path / "weights.pt2"
    torch.save({"x": torch.ones(3)}, file)
    with pytest.raises(ftuner.Error, match="expected a program of torch.export.save"):
        ft.export(file)
    with pytest.raises(ftuner.Error, match="cannot read"):
        ft.export(tmp_path / "missing.pt2")
    with pytest.raises(TypeError, match="model: expected a module, a program"):
        ft.export(lambda x: x, (torch.ones(3),))  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="args: expected a tuple"):
        ft.export(nn.Linear(3, 4))
    program = torch.export.export(nn.Linear(3, 4), (torch.ones(5, 3),))
    with pytest.raises(ValueError, match="unknown size 'T' of dimension 0, but it is 5"):
        ft.export(program, (torch.ones(5, 3),), dynamic_shapes=({0: Dim("T")},))


class Named(nn.Module):
    def forward(self, x: Tensor, *others: Tensor, scale: Tensor, **more: Tensor) -> Tensor:
        return x * scale + others[0] - more["offset"]


def test_arguments_by_name() -> None:
    """Keyword arguments follow the others in the order of the parameters."""
    x, other = torch.randn(4, 3), torch.randn(4, 3)
    named = {"offset": torch.randn(3), "scale": torch.randn(4, 1)}
    dim = Dim("T", max=64)
    shapes = {"x": {0: dim}, "scale": {0: dim}, "others": ({0: dim},)}
    exported = ft.export(Named(), (x, other), named, dynamic_shapes=shapes)
    run = exported.compile(**COMPILER)
    assert run.signature.symbols == ("T",)
    expected = Named()(x, other, **named)
    assert torch.allclose(run(x, other, named["scale"], named["offset"]), expected)


class Assuming(nn.Module):
    """Rows in pairs, no more than 19 of them, and a second argument of twice the length."""

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        torch._check(x.shape[0] % 2 == 0)
        half = torch.zeros(int(x.shape[0] * 0.1) + 1)
        return x.view(-1, 2, 3).sum(1).sum() + half + y.sum()


def test_assumed_sizes() -> None:
    """Sizes for which the trace is wrong are refused, in the model's names."""
    dim = Dim("T", min=1, max=64)
    args = (torch.randn(6, 3), torch.randn(12))
    exported = ft.export(Assuming(), args, dynamic_shapes=({0: dim}, {0: 2 * dim}))
    run = exported.compile(**COMPILER)
    x, y = torch.randn(2, 3), torch.randn(4)
    assert relative_error(run(x, y), Assuming()(x, y)) < 1e-6
    for rows, length, words in (
        (3, 6, r"expected \(T % 2\) == 0, as the model was traced for"),
        (20, 40, r"expected int\(0.1\*float\(T\)\) == 0, as the model was traced for"),
        (4, 7, r"expected y.shape\[0\] == \(2\*T\), as the model was traced for"),
    ):
        with pytest.raises(ftuner.Error, match=words):
            run(torch.randn(rows, 3), torch.randn(length))


def test_specialized_sizes() -> None:
    """PyTorch's refusal is one sentence in the model's names."""

    class Steps(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return x + torch.linspace(0, 1, x.shape[0])

    with pytest.raises(ftuner.CompileError, match="torch.export does not take it") as refused:
        ft.export(Steps(), (torch.randn(5),), dynamic_shapes=({0: Dim("T", max=9)},))
    message = str(refused.value)
    assert len(message.splitlines()) == 1 and "x.shape[0]" in message and "L[" not in message


def test_models_in_training_mode() -> None:
    """Refusals name a module's side effects, and give useful advice."""
    norm = nn.Sequential(nn.Linear(8, 8), nn.BatchNorm1d(8))
    x = torch.randn(6, 8)
    shapes = ({0: Dim("T", min=2, max=64)},)
    words = r"BatchNorm1d '1' writes the buffer '1.running_mean'.*call model.eval\(\)"
    with pytest.raises(ValueError, match=words):
        ft.export(norm, (x,), dynamic_shapes=shapes)
    words = r"without random numbers, but Dropout '1' draws them.*call model.eval\(\)"
    with pytest.raises(ValueError, match=words):
        ft.export(nn.Sequential(nn.Linear(8, 8), nn.Dropout(0.1)), (x,), dynamic_shapes=shapes)
    # A model that draws in evaluation, too, has no use for that advice.
    with pytest.raises(
        ValueError, match="without random numbers, but its Drawing draws"
    ) as refused:
        ft.export(Drawing().eval(), (x,))
    assert "eval()" not in str(refused.value) and "test_programs.py:" in str(refused.value)
    ft.export(norm.eval(), (x,), dynamic_shapes=shapes)


class Drawing(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x + torch.rand(8)


def test_writes_as_results() -> None:
    """New values of buffers and arguments are results, and nothing is written."""
    norm = nn.BatchNorm1d(8)

    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.norm = norm

        def forward(self, x: Tensor, cache: Tensor) -> Tensor:
            cache.add_(x.sum(0))
            return self.norm(x) + cache

    args = (torch.randn(6, 8), torch.randn(8))
    shapes = ({0: Dim("T", min=2, max=64)}, None)
    with pytest.raises(ValueError, match="or take what it writes as results"):
        ft.export(Model(), args, dynamic_shapes=shapes)
    exported = ft.export(Model(), args, dynamic_shapes=shapes, mutations="results")
    assert exported.written == (
        "norm.running_mean",
        "norm.running_var",
        "norm.num_batches_tracked",
        "cache",
    )
    run = exported.compile(**COMPILER)
    x, cache = torch.randn(9, 8), torch.randn(8)
    before = cache.clone()
    result, mean, variance, count, new_cache = run(x, cache)
    assert torch.equal(cache, before) and norm.num_batches_tracked == 0
    expected = Model()(x, cache).detach()
    for actual, exact in (
        (result, expected),
        (mean, norm.running_mean),
        (variance, norm.running_var),
        (new_cache, cache),
    ):
        assert relative_error(actual, exact) < 1e-5
    assert count == 1
    with pytest.raises(ValueError, match="expected mutations 'refused' or 'results'"):
        ft.export(norm, args, mutations="allowed")
