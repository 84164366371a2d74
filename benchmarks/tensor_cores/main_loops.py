#!/usr/bin/env python3
"""What the main loops of selected tensor-core kernels take to issue, beside the cycles of the tensor pipe.

For Dense (768 to 2304) and the projections of Llama-2-7B in f16 (M = 1…4096, test/Integration/tensor_core_quality.py)
and each device, every kernel of `mma` for aligned operands is assembled. A warp issues an iteration of its main loop
in no less than the sum of the stall counts that ptxas encodes; its products keep the tensor pipe of its scheduler busy
for `2 * 16 * 8 * 16 / rate` cycles each (8 on an A100). Above 1, their ratio is time in which one warp by itself
cannot feed the pipe, however fast memory is. The head are the stall counts in front of the first product.

Prints a row for each tile: products of a warp and iteration, pipe cycles, stall counts, their ratio, head,
instructions. --write FILE writes the rows with the date, the compiler's commit and the version of ptxas. Needs ptxas
and nvdisasm (tools/setup.sh).
"""

import argparse
import concurrent.futures
import datetime
import json
import os
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "test", "Integration"))
import ptx
import tensor_core_quality

LAYERS = ("dense", "qkv", "out", "up", "down")


def rows_of(options, folder, layer, device):
    """The main loops of a layer on a device."""
    path = os.path.join(folder, f"{layer}_{device}")
    with open(path + ".mlir", "w", encoding="utf-8") as file:
        file.write(tensor_core_quality.module(*tensor_core_quality.LAYERS[layer]))
    run = subprocess.run(
        [
            os.path.join(options.bin_dir, "ftuner-translate"),
            path + ".mlir",
            "--ftuner-to-ptx",
            "-o",
            path + ".ptx",
            f"--manifest={path}.json",
            f"--device={device}",
            "--paths=simt,mma",
        ],
        capture_output=True,
        text=True,
    )
    if run.returncode != 0:
        sys.exit(run.stderr)
    with (
        open(path + ".ptx", encoding="utf-8") as text,
        open(path + ".json", encoding="utf-8") as manifest,
        open(
            os.path.join(ROOT, "lib", "Device", "devices", device + ".json"), encoding="utf-8"
        ) as facts,
    ):
        return tensor_core_quality.assembled_loops(
            text.read(), json.load(manifest), json.load(facts), path
        )


def write_table(path, text, command):
    """Writes a table below a line with the date, the compiler's commit, the version of ptxas and a command."""
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True
    )
    version = subprocess.run([ptx.find_ptxas(), "--version"], capture_output=True, text=True).stdout
    with open(path, "w", encoding="utf-8") as file:
        file.write(
            f"{datetime.date.today()}, compiler of {commit.stdout.strip()}, ptxas "
            f"{version.split('release ')[1].split(',')[0]}: `{command}`\n\n{text}"
        )


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--bin-dir", default=os.path.join(ROOT, "build", "release", "bin"))
    parser.add_argument("--devices", nargs="+", default=["a100"])
    parser.add_argument("--layers", nargs="+", default=LAYERS, choices=LAYERS)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--write", metavar="FILE")
    options = parser.parse_args()
    for tool in ("ptxas", "nvdisasm"):
        if not ptx.find_tool(tool):
            sys.exit(f"error: no {tool} found: run tools/setup.sh")
    lines = [
        "| device | layer | kernel | tile | warps | stages | registers | products | pipe | stalls | stalls / pipe | head | "
        "instructions |",
        "|" + " --- |" * 13,
    ]
    with (
        tempfile.TemporaryDirectory() as folder,
        concurrent.futures.ThreadPoolExecutor(options.jobs) as pool,
    ):
        cases = [(layer, device) for device in options.devices for layer in options.layers]
        for (layer, device), rows in zip(
            cases, pool.map(lambda case: rows_of(options, folder, *case), cases)
        ):
            for row in rows:
                lines.append(
                    f"| {device} | {layer} | {row.kernel} | {row.tile} | {row.warps} | {row.stages} | "
                    f"{row.registers} | {row.loop.products} | {row.pipe_cycles:.0f} | {row.loop.stalls} | "
                    f"{row.ratio:.3f} | {row.loop.head} | {row.loop.instructions} |"
                )
            ratios = [row.ratio for row in rows if row.loop.products >= 32]
            print(
                f"{layer} on {device}: {len(rows)} main loops, stalls / pipe from 32 products on "
                f"{min(ratios, default=0):.3f} to {max(ratios, default=0):.3f}",
                file=sys.stderr,
                flush=True,
            )
    text = "\n".join(lines) + "\n"
    print(text, end="")
    if options.write:
        write_table(
            options.write,
            text,
            f"benchmarks/tensor_cores/main_loops.py --devices {' '.join(options.devices)}",
        )


if __name__ == "__main__":
    main()
