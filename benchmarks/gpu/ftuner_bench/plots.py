"""The figures of a run, as PNG. Needs Matplotlib, no display."""

from __future__ import annotations

import math
import pathlib
from collections import defaultdict
from collections.abc import Iterable
from typing import Any

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

from .records import Record

STYLES = {
    "ftuner": ("FTuner", "#d62728", "-"),
    "cublas": ("cuBLAS", "#1f77b4", "-"),
    "cublaslt": ("cuBLASLt, fastest", "#17becf", "--"),
    "triton": ("Triton", "#2ca02c", "-"),
    "compile": ("torch.compile", "#9467bd", "-"),
    "compile_max": ("torch.compile, max-autotune", "#8c564b", "--"),
    "eager": ("PyTorch", "#1f77b4", "-"),
    "torch_ftuner": ("torch.compile, FTuner", "#d62728", "-"),
    "torch_ftuner_inductor": ("torch.compile, FTuner and Inductor", "#ff7f0e", "-"),
}
MOST_PANELS = 12
# Ranges of sizes beyond are drawn by their logarithm.
LINEAR_SIZES = 512


def write(
    folder: pathlib.Path, content: dict[str, Any], titles: dict[str, str], records: list[Record]
) -> None:
    heading = content["gpu"] + (": REHEARSAL, figures mean nothing" if content["rehearsal"] else "")
    products(folder / "products.png", heading, titles, records)
    programs(folder / "selection.png", heading, titles, records, content["selection_by_size"])
    models(folder / "models.png", heading, records)


def products(
    path: pathlib.Path, heading: str, titles: dict[str, str], records: Iterable[Record]
) -> None:
    """GFLOP/s over T, a row for each workload, warm and cold in graphs."""
    lines: dict[tuple[str, str, str], list[tuple[int, float, float, float]]] = defaultdict(list)
    for record in records:
        if record["kind"] == "time" and record["microseconds"]:
            batch, m, n, k = record["extents"]
            work, time = 2e-3 * batch * m * n * k, record["microseconds"]
            lines[record["workload"], record["mode"], record["peer"]].append(
                (record["size"], work / time["median"], work / time["q3"], work / time["q1"])
            )
    workloads = list(dict.fromkeys(workload for workload, _, _ in lines))
    if not workloads:
        return
    modes = ("graph_warm", "graph_cold")
    figure, axes = plt.subplots(
        len(workloads), len(modes), squeeze=False, figsize=(13, 3.6 * len(workloads))
    )
    for row, workload in enumerate(workloads):
        for column, mode in enumerate(modes):
            axis = axes[row][column]
            for (name, of, peer), points in lines.items():
                if name == workload and of == mode:
                    points.sort()
                    sizes, speed, low, high = zip(*points)
                    label, color, style = STYLES.get(peer, (peer, None, "-"))
                    axis.plot(sizes, speed, style, color=color, label=label, linewidth=1.2)
                    axis.fill_between(sizes, low, high, color=color, alpha=0.15, linewidth=0)
            axis.set_title(
                f"{titles.get(workload, workload)}, {'warm' if mode == 'graph_warm' else 'cold'} L2"
            )
            axis.set_ylabel("GFLOP/s")
            axis.set_ylim(bottom=0)
            axis.grid(alpha=0.3)
            axis.set_xlabel("T")
            if axis.get_xlim()[1] > LINEAR_SIZES:
                axis.set_xscale("log", base=2)
    axes[0][0].legend(fontsize=8)
    _save(figure, path, heading)


