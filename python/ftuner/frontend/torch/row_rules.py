"""What ATen's operators on rows are, as operators of a `RowFunction`.

Formulas are those of PyTorch's kernels (aten/src/ATen/native) and decompositions
(torch/_decomp/decompositions.py, torch/_refs): statistics in f32, variances as means of squares of
deviations, one rounding at the end of each operator of PyTorch.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import torch
from torch import fx
from torch._subclasses.fake_tensor import unset_fake_temporarily

from .layout import Dims, Extent, Layout, Loop, shape_of
from .linalg import Instruction, Value
from .pointwise import RULES, Emitter, Unsupported, emit
from .row_function import COUNT, FALSE, LAST, POSITION
from .row_registry import (
    channels_of_batches, channels_of_images, normalized_dims, operand_of_rows, row_rule,
)  # fmt: skip

aten = torch.ops.aten
prims = torch.ops.prims

#: Elements of tensors, and what MLIR calls them.
KINDS = {
    torch.float32: "f32",
    torch.float16: "f16",
    torch.bfloat16: "bf16",
    torch.bool: "i1",
    torch.int64: "i64",
}
FLOATS = ("f32", "f16", "bf16")


@dataclass(frozen=True)
class Tensor:
    """A value of the function: its name there, the loops of its dimensions, its type."""

    name: str
    dims: Dims
    kind: str


@dataclass
class Step:
    """An operator of the function while it grows; see `row_function.Operator`."""

    operands: list[Tensor]
    instructions: list[Instruction]
    value: Value
    dims: Dims
    kind: str
    combine: str = ""


Body = Callable[..., Value]


@dataclass
class Steps:
    """Collects the operators of a function.

    Attributes:
        reduced: the loops of a row, in the order of the dimensions.
    """

    layout: Layout = field(default_factory=Layout)
    reduced: tuple[Loop, ...] = ()
    steps: list[Step] = field(default_factory=list)

    def copy(self) -> Steps:
        return Steps(self.layout.copy(), self.reduced, [replace(step) for step in self.steps])

    def _emit(self, operands: Sequence[Tensor], body: Body) -> tuple[list[Instruction], Value]:
        emitter = Emitter()
        numbers = itertools.count()
        values = [
            operand.name if operand.name[0] == "s" else f"x{next(numbers)}" for operand in operands
        ]
        value = body(emitter, *values)
        return emitter.instructions, value

    def map(self, kind: str, dims: Dims, operands: Sequence[Tensor], body: Body) -> Tensor:
        """An elementwise operator: `body` gets an emitter and an element of each operand.

        Scalars of the function may be among the operands.
        """
        instructions, value = self._emit(operands, body)
        return self._add(Step(_tensors(operands), instructions, value, dims, kind))

    def reduce(
        self,
        combine: str,
        operands: Sequence[Tensor],
        body: Body = lambda b, x: x,
        kind: str = "f32",
    ) -> Tensor:
        """What the elements of a row give, joined; the first operand has all dimensions."""
        instructions, value = self._emit(operands, body)
        dims = self.of_row(operands[0])
        return self._add(Step(_tensors(operands), instructions, value, dims, kind, combine))

    def _add(self, step: Step) -> Tensor:
        """The result of an operator, which may be there already."""
        known = next((n for n, other in enumerate(self.steps) if self._is_same(step, other)), None)
        if known is None:
            self.steps.append(step)
            known = len(self.steps) - 1
        return Tensor(f"t{known}", step.dims, step.kind)

    def _is_same(self, one: Step, other: Step) -> bool:
        def walk(step: Step) -> list[Loop]:
            return [loop for loops in self.layout.resolve(step.dims) for loop in loops]

        def content(step: Step) -> tuple[Any, ...]:
            names = [operand.name for operand in step.operands]
            return names, step.instructions, step.value, step.kind, step.combine

        return content(one) == content(other) and walk(one) == walk(other)

    def of_row(self, x: Tensor) -> Dims:
        """The dimensions of a statistic, each kept: no loop walks those of the row."""
        reduced = set(self.layout.leaves(self.reduced))
        dims = self.layout.resolve(x.dims)
        return tuple(tuple(loop for loop in loops if loop not in reduced) for loops in dims)


def _tensors(operands: Sequence[Tensor]) -> list[Tensor]:
    return [operand for operand in operands if operand.name[0] != "s"]


class Surroundings(Protocol):
    """What a rule asks of the graph around its operator."""

    steps: Steps

    def read(self, node: fx.Node, dims: Dims, shape: tuple[Extent, ...]) -> Tensor:
        """A tensor that is broadcast to a shape. Raises Unsupported."""


def _kind(node: fx.Node, number: int | None = None) -> str:
    """The type of a node's result; Unsupported for others than are computed."""
    value = node.meta["val"]
    value = value if number is None else value[number]
    kind = KINDS.get(value.dtype)
    if kind is None:
        raise Unsupported(f"a result of {str(value.dtype).removeprefix('torch.')}")
    return kind


