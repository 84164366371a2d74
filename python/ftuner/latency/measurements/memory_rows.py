"""Memory rows: elementwise kernels and reductions of rows by other libraries.

Columns: op (one of `OPERATORS`), rows, cols, latency_us or latency_ms, and where they are known
device, dtype (f32, f16 or bf16), bytes (what the operator must move: it tells the size of an
element where there is no dtype; without both elements are f32) and fold (without it that of "rows,cols").

Each operator is the kernel that the usual library has for it, as a launch of the formulas for
memory-bound kernels (docs/latency-memory.md), so that rows of other libraries determine what
FTuner's own kernels are priced with. From their source:

* PyTorch's elementwise kernels: blocks of 128 threads, each with one vector of four elements of
  every operand (CUDALoops.cuh);
* its softmax of up to 1024 columns: a warp has a row in registers, of up to 128 columns two
  (PersistentSoftmax.cuh); of more: a block has a row, reads it three times and has so many threads
  as vectors of a half of the row, rounded up to a power of two (SoftMax.cu);
* its layer norm: blocks of 128 threads, vectors of four, a pass by Welford's method and one that
  reads the row again (layer_norm_kernel.cu);
* vLLM's kernels of 2023: a block of up to 1024 threads (rotary embeddings: 512) has a row, each
  thread single elements; the RMS norm reads the row twice;
* those of 2026: vectors of 16 bytes; the RMS norm adds the residual in place, in 256 threads from 256 rows on.

How many instructions an element takes is not in the source: `_PER_ELEMENT` and the like are rounded
from a fit to all rows of nine devices.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from ..model import Array, Launches, model
from .rows import (
    FLOOR_ROWS,
    MAX_EXTENT,
    Devices,
    MeasurementTable,
    check_prices,
    read_folds,
    read_times,
)
from .table import Table

COLUMNS = ("op", "rows", "cols", "latency_ms or latency_us")
# Bytes of an element.
SIZES = {"f32": 4, "f16": 2, "bf16": 2}
# Tensors that an operator reads and writes, each once.
OPERATORS = {
    "add": 3,
    "pow": 3,
    "relu": 2,
    "gelu": 2,
    "softmax": 2,
    "layernorm": 2,
    "rmsnorm": 2,
    "add_rmsnorm": 4,
    "silu_mul": 3,
    "rope": 2,
}
# Launches of fewer bytes measure nothing but the launch.
FLOOR_BYTES = 1e6
# 16-bit rows were timed on the device in steps of 1 us: below 20 us these say too much
# (MeasurementTable.is_fit).
DEVICE_FLOOR = 9.999
# Phi-2's attention and feed-forward network run side by side: its "add" sums three tensors, by two
# launches.
TWO_SUMS = 2560

# Warp instructions for an element of each lane, by what is computed.
_PER_ELEMENT = {"add": 6.0, "pow": 26.0, "relu": 6.0, "gelu": 39.0, "silu_mul": 70.0}
# Instructions for an element in PyTorch's kernels for operands of different layouts: each element is loaded by itself,
# from an address that takes a division for each dimension. Fitted to rows of model_ops_f32, copies of permuted tensors
# and adds of masks on V100, P100 and A100, and rounded (docs/latency-memory.md has the errors).
_STRIDED = 70.0
# Share of these instructions that the f32 lanes execute.
_ARITHMETIC = 0.6
# Instructions for an element in softmax by warps; warp instructions of its other kernel for 128 elements in
# each of three passes, and of a warp for both merges.
_SOFTMAX, _SOFTMAX_VECTOR, _SOFTMAX_MERGE = 60.0, 112.0, 150.0
# Warp instructions of layer norm for 128 elements in both passes, and for the merge of means and variances.
_NORM_VECTOR, _NORM_MERGE = 70.0, 525.0
# Instructions of the RMS norm for an element of each lane in both passes, and of rotary embeddings for a pair.
_RMS, _PAIR = 20.0, 140.0
# Cycles of a shuffle and of a barrier (lib/CostModel/Latency/Latency.cpp has the same).
_SHUFFLE, _BARRIER = 25.0, 40.0

# Elements next to each other that a warp accesses at once: a vector of four in each lane.
_VECTORS = 128.0

Part = dict[str, Any]


def block_of(
    warps: Any,
    instructions: Any,
    loaded: Any,
    stored: Any,
    *,
    registers: Any = 32,
    special: Any = 0,
    rounds: Any = 1,
    later_passes: Any = 0,
    sync: Any = 0,
    common: Any = 0,
    run: Any = 0,
) -> Part:
    """A block as one step: its warp instructions, bytes, and loads that wait for one another.

    `rounds` are those of one pass; `later_passes` read the row again; `common` are bytes of operands
    that all blocks share, beside those loaded;
    `run` are those next to each other that a warp accesses at once.
    """
    return dict(
        warps=warps,
        registers_per_thread=registers,
        fma=_ARITHMETIC * instructions,
        other_instructions=(1 - _ARITHMETIC) * instructions,
        special_operations=special,
        global_lines=(loaded + common + stored) / 128,
        l2_bytes=loaded + common,
        common_bytes=common,
        distinct_common_bytes=common,
        run_bytes=run,
        stored_bytes=stored,
        exposed_loads=rounds,
        later_passes=later_passes,
        sync_cycles=sync,
    )


def _elementwise(op: str, rows: Array, cols: Array, size: Array) -> tuple[Array, Part]:
    """Blocks, and what each does."""
    inputs = OPERATORS[op] - 1
    instructions = 4 * (4 * _PER_ELEMENT[op] + 20 + 4 * inputs)
    # Elements of a block: 4 for each of 128 threads.
    blocks = np.ceil(rows * cols / 512)
    return blocks, block_of(4, instructions, 512 * size * inputs, 512 * size)


def _row_bytes(op: str, cols: Array, size: Array) -> Array:
    """Bytes of a row, at whose begin accesses begin (LatencyGrid::rowBytes); 0 in elementwise kernels."""
    if op not in ("softmax", "layernorm"):
        return np.zeros(len(cols))
    # Vectors begin at multiples of their 16 bytes, wherever the row does.
    vectors = np.full(len(cols), op == "layernorm") | (cols > 1024)
    return np.where(vectors, 16 * np.ceil(cols * size / 16), cols * size)


def _power_of_two(x: Array) -> Array:
    """The least power of two that is at least x."""
    return np.asarray(2.0 ** np.ceil(np.log2(np.maximum(x, 1))))


def _softmax(rows: Array, cols: Array, size: Array) -> tuple[Array, Part]:
    padded = _power_of_two(cols)
    lanes = np.minimum(padded, 32)
    elements = padded / lanes
    at_once = np.where(padded <= 128, 2, 1)
    rows_of_block = 128 / lanes * at_once
    used = np.ceil(cols / lanes)
    of_warp = at_once * (_SOFTMAX * used + 5 * (elements - used) + 60)
    held = elements * at_once
    # A block for each row.
    threads = np.clip(_power_of_two(np.maximum(cols // 4 // 2, 32)), 32, 1024)
    of_block = 3 * np.ceil(cols / 128) * _SOFTMAX_VECTOR + threads / 32 * _SOFTMAX_MERGE
    is_warp = cols <= 1024

    def either(warp: Any, block: Any) -> Array:
        chosen: Array = np.where(is_warp, warp, block)
        return chosen

    of_rows = either(rows_of_block, 1) * cols
    part = block_of(
        either(4, threads / 32),
        either(4 * of_warp, of_block),
        of_rows * size,
        of_rows * size,
        registers=either(np.where(held >= 32, 56, np.where(held >= 16, 40, 32)), 40),
        special=of_rows * either(1, 2),
        rounds=either(1, np.ceil(cols / 4 / threads)),
        later_passes=either(0, 2),
        sync=either(4 * _SHUFFLE, 2 * (2 * _SHUFFLE + _BARRIER)),
        run=size * either(lanes, _VECTORS),
    )
    return either(np.ceil(rows / rows_of_block), rows), part


def _layer_norm(rows: Array, cols: Array, size: Array) -> tuple[Array, Part]:
    vectors = np.ceil(cols / 128)
    part = block_of(
        4,
        vectors * _NORM_VECTOR + 4 * _NORM_MERGE,
        cols * size,
        cols * size,
        registers=40,
        special=cols,
        rounds=np.ceil(cols / 512),
        later_passes=1,
        sync=4 * _SHUFFLE + 2 * _BARRIER,
        # The scale and the shift.
        common=2 * cols * size,
        run=_VECTORS * size,
    )
    return rows, part


def _scalar(op: str, rows: Array, cols: Array, size: Array) -> tuple[Array, Part]:
    """vLLM's kernels of 2023."""
    if op == "rope":
        # Pairs of elements: two are loaded with their cosine and sine, and stored in place.
        threads = np.minimum(cols / 2, 512)
        warps = np.ceil(threads / 32)
        instructions = np.ceil(cols / 64) * _PAIR + 40 * warps
        rounds = np.ceil(cols / 2 / threads)
        return rows, block_of(warps, instructions, 1.3 * cols * size, cols * size, rounds=rounds)
    warps = np.ceil(np.minimum(cols, 1024) / 32)
    rounds = np.ceil(cols / (32 * warps))
    if op == "silu_mul":
        instructions = warps * (rounds * _PER_ELEMENT[op] + 40)
        part = block_of(
            warps, instructions, 2 * cols * size, cols * size, special=cols, rounds=rounds
        )
        return rows, part
    part = block_of(
        warps,
        warps * (_RMS * rounds + 150),
        cols * size,
        2 * cols * size,
        rounds=rounds,
        later_passes=1,
        sync=6 * _SHUFFLE + 2 * _BARRIER,
    )
    return rows, part


