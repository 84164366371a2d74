#!/usr/bin/env python3
"""PyTorch's own samples of operators on rows, as whole programs only by FTuner, in the emulator.

The samples are those of PyTorch's operator database (torch.testing, which needs the package expecttest); of operators
with more than --most of them, a random choice, the same in each run. Each is exported (`ftuner.torch.export`), compiled, and run on tensors
on the CPU. For each operator and type:

* samples, and how many of them are wrong: another shape or type than eager PyTorch gives, or an error against float64
  that is more than twice eager's and more than a few units in the last place;
* refused: the compiler or the importer says in words why it does not take it, or the importer ends; also what PyTorch does not compute on the CPU;
* passed: the others, and how many of these have uKernels alone, without a fallback kernel.

Exits with 1 if a sample is wrong. --write FILE writes what is printed, with the date and the commit before it.
"""

from __future__ import annotations

import json
import pathlib
import random
import re
import signal
import sys
import warnings
from dataclasses import dataclass

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "python"), str(ROOT / "benchmarks/torch"), str(ROOT / "tools/coverage")]

import apart

import opinfo

OPERATORS = (
    "softmax",
    "log_softmax",
    "nn.functional.layer_norm",
    "nn.functional.rms_norm",
    "nn.functional.group_norm",
    "nn.functional.batch_norm",
    "sum",
    "mean",
    "amax",
    "amin",
    "argmax",
    "argmin",
    "logsumexp",
    "linalg.vector_norm",
    "nn.functional.avg_pool1d",
    "nn.functional.avg_pool2d",
    "nn.functional.avg_pool3d",
    "nn.functional.max_pool1d",
    "nn.functional.max_pool2d",
)
#: Longer than any sample takes.
SECONDS = 20


@dataclass
class Row(opinfo.Row):
    HEADER = ["passed", "by uKernels alone", "why others are refused"]

    passed: int = 0
    without_fallback: int = 0

    @property
    def cells(self):
        return [str(self.passed), str(self.without_fallback)]


def chosen(samples, max_samples):
    """Some of the samples, the same in each run."""
    samples = list(samples)
    return samples if len(samples) <= max_samples else random.Random(0).sample(samples, max_samples)


def is_inference(sample):
    """Returns true if a program for inference computes the sample: it needs no statistics of a batch."""
    return not sample.kwargs.get("training")


def program(operator, sample):
    """The sample as a module of its tensors, and these."""
    from torch.utils import _pytree

    import torch

    leaves, structure = _pytree.tree_flatten(((sample.input, *sample.args), sample.kwargs))
    places = [number for number, leaf in enumerate(leaves) if isinstance(leaf, torch.Tensor)]

    class Program(torch.nn.Module):
        def forward(self, *tensors):
            values = list(leaves)
            for place, tensor in zip(places, tensors):
                values[place] = tensor
            arguments, keywords = _pytree.tree_unflatten(values, structure)
            return operator.op(*arguments, **keywords)

    return Program(), tuple(leaves[place].detach() for place in places)


def said(error):
    """The first error of a compiler, or the error's own first line."""
    lines = str(error).splitlines() or [type(error).__name__]
    errors = [
        line.partition("error: ")[2]
        for line in getattr(error, "diagnostics", "").splitlines()
        if "error: " in line
    ]
    # Without the place in this file.
    return re.sub(r'^"[^"]*":\d+:\d+: ', "", (errors or lines)[0]).split(" (/")[0][:160]


def outcome_of(operator, sample, tell_imported):
    """Runs a sample; returns its outcome and the reason in words.

    Outcomes are "wrong", "refused", "passed", and "alone": passed without fallback kernels.
    """
    import ftuner
    import ftuner.torch
    import torch

    module, inputs = program(operator, sample)
    with torch.no_grad():
        try:
            eager = module(*inputs)
        except NotImplementedError as error:
            return "refused", f"PyTorch itself: {error}"[:160]
        exact = module(*map(opinfo.widen, inputs))
        try:
            exported = ftuner.torch.export(module, inputs)
            tell_imported()
            function = exported.compile(device="h100", max_kernels=1, emulate=True)
        except (ftuner.Error, ValueError, NotImplementedError, RuntimeError) as error:
            return "refused", said(error)
        result = function(*(tensor.contiguous() for tensor in inputs))
    for one in zip(*map(opinfo.tensors, (result, eager, exact)), strict=True):
        if problem := opinfo.is_wrong(*one):
            return "wrong", problem
    return "passed" if function.report.data["fallback_kernels"] else "alone", ""


def run_apart(operator, sample):
    """Runs `outcome_of` in a separate process, since the importer may end its process or not return."""

    def work(tell):
        try:
            outcome = outcome_of(operator, sample, lambda: tell(b"\n"))
        except Exception as error:
            outcome = "wrong", f"{type(error).__name__}: {error}"[:400]
        tell(json.dumps(outcome).encode())

    answer, code = apart.run_isolated(work, SECONDS)
    if code and not answer:
        how = (
            f"no answer within {SECONDS} s"
            if code == -signal.SIGALRM
            else f"ended with code {code}"
        )
        return "refused", f"the importer: {how}"
    return ("wrong", f"the process ended with code {code}") if code else tuple(json.loads(answer))


def check(operator, type_name, max_samples):
    """The row of an operator and a type."""
    import torch

    torch.set_num_threads(1)  # Processes are split.
    row = Row()
    for number, sample in enumerate(
        chosen(operator.sample_inputs("cpu", getattr(torch, type_name)), max_samples)
    ):
        if not is_inference(sample):
            continue
        outcome, words = run_apart(operator, sample)
        row.samples += 1
        if outcome == "wrong":
            row.wrong.append(f"{operator.name} {type_name}, sample {number}: {words}")
        elif outcome == "refused":
            row.reasons[words] += 1
        else:
            row.passed += 1
            row.without_fallback += outcome == "alone"
    return row


def main():
    parser = opinfo.make_parser(__doc__, OPERATORS)
    parser.add_argument(
        "--most", type=int, default=24, help="samples of an operator and type (default: 24)"
    )
    options = opinfo.parse(parser, OPERATORS)
    if options.most < 1:
        parser.error("--most: expected a number above 0")
    warnings.simplefilter("ignore")
    # Loaded before processes split.
    import ftuner.torch  # noqa: F401
    from ftuner.frontend.importing import torch_mlir

    for module in ("extras.fx_importer", "ir", "passmanager"):
        torch_mlir.load(module, "these samples")
    return opinfo.tabulate(
        options,
        lambda operator, type_name: check(operator, type_name, options.most),
        Row,
        ", by FTuner alone",
    )


if __name__ == "__main__":
    sys.exit(main())
