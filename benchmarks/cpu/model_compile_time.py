#!/usr/bin/env python3
"""Measures how long whole models take to compile on this machine, without a GPU.

BERT-base and GPT-2 with random weights, exported with a dynamic length of the sequence (weights are
arguments), and Dense with an open range of rows: from .mlir to PTX by ftuner-translate, its wall time,
CPU time and memory, the kernels and bytes of PTX that come out, and what the plans lose by the cost
model (the mean over all workloads of their mean regret, and the worst regret of any size).

Then torch.compile(backend="ftuner") of the two models, tensors on the CPU, attention taken apart, from an
empty cache: wall time with the first call, CPU time of PyTorch's process and of the compiler's. It is
the whole of PyTorch's tracing, too, which the column 'python' mostly is.

With --baseline-bin another set of programs does the same in turns, so that what else the machine does
meets both; --baseline-python names the folder of the package ftuner that belongs to them, where it is not
this one. Medians of --repeat runs; --json FILE writes all of them. Needs what tools/setup.sh installs;
--write FOLDER only exports the models.
"""

import argparse
import json
import os
import pathlib
import re
import resource
import statistics
import subprocess
import sys
import tempfile
import time

import workloads

ROOT = pathlib.Path(workloads.ROOT).resolve()
LENGTHS = (2, 128)
LENGTH = 16  # Tokens of the sequence that models are traced with.
MODELS = ("bert_base", "gpt2")


def build(name, options):
    """A model of benchmarks/gpu with random weights, its attention written in products and softmax."""
    sys.path[:0] = [str(options.package), str(ROOT / "benchmarks" / "gpu")]
    from ftuner_bench import models

    (model,) = [model for model in models.MODELS if model.name == name]
    module = models.build(model, options.small, options.layers)
    module.model.set_attn_implementation("eager")
    return module


def export(name, path, options):
    """Writes a model as linalg on tensors."""
    import torch

    class Causal(torch.nn.Module):
        """GPT-2 with a mask of our own: torch-mlir cannot lower how transformers makes one."""

        def __init__(self, model):
            super().__init__()
            self.model = model

        def forward(self, tokens):
            place = torch.arange(tokens.shape[1])
            mask = torch.where(place[:, None] >= place, 0.0, torch.finfo(torch.float32).min)
            return self.model(
                tokens, attention_mask=mask[None, None], position_ids=place[None]
            ).last_hidden_state

    module = build(name, options)
    if name == "gpt2":
        module = Causal(module.model)
    import ftuner.torch

    low, high = LENGTHS
    length = torch.export.Dim("T", min=low, max=high)
    tokens = torch.zeros(1, LENGTH, dtype=torch.int64)
    exported = ftuner.torch.export(module, (tokens,), dynamic_shapes=({1: length},))
    path.write_text(exported.text, encoding="utf-8")


def write_sources(folder, options):
    """The modules to compile, by what the table calls them."""
    folder.mkdir(parents=True, exist_ok=True)
    sources = {}
    for name in options.models:
        sources[name] = folder / f"{name}.mlir"
        # A separate process, since torch stays in memory and keeps threads.
        subprocess.run(
            [
                sys.executable,
                __file__,
                "--export",
                name,
                "--out",
                str(sources[name]),
                *own_options(options),
            ],
            check=True,
            env={**os.environ, "PYTHONWARNINGS": "ignore"},
        )
    dense = (ROOT / "examples" / "dense.mlir").read_text(encoding="utf-8")
    text, changed = re.subn(r"#ukernel\.range<\d+ to \d+>", "#ukernel.range<1 to ?>", dense)
    if changed != 1:
        sys.exit(f"error: expected one range in examples/dense.mlir, but got {changed}")
    sources["dense, open"] = folder / "dense_open.mlir"
    sources["dense, open"].write_text(text, encoding="utf-8")
    return sources


def own_options(options):
    return [
        f"--device={options.device}",
        *(["--small"] if options.small else []),
        *([f"--layers={options.layers}"] if options.layers else []),
    ]


