"""Values of exported programs that have no elements.

Every operator gives the same such value, so it is written as an empty tensor: importers divide by
sizes of 0, and read the first element of nothing.
"""

from __future__ import annotations

from typing import Any

from torch.export import ExportedProgram

import torch
from torch import fx

aten = torch.ops.aten


def replace_empties(program: ExportedProgram) -> None:
    """Replaces operators whose result is known to be without elements."""
    graph = program.graph
    for node in list(graph.nodes):
        value = node.meta.get("val")
        if (
            node.op != "call_function"
            or not isinstance(value, torch.Tensor)
            or node.target == aten.full.default
        ):
            continue
        if not any(isinstance(size, int) and size == 0 for size in value.shape):
            continue
        with graph.inserting_before(node):
            sizes = [_size(node, size) for size in value.shape]
            if any(size is None for size in sizes):
                continue
        node.target, node.args, node.kwargs = aten.full.default, (sizes, 0), {"dtype": value.dtype}
    graph.eliminate_dead_code()


def _size(node: fx.Node, size: Any) -> Any:
    """A size as a number, or as that of an operand's dimension; None if no operand has it."""
    if isinstance(size, int):
        return size
    for operand in node.all_input_nodes:
        shape = getattr(operand.meta.get("val"), "shape", ())
        for dim, extent in enumerate(shape):
            if not isinstance(extent, int) and extent.node.expr == size.node.expr:
                found = node.graph.call_function(aten.sym_size.int, (operand, dim))
                found.meta["val"] = size
                return found
    return None
