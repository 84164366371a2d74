"""Whole models through torch.export and the importer of torch-mlir.

The importer and its lowering to linalg come with the package iree-base-compiler,
which only this module needs. Parameters and buffers are arguments of the function
behind those of the model, so that weights are neither copied into the text nor
into kernels.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind

import ftuner

from . import decompositions, views
from . import layout as lay
from .importer import range_of
from .linalg import Range

_PIPELINE = (
    "builtin.module("
    "torchdynamo-export-to-torch-backend-pipeline"
    "{backend-legal-ops=aten.flatten.using_ints,aten.unflatten.int},"
    "torch-backend-to-linalg-on-tensors-backend-pipeline)"
)


@dataclass(frozen=True)
class ExportedModel:
    """A model as linalg on tensors.

    Attributes:
        text: MLIR with one function, for `ftuner.compile`.
        name: of the function.
        parameters: parameters and buffers by their names in the model, in the
            order of the function's last arguments.
    """

    text: str
    name: str
    parameters: dict[str, torch.Tensor]

    def compile(self, **options: Any) -> Callable[..., Any]:
        """The compiled model, which takes what the model takes: tensors, in order.

        Those in tuples, lists and dicts are arguments of their own, and results that are nested
        are one tuple.

        Options are those of `ftuner.compile`.
        """
        function = ftuner.compile(self.text, **options).functions[self.name]
        parameters = [tensor.detach().contiguous() for tensor in self.parameters.values()]

        def call(*arguments: torch.Tensor) -> Any:
            with torch.no_grad():
                return function(*arguments, *parameters)

        return call

    def __str__(self) -> str:
        return self.text


class _Functional(torch.nn.Module):
    """The model with its parameters and buffers as arguments."""

    def __init__(self, model: torch.nn.Module) -> None:
        super().__init__()
        # Not a submodule, or the parameters would be exported with it.
        self._model = [model]

    def forward(self, arguments: tuple[Any, ...], state: dict[str, torch.Tensor]) -> Any:
        return torch.func.functional_call(self._model[0], state, arguments)


def export(
    model: torch.nn.Module,
    args: tuple[Any, ...],
    *,
    dynamic_shapes: tuple[Any, ...] | list[Any] | None = None,
    name: str = "main",
) -> ExportedModel:
    """Imports a model as `ftuner.compile` takes it, with ranges of its sizes.

    Args:
        model: a module that `torch.export.export` takes.
        args: example arguments; tensors, also nested in tuples, lists and dicts.
        dynamic_shapes: as for torch.export.export, one entry for each argument.
            A `torch.export.Dim("T", min=1, max=128)` becomes the symbol T.
        name: of the function.

    Raises:
        ImportError: iree-base-compiler is not installed.
        ValueError: the model changes its parameters or arguments.
        ftuner.CompileError: torch-mlir does not lower an operator of the model.
    """
    try:
        from iree.compiler import ir, passmanager
        from iree.compiler.extras import fx_importer
    except ImportError as error:
        raise ImportError(
            f"ftuner.torch.export needs the package iree-base-compiler: {error}"
        ) from error

    state = {
        key: tensor.detach()
        for key, tensor in [*model.named_parameters(), *model.named_buffers()]
    }
    shapes = None
    if dynamic_shapes is not None:
        shapes = (tuple(dynamic_shapes), {key: None for key in state})
    with torch.no_grad():
        program = torch.export.export(
            _Functional(model), (tuple(args), state), dynamic_shapes=shapes
        ).run_decompositions(decompositions.table())
    _check_signature(program)
    views.rewrite_views(program.graph)
    symbols, types = _argument_shapes(program, args, dynamic_shapes)
    with ir.Context() as context:
        context.allow_unregistered_dialects = True
        importer = fx_importer.FxImporter(context=context)
        try:
            importer.import_program(program, func_name=name)
            module = importer.module
            passmanager.PassManager.parse(_PIPELINE, context).run(module.operation)
        except (ir.MLIRError, NotImplementedError, ValueError, KeyError) as error:
            raise ftuner.CompileError(
                f"torch-mlir cannot import the model: {error}", str(error)
            ) from error
        _annotate(ir, module, name, symbols, types)
        return ExportedModel(str(module), name, state)


def _check_signature(program: ExportedProgram) -> None:
    """Functions write to no argument."""
    signature = program.graph_signature
    changed = [*signature.buffers_to_mutate.values(), *signature.user_inputs_to_mutate.values()]
    if changed:
        raise ValueError(f"expected a model that changes nothing, but it writes {changed[0]}")


def _argument_shapes(
    program: ExportedProgram, args: tuple[Any, ...], dynamic_shapes: Any
) -> tuple[dict[str, Range], list[list[int | str] | None]]:
    """The symbols of the program with their ranges, and the shape of each argument."""
    user_inputs = {
        spec.arg.name
        for spec in program.graph_signature.input_specs
        if spec.kind == InputKind.USER_INPUT
    }
    values = [
        node.meta.get("val")
        for node in program.graph.nodes
        if node.op == "placeholder" and node.name in user_inputs
    ]
    names = _symbol_names(values, args, dynamic_shapes)
    symbols: dict[str, Range] = {}
    shapes: list[list[int | str] | None] = []
    for value in values:
        if not isinstance(value, torch.Tensor):
            shapes.append(None)
            continue
        shape: list[int | str] = []
        for size in value.shape:
            extent = lay.extent_of(size)
            if isinstance(extent, int):
                shape.append(extent)
                continue
            symbol = names.get(extent, str(extent))
            symbol = symbol if symbol.isidentifier() else f"e{len(symbols)}"
            symbols.setdefault(symbol, range_of(extent, size.node.shape_env))
            shape.append(symbol)
        shapes.append(shape)
    return symbols, shapes


def _symbol_names(values: list[Any], args: tuple[Any, ...], dynamic_shapes: Any) -> dict[Any, str]:
    """The names that the caller gave to sizes, by their expressions."""
    names: dict[Any, str] = {}
    if dynamic_shapes is None:
        return names
    for value, spec in zip(values, _specs(args, tuple(dynamic_shapes))):
        pairs = spec.items() if isinstance(spec, dict) else enumerate(spec or ())
        for dim, wanted in pairs:
            name = getattr(wanted, "__name__", None)
            if name is not None and isinstance(value, torch.Tensor):
                names.setdefault(lay.extent_of(value.shape[dim]), name)
    return names


def _specs(value: Any, spec: Any) -> Iterator[Any]:
    """The part of a specification that is for each leaf of an argument."""
    if isinstance(value, (tuple, list)):
        for number, item in enumerate(value):
            yield from _specs(item, spec[number] if spec is not None else None)
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from _specs(item, spec[key] if spec is not None else None)
    else:
        yield spec


def _annotate(
    ir: Any,
    module: Any,
    name: str,
    symbols: dict[str, Range],
    shapes: list[list[int | str] | None],
) -> None:
    """Adds ukernel.symbols to the module, and ukernel.shape to its arguments."""
    function = next(op for op in module.body.operations if op.attributes["sym_name"].value == name)
    types = function.type.inputs
    if len(types) != len(shapes):
        raise AssertionError("one argument for each input of the program")
    arguments = []
    for shape in shapes:
        if shape is None or all(isinstance(size, int) for size in shape):
            arguments.append("{}")
        else:
            sizes = ", ".join(json.dumps(s) if isinstance(s, str) else f"{s} : i64" for s in shape)
            arguments.append(f"{{ukernel.shape = [{sizes}]}}")
    function.attributes["arg_attrs"] = ir.Attribute.parse(f"[{', '.join(arguments)}]")
    if symbols:
        text = ", ".join(f"{symbol} = {range_}" for symbol, range_ in symbols.items())
        module.operation.attributes["ukernel.symbols"] = ir.Attribute.parse(f"{{{text}}}")
