"""Token rows: products of a vendor's library on the tensor cores, whose kernels are not known.

Columns: dtype (f16, bf16, tf32 or i8), layout (nt: C[M, N] = A[M, K] · W[N, K]ᵀ), M, N, K,
latency_ms or latency_us, and where they are known device, library (one of `LIBRARIES`) and fold
(without it that of "N,K", so that no neighbour in M of a row is on the other side of a split).
Files that have a column of `ORIGINS` leave out what that says.

The rows do not say which kernel ran: it is taken to be the fastest of a stated set, by the
constants at hand. The set is that of cuBLAS and CUTLASS, one reason for each choice:

* block tiles of 64 to 256 rows and columns, no larger than 256 × 128: smaller ones have too
  little work for what they load, larger ones no registers for the accumulators. Of tiles whose
  heights cut the rows of a product into as many blocks only the lowest is taken, as it does the
  same with less; and so along the columns.
* steps of 64 and 128 bytes along the reduce axis (32 and 64 elements of f16): one and two
  fragments of each instruction's depth in a swizzled row of shared memory.
* 2 to 6 stages: of those with as many resident blocks the most stages.
* 1 to 16 slices of the reduce axis, of four steps and more, while the blocks are at most two for
  each SM: slices are for products with too few blocks. A second kernel sums them in f32.
* instructions of one warp (mma.sync) everywhere; from compute capability 9.0 on also those of
  four (wgmma), with tiles of pairs of blocks that copy the same operand once (clusters of 2).

That is the library of 2023 (CUDA 12.1). On compute capability 9.0 that of 2026 (CUDA 12.8 and
later: cuBLAS's "nvjet") has `wgmma` alone, whose 64 rows lie along the columns of the output:
so tiles have any multiple of 8 rows, and fit few rows as well as many. Their names (64x8_64x16_4x1,
128x160_64x5_2x1, 192x192_64x3_2x1, 320x128_64x3_1x2, 384x24_64x4_4x1) say columns, rows, elements
of a step, stages and the blocks of a cluster along either axis. They are persistent, and slices
are still summed by a second kernel (splitKreduce_kernel). Elsewhere both libraries are the same.

A vendor's heuristic is not always right: where it takes a slower kernel, rows are slower than
this. Where all times of a file are multiples of half a microsecond, rows below 10 us are left out:
they say little more than that.

The library is never guessed: rows whose library neither a column nor the form of their file says
are left out, with a warning.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ...errors import Error
from ..model import Array, Launches, model
from .rows import MAX_EXTENT, Devices, MeasurementTable, check_prices, read_folds, read_times
from .table import Table

COLUMNS = (
    "dtype or framework",
    "layout or framework or layer or transpose",
    "M",
    "N",
    "K",
    "latency_ms or latency_us",
)
# Published files by a column that only they have, and the facts that their columns leave out.
ORIGINS: dict[str, dict[str, str]] = {
    # A table for each serving framework (aiconfigurator).
    "framework": {"dtype": "bf16", "layout": "nt", "library": "2026"},
    # A curve over M for each layer of a model (LLMServingSim).
    "layer": {"layout": "nt", "library": "2026"},
    # Projections of a model on so many devices (vidur, CUDA 12.1).
    "tensor_parallel": {"library": "2023"},
    # Products of any transposition, with others of f32 (DeepBench's train sheets: CUDA 8 and 10.1, whose
    # kernels are those of 2023 but for copies past the registers).
    "transpose": {"layout": "nt", "library": "2023"},
}
# Times that are all multiples of this were rounded: then rows below twice the floor (MeasurementTable.is_fit) say
# little more than that.
_ROUNDED_US, _ROUNDED_FLOOR = 0.5, 4.999
_SPLITS = (1, 2, 3, 4, 5, 6, 8, 10, 12, 16)
# Steps of a slice, and blocks for each SM with slices.
_MIN_STEPS = 4
_SPLIT_BLOCKS = 4
# The barrier of a step, as FTuner's kernels are priced (lib/Codegen/Mma/MmaWork.cpp): fragments
# are loaded a part of a step ahead, as in CUTLASS.
_BARRIER_CYCLES = 40
# Instructions of a warp after the main loop for each element of a lane: Triton 3.9 has 446 for the
# 128 of a tile of 128 × 128 and four warps, in 16 bits with a bias.
_EPILOGUE = 3.5
# A cluster's two waits, as FTuner's kernels are priced (lib/CostModel/Latency/Latency.cpp).
CLUSTER_CYCLES = 360
# Choices that are this much slower than the best by the first constants cannot become it.
_HOPELESS = 1.3
# Rows whose choices are made together: all of them, hopeless ones too, are in memory at once.
CHUNK = 500
# Bytes of an element as the kernel reads it, its field of operations, bytes of an output element.
TYPES = {
    "f16": (2, "f16_operations", 2),
    "bf16": (2, "f16_operations", 2),
    "tf32": (4, "tf32_operations", 4),
    "i8": (1, "i8_operations", 4),
}
# Types of the CUDA cores that files may have beside these.
_OTHER_TYPES = ("f32", "f16-store")
# Times of loops on a host have the gaps between launches, some microseconds: of such files rows below
# twice this are left out.
_HOST_FLOOR, _HOST_ORIGINS = 24.999, ("transpose",)
# m16n8: rows, columns and bytes of the reduce axis of an instruction; ldmatrix takes 16 × 16
# elements of 2 bytes.
_ROWS, _COLUMNS, _DEPTH_BYTES, _FRAGMENT = 16, 8, 32, 16


@dataclasses.dataclass(frozen=True)
class VendorTile:
    """A kernel that a vendor's library may have, as the tile of one block.

    rows, columns   size of the block's tile of the output
    step_bytes      bytes along the reduce axis that a step reads of each row of an operand
    stages          steps whose operands are in shared memory at once
    is_warpgroup    true for kernels of wgmma, false for kernels of mma.sync
    cluster         blocks along the rows and along the columns that share copies
    is_across       true if the 64 rows of wgmma lie along the columns of the tile
    """

    rows: int
    columns: int
    step_bytes: int
    stages: int
    is_warpgroup: bool
    cluster: tuple[int, int] = (1, 1)
    is_across: bool = False

    @property
    def shared_bytes(self) -> int:
        """Bytes of shared memory for the tiles of both operands in all stages, without barriers."""
        return self.stages * (self.rows + self.columns) * self.step_bytes

    @property
    def warps_along(self) -> tuple[int, int]:
        """Warps of mma.sync along rows and columns: four, or eight for the largest tiles."""
        if self.rows * self.columns > 128 * 128:
            return (4, 2) if self.rows > self.columns else (2, 4)
        if max(self.rows, self.columns) > 128:
            return (4, 1) if self.rows > self.columns else (1, 4)
        return 2, 2

    @property
    def groups_along(self) -> tuple[int, int]:
        """Groups of four warps of wgmma along rows and columns: one, or two for large tiles, along
        the axis of their 64 rows as far as there are so many."""
        groups = 2 if self.rows * self.columns >= 128 * 128 else 1
        groups_along = min(groups, max((self.columns if self.is_across else self.rows) // 64, 1))
        groups_beside = groups // groups_along
        return (groups_beside, groups_along) if self.is_across else (groups_along, groups_beside)

    def part(self, dtype: str) -> dict[str, Any]:
        """The fields of a block that its tile determines."""
        size, operations, _ = TYPES[dtype]
        depth = self.step_bytes // size
        fragments = self.step_bytes // _DEPTH_BYTES
        instructions = self.rows * self.columns * fragments / (_ROWS * _COLUMNS)
        copied = (self.rows + self.columns) * self.step_bytes
        if self.is_warpgroup:
            # Groups of four warps multiply, a warp of four more copies by TMA: nothing is loaded
            # into registers. Instructions are m64n(others).
            warps = 4 * math.prod(self.groups_along)
            long, others = (self.rows, self.columns)[:: -1 if self.is_across else 1]
            # Each group reads all others for its 64 rows.
            read = self.step_bytes * (long + others * long / 64)
            work = dict(
                warps=warps + 4,
                registers_per_thread=168,
                tensor_instructions=instructions * _COLUMNS * _ROWS / (64 * others) * 4,
                other_instructions=20 * warps,
                shared_cycles=read / 128,
                global_lines=0,
                # Products run on during a wait for the next ones.
                head_cycles=0,
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
                head_cycles=_BARRIER_CYCLES,
            )
        kinds = {name: 0.0 for _, name, _ in TYPES.values()}
        kinds[operations] = 2.0 * self.rows * self.columns * depth
        return dict(
            **work,
            **kinds,
            shared_memory_bytes=self.shared_bytes + 1024,
            k_tile=depth,
            fma=0,
            has_peak_rate=self.is_warpgroup,
            # Kernels of wgmma have a warp for copies, which goes on with the next tile.
            is_persistent=self.is_warpgroup,
            hides_stores=self.is_warpgroup,
            cluster_cycles=CLUSTER_CYCLES * (self.cluster != (1, 1)),
            loaded_registers=0,
            is_pipelined=1,
            epilogue_instructions=_EPILOGUE * self.rows * self.columns / 32,
            exposed_loads=1 / (self.stages - 1),
            direct_registers=0,
            spilled_registers=0,
        )


@dataclasses.dataclass(frozen=True)
class Kernels:
    """Kernels of one instruction that a library has: each tile with each step and cluster."""

    tiles: tuple[tuple[int, int], ...]
    step_bytes: tuple[int, ...]
    stages: range
    is_warpgroup: bool = False
    clusters: tuple[tuple[int, int], ...] = ((1, 1),)
    is_across: bool = False

    def __iter__(self) -> Iterator[VendorTile]:
        for (rows, columns), step_bytes, stages, cluster in itertools.product(
            self.tiles, self.step_bytes, self.stages, self.clusters
        ):
            yield VendorTile(
                rows, columns, step_bytes, stages, self.is_warpgroup, cluster, self.is_across
            )


_TILES = ((64, 64), (64, 128), (128, 64), (128, 128), (64, 256), (256, 64), (128, 256), (256, 128))
_WARP_KERNELS = Kernels(_TILES, (64, 128), range(2, 7))
_PAIRS = ((1, 1), (2, 1))
# The largest tile is 128 × 320, with 160 accumulators in each thread of two groups.
_ACROSS_TILES = tuple(
    (rows, columns)
    for rows in (*range(8, 64, 8), *range(64, 257, 16))
    for columns in range(64, 385, 64)
    if rows * columns <= 128 * 320
)
# Kernels by library: for devices that have only instructions of one warp, and from 9.0 on.
LIBRARIES = {
    "2023": (
        (_WARP_KERNELS,),
        (_WARP_KERNELS, Kernels(_TILES, (64, 128), range(2, 7), True, _PAIRS)),
    ),
    "2026": (
        (_WARP_KERNELS,),
        (Kernels(_ACROSS_TILES, (128,), range(2, 17), True, (*_PAIRS, (1, 2)), is_across=True),),
    ),
}


def tiles(shared_bytes: float, has_warpgroups: bool, library: str = "2023") -> list[VendorTile]:
    """A library's set for devices with so much shared memory in an SM."""
    by_residence: dict[tuple[Any, ...], VendorTile] = {}
    for tile in itertools.chain(*LIBRARIES[library][has_warpgroups]):
        resident = shared_bytes // (tile.shared_bytes + 1024)
        if tile.is_warpgroup:
            # Registers hold one block.
            resident = min(resident, 1)
        if resident:
            by_residence[dataclasses.replace(tile, stages=0), resident] = tile
    return list(by_residence.values())


