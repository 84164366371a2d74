"""Whole models through torch.export and the importer of torch-mlir.

The importer and its lowering to linalg come with the package iree-base-compiler,
which only this module and `ftuner.frontend.importing` need. Parameters, buffers and constant tensors are
arguments of the function behind those of the model, so that weights are neither copied into the
text nor into kernels.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from torch.export import ExportedProgram
from torch.export.graph_signature import ConstantArgument, InputKind, InputSpec

import ftuner
import torch
from torch import fx

from ...importing import torch_mlir
from ..graph import layout as lay
from ..regions.importing import range_of
from ..regions.linalg import Range
from . import decompositions, effects, empties, refusals, size_checks, sizes, views
from .filters import put_channels_last
from .folding import Weights, fold
from .programs import Program, all_sizes, program_of
from .projections import join_projections

#: Constant tensors with more elements are arguments; others are part of kernels.
_MAX_CONSTANT = 16


@dataclass(frozen=True)
class ExportedModel:
    """A model as linalg on tensors.

    Attributes:
        text: MLIR with one function, for `ftuner.compile`.
        name: of the function.
        weights: what the function takes after the arguments of the model.
        written: names of the buffers and arguments whose new values are the function's last
            results (`mutations="results"`).
    """

    text: str
    name: str
    weights: Weights = field(repr=False)
    written: tuple[str, ...] = ()

    @property
    def parameters(self) -> dict[str, torch.Tensor]:
        """The function's last arguments by name, in their order.

        Parameters, buffers and larger constants of the model have their names there and share its
        memory. Values that depend on these only are `folded.NAME`, by the name of the operator in
        PyTorch's graph: they are computed here, and again after a change in place.
        """
        return dict(zip(self.weights.names, self.weights.tensors()))

    def compile(self, **options: Any) -> ftuner.Function:
        """The compiled model, which takes what the model takes: tensors, in order.

        Those in tuples, lists and dicts are arguments of their own, and results that are nested
        are one tuple. The function's `report` says which operators became fallback kernels.

        Options are the same as for `ftuner.compile`.
        """
        try:
            module = ftuner.compile(self.text, **options)
        except ftuner.CompileError as error:
            if "the module needs no kernels" not in str(error):
                raise
            module = ftuner.compile(_with_a_kernel(self.text), **options)
        function = module.functions[self.name]
        weights = self.weights
        return function.keeping(len(weights.names), lambda memory: weights.tensors())

    def __str__(self) -> str:
        return self.text


def export(
    model: torch.nn.Module | ExportedProgram | str | Path,
    args: tuple[Any, ...] | None = None,
    kwargs: dict[str, Any] | None = None,
    *,
    dynamic_shapes: tuple[Any, ...] | list[Any] | dict[str, Any] | None = None,
    name: str = "main",
    mutations: str = "refused",
    projections: str = "joined",
) -> ExportedModel:
    """Imports a model as `ftuner.compile` takes it, with ranges of its sizes.

    Args:
        model: a module that `torch.export.export` takes, a program that it returned, or the path
            of one that `torch.export.save` wrote. A program keeps its ranges of sizes.
        args: example arguments; tensors, also nested in tuples, lists and dicts. Numbers, texts and
            None are part of the function, which does not take them. A program needs none.
        kwargs: example arguments by name.
        dynamic_shapes: as for torch.export.export, one entry for each argument, in order or by the
            names of the model's parameters. A `torch.export.Dim("T", min=1, max=128)` becomes the
            symbol T, with `_` for characters that a symbol cannot have. Beside a program they only
            give its sizes names.
        name: of the function.
        mutations: "refused", or "results": the new values of buffers and arguments that the model
            writes are the function's last results, and nothing is written. `ExportedModel.written`
            names them.
        projections: "joined" makes one product of those that share an input, such as queries, keys and
            values, where that saves a launch; "separate" keeps each.

    Raises:
        ImportError: iree-base-compiler is not installed.
        ValueError: the model changes its parameters or arguments, draws random numbers, an option
            is unknown, or the dynamic shapes are of arguments that the model does not take.
        ftuner.Error: a file is not a program.
        ftuner.CompileError: torch-mlir does not lower an operator of the model, or the model
            returns a value that is not a tensor.
    """
    for option, value, known in (
        ("mutations", mutations, ("refused", "results")),
        ("projections", projections, ("joined", "separate")),
    ):
        if value not in known:
            words = " or ".join(map(repr, known))
            raise ValueError(f"expected {option} {words}, but got {value!r}")
    importer_module = torch_mlir.load("extras.fx_importer", "ftuner.torch.export")
    source = program_of(model, args, kwargs, dynamic_shapes)
    refusals.check_operators(source.program)
    with torch.no_grad(), all_sizes():
        program = source.program.run_decompositions(decompositions.table())
    effects.check_effects(source, program, mutations)
    written = effects.results_of_writes(source, program)
    views.rewrite_views(program)
    size_checks.add_checks(source, program)
    sizes.lower_sizes(program)
    empties.replace_empties(program)
    parameters, lifted = _lift_state(source, program)
    put_channels_last(program, set(lifted))
    if projections == "joined":
        join_projections(program, parameters, lifted)
    weights = fold(program, parameters, lifted)
    for node in program.graph.nodes:
        _keep_model_line(node)
    symbols, argument_shapes = _argument_shapes(source, program)
    with torch_mlir.new_context() as context:
        importer = importer_module.FxImporter(context=context)
        try:
            importer.import_program(program, func_name=name)
        except (NotImplementedError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise refusals.of_importer(source.program, error) from error
        passes = (torch_mlir.FROM_PYTORCH, torch_mlir.TO_LINALG)
        try:
            module = torch_mlir.lower(importer.module, passes)
        except torch_mlir.NotLowered as error:
            raise refusals.explained(source.program, error) from None
        ranges = {symbol: str(range_) for symbol, range_ in symbols.items()}
        names = {
            "arguments": _argument_names(source, program, weights.names),
            "results": [*source.names_of_results(), *written],
        }
        unsigned = _unsigned(program)
        torch_mlir.annotate(module, name, ranges, argument_shapes, unsigned, names)
        return ExportedModel(torch_mlir.text_of(module), name, weights, written)


#: A function that a library without any other kernel gets.
_KERNEL = """
  func.func @ftuner_no_kernels(%x: tensor<1xf32>) -> tensor<1xf32> {
    %e = tensor.empty() : tensor<1xf32>
    %y = linalg.generic {
      indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>],
      iterator_types = ["parallel"]
    } ins(%x : tensor<1xf32>) outs(%e : tensor<1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %n = arith.negf %in : f32
      linalg.yield %n : f32
    } -> tensor<1xf32>
    return %y : tensor<1xf32>
  }
