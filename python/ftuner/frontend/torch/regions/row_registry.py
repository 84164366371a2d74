"""The registry of ATen's operators on rows: how each one is computed, and which dimensions are its rows.

`row_rules` registers the rules.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from torch import fx

from ..graph.layout import Dims, Layout, Loop
from ..graph.nodes import Unsupported


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
        raise Unsupported("an operand that is not a tensor")
    return operand


@dataclass(frozen=True)
class RowRule:
    """A rule for a reduction of rows.

    Attributes:
        compute: gets the surroundings, the node, the operand, and the node's arguments by name. It
            gives a tensor, or one for each result, with all dimensions kept.
        rows: the dimensions of the operand that make a row.
        split: splits the loops of the operand's dimensions where a row has a part of a dimension, and
            gives the loops of the row; None: a row has whole dimensions.
        needs_elements: tells whether PyTorch refuses rows without elements.
        takes_booleans: whether the operand may be booleans.
        num_kernels: the number of kernels that PyTorch launches for the operator.
    """

    compute: Callable[..., Any]
    rows: Callable[[fx.Node], Reduced]
    split: Callable[[fx.Node, Layout, Dims], tuple[Loop, ...]] | None = None
    needs_elements: Callable[[fx.Node], bool] = lambda node: False
    takes_booleans: bool = False
    num_kernels: int = 1

    def loops(self, node: fx.Node, layout: Layout, dims: Dims) -> tuple[Loop, ...]:
        """The loops of a row of an operand that `dims` walk. Raises Unsupported."""
        if self.split is not None:
            return self.split(node, layout, dims)
        return tuple(loop for dim in self.rows(node).dims for loop in dims[dim])


#: Reductions by operator.
ROW_RULES: dict[Any, RowRule] = {}


def is_reduction(node: fx.Node) -> bool:
    return node.op == "call_function" and node.target in ROW_RULES


def _by_dim(node: fx.Node) -> Reduced:
    """The dimensions that an argument `dim` names, all if it is None.

    Operators without an argument `keepdim`, such as softmax, keep all dimensions.
    """
    given = arguments_of(node)
    dims = _all_or(given["dim"], _rank(operand_of_rows(node)))
    return Reduced(dims, bool(given.get("keepdim", True)))


def _all_dims(node: fx.Node) -> Reduced:
    return Reduced(tuple(range(_rank(operand_of_rows(node)))), False)


def normalized_dims(node: fx.Node) -> Reduced:
    rank, shape = _rank(operand_of_rows(node)), arguments_of(node)["normalized_shape"]
    return Reduced(tuple(range(rank - len(shape), rank)), True)


def channels_of_images(node: fx.Node) -> Reduced:
    return Reduced(tuple(range(1, _rank(operand_of_rows(node)))), True)


def split_groups(node: fx.Node, layout: Layout, dims: Dims) -> tuple[Loop, ...]:
    """The loops of a group of channels, and of the dimensions after the channels."""
    given = arguments_of(node)
    channels, groups = (given[name] for name in ("C", "group"))
    if not isinstance(channels, int) or channels % groups:
        raise Unsupported("a number of channels that is not known")
    parts = layout.split(dims[1], [groups, channels // groups])
    if parts is None:
        raise Unsupported("groups that no loops describe")
    return (*parts[1], *(loop for loops in dims[2:] for loop in loops))


def channels_of_batches(node: fx.Node) -> Reduced:
    return Reduced((0, *range(2, _rank(operand_of_rows(node)))), True)


def row_rule(
    *operators: Any, rows: Callable[[fx.Node], Reduced] | None = None, **more: Any
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Registers a rule of operators; `more` are further attributes of `RowRule`.

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
            ROW_RULES[operator] = RowRule(function, found, **more)
        return function

    return register
