"""Sizes as expressions of the model's symbols.

A size is an `int`, or an `Expr`: a polynomial of atoms with integer coefficients. An atom is a symbol,
or an operation that polynomials do not have (a quotient, a maximum, a minimum, a broadcast) of two
sizes. Equal polynomials are equal objects in the sense of `==`, so sizes such as `2*h*w + h*w*2` and
`4*h*w` are known to be equal. Polynomials that become constants are `int`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Union


@dataclass(frozen=True)
class Atom:
    """A symbol, or an operation on two sizes.

    Attributes:
        kind: "symbol", "floordiv", "max", "min", "broadcast" (the other size if one is 1) or
            "wrapped" (the sum of both if the first, a place, is negative).
        operands: a name, or the two sizes.
    """

    kind: str
    operands: tuple[object, ...]

    def __str__(self) -> str:
        if self.kind == "symbol":
            return str(self.operands[0])
        left, right = map(str, self.operands)
        return (
            f"({left} // {right})" if self.kind == "floordiv" else f"{self.kind}({left}, {right})"
        )


#: Atoms of a product, in order; an atom may occur several times.
Monomial = tuple[Atom, ...]


@dataclass(frozen=True)
class Expr:
    """A polynomial that is not a constant: coefficients by monomials, in order."""

    terms: tuple[tuple[Monomial, int], ...]

    def __str__(self) -> str:
        words = []
        for monomial, factor in self.terms:
            factors = ([str(factor)] if factor != 1 or not monomial else []) + [*map(str, monomial)]
            words.append("*".join(factors))
        return " + ".join(words).replace("+ -", "- ")

    def __add__(self, other: Size) -> Size:
        sums = dict(self.terms)
        for monomial, factor in _terms(other):
            sums[monomial] = sums.get(monomial, 0) + factor
        return _sum(sums)

    def __radd__(self, other: int) -> Size:
        return self + other

    def __neg__(self) -> Size:
        return self * -1

    def __sub__(self, other: Size) -> Size:
        return self + other * -1

    def __rsub__(self, other: int) -> Size:
        return self * -1 + other

    def __mul__(self, other: Size) -> Size:
        products: dict[Monomial, int] = {}
        for left, a in self.terms:
            for right, b in _terms(other):
                monomial = tuple(sorted([*left, *right], key=str))
                products[monomial] = products.get(monomial, 0) + a * b
        return _sum(products)

    def __rmul__(self, other: int) -> Size:
        return self * other

    def __floordiv__(self, other: Size) -> Size:
        return floordiv(self, other)

    def __rfloordiv__(self, other: int) -> Size:
        return floordiv(other, self)

    def __mod__(self, other: Size) -> Size:
        return self - floordiv(self, other) * other


Size = Union[int, Expr]  # noqa: UP007


def symbol(name: str) -> Expr:
    return Expr((((Atom("symbol", (name,)),), 1),))


def product(sizes: Iterable[Size]) -> Size:
    result: Size = 1
    for size in sizes:
        result = result * size
    return result


def floordiv(a: Size, b: Size) -> Size:
    """The quotient, rounded down; exact for polynomials that divide each other."""
    if isinstance(a, int) and isinstance(b, int):
        return a // b if b else 0
    if b == 1 or a == 0:
        return a
    exact = _exact_quotient(a, b)
    if exact is not None:
        return exact
    if isinstance(b, Expr) and len(b.terms) == 1:
        # Factors that a monomial shares with `a` cancel, so that an empty tensor keeps its other sizes.
        ((monomial, factor),) = b.terms
        common = _exact_quotient(a, _sum({monomial: 1}))
        if common is not None and factor > 0:
            return floordiv(common, factor)
    if isinstance(b, int) and b > 0 and isinstance(a, Expr):
        whole = {m: f // b for m, f in a.terms if f % b == 0}
        rest = _sum({m: f for m, f in a.terms if f % b})
        if whole:
            return _sum(whole) + floordiv(rest, b)
        inner = _only_atom(rest)
        if inner is not None and inner.kind == "floordiv" and isinstance(inner.operands[1], int):
            return floordiv(_size(inner.operands[0]), inner.operands[1] * b)
    return _atom("floordiv", a, b)


def ceildiv(a: Size, b: Size) -> Size:
    return -floordiv(-a, b) if isinstance(a, int) and isinstance(b, int) else floordiv(a + b - 1, b)


def maximum(a: Size, b: Size) -> Size:
    if isinstance(a, int) and isinstance(b, int):
        return max(a, b)
    if is_nonnegative(a - b):
        return a
    if is_nonnegative(b - a):
        return b
    return _atom("max", *sorted((a, b), key=str))


def minimum(a: Size, b: Size) -> Size:
    if isinstance(a, int) and isinstance(b, int):
        return min(a, b)
    if is_nonnegative(a - b):
        return b
    if is_nonnegative(b - a):
        return a
    return _atom("min", *sorted((a, b), key=str))


def broadcast(a: Size, b: Size) -> Size:
    """The size of a dimension that two operands share, one of which may be 1."""
    if a == b or b == 1:
        return a
    if a == 1:
        return b
    if isinstance(a, int):
        return a
    if isinstance(b, int):
        return b
    return _atom("broadcast", *sorted((a, b), key=str))


def wrapped(place: Size, size: Size) -> Size:
    """A place, which counts from the end of `size` if it is negative."""
    if is_nonnegative(place):
        return place
    if is_positive(-place):
        return place + size
    return _atom("wrapped", place, size)


def is_nonnegative(size: Size) -> bool:
    """Returns whether a size is known to be at least 0; symbols are."""
    return _lower_bound(size, 4) >= 0


def is_positive(size: Size) -> bool:
    return _lower_bound(size, 4) >= 1


def _lower_bound(size: Size, depth: int) -> float:
    """A lower bound of a size."""
    if isinstance(size, int):
        return size
    bound = 0.0
    for monomial, factor in size.terms:
        if factor < 0:
            bound = -float("inf")
            break
        bound += factor * _product_bound(monomial, depth)
    if bound >= 0 or depth == 0:
        return bound
    # -min(x, y) is at least -x and at least -y; max(x, y) is at least x and at least y.
    best = bound
    for monomial, factor in size.terms:
        for atom in monomial:
            is_useful = (atom.kind == "min") if factor < 0 else (atom.kind == "max")
            if is_useful and len(monomial) == 1:
                rest = size - Expr(((monomial, factor),))
                for operand in atom.operands:
                    best = max(best, _lower_bound(rest + _size(operand) * factor, depth - 1))
            if factor < 0 and atom.kind == "floordiv" and len(monomial) == 1:
                above, below = map(_size, atom.operands)
                # a // b is at most a / b, so -f * (a // b) is at least -f/b * a.
                if isinstance(below, int) and below > 0 and factor % below == 0:
                    rest = size - Expr(((monomial, factor),))
                    best = max(best, _lower_bound(rest + above * (factor // below), depth - 1))
                elif isinstance(below, int) and below > 0 and is_nonnegative(above):
                    rest = size - Expr(((monomial, factor),))
                    best = max(best, _lower_bound(rest + above * factor, depth - 1))
    return best


def _product_bound(monomial: Monomial, depth: int) -> float:
    bound = 1.0
    for atom in monomial:
        bound *= _atom_bound(atom, depth)
    return bound


def _atom_bound(atom: Atom, depth: int) -> float:
    if atom.kind == "symbol" or depth == 0:
        return 0 if atom.kind == "symbol" else -float("inf")
    a, b = (_lower_bound(_size(operand), depth - 1) for operand in atom.operands)
    if atom.kind == "max":
        return max(a, b)
    if atom.kind == "floordiv":
        divisor = atom.operands[1]
        if a >= 0 and isinstance(divisor, int):
            return a // divisor
        return 0 if a >= 0 and b >= 0 else -float("inf")
    return -float("inf") if atom.kind == "wrapped" else min(a, b)


def _terms(size: Size) -> Iterable[tuple[Monomial, int]]:
    return (((), size),) if isinstance(size, int) else size.terms


def _sum(terms: Mapping[Monomial, int]) -> Size:
    kept = {monomial: factor for monomial, factor in terms.items() if factor}
    if not kept:
        return 0
    if len(kept) == 1 and () in kept:
        return kept[()]
    return Expr(tuple(sorted(kept.items(), key=_order)))


def _order(term: tuple[Monomial, int]) -> tuple[int, list[str]]:
    return -len(term[0]), [str(atom) for atom in term[0]]


def _atom(kind: str, a: Size, b: Size) -> Expr:
    return Expr((((Atom(kind, (a, b)),), 1),))


def _only_atom(size: Size) -> Atom | None:
    if isinstance(size, Expr) and len(size.terms) == 1:
        ((monomial, factor),) = size.terms
        if factor == 1 and len(monomial) == 1:
            return monomial[0]
    return None


def _size(operand: object) -> Size:
    assert isinstance(operand, (int, Expr))
    return operand


def _exact_quotient(a: Size, b: Size) -> Size | None:
    """The quotient of a division of polynomials that leaves no rest; None if it leaves one."""
    (lead, divisor), *_ = sorted(_terms(b), key=_order)
    rest: Size = a
    quotient: Size = 0
    while rest != 0:
        (monomial, factor), *_ = sorted(_terms(rest), key=_order)
        left = [*monomial]
        for atom in lead:
            if atom not in left:
                return None
            left.remove(atom)
        if not divisor or factor % divisor:
            return None
        part = _sum({tuple(left): factor // divisor})
        quotient = quotient + part
        after = rest - part * b
        if len([*_terms(after)]) > len([*_terms(rest)]) + 4:
            return None
        rest = after
    return quotient


__all__ = [
    "Atom", "Expr", "Size", "broadcast", "ceildiv", "floordiv", "is_nonnegative", "is_positive",
    "maximum", "minimum", "product", "symbol", "wrapped",
]  # fmt: skip
