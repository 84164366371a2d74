"""Programs as trees, with the times that a predictor learns."""

from __future__ import annotations

import dataclasses
from typing import Any, Sequence

import numpy as np
import numpy.typing as npt

from ..errors import Error
from ..latency import ftuner_rows
from ..latency.model import Array, Launches, Model, ProgramTree, model
from ..latency.rows import Devices, read_folds, read_times
from ..latency.table import Table

# What a predictor reads of a device, as log₂(1 + figure): one that a card lacks is 0.
DEVICE_FIGURES = (
    "sm_count",
    "clock_mhz",
    "fp32_lanes",
    "warp_schedulers",
    "load_store_lanes",
    "tf32_rate",
    "f16_rate",
    "i8_rate",
    "dram_gbps",
    "l2_bytes",
    "shared_memory_per_sm_bytes",
    "registers_per_sm",
    "max_threads_per_sm",
    "max_blocks_per_sm",
)


def device_vector(figures: dict[str, float]) -> npt.NDArray[np.float32]:
    """The figures of a device (`Model.device`) that a predictor reads."""
    return np.log2([1 + figures[name] for name in DEVICE_FIGURES]).astype(np.float32)


@dataclasses.dataclass
class Dataset:
    """Programs, their devices and their times.

    A program has a tree for each part that has blocks. Programs of one task compute the same
    shape on the same device; folds 0 to 9 keep all programs of a shape together.
    """

    trees: list[list[ProgramTree]]
    microseconds: npt.NDArray[np.float64]
    device: npt.NDArray[np.int64]
    device_names: list[str]
    # devices × DEVICE_FIGURES.
    device_vectors: npt.NDArray[np.float32]
    task: npt.NDArray[np.int64]
    fold: npt.NDArray[np.int64]
    # What `latency` predicts, with the constants that the compiler takes.
    predicted: npt.NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.trees)

    def select(self, rows: npt.NDArray[np.bool_]) -> Dataset:
        return dataclasses.replace(
            self,
            trees=[tree for tree, is_kept in zip(self.trees, rows) if is_kept],
            microseconds=self.microseconds[rows],
            device=self.device[rows],
            task=self.task[rows],
            fold=self.fold[rows],
            predicted=self.predicted[rows],
        )

    def statements(self) -> list[int]:
        """Numbers of statements that trees have, each once."""
        return sorted({len(tree.ordering) for trees in self.trees for tree in trees})


def read(paths: Sequence[str], devices: Devices) -> Dataset:
    """Measured programs of this compiler: FTuner rows (docs/calibration.md).

    Raises `Error` for other rows, and with the line of what cannot be.
    """
    loaded = model()
    trees: list[list[ProgramTree]] = []
    times, cards, tasks, folds, predicted = [], [], [], [], []
    for path in paths:
        table = Table(path)
        missing = [column for column in ftuner_rows.COLUMNS if column not in table]
        if missing:
            raise Error(f"{path}:1: expected programs of this compiler, but {', '.join(missing)} are missing")
        device, columns, programs = ftuner_rows.read_programs(table, devices)
        of_rows: list[list[ProgramTree]] = [[] for _ in range(len(table))]
        by_latency = np.empty(len(table))
        for of in programs:
            with ftuner_rows.errors_by_line(table, of):
                found = loaded.trees(devices.sources[of.device], of.path, of.records)
                launches = loaded.programs(devices.sources[of.device], of.path, of.records)
            for row, parts in zip(of.rows, found):
                of_rows[row] = parts
            by_latency[of.rows] = _latency(loaded, devices.sources[of.device], *launches)
        trees += of_rows
        shapes = [columns[name] for name in ("batch", "m", "n", "k", "transpose_lhs", "transpose_rhs", "type")]
        times.append(read_times(table, "us"))
        cards.append(device)
        tasks.append(np.stack([*shapes, device], axis=1))
        predicted.append(by_latency)
        folds.append(read_folds(table, zip(*shapes[:4])))
    if not trees:
        raise Error("expected one measured program at least")
    _, task = np.unique(np.concatenate(tasks), axis=0, return_inverse=True)
    return Dataset(
        trees=trees,
        microseconds=np.concatenate(times),
        device=np.concatenate(cards),
        device_names=list(devices.names),
        device_vectors=_vectors(devices, loaded),
        task=task.reshape(-1).astype(np.int64),
        fold=np.concatenate(folds).astype(np.int64),
        predicted=np.concatenate(predicted),
    )


def _latency(loaded: Model, device: str, parts: Array, grids: Array) -> Array:
    """Microseconds by the latency model, with the constants that the compiler takes."""
    figures = np.array([[*loaded.device(device)[1].values()]])
    launches = Launches(figures, np.zeros(len(grids), np.int64), parts, grids)
    return loaded.predict(launches, loaded.default_calibration(device))


def _vectors(devices: Devices, loaded: Model) -> npt.NDArray[np.float32]:
    return np.stack([device_vector(loaded.device(source)[1]) for source in devices.sources])


def merge(parts: Sequence[Dataset]) -> Dataset:
    """The programs of several data sets, one behind the other; devices are told by their names.

    Raises `Error` for devices of one name whose figures differ.
    """
    names: list[str] = []
    vectors: list[npt.NDArray[np.float32]] = []
    index: list[npt.NDArray[np.int64]] = []
    for part in parts:
        of = np.empty(len(part.device_names), np.int64)
        for place, (name, vector) in enumerate(zip(part.device_names, part.device_vectors)):
            if name not in names:
                names.append(name)
                vectors.append(vector)
            of[place] = names.index(name)
            if not np.array_equal(vectors[of[place]], vector):
                raise Error(f"expected one description of the device '{name}', but got two that differ")
        index.append(of[part.device])
    tasks = np.cumsum([0] + [int(part.task.max(initial=-1)) + 1 for part in parts])
    joined: dict[str, Any] = {}
    for field in dataclasses.fields(Dataset):
        values = [getattr(part, field.name) for part in parts]
        if isinstance(values[0], np.ndarray):
            joined[field.name] = np.concatenate(values) if field.name != "device_vectors" else np.stack(vectors)
        else:
            joined[field.name] = [one for value in values for one in value]
    joined["device"], joined["device_names"] = np.concatenate(index), names
    joined["task"] = np.concatenate([part.task + first for part, first in zip(parts, tasks)])
    return Dataset(**joined)
