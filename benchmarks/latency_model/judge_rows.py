"""Judges the latency model on memory-bound kernels: docs/latency-memory.md, regenerated.

    python3 benchmarks/latency_model/judge_rows.py --data FOLDER --out OUT [--docs FILE.md]
        [--calibrations FOLDER] [--step N]

FOLDER has some of FILES, and may have MODELS (README.md says how to make them). Fits by `ftuner.latency.fit`, the code of
`ftuner calibrate`; the formulas are the compiler's own. Everything that rows of products determine
stays as the built-in calibrations have it.

--step takes each N-th row of a file alone. --docs also puts the tables between the marks of that
file. --calibrations also puts the fitted constants into the calibrations of that folder, which
keep all others. Writes OUT/rows.json and rows.md, in some three minutes.
"""

from __future__ import annotations

import argparse
import dataclasses
import hashlib
import json
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

import reports
from ftuner.errors import Error
from ftuner.latency.fit import (
    MEMORY,
    MEMORY_SHARED,
    Fit,
    GlobalFit,
    error,
    fit_global,
    fit_own,
    fit_timing,
)
from ftuner.latency.measurements.memory_rows import host_shares
from ftuner.latency.measurements.readers import read
from ftuner.latency.measurements.rows import Devices, MeasurementTable, concatenate
from ftuner.latency.measurements.table import Table
from ftuner.latency.model import model
from reports import Report, percent, say, table

FILES = ("memory_ops_f32.csv.gz", "memory_ops_f16.csv.gz")
# Whole models and their operators, one by one: softmax and layer norms at the sizes of models.
MODELS = "model_ops_f32.csv.gz"
# Each of these rows counts in fits as so many others: they are few, and the clocks of the rest of the
# A100's were lower (docs/latency-memory.md, "Rows measured twice").
MODEL_WEIGHT = 24.0
# In the published rows these names mean PCIe cards, and the module with 80 GB.
DATA_MAP = {
    "p100": "p100-pcie",
    "v100": "v100-pcie",
    "a100": "a100-pcie",
    "memory_ops_f16.csv.gz:a100": "a100-80gb",
}
# The share of the DRAM bandwidth that elementwise kernels reach beyond so many times the L2, where there are so many rows of
# them; other cards have the median of these.
BEST = "stream_best_share"
BEST_OVER_L2, BEST_ROWS = 8, 10
GOALS = {"unseen": 0.12, "left": 0.20}
# A cell with fewer rows says little.
MIN_ROWS = 20
# Devices with fewer rows get no calibration.
MIN_CALIBRATED_ROWS = 200
# Constants of a die that has rows serve its other calibrations, too.
SAME_DIE = {"h200": "h100"}
# The origin of these constants in calibrations, after the origin of the others.
ORIGIN = "; constants of memory-bound kernels from "
ROWS = (
    "f32 kernels of PyTorch 2.1, by themselves and in models (NeuSight), and 16-bit ones of vLLM and PyTorch (vidur, "
    "LLMServingSim), by benchmarks/latency_model/judge_rows.py --data DATA --out OUT --calibrations "
    "lib/CostModel/calibrations, {date}, from {files}"
)


def constants_of(source: str, found: Mapping[str, float], best: float = 1.0) -> dict[str, float]:
    """The device's built-in constants, with the found constants of memory-bound kernels.

    Without `best` nothing bounds the bandwidth, as in fits.
    """
    own = {name: found[name] for name in (*MEMORY, *MEMORY_SHARED)}
    return {**model().default_calibration(source), **own, BEST: best}


def best_shares(rows: MeasurementTable) -> dict[int, float]:
    """`BEST` of the devices whose rows tell it: the median of their longest elementwise rows."""
    found = {}
    for index in sorted(set(rows.device.tolist())):
        figures = rows.devices.figures[index]
        some = rows[(rows.device == index) & np.isin(rows.extra["op"], ("add", "pow"))]
        constants = {**model().default_calibration(rows.devices.sources[index]), BEST: 1.0}
        offset = fit_timing(some, constants) if some.is_host.any() else 0.0
        # What the host and the launch add is what the model adds to nothing.
        added = some.predict(constants, offset) - model().predict(some.launches, constants)
        time = some.microseconds - added - constants["launch"]
        share = some.extra["bytes"] / time / (1e3 * figures["dram_gbps"])
        is_long = some.extra["bytes"] >= BEST_OVER_L2 * figures["l2_bytes"]
        if is_long.sum() >= BEST_ROWS:
            found[index] = float(np.median(share[is_long]))
    return found


