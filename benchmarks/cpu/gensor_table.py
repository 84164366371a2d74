#!/usr/bin/env python3
"""Plans the operators that Gensor's paper prints by its walks, by parts of them, and by a tree, and judges the programs.

The shapes are the paper's (arXiv 2502.11407): convolutions C1 to C3, products M1 to M3, matrices times vectors V1 to
V3, average poolings P1 to P3, and three more products of its table V. For each:

* roller: the tree; ftuner: FTuner's own search of any uKernels and of pairs;
* graph: `gensor` with `virtual-threads=false`; gensor: the whole; back=0: walks that never go back;
  reduce: `walk-reduce`, the reduce tile as an axis of the walk.

Walks are drawn, so those of each shape are planned from several seeds; a figure is the geometric mean over them.
Each program has its time by three judges. `latency` is FTuner's model, which all but `roller` optimise. The other two
share no constant with it: `roofline`, waves by the data sheet (python/ftuner/study/judges.py), where every block moves its
tiles from device memory, as in Roller's own model; and `sharing`, the same where blocks of a wave that have a row or a
column of tiles in common move it once, as with any L2 that holds a step of a wave. Nothing is measured.

A convolution and a pooling are no product here: a fallback kernel of one thread for each element, whatever the
strategy; its time is the compiler's bound. The product that a convolution is, of images' windows laid out as rows
(C1p to C3p), stands beside it without what the laying out takes.

--back looks at going back alone: unbalanced shapes (M2, V1 to V3, and Dense's 2304 columns and 768 summands for awkward
rows), planned with ρ = 0 and others by few walks and many; each time is over that of 256 walks with ρ = 0.25.

--write FILE writes the tables as Markdown, each with the figures that the paper prints. Exits with 1 where a walk's
programs are slower than the tree's by any judge, on average over the shapes.
"""

from __future__ import annotations

import argparse
import datetime
import math
import pathlib
import sys

import workloads

ROOT = pathlib.Path(workloads.ROOT).resolve()
sys.path.insert(0, str(ROOT / "python"))

import ftuner
from ftuner.describe import descriptions
from ftuner.describe.explanation import explain_data
from ftuner.study import judges

PAPER = workloads.papers.load("gensor")
#: The operator of each of the paper's shapes; M2 stands in its table V, too.
OPERATORS = {one.name: one.parts[0] for one in PAPER.workloads}

#: Strategies with what they are told.
VARIANTS = {
    "roller": ("roller", {}),
    "graph": ("gensor", {"virtual_threads": False}),
    "gensor": ("gensor", {}),
    "back=0": ("gensor", {"gensor_back": 0.0}),
    "reduce": ("gensor", {"walk_reduce": True}),
    "ftuner": ("ftuner", {}),
}
JUDGES = ("latency", "roofline", "sharing")


def text_of(operator):
    return workloads.papers.module([workloads.papers.function("f", operator)])


def product(m, k, n):
    return {"kind": "product", "m": m, "n": n, "k": k}


def product_of(convolution):
    """The product that a convolution is."""
    out = (convolution["size"] - convolution["window"]) // convolution["stride"] + 1
    return product(
        convolution["images"] * out**2,
        convolution["channels"] * convolution["window"] ** 2,
        convolution["filters"],
    )


def cases():
    """By label: the module, and its floating-point operations."""
    found = {}
    for label, part in OPERATORS.items():
        if part.operator["kind"] == "conv":
            found[label + "p"] = text_of(product_of(part.operator)), part.flops
        elif part.operator["kind"] != "pool":
            found[label] = text_of(part.operator), part.flops
    return found


def fallbacks():
    """Like `cases`, for operators that no codegen path takes."""
    return {
        label: (text_of(part.operator), part.flops)
        for label, part in OPERATORS.items()
        if part.operator["kind"] in ("conv", "pool")
    }


def geomean(values):
    return math.exp(sum(map(math.log, values)) / len(values))