def launches_of(
    kernels: Sequence[VendorTile],
    kernel: npt.NDArray[np.int64],
    split: npt.NDArray[np.int64],
    dtype: str,
    sizes: tuple[Array, Array, Array],
    figures: list[dict[str, float]],
    device: npt.NDArray[np.int64],
    batch: Array | float = 1.0,
) -> Launches:
    """Launches of kernels (`kernel` says the one of each) for products of M × N × K.

    `batch`: how many such products a launch computes.
    """
    m, n, k = sizes
    size, _, output = TYPES[dtype]

    def each(values: Iterable[Any]) -> Array:
        return np.array([float(value) for value in values])[kernel]

    rows, columns = each(one.rows for one in kernels), each(one.columns for one in kernels)
    step_bytes = each(one.step_bytes for one in kernels)
    along_y, along_x = (each(one.cluster[axis] for one in kernels) for axis in (0, 1))
    blocks_y, blocks_x = np.ceil(m / rows), np.ceil(n / columns)
    # Blocks of a cluster that lie along the rows read the same columns. Whole clusters start.
    clusters = np.ceil(blocks_y / along_y) * np.ceil(blocks_x / along_x)
    # Rows beyond the product are not read.
    read = np.minimum(rows, m) / along_x + np.minimum(columns, n) / along_y
    parts = [one.part(dtype) for one in kernels]
    part = {name: each(one[name] for one in parts) for name in parts[0]}
    part.update(
        l2_bytes=read * step_bytes,
        count=clusters * along_y * along_x * split * batch,
        steps=np.ceil(k / split * size / step_bytes),
    )
    part["global_lines"] = np.where(part["has_peak_rate"], 0, part["l2_bytes"] / step_bytes)
    grid = dict(
        blocks_x=blocks_x,
        blocks_y=blocks_y,
        tile_x=columns,
        tile_y=rows,
        is_swizzled=1,
        problems=split * batch,
        lhs_bytes=size * m * k / split,
        rhs_bytes=size * n * k / split,
        output_bytes=batch * m * n * output,
        is_output_aligned=n * output % 32 == 0,
        lhs_run_bytes=step_bytes,
        rhs_run_bytes=step_bytes,
        reduce_length=k / split,
        element_bytes=size,
        second_kernels=split > 1,
        # In f32 or i32.
        sum_bytes=batch * m * n * 4 * np.where(split > 1, split, 0),
    )
    return model().launches(figures, device, [part], grid)


