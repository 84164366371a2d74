"""Memory-bound operators, by the kernels that the usual libraries have for them (`memory_rows`)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from ...latency.measurements import memory_rows
from ...latency.measurements.table import Table
from ...latency.model import ProgramTree
from ..dataset import Dataset, vectors
from ..kernels import Numbers, ceil_div, trees_of
from ..trees import Tree, loop
from .formats import Cards, Found, Source, stem
from .products import predictions, shape_keys

# Rows of an operator, and the elements of each.
_ROW, _COLUMN = 0, 1
# Operations of an element.
ELEMENTWISE: dict[str, dict[str, float]] = {
    "add": {"float-add": 1},
    "sub": {"float-add": 1},
    "mul": {"float-multiply": 1},
    "div": {"float-divide": 1},
    "pow": {"float-math": 1},
    "tanh": {"float-math": 1},
    "relu": {"float-compare": 1},
    "where": {"select": 1},
    "copy": {},
    # x · (1 + erf(x / √2)) / 2.
    "gelu": {"float-math": 1, "float-multiply": 3, "float-add": 1},
    # x · y / (1 + exp −x).
    "silu_mul": {"float-math": 1, "float-multiply": 1, "float-divide": 1, "float-add": 1},
}
# Blocks of PyTorch's elementwise kernels: threads, and elements of each.
_THREADS, _VECTOR = 128, 4


def elementwise_trees(
    operations: dict[str, float], inputs: int, elements: Numbers, size: int, times: int = 1
) -> list[list[ProgramTree]]:
    """PyTorch's elementwise kernels: `times` of them, one after the other."""
    blocks = ceil_div(elements, _THREADS * _VECTOR)

    def describe(tree: Tree, some: npt.NDArray[np.int64], key: tuple[Any, ...]) -> None:
        count = elements[some]
        for _ in range(times):
            operands = [
                tree.buffer(f"input{index}", bytes=size, strides=[0, 1], elements=count)
                for index in range(inputs)
            ]
            output = tree.buffer("output", bytes=size, strides=[0, 1], elements=count)
            with tree.nest(
                loop("points", blocks[some], "grid", _COLUMN, _THREADS * _VECTOR),
                loop("thread", _THREADS, "thread", _COLUMN, _VECTOR),
                loop("element", _VECTOR, "vectorized", _COLUMN),
            ):
                tree.statement("compute", operations, reads=operands, writes=[output])

    return trees_of((np.zeros(len(elements), np.int64),), blocks * times, describe)


