"""Models as people write them in PyTorch, small or of a real width."""

from __future__ import annotations

import math
from typing import Any

from torch.export import Dim

import torch
from torch import Tensor, nn


class Bert(nn.Module):
    """An encoder layer with its norms behind, attention in products and softmax."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.query, self.key, self.value, self.out = (nn.Linear(width, width) for _ in range(4))
        self.norm, self.last = nn.LayerNorm(width), nn.LayerNorm(width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: Tensor) -> Tensor:
        b, t, width = x.shape
        q, k, v = (
            f(x).view(b, t, self.heads, -1).transpose(1, 2)
            for f in (self.query, self.key, self.value)
        )
        scores = q @ k.mT / math.sqrt(width // self.heads)
        y = (torch.softmax(scores, -1) @ v).transpose(1, 2).reshape(b, t, width)
        x = self.norm(x + self.out(y))
        return self.last(x + self.down(nn.functional.gelu(self.up(x))))


class Gpt2(nn.Module):
    """A decoder block with one projection for query, key and value, and a causal mask."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm, self.last = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: Tensor) -> Tensor:
        b, t, width = x.shape
        parts = self.qkv(self.norm(x)).view(b, t, 3, self.heads, width // self.heads)
        q, k, v = parts.permute(2, 0, 3, 1, 4)
        place = torch.arange(t)
        scores = q @ k.mT / math.sqrt(width // self.heads)
        scores = torch.where(place[:, None] >= place, scores, torch.finfo(x.dtype).min)
        y = (torch.softmax(scores, -1) @ v).transpose(1, 2).reshape(b, t, width)
        x = x + self.out(y)
        return x + self.down(nn.functional.gelu(self.up(self.last(x)), approximate="tanh"))


class Llama(nn.Module):
    """A decoder block with rotated positions, shared keys and a gated network."""

    def __init__(self, width: int, heads: int, groups: int = 2) -> None:
        super().__init__()
        self.heads, self.shared, self.size = heads, heads // groups, width // heads
        self.norm, self.last = nn.RMSNorm(width), nn.RMSNorm(width)
        self.query = nn.Linear(width, width, bias=False)
        self.key, self.value = (
            nn.Linear(width, self.shared * self.size, bias=False) for _ in range(2)
        )
        self.out = nn.Linear(width, width, bias=False)
        inner = width * 8 // 3 // 32 * 32
        self.gate, self.up = (nn.Linear(width, inner, bias=False) for _ in range(2))
        self.down = nn.Linear(inner, width, bias=False)

    def _rotate(self, x: Tensor) -> Tensor:
        half = self.size // 2
        angle = torch.arange(x.shape[2])[:, None] / 10000 ** (torch.arange(half) / half)
        cos, sin = angle.cos().to(x.dtype), angle.sin().to(x.dtype)
        a, b = x[..., :half], x[..., half:]
        return torch.cat((a * cos - b * sin, b * cos + a * sin), -1)

    def forward(self, x: Tensor) -> Tensor:
        b, t, width = x.shape
        y = self.norm(x)
        q = self.query(y).view(b, t, self.heads, self.size).transpose(1, 2)
        k, v = (
            f(y).view(b, t, self.shared, self.size).transpose(1, 2) for f in (self.key, self.value)
        )
        y = nn.functional.scaled_dot_product_attention(
            self._rotate(q),
            self._rotate(k).repeat_interleave(self.heads // self.shared, 1),
            v.repeat_interleave(self.heads // self.shared, 1),
            is_causal=True,
        )
        x = x + self.out(y.transpose(1, 2).reshape(b, t, width))
        y = self.last(x)
        return x + self.down(nn.functional.silu(self.gate(y)) * self.up(y))


def mlp(width: int) -> nn.Module:
    return nn.Sequential(nn.Linear(width, 3 * width), nn.GELU(), nn.Linear(3 * width, width))


BATCH, LENGTH = Dim("B", min=1, max=16), Dim("T", min=2, max=128)


def export(model: nn.Module, width: int, dtype: torch.dtype = torch.float32) -> Any:
    """The program of a model of sequences, with any batch of the range and any length."""
    model = model.eval().to(dtype)
    x = torch.randn(2, 16, width, dtype=dtype)
    return torch.export.export(model, (x,), dynamic_shapes=({0: BATCH, 1: LENGTH},))
