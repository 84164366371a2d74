"""Which reductions of an ATen graph become FTuner functions of rows.

A region is one reduction with what surrounds it: elementwise operators before and behind it, and other
reductions of the same rows, all of which one kernel computes that reads a row once (docs/rows.md). It
may have several results. Products of the graph have been taken before, with the elementwise operators
behind them. Everything else stays with PyTorch.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import fx

from . import layout as lay
from .layout import Access, Dims, Extent, Loop
from .partition import NotTaken, is_cpu_scalar, is_write
from .pointwise import Unsupported
from .row_registry import ROW_RULES, Reduced, arguments_of, operand_of_rows, reduced_dims
from .row_rules import (
    COMPARISONS, FLOATS, KINDS, OPERAND, Steps, Tensor, elementwise_body, is_elementwise, rounded,
)  # fmt: skip

aten = torch.ops.aten
prims = torch.ops.prims

#: Views that move no element.
_PURE_VIEWS = lay.VIEWS - lay.COPIES
#: Operators that give a tensor of another type.
_CASTS = {aten._to_copy.default, prims.convert_element_type.default}
#: Results with as many elements as the rows, at most: each is a tensor that a kernel writes.
MAX_RESULTS = 4


Refuse = Callable[[Extent], "str | None"]


@dataclass(frozen=True)
class Source:
    """A tensor that a function reads, where it lies contiguous.

    Attributes:
        dims: the loops of its dimensions in memory.
        order: the node's dimensions in the order that they have in memory; None: as they are.
    """

    node: fx.Node
    dims: Dims
    order: tuple[int, ...] | None


@dataclass
class RowRegion:
    """A part of the graph that becomes one function of rows."""

    #: The reduction that it was found by.
    seed: fx.Node
    #: Nodes that the function computes, in the order of the graph; views may have users outside.
    nodes: list[fx.Node]
    #: Nodes of which others read the result, in the order of the graph.
    exits: list[fx.Node]
    #: Of each exit: its dimensions in the order that they have in memory; None: as they are.
    orders: list[tuple[int, ...] | None]
    results: list[Tensor]
    sources: list[Source]
    scalars: list[fx.Node]
    steps: Steps

    @property
    def reductions(self) -> list[fx.Node]:
        return [node for node in self.nodes if node.target in ROW_RULES]

    @property
    def fused(self) -> list[fx.Node]:
        """Elementwise operators and copies that the function computes."""
        return [node for node in self.nodes if is_elementwise(node.target)]

    @property
    def name(self) -> str:
        """What is computed, in the names of ATen, as a C identifier."""
        names = [
            node.target._schema.name.split("::")[1].strip("_")  # type: ignore[union-attr]
            for node in self.nodes
            if node.target in ROW_RULES or is_elementwise(node.target)
        ]
        return "_".join(names)[:60].rstrip("_")


def is_reduction(node: fx.Node) -> bool:
    return node.op == "call_function" and node.target in ROW_RULES


def memory_order(node: fx.Node) -> tuple[int, ...] | None:
    """The dimensions of a tensor in the order that they have in memory, where it has no gaps.

    None where it has, or where its strides do not tell. Adds no guard.
    """
    value = node.meta["val"]
    extents = lay.shape_of(node)
    strides = [lay.stride_of(stride) for stride in value.stride()]
    left = [dim for dim in range(len(extents)) if extents[dim] != 1]
    inner: list[int] = []
    step: Extent = 1
    while left:
        found = next((dim for dim in reversed(left) if strides[dim] == step), None)
        if found is None:
            return None
        left.remove(found)
        inner.insert(0, found)
        step = lay.product([step, extents[found]])
    # Those of extent 1 are in front.
    return tuple(dim for dim in range(len(extents)) if extents[dim] == 1) + tuple(inner)


@dataclass
class _State:
    """A region while it grows."""

    steps: Steps
    #: What nodes inside give: a tensor, or one for each result.
    values: dict[fx.Node, Any] = field(default_factory=dict)
    #: Loops of the dimensions of tensors that are read, by their nodes.
    known: dict[fx.Node, Dims] = field(default_factory=dict)
    sources: list[Source] = field(default_factory=list)
    scalars: list[fx.Node] = field(default_factory=list)

    def copy(self) -> _State:
        return _State(
            self.steps.copy(),
            dict(self.values),
            dict(self.known),
            list(self.sources),
            list(self.scalars),
        )

    def dims_of(self, node: fx.Node) -> Dims | None:
        """The loops of a tensor inside, or of one that is read."""
        value = self.values.get(node)
        if isinstance(value, Tensor):
            return self.steps.layout.resolve(value.dims)
        known = self.known.get(node)
        return None if known is None else self.steps.layout.resolve(known)

    def read(self, node: fx.Node, dims: Dims, shape: tuple[Extent, ...]) -> Tensor:
        """A tensor that is broadcast to ``shape``, whose dimensions ``dims`` walk."""
        value = self.values.get(node)
        if isinstance(value, Tensor):
            return value
        if node in self.values:
            raise Unsupported("a tensor of several")
        tensor = node.meta.get("val")
        if not isinstance(tensor, torch.Tensor):
            raise Unsupported("an operand that is no tensor")
        if is_cpu_scalar(node):
            if node not in self.scalars:
                self.scalars.append(node)
            return Tensor(f"s{self.scalars.index(node)}", (), "f32")
        kind = KINDS.get(tensor.dtype)
        if kind is None or kind == "i64":
            raise Unsupported(f"an operand of {str(tensor.dtype).removeprefix('torch.')}")
        layout = self.steps.layout
        extents = lay.shape_of(node)
        offset = len(shape) - len(extents)
        walked: list[tuple[Loop, ...]] = []
        for dim, extent in enumerate(extents):
            if extent != shape[dim + offset] and extent != 1:
                raise Unsupported("an operand that is broadcast to no known size")
            walked.append(() if extent == 1 else dims[dim + offset])
        source, self.steps.layout = _source(layout, node, tuple(walked))
        self.known.setdefault(node, tuple(walked))
        for number, other in enumerate(self.sources):
            if other.node is source.node and self.steps.layout.resolve(other.dims) == source.dims:
                return Tensor(f"arg{number}", source.dims, kind)
        self.sources.append(source)
        return Tensor(f"arg{len(self.sources) - 1}", source.dims, kind)


def _source(layout: lay.Layout, node: fx.Node, dims: Dims) -> tuple[Source, lay.Layout]:
    """Where a tensor is read, and the loops then. Raises Unsupported where that needs a copy."""
    candidates: list[Access] = lay.accesses(layout, node, layout.resolve(dims))
    for access in [*candidates, *lay.walk_back(layout, node, dims)]:
        if access.is_contiguous:
            return Source(access.node, access.dims, None), access.layout
        order = memory_order(access.node)
        if order is not None:
            in_memory = tuple(access.dims[dim] for dim in order)
            return Source(access.node, in_memory, order), access.layout
    raise Unsupported("an operand that no contiguous tensor holds")


class RowFinder:
    """Finds the rows of a graph, in the order of its reductions."""

    def __init__(self, graph: fx.Graph) -> None:
        self.nodes = list(graph.nodes)
        self.order = {node: number for number, node in enumerate(self.nodes)}
        self.reductions = [node for node in self.nodes if is_reduction(node)]
        self.writes = [number for node, number in self.order.items() if is_write(node)]
        self.reasons: dict[fx.Node, str] = {}
        self.taken: set[fx.Node] = set()

    def regions(self, refuse: Refuse = lambda length: None) -> Iterable[RowRegion]:
        """The regions. No node is in two.

        Args:
            refuse: says by the number of elements of a row why it is not to be taken; None: it is.
        """
        for seed in self.reductions:
            if seed in self.taken:
                continue
            try:
                region = self._grow(seed, refuse)
            except (NotTaken, Unsupported) as error:
                self.reasons[seed] = str(error)
                continue
            self.taken.update(node for node in region.nodes if node.target not in _PURE_VIEWS)
            for node in region.nodes:
                self.reasons.pop(node, None)
            yield region

    # Growth

    def _grow(self, seed: fx.Node, refuse: Refuse) -> RowRegion:
        operand = operand_of_rows(seed)
        self._check(seed, operand)
        shape = lay.shape_of(operand)
        if any(extent == 0 for extent in shape):
            raise NotTaken("no elements")
        state = _State(Steps())
        layout = state.steps.layout
        dims: Dims = tuple((layout.add(extent),) if extent != 1 else () for extent in shape)
        state.steps.reduced = self._row(layout, seed, dims)
        dims = layout.resolve(dims)
        if not state.steps.reduced:
            raise NotTaken("rows of one element")
        length = lay.product([layout.extents[loop] for loop in state.steps.reduced])
        if (reason := refuse(length)) is not None:
            raise NotTaken(reason)
        state.known[operand] = dims
        before = self._before(operand, dims, state)
        region, state = self._with_prologue(seed, before, state)
        region, state = self._with_epilogue(region, state)
        return self._finish(seed, region, state)

    def _check(self, seed: fx.Node, operand: fx.Node) -> None:
        value = operand.meta.get("val")
        if not isinstance(value, torch.Tensor):
            raise NotTaken("an operand that is no tensor")
        kind = KINDS.get(value.dtype)
        is_count = kind == "i1" and seed.target in (aten.sum.dim_IntList, aten.sum.default)
        if kind not in FLOATS and not is_count:
            raise NotTaken(f"elements of {str(value.dtype).removeprefix('torch.')}")
        if value.device.type not in ("cpu", "cuda"):
            raise NotTaken(f"tensors on {value.device.type}")

    def _row(self, layout: lay.Layout, node: fx.Node, dims: Dims) -> tuple[Loop, ...]:
        """The loops that a reduction reduces, of an operand that these dimensions walk.

        Those of a group norm's channels split. Raises Unsupported.
        """
        if node.target is aten.native_group_norm.default:
            given = arguments_of(node)
            channels, groups = (given[name] for name in ("C", "group"))
            if not isinstance(channels, int) or channels % groups:
                raise Unsupported("a number of channels that is not known")
            parts = layout.split(dims[1], [groups, channels // groups])
            if parts is None:
                raise Unsupported("groups that no loops describe")
            return (*parts[1], *(loop for loops in dims[2:] for loop in loops))
        return tuple(loop for dim in reduced_dims(node).dims for loop in dims[dim])

    def _before(self, operand: fx.Node, dims: Dims, state: _State) -> list[fx.Node]:
        """Elementwise operators that an operand of whole rows follows from, the nearest first.

        Their loops, and those of views in between, become known.
        """
        found: list[fx.Node] = []
        pending = [(operand, dims)]
        while pending:
            # The nearest in the order of the graph.
            pending.sort(key=lambda item: self.order[item[0]])
            node, walked = pending.pop()
            if node in found:
                continue
            if node.op != "call_function":
                continue
            if node.target in _PURE_VIEWS:
                source = lay.operand_of(node)
                if "val" not in source.meta:  # The call of a function.
                    continue
                previous = lay.step_back(state.steps.layout, node, walked)
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

    def _with_prologue(
        self, seed: fx.Node, before: list[fx.Node], state: _State
    ) -> tuple[list[fx.Node], _State]:
        """The reduction with as many of the operators before it as can be."""
        members = [seed, *self._parts_of(seed)]
        best = self._build(members, state)
        if best is None:
            # Says why.
            self._emit(seed, state.copy())
            raise NotTaken("operators that write to its arguments, or results that are not dense")
        chain: list[fx.Node] = []
        for node in before:
            # Those who read it must be inside, or it is no part of this chain.
            if not any(user in members or user in chain for user in node.users):
                continue
            if node.target in _PURE_VIEWS:
                chain.append(node)
                continue
            views = [view for view in chain if self._leads_to(view, node)]
            trial = self._build([*members, *views, node], state)
            if trial is not None:
                members += [*views, node]
                best = trial
        return members, best

    def _leads_to(self, view: fx.Node, node: fx.Node) -> bool:
        """Whether a view is one of a node, through others."""
        while view.target in _PURE_VIEWS:
            view = lay.operand_of(view)
            if view is node:
                return True
        return False

    def _parts_of(self, node: fx.Node) -> list[fx.Node]:
        return [user for user in node.users if user.target is operator.getitem]

    def _build(self, members: list[fx.Node], start: _State) -> _State | None:
        """The region of these nodes; None where there is none."""
        state = start.copy()
        try:
            for node in sorted(members, key=self.order.__getitem__):
                self._emit(node, state)
        except Unsupported:
            return None
        return state if self._is_legal(members, state) else None

    def _with_epilogue(
        self, members: list[fx.Node], state: _State
    ) -> tuple[list[fx.Node], _State]:
        """With what follows, in the order of the graph."""
        members = list(members)
        first = min(self.order[node] for node in members)
        for node in self.nodes[first:]:
            if node in state.values or node in self.taken or node.op != "call_function":
                continue
            if "val" not in node.meta:  # What calls of other functions need.
                continue
            if not self._follows(node, state):
                continue
            grown = state.copy()
            parts = self._parts_of(node) if is_reduction(node) else []
            try:
                for one in (node, *parts):
                    self._emit(one, grown)
            except Unsupported:
                continue
            trial = [*members, node, *parts]
            if node.target in _PURE_VIEWS or self._is_legal(trial, grown):
                members, state = trial, grown
        return members, state

    def _follows(self, node: fx.Node, state: _State) -> bool:
        inputs = node.all_input_nodes
        if node.target in _PURE_VIEWS or is_elementwise(node.target):
            return any(source in state.values for source in inputs)
        # Others of the same rows read what these read.
        return is_reduction(node) and any(
            source in state.values or source in state.known for source in inputs[:1]
        )

    # Operators

    def _emit(self, node: fx.Node, state: _State) -> None:
        """Adds a node to the function. Raises Unsupported."""
        if node.target is operator.getitem:
            values = state.values.get(node.args[0])  # type: ignore[arg-type]
            if not isinstance(values, tuple) or len(values) <= node.args[1]:  # type: ignore[operator]
                raise Unsupported("a part of something else")
            state.values[node] = values[node.args[1]]  # type: ignore[index]
            return
        if node.target in _PURE_VIEWS:
            self._view(node, state)
            return
        if is_reduction(node):
            self._reduction(node, state)
            return
        self._elementwise(node, state)

    def _view(self, node: fx.Node, state: _State) -> None:
        source = lay.operand_of(node)
        value = state.values.get(source)
        if not isinstance(value, Tensor):
            # In front of the first operator: it is read through the view.
            raise Unsupported("a view of what is read")
        layout = state.steps.layout
        dims = layout.resolve(value.dims)
        if node.target in lay.EXPANSIONS:
            # No loop walks a dimension that is broadcast: those who read it have one.
            dims = ((),) * (len(lay.shape_of(node)) - len(dims)) + dims
        else:
            stepped = lay.step_forward(layout, node, dims)
            if stepped is None:
                raise Unsupported("a view that no loops describe")
            dims = stepped
        state.values[node] = replace(value, dims=dims)

    def _reduction(self, node: fx.Node, state: _State) -> None:
        operand = operand_of_rows(node)
        self._check_type(node, operand)
        dims = state.dims_of(operand)
        if dims is None:
            raise Unsupported("an operand of other loops")
        layout = state.steps.layout
        reduced = reduced_dims(node)
        row = layout.leaves(self._row(layout, node, dims))
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
        found = ROW_RULES[node.target].compute(state, node, x, **given)
        results = found if isinstance(found, tuple) else (found,)
        results = tuple(self._dropped(one, node, reduced) for one in results)
        state.values[node] = results if isinstance(found, tuple) else results[0]

    def _check_type(self, node: fx.Node, operand: fx.Node) -> None:
        try:
            self._check(node, operand)
        except NotTaken as error:
            raise Unsupported(str(error)) from None

    def _dropped(self, tensor: Tensor, node: fx.Node, reduced: Reduced) -> Tensor:
        """A result without the dimensions of the row, unless they are kept, or have elements."""
        if reduced.keep or len(tensor.dims) != len(lay.shape_of(operand_of_rows(node))):
            return tensor
        if node.target in _WHOLE:
            return tensor
        dims = tuple(loops for dim, loops in enumerate(tensor.dims) if dim not in reduced.dims)
        return replace(tensor, dims=dims)

    def _elementwise(self, node: fx.Node, state: _State) -> None:
        value = node.meta.get("val")
        if not isinstance(value, torch.Tensor):
            raise Unsupported("something else than a tensor")
        kind = KINDS.get(value.dtype)
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
        if node.target in _CASTS:
            options = _only_types(options, value)
        kinds = [operand.kind for operand in operands]
        body = elementwise_body(node.target, kind, places, options, kinds, _compared_in(node))
        state.values[node] = state.steps.map(kind, dims, operands, body)

    def _placed(
        self, node: fx.Node, dims: Dims, shape: tuple[Extent, ...], of: torch.Tensor, state: _State
    ) -> Tensor:
        tensor = node.meta.get("val")
        if isinstance(tensor, torch.Tensor) and not is_cpu_scalar(node) and tensor.device != of.device:
            raise Unsupported("tensors on several devices")
        return state.read(node, dims, shape)

    def _dims(self, node: fx.Node, shape: tuple[Extent, ...], state: _State) -> Dims:
        """The loops of an elementwise operator's result, from those of its operands."""
        layout = state.steps.layout
        if node in state.known and node not in state.values:
            known = layout.resolve(state.known[node])
            return known
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
                if dims[place] is None:
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

    # What is legal

    def _exits(self, members: Iterable[fx.Node]) -> list[fx.Node]:
        """Nodes of which others read the result, views of it included."""
        inside = set(members)

        def is_read(node: fx.Node) -> bool:
            return any(
                user not in inside or (user.target in _PURE_VIEWS and is_read(user))
                for user in node.users
            )

        return sorted(
            (
                node
                for node in inside
                if node.target not in _PURE_VIEWS
                and not (is_reduction(node) and self._parts_of(node))
                and is_read(node)
            ),
            key=self.order.__getitem__,
        )

    def _is_legal(self, members: list[fx.Node], state: _State) -> bool:
        """Whether all that a function reads is there before the first result is needed."""
        exits = self._exits(members)
        if not exits:
            return False
        for node in exits:
            value = state.values[node]
            if not isinstance(value, Tensor) or value.name[0] == "a" or memory_order(node) is None:
                return False
        if sum(self._has_rows(state.values[node], state) for node in exits) > MAX_RESULTS:
            return False
        if any(self._is_copy_of(node, exits) for node in exits):
            return False
        # Each is a tensor of its own, which others may write to.
        if len({state.values[node].name for node in exits}) != len(exits):
            return False
        reads = [self.order[source.node] for source in state.sources]
        reads += [self.order[node] for node in state.scalars]
        if max(reads, default=-1) >= self.order[exits[0]]:
            return False
        begin, end = min(reads, default=0), self.order[exits[-1]]
        return not any(begin < number < end for number in self.writes)

    def _is_copy_of(self, node: fx.Node, others: list[fx.Node]) -> bool:
        """Whether a node copies what is there anyway, which a row has no part in."""
        if node.target not in lay.COPIES:
            return False
        source = lay.operand_of(node)
        while source.target in lay.VIEWS and source not in others:
            source = lay.operand_of(source)
        return source in others

    def _has_rows(self, tensor: Tensor, state: _State) -> bool:
        row = set(state.steps.layout.leaves(state.steps.reduced))
        return any(loop in row for loops in state.steps.layout.resolve(tensor.dims) for loop in loops)

    def _finish(self, seed: fx.Node, members: list[fx.Node], state: _State) -> RowRegion:
        exits = self._exits(members)
        if not state.sources:
            raise NotTaken("rows of no tensor")
        orders: list[tuple[int, ...] | None] = []
        results: list[Tensor] = []
        for node in exits:
            order = None if lay.is_contiguous(node) else memory_order(node)
            value: Tensor = state.values[node]
            dims = state.steps.layout.resolve(value.dims)
            if order is not None:
                dims = tuple(dims[dim] for dim in order)
            orders.append(order)
            results.append(replace(value, dims=dims))
        return RowRegion(
            seed=seed,
            nodes=sorted(members, key=self.order.__getitem__),
            exits=exits,
            orders=orders,
            results=results,
            sources=state.sources,
            scalars=state.scalars,
            steps=state.steps,
        )


#: Reductions whose results have whole rows.
_WHOLE = {aten._softmax.default, aten._safe_softmax.default, aten._log_softmax.default}


def constant_of(node: fx.Node) -> float | None:
    """The number that a node is: a tensor of floats and no dimensions that is filled with it."""
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


def _only_types(options: dict[str, Any], value: torch.Tensor) -> dict[str, Any]:
    """Options of a cast without those that say nothing new."""
    options = dict(options)
    if options.get("layout") in (None, torch.strided):
        options.pop("layout", None)
    if options.get("device") is None or torch.device(options["device"]) == value.device:
        options.pop("device", None)
    for name in ("pin_memory", "non_blocking"):
        if not options.get(name):
            options.pop(name, None)
    return options
