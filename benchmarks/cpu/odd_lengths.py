#!/usr/bin/env python3
"""Predicted times of attention at lengths that are no multiple of 8, over those at the next multiple of 8.

Grouped decode (32 query heads, 8 key heads of 128), grouped causal prefill, and an encoder's attention (12 heads of 64) with a
mask of keys, exported from PyTorch with dynamic batch and lengths. Nothing is compiled or run.
"""

from __future__ import annotations

import argparse
import os
import pathlib
import sys
import warnings

import workloads

ROOT = pathlib.Path(workloads.ROOT).resolve()
sys.path[:0] = [str(ROOT / "python"), str(ROOT / "benchmarks/torch")]

import tables

HOW = ": predicted µs at the length (over those at the next multiple of 8), nothing was measured"
#: Form, batch, lengths.
CASES = (
    ("decode", 16, (2047, 4095, 8191)),
    ("prefill", 4, (197, 511, 1023)),
    ("encoder", 16, (197, 511, 1023)),
)


def export(form, dtype, shape=None, max_batch=256):
    """Exported attention of a form; `shape` are query heads, key heads and elements of a head."""
    from torch.export import Dim
    from torch.nn.functional import scaled_dot_product_attention

    import ftuner.torch
    import torch

    heads, groups, width = shape or ((12, 12, 64) if form == "encoder" else (32, 8, 128))

    class Attention(torch.nn.Module):
        def forward(self, q, k, v, mask=None):
            q, k, v = (x.transpose(1, 2) for x in (q, k, v))
            result = scaled_dot_product_attention(
                q, k, v, attn_mask=mask, is_causal=form == "prefill", enable_gqa=heads != groups
            )
            return result.transpose(1, 2)

    batch, length = Dim("B", max=max_batch), Dim("L", max=16384)
    queries = 1 if form == "decode" else 9
    given = [
        torch.zeros(3, n, h, width, dtype=dtype)
        for n, h in ((queries, heads), (9, groups), (9, groups))
    ]
    shapes = [{0: batch, 1: length} if x.shape[1] > 1 else {0: batch} for x in given]
    if form == "encoder":
        given.append(torch.ones(3, 1, 1, 9, dtype=torch.bool))
        shapes.append({0: batch, 3: length})
    return ftuner.torch.export(Attention(), tuple(given), dynamic_shapes=tuple(shapes))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--devices", nargs="+", default=["a100", "h100"])
    parser.add_argument("--types", nargs="+", default=["float16", "bfloat16"])
    parser.add_argument("--write", type=pathlib.Path, metavar="FILE")
    options = parser.parse_args()
    os.environ.setdefault("FTUNER_HOME", str(pathlib.Path(workloads.BIN).parent))
    warnings.simplefilter("ignore")  # Warnings of torch.export about versions to come.

    import ftuner
    import ftuner.torch
    import torch

    rows = [["attention", "type", "device", "odd lengths"]]
    try:
        for form, batch, lengths in CASES:
            for dtype in options.types:
                text = export(form, getattr(torch, dtype)).text
                for device in options.devices:
                    both = [size for length in lengths for size in (length, length + -length % 8)]
                    sizes = [{"B": batch, "L": length} for length in both]
                    times = workloads.predicted_us(text, sizes, device)
                    cells = [
                        f"{length}: {odd:,.1f} ({odd / even:.2f})"
                        for length, odd, even in zip(lengths, times[::2], times[1::2])
                    ]
                    rows.append([f"{form}, B = {batch}", dtype, device, ", ".join(cells)])
    except ftuner.Error as error:
        sys.exit(f"error: {error}")
    tables.publish(rows, HOW, options.write)


if __name__ == "__main__":
    main()
