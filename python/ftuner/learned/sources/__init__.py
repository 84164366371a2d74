"""Data sets from files of measurements, told by their columns (docs/learned-data.md)."""

from __future__ import annotations

import collections
import dataclasses
import os
from collections.abc import Callable, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from ...describe import descriptions
from ...errors import Error
from ...latency.measurements.table import Table
from ..dataset import Dataset
from . import attention, configurations, convolutions, memory, models, products, programs
from .formats import CARDS, Cards, Found, Source, stem

__all__ = ["CARDS", "File", "counts", "files_of", "gather", "sources", "stem"]


def sources() -> list[Source]:
    """All formats, in the order in which they are told."""
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
# Names of files that are not tables: logs of measurers, and rows that are not measured.
LOG, SYNTHETIC_SOURCE = "log", "synthetic"


def files_of(paths: Sequence[str]) -> list[str]:
    """The files, and the files in folders that may be tables (.csv, .csv.gz, .csv.xz) or logs (.jsonl, …)."""
    result = []
    for path in paths:
        if not os.path.isdir(path):
            result.append(path)
            continue
        inside = sorted(
            os.path.join(path, name) for name in os.listdir(path) if name.endswith(ENDINGS)
        )
        if not inside:
            raise Error(
                f"expected tables of rows or logs in the folder '{path}', but there are none"
            )
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
        dict(
            source=source,
            device=device,
            operator=operator,
            kind=kind,
            knowledge=knowledge,
            rows=rows,
        )
        for (source, device, operator, kind, knowledge), rows in sorted(found.items())
    ]
