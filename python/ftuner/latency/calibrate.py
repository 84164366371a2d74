"""Calibrations from measurements: what `ftuner calibrate` does.

A calibration file (docs/calibration.md) holds the constants of one device, or "global".
"""

from __future__ import annotations

import dataclasses
import io
import json
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ..describe import descriptions, plotting
from ..errors import Error
from ..host import processes
from ..host.outputs import cannot_write, target_of
from ..host.progress import is_drawn, is_written
from .fit import (
    HOST_OFFSET,
    MEMORY,
    MEMORY_SHARED,
    MIN_ROWS,
    TENSOR,
    TENSOR_COMPILED,
    TENSOR_ENERGIES,
    Fit,
    error,
    fit_global,
    fit_own,
    fit_timing,
    has_compiled,
    shared_names,
)
from .measurements.rows import MeasurementTable
from .model import Array, Constants, model

# Fits of fewer rows than this are refused.
_MIN_ROWS = 8
# Deviation that the compiler takes for a calibration without one.
DEVIATION = 0.08


@dataclasses.dataclass(frozen=True)
class Source:
    """Origin of the constants of a file: the measurements, the command that fitted them, and the
    SHA-256 of each file of rows by its name."""

    origin: str
    command: str = ""
    data: Mapping[str, str] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass
class Calibration:
    """One file, and how well it fits. Errors are means of |predicted / measured - 1|."""

    name: str
    constants: Constants
    prior: Constants
    deviation: float
    offset: float
    floor: float
    # Constants that were to be fitted, and that the rows do not move, or push to a bound.
    unmoved: list[str]
    at_bounds: list[str]
    # Number and errors of rows by kind ("all", "vendor linear", …): before, after, and held out; each
    # fold by constants of the others, for global constants each device.
    errors: dict[str, tuple[int, float, float, float | None]]
    measured: Array
    before: Array
    after: Array
    # True if the rows determine the deviation; otherwise it is the prior's.
    is_deviation_known: bool = True
    # The chip of the device, if its description says it.
    die: str = ""
    # The fitted constants predicted rows that they did not see no better than the prior's,
    # which are kept.
    is_refused: bool = False
    # True if kernels of the tensor cores were among the rows.
    has_tensor: bool = False
    # True if all rows are of FTuner's own kernels.
    is_own: bool = False
    # Work per energy of the device's process (`Model.device`).
    node_efficiency: float = 1.0
    # True if all rows are of such kernels: then the file is only for the device, since the rows tell
    # nothing of the rest of the die.
    has_only_tensor: bool = False

    def to_json(self, source: Source) -> dict[str, Any]:
        number, before, after, unseen = self.errors["all"]
        out: dict[str, Any] = {
            "name": self.name,
            **({"die": self.die} if self.die and not self.has_only_tensor else {}),
            **({"kernels": "own"} if self.is_own else {}),
            "constants": {name: _rounded(value) for name, value in self.constants.items()},
            "deviation": _rounded(self.deviation),
            "origin": source.origin,
            **({"command": source.command} if source.command else {}),
            **({"data": dict(source.data)} if source.data else {}),
            "fit": {
                "rows": number,
                "error_before": _rounded(before),
                "error_after": _rounded(after),
                **({} if unseen is None else {"error_unseen": _rounded(unseen)}),
            },
        }
        if self.offset or self.floor:
            out["timing"] = {"offset_us": _rounded(self.offset), "floor_us": _rounded(self.floor)}
        return out

    def process_distance(self, other: Calibration) -> float:
        """Returns the distance between the processes of two devices."""
        return float(abs(np.log(self.node_efficiency / other.node_efficiency)))

    def changed(self) -> list[str]:
        """Constants that differ from the prior's."""
        return [
            name
            for name, value in self.constants.items()
            if abs(value - self.prior[name]) > 1e-3 * abs(self.prior[name])
        ]


def _rounded(value: float) -> float:
    return float(f"{value:.4g}")


def usable(rows: MeasurementTable) -> tuple[MeasurementTable, str]:
    """The rows that tell of kernels, and what to say about the others."""
    keep = rows.is_fit
    if keep.all():
        return rows, ""
    text = f"{(~keep).sum()} of {len(rows)} rows were left out: below twice the launch floor."
    return rows[keep], text


