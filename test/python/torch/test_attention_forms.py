"""Attention in the forms that models write, exported: its operands are read where they lie.

Random heads, groups, layouts, masks, rotary embeddings, caches and dynamic dimensions. The kernels are two products and a
softmax; results are compared with PyTorch in f64, at lengths of 0, 1 and 2, odd ones, and beyond the range.
"""

from __future__ import annotations

import math
import random
from dataclasses import dataclass
from typing import Any

import pytest
from torch.export import Dim
from torch.nn.functional import scaled_dot_product_attention

import ftuner.torch as ft
import torch
from checks import relative_error
from scale import SCALE
from torch import Tensor, nn

BATCH, QUERIES, KEYS, CACHED = (
    Dim(name, max=size) for name, size in (("B", 8), ("T", 64), ("L", 64), ("P", 64))
)
#: Heads of keys, and heads of queries that share one.
HEADS = ((1, 1), (2, 1), (1, 8), (2, 4), (2, 7))
NUM_FORMS = 6 if SCALE == 1 else 40


@dataclass(frozen=True)
class Form:
    """One way to write attention.

    layout: of queries, keys and values; "merged" is one tensor of all three. queries: their number: "1", "T", or "L" for
    as many as keys. cache: where keys of earlier steps stand beside the new ones, if there are any.
    """

    groups: int
    shared: int
    width: int
    layout: str
    queries: str
    style: str
    mask: str
    scales_both: bool
    cache: str
    result: str
    rotary: str

    @property
    def heads(self) -> int:
        return self.groups * self.shared

    @staticmethod
    def draw(rng: random.Random) -> Form:
        groups, shared = rng.choice(HEADS)
        layout = rng.choice(("BHTD", "BTHD", "merged"))
        cache = rng.choice(("", "", "", "before", "after")) if layout != "merged" else ""
        queries = "L" if layout == "merged" else rng.choice(("1", "T", "L"))
        masks = ["", *(() if cache else ("bool", "bias", "padding"))]
        masks += ["causal"] * 2 if queries == "L" and not cache else []
        style = rng.choice(("sdpa", "sdpa", "repeated", "eager"))
        return Form(
            groups, shared, rng.choice((8, 16, 24)), layout, queries, style, rng.choice(masks),
            style == "eager" and rng.random() < 0.5, cache, rng.choice(("BHTD", "BTHD", "joined")),
            rng.choice(("", "", "halves", "neighbors")),
        )  # fmt: skip


class Attention(nn.Module):
    """Attention as a form writes it: of queries, keys and values, then of cached keys and values, and a mask."""

    def __init__(self, form: Form) -> None:
        super().__init__()
        self.form = form

    def repeat(self, x: Tensor) -> Tensor:
        batch, groups, length, width = x.shape
        repeated = x[:, :, None].expand(batch, groups, self.form.shared, length, width)
        return repeated.reshape(batch, groups * self.form.shared, length, width)

    def turn(self, x: Tensor, angles: Tensor) -> Tensor:
        half = self.form.width // 2
        if self.form.rotary == "halves":
            turned = torch.cat((-x[..., half:], x[..., :half]), -1)
        else:
            turned = torch.stack((-x[..., 1::2], x[..., ::2]), -1).flatten(-2)
        return x * angles.cos() + turned * angles.sin()

    def weights(self, q: Tensor, k: Tensor, mask: Tensor | None) -> Tensor:
        scale = 1 / math.sqrt(self.form.width)
        if self.form.scales_both:
            scores = (q * math.sqrt(scale)) @ (k * math.sqrt(scale)).transpose(2, 3)
        else:
            scores = q @ k.transpose(2, 3) * scale
        if self.form.mask == "causal":
            size = scores.shape[2]
            scores = scores + torch.full((size, size), -math.inf, dtype=scores.dtype).triu(1)
        elif mask is not None and mask.dtype == torch.bool:
            scores = scores.masked_fill(~mask, -math.inf)
        elif mask is not None:
            scores = scores + mask
        return torch.softmax(scores, -1)

    def forward(self, *tensors: Tensor) -> Tensor:
        form, given = self.form, list(tensors)
        if form.layout == "merged":
            sizes = [n * form.width for n in (form.heads, form.groups, form.groups)]
            parts = given.pop(0).split(sizes, 2)
            q, k, v = (x.unflatten(2, (-1, form.width)).transpose(1, 2) for x in parts)
        else:
            q, k, v = (given.pop(0) for _ in range(3))
            if form.layout == "BTHD":
                q, k, v = (x.transpose(1, 2) for x in (q, k, v))
        if form.rotary:
            q, k = self.turn(q, given.pop(0)), self.turn(k, given.pop(0))
        if form.cache:
            cached = given.pop(0), given.pop(0)
            pairs = ((p, x) if form.cache == "before" else (x, p) for p, x in zip(cached, (k, v)))
            k, v = (torch.cat(pair, 2) for pair in pairs)
        mask = given.pop(0) if given else None
        causal = form.mask == "causal"
        if form.style == "sdpa":
            y = scaled_dot_product_attention(q, k, v, mask, 0.0, causal, enable_gqa=True)
        elif form.style == "repeated":
            keys, values = self.repeat(k), self.repeat(v)
            y = scaled_dot_product_attention(q, keys, values, mask, 0.0, causal)
        else:
            y = self.weights(q, self.repeat(k), mask) @ self.repeat(v)
        if form.result != "BHTD":
            y = y.transpose(1, 2)
        return y.flatten(2) if form.result == "joined" else y


