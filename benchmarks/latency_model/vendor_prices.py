"""Predicted times of the vendor's f32 kernels beside measured ones, the kernel not being told.

    python3 benchmarks/latency_model/vendor_prices.py --data FOLDER [--step N] [--docs FILE.md]

FOLDER has gemm_latency_train.csv.gz and gemm_latency_h100.csv.gz (NeuSight). `ftuner.latency.vendor`
takes the fastest kernel of its set; the library takes one by rules of its own. Rows below 80 us are
left out, since most of these times include the host's part of a launch. --step takes each N-th row.

Prints a table; --docs puts it between the marks "vendor prices" of that file.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import sys
from collections import defaultdict
from pathlib import Path

import numpy as np

import reports
from ftuner.latency import vendor
from reports import percent, put_into_docs, read_docs, table

FILES = "gemm_latency_train.csv.gz", "gemm_latency_h100.csv.gz"
DEVICES = {name: f"{name}-pcie" for name in ("a100", "p100", "v100")}
MIN_US = 80.0


def read(folder: Path, step: int) -> dict[tuple[str, str], list[tuple[vendor.Product, float]]]:
    """Products and measured microseconds by device and operator."""
    rows: dict[tuple[str, str], list[tuple[vendor.Product, float]]] = defaultdict(list)
    for name in FILES:
        with gzip.open(folder / name, "rt", encoding="utf-8", newline="") as file:
            for number, row in enumerate(csv.DictReader(file)):
                microseconds = float(row["latency_ms"]) * 1e3
                if number % step or microseconds < MIN_US:
                    continue
                m, n, k = (int(row[axis]) for axis in "MNK")
                device = DEVICES.get(row["device"], row["device"])
                rows[device, row["op"]].append(((int(row["B"]), m, n, k), microseconds))
    return rows


def markdown(rows: dict[tuple[str, str], list[tuple[vendor.Product, float]]]) -> str:
    lines = []
    for (device, operator), some in sorted(rows.items()):
        predicted = vendor.predict(device, "f32", [product for product, _ in some])
        assert predicted is not None
        ratio = predicted / np.array([microseconds for _, microseconds in some])
        mean = float(np.exp(np.log(ratio).mean()))
        error = percent(float(np.abs(ratio - 1).mean()))
        lines.append([device, operator, str(len(some)), error, f"{mean:.2f}"])
    header = ["device", "operator", "rows", "mean error", "predicted over measured"]
    return table(header, lines)


def run(options: argparse.Namespace) -> None:
    docs = Path(options.docs) if options.docs else None
    if docs:
        read_docs(docs, "vendor prices")
    text = markdown(read(Path(options.data), options.step))
    print(text)
    if docs:
        put_into_docs(docs, text, [], "vendor prices")


def main() -> int:
    parser = reports.parser(__doc__, "data", "docs", "step")
    return reports.exit_code(run, parser.parse_args())


if __name__ == "__main__":
    sys.exit(main())
