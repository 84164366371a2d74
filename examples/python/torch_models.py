#!/usr/bin/env python3
"""Twelve models as a whole, by ftuner.torch.export: one compilation, several sizes.

Small configurations with random weights, so nothing is downloaded. For each model: its
products, those that uKernels compute, its fallback kernels, and the error at each size against
float64, that of eager PyTorch in brackets.
"""

from __future__ import annotations

import argparse
import copy
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from torch.export import Dim

import ftuner.torch
import torch
from torch import Tensor, nn

BATCH = Dim("B", min=1, max=16)


@dataclass
class Case:
    """A model and how to call it.

    Attributes:
        model: in evaluation mode.
        inputs: arguments for sizes.
        shapes: the `dynamic_shapes` of `ftuner.torch.export`.
        products: of the model, for each of which there is a uKernel.
        sizes: to check; the model is exported with the first.
    """

    model: nn.Module
    inputs: Callable[..., tuple[Any, ...]]
    shapes: tuple[Any, ...]
    products: int
    sizes: list[tuple[int, ...]] = field(default_factory=lambda: [(2, 7), (1, 5), (3, 31)])


class Output(nn.Module):
    """One tensor of a model that returns a dataclass, for given names of its arguments."""

    def __init__(self, model: nn.Module, names: tuple[str, ...], output: str, **fixed: Any) -> None:
        super().__init__()
        self.model, self.names, self.output, self.fixed = model, names, output, fixed

    def forward(self, *arguments: Tensor) -> Tensor:
        given = dict(zip(self.names, arguments))
        return getattr(self.model(**given, **self.fixed), self.output)


def _tokens(batch: int, length: int) -> Tensor:
    return torch.randint(1, 100, (batch, length))


def _mask(batch: int, length: int) -> Tensor:
    """Each sequence of the batch is padded at its end."""
    lengths = torch.randint(1, length + 1, (batch, 1))
    return (torch.arange(length) < lengths).long()


LENGTH = Dim("T", min=2, max=64)
TEXT = {0: BATCH, 1: LENGTH}


def _bert() -> nn.Module:
    from transformers import BertConfig, BertModel

    config = BertConfig(
        hidden_size=32,
        num_hidden_layers=1,
        num_attention_heads=4,
        intermediate_size=64,
        vocab_size=100,
        max_position_embeddings=64,
    )
    return BertModel(config, add_pooling_layer=False)


def bert() -> Case:
    model = Output(_bert(), ("input_ids",), "last_hidden_state")
    return Case(model, lambda b, t: (_tokens(b, t),), (TEXT,), 6)


def bert_with_mask() -> Case:
    model = Output(_bert(), ("input_ids", "attention_mask"), "last_hidden_state")
    return Case(model, lambda b, t: (_tokens(b, t), _mask(b, t)), (TEXT, TEXT), 6)


def gpt2() -> Case:
    from transformers import GPT2Config, GPT2LMHeadModel

    config = GPT2Config(n_embd=32, n_layer=1, n_head=4, vocab_size=100, n_positions=64)
    model = Output(GPT2LMHeadModel(config), ("input_ids",), "logits", use_cache=False)
    return Case(model, lambda b, t: (_tokens(b, t),), (TEXT,), 7)


def llama() -> Case:
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(
        hidden_size=32,
        num_hidden_layers=1,
        num_attention_heads=4,
        num_key_value_heads=2,
        intermediate_size=64,
        vocab_size=100,
        max_position_embeddings=64,
    )
    model = Output(LlamaForCausalLM(config), ("input_ids",), "logits", use_cache=False)
    return Case(model, lambda b, t: (_tokens(b, t),), (TEXT,), 8)


def t5() -> Case:
    from transformers import T5Config, T5EncoderModel

    config = T5Config(
        d_model=32,
        d_kv=8,
        d_ff=64,
        num_layers=1,
        num_heads=4,
        vocab_size=100,
    )
    model = Output(T5EncoderModel(config), ("input_ids",), "last_hidden_state")
    return Case(model, lambda b, t: (_tokens(b, t),), (TEXT,), 6)


