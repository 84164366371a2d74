"""The time of a model from the times of its launches (CDMPP, appendix C, algorithm 2)."""

from __future__ import annotations

import dataclasses
import heapq
import math
from collections.abc import Sequence


@dataclasses.dataclass(frozen=True)
class Launch:
    """One launch, or several kernels one after the other that count as one.

    Attributes:
        duration: microseconds of all its kernels together.
        queue: the queue that it is of.
        after: launches that it waits for.
        kernels: how many kernels it is. One without any does not happen: no gap is behind it, and the host issues nothing.
        turn: microseconds of the kernels of a turn, which repeat until there are so many kernels; alike where it is empty.
    """

    name: str
    duration: float
    queue: int = 0
    after: tuple[int, ...] = ()
    kernels: int = 1
    turn: tuple[float, ...] = ()


@dataclasses.dataclass(frozen=True)
class Placement:
    """When a launch runs, and when the host begins to issue it, in microseconds since the host began."""

    launch: int
    start: float
    end: float
    issue: float = 0.0


def _issues(kernels: Sequence[int], interval: float) -> list[float]:
    """Times at which the host begins to issue each launch: after all kernels of the launches before it."""
    begins: list[float] = []
    issued = 0
    for count in kernels:
        begins.append(issued * interval)
        issued += count
    return begins


def _end(start: float, launch: Launch, issue: float, gap: float, interval: float) -> float:
    """When a launch ends whose first kernel starts then.

    Each of its kernels starts after the one before, and its gap, and once it is issued: kernel i, from 0 on, at
    `issue` + (i + 1) `interval`. So the end is the latest of those that follow from the first start and from each issue,
    with all kernels from that one on behind it. From turn to turn this grows or falls by the same, so the first and the last
    turn decide.
    """
    count = launch.kernels
    device = start + launch.duration + max(0, count - 1) * gap
    if interval == 0 or count <= 1:
        return device
    turn = launch.turn or (launch.duration / count,)
    ends = [device]
    for first in {0, count - len(turn)}:
        rest = launch.duration * (count - first) / count
        for number, duration in enumerate(turn, first):
            ends.append(issue + (number + 1) * interval + rest + (count - 1 - number) * gap)
            rest -= duration
    return max(ends)


def assign(
    durations: Sequence[float],
    after: Sequence[Sequence[int]],
    queues: int,
    gap: float = 0.0,
    interval: float = 0.0,
    kernels: Sequence[int] | None = None,
    turns: Sequence[tuple[float, ...]] | None = None,
) -> list[Launch]:
    """Launches on so many queues, each of which runs its launches in their order, as a stream of CUDA does.

    A launch follows, on its queue, one that it waits for and that is the last there, the later one to end; where there is
    none it goes to the queue that is free first. With one queue this is the order of the launches. `after` has only
    earlier launches. `gap` and `interval` are as in `replay`, and `kernels`, 1 where there are none, and `turns`, those of
    `turn`, as in `Launch`. Raises ValueError where `after` has others, for turns that do not make up a launch, and for no
    queue.
    """
    if queues < 1:
        raise ValueError(f"queues: expected at least 1, but got {queues}")
    counts = [1] * len(durations) if kernels is None else [*kernels]
    issues = _issues(counts, interval)
    # When what follows a launch may start.
    end: list[float] = []
    free = [0.0] * queues
    last: list[int | None] = [None] * queues
    assigned: list[Launch] = []
    for number, (duration, waits) in enumerate(zip(durations, after, strict=True)):
        if any(not 0 <= other < number for other in waits):
            raise ValueError(f"launch {number} waits for one that is not before it")
        count = counts[number]
        ready = max((end[other] for other in waits), default=0.0)
        # It starts nowhere before the host has issued it.
        soonest = max(ready, issues[number] + interval if count else 0.0)
        followed = [queue for queue in range(queues) if last[queue] in waits]
        queue = (
            max(followed, key=lambda queue: (free[queue], -queue))
            if followed
            else min(range(queues), key=lambda queue: (max(free[queue], soonest), queue))
        )
        before = last[queue]
        every = sorted({*waits, *(() if before is None else (before,))})
        turn = () if turns is None else turns[number]
        if turn and (
            count % len(turn) or not math.isclose(sum(turn) * (count // len(turn)), duration)
        ):
            raise ValueError(
                f"launch {number}: turns of {turn} do not make up {count} kernels of {duration} in all"
            )
        assigned.append(Launch(str(number), duration, queue, tuple(every), count, turn))
        ends = _end(max(free[queue], soonest), assigned[-1], issues[number], gap, interval)
        end.append(ends + (gap if count else 0.0))
        free[queue], last[queue] = end[-1], number
    return assigned


def replay(launches: Sequence[Launch], gap: float = 0.0, interval: float = 0.0) -> list[Placement]:
    """When each launch runs, in the order in which they begin.

    A queue runs one launch at a time, of those that are ready the one that was ready first. Behind each kernel lies `gap`, in
    which its queue starts nothing and what waits for it is not ready. The host issues the kernels of all queues in the order
    of `launches`, and takes `interval` for each; it does not wait for the device, and no kernel starts before its issue
    ends. Both are 0 where launches are recorded as a graph. Raises ValueError for launches that wait for themselves, and for
    numbers that are not launches.
    """
    waiting = [len(set(launch.after)) for launch in launches]
    followers: list[list[int]] = [[] for _ in launches]
    for number, launch in enumerate(launches):
        for other in set(launch.after):
            if not 0 <= other < len(launches):
                raise ValueError(f"launch {number} waits for {other}, which is none")
            followers[other].append(number)
    issues = _issues([launch.kernels for launch in launches], interval)
    ready = [issue + interval if launch.kernels else 0.0 for issue, launch in zip(issues, launches)]
    time: dict[int, float] = {launch.queue: 0.0 for launch in launches}
    queues: dict[int, list[tuple[float, int]]] = {queue: [] for queue in time}
    for number, launch in enumerate(launches):
        if waiting[number] == 0:
            heapq.heappush(queues[launch.queue], (ready[number], number))
    placed: list[Placement] = []
    while any(queues.values()):
        # The queue whose next launch begins first.
        queue = min(
            (queue for queue in queues if queues[queue]),
            key=lambda queue: (max(time[queue], queues[queue][0][0]), queue),
        )
        _, number = heapq.heappop(queues[queue])
        launch = launches[number]
        start = max(time[queue], ready[number])
        end = _end(start, launch, issues[number], gap, interval)
        placed.append(Placement(number, start, end, issues[number]))
        time[queue] = after = end + (gap if launch.kernels else 0.0)
        for follower in followers[number]:
            ready[follower] = max(ready[follower], after)
            waiting[follower] -= 1
            if waiting[follower] == 0:
                heapq.heappush(queues[launches[follower].queue], (ready[follower], follower))
    if len(placed) < len(launches):
        raise ValueError("launches wait for each other")
    return sorted(placed, key=lambda item: (item.start, item.launch))


def makespan(placed: Sequence[Placement]) -> float:
    """Microseconds from the host's beginning to the end of the last launch."""
    return max((item.end for item in placed), default=0.0)