def _accumulates(node: fx.Node, x: Tensor) -> str:
    """The result's type, where sums are of elements as they are. Raises Unsupported."""
    kind = _kind(node)
    if x.kind not in FLOATS or kind not in FLOATS or (kind != x.kind and kind != "f32"):
        raise Unsupported("elements that are converted before they are added")
    return kind


def _rounded(steps: Steps, x: Tensor, kind: str) -> Tensor:
    return x if x.kind == kind else steps.map(kind, x.dims, [x], lambda b, value: value)


def _mean(steps: Steps, x: Tensor) -> Tensor:
    total = steps.reduce("arith.addf", [x])
    return steps.map("f32", total.dims, [total], lambda b, s: b.div(s, COUNT))


def _squares(steps: Steps, x: Tensor, mean: Tensor) -> Tensor:
    """The sum of squares of deviations."""

    def square(b: Emitter, value: Value, center: Value) -> Value:
        deviation = b.sub(value, center)
        return b.mul(deviation, deviation)

    return steps.reduce("arith.addf", [x, mean], square)


def _full(steps: Steps, x: Tensor) -> Dims:
    return steps.layout.resolve(x.dims)


@row_rule(aten._softmax.default, aten._safe_softmax.default)
def _softmax(a: Surroundings, node: fx.Node, x: Tensor, **_: Any) -> Tensor:
    steps = a.steps
    is_safe = node.target is aten._safe_softmax.default
    if is_safe and _kind(node) != x.kind:
        raise Unsupported("elements that are converted before their softmax")
    most = steps.reduce("arith.maximumf", [x])
    total = steps.reduce("arith.addf", [x, most], lambda b, v, m: b("math.exp", b.sub(v, m)))

    def share(b: Emitter, value: Value, most: Value, total: Value) -> Value:
        result = b.div(b("math.exp", b.sub(value, most)), total)
        # A row that is masked as a whole.
        return b.select("oeq", most, -math.inf, 0.0, result) if is_safe else result

    return steps.map(_kind(node), _full(steps, x), [x, most, total], share)


@row_rule(aten._log_softmax.default)
def _log_softmax(a: Surroundings, node: fx.Node, x: Tensor, **_: Any) -> Tensor:
    steps = a.steps
    most = steps.reduce("arith.maximumf", [x])
    total = steps.reduce("arith.addf", [x, most], lambda b, v, m: b("math.exp", b.sub(v, m)))
    return steps.map(
        _kind(node),
        _full(steps, x),
        [x, most, total],
        lambda b, v, m, t: b.sub(b.sub(v, m), b("math.log", t)),
    )


@row_rule(aten.logsumexp.default)
def _logsumexp(a: Surroundings, node: fx.Node, x: Tensor, **_: Any) -> Tensor:
    steps = a.steps
    most = steps.reduce("arith.maximumf", [x])
    # A row whose extreme is infinite has it as its result.
    most = steps.map(
        "f32",
        most.dims,
        [most],
        lambda b, m: b.select("oeq", b("math.absf", m), math.inf, 0.0, m),
    )
    total = steps.reduce("arith.addf", [x, most], lambda b, v, m: b("math.exp", b.sub(v, m)))
    return steps.map(
        _kind(node), total.dims, [total, most], lambda b, t, m: b.add(b("math.log", t), m)
    )


@row_rule(aten.sum.dim_IntList, aten.sum.default)
def _sum(a: Surroundings, node: fx.Node, x: Tensor, **_: Any) -> Tensor:
    if x.kind == "i1" and _kind(node) == "i64":
        return a.steps.reduce(
            "arith.addi", [x], lambda b, v: b("arith.extui", v, suffix="i1 to i64"), "i64"
        )
    kind = _accumulates(node, x)
    return _rounded(a.steps, a.steps.reduce("arith.addf", [x]), kind)


@row_rule(aten.mean.dim, aten.mean.default)
def _mean_rule(a: Surroundings, node: fx.Node, x: Tensor, **_: Any) -> Tensor:
    kind = _accumulates(node, x)
    return _rounded(a.steps, _mean(a.steps, x), kind)


