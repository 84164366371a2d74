"""Lowering of torch-mlir's dialects to linalg on tensors.

Both come with the package iree-base-compiler, which is loaded when a model is imported. Passes run
in a process of their own (`worker`).
"""

from __future__ import annotations

import importlib
import io
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from ...errors import CompileError, Error
from . import worker

#: Operators that keep their form on the way to linalg, for torch-mlir decomposes them to views
#: that no longer say which dimensions were joined and split.
_KEPT = "{backend-legal-ops=aten.flatten.using_ints,aten.unflatten.int}"

TO_LINALG = "torch-backend-to-linalg-on-tensors-backend-pipeline"
FROM_PYTORCH = f"torchdynamo-export-to-torch-backend-pipeline{_KEPT}"
FROM_ONNX = f"torch-onnx-to-torch-backend-pipeline{_KEPT}"


class NotLowered(CompileError):
    """A model with an operator that torch-mlir or FTuner does not lower.

    Attributes:
        reason: without the place.
        place: of the operator in the model; None if it is not known.
    """

    def __init__(self, reason: str, place: str | None, diagnostics: str | None = None) -> None:
        words = f"cannot import the model: {reason}" + (f" ({place})" if place else "")
        super().__init__(words, words if diagnostics is None else diagnostics)
        self.reason = reason
        self.place = place


def load(module: str, needed_by: str) -> Any:
    """A module of iree.compiler. Raises `ImportError` with what is missing."""
    try:
        return importlib.import_module(f"iree.compiler.{module}")
    except ImportError as error:
        raise ImportError(f"{needed_by} needs the package iree-base-compiler: {error}") from error


def new_context() -> Any:
    """An MLIR context for an importer."""
    context = load("ir", "importing a model").Context()
    context.allow_unregistered_dialects = True
    return context


def lower_text(text: str | bytes, passes: Sequence[str]) -> str:
    """Lowers a module of the torch dialect, as text or bytecode; returns its text with its places.

    Raises `NotLowered`, in one sentence with the operator and its place in the model, where
    torch-mlir or FTuner has no lowering of it, or where torch-mlir crashes, or reaches a limit of
    time or memory (`worker.Limits`).
    """
    load("passmanager", "importing a model")
    try:
        return worker.lower(text.encode() if isinstance(text, str) else text, passes)
    except worker.Refused as refused:
        raise NotLowered(refused.reason, refused.place, refused.diagnostics) from None
    except Error as error:
        raise CompileError(str(error), str(error)) from None


def lower(module: Any, passes: Sequence[str]) -> Any:
    """Like `lower_text`, for a module that an importer made; returns another one."""
    lowered = lower_text(bytecode_of(module), passes)
    return load("ir", "importing a model").Module.parse(lowered, module.context)


def bytecode_of(module: Any) -> bytes:
    """The module as bytecode, with its places."""
    content = io.BytesIO()
    module.operation.write_bytecode(content)
    return content.getvalue()


class SymbolNames:
    """Names of sizes as symbols of MLIR: letters of ASCII, digits and `_`, each for one name."""

    def __init__(self) -> None:
        #: Given names by symbols.
        self.given: dict[str, str] = {}

    def symbol_of(self, name: str) -> str:
        symbol = re.sub(r"\W", "_", name, flags=re.ASCII)
        symbol = f"_{symbol}" if symbol[0].isdigit() else symbol
        while self.given.setdefault(symbol, name) != name:
            symbol += "_"
        return symbol


def annotate(
    module: Any,
    name: str,
    symbols: Mapping[str, str],
    shapes: Sequence[Sequence[int | str] | None],
    unsigned: Mapping[str, Sequence[int]] | None = None,
    names: Mapping[str, Sequence[str]] | None = None,
) -> None:
    """Adds names of sizes and values, and which values are unsigned.

    Args:
        module: has a function `name`.
        symbols: of the module, each with its #ukernel.range.
        shapes: of the arguments, with symbols; None for one without a shape.
        unsigned: numbers of the unsigned `arguments` and `results`.
        names: of `arguments` and `results` in the source; "" for one without a name.
    """
    ir = load("ir", "importing a model")
    function = next(op for op in module.body.operations if op.attributes["sym_name"].value == name)
    if len(function.type.inputs) != len(shapes):
        raise AssertionError("one argument for each input of the model")
    arguments = []
    for shape in shapes:
        if shape is None or all(isinstance(size, int) for size in shape):
            arguments.append("{}")
        else:
            sizes = ", ".join(json.dumps(s) if isinstance(s, str) else f"{s} : i64" for s in shape)
            arguments.append(f"{{ukernel.shape = [{sizes}]}}")
    with module.context:
        function.attributes["arg_attrs"] = ir.Attribute.parse(f"[{', '.join(arguments)}]")
        if unsigned:
            lists = ", ".join(
                f"{key} = array<i64: {', '.join(map(str, numbers))}>"
                for key, numbers in unsigned.items()
            )
            function.attributes["ukernel.unsigned"] = ir.Attribute.parse(f"{{{lists}}}")
        if names:
            lists = ", ".join(f"{key} = {json.dumps(list(each))}" for key, each in names.items())
            function.attributes["ukernel.names"] = ir.Attribute.parse(f"{{{lists}}}")
        if symbols:
            text = ", ".join(f"{symbol} = {range_}" for symbol, range_ in symbols.items())
            module.operation.attributes["ukernel.symbols"] = ir.Attribute.parse(f"{{{text}}}")


def text_of(module: Any) -> str:
    """The module with its places in the model, which messages and reports then name."""
    return str(module.operation.get_asm(enable_debug_info=True))
