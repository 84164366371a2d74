"""Convolutions by cuDNN."""

from __future__ import annotations

import dataclasses
import re
from typing import Any

import numpy as np
import numpy.typing as npt

from ...latency.measurements.rows import FLOOR_ROWS, MAX_EXTENT, read_folds, read_times
from ...latency.measurements.table import Table
from ...latency.model import ProgramTree
from ..dataset import KNOWN, PROXY, Dataset
from ..kernels import Numbers, ceil_div, copy_loops, trees_of
from ..trees import Tree, loop
from .formats import Cards, Found, Source, stem
from .products import shape_keys

# Axes: output pixels, output channels, input channels, elements of the filter, images, matrices of Winograd.
_PIXEL, _OUT, _IN, _FILTER, _IMAGE, _MATRIX = range(6)
# Below this work a convolution is little more than its launches.
_FLOOR_FLOP = 2e7
# Tile where no name says it.
_TILE = (128, 64)
_DEPTH = 8
DIRECT, FUSED, SEPARATE = range(3)
_ALGORITHMS = {
    "implicit_gemm": DIRECT,
    "implicit_precomp_gemm": DIRECT,
    "winograd": FUSED,
    "winograd_nonfused": SEPARATE,
}


@dataclasses.dataclass
class Convolutions:
    """Kernels of convolutions, NCHW, a value for each.

    pixels, columns   of an output image, and of its rows
    image             elements of a channel of an input image
    taps              elements of the filter, for each input channel
    tile_m, tile_n    of a block: pixels (matrices of Winograd: their tiles) and output channels
    algorithm         DIRECT: a product over filters and channels; FUSED: Winograd's F(2×2, 3×3) within one
                      kernel; SEPARATE: F(4×4, 3×3), a kernel for each transform and one of 36 products
    """

    batch: Numbers
    channels: Numbers
    outputs: Numbers
    pixels: Numbers
    image: Numbers
    taps: Numbers
    stride: Numbers
    tile_m: Numbers
    tile_n: Numbers
    threads: Numbers
    size: Numbers
    algorithm: Numbers

    def __getitem__(self, rows: Any) -> Convolutions:
        return Convolutions(
            *(getattr(self, field.name)[rows] for field in dataclasses.fields(self))
        )

    @property
    def units(self) -> Numbers:
        """Rows of the product: pixels, or Winograd's tiles of 4 or 16 of them."""
        pixels_of_tile = np.select(
            [self.algorithm == FUSED, self.algorithm == SEPARATE], [4, 16], 1
        )
        units: Numbers = self.batch * ceil_div(self.pixels, pixels_of_tile)
        return units

    @property
    def blocks(self) -> Numbers:
        of_product: Numbers = ceil_div(self.units, self.tile_m) * ceil_div(
            self.outputs, self.tile_n
        )
        return of_product * np.where(self.algorithm == SEPARATE, 36, 1)

    def trees(self) -> list[list[ProgramTree]]:
        return trees_of(
            (self.algorithm,),
            self.blocks,
            lambda tree, rows, key: _describe(tree, self[rows], *key),
        )