@row_rule(aten.amax.default, aten.max.default)
def _amax(a: Surroundings, node: fx.Node, x: Tensor, **_: Any) -> Tensor:
    return _rounded(a.steps, a.steps.reduce("arith.maximumf", [x]), x.kind)


@row_rule(aten.amin.default, aten.min.default)
def _amin(a: Surroundings, node: fx.Node, x: Tensor, **_: Any) -> Tensor:
    return _rounded(a.steps, a.steps.reduce("arith.minimumf", [x]), x.kind)


def _place(steps: Steps, x: Tensor, extreme: Tensor) -> Tensor:
    """The position of an extreme: the first of equal elements, or the first NaN if there is one."""

    def candidate(b: Emitter, value: Value, extreme: Value) -> Value:
        is_it = b("arith.cmpf", value, extreme, attributes="oeq,")
        is_nan = b("arith.cmpf", value, value, attributes="uno,")
        either = b("arith.ori", is_it, is_nan, suffix="i1")
        return b("arith.select", either, POSITION, LAST, suffix="i32")

    first = steps.reduce("arith.minsi", [x, extreme], candidate, "i32")
    return steps.map(
        "i64", first.dims, [first], lambda b, place: b("arith.extsi", place, suffix="i32 to i64")
    )


@row_rule(aten.max.dim, aten.min.dim, aten.argmax.default, aten.argmin.default)
def _extreme(a: Surroundings, node: fx.Node, x: Tensor, **_: Any) -> Any:
    is_most = node.target in (aten.max.dim, aten.argmax.default)
    extreme = a.steps.reduce("arith.maximumf" if is_most else "arith.minimumf", [x])
    place = _place(a.steps, x, extreme)
    if node.target in (aten.argmax.default, aten.argmin.default):
        return place
    return _rounded(a.steps, extreme, x.kind), place


def _variance(steps: Steps, x: Tensor, correction: Any) -> tuple[Tensor, Tensor]:
    """Variance and mean in f32."""
    correction = 1 if correction is None else correction
    if not isinstance(correction, (int, float)):
        raise Unsupported("a correction that is no constant")
    mean = _mean(steps, x)
    squares = _squares(steps, x, mean)

    def divide(b: Emitter, total: Value) -> Value:
        if not correction:
            return b.div(total, COUNT)
        rest = b("arith.maximumf", b.sub(COUNT, float(correction)), 0.0)
        return b.div(total, rest)

    return steps.map("f32", squares.dims, [squares], divide), mean


@row_rule(aten.var.correction)
def _var(a: Surroundings, node: fx.Node, x: Tensor, correction: Any = None, **_: Any) -> Tensor:
    return _rounded(a.steps, _variance(a.steps, x, correction)[0], _kind(node))


@row_rule(aten.std.correction)
def _std(a: Surroundings, node: fx.Node, x: Tensor, correction: Any = None, **_: Any) -> Tensor:
    variance, _mean_ = _variance(a.steps, x, correction)
    return a.steps.map(
        _kind(node), variance.dims, [variance], lambda b, v: b("math.sqrt", v)
    )


@row_rule(aten.var_mean.correction)
def _var_mean(
    a: Surroundings, node: fx.Node, x: Tensor, correction: Any = None, **_: Any
) -> tuple[Tensor, Tensor]:
    variance, mean = _variance(a.steps, x, correction)
    return _rounded(a.steps, variance, _kind(node, 0)), _rounded(a.steps, mean, _kind(node, 1))


@row_rule(aten.linalg_vector_norm.default)
def _vector_norm(a: Surroundings, node: fx.Node, x: Tensor, ord: Any = 2, **_: Any) -> Tensor:
    steps, kind = a.steps, _accumulates(node, x)
    if not isinstance(ord, (int, float)):
        raise Unsupported("a norm whose order is no constant")
    if ord == math.inf or ord == -math.inf:
        combine = "arith.maximumf" if ord > 0 else "arith.minimumf"
        return _rounded(steps, steps.reduce(combine, [x], lambda b, v: b("math.absf", v)), kind)
    if ord == 0:
        total = steps.reduce("arith.addf", [x], lambda b, v: b.select("une", v, 0.0, 1.0, 0.0))
    elif ord == 1:
        total = steps.reduce("arith.addf", [x], lambda b, v: b("math.absf", v))
    elif ord == 2:
        total = steps.reduce("arith.addf", [x], lambda b, v: b.mul(v, v))
        return steps.map(kind, total.dims, [total], lambda b, t: b("math.sqrt", t))
    else:
        power = float(ord)
        total = steps.reduce(
            "arith.addf", [x], lambda b, v: b("math.powf", b("math.absf", v), power)
        )
        return steps.map(kind, total.dims, [total], lambda b, t: b("math.powf", t, 1 / power))
    return _rounded(steps, total, kind)


