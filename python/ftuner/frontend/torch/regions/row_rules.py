"""Lowering rules from ATen's operators on rows to steps of a function.

Formulas are those of PyTorch's kernels (aten/src/ATen/native) and decompositions
(torch/_decomp/decompositions.py, torch/_refs): statistics in f32, variances as means of squares of
deviations, one rounding at the end of each operator of PyTorch.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Protocol

import torch
from torch import fx

from ..graph.layout import Dims, Extent, product, shape_of
from ..graph.nodes import Unsupported
from .linalg import COUNT, LAST, POSITION, Value
from .pointwise import Emitter
from .row_registry import (
    arguments_of,
    channels_of_batches,
    channels_of_images,
    normalized_dims,
    operand_of_rows,
    row_rule,
    split_groups,
)  # fmt: skip
from .steps import FLOATS, KINDS, Body, Steps, Tensor

aten = torch.ops.aten


class Surroundings(Protocol):
    """The state of the region around an operator, as rules need it."""

    steps: Steps

    def has_rows_apart(self) -> bool:
        """Returns whether neighbours of a row lie apart in memory, with other rows between them."""

    def read(self, node: fx.Node, dims: Dims, shape: tuple[Extent, ...]) -> Tensor:
        """A tensor that is broadcast to a shape. Raises Unsupported."""


def _kind(node: fx.Node, number: int | None = None) -> str:
    """Returns the type of a node's result. Raises Unsupported for a type that is not computed."""
    value = node.meta["val"]
    value = value if number is None else value[number]
    kind = KINDS.get(value.dtype)
    if kind is None:
        raise Unsupported(f"a result of {str(value.dtype).removeprefix('torch.')}")
    return kind


def _sum_type(node: fx.Node, x: Tensor) -> str:
    """Returns the type of the result of an operator that sums its elements.

    Raises Unsupported if the operator converts its elements before it adds them.
    """
    kind = _kind(node)
    if x.kind not in FLOATS or kind not in FLOATS or (kind != x.kind and kind != "f32"):
        raise Unsupported("elements that are converted before they are added")
    return kind


def _rounded(steps: Steps, x: Tensor, kind: str) -> Tensor:
    return x if x.kind == kind else steps.map(kind, x.dims, [x], lambda emit, value: value)


def _mean(steps: Steps, x: Tensor) -> Tensor:
    total = steps.reduce("arith.addf", [x])
    return steps.map("f32", total.dims, [total], lambda emit, s: emit.div(s, COUNT))


def _squares(steps: Steps, x: Tensor, mean: Tensor) -> Tensor:
    """The sum of squares of deviations."""

    def square(emit: Emitter, value: Value, center: Value) -> Value:
        deviation = emit.sub(value, center)
        return emit.mul(deviation, deviation)

    return steps.reduce("arith.addf", [x, mean], square)


def _full(steps: Steps, x: Tensor) -> Dims:
    return steps.layout.resolve(x.dims)


@row_rule(aten._softmax.default, aten._safe_softmax.default)
def _softmax(region: Surroundings, node: fx.Node, x: Tensor, **_: Any) -> Tensor:
    steps = region.steps
    is_safe = node.target is aten._safe_softmax.default
    if is_safe and _kind(node) != x.kind:
        raise Unsupported("elements that are converted before their softmax")
    maximum = steps.reduce("arith.maximumf", [x])
    total = steps.reduce(
        "arith.addf", [x, maximum], lambda emit, v, m: emit("math.exp", emit.sub(v, m))
    )

    def share(emit: Emitter, value: Value, maximum: Value, total: Value) -> Value:
        result = emit.div(emit("math.exp", emit.sub(value, maximum)), total)
        # A row that is masked as a whole.
        return emit.select("oeq", maximum, -math.inf, 0.0, result) if is_safe else result

    return steps.map(_kind(node), _full(steps, x), [x, maximum, total], share)


@row_rule(aten._log_softmax.default)
def _log_softmax(region: Surroundings, node: fx.Node, x: Tensor, **_: Any) -> Tensor:
    steps = region.steps
    maximum = steps.reduce("arith.maximumf", [x])
    total = steps.reduce(
        "arith.addf", [x, maximum], lambda emit, v, m: emit("math.exp", emit.sub(v, m))
    )
    return steps.map(
        _kind(node),
        _full(steps, x),
        [x, maximum, total],
        lambda emit, v, m, t: emit.sub(emit.sub(v, m), emit("math.log", t)),
    )


