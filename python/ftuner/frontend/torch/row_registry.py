"""The registry of ATen's operators on rows: how each one is computed, and what its rows are.

`row_rules` registers the rules.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from torch import fx

from .pointwise import Unsupported


@dataclass(frozen=True)
class Reduced:
    """The dimensions that an operator reduces; `keep` is true if they stay with extent 1."""

    dims: tuple[int, ...]
    keep: bool


def arguments_of(node: fx.Node) -> dict[str, Any]:
    """Arguments by their names in the operator's schema, defaults included."""
    target: Any = node.target
    schema = target._schema.arguments
    named = {argument.name: argument.default_value for argument in schema}
    named |= {argument.name: value for argument, value in zip(schema, node.args)}
    return {**named, **node.kwargs}


def _rank(node: fx.Node) -> int:
    return len(node.meta["val"].shape)


def _all_or(dims: Any, rank: int) -> tuple[int, ...]:
    """Dimensions as a list, a number or nothing, which means all."""
    if dims is None or (isinstance(dims, (list, tuple)) and not dims):
        return tuple(range(rank))
    if isinstance(dims, int):
        dims = [dims]
    return tuple(sorted(dim % rank for dim in dims)) if rank else ()


def operand_of_rows(node: fx.Node) -> fx.Node:
    """The tensor that a reduction reduces."""
    operand = node.args[0]
    if not isinstance(operand, fx.Node):
        raise Unsupported("an operand that is no tensor")
    return operand


def reduced_dims(node: fx.Node) -> Reduced:
    """The dimensions of the first operand that make a row. Raises Unsupported."""
    return ROW_RULES[node.target].rows(node)


@dataclass(frozen=True)
class RowRule:
    """A rule for a reduction of rows.

    Attributes:
        compute: gets the surroundings, the node, the operand, and the node's arguments by name. It
            gives a tensor, or one for each result, with all dimensions kept.
        rows: the dimensions of the operand that make a row.
    """

    compute: Callable[..., Any]
    rows: Callable[[fx.Node], Reduced]


#: Reductions by operator.
ROW_RULES: dict[Any, RowRule] = {}


def _by_dim(node: fx.Node) -> Reduced:
    """The dimensions that an argument `dim` names, all where it is None."""
    given = arguments_of(node)
    dims = _all_or(given["dim"], _rank(operand_of_rows(node)))
    return Reduced(dims, bool(given.get("keepdim", False)))


def _all_dims(node: fx.Node) -> Reduced:
    return Reduced(tuple(range(_rank(operand_of_rows(node)))), False)


def normalized_dims(node: fx.Node) -> Reduced:
    rank, shape = _rank(operand_of_rows(node)), arguments_of(node)["normalized_shape"]
    return Reduced(tuple(range(rank - len(shape), rank)), True)


def channels_of_images(node: fx.Node) -> Reduced:
    return Reduced(tuple(range(1, _rank(operand_of_rows(node)))), True)


def channels_of_batches(node: fx.Node) -> Reduced:
    return Reduced((0, *range(2, _rank(operand_of_rows(node)))), True)


def row_rule(
    *operators: Any, rows: Callable[[fx.Node], Reduced] | None = None
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Registers a rule of operators.

    `rows` may be left out for operators with an argument `dim`, and for those whose only argument
    is the operand and which reduce all of it.
    """

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        for operator in operators:
            names = [argument.name for argument in operator._schema.arguments]
            found = rows or (_by_dim if "dim" in names else None)
            if found is None and set(names) <= {"self", "dtype"}:
                found = _all_dims
            if found is None:
                raise TypeError(f"{operator}: expected rows, as it has no argument 'dim'")
            ROW_RULES[operator] = RowRule(function, found)
        return function

    return register
