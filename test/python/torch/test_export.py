"""Whole models through torch-mlir's importer."""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Callable
from typing import Any

import pytest
from torch.export import Dim

import ftuner
import ftuner.torch as ft
import torch
from checks import relative_error
from scale import SCALE
from torch import Tensor, nn

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


@pytest.mark.parametrize(
    ("dim", "expected"),
    [
        (Dim("B", min=1, max=16), "B = #ukernel.range<1 to 16>"),
        (Dim("B", max=16), "B = #ukernel.range<1 to 16>"),
        (BATCH, "B = #ukernel.range<2 to 16>"),
        (Dim("B", min=3), r"B = #ukernel.range<3 to \?>"),
        (Dim.DYNAMIC, r"s[0-9]+ = #ukernel.range<1 to \?>"),
    ],
)
def test_ranges(dim: Any, expected: str) -> None:
    """Ranges are those that the user declares: a batch of 1 is in them, whatever PyTorch traces."""
    exported = ft.export(mlp(), (torch.randn(4, 32),), dynamic_shapes=({0: dim},))
    assert re.search(expected, exported.text)


def test_range_of_a_derived_size() -> None:
    """The size of a product of two dimensions begins at the least of both."""
    heads = Dim("H", min=1, max=8)
    exported = ft.export(
        mlp(), (torch.randn(6, 3, 32),), dynamic_shapes=({0: 2 * heads, 1: Dim("T", max=4)},)
    )
    assert "range<2 to 16>" in exported.text
    assert "T = #ukernel.range<1 to 4>" in exported.text


@pytest.mark.parametrize(("make", "workloads"), [(mlp, 2), (Attention, 6)])
def test_models(make: Callable[[], nn.Module], workloads: int) -> None:
    """Products and rows become workloads; the products of q, k and v are one."""
    model = make().eval()
    exported = ft.export(model, (torch.randn(3, 7, 32),), dynamic_shapes=({0: BATCH, 1: LENGTH},))
    assert 'ukernel.shape = ["B", "T", 32' in exported.text
    assert "B = #ukernel.range<2 to 16>" in exported.text
    assert "T = #ukernel.range<2 to 128>" in exported.text
    own = [name for name in exported.parameters if not name.startswith("folded.")]
    assert own == [
        name for name, _ in model.named_parameters() if name[:2] not in ("q.", "k.", "v.")
    ]
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


def test_names_beyond_ascii() -> None:
    """Each name is a separate symbol."""

    class Model(nn.Module):
        def forward(self, x: Tensor, y: Tensor) -> Tensor:
            return x @ y

    shapes = ({0: Dim("größe", min=2, max=64)}, {1: Dim("gräße", min=2, max=32)})
    args = (torch.randn(4, 8), torch.randn(8, 3))
    run = ft.export(Model(), args, dynamic_shapes=shapes).compile(emulate=True, max_kernels=1)
    assert run.signature.symbols == ("gr__e", "gr__e_")
    x, y = torch.randn(37, 8), torch.randn(8, 5)
    assert relative_error(run(x, y), x.double() @ y.double()) < 1e-6


def test_shapes_by_names_of_parameters() -> None:
    class Model(nn.Module):
        def forward(self, x: Tensor, scale: float, *others: Tensor) -> Tensor:
            return x @ others[0] * scale + others[1]

    args = (torch.randn(4, 8), 2.5, torch.randn(8, 3), torch.randn(3))
    shapes = {"others": ({1: LENGTH}, {0: LENGTH}), "x": {0: BATCH}}
    exported = ft.export(Model(), args, dynamic_shapes=shapes)
    run = exported.compile(emulate=True, max_kernels=1)
    assert run.signature.symbols == ("B", "T")
    # Numbers are part of the function.
    x, y, z = torch.randn(6, 8), torch.randn(8, 11), torch.randn(11)
    assert relative_error(run(x, y, z), x.double() @ y.double() * 2.5 + z) < 1e-6
    with pytest.raises(ValueError, match="some of the arguments x, scale, others, but got 'y'"):
        ft.export(Model(), args, dynamic_shapes={"y": {0: BATCH}})


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


