"""Recurrent layers: a loop over steps, whose states have any batch.

The input's contribution is one product before the loop. A sequence that has ended keeps its state; the
reverse direction reads the steps, or each sequence's own steps, from the end.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from onnx import TensorProto

from ..emitter import Emitter
from ..registry import Node, lowers
from ..scalars import Body, Scalar
from ..sizes import Expr, Size
from ..values import INDEX, Value
from .contractions import contract
from .pointwise import of_widened, sigmoid
from .reductions import sums_kind

Activation = Callable[[Body, Scalar], Scalar]

#: Activations with the defaults of alpha and beta, None if they have no such parameter. The defaults are
#: those of ONNX's operators of the same names, or onnxruntime's for two activations without an operator.
_DEFAULTS: dict[str, tuple[float | None, float | None]] = {
    "affine": (0.0, 0.0), "elu": (1.0, None), "hardsigmoid": (0.2, 0.5), "leakyrelu": (0.01, None),
    "relu": (None, None), "scaledtanh": (0.0, 0.0), "sigmoid": (None, None), "softplus": (None, None),
    "softsign": (None, None), "tanh": (None, None), "thresholdedrelu": (1.0, None),
}  # fmt: skip


def _activation(name: str, alpha: float, beta: float) -> Activation:
    from .pointwise import _elu, _hard_sigmoid, _leaky_relu, _softplus, _softsign, _thresholded_relu

    table: dict[str, Activation] = {
        "affine": lambda b, x: b.add(b.mul(x, b.like(alpha, x)), b.like(beta, x)),
        "elu": lambda b, x: _elu(b, x, alpha),
        "hardsigmoid": lambda b, x: _hard_sigmoid(b, x, alpha, beta),
        "leakyrelu": lambda b, x: _leaky_relu(b, x, alpha),
        "relu": lambda b, x: b.max(x, b.like(0, x)),
        "scaledtanh": lambda b, x: b.mul(
            b.like(alpha, x), b.unary("tanh", b.mul(b.like(beta, x), x))
        ),
        "sigmoid": sigmoid,
        "softplus": _softplus,
        "softsign": _softsign,
        "tanh": lambda b, x: b.unary("tanh", x),
        "thresholdedrelu": lambda b, x: _thresholded_relu(b, x, alpha),
    }
    return table[name]


def _activations(n: Node, defaults: Sequence[str], directions: int) -> list[list[Activation]]:
    """The activations of each direction."""
    names = [name.lower() for name in n.attr("activations") or [*defaults] * directions]
    alphas, betas = ([*(n.attr(key) or [])] for key in ("activation_alpha", "activation_beta"))
    found = []
    for name in names:
        if name not in _DEFAULTS:
            raise n.refuse(
                f"its activation {name} is not one of ONNX's", "give it another activation"
            )
        alpha, beta = _DEFAULTS[name]
        alpha = alphas.pop(0) if alpha is not None and alphas else alpha
        beta = betas.pop(0) if beta is not None and betas else beta
        found.append(_activation(name, alpha or 0.0, beta or 0.0))
    count = len(defaults)
    return [found[first : first + count] for first in range(0, len(found), count)]


@dataclass
class _Direction:
    """One direction of a layer.

    Attributes:
        steps: of the input, projected: (steps, batch, gates * hidden).
        weight: (gates * hidden, hidden).
        bias: parts of (gates * hidden) that belong to the state's product; None without a bias.
        peepholes: of an LSTM, (3 * hidden); None without peepholes.
    """

    steps: Value
    weight: Value
    bias: Value | None
    activations: list[Activation]
    hidden: int
    clip: float | None
    peepholes: Value | None = None
    attributes: dict[str, Any] = field(default_factory=dict)


def _part(e: Emitter, x: Value, place: int, count: int) -> Value:
    """The tensor at a place of the first dimension, without this dimension."""
    if count > 1:
        dims = [1, *x.dims[1:]]
        x = e.slice(x, [place, *[0] * (x.rank - 1)], dims)
    return e.reshape(x, x.dims[1:])


def _columns(e: Emitter, x: Value, first: int, size: int) -> Value:
    """`size` columns of the last dimension, from `first` on."""
    dims = [*x.dims[:-1], size]
    return e.slice(x, [*[0] * (x.rank - 1), first], dims)


def _gate(e: Emitter, x: Value, number: int, hidden: int) -> Value:
    return _columns(e, x, number * hidden, hidden)


def _sum(e: Emitter, x: Value, y: Value) -> Value:
    return e.pointwise(x.kind, [x, y], lambda b, p, q: b.add(p, q))


def _state_product(e: Emitter, h: Value, weight: Value) -> Value:
    batch, hidden = h.dims
    loops = [batch, weight.dims[0], hidden]
    return contract(e, loops, (h, [0, 2]), (weight, [1, 2]), [0, 1], [2], h.kind)


def _clipped(b: Body, x: Scalar, clip: float | None) -> Scalar:
    return x if clip is None else b.clamp(x, b.like(-clip, x), b.like(clip, x))


def _rnn_step(e: Emitter, d: _Direction, x: Value, states: list[Value]) -> list[Value]:
    gates = _state_product(e, states[0], d.weight)
    (f,) = d.activations
    return [e.pointwise(x.kind, [x, gates], lambda b, p, q: f(b, _clipped(b, b.add(p, q), d.clip)))]


def _gru_step(e: Emitter, d: _Direction, x: Value, states: list[Value]) -> list[Value]:
    (h,), hidden = states, d.hidden
    f, g = d.activations

    def gate(b: Body, p: Scalar, q: Scalar) -> Scalar:
        return f(b, _clipped(b, b.add(p, q), d.clip))

    is_before = bool(d.attributes.get("linear_before_reset", 0))
    if is_before:
        gates = _state_product(e, h, d.weight)
        if d.bias is not None:
            gates = _sum(e, gates, d.bias)
        parts = [_gate(e, gates, number, hidden) for number in range(3)]
    else:
        weights = e.slice(d.weight, [0, 0], [2 * hidden, hidden])
        gates = _state_product(e, h, weights)
        parts = [_gate(e, gates, number, hidden) for number in range(2)]
    z, r = (
        e.pointwise(x.kind, [_gate(e, x, number, hidden), parts[number]], gate)
        for number in range(2)
    )
    candidate = _gate(e, x, 2, hidden)
    if is_before:
        new = e.pointwise(
            x.kind, [candidate, r, parts[2]],
            lambda b, p, q, s: g(b, _clipped(b, b.add(p, b.mul(q, s)), d.clip)),
        )  # fmt: skip
    else:
        reset = e.pointwise(x.kind, [r, h], lambda b, p, q: b.mul(p, q))
        last = e.slice(d.weight, [2 * hidden, 0], [hidden, hidden])
        rest = _state_product(e, reset, last)
        new = e.pointwise(
            x.kind, [candidate, rest], lambda b, p, q: g(b, _clipped(b, b.add(p, q), d.clip))
        )

    def mixed(b: Body, p: Scalar, q: Scalar, s: Scalar) -> Scalar:
        return b.add(b.mul(b.sub(b.like(1, p), p), q), b.mul(p, s))

    return [e.pointwise(x.kind, [z, new, h], mixed)]


def _lstm_step(e: Emitter, d: _Direction, x: Value, states: list[Value]) -> list[Value]:
    """Gates in the order input, output, forget, cell; peepholes input, output, forget."""
    (h, c), hidden = states, d.hidden
    f, g, last = d.activations
    gates = _state_product(e, h, d.weight)
    i, o, forget, new = (
        [_gate(e, x, number, hidden), _gate(e, gates, number, hidden)] for number in range(4)
    )
    couples = bool(d.attributes.get("input_forget", 0))
    holes = []
    if d.peepholes is not None:
        holes = [_columns(e, d.peepholes, number * hidden, hidden) for number in range(3)]

    def total(b: Body, p: Scalar, q: Scalar, cell: Scalar, hole: Sequence[Scalar]) -> Scalar:
        found = b.add(p, q)
        if hole:
            found = b.add(found, b.mul(hole[0], cell))
        return _clipped(b, found, d.clip)

    def cell(b: Body, *s: Scalar) -> Scalar:
        old, rest = s[6], [*s[7:]]
        gate_in = f(b, total(b, s[0], s[1], old, rest[:1]))
        gate_forget = f(b, total(b, s[2], s[3], old, rest[1:2]))
        if couples:
            gate_forget = b.sub(b.like(1, gate_in), gate_in)
        candidate = g(b, _clipped(b, b.add(s[4], s[5]), d.clip))
        return b.add(b.mul(gate_forget, old), b.mul(gate_in, candidate))

    def output(b: Body, *s: Scalar) -> Scalar:
        gate_out = f(b, total(b, s[0], s[1], s[2], s[3:]))
        return b.mul(gate_out, last(b, s[2]))

    first = [holes[0], holes[2]] if holes else []
    c = e.pointwise(x.kind, [*i, *forget, *new, c, *first], cell)
    return [e.pointwise(x.kind, [*o, c, *holes[1:2]], output), c]


_STEPS = {
    "RNN": (_rnn_step, 1, ("Tanh",)),
    "GRU": (_gru_step, 3, ("Sigmoid", "Tanh")),
    "LSTM": (_lstm_step, 4, ("Sigmoid", "Tanh", "Tanh")),
}


@lowers("RNN", "GRU", "LSTM")
def recurrent(e: Emitter, n: Node) -> list[Value]:
    step, gates, names = _STEPS[n.operator]
    x, w, r = n.inputs[0], n.inputs[1], n.inputs[2]
    assert x is not None and w is not None and r is not None
    result_kind, kind = x.kind, sums_kind(x.kind)
    has_batch_first = bool(n.attr("layout", 0))
    if has_batch_first:
        x = e.transpose(x, [1, 0, 2])
    x, w, r = (e.cast(value, kind) for value in (x, w, r))
    hidden = r.dims[-1]
    if not isinstance(hidden, int):
        raise n.refuse("the size of its state is not known", "declare the sizes of its weights")
    steps, batch = x.dims[0], x.dims[1]
    lengths = n.input(4)
    direction = n.attr("direction", "forward")
    count = 2 if direction == "bidirectional" else 1
    activations = _activations(n, names, count)
    state_inputs = [n.input(5), n.input(6)][: 2 if n.operator == "LSTM" else 1]
    found: list[list[Value]] = []
    for number in range(count):
        is_reverse = direction == "reverse" or number == 1
        states = [
            _initial(e, value, number, count, [batch, hidden], kind, has_batch_first)
            for value in state_inputs
        ]
        steps_x = x
        if is_reverse and lengths is not None:
            steps_x = _reversed(e, x, lengths)
        one = _direction(e, n, steps_x, (w, r), number, count, gates, activations[number])
        reads_back = is_reverse and lengths is None
        ran = _run(e, one, step, states, steps, lengths, reads_back, n.wants(0))
        if n.wants(0) and is_reverse and lengths is not None:
            ran[-1] = _reversed(e, ran[-1], lengths)
        found.append(ran)
    return _results(e, n, found, result_kind, has_batch_first)


def _initial(
    e: Emitter,
    value: Value | None,
    number: int,
    count: int,
    dims: list[Size],
    kind: int,
    has_batch_first: bool,
) -> Value:
    if value is None:
        return e.filled(dims, 0, kind)
    if has_batch_first:
        value = e.transpose(value, [1, 0, 2])
    part = _part(e, e.cast(value, kind), number, count)
    for dim, size in enumerate(dims):
        e.check_equal(part.dims[dim], size, "expected an initial state of the input's batch")
    return e.retype(part, dims)


def _reversed(e: Emitter, x: Value, lengths: Value) -> Value:
    """Each sequence of (steps, batch, ...) backwards, up to its own length."""
    result: Value = e.call("ReverseSequence", x, lengths, batch_axis=1, time_axis=0)
    return result


def _direction(
    e: Emitter,
    n: Node,
    x: Value,
    weights: tuple[Value, Value],
    number: int,
    count: int,
    gates: int,
    activations: list[Activation],
) -> _Direction:
    kind = x.kind
    weight, recurrence = (_part(e, value, number, count) for value in weights)
    hidden, width = int(recurrence.dims[1]), gates * int(recurrence.dims[1])  # type: ignore[arg-type]
    e.check_equal(weight.dims[1], x.dims[2], "expected weights of the input's features")
    loops = [x.dims[0], x.dims[1], width, x.dims[2]]
    projected = contract(e, loops, (x, [0, 1, 3]), (weight, [2, 3]), [0, 1, 2], [3], kind)
    bias = None
    given = n.input(3)
    if given is not None:
        both = _part(e, e.cast(given, kind), number, count)
        own, other = _columns(e, both, 0, width), _columns(e, both, width, width)
        if n.operator == "GRU" and n.attr("linear_before_reset", 0):
            # The reset scales the bias of the candidate's product with the state.
            zero = e.filled([2 * hidden], 0, kind)
            bias = e.concat([zero, _columns(e, other, 2 * hidden, hidden)], 0)
            none = e.filled([hidden], 0, kind)
            other = e.concat([_columns(e, other, 0, 2 * hidden), none], 0)
        projected = _sum(e, projected, _sum(e, own, other))
    peepholes = n.input(7) if n.operator == "LSTM" else None
    if peepholes is not None:
        peepholes = _part(e, e.cast(peepholes, kind), number, count)
    return _Direction(
        projected,
        recurrence,
        bias,
        activations,
        hidden,
        n.attr("clip"),
        peepholes,
        dict(n.attributes),
    )


def _run(
    e: Emitter,
    d: _Direction,
    step: Callable[..., list[Value]],
    states: list[Value],
    steps: Size,
    lengths: Value | None,
    reads_back: bool,
    wants_all: bool,
) -> list[Value]:
    """The last states, and the outputs of all steps if they are wanted: (steps, batch, hidden)."""
    batch, width = d.steps.dims[1], d.steps.dims[2]
    hidden = d.hidden
    kind = d.steps.kind
    carried = [*states]
    if wants_all:
        dims = (steps, batch, hidden)
        carried.append(Value(kind, dims, e.empty(dims, kind)))
    if lengths is not None:
        e.use(lengths)
        lengths = e.reshape(lengths, [batch, 1])
    last = e.index(steps - 1)

    def body(place: str, values: list[Value]) -> list[Value]:
        old = values[: len(states)]
        row = (
            e.size_of(e.op(f"arith.subi {last}, {place} : index"))
            if reads_back
            else e.size_of(place)
        )
        part = e.slice(d.steps, [row, 0, 0], [1, batch, width])
        new = step(e, d, e.reshape(part, [batch, width]), old)
        output = new[0]
        if lengths is not None:

            def kept(b: Body, length: Scalar, p: Scalar, q: Scalar) -> Scalar:
                return b.select(b.compare("lt", Scalar(place, INDEX), b.cast(length, INDEX)), p, q)

            output = e.pointwise(
                kind, [lengths, output], lambda b, s, p: kept(b, s, p, b.like(0, p)), output.dims
            )
            new = [e.pointwise(kind, [lengths, p, q], kept, p.dims) for p, q in zip(new, old)]
        if not wants_all:
            return new
        result = values[-1]
        flat = e.reshape(output, [1, batch, hidden])
        name = e.insert(flat, result, [row, 0, 0])
        return [*new, Value(kind, result.dims, name)]

    return e.loop(steps, carried, body)


def _results(
    e: Emitter, n: Node, found: list[list[Value]], kind: int, has_batch_first: bool
) -> list[Value]:
    count = 2 if n.operator == "LSTM" else 1

    def stacked(parts: list[Value], axis: int) -> Value:
        wide = []
        for part in parts:
            dims = [*part.dims]
            dims.insert(axis, 1)
            wide.append(e.reshape(part, dims))
        return e.cast(e.concat(wide, axis), kind)

    results: list[Value] = []
    if n.wants(0):
        y = stacked([ran[-1] for ran in found], 1)
        results.append(e.transpose(y, [2, 0, 1, 3]) if has_batch_first else y)
    else:
        results.append(e.constant(np.zeros(0, np.float32)))
    for number in range(count):
        state = stacked([ran[number] for ran in found], 0)
        results.append(e.transpose(state, [1, 0, 2]) if has_batch_first else state)
    return results


__all__ = ["Expr", "TensorProto", "of_widened", "recurrent"]
