"""Reductions of rows through torch.compile: softmax, norms, sums, extremes, with what surrounds them."""

from __future__ import annotations

import copy
import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from torch.fx.experimental.proxy_tensor import make_fx
from torch.nn import functional as F

import ftuner
import ftuner.torch as ft
import torch
from checks import COMPILER, check_gradients, run_script
from ftuner.frontend.torch.hosts import operator
from ftuner.frontend.torch.library import Library
from ftuner.frontend.torch.regions.growth import constant_of
from ftuner.frontend.torch.regions.linalg import (
    COUNT,
    Instruction,
    LinalgFunction,
    Operand,
    Operator,
    Range,
)
from ftuner.frontend.torch.regions.row_choice import traffic, why_inductors
from ftuner.frontend.torch.regions.rows import RowFinder
from ftuner.frontend.torch.settings import Settings
from ftuner.latency import looping_rows
from scale import SCALE
from torch import Tensor, nn

HOSTS = "eager", "inductor"
TYPES = torch.float32, torch.float16, torch.bfloat16
#: Cases of the suite: each host, and each type that is rounded to.
PART = [("inductor", torch.float16), ("eager", torch.bfloat16)]
HOSTS_AND_TYPES = list(itertools.product(HOSTS, TYPES)) if SCALE > 1 else PART


def one_of(host: str) -> Sequence[str]:
    """Only this host, where another one adds little."""
    return HOSTS if SCALE > 1 else (host,)


#: Units in the last place of a type.
UNIT = {
    torch.float64: 2.0**-52,
    torch.float32: 2.0**-23,
    torch.float16: 2.0**-10,
    torch.bfloat16: 2.0**-7,
}
Function = Callable[[Tensor], Any]


def compile_rows(model: Any, host: str, **options: Any) -> Any:
    options = {**COMPILER, "host": host, "rows": "always", "take": "all", **options}
    return torch.compile(model, backend="ftuner", fullgraph=True, options=options)


def tensors(value: Any) -> list[Tensor]:
    if isinstance(value, Tensor):
        return [value]
    return [tensor for item in value for tensor in tensors(item)]


def compare(found: Any, eager: Any, exact: Any, label: str = "") -> None:
    """Equal types, shapes, strides, NaN and infinities; errors at most twice eager's, or a unit or two."""
    assert len(tensors(found)) == len(tensors(eager))
    for one, other, reference in zip(*map(tensors, (found, eager, exact))):
        assert (one.dtype, one.shape, one.stride()) == (other.dtype, other.shape, other.stride()), (
            label
        )
        if not one.is_floating_point():
            assert torch.equal(one, other), label
            continue
        special = ~other.isfinite()
        assert torch.equal(one[special].nan_to_num(7), other[special].nan_to_num(7)), label
        assert bool(one[~special].isfinite().all()), label
        norm = reference.double()[~special].norm()
        error, of_eager = (
            (result.double()[~special] - reference.double()[~special]).norm()
            for result in (one, other)
        )
        assert error <= max(2 * of_eager, 1.5 * UNIT[one.dtype] * norm), (label, error, of_eager)


def check(
    model: Any,
    inputs: Sequence[tuple[Tensor, ...]],
    host: str,
    dynamic: Sequence[int] = (0,),
    **options: Any,
) -> ft.Report:
    """Compares a compiled model with eager PyTorch on several inputs, which one graph serves."""
    torch._dynamo.reset()
    exact = copy.deepcopy(model).double() if isinstance(model, nn.Module) else model
    compiled = compile_rows(model, host, **options)
    first = inputs[0][0]
    for tensor in inputs[0]:
        for dim in dynamic:
            if tensor.dim() == first.dim():
                torch._dynamo.mark_dynamic(tensor, dim, min=2, max=8192)
    with torch.no_grad(), torch._dynamo.config.patch(error_on_recompile=True):
        for args in inputs:
            wide = [one.double() if one.is_floating_point() else one for one in args]
            compare(compiled(*args), model(*args), exact(*wide))
    return ft.report()


class Each(nn.Module):
    """Each function has its own tensors, so that it is not joined with another."""

    def __init__(self, functions: Sequence[Function]) -> None:
        super().__init__()
        self.functions = functions

    def forward(self, *inputs: tuple[Tensor, ...]) -> list[Any]:
        return [function(*args) for function, args in zip(self.functions, inputs)]


