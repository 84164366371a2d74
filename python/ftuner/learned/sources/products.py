"""Products of vendors' libraries."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ...describe import descriptions
from ...latency import vendor
from ...latency.fit import fit_timing
from ...latency.measurements import token_rows, vendor_rows
from ...latency.measurements.rows import (
    MAX_EXTENT,
    MeasurementTable,
    read_folds,
    read_times,
    rows_of,
)
from ...latency.measurements.table import Table
from ...latency.measurements.vendor_rows import STEP, FmaKernels
from ...latency.model import Array, Launches, ProgramTree, model
from ..dataset import PROXY, Dataset, vectors
from ..kernels import Numbers, Products, TensorProducts
from .formats import Cards, Found, Source, pieces, stem


def predictions(rows: MeasurementTable) -> Array:
    """Microseconds by the latency model, as the measurement would report them: each card with the constants
    that the compiler takes. What a host adds is fitted on the rows but those of fold 0."""
    predicted = np.full(len(rows), np.nan)
    for index in np.unique(rows.device):
        is_of_device = rows.device == index
        constants = model().default_calibration(rows.devices.sources[index])
        offset: npt.ArrayLike = 0.0
        fitted = is_of_device & (rows.fold != 0)
        if rows.is_host[is_of_device].any() and fitted.any():
            offset = fit_timing(rows[fitted], constants)
        predicted[is_of_device] = rows[is_of_device].predict(constants, offset)
    return predicted


def _vendor(table: Table, cards: Cards) -> Found:
    """f32 products whose kernels are known by their names (`vendor_rows`)."""
    every = len(table)
    rows = vendor_rows.read(table, cards.devices, None)
    left_out = {"no tile in the kernel's name, or tensor cores": every - len(rows)}
    is_fit = rows.is_fit
    left_out["below twice the launch floor"] = int((~is_fit).sum())
    rows = rows[is_fit]
    sizes = [rows.extra[name].astype(np.int64) for name in "BMNK"]
    operator = rows.extra["op"].astype(str)
    kernels = FmaKernels(
        **{field.name: rows.extra[field.name] for field in dataclasses.fields(FmaKernels)}
    )
    products = fma_products(
        kernels,
        sizes,
        kernels.layout == "tn",
        np.zeros(len(rows), bool),
        operator == "linear",
        operator == "bmm",
    )
    data = Dataset.make(
        products.trees(),
        rows.microseconds,
        rows.device,
        cards.devices.names,
        vectors(cards.devices),
        key=shape_keys(operator, "f32", *sizes),
        fold=rows.fold,
        predicted=predictions(rows),
        operator=operator,
        source=stem(table.path),
    )
    return Found(data, {why: count for why, count in left_out.items() if count})


def fma_products(
    kernels: FmaKernels, sizes: Sequence[Numbers], is_rhs_along_k: npt.NDArray[np.bool_],
    is_lhs_along_m: npt.NDArray[np.bool_], has_bias: npt.NDArray[np.bool_], is_batched: npt.NDArray[np.bool_],
    element_bytes: int = 4,
) -> Products:  # fmt: skip
    """Kernels without tensor cores that `vendor_rows` describes, of products of the sizes batch × M × N × K."""

    def whole(values: Any) -> Numbers:
        return np.asarray(values).astype(np.int64)

    def oriented(first: Any, second: Any) -> tuple[Numbers, Numbers]:
        """Along M and N: a name's first extent lies along N in column-major kernels."""
        is_row_major = np.asarray(kernels.is_row_major, bool)
        return whole(np.where(is_row_major, first, second)), whole(
            np.where(is_row_major, second, first)
        )

    batch, m, n, k = sizes
    tile_m, tile_n = oriented(kernels.tile_m, kernels.tile_n)
    own_m, own_n = oriented(*kernels.thread_tile)
    return Products(
        batch=batch,
        m=m,
        n=n,
        k=k,
        tile_m=tile_m,
        tile_n=tile_n,
        depth=np.full(len(m), STEP),
        stages=whole(kernels.stages),
        split=whole(kernels.split),
        own_m=own_m,
        own_n=own_n,
        threads=whole(kernels.threads),
        slices=whole(kernels.slices),
        has_sums=np.asarray(kernels.has_sums, bool),
        is_rhs_along_k=is_rhs_along_k,
        is_lhs_along_m=is_lhs_along_m,
        has_bias=has_bias,
        is_batched=is_batched,
        element_bytes=element_bytes,
    )


