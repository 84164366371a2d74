"""Index maps of a product through views: which loop walks which dimension.

A product has one loop for each of its dimensions: batch, m, n and k. A tensor
that the product reads or writes is walked by these loops, each dimension by an
ordered tuple of them: ``()`` stands for extent 1 or a broadcast, ``(a, b)`` for
a dimension in which ``b`` is the inner loop. A view changes the tuples but moves
no element, so an operand can be read where it lies, before the view and even
before the copy that a view needed. A view that splits a dimension splits its
loop::

    x [B, S, H·D] -> view [B, S, H, D] -> permute [B, H, S, D] -> copy
      -> view [B·H, S, D] = lhs of bmm, walked by (g) (m) (k)

    walked back:  [B·H, S, D]: (g) (m) (k)      g splits into b and h
                  [B, H, S, D]: (b) (h) (m) (k)
                  [B, S, H, D]: (b) (m) (h) (k)  contiguous: read from here

A slice of a tensor is read in that tensor, too: a dimension of it then is walked in part, from an
offset on.

Extents are ints, or sympy expressions of PyTorch's symbols; equal expressions
are equal sizes at run time, which PyTorch's guards ensure.
"""

from __future__ import annotations

import itertools
import operator
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias, cast

import sympy
from torch.fx.experimental.symbolic_shapes import statically_known_true
from torch.utils._sympy import functions

import torch
from torch import fx

Extent: TypeAlias = int | sympy.Expr
Loop = int
Dims = tuple[tuple[Loop, ...], ...]

aten = torch.ops.aten

PERMUTATIONS = {aten.permute.default, aten.transpose.int, aten.t.default, aten.numpy_T.default}
RESHAPES = {
    aten.view.default,
    aten._unsafe_view.default,
    aten.reshape.default,
    aten.unsqueeze.default,
    aten.squeeze.default,
    aten.squeeze.dim,
    aten.squeeze.dims,
}
EXPANSIONS = {aten.expand.default}
COPIES = {aten.clone.default, aten.contiguous.default}
ALIASES = {aten.alias.default, aten.detach.default}
VIEWS = PERMUTATIONS | RESHAPES | EXPANSIONS | COPIES | ALIASES


#: Operators that give parts of a tensor along a dimension, without a copy.
SLICES = {aten.slice.Tensor, aten.select.int}
#: Operators that give all parts of a tensor along a dimension, as a list.
SPLITS = {aten.split.Tensor, aten.split_with_sizes.default, aten.unbind.int}


def extent_of(size: int | torch.SymInt) -> Extent:
    """A size of a tensor as an int or as an expression of PyTorch's symbols.

    Quotients are `FloorDiv`, also where PyTorch knows that nothing remains: it does not say so in strides.
    """
    if isinstance(size, int):
        return size
    simple = size.node.shape_env.simplify(size.node.expr)
    expression = sympy.expand(simple.replace(functions.CleanDiv, functions.FloorDiv))
    return int(expression) if expression.is_number else expression


def stride_of(stride: int | torch.SymInt) -> Extent:
    """A stride, as it is if the tensor has elements.

    PyTorch writes ``Max(1, n)`` for a size that may be 0, where no element has a place.
    """
    extent = extent_of(stride)
    if isinstance(extent, int):
        return extent
    sizes = {
        maximum: next(argument for argument in maximum.args if argument != 1)
        for maximum in extent.atoms(functions.Max)
        if len(maximum.args) == 2 and 1 in maximum.args
    }
    return sympy.expand(extent.xreplace(sizes))


def shape_of(node: fx.Node) -> tuple[Extent, ...]:
    """The extents of the tensor that a node computes."""
    return tuple(extent_of(size) for size in node.meta["val"].shape)


def operand_of(node: fx.Node, position: int = 0) -> fx.Node:
    """The operand at a position that is a tensor in the operator's schema."""
    operand = node.args[position]
    assert isinstance(operand, fx.Node)
    return operand


