"""Chooses few of many random cases, so that together they have as many pairs of properties as they can.

Most faults of a compiler show with one property of a program or with two together: a type and a layout, an epilogue
and an access. A case's properties are a dictionary, e.g. {"layout": "nt", "epilogue": "bias"}. A generator's own
constraints hold by themselves, since cases are only chosen: a pair that no candidate has is none to cover.

The choice is greedy, which is within a constant of the best one (Nemhauser and others, 1978): the case that adds most
pairs comes next.
"""

import heapq
import itertools


def pairs(properties):
    """The pairs of a case's properties; with one property alone, that one."""
    items = sorted((name, str(value)) for name, value in properties.items())
    return set(itertools.combinations(items, 2)) or set(items)


def choose(candidates, count=None):
    """The indices of `count` of the candidates (dictionaries of properties), and the share of all pairs that they have.

    Where no pair is left, others follow in order, or none without a count.
    """
    sets = [pairs(properties) for properties in candidates]
    every = set().union(*sets)
    left = set(every)
    # Gains only fall, so that a case whose gain is still what it was is the best one.
    heap = [(-len(found), index) for index, found in enumerate(sets)]
    heapq.heapify(heap)
    chosen = []
    while heap and (left if count is None else len(chosen) < count):
        gain, index = heapq.heappop(heap)
        now = -len(sets[index] & left)
        if now > gain:
            heapq.heappush(heap, (now, index))
            continue
        chosen.append(index)
        left -= sets[index]
    return chosen, 1 - len(left) / max(len(every), 1)
