"""Predicted times of products by the vendor's library, for devices at hand.

Nobody says which kernel the library will run, so it is taken to be the fastest of a stated set by
the latency model: on tensor cores that of `token_rows`, on CUDA cores the tiles that published
profiles of f32 products name (`vendor_rows`), and kernels for a vector or a few (`vendor_gemv`). docs/latency.md and
docs/latency-tensor-cores.md have the errors against measured rows, docs/latency.md also those at
the ends of M and N.
"""

from __future__ import annotations

import functools
import itertools
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ..describe import descriptions
from ..host import processes
from . import vendor_gemv
from .measurements import token_rows
from .measurements.vendor_rows import FmaKernels, launches_of, usual_threads
from .model import Array, Constants, Launches, model

#: A product: how many of them, and their extents M, N and K.
Product = tuple[int, int, int, int]


@dataclass(frozen=True)
class _FmaSet:
    """Tiles of cuBLAS's f32 kernels: extents along M and N (`is_row_major`; else along N and M) and
    groups of warps that share the elements of a step.

    `batched`: those of several products in one launch. Before Hopper the library takes few tiles
    for these, also where others would be faster: on an A100 of 16,661 measured ones
    16,588 had 128 × 128, for which the model's error is 7 %, and 39 % with all tiles.
    """

    tiles: tuple[tuple[int, int, int], ...]
    batched: tuple[tuple[int, int, int], ...]
    stages: int
    is_row_major: bool = False


_COLUMN_MAJOR = (
    *((m, n, 1) for m, n in ((32, 32), (32, 128), (128, 32), (64, 64), (128, 64), (128, 128))),
    *((m, n, 4) for m, n in ((32, 32), (64, 32), (128, 32))),
)
_ROW_MAJOR = tuple(
    (m, n, 1)
    for m, n in (
        (32, 32), (32, 64), (64, 32), (128, 32), (64, 64), (64, 128), (128, 64), (128, 128),
        (64, 256), (256, 64), (256, 128), (128, 256),
    )
)  # fmt: skip
# On P4 and P100 all 12,846 measured linear layers ran one of these.
_PASCAL = ((32, 128, 1), (64, 64, 1), (128, 32, 1))
# By the least compute capability: "maxwell" and "volta" kernels, "ampere" kernels, and those of
# Hopper ("xmma"), as gemm_latency_train and gemm_latency_h100 (NeuSight) have them.
_FMA_SETS = {
    0: _FmaSet(_PASCAL, ((128, 64, 1),), stages=2),
    7: _FmaSet(_COLUMN_MAJOR, ((128, 64, 1), (64, 64, 1), (32, 128, 1), (128, 32, 1)), stages=2),
    8: _FmaSet(_COLUMN_MAJOR, ((128, 128, 1),), stages=4),
    9: _FmaSet(_ROW_MAJOR, _ROW_MAJOR, stages=3, is_row_major=True),
}
# Tensor cores take bf16 from this compute capability on.
_BF16 = 8
# Slices of K, while blocks are at most two for each SM. For 64 rows of K = 768 cuBLAS takes 64 × 64 tiles and a second
# kernel on an H200, which 3 slices of 36 blocks would not explain: 6 take the measured time.
_SPLITS = (1, 2, 3, 4, 6, 8, 16)
_SPLIT_BLOCKS = 2
_SPLIT_LENGTH = 128
# Minimum compute capability of kernels for 2 to 8 vectors: they were measured there, and on the cards before,
# profiles of PyTorch 2.1 name tiles for 3 to 8 rows.
_HOPPER = 9


@dataclass(frozen=True)
class Device:
    """Figures and constants of a device."""

    figures: dict[str, float]
    constants: Constants
    capability: int


@functools.cache
def device_of(text: str) -> Device:
    """The device of a description's text."""
    with processes.temporary_folder() as folder:
        path = Path(folder, "device.json")
        path.write_text(text, encoding="utf-8")
        figures = model().device(str(path))[1]
        constants = model().default_calibration(str(path))
    capability = str(json.loads(text)["compute_capability"])
    return Device(figures, constants, int(capability.partition(".")[0]))