"""


def _with_a_kernel(text: str) -> str:
    """The module with one more function: results without elements need no kernel, but a library does."""
    begin = text.index("  func.func")
    return text[:begin] + _KERNEL + text[begin:]


def _lift_state(
    source: Program, program: ExportedProgram
) -> tuple[dict[str, torch.Tensor], list[fx.Node]]:
    """Makes parameters, buffers and larger constants a program's last inputs.

    Returns them and their placeholders.
    """
    tensors: dict[str, torch.Tensor] = {}
    lifted: list[fx.Node] = []
    specs = program.graph_signature.input_specs
    nodes = {node.name: node for node in program.graph.nodes if node.op == "placeholder"}
    for spec in list(specs):
        if spec.kind == InputKind.USER_INPUT:
            continue
        if spec.kind not in (InputKind.PARAMETER, InputKind.BUFFER, InputKind.CONSTANT_TENSOR):
            words = f"cannot import the model: expected tensors as inputs, but got {spec.arg.name}"
            raise ftuner.CompileError(words, words)
        target = str(spec.target)
        value = program.state_dict.get(target)
        value = program.constants[target] if value is None else value
        is_constant = spec.kind == InputKind.CONSTANT_TENSOR
        if is_constant and value.numel() <= _MAX_CONSTANT:
            continue
        specs.remove(spec)
        node = nodes[spec.arg.name]
        if not node.users:
            program.graph.erase_node(node)
            continue
        specs.append(InputSpec(InputKind.USER_INPUT, spec.arg, None))
        last = [node for node in program.graph.nodes if node.op == "placeholder"][-1]
        if last is not node:
            last.append(node)
        tensors[source.name_of(target)] = value.detach()
        lifted.append(node)
    return tensors, lifted


def _keep_model_line(node: fx.Node) -> None:
    """Leaves of a node's stack trace the innermost line that is not PyTorch's own.

    It is what messages and reports name.
    """
    trace = node.meta.get("stack_trace")
    if not trace:
        return
    frames = re.findall(r'File "([^"]+)", line (\d+), in (.*)', trace)
    own = (str(Path(torch.__file__).parent), str(Path(__file__).parents[1]))
    lines = [frame for frame in frames if not frame[0].startswith(own)] or frames
    if lines:
        file, line, function = lines[-1]
        node.meta["stack_trace"] = f'File "{file}", line {line}, in {function}'


def _argument_names(source: Program, program: ExportedProgram, weights: list[str]) -> list[str]:
    """The names of the function's arguments: inputs that are not constants of the function, then weights."""
    names = source.names_by_placeholder()
    own = [
        names[spec.arg.name]
        for spec in program.graph_signature.input_specs
        if spec.arg.name in names and not isinstance(spec.arg, ConstantArgument)
    ]
    return [*own, *weights]


#: Types of elements that MLIR knows by their bits only.
_UNSIGNED = (torch.uint8, torch.uint16, torch.uint32, torch.uint64)


def _unsigned(program: ExportedProgram) -> dict[str, list[int]]:
    """Numbers of the arguments and results whose elements are unsigned."""
    nodes = {node.name: node for node in program.graph.nodes}
    signature = program.graph_signature
    values = {
        "arguments": [
            nodes[spec.arg.name].meta["val"]
            for spec in signature.input_specs
            if spec.kind == InputKind.USER_INPUT and not isinstance(spec.arg, ConstantArgument)
        ],
        "results": [
            result.meta["val"] for result in nodes["output"].args[0] if isinstance(result, fx.Node)
        ],
    }
    numbers = {
        key: [n for n, value in enumerate(found) if getattr(value, "dtype", None) in _UNSIGNED]
        for key, found in values.items()
    }
    return {key: found for key, found in numbers.items() if found}


def _argument_shapes(
    source: Program, program: ExportedProgram
) -> tuple[dict[str, Range], list[list[int | str] | None]]:
    """The symbols of the program with their ranges, and the shape of each argument."""
    inputs = {
        spec.arg.name: spec.arg
        for spec in program.graph_signature.input_specs
        if spec.kind == InputKind.USER_INPUT
    }
    symbol_names = torch_mlir.SymbolNames()
    symbols: dict[str, Range] = {}
    shapes: list[list[int | str] | None] = []
    for node in program.graph.nodes:
        if node.op != "placeholder" or node.name not in inputs:
            continue
        if isinstance(inputs[node.name], ConstantArgument):
            continue  # A part of the program.
        value = node.meta["val"]
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
            symbol = symbol_names.symbol_of(source.dims.get(extent, str(extent)))
            symbols.setdefault(symbol, range_of(extent, size.node.shape_env, source.min_sizes))
            shape.append(symbol)
        shapes.append(shape)
    return symbols, shapes