def programs(
    path: pathlib.Path,
    heading: str,
    titles: dict[str, str],
    records: Iterable[Record],
    summaries: list[dict[str, Any]],
) -> None:
    """Score against throughput, a panel for each workload and size, warm L2."""
    groups: dict[tuple[str, int], list[Record]] = defaultdict(list)
    for record in records:
        if (
            record["kind"] == "program"
            and record["mode"] == "graph_warm"
            and record["microseconds"]
            and record["program"]["rank"] is not None
        ):
            groups[record["workload"], record["size"]].append(record)
    if not groups:
        return
    chosen = _evenly(sorted(groups), MOST_PANELS)
    figures = {
        (entry["workload"], entry["size"]): entry
        for entry in summaries
        if entry["mode"] == "graph_warm"
    }
    columns = min(4, len(chosen))
    figure, axes = plt.subplots(
        math.ceil(len(chosen) / columns),
        columns,
        squeeze=False,
        figsize=(4.2 * columns, 3.4 * math.ceil(len(chosen) / columns)),
    )
    for axis in axes.flat:
        axis.set_visible(False)
    for axis, key in zip(axes.flat, chosen):
        axis.set_visible(True)
        group = sorted(groups[key], key=lambda record: record["program"]["rank"])
        best = min(record["microseconds"]["median"] for record in group)
        scores = [record["program"]["score"] for record in group]
        shares = [best / record["microseconds"]["median"] for record in group]
        pairs = [len(record["program"]["ukernels"]) == 2 for record in group]
        for two, label, color in ((False, "one uKernel", "#1f77b4"), (True, "two", "#ff7f0e")):
            axis.scatter(
                [s for s, p in zip(scores, pairs) if p == two],
                [s for s, p in zip(shares, pairs) if p == two],
                s=12,
                color=color,
                alpha=0.6,
                label=label,
                linewidths=0,
            )
        axis.scatter(
            scores[:1],
            shares[:1],
            s=60,
            facecolors="none",
            edgecolors="#d62728",
            label="chosen by the search",
        )
        rank = figures[key]["spearman"]
        axis.set_title(
            f"{key[0]}, T = {key[1]}, {len(group)} programs"
            + (f", ρ = {rank:.2f}" if rank is not None else ""),
            fontsize=9,
        )
        axis.set_xlabel("score")
        axis.set_ylabel("throughput / best")
        axis.set_ylim(0, 1.05)
        axis.grid(alpha=0.3)
    axes[0][0].legend(fontsize=7)
    _save(figure, path, heading)


def models(path: pathlib.Path, heading: str, records: Iterable[Record]) -> None:
    """Milliseconds of a forward pass over the length."""
    lines: dict[tuple[str, str], list[tuple[int, float, float, float]]] = defaultdict(list)
    for record in records:
        if record["kind"] == "model" and record["microseconds"]:
            time = record["microseconds"]
            panel = (
                f"{record['model']}, batch {record['batch']}, "
                f"{'graph' if record['mode'] == 'graph_warm' else 'plain calls'}"
            )
            lines[panel, record["how"]].append(
                (record["length"], *(time[key] / 1e3 for key in ("median", "q1", "q3")))
            )
    names = list(dict.fromkeys(model for model, _ in lines))
    if not names:
        return
    columns = min(4, len(names))
    rows = math.ceil(len(names) / columns)
    figure, axes = plt.subplots(rows, columns, squeeze=False, figsize=(4.5 * columns, 3.6 * rows))
    for axis, name in zip(axes.flat, names):
        for (model, how), points in lines.items():
            if model == name:
                points.sort()
                lengths, middle, low, high = zip(*points)
                label, color, style = STYLES.get(how, (how, None, "-"))
                axis.plot(
                    lengths, middle, style, marker="o", markersize=3, color=color, label=label
                )
                axis.fill_between(lengths, low, high, color=color, alpha=0.15, linewidth=0)
        axis.set_title(name)
        axis.set_xlabel("length")
        axis.set_ylabel("ms")
        axis.set_ylim(bottom=0)
        axis.grid(alpha=0.3)
    axes[0][0].legend(fontsize=8)
    _save(figure, path, heading)


def _evenly(items: list[tuple[str, int]], count: int) -> list[tuple[str, int]]:
    """At most `count`, spread over the list, its ends among them."""
    if len(items) <= count:
        return items
    return [items[round(i * (len(items) - 1) / (count - 1))] for i in range(count)]


def _save(figure: Any, path: pathlib.Path, heading: str) -> None:
    figure.suptitle(heading)
    figure.tight_layout()
    figure.savefig(path, dpi=110)
    plt.close(figure)