def test_constants_are_parameters() -> None:
    """Larger tensors that the model holds without registering them are arguments, too."""

    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.scale = [torch.randn(40)]

        def forward(self, x: Tensor) -> Tensor:
            return x * self.scale[0] + torch.tensor([1.0, 2.0])[0]

    model = Model()
    exported = ft.export(model, (torch.randn(5, 40),), dynamic_shapes=({0: LENGTH},))
    assert [tensor.numel() for tensor in exported.parameters.values()] == [40]
    run = exported.compile(emulate=True)
    for length in (2, 9):
        x = torch.randn(length, 40)
        assert relative_error(run(x), model(x)) < 1e-6


class Sorted(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return torch.sort(x, -1).values


class Unknown(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return torch.special.airy_ai(x)


class Remainder(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return torch.fmod(x.int(), 3)


@pytest.mark.parametrize(
    ("model", "operator"),
    [
        (Sorted(), "sort"),
        (Unknown(), "special_airy_ai"),
        (Remainder(), "fmod"),
    ],
)
def test_refused_operators(model: nn.Module, operator: str) -> None:
    """One sentence with the operator and the line of the model."""
    with pytest.raises(ftuner.CompileError) as refused:
        ft.export(model, (torch.randn(3, 4),))
    line = model.forward.__code__.co_firstlineno + 1
    message = str(refused.value)
    assert (
        f"the operator {operator} is not supported: " in message
        and f"test_export.py:{line})" in message
    )
    assert len(message.splitlines()) == 1


class Returning(nn.Module):
    def __init__(self, result: Any) -> None:
        super().__init__()
        self.result = result

    def forward(self, x: Tensor) -> Any:
        return [x + 1, {"other": self.result(x)}]


class Branching(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return torch.cond(x.sum() > 0, lambda y: y + 1, lambda y: y * 2, (x,))


class Distances(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return nn.functional.pdist(x)


@pytest.mark.parametrize(
    ("model", "words"),
    [
        (Returning(lambda x: None), "expected tensors as results, but result 1 is None"),
        (Returning(lambda x: 3), "expected tensors as results, but result 1 is a number"),
        (Returning(lambda x: x.shape[0]), "expected tensors as results, but result 1 is a number"),
        (Branching(), "the operator cond is not supported: .*; .*"),
        (Distances(), "the operator pdist is not supported: torch-mlir .*; .*test_export.py:\\d+"),
    ],
)
def test_refused_models(model: nn.Module, words: str) -> None:
    with pytest.raises(ftuner.CompileError, match=words) as refused:
        ft.export(model, (torch.randn(3, 4),), dynamic_shapes=({0: Dim("T", min=2, max=9)},))
    assert len(str(refused.value).splitlines()) == 1


def test_places_in_the_model() -> None:
    """FTuner's reports about kernels name lines of the model."""

    class Flipped(Attention):
        def forward(self, x: Tensor) -> Tensor:
            return super().forward(x).flip(1)

    exported = ft.export(Flipped().eval(), (torch.randn(3, 7, 32),))
    run = exported.compile(max_kernels=1, emulate=True)
    places = [kernel["location"] for kernel in run.report.data["fallback_kernels"]]
    assert places and all("test_export.py:" in place for place in places)


CONVOLUTIONS = [
    nn.Conv2d(3, 8, (3, 2), stride=(2, 1), padding=(0, 2), dilation=(1, 2), bias=False),
    nn.Conv1d(3, 8, 5, stride=2, padding=1),
    nn.Conv2d(3, 8, 1, stride=2),
    nn.Conv2d(4, 8, 3, groups=2),
    nn.Conv2d(3, 8, 3, padding=1),
    nn.ConvTranspose2d(4, 6, (4, 3), stride=2, padding=(1, 0), output_padding=1, groups=2),
    nn.ConvTranspose1d(3, 5, 3, stride=3, padding=1, dilation=2),
]


@pytest.mark.parametrize("layer", CONVOLUTIONS)
def test_convolutions(layer: nn.Module) -> None:
    def image(batch: int, height: int, width: int) -> Tensor:
        size = (height, width) if len(layer.kernel_size) == 2 else (width,)
        return torch.randn(batch, layer.in_channels, *size)

    shapes = {0: BATCH, 2: Dim("W", min=8, max=64)}
    if len(layer.kernel_size) == 2:
        shapes = {0: BATCH, 2: Dim("H", min=8, max=64), 3: Dim("W", min=8, max=64)}
    model = nn.Sequential(layer, nn.ReLU())
    exported = ft.export(model, (image(3, 9, 11),), dynamic_shapes=(shapes,))
    run = exported.compile(max_kernels=1, emulate=True)
    assert run.report.products == 1
    assert run.report.fallback_kernels == 0
    with torch.no_grad():
        for size in ((3, 9, 11), (2, 8, 20)):
            x = image(*size)
            assert relative_error(run(x), model(x)) < 1e-6


def test_missing_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "iree.compiler.extras.fx_importer", None)
    with pytest.raises(ImportError, match="ftuner.torch.export needs the package iree-base"):
        ft.export(mlp(), (torch.randn(3, 32),))


def test_embedding() -> None:
    """An index out of range fails the importer's assertion: NaN there, and only there."""
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


DTYPES = [torch.float32, torch.int8, torch.float16, torch.int64]


@pytest.mark.parametrize("dtype", DTYPES[: None if SCALE > 1 else 2])
def test_reads_outside(dtype: torch.dtype) -> None:
    """An element outside is NaN, or 0, for every operator that asks for it, and is never read."""

    class Reads(nn.Module):
        def forward(self, x: Tensor, i: Tensor, g: Tensor) -> tuple[Tensor, ...]:
            return x[i], x.index_select(0, i), x[i, i % 3], torch.gather(x, 0, g)

    x = (torch.arange(12) + 1).reshape(4, 3).to(dtype)
    index = torch.tensor([3, -1, 4, 100000, 2**32, -5])
    grid = torch.tensor([[0, 1, 2], [3, 50, 2**33]])
    run = ft.export(Reads(), (x, index, grid)).compile(max_kernels=1, emulate=True)
    absent = math.nan if dtype.is_floating_point else 0

    def read(*indices: int) -> Any:
        inside = all(0 <= i < size for i, size in zip(indices, x.shape))
        return x[indices].item() if inside else absent

    def wrap(i: int, size: int) -> int:
        return i + size if i < 0 else i

    i = index.tolist()
    picked = [[read(wrap(r, 4), c) for c in range(3)] for r in i]
    # A negative index of `index_select` and `gather` lies outside.
    selected = [[read(r, c) for c in range(3)] for r in i]
    expected = [
        picked,
        selected,
        [read(wrap(r, 4), r % 3) for r in i],
        [[read(r, c) for c, r in enumerate(row)] for row in grid.tolist()],
    ]
    for result, wanted in zip(run(x, index, grid), expected):
        assert torch.equal(result.nan_to_num(-1), torch.tensor(wanted).nan_to_num(-1).to(dtype))


class Numbers(nn.Module):
    def forward(self, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        return torch.softmax(x, 0) + y, torch.log_softmax(x, -1) + y


def test_softmax_of_a_number() -> None:
    """torch-mlir's importer does not end with it."""
    inputs = torch.tensor(3.0), torch.tensor(0.5)
    function = ft.export(Numbers(), inputs).compile(max_kernels=1, emulate=True)
    torch.testing.assert_close(function(*inputs), Numbers()(*inputs))


class Groups(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return nn.functional.group_norm(x, 2)


def test_group_norm_without_elements() -> None:
    x = torch.randn(0, 4, 3)
    function = ft.export(Groups(), (x,)).compile(max_kernels=1, emulate=True)
    assert function(x).shape == x.shape
