"""Regions: the parts of an ATen graph that become FTuner functions, and what tells their kinds apart."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import torch
from torch import fx

from ..graph import layout as lay
from ..graph.layout import Access, Cut, Dims, Extent, Layout, Loop
from ..graph.nodes import Unsupported, is_cpu_scalar
from .elementwise import is_elementwise
from .linalg import Range
from .steps import KINDS, Step, Steps, Tensor

if TYPE_CHECKING:
    from ftuner.host.function import Function

    from ..hosts.host import Host
    from ..options import Options
    from ..settings import Settings
    from .choice import Choice
    from .growth import RegionFinder
    from .importing import ImportedRegion

#: Views that move no element.
PURE_VIEWS = lay.VIEWS - lay.COPIES

#: Tells by the number of elements of a row why the host keeps it; None: it does not.
Refuse = Callable[[Extent], "str | None"]


@dataclass(frozen=True)
class Source:
    """A tensor that a function reads.

    Attributes:
        dims: the loops of its dimensions in memory.
        order: the node's dimensions in the order that they have in memory; None: as they are.
        repeated: the node's dimensions that repeat its elements: the function gets one of each.
        cuts: the part of each dimension in memory that the function reads; empty: all of them as
            wholes.
        segments: the dimensions in runs that lie in memory without gaps; see `Access.segments`.
    """

    node: fx.Node
    dims: Dims
    order: tuple[int, ...] | None = None
    cuts: tuple[Cut | None, ...] = ()
    segments: tuple[Dims, ...] = ()
    repeated: tuple[int, ...] = ()

    @staticmethod
    def of_access(access: Access) -> Source:
        cuts, segments = access.cuts if access.has_cuts else (), tuple(access.segments)
        return Source(access.node, access.dims, access.order, cuts, segments, access.repeated)

    @property
    def shape(self) -> list[Extent]:
        """The extents of the tensor's dimensions in memory."""
        extents = lay.shape_of(self.node)
        order = self.order or range(len(extents))
        return [1 if dim in self.repeated else extents[dim] for dim in order]

    def is_same(self, other: Source, layout: Layout) -> bool:
        """Returns whether another source is the same elements in the same loops."""
        is_same_memory = (self.node, self.order, self.cuts) == (other.node, other.order, other.cuts)
        return is_same_memory and layout.resolve(self.dims) == layout.resolve(other.dims)

    @property
    def is_dense(self) -> bool:
        """Returns whether the function can read the tensor where it lies."""
        return self.order is not None or lay.is_contiguous(self.node)


@dataclass
class Region:
    """A part of the graph that becomes one function.

    Attributes:
        seed: the product or reduction that the region was grown from.
        nodes: nodes that the function computes, in the order of the graph; views may have users
            outside.
        exits: nodes whose results are read outside, in the order of the graph.
        orders: each exit's dimensions in the order that they have in memory; None: as they are.
        results: the value of each exit.
        sources, scalars: tensors that the function reads, and tensors of one element on the CPU, which
            are passed by value.
        steps: the function's operators and their loops.
    """

    kind: RegionKind
    seed: fx.Node
    nodes: list[fx.Node]
    exits: list[fx.Node]
    orders: list[tuple[int, ...] | None]
    results: list[Tensor]
    sources: list[Source]
    scalars: list[fx.Node]
    steps: Steps

    @property
    def layout(self) -> Layout:
        return self.steps.layout

    @property
    def seeds(self) -> list[fx.Node]:
        """The products or reductions in the region."""
        return [node for node in self.nodes if self.kind.is_seed(node)]

    @property
    def fused(self) -> list[fx.Node]:
        """Elementwise operators and copies that the function computes."""
        return [
            node
            for node in self.nodes
            if node.target not in PURE_VIEWS
            and (is_elementwise(node.target) or node.target in lay.COPIES)
        ]

    @property
    def name(self) -> str:
        """The operators that are computed, in the names of ATen, as a C identifier."""
        names = [
            node.target._schema.name.split("::")[1].strip("_")  # type: ignore[union-attr]
            for node in self.nodes
            if self.kind.is_seed(node)
            or is_elementwise(node.target)
            and node.target not in lay.VIEWS
        ]
        return "_".join(names)[:60].rstrip("_")


@dataclass(frozen=True)
class Context:
    """The options of a graph, the host that runs it, and what its functions are compiled for."""

    options: Options
    host: Host
    settings: Settings


