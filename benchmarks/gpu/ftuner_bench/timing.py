"""How calls are timed against each other.

Four ways to run the same work, all in microseconds of a call:

  graph_warm  replays of a CUDA graph, every call on the same buffers, which stay in
              the L2 cache where they fit
  graph_cold  replays of a graph whose calls go through many sets of buffers,
              together several times the L2 cache, so that each finds its own evicted
  plain_warm  calls from Python, one after the other, on the same buffers: the host's
              time counts where it is longer
  plain_cold  the same through many sets

Each sample is of one pass; samples of all contestants are taken in turns, each round
beginning with another, so that drifts of the clock meet all alike.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from . import stats

if TYPE_CHECKING:  # It needs PyTorch, and reports do not.
    from .machine import Call, Machine

MODES = ("graph_warm", "graph_cold", "plain_warm", "plain_cold")

# A sample lasts about this long, so that the resolution of events (about half a
# microsecond) is well below a percent.
SAMPLE_MICROSECONDS = 400.0
MOST_PASSES = 400


def compare(
    machine: Machine,
    contestants: dict[str, Sequence[Call]],
    mode: str,
    rounds: int,
    sample_microseconds: float = SAMPLE_MICROSECONDS,
) -> tuple[dict[str, dict[str, float]], dict[str, str]]:
    """Times contestants in one mode.

    contestants: from a name to its calls, one for each set of buffers.
    Returns the summaries (stats.summary, microseconds of a call), and for those that
    failed their errors in words.
    """
    work: dict[str, tuple[Call, int]] = {}
    errors: dict[str, str] = {}
    for name, calls in contestants.items():
        try:
            work[name] = _work(machine, calls, mode, sample_microseconds)
        except Exception as error:  # one contestant's failure is a result, too
            errors[name] = f"{type(error).__name__}: {error}"
    samples: dict[str, list[float]] = {name: [] for name in work}
    names = list(work)
    for turn in range(rounds):
        for position in range(len(names)):
            name = names[(position + turn) % len(names)]
            run, count = work[name]
            samples[name].append(machine.microseconds(run) / count)
    return {name: stats.summary(values) for name, values in samples.items()}, errors


def compare_captured(
    machine: Machine,
    contestants: dict[str, Sequence[Call]],
    mode: str,
    rounds: int,
    uncaptured: set[str],
    sample_microseconds: float = SAMPLE_MICROSECONDS,
) -> tuple[dict[str, dict[str, float]], dict[str, str]]:
    """As `compare`, but capturing is tried once: graph modes leave out whose names are in
    `uncaptured`, with an error that says so, and add those that fail."""
    if not mode.startswith("graph"):
        return compare(machine, contestants, mode, rounds, sample_microseconds)
    captured = {name: calls for name, calls in contestants.items() if name not in uncaptured}
    summaries, errors = compare(machine, captured, mode, rounds, sample_microseconds)
    uncaptured.update(errors)
    return summaries, {**dict.fromkeys(uncaptured, "no graph took it before"), **errors}


def _work(
    machine: Machine, calls: Sequence[Call], mode: str, sample_microseconds: float
) -> tuple[Call, int]:
    """One sample's work, and the number of calls in it."""
    kind, cache = mode.split("_")
    most = 1 if machine.rehearsal else MOST_PASSES
    used = calls[:1] if cache == "warm" else calls
    for call in used[:2]:
        call()
    machine.synchronize()
    once = machine.microseconds(used[0])
    passes = max(1, min(most, round(sample_microseconds / max(once, 1.0) / len(used))))
    if kind == "graph":
        return machine.capture(used, passes), passes * len(used)

    def plain() -> None:
        for _ in range(passes):
            for call in used:
                call()

    return plain, passes * len(used)
