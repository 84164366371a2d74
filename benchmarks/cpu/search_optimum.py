#!/usr/bin/env python3
"""Compares what the searches can find with the optimum over all programs.

`--strategy=exhaustive` scores every program of the candidates that HardwareAlign
enumerates: up to three depths and stages for each block tile, aligned tiles, and
under `latency` balanced partitions alone. This walks what it leaves out, too: every feasible
program with the widest accesses that the shapes allow, of all blocks of whole warps,
register tiles, depths, numbers of stages and pairs of heights along m, with balanced and
exact partitions. For some rows of
Dense (N = 2304, K = 768) and each device: predicted time of the best that
`exhaustive` and `ftuner` find over that of the best program of all, less 1.

By build/release/bin/search_optimum (`ninja -C build/release search_optimum`), about
a minute for each device. Writes Markdown.
"""

import argparse
import os
import subprocess
import sys

import workloads

# Ranges of the paper's figure 14, T and 16·T.
ROWS = (5, 24, 43, 62, 81, 100, 119, 128, 384, 688, 992, 1296, 1600, 1904, 2048)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--bin-dir", default=workloads.BIN)
    parser.add_argument("--devices", default="h200,v100,a100,rtx3090")
    parser.add_argument("--rows", default=",".join(map(str, ROWS)))
    options = parser.parse_args()
    program = os.path.join(options.bin_dir, "search_optimum")
    if not os.path.exists(program):
        sys.exit(f"{program} is missing: ninja -C build/release search_optimum")
    rows = options.rows.split(",")
    print(
        "| device | programs | exhaustive: mean, worst | ftuner: mean, worst | sizes that only an exact partition serves best |"
    )
    print("|---|---|---|---|---|")
    for device in options.devices.split(","):
        print(f"{device}: {len(rows)} sizes", file=sys.stderr)
        run = subprocess.run([program, device, *rows], capture_output=True, text=True)
        if run.returncode != 0:
            sys.exit(run.stderr)
        lines = [line.split("\t") for line in run.stdout.splitlines()]
        for line in lines:
            print("  ".join(line), file=sys.stderr)
        cells = [device, f"{int(lines[0][4]):,}"]
        for column in (2, 3):
            losses = [float(line[column]) / float(line[1]) - 1 for line in lines]
            cells.append(f"{100 * sum(losses) / len(losses):.2f} %, {100 * max(losses):.1f} %")
        exact = sum(" + " in line[5] and "balanced" not in line[5] for line in lines)
        print("| " + " | ".join(cells) + f" | {exact} of {len(lines)} |", flush=True)


if __name__ == "__main__":
    main()
