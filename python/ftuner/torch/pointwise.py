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

from .linalg import Instruction, Value
from .nodes import Unsupported

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


def _unary(operation: str) -> Rule:
    return lambda b, x: b(operation, x)


for _operator, _operation in {
    aten.neg.default: "arith.negf",
    aten.abs.default: "math.absf",
    aten.exp.default: "math.exp",
    aten.exp2.default: "math.exp2",
    aten.expm1.default: "math.expm1",
    aten.log.default: "math.log",
    aten.log1p.default: "math.log1p",
    aten.sqrt.default: "math.sqrt",
    aten.rsqrt.default: "math.rsqrt",
    aten.sin.default: "math.sin",
    aten.cos.default: "math.cos",
    aten.tanh.default: "math.tanh",
    aten.erf.default: "math.erf",
}.items():
    RULES[_operator] = _unary(_operation)


#: Operators that return their operand.
@rule(aten.clone.default, aten.contiguous.default, aten.alias.default, aten.detach.default)
def identity(b: Emitter, x: Value, memory_format: Any = None) -> Value:
    return x


#: A cast: what the operator's result is rounded to says the rest.
@rule(aten._to_copy.default, torch.ops.prims.convert_element_type.default)
def to_copy(b: Emitter, x: Value, dtype: Any = None, memory_format: Any = None) -> Value:
    return x


@rule(aten.add.Tensor, aten.add.Scalar)
def add(b: Emitter, x: Value, y: Value, alpha: float = 1) -> Value:
    return b.add(x, y if alpha == 1 else b.mul(y, float(alpha)))


@rule(aten.sub.Tensor, aten.sub.Scalar)
def sub(b: Emitter, x: Value, y: Value, alpha: float = 1) -> Value:
    return b.sub(x, y if alpha == 1 else b.mul(y, float(alpha)))


@rule(aten.rsub.Tensor, aten.rsub.Scalar)
def rsub(b: Emitter, x: Value, y: Value, alpha: float = 1) -> Value:
    return sub(b, y, x, alpha)


@rule(aten.mul.Tensor, aten.mul.Scalar)
def mul(b: Emitter, x: Value, y: Value) -> Value:
    return b.mul(x, y)


@rule(aten.div.Tensor, aten.div.Scalar, aten.true_divide.Tensor)
def div(b: Emitter, x: Value, y: Value) -> Value:
    return b.div(x, y)


@rule(aten.reciprocal.default)
def reciprocal(b: Emitter, x: Value) -> Value:
    return b.div(1.0, x)


@rule(aten.maximum.default)
def maximum(b: Emitter, x: Value, y: Value) -> Value:
    return b("arith.maximumf", x, y)


@rule(aten.minimum.default)
def minimum(b: Emitter, x: Value, y: Value) -> Value:
    return b("arith.minimumf", x, y)


@rule(aten.relu.default)
def relu(b: Emitter, x: Value) -> Value:
    return b("arith.maximumf", x, 0.0)


@rule(aten.clamp.default, aten.hardtanh.default)
def clamp(b: Emitter, x: Value, min: Value | None = None, max: Value | None = None) -> Value:
    if min is not None:
        x = b("arith.maximumf", x, min)
    return x if max is None else b("arith.minimumf", x, max)


@rule(aten.clamp_min.default)
def clamp_min(b: Emitter, x: Value, min: Value) -> Value:
    return clamp(b, x, min)


@rule(aten.clamp_max.default)
def clamp_max(b: Emitter, x: Value, max: Value) -> Value:
    return clamp(b, x, None, max)


@rule(aten.leaky_relu.default)
def leaky_relu(b: Emitter, x: Value, negative_slope: float = 0.01) -> Value:
    return b.select("ogt", x, 0.0, x, b.mul(x, float(negative_slope)))


@rule(aten.sigmoid.default)
def sigmoid(b: Emitter, x: Value) -> Value:
    return b.div(1.0, b.add(1.0, b("math.exp", b("arith.negf", x))))


@rule(aten.silu.default)
def silu(b: Emitter, x: Value) -> Value:
    return b.div(x, b.add(1.0, b("math.exp", b("arith.negf", x))))


@rule(aten.elu.default)
def elu(b: Emitter, x: Value, alpha: float = 1, scale: float = 1, input_scale: float = 1) -> Value:
    grown = b.mul(b("math.expm1", b.mul(x, float(input_scale))), float(alpha * scale))
    return b.select("ogt", x, 0.0, b.mul(x, float(scale)), grown)


@rule(aten.hardsigmoid.default)
def hardsigmoid(b: Emitter, x: Value) -> Value:
    return b.div(clamp(b, b.add(x, 3.0), 0.0, 6.0), 6.0)


@rule(aten.hardswish.default)
def hardswish(b: Emitter, x: Value) -> Value:
    return b.div(b.mul(x, clamp(b, b.add(x, 3.0), 0.0, 6.0)), 6.0)


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


@rule(aten.threshold_backward.default)
def threshold_backward(b: Emitter, grad: Value, x: Value, threshold: Value) -> Value:
    return b.select("ole", x, threshold, 0.0, grad)


@rule(aten.tanh_backward.default)
def tanh_backward(b: Emitter, grad: Value, y: Value) -> Value:
    return b.mul(grad, b.sub(1.0, b.mul(y, y)))


@rule(aten.sigmoid_backward.default)
def sigmoid_backward(b: Emitter, grad: Value, y: Value) -> Value:
    return b.mul(grad, b.mul(b.sub(1.0, y), y))


@rule(aten.silu_backward.default)
def silu_backward(b: Emitter, grad: Value, x: Value) -> Value:
    gate = sigmoid(b, x)
    return b.mul(grad, b.mul(gate, b.add(b.mul(x, b.sub(1.0, gate)), 1.0)))