def _vectorised(op: str, rows: Array, cols: Array, size: Array) -> tuple[Array, Part]:
    """vLLM's kernels of 2026."""
    vector = 16 / size
    max_threads = np.where(rows < 256, 1024, 256) if op == "add_rmsnorm" else 1024
    warps = np.ceil(np.minimum(cols / vector, max_threads) / 32)
    rounds = np.ceil(cols / vector / (32 * warps))
    if op == "silu_mul":
        instructions = warps * (rounds * vector * _PER_ELEMENT[op] + 60)
        part = block_of(
            warps, instructions, 2 * cols * size, cols * size,
            registers=40, special=cols, rounds=rounds,
        )  # fmt: skip
        return rows, part
    # The sum is stored, and read again.
    part = block_of(
        warps,
        warps * (rounds * vector * 12 + 60),
        2 * cols * size,
        2 * cols * size,
        registers=40,
        rounds=rounds,
        later_passes=0.5,
        sync=6 * _SHUFFLE + 2 * _BARRIER,
    )
    return rows, part


def launches_of(
    op: str,
    library: str,
    sizes: tuple[Array, Array],
    element_bytes: Array,
    figures: list[dict[str, float]],
    device: npt.NDArray[np.int64],
) -> Launches:
    """Launches of a library's kernel for an operator on rows × columns.

    `library`: 2023 or 2026, which matters for vLLM's kernels; `device`: the index of each launch's in `figures`.
    """
    rows, cols = sizes
    vllm: Callable[..., tuple[Array, Part]] = _vectorised if library == "2026" else _scalar
    if op == "softmax":
        blocks, part = _softmax(rows, cols, element_bytes)
    elif op == "layernorm":
        blocks, part = _layer_norm(rows, cols, element_bytes)
    elif op == "rope" or (op == "rmsnorm" and library == "2023"):
        blocks, part = _scalar(op, rows, cols, element_bytes)
    elif op in ("silu_mul", "rmsnorm", "add_rmsnorm"):
        blocks, part = (_vectorised if op == "add_rmsnorm" else vllm)(op, rows, cols, element_bytes)
    else:
        blocks, part = _elementwise(op, rows, cols, element_bytes)
    launches = np.ones(len(rows))
    if op == "add":
        launches += (cols == TWO_SUMS) & (element_bytes == 2)
    moved = OPERATORS[op] * rows * cols * element_bytes * launches
    is_in_place = op in ("rope", "add_rmsnorm")
    return launches_of_blocks(
        blocks * launches, part, moved, moved / 2 if is_in_place else moved, figures, device,
        _row_bytes(op, cols, element_bytes),
    )  # fmt: skip


