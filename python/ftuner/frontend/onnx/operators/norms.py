"""Normalizations by mean and variance, in f32 for halves."""

from __future__ import annotations

import math

import numpy as np
from onnx import TensorProto

from ..emitter import Emitter
from ..registry import Node, lowers
from ..scalars import Body, Scalar
from ..values import Value
from .reductions import count_of, divided, sums_kind, total
from .shapes import axis_of, operands

F32 = TensorProto.FLOAT


def normalized(e: Emitter, x: Value, axes: list[int], epsilon: float) -> tuple[Value, Value, Value]:
    """(x - mean) / sqrt(variance + epsilon), the mean and the factor, with sizes of 1."""
    mean = divided(e, total(e, x, axes), count_of(x, axes))
    centered = e.pointwise(x.kind, [x, mean], lambda b, a, m: b.sub(a, m))
    result, factor = of_unit_power(e, centered, axes, epsilon)
    return result, mean, factor


def of_unit_power(e: Emitter, x: Value, axes: list[int], epsilon: float) -> tuple[Value, Value]:
    """x / sqrt(mean of squares + epsilon), and the factor, with sizes of 1."""
    squares = e.pointwise(x.kind, [x], lambda b, a: b.mul(a, a))
    power = divided(e, total(e, squares, axes), count_of(x, axes))
    shifted = e.pointwise(x.kind, [power], lambda b, v: b.add(v, b.like(epsilon, v)))
    factor = e.pointwise(x.kind, [shifted], lambda b, v: b.unary("rsqrt", v))
    return e.pointwise(x.kind, [x, factor], lambda b, a, f: b.mul(a, f)), factor


def scaled(e: Emitter, x: Value, scale: Value | None, bias: Value | None) -> Value:
    if scale is not None:
        scale = e.cast(scale, x.kind)
        x = e.pointwise(x.kind, [x, scale], lambda b, a, s: b.mul(a, s), x.dims)
    if bias is not None:
        bias = e.cast(bias, x.kind)
        x = e.pointwise(x.kind, [x, bias], lambda b, a, s: b.add(a, s), x.dims)
    return x


@lowers("MeanVarianceNormalization")
def mean_variance(e: Emitter, n: Node) -> Value:
    (x,) = operands(n)
    kind = sums_kind(x.kind)
    wide = e.cast(x, kind)
    axes = sorted(axis % x.rank for axis in n.attr("axes", [0, 2, 3]))
    count = count_of(wide, axes)
    mean = divided(e, total(e, wide, axes), count)
    centered = e.pointwise(kind, [wide, mean], lambda b, a, m: b.sub(a, m), wide.dims)
    squares = e.pointwise(kind, [centered], lambda b, a: b.mul(a, a))
    variance = divided(e, total(e, squares, axes), count)

    def scale(b: Body, a: Scalar, v: Scalar) -> Scalar:
        return b.div(a, b.add(b.unary("sqrt", v), b.like(1e-9, v)))

    return e.cast(e.pointwise(kind, [centered, variance], scale, wide.dims), x.kind)


def parameter_of(e: Emitter, n: Node, index: int) -> Value | None:
    """A scale or bias, an input of the node, which broadcasts to its first input; None for one that is left out.

    Sizes that are not 1 in the model are checked to be those of the first input: a size that is 1 only at run time
    would cost a test for each element that is read.
    """
    x, value = n.inputs[0], n.input(index)
    assert x is not None
    if value is None:
        return None
    first = x.rank - value.rank
    clause = f"expected input {index} to have"
    if first < 0:
        raise n.refuse(
            f"{clause} at most {x.rank} dimensions, but got {value.rank}",
            "give it operands that fit",
        )
    for dim, size in enumerate(value.dims):
        if size != 1:
            whole = f"{clause} as many elements in dimension {dim} as input 0 has in dimension {first + dim}"
            e.check_equal(size, x.dims[first + dim], whole)
    own = [1 if size == 1 else x.dims[first + dim] for dim, size in enumerate(value.dims)]
    return e.retype(value, own)