def span_warnings(rows: MeasurementTable, constants: Mapping[str, float]) -> list[str]:
    """Says where the rows cover too little for constants that hold beyond them."""
    out = []
    if len(rows) < MIN_ROWS:
        out.append(f"only {len(rows)} rows: take at least {MIN_ROWS}")
    groups = sorted(set(rows.group))
    if len(groups) == 1:
        out.append(
            f"all rows are of one kind ({groups[0]}): others may be predicted worse than before"
        )
    decades = np.log10(rows.microseconds.max() / rows.microseconds.min())
    if decades < 1:
        out.append(
            f"the times span {10**decades:.2g} x: take at least a decade, or shorter and longer "
            "kernels may be predicted worse than before"
        )
    terms = model().explain(rows.fastest(constants), constants)
    if np.mean(terms["dram_time"] > 0.7 * terms["sm_time"]) < 0.02:
        out.append("hardly any rows are bound by memory: they say little of the constants of DRAM")
    if np.mean(terms["issue"] > 0.4 * terms["total"]) < 0.02:
        out.append(
            "hardly any rows are bound by arithmetic: they say little of the constants of issue"
        )
    return out


def _deviation(rows: MeasurementTable, predicted: Array) -> float | None:
    """Standard deviation of ln(predicted / measured) between kernels for one shape.

    Only kernels within twice the best's time count, since a choice is among them. None if they
    are too few: vendor rows have one kernel for each shape.
    """
    shape = np.unique(np.column_stack([rows.device, rows.flop]), axis=0, return_inverse=True)[1]
    shape = shape.reshape(-1)
    best = np.full(shape.max() + 1, np.inf)
    np.minimum.at(best, shape, rows.microseconds)
    is_near = rows.microseconds < 2 * best[shape]
    # Kernels that stage both operands, as FTuner's do; vendor rows have one for each shape.
    fields = model().part_fields
    first = rows.fastest(model().start())
    is_near &= first.parts[:, -1, fields.index("direct_registers")] == 0
    is_near &= ~np.array([str(group).startswith("vendor") for group in rows.group])
    shape, wrong = shape[is_near], np.log(predicted / rows.microseconds)[is_near]
    count = np.bincount(shape, minlength=len(best))
    mean = np.bincount(shape, wrong, minlength=len(best)) / np.maximum(count, 1)
    freedom = int((count[count > 1] - 1).sum())
    if freedom < 20:
        return None
    several = count[shape] > 1
    left = (wrong - mean[shape])[several]
    return float(np.clip(np.sqrt((left**2).sum() / freedom), 0.02, 0.5))


def held_out(
    rows: MeasurementTable, refit: Callable[[MeasurementTable], tuple[Mapping[str, float], Any]]
) -> Array | None:
    """Predictions for each fold by constants of the others; None if the rows are too few."""
    folds = np.unique(rows.fold)
    if len(rows) < MIN_ROWS or len(folds) < 2:
        return None
    out = np.empty(len(rows))
    for fold in folds:
        test = rows.fold == fold
        if (~test).sum() < _MIN_ROWS:
            return None
        constants, offset = refit(rows[~test])
        out[test] = rows[test].predict(constants, offset)
    return out


def _errors(
    rows: MeasurementTable, before: Array, after: Array, unseen: Array | None
) -> dict[str, tuple[int, float, float, float | None]]:
    out = {}
    masks: dict[str, npt.NDArray[np.bool_]] = {"all": np.ones(len(rows), bool)}
    masks.update({group: rows.group == group for group in sorted(set(rows.group))})
    for name, mask in masks.items():
        y = rows.microseconds[mask]
        out[name] = (
            int(mask.sum()),
            error(before[mask], y),
            error(after[mask], y),
            None if unseen is None else error(unseen[mask], y),
        )
    return out


def _error_of_kinds(rows: MeasurementTable, predicted: Array) -> float:
    """Mean over the kinds of rows, which count the same, as in fits."""
    kinds = [rows.group == group for group in sorted(set(rows.group))]
    return float(np.mean([error(predicted[kind], rows.microseconds[kind]) for kind in kinds]))


def die_of(source: str) -> str:
    """The chip that a device's description names."""
    die = json.loads(descriptions.resolve(source).text).get("die", "")
    return str(die)


def _enough(rows: MeasurementTable, title: str) -> None:
    if len(rows) < _MIN_ROWS:
        where = " above twice the launch floor" if rows.floor.any() else ""
        raise Error(f"{title}: expected at least {_MIN_ROWS} rows{where}, but got {len(rows)}")


def _left_out(rows: MeasurementTable, prior: Constants, constants: Sequence[str]) -> Array | None:
    """Predictions for each device by constants of the others; None if there are too few."""
    if len(set(rows.device)) < 3:
        return None
    out = np.empty(len(rows))
    for index in sorted(set(rows.device.tolist())):
        own = rows.device == index
        if has_compiled(rows[own]) and not has_compiled(rows[~own]):
            # The others do not tell what compiled kernels need: leave out folds.
            for fold in np.unique(rows.fold[own]):
                test = own & (rows.fold == fold)
                found = fit_global(rows[~test], prior, constants)
                out[test] = rows[test].predict(found.constants, found.offset)
            continue
        found = fit_global(rows[~own], prior, constants)
        test = rows[own]
        out[own] = test.predict(found.constants, fit_timing(test, found.constants, found.offset))
    return out


