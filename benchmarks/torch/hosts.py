#!/usr/bin/env python3
"""torch.compile by FTuner with Inductor as host, beside Inductor alone: models, precisions, many sizes.

The models are those of examples/python/torch_models.py, small and with random weights, on tensors on the CPU: FTuner's
kernels run in the emulator, Inductor's are C++. For each model and precision (f32, bf16, autocast to bf16), at sizes
drawn from the ranges that the model declares:

* error: the greatest relative error against float64 of all sizes, over eager PyTorch's greatest. A size's is the root mean
  square over --draws of weights and inputs: that of few results, such as the recommender's one number for each row, is
  noise;
* Inductor's: the same of Inductor alone, which rounds otherwise than eager PyTorch what is no product;
* graphs: of FTuner and of Inductor alone, as PyTorch counts them;
* products: taken by FTuner, of all;
* kernels: of Inductor beside products, in its generated code, with FTuner and without.

Exits with 1 if an error is more than 1.5 times eager's and more than that of Inductor alone, or if there are more graphs
or kernels than without FTuner. --write FILE writes what is printed, with the date and the commit before it.
"""

from __future__ import annotations

import argparse
import copy
import functools
import itertools
import os
import pathlib
import random
import re
import sys
import tempfile
import warnings
from collections import defaultdict
from dataclasses import dataclass

import tables

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "python"), str(ROOT / "examples/python")]

PRECISIONS = ("f32", "bf16", "autocast")
TAKE = ("all", "faster")
#: The limit of an error over eager's, and the minimum of eager's: one rounding of a result to float32.
FACTOR, FLOOR = 1.5, 2.0**-24


@dataclass
class Run:
    """Results of a compiled model."""

    graphs: int
    kernels: int
    results: list


def sizes_of(case, count, largest):
    """Sizes of at least 2, for PyTorch compiles others anew, from the declared ranges."""
    dims = list({dim.__name__: dim for shape in case.shapes for dim in shape.values()}.values())
    draw = random.Random(0)
    limits = dict(zip("BTHW", (4, largest, 96, 96)))
    return [
        tuple(draw.randint(max(2, dim.min), min(dim.max, limits[dim.__name__])) for dim in dims)
        for _ in range(count)
    ]


def tensors(value):
    import torch

    return (
        [value] if isinstance(value, torch.Tensor) else [t for item in value for t in tensors(item)]
    )


@dataclass
class Draw:
    """Weights of a model, and inputs of all sizes."""

    weights: dict
    inputs: list


def make_draw(name, precision, seed, options):
    """A model in this precision, and a draw for it."""
    import torch_models

    import torch

    torch.manual_seed(seed)
    case = torch_models.MODELS[name]()
    model = case.model.eval()
    inputs = [case.inputs(*size) for size in sizes_of(case, options.sizes, options.largest)]
    if precision == "bf16":
        model = model.bfloat16()
        inputs = [
            tuple(x.bfloat16() if x.is_floating_point() else x for x in given) for given in inputs
        ]
    return model, Draw(copy.deepcopy(model.state_dict()), inputs)


def run(model, draws, precision, **options):
    """A compiled model with all draws at all sizes; kernels are counted in the code for the first."""
    from torch._dynamo.utils import counters
    from torch._inductor.utils import run_and_get_code

    import torch

    torch._dynamo.reset()
    counters.clear()
    compiled = torch.compile(model, dynamic=True, **options)
    results, code = [], []
    with torch.no_grad(), torch.autocast("cpu", torch.bfloat16, enabled=precision == "autocast"):
        for draw in draws:
            model.load_state_dict(draw.weights)
            for arguments in draw.inputs:
                if results:
                    results.append(compiled(*arguments))
                else:
                    result, code = run_and_get_code(compiled, *arguments)
                    results.append(result)
    kernels = len(re.findall(r"^ +cpp_fused\w*\(", "".join(code), re.MULTILINE))
    return Run(counters["stats"]["unique_graphs"], kernels, results)


def compile_by_ftuner(model, draws, precision, take, options):
    """Runs a model that FTuner compiles; returns its results and FTuner's report."""
    import ftuner.torch

    ftuner.torch.reset_report()
    found = run(
        model,
        draws,
        precision,
        backend="ftuner",
        options={
            "host": "inductor",
            "take": take,
            "max_kernels": options.max_kernels,
            "attention": options.attention,
        },
    )
    return found, ftuner.torch.report()


def greater(one, other):
    """The greater of two numbers; NaN if one is NaN."""
    return other if not other <= one else one


