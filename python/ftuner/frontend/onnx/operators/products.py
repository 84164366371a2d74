"""Operators of ONNX that multiply matrices."""

from __future__ import annotations

from collections.abc import Sequence

from onnx import TensorProto

from ..emitter import Emitter
from ..registry import Node, lowers
from ..sizes import Size
from ..values import Value
from .contractions import contract, matrix_product
from .quantization import dequantized_product
from .reductions import sums_kind, total
from .shapes import operands

F32, I32 = TensorProto.FLOAT, TensorProto.INT32


@lowers("MatMul")
def matmul(e: Emitter, n: Node) -> Value:
    a, b = operands(n)
    product = dequantized_product(e, a, b)
    return e.cast(matrix_product(e, a, b), a.kind) if product is None else product


@lowers("Gemm")
def gemm(e: Emitter, n: Node) -> Value:
    a, b, addend = n.inputs[0], n.inputs[1], n.input(2)
    assert a is not None and b is not None
    alpha, beta = n.attr("alpha", 1.0), n.attr("beta", 1.0)
    is_transposed = bool(n.attr("transB", 0))
    product = None
    if not n.attr("transA", 0):
        product = dequantized_product(e, a, b, is_transposed, alpha)
    if product is None:
        product = _scaled(
            e, _gemm_product(e, a, b, bool(n.attr("transA", 0)), is_transposed), alpha
        )
    if addend is not None and beta != 0:
        kind = product.kind
        addend = _scaled(e, e.cast(addend, kind), beta)
        product = e.pointwise(kind, [product, addend], lambda s, x, y: s.add(x, y), product.dims)
    return e.cast(product, a.kind)


def _scaled(e: Emitter, x: Value, factor: float) -> Value:
    if factor == 1:
        return x
    if not x.is_float:
        double = TensorProto.DOUBLE
        return e.pointwise(
            x.kind,
            [x],
            lambda b, a: b.cast(b.mul(b.cast(a, double), b.const(factor, double)), x.kind),
        )
    return e.pointwise(x.kind, [x], lambda b, a: b.mul(a, b.like(factor, a)))


def _gemm_product(e: Emitter, a: Value, b: Value, trans_a: bool, trans_b: bool) -> Value:
    rows, a_length = (a.dims[1], a.dims[0]) if trans_a else a.dims
    b_length, columns = (b.dims[1], b.dims[0]) if trans_b else b.dims
    e.check_equal(a_length, b_length, "expected as many columns of A as rows of B")
    return contract(
        e,
        [rows, columns, a_length],
        (a, [2, 0] if trans_a else [0, 2]),
        (b, [1, 2] if trans_b else [2, 1]),
        [0, 1],
        [2],
        sums_kind(a.kind),
    )


@lowers("Einsum")
def einsum(e: Emitter, n: Node) -> Value:
    """Multiplies two operands at a time, from the left, and sums over letters that nothing later needs."""
    values = operands(n)
    terms, result = _equation(n, values)
    sizes: dict[str, Size] = {}
    parts = []
    for value, letters in zip(values, terms):
        for letter, size in zip(letters, value.dims):
            _join_size(e, sizes, letter, size)
        parts.append(_diagonal(e, value, letters))
    kind = values[0].kind
    current, own = parts[0]
    for place, (value, letters) in enumerate(parts[1:], 1):
        later = {*result}.union(*(other for _, other in parts[place + 1 :]))
        current, own = _contracted(e, (current, own), (value, letters), later, sizes)
    return e.cast(_arranged(e, current, own, result), kind)


def _join_size(e: Emitter, sizes: dict[str, Size], letter: str, size: Size) -> None:
    known = sizes.get(letter)
    if known is None or known == 1:
        sizes[letter] = size
    elif size != 1:
        e.check_equal(size, known, f"expected equal sizes of '{letter}'")


def _equation(n: Node, values: Sequence[Value]) -> tuple[list[str], str]:
    """Letters of the dimensions of operands and result; an ellipsis becomes capital Greek letters."""
    equation = n.attr("equation").replace(" ", "")
    left, arrow, right = equation.partition("->")
    terms = left.split(",")
    if len(terms) != len(values):
        raise n.refuse(
            f"its equation has {len(terms)} operands, but it has {len(values)}",
            "give it one of each",
        )
    hidden = max(value.rank - len(term.replace("...", "")) for value, term in zip(values, terms))
    dots = "".join(chr(0x391 + i) for i in range(max(hidden, 0)))
    full = []
    for value, term in zip(values, terms):
        own = value.rank - len(term.replace("...", ""))
        if own < 0 or (own and "..." not in term):
            raise n.refuse(
                f"its equation has other dimensions than an operand of {value.rank}",
                "write it anew",
            )
        full.append(term.replace("...", dots[len(dots) - own :]))
    if arrow:
        return full, right.replace("...", dots)
    letters = "".join(full)
    once = sorted(letter for letter in {*letters} - {*dots} if letters.count(letter) == 1)
    return full, dots * ("..." in left) + "".join(once)


def _diagonal(e: Emitter, value: Value, letters: str) -> tuple[Value, str]:
    """The elements at which dimensions of one letter have one index."""
    own = "".join(dict.fromkeys(letters))
    if own == letters:
        return value, letters
    dims = []
    for letter in own:
        same = [size for other, size in zip(letters, value.dims) if other == letter]
        for size in same[1:]:
            e.check_equal(size, same[0], f"expected equal sizes of '{letter}'")
        dims.append(same[0])
    e.use(value)
    return (
        e.compute(
            dims, value.kind, lambda b, *at: b.extract(value, [at[own.index(c)] for c in letters])
        ),
        own,
    )


def _contracted(
    e: Emitter,
    lhs: tuple[Value, str],
    rhs: tuple[Value, str],
    later: set[str],
    sizes: dict[str, Size],
) -> tuple[Value, str]:
    letters = "".join(dict.fromkeys(lhs[1] + rhs[1]))
    shared = [c for c in letters if c in lhs[1] and c in rhs[1] and c in later]
    rows = [c for c in lhs[1] if c not in rhs[1] and c in later]
    columns = [c for c in rhs[1] if c not in lhs[1] and c in later]
    reduced = [c for c in letters if c not in later]
    order = [*shared, *rows, *columns, *reduced]
    kept = len(order) - len(reduced)
    loops = [sizes[c] for c in order]
    accesses = [[order.index(c) for c in part[1]] for part in (lhs, rhs)]
    kind = sums_kind(lhs[0].kind)
    found = contract(
        e, loops, (lhs[0], accesses[0]), (rhs[0], accesses[1]), range(kept),
        range(kept, len(order)), kind,
    )  # fmt: skip
    return found, "".join(order[:kept])


def _arranged(e: Emitter, value: Value, letters: str, result: str) -> Value:
    """Sums over letters that the result lacks, and transposes to the order of the result."""
    dropped = [place for place, letter in enumerate(letters) if letter not in result]
    if dropped:
        value = total(e, value, dropped, keepdims=False)
        letters = "".join(letter for letter in letters if letter in result)
    return e.transpose(value, [letters.index(letter) for letter in result])
