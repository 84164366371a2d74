"""Training data and errors of a predictor: its file states them, and the compiler reads them (docs/learned-model.md)."""

from __future__ import annotations

import dataclasses
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from ..latency.model import ProgramTree
from .dataset import SYNTHETIC, Dataset


class Predicts(Protocol):
    def predict(self, data: Dataset) -> npt.NDArray[np.float64]: ...


# Programs of each data set that a file holds with what the predictor says of them.
GOLDEN_ROWS = 8
# Prefix of the number of statements in names of arrays.
_RANGES = "feature_ranges."


@dataclasses.dataclass(frozen=True)
class Deviation:
    """Standard deviations of ln(predicted / measured) on rows that were not trained on."""

    rows: int
    # Deviation of all rows about 0: the error of a predicted time.
    overall: float
    # Deviation within each task: a lead of one of its programs over another is compared with it.
    within_task: float

    @classmethod
    def from_predictions(
        cls, predicted: npt.ArrayLike, measured: npt.ArrayLike, task: npt.ArrayLike
    ) -> Deviation:
        error = np.log(np.asarray(predicted, np.float64) / np.asarray(measured, np.float64))
        _, tasks = np.unique(np.asarray(task), return_inverse=True)
        means = np.bincount(tasks, error) / np.bincount(tasks)
        left = len(error) - len(means)
        within_task = (
            float(np.sqrt(((error - means[tasks]) ** 2).sum() / left)) if left > 0 else 0.0
        )
        return cls(len(error), float(np.sqrt((error**2).mean())), within_task)

    def as_json(self) -> dict[str, float]:
        return {"rows": self.rows, "overall": self.overall, "between": self.within_task}

    @classmethod
    def of_json(cls, json: dict[str, Any]) -> Deviation:
        """Reads what `as_json` gives. Raises KeyError and TypeError for other fields."""
        fields = dict(json)
        return cls(within_task=fields.pop("between"), **fields)


@dataclasses.dataclass(frozen=True)
class Golden:
    """Programs that a reader of the file recomputes: their trees and their devices' figures, rows × figures."""

    trees: list[list[ProgramTree]]
    device: npt.NDArray[np.float32]

    def dataset(self) -> Dataset:
        """The programs, each on a separate device, with times of one microsecond."""
        size = len(self.trees)
        texts = {name: np.full(size, "", "<U1") for name in Dataset.TEXTS}
        return Dataset(
            trees=self.trees,
            microseconds=np.ones(size),
            device=np.arange(size),
            device_names=[""] * size,
            device_vectors=self.device,
            task=np.zeros(size, np.int64),
            task_names=[""],
            fold=np.zeros(size, np.int64),
            predicted=np.ones(size),
            group=np.full(size, -1, np.int64),
            **texts,
        )