@row_rule(aten.logsumexp.default)
def _logsumexp(region: Surroundings, node: fx.Node, x: Tensor, **_: Any) -> Tensor:
    steps = region.steps
    maximum = steps.reduce("arith.maximumf", [x])
    # A row whose extreme is infinite has it as its result.
    maximum = steps.map(
        "f32",
        maximum.dims,
        [maximum],
        lambda emit, m: emit.select("oeq", emit("math.absf", m), math.inf, 0.0, m),
    )
    total = steps.reduce(
        "arith.addf", [x, maximum], lambda emit, v, m: emit("math.exp", emit.sub(v, m))
    )
    return steps.map(
        _kind(node),
        total.dims,
        [total, maximum],
        lambda emit, t, m: emit.add(emit("math.log", t), m),
    )


@row_rule(aten.sum.dim_IntList, aten.sum.default, takes_booleans=True)
def _sum(region: Surroundings, node: fx.Node, x: Tensor, **_: Any) -> Tensor:
    if x.kind == "i1" and _kind(node) == "i64":
        return region.steps.reduce(
            "arith.addi", [x], lambda emit, v: emit("arith.extui", v, suffix="i1 to i64"), "i64"
        )
    kind = _sum_type(node, x)
    return _rounded(region.steps, region.steps.reduce("arith.addf", [x]), kind)


@row_rule(aten.mean.dim, aten.mean.default)
def _mean_rule(region: Surroundings, node: fx.Node, x: Tensor, **_: Any) -> Tensor:
    kind = _sum_type(node, x)
    return _rounded(region.steps, _mean(region.steps, x), kind)


def _always(node: fx.Node) -> bool:
    return True


@row_rule(aten.amax.default, aten.max.default, needs_elements=_always)
def _amax(region: Surroundings, node: fx.Node, x: Tensor, **_: Any) -> Tensor:
    return _rounded(region.steps, region.steps.reduce("arith.maximumf", [x]), x.kind)


@row_rule(aten.amin.default, aten.min.default, needs_elements=_always)
def _amin(region: Surroundings, node: fx.Node, x: Tensor, **_: Any) -> Tensor:
    return _rounded(region.steps, region.steps.reduce("arith.minimumf", [x]), x.kind)


def _place(steps: Steps, x: Tensor, extreme: Tensor) -> Tensor:
    """The position of an extreme: the first of equal elements, or the first NaN if there is one."""

    def candidate(emit: Emitter, value: Value, extreme: Value) -> Value:
        is_it = emit("arith.cmpf", value, extreme, attributes="oeq,")
        is_nan = emit("arith.cmpf", value, value, attributes="uno,")
        either = emit("arith.ori", is_it, is_nan, suffix="i1")
        return emit("arith.select", either, POSITION, LAST, suffix="i32")

    first = steps.reduce("arith.minsi", [x, extreme], candidate, "i32")
    return steps.map(
        "i64",
        first.dims,
        [first],
        lambda emit, place: emit("arith.extsi", place, suffix="i32 to i64"),
    )


@row_rule(
    aten.max.dim, aten.min.dim, aten.argmax.default, aten.argmin.default, needs_elements=_always
)
def _extreme(region: Surroundings, node: fx.Node, x: Tensor, **_: Any) -> Any:
    is_maximum = node.target in (aten.max.dim, aten.argmax.default)
    extreme = region.steps.reduce("arith.maximumf" if is_maximum else "arith.minimumf", [x])
    place = _place(region.steps, x, extreme)
    if node.target in (aten.argmax.default, aten.argmin.default):
        return place
    return _rounded(region.steps, extreme, x.kind), place


def _variance(steps: Steps, x: Tensor, correction: Any) -> tuple[Tensor, Tensor]:
    """Variance and mean in f32."""
    correction = 1 if correction is None else correction
    if not isinstance(correction, (int, float)):
        raise Unsupported("a correction that is not a constant")
    mean = _mean(steps, x)
    squares = _squares(steps, x, mean)

    def divide(emit: Emitter, total: Value) -> Value:
        if not correction:
            return emit.div(total, COUNT)
        rest = emit("arith.maximumf", emit.sub(COUNT, float(correction)), 0.0)
        return emit.div(total, rest)

    return steps.map("f32", squares.dims, [squares], divide), mean


