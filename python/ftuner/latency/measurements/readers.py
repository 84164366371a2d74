"""Readers of files of measurements.

`read` takes CSV files in one of the formats below, told by their headers:

* vendor rows (`vendor_rows`): kernels of cuBLAS for PyTorch's linear and bmm;
* token rows (`token_rows`): products of a vendor's library on tensor cores, kernels unknown;
* configurations (`configuration_rows`): CLBlast's Xgemm with each of its parameters;
* memory rows (`memory_rows`): elementwise kernels and reductions of rows of other libraries;
* FTuner rows (`ftuner_rows`): programs of this compiler.

docs/calibration.md has the columns.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Sequence

from ...errors import Error
from . import configuration_rows, ftuner_rows, memory_rows, token_rows, vendor_rows
from .rows import Devices, MeasurementTable, concatenate
from .table import Table

# Files with no more token rows are read as a whole.
FEW_TOKEN_ROWS = 1000


@dataclasses.dataclass(frozen=True)
class Format:
    """A format of files: the columns it must have ("a or b": one of them), and its reader."""

    name: str
    columns: Sequence[str]
    read: Callable[[Table, Devices, bool | None], MeasurementTable]

    def missing(self, table: Table) -> list[str]:
        return [
            column
            for column in self.columns
            if not any(name in table for name in column.split(" or "))
        ]


def _format_of(table: Table) -> Format:
    """The one format whose columns the table has."""
    formats = [
        Format("vendor rows", vendor_rows.COLUMNS, vendor_rows.read),
        Format("token rows", token_rows.COLUMNS, token_rows.read),
        Format("configurations", configuration_rows.COLUMNS, configuration_rows.read),
        Format("memory rows", memory_rows.COLUMNS, memory_rows.read),
        Format("FTuner rows", ftuner_rows.COLUMNS, ftuner_rows.read),
    ]
    found = [one for one in formats if not one.missing(table)]
    if len(found) == 1:
        return found[0]
    expected = (
        f"{table.path}:1: expected the columns of vendor rows, token rows, configurations, "
        "memory rows or FTuner rows"
    )
    if found:
        raise Error(f"{expected}, but got those of {' and '.join(one.name for one in found)}")
    nearest = min(formats, key=lambda one: len(one.missing(table)) / len(one.columns))
    missing = ", ".join(f"'{column}'" for column in nearest.missing(table))
    raise Error(f"{expected}, but for {nearest.name} it lacks {missing}")


def read(
    paths: Sequence[str | os.PathLike[str]],
    devices: Devices,
    host: bool | None = None,
    step: int = 1,
    token_step: int = 1,
) -> MeasurementTable:
    """The rows of the files; `host` says whether they were timed on the host.

    By default vendor rows are timed on the host, and others on the device. Every `step`-th row of a
    file is read; in files with many token rows, each of which is dozens of launches, every
    `token_step`-th of these. Raises `Error` with file and line for rows that cannot be used.
    """
    parts = []
    for path in paths:
        table = Table(path)
        table.thin(step)
        form = _format_of(table)
        if form.read is token_rows.read:
            table.thin(token_step if len(table) > FEW_TOKEN_ROWS else 1)
        if not len(table):
            raise Error(f"{table.path}: expected rows, but there is only a header")
        parts.append(form.read(table, devices, host))
    return concatenate(parts)
