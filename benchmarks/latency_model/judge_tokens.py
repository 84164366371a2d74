"""Judges the latency model on the tensor cores: docs/latency-tensor-cores.md, regenerated.

    python3 benchmarks/latency_model/judge_tokens.py --data FOLDER --out OUT [--docs FILE.md]
        [--step N]

FOLDER has some of FILES (README.md says how to make them). Fits by `ftuner.latency.fit`,
the code of `ftuner calibrate`; the formulas are the compiler's own. Everything that rows of the
CUDA cores determine stays as the built-in calibrations have it.

--step takes each N-th row of a file alone. Writes OUT/tokens.json, tokens.md and
token_steps.png, in about ten minutes. --docs also puts the
tables between the marks of that file and the figure into figures/ beside it.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np

import reports
from ftuner.errors import Error
from ftuner.latency.fit import TENSOR, error, fit, fit_global, fit_own, prior_weight, sample
from ftuner.latency.measurements.readers import read
from ftuner.latency.measurements.rows import Devices, MeasurementTable
from ftuner.latency.model import model
from reports import Report, percent, say, table

FILES = ("gemm_f16_tokens.csv.gz", "gemm_f16_every_m.csv.gz", "gemm_bf16_grid.csv.gz")
# In the published rows this name means the SXM module with 80 GB.
DATA_MAP = {"a100": "a100-80gb"}
RANGES = ((1, 16), (17, 64), (65, 128), (129, 256), (257, 1024), (1025, 4096), (4097, 2**31))
# Rows of the table's first part take so many microseconds at least; the others count by themselves.
SHORT = 10.0
# By the library's year and the device, else by the year.
GOALS = {
    "unseen": {
        "2023": 0.12,
        "2026": 0.08,
        "2026 a100-80gb": 0.07,
        "2026 h100": 0.06,
    },
    "left": {"2023": 0.15, "2026": 0.15},
    "short": {"2023": 0.12, "2026": 0.12},
    "every_m": {"2026": 0.08, "2026 h100": 0.06},
}
# The group of rows at each number of tokens (token_rows.ORIGINS).
EVERY_M = "layer"
# Products of the figure: projections of Llama-2-7B (up), Qwen-72B's size and a short reduce axis.
SHAPES = ((22016, 4096), (5120, 8192), (12288, 4096))


def begin_of(name: str) -> dict[str, float]:
    """The device's constants, with the tensor cores' constants where fits start."""
    start = model().start()
    return {**model().default_calibration(name), **{n: start[n] for n in TENSOR}}


class Judge:
    """The rows that tell of kernels, and what is judged on them."""

    def __init__(self, rows: MeasurementTable) -> None:
        self.rows = rows[rows.is_fit]
        self.names = rows.devices.names
        self.begin = {i: begin_of(rows.devices.sources[i]) for i in range(len(self.names))}

    @property
    def present(self) -> list[tuple[int, str]]:
        """Index and name of each device that has rows."""
        return [(i, name) for i, name in enumerate(self.names) if (self.rows.device == i).any()]

    @property
    def series(self) -> list[tuple[str, str, np.ndarray]]:
        """Device, year of the library and rows of each device's rows of a library."""
        library = self.rows.extra["library"]
        return [
            (name, year, (self.rows.device == index) & (library == year))
            for index, name in self.present
            for year in sorted(set(library[self.rows.device == index]))
        ]

    def unseen(self) -> np.ndarray:
        """Each fold of N and K by constants of the device's other folds."""
        out = np.full(len(self.rows), np.nan)
        for index in self.begin:
            own = self.rows.device == index
            for fold in sorted(set(self.rows.fold[own])):
                test = own & (self.rows.fold == fold)
                found = fit_own(self.rows[own & ~test], self.begin[index])
                out[test] = self.rows[test].predict(found.constants)
        return out

    def left_out(self) -> np.ndarray:
        """Each device by constants of the others; those that no row of the tensor cores tells are
        the global ones."""
        start = begin_of_all()
        out = np.full(len(self.rows), np.nan)
        for index in self.begin:
            own = self.rows.device == index
            found = fit_global(self.rows[~own], start)
            out[own] = self.rows[own].predict(found.constants)
        return out

    def errors(self, predicted: np.ndarray) -> dict[str, float]:
        y = self.rows.microseconds
        known = ~np.isnan(predicted)
        out = {"pooled": error(predicted[known], y[known])}
        for index, name in enumerate(self.names):
            q = known & (self.rows.device == index)
            out[name] = error(predicted[q], y[q])
        is_long = y >= SHORT
        every_m = np.array([str(group).endswith(EVERY_M) for group in self.rows.group])
        for name, year, q in self.series:
            for part, some in (
                ("", is_long),
                (" short", ~is_long),
                (" every_m", is_long & every_m),
            ):
                chosen = q & known & some
                out[f"{name}, {year}{part}"] = error(predicted[chosen], y[chosen])
        return out

    def by_rows(self, predicted: np.ndarray) -> dict[str, dict[str, Any]]:
        """Mean errors, and geometric means of predicted over measured, by range of M."""
        m, y = self.rows.extra["M"], self.rows.microseconds
        out: dict[str, dict[str, Any]] = {}
        for low, high in RANGES:
            cells: dict[str, Any] = {}
            for name, year, own in self.series:
                q = own & (m >= low) & (m <= high)
                if q.any():
                    ratio = float(np.exp(np.log(predicted[q] / y[q]).mean()))
                    cells[f"{name}, {year}"] = [int(q.sum()), error(predicted[q], y[q]), ratio]
            out[range_text(low, high)] = cells
        return out


