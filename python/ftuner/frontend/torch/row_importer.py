"""From a region of rows to an FTuner function and its call; see importer.py."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

from torch import fx
from torch.fx.experimental.symbolic_shapes import ShapeEnv

from . import layout as lay
from .histograms import Histogram
from .importer import Call, MakeCall, NamedLoops, SizeFinder, range_of
from .layout import Dims, Extent
from .partition import NotTaken, aten, join_loops
from .row_function import Operand, Operator, RowFunction
from .row_regions import RowRegion
from .row_registry import arguments_of
from .row_rules import KINDS, Step, Tensor

#: What PyTorch refuses to reduce rows without elements by, as it does some norms.
_EXTREMES = {
    aten.amax.default, aten.amin.default, aten.max.dim, aten.min.dim, aten.max.default,
    aten.min.default, aten.argmax.default, aten.argmin.default,
}  # fmt: skip


def _is_extreme(node: fx.Node) -> bool:
    """Whether PyTorch refuses to reduce rows without elements by an operator."""
    if node.target is aten.linalg_vector_norm.default:
        order = arguments_of(node)["ord"]
        return bool(order < 0 or order == math.inf)
    return node.target in _EXTREMES


@dataclass
class ImportedRows:
    """A region as a function, and the extents that its tensors must have."""

    region: RowRegion
    function: RowFunction
    argument_shapes: list[list[Extent]]
    result_shapes: list[list[Extent]]
    #: The loops of the region whose product each extent is.
    parts: dict[Extent, list[Extent]]


def import_rows(
    region: RowRegion,
    shape_env: ShapeEnv | None,
    of_symbols: Mapping[str, Histogram] = MappingProxyType({}),
) -> ImportedRows:
    """The function that computes a region. Raises NotTaken."""
    layout = region.steps.layout
    steps = _in_memory(region)
    dims = [source.dims for source in region.sources] + [step.dims for step in steps]
    groups = {group[0]: group for group in join_loops(layout, dims)}
    row = layout.leaves(region.steps.reduced)
    heads_of_row = [head for head in groups if head in row]
    if len(heads_of_row) != 1:
        raise NotTaken("reduced dimensions that do not lie side by side")
    (head_of_row,) = heads_of_row
    walks = [[loop for loops in layout.resolve(one) for loop in loops] for one in dims]
    used = {loop for walk in walks for loop in walk}
    heads = [head for head in groups if head != head_of_row and head in used] + [head_of_row]
    has_position = any(step.combine == "arith.minsi" for step in steps)
    if has_position and groups[head_of_row] != row:
        raise NotTaken("a position among dimensions that lie in another order")
    named = NamedLoops.of(layout, groups, heads)
    length = named.extents[head_of_row]
    if any(map(_is_extreme, region.nodes)):
        if range_of(length, shape_env).lower < 1:
            raise NotTaken("an extreme of rows that may have no element")
    def numbers(tensor: Dims) -> tuple[int, ...]:
        return named.numbers(loop for loops in layout.resolve(tensor) for loop in loops)

    def operand(tensor: Tensor) -> Operand:
        kind, place = tensor.name[0], tensor.name.lstrip("argt")
        of = region.sources[int(place)].dims if kind == "a" else steps[int(place)].dims
        return Operand(tensor.name, numbers(of), tensor.kind)

    operators, names = _operators(steps, region.results, operand, numbers)
    function = RowFunction(
        name=region.name,
        loops=named.sizes,
        arguments=tuple(numbers(source.dims) for source in region.sources),
        types=tuple(KINDS[source.node.meta["val"].dtype] for source in region.sources),
        num_scalars=len(region.scalars),
        operators=operators,
        results=tuple(replace(operand(one), name=names(one.name)) for one in region.results),
        symbols=named.ranges(shape_env, of_symbols),
    )
    given = {loop for walk in function.arguments for loop in walk}
    if any(loop not in given for loop in range(len(heads))):
        raise NotTaken("a size that no operand has")
    return ImportedRows(
        region=region,
        function=function,
        argument_shapes=[named.shape(walk) for walk in function.arguments],
        result_shapes=[named.shape(result.loops) for result in function.results],
        parts=named.parts,
    )


def _in_memory(region: RowRegion) -> list[Step]:
    """The steps, those of results with their dimensions in the order of the result's memory."""
    steps = [replace(step) for step in region.steps.steps]
    for result in region.results:
        steps[int(result.name[1:])].dims = result.dims
    return steps


