"""Inductor as host: FTuner's products in its graphs, beside its own kernels."""

from __future__ import annotations

import copy
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch._inductor.config
from torch._dynamo.utils import counters
from torch._inductor.custom_graph_pass import CustomGraphPass
from torch._inductor.utils import run_and_get_code

import ftuner
import ftuner.torch as ft
import torch
from checks import COMPILER, OPTIONS, check_gradients, relative_error, run_script
from ftuner.frontend.torch.hosts import operator
from ftuner.frontend.torch.library import Library
from ftuner.frontend.torch.regions.linalg import Instruction, LinalgFunction, Range
from ftuner.frontend.torch.settings import Settings
from product_functions import product_function
from torch import Tensor, fx, nn

INDUCTOR = {**OPTIONS, "host": "inductor"}


@pytest.fixture(autouse=True)
def unchanged() -> Iterator[None]:
    """No test leaves another configuration of Inductor."""
    counters.clear()
    before = torch._inductor.config.get_config_copy()
    yield
    assert torch._inductor.config.get_config_copy() == before


class Block(nn.Module):
    """Two products; between and after them what Inductor makes two kernels of."""

    def __init__(self) -> None:
        super().__init__()
        self.up, self.down, self.norm = nn.Linear(16, 40), nn.Linear(40, 16), nn.LayerNorm(16)

    def forward(self, x: Tensor) -> Tensor:
        return self.norm(x + self.down(nn.functional.gelu(self.up(x))))


def launches(code: list[str]) -> int:
    """Kernels of Inductor's own that its code calls."""
    return sum(len(re.findall(r"^ +cpp_fused\w*\(", text, re.MULTILINE)) for text in code)


def check(
    model: nn.Module, compiled: Callable[..., Tensor], inputs: list[Tensor], factor: float = 1.5
) -> None:
    """The error against float64 is at most a factor of eager's."""
    exact = copy.deepcopy(model).double()
    with torch.no_grad():
        for x in inputs:
            result, eager, reference = compiled(x), model(x), exact(x.double())
            assert result.shape == eager.shape and result.stride() == eager.stride()
            if result.numel():
                limit = max(factor * relative_error(eager, reference), 1e-7)
                assert relative_error(result, reference) <= limit


def test_one_graph_for_all_sizes() -> None:
    """With no more kernels than Inductor has beside its own products, which are none of it."""
    model = Block().eval()
    inputs = [torch.randn(3, size, 16) for size in (9, 5, 33, 2)]
    compiled = torch.compile(model, backend="ftuner", dynamic=True, options=INDUCTOR)
    with torch.no_grad():
        _, code = run_and_get_code(compiled, inputs[0])
    with torch._dynamo.config.patch(error_on_recompile=True):
        check(model, compiled, inputs)
    report = ft.report()
    assert counters["stats"]["unique_graphs"] == report.graphs == 1
    assert report.taken == report.products == 2 and not report.left
    assert report.calls == 2 * (len(inputs) + 1) and report.copied_arguments == 0
    # GELU, taken apart, and the residual.
    assert report.fused == 6
    assert report.pytorch_kernels == 0 and report.inductor_operators["var_mean.correction"] == 1
    assert report.inductor_kernels == launches(code) >= 1
    assert f"which joined them to {launches(code)} kernels: " in str(report)

    torch._dynamo.reset()
    with torch.no_grad():
        _, plain = run_and_get_code(torch.compile(model, dynamic=True), inputs[0])
    assert 1 <= launches(code) <= launches(plain)
    assert "extern_kernels" in "".join(plain)
    assert "extern_kernels.mm" not in "".join(code) and "extern_kernels.addmm" not in "".join(code)


