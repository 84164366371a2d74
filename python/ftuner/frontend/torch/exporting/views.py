"""Views of exported graphs as joins and splits of dimensions.

A view lists sizes, and what became of each dimension is lost: torch-mlir guesses it,
sometimes wrongly (it takes x[?, ?, 32].view(-1, 32) for a view of x[?, 1, 32]), else makes
a `tensor.reshape` through which no name of a size survives. PyTorch's symbols tell which
dimensions were joined and split, which `flatten` and `unflatten` say.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from torch.export import ExportedProgram

import torch
from torch import fx

from ..graph import layout as lay

aten = torch.ops.aten

_VIEWS = {aten.view.default, aten.reshape.default, aten._unsafe_view.default}


@dataclass(frozen=True)
class Group:
    """`inputs` dimensions of a view's operand that become `outputs` dimensions of its result."""

    inputs: int
    outputs: int


def group_dimensions(shape: Sequence[lay.Extent], result: Sequence[lay.Extent]) -> list[Group]:
    """The smallest groups of neighbouring dimensions with the same number of elements.

    Extents are at least 1. Where symbols do not tell, the rest is one group.
    """
    groups = []
    i = j = 0
    while i < len(shape) or j < len(result):
        if i < len(shape) and j < len(result) and shape[i] == result[j]:
            group = Group(1, 1)
        elif i < len(shape) and shape[i] == 1:
            group = Group(1, 0)
        elif j < len(result) and result[j] == 1:
            group = Group(0, 1)
        else:
            group = _join(shape[i:], result[j:])
        groups.append(group)
        i, j = i + group.inputs, j + group.outputs
    return groups


def _join(shape: Sequence[lay.Extent], result: Sequence[lay.Extent]) -> Group:
    """The first group of dimensions that begin with different extents."""
    inputs = outputs = 1
    while inputs <= len(shape) and outputs <= len(result):
        left, right = lay.product(shape[:inputs]), lay.product(result[:outputs])
        if left == right:
            return Group(inputs, outputs)
        if lay.quotient(right, left) is not None:
            inputs += 1
        elif lay.quotient(left, right) is not None:
            outputs += 1
        else:
            break
    return Group(len(shape), len(result))


def rewrite_views(program: ExportedProgram) -> None:
    """Replaces the views of a program."""
    graph = program.graph
    for node in list(graph.nodes):
        # Without elements, sizes do not tell what was joined.
        if node.op == "call_function" and node.target in _VIEWS and 0 not in lay.shape_of(node):
            value = _rewrite(graph, node)
            node.replace_all_uses_with(value)
            program.graph_signature.replace_all_uses(node.name, value.name)
            graph.erase_node(node)
    graph.eliminate_dead_code()


def _rewrite(graph: fx.Graph, node: fx.Node) -> fx.Node:
    """The replacement of a view; nodes have their values as `meta["val"]`."""
    source: Any = node.args[0]
    sizes: Any = node.args[1]
    shape, result = lay.shape_of(source), lay.shape_of(node)
    value: fx.Node = source
    # `dim` is a dimension of `value`, `place` one of the result.
    dim = place = 0
    with graph.inserting_before(node):
        for group in group_dimensions(shape, result):
            wanted = list(sizes[place : place + group.outputs])
            if group.outputs == 0:
                value = _call(graph, node, aten.squeeze.dim, value, dim)
            elif group.inputs == 0:
                value = _call(graph, node, aten.unsqueeze.default, value, dim)
            else:
                if group.inputs > 1:
                    last = dim + group.inputs - 1
                    value = _call(graph, node, aten.flatten.using_ints, value, dim, last)
                if group.outputs > 1:
                    known = [_known(size, extent) for size, extent in zip(wanted, result[place:])]
                    value = _split(graph, node, value, dim, known)
            dim += group.outputs
            place += group.outputs
    return value


def _known(size: fx.Node | int, extent: lay.Extent) -> fx.Node | int:
    """A size as a number where it is one; -1 is left."""
    return extent if isinstance(extent, int) else size


def _split(
    graph: fx.Graph, node: fx.Node, value: fx.Node, dim: int, sizes: list[fx.Node | int]
) -> fx.Node:
    """Splits a dimension; a size of -1 is computed from the others."""
    if -1 in sizes:
        rest = _call(graph, node, aten.sym_size.int, value, dim)
        for size in sizes:
            if not isinstance(size, int) or size != -1:
                rest = _call(graph, node, operator.floordiv, rest, size)
        sizes = [rest if isinstance(size, int) and size == -1 else size for size in sizes]
    return _call(graph, node, aten.unflatten.int, value, dim, sizes)


def _call(graph: fx.Graph, origin: fx.Node, target: Any, *args: Any) -> fx.Node:
    """A new node that stands where `origin` stood in the model's source."""
    node = graph.call_function(target, args)
    values = fx.map_arg(args, lambda argument: argument.meta["val"])
    node.meta = {key: kept for key, kept in origin.meta.items() if key != "tensor_meta"}
    node.meta["val"] = target(*values)
    return node
