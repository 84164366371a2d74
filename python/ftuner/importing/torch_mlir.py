"""Lowering of torch-mlir's dialects to linalg on tensors.

Both come with the package iree-base-compiler, which is loaded when a model is imported.
"""

from __future__ import annotations

import importlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ..errors import CompileError

#: What FTuner compiles; an operation of another dialect has no lowering.
_DIALECTS = frozenset(
    ["affine", "arith", "builtin", "cf", "complex", "func", "linalg", "math", "scf", "tensor"]
)

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


def lower(module: Any, passes: Sequence[str]) -> None:
    """Lowers a module of the torch dialect in place.

    Raises `NotLowered`, in one sentence with the operator and its place in the model, where
    torch-mlir or FTuner has no lowering of it.
    """
    ir = load("ir", "importing a model")
    manager = load("passmanager", "importing a model").PassManager
    pipeline = f"builtin.module({','.join(passes)})"
    try:
        manager.parse(pipeline, module.context).run(module.operation)
    except ir.MLIRError as error:
        raise NotLowered(*_explain(error, module), str(error)) from None
    for operation in _operations(module.operation):
        if operation.name.partition(".")[0] not in _DIALECTS:
            raise NotLowered(
                f"FTuner does not lower {operation.name}", place_of(str(operation.location))
            )


def place_of(location: str) -> str | None:
    """`FILE:LINE` of the innermost call, or the name of a node, of a printed location."""
    call = re.search(r'"([^"]+)":(\d+):\d+', location)
    if call:
        return f"{call[1]}:{call[2]}"
    name = re.match(r'loc\("([^"]+)"', location)
    return f"node {name[1]}" if name else None


def _operations(operation: Any) -> Iterator[Any]:
    """The operations inside one, each one before what is inside it."""
    for region in operation.regions:
        for block in region.blocks:
            for inner in block.operations:
                yield inner.operation
                yield from _operations(inner.operation)


def _explain(error: Any, module: Any) -> tuple[str, str | None]:
    """The first error of a pipeline and its place; `module` is what was left."""
    for diagnostic in error.error_diagnostics:
        message = str(diagnostic.message)
        # `torch.operator` stands for every operator that torch-mlir does not know.
        operator = re.search(r'name = "([\w.]+)"', message) or re.search(
            r"operation '([\w.]+)'", message
        )
        if operator and "legalize" in message:
            name, location = operator[1], diagnostic.location
            if _is_operand(name):
                # It stayed because the operator that reads it did.
                readers = (op for op in _operations(module.operation) if _is_reader(op.name))
                reader = next(readers, None)
                if reader is not None:
                    name, location = reader.name, reader.location
            name = re.sub(r"^(torch\.)?(onnx\.)?", "", name)
            return f"torch-mlir does not lower the operator {name}", place_of(str(location))
        return message.partition("\n")[0][:300], place_of(str(diagnostic.location))
    return str(error).partition("\n")[0], None


def _is_operand(name: str) -> bool:
    """Whether an operation of the torch dialect is a number or a list of them."""
    return name.startswith(("torch.constant.", "torch.prim."))


def _is_reader(name: str) -> bool:
    return name.startswith("torch.aten.") or name == "torch.operator"


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
) -> None:
    """Adds names of sizes, and which values are unsigned.

    Args:
        module: has a function `name`.
        symbols: of the module, each with its #ukernel.range.
        shapes: of the arguments, with symbols; None for one without a shape.
        unsigned: numbers of the unsigned `arguments` and `results`.
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
        if symbols:
            text = ", ".join(f"{symbol} = {range_}" for symbol, range_ in symbols.items())
            module.operation.attributes["ukernel.symbols"] = ir.Attribute.parse(f"{{{text}}}")


def text_of(module: Any) -> str:
    """The module with its places in the model, which messages and reports then name."""
    return str(module.operation.get_asm(enable_debug_info=True))
