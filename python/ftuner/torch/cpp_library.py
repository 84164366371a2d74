"""libftuner_torch.so: FTuner's operator for programs that run packages without Python.

The package has its source only, since it is compiled against the PyTorch that a user has
(native/). What is compiled is kept in FTuner's cache.
"""

from __future__ import annotations

import functools
import hashlib
import json
import os
import platform
import re
import shlex
import shutil
import tempfile
from pathlib import Path

import torch

from ftuner import cache as compile_cache
from ftuner import locations, processes
from ftuner.errors import Error

NAME = "libftuner_torch.so"

#: The oldest PyTorch whose stable ABI has what the library needs: lists and texts.
OLDEST = (2, 10)

_SOURCES = Path(__file__).parent / "native"
_HEADER = "include/FTuner/Runtime/ftrt.h"


def build_library(
    output: str | os.PathLike[str] | None = None, cache: bool | None = None
) -> Path:
    """Compiles libftuner_torch.so for this PyTorch, unless it is in the cache; returns its path.

    A program links the library, or opens it with ``dlopen``, before it loads a package. The library
    looks for libftrt.so.1, FTuner's runtime, in its own folder, and in the one where the runtime
    was when it was compiled. It runs with this PyTorch and later ones.

    Args:
        output: where to write it instead of the cache.
        cache: True makes it an error that the cache cannot be written. None warns then, and the
            library lies in a temporary folder as long as Python runs.

    Raises:
        Error: PyTorch is older than 2.10, no C++ compiler is found, or the compiler fails; the
            message has what it said.
        CacheError: the cache cannot be written, and `cache` is True.
        OSError: `output` cannot be written.
    """
    _check_version()
    compiler = _compiler()
    runtime = locations.find(locations.RUNTIME_LIBRARY).parent
    headers = locations.find(_HEADER).parents[2]
    torch_folder = Path(torch.__file__).parent
    command = [
        *compiler,
        *("-std=c++17", "-O2", "-fPIC", "-shared", "-fvisibility=hidden", "-Wall", "-Wextra"),
        f"-D_GLIBCXX_USE_CXX11_ABI={int(torch.compiled_with_cxx11_abi())}",
        *("-I", str(headers), "-isystem", str(torch_folder / "include")),
        str(_SOURCES / "ftuner_torch.cpp"),
        # What it registers stays, so the library does.
        *(f"-Wl,-soname,{NAME}", "-Wl,-z,nodelete", "-Wl,--no-as-needed"),
        *("-L", str(torch_folder / "lib"), "-ltorch", "-ltorch_cpu", "-ldl"),
        f"-Wl,-rpath,$ORIGIN:{runtime}:{torch_folder / 'lib'}",
    ]
    if output is not None:
        target = Path(output)
        _compile(command, target)
        return target
    parts = {
        "sources": {
            file.name: file.read_text(encoding="utf-8")
            for file in (*sorted(_SOURCES.iterdir()), locations.find(_HEADER))
        },
        "command": command,
        "compiler": _version_of(compiler),
        "machine": platform.machine(),
        "torch": torch.__version__,
    }
    key = hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()
    relative = Path("torch", key[:32], NAME)
    target = compile_cache.path() / relative
    shared = compile_cache.shared_path()
    for known in (target, *([shared / relative] if shared else [])):
        if known.exists():
            return known
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        _compile(command, target)
    except OSError as error:
        if cache:
            raise compile_cache.unusable(error) from error
        compile_cache.warn_unusable(error)
        return _compile_without_cache(key, tuple(command))
    return target


_temporary: list[tempfile.TemporaryDirectory[str]] = []


@functools.cache
def _compile_without_cache(key: str, command: tuple[str, ...]) -> Path:
    """The library in a folder that goes with this process."""
    folder = processes.temporary_folder()
    target = Path(folder.name, NAME)
    _compile([*command], target)
    _temporary.append(folder)
    return target


def _check_version() -> None:
    found = re.match(r"(\d+)\.(\d+)", torch.__version__)
    if found is None or (int(found[1]), int(found[2])) < OLDEST:
        oldest = ".".join(map(str, OLDEST))
        raise Error(
            f"expected PyTorch {oldest} or later for {NAME}, but got {torch.__version__}"
        )


def _compiler() -> list[str]:
    """The C++ compiler with its first arguments: `CXX`, or the first one on the path."""
    given = shlex.split(os.environ.get("CXX", ""))
    for name in given[:1] or ("c++", "g++", "clang++"):
        path = shutil.which(name)
        if path is not None:
            return [path, *given[1:]]
    looked = f"'{given[0]}', which CXX names" if given else "c++, g++ or clang++"
    raise Error(f"cannot find a C++ compiler for {NAME}: looked for {looked}")


def _version_of(compiler: list[str]) -> str:
    return processes.run([*compiler, "--version"]).stdout.decode(errors="replace")


def _compile(command: list[str], target: Path) -> None:
    """Writes all of the library or nothing, also where several processes write it."""
    with tempfile.TemporaryDirectory(prefix=".tmp-", dir=target.absolute().parent) as folder:
        written = Path(folder, NAME)
        result = processes.run([*command, "-o", str(written)], folders=[Path(folder)])
        if result.returncode != 0:
            words = result.stderr.decode(errors="replace").rstrip()
            raise Error(f"cannot compile {NAME}: {shlex.join(command)}:\n{words}")
        written.replace(target)