class Judge:
    """The rows that tell of kernels, and what is judged on them."""

    def __init__(self, rows: MeasurementTable) -> None:
        self.rows = rows[rows.is_fit]
        self.names = rows.devices.names
        self.sources = rows.devices.sources
        start = model().start()
        memory = {name: start[name] for name in (*MEMORY, *MEMORY_SHARED)}
        self.start = {**model().calibration("global"), **memory, BEST: 1.0}
        self.best = best_shares(self.rows)

    def best_of(self, index: int, excluded: int | None = None) -> float:
        """Returns `BEST` of a device: its own share, the maximum if its rows are too short to tell, the
        median if it has no rows or is `excluded`."""
        known = [share for other, share in self.best.items() if other != excluded]
        if index != excluded and (self.rows.device == index).any():
            return self.best.get(index, max(known))
        return float(np.median(known))

    @property
    def present(self) -> list[tuple[int, str]]:
        return [(i, name) for i, name in enumerate(self.names) if (self.rows.device == i).any()]

    def fit_own(self, rows: MeasurementTable, index: int, found: GlobalFit) -> Fit:
        fitted = fit_own(rows, constants_of(self.sources[index], found.constants))
        return dataclasses.replace(
            fitted, constants={**fitted.constants, BEST: self.best_of(index)}
        )

    def unseen(self) -> np.ndarray:
        """Each fold of sizes by constants of the other folds, of all devices and of each."""
        out = np.full(len(self.rows), np.nan)
        for fold in sorted(set(self.rows.fold)):
            rest = self.rows.fold != fold
            found = fit_global(self.rows[rest], self.start)
            for index, _ in self.present:
                own = self.rows.device == index
                fitted = self.fit_own(self.rows[own & rest], index, found)
                test = own & ~rest
                out[test] = self.rows[test].predict(fitted.constants, fitted.offset)
        return out

    def left_out(self) -> np.ndarray:
        """Each device by constants of the others; a host's offset is fitted to its rows."""
        out = np.full(len(self.rows), np.nan)
        for index, _ in self.present:
            own = self.rows.device == index
            found = fit_global(self.rows[~own], self.start)
            constants = constants_of(
                self.sources[index], found.constants, self.best_of(index, excluded=index)
            )
            some = self.rows[own]
            offset = fit_timing(some, constants) if some.is_host.any() else 0.0
            out[own] = some.predict(constants, offset)
        return out

    def cells(self, predicted: np.ndarray) -> dict[str, dict[str, Any]]:
        """By device and operator: rows, mean error, geometric mean of predicted over measured."""
        out: dict[str, dict[str, Any]] = {}
        y = self.rows.microseconds
        for index, name in self.present:
            own = self.rows.device == index
            is_model = self.rows.extra["model"]
            masks = {"all": own & ~is_model}
            for op in sorted(set(self.rows.extra["op"][own])):
                of_op = own & (self.rows.extra["op"] == op)
                for cell, mask in ((op, ~is_model), (f"{op} of models", is_model)):
                    if (of_op & mask).any():
                        masks[cell] = of_op & mask
            out[name] = {
                op: [
                    int(q.sum()),
                    error(predicted[q], y[q]),
                    float(np.exp(np.log(predicted[q] / y[q]).mean())),
                ]
                for op, q in masks.items()
            }
        return out


def goals(out: dict[str, Any]) -> str:
    lines = []
    for kind, text in (("unseen", "unseen sizes"), ("left", "device left out")):
        for device, cells in out[kind].items():
            worst = max(
                (op for op in cells if op != "all" and cells[op][0] >= MIN_ROWS),
                key=lambda op: cells[op][1],
                default="all",
            )
            lines.append(
                [
                    f"{text}, {device}",
                    f"≤ {percent(GOALS[kind], 0)}",
                    percent(cells["all"][1]),
                    f"{worst} {percent(cells[worst][1])}",
                ]
            )
    return table(["goal", "asked", "reached", f"worst operator of {MIN_ROWS} rows or more"], lines)


def cells_table(cells: dict[str, dict[str, Any]]) -> str:
    ops = ["all", *sorted({op for one in cells.values() for op in one if op != "all"})]
    lines = []
    for device, one in cells.items():
        shown = [
            f"{percent(one[op][1])} ({one[op][2]:.2f}, {one[op][0]})" if op in one else "–"
            for op in ops
        ]
        lines.append([device, *shown])
    return table(["device", *ops], lines)


def constants_table(out: dict[str, Any]) -> str:
    names = ["global", *out["constants"]]
    each = {"global": out["global"], **out["constants"]}
    lines = [
        [constant, *(f"{each[name][constant]:.4g}" for name in names)]
        for constant in (*MEMORY, *MEMORY_SHARED, BEST)
    ]
    lines.append(
        [
            "offset of the host, us",
            "–",
            *(f"{v:.1f}" if v else "–" for v in out["offsets"].values()),
        ]
    )
    return table(["constant", *names], lines)


def markdown(out: dict[str, Any]) -> str:
    text = [
        f"{out['date']}, {out['rows']} rows of {', '.join(out['files'])}"
        + (f", each {out['step']}th" if out["step"] > 1 else "")
        + ".\n",
        "### Goals\n",
        goals(out),
        "### By operator, unseen sizes\n",
        "Mean of |predicted / measured − 1|; in parentheses the geometric mean of predicted over "
        "measured, and the number of rows.\n",
        cells_table(out["unseen"]),
        "### By operator, each device left out\n",
        cells_table(out["left"]),
        "### Constants\n",
        constants_table(out),
    ]
    return "\n".join(part if part.endswith("\n") else part + "\n" for part in text)