def tiles_of(
    launches: Launches, dtype: str, is_across: npt.NDArray[np.bool_] | bool
) -> tuple[list[VendorTile], npt.NDArray[np.int64]]:
    """The tiles of launches that `launches_of` describes, whatever their clusters, and the one of each.

    `is_across`: whether wgmma's 64 rows lie along the columns.
    """
    part = dict(zip(model().part_fields, launches.parts[:, -1].T))
    grid = dict(zip(model().grid_fields, launches.grids.T))
    rows, columns, step_bytes = grid["tile_y"], grid["tile_x"], part["k_tile"] * TYPES[dtype][0]
    stages = (part["shared_memory_bytes"] - 1024) // ((rows + columns) * step_bytes)
    is_warpgroup = part["has_peak_rate"] > 0
    fields = [rows, columns, step_bytes, stages, is_warpgroup, is_warpgroup & is_across]
    every, kernel = np.unique(
        np.stack(fields, axis=1).astype(np.int64), axis=0, return_inverse=True
    )
    return [
        VendorTile(y, x, step, stages, bool(group), is_across=bool(is_across))
        for y, x, step, stages, group, is_across in every.tolist()
    ], kernel.reshape(-1)


def _next_smaller(tile: int, others: Iterable[int]) -> float:
    """The largest of the others that is smaller, or 0."""
    return float(max((other for other in others if other < tile), default=0))


