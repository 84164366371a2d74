#!/usr/bin/env python3
"""Chains of elementwise operators: predicted bandwidth, beside measured operators of equal bytes, and sectors.

Four tables. The first has the predicted time of chains and the share of the best copy bandwidth measured on the card
(`stream_best_share` of its calibration times the sheet's) that their bytes are. The second divides predicted times by those
of memory_ops_f16, the device times of an early vLLM: `add`, `gelu` and `silu_mul`. The third has the 32-byte sectors that
kernels move in the emulator over the fewest that their elements need. The fourth states the bytes that an SM must have in
flight to reach its share of the bandwidth, by Little's law, and the threads of the chosen kernel that ask for so many.
Nothing is measured.
"""

from __future__ import annotations

import argparse
import collections
import csv
import dataclasses
import gzip
import json
import math
import os
import pathlib
import subprocess
import sys

import workloads

ROOT = pathlib.Path(workloads.ROOT).resolve()
sys.path[:0] = [str(ROOT / "python"), str(ROOT / "benchmarks/torch")]

import tables

BYTES = {"f16": 2, "f32": 4, "i1": 1}
MEASURED = ROOT.parent / "shared/data/memory_ops_f16.csv.gz"


@dataclasses.dataclass(frozen=True)
class Chain:
    """An elementwise operator on M x N elements.

    inputs: the type and the dimensions of each, of M and N.
    body: lines that make %y of the elements %x0, %x1, ... of the inputs.
    """

    inputs: tuple[tuple[str, str], ...]
    result: str
    body: str

    def bytes_moved(self, m, n):
        sizes = {"M": m, "N": n}
        operands = [*self.inputs, (self.result, "MN")]
        return sum(BYTES[kind] * math.prod(sizes[dim] for dim in dims) for kind, dims in operands)

    def text(self):
        def tensor(kind, dims):
            return f"tensor<{'?x' * len(dims)}{kind}>"

        def named(dims):
            return ", ".join(f'"{dim}"' for dim in dims)

        arguments = ", ".join(
            f"%a{i}: {tensor(kind, dims)} {{ukernel.shape = [{named(dims)}]}}"
            for i, (kind, dims) in enumerate(self.inputs)
        )
        maps = ", ".join(
            f"affine_map<(m, n) -> ({', '.join(dims.lower())})>"
            for dims in (*(dims for _, dims in self.inputs), "MN")
        )
        first, out = tensor(*self.inputs[0]), tensor(self.result, "MN")
        names = ", ".join(f"%a{i}" for i in range(len(self.inputs)))
        kinds = ", ".join(tensor(*operand) for operand in self.inputs)
        elements = ", ".join(f"%x{i}: {kind}" for i, (kind, _) in enumerate(self.inputs))
        return f"""
func.func @f({arguments}) -> {out} {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %m = tensor.dim %a0, %c0 : {first}
  %n = tensor.dim %a0, %c1 : {first}
  %e = tensor.empty(%m, %n) : {out}
  %r = linalg.generic {{indexing_maps = [{maps}], iterator_types = ["parallel", "parallel"]}}
      ins({names} : {kinds}) outs(%e : {out}) {{
  ^bb0({elements}, %out: {self.result}):
    {self.body}
    linalg.yield %y : {self.result}
  }} -> {out}
  return %r : {out}
}}
"""


GELU = """%h = arith.constant 0.5 : f32
    %c = arith.constant 0.70710678 : f32
    %i = arith.constant 1.0 : f32
    %w = arith.extf %x0 : f16 to f32
    %t = arith.mulf %w, %c : f32
    %g = math.erf %t : f32
    %p = arith.addf %g, %i : f32
    %q = arith.mulf %w, %p : f32
    %z = arith.mulf %q, %h : f32
    %y = arith.truncf %z : f32 to f16"""
SILU_MUL = """%i = arith.constant 1.0 : f32
    %w = arith.extf %x0 : f16 to f32
    %v = arith.extf %x1 : f16 to f32
    %o = arith.negf %w : f32
    %g = math.exp %o : f32
    %p = arith.addf %g, %i : f32
    %s = arith.divf %w, %p : f32
    %z = arith.mulf %s, %v : f32
    %y = arith.truncf %z : f32 to f16"""
ADD = "%y = arith.addf %x0, %x1 : {}"
CHAINS = {
    "add, f16": Chain((("f16", "MN"), ("f16", "MN")), "f16", ADD.format("f16")),
    "add, f32": Chain((("f32", "MN"), ("f32", "MN")), "f32", ADD.format("f32")),
    "gelu, f16": Chain((("f16", "MN"),), "f16", GELU),
    "silu_mul, f16": Chain((("f16", "MN"), ("f16", "MN")), "f16", SILU_MUL),
    "bias of columns, f16": Chain((("f16", "MN"), ("f16", "N")), "f16", ADD.format("f16")),
    "bias of rows, f32": Chain((("f32", "MN"), ("f32", "M")), "f32", ADD.format("f32")),
    "f32 to f16": Chain((("f32", "MN"),), "f16", "%y = arith.truncf %x0 : f32 to f16"),
    "select, f16": Chain(
        (("f16", "MN"), ("f16", "MN"), ("i1", "MN")),
        "f16",
        "%y = arith.select %x2, %x0, %x1 : f16",
    ),
}
#: Sizes of the first table: a multiple of a vector, and odd rows, in L2 and far beyond it.
SIZES = ((512, 4096), (512, 4095), (65536, 4096), (65536, 4095))
MEASURED_OPERATORS = {"add": "add, f16", "gelu": "gelu, f16", "silu_mul": "silu_mul, f16"}


