"""Calls with PyTorch tensors in which no Python runs, and those that Python's code serves all the same."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

import ftuner
import ftuner.torch as ft
import torch
from checks import OPTIONS, relative_error
from ftuner.host.function import Function
from ftuner.host.memory import torch_calls
from handmade import SCALAR_TYPES
from torch import Tensor, nn

PACKAGE = str(Path(ftuner.__file__).parent)
INDUCTOR = {**OPTIONS, "host": "inductor"}


@pytest.fixture(scope="module", autouse=True)
def compiled_module() -> None:
    """The machine of the tests has a C++ compiler and the headers of Python."""
    assert torch_calls.build() is not None, torch_calls.reason()


@pytest.fixture
def frames() -> Iterator[list[str]]:
    """Functions of FTuner's Python code that run after the list was cleared."""
    seen: list[str] = []

    def note(frame: FrameType, event: str, _: Any) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(PACKAGE):
            seen.append(frame.f_code.co_name)

    sys.setprofile(note)
    yield seen
    sys.setprofile(None)


def by_python(function: Function) -> Function:
    """Returns the function with calls that only Python handles."""
    other = function.renamed(function.__name__)
    other._fast = False
    return other


def outcome(call: Callable[[], Any]) -> Any:
    """Returns a call's result, or its error."""
    try:
        return call()
    except (TypeError, ValueError, ftuner.Error) as error:
        return type(error), str(error)


def test_a_call_of_the_package(handmade: ftuner.Module, frames: list[str]) -> None:
    """Nothing but the call itself runs."""
    x, out = torch.randn(5, 4), torch.empty(5, 4)
    # The second call is the first that is served, and the process heeds signals from then on.
    handmade.scale(x, 2.5)
    handmade.scale(x, 2.5)
    frames.clear()
    result = handmade.scale(x, 2.5)
    # A workspace is part of it.
    assert handmade.scale(x, -1.0, out=out) is out
    assert [name for name in frames if name != "__getattr__"] == []
    assert torch.equal(result, x * 2.5) and torch.equal(out, -x)
    (written,) = (outs := [torch.empty(5, 4)])
    assert handmade.scale(x, 3.0, out=outs) is outs and torch.equal(written, x * 3)
    assert handmade.scale(torch.empty(0, 4), 2.0).shape == (0, 4)
    assert torch.equal(handmade.scale(nn.Parameter(x, requires_grad=False), 2.0), x * 2)
    frames.clear()
    # As a module with one function calls it.
    assert handmade.scale(x, 2.0, out=out, stream=None) is out and torch.equal(out, x * 2)
    assert torch.equal(handmade.scale(x, 2, out=None), x * 2)
    assert [name for name in frames if name != "__getattr__"] == []


def test_several_results(handmade: ftuner.Module, frames: list[str]) -> None:
    join = handmade["join"]
    a, b = torch.randn(3, 5), torch.randn(5, 7, dtype=torch.float64)
    join(a, b, 4)
    join(a, b, 4)
    frames.clear()
    first, second = join(a, b, 4)
    assert frames == []
    assert torch.equal(first, a) and torch.equal(second, b[:, :, None] * torch.arange(4))
    # The shape depends on a scalar.
    assert join(a, b, 2)[1].shape == (5, 7, 2)


@pytest.mark.parametrize("name", SCALAR_TYPES)
def test_scalars(handmade: ftuner.Module, name: str) -> None:
    numbers: dict[str, list[Any]] = {
        "i1": [True, False, 1],
        **{
            f"i{bits}": [3, -(2 ** (bits - 1)), 2**bits - 1, 2**bits, 0.5]
            for bits in (8, 16, 32, 64)
        },
    }
    dtypes = {
        "f16": "float16",
        "bf16": "bfloat16",
        "f32": "float32",
        "f64": "float64",
        "i1": "bool",
    }
    fill = handmade[f"fill_{name}"]
    x = torch.ones(5).to(getattr(torch, dtypes.get(name) or f"int{name[1:]}"))
    for number in numbers.get(name) or [0.1, 1e300, float("inf"), -0.0, 7, True, "7", None]:
        results = [outcome(lambda f=f: f(x, number)) for f in (fill, by_python(fill))]
        if isinstance(results[0], tuple):
            assert results[0] == results[1]
        else:
            first, second = (result.view(torch.uint8) for result in results)
            assert results[0].dtype == x.dtype and torch.equal(first, second), number


