"""Trees of kernels of vendors' libraries: what is known of them, and what is taken for the rest.

Functions take arrays, a value for each kernel, and return their trees in that order. Kernels of one
structure are one tree (`trees.Tree`), of which the features are made at once.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ..latency.measurements.rows import rows_of
from ..latency.model import ProgramTree
from .trees import BATCH, K, M, N, Tree, loop

Numbers = npt.NDArray[np.int64]
# Axes after the axes of products: slices of K, and elements of the output that are numbered through.
_SLICE, _POINT = 4, 5
# Threads of the kernel that adds up slices.
_SUM_THREADS = 256


def ceil_div(number: Any, divisor: Any) -> Any:
    return -(-number // divisor)


def trees_of(
    structure: Sequence[npt.NDArray[Any]],
    blocks: npt.NDArray[Any],
    describe: Callable[[Tree, npt.NDArray[np.int64], tuple[Any, ...]], None],
) -> list[list[ProgramTree]]:
    """The trees of kernels.

    Kernels with equal `structure` (arrays of whole numbers or booleans) are described together, by
    their rows and their structure.
    """
    keys = np.stack([np.asarray(one, np.int64) for one in structure], axis=1)
    found: list[list[ProgramTree]] = [[] for _ in range(len(keys))]
    for key in np.unique(keys, axis=0):
        rows = np.flatnonzero((keys == key).all(axis=1))
        tree = Tree(len(rows))
        describe(tree, rows, tuple(key.tolist()))
        ordering, features = tree.features()
        for row, count, kernel_features in zip(rows.tolist(), blocks[rows].tolist(), features):
            found[row] = [ProgramTree(float(count), ordering, kernel_features)]
    return found


@dataclasses.dataclass
class _Tiles:
    """Kernels of products by tiles of the output: a row of each array for each.

    tile_m, tile_n    of a block
    depth             elements along K of a step
    split             slices of K that different blocks sum
    """

    batch: Numbers
    m: Numbers
    n: Numbers
    k: Numbers
    tile_m: Numbers
    tile_n: Numbers
    depth: Numbers
    stages: Numbers
    split: Numbers

    @property
    def blocks(self) -> Numbers:
        tiles: Numbers = ceil_div(self.m, self.tile_m) * ceil_div(self.n, self.tile_n)
        return tiles * self.batch * self.split


@dataclasses.dataclass
class Products(_Tiles):
    """Kernels of products C[M, N] = A[M, K] · B[K, N], by tiles of the output.

    tile_m, tile_n    of a block
    own_m, own_n      accumulators of a thread
    depth             elements along K of a step, of each group of warps
    slices            groups of warps that share a step's elements
    split             slices of K that different blocks sum
    has_sums          whether a second kernel adds these up; else blocks add to the output
    is_rhs_along_k    whether neighbours of B lie along K (B is the transpose of what is stored)
    is_lhs_along_m    whether neighbours of A lie along M (so is A)
    has_bias          whether a vector of N elements is added
    element_bytes     of A, B and C
    """

    own_m: Numbers
    own_n: Numbers
    threads: Numbers
    slices: Numbers
    has_sums: npt.NDArray[np.bool_]
    is_rhs_along_k: npt.NDArray[np.bool_]
    is_lhs_along_m: npt.NDArray[np.bool_]
    has_bias: npt.NDArray[np.bool_]
    is_batched: npt.NDArray[np.bool_]
    element_bytes: int = 4

    def trees(self) -> list[list[ProgramTree]]:
        structure = (
            self.is_batched, self.slices > 1, self.split > 1, self.has_sums & (self.split > 1), self.is_rhs_along_k,
            self.is_lhs_along_m, self.has_bias,
        )  # fmt: skip
        return trees_of(
            structure,
            self.blocks,
            lambda tree, rows, key: _describe_product(tree, rows_of(self, rows), *key),
        )


def copy_loops(
    outer: int, inner: int, rows: Any, columns: Any, width: Any, threads: Any
) -> list[dict[str, Any]]:
    """Loops of threads that copy rows × columns, `width` elements along the inner axis at once.

    As many threads as there are accesses along the inner axis, the others along the outer one.
    """
    vectors = ceil_div(columns, width)
    inner_threads = np.minimum(vectors, threads)
    outer_threads = np.minimum(rows, np.maximum(threads // inner_threads, 1))
    return [
        loop("thread", outer_threads, "thread", outer, 1),
        loop("thread", inner_threads, "thread", inner, width),
        loop("slot", ceil_div(rows, outer_threads), "unrolled", outer, outer_threads),
        loop("slot", ceil_div(vectors, inner_threads), "unrolled", inner, inner_threads * width),
        loop("element", width, "vectorized", inner, 1),
    ]


def _widths(extent: Numbers, columns: Numbers, element_bytes: int) -> Numbers:
    """Elements of accesses of 16 bytes, where neighbours are aligned for them; else one."""
    width = 16 // element_bytes
    return np.where((extent % width == 0) & (columns % width == 0), width, 1)


def _describe_product(
    tree: Tree,
    p: Products,
    batched: int,
    sliced: int,
    split: int,
    summed: int,
    rhs_k: int,
    lhs_m: int,
    biased: int,
) -> None:
    m, n, k, size = p.m, p.n, p.k, p.element_bytes
    zero = 0
    step = p.depth * p.slices
    output = tree.buffer(
        "output", bytes=size, strides=[n, 1, zero, m * n], elements=p.batch * m * n
    )
    lhs = tree.buffer(
        "lhs",
        bytes=size,
        strides=[1, zero, m, m * k] if lhs_m else [k, zero, 1, m * k],
        elements=p.batch * m * k,
    )
    rhs = tree.buffer(
        "rhs",
        bytes=size,
        strides=[zero, k, 1, n * k] if rhs_k else [zero, 1, n, n * k],
        elements=p.batch * n * k,
    )
    bias = (
        tree.buffer("bias", bytes=size, strides=[zero, 1, zero, zero], elements=n)
        if biased
        else None
    )
    tile = [p.tile_m, p.tile_n, step, 1]
    sums = tree.buffer(
        "sums", "registers", strides=[p.tile_n, 1, zero, zero], elements=p.own_m * p.own_n
    )
    # Neighbours of a step in shared memory lie along M and N.
    lhs_tile = tree.buffer(
        "lhs tile",
        "shared",
        size,
        strides=[1, zero, p.tile_m, zero],
        tile=tile,
        elements=p.stages * p.tile_m * step,
    )
    rhs_tile = tree.buffer(
        "rhs tile",
        "shared",
        size,
        strides=[zero, 1, p.tile_n, zero],
        tile=tile,
        elements=p.stages * p.tile_n * step,
    )
    workers = [
        loop("worker", ceil_div(p.tile_m, p.own_m), "thread", M, p.own_m),
        loop("worker", ceil_div(p.tile_n, p.own_n), "thread", N, p.own_n),
    ]
    if sliced:
        workers.append(loop("slice", p.slices, "thread", K, p.depth, True))
    points = [loop("point", p.own_m, "unrolled", M), loop("point", p.own_n, "unrolled", N)]
    outputs = workers + points
    # Work after slices are joined.
    joined = workers[:2] + points

    tiles = [
        loop("m", ceil_div(m, p.tile_m), "grid", M, p.tile_m),
        loop("n", ceil_div(n, p.tile_n), "grid", N, p.tile_n),
    ]
    batches = [loop("batch", p.batch, "grid", BATCH)] if batched else []
    steps = ceil_div(ceil_div(k, p.split), step)
    grid = [
        *batches,
        *([loop("slice", p.split, "grid", K, steps * step, True)] if split else []),
        *tiles,
    ]
    partial = None
    with tree.nest(*grid) as numbers:
        if summed:
            partial = tree.buffer(
                "slices", strides=[n, 1, zero, m * n], elements=p.split * p.batch * m * n
            )
        with tree.nest(*outputs):
            tree.statement("initialize", writes=[sums])
        with tree.nest(loop("step", steps, "serial", K, step, True)):
            if lhs_m:
                nest = copy_loops(K, M, step, p.tile_m, _widths(m, p.tile_m, size), p.threads)
            else:
                nest = copy_loops(M, K, p.tile_m, step, _widths(k, step, size), p.threads)
            with tree.nest(*nest):
                tree.statement("copy lhs", reads=[lhs], writes=[lhs_tile])
            if rhs_k:
                nest = copy_loops(N, K, p.tile_n, step, _widths(k, step, size), p.threads)
            else:
                nest = copy_loops(K, N, step, p.tile_n, _widths(n, p.tile_n, size), p.threads)
            with tree.nest(*nest):
                tree.statement("copy rhs", reads=[rhs], writes=[rhs_tile])
            with tree.nest(*workers, loop("k", p.depth, "unrolled", K, 1, True), *points):
                tree.statement(
                    "multiply",
                    {"float-multiply-add": 1},
                    reads=[lhs_tile, rhs_tile],
                    updates=[sums],
                )
        if sliced:
            exchange = tree.buffer(
                "exchange",
                "shared",
                strides=[p.tile_n, 1, zero, zero],
                elements=p.tile_m * p.tile_n,
            )
            with tree.nest(*outputs):
                tree.statement("join slices", {"float-add": 1}, reads=[sums], updates=[exchange])
        if bias is not None and not split:
            with tree.nest(*joined):
                tree.statement("add bias", {"float-add": 1}, reads=[bias], updates=[sums])
        with tree.nest(*joined):
            if partial is not None:
                apart = {partial: {numbers[1 if batched else 0]: p.batch * m * n}}
                tree.statement("store", reads=[sums], writes=[partial], apart=apart)
            elif split:
                tree.statement("store", {"float-add": 1}, reads=[sums], updates=[output])
            else:
                tree.statement("store", reads=[sums], writes=[output])
    if bias is not None and split and not summed:
        # Only the blocks of one slice add it.
        with tree.nest(*batches, *tiles, *joined):
            tree.statement("add bias", {"float-add": 1}, reads=[bias], updates=[sums])
    if summed:
        _describe_sums(tree, p.batch * p.m * p.n, p.split, size, p.n if biased else None)


def _describe_sums(
    tree: Tree, elements: Numbers, split: Numbers, size: int, bias: Numbers | None = None
) -> None:
    """The second kernel: a thread for each element of the output. `bias`: elements of what is added."""
    strides = [0, 0, 0, 0, elements, 1]
    partial = tree.buffer("slices", strides=strides, elements=elements * split)
    output = tree.buffer("output", bytes=size, strides=[0, 0, 0, 0, 0, 1], elements=elements)
    with tree.nest(
        loop("points", ceil_div(elements, _SUM_THREADS), "grid", _POINT, _SUM_THREADS),
        loop("threads", _SUM_THREADS, "thread", _POINT, 1),
    ):
        with tree.nest(loop("slices", split, "unrolled", _SLICE, 1, True)):
            tree.statement("add slices", {"float-add": 1}, reads=[partial])
        operations: Mapping[str, int] = {} if bias is None else {"float-add": 1}
        reads = []
        if bias is not None:
            reads.append(tree.buffer("bias", bytes=size, strides=[0, 0, 0, 0, 0, 1], elements=bias))
        tree.statement("store sums", operations, reads=reads, writes=[output])


@dataclasses.dataclass
class TensorProducts(_Tiles):
    """Kernels of products C[M, N] = A[M, K] · W[N, K]ᵀ on tensor cores, as FTuner's own paths describe theirs.

    warps_m, warps_n  of a block; with `is_warpgroup` groups of four warps, whose 64 rows lie along M, or along
                      N with `is_across`
    depth             elements along K of a step
    split             slices of K, which a second kernel adds up in f32
    element_bytes     of A and W; output_bytes those of C
    """

    warps_m: Numbers
    warps_n: Numbers
    is_warpgroup: npt.NDArray[np.bool_]
    is_across: npt.NDArray[np.bool_]
    element_bytes: int
    output_bytes: int

    def trees(self) -> list[list[ProgramTree]]:
        structure = (self.batch > 1, self.split > 1, self.is_warpgroup, self.is_across)
        return trees_of(
            structure,
            self.blocks,
            lambda tree, rows, key: _describe_tensor(tree, rows_of(self, rows), *key),
        )


def _describe_tensor(
    tree: Tree, p: TensorProducts, batched: int, split: int, grouped: int, is_across: int
) -> None:
    m, n, k, size = p.m, p.n, p.k, p.element_bytes
    instruction_depth = 32 // size
    if grouped:
        rows, columns = (N, M) if is_across else (M, N)
        long, others = (p.tile_n, p.tile_m) if is_across else (p.tile_m, p.tile_n)
        groups, other_groups = (p.warps_n, p.warps_m) if is_across else (p.warps_m, p.warps_n)
        own, own_others = long // groups, others // other_groups
        threads = [
            loop("warpgroup", groups, "thread", rows, own),
            loop("warpgroup", other_groups, "thread", columns, own_others),
            loop("warp", 4, "thread", rows, 16),
            loop("lane", 8, "thread", rows, 1),
            loop("lane", 4, "thread", columns, 2),
        ]
        points = [loop("instruction", np.maximum(own // 64, 1), "unrolled", rows, 64)]
        instruction = [
            loop("element", 2, "vectorized", rows, 8),
            loop("element", np.maximum(own_others // 8, 1), "vectorized", columns, 8),
            loop("element", 2, "vectorized", columns, 1),
        ]
        sums_of = np.maximum(own // 64, 1) * np.maximum(own_others // 8, 1) * 4
    else:
        own_m, own_n = p.tile_m // p.warps_m, p.tile_n // p.warps_n
        threads = [
            loop("warp", p.warps_m, "thread", M, own_m),
            loop("lane", 8, "thread", M, 1),
            loop("warp", p.warps_n, "thread", N, own_n),
            loop("lane", 4, "thread", N, 2),
        ]
        points = [
            loop("instruction", np.maximum(own_m // 16, 1), "unrolled", M, 16),
            loop("instruction", np.maximum(own_n // 8, 1), "unrolled", N, 8),
        ]
        instruction = [
            loop("element", 2, "vectorized", M, 8),
            loop("element", 2, "vectorized", N, 1),
        ]
        sums_of = np.maximum(own_m // 16, 1) * np.maximum(own_n // 8, 1) * 4
    outputs = threads + points + instruction
    lhs = tree.buffer("lhs", bytes=size, strides=[k, 0, 1, m * k], elements=p.batch * m * k)
    rhs = tree.buffer("rhs", bytes=size, strides=[0, k, 1, n * k], elements=p.batch * n * k)
    output = tree.buffer(
        "output", bytes=p.output_bytes, strides=[n, 1, 0, m * n], elements=p.batch * m * n
    )
    sums = tree.buffer("sums", "registers", strides=[p.tile_n, 1, 0, 0], elements=sums_of)
    tile = [p.tile_m, p.tile_n, p.depth, 1]
    lhs_tile = tree.buffer(
        "lhs tile",
        "shared",
        size,
        strides=[p.depth, 0, 1, 0],
        tile=tile,
        elements=p.stages * p.tile_m * p.depth,
    )
    rhs_tile = tree.buffer(
        "rhs tile",
        "shared",
        size,
        strides=[0, p.depth, 1, 0],
        tile=tile,
        elements=p.stages * p.tile_n * p.depth,
    )
    staging = tree.buffer("staging tile", "shared", strides=[p.tile_n, 1, 0, 0], elements=sums_of)
    steps = ceil_div(ceil_div(k, p.split), p.depth)
    grid = [
        loop("m", ceil_div(m, p.tile_m), "grid", M, p.tile_m),
        loop("n", ceil_div(n, p.tile_n), "grid", N, p.tile_n),
    ]
    if split:
        grid.insert(0, loop("slice", p.split, "grid", K, steps * p.depth, True))
    if batched:
        grid.insert(0, loop("batch", p.batch, "grid", BATCH))

    def copy(name: str, axis: int, extent: Numbers, source: int, target: int) -> None:
        if grouped:
            # One instruction of the unit that copies.
            nest = [
                loop("row", extent, "vectorized", axis),
                loop("element", p.depth, "vectorized", K),
            ]
        else:
            nest = copy_loops(
                axis, K, extent, p.depth, _widths(k, p.depth, size), 32 * p.warps_m * p.warps_n
            )
        with tree.nest(*nest):
            tree.statement(name, reads=[source], writes=[target])

    with tree.nest(*grid) as numbers:
        target, apart = output, {}
        if split:
            target = tree.buffer(
                "slices", strides=[n, 1, 0, m * n], elements=p.split * p.batch * m * n
            )
            apart = {target: {numbers[1 if batched else 0]: p.batch * m * n}}
        with tree.nest(*outputs):
            tree.statement("initialize", writes=[sums])
        with tree.nest(loop("step", steps, "serial", K, p.depth, True)):
            copy("copy lhs", M, p.tile_m, lhs, lhs_tile)
            copy("copy rhs", N, p.tile_n, rhs, rhs_tile)
            with tree.nest(
                *threads,
                loop(
                    "k",
                    ceil_div(p.depth, instruction_depth),
                    "unrolled",
                    K,
                    instruction_depth,
                    True,
                ),
                *points,
                *instruction,
                loop("k", instruction_depth, "vectorized", K, 1, True),
            ):
                tree.statement(
                    "multiply",
                    {"float-multiply-add": 1},
                    reads=[lhs_tile, rhs_tile],
                    updates=[sums],
                )
        with tree.nest(*outputs):
            tree.statement("stage sums", reads=[sums], writes=[staging])
            tree.statement("store", reads=[staging], writes=[target], apart=apart)
    if split:
        _describe_sums(tree, p.batch * m * n, p.split, p.output_bytes)
