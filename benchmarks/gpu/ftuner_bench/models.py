"""BERT-base and GPT-2 end to end, with random weights, at several lengths.

Eager PyTorch, torch.compile with dynamic shapes, and the same with FTuner's backend,
which computes all linear layers, with PyTorch's operators for the rest and with Inductor,
or with Inductor those at whose sizes it is predicted to be faster.
Attention stays with PyTorch in all of them. One compilation serves all lengths. Errors
are against the same model in float64.
"""

from __future__ import annotations

import dataclasses
import functools
import json
import pathlib
import time
from collections.abc import Callable
from typing import Any

import torch._dynamo

import torch

from . import buffers
from .bundle import is_same_release
from .machine import Call
from .session import Session, within
from .timing import compare_captured

ROUNDS = 9
SAMPLE_MICROSECONDS = 3000.0
LENGTHS = (128, 2, 53, 16, 97, 32, 64, 7, 113, 24, 80, 48)
LONGEST = 128
# Options of the backend by how a record names them. The bundle has the functions of the graphs of each.
# The questions that take="faster" asks the cost model are recorded with them.
BACKENDS: dict[str, dict[str, Any]] = {
    "torch_ftuner": {"host": "eager", "take": "all"},
    "torch_ftuner_faster": {"host": "inductor", "take": "faster"},
    "torch_ftuner_inductor": {"host": "inductor", "take": "all"},
}
# Answers of the cost model.
PREDICTIONS = "predictions.json"
BATCHES = (1, 8)

# Of the logits or hidden states; eager PyTorch in f32 stays well below.
TOLERANCE = 1e-4


@dataclasses.dataclass(frozen=True)
class Model:
    name: str
    title: str
    vocabulary: int
    build: Callable[[bool, int], torch.nn.Module]


class Hidden(torch.nn.Module):
    """The last hidden states alone, of tokens alone."""

    def __init__(self, model: torch.nn.Module):
        super().__init__()
        self.model = model

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        return self.model(tokens).last_hidden_state


def _bert(small: bool, layers: int) -> torch.nn.Module:
    from transformers import BertConfig, BertModel

    size = (
        dict(hidden_size=64, num_attention_heads=4, intermediate_size=128, vocab_size=100)
        if small
        else {}
    )
    config = BertConfig(num_hidden_layers=layers, **size)
    return Hidden(BertModel(config, add_pooling_layer=False))


def _gpt2(small: bool, layers: int) -> torch.nn.Module:
    from transformers import GPT2Config, GPT2Model

    size = (
        dict(n_embd=64, n_head=4, vocab_size=100, bos_token_id=0, eos_token_id=0) if small else {}
    )
    config = GPT2Config(n_layer=layers, use_cache=False, **size)
    return Hidden(GPT2Model(config))


MODELS = (Model("bert_base", "BERT-base", 30522, _bert), Model("gpt2", "GPT-2", 50257, _gpt2))


def rehearsed(small: bool) -> tuple[Model, ...]:
    """All models, and one of them in a rehearsal."""
    return MODELS[1:] if small else MODELS


def batches(small: bool) -> tuple[int, ...]:
    return BATCHES[:1] if small else BATCHES


def build(model: Model, small: bool, layers: int | None = None) -> torch.nn.Module:
    torch.manual_seed(0)
    return model.build(small, layers or (1 if small else 12)).eval().requires_grad_(False)


def tokens(
    model: Model, small: bool, batch: int, length: int, device: str, seed: int
) -> torch.Tensor:
    """Random tokens. The length is dynamic, as far as PyTorch can keep it so."""
    generator = torch.Generator().manual_seed(seed * 1009 + length)
    largest = 100 if small else model.vocabulary
    result = torch.randint(0, largest, (batch, length), generator=generator).to(device)
    torch._dynamo.mark_static(result, 0)
    torch._dynamo.maybe_mark_dynamic(result, 1)
    return result


