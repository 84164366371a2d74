"""Generating tokens: one function of each weight for prompts and for single rows, as many graphs as plain PyTorch."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import pytest
from torch._dynamo.utils import counters

import ftuner
import ftuner.torch as ft
import torch
from checks import OPTIONS, compile_model, load_script, relative_error
from ftuner.frontend.torch.library import Library
from ftuner.frontend.torch.regions.linalg import Instruction, LinalgFunction, Range
from ftuner.frontend.torch.settings import Settings
from ftuner.frontend.torch.weight_rows import WeightRowFunctions
from ftuner.host.memory import torch_calls
from product_functions import product_function
from scale import SCALE
from torch import Tensor, nn

pytest.importorskip("transformers")
pytestmark = pytest.mark.filterwarnings("ignore")

decoding = load_script("benchmarks/torch/decoding.py")


#: With a dynamic cache: test_generate.
CASES = [("llama", "static", 3, "eager")]
if SCALE > 1:
    CASES = [
        (name, kind, batch, host)
        for name in decoding.MODELS
        for kind in decoding.CACHES
        for batch in (1, 3)
        for host in decoding.HOSTS
    ]


@pytest.mark.parametrize(("name", "kind", "batch", "host"), CASES)
def test_loop(name: str, kind: str, batch: int, host: str) -> None:
    """Prompts, with steps after each: nothing that plain PyTorch compiles once is compiled twice."""
    model = decoding.MODELS[name]().eval()
    prompts = [torch.randint(1, decoding.VOCABULARY, (batch, length)) for length in (7, 4)]
    plain = "inductor" if host == "inductor" else "eager"
    row = decoding.measure(model, kind, prompts, 2, plain=plain, **{**OPTIONS, "host": host})
    assert not row.problems(), str(row)
    # Each weight was multiplied with the rows of prompts and of steps. All are the factor of a product
    # but the tables of tokens and of positions, and one of them may be both.
    rows = {batch * count for count in (7, 4, 1)}
    assert set(map(frozenset, row.weights.rows.values())) == {frozenset(rows)}
    linear = sum(type(module).__name__ in ("Linear", "Conv1D") for module in model.modules())
    assert len(row.weights.rows) == linear


class Decoder(nn.Module):
    """A layer with a cache [sequences, tokens, channels] of keys and of values."""

    def __init__(self) -> None:
        super().__init__()
        self.q, self.k, self.v, self.out, self.up = (nn.Linear(32, 32) for _ in range(5))

    def forward(self, x: Tensor, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        keys, values = torch.cat([keys, self.k(x)], 1), torch.cat([values, self.v(x)], 1)
        y = x + self.out(nn.functional.scaled_dot_product_attention(self.q(x), keys, values))
        return y + nn.functional.silu(self.up(y)), keys, values


def test_inductor_as_host() -> None:
    """Two graphs, with one function of each weight in both."""
    model = Decoder().eval()
    exact = copy.deepcopy(model).double()
    compiled = compile_model(model, host="inductor")
    counters.clear()
    with torch.no_grad(), decoding.watch(model) as weights:
        for length in (7, 4):
            states = [
                (module, torch.zeros(1, 0, 32), torch.zeros(1, 0, 32))
                for module in (compiled, model)
            ]
            wide = torch.zeros(1, 0, 32).double(), torch.zeros(1, 0, 32).double()
            for rows in (length, 1, 1):
                x = torch.randn(1, rows, 32)
                if rows > 1:  # Nothing is cached yet.
                    torch._dynamo.mark_dynamic(x, 1, min=2, max=64)
                (y, *_), (eager, *_) = results = [module(x, *cache) for module, *cache in states]
                reference, *wide = exact(x.double(), *wide)
                states = [(module, *cache) for (module, *_), (_, *cache) in zip(states, results)]
                assert relative_error(y, reference) <= max(
                    1.5 * relative_error(eager, reference), 2e-7
                )
    assert counters["stats"]["unique_graphs"] == ft.report().graphs == 2
    assert len(weights.libraries) == 5
    assert {len(libraries) for libraries in weights.libraries.values()} == {1}
    assert set(map(frozenset, weights.rows.values())) == {frozenset({7, 4, 1})}


def test_generate() -> None:
    """The loop of `transformers`, which asks only for the logits of the last token."""
    model = decoding.llama().eval()
    prompt = torch.randint(1, decoding.VOCABULARY, (2, 6))
    options: dict[str, Any] = {
        "max_new_tokens": 4, "do_sample": False, "pad_token_id": 0, "eos_token_id": None,
    }  # fmt: skip
    expected = model.generate(prompt, **options)
    model.forward = compile_model(model.forward)
    with decoding.watch(model) as weights:
        assert torch.equal(model.generate(prompt, **options), expected)
        graphs = counters["stats"]["unique_graphs"]
        # Another prompt, and another cache.
        model.generate(torch.randint(1, decoding.VOCABULARY, (2, 9)), **options)
    assert counters["stats"]["unique_graphs"] == graphs
    assert {left.operator.split(".")[0] for left in ft.report().left} == {
        "_scaled_dot_product_flash_attention_for_cpu"
    }
    assert {len(libraries) for libraries in weights.libraries.values()} == {1}
    assert weights.rows["lm_head.weight"] == {2}
    assert weights.rows["model.layers.0.mlp.up_proj.weight"] == {12, 18, 2}


def rows_of(calls: list[tuple[str, int]]) -> dict[str, set[int]]:
    found: dict[str, set[int]] = {}
    for path, rows in calls:
        found.setdefault(path, set()).add(rows)
    return found


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[tuple[str, int]]]:
    """The library of each call, and the rows of its first factor."""
    made: list[tuple[str, int]] = []
    original = ftuner.Function.__call__

    def call(self: ftuner.Function, *arguments: Any, **options: Any) -> Any:
        made.append((str(self.module.library_path), arguments[0].numel() // arguments[0].shape[-1]))
        return original(self, *arguments, **options)

    monkeypatch.setattr(ftuner.Function, "__call__", call)
    with torch_calls.without_module():
        yield made


class Block(nn.Module):
    """A residual, a bias, and a factor of each row."""

    def __init__(self, width: int = 24) -> None:
        super().__init__()
        self.up, self.down = nn.Linear(width, 40), nn.Linear(40, width, bias=False)

    def forward(self, x: Tensor, rows: Tensor) -> Tensor:
        return x + self.down(nn.functional.silu(self.up(x))) * rows


def check(model: nn.Module, compiled: Any, *arguments: Tensor) -> None:
    with torch.no_grad():
        assert relative_error(compiled(*arguments), model(*arguments)) < 1e-6


def run_declared(width: int, low: int) -> None:
    """A block at several numbers of rows, of which a range is declared, and at one."""
    model = Block(width).eval()
    compiled = compile_model(model)
    for rows in (6, 9, 1, 17, 1):
        x, factors = torch.randn(rows, width), torch.randn(rows, 1)
        if rows > 1:
            for tensor in (x, factors):
                torch._dynamo.mark_dynamic(tensor, 0, min=low, max=32)
        check(model, compiled, x, factors)


def test_declared_ranges(calls: list[tuple[str, int]]) -> None:
    """One row is a size of the function for the range that was declared, also where it is not in it."""
    run_declared(24, low=4)
    # Declared from 4 on: PyTorch's own graph for one row has functions for every number of rows.
    assert ft.report().compiled == 4
    torch._dynamo.reset()
    ft.reset_report()
    calls.clear()
    run_declared(16, low=2)
    assert ft.report().compiled == 2 and ft.report().graphs == 2
    assert list(rows_of(calls).values()) == [{6, 9, 1, 17}] * 2


def test_steps_before_a_prompt(calls: list[tuple[str, int]]) -> None:
    model = Block(20).eval()
    compiled = compile_model(model)
    for rows in (1, 6, 1):
        check(model, compiled, torch.randn(rows, 20), torch.randn(rows, 1))
    assert ft.report().compiled == 2 and ft.report().graphs == 2
    assert list(rows_of(calls).values()) == [{6, 1}] * 2


def test_constant_sizes_have_functions_of_their_own(calls: list[tuple[str, int]]) -> None:
    model = Block(12).eval()
    compiled = compile_model(model, dynamic=False)
    for rows in (1, 6):
        check(model, compiled, torch.randn(rows, 12), torch.randn(rows, 1))
    assert sorted(rows_of(calls).values(), key=min) == [{1}, {1}, {6}, {6}]


def product(rows: int | str, upper: int | None = None, name: str = "mm") -> LinalgFunction:
    """x [rows, 16] by w [16, 24], scaled, and with a summand of each row."""
    return product_function(
        name=name,
        loops=(rows, 24, 16),
        lhs=(0, 2),
        rhs=(2, 1),
        extras=((0, 1),),
        num_scalars=0,
        epilogue=(Instruction("arith.addf", ("x0", "x1")),),
        result="v0",
        symbols=((rows, Range(1, upper)),) if isinstance(rows, str) else (),
        types=("f32", "f32", "f32"),
        result_type="f32",
    )


class Compiled(Library):
    """Compiles nothing, and says what it was asked for."""

    def __init__(self, fails: tuple[str, ...] = ()) -> None:
        super().__init__()
        self.asked: list[str] = []
        self.fails = fails

    def get(self, functions: Any, settings: Settings) -> list[Any]:
        texts = list(map(str, functions))
        self.asked += texts
        return [
            ftuner.CompileError("no", "") if any(fail in text for fail in self.fails)
            else object.__new__(ftuner.Function)
            for text in texts
        ]  # fmt: skip


def test_which_function_serves_which_rows() -> None:
    settings, rows, made = Settings("h200", True, OPTIONS), WeightRowFunctions(), Compiled()

    def get(*functions: LinalgFunction, used_settings: Settings = settings) -> list[LinalgFunction]:
        return [function for function, _ in rows.get(functions, used_settings, made)]

    # Without a function for more rows, other numbers than 1 stay as they are.
    assert get(product(4)) == [product(4)]
    # The range of one graph serves both of its calls, whatever comes first.
    assert get(product(1, name="step"), product("d0", 64)) == [
        product("d0", 64, "step"), product("d0", 64)
    ]  # fmt: skip
    assert get(product(4)) == [product("d0", 64)]
    assert get(product(65)) == [product(65)]
    # Another range is another function, and nothing is known of other settings.
    assert get(product("d0", 32)) == [product("d0", 32)]
    assert get(product(4), used_settings=Settings("h200", False, OPTIONS)) == [product(4)]
    assert get(product(1), used_settings=Settings("h200", False, OPTIONS)) == [product("d0")]
    # A product of two factors with the same rows is not a product with a weight.
    batched = product_function(
        "bmm", (1, "d0", 24, 16), (1, 0, 3), (1, 3, 2), symbols=(("d0", Range(1, 8)),), types=("f32", "f32")
    )  # fmt: skip
    assert batched.rows_of_weight is None and get(batched) == [batched]


def test_what_no_range_can_be_compiled_for() -> None:
    """It is compiled for its own rows."""
    rows, made = WeightRowFunctions(), Compiled(fails=("?x16xf32",))
    ((function, built),) = rows.get([product(1)], Settings("h200", True), made)
    assert function == product(1) and isinstance(built, ftuner.Function)
    assert made.asked == [str(product("d0")), str(product(1))]


def test_a_row_stays_a_product() -> None:
    """Inductor makes sums of small products with one row, and others by its modes."""
    model = nn.Linear(12, 8).eval()
    compiled = compile_model(model, host="inductor")
    with torch.no_grad():
        x = torch.randn(1, 12)
        torch.testing.assert_close(compiled(x), model(x))
    report = ft.report()
    assert report.taken == report.products == 1 and report.inductor_operators == {}
