"""From a region of an ATen graph to an FTuner function and its call.

The function has one loop for each group of loops that all tensors have side by
side (see partition.join_loops), so a linear layer of [B, S, K] by [K, N] is a
product of B·S rows. Sizes that are equal expressions of PyTorch's symbols are
one symbol of the function, with the range that the shape environment knows.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

import sympy
import torch
from torch import fx
from torch.fx.experimental.symbolic_shapes import ShapeEnv
from torch.utils._sympy.numbers import int_oo
from torch.utils._sympy.value_ranges import ValueRanges, bound_sympy

from . import layout as lay
from .alternative import Alternative, alternative_of
from .hints import MAX_EXTENT
from .histograms import Histogram, of_extent
from .layout import Extent, Loop
from .linalg import ProductFunction, Range, Size
from .partition import TYPES, NotTaken, Region, join_loops

aten = torch.ops.aten


@dataclass
class ImportedRegion:
    """A region as a function, and the extents that its tensors must have."""

    region: Region
    function: ProductFunction
    argument_shapes: list[list[Extent]]
    result_shape: list[Extent]
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
            least = declared.get(symbol, 1)
            if bounds.lower in (0, 2) and least < 2:
                ranges[symbol] = ValueRanges(least, bounds.upper)
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

    #: By the first loop of each group, in the function's order.
    extents: dict[Loop, Extent]
    #: The loops of the region whose product each extent is.
    parts: dict[Extent, list[Extent]]
    #: Names of extents that are no numbers.
    names: dict[Extent, str]

    @classmethod
    def of(
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

    def numbers(self, walk: Iterable[Loop]) -> tuple[int, ...]:
        """The function's loops among those of the region, by their places."""
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
    """The function that computes a region.

    Args:
        of_symbols: histograms of PyTorch's symbols.
        dynamic: whether a function of a weight is for one row, too, where PyTorch compiles
            another graph for that (see rows.py).
    """
    layout = region.layout
    walks = [
        [loop for loops in layout.resolve(dims) for loop in loops]
        for dims in [*(access.dims for access in region.accesses), region.dims]
    ]
    groups = {
        group[0]: group
        for group in join_loops(
            layout, [*(access.dims for access in region.accesses), region.dims]
        )
    }
    result_heads = [loop for loop in walks[-1] if loop in groups]
    heads = [*result_heads, region.reduce]
    named = NamedLoops.of(layout, groups, heads)
    function = ProductFunction(
        name=region.name,
        loops=named.sizes,
        lhs=named.numbers(walks[0]),
        rhs=named.numbers(walks[1]),
        extras=tuple(named.numbers(walk) for walk in walks[2:-1]),
        num_scalars=len(region.scalars),
        epilogue=tuple(region.emitter.instructions),
        result=region.result,
        symbols=named.ranges(shape_env, of_symbols),
        types=tuple(TYPES[access.node.meta["val"].dtype] for access in region.accesses),
        result_type=TYPES[region.exit.meta["val"].dtype],
    )
    if dynamic and (rows := function.rows_of_weight) is not None:
        (extent,) = named.shape([rows])
        if not isinstance(extent, int):
            # The row that PyTorch compiles another graph for is one of the sizes.
            name = named.names[extent]
            sizes = weighted(extent, range_of(extent, shape_env, {}), of_symbols)
            function = replace(function, symbols=((name, sizes),))
        if extent == 1:
            # What has the elements of the one row would have those of each row of more.
            extras = (
                (rows, *loops) if rows not in loops and len(lay.shape_of(access.node)) > 1 else loops
                for loops, access in zip(function.extras, region.extras)
            )
            function = replace(function, extras=tuple(extras))
    return ImportedRegion(
        region=region,
        function=function,
        argument_shapes=[named.shape(loops) for loops in function.arguments],
        result_shape=[named.extents[head] for head in result_heads],
        parts=named.parts,
    )


class SizeFinder:
    """Finds or makes the nodes that compute sizes before a place of a graph."""

    def __init__(self, graph: fx.Graph, before: fx.Node, near: list[fx.Node]) -> None:
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
        for node in [*near, *(n for n in preceding if n.op == "placeholder"), *preceding]:
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
            raise NotTaken(f"a size of {extent}, which nothing before it has")
        self.known[extent] = node
        return node


@dataclass(frozen=True)
class Call:
    """The arguments of a function in a graph."""

    tensors: list[fx.Node]
    #: Of one element each.
    scalars: list[fx.Node]
    #: What PyTorch runs instead at some sizes.
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
    """Replaces a region by a call of its function.

    ``replaced`` has the nodes that other regions were replaced by, and gets that
    of this one. Returns the number of copies that had to be inserted. Raises
    NotTaken, and leaves the graph as it was, if a size is not to be had.
    """
    region = imported.region
    exit = region.exit
    with graph.inserting_before(exit):
        near = [replaced.get(access.node, access.node) for access in region.accesses]
        sizes = SizeFinder(graph, exit, near)

        def find(shape: list[Extent]) -> list[int | fx.Node]:
            return [sizes.find(extent, imported.parts.get(extent, [])) for extent in shape]

        shapes = [
            None if list(lay.shape_of(access.node)) == shape else find(shape)
            for access, shape in zip(region.accesses, imported.argument_shapes)
        ]
        exit_shape = list(lay.shape_of(exit))
        result_shape = None if exit_shape == imported.result_shape else find(exit_shape)
        copies = 0
        arguments: list[fx.Node] = []
        for access, shape in zip(region.accesses, shapes):
            node = replaced.get(access.node, access.node)
            if not access.is_contiguous:
                copies += 1
                node = graph.call_function(
                    aten.clone.default, (node,), {"memory_format": torch.contiguous_format}
                )
            if shape is not None:
                node = graph.call_function(aten.view.default, (node, shape))
            arguments.append(node)
        scalars = [replaced.get(node, node) for node in region.scalars]
        alternative = None
        if with_alternative:
            alternative = alternative_of(region, imported.argument_shapes, find, replaced)
        result = call(Call(arguments, scalars, alternative))
        if result_shape is not None:
            result = graph.call_function(aten.view.default, (result, result_shape))
        result.meta = dict(exit.meta)
    exit.replace_all_uses_with(result)
    replaced[exit] = result
    return copies


