"""Products of matrices as regions: a product with the pointwise operators after it, and with views.

A region is one product (mm, addmm, bmm, baddbmm) with the pointwise operators after it that have one
result, and with the views around it: operands are read where they lie, before transposes, broadcasts and
the copies that views of them needed, and a copy of the permuted result is written at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from torch import fx

from ..graph import layout as lay
from ..graph.layout import Access, Dims, Layout, Loop, join_loops
from ..graph.nodes import PRODUCTS, TAKEN_TYPES, TYPES, Unsupported, is_product
from . import choice as choices
from .growth import RegionFinder, check_device
from .linalg import Instruction, Value
from .pointwise import RULES, Emitter
from .region import Context, Refuse, Region, RegionKind, Rejected, Source, State
from .steps import Step, Tensor

if TYPE_CHECKING:
    from ftuner.host.function import Function

    from .choice import Choice
    from .importing import ImportedRegion

#: Loops that a workload has room for: m, n, k and three batch axes.
MAX_LOOPS = 6
#: The reason for products that FTuner could compute.
SLOWER = "PyTorch is predicted to be faster at all sizes; the option take='all' takes it anyway"


class ProductKind(RegionKind):
    name = "product"
    gives_list = False
    must_compile = True
    is_listed = True

    def is_seed(self, node: fx.Node) -> bool:
        return is_product(node)

    def find(self, graph: fx.Graph, refuse: Refuse) -> ProductFinder:
        return ProductFinder(graph)

    def describe(self, region: Region) -> tuple[list[Step], list[Tensor]]:
        """The product, and the operators after it as one, in the order of the result's memory."""
        (result,) = region.results
        product = replace(region.steps.steps[0], dims=result.dims)
        last = int(result.name[1:])
        if last == 0:
            return [product], [result]
        epilogue = _join(region.steps.steps, last, len(region.sources))
        operands = [Tensor("t0", result.dims, "f32")]
        operands += [
            Tensor(f"arg{number}", source.dims, TYPES[source.node.meta["val"].dtype])
            for number, source in enumerate(region.sources[2:], 2)
        ]
        joined = Step(operands, *epilogue, result.dims, result.kind)
        return [product, joined], [replace(result, name="t1")]

    def heads(self, groups: Sequence[Loop], results: Sequence[Loop]) -> Sequence[Loop]:
        return [loop for loop in results if loop in groups]

    def choose(
        self, imported: ImportedRegion, function: Function, context: Context
    ) -> Choice | None:
        if context.options.take == "all":
            return None
        choice = choices.choose(imported, function, context.settings, context.host.joins)
        if choice is not None and not context.host.alternates:
            choice = choice.whole()
        if choice is not None and not any(one.is_ftuners for one in choice.intervals):
            raise Rejected(SLOWER, choice)
        return choice


KIND = ProductKind()