# Rows whose choices of kernels are made at once: all of them are in memory then.
_TOKENS = 4000


def _tokens(table: Table, cards: Cards) -> Found:
    """Products on tensor cores whose kernels nobody names (`token_rows`): each is taken for the one that the
    latency model believes to be the fastest of the library's set."""
    every = len(table)
    parts = [_tokens_of(some, cards) for some in pieces(table, _TOKENS)]
    parts = [part for part in parts if len(part)]
    if not parts:
        raise table.error(0, "expected rows of at least 10 us")
    data = Dataset.concatenate(parts)
    short = every - len(data)
    return Found(data, {"below 10 us, which is ten times the resolution": short} if short else {})


def _tokens_of(table: Table, cards: Cards) -> Dataset:
    rows = token_rows.read(table, cards.devices, None)
    kept = np.flatnonzero(rows.is_fit)
    rows = rows[kept]
    dtype = table.text("dtype", "bf16")[kept].astype(str)
    models = table.text("model", "Llama-3.1-8B" if "layer" in table else "")[kept].astype(str)
    device = rows.device
    trees: list[list[ProgramTree]] = [[] for _ in range(len(rows))]
    predicted = np.empty(len(rows))
    for index, name in sorted(set(zip(device.tolist(), dtype.tolist()))):
        some = np.flatnonzero((device == index) & (dtype == name))
        constants = model().default_calibration(rows.devices.sources[index])
        chosen = rows[some]
        predicted[some] = chosen.predict(constants)
        kernels = tensor_kernels(
            chosen.fastest(constants),
            (chosen.extra["M"], chosen.extra["N"], chosen.extra["K"]),
            name,
            chosen.extra["library"] == "2026",
        )
        for row, tree in zip(some.tolist(), kernels.trees()):
            trees[row] = tree
    sizes = [rows.extra[axis].astype(np.int64) for axis in "MNK"]
    operator = np.array([f"linear-{name}" for name in dtype], str)
    return Dataset.make(
        trees,
        rows.microseconds,
        device,
        cards.devices.names,
        vectors(cards.devices),
        key=shape_keys(operator, "", np.ones(len(rows), np.int64), *sizes),
        fold=rows.fold,
        predicted=predicted,
        operator=operator,
        source=stem(table.path),
        model=models,
        knowledge=PROXY,
    )