def test_one_graph_for_sizes_of_0_and_1_too() -> None:
    model = nn.Linear(24, 40)
    compiled = torch.compile(model, backend="ftuner", options=INDUCTOR)
    inputs = [torch.randn(size, 24) for size in (6, 1, 0, 13)]
    for x in inputs:
        torch._dynamo.decorators.mark_unbacked(x, 0)
    check(model, compiled, inputs)
    assert counters["stats"]["unique_graphs"] == 1
    assert ft.report().taken == 1 and ft.report().calls == len(inputs)
    # PyTorch expects no size for which there would be a prediction.
    assert ft.report().time_share is None


class Attention(nn.Module):
    """Products that Inductor recognizes as attention."""

    def __init__(self) -> None:
        super().__init__()
        self.q, self.k, self.v, self.out = (nn.Linear(16, 16) for _ in range(4))

    def forward(self, x: Tensor) -> Tensor:
        layers = self.q, self.k, self.v
        q, k, v = (layer(x).unflatten(-1, (2, 8)).transpose(1, 2) for layer in layers)
        weights = torch.softmax(q @ k.mT / 8**0.5, -1)
        return x + self.out((weights @ v).transpose(1, 2).flatten(2))


def test_attention_as_products() -> None:
    model, options = Attention(), {**INDUCTOR, "attention": "math"}
    compiled = torch.compile(model, backend="ftuner", dynamic=True, options=options)
    check(model, compiled, [torch.randn(2, size, 16) for size in (6, 13)])
    report = ft.report()
    assert report.taken == report.products == 6 and report.copied_arguments == 0


def test_half_precision_rounds_where_pytorch_does() -> None:
    """GELU is taken apart into casts and operators of f32, which are part of the function."""
    model = nn.Sequential(nn.Linear(24, 56), nn.GELU()).to(torch.bfloat16)
    compiled = torch.compile(model, backend="ftuner", dynamic=True, options=INDUCTOR)
    check(model, compiled, [torch.randn(size, 24).bfloat16() for size in (6, 17)])
    report = ft.report()
    assert report.taken == 1 and report.inductor_operators == {}


def test_gradients() -> None:
    """Both graphs of a training step have FTuner's products."""
    layers = nn.Linear(24, 40, bias=False), nn.Linear(40, 8, bias=False)
    model = nn.Sequential(layers[0], nn.GELU(), layers[1])
    compiled = torch.compile(model, backend="ftuner", dynamic=True, options=INDUCTOR)
    for size in (6, 17):
        check_gradients(model, compiled, torch.randn(size, 5, 24))
    report = ft.report()
    assert report.graphs == 2 and report.taken == report.products == 5
    # Backwards, a gradient times the slope of GELU. Forwards the product is kept for that.
    assert report.fused == 1 and report.functions == {"mm": 4, "mm_mul": 1}


class Recorder(CustomGraphPass):
    """A pass of a user, which counts the products that it sees."""

    def __init__(self) -> None:
        self.seen: list[int] = []

    def __call__(self, graph: fx.Graph) -> None:
        aten = torch.ops.aten
        self.seen.append(
            sum(n.target in (aten.mm.default, aten.addmm.default) for n in graph.nodes)
        )

    def uuid(self) -> str:
        return "recorder"


@pytest.mark.parametrize("by_options", [False, True])
def test_beside_a_pass_of_the_user(by_options: bool) -> None:
    model, own = nn.Linear(24, 48), Recorder()
    if by_options:
        # PyTorch's own backend, with its own options.
        passes = [own, ft.inductor_pass(**COMPILER, take="all")]
        options = {"post_grad_custom_pre_pass": passes, "max_autotune": False}
        compiled = torch.compile(model, dynamic=True, options=options)
        check(model, compiled, [torch.randn(size, 24) for size in (6, 9)])
    else:
        with torch._inductor.config.patch(post_grad_custom_pre_pass=own):
            compiled = torch.compile(model, backend="ftuner", dynamic=True, options=INDUCTOR)
            check(model, compiled, [torch.randn(size, 24) for size in (6, 9)])
    assert own.seen == [1]
    assert ft.report().taken == 1 and ft.report().calls == 2