def sharing_us(device, program, extents):
    """Microseconds of a product by a roofline of waves whose blocks share what they read, by the data sheet alone.

    As judges.roofline_us, but a wave of B blocks of gridM × gridN moves min(B, gridN) columns of tiles and
    ⌈B / gridN⌉ rows of them, or the same along m, whichever is less, and its own results. Of one batch.
    """
    sms, (m, n, k) = device["sm_count"], extents
    peak, bandwidth = 1e6 * device["fp32_tflops"], 1e3 * device["dram_gbps"]
    lanes = round(peak / sms / (2 * device["clock_mhz"]))
    time_us = 0.0
    for count, ukernel in judges.blocks_of(program, extents):
        (bm, bn, bk), threads = ukernel["block_tile"], ukernel["workers"]
        held = max(
            1,
            min(
                device["max_blocks_per_sm"],
                device["max_threads_per_sm"] // threads,
                device["shared_memory_per_sm_bytes"]
                // (4 * program["schedule"]["stages"] * (bm + bn) * bk),
            ),
        )
        depth = math.ceil(k / program["reduce_split"] / bk) * bk
        grid_m, grid_n = (max(1, math.ceil(extent / tile)) for extent, tile in ((m, bm), (n, bn)))
        whole, rest = divmod(count, sms * held)
        for blocks, waves in ((sms * held, whole), (rest, 1)):
            if not blocks or not waves:
                continue
            on_sm = math.ceil(blocks / sms)
            compute = 2 * bm * bn * depth * on_sm * sms / (peak * min(1, on_sm * threads / lanes))
            elements = min(
                longer * bn + math.ceil(blocks / longer) * bm
                if is_n
                else longer * bm + math.ceil(blocks / longer) * bn
                for is_n, longer in ((True, min(blocks, grid_n)), (False, min(blocks, grid_m)))
            )
            time_us += waves * max(compute, 4 * (elements * depth + blocks * bm * bn) / bandwidth)
    return time_us


def times_of(text, device, variant, seeds):
    """By judge, the times of one shape's program in µs, one of each seed; and the different uKernels."""
    strategy, options = VARIANTS[variant] if isinstance(variant, str) else variant
    facts = descriptions.resolve(device).content()
    times, programs = {judge: [] for judge in JUDGES}, []
    for seed in range(seeds if strategy == "gensor" else 1):
        own = {**options, "gensor_seed": seed} if strategy == "gensor" else options
        (workload,) = explain_data(text, device=device, strategy=strategy, **own)["workloads"]
        (shape,) = workload["shapes"]
        program, extents = shape["program"], shape["shape"]
        times["latency"].append(program["predicted_us"])
        times["roofline"].append(judges.roofline_us(facts, program, extents))
        times["sharing"].append(sharing_us(facts, program, extents))
        tile = " + ".join(
            "×".join(map(str, ukernel["block_tile"]))
            + "/"
            + "×".join(map(str, ukernel["register_tile"][:2]))
            for count, ukernel in zip(program["blocks"], program["ukernels"])
            if count
        )
        fields = program["schedule"]
        if fields.get("virtual_threads_n"):
            tile += f" v{fields.get('virtual_threads_m')}×{fields['virtual_threads_n']}"
        if tile not in programs:
            programs.append(tile)
    return times, programs


def fallback_time(text, device):
    """µs of the module's kernels by the compiler's bound, and how many there are."""
    (function,) = ftuner.compile(text, device=device).manifest["functions"]
    kernels = function["work"]["fallback_kernels"]
    return sum(kernel["launches"] * kernel["predicted_us"][0] for kernel in kernels), len(kernels)


def paper_of(label, flops):
    """The paper's TFLOP/s of Roller, graph and Gensor, or only of Gensor."""
    cells = []
    for one in PAPER.reported:
        if one.workload != label:
            continue
        if one.kind == "tflops":
            cells.append(
                " / ".join(f"{one.values[system]:g}" for system in ("roller", "graph", "gensor"))
            )
        else:
            (ms,), (of_ansor,) = one.values["gensor"], one.values["ansor"]
            cells.append(f"{flops / ms / 1e9:.3g} ({ms:g} ms; Ansor {of_ansor:g})")
    return ", ".join(cells) or "-"


