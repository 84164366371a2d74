"""Configurations of CLBlast's Xgemm (OpenCL, f32, C = A·Bᵀ + C, column-major) as launches.

Columns: MWG, NWG (block tile), KWG (reduce elements of a step), MDIMC, NDIMC (threads along M
and N), MDIMA, NDIMB (the same threads reshaped to copy A and B), VWM, VWN (vector widths), SA,
SB (1: stage the operand in shared memory), time_ms; M, N, K where they are not 4096. Device
time of one device.

Instructions, bank conflicts and lines are replayed from the lane addresses of the kernel: a
thread t has x = t mod MDIMC, y = t / MDIMC and a tile of MWG/MDIMC × NWG/NDIMC; A is
A[k·M + m], B is B[k·N + n].

* Fragments, for each reduce element j: words j·MWG + x·rm + i (A) and j·NWG + y·rn + i (B), from
  shared memory if staged, else from L1.
* Copies: column (t mod MDIMA)·MWG/MDIMA, row (t / MDIMA)·KWG·MDIMA/T; B the same.
* The compiler merges neighbouring accesses of staged B up to the alignment of A's array, which
  lies in front; A's are never merged beyond VWM (inferred from the times).
* Registers: 28 + accumulators + max(1.2 · fragments, staged), less 13 % (the form is from
  compilations by ptxas, the numbers from the configurations).
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import numpy.typing as npt

from ..model import model
from .rows import (
    MAX_EXTENT,
    MAX_TILE,
    Devices,
    MeasurementTable,
    check_prices,
    fold_of,
    read_times,
)
from .table import Table

_WHOLE = ("MWG", "NWG", "MDIMC", "NDIMC", "MDIMA", "NDIMB", "VWM", "VWN")
_FLAGS = ("SA", "SB")
COLUMNS = (*_WHOLE, *_FLAGS, "time_ms")


def read(table: Table, devices: Devices, host: bool | None) -> MeasurementTable:
    """The configurations that differ in effect; fast ones weigh more in fits.

    The first of several rows that do not differ in effect stands for them.
    """
    device = devices.index_rows(table)
    c = {name: table.numbers(name, whole=True, low=1, high=MAX_TILE) for name in _WHOLE}
    for name in ("VWM", "VWN"):
        table.expect(name, np.isin(c[name], (1, 2, 4, 8)), "1, 2, 4 or 8")
    c["KWG"] = table.numbers("KWG", 32, whole=True, low=1, high=MAX_TILE)
    for name in "MNK":
        c[name] = table.numbers(name, 4096, whole=True, low=1, high=MAX_EXTENT)
    for name in _FLAGS:
        c[name] = table.numbers(name, whole=True, low=0, high=1)
    microseconds = read_times(table, "time_ms")
    threads = c["MDIMC"] * c["NDIMC"]
    for row in np.flatnonzero(
        (threads % 32 != 0)
        | (threads > 1024)
        | (c["MWG"] % c["MDIMC"] != 0)
        | (c["NWG"] % c["NDIMC"] != 0)
        | (threads % c["MDIMA"] != 0)
        | (threads % c["NDIMB"] != 0)
        | ((c["SA"] == 1) & (c["KWG"] * c["MDIMA"] % threads != 0))
        | ((c["SB"] == 1) & (c["KWG"] * c["NDIMB"] % threads != 0))
    )[:1]:
        raise table.error(int(row), "expected whole warps and tiles that the threads divide")

    # MDIMA and NDIMB have no effect where the operand is not staged.
    effect = np.stack(
        [c["MWG"], c["NWG"], c["MDIMC"], c["NDIMC"], c["MDIMA"] * (c["SA"] != 0)]
        + [c["NDIMB"] * (c["SB"] != 0), c["VWM"], c["VWN"], c["SA"], c["SB"]],
        axis=1,
    ).astype(np.int64)
    others = np.stack([device, c["KWG"], c["M"], c["N"], c["K"]], axis=1).astype(np.int64)
    _, first = np.unique(np.hstack([others, effect]), axis=0, return_index=True)
    first = np.sort(first)
    c = {name: values[first] for name, values in c.items()}
    device, microseconds, effect = device[first], microseconds[first], effect[first]
    fold = np.array([fold_of(*row) for row in effect], np.int64)

    flop = 2 * c["M"] * c["N"] * c["K"]
    part, grid = _launch(c, [devices.figures[index] for index in device])
    launches = model().launches(devices.figures, device, [part], grid)
    check_prices(table, launches, first)
    # Ranking the fast ones is what counts.
    rate = flop / microseconds
    weight = np.sqrt(rate / [rate[device == one].max() for one in device])
    return MeasurementTable(
        devices=devices,
        launches=launches,
        microseconds=microseconds,
        group=np.full(len(first), "configurations", dtype=object),
        floor=np.zeros(len(first)),
        is_host=np.full(len(first), host is True),
        weight=weight,
        fold=fold,
        flop=flop,
        extra={
            "is_staged": (c["SA"] == 1) & (c["SB"] == 1),
            **{name: values for name, values in c.items()},
        },
    )


def _launch(
    c: dict[str, Any], figures: list[dict[str, float]]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Part and grid of each configuration."""
    size = len(c["MWG"])
    threads = c["MDIMC"] * c["NDIMC"]
    warps = threads / 32
    thread_m, thread_n = c["MWG"] / c["MDIMC"], c["NWG"] / c["NDIMC"]
    staged_a, staged_b = (c["SA"] == 1).astype(float), (c["SB"] == 1).astype(float)
    width_a, width_b = np.minimum(c["VWM"], 4), np.minimum(c["VWN"], 4)
    # Accesses of staged B are as wide as the compiler merges them.
    merged = np.where(staged_a == 1, np.maximum(c["VWN"], c["VWM"]), c["VWN"])
    shared_b = np.where(staged_b == 1, np.minimum(merged, 4), width_b)
    min_cycles = np.array([32 / device["load_store_lanes"] for device in figures])

    copies_a, copies_b = np.zeros((size, 5)), np.zeros((size, 5))
    fragments_a, fragments_b = np.zeros((size, 3)), np.zeros((size, 3))
    columns = {name: values.astype(int).tolist() for name, values in c.items()}
    for i in range(size):
        get = {name: values[i] for name, values in columns.items()}
        t, lo = int(threads[i]), float(min_cycles[i])
        va, vb, vs = int(width_a[i]), int(width_b[i]), int(shared_b[i])
        if get["SA"] == 1:
            copies_a[i] = _copy(get["MWG"], t, get["MDIMA"], get["KWG"], va, va, lo)
        if get["SB"] == 1:
            copies_b[i] = _copy(get["NWG"], t, get["NDIMB"], get["KWG"], vb, vs, lo)
        fragments_a[i] = _fragments(True, get["MDIMC"], t, int(thread_m[i]), va, lo)
        fragments_b[i] = _fragments(False, get["MDIMC"], t, int(thread_n[i]), vs, lo)
    fragments_a *= c["KWG"][:, None]
    fragments_b *= c["KWG"][:, None]
    loads_a, stores_a, stored_a, lines_a, each_a = copies_a.T
    loads_b, stores_b, stored_cycles_b, lines_b, each_b = copies_b.T
    instructions_a, cycles_a, direct_a = fragments_a.T
    instructions_b, cycles_b, direct_b = fragments_b.T

    shared_loads = staged_a * instructions_a + staged_b * instructions_b
    direct_loads = (1 - staged_a) * instructions_a + (1 - staged_b) * instructions_b
    copied = np.maximum(each_a * width_a, each_b * width_b)
    want = 28 + thread_m * thread_n + np.maximum(1.2 * (thread_m + thread_n), copied)
    registers = np.array([device["registers_per_sm"] for device in figures])
    max_registers = np.minimum(255, registers // threads // 8 * 8)
    shared_bytes = 4 * c["KWG"] * (staged_a * c["MWG"] + staged_b * c["NWG"])
    blocks_x, blocks_y = np.ceil(c["M"] / c["MWG"]), np.ceil(c["N"] / c["NWG"])
    part = dict(
        warps=warps,
        registers_per_thread=np.minimum(want * 0.87, max_registers),
        shared_memory_bytes=shared_bytes + 1024,
        k_tile=c["KWG"],
        fma=warps * c["KWG"] * thread_m * thread_n,
        other_instructions=shared_loads
        + 2 * direct_loads
        + 2 * (loads_a + loads_b + stores_a + stores_b),
        loaded_registers=warps * c["KWG"] * (thread_m + thread_n)
        + loads_a * width_a
        + loads_b * width_b,
        shared_cycles=staged_a * cycles_a
        + staged_b * cycles_b
        + stored_a
        + stored_cycles_b
        + (1 - staged_a) * direct_a
        + (1 - staged_b) * direct_b,
        global_lines=lines_a + lines_b,
        l2_bytes=4 * c["KWG"] * (c["MWG"] + c["NWG"]),
        is_pipelined=0,
        exposed_loads=2 * np.maximum(staged_a, staged_b),
        direct_registers=c["KWG"] * ((1 - staged_a) * thread_m + (1 - staged_b) * thread_n),
        spilled_registers=np.maximum(want - max_registers, 0),
        count=blocks_x * blocks_y,
        steps=np.ceil(c["K"] / c["KWG"]),
    )
    grid = dict(
        blocks_x=blocks_x,
        blocks_y=blocks_y,
        tile_x=c["MWG"],
        tile_y=c["NWG"],
        is_swizzled=0,
        problems=1,
        lhs_bytes=4 * c["N"] * c["K"],
        rhs_bytes=4 * c["M"] * c["K"],
        # C is read and written.
        output_bytes=8 * c["M"] * c["N"],
        is_output_aligned=c["M"] % 8 == 0,
        lhs_run_bytes=4 * c["NWG"],
        rhs_run_bytes=4 * c["MWG"],
        reduce_length=c["K"],
        element_bytes=4,
        second_kernels=0,
        sum_bytes=0,
    )
    return part, grid


def _lanes(threads: int) -> npt.NDArray[np.int64]:
    """Threads of the block as warps × lanes."""
    return np.arange(threads).reshape(-1, 32)


def _from_l1(addresses: Any, width: int) -> npt.NDArray[np.int32]:
    """Cycles of global loads that hit L1: as from shared memory, but parts of a warp never go
    together."""
    words = (addresses[:, :, None] + np.arange(width)).reshape(-1, 32)
    cycles: npt.NDArray[np.int32] = (
        model().wavefronts(words, 1).reshape(len(addresses), -1).sum(axis=1)
    )
    return cycles


@functools.lru_cache(None)
def _copy(
    tile: int,
    threads: int,
    threads_along: int,
    depth: int,
    width: int,
    stored: int,
    min_cycles: float,
) -> tuple[float, ...]:
    """A step's copy of a depth × tile array, by all warps.

    Load and store instructions, cycles of the stores, lines of the loads (each at least
    `min_cycles`), loads of a thread.
    """
    own, rows = tile // threads_along, depth * threads_along // threads
    stored = min(stored, own)
    loads, stores = own // width * rows, own // stored * rows
    t = _lanes(threads)
    column, row = t % threads_along * own, t // threads_along * rows
    lines = model().lines(row * 4096 + column, width)
    cycles = model().wavefronts(row * tile + column, stored)
    return (
        float(loads * len(t)),
        float(stores * len(t)),
        float(stores * np.maximum(cycles, min_cycles).sum()),
        float(loads * np.maximum(lines, min_cycles).sum()),
        float(loads),
    )


@functools.lru_cache(None)
def _fragments(
    is_lhs: bool, threads_along: int, threads: int, tile: int, width: int, min_cycles: float
) -> tuple[float, ...]:
    """Loads of the fragments of one reduce element, by all warps.

    Instructions, their cycles from shared memory and from L1 (each at least `min_cycles`).
    """
    width = min(width, tile)
    loads = tile // width
    t = _lanes(threads)
    address = (t % threads_along if is_lhs else t // threads_along) * tile
    shared = model().wavefronts(address, width)
    return (
        float(loads * len(t)),
        float(loads * np.maximum(shared, min_cycles).sum()),
        float(loads * np.maximum(_from_l1(address, width), min_cycles).sum()),
    )