def record(
    small: bool,
    folder: pathlib.Path,
    compile_text: Callable[[str, pathlib.Path], None],
    device: str,
) -> dict[str, int]:
    """Compiles all functions that the models need into `folder`, on a machine without a GPU.

    The models are traced, not run. Returns the number of products taken of each.
    """
    from ftuner.torch import backend, inductor_pass, report, reset_report

    from .recorded import Predictions, recorder, replaced, trace_with_inductor

    folder.mkdir(parents=True, exist_ok=True)
    taken = {}
    predictions = Predictions()
    with replaced(recorder(folder, compile_text), predictions), torch.no_grad():
        for model in rehearsed(small):
            # Two layers have all the products that twelve have.
            module = build(model, small, layers=None if small else 2)
            for batch in batches(small):
                torch._dynamo.reset()
                reset_report()

                def trace(graph: torch.fx.GraphModule, inputs: list[Any]) -> Callable[..., Any]:
                    options = {**BACKENDS["torch_ftuner"], "device": device}
                    backend(graph, inputs, options=options)
                    return graph.forward

                example = tokens(model, small, batch, 16, "cpu", 0)
                # The range that the functions are made for.
                torch._dynamo.mark_dynamic(example, 1, min=2, max=LONGEST)
                torch.compile(module, backend=trace, dynamic=True)(example)
                taken[f"{model.name}, batch {batch}"] = report().taken
                # Where PyTorch keeps a product, its neighbours may become another function.
                for take in ("faster",) if small else ("all", "faster"):
                    torch._dynamo.reset()
                    trace_with_inductor(module, example, inductor_pass(device=device, take=take))
    (folder / PREDICTIONS).write_text(json.dumps(predictions.known), encoding="utf-8")
    return taken


def measure(session: Session) -> bool:
    from .recorded import Predictions, Recorded, replaced

    folder = session.folder("models")
    if folder is None:
        return True
    recorded = Recorded(folder)
    known = json.loads((folder / PREDICTIONS).read_text(encoding="utf-8"))
    predictions = Predictions(known)
    if not is_same_release(session.bundle.torch, torch.__version__):
        # Graphs are made of other operators in another release, and functions are found by text.
        session.write(
            "note",
            text=f"models were traced by PyTorch {session.bundle.torch}, and this is "
            f"{torch.__version__}: functions that it traces otherwise are not in the bundle and "
            "stay with PyTorch",
        )
    passed, longest = True, 0.0
    small = session.machine.rehearsal
    # Both models with the larger batch come first: compilers may leave no time for all.
    cases = [(model, batch) for batch in reversed(batches(small)) for model in rehearsed(small)]
    with replaced(recorded, predictions), torch.no_grad():
        for number, (model, batch) in enumerate(cases):
            share = within(session, len(cases) - number)
            wanted = [length for length in LENGTHS if length in (session.sizes or LENGTHS)]
            if session.seconds_left() < longest:
                session.coverage(f"{model.name}, batch {batch}", wanted, [], "models")
                continue
            begun = time.monotonic()
            module = build(model, session.machine.rehearsal).to(session.machine.device)
            contestants = _compile(session, model, batch, module, recorded)
            longest = max(longest, time.monotonic() - begun)
            share.restart()
            uncaptured: set[str] = set()
            done = []
            for length in wanted:
                if not share.allows() and done:
                    break
                passed &= _length(session, model, batch, length, module, contestants, uncaptured)
                done.append(length)
            session.coverage(f"{model.name}, batch {batch}", wanted, done, "models")
            session.write("note", text=f"{model.title}, batch {batch}: {_report(recorded)}")
    if predictions.missing:
        session.write(
            "note", text=f"{predictions.missing} predictions that were asked are not in the bundle"
        )
    return passed


