"""Measured launches of kernels and how long each took; `readers` reads them from files."""

from __future__ import annotations

import dataclasses
import os
import re
import zlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from ...describe import descriptions
from ...errors import Error
from ..model import Array, Launches, Model, model
from .table import Table

# Bounds of columns: sizes, and measured and predicted times in microseconds.
MAX_EXTENT = 2**31 - 1
MIN_TIME, MAX_TIME = 1e-3, 1e9
# Bound of extents of tiles and of threads of a block.
MAX_TILE = 1024
# Launches below this work measure nothing but the launch.
FLOOR_FLOP = 2e6
# Rows of a group that must do so little for their median to be the floor.
FLOOR_ROWS = 10


@dataclasses.dataclass
class Devices:
    """Devices of rows, by the names that the rows give them.

    `mapping` maps such names to names of built-in devices or paths of descriptions;
    what it leaves out goes by its own name. A key `FILE:NAME` is for the rows of files of that
    name alone. `only` is the device of rows that name none;
    without it the name of their file may say: `gemm_configs_rtx3090.csv`.

    A name in rows is that of a description which `mapping` or `only` gives before it is a
    built-in device's. Raises `Error` for two descriptions of one name that differ.
    """

    mapping: Mapping[str, str] = dataclasses.field(default_factory=dict)
    only: str | None = None
    names: list[str] = dataclasses.field(default_factory=list)
    figures: list[dict[str, float]] = dataclasses.field(default_factory=list)
    # The name or path that each was found by.
    sources: list[str] = dataclasses.field(default_factory=list)

    def __post_init__(self) -> None:
        # Sources that the user named, by the names in the descriptions.
        self._given: dict[str, str] = {}
        for key in (*self.mapping, *([] if self.only is None else [self.only])):
            source = self.mapping.get(key, key)
            found, figures = model().device(source)
            first = self._given.setdefault(found, source)
            self._expect_equal(found, figures, model().device(first)[1])

    @staticmethod
    def _expect_equal(name: str, figures: Any, others: Any) -> None:
        if figures != others:
            raise Error(f"expected one description of the device '{name}', but got two that differ")

    def source(self, name: str, file: str = "") -> str:
        """The device or path that a name in rows of a file stands for."""
        of_file = self.mapping.get(f"{file}:{name}")
        return of_file or self.mapping.get(name) or self._given.get(name) or name

    def index(self, name: str, file: str = "") -> int:
        """Index of the device with that name in rows. Raises `Error` if the device does not exist."""
        source = self.source(name, file)
        found, figures = model().device(source)
        if found not in self.names:
            self.names.append(found)
            self.figures.append(figures)
            self.sources.append(source)
        index = self.names.index(found)
        self._expect_equal(found, figures, self.figures[index])
        return index

    def index_rows(self, table: Table, column: str = "device") -> npt.NDArray[np.int64]:
        """Index of the device of each row."""
        if self.only is not None and column not in table:
            return np.full(len(table), self.index(self.only))
        file = os.path.basename(table.path)

        def known(name: str) -> int | None:
            try:
                model().device(self.source(name, file))
            except Error:
                return None
            return self.index(name, file)

        if column not in table:
            for word in reversed(re.split(r"[_.]", file)):
                if self.source(word, file) != word or word in descriptions.devices():
                    return np.full(len(table), self.index(word, file))
        if column not in table:
            raise Error(
                f"{table.path}:1: expected a column '{column}', but it is missing: "
                "say by --device which device the rows are of"
            )
        expected = "a built-in device, the path of a description, or a name that --map explains"
        return table.choose(column, "", known, expected).astype(np.int64)


@dataclasses.dataclass
class MeasurementTable:
    """Measured launches. Arrays have one value for each launch.

    group        what rows were measured the same way: format and operator
    floor        least microseconds that the measurement ever reports
    is_host      whether it includes the host's part of a launch
    weight       of the row in fits
    fold         rows of one shape are in the same, on every device
    flop         floating-point operations
    choices      where kernels are not known: how many launches of `launches` each row may be,
                 one row's after another's; it took the fastest. None: one launch for each row
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
    choices: npt.NDArray[np.int64] | None = None
    # Time that the host adds to a launch, relative to most launches of its device. None: the same time.
    host_share: Array | None = None
    # Columns of the format, for callers that want more than the launches.
    extra: Mapping[str, npt.NDArray[Any]] = dataclasses.field(default_factory=dict)
    warnings: list[str] = dataclasses.field(default_factory=list)

    def __len__(self) -> int:
        return len(self.microseconds)

    def __getitem__(self, rows: Any) -> MeasurementTable:
        """Selects rows by a mask, indices or a slice."""
        launches, choices = rows, None
        if self.choices is not None:
            chosen = np.arange(len(self))[rows]
            choices = self.choices[chosen]
            # The launches of each chosen row, from its first on.
            launches = np.arange(choices.sum()) + np.repeat(
                self._first[chosen] - (np.cumsum(choices) - choices), choices
            )
        return dataclasses.replace(
            self,
            launches=self.launches[launches],
            choices=choices,
            host_share=None if self.host_share is None else self.host_share[rows],
            extra={name: values[rows] for name, values in self.extra.items()},
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
    def _first(self) -> Any:
        """Each row's first launch."""
        if self.choices is None:
            return slice(None)
        return np.cumsum(self.choices) - self.choices

    @property
    def device(self) -> npt.NDArray[np.int64]:
        """Index of each row's device in `devices`."""
        devices: npt.NDArray[np.int64] = self.launches.device[self._first]
        return devices

    @property
    def is_tensor(self) -> npt.NDArray[np.bool_]:
        """Rows of kernels of the tensor cores."""
        instructions = model().part_fields.index("tensor_instructions")
        return np.asarray(self.launches.parts[self._first, -1, instructions] > 0)

    @property
    def is_memory(self) -> npt.NDArray[np.bool_]:
        """Rows of memory-bound kernels."""
        streaming = model().part_fields.index("is_streaming")
        return np.asarray(self.launches.parts[self._first, -1, streaming] > 0)

    @property
    def is_fit(self) -> npt.NDArray[np.bool_]:
        """Rows that tell of the kernel: those above twice the floor."""
        return self.microseconds > 2 * self.floor

    def fastest(self, constants: Mapping[str, float]) -> Launches:
        """The launch that the model takes each row for."""
        if self.choices is None:
            return self.launches
        time = model().predict(self.launches, constants)
        row = np.repeat(np.arange(len(self)), self.choices)
        return self.launches[np.lexsort((time, row))[self._first]]

    def predict(self, constants: Mapping[str, float], offset: Any = 0.0) -> Array:
        """Predicts the microseconds that the measurement would report.

        `offset` (a number, or one for each device) is what the host adds to a launch: at most
        the floor without the constant `launch`, where the floor is known.
        """
        time = model().predict(self.launches, constants)
        if self.choices is not None and len(self):
            time = np.minimum.reduceat(time, self._first)
        added = np.broadcast_to(np.asarray(offset, float), len(self.devices.names))[self.device]
        if self.host_share is not None:
            added = added * self.host_share
        max_added = np.maximum(self.floor - constants["launch"], 0)
        added = np.where(self.floor > 0, np.minimum(added, max_added), added)
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


