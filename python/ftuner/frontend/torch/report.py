"""Counts of the backend: while it compiles, and at each call."""

from __future__ import annotations

import copy
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from ftuner.host.memory import torch_calls

from .regions.choice import Interval, describe


@dataclass
class RejectedOp:
    """A product, or another operator that FTuner looked at, that stays with PyTorch."""

    operator: str
    reason: str
    #: The place in the model: the last line of the stack, if known.
    location: str
    #: Advice that brings it to FTuner, if there is any that the reason does not tell.
    hint: str = ""
    #: At the sizes that PyTorch compiled for; None if not known.
    flops: float | None = None

    def __str__(self) -> str:
        return f"{self.operator}: {self.reason}" + (f" ({self.location})" if self.location else "")


@dataclass
class KindCounts:
    """Counts of one kind of regions: operators that were looked at are taken or rejected."""

    #: Operators that became part of a function of FTuner, and functions that graphs call for them.
    taken: int = 0
    functions: int = 0
    #: FLOPs of those that are taken, at the sizes that PyTorch compiled for.
    taken_flops: float = 0.0
    rejected: list[RejectedOp] = field(default_factory=list)

    @property
    def looked_at(self) -> int:
        return self.taken + len(self.rejected)

    def add(self, other: KindCounts) -> None:
        self.taken += other.taken
        self.functions += other.functions
        self.taken_flops += other.taken_flops
        self.rejected += other.rejected


@dataclass
class Launches:
    """Kernels of a layer, forwards: FTuner's functions, all others, and the kernels without FTuner.

    With Inductor the last two are what it is expected to join (`ftuner.frontend.torch.prediction`).
    """

    ftuner: int = 0
    others: int = 0
    plain: int = 0

    def add(self, ftuner: int, others: int, plain: int) -> None:
        self.ftuner += ftuner
        self.others += others
        self.plain += plain

    def __str__(self) -> str:
        return f"{self.ftuner} by FTuner and {self.others} by others, {self.plain} without FTuner"


def layer_order(name: str) -> list[tuple[bool, int, str]]:
    """Sorts numbers in names by their value."""
    return [(part.isdigit(), int(part) if part.isdigit() else 0, part) for part in name.split(".")]