def strided_launches_of(
    rows: Array,
    cols: Array,
    element_bytes: Array,
    figures: list[dict[str, float]],
    device: npt.NDArray[np.int64],
) -> Launches:
    """Launches of PyTorch's elementwise kernel for operands that do not lie alike, on rows × columns: a copy of a permuted
    tensor, or one that reads another, small operand again and again, such as a bias or a mask.
    """
    blocks = np.ceil(rows * cols / 512)
    instructions = np.full(len(rows), 4 * (4 * _STRIDED + 20 + 4))
    part = block_of(4, instructions, 512 * element_bytes, 512 * element_bytes)
    moved = 2 * rows * cols * element_bytes
    return launches_of_blocks(blocks, part, moved, moved, figures, device)


def launches_of_blocks(
    blocks: Array,
    part: Part,
    moved: Array,
    touched: Array,
    figures: list[dict[str, float]],
    device: npt.NDArray[np.int64],
    row_bytes: Any = 0.0,
) -> Launches:
    """Launches of memory-bound kernels: how many blocks, and what each does (`block_of`).

    `moved` and `touched`: bytes that each launch reads and writes, and those of different addresses;
    `row_bytes`: those of a row, at whose begin accesses begin, or 0.
    """
    fields: dict[str, Any] = dict(shared_memory_bytes=0, shared_cycles=0, direct_registers=0)
    fields.update(part, is_streaming=1, k_tile=1, count=blocks, steps=1)
    grid: dict[str, Any] = {name: 1.0 for name in model().grid_fields}
    grid.update(
        lhs_bytes=0.0,
        rhs_bytes=0.0,
        second_kernels=0.0,
        sum_bytes=0.0,
        output_bytes=moved,
        touched_bytes=touched,
        row_bytes=row_bytes,
    )
    return model().launches(figures, device, [fields], grid)


