#!/usr/bin/env python3
"""GPT-2 by torch.compile(backend="ftuner"): greedy decoding, one compilation.

Each step computes the whole prefix again, one token longer than before. Random
weights, so nothing is downloaded. Tensors on the CPU run in the emulator, which
needs no GPU but takes its time: the default is a small model.
"""

import argparse

import transformers

import ftuner.torch
import torch


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cpu", help="cpu (emulator) or cuda")
    parser.add_argument("--layers", type=int, default=2)
    parser.add_argument("--hidden", type=int, default=64, help="64 for each head")
    parser.add_argument("--batch", type=int, default=2)
    parser.add_argument("--tokens", type=int, default=12, help="tokens to generate")
    args = parser.parse_args()

    config = transformers.GPT2Config(
        n_embd=args.hidden,
        n_head=max(args.hidden // 64, 1),
        n_layer=args.layers,
        vocab_size=1000,
        bos_token_id=0,
        eos_token_id=0,
        use_cache=False,
        attn_implementation="eager",
    )
    model = transformers.GPT2LMHeadModel(config).eval().to(args.device)
    # All products, also where PyTorch's own kernels are predicted to be faster.
    options = {"max_kernels": 4, "take": "all"}
    compiled = torch.compile(model, backend="ftuner", dynamic=True, options=options)

    torch._dynamo.config.error_on_recompile = True
    tokens = torch.randint(0, 1000, (args.batch, 4), device=args.device)
    # Sizes that change, and the range in which kernels shall be fast.
    torch._dynamo.mark_dynamic(tokens, 1, min=2, max=128)
    with torch.no_grad():
        for _ in range(args.tokens):
            logits = compiled(tokens).logits
            expected = model(tokens).logits
            assert (logits - expected).norm() < 1e-5 * expected.norm()
            tokens = torch.cat([tokens, logits[:, -1].argmax(-1, keepdim=True)], dim=1)
    print(f"{args.tokens} tokens for each of {args.batch} sequences, as eager PyTorch has them")
    print(ftuner.torch.report())


if __name__ == "__main__":
    main()
