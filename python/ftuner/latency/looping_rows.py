"""A bound of the time of Inductor's kernels for rows that it does not hold in registers.

Such a kernel reads a row in a loop for its statistics, and in a second loop for what follows from
them (torch/_inductor/codegen/simd.py). Of the formulas for memory-bound kernels
(docs/latency-memory.md) it is priced by bytes, loads in flight and waves alone, without instructions,
and with the fastest of the sets of warps that Inductor chooses from, so it takes longer than that.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence

import numpy as np

from ..describe import descriptions
from .measurements.memory_rows import block_of, launches_of_blocks
from .model import Array, model
from .vendor import device_of

# Elements that a thread has of each iteration, at least (`triton_config_reduction`,
# torch/_inductor/runtime/triton_heuristics.py), and warps of a block.
_PER_THREAD = 8
_WARPS = (2, 4, 8, 16)
# A reduction across warps (lib/CostModel/Latency/Latency.cpp): cycles of shuffles and of a barrier.
_SYNC = 2 * 5 * 25.0 + 40.0


def predict(
    device: descriptions.Device,
    rows: Sequence[tuple[float, float]],
    read: float,
    read_again: float,
    written: float,
) -> Array:
    """Microseconds that a kernel takes at least, for each number of rows and of their elements.

    Args:
        device: as in `ftuner.compile`.
        read, read_again, written: bytes for each element, of the first loop, of the second, and of
            the results.

    Raises `Error` for a device that is not valid.
    """
    text = descriptions.resolve(device).text
    return _predict(text, tuple((float(m), float(n)) for m, n in rows), read, read_again, written)


@functools.lru_cache(maxsize=256)
def _predict(
    text: str,
    rows: tuple[tuple[float, float], ...],
    read: float,
    read_again: float,
    written: float,
) -> Array:
    found = device_of(text)
    count, length = np.array(rows, float).reshape(-1, 2).T
    moved = count * length * (read + written)
    device = np.zeros(len(count), np.int64)
    times = np.full(len(count), np.inf)
    for warps in _WARPS:
        part = block_of(
            warps,
            0.0,
            length * read,
            length * written,
            rounds=np.ceil(length / (32 * warps * _PER_THREAD)),
            later_passes=read_again / read,
            sync=_SYNC,
        )
        launches = launches_of_blocks(count, part, moved, moved, [found.figures], device)
        np.minimum(times, model().predict(launches, found.constants), out=times)
    times.flags.writeable = False
    return times
