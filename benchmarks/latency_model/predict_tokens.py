"""Predicted times of FTuner's f16 kernels beside measured ones of cuBLAS: predictions, no
measurements of FTuner.

    ninja -C build/release token_predictions
    python3 benchmarks/latency_model/predict_tokens.py --data FOLDER --out OUT [--docs FILE.md]
        [--paths PATHS] [--devices DEVICES] [--library YEAR] [--step N] [--unseen] [--name NAME]

FOLDER has some of the files of judge_tokens.py (README.md says how to make them). For each device, N and K of it
the compiler plans 1 to the most rows, and the program that the plan dispatches to is priced for
each M, by the built-in calibration of the device. The judge's error of the device
(judge_tokens.py: tokens.json in OUT) says how far a lead must go beyond it.

--paths names the codegen paths that compete (those of the compiler otherwise), --devices some of
the devices, --library the rows of one library of the vendor, --step each N-th row of a file. With
--unseen each product is priced by constants that are fitted, as the judge does, to the rows of
other N and K, and so is the vendor's set of kernels: where FTuner is predicted behind what was
measured, this tells what its kernels lack from what the model does.
Writes OUT/NAME.csv, NAME.json, NAME.md and token_NAME.png, where NAME is
"predictions" unless given; --docs puts the tables between the marks of that name. Exits with 1
where a kernel of FTuner's is predicted above the best share of the rated peak, or of the DRAM
bandwidth, that any measured row of the device reaches: such a price would be wrong.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np

import reports
from ftuner.errors import Error
from ftuner.latency.fit import fit_own
from ftuner.latency.measurements.rows import MeasurementTable
from judge_tokens import RANGES, Judge, best_shares, range_text, read_rows
from reports import ROOT, Report, percent, say, table

GOAL = 1.05
# A shape fills a wave if its output has a tile of this size for each SM.
WAVE_TILE = 128
DEFAULT_PATHS = "auto"
PROGRAM = ROOT / "build" / "release" / "bin" / "token_predictions"


def predictions_of(
    rows: MeasurementTable, source: str, program: Path, paths: str | None, calibration: Path | None
) -> dict[tuple[int, ...], Any]:
    """(N, K, M) → microseconds and family, for the rows of one device."""
    sizes: dict[tuple[int, int], set[int]] = {}
    for m, n, k in zip(*(rows.extra[axis].astype(int) for axis in "MNK")):
        sizes.setdefault((int(n), int(k)), set()).add(int(m))
    arguments = [paths] if paths else []
    if calibration:
        # The paths come first.
        arguments = [paths or DEFAULT_PATHS, f"calibration={calibration}"]
    return times_of(sizes, source, program, arguments)


def unseen_predictions_of(
    rows: MeasurementTable,
    fitted: MeasurementTable,
    begin: Any,
    source: str,
    options: argparse.Namespace,
) -> dict[tuple[int, ...], Any]:
    """Like `predictions_of`, but predicts each fold of N and K by constants of the other folds.

    Args:
        fitted: rows of the same device, which the constants are fitted to.
        begin: constants that the fit begins with.
    """
    found: dict[tuple[int, ...], Any] = {}
    for fold in sorted(set(rows.fold)):
        constants = fit_own(fitted[fitted.fold != fold], begin).constants
        path = Path(options.out) / f"{options.name}_without_{fold}.json"
        path.write_text(json.dumps({"name": "others", "constants": constants}), encoding="utf-8")
        test = rows[rows.fold == fold]
        found |= predictions_of(test, source, Path(options.program), options.paths, path)
        path.unlink()
    return found


def times_of(
    sizes: dict[tuple[int, int], set[int]], source: str, program: Path, arguments: Sequence[str]
) -> dict[tuple[int, ...], Any]:
    """Runs the program for sets of M by (N, K), each planned for 1 to its maximum.

    Args:
        arguments: further arguments of the program.
    """
    text = "".join(
        f"{n} {k} {' '.join(map(str, sorted(rows)))}\n" for (n, k), rows in sorted(sizes.items())
    )
    command = [str(program), source, *arguments]
    run = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
    if run.returncode != 0:
        raise Error(f"{program.name} {source}: {run.stderr.strip()}")
    out = {}
    for line in run.stdout.splitlines():
        n, k, m, microseconds, family = line.split("\t")
        out[int(n), int(k), int(m)] = float(microseconds), family
    return out


def geometric_mean(ratio: np.ndarray) -> float:
    return float(np.exp(np.log(ratio).mean()))


def summary(ratio: np.ndarray, vendor: np.ndarray, judge_error: float) -> dict[str, float]:
    """Figures of the ratio of measured to predicted times.

    Args:
        vendor: predicted times of the vendor's library over predicted times.
    """
    return {
        "rows": len(ratio),
        "mean": geometric_mean(ratio),
        "vendor": geometric_mean(vendor),
        "ahead": float((ratio > 1).mean()),
        "clearly": float((ratio > 1 + judge_error).mean()),
        "behind": float((ratio < 1 / (1 + judge_error)).mean()),
    }


def summaries(
    judge: Judge, planned: np.ndarray, vendor: np.ndarray, errors: dict[str, float]
) -> dict[str, Any]:
    """Summaries by device and group of rows. `vendor`: predicted times, or NaN."""
    rows = judge.rows
    m, n = rows.extra["M"], rows.extra["N"]
    out: dict[str, Any] = {}
    for index, name in judge.present:
        own = rows.device == index
        ratio = rows.microseconds / planned
        sms = rows.launches.devices[index][0]
        full = np.ceil(m / WAVE_TILE) * np.ceil(n / WAVE_TILE) >= sms
        groups = {"all rows": own, "at least one wave": own & full, "less": own & ~full}
        for low, high in RANGES:
            groups[f"M {range_text(low, high)}"] = own & (m >= low) & (m <= high)
        out[name] = {
            g: summary(ratio[q], vendor[q] / planned[q], errors[name])
            for g, q in groups.items()
            if q.any()
        }
    return out


def too_fast(judge: Judge, planned: np.ndarray) -> dict[str, dict[str, Any]]:
    """The best shares of the peak and the bandwidth, measured and predicted."""
    measured = best_shares(judge, judge.rows.microseconds)
    predicted = best_shares(judge, planned)
    return {
        name: {
            limit: {"measured": measured[name][limit], "predicted": predicted[name][limit]}
            for limit in measured[name]
        }
        for _, name in judge.present
    }


def markdown(out: dict[str, Any]) -> str:
    names, errors = list(out["summaries"]), out["errors"]
    text = [
        f"Made on {out['date']}. Measured times of cuBLAS over predicted ones of FTuner's "
        "kernels, which were never measured: above 1 FTuner is predicted to be ahead. Clearly: by "
        "more than the error of the judge for the device "
        f"({', '.join(f'{n} {percent(errors[n])}' for n in names)}). By the model: predicted times "
        "of the vendor's kernels over those of FTuner's; – where they were not predicted.\n"
    ]
    lines = []
    for name in names:
        for group, s in out["summaries"][name].items():
            lines.append(
                [name, group, str(s["rows"]), f"{s['mean']:.2f}"]
                + ["–" if np.isnan(s["vendor"]) else f"{s['vendor']:.2f}"]
                + [percent(s[key], 0) for key in ("ahead", "clearly", "behind")]
            )
    header = ["device", "rows", "number", "geometric mean", "by the model", "ahead"]
    header.append("clearly ahead")
    text.append(table([*header, "clearly behind"], lines))
    text += ["\nThe best share of the rated peak and of the DRAM bandwidth:\n"]
    lines = []
    for name, shares in out["shares"].items():
        for limit, s in shares.items():
            lines.append([name, limit, percent(s["measured"]), percent(s["predicted"])])
    text.append(table(["device", "of", "measured, cuBLAS", "predicted, FTuner"], lines))
    return "\n".join(part.rstrip("\n") if part.startswith("|") else part for part in text) + "\n"


def plot(judge: Judge, planned: np.ndarray, path: Path) -> None:
    size = len(judge.present)
    fig, axes = plt.subplots(1, size, figsize=(4.4 * size, 3.6))
    rows = judge.rows
    m, ratio = rows.extra["M"], rows.microseconds / planned
    for (index, name), axis in zip(judge.present, np.atleast_1d(axes)):
        own = rows.device == index
        axis.semilogx(m[own], ratio[own], ".", ms=1.5, c=".6", rasterized=True)
        sizes = np.unique(m[own])
        edges = np.unique(np.round(2 ** np.arange(0, np.log2(sizes.max()) + 0.5, 0.5)))
        bins = np.digitize(m, edges)
        middle = [
            (np.exp(np.log(m[q]).mean()), np.exp(np.log(ratio[q]).mean()))
            for q in (own & (bins == b) for b in range(1, len(edges) + 1))
            if q.any()
        ]
        axis.semilogx(*zip(*middle), "C0", lw=2, label="geometric mean")
        axis.axhline(1, c="k", lw=0.7)
        axis.set(title=name, xlabel="M", ylim=(0.3, 2.5))
    np.atleast_1d(axes)[0].set_ylabel("cuBLAS measured / FTuner predicted")
    np.atleast_1d(axes)[0].legend()
    fig.tight_layout()
    fig.savefig(path, dpi=70)
    plt.close(fig)


def run(options: argparse.Namespace) -> int:
    report = Report.opened(options, options.name, mark=options.name)
    judged = report.folder / "tokens.json"
    if not judged.is_file():
        raise Error(f"expected the judge's errors in '{judged}': run judge_tokens.py first")
    errors = json.loads(judged.read_text(encoding="utf-8"))["unseen"]
    say("reading")
    judge = Judge(read_rows(Path(options.data), options.step))
    chosen = np.ones(len(judge.rows), bool)
    if options.library:
        chosen &= judge.rows.extra["library"] == options.library
    if options.devices:
        names = options.devices.split(",")
        if unknown := set(names) - set(judge.names):
            raise Error(f"expected devices of {judge.names}, but got {sorted(unknown)}")
        chosen &= np.isin(judge.rows.device, [judge.names.index(n) for n in names])
    of_chosen = np.isin(judge.rows.device, list(set(judge.rows.device[chosen])))
    every = judge.rows = judge.rows[of_chosen]
    say("predicting the vendor's kernels")
    vendor = judge.unseen() if options.unseen else np.full(len(every), np.nan)
    vendor, rows = vendor[chosen[of_chosen]], every[chosen[of_chosen]]
    judge.rows = rows
    planned, families = np.empty(len(rows)), np.empty(len(rows), dtype=object)
    for index, name in judge.present:
        say(f"plans for {name}")
        own = np.flatnonzero(rows.device == index)
        source, program = rows.devices.sources[index], Path(options.program)
        if options.unseen:
            fitted = every[every.device == index]
            found = unseen_predictions_of(rows[own], fitted, judge.begin[index], source, options)
        else:
            found = predictions_of(rows[own], source, program, options.paths, None)
        for row in own:
            key = tuple(int(rows.extra[axis][row]) for axis in "NKM")
            planned[row], families[row] = found[key]
    out = {
        "date": reports.today(),
        "errors": {name: errors[name] for _, name in judge.present},
        "summaries": summaries(judge, planned, vendor, errors),
        "shares": too_fast(judge, planned),
    }
    with open(report.folder / f"{options.name}.csv", "w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        header = ["device", "M", "N", "K", "vendor_us", "predicted_vendor_us", "predicted_us"]
        writer.writerow([*header, "family"])
        for row in range(len(rows)):
            sizes = [int(rows.extra[axis][row]) for axis in "MNK"]
            name = judge.names[rows.device[row]]
            times = [rows.microseconds[row], vendor[row], planned[row]]
            writer.writerow([name, *sizes, *times, families[row]])
    figure = report.folder / f"token_{options.name}.png"
    plot(judge, planned, figure)
    report.write(out, markdown(out), [figure])
    wrong = [
        f"{name}: {percent(s['predicted'])} of the {limit} predicted, but at most "
        f"{percent(s['measured'])} measured"
        for name, shares in out["shares"].items()
        for limit, s in shares.items()
        if s["predicted"] > s["measured"]
    ]
    for line in wrong:
        print(f"error: {line}", file=sys.stderr)
    return 1 if wrong else 0


def main() -> int:
    parser = reports.parser(__doc__, "data", "out", "docs", "step")
    parser.add_argument("--paths", help="codegen paths that compete, separated by commas")
    parser.add_argument("--devices", help="some of the devices, separated by commas")
    parser.add_argument("--library", help="rows of this library of the vendor alone")
    parser.add_argument("--unseen", action="store_true", help="by constants of other N and K")
    parser.add_argument("--name", default="predictions", help="of the results")
    parser.add_argument("--program", default=os.fspath(PROGRAM), help="token_predictions")
    return reports.exit_code(run, parser.parse_args())


if __name__ == "__main__":
    sys.exit(main())
