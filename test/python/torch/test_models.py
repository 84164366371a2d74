"""Models of transformers with random weights, many lengths through one compilation."""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from torch._dynamo.utils import counters

import ftuner.torch as ft
import torch
from checks import check_model, compile_model, relative_error
from scale import SCALE

transformers = pytest.importorskip("transformers")

#: Lengths of sequences.
LENGTHS = [2, 3, 5, 7, 8, 11, 13, 16, 17, 21, 23, 29, 31, 32, 37, 41, 47, 53, 61, 64]
if SCALE == 1:
    LENGTHS = LENGTHS[::3]


def bert_layer(implementation: str) -> torch.nn.Module:
    config = transformers.BertConfig(
        hidden_size=64,
        num_attention_heads=4,
        intermediate_size=128,
        num_hidden_layers=1,
        attn_implementation=implementation,
    )
    return transformers.models.bert.modeling_bert.BertLayer(config).eval()


class Layer(torch.nn.Module):
    """Only a layer's hidden states, with a mask that is added to the scores."""

    def __init__(self, layer: torch.nn.Module) -> None:
        super().__init__()
        self.layer = layer

    def forward(self, x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        result = self.layer(x, attention_mask=mask)
        return result[0] if isinstance(result, tuple) else result


def layer_inputs(batch: int, length: int) -> tuple[torch.Tensor, torch.Tensor]:
    x = torch.randn(batch, length, 64)
    mask = torch.zeros(batch, 1, length, length)
    mask[0, :, :, length // 2 + 1 :] = torch.finfo(torch.float32).min
    for tensor, dims in ((x, (1,)), (mask, (2, 3))):
        torch._dynamo.mark_dynamic(tensor, 0, min=2, max=16)
        for dim in dims:
            torch._dynamo.mark_dynamic(tensor, dim, min=2, max=128)
    return x, mask


@pytest.mark.parametrize(
    ("implementation", "attention", "taken"),
    # Attention that is one operator: test_attention_of_pytorch; taken apart: below.
    [("eager", "sdpa", 8), ("sdpa", "sdpa", 6), ("sdpa", "math", 8)][: None if SCALE > 1 else 1],
)
def test_bert_layer(implementation: str, attention: str, taken: int) -> None:
    """One compilation for all lengths: 6 linear layers and 2 products of attention."""
    counters.clear()
    report = check_model(
        Layer(bert_layer(implementation)),
        [layer_inputs(2, length) for length in LENGTHS],
        attention=attention,
    )
    assert counters["stats"]["unique_graphs"] == 1
    assert sum(counters["recompile_limit"].values()) == 0
    assert report.graphs == 1
    assert report.taken == taken
    assert report.products == (8 if taken == 8 else 7)
    assert [left.operator for left in report.left] == (
        [] if taken == 8 else ["_scaled_dot_product_flash_attention_for_cpu.default"]
    )
    assert report.calls == taken * len(LENGTHS)
    assert report.copies == report.copied_arguments == 0


def test_gpt2_block() -> None:
    """Two blocks of GPT-2 with their embeddings: one compilation of each function."""
    config = transformers.GPT2Config(
        n_embd=64,
        n_head=4,
        n_layer=2,
        vocab_size=100,
        bos_token_id=0,
        eos_token_id=0,
        use_cache=False,
        attn_implementation="eager",
    )
    model = transformers.GPT2Model(config).eval()

    class Hidden(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.model = model

        def forward(self, tokens: torch.Tensor) -> torch.Tensor:
            return self.model(tokens).last_hidden_state

    tokens = [torch.randint(0, 100, (3, length)) for length in (9, 2, 5, 16, 33, 64)]
    for item in tokens:
        torch._dynamo.mark_dynamic(item, 0, min=2, max=16)
        torch._dynamo.mark_dynamic(item, 1, min=2, max=128)
    report = check_model(Hidden(), [(item,) for item in tokens])
    # qkv, two of attention, projection, up, down; twice.
    assert report.taken == report.products == 12
    assert max(Counter(report.functions).values()) == 4
    assert report.copies == 0
    # The tanh form of GELU, written out by the model, is in the function of "up".
    assert any("tanh" in name for name in report.functions)


def bert() -> torch.nn.Module:
    config = transformers.BertConfig(
        hidden_size=64,
        num_attention_heads=4,
        intermediate_size=128,
        num_hidden_layers=1,
        vocab_size=100,
        attn_implementation="eager",
    )
    return transformers.BertModel(config)


def llama() -> torch.nn.Module:
    config = transformers.LlamaConfig(
        hidden_size=64,
        num_attention_heads=4,
        num_key_value_heads=2,
        intermediate_size=128,
        num_hidden_layers=1,
        vocab_size=100,
        use_cache=False,
        attn_implementation="eager",
    )
    return transformers.LlamaModel(config)


def gpt2() -> torch.nn.Module:
    config = transformers.GPT2Config(
        n_embd=64,
        n_head=4,
        n_layer=1,
        vocab_size=100,
        bos_token_id=0,
        eos_token_id=0,
        use_cache=False,
        attn_implementation="eager",
    )
    return transformers.GPT2Model(config)


class Hidden(torch.nn.Module):
    """A model's last hidden states, and what BERT makes of the first token."""

    def __init__(self, model: torch.nn.Module, autocast: bool) -> None:
        super().__init__()
        self.model, self.autocast = model, autocast

    def forward(self, tokens: torch.Tensor) -> list[torch.Tensor]:
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=self.autocast):
            result = self.model(tokens)
        pooled = getattr(result, "pooler_output", None)
        return [result.last_hidden_state] + ([] if pooled is None else [pooled])


#: BERT's pooler is a product, too, with one row.
HALVES = [(bert, 9), (llama, 9), (gpt2, 6)]
HALF_CASES = [(llama, 9, False), (gpt2, 6, True)]
if SCALE > 1:
    HALF_CASES = [(*model, autocast) for model in HALVES for autocast in (False, True)]


@pytest.mark.parametrize(("build", "products", "autocast"), HALF_CASES)
def test_half_precision(
    build: Callable[[], torch.nn.Module], products: int, autocast: bool
) -> None:
    """Every product is taken, one compilation serves all lengths, and results are as eager's."""
    counters.clear()
    model = build().eval()
    if not autocast:
        model = model.to(torch.bfloat16)
    # From the weights that the model has, in bf16 or in f32.
    exact = Hidden(copy.deepcopy(model).double(), False)
    report = check_model(
        Hidden(model, autocast),
        [(torch.randint(0, 100, (1, length)),) for length in LENGTHS],
        exact=exact,
        factor=1.5,
        floor=0,
    )
    assert [left.reason for left in report.left] == []
    assert report.taken == report.products == products
    assert counters["stats"]["unique_graphs"] == report.graphs == 1
    assert report.calls == products * len(LENGTHS)


def test_attention_of_pytorch_modules() -> None:
    module = torch.nn.TransformerEncoderLayer(32, 4, 64, dropout=0.0, batch_first=True)
    report = check_model(
        module.train(), [(torch.randn(2, length, 32),) for length in (6, 13)], attention="math"
    )
    assert report.taken == 6


@pytest.mark.everything  # Beside it: test_decoding.py, with caches.
def test_generation_reuses_one_graph() -> None:
    """Greedy decoding by whole prefixes, one token longer each time."""
    config = transformers.GPT2Config(
        n_embd=32,
        n_head=2,
        n_layer=1,
        vocab_size=50,
        bos_token_id=0,
        eos_token_id=0,
        use_cache=False,
    )
    model: Any = transformers.GPT2LMHeadModel(config).eval()
    compiled = compile_model(lambda tokens: model(tokens).logits)
    tokens = other = torch.randint(0, 50, (2, 4))
    torch._dynamo.mark_dynamic(tokens, 1, min=2, max=64)
    with torch.no_grad(), torch._dynamo.config.patch(error_on_recompile=True):
        for _ in range(6):
            logits, expected = compiled(tokens), model(other).logits
            assert relative_error(logits, expected) < 1e-5
            tokens = torch.cat([tokens, logits[:, -1].argmax(-1, keepdim=True)], 1)
            other = torch.cat([other, expected[:, -1].argmax(-1, keepdim=True)], 1)
    assert torch.equal(tokens, other)
    assert ft.report().graphs == 1
