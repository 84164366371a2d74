#!/usr/bin/env python3
"""Predicted times of exported decode attention, beside a form written by hand and FlashAttention's measured times.

The form by hand is two products and a softmax in linalg, whose maps read the cache where it lies: what an export without
any copy becomes. Measured are rows of attention_serving with heads of 128 elements; they write the new keys and values to a
paged cache, too, and take 10 to 14 µs at least, of several kernels. FTuner's keys and values are in one piece.
Nothing is compiled or run.
"""

from __future__ import annotations

import argparse
import collections
import csv
import gzip
import math
import os
import pathlib
import sys
import warnings

import odd_lengths
import workloads

ROOT = pathlib.Path(workloads.ROOT).resolve()
sys.path[:0] = [str(ROOT / "python"), str(ROOT / "benchmarks/torch")]

import tables

MEASURED = ROOT.parent / "shared/data/attention_serving.csv.gz"
HOW = ": predicted times over others; geometric means, with the number of shapes; nothing was measured by us"
WIDTH = 128
#: Query heads and key heads.
HEADS = ((32, 8), (16, 4), (8, 2), (8, 1), (32, 4), (64, 8), (32, 32))
KERNELS = ("flash_attention", "vllm_flash_attn", "vllm_flash_attn_fa3", "fa3")


def product(result, maps, lhs, rhs, init):
    """A contraction of two bf16 operands into f32; operands are names and types."""
    parallel = ", ".join(['"parallel"'] * 4)
    return f"""{result} = linalg.generic {{indexing_maps = [{maps}], iterator_types = [{parallel}, "reduction"]}}
      ins({lhs[0]}, {rhs[0]} : {lhs[1]}, {rhs[1]}) outs({init[0]} : {init[1]}) {{
  ^bb0(%m: bf16, %n: bf16, %a: f32):
    %m1 = arith.extf %m : bf16 to f32
    %n1 = arith.extf %n : bf16 to f32
    %t = arith.mulf %m1, %n1 : f32
    %r = arith.addf %a, %t : f32
    linalg.yield %r : f32
  }} -> {init[1]}"""


def by_hand(heads, groups):
    """Decode attention on queries B x heads x WIDTH and a cache B x L x groups x WIDTH, in bf16."""
    shared = heads // groups
    query, cache = f"tensor<?x{groups}x{shared}x{WIDTH}xbf16>", f"tensor<?x?x{groups}x{WIDTH}xbf16>"
    scores, wide = f"tensor<?x{groups}x{shared}x?xbf16>", f"tensor<?x{groups}x{shared}x?xf32>"
    out = f"tensor<?x{groups}x{shared}x{WIDTH}xf32>"
    parallel = ", ".join(['"parallel"'] * 4)
    return f"""
#all = affine_map<(b, g, s, l) -> (b, g, s, l)>
#q = affine_map<(b, g, s, l, d) -> (b, g, s, d)>
#k = affine_map<(b, g, s, l, d) -> (b, l, g, d)>
#s = affine_map<(b, g, s, l, d) -> (b, g, s, l)>
#p = affine_map<(b, g, s, d, l) -> (b, g, s, l)>
#v = affine_map<(b, g, s, d, l) -> (b, l, g, d)>
#o = affine_map<(b, g, s, d, l) -> (b, g, s, d)>
module attributes {{ukernel.symbols = {{B = #ukernel.range<1 to 2048>, L = #ukernel.range<1 to 16384>}}}} {{
func.func @f(%q: {query} {{ukernel.shape = ["B", {groups}, {shared}, {WIDTH}]}},
             %k: {cache} {{ukernel.shape = ["B", "L", {groups}, {WIDTH}]}},
             %v: {cache} {{ukernel.shape = ["B", "L", {groups}, {WIDTH}]}}) -> {query} {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  %scale = arith.constant 0.08838 : bf16
  %b = tensor.dim %k, %c0 : {cache}
  %l = tensor.dim %k, %c1 : {cache}
  %e = tensor.empty(%b, %l) : {wide}
  %i = linalg.fill ins(%zero : f32) outs(%e : {wide}) -> {wide}
  {product("%x", "#q, #k, #s", ("%q", query), ("%k", cache), ("%i", wide))}
  %f = tensor.empty(%b, %l) : {scores}
  %y = linalg.generic {{indexing_maps = [#all, #all], iterator_types = [{parallel}]}} ins(%x : {wide}) outs(%f : {scores}) {{
  ^bb0(%m: f32, %a: bf16):
    %t = arith.truncf %m : f32 to bf16
    %r = arith.mulf %t, %scale : bf16
    linalg.yield %r : bf16
  }} -> {scores}
  %w = linalg.generic {{indexing_maps = [#all, #all], iterator_types = [{parallel}]}} ins(%y : {scores}) outs(%e : {wide}) {{
  ^bb0(%m: bf16, %a: f32):
    %r = arith.extf %m : bf16 to f32
    linalg.yield %r : f32
  }} -> {wide}
  %z = linalg.softmax dimension(3) ins(%w : {wide}) outs(%e : {wide}) -> {wide}
  %p = linalg.generic {{indexing_maps = [#all, #all], iterator_types = [{parallel}]}} ins(%z : {wide}) outs(%f : {scores}) {{
  ^bb0(%m: f32, %a: bf16):
    %r = arith.truncf %m : f32 to bf16
    linalg.yield %r : bf16
  }} -> {scores}
  %g = tensor.empty(%b) : {out}
  %h = linalg.fill ins(%zero : f32) outs(%g : {out}) -> {out}
  {product("%u", "#p, #v, #o", ("%p", scores), ("%v", cache), ("%h", out))}
  %j = tensor.empty(%b) : {query}
  %o = linalg.generic {{indexing_maps = [#all, #all], iterator_types = [{parallel}]}} ins(%u : {out}) outs(%j : {query}) {{
  ^bb0(%m: f32, %a: bf16):
    %r = arith.truncf %m : f32 to bf16
    linalg.yield %r : bf16
  }} -> {query}
  return %o : {query}
}}
}}
"""


