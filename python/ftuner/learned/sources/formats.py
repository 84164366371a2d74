"""Cards, formats of files and found rows, which readers of sources share."""

from __future__ import annotations

import copy
import dataclasses
import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from ...errors import Error
from ...latency.measurements.rows import MAX_TIME, MIN_TIME, Devices
from ...latency.measurements.table import Table
from ...latency.model import model
from ..dataset import Dataset, device_figures, device_vector, vectors

# Descriptions of devices that are in published rows and not among the compiler's.
_DESCRIPTIONS = Path(__file__).parent / "devices"

# Cards that the published files (docs/learned-data.md) mean by the names in their rows, where these are not
# the compiler's names.
_PCIE = {"p100": "p100-pcie", "v100": "v100-pcie", "a100": "a100-pcie"}
_SXM_80 = {"a100": "a100-80gb"}
CARDS: dict[str, dict[str, str]] = {
    "gemm_latency_train": _PCIE,
    "memory_ops_f32": _PCIE,
    "model_ops_f32": _PCIE,
    "conv3x3_f32": {"p100": "p100-pcie", "v100": "v100-pcie", "a100-80g": "a100-80gb-pcie"},
    "conv_deepbench": {"p100": "p100-pcie"},
    "gemm_deepbench": {"p100": "p100-pcie"},
    "gemm_f16_tokens": _SXM_80,
    "gemm_bf16_grid": _SXM_80,
    "attention_serving": _SXM_80,
    "attention_encoder": _SXM_80,
    "attention_steps": _SXM_80,
    "memory_ops_f16": _SXM_80,
}


def stem(path: str) -> str:
    """The name of a file without its folder and its endings."""
    return os.path.basename(path).split(".")[0]


class Cards:
    """Devices by the names that rows give them: built-in ones, ones with descriptions, and foreign ones.

    A foreign device is known by the figures that predictors read alone: the compiler makes no kernels for it.
    """

    def __init__(
        self,
        mapping: Mapping[str, str],
        only: str | None,
        files: Sequence[str],
        tables: Sequence[str],
    ) -> None:
        self.foreign: dict[str, npt.NDArray[np.float32]] = {}
        own: dict[str, str] = {}
        for path in [*sorted(map(str, _DESCRIPTIONS.glob("*.json"))), *files]:
            name, vector = _description(path)
            self.foreign.pop(name, None)
            own.pop(name, None)
            if vector is None:
                own[name] = path
            else:
                self.foreign[name] = vector
        known = dict(own)
        for path in tables:
            for name, device in CARDS.get(stem(path), {}).items():
                key = f"{os.path.basename(path)}:{name}"
                if name not in mapping and key not in mapping:
                    known[key] = own.get(device, device)
        self.devices = Devices({**known, **mapping}, only)

    def index_rows(
        self, table: Table
    ) -> tuple[npt.NDArray[np.int64], list[str], npt.NDArray[np.float32]]:
        """The index of each row's device, and the names and figures of these."""
        if "device" not in table:
            index = self.devices.index_rows(table)
            return index, self.devices.names, vectors(self.devices)
        file = os.path.basename(table.path)
        names: list[str] = []
        figures: list[npt.NDArray[np.float32]] = []

        def known(name: str) -> int | None:
            source = self.devices.source(name, file)
            if source in self.foreign:
                found, vector = source, self.foreign[source]
            else:
                try:
                    found, of_device = model().device(source)
                except Error:
                    return None
                vector = device_vector(of_device)
            if found not in names:
                names.append(found)
                figures.append(vector)
            return names.index(found)

        expected = "a built-in device, or one that --map or --device-files explain"
        index = table.choose("device", "", known, expected).astype(np.int64)
        return (
            index,
            names,
            np.stack(figures) if figures else np.empty((0, len(device_figures())), np.float32),
        )


def _description(path: str) -> tuple[str, npt.NDArray[np.float32] | None]:
    """The name of the device that a file describes, and the figures of a foreign one."""
    try:
        with open(path, encoding="utf-8") as file:
            content = json.load(file)
    except OSError as error:
        raise Error(f"cannot read the device '{path}': {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise Error(f"{path}: expected a description of a device: {error}") from error
    if not isinstance(content, dict) or "figures" not in content:
        return model().device(path)[0], None
    name, figures = content.get("name"), content["figures"]
    if not isinstance(name, str) or not name.strip():
        raise Error(f"{path}: field 'name': expected the name of a device")
    if not isinstance(figures, dict) or set(figures) != set(device_figures()):
        raise Error(f"{path}: field 'figures': expected {', '.join(device_figures())}")
    for figure, value in figures.items():
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < 1e15:
            raise Error(
                f"{path}: field 'figures.{figure}': expected a number of at least 0, but got {value!r}"
            )
    return name, device_vector(figures)


@dataclasses.dataclass
class Found:
    """The rows of a file, and how many were left out for which reason."""

    data: Dataset
    left_out: dict[str, int] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True)
class Source:
    """A format of files: columns that it must have, what else it must be, and its reader."""

    name: str
    columns: Sequence[str]
    read: Callable[[Table, Cards], Found]
    accepts: Callable[[Table], bool] = lambda table: True
    # True if rows tell facts of the file that others need, such as the launch floor: then all are read.
    needs_all: bool = False

    def fits(self, table: Table) -> bool:
        return all(column in table for column in self.columns) and self.accepts(table)


def pieces(table: Table, rows: int) -> Iterator[Table]:
    """The table as several of so many rows."""
    for first in range(0, len(table), rows):
        piece = copy.copy(table)
        piece.lines = table.lines[first : first + rows]
        piece.columns = {
            name: column[first : first + rows] for name, column in table.columns.items()
        }
        yield piece


def read_measured(
    table: Table, column: str
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.bool_]]:
    """Microseconds of a column of times that may be empty, and where they are not."""
    texts = table.text(column)
    is_measured = np.asarray(texts != "", bool)
    scale = 1e3 if column.endswith("ms") else 1.0
    low, high = MIN_TIME / scale, MAX_TIME / scale
    return table.numbers(column, low, low=low, high=high) * scale, is_measured
