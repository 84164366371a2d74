"""Predicted times of wgmma kernels whose design is published, beside their measured ones.

    python3 benchmarks/latency_model/known_kernels.py [--docs FILE.md]

known_kernels.csv has square products in bf16 on an H100 SXM, as the README of
https://github.com/pranjalssh/fast.cu (commit a1bb7b2) states them: the block's tile, stages of 64
elements of k, groups of four warps that multiply, whether blocks persist, and how many blocks of a
cluster share the columns' copies. Kernel 5 is left out (its barriers are slow), and so is kernel 6
at 8192, whose tiles do not divide it. No fit saw these rows: the vendor's rows do not say which
kernel ran, these do.

Prints a table; --docs puts it between the marks "known kernels" of that file.
"""

from __future__ import annotations

import argparse
import csv
import sys
from pathlib import Path

import numpy as np

import reports
from ftuner.latency.measurements.token_rows import CLUSTER_CYCLES, VendorTile, launches_of
from ftuner.latency.model import model
from reports import percent, put_into_docs, read_docs, table

DEVICE = "h100"
ROWS = Path(__file__).with_name("known_kernels.csv")
STEP_BYTES = 128


def teraflops_of(row: dict[str, str]) -> float:
    """Predicted for a kernel and a size."""
    number = {name: int(row[name]) for name in row if name not in ("kernel", "tflops")}
    tile = VendorTile(number["rows"], number["columns"], STEP_BYTES, number["stages"], True)
    size = np.array([float(number["size"])])
    figures = [model().device(DEVICE)[1]]
    first, once = np.zeros(1, np.int64), np.ones(1, np.int64)
    launches = launches_of([tile], first, once, "bf16", (size, size, size), figures, first)
    fields = model().part_fields
    sharers = number["sharers"]
    l2_bytes = (tile.rows + tile.columns / sharers) * STEP_BYTES
    for name, value in (
        # Those that multiply, and four that copy.
        ("warps", 4 * number["groups"] + 4),
        ("is_persistent", number["is_persistent"]),
        ("hides_stores", number["is_persistent"]),
        ("cluster_cycles", CLUSTER_CYCLES if sharers > 1 else 0),
        ("l2_bytes", l2_bytes),
    ):
        launches.parts[..., fields.index(name)] = value
    microseconds = model().predict(launches, model().default_calibration(DEVICE))[0]
    return float(2 * size[0] ** 3 / microseconds / 1e6)


def markdown() -> str:
    lines, errors = [], []
    with open(ROWS, encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            measured, predicted = float(row["tflops"]), teraflops_of(row)
            ratio = measured / predicted  # Ratio of times.
            errors.append(abs(ratio - 1))
            lines.append(
                [
                    row["kernel"],
                    f"{row['rows']} × {row['columns']}",
                    "yes" if row["is_persistent"] == "1" else "no",
                    row["sharers"],
                    row["size"],
                    f"{measured:.0f}",
                    f"{predicted:.0f}",
                    f"{ratio:.2f}",
                ]
            )
    header = ["kernel", "tile", "persistent", "blocks that share columns", "M = N = K"]
    header += ["measured TFLOP/s", "predicted", "predicted over measured time"]
    return f"{table(header, lines)}\nMean error {percent(float(np.mean(errors)))}.\n"


def run(options: argparse.Namespace) -> None:
    docs = Path(options.docs) if options.docs else None
    if docs:
        read_docs(docs, "known kernels")
    text = markdown()
    print(text)
    if docs:
        put_into_docs(docs, text, [], "known kernels")


def main() -> int:
    parser = reports.parser(__doc__, "docs")
    return reports.exit_code(run, parser.parse_args())


if __name__ == "__main__":
    sys.exit(main())
