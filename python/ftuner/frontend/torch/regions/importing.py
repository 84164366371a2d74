"""Turns a region of an ATen graph into an FTuner function and its call.

The function has one loop for each group of loops that all tensors have side by
side (see layout.join_loops), so a linear layer of [B, S, K] by [K, N] is a
product of B·S rows. Sizes that are equal expressions of PyTorch's symbols are
one symbol of the function, with the range that the shape environment knows.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

import sympy
from torch.fx.experimental.symbolic_shapes import ShapeEnv
from torch.utils._sympy.numbers import int_oo
from torch.utils._sympy.value_ranges import ValueRanges, bound_sympy

import torch
from torch import fx

from ..graph import layout as lay
from ..graph.hints import MAX_EXTENT
from ..graph.layout import Dims, Extent, Loop, join_loops
from ..graph.nodes import Unsupported
from ..histograms import Histogram, of_extent
from .alternative import Alternative, alternative_of
from .linalg import LinalgFunction, Operand, Operator, Part, PartOfDim, Range, Size
from .region import Region, Source
from .steps import KINDS, Step, Tensor

aten = torch.ops.aten


@dataclass
class ImportedRegion:
    """A region as a function, and the extents that its tensors must have."""

    region: Region
    function: LinalgFunction
    argument_shapes: list[list[Extent]]
    result_shapes: list[list[Extent]]
    #: The loops of the region whose product each extent is.
    parts: dict[Extent, list[Extent]]


def range_of(
    extent: Extent, shape_env: ShapeEnv | None, declared: Mapping[Extent, int] | None = None
) -> Range:
    """The sizes that an expression takes under the ranges of its symbols.

    Args:
        declared: the least sizes that the user of an exported program declares, by symbols.
            torch.export takes 0 and 1 out of the range of every symbol, since it traces with
            larger sizes. A kernel serves them too, and a batch of 1 is the commonest, so a
            least size of 2 that nobody declared is read as 1. Graphs of torch.compile, by
            default, are compiled anew for a size of 1 and keep their ranges, but for the
            rows that a weight is multiplied with.
    """
    ranges = dict(shape_env.var_to_range) if shape_env else {}
    if declared is not None:
        for symbol, bounds in ranges.items():
            minimum = declared.get(symbol, 1)
            if bounds.lower in (0, 2) and minimum < 2:
                ranges[symbol] = ValueRanges(minimum, bounds.upper)
    bounds = bound_sympy(sympy.sympify(extent), ranges)

    def finite(bound: sympy.Expr, otherwise: int | None) -> int | None:
        if bound in (int_oo, -int_oo, sympy.oo, -sympy.oo) or not bound.is_integer:
            return otherwise
        return int(bound)

    lower, upper = finite(bounds.lower, 0), finite(bounds.upper, None)
    if upper is not None and upper > MAX_EXTENT:
        upper = None
    return Range(max(lower or 0, 0), upper)


def weighted(extent: Extent, sizes: Range, of_symbols: Mapping[str, Histogram]) -> Range:
    return replace(sizes, weights=of_extent(extent, of_symbols, sizes.lower, sizes.upper))


@dataclass(frozen=True)
class NamedLoops:
    """The loops of a function, each one for a group of a region's loops."""

    #: The extent of each group by its first loop, in the function's order.
    extents: dict[Loop, Extent]
    #: The loops of the region whose product each extent is.
    parts: dict[Extent, list[Extent]]
    #: Names of extents that are not numbers.
    names: dict[Extent, str]

    @classmethod
    def for_groups(
        cls, layout: lay.Layout, groups: Mapping[Loop, Sequence[Loop]], heads: Sequence[Loop]
    ) -> NamedLoops:
        """heads: the first loops of the groups that the function has."""
        parts = {head: [layout.extents[loop] for loop in groups[head]] for head in heads}
        extents = {head: lay.product(parts[head]) for head in heads}
        names: dict[Extent, str] = {}
        for extent in extents.values():
            if not isinstance(extent, int):
                names.setdefault(extent, f"d{len(names)}")
        return cls(extents, {extents[head]: parts[head] for head in heads}, names)

    @property
    def sizes(self) -> tuple[Size, ...]:
        """The extent of each loop."""
        extents = self.extents.values()
        return tuple(one if isinstance(one, int) else self.names[one] for one in extents)

    def size(self, extent: Extent) -> Size:
        """An extent as a number or a name, which it has from then on."""
        if isinstance(extent, int):
            return extent
        return self.names.setdefault(extent, f"d{len(self.names)}")

    def numbers(self, walk: Iterable[Loop]) -> tuple[int, ...]:
        """The places of the function's loops among the loops of the region."""
        place = {head: number for number, head in enumerate(self.extents)}
        return tuple(place[loop] for loop in walk if loop in place)

    def shape(self, numbers: Iterable[int]) -> list[Extent]:
        """The extents of loops of these places."""
        extents = list(self.extents.values())
        return [extents[number] for number in numbers]

    def ranges(
        self, shape_env: ShapeEnv | None, of_symbols: Mapping[str, Histogram]
    ) -> tuple[tuple[str, Range], ...]:
        """The range of each name."""
        return tuple(
            (name, weighted(extent, range_of(extent, shape_env), of_symbols))
            for extent, name in self.names.items()
        )