def _element_bytes(table: Table, op: npt.NDArray[Any], elements: Array) -> Array:
    if "dtype" in table or "bytes" not in table:
        known: Mapping[str, int] = SIZES
        expected = f"one of {', '.join(SIZES)}"
        return table.choose("dtype", "f32", known.get, expected).astype(float)
    tensors = np.array([OPERATORS[name] for name in op], float)
    moved = table.numbers("bytes", whole=True, low=1, high=float(MAX_EXTENT) ** 2)
    size = np.round(moved / (tensors * elements))
    table.expect("bytes", np.isin(size, (2, 4)), "bytes of elements of 2 or 4 bytes")
    return size


def _floor(
    microseconds: Array, moved: Array, device: npt.NDArray[np.int64], op: npt.NDArray[Any]
) -> Array:
    """The launch floor of rows that a host timed: the median of the tiny ones; 0 without them."""
    floor = np.zeros(len(microseconds))
    for one, name in sorted(set(zip(device.tolist(), op))):
        rows = (device == one) & (op == name)
        tiny = rows & (moved < FLOOR_BYTES)
        if tiny.sum() >= FLOOR_ROWS:
            floor[rows] = np.median(microseconds[tiny])
    return floor


def host_shares(floor: Array, device: npt.NDArray[np.int64], op: npt.NDArray[Any]) -> Array:
    """Returns the host's share of each launch over the mean of its device's operators, by launch floors.

    An operator that allocates more results takes the host longer before its kernel starts, and as much longer
    if the kernel is tiny. Rows without a floor take that of other rows of their device and operator, if any.
    """
    share = np.ones(len(floor))
    for one in sorted(set(device[floor > 0].tolist())):
        own = device == one
        floors = {
            name: np.median(floor[own & (op == name) & (floor > 0)])
            for name in sorted(set(op[own & (floor > 0)]))
        }
        mean = float(np.mean(list(floors.values())))
        for name, value in floors.items():
            share[own & (op == name)] = value / mean
    return share


def read(table: Table, devices: Devices, host: bool | None) -> MeasurementTable:
    """The rows of a table. By default the f32 ones were timed on a host, others on the device."""
    device = devices.index_rows(table)
    rows, cols = (
        table.numbers(name, whole=True, low=1, high=MAX_EXTENT) for name in ("rows", "cols")
    )
    known = {name: name for name in OPERATORS}
    op = table.choose("op", "", known.get, f"one of {', '.join(OPERATORS)}")
    size = _element_bytes(table, op, rows * cols)
    microseconds = read_times(table, "latency_us" if "latency_us" in table else "latency_ms")
    moved = np.array([OPERATORS[name] for name in op], float) * rows * cols * size
    is_host = np.full(len(table), host) if host is not None else size == 4
    # The library of 2026 is told by the residual that its norm adds.
    new = {int(one) for one in set(device[op == "add_rmsnorm"])}
    library = np.array(["2026" if one in new else "2023" for one in device.tolist()], object)
    of_rows = np.empty(len(table), np.int64)
    parts: list[Launches] = []
    begin = 0
    for name, library_name in sorted(set(zip(op, library))):
        some = np.flatnonzero((op == name) & (library == library_name))
        parts.append(
            launches_of(
                name,
                library_name,
                (rows[some], cols[some]),
                size[some],
                devices.figures,
                device[some],
            )
        )
        of_rows[some] = np.arange(begin, begin + len(some))
        begin += len(some)
    every = Launches(
        parts[0].devices,
        np.concatenate([one.device for one in parts]),
        np.concatenate([one.parts for one in parts]),
        np.concatenate([one.grids for one in parts]),
    )[of_rows]
    check_prices(table, every)
    floor = np.where(is_host, _floor(microseconds, moved, device, op), DEVICE_FLOOR)
    return MeasurementTable(
        devices=devices,
        launches=every,
        microseconds=microseconds,
        group=np.array([f"vendor {name}" for name in op], object),
        floor=floor,
        host_share=host_shares(np.where(is_host, floor, 0.0), device, op),
        is_host=is_host,
        weight=np.ones(len(table)),
        fold=read_folds(table, zip(rows.astype(int), cols.astype(int))),
        flop=rows * cols,
        extra={"op": op, "rows": rows, "cols": cols, "bytes": moved, "size": size},
    )