class MemorySamples:
    """Kernels in which threads share a row, as tables: a value for each kernel.

    rows_of_block   rows that a block has at once, by `own_rows` of each group of threads
    threads         that share a row
    rounds, width   accesses of each thread, and elements of each
    is_held         whether elements stay in registers between passes
    """

    def __init__(
        self, rows: Numbers, cols: Numbers, size: int, threads: Numbers, width: Any = 1, rows_of_block: Any = 1,
        own_rows: Any = 1, is_held: Any = False,
    ) -> None:  # fmt: skip
        def whole(value: Any) -> Numbers:
            return np.array(np.broadcast_to(value, rows.shape)).astype(np.int64)

        self.rows, self.cols, self.size = rows, cols, size
        self.threads, self.width = whole(threads), whole(width)
        self.rows_of_block, self.own_rows, self.is_held = (
            whole(rows_of_block),
            whole(own_rows),
            whole(is_held),
        )
        self.rounds = ceil_div(ceil_div(cols, self.width), self.threads)

    @property
    def blocks(self) -> Numbers:
        blocks: Numbers = ceil_div(self.rows, self.rows_of_block)
        return blocks

    def trees(self, describe: Callable[[Pass], None]) -> list[list[ProgramTree]]:
        structure = (self.is_held, self.rows_of_block > 1)

        def add_statements(tree: Tree, some: npt.NDArray[np.int64], key: tuple[Any, ...]) -> None:
            rows = MemorySamples(
                self.rows[some], self.cols[some], self.size, self.threads[some], self.width[some],
                self.rows_of_block[some], self.own_rows[some], self.is_held[some],
            )  # fmt: skip
            grid = [loop("rows", rows.blocks, "grid", _ROW, rows.rows_of_block)]
            if key[1]:
                grid.append(
                    loop("row", rows.rows_of_block // rows.own_rows, "thread", _ROW, rows.own_rows)
                )
                grid.append(loop("row", rows.own_rows, "unrolled", _ROW))
            with tree.nest(*grid):
                describe(Pass(tree, rows, bool(key[0])))

        return trees_of(structure, self.blocks, add_statements)


class Pass:
    """The statements of kernels of rows."""

    def __init__(self, tree: Tree, rows: MemorySamples, is_held: bool) -> None:
        self.tree, self.rows, self.is_held = tree, rows, is_held
        self._threads = [loop("thread", rows.threads, "thread", _COLUMN, rows.width, True)]
        self._elements = [
            loop(
                "round",
                rows.rounds,
                "unrolled" if is_held else "serial",
                _COLUMN,
                rows.threads * rows.width,
                True,
            ),
            loop("element", rows.width, "vectorized", _COLUMN, 1, True),
        ]

    def operand(self, name: str, columns: Any = None) -> int:
        """A tensor of the kernel's rows × columns."""
        columns = self.rows.cols if columns is None else columns
        return self.tree.buffer(
            name, bytes=self.rows.size, strides=[columns, 1], elements=self.rows.rows * columns
        )

    def vector(self, name: str) -> int:
        """A tensor of an element for each column."""
        return self.tree.buffer(name, bytes=self.rows.size, strides=[0, 1], elements=self.rows.cols)

    def held(self) -> int:
        """Elements of a thread in registers."""
        return self.tree.buffer(
            "row", "registers", strides=[0, 1], elements=self.rows.rounds * self.rows.width
        )

    def value(self, name: str) -> int:
        """Adds a buffer of registers for the value that a row is reduced to."""
        return self.tree.buffer(name, "registers", strides=[1, 0], elements=1)

    def each(self, name: str, operations: dict[str, float], **accesses: Any) -> None:
        """A statement for each element."""
        with self.tree.nest(*self._threads, *self._elements):
            self.tree.statement(name, operations, **accesses)

    def join(self, name: str, operations: dict[str, float], value: int) -> None:
        """Adds the reduction of the threads' values: a tree over them, once a row."""
        rounds = np.maximum(2 * np.ceil(np.log2(np.maximum(self.rows.threads, 2))), 1)
        with self.tree.nest(*self._threads):
            self.tree.statement(
                name, {kind: count * rounds for kind, count in operations.items()}, updates=[value]
            )


def softmax_trees(rows: Numbers, cols: Numbers, size: int) -> list[list[ProgramTree]]:
    """PyTorch's softmax: a warp holds a row of at most 1024 elements, a block reads a longer one three times."""
    padded = 2 ** np.ceil(np.log2(np.maximum(cols, 1))).astype(np.int64)
    is_warp = cols <= 1024
    lanes = np.minimum(padded, 32)
    at_once = np.where(padded <= 128, 2, 1)
    of_block = np.clip(2 ** np.ceil(np.log2(np.maximum(cols // 8, 32))).astype(np.int64), 32, 1024)
    kernels = MemorySamples(
        rows, cols, size, np.where(is_warp, lanes, of_block), np.where(is_warp, 1, 4),
        np.where(is_warp, 128 // lanes * at_once, 1), np.where(is_warp, at_once, 1), is_warp,
    )  # fmt: skip

    def describe(p: Pass) -> None:
        x, y = p.operand("input"), p.operand("output")
        maximum, total = p.value("maximum"), p.value("sum")
        source = x
        if p.is_held:
            source = p.held()
            p.each("load", {}, reads=[x], writes=[source])
        p.each("reduce maximum", {"float-compare": 1}, reads=[source], updates=[maximum])
        p.join("join maximum", {"float-compare": 1}, maximum)
        p.each(
            "reduce sum",
            {"float-math": 1, "float-add": 2},
            reads=[source, maximum],
            updates=[total],
        )
        p.join("join sum", {"float-add": 1}, total)
        p.each(
            "store",
            {"float-math": 1, "float-add": 1, "float-divide": 1},
            reads=[source, maximum, total],
            writes=[y],
        )

    return kernels.trees(describe)


def layer_norm_trees(rows: Numbers, cols: Numbers, size: int) -> list[list[ProgramTree]]:
    """PyTorch's layer norm: 128 threads, a pass by Welford's method and one that reads the row again."""

    def describe(p: Pass) -> None:
        x, y = p.operand("input"), p.operand("output")
        scale, shift = p.vector("scale"), p.vector("shift")
        moments = p.value("moments")
        welford: dict[str, float] = {"float-add": 3, "float-multiply-add": 2, "float-divide": 1}
        p.each("reduce moments", welford, reads=[x], updates=[moments])
        p.join("join moments", {"float-add": 2, "float-multiply": 3}, moments)
        p.each(
            "store", {"float-add": 1, "float-multiply": 1, "float-multiply-add": 1}, reads=[x, scale, shift, moments],
            writes=[y],
        )  # fmt: skip

    return MemorySamples(rows, cols, size, np.full(len(rows), 128), 4).trees(describe)


def rms_norm_trees(
    rows: Numbers, cols: Numbers, size: int, is_new: bool, adds: bool
) -> list[list[ProgramTree]]:
    """vLLM's RMS norm: single elements (2023) or vectors of 16 bytes; `adds`: of a sum that it stores."""
    width = 16 // size if is_new else 1
    max_threads = np.where(rows < 256, 1024, 256) if adds else 1024

    def describe(p: Pass) -> None:
        x, y, scale, squares = (
            p.operand("input"),
            p.operand("output"),
            p.vector("scale"),
            p.value("squares"),
        )
        if adds:
            residual = p.operand("residual")
            p.each(
                "add residual",
                {"float-add": 1, "float-multiply-add": 1},
                reads=[x],
                updates=[residual, squares],
            )
            x = residual
        else:
            p.each("reduce squares", {"float-multiply-add": 1}, reads=[x], updates=[squares])
        p.join("join squares", {"float-add": 1}, squares)
        p.each("store", {"float-multiply": 2}, reads=[x, scale, squares], writes=[y])

    threads = 32 * ceil_div(np.minimum(ceil_div(cols, width), max_threads), 32)
    return MemorySamples(rows, cols, size, threads, width).trees(describe)


def _silu_trees(rows: Numbers, cols: Numbers, size: int, is_new: bool) -> list[list[ProgramTree]]:
    width = 16 // size if is_new else 1

    def describe(p: Pass) -> None:
        # Both factors are halves of one row.
        both, y = p.operand("input", 2 * p.rows.cols), p.operand("output")
        p.each("compute", ELEMENTWISE["silu_mul"], reads=[both, both], writes=[y])

    threads = 32 * ceil_div(np.minimum(ceil_div(cols, width), 1024), 32)
    return MemorySamples(rows, cols, size, threads, width).trees(describe)


def _rope_trees(rows: Numbers, cols: Numbers, size: int) -> list[list[ProgramTree]]:
    """Pairs of elements are turned in place; half a row of cosines and sines is read for each head."""

    def describe(p: Pass) -> None:
        x = p.operand("queries and keys", 2 * p.rows.cols)
        angles = p.operand("cosines and sines")
        p.each(
            "turn", {"float-multiply": 4, "float-add": 2}, reads=[angles, angles], updates=[x, x]
        )

    pairs = np.maximum(cols // 2, 1)
    return MemorySamples(rows, pairs, size, np.minimum(pairs, 512)).trees(describe)


def operator_trees(
    op: str, rows: Numbers, cols: Numbers, size: int, is_new: bool
) -> list[list[ProgramTree]]:
    """The trees of an operator of `memory_rows.OPERATORS`; `is_new`: of vLLM's kernels of 2026."""
    if op == "softmax":
        return softmax_trees(rows, cols, size)
    if op == "layernorm":
        return layer_norm_trees(rows, cols, size)
    if op in ("rmsnorm", "add_rmsnorm"):
        return rms_norm_trees(rows, cols, size, is_new, op == "add_rmsnorm")
    if op == "silu_mul":
        return _silu_trees(rows, cols, size, is_new)
    if op == "rope":
        return _rope_trees(rows, cols, size)
    inputs = memory_rows.OPERATORS[op] - 1
    if op == "add" and size == 2:
        # Phi-2 adds three tensors by two kernels (`memory_rows`).
        is_twice = cols == memory_rows.TWO_SUMS
        trees: list[list[ProgramTree]] = [[] for _ in range(len(rows))]
        for times, some in ((1, ~is_twice), (2, is_twice)):
            made = elementwise_trees(ELEMENTWISE[op], inputs, (rows * cols)[some], size, times)
            for row, tree in zip(np.flatnonzero(some).tolist(), made):
                trees[row] = tree
        return trees
    return elementwise_trees(ELEMENTWISE[op], inputs, rows * cols, size)


def _operators(table: Table, cards: Cards) -> Found:
    rows = memory_rows.read(table, cards.devices, None)
    # Libraries are told apart as in `memory_rows.read`.
    op_of_all, device_of_all = rows.extra["op"].astype(str), rows.device
    new = np.unique(device_of_all[op_of_all == "add_rmsnorm"])
    is_fit = rows.is_fit
    is_host = rows.is_host
    left_out = {
        "below twice the launch floor": int((~is_fit & is_host).sum()),
        "below 20 us, which is twenty times the resolution": int((~is_fit & ~is_host).sum()),
    }
    rows = rows[is_fit]
    operator = rows.extra["op"].astype(str)
    size = rows.extra["size"].astype(np.int64)
    extents = [rows.extra[name].astype(np.int64) for name in ("rows", "cols")]
    is_new = np.isin(rows.device, new)
    trees: list[list[ProgramTree]] = [[] for _ in range(len(rows))]
    for op, bytes, late in sorted(set(zip(operator.tolist(), size.tolist(), is_new.tolist()))):
        some = np.flatnonzero((operator == op) & (size == bytes) & (is_new == late))
        for row, tree in zip(
            some.tolist(), operator_trees(op, extents[0][some], extents[1][some], bytes, late)
        ):
            trees[row] = tree
    types = np.where(size == 4, "f32", "f16")
    named = np.array([f"{op}-{type}" for op, type in zip(operator.tolist(), types.tolist())], str)
    data = Dataset.make(
        trees,
        rows.microseconds,
        rows.device,
        cards.devices.names,
        vectors(cards.devices),
        key=shape_keys(named, "", *extents),
        fold=rows.fold,
        predicted=predictions(rows),
        operator=named,
        source=stem(table.path),
    )
    return Found(data, {why: count for why, count in left_out.items() if count})


SOURCES = [
    Source("memory", ("op", "rows", "cols", "latency_us"), _operators, needs_all=True),
]
