"""Constants of the latency model from measurements.

Bounded least squares of ln(predicted / measured), robust (soft L1 beyond 8 %), in the
logarithms of the constants. A device's own constants have a Gaussian prior around the values
that the fit starts from: the fewer the rows, the stronger. What devices share has none, and
stays where the rows do not move it clearly.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.optimize import least_squares

from .measurements.rows import MeasurementTable
from .model import Array, Constants, model

# Constants that differ between devices: they are fitted for each. The global constants are their geometric
# means, so that every device counts the same whose rows move the constant clearly.
OWN = (
    "fma",
    "block_start",
    "flop_energy",
    "power_delay",
    "l2_bytes_per_cycle",
    "unaligned_store",
    "narrow_run",
    "loaded_register",
    "last_round",
)
# Constants that few rows determine: those of cards that are always at their power limit, and those
# of short products by kernels of the tensor cores that are not persistent. They have no means.
_ODD = ("power_delay", "tensor_start")
# Constants that rows of several devices determine together.
SHARED = (
    "dram_share",
    "narrow_run_depth",
    "drift",
    "drift_rows",
)
# Constants that only kernels of the tensor cores determine: they are fitted to their rows for each
# device, and all others are those of the other rows. Global ones are means, too.
TENSOR = (
    "tensor",
    "tensor_l2_bytes_per_cycle",
    "tensor_dram_share",
    "f16_energy",
    "tf32_energy",
    "i8_energy",
    "tensor_start",
    "tensor_l2_share",
)
TENSOR_ENERGIES = ("f16_energy", "tf32_energy", "i8_energy")
# Constants that rows of the tensor cores of several devices determine together.
TENSOR_SHARED = ("dram_start", "second_kernel")
# Constants of these that only kernels with known stages determine.
TENSOR_COMPILED = ("tensor_latency",)
# Constants of memory-bound kernels, of each device and of all devices. The rest are shared with the
# other rows.
MEMORY = ("stream_latency", "stream_l2_bytes_per_cycle", "stream_dram_share", "stream_unaligned")
MEMORY_SHARED = ("stream_l2_share", "stream_overlap_by_blocks")
# Factor by which the prior holds a constant more than others. Most rows tell hardly whether loads wait
# or L2 is slow; those that do (a row in a block, one block in an SM) say that clocks of devices
# differ little in it.
_HELD = {"stream_latency": 20.0}
# Rows that push a constant to a bound while these are free do not tell them: these stay first,
# one after the other.
_FIRST_TO_STAY = ("tensor_start", "tensor_l2_bytes_per_cycle")
# Shares of which 0 and 1 are values like others: a last round may be dealt evenly. Global ones are
# arithmetic means, as a geometric one of a 0 is 0.
_MAY_END_AT_BOUNDS = ("last_round",)
# The best share of its bandwidth that a row of any card reaches (an RTX A6000, whose best is 96.6 %):
# fits may end there, and no prediction is beyond.
_CEILINGS = {"tensor_dram_share": 0.97}
# Groups of kernels that a compiler scheduled and that do not all prefetch: configurations of one
# kernel, or FTuner's own.
COMPILED_GROUPS = ("configurations", "ftuner")
COMPILED = ("overlap_by_warps", "loaded_register", "line", "direct_latency", "spill")
# The rest stays: other, overlap, global_latency, l2_share, l2_energy, dram_energy, idle_power,
# launch, stream_dram_latency (docs/latency.md says why).
# Microseconds that a host adds to a launch, if nothing else is known, and the bounds of fits.
HOST_OFFSET = 25.0
_OFFSET_BOUNDS = (0.5, 200.0)
# Relative errors beyond this count linearly.
SCALE = 0.08
# A constant stays where a change of it by 1 % changes predictions by less than this many
# percent (root mean square): with a prior, and without a prior that would hold it.
MIN_EFFECT = 0.002
MIN_EFFECT_WITHOUT_PRIOR = 0.02
# A device with this effect counts fully in the means of the devices' constants.
CLEAR_EFFECT = 0.02
# A constant as near as this to a bound, relatively, is at it.
_AT_BOUND = 1e-3
MIN_ROWS = 30
# Larger fits take a sample.
ROWS_OF_DEVICE = 3000
# A row of the tensor cores may be dozens of launches (MeasurementTable.choices).
TENSOR_ROWS_OF_DEVICE = 1000
MEMORY_ROWS_OF_DEVICE = 1200
_MEMORY_ROWS_OF_ALL = 8000
_TENSOR_ROWS_OF_ALL = 4000
# Own and shared constants are fitted by turns, so often.
_ROUNDS = 2


@dataclasses.dataclass
class Fit:
    """Constants, what the host added to launches on each device, and which were free."""

    constants: Constants
    offset: Array
    free: list[str]
    # Constants that were to be fitted, and that the rows do not move.
    unmoved: list[str]
    # Constants that the rows push to a bound: they are not fitted and keep their first values.
    at_bounds: list[str] = dataclasses.field(default_factory=list)


def prior_weight(num_rows: int) -> float:
    """Weight of the prior against residuals: 0.5 for 30 rows, 0.1 from 1000."""
    return float(np.clip(0.5 * (30 / max(num_rows, 1)) ** 0.46, 0.1, 0.5))


def sample(
    rows: MeasurementTable, mask: npt.NDArray[np.bool_], size: int, seed: int = 0
) -> MeasurementTable:
    """Up to `size` rows of the mask, as many of each device and group."""
    rng = np.random.default_rng(seed)
    chosen = np.flatnonzero(mask)
    group = np.array([f"{d} {g}" for d, g in zip(rows.device[chosen], rows.group[chosen])])
    names = sorted(set(group))
    share = max(1, size // max(1, len(names)))
    picked = [
        rng.choice(members, min(len(members), share), replace=False)
        for members in (chosen[group == name] for name in names)
    ]
    return rows[np.sort(np.concatenate(picked))] if picked else rows[chosen]


def fit(
    rows: MeasurementTable, start: Mapping[str, float], free: Sequence[str], **options: Any
) -> Fit:
    """Fits the free constants, and a host's offset for each device if asked.

    Constants that the rows do not move stay, and so do those that end at a bound: the
    others are fitted again without them. Of the latter `_FIRST_TO_STAY` go first. Options:

    prior       weight of ln(constant / start) against residuals (0)
    offset      microseconds that hosts add to a launch: one number, or one for each device
    fit_offset  whether to fit those, too
    own         by the index of a device, constants that it has instead
    """
    known = model().constants
    at_bounds: list[str] = []
    while True:
        found = _fit_free(rows, start, [n for n in free if n not in at_bounds], **options)
        stuck = [
            name
            for name in found.free
            if name not in _MAY_END_AT_BOUNDS
            and not known[name].low * (1 + _AT_BOUND)
            < found.constants[name]
            < known[name].high * (1 - _AT_BOUND)
        ]
        if not stuck:
            found.at_bounds = at_bounds
            return found
        at_bounds += [name for name in _FIRST_TO_STAY if name in found.free][:1] or stuck


def _fit_free(
    rows: MeasurementTable,
    start: Mapping[str, float],
    free: Sequence[str],
    prior: float = 0.0,
    offset: Any = HOST_OFFSET,
    fit_offset: bool = False,
    own: Mapping[int, Mapping[str, float]] | None = None,
) -> Fit:
    """`fit` with constants that may end at a bound."""
    known = model().constants
    offsets = np.broadcast_to(np.asarray(offset, float), len(rows.devices.names)).copy()
    timed = sorted(set(rows.device[rows.is_host].tolist())) if fit_offset else []
    measured = np.log(rows.microseconds)
    if not len(rows):
        return Fit(dict(start), offsets, [], list(free))

    # Rows that share all constants.
    masks: list[Any] = [rows.device == index for index in own] if own else [slice(None)]
    groups = list(zip(masks, [rows[mask] for mask in masks], own.values() if own else [{}]))

    def residuals(constants: Mapping[str, float], offsets: Array) -> Array:
        predicted = np.empty(len(rows))
        for mask, some, instead in groups:
            predicted[mask] = some.predict({**constants, **instead}, offsets)
        weighted: Array = rows.weight * (np.log(predicted) - measured)
        return weighted

    for index in timed:
        # Above the floor the rows would not move it.
        floors = rows.floor[(rows.device == index) & rows.is_host & (rows.floor > 0)]
        if len(floors):
            offsets[index] = min(offsets[index], 0.8 * floors.min())
    here = residuals(start, offsets)
    min_effect = MIN_EFFECT if prior else MIN_EFFECT_WITHOUT_PRIOR

    def is_moved(constants: Mapping[str, float], changed: Array, mask: Any = slice(None)) -> bool:
        effect = (residuals(constants, changed) - here)[mask] / np.log(1.05)
        return bool(np.sqrt(np.mean(effect**2)) >= min_effect)

    unmoved = [name for name in free if not is_moved({**start, name: start[name] * 1.05}, offsets)]
    timed = [index for index in timed if is_moved(start, offsets * 1.05, rows.device == index)]
    names = [name for name in free if name not in unmoved]
    if not names and not timed:
        return Fit(dict(start), offsets, [], unmoved)

    low = np.log([max(known[n].low, 1e-9) for n in names] + [_OFFSET_BOUNDS[0]] * len(timed))
    high = np.log(
        [min(known[n].high, _CEILINGS.get(n, np.inf)) for n in names]
        + [_OFFSET_BOUNDS[1]] * len(timed)
    )
    begin = np.log([start[name] for name in names] + [offsets[index] for index in timed])
    begin = np.clip(begin, low + 1e-6, high - 1e-6)
    held = prior * np.array([_HELD.get(n, 1.0) for n in names] + [1.0] * len(timed))

    def unpack(z: Array) -> tuple[Constants, Array]:
        values = np.exp(z)
        moved = offsets.copy()
        moved[timed] = values[len(names) :]
        return {**start, **dict(zip(names, values.tolist()))}, moved

    def objective(z: Array) -> Array:
        out = residuals(*unpack(z))
        return np.concatenate([out, held * (z - begin)]) if prior else out

    found = least_squares(
        objective,
        begin,
        bounds=(low - 1e-9, high + 1e-9),
        loss="soft_l1",
        f_scale=SCALE,
        max_nfev=60,
    )
    constants, offsets = unpack(found.x)
    for name in names:
        constants[name] = float(np.clip(constants[name], known[name].low, known[name].high))
    return Fit(constants, offsets, names, unmoved)


def effect(rows: MeasurementTable, found: Fit, name: str) -> float:
    """Effect of the constant on the rows: d ln(predicted) / d ln(constant), root mean
    square."""
    changed = {**found.constants, name: found.constants[name] * 1.05}
    moved = np.log(rows.predict(changed, found.offset))
    moved -= np.log(rows.predict(found.constants, found.offset))
    return float(np.sqrt(np.mean((moved / np.log(1.05)) ** 2)))


def error(predicted: Array, measured: Array) -> float:
    """Mean of |predicted / measured - 1|."""
    return float(np.abs(predicted / measured - 1).mean()) if len(measured) else float("nan")


def fit_own(
    rows: MeasurementTable,
    start: Mapping[str, float],
    offset: Any = HOST_OFFSET,
    names: Sequence[str] = (),
) -> Fit:
    """Constants of the one device of the rows, from a few dozen of them up.

    `names` are those to fit instead of the usual ones.
    """
    memory = rows.is_memory
    if memory.any():
        others = Fit(dict(start), _offsets(rows, offset), [], [])
        rest = [name for name in names if name not in MEMORY]
        if not memory.all() and (rest or not names):
            others = fit_own(rows[~memory], start, offset, rest)
        return _with_memory(rows[memory], others, [n for n in MEMORY if not names or n in names])
    tensor = rows.is_tensor
    if tensor.any():
        # The others first: they know nothing of the tensor cores.
        rest = [name for name in names if name not in (*TENSOR, *TENSOR_COMPILED)]
        others = Fit(dict(start), _offsets(rows, offset), [], [])
        if not tensor.all() and (rest or not names):
            others = fit_own(rows[~tensor], start, offset, rest)
        usual = (*TENSOR, *(TENSOR_COMPILED if has_compiled(rows[tensor]) else ()))
        return _with_tensor(rows[tensor], others, [n for n in usual if not names or n in names])
    free = names or dict.fromkeys([*OWN, *(COMPILED if has_compiled(rows) else ())])
    prior = prior_weight(len(rows))
    # Kinds of rows count the same, however many there are of each.
    few = sample(rows, np.ones(len(rows), bool), ROWS_OF_DEVICE)
    return fit(few, start, list(free), prior=prior, offset=offset, fit_offset=True)


def _with_energies(constants: Constants, free: Sequence[str]) -> Constants:
    """Operations in tf32 and i8 take twice and half the energy of f16, as an SM does half and twice as many of
    them in a cycle, where no row tells theirs."""
    rates = {"tf32_energy": 2.0, "i8_energy": 0.5}
    scaled = {
        name: factor * constants["f16_energy"] for name, factor in rates.items() if name not in free
    }
    return {**constants, **scaled}


def _offsets(rows: MeasurementTable, offset: Any) -> Array:
    return np.broadcast_to(np.asarray(offset, float), len(rows.devices.names)).copy()


def _with_tensor(rows: MeasurementTable, others: Fit, names: Sequence[str]) -> Fit:
    """Adds constants of the tensor cores to the constants of other rows of the device."""
    few = sample(rows, np.ones(len(rows), bool), TENSOR_ROWS_OF_DEVICE)
    found = fit(few, others.constants, names, prior=prior_weight(len(rows)), offset=others.offset)
    return Fit(
        _with_energies(found.constants, found.free),
        others.offset,
        [*others.free, *found.free],
        [*others.unmoved, *found.unmoved],
        [*others.at_bounds, *found.at_bounds],
    )


def _with_memory(rows: MeasurementTable, others: Fit, names: Sequence[str]) -> Fit:
    """Adds constants of memory-bound kernels to the constants of other rows of the device."""
    few = sample(rows, np.ones(len(rows), bool), ROWS_OF_DEVICE)
    prior = prior_weight(len(rows))
    found = fit(few, others.constants, names, prior=prior, offset=others.offset, fit_offset=True)
    return dataclasses.replace(
        found,
        free=[*others.free, *found.free],
        unmoved=[*others.unmoved, *found.unmoved],
        at_bounds=[*others.at_bounds, *found.at_bounds],
    )


def fit_timing(
    rows: MeasurementTable, constants: Mapping[str, float], offset: Any = HOST_OFFSET
) -> Array:
    """Fits the time that hosts add to launches on each device, given the constants."""
    others = ~rows.is_tensor  # Tensor rows are timed on the device, and may be many launches each.
    few = sample(rows, others, ROWS_OF_DEVICE * len(set(rows.device[others])))
    prior = prior_weight(len(few))
    return fit(few, constants, (), prior=prior, offset=offset, fit_offset=True).offset


def has_compiled(rows: MeasurementTable) -> bool:
    """Returns whether the rows have kernels that a compiler scheduled."""
    return any(group in COMPILED_GROUPS for group in set(rows.group))


@dataclasses.dataclass
class GlobalFit:
    """Constants for all devices, what a host adds to a launch, and the devices' own."""

    constants: Constants
    offset: float
    free: list[str]
    at_bounds: list[str]
    own: dict[int, Fit]


