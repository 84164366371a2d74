"""Groups errors of the latency model for measured programs of FTuner by what the programs have in common.

    python3 benchmarks/latency_model/program_residuals.py [--rows FILE.csv] [--device h200] [--scale FIELD=FACTOR]
        [--left-out size|weight] [--prior global]

Of programs of `wgmma` whose tiles are no taller than the product (others copy rows outside of it): the geometric mean
of measured over predicted times, the standard deviation of its logarithm, and nanoseconds of a step of 64 elements of k
beyond the prediction, by k, clusters, consumer warpgroups and ping-pong. At the end the regret of the model's choice
among the measured programs of each size. --scale multiplies a field of all blocks, such as cluster_cycles, to see what a
price would change.

--left-out prices the programs of each size (m, n, k), or of each weight (n, k), by constants that are fitted to the
programs of all others, from those of --prior on, and adds the mean error and the rank correlation of each size.

By default the programs of the second run on an H200 (benchmarks/results/h200-2026-11-26-2).
"""

from __future__ import annotations

import argparse
import sys
from itertools import product
from pathlib import Path

import numpy as np
from scipy.stats import spearmanr

from ftuner.latency.fit import fit_own
from ftuner.latency.measurements.readers import read
from ftuner.latency.measurements.rows import Devices
from ftuner.latency.measurements.table import Table
from ftuner.latency.model import model
from reports import ROOT, table

#: Columns that tell the programs that one fit leaves out.
LEFT_OUT = {"size": ("m", "n", "k"), "weight": ("n", "k")}
ROWS = ROOT / "benchmarks" / "results" / "h200-2026-11-26-2" / "programs.csv.xz"
#: Fewer rows say nothing.
MIN_ROWS = 3
STEP = 64


def rows_by_size(names: list[tuple[str, ...]]) -> list[list[int]]:
    """Returns the rows of each size that has more than five programs."""
    sizes: dict[tuple[str, ...], list[int]] = {}
    for row, name in enumerate(names):
        sizes.setdefault(name, []).append(row)
    return [rows for rows in sizes.values() if len(rows) > 5]


def regret_of(sizes: list[list[int]], measured: np.ndarray, predicted: np.ndarray) -> list[float]:
    """Returns the share that the program with the minimum predicted time loses, for each size."""
    return [
        measured[min(rows, key=lambda row: predicted[row])] / measured[rows].min() - 1
        for rows in sizes
    ]


def left_out(rows, names: list[tuple[str, ...]], prior: str) -> np.ndarray:
    """Returns the prediction of each row by constants that are fitted to the rows of other names."""
    predicted = np.empty(len(rows))
    for name in sorted(set(names)):
        own = np.array([other == name for other in names])
        found = fit_own(rows[~own], model().calibration(prior))
        predicted[own] = rows[own].predict(found.constants, found.offset)
        print(f"{' x '.join(name)}: {own.sum()} rows", file=sys.stderr)
    return predicted


def correlations(
    sizes: list[list[int]], measured: np.ndarray, predicted: np.ndarray
) -> list[float]:
    """Returns Spearman's rank correlation of each size."""
    return [float(spearmanr(measured[rows], predicted[rows])[0]) for rows in sizes]


def scale_of(text: str) -> tuple[str, float]:
    """Reads FIELD=FACTOR."""
    field, _, factor = text.partition("=")
    if field not in model().part_fields:
        raise argparse.ArgumentTypeError(
            f"expected one of {', '.join(model().part_fields)}, but got '{field}'"
        )
    return field, float(factor)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=Path, default=ROWS)
    parser.add_argument("--device", default="h200")
    parser.add_argument("--scale", metavar="FIELD=FACTOR", type=scale_of)
    parser.add_argument("--left-out", choices=LEFT_OUT)
    parser.add_argument(
        "--prior", default="global", help="with --left-out: the calibration that fits begin with"
    )
    options = parser.parse_args()
    rows = read([options.rows], Devices({}, options.device))
    if options.scale:
        field, factor = options.scale
        rows.launches.parts[..., model().part_fields.index(field)] *= factor
    given = Table(options.rows).columns
    number = {
        name: np.array([int(value or 0) for value in given[name]])
        for name in given
        if name not in ("device", "type", "path", "us", "combine_axis")
    }
    measured = rows.microseconds
    if options.left_out:
        predicted = left_out(
            rows, list(zip(*(given[name] for name in LEFT_OUT[options.left_out]))), options.prior
        )
    else:
        predicted = rows.predict(model().calibration(options.device))
    is_wgmma = np.array([path == "wgmma" for path in given["path"]])
    fits = is_wgmma & (number["m"] >= number["block_m"])
    clusters = number["cluster_m"] * number["cluster_n"] > 1
    warpgroups = number["warpgroups_m"] * number["warpgroups_n"]
    lines = []
    for k, cluster, count, ping_pong in product(
        sorted(set(number["k"][fits])), (False, True), (1, 2, 3), (0, 1)
    ):
        own = (
            fits
            & (number["k"] == k)
            & (clusters == cluster)
            & (warpgroups == count)
            & (number["ping_pong"] == ping_pong)
        )
        if own.sum() < MIN_ROWS:
            continue
        ratio = np.log(measured[own] / predicted[own])
        excess = 1e3 * (measured[own] - predicted[own]) / (k / STEP)
        lines.append(
            [
                str(k),
                "2" if cluster else "1",
                str(count),
                "yes" if ping_pong else "no",
                str(own.sum()),
                f"{np.exp(ratio.mean()):.3f}",
                f"{ratio.std():.3f}",
                f"{np.median(excess):.0f}",
            ]
        )
    print(
        table(
            [
                "k",
                "blocks of a cluster",
                "warpgroups of a tile",
                "ping-pong",
                "programs",
                "measured / predicted",
                "deviation",
                "ns a step beyond",
            ],
            lines,
        )
    )
    names = list(zip(*(given[name] for name in ("type", "m", "n", "k"))))
    chosen = np.flatnonzero(is_wgmma)
    measured, predicted = measured[chosen], predicted[chosen]
    sizes = rows_by_size([names[row] for row in chosen])
    regret = regret_of(sizes, measured, predicted)
    ranks = correlations(sizes, measured, predicted)
    print(
        f"\nRegret of the choice among measured programs: {100 * np.mean(regret):.2f} % in the mean, "
        f"{100 * np.max(regret):.1f} % at the worst of {len(sizes)} sizes."
    )
    print(
        f"Mean error {100 * np.abs(predicted / measured - 1).mean():.1f} % of {len(chosen)} programs; rank correlation "
        f"of a size {np.mean(ranks):.3f} in the mean, {np.min(ranks):.2f} at the minimum."
    )


if __name__ == "__main__":
    main()
