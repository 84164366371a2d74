"""Sums of products of any number of tensors (`einsum`) as products of two.

Their order needs the minimum number of multiplications at the largest sizes of the ranges; a range without an end
counts at the example's size.
"""

from __future__ import annotations

import itertools
import math
import string
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import sympy

import torch
from torch import Tensor

aten = torch.ops.aten

#: Maximum number of operands for which all orders are compared; beyond it the order is chosen step by step.
_MAX_EXHAUSTIVE = 7

#: Larger sizes than this are not a range that somebody gave.
_MAX_SIZE = 2**24

#: The size that an unknown dimension counts with.
_SIZE = 1024


@dataclass(frozen=True)
class Term:
    """A tensor with a letter for each dimension."""

    value: Tensor
    letters: str


def parse(equation: str, operands: Sequence[Tensor]) -> tuple[list[str], str]:
    """The letters of each operand and of the result, including the letters of an ellipsis."""
    left, arrow, right = equation.replace(" ", "").partition("->")
    inputs = left.split(",")
    free = [letter for letter in string.ascii_letters if letter not in equation]
    counts = [tensor.dim() - len(text.replace("...", "")) for text, tensor in zip(inputs, operands)]
    max_rank = max((count for count, text in zip(counts, inputs) if "..." in text), default=0)
    rest = "".join(free[:max_rank])
    inputs = [text.replace("...", rest[max_rank - count :]) for text, count in zip(inputs, counts)]
    if arrow:
        return inputs, right.replace("...", rest)
    every = "".join(inputs)
    once = sorted(
        letter for letter in set(every) if every.count(letter) == 1 and letter not in rest
    )
    return inputs, rest + "".join(once)


def _diagonal(term: Term) -> Term:
    """A term in which each letter stands once."""
    value, letters = term.value, term.letters
    while len(set(letters)) < len(letters):
        letter = next(letter for letter in letters if letters.count(letter) > 1)
        first = letters.index(letter)
        second = letters.index(letter, first + 1)
        size = value.shape[first]
        places = torch.arange(size, device=value.device)
        shape = [1] * value.dim()
        shape[second] = size
        columns = places.view(shape)
        shape[second], shape[first] = 1, size
        zero = torch.zeros((), dtype=value.dtype, device=value.device)
        value = torch.where(columns == places.view(shape), value, zero).sum(
            second, dtype=value.dtype
        )
        letters = letters[:second] + letters[second + 1 :]
    return Term(value, letters)


def _reduced(term: Term, kept: set[str]) -> Term:
    """A term, summed over the letters that nothing else has."""
    lone = [dim for dim, letter in enumerate(term.letters) if letter not in kept]
    if not lone:
        return term
    letters = "".join(letter for letter in term.letters if letter in kept)
    return Term(term.value.sum(lone, dtype=term.value.dtype), letters)


def size_of(extent: Any) -> int:
    """The largest size that a range allows, or the example's."""
    if isinstance(extent, int):
        return extent
    node = extent.node
    upper = node.shape_env.bound_sympy(node.expr).upper
    if isinstance(upper, sympy.Integer) and upper <= _MAX_SIZE:
        return max(int(upper), 1)
    return max(int(node.hint), 1) if node.hint is not None else _SIZE


def order_of_pairs(
    letters: Sequence[str], result: str, sizes: dict[str, int]
) -> list[tuple[int, int]]:
    """The two terms to multiply in each step; the product is appended to the remaining terms."""

    def cost(left: str, right: str) -> int:
        return math.prod(sizes[letter] for letter in set(left) | set(right))

    def product(left: str, right: str, others: Sequence[str]) -> str:
        kept = set(result).union(*others)
        return "".join(sorted(letter for letter in set(left) | set(right) if letter in kept))

    def best(terms: tuple[str, ...]) -> tuple[int, list[tuple[int, int]]]:
        if len(terms) < 2:
            return 0, []
        pairs = list(itertools.combinations(range(len(terms)), 2))
        if len(terms) > _MAX_EXHAUSTIVE:
            pairs = [min(pairs, key=lambda pair: cost(terms[pair[0]], terms[pair[1]]))]
        found = []
        for i, j in pairs:
            others = [term for place, term in enumerate(terms) if place not in (i, j)]
            joined = product(terms[i], terms[j], others)
            rest, steps = known((*others, joined))
            found.append((cost(terms[i], terms[j]) + rest, [(i, j), *steps]))
        return min(found)

    memory: dict[tuple[str, ...], tuple[int, list[tuple[int, int]]]] = {}

    def known(terms: tuple[str, ...]) -> tuple[int, list[tuple[int, int]]]:
        if terms not in memory:
            memory[terms] = best(terms)
        return memory[terms]

    return known(tuple(letters))[1]