def tensor_kernels(
    launches: Launches,
    sizes: tuple[Array, Array, Array],
    dtype: str,
    is_new: npt.NDArray[np.bool_] | bool,
    batch: Numbers | None = None,
) -> TensorProducts:
    """Kernels of launches that `token_rows` describes: `batch` of M × N × K each. `is_new`: of the library of 2026."""
    batch = np.ones(len(launches), np.int64) if batch is None else batch
    size, _, output = token_rows.TYPES[dtype]
    tiles, kernel = token_rows.tiles_of(launches, dtype, is_new)

    def each(values: Iterable[int]) -> Numbers:
        return np.array([*values], np.int64)[kernel]

    warps = [one.groups_along if one.is_warpgroup else one.warps_along for one in tiles]
    problems = launches.grids[:, model().grid_fields.index("problems")].astype(np.int64)
    return TensorProducts(
        batch=batch,
        m=sizes[0].astype(np.int64),
        n=sizes[1].astype(np.int64),
        k=sizes[2].astype(np.int64),
        tile_m=each(one.rows for one in tiles),
        tile_n=each(one.columns for one in tiles),
        warps_m=each(row_warps for row_warps, _ in warps),
        warps_n=each(column_warps for _, column_warps in warps),
        depth=each(one.step_bytes // size for one in tiles),
        stages=each(one.stages for one in tiles),
        split=np.maximum(problems // batch, 1),
        is_warpgroup=each(one.is_warpgroup for one in tiles) > 0,
        is_across=each(one.is_across for one in tiles) > 0,
        element_bytes=size,
        output_bytes=output,
    )


def shape_keys(
    operator: npt.NDArray[np.str_], type: str, *sizes: npt.NDArray[np.int64]
) -> list[str]:
    """Names of tasks, e.g. "linear 1x512x1024x768 f32"."""
    return [
        f"{name} {'x'.join(map(str, shape))} {type}".rstrip()
        for name, *shape in zip(operator.tolist(), *(size.tolist() for size in sizes))
    ]


def taken_for(
    source: str, dtype: str, sizes: tuple[Numbers, Numbers, Numbers, Numbers], rhs_k: npt.NDArray[np.bool_],
    lhs_m: npt.NDArray[np.bool_], is_linear: npt.NDArray[np.bool_],
) -> tuple[list[list[ProgramTree]], Array]:  # fmt: skip
    """Products of batch × M × N × K by a vendor's library that names no kernels, on the device of that name or
    description: trees of those that the latency model believes to be the fastest of the library's set, and its
    predictions. `dtype` is f32, f16 (on tensor cores) or f16-store, of which it predicts nothing."""
    device = vendor.device_of(descriptions.resolve(source).text)
    batch, m, n, k = (size.astype(float) for size in sizes)
    size = len(batch)
    if dtype == "f16":
        launches, row = token_rows.choices_of([device.figures], 0, dtype, "2023", (m, n, k), batch)
    else:
        fma, row = vendor.fma_choices(device, batch, m, n, k)
        launches = vendor.fma_launches(device, fma, (batch[row], m[row], n[row], k[row]))
    times = model().predict(launches, device.constants)
    # The fastest of each product: rows come in any order.
    order = np.lexsort((times, row))
    first = order[np.searchsorted(row[order], np.arange(size))]
    predicted = times[first]
    if dtype == "f16":
        return tensor_kernels(launches[first], (m, n, k), dtype, False, sizes[0]).trees(), predicted
    element_bytes = 4 if dtype == "f32" else 2
    kernels = fma_products(
        rows_of(fma, first), sizes, rhs_k, lhs_m, is_linear, sizes[0] > 1, element_bytes
    )
    return kernels.trees(), predicted if dtype == "f32" else np.full(size, np.nan)


def _deepbench(table: Table, cards: Cards) -> Found:
    """Products by cuBLAS without the names of kernels, column-major: C[M, N] = op(A)[M, K] · op(B)[K, N]."""
    device = cards.devices.index_rows(table)
    m, n, k = (
        table.numbers(name, whole=True, low=1, high=MAX_EXTENT).astype(np.int64) for name in "MNK"
    )
    known = {name: name for name in ("f32", "f16", "f16-store")}
    dtype = table.choose("dtype", "", known.get, "f32, f16 or f16-store").astype(str)
    layouts = {name: name for name in ("nn", "tn", "nt", "tt")}
    layout = table.choose("transpose", "", layouts.get, "nn, tn, nt or tt").astype(str)
    microseconds = read_times(table, "latency_ms")
    one = np.ones(len(table), np.int64)
    # Row by row it is C of N × M, of which B is the first factor.
    rhs_k, lhs_m = np.char.startswith(layout, "t"), np.char.endswith(layout, "t")
    trees: list[list[ProgramTree]] = [[] for _ in range(len(table))]
    predicted = np.full(len(table), np.nan)
    for index, name in sorted(set(zip(device.tolist(), dtype.tolist()))):
        some = np.flatnonzero((device == index) & (dtype == name))
        made, predicted[some] = taken_for(
            cards.devices.sources[index], name, (one[some], n[some], m[some], k[some]), rhs_k[some], lhs_m[some],
            np.zeros(len(some), bool),
        )  # fmt: skip
        for row, tree in zip(some.tolist(), made):
            trees[row] = tree
    operator = np.array([f"product-{name}" for name in dtype], str)
    keys = shape_keys(operator, "", n, m, k)
    data = Dataset.make(
        trees,
        microseconds,
        device,
        cards.devices.names,
        vectors(cards.devices),
        key=[f"{key} {name}" for key, name in zip(keys, layout.tolist())],
        fold=read_folds(table, zip(m, n, k)),
        predicted=predicted,
        operator=operator,
        source=stem(table.path),
        knowledge=PROXY,
    )
    return Found(data)


def _is_tokens(table: Table) -> bool:
    return ("dtype" in table and "layout" in table) or "framework" in table or "layer" in table


SOURCES = [
    Source("vendor-tensor", ("M", "N", "K", "latency_us"), _tokens, accepts=_is_tokens),
    Source("vendor-products", ("M", "N", "K", "dtype", "transpose", "latency_ms"), _deepbench),
    Source(
        "vendor-f32",
        ("kernel", "M", "N", "K", "tile_m", "tile_n", "latency_ms"),
        _vendor,
        needs_all=True,
    ),
]
