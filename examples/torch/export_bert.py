#!/usr/bin/env python3
"""Packages a layer of BERT with FTuner's functions, for main.cpp and for Python.

Writes bert.pt2 and samples.bin, inputs of several lengths with the results of PyTorch in float64.
Random weights, so nothing is downloaded.
"""

import argparse
import copy
from pathlib import Path

import numpy as np
import transformers
from transformers.models.bert.modeling_bert import BertLayer

import ftuner.torch
import torch
from torch import Tensor


def make_layer(hidden: int, dtype: torch.dtype) -> torch.nn.Module:
    config = transformers.BertConfig(
        hidden_size=hidden,
        num_attention_heads=max(hidden // 64, 2),
        intermediate_size=4 * hidden,
        attn_implementation="eager",
    )
    return BertLayer(config).eval().to(dtype)


def package(layer: torch.nn.Module, path: Path, hidden: int, **options: object) -> None:
    """One package for all batches and lengths."""
    dtype = next(layer.parameters()).dtype
    example = torch.randn(2, 12, hidden, dtype=dtype)
    batch, length = torch.export.Dim("B", min=1, max=16), torch.export.Dim("T", min=1, max=128)
    with torch.no_grad():
        program = torch.export.export(
            layer, (example,), dynamic_shapes={"hidden_states": {0: batch, 1: length}}
        )
    # Attention as products, too, instead of PyTorch's own kernel for it, and all products, also where
    # PyTorch's own kernels are predicted to be faster.
    ftuner.torch.aoti_compile_and_package(
        program, package_path=str(path), attention="math", take="all", **options
    )


def norm_of_error(result: Tensor, exact: Tensor) -> float:
    return float((result.double() - exact).norm() / exact.norm())


def write_samples(layer: torch.nn.Module, path: Path, hidden: int, lengths: list[int]) -> None:
    """Each sample: batch, length, channels, eager PyTorch's error, inputs (f32), results (f64)."""
    dtype = next(layer.parameters()).dtype
    exact = copy.deepcopy(layer).double()
    with open(path, "wb") as file, torch.no_grad():
        np.array([len(lengths), dtype == torch.bfloat16], np.int64).tofile(file)
        for length in lengths:
            x = torch.randn(2, length, hidden, dtype=dtype)
            results = exact(x.double())
            np.array(x.shape, np.int64).tofile(file)
            np.array([norm_of_error(layer(x), results)]).tofile(file)
            x.float().numpy().tofile(file)
            results.numpy().tofile(file)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, nargs="?", default=Path("."))
    parser.add_argument("--hidden", type=int, default=64, help="channels")
    parser.add_argument("--bf16", action="store_true", help="instead of float32")
    parser.add_argument("--lengths", type=int, nargs="+", default=[53, 7, 20, 31, 128])
    parser.add_argument("--max-kernels", type=int, default=4, help="for each product")
    args = parser.parse_args()

    layer = make_layer(args.hidden, torch.bfloat16 if args.bf16 else torch.float32)
    args.folder.mkdir(parents=True, exist_ok=True)
    package(layer, args.folder / "bert.pt2", args.hidden, max_kernels=args.max_kernels)
    write_samples(layer, args.folder / "samples.bin", args.hidden, args.lengths)
    print(str(ftuner.torch.report()).splitlines()[0])


if __name__ == "__main__":
    main()