def best_gbps(device):
    """The best bandwidth of copies that was measured on the card, in GB/s."""
    from ftuner.latency.model import model

    source, figures = model().device(device)
    return figures["dram_gbps"] * model().default_calibration(source)["stream_best_share"]


def share_rows(devices):
    rows = [["chain", "device", *(f"{m} x {n}" for m, n in SIZES)]]
    for name, chain in CHAINS.items():
        for device in devices:
            best = best_gbps(device)
            times = workloads.predicted_us(
                chain.text(), [{"M": m, "N": n} for m, n in SIZES], device
            )
            cells = [
                f"{us:,.1f} ({chain.bytes_moved(m, n) / (us * best * 1e3):.2f})"
                for (m, n), us in zip(SIZES, times)
            ]
            rows.append([name, device, *cells])
    return rows


def measured_rows(devices, step):
    """Predicted over measured times, as geometric means by the bytes that the operator moves."""
    found = collections.defaultdict(list)
    with gzip.open(MEASURED, "rt") as file:
        for row in csv.DictReader(file):
            if row["op"] in MEASURED_OPERATORS and row["device"] in devices:
                found[row["op"], row["device"]].append(row)
    classes = ((0, 16e6), (16e6, 160e6), (160e6, math.inf))
    rows = [["operator", "device", "below 16 MB", "16 to 160 MB", "above 160 MB"]]
    for (op, device), all_rows in sorted(found.items()):
        chosen = all_rows[::step]
        sizes = [{"M": int(row["rows"]), "N": int(row["cols"])} for row in chosen]
        times = workloads.predicted_us(CHAINS[MEASURED_OPERATORS[op]].text(), sizes, device)
        cells = []
        for low, high in classes:
            ratios = [
                math.log(us / float(row["latency_us"]))
                for row, us in zip(chosen, times)
                if low <= float(row["bytes"]) < high
            ]
            mean = math.exp(sum(ratios) / len(ratios)) if ratios else math.nan
            cells.append(f"{mean:.2f} ({len(ratios)})" if ratios else "")
        rows.append([op, device, *cells])
    return rows


def sector_rows(device):
    """Sectors over the fewest, of loads and stores, from the emulator's counters."""
    rows = [["chain", *(f"{m} x {n}" for m, n in ((64, 1024), (65, 1023)))]]
    for name, chain in CHAINS.items():
        cells = []
        for m, n in ((64, 1024), (65, 1023)):
            shapes = {"MN": f"{m}x{n}x", "M": f"{m}x", "N": f"{n}x"}
            arguments = ",".join(f"{shapes[dims]}{kind}" for kind, dims in chain.inputs)
            done = subprocess.run(
                [
                    str(pathlib.Path(workloads.BIN) / "ftuner-run"),
                    "-",
                    f"--device={device}",
                    "--executor=emulator",
                    f"--args={arguments}",
                    "--counters",
                    "--check",
                    "--json",
                ],
                input=chain.text(),
                capture_output=True,
                text=True,
                check=False,
            )
            if done.returncode:
                sys.exit(f"error: {done.stderr}")
            report = next(json.loads(line) for line in done.stdout.splitlines() if line[0] == "{")
            requests = [
                one
                for kernel in report["counters"]
                for name_, one in kernel["requests"].items()
                if name_.startswith("global")
            ]
            sectors, ideal = (
                sum(one[key] for one in requests) for key in ("sectors", "ideal_sectors")
            )
            cells.append(f"{sectors / ideal:.3f}, {len(report['launches'])} launch")
        rows.append([name, *cells])
    return rows


def flight_rows(devices):
    """Bytes in flight of an SM: its share of the best bandwidth times the latency of a load from DRAM."""
    import ftuner
    from ftuner.latency.model import model

    rows = [
        ["device", "bytes an SM must have in flight", "bytes of a thread", "threads that suffice"]
    ]
    chain = CHAINS["add, f16"]
    for device in devices:
        source, figures = model().device(device)
        constants = model().default_calibration(source)
        per_cycle = best_gbps(device) / figures["sm_count"] / (figures["clock_mhz"] * 1e-3)
        latency = constants["stream_latency"] * (1 + constants["stream_dram_latency"])
        needed = per_cycle * latency
        (workload,) = ftuner.describe.explanation.explain_data(
            chain.text(), [{"M": 65536, "N": 4096}], device=device
        )["workloads"]
        schedule = workload["shapes"][0]["program"]["schedule"]
        asked = 2 * schedule["vectors"] * schedule["access"]
        rows.append([device, f"{needed:,.0f}", str(asked), f"{needed / asked:,.0f}"])
    return rows


HOW = ": predicted µs (share of the best measured copy bandwidth), nothing was measured"
HOW_MEASURED = ": predicted over measured times of memory_ops_f16, geometric means (rows)"
HOW_FLIGHT = ": add of f16, 65536 x 4096, by the constants of the latency model"
HOW_SECTORS = ": 32-byte sectors over the fewest, by the emulator's counters"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--devices", nargs="+", default=["v100", "a100", "h100", "t4"])
    parser.add_argument("--step", type=int, default=10, help="each so many measured rows (10)")
    parser.add_argument("--write", type=pathlib.Path, metavar="FILE")
    options = parser.parse_args()
    os.environ.setdefault("FTUNER_HOME", str(pathlib.Path(workloads.BIN).parent))

    import ftuner

    try:
        made = [
            tables.made(share_rows(options.devices), HOW),
            tables.made(measured_rows(("a100", "a40", "h100"), options.step), HOW_MEASURED),
            tables.made(sector_rows("h100"), HOW_SECTORS),
            tables.made(flight_rows(options.devices), HOW_FLIGHT),
        ]
    except ftuner.Error as error:
        sys.exit(f"error: {error}")
    text = "\n".join(made)
    print(text)
    if options.write:
        options.write.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