def scaled_as(
    e: Emitter, result: Value, kind: int, scale: Value | None, bias: Value | None
) -> Value:
    """Elements that are rounded to `kind` before they are scaled and shifted, and again afterwards."""
    wide = sums_kind(kind)
    return e.cast(scaled(e, e.cast(e.cast(result, kind), wide), scale, bias), kind)


@lowers("LayerNormalization")
def layer_normalization(e: Emitter, n: Node) -> list[Value]:
    x = n.inputs[0]
    assert x is not None
    axes = [*range(axis_of(n, -1, x.rank), x.rank)]
    stash = n.attr("stash_type", F32)
    scale, bias = parameter_of(e, n, 1), parameter_of(e, n, 2)
    wide = e.cast(x, sums_kind(stash))
    result, mean, factor = normalized(e, wide, axes, n.attr("epsilon", 1e-5))
    results = [
        scaled_as(e, result, x.kind, scale, bias),
        e.cast(mean, stash),
        e.cast(factor, stash),
    ]
    return results[: max(1, len(n.outputs))]


@lowers("RMSNormalization")
def rms_normalization(e: Emitter, n: Node) -> Value:
    x, scale = n.inputs[0], parameter_of(e, n, 1)
    assert x is not None and scale is not None
    axes = [*range(axis_of(n, -1, x.rank), x.rank)]
    wide = e.cast(x, sums_kind(n.attr("stash_type", F32)))
    result, _ = of_unit_power(e, wide, axes, n.attr("epsilon", 1e-5))
    return scaled_as(e, e.cast(result, x.kind), scale.kind, scale, None)


def of_channels(e: Emitter, value: Value, rank: int) -> Value:
    """A list of a number for each channel, which is dimension 1."""
    return e.reshape(value, [value.dims[0], *[1] * (rank - 2)])


@lowers("InstanceNormalization")
def instance_normalization(e: Emitter, n: Node) -> Value:
    x, scale, bias = operands(n)
    for number, value in enumerate((scale, bias), 1):
        e.check_equal(
            value.dims[0], x.dims[1], f"expected input {number} to have one number a channel"
        )
    kind = sums_kind(x.kind)
    result, _, _ = normalized(e, e.cast(x, kind), [*range(2, x.rank)], n.attr("epsilon", 1e-5))
    scale, bias = (of_channels(e, value, x.rank) for value in (scale, bias))
    return e.cast(scaled(e, result, scale, bias), x.kind)


@lowers("GroupNormalization")
def group_normalization(e: Emitter, n: Node) -> Value:
    """Scale and bias belong to groups in operator set 18, to channels from 21 on."""
    x, scale, bias = operands(n)
    groups = n.attr("num_groups")
    # Statistics have the type that the operator specifies: f32, also for f64.
    kind = F32 if n.version >= 21 and n.attr("stash_type", 1) == 1 else sums_kind(x.kind)
    batch, channels, *sides = x.dims
    part = channels // groups
    clause = f"expected a number of channels that is a multiple of its {groups} groups"
    e.check_equal(part * groups, channels, clause)
    grouped = e.cast(x, kind)
    # Groups of one channel are the channels.
    if part != 1:
        grouped = e.reshape(grouped, [batch, groups, part, *sides])
    rank = grouped.rank
    result, _, _ = normalized(e, grouped, [*range(2, rank)], n.attr("epsilon", 1e-5))
    if n.version < 21:
        scale, bias = (e.reshape(v, [groups, *[1] * (rank - 2)]) for v in (scale, bias))
        return e.cast(e.reshape(scaled(e, result, scale, bias), x.dims), x.kind)
    scale, bias = (of_channels(e, value, x.rank) for value in (scale, bias))
    result = e.cast(e.reshape(result, x.dims), sums_kind(x.kind))
    return e.cast(scaled(e, result, scale, bias), x.kind)