def is_transposed(rhs: fx.Node) -> bool:
    """Returns whether the right factor of a product is contiguous along K in memory. Adds no guard."""
    return stride_of(rhs.meta["val"].stride()[-2]) == 1


def product(extents: Sequence[Extent]) -> Extent:
    result: Extent = 1
    for extent in extents:
        result = result * extent
    return result if isinstance(result, int) else sympy.expand(result)


def quotient(dividend: Extent, divisor: Extent) -> Extent | None:
    """``dividend / divisor`` if that is whole for every value of the symbols."""
    if isinstance(dividend, int) and isinstance(divisor, int):
        return dividend // divisor if divisor and dividend % divisor == 0 else None
    result = sympy.expand(sympy.cancel(sympy.sympify(dividend) / divisor))
    if result.is_number:
        return int(result) if result.is_integer else None
    # Numbers of chunks, and other functions of symbols that are whole, count as symbols.
    whole = {
        one: sympy.Dummy(integer=True) for one in result.atoms(sympy.Function) if one.is_integer
    }
    polynomial = result.xreplace(whole)
    if not polynomial.is_polynomial():
        return None
    return result if all(factor.is_integer for factor in sympy.Poly(polynomial).coeffs()) else None


def reassociate(
    source: Sequence[Extent], target: Sequence[Extent]
) -> list[tuple[list[int], list[int]]] | None:
    """Groups of dimensions of two shapes of one tensor with equal products.

    Dimensions of extent 1 are in no group. None where a group has several
    dimensions on both sides, or where the products of symbols do not tell.
    """
    left = [dim for dim, extent in enumerate(source) if extent != 1]
    right = [dim for dim, extent in enumerate(target) if extent != 1]
    groups: list[tuple[list[int], list[int]]] = []
    while left and right:
        ins, outs = [left.pop(0)], [right.pop(0)]
        a, b = source[ins[0]], target[outs[0]]
        while a != b:
            if quotient(b, a) is not None and left and len(outs) == 1:
                ins.append(left.pop(0))
                a = product([a, source[ins[-1]]])
            elif quotient(a, b) is not None and right and len(ins) == 1:
                outs.append(right.pop(0))
                b = product([b, target[outs[-1]]])
            else:
                return None
        groups.append((ins, outs))
    return None if left or right else groups


@dataclass
class Layout:
    """The loops of a product. Loops split, but never change otherwise."""

    extents: list[Extent] = field(default_factory=list)
    parts: dict[Loop, tuple[Loop, ...]] = field(default_factory=dict)
    #: Loops that must not be split: a product has one reduce axis.
    whole: frozenset[Loop] = frozenset()

    def copy(self) -> Layout:
        return Layout(list(self.extents), dict(self.parts), self.whole)

    def add(self, extent: Extent) -> Loop:
        self.extents.append(extent)
        return len(self.extents) - 1

    def leaves(self, loops: Sequence[Loop]) -> tuple[Loop, ...]:
        """The loops that these have been split into, in order."""
        return tuple(
            leaf
            for loop in loops
            for leaf in (self.leaves(self.parts[loop]) if loop in self.parts else (loop,))
        )

    def resolve(self, dims: Dims) -> Dims:
        return tuple(self.leaves(loops) for loops in dims)

    def split(self, loops: Sequence[Loop], extents: Sequence[Extent]) -> Dims | None:
        """Distributes loops over dimensions of these extents, splitting some."""
        pending = list(self.leaves(loops))
        result: list[tuple[Loop, ...]] = []
        for extent in extents:
            taken: list[Loop] = []
            missing = extent
            while missing != 1:
                if not pending:
                    return None
                loop = pending.pop(0)
                rest = quotient(missing, self.extents[loop])
                if rest is not None:
                    taken.append(loop)
                    missing = rest
                    continue
                inner = quotient(self.extents[loop], missing)
                if inner is None or loop in self.whole:
                    return None
                outer_loop, inner_loop = self.add(missing), self.add(inner)
                self.parts[loop] = (outer_loop, inner_loop)
                taken.append(outer_loop)
                pending.insert(0, inner_loop)
                missing = 1
            result.append(tuple(taken))
        return None if pending else tuple(result)

    def through_reshape(
        self, shape: Sequence[Extent], dims: Dims, target: Sequence[Extent]
    ) -> Dims | None:
        """The loops of a tensor with extents ``shape`` and loops ``dims`` after a reshape to ``target``."""
        groups = reassociate(shape, target)
        if groups is None:
            return None
        result: list[tuple[Loop, ...]] = [()] * len(target)
        for ins, outs in groups:
            # A dimension that is broadcast is walked by no loop.
            if any(not dims[dim] for dim in ins):
                if len(ins) == len(outs) == 1 or all(not dims[dim] for dim in ins):
                    continue
                return None
            loops = self.leaves([loop for dim in ins for loop in dims[dim]])
            parts = self.split(loops, [target[dim] for dim in outs])
            if parts is None:
                return None
            for dim, part in zip(outs, parts):
                result[dim] = part
        return tuple(result)