class Subclass(Tensor):
    """A tensor with another type."""


def declined() -> dict[str, Callable[[Function], Any]]:
    """Calls of `scale` that Python's code serves."""
    x, out = torch.arange(20.0).reshape(5, 4), torch.empty(5, 4)
    memory = torch.empty(81, dtype=torch.uint8)
    needs = x.clone().requires_grad_()
    whole = torch.empty(10, 4)
    return {
        "subclass": lambda f: f(x.as_subclass(Subclass), 2.0),
        "strides": lambda f: f(torch.randn(4, 5).T, 2.0),
        "type": lambda f: f(x.double(), 2.0),
        "rank": lambda f: f(x[None], 2.0),
        "size": lambda f: f(torch.randn(5, 3), 2.0),
        "sparse": lambda f: f(x.to_sparse(), 2.0),
        "meta": lambda f: f(x.to("meta"), 2.0),
        "negated": lambda f: f(torch._neg_view(x), 2.0),
        "gradient": lambda f: f(needs, 2.0),
        "gradient of out": lambda f: f(x, 2.0, out=torch.empty(5, 4, requires_grad=True)),
        "misaligned": lambda f: f(memory[1:].view(torch.uint8)[:80].numpy(), 2.0),
        "array": lambda f: f(x.numpy(), 2.0),
        "few": lambda f: f(x),
        "many": lambda f: f(x, 2.0, 3.0),
        "no tensor": lambda f: f(2.0, x),
        "word": lambda f: f(x, arg1=2.0),
        "stream": lambda f: f(x, 2.0, stream=3),
        "overlap": lambda f: f(x, 2.0, out=x),
        "part": lambda f: f(whole[:5], 2.0, out=whole[4:9]),
        "shape of out": lambda f: f(x, 2.0, out=torch.empty(4, 4)),
        "type of out": lambda f: f(x, 2.0, out=torch.empty(5, 4).double()),
        "strides of out": lambda f: f(x, 2.0, out=torch.empty(4, 5).T),
        "outs": lambda f: f(x, 2.0, out=[out, out]),
        "no out": lambda f: f(x, 2.0, out=()),
    }


@pytest.mark.parametrize("case", declined())
def test_what_is_declined(handmade: ftuner.Module, case: str) -> None:
    """It becomes what it was: a result, or an error in the same words."""
    call = declined()[case]
    function = handmade.scale
    function(torch.ones(2, 4), 1.0)
    assert function._fast
    given, wanted = (outcome(lambda f=f: call(f)) for f in (function, by_python(function)))
    assert type(given) is type(wanted)
    if isinstance(given, Tensor):
        assert torch.equal(given, wanted)
    elif isinstance(given, tuple):
        assert given == wanted
    with torch.no_grad():
        given, wanted = (outcome(lambda f=f: call(f)) for f in (function, by_python(function)))
        assert type(given) is type(wanted)


def test_gradients_are_for_who_asks(handmade: ftuner.Module) -> None:
    x = torch.ones(2, 4, requires_grad=True)
    with torch.no_grad():
        assert not handmade.scale(x, 2.0).requires_grad
    with torch.inference_mode():
        result = handmade.scale(torch.ones(2, 4), 2.0)
        assert result.is_inference() and torch.equal(result, torch.full((2, 4), 2.0))