def tables(device, seeds):
    """Markdown, and by judge and variant the mean of times over roller's."""
    lines, means = [f"## {device}", ""], {}
    found = {}
    for label, (text, _) in cases().items():
        found[label] = {variant: times_of(text, device, variant, seeds) for variant in VARIANTS}
        print(device, label, file=sys.stderr)
    lines += [
        "Blocks and register tiles, and strips `v` that are not the path's own; of all seeds:",
        "",
        "| shape | " + " | ".join(VARIANTS) + " |",
        "|---" * (len(VARIANTS) + 1) + "|",
    ]
    for label, by_variant in found.items():
        lines.append(
            f"| {label} | "
            + " | ".join(", ".join(by_variant[variant][1]) for variant in VARIANTS)
            + " |"
        )
    lines.append("")
    found = {
        label: {variant: times for variant, (times, _) in by_variant.items()}
        for label, by_variant in found.items()
    }
    for judge in JUDGES:
        lines += [
            f"µs by `{judge}`, and in parentheses the time over roller's:",
            "",
            "| shape | " + " | ".join(VARIANTS) + " |",
            "|---" * (len(VARIANTS) + 1) + "|",
        ]
        ratios = {variant: [] for variant in VARIANTS}
        for label, times in found.items():
            base, cells = times["roller"][judge][0], []
            for variant in VARIANTS:
                value = geomean(times[variant][judge])
                ratios[variant].append(value / base)
                cells.append(
                    f"{value:.4g}" + ("" if variant == "roller" else f" ({value / base:.3f})")
                )
            lines.append(f"| {label} | " + " | ".join(cells) + " |")
        means[judge] = {variant: geomean(values) for variant, values in ratios.items()}
        lines += [
            "| mean | " + " | ".join(f"{means[judge][variant]:.3f}" for variant in VARIANTS) + " |",
            "",
        ]
    lines += [
        "Predicted TFLOP/s by `latency`, and the paper's of an RTX 4090 (Roller / graph / Gensor):",
        "",
        "| shape | roller | graph | gensor | paper |",
        "|---|---|---|---|---|",
    ]
    for label, (_, flops) in cases().items():
        cells = [
            f"{flops / geomean(found[label][variant]['latency']) / 1e6:.4g}"
            for variant in ("roller", "graph", "gensor")
        ]
        lines.append(
            f"| {label} | " + " | ".join(cells) + f" | {paper_of(label.removesuffix('p'), flops)} |"
        )
    for label, (text, flops) in fallbacks().items():
        time_us, kernels = fallback_time(text, device)
        cell = f"{flops / time_us / 1e6:.4g} ({kernels} fallback kernel{'s' if kernels > 1 else ''}, {time_us:.4g} µs)"
        lines.append(f"| {label} | {cell} | = | = | {paper_of(label, flops)} |")
    return lines + [""], means


#: Cases of --back.
AWKWARD_ROWS = (53, 77, 131, 300)
WALKS = (1, 4, 16)
BACKS = (0.0, 0.25, 0.5)


def back_tables(device, seeds):
    """Markdown: how much slower what few walks find is than what many find, with several ρ, by two judges."""
    shapes = {
        label: text for label, (text, _) in cases().items() if label in ("M2", "V1", "V2", "V3")
    }
    shapes |= {f"M = {rows}": text_of(product(rows, 768, 2304)) for rows in AWKWARD_ROWS}
    lines = [
        f"## {device}",
        "",
        f"Time over that of 256 walks with ρ = 0.25: mean over {seeds} seeds, by `latency` and by `sharing`.",
        "",
        "| shape | walks | " + " | ".join(f"ρ = {back:g}" for back in BACKS) + " |",
        "|---" * (len(BACKS) + 2) + "|",
    ]
    sums = {
        (walks, back, judge): []
        for walks in WALKS
        for back in BACKS
        for judge in ("latency", "sharing")
    }
    for label, text in shapes.items():
        best, _ = times_of(text, device, ("gensor", {"walks": 256}), 1)
        for walks in WALKS:
            cells = []
            for back in BACKS:
                times, _ = times_of(
                    text, device, ("gensor", {"walks": walks, "gensor_back": back}), seeds
                )
                loss = {
                    judge: geomean(times[judge]) / best[judge][0]
                    for judge in ("latency", "sharing")
                }
                for judge, value in loss.items():
                    sums[walks, back, judge].append(value)
                cells.append(" / ".join(f"{value:.3f}" for value in loss.values()))
            lines.append(f"| {label} | {walks} | " + " | ".join(cells) + " |")
        print(device, label, file=sys.stderr)
    for walks in WALKS:
        cells = (
            " / ".join(
                f"{geomean(sums[walks, back, judge]):.3f}" for judge in ("latency", "sharing")
            )
            for back in BACKS
        )
        lines.append(f"| mean | {walks} | " + " | ".join(cells) + " |")
    return lines + [""]


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--devices", default="rtx4090,orin-nano")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--back", action="store_true")
    parser.add_argument("--write")
    options = parser.parse_args()
    text = [
        "# Gensor's shapes",
        "",
        f"`{' '.join(['python3 benchmarks/cpu/gensor_table.py', *sys.argv[1:]])}`, {datetime.date.today()}; "
        f"{options.seeds} seeds. Predictions; nothing was measured here.",
        "",
    ]
    is_worse = False
    for device in options.devices.split(","):
        if options.back:
            text += back_tables(device, options.seeds)
            continue
        lines, means = tables(device, options.seeds)
        text += lines
        is_worse |= any(ratios["gensor"] > 1 for ratios in means.values())
    print("\n".join(text))
    if options.write:
        pathlib.Path(options.write).write_text("\n".join(text), encoding="utf-8")
    sys.exit(is_worse)


if __name__ == "__main__":
    main()
