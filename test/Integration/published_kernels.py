#!/usr/bin/env python3
"""Gives the kernels that FTuner's authors published as plans, and runs them.

benchmarks/paper/published_kernels.csv has the 63 kernels of their 18 dispatchers:
block tile, threads, virtual threads and k step of each, and the sizes that it
serves. Each must be a kernel of the SIMT path: planned, its Pad and Occ as
equations 2 and 3 give them by hand, emitted, and right in the emulator, with
bounds and race checks and shuffled threads. Batches, columns and k are cut down
there. The suite runs each kernel at one of its sizes, with FTUNER_TEST_SCALE
above 1 at all.
"""

import csv
import json
import pathlib
import re
from fractions import Fraction

import harness
import kernel_families
from batches import Batched
from models import Matmul

CSV = pathlib.Path(__file__).resolve().parents[2] / "benchmarks/paper/published_kernels.csv"
# What the plans were written for: 80 SMs.
DEVICE = "v100"
SMS = {"v100": 80, "a100": 108}
# Of 47 rows a thread, the SIMT path asks for one register more than there are where copies pass through registers.
OF_TOO_MANY_ROWS = "dense_16xTx768x50257 2"


class Kernel:
    """A row of the table. tile, threads, virtual: by axis, batch, m and n; k: the step; sizes: of T, k and n."""

    def __init__(self, row):
        axes = re.findall(r"(\w+):(\d+)x(\d+)x(\d+)", row["virtual_x_threads_x_inner"])
        self.label = f"{row['file']} {row['kernel']}"
        self.virtual = {axis: int(virtual) for axis, virtual, _, _ in axes}
        self.threads = {axis: int(threads) for axis, _, threads, _ in axes}
        self.tile = {
            axis: int(virtual) * int(threads) * int(inner) for axis, virtual, threads, inner in axes
        }
        self.k = int(row["reduce_factors"].split("x")[0])
        words = row["workload"].split()
        self.batch = int(words[1]) if row["op"] == "batch_matmul" else None
        self.words = words[2:]
        self.sizes = []
        for served in row["serves"].split():
            numbers = dict(item.split("=") for item in served.split("/"))
            self.sizes.append({name: int(value) for name, value in numbers.items()})
        tile = {
            axis: int(size)
            for axis, size in (item.split(":") for item in row["block_tile"].split())
        }
        assert tile == self.tile, self.label

    def extents(self, size):
        """Of the whole product: batch, m, n and k."""
        if self.batch:
            m, n, k = (size["T"] if word == "T" else int(word) for word in self.words)
            return {"batch": self.batch, "m": m, "n": n, "k": k}
        return {"m": 16 * size["T"], "n": size["H"], "k": size["I"]}

    def family(self, stages=2):
        part = [self.tile["m"], self.tile["n"], self.k] + (
            [self.tile["batch"]] if self.batch else []
        )
        fields = {f"virtual_threads_{axis}": self.virtual[axis] for axis in "mn"}
        if self.batch:
            fields["threads_batch"] = self.threads["batch"]
        return kernel_families.family(
            [(part, (self.virtual["m"], self.virtual["n"], 1))],
            stages,
            batch_axes=1 if self.batch else 0,
            **fields,
        )

    def model(self, extents):
        if self.batch:
            return Batched(
                "bmk", "bnk", "bmn", {"b": "B", "m": "M", "n": extents["n"], "k": extents["k"]}
            )
        return Matmul(
            m="M", n=extents["n"], k=extents["k"], ranges={"M": "#ukernel.range<1 to 2048>"}
        )

    def pad_and_occ(self, extents, sms):
        """Equations 2 and 3, of each extent by its tile."""
        tile = {**self.tile, "k": self.k}
        blocks = {axis: -(-extent // tile[axis]) for axis, extent in extents.items()}
        pad = Fraction(1)
        for axis, extent in extents.items():
            pad *= Fraction(extent, blocks[axis] * tile[axis])
        count = 1
        for axis in extents.keys() - {"k"}:
            count *= blocks[axis]
        return float(pad), float(Fraction(count, -(-count // sms) * sms))


def sizes_of(extents):
    sizes = {"M": extents["m"]}
    if "batch" in extents:
        sizes["B"] = extents["batch"]
    return sizes


def run(h, kernel, size):
    """Plans, explains and runs a kernel for one of its sizes."""
    label = f"{kernel.label} {size['T']}"
    if kernel.label != OF_TOO_MANY_ROWS:
        return run_on(h, kernel, size, label, DEVICE, stages=2)
    refused = run_on(h, kernel, size, label, DEVICE, stages=2)
    problems = run_on(h, kernel, size, label + " asynchronously", "a100", stages=3)
    if not any(
        "expected at most 255 registers per thread, but got 256" in text for text in refused
    ):
        problems.append(f"expected too many registers on {DEVICE}, but got {refused}")
    return problems


def run_on(h, kernel, size, label, device, stages):
    whole = kernel.extents(size)
    family = kernel.family(stages)
    plan = f"<families = [{family}], choices = [], general = 0, unaligned_general = 0>"
    name = label.replace(" ", "_")
    planned, problems = kernel_families.form(h, name, kernel.model(whole).text(), plan)
    if not planned:
        return problems
    sizes = ",".join(f"{symbol}={value}" for symbol, value in sizes_of(whole).items())
    explained = h.tool(
        "ftuner-translate",
        planned,
        "--ftuner-explain",
        "--json",
        f"--device={device}",
        "--cost-model=sia",
        "--paths=simt",
        "--strategy=roller",
        f"--size={sizes}",
    )
    if explained.returncode != 0:
        return [explained.stderr]
    metrics = json.loads(explained.stdout)["workloads"][0]["shapes"][0]["program"]["metrics"]
    for figure, expected in zip(("pad", "occ"), kernel.pad_and_occ(whole, SMS[device])):
        if abs(metrics[figure] - expected) > 1e-9:
            problems.append(f"{figure}: expected {expected}, but got {metrics[figure]}")
    # Cut down: a batch tile and a part of one, columns and k likewise.
    cut = dict(whole)
    for axis, tile in (
        ("batch", kernel.tile.get("batch", 1)),
        ("n", kernel.tile["n"]),
        ("k", 3 * kernel.k),
    ):
        if axis in cut and (axis != "n" or not kernel.batch):
            cut[axis] = min(cut[axis], tile + max(tile // 2, 1))
    model = kernel.model(cut)
    return problems + kernel_families.run(
        h, label + " cut", model, [family], device, [sizes_of(cut)], ()
    )


def main():
    h, options = harness.start(__doc__)
    with CSV.open() as file:
        kernels = [Kernel(row) for row in csv.DictReader(file)]
    assert len(kernels) == 63
    for number, kernel in enumerate(kernels):
        for size in harness.share(kernel.sizes, number):
            h.add(f"{kernel.label} T={size['T']}", run, h, kernel, size)
    h.finish()


if __name__ == "__main__":
    main()