def shared_names() -> list[str]:
    """Constants that fits of several devices determine."""
    every = dict.fromkeys(
        (
            *OWN,
            *SHARED,
            *COMPILED,
            *TENSOR,
            *TENSOR_SHARED,
            *TENSOR_COMPILED,
            *MEMORY,
            *MEMORY_SHARED,
        )
    )
    return [name for name in every if name not in _ODD]


def fit_global(
    rows: MeasurementTable,
    start: Mapping[str, float],
    names: Sequence[str] = (),
    rows_of_device: int = 1500,
    rows_of_all: int = 5000,
    seed: int = 0,
) -> GlobalFit:
    """Constants for devices that no row is of.

    First each device's own constants; of those devices whose rows move a constant, the mean,
    in which they count by how much; then, with each device's own in place, what they share; then
    what compiled kernels alone determine; at last the same for the tensor cores.
    """
    memory = rows.is_memory
    if memory.any():
        others = GlobalFit(dict(start), HOST_OFFSET, [], [], {})
        if not memory.all():
            others = fit_global(rows[~memory], start, names, rows_of_device, rows_of_all, seed)
        return _global_memory(rows[memory], others, start, names, seed)
    tensor = rows.is_tensor
    if tensor.any():
        others = GlobalFit(dict(start), HOST_OFFSET, [], [], {})
        if not tensor.all():
            others = fit_global(rows[~tensor], start, names, rows_of_device, rows_of_all, seed)
        return _global_tensor(rows[tensor], others, start, names, seed)
    compiled = np.isin(rows.group.astype(str), COMPILED_GROUPS)
    # Configurations are of one size: they say nothing of what all devices share.
    several = rows.group != "configurations"
    wanted = names or shared_names()
    own_names = [name for name in OWN if name in wanted]
    shared = [name for name in SHARED if name in wanted]
    constants: Constants = dict(start)
    offset: float = HOST_OFFSET
    own: dict[int, Fit] = {}
    at_bounds: list[str] = []
    weights: dict[tuple[int, str], float] = {}
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
            for name in own[int(index)].free:
                clear = min(effect(few, own[int(index)], name), CLEAR_EFFECT)
                weights[int(index), name] = clear
        for name in own_names:
            moved = [index for index in own if weights.get((index, name), 0) > 0]
            values = [own[index].constants[name] for index in moved]
            if moved and name in _MAY_END_AT_BOUNDS:
                constants[name] = float(np.mean(values))
            elif moved:
                constants[name] = _mean(values, [weights[index, name] for index in moved])
        if rows.is_host[several].any():
            offset = _mean([float(found.offset[index]) for index, found in own.items()])
        each = {
            index: {name: found.constants[name] for name in own_names}
            for index, found in own.items()
        }
        hosts = np.full(len(rows.devices.names), offset)
        for index, found in own.items():
            hosts[index] = found.offset[index]
        found = fit(pooled, constants, shared, offset=hosts, own=each)
        constants, at_bounds = found.constants, found.at_bounds
    if compiled.any():
        last = [name for name in COMPILED if name in wanted]
        found = fit(rows[compiled], constants, last, offset=offset)
        constants, at_bounds = found.constants, [*at_bounds, *found.at_bounds]
    free = [name for name in constants if constants[name] != start[name]]
    return GlobalFit(constants, offset, free, at_bounds, own)


