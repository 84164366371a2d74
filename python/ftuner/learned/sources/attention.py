"""Fused attention: one tree of FlashAttention's form in the place of every kernel, whose tiles nobody names."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import numpy.typing as npt

from ...latency.measurements.rows import MAX_EXTENT, read_folds, read_times
from ...latency.measurements.table import Table
from ...latency.model import ProgramTree
from ..dataset import PROXY, Dataset
from ..kernels import Numbers, ceil_div, copy_loops, trees_of
from ..trees import Tree, loop
from .formats import Cards, Found, Source, stem
from .products import shape_keys

# Axes: rows of queries, elements of a head, keys, sequences, heads of keys, heads of queries for each.
_Q, _D, _KV, _BATCH, _HEAD, _GROUP = range(6)
# Queries and keys of a block (FlashAttention 2, head_dim 128), and warps.
_TILE_Q, _TILE_KV, _WARPS = 128, 64, 4
# Rows of a block that decodes: a warp has 16.
_TILE_DECODE = 16 * _WARPS
# Keys that a slice of a decode kernel has at least.
_SLICE = 256
# Attention in fewer microseconds is little more than its launches (docs/learned-data.md).
_FLOOR = 2 * 10.0
_BYTES = 2


@dataclasses.dataclass
class Attention:
    """Fused kernels, a value for each. `is_decode`: one query for each sequence, so that a block has those of
    all heads that share keys; `is_causal`: query i sees the keys up to its own; `split`: slices of the keys."""

    batch: Numbers
    heads: Numbers
    kv_heads: Numbers
    head_dim: Numbers
    q_len: Numbers
    kv_len: Numbers
    is_decode: npt.NDArray[np.bool_]
    is_causal: npt.NDArray[np.bool_]
    split: Numbers

    def __getitem__(self, rows: Any) -> Attention:
        return Attention(*(getattr(self, field.name)[rows] for field in dataclasses.fields(self)))

    @property
    def tiles(self) -> Numbers:
        """Blocks along the queries."""
        tiles: Numbers = np.where(self.is_decode, 1, ceil_div(self.q_len, _TILE_Q))
        return tiles

    @property
    def steps(self) -> Numbers:
        """Tiles of keys that a block visits, on the average; of causal ones those beyond its queries are not."""
        seen = self.kv_len - np.where(self.is_causal, np.maximum(self.q_len - _TILE_Q, 0) / 2, 0)
        steps: Numbers = np.maximum(np.ceil(seen / self.split / _TILE_KV), 1).astype(np.int64)
        return steps

    @property
    def blocks(self) -> Numbers:
        parallel: Numbers = np.where(
            self.is_decode, self.kv_heads * self.split, self.heads * self.tiles
        )
        return parallel * self.batch

    def trees(self) -> list[list[ProgramTree]]:
        structure = (self.is_decode, self.split > 1)
        return trees_of(
            structure, self.blocks, lambda tree, rows, key: _describe(tree, self[rows], *key)
        )


def _describe(tree: Tree, a: Attention, decode: int, split: int) -> None:
    d, group = a.head_dim, a.heads // a.kv_heads
    axis = _GROUP if decode else _Q
    rows = np.where(a.is_decode, _TILE_DECODE * ceil_div(group, _TILE_DECODE), _TILE_Q)
    # [tokens, heads, elements].
    of_q = [a.heads * d, 1, 0, a.q_len * a.heads * d, group * d, d]
    of_kv = [0, 1, a.kv_heads * d, a.kv_len * a.kv_heads * d, d, 0]
    count_q, count_kv = a.batch * a.q_len * a.heads * d, a.batch * a.kv_len * a.kv_heads * d
    queries = tree.buffer("queries", bytes=_BYTES, strides=of_q, elements=count_q)
    keys = tree.buffer("keys", bytes=_BYTES, strides=of_kv, elements=count_kv)
    values = tree.buffer("values", bytes=_BYTES, strides=of_kv, elements=count_kv)
    output = tree.buffer("output", bytes=_BYTES, strides=of_q, elements=count_q)

    def tiled(name: str, memory: str, of_rows: bool, elements: Any, bytes: int = 4) -> int:
        strides: list[Any] = [0, 1, 0, 0, 0, 0]
        strides[axis if of_rows else _KV] = d
        tile: list[Any] = [1, d, _TILE_KV, 1, 1, 1]
        tile[axis] = rows
        return tree.buffer(name, memory, bytes, strides=strides, tile=tile, elements=elements)

    query_tile = tiled("query tile", "shared", True, rows * d, _BYTES)
    key_tile = tiled("key tile", "shared", False, 2 * _TILE_KV * d, _BYTES)
    value_tile = tiled("value tile", "shared", False, 2 * _TILE_KV * d, _BYTES)
    threads = 32 * _WARPS
    scores_strides: list[Any] = [0, 0, 1, 0, 0, 0]
    scores_strides[axis] = _TILE_KV
    scores = tree.buffer(
        "scores", "registers", strides=scores_strides, elements=rows * _TILE_KV // threads
    )
    sums = tiled("sums", "registers", True, rows * d // threads)
    one = [0, 0, 0, 0, 0, 0]
    one[axis] = 1
    statistics = tree.buffer("maximum and sum", "registers", strides=one, elements=2)

    own = rows // _WARPS
    warps = [loop("warp", _WARPS, "thread", axis, own), loop("lane", 8, "thread", axis)]
    fragments = own // 16

    def outputs(column_axis: int, extent: Any) -> list[dict[str, Any]]:
        """Loops of the warps over rows × `extent` elements of an axis, by instructions of 16 × 8."""
        return [
            *warps,
            loop("lane", 4, "thread", column_axis, 2),
            loop("instruction", fragments, "unrolled", axis, 16),
            loop("instruction", ceil_div(extent, 8), "unrolled", column_axis, 8),
            loop("element", 2, "vectorized", axis, 8),
            loop("element", 2, "vectorized", column_axis),
        ]

    def copy(name: str, outer: int, extent: Any, source: int, target: int) -> None:
        with tree.nest(
            *copy_loops(outer, _D, extent, d, np.where(d % 8 == 0, 8, 1), np.full_like(d, threads))
        ):
            tree.statement(name, reads=[source], writes=[target])

    grid = [loop("batch", a.batch, "grid", _BATCH), loop("head", a.kv_heads, "grid", _HEAD)]
    slice_at = len(grid)
    if split:
        grid.append(loop("slice", a.split, "grid", _KV, a.steps * _TILE_KV, True))
    if not decode:
        grid += [
            loop("group", group, "grid", _GROUP),
            loop("queries", a.tiles, "grid", _Q, _TILE_Q),
        ]
    with tree.nest(*grid) as numbers:
        copy("copy queries", axis, rows, queries, query_tile)
        with tree.nest(loop("step", a.steps, "serial", _KV, _TILE_KV, True)):
            copy("copy keys", _KV, np.full_like(d, _TILE_KV), keys, key_tile)
            with tree.nest(
                *outputs(_KV, _TILE_KV),
                loop("depth", ceil_div(d, 16), "unrolled", _D, 16, True),
                loop("depth", 16, "vectorized", _D, 1, True),
            ):
                tree.statement(
                    "multiply keys",
                    {"float-multiply-add": 1},
                    reads=[query_tile, key_tile],
                    updates=[scores],
                )
            with tree.nest(*outputs(_KV, _TILE_KV)):
                softmax = {
                    "float-compare": 1.0,
                    "float-math": 1.0,
                    "float-multiply-add": 1.0,
                    "float-add": 1.0,
                }
                tree.statement("softmax", softmax, updates=[scores, statistics])
            copy("copy values", _KV, np.full_like(d, _TILE_KV), values, value_tile)
            with tree.nest(
                *outputs(_D, d),
                loop("depth", _TILE_KV // 16, "unrolled", _KV, 16, True),
                loop("depth", 16, "vectorized", _KV, 1, True),
            ):
                tree.statement(
                    "multiply values",
                    {"float-multiply-add": 1},
                    reads=[scores, value_tile],
                    updates=[sums],
                )
        target, apart = output, {}
        if split:
            target = tree.buffer("slices", strides=of_q, elements=count_q * a.split)
            apart = {target: {numbers[slice_at]: count_q}}
        with tree.nest(*outputs(_D, d)):
            tree.statement(
                "store",
                {"float-multiply": 1},
                reads=[sums, statistics],
                writes=[target],
                apart=apart,
            )
    if split:
        partial = tree.buffer("slices", strides=[1, count_q], elements=count_q * a.split)
        merged = tree.buffer("output", bytes=_BYTES, strides=[1, 0], elements=count_q)
        with tree.nest(
            loop("points", ceil_div(count_q, 256), "grid", 0, 256),
            loop("threads", 256, "thread", 0),
            loop("slices", a.split, "serial", 1, 1, True),
        ):
            tree.statement(
                "merge slices",
                {"float-multiply-add": 1, "float-math": 1},
                reads=[partial],
                updates=[merged],
            )


def _read(table: Table, cards: Cards) -> Found:
    device, names, figures = cards.index_rows(table)

    def whole(column: str, default: int | None = None) -> Numbers:
        return table.numbers(column, default, whole=True, low=1, high=MAX_EXTENT).astype(np.int64)

    heads = whole("heads")
    is_encoder = "phase" not in table
    kv_heads = heads if is_encoder else whole("kv_heads")
    if not is_encoder:
        table.expect("kv_heads", heads % kv_heads == 0, "a divisor of the heads")
    q_len = whole("seq" if is_encoder else "q_len")
    kv_len = q_len if is_encoder else whole("kv_len")
    phase = table.choose(
        "phase",
        "encoder",
        {name: name for name in ("prefill", "decode", "encoder")}.get,
        "prefill or decode",
    ).astype(str)
    is_decode = phase == "decode"
    batch = whole("batch")
    # Decode kernels share the keys out where blocks would leave SMs without work; those of the fine steps on
    # h100 and a6000 do not (README of the rows).
    blocks = batch * kv_heads
    sms = np.round(2 ** figures[:, 0] - 1).astype(np.int64)[device]
    may_split = is_decode & ~(
        (np.array("kv_total" in table)) & np.isin(table.text("device"), ("h100", "a6000"))
    )
    split = np.where(may_split, np.clip(sms // blocks, 1, np.maximum(kv_len // _SLICE, 1)), 1)
    microseconds = read_times(table, "latency_us")
    is_fit = microseconds >= _FLOOR
    kernels = Attention(
        batch, heads, kv_heads, whole("head_dim"), q_len, kv_len, is_decode, phase == "prefill", split
    )[is_fit]  # fmt: skip
    sizes = [
        kernels.batch,
        kernels.heads,
        kernels.kv_heads,
        kernels.head_dim,
        kernels.q_len,
        kernels.kv_len,
    ]
    operator = np.array([f"attention-{name}" for name in phase[is_fit]], str)
    fold = read_folds(table, zip(heads, kv_heads, table.text("head_dim"), batch, q_len, kv_len))
    libraries = table.text("kernel" if "kernel" in table else "framework", "flash_attention_2")[
        is_fit
    ].astype(str)
    keys = shape_keys(operator, "", *sizes)
    data = Dataset.make(
        kernels.trees(),
        microseconds[is_fit],
        device[is_fit],
        names,
        figures,
        key=[f"{key} {library}" for key, library in zip(keys, libraries.tolist())],
        fold=fold[is_fit],
        operator=operator,
        source=stem(table.path),
        knowledge=PROXY,
    )
    short = int((~is_fit).sum())
    return Found(
        data, {f"below {_FLOOR:.0f} us, twice the launches of attention": short} if short else {}
    )


SOURCES = [
    Source(
        "attention",
        ("phase", "heads", "kv_heads", "head_dim", "batch", "q_len", "kv_len", "latency_us"),
        _read,
    ),
    Source("attention-encoder", ("heads", "head_dim", "batch", "seq", "latency_us"), _read),
]
