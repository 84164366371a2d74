"""Boosted trees on the mean of a program's statements: the baseline that knows no tree structure (CDMPP, section 7.1)."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import Error
from ..latency.model import model
from . import files
from .dataset import Dataset, device_figures, require_predictions, targets
from .labels import Labels
from .provenance import Provenance

FORMAT = "ftuner-boosted-trees"
# Number of fields of a node, as f32: feature (−1: a leaf), threshold, left and right node, value.
_FIELDS = 5
ROUNDS = 300


def inputs(data: Dataset) -> npt.NDArray[np.float32]:
    """Mean features of a program's statements, weighted by the blocks of its trees, and its device's figures."""
    means = []
    for trees in data.trees:
        shares = np.array([tree.blocks for tree in trees], np.float64)
        # In f64 and in this order, as the compiler's: rounded to f32 both are the same bit by bit.
        tree_means = np.stack([tree.features.mean(0, dtype=np.float64) for tree in trees])
        means.append((shares[:, None] * tree_means).sum(0) / shares.sum())
    return np.hstack([np.stack(means).astype(np.float32), data.device_vectors[data.device]])


@dataclasses.dataclass
class BoostedTrees:
    """Trees of decisions, whose sum and `base` are transformed labels."""

    labels: Labels
    base: float
    # trees × nodes × `_FIELDS`; shorter trees end with leaves that nothing leads to.
    nodes: npt.NDArray[np.float32]
    corrects: bool = False
    # Facts that the compiler needs to trust the predictor; `save` needs them.
    provenance: Provenance | None = None

    def predict(self, data: Dataset) -> npt.NDArray[np.float64]:
        """Microseconds of each program."""
        if self.corrects:
            require_predictions(data)
        if not len(data):
            return np.empty(0)
        times = self.labels.backward(self.sums(inputs(data)))
        if self.corrects and self.provenance is not None:
            times = self.provenance.bounded(times)
        return times * data.predicted if self.corrects else times

    def sums(self, rows: npt.NDArray[np.float32]) -> npt.NDArray[np.float64]:
        """Transformed labels of programs' `inputs`."""
        total = np.full(len(rows), self.base)
        for nodes in self.nodes:
            at = np.zeros(len(rows), np.int64)
            while True:
                feature = nodes[at, 0].astype(np.int64)
                inner = np.flatnonzero(feature >= 0)
                if not len(inner):
                    break
                inner_nodes = nodes[at[inner]]
                is_left = rows[inner, feature[inner]] <= inner_nodes[:, 1]
                at[inner] = np.where(is_left, inner_nodes[:, 2], inner_nodes[:, 3]).astype(np.int64)
            total += nodes[at, 4]
        return total

    def save(self, path: str) -> None:
        """Writes the trees to a file, the compiler's too."""
        if self.provenance is None:
            raise ValueError("expected a predictor that says what it was trained on")
        header = {
            "statements": sorted(self.provenance.feature_ranges),
            "labels": self.labels.as_json(),
            "base": self.base,
            "corrects": self.corrects,
            **self.provenance.as_json(),
        }
        golden = self.predict(self.provenance.golden.dataset()).astype(np.float32)
        files.write(
            path,
            FORMAT,
            header,
            {**self.provenance.arrays(), "golden_values": golden, "nodes": self.nodes},
        )

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> BoostedTrees:
        """Raises `Error` for other files."""
        header, arrays = files.read(path, (FORMAT,))
        try:
            nodes = arrays["nodes"]
            if nodes.ndim != 3 or nodes.shape[2] != _FIELDS:
                raise ValueError("expected the nodes of its trees")
            inner = nodes[..., 0] >= 0
            place = np.broadcast_to(np.arange(nodes.shape[1])[None, :], inner.shape)
            children = nodes[..., 2:4]
            # Children come after their parents: every walk ends.
            is_right = (children > place[..., None]) & (children < nodes.shape[1])
            if not np.isfinite(nodes).all() or not is_right[inner].all():
                raise ValueError("expected nodes whose children come behind them")
            inputs = len(model().program_features()) + len(device_figures())
            if not (nodes[..., 0] < inputs).all():
                raise ValueError(
                    f"expected nodes of {inputs} features and figures, but got {nodes[..., 0].max():.0f}"
                )
            base = float(header["base"])
            if not np.isfinite(base):
                raise ValueError(f"expected a finite number as 'base', but got {base}")
            provenance = Provenance.of_json(header, arrays)
            labels = Labels.of_json(header["labels"])
            return cls(labels, base, nodes, bool(header["corrects"]), provenance)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise Error(f"'{path}' is no predictor: {error}") from error


def train(
    data: Dataset,
    transform: str = "box-cox",
    corrects: bool = False,
    seed: int = 0,
    rounds: int = ROUNDS,
    labels: Labels | None = None,
) -> BoostedTrees:
    """Fits trees to transformed labels, by `labels` in place of `transform` where they are given; the same rows and seed give
    the same ones.
    """
    if len(data) < 2:
        raise Error(f"expected two programs at least to train on, but got {len(data)}")
    learned = targets(data, corrects)
    labels = labels or Labels.fit(learned, transform)
    base, trees = grown(inputs(data), labels.forward(learned), max_iter=rounds, random_state=seed)
    return BoostedTrees(labels, base, packed(trees), corrects, Provenance.from_data(data, learned))


def grown(
    rows: npt.NDArray[np.float32], wanted: npt.NDArray[np.float64], **options: Any
) -> tuple[float, list[npt.NDArray[np.float32]]]:
    """Grows trees; returns their base and the nodes of each, nodes × `_FIELDS`; `options` are the library's."""
    from sklearn.ensemble import HistGradientBoostingRegressor

    model = HistGradientBoostingRegressor(early_stopping=False, **options)
    model.fit(rows, wanted)
    trees = []
    for (one,) in model._predictors:
        nodes: Any = one.nodes
        inner = nodes["is_leaf"] == 0
        threshold = _rounded_down(np.where(inner, nodes["num_threshold"], 0))
        columns = (
            np.where(inner, nodes["feature_idx"], -1),
            threshold,
            nodes["left"],
            nodes["right"],
            nodes["value"],
        )
        trees.append(np.stack([column.astype(np.float32) for column in columns], 1))
    return float(np.ravel(model._baseline_prediction)[0]), trees


def packed(trees: Sequence[npt.NDArray[np.float32]]) -> npt.NDArray[np.float32]:
    """Trees as one array, trees × nodes × `_FIELDS`; shorter ones end with leaves that nothing leads to."""
    nodes = np.zeros((len(trees), max(map(len, trees)), _FIELDS), np.float32)
    nodes[..., 0] = -1
    for to, tree in zip(nodes, trees):
        to[: len(tree)] = tree
    return nodes


def _rounded_down(values: npt.NDArray[np.float64]) -> npt.NDArray[np.float32]:
    """f32 numbers at most as great: those that were at most a threshold still are, and no others."""
    rounded = values.astype(np.float32)
    return np.where(rounded > values, np.nextafter(rounded, np.float32(-np.inf)), rounded).astype(
        np.float32
    )