def arguments(form: Form, sizes: dict[str, int]) -> tuple[list[Tensor], list[dict[int, Any]]]:
    """Tensors for the sizes, and their dynamic dimensions."""
    batch, keys, cached = (sizes[name] for name in "BLP")
    queries = {"1": 1, "T": sizes["T"], "L": keys}[form.queries]
    of_queries = {"1": {}, "T": {"T": QUERIES}, "L": {"L": KEYS}}[form.queries]
    tensors: list[Tensor] = []
    dims: list[dict[int, Any]] = []

    def add(tensor: Tensor, *dynamic: Any) -> None:
        tensors.append(tensor)
        dims.append({i: dim for i, dim in enumerate(dynamic) if dim is not None})

    query_dim = next(iter(of_queries.values()), None)
    if form.layout == "merged":
        add(torch.randn(batch, keys, (form.heads + 2 * form.groups) * form.width), BATCH, KEYS)
    else:
        for heads, length, dim in (
            (form.heads, queries, query_dim),
            (form.groups, keys, KEYS),
            (form.groups, keys, KEYS),
        ):
            if form.layout == "BHTD":
                add(torch.randn(batch, heads, length, form.width), BATCH, None, dim)
            else:
                add(torch.randn(batch, length, heads, form.width), BATCH, dim)
    if form.rotary:
        add(torch.randn(queries, form.width), query_dim)
        add(torch.randn(keys, form.width), KEYS)
    if form.cache:
        for _ in range(2):
            add(torch.randn(batch, form.groups, cached, form.width), BATCH, None, CACHED)
    if form.mask == "bool":
        # Some rows have no key.
        add(torch.rand(batch, 1, queries, keys) > 0.6, BATCH, None, query_dim, KEYS)
    elif form.mask == "padding":
        add(torch.rand(batch, 1, 1, keys) > 0.3, BATCH, None, None, KEYS)
    elif form.mask == "bias":
        add(torch.randn(1, form.heads, queries, keys), None, None, query_dim, KEYS)
    return tensors, dims


@pytest.mark.parametrize("number", range(NUM_FORMS))
def test_forms(number: int, rng: Any) -> None:
    seed = int(rng.integers(2**31)) + number
    form = Form.draw(random.Random(seed))
    torch.manual_seed(seed)
    print(form)
    model = Attention(form)
    example, dims = arguments(form, {"B": 3, "T": 5, "L": 9, "P": 6})
    shapes = {"tensors": tuple(dims)}
    run = ft.export(model, tuple(example), dynamic_shapes=shapes).compile(
        max_kernels=1, emulate=True, cost_model="sia"
    )
    check_kernels(form, run)
    for batch, queries, keys, cached in (
        (1, 1, 1, 1), (2, 2, 2, 3), (3, 7, 5, 0), (1, 0, 13, 2), (2, 3, 0, 5), (1, 71, 67, 66),
    ):  # fmt: skip
        sizes = {"B": batch, "T": queries, "L": keys, "P": cached}
        given, _ = arguments(form, sizes)
        wanted = model(*(x.double() if x.is_floating_point() else x for x in given))
        result = run(*given)
        empty = wanted.isnan()  # PyTorch's own rows without a key, written with a plain softmax.
        assert torch.equal(result.isnan(), empty), (form, sizes)
        if wanted.numel() and not empty.all():
            wanted, result = wanted.masked_fill(empty, 0), result.masked_fill(empty, 0)
            assert float(wanted.norm()) == 0 or relative_error(result, wanted) < 1e-5, (form, sizes)


def check_kernels(form: Form, run: Any) -> None:
    """Two products and a softmax; beside them only what computes elements, and a cache that is made of two parts."""
    kinds = [
        kernel["kind"]
        for part in ("workloads", "fallback_kernels")
        for kernel in run.report.data[part]
    ]
    others = [kind for kind in kinds if kind not in ("contraction", "reduction")]
    assert len(kinds) - len(others) == 3, form
    # Sines and cosines of two lists of angles, and queries and keys that are turned by them, or scaled.
    allowed = 6 if form.rotary else 2 * form.scales_both
    if form.cache:
        # Earlier keys and values are copied by one kernel, new ones by another; turned keys are written in place.
        allowed += 2
    assert len(others) <= allowed, form
