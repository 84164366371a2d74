"""`ftuner compile`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO

from .. import compiler
from ..api import compile
from ..describe import descriptions
from ..errors import Error
from ..host import outputs, processes, weights
from ..host.module import Module
from ..host.progress import Progress
from .common import UsageError, add_source, has_standard_output, print_json

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
    if options.output is not None and not options.output.endswith(".so"):
        raise UsageError(
            "option --output: expected the name of a library, such as libmodel.so, "
            f"but got '{options.output}'"
        )
    files: dict[Path, bytes] = {}
    with Progress(f"compiling {options.source.name}"):
        if options.output is None:
            module = compile(
                options.source,
                device=options.device,
                emulate=options.emulate,
                cubins=options.cubins,
                cache=True,  # It is where the library is asked for.
                **options.pipeline,
            )
            library = module.library_path
        else:
            library = Path(options.output).absolute()
            module, files = _build(options, library)
    contents = [(str(path), content) for path, content in files.items()]
    if options.ptx:
        contents.append((options.ptx, module.ptx.encode()))
    if options.manifest:
        contents.append((options.manifest, module.manifest_text))
    outputs.write(contents)
    if is_quiet:
        return
    if options.json:
        print_json(
            {
                "library": str(library),
                "device": module.manifest["device"],
                "functions": [str(function.signature) for function in module.functions.values()],
                "kernels": len(module.manifest["kernels"]),
                "work": {f["name"]: f.get("work") for f in module.manifest["functions"]},
                "emulator": module.has_emulator,
                "cubins": module.architectures,
            }
        )
        return
    print(library)
    if _weights_path(library) in files:
        print(_weights_path(library))
    for function in module.functions.values():
        print(f"  {function.signature}")
    for function in module.functions.values():
        report = function.report
        if report.data:
            print(f"  {report.summary}")
        if report.warning:
            print(f"warning: {function.__name__}: {report.warning}", file=sys.stderr)


def _weights_path(library: Path) -> Path:
    return library.with_suffix(".safetensors")


def _build(options: argparse.Namespace, library: Path) -> tuple[Module, dict[Path, bytes]]:
    """The library, and the files to write: it, its header, and the weights if there are any.

    Raises `Error` if a file beside the library, which no option names, is not FTuner's.
    """
    outputs.target_of(str(library))
    source_weights = options.source.weights
    if source_weights:
        _check_own(_weights_path(library), weights.is_own, "weights")
    with processes.temporary_folder() as folder:
        device = descriptions.resolve(options.device)
        compiler.build_library(
            options.source,
            device,
            compiler.read_options(options.pipeline, device, may_check=not options.emulate),
            Path(folder, library.name),
            emulate=options.emulate,
            cubins=compiler.cubin_names(options.cubins),
        )
        module = Module(Path(folder, library.name), source_weights)
        built = {library.with_name(file.name): file.read_bytes() for file in Path(folder).iterdir()}
    for path in built:
        if path != library:
            _check_own(path, _is_own_header, "a header")
    if source_weights:
        built[_weights_path(library)] = source_weights.to_bytes()
    return module, built


def _check_own(path: Path, is_own: Callable[[BinaryIO], bool], noun: str) -> None:
    """Raises `Error` if a file is there that FTuner did not write."""
    if not path.is_file():
        return  # `outputs.write` tells what cannot be written.
    try:
        with path.open("rb") as file:
            if is_own(file):
                return
    except OSError as error:
        raise outputs.cannot_write(str(path), error.strerror) from error
    raise Error(
        f"cannot write '{path}': expected no file, or {noun} that FTuner wrote; move the one that "
        "is there, or choose another name for the library"
    )


def _is_own_header(file: BinaryIO) -> bool:
    return b" - compiled by FTuner for " in file.readline(_MAX_LINE)


_MAX_LINE = 4096
