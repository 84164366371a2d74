"""Filters of convolutions in the order in which kernels sum products up.

A filter of PyTorch has its channels before its window. A step of a kernel is along neighbors in memory:
of channels it stays in one tap of the window, whose place in the image all vectors of the step share.
"""

from __future__ import annotations

from collections.abc import Container
from typing import Any

from torch.export import ExportedProgram

import torch
from torch import fx

aten = torch.ops.aten

_CONVOLUTIONS = {aten.conv1d.default, aten.conv2d.default, aten.conv3d.default}


def put_channels_last(program: ExportedProgram, weights: Container[fx.Node]) -> None:
    """Makes convolutions with weights read views of filters whose channels are last, which are folded later."""
    graph = program.graph
    moved: dict[fx.Node, fx.Node] = {}
    for node in list(graph.nodes):
        is_forward = node.target in _CONVOLUTIONS or (
            node.target == aten.convolution.default and not node.args[6]
        )
        if not is_forward or node.args[1] not in weights:
            continue
        weight: fx.Node = node.args[1]
        shape = weight.meta["val"].shape
        if shape[1] == 1 or all(size == 1 for size in shape[2:]):
            continue
        if weight not in moved:
            with graph.inserting_before(node):
                last = _call(graph, aten.permute.default, weight, [0, *range(2, len(shape)), 1])
                # A flip of no dimension: what is computed is folded, a copy is not.
                laid = _call(graph, aten.flip.default, last, [])
                moved[weight] = _call(
                    graph,
                    aten.permute.default,
                    laid,
                    [0, len(shape) - 1, *range(1, len(shape) - 1)],
                )
        node.replace_input_with(weight, moved[weight])


def _call(graph: fx.Graph, target: Any, source: fx.Node, dims: list[int]) -> fx.Node:
    node = graph.call_function(target, (source, dims))
    node.meta = {key: value for key, value in source.meta.items() if key != "tensor_meta"}
    node.meta["val"] = target(source.meta["val"], dims)
    return node
