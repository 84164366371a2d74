#!/usr/bin/env python3
"""Predicted time by operator of whole models in half precision, without reductions of rows and with them.

Models of full_models.py at fixed batches; the length of sequences is dynamic, where a model has several. Each is
planned for each device twice, by the codegen paths without `rows` and with them, and explained; nothing is compiled or
run. A row of the table is a model at a batch and length:

* launches a layer: all launches over the number of layers, with those before and behind the layers. Kernels that add
  slices of split-K up count with their product;
* uKernels: their share in the predicted time. Kernels whose bytes do not follow from the sizes, embeddings, are left
  out of times;
* the time of products with weights, of batched products (attention's, and convolutions of a batch), of softmax, norms and other reductions of rows by uKernels,
  and of fallback kernels that compute something and that move or fill tensors;
* left: fallback kernels with an exponential or a root, or that reduce: what a softmax or norm falls apart into.

--measured FILE, the table bert_encoder.csv, puts the measured times of other programs beside those of `bert_encoder`.
--write FILE writes the table after each explanation, and beside it FILE.json, from which a run that was stopped goes
on: remove it after a change of the compiler.
Exits with 1 where something is left, or cannot be explained.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import pathlib
import sys
import time
import warnings

import workloads

ROOT = pathlib.Path(workloads.ROOT).resolve()
sys.path[:0] = [str(ROOT / "python"), str(ROOT / "benchmarks/torch")]

import tables
from ftuner.describe.work import KINDS, inner_operations, kind_of

#: Models and the types that they are looked at in.
CASES = (
    ("bert_base", "f16"),
    ("bert_base", "bf16"),
    ("gpt2", "f16"),
    ("llama", "bf16"),
    ("t5", "bf16"),
    ("vit", "f16"),
    ("whisper", "f16"),
)
TYPES = {"f32": "float32", "f16": "float16", "bf16": "bfloat16"}
#: Names of the paths, and the option of the compiler.
WAYS = {"without": "simt,mma", "with rows": None}
HOW = ": predicted µs, nothing was measured by FTuner"
#: Operators of elements that tell what a kernel belongs to.
EXPONENTIALS, ROOTS = ("math.exp", "math.exp2"), ("math.rsqrt", "math.sqrt")
#: Programs of bert_encoder.csv, in the order of columns.
PROGRAMS = ("ft", "xla", "torchscript")


def is_left(kernel):
    """Returns true if a fallback kernel is a part of an operator that could be rows."""
    inner = inner_operations(kernel["operator"])
    is_row = (
        kernel["operator"].startswith(("linalg.reduce", "linalg.softmax"))
        or "arith.maximumf" in inner
    )
    return is_row or any(name in inner for name in (*EXPONENTIALS, *ROOTS))


def figures(work, number, layers):
    """The figures of a function at the sizes with this number."""
    kernels = [*work["workloads"], *work["fallback_kernels"]]
    times = dict.fromkeys(KINDS, 0.0)
    for kernel in kernels:
        times[kind_of(kernel)] += kernel["predicted_us"][number] or 0.0
    share = work["shares"][number]
    return {
        "launches": len(kernels),
        "a_layer": len(kernels) / layers,
        "us": share["ukernel_us"] + share["fallback_us"],
        "share": share["time_share"],
        "times": times,
        "unknown": share["unknown_kernels"],
        "left": sum(map(is_left, work["fallback_kernels"])),
    }


def explain(exported, device, sizes, paths, options):
    import ftuner

    given = {"paths": paths, "max_kernels": options.max_kernels}
    data = ftuner.describe.explanation.explain_data(
        exported.text,
        sizes,
        device=device,
        **{name: value for name, value in given.items() if value is not None},
    )
    return data["functions"][0]["work"]


class Store:
    """Explanations by the words of their command, in a file that outlives the process."""

    def __init__(self, path):
        self.path, self.entries = path, {}
        if path and path.is_file():
            self.entries = json.loads(path.read_text(encoding="utf-8"))

    def put(self, key, value):
        self.entries[key] = value
        if self.path:
            other = self.path.with_suffix(".new")
            other.write_text(json.dumps(self.entries, indent=1) + "\n", encoding="utf-8")
            other.replace(self.path)


def cases_of(options):
    """(model, type, batch) of all modules."""
    pairs = (
        [(name, kind) for name, kind in CASES if name in options.models]
        if options.types is None
        else [(name, kind) for name in options.models for kind in options.types]
    )
    return [(name, kind, batch) for name, kind in pairs for batch in options.batches]


def key_of(options, *words):
    same = ("layers", "small", "max_kernels", "lengths")
    return " ".join(map(str, [*words, *(f"{name}={getattr(options, name)}" for name in same)]))


def make(options, store, write):
    """Explains what the store lacks."""
    import full_models
    import torch

    every = cases_of(options)
    for number, (name, kind, batch) in enumerate(every):
        wanted = [
            (device, way)
            for device in options.devices
            for way in options.ways
            if key_of(options, name, kind, batch, device, way) not in store.entries
        ]
        if not wanted:
            continue
        start = time.perf_counter()
        built = full_models.build(name, options.layers, options.small)
        exported = full_models.export(
            built, batch, max(options.lengths), getattr(torch, TYPES[kind])
        )
        sizes = [{"T": length} for length in options.lengths] if built.has_length else None
        for device, way in wanted:
            work = explain(exported, device, sizes, WAYS[way], options)
            numbers = range(len(work["shares"])) if sizes else [len(work["shares"]) - 1]
            store.put(
                key_of(options, name, kind, batch, device, way),
                {
                    "lengths": options.lengths if sizes else [None],
                    "figures": [figures(work, number, built.layers) for number in numbers],
                },
            )
            write()
        print(
            f"{number + 1} of {len(every)}: {name}, {kind}, batch {batch}: {time.perf_counter() - start:.0f} s",
            file=sys.stderr,
            flush=True,
        )


def measured(options):
    """Milliseconds of the fastest measurement, by device, type, batch, length and program."""
    if not options.measured:
        return {}
    found = {}
    with open(options.measured, encoding="utf-8") as file:
        for row in csv.DictReader(file):
            key = (
                row["device"],
                row["dtype"],
                int(row["batch"]),
                int(row["seq"]),
                row["implementation"],
            )
            found[key] = min(float(row["latency_ms"]), found.get(key, float("inf")))
    return found


def rows_of(options, store):
    """The table's rows, the header first."""
    import full_models

    times = measured(options)
    header = [
        "model",
        "type",
        "batch",
        "T",
        "device",
        "rows",
        "launches",
        "a layer",
        "µs",
        "uKernels",
        *KINDS,
        "left",
    ]
    rows = [
        header + [f"{name} measured, ms (ours over it)" for name in PROGRAMS] if times else header
    ]
    for name, kind, batch in cases_of(options):
        for device in options.devices:
            entries = [
                (way, store.entries.get(key_of(options, name, kind, batch, device, way)))
                for way in options.ways
            ]
            known = [(way, entry) for way, entry in entries if entry]
            for place, length in enumerate(known[0][1]["lengths"] if known else ()):
                for way, entry in known:
                    one = entry["figures"][place]
                    row = [
                        full_models.MODELS[name].title,
                        kind,
                        str(batch),
                        str(length or "–"),
                        device,
                        way,
                        str(one["launches"]),
                        f"{one['a_layer']:.1f}",
                        f"{one['us']:,.0f}",
                        f"{one['share']:.1%}",
                        *(f"{one['times'][part]:,.0f}" for part in KINDS),
                        str(one["left"]),
                    ]
                    for program in PROGRAMS if times else ():
                        other = times.get((device, kind, batch, length, program))
                        row.append(f"{other} ({one['us'] / other / 1e3:.2f})" if other else "–")
                    rows.append(row)
    return rows


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    names = [*dict.fromkeys(name for name, _ in CASES), "bert_encoder", "bert_large"]
    parser.add_argument("--models", nargs="+", choices=names, default=names[:-2])
    parser.add_argument(
        "--types", nargs="+", choices=TYPES, help="default: those of each model's row of CASES"
    )
    parser.add_argument("--devices", nargs="+", default=["a100", "h100", "v100"])
    parser.add_argument("--batches", nargs="+", type=int, default=[1, 16])
    parser.add_argument(
        "--lengths", nargs="+", type=int, default=[32, 384], help="tokens of a sequence"
    )
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=list(WAYS))
    parser.add_argument("--layers", type=int, help="default: as published, of Llama five")
    parser.add_argument(
        "--small", action="store_true", help="48 or 64 channels: to try this script"
    )
    parser.add_argument("--max-kernels", type=int)
    parser.add_argument("--measured", type=pathlib.Path, metavar="FILE")
    parser.add_argument("--write", type=pathlib.Path, metavar="FILE")
    options = parser.parse_args()
    if options.types is None and set(options.models) - {name for name, _ in CASES}:
        parser.error("--types: expected for models that have no types of their own")
    os.environ.setdefault("FTUNER_HOME", str(pathlib.Path(workloads.BIN).parent))
    warnings.simplefilter("ignore")  # Warnings of torch.export about versions to come.

    import ftuner

    store = Store(options.write.with_name(options.write.name + ".json") if options.write else None)

    def write():
        if options.write:
            options.write.write_text(tables.made(rows_of(options, store), HOW), encoding="utf-8")

    try:
        make(options, store, write)
        write()
    except ftuner.Error as error:
        sys.exit(f"error: {error}")
    rows = rows_of(options, store)
    print(tables.made(rows, HOW))
    place = rows[0].index("left")
    left = [row for row in rows[1:] if row[5] == "with rows" and row[place] != "0"]
    for row in left:
        print(
            f"error: {', '.join(row[:5])}: {row[place]} fallback kernels of a softmax or norm",
            file=sys.stderr,
        )
    return 1 if left else 0


if __name__ == "__main__":
    sys.exit(main())