def read_times(table: Table, column: str) -> Array:
    """A column of times in the unit that its name ends in, us or ms, as microseconds."""
    scale = 1e3 if column.endswith("ms") else 1.0
    return table.numbers(column, low=MIN_TIME / scale, high=MAX_TIME / scale) * scale


def fold_of(*key: Any) -> int:
    """The fold of what the key names: the same in every file."""
    return zlib.crc32(",".join(map(str, key)).encode()) % 5


def read_folds(table: Table, keys: Iterable[Iterable[Any]]) -> npt.NDArray[np.int64]:
    """The column "fold"; without one, the fold of each row's key."""
    if "fold" in table:
        return table.numbers("fold", whole=True, low=0, high=MAX_EXTENT).astype(np.int64)
    return np.array([fold_of(*key) for key in keys], np.int64)


def _host_shares(parts: Sequence[MeasurementTable]) -> Array | None:
    if all(part.host_share is None for part in parts):
        return None
    each = [np.ones(len(part)) if part.host_share is None else part.host_share for part in parts]
    return np.concatenate(each)


def concatenate(parts: Sequence[MeasurementTable]) -> MeasurementTable:
    """All rows of several files that share their `devices`, and what columns they all have."""
    if len(parts) == 1:
        return parts[0]
    arrays = ("microseconds", "group", "floor", "is_host", "weight", "fold", "flop")
    max_parts = max(part.launches.parts.shape[1] for part in parts)

    def padded(values: Array) -> Array:
        empty = np.zeros((len(values), max_parts - values.shape[1], values.shape[2]))
        # Parts without blocks come first: the last is the taller.
        return np.concatenate([empty, values], axis=1)

    devices = parts[0].devices
    return MeasurementTable(
        devices=devices,
        launches=Launches(
            device_table(devices, model()),
            np.concatenate([part.launches.device for part in parts]),
            np.concatenate([padded(part.launches.parts) for part in parts]),
            np.concatenate([part.launches.grids for part in parts]),
        ),
        extra={
            name: np.concatenate([part.extra[name] for part in parts])
            for name in parts[0].extra
            if all(name in part.extra for part in parts)
        },
        choices=_choices(parts),
        host_share=_host_shares(parts),
        warnings=[text for part in parts for text in part.warnings],
        **{name: np.concatenate([getattr(part, name) for part in parts]) for name in arrays},
    )


def _choices(parts: Sequence[MeasurementTable]) -> npt.NDArray[np.int64] | None:
    """Returns the number of launches of each row; None if all have one."""
    if all(part.choices is None for part in parts):
        return None
    ones = (np.ones(len(part), np.int64) for part in parts)
    return np.concatenate(
        [one if part.choices is None else part.choices for one, part in zip(ones, parts)]
    )


def device_table(devices: Devices, loaded: Model) -> Array:
    """Figures of the devices as `Launches.devices`."""
    fields = loaded.device_fields
    return np.array([[figures[name] for name in fields] for figures in devices.figures])


def check_prices(table: Table, launches: Launches, rows: Any = slice(None)) -> None:
    """Raises `Error` for a launch that the model cannot price; `rows` are theirs in the table."""
    microseconds = model().predict(launches, model().start())
    is_good = (microseconds > 0) & (microseconds <= MAX_TIME)
    if not is_good.all():
        launch = int(np.argmin(is_good))
        raise table.error(
            int(np.arange(len(table))[rows][launch]),
            f"expected a kernel that takes at most {MAX_TIME:.10g} us, "
            f"but the model predicts {microseconds[launch]:.3g} us",
        )


_Arrays = TypeVar("_Arrays")


def rows_of(arrays: _Arrays, rows: Any) -> _Arrays:
    """A dataclass of arrays with those rows (a mask, indices or a slice) of each; what is no array stays."""
    values = {field.name: getattr(arrays, field.name) for field in dataclasses.fields(arrays)}  # type: ignore[arg-type]
    taken = {name: value[rows] for name, value in values.items() if isinstance(value, np.ndarray)}
    return dataclasses.replace(arrays, **taken)  # type: ignore[type-var]
