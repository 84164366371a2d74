#!/usr/bin/env python3
"""BERT by torch.compile(backend="ftuner"): many lengths of sequences, one compilation.

Random weights, so nothing is downloaded. Tensors on the CPU run in the emulator,
which needs no GPU but takes its time: the default is a small model.
"""

import argparse
import copy

import transformers

import ftuner.torch
import torch


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cpu", help="cpu (emulator) or cuda")
    parser.add_argument("--layers", type=int, default=2)
    parser.add_argument("--hidden", type=int, default=64, help="64 for each head")
    parser.add_argument("--batch", type=int, default=2)
    parser.add_argument("--lengths", type=int, nargs="+", default=[53, 7, 20, 31, 64])
    args = parser.parse_args()

    config = transformers.BertConfig(
        hidden_size=args.hidden,
        num_attention_heads=max(args.hidden // 64, 1),
        intermediate_size=4 * args.hidden,
        num_hidden_layers=args.layers,
        vocab_size=1000,
        attn_implementation="eager",
    )
    model = transformers.BertModel(config, add_pooling_layer=False).eval().to(args.device)
    exact = copy.deepcopy(model).double()
    # All products, also where PyTorch's own kernels are predicted to be faster.
    options = {"max_kernels": 4, "take": "all"}
    compiled = torch.compile(model, backend="ftuner", dynamic=True, options=options)

    torch._dynamo.config.error_on_recompile = True
    with torch.no_grad():
        for length in args.lengths:
            tokens = torch.randint(0, 1000, (args.batch, length), device=args.device)
            # Sizes that change, and the range in which kernels shall be fast.
            torch._dynamo.mark_dynamic(tokens, 0, min=2, max=16)
            torch._dynamo.mark_dynamic(tokens, 1, min=2, max=128)
            result = compiled(tokens).last_hidden_state
            expected = exact(tokens).last_hidden_state
            error = float((result - expected).norm() / expected.norm())
            print(f"{args.batch} x {length} tokens: relative error {error:.1e}")
            assert error < 2e-6
    print(ftuner.torch.report())


if __name__ == "__main__":
    main()