def test_a_model_without_products() -> None:
    def model(x: Tensor) -> Tensor:
        return torch.sort(x).values

    compiled = torch.compile(model, backend="ftuner", dynamic=True, options=INDUCTOR)
    x = torch.randn(5, 16)
    torch.testing.assert_close(compiled(x), model(x))
    report = ft.report()
    assert (report.graphs, report.products, report.calls) == (1, 0, 0)


def test_what_stays_says_why() -> None:
    def model(x: Tensor, w: Tensor) -> Tensor:
        return x @ w

    compiled = torch.compile(model, backend="ftuner", dynamic=True, options=INDUCTOR)
    x, w = torch.randn(5, 12).double(), torch.randn(12, 20).double()
    torch.testing.assert_close(compiled(x, w), model(x, w))
    (left,) = ft.report().left
    assert left.reason == "operands of float64, not float32, float16 or bfloat16"
    assert "test_inductor.py" in left.location


#: Compiles one layer, and says how.
SCRIPT = """
import json, sys
import torch, ftuner.torch as ft
from torch._dynamo.utils import counters
torch.manual_seed(0)
layers = torch.nn.Linear(24, 24), torch.nn.ReLU(), torch.nn.Linear(24, 24), torch.nn.ReLU()
model = torch.nn.Sequential(*layers)
options = json.loads(sys.argv[1])
compiled = torch.compile(model, backend="ftuner", dynamic=True, options=options)
with torch.no_grad():
    errors = [float((compiled(x) - model(x)).abs().max()) for x in map(torch.randn, (6, 9), (24, 24))]
report = ft.report()
result = {
    "error": max(errors), "hits": counters["inductor"]["fxgraph_cache_hit"],
    "counts": (report.graphs, report.compiled, report.calls, report.taken, report.cached),
    "text": str(report),
}
print(json.dumps(result))
"""


def test_a_second_process_needs_no_pass(tmp_path: Path) -> None:
    """It has Inductor's graph from its cache, and makes functions again that FTuner's has lost."""
    options = json.dumps(INDUCTOR)
    first: dict[str, Any] = run_script(SCRIPT, options)
    environment = {**os.environ, "FTUNER_CACHE_DIR": str(tmp_path / "empty")}
    command = [sys.executable, "-c", SCRIPT, options]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    second: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    assert max(first["error"], second["error"]) < 1e-6
    # Two products by one function.
    assert first["hits"] == 0 and first["counts"] == (1, 1, 4, 2, 0)
    assert second["hits"] == 1 and second["counts"] == [0, 1, 4, 2, 2]
    assert "2 of 2 products by FTuner" in second["text"]
    assert "2 of these from PyTorch's caches" in second["text"] and "warning" not in second["text"]


