#!/usr/bin/env python3
"""Measures how the search grows with the range, on one core, without a GPU.

Dense with N = 2304, K = 768 and 1 to 4096 rows and more, an open range, and two
and three open axes: seconds of the search alone (the pass
ukernel-plan-workloads), the peak memory of the process, and kernels. Medians of several runs. Goal: 1 s for 128 sizes.

Writes a table, and draws the growth with --figure FILE.svg (matplotlib).
"""

import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile

import workloads

SIZES = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 65536]
OPEN = [
    ("M open", dict(m="M", n=2304, k=768), ["M"]),
    ("M, N open", dict(m="M", n="N", k=768), ["M", "N"]),
    ("M, N, K open", dict(m="M", n="N", k="K"), ["M", "N", "K"]),
]


def search(options, path):
    """Seconds of the pass, and peak memory of the process in MiB."""
    command = [
        os.path.join(options.bin_dir, "ftuner-opt"),
        path,
        f"--ftuner-front-end=device={options.device}",
        "--mlir-timing",
        "--mlir-timing-display=list",
        "--mlir-disable-threading",
        "-o",
        os.devnull,
    ]
    core = {min(os.sched_getaffinity(0))}
    with tempfile.TemporaryFile("w+") as errors:
        process = subprocess.Popen(
            command,
            stderr=errors,
            stdout=subprocess.DEVNULL,
            preexec_fn=lambda: os.sched_setaffinity(0, core),
        )
        _, status, usage = os.wait4(process.pid, 0)
        errors.seek(0)
        text = errors.read()
    found = re.search(r"^ +([0-9.]+) .*UKernelPlanWorkloadsPass", text, re.MULTILINE)
    if status != 0 or not found:
        sys.exit(text)
    return float(found.group(1)), usage.ru_maxrss / 1024


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--bin-dir", default=workloads.BIN)
    parser.add_argument("--device", default="h200")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--json", help="write the figures to this file")
    parser.add_argument("--figure", help="draw the growth into this file (.svg or .png)")
    options = parser.parse_args()
    pyplot = workloads.load_pyplot(options.figure) if options.figure else None
    cases = [
        (str(count), dict(m="M", n=2304, k=768), {"M": f"#ukernel.range<1 to {count}>"})
        for count in SIZES
    ]
    cases += [
        (label, sizes, {name: "#ukernel.range<1 to ?>" for name in names})
        for label, sizes, names in OPEN
    ]
    rows = []
    print(f"{'sizes':>14} {'search':>9} {'(min max)':>17} {'memory':>9} {'families':>9}")
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "dense.mlir")
        for label, sizes, ranges in cases:
            workloads.write_module(path, ranges=ranges, **sizes)
            runs = [search(options, path) for _ in range(options.repeat)]
            seconds = [run[0] for run in runs]
            explanation = subprocess.run(
                [
                    os.path.join(options.bin_dir, "ftuner-translate"),
                    path,
                    "--ftuner-explain",
                    "--json",
                    f"--device={options.device}",
                ],
                capture_output=True,
                text=True,
            )
            if explanation.returncode != 0:
                sys.exit(explanation.stderr)
            families = len(json.loads(explanation.stdout)["workloads"][0]["families"])
            row = {
                "sizes": label,
                "search_s": statistics.median(seconds),
                "min_s": min(seconds),
                "max_s": max(seconds),
                "memory_mib": max(run[1] for run in runs),
                "families": families,
            }
            rows.append(row)
            spread = f"({row['min_s']:.3f} {row['max_s']:.3f})"
            print(
                f"{label:>14} {row['search_s']:8.3f}s {spread:>17} {row['memory_mib']:6.0f}MiB {families:9}"
            )
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump({"device": options.device, "rows": rows}, file, indent=2)
    if options.figure:
        draw(pyplot, options, rows)


def draw(pyplot, options, rows):
    counted = [row for row in rows if row["sizes"].isdigit()]
    others = [row for row in rows if not row["sizes"].isdigit()]
    figure, axes = pyplot.subplots(figsize=(7, 4), layout="constrained")
    axes.plot(
        [int(row["sizes"]) for row in counted],
        [row["search_s"] for row in counted],
        "o-",
        color="#0072B2",
        label="1 to x rows",
    )
    for row, style in zip(others, (":", "--", "-.")):
        axes.axhline(row["search_s"], linestyle=style, color="#D55E00", label=row["sizes"])
    axes.axhline(1, color="black", linewidth=0.8)
    axes.annotate(
        "goal for 128 sizes", (1, 1), textcoords="offset points", xytext=(0, -12), fontsize=9
    )
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set_xlabel("sizes of the range")
    axes.set_ylabel("search on one core (s)")
    axes.set_title(f"Search for Dense, N = 2304, K = 768, {options.device}")
    axes.legend(fontsize=9)
    workloads.save_figure(figure, options.figure)


if __name__ == "__main__":
    main()
