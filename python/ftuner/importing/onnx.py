"""Models of ONNX as linalg on tensors.

The package onnx reads and checks a file, the importer and the lowering come with iree-base-compiler.
Initializers become arguments behind those of the model, and their values are the function's
`Weights`; only numbers and small lists of them stay in the text, for operators that need them as
constants (the shape of a Reshape).
"""

from __future__ import annotations

import importlib
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from .. import inputs
from ..errors import CompileError
from . import torch_mlir
from .weights import Weights

#: From this number of elements on, an initializer is a weight.
_MIN_WEIGHT = 17
#: Up to this number, a list of integers is a constant.
_MAX_LIST = 64

#: The least and the greatest size; None for any.
Bounds = tuple[int, "int | None"]


@dataclass(frozen=True)
class OnnxModel:
    """A model as `ftuner.compile` takes it.

    Attributes:
        text: MLIR with one function.
        name: of the function.
        weights: its last arguments.
        graph: what was lowered, an `onnx.GraphProto`.
        nodes: names of the nodes before known values were folded.
    """

    text: str
    name: str
    weights: Weights
    graph: Any
    nodes: list[str]

    def explain(self, file: str, diagnostics: str) -> str | None:
        """The sentence for what the compiler does not lower; None if it said something else."""
        operators = _operators()
        if "nothing to compile" in diagnostics and self.nodes:
            name = self.nodes[-1]
            words = operators.refusal(
                operators.operator_of(name),
                name,
                "the model has nothing for a kernel to compute",
                "use its results as they are known",
            )
            return f"cannot import '{file}': {words}"
        failed = re.search(r'loc\("([^"]+)"\): (?:error: )?no lowering: (.*)', diagnostics)
        if failed is None:
            return None
        words = operators.explain(operators.NOT_LOWERED, f"node {failed[1]}", self.graph)
        return f"cannot import '{file}': {words}"


def import_model(
    path: str | os.PathLike[str], ranges: Mapping[str, Bounds] | None = None
) -> OnnxModel:
    """Imports a file.

    Args:
        path: of the model; external data lie beside it.
        ranges: sizes that dynamic dimensions take, by their names in the model (`dim_param`).
            A dimension without a name has that of its input, `input_0`.

    Raises:
        ImportError: onnx or iree-base-compiler is not installed.
        Error: the file cannot be read.
        CompileError: it is no model, or has an operator that is not lowered.
        ValueError: a range of a name that the model does not have, or no range.
    """
    return _import(read(path), os.fspath(path), ranges)


def import_proto(
    model: Any, ranges: Mapping[str, Bounds] | None = None, name: str = "model.onnx"
) -> OnnxModel:
    """Imports an `onnx.ModelProto`, which messages call `name`; otherwise as `import_model`."""
    _onnx()
    copy = type(model)()
    copy.CopyFrom(model)
    return _import(_checked(copy, name), name, ranges)


def _import(model: Any, file: str, ranges: Mapping[str, Bounds] | None) -> OnnxModel:
    operators = _operators()
    names = [node.name for node in model.graph.node]
    try:
        model = operators.simplify(model)
        operators.refuse(model)
    except operators.Refused as refused:
        raise _refuse(file, str(refused)) from None
    except _onnx().shape_inference.InferenceError as error:
        raise _refuse(file, _sentence(error)) from None
    weights = _take_weights(model.graph)
    symbols = _Symbols(ranges or {})
    shapes = [symbols.shape_of(value) for value in model.graph.input]
    attributes = symbols.attributes()
    name = model.graph.name or "main"
    try:
        return OnnxModel(_lower(model, name, attributes, shapes), name, weights, model.graph, names)
    except torch_mlir.NotLowered as error:
        words = operators.explain(error.reason, error.place, model.graph)
        raise CompileError(f"cannot import '{file}': {words}", error.diagnostics) from None


def read(path: str | os.PathLike[str]) -> Any:
    """The checked model of a file with the types of all its values, an `onnx.ModelProto`."""
    onnx = _onnx()
    name = os.fspath(path)
    content = inputs.read(path)
    try:
        model = onnx.load_model_from_string(content)
    except Exception as error:  # The protocol buffers' own, of a package that may change.
        raise _refuse(name, f"expected a model of ONNX: {error}") from None
    if not model.graph.node and not model.graph.output:
        raise _refuse(name, "expected a model of ONNX, but it has no graph")
    try:
        onnx.load_external_data_for_model(model, str(Path(path).parent))
    except (OSError, ValueError, onnx.checker.ValidationError) as error:
        raise _refuse(name, f"its external data cannot be read: {_sentence(error)}") from None
    return _checked(model, name)


def _checked(model: Any, name: str) -> Any:
    onnx, operators = _onnx(), _operators()
    try:
        onnx.checker.check_model(model)
        if model.functions:
            model = importlib.import_module("onnx.inliner").inline_local_functions(model)
        model = operators.convert(model)
        operators.name_nodes(model.graph)
        # Inference of shapes fails in the functions of some operators.
        model = operators.inline_functions(model) or model
        return onnx.shape_inference.infer_shapes(
            model, check_type=True, strict_mode=True, data_prop=True
        )
    except operators.Refused as refused:
        raise _refuse(name, str(refused)) from None
    except (ValueError, onnx.checker.ValidationError, onnx.shape_inference.InferenceError) as error:
        raise _refuse(name, _sentence(error)) from None