def import_region(
    region: Region,
    shape_env: ShapeEnv | None,
    of_symbols: Mapping[str, Histogram] = MappingProxyType({}),
    dynamic: bool = False,
) -> ImportedRegion:
    """The function that computes a region. Raises Unsupported.

    Args:
        of_symbols: histograms of PyTorch's symbols.
        dynamic: whether a function of a weight is for one row, too, where PyTorch compiles
            another graph for that (see weight_rows.py).
    """
    layout = region.layout
    steps, results = region.kind.describe(region)
    steps, results = _needed(steps, results)
    dims = [source.dims for source in region.sources] + [step.dims for step in steps]
    runs = [run for source in region.sources for run in source.segments]
    groups = {group[0]: group for group in join_loops(layout, runs + [step.dims for step in steps])}
    row = layout.leaves(region.steps.reduced)
    reduced = [loop for loop in row if loop in groups]
    max_kernels = region.kind.max_kernels(region)
    if len(reduced) != 1 and max_kernels == 1:
        tensor = lay.description(region.sources[0].node)
        raise Unsupported(f"reduced dimensions that do not lie side by side in {tensor}")
    used = {loop for walk in dims for loops in layout.resolve(walk) for loop in loops}
    outer = [head for head in groups if head not in reduced and head in used]
    walk = [loop for loops in layout.resolve(results[0].dims) for loop in loops]
    named = NamedLoops.for_groups(layout, groups, [*region.kind.heads(outer, walk), *reduced])
    length = range_of(lay.product([named.extents[loop] for loop in reduced]), shape_env)
    region.kind.check(region, length, is_in_order=groups[reduced[0]] == row)

    def numbers(tensor: Dims) -> tuple[int, ...]:
        return named.numbers(loop for loops in layout.resolve(tensor) for loop in loops)

    def operand(tensor: Tensor) -> Operand:
        kind, place = tensor.name[0], int(tensor.name.lstrip("argt"))
        known = region.sources[place].dims if kind == "a" else steps[place].dims
        return Operand(tensor.name, numbers(known), tensor.kind)

    function = LinalgFunction(
        name=region.name,
        loops=named.sizes,
        arguments=tuple(numbers(source.dims) for source in region.sources),
        parts=tuple(_part(source, layout, named, numbers) for source in region.sources),
        types=tuple(KINDS[source.node.meta["val"].dtype] for source in region.sources),
        num_scalars=len(region.scalars),
        operators=tuple(
            Operator(
                operands=tuple(map(operand, step.operands)),
                instructions=tuple(step.instructions),
                value=step.value,
                loops=numbers(step.dims),
                kind=step.kind,
                combine=step.combine,
            )
            for step in steps
        ),
        results=tuple(map(operand, results)),
        symbols=named.ranges(shape_env, of_symbols),
        num_reduced=len(reduced),
        max_kernels=max_kernels,
    )
    if len({loop for loops in function.arguments for loop in loops}) < len(named.extents):
        raise Unsupported("a size that no operand has")
    if dynamic:
        function = _with_one_row(function, region, named, shape_env, of_symbols)
    return ImportedRegion(
        region=region,
        function=function,
        argument_shapes=[
            named.shape(loops) if part is None else _whole_shape(part, named)
            for loops, part in zip(function.arguments, function.parts)
        ],
        result_shapes=[named.shape(result.loops) for result in function.results],
        parts=named.parts,
    )