def choices_of(
    devices: list[dict[str, float]],
    index: int,
    dtype: str,
    library: str,
    sizes: tuple[Array, Array, Array],
    batch: Array | None = None,
    takes_warpgroups: bool = True,
) -> tuple[Launches, npt.NDArray[np.int64]]:
    """All launches that products on one of the devices may be, and the product of each.

    Those that cannot be the fastest by the constants that fits start with are left out.
    `takes_warpgroups`: whether the instructions of four warps can read the factors.
    """
    figures = devices[index]
    # Compute capability 9.0 has instructions of four warps: instructions of one warp reach less.
    has_warpgroups = takes_warpgroups and figures["warp_tensor_share"] < 1
    kernels = tiles(figures["shared_memory_per_sm_bytes"], has_warpgroups, library)
    extents = {(one.rows, one.columns) for one in kernels}
    # Kernels × slices × rows.
    m, n, k = sizes
    batch = np.ones(len(m)) if batch is None else batch
    split = np.array(_SPLITS)[:, None]

    def each(values: Iterable[float]) -> Array:
        return np.array(list(values), float)[:, None, None]

    y, x = each(one.rows for one in kernels), each(one.columns for one in kernels)
    less_y = each(
        _next_smaller(one.rows, (y for y, x in extents if x == one.columns)) for one in kernels
    )
    less_x = each(
        _next_smaller(one.columns, (x for y, x in extents if y == one.rows)) for one in kernels
    )
    blocks_y, blocks_x = np.ceil(m / y), np.ceil(n / x)
    # No smaller tile cuts the product into as many blocks.
    with np.errstate(divide="ignore"):
        is_choice = (blocks_y < np.ceil(m / less_y)) & (blocks_x < np.ceil(n / less_x))
    is_choice = is_choice & (blocks_y >= each(one.cluster[0] for one in kernels))
    is_choice &= blocks_x >= each(one.cluster[1] for one in kernels)
    min_bytes = _MIN_STEPS * split * each(one.step_bytes for one in kernels)
    is_slice = batch * blocks_y * blocks_x * split <= _SPLIT_BLOCKS * figures["sm_count"]
    is_slice &= k * TYPES[dtype][0] >= min_bytes
    kernel, slices, row = np.nonzero(is_choice & (is_slice | (split == 1)))
    every = launches_of(
        kernels,
        kernel,
        np.array(_SPLITS)[slices],
        dtype,
        (m[row], n[row], k[row]),
        devices,
        np.full(len(row), index),
        batch[row],
    )
    time = model().predict(every, model().start())
    best = np.full(len(m), np.inf)
    np.minimum.at(best, row, time)
    is_near = time <= _HOPELESS * best[row]
    return every[is_near], row[is_near]


