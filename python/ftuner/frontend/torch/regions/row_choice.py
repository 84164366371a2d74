"""The choice between FTuner and Inductor, which makes kernels itself, for rows.

Inductor holds a row in registers where it knows that the row has few elements. All others it reads in
a loop for the statistics, and in a second one for what follows from them. There FTuner's kernel, which
reads a row once, may be faster: it computes those whose predicted time is less than the bound of
Inductor's (`ftuner.latency.looping_rows`), in the geometric mean over the shapes that the search
looked at. Both are predictions.
"""

from __future__ import annotations

import math

from ftuner.host.function import Function
from ftuner.latency import looping_rows

from ..settings import Settings
from .choice import planned_workload
from .linalg import LinalgFunction, Operand, Range

#: Inductor's kernels hold rows of at most so many elements, where it knows that
#: (`InductorChoices.should_use_persistent_reduction`, torch/_inductor/choices.py; of rows that do not
#: lie along memory fewer).
PERSISTENT = 1024
HELD = f"rows of at most {PERSISTENT} elements, which Inductor reads once, too"
INDUCTOR_FASTER = "Inductor is predicted to be as fast or faster"
#: Bytes of an element.
_BYTES = {"f32": 4, "f16": 2, "bf16": 2, "i1": 1, "i32": 4, "i64": 8}


def why_inductors(length: Range) -> str | None:
    """The reason why rows of these lengths are Inductor's whatever their times; None if they are not."""
    return HELD if length.upper is not None and length.upper <= PERSISTENT else None


def traffic(function: LinalgFunction) -> tuple[int, int, int]:
    """Bytes for each element of a row: read at first, again, and written, by two loops of Inductor's.

    The second loop reads at least one tensor that results of whole rows need, if any of these needs a
    statistic. Tensors without the loop of the row do not count.
    """
    row = len(function.loops) - 1

    def is_whole(operand: Operand) -> bool:
        return row in operand.loops

    # The arguments of whole rows that each tensor follows from, and whether it needs a statistic.
    sources = {f"arg{number}": {number} for number in range(len(function.arguments))}
    needs_statistic = dict.fromkeys(sources, False)
    for number, step in enumerate(function.operators):
        whole = (sources[one.name] for one in step.operands if is_whole(one))
        sources[f"t{number}"] = set().union(*whole)
        needs = bool(step.combine) or any(needs_statistic[one.name] for one in step.operands)
        needs_statistic[f"t{number}"] = needs

    # Operands of reductions and results are all that is read.
    every = {number for number, loops in enumerate(function.arguments) if row in loops}
    of_results = [result for result in function.results if is_whole(result)]
    again = set().union(
        *(sources[result.name] for result in of_results if needs_statistic[result.name])
    )

    def size(numbers: set[int]) -> list[int]:
        # Tensors that all rows share, such as a weight, are in a cache.
        whole = len(function.loops)
        return [
            _BYTES[function.types[number]]
            for number in numbers
            if len(function.arguments[number]) == whole
        ]

    return (
        sum(size(every)),
        min(size(again), default=0),
        sum(_BYTES[one.kind] for one in of_results),
    )


def is_faster(function: LinalgFunction, compiled: Function, settings: Settings) -> bool:
    """Returns whether FTuner's kernel is predicted to be faster than Inductor's.

    False if nothing is predicted, and if the function has several workloads.
    """
    planned = planned_workload(compiled)
    if planned is None:
        return False
    use, _, predictions = planned
    # Nothing is gained for rows without elements.
    looked_at = [one for one in predictions if 0 not in one["shape"]]
    read, again, written = traffic(function)
    if not looked_at or not again:
        return False
    place = use["axes"].index("R")
    rows = []
    for one in looked_at:
        *shape, length = one["shape"][:place] + one["shape"][place + 1 :] + [one["shape"][place]]
        rows.append((float(math.prod(shape)), float(length)))
    bounds = looping_rows.predict(settings.device, rows, read, again, written)
    gain = sum(
        math.log(bound / one["predicted_us"]) for bound, one in zip(bounds.tolist(), looked_at)
    )
    return gain > 0