def _floor(rows: MeasurementTable) -> float:
    floors = rows.floor[rows.is_host]
    return float(np.median(floors)) if len(floors) else 0.0


def calibrate_device(
    rows: MeasurementTable,
    prior: Constants,
    constants: Sequence[str] = (),
    offset: float = HOST_OFFSET,
    deviation: float = DEVIATION,
) -> Calibration:
    """The constants of the one device of the rows.

    They are the prior's where those of other folds predict a fold no better. `deviation`
    stays where the rows do not tell it.
    """
    (index,) = sorted(set(rows.device.tolist()))
    name = rows.devices.names[index]
    _enough(rows, name)

    def refit(some: MeasurementTable) -> Fit:
        return fit_own(some, prior, offset, constants)

    found = refit(rows)

    def refit_fold(some: MeasurementTable) -> tuple[Mapping[str, float], Any]:
        fold = refit(some)
        return fold.constants, fold.offset

    # The offset is not a constant: the prior, too, is judged with its best offset.
    before = rows.predict(prior, fit_timing(rows, prior, offset))
    after = rows.predict(found.constants, found.offset)
    unseen = held_out(rows, refit_fold)
    is_refused = (
        unseen is not None
        and bool(found.free)
        and _error_of_kinds(rows, unseen) >= _error_of_kinds(rows, before)
    )
    if is_refused:
        found = dataclasses.replace(
            found, constants=dict(prior), offset=fit_timing(rows, prior, offset), free=[]
        )
        after = unseen = before
    observed_deviation = _deviation(rows, after)
    return Calibration(
        name=name,
        die=die_of(rows.devices.sources[index]),
        has_tensor=bool(rows.is_tensor.any()),
        is_own=set(rows.group) == {"ftuner"},
        node_efficiency=rows.devices.figures[index]["node_efficiency"],
        has_only_tensor=bool(rows.is_tensor.all()),
        constants=found.constants,
        prior=prior,
        deviation=deviation if observed_deviation is None else observed_deviation,
        offset=float(found.offset[index]) if rows.is_host.any() else 0.0,
        floor=_floor(rows),
        unmoved=found.unmoved,
        at_bounds=found.at_bounds,
        is_deviation_known=observed_deviation is not None,
        is_refused=is_refused,
        errors=_errors(rows, before, after, unseen),
        measured=rows.microseconds,
        before=before,
        after=after,
    )


def calibrate_all(
    rows: MeasurementTable,
    prior: Constants,
    constants: Sequence[str] = (),
    deviation: float = DEVIATION,
) -> Calibration:
    """Constants for all devices from rows of several."""
    _enough(rows, "global")
    found = fit_global(rows, prior, constants)
    before = rows.predict(prior, fit_timing(rows, prior))
    after = rows.predict(found.constants, fit_timing(rows, found.constants))
    unseen = _left_out(rows, prior, constants)
    wanted = constants or shared_names()
    observed_deviation = _deviation(rows, after)
    return Calibration(
        name="global",
        constants=found.constants,
        prior=prior,
        deviation=deviation if observed_deviation is None else observed_deviation,
        offset=found.offset if rows.is_host.any() else 0.0,
        floor=_floor(rows),
        unmoved=[name for name in wanted if name not in [*found.free, *found.at_bounds]],
        at_bounds=found.at_bounds,
        is_deviation_known=observed_deviation is not None,
        errors=_errors(rows, before, after, unseen),
        measured=rows.microseconds,
        before=before,
        after=after,
    )


def keep_memory(calibration: Calibration, before: Constants) -> None:
    """Leaves the constants of memory-bound kernels as they were: for rows without such kernels."""
    kept = {name: before[name] for name in (*MEMORY, *MEMORY_SHARED)}
    calibration.constants = {**calibration.constants, **kept}


def share_tensor(calibrations: Sequence[Calibration]) -> None:
    """Gives devices without rows of the tensor cores the constants of others of their die, or else
    the energies of the nearest process: global ones are means over all processes."""
    fitted = [one for one in calibrations if one.has_tensor and one.name != "global"]
    for one in calibrations:
        if one.has_tensor or one.name == "global" or not fitted:
            continue
        names: Sequence[str] = (*TENSOR, *TENSOR_COMPILED)
        of_die = [other for other in fitted if one.die and other.die == one.die]
        other = of_die[0] if of_die else min(fitted, key=one.process_distance)
        if not of_die:
            names = TENSOR_ENERGIES
        one.constants = {**one.constants, **{name: other.constants[name] for name in names}}


# --- reports -------------------------------------------------------------------------


