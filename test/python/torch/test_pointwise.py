"""Every rule of a pointwise operator, behind a product, against PyTorch in f64."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch.nn.functional as F

import ftuner.torch as ft
import torch
from checks import compile_model, relative_error
from ftuner.frontend.torch.regions.pointwise import RULES

aten = torch.ops.aten
convert = torch.ops.prims.convert_element_type
Operator = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]

#: Operators of the product y and of a tensor x of its shape, by what they test.
OPERATORS: dict[object, Operator] = {
    aten.neg.default: lambda y, x: -y,
    aten.abs.default: lambda y, x: y.abs(),
    aten.exp.default: lambda y, x: y.exp(),
    aten.exp2.default: lambda y, x: y.exp2(),
    aten.expm1.default: lambda y, x: y.expm1(),
    aten.log.default: lambda y, x: y.log(),
    aten.log1p.default: lambda y, x: y.log1p(),
    aten.sqrt.default: lambda y, x: y.sqrt(),
    aten.rsqrt.default: lambda y, x: y.rsqrt(),
    aten.sin.default: lambda y, x: y.sin(),
    aten.cos.default: lambda y, x: y.cos(),
    aten.tanh.default: lambda y, x: y.tanh(),
    aten.erf.default: lambda y, x: y.erf(),
    aten.clone.default: lambda y, x: y.clone() * x,
    # A cast rounds, also where another follows it.
    aten._to_copy.default: lambda y, x: (4096 * y.round()).half().float() * x,
    convert.default: lambda y, x: convert(convert(4096 * y.round(), torch.half), torch.float) * x,
    aten.alias.default: lambda y, x: aten.alias(y) * x,
    aten.detach.default: lambda y, x: y.detach() * x,
    aten.add.Tensor: lambda y, x: torch.add(y, x, alpha=3),
    aten.add.Scalar: lambda y, x: aten.add.Scalar(y, 0.25),
    aten.sub.Tensor: lambda y, x: torch.sub(x, y, alpha=0.5),
    aten.sub.Scalar: lambda y, x: aten.sub.Scalar(y, 0.25),
    aten.rsub.Tensor: lambda y, x: torch.rsub(y, x, alpha=2),
    aten.rsub.Scalar: lambda y, x: 1.5 - y,
    aten.mul.Tensor: lambda y, x: y * x,
    aten.mul.Scalar: lambda y, x: aten.mul.Scalar(y, 3),
    aten.div.Tensor: lambda y, x: x / y,
    aten.div.Scalar: lambda y, x: aten.div.Scalar(y, 3),
    aten.true_divide.Tensor: lambda y, x: aten.true_divide.Tensor(y, 7),
    aten.reciprocal.default: lambda y, x: y.reciprocal(),
    aten.maximum.default: lambda y, x: torch.maximum(y, x),
    aten.minimum.default: lambda y, x: torch.minimum(x, y),
    aten.relu.default: lambda y, x: y.relu(),
    aten.clamp.default: lambda y, x: y.clamp(-0.5, 0.75),
    aten.clamp_min.default: lambda y, x: aten.clamp_min(y, -0.25),
    aten.clamp_max.default: lambda y, x: aten.clamp_max(y, 0.25),
    aten.hardtanh.default: lambda y, x: F.hardtanh(y, -0.5, 0.5),
    aten.leaky_relu.default: lambda y, x: F.leaky_relu(y, 0.1),
    aten.sigmoid.default: lambda y, x: y.sigmoid(),
    aten.silu.default: lambda y, x: F.silu(y),
    aten.elu.default: lambda y, x: F.selu(y),
    aten.hardsigmoid.default: lambda y, x: F.hardsigmoid(4 * y),
    aten.hardswish.default: lambda y, x: F.hardswish(4 * y),
    aten.pow.Tensor_Scalar: lambda y, x: y**3 + y**2,
    "pow of a fraction": lambda y, x: y**2.5,
    "roots by pow": lambda y, x: y**0.5 + y**-0.5 + y**-1,
    aten.gelu.default: lambda y, x: F.gelu(y),
    "gelu by tanh": lambda y, x: F.gelu(y, approximate="tanh"),
    aten.gelu_backward.default: lambda y, x: aten.gelu_backward(x, y),
    "gradient of gelu by tanh": lambda y, x: aten.gelu_backward(x, y, approximate="tanh"),
    aten.threshold_backward.default: lambda y, x: aten.threshold_backward(y, x, 0.125),
    aten.tanh_backward.default: lambda y, x: aten.tanh_backward(y, x),
    aten.sigmoid_backward.default: lambda y, x: aten.sigmoid_backward(y, x),
    aten.silu_backward.default: lambda y, x: aten.silu_backward(y, x),
}
POSITIVE = {
    aten.log.default,
    aten.log1p.default,
    aten.sqrt.default,
    aten.rsqrt.default,
    aten.reciprocal.default,
    aten.div.Tensor,
    "pow of a fraction",
    "roots by pow",
}


def test_every_rule_has_a_test() -> None:
    assert set(RULES) <= set(OPERATORS)


def test_operators() -> None:
    """All in one graph, compiled side by side; for one size, since that is quicker."""

    def model(a: torch.Tensor, b: torch.Tensor, x: torch.Tensor) -> list[torch.Tensor]:
        positive, positive_a = b.abs(), a.abs()
        return [
            operator(positive_a @ positive if key in POSITIVE else a @ b, x)
            for key, operator in OPERATORS.items()
        ]

    a, b, x = torch.randn(6, 5), torch.randn(5, 7), torch.randn(6, 7)
    with torch.no_grad():
        results = compile_model(model, dynamic=False)(a, b, x)
        expected = model(a.double(), b.double(), x.double())
    for key, result, exact in zip(OPERATORS, results, expected):
        assert relative_error(result, exact) < 2e-6, key
    report = ft.report()
    assert report.taken == len(OPERATORS) and not report.left
    # Nothing pointwise is left behind: each operator is in its function.
    assert report.fused >= len(OPERATORS)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf"), 0.0])
def test_special_values(value: float) -> None:
    """NaN, infinities and zero give the results of PyTorch's own kernels."""

    def model(a: torch.Tensor, b: torch.Tensor) -> list[torch.Tensor]:
        y = a @ b
        return [
            operator(a @ b)
            for operator in (
                torch.relu,
                lambda y: y.clamp(-1, 1),
                lambda y: F.leaky_relu(y),
                torch.sigmoid,
                torch.tanh,
                lambda y: torch.maximum(y, b[:1].expand(y.shape)),
                lambda y: aten.threshold_backward(b[:1].expand(y.shape).contiguous(), y, 0),
            )
        ] + [y]

    a, b = torch.ones(3, 2), torch.full((2, 4), value)
    with torch.no_grad():
        for result, expected in zip(compile_model(model, dynamic=False)(a, b), model(a, b)):
            torch.testing.assert_close(result, expected, equal_nan=True)
