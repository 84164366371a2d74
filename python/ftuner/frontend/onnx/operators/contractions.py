"""Sums of products of elements, which read their operands in place.

An operand without a batch dimension is accessed without it, so nothing is copied or transposed before.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..emitter import Emitter
from ..sizes import Size
from ..values import Value
from .reductions import sums_kind


def contract(
    e: Emitter,
    loops: Sequence[Size],
    lhs: tuple[Value, Sequence[Any]],
    rhs: tuple[Value, Sequence[Any]],
    result: Sequence[int],
    reduced: Sequence[int],
    kind: int,
) -> Value:
    """The sum of products of elements over loops, in `kind`."""
    values = []
    for value, access in (lhs, rhs):
        # A dimension of size 1 is read at 0 if the loop may have more iterations.
        e.use(value)
        values.append((value, [
            None if isinstance(a, int) and value.dims[place] == 1 and loops[a] != 1 else a
            for place, a in enumerate(access)
        ]))  # fmt: skip
    (found,) = e.generic(
        loops,
        values,
        [(kind, result, 0)],
        lambda b, x, y, s: b.add(s, b.mul(b.cast(x, kind), b.cast(y, kind))),
        reduced,
    )
    return found


def matrix_product(
    e: Emitter, a: Value, b: Value, kind: int | None = None, *, is_transposed: bool = False
) -> Value:
    """NumPy's matmul; a transposed `b` has columns by rows."""
    kind = sums_kind(a.kind) if kind is None else kind
    if a.rank == 0 or b.rank == 0:
        raise e.node.refuse("an operand has no dimensions", "give it matrices")
    a_length, b_length = a.dims[-1], b.dims[-1 if b.rank == 1 or is_transposed else -2]
    e.check_equal(a_length, b_length, "expected as many columns of A as rows of B")
    batches = [[*a.dims[:-2]], [*b.dims[:-2]]]
    batch = e.broadcast_dims(batches) if any(batches) else []
    fitted = []
    for value, own in zip((a, b), batches):
        shared = batch[len(batch) - len(own) :]
        if all(size == 1 or e.is_equal(size, other) for size, other in zip(own, shared)):
            fitted.append(value)
        else:
            fitted.append(e.expand(value, [*shared, *value.dims[-2:]]))
    a, b = fitted
    rows = [a.dims[-2]] if a.rank > 1 else []
    columns = [b.dims[-2 if is_transposed else -1]] if b.rank > 1 else []
    count = len(batch)
    row, column, inner = count, count + len(rows), count + len(rows) + len(columns)
    loops = [*batch, *rows, *columns, a_length]
    lhs = [*range(count - len(batches[0]), count), *([row] if rows else []), inner]
    last = [column, inner] if is_transposed else [inner, column]
    rhs = [*range(count - len(batches[1]), count), *(last if columns else [inner])]
    return contract(e, loops, (a, lhs), (b, rhs), range(inner), [inner], kind)
