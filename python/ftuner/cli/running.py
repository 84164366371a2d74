"""`ftuner run`."""

from __future__ import annotations

import argparse
import io
import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from .. import locations
from ..errors import Error
from ..host import outputs, processes, runtime
from ..host.function import Function
from ..host.memory.dlpack import DeviceArray
from ..host.progress import Progress
from ..host.signature import Signature
from .common import (
    SIZES,
    Inputs,
    add_function,
    add_sizes,
    add_source,
    check_size_names,
    choose_function,
    compile_for,
    parse_shape,
    print_json,
    to_executor,
)

_EPILOG = f"""\
{SIZES}

examples:
  ftuner run examples/dense.mlir --size T=53 --check
  ftuner run model.mlir --function dense --input 0=x.npy --input 2=0.5 --save-dir results
  ftuner run model.mlir --size T=53 --executor cuda --device cuda --check"""


def add_parser(commands: Any) -> None:
    parser: argparse.ArgumentParser = commands.add_parser(
        "run",
        help="run a function, and compare it with a reference in float64",
        description="Runs a function of a compiled library, on random data or on files.",
        epilog=_EPILOG,
    )
    add_source(parser)
    add_function(parser)
    add_sizes(parser, "a size by the name of its symbol, or as ARGUMENT.DIMENSION=NUMBER")
    parser.add_argument(
        "--check", action="store_true", help="compare with upstream's lowering to loops in float64"
    )
    parser.add_argument(
        "--tolerance",
        type=float,
        help="largest relative Frobenius error that passes (default: as ftuner-run, 1e-5 for f32)",
    )
    parser.add_argument("--save-dir", help="folder for result0.npy, result1.npy, …")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    sizes = parse_shape(options.size)
    check_size_names(options.source, sizes)
    function = choose_function(compile_for(options), options.function)
    args = Inputs(function.signature, options.input, options.seed).make(sizes)
    given = to_executor(args, options)
    begin = time.perf_counter()
    results = function(*given)
    if options.executor == "cuda":
        runtime.get().synchronize(0)
    seconds = time.perf_counter() - begin
    results = [
        result.numpy() if isinstance(result, DeviceArray) else result
        for result in (results if isinstance(results, tuple) else (results,))
    ]
    errors = _errors(options, function, args, results) if options.check else None
    files = _save(options.save_dir, results) if options.save_dir else []
    return _report(options, function.signature, results, errors, files, seconds)


def _report(
    options: argparse.Namespace,
    signature: Signature,
    results: Sequence[Any],
    errors: list[tuple[float, float]] | None,
    files: list[str],
    seconds: float,
) -> int:
    """Prints what came out; 1 if a result is wrong."""
    entries = []
    is_right = True
    for index, (value, result) in enumerate(zip(signature.results, results)):
        entry: dict[str, Any] = {"type": value.type.name, "shape": list(result.shape)}
        if errors is not None:
            error, tolerance = errors[index]
            ok = bool(error <= tolerance)
            is_right &= ok
            entry |= {"relative_error": error, "tolerance": tolerance, "ok": ok}
        if files:
            entry["file"] = files[index]
        entries.append(entry)
    if options.json:
        print_json(
            {
                "function": signature.name,
                "executor": options.executor,
                "results": entries,
                "seconds": seconds,
            }
        )
    else:
        print(f"{signature} by {options.executor}")
        for index, entry in enumerate(entries):
            sizes = "x".join(str(size) for size in (*entry["shape"], entry["type"]))
            line = f"  result {index}: {sizes}"
            if errors is not None:
                line += (
                    f", relative error {errors[index][0]:.3g} (tolerance {entry['tolerance']:g})"
                )
                line += "" if entry["ok"] else ", WRONG"
            if files:
                line += f", saved as {entry['file']}"
            print(line)
        print(f"  seconds: {seconds:.3f}")
    if not is_right:
        raise Error("results differ from the reference")
    return 0


def _errors(
    options: argparse.Namespace, function: Function, args: Sequence[Any], results: Sequence[Any]
) -> list[tuple[float, float]]:
    """Relative Frobenius error of each result against ftuner-run's reference, and its tolerance."""
    with processes.temporary_folder() as folder, Progress("checking"):
        items = []
        everything = zip(function.full_signature.arguments, function.all_arguments(args))
        for index, (value, arg) in enumerate(everything):
            if not value.is_tensor:
                items.append(str(arg).lower() if isinstance(arg, bool) else repr(arg))
                continue
            path = Path(folder, f"{index}.npy")
            np.save(path, arg.view(np.uint16) if value.type.name == "bf16" else arg)
            sizes = "x".join(str(size) for size in (*arg.shape, value.type.name))
            items.append(f"{sizes}@{path}")
        source = Path(folder, "source.mlir")
        source.write_bytes(options.source.content)
        command = [
            str(locations.tool("ftuner-run")),
            str(source),
            f"--function={function.signature.name}",
            "--executor=reference",
            f"--save-dir={folder}/reference",
            "--json",
        ]
        if "precision" in options.pipeline:
            # It decides over the tolerance.
            command.append(f"--precision={options.pipeline['precision']}")
        if items:
            command.append("--args=" + ",".join(items))
        run = processes.run(command, folders=[Path(folder)])
        if run.returncode != 0:
            words = run.stderr.decode(errors="replace").replace(str(source), options.source.name)
            raise Error(f"the reference failed: {words.strip()}")
        entries = json.loads(run.stdout)["results"]
        references = [np.load(entry["file"]) for entry in entries]
    return [
        (
            relative_error(
                result, reference.view(result.dtype) if value.type.name == "bf16" else reference
            ),
            entry["tolerance"] if options.tolerance is None else options.tolerance,
        )
        for value, result, reference, entry in zip(
            function.signature.results, results, references, entries
        )
    ]


def relative_error(result: Any, reference: Any) -> float:
    """Frobenius norm of the difference over that of the reference; infinite for other shapes."""
    if result.shape != reference.shape:
        return float("inf")
    got, wanted = result.astype(np.float64), reference.astype(np.float64)
    # Equal infinities, or NaN in both, are not a difference.
    same = (got == wanted) | (np.isnan(got) & np.isnan(wanted))
    with np.errstate(invalid="ignore"):
        difference = np.where(same, 0.0, got - wanted)
    if not np.isfinite(difference).all():
        return float("inf")
    norm = float(np.linalg.norm(difference))
    scale = float(np.linalg.norm(np.where(np.isfinite(wanted), wanted, 0.0)))
    return norm / scale if scale else norm


def _save(folder: str, results: Sequence[Any]) -> list[str]:
    path = Path(folder)
    path.mkdir(parents=True, exist_ok=True)
    files = {}
    for index, result in enumerate(results):
        content = io.BytesIO()
        np.save(content, result)
        files[str(path / f"result{index}.npy")] = content.getvalue()
    outputs.write(files)
    return [*files]