class RegionKind(ABC):
    """A kind of region: how regions are found, described, written and chosen.

    A new kind is a module with a subclass, and a line in `kinds.KINDS`.
    """

    #: The kind's name in reports.
    name: str
    #: True if calls give a list of tensors, rather than one tensor.
    gives_list: bool
    #: True if a compilation that fails is an error, unless the option `fallback` is set.
    must_compile: bool
    #: True if reports list the functions by name.
    is_listed: bool = False

    @abstractmethod
    def is_seed(self, node: fx.Node) -> bool:
        """Returns whether regions of this kind grow from a node."""

    def is_wanted(self, context: Context) -> bool:
        """Returns whether regions of this kind are looked for in a graph."""
        return True

    @abstractmethod
    def find(self, graph: fx.Graph, refuse: Refuse) -> RegionFinder:
        """A finder of the regions of a graph. `refuse` gets the numbers of elements of rows."""

    @abstractmethod
    def describe(self, region: Region) -> tuple[list[Step], list[Tensor]]:
        """The operators of a region's function with the dimensions that their tensors have in memory,
        and its results."""

    def heads(self, groups: Sequence[Loop], results: Sequence[Loop]) -> Sequence[Loop]:
        """The order of the function's loops, but for the reduced one.

        Args:
            groups: the first loops of groups of loops that all tensors have side by side.
            results: the loops of the first result.
        """
        return groups

    def max_kernels(self, region: Region) -> int:
        """The number of kernels that the function of a region may have."""
        return 1

    def check(self, region: Region, length: Range, is_in_order: bool) -> None:
        """Raises Unsupported if the function of a region would be wrong.

        Args:
            length: sizes of the reduced loop.
            is_in_order: whether the reduced dimensions lie in memory in the order of the graph.
        """

    def refuse(self, length: Range, context: Context) -> str | None:
        """The reason why the host keeps rows of these lengths, or None if FTuner takes them."""
        return None

    @abstractmethod
    def choose(
        self, imported: ImportedRegion, function: Function, context: Context
    ) -> Choice | None:
        """Chooses the sizes that FTuner computes; None: FTuner computes all.

        Raises Rejected if the host keeps them all.
        """


class Rejected(Unsupported):
    """A region that the host computes faster; has the choice that says so, if there is one."""

    def __init__(self, reason: str, choice: Choice | None = None) -> None:
        super().__init__(reason)
        self.choice = choice


#: Finds the source of a tensor whose dimensions these loops walk, and the loops then. Raises
#: Unsupported.
FindSource = Callable[[Layout, fx.Node, Dims], "tuple[Source, Layout]"]


@dataclass
class State:
    """A region while it grows.

    Attributes:
        kinds: types of the tensors that it may read, and their names in MLIR.
        values: the results of nodes inside: a tensor, or one for each result.
        known: loops of the dimensions of tensors that are read, by their nodes.
    """

    find_source: FindSource
    kinds: dict[torch.dtype, str] = field(default_factory=lambda: KINDS)
    steps: Steps = field(default_factory=Steps)
    values: dict[fx.Node, Any] = field(default_factory=dict)
    known: dict[fx.Node, Dims] = field(default_factory=dict)
    sources: list[Source] = field(default_factory=list)
    scalars: list[fx.Node] = field(default_factory=list)

    @property
    def layout(self) -> Layout:
        return self.steps.layout

    def copy(self) -> State:
        return replace(
            self,
            steps=self.steps.copy(),
            values=dict(self.values),
            known=dict(self.known),
            sources=list(self.sources),
            scalars=list(self.scalars),
        )

    def dims_of(self, node: fx.Node) -> Dims | None:
        """The loops of a tensor inside, or of one that is read."""
        value = self.values.get(node)
        known = value.dims if isinstance(value, Tensor) else self.known.get(node)
        return None if known is None else self.layout.resolve(known)

    def has_rows_apart(self) -> bool:
        """Returns whether neighbours of a row lie apart in memory, with other rows between them."""
        row = {*self.layout.leaves(self.steps.reduced)}
        for source in self.sources:
            walk = [loop for loops in self.layout.resolve(source.dims) for loop in loops]
            places = [place for place, loop in enumerate(walk) if loop in row]
            if len(places) == len(row) and places[-1] - places[0] >= len(row):
                return True
        return False

    def read(self, node: fx.Node, dims: Dims, shape: tuple[Extent, ...]) -> Tensor:
        """A tensor that is broadcast to ``shape``, whose dimensions ``dims`` walk."""
        value = self.values.get(node)
        if isinstance(value, Tensor):
            return value
        if node in self.values:
            raise Unsupported("a tensor of several")
        tensor = node.meta.get("val")
        if not isinstance(tensor, torch.Tensor):
            raise Unsupported("an operand that is not a tensor")
        if is_cpu_scalar(node):
            if node not in self.scalars:
                self.scalars.append(node)
            return Tensor(f"s{self.scalars.index(node)}", (), "f32")
        kind = self.kinds.get(tensor.dtype)
        if kind is None or kind == "i64":
            raise Unsupported(f"an operand of {str(tensor.dtype).removeprefix('torch.')}")
        extents = lay.shape_of(node)
        offset = len(shape) - len(extents)
        walked: list[tuple[Loop, ...]] = []
        for dim, extent in enumerate(extents):
            if extent != shape[dim + offset] and extent != 1:
                raise Unsupported("an operand that is broadcast to no known size")
            walked.append(() if extent == 1 else dims[dim + offset])
        layout = self.layout
        source, self.steps.layout = self.find_source(layout, node, layout.resolve(tuple(walked)))
        self.known.setdefault(node, tuple(walked))
        for number, other in enumerate(self.sources):
            if other.is_same(source, self.layout):
                return Tensor(f"arg{number}", source.dims, kind)
        self.sources.append(source)
        return Tensor(f"arg{len(self.sources) - 1}", source.dims, kind)