def _part(
    source: Source,
    layout: lay.Layout,
    named: NamedLoops,
    numbers: Callable[[Dims], tuple[int, ...]],
) -> Part | None:
    """The part of an argument that the function reads; None if it reads all. Raises Unsupported."""
    if not source.cuts:
        return None
    dims: list[int | PartOfDim] = []
    runs = source.segments
    # Between runs of whole dimensions there is one that is cut.
    cuts = iter(cut for cut in source.cuts if cut is not None)
    for place, run in enumerate(runs):
        found = numbers(run)
        if place % 2 == 0:
            dims += found
            continue
        cut = next(cuts)
        inner = lay.product(named.shape(found[1:]))
        extent, offset = lay.quotient(cut.extent, inner), lay.quotient(cut.offset, inner)
        if not isinstance(inner, int) or extent is None or offset is None:
            shape = ", ".join(map(str, named.shape(found)))
            raise Unsupported(
                f"a part of {lay.description(source.node)}, elements from {cut.offset} on in"
                f" {cut.extent}, that is split into ({shape})"
            )
        assert isinstance(offset, int)
        dims += [PartOfDim(found[0] if found else None, offset, named.size(extent)), *found[1:]]
    return Part(tuple(dims))


def _whole_shape(part: Part, named: NamedLoops) -> list[Extent]:
    """The extents of an argument that a function reads in part."""
    shape: list[Extent] = []
    for dim in part.dims:
        if isinstance(dim, PartOfDim):
            extents = {name: extent for extent, name in named.names.items()}
            shape.append(extents[dim.extent] if isinstance(dim.extent, str) else dim.extent)
        else:
            shape += named.shape([dim])
    return shape


def _needed(steps: Sequence[Step], results: Sequence[Tensor]) -> tuple[list[Step], list[Tensor]]:
    """The steps that results need, numbered anew."""
    needed: set[int] = set()
    pending = [int(result.name[1:]) for result in results]
    while pending:
        place = pending.pop()
        if place not in needed:
            needed.add(place)
            pending += [int(one.name[1:]) for one in steps[place].operands if one.name[0] != "a"]
    names = {f"t{place}": f"t{count}" for count, place in enumerate(sorted(needed))}

    def renamed(tensors: Sequence[Tensor]) -> list[Tensor]:
        return [replace(one, name=names.get(one.name, one.name)) for one in tensors]

    kept = (steps[place] for place in sorted(needed))
    return [replace(step, operands=renamed(step.operands)) for step in kept], renamed(results)


def _with_one_row(
    function: LinalgFunction,
    region: Region,
    named: NamedLoops,
    shape_env: ShapeEnv | None,
    of_symbols: Mapping[str, Histogram],
) -> LinalgFunction:
    """A product of rows with a weight whose number of rows may also be 1; others as they are."""
    rows = function.rows_of_weight
    if rows is None:
        return function
    (extent,) = named.shape([rows])
    if not isinstance(extent, int):
        # The row that PyTorch compiles another graph for is one of the sizes.
        sizes = weighted(extent, range_of(extent, shape_env, {}), of_symbols)
        return replace(function, symbols=((named.names[extent], sizes),))
    if extent == 1:
        # With more rows such a tensor has elements of each row: give it their loop.
        for number, source in enumerate(region.sources[2:], 2):
            loops = function.arguments[number]
            if rows not in loops and len(lay.shape_of(source.node)) > 1:
                function = function.with_leading_loop(number, rows)
    return function


class SizeFinder:
    """Finds or makes the nodes that compute sizes before a place of a graph."""

    def __init__(self, graph: fx.Graph, before: fx.Node, neighbors: list[fx.Node]) -> None:
        self.graph = graph
        self.known: dict[Extent, fx.Node] = {}
        self.dimensions: dict[Extent, tuple[fx.Node, int]] = {}
        preceding: list[fx.Node] = []
        for node in graph.nodes:
            if node is before:
                break
            preceding.append(node)
        for node in preceding:
            if isinstance(node.meta.get("val"), torch.SymInt):
                self.known.setdefault(lay.extent_of(node.meta["val"]), node)
        # Sizes are read of tensors that the call needs anyway, or of arguments,
        # so that none lives longer.
        for node in [*neighbors, *(n for n in preceding if n.op == "placeholder"), *preceding]:
            if isinstance(node.meta.get("val"), torch.Tensor):
                for dim, extent in enumerate(lay.shape_of(node)):
                    self.dimensions.setdefault(extent, (node, dim))

    def find(self, extent: Extent, parts: list[Extent]) -> int | fx.Node:
        """The size, from a node, a dimension of a tensor, or the product of its parts."""
        if isinstance(extent, int):
            return extent
        if extent in self.known:
            return self.known[extent]
        if extent in self.dimensions:
            tensor, dim = self.dimensions[extent]
            node = self.graph.call_function(aten.sym_size.int, (tensor, dim))
        elif len(parts) > 1:
            first, second, *rest = [self.find(part, []) for part in parts]
            node = self.graph.call_function(operator.mul, (first, second))
            for factor in rest:
                node = self.graph.call_function(operator.mul, (node, factor))
        else:
            raise Unsupported(f"a size of {extent}, which nothing before it has")
        self.known[extent] = node
        return node