def _affine(
    a: Surroundings,
    x: Tensor,
    statistics: Sequence[Tensor],
    normal: Body,
    parameters: tuple[Any, Any],
    places: slice,
    shape: tuple[Extent, ...],
    kind: str,
) -> Tensor:
    """`normal` of an element and the statistics, times a weight, plus a bias, as far as given.

    Args:
        parameters: weight and bias, nodes or None, which have the dimensions at these `places`.
        shape: of x.
    """
    weight, bias = parameters
    dims = a.steps.layout.resolve(x.dims)[places]
    given = [a.read(tensor, dims, shape[places]) for tensor in parameters if tensor is not None]

    def body(b: Emitter, value: Value, *others: Value) -> Value:
        factors = list(others[len(statistics) :])
        result = normal(b, value, *others[: len(statistics)])
        if weight is not None:
            result = b.mul(result, factors.pop(0))
        return result if bias is None else b.add(result, factors.pop(0))

    # Reading may have split loops.
    return a.steps.map(kind, _full(a.steps, x), [x, *statistics, *given], body)


def _normal(b: Emitter, value: Value, mean: Value, scale: Value) -> Value:
    return b.mul(b.sub(value, mean), scale)


def _scale_of(steps: Steps, variance: Tensor, eps: float) -> Tensor:
    return steps.map(
        "f32", variance.dims, [variance], lambda b, v: b("math.rsqrt", b.add(v, float(eps)))
    )