def permutation_of(node: fx.Node) -> list[int]:
    """``permutation[i]`` is the input's dimension that is dimension i of the result."""
    rank = len(operand_of(node).meta["val"].shape)
    order = list(range(rank))
    arguments: tuple[Any, ...] = node.args
    if node.target is aten.permute.default:
        return [dim % rank for dim in arguments[1]]
    if node.target is aten.transpose.int:
        a, b = arguments[1] % rank, arguments[2] % rank
        order[a], order[b] = order[b], order[a]
        return order
    return order[::-1]


def step_back(layout: Layout, node: fx.Node, dims: Dims) -> Dims | None:
    """The loops of a view's operand, from the loops of its result."""
    source = operand_of(node)
    if node.target in PERMUTATIONS:
        result: list[tuple[Loop, ...]] = [()] * len(dims)
        for dim, origin in enumerate(permutation_of(node)):
            result[origin] = dims[dim]
        return tuple(result)
    if node.target in EXPANSIONS:
        shape, expanded = shape_of(source), shape_of(node)
        kept = dims[len(dims) - len(shape) :]
        offset = len(expanded) - len(shape)
        return tuple(
            () if extent == 1 and expanded[dim + offset] != 1 else kept[dim]
            for dim, extent in enumerate(shape)
        )
    if node.target in RESHAPES:
        return layout.through_reshape(shape_of(node), dims, shape_of(source))
    return dims


def step_forward(layout: Layout, node: fx.Node, dims: Dims) -> Dims | None:
    """The loops of a view's result, from the loops of its operand."""
    source = operand_of(node)
    if node.target in PERMUTATIONS:
        return tuple(dims[origin] for origin in permutation_of(node))
    if node.target in EXPANSIONS:
        if shape_of(source) != shape_of(node):
            return None
        return dims
    if node.target in RESHAPES:
        return layout.through_reshape(shape_of(source), dims, shape_of(node))
    return dims


def is_contiguous(node: fx.Node) -> bool:
    """Returns whether a tensor is surely row-major and without gaps. Adds no guard."""
    step: Extent = 1
    extents = shape_of(node)
    for extent, stride in reversed(list(zip(extents, node.meta["val"].stride()))):
        if extent == 1:
            continue
        if stride_of(stride) != step:
            return False
        step = product([step, extent])
    return True


def repeated_dims(node: fx.Node) -> tuple[int, ...]:
    """The dimensions along which a tensor has the same elements again and again, and surely some."""
    value = node.meta["val"]
    return tuple(
        dim
        for dim, (size, stride) in enumerate(zip(value.shape, value.stride()))
        if extent_of(size) != 1 and stride_of(stride) == 0 and statically_known_true(size >= 1)
    )