def check_each(
    functions: Mapping[str, Callable[..., Any]],
    inputs: Sequence[Sequence[tuple[Tensor, ...]]],
    host: str,
) -> ft.Report:
    """Compares functions of one compiled graph with eager PyTorch.

    inputs: of each call, for each function its arguments, whose dimension 0 is dynamic.
    """
    torch._dynamo.reset()
    compiled = compile_rows(Each(list(functions.values())), host)
    with torch.no_grad(), torch._dynamo.config.patch(error_on_recompile=True):
        for call in inputs:
            for args in call:
                for x in args:
                    if x.dim() == args[0].dim():
                        torch._dynamo.mark_dynamic(x, 0, min=2, max=64)
            for (name, function), args, found in zip(functions.items(), call, compiled(*call)):
                wide = [x.double() if x.is_floating_point() else x for x in args]
                compare(found, function(*args), function(*wide), name)
    return ft.report()


def special(x: Tensor) -> Tensor:
    """With NaN, infinities, ties, and a row that is masked as a whole."""
    x = x.clone()
    x[1, 2] = -math.inf
    x[0, 0, 5] = x[0, 0, 9] = math.nan
    x[2, 1, 3] = math.inf
    x[0, 3, 7:9] = 50.0
    return x


#: Weights, of the types of tests and of what they are compared with.
W, B = ({dtype: x.to(dtype) for dtype in (*TYPES, torch.float64)} for x in torch.randn(2, 33))

#: Operators on x [n, 6, 33]; each is one function.
OPERATORS: dict[str, Function] = {
    "softmax": lambda x: x.softmax(-1),
    "softmax of a middle dimension": lambda x: x.softmax(1),
    "softmax of the first dimension": lambda x: x.softmax(0),
    "softmax in f32": lambda x: x.softmax(-1, dtype=torch.float32),
    "log_softmax": lambda x: x.log_softmax(-1),
    "logsumexp": lambda x: x.logsumexp(-1),
    "layer_norm": lambda x: F.layer_norm(x, (33,), W[x.dtype], B[x.dtype]),
    "layer_norm of two dimensions": lambda x: F.layer_norm(x, (6, 33)),
    "rms_norm": lambda x: F.rms_norm(x, (33,), W[x.dtype]),
    "group_norm": lambda x: F.group_norm(x, 3),
    "instance_norm": lambda x: F.instance_norm(x),
    "sum": lambda x: x.sum(-1),
    "sum of the first dimension": lambda x: x.sum(0),
    "sum of two dimensions": lambda x: x.sum((1, 2)),
    "sum of all": lambda x: (x * x).sum(),
    "mean": lambda x: x.mean(1, keepdim=True),
    "amax": lambda x: x.amax(-1),
    "amin": lambda x: x.amin(1),
    "max": lambda x: x.max(-1),
    "min": lambda x: x.min(1),
    "argmax": lambda x: x.argmax(-1, keepdim=True),
    "argmin of all": lambda x: x.argmin(),
    "var": lambda x: x.var(-1),
    "std": lambda x: x.std(1, correction=0),
    "vector_norm": lambda x: x.norm(dim=-1),
    "vector_norm, order 1": lambda x: x.norm(p=1, dim=-1),
    "vector_norm, order inf": lambda x: x.norm(p=math.inf, dim=1),
    "normalize": lambda x: F.normalize(x, dim=-1),
    "count": lambda x: (x > 0.5).sum(-1),
}  # fmt: skip


#: Operators that are mostly computed like another one.
LIKE_OTHERS = {
    "softmax in f32",
    "sum of two dimensions",
    "instance_norm",
    "amin",
    "min",
    "vector_norm, order 1",
}
#: Operators that are others in Inductor's graphs than in graphs of host "eager".
DECOMPOSED = (
    "softmax of a middle dimension", "log_softmax", "layer_norm", "rms_norm", "group_norm", "max", "argmin of all",
    "std", "count",
)  # fmt: skip


@pytest.mark.parametrize("host, types", list(itertools.product(HOSTS, itertools.permutations(TYPES)))
                         if SCALE > 1 else [(host, TYPES) for host in HOSTS])  # fmt: skip
def test_operators(host: str, types: Sequence[torch.dtype]) -> None:
    """Operators run in types by turns, with unknown sizes, and with values that are not numbers."""
    names = (
        DECOMPOSED
        if host == "inductor"
        else [name for name in OPERATORS if name not in LIKE_OTHERS]
    )
    functions = {name: OPERATORS[name] for name in (OPERATORS if SCALE > 1 else names)}
    inputs = []
    for size in (5, 3, 40):
        tensors = [
            torch.randn(size, 6, 33).to(dtype)
            for _, dtype in zip(functions, itertools.cycle(types))
        ]
        inputs.append([(special(x) if size == 3 else x,) for x in tensors])
    report = check_each(functions, inputs, host)
    assert report.row_functions == len(functions) and not report.rows_left
    assert report.rows_taken == report.rows >= len(functions)
    assert report.calls == 3 * len(functions) and report.copied_arguments == 0
    assert not report.operators and report.graphs == 1


