"""Libraries whose sources are in the package, compiled against the PyTorch that a user has.

What is compiled is kept in FTuner's cache.
"""

from __future__ import annotations

import functools
import hashlib
import json
import os
import shlex
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ..errors import Error
from . import cache as compile_cache
from . import processes

#: The folder of the headers that several libraries include.
HEADERS = Path(__file__).parent / "native"


def sources_of(folder: Path) -> dict[str, str]:
    """Returns the texts of a library's sources and of the common headers, by name."""
    files = [*sorted(HEADERS.iterdir()), *sorted(folder.iterdir())]
    return {file.name: file.read_text(encoding="utf-8") for file in files}


def find_compiler(name: str) -> list[str]:
    """Returns the C++ compiler with its first arguments: `CXX`, or the first one on the path.

    Raises `Error` with the library's name if it does not exist.
    """
    given = shlex.split(os.environ.get("CXX", ""))
    for program in given[:1] or ("c++", "g++", "clang++"):
        path = shutil.which(program)
        if path is not None:
            return [path, *given[1:]]
    looked = f"'{given[0]}', which CXX names" if given else "c++, g++ or clang++"
    raise Error(f"cannot find a C++ compiler for {name}: looked for {looked}")


def version_of(compiler: Sequence[str]) -> str:
    """Returns the text that the compiler prints about its version."""
    return processes.run([*compiler, "--version"]).stdout.decode(errors="replace")


def key_of(parts: Mapping[str, Any]) -> str:
    """Returns the key of a library, a hash of everything that it is made from."""
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def find(key: str, name: str) -> Path | None:
    """Returns the library in the cache, or in the one that is only read; None if neither has it."""
    shared = compile_cache.shared_path()
    for folder in (compile_cache.path(), *([shared] if shared else [])):
        path = folder / "torch" / key[:32] / name
        if path.exists():
            return path
    return None


def build(key: str, name: str, command: Sequence[str], cache: bool | None = None) -> Path:
    """Compiles a library into the cache; returns its path.

    Args:
        cache: True makes it an error that the cache cannot be written. None warns then, and the
            library lies in a temporary folder as long as Python runs.

    Raises:
        Error: the compiler fails; the message has what it said.
        CacheError: the cache cannot be written, and `cache` is True.
    """
    target = compile_cache.path() / "torch" / key[:32] / name
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        compile_library(command, target)
    except OSError as error:
        if cache:
            raise compile_cache.unusable(error) from error
        compile_cache.warn_unusable(error)
        return _compile_without_cache(key, name, tuple(command))
    return target


_temporary: list[tempfile.TemporaryDirectory[str]] = []


@functools.cache
def _compile_without_cache(key: str, name: str, command: tuple[str, ...]) -> Path:
    """Compiles the library into a folder that this process removes when it ends."""
    folder = processes.temporary_folder()
    target = Path(folder.name, name)
    compile_library(command, target)
    _temporary.append(folder)
    return target


def compile_library(command: Sequence[str], target: Path) -> None:
    """Writes all of the library or nothing, also where several processes write it."""
    with tempfile.TemporaryDirectory(prefix=".tmp-", dir=target.absolute().parent) as folder:
        written = Path(folder, target.name)
        result = processes.run([*command, "-o", str(written)], folders=[Path(folder)])
        if result.returncode != 0:
            words = result.stderr.decode(errors="replace").rstrip()
            raise Error(f"cannot compile {target.name}: {shlex.join(command)}:\n{words}")
        written.replace(target)
