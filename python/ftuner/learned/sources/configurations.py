"""Tunable kernels with each of their parameters."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from ...latency.measurements import configuration_rows
from ...latency.measurements.rows import MAX_TILE, fold_of
from ...latency.measurements.table import Table
from ...latency.model import ProgramTree
from ..dataset import Dataset, vectors
from ..kernels import ceil_div, trees_of
from ..trees import K, M, N, Tree, loop
from .formats import Cards, Found, Source, read_measured, stem
from .products import predictions, shape_keys

Numbers = npt.NDArray[np.int64]


def _xgemm(table: Table, cards: Cards) -> Found:
    """CLBlast's Xgemm (`configuration_rows`)."""
    every = len(table)
    rows = configuration_rows.read(table, cards.devices, None)
    c = {
        name: values.astype(np.int64) for name, values in rows.extra.items() if name != "is_staged"
    }
    data = Dataset.make(
        xgemm_trees(c),
        rows.microseconds,
        rows.device,
        cards.devices.names,
        vectors(cards.devices),
        key=shape_keys(np.full(len(rows), "xgemm"), "f32", c["M"], c["N"], c["K"]),
        fold=rows.fold,
        predicted=predictions(rows),
        operator="xgemm",
        source=stem(table.path),
        is_tuned=True,
    )
    repeats = every - len(rows)
    return Found(
        data, {"differs from another row in parameters without effect": repeats} if repeats else {}
    )


def xgemm_trees(c: dict[str, Numbers]) -> list[list[ProgramTree]]:
    """C[n, m] = A[k, m] · B[k, n] + C[n, m]: parameters by their names in the rows, and M, N, K."""
    blocks = ceil_div(c["M"], c["MWG"]) * ceil_div(c["N"], c["NWG"])

    def describe(tree: Tree, some: npt.NDArray[np.int64], key: tuple[Any, ...]) -> None:
        _describe_xgemm(tree, {name: values[some] for name, values in c.items()}, *key)

    return trees_of((c["SA"], c["SB"]), blocks, describe)


