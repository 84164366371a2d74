"""The main function of a model, written as linalg on tensors.

How to add an operator
======================

Write a function with `@lowers("Name", ...)` in the file of its family in `operators` (a new file is added
to `registry.FAMILIES`); it gets the emitter and the node, and returns the node's result, or a list of results::

    @lowers("Relu")
    def relu(e: Emitter, n: Node) -> Value:
        (x,) = n.inputs
        return e.pointwise(x.kind, [x], lambda b, a: b.max(a, b.like(0, a)))

* `n.inputs` are `Value`s, None where an optional one is left out; `n.input(i)` is None beyond the end.
  `n.attr("axis", 0)` is an attribute (strings are `str`), `n.version` the operator set of the node:
  an operator whose meaning changed reads it. `n.numbers(i)` are the elements of an input that must be known (a
  list of sizes; refused in one sentence otherwise), and `n.integers(i)` are its elements if all are `int`s.
  `raise n.refuse(reason, advice)` refuses the node, in one sentence.
* `value.kind` is the type of its elements in ONNX (`TensorProto.FLOAT`), `value.dims` its sizes: `int`s, or
  `Expr`s of the model's symbols (`sizes.py`). Compute with them by + - * // % and `sizes.maximum` etc.; the
  emitter prints them as arithmetic on indices, and as `?` in types. `==` is "known to be equal".
  `e.check_equal(a, b, what)` emits a check at run time where two sizes must be equal and are not known to be.
* `e.pointwise(kind, values, body)` broadcasts; `e.compute(dims, kind, body)` computes each element from its
  indices (`b.extract(x, places)` reads an element); `e.generic(...)` is any linalg.generic; `e.reduce(...)` reduces
  axes; `e.reshape`, `e.transpose`, `e.slice`, `e.pad`, `e.expand`, `e.concat`, `e.cast` move elements.
  Bodies get a `scalars.Body` and `Scalar`s: `b.add`, `b.max` (keeps NaN), `b.select`, `b.cast` ...
* `e.call("Softmax", x, axis=-1)` emits another operator of ONNX, in its meaning of operator set 21.
* Elements of a tensor must not decide a size: a size is an expression of sizes.

A value that is known before a run has `value.array`, and integers that come from shapes `value.sizes`; both
are folded before an operator is lowered (`folding.py`), so no operator needs to care.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from onnx import TensorProto

from . import sizes as arithmetic
from .scalars import Body, Scalar
from .sizes import Expr, Size, product
from .values import ELEMENTS, INDEX, Value, dtype_of
from .writer import Writer, is_weight


class Emitter(Writer):
    """Writes the operations of one function; see the module's text."""

    def generic(
        self,
        loops: Sequence[Size],
        inputs: Sequence[tuple[Value, Sequence[Any]]],
        outputs: Sequence[tuple[int, Sequence[Any], Any]],
        body: Callable[..., Any],
        reductions: Sequence[int] = (),
    ) -> list[Value]:
        """A linalg.generic.

        Args:
            loops: their extents.
            inputs: each with the access of its dimensions: numbers of loops, or affine expressions.
            outputs: for each its kind, the access of its dimensions (numbers of loops, or None for a dimension
                of size 1) and its initial elements: None for no initial value, a number, or a `Value`.
            body: gets a `Body`, a scalar for each input, and one for each output with an initial
                value; returns a scalar, or one for each output.
            reductions: loops that are reduced.
        """
        names = ", ".join(f"d{number}" for number in range(len(loops)))

        def map_of(access: Sequence[Any]) -> str:
            places = ("0" if a is None else f"d{a}" if isinstance(a, int) else a for a in access)
            return f"affine_map<({names}) -> ({', '.join(places)})>"

        operands, types, maps, arguments, given = [], [], [], [], []
        for value, access in inputs:
            if value.ssa is None and value.array is not None and value.array.size == 1:
                given.append(Scalar(self.scalar(value.array.flat[0], value.kind), value.kind))
                continue
            operands.append(self.use(value))
            types.append(value.type)
            maps.append(map_of(access))
            given.append(Scalar(self.fresh(), value.kind))
            arguments.append(f"{given[-1].ssa}: {value.element}")
        results, outs = [], []
        for kind, access, begin in outputs:
            dims = tuple(1 if a is None else loops[a] for a in access)
            if begin is None:
                outs.append(self.empty(dims, kind))
            elif isinstance(begin, Value):
                outs.append(self.use(begin))
            else:
                outs.append(self.use(self.filled(dims, begin, kind)))
            results.append(Value(kind, dims))
            maps.append(map_of(access))
            scalar = Scalar(self.fresh(), kind)
            arguments.append(f"{scalar.ssa}: {scalar.element}")
            if begin is not None:
                given.append(scalar)
        block = Body(self)
        found = body(block, *given)
        found = found if isinstance(found, (tuple, list)) else [found]
        kinds = ", ".join(
            '"reduction"' if i in reductions else '"parallel"' for i in range(len(loops))
        )
        result_types = ", ".join(result.type for result in results)
        name = self.fresh()
        target = name if len(results) == 1 else f"{name}:{len(results)}"
        ins = f" ins({', '.join(operands)} : {', '.join(types)})" if operands else ""
        self._lines += [
            f"{target} = linalg.generic {{indexing_maps = [{', '.join(maps)}], iterator_types = [{kinds}]}}{ins}"
            f" outs({', '.join(outs)} : {result_types}) {{",
            f"^bb0({', '.join(arguments)}):",
            *(f"  {line}" for line in block.lines),
            f"  linalg.yield {', '.join(s.ssa for s in found)} : {', '.join(s.element for s in found)}{self.location}",
        ]
        arrow = result_types if len(results) == 1 else f"({result_types})"
        self._lines.append(f"}} -> {arrow}{self.location}")
        for number, result in enumerate(results):
            result.ssa = name if len(results) == 1 else f"{name}#{number}"
        return results

    def compute(self, dims: Sequence[Size], kind: int, body: Callable[..., Scalar]) -> Value:
        """A tensor whose elements `body` computes from a `Body` and their indices."""

        def at(b: Body) -> Scalar:
            return body(b, *(b.index(loop) for loop in range(len(dims))))

        (result,) = self.generic(dims, [], [(kind, range(len(dims)), None)], at)
        return result

    def pointwise(
        self,
        kind: int,
        values: Sequence[Value],
        body: Callable[..., Scalar],
        dims: Sequence[Size] | None = None,
    ) -> Value:
        """A tensor of `kind`; `body` computes each element from the elements of tensors, which are broadcast.

        `dims` are the result's sizes if they are known otherwise.
        """
        dims = self.broadcast_dims([value.dims for value in values]) if dims is None else dims
        values = [self._fitted(value, dims) for value in values]
        inputs = [(value, self._access_of(value, dims)) for value in values]
        (result,) = self.generic(dims, inputs, [(kind, range(len(dims)), None)], body)
        return result

    def broadcast_dims(self, shapes: Sequence[Sequence[Size]]) -> list[Size]:
        """The shape of a result of operands that are broadcast; checks that they can be."""
        rank = max(map(len, shapes))
        result: list[Size] = []
        for place in range(-rank, 0):
            sizes = [shape[place] for shape in shapes if len(shape) >= -place]
            size: Size = 1
            for other in sizes:
                if not self.is_equal(size, other):
                    size = arithmetic.broadcast(size, other)
            for other in sizes:
                self._check_broadcast(other, size, place + rank)
            result.append(size)
        return result

    def _check_broadcast(self, size: Size, result: Size, dim: int) -> None:
        if size == 1 or self.is_equal(size, result):
            return
        clause = f"expected sizes of dimension {dim} of its operands that are equal or 1"
        if isinstance(size, int) and isinstance(result, int):
            raise self.node.refuse(
                f"{clause}, but got {size} and {result}", "give it operands that fit"
            )
        if ("broadcast", size, result) in self._checked:
            return
        self._checked.add(("broadcast", size, result))
        left = self.index(size)
        is_same = self._index_op(f"arith.cmpi eq, {left}, {self.index(result)} : index")
        is_one = self._index_op(f"arith.cmpi eq, {left}, {self.scalar(1, INDEX)} : index")
        self.check(self._index_op(f"arith.ori {is_same}, {is_one} : i1"), clause)

    def _fitted(self, value: Value, dims: Sequence[Size]) -> Value:
        """The operand itself if each of its sizes is 1 or the result's, else the broadcast operand."""
        own = dims[len(dims) - value.rank :]
        if all(a == 1 or self.is_equal(a, b) for a, b in zip(value.dims, own)):
            return value
        return self.expand(value, own)

    def _access_of(self, value: Value, dims: Sequence[Size]) -> list[Any]:
        first = len(dims) - value.rank
        return [
            None if size == 1 and dims[first + place] != 1 else first + place
            for place, size in enumerate(value.dims)
        ]

    def expand(self, value: Value, dims: Sequence[Size]) -> Value:
        """The value broadcast to `dims`, where sizes of 1 at run time count, too."""
        first = len(dims) - value.rank
        if tuple(dims) == value.dims:
            return value
        if all(a == 1 or self.is_equal(a, b) for a, b in zip(value.dims, dims[first:])):
            return self.pointwise(value.kind, [value], lambda b, x: x, dims)

        def body(b: Body, *places: Scalar) -> Scalar:
            zero, one = b.const(0, INDEX), b.const(1, INDEX)
            chosen = []
            for size, result, place in zip(value.dims, dims[first:], places[first:]):
                if size == 1:
                    place = zero
                elif not self.is_equal(size, result):
                    place = b.select(b.compare("eq", b.size(size), one), zero, place)
                chosen.append(place)
            return b.extract(value, chosen)

        for size in [*value.dims, *dims]:
            self.index(size)
        self.use(value)
        return self.compute(dims, value.kind, body)

    def reduce(
        self,
        value: Value,
        axes: Sequence[int],
        init: Any,
        combine: Callable[[Body, Scalar, Scalar], Scalar],
        keepdims: bool = True,
        prepare: Callable[[Body, Scalar], Scalar] | None = None,
        kind: int | None = None,
    ) -> Value:
        """A reduction of axes: `combine` joins an element that `prepare` computed with the value so far."""
        kind = value.kind if kind is None else kind
        axes = sorted(axis % value.rank for axis in axes)
        access = [None if i in axes else i for i in range(value.rank) if keepdims or i not in axes]

        def body(b: Body, element: Scalar, total: Scalar) -> Scalar:
            return combine(b, prepare(b, element) if prepare else element, total)

        if value.ssa is None and value.array is not None:
            self.use(value)
        (result,) = self.generic(
            value.dims, [(value, range(value.rank))], [(kind, access, init)], body, axes
        )
        return result

    # Moves.

    def cast(self, value: Value, kind: int) -> Value:
        """The elements in another type."""
        if value.kind == kind:
            return value
        if value.array is not None and value.is_small:
            with np.errstate(all="ignore"):
                return self.constant(value.array.astype(dtype_of(kind)), kind)
        if ELEMENTS[value.kind] == ELEMENTS[kind] and value.kind != TensorProto.BOOL:
            return Value(kind, value.dims, self.use(value))
        return self.pointwise(kind, [value], lambda b, x: b.cast(x, kind))

    def transpose(self, value: Value, perm: Sequence[int]) -> Value:
        if [*perm] == [*range(value.rank)]:
            return value
        dims = [value.dims[axis] for axis in perm]
        access = [[*perm].index(axis) for axis in range(value.rank)]
        self.use(value)
        (result,) = self.generic(
            dims, [(value, access)], [(value.kind, range(value.rank), None)], lambda b, x: x
        )
        return result

    def slice(
        self,
        value: Value,
        offsets: Sequence[Size],
        dims: Sequence[Size],
        steps: Sequence[int] | None = None,
    ) -> Value:
        """Elements from `offsets` on; steps may be negative. All of them must be inside of the value."""
        steps = [1] * value.rank if steps is None else steps
        is_whole = all(offset == 0 for offset in offsets) and all(step == 1 for step in steps)
        if is_whole and tuple(dims) == value.dims:
            return value
        if any(size == 0 for size in dims):
            return Value(value.kind, tuple(dims), self.empty(dims, value.kind))
        if any(step < 0 for step in steps):
            for size in offsets:
                self.index(size)
            self.use(value)

            def body(b: Body, *places: Scalar) -> Scalar:
                return b.extract(value, [
                    b.add(b.size(offset), b.mul(place, b.const(step, INDEX)))
                    for offset, place, step in zip(offsets, places, steps)
                ])  # fmt: skip

            return self.compute(dims, value.kind, body)
        result = Value(value.kind, tuple(dims))
        parts = [self._list(offsets), self._list(dims), self._list(steps)]
        source = self.use(value)
        result.ssa = self.op(
            f"tensor.extract_slice {source}{''.join(parts)} : {value.type} to {result.type}"
        )
        return result

    def _list(self, sizes: Sequence[Size]) -> str:
        return f"[{', '.join(str(s) if isinstance(s, int) else self.index(s) for s in sizes)}]"

    def pad(self, value: Value, low: Sequence[Size], high: Sequence[Size], fill: Any) -> Value:
        """A tensor with `fill`, a number or a `Scalar`, around the value; pads must not be negative."""
        if all(size == 0 for size in [*low, *high]):
            return value
        dims = tuple(a + size + b for a, size, b in zip(low, value.dims, high))
        result = Value(value.kind, dims)
        name = fill.ssa if isinstance(fill, Scalar) else self.scalar(fill, value.kind)
        source, below, above = self.use(value), self._list(low), self._list(high)
        indices = ", ".join(f"{self.fresh()}: index" for _ in dims)
        result.ssa = self.fresh()
        self._lines += [
            f"{result.ssa} = tensor.pad {source} low{below} high{above} {{",
            f"^bb0({indices}):",
            f"  tensor.yield {name} : {value.element}{self.location}",
            f"}} : {value.type} to {result.type}{self.location}",
        ]
        return result

    def concat(self, values: Sequence[Value], axis: int) -> Value:
        """Tensors one after the other along an axis; their other sizes must be equal."""
        first = values[0]
        axis %= first.rank
        for number, value in enumerate(values[1:], 1):
            for dim in range(first.rank):
                if dim != axis:
                    clause = f"expected operand {number} to have the size of the first in dimension {dim}"
                    self.check_equal(value.dims[dim], first.dims[dim], clause)
        dims = list(first.dims)
        dims[axis] = sum((value.dims[axis] for value in values[1:]), first.dims[axis])
        if len(values) == 1:
            return first
        result = Value(first.kind, tuple(dims))
        target = self.empty(dims, first.kind)
        offset: Size = 0
        for value in values:
            if value.dims[axis] == 0 or any(dim == 0 for dim in dims):
                continue
            offsets = [offset if dim == axis else 0 for dim in range(first.rank)]
            parts = [dims[dim] if dim != axis else value.dims[axis] for dim in range(first.rank)]
            part = self.retype(value, parts)
            places = self._list(offsets) + self._list(parts) + self._list([1] * first.rank)
            source = self.use(part)
            target = self.op(
                f"tensor.insert_slice {source} into {target}{places} : {part.type} into {result.type}"
            )
            offset = offset + value.dims[axis]
        result.ssa = target
        return result

    def reshape(
        self,
        value: Value,
        dims: Sequence[Size],
        clause: str = "expected as many elements as there are",
    ) -> Value:
        """The elements in the same order with other sizes; checks that their number is the same."""
        dims = tuple(dims)
        if dims == value.dims:
            return value
        if value.array is not None and value.is_small and all(isinstance(d, int) for d in dims):
            return self.constant(
                value.array.reshape([int(d) for d in dims if isinstance(d, int)]), value.kind
            )
        self.check_equal(product(dims), product(value.dims), clause)
        if product(dims) == 0 or product(value.dims) == 0:
            return Value(value.kind, dims, self.empty(dims, value.kind))
        if not value.rank or not dims:
            return self._reshape_of_one(value, dims)
        groups = _groups(value.dims, dims)
        # Each group is collapsed to one dimension first, whose size is static where all are that
        # it becomes.
        before = [product(value.dims[d] for d in source) for source, _ in groups]
        after = [product(dims[d] for d in target) for _, target in groups]
        kept = value
        if any(len(source) != 1 for source, _ in groups):
            kept = self._collapsed(value, [source for source, _ in groups], before)
        if any(len(target) != 1 for _, target in groups):
            kept = self.retype(kept, [
                a if all(isinstance(dims[d], int) for d in target) else _Dynamic(a)
                for a, (_, target) in zip(after, groups)
            ])  # fmt: skip
            result = Value(value.kind, dims)
            parts = ", ".join(f"[{', '.join(map(str, target))}]" for _, target in groups)
            source_name, shape = self.use(kept), self._list(dims)
            result.ssa = self.op(
                f"tensor.expand_shape {source_name} [{parts}] output_shape {shape} : "
                f"{kept.type} into {result.type}"
            )
            return result
        return self.retype(kept, dims)

    def _reshape_of_one(self, value: Value, dims: tuple[Size, ...]) -> Value:
        """A reshape from or to a tensor without dimensions."""
        if dims:
            ones = Value(value.kind, (1,) * len(dims))
            source = self.use(value)
            shape = self._list(ones.dims)
            ones.ssa = self.op(
                f"tensor.expand_shape {source} [] output_shape {shape} : {value.type} into {ones.type}"
            )
            return self.retype(ones, dims)
        ones = self.retype(value, [1] * value.rank)
        result = Value(value.kind, ())
        source = self.use(ones)
        result.ssa = self.op(f"tensor.collapse_shape {source} [] : {ones.type} into {result.type}")
        return result

    def _collapsed(
        self, value: Value, sources: Sequence[Sequence[int]], after: Sequence[Size]
    ) -> Value:
        parts = ", ".join(f"[{', '.join(map(str, source))}]" for source in sources)
        # The size is dynamic where one of its parts is.
        shown = tuple(
            a if all(isinstance(value.dims[d], int) for d in source) else _Dynamic(a)
            for a, source in zip(after, sources)
        )
        result = Value(value.kind, shown)
        source_name = self.use(value)
        result.ssa = self.op(
            f"tensor.collapse_shape {source_name} [{parts}] : {value.type} into {result.type}"
        )
        return result

    def insert(
        self, part: Value, whole: Value, offsets: Sequence[Size], steps: Sequence[int] | None = None
    ) -> str:
        """The name of the whole with other elements from `offsets` on."""
        steps = [1] * part.rank if steps is None else steps
        if any(size == 0 for size in part.dims):
            return self.use(whole)
        places = self._list(offsets) + self._list(part.dims) + self._list(steps)
        source, target = self.use(part), self.use(whole)
        return self.op(
            f"tensor.insert_slice {source} into {target}{places} : {part.type} into {whole.type}"
        )

    def loop(
        self, count: Size, states: Sequence[Value], body: Callable[[str, list[Value]], list[Value]]
    ) -> list[Value]:
        """States after a loop: `body` of the step's number, an index, and the states before the step."""
        before = [self.use(state) for state in states]
        zero, one, end = self.scalar(0, INDEX), self.scalar(1, INDEX), self.index(count)
        place, name = self.fresh(), self.fresh()
        inner = [Value(state.kind, state.dims, self.fresh()) for state in states]
        outer, self._lines = self._lines, []
        after = [
            self.use(self.retype(value, state.dims))
            for value, state in zip(body(place, inner), states)
        ]
        lines, self._lines = self._lines, outer
        types = ", ".join(state.type for state in states)
        given = ", ".join(f"{value.ssa} = {first}" for value, first in zip(inner, before))
        self._lines += [
            f"{name}:{len(states)} = scf.for {place} = {zero} to {end} step {one} "
            f"iter_args({given}) -> ({types}) {{",
            *(line if not isinstance(line, str) else f"  {line}" for line in lines),
            f"  scf.yield {', '.join(after)} : {types}{self.location}",
            f"}}{self.location}",
        ]
        return [
            Value(state.kind, state.dims, f"{name}#{number}") for number, state in enumerate(states)
        ]

    # Other operators.

    def call(
        self, operator: str, *values: Value | None, outputs: int = 1, **attributes: Any
    ) -> Any:
        """The result of another operator of ONNX, of operator set 21; a list if there are several."""
        assert self.caller is not None
        return self.caller(operator, values, outputs, attributes)


def _Dynamic(size: Size) -> Size:
    """The size as a dynamic size in types."""
    return size if isinstance(size, Expr) else Expr((((), size),))


def _groups(a: Sequence[Size], b: Sequence[Size]) -> list[tuple[list[int], list[int]]]:
    """Dimensions of two shapes in groups of equal products, as small as they are; the last takes the rest."""
    groups: list[tuple[list[int], list[int]]] = []
    i = j = 0
    while i < len(a) and j < len(b):
        found = next(
            (
                (p, q)
                for total in range(2, len(a) + len(b) - i - j + 1)
                for p in range(i + 1, min(len(a), i + total - 1) + 1)
                for q in [j + total - (p - i)]
                if j < q <= len(b) and product(a[i:p]) == product(b[j:q])
            ),
            (len(a), len(b)),
        )
        groups.append(([*range(i, found[0])], [*range(j, found[1])]))
        i, j = found
    groups[-1][0].extend(range(i, len(a)))
    groups[-1][1].extend(range(j, len(b)))
    return groups


__all__ = ["Emitter", "is_weight"]
