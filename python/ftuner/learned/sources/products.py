"""Products of vendors' libraries."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ...latency import vendor_rows
from ...latency.fit import fit_timing
from ...latency.model import Array, model
from ...latency.rows import Rows
from ...latency.table import Table
from ..dataset import Dataset
from ..kernels import Products, ceil_div
from . import Cards, Found, Source, stem, vectors_of


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
    # A thread's accumulators, as the latency model has them: as square as can be.
    sums = np.maximum(whole["tile_m"] * whole["tile_n"] * whole["slices"] // whole["threads"], 1)
    own_x = np.minimum(2 ** np.ceil(np.log2(sums) / 2).astype(np.int64), whole["tile_m"])
    own_y = np.clip(sums // own_x, 1, whole["tile_n"])

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
        vectors_of(cards.devices),
        key=shape_keys(operator, "f32", whole["B"], whole["M"], whole["N"], whole["K"]),
        fold=rows.fold,
        predicted=predictions(rows),
        operator=operator,
        source=stem(table.path),
    )
    return Found(data, {why: count for why, count in left_out.items() if count})


def shape_keys(operator: npt.NDArray[np.str_], type: str, *sizes: npt.NDArray[np.int64]) -> list[str]:
    """Names of tasks, e.g. "linear 1x512x1024x768 f32"."""
    return [
        f"{name} {'x'.join(map(str, shape))} {type}"
        for name, *shape in zip(operator.tolist(), *(size.tolist() for size in sizes))
    ]


SOURCES = [
    Source("vendor-f32", ("kernel", "M", "N", "K", "tile_m", "tile_n", "latency_ms"), _vendor),
]