class ProductFinder(RegionFinder):
    """Finds products, each with what it grows to.

    Attributes:
        operands: the loops of each product, the one that it sums over, where it reads its factors, and
            the loops of its result.
    """

    kind = KIND
    grows_through = True

    def __init__(self, graph: fx.Graph) -> None:
        super().__init__(graph)
        self.operands: dict[fx.Node, tuple[Layout, Loop, Access, Access, Dims]] = {}
        for node in self.seeds:
            try:
                self.operands[node] = _operands(node)
            except Unsupported as error:
                self.reasons[node] = str(error)
        self.seeds = list(self.operands)
        # Nobody needs the copies that operands are read before.
        for product, (_, _, *accesses, _) in self.operands.items():
            for position, access in zip(PRODUCTS[product.target], accesses):
                self.taken.update(_copies_between(lay.operand_of(product, position), access.node))

    def begin(self, seed: fx.Node) -> State:
        layout, reduce, lhs, rhs, _ = self.operands[seed]
        state = State(_source, TYPES)
        state.steps.layout, state.steps.reduced = layout.copy(), (reduce,)
        state.sources = [Source.of_access(access) for access in (lhs, rhs)]
        return state

    def emit_seed(self, node: fx.Node, state: State) -> None:
        """The product, then the summand and the factors of addmm and baddbmm."""
        if node not in self.operands or state.steps.steps:
            raise Unsupported("another product")
        kind, dims = TYPES[node.meta["val"].dtype], self.operands[node][4]
        factors = [
            Tensor(f"arg{number}", source.dims, TYPES[source.node.meta["val"].dtype])
            for number, source in enumerate(state.sources)
        ]
        value = state.steps.reduce("arith.addf", factors, lambda b, x, y: b.mul(x, y), dims=dims)
        given: dict[str, Any] = node.kwargs
        beta, alpha = (given.get(name, 1) for name in ("beta", "alpha"))
        if isinstance(beta, fx.Node) or isinstance(alpha, fx.Node):
            raise Unsupported("a factor of the sum that is not a constant")
        summands: list[Tensor] = []
        if len(node.args) > 2 and beta != 0:
            try:
                summands.append(state.read(lay.operand_of(node), dims, lay.shape_of(node)))
            except Unsupported:
                raise Unsupported(f"a summand that is not {TAKEN_TYPES}") from None

        def body(b: Emitter, product: Value, *summand: Value) -> Value:
            result = product if alpha == 1 else b.mul(product, float(alpha))
            for one in summand:
                result = b.add(result, one if beta == 1 else b.mul(one, float(beta)))
            return result

        if summands or alpha != 1 or kind != "f32":
            value = state.steps.map(kind, dims, [value, *summands], body)
        state.values[node] = value

    def computes(self, node: fx.Node) -> bool:
        return node.target in RULES

    def problem(self, exits: list[fx.Node], state: State) -> str | None:
        if len(exits) > 1:
            return "several results"
        (exit,) = exits
        if lay.memory_order(exit) is None:
            return f"the result {lay.description(exit)} has gaps in memory, or overlaps itself"
        _, dims = self.result(exit, state)
        walked = [loop for loops in dims for loop in loops]
        m, n = (state.layout.leaves((loop,))[-1] for loop in self._space(state))
        if not walked or walked[-1] not in (m, n):
            return f"neighbours in memory of the result {lay.description(exit)} are of several products"
        return None

    def result(self, node: fx.Node, state: State) -> tuple[tuple[int, ...] | None, Dims]:
        order = None if lay.is_contiguous(node) else lay.memory_order(node)
        dims = state.layout.resolve(state.values[node].dims)
        dims = dims if order is None else tuple(dims[dim] for dim in order)
        return order, _with_unit_loops(state.layout, dims, self._space(state))

    def _space(self, state: State) -> tuple[Loop, Loop]:
        """The loops m and n of the product."""
        (m,), (n,) = state.steps.steps[0].dims[-2:]
        return m, n


def _source(layout: Layout, node: fx.Node, dims: Dims) -> tuple[Source, Layout]:
    """The source of an operand of the epilogue; not one before a copy, which may be inside another
    region."""
    access = next(one for one in lay.accesses(layout, node, dims) if one.copies == 0)
    return Source.of_access(access), access.layout


def _join(steps: Sequence[Step], last: int, num_sources: int) -> tuple[list[Instruction], Value]:
    """The elementwise steps after the first one as one, whose operands are the first one's result and
    all sources after the factors; each result is rounded as its own step would round it."""
    emitter = Emitter()
    elements: dict[str, Value] = {"t0": "x0"}
    elements |= {f"arg{number}": f"x{number - 1}" for number in range(2, num_sources)}
    for number, step in enumerate(steps[1 : last + 1], 1):
        local: dict[Value, Value] = {
            f"x{place}": elements[operand.name] for place, operand in enumerate(step.operands)
        }
        for place, one in enumerate(step.instructions):
            operands = (local.get(operand, operand) for operand in one.operands)
            local[f"v{place}"] = emitter(
                one.operation, *operands, attributes=one.attributes, suffix=one.suffix
            )
        value = local.get(step.value, step.value)
        elements[f"t{number}"] = emitter.round(value, step.kind)
    return emitter.instructions, elements[f"t{last}"]