def _describe_xgemm(tree: Tree, c: dict[str, Numbers], staged_a: int, staged_b: int) -> None:
    m, n, k = c["M"], c["N"], c["K"]
    threads = c["MDIMC"] * c["NDIMC"]
    own_m, own_n = c["MWG"] // c["MDIMC"], c["NWG"] // c["NDIMC"]
    a = tree.buffer("a", strides=[1, 0, m], elements=m * k)
    b = tree.buffer("b", strides=[0, 1, n], elements=n * k)
    output = tree.buffer("c", strides=[1, m, 0], elements=m * n)
    sums = tree.buffer("sums", "registers", strides=[1, c["MWG"], 0], elements=own_m * own_n)
    tile = [c["MWG"], c["NWG"], c["KWG"]]
    read_a, read_b = a, b
    if staged_a:
        read_a = tree.buffer(
            "a tile", "shared", strides=[1, 0, c["MWG"]], tile=tile, elements=c["MWG"] * c["KWG"]
        )
    if staged_b:
        read_b = tree.buffer(
            "b tile", "shared", strides=[0, 1, c["NWG"]], tile=tile, elements=c["NWG"] * c["KWG"]
        )
    workers = [
        loop("worker", c["MDIMC"], "thread", M, own_m),
        loop("worker", c["NDIMC"], "thread", N, own_n),
    ]
    width_m, width_n = np.minimum(c["VWM"], own_m), np.minimum(c["VWN"], own_n)
    points = [
        loop("point", own_n // width_n, "unrolled", N, width_n),
        loop("element", width_n, "unrolled", N),
        loop("point", own_m // width_m, "unrolled", M, width_m),
        loop("element", width_m, "vectorized", M),
    ]

    def copy(
        name: str,
        axis: int,
        threads_along: Numbers,
        extent: Numbers,
        width: Numbers,
        source: int,
        target: int,
    ) -> None:
        own, rows = extent // threads_along, c["KWG"] * threads_along // threads
        width = np.minimum(width, own)
        with tree.nest(
            loop("thread", threads // threads_along, "thread", K, rows),
            loop("thread", threads_along, "thread", axis, own),
            loop("slot", rows, "unrolled", K),
            loop("slot", own // width, "unrolled", axis, width),
            loop("element", width, "vectorized", axis),
        ):
            tree.statement(name, reads=[source], writes=[target])

    with tree.nest(
        loop("m", ceil_div(m, c["MWG"]), "grid", M, c["MWG"]),
        loop("n", ceil_div(n, c["NWG"]), "grid", N, c["NWG"]),
    ):
        with tree.nest(*workers, *points):
            tree.statement("initialize", writes=[sums])
        with tree.nest(loop("step", ceil_div(k, c["KWG"]), "serial", K, c["KWG"], True)):
            if staged_a:
                copy("copy a", M, c["MDIMA"], c["MWG"], c["VWM"], a, read_a)
            if staged_b:
                copy("copy b", N, c["NDIMB"], c["NWG"], c["VWN"], b, read_b)
            # The loop over a step's elements is unrolled twice (KWI).
            with tree.nest(
                *workers,
                loop("k", ceil_div(c["KWG"], 2), "serial", K, 2, True),
                loop("k", 2, "unrolled", K, 1, True),
                *points,
            ):
                tree.statement(
                    "multiply", {"float-multiply-add": 1}, reads=[read_a, read_b], updates=[sums]
                )
        with tree.nest(*workers, *points):
            tree.statement("store", {"float-multiply-add": 1}, reads=[sums], updates=[output])


# Extents of the image convolution's output and of its filter, which lies in constant memory.
_IMAGE, _FILTER = 4096, 15
_Y, _X, _FILTER_Y, _FILTER_X = range(4)
_CONVOLUTION = (
    "block_size_x",
    "block_size_y",
    "tile_size_x",
    "tile_size_y",
    "read_only",
    "use_padding",
    "use_shmem",
)


def _convolution(table: Table, cards: Cards) -> Found:
    """An image convolution of one channel (benchmark_hub's `convolution_milo`)."""
    device, names, figures = cards.index_rows(table)
    c = {
        name: table.numbers(
            name, whole=True, low=0 if name[:4] in ("read", "use_") else 1, high=MAX_TILE
        ).astype(np.int64)
        for name in _CONVOLUTION
    }
    microseconds, is_measured = read_measured(table, "time_ms")
    c = {name: values[is_measured] for name, values in c.items()}
    fold = np.array(
        [fold_of(*row) for row in zip(*(c[name].tolist() for name in _CONVOLUTION))], np.int64
    )
    data = Dataset.make(
        convolution_trees(c),
        microseconds[is_measured],
        device[is_measured],
        names,
        figures,
        key=[f"image-convolution {_IMAGE}x{_IMAGE} {_FILTER}x{_FILTER} f32"]
        * int(is_measured.sum()),
        fold=fold,
        operator="image-convolution",
        source=stem(table.path),
        is_tuned=True,
    )
    failed = int((~is_measured).sum())
    return Found(data, {"failed to launch": failed} if failed else {})


def convolution_trees(c: dict[str, Numbers]) -> list[list[ProgramTree]]:
    """Each thread has tile_size_y × tile_size_x outputs, neighbours a block apart; with `use_shmem` blocks
    copy what they read. `read_only`: what loads the image is a call."""
    blocks = ceil_div(_IMAGE, c["block_size_x"] * c["tile_size_x"]) * ceil_div(
        _IMAGE, c["block_size_y"] * c["tile_size_y"]
    )

    def describe(tree: Tree, some: npt.NDArray[np.int64], key: tuple[Any, ...]) -> None:
        _describe_convolution(tree, {name: values[some] for name, values in c.items()}, *key)

    return trees_of((c["use_shmem"],), blocks, describe)


def _describe_convolution(tree: Tree, c: dict[str, Numbers], is_staged: int) -> None:
    block_y, block_x, tile_y, tile_x = (
        c[name] for name in ("block_size_y", "block_size_x", "tile_size_y", "tile_size_x")
    )
    border = _FILTER - 1
    width = _IMAGE + border
    image = tree.buffer("image", strides=[width, 1, width, 1], elements=width * width)
    weights = tree.buffer("filter", strides=[0, 0, _FILTER, 1], elements=_FILTER * _FILTER)
    output = tree.buffer("output", strides=[_IMAGE, 1, 0, 0], elements=_IMAGE * _IMAGE)
    sums = tree.buffer("sums", "registers", strides=[tile_x, 1, 0, 0], elements=tile_y * tile_x)
    # Loads through the read-only cache are calls of an intrinsic (`__ldg`), which Ansor counts as another function.
    from_image = {"float-other": c["read_only"]}
    read = image
    rows, columns = block_y * tile_y + border, block_x * tile_x + border
    # Padding keeps neighbours along y as many banks apart as threads along x.
    pitch = np.where(c["use_padding"] == 1, columns + (block_x - columns) % 32, columns)
    if is_staged:
        read = tree.buffer(
            "image tile", "shared", strides=[pitch, 1, pitch, 1], tile=[block_y * tile_y, block_x * tile_x, _FILTER, _FILTER],
            elements=rows * pitch,
        )  # fmt: skip
    threads = [loop("thread", block_y, "thread", _Y), loop("thread", block_x, "thread", _X)]
    points = [
        loop("tile", tile_y, "unrolled", _Y, block_y),
        loop("tile", tile_x, "unrolled", _X, block_x),
    ]
    with tree.nest(
        loop("y", ceil_div(_IMAGE, block_y * tile_y), "grid", _Y, block_y * tile_y),
        loop("x", ceil_div(_IMAGE, block_x * tile_x), "grid", _X, block_x * tile_x),
        *threads,
    ):
        if is_staged:
            with tree.nest(
                loop("row", ceil_div(rows, block_y), "serial", _Y, block_y),
                loop("column", ceil_div(columns, block_x), "serial", _X, block_x),
            ):
                tree.statement("copy image", from_image, reads=[image], writes=[read])
        with tree.nest(*points):
            tree.statement("initialize", writes=[sums])
        with tree.nest(
            loop("filter y", _FILTER, "unrolled", _FILTER_Y, 1, True),
            loop("filter x", _FILTER, "unrolled", _FILTER_X, 1, True),
            *points,
        ):
            multiply = {"float-multiply-add": 1, **({} if is_staged else from_image)}
            tree.statement("multiply", multiply, reads=[read, weights], updates=[sums])
        with tree.nest(*points):
            tree.statement("store", reads=[sums], writes=[output])


SOURCES = [
    Source("xgemm", configuration_rows.COLUMNS, _xgemm),
    Source("image-convolution", (*_CONVOLUTION, "time_ms"), _convolution),
]
