"""One function for all numbers of rows that a weight is multiplied with.

A decoder multiplies each of its weights with many rows, those of a prompt, and then with one row for
each token. PyTorch compiles a graph of its own for the size 1, also with dynamic sizes, and so its
products would become other functions, which know one size. With dynamic sizes they are computed by
the function of the other graph::

    prompt  x [s0, 768] @ w [768, 3072]    d0 = 1 to ?, the least size of 2 is PyTorch's alone
    step    x [1, 768]  @ w [768, 3072]    a size of d0: the same function

Nothing of this holds where sizes are constants (`dynamic=False`), and for products without a weight,
such as those of attention: their other sizes grow, too.
"""

from __future__ import annotations

import threading
from collections.abc import Hashable, Sequence
from dataclasses import replace

from ftuner.host.function import Function

from .library import Built, Library, without_name
from .regions.linalg import LinalgFunction, Range
from .settings import Settings

#: Rows that a function is compiled for where only one of them is known.
OPEN = Range(1, None)


def with_rows(function: LinalgFunction, rows: Range) -> LinalgFunction:
    """The product of rows with a weight for a range of rows, where it may have known one number."""
    loops = list(function.loops)
    loop = function.rows_of_weight
    assert loop is not None
    size = loops[loop]
    loops[loop] = name = size if isinstance(size, str) else "d0"
    return replace(function, loops=tuple(loops), symbols=((name, rows),))


class WeightRowFunctions:
    """The functions of weights that a library has compiled for ranges of rows."""

    def __init__(self) -> None:
        self._known: dict[Hashable, LinalgFunction] = {}
        self._lock = threading.Lock()

    def get(
        self, functions: Sequence[LinalgFunction], settings: Settings, library: Library
    ) -> list[tuple[LinalgFunction, Built]]:
        """Compiled functions, and for what they were compiled: for each what was asked for, or more.

        A number of rows becomes a size of a function that the library has, or has to compile now;
        a single row without such a function makes one for every number of rows. Other numbers stay
        as they are, and so does a function that cannot be compiled for a range.
        """
        identity = settings.identity()
        chosen = self._choose(functions, identity)
        built = library.get(chosen, settings)
        again = [
            position
            for position, (wanted, other) in enumerate(zip(functions, chosen))
            if wanted is not other and not isinstance(built[position], Function)
        ]
        for position, other in zip(again, library.get([functions[i] for i in again], settings)):
            chosen[position], built[position] = functions[position], other
        with self._lock:
            for function, result in zip(chosen, built):
                if isinstance(result, Function) and _has_range(function):
                    self._known[_key(function, identity)] = function
        return list(zip(chosen, built))

    def _choose(
        self, functions: Sequence[LinalgFunction], identity: Hashable
    ) -> list[LinalgFunction]:
        with self._lock:
            known = dict(self._known)
        # Functions of this request that have a range come before the library's.
        known |= {
            _key(function, identity): function for function in functions if _has_range(function)
        }
        chosen = list(functions)
        for position, function in enumerate(functions):
            loop = function.rows_of_weight
            if loop is None or isinstance(rows := function.loops[loop], str):
                continue
            key = _key(function, identity)
            if (other := known.get(key)) is not None and _holds(other, rows):
                chosen[position] = replace(other, name=function.name)
            elif rows == 1:
                chosen[position] = known[key] = with_rows(function, OPEN)
        return chosen


def _has_range(function: LinalgFunction) -> bool:
    """Returns whether a weight is multiplied with a number of rows that is a symbol."""
    return function.rows_of_weight is not None and bool(function.symbols)


def _key(function: LinalgFunction, identity: Hashable) -> Hashable:
    """A key that is equal if only the name and the rows differ."""
    return without_name(with_rows(function, OPEN)), identity


def _holds(function: LinalgFunction, rows: int) -> bool:
    ((_, known),) = function.symbols
    return known.lower <= rows and (known.upper is None or rows <= known.upper)


#: The functions that this process has compiled for ranges of rows.
WEIGHT_ROWS = WeightRowFunctions()
