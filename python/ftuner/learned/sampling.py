"""Selection of tasks to measure on a new device (CDMPP, section 5.3, algorithm 1)."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from .boosted import inputs
from .dataset import Dataset

Array = npt.NDArray[np.float64]


@dataclasses.dataclass(frozen=True)
class SampledTasks:
    """Tasks by their numbers, in the order of their clusters, the largest first.

    `radius` is the greatest distance of a program to the nearest one of a sampled task: the ε of the paper's bound (8).
    """

    tasks: list[int]
    radius: float


def sample_tasks(
    programs: npt.ArrayLike, task_of: Sequence[int], count: int, seed: int = 0
) -> SampledTasks:
    """The nearest unused task for each of `count` clusters of programs (rows of features or latent vectors).

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
    left = np.ones(len(tasks), bool)
    place = np.searchsorted(tasks, of_row)
    programs_of = np.bincount(place)
    chosen: list[int] = []
    order = sorted(range(clusters), key=lambda cluster: (-sizes[cluster], cluster))
    for turn in range(count):
        centre = means.cluster_centers_[order[turn % clusters]]
        distance = np.linalg.norm(rows - centre, axis=1)
        mean = np.bincount(place, distance) / programs_of
        best = int(np.argmin(np.where(left, mean, np.inf)))
        left[best] = False
        chosen.append(int(tasks[best]))
    return SampledTasks(chosen, _radius(rows, np.isin(of_row, chosen)))


def random_tasks(
    programs: npt.ArrayLike, task_of: Sequence[int], count: int, seed: int = 0
) -> SampledTasks:
    """Chooses tasks at random, as a baseline of `sample_tasks`."""
    rows, of_row = np.asarray(programs, np.float64), np.asarray(task_of)
    tasks = np.unique(of_row)
    if not 0 < count <= len(tasks):
        raise ValueError(f"expected 1 to {len(tasks)} tasks, but got {count}")
    chosen = [int(task) for task in np.random.default_rng(seed).permutation(tasks)[:count]]
    return SampledTasks(chosen, _radius(rows, np.isin(of_row, chosen)))


def standard_features(data: Dataset) -> npt.NDArray[np.float32]:
    """Mean features of programs' statements and their devices' figures, standardised: programs × numbers."""
    rows = inputs(data)
    deviation = rows.std(0)
    return np.asarray((rows - rows.mean(0)) / np.where(deviation > 1e-6, deviation, 1), np.float32)


def _radius(rows: npt.NDArray[np.float64], is_sampled: npt.NDArray[np.bool_]) -> float:
    """The greatest distance of a row to the nearest sampled one."""
    from scipy.spatial import cKDTree

    return float(cKDTree(rows[is_sampled]).query(rows)[0].max())
