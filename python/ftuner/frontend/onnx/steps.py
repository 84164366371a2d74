"""Operators with graphs inside of them: branches that are known, and steps that are few."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .registry import Missing, Node, attributes_of, refusal
from .values import Value

if TYPE_CHECKING:
    from .graph import Scope, Walk

#: A scan of more steps is refused: each one is some kernels.
MAX_STEPS = 64

Structure = Callable[
    ["Walk", Any, Sequence["Value | None"], "Scope", str], Sequence["Value | None"]
]


def _take_branch(
    walk: Walk, node: Any, inputs: Sequence[Value | None], scope: Scope, place: str
) -> Sequence[Value | None]:
    """The results of the branch of a condition that is known."""
    given = attributes_of(node)
    walk.emitter.node = Node("If", place, walk.opsets_version, [*inputs], given, [*node.output])
    (condition,) = walk.emitter.node.array(0).reshape(-1)
    branch = given["then_branch" if condition else "else_branch"]
    return walk.graph(branch, ChainMap({}, scope), place)


def _unroll_scan(
    walk: Walk, node: Any, inputs: Sequence[Value | None], scope: Scope, place: str
) -> Sequence[Value | None]:
    """A scan of few steps: its body for each of them."""
    e, given = walk.emitter, attributes_of(node)
    e.node = Node("Scan", place, walk.opsets_version, [*inputs], given, [*node.output])
    if walk.opsets_version < 9:
        raise refusal(
            "Scan", place, "it is of version 8, with batches", "export it with version 9 or newer"
        )
    body, count = given["body"], given["num_scan_inputs"]
    states, sequences = [*inputs[: len(inputs) - count]], inputs[len(inputs) - count :]
    result_count = len(node.output) - len(states)

    def listed(name: str, size: int) -> list[int]:
        return [*given.get(name, [0] * size)]

    axes = listed("scan_input_axes", count)
    first = sequences[0]
    assert first is not None
    steps = first.dims[axes[0]]
    if not isinstance(steps, int) or not 0 < steps <= MAX_STEPS:
        raise e.node.refuse(
            f"it has {'an unknown number of' if not isinstance(steps, int) else steps} steps",
            f"make it one of 1 to {MAX_STEPS} steps",
        )
    directions = listed("scan_input_directions", count)
    found: list[list[Value]] = [[] for _ in range(result_count)]
    result_axes = listed("scan_output_axes", result_count)
    for step in range(steps):
        inner: dict[str, Value | None] = {}
        parts = []
        for sequence, axis, is_reversed in zip(sequences, axes, directions):
            place_ = e.constant(np.int64(steps - 1 - step if is_reversed else step))
            parts.append(e.call("Gather", sequence, place_, axis=axis))
        for value, operand in zip(body.input, [*states, *parts]):
            inner[value.name] = operand
        results = walk.graph(body, ChainMap(inner, scope), place)
        if any(result is None for result in results):
            raise Missing()
        states = results[: len(states)]
        for values, axis, result in zip(found, result_axes, results[len(states) :]):
            values.append(e.call("Unsqueeze", result, e.constant(np.array([axis], np.int64))))
    stacked = []
    for values, axis, is_reversed in zip(
        found, result_axes, listed("scan_output_directions", result_count)
    ):
        stacked.append(e.call("Concat", *(values[::-1] if is_reversed else values), axis=axis))
    return [*states, *stacked]


STRUCTURES: Mapping[str, Structure] = {"If": _take_branch, "Scan": _unroll_scan}

__all__ = ["STRUCTURES"]
