"""Running the compiler, ftuner-translate."""

from __future__ import annotations

import hashlib
import os
import shlex
import shutil
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Union

from . import locations
from .describe import descriptions, listing
from .describe.listing import DeclaredOption, OptionFile
from .errors import CompileError, CompileWarning, Error, did_you_mean
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
    """Options of the pipeline for the command line."""

    #: Arguments with absolute paths of files, since the compiler runs in a separate folder.
    arguments: list[str]
    #: The arguments as they decide the result: hashes of contents take the place of the paths of
    #: files that are read.
    identity: list[str] = field(default_factory=list)
    #: Names that the caller gave to files, by their absolute paths.
    names: Mapping[str, str] = field(default_factory=dict)


def read_source(
    source: Source, ranges: Mapping[str, Bounds] | None = None, projections: str = "joined"
) -> SourceText:
    """Reads a path, or takes a text, also one that was read already.

    A str is a path if a file of that name exists or if it ends in .mlir or .onnx; it is never one
    if it has several lines. A file that ends in .onnx is imported, with the ranges of its sizes and
    with `projections`, "joined" or "separate" (`frontend.onnx`). Endings may be in capitals. Raises `Error` if the file cannot be read.
    """
    if isinstance(source, SourceText):
        return source
    if isinstance(source, str):
        is_path = "\n" not in source and (
            inputs.ends_in(source, ".mlir", ".onnx") or _is_file(source)
        )
        if not is_path:
            _refuse_onnx_options(ranges, projections, "a text")
            return SourceText("<source>", source.encode())
    elif not isinstance(source, os.PathLike):
        raise TypeError(f"source: expected MLIR or a path, but got {type(source).__qualname__}")
    name = os.fspath(source)
    if inputs.ends_in(name, ".onnx"):
        return SourceText.of_model(onnx.import_model(name, ranges, projections), name)
    _refuse_onnx_options(ranges, projections, f"'{name}'")
    return SourceText(name, inputs.read(name))


def _refuse_onnx_options(
    ranges: Mapping[str, Bounds] | None, projections: str, source: str
) -> None:
    if ranges:
        raise ValueError(
            f"ranges: expected a model of ONNX, but got {source}; MLIR has ukernel.symbols"
        )
    if projections != "joined":
        raise ValueError(f"projections: expected a model of ONNX, but got {source}")


def _is_file(text: str) -> bool:
    try:
        return os.path.isfile(text)
    except ValueError:  # A null byte.
        return False


def declared_options(tool: Path) -> tuple[DeclaredOption, ...]:
    """The pipeline's options, as the compiler lists them, by name."""
    return tuple(listing.options(tool).values())


def pipeline_options(tool: Path) -> frozenset[str]:
    """Names of the pipeline's options."""
    return frozenset(listing.options(tool))


def valued_options(tool: Path) -> frozenset[str]:
    """Names of those that need a value; others are on or off."""
    return frozenset(o.name for o in declared_options(tool) if o.type != "switch")


