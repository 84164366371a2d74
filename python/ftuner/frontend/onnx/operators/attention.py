"""Attention: scores of queries and keys, softcap, masks, softmax, and the product with values."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from onnx import TensorProto

from .. import sizes as arithmetic
from ..emitter import Emitter
from ..registry import Node, lowers
from ..scalars import Body, Scalar
from ..sizes import Size
from ..values import HALVES, INDEX, Value

BOOL = TensorProto.BOOL


@lowers("Attention")
def attention(e: Emitter, n: Node) -> list[Value]:
    query, key, value = n.inputs[:3]
    assert query is not None and key is not None and value is not None
    is_flat = query.rank == 3
    query = _heads(e, n, query, "q_num_heads")
    key, value = _heads(e, n, key, "kv_num_heads"), _heads(e, n, value, "kv_num_heads")
    past_length: Size = 0
    past_key, past_value = n.input(4), n.input(5)
    if past_key is not None and past_value is not None:
        past_length = past_key.dims[2]
        key, value = e.concat([past_key, key], 2), e.concat([past_value, value], 2)
    e.check_equal(key.dims[0], query.dims[0], "expected as many keys as queries in a batch")
    e.check_equal(key.dims[3], query.dims[3], "expected keys of as many channels as queries")
    key = e.retype(key, [query.dims[0], *key.dims[1:3], query.dims[3]])
    heads, group = query.dims[1], query.dims[1] // key.dims[1]
    e.check_equal(
        group * key.dims[1], heads, "expected a multiple of its heads of keys as heads of queries"
    )
    scores = _scores(e, n, query, key)
    raw = capped = scores
    softcap = n.attr("softcap", 0.0)
    if softcap:

        def cap(b: Body, a: Scalar) -> Scalar:
            limit = b.like(softcap, a)
            return b.mul(b.unary("tanh", b.div(a, limit)), limit)

        capped = scores = e.pointwise(scores.kind, [scores], cap)
    scores, may_be_empty = _masked(e, n, scores, past_length)
    weights = _softmax(e, n, scores, may_be_empty)
    sizes = heads, key.dims[1]
    found: Value = e.call("MatMul", _by_group(e, weights, *sizes), _by_group(e, value, *sizes))
    found = e.reshape(found, [query.dims[0], heads, query.dims[2], value.dims[3]])
    if is_flat:
        found = e.transpose(found, [0, 2, 1, 3])
        found = e.reshape(found, [*found.dims[:2], found.dims[2] * found.dims[3]])
    modes = [raw, capped, scores, weights]
    return [found, key, value, modes[n.attr("qk_matmul_output_mode", 0)]][: max(1, len(n.outputs))]


def _heads(e: Emitter, n: Node, x: Value, attribute: str) -> Value:
    """(batch, heads, steps, channels) of that, or of (batch, steps, channels of all heads)."""
    if x.rank == 4:
        return x
    count = n.attr(attribute)
    if not count:
        raise n.refuse(f"operands of three dimensions need its {attribute}", "set it")
    channels = x.dims[2] // count
    split = e.reshape(x, [*x.dims[:2], count, channels], f"expected a multiple of {count} channels")
    return e.transpose(split, [0, 2, 1, 3])


def _by_group(e: Emitter, x: Value, heads: Size, groups: Size) -> Value:
    """(batch, groups, heads of a group, steps, channels) of (batch, heads, steps, channels).

    Where each of `heads` heads of queries has a head of keys of its own, they stay as they are.
    """
    if heads == groups:
        return x
    return e.reshape(x, [x.dims[0], groups, x.dims[1] // groups, *x.dims[2:]])


def _scores(e: Emitter, n: Node, query: Value, key: Value) -> Value:
    scale = n.attr("scale")
    channels = query.dims[3]
    if scale is None and not isinstance(channels, int):
        count = e.call("Cast", e.of_sizes(channels), to=query.kind)
        factor = e.call("Sqrt", e.call("Reciprocal", e.call("Sqrt", count)))
        query, key = e.call("Mul", query, factor), e.call("Mul", key, factor)
    else:
        root = math.sqrt(scale if scale is not None else 1 / math.sqrt(max(int(str(channels)), 1)))
        query, key = (
            e.pointwise(x.kind, [x], lambda b, a: b.mul(a, b.like(root, a))) for x in (query, key)
        )
    sizes = query.dims[1], key.dims[1]
    keys = _by_group(e, e.transpose(key, [0, 1, 3, 2]), *sizes)
    scores: Value = e.call("MatMul", _by_group(e, query, *sizes), keys)
    return e.reshape(scores, [query.dims[0], query.dims[1], query.dims[2], key.dims[2]])


def _masked(e: Emitter, n: Node, scores: Value, past_length: Size) -> tuple[Value, bool]:
    """Returns the masked scores, and whether a row may be left without a key.

    A query attends keys from `left_window_size` before its own place to `right_window_size` after it; a negative
    size is not a bound.
    """
    mask, lengths = n.input(3), n.input(6)
    is_causal = bool(n.attr("is_causal", 0))
    left, right = n.attr("left_window_size", -1), n.attr("right_window_size", -1)
    if is_causal:
        right = 0
    steps, total = scores.dims[2], scores.dims[3]
    operands = [scores]
    if mask is not None:
        operands.append(_mask_of(e, n, mask, total))
    if lengths is not None:
        operands.append(e.reshape(lengths, [lengths.dims[0], 1, 1, 1]))
    if len(operands) == 1 and left < 0 and right < 0:
        return scores, False
    for size in (steps, past_length):
        e.index(size)
    given = mask

    def body(b: Body, a: Scalar, *others: Scalar) -> Scalar:
        rest = [*others]
        low = b.like(-math.inf, a)
        allowed = b.const(True, BOOL)
        if given is not None:
            found = rest.pop(0)
            if found.kind == BOOL:
                allowed = found
            else:
                a = b.add(a, b.cast(found, a.kind))
        place = b.index(3)
        offset = b.size(past_length)
        if lengths is not None:
            length = b.cast(rest.pop(0), INDEX)
            allowed = b.bit_and(allowed, b.compare("lt", place, length))
            offset = b.sub(length, b.size(steps))
        own = b.add(b.index(2), offset)
        if right >= 0:
            last = b.add(own, b.const(right, INDEX))
            allowed = b.bit_and(allowed, b.compare("le", place, last))
        if left >= 0:
            first = b.sub(own, b.const(left, INDEX))
            allowed = b.bit_and(allowed, b.compare("ge", place, first))
        return b.select(allowed, a, low)

    found = e.pointwise(scores.kind, operands, body, scores.dims)
    return found, mask is not None or lengths is not None or left >= 0


def _mask_of(e: Emitter, n: Node, mask: Value, total: Size) -> Value:
    """The mask of all keys; keys that a shorter mask does not reach are masked out."""
    length = mask.dims[-1]
    if e.is_equal(length, total):
        return mask
    missing = total - length
    words = "expected a mask of at most as many keys as there are"
    if isinstance(missing, int) and missing < 0:
        raise n.refuse(f"{words}, but got {length} for {total}", "make the mask shorter")
    if not isinstance(missing, int):
        fits = e.op(f"arith.cmpi sle, {e.index(length)}, {e.index(total)} : index")
        e.check(fits, words)
    zeros: list[Size] = [0] * mask.rank
    fill: Any = False if mask.kind == BOOL else -math.inf
    padded = e.pad(mask, zeros, [*zeros[1:], arithmetic.maximum(missing, 0)], fill)
    return e.retype(padded, [*mask.dims[:-1], total])


def _softmax(e: Emitter, n: Node, scores: Value, may_be_empty: bool) -> Value:
    """The weights of keys; zeros for a row without any."""
    precision = n.attr("softmax_precision", scores.kind) or scores.kind
    wide: Value = e.cast(scores, precision)
    weights: Value = e.call("Softmax", wide, axis=-1)
    if may_be_empty:
        # In the type in which the softmax computes: the maximum is then the softmax's own.
        computed = e.cast(wide, TensorProto.FLOAT) if wide.kind in HALVES else wide
        top = e.call("ReduceMax", computed, e.constant(np.array([-1])), keepdims=1)

        def kept(b: Body, a: Scalar, t: Scalar) -> Scalar:
            return b.select(b.compare("eq", t, b.like(-math.inf, t)), b.like(0, a), a)

        weights = e.pointwise(precision, [weights, top], kept, scores.dims)
    return e.cast(weights, scores.kind)


__all__ = ["attention"]