class Norms(nn.Module):
    """A residual that others read, too, and its norm with what follows."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(33)
        with torch.no_grad():
            for parameter in self.parameters():
                parameter.copy_(torch.randn_like(parameter))

    def forward(self, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        total = x + F.gelu(y)
        return total, self.norm(total).relu() * 0.5 + x


@pytest.mark.parametrize("host, dtype", HOSTS_AND_TYPES)
def test_one_function_with_what_surrounds_it(host: str, dtype: torch.dtype) -> None:
    model = Norms().to(dtype)
    inputs = [(torch.randn(n, 6, 33).to(dtype), torch.randn(n, 6, 33).to(dtype)) for n in (4, 9)]
    report = check(model, inputs, host)
    assert (report.rows, report.rows_taken, report.row_functions) == (1, 1, 1)
    assert not report.operators and not report.inductor_operators and report.inductor_kernels == 0
    assert report.calls == len(inputs)
    assert "1 of 1 reductions of rows by 1 functions of FTuner" in str(report)
    assert report.ftuner_us > 0 and report.others_us == 0


def llama_norm(x: Tensor) -> Tensor:
    """As models of transformers write it."""
    wide = x.float()
    wide = wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + 1e-6)
    return W[x.dtype] * wide.to(x.dtype)


def masked(x: Tensor, mask: Tensor) -> Tensor:
    return torch.where(mask, x * 0.25, torch.finfo(x.dtype).min).softmax(-1)


def filled(x: Tensor, mask: Tensor) -> Tensor:
    return x.masked_fill(mask, -math.inf).softmax(-1)


@pytest.mark.parametrize("host, dtype", HOSTS_AND_TYPES)
def test_chains_of_models(host: str, dtype: torch.dtype) -> None:
    x, mask = torch.randn(4, 6, 33).to(dtype), torch.rand(4, 6, 33) > 0.3
    # One mask for all, and a row that it hides as a whole.
    shared = torch.rand(6, 33) > 0.5
    shared[2] = True
    chains = {"norm": llama_norm, "masked": masked, "filled": filled}
    report = check_each(chains, [[(x,), (x.clone(), mask), (x.clone(), shared)]], host)
    assert report.row_functions == len(chains) and not report.operators


def entropy(x: Tensor) -> Tensor:
    p = x.softmax(-1)
    return -(p * (p + 1e-6).log()).sum(-1)


def quantized(x: Tensor) -> tuple[Tensor, Tensor]:
    scale = x.abs().amax(-1, keepdim=True) / 127
    return (x / scale).round().clamp(-127, 127), scale


@pytest.mark.parametrize("host", one_of("eager"))
def test_several_reductions_of_the_same_rows(host: str) -> None:
    def extremes(x: Tensor) -> tuple[Tensor, ...]:
        return x.sum(-1), x.amax(-1), x.argmax(-1), x - x.mean(-1, keepdim=True)

    def others(x: Tensor) -> tuple[Tensor, ...]:
        return x.sum(-1), x.sum(1)

    functions = {"entropy": entropy, "quantized": quantized, "extremes": extremes, "others": others}
    report = check_each(functions, [[(torch.randn(5, 6, 33),) for _ in functions]], host)
    # Other rows are another function.
    assert report.row_functions == 5 and not report.operators


def test_groups_beside_other_rows() -> None:
    """Channels are split into groups for the sake of a follower, too."""
    models: dict[str, Function] = {
        "mean before": lambda x: (x.mean((2, 3)), F.group_norm(x, 8)),
        "other groups": lambda x: (F.group_norm(x, 8), F.group_norm(x, 16)),
        "channels before": lambda x: (F.instance_norm(x), F.group_norm(x, 8)),
        "mean behind": lambda x: (F.group_norm(x, 8), x.mean((2, 3))),
        # Groups of one channel have the rows of an image.
        "groups of one": lambda x: (x.mean((2, 3)), F.group_norm(x, 32)),
        "statistics": lambda x: torch.native_group_norm(x, None, None, len(x), 32, 64, 8, 1e-5),
    }
    report = check_each(models, [[(torch.randn(4, 32, 8, 8),) for _ in models]], "eager")
    assert report.row_functions == 2 * len(models) - 2 and not report.rows_left


class GroupNorm(nn.Module):
    """A norm with what is before and behind it in a block of a U-Net."""

    def __init__(self, groups: int, channels: int) -> None:
        super().__init__()
        self.norm = nn.GroupNorm(groups, channels)
        nn.init.normal_(self.norm.weight)
        nn.init.normal_(self.norm.bias)

    def forward(self, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        total = x + y
        return F.silu(self.norm(total)), total


@pytest.mark.parametrize("layout", [torch.contiguous_format, torch.channels_last])
def test_groups_of_several_channels(layout: torch.memory_format) -> None:
    """Statistics and elements are kernels of one function, however the channels lie."""
    model = GroupNorm(2, 6)

    def inputs(batch: int, height: int, width: int) -> tuple[Tensor, ...]:
        x, y = (torch.randn(batch, 6, height, width).to(memory_format=layout) for _ in range(2))
        return x * 3 + 40, y

    sizes = (3, 5, 7), (2, 9, 4), (4, 2, 3)
    report = check(model, [inputs(*size) for size in sizes], "eager", dynamic=(0, 2, 3))
    assert report.row_functions == 1 and not report.rows_left and not report.operators
    assert report.copies == report.copied_arguments == 0
    assert report.layers[""].ftuner == (3 if layout is torch.channels_last else 2)
    for size in (1, 4, 4), (2, 1, 5), (0, 3, 3):
        check(model, [inputs(*size)], "eager", dynamic=())


def test_comparisons_round_numbers() -> None:
    """To the type of the tensor, where this has such an element."""
    inputs = [torch.randn(4, 33).to(dtype) for dtype in TYPES]
    for x in inputs:
        x[:, ::4] = 0.3
    scalar = torch.tensor(0.3, dtype=torch.float64)

    def model(scalar: Tensor, *inputs: Tensor) -> list[Tensor]:
        found = []
        for x in inputs:
            found += [(x == 0.3).sum(-1), torch.where(x >= 0.3, x, 0.1).sum(-1)]
        return [*found, (inputs[0] > 0.3).sum(-1), (inputs[1] < scalar).sum(-1)]

    torch._dynamo.reset()
    with torch.no_grad():
        found = compile_rows(model, "eager")(scalar, *inputs)
        compare(found, model(scalar, *inputs), model(scalar, *inputs))
    assert ft.report().row_functions == 2 * len(inputs) + 2 and not ft.report().operators


def test_constants_are_of_their_types() -> None:
    graph = torch.fx.Graph()
    for dtype, value in ((torch.float16, 0.300048828125), (torch.bool, None), (torch.int64, None)):
        node = graph.call_function(torch.ops.aten.full.default, ([], 0.3), {"dtype": dtype})
        node.meta["val"] = torch.empty((), dtype=dtype)
        assert constant_of(node) == value


def test_integers_and_booleans_beside_rows() -> None:
    """Only the operators that cannot be in a function stay."""
    x = torch.randn(4, 6, 33)
    report = check(lambda x: ((x > 0).sum(-1).float(), x.argmax(-1) == 0), [(x,)], "eager")
    assert report.row_functions == 1 and not report.rows_left
    assert report.operators == {"_to_copy.default": 1, "eq.Scalar": 1}
    report = check(lambda x: (x > 0).sum(-1, dtype=torch.float32), [(x,)], "eager")
    assert report.row_functions == 1
    assert [left.reason for left in report.rows_left] == [
        "elements that are converted before they are added"
    ]


@pytest.mark.parametrize("host", one_of("eager"))
def test_masks_of_masks(host: str) -> None:
    def model(x: Tensor, a: Tensor, b: Tensor) -> Tensor:
        return x.masked_fill(a & ~b, -math.inf).softmax(-1)

    def others(x: Tensor, a: Tensor, b: Tensor) -> Tensor:
        mask = torch.logical_or(a ^ b, torch.logical_not(a | b)).logical_and(a)
        return torch.where(mask, x, 0.5).sum(-1)

    inputs = [(torch.randn(4, 6, 33), *(torch.rand(2, 4, 6, 33) > 0.4)) for _ in range(2)]
    report = check_each({"a mask": model, "others": others}, [inputs], host)
    assert report.row_functions == 2 and not report.operators


@pytest.mark.parametrize("host", one_of("inductor"))
def test_views(host: str) -> None:
    """Rows are read where they lie, and results have the strides that PyTorch gives them."""
    models: dict[str, Callable[[Tensor], Any]] = {
        "transposed": lambda x: x.transpose(1, 2).softmax(-1),
        "transposed, and more": lambda x: F.layer_norm(x.transpose(1, 2), (6,)) * 2,
        "of heads": lambda x: x.unflatten(2, (3, 11)).transpose(1, 2).softmax(-1),
        "result of another order": lambda x: x.softmax(-1).permute(2, 0, 1),
        "copied in another order": lambda x: x.softmax(-1).transpose(1, 2).contiguous() + 1,
        "repeated": lambda x: (x[:1].expand(x.shape) + x).softmax(-1),
        "flat": lambda x: x.flatten(0, 1).softmax(-1).unflatten(0, (-1, 6)),
        "unit dimensions": lambda x: x.unsqueeze(1).softmax(-1).squeeze(1).unsqueeze(-1),
        "a part": lambda x: x[:, :, 3:20].softmax(-1),
        "parts": lambda x: (
            x[:, 2].softmax(-1) + x.split([9, 11, 13], 2)[2][:, 1, -11:].sum(-1, True)
        ),
        "a part of another order": lambda x: x.transpose(1, 2)[:, 4:30].softmax(-1),
    }
    report = check_each(models, [[(torch.randn(4, 6, 33),) for _ in models]], host)
    assert report.row_functions == len(models) + 1 and not report.rows_left
    assert report.copies == report.copied_arguments == 0


def test_tensors_of_other_strides() -> None:
    """Dense ones are read as they lie; those with gaps stay with PyTorch."""
    x = torch.randn(6, 33, 4)
    report = check(lambda x: x.softmax(-1), [(x.permute(2, 0, 1),)], "eager", dynamic=())
    assert report.row_functions == 1 and report.copied_arguments == 0
    image = torch.randn(2, 8, 5, 7).to(memory_format=torch.channels_last)
    report = check(lambda x: (x * 2).softmax(1), [(image,)], "eager", dynamic=())
    assert report.row_functions == 2 and report.copied_arguments == 0
    repeated = torch.randn(4, 33, 1).mT.expand(4, 6, 33)
    report = check(lambda x, y: (x + y).sum(-1), [(torch.randn(4, 6, 33), repeated)], "eager")
    assert report.row_functions == 3 and report.copied_arguments == 0
    for number, part in enumerate((x[:, ::2], x[..., 1:3]), 1):
        report = check(lambda x, n=number: x.softmax(-1) * n, [(part,)], "eager", dynamic=())
        assert report.row_functions == 3 and len(report.rows_left) == number
        reason = report.rows_left[-1].reason
        assert (
            f"of sizes {tuple(part.shape)} and strides {part.stride()} has gaps in memory" in reason
        )


@pytest.mark.parametrize("host", HOSTS)
def test_tensors_that_are_written(host: str) -> None:
    """Results and arguments equal eager PyTorch's."""

    def model(x: Tensor, y: Tensor) -> tuple[Tensor, ...]:
        maximum = x.amax(-1, keepdim=True)
        x.mul_(2)
        y[0] = 1.0
        return x - maximum, x.softmax(-1).add_(y), y.sum(-1)

    inputs = [torch.randn(4, 6, 33) for _ in range(2)]
    others = [x.clone() for x in inputs]
    with torch.no_grad():
        found = compile_rows(model, host)(*inputs)
        torch.testing.assert_close((*found, *inputs), (*model(*others), *others))
    assert ft.report().rows_taken >= 3