def _joined(
    parts: Sequence[tuple[Launches, npt.NDArray[np.int64]]],
) -> tuple[Launches, npt.NDArray[np.int64]]:
    launches = Launches(
        parts[0][0].devices,
        np.concatenate([some.device for some, _ in parts]),
        np.concatenate([some.parts for some, _ in parts]),
        np.concatenate([some.grids for some, _ in parts]),
    )
    return launches, np.concatenate([row for _, row in parts])


def _of_tensor_cores(table: Table) -> tuple[str, npt.NDArray[Any], npt.NDArray[Any], list[str]]:
    """Keeps the rows of the tensor cores whose library is known. Returns the column that tells the file's origin,
    types and libraries of the rows, and what to say of the others."""
    origin = next((column for column in ORIGINS if column in table), "")
    said = ORIGINS.get(origin, {})
    types = {name: name for name in (*TYPES, *_OTHER_TYPES)}
    dtype = table.choose("dtype", said.get("dtype", ""), types.get, f"one of {', '.join(TYPES)}")
    table.choose("layout", said.get("layout", ""), {"nt": "nt"}.get, "nt")
    libraries = {name: name for name in ("", *LIBRARIES)}
    expected = f"one of {', '.join(LIBRARIES)}"
    library = table.choose("library", said.get("library", ""), libraries.get, expected)
    is_kept = np.isin(dtype, list(TYPES)) & (library != "")
    if is_kept.all():
        return origin, dtype, library, []
    if not is_kept.any():
        raise Error(
            f"{table.path}:1: expected rows of {', '.join(TYPES)} with a column 'library' that says "
            f"whose kernels ran, {expected}"
        )
    table.keep(is_kept)
    warning = (
        f"{table.path}: {(~is_kept).sum()} rows left out: their library is not known, or they are not "
        "of the tensor cores"
    )
    return origin, dtype[is_kept], library[is_kept], [warning]


def read(table: Table, devices: Devices, host: bool | None) -> MeasurementTable:
    """The rows of a table, each with the launches that it may be."""
    origin, dtype, library, warnings = _of_tensor_cores(table)
    device = devices.index_rows(table)
    m, n, k = (table.numbers(name, whole=True, low=1, high=MAX_EXTENT) for name in "MNK")
    # Tables of one framework, or one model's layers, were measured the same way.
    kind = table.text(origin) if origin == "framework" else np.full(len(table), origin)
    microseconds = read_times(table, "latency_us" if "latency_us" in table else "latency_ms")
    for index in np.unique(device):
        rate = {name: f"{TYPES[name][1].partition('_')[0]}_rate" for name in TYPES}
        takes = {name: devices.figures[index][rate[name]] > 0 for name in TYPES}
        is_taken = np.array([takes[name] for name in dtype]) | (device != index)
        expected = f"a type whose peak the description of '{devices.names[index]}' states"
        table.expect("dtype", is_taken, expected)
    parts = []
    for index, name, set_name in sorted(set(zip(device.tolist(), dtype, library))):
        rows = np.flatnonzero((device == index) & (dtype == name) & (library == set_name))
        for some in np.array_split(rows, range(CHUNK, len(rows), CHUNK)):
            sizes = (m[some], n[some], k[some])
            launches, row = choices_of(devices.figures, index, name, set_name, sizes)
            parts.append((launches, some[row]))
    launches, row = _joined(parts)
    order = np.argsort(row, kind="stable")
    launches, row = launches[order], row[order]
    check_prices(table, launches, row)
    size = len(table)
    return MeasurementTable(
        devices=devices,
        launches=launches,
        choices=np.bincount(row, minlength=size),
        microseconds=microseconds,
        group=np.array(
            [f"vendor {name} {kind_name}".strip() for name, kind_name in zip(dtype, kind)], object
        ),
        floor=np.full(size, _HOST_FLOOR if origin in _HOST_ORIGINS else _floor(microseconds)),
        is_host=np.full(size, host is True),
        weight=np.ones(size),
        fold=read_folds(table, zip(n.astype(int), k.astype(int))),
        flop=2 * m * n * k,
        extra={"M": m, "N": n, "K": k, "library": library},
        warnings=warnings,
    )


def _floor(microseconds: Array) -> float:
    """Half of the time from which on rows tell of their kernels."""
    units = microseconds / _ROUNDED_US
    is_rounded = np.allclose(units, np.round(units), rtol=0, atol=1e-6)
    return _ROUNDED_FLOOR if is_rounded else 0.0
