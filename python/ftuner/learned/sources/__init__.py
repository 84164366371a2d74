"""Data sets from files of measurements, told by their columns (docs/learned-data.md)."""

from __future__ import annotations

import collections
import copy
import dataclasses
import json
import os
from pathlib import Path
from typing import Callable, Iterator, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from ...describe import descriptions
from ...errors import Error
from ...latency.measurements.rows import LEAST_TIME, MOST_TIME, Devices
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
    """Devices by the names that rows give them: the compiler's, those of descriptions, and foreign ones.

    A foreign device is known by the figures that predictors read alone: the compiler makes no kernels for it.
    """

    def __init__(
        self, mapping: Mapping[str, str], only: str | None, files: Sequence[str], tables: Sequence[str]
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

    def of(self, table: Table) -> tuple[npt.NDArray[np.int64], list[str], npt.NDArray[np.float32]]:
        """The index of each row's device, and the names and figures of these."""
        if "device" not in table:
            index = self.devices.of(table)
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

        what = "a built-in device, or one that --map or --device-files explain"
        index = table.choose("device", "", known, what).astype(np.int64)
        return index, names, np.stack(figures) if figures else np.empty((0, len(device_figures())), np.float32)


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
            raise Error(f"{path}: field 'figures.{figure}': expected a number of at least 0, but got {value!r}")
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
    # Whether rows say something of the file that others need, such as the launch floor: all are read then.
    needs_all: bool = False

    def fits(self, table: Table) -> bool:
        return all(column in table for column in self.columns) and self.accepts(table)


def sources() -> list[Source]:
    """All formats, in the order in which they are told."""
    from . import attention, configurations, convolutions, memory, models, products, programs

    return [
        *programs.SOURCES,
        *products.SOURCES,
        *configurations.SOURCES,
        *memory.SOURCES,
        *attention.SOURCES,
        *convolutions.SOURCES,
        *models.SOURCES,
    ]


@dataclasses.dataclass
class File:
    """A file, its format, and what was found in it."""

    path: str
    source: str
    found: Found


ENDINGS = tuple(f".{kind}{packed}" for kind in ("csv", "jsonl") for packed in ("", ".gz", ".xz"))
# Names of what is no table: logs of measurers, and what nobody has measured.
LOG, SYNTHETIC_SOURCE = "log", "synthetic"


def files_of(paths: Sequence[str]) -> list[str]:
    """The files, and those of folders that may be tables (.csv, .csv.gz, .csv.xz) or logs (.jsonl, …)."""
    result = []
    for path in paths:
        if not os.path.isdir(path):
            result.append(path)
            continue
        inside = sorted(
            os.path.join(path, name)
            for name in os.listdir(path)
            if name.endswith(ENDINGS)
        )
        if not inside:
            raise Error(f"expected tables of rows or logs in the folder '{path}', but there are none")
        result += inside
    return result


def gather(
    paths: Sequence[str],
    mapping: Mapping[str, str] | None = None,
    device: str | None = None,
    device_files: Sequence[str] = (),
    only: Sequence[str] = (),
    rows: int = 0,
    seed: int = 0,
    synthetic: int = 0,
    tell: Callable[[str], None] = lambda path: None,
) -> tuple[Dataset, list[File]]:
    """The data set of files and folders.

    only      names of formats; files of others are passed over
    rows      of each file at most so many, drawn by the seed; 0: all
    synthetic so many programs of this compiler besides, on all of its devices, labelled by the latency model
    tell      is called with each file before it is read

    Raises `Error` with the file and the line of what cannot be. A file of a folder that is of no known format
    is passed over; one that is named is an error.
    """
    from . import programs

    named = {path for path in paths if not os.path.isdir(path)}
    every = files_of(paths)
    known = sources()
    formats = [*(source.name for source in known), LOG]
    for name in only:
        if name not in formats:
            names = ", ".join(formats)
            raise Error(f"option --sources: expected some of {names}, but got '{name}'")
    cards = Cards(mapping or {}, device, device_files, every)
    found: list[File] = []
    for path in every:
        tell(path)
        if programs.is_log(path):
            if not only or LOG in only:
                found.append(File(path, LOG, _drawn(programs.read_log(path, cards), rows, seed)))
            continue
        table = Table(path)
        fitting = [source for source in known if source.fits(table)]
        if not fitting:
            if path in named:
                names = ", ".join(source.name for source in known)
                raise Error(f"{path}:1: expected the columns of one of {names}")
            continue
        source = fitting[0]
        if only and source.name not in only:
            continue
        if not len(table):
            raise Error(f"{path}: expected rows, but there is only a header")
        if not source.needs_all:
            table = thinned(table, rows, seed)
        found.append(File(path, source.name, _drawn(source.read(table, cards), rows, seed)))
    if synthetic:
        tell("synthetic rows")
        data = programs.synthetic(synthetic, seed, sorted(descriptions.devices()), cards)
        found.append(File("", SYNTHETIC_SOURCE, Found(data)))
    if not any(len(file.found.data) for file in found):
        raise Error("expected one measured row at least")
    return Dataset.concatenate([file.found.data for file in found]), found


def _drawn(found: Found, rows: int, seed: int) -> Found:
    """At most so many rows, drawn by the seed; 0: all."""
    if rows and len(found.data) > rows:
        found.data = found.data.select(_draw(len(found.data), rows, seed))
    return found


def _draw(size: int, rows: int, seed: int) -> npt.NDArray[np.int64]:
    return np.sort(np.random.default_rng(seed).choice(size, rows, replace=False))


def thinned(table: Table, rows: int, seed: int) -> Table:
    """At most so many rows of a table, drawn by the seed; 0: all."""
    if rows and len(table) > rows:
        kept = _draw(len(table), rows, seed)
        table.lines = table.lines[kept]
        table.columns = {name: column[kept] for name, column in table.columns.items()}
    return table


def pieces(table: Table, rows: int) -> Iterator[Table]:
    """The table as several of so many rows."""
    for first in range(0, len(table), rows):
        piece = copy.copy(table)
        piece.lines = table.lines[first : first + rows]
        piece.columns = {name: column[first : first + rows] for name, column in table.columns.items()}
        yield piece


def read_measured(table: Table, column: str) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.bool_]]:
    """Microseconds of a column of times that may be empty, and where they are not."""
    texts = table.text(column)
    is_measured = np.asarray(texts != "", bool)
    scale = 1e3 if column.endswith("ms") else 1.0
    low, high = LEAST_TIME / scale, MOST_TIME / scale
    return table.numbers(column, low, low=low, high=high) * scale, is_measured


def counts(data: Dataset) -> list[dict[str, str | int]]:
    """Rows by source, device, operator, kind and what is known."""
    found = collections.Counter(
        zip(
            data.source.tolist(),
            (data.device_names[index] for index in data.device.tolist()),
            data.operator.tolist(),
            data.kind.tolist(),
            data.knowledge.tolist(),
        )
    )
    return [
        dict(source=source, device=device, operator=operator, kind=kind, knowledge=knowledge, rows=rows)
        for (source, device, operator, kind, knowledge), rows in sorted(found.items())
    ]
