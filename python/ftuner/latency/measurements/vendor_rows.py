"""Vendor rows: cuBLAS f32 products as launches.

Columns: kernel (its name), B, M, N, K, latency_ms or latency_us, and where they are
known op (linear, bmm), device, tile_m, tile_n, layout, grid_z, block_x,
block_y, block_z, aux_kernel, fold. cuBLAS is column-major: its tile_m tiles N, and its
grid's x runs along N. Kernels with xmma in their names (Hopper's f32 ones) name tiles and
grid of the row-major product: their tile_m tiles M, and the grid's x runs along M. All 1,896
published rows of an H100 with such a kernel say so by their grids.

What a name does not say is what these kernels have in common: thread tiles as square as
the block allows, steps of 8 reduce elements, 128-bit fragments without bank conflicts, and
hand-scheduled loads that cost no further issue slots. Tensor-core kernels (TF32 and
narrower) are left out: the model is of FMA units.
"""

from __future__ import annotations

import dataclasses
import re
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ..model import Array, Launches, model
from .rows import (
    MAX_EXTENT,
    MAX_TILE,
    Devices,
    MeasurementTable,
    check_prices,
    launch_floor,
    read_folds,
    read_times,
)
from .table import Table

COLUMNS = ("kernel", "M", "N", "K", "latency_ms or latency_us")
_TENSOR_CORES = re.compile(r"tensorop|_s\d{4,}|s1688|s16816|h\d{3,}gemm|hmma|imma|bf16|f16|_tf32")
# Pascal's and older kernels launch blocks in rows; later ones in near-square groups.
_ROWS = re.compile(r"maxwell|^sgemm")
# Kernels that name their tile as rows × columns of a row-major product.
_ROW_MAJOR = re.compile(r"xmma")


# Elements along K of a step, of each group of warps.
STEP = 8


class KernelName(NamedTuple):
    """Facts that a kernel's name states; None if it does not."""

    tile_m: int | None = None
    tile_n: int | None = None
    layout: str | None = None
    # Groups of warps that share the reduce elements of a step.
    slices: int = 1
    # Copies that are under way at once.
    stages: int = 2
    is_swizzled: bool = True
    # True if tile_m tiles M; in column-major kernels it tiles N.
    is_row_major: bool = False
    is_tensor_core: bool = False

    @property
    def is_possible(self) -> bool:
        numbers = (self.tile_m or 1, self.tile_n or 1, self.slices, self.stages)
        return all(1 <= number <= MAX_TILE for number in numbers)


def parse_kernel_name(name: str) -> KernelName:
    """Block tile, layout, slices and stages from the name of a cuBLAS or CUTLASS kernel."""
    lower = name.lower()
    tile = re.search(r"tilesize(\d+)x(\d+)", lower) or re.search(r"(\d+)x(\d+)", lower)
    layout = re.search(r"_(nn|nt|tn|tt)(?:_|$)", lower)
    slices = 1
    if match := re.search(r"sliced(\d+)x(\d+)", lower):
        slices = int(match[1]) * int(match[2])
    elif match := re.search(r"warpsize\d+x\d+x(\d+)", lower):
        slices = max(1, int(match[1]))
    stages = 2
    if match := re.search(r"stages?_?(\d+)", lower):
        stages = int(match[1])
    elif match := re.search(r"cutlass.*?_\d+x\d+_\d+x(\d+)", lower):
        stages = int(match[1])
    elif "ampere" in lower:
        stages = 4
    return KernelName(
        tile_m=int(tile[1]) if tile else None,
        tile_n=int(tile[2]) if tile else None,
        layout=layout[1] if layout else None,
        slices=slices,
        stages=max(2, stages),
        is_swizzled=not _ROWS.search(lower),
        is_row_major=bool(_ROW_MAJOR.search(lower)),
        is_tensor_core=bool(_TENSOR_CORES.search(lower)),
    )


