#!/usr/bin/env python3
"""Greedy decoding by torch.compile with FTuner, beside PyTorch's own compiler: one function for a prompt and for its steps.

Small decoders of `transformers` with random weights, on tensors on the CPU: FTuner's kernels run in the emulator. A loop
calls the compiled model with prompts of several lengths and after each with one token at a time, with a cache that grows
(`DynamicCache`) or one of a fixed length (`StaticCache`). For each model, cache, host and precision:

* error: the greatest relative error of the logits of a call against float64, over eager PyTorch's greatest;
* tokens: whether they are eager PyTorch's;
* graphs: of FTuner and of PyTorch's compiler alone, as PyTorch counts them: with Inductor, which compiles some anew for
  other strides, or where the host is eager PyTorch, with its operators one by one;
* products: taken by FTuner, of all that the graphs have;
* functions: of the weights, whose products each have one function, and the rows that it was called with.

Exits with 1 if an error is more than 1.5 times eager's, tokens differ, there are more graphs than without FTuner, a
product other than attention's is left, or a weight has two functions. --write FILE writes what is printed, with the date and the commit before it.
"""

from __future__ import annotations

import argparse
import copy
import itertools
import os
import pathlib
import sys
import tempfile
import warnings
from collections import defaultdict
from contextlib import contextmanager
from dataclasses import dataclass, field

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "python"), str(ROOT / "benchmarks/torch")]

import tables

#: The limit of an error over eager's, and the minimum of eager's: one rounding of a result to float32.
FACTOR, FLOOR = 1.5, 2.0**-24
VOCABULARY, LENGTH = 100, 48


def gpt2(layers=1):
    from transformers import GPT2Config, GPT2LMHeadModel

    return GPT2LMHeadModel(
        GPT2Config(
            n_embd=32,
            n_layer=layers,
            n_head=4,
            vocab_size=VOCABULARY,
            n_positions=64,
            bos_token_id=0,
            eos_token_id=0,
        )
    )


def llama(layers=1):
    from transformers import LlamaConfig, LlamaForCausalLM

    return LlamaForCausalLM(
        LlamaConfig(
            hidden_size=32,
            num_hidden_layers=layers,
            num_attention_heads=4,
            num_key_value_heads=2,
            intermediate_size=64,
            vocab_size=VOCABULARY,
            max_position_embeddings=64,
        )
    )


MODELS = {"gpt2": gpt2, "llama": llama}
CACHES = ("dynamic", "static")
HOSTS = ("eager", "inductor")
PRECISIONS = ("f32", "bf16")


def make_cache(model, kind, batch):
    """An empty cache of keys and values."""
    from transformers import DynamicCache, StaticCache

    config = model.config
    if kind == "dynamic":
        return DynamicCache(config=config)
    cache = StaticCache(config=config, max_cache_len=LENGTH)
    heads = getattr(config, "num_key_value_heads", config.num_attention_heads)
    cache.early_initialization(
        batch, heads, config.hidden_size // config.num_attention_heads, model.dtype, model.device
    )
    return cache


def decode(model, call, prompt, kind, steps, tokens=None):
    """Logits of the prompt and of each step, and the tokens of the steps.

    Each token is the likeliest of the step before, or one of those that are given.
    """
    import torch

    cache = make_cache(model, kind, prompt.shape[0])
    given, logits, chosen = prompt, [], []
    for step in range(steps + 1):
        logits.append(call(given, past_key_values=cache, use_cache=True).logits)
        chosen.append(logits[-1][:, -1].argmax(-1, keepdim=True))
        given = chosen[-1] if tokens is None else tokens[step]
        given = given.clone(memory_format=torch.contiguous_format)
    return logits, chosen


@dataclass
class Weights:
    """Products of a model with its weights: libraries and numbers of rows by address of the weight."""

    names: dict
    libraries: dict = field(default_factory=lambda: defaultdict(set))
    rows: dict = field(default_factory=lambda: defaultdict(set))