def _operators(
    steps: Sequence[Step],
    results: Sequence[Tensor],
    operand: Callable[[Tensor], Operand],
    numbers: Callable[[Dims], tuple[int, ...]],
) -> tuple[tuple[Operator, ...], Callable[[str], str]]:
    """The operators that results need, numbered anew, and what gives names their new ones."""
    needed: set[int] = set()
    pending = [int(result.name[1:]) for result in results]
    while pending:
        place = pending.pop()
        if place not in needed:
            needed.add(place)
            pending += [int(one.name[1:]) for one in steps[place].operands if one.name[0] != "a"]
    new = {place: count for count, place in enumerate(sorted(needed))}

    def name(old: str) -> str:
        return old if old[0] == "a" else f"{old[0]}{new[int(old[1:])]}"

    operators = tuple(
        Operator(
            operands=tuple(replace(operand(one), name=name(one.name)) for one in step.operands),
            instructions=tuple(step.instructions),
            value=step.value,
            loops=numbers(step.dims),
            kind=step.kind,
            combine=step.combine,
        )
        for step in (steps[place] for place in sorted(needed))
    )
    return operators, name


def replace_rows(
    imported: ImportedRows, graph: fx.Graph, call: MakeCall, replaced: dict[fx.Node, fx.Node]
) -> None:
    """Replaces a region by a call of its function, whose results follow from it.

    ``replaced`` has the nodes that other regions were replaced by, and gets those of this one. Raises
    NotTaken, and leaves the graph as it was, if a size is not to be had.
    """
    region = imported.region
    first = region.exits[0]
    with graph.inserting_before(first):
        sources = [replaced.get(source.node, source.node) for source in region.sources]
        sizes = SizeFinder(graph, first, sources)

        def find(shape: list[Extent]) -> list[int | fx.Node]:
            return [sizes.find(extent, imported.parts.get(extent, [])) for extent in shape]

        def shape_in_memory(node: fx.Node, order: tuple[int, ...] | None) -> list[Extent]:
            shape = lay.shape_of(node)
            return [shape[dim] for dim in (order or range(len(shape)))]

        def changed(shape: list[Extent], other: list[Extent]) -> list[int | fx.Node] | None:
            """Sizes of the other shape, where it is another."""
            return None if shape == other else find(other)

        shapes = [
            changed(shape_in_memory(source.node, source.order), shape)
            for source, shape in zip(region.sources, imported.argument_shapes)
        ]
        of_results = [
            changed(shape, shape_in_memory(node, order))
            for node, order, shape in zip(region.exits, region.orders, imported.result_shapes)
        ]
        arguments: list[fx.Node] = []
        for source, node, sizes_there in zip(region.sources, sources, shapes):
            if source.order is not None:
                node = graph.call_function(aten.permute.default, (node, list(source.order)))
            if sizes_there is not None:
                node = graph.call_function(aten.view.default, (node, sizes_there))
            arguments.append(node)
        scalars = [replaced.get(node, node) for node in region.scalars]
        results = call(Call(arguments, scalars))
        for number, (exit, order, whole) in enumerate(zip(region.exits, region.orders, of_results)):
            result = graph.call_function(operator.getitem, (results, number))
            if whole is not None:
                result = graph.call_function(aten.view.default, (result, whole))
            if order is not None:
                inverse = [order.index(dim) for dim in range(len(order))]
                result = graph.call_function(aten.permute.default, (result, inverse))
            result.meta = dict(exit.meta)
            exit.replace_all_uses_with(result)
            replaced[exit] = result