@lowers("BatchNormalization")
def batch_normalization(e: Emitter, n: Node) -> list[Value]:
    """Normalizes by given statistics; in training, by statistics of the batch, which are results too."""
    x, scale, bias, mean, variance = operands(n)
    training = (
        n.attr("training_mode", 0) if n.version >= 14 else not n.attr("is_test", n.version >= 7)
    )
    if n.attr("spatial", 1) == 0:
        raise n.refuse("its statistics are of each place (spatial is 0)", "set spatial to 1")
    epsilon = n.attr("epsilon", 1e-5)
    kind = sums_kind(x.kind)
    results: list[Value] = []
    rank = max(x.rank, 2)
    wide = e.cast(x, kind)
    if training:
        if n.version < 14:
            raise n.refuse(
                "it is in training mode", "export the model for inference (model.eval())"
            )
        axes = [axis for axis in range(x.rank) if axis != 1]
        _, own_mean, _ = normalized(e, wide, axes, epsilon)
        centered = e.pointwise(kind, [wide, own_mean], lambda b, a, m: b.sub(a, m))
        squares = e.pointwise(kind, [centered], lambda b, a: b.mul(a, a))
        own_variance = divided(e, total(e, squares, axes), count_of(x, axes))
        momentum = n.attr("momentum", 0.9)
        for old, new in ((mean, own_mean), (variance, own_variance)):
            new = e.reshape(new, old.dims)

            def running(b: Body, a: Scalar, s: Scalar) -> Scalar:
                kept = b.mul(b.cast(a, s.kind), b.like(momentum, s))
                return b.cast(b.add(kept, b.mul(s, b.like(1 - momentum, s))), old.kind)

            results.append(e.pointwise(old.kind, [old, new], running))
        mean, variance = (e.reshape(v, [x.dims[1]]) for v in (own_mean, own_variance))
    mean, variance, scale, bias = (
        e.cast(of_channels(e, value, rank), kind) for value in (mean, variance, scale, bias)
    )

    def body(b: Body, a: Scalar, m: Scalar, v: Scalar, s: Scalar, t: Scalar) -> Scalar:
        factor = b.unary("rsqrt", b.add(v, b.like(epsilon, v)))
        return b.add(b.mul(b.mul(b.sub(a, m), factor), s), t)

    y = e.pointwise(kind, [wide, mean, variance, scale, bias], body, x.dims)
    return [e.cast(y, x.kind), *results]


@lowers("LRN")
def lrn(e: Emitter, n: Node) -> Value:
    """Division by a power of the sum of squares of neighbouring channels."""
    (x,) = operands(n)
    size, kind = n.attr("size"), sums_kind(x.kind)
    alpha, beta, bias = n.attr("alpha", 1e-4), n.attr("beta", 0.75), n.attr("bias", 1.0)
    low = (size - 1) // 2
    high = size - 1 - low
    wide = e.cast(x, kind)
    pads = [low if axis == 1 else 0 for axis in range(x.rank)]
    above = [high if axis == 1 else 0 for axis in range(x.rank)]
    squares = e.pointwise(kind, [wide], lambda b, a: b.mul(a, a))
    padded = e.pad(squares, pads, above, 0)
    window = Value(kind, (size,))
    window.ssa = e.empty([size], kind)
    access = [f"d1 + d{x.rank}" if axis == 1 else axis for axis in range(x.rank)]
    (sums,) = e.generic(
        [*x.dims, size],
        [(padded, access), (window, [x.rank])],
        [(kind, range(x.rank), 0)],
        lambda b, a, w, s: b.add(a, s),
        [x.rank],
    )

    def body(b: Body, a: Scalar, s: Scalar) -> Scalar:
        base = b.add(b.mul(s, b.like(alpha / size, s)), b.like(bias, s))
        return b.div(a, b.pow(base, b.like(beta, s)))

    return e.cast(e.pointwise(kind, [wide, sums], body), x.kind)


__all__ = ["math", "normalized", "np", "of_channels", "scaled"]
