"""`ftuner compile`."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from .. import compiler, descriptions, outputs
from ..api import compile
from ..module import load
from ..progress import Progress
from .common import (
    UsageError,
    add_source,
    has_standard_output,
    print_json,
    write_text,
)

_EPILOG = """\
examples:
  ftuner compile model.mlir --device h200                    into the cache, prints the path
  ftuner compile model.mlir --emulate -o libmodel.so         a library and model.h
  ftuner compile model.mlir --cubins sm_90,sm_100 --max-kernels=8 -o libmodel.so
  ftuner compile model.onnx --range batch=1:16 -o libmodel.so
  ftuner compile - --ptx - < model.mlir > model.ptx"""


def add_parser(commands: Any) -> None:
    parser: argparse.ArgumentParser = commands.add_parser(
        "compile",
        help="compile a source to a shared library",
        description="Compiles a source to a shared library that Python and C load.",
        epilog=_EPILOG,
    )
    add_source(parser)
    parser.add_argument(
        "-o",
        "--output",
        help="the library; its header, and the weights of a model of ONNX (.safetensors), lie "
        "beside it (default: in the cache)",
    )
    parser.add_argument("--emulate", action="store_true", help="kernels for the CPU, too")
    parser.add_argument("--cubins", help="processors to assemble for, such as sm_90,sm_100")
    parser.add_argument(
        "--ptx", metavar="FILE", help="write the PTX, too; - for standard output, with nothing else"
    )
    parser.add_argument("--manifest", metavar="FILE", help="write the manifest, too, or to -")
    parser.add_argument("--json", action="store_true", help="describe the result as JSON")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> None:
    is_quiet = has_standard_output(options, "ptx", "manifest")
    if options.output == outputs.STANDARD:
        raise UsageError("--output: expected the name of a library, such as libmodel.so")
    with Progress(f"compiling {options.source.name}"):
        if options.output is None:
            module = compile(
                options.source,
                device=options.device,
                emulate=options.emulate,
                cubins=options.cubins,
                **options.pipeline,
            )
        else:
            compiler.build_library(
                options.source,
                descriptions.resolve(options.device),
                compiler.read_options(options.pipeline),
                Path(options.output).absolute(),
                emulate=options.emulate,
                cubins=compiler.cubin_names(options.cubins),
            )
            module = load(options.output, _save_weights(options))
    if options.ptx:
        write_text(options.ptx, module.ptx)
    if options.manifest:
        write_text(options.manifest, module.manifest_text.decode())
    if is_quiet:
        return
    if options.json:
        print_json(
            {
                "library": str(module.library_path),
                "device": module.manifest["device"],
                "functions": [str(function.signature) for function in module.functions.values()],
                "kernels": len(module.manifest["kernels"]),
                "work": {f["name"]: f.get("work") for f in module.manifest["functions"]},
                "emulator": module.has_emulator,
                "cubins": module.architectures,
            }
        )
        return
    print(module.library_path)
    if module.weights is not None and options.output is not None:
        print(_weights_path(options))
    for function in module.functions.values():
        print(f"  {function.signature}")
    for function in module.functions.values():
        report = function.report
        if report.data:
            print(f"  {report.summary}")
        if report.warning:
            print(f"warning: {function.__name__}: {report.warning}", file=sys.stderr)


def _weights_path(options: argparse.Namespace) -> Path:
    return Path(options.output).absolute().with_suffix(".safetensors")


def _save_weights(options: argparse.Namespace) -> Path | None:
    """Writes the weights of a model beside its library; None if the source has none."""
    if options.source.weights is None:
        return None
    path = _weights_path(options)
    outputs.write({str(path): options.source.weights.to_bytes()})
    return path
