"""Models of several formats as files that iree-compile reads."""

from __future__ import annotations

import importlib.util
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...errors import CompileError, Error
from ...host import inputs, processes
from ...host.progress import Progress

#: Suffixes of paths, also in capitals.
SUFFIXES = (".mlir", ".mlirbc", ".onnx", ".pt2")

# Name that importers give to models of PyTorch, since they are not named.
_FUNCTION = "main"


@dataclass(frozen=True)
class Model:
    """A model as MLIR.

    Attributes:
        name: what messages call it.
        path: of the file.
        parameters: the archive of its weights, if they are not in the file.
        is_imported: whether an importer wrote the file, and not the user.
    """

    name: str
    path: Path
    parameters: Path | None = None
    is_imported: bool = True

    def has_own_attributes(self) -> bool:
        """Returns whether it is linalg with FTuner's attributes, which IREE does not know."""
        return not self.is_imported and b"ukernel." in self.path.read_bytes()


def name_of(model: Any) -> str:
    if isinstance(model, (str, os.PathLike)):
        return os.fspath(model)
    return f"<{type(model).__name__}>"


def parameters_suffix(model: Any) -> str:
    """Returns the suffix of a file of the model's weights; empty if the model holds them."""
    if not isinstance(model, (str, os.PathLike)) or inputs.ends_in(model, ".pt2"):
        return ".safetensors"
    return ".irpa" if inputs.ends_in(model, ".onnx") else ""


def prepare(
    model: Any,
    folder: Path,
    parameters: Path,
    *,
    args: tuple[Any, ...] | None,
    kwargs: dict[str, Any] | None,
    dynamic_shapes: Any,
    attention: str,
) -> Model:
    """Imports a model into a folder, its weights to `parameters` where they are not part of it."""
    if isinstance(model, (str, os.PathLike)):
        if args is not None or kwargs is not None or dynamic_shapes is not None:
            raise TypeError("args, kwargs and dynamic_shapes: expected none for a file")
        name = os.fspath(model)
        if not inputs.ends_in(name, *SUFFIXES):
            raise Error(f"expected a model that ends in {', '.join(SUFFIXES)}, but got '{name}'")
        if not os.path.isfile(name):
            raise Error(f"cannot read '{name}': No such file")
        if inputs.ends_in(name, ".mlir", ".mlirbc"):
            return Model(name, Path(name), is_imported=False)
        if inputs.ends_in(name, ".onnx"):
            return _import_onnx(name, folder, parameters)
    # A caller with a model of PyTorch has imported PyTorch.
    torch = sys.modules.get("torch")
    if isinstance(model, (str, os.PathLike)):
        _need("PyTorch", _FOR_TORCH)
        Progress.begin_stage("PyTorch: reading the program")
        from . import exported

        program = exported.load(os.fspath(model))
    elif torch is not None and isinstance(model, (torch.nn.Module, torch.export.ExportedProgram)):
        _need("PyTorch", _FOR_TORCH)
        Progress.begin_stage("PyTorch: exporting")
        from . import exported

        program = exported.export(model, args, kwargs, dynamic_shapes)
    else:
        raise TypeError(
            "model: expected a path, a torch.nn.Module or a torch.export.ExportedProgram, "
            f"but got {type(model).__qualname__}"
        )
    Progress.begin_stage("IREE: importing")
    path, has_weights = exported.write(
        program, folder, parameters, attention=attention, name=_FUNCTION
    )
    return Model(name_of(model), path, parameters if has_weights else None)


def _need(kind: str, packages: dict[str, str]) -> None:
    """Raises `Error` if a module of a package is missing."""
    for module, package in packages.items():
        try:
            is_there = importlib.util.find_spec(module) is not None
        except ModuleNotFoundError:
            is_there = False
        if not is_there:
            raise Error(f"models of {kind} need the package {package}: pip install {package}")


_FOR_TORCH = {"torch": "torch", "iree.compiler.extras.fx_importer": "iree-base-compiler"}
_FOR_ONNX = {
    "iree.compiler": "iree-base-compiler",
    "onnx": "onnx",
    # It writes the weights.
    "iree.runtime": "iree-base-runtime",
}

#: Operators before this set are of other forms than the importer knows.
_OPSET = 17


def _import_onnx(name: str, folder: Path, parameters: Path) -> Model:
    """Imports a model by IREE's importer, in a separate process that leaves no files."""
    _need("ONNX", _FOR_ONNX)
    Progress.begin_stage("IREE: importing")
    path = folder / "model.mlir"
    command = [
        *(sys.executable, "-m", "iree.compiler.tools.import_onnx", name),
        *("-o", str(path), f"--opset-version={_OPSET}", "--externalize-params"),
        *("--params-scope=model", f"--save-params-to={parameters}"),
    ]
    run = processes.run(command)
    if run.returncode != 0:
        words = run.stderr.decode(errors="replace")
        lines = words.strip().splitlines() or ["it prints no error"]
        raise CompileError(f"IREE cannot import {name}:\n{lines[-1][:400]}", words)
    # The form that IREE can put into the module.
    text = path.read_text(encoding="utf-8")
    path.write_text(
        text.replace("#stream.parameter.named<", "#flow.parameter.named<"), encoding="utf-8"
    )
    has_weights = parameters.exists() and parameters.stat().st_size > 0
    return Model(name, path, parameters if has_weights else None)
