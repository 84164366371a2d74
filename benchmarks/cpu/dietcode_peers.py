#!/usr/bin/env python3
"""Tables DietCode beside its peers, as modes of one strategy, on its own operators.

Operators and lengths T are the paper's: Dense X [M, 768] · W [768, 2304] with M = 16·T (and M = T), BatchMatmul NT
[192, T, 64] · [192, T, 64]ᵀ and NN [192, T, T] · [192, T, 64], T = 5, 24, 43, 62, 81, 100, 119, 128 of 1…128. Each
search has the same number of trials; a mode has as many searches as its peer would. Mean µs over the eight lengths, by
the latency model and by a roofline with waves that shares no constant with it (python/ftuner/study/judges.py). Nothing runs on
a GPU: the latency model stands in for the measurer, so it judges its own choices.

Times have the copies of padded operands, which are priced and not emitted. `bucket ends` are searches for the ends of the
buckets with any tiles, judged at these ends: what `bucket` loses since a kernel here must have as many blocks for all
sizes of its bucket.

Writes Markdown.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile

import workloads

sys.path.insert(0, os.path.join(workloads.ROOT, "python"))
import batches
from ftuner.study import judges

LENGTHS = workloads.LENGTHS
MODES = ("joint", "per-shape", "largest", "loop-partitioning", "bucket", "global-padding")
BUCKET = 8
PAPER = workloads.papers.load("dietcode")
#: The paper's workloads by the labels here, and its peers by the modes that stand for them: Nimble was tuned for the
#: largest shape, with partitioned loops.
PAPER_WORKLOADS = {"M = 16·T": "dense", "NT": "batch_nt", "NN": "batch_nn"}
PAPER_SYSTEMS = {"per-shape": "ansor", "loop-partitioning": "nimble"}


def paper_of(label, mode):
    """Share by which the paper's mean time is below the peer's; "better by 351 %" is not a share, and is marked."""
    for one in PAPER.reported:
        if one.workload == PAPER_WORKLOADS.get(label) and PAPER_SYSTEMS.get(mode) in one.values:
            value = f"{one.values[PAPER_SYSTEMS[mode]]:g} %"
            if one.kind in ("less_by", "faster_by"):
                return value if one.kind == "less_by" else f"better by {value}"
    return "-"


def write_nt(path):
    text = batches.Batched(
        "bmk", "bnk", "bmn", {"b": 192, "m": "T", "n": "T", "k": 64}, named=True
    ).text()
    with open(path, "w", encoding="utf-8") as file:
        file.write(text.replace("1 to 64", "1 to 128"))
    return path


#: By label: what writes the module, the symbol of the main axis, and its size for one step of T.
OPERATORS = {
    "M = 16·T": (lambda path: workloads.write(path, workloads.RANGES["M = 16·T"]), "M", 16),
    "M = T": (lambda path: workloads.write(path, workloads.RANGES["M = T"]), "M", 1),
    "NT": (write_nt, "T", 1),
    "NN": (lambda path: workloads.write_batch_matmul(path, rows="1 to 128", n=64, k="T"), "T", 1),
}


def explain(tool, path, device, symbol, sizes, *options):
    """The explanation of the workload at sizes of the symbol."""
    run = subprocess.run(
        [
            tool,
            path,
            "--ftuner-explain",
            "--json",
            f"--device={device}",
            "--strategy=dietcode",
            "--measurer=model:latency",
            "--max-kernels=64",
            *options,
            *(f"--size={symbol}={size}" for size in sizes),
        ],
        capture_output=True,
        text=True,
    )
    if run.returncode != 0:
        sys.exit(run.stderr)
    return json.loads(run.stdout)["workloads"][0]


def flops(shape):
    product = 1
    for extent in shape["shape"]:
        product *= extent
    return product


class Row:
    """A mode's figures on an operator. `sizes` are those that count where kernels were judged at padded ones."""

    def __init__(self, mode, workload, device, useful=None):
        shapes, found = workload["shapes"], workload["statistics"]
        self.mode = mode
        self.measured, self.searches = found["measured"], found.get("searches", 1)
        self.kernels = len(workload["families"])
        self.copies = found.get("copies_us", 0)
        useful = useful or [flops(shape) for shape in shapes]
        self.padding = 1 - statistics.mean(
            shape["program"]["metrics"]["pad"] * share / flops(shape)
            for shape, share in zip(shapes, useful)
        )
        self.times = {
            "latency": statistics.mean(shape["program"]["predicted_us"] for shape in shapes)
            + self.copies,
            "roofline": statistics.mean(
                judges.roofline_us(device, shape["program"], shape["shape"]) for shape in shapes
            )
            + self.copies,
        }


def rows_of(tool, path, label, device_name, device, trials):
    _, symbol, step = OPERATORS[label]
    sizes = [step * length for length in LENGTHS]
    named = lambda sizes: f"--instance-sizes={','.join(map(str, sizes))}"  # noqa: E731
    flags = [f"--trials={trials}", f"--buckets={128 // BUCKET}"]
    rows, useful = [], None
    for mode in MODES:
        found = explain(
            tool, path, device_name, symbol, sizes, f"--dietcode-mode={mode}", named(sizes), *flags
        )
        useful = useful or [flops(shape) for shape in found["shapes"]]
        rows.append(Row(mode, found, device))
        if mode == "bucket":
            copies = rows[-1].copies
            ends = [step * BUCKET * -(-length // BUCKET) for length in LENGTHS]
            found = explain(
                tool,
                path,
                device_name,
                symbol,
                ends,
                "--dietcode-mode=per-shape",
                named(ends),
                *flags,
            )
            found["statistics"]["copies_us"] = copies
            rows.append(Row("bucket ends", found, device, useful))
    return rows


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--bin-dir", default=workloads.BIN)
    parser.add_argument("--devices", default="v100,t4")
    parser.add_argument(
        "--operators",
        default=",".join(OPERATORS),
        help="with commas between (default: %(default)s)",
    )
    parser.add_argument("--trials", type=int, default=256, help="of each search (default: 256)")
    options = parser.parse_args()
    tool = os.path.join(options.bin_dir, "ftuner-translate")
    print(
        "| device | operator | mode | searches | measured | kernels | padding | copies, µs | latency, µs | rank | "
        "joint less by | roofline, µs | rank | joint less by | paper |"
    )
    print("|" + " --- |" * 15)
    with tempfile.TemporaryDirectory() as folder:
        for name in options.devices.split(","):
            with open(
                os.path.join(workloads.ROOT, "lib", "Device", "devices", f"{name}.json"),
                encoding="utf-8",
            ) as file:
                device = json.load(file)
            for label in options.operators.split(","):
                path = OPERATORS[label][0](os.path.join(folder, "operator.mlir"))
                rows = rows_of(tool, path, label, name, device, options.trials)
                for row in rows:
                    cells = []
                    for judge, time in row.times.items():
                        # Rows that are not a mode are not ranked.
                        rank = 1 + sum(
                            other.times[judge] < time for other in rows if other.mode in MODES
                        )
                        less = 1 - rows[0].times[judge] / time
                        cells += [
                            f"{time:,.1f}",
                            str(rank) if row.mode in MODES else "-",
                            f"{less:.1%}",
                        ]
                    print(
                        f"| {name} | {label} | {row.mode} | {row.searches} | {row.measured:,} | {row.kernels} | "
                        f"{row.padding:.1%} | {row.copies:.1f} | {' | '.join(cells)} | {paper_of(label, row.mode)} |",
                        flush=True,
                    )


if __name__ == "__main__":
    main()