def begin_of_all() -> dict[str, float]:
    start = model().start()
    return {**model().calibration("global"), **{n: start[n] for n in TENSOR}}


def range_text(low: int, high: int) -> str:
    return f"{low} to {high}" if high < 2**31 else f"from {low}"


# Constants that take a part of the model away, and rules of the set of kernels.
ABLATIONS: dict[str, dict[str, float]] = {
    "(full)": {},
    "L2 bound": {"tensor_l2_bytes_per_cycle": 1e9},
    "energy": {"f16_energy": 1e-6, "l2_energy": 1e-6, "dram_energy": 1e-6},
    "block start": {"tensor_start": 1e-6},
    "re-reads from DRAM": {"l2_share": 1e9},
}
RULES = {
    "slices of the reduce axis": ("second_kernels", lambda x: x == 0, "grid"),
    "wgmma": ("has_peak_rate", lambda x: x == 0, "part"),
    "mma.sync where there is wgmma": ("has_peak_rate", lambda x: x == 1, "part"),
}


def judge_ablations(judge: Judge) -> dict[str, dict[str, float]]:
    """Mean errors of all rows, everything else fitted again, without a part of the model."""
    out = {}
    for name, fixed in ABLATIONS.items():
        say(f"without {name}")
        predicted = np.full(len(judge.rows), np.nan)
        free = [n for n in TENSOR if n not in fixed]
        for index, begin in judge.begin.items():
            own = judge.rows[judge.rows.device == index]
            found = refit(own, {**begin, **fixed}, free)
            predicted[judge.rows.device == index] = own.predict(found)
        out[name] = judge.errors(predicted)
    for name, (field, keeps, record) in RULES.items():
        say(f"without {name}")
        predicted = np.full(len(judge.rows), np.nan)
        for index, begin in judge.begin.items():
            mask = judge.rows.device == index
            own = judge.rows[mask]
            fewer = with_launches(own, field, keeps, record)
            if fewer is not None and len(fewer.launches) < len(own.launches):
                found = refit(fewer, begin, TENSOR)
                predicted[mask] = fewer.predict(found)
        out[name] = judge.errors(predicted)
    return out


def refit(rows: MeasurementTable, begin: dict[str, float], free: Any) -> dict[str, float]:
    few = sample(rows, np.ones(len(rows), bool), 600)
    return fit(few, begin, free, prior=prior_weight(len(rows)), offset=0.0).constants


