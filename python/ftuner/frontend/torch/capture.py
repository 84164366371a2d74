"""Sizes for which CUDA graphs are captured.

A graph is for one size. Who captures graphs of a few sizes and pads others to the next one loses least
where those are the last sizes that a plan computes by one kernel each.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from typing import Any

from ftuner.describe.work import evaluate
from ftuner.host.function import Function

_lock = threading.Lock()
#: Functions that graphs of this process call, by what is compiled.
_called: dict[int, Function] = {}


def note(function: Any) -> None:
    """A graph calls the function."""
    if isinstance(function, Function):
        with _lock:
            _called[id(function.module)] = function


def capture_sizes(
    largest: int, *, rows: int = 1, functions: Iterable[Function] | None = None
) -> tuple[int, ...]:
    """The sizes after which functions go on with other kernels, up to ``largest``.

        torch._inductor.config.triton.cudagraph_capture_sizes = ftuner.torch.capture_sizes(512)

    Args:
        largest: the greatest size, which is always one of them.
        rows: rows of the products for each unit of the size, such as the sequences of a batch where
            the size is their length.
        functions: compiled functions; by default those that the graphs of this process call.

    Only functions with one symbol count, as those of weights are: the size is that symbol divided by
    ``rows``. Ascending, each once. Raises TypeError and ValueError for arguments that do not fit, and
    ValueError where no function counts.
    """
    for name, number in (("largest", largest), ("rows", rows)):
        if not isinstance(number, int) or isinstance(number, bool):
            raise TypeError(f"expected {name} to be a number, but got {number!r}")
        if number < 1:
            raise ValueError(f"expected {name} to be 1 or more, but got {number}")
    if functions is None:
        with _lock:
            functions = [*_called.values()]
    counted = [function for function in functions if len(function.report.sizes) == 1]
    if not counted:
        raise ValueError(
            "expected a function with one symbol, such as that of a weight and any number of rows,"
            " but no graph of this process calls one; a model compiles its graphs when it is called"
        )
    found = {largest}
    for function in counted:
        found |= {
            size // rows
            for size in _ends(function, largest * rows)
            if rows <= size < largest * rows
        }
    return tuple(sorted(found))


def _ends(function: Function, largest: int) -> Iterator[int]:
    """The last size of the function's symbol in each part of its plans."""
    (symbol,) = function.report.sizes
    plans = {plan["name"]: plan for plan in function.module.manifest["workloads"]}
    for workload in function.report.data["workloads"]:
        plan = plans[workload["kernels_of"]]
        for entry in [*plan["dispatch"], *plan["unaligned_dispatch"]]:
            for extent, axis in zip(workload["extents"], entry["box"]):
                if not isinstance(extent, str) or axis["max"] is None:
                    continue
                yield _last(lambda size: evaluate(extent, {symbol: size}) <= axis["max"], largest)


def _last(holds: Any, largest: int) -> int:
    """The greatest number up to ``largest`` for which a condition holds, which smaller ones meet."""
    low, high = 0, largest + 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low
