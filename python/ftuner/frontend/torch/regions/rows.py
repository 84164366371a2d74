"""Reductions of rows as regions: softmax, norms, sums, with what surrounds them.

A region is one reduction with elementwise operators before and after it, and other reductions of
the same rows, all of which one kernel computes that reads a row once (docs/rows.md). It may have
several results. Products of the graph have been taken before, with the operators after them.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import torch
from torch import fx

from ..graph import layout as lay
from ..graph.layout import Dims, Layout
from ..graph.nodes import Unsupported
from . import (
    row_choice,
    row_rules,  # noqa: F401, which registers the rules
)
from .elementwise import is_elementwise
from .growth import RegionFinder, check_device
from .linalg import Range
from .region import PURE_VIEWS, Context, Refuse, Region, RegionKind, Rejected, Source, State
from .row_registry import ROW_RULES, Reduced, arguments_of, is_reduction, operand_of_rows
from .steps import FLOATS, KINDS, Step, Tensor

if TYPE_CHECKING:
    from ftuner.host.function import Function

    from .importing import ImportedRegion

#: Results with as many elements as the rows, at most: each is a tensor that a kernel writes.
MAX_RESULTS = 4


class RowKind(RegionKind):
    name = "row"
    gives_list = True
    must_compile = False

    def is_seed(self, node: fx.Node) -> bool:
        return is_reduction(node)

    def is_wanted(self, context: Context) -> bool:
        return context.options.rows != "never" and context.host.takes_rows

    def find(self, graph: fx.Graph, refuse: Refuse) -> RowFinder:
        return RowFinder(graph, refuse)

    def describe(self, region: Region) -> tuple[list[Step], list[Tensor]]:
        steps = [replace(step) for step in region.steps.steps]
        for result in region.results:
            steps[int(result.name[1:])].dims = result.dims
        return steps, region.results

    def max_kernels(self, region: Region) -> int:
        """One, or as many as PyTorch launches for the operators, if it has several for one of them."""
        kernels = [ROW_RULES[seed.target].num_kernels for seed in region.seeds]
        return sum(kernels) + len(region.fused) if max(kernels) > 1 else 1

    def check(self, region: Region, length: Range, is_in_order: bool) -> None:
        if any(step.combine == "arith.minsi" for step in region.steps.steps) and not is_in_order:
            raise Unsupported("a position among dimensions that lie in another order")
        needs_elements = (ROW_RULES[seed.target].needs_elements(seed) for seed in region.seeds)
        if length.lower < 1 and any(needs_elements):
            raise Unsupported("an extreme of rows that may have no element")

    def refuse(self, length: Range, context: Context) -> str | None:
        return row_choice.why_inductors(length) if _is_chosen(context) else None

    def choose(self, imported: ImportedRegion, function: Function, context: Context) -> None:
        is_faster = row_choice.is_faster
        if _is_chosen(context) and not is_faster(imported.function, function, context.settings):
            raise Rejected(row_choice.INDUCTOR_FASTER)


def _is_chosen(context: Context) -> bool:
    """Returns whether rows are chosen by predicted times, rather than always taken."""
    return context.host.joins and context.options.rows == "auto"


KIND = RowKind()


def _source(layout: Layout, node: fx.Node, dims: Dims) -> tuple[Source, Layout]:
    """The source of a tensor, and the loops then. Raises Unsupported if that needs a copy."""
    access = lay.accesses(layout, node, layout.resolve(dims))[0]
    if not access.is_dense:
        raise Unsupported(
            f"the operand {lay.description(node)} has gaps in memory: rows are read from tensors"
            " without gaps, and from parts of them that the graph makes"
        )
    return Source.of_access(access), access.layout


class RowFinder(RegionFinder):
    """Finds rows, each reduction with what surrounds it."""

    kind = KIND

    def __init__(self, graph: fx.Graph, refuse: Refuse = lambda length: None) -> None:
        super().__init__(graph)
        self.refuse = refuse

    def begin(self, seed: fx.Node) -> State:
        operand = operand_of_rows(seed)
        _check(seed, operand)
        shape = lay.shape_of(operand)
        if any(extent == 0 for extent in shape):
            raise Unsupported("no elements")
        state = State(_source)
        layout = state.layout
        dims: Dims = tuple((layout.add(extent),) if extent != 1 else () for extent in shape)
        state.steps.reduced = ROW_RULES[seed.target].loops(seed, layout, dims)
        if not state.steps.reduced:
            raise Unsupported("rows of one element")
        length = lay.product([layout.extents[loop] for loop in state.steps.reduced])
        if (reason := self.refuse(length)) is not None:
            raise Unsupported(reason)
        state.known[operand] = layout.resolve(dims)
        return state

    def before(self, seed: fx.Node, state: State) -> list[fx.Node]:
        """Elementwise operators that an operand of whole rows follows from, the nearest first.

        Their loops, and the loops of views in between, become known.
        """
        operand = operand_of_rows(seed)
        found: list[fx.Node] = []
        pending = [(operand, state.known[operand])]
        while pending:
            # The nearest in the order of the graph.
            pending.sort(key=lambda item: self.order[item[0]])
            node, walked = pending.pop()
            if node in found:
                continue
            if node.op != "call_function":
                continue
            if node.target in PURE_VIEWS:
                source = lay.operand_of(node)
                if "val" not in source.meta:  # The call of a function.
                    continue
                previous = lay.step_back(state.layout, node, walked)
                if previous is not None:
                    state.known.setdefault(node, walked)
                    found.append(node)
                    pending.append((source, previous))
                continue
            if not is_elementwise(node.target) or node in self.taken:
                continue
            state.known.setdefault(node, walked)
            found.append(node)
            if node.target in lay.COPIES:
                # The copy has the loops of what it copies.
                pending.append((lay.operand_of(node), walked))
                continue
            pending += [
                (source, walked)
                for source in node.all_input_nodes
                if isinstance(source.meta.get("val"), torch.Tensor)
                and lay.shape_of(source) == lay.shape_of(node)
            ]
        return found

    def emit_seed(self, node: fx.Node, state: State) -> None:
        operand = operand_of_rows(node)
        _check(node, operand)
        dims = state.dims_of(operand)
        if dims is None:
            raise Unsupported("an operand of other loops")
        layout = state.layout
        rule = ROW_RULES[node.target]
        row = layout.leaves(rule.loops(node, layout, dims))
        if row != layout.leaves(state.steps.reduced):
            raise Unsupported("another row")
        x = state.read(operand, dims, lay.shape_of(operand))
        if not set(row) <= {loop for loops in layout.resolve(x.dims) for loop in loops}:
            raise Unsupported("rows of one element that is repeated")
        if operand not in state.values:
            # Dimensions as the graph has them, whatever they are in memory.
            x = replace(x, dims=dims)
        given = arguments_of(node)
        del given[node.target._schema.arguments[0].name]  # type: ignore[union-attr]
        found = rule.compute(state, node, x, **given)
        results = found if isinstance(found, tuple) else (found,)
        results = tuple(_dropped(one, node, rule.rows(node)) for one in results)
        state.values[node] = results if isinstance(found, tuple) else results[0]

    def joins(self, node: fx.Node, state: State) -> bool:
        """Returns whether a reduction reads what is inside, or what the region reads."""
        return any(one in state.values or one in state.known for one in node.all_input_nodes[:1])

    def problem(self, exits: list[fx.Node], state: State) -> str | None:
        values: list[Tensor] = [state.values[node] for node in exits]
        if any(value.name[0] == "a" for value in values) or any(
            _is_copy_of(node, exits) for node in exits
        ):
            return "a copy of another tensor"
        if any(lay.memory_order(node) is None for node in exits):
            return "a result that is not dense"
        if sum(_has_rows(value, state) for value in values) > MAX_RESULTS:
            return f"more than {MAX_RESULTS} results of whole rows"
        # Each is a separate tensor, which other operators may write to.
        return (
            "results that are equal" if len({value.name for value in values}) < len(exits) else None
        )

    def result(self, node: fx.Node, state: State) -> tuple[tuple[int, ...] | None, Dims]:
        order = None if lay.is_contiguous(node) else lay.memory_order(node)
        dims = state.layout.resolve(state.values[node].dims)
        return order, dims if order is None else tuple(dims[dim] for dim in order)


def _check(seed: fx.Node, operand: fx.Node) -> None:
    """Raises Unsupported for an operand that a reduction is not computed of."""
    value = operand.meta.get("val")
    if not isinstance(value, torch.Tensor):
        raise Unsupported("an operand that is not a tensor")
    kind = KINDS.get(value.dtype)
    if kind not in FLOATS and not (kind == "i1" and ROW_RULES[seed.target].takes_booleans):
        raise Unsupported(f"elements of {str(value.dtype).removeprefix('torch.')}")
    check_device(operand)


def _dropped(tensor: Tensor, node: fx.Node, reduced: Reduced) -> Tensor:
    """A result without the dimensions of the row, unless they are kept."""
    if reduced.keep or len(tensor.dims) != len(lay.shape_of(operand_of_rows(node))):
        return tensor
    dims = tuple(loops for dim, loops in enumerate(tensor.dims) if dim not in reduced.dims)
    return replace(tensor, dims=dims)


def _is_copy_of(node: fx.Node, others: list[fx.Node]) -> bool:
    """Returns whether a node copies a tensor that is there anyway."""
    if node.target not in lay.COPIES:
        return False
    source = lay.operand_of(node)
    while source.target in lay.VIEWS and source not in others:
        source = lay.operand_of(source)
    return source in others


def _has_rows(tensor: Tensor, state: State) -> bool:
    """Returns whether a tensor has as many elements as the rows."""
    row = set(state.layout.leaves(state.steps.reduced))
    return any(loop in row for loops in state.layout.resolve(tensor.dims) for loop in loops)
