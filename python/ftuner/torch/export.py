"""Whole models through torch.export and the importer of torch-mlir.

The importer and its lowering to linalg come with the package iree-base-compiler,
which only this module and `ftuner.importing` need. Parameters, buffers and constant tensors are
arguments of the function behind those of the model, so that weights are neither copied into the
text nor into kernels.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import sympy
import torch
from torch import fx
from torch.export import ExportedProgram
from torch.export.graph_signature import (
    ConstantArgument,
    InputKind,
    InputSpec,
    OutputKind,
    TensorArgument,
)

import ftuner

from ..importing import torch_mlir
from . import decompositions, sizes, views
from . import layout as lay
from .importer import range_of
from .linalg import Range

#: Constant tensors with more elements are arguments; others are part of kernels.
_MAX_CONSTANT = 16


@dataclass(frozen=True)
class ExportedModel:
    """A model as linalg on tensors.

    Attributes:
        text: MLIR with one function, for `ftuner.compile`.
        name: of the function.
        parameters: parameters and buffers by their names in the model, and larger constants of it,
            in the order of the function's last arguments.
    """

    text: str
    name: str
    parameters: dict[str, torch.Tensor]

    def compile(self, **options: Any) -> ftuner.Function:
        """The compiled model, which takes what the model takes: tensors, in order.

        Those in tuples, lists and dicts are arguments of their own, and results that are nested
        are one tuple. The function's `report` says which operators became fallback kernels.

        Options are those of `ftuner.compile`.
        """
        function = ftuner.compile(self.text, **options).functions[self.name]
        parameters = [tensor.detach().contiguous() for tensor in self.parameters.values()]
        return function.keeping(len(parameters), lambda memory: parameters)

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
    dynamic_shapes: tuple[Any, ...] | list[Any] | dict[str, Any] | None = None,
    name: str = "main",
    convolutions: str = "products",
) -> ExportedModel:
    """Imports a model as `ftuner.compile` takes it, with ranges of its sizes.

    Args:
        model: a module that `torch.export.export` takes.
        args: example arguments; tensors, also nested in tuples, lists and dicts. Numbers, texts and
            None are part of the function, which does not take them.
        dynamic_shapes: as for torch.export.export, one entry for each argument, in order or by the
            names of the model's parameters. A `torch.export.Dim("T", min=1, max=128)` becomes the
            symbol T, with `_` for characters that a symbol cannot have.
        name: of the function.
        convolutions: "products" makes products of convolutions in one and two dimensions that have
            no groups, with a copy of their windows unless these are points; "direct" makes
            fallback kernels.

    Raises:
        ImportError: iree-base-compiler is not installed.
        ValueError: the model changes its parameters or arguments, an option is unknown, or the
            dynamic shapes are of arguments that the model does not take.
        ftuner.CompileError: torch-mlir does not lower an operator of the model, or the model
            returns something that is no tensor.
    """
    if convolutions not in ("products", "direct"):
        raise ValueError(
            f"expected convolutions 'products' or 'direct', but got {convolutions!r}"
        )
    importer_module = torch_mlir.load("extras.fx_importer", "ftuner.torch.export")
    state = {
        key: tensor.detach()
        for key, tensor in [*model.named_parameters(), *model.named_buffers()]
    }
    shapes = None
    if isinstance(dynamic_shapes, dict):
        dynamic_shapes = _in_order(dynamic_shapes, model, args)
    if dynamic_shapes is not None:
        shapes = (tuple(dynamic_shapes), {key: None for key in state})
    with torch.no_grad():
        program = torch.export.export(
            _Functional(model), (tuple(args), state), dynamic_shapes=shapes
        ).run_decompositions(decompositions.table(convolutions))
    _check_signature(program)
    views.rewrite_views(program)
    sizes.lower_sizes(program)
    parameters = {**state, **_take_constants(program)}
    for node in program.graph.nodes:
        _keep_model_line(node)
    symbols, argument_shapes = _argument_shapes(program, args, dynamic_shapes)
    with torch_mlir.new_context() as context:
        importer = importer_module.FxImporter(context=context)
        try:
            importer.import_program(program, func_name=name)
        except (NotImplementedError, ValueError, KeyError) as error:
            words = f"cannot import the model: {error}"
            raise ftuner.CompileError(words, str(error)) from error
        passes = (torch_mlir.FROM_PYTORCH, torch_mlir.TO_LINALG)
        module = torch_mlir.lower(importer.module, passes)
        ranges = {symbol: str(range_) for symbol, range_ in symbols.items()}
        torch_mlir.annotate(module, name, ranges, argument_shapes)
        return ExportedModel(torch_mlir.text_of(module), name, parameters)


def _in_order(
    named: dict[str, Any], model: torch.nn.Module, args: tuple[Any, ...]
) -> tuple[Any, ...]:
    """Dynamic shapes by the names of parameters as one entry for each argument."""
    parameters = inspect.signature(model.forward).parameters
    given = inspect.signature(model.forward).bind(*args).arguments
    for name in named:
        if name not in given:
            known = ", ".join(given) or "none"
            raise ValueError(
                f"dynamic_shapes: expected some of the arguments {known}, but got '{name}'"
            )
    shapes: list[Any] = []
    for name, value in given.items():
        if parameters[name].kind is inspect.Parameter.VAR_POSITIONAL:
            shapes += named.get(name) or [None] * len(value)
        else:
            shapes.append(named.get(name))
    return tuple(shapes)


def _take_constants(program: ExportedProgram) -> dict[str, torch.Tensor]:
    """Makes the larger constant tensors of a program its last inputs, and returns them."""
    constants = {}
    specs = program.graph_signature.input_specs
    nodes = {node.name: node for node in program.graph.nodes if node.op == "placeholder"}
    for spec in list(specs):
        if spec.kind != InputKind.CONSTANT_TENSOR:
            continue
        value = program.constants[spec.target]
        if value.numel() <= _MAX_CONSTANT:
            continue
        specs.remove(spec)
        specs.append(InputSpec(InputKind.USER_INPUT, spec.arg, None))
        last = [node for node in program.graph.nodes if node.op == "placeholder"][-1]
        last.append(nodes[spec.arg.name])
        constants[spec.target] = value.detach()
    return constants


def _keep_model_line(node: fx.Node) -> None:
    """Leaves of a node's stack trace the innermost line that is not PyTorch's own.

    It is what messages and reports name.
    """
    trace = node.meta.get("stack_trace")
    if not trace:
        return
    frames = re.findall(r'File "([^"]+)", line (\d+), in (.*)', trace)
    own = (str(Path(torch.__file__).parent), str(Path(__file__).parent))
    lines = [frame for frame in frames if not frame[0].startswith(own)] or frames
    if lines:
        file, line, function = lines[-1]
        node.meta["stack_trace"] = f'File "{file}", line {line}, in {function}'


def _check_signature(program: ExportedProgram) -> None:
    """Functions write to no argument, and return tensors."""
    signature = program.graph_signature
    changed = [*signature.buffers_to_mutate.values(), *signature.user_inputs_to_mutate.values()]
    if changed:
        raise ValueError(f"expected a model that changes nothing, but it writes {changed[0]}")
    results = [
        spec.arg for spec in signature.output_specs if spec.kind == OutputKind.USER_OUTPUT
    ]
    for number, result in enumerate(results):
        if not isinstance(result, TensorArgument):
            is_none = isinstance(result, ConstantArgument) and result.value is None
            words = (
                f"cannot import the model: expected tensors as results, but result {number} is "
                f"{'None' if is_none else 'a number'}"
            )
            raise ftuner.CompileError(words, words)


def _argument_shapes(
    program: ExportedProgram, args: tuple[Any, ...], dynamic_shapes: Any
) -> tuple[dict[str, Range], list[list[int | str] | None]]:
    """The symbols of the program with their ranges, and the shape of each argument."""
    inputs = {
        spec.arg.name: spec.arg
        for spec in program.graph_signature.input_specs
        if spec.kind == InputKind.USER_INPUT
    }
    values = {
        node.name: node.meta.get("val")
        for node in program.graph.nodes
        if node.op == "placeholder" and node.name in inputs
    }
    dims = _declared_dims([*values.values()], args, dynamic_shapes)
    names = {extent: dim.__name__ for extent, dim in dims.items()}
    # A Dim without a least size has 0, which says nothing.
    least = {
        extent: max(dim.min, 1) for extent, dim in dims.items() if isinstance(extent, sympy.Symbol)
    }
    symbol_names = torch_mlir.SymbolNames()
    symbols: dict[str, Range] = {}
    shapes: list[list[int | str] | None] = []
    for name, value in values.items():
        if isinstance(inputs[name], ConstantArgument):
            continue  # A part of the program.
        if not isinstance(value, torch.Tensor):
            shapes.append(None)
            continue
        shape: list[int | str] = []
        sizes: tuple[Any, ...] = value.shape  # Some are torch.SymInt.
        for size in sizes:
            extent = lay.extent_of(size)
            if isinstance(extent, int):
                shape.append(extent)
                continue
            symbol = symbol_names.symbol_of(names.get(extent, str(extent)))
            symbols.setdefault(symbol, range_of(extent, size.node.shape_env, least))
            shape.append(symbol)
        shapes.append(shape)
    return symbols, shapes


def _declared_dims(values: list[Any], args: tuple[Any, ...], dynamic_shapes: Any) -> dict[Any, Any]:
    """The named dimensions that the caller gave to sizes, by the sizes' expressions."""
    dims: dict[Any, Any] = {}
    if dynamic_shapes is None:
        return dims
    for value, spec in zip(values, _specs(args, tuple(dynamic_shapes))):
        pairs = spec.items() if isinstance(spec, dict) else enumerate(spec or ())
        for dim, wanted in pairs:
            if hasattr(wanted, "__name__") and isinstance(value, torch.Tensor):
                dims.setdefault(lay.extent_of(value.shape[dim]), wanted)
    return dims


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
