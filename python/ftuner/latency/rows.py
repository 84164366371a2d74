"""Measurements: launches of kernels and how long each took.

`read` takes CSV files in one of the formats below, told by their headers:

* vendor rows (`vendor_rows`): kernels of cuBLAS for PyTorch's linear and bmm;
* configurations (`configuration_rows`): CLBlast's Xgemm with each of its parameters;
* FTuner rows (`ftuner_rows`): programs of this compiler.

docs/calibration.md has the columns.
"""

from __future__ import annotations

import dataclasses
import os
import re
from typing import Any, Callable, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from .. import descriptions
from ..errors import Error
from .model import Array, Launches, Model, model
from .table import Table

# Launches below this work measure nothing but the launch.
FLOOR_FLOP = 2e6
# Rows of a group that must do so little for their median to be the floor.
FLOOR_ROWS = 10


@dataclasses.dataclass
class Devices:
    """Devices of rows, by the names that the rows give them.

    `mapping` is from such names to those of built-in devices or paths of descriptions;
    what it leaves out goes by its own name. `only` is the device of rows that name none;
    without it the name of their file may say: `gemm_configs_rtx3090.csv`.
    """

    mapping: Mapping[str, str] = dataclasses.field(default_factory=dict)
    only: str | None = None
    names: list[str] = dataclasses.field(default_factory=list)
    figures: list[dict[str, float]] = dataclasses.field(default_factory=list)
    # The name or path that each was found by.
    sources: list[str] = dataclasses.field(default_factory=list)

    def index(self, name: str) -> int:
        """Index of the device with that name in rows. Raises `Error` if there is none."""
        source = self.mapping.get(name, name)
        found, figures = model().device(source)
        if found not in self.names:
            self.names.append(found)
            self.figures.append(figures)
            self.sources.append(source)
        return self.names.index(found)

    def of(self, table: Table, column: str = "device") -> npt.NDArray[np.int64]:
        """Index of the device of each row."""
        if self.only is not None and column not in table:
            return np.full(len(table), self.index(self.only))

        def known(name: str) -> int | None:
            try:
                return self.index(name)
            except Error:
                if self.mapping.get(name, name) != name:
                    raise
                return None

        if column not in table:
            words = re.split(r"[_.]", os.path.basename(table.path))
            for word in reversed(words):
                if word in self.mapping or word in descriptions.devices():
                    return np.full(len(table), self.index(word))
        if column not in table:
            raise Error(
                f"{table.path}:1: expected a column '{column}', but it is missing: "
                "say by --device which device the rows are of"
            )
        what = "a built-in device, the path of a description, or a name that --map explains"
        return table.choose(column, "", known, what).astype(np.int64)


@dataclasses.dataclass
class Rows:
    """Measured launches. Arrays have one value for each launch.

    group        what rows were measured the same way: format and operator
    floor        least microseconds that the measurement ever reports
    is_host      whether it includes the host's part of a launch
    weight       of the row in fits
    fold         rows of one shape are in the same, on every device
    flop         floating-point operations
    """

    devices: Devices
    launches: Launches
    microseconds: Array
    group: npt.NDArray[Any]
    floor: Array
    is_host: npt.NDArray[np.bool_]
    weight: Array
    fold: npt.NDArray[np.int64]
    flop: Array
    # Columns of the format, for whoever wants more than the launches.
    extra: Mapping[str, npt.NDArray[Any]] = dataclasses.field(default_factory=dict)
    warnings: list[str] = dataclasses.field(default_factory=list)

    def __len__(self) -> int:
        return len(self.microseconds)

    def __getitem__(self, rows: Any) -> Rows:
        """Those rows: a mask, indices or a slice."""
        return dataclasses.replace(
            self,
            launches=self.launches[rows],
            extra={name: values[rows] for name, values in self.extra.items()},
            warnings=[],
            **{
                name: getattr(self, name)[rows]
                for name in (
                    "microseconds",
                    "group",
                    "floor",
                    "is_host",
                    "weight",
                    "fold",
                    "flop",
                )
            },
        )

    @property
    def device(self) -> npt.NDArray[np.int64]:
        """Index of each row's device in `devices`."""
        return self.launches.device

    @property
    def is_fit(self) -> npt.NDArray[np.bool_]:
        """Rows that tell of the kernel: those above twice the floor."""
        return self.microseconds > 2 * self.floor

    def predict(self, constants: Mapping[str, float], offset: Any = 0.0) -> Array:
        """What the measurement would report: microseconds.

        `offset` (a number, or one for each device) is what the host adds to a launch: at most
        the floor without the constant `launch`, where the floor is known.
        """
        time = model().predict(self.launches, constants)
        added = np.broadcast_to(np.asarray(offset, float), len(self.devices.names))[self.device]
        most = np.maximum(self.floor - constants["launch"], 0)
        added = np.where(self.floor > 0, np.minimum(added, most), added)
        return np.maximum(self.floor, time + np.where(self.is_host, added, 0.0))


