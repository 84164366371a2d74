"""The choice between FTuner and PyTorch's own operators for each size of a product.

The dispatch of a function has intervals of sizes, each with the kernels of one family. For each of
them the predicted times of FTuner's kernel and of PyTorch's operators are compared, at the shapes
that the search looked at: the vendor's kernel by `ftuner.latency.vendor`, and the pointwise operators
and copies around it by the bytes that they move. Both are predictions.

PyTorch's time is of two kinds. An interval is PyTorch's if its operators are faster *one by one*, since
that is how they run beside FTuner's intervals. The product as a whole must be faster than the *host's*
operators, which Inductor joins to one kernel after the product; reports compare with these.
"""

from __future__ import annotations

import functools
import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from ftuner.describe.work import evaluate
from ftuner.host.function import Function
from ftuner.latency import vendor
from torch import Tensor

from ..graph import layout as lay
from ..graph.nodes import PRODUCTS, aten
from ..settings import Settings, check_format
from . import alternative

if TYPE_CHECKING:
    from .importing import ImportedRegion

#: The version of the text of a choice.
FORMAT = 2
#: Bytes of an element.
_BYTES = {"f32": 4, "f16": 2, "bf16": 2}
_AXES = "mnk"


def _holds(lows: Sequence[int], highs: Sequence[int | None], extents: Sequence[float]) -> bool:
    return all(
        low <= extent and (high is None or extent <= high)
        for low, high, extent in zip(lows, highs, extents)
    )


@dataclass(frozen=True)
class Interval:
    """Sizes that one family serves, and how long they are predicted to take.

    Attributes:
        low, high: limits of the extents along m, n, k and the axes of batches; None: no limit.
        ftuner_us, pytorch_us: geometric means over the shapes that the search looked at; PyTorch's
            operators run one by one.
        host_us: like `pytorch_us`, for the operators as the host runs them.
        joins: true if the host joins the operators after a product to one kernel.
        is_ftuners: true if FTuner computes these sizes.
    """

    low: tuple[int, ...]
    high: tuple[int | None, ...]
    ftuner_us: float
    pytorch_us: float
    host_us: float
    joins: bool
    is_ftuners: bool

    @property
    def baseline(self) -> str:
        """The operators that `host_us` is the time of."""
        joined = "the vendor's product and Inductor's joined operators"
        return joined if self.joins else "PyTorch's operators"

    def holds(self, extents: Sequence[float]) -> bool:
        return _holds(self.low, self.high, extents)

    def as_json(self) -> dict[str, Any]:
        """The fields under their names in texts: `least` and `most` for the limits."""
        fields = dict(vars(self))
        return {"least": fields.pop("low"), "most": fields.pop("high"), **fields}

    @staticmethod
    def of_json(fields: Mapping[str, Any]) -> Interval:
        """Reads what `as_json` gives."""
        rest = dict(fields)
        return Interval(low=tuple(rest.pop("least")), high=tuple(rest.pop("most")), **rest)

    def __str__(self) -> str:
        name = "FTuner" if self.is_ftuners else "PyTorch"
        return (
            f"{_sizes(self.low, self.high)}: {name} ({self.ftuner_us:.1f} us by FTuner,"
            f" {self.pytorch_us:.1f} us by PyTorch's operators one by one)"
        )


def _sizes(lows: Sequence[int], highs: Sequence[int | None]) -> str:
    """Ranges of extents, by the names of their axes."""
    names = [*_AXES, *(f"b{number}" for number in range(len(lows) - len(_AXES)))]
    parts = []
    for name, low, high in zip(names, lows, highs):
        if low == high:
            parts.append(f"{name} = {low}")
        elif high is not None:
            parts.append(f"{name} = {low} to {high}")
        else:
            parts.append(f"{name} from {low}")
    return ", ".join(parts)


