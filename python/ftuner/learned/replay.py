"""The time of a model from those of its launches (CDMPP, appendix C, algorithm 2)."""

from __future__ import annotations

import dataclasses
import heapq
from typing import Sequence


@dataclasses.dataclass(frozen=True)
class Launch:
    """One launch: its duration in microseconds, the queue that it is of, launches that it waits for, and the gap behind it.

    Without a gap of its own it has that of the replay.
    """

    name: str
    duration: float
    queue: int = 0
    after: tuple[int, ...] = ()
    gap: float | None = None


@dataclasses.dataclass(frozen=True)
class Placed:
    """When a launch runs."""

    launch: int
    start: float
    end: float


def assign(
    durations: Sequence[float],
    after: Sequence[Sequence[int]],
    queues: int,
    gap: float | Sequence[float] | None = None,
) -> list[Launch]:
    """Launches on so many queues, each of which runs its launches in their order, as a stream of CUDA does.

    A launch follows, on its queue, one that it waits for and that is the last there, the later one to end; where there is
    none it goes to the queue that is free first. With one queue this is the order of the launches. `after` has only
    earlier launches. Behind each launch lies `gap`, or its own of several, as `replay` has it. Raises ValueError where it does not, and for no queue.
    """
    if queues < 1:
        raise ValueError(f"queues: expected at least 1, but got {queues}")
    gaps = [*gap] if isinstance(gap, Sequence) else [gap] * len(durations)
    # When what follows a launch may start.
    end: list[float] = []
    free = [0.0] * queues
    last: list[int | None] = [None] * queues
    assigned: list[Launch] = []
    for number, (duration, waits) in enumerate(zip(durations, after, strict=True)):
        if any(not 0 <= other < number for other in waits):
            raise ValueError(f"launch {number} waits for one that is not before it")
        ready = max((end[other] for other in waits), default=0.0)
        followed = [queue for queue in range(queues) if last[queue] in waits]
        queue = (
            max(followed, key=lambda queue: (free[queue], -queue))
            if followed
            else min(range(queues), key=lambda queue: (max(free[queue], ready), queue))
        )
        before = last[queue]
        every = sorted({*waits, *(() if before is None else (before,))})
        assigned.append(Launch(str(number), duration, queue, tuple(every), gaps[number]))
        end.append(max(free[queue], ready) + duration + (gaps[number] or 0.0))
        free[queue], last[queue] = end[-1], number
    return assigned


def replay(launches: Sequence[Launch], gap: float = 0.0) -> list[Placed]:
    """When each launch runs, in the order in which they begin.

    A queue runs one launch at a time, of those that are ready the one that was ready first. Behind a launch lies `gap`, in which
    its queue starts nothing and what waits for it is not ready: 0 where launches are recorded as a graph. Raises ValueError for
    launches that wait for themselves, and for numbers that are no launches.
    """
    waiting = [len(set(launch.after)) for launch in launches]
    followers: list[list[int]] = [[] for _ in launches]
    for number, launch in enumerate(launches):
        for other in set(launch.after):
            if not 0 <= other < len(launches):
                raise ValueError(f"launch {number} waits for {other}, which is none")
            followers[other].append(number)
    ready = [0.0] * len(launches)
    time: dict[int, float] = {launch.queue: 0.0 for launch in launches}
    queues: dict[int, list[tuple[float, int]]] = {queue: [] for queue in time}
    for number, launch in enumerate(launches):
        if waiting[number] == 0:
            heapq.heappush(queues[launch.queue], (0.0, number))
    placed: list[Placed] = []
    while any(queues.values()):
        queue = min((queue for queue in queues if queues[queue]), key=lambda queue: (time[queue], queue))
        _, number = heapq.heappop(queues[queue])
        start = max(time[queue], ready[number])
        end = start + launches[number].duration
        placed.append(Placed(number, start, end))
        own = launches[number].gap
        after = end + (gap if own is None else own)
        time[queue] = after
        for follower in followers[number]:
            ready[follower] = max(ready[follower], after)
            waiting[follower] -= 1
            if waiting[follower] == 0:
                heapq.heappush(queues[launches[follower].queue], (ready[follower], follower))
    if len(placed) < len(launches):
        raise ValueError("launches wait for each other")
    return sorted(placed, key=lambda item: (item.start, item.launch))


def makespan(placed: Sequence[Placed]) -> float:
    """Microseconds from the first launch to the end of the last one."""
    return max((item.end for item in placed), default=0.0)