def test_modes_see_calls(handmade: ftuner.Module) -> None:
    """A mode of Python is asked for the memory, as without the module."""
    from torch.utils._python_dispatch import TorchDispatchMode

    seen: list[str] = []

    class Mode(TorchDispatchMode):
        def __torch_dispatch__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            seen.append(str(func))
            return func(*args, **(kwargs or {}))

    x = torch.ones(2, 4)
    handmade.scale(x, 2.0)
    with Mode():
        handmade.scale(x, 2.0)
    assert "aten.empty.memory_format" in seen


def test_memory_is_filled_where_pytorch_fills_it(handmade: ftuner.Module) -> None:
    """The fixture of these tests has PyTorch fill new memory."""
    place = handmade.place(torch.empty(0))
    assert place.dtype == torch.int64
    result = torch.empty(3)
    assert result.isnan().all()


def test_errors_of_the_runtime(handmade: ftuner.Module, tmp_path: Path) -> None:
    """A function that fails says why, by the name that it has."""
    from handmade import build_handmade

    library = ftuner.load(build_handmade(tmp_path, host_images=0))
    x = torch.ones(2, 4)
    results = [outcome(lambda f=f: f(x, 2.0)) for f in (library.scale, by_python(library.scale))]
    assert results[0] == results[1] and results[0][0] is ftuner.Error
    renamed = handmade.scale.renamed("other")
    assert renamed(x, 1.0).shape == (2, 4) and renamed._fast is not handmade.scale._fast
    with pytest.raises(ValueError, match="other: argument 0: expected shape"):
        renamed(torch.ones(2, 3), 1.0)


def test_threads(handmade: ftuner.Module) -> None:
    failures: list[Any] = []

    def work(number: int) -> None:
        try:
            for size in range(1, 200):
                x = torch.full((size % 17 + 1, 4), float(number))
                if not torch.equal(handmade.scale(x, 2.0), x * 2):
                    failures.append(size)
        except BaseException as error:  # noqa: BLE001
            failures.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_references(handmade: ftuner.Module) -> None:
    """Nothing is kept of a call, served or declined."""
    x, out = torch.ones(64, 4), torch.empty(64, 4)
    handmade.scale(x, 2.0)
    counts = [sys.getrefcount(one) for one in (x, out, 2.0, None)]
    for _ in range(1000):
        handmade.scale(x, 2.0, out=out)
        handmade.scale(x, 2.0)
        handmade["join"](x, torch.ones(4, 2, dtype=torch.float64), 2)
        outcome(lambda: handmade.scale(x, 2.0, out=x))
    for before, one in zip(counts, (x, out, 2.0, None)):
        assert abs(sys.getrefcount(one) - before) < 500


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.up, self.down = nn.Linear(16, 40), nn.Linear(40, 16)

    def forward(self, x: Tensor) -> Tensor:
        return self.down(nn.functional.gelu(self.up(x)))


@pytest.mark.parametrize("host", ["inductor", "eager"])
@pytest.mark.parametrize("rows", ["never", "always"])
def test_a_call_in_a_graph(host: str, rows: str, frames: list[str]) -> None:
    model = (nn.Sequential(Model(), nn.Softmax(-1)) if rows == "always" else Model()).eval()
    options = {**OPTIONS, "host": host, "rows": rows}
    compiled = torch.compile(model, backend="ftuner", dynamic=True, options=options)
    with torch.no_grad():
        for size in (9, 5):
            compiled(torch.randn(size, 16))
        ft.reset_report()
        x = torch.randn(7, 16)
        frames.clear()
        result = compiled(x)
        sys.setprofile(None)
        assert frames == [], frames
        assert relative_error(result, model(x)) < 1e-6
    report = ft.report()
    assert report.calls == 2 + (rows == "always") and report.copied_arguments == 0
    assert report.python_calls == "" and "Python's code" not in str(report)