def whisper() -> Case:
    from transformers import WhisperConfig
    from transformers.models.whisper.modeling_whisper import WhisperEncoder

    config = WhisperConfig(
        d_model=32,
        encoder_layers=1,
        encoder_attention_heads=4,
        encoder_ffn_dim=64,
        num_mel_bins=16,
        max_source_positions=20,
    )
    model = Output(WhisperEncoder(config), ("input_features",), "last_hidden_state")
    # Whisper has one length.
    return Case(model, lambda b: (torch.randn(b, 16, 40),), ({0: BATCH},), 8, [(2,), (1,), (5,)])


def vit() -> Case:
    from transformers import ViTConfig, ViTModel

    config = ViTConfig(
        hidden_size=32,
        num_hidden_layers=1,
        num_attention_heads=4,
        intermediate_size=64,
        image_size=32,
        patch_size=8,
    )
    model = Output(
        ViTModel(config, add_pooling_layer=False), ("pixel_values",), "last_hidden_state"
    )
    return Case(model, lambda b: (torch.randn(b, 3, 32, 32),), ({0: BATCH},), 7, [(2,), (1,), (5,)])


class Cells(nn.Module):
    """Two LSTM cells over a sequence of four tokens."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.LSTMCell(16, 32), nn.LSTMCell(32, 32)

    def forward(self, x: Tensor, hidden: Tensor, cell: Tensor) -> Tensor:
        a = b = (hidden, cell)
        for token in x.unbind(1):
            a = self.first(token, a)
            b = self.second(a[0], b)
        return b[0]


def lstm() -> Case:
    def inputs(batch: int) -> tuple[Tensor, Tensor, Tensor]:
        return torch.randn(batch, 4, 16), torch.randn(batch, 32), torch.randn(batch, 32)

    return Case(Cells(), inputs, ({0: BATCH}, {0: BATCH}, {0: BATCH}), 16, [(2,), (1,), (5,)])


class FusedAttention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.qkv, self.o = nn.Linear(32, 96), nn.Linear(32, 32)

    def forward(self, x: Tensor) -> Tensor:
        b, t, _ = x.shape
        q, k, v = self.qkv(x).view(b, t, 3, 4, 8).permute(2, 0, 3, 1, 4).unbind(0)
        y = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return x + self.o(y.transpose(1, 2).reshape(b, t, 32))


def attention() -> Case:
    return Case(FusedAttention(), lambda b, t: (torch.randn(b, t, 32),), (TEXT,), 4)


HEIGHT, WIDTH = Dim("H", min=33, max=256), Dim("W", min=33, max=256)
IMAGE = {0: BATCH, 2: HEIGHT, 3: WIDTH}
IMAGE_SIZES = [(2, 34, 40), (1, 33, 48)]


def _images(batch: int, height: int, width: int) -> tuple[Tensor]:
    return (torch.randn(batch, 3, height, width),)


def _convolutions(model: nn.Module, products: int) -> Case:
    # Batch norms of a new model have means of 0 and variances of 1.
    for module in model.modules():
        if isinstance(module, nn.BatchNorm2d):
            nn.init.normal_(module.running_mean, std=0.1)
            nn.init.uniform_(module.running_var, 0.5, 2.0)
    return Case(
        Output(model, ("pixel_values",), "logits"), _images, (IMAGE,), products, IMAGE_SIZES
    )


def resnet() -> Case:
    from transformers import ResNetConfig, ResNetForImageClassification

    config = ResNetConfig(
        embedding_size=8, hidden_sizes=[16, 32], depths=[1, 2], layer_type="basic", num_labels=10
    )
    return _convolutions(ResNetForImageClassification(config), 10)


def mobilenet() -> Case:
    from transformers import MobileNetV2Config, MobileNetV2ForImageClassification

    config = MobileNetV2Config(depth_multiplier=0.25, min_depth=4, tf_padding=False, num_labels=10)
    model = MobileNetV2ForImageClassification(config)
    # The first layers of the 16, which are enough to have one of each kind.
    body = model.mobilenet_v2
    del body.layer[4:]
    last = body.layer[-1].reduce_1x1.convolution.out_channels
    body.conv_1x1 = type(body.conv_1x1)(config, last, 32, kernel_size=1)
    model.classifier = nn.Linear(32, 10)
    return _convolutions(model, 12)


class Recommender(nn.Module):
    """Like DLRM: bags of categories, numbers, their products in pairs, and two MLPs."""

    def __init__(self) -> None:
        super().__init__()
        self.bags = nn.ModuleList(nn.EmbeddingBag(50, 16, mode="sum") for _ in range(3))
        self.bottom = nn.Sequential(nn.Linear(13, 32), nn.ReLU(), nn.Linear(32, 16), nn.ReLU())
        self.top = nn.Sequential(nn.Linear(16 + 6, 32), nn.ReLU(), nn.Linear(32, 1), nn.Sigmoid())
        rows, columns = torch.tril_indices(4, 4, -1)
        self.register_buffer("pairs", rows * 4 + columns)

    def forward(self, numbers: Tensor, categories: Tensor) -> Tensor:
        x = self.bottom(numbers)
        features = [x] + [bag(categories[:, i]) for i, bag in enumerate(self.bags)]
        stacked = torch.stack(features, 1)
        products = (stacked @ stacked.mT).flatten(1)[:, self.pairs]
        return self.top(torch.cat([x, products], 1))


def recommender() -> Case:
    def inputs(batch: int) -> tuple[Tensor, Tensor]:
        return torch.randn(batch, 13), torch.randint(0, 50, (batch, 3, 5))

    return Case(Recommender(), inputs, ({0: BATCH}, {0: BATCH}), 5, [(2,), (1,), (9,)])


def export(case: Case) -> ftuner.torch.ExportedModel:
    """The model as MLIR."""
    return ftuner.torch.export(
        case.model.eval(), case.inputs(*case.sizes[0]), dynamic_shapes=case.shapes
    )


def errors(case: Case, run: Callable[..., Tensor], size: tuple[int, ...]) -> tuple[float, float]:
    """Relative errors of a compiled model and of eager PyTorch against float64."""
    inputs = case.inputs(*size)
    exact_model = copy.deepcopy(case.model).double()
    with torch.no_grad():
        exact = exact_model(*(x.double() if x.is_floating_point() else x for x in inputs))
        results = run(*inputs), case.model(*inputs)
    first, second = (float((result - exact).norm() / exact.norm()) for result in results)
    return first, second


MODELS: dict[str, Callable[[], Case]] = {
    make.__name__: make
    for make in (
        whisper,
        vit,
        lstm,
        bert,
        bert_with_mask,
        gpt2,
        llama,
        t5,
        attention,
        resnet,
        mobilenet,
        recommender,
    )
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="*", help=f"of {', '.join(MODELS)} (default: all)")
    parser.add_argument("--report", action="store_true", help="name all fallback kernels")
    arguments = parser.parse_args()
    unknown = set(arguments.models) - set(MODELS)
    if unknown:
        parser.error(f"expected one of {', '.join(MODELS)}, but got {', '.join(sorted(unknown))}")
    warnings.simplefilter("ignore")  # Of torch.export, about versions to come.
    torch.manual_seed(0)
    for name in arguments.models or MODELS:
        case = MODELS[name]()
        run = export(case).compile(emulate=True, max_kernels=2)
        report = run.report
        texts = []
        for size in case.sizes:
            error, eager = errors(case, run, size)
            assert error < 4 * eager + 1e-7
            texts.append(f"{error:.1e} ({eager:.1e})")
        print(
            f"{name}: {report.products} of {case.products} products, "
            f"{report.fallback_kernels} fallback kernels, errors {', '.join(texts)}"
        )
        if arguments.report:
            print(report)


if __name__ == "__main__":
    main()