def with_launches(
    rows: MeasurementTable, field: str, keeps: Any, record: str
) -> MeasurementTable | None:
    """The rows with only those launches; None if a row is left without a launch."""
    if record == "grid":
        values = rows.launches.grids[:, model().grid_fields.index(field)]
    else:
        values = rows.launches.parts[:, -1, model().part_fields.index(field)]
    keep = keeps(values)
    assert rows.choices is not None
    row = np.repeat(np.arange(len(rows)), rows.choices)
    choices = np.bincount(row[keep], minlength=len(rows))
    if (choices == 0).any():
        return None
    from dataclasses import replace

    return replace(rows, launches=rows.launches[keep], choices=choices)


def best_shares(judge: Judge, microseconds: np.ndarray) -> dict[str, dict[str, float]]:
    """The best share of the peak and of the bandwidth that a row of each device reaches in such
    times: operations, and bytes that must be moved once."""
    out = {}
    rows = judge.rows
    m, n, k = (rows.extra[axis] for axis in "MNK")
    for index, name in judge.present:
        own = rows.device == index
        figures = dict(zip(model().device_fields, rows.launches.devices[index]))
        peak = figures["sm_count"] * figures["f16_rate"] * figures["clock_mhz"]
        moved = 2 * (m * k + n * k + m * n) / (figures["dram_gbps"] * 1e3)
        out[name] = {
            "peak": float((rows.flop / microseconds / peak)[own].max()),
            "bandwidth": float((moved / microseconds)[own].max()),
        }
    return out


# --- tables and figures -----------------------------------------------------------------------


def markdown(judge: Judge, out: dict[str, Any]) -> str:
    names = judge.names
    lines = []
    columns = [f"{name}, {year}" for name, year, _ in judge.series]
    for key, goals, part, text in (
        ("unseen", "unseen", "", "unseen shapes, {}"),
        ("unseen", "every_m", " every_m", "unseen shapes, {}, at every number of rows"),
        ("unseen", "short", " short", f"unseen shapes, {{}}, below {SHORT:.0f} us"),
        ("left", "left", "", "{} left out"),
    ):
        for name, year, _ in judge.series:
            found = out[key][f"{name}, {year}{part}"]
            if np.isnan(found) or year not in GOALS[goals]:
                continue
            goal = GOALS[goals].get(f"{year} {name}", GOALS[goals][year])
            shapes = text.format(f"{name}, {year}")
            lines.append([shapes, f"≤ {percent(goal, 0)}", percent(found)])
    text = [
        f"Made on {out['date']} from {len(judge.rows)} rows of {', '.join(out['files'])}"
        f"{', one row of each ' + str(out['step']) if out['step'] > 1 else ''}. "
        "The years are those of the vendor's library.\n",
        "### Goals of the tensor cores\n",
        "Mean of |predicted / measured − 1| over rows from 10 us on, where nothing else is said; rows "
        "below count where the times of their file are finer than half a microsecond. Unseen shapes: each fifth of "
        "the pairs N, K by constants fitted to the others, so that no neighbour in M is on the "
        "other side. Left out: constants of the other devices.\n",
        table(["goal", "asked", "reached"], lines),
    ]
    for key, title in (("unseen", "Unseen shapes by rows"), ("left", "Left out by rows")):
        text += [
            f"\n### {title}\n",
            "Mean error of rows of any time (geometric mean of predicted over measured).\n",
        ]
        rows = []
        for row_range, cells in out[f"{key}_by_rows"].items():
            shown = [
                f"{percent(cells[name][1])} ({cells[name][2]:.2f})" if name in cells else "–"
                for name in columns
            ]
            rows.append([row_range, *shown])
        text.append(table(["M", *columns], rows))
    text += ["\n### Constants\n", "Fitted to all rows of the device.\n"]
    text.append(
        table(
            ["constant", *names],
            [[c, *(f"{out['constants'][n][c]:.4g}" for n in names)] for c in out["free"]],
        )
    )
    text += [
        "\n### Without one part\n",
        "Mean error of all rows of a device, with the other constants fitted again to a sample of "
        "600. –: no row has such a kernel among its choices, or some have no others.\n",
    ]
    rows = [[n, *(percent(r[d]) for d in names)] for n, r in out["ablations"].items()]
    text.append(table(["without", *names], rows))
    text += [
        "\n### Best shares\n",
        "Of the rated peak at the boost clock, and of the DRAM bandwidth, that any row reaches.\n",
        table(
            ["device", "peak", "bandwidth"],
            [[n, percent(r["peak"]), percent(r["bandwidth"])] for n, r in out["best"].items()],
        ),
    ]
    return "\n".join(part.rstrip("\n") if part.startswith("|") else part for part in text) + "\n"


