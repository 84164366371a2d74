"""Growth of regions: from a seed through elementwise operators, views and other seeds around it.

Growth is greedy. It asks whether the function of the grown nodes would be right, and says nothing of
kernels: every step that leaves a function is a candidate, and `kernels` asks the compiler which of
them is one kernel.
"""

from __future__ import annotations

import operator
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any

import torch
from torch import fx

from ..graph import layout as lay
from ..graph.layout import Dims, Extent, Loop
from ..graph.nodes import Unsupported, is_cpu_scalar, is_write
from .elementwise import COMPARISONS, OPERAND, elementwise_body, is_elementwise, rounded
from .region import PURE_VIEWS, Region, RegionKind, State
from .steps import Tensor

aten = torch.ops.aten

#: Nodes of a region, and what is known of them.
Candidate = tuple[list[fx.Node], State]

#: Chooses one of the regions that a seed has grown to, the smallest first.
ChooseRegion = Callable[["list[Region]"], Region]


class RegionFinder(ABC):
    """Finds the regions of one kind in a graph, in the order of their seeds.

    Attributes:
        seeds: nodes that regions may grow from.
        reasons: the reasons why seeds stay with the host.
        taken: nodes that are in a region, or must not be.
    """

    kind: RegionKind
    #: True if a region may grow through nodes whose function would have too many results.
    grows_through = False

    def __init__(self, graph: fx.Graph) -> None:
        self.nodes = list(graph.nodes)
        self.order = {node: number for number, node in enumerate(self.nodes)}
        self.seeds = [node for node in self.nodes if self.kind.is_seed(node)]
        self.writes = [number for node, number in self.order.items() if is_write(node)]
        self.reasons: dict[fx.Node, str] = {}
        self.taken: set[fx.Node] = set()

    def regions(self, choose: ChooseRegion = lambda regions: regions[-1]) -> Iterator[Region]:
        """The regions. No node is in two."""
        for seed in self.seeds:
            if seed in self.taken:
                continue
            try:
                grown = [self._finish(seed, *candidate) for candidate in self._grow(seed)]
                region = choose(grown)
            except Unsupported as error:
                self.reasons[seed] = str(error)
                continue
            self.taken.update(node for node in region.nodes if node.target not in PURE_VIEWS)
            for node in region.nodes:
                self.reasons.pop(node, None)
            yield region

    # Hooks of kinds

    @abstractmethod
    def begin(self, seed: fx.Node) -> State:
        """The state before the seed: the loops around it. Raises Unsupported."""

    @abstractmethod
    def emit_seed(self, node: fx.Node, state: State) -> None:
        """Adds a seed to the function. Raises Unsupported."""

    @abstractmethod
    def problem(self, exits: list[fx.Node], state: State) -> str | None:
        """The reason why a function cannot have these results; None if it can."""

    def before(self, seed: fx.Node, state: State) -> list[fx.Node]:
        """Operators that the seed's operand follows from, the nearest first."""
        return []

    def joins(self, node: fx.Node, state: State) -> bool:
        """Returns whether another seed may be part of the region."""
        return False

    def computes(self, node: fx.Node) -> bool:
        """Returns whether functions of this kind compute an elementwise operator."""
        return is_elementwise(node.target)

    def result(self, node: fx.Node, state: State) -> tuple[tuple[int, ...] | None, Dims]:
        """The order of an exit's dimensions in memory, None as they are, and their loops in it."""
        return None, state.layout.resolve(state.values[node].dims)

    # Growth

    def _grow(self, seed: fx.Node) -> list[Candidate]:
        """The regions that the seed grows to, the smallest first. Raises Unsupported."""
        start = self.begin(seed)
        members = [seed, *_parts_of(seed)]
        before = self.before(seed, start)
        state = self._build(members, start)
        found = [(list(members), state)]
        members, state = self._with_prologue(members, before, start, state)
        if len(members) > len(found[0][0]):
            found.append((list(members), state))
        for node in self.nodes[min(map(self.order.__getitem__, members)) :]:
            if node in state.values or node in self.taken or not self._follows(node, state):
                continue
            grown = state.copy()
            parts = _parts_of(node) if self.kind.is_seed(node) else []
            try:
                for one in (node, *parts):
                    self._emit(one, grown)
            except Unsupported:
                continue
            trial = [*members, node, *parts]
            is_legal = self._problem(trial, grown) is None
            if is_legal or self.grows_through or node.target in PURE_VIEWS:
                members, state = trial, grown
            if is_legal:
                found.append((list(members), state))
        return found

    def _with_prologue(
        self, members: list[fx.Node], before: list[fx.Node], start: State, state: State
    ) -> Candidate:
        """The seed with as many of the operators before it as can be."""
        members = list(members)
        chain: list[fx.Node] = []
        for node in before:
            # Its readers must be inside, or it is not part of this chain.
            if not any(user in members or user in chain for user in node.users):
                continue
            if node.target in PURE_VIEWS:
                chain.append(node)
                continue
            views = [view for view in chain if _leads_to(view, node)]
            try:
                state = self._build([*members, *views, node], start)
            except Unsupported:
                continue
            members += [*views, node]
        return members, state

    def _build(self, members: list[fx.Node], start: State) -> State:
        """The function of these nodes. Raises Unsupported."""
        state = start.copy()
        for node in sorted(members, key=self.order.__getitem__):
            self._emit(node, state)
        if (problem := self._problem(members, state)) is not None:
            raise Unsupported(problem)
        return state

    def _follows(self, node: fx.Node, state: State) -> bool:
        """Returns whether a node reads what is inside, or is another seed beside it."""
        if (
            node.op != "call_function" or "val" not in node.meta
        ):  # A call of a function lacks a value.
            return False
        if node.target in PURE_VIEWS or self.computes(node):
            return any(source in state.values for source in node.all_input_nodes)
        return self.kind.is_seed(node) and self.joins(node, state)

    # Operators

    def _emit(self, node: fx.Node, state: State) -> None:
        """Adds a node to the function. Raises Unsupported."""
        if node.target is operator.getitem:
            values = state.values.get(node.args[0])  # type: ignore[arg-type]
            if not isinstance(values, tuple) or len(values) <= node.args[1]:  # type: ignore[operator]
                raise Unsupported("a part of something else")
            state.values[node] = values[node.args[1]]  # type: ignore[index]
        elif node.target in PURE_VIEWS:
            self._emit_view(node, state)
        elif self.kind.is_seed(node):
            self.emit_seed(node, state)
        else:
            self._emit_elementwise(node, state)

    def _emit_view(self, node: fx.Node, state: State) -> None:
        source = lay.operand_of(node)
        value = state.values.get(source)
        if not isinstance(value, Tensor):
            # A view in front of the first operator: the tensor is read through it.
            raise Unsupported("a view of what is read")
        layout = state.layout
        dims = layout.resolve(value.dims)
        if node.target in lay.EXPANSIONS:
            # No loop walks a dimension that is broadcast; its readers have one.
            dims = ((),) * (len(lay.shape_of(node)) - len(dims)) + dims
        else:
            stepped = lay.step_forward(layout, node, dims)
            if stepped is None:
                raise Unsupported("a view that no loops describe")
            dims = stepped
        state.values[node] = replace(value, dims=dims)

    def _emit_elementwise(self, node: fx.Node, state: State) -> None:
        value = node.meta.get("val")
        if not isinstance(value, torch.Tensor):
            raise Unsupported("a result that is not a tensor")
        kind = state.kinds.get(value.dtype)
        if kind is None or kind == "i64":
            raise Unsupported(f"a result of {str(value.dtype).removeprefix('torch.')}")
        shape = lay.shape_of(node)
        dims = self._dims(node, shape, state)
        places: list[Any] = []
        operands: list[Tensor] = []
        for argument in node.args:
            if not isinstance(argument, fx.Node):
                if isinstance(argument, (int, float)) and not isinstance(argument, bool):
                    argument = float(argument)
                places.append(argument)
                continue
            constant = constant_of(argument)
            if constant is not None:
                places.append(constant)
                continue
            operand = self._placed(argument, dims, shape, value, state)
            if operand.kind == "i64":
                raise Unsupported("an operand of int64")
            operands.append(operand)
            places.append(OPERAND)
        options = dict(node.kwargs)
        if any(isinstance(option, fx.Node) for option in options.values()):
            raise Unsupported("an option that is a value")
        kinds = [operand.kind for operand in operands]
        body = elementwise_body(node.target, kind, places, options, kinds, _compared_in(node))
        state.values[node] = state.steps.map(kind, dims, operands, body)

    def _placed(
        self,
        node: fx.Node,
        dims: Dims,
        shape: tuple[Extent, ...],
        result: torch.Tensor,
        state: State,
    ) -> Tensor:
        tensor = node.meta.get("val")
        if (
            isinstance(tensor, torch.Tensor)
            and not is_cpu_scalar(node)
            and tensor.device != result.device
        ):
            raise Unsupported("tensors on several devices")
        return state.read(node, dims, shape)

    def _dims(self, node: fx.Node, shape: tuple[Extent, ...], state: State) -> Dims:
        """The loops of an elementwise operator's result, from the loops of its operands."""
        layout = state.layout
        if node in state.known and node not in state.values:
            return layout.resolve(state.known[node])
        dims: list[tuple[Loop, ...] | None] = [() if extent == 1 else None for extent in shape]
        for source in node.all_input_nodes:
            walked = state.dims_of(source)
            if walked is None:
                continue
            offset = len(shape) - len(walked)
            if offset < 0:
                raise Unsupported("a result of fewer dimensions")
            for dim, loops in enumerate(walked):
                place = dim + offset
                if not loops:
                    continue
                if not dims[place]:
                    dims[place] = loops
                elif dims[place] != loops:
                    raise Unsupported("operands of other loops")
        if any(loops is None for loops in dims):
            raise Unsupported("a dimension that no operand of the rows has")
        found = tuple(loops or () for loops in dims)
        for dim, loops in enumerate(found):
            if lay.product([layout.extents[loop] for loop in loops]) != shape[dim]:
                raise Unsupported("operands of other sizes")
        walked_loops = [loop for loops in found for loop in loops]
        if len(set(walked_loops)) != len(walked_loops):
            raise Unsupported("a loop that walks two dimensions")
        return found

    # Results

    def _exits(self, members: Iterable[fx.Node]) -> list[fx.Node]:
        """Nodes whose results are read outside, also through views."""
        inside = set(members)

        def is_read(node: fx.Node) -> bool:
            return any(
                user not in inside or (user.target in PURE_VIEWS and is_read(user))
                for user in node.users
            )

        return sorted(
            (
                node
                for node in inside
                if node.target not in PURE_VIEWS
                and not (self.kind.is_seed(node) and _parts_of(node))
                and is_read(node)
            ),
            key=self.order.__getitem__,
        )

    def _problem(self, members: list[fx.Node], state: State) -> str | None:
        """The reason why a function of these nodes would be wrong; None if it would not.

        Its tensors are all read before the first result is needed, and nothing changes them until
        the last one is written.
        """
        exits = self._exits(members)
        if not exits:
            return "a result that nobody reads"
        if not all(isinstance(state.values[node], Tensor) for node in exits):
            return "a result of several tensors"
        if (problem := self.problem(exits, state)) is not None:
            return problem
        reads = [self.order[source.node] for source in state.sources]
        reads += [self.order[node] for node in state.scalars]
        if max(reads, default=-1) >= self.order[exits[0]]:
            return "an operand that is computed after a result"
        begin, end = min(reads, default=0), self.order[exits[-1]]
        if any(begin < number < end for number in self.writes):
            return "an operator before the result that writes to its arguments"
        return None

    def _finish(self, seed: fx.Node, members: list[fx.Node], state: State) -> Region:
        exits = self._exits(members)
        if not state.sources:
            raise Unsupported("rows of no tensor")
        orders: list[tuple[int, ...] | None] = []
        results: list[Tensor] = []
        for node in exits:
            order, dims = self.result(node, state)
            orders.append(order)
            results.append(replace(state.values[node], dims=dims))
        return Region(
            kind=self.kind,
            seed=seed,
            nodes=sorted(members, key=self.order.__getitem__),
            exits=exits,
            orders=orders,
            results=results,
            sources=state.sources,
            scalars=state.scalars,
            steps=state.steps,
        )