def test_nothing_is_read_after_a_write() -> None:
    """In a graph that writes in place, as graphs of torch.compile hardly do."""

    def model(x: Tensor) -> Tensor:
        maximum = x.amax(-1, keepdim=True)
        x.mul_(2)
        return x - maximum

    graph = make_fx(model, tracing_mode="fake")(torch.randn(4, 8)).graph
    named = {node.name: node for node in graph.nodes}
    named["sub"].replace_input_with(named["mul_"], named["x_1"])
    (region,) = RowFinder(graph).regions()
    assert [node.name for node in region.nodes] == ["amax"]


def test_what_is_taken_later_is_not_left() -> None:
    """A reduction that is not read is not a region, but part of another."""

    def model(x: Tensor) -> tuple[Tensor, Tensor]:
        y = x * 2
        return y.amax(-1), y.sum(-1)

    graph = make_fx(model, tracing_mode="fake")(torch.randn(4, 8)).graph
    output = next(iter(reversed(graph.nodes)))
    output.args = (output.args[0][1],)
    finder = RowFinder(graph)
    (region,) = finder.regions()
    assert [node.name for node in region.nodes] == ["mul", "amax", "sum_1"]
    assert not finder.reasons


def test_nothing_is_needed_before_it_is_there() -> None:
    """A chain through an operator that is not taken, back into the same rows."""

    def model(x: Tensor) -> Tensor:
        shares = x.softmax(-1)
        return x.softmax(-1) + torch.sort(shares).values

    report = check(model, [(torch.randn(4, 6, 33),)], "eager")
    assert report.operators == {"sort.default": 1}
    assert report.rows_taken == 2

    def surrounded(x: Tensor) -> Tensor:
        centered = x - x.mean(-1, keepdim=True)
        return centered.exp() * torch.sort(centered).values

    report = check(surrounded, [(torch.randn(4, 6, 33),)], "eager")
    assert report.operators == {"sort.default": 2, "mul.Tensor": 1}
    assert report.row_functions == 3