def plot_steps(judge: Judge, predicted: np.ndarray, path: Path) -> None:
    """The vendor's time over M with what the model predicts for it."""
    size = len(judge.names)
    fig, axes = plt.subplots(
        len(SHAPES), size, figsize=(4.2 * size, 2.9 * len(SHAPES)), squeeze=False
    )
    rows = judge.rows
    for row, (n, k) in zip(axes, SHAPES):
        for index, axis in enumerate(row):
            q = (rows.device == index) & (rows.extra["N"] == n) & (rows.extra["K"] == k)
            q &= rows.extra["M"] <= 1024
            order = np.flatnonzero(q)[np.argsort(rows.extra["M"][q], kind="stable")]
            m = rows.extra["M"][order]
            axis.plot(m, rows.microseconds[order], ".", ms=3, c=".45", label="measured")
            axis.plot(m, predicted[order], "C0", lw=1, label="predicted, unseen")
            axis.set_title(f"{judge.names[index]}, N {n}, K {k}", fontsize=9)
            axis.set_ylim(bottom=0)
    axes[0, 0].legend(fontsize=8)
    fig.supxlabel("M")
    fig.supylabel("us")
    fig.tight_layout()
    fig.savefig(path, dpi=70)
    plt.close(fig)


def files_in(folder: Path) -> list[Path]:
    found = [folder / name for name in FILES if (folder / name).is_file()]
    if not found:
        raise Error(f"expected one of {', '.join(FILES)} in '{folder}'")
    return found


def read_rows(folder: Path, step: int = 1) -> MeasurementTable:
    return read(files_in(folder), Devices(DATA_MAP), step=step)


def run(options: argparse.Namespace) -> None:
    report = Report.opened(options, "tokens")
    say("reading")
    judge = Judge(read_rows(Path(options.data), options.step))
    say("unseen shapes")
    unseen = judge.unseen()
    say("each device left out")
    left = judge.left_out()
    say("all rows of each device")
    fitted = {
        name: fit_own(judge.rows[judge.rows.device == index], judge.begin[index])
        for index, name in enumerate(judge.names)
    }
    free = [n for n in TENSOR if any(n in one.free for one in fitted.values())]
    out: dict[str, Any] = {
        "date": reports.today(),
        "rows": len(judge.rows),
        "files": [path.name for path in files_in(Path(options.data))],
        "step": options.step,
        "unseen": judge.errors(unseen),
        "left": judge.errors(left),
        "unseen_by_rows": judge.by_rows(unseen),
        "left_by_rows": judge.by_rows(left),
        "free": free,
        "constants": {name: one.constants for name, one in fitted.items()},
        "ablations": judge_ablations(judge),
        "best": best_shares(judge, judge.rows.microseconds),
    }
    figure = report.folder / "token_steps.png"
    plot_steps(judge, unseen, figure)
    report.write(out, markdown(judge, out), [figure])
    say("done")


def main() -> int:
    parser = reports.parser(__doc__, "data", "out", "docs", "step")
    return reports.exit_code(run, parser.parse_args())


if __name__ == "__main__":
    sys.exit(main())