@dataclass
class Report:
    """Counts since the process began, or since `reset_report`.

    A product is an operator of ATen that multiplies matrices.
    """

    #: Graphs compiled; a training step has one forwards and one backwards.
    graphs: int = 0
    #: Counts by kind of region: "product" and "row". With ``rows="never"``, in graphs of training
    #: and in packages no reductions of rows are looked at.
    kinds: dict[str, KindCounts] = field(default_factory=dict)
    #: Products that were met at their first call, in graphs that PyTorch had in its caches, or in
    #: packages, where each function counts once. Nobody looked at the rest of such a graph, and it
    #: is not among `graphs`.
    cached: int = 0
    #: Predicted microseconds at the sizes that PyTorch compiled for: FTuner's functions, and all
    #: other kernels. The latter take longer than that: only the bytes count of operators that are not
    #: products, and of `others_unknown` larger ones with products in them; collectives, which are
    #: among these, count nothing. Graphs without a function do not count.
    ftuner_us: float = 0.0
    others_us: float = 0.0
    others_unknown: int = 0
    #: Kernels of each layer of the model, by the path of its module up to the first number, as
    #: in "encoder.layer.3"; "" has what is in no layer.
    layers: dict[str, Launches] = field(default_factory=dict)
    #: Parts of the model that PyTorch's compiler did not hand over, and how often: they run as they
    #: are, and no product in them is counted.
    breaks: dict[str, int] = field(default_factory=dict)
    #: Operators that stay with PyTorch, products among them, and how many of each. Each launches a
    #: kernel or more; views, which launch none, do not count.
    operators: dict[str, int] = field(default_factory=dict)
    #: Operators in graphs that Inductor compiles. It joins them to kernels of its own, which are
    #: fewer.
    inductor_operators: dict[str, int] = field(default_factory=dict)
    #: Kernels that Inductor made, in graphs from PyTorch's caches, too.
    inductor_kernels: int = 0
    #: Pointwise operators and copies that became part of a function.
    fused: int = 0
    #: Copies inserted for operands that no contiguous tensor holds.
    copies: int = 0
    #: Functions by name, and how many products each one serves.
    functions: dict[str, int] = field(default_factory=dict)
    #: Sizes of a function that FTuner and PyTorch compute with take="faster", by its name.
    intervals: dict[str, list[Interval]] = field(default_factory=dict)
    #: Functions compiled, each distinct one once, and the seconds that threads waited for them:
    #: several at once are compiled side by side, and FTuner's cache may have them.
    compiled: int = 0
    compile_seconds: float = 0.0
    #: Calls of functions, and arguments copied as they were not contiguous.
    calls: int = 0
    #: Calls where PyTorch's operators ran instead, since they are predicted to be faster.
    pytorch_calls: int = 0
    copied_arguments: int = 0
    #: The reason why Python's code runs in calls, such as the lack of a C++ compiler; else empty.
    python_calls: str = ""

    def kind(self, name: str) -> KindCounts:
        """The counts of a kind of region."""
        return self.kinds.setdefault(name, KindCounts())

    @property
    def products(self) -> int:
        """Products in these graphs."""
        return self.kind("product").looked_at

    @property
    def taken(self) -> int:
        """Products that became FTuner functions."""
        return self.kind("product").taken

    @property
    def left(self) -> list[RejectedOp]:
        """Products that stay with PyTorch."""
        return self.kind("product").rejected

    @property
    def rows(self) -> int:
        """Reductions of rows that were looked at, such as softmax, norms and sums."""
        return self.kind("row").looked_at

    @property
    def rows_taken(self) -> int:
        """Reductions of rows that became part of `row_functions` functions of FTuner."""
        return self.kind("row").taken

    @property
    def row_functions(self) -> int:
        return self.kind("row").functions

    @property
    def rows_left(self) -> list[RejectedOp]:
        """Reductions of rows that stay with PyTorch."""
        return self.kind("row").rejected

    @property
    def taken_flops(self) -> float:
        """FLOPs of the products that FTuner computes, at the sizes that PyTorch compiled for."""
        return self.kind("product").taken_flops

    @property
    def pytorch_kernels(self) -> int:
        """The number of kernels that stay with PyTorch, one for each operator."""
        return sum(self.operators.values())

    @property
    def flops_share(self) -> float | None:
        """FTuner's share of the FLOPs of all products whose FLOPs are known; None without any.

        None, too, with graphs from PyTorch's caches, whose FLOPs are not.
        """
        if self.cached:
            return None
        flops = self.taken_flops + sum(left.flops or 0 for left in self.left)
        return self.taken_flops / flops if flops else None

    @property
    def time_share(self) -> float | None:
        """FTuner's share of the predicted time, at most; None where nothing is predicted."""
        time = self.ftuner_us + self.others_us
        return self.ftuner_us / time if time and not self.cached else None

    @property
    def warning(self) -> str:
        """A warning if FTuner computes little; else empty."""
        if self.breaks and not self.products:
            return "FTuner was given no product"
        share = self.flops_share
        if (share is not None and share < SMALL_SHARE) or (self.products and not self.taken):
            part = "no product" if not self.taken else f"only {share:.1%} of the FLOPs of products"
            return f"FTuner computes {part}"
        return ""

    def _layers(self) -> list[str]:
        """A line for layers beside each other that launch alike."""
        runs: list[tuple[list[str], Launches]] = []
        for name, launches in self.layers.items():
            if runs and runs[-1][1] == launches and name and runs[-1][0][0]:
                runs[-1][0].append(name)
            else:
                runs.append(([name], launches))
        return [
            f"{names[0] or 'in no layer'}{f' to {names[-1]}' if names[1:] else ''}: {launches}"
            for names, launches in runs
        ]

    def __str__(self) -> str:
        lines = [
            f"{self.graphs} graphs: {self.taken} of {self.products} products by FTuner,"
            f" with {self.fused} pointwise operators and copies",
        ]
        if self.cached:
            lines.append(
                f"{self.cached} of these from PyTorch's caches or packages, counted at their first"
                " call; what else is in their graphs is not known"
            )
        if self.left and self.flops_share is not None:
            unknown = sum(left.flops is None for left in self.left)
            lines.append(
                f"{self.flops_share:.1%} of the FLOPs of products by FTuner"
                + (f", without {unknown} whose FLOPs are not known" if unknown else "")
            )
        if self.time_share is not None:
            lines.append(
                f"at most {self.time_share:.1%} of the time by FTuner: {self.ftuner_us:.1f} us, others"
                f" {self.others_us:.1f} us or more, predicted at the sizes compiled for"
                + (
                    f", without {self.others_unknown} larger operators and collectives whose time is"
                    " not known"
                    if self.others_unknown
                    else ""
                )
            )
        if self.warning:
            lines.append(f"warning: {self.warning}")
        if self.rows:
            lines.append(
                f"{self.rows_taken} of {self.rows} reductions of rows by {self.row_functions} functions"
                " of FTuner"
            )
        if self.operators:
            of_all = sum(kind.functions for kind in self.kinds.values()) + self.pytorch_kernels
            counted = sorted(self.operators.items(), key=lambda item: -item[1])
            lines.append(
                f"{self.pytorch_kernels} of {of_all} kernels stay with PyTorch: "
                + ", ".join(f"{count} x {name}" for name, count in counted)
            )
        if self.inductor_operators:
            counted = sorted(self.inductor_operators.items(), key=lambda item: -item[1])
            # Kernels of graphs that others give to Inductor are not counted.
            joined = self.inductor_kernels
            lines.append(
                f"{sum(self.inductor_operators.values())} operators for Inductor"
                + (f", which joined them to {joined} kernels: " if joined else ": ")
                + ", ".join(f"{count} x {name}" for name, count in counted)
            )
        if any(self.layers):
            lines += ["kernels launched for each layer:", *(f"  {line}" for line in self._layers())]
        lines += [
            f"{self.compiled} functions compiled, {self.copies} copies of operands inserted",
            f"{self.calls} calls, {self.copied_arguments} arguments copied",
        ]
        if self.calls and self.python_calls:
            lines.append(f"Python's code runs in calls: {self.python_calls}")
        if self.pytorch_calls:
            lines.append(f"{self.pytorch_calls} calls where PyTorch is predicted to be faster")
        for name in dict.fromkeys([*self.functions, *self.intervals]):
            if name in self.functions:
                lines.append(f"  {name}: {self.functions[name]} products")
            lines += [f"    {line}" for line in describe(self.intervals.get(name, ()))]
        if self.left:
            lines.append(f"left to PyTorch, {len(self.left)} of {self.products} products:")
            lines += _counted(self.left)
            hints = dict.fromkeys((left.reason, left.hint) for left in self.left if left.hint)
            lines += [f"  to get those left since {reason}: {hint}" for reason, hint in hints]
        if self.rows_left:
            lines.append(
                f"left to PyTorch, {len(self.rows_left)} of {self.rows} reductions of rows:"
            )
            lines += _counted(self.rows_left)
        if self.breaks:
            lines.append("not seen, since PyTorch's compiler did not hand it over:")
            lines += [f"  {text}" + _times(count) for text, count in self.breaks.items()]
        return "\n".join(lines)