@dataclasses.dataclass(frozen=True)
class Provenance:
    # Measured rows of the training set by device; 0 for devices with only synthetic rows, or without times.
    devices: dict[str, int]
    # Minimum and maximum of the labels: microseconds, or ratios to `latency`.
    label_range: tuple[float, float]
    # Minimum and maximum of each feature, 2 × statements × features, by the number of statements of a tree.
    feature_ranges: dict[int, npt.NDArray[np.float32]]
    golden: Golden
    # Deviations by the name of a device.
    deviations: dict[str, Deviation] = dataclasses.field(default_factory=dict)

    @classmethod
    def from_data(cls, data: Dataset, labels: npt.NDArray[np.float64]) -> Provenance:
        """Returns the provenance of a predictor trained on these programs with these labels."""
        by_size: dict[int, list[npt.NDArray[np.float32]]] = {}
        for trees in data.trees:
            for tree in trees:
                by_size.setdefault(len(tree.ordering), []).append(tree.features)
        ranges = {
            size: np.stack([np.min(features, 0), np.max(features, 0)])
            for size, features in sorted(by_size.items())
        }
        is_measured = data.kind != SYNTHETIC
        rows = golden_rows(data)
        return cls(
            devices={
                data.device_names[card]: int(is_measured[data.device == card].sum())
                for card in np.unique(data.device)
            },
            label_range=(float(labels.min()), float(labels.max())),
            feature_ranges=ranges,
            golden=Golden(
                [data.trees[row] for row in rows], data.device_vectors[data.device[rows]]
            ),
        )

    def adapted(self, data: Dataset) -> Provenance:
        """Returns the provenance of a predictor tuned for programs without times, without the former errors."""
        names = {data.device_names[card]: 0 for card in np.unique(data.device)}
        return dataclasses.replace(self, devices={**names, **self.devices}, deviations={})

    def extended(self, data: Dataset, labels: npt.NDArray[np.float64]) -> Provenance:
        """Returns the provenance of a predictor trained on more programs, without the former errors."""
        more = Provenance.from_data(data, labels)
        ranges = dict(self.feature_ranges)
        for size, limits in more.feature_ranges.items():
            known = ranges.get(size, limits)
            ranges[size] = np.stack(
                [np.minimum(known[0], limits[0]), np.maximum(known[1], limits[1])]
            )
        return dataclasses.replace(
            self,
            devices={
                name: self.devices.get(name, 0) + more.devices.get(name, 0)
                for name in {**self.devices, **more.devices}
            },
            label_range=(
                min(self.label_range[0], more.label_range[0]),
                max(self.label_range[1], more.label_range[1]),
            ),
            feature_ranges=ranges,
            golden=Golden(
                [*self.golden.trees[:GOLDEN_ROWS], *more.golden.trees],
                np.concatenate([self.golden.device[:GOLDEN_ROWS], more.golden.device]),
            ),
            deviations={},
        )

    def validated(self, trained: Predicts, unseen: Dataset) -> Provenance:
        """Returns the provenance with the errors on programs that were not trained on, by device."""
        predicted = trained.predict(unseen)
        found = dict(self.deviations)
        for card in np.unique(unseen.device):
            rows = unseen.device == card
            found[unseen.device_names[card]] = Deviation.from_predictions(
                predicted[rows], unseen.microseconds[rows], unseen.task[rows]
            )
        return dataclasses.replace(self, deviations=found)

    def bounded(self, ratios: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Clips ratios to `latency` to the range of the training, since nothing is known beyond it."""
        return np.clip(ratios, *self.label_range)

    def as_json(self) -> dict[str, Any]:
        """All but arrays."""
        return {
            "devices": self.devices,
            "label_range": list(self.label_range),
            "deviations": {
                name: deviation.as_json() for name, deviation in self.deviations.items()
            },
            "golden": [
                [
                    {"blocks": tree.blocks, "ordering": [int(place) for place in tree.ordering]}
                    for tree in trees
                ]
                for trees in self.golden.trees
            ],
        }

    def arrays(self) -> dict[str, npt.NDArray[np.float32]]:
        return {
            **{f"{_RANGES}{size}": ranges for size, ranges in self.feature_ranges.items()},
            "golden_features": np.concatenate(
                [tree.features for trees in self.golden.trees for tree in trees]
            ),
            "golden_device": self.golden.device,
        }

    @classmethod
    def of_json(
        cls, json: dict[str, Any], arrays: dict[str, npt.NDArray[np.float32]]
    ) -> Provenance:
        """Takes its arrays out of `arrays`."""
        features = arrays.pop("golden_features")
        trees: list[list[ProgramTree]] = []
        first = 0
        for program in json["golden"]:
            trees.append([])
            for tree in program:
                ordering = np.array(tree["ordering"], np.int64)
                trees[-1].append(
                    ProgramTree(
                        float(tree["blocks"]), ordering, features[first : first + len(ordering)]
                    )
                )
                first += len(ordering)
        low, high = json["label_range"]
        return cls(
            devices={str(name): int(rows) for name, rows in json["devices"].items()},
            label_range=(float(low), float(high)),
            feature_ranges={
                int(name.removeprefix(_RANGES)): arrays.pop(name)
                for name in list(arrays)
                if name.startswith(_RANGES)
            },
            golden=Golden(trees, arrays.pop("golden_device")),
            deviations={
                str(name): Deviation.of_json(deviation)
                for name, deviation in json["deviations"].items()
            },
        )


def golden_rows(data: Dataset, count: int = GOLDEN_ROWS) -> npt.NDArray[np.int64]:
    """Programs that differ: of each number of trees and statements the first, then spread over the rest."""
    kinds: dict[tuple[int, ...], int] = {}
    for row, trees in enumerate(data.trees):
        kinds.setdefault(tuple(sorted(len(tree.ordering) for tree in trees)), row)
    rows = list(kinds.values())
    for row in np.linspace(0, len(data) - 1, count).astype(int):
        if len(rows) < count and int(row) not in rows:
            rows.append(int(row))
    return np.array(sorted(rows), np.int64)
