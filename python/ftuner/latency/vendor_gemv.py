"""The vendor's kernels for products of one vector, or of a few, by a matrix, as launches.

cuBLAS computes such products by kernels of their own, which read each element of the matrix once, and not by tiles of
a product. On an H200 a profile names `gemv2T_kernel_val<…, 128, 16, 4, 4, …>` where the rows of the matrix are
contiguous along K, and `gemvx::kernel` where they are not (benchmarks/results/h200-2026-11-26-2/cublas_kernels.txt).
They are priced as memory-bound kernels (docs/latency-memory.md) of this form:

* a block of 128 threads has 16 outputs of each vector, 4 of them by each warp;
* along K a lane loads vectors of four elements: for each of the 4 outputs from the matrix, and one from each vector.
  By the name 4 loads are under way at once;
* where rows of the matrix lie along N instead, a block has loads of `_STRIDED` elements along K under way at once. No
  name says how many: it is fitted to one row, (1, 2304, 768), and rounded.

Loads that wait for one another take most of the time, so up to 8 vectors take about (4 + vectors) / 5 times as long as
one, as an H200 measured (docs/latency.md). The second form is for one vector. The first one's figures hold in 16 bits, too:
with it the error of a vector's products in bf16 on an A100 goes from 22 to 17 % (sglang) and from 30 to 21 % (trtllm) in rows of
gemm_bf16_grid (aiconfigurator). On an H100 one row takes as long there as two, so no such kernel runs.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from .measurements.memory_rows import block_of, launches_of_blocks
from .model import Array, Launches

# Warps of a block, outputs of a block for each vector, and outputs of a warp.
_WARPS, _OUTPUTS, _WARP_OUTPUTS = 4, 16, 4
# Elements of K that a warp loads at once where these are contiguous, and loads that are under way.
_WARP_STEP, _LOADS = 128, 4
# Elements of K that a block loads at once where they are not.
_STRIDED = 40
#: Vectors that a kernel has at most.
MAX_VECTORS = 8
# A shuffle for each halving of a warp, and a barrier (lib/CostModel/Latency/Latency.cpp).
_SYNC = 5 * 25.0 + 40.0


def launches_of(
    sizes: tuple[Array, Array, Array, Array],
    is_contiguous: npt.NDArray[np.bool_],
    element_bytes: int,
    figures: list[dict[str, float]],
    device: npt.NDArray[np.int64],
) -> Launches:
    """Launches for products of vectors by a matrix.

    `sizes`: batch, outputs of each vector, vectors, and K; `is_contiguous`: whether the rows of the matrix are contiguous along K.
    """
    batch, outputs, vectors, k = sizes
    rounds = np.where(
        is_contiguous,
        np.ceil(k / _WARP_STEP) * (_WARP_OUTPUTS + vectors) / _LOADS,
        np.ceil(k / _STRIDED),
    )
    products = _OUTPUTS * vectors * k / 32
    instructions = products + 2 * _WARPS * np.ceil(k / _WARP_STEP) * (_WARP_OUTPUTS + vectors)
    loaded = element_bytes * k * (_OUTPUTS + np.where(is_contiguous, _WARPS, 1) * vectors)
    part: dict[str, Any] = block_of(
        _WARPS,
        instructions,
        loaded,
        element_bytes * _OUTPUTS * vectors,
        registers=64,
        rounds=rounds,
        sync=_SYNC,
    )
    moved = element_bytes * batch * (outputs * k + vectors * k + outputs * vectors)
    return launches_of_blocks(
        batch * np.ceil(outputs / _OUTPUTS), part, moved, moved, figures, device
    )
