#!/usr/bin/env python3
"""Plans the operators that Gensor's paper prints by its walks, by parts of them, and by a tree, and judges the programs.

The shapes are the paper's (arXiv 2502.11407): convolutions C1 to C3, products M1 to M3, matrices times vectors V1 to
V3, average poolings P1 to P3, and three more products of its table V. For each:

* roller: the tree; ftuner: FTuner's own search of any uKernels and of pairs;
* graph: `gensor` with `virtual-threads=false`; gensor: the whole; back=0: walks that never go back;
  reduce: `walk-reduce`, the reduce tile as an axis of the walk.

Walks are drawn, so those of each shape are planned from several seeds; a figure is the geometric mean over them.
Each program has its time by three judges. `latency` is FTuner's model, which all but `roller` optimise. The other two
share no constant with it: `roofline`, waves by the data sheet (python/ftuner/judges.py), where every block moves its
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
import json
import math
import pathlib
import sys

import workloads

ROOT = pathlib.Path(workloads.ROOT).resolve()
sys.path.insert(0, str(ROOT / "python"))

import ftuner  # noqa: E402
from ftuner import descriptions, judges  # noqa: E402
from ftuner.explanation import explain_data  # noqa: E402

#: (M, K, N) of products, as the paper orders extents.
PRODUCTS = {
    "M1": (8192, 8192, 8192), "M2": (65536, 4, 1024), "M3": (65536, 1024, 4096),
    "T1": (65536, 4, 1024), "T2": (32768, 64, 2048), "T3": (16384, 32, 1024),
}
#: (M, N) of matrices times vectors.
VECTORS = {"V1": (16384, 16384), "V2": (16384, 8192), "V3": (16384, 1000)}
#: Images, channels, height, width; filters; window; stride.
CONVOLUTIONS = {"C1": ((128, 256, 30, 30), 256, 3, 2), "C2": ((128, 128, 28, 28), 128, 3, 1),
                "C3": ((128, 128, 58, 58), 128, 3, 2)}
POOLINGS = {"P1": ((16, 48, 48, 48), 2, 2), "P2": ((128, 168, 83, 83), 2, 2), "P3": ((128, 617, 21, 21), 3, 2)}

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

#: What the paper prints of an RTX 4090: ms (Gensor, Ansor), and TFLOP/s (Roller, graph, Gensor).
PAPER_MS = {"T1": (0.287, 0.303), "T2": (0.369, 0.387), "T3": (0.083, 0.091)}
PAPER_TFLOPS = {"C1": (22.76, 31.93, 34.54), "M1": (37.6, 43.1, 45.2), "V1": (0.23, 0.39, 0.47), "P1": (0.07, 0.08, 0.08)}


def product(m, k, n):
    return workloads.models.Matmul(m=m, n=n, k=k).text()


def matrix_times_vector(m, n):
    return f"""func.func @f(%a: tensor<{m}x{n}xf32>, %x: tensor<{n}xf32>) -> tensor<{m}xf32> {{
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<{m}xf32>
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<{m}xf32>) -> tensor<{m}xf32>
  %y = linalg.matvec ins(%a, %x : tensor<{m}x{n}xf32>, tensor<{n}xf32>) outs(%start : tensor<{m}xf32>) -> tensor<{m}xf32>
  return %y : tensor<{m}xf32>
}}
"""


def places(image, window, stride):
    return [(size - window) // stride + 1 for size in image[2:]]


def text_of(sizes):
    return "tensor<" + "x".join(map(str, sizes)) + "xf32>"


def convolution(image, filters, window, stride):
    kernel = text_of((filters, image[1], window, window))
    out = text_of((image[0], filters, *places(image, window, stride)))
    return f"""func.func @f(%x: {text_of(image)}, %k: {kernel}) -> {out} {{
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : {out}
  %start = linalg.fill ins(%zero : f32) outs(%empty : {out}) -> {out}
  %y = linalg.conv_2d_nchw_fchw {{strides = dense<{stride}> : vector<2xi64>, dilations = dense<1> : vector<2xi64>}}
      ins(%x, %k : {text_of(image)}, {kernel}) outs(%start : {out}) -> {out}
  return %y : {out}
}}
"""


def pooling(image, window, stride):
    out = text_of((*image[:2], *places(image, window, stride)))
    return f"""#map = affine_map<(a, b, c, d) -> (a, b, c, d)>