def test_identity_of_the_pass(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It changes with whatever changes functions, and with nothing else."""
    description = tmp_path / "device.json"
    description.write_text("{}")
    options: list[dict[str, Any]] = [
        {},
        {"max_kernels": 1},
        {"max_kernels": 2},
        {"device": "rtx3090"},
        {"device": str(description)},
        {"emulate": True},
        {"fallback": True},
    ]
    known = [ft.inductor_pass(**given).uuid() for given in options]
    assert len(set(known)) == len(options)
    assert known == [ft.inductor_pass(**given).uuid() for given in options]
    description.write_text('{"name": "other"}')
    assert ft.inductor_pass(device=str(description)).uuid() not in known
    monkeypatch.setattr(ftuner, "__version__", "0.0.0")
    assert ft.inductor_pass().uuid() not in known


def test_modes_are_inductor_s() -> None:
    """Modes are an argument of torch.compile, which then takes no options, or the option."""
    for arguments in (
        {"mode": "max-autotune-no-cudagraphs"},
        {"options": {**INDUCTOR, "mode": "reduce-overhead"}},
    ):
        torch._dynamo.reset()
        ft.reset_report()
        model = nn.Sequential(nn.Linear(24, 40), nn.LayerNorm(40))
        compiled = torch.compile(model, backend="ftuner", dynamic=True, **arguments)  # type: ignore
        check(model, compiled, [torch.randn(size, 24) for size in (6, 9)])
        assert ft.report().taken == 1 and ft.report().inductor_operators


@pytest.mark.parametrize(
    ("options", "error"),
    [
        (
            {"host": "eager", "mode": "max-autotune"},
            "expected option mode with host 'inductor' only",
        ),
        ({"host": "inductor", "mode": "fast"}, "expected option mode to be one of default, "),
        ({"host": "tvm"}, "expected option host 'inductor' or 'eager', but got 'tvm'"),
        ({"host": None}, "expected option host 'inductor' or 'eager', but got None"),
        ({"host": "inductor", "max_kernel": 1}, "expected an option of the backend"),
    ],
)
def test_options_that_are_not_valid(options: dict[str, Any], error: str) -> None:
    with pytest.raises(torch._dynamo.exc.BackendCompilerFailed, match=error):
        torch.compile(nn.Linear(4, 4), backend="ftuner", options=options)(torch.randn(2, 4))


def test_options_only_of_the_backend() -> None:
    with pytest.raises(TypeError, match="expected no option host of inductor_pass"):
        ft.inductor_pass(host="inductor")


def test_errors_of_the_compiler_name_the_model() -> None:
    with pytest.raises(torch._dynamo.exc.BackendCompilerFailed) as caught:
        torch.compile(
            nn.Linear(4, 4), backend="ftuner", options={"host": "inductor", "device": "h201"}
        )(torch.randn(2, 4))
    assert "h201" in str(caught.value)


def function(width: int) -> LinalgFunction:
    """x [d0, 16] by w [16, width], scaled by an argument."""
    return product_function(
        name="mm_mul",
        loops=("d0", width, 16),
        lhs=(0, 2),
        rhs=(2, 1),
        extras=(),
        num_scalars=1,
        epilogue=(Instruction("arith.mulf", ("x0", "s0")),),
        result="v0",
        symbols=(("d0", Range(2, 32)),),
        types=("f32", "f32"),
        result_type="f32",
    )


def test_the_operator(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is what PyTorch asks of operators, and makes its function once."""
    made = operator.Recipe.for_function(function(24), Settings("h200", True, COMPILER))
    text = made.write()
    assert operator.Recipe.read(text) == made and made.results[0].sizes == ((0, 0), 24)
    monkeypatch.setattr(operator, "LIBRARY", Library())
    x, w, scale = torch.randn(7, 16), torch.randn(16, 24), torch.tensor(0.5)
    product = operator.operator_of("product", False)
    arguments = ([x, w], [scale], operator.key_of(text, 0), text)
    torch.library.opcheck(product, arguments)
    torch.testing.assert_close(product(*arguments), 0.5 * (x @ w))
    # Copied where a tensor does not lie as functions read it.
    strided = ([x.t().contiguous().t(), w], [scale], operator.key_of(text, 0), text)
    torch.testing.assert_close(product(*strided), 0.5 * (x @ w))
    assert ft.report().compiled == 1 and ft.report().copied_arguments == 1


def test_recipes_that_cannot_be(tmp_path: Path) -> None:
    made = operator.Recipe.for_function(
        function(24), Settings(tmp_path, True, {"cubins": object()})
    )
    with pytest.raises(TypeError, match="expected options of texts, numbers and lists of them"):
        made.write()
    other = operator.Recipe.for_function(function(24), Settings(tmp_path, True)).write()
    with pytest.raises(ftuner.Error, match="format 3, which another version of FTuner"):
        operator.Recipe.read(other.replace('"format": 2', '"format": 3'))