def run(command, **arguments):
    """Runs a program: seconds of wall and CPU, and MiB at the peak. Exits with its words if it fails."""
    start = time.perf_counter()
    with tempfile.TemporaryFile() as words:
        process = subprocess.Popen(command, stderr=words, **arguments)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode != 0:
            words.seek(0)
            sys.exit(f"{' '.join(map(str, command))}:\n{words.read().decode(errors='replace')}")
    return {
        "wall_s": time.perf_counter() - start,
        "cpu_s": usage.ru_utime + usage.ru_stime,
        "peak_mib": usage.ru_maxrss / 1024,
    }


def compile_once(bin_dir, source, options):
    """One run from .mlir to PTX."""
    with tempfile.NamedTemporaryFile(suffix=".ptx") as ptx:
        measured = run(
            [
                bin_dir / "ftuner-translate",
                source,
                "--ftuner-to-ptx",
                f"--device={options.device}",
                "-o",
                ptx.name,
            ]
        )
        text = pathlib.Path(ptx.name).read_bytes()
    return {**measured, "kernels": len(re.findall(rb"\.entry\b", text)), "ptx_bytes": len(text)}


def regrets(bin_dir, source, options):
    """Losses of the plans by the model: mean of the workloads' means, and the worst."""
    with tempfile.NamedTemporaryFile(suffix=".json") as manifest:
        run(
            [
                bin_dir / "ftuner-translate",
                source,
                "--ftuner-to-manifest",
                f"--device={options.device}",
                "-o",
                manifest.name,
            ]
        )
        found = [
            w["statistics"]
            for w in json.loads(pathlib.Path(manifest.name).read_text())["workloads"]
        ]
    return {
        "workloads": len(found),
        "mean_regret": statistics.fmean(s["mean_regret"] for s in found),
        "worst_regret": max(s["worst_regret"] for s in found),
    }


def torch_compile_here(name, options):
    """Compiles a model with the backend in this process; prints the figures as JSON."""
    import torch

    module = build(name, options)
    import ftuner.torch

    def cpu_seconds(process):
        usage = resource.getrusage(process)
        return usage.ru_utime + usage.ru_stime

    # Not torch.compile's own: the first call of any operator sets threads and libraries up.
    tokens = torch.zeros(1, LENGTH, dtype=torch.int64)
    torch._dynamo.mark_dynamic(tokens, 1, min=LENGTHS[0], max=LENGTHS[1])
    with torch.no_grad():
        module(tokens)
        own, others = cpu_seconds(resource.RUSAGE_SELF), cpu_seconds(resource.RUSAGE_CHILDREN)
        start = time.perf_counter()
        chosen = {"device": options.device, "host": "eager", "take": "all"}
        compiled = torch.compile(module, backend="ftuner", dynamic=True, options=chosen)
        compiled(tokens)
        wall = time.perf_counter() - start
    report = ftuner.torch.report()
    if report.left or report.graphs != 1:
        sys.exit(f"error: expected one graph with all products by FTuner\n{report}")
    print(
        json.dumps(
            {
                "wall_s": wall,
                "python_s": cpu_seconds(resource.RUSAGE_SELF) - own,
                "compiler_s": cpu_seconds(resource.RUSAGE_CHILDREN) - others,
                "functions": report.compiled,
            }
        )
    )


def torch_compile_once(bin_dir, package, name, options):
    """Runs one compilation of torch.compile in a separate process.

    It uses the programs of a folder and the package that fits them.
    """
    with tempfile.TemporaryDirectory() as cache:
        environment = {
            **os.environ,
            "FTUNER_HOME": str(bin_dir.parent),
            "FTUNER_CACHE_DIR": cache,
            "FTUNER_PROGRESS": "never",
        }
        process = subprocess.run(
            [
                sys.executable,
                __file__,
                "--torch",
                name,
                "--package",
                str(package),
                *own_options(options),
            ],
            env=environment,
            capture_output=True,
            text=True,
        )
    if process.returncode != 0:
        sys.exit(process.stderr)
    return json.loads(process.stdout.splitlines()[-1])


def in_turns(programs, repeat, measure):
    """Runs `measure(folder)` for each set of programs, one after the other; all results by set."""
    runs = {name: [] for name in programs}
    for number in range(repeat):
        # The order changes, so that neither always follows the other.
        for name in list(programs)[:: -1 if number % 2 else 1]:
            runs[name].append(measure(programs[name]))
    return runs