def _describe(tree: Tree, c: Convolutions, algorithm: int) -> None:
    m, n, k = c.units, c.outputs, c.channels
    of_pixel = {DIRECT: 1, FUSED: 4, SEPARATE: 16}[algorithm]
    matrices = {DIRECT: 1, FUSED: 16, SEPARATE: 36}[algorithm]
    image = tree.buffer(
        "image",
        bytes=c.size,
        strides=[c.stride * of_pixel, 0, c.image, 1, 0, 1],
        elements=c.batch * k * c.image,
    )
    weights = tree.buffer(
        "filter", bytes=c.size, strides=[0, k * c.taps, c.taps, 1, 0, 0], elements=n * k * c.taps
    )
    output = tree.buffer(
        "output",
        bytes=c.size,
        strides=[of_pixel, c.pixels, 0, 0, 0, 0],
        elements=c.batch * n * c.pixels,
    )
    lhs, rhs, target = image, weights, output
    if algorithm == SEPARATE:
        lhs = tree.buffer(
            "transformed image", strides=[1, 0, m, 0, 0, m * k], elements=matrices * m * k
        )
        rhs = tree.buffer(
            "transformed filter", strides=[0, 1, n, 0, 0, n * k], elements=matrices * n * k
        )
        target = tree.buffer("products", strides=[1, m, 0, 0, 0, m * n], elements=matrices * m * n)
        _transform(tree, "transform image", m * k, matrices, 144.0, image, lhs, c)
        _transform(tree, "transform filter", n * k, matrices, 72.0, weights, rhs, c)
    # A thread has as square a tile as can be.
    sums_of = np.maximum(c.tile_m * c.tile_n // c.threads, 1)
    own_m = np.minimum(2 ** np.ceil(np.log2(sums_of) / 2).astype(np.int64), c.tile_m)
    own_n = np.clip(sums_of // own_m, 1, c.tile_n)
    inner = matrices if algorithm == FUSED else 1
    sums = tree.buffer(
        "sums",
        "registers",
        strides=[c.tile_n, 1, 0, 0, 0, c.tile_m * c.tile_n],
        elements=inner * own_m * own_n,
    )
    tile = [c.tile_m, c.tile_n, _DEPTH, 1, 1, matrices]
    lhs_tile = tree.buffer(
        "image tile", "shared", c.size, strides=[1, 0, c.tile_m, 0, 0, c.tile_m * _DEPTH], tile=tile,
        elements=2 * inner * c.tile_m * _DEPTH,
    )  # fmt: skip
    rhs_tile = tree.buffer(
        "filter tile", "shared", c.size, strides=[0, 1, c.tile_n, 0, 0, c.tile_n * _DEPTH], tile=tile,
        elements=2 * inner * c.tile_n * _DEPTH,
    )  # fmt: skip
    workers = [
        loop("worker", ceil_div(c.tile_m, own_m), "thread", _PIXEL, own_m),
        loop("worker", ceil_div(c.tile_n, own_n), "thread", _OUT, own_n),
    ]
    points = [loop("point", own_m, "unrolled", _PIXEL), loop("point", own_n, "unrolled", _OUT)]
    matrix_loops = [loop("matrix", matrices, "unrolled", _MATRIX)] if algorithm == FUSED else []
    grid = [
        loop("m", ceil_div(m, c.tile_m), "grid", _PIXEL, c.tile_m),
        loop("n", ceil_div(n, c.tile_n), "grid", _OUT, c.tile_n),
    ]
    if algorithm == SEPARATE:
        grid.insert(0, loop("matrix", matrices, "grid", _MATRIX))
    steps = [loop("step", ceil_div(k, _DEPTH), "serial", _IN, _DEPTH, True)]
    if algorithm == DIRECT:
        steps.insert(0, loop("filter", c.taps, "serial", _FILTER, 1, True))
    one, threads = np.ones_like(m), c.threads
    # Winograd's transforms, of each element of what is copied.
    turned: dict[str, float] = {"float-add": 2} if algorithm == FUSED else {}
    with tree.nest(*grid):
        with tree.nest(*workers, *matrix_loops, *points):
            tree.statement("initialize", writes=[sums])
        with tree.nest(*steps):
            depth = np.full_like(m, _DEPTH)
            with tree.nest(*copy_loops(_IN, _PIXEL, depth, c.tile_m, one, threads), *matrix_loops):
                tree.statement("copy image", turned, reads=[lhs], writes=[lhs_tile])
            with tree.nest(*copy_loops(_IN, _OUT, depth, c.tile_n, one, threads), *matrix_loops):
                tree.statement("copy filter", turned, reads=[rhs], writes=[rhs_tile])
            with tree.nest(
                *workers, loop("k", _DEPTH, "unrolled", _IN, 1, True), *matrix_loops, *points
            ):
                tree.statement(
                    "multiply",
                    {"float-multiply-add": 1},
                    reads=[lhs_tile, rhs_tile],
                    updates=[sums],
                )
        with tree.nest(*workers, *matrix_loops, *points):
            tree.statement("store", turned, reads=[sums], writes=[target])
    if algorithm == SEPARATE:
        _transform(tree, "transform output", m * n, matrices, 96.0, target, output, c)


def _transform(
    tree: Tree,
    name: str,
    tiles: Numbers,
    matrices: int,
    additions: float,
    source: int,
    target: int,
    c: Convolutions,
) -> None:
    """A kernel of Winograd's F(4×4, 3×3): a thread for each tile of each channel."""
    with tree.nest(
        loop("tiles", ceil_div(tiles, 256), "grid", _PIXEL, 256),
        loop("thread", 256, "thread", _PIXEL),
        loop("matrix", matrices, "unrolled", _MATRIX),
    ):
        tree.statement(name, {"float-add": additions / matrices}, reads=[source], writes=[target])


def _tiles(kernels: npt.NDArray[Any]) -> tuple[Numbers, npt.NDArray[np.bool_]]:
    """Tiles of kernels by their names, and which names say one."""
    found = []
    for name in kernels:
        match = re.search(r"(?:scudnn|sgemm)(?:_winograd)?_(\d+)x(\d+)", str(name))
        found.append((int(match[1]), int(match[2]), 1) if match else (*_TILE, 0))
    tiles = np.array(found, np.int64).reshape(-1, 3)
    return tiles[:, :2], tiles[:, 2] == 1


def _read(table: Table, cards: Cards) -> Found:
    device, names, figures = cards.index_rows(table)

    def whole(column: str, default: int | None = None, low: int = 1) -> Numbers:
        return table.numbers(column, default, whole=True, low=low, high=MAX_EXTENT).astype(np.int64)

    batch, channels, outputs, height = (whole(column) for column in "BCKH")
    width = whole("W") if "W" in table else height
    rows_of, columns_of = whole("R", 3), whole("S", 3)
    pad_h, pad_w = whole("pad_h", 1, low=0), whole("pad_w", 1, low=0)
    stride_h, stride_w = whole("stride_h", 1), whole("stride_w", 1)
    out_h = (height + 2 * pad_h - rows_of) // stride_h + 1
    out_w = (width + 2 * pad_w - columns_of) // stride_w + 1
    table.expect("H", (out_h > 0) & (out_w > 0), "an image of at least the filter's size")
    microseconds = read_times(table, "latency_ms")
    dtype = table.choose(
        "dtype",
        "f32",
        {name: name for name in ("f32", "f16", "f16-store")}.get,
        "f32, f16 or f16-store",
    ).astype(str)
    algorithms = table.text("algorithm").astype(str)
    is_described = np.isin(algorithms, list(_ALGORITHMS))
    tiles, is_named = _tiles(table.text("kernel", ""))
    algorithm = np.array([_ALGORITHMS.get(name, DIRECT) for name in algorithms], np.int64)
    # The first extent of cuBLAS's products, which are column-major, lies along the output's channels.
    tile_m = np.where(algorithm == SEPARATE, tiles[:, 1], tiles[:, 0])
    tile_n = np.where(algorithm == SEPARATE, tiles[:, 0], tiles[:, 1])
    # Winograd's fused kernels have 8 × 16 pixels, 32 tiles of four, and 32 channels: so their grids say.
    tile_m, tile_n = (np.where(algorithm == FUSED, 32, tile) for tile in (tile_m, tile_n))
    flop = 2.0 * batch * channels * outputs * out_h * out_w * rows_of * columns_of
    floor = np.zeros(len(table))
    for index in np.unique(device):
        tiny = (device == index) & (flop < _FLOOR_FLOP)
        if tiny.sum() >= FLOOR_ROWS:
            floor[device == index] = np.median(microseconds[tiny])
    is_fit = microseconds > 2 * floor
    kept = is_described & is_fit
    size = np.where(dtype == "f32", 4, 2)
    kernels = Convolutions(
        batch, channels, outputs, out_h * out_w, height * width, rows_of * columns_of, stride_w, tile_m, tile_n,
        np.where(algorithm == FUSED, 256, np.clip(tiles[:, 0] * tiles[:, 1] // 64, 32, 256)), size, algorithm,
    )[kept]  # fmt: skip
    # The tile of an implicit product is all of it; of Winograd's transforms nothing is known.
    is_known = is_named & (algorithm == DIRECT)
    operator = np.array([f"convolution-{name}" for name in dtype[kept]], str)
    sizes = [
        value[kept]
        for value in (
            batch,
            channels,
            outputs,
            height,
            width,
            rows_of,
            columns_of,
            pad_h,
            pad_w,
            stride_h,
            stride_w,
        )
    ]
    fold = read_folds(
        table, zip(batch, channels, outputs, height, width, rows_of, columns_of, stride_h, stride_w)
    )
    data = Dataset.make(
        kernels.trees(),
        microseconds[kept],
        device[kept],
        names,
        figures,
        key=shape_keys(operator, "", *sizes),
        fold=fold[kept],
        operator=operator,
        source=stem(table.path),
        knowledge=np.where(is_known[kept], KNOWN, PROXY),
    )
    left_out = {
        "no tree of an explicit product or a Fourier transform": int((~is_described).sum()),
        "below twice the launch floor": int((is_described & ~is_fit).sum()),
    }
    return Found(data, {why: count for why, count in left_out.items() if count})


SOURCES = [
    Source("convolution", ("B", "C", "K", "H", "latency_ms", "algorithm"), _read, needs_all=True),
]