def _global_tensor(
    rows: MeasurementTable,
    others: GlobalFit,
    start: Mapping[str, float],
    names: Sequence[str],
    seed: int,
) -> GlobalFit:
    """Adds constants of the tensor cores to the constants of other rows.

    Each device's own first, then with these in place what all share, and both once more.
    """
    constants, own = dict(others.constants), dict(others.own)
    wanted = [name for name in TENSOR if not names or name in names]
    shared = [name for name in TENSOR_SHARED if not names or name in names]
    weights: dict[tuple[int, str], float] = {}
    found: dict[int, Fit] = {}
    at_bounds = list(others.at_bounds)
    some = {
        index: sample(rows, rows.device == index, TENSOR_ROWS_OF_DEVICE, seed)
        for index in sorted(set(rows.device.tolist()))
    }
    every = sample(rows, np.ones(len(rows), bool), _TENSOR_ROWS_OF_ALL, seed)
    for _ in range(_ROUNDS):
        for index, few in some.items():
            begin = {**(own[index].constants if index in own else constants)}
            begin.update({name: constants[name] for name in shared})
            found[index] = fit(few, begin, wanted, prior=prior_weight(len(few)), offset=0.0)
        each = {index: {n: one.constants[n] for n in wanted} for index, one in found.items()}
        all_of = fit(every, constants, shared, offset=0.0, own=each)
        constants.update({name: all_of.constants[name] for name in shared})
        at_bounds = [*others.at_bounds, *all_of.at_bounds]
    for index, one in found.items():
        for name in one.free:
            weights[index, name] = min(effect(some[index], one, name), CLEAR_EFFECT)
    for name in wanted:
        if name in _ODD:
            continue
        moved = [index for index in found if weights.get((index, name), 0) > 0]
        if moved:
            constants[name] = _mean(
                [found[index].constants[name] for index in moved],
                [weights[index, name] for index in moved],
            )
    fitted = {name for one in found.values() for name in one.free}
    constants = _with_energies(constants, list(fitted))
    free = [name for name in constants if constants[name] != start[name]]
    at_bounds += {n for one in found.values() for n in one.at_bounds}
    return GlobalFit(constants, others.offset, free, at_bounds, {**found, **own})


