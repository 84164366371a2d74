"""IREE's compiler: where it is, which versions are known to work, and what it says."""

from __future__ import annotations

import functools
import os
import re
import shutil
import sysconfig
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ...errors import CompileError, CompileWarning, Error
from ...host import processes

#: Versions that the tests run with. IREE's textual forms change from one to the next.
TESTED = ((3, 13),)
#: The first version that compiled everything when it was tried.
OLDEST = (3, 12)

# Also in pyproject.toml, as the extra `iree`.
_INSTALL = "pip install 'iree-base-compiler==3.13.*'"
_PROGRAM = "iree-compile"


@dataclass(frozen=True)
class Toolchain:
    """An `iree-compile`, and the flags of all its runs."""

    path: str
    version: str
    flags: tuple[str, ...] = ()

    def run(
        self,
        source: Path,
        output: Path,
        arguments: Sequence[str],
        *,
        title: str,
        names: Mapping[str, str],
    ) -> None:
        """Compiles a file to another; `names` are what messages call files.

        What IREE warns of is a `CompileWarning`. Raises `CompileError` with its first error if it
        fails: it prints the whole module behind each.
        """
        command = [self.path, str(source), *self.flags, *arguments, "-o", str(output)]
        try:
            run = processes.run(command)
        except OSError as error:
            raise Error(f"cannot run '{self.path}': {error.strerror}") from error
        words = run.stderr.decode(errors="replace")
        for given, name in names.items():
            words = words.replace(given, name)
        if run.returncode != 0:
            message = _first_error(words) or "it prints no error"
            if "Stack dump:" in words:
                message = f"{_PROGRAM} crashed; try it with {_WITHOUT_CONSTANTS}"
            if run.returncode < 0:
                message += f"\n{_PROGRAM} was ended by signal {-run.returncode}"
            raise CompileError(f"IREE {self.version} cannot compile {title}:\n{message}", words)
        warned = _lines(words, "warning")
        if warned:
            warnings.warn("\n".join(warned), CompileWarning, stacklevel=2)


#: While it compiles, IREE runs code that depends only on constants; this fails with foreign kernels.
_WITHOUT_CONSTANTS = "-- --iree-opt-const-eval=false"

#: Longer lines are modules.
_LONGEST_LINE = 400


#: An operator of an importer that has no lowering; `torch.operator` is any by its name.
_NOT_LOWERED = re.compile(
    r"(.*?error: )failed to legalize operation 'torch\.([\w.]+)'(?:.*?\bname = \"([\w.]+)\")?"
)


def _lines(words: str, kind: str) -> list[str]:
    """The lines of diagnostics of a kind."""
    pattern = re.compile(rf"(^|: ){kind}: ")
    return [_line(line) for line in words.splitlines() if pattern.search(line)]


def _line(line: str) -> str:
    """A line of a diagnostic; what is not lowered in words."""
    found = _NOT_LOWERED.match(line)
    if found is None:
        return line[:_LONGEST_LINE]
    place, operation, name = found.groups()
    if operation.startswith(("constant.", "prim.")):
        return f"{place}the operator that reads a torch.{operation} has no lowering"
    operator = (name if operation == "operator" and name else operation).removeprefix("torch.")
    words = f"{place}the operator {operator} has no lowering; write it with other operators"
    if operator.startswith("aten."):
        overload = operator if operator.count(".") > 1 else f"{operator}.default"
        table = f"{{torch.ops.{overload}: function}}"
        words += f", or decompose it: program.run_decompositions({table})"
    return words


def _first_error(words: str) -> str:
    """The first error with its location and the notes that follow at once."""
    errors = _lines(words, "error")
    if not errors:
        last = [line for line in words.splitlines() if line.strip()][:3]
        return "\n".join(line[:_LONGEST_LINE] for line in last)
    others = len(set(errors)) - 1
    return errors[0] + (f"\n(and {others} more)" if others else "")


def find(path: str | os.PathLike[str] | None = None) -> str:
    """The `iree-compile` at `path`, else that of this Python, else that on the search path."""
    if path is not None:
        name = os.fspath(path)
        if not os.access(name, os.X_OK) or os.path.isdir(name):
            raise Error(f"cannot run '{name}': expected the program {_PROGRAM}")
        return name
    own = os.path.join(sysconfig.get_path("scripts"), _PROGRAM)
    found = own if os.access(own, os.X_OK) else shutil.which(_PROGRAM)
    if found is None:
        raise Error(f"no {_PROGRAM} found: {_INSTALL}, or name it by --iree-compile")
    return found


def open_toolchain(
    path: str | os.PathLike[str] | None = None, flags: Sequence[str] = ()
) -> Toolchain:
    """The compiler, whose version is one that works. Warns of one that is not tested."""
    name = find(path)
    version = _version(name)
    numbers = _numbers(version)
    tested = ", ".join(_text(known) for known in TESTED)
    if numbers < OLDEST:
        raise Error(
            f"{name} is IREE {version}, which is too old: expected {_text(OLDEST)} or later, "
            f"best {tested} ({_INSTALL})"
        )
    if numbers not in TESTED:
        warnings.warn(
            f"{name} is IREE {version}; FTuner is tested with {tested}",
            CompileWarning,
            stacklevel=2,
        )
    return Toolchain(name, version, tuple(flags))


def _text(numbers: tuple[int, int]) -> str:
    return ".".join(map(str, numbers))


def _numbers(version: str) -> tuple[int, int]:
    major, minor = version.split(".")[:2]
    return int(major), int(minor)


@functools.cache
def _version(name: str) -> str:
    try:
        run = processes.run([name, "--version"])
    except OSError as error:
        raise Error(f"cannot run '{name}': {error.strerror}") from error
    found = re.search(rb"IREE compiler version (\d+\.\d+\S*)", run.stdout)
    if run.returncode != 0 or not found:
        raise Error(f"'{name}' does not tell its version: expected the program {_PROGRAM}")
    return found[1].decode()