def _compile(
    session: Session, model: Model, batch: int, module: torch.nn.Module, recorded: Any
) -> dict[str, Callable[..., torch.Tensor]]:
    """The ways to run a model. Those that cannot be compiled are said and left out."""
    import ftuner.torch

    torch._dynamo.reset()
    torch._dynamo.utils.counters.clear()
    ftuner.torch.reset_report()
    recorded.missing.clear()
    ways: dict[str, dict[str, Any]] = {
        "compile": {},
        **{
            # What the bundle does not hold stays with PyTorch, and is counted.
            way: {"options": {**options, "device": session.device, "fallback": True}}
            for way, options in BACKENDS.items()
        },
    }
    result: dict[str, Callable[..., torch.Tensor]] = {"eager": module.forward}
    example = tokens(model, session.machine.rehearsal, batch, 16, session.machine.device, 0)
    for way, options in ways.items():
        if way in session.skipped_peers:
            continue
        try:
            if way in BACKENDS:
                from ftuner.torch import backend

                options["backend"] = functools.partial(backend, options=options.pop("options"))

            # A code object of its own for each way: recompilations are counted by code.
            def forward(ids: torch.Tensor) -> torch.Tensor:
                return module(ids)

            forward.__code__ = forward.__code__.replace(co_name=f"forward_{way}")
            compiled = torch.compile(forward, dynamic=True, **options)
            compiled(example)
            session.machine.synchronize()
            result[way] = compiled
        except Exception as error:
            session.write(
                "error",
                message=f"{model.name}, {way}: {type(error).__name__}: {str(error)[:1500]}",
                traceback="",
            )
    return result


def _length(
    session: Session,
    model: Model,
    batch: int,
    length: int,
    module: torch.nn.Module,
    contestants: dict[str, Callable[..., torch.Tensor]],
    uncaptured: set[str],
) -> bool:
    """uncaptured: ways that a graph did not take, which are not tried again."""
    ids = tokens(
        model, session.machine.rehearsal, batch, length, session.machine.device, session.seed
    )
    module.double()
    expected = module(ids)
    module.float()
    passed = True
    calls: dict[str, Call] = {}
    errors: dict[str, float | None] = {}
    problems: dict[str, str] = {}
    for way, forward in contestants.items():
        try:
            result = forward(ids)
            session.machine.synchronize()
            errors[way] = buffers.relative_error(result, expected)
            calls[way] = functools.partial(forward, ids)
            if not (errors[way] or 0.0) <= TOLERANCE:
                raise ValueError(f"relative error {errors[way]:.3g} above {TOLERANCE:g}")
        except Exception as error:
            calls.pop(way, None)
            problems[way] = f"{type(error).__name__}: {error}"[:1000]
            passed &= way not in BACKENDS
            print(
                f"FAILED {model.name}, batch {batch}, length {length}, {way}: {problems[way]}",
                flush=True,
            )
    for mode in ("plain_warm", "graph_warm"):
        summaries, failures = compare_captured(
            session.machine,
            {way: [call] for way, call in calls.items()},
            mode,
            session.thorough(ROUNDS),
            uncaptured,
            SAMPLE_MICROSECONDS,
        )
        for way in contestants:
            session.write(
                "model",
                model=model.name,
                batch=batch,
                length=length,
                how=way,
                mode=mode,
                microseconds=summaries.get(way),
                error=errors.get(way),
                problem=problems.get(way) or failures.get(way),
            )
    session.machine.tidy()
    return passed


def _report(recorded: Any) -> str:
    """What became of the products, and whether PyTorch compiled again."""
    import ftuner.torch

    report = ftuner.torch.report()
    counters = torch._dynamo.utils.counters
    again = int(counters["stats"]["unique_graphs"])
    left = sorted({f"{left.operator}: {left.reason}" for left in report.left})
    return (
        f"{report.taken} of {report.products} products by FTuner in {report.compiled} "
        f"functions, {len(recorded.missing)} functions not in the bundle; {again} graphs "
        "compiled by both compilers together; left to PyTorch: " + ("; ".join(left)[:400] or "none")
    )
