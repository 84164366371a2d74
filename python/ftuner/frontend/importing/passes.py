"""Pipelines of torch-mlir on a module, and the program that runs them apart from the user's.

`worker` starts this file as a program with the path of the user's Python, so it imports nothing of
FTuner. A request is a line of JSON, with the number of bytes of the module that follows; so is its
answer, with the lowered text.
"""

from __future__ import annotations

import json
import os
import re
import resource
import sys
from collections.abc import Iterator, Sequence
from typing import Any, BinaryIO

#: Dialects that FTuner compiles; operations of other dialects have no lowering.
_DIALECTS = frozenset(
    ["affine", "arith", "builtin", "cf", "complex", "func", "linalg", "math", "scf", "tensor"]
)


class Refused(Exception):
    """An operator that torch-mlir or FTuner does not lower: reason, place and diagnostics."""

    def __init__(self, reason: str, place: str | None, diagnostics: str | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.place = place
        self.diagnostics = diagnostics


def place_of(location: str) -> str | None:
    """`FILE:LINE` of the innermost call, or the name of a node, of a printed location."""
    call = re.search(r'"([^"]+)":(\d+):\d+', location)
    if call:
        return f"{call[1]}:{call[2]}"
    name = re.match(r'loc\("([^"]+)"', location)
    return f"node {name[1]}" if name else None


def lower(module: Any, passes: Sequence[str]) -> None:
    """Lowers a module of the torch dialect in place. Raises `Refused`."""
    from iree.compiler import ir, passmanager

    pipeline = f"builtin.module({','.join(passes)})"
    try:
        passmanager.PassManager.parse(pipeline, module.context).run(module.operation)
    except ir.MLIRError as error:
        raise Refused(*_explain(error, module), str(error)) from None
    for operation in _operations(module.operation):
        if operation.name.partition(".")[0] not in _DIALECTS:
            raise Refused(
                f"FTuner does not lower {operation.name}", place_of(str(operation.location))
            )


def _operations(operation: Any) -> Iterator[Any]:
    """The operations inside one, each one before what is inside it."""
    for region in operation.regions:
        for block in region.blocks:
            for inner in block.operations:
                yield inner.operation
                yield from _operations(inner.operation)


def _explain(error: Any, module: Any) -> tuple[str, str | None]:
    """Returns the reason and the place of a pipeline's first error.

    An operator that torch-mlir cannot legalize is named by the reason; other errors are quoted.

    Args:
        error: `ir.MLIRError`.
        module: the module as the failed pipeline left it.
    """
    for diagnostic in error.error_diagnostics:
        message = str(diagnostic.message)
        # `torch.operator` stands for every operator that torch-mlir does not know.
        operator = re.search(r'name = "([\w.]+)"', message) or re.search(
            r"operation '([\w.]+)'", message
        )
        if operator and "legalize" in message:
            name, location = operator[1], diagnostic.location
            if _is_operand(name):
                # The pipeline kept the operand because it did not lower the operator that reads
                # it: name the first operator that is left.
                readers = (op for op in _operations(module.operation) if _is_reader(op.name))
                reader = next(readers, None)
                if reader is not None:
                    name, location = reader.name, reader.location
            reason = f"torch-mlir does not lower the operator {_without_dialect(name)}"
            return reason, place_of(str(location))
        return message.partition("\n")[0][:300], place_of(str(diagnostic.location))
    return str(error).partition("\n")[0], None  # An error without diagnostics.


def _is_operand(name: str) -> bool:
    """Returns true if an operation of the torch dialect gives a number or a list of numbers."""
    return name.startswith(("torch.constant.", "torch.prim."))


def _is_reader(name: str) -> bool:
    """Returns true if an operation of the torch dialect computes with such operands."""
    return name.startswith("torch.aten.") or name == "torch.operator"


def _without_dialect(name: str) -> str:
    return re.sub(r"^(torch\.)?(onnx\.)?", "", name)


def _name_of(operation: Any) -> str:
    """The name of an operation's operator, also if the dialect has no operation for it."""
    is_named = operation.name == "torch.operator" and "name" in operation.attributes
    return str(operation.attributes["name"].value) if is_named else str(operation.name)


def _is_known(operation: Any) -> bool:
    """Returns true if an operation gives a number, a list, or a tensor that is part of the module."""
    name = _name_of(operation)
    return _is_operand(name) or name in ("torch.vtensor.literal", "onnx.Constant")


def _attributes_of(operation: Any) -> dict[str, Any]:
    """The attributes by name, without attributes of arguments and results."""
    # Versions of the package differ.
    names = [item if isinstance(item, str) else item.name for item in operation.attributes]
    return {name: operation.attributes[name] for name in names if not name.endswith("_attrs")}


class _Parts:
    """The operators of a module's functions, from which modules of some of them are made."""

    def __init__(self, module: Any) -> None:
        self._module = module
        #: Operations with the function that holds them.
        self.operators = [
            (function, inner.operation)
            for function in module.body.operations
            if function.operation.name == "func.func"
            for block in function.regions[0].blocks
            for inner in block.operations
            if not _is_known(inner.operation)
            and inner.operation.name.startswith("torch.")
            and len(inner.operation.results)
            and not len(inner.operation.regions)
        ]

    def describe(self) -> list[dict[str, Any]]:
        """Name, place and form of each operator; equal forms are lowered alike."""
        return [
            {
                "name": _without_dialect(_name_of(operation)),
                "place": place_of(str(operation.location)),
                "form": self._form(operation),
            }
            for _, operation in self.operators
        ]

    def _form(self, operation: Any) -> str:
        operands = [
            str(value.owner) if _is_known_value(value) else str(value.type)
            for value in operation.operands
        ]
        attributes = [f"{name}={value}" for name, value in _attributes_of(operation).items()]
        words = [_name_of(operation), *attributes, *operands]
        return " ".join([*words, *(str(result.type) for result in operation.results)])

    def module_of(self, first: int, last: int) -> Any:
        """A module of the operators from the first to the last, which returns the result of the last."""
        from iree.compiler import ir

        function = self.operators[last][0]
        kept = [inner for owner, inner in self.operators[first : last + 1] if owner == function]
        unknown = _unknown_values(kept)
        types = [value.type for value in unknown]
        with self._module.context, ir.Location.unknown() as location:
            module = ir.Module.create()
            attributes = _attributes_of(function)
            type_ = ir.FunctionType.get(types, [result.type for result in kept[-1].results])
            attributes["function_type"] = ir.TypeAttr.get(type_)
            with ir.InsertionPoint(module.body):
                made = ir.Operation.create("func.func", attributes=attributes, regions=1)
            block = ir.Block.create_at_start(made.regions[0], types, [location] * len(types))
            copies = dict(zip(unknown, block.arguments))
            with ir.InsertionPoint(block):
                for operation in kept:
                    _copy(operation, copies)
                returned = [copies[result] for result in kept[-1].results]
                ir.Operation.create("func.return", operands=returned)
        return module


def _is_known_value(value: Any) -> bool:
    # The owner of an argument is a block.
    return hasattr(value.owner, "operands") and _is_known(value.owner)


def _unknown_values(kept: Sequence[Any]) -> list[Any]:
    """The values that operations read, and that neither they nor known operations compute."""
    given = {result for operation in kept for result in operation.results}
    found: dict[Any, None] = {}

    def visit(operation: Any) -> None:
        for value in operation.operands:
            if _is_known_value(value):
                visit(value.owner)
            elif value not in given:
                found[value] = None

    for operation in kept:
        visit(operation)
    return [*found]


def _copy(operation: Any, copies: dict[Any, Any]) -> None:
    """Copies an operation, after copies of the known operations that its operands need."""
    for value in operation.operands:
        if value not in copies:
            _copy(value.owner, copies)
    copy = operation.clone()
    for index, value in enumerate(operation.operands):
        copy.operands[index] = copies[value]
    copies.update(zip(operation.results, copy.results))


def _answer(request: dict[str, Any], content: bytes) -> tuple[dict[str, Any], bytes]:
    """The answer to a request.

    `list` describes the operators of a module; `lower` lowers it, or its operators from `first` to
    `last`.
    """
    from iree.compiler import ir

    context = ir.Context()
    context.enable_multithreading(False)  # Pipelines of one function gain nothing.
    context.allow_unregistered_dialects = True
    with context:
        module = ir.Module.parse(content)
        if request["kind"] == "list":
            return {"operators": _Parts(module).describe()}, b""
        if "first" in request:
            module = _Parts(module).module_of(request["first"], request["last"])
        try:
            lower(module, request["passes"])
        except Refused as error:
            words = {"reason": error.reason, "place": error.place, "words": error.diagnostics}
            return {"refused": words}, b""
        return {}, str(module.operation.get_asm(enable_debug_info=True)).encode()


def serve(requests: BinaryIO, answers: BinaryIO) -> None:
    """Answers requests until there are no more."""

    for line in requests:
        request = json.loads(line)
        content = requests.read(request["bytes"])
        try:
            answer, text = _answer(request, content)
        except Exception as error:  # noqa: BLE001: whatever it is, the user hears it.
            answer, text = {"failed": f"{type(error).__name__}: {error}"}, b""
        answers.write(json.dumps({**answer, "bytes": len(text)}).encode() + b"\n" + text)
        answers.flush()


def main() -> None:
    """Arguments: the descriptor of the requests, and the path of Python's modules as JSON."""
    sys.path[:] = json.loads(sys.argv[2])
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    # Text that libraries print must not mix with answers.
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    with os.fdopen(int(sys.argv[1]), "rb") as requests:
        serve(requests, answers)


if __name__ == "__main__":
    main()
