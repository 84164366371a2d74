#!/usr/bin/env python3
"""Tables what the search does for Dense (N = 2304, K = 768) and BatchMatmul.

For each device, with M = T and M = 16·T rows, T = 1…128, and for BatchMatmul
(192 × [T, 64] × [64, T], T = 5 to 138 by 19; the paper's last size is 128, not 138): candidates after
every stage, then, for FTuner as it is by default, the best single uKernel of each
size, FTuner under sia-program, FTuner near the paper (docs/paper.md), and Roller: kernel families,
FLOPs that padding adds over all axes (of all sizes together), FLOP per byte of
global traffic by equation 7 (geometric mean over the sizes), and how many sizes
the main axis is covered exactly for. Nothing is measured: these are properties of
the programs.

Writes Markdown.
"""

import argparse
import functools
import json
import math
import os
import subprocess
import sys
import tempfile

import workloads

STAGES = [
    "candidates_by_rules",
    "candidates_whole_warps",
    "candidates_emittable",
    "candidates_added",
    "candidates",
    "after_cross_pick",
    "after_set_bound",
    "after_space_axis",
    "after_reduce_axis",
    "after_warps",
    "after_pareto",
    "ukernels",
    "programs",
    "families",
]
PAPER = ["--preset=paper", "--main-axis=dynamic"]


def explain(tool, path, device, options):
    """The explanation of the workload, or None where no uKernel is feasible."""
    run = subprocess.run(
        [tool, path, "--ftuner-explain", "--json", f"--device={device}"] + options,
        capture_output=True,
        text=True,
    )
    if "found no feasible uKernel" in run.stderr:
        return None
    if run.returncode != 0:
        sys.exit(run.stderr)
    return json.loads(run.stdout)["workloads"][0]


def program_figures(shapes, program_of):
    """Share of padded FLOPs, FLOP per byte, and sizes with an exact partition."""
    useful = total = intensity = exact = 0
    for shape in shapes:
        program = program_of(shape)
        m, n, k = shape["shape"][:3]
        batch = math.prod(shape["shape"][3:])
        flops = 2 * batch * m * n * k
        useful += flops
        total += flops / program["metrics"]["pad"]
        exact += program["padded"] == 0
        columns = math.ceil(n / program["ukernels"][-1]["block_tile"][1])
        traffic = 4 * batch * (columns * m * k + sum(program["blocks"]) * k * n + m * n)
        intensity += math.log(flops / traffic)
    return total / useful - 1, math.exp(intensity / len(shapes)), exact


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--bin-dir", default=workloads.BIN)
    parser.add_argument("--devices", default="v100,a100,h200")
    options = parser.parse_args()
    tool = os.path.join(options.bin_dir, "ftuner-translate")
    cases = {
        f"Dense, {label}": functools.partial(workloads.write, rows=rows)
        for label, rows in workloads.RANGES.items()
    }
    cases["BatchMatmul"] = workloads.write_batch_matmul
    columns, counts, programs = [], {stage: [] for stage in STAGES}, []
    with tempfile.TemporaryDirectory() as folder:
        for device in options.devices.split(","):
            for label, write in cases.items():
                path = write(os.path.join(folder, "workload.mlir"))
                default = explain(tool, path, device, [])
                columns.append(f"{device}, {label}")
                for stage in STAGES:
                    counts[stage].append(f"{default['statistics'].get(stage, 0):,.0f}")
                variants = [
                    ("FTuner", default, "program"),
                    ("best single uKernel", default, "best_single"),
                    (
                        "FTuner under sia-program",
                        explain(tool, path, device, ["--cost-model=sia-program"]),
                        "program",
                    ),
                    ("FTuner near the paper", explain(tool, path, device, PAPER), "program"),
                    ("Roller", explain(tool, path, device, ["--strategy=roller"]), "program"),
                ]
                for name, workload, key in variants:
                    if workload is None:
                        programs.append(
                            f"| {device}, {label} | {name} | no feasible uKernel | | | |"
                        )
                        continue
                    padded, intensity, exact = program_figures(
                        workload["shapes"], lambda shape, key=key: shape[key]
                    )
                    families = "" if key == "best_single" else len(workload["families"])
                    programs.append(
                        f"| {device}, {label} | {name} | {families} | {100 * padded:.2f} % | {intensity:.2f} | {exact} of {len(workload['shapes'])} |"
                    )
    print("| count | " + " | ".join(columns) + " |")
    print("|---" * (len(columns) + 1) + "|")
    for stage in STAGES:
        print(f"| `{stage}` | " + " | ".join(counts[stage]) + " |")
    print()
    print(
        "| device, workload | programs of | families | padded FLOPs | FLOP/byte | exact partitions |"
    )
    print("|---|---|---|---|---|---|")
    print("\n".join(programs))


if __name__ == "__main__":
    main()
