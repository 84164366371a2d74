"""The choice of products that share an input and become one product of joined weights.

Queries, keys and values of attention are three products of one input with weights. Joined along
their columns they are one launch, and each result is a part of one tensor, which its readers read
where it lies. A sum stays the same sum, so no bit of a result changes. Both front ends describe
their graphs by `Step`s, and rewrite the groups that `groups` returns; the joined weights are made
once, when a model is imported.

A product stays alone

* where something else reads its weight, which would be in memory twice;
* where its result is the operand of a chain of elements (`silu(gate) * up`), a part of a
  concatenation, or a result of the function: the product itself computes the chain in its epilogue, or
  writes the part, which would be a launch of its own after a joined product. A join of gate and up would
  save no launch, and write and read their results once more;
* where a part of the joined rows would not begin at a multiple of 16 bytes;
* where a later layer, another product with a weight, reads what an earlier product of the group gave,
  such as keys of the next layer's cross attention: all results would be in memory from the first one on.
"""

from __future__ import annotations

import enum
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

#: Bytes at which each part of a row begins.
_ALIGNMENT = 16


class Kind(enum.Enum):
    """Kinds of operators."""

    #: Moves or casts all elements.
    VIEW = enum.auto()
    #: Computes element by element.
    POINTWISE = enum.auto()
    #: Puts the elements where they have to be: a concatenation, a result of the function.
    PLACE = enum.auto()
    PRODUCT = enum.auto()
    OTHER = enum.auto()


@dataclass(frozen=True)
class Projection:
    """A product of an input with a weight that nothing else reads.

    Attributes:
        input: the value that is multiplied.
        form: equal for products that can be joined: the operator, the type, the length of the sums.
        columns: of the weight.
        element_bytes: of an element of the result.
    """

    input: Hashable
    form: Hashable
    columns: int
    element_bytes: int


#: A front end's own class of products, with what it needs to rewrite them.
Own = TypeVar("Own", bound=Projection)


@dataclass(frozen=True)
class Step(Generic[Own]):
    """An operator of a graph; steps are in an order in which they can be computed."""

    kind: Kind
    reads: Sequence[Hashable]
    results: Sequence[Hashable]
    projection: Own | None = None


@dataclass
class _Group(Generic[Own]):
    members: list[Own] = field(default_factory=list)
    #: The results of the members, and values that depend on them.
    dependents: set[Hashable] = field(default_factory=set)


def groups(steps: Sequence[Step[Own]]) -> list[list[Own]]:
    """Returns the products to join, at least two in each list, in the order of the graph."""
    readers: dict[Hashable, list[Step[Own]]] = {}
    for step in steps:
        for value in step.reads:
            readers.setdefault(value, []).append(step)
    found: list[_Group[Own]] = []
    current: dict[Hashable, _Group[Own]] = {}
    for step in steps:
        for key, group in list(current.items()):
            if group.dependents.isdisjoint(step.reads):
                continue
            group.dependents.update(step.results)
            if step.projection is not None:
                del current[key]
        own = step.projection
        if own is None or own.columns * own.element_bytes % _ALIGNMENT:
            continue
        if any(_is_finished(result, readers) for result in step.results):
            continue
        key = (own.input, own.form)
        if key not in current:
            current[key] = _Group()
            found.append(current[key])
        current[key].members.append(own)
        current[key].dependents.update(step.results)
    return [group.members for group in found if len(group.members) > 1]


def _is_finished(value: Hashable, readers: Mapping[Hashable, Sequence[Step[Own]]]) -> bool:
    """Returns whether the product of a value does more with it than to store it.

    Where an operator reads parts of it or reduces it, such as a rotary embedding or a norm of each
    head, a kernel of its own computes the chain either way.
    """
    pending, seen, found = [value], {value}, False
    while pending:
        for step in readers.get(pending.pop(), ()):
            if step.kind == Kind.OTHER:
                return False
            found |= step.kind in (Kind.POINTWISE, Kind.PLACE)
            if step.kind in (Kind.VIEW, Kind.POINTWISE):
                pending += set(step.results) - seen
                seen.update(step.results)
    return found
