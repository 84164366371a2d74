"""Which tasks to measure on a new device (CDMPP, section 5.3, algorithm 1)."""

from __future__ import annotations

import dataclasses
from typing import Sequence

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]


@dataclasses.dataclass(frozen=True)
class SampledTasks:
    """Tasks by their numbers, in the order of their clusters, the largest first.

    `radius` is the greatest distance of a program to the nearest one of a sampled task: the ε of the paper's bound (8).
    """

    tasks: list[int]
    radius: float


def sample_tasks(programs: npt.ArrayLike, task_of: Sequence[int], count: int, seed: int = 0) -> SampledTasks:
    """For each of `count` clusters of programs (rows of features or latent vectors) the unused task that is nearest.

    A task is as far from a cluster's centre as its programs are on average. Raises ValueError for more clusters than tasks.
    """
    from sklearn.cluster import KMeans

    rows = np.asarray(programs, np.float64)
    of_row = np.asarray(task_of)
    tasks = np.unique(of_row)
    if rows.ndim != 2 or len(rows) != len(of_row):
        raise ValueError("expected a task for each program")
    if not 0 < count <= len(tasks):
        raise ValueError(f"expected 1 to {len(tasks)} tasks, but got {count}")
    clusters = min(count, len(np.unique(rows, axis=0)))
    means = KMeans(clusters, n_init=4, random_state=seed).fit(rows)
    sizes = np.bincount(means.labels_, minlength=clusters)
    left = {int(task) for task in tasks}
    chosen: list[int] = []
    order = sorted(range(clusters), key=lambda cluster: (-sizes[cluster], cluster))
    for turn in range(count):
        centre = means.cluster_centers_[order[turn % clusters]]
        distance = np.linalg.norm(rows - centre, axis=1)
        best = min(left, key=lambda task: (distance[of_row == task].mean(), task))
        left.remove(best)
        chosen.append(best)
    sampled = rows[np.isin(of_row, chosen)]
    radius = max(float(np.linalg.norm(sampled - row, axis=1).min()) for row in rows)
    return SampledTasks(chosen, radius)
