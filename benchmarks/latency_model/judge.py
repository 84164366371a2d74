"""Judges the latency model on published measurements: docs/latency.md, regenerated.

    python3 benchmarks/latency_model/judge.py --data FOLDER --out OUT [--full]

FOLDER has gemm_latency_train.csv.gz and gemm_latency_h100.csv.gz (vendor rows) and
gemm_configs_rtx3090.csv.gz (configurations); README.md says how to make them. Other files in these formats go by
--vendor and --configs. Fits by `ftuner.latency.fit`, the code of `ftuner calibrate`; the
formulas are the compiler's own.

Writes OUT/results.json, results.md, rtx3090.png and vendor.png. About 2 minutes; --full adds
gradient-boosted trees (scikit-learn) and ablations, 5 to 15 minutes. --docs FILE.md also puts
the tables between the marks of that file and the figures into figures/ beside it.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from scipy.stats import spearmanr

import baselines
import reports
from ftuner.cli.common import parse_pairs
from ftuner.latency import fit as fits
from ftuner.latency.fit import error, fit_global, fit_own, fit_timing
from ftuner.latency.measurements.readers import read
from ftuner.latency.measurements.rows import Devices, MeasurementTable
from ftuner.latency.model import model
from reports import Report, percent, say, table

# In the published rows these names mean PCIe cards.
DATA_MAP = {"p100": "p100-pcie", "v100": "v100-pcie", "a100": "a100-pcie"}
UNSEEN_FOLD = 0


# --- ranking of configurations ---------------------------------------------------------


def ranking(
    x: MeasurementTable, score: np.ndarray, mask: np.ndarray | None = None
) -> dict[str, float]:
    """How well a score (smaller is better) ranks configurations."""
    mask = np.ones(len(x), bool) if mask is None else mask
    rows, y = np.flatnonzero(mask), x.microseconds
    staged = mask & x.extra["is_staged"].astype(bool)
    order, best = rows[np.argsort(score[rows], kind="stable")], y[rows].min()
    return {
        "spearman": float(spearmanr(score[rows], y[rows])[0]),
        "staged": float(spearmanr(score[staged], y[staged])[0]),
        "top1": float(best / y[order[0]]),
        "top10": float(best / y[order[:10]].min()),
    }


def both(x: MeasurementTable, score: np.ndarray, draws: int = 1) -> dict[str, dict[str, float]]:
    """Rankings of all and of unseen configurations: means over random orders of ties."""
    rng = np.random.default_rng(0)
    out: dict[str, dict[str, float]] = {}
    for part, mask in (("all", None), ("unseen", x.fold == UNSEEN_FOLD)):
        noise = [1e-12 * np.abs(score).mean() * rng.random(len(score)) for _ in range(draws)]
        results = [ranking(x, score + (n if draws > 1 else 0), mask) for n in noise]
        out[part] = {key: float(np.mean([r[key] for r in results])) for key in results[0]}
    return out


def judge_configurations(
    x: MeasurementTable, constants: dict[str, float], full: bool
) -> dict[str, Any]:
    predicted = x.predict(constants)
    rounded = {name: float(f"{value:.2g}") for name, value in constants.items()}
    out = {
        "latency": both(x, predicted),
        "latency, two digits": both(x, x.predict(rounded)),
        "SIA": both(x, -baselines.sia(x), 50),
        "roofline × waves": both(x, baselines.roofline(x, by_tile=True), 50),
    }
    out["latency"]["all"]["mape"] = error(predicted, x.microseconds)
    if full:
        say("trees, configurations")
        names = ("MWG", "NWG", "MDIMC", "NDIMC", "VWM", "VWN", "SA", "SB")
        columns = [x.extra[name] for name in names]
        columns += [x.extra["MDIMA"] * x.extra["SA"], x.extra["NDIMB"] * x.extra["SB"]]
        features, every = np.column_stack(columns), np.ones(len(x), bool)
        train = x.fold != UNSEEN_FOLD
        out["trees"] = both(x, baselines.trees(features, x.microseconds, train, every))
    return out


def judge_confidence(x: MeasurementTable, constants: dict[str, float]) -> list[dict[str, float]]:
    """How often a predicted lead among kernels that stage is right, by its size."""
    staged = np.flatnonzero(x.extra["is_staged"].astype(bool))
    predicted, rng = x.predict(constants), np.random.default_rng(0)
    a, b = rng.choice(staged, 200000), rng.choice(staged, 200000)
    lead = np.log(predicted[a] / predicted[b])
    right = (lead < 0) == (x.microseconds[a] < x.microseconds[b])
    out = []
    for low, high in ((0, 0.02), (0.02, 0.05), (0.05, 0.1), (0.1, 0.2), (0.2, 0.4)):
        q = (abs(lead) >= low) & (abs(lead) < high)
        out.append({"from": low, "to": high, "right": float(right[q].mean())})
    return out


# --- times of vendor kernels ---------------------------------------------------------------


class Vendor:
    """Vendor rows with what is trained and judged on."""

    def __init__(self, rows: MeasurementTable) -> None:
        self.rows = rows
        self.names = rows.devices.names
        self.present = sorted(set(rows.device.tolist()))
        self.test = rows.is_fit & (rows.fold == UNSEEN_FOLD)
        self.train = rows.is_fit & (rows.fold != UNSEEN_FOLD)

    def errors(self, predicted: np.ndarray, mask: np.ndarray) -> dict[str, float]:
        """Mean errors of a mask, pooled and by device."""
        y = self.rows.microseconds
        out = {"pooled": error(predicted[mask], y[mask])}
        for index in self.present:
            q = mask & (self.rows.device == index)
            out[self.names[index]] = error(predicted[q], y[q])
        return out

    def only(self, predict: Any) -> np.ndarray:
        """Predictions by `predict(index, mask)` for each device."""
        out = np.full(len(self.rows), np.nan)
        for index in self.present:
            q = self.rows.device == index
            out[q] = predict(index, q)
        return out


def left_out(
    v: Vendor, start: dict[str, float], names: Any = ()
) -> tuple[dict[int, Any], np.ndarray, np.ndarray]:
    """Fits without each device, and predictions of its rows: with the other hosts' offset, and
    with that of its own host."""
    found: dict[int, Any] = {}

    def strict(index: int, q: np.ndarray) -> np.ndarray:
        others = v.rows.is_fit & ~q
        found[index] = fit_global(v.rows[others], start, names)
        return v.rows[q].predict(found[index].constants, found[index].offset)

    def timed(index: int, q: np.ndarray) -> np.ndarray:
        own = v.rows[q]
        constants = found[index].constants
        offset = fit_timing(own[own.is_fit], constants, found[index].offset)
        return own.predict(constants, offset)

    return found, v.only(strict), v.only(timed)


def judge_vendor(
    v: Vendor, x: MeasurementTable | None, start: dict[str, float], full: bool
) -> tuple[dict[str, Any], dict[str, float], dict[int, Any], dict[str, np.ndarray]]:
    rows = v.rows
    out: dict[str, Any] = {}
    say("global constants, folds 1 to 4")
    shared = fit_global(rows[v.train], start)
    constants = shared.constants
    if x is not None:
        train = x[x.fold != UNSEEN_FOLD]
        constants = fits.fit(train, constants, fits.COMPILED).constants
    timed = fit_timing(rows[v.train], constants, shared.offset)
    out["latency, global constants"] = v.errors(rows.predict(constants, timed), v.test)
    say("own constants, folds 1 to 4")

    def own(index: int, q: np.ndarray) -> np.ndarray:
        found = fit_own(rows[v.train & q], constants, shared.offset)
        return rows[q].predict(found.constants, found.offset)

    predicted = {"own": v.only(own)}
    out["latency, own constants"] = v.errors(predicted["own"], v.test)
    say("each device left out")
    found, predicted["left"], hosts = left_out(v, start)
    out["latency, device left out"] = v.errors(predicted["left"], rows.is_fit)
    out["latency, device left out, its host's timing known"] = v.errors(hosts, rows.is_fit)

    say("baselines")
    sia, roof = baselines.sia_time(rows), baselines.roofline(rows)
    out["SIA, calibrated"] = v.errors(baselines.affine(rows, sia, v.train, True), v.test)
    out["roofline × waves, raw"] = v.errors(np.maximum(rows.floor, roof), v.test)
    out["roofline × waves, calibrated"] = v.errors(
        baselines.affine(rows, roof, v.train, True), v.test
    )
    for name, score in (("SIA", sia), ("roofline × waves", roof)):

        def others(index: int, q: np.ndarray, score: np.ndarray = score) -> np.ndarray:
            return baselines.affine(rows, score, rows.is_fit & ~q, False)[q]

        out[f"{name}, device left out"] = v.errors(v.only(others), rows.is_fit)
    if full:
        say("trees, vendor rows")
        features, every = baselines.tree_features(rows), np.ones(len(rows), bool)
        time_of = rows.microseconds
        out["trees"] = v.errors(baselines.trees(features, time_of, v.train, every), v.test)

        def trees_without(index: int, q: np.ndarray) -> np.ndarray:
            say(f"trees without {v.names[index]}")
            return baselines.trees(features, time_of, rows.is_fit & ~q, q)

        out["trees, device left out"] = v.errors(v.only(trees_without), rows.is_fit)
    return out, constants, found, predicted


def judge_calibration(v: Vendor, found: dict[int, Any]) -> dict[str, dict[str, float]]:
    """Errors on the unseen fold after calibrating a device on a few rows of the other folds;
    the prior is fitted without the device. Medians of five draws."""
    out = {}
    for number in (0, 30, 100, 300, 1000):
        figures = {}
        for index in v.present:
            own = v.rows.device == index
            test, some = v.rows[v.test & own], np.flatnonzero(v.train & own)
            prior, results = found[index], []
            for seed in range(5 if number else 1):
                constants, offset = prior.constants, prior.offset
                if number:
                    few = np.random.default_rng(seed).choice(
                        some, min(number, len(some)), replace=False
                    )
                    fitted = fit_own(v.rows[np.sort(few)], prior.constants, prior.offset)
                    constants, offset = fitted.constants, fitted.offset
                results.append(error(test.predict(constants, offset), test.microseconds))
            figures[v.names[index]] = float(np.median(results))
            figures[f"{v.names[index]}, worst"] = max(results)
        out[str(number)] = figures
    return out


def judge_shift(v: Vendor, start: dict[str, float]) -> dict[str, dict[str, float]]:
    """Constants from one kind of rows, judged on another."""
    linear, short = v.rows.group == "vendor linear", v.rows.microseconds < 2000
    out = {}
    for name, train, test in (
        ("bmm → linear", ~linear, linear),
        ("linear → bmm", linear, ~linear),
        ("below 2 ms → above", short, ~short),
        ("above 2 ms → below", ~short, short),
    ):
        train, test = train & v.rows.is_fit, test & v.rows.is_fit
        if not train.any() or not test.any():
            continue
        say(f"shift: {name}")
        shared = fit_global(v.rows[train], start)

        def own(
            index: int, q: np.ndarray, train: np.ndarray = train, shared: Any = shared
        ) -> np.ndarray:
            if not (train & q).any():
                return v.rows[q].predict(shared.constants, shared.offset)
            found = fit_own(v.rows[train & q], shared.constants, shared.offset)
            return v.rows[q].predict(found.constants, found.offset)

        y = v.rows.microseconds[test]
        out[name] = {
            "global": error(v.rows.predict(shared.constants, shared.offset)[test], y),
            "own": error(v.only(own)[test], y),
        }
    return out


# Cycles of an exposed copy: the constant that is fixed by physics more than by rows.
LATENCIES = (100, 300, 500, 700, 900, 1100, 1300, 1600, 2000, 3000)


def judge_global_latency(v: Vendor, shared: dict[str, float]) -> dict[str, dict[str, float]]:
    """Errors on the unseen fold with each value of `global_latency`, own constants refitted."""
    out = {}
    for cycles in LATENCIES:
        say(f"global_latency {cycles}")
        begin = {**shared, "global_latency": float(cycles)}

        def own(index: int, q: np.ndarray, begin: dict[str, float] = begin) -> np.ndarray:
            found = fit_own(v.rows[v.train & q], begin)
            return v.rows[q].predict(found.constants, found.offset)

        out[str(cycles)] = v.errors(v.only(own), v.test)
    return out


# Constants that take a part of the model away.
ABLATIONS: dict[str, dict[str, float]] = {
    "(full)": {},
    "latency": {"global_latency": 1e-6, "direct_latency": 1e-6},
    "block start": {"block_start": 1e-6},
    "L2 bound": {"l2_bytes_per_cycle": 1e9},
    "re-reads from DRAM": {"l2_share": 1e9},
    "narrow runs": {"narrow_run": 1e-9},
    "drift": {"drift": 1e12},
    "misaligned stores": {"unaligned_store": 1e-9},
    "power": {"flop_energy": 1e-6, "l2_energy": 1e-6, "dram_energy": 1e-6},
    "power's delay": {"power_delay": 1e-6},
    "overlap: the greatest (p = 40)": {"overlap": 40.0},
    "overlap: p = 2": {"overlap": 2.0},
    "loaded registers": {"loaded_register": 1e-6},
    "lines": {"line": 1e-6},
    "spills": {"spill": 1e-9},
}


def judge_ablations(
    v: Vendor, x: MeasurementTable | None, start: dict[str, float]
) -> dict[str, Any]:
    """Everything refitted without one part of the model at a time."""
    out: dict[str, Any] = {}
    every = fits.shared_names()
    for name, fixed in ABLATIONS.items():
        say(f"without {name}")
        names, figures = [n for n in every if n not in fixed], {}
        begin = {**start, **fixed}
        if not fixed or not set(fixed) <= set(fits.COMPILED) - set(fits.OWN):
            found, strict, _ = left_out(v, begin, names)
            figures = v.errors(strict, v.rows.is_fit)
            shared = fit_global(v.rows[v.train], begin, names)
            own_names = [n for n in fits.OWN if n not in fixed]

            def own(index: int, q: np.ndarray) -> np.ndarray:
                fitted = fit_own(v.rows[v.train & q], shared.constants, shared.offset, own_names)
                return v.rows[q].predict(fitted.constants, fitted.offset)

            figures["known"] = v.errors(v.only(own), v.test)["pooled"]
            begin = shared.constants
        if x is not None:
            free = [n for n in fits.COMPILED if n not in fixed]
            figures.update(ranking(x, x.predict(fits.fit(x, begin, free).constants)))
        out[name] = figures
    return out


# --- tables and figures ---------------------------------------------------------------------


def ranking_table(results: dict[str, Any]) -> str:
    def cells(r: dict[str, float]) -> list[str]:
        return [f"{r['spearman']:.3f}", f"{r['staged']:.3f}"] + [
            percent(r[n], 0) for n in ("top1", "top10")
        ]

    header = ["model", "Spearman", "staged", "top 1", "top 10"]
    header += [f"unseen: {h}" for h in ("Spearman", "staged", "top 1", "top 10")]
    return table(
        header,
        [[name, *cells(r["all"]), *cells(r["unseen"])] for name, r in results.items()],
    )


def vendor_table(v: Vendor, results: dict[str, Any]) -> str:
    devices = ["pooled", *(v.names[index] for index in v.present)]
    return table(
        ["model", *devices],
        [[name, *(percent(r[d]) for d in devices)] for name, r in results.items()],
    )


def goals(out: dict[str, Any]) -> str:
    lines = []
    for name, results in out.get("configurations", {}).items():
        r = results["latency"]
        for text, key, goal in (
            ("Spearman", "spearman", 0.97),
            ("Spearman, staged", "staged", 0.99),
            ("first choice, share of the best", "top1", 0.92),
            ("best of the first ten", "top10", 0.97),
        ):
            shown = (lambda z: percent(z, 0)) if key.startswith("top") else "{:.3f}".format
            lines.append(
                [
                    f"{name}: {text}; all / unseen",
                    f"≥ {shown(goal)}",
                    f"{shown(r['all'][key])} / {shown(r['unseen'][key])}",
                ]
            )
    if vendor := out.get("vendor"):
        known = vendor["latency, own constants"]
        for name, value in known.items():
            device = "known device" if name == "pooled" else name
            lines.append([f"unseen shapes, {device}", "≤ 10 %", percent(value)])
        for name, value in vendor["latency, device left out"].items():
            if name != "pooled":
                lines.append([f"{name} left out", "≤ 12 %", percent(value)])
    return table(["goal", "asked", "reached"], lines)


def markdown(out: dict[str, Any], v: Vendor | None) -> str:
    text = ["### Goals\n", goals(out)]
    for name, results in out.get("configurations", {}).items():
        text += [
            f"\n### Ranking: {name}\n",
            "Spearman correlation over all configurations and over those that stage both operands; "
            "throughput of the first choice, and of the best of the first ten, over the best. "
            "Unseen: a fifth that no fit saw.\n",
            ranking_table(results),
        ]
    if v is not None:
        text += [
            "\n### Times of vendor kernels\n",
            "Mean of |predicted / measured − 1| over rows above twice the launch floor. A device "
            "left out: all of its rows; otherwise the fold that no fit saw.\n",
            vendor_table(v, out["vendor"]),
            "\n### Calibrating on few rows\n",
            "The prior is fitted without the device. Median of five draws (worst), unseen fold.\n",
        ]
        names = [v.names[index] for index in v.present]
        lines = [
            [number, *(f"{percent(r[n])} ({percent(r[n + ', worst'])})" for n in names)]
            for number, r in out["calibration"].items()
        ]
        text.append(table(["rows", *names], lines))
    if shift := out.get("shift"):
        text += ["\n### Fitted on one kind of rows, judged on another\n"]
        lines = [[n, percent(r["global"]), percent(r["own"])] for n, r in shift.items()]
        text.append(table(["rows", "global constants", "own constants"], lines))
    if latencies := out.get("global_latency"):
        assert v is not None
        text += ["\n### Cycles of an exposed copy\n"]
        text += ["Own constants refitted with each `global_latency`; the fold that no fit saw.\n"]
        text.append(vendor_table(v, latencies).replace("| model |", "| cycles |"))
    if ablations := out.get("ablations"):
        text += ["\n### Without one part of the model\n", "Everything else refitted.\n"]
        devices = [v.names[index] for index in v.present] if v is not None else []
        lines = [
            [
                name,
                percent(r.get("known")),
                *(percent(r.get(d)) for d in devices),
                *(f"{r[n]:.3f}" if n in r else "–" for n in ("spearman", "staged")),
                *(percent(r.get(n), 0) for n in ("top1", "top10")),
            ]
            for name, r in ablations.items()
        ]
        header = ["without", "known devices", *(f"{d} left out" for d in devices)]
        text.append(table([*header, "Spearman", "staged", "top 1", "top 10"], lines))
    if confidence := out.get("confidence"):
        text += ["\n### How often a predicted lead is right\n"]
        cells = [f"{percent(r['from'], 0)} to {percent(r['to'], 0)}" for r in confidence]
        text.append(
            table(["lead", *cells], [["right", *(percent(r["right"], 0) for r in confidence)]])
        )
    return "\n".join(part.rstrip("\n") if part.startswith("|") else part for part in text) + "\n"


def plot_configurations(x: MeasurementTable, predicted: np.ndarray, name: str, path: Path) -> None:
    fig, axes = plt.subplots(1, 2, figsize=(10, 4.4))
    staged = x.extra["is_staged"].astype(bool)
    y = x.microseconds
    for q, color, label in ((~staged, ".7", "not staged"), (staged, "C0", "staged")):
        axes[0].loglog(y[q] / 1e3, predicted[q] / 1e3, ".", ms=2, c=color, label=label)
    limits = [y.min() / 1.2e3, y.max() * 1.2e-3]
    axes[0].plot(limits, limits, "k", lw=0.5)
    axes[0].set(xlabel="measured, ms", ylabel="predicted, ms", title=name)
    axes[0].legend()
    share, n = y.min() / y[np.argsort(predicted, kind="stable")[:200]], np.arange(1, 201)
    axes[1].plot(n, np.maximum.accumulate(share), label="best of the first n")
    axes[1].plot(n[: len(share)], share, ".", ms=3, label="n-th")
    axes[1].set(xlabel="n-th by prediction", ylabel="share of the best")
    axes[1].legend()
    fig.tight_layout()
    fig.savefig(path, dpi=80)
    plt.close(fig)


def plot_vendor(v: Vendor, predicted: dict[str, np.ndarray], path: Path) -> None:
    size = len(v.present)
    fig, axes = plt.subplots(
        2, size, figsize=(3.2 * size, 6.4), layout="constrained", squeeze=False
    )
    cases = (("own constants", "own", v.test), ("left out", "left", v.rows.is_fit))
    y, groups = v.rows.microseconds, sorted(set(v.rows.group))
    for column, index in enumerate(v.present):
        for row, (title, key, mask) in enumerate(cases):
            q, axis = mask & (v.rows.device == index), axes[row, column]
            for group in groups:
                z = q & (v.rows.group == group)
                axis.loglog(y[z], predicted[key][z], ".", ms=1, label=group)
            axis.plot([50, 1e6], [50, 1e6], "k", lw=0.5)
            wrong = error(predicted[key][q], y[q])
            axis.set_title(f"{v.names[index]}, {title}: {percent(wrong)}", fontsize=9)
    fig.supxlabel("measured, us")
    fig.supylabel("predicted, us")
    axes[0, 0].legend()
    fig.savefig(path, dpi=62)
    plt.close(fig)


def parse() -> argparse.Namespace:
    parser = reports.parser(__doc__, "out", "docs")
    parser.add_argument("--data", help="folder of the published rows")
    parser.add_argument("--vendor", action="append", default=[], help="vendor rows (.csv, .csv.gz)")
    parser.add_argument(
        "--configs", action="append", default=[], help="configurations (…_DEVICE.csv, .csv.gz)"
    )
    parser.add_argument(
        "--map",
        action="append",
        default=[],
        metavar="NAME=DEVICE",
        help="what rows call NAME is this device (default: the published rows' PCIe cards)",
    )
    parser.add_argument("--full", action="store_true", help="also trees and ablations")
    options = parser.parse_args()
    if options.data:
        for name in ("h100", "train"):
            options.vendor.insert(0, os.path.join(options.data, f"gemm_latency_{name}.csv.gz"))
        options.configs.insert(0, os.path.join(options.data, "gemm_configs_rtx3090.csv.gz"))
    if not options.vendor and not options.configs:
        parser.error("expected --data, --vendor or --configs")
    return options


def run(options: argparse.Namespace) -> None:
    report = Report.opened(options, "results")
    mapping = {**DATA_MAP, **parse_pairs(options.map, "--map")}
    out: dict[str, Any] = {}
    figures: list[Path] = []
    start, x, v = model().start(), None, None
    say("reading")
    tables = [read([path], Devices(mapping)) for path in options.configs]
    # The first configurations determine constants; others are judged by them.
    x = tables[0] if tables else None
    constants = start
    if options.vendor:
        v = Vendor(read(options.vendor, Devices(mapping)))
        for text in v.rows.warnings:
            say(f"warning: {text}")
        out["vendor"], constants, found, predicted = judge_vendor(v, x, start, options.full)
        say("calibration on few rows")
        out["calibration"] = judge_calibration(v, found)
        figures.append(report.folder / "vendor.png")
        plot_vendor(v, predicted, figures[-1])
    elif x is not None:
        constants = fits.fit(x[x.fold != UNSEEN_FOLD], start, fits.COMPILED).constants
    out["constants"] = constants
    out["configurations"] = {}
    for rows in tables:
        name = rows.devices.names[int(rows.device[0])]
        say(f"ranking, {name}")
        out["configurations"][name] = judge_configurations(rows, constants, options.full)
        figures.append(report.folder / f"{name}.png")
        plot_configurations(rows, rows.predict(constants), name, figures[-1])
    if x is not None:
        out["confidence"] = judge_confidence(x, constants)
    if options.full and v is not None:
        out["shift"] = judge_shift(v, start)
        out["global_latency"] = judge_global_latency(v, constants)
        out["ablations"] = judge_ablations(v, x, start)
    report.write(out, markdown(out, v), figures)
    say("done")


def main() -> int:
    return reports.exit_code(run, parse())


if __name__ == "__main__":
    sys.exit(main())