def describe(intervals: Sequence[Interval]) -> list[str]:
    """A line for intervals that lie side by side and are of one side, with the predicted gain over the
    baseline that the line names."""
    runs: list[list[Interval]] = []
    for interval in dict.fromkeys(intervals):
        if runs and _continues(runs[-1][-1], interval):
            runs[-1].append(interval)
        else:
            runs.append([interval])
    lines = []
    for run in runs:
        sizes = _sizes(run[0].low, run[-1].high)
        if run[0].is_ftuners:
            name, other = "FTuner", run[0].baseline
            ratios = [one.host_us / one.ftuner_us for one in run]
        else:
            name, other = "PyTorch's operators one by one", "FTuner"
            ratios = [one.ftuner_us / one.pytorch_us for one in run]
        low, high = (f"{ratio:.2f}" for ratio in (min(ratios), max(ratios)))
        times = low if low == high else f"{low} to {high}"
        lines.append(f"{sizes}: {name}, predicted {times} times as fast as {other}")
    return lines


def _continues(one: Interval, other: Interval) -> bool:
    """Returns whether the other interval has the next sizes along one axis, and equal ones along
    the rest."""
    limits = list(zip(one.low, one.high, other.low, other.high))
    return one.is_ftuners == other.is_ftuners and (
        [high + 1 == next_low for low, high, next_low, _ in limits if high is not None].count(True)
        == 1
        == sum((low, high) != (next_low, next_high) for low, high, next_low, next_high in limits)
    )


@dataclass(frozen=True)
class Choice:
    """The sizes that FTuner and PyTorch compute, and how extents follow from the arguments.

    Attributes:
        intervals: the first that holds the extents decides; without one it is PyTorch.
        sizes: by the names in `extents`, the argument and its dimension.
        extents: of the axes, numbers or formulas of sizes (docs/manifest.md).
    """

    intervals: tuple[Interval, ...]
    sizes: Mapping[str, tuple[int, int]]
    extents: tuple[int | str, ...]

    @property
    def is_all(self) -> bool:
        """Returns whether FTuner computes all intervals."""
        return all(interval.is_ftuners for interval in self.intervals)

    def whole(self) -> Choice:
        """The choice for hosts that cannot take turns: all sizes are of one side.

        It is FTuner's where the geometric mean of its times is at most PyTorch's, and FTuner has an
        interval.
        """
        gain = sum(math.log(one.pytorch_us / one.ftuner_us) for one in self.intervals)
        is_ftuners = gain >= 0 and any(one.is_ftuners for one in self.intervals)
        intervals = (replace(one, is_ftuners=is_ftuners) for one in self.intervals)
        return replace(self, intervals=tuple(intervals))

    def is_ftuners(self, sizes: Sequence[int]) -> bool:
        """Returns whether FTuner computes these `sizes`, which are in their order."""
        interval = self.interval_at(sizes)
        return interval is not None and interval.is_ftuners

    def interval_at(self, sizes: Sequence[int]) -> Interval | None:
        """The interval of these `sizes`, which are in their order."""
        given = dict(zip(self.sizes, sizes))
        extents = [evaluate(formula, given) for formula in self.extents]
        return next((interval for interval in self.intervals if interval.holds(extents)), None)

    def write(self, code: str) -> str:
        """The text that `Selector.read` reads, with that of an alternative."""
        fields = {
            "format": FORMAT,
            "intervals": [interval.as_json() for interval in self.intervals],
            "sizes": list(self.sizes.items()),
            "extents": self.extents,
            "code": code,
        }
        return json.dumps(fields)


