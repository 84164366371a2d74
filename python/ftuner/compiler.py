"""Running the compiler, ftuner-translate."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import os
import shlex
import shutil
import threading
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Callable, Iterable, Mapping, Sequence, Union

from . import locations
from .describe import descriptions, listing
from .errors import CompileError, CompileWarning, Error
from .frontend import onnx
from .frontend.onnx import Bounds
from .host import inputs, processes
from .host.progress import Progress, is_reported
from .host.weights import Weights
from .proof import gates
from .proof.families import Family


@dataclass(frozen=True)
class SourceText:
    """A module that the compiler reads.

    Attributes:
        name: what diagnostics call it.
        content: MLIR.
        weights: the last arguments of the function of an imported model.
        explain: of the name and what the compiler printed, a sentence about an imported model; None
            if there is none.
    """

    name: str
    content: bytes
    weights: Weights | None = None
    explain: Callable[[str, str], str | None] = lambda name, text: None

    @staticmethod
    def of_model(model: onnx.OnnxModel, name: str = "model.onnx") -> SourceText:
        """An imported model."""
        return SourceText(name, model.text.encode(), model.weights, model.explain)


Source = Union[str, "os.PathLike[str]", SourceText]


@dataclass(frozen=True)
class Options:
    """Options of the pipeline for the command line, and the calibration if they name a file."""

    arguments: list[str]
    calibration: SourceText | None = None


def read_source(source: Source, ranges: Mapping[str, Bounds] | None = None) -> SourceText:
    """Reads a path, or takes a text, also one that was read already.

    A str is a path if a file of that name exists or if it ends in .mlir or .onnx; it is never one
    if it has several lines. A file that ends in .onnx is imported, with the ranges of its sizes
    (`frontend.onnx`). Endings may be in capitals. Raises `Error` if the file cannot be read.
    """
    if isinstance(source, SourceText):
        return source
    if isinstance(source, str):
        is_path = "\n" not in source and (
            inputs.ends_in(source, ".mlir", ".onnx") or _is_file(source)
        )
        if not is_path:
            _refuse_ranges(ranges, "a text")
            return SourceText("<source>", source.encode())
    elif not isinstance(source, os.PathLike):
        raise TypeError(f"source: expected MLIR or a path, but got {type(source).__qualname__}")
    name = os.fspath(source)
    if inputs.ends_in(name, ".onnx"):
        return SourceText.of_model(onnx.import_model(name, ranges), name)
    _refuse_ranges(ranges, f"'{name}'")
    return SourceText(name, inputs.read(name))


def _refuse_ranges(ranges: Mapping[str, Bounds] | None, source: str) -> None:
    if ranges:
        raise ValueError(
            f"ranges: expected a model of ONNX, but got {source}; MLIR has ukernel.symbols"
        )


def _is_file(text: str) -> bool:
    try:
        return os.path.isfile(text)
    except ValueError:  # A null byte.
        return False


@dataclass(frozen=True)
class DeclaredOption:
    """An option of the pipeline, as whoever reads it declares it."""

    name: str
    #: "switch", "integer", "number" or "string".
    type: str
    #: One line with bounds, default and readers.
    help: str


@functools.cache
def declared_options(tool: Path) -> tuple[DeclaredOption, ...]:
    """The pipeline's options, as the compiler lists them, by name."""
    return tuple(
        DeclaredOption(*(str(option[key]) for key in listing.OPTION_FIELDS))
        for option in listing.listed(tool)["options"]
    )


def pipeline_options(tool: Path) -> frozenset[str]:
    """Names of the pipeline's options."""
    return frozenset(option.name for option in declared_options(tool))


def valued_options(tool: Path) -> frozenset[str]:
    """Names of those that need a value; others are on or off."""
    return frozenset(o.name for o in declared_options(tool) if o.type != "switch")


