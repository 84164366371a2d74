"""Constants of the latency model from measurements.

Bounded least squares of ln(predicted / measured), robust (soft L1 beyond 8 %), in the
logarithms of the constants, with a Gaussian prior around the values that the fit starts
from: the fewer the rows, the stronger.
"""

from __future__ import annotations

import dataclasses
from typing import Any, Mapping, Sequence

import numpy as np
import numpy.typing as npt
from scipy.optimize import least_squares

from .model import Array, Constants, model
from .rows import Rows

# Constants that rows of several devices together determine, and the kind of rows that do.
SHARED = (
    "l2_bytes_per_cycle",
    "global_latency",
    "dram_share",
    "unaligned_store",
    "narrow_run",
    "narrow_run_depth",
    "drift",
    "flop_energy",
    "l2_energy",
    "dram_energy",
    "power_delay",
    "second_kernel",
)
COMPILED = ("overlap_by_warps", "loaded_register", "line", "direct_latency", "spill")
# Constants that differ between devices.
OWN = (
    "fma",
    "block_start",
    "flop_energy",
    "power_delay",
    "global_latency",
    "l2_bytes_per_cycle",
    "unaligned_store",
    "narrow_run",
    "loaded_register",
    "line",
)
# Microseconds that a host adds to a launch, if nothing else is known, and the bounds of fits.
HOST_OFFSET = 23.0
_OFFSET_BOUNDS = (0.5, 200.0)
# Relative errors beyond this count linearly.
SCALE = 0.08
# A constant stays where a change of it by e changes no prediction by more than this (root
# mean square).
LEAST_EFFECT = 0.004
FEWEST_ROWS = 30


@dataclasses.dataclass
class Fit:
    """Constants, what the host added to launches on each device, and which were free."""

    constants: Constants
    offset: Array
    free: list[str]
    # Constants that were to be fitted, and that the rows do not move.
    unmoved: list[str]
    rows: int = 0


def prior_weight(num_rows: int) -> float:
    """Weight of the prior against residuals: 0.5 for 30 rows, 0.1 from 1000."""
    return float(np.clip(0.5 * (30 / max(num_rows, 1)) ** 0.46, 0.1, 0.5))


def sample(rows: Rows, mask: npt.NDArray[np.bool_], size: int, seed: int = 0) -> Rows:
    """Up to `size` rows of the mask, as many of each device and group."""
    rng = np.random.default_rng(seed)
    chosen = np.flatnonzero(mask)
    group = np.array([f"{d} {g}" for d, g in zip(rows.device[chosen], rows.group[chosen])])
    names = sorted(set(group))
    share = max(1, size // max(1, len(names)))
    picked = [
        rng.choice(of, min(len(of), share), replace=False)
        for of in (chosen[group == name] for name in names)
    ]
    return rows[np.sort(np.concatenate(picked))] if picked else rows[chosen]


def fit(
    rows: Rows,
    start: Mapping[str, float],
    free: Sequence[str],
    prior: float = 0.0,
    offset: Any = HOST_OFFSET,
    fit_offset: bool = False,
    steps: int = 60,
) -> Fit:
    """Fits the free constants, and a host's offset for each device if asked.

    `prior` is the weight of ln(constant / start) against residuals. Constants that the rows
    do not move stay.
    """
    known = model().constants
    offsets = np.broadcast_to(np.asarray(offset, float), len(rows.devices.names)).copy()
    timed = sorted(set(rows.device[rows.is_host])) if fit_offset else []
    measured = np.log(rows.microseconds)

    def residuals(constants: Mapping[str, float], offsets: Array) -> Array:
        return rows.weight * (np.log(rows.predict(constants, offsets)) - measured)

    unmoved = []
    here = residuals(start, offsets)
    for name in free:
        changed = {**start, name: start[name] * 1.05}
        effect = (residuals(changed, offsets) - here) / np.log(1.05)
        if np.sqrt(np.mean(effect**2)) < LEAST_EFFECT:
            unmoved.append(name)
    names = [name for name in free if name not in unmoved]
    if not names and not timed:
        return Fit(dict(start), offsets, [], unmoved, len(rows))

    low = np.log([max(known[n].low, 1e-9) for n in names] + [_OFFSET_BOUNDS[0]] * len(timed))
    high = np.log([known[n].high for n in names] + [_OFFSET_BOUNDS[1]] * len(timed))
    begin = np.log([start[name] for name in names] + [offsets[index] for index in timed])
    begin = np.clip(begin, low + 1e-6, high - 1e-6)

    def unpack(z: Array) -> tuple[Constants, Array]:
        values = np.exp(z)
        moved = offsets.copy()
        moved[timed] = values[len(names) :]
        return {**start, **dict(zip(names, values.tolist()))}, moved

    def objective(z: Array) -> Array:
        out = residuals(*unpack(z))
        return np.concatenate([out, prior * (z - begin)]) if prior else out

    found = least_squares(
        objective,
        begin,
        bounds=(low - 1e-9, high + 1e-9),
        loss="soft_l1",
        f_scale=SCALE,
        max_nfev=steps,
    )
    constants, offsets = unpack(found.x)
    for name in names:
        constants[name] = float(np.clip(constants[name], known[name].low, known[name].high))
    return Fit(constants, offsets, names, unmoved, len(rows))


def error(predicted: Array, measured: Array) -> float:
    """Mean of |predicted / measured - 1|."""
    return float(np.abs(predicted / measured - 1).mean()) if len(measured) else float("nan")
