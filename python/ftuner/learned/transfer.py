"""Boosted trees for a device of which few tasks were measured.

Two predictors of transformed labels are averaged for that device:

* *pooled* trees, trained anew on the source and, `WEIGHT` times, on the tasks;
* *stacked* ones (Wolpert, Stacked Generalization, 1992): what the source's predictor says of a program on each of the source's
  devices, in the non-negative combination that tells the tasks best, drawn to the mean of all as far as cross-validation
  over the tasks says; and small trees that learn what is left.

Devices differ in how much they differ: a constant and an exponent tell much of it, which few tasks teach, and no tree of
decisions on figures of devices does. For other devices the pooled trees hold alone.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import Error
from ..latency.model import model
from . import boosted
from .boosted import BoostedTrees
from .dataset import Dataset, device_figures, targets
from .provenance import Provenance

Array = npt.NDArray[np.float64]
# Nodes of a tree × fields (boosted.BoostedTrees).
Nodes = npt.NDArray[np.float32]
Figures = npt.NDArray[np.float32]

# Weight of each task among the programs that pooled trees are trained on.
WEIGHT = 5
_FOLDS = 5
# Strengths by which a combination is drawn to the mean; the first of equals is taken.
_RIDGES = (10.0, 1.0, 1e-1, 1e-2, 1e-3)
# Small trees, for some ten programs and more.
_SMALL: dict[str, Any] = dict(
    max_iter=30, learning_rate=0.1, max_leaf_nodes=6, min_samples_leaf=5, l2_regularization=1.0
)
# Figures of devices are equal up to it (they are logarithms).
_SAME = 1e-3


def tune(trained: BoostedTrees, source: Dataset, tasks: Dataset, seed: int = 0) -> BoostedTrees:
    """Trees that know the devices of `tasks`, measured programs of few shapes; `source` is what `trained` was trained on.

    Raises `Error` without programs of the source or tasks, for a source that lacks a device that `trained` knows, for labels by
    quantiles, for devices that figures do not tell apart, and for corrections of what `latency` does not predict.
    """
    if not len(source) or not len(tasks):
        raise Error("expected programs of the source, and tasks")
    of_source, of_tasks = (targets(part, trained.corrects) for part in (source, tasks))
    if trained.labels.kind == "quantile":
        raise Error(
            "expected labels by another transform than quantiles, which end with those of the source"
        )
    every = Dataset.concatenate([source, *[tasks] * WEIGHT])
    vectors = {
        every.device_names[card]: every.device_vectors[card] for card in np.unique(every.device)
    }
    known = trained.provenance.devices if trained.provenance else {}
    if missing := [name for name, rows in known.items() if rows and name not in vectors]:
        raise Error(
            f"expected programs of the source on each device of the predictor, but there are none on {', '.join(missing)}"
        )
    names = {card: tasks.device_names[card] for card in np.unique(tasks.device).tolist()}
    for name in names.values():
        _check_apart(name, vectors)
    labels = trained.labels.widened(of_tasks)
    pooled = boosted.train(every, corrects=trained.corrects, seed=seed, labels=labels)
    trees = list(pooled.nodes)
    for card, name in names.items():
        vector = vectors[name]
        constant, stacked = _stack(trained, source, tasks.select(tasks.device == card), seed)
        # Half of what pooled trees say, and half of what stacked ones do.
        trees = [
            _for_device(vector, _scaled(_resolved(nodes, vector), 0.5), nodes) for nodes in trees
        ]
        trees += [
            _for_device(vector, _scaled(nodes, 0.5), _leaf(0))
            for nodes in (*stacked, _leaf(constant - pooled.base))
        ]
    provenance = Provenance.from_data(source, of_source).extended(tasks, of_tasks)
    return BoostedTrees(labels, pooled.base, boosted.packed(trees), trained.corrects, provenance)


def _check_apart(name: str, vectors: dict[str, Figures]) -> None:
    for other, vector in vectors.items():
        if other != name and (np.abs(vector - vectors[name]) <= 2 * _SAME).all():
            raise Error(
                f"expected figures that tell the device '{name}' from '{other}', but they have the same"
            )


# Stacking ----------------------------------------------------------------------------------------------------------------


def _stack(
    trained: BoostedTrees, source: Dataset, own: Dataset, seed: int
) -> tuple[float, list[Nodes]]:
    """A constant and trees, which add up to the label of a program on the device of `own`."""
    vectors = source.device_vectors[np.unique(source.device)]
    rows = boosted.inputs(own)
    on_source = [rows.copy() for _ in vectors]
    for features, vector in zip(on_source, vectors):
        features[:, -len(device_figures()) :] = vector
    said = np.stack([trained.sums(features) for features in on_source], 1)
    wanted = trained.labels.forward(targets(own, trained.corrects))
    # Programs of a task are in one fold, unless there are hardly any tasks.
    tasks, unit = np.unique(own.task, return_inverse=True)
    if len(tasks) < _FOLDS:
        unit = np.arange(len(own))
    count = int(unit.max()) + 1
    fold = (np.random.default_rng(seed).permutation(count) % _FOLDS)[unit]

    def error(ridge: float) -> float:
        """Squared error of combinations, of each program by one that other folds gave; 0 where there are hardly any."""
        found = 0.0
        for number in range(_FOLDS) if count >= _FOLDS else ():
            is_out = fold == number
            weights, constant = _combination(said[~is_out], wanted[~is_out], ridge)
            found += float(((constant + said[is_out] @ weights - wanted[is_out]) ** 2).sum())
        return found

    weights, constant = _combination(said, wanted, min(_RIDGES, key=error))
    # Small trees fit the residual of the combination.
    base, small = boosted.grown(
        rows, wanted - constant - said @ weights, random_state=seed, **_SMALL
    )
    trees = [
        _scaled(_resolved(nodes, vector), weight)
        for weight, vector in zip(weights.tolist(), vectors)
        if weight > 0
        for nodes in trained.nodes
    ]
    own_vector = own.device_vectors[own.device[0]]
    return constant + float(weights.sum()) * trained.base + base, [
        *trees,
        *(_resolved(nodes, own_vector) for nodes in small),
    ]


def _combination(said: Array, wanted: Array, ridge: float) -> tuple[Array, float]:
    """Weights of at least 0, drawn to the weights of the mean, and a constant."""
    from scipy.optimize import nnls

    count = said.shape[1]
    mean = said.mean(0)
    pull = max(float((said - mean).std()), 1e-6) * np.sqrt(len(said) * ridge)
    left = np.vstack([said - mean, pull * np.eye(count)])
    right = np.concatenate([wanted - wanted.mean(), np.full(count, pull / count)])
    weights = np.asarray(nnls(left, right)[0])
    return weights, float(wanted.mean() - mean @ weights)


# Trees -------------------------------------------------------------------------------------------------------------------


def _leaf(value: float) -> Nodes:
    return np.array([[-1, 0, 0, 0, value]], np.float32)


def _scaled(nodes: Nodes, factor: float) -> Nodes:
    return nodes * np.array([1, 1, 1, 1, factor], np.float32)


def _resolved(nodes: Nodes, vector: Figures) -> Nodes:
    """The tree on a device with these figures: it asks for none."""
    first_figure = len(model().program_features())

    def after(place: int) -> int:
        """The node at which a walk comes to a stop or to a question on the program."""
        while nodes[place, 0] >= first_figure:
            is_left = vector[int(nodes[place, 0]) - first_figure] <= nodes[place, 1]
            place = int(nodes[place, 2 if is_left else 3])
        return place

    kept = [after(0)]
    found = []
    for place in kept:  # It grows: children come after their parents.
        node = nodes[place].copy()
        if node[0] >= 0:
            for field in (2, 3):
                kept.append(after(int(node[field])))
                node[field] = len(kept) - 1
        found.append(node)
    return np.stack(found)


def _for_device(vector: Figures, then: Nodes, otherwise: Nodes) -> Nodes:
    """One tree on a device with these figures, and the other one elsewhere.

    The tree asks for all figures: a device that is not measured may have most of them, too.
    """
    first_figure = len(model().program_features())
    to_otherwise = 2 * len(vector) + len(then)
    nodes: list[list[float]] = []
    for input_, value in enumerate(vector.tolist(), first_figure):
        place = len(nodes)
        nodes.append([input_, value + _SAME, place + 1, to_otherwise, 0])
        nodes.append([input_, value - _SAME, to_otherwise, place + 2, 0])
    shift = np.array([0, 0, 1, 1, 0], np.float32)
    return np.concatenate(
        [np.array(nodes, np.float32), then + len(nodes) * shift, otherwise + to_otherwise * shift]
    )
