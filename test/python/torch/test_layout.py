"""Index maps through views, without any tensor."""

from __future__ import annotations

import sympy
from torch.utils._sympy.functions import FloorDiv

from ftuner.frontend.torch.graph import layout as lay
from ftuner.frontend.torch.graph.layout import join_loops

S, T = sympy.symbols("S T", integer=True, positive=True)


def test_quotients_of_symbols() -> None:
    assert lay.quotient(12, 4) == 3
    assert lay.quotient(12, 5) is None
    assert lay.quotient(6 * S * T, 2 * S) == 3 * T
    assert lay.quotient(S * T, T * S) == 1
    assert lay.quotient(S, 2) is None
    assert lay.quotient(4, S) is None
    assert lay.quotient(S + T, S) is None
    # A number of chunks is a symbol of its own.
    assert lay.quotient(4 * S * FloorDiv(T, 8), 2 * S) == 2 * FloorDiv(T, 8)
    assert lay.quotient(T, FloorDiv(T, 8)) is None


def test_groups_of_reshapes() -> None:
    assert lay.reassociate([S, T, 64], [S * T, 64]) == [([0, 1], [0]), ([2], [1])]
    assert lay.reassociate([S, 64], [S, 1, 4, 16]) == [([0], [0]), ([1], [2, 3])]
    assert lay.reassociate([4 * S, T], [S, 4, T]) == [([0], [0, 1]), ([1], [2])]
    assert lay.reassociate([1, 1], []) == []
    # Several dimensions on both sides are not a map.
    assert lay.reassociate([6, 4], [4, 6]) is None
    assert lay.reassociate([S, T], [T, S]) is None


def test_loops_split_once_for_all_tensors() -> None:
    layout = lay.Layout()
    batch, row, reduce = layout.add(4 * S), layout.add(T), layout.add(16)
    dims = layout.through_reshape([4 * S, T, 16], ((batch,), (row,), (reduce,)), [S, 4, T, 16])
    outer, inner = layout.parts[batch]
    assert dims == ((outer,), (inner,), (row,), (reduce,))
    assert layout.extents[outer] == S and layout.extents[inner] == 4
    assert layout.resolve(((batch,), (row,))) == ((outer, inner), (row,))
    # Back again: nothing new is split.
    assert layout.through_reshape([S, 4, T], dims[:3], [4 * S, T]) == ((outer, inner), (row,))


def test_a_reduce_loop_stays_whole() -> None:
    layout = lay.Layout()
    row, reduce = layout.add(S), layout.add(64)
    layout.whole = frozenset({reduce})
    assert layout.through_reshape([S, 64], ((row,), (reduce,)), [S, 4, 16]) is None
    assert not layout.parts


def test_broadcast_dimensions_have_no_loop() -> None:
    layout = lay.Layout()
    row, column = layout.add(S), layout.add(64)
    dims = ((row,), (), (column,))
    assert layout.through_reshape([S, 8, 64], dims, [S, 2, 4, 64]) == ((row,), (), (), (column,))
    # One dimension that is broadcast in part only.
    assert layout.through_reshape([S, 8, 64], dims, [8 * S, 64]) is None
    assert layout.through_reshape([S, 1, 64], dims, [S, 64]) == ((row,), (column,))


def test_a_dimension_that_is_cut_is_by_itself() -> None:
    layout = lay.Layout()
    b, s, h, d = (layout.add(extent) for extent in (S, T, 4, 8))
    cuts = (None, None, lay.Cut(2, 6), None)
    access = lay.Access(None, ((b,), (s,), (h,), (d,)), layout, 0, 0, cuts)  # type: ignore[arg-type]
    assert access.segments == [((b,), (s,)), ((h,),), ((d,),)]
    assert sorted(join_loops(layout, access.segments)) == [(b, s), (h,), (d,)]


def test_neighbours_are_joined() -> None:
    layout = lay.Layout()
    b, s, n, k = (layout.add(extent) for extent in (S, T, 48, 32))
    linear = [((b,), (s,), (k,)), ((n,), (k,)), ((b,), (s,), (n,))]
    assert sorted(join_loops(layout, linear)) == [(b, s), (n,), (k,)]
    # A summand that is broadcast along s keeps b and s apart.
    assert sorted(join_loops(layout, [*linear, ((b,), (), (n,))])) == [(b,), (s,), (n,), (k,)]
    # So does a permuted result.
    permuted = [((b,), (s,), (k,)), ((n,), (k,)), ((s,), (b,), (n,))]
    assert sorted(join_loops(layout, permuted)) == [(b,), (s,), (n,), (k,)]