@row_rule(aten.native_layer_norm.default, rows=normalized_dims)
def _layer_norm(
    a: Surroundings, node: fx.Node, x: Tensor, weight: Any, bias: Any, eps: float,
    normalized_shape: Any, **_: Any,
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    steps = a.steps
    variance, mean = _variance(steps, x, 0)
    scale = _scale_of(steps, variance, eps)
    y = _affine(
        a, x, [mean, scale], _normal, (weight, bias), slice(-len(normalized_shape), None),
        shape_of(operand_of_rows(node)), _kind(node, 0),
    )  # fmt: skip
    return y, _rounded(steps, mean, _kind(node, 1)), _rounded(steps, scale, _kind(node, 2))


@row_rule(aten._fused_rms_norm.default, rows=normalized_dims)
def _rms_norm(
    a: Surroundings, node: fx.Node, x: Tensor, weight: Any, eps: Any, normalized_shape: Any, **_: Any
) -> tuple[Tensor, Tensor]:
    steps = a.steps
    eps = torch.finfo(operand_of_rows(node).meta["val"].dtype).eps if eps is None else eps
    total = steps.reduce("arith.addf", [x], lambda b, v: b.mul(v, v))
    mean = steps.map("f32", total.dims, [total], lambda b, t: b.div(t, COUNT))
    scale = _scale_of(steps, mean, eps)
    y = _affine(
        a, x, [scale], lambda b, v, s: b.mul(v, s), (weight, None),
        slice(-len(normalized_shape), None), shape_of(operand_of_rows(node)), _kind(node, 0),
    )  # fmt: skip
    return y, _rounded(steps, scale, _kind(node, 1))


#: Norms whose statistics are scaled and shifted by channel, and the dimensions that statistics have: of
#: images and groups, of channels.
_STATISTICS_OF_CHANNELS: dict[Any, slice] = {
    aten.native_group_norm.default: slice(2),
    aten._native_batch_norm_legit.no_stats: slice(1, 2),
}


@row_rule(aten.native_group_norm.default, rows=channels_of_images)
@row_rule(aten._native_batch_norm_legit.no_stats, rows=channels_of_batches)
def _norm_of_channels(
    a: Surroundings, node: fx.Node, x: Tensor, weight: Any, bias: Any, eps: float, **_: Any
) -> tuple[Tensor, Tensor, Tensor]:
    steps = a.steps
    variance, mean = _variance(steps, x, 0)
    scale = _scale_of(steps, variance, eps)
    y = _affine(
        a, x, [mean, scale], _normal, (weight, bias), slice(1, 2), shape_of(operand_of_rows(node)),
        _kind(node, 0),
    )  # fmt: skip
    dims = _STATISTICS_OF_CHANNELS[node.target]
    mean, scale = (
        replace(_rounded(steps, one, _kind(node, number)), dims=one.dims[dims])
        for number, one in ((1, mean), (2, scale))
    )
    return y, mean, scale


# Elementwise operators that products do not take: with booleans, or of several parameters.

#: Operators that convert their operands to one type and compare them.
COMPARISONS: set[Any] = set()
#: A rule gets the emitter and the operands, of which booleans are i1.
BOOLEAN_RULES: dict[Any, Callable[..., Value]] = {}
#: Of these the operands that may be booleans, by place; all others are made numbers.
_CONDITIONS: dict[Any, tuple[int, ...]] = {
    aten.where.self: (0,),
    aten.masked_fill.Scalar: (1,),
    aten.masked_fill.Tensor: (1,),
}

for _name, _predicate in {
    "gt": "ogt", "ge": "oge", "lt": "olt", "le": "ole", "eq": "oeq", "ne": "une",
}.items():  # fmt: skip
    for _overload in ("Scalar", "Tensor"):
        COMPARISONS.add(getattr(getattr(aten, _name), _overload))
        BOOLEAN_RULES[getattr(getattr(aten, _name), _overload)] = (
            lambda b, x, y, predicate=_predicate: b("arith.cmpf", x, y, attributes=f"{predicate},")
        )
BOOLEAN_RULES[aten.where.self] = lambda b, c, x, y: b("arith.select", c, x, y)
BOOLEAN_RULES[aten.masked_fill.Scalar] = lambda b, x, mask, value: b("arith.select", mask, value, x)
BOOLEAN_RULES[aten.masked_fill.Tensor] = BOOLEAN_RULES[aten.masked_fill.Scalar]

#: Stands for an operand among the arguments of an operator.
OPERAND = object()


def _logical(operation: str) -> Callable[..., Value]:
    return lambda b, *operands: b(operation, *operands, suffix="i1")


for _operator, _operation in {
    aten.bitwise_and.Tensor: "arith.andi",
    aten.bitwise_or.Tensor: "arith.ori",
    aten.bitwise_xor.Tensor: "arith.xori",
    aten.logical_and.default: "arith.andi",
    aten.logical_or.default: "arith.ori",
}.items():
    BOOLEAN_RULES[_operator] = _logical(_operation)
    _CONDITIONS[_operator] = (0, 1)
for _operator in (aten.bitwise_not.default, aten.logical_not.default):
    BOOLEAN_RULES[_operator] = lambda b, x: b("arith.cmpi", x, FALSE, attributes="eq,", suffix="i1")
    _CONDITIONS[_operator] = (0,)
BOOLEAN_RULES[aten.round.default] = lambda b, x: b("math.roundeven", x)

#: Operators whose result is booleans.
_GIVE_BOOLEANS = set(BOOLEAN_RULES) - {
    aten.where.self, aten.masked_fill.Scalar, aten.masked_fill.Tensor, aten.round.default,
}  # fmt: skip


def is_elementwise(target: Any) -> bool:
    return target in RULES or target in BOOLEAN_RULES


def rounded(value: float, dtype: torch.dtype) -> float:
    """A number as a tensor of that type has it."""
    with unset_fake_temporarily():
        return float(torch.tensor(value, dtype=dtype))


def elementwise_body(
    target: Any,
    kind: str,
    places: Sequence[Any],
    options: Mapping[str, Any],
    kinds: Sequence[str],
    compared_in: torch.dtype | None,
) -> Body:
    """The body of an elementwise operator. Raises Unsupported, as the body may.

    Args:
        kind: the type of the result.
        places: its arguments by position, `OPERAND` for those that are operands.
        options: its arguments by name, none of them an operand.
        kinds: types of the operands.
        compared_in: the narrow type that a comparison converts its operands to, if any.
    """
    conditions = _CONDITIONS.get(target, ())
    if (kind == "i1") != (target in _GIVE_BOOLEANS):
        raise Unsupported("arithmetic of booleans")

    def body(b: Emitter, *operands: Value) -> Value:
        given = iter(zip(operands, kinds))
        values: list[Any] = []
        for place, argument in enumerate(places):
            if argument is not OPERAND:
                if compared_in is not None:
                    argument = rounded(argument, compared_in)
                values.append(argument)
                continue
            value, kind = next(given)
            if compared_in is not None and kind == "f32":
                value = b.round(value, KINDS[compared_in])
            if kind == "i1" and place not in conditions:
                value = b("arith.uitofp", value, suffix="i1 to f32")
            elif kind != "i1" and place in conditions:
                raise Unsupported("a condition that is no boolean")
            values.append(value)
        if target in BOOLEAN_RULES:
            return BOOLEAN_RULES[target](b, *values)
        return emit(b, target, values, dict(options))

    return body
