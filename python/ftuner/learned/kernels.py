"""Trees of kernels of vendors' libraries: what is known of them, and what is taken for the rest.

Functions take arrays, a value for each kernel, and return their trees in that order. Kernels of one
structure are one tree (`trees.Tree`), of which the features are made at once.
"""

from __future__ import annotations

import dataclasses
from typing import Any, Callable, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from ..latency.model import ProgramTree
from .trees import BATCH, K, M, N, Tree, loop

Numbers = npt.NDArray[np.int64]
# Behind the axes of products: slices of K, and elements of the output that are numbered through.
_SLICE, _POINT = 4, 5
# Threads of the kernel that adds up slices.
_SUM_THREADS = 256


def ceil_div(number: Any, by: Any) -> Any:
    return -(-number // by)


def trees_of(
    structure: Sequence[npt.NDArray[Any]],
    blocks: npt.NDArray[Any],
    describe: Callable[[Tree, npt.NDArray[np.int64], tuple[Any, ...]], None],
) -> list[list[ProgramTree]]:
    """The trees of kernels: those that have the same `structure` (arrays of whole numbers or truths) are
    described together, by their rows and what their structure is."""
    keys = np.stack([np.asarray(one, np.int64) for one in structure], axis=1)
    found: list[list[ProgramTree]] = [[] for _ in range(len(keys))]
    for key in np.unique(keys, axis=0):
        rows = np.flatnonzero((keys == key).all(axis=1))
        tree = Tree(len(rows))
        describe(tree, rows, tuple(key.tolist()))
        ordering, features = tree.features()
        for row, count, of in zip(rows.tolist(), blocks[rows].tolist(), features):
            found[row] = [ProgramTree(float(count), ordering, of)]
    return found


@dataclasses.dataclass
class Products:
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
    is_tensor         whether instructions of the tensor cores multiply
    """

    batch: Numbers
    m: Numbers
    n: Numbers
    k: Numbers
    tile_m: Numbers
    tile_n: Numbers
    own_m: Numbers
    own_n: Numbers
    threads: Numbers
    depth: Numbers
    stages: Numbers
    slices: Numbers
    split: Numbers
    has_sums: npt.NDArray[np.bool_]
    is_rhs_along_k: npt.NDArray[np.bool_]
    is_lhs_along_m: npt.NDArray[np.bool_]
    has_bias: npt.NDArray[np.bool_]
    is_batched: npt.NDArray[np.bool_]
    element_bytes: int = 4
    is_tensor: bool = False

    def __getitem__(self, rows: Any) -> Products:
        return Products(
            **{
                field.name: value[rows] if isinstance(value := getattr(self, field.name), np.ndarray) else value
                for field in dataclasses.fields(self)
            }
        )

    @property
    def blocks(self) -> Numbers:
        tiles: Numbers = ceil_div(self.m, self.tile_m) * ceil_div(self.n, self.tile_n)
        return tiles * self.batch * self.split

    def trees(self) -> list[list[ProgramTree]]:
        structure = (
            self.is_batched, self.slices > 1, self.split > 1, self.has_sums & (self.split > 1), self.is_rhs_along_k,
            self.is_lhs_along_m, self.has_bias,
        )  # fmt: skip
        return trees_of(structure, self.blocks, lambda tree, rows, key: _describe_product(tree, self[rows], *key))


def copy_loops(
    outer: int, inner: int, rows: Any, columns: Any, width: Any, threads: Any
) -> list[dict[str, Any]]:
    """Loops of threads that copy rows × columns, `width` elements along the inner axis at once.

    As many threads as there are accesses along the inner axis, the others along the outer one.
    """
    vectors = ceil_div(columns, width)
    along = np.minimum(vectors, threads)
    across = np.minimum(rows, np.maximum(threads // along, 1))
    return [
        loop("thread", across, "thread", outer, 1),
        loop("thread", along, "thread", inner, width),
        loop("slot", ceil_div(rows, across), "unrolled", outer, across),
        loop("slot", ceil_div(vectors, along), "unrolled", inner, along * width),
        loop("element", width, "vectorized", inner, 1),
    ]


def _widths(extent: Numbers, columns: Numbers, element_bytes: int) -> Numbers:
    """Elements of accesses of 16 bytes, where neighbours are aligned for them; else one."""
    width = 16 // element_bytes
    return np.where((extent % width == 0) & (columns % width == 0), width, 1)


def _describe_product(
    tree: Tree, p: Products, batched: int, sliced: int, split: int, summed: int, rhs_k: int, lhs_m: int, biased: int
) -> None:
    m, n, k, size = p.m, p.n, p.k, p.element_bytes
    zero = 0
    step = p.depth * p.slices
    output = tree.buffer("output", bytes=size, strides=[n, 1, zero, m * n], elements=p.batch * m * n)
    lhs = tree.buffer(
        "lhs", bytes=size, strides=[1, zero, m, m * k] if lhs_m else [k, zero, 1, m * k], elements=p.batch * m * k
    )
    rhs = tree.buffer(
        "rhs", bytes=size, strides=[zero, k, 1, n * k] if rhs_k else [zero, 1, n, n * k], elements=p.batch * n * k
    )
    bias = tree.buffer("bias", bytes=size, strides=[zero, 1, zero, zero], elements=n) if biased else None
    tile = [p.tile_m, p.tile_n, step, 1]
    sums = tree.buffer(
        "sums", "registers", strides=[p.tile_n, 1, zero, zero], elements=p.own_m * p.own_n
    )
    # Neighbours of a step in shared memory lie along M and N.
    lhs_tile = tree.buffer(
        "lhs tile", "shared", size, strides=[1, zero, p.tile_m, zero], tile=tile, elements=p.stages * p.tile_m * step
    )
    rhs_tile = tree.buffer(
        "rhs tile", "shared", size, strides=[zero, 1, p.tile_n, zero], tile=tile, elements=p.stages * p.tile_n * step
    )
    workers = [
        loop("worker", ceil_div(p.tile_m, p.own_m), "thread", M, p.own_m),
        loop("worker", ceil_div(p.tile_n, p.own_n), "thread", N, p.own_n),
    ]
    if sliced:
        workers.append(loop("slice", p.slices, "thread", K, p.depth, True))
    points = [loop("point", p.own_m, "unrolled", M), loop("point", p.own_n, "unrolled", N)]
    instruction: list[dict[str, Any]] = []
    depth = [loop("k", p.depth, "unrolled", K, 1, True)]
    if p.is_tensor:
        # m16n8 and 32 bytes along K: a lane has 2 × 2 sums of it.
        points = [loop("point", ceil_div(p.own_m, 2), "unrolled", M, 2), loop("point", ceil_div(p.own_n, 2), "unrolled", N, 2)]
        along = 32 // size
        instruction = [
            loop("lane", 2, "vectorized", M), loop("lane", 2, "vectorized", N), loop("k", along, "vectorized", K, 1, True)
        ]  # fmt: skip
        depth = [loop("k", ceil_div(p.depth, along), "unrolled", K, along, True)]
    outputs = workers + points + instruction[:2]

    grid = [loop("m", ceil_div(m, p.tile_m), "grid", M, p.tile_m), loop("n", ceil_div(n, p.tile_n), "grid", N, p.tile_n)]
    steps = ceil_div(ceil_div(k, p.split), step)
    if split:
        grid.insert(0, loop("slice", p.split, "grid", K, steps * step, True))
    if batched:
        grid.insert(0, loop("batch", p.batch, "grid", BATCH))
    partial = None
    with tree.nest(*grid) as numbers:
        if summed:
            apart = {numbers[1 if batched else 0]: p.batch * m * n}
            partial = tree.buffer(
                "slices", strides=[n, 1, zero, m * n], elements=p.split * p.batch * m * n, apart=apart
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
            with tree.nest(*workers, *depth, *points, *instruction):
                tree.statement("multiply", {"float-multiply-add": 1}, reads=[lhs_tile, rhs_tile], updates=[sums])
        if sliced:
            exchange = tree.buffer(
                "exchange", "shared", strides=[p.tile_n, 1, zero, zero], elements=p.tile_m * p.tile_n
            )
            with tree.nest(*outputs):
                tree.statement("join slices", {"float-add": 1}, reads=[sums], updates=[exchange])
        if bias is not None and not summed:
            with tree.nest(*outputs):
                tree.statement("add bias", {"float-add": 1}, reads=[bias], updates=[sums])
        with tree.nest(*outputs):
            if partial is not None:
                tree.statement("store", reads=[sums], writes=[partial])
            elif split:
                tree.statement("store", {"float-add": 1}, reads=[sums], updates=[output])
            else:
                tree.statement("store", reads=[sums], writes=[output])
    if summed:
        _describe_sums(tree, p, bias is not None)


def _describe_sums(tree: Tree, p: Products, has_bias: bool) -> None:
    """The second kernel: a thread for each element of the output."""
    elements = p.batch * p.m * p.n
    strides = [0, 0, 0, 0, elements, 1]
    partial = tree.buffer("slices", strides=strides, elements=elements * p.split)
    output = tree.buffer("output", bytes=p.element_bytes, strides=[0, 0, 0, 0, 0, 1], elements=elements)
    with tree.nest(
        loop("points", ceil_div(elements, _SUM_THREADS), "grid", _POINT, _SUM_THREADS),
        loop("threads", _SUM_THREADS, "thread", _POINT, 1),
    ):
        with tree.nest(loop("slices", p.split, "unrolled", _SLICE, 1, True)):
            tree.statement("add slices", {"float-add": 1}, reads=[partial])
        operations: Mapping[str, int] = {"float-add": 1} if has_bias else {}
        reads = []
        if has_bias:
            reads.append(tree.buffer("bias", bytes=p.element_bytes, strides=[0, 0, 0, 0, 0, 1], elements=p.n))
        tree.statement("store sums", operations, reads=reads, writes=[output])