def _flattened(value: Tensor, first: int, count: int) -> Tensor:
    """A tensor with `count` neighbouring dimensions as one; the joined dimension of none has the size 1."""
    if count == 0:
        return value.unsqueeze(first)
    return value.flatten(first, first + count - 1) if count > 1 else value


def _unflattened(value: Tensor, dim: int, letters: str, sizes: dict[str, Any]) -> Tensor:
    """A tensor with the dimensions of some letters instead of their joined one."""
    if len(letters) < 2:
        return value
    result: Tensor = value.unflatten(  # type: ignore[no-untyped-call]
        dim, [sizes[letter] for letter in letters]
    )
    return result


def _pair(left: Term, right: Term, kept: set[str]) -> Term:
    """The product of two terms, summed over the letters of both that are not kept."""
    batch = "".join(letter for letter in left.letters if letter in right.letters and letter in kept)
    summed = "".join(
        letter for letter in left.letters if letter in right.letters and letter not in kept
    )
    rows = "".join(letter for letter in left.letters if letter not in right.letters)
    columns = "".join(letter for letter in right.letters if letter not in left.letters)
    sizes: dict[str, Any] = {}
    for term in (left, right):
        for letter, size in zip(term.letters, term.value.shape):
            if not (isinstance(size, int) and size == 1 and letter in sizes):
                sizes[letter] = size
    a = _ordered(left, batch + rows + summed, sizes, batch + summed)
    b = _ordered(right, batch + summed + columns, sizes, batch + summed)
    if not summed:
        for _ in columns:
            a = a.unsqueeze(-1)
        for place in range(len(rows)):
            b = b.unsqueeze(len(batch) + place)
        return Term(a * b, batch + rows + columns)
    a = _flattened(_flattened(a, len(batch) + len(rows), len(summed)), len(batch), len(rows))
    b = _flattened(_flattened(b, len(batch) + len(summed), len(columns)), len(batch), len(summed))
    if len(batch) > 1:
        a, b = a.flatten(0, len(batch) - 1), b.flatten(0, len(batch) - 1)
    y = torch.matmul(a, b)
    at = 1 if batch else 0
    for dim, group in ((at + 1, columns), (at, rows)):
        y = y.squeeze(dim) if not group else _unflattened(y, dim, group, sizes)
    y = _unflattened(y, 0, batch, sizes)
    return Term(y, batch + rows + columns)


def _ordered(term: Term, letters: str, sizes: dict[str, Any], shared: str) -> Tensor:
    """A term's tensor with its dimensions in an order; shared dimensions are expanded to the larger size."""
    value = term.value.permute([term.letters.index(letter) for letter in letters])
    shape = list(value.shape)
    for dim, letter in enumerate(letters):
        size = shape[dim]
        if letter in shared and isinstance(size, int) and size == 1:
            shape[dim] = sizes[letter]
    return value.expand(shape) if shape != list(value.shape) else value


def _is_plain(letters: Sequence[str], result: str) -> bool:
    """Returns true if torch-mlir supports the equation: two operands, no diagonals, no letters of only one."""
    if len(letters) != 2 or any(len(set(text)) < len(text) for text in letters):
        return False
    return all(
        letter in other or letter in result
        for text, other in (letters, letters[::-1])
        for letter in text
    )


def einsum(equation: str, operands: Sequence[Tensor], *, path: Any = None) -> Any:
    """Returns NotImplemented for equations that torch-mlir supports."""
    letters, result = parse(equation, operands)
    if "..." not in equation and _is_plain(letters, result):
        return NotImplemented
    terms = [_diagonal(Term(value, text)) for value, text in zip(operands, letters)]
    sizes: dict[str, int] = {}
    for term in terms:
        for letter, size in zip(term.letters, term.value.shape):
            sizes[letter] = max(sizes.get(letter, 1), size_of(size))
    steps = order_of_pairs([term.letters for term in terms], result, sizes)
    for step in [*steps, None]:
        for place, term in enumerate(terms):
            others = [other.letters for number, other in enumerate(terms) if number != place]
            terms[place] = _reduced(term, set(result).union(*others))
        if step is not None:
            i, j = step
            rest = [term for place, term in enumerate(terms) if place not in step]
            kept = set(result).union(*(term.letters for term in rest))
            terms = [*rest, _pair(terms[i], terms[j], kept)]
    (term,) = terms
    return term.value.permute([term.letters.index(letter) for letter in result]).clone()


RULES: dict[Any, Any] = {aten.einsum.default: einsum}