def read_options(
    options: Mapping[str, Any], device: descriptions.Description, *, may_check: bool = False
) -> Options:
    """Options of the pipeline by name: `max_kernels=8` is `--max-kernels=8`.

    None leaves an option out. Without `paths`, or with "auto", families with a gate join that
    were proven on the card at hand, if that is the device, and codegen paths and gates with a
    family that failed on it are left out (`proof.gates`); `may_check`: what has no verdict is
    checked first, before kernels run on the card. Raises `TypeError` for options that do not exist,
    and `Error` for values that are neither a file nor a built-in name where an option takes both.
    """
    given = {name: value for name, value in options.items() if value is not None}
    if given.get("paths", "auto") == "auto" and "proven_paths" not in given:
        found = gates.gates_for(device, build_family if may_check else None)
        given["proven_paths"] = ",".join(found.proven) or None
        given.setdefault("failed_paths", ",".join(found.failed) or None)
    known = {
        name: option
        for name, option in listing.options(locations.tool("ftuner-translate")).items()
        if name != "device"
    }
    arguments: list[str] = []
    identity: list[str] = []
    names: dict[str, str] = {}
    for name, value in sorted(given.items()):
        if value is None:
            continue
        flag = name.replace("_", "-")
        if flag not in known:
            names_known = sorted(option.replace("-", "_") for option in known)
            close = did_you_mean(name, names_known)
            raise TypeError(
                f"the compiler has no option {name!r}"
                + (close or f": expected one of {', '.join(names_known)}")
            )
        text = str(value).lower() if isinstance(value, bool) else str(value)
        argument = decided_by = f"--{flag}={text}"
        for file, path in _files_in(known[flag], value):
            if file.access == "command":
                decided_by += "".join(f" {_hash(word)}" for word in _files_of_command(path))
                continue
            if known[flag].builtin and not os.path.exists(path):
                built_in = ", ".join(sorted(known[flag].builtin))
                raise Error(
                    f"option --{flag}: expected a file or one of {built_in}, but got '{path}'"
                )
            absolute = os.path.abspath(path)
            names[absolute] = path
            argument = f"--{flag}={file.prefix}{absolute}"
            decided_by = (
                argument if file.access == "write" else f"--{flag}={file.prefix} {_hash(path)}"
            )
        arguments.append(argument)
        identity.append(decided_by)
    return Options(arguments, identity, names)


def _files_in(option: DeclaredOption, value: Any) -> Iterator[tuple[OptionFile, str]]:
    """The files, and the command lines, that a value names."""
    if isinstance(value, str) and value in option.builtin:
        return
    for file in option.files:
        path = file.path_in(os.fspath(value) if isinstance(value, os.PathLike) else str(value))
        if path is not None:
            yield file, path


def _named_files(options: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Accesses and paths of the files that options name, and of the words of command lines.

    Options that do not exist name none. Without a text or a path no compiler is asked.
    """
    texts = {
        name.replace("_", "-"): value
        for name, value in options.items()
        if isinstance(value, (str, os.PathLike)) and name != "device"
    }
    known = listing.options(locations.tool("ftuner-translate")) if texts else {}
    named = []
    for name, value in texts.items():
        option = known.get(name)
        if option is None:
            continue
        for file, path in _files_in(option, value):
            if file.access == "command":
                named += [("read", word) for word in _files_of_command(path)]
            else:
                named.append((file.access, path))
    return named


def _files_of_command(command: str) -> list[str]:
    """Words of a command line that are files, the program among them."""
    try:
        words = shlex.split(command)
    except ValueError:  # The compiler has words for such a command.
        return []
    found = [shutil.which(word) if not number else word for number, word in enumerate(words)]
    return [word for word in found if word and os.path.isfile(word)]


def read_files(options: Mapping[str, Any]) -> list[Path]:
    """Files whose contents decide what is compiled, in order of the options."""
    return [Path(path) for access, path in _named_files(options) if access != "write"]


def hash_files(options: Mapping[str, Any]) -> list[str]:
    """Hashes of the contents of `read_files`; empty texts for files that cannot be read."""
    return [_hash(path) for path in read_files(options)]


def writes_files(options: Mapping[str, Any]) -> bool:
    """Returns whether a compilation with these options writes a file beside its result."""
    return any(access in ("write", "update") for access, _ in _named_files(options))


def writes_anew(options: Mapping[str, Any]) -> bool:
    """Returns whether a compilation writes a file that does not only add to what it reads."""
    return any(access == "write" for access, _ in _named_files(options))


def _hash(path: str | os.PathLike[str]) -> str:
    try:
        return hashlib.sha256(Path(path).read_bytes()).hexdigest()
    except OSError:  # The compiler has words for such a file.
        return ""


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
        names = {
            f"./{path.name}": source.name,
            str(device_path): device.origin,
            **options.names,
            **(called or {}),
        }
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


def _run(command: Sequence[str], folder: Path, temporary: Path) -> tuple[int, bytes, bytes]:
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