def median(runs, key):
    return statistics.median(run[key] for run in runs)


def report_ptx(programs, sources, options):
    print(
        f"{'module':12} {'programs':9} {'wall':>8} {'CPU':>8} {'peak MiB':>9} {'kernels':>8} {'PTX MB':>7} "
        f"{'workloads':>10} {'mean regret':>12} {'worst':>8}"
    )
    rows = []
    for module, source in sources.items():
        runs = in_turns(
            programs, options.repeat, lambda folder: compile_once(folder, source, options)
        )
        for name in programs:
            lost, measured = regrets(programs[name], source, options), runs[name]
            rows.append({"module": module, "programs": name, "runs": measured, **lost})
            print(
                f"{module:12} {name:9} {median(measured, 'wall_s'):7.2f}s {median(measured, 'cpu_s'):7.2f}s "
                f"{median(measured, 'peak_mib'):9.0f} {measured[0]['kernels']:8} {measured[0]['ptx_bytes'] / 1e6:7.2f} "
                f"{lost['workloads']:10} {lost['mean_regret']:12.3%} {lost['worst_regret']:8.2%}",
                flush=True,
            )
    return rows


def report_torch(programs, options):
    usable = {
        name: folder
        for name, folder in programs.items()
        if (folder.parent / "lib/libftrt.so.1").exists()
    }
    for name in programs.keys() - usable.keys():
        print(f"torch.compile of {name} is left out: no lib/libftrt.so.1 beside {programs[name]}")
    print(
        f"{'torch.compile':14} {'programs':9} {'wall':>8} {'python':>8} {'compiler':>9} {'functions':>10}"
    )
    packages = {
        programs["these"]: options.package,
        programs.get("baseline"): options.baseline_python,
    }
    rows = []
    for model in options.models:
        runs = in_turns(
            usable,
            options.repeat,
            lambda folder: torch_compile_once(folder, packages[folder], model, options),
        )
        for name, measured in runs.items():
            rows.append({"model": model, "programs": name, "runs": measured})
            print(
                f"{model:14} {name:9} {median(measured, 'wall_s'):7.2f}s {median(measured, 'python_s'):7.2f}s "
                f"{median(measured, 'compiler_s'):8.2f}s {measured[0]['functions']:10}",
                flush=True,
            )
    return rows


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--bin-dir", type=pathlib.Path, default=pathlib.Path(workloads.BIN))
    parser.add_argument("--baseline-bin", type=pathlib.Path, help="programs to compare with")
    parser.add_argument("--baseline-python", type=pathlib.Path, default=ROOT / "python")
    parser.add_argument("--device", default="h200")
    parser.add_argument("--models", nargs="*", choices=MODELS, default=list(MODELS))
    parser.add_argument("--layers", type=int, help="12 by default, 2 with --small")
    parser.add_argument(
        "--small", action="store_true", help="64 channels instead of 768: to try this script"
    )
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--skip", choices=("ptx", "torch"), action="append", default=[])
    parser.add_argument(
        "--write", type=pathlib.Path, metavar="FOLDER", help="only write the modules there"
    )
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("--export", choices=MODELS, help=argparse.SUPPRESS)
    parser.add_argument("--out", type=pathlib.Path, help=argparse.SUPPRESS)
    parser.add_argument("--torch", choices=MODELS, help=argparse.SUPPRESS)
    parser.add_argument(
        "--package", type=pathlib.Path, default=ROOT / "python", help=argparse.SUPPRESS
    )
    options = parser.parse_args()
    if options.export:
        return export(options.export, options.out, options)
    if options.torch:
        return torch_compile_here(options.torch, options)
    if options.write:
        write_sources(options.write, options)
        return None
    programs = {"these": options.bin_dir.resolve()}
    if options.baseline_bin:
        programs["baseline"] = options.baseline_bin.resolve()
    results = {}
    if "ptx" not in options.skip:
        with tempfile.TemporaryDirectory() as folder:
            results["ptx"] = report_ptx(
                programs, write_sources(pathlib.Path(folder), options), options
            )
    if "torch" not in options.skip:
        results["torch"] = report_torch(programs, options)
    if options.json:
        options.json.write_text(json.dumps(results, indent=2), encoding="utf-8")
    return None


if __name__ == "__main__":
    main()
