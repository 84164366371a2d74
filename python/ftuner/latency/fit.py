"""Constants of the latency model from measurements.

Bounded least squares of ln(predicted / measured), robust (soft L1 beyond 8 %), in the
logarithms of the constants. A device's own constants have a Gaussian prior around the values
that the fit starts from: the fewer the rows, the stronger. What devices share has none, and
stays where the rows do not move it clearly.
"""

from __future__ import annotations

import dataclasses
from typing import Any, Mapping, Sequence

import numpy as np
import numpy.typing as npt
from scipy.optimize import least_squares

from .model import Array, Constants, model
from .rows import Rows

# What differs between devices: fitted for each. The global constants are their geometric
# means, so that every device counts the same.
OWN = (
    "fma",
    "block_start",
    "flop_energy",
    "power_delay",
    "l2_bytes_per_cycle",
    "unaligned_store",
    "narrow_run",
)
# Of those, what only cards tell that are always at their power limit: no means.
_ODD = ("power_delay",)
# What rows of several devices determine together.
SHARED = (
    "dram_share",
    "narrow_run_depth",
    "drift",
    "drift_rows",
)
# What only kernels determine that a compiler scheduled, and that do not all prefetch:
# configurations of one kernel, or FTuner's own.
COMPILED_GROUPS = ("configurations", "ftuner")
COMPILED = ("overlap_by_warps", "loaded_register", "line", "direct_latency", "spill")
# The rest stays: other, overlap, global_latency, l2_share, l2_energy, dram_energy, idle_power,
# launch, second_kernel (docs/latency.md says why).
# Microseconds that a host adds to a launch, if nothing else is known, and the bounds of fits.
HOST_OFFSET = 25.0
_OFFSET_BOUNDS = (0.5, 200.0)
# Relative errors beyond this count linearly.
SCALE = 0.08
# A constant stays where a change of it by 1 % changes predictions by less than this many
# percent (root mean square): with a prior, and with none that would hold it.
LEAST_EFFECT = 0.002
LEAST_EFFECT_ALONE = 0.02
FEWEST_ROWS = 30
# Larger fits take a sample.
ROWS_OF_DEVICE = 3000


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
    timed = sorted(set(rows.device[rows.is_host].tolist())) if fit_offset else []
    measured = np.log(rows.microseconds)
    if not len(rows):
        return Fit(dict(start), offsets, [], list(free))

    def residuals(constants: Mapping[str, float], offsets: Array) -> Array:
        return rows.weight * (np.log(rows.predict(constants, offsets)) - measured)

    for index in timed:
        # Above the floor the rows would not move it.
        floors = rows.floor[(rows.device == index) & rows.is_host & (rows.floor > 0)]
        if len(floors):
            offsets[index] = min(offsets[index], 0.8 * floors.min())
    here = residuals(start, offsets)
    least = LEAST_EFFECT if prior else LEAST_EFFECT_ALONE

    def is_moved(constants: Mapping[str, float], changed: Array, mask: Any = slice(None)) -> bool:
        effect = (residuals(constants, changed) - here)[mask] / np.log(1.05)
        return bool(np.sqrt(np.mean(effect**2)) >= least)

    unmoved = [
        name for name in free if not is_moved({**start, name: start[name] * 1.05}, offsets)
    ]
    timed = [index for index in timed if is_moved(start, offsets * 1.05, rows.device == index)]
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


def fit_own(
    rows: Rows, start: Mapping[str, float], offset: Any = HOST_OFFSET, names: Sequence[str] = ()
) -> Fit:
    """Constants of the one device of the rows, from a few dozen of them up.

    `names` are those to fit instead of the usual ones.
    """
    free = names or [*OWN, *(COMPILED if has_compiled(rows) else ())]
    prior = prior_weight(len(rows))
    # Kinds of rows count the same, however many there are of each.
    few = sample(rows, np.ones(len(rows), bool), ROWS_OF_DEVICE)
    return fit(few, start, free, prior=prior, offset=offset, fit_offset=True)


def fit_timing(rows: Rows, constants: Mapping[str, float], offset: Any = HOST_OFFSET) -> Array:
    """What the hosts add to launches on each device, given the constants."""
    few = sample(rows, np.ones(len(rows), bool), ROWS_OF_DEVICE * len(set(rows.device)))
    prior = prior_weight(len(few))
    return fit(few, constants, (), prior=prior, offset=offset, fit_offset=True).offset


def has_compiled(rows: Rows) -> bool:
    """Whether the rows have kernels that a compiler scheduled."""
    return any(group in COMPILED_GROUPS for group in set(rows.group))


@dataclasses.dataclass
class GlobalFit:
    """Constants for all devices, what a host adds to a launch, and the devices' own."""

    constants: Constants
    offset: float
    free: list[str]
    own: dict[int, Fit]


def shared_names() -> list[str]:
    """Constants that fits of several devices determine."""
    return [name for name in (*OWN, *SHARED, *COMPILED) if name not in _ODD]


def fit_global(
    rows: Rows,
    start: Mapping[str, float],
    names: Sequence[str] = (),
    rows_of_device: int = 1500,
    rows_of_all: int = 5000,
    seed: int = 0,
) -> GlobalFit:
    """Constants for devices that no row is of.

    First each device's own constants and, of those devices whose rows move a constant, the
    mean; then what devices share; at last what compiled kernels alone determine.
    """
    compiled = np.isin(rows.group.astype(str), COMPILED_GROUPS)
    # Configurations are of one size: they say nothing of what all devices share.
    several = rows.group != "configurations"
    wanted = names or shared_names()
    own_names = [name for name in OWN if name in wanted]
    shared = [name for name in SHARED if name in wanted]
    constants: Constants = dict(start)
    offset: float = HOST_OFFSET
    own: dict[int, Fit] = {}
    if several.any():
        pooled = sample(rows, several, rows_of_all, seed)
        for index in sorted(set(rows.device[several])):
            few = sample(rows, several & (rows.device == index), rows_of_device, seed)
            own[int(index)] = fit(
                few,
                constants,
                own_names,
                prior=prior_weight(len(few)),
                offset=offset,
                fit_offset=True,
            )
        for name in own_names:
            moved = [found.constants[name] for found in own.values() if name in found.free]
            constants[name] = _mean(moved) if moved else constants[name]
        if rows.is_host[several].any():
            offset = _mean([float(found.offset[index]) for index, found in own.items()])
        constants = fit(pooled, constants, shared, offset=offset).constants
    if compiled.any():
        last = [name for name in COMPILED if name in wanted]
        constants = fit(rows[compiled], constants, last, offset=offset).constants
    free = [name for name in constants if constants[name] != start[name]]
    return GlobalFit(constants, offset, free, own)


def _mean(values: Sequence[float]) -> float:
    """The geometric mean."""
    return float(np.exp(np.mean(np.log(values))))
