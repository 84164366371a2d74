"""Predicted times of the vendor's kernels at the ends of M and N beside those that the repository's run on an H200 measured.

    python3 benchmarks/latency_model/vendor_ends.py [--before DIR] [--docs FILE.md]

For products of 1, 2, 4 and 8 rows: the time of cuBLAS, in graphs whose operands L2 holds if it can, as predictions are,
and the predicted time of `ftuner.latency.vendor` over it. --before takes the tree of an older revision, with its build,
whose prices come first; it does not know how the right factor lies.

Prints a table; --docs puts it between the marks "vendor ends" of that file.
"""

from __future__ import annotations

import argparse
import csv
import dataclasses
import json
import lzma
import os
import subprocess
import sys
from pathlib import Path

import reports
from ftuner.latency import vendor
from reports import ROOT, put_into_docs, read_docs, table

RESULTS = ROOT / "benchmarks" / "results" / "h200-2026-11-26-2"
RUNS = "f32", "tf32", "tensor_cores"
ENDS = 1, 2, 4, 8
# What an older tree runs: types and their products from the input, and their times to the output.
_BEFORE = """
import json, sys
from ftuner.latency import vendor
print(json.dumps([list(vendor.predict("h200", dtype, [tuple(one) for one in products])) for dtype, products in json.load(sys.stdin)]))
"""


@dataclasses.dataclass(frozen=True)
class Row:
    """A product as cuBLAS ran it: its workload, and microseconds by peer, with what L2 holds of its operands and without."""

    workload: str
    product: vendor.Product
    measured: dict[str, float]
    cold: dict[str, float]

    @property
    def bytes(self) -> int:
        """Bytes of the right factor, the weights."""
        batch, _, n, k = self.product
        return batch * n * k * (2 if self.dtype == "f16" else 4)

    @property
    def dtype(self) -> str:
        """The type is the end of the name; workloads of Llama are in f16, others in f32."""
        last = self.workload.rpartition("_")[2]
        return (
            last
            if last in ("f16", "tf32")
            else "f16"
            if self.workload.startswith("llama")
            else "f32"
        )

    @property
    def is_transposed(self) -> bool:
        return self.workload.startswith(("linear", "llama", "batch_nt"))


def measured() -> list[Row]:
    """All products of the run, in the order of their files."""
    rows: dict[tuple[str, vendor.Product], Row] = {}
    for run in RUNS:
        with lzma.open(RESULTS / run / "products.csv.xz", "rt", encoding="utf-8") as file:
            for line in csv.DictReader(file):
                batch, m, n, k = (int(line[name]) for name in ("batch", "m", "n", "k"))
                key = line["workload"], (batch, m, n, k)
                is_vendors = line["peer"] in ("cublas", "cublaslt") and not line[
                    "workload"
                ].endswith("packed")
                if not is_vendors or line["mode"] not in ("graph_warm", "graph_cold"):
                    continue
                row = rows.setdefault(key, Row(*key, {}, {}))
                times = row.measured if line["mode"] == "graph_warm" else row.cold
                times[line["peer"]] = float(line["median_us"])
    return [row for row in rows.values() if row.measured]


def at_ends(rows: list[Row]) -> list[Row]:
    return [row for row in rows if row.product[1] in ENDS or row.product[2] in ENDS]


def predicted(rows: list[Row]) -> list[float]:
    times = [
        vendor.predict("h200", row.dtype, [row.product], is_transposed=row.is_transposed)
        for row in rows
    ]
    return [float(time[0]) for time in times if time is not None]


def predicted_before(rows: list[Row], tree: Path) -> list[float]:
    environment = {
        **os.environ,
        "PYTHONPATH": str(tree / "python"),
        "FTUNER_HOME": str(tree / "build" / "release"),
    }
    asked = json.dumps([(row.dtype, [row.product]) for row in rows])
    done = subprocess.run(
        [sys.executable, "-c", _BEFORE],
        input=asked,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    return [time for (time,) in json.loads(done.stdout)]


def markdown(rows: list[Row], before: list[float] | None) -> str:
    cells: dict[tuple[str, str, str, str], dict[int, str]] = {}
    for number, (row, time) in enumerate(zip(rows, predicted(rows), strict=True)):
        batch, m, n, k = row.product
        extents = " × ".join(
            "M" if extent == m else str(extent)
            for extent in (*([batch] if batch > 1 else []), m, n, k)
        )
        line = cells.setdefault(
            (extents, row.workload, row.dtype, "[N, K]" if row.is_transposed else "[K, N]"), {}
        )
        cublas = row.measured["cublas"]
        was = f"{before[number] / cublas:.2f} → " if before else ""
        line[m] = f"{cublas:.2f}: {was}{time / cublas:.2f}"
    return table(
        ["product", "type", "right factor", *(f"M = {end}" for end in ENDS)],
        [
            [cell[0], *cell[2:], *(line.get(end, "") for end in ENDS)]
            for cell, line in cells.items()
        ],
    )


def run(options: argparse.Namespace) -> None:
    docs = Path(options.docs) if options.docs else None
    if docs:
        read_docs(docs, "vendor ends")
    rows = at_ends(measured())
    text = markdown(rows, predicted_before(rows, Path(options.before)) if options.before else None)
    print(text)
    if docs:
        put_into_docs(docs, text, [], "vendor ends")


def main() -> int:
    parser = reports.parser(__doc__, "docs")
    parser.add_argument("--before", metavar="DIR", help="the tree of an older revision, built")
    return reports.exit_code(run, parser.parse_args())


if __name__ == "__main__":
    sys.exit(main())
