"""Codegen paths that the search takes for f16 products over M, and predicted times of each path.

    ninja -C build/release token_predictions
    python3 benchmarks/latency_model/path_choices.py --out OUT [--device h100] [--docs FILE.md]

For three projections (N, K) the compiler plans 1 to 4096 rows, once by the CUDA cores alone, once
with mma.sync beside them, and with all paths: without tensor maps, without them but with packed
weights, and with them. Writes OUT/path_choices.md and path_choices.png:
how fast each plan is beside that of mma.sync over M, and the kind of kernel that the last one
dispatches to.
--docs puts the table between the marks "path choices" of that file and the figure into figures/
beside it.
"""

from __future__ import annotations

import argparse
import os
import sys
from itertools import groupby
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import reports
from predict_tokens import PROGRAM, times_of
from reports import put_into_docs, read_docs, table

# Llama-2-7B's output, a wide one, and a short reduce axis.
SHAPES = ((4096, 4096), (22016, 4096), (12288, 1024))
MAX_ROWS = 4096
# Paths, whether kernels may take TMA, whether weights are packed; the last one is the search's choice.
MMA = ("simt,mma",)
SETS = (
    ("simt",),
    MMA,
    ("simt,mma,wgmma", "no-maps"),
    ("wgmma", "no-maps", "packed"),
    ("simt,mma,wgmma",),
)
# Clusters and persistent blocks have producers and TMA.
KINDS = (
    "simt",
    "mma",
    "wgmma",
    "wgmma, producers",
    "wgmma, TMA",
    "wgmma, producers, TMA",
    "wgmma, clusters",
    "wgmma, persistent blocks",
    "wgmma, persistent clusters",
)


def sizes() -> list[int]:
    """16 sizes for each doubling, whole ones."""
    return sorted({round(2 ** (i / 16)) for i in range(16 * 12 + 1)} | {MAX_ROWS})


def kind_of(family: str) -> str:
    path, *words = family.split()
    blocks = (
        "clusters" if "cluster" in words else "persistent blocks" if "persistent" in words else None
    )
    if blocks:
        return (
            f"{path}, persistent clusters"
            if {"cluster", "persistent"} <= set(words)
            else f"{path}, {blocks}"
        )
    parts = [part for part, word in (("producers", "producers"), ("TMA", "tma")) if word in words]
    return ", ".join([path, *parts])


def ranges_of(kinds: list[str], rows: list[int]) -> str:
    """Runs of equal kinds, from the smallest size on."""
    text, start = [], 0
    for kind, run in groupby(kinds):
        end = start + len(list(run))
        low, high = rows[start], rows[end - 1]
        text.append(f"{low if low == high else f'{low} to {high}'}: {kind}")
        start = end
    return "; ".join(text)


def run(options: argparse.Namespace) -> None:
    docs = Path(options.docs) if options.docs else None
    if docs:
        read_docs(docs, "path choices")
    folder = Path(options.out)
    folder.mkdir(parents=True, exist_ok=True)
    rows = sizes()
    program = Path(options.program)
    times = {
        some: times_of({shape: set(rows) for shape in SHAPES}, options.device, program, some)
        for some in SETS
    }
    fig, axes = plt.subplots(1, len(SHAPES), figsize=(4.6 * len(SHAPES), 3.8), sharey=True)
    lines = []
    for (n, k), axis in zip(SHAPES, axes):
        of_mma = [times[MMA][n, k, m][0] for m in rows]
        means = []
        for some in SETS:
            found = [times[some][n, k, m] for m in rows]
            speed = np.array([mma / us for mma, (us, _) in zip(of_mma, found)])
            axis.semilogx(rows, speed, lw=1, label=", ".join(some))
            means.append(float(np.exp(np.log(speed).mean())))
        # The choice of the last set.
        kinds = [kind_of(family) for _, family in found]
        for number, kind in enumerate(KINDS):
            q = [i for i, one in enumerate(kinds) if one == kind]
            if q:
                at = [rows[i] for i in q], [speed[i] for i in q]
                axis.plot(*at, ".", c=f"C{number + 3}", label=kind)
        axis.set(title=f"N {n}, K {k}", xlabel="M")
        shares = [f"{100 * kinds.count(kind) / len(kinds):.0f} %" for kind in KINDS]
        speeds = [f"{mean:.2f}" for mean in reversed(means[2:])]
        lines.append([f"{n} × {k}", *speeds, *shares, ranges_of(kinds, rows)])
        axis.legend(fontsize=7)
    axes[0].set_ylabel("speed beside simt,mma, predicted")
    fig.tight_layout()
    figure = folder / "path_choices.png"
    fig.savefig(figure, dpi=70)
    text = (
        f"{options.device}, f16, predictions for {len(rows)} sizes from 1 to {MAX_ROWS}, as many for each doubling: "
        "speed beside mma.sync (geometric mean) with all paths, without tensor maps but with packed weights, and "
        "without either; with all paths the share of sizes by kind of kernel, and where each is.\n\n"
        + table(["N × K", "all paths", "packed, no TMA", "no TMA", *KINDS, "M"], lines)
        + "\n"
    )
    (folder / "path_choices.md").write_text(text, encoding="utf-8")
    print(text)
    if docs:
        put_into_docs(docs, text, [figure], "path choices")


def main() -> int:
    parser = reports.parser(__doc__, "out", "docs")
    parser.add_argument("--device", default="h100")
    parser.add_argument("--program", default=os.fspath(PROGRAM), help="token_predictions")
    return reports.exit_code(run, parser.parse_args())


if __name__ == "__main__":
    sys.exit(main())
