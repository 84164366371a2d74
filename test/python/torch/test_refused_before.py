"""Valid models that a verifier once stopped: attention with an unknown number of channels, negative pads."""

from __future__ import annotations

import torch.nn.functional as F

import ftuner.torch
import torch


class Attention(torch.nn.Module):
    def forward(self, q: torch.Tensor, k: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return (
            F.scaled_dot_product_attention(q, k, k, is_causal=True),
            F.pad(q, (-1, 2)),
            F.pad(k, (0, 0, 1, -2)),
        )


def test_unknown_channels_and_negative_pads() -> None:
    batch, length, channels = (torch.export.Dim(name, min=3, max=64) for name in ("B", "T", "C"))
    shapes = {0: batch, 1: length, 2: channels}
    model = Attention()
    example = (torch.randn(3, 5, 8), torch.randn(3, 5, 8))
    run = ftuner.torch.export(model, example, dynamic_shapes=(shapes, shapes)).compile(
        emulate=True, cache=False, max_kernels=1
    )
    for sizes in ((3, 3, 3), (4, 7, 16), (3, 4, 5)):
        q, k = torch.randn(sizes), torch.randn(sizes)
        wanted = model(q.double(), k.double())
        for got, want in zip(run(q, k), wanted):
            assert got.shape == want.shape
            torch.testing.assert_close(got.double(), want, rtol=1e-4, atol=1e-5)