def launch_floor(
    microseconds: Array, flop: Array, device: npt.NDArray[np.int64], group: npt.NDArray[Any]
) -> Array:
    """The launch floor of each row: the median of the tiny launches of its device and group.

    0 where there are too few of them to tell.
    """
    floor = np.zeros(len(microseconds))
    for one in np.unique(device):
        for name in sorted(set(group[device == one])):
            rows = (device == one) & (group == name)
            tiny = rows & (flop < FLOOR_FLOP)
            if tiny.sum() >= FLOOR_ROWS:
                floor[rows] = np.median(microseconds[tiny])
    return floor


def concatenate(parts: Sequence[Rows]) -> Rows:
    """All rows of several files that share their `devices`."""
    if len(parts) == 1:
        return parts[0]
    arrays = ("microseconds", "group", "floor", "is_host", "weight", "fold", "flop")
    most = max(part.launches.parts.shape[1] for part in parts)

    def padded(values: Array) -> Array:
        empty = np.zeros((len(values), most - values.shape[1], values.shape[2]))
        # Parts without blocks come first: the last is the taller.
        return np.concatenate([empty, values], axis=1)

    devices = parts[0].devices
    return Rows(
        devices=devices,
        launches=Launches(
            device_table(devices, model()),
            np.concatenate([part.launches.device for part in parts]),
            np.concatenate([padded(part.launches.parts) for part in parts]),
            np.concatenate([part.launches.grids for part in parts]),
        ),
        warnings=[text for part in parts for text in part.warnings],
        **{name: np.concatenate([getattr(part, name) for part in parts]) for name in arrays},
    )


def device_table(devices: Devices, loaded: Model) -> Array:
    """Figures of the devices as `Launches.devices`."""
    fields = loaded.device_fields
    return np.array([[figures[name] for name in fields] for figures in devices.figures])


def read(
    paths: Sequence[str | os.PathLike[str]], devices: Devices, host: bool | None = None
) -> Rows:
    """The rows of the files; `host` says whether they were timed on the host.

    By default vendor rows are, and others are device time. Raises `Error` with file and
    line for what cannot be used.
    """
    from . import configuration_rows, ftuner_rows, vendor_rows

    formats: list[tuple[str, Callable[[Table, Devices, bool | None], Rows]]] = [
        ("MWG", configuration_rows.read),
        ("kernel", vendor_rows.read),
        ("block_m", ftuner_rows.read),
    ]
    parts = []
    for path in paths:
        table = Table(path)
        reader = next((reader for column, reader in formats if column in table), None)
        if reader is None:
            columns = ", ".join(f"'{column}'" for column, _ in formats)
            raise Error(
                f"{table.path}:1: expected the columns of vendor rows, configurations or FTuner "
                f"rows (one of {columns}), but got {', '.join(table.columns)}"
            )
        if not len(table):
            raise Error(f"{table.path}: expected rows, but there is only a header")
        parts.append(reader(table, devices, host))
    rows = concatenate(parts)
    rows.launches.devices = device_table(devices, model())
    return rows
