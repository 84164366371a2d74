"""TopK: the largest or smallest elements of an axis, and their positions."""

from __future__ import annotations

from onnx import TensorProto

from ..emitter import Emitter
from ..registry import Node, lowers
from ..scalars import Body, Scalar
from ..sizes import Size
from ..values import Value
from .shapes import axis_of

I64, BOOL = TensorProto.INT64, TensorProto.BOOL


@lowers("TopK")
def top_k(e: Emitter, n: Node) -> list[Value]:
    """Sorts by counting: an element's place in the order is the number of elements that come before it.

    The work grows with the square of the axis, but any number of rows is computed at once. Equal elements keep their
    order, and NaN is larger than any number.
    """
    x = n.inputs[0]
    assert x is not None
    axis = axis_of(n, -1, x.rank)
    count: Size = n.attr("k") if n.version < 10 else n.numbers(1)[0]
    _check_count(e, n, count, x.dims[axis])
    largest = bool(n.attr("largest", 1))
    own, last = [*range(x.rank)], x.rank
    other = [last if dim == axis else dim for dim in own]

    def comes_before(b: Body, a: Scalar, c: Scalar) -> Scalar:
        above = b.compare("gt" if largest else "lt", a, c)
        if not a.is_float:
            return above
        first, second = (a, c) if largest else (c, a)
        is_number = b.compare("eq", second, second)
        return b.bit_or(above, b.bit_and(b.is_nan(first), is_number))

    def place(b: Body, element: Scalar, compared: Scalar, total: Scalar) -> Scalar:
        ahead = comes_before(b, compared, element)
        is_equal = b.invert(b.bit_or(ahead, comes_before(b, element, compared)))
        is_earlier = b.compare("lt", b.index(last), b.index(axis))
        ahead = b.bit_or(ahead, b.bit_and(is_equal, is_earlier))
        return b.add(total, b.cast(ahead, I64))

    (places,) = e.generic(
        [*x.dims, x.dims[axis]], [(x, own), (x, other)], [(I64, own, 0)], place, [last]
    )

    # The element of each place is the only one that counts.
    dims = [count if dim == axis else size for dim, size in enumerate(x.dims)]
    results = []
    for number in (0, 1):
        if not n.wants(number):
            results.append(Value(I64 if number else x.kind, tuple(dims)))
            continue

        def chosen(b: Body, element: Scalar, position: Scalar, found: Scalar) -> Scalar:
            wanted = b.cast(b.index(axis), I64)
            value = b.cast(b.index(last), I64) if number else element
            return b.select(b.compare("eq", position, wanted), value, found)

        begin = (I64 if number else x.kind, own, 0)
        results += e.generic(
            [*dims, x.dims[axis]], [(x, other), (places, other)], [begin], chosen, [last]
        )
    return results


def _check_count(e: Emitter, n: Node, count: Size, size: Size) -> None:
    words = f"expected at most as many elements as its axis has, but got {count}"
    if isinstance(count, int) and isinstance(size, int):
        if count > size:
            raise n.refuse(f"{words} of {size}", "make K smaller")
        return
    fits = e.op(f"arith.cmpi sle, {e.index(count)}, {e.index(size)} : index")
    e.check(fits, words)


__all__ = ["top_k"]
