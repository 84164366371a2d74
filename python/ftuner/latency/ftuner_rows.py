"""FTuner rows: programs of this compiler, f32 products.

Columns: m, n, k; block_m, block_n, block_k, thread_m, thread_n (tiles of the block and of a
thread); us (microseconds); and where they differ from what is in brackets device, batch (1),
transpose_lhs, transpose_rhs (0), stages (2), vector_width (4), combine_axis (m; or n),
second_block, second_thread (0: one uKernel), first_count, second_count (0: the cover that the
compiler takes), reduce_split (1, the only one that this path has), fold.

The compiler's own code generator says what each executes.
"""

from __future__ import annotations

import re
from typing import Mapping

import numpy as np
import numpy.typing as npt

from ..errors import Error
from .model import Launches, model
from .rows import (
    MOST_EXTENT,
    Devices,
    Rows,
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
    "thread_m": None,
    "thread_n": None,
    "second_block": 0,
    "second_thread": 0,
    "first_count": 0,
    "second_count": 0,
    "reduce_split": 1,
    "stages": 2,
    "vector_width": 4,
}
# Columns that are no more than yes or no.
_FLAGS = ("transpose_lhs", "transpose_rhs")
COLUMNS = (*(name for name, default in _DEFAULTS.items() if default is None), "us")


def read(table: Table, devices: Devices, host: bool | None) -> Rows:
    """The rows of a table. Raises `Error` with the line of a program that cannot be."""
    loaded = model()
    device = devices.of(table)
    columns = {
        name: table.numbers(
            name, default, whole=True, low=0, high=1 if name in _FLAGS else MOST_EXTENT
        ).astype(np.int64)
        for name, default in _DEFAULTS.items()
    }
    axes = {"m": 0, "n": 1, "": 0}
    columns["combine_axis"] = table.choose("combine_axis", "m", axes.get, "m or n").astype(np.int64)
    _check_blocks(table, columns)
    microseconds = read_times(table, "us")
    programs = np.stack([columns[name] for name in loaded.program_fields], axis=1)
    parts = np.zeros((len(table), 2, len(loaded.part_fields)))
    grids = np.zeros((len(table), len(loaded.grid_fields)))
    for index in np.unique(device):
        rows = np.flatnonzero(device == index)
        try:
            parts[rows], grids[rows] = loaded.programs(devices.sources[index], programs[rows])
        except Error as error:
            if match := re.match(r"row (\d+): (.*)", str(error), re.DOTALL):
                raise table.error(int(rows[int(match[1])]), match[2]) from error
            raise
    launches = Launches(device_table(devices, loaded), device, parts, grids)
    check_prices(table, launches)
    flop = 2.0 * columns["batch"] * columns["m"] * columns["n"] * columns["k"]
    group = np.full(len(table), "ftuner", dtype=object)
    # All programs of a shape are on one side of a split.
    fold = read_folds(table, zip(*(columns[name] for name in ("batch", "m", "n", "k"))))
    is_host = host is True
    floor = launch_floor(microseconds, flop, device, group) if is_host else np.zeros(len(table))
    return Rows(
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


def _check_blocks(table: Table, columns: Mapping[str, npt.NDArray[np.int64]]) -> None:
    """Raises `Error` for what is of no second uKernel, and for blocks that cover nothing."""
    if "second_thread" in table:
        is_good = (columns["second_thread"] == 0) | (columns["second_block"] > 0)
        table.expect("second_thread", is_good, "0 without a second_block")
    is_m = columns["combine_axis"] == 0
    extent = np.where(is_m, columns["m"], columns["n"])
    first = np.where(is_m, columns["block_m"], columns["block_n"])
    covered = columns["first_count"] * first + columns["second_count"] * columns["second_block"]
    for name, block in (("first_count", first), ("second_count", columns["second_block"])):
        if name in table:
            is_needed = (columns[name] == 0) | (covered - block < extent)
            table.expect(name, is_needed, "no more blocks than the extent needs")