def report(calibration: Calibration, warnings: Sequence[str] = ()) -> str:
    """Returns the changes of the constants and the quality of the fit, as Markdown."""
    lines = [f"## {calibration.name}", ""]
    lines += [f"Warning: {text}." for text in warnings]
    lines += [""] if warnings else []
    lines += ["| rows | number | error before | after | held out |", "|---|---|---|---|---|"]
    for kind, (number, before, after, unseen) in calibration.errors.items():
        shown = "–" if unseen is None else f"{100 * unseen:.1f} %"
        lines.append(
            f"| {kind} | {number} | {100 * before:.1f} % | {100 * after:.1f} % | {shown} |"
        )
    changed = calibration.changed()
    lines += ["", "| constant | before | after | unit | what |", "|---|---|---|---|---|"]
    for name in changed:
        known = model().constants[name]
        lines.append(
            f"| {name} | {calibration.prior[name]:.4g} | {calibration.constants[name]:.4g} "
            f"| {known.unit} | {known.text} |"
        )
    if not changed:
        lines.append("| none | | | | |")
    if calibration.unmoved:
        lines += ["", f"Kept, since the rows hardly move them: {', '.join(calibration.unmoved)}."]
    if calibration.at_bounds:
        lines += [
            "",
            f"Kept, since they or others ended at a bound: {', '.join(calibration.at_bounds)}.",
        ]
    if not calibration.is_deviation_known:
        lines += ["", "The deviation is kept: there are too few kernels for one shape."]
    if calibration.is_refused:
        lines += [
            "",
            "Kept, all of them: fitted ones predict rows that they did not see no better.",
        ]
    if calibration.offset or calibration.floor:
        lines += [
            "",
            f"Timing of the rows: {calibration.offset:.1f} us beside the kernel, at least "
            f"{calibration.floor:.1f} us. Predictions do not have it.",
        ]
    return "\n".join(lines) + "\n"


def plot(calibrations: Sequence[Calibration], suffix: str) -> bytes:
    """Predicted against measured times before and after, one row of plots for each.

    The content of a file with that suffix, one of `plotting.SUFFIXES`.
    """
    plt = plotting.load_matplotlib()
    fig, axes = plt.subplots(
        len(calibrations), 2, figsize=(8, 3.6 * len(calibrations)), squeeze=False
    )
    for row, one in zip(axes, calibrations):
        pick = np.random.default_rng(0).permutation(len(one.measured))[:4000]
        limits = [one.measured.min() / 2, one.measured.max() * 2]
        for axis, predicted, when in zip(row, (one.before, one.after), ("before", "after")):
            axis.loglog(one.measured[pick], predicted[pick], ".", ms=2, rasterized=True)
            axis.plot(limits, limits, "k", lw=0.5)
            wrong = 100 * error(predicted, one.measured)
            axis.set(
                title=f"{one.name}, {when}: {wrong:.1f} %",
                xlabel="measured, us",
                ylabel="predicted, us",
            )
    fig.tight_layout()
    content = io.BytesIO()
    plotting.save_figure(fig, content, suffix)
    plt.close(fig)
    return content.getvalue()


# --- files ---------------------------------------------------------------------------


def to_text(calibration: Calibration, source: Source) -> str:
    """The file of a calibration. Raises `Error` for one that the compiler would refuse."""
    text = json.dumps(calibration.to_json(source), indent=2, ensure_ascii=False) + "\n"
    with processes.temporary_folder() as folder:
        path = Path(folder) / "calibration.json"
        path.write_text(text, encoding="utf-8")
        try:
            model().calibration(path)
        except Error as failure:
            reason = str(failure).partition(": ")[2]
            raise Error(
                f"{calibration.name}: the compiler would refuse this calibration: {reason}"
            ) from failure
    return text


def check_outputs(paths: Sequence[str], inputs: Sequence[str], folder: str | None = None) -> None:
    """Raises `Error` for a path that cannot be written, or is an input or another output.

    `folder` may be missing: it is made before anything is written.
    """
    taken = {os.path.realpath(path): "an input" for path in inputs if os.path.exists(path)}
    for path in paths:
        target, _ = target_of(path)
        if target in taken:
            raise cannot_write(path, f"it is {taken[target]}, too")
        taken[target] = "another output"
        outer = os.path.dirname(target)
        if folder is not None and outer == os.path.realpath(folder):
            while not os.path.exists(outer):
                outer = os.path.dirname(outer)
        if not os.path.isdir(outer):
            raise cannot_write(path, f"there is no folder '{outer}'")
        is_new = not os.path.exists(target)
        if not os.access(outer, os.W_OK | os.X_OK) or not (is_new or os.access(target, os.W_OK)):
            raise cannot_write(path, "permission denied")


def warn(text: str) -> None:
    """Says something that the user should know, whatever stderr is."""
    print(f"warning: {text}", file=sys.stderr, flush=True)


def progress(text: str) -> None:
    """Says on a terminal what is going on."""
    if is_drawn() or is_written():
        print(text, file=sys.stderr, flush=True)