def predict(
    device: descriptions.Device,
    dtype: str,
    products: Sequence[Product],
    library: str = "2026",
    *,
    is_transposed: bool = True,
) -> Array | None:
    """Microseconds that the vendor's library is predicted to take for each product.

    Args:
        device: as in `ftuner.compile`.
        dtype: f32, tf32 (factors of f32, rounded), f16 or bf16; sums are in f32.
        library: the set of kernels on tensor cores, one of `token_rows.LIBRARIES`.
        is_transposed: whether the right factor is [N, K] in memory, as PyTorch stores weights, and not [K, N].

    A product without elements takes no time, and does not keep the others from theirs.

    Returns None where nothing is known: 16-bit products on a device whose tensor cores do not take them. Raises
    `Error` for a device that is not valid.
    """
    found = _times(device, dtype, products, library, is_transposed)
    return found and found[0]


def second_kernels(
    device: descriptions.Device,
    dtype: str,
    products: Sequence[Product],
    library: str = "2026",
    *,
    is_transposed: bool = True,
) -> Array | None:
    """Returns the part of `predict` that a second kernel takes to sum slices; 0 without one."""
    found = _times(device, dtype, products, library, is_transposed)
    return found and found[1]


def _times(
    device: descriptions.Device,
    dtype: str,
    products: Sequence[Product],
    library: str,
    is_transposed: bool,
) -> tuple[Array, Array] | None:
    """Times of all kernels, and of second ones: 0 of products without elements."""
    has_work = [0 not in product for product in products]
    some = _key(list(itertools.compress(products, has_work)))
    times, second = np.zeros(len(has_work)), np.zeros(len(has_work))
    if some:
        found = _predict(descriptions.resolve(device).text, dtype, some, library, is_transposed)
        if found is None:
            return None
        times[has_work], second[has_work] = found
    return times, second


def _key(products: Sequence[Product]) -> tuple[Product, ...]:
    return tuple((batch, m, n, k) for batch, m, n, k in products)


@functools.lru_cache(maxsize=256)
def _predict(
    text: str, dtype: str, products: tuple[Product, ...], library: str, is_transposed: bool
) -> tuple[Array, Array] | None:
    """Times of all kernels and of second kernels for a description's text. Layers of a model ask alike."""
    found = device_of(text)
    if dtype == "tf32" and not found.figures["tf32_rate"]:
        dtype = "f32"
    if dtype != "f32":
        rate = token_rows.TYPES[dtype][1].partition("_")[0] + "_rate"
        if not found.figures[rate] or (dtype == "bf16" and found.capability < _BF16):
            return None
    sizes = np.array(products, float).reshape(-1, 4)
    times, second = np.full(len(sizes), np.inf), np.zeros(len(sizes))
    for some in np.array_split(
        np.arange(len(sizes)), range(token_rows.CHUNK, len(sizes), token_rows.CHUNK)
    ):
        for launches, row in _choices(found, dtype, library, sizes[some].T, is_transposed):
            terms = model().explain(launches, found.constants)
            # The last for each product is its fastest.
            order = np.argsort(-terms["total"], kind="stable")
            fastest = np.full(len(some), np.inf)
            seconds = np.zeros(len(some))
            fastest[row[order]] = terms["total"][order]
            seconds[row[order]] = terms["second_kernel"][order]
            is_faster = fastest < times[some]
            times[some[is_faster]] = fastest[is_faster]
            second[some[is_faster]] = seconds[is_faster]
    times.flags.writeable = second.flags.writeable = False
    return times, second


