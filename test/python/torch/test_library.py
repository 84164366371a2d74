"""Functions of a process: compiled once by their content, under the name of each product."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch.nn.functional as F

import ftuner
import ftuner.torch as ft
import torch
from checks import COMPILER, check_model, compile_model, relative_error
from ftuner.frontend.torch import dynamo
from ftuner.frontend.torch.library import Library
from ftuner.frontend.torch.regions.linalg import Instruction, LinalgFunction, Range
from ftuner.frontend.torch.settings import Settings
from ftuner.host.function import Function
from product_functions import product_function
from torch import Tensor, nn

SETTINGS = Settings("h200", True, COMPILER)


def product(name: str, width: int, *, scale: float = 0.5) -> LinalgFunction:
    """x [d0, 16] by w [16, width], scaled."""
    return product_function(
        name=name,
        loops=("d0", width, 16),
        lhs=(0, 2),
        rhs=(2, 1),
        extras=(),
        num_scalars=0,
        epilogue=(Instruction("arith.mulf", ("x0", scale)),),
        result="v0",
        symbols=(("d0", Range(2, 32)),),
        types=("f32", "f32"),
        result_type="f32",
    )


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of the functions that the compiler gets."""
    names: list[str] = []
    original = ftuner.compile

    def record(text: str, **options: Any) -> ftuner.Module:
        names.append(text.split("@")[1].split("(")[0])
        return original(text, **options)

    monkeypatch.setattr(ftuner, "compile", record)
    return names


def test_functions_that_differ_only_in_name_are_one(compiled: list[str]) -> None:
    library = Library()
    names = ["mm_mul", "matmul_mul", "mm_mul"]
    built = library.get([product(name, 24) for name in names], SETTINGS)
    built += library.get([product("scaled", 24), product("scaled", 24, scale=2.0)], SETTINGS)
    assert compiled == ["mm_mul", "scaled"]
    assert ft.report().compiled == 2
    x, w = torch.randn(7, 16), torch.randn(16, 24)
    for function, name, scale in zip(built, [*names, "scaled", "scaled"], [0.5] * 4 + [2.0]):
        assert isinstance(function, Function)
        assert function.__name__ == function.signature.name == name
        assert str(function.signature).startswith(f"{name}(") and name in (function.__doc__ or "")
        assert function.report.function == name and function.report.sizes == ["d0"]
        assert relative_error(function(x, w), (x.double() @ w.double()) * scale) < 1e-6
        with pytest.raises(ValueError, match=f"^{name}: argument 1: expected shape"):
            function(x, x)


def test_files_count_by_what_they_hold(compiled: list[str], tmp_path: Path) -> None:
    """And where a library is kept does not count."""
    library, path = Library(), tmp_path / "device.json"

    def get(device: Any, **options: Any) -> None:
        (function,) = library.get(
            [product("mm", 20)], Settings(device, True, {**COMPILER, **options})
        )
        assert isinstance(function, Function)

    description = ftuner.devices()["h200"]
    for device in ("h200", "h200", description, dict(reversed(description.items()))):
        get(device)
    assert len(compiled) == 2
    for name in ("h200", "a100"):
        text = (ftuner.locations.find(ftuner.locations.DEVICES) / f"{name}.json").read_text()
        path.write_text(text)
        get(path)
        get(str(path))
    assert len(compiled) == 4
    get("h200", cache=False)
    assert len(compiled) == 4
    get("h200", max_kernels=2)
    assert len(compiled) == 5


def refuse(text: str, **options: object) -> ftuner.Module:
    name = text.split("@")[1].split("(")[0]
    raise ftuner.CompileError(f"cannot compile @{name}", f"'@{name}' is not @{name}er")