def read_options(
    options: Mapping[str, Any], device: descriptions.Description, *, may_check: bool = False
) -> Options:
    """Options of the pipeline by name: `max_kernels=8` is `--max-kernels=8`.

    None leaves an option out. Without `paths`, or with "auto", families behind a gate join that
    were proven on the card at hand, if that is the device, and codegen paths and gates with a
    family that failed on it are left out (`proof.gates`); `may_check`: what has no verdict is
    checked first, before kernels run on the card. Raises `TypeError` for
    options that do not exist, and `Error` for a calibration that is no built-in one and no file
    that can be read.
    """
    arguments = []
    calibration = None
    given = {name: value for name, value in options.items() if value is not None}
    if given.get("paths", "auto") == "auto" and "proven_paths" not in given:
        found = gates.gates_for(device, build_family if may_check else None)
        given["proven_paths"] = ",".join(found.proven) or None
        given.setdefault("failed_paths", ",".join(found.failed) or None)
    for name, value in sorted(given.items()):
        if value is None:
            continue
        flag = name.replace("_", "-")
        known = pipeline_options(locations.tool("ftuner-translate")) - {"device"}
        if flag not in known:
            names = ", ".join(sorted(option.replace("-", "_") for option in known))
            raise TypeError(f"expected an option of the compiler ({names}), but got {name!r}")
        if flag == "calibration" and isinstance(value, (str, os.PathLike)):
            calibration = _read_calibration(value)
            if calibration is not None:
                continue
        if isinstance(value, bool):
            value = str(value).lower()
        elif flag in _FILES and not _is_builtin_predictor(flag, value):
            value = _absolute(str(value), _FILES[flag])
        arguments.append(f"--{flag}={value}")
    return Options(arguments, calibration)


#: Options that name a file, behind this prefix: the compiler runs in a folder of its own.
_FILES = {
    "learned-model": "", "measure-log": "", "measurer": "recorded:", "save-model": "", "transfer-from": "",
}  # fmt: skip


def _values(options: Mapping[str, Any]) -> dict[str, str]:
    """Options that are given, as the compiler calls them."""
    return {
        name.replace("_", "-"): str(value) for name, value in options.items() if value is not None
    }


def read_files(options: Mapping[str, Any]) -> list[Path]:
    """Files whose contents decide what is compiled, beside a calibration, in order of the options.

    Words of a measurer's command are files, too, where there are some of their names.
    """
    values = _values(options)
    files = [
        Path(values[name].removeprefix(prefix))
        for name, prefix in _FILES.items()
        if name != "save-model"
        and values.get(name, "").startswith(prefix)
        and values.get(name)
        and not _is_builtin_predictor(name, values[name])
    ]
    measurer, _, command = values.get("measurer", "").partition(":")
    if measurer == "command":
        with contextlib.suppress(ValueError):  # The compiler has words for such a command.
            words = shlex.split(command)
            found = [shutil.which(word) if not number else word for number, word in enumerate(words)]
            files += [Path(word) for word in found if word and os.path.isfile(word)]
    return files


def hash_files(options: Mapping[str, Any]) -> list[str]:
    """Hashes of the contents of `read_files`; empty texts for files that cannot be read."""
    hashes = []
    for path in read_files(options):
        try:
            hashes.append(hashlib.sha256(path.read_bytes()).hexdigest())
        except OSError:
            hashes.append("")
    return hashes


def writes_files(options: Mapping[str, Any]) -> bool:
    """Returns whether a compilation with these options writes a file beside its result."""
    values = _values(options)
    return bool(values.get("save-model") or values.get("measure-log") and values.get("measurer"))


def _is_builtin_predictor(flag: str, value: Any) -> bool:
    """Whether the value is the name of a predictor that is part of the compiler, rather than a file."""
    names = {path.stem for path in locations.find(locations.PREDICTORS).glob("*.predictor")}
    return flag == "learned-model" and isinstance(value, str) and value in names


def _absolute(value: str, prefix: str) -> str:
    """The value with the path behind its prefix made absolute; as it is if it has another one."""
    name = value.removeprefix(prefix)
    is_file = bool(name) and value.startswith(prefix)
    return prefix + os.path.abspath(name) if is_file else value


def _read_calibration(calibration: str | os.PathLike[str]) -> SourceText | None:
    """The calibration at a path; None for the name of a built-in one, and for the device's own."""
    name = os.fspath(calibration)
    builtin = {path.stem for path in locations.find(locations.CALIBRATIONS).glob("*.json")}
    if isinstance(calibration, str) and name in {"", *builtin}:
        return None
    try:
        return SourceText(name, Path(name).read_bytes())
    except FileNotFoundError:
        raise Error(
            f"unknown calibration '{name}': expected the path of a JSON file or one of "
            + ", ".join(sorted(builtin))
        ) from None
    except OSError as error:
        raise Error(f"cannot read calibration file '{name}': {error.strerror}") from error