def _counted(rejected: list[RejectedOp]) -> list[str]:
    """A line for operators that stay for one reason at one place, with their number."""
    return [f"  {text}" + _times(count) for text, count in Counter(map(str, rejected)).items()]


def _times(count: int) -> str:
    return f" ({count} times)" if count > 1 else ""


#: Below this share of the FLOPs of products there is a warning.
SMALL_SHARE = 0.5

#: Counters of PyTorch's compiler for parts of a model that it cannot take.
_BREAKS = ("unimplemented", "graph_break")
_report = Report()
#: Breaks that were known when the counts began.
_breaks_before: dict[str, int] = {}
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


def count_pytorch_call() -> None:
    """One call of what PyTorch runs in place of a function."""
    with _lock:
        _report.pytorch_calls += 1


def count_cached(name: str) -> None:
    """The first call of a product of a graph that PyTorch had in its caches."""
    with _lock:
        _report.kind("product").add(KindCounts(taken=1, functions=1))
        _report.cached += 1
        _report.functions[name] = _report.functions.get(name, 0) + 1


def count_cached_rows(name: str) -> None:
    """The first call of a function of rows of a graph that PyTorch had in its caches."""
    with _lock:
        _report.kind("row").functions += 1


def _breaks() -> dict[str, int]:
    """Breaks since the process began, with PyTorch's explanations and hints, and their numbers."""
    from torch._dynamo.utils import counters

    found: dict[str, int] = {}
    for text in dict.fromkeys(text for kind in _BREAKS for text in counters[kind]):
        lines = [line.strip() for line in str(text).splitlines() if line.strip()]
        kept = [line for line in lines[1:] if line.startswith(("Explanation:", "Hint: Set"))]
        short = " ".join(lines[:1] + kept)
        found[short] = found.get(short, 0) + max(counters[kind][text] for kind in _BREAKS)
    return found


def report() -> Report:
    """A copy of the counts."""
    with _lock:
        _report.calls += torch_calls.take_graph_calls()
        _report.python_calls = torch_calls.reason()
        counts = copy.deepcopy(_report)
        for text, count in _breaks().items():
            if (new := count - _breaks_before.get(text, 0)) > 0:
                counts.breaks[text] = new
        return counts


def reset_report() -> None:
    """Starts all counts again."""
    global _report, _breaks_before
    with _lock:
        torch_calls.take_graph_calls()
        _report, _breaks_before = Report(), _breaks()
