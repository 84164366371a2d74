"""Which parts of an ATen graph become FTuner functions.

A region is one product (mm, addmm, bmm, baddbmm) with the pointwise operators
after it, as long as they form a graph with one result, and with the views around
it: operands are read where they lie, before transposes, broadcasts and the
copies that views of them needed, and a copy of the permuted result is written at
once. Everything else stays with PyTorch.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any, TypeGuard

import torch
from torch import fx
from torch.utils.flop_counter import flop_registry, sdpa_flop_count

from . import layout as lay
from .hints import sizes_of
from .layout import Access, Dims, Extent, Layout, Loop
from .linalg import Value
from .pointwise import RULES, Emitter, Unsupported, emit

aten = torch.ops.aten

#: Elements that are taken, and what MLIR calls them.
TYPES = {torch.float32: "f32", torch.float16: "f16", torch.bfloat16: "bf16"}
_TAKEN_TYPES = "float32, float16 or bfloat16"
#: Why products with vectors stay. It says what is taken.
_OTHER_TYPES = f"operands of other types than {_TAKEN_TYPES}"
#: Products that are taken, with the positions of lhs and rhs.
PRODUCTS: dict[object, tuple[int, int]] = {
    aten.mm.default: (0, 1),
    aten.bmm.default: (0, 1),
    aten.addmm.default: (1, 2),
    aten.baddbmm.default: (1, 2),
}
_FASTPATH = (
    "PyTorch's fused layer for inference; torch.backends.mha.set_fastpath_enabled(False) takes it"
    " apart"
)
_RECURRENT = (
    "PyTorch's fused recurrent layer; torch.backends.mkldnn.set_flags(False) or, on a GPU,"
    " torch.backends.cudnn.enabled = False takes it apart"
)
#: Products that stay with PyTorch, and why.
OTHER_PRODUCTS = {
    **dict.fromkeys(
        # Of these types they have become products of matrices (vectors.py).
        ("aten::mv", "aten::addmv", "aten::dot", "aten::vdot"),
        _OTHER_TYPES,
    ),
    "aten::addr": "an outer product",
    "aten::convolution": "a convolution",
    "aten::convolution_backward": "a convolution",
    "aten::_grouped_mm": "a product of groups",
    "aten::_scaled_mm": "a product of scaled 8-bit types",
    "aten::_int_mm": "a product of integers",
    "aten::addbmm": "a sum over batches",
    "aten::_trilinear": "a product of three tensors",
    "aten::_transformer_encoder_layer_fwd": _FASTPATH,
    "aten::_native_multi_head_attention": _FASTPATH,
    "aten::mkldnn_rnn_layer": _RECURRENT,
    "aten::mkldnn_rnn_layer_backward": _RECURRENT,
    "aten::_cudnn_rnn": _RECURRENT,
    "aten::_cudnn_rnn_backward": _RECURRENT,
    "aten::miopen_rnn": _RECURRENT,
}
_ATTENTION = "scaled_dot_product_attention of PyTorch; the option attention='math' takes it apart"
#: Loops that a workload has room for: m, n, k and three batch axes.
MAX_LOOPS = 6


class NotTaken(Exception):
    """This product stays with PyTorch; the message is the reason."""


@dataclass
class Region:
    """A part of the graph that becomes one function."""

    product: fx.Node
    #: Nodes that the function replaces, in the order of the graph.
    nodes: list[fx.Node]
    exit: fx.Node
    layout: Layout
    reduce: Loop
    lhs: Access
    rhs: Access
    extras: list[Access]
    #: Tensors of one element on the CPU, passed by value.
    scalars: list[fx.Node]
    #: Loops of the result's dimensions.
    dims: Dims
    emitter: Emitter
    result: Value

    @property
    def accesses(self) -> list[Access]:
        return [self.lhs, self.rhs, *self.extras]

    @property
    def emitted(self) -> list[fx.Node]:
        """Pointwise operators and copies that the function computes."""
        return [
            node
            for node in self.nodes
            if node is not self.product and (node.target in RULES or node.target in lay.COPIES)
        ]

    @property
    def name(self) -> str:
        """What is computed, in the names of ATen, as a C identifier."""
        names = [
            _schema_of(node).name.split("::")[1].strip("_")
            for node in self.nodes
            if node.target not in lay.VIEWS
        ]
        return "_".join(names)[:60].rstrip("_")


def _schema_of(node: fx.Node) -> Any:
    """The schema of an operator of ATen; None of anything else."""
    return getattr(node.target, "_schema", None)


def is_product(node: fx.Node) -> bool:
    return node.op == "call_function" and node.target in PRODUCTS


def is_write(node: fx.Node) -> bool:
    """Whether an operator changes tensors in place; graphs of ATen have few, at their ends."""
    schema = _schema_of(node)
    return node.op == "call_function" and schema is not None and schema.is_mutable


def reason_to_leave(node: fx.Node) -> str | None:
    """Why an operator that holds products is never taken; None for all others."""
    if node.op != "call_function":
        return None
    name = getattr(_schema_of(node), "name", "")
    if name in OTHER_PRODUCTS:
        return OTHER_PRODUCTS[name]
    if "scaled_dot_product" in name:
        return _ATTENTION
    # What else multiplies matrices, as PyTorch itself counts them.
    if not is_product(node) and getattr(node.target, "overloadpacket", None) in flop_registry:
        return "a larger operator of PyTorch that holds products"
    return None


def hint(reason: str) -> str:
    """How a product that is left for this reason comes to FTuner; empty if not known."""
    if reason.startswith("operands of ") and reason != _OTHER_TYPES:
        return f"operands of {_TAKEN_TYPES} are taken: uKernels are for these types"
    return ""


#: Operators that give a tensor and compute nothing, beside views.
_WITHOUT_KERNEL = {
    "_unsafe_view", "empty", "empty_like", "empty_strided", "empty_permuted", "new_empty",
    "new_empty_strided", "lift_fresh_copy",
}  # fmt: skip


def computes(node: fx.Node) -> bool:
    """Whether PyTorch launches a kernel for a node: one on tensors that is no view."""
    target = node.target
    if node.op != "call_function" or not isinstance(target, torch._ops.OpOverload):
        return False
    # Views give an alias of an argument, and say so.
    computed = [
        result
        for result in target._schema.returns
        if "Tensor" in str(result.type)
        and (result.alias_info is None or result.alias_info.is_write)
    ]
    return (
        bool(computed)
        and target.namespace != "ftuner"
        and target.overloadpacket.__name__ not in _WITHOUT_KERNEL
    )


def flops_of(node: fx.Node) -> float | None:
    """FLOPs of an operator at the sizes that PyTorch compiles for; None if not known."""
    shapes = [sizes_of(argument) for argument in node.args]
    name = getattr(_schema_of(node), "name", "")
    if name in ("aten::mv", "aten::addmv", "aten::dot", "aten::vdot"):
        return 2.0 * max((math.prod(s) for s in shapes if isinstance(s, tuple)), default=0)
    if "scaled_dot_product" in name and "backward" not in name:
        return float(sdpa_flop_count(*shapes[:3]))  # type: ignore[no-untyped-call]
    formula = flop_registry.get(getattr(node.target, "overloadpacket", None))
    if formula is None:
        return None
    options = {key: sizes_of(argument) for key, argument in node.kwargs.items()}
    return float(formula(*shapes, **options, out_val=sizes_of(node)))


def _is_tensor(value: Any) -> TypeGuard[fx.Node]:
    return isinstance(value, fx.Node) and isinstance(value.meta.get("val"), torch.Tensor)


def is_cpu_scalar(node: fx.Node) -> bool:
    value: torch.Tensor = node.meta["val"]
    return value.dim() == 0 and value.device.type == "cpu" and value.dtype.is_floating_point


@dataclass
class _State:
    """A region while it grows: what is known of the nodes inside."""

    layout: Layout
    dims: dict[fx.Node, Dims]
    values: dict[fx.Node, Value]
    extras: list[Access] = field(default_factory=list)
    scalars: list[fx.Node] = field(default_factory=list)
    emitter: Emitter = field(default_factory=Emitter)

    def copy(self) -> _State:
        emitter = Emitter()
        emitter.instructions = list(self.emitter.instructions)
        emitter.known = dict(self.emitter.known)
        return _State(
            self.layout.copy(),
            dict(self.dims),
            dict(self.values),
            list(self.extras),
            list(self.scalars),
            emitter,
        )


class RegionFinder:
    """Finds the regions of a graph, in the order of its products."""

    def __init__(self, graph: fx.Graph) -> None:
        self.graph = graph
        self.order = {node: number for number, node in enumerate(graph.nodes)}
        self.products = [node for node in graph.nodes if is_product(node)]
        self.writes = [number for node, number in self.order.items() if is_write(node)]
        self.sources: dict[fx.Node, tuple[Layout, Loop, Access, Access, Dims]] = {}
        self.reasons: dict[fx.Node, str] = {}
        #: Copies that operands are read before: nobody needs them.
        self.absorbed: set[fx.Node] = set()
        for node in self.products:
            try:
                self.sources[node] = self._operands(node)
            except NotTaken as error:
                self.reasons[node] = str(error)
        for product, (_, _, lhs, rhs, _) in self.sources.items():
            for position, access in zip(PRODUCTS[product.target], (lhs, rhs)):
                self.absorbed |= _between(lay.operand_of(product, position), access.node)

    def regions(self) -> list[Region]:
        """The regions. No node is in two, and each product in exactly one or none."""
        result: list[Region] = []
        taken: set[fx.Node] = set()
        for product in self.products:
            if product not in self.sources:
                continue
            try:
                region = self._grow(product, taken)
                self._check_writes(region)
            except NotTaken as error:
                self.reasons[product] = str(error)
                continue
            taken.update(region.nodes)
            result.append(region)
        return result

    def _check_writes(self, region: Region) -> None:
        """Tensors are read where the result is written, so nothing may change them until then."""
        first = min(self.order[node] for node in [a.node for a in region.accesses] + region.scalars)
        if any(first < number < self.order[region.exit] for number in self.writes):
            raise NotTaken("an operator before the result that writes to its arguments")

    # Operands

    def _operands(self, node: fx.Node) -> tuple[Layout, Loop, Access, Access, Dims]:
        """Loops of a product and where it reads its operands."""
        left, right = (lay.operand_of(node, position) for position in PRODUCTS[node.target])
        value = node.meta["val"]
        for operand in (left, right):
            dtype = operand.meta["val"].dtype
            if dtype not in TYPES:
                raise NotTaken(
                    f"operands of {str(dtype).removeprefix('torch.')}, not {_TAKEN_TYPES}"
                )
        if value.device.type not in ("cpu", "cuda"):
            raise NotTaken(f"tensors on {value.device.type}")
        layout = Layout()
        (*batch, rows, depth), columns = lay.shape_of(left), lay.shape_of(right)[-1]
        for name, extent in (("m", rows), ("n", columns), ("k", depth)):
            if isinstance(extent, int) and extent < 1:
                raise NotTaken(f"{name} is {extent}")
        if any(isinstance(extent, int) and extent == 0 for extent in batch):
            raise NotTaken("no elements")
        batches = tuple((layout.add(extent),) if extent != 1 else () for extent in batch)
        m, n, k = layout.add(rows), layout.add(columns), layout.add(depth)
        layout.whole = frozenset({k})
        lhs_dims: Dims = (*batches, (m,), (k,))
        rhs_dims: Dims = (*batches, (k,), (n,))
        dims: Dims = (*batches, (m,), (n,))
        for lhs in lay.accesses(layout, left, lhs_dims):
            if not _is_readable(lhs, lhs.layout.leaves((m,)), k):
                continue
            for rhs in lay.accesses(lhs.layout, right, lhs.layout.resolve(rhs_dims)):
                final = rhs.layout
                if not _is_readable(rhs, final.leaves((n,)), k):
                    continue
                if _count_loops(final, [lhs, rhs], dims) <= MAX_LOOPS:
                    lhs, rhs = (
                        replace(access, dims=_with_unit_loops(final, access.dims, loops))
                        for access, loops in ((lhs, (m, k)), (rhs, (k, n)))
                    )
                    return final, k, lhs, rhs, dims
        raise NotTaken("operands that no map of loops describes")

    # Growth

    def _grow(self, product: fx.Node, taken: set[fx.Node]) -> Region:
        layout, reduce, lhs, rhs, dims = self.sources[product]
        state = _State(layout.copy(), {product: dims}, {product: "acc"})
        nodes = [product]
        self._start(product, state, lhs, rhs, dims)
        best = self._region(product, nodes, state, reduce, lhs, rhs)
        if best is None:
            raise NotTaken("a result that is not contiguous")
        for node in self._candidates(product):
            if node in taken:
                continue
            grown = self._extend(node, state)
            if grown is None:
                continue
            trial = nodes + [node]
            written = _with_unit_loops(grown.layout, grown.dims[node], _space_loops(dims))
            if not _is_fused(grown, lhs, rhs, written):
                continue
            nodes, state = trial, grown
            region = self._region(product, nodes, state, reduce, lhs, rhs)
            if region is not None:
                best = region
        return best

    def _start(
        self, product: fx.Node, state: _State, lhs: Access, rhs: Access, dims: Dims
    ) -> None:
        """The summand and the factors of addmm and baddbmm; what the product is rounded to."""
        kind = TYPES[product.meta["val"].dtype]
        if len(product.args) < 3:
            state.values[product] = state.emitter.round("acc", kind)
            return
        factors: dict[str, Any] = product.kwargs
        beta, alpha = (factors.get(name, 1) for name in ("beta", "alpha"))
        if isinstance(beta, fx.Node) or isinstance(alpha, fx.Node):
            raise NotTaken("a factor of the sum that is no constant")
        value: Value = "acc"
        if alpha != 1:
            value = state.emitter.mul(value, float(alpha))
        if beta != 0:
            summand = self._operand(lay.operand_of(product), state, dims, lay.shape_of(product))
            if summand is None:
                raise NotTaken(f"a summand that is not {_TAKEN_TYPES}")
            if beta != 1:
                summand = state.emitter.mul(summand, float(beta))
            value = state.emitter.add(value, summand)
        state.values[product] = state.emitter.round(value, kind)

    def _candidates(self, product: fx.Node) -> Iterable[fx.Node]:
        """Operators that follow from the product, in the order of the graph."""
        reached: set[fx.Node] = {product}
        for node in list(self.graph.nodes)[self.order[product] + 1 :]:
            if node.op == "call_function" and any(i in reached for i in node.all_input_nodes):
                if node.target in RULES or node.target in lay.VIEWS:
                    reached.add(node)
                    yield node

    def _extend(self, node: fx.Node, state: _State) -> _State | None:
        """The region with one more node; None if it cannot be part of it."""
        value = node.meta["val"]
        if not isinstance(value, torch.Tensor) or value.dtype not in TYPES:
            return None
        grown = state.copy()
        if node.target in lay.VIEWS:
            source = lay.operand_of(node)
            if source not in grown.values or (
                node.target in lay.COPIES and node in self.absorbed
            ):
                return None
            dims = lay.step_forward(grown.layout, node, grown.layout.resolve(grown.dims[source]))
            if dims is None:
                return None
            grown.dims[node], grown.values[node] = dims, grown.values[source]
            return grown
        shape = lay.shape_of(node)
        inside = [i for i in node.all_input_nodes if i in grown.values]
        if not inside:
            return None
        dims = grown.layout.resolve(grown.dims[inside[0]])
        if any(
            lay.shape_of(i) != shape or grown.layout.resolve(grown.dims[i]) != dims for i in inside
        ):
            return None
        # The defaults of a schema are those of the rule.
        names = [argument.name for argument in _schema_of(node).arguments]
        values: list[Any] = []
        options: dict[str, Any] = {}
        for name, argument in [*zip(names, node.args), *node.kwargs.items()]:
            if _is_tensor(argument):
                argument = self._operand(argument, grown, dims, shape)
                if argument is None:
                    return None
            elif isinstance(argument, fx.Node):
                return None
            elif isinstance(argument, (int, float)) and not isinstance(argument, bool):
                argument = float(argument)
            if len(values) < len(node.args):
                values.append(argument)
            else:
                options[name] = argument
        try:
            result = emit(grown.emitter, node.target, values, options)
            grown.values[node] = grown.emitter.round(result, TYPES[value.dtype])
        except Unsupported:
            return None
        grown.dims[node] = dims
        return grown

    def _operand(
        self, node: fx.Node, state: _State, dims: Dims, shape: tuple[Extent, ...]
    ) -> Value | None:
        """What the epilogue reads of a tensor that is broadcast to ``shape``."""
        if node in state.values:
            return state.values[node]
        value = node.meta["val"]
        if is_cpu_scalar(node):
            if node not in state.scalars:
                state.scalars.append(node)
            return f"s{state.scalars.index(node)}"
        if value.dtype not in TYPES:
            return None
        extents = lay.shape_of(node)
        offset = len(shape) - len(extents)
        walked: list[tuple[Loop, ...]] = []
        for dim, extent in enumerate(extents):
            if extent != shape[dim + offset] and extent != 1:
                return None
            walked.append(() if extent == 1 else dims[dim + offset])
        # Before a copy may lie the inside of another region.
        access = next(
            access
            for access in lay.accesses(state.layout, node, state.layout.resolve(tuple(walked)))
            if access.copies == 0
        )
        state.layout = access.layout
        for number, known in enumerate(state.extras):
            if known.node is access.node and state.layout.resolve(known.dims) == access.dims:
                return f"e{number}"
        state.extras.append(access)
        return f"e{len(state.extras) - 1}"

    def _region(
        self,
        product: fx.Node,
        nodes: list[fx.Node],
        state: _State,
        reduce: Loop,
        lhs: Access,
        rhs: Access,
    ) -> Region | None:
        """The region of these nodes, less views at its end, if it has one result."""
        inside = set(nodes)
        exits = [n for n in nodes if any(user not in inside for user in n.users) or not n.users]
        if len(exits) != 1:
            return None
        exit = exits[0]
        # A view of the result costs nothing; a copy does.
        while exit.target in lay.VIEWS and exit.target not in lay.COPIES:
            inside.discard(exit)
            exit = lay.operand_of(exit)
        space = _space_loops(self.sources[product][4])
        dims = _with_unit_loops(
            state.layout, state.layout.resolve(state.dims[exit]), space
        )
        columns = dims[-1]
        m, n = (state.layout.leaves((loop,)) for loop in space)
        if not lay.is_contiguous(exit) or not columns or columns[-1] not in (m[-1], n[-1]):
            return None
        return Region(
            product=product,
            nodes=[node for node in nodes if node in inside],
            exit=exit,
            layout=state.layout,
            reduce=reduce,
            lhs=lhs,
            rhs=rhs,
            extras=state.extras,
            scalars=state.scalars,
            dims=dims,
            emitter=state.emitter,
            result=state.values[exit],
        )


def _space_loops(dims: Dims) -> tuple[Loop, Loop]:
    """The loops m and n of a product whose result is walked by ``dims``."""
    (m,), (n,) = dims[-2:]
    return m, n


def _with_unit_loops(layout: Layout, dims: Dims, loops: Iterable[Loop]) -> Dims:
    """The dimensions, and one in front for each of the loops that has extent 1 and is missing.

    Views drop and add dimensions of extent 1 at will, but a product has all of its loops.
    """
    walked = {loop for walk in dims for loop in walk}
    units = [loop for loop in loops if layout.extents[loop] == 1 and loop not in walked]
    return tuple((loop,) for loop in units) + dims


def _between(start: fx.Node, end: fx.Node) -> set[fx.Node]:
    """The copies from ``start`` back to ``end``, without ``end``."""
    copies: set[fx.Node] = set()
    while start is not end:
        if start.target in lay.COPIES:
            copies.add(start)
        start = lay.operand_of(start)
    return copies


def _is_readable(access: Access, rows: tuple[Loop, ...], reduce: Loop) -> bool:
    """Whether the innermost dimension is walked by m (or n) or k.

    A dimension that is broadcast may be anywhere else.
    """
    walked = [loop for loops in access.dims for loop in loops]
    return bool(walked) and reduce in walked and walked[-1] in (rows[-1], reduce)


def _is_fused(state: _State, lhs: Access, rhs: Access, dims: Dims) -> bool:
    """Whether the compiler makes one kernel of a product and its epilogue.

    It joins neighbouring rows, and neighbouring columns, whatever the epilogue
    reads, so this must not read them one by one. Batches stay apart.
    """
    layout = state.layout
    product = [lhs.dims, rhs.dims, dims]
    whole = join_loops(layout, [*product, *(access.dims for access in state.extras)])
    if len(whole) > MAX_LOOPS:
        return False
    walked = [{loop for loops in layout.resolve(tensor) for loop in loops} for tensor in product]
    return all(
        group in whole or all(group[0] in loops for loops in walked)
        for group in join_loops(layout, product)
    )


def _count_loops(layout: Layout, accesses: list[Access], dims: Dims) -> int:
    """Loops of the product and its epilogue, after neighbours are joined."""
    return len(join_loops(layout, [access.dims for access in accesses] + [dims]))


def join_loops(layout: Layout, dims: Iterable[Dims]) -> list[tuple[Loop, ...]]:
    """Groups of loops that every tensor has side by side in one order.

    Each group is one loop of the function. Returned in no particular order.
    """
    walks = [
        [loop for loops in layout.resolve(tensor) for loop in loops] for tensor in dims
    ]
    following: dict[Loop, Loop | None] = {}
    for walk in walks:
        for loop, next_loop in zip(walk, [*walk[1:], None]):
            if following.setdefault(loop, next_loop) != next_loop:
                following[loop] = None
    preceded: dict[Loop, set[Loop | None]] = {}
    for walk in walks:
        for loop, previous in zip(walk, [None, *walk[:-1]]):
            preceded.setdefault(loop, set()).add(previous)
    groups: list[tuple[Loop, ...]] = []
    starts = [
        loop
        for loop in following
        if not (
            len(preceded[loop]) == 1
            and (previous := next(iter(preceded[loop]))) is not None
            and following[previous] == loop
        )
    ]
    for loop in starts:
        group = [loop]
        while (next_loop := following[group[-1]]) is not None and len(preceded[next_loop]) == 1:
            group.append(next_loop)
        groups.append(tuple(group))
    return groups
