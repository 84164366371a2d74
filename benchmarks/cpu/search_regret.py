#!/usr/bin/env python3
"""Judges the searches under one fixed model, `latency`, for Dense of the paper.

For each device, with M = T and M = 16·T rows, T = 1…128, N = 2304, K = 768: the
regret of what each search chooses, predicted time over that of the fastest
program that `--strategy=exhaustive` finds for the size, less 1; mean and worst
over the sizes. Regret says how much of the model's optimum a search and few
kernels lose; how good the model is, docs/latency.md says. Nothing is measured: for
`dietcode` the model's predictions stand in.

Writes Markdown, and draws the regret over the sizes with --figure FILE.svg
(matplotlib).
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile

import workloads

SEARCHES = {
    "ftuner": [],
    "ftuner, 8 kernels": ["--max-kernels=8"],
    "ftuner ranked by SIA": ["--cost-model=sia"],
    "near the paper": ["--preset=paper", "--main-axis=dynamic"],
    "roller": ["--strategy=roller"],
    "gensor": ["--strategy=gensor"],
    "dietcode": ["--strategy=dietcode"],
}
COLOURS = dict(
    zip(SEARCHES, ("#0072B2", "#56B4E9", "#D55E00", "#CC79A7", "#009E73", "#E69F00", "#000000"))
)


def explain(options, path, device, arguments):
    """The explained sizes and the number of families; none where no uKernel is feasible."""
    command = [
        os.path.join(options.bin_dir, "ftuner-translate"),
        path,
        "--ftuner-explain",
        "--json",
        f"--device={device}",
    ] + arguments
    run = subprocess.run(command, capture_output=True, text=True)
    if "found no feasible uKernel" in run.stderr:
        return None
    if run.returncode != 0:
        sys.exit(run.stderr)
    workload = json.loads(run.stdout)["workloads"][0]
    return workload["shapes"], len(workload["families"])


def judge(options, path, device):
    """For each search, its families and the regret of every size; and the sizes."""
    shapes, _ = explain(options, path, device, ["--strategy=exhaustive"])
    sizes = [shape["shape"][0] for shape in shapes]
    fastest = dict(zip(sizes, (-shape["best_score"] for shape in shapes)))
    result = {}
    for name, arguments in SEARCHES.items():
        print(f"{device}, {os.path.basename(path)}: {name}", file=sys.stderr)
        found = explain(options, path, device, arguments)
        if found:
            shapes, families = found
            result[name] = (
                families,
                [
                    shape["program"]["predicted_us"] / fastest[shape["shape"][0]] - 1
                    for shape in shapes
                ],
            )
    return sizes, result


def draw(pyplot, judged, path):
    """One panel for each device and workload."""
    columns = len(workloads.RANGES)
    rows = -(-len(judged) // columns)
    figure, axes = pyplot.subplots(
        rows,
        columns,
        figsize=(5.2 * columns, 2.3 * rows),
        squeeze=False,
        sharey=True,
        layout="constrained",
    )
    for axis, ((device, label), (sizes, searches)) in zip(axes.flat, judged.items()):
        for name, (_, regrets) in searches.items():
            axis.plot(
                sizes,
                [100 * regret for regret in regrets],
                color=COLOURS[name],
                label=name,
                linewidth=1,
            )
        axis.set_title(f"{device}, {label}", fontsize=9)
        axis.set_yscale("symlog", linthresh=1)
        axis.set_yticks([0, 1, 10, 100, 1000], ["0", "1", "10", "100", "1000"])
        axis.grid(alpha=0.3)
    for axis in axes[:, 0]:
        axis.set_ylabel("regret in %")
    for axis in axes[-1]:
        axis.set_xlabel("rows M")
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(
        handles, labels, loc="outside upper center", ncols=len(labels), fontsize=8, frameon=False
    )
    workloads.save_figure(figure, path)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--bin-dir", default=workloads.BIN)
    parser.add_argument("--devices", default="h200,v100,a100,rtx3090")
    parser.add_argument("--figure", metavar="FILE.svg")
    options = parser.parse_args()
    pyplot = workloads.load_pyplot(options.figure) if options.figure else None
    judged = {}
    print(
        "| device, rows | "
        + " | ".join(f"{name}: mean, worst (families)" for name in SEARCHES)
        + " |"
    )
    print("|---" * (len(SEARCHES) + 1) + "|")
    with tempfile.TemporaryDirectory() as folder:
        for device in options.devices.split(","):
            for number, (label, rows) in enumerate(workloads.RANGES.items()):
                path = workloads.write(os.path.join(folder, f"dense{number}.mlir"), rows=rows)
                sizes, searches = judged[device, label] = judge(options, path, device)
                cells = [f"{device}, {label}"]
                for name in SEARCHES:
                    if name not in searches:
                        cells.append("no feasible uKernel")
                        continue
                    families, regrets = searches[name]
                    # Sums of times round: a mean may come out a little below 0.
                    mean = max(100 * sum(regrets) / len(regrets), 0.0)
                    cells.append(f"{mean:.2f} %, {100 * max(regrets):.1f} % ({families})")
                print("| " + " | ".join(cells) + " |", flush=True)
    if options.figure:
        draw(pyplot, judged, options.figure)


if __name__ == "__main__":
    main()