def origin(data: Path) -> str:
    """Returns the origin that calibrations state: the files of the rows, with their hashes."""
    files = [
        f"{name} (sha256 {hashlib.sha256((data / name).read_bytes()).hexdigest()[:16]})"
        for name in (*FILES, MODELS)
        if (data / name).is_file()
    ]
    return ORIGIN + ROWS.format(date=reports.today(), files=", ".join(files))


def write_calibrations(
    folder: Path, data: Path, judge: Judge, found: GlobalFit, own: dict[int, Fit]
) -> None:
    """Puts the constants into the calibrations of a folder that exist."""
    names = (*MEMORY, *MEMORY_SHARED)
    values = {"global": {**{n: found.constants[n] for n in names}, BEST: judge.best_of(-1)}}
    for index, name in judge.present:
        if (judge.rows.device == index).sum() >= MIN_CALIBRATED_ROWS:
            values[name] = {n: own[index].constants[n] for n in (*names, BEST)}
    values.update(
        {target: values[source] for target, source in SAME_DIE.items() if source in values}
    )
    for path in sorted(folder.glob("*.json")):
        content = json.loads(path.read_text(encoding="utf-8"))
        new = values.get(content["name"], values["global"])
        content["origin"] = content["origin"].partition(ORIGIN)[0] + origin(data)
        content["constants"].update({n: float(f"{v:.4g}") for n, v in new.items()})
        path.write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def model_rows(path: Path, devices: Devices) -> MeasurementTable:
    """Softmax and layer norms of whole models, as rows of memory-bound operators."""
    table = Table(path)
    found: dict[tuple[str, ...], None] = {}
    for device, op, shapes, time in zip(
        *(table.columns[n] for n in ("device", "op", "input_shapes", "latency_us"))
    ):
        name = "softmax" if op == "softmax" else "layernorm" if "norm" in op or "ln_" in op else ""
        if not name or not shapes:
            continue
        *rows, cols = json.loads(shapes)[0]
        found[(device, name, str(int(np.prod(rows))), str(cols), time)] = None
    with tempfile.TemporaryDirectory() as folder:
        lines = ["device,op,rows,cols,latency_us", *(",".join(row) for row in found)]
        file = Path(folder) / "models.csv"
        file.write_text("\n".join(lines) + "\n", encoding="utf-8")
        return read([file], devices)


def read_rows(folder: Path, step: int = 1) -> MeasurementTable:
    """Each `step`-th row of operators by themselves, and all rows of operators of models."""
    found = [folder / name for name in FILES if (folder / name).is_file()]
    if not found:
        raise Error(f"expected one of {', '.join(FILES)} in '{folder}'")
    devices = Devices(DATA_MAP)
    # Launch floors follow from all rows.
    rows = read(found, devices)
    parts = [rows[::step]]
    if (folder / MODELS).is_file():
        parts.append(model_rows(folder / MODELS, devices))
    every = concatenate(parts)
    is_model = np.arange(len(every)) >= len(parts[0])
    # A model's operators are too large for their own launch floors.
    floor = np.where(every.is_host, every.floor, 0.0)
    return dataclasses.replace(
        every,
        weight=np.where(is_model, MODEL_WEIGHT, every.weight),
        host_share=host_shares(floor, every.device, every.extra["op"]),
        extra={**every.extra, "model": is_model},
    )


def run(options: argparse.Namespace) -> None:
    report = Report.opened(options, "rows")
    say("reading")
    judge = Judge(read_rows(Path(options.data), options.step))
    say("all rows")
    found = fit_global(judge.rows, judge.start)
    own = {
        index: judge.fit_own(judge.rows[judge.rows.device == index], index, found)
        for index, _ in judge.present
    }
    if options.calibrations:
        write_calibrations(Path(options.calibrations), Path(options.data), judge, found, own)
    say("unseen sizes")
    unseen = judge.unseen()
    say("each device left out")
    left = judge.left_out()
    is_host = {i: bool(judge.rows.is_host[judge.rows.device == i].any()) for i in own}
    out: dict[str, Any] = {
        "date": reports.today(),
        "rows": len(judge.rows),
        "files": [name for name in (*FILES, MODELS) if (Path(options.data) / name).is_file()],
        "step": options.step,
        "unseen": judge.cells(unseen),
        "left": judge.cells(left),
        "global": {**found.constants, BEST: judge.best_of(-1)},
        "at_bounds": found.at_bounds,
        "constants": {judge.names[i]: one.constants for i, one in own.items()},
        "offsets": {
            judge.names[i]: float(one.offset[i]) if is_host[i] else None for i, one in own.items()
        },
    }
    report.write(out, markdown(out))
    say("done")


def main() -> int:
    parser = reports.parser(__doc__, "data", "out", "docs", "step")
    parser.add_argument("--calibrations", help="folder whose calibrations get the constants")
    return reports.exit_code(run, parser.parse_args())


if __name__ == "__main__":
    sys.exit(main())
