#!/usr/bin/env python3
"""Compiles BERT-base, BERT-large and GPT-2 at fixed batches for several devices, and checks a layer of each.

The models have their published widths and depths and random weights, which are arguments. The batch is fixed, the
length of the sequences is dynamic. For each model, batch and device there are two rows:

* the whole model to PTX: wall time and CPU time of the compiler, products, fallback kernels, kernels, bytes of PTX,
  and what is predicted at the greatest length: microseconds, the share of FLOPs and of time that uKernels have;
* one layer of the same width, also compiled for the emulator, called there at some lengths: the greatest relative
  error against PyTorch in float64, and that of PyTorch in float32. The emulator computes what the kernels do.

Exits with 1 if something does not compile or an error is too large; the other rows are still there. --write FILE
writes what is printed, with the date and the commit before it. Needs what tools/setup.sh installs.
"""

import argparse
import copy
import os
import pathlib
import resource
import sys
import time
import warnings

import reports
import workloads

ROOT = pathlib.Path(workloads.ROOT).resolve()
MODELS = ("bert_base", "bert_large", "gpt2")
LONGEST = 128
#: The error of a layer over that of PyTorch in f32: sums of another order lose more or less.
WORST_RATIO = 4


def compile_measured(exported, device, options, emulate):
    """The function, its module, and seconds of wall and CPU."""
    import ftuner

    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    module = ftuner.compile(
        exported.text, device=device, emulate=emulate, cache=False, **options.compiler
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    parameters = [tensor.detach().contiguous() for tensor in exported.parameters.values()]
    function = module.functions[exported.name].keeping(len(parameters), lambda memory: parameters)
    return function, module, time.perf_counter() - start, cpu


def whole(exported, device, options):
    """The columns of a whole model."""
    function, module, wall, cpu = compile_measured(exported, device, options, emulate=False)
    report = function.report
    share = report.data["shares"][-1]
    time_us = share["ukernel_us"] + share["fallback_us"]
    return [
        f"{wall:.1f}",
        f"{cpu:.1f}",
        str(report.products),
        str(report.fallback_kernels),
        str(module.ptx.count(".entry ")),
        f"{len(module.ptx) / 1e6:.1f}",
        f"{time_us:,.0f}",
        f"{share['flops_share']:.1%}",
        f"{share['time_share']:.1%}",
    ]


def layer(built, exported, batch, device, options):
    """The columns of a layer in the emulator."""
    import torch

    module = built.module
    function, _, wall, cpu = compile_measured(exported, device, options, emulate=True)
    exact_module = copy.deepcopy(module).double()
    torch.manual_seed(7)
    worst, worst_eager = 0.0, 0.0
    start = time.perf_counter()
    for length in options.lengths:
        inputs = built.inputs(batch, length)
        with torch.no_grad():
            exact = exact_module(*inputs)
            result, eager = (
                float((f(*inputs) - exact).norm() / exact.norm()) for f in (function, module)
            )
        # A NaN is not below the limit.
        if not result < WORST_RATIO * eager + 1e-7:
            raise ValueError(
                f"at length {length} the error is {result:.1e}, that of PyTorch {eager:.1e}"
            )
        worst, worst_eager = max(worst, result), max(worst_eager, eager)
    return [
        f"{wall:.1f}",
        f"{cpu:.1f}",
        ", ".join(map(str, options.lengths)),
        f"{worst:.1e}",
        f"{worst_eager:.1e}",
        f"{time.perf_counter() - start:.1f}",
    ]


WHOLE = (
    "model",
    "batch",
    "device",
    "wall s",
    "CPU s",
    "products",
    "fallback kernels",
    "kernels",
    "PTX MB",
    f"predicted µs at T = {LONGEST}",
    "FLOPs by uKernels",
    "time by uKernels",
)
LAYER = (
    "one layer of",
    "batch",
    "device",
    "wall s",
    "CPU s",
    "T",
    "error",
    "PyTorch's",
    "emulated s",
)


def attempt(report, names, make):
    """One row; False if there is only the reason why not."""
    import ftuner

    try:
        report.row([*names, *make()])
    except (ftuner.Error, ValueError) as error:
        report.row([*names, f"failed: {str(error).strip().splitlines()[-1]}"])
        return False
    return True


def run(options, report):
    """All rows; how many failed."""
    import full_models

    warnings.simplefilter("ignore")  # Warnings of torch.export about versions to come.
    failures = 0
    for part, columns in (("whole", WHOLE), ("layer", LAYER)):
        if part in options.skip:
            continue
        report.table(columns)
        for name in options.models:
            is_layer = part == "layer"
            built = full_models.build(name, options.layers, options.small, is_layer)
            for batch in options.batches:
                exported = full_models.export(built, batch, LONGEST)
                for device in options.devices:

                    def make():
                        if part == "whole":
                            return whole(exported, device, options)
                        return layer(built, exported, batch, device, options)

                    failures += not attempt(report, [name, str(batch), device], make)
    return failures


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--devices", nargs="*", default=["v100", "t4", "a100", "h100"])
    parser.add_argument("--models", nargs="*", choices=MODELS, default=list(MODELS))
    parser.add_argument("--batches", nargs="*", type=int, default=[16, 1])
    parser.add_argument(
        "--lengths", nargs="*", type=int, default=[1, 33], help="of sequences, in the emulator"
    )
    parser.add_argument("--layers", type=int, help="of the whole models (default: as published)")
    parser.add_argument(
        "--small", action="store_true", help="48 or 64 channels: to try this script"
    )
    parser.add_argument("--max-kernels", type=int)
    parser.add_argument(
        "--paths", help="codegen paths, separated by commas (default: all that are not gated)"
    )
    parser.add_argument("--skip", choices=("whole", "layer"), action="append", default=[])
    parser.add_argument("--write", type=pathlib.Path, metavar="FILE")
    options = parser.parse_args()
    given = {"max_kernels": options.max_kernels, "paths": options.paths}
    options.compiler = {name: value for name, value in given.items() if value is not None}
    os.environ.setdefault("FTUNER_HOME", str(pathlib.Path(workloads.BIN).parent))
    sys.path.insert(0, str(ROOT / "python"))
    report = reports.Report()
    report.line(reports.stamp())
    failures = run(options, report)
    if options.write:
        options.write.write_text(report.text, encoding="utf-8")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