class Selector:
    """Decides calls, each sizes once, and has what PyTorch runs."""

    def __init__(self, choice: Choice, code: str) -> None:
        self.run_pytorch = alternative.read(code)
        self._choice = choice
        self._places = list(choice.sizes.values())
        self._known: dict[tuple[int, ...], bool] = {}

    @staticmethod
    @functools.cache
    def read(text: str) -> Selector:
        fields = json.loads(text)
        check_format("a graph with choices", FORMAT, fields["format"])
        intervals = map(Interval.of_json, fields["intervals"])
        sizes = {name: (argument, dim) for name, (argument, dim) in fields["sizes"]}
        return Selector(Choice(tuple(intervals), sizes, tuple(fields["extents"])), fields["code"])

    @property
    def places(self) -> tuple[tuple[int, int], ...]:
        """The arguments and dimensions whose sizes decide."""
        return tuple(self._places)

    def is_ftuners(self, tensors: Sequence[Tensor]) -> bool:
        return self.decide(tuple(tensors[argument].shape[dim] for argument, dim in self._places))

    def decide(self, sizes: tuple[int, ...]) -> bool:
        """Returns whether FTuner computes these sizes of the places."""
        known = self._known.get(sizes)
        if known is None:
            known = self._known[sizes] = self._choice.is_ftuners(sizes)
        return known


@dataclass(frozen=True)
class SurroundingLaunches:
    """PyTorch's launches beside the kernel of a product, and the elements that they move."""

    #: Copies of operands, and of a summand that is not a vector.
    lhs_copies: int
    rhs_copies: int
    summand_copies: int
    #: Operators after the product, and the tensors of the result's shape that they read.
    operators: int
    extras: int
    #: True if the product reads its right factor along K.
    is_transposed: bool


def _surrounding_launches(imported: ImportedRegion) -> SurroundingLaunches:
    region, function = imported.region, imported.function
    product = region.seed
    lhs, rhs = (lay.operand_of(product, position) for position in PRODUCTS[product.target])
    summand = lay.operand_of(product) if len(product.args) > 2 else None
    is_vector = (
        product.target is aten.addmm.default
        and summand is not None
        and (len(lay.shape_of(summand)) == 1)
    )
    is_summed = summand is not None and product.kwargs.get("beta", 1) != 0
    lhs_source, rhs_source = region.sources[:2]
    whole = len(function.results[0].loops)
    return SurroundingLaunches(
        _copies(lhs, lhs_source.node),
        _copies(rhs, rhs_source.node),
        int(is_summed and not is_vector),
        len(region.fused),
        sum(len(loops) == whole for loops in function.arguments[2:]),
        lay.is_transposed(rhs),
    )


def _copies(node: Any, source: Any) -> int:
    """The number of copies between a product's operand and the tensor that the function reads."""
    count = 0
    # In place of the source there may be the call of another function already.
    while node is not source and node.target in lay.VIEWS:
        count += node.target in lay.COPIES
        node = node.args[0]
    return count


def choose(
    imported: ImportedRegion, function: Function, settings: Settings, joins: bool
) -> Choice | None:
    """Chooses the sizes of a region that FTuner computes; None if PyTorch's time is not known.

    ``joins`` says that the host makes one kernel of pointwise operators. If it would be faster with
    the whole region than FTuner and single operators of PyTorch taking turns, FTuner has no interval.
    """
    planned = planned_workload(function)
    if planned is None:
        return None
    (use, workload, looked_at), work = planned, function.report.data
    boxes = workload["dispatch"] or workload["unaligned_dispatch"]
    if not boxes or 0 in looked_at[0]["shape"]:
        return None
    shapes = [tuple(one["shape"]) for one in looked_at]
    ftuner_times = [one["predicted_us"] for one in looked_at]
    pytorch = _pytorch_us(imported, settings, work["rates"], shapes, joins)
    if pytorch is None:
        return None

    def mean(times: Sequence[float]) -> float:
        return math.exp(sum(math.log(time) for time in times) / len(times))

    limits = [
        (tuple(axis["min"] for axis in one["box"]), tuple(axis["max"] for axis in one["box"]))
        for one in boxes
    ]
    of_shape = [
        next((number for number, box in enumerate(limits) if _holds(*box, shape)), None)
        for shape in shapes
    ]
    intervals = []
    for number, (low, high) in enumerate(limits):
        inside = [at for at, box in enumerate(of_shape) if box == number]
        inside = inside or [_nearest(shapes, low)]
        ftuner_us, pytorch_us, host_us = (
            mean([times[at] for at in inside])
            for times in (ftuner_times, pytorch.single, pytorch.joined)
        )
        is_ftuners = ftuner_us <= pytorch_us
        intervals.append(Interval(low, high, ftuner_us, pytorch_us, host_us, joins, is_ftuners))
    gain = 0.0
    for at, box in enumerate(of_shape):
        is_ftuners = box is not None and intervals[box].is_ftuners
        gain += math.log(pytorch.joined[at] / (ftuner_times if is_ftuners else pytorch.single)[at])
    if gain <= 0:
        intervals = [replace(interval, is_ftuners=False) for interval in intervals]
    sizes = {name: place_of(name, imported) for name in work["sizes"]}
    return Choice(tuple(intervals), sizes, tuple(use["extents"]))


