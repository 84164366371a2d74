#!/usr/bin/env python3
"""torch.compile by FTuner with Inductor as host, beside Inductor alone: models, precisions, many sizes.

The models are those of examples/python/torch_models.py, small and with random weights, on tensors on the CPU: FTuner's
kernels run in the emulator, Inductor's are C++. For each model and precision (f32, bf16, autocast to bf16), at sizes
drawn from the ranges that the model declares:

* error: the greatest relative error against float64 of all sizes, over eager PyTorch's greatest;
* graphs: of FTuner and of Inductor alone, as PyTorch counts them;
* products: taken by FTuner, of all;
* kernels: of Inductor beside products, in its generated code, with FTuner and without.

Exits with 1 if an error is more than 1.5 times eager's, or if there are more graphs or kernels than without FTuner.
--write FILE writes what is printed, with the date and the commit before it.
"""

from __future__ import annotations

import argparse
import copy
import os
import pathlib
import random
import re
import sys
import tempfile
import warnings
from dataclasses import dataclass

import tables

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "python"), str(ROOT / "examples/python")]

PRECISIONS = ("f32", "bf16", "autocast")
#: Of eager's error, and the least that it counts as, where eager happens to be exact.
FACTOR, FLOOR = 1.5, 2e-7


@dataclass
class Run:
    """What became of a model."""

    graphs: int
    kernels: int
    results: list


def sizes_of(case, count, largest):
    """Sizes of at least 2, for PyTorch compiles others anew, from the declared ranges."""
    dims = list({dim.__name__: dim for shape in case.shapes for dim in shape.values()}.values())
    draw = random.Random(0)
    limits = dict(zip("BTHW", (4, largest, 96, 96)))
    return [tuple(draw.randint(max(2, dim.min), min(dim.max, limits[dim.__name__])) for dim in dims)
            for _ in range(count)]


def tensors(value):
    import torch

    return [value] if isinstance(value, torch.Tensor) else [t for item in value for t in tensors(item)]


def run(model, inputs, precision, **options):
    """A compiled model at all sizes; kernels are counted in the code for the first."""
    import torch
    from torch._dynamo.utils import counters
    from torch._inductor.utils import run_and_get_code

    torch._dynamo.reset()
    counters.clear()
    compiled = torch.compile(model, dynamic=True, **options)
    results, code = [], []
    with torch.no_grad(), torch.autocast("cpu", torch.bfloat16, enabled=precision == "autocast"):
        for number, arguments in enumerate(inputs):
            if number:
                results.append(compiled(*arguments))
            else:
                result, code = run_and_get_code(compiled, *arguments)
                results.append(result)
    kernels = len(re.findall(r"^ +cpp_fused\w*\(", "".join(code), re.MULTILINE))
    return Run(counters["stats"]["unique_graphs"], kernels, results)


def measure(name, case, precision, count, options):
    import ftuner.torch
    import torch

    torch.manual_seed(0)
    model = case.model.eval()
    if precision == "bf16":
        model = model.bfloat16()
    exact = copy.deepcopy(model).double()
    inputs = [case.inputs(*size) for size in sizes_of(case, count, options.largest)]
    if precision == "bf16":
        inputs = [tuple(x.bfloat16() if x.is_floating_point() else x for x in given) for given in inputs]
    ftuner.torch.reset_report()
    ours = run(model, inputs, precision, backend="ftuner",
               options={"host": "inductor", "take": options.take, "max_kernels": options.max_kernels, "attention": options.attention})
    report = ftuner.torch.report()
    plain = run(model, inputs, precision)
    worst, worst_of_eager = 0.0, FLOOR
    with torch.no_grad():
        for given, result in zip(inputs, ours.results):
            reference = exact(*(x.double() if x.is_floating_point() else x for x in given))
            with torch.autocast("cpu", torch.bfloat16, enabled=precision == "autocast"):
                eager = model(*given)
            for one, other, value in zip(*map(tensors, (result, eager, reference))):
                norm = value.norm()
                error, of_eager = (float((x.double() - value).norm() / norm) for x in (one, other))
                worst, worst_of_eager = max(worst, error), max(worst_of_eager, of_eager)
    ratio = worst / worst_of_eager
    wrong = [what for what, is_wrong in (
        ("error", not ratio <= FACTOR), ("graphs", ours.graphs > plain.graphs),
        ("kernels", ours.kernels > plain.kernels)) if is_wrong]
    return [name, precision, f"{ratio:.2f}", f"{ours.graphs} / {plain.graphs}", f"{report.taken} of {report.products}",
            f"{ours.kernels} / {plain.kernels}", ", ".join(wrong) or "ok"], report


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="*", help="default: all")
    parser.add_argument("--precisions", nargs="+", choices=PRECISIONS, default=PRECISIONS)
    parser.add_argument("--sizes", type=int, default=20)
    parser.add_argument("--largest", type=int, default=48, help="the longest sequence")
    parser.add_argument("--max-kernels", type=int, default=2)
    parser.add_argument("--take", choices=("all", "faster"), default="all")
    parser.add_argument("--attention", choices=("sdpa", "math"), default="sdpa")
    parser.add_argument("--write", metavar="FILE")
    parser.add_argument("--report", action="store_true", help="print FTuner's report of each")
    options = parser.parse_args()
    import torch_models

    unknown = set(options.models) - set(torch_models.MODELS)
    if unknown:
        parser.error(f"expected one of {', '.join(torch_models.MODELS)}, but got {', '.join(sorted(unknown))}")
    warnings.simplefilter("ignore")
    rows, is_wrong = [["model", "precision", "error / eager's", "graphs", "products", "kernels", ""]], False
    with tempfile.TemporaryDirectory() as folder:
        os.environ["TORCHINDUCTOR_CACHE_DIR"] = folder
        for name in options.models or torch_models.MODELS:
            for precision in options.precisions:
                try:
                    row, report = measure(name, torch_models.MODELS[name](), precision, options.sizes, options)
                except Exception as error:
                    row, report = [name, precision, "–", "–", "–", "–", f"{type(error).__name__}: {str(error)[:200]}"], ""
                is_wrong |= row[-1] != "ok"
                rows.append(row)
                print(" | ".join(row), flush=True)
                if options.report:
                    print(report, flush=True)
    if options.write:
        text = tables.made(rows, f", {options.sizes} sizes each, take={options.take!r}")
        pathlib.Path(options.write).write_text(text, encoding="utf-8")
    return int(is_wrong)


if __name__ == "__main__":
    sys.exit(main())
