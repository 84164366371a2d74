"""Token rows: products of a vendor's library on the tensor cores, whose kernels are not known.

Columns: dtype (f16, bf16, tf32 or i8), layout (nt: C[M, N] = A[M, K] · W[N, K]ᵀ), M, N, K,
latency_ms or latency_us, and where they are known device and fold (without it that of "N,K", so
that no neighbour in M of a row is on the other side of a split).

The rows do not say which kernel ran: it is taken to be the fastest of a stated set, by the
constants at hand. The set is that of cuBLAS and CUTLASS, one reason for each choice:

* block tiles of 64 to 256 rows and columns, no larger than 256 × 128: smaller ones have too
  little work for what they load, larger ones no registers for the accumulators. Tiles whose lower
  half has no row of the product are left out, as a lower tile does the same with less.
* steps of 64 and 128 bytes along the reduce axis (32 and 64 elements of f16): one and two
  fragments of each instruction's depth in a swizzled row of shared memory.
* 2 to 6 stages: of those with as many resident blocks the most stages.
* 1 to 16 slices of the reduce axis, of four steps and more, while the blocks are at most two for
  each SM: slices are for products with too few blocks. A second kernel sums them in f32.
* instructions of one warp (mma.sync) everywhere; from compute capability 9.0 on also those of
  four (wgmma), with tiles of pairs of blocks that copy the same operand once (clusters of 2).

A vendor's heuristic is not always right: where it takes a slower kernel, rows are slower than
this. Times have a resolution of 1 us, so rows below 10 us are left out.
"""

from __future__ import annotations

import dataclasses
from typing import Any, Iterator

import numpy as np
import numpy.typing as npt

from ..errors import Error
from .model import Array, Launches, model
from .rows import MOST_EXTENT, Devices, Rows, check_prices, read_folds, read_times
from .table import Table

COLUMNS = ("dtype", "layout", "M", "N", "K", "latency_ms or latency_us")
# Rows below 10 us say little more than the resolution of their times (Rows.is_fit).
FLOOR = 4.999
_TILES = ((64, 64), (64, 128), (128, 64), (128, 128), (64, 256), (256, 64), (128, 256), (256, 128))
_STEP_BYTES = (64, 128)
_STAGES = (2, 3, 4, 5, 6)
_SPLITS = (1, 2, 3, 4, 5, 6, 8, 10, 12, 16)
# Steps of a slice, and blocks for each SM with slices.
_LEAST_STEPS = 4
_SPLIT_BLOCKS = 2
# A cluster's two waits, as FTuner's kernels are priced (lib/CostModel/Latency.cpp).
CLUSTER_CYCLES = 360
# Choices that are this much slower than the best by the first constants cannot become it.
_HOPELESS = 2.0
# Bytes of an element as the kernel reads it, its field of operations, bytes of an output element.
_TYPES = {
    "f16": (2, "f16_operations", 2),
    "bf16": (2, "f16_operations", 2),
    "tf32": (4, "tf32_operations", 4),
    "i8": (1, "i8_operations", 4),
}
# m16n8: rows, columns and bytes of the reduce axis of an instruction; ldmatrix takes 16 × 16
# elements of 2 bytes.
_ROWS, _COLUMNS, _DEPTH_BYTES, _FRAGMENT = 16, 8, 32, 16