def _global_memory(
    rows: MeasurementTable,
    others: GlobalFit,
    start: Mapping[str, float],
    names: Sequence[str],
    seed: int,
) -> GlobalFit:
    """Adds constants of memory-bound kernels to the constants of other rows.

    Each device's own first, then with these in place what all share, and both once more. Of the
    devices' own the median: clocks that fall under the power limit, and caches that other
    kernels fill, are in a device's constants, and no other device has them.
    """
    constants, own = dict(others.constants), dict(others.own)
    wanted = [name for name in MEMORY if not names or name in names]
    shared = [name for name in MEMORY_SHARED if not names or name in names]
    present = sorted(set(rows.device.tolist()))
    some = {
        index: sample(rows, rows.device == index, MEMORY_ROWS_OF_DEVICE, seed) for index in present
    }
    found: dict[int, Fit] = {}
    at_bounds = list(others.at_bounds)
    for _ in range(_ROUNDS):
        for index, few in some.items():
            begin = {**(own[index].constants if index in own else constants)}
            begin.update({name: constants[name] for name in (*MEMORY, *MEMORY_SHARED)})
            offset = found[index].offset if index in found else HOST_OFFSET
            prior = prior_weight(len(few))
            found[index] = fit(few, begin, wanted, prior=prior, offset=offset, fit_offset=True)
        for name in wanted:
            values = [one.constants[name] for one in found.values() if name in one.free]
            if values:
                constants[name] = float(np.median(values))
        each = {index: {n: one.constants[n] for n in wanted} for index, one in found.items()}
        hosts = np.full(len(rows.devices.names), HOST_OFFSET)
        for index, one in found.items():
            hosts[index] = one.offset[index]
        every = np.zeros(len(rows), bool)
        every[:: max(1, len(rows) // _MEMORY_ROWS_OF_ALL)] = True
        all_of = fit(
            sample(rows, every, len(rows), seed), constants, shared, offset=hosts, own=each
        )
        constants.update({name: all_of.constants[name] for name in shared})
        at_bounds = [*others.at_bounds, *all_of.at_bounds]
    free = [name for name in constants if constants[name] != start[name]]
    host = [float(one.offset[index]) for index, one in found.items() if some[index].is_host.any()]
    offset = _mean(host) if host else others.offset
    return GlobalFit(constants, offset, free, at_bounds, {**found, **own})


def _mean(values: Sequence[float], weights: Sequence[float] | None = None) -> float:
    """The geometric mean."""
    return float(np.exp(np.average(np.log(values), weights=weights)))