@dataclasses.dataclass(frozen=True)
class FmaKernels:
    """f32 kernels of a vendor's library, an array of each of their properties.

    tile_m, tile_n   of a block; tile_m tiles N, unless `is_row_major`
    layout           as in the name: nn, nt, tn or tt
    slices           groups of warps that share the reduce elements of a step
    stages           copies under way at once, and one
    threads          of a block
    is_swizzled      whether blocks are launched in near-square groups, not in rows
    split            slices of K that different blocks sum
    has_sums         whether a second kernel sums them
    """

    tile_m: Any
    tile_n: Any
    layout: Any
    slices: Any
    stages: Any
    threads: Any
    is_swizzled: Any
    is_row_major: Any
    split: Any
    has_sums: Any

    @property
    def thread_tile(self) -> tuple[Any, Any]:
        """A thread's accumulators along tile_m and tile_n: as square as can be."""
        sums = np.maximum(self.tile_m * self.tile_n * self.slices // self.threads, 1)
        own_m = np.minimum(2 ** np.ceil(np.log2(sums) / 2), self.tile_m)
        return own_m, np.clip(sums // own_m, 1, self.tile_n)


def launches_of(
    kernels: FmaKernels,
    sizes: tuple[Array, Array, Array, Array],
    figures: list[dict[str, float]],
    device: npt.NDArray[np.int64],
) -> Launches:
    """Launches of kernels, one for each product of batch × M × N × K."""
    batch, m, n, k = sizes
    tile_m, tile_n, slices, split = kernels.tile_m, kernels.tile_n, kernels.slices, kernels.split
    # tile_m is along x, tile_n along y, whatever these are.
    is_row_major = kernels.is_row_major
    extent_x, extent_y = np.where(is_row_major, m, n), np.where(is_row_major, n, m)
    blocks_x, blocks_y = np.ceil(extent_x / tile_m), np.ceil(extent_y / tile_n)
    # Parts and grid.
    warps = kernels.threads / 32
    accumulators = tile_m * tile_n * slices / kernels.threads
    thread_m, thread_n = kernels.thread_tile
    length = k / split
    loads = (thread_m + thread_n) / 4
    load_store = np.array([one["load_store_lanes"] for one in figures])[device]
    part = dict(
        warps=warps,
        registers_per_thread=24 + accumulators + 2 * (thread_m + thread_n),
        shared_memory_bytes=64 * (tile_m + tile_n) * slices,
        k_tile=STEP,
        fma=warps * STEP * accumulators,
        other_instructions=warps * STEP * (loads + 0.5),
        loaded_registers=warps * STEP * (thread_m + thread_n),
        shared_cycles=warps * STEP * loads * np.maximum(2, 32 / load_store),
        global_lines=0,
        l2_bytes=32 * (tile_m + tile_n) * slices,
        is_pipelined=1,
        exposed_loads=1 / (kernels.stages - 1),
        direct_registers=0,
        spilled_registers=0,
        count=blocks_x * blocks_y * batch * split,
        steps=np.ceil(length / (STEP * slices)),
    )
    # Steps read 32 bytes of rows that are contiguous along K, else a row of the tile.
    lhs_run = 32 * slices
    tile_of_n = np.where(is_row_major, tile_n, tile_m)
    rhs_run = np.where(kernels.layout == "tn", 32 * slices, 4 * tile_of_n)
    launch = dict(
        blocks_x=blocks_x,
        blocks_y=blocks_y,
        tile_x=tile_m,
        tile_y=tile_n,
        is_swizzled=kernels.is_swizzled,
        problems=batch,
        lhs_bytes=4 * extent_y * k,
        rhs_bytes=4 * extent_x * k,
        output_bytes=4 * batch * m * n,
        is_output_aligned=n % 8 == 0,
        lhs_run_bytes=np.where(is_row_major, rhs_run, lhs_run),
        rhs_run_bytes=np.where(is_row_major, lhs_run, rhs_run),
        reduce_length=length,
        element_bytes=4,
        second_kernels=kernels.has_sums,
        sum_bytes=4 * batch * m * n * np.where(kernels.has_sums, split, 0),
    )
    return model().launches(figures, device, [part], launch)


def read(table: Table, devices: Devices, host: bool | None) -> MeasurementTable:
    """The rows of a table; those whose kernel the model does not describe are left out."""
    device = devices.index_rows(table)
    size = {
        name: table.numbers(name, 1 if name == "B" else None, whole=True, low=1, high=MAX_EXTENT)
        for name in "BMNK"
    }
    batch, m, n, k = (size[name] for name in "BMNK")
    microseconds = read_times(table, "latency_us" if "latency_us" in table else "latency_ms")
    op = table.text("op", "")
    op = np.where(op == "", np.where(batch > 1, "bmm", "linear"), op)

    names = table.text("kernel")
    known = {name: parse_kernel_name(name) for name in set(names)}
    table.expect(
        "kernel",
        np.array([known[name].is_possible for name in names], bool),
        f"a name whose tile, slices and stages are from 1 to {MAX_TILE}",
    )

    def said(field: str, unknown: Any) -> Any:
        values = [getattr(known[name], field) for name in names]
        return np.array([unknown if value is None else value for value in values])

    def given(column: str, default: int, maximum: int) -> Any:
        """A column of whole numbers; 0 is not known."""
        return table.numbers(column, default, whole=True, low=0, high=maximum)

    tile_m = _or(given("tile_m", 0, MAX_TILE), said("tile_m", 0))
    tile_n = _or(given("tile_n", 0, MAX_TILE), said("tile_n", 0))
    is_known = (tile_m > 0) & (tile_n > 0) & ~said("is_tensor_core", False)
    warnings = []
    if not is_known.all():
        left_out = sorted(set(names[~is_known]))
        warnings.append(
            f"{table.path}: {(~is_known).sum()} rows left out: no tile in the kernel's name, or "
            f"tensor cores ({', '.join(left_out[:4])}{', …' if len(left_out) > 4 else ''})"
        )
    tile_m, tile_n = np.where(is_known, tile_m, 32), np.where(is_known, tile_n, 32)
    layouts = table.text("layout", "")
    layouts = np.where(layouts == "", said("layout", "nn"), layouts)
    slices = said("slices", 1).astype(float)
    is_row_major = said("is_row_major", False)
    # Blocks of a folded grid that lie beyond the output end at once: grid_x and grid_y
    # say no more than the tiles. What grid_z has beside the batch splits K.
    split = np.maximum(1, given("grid_z", 0, MAX_EXTENT) // batch)
    threads = given("block_x", 0, MAX_TILE)
    for axis in "yz":
        threads = threads * np.maximum(1, given(f"block_{axis}", 1, MAX_TILE))
    if "block_x" in table:
        expected = f"at most {MAX_TILE} threads of a block"
        table.expect("block_x", threads <= MAX_TILE, expected)
    kernels = FmaKernels(
        tile_m=tile_m,
        tile_n=tile_n,
        layout=layouts,
        slices=slices,
        stages=said("stages", 2),
        threads=np.where(threads >= 32, threads, usual_threads(tile_m, tile_n, slices)),
        is_swizzled=said("is_swizzled", True),
        is_row_major=is_row_major,
        split=split,
        has_sums=np.array(["splitk" in str(text).lower() for text in table.text("aux_kernel", "")]),
    )
    launches = launches_of(kernels, (batch, m, n, k), devices.figures, device)
    check_prices(table, launches)
    flop = 2 * batch * m * n * k
    group = np.array([f"vendor {name}" for name in op], dtype=object)
    fold = read_folds(table, zip(op, *(size[name].astype(int) for name in "BMNK")))
    is_host = host is not False
    floor = launch_floor(microseconds, flop, device, group) if is_host else np.zeros(len(table))
    rows = MeasurementTable(
        devices=devices,
        launches=launches,
        microseconds=microseconds,
        group=group,
        floor=floor,
        is_host=np.full(len(table), is_host),
        weight=np.ones(len(table)),
        fold=fold,
        flop=flop,
        extra={
            **size,
            "op": op,
            **vars(kernels),
        },
    )
    rows = rows[is_known] if not is_known.all() else rows
    rows.warnings = warnings
    return rows


def _or(values: Any, others: Any) -> Any:
    return np.where(values > 0, values, others)


# Threads of cuBLAS's blocks by tile and slices; others have 64 accumulators a thread.
_THREADS = {
    (32, 32, 1): 128,
    (32, 128, 1): 256,
    (32, 32, 4): 128,
    (32, 64, 4): 256,
    (32, 128, 4): 256,
}


def usual_threads(tile_m: Any, tile_n: Any, slices: Any) -> Any:
    known = [
        _THREADS.get((int(min(m, n)), int(max(m, n)), int(s)), 0)
        for m, n, s in zip(tile_m, tile_n, slices)
    ]
    others = np.clip(2 ** np.round(np.log2(tile_m * tile_n * slices / 64)), 32, 1024)
    return _or(np.array(known, float), others)
