"""Judges the latency model on memory-bound kernels: docs/latency-memory.md, regenerated.

    python3 benchmarks/latency_model/judge_rows.py --data FOLDER --out OUT [--docs FILE.md]
        [--calibrations FOLDER] [--step N]

FOLDER has some of FILES (README.md says how to make them). Fits by `ftuner.latency.fit`, the code of
`ftuner calibrate`; the formulas are the compiler's own. Everything that rows of products determine
stays as the built-in calibrations have it.

--step takes each N-th row of a file alone. --docs also puts the tables between the marks of that
file. --calibrations also puts the fitted constants into the calibrations of that folder, which
keep all others. Writes OUT/rows.json and rows.md, in some three minutes.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import reports
from reports import Report, percent, say, table

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
from ftuner.latency.model import model
from ftuner.latency.rows import Devices, Rows, read

FILES = ("memory_ops_f32.csv.gz", "memory_ops_f16.csv.gz")
# In the published rows these names mean PCIe cards, and the module with 80 GB.
DATA_MAP = {
    "p100": "p100-pcie",
    "v100": "v100-pcie",
    "a100": "a100-pcie",
    "memory_ops_f16.csv.gz:a100": "a100-80gb",
}
GOALS = {"unseen": 0.12, "left": 0.20}
# A cell with fewer rows says little.
FEWEST = 20
# Devices with fewer rows get no calibration.
FEWEST_CALIBRATED = 200
# Constants of a die that has rows serve its other calibrations, too.
SAME_DIE = {"h200": "h100"}
# What calibrations say of them, behind what they say of the others.
ORIGIN = (
    "; constants of memory-bound kernels from f32 kernels of PyTorch 2.1 (NeuSight) and 16-bit ones of vLLM and "
    "PyTorch (vidur, LLMServingSim), by benchmarks/latency_model/judge_rows.py"
)


def constants_of(source: str, found: dict[str, float]) -> dict[str, float]:
    """The device's built-in constants, with those of memory-bound kernels as found."""
    own = {name: found[name] for name in (*MEMORY, *MEMORY_SHARED)}
    return {**model().default_calibration(source), **own}


class Judge:
    """The rows that tell of kernels, and what is judged on them."""

    def __init__(self, rows: Rows) -> None:
        self.rows = rows[rows.is_fit]
        self.names = rows.devices.names
        self.sources = rows.devices.sources
        start = model().start()
        memory = {name: start[name] for name in (*MEMORY, *MEMORY_SHARED)}
        self.start = {**model().calibration("global"), **memory}

    @property
    def present(self) -> list[tuple[int, str]]:
        return [(i, name) for i, name in enumerate(self.names) if (self.rows.device == i).any()]

    def fit_own(self, rows: Rows, index: int, found: GlobalFit) -> Fit:
        return fit_own(rows, constants_of(self.sources[index], found.constants))

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
            constants = constants_of(self.sources[index], found.constants)
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
            masks = {"all": own}
            for op in sorted(set(self.rows.extra["op"][own])):
                masks[op] = own & (self.rows.extra["op"] == op)
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
                (op for op in cells if op != "all" and cells[op][0] >= FEWEST),
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
    return table(["goal", "asked", "reached", f"worst operator of {FEWEST} rows or more"], lines)


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
        [name, *(f"{each[of][name]:.4g}" for of in names)] for name in (*MEMORY, *MEMORY_SHARED)
    ]
    lines.append(["offset of the host, us", "–", *(f"{v:.1f}" if v else "–" for v in out["offsets"].values())])
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


def write_calibrations(folder: Path, judge: Judge, found: GlobalFit, own: dict[int, Fit]) -> None:
    """Puts the constants into the calibrations of a folder that exist."""
    values = {"global": {n: found.constants[n] for n in (*MEMORY, *MEMORY_SHARED)}}
    for index, name in judge.present:
        if (judge.rows.device == index).sum() >= FEWEST_CALIBRATED:
            values[name] = {n: own[index].constants[n] for n in (*MEMORY, *MEMORY_SHARED)}
    values.update({to: values[of] for to, of in SAME_DIE.items() if of in values})
    for path in sorted(folder.glob("*.json")):
        content = json.loads(path.read_text(encoding="utf-8"))
        new = values.get(content["name"], values["global"])
        content["origin"] = content["origin"].partition(ORIGIN)[0] + ORIGIN
        content["constants"].update({n: float(f"{v:.4g}") for n, v in new.items()})
        path.write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def read_rows(folder: Path, step: int = 1) -> Rows:
    found = [folder / name for name in FILES if (folder / name).is_file()]
    if not found:
        raise Error(f"expected one of {', '.join(FILES)} in '{folder}'")
    # Launch floors are those of all rows.
    return read(found, Devices(DATA_MAP))[::step]


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
        write_calibrations(Path(options.calibrations), judge, found, own)
    say("unseen sizes")
    unseen = judge.unseen()
    say("each device left out")
    left = judge.left_out()
    is_host = {i: bool(judge.rows.is_host[judge.rows.device == i].any()) for i in own}
    out: dict[str, Any] = {
        "date": reports.today(),
        "rows": len(judge.rows),
        "files": [name for name in FILES if (Path(options.data) / name).is_file()],
        "step": options.step,
        "unseen": judge.cells(unseen),
        "left": judge.cells(left),
        "global": found.constants,
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