def memory_order(node: fx.Node, repeated: Sequence[int] = ()) -> tuple[int, ...] | None:
    """The dimensions of a tensor in the order that they have in memory.

    None if it has gaps, or if its strides do not tell. Adds no guard.

    Args:
        repeated: dimensions of which one element is taken.
    """
    value = node.meta["val"]
    extents: list[Extent] = [
        1 if dim in repeated else extent for dim, extent in enumerate(shape_of(node))
    ]
    strides = [stride_of(stride) for stride in value.stride()]
    left = [dim for dim in range(len(extents)) if extents[dim] != 1]
    units = [dim for dim in range(len(extents)) if extents[dim] == 1]
    inner: list[int] = []
    step: Extent = 1
    while True:
        # A dimension of extent 1 is where its stride says, or in front.
        fitting = [dim for dim in units if strides[dim] == step]
        units = [dim for dim in units if dim not in fitting]
        inner = fitting + inner
        if not left:
            return (*units, *inner)
        found = next((dim for dim in reversed(left) if strides[dim] == step), None)
        if found is None:
            return None
        left.remove(found)
        inner.insert(0, found)
        step = product([step, extents[found]])


def description(node: fx.Node) -> str:
    """A tensor with its sizes and strides, for reasons in reports."""
    value = node.meta["val"]
    sizes, strides = (
        ", ".join(map(str, map(extent_of, numbers))) for numbers in (value.shape, value.stride())
    )
    return f"'{node.name}' of sizes ({sizes}) and strides ({strides})"


@dataclass(frozen=True)
class Cut:
    """A part of a dimension: it begins at `offset` in a dimension of `extent` elements."""

    offset: int
    extent: Extent


@dataclass
class Access:
    """A tensor that a product can read, and the loops of its dimensions.

    Attributes:
        dims: the loops of the dimensions, in the order of memory where the tensor is dense.
        order: the dimensions in the order that they have in memory; None: as they are.
        repeated: dimensions of the tensor that repeat its elements, of which no loop walks any.
        cuts: the part of each dimension that is read; None: the dimension as a whole.
        copies: copies between this tensor and the operand of the graph.
        is_dense: true if all elements of the tensor lie in memory without gaps.
    """

    node: fx.Node
    dims: Dims
    layout: Layout
    copies: int
    depth: int
    cuts: tuple[Cut | None, ...]
    order: tuple[int, ...] | None = None
    repeated: tuple[int, ...] = ()
    is_dense: bool = False

    @property
    def has_cuts(self) -> bool:
        return any(self.cuts)

    @property
    def segments(self) -> list[Dims]:
        """The dimensions in runs that lie in memory without gaps: one that is cut is by itself.

        Runs of whole dimensions, which may be empty, and dimensions that are cut take turns.
        """
        runs: list[Dims] = []
        run: Dims = ()
        for loops, cut in zip(self.dims, self.cuts):
            if cut is None:
                run = (*run, loops)
            else:
                runs += [run, (loops,)]
                run = ()
        return [*runs, run]

    def in_memory(self) -> Access:
        """The access with dimensions in the order of memory, as it is if the tensor has gaps."""
        if is_contiguous(self.node):
            return replace(self, is_dense=True)
        repeated = repeated_dims(self.node)
        order = memory_order(self.node, repeated)
        if order is None:
            return self
        return replace(
            self,
            dims=tuple(() if dim in repeated else self.dims[dim] for dim in order),
            cuts=tuple(None if dim in repeated else self.cuts[dim] for dim in order),
            order=order,
            repeated=repeated,
            is_dense=True,
        )


@dataclass(frozen=True)
class _Part:
    """A part of a tensor along a dimension, which is dropped if the part is one `element`."""

    source: fx.Node
    dim: int
    cut: Cut
    is_element: bool