@dataclasses.dataclass(frozen=True)
class VendorTile:
    """A kernel that a vendor's library may have: what a block of it takes.

    rows, columns   of the block's tile of the output
    step_bytes      of a row of an operand, for each step
    """

    rows: int
    columns: int
    step_bytes: int
    stages: int
    is_warpgroup: bool

    @property
    def shared_bytes(self) -> int:
        return self.stages * (self.rows + self.columns) * self.step_bytes

    @property
    def warps_along(self) -> tuple[int, int]:
        """Warps of mma.sync along rows and columns: four, or eight for the largest tiles."""
        if self.rows * self.columns > 128 * 128:
            return (4, 2) if self.rows > self.columns else (2, 4)
        if max(self.rows, self.columns) > 128:
            return (4, 1) if self.rows > self.columns else (1, 4)
        return 2, 2

    def part(self, dtype: str) -> dict[str, Any]:
        """The fields of a block that its tile determines."""
        size, operations, _ = _TYPES[dtype]
        depth = self.step_bytes // size
        fragments = self.step_bytes // _DEPTH_BYTES
        instructions = self.rows * self.columns * fragments / (_ROWS * _COLUMNS)
        copied = (self.rows + self.columns) * self.step_bytes
        if self.is_warpgroup:
            # One or two groups of four warps multiply, a warp of four more copies by TMA:
            # nothing is loaded into registers. Instructions are m64n(columns).
            groups = 2 if self.rows * self.columns >= 128 * 128 else 1
            warps = 4 * groups
            # Each group reads all columns for its 64 rows.
            read = self.step_bytes * (self.rows + self.columns * self.rows / 64)
            work = dict(
                warps=warps + 4,
                registers_per_thread=168,
                tensor_instructions=instructions * _COLUMNS * _ROWS / (64 * self.columns) * 4,
                other_instructions=20 * warps,
                shared_cycles=read / 128,
                global_lines=0,
            )
        else:
            along_m, along_n = self.warps_along
            warps = along_m * along_n
            of_warp = self.rows // along_m // _FRAGMENT + self.columns // along_n // _FRAGMENT
            accumulators = self.rows * self.columns / (32 * warps)
            loads = warps * fragments * of_warp
            work = dict(
                warps=warps,
                # Two sets of fragments, four registers of each ldmatrix.
                registers_per_thread=min(255, accumulators + 8 * of_warp + 40),
                tensor_instructions=instructions,
                other_instructions=loads + copied / (16 * 32) + 20 * warps,
                shared_cycles=4 * loads,
                global_lines=copied / self.step_bytes,
            )
        kinds = {name: 0.0 for _, name, _ in _TYPES.values()}
        kinds[operations] = 2.0 * self.rows * self.columns * depth
        return dict(
            **work,
            **kinds,
            shared_memory_bytes=self.shared_bytes + 1024,
            step_depth=depth,
            fma=0,
            is_warpgroup=self.is_warpgroup,
            # Those of wgmma have a warp for copies, which goes on with the next tile.
            is_persistent=self.is_warpgroup,
            hides_stores=self.is_warpgroup,
            cluster_cycles=CLUSTER_CYCLES * self.is_warpgroup,
            loaded_registers=0,
            is_pipelined=1,
            exposed_loads=1 / (self.stages - 1),
            direct_registers=0,
            spilled_registers=0,
        )


def tiles(shared_bytes: float, has_warpgroups: bool) -> Iterator[VendorTile]:
    """The set for devices with so much shared memory in an SM."""
    for is_warpgroup in (False, True)[: 1 + has_warpgroups]:
        for rows, columns in _TILES:
            for step_bytes in _STEP_BYTES:
                of_resident = {}
                for stages in _STAGES:
                    tile = VendorTile(rows, columns, step_bytes, stages, is_warpgroup)
                    if resident := shared_bytes // (tile.shared_bytes + 1024):
                        of_resident[resident] = tile
                yield from of_resident.values()


def launches_of(
    tile: VendorTile,
    split: int,
    dtype: str,
    sizes: tuple[Array, Array, Array],
    figures: list[dict[str, float]],
    device: npt.NDArray[np.int64],
) -> Launches:
    """Launches of a kernel for products of M × N × K."""
    m, n, k = sizes
    size, _, output = _TYPES[dtype]
    blocks_y, blocks_x = np.ceil(m / tile.rows), np.ceil(n / tile.columns)
    # Rows beyond the product are not read. Blocks of a cluster share the columns.
    sharers = 2 if tile.is_warpgroup else 1
    columns = np.minimum(tile.columns, n) / np.where(blocks_y >= sharers, sharers, 1)
    part = dict(
        tile.part(dtype),
        l2_bytes=(np.minimum(tile.rows, m) + columns) * tile.step_bytes,
        count=blocks_x * blocks_y * split,
        steps=np.ceil(k / split * size / tile.step_bytes),
    )
    if not tile.is_warpgroup:
        part["global_lines"] = part["l2_bytes"] / tile.step_bytes
    grid = dict(
        blocks_x=blocks_x,
        blocks_y=blocks_y,
        tile_x=tile.columns,
        tile_y=tile.rows,
        is_swizzled=1,
        problems=split,
        lhs_bytes=size * m * k / split,
        rhs_bytes=size * n * k / split,
        output_bytes=m * n * output,
        is_output_aligned=n * output % 32 == 0,
        lhs_run_bytes=tile.step_bytes,
        rhs_run_bytes=tile.step_bytes,
        reduce_length=k / split,
        element_bytes=size,
        second_kernels=split > 1,
        # In f32 or i32.
        sum_bytes=m * n * (4 * split if split > 1 else 0),
    )
    return model().launches(figures, device, [part], grid)


