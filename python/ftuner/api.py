"""`compile`: from MLIR to a `Module`."""

from __future__ import annotations

import functools
import hashlib
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from . import compiler
from .describe import descriptions
from .errors import CacheError
from .host import cache as compile_cache
from .host import processes, runtime
from .host.memory import torch_calls
from .host.module import Module


def compile(  # noqa: A001
    source: compiler.Source,
    *,
    device: descriptions.Device | None = None,
    emulate: bool | None = None,
    cubins: Sequence[str | int] | str | None = None,
    cache: bool | None = None,
    ranges: Mapping[str, tuple[int, int | None]] | None = None,
    projections: str = "joined",
    **options: Any,
) -> Module:
    """Compiles linalg on tensors, or a model of ONNX, to a `Module` of callable functions.

    Args:
        source: MLIR as a text, or a path: an `os.PathLike`, or a str that ends in .mlir or .onnx or
            names a file. The function of a model of ONNX keeps its weights.
        device: name of a built-in device (`devices()`), path of a description, a description as a
            dict, or "cuda" ("cuda:1") for the live GPU (`query_device()`). None: the live GPU, or
            "h200", with a message in the log, if no GPU is found.
        emulate: whether the kernels are compiled for the CPU, too, for NumPy arrays and PyTorch
            tensors on the CPU. None: where no GPU is found.
        cubins: processors to assemble machine code for (`["sm_90", 100]`), beside the PTX; needs
            ptxas.
        cache: whether to use the compile cache (`ftuner.cache`). None: if its folder can be used,
            with a warning if it cannot.
        ranges: the sizes that dynamic dimensions of a model of ONNX take, by their names:
            `{"T": (1, 128)}`, or `(1, None)` without an end.
        projections: "joined" computes products of a model of ONNX that share an input, such as queries,
            keys and values, as one product where that saves a launch; "separate" keeps each.
        options: those of the pipeline with underscores: `max_kernels=8`, `cost_model="sia"`, ….
            A file counts with its content, and a compilation that writes one is not cached.

    Raises:
        CompileError: the source, the device or an option is not valid; `diagnostics` says why.
        CacheError: the cache cannot be written, and `cache` is True.
        ImportError: a model of ONNX needs the packages onnx and iree-base-compiler.
        Error: the source, the device or the calibration is a file that cannot be read.
        TypeError: an option does not exist.
    """
    if sys.modules.get("torch") is not None:
        torch_calls.build()
    text = compiler.read_source(source, ranges, projections)
    description = descriptions.resolve(device)
    if emulate is None:
        emulate = not runtime.get().has_device()
    names = compiler.cubin_names(cubins)
    pipeline = compiler.read_options(options, description, may_check=not emulate)

    def build(folder: Path) -> Mapping[str, Any]:
        library = folder / compile_cache.LIBRARY
        compiler.build_library(text, description, pipeline, library, emulate=emulate, cubins=names)
        return _describe(library, text, description, pipeline)

    def build_uncached() -> Module:
        folder = processes.temporary_folder()
        build(Path(folder.name))
        module = Module(Path(folder.name, compile_cache.LIBRARY), text.weights)
        module._owner = folder
        return module

    if cache is False or compiler.writes_files(options):
        return build_uncached()
    key = compile_cache.key_of(
        {
            "source": _hash(text),
            "device": description.text,
            "options": pipeline.identity,
            "emulate": emulate,
            "cubins": names,
            "ptxas": _ptxas_identity(),
        }
    )
    for attempt in range(3):
        try:
            entry = compile_cache.get(key, build)
        except CacheError as error:
            if cache:
                raise
            compile_cache.warn_unusable(error.__cause__ or error)
            return build_uncached()
        if attempt == 2 or entry.library.exists():
            break  # Else the entry was removed between the two.
    return Module(entry.library, text.weights)


def _describe(
    library: Path,
    text: compiler.SourceText,
    description: descriptions.Description,
    pipeline: compiler.Options,
) -> Mapping[str, Any]:
    """Writes the manifest and the PTX beside a new library; returns what to note of it."""
    module = Module(library, text.weights)
    (library.parent / compile_cache.MANIFEST).write_bytes(module.manifest_text)
    (library.parent / compile_cache.PTX).write_text(module.ptx, encoding="utf-8")
    return {
        "source": text.name,
        "device": description.name,
        "options": pipeline.arguments,
        "functions": [str(function.signature) for function in module.functions.values()],
    }


def _hash(text: compiler.SourceText) -> str:
    return hashlib.sha256(text.content).hexdigest()


def _ptxas_identity() -> list[Any]:
    """The assembler decides cubins, and the manifest's figures of registers."""
    found = compiler.find_ptxas()
    if found is None:
        return []
    status = os.stat(found)
    return [_hash_program(found, status.st_mtime_ns, status.st_size)]


@functools.cache
def _hash_program(path: str, *_: int) -> str:
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()
