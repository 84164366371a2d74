"""What the backend did: counted while it compiles, and at each call."""

from __future__ import annotations

import copy
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field


@dataclass
class Left:
    """A product that stays with PyTorch."""

    operator: str
    reason: str
    #: Where the model computes it: the last line of its stack, if known.
    location: str

    def __str__(self) -> str:
        return f"{self.operator}: {self.reason}" + (f" ({self.location})" if self.location else "")


@dataclass
class Report:
    """Counts since the process began, or since `reset_report`.

    A product is an operator of ATen that multiplies matrices.
    """

    #: Graphs compiled; a training step has one forwards and one backwards.
    graphs: int = 0
    #: Products in these graphs, and those that became FTuner functions.
    products: int = 0
    taken: int = 0
    left: list[Left] = field(default_factory=list)
    #: Pointwise operators and copies that became part of a function.
    fused: int = 0
    #: Copies inserted for operands that no contiguous tensor holds.
    copies: int = 0
    #: Functions by name, and how many products each one serves.
    functions: dict[str, int] = field(default_factory=dict)
    #: Functions compiled, each distinct one once.
    compiled: int = 0
    #: Calls of functions, and arguments copied as they were not contiguous.
    calls: int = 0
    copied_arguments: int = 0

    def __str__(self) -> str:
        lines = [
            f"{self.graphs} graphs: {self.taken} of {self.products} products by FTuner,"
            f" with {self.fused} pointwise operators and copies",
            f"{self.compiled} functions compiled, {self.copies} copies of operands inserted",
            f"{self.calls} calls, {self.copied_arguments} arguments copied",
        ]
        lines += [f"  {name}: {count} products" for name, count in self.functions.items()]
        if self.left:
            lines.append("left to PyTorch:")
            lines += [f"  {left}" for left in self.left]
        return "\n".join(lines)


_report = Report()
_lock = threading.Lock()


@contextmanager
def update() -> Iterator[Report]:
    """The counts, to be changed by one thread at a time."""
    with _lock:
        yield _report


def count_call(copied_arguments: int) -> None:
    """One call of a function."""
    with _lock:
        _report.calls += 1
        _report.copied_arguments += copied_arguments


def report() -> Report:
    """A copy of the counts."""
    with _lock:
        return copy.deepcopy(_report)


def reset_report() -> None:
    """Starts all counts again."""
    global _report
    with _lock:
        _report = Report()