def _is_choice(
    tile: VendorTile, split: int, size: int, sizes: tuple[Array, Array, Array], sms: Array
) -> npt.NDArray[np.bool_]:
    """Whether the set has the kernel for a product."""
    m, n, k = sizes
    is_choice = (tile.rows == 64) | (m > tile.rows // 2)
    is_choice &= (tile.columns == 64) | (n > tile.columns // 2)
    if split > 1:
        blocks = np.ceil(m / tile.rows) * np.ceil(n / tile.columns) * split
        is_choice &= blocks <= _SPLIT_BLOCKS * sms
        is_choice &= k * size >= _LEAST_STEPS * tile.step_bytes * split
    return np.asarray(is_choice)


def _choices_of(
    devices: Devices,
    index: int,
    dtype: str,
    sizes: tuple[Array, Array, Array],
    rows: npt.NDArray[np.int64],
) -> tuple[Launches, npt.NDArray[np.int64]]:
    """All launches that the rows of one device and type may be, and the row of each."""
    figures = devices.figures[index]
    # Compute capability 9.0 has the instructions of four warps: those of one reach less.
    has_warpgroups = figures["warp_tensor_share"] < 1
    own = tuple(one[rows] for one in sizes)
    found: list[tuple[Launches, npt.NDArray[np.int64]]] = []
    for tile in tiles(figures["shared_memory_per_sm_bytes"], has_warpgroups):
        for split in _SPLITS:
            q = _is_choice(tile, split, _TYPES[dtype][0], own, figures["sm_count"])  # type: ignore[arg-type]
            if q.any():
                some = (own[0][q], own[1][q], own[2][q])
                device = np.full(q.sum(), index)
                launches = launches_of(tile, split, dtype, some, devices.figures, device)
                found.append((launches, rows[q]))
    every = Launches(
        found[0][0].devices,
        np.concatenate([launches.device for launches, _ in found]),
        np.concatenate([launches.parts for launches, _ in found]),
        np.concatenate([launches.grids for launches, _ in found]),
    )
    row = np.concatenate([of for _, of in found])
    time = model().predict(every, model().start())
    best = np.full(rows.max() + 1, np.inf)
    np.minimum.at(best, row, time)
    is_near = time <= _HOPELESS * best[row]
    return every[is_near], row[is_near]


def read(table: Table, devices: Devices, host: bool | None) -> Rows:
    """The rows of a table, each with the launches that it may be."""
    device = devices.of(table)
    m, n, k = (table.numbers(name, whole=True, low=1, high=MOST_EXTENT) for name in "MNK")
    known = {name: name for name in _TYPES}
    dtype = table.choose("dtype", "", known.get, f"one of {', '.join(_TYPES)}")
    table.choose("layout", "", {"nt": "nt"}.get, "nt")
    microseconds = read_times(table, "latency_us" if "latency_us" in table else "latency_ms")
    for index in np.unique(device):
        rate = {name: f"{_TYPES[name][1].partition('_')[0]}_rate" for name in _TYPES}
        takes = {name: devices.figures[index][rate[name]] > 0 for name in _TYPES}
        is_taken = np.array([takes[name] for name in dtype]) | (device != index)
        what = f"a type whose peak the description of '{devices.names[index]}' states"
        table.expect("dtype", is_taken, what)
    parts = []
    for index in np.unique(device):
        for name in sorted(set(dtype[device == index])):
            rows = np.flatnonzero((device == index) & (dtype == name))
            parts.append(_choices_of(devices, int(index), name, (m, n, k), rows))
    row = np.concatenate([of for _, of in parts])
    order = np.argsort(row, kind="stable")
    launches = Launches(
        parts[0][0].devices,
        np.concatenate([some.device for some, _ in parts])[order],
        np.concatenate([some.parts for some, _ in parts])[order],
        np.concatenate([some.grids for some, _ in parts])[order],
    )
    check_prices(table, launches, row[order])
    size = len(table)
    return Rows(
        devices=devices,
        launches=launches,
        choices=np.bincount(row, minlength=size),
        microseconds=microseconds,
        group=np.array([f"vendor {name}" for name in dtype], dtype=object),
        floor=np.full(size, FLOOR),
        is_host=np.full(size, host is True),
        weight=np.ones(size),
        fold=read_folds(table, zip(n.astype(int), k.astype(int))),
        flop=2 * m * n * k,
        extra={"M": m, "N": n, "K": k},
    )