def _choices(
    device: Device, dtype: str, library: str, sizes: Array, is_transposed: bool
) -> Iterator[tuple[Launches, npt.NDArray[np.int64]]]:
    """Launches that products may be, and the product of each, by the kind of kernel."""
    batch, m, n, k = sizes
    if dtype == "f32":
        kernels, row = fma_choices(device, batch, m, n, k)
        yield fma_launches(device, kernels, (batch[row], m[row], n[row], k[row])), row
    else:
        # wgmma reads factors of f32 only along K.
        has_warpgroups = dtype != "tf32" or is_transposed
        yield token_rows.choices_of(
            [device.figures], 0, dtype, library, (m, n, k), batch, has_warpgroups
        )
    # In 16 bits kernels of wgmma compute these, too.
    if dtype in ("f32", "tf32") or device.capability < _HOPPER:
        yield _vector_choices(device, dtype, sizes, is_transposed)


def _vector_choices(
    device: Device, dtype: str, sizes: Array, is_transposed: bool
) -> tuple[Launches, npt.NDArray[np.int64]]:
    """Kernels for products where one factor is a vector, or the left one is a few."""
    batch, m, n, k = sizes
    has_few = is_transposed & (batch == 1) & (device.capability >= _HOPPER)
    max_vectors = np.where(has_few, vendor_gemv.MAX_VECTORS, 1)
    # For N = 1 the matrix is the left factor, which is contiguous along K.
    is_left = (n == 1) & (m > 1)
    row = np.flatnonzero(is_left | (m <= max_vectors))
    is_left = is_left[row]
    outputs, vectors = np.where(is_left, m[row], n[row]), np.where(is_left, 1, m[row])
    launches = vendor_gemv.launches_of(
        (batch[row], outputs, vectors, k[row]),
        is_left | is_transposed,
        4 if dtype == "f32" else token_rows.TYPES[dtype][0],
        [device.figures],
        np.zeros(len(row), np.int64),
    )
    return launches, row


def fma_launches(
    device: Device, kernels: FmaKernels, sizes: tuple[Array, Array, Array, Array]
) -> Launches:
    """Launches of kernels on the device, one for each product of batch × M × N × K."""
    return launches_of(kernels, sizes, [device.figures], np.zeros(len(sizes[0]), np.int64))


def fma_choices(
    device: Device, batch: Array, m: Array, n: Array, k: Array
) -> tuple[FmaKernels, npt.NDArray[np.int64]]:
    """All kernels that f32 products may be of, and the product of each."""
    tile_set = _FMA_SETS[
        max(capability for capability in _FMA_SETS if capability <= device.capability)
    ]
    choices: list[Any] = list(
        itertools.product(dict.fromkeys(tile_set.tiles + tile_set.batched), _SPLITS)
    )
    tile_m, tile_n, slices, split = np.array([(*tile, s) for tile, s in choices], float).T
    of_m, of_n = (tile_m, tile_n) if tile_set.is_row_major else (tile_n, tile_m)
    blocks = batch * np.ceil(m / of_m[:, None]) * np.ceil(n / of_n[:, None]) * split[:, None]
    is_slice = (blocks <= _SPLIT_BLOCKS * device.figures["sm_count"]) & (
        k >= _SPLIT_LENGTH * split[:, None]
    )
    is_choice = np.where(
        batch > 1,
        np.array([tile in tile_set.batched for tile, _ in choices])[:, None]
        & (split[:, None] == 1),
        np.array([tile in tile_set.tiles for tile, _ in choices])[:, None]
        & (is_slice | (split[:, None] == 1)),
    )
    chosen, row = np.nonzero(is_choice)
    kernels = FmaKernels(
        tile_m=tile_m[chosen],
        tile_n=tile_n[chosen],
        layout=np.full(len(row), "tn"),
        slices=slices[chosen],
        stages=np.full(len(row), tile_set.stages),
        threads=usual_threads(tile_m, tile_n, slices)[chosen],
        is_swizzled=np.full(len(row), True),
        is_row_major=np.full(len(row), tile_set.is_row_major),
        split=split[chosen],
        has_sums=split[chosen] > 1,
    )
    return kernels, row
