"""Pointwise ATen operators as scalar operations in f32.

PyTorch computes operators of float16 and bfloat16 in f32, too, and rounds their results.

Each operator has a function that emits its operations in order and returns the
value; it takes the operator's operands as values, and its other parameters by
name. Formulas are those of PyTorch's kernels for f32 on CPU and CUDA
(aten/src/ATen/native), gradients those of tools/autograd/derivatives.yaml.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from typing import Any

import torch

from ..graph.nodes import Unsupported
from .linalg import Instruction, Value

aten = torch.ops.aten


class Emitter:
    """Collects the instructions of an epilogue, each distinct one once."""

    def __init__(self) -> None:
        self.instructions: list[Instruction] = []
        self.known: dict[Instruction, Value] = {}

    def __call__(
        self, operation: str, *operands: Value, attributes: str = "", suffix: str = "f32"
    ) -> Value:
        instruction = Instruction(operation, operands, attributes, suffix)
        if instruction not in self.known:
            self.known[instruction] = f"v{len(self.instructions)}"
            self.instructions.append(instruction)
        return self.known[instruction]

    def add(self, x: Value, y: Value) -> Value:
        return self("arith.addf", x, y)

    def sub(self, x: Value, y: Value) -> Value:
        return self("arith.subf", x, y)

    def mul(self, x: Value, y: Value) -> Value:
        return self("arith.mulf", x, y)

    def div(self, x: Value, y: Value) -> Value:
        return self("arith.divf", x, y)

    def round(self, x: Value, kind: str) -> Value:
        """The value rounded to a type: "f16"; f32 values have f32 already."""
        if kind == "f32":
            return x
        narrow = self("arith.truncf", x, suffix=f"f32 to {kind}")
        return self("arith.extf", narrow, suffix=f"{kind} to f32")

    def select(self, predicate: str, x: Value, y: Value, then: Value, other: Value) -> Value:
        """``then`` where ``x predicate y``, ``other`` elsewhere."""
        condition = self("arith.cmpf", x, y, attributes=f"{predicate},")
        return self("arith.select", condition, then, other)


Rule = Callable[..., Value]
RULES: dict[Any, Rule] = {}


def rule(*operators: Any) -> Callable[[Rule], Rule]:
    def register(function: Rule) -> Rule:
        for operator in operators:
            RULES[operator] = function
        return function

    return register


def emit(emitter: Emitter, target: Any, values: list[Any], options: dict[str, Any]) -> Value:
    """Emits the operator; raises Unsupported where it has other parameters."""
    function = RULES[target]
    try:
        inspect.signature(function).bind(emitter, *values, **options)
    except TypeError as error:
        raise Unsupported(str(error)) from None
    return function(emitter, *values, **options)


def clamp(b: Emitter, x: Value, min: Value | None = None, max: Value | None = None) -> Value:
    if min is not None:
        x = b("arith.maximumf", x, min)
    return x if max is None else b("arith.minimumf", x, max)


def _sigmoid(b: Emitter, x: Value) -> Value:
    return b.div(1.0, b.add(1.0, b("math.exp", b("arith.negf", x))))


def _subtract(b: Emitter, x: Value, y: Value, alpha: float = 1) -> Value:
    return b.sub(x, y if alpha == 1 else b.mul(y, float(alpha)))


#: Operators of one operand that are one operation.
_OPERATIONS = {
    aten.neg: "arith.negf", aten.abs: "math.absf", aten.exp: "math.exp", aten.exp2: "math.exp2",
    aten.expm1: "math.expm1", aten.log: "math.log", aten.log1p: "math.log1p", aten.sqrt: "math.sqrt",
    aten.rsqrt: "math.rsqrt", aten.sin: "math.sin", aten.cos: "math.cos", aten.tanh: "math.tanh",
    aten.erf: "math.erf",
}  # fmt: skip
for _packet, _operation in _OPERATIONS.items():
    RULES[_packet.default] = lambda b, x, operation=_operation: b(operation, x)

RULES |= {
    # Results are rounded to their types, which is all that a cast does on one device.
    aten._to_copy.default: lambda b, x, **_: x,
    torch.ops.prims.convert_element_type.default: lambda b, x, dtype: x,
    aten.reciprocal.default: lambda b, x: b.div(1.0, x),
    aten.maximum.default: lambda b, x, y: b("arith.maximumf", x, y),
    aten.minimum.default: lambda b, x, y: b("arith.minimumf", x, y),
    aten.relu.default: lambda b, x: b("arith.maximumf", x, 0.0),
    aten.clamp.default: clamp,
    aten.hardtanh.default: lambda b, x, min_val=-1.0, max_val=1.0: clamp(b, x, min_val, max_val),
    aten.clamp_min.default: lambda b, x, min: clamp(b, x, min),
    aten.clamp_max.default: lambda b, x, max: clamp(b, x, None, max),
    aten.sigmoid.default: _sigmoid,
    aten.silu.default: lambda b, x: b.div(x, b.add(1.0, b("math.exp", b("arith.negf", x)))),
    aten.hardsigmoid.default: lambda b, x: b.div(clamp(b, b.add(x, 3.0), 0.0, 6.0), 6.0),
    aten.hardswish.default: lambda b, x: b.div(b.mul(x, clamp(b, b.add(x, 3.0), 0.0, 6.0)), 6.0),
    aten.tanh_backward.default: lambda b, grad, y: b.mul(grad, b.sub(1.0, b.mul(y, y))),
    aten.sigmoid_backward.default: lambda b, grad, y: b.mul(grad, b.mul(b.sub(1.0, y), y)),
    aten.threshold_backward.default: (
        lambda b, grad, x, threshold: b.select("ole", x, threshold, 0.0, grad)
    ),
}


@rule(aten.clone.default, aten.alias.default, aten.detach.default)
def identity(b: Emitter, x: Value, memory_format: Any = None) -> Value:
    return x


@rule(aten.add.Tensor, aten.add.Scalar)
def add(b: Emitter, x: Value, y: Value, alpha: float = 1) -> Value:
    return b.add(x, y if alpha == 1 else b.mul(y, float(alpha)))


rule(aten.sub.Tensor, aten.sub.Scalar)(_subtract)
rule(aten.rsub.Tensor, aten.rsub.Scalar)(lambda b, x, y, alpha=1: _subtract(b, y, x, alpha))
rule(aten.mul.Tensor, aten.mul.Scalar)(lambda b, x, y: b.mul(x, y))
rule(aten.div.Tensor, aten.div.Scalar, aten.true_divide.Tensor)(lambda b, x, y: b.div(x, y))


@rule(aten.leaky_relu.default)
def leaky_relu(b: Emitter, x: Value, negative_slope: float = 0.01) -> Value:
    return b.select("ogt", x, 0.0, x, b.mul(x, float(negative_slope)))


@rule(aten.elu.default)
def elu(b: Emitter, x: Value, alpha: float = 1, scale: float = 1, input_scale: float = 1) -> Value:
    grown = b.mul(b("math.expm1", b.mul(x, float(input_scale))), float(alpha * scale))
    return b.select("ogt", x, 0.0, b.mul(x, float(scale)), grown)


@rule(aten.pow.Tensor_Scalar)
def pow_scalar(b: Emitter, x: Value, exponent: Value) -> Value:
    if exponent == 1:
        return x
    if exponent == 2:
        return b.mul(x, x)
    if exponent == 3:
        return b.mul(b.mul(x, x), x)
    if exponent == 0.5:
        return b("math.sqrt", x)
    if exponent == -0.5:
        return b("math.rsqrt", x)
    if exponent == -1:
        return b.div(1.0, x)
    return b("math.powf", x, exponent)


def _gelu_tanh(b: Emitter, x: Value) -> Value:
    """tanh of sqrt(2/π) · (x + 0.044715 · x³)."""
    cube = b.mul(b.mul(x, x), x)
    inner = b.mul(b.add(x, b.mul(cube, 0.044715)), math.sqrt(2 / math.pi))
    return b("math.tanh", inner)


def _normal_cdf(b: Emitter, x: Value) -> Value:
    return b.mul(b.add(b("math.erf", b.mul(x, math.sqrt(0.5))), 1.0), 0.5)


@rule(aten.gelu.default)
def gelu(b: Emitter, x: Value, approximate: str = "none") -> Value:
    if approximate == "tanh":
        return b.mul(b.mul(x, 0.5), b.add(_gelu_tanh(b, x), 1.0))
    return b.mul(x, _normal_cdf(b, x))


@rule(aten.gelu_backward.default)
def gelu_backward(b: Emitter, grad: Value, x: Value, approximate: str = "none") -> Value:
    if approximate == "tanh":
        tanh = _gelu_tanh(b, x)
        left = b.mul(b.add(tanh, 1.0), 0.5)
        slope = b.add(b.mul(b.mul(x, x), 3 * 0.044715), 1.0)
        inner = b.mul(slope, math.sqrt(2 / math.pi))
        right = b.mul(b.mul(b.mul(x, 0.5), b.sub(1.0, b.mul(tanh, tanh))), inner)
        return b.mul(grad, b.add(left, right))
    density = b.mul(b("math.exp", b.mul(b.mul(x, x), -0.5)), 1 / math.sqrt(2 * math.pi))
    return b.mul(grad, b.add(_normal_cdf(b, x), b.mul(x, density)))


@rule(aten.silu_backward.default)
def silu_backward(b: Emitter, grad: Value, x: Value) -> Value:
    gate = _sigmoid(b, x)
    return b.mul(grad, b.mul(gate, b.add(b.mul(x, b.sub(1.0, gate)), 1.0)))
