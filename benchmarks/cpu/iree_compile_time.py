#!/usr/bin/env python3
"""Measures how long `ftuner iree` takes beside iree-compile alone, in turns, without a GPU.

An encoder layer of BERT and a decoder block of Llama, of real width, with a dynamic batch and length, as the
importer of torch-mlir writes them (bytecode with the weights in it): wall and CPU time from there to a module
for IREE's runtime, dispatches, bytes of the module, and the share of FLOPs in FTuner's dispatches. The steps of
`ftuner iree` are listed, too: IREE up to its phase, FTuner, IREE with the rest.

Medians of --repeat rounds; --json FILE writes all of them. Needs what tools/setup.sh installs.
"""

import argparse
import json
import os
import pathlib
import resource
import statistics
import subprocess
import sys
import sysconfig
import tempfile
import time

import workloads

ROOT = pathlib.Path(workloads.ROOT).resolve()
TARGET = ["--iree-hal-target-device=cuda", "--iree-cuda-target=sm_89"]
MODELS = {
    "bert": ("Bert", "float32"),
    "llama": ("Llama", "float32"),
    "llama f16": ("Llama", "float16"),
}


def export(name, path, width):
    """Writes a model of the tests, weights included."""
    sys.path[:0] = [str(ROOT / "test" / "python")]
    from iree.compiler import ir
    from iree.compiler.extras import fx_importer

    import iree_nets
    import torch

    kind, dtype = MODELS[name]
    program = iree_nets.export(
        getattr(iree_nets, kind)(width, width // 64), width, getattr(torch, dtype)
    )
    importer = fx_importer.FxImporter(context=ir.Context())
    importer.import_program(
        program.run_decompositions({}), func_name="main", import_symbolic_shape_expressions=True
    )
    with open(path, "wb") as file:
        importer.module.operation.write_bytecode(file)


def run(command):
    """Seconds of wall and CPU of a program with all that it starts."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    answer = subprocess.run([*map(str, command)], capture_output=True, text=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if answer.returncode != 0:
        sys.exit(answer.stderr)
    return {
        "wall_s": time.perf_counter() - start,
        "cpu_s": after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime,
    }, answer.stdout


def without_ftuner(source, folder):
    """IREE without FTuner."""
    module, statistics_file = folder / "alone.vmfb", folder / "alone.json"
    iree = pathlib.Path(sysconfig.get_path("scripts"), "iree-compile")
    measured, _ = run(
        [
            iree,
            source,
            *TARGET,
            "-o",
            module,
            "--iree-scheduling-dump-statistics-format=json",
            f"--iree-scheduling-dump-statistics-file={statistics_file}",
        ]
    )
    dispatches = json.loads(statistics_file.read_text())["stream-aggregate"]["execution"][
        "dispatch-count"
    ]
    return {**measured, "dispatches": dispatches, "bytes": module.stat().st_size}


def together(source, folder, options):
    measured, text = run(
        [
            sys.executable,
            "-m",
            "ftuner",
            "iree",
            source,
            "-o",
            folder / "ftuner.vmfb",
            "--json",
            f"--device={options.device}",
            *options.compiler,
        ]
    )
    report = json.loads(text)
    return {
        **measured,
        **{key: report[key] for key in ("dispatches", "ftuner_dispatches", "kernels", "bytes")},
        "share": report["functions"][0]["shares"][-1]["share"],
    }


def steps(source, folder, options):
    """Seconds of the three steps, one after the other."""
    iree = pathlib.Path(sysconfig.get_path("scripts"), "iree-compile")
    before, after = folder / "before.mlir", folder / "after.mlir"
    # FTuner does not read constants; `ftuner iree` carries them past it.
    first, _ = run(
        [
            iree,
            source,
            *TARGET,
            "--compile-to=preprocessing",
            "--mlir-print-op-generic",
            "-o",
            before,
        ]
    )
    text = before.read_bytes()
    begin = text.rfind(b"\n{-#")
    before.write_bytes(text[: begin + 1])
    second, _ = run(
        [
            pathlib.Path(workloads.BIN, "ftuner-translate"),
            before,
            "--ftuner-to-iree",
            "-o",
            after,
            f"--device={options.device}",
            *options.compiler,
        ]
    )
    with after.open("ab") as file:
        file.write(text[begin:])
    third, _ = run(
        [iree, after, *TARGET, "--compile-from=preprocessing", "-o", folder / "steps.vmfb"]
    )
    return {"to the phase": first, "FTuner": second, "the rest": third}


def median(rounds, key):
    return statistics.median(entry[key] for entry in rounds)


def measure(name, folder, options):
    source = folder / f"{name.replace(' ', '_')}.mlirbc"
    # A separate process, since torch stays in memory and keeps threads.
    subprocess.run(
        [
            sys.executable,
            __file__,
            "--export",
            name,
            "--out",
            str(source),
            f"--width={options.width}",
        ],
        check=True,
        env={**os.environ, "PYTHONWARNINGS": "ignore"},
    )
    plain, with_ftuner, parts = [], [], []
    for _ in range(options.repeat):
        plain.append(without_ftuner(source, folder))
        with_ftuner.append(together(source, folder, options))
        parts.append(steps(source, folder, options))
    ratio = median(with_ftuner, "wall_s") / median(plain, "wall_s")
    print(
        f"{name:10} IREE alone   {median(plain, 'wall_s'):6.2f} s wall {median(plain, 'cpu_s'):6.2f} s CPU, "
        f"{plain[0]['dispatches']} dispatches, {plain[0]['bytes']:,} bytes"
    )
    print(
        f"{'':10} ftuner iree  {median(with_ftuner, 'wall_s'):6.2f} s wall {median(with_ftuner, 'cpu_s'):6.2f} s CPU, "
        f"{with_ftuner[0]['dispatches']} dispatches, {with_ftuner[0]['ftuner_dispatches']} of them FTuner's with "
        f"{with_ftuner[0]['share']:.1%} of the FLOPs, {with_ftuner[0]['kernels']} kernels, {with_ftuner[0]['bytes']:,} bytes: "
        f"{ratio:.1f} times the wall time"
    )
    for part in parts[0]:
        rounds = [entry[part] for entry in parts]
        print(
            f"{'':12} {part:12} {median(rounds, 'wall_s'):6.2f} s wall {median(rounds, 'cpu_s'):6.2f} s CPU",
            flush=True,
        )
    return {"model": name, "alone": plain, "ftuner": with_ftuner, "steps": parts}


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--device", default="h200")
    parser.add_argument("--models", nargs="*", choices=MODELS, default=list(MODELS))
    parser.add_argument(
        "--width", type=int, default=768, help="64 to try this script (default: 768)"
    )
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("--export", choices=MODELS, help=argparse.SUPPRESS)
    parser.add_argument("--out", type=pathlib.Path, help=argparse.SUPPRESS)
    options, options.compiler = parser.parse_known_args()
    if options.export:
        return export(options.export, options.out, options.width)
    os.environ.setdefault("FTUNER_HOME", str(pathlib.Path(workloads.BIN).parent))
    os.environ["PYTHONPATH"] = str(ROOT / "python")
    with tempfile.TemporaryDirectory() as folder:
        rows = [measure(name, pathlib.Path(folder), options) for name in options.models]
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1), encoding="utf-8")
    return None


if __name__ == "__main__":
    main()