def errors(model, exact, draws, precision, runs):
    """The greatest relative error of each run against float64, over eager PyTorch's greatest."""
    import torch

    count = len(draws[0].inputs)
    # Squares of the errors of each size and result, summed over the draws: of eager PyTorch, and of the runs.
    squares = defaultdict(lambda: [0.0] * (len(runs) + 1))
    with torch.no_grad():
        for number, draw in enumerate(draws):
            model.load_state_dict(draw.weights)
            exact.load_state_dict(draw.weights)
            for size, given in enumerate(draw.inputs):
                reference = exact(*(x.double() if x.is_floating_point() else x for x in given))
                with torch.autocast("cpu", torch.bfloat16, enabled=precision == "autocast"):
                    eager = model(*given)
                found = [eager, *(one.results[number * count + size] for one in runs)]
                for place, (value, *others) in enumerate(zip(*map(tensors, (reference, *found)))):
                    if {(x.shape, x.dtype) for x in others} != {(value.shape, others[0].dtype)}:
                        raise ValueError(
                            f"expected results as eager PyTorch's, {others[0].dtype}{[*value.shape]}"
                        )
                    squares[size, place] = [
                        known + float((x.double() - value).norm() / value.norm()) ** 2
                        for known, x in zip(squares[size, place], others)
                    ]
    of_eager, *of_runs = (
        (functools.reduce(greater, column) / len(draws)) ** 0.5 for column in zip(*squares.values())
    )
    return [error / greater(FLOOR, of_eager) for error in of_runs]


def measure(name, precision, options):
    """The rows of a model in a precision, one for each `take`, with FTuner's reports."""
    made = [
        make_draw(name, precision, options.seed + number, options)
        for number in range(options.draws)
    ]
    model, draws = made[0][0], [draw for _, draw in made]
    exact = copy.deepcopy(model).double()
    by_ftuner = [compile_by_ftuner(model, draws, precision, take, options) for take in options.take]
    plain = run(model, draws, precision)
    *ratios, of_plain = errors(
        model, exact, draws, precision, [*(found for found, _ in by_ftuner), plain]
    )
    rows = []
    for take, (found, report), ratio in zip(options.take, by_ftuner, ratios):
        wrong = [
            problem
            for problem, is_wrong in (
                ("error", not ratio <= max(FACTOR, of_plain)),
                ("graphs", found.graphs > plain.graphs),
                ("kernels", found.kernels > plain.kernels),
            )
            if is_wrong
        ]
        cells = [
            name,
            precision,
            take,
            f"{ratio:.2f}",
            f"{of_plain:.2f}",
            f"{found.graphs} / {plain.graphs}",
            f"{report.taken} of {report.products}",
            f"{found.kernels} / {plain.kernels}",
            ", ".join(wrong) or "ok",
        ]
        rows.append((cells, report))
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="*", help="default: all")
    parser.add_argument("--precisions", nargs="+", choices=PRECISIONS, default=PRECISIONS)
    parser.add_argument("--sizes", type=int, default=20)
    parser.add_argument("--largest", type=int, default=48, help="the longest sequence")
    parser.add_argument("--max-kernels", type=int, default=2)
    parser.add_argument("--take", nargs="+", choices=TAKE, default=TAKE)
    parser.add_argument(
        "--seed", type=int, default=0, help="of the first draw of weights and inputs"
    )
    parser.add_argument(
        "--draws", type=int, default=10, help="of weights and inputs, by one compilation"
    )
    parser.add_argument("--attention", choices=("sdpa", "math"), default="sdpa")
    parser.add_argument("--write", metavar="FILE")
    parser.add_argument("--report", action="store_true", help="print FTuner's report of each")
    options = parser.parse_args()
    import torch_models

    unknown = set(options.models) - set(torch_models.MODELS)
    if unknown:
        parser.error(
            f"expected one of {', '.join(torch_models.MODELS)}, but got {', '.join(sorted(unknown))}"
        )
    warnings.simplefilter("ignore")
    header = [
        "model",
        "precision",
        "take",
        "error / eager's",
        "Inductor's / eager's",
        "graphs",
        "products",
        "kernels",
        "",
    ]
    table, is_wrong = [header], False
    with tempfile.TemporaryDirectory() as folder:
        os.environ["TORCHINDUCTOR_CACHE_DIR"] = folder
        for name, precision in itertools.product(
            options.models or torch_models.MODELS, options.precisions
        ):
            try:
                rows = measure(name, precision, options)
            except Exception as error:
                failed = f"{type(error).__name__}: {str(error)[:200]}"
                rows = [([name, precision, *["–"] * (len(header) - 3), failed], "")]
            for cells, report in rows:
                is_wrong |= cells[-1] != "ok"
                table.append(cells)
                print(" | ".join(cells), flush=True)
                if options.report:
                    print(report, flush=True)
            if options.write:
                # After each, for the next takes its time.
                text = tables.made(
                    table, f", {options.sizes} sizes each, draws of weights: {options.draws}"
                )
                pathlib.Path(options.write).write_text(text, encoding="utf-8")
    return int(is_wrong)


if __name__ == "__main__":
    sys.exit(main())
