"""Products of vendors' libraries."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ... import descriptions
from ...latency import token_rows, vendor, vendor_rows
from ...latency.fit import fit_timing
from ...latency.model import Array, Launches, ProgramTree, model
from ...latency.rows import MOST_EXTENT, Rows, read_folds, read_times
from ...latency.table import Table
from ..dataset import PROXY, Dataset, vectors
from ..kernels import Numbers, Products, TensorProducts
from . import Cards, Found, Source, pieces, stem


def predictions(rows: Rows) -> Array:
    """Microseconds by the latency model, as the measurement would report them: each card with the constants
    that the compiler takes. What a host adds is fitted on the rows but those of fold 0."""
    predicted = np.full(len(rows), np.nan)
    for index in np.unique(rows.device):
        of = rows.device == index
        constants = model().default_calibration(rows.devices.sources[index])
        offset: npt.ArrayLike = 0.0
        fitted = of & (rows.fold != 0)
        if rows.is_host[of].any() and fitted.any():
            offset = fit_timing(rows[fitted], constants)
        predicted[of] = rows[of].predict(constants, offset)
    return predicted


def _vendor(table: Table, cards: Cards) -> Found:
    """f32 products whose kernels are known by their names (`vendor_rows`)."""
    every = len(table)
    rows = vendor_rows.read(table, cards.devices, None)
    left_out = {"no tile in the kernel's name, or tensor cores": every - len(rows)}
    is_fit = rows.is_fit
    left_out["below twice the launch floor"] = int((~is_fit).sum())
    rows = rows[is_fit]
    whole = {
        name: rows.extra[name].astype(np.int64)
        for name in ("B", "M", "N", "K", "tile_m", "tile_n", "threads", "slices", "stages", "split")
    }
    operator = rows.extra["op"].astype(str)
    is_row_major = rows.extra["is_row_major"].astype(bool)
    own_x, own_y = thread_tile(whole["tile_m"], whole["tile_n"], whole["slices"], whole["threads"])

    def along(m: npt.NDArray[np.int64], n: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """A name's first extent lies along N in column-major kernels."""
        return np.where(is_row_major, m, n)

    kernels = Products(
        batch=whole["B"],
        m=whole["M"],
        n=whole["N"],
        k=whole["K"],
        tile_m=along(whole["tile_m"], whole["tile_n"]),
        tile_n=along(whole["tile_n"], whole["tile_m"]),
        own_m=along(own_x, own_y),
        own_n=along(own_y, own_x),
        threads=whole["threads"],
        depth=np.full(len(rows), 8),
        stages=whole["stages"],
        slices=whole["slices"],
        split=whole["split"],
        has_sums=rows.extra["has_sums"].astype(bool),
        is_rhs_along_k=rows.extra["layout"] == "tn",
        is_lhs_along_m=np.zeros(len(rows), bool),
        has_bias=operator == "linear",
        is_batched=operator == "bmm",
    )
    data = Dataset.make(
        kernels.trees(),
        rows.microseconds,
        rows.device,
        cards.devices.names,
        vectors(cards.devices),
        key=shape_keys(operator, "f32", whole["B"], whole["M"], whole["N"], whole["K"]),
        fold=rows.fold,
        predicted=predictions(rows),
        operator=operator,
        source=stem(table.path),
    )
    return Found(data, {why: count for why, count in left_out.items() if count})


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
        of = rows[some]
        predicted[some] = of.predict(constants)
        kernels = tensor_kernels(
            of.fastest(constants), (of.extra["M"], of.extra["N"], of.extra["K"]), name, of.extra["library"] == "2026"
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
    part = dict(zip(model().part_fields, launches.parts[:, -1].T))
    grid = dict(zip(model().grid_fields, launches.grids.T))
    size, _, output = token_rows.TYPES[dtype]
    whole = {name: values.astype(np.int64) for name, values in {**part, **grid}.items() if np.isfinite(values).all()}
    tile_m, tile_n, depth = whole["tile_y"], whole["tile_x"], whole["k_tile"]
    is_warpgroup = part["is_warpgroup"] > 0
    is_across = is_warpgroup & is_new
    warps = whole["warps"] - 4 * is_warpgroup
    is_tall = tile_m > tile_n
    longest = np.maximum(tile_m, tile_n)
    # As `token_rows.VendorTile.warps_along` has them.
    long_warps = np.where(warps == 8, 4, np.where(longest > 128, 4, 2))
    other_warps = np.maximum(warps // long_warps, 1)
    groups = np.maximum(warps // 4, 1)
    # Groups lie along their 64 rows, as far as there are so many.
    long = np.where(is_across, tile_n, tile_m)
    along = np.minimum(groups, np.maximum(long // 64, 1))
    beside = groups // along
    return TensorProducts(
        batch=batch,
        m=sizes[0].astype(np.int64),
        n=sizes[1].astype(np.int64),
        k=sizes[2].astype(np.int64),
        tile_m=tile_m,
        tile_n=tile_n,
        warps_m=np.where(is_warpgroup, np.where(is_across, beside, along), np.where(is_tall, long_warps, other_warps)),
        warps_n=np.where(is_warpgroup, np.where(is_across, along, beside), np.where(is_tall, other_warps, long_warps)),
        depth=depth,
        stages=np.maximum((whole["shared_memory_bytes"] - 1024) // ((tile_m + tile_n) * depth * size), 1),
        split=np.maximum(whole["problems"] // batch, 1),
        is_warpgroup=is_warpgroup,
        is_across=is_across,
        element_bytes=size,
        output_bytes=output,
    )


def shape_keys(operator: npt.NDArray[np.str_], type: str, *sizes: npt.NDArray[np.int64]) -> list[str]:
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
        launches, row = vendor.fma_choices(device, batch, m, n, k)
    times = model().predict(launches, device.constants)
    # The fastest of each product: rows come in any order.
    order = np.lexsort((times, row))
    first = order[np.searchsorted(row[order], np.arange(size))]
    launches, predicted = launches[first], times[first]
    if dtype == "f16":
        return tensor_kernels(launches, (m, n, k), dtype, False, sizes[0]).trees(), predicted
    part = dict(zip(model().part_fields, launches.parts[:, -1].T))
    grid = dict(zip(model().grid_fields, launches.grids.T))

    def whole(values: Array) -> Numbers:
        return np.round(values).astype(np.int64)

    is_row_major = np.full(size, device.capability >= 9)
    tile_x, tile_y, threads = whole(grid["tile_x"]), whole(grid["tile_y"]), whole(32 * part["warps"])
    slices = np.maximum(whole(part["shared_memory_bytes"] / (64 * (tile_x + tile_y))), 1)
    own_x, own_y = thread_tile(tile_x, tile_y, slices, threads)
    kernels = Products(
        *sizes,
        tile_m=np.where(is_row_major, tile_x, tile_y),
        tile_n=np.where(is_row_major, tile_y, tile_x),
        own_m=np.where(is_row_major, own_x, own_y),
        own_n=np.where(is_row_major, own_y, own_x),
        threads=threads,
        depth=np.full(size, 8),
        stages=whole(1 + 1 / part["exposed_loads"]),
        slices=slices,
        split=np.maximum(whole(k / grid["reduce_length"]), 1),
        has_sums=grid["second_kernels"] > 0,
        is_rhs_along_k=rhs_k,
        is_lhs_along_m=lhs_m,
        has_bias=is_linear,
        is_batched=sizes[0] > 1,
        element_bytes=4 if dtype == "f32" else 2,
    )
    return kernels.trees(), predicted if dtype == "f32" else np.full(size, np.nan)


def thread_tile(tile_x: Numbers, tile_y: Numbers, slices: Numbers, threads: Numbers) -> tuple[Numbers, Numbers]:
    """A thread's accumulators along x and y, as the latency model has them: as square as can be."""
    sums = np.maximum(tile_x * tile_y * slices // threads, 1)
    own_x = np.minimum(2 ** np.ceil(np.log2(sums) / 2).astype(np.int64), tile_x)
    return own_x, np.clip(sums // own_x, 1, tile_y)


def _deepbench(table: Table, cards: Cards) -> Found:
    """Products by cuBLAS without the names of kernels, column-major: C[M, N] = op(A)[M, K] · op(B)[K, N]."""
    device = cards.devices.of(table)
    m, n, k = (
        table.numbers(name, whole=True, low=1, high=MOST_EXTENT).astype(np.int64) for name in "MNK"
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
    Source("vendor-f32", ("kernel", "M", "N", "K", "tile_m", "tile_n", "latency_ms"), _vendor, needs_all=True),
]