def test_errors_have_the_name_of_each_product(
    monkeypatch: pytest.MonkeyPatch, compiled: list[str]
) -> None:
    """They are not kept: the next attempt may succeed."""
    library = Library()
    functions = [product(name, 28) for name in ("first", "second", "first")]
    with monkeypatch.context() as patch:
        patch.setattr(ftuner, "compile", refuse)
        errors = library.get(functions, SETTINGS)
    for function, error in zip(functions, errors):
        assert isinstance(error, ftuner.CompileError)
        assert str(error) == f"cannot compile @{function.name}"
        assert error.diagnostics == f"'@{function.name}' is not @firster"
    assert not compiled and ft.report().compiled == 0
    assert all(isinstance(item, Function) for item in library.get(functions, SETTINGS))
    assert compiled == ["first"]


def run(*work: Callable[[], None]) -> None:
    """In a thread each."""
    threads = [threading.Thread(target=item) for item in work]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not any(thread.is_alive() for thread in threads)


def test_threads_share(compiled: list[str]) -> None:
    """Each asks for other functions in another order; each function is compiled by one of them."""
    library, widths = Library(), (8, 12, 32, 36)
    start, results = threading.Barrier(4), {}

    def work(number: int) -> None:
        order = [widths[(number + i) % 4] for i in range(3)]
        start.wait()
        functions = [product(f"mm{number}", width) for width in order]
        results[number] = zip(order, library.get(functions, SETTINGS))

    run(*(lambda number=number: work(number) for number in range(4)))
    assert len(compiled) == len(widths) == ft.report().compiled
    for number in range(4):
        for width, function in results[number]:
            x, w = torch.randn(5, 16), torch.randn(16, width)
            assert function.__name__ == f"mm{number}"
            assert relative_error(function(x, w), (x.double() @ w.double()) * 0.5) < 1e-6


def test_others_take_over_from_a_thread_that_is_interrupted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    original, library = ftuner.compile, Library()
    is_begun, may_fail = threading.Event(), threading.Event()
    raised: list[BaseException] = []
    built: list[Any] = []

    def interrupted(text: str, **options: Any) -> ftuner.Module:
        monkeypatch.setattr(ftuner, "compile", original)
        is_begun.set()
        assert may_fail.wait(60)
        raise ftuner.CacheError("no space left")

    def first() -> None:
        try:
            library.get([product("mm", 40)], SETTINGS)
        except ftuner.CacheError as error:
            raised.append(error)

    def second() -> None:
        assert is_begun.wait(60)
        threading.Timer(0.2, may_fail.set).start()
        built.extend(library.get([product("mm", 40), product("mm", 44)], SETTINGS))

    monkeypatch.setattr(ftuner, "compile", interrupted)
    run(first, second)
    assert [str(error) for error in raised] == ["no space left"]
    assert len(built) == 2 and all(isinstance(item, Function) for item in built)


class Layers(nn.Module):
    """Layers with numbers that can only be constants, and one that can be an argument."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(20, 16)
        self.norm, self.linear = nn.LayerNorm(16, eps=0.25), nn.Linear(16, 24)
        self.scale = 0.75

    def forward(self, tokens: Tensor) -> Tensor:
        return F.gelu(self.linear(self.norm(self.embedding(tokens))) * self.scale)


def test_constants_are_known_before_autograd_traces(monkeypatch: pytest.MonkeyPatch) -> None:
    traced: list[bool] = []
    original = dynamo.aot_autograd

    def count(**options: Any) -> Any:
        traced.append(True)
        return original(**options)

    monkeypatch.setattr(dynamo, "aot_autograd", count)
    model = Layers().eval()
    report = check_model(model, [(torch.randint(0, 20, (3, size)),) for size in (5, 9, 2)])
    assert len(traced) == 1
    assert report.graphs == report.taken == 1


def test_numbers_that_change() -> None:
    """An argument that is one is not compiled again; a constant is, and is right."""
    model = Layers().eval()
    compiled = compile_model(model)
    tokens = torch.randint(0, 20, (3, 7))
    with torch.no_grad():
        compiled(tokens)
        model.scale = -1.25
        with torch._dynamo.config.patch(error_on_recompile=True):
            assert relative_error(compiled(tokens), model(tokens)) < 1e-6
        model.norm.eps = 2.0
        assert relative_error(compiled(tokens), model(tokens)) < 1e-6
    assert ft.report().graphs == 2