@dataclass(frozen=True)
class Call:
    """The arguments of a function in a graph."""

    tensors: list[fx.Node]
    #: Tensors of one element each.
    scalars: list[fx.Node]
    #: The operators that PyTorch runs instead at some sizes.
    alternative: Alternative | None = None


#: Makes the node that calls a function.
MakeCall = Callable[[Call], fx.Node]


def replace_region(
    imported: ImportedRegion,
    graph: fx.Graph,
    call: MakeCall,
    replaced: dict[fx.Node, fx.Node],
    with_alternative: bool = False,
) -> int:
    """Replaces a region by a call of its function, whose results follow from it.

    ``replaced`` has the nodes that other regions were replaced by, and gets those
    of this one. Returns the number of copies that had to be inserted. Raises
    Unsupported, and leaves the graph as it was, if a size is not to be had.
    """
    region = imported.region
    first = region.exits[0]
    with graph.inserting_before(first):
        sources = [replaced.get(source.node, source.node) for source in region.sources]
        sizes = SizeFinder(graph, first, sources)

        def find(shape: list[Extent]) -> list[int | fx.Node]:
            return [sizes.find(extent, imported.parts.get(extent, [])) for extent in shape]

        def changed(shape: list[Extent], other: list[Extent]) -> list[int | fx.Node] | None:
            """Sizes of the other shape, where it is another."""
            return None if shape == other else find(other)

        shapes = [
            changed(source.shape, shape)
            for source, shape in zip(region.sources, imported.argument_shapes)
        ]
        of_results = [
            changed(shape, _shape_in_memory(node, order))
            for node, order, shape in zip(region.exits, region.orders, imported.result_shapes)
        ]
        arguments = [
            _argument(graph, source, node, shape)
            for source, node, shape in zip(region.sources, sources, shapes)
        ]
        scalars = [replaced.get(node, node) for node in region.scalars]
        alternative = None
        if with_alternative:
            alternative = alternative_of(region, imported.argument_shapes, find, replaced)
        results = call(Call(arguments, scalars, alternative))
        for number, (exit, order, whole) in enumerate(zip(region.exits, region.orders, of_results)):
            result = results
            if region.kind.gives_list:
                result = graph.call_function(operator.getitem, (results, number))
            if whole is not None:
                result = graph.call_function(aten.view.default, (result, whole))
            if order is not None:
                inverse = [order.index(dim) for dim in range(len(order))]
                result = graph.call_function(aten.permute.default, (result, inverse))
            result.meta = dict(exit.meta)
            exit.replace_all_uses_with(result)
            replaced[exit] = result
    return sum(not source.is_dense for source in region.sources)


def _shape_in_memory(node: fx.Node, order: tuple[int, ...] | None) -> list[Extent]:
    shape = lay.shape_of(node)
    return [shape[dim] for dim in (order or range(len(shape)))]


def _argument(
    graph: fx.Graph, source: Source, node: fx.Node, shape: list[int | fx.Node] | None
) -> fx.Node:
    """The tensor that a function gets for a source: contiguous, and with this shape if it is another."""
    for dim in source.repeated:
        node = graph.call_function(aten.slice.Tensor, (node, dim, 0, 1))
    if source.order is not None:
        node = graph.call_function(aten.permute.default, (node, list(source.order)))
    elif not source.is_dense:
        node = graph.call_function(
            aten.clone.default, (node,), {"memory_format": torch.contiguous_format}
        )
    return node if shape is None else graph.call_function(aten.view.default, (node, shape))