@row_rule(aten.var.correction)
def _var(
    region: Surroundings, node: fx.Node, x: Tensor, correction: Any = None, **_: Any
) -> Tensor:
    return _rounded(region.steps, _variance(region.steps, x, correction)[0], _kind(node))


@row_rule(aten.std.correction)
def _std(
    region: Surroundings, node: fx.Node, x: Tensor, correction: Any = None, **_: Any
) -> Tensor:
    variance, _mean_ = _variance(region.steps, x, correction)
    return region.steps.map(
        _kind(node), variance.dims, [variance], lambda emit, v: emit("math.sqrt", v)
    )


@row_rule(aten.var_mean.correction)
def _var_mean(
    region: Surroundings, node: fx.Node, x: Tensor, correction: Any = None, **_: Any
) -> tuple[Tensor, Tensor]:
    variance, mean = _variance(region.steps, x, correction)
    steps = region.steps
    return _rounded(steps, variance, _kind(node, 0)), _rounded(steps, mean, _kind(node, 1))


def _is_norm_of_extreme(node: fx.Node) -> bool:
    order = arguments_of(node)["ord"]
    return bool(order < 0 or order == math.inf)


@row_rule(aten.linalg_vector_norm.default, needs_elements=_is_norm_of_extreme)
def _vector_norm(region: Surroundings, node: fx.Node, x: Tensor, ord: Any = 2, **_: Any) -> Tensor:
    """The `ord`-norm: (Σ |x|^ord)^(1 / ord); for ±inf an extreme, for 0 the number of nonzeros."""
    steps, kind = region.steps, _sum_type(node, x)
    if not isinstance(ord, (int, float)):
        raise Unsupported("a norm whose order is not a constant")
    if ord == math.inf or ord == -math.inf:
        combine = "arith.maximumf" if ord > 0 else "arith.minimumf"
        return _rounded(
            steps, steps.reduce(combine, [x], lambda emit, v: emit("math.absf", v)), kind
        )
    if ord == 0:
        total = steps.reduce(
            "arith.addf", [x], lambda emit, v: emit.select("une", v, 0.0, 1.0, 0.0)
        )
    elif ord == 1:
        total = steps.reduce("arith.addf", [x], lambda emit, v: emit("math.absf", v))
    elif ord == 2:
        total = steps.reduce("arith.addf", [x], lambda emit, v: emit.mul(v, v))
        return steps.map(kind, total.dims, [total], lambda emit, t: emit("math.sqrt", t))
    else:
        power = float(ord)
        total = steps.reduce(
            "arith.addf", [x], lambda emit, v: emit("math.powf", emit("math.absf", v), power)
        )
        return steps.map(kind, total.dims, [total], lambda emit, t: emit("math.powf", t, 1 / power))
    return _rounded(steps, total, kind)


