"""libftuner_torch.so: FTuner's operator for programs that run packages without Python.

The package has its source only, since it is compiled against the PyTorch that a user has
(native/). What is compiled is kept in FTuner's cache.
"""

from __future__ import annotations

import os
import platform
import re
from pathlib import Path

import torch
from ftuner import locations
from ftuner.errors import Error
from ftuner.host import native_libraries

NAME = "libftuner_torch.so"

#: The oldest PyTorch whose stable ABI has what the library needs: lists and texts.
OLDEST = (2, 10)

_SOURCES = Path(__file__).parents[1] / "native"
_HEADER = "include/FTuner/Runtime/ftrt.h"


def build_library(output: str | os.PathLike[str] | None = None, cache: bool | None = None) -> Path:
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
    compiler = native_libraries.find_compiler(NAME)
    runtime = locations.find(locations.RUNTIME_LIBRARY).parent
    headers = locations.find(_HEADER).parents[2]
    torch_folder = Path(torch.__file__).parent
    command = [
        *compiler,
        *("-std=c++17", "-O2", "-fPIC", "-shared", "-fvisibility=hidden", "-Wall", "-Wextra"),
        f"-D_GLIBCXX_USE_CXX11_ABI={int(torch.compiled_with_cxx11_abi())}",
        *("-I", str(headers), "-I", str(native_libraries.HEADERS)),
        *("-isystem", str(torch_folder / "include")),
        str(_SOURCES / "ftuner_torch.cpp"),
        # The library stays loaded, since its registrations stay.
        *(f"-Wl,-soname,{NAME}", "-Wl,-z,nodelete", "-Wl,--no-as-needed"),
        *("-L", str(torch_folder / "lib"), "-ltorch", "-ltorch_cpu", "-ldl"),
        f"-Wl,-rpath,$ORIGIN:{runtime}:{torch_folder / 'lib'}",
    ]
    if output is not None:
        target = Path(output)
        native_libraries.compile_library(command, target)
        return target
    key = native_libraries.key_of(
        {
            "sources": native_libraries.sources_of(_SOURCES),
            "runtime": locations.find(_HEADER).read_text(encoding="utf-8"),
            "command": command,
            "compiler": native_libraries.version_of(compiler),
            "machine": platform.machine(),
            "torch": torch.__version__,
        }
    )
    known = native_libraries.find(key, NAME)
    return known or native_libraries.build(key, NAME, command, cache)


def _check_version() -> None:
    found = re.match(r"(\d+)\.(\d+)", torch.__version__)
    if found is None or (int(found[1]), int(found[2])) < OLDEST:
        oldest = ".".join(map(str, OLDEST))
        raise Error(f"expected PyTorch {oldest} or later for {NAME}, but got {torch.__version__}")