def _operands(node: fx.Node) -> tuple[Layout, Loop, Access, Access, Dims]:
    """The loops of a product and where it reads its operands. Raises Unsupported."""
    left, right = (lay.operand_of(node, position) for position in PRODUCTS[node.target])
    for operand in (left, right):
        dtype = operand.meta["val"].dtype
        if dtype not in TYPES:
            raise Unsupported(f"operands of {str(dtype).removeprefix('torch.')}, not {TAKEN_TYPES}")
    check_device(node)
    layout = Layout()
    (*batch, rows, depth), columns = lay.shape_of(left), lay.shape_of(right)[-1]
    for name, extent in (("m", rows), ("n", columns), ("k", depth)):
        if isinstance(extent, int) and extent < 1:
            raise Unsupported(f"{name} is {extent}")
    if any(isinstance(extent, int) and extent == 0 for extent in batch):
        raise Unsupported("no elements")
    batches = tuple((layout.add(extent),) if extent != 1 else () for extent in batch)
    m, n, k = layout.add(rows), layout.add(columns), layout.add(depth)
    layout.whole = frozenset({k})
    dims: Dims = (*batches, (m,), (n,))
    for lhs, rhs, final in _readable(layout, (left, right), batches, (m, n, k)):
        if not _covers(final, (lhs, rhs), dims):
            continue
        if len(join_loops(final, [*lhs.segments, *rhs.segments, dims])) <= MAX_LOOPS:
            lhs, rhs = (
                _with_units(final, access, loops)
                for access, loops in ((lhs, (m, k)), (rhs, (k, n)))
            )
            return final, k, lhs, rhs, dims
    raise Unsupported("operands that no map of loops describes")


def _readable(
    layout: Layout, operands: tuple[fx.Node, fx.Node], batches: Dims, loops: tuple[Loop, Loop, Loop]
) -> Iterator[tuple[Access, Access, Layout]]:
    """Places where both factors can be read, and the loops then, best first."""
    m, n, k = loops
    rhs_dims: Dims = (*batches, (k,), (n,))
    for lhs in lay.accesses(layout, operands[0], (*batches, (m,), (k,))):
        if not _is_readable(lhs, lhs.layout.leaves((m,)), k):
            continue
        for rhs in lay.accesses(lhs.layout, operands[1], lhs.layout.resolve(rhs_dims)):
            if _is_readable(rhs, rhs.layout.leaves((n,)), k):
                yield lhs, rhs, rhs.layout


def _is_readable(access: Access, rows: tuple[Loop, ...], reduce: Loop) -> bool:
    """Returns whether the innermost dimension is walked by m (or n) or k.

    A dimension that is broadcast may be anywhere else.
    """
    walked = [loop for loops in access.dims for loop in loops]
    return bool(walked) and reduce in walked and walked[-1] in (rows[-1], reduce)


def _covers(layout: Layout, factors: Iterable[Access], result: Dims) -> bool:
    """Returns whether each loop of the result walks a factor; else one product would be computed often."""
    walked = {loop for factor in factors for loops in layout.resolve(factor.dims) for loop in loops}
    every = (loop for loops in layout.resolve(result) for loop in loops)
    return all(loop in walked or layout.extents[loop] == 1 for loop in every)


def _with_units(layout: Layout, access: Access, loops: Iterable[Loop]) -> Access:
    """The access with its missing loops of extent 1 in front."""
    dims = _with_unit_loops(layout, access.dims, loops)
    return replace(access, dims=dims, cuts=(None,) * (len(dims) - len(access.dims)) + access.cuts)


def _with_unit_loops(layout: Layout, dims: Dims, loops: Iterable[Loop]) -> Dims:
    """The dimensions, and one in front for each of the loops that has extent 1 and is missing.

    Views drop and add dimensions of extent 1 at will, but a product has all of its loops.
    """
    walked = {loop for walk in dims for loop in walk}
    units = [loop for loop in loops if layout.extents[loop] == 1 and loop not in walked]
    return tuple((loop,) for loop in units) + dims


def _copies_between(start: fx.Node, end: fx.Node) -> Iterator[fx.Node]:
    """The copies from ``start`` back to ``end``, without ``end``."""
    while start is not end:
        if start.target in lay.COPIES:
            yield start
        start = lay.operand_of(start)