def test_what_a_graph_declines(frames: list[str]) -> None:
    """A view that is not contiguous is copied, and counted."""

    def model(x: Tensor, w: Tensor) -> Tensor:
        return x @ w

    compiled = torch.compile(model, backend="ftuner", dynamic=True, options=OPTIONS)
    w = torch.randn(24, 40)
    with torch.no_grad():
        memory = torch.randn(6 * 24 * 4 + 1).view(torch.uint8)
        compiled(torch.randn(6, 24), w)
        ft.reset_report()
        x = memory[1 : 1 + 6 * 24 * 4].clone()[:].view(torch.float32).reshape(6, 24)
        odd = torch.frombuffer(bytearray(6 * 24 * 4 + 2), dtype=torch.float32, offset=2, count=144)
        odd = odd.reshape(6, 24)
        odd.copy_(x)
        assert torch.equal(compiled(odd, w), compiled(x, w))
    assert ft.report().calls == 2 and ft.report().copied_arguments == 1


@pytest.mark.parametrize("host", ["inductor", "eager"])
def test_who_computes_is_decided_once(host: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """With sizes that are PyTorch's, and others, in one graph."""
    from dataclasses import replace

    from ftuner.frontend.torch.regions import choice as choices

    choose = choices.choose

    def chosen(*arguments: Any) -> Any:
        choice = choose(*arguments)
        some = replace(choice.intervals[0], low=(1, 1, 1), high=(8, None, None), is_ftuners=True)
        others = replace(some, low=(9, 1, 1), high=(None, None, None), is_ftuners=False)
        return replace(choice, intervals=(some, others))

    monkeypatch.setattr(choices, "choose", chosen)
    model = nn.Linear(16, 24).eval()
    options = {**OPTIONS, "host": host, "take": "faster"}
    compiled = torch.compile(model, backend="ftuner", dynamic=True, options=options)
    with torch.no_grad():
        for size in (6, 20, 6, 8, 9, 20):
            x = torch.randn(size, 16)
            assert relative_error(compiled(x), model(x)) < 1e-6
    assert (ft.report().calls, ft.report().pytorch_calls) == (3, 3)


def test_profilers_see_the_operator() -> None:
    model = nn.Linear(16, 24).eval()
    compiled = torch.compile(model, backend="ftuner", dynamic=True, options=INDUCTOR)
    with torch.no_grad():
        x = torch.randn(6, 16)
        compiled(x)
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
            compiled(x)
    assert any("ftuner::" in event.name for event in profile.events())
    assert ft.report().calls == 2


def test_scalars_of_a_graph() -> None:
    """Their values at the call count."""
    layer = nn.Linear(16, 24).eval()
    scale = torch.tensor(0.5)

    def model(x: Tensor) -> Tensor:
        return layer(x) * scale

    for host in ("inductor", "eager"):
        torch._dynamo.reset()
        options = {**OPTIONS, "host": host}
        compiled = torch.compile(model, backend="ftuner", dynamic=True, options=options)
        with torch.no_grad():
            for value in (0.5, 2.0, -1.0):
                scale.fill_(value)
                x = torch.randn(6, 16)
                assert relative_error(compiled(x), model(x)) < 1e-6


def test_in_code_that_pytorch_compiles(handmade: ftuner.Module) -> None:
    """PyTorch's compiler leaves a call to Python, and compiles what is around it."""

    def model(x: Tensor) -> Tensor:
        scaled: Tensor = handmade.scale(x + 1, 2.0)
        return scaled - 1

    compiled = torch.compile(model, backend="eager")
    x = torch.randn(5, 4)
    for _ in range(2):
        assert torch.equal(compiled(x), (x + 1) * 2 - 1)


def test_transforms(handmade: ftuner.Module) -> None:
    """A tensor of vmap lacks memory that a function could read, on every path of a call."""
    x = torch.ones(3, 2, 4)
    given, wanted = (_vmap(f, x) for f in (handmade.scale, by_python(handmade.scale)))
    assert given == wanted


def _vmap(function: Function, x: Tensor) -> tuple[str, str]:
    try:
        torch.vmap(lambda one: function(one, 2.0))(x)
    except Exception as error:  # noqa: BLE001
        return type(error).__name__, str(error).splitlines()[0]
    return "", ""


def test_threads_of_a_graph() -> None:
    """Threads that call a graph for the first time, which makes its functions, and again."""
    model = nn.Linear(16, 24).eval()
    compiled = torch.compile(model, backend="ftuner", dynamic=True, options=INDUCTOR)
    with torch.no_grad():
        compiled(torch.randn(6, 16))
    errors: list[float] = []

    def work() -> None:
        with torch.no_grad():
            for size in range(2, 60):
                x = torch.randn(size, 16)
                errors.append(relative_error(compiled(x), model(x)))

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(errors) == 3 * 58 and max(errors) < 1e-6
    assert ft.report().calls == 3 * 58 + 1


INTERRUPT = """
import os, signal, sys, threading
import torch, ftuner
from ftuner.host.memory import torch_calls
assert torch_calls.build() is not None
class Stop(Exception): pass
def stop(*_): raise Stop
signal.signal(signal.SIGUSR1, stop)
module = ftuner.compile(sys.argv[1], emulate=True, max_kernels=1)
a, b = torch.randn(6000, 1024), torch.randn(1024, 1024)
small = a[:5].clone()
module(small, b)
(function,) = module.functions.values()
assert function._fast
threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGUSR1)).start()
try:
    while True:
        module(a, b)
except Stop:
    pass
assert torch.allclose(module(small, b), small @ b, rtol=1e-3, atol=1e-3)
print("stopped")
"""


def test_interrupts() -> None:
    """A handler's exception ends a call in the emulator, and the next call runs."""
    sys.path.insert(0, str(Path(__file__).parents[1]))
    from test_interrupts import SOURCE

    done = subprocess.run(
        [sys.executable, "-c", INTERRUPT, SOURCE],
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0 and done.stdout == "stopped\n", done.stderr


MISSING_LIBRARY = """
import torch, ftuner, ftuner.torch as ft
from torch import nn
model = nn.Linear(16, 24).eval()
options = {"device": "h200", "take": "all", "max_kernels": 1, "cost_model": "sia"}
compiled = torch.compile(model, backend="ftuner", dynamic=True, options=options)
with torch.no_grad():
    x = torch.randn(6, 16)
    for _ in range(2):
        assert torch.allclose(compiled(x), model(x), atol=1e-5)
report = ft.report()
assert report.calls == 2
print(report.python_calls)
print("Python's code runs in calls: " in str(report))
"""


def test_report_without_the_module(tmp_path: Path) -> None:
    """Calls are Python's, and the report says why."""
    environment = {
        **os.environ, "FTUNER_CACHE_DIR": str(tmp_path / "cache"), "CXX": "no-compiler",
        "TORCHINDUCTOR_CACHE_DIR": str(tmp_path / "inductor"),
    }  # fmt: skip
    done = subprocess.run(
        [sys.executable, "-c", MISSING_LIBRARY],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    words = "cannot find a C++ compiler for ftuner_torch_calls.so: looked for 'no-compiler'"
    assert done.stdout.startswith(words) and done.stdout.endswith("True\n"), done.stdout


@pytest.mark.parametrize(
    ("variable", "value", "words"),
    [
        ("CXX", "false", "cannot compile ftuner_torch_calls.so: "),
        ("FTUNER_NATIVE_CALLS", "0", "FTUNER_NATIVE_CALLS is 0"),
        ("FTUNER_CACHE_DIR", "/proc/ftuner", "cannot use the compile cache '/proc/ftuner'"),
    ],
)
def test_without_the_module(
    variable: str, value: str, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, state in (("_module", None), ("_reason", None), ("_is_final", False)):
        monkeypatch.setattr(torch_calls, name, state)
    monkeypatch.setenv("FTUNER_CACHE_DIR", str(tmp_path))
    monkeypatch.setenv(variable, value)
    # A call looks for it, and compiles nothing.
    assert torch_calls.find() is None
    assert torch_calls.build() is None and torch_calls.reason().startswith(words)
    assert not list(tmp_path.glob("torch/*/*"))
