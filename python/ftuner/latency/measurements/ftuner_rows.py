"""FTuner rows: programs of this compiler, products.

Columns: m, n, k; block_m, block_n, block_k (the tile of a block); the fields of the schedule
that the program's codegen path has; us (microseconds); and where they differ from what is in
brackets type (f32; or tf32, f16, bf16, i8), path (the compiler's first), device, batch (1),
transpose_lhs, transpose_rhs (0),
combine_axis (m; or n), second_block (0: one uKernel; or the height of the other along that
axis), first_count, second_count (0: the partition that the compiler takes), reduce_split (1), fold.

The compiler's own code generator says what each executes, and names the schedule's fields
(`Model.program_fields`). Rows leave those of other paths empty.
"""

from __future__ import annotations

import contextlib
import dataclasses
import re
from collections.abc import Iterator, Mapping

import numpy as np
import numpy.typing as npt

from ...errors import Error
from ..model import Launches, model
from .rows import (
    MAX_EXTENT,
    Devices,
    MeasurementTable,
    check_prices,
    device_table,
    launch_floor,
    read_folds,
    read_times,
)
from .table import Table

_DEFAULTS: dict[str, int | None] = {
    "batch": 1,
    "m": None,
    "n": None,
    "k": None,
    "transpose_lhs": 0,
    "transpose_rhs": 0,
    "block_m": None,
    "block_n": None,
    "block_k": None,
    "second_block": 0,
    "first_count": 0,
    "second_count": 0,
    "reduce_split": 1,
}
# Columns that are no more than yes or no.
_FLAGS = ("transpose_lhs", "transpose_rhs")
COLUMNS = (*(name for name, default in _DEFAULTS.items() if default is None), "us")


@dataclasses.dataclass(frozen=True)
class Programs:
    """Rows of one device and codegen path as the library takes them: rows × `program_fields`."""

    device: int
    path: str
    rows: npt.NDArray[np.int64]
    records: npt.NDArray[np.int64]


def read_programs(
    table: Table, devices: Devices
) -> tuple[npt.NDArray[np.int64], dict[str, npt.NDArray[np.int64]], list[Programs]]:
    """The device of each row, its columns that all paths have, and its programs.

    Raises `Error` with the line of a row that is not a program.
    """
    loaded = model()
    device = devices.index_rows(table)
    columns = {
        name: table.numbers(
            name, default, whole=True, low=0, high=1 if name in _FLAGS else MAX_EXTENT
        ).astype(np.int64)
        for name, default in _DEFAULTS.items()
    }
    axes = {"m": 0, "n": 1, "": 0}
    types = {name: number for number, name in enumerate(loaded.program_types)}
    columns["type"] = table.choose(
        "type", loaded.program_types[0], types.get, f"one of {', '.join(types)}"
    ).astype(np.int64)
    columns["combine_axis"] = table.choose("combine_axis", "m", axes.get, "m or n").astype(np.int64)
    _check_blocks(table, columns)
    known = {name: name for name in loaded.paths} | {"": loaded.paths[0]}
    paths = table.choose("path", "", known.get, f"one of {', '.join(loaded.paths)}")
    programs = []
    for path in sorted(set(paths)):
        records = _programs(table, columns, path, paths == path)
        for index in np.unique(device[paths == path]):
            rows = np.flatnonzero((device == index) & (paths == path))
            programs.append(Programs(int(index), path, rows, records[rows]))
    return device, columns, programs


@contextlib.contextmanager
def errors_by_line(table: Table, programs: Programs) -> Iterator[None]:
    """Errors of the library that name one of the programs name the table's line."""
    try:
        yield
    except Error as error:
        if match := re.match(r"row (\d+): (.*)", str(error), re.DOTALL):
            raise table.error(int(programs.rows[int(match[1])]), match[2]) from error
        raise


def read(table: Table, devices: Devices, host: bool | None) -> MeasurementTable:
    """The rows of a table. Raises `Error` with the line of a program that cannot be."""
    loaded = model()
    device, columns, programs = read_programs(table, devices)
    microseconds = read_times(table, "us")
    parts = np.zeros((len(table), 2, len(loaded.part_fields)))
    grids = np.zeros((len(table), len(loaded.grid_fields)))
    for program_rows in programs:
        with errors_by_line(table, program_rows):
            parts[program_rows.rows], grids[program_rows.rows] = loaded.programs(
                devices.sources[program_rows.device], program_rows.path, program_rows.records
            )
    launches = Launches(device_table(devices, loaded), device, parts, grids)
    check_prices(table, launches)
    flop = np.asarray(
        2.0 * columns["batch"] * columns["m"] * columns["n"] * columns["k"], np.float64
    )
    group = np.full(len(table), "ftuner", dtype=object)
    # All programs of a shape are on one side of a split.
    fold = read_folds(table, zip(*(columns[name] for name in ("batch", "m", "n", "k"))))
    is_host = host is True
    floor = launch_floor(microseconds, flop, device, group) if is_host else np.zeros(len(table))
    return MeasurementTable(
        devices=devices,
        launches=launches,
        microseconds=microseconds,
        group=group,
        floor=floor,
        is_host=np.full(len(table), is_host),
        weight=np.ones(len(table)),
        fold=fold,
        flop=flop,
    )


def _programs(
    table: Table,
    columns: Mapping[str, npt.NDArray[np.int64]],
    path: str,
    is_path: npt.NDArray[np.bool_],
) -> npt.NDArray[np.int64]:
    """Records of the rows as programs of a path, which those of `is_path` are."""
    fields = []
    defaults = model().program_defaults(path)
    for name in model().program_fields(path):
        if name in columns:
            fields.append(columns[name])
            continue
        # A field of the path's schedules.
        if name not in table and name in defaults:
            fields.append(np.full(len(table), defaults[name], np.int64))
            continue
        is_missing = (table.text(name) == "") & is_path
        table.expect(name, ~is_missing, f"a whole number in rows of path '{path}'")
        numbers = table.numbers(name, 0, whole=True, low=0, high=MAX_EXTENT)
        fields.append(numbers.astype(np.int64))
    return np.stack(fields, axis=1)


def _check_blocks(table: Table, columns: Mapping[str, npt.NDArray[np.int64]]) -> None:
    """Raises `Error` for blocks that cover nothing."""
    is_m = columns["combine_axis"] == 0
    extent = np.where(is_m, columns["m"], columns["n"])
    first = np.where(is_m, columns["block_m"], columns["block_n"])
    covered = columns["first_count"] * first + columns["second_count"] * columns["second_block"]
    for name, block in (("first_count", first), ("second_count", columns["second_block"])):
        if name in table:
            is_needed = (columns[name] == 0) | (covered - block < extent)
            table.expect(name, is_needed, "no more blocks than the extent needs")
