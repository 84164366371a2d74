"""Models of transformers in their published widths, with random weights: what the benchmarks of whole models compile.

Nothing is downloaded. Weights are arguments of what is exported.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch


class Output(torch.nn.Module):
    """One tensor of a model that returns a dataclass, for given names of its arguments."""

    def __init__(self, model, names, output, **fixed):
        super().__init__()
        self.model, self.names, self.output, self.fixed = model, names, output, fixed

    def forward(self, *arguments):
        return getattr(self.model(**dict(zip(self.names, arguments)), **self.fixed), self.output)


@dataclass(frozen=True)
class Built:
    """A module and how to call it.

    inputs: tensors for a batch and a length. axes: of each of them, the dimensions that are the length; none where the
    model has one length. layers: how many it has.
    """

    module: torch.nn.Module
    inputs: Callable[[int, int], tuple[torch.Tensor, ...]]
    axes: tuple[tuple[int, ...], ...]
    layers: int

    @property
    def has_length(self) -> bool:
        return any(self.axes)


def _of_tokens(module, vocabulary, layers):
    def inputs(batch, length):
        return (torch.randint(0, vocabulary, (batch, length)),)

    return Built(module, inputs, ((1,),), layers)


def _bert_config(layers, small, width=768, heads=12):
    from transformers import BertConfig

    width, heads = (width // 16, heads // 4) if small else (width, heads)
    return BertConfig(
        hidden_size=width,
        num_attention_heads=heads,
        intermediate_size=4 * width,
        num_hidden_layers=layers,
        **({"vocab_size": 100} if small else {}),
    )


def _bert(layers, small, is_layer, **sizes):
    from transformers import BertModel

    config = _bert_config(layers, small, **sizes)
    module = Output(BertModel(config, add_pooling_layer=False), ("input_ids",), "last_hidden_state")
    return _of_tokens(module, config.vocab_size, layers)


def _bert_large(layers, small, is_layer):
    return _bert(layers, small, is_layer, width=1024, heads=16)


def _bert_small(layers, small, is_layer, width=512, heads=8):
    return _bert(layers, small, is_layer, width=width, heads=heads)


def _bert_encoder(layers, small, is_layer):
    """Only the layers, with a mask of each query and key that is added to the scores."""
    from transformers.models.bert.modeling_bert import BertEncoder

    config = _bert_config(layers, small)
    config._attn_implementation = "sdpa"
    module = Output(BertEncoder(config), ("hidden_states", "attention_mask"), "last_hidden_state")

    def inputs(batch, length):
        return torch.randn(batch, length, config.hidden_size), torch.zeros(batch, 1, length, length)

    return Built(module, inputs, ((1,), (2, 3)), layers)


def _gpt2(layers, small, is_layer):
    from transformers import GPT2Config, GPT2LMHeadModel, GPT2Model

    sizes = {"n_embd": 64, "n_head": 4, "vocab_size": 100} if small else {}
    config = GPT2Config(**sizes, n_layer=layers, bos_token_id=0, eos_token_id=0)
    model = (GPT2Model if is_layer else GPT2LMHeadModel)(config)
    output = "last_hidden_state" if is_layer else "logits"
    return _of_tokens(
        Output(model, ("input_ids",), output, use_cache=False), config.vocab_size, layers
    )


def _llama(layers, small, is_layer):
    """Blocks of Llama-3-8B, behind the embeddings."""
    from transformers import LlamaConfig, LlamaModel

    sizes = (
        {
            "hidden_size": 64,
            "intermediate_size": 128,
            "num_attention_heads": 4,
            "num_key_value_heads": 2,
        }
        if small
        else {
            "hidden_size": 4096,
            "intermediate_size": 14336,
            "num_attention_heads": 32,
            "num_key_value_heads": 8,
        }
    )
    config = LlamaConfig(**sizes, num_hidden_layers=layers, vocab_size=100, rope_theta=500000.0)
    module = Output(LlamaModel(config), ("inputs_embeds",), "last_hidden_state", use_cache=False)

    def inputs(batch, length):
        return (torch.randn(batch, length, config.hidden_size),)

    return Built(module, inputs, ((1,),), layers)


def _t5(layers, small, is_layer):
    """The encoder of T5-base."""
    from transformers import T5Config, T5EncoderModel

    sizes = (
        {"d_model": 64, "d_kv": 16, "d_ff": 128, "num_heads": 4, "vocab_size": 100}
        if small
        else {"d_model": 768, "d_kv": 64, "d_ff": 3072, "num_heads": 12}
    )
    config = T5Config(**sizes, num_layers=layers)
    return _of_tokens(
        Output(T5EncoderModel(config), ("input_ids",), "last_hidden_state"),
        config.vocab_size,
        layers,
    )


def _vit(layers, small, is_layer):
    """ViT-B/16, images of 224 x 224: 197 tokens."""
    from transformers import ViTConfig, ViTModel

    sizes = (
        {"hidden_size": 64, "num_attention_heads": 4, "intermediate_size": 128, "image_size": 32}
        if small
        else {}
    )
    config = ViTConfig(**sizes, num_hidden_layers=layers)
    module = Output(
        ViTModel(config, add_pooling_layer=False), ("pixel_values",), "last_hidden_state"
    )

    def inputs(batch, length):
        return (torch.randn(batch, 3, config.image_size, config.image_size),)

    return Built(module, inputs, ((),), layers)


def _whisper(layers, small, is_layer):
    """The encoder of Whisper small, 30 s: 1500 tokens."""
    from transformers import WhisperConfig
    from transformers.models.whisper.modeling_whisper import WhisperEncoder

    width, heads, bins, tokens = (64, 4, 16, 20) if small else (768, 12, 80, 1500)
    config = WhisperConfig(
        d_model=width,
        encoder_layers=layers,
        encoder_attention_heads=heads,
        encoder_ffn_dim=4 * width,
        num_mel_bins=bins,
        max_source_positions=tokens,
    )
    module = Output(WhisperEncoder(config), ("input_features",), "last_hidden_state")

    def inputs(batch, length):
        return (torch.randn(batch, bins, 2 * tokens),)

    return Built(module, inputs, ((),), layers)


@dataclass(frozen=True)
class Model:
    """A model: its title, and how many layers it is built with."""

    title: str
    layers: int
    make: Callable[..., Built]


MODELS = {
    "bert_base": Model("BERT-base", 12, _bert),
    "bert_large": Model("BERT-large", 24, _bert_large),
    "bert_small": Model("BERT-small", 4, _bert_small),
    "bert_encoder": Model("encoder of BERT-base, with a mask", 12, _bert_encoder),
    "gpt2": Model("GPT-2", 12, _gpt2),
    # Layers out of 32: each further one needs a GB for its weights.
    "llama": Model("5 blocks of Llama-3-8B", 5, _llama),
    "t5": Model("encoder of T5-base", 12, _t5),
    "vit": Model("ViT-B/16", 12, _vit),
    "whisper": Model("encoder of Whisper small", 12, _whisper),
}


def build(
    name: str, layers: int | None = None, small: bool = False, is_layer: bool = False, **config: Any
) -> Built:
    """A model with random weights in f32, of so many layers, or one layer of it behind its embeddings.

    small: with 48 or 64 channels. config: of a model that takes it, `width` and `heads` of bert_small.
    """
    torch.manual_seed(0)
    model = MODELS[name]
    built = model.make(1 if is_layer else layers or model.layers, small, is_layer, **config)
    built.module.eval().requires_grad_(False)
    return built


def export(built: Built, batch: int, longest: int, dtype: Any = torch.float32) -> Any:
    """The model as MLIR: at a fixed batch, with a length T of 1 to `longest`. The module becomes one of `dtype`."""
    from torch.export import Dim

    import ftuner.torch

    built.module.to(dtype)
    length = Dim("T", min=1, max=longest)
    # Another length than other sizes have, so that PyTorch tells it from them.
    inputs = [
        tensor.to(dtype) if tensor.is_floating_point() else tensor
        for tensor in built.inputs(batch, 11)
    ]
    shapes = tuple({axis: length for axis in axes} for axes in built.axes)
    return ftuner.torch.export(built.module, tuple(inputs), dynamic_shapes=shapes)