def _affine(
    region: Surroundings,
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
    dims = region.steps.layout.resolve(x.dims)[places]
    given = [
        region.read(tensor, dims, shape[places]) for tensor in parameters if tensor is not None
    ]

    def body(emit: Emitter, value: Value, *others: Value) -> Value:
        factors = list(others[len(statistics) :])
        result = normal(emit, value, *others[: len(statistics)])
        if weight is not None:
            result = emit.mul(result, factors.pop(0))
        return result if bias is None else emit.add(result, factors.pop(0))

    # Reading may have split loops.
    return region.steps.map(kind, _full(region.steps, x), [x, *statistics, *given], body)


def _normal(emit: Emitter, value: Value, mean: Value, scale: Value) -> Value:
    return emit.mul(emit.sub(value, mean), scale)


def _scale_of(steps: Steps, variance: Tensor, eps: float) -> Tensor:
    return steps.map(
        "f32",
        variance.dims,
        [variance],
        lambda emit, v: emit("math.rsqrt", emit.add(v, float(eps))),
    )


@row_rule(aten.native_layer_norm.default, rows=normalized_dims)
def _layer_norm(
    region: Surroundings, node: fx.Node, x: Tensor, weight: Any, bias: Any, eps: float,
    normalized_shape: Any, **_: Any,
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    steps = region.steps
    variance, mean = _variance(steps, x, 0)
    scale = _scale_of(steps, variance, eps)
    y = _affine(
        region, x, [mean, scale], _normal, (weight, bias), slice(-len(normalized_shape), None),
        shape_of(operand_of_rows(node)), _kind(node, 0),
    )  # fmt: skip
    return y, _rounded(steps, mean, _kind(node, 1)), _rounded(steps, scale, _kind(node, 2))


@row_rule(aten._fused_rms_norm.default, rows=normalized_dims)
def _rms_norm(
    region: Surroundings,
    node: fx.Node,
    x: Tensor,
    weight: Any,
    eps: Any,
    normalized_shape: Any,
    **_: Any,
) -> tuple[Tensor, Tensor]:
    steps = region.steps
    eps = torch.finfo(operand_of_rows(node).meta["val"].dtype).eps if eps is None else eps
    total = steps.reduce("arith.addf", [x], lambda emit, v: emit.mul(v, v))
    mean = steps.map("f32", total.dims, [total], lambda emit, t: emit.div(t, COUNT))
    scale = _scale_of(steps, mean, eps)
    y = _affine(
        region, x, [scale], lambda emit, v, s: emit.mul(v, s), (weight, None),
        slice(-len(normalized_shape), None), shape_of(operand_of_rows(node)), _kind(node, 0),
    )  # fmt: skip
    return y, _rounded(steps, scale, _kind(node, 1))


def _group_variance(steps: Steps, x: Tensor) -> tuple[Tensor, Tensor]:
    """Variance and mean of groups of channels, merged from those of each channel.

    In memory other groups lie between the pixels of a group, so the pixels of a channel are reduced
    first, along memory's outer dimensions, and then the few numbers of the channels. Deviations of
    channels are added to the squares, so nothing cancels.
    """
    dims, layout = _full(steps, x), steps.layout
    pixels = {loop for loops in dims[2:] for loop in loops}
    channels = [loop for loop in layout.leaves(steps.reduced) if loop not in pixels]
    count = product([layout.extents[loop] for loop in channels])
    assert isinstance(count, int)
    kept = tuple(tuple(loop for loop in loops if loop not in pixels) for loops in dims)

    def pixel_count(emit: Emitter) -> Value:
        return emit.div(COUNT, float(count))

    total = steps.reduce("arith.addf", [x], dims=kept)
    means = steps.map("f32", kept, [total], lambda emit, t: emit.div(t, pixel_count(emit)))

    def square(emit: Emitter, value: Value, center: Value) -> Value:
        deviation = emit.sub(value, center)
        return emit.mul(deviation, deviation)

    squares = steps.reduce("arith.addf", [x, means], square, dims=kept)
    total = steps.reduce("arith.addf", [means])
    mean = steps.map("f32", total.dims, [total], lambda emit, t: emit.div(t, float(count)))

    def merge(emit: Emitter, squares: Value, channel: Value, mean: Value) -> Value:
        return emit.add(squares, emit.mul(square(emit, channel, mean), pixel_count(emit)))

    merged = steps.reduce("arith.addf", [squares, means, mean], merge)
    return steps.map("f32", merged.dims, [merged], lambda emit, t: emit.div(t, COUNT)), mean


def _norm_of_channels(
    kept: slice,
    region: Surroundings,
    node: fx.Node,
    x: Tensor,
    weight: Any,
    bias: Any,
    eps: float,
    **_: Any,
) -> tuple[Tensor, Tensor, Tensor]:
    """A norm that is scaled and shifted by channel, and its statistics of the `kept` dimensions."""
    steps = region.steps
    is_grouped = node.target is aten.native_group_norm.default
    if is_grouped and region.has_rows_apart():
        variance, mean = _group_variance(steps, x)
    else:
        variance, mean = _variance(steps, x, 0)
    scale = _scale_of(steps, variance, eps)
    y = _affine(
        region, x, [mean, scale], _normal, (weight, bias), slice(1, 2), shape_of(operand_of_rows(node)),
        _kind(node, 0),
    )  # fmt: skip
    mean, scale = (
        replace(_rounded(steps, one, _kind(node, number)), dims=one.dims[kept])
        for number, one in ((1, mean), (2, scale))
    )
    return y, mean, scale


# PyTorch's kernels: statistics, factors and summands of channels, elements.
row_rule(
    aten.native_group_norm.default, rows=channels_of_images, split=split_groups, num_kernels=3
)(functools.partial(_norm_of_channels, slice(2)))
row_rule(aten._native_batch_norm_legit.no_stats, rows=channels_of_batches)(
    functools.partial(_norm_of_channels, slice(1, 2))
)