def _operators() -> Any:
    """The module that needs the package onnx."""
    return importlib.import_module(f"{__package__}.onnx_operators")


def _onnx() -> Any:
    try:
        import onnx
    except ImportError as error:
        raise ImportError(f"importing a model of ONNX needs the package onnx: {error}") from error
    return onnx


def _refuse(name: str, reason: str) -> CompileError:
    words = f"cannot import '{name}': {reason}"
    return CompileError(words, words)


def _sentence(error: Exception) -> str:
    """The first line that says something."""
    lines = [line.strip() for line in str(error).splitlines()]
    return next((line for line in lines if line), type(error).__name__)


def _take_weights(graph: Any) -> Weights:
    """Makes inputs of the initializers that are weights."""
    onnx = _onnx()
    initializers = {tensor.name: tensor for tensor in graph.initializer}
    kept_nodes = []
    for node in graph.node:
        values = [attribute for attribute in node.attribute if attribute.name == "value"]
        if node.op_type == "Constant" and values:
            tensor = onnx.TensorProto()
            tensor.CopyFrom(values[0].t)
            tensor.name = node.output[0]
            initializers[tensor.name] = tensor
        else:
            kept_nodes.append(node)
    # Models of old versions list initializers as inputs, too.
    inputs = [value for value in graph.input if value.name not in initializers]
    results = {value.name for value in graph.output}
    constants, arrays = [], {}
    for name, tensor in initializers.items():
        if _is_weight(tensor) and name not in results:
            arrays[name] = onnx.numpy_helper.to_array(tensor)
            inputs.append(
                onnx.helper.make_tensor_value_info(name, tensor.data_type, list(tensor.dims))
            )
        else:
            constants.append(tensor)
    nodes, inputs = [_copy(node) for node in kept_nodes], [_copy(value) for value in inputs]
    constants = [_copy(tensor) for tensor in constants]
    for field, items in (("node", nodes), ("input", inputs), ("initializer", constants)):
        graph.ClearField(field)
        getattr(graph, field).extend(items)
    return Weights(arrays, len(inputs) - len(arrays))


def _copy(message: Any) -> Any:
    copy = type(message)()
    copy.CopyFrom(message)
    return copy


def _is_weight(tensor: Any) -> bool:
    count = int(np.prod(tensor.dims, dtype=np.int64))
    is_list = len(tensor.dims) <= 1 and tensor.data_type in (
        _onnx().TensorProto.INT32,
        _onnx().TensorProto.INT64,
    )
    return count >= _MIN_WEIGHT and not (is_list and count <= _MAX_LIST)


class _Symbols:
    """Names of dynamic dimensions with their ranges."""

    def __init__(self, ranges: Mapping[str, Bounds]) -> None:
        self.ranges = ranges
        self._symbols = torch_mlir.SymbolNames()

    def shape_of(self, value: Any) -> list[int | str] | None:
        """The shape of an input; None for one that is no tensor of a known rank."""
        if not value.type.HasField("tensor_type") or not value.type.tensor_type.HasField("shape"):
            return None
        shape: list[int | str] = []
        for index, dim in enumerate(value.type.tensor_type.shape.dim):
            if dim.HasField("dim_value"):
                shape.append(dim.dim_value)
            else:
                shape.append(self._symbols.symbol_of(dim.dim_param or f"{value.name}_{index}"))
        return shape

    def attributes(self) -> dict[str, str]:
        """The range of each symbol."""
        names = self._symbols.given
        for name in self.ranges:
            if name not in names.values():
                known = ", ".join(names.values()) or "none"
                raise ValueError(f"range: expected one of the sizes {known}, but got '{name}'")
        result = {}
        for symbol, name in names.items():
            lower, upper = self.ranges.get(name, (1, None))
            if lower < 0 or (upper is not None and upper < lower):
                raise ValueError(f"range: expected sizes of {name}, but got {lower} to {upper}")
            result[symbol] = f"#ukernel.range<{lower} to {'?' if upper is None else upper}>"
        return result


def _unsigned(graph: Any) -> dict[str, list[int]]:
    """Numbers of the inputs and results whose elements are unsigned."""
    kinds = _onnx().TensorProto
    unsigned = (kinds.UINT8, kinds.UINT16, kinds.UINT32, kinds.UINT64)
    lists = {"arguments": graph.input, "results": graph.output}
    numbers = {
        key: [
            number
            for number, value in enumerate(values)
            if value.type.tensor_type.elem_type in unsigned
        ]
        for key, values in lists.items()
    }
    return {key: found for key, found in numbers.items() if found}


def _lower(
    model: Any, name: str, symbols: Mapping[str, str], shapes: list[list[int | str] | None]
) -> str:
    importer = torch_mlir.load("extras.onnx_importer", "importing a model of ONNX")
    info = importer.ModelInfo(model)
    context = torch_mlir.new_context()
    with context:
        module = info.create_module(context=context)
        try:
            nodes = importer.NodeImporter.define_function(info.main_graph, module.operation)
            nodes.import_all()
        except (importer.OnnxImportError, NotImplementedError, ValueError, KeyError) as error:
            words = f"cannot import the model: {_sentence(error)}"
            raise CompileError(words, str(error)) from None
        module = torch_mlir.lower(module, (torch_mlir.FROM_ONNX, torch_mlir.TO_LINALG))
        torch_mlir.annotate(module, name, symbols, shapes, _unsigned(model.graph))
        return torch_mlir.text_of(module)
