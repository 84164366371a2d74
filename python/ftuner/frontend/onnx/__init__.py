"""Models of ONNX as linalg on tensors.

The package onnx reads and checks a file.
FTuner writes the function itself (`emitter.py`): it computes every size as an expression of the sizes
of the inputs, and lowers each operator in the meaning of its own operator set (`registry.py`). Operators
that FTuner does not lower are left to torch-mlir, one by one (`foreign.py`).

Initializers become arguments after the model's inputs, and their values are the function's `Weights`;
only numbers and small lists of numbers stay in the text.
"""

from __future__ import annotations

import importlib
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...errors import CompileError
from ...host import inputs
from ...host.weights import Weights

#: Minimum and maximum of a size; None for no limit.
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
        """Returns the sentence for an operator that the compiler does not lower; None for other errors."""
        refusal = _modules("registry").refusal
        if "nothing to compile" in diagnostics and self.nodes:
            name = self.nodes[-1]
            words = refusal(
                name.partition(" ")[0],
                name,
                "the model has nothing for a kernel to compute",
                "use its results as they are known",
            )
            return f"cannot import '{file}': {words}"
        failed = re.search(r'loc\("([^"]+)"\): (?:error: )?no lowering: (.*)', diagnostics)
        if failed is None:
            return None
        name = failed[1]
        words = refusal(
            name.partition(" ")[0],
            name,
            "FTuner does not lower it",
            "write it with other operators of ONNX",
        )
        return f"cannot import '{file}': {words}"


def import_model(
    path: str | os.PathLike[str],
    ranges: Mapping[str, Bounds] | None = None,
    projections: str = "joined",
) -> OnnxModel:
    """Imports a file.

    Args:
        path: of the model; external data lie beside it.
        ranges: sizes that dynamic dimensions take, by their names in the model (`dim_param`).
            A dimension without a name is called after its input, `input_0`.
        projections: "joined" makes one product of those that share an input (`projections.py`), "separate"
            keeps each.

    Raises:
        ImportError: onnx or iree-base-compiler is not installed.
        Error: the file cannot be read.
        CompileError: it is not a model, or has an operator that is not lowered.
        ValueError: a range is malformed, its name does not occur in the model, or the option is unknown.
    """
    return _import(read(path), os.fspath(path), ranges, projections)


def import_proto(
    model: Any,
    ranges: Mapping[str, Bounds] | None = None,
    name: str = "model.onnx",
    projections: str = "joined",
) -> OnnxModel:
    """Imports an `onnx.ModelProto`, which messages call `name`; otherwise as `import_model`."""
    _onnx()
    copy = type(model)()
    copy.CopyFrom(model)
    return _import(_checked(copy, name), name, ranges, projections)


def _import(
    model: Any, file: str, ranges: Mapping[str, Bounds] | None, projections: str
) -> OnnxModel:
    if projections not in ("joined", "separate"):
        raise ValueError(f"projections: expected 'joined' or 'separate', but got {projections!r}")
    module = _modules("model")
    names = [node.name for node in model.graph.node]
    result = module.emit(model, ranges or {}, projections)
    if result.refusals:
        words = "\n".join(f"cannot import '{file}': {reason}" for reason in result.refusals)
        raise CompileError(words, words)
    name = model.graph.name or "main"
    return OnnxModel(result.text, name, result.weights, model.graph, names)


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
    onnx = _onnx()
    registry = _modules("registry")
    try:
        onnx.checker.check_model(model)
        if model.functions:
            model = importlib.import_module("onnx.inliner").inline_local_functions(model)
        name_nodes(model.graph)
        _hoist_integers(model)
        return _with_types(model)
    except registry.Refused as refused:
        raise _refuse(name, str(refused)) from None
    except (ValueError, onnx.checker.ValidationError, onnx.shape_inference.InferenceError) as error:
        raise _refuse(name, _sentence(error)) from None


def _hoist_integers(model: Any) -> None:
    """Turns Constants of integers before operator set 9 into initializers.

    ONNX allows only floats in them, but PyTorch's exporter and others wrote sizes and axes so; onnxruntime runs them.
    """
    if max((one.version for one in model.opset_import if not one.domain), default=9) >= 9:
        return
    floats = {_onnx().TensorProto.DataType.Value(name) for name in ("FLOAT", "FLOAT16", "DOUBLE")}

    def hoist(graph: Any) -> None:
        nodes = list(graph.node)
        del graph.node[:]
        for node in nodes:
            value = node.attribute[0].t if node.op_type == "Constant" and not node.domain else None
            if value is None or value.data_type in floats:
                graph.node.append(node)
                continue
            value.name = node.output[0]
            graph.initializer.append(value)
        for node in graph.node:
            for inner in _modules("graph").subgraphs_of(node):
                hoist(inner)

    hoist(model.graph)
    # Before version 4, initializers are inputs, too.
    model.ir_version = max(model.ir_version, 4)


def _with_types(model: Any) -> Any:
    """The model with the types of its values, where ONNX knows them."""
    inference = _onnx().shape_inference
    try:
        return inference.infer_shapes(model, check_type=True, strict_mode=True, data_prop=True)
    except inference.InferenceError as error:
        # The inference fails in functions of operators, which the model does not have.
        own = {node.op_type for node in _modules("graph").nodes_of(model.graph)}
        if {*re.findall(r"\(op_type:(\w+)", str(error))} <= own:
            raise
        return model


def name_nodes(graph: Any) -> None:
    """Gives each node its operator and its name or number as name, for messages and reports."""
    for number, node in enumerate(_modules("graph").nodes_of(graph)):
        node.name = f"{node.op_type} {node.name or number}"


def _modules(name: str) -> Any:
    """A module of this folder, which needs the package onnx."""
    return importlib.import_module(f"{__package__}.{name}")


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
    """Returns the first line that is not empty."""
    lines = [line.strip() for line in str(error).splitlines()]
    return next((line for line in lines if line), type(error).__name__)