def measured():
    """Rows by device, heads and groups; of a shape the time of the fastest FlashAttention."""
    found = collections.defaultdict(dict)
    with gzip.open(MEASURED, "rt") as file:
        for row in csv.DictReader(file):
            if (
                row["phase"] == "decode"
                and row["kernel"] in KERNELS
                and int(row["head_dim"]) == WIDTH
            ):
                shape = int(row["batch"]), int(row["kv_len"])
                some = found[row["device"], int(row["heads"]), int(row["kv_heads"])]
                some[shape] = min(float(row["latency_us"]), some.get(shape, math.inf))
    return found


def mean(ratios):
    ratios = list(ratios)
    return (
        f"{math.exp(sum(map(math.log, ratios)) / len(ratios)):.2f} ({len(ratios)})"
        if ratios
        else ""
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--devices", nargs="+", default=["a100", "h100", "h200"])
    parser.add_argument("--step", type=int, default=8, help="each so many shapes (8)")
    parser.add_argument("--write", type=pathlib.Path, metavar="FILE")
    options = parser.parse_args()
    os.environ.setdefault("FTUNER_HOME", str(pathlib.Path(workloads.BIN).parent))
    warnings.simplefilter("ignore")  # Warnings of torch.export about versions to come.

    import ftuner
    import ftuner.torch
    import torch

    rows = [
        [
            "heads",
            "device",
            "over the form by hand",
            "over measured",
            "of these over 30 µs",
            "worst",
        ]
    ]
    all_rows = measured()
    try:
        for heads, groups in HEADS:
            exported = odd_lengths.export(
                "decode", torch.bfloat16, (heads, groups, WIDTH), max_batch=2048
            ).text
            for device in options.devices:
                times = all_rows.get((device, heads, groups), {})
                shapes = sorted(times)[:: options.step] or [(16, 2048), (1, 8191), (64, 512)]
                sizes = [{"B": batch, "L": length} for batch, length in shapes]
                predicted = workloads.predicted_us(exported, sizes, device)
                hand = workloads.predicted_us(by_hand(heads, groups), sizes, device)
                ratios = {
                    shape: us / times[shape]
                    for shape, us in zip(shapes, predicted)
                    if shape in times
                }
                worst = max(ratios, key=ratios.get, default=None)
                rows.append(
                    [
                        f"{heads} / {groups}",
                        device,
                        mean(a / b for a, b in zip(predicted, hand)),
                        mean(ratios.values()),
                        mean(ratio for shape, ratio in ratios.items() if times[shape] > 30),
                        f"{ratios[worst]:.2f} at {worst[0]} x {worst[1]}" if worst else "",
                    ]
                )
                print(" | ".join(rows[-1]), flush=True)
    except ftuner.Error as error:
        sys.exit(f"error: {error}")
    tables.publish(rows, HOW, options.write)


if __name__ == "__main__":
    main()