#: Parts of a function's report and of its manifest.
_Parts = tuple[Mapping[str, Any], Mapping[str, Any], Sequence[Mapping[str, Any]]]


def planned_workload(function: Function) -> _Parts | None:
    """The only workload of a function; None if it has several, or none with a predicted time.

    That is its part of the function's report, its part of the manifest, and the shapes that the search
    looked at with their predicted times.
    """
    uses = function.report.data.get("workloads", ())
    if len(uses) != 1:
        return None
    workloads = function.module.manifest["workloads"]
    workload = next(one for one in workloads if one["name"] == uses[0]["kernels_of"])
    known = [one for one in workload["predictions"] if one["predicted_us"] is not None]
    return (uses[0], workload, known) if known else None


def _nearest(shapes: Sequence[Sequence[int]], shape: Sequence[int]) -> int:
    """The shape that is nearest by the ratios of its extents."""
    return min(
        range(len(shapes)),
        key=lambda at: sum(abs(math.log(a / max(b, 1))) for a, b in zip(shapes[at], shape)),
    )


def place_of(name: str, imported: ImportedRegion) -> tuple[int, int]:
    """The argument and the dimension that have a size of the manifest."""
    if match := re.fullmatch(r"arg(\d+)_dim(\d+)", name):
        return int(match[1]), int(match[2])
    return imported.function.source_of(name)


@dataclass(frozen=True)
class _Times:
    """PyTorch's times at each shape: operators one by one, and pointwise ones as the host runs them."""

    single: list[float]
    joined: list[float]


def _pytorch_us(
    imported: ImportedRegion,
    settings: Settings,
    rates: Mapping[str, float],
    shapes: Sequence[Sequence[int]],
    joins: bool,
) -> _Times | None:
    function, launches = imported.function, _surrounding_launches(imported)
    result_type = function.results[0].kind
    dtype = function.types[0]
    if dtype == "f32" and str(settings.options.get("precision", "")).startswith("tf32"):
        dtype = "tf32"
    products = [(math.prod(batch), m, n, k) for m, n, k, *batch in shapes]
    times = vendor.predict(settings.device, dtype, products, is_transposed=launches.is_transposed)
    if times is None:
        return None

    def transfer(elements: float, kind: str) -> float:
        return elements * _BYTES[kind] * rates["us_per_byte"]

    def moved(elements: float, kind: str) -> float:
        """A kernel that reads or writes so many elements."""
        return rates["launch_us"] + transfer(elements, kind)

    single, joined = [], []
    for (batch, m, n, k), time in zip(products, times.tolist()):
        result = batch * m * n
        time += launches.lhs_copies * moved(2 * batch * m * k, function.types[0])
        time += launches.rhs_copies * moved(2 * batch * k * n, function.types[1])
        time += launches.summand_copies * moved(2 * result, result_type)
        extras = launches.extras * transfer(result, result_type)
        one = moved(2 * result, result_type)
        single.append(time + (launches.operators * one + extras if launches.operators else 0.0))
        joined.append(time + (one + extras if launches.operators else 0.0))
    return _Times(single, joined if joins else single)
