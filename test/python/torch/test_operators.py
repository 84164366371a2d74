"""Operators of exported models as PyTorch has them: NaN, positions, accuracy, reads and writes by index, einsum."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from torch.export import Dim

import ftuner
import ftuner.torch
import refusals
import torch
from ftuner.frontend.torch.exporting.decompose import contractions
from torch import Tensor, nn

F = torch.nn.functional


class _Several(nn.Module):
    """The results of several functions of the same inputs."""

    def __init__(self, functions: Sequence[Callable[..., Tensor]]) -> None:
        super().__init__()
        self._functions = functions

    def forward(self, *inputs: Tensor) -> tuple[Tensor, ...]:
        return tuple(function(*inputs) for function in self._functions)


def compiled(
    functions: Sequence[Callable[..., Tensor]], inputs: tuple[Tensor, ...]
) -> Callable[..., Any]:
    """The functions as one, with each dimension of at least 2 of unknown size."""
    shapes = tuple({dim: Dim.AUTO for dim, size in enumerate(x.shape) if size > 1} for x in inputs)
    exported = ftuner.torch.export(_Several(functions), inputs, dynamic_shapes=shapes)
    return exported.compile(device="h200", emulate=True, max_kernels=1)


def check(
    functions: dict[str, Callable[..., Tensor]], inputs: tuple[Tensor, ...], ulps: float = 16
) -> None:
    """Compares each function with PyTorch in float64: places of NaN and infinities, positions, values."""
    results = compiled(list(functions.values()), inputs)(*inputs)
    wide = [x.double() if x.is_floating_point() else x for x in inputs]
    for (name, function), result in zip(functions.items(), results):
        eager, exact = function(*inputs), function(*wide)
        assert result.dtype == eager.dtype and result.shape == eager.shape, name
        if not result.is_floating_point():
            assert torch.equal(result, eager), name
            continue
        # A function in which large terms cancel has an error wherever it is computed as it stands.
        of_eager = (eager.double() - exact).nan_to_num().abs().max()
        torch.testing.assert_close(
            result.double(),
            exact.double(),
            rtol=ulps * 2**-24,
            atol=float(2 * of_eager + 2**-24),
            equal_nan=True,
            msg=lambda text: f"{name}: {text}",
        )


def with_specials(*shape: int) -> Tensor:
    """Random numbers with NaN and infinities among them, in the first rows."""
    x = torch.randn(*shape) * 3
    for row, value in enumerate((math.nan, math.inf, -math.inf)):
        x[row, torch.randint(shape[1], ())] = value
    x[3, 1], x[3, -1] = math.nan, math.nan
    x[4, 0], x[4, 2] = math.inf, math.nan
    return x


POINTWISE: dict[str, Callable[..., Tensor]] = {
    "clamp": lambda x, y: x.clamp(-1, 1),
    "clamp_tensor": lambda x, y: torch.clamp(x, min=y - 1, max=y),
    "clamp_min": lambda x, y: x.clamp_min(0.5),
    "clamp_max": lambda x, y: x.clamp_max(0.5),
    "clamp_to_nan": lambda x, y: x.clamp(min=math.nan),
    "minimum": torch.minimum,
    "maximum": torch.maximum,
    "fmin": torch.fmin,
    "fmax": torch.fmax,
    "relu": lambda x, y: F.relu(x),
    "relu6": lambda x, y: F.relu6(x),
    "hardtanh": lambda x, y: F.hardtanh(x, -2, 1.5),
    "hardsigmoid": lambda x, y: F.hardsigmoid(x),
    "hardswish": lambda x, y: F.hardswish(x),
    "leaky_relu": lambda x, y: F.leaky_relu(x, 0.2),
    "threshold": lambda x, y: F.threshold(x, 0.3, 2.0),
    "softshrink": lambda x, y: F.softshrink(x, 0.3),
    "hardshrink": lambda x, y: F.hardshrink(x, 0.3),
    "compared": lambda x, y: x > 0.1,
    "hypot": torch.hypot,
    "nan_to_num": lambda x, y: torch.nan_to_num(x, 2.0, neginf=-3.0),
}

REDUCTIONS: dict[str, Callable[..., Tensor]] = {
    "argmax": lambda x, y: x.argmax(-1),
    "argmin": lambda x, y: x.argmin(0, keepdim=True),
    "argmax_all": lambda x, y: x.argmax(),
    "max": lambda x, y: x.max(1)[0],
    "position_of_max": lambda x, y: x.max(1)[1],
    "position_of_min": lambda x, y: x.min(0)[1],
    "amin": lambda x, y: x.amin(),
    "normalize": lambda x, y: F.normalize(x, dim=1),
    "position_of_equals": lambda x, y: (x > 0).int().argmax(1),
}


@pytest.mark.parametrize("functions", [POINTWISE, REDUCTIONS], ids=["pointwise", "reductions"])
def test_nan_and_infinities(functions: dict[str, Callable[..., Tensor]]) -> None:
    x, y = with_specials(7, 9), with_specials(7, 9)
    # PyTorch rounds the compared number to the tensor's type.
    x[5, :3] = 0.1
    results = compiled(list(functions.values()), (x, y))(x, y)
    for (name, function), result in zip(functions.items(), results):
        torch.testing.assert_close(
            result,
            function(x, y),
            rtol=2e-6,
            atol=1e-7,
            equal_nan=True,
            msg=lambda text: f"{name}: {text}",
        )


def test_activations_at_the_accuracy_of_their_type() -> None:
    """Tails of more than 1e-7 count; functions that PyTorch computes as they stand have its own error."""
    names = "relu6 hardswish hardsigmoid elu selu celu silu mish softplus softsign logsigmoid tanhshrink sigmoid tanh"
    functions: dict[str, Callable[..., Tensor]] = {name: getattr(F, name) for name in names.split()}
    functions["gelu"] = F.gelu
    functions["gelu_tanh"] = lambda x: F.gelu(x, approximate="tanh")
    functions["erf"] = torch.erf
    functions["expm1"] = torch.expm1
    functions["asinh"] = torch.asinh
    x = torch.cat([torch.linspace(-8, 8, 801), torch.randn(200) * 0.01])
    check(functions, (x,))


def test_reads_by_several_index_tensors() -> None:
    x = torch.randn(4, 7, 6, 5)
    i, j = torch.randint(-4, 4, (3,)), torch.randint(-5, 5, (3,))
    functions: dict[str, Callable[..., Tensor]] = {
        "first": lambda x, i, j: x[i, j],
        "of_each": lambda x, i, j: x[torch.arange(x.shape[0]), (j.sum() % 5).expand(x.shape[0])],
        "between": lambda x, i, j: x[i, :, j],
        "later": lambda x, i, j: x[:, :, i, j],
        "broadcast": lambda x, i, j: x[:, i[:, None], j[None, :]],
        "three": lambda x, i, j: x[i, 2, j],
        "all": lambda x, i, j: x[i, j, i, j],
        "new": lambda x, i, j: x[i, None, j],
    }
    check(functions, (x, i, j), 0)


def test_reads_outside() -> None:
    x, i = torch.randn(4, 5), torch.tensor([0, 3, 4, -5])
    result = compiled([lambda x, i: x[i * 0, i]], (x, i))(x, torch.tensor([0, 5, -6, 4]))
    assert torch.equal(result.isnan(), torch.tensor([False, True, True, False]))


def test_writes_by_index() -> None:
    x, values = torch.randn(6, 8), torch.randn(6, 3)
    i = torch.stack([torch.randperm(8)[:3] for _ in range(6)])
    row = torch.tensor([1, 4, -2])
    functions: dict[str, Callable[..., Tensor]] = {
        "scatter": lambda x, v, i, r: torch.zeros_like(x).scatter(-1, i, v),
        "scatter_value": lambda x, v, i, r: x.scatter(1, i, 2.5),
        "scatter_add": lambda x, v, i, r: x.scatter_add(1, i % 2, v),
        "scatter_mean": lambda x, v, i, r: x.scatter_reduce(
            1, i % 2, v, "mean", include_self=False
        ),
        "scatter_amax": lambda x, v, i, r: x.scatter_reduce(1, i % 2, v, "amax"),
        "index_add": lambda x, v, i, r: x.index_add(0, r % 2, v[:3] @ v[:3].mT @ x[:3], alpha=0.5),
        "index_copy": lambda x, v, i, r: x.index_copy(0, r % 6, x[3:]),
        "index_fill": lambda x, v, i, r: x.index_fill(1, r % 8, -1.0),
        "index_put": lambda x, v, i, r: x.index_put((r, r), v[0]),
        "index_put_all": lambda x, v, i, r: x.index_put(
            (r[:1].expand(3), r), v[0], accumulate=True
        ),
        "masked": lambda x, v, i, r: x.index_put((x > 0,), torch.tensor(3.0)),
        "last": lambda x, v, i, r: x.scatter(1, i * 0 + 2, v)[:, 2] - v[:, 2],
    }
    check(functions, (x, values, i, row))


EQUATIONS = {
    "tao,taio,ta->ti": [(5, 2, 8), (5, 2, 6, 8), (5, 2)],
    "bij,bjk,bkl,bl->bi": [(2, 3, 4), (2, 4, 5), (2, 5, 6), (2, 6)],
    "...ij,jk->ik...": [(2, 3, 4), (4, 5)],
    "bii,bc->bc": [(3, 4, 4), (3, 5)],
    "i,ij,j->": [(3,), (3, 4), (4,)],
}


def test_einsum_of_any_number_of_operands() -> None:
    counts = [len(shapes) for shapes in EQUATIONS.values()]

    def einsum_of(equation: str, begin: int, count: int) -> Callable[..., Tensor]:
        return lambda *operands: torch.einsum(equation, *operands[begin : begin + count])

    functions = {e: einsum_of(e, sum(counts[:n]), counts[n]) for n, e in enumerate(EQUATIONS)}
    operands = tuple(torch.randn(shape) for shapes in EQUATIONS.values() for shape in shapes)
    check(functions, operands, 256)


def test_order_of_pairs() -> None:
    """A chain of products begins where it is narrow."""
    sizes = {"a": 1000, "b": 1000, "c": 1000, "d": 2}
    assert contractions.order_of_pairs(["ab", "bc", "cd"], "ad", sizes)[0] == (1, 2)
    sizes = {"a": 2, "b": 1000, "c": 1000, "d": 1000}
    assert contractions.order_of_pairs(["ab", "bc", "cd"], "ad", sizes)[0] == (0, 1)


def test_losses_in_another_type() -> None:
    x, target = torch.randn(6, 5), torch.randint(5, (6,))
    functions: dict[str, Callable[..., Tensor]] = {
        "cross_entropy": F.cross_entropy,
        "smoothed": lambda x, t: F.cross_entropy(x, t, label_smoothing=0.1, reduction="none"),
        "log_softmax": lambda x, t: F.log_softmax(x.half(), 1, dtype=torch.float32),
        "softmax": lambda x, t: F.softmax(x.half(), 1, dtype=torch.float32),
    }
    check(functions, (x, target), 64)


class _Refused(nn.Module):
    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        y = torch.view_as_real(torch.view_as_complex(x) * 1j)
        return x[x > 0], y + torch.gcd(x.int(), x.int())


def test_refusals_come_at_once() -> None:
    with pytest.raises(ftuner.CompileError) as error:
        ftuner.torch.export(_Refused(), (torch.randn(5, 2),), dynamic_shapes=({0: Dim.AUTO},))
    lines = str(error.value).splitlines()
    assert len(lines) == 4
    for line, words in zip(lines, ("view_as_complex", "mul", "index", "gcd")):
        own = re.sub(r"\([^ ]*test_operators.py:\d+\)", "", line)
        assert own != line and not refusals.faults(own, [words])
    assert "complex" in lines[0] and "depends on data" in lines[-2]


def test_operators_that_decompose_are_refused_by_their_names() -> None:
    class Model(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return F.pdist(x)

    with pytest.raises(ftuner.CompileError) as error:
        ftuner.torch.export(Model(), (torch.randn(3, 4),), dynamic_shapes=({0: Dim.AUTO},))
    assert "the operator pdist is not supported" in str(error.value)


def test_results_without_elements() -> None:
    x = torch.randn(0, 3)
    total, flipped = compiled([lambda x: x + 1, lambda x: x.T], (x,))(x)
    assert total.shape == (0, 3) and flipped.shape == (3, 0)


def test_quotients() -> None:
    """Divisors of 0, floors of exact quotients, remainders of large ones, and infinities."""
    x, y = with_specials(11, 13) * 40, with_specials(11, 13)
    x[7], y[7] = 2.0**30 + 4 * torch.arange(13), 0.3
    x[8], y[8] = torch.arange(13) / 10, 0.1
    functions: dict[str, Callable[..., Tensor]] = {
        "reciprocal": lambda x, y: 1 / x,
        "signbit": lambda x, y: torch.signbit(x),
        "fmod": torch.fmod,
        "remainder": torch.remainder,
        "floor_divide": torch.floor_divide,
        "floor": lambda x, y: torch.div(x, 0.7, rounding_mode="floor"),
    }
    results = compiled(list(functions.values()), (x, y))(x, y)
    for (name, function), result in zip(functions.items(), results):
        torch.testing.assert_close(
            result,
            function(x, y),
            rtol=1e-6,
            atol=1e-6,
            equal_nan=True,
            msg=lambda text: f"{name}: {text}",
        )


@pytest.mark.parametrize("size", [(3, 5, 6), (3, 8, 7)])
def test_repeated_pads_and_rotations(size: tuple[int, ...]) -> None:
    functions: list[Callable[..., Tensor]] = [
        *(
            lambda x, mode=mode: F.pad(x[None], (2, -1, 0, 3), mode=mode)
            for mode in ("reflect", "replicate", "circular")
        ),
        lambda x: F.pad(x, (-2, 4), mode="replicate"),
        lambda x: F.pad(x, (1, -1, -2, 3), value=1.5),
        lambda x: F.pad(x.sum().reshape(1).round(), (1, -1), value=1.5),
        lambda x: F.pad(x, (1, 2), mode="circular"),
        lambda x: torch.roll(x, (1000, -7), (1, 2)),
        lambda x: torch.roll(x, 5),
    ]
    function = compiled(functions, (torch.randn(3, 5, 6),))
    x = torch.randn(size)
    for result, each in zip(function(x), functions):
        assert torch.equal(result, each(x))


def test_sizes_that_a_trace_fixed() -> None:
    """A remainder, and a size that became a number, are checked when the function runs."""
    parts = compiled([lambda x: torch.tensor_split(x, 3)[0]], (torch.randn(5, 4),))
    assert parts(torch.randn(8, 4)).shape == (3, 4)
    with pytest.raises(ftuner.Error, match="as the model was traced for"):
        parts(torch.randn(6, 4))
    rows = compiled([lambda x: x.unbind()[4]], (torch.randn(5, 4),))
    with pytest.raises(ftuner.Error, match="5, as the model was traced for"):
        rows(torch.randn(6, 4))


def test_unsigned_bytes() -> None:
    """Results are bytes again, and bytes of 128 and more are not negative."""
    x, y = (torch.randint(0, 256, (5, 7), dtype=torch.uint8) for _ in range(2))
    functions: list[Callable[..., Tensor]] = [
        lambda x, y: x + 3, lambda x, y: x.float() / 7, lambda x, y: torch.maximum(x, y), lambda x, y: x > y,
        lambda x, y: x.sum(-1), lambda x, y: x.prod(1), lambda x, y: x.mean(1, dtype=torch.float32),
        lambda x, y: (x.float() * 0.5).to(torch.uint8),
    ]  # fmt: skip
    for result, function in zip(compiled(functions, (x, y))(x, y), functions):
        wanted = function(x, y)
        assert result.dtype == wanted.dtype and torch.equal(result, wanted)
