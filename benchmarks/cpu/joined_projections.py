#!/usr/bin/env python3
"""Predicted times of products that share an input, one by one and as one product of joined weights.

Queries, keys and values, keys and values of cross attention, and gate and up of an MLP with the activation and the product of
both: in the epilogue of a product where they are apart, a kernel of its own where they are joined. The rows are 1 to 16384,
from one plan. Nothing is compiled or run.
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

ROWS = (1, 8, 64, 512, 4096, 16384)
HOW = ": predicted µs apart → joined (joined over apart), nothing was measured"
#: Title, type, columns of the input and of each product, whether there is a bias, whether it is a gate.
CASES = (
    ("queries, keys and values of BERT-base", "float16", 768, (768, 768, 768), True, False),
    ("of BERT-large", "float16", 1024, (1024, 1024, 1024), True, False),
    ("of Llama-3-8B", "bfloat16", 4096, (4096, 1024, 1024), False, False),
    ("keys and values of T5-base", "bfloat16", 768, (768, 768), False, False),
    ("gate and up of Llama-3-8B", "bfloat16", 4096, (14336, 14336), False, True),
    ("of Llama-2-7B", "bfloat16", 4096, (11008, 11008), False, True),
)


def make(columns, widths, has_bias, is_gate, is_joined):
    import torch
    from torch import nn

    class Products(nn.Module):
        def __init__(self):
            super().__init__()
            parts = [sum(widths)] if is_joined else widths
            self.parts = nn.ModuleList(nn.Linear(columns, part, bias=has_bias) for part in parts)

        def forward(self, x):
            results = [part(x) for part in self.parts]
            if not is_gate:
                return results
            gate, up = results[0].split(widths, -1) if is_joined else results
            return torch.nn.functional.silu(gate) * up

    return Products()


def predict(case, device, is_joined):
    """Predicted microseconds of all launches, for each number of rows."""
    from torch.export import Dim

    import ftuner.torch
    import torch

    _, dtype, columns, *rest = case
    model = make(columns, *rest, is_joined).to(getattr(torch, dtype))
    x = torch.zeros(5, columns, dtype=getattr(torch, dtype))
    exported = ftuner.torch.export(
        model, (x,), dynamic_shapes=({0: Dim("M", max=max(ROWS))},), projections="separate"
    )
    return workloads.predicted_us(exported.text, [{"M": rows} for rows in ROWS], device)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--devices", nargs="+", default=["a100", "h100"])
    parser.add_argument("--write", type=pathlib.Path, metavar="FILE")
    options = parser.parse_args()
    os.environ.setdefault("FTUNER_HOME", str(pathlib.Path(workloads.BIN).parent))
    warnings.simplefilter("ignore")  # Warnings of torch.export about versions to come.

    import ftuner

    rows = [["products", "device", *(f"M = {rows:,}" for rows in ROWS)]]
    try:
        for device in options.devices:
            for case in CASES:
                pairs = zip(predict(case, device, False), predict(case, device, True))
                cells = [f"{apart:,.1f} → {one:,.1f} ({one / apart:.2f})" for apart, one in pairs]
                rows.append([case[0], device, *cells])
    except ftuner.Error as error:
        sys.exit(f"error: {error}")
    tables.publish(rows, HOW, options.write)


if __name__ == "__main__":
    main()