func.func @f(%x: {text_of(image)}) -> {out} {{
  %zero = arith.constant 0.0 : f32
  %count = arith.constant {float(window * window)} : f32
  %empty = tensor.empty() : {out}
  %w = tensor.empty() : {text_of((window, window))}
  %start = linalg.fill ins(%zero : f32) outs(%empty : {out}) -> {out}
  %sum = linalg.pooling_nchw_sum {{strides = dense<{stride}> : vector<2xi64>, dilations = dense<1> : vector<2xi64>}}
      ins(%x, %w : {text_of(image)}, {text_of((window, window))}) outs(%start : {out}) -> {out}
  %y = linalg.generic {{indexing_maps = [#map, #map],
                       iterator_types = ["parallel", "parallel", "parallel", "parallel"]}}
      ins(%sum : {out}) outs(%empty : {out}) {{
  ^bb0(%a: f32, %b: f32):
    %q = arith.divf %a, %count : f32
    linalg.yield %q : f32
  }} -> {out}
  return %y : {out}
}}
"""


def product_of(image, filters, window, stride):
    """(M, K, N) of the product that a convolution is."""
    return image[0] * math.prod(places(image, window, stride)), image[1] * window * window, filters


def cases():
    """By label: the module, and its floating-point operations."""
    found = {}
    for label, (m, k, n) in PRODUCTS.items():
        found[label] = product(m, k, n), 2 * m * k * n
    for label, (m, n) in VECTORS.items():
        found[label] = matrix_times_vector(m, n), 2 * m * n
    for label, shape in CONVOLUTIONS.items():
        m, k, n = product_of(*shape)
        found[label + "p"] = product(m, k, n), 2 * m * k * n
    return found


def fallbacks():
    """The same of what no codegen path takes."""
    found = {}
    for label, shape in CONVOLUTIONS.items():
        found[label] = convolution(*shape), 2 * math.prod(product_of(*shape))
    for label, (image, window, stride) in POOLINGS.items():
        outputs = math.prod((*image[:2], *places(image, window, stride)))
        found[label] = pooling(image, window, stride), outputs * window * window
    return found


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
        held = max(1, min(device["max_blocks_per_sm"], device["max_threads_per_sm"] // threads,
                          device["shared_memory_per_sm_bytes"] // (4 * program["schedule"]["stages"] * (bm + bn) * bk)))
        depth = math.ceil(k / program["reduce_split"] / bk) * bk
        grid_m, grid_n = (max(1, math.ceil(extent / tile)) for extent, tile in ((m, bm), (n, bn)))
        whole, rest = divmod(count, sms * held)
        for blocks, waves in ((sms * held, whole), (rest, 1)):
            if not blocks or not waves:
                continue
            on_sm = math.ceil(blocks / sms)
            compute = 2 * bm * bn * depth * on_sm * sms / (peak * min(1, on_sm * threads / lanes))
            elements = min(along * bn + math.ceil(blocks / along) * bm if is_n else along * bm + math.ceil(blocks / along) * bn
                           for is_n, along in ((True, min(blocks, grid_n)), (False, min(blocks, grid_m))))
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
        tile = " + ".join("×".join(map(str, ukernel["block_tile"])) + "/" + "×".join(map(str, ukernel["register_tile"][:2]))
                          for count, ukernel in zip(program["blocks"], program["ukernels"]) if count)
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
    """The paper's TFLOP/s of Roller, graph and Gensor, or of Gensor alone."""
    if label in PAPER_TFLOPS:
        return " / ".join(f"{value:g}" for value in PAPER_TFLOPS[label])
    if label in PAPER_MS:
        ms, of_ansor = PAPER_MS[label]
        return f"{flops / ms / 1e9:.3g} ({ms:g} ms; Ansor {of_ansor:g})"
    return "-"


def tables(device, seeds):
    """Markdown, and by judge and variant the mean of times over roller's."""
    lines, means = [f"## {device}", ""], {}
    found = {}
    for label, (text, _) in cases().items():
        found[label] = {variant: times_of(text, device, variant, seeds) for variant in VARIANTS}
        print(device, label, file=sys.stderr)
    lines += ["Blocks and register tiles, and strips `v` that are not the path's own; of all seeds:", "",
              "| shape | " + " | ".join(VARIANTS) + " |", "|---" * (len(VARIANTS) + 1) + "|"]
    for label, of in found.items():
        lines.append(f"| {label} | " + " | ".join(", ".join(of[variant][1]) for variant in VARIANTS) + " |")
    lines.append("")
    found = {label: {variant: times for variant, (times, _) in of.items()} for label, of in found.items()}
    for judge in JUDGES:
        lines += [f"µs by `{judge}`, and in parentheses the time over roller's:", "",
                  "| shape | " + " | ".join(VARIANTS) + " |", "|---" * (len(VARIANTS) + 1) + "|"]
        ratios = {variant: [] for variant in VARIANTS}
        for label, times in found.items():
            base, cells = times["roller"][judge][0], []
            for variant in VARIANTS:
                value = geomean(times[variant][judge])
                # M2 stands in table V, too.
                if label != "T1":
                    ratios[variant].append(value / base)
                cells.append(f"{value:.4g}" + ("" if variant == "roller" else f" ({value / base:.3f})"))
            lines.append(f"| {label} | " + " | ".join(cells) + " |")
        means[judge] = {variant: geomean(values) for variant, values in ratios.items()}
        lines += ["| mean | " + " | ".join(f"{means[judge][variant]:.3f}" for variant in VARIANTS) + " |", ""]
    lines += [f"Predicted TFLOP/s by `latency`, and the paper's of an RTX 4090 (Roller / graph / Gensor):", "",
              "| shape | roller | graph | gensor | paper |", "|---|---|---|---|---|"]
    for label, (_, flops) in cases().items():
        cells = [f"{flops / geomean(found[label][variant]['latency']) / 1e6:.4g}" for variant in ("roller", "graph", "gensor")]
        lines.append(f"| {label} | " + " | ".join(cells) + f" | {paper_of(label.removesuffix('p'), flops)} |")
    for label, (text, flops) in fallbacks().items():
        time_us, kernels = fallback_time(text, device)
        cell = f"{flops / time_us / 1e6:.4g} ({kernels} fallback kernel{'s' if kernels > 1 else ''}, {time_us:.4g} µs)"
        lines.append(f"| {label} | {cell} | = | = | {paper_of(label, flops)} |")
    return lines + [""], means


#: Of --back.
AWKWARD_ROWS = (53, 77, 131, 300)
WALKS = (1, 4, 16)
BACKS = (0.0, 0.25, 0.5)


def back_tables(device, seeds):
    """Markdown: how much slower what few walks find is than what many find, with several ρ, by two judges."""
    shapes = {label: text for label, (text, _) in cases().items() if label in ("M2", *VECTORS)}
    shapes |= {f"M = {rows}": product(rows, 768, 2304) for rows in AWKWARD_ROWS}
    lines = [f"## {device}", "", f"Time over that of 256 walks with ρ = 0.25: mean over {seeds} seeds, by `latency` and by `sharing`.", "",
             "| shape | walks | " + " | ".join(f"ρ = {back:g}" for back in BACKS) + " |", "|---" * (len(BACKS) + 2) + "|"]
    sums = {(walks, back, judge): [] for walks in WALKS for back in BACKS for judge in ("latency", "sharing")}
    for label, text in shapes.items():
        best, _ = times_of(text, device, ("gensor", {"walks": 256}), 1)
        for walks in WALKS:
            cells = []
            for back in BACKS:
                times, _ = times_of(text, device, ("gensor", {"walks": walks, "gensor_back": back}), seeds)
                over = {judge: geomean(times[judge]) / best[judge][0] for judge in ("latency", "sharing")}
                for judge, value in over.items():
                    sums[walks, back, judge].append(value)
                cells.append(" / ".join(f"{value:.3f}" for value in over.values()))
            lines.append(f"| {label} | {walks} | " + " | ".join(cells) + " |")
        print(device, label, file=sys.stderr)
    for walks in WALKS:
        cells = (" / ".join(f"{geomean(sums[walks, back, judge]):.3f}" for judge in ("latency", "sharing")) for back in BACKS)
        lines.append(f"| mean | {walks} | " + " | ".join(cells) + " |")
    return lines + [""]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--devices", default="rtx4090,orin-nano")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--back", action="store_true")
    parser.add_argument("--write")
    options = parser.parse_args()
    text = [f"# Gensor's shapes", "",
            f"`{' '.join(['python3 benchmarks/cpu/gensor_table.py', *sys.argv[1:]])}`, {datetime.date.today()}; "
            f"{options.seeds} seeds. Predictions; nothing was measured here.", ""]
    is_worse = False
    for device in options.devices.split(","):
        if options.back:
            text += back_tables(device, options.seeds)
            continue
        lines, means = tables(device, options.seeds)
        text += lines
        is_worse |= any(of["gensor"] > 1 for of in means.values())
    print("\n".join(text))
    if options.write:
        pathlib.Path(options.write).write_text("\n".join(text), encoding="utf-8")
    sys.exit(is_worse)


if __name__ == "__main__":
    main()