def _part_of(node: fx.Node) -> _Part | None:
    """The part of another tensor that a node is; None for other nodes, or if the part is not known."""
    source, taken, position = operand_of(node), node, 0
    if node.target is operator.getitem:
        taken, position = source, cast(int, node.args[1])
        if taken.target not in SPLITS:
            return None
        source = operand_of(taken)
    if "val" not in source.meta:  # The call of a function.
        return None
    arguments: tuple[Any, ...] = taken.args
    place = 2 if taken.target in (aten.split.Tensor, aten.split_with_sizes.default) else 1
    shape = shape_of(source)
    dim: int = (arguments[place] if len(arguments) > place else 0) % len(shape)
    is_element = taken.target in (aten.select.int, aten.unbind.int)
    extent, kept = shape[dim], 1 if is_element else shape_of(node)[dim]
    offset: Any
    if taken.target is aten.select.int:
        offset = arguments[2]
    elif taken.target is aten.unbind.int:
        offset = position
    elif taken.target is aten.split.Tensor:
        offset = arguments[1] * position
    elif taken.target is aten.split_with_sizes.default:
        offset = sum(arguments[1][:position]) if _are_known(arguments[1]) else None
    else:
        offset = arguments[2] if len(arguments) > 2 else 0
        if len(arguments) > 4 and arguments[4] != 1:
            return None
    if not _are_known([offset, kept]) or not kept:
        return None
    if offset < 0:
        if not isinstance(extent, int):
            return None
        offset = max(offset + extent, 0)
    return _Part(source, dim, Cut(offset, extent), is_element)


def _are_known(sizes: Sequence[Any]) -> bool:
    """Returns whether sizes are numbers, rather than symbols or nodes."""
    return all(isinstance(size, int) for size in sizes)


def walk_back(layout: Layout, node: fx.Node, dims: Dims) -> Iterator[Access]:
    """The tensors that hold an operand: itself, and those that it is a view or a part of."""
    copies = 0
    layout = layout.copy()
    cuts: tuple[Cut | None, ...] = (None,) * len(dims)
    for depth in itertools.count():
        yield Access(node, layout.resolve(dims), layout.copy(), copies, depth, cuts)
        if node.op != "call_function":
            return
        if node.target in SLICES or node.target is operator.getitem:
            part = _part_of(node)
            if part is None:
                return
            dim, after = part.dim, part.dim + (not part.is_element)
            cut, known = part.cut, None if part.is_element else cuts[dim]
            if known is not None:
                cut = replace(cut, offset=cut.offset + known.offset)
            node = part.source
            dims = (*dims[:dim], () if part.is_element else dims[dim], *dims[after:])
            cuts = (*cuts[:dim], cut, *cuts[after:])
            continue
        if node.target not in VIEWS:
            return
        if "val" not in operand_of(node).meta:  # The call of a function.
            return
        if any(cuts):
            if node.target not in PERMUTATIONS | ALIASES:
                return
            if node.target in PERMUTATIONS:
                permutation = permutation_of(node)
                cuts = tuple(cuts[permutation.index(dim)] for dim in range(len(cuts)))
        copies += node.target in COPIES
        previous = step_back(layout, node, layout.resolve(dims))
        if previous is None:
            return
        node, dims = operand_of(node), previous
        if not any(cuts):
            cuts = (None,) * len(dims)


def accesses(layout: Layout, node: fx.Node, dims: Dims) -> list[Access]:
    """The tensors to read an operand from, best first.

    Best is a dense tensor before as many copies as possible, then one that is read as a whole, then
    one whose dimensions lie in their order, then the one with the fewest views in between. The last
    is the operand itself, of which a copy must be made if it is not contiguous.
    """
    found = [access.in_memory() for access in walk_back(layout, node, dims)]
    ranked = sorted(
        (access for access in found if access.is_dense),
        key=lambda one: (-one.copies, one.has_cuts, one.order is not None, one.depth),
    )
    if is_contiguous(node):
        return ranked
    return [*ranked, next(walk_back(layout, node, dims))]


def join_loops(layout: Layout, dims: Iterable[Dims]) -> list[tuple[Loop, ...]]:
    """Groups of loops that every tensor has side by side in one order.

    Each group is one loop of the function. Returned in no particular order.
    """
    walks = [[loop for loops in layout.resolve(tensor) for loop in loops] for tensor in dims]
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