@contextmanager
def watch(model):
    """Notes the library and the number of rows of each call of a function that reads a weight."""
    from ftuner.host.function import Function
    from ftuner.host.memory import torch_calls

    found = Weights(
        {
            parameter.data_ptr(): name
            for name, parameter in model.named_parameters()
            if parameter.dim() == 2
        }
    )
    original = Function.__call__

    def call(self, *arguments, **options):
        for factor, other in (arguments[:2], arguments[1::-1]):
            if factor.data_ptr() in found.names:
                name = found.names[factor.data_ptr()]
                found.libraries[name].add(str(self.module.library_path))
                found.rows[name].add(other.numel() // other.shape[-1])
        return original(self, *arguments, **options)

    Function.__call__ = call
    try:
        with torch_calls.without_module():
            yield found
    finally:
        Function.__call__ = original


def relative_error(actual, exact):
    return float((actual.double() - exact.double()).norm() / exact.double().norm())


@dataclass
class Row:
    """Results of decoding by a compiled model."""

    error: float
    same_tokens: bool
    graphs: int
    plain_graphs: int
    report: object
    weights: Weights

    @property
    def functions(self):
        """The most functions that a weight has."""
        return max(map(len, self.weights.libraries.values()))

    def problems(self):
        return [
            problem
            for problem, is_wrong in (
                ("error", not self.error <= FACTOR),
                ("tokens", not self.same_tokens),
                ("graphs", self.graphs > self.plain_graphs),
                (
                    "products left",
                    any("scaled_dot_product" not in left.operator for left in self.report.left),
                ),
                ("functions", self.functions != 1),
            )
            if is_wrong
        ]


def compiled(model, **options):
    """A model's own forward, so that nothing else of it is compiled."""
    import torch

    torch._dynamo.reset()
    return torch.compile(model.forward, dynamic=True, **options)


def count_graphs():
    from torch._dynamo.utils import counters

    return counters["stats"]["unique_graphs"]


def measure(model, kind, prompts, steps, *, plain="inductor", prepare=None, **options):
    """Decodes behind each prompt [batch, length] by FTuner, and by PyTorch's backend `plain`."""
    from torch._dynamo.utils import counters

    import ftuner.torch
    import torch

    exact = copy.deepcopy(model).double()
    error, same = 0.0, True
    with torch.no_grad():
        expected = [decode(model, model.forward, prompt, kind, steps) for prompt in prompts]
        references = [
            decode(exact, exact.forward, prompt, kind, steps, tokens)[0]
            for prompt, (_, tokens) in zip(prompts, expected)
        ]
        by_ftuner = compiled(model, backend="ftuner", options=options)
        counters.clear()
        ftuner.torch.reset_report()
        with watch(model) as weights:
            results = [
                decode(model, by_ftuner, (prepare or (lambda x: x))(prompt), kind, steps, tokens)
                for prompt, (_, tokens) in zip(prompts, expected)
            ]
        graphs, report = count_graphs(), ftuner.torch.report()
        other = compiled(model, backend=plain)
        counters.clear()
        for prompt in prompts:
            decode(model, other, (prepare or (lambda x: x))(prompt), kind, steps)
        plain_graphs = count_graphs()
    for (logits, tokens), (eager, eager_tokens), reference in zip(results, expected, references):
        same &= all(map(torch.equal, tokens, eager_tokens))
        worst = max(FLOOR, *map(relative_error, eager, reference))
        error = max(
            error, *(relative_error(one, exact) / worst for one, exact in zip(logits, reference))
        )
    return Row(error, same, graphs, plain_graphs, report, weights)


def run(host, precision, name, kind, batch, options):
    """The cells of a case, FTuner's report, and whether all is right."""
    import torch

    torch.manual_seed(0)
    model = MODELS[name](options.layers).eval()
    if precision == "bf16":
        model = model.bfloat16()
    prompts = [torch.randint(1, VOCABULARY, (batch, length)) for length in options.lengths]
    try:
        plain = "inductor" if host == "inductor" else "aot_eager"
        row = measure(
            model,
            kind,
            prompts,
            options.steps,
            plain=plain,
            host=host,
            take=options.take,
            max_kernels=options.max_kernels,
            attention=options.attention,
        )
    except Exception as error:
        return ["–"] * 6 + [f"{type(error).__name__}: {str(error)[:200]}"], "", False
    problems = row.problems()
    counts = sorted({count for counts in row.weights.rows.values() for count in counts})
    cells = [
        f"{row.error:.2f}",
        "same" if row.same_tokens else "others",
        f"{row.graphs} / {row.plain_graphs}",
        f"{row.report.taken} of {row.report.products}",
        str(row.functions),
        ", ".join(map(str, counts)),
        ", ".join(problems) or "ok",
    ]
    return cells, row.report, not problems


def table_of(rows, options):
    """The text of the table, with when and how it was made."""
    return tables.made(
        rows,
        f": prompts of {', '.join(map(str, options.lengths))} tokens, {options.steps} steps behind each,"
        f" {options.layers} layer(s)",
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="*", help="default: all")
    parser.add_argument("--caches", nargs="+", choices=CACHES, default=CACHES)
    parser.add_argument("--hosts", nargs="+", choices=HOSTS, default=HOSTS)
    parser.add_argument("--precisions", nargs="+", choices=PRECISIONS, default=PRECISIONS)
    parser.add_argument("--batches", nargs="+", type=int, default=(1,))
    parser.add_argument("--lengths", nargs="+", type=int, default=(7, 19), help="of the prompts")
    parser.add_argument("--steps", type=int, default=4)
    parser.add_argument("--layers", type=int, default=1)
    parser.add_argument("--max-kernels", type=int, default=2)
    parser.add_argument("--attention", choices=("sdpa", "math"), default="math")
    parser.add_argument("--take", choices=("all", "faster"), default="all")
    parser.add_argument("--write", metavar="FILE")
    parser.add_argument("--report", action="store_true", help="print FTuner's report of each")
    options = parser.parse_args()
    unknown = set(options.models) - set(MODELS)
    if unknown:
        parser.error(f"expected one of {', '.join(MODELS)}, but got {', '.join(sorted(unknown))}")
    warnings.simplefilter("ignore")
    rows = [
        [
            "host",
            "precision",
            "model",
            "cache",
            "batch",
            "error / eager's",
            "tokens",
            "graphs",
            "products",
            "functions of a weight",
            "rows",
            "",
        ]
    ]
    cases = itertools.product(
        options.hosts, options.precisions, options.models or MODELS, options.caches, options.batches
    )
    is_wrong = False
    with tempfile.TemporaryDirectory() as folder:
        os.environ["TORCHINDUCTOR_CACHE_DIR"] = folder
        for case in cases:
            cells, report, is_right = run(*case, options)
            is_wrong |= not is_right
            rows.append([str(cell) for cell in case] + cells)
            print(" | ".join(rows[-1]), flush=True)
            if options.report:
                print(report, flush=True)
            if options.write:
                # After each, for the next takes its time.
                pathlib.Path(options.write).write_text(table_of(rows, options), encoding="utf-8")
    return int(is_wrong)


if __name__ == "__main__":
    sys.exit(main())
