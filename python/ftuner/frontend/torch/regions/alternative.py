"""The operators of a region, which PyTorch runs one by one in place of a function.

Graphs that PyTorch keeps outlive the process, so an alternative is a text: the Python that torch.fx
writes for a graph of ATen operators. It takes what the function takes, and sizes.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import fx

from ..graph import layout as lay
from ..graph.layout import Extent

if TYPE_CHECKING:
    from .region import Region

aten = torch.ops.aten

#: Names that torch.fx writes without a module.
_NAMES = {"torch": torch, "device": torch.device, "inf": math.inf, "nan": math.nan}


@dataclass(frozen=True)
class Alternative:
    """A text, and the nodes of the sizes that it takes after tensors and scalars."""

    code: str
    sizes: list[fx.Node]


def alternative_of(
    region: Region,
    argument_shapes: list[list[Extent]],
    find: Callable[[list[Extent]], list[int | fx.Node]],
    replaced: Mapping[fx.Node, fx.Node],
) -> Alternative:
    """The operators of a region, for arguments of these shapes in the function that replaces it.

    ``find`` makes nodes that compute sizes. ``replaced`` has the nodes that now stand for results of
    other regions.
    """
    graph = fx.Graph()
    tensors = [graph.placeholder(f"tensor{number}") for number in range(len(region.sources))]
    scalars = [graph.placeholder(f"scalar{number}") for number in range(len(region.scalars))]
    sizes: dict[fx.Node, fx.Node] = {}
    known = {replaced.get(node, node): scalar for node, scalar in zip(region.scalars, scalars)}

    def size(node: fx.Node) -> fx.Node:
        if node not in sizes:
            with graph.inserting_after([*tensors, *scalars, *sizes.values()][-1]):
                sizes[node] = graph.placeholder(f"size{len(sizes)}")
        return sizes[node]

    def sizes_of(shape: list[Extent]) -> list[int | fx.Node]:
        return [size(one) if isinstance(one, fx.Node) else one for one in find(shape)]

    for source, tensor, shape in zip(region.sources, tensors, argument_shapes):
        node = replaced.get(source.node, source.node)
        if node in known:
            continue
        known[node] = tensor
        if source.shape != shape:
            known[node] = graph.call_function(
                aten.reshape.default, (tensor, sizes_of(source.shape))
            )
        if source.order is not None:
            inverse = [source.order.index(dim) for dim in range(len(source.order))]
            known[node] = graph.call_function(aten.permute.default, (known[node], inverse))
        if source.repeated:
            wanted = sizes_of(list(lay.shape_of(source.node)))
            known[node] = graph.call_function(aten.expand.default, (known[node], wanted))

    def copy(node: fx.Node) -> fx.Node:
        if node in known:
            return known[node]
        if isinstance(node.meta.get("val"), (int, torch.SymInt)):
            return size(node)
        args, kwargs = fx.map_arg((node.args, node.kwargs), copy)
        known[node] = graph.create_node(node.op, node.target, args, kwargs)
        return known[node]

    result = copy(region.exits[0])
    if region.orders[0] is not None:
        # The function's result has its dimensions in the order of memory.
        result = graph.call_function(aten.permute.default, (result, list(region.orders[0])))
    graph.output(result)
    return Alternative(graph.python_code("self").src, [*sizes])


@functools.cache
def read(code: str) -> Callable[..., torch.Tensor]:
    """The function of an alternative's text: tensors, then scalars, then sizes."""
    names: dict[str, Any] = dict(_NAMES)
    exec(compile(code, "<alternative of a product>", "exec"), names)
    return functools.partial(names["forward"], None)