@pytest.mark.parametrize("host", one_of("inductor"))
def test_results_share_no_memory(host: str) -> None:
    compiled = compile_rows(lambda x: (x.softmax(-1), x.softmax(-1), x.exp().sum(-1)), host)
    x = torch.randn(4, 6, 33)
    with torch.no_grad():
        first, second, _ = compiled(x)
        first.zero_()
    torch.testing.assert_close(second, x.softmax(-1))


def test_a_copy_of_a_result_is_pytorch_s() -> None:
    """Such as a dropout leaves in evaluation, beside what others read."""

    def model(x: Tensor) -> tuple[Tensor, Tensor]:
        shares = x.softmax(-1)
        return shares, shares.clone()

    report = check(model, [(torch.randn(4, 6, 33),)], "eager")
    assert report.row_functions == 1 and report.operators == {"clone.default": 1}


class Trained(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.up, self.norm = nn.Linear(12, 20), nn.LayerNorm(20)

    def forward(self, x: Tensor) -> Tensor:
        return self.norm(self.up(x)).softmax(-1)


@pytest.mark.parametrize("host", one_of("eager"))
def test_training_is_as_it_was(host: str) -> None:
    """Only products are taken; without gradients the same model has rows."""
    model = Trained()
    compiled = compile_rows(model, host)
    x = torch.randn(5, 12, requires_grad=True)
    check_gradients(model, compiled, x)
    report = ft.report()
    assert report.taken == report.products >= 3 and report.rows == report.row_functions == 0
    with torch.no_grad():
        torch.testing.assert_close(compiled(x), model(x))
    # The norm and the softmax are of the same rows.
    assert ft.report().row_functions == 1 and ft.report().rows_taken >= 2


@pytest.mark.parametrize("host", one_of("inductor"))
def test_lengths_of_rows(host: str) -> None:
    """One graph for rows of all lengths."""
    sizes = [(3, 5), (2, 2), (7, 31), (2, 32), (5, 33), (4, 257), (2, 4097)]
    inputs = [(torch.randn(*size),) for size in sizes]
    report = check(lambda x: x.softmax(-1), inputs, host, dynamic=(0, 1))
    assert report.row_functions == report.graphs == 1 and report.calls == len(sizes)


def test_sizes_of_0_and_1() -> None:
    def model(x: Tensor) -> tuple[Tensor, Tensor]:
        return x.softmax(-1), x.sum(0)

    compiled = compile_rows(model, "inductor")
    with torch.no_grad():
        for size in (4, 1, 0):
            x = torch.randn(size, 9)
            torch._dynamo.decorators.mark_unbacked(x, 0)
            torch.testing.assert_close(compiled(x), model(x))
    assert ft.report().graphs == 1 and ft.report().row_functions == 2


def test_norms_of_empty_rows() -> None:
    """PyTorch refuses those that are extremes; where it asks when it traces, rows have elements."""

    def model(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        return x.norm(p=-1, dim=-1), y.norm(p=math.inf, dim=-1)

    torch._dynamo.reset()
    inputs = torch.randn(4, 9), torch.randn(4, 7)
    for x in inputs:
        torch._dynamo.decorators.mark_unbacked(x, 1)
    with torch.no_grad():
        torch.testing.assert_close(compile_rows(model, "eager")(*inputs), model(*inputs))
    (left,) = ft.report().rows_left
    assert left.reason == "an extreme of rows that may have no element"


def test_what_stays_with_pytorch() -> None:
    def model(x: Tensor, wide: Tensor, empty: Tensor, one: Tensor) -> tuple[Tensor, ...]:
        return (
            x.sum((0, 2)), wide.softmax(-1), empty.sum(-1), one.amax(-1),
            x.sum(-1, dtype=torch.float64), x.long().sum(-1),
        )  # fmt: skip

    inputs = torch.randn(4, 6, 33), torch.randn(4, 8).double(), torch.randn(4, 0), torch.randn(4, 1)
    report = check(model, [inputs], "eager", dynamic=())
    reasons = [left.reason for left in report.rows_left]
    assert reasons == [
        "reduced dimensions that do not lie side by side in 'arg0_1' of sizes (4, 6, 33) and"
        " strides (198, 33, 1)",
        "elements of float64",
        "no elements",
        "rows of one element",
        "a result of float64",
        "elements of int64",
    ]
    assert report.rows == 6 and report.rows_taken == 0
    assert "left to PyTorch, 6 of 6 reductions of rows:" in str(report)
    assert all("test_row_reductions.py" in left.location for left in report.rows_left)


def test_never() -> None:
    report = check(lambda x: x.softmax(-1), [(torch.randn(4, 9),)], "eager", rows="never")
    assert report.rows == 0 and report.operators == {"_softmax.default": 1}


def test_always_with_eager() -> None:
    """Host "eager" gets no kernel for rows, however few they are."""
    report = check(lambda x: x.softmax(-1), [(torch.randn(4, 9),)], "eager", rows="auto")
    assert report.row_functions == 1 and not report.operators


def test_inductor_s_rows_are_inductor_s() -> None:
    """Unless the bound of its time is above what FTuner is predicted to take."""

    def model(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        return F.layer_norm(x, (768,)), y.sum(-1)

    compiled = compile_rows(model, "inductor", rows="auto", device="a100")
    x, y = torch.randn(4, 768), torch.randn(4, 50)
    torch._dynamo.mark_dynamic(y, 1)
    with torch.no_grad():
        torch.testing.assert_close(compiled(x, y), model(x, y))
    report = ft.report()
    assert report.row_functions == 0 and report.inductor_kernels > 0
    assert sorted(left.reason for left in report.rows_left) == [
        "Inductor is predicted to be as fast or faster",
        "rows of at most 1024 elements, which Inductor reads once, too",
    ]


@pytest.mark.parametrize("microseconds", [1e-3, 1e6])
def test_the_bound_decides(monkeypatch: pytest.MonkeyPatch, microseconds: float) -> None:
    """The bound decides rows without a known length, which Inductor reads twice, by its time."""
    asked: list[Any] = []

    def predict(device: Any, rows: Any, *bytes_: float) -> Any:
        asked.append((device, bytes_))
        assert rows and all(count >= 1 and length >= 1 for count, length in rows)
        return np.full(len(rows), microseconds)

    monkeypatch.setattr(looping_rows, "predict", predict)
    x = torch.randn(5, 70)
    torch._dynamo.mark_dynamic(x, 1)
    # PyTorch's caches do not know of such times: another graph for each.
    factor = 2.0 if microseconds > 1 else 3.0

    def model(x: Tensor) -> Tensor:
        return (x * factor).to(torch.float16 if x.dtype == torch.float32 else x.dtype).softmax(-1)

    compiled = compile_rows(model, "inductor", rows="auto")
    with torch.no_grad():
        compare(compiled(x), model(x), model(x.double()))
    assert asked == [("h200", (4, 4, 2))]
    report = ft.report()
    assert report.row_functions == int(microseconds > 1)
    assert (report.inductor_kernels > 0) == (microseconds < 1)


def test_a_known_bound_decides() -> None:
    assert why_inductors(Range(1, 1024)) and why_inductors(Range(768, 768))
    assert why_inductors(Range(1, 1025)) is why_inductors(Range(1, None)) is None


def test_the_bound_of_inductor_s_time() -> None:
    """It grows with what is read again, and with the rows; a device is asked by its name."""
    sizes = [(1000, 4096), (100000, 4096), (100000, 65536)]
    once = looping_rows.predict("a100", sizes, 4, 0, 4)
    twice = looping_rows.predict("a100", sizes, 4, 4, 4)
    assert (once < twice).all() and (np.diff(twice) > 0).all()
    # No faster than DRAM: 1555 GB/s, each tensor once.
    assert once[-1] > 100000 * 65536 * 8 / 1555e3
    assert (looping_rows.predict("h100", sizes, 4, 4, 4) < twice).all()


def norm_of(width: int | str = "d1") -> LinalgFunction:
    """x [d0, width] in f16 + r, over its mean, times w [width]; and the sum x + r."""
    x, r = Operand("arg0", (0, 1), "f16"), Operand("arg1", (0, 1), "f16")
    total, mean = Operand("t0", (0, 1), "f16"), Operand("t1", (0,), "f32")
    add = Instruction("arith.addf", ("x0", "x1"))
    divide = Instruction("arith.divf", ("x1", COUNT))
    scale = Instruction("arith.divf", ("x0", "v0"))
    shift = Instruction("arith.mulf", ("v1", "x2"))
    last = Instruction("arith.mulf", ("v2", "s0"))
    return LinalgFunction(
        name="norm",
        loops=("d0", width),
        arguments=((0, 1), (0, 1), (1,)),
        types=("f16", "f16", "f32"),
        num_scalars=1,
        operators=(
            Operator((x, r), (add,), "v0", (0, 1), "f16"),
            Operator((total,), (), "x0", (0,), "f32", "arith.addf"),
            Operator(
                (total, mean, Operand("arg2", (1,), "f32")),
                (divide, scale, shift, last),
                "v3",
                (0, 1),
                "f32",
            ),
        ),
        results=(total, Operand("t2", (0, 1), "f32")),
        symbols=(("d0", Range(2, 64)), *([("d1", Range(1, None))] if width == "d1" else [])),
    )


@pytest.mark.parametrize("width", ["d1", 40])
def test_functions(width: int | str) -> None:
    """Two results of different types, a vector and a scalar beside them."""
    function = norm_of(width)
    assert function.result_sizes == (((0, 0), (0, 1) if width == "d1" else 40),) * 2
    module = ftuner.compile(str(function), device="h200", max_kernels=1, emulate=True)
    (norm,) = module.functions.values()
    assert [len(kernel["workloads"]) for kernel in module.manifest["kernels"]] == [1]
    x, r = (torch.rand(7, 40).half() for _ in range(2))
    w = torch.rand(40)
    total, result = norm(x, r, w, 3.0)
    assert torch.equal(total, x + r)
    expected = total.double() / total.double().mean(-1, keepdim=True) * w * 3
    torch.testing.assert_close(result.double(), expected, rtol=1e-6, atol=0)


def test_bytes_of_inductor_s_loops() -> None:
    """Both summands at first, one of them again, and both results; no weight, which rows share."""
    assert traffic(norm_of()) == (4, 2, 6)
    sums = norm_of()
    sums = LinalgFunction(**{**vars(sums), "results": (Operand("t1", (0,), "f32"),)})
    assert traffic(sums) == (4, 0, 0)
    copies = LinalgFunction(**{**vars(sums), "results": (Operand("t0", (0, 1), "f16"),)})
    assert traffic(copies) == (4, 0, 2)
    # In time that does not double with each operator.
    squares = [
        Operand("arg0", (0, 1), "f16"),
        *(Operand(f"t{n}", (0, 1), "f16") for n in range(60)),
    ]
    square = Instruction("arith.mulf", ("x0", "x1"))
    operators = tuple(Operator((x, x), (square,), "v0", (0, 1), "f16") for x in squares[:-1])
    chain = LinalgFunction(**{**vars(copies), "operators": operators, "results": (squares[-1],)})
    assert traffic(chain) == (4, 0, 2)


def test_the_operator(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is what PyTorch asks of operators, and makes its function once."""
    made = operator.Recipe.for_function(norm_of(), Settings("h200", True, COMPILER))
    text = made.write()
    assert operator.Recipe.read(text) == made and len(made.results) == 2
    monkeypatch.setattr(operator, "LIBRARY", Library())
    x, r, w = torch.rand(7, 40).half(), torch.rand(7, 40).half(), torch.rand(40)
    arguments = ([x, r, w], [torch.tensor(3.0)], operator.key_of(text, 0), text)
    target = operator.operator_of("row_reduction", True)
    torch.library.opcheck(target, arguments)
    total, result = target(*arguments)
    assert torch.equal(total, x + r) and result.dtype == torch.float32
    assert ft.report().compiled == 1 and ft.report().row_functions == 1


SCRIPT = """
import torch
import ftuner.torch as ft

options = {"host": "inductor", "rows": "always", "max_kernels": 1}
compiled = torch.compile(lambda x: x.softmax(-1) * 3, backend="ftuner", options=options)
x = torch.randn(5, 48)
with torch.no_grad():
    torch.testing.assert_close(compiled(x), x.softmax(-1) * 3)
report = ft.report()
result = report.graphs, report.row_functions, report.calls
"""


def test_graphs_from_pytorch_s_caches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Their functions of rows are made at the first call, and counted then."""
    assert run_script(SCRIPT) == (1, 1, 1)
    torch._dynamo.reset()
    ft.reset_report()
    monkeypatch.setattr(operator, "_functions", {})
    assert run_script(SCRIPT) == (0, 1, 1)


@pytest.mark.parametrize("value", ["some", None, True])
def test_options_that_are_not_valid(value: Any) -> None:
    error = "expected option rows 'auto', 'always' or 'never', but got "
    with pytest.raises(torch._dynamo.exc.BackendCompilerFailed, match=error):
        compile_rows(lambda x: x.softmax(-1), "eager", rows=value)(torch.randn(2, 4))