def _parts_of(node: fx.Node) -> list[fx.Node]:
    return [user for user in node.users if user.target is operator.getitem]


def _leads_to(view: fx.Node, node: fx.Node) -> bool:
    """Returns whether a view is one of a node, through others."""
    while view.target in PURE_VIEWS:
        view = lay.operand_of(view)
        if view is node:
            return True
    return False


def check_device(node: fx.Node) -> None:
    """Raises Unsupported for a tensor where no kernel runs."""
    device = node.meta["val"].device.type
    if device not in ("cpu", "cuda"):
        raise Unsupported(f"tensors on {device}")


def constant_of(node: fx.Node) -> float | None:
    """The number in a tensor of floats without dimensions that is filled with it; None for other nodes."""
    if node.target in (aten.full.default, aten.scalar_tensor.default) and "val" in node.meta:
        value = node.args[1] if node.target is aten.full.default else node.args[0]
        tensor = node.meta["val"]
        is_number = tensor.dim() == 0 and tensor.is_floating_point()
        if is_number and isinstance(value, (int, float)):
            return rounded(value, tensor.dtype)
    return None


def _compared_in(node: fx.Node) -> torch.dtype | None:
    """The narrow type that a comparison converts its operands to, if any."""
    if node.target not in COMPARISONS:
        return None
    operands: Any = (
        argument.meta["val"] if isinstance(argument, fx.Node) else argument
        for argument in node.args
    )
    dtype = torch.result_type(*operands)
    return dtype if dtype in (torch.float16, torch.bfloat16) else None