def translate(
    source: SourceText,
    device: descriptions.Description,
    options: Options,
    arguments: Sequence[str],
    called: Mapping[str, str] | None = None,
) -> str:
    """Runs ftuner-translate on a source; returns its standard output.

    Paths of `arguments` must be absolute; `called` is what messages call them. What is compiled and
    printed names places by the source's file without its folder, so it is the same wherever the
    file lies. What else the compiler prints is a `CompileWarning`, or part of the `CompileError`
    that is raised if it fails.
    """
    tool = locations.tool("ftuner-translate")
    with processes.temporary_folder() as temporary:
        path = Path(temporary, "input", os.path.basename(source.name))
        path.parent.mkdir()
        path.write_bytes(source.content)
        device_path = Path(temporary, "device.json")
        device_path.write_text(device.text, encoding="utf-8")
        command = [str(tool), f"./{path.name}", f"--device={device_path}", *options.arguments]
        command += arguments
        names = {f"./{path.name}": source.name, str(device_path): device.origin, **(called or {})}
        if options.calibration is not None:
            calibration_path = Path(temporary, "calibration.json")
            calibration_path.write_bytes(options.calibration.content)
            command.append(f"--calibration={calibration_path}")
            names[str(calibration_path)] = options.calibration.name
        with Progress(f"compiling {source.name}"):
            code, printed, words = _run(command, path.parent, Path(temporary))
        # Messages name what the caller named.
        text = words.decode(errors="replace")
        for given, name in names.items():
            text = text.replace(given, name)
    if code != 0:
        if code < 0:
            text += f"the compiler was ended by signal {-code}\n"
        message = source.explain(source.name, text)
        raise CompileError(message or f"cannot compile {source.name}:\n{text.rstrip()}", text)
    if text.strip():
        warnings.warn(text.rstrip(), CompileWarning, stacklevel=2)
    return without_folder(printed.decode(), source)


def without_folder(text: str, source: SourceText) -> str:
    """Returns the compiler's output for a source, with locations that name only the file."""
    name = os.path.basename(source.name)
    return text.replace(f"./{name}", name)


def _run(
    command: Sequence[str], folder: Path, temporary: Path
) -> tuple[int, bytes, bytes]:
    """Runs the compiler and tells its stages; returns its code and what it printed.

    Its temporary files, and those of the programs that it runs, are in the folder `temporary`, so
    that they go with it however this ends.
    """
    words: list[bytes] = []

    def listen(lines: Iterable[bytes]) -> None:
        for line in lines:
            if line.startswith(b"progress: "):
                Progress.begin_stage(line.decode(errors="replace").strip()[len("progress: ") :])
            else:
                words.append(line)

    options = ["--progress"] if is_reported() else []
    with processes.Child(
        [*command, *options],
        cwd=folder,
        env={**os.environ, "TMPDIR": str(temporary)},
        folders=[temporary],
    ) as child:
        process = child.process
        listener = threading.Thread(target=listen, args=(process.stderr,), daemon=True)
        listener.start()
        printed = process.stdout.read() if process.stdout else b""
        listener.join()
    return process.returncode, printed, b"".join(words)


def build_library(
    source: SourceText,
    device: descriptions.Description,
    options: Options,
    output: Path,
    *,
    emulate: bool,
    cubins: Sequence[str] = (),
) -> None:
    """Compiles a source to the shared library `output`, with its header beside it.

    Messages name the library without its folder.
    """
    arguments = ["--ftuner-to-library", "-o", str(output)]
    if emulate:
        arguments.append("--emulator")
    if cubins:
        arguments.append("--cubins=" + ",".join(cubins))
    translate(source, device, options, arguments, {str(output): output.name})


def build_family(
    family: Family, device: descriptions.Description, output: Path, cubins: Sequence[str]
) -> None:
    """Compiles a family of a proof, whose text has the plan, to a library for GPUs."""
    source = SourceText(f"{family.symbol}.mlir", family.text().encode())
    build_library(source, device, Options([]), output, emulate=False, cubins=cubins)


def cubin_names(cubins: Sequence[str | int] | str | None) -> list[str]:
    """`[90, "sm_100"]` as names of processors; the compiler checks them."""
    if cubins is None:
        return []
    if not isinstance(cubins, (str, Sequence)):
        raise TypeError(f"cubins: expected a list of processors, but got {cubins!r}")
    given = cubins.split(",") if isinstance(cubins, str) else cubins
    return [f"sm_{cubin}" if isinstance(cubin, int) else str(cubin).strip() for cubin in given]


def find_ptxas() -> str | None:
    """The assembler that the compiler would use (docs/manifest.md)."""
    found = shutil.which("ptxas")
    if found:
        return found
    path = Path(os.environ.get("CUDA_HOME", "/usr/local/cuda"), "bin", "ptxas")
    return str(path) if path.exists() else None
