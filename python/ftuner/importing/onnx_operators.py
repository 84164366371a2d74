"""What becomes of ONNX's operators before torch-mlir sees them.

Some are replaced by the functions that ONNX defines them by, since torch-mlir has no lowering of
them, or one of another meaning. Some are refused, by one sentence that says what to change.
"""

from __future__ import annotations

import contextlib
import importlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
from onnx import compose, defs, helper

from . import onnx_rewrites, onnx_values
from .onnx_values import Values, is_own, subgraphs_of, version_of

#: Replaced by ONNX's own functions.
_FUNCTIONS = (
    "AffineGrid",
    "Attention",
    "CausalConvWithState",
    "CenterCropPad",
    "DynamicQuantizeLinear",
    "FlexAttention",
    "Gelu",
    "LinearAttention",
    "MeanVarianceNormalization",
    "NegativeLogLikelihoodLoss",
    "RMSNormalization",
    "RotaryEmbedding",
    "SoftmaxCrossEntropyLoss",
    "SpaceToDepth",
    "SwiGLU",
    "Swish",
)

#: Inputs that decide sizes, or what a kernel is: they must be known when the model is compiled.
_HOST_INPUTS: Mapping[str, tuple[str, ...]] = {
    "AffineGrid": ("size",),
    "BlackmanWindow": ("size",),
    "CenterCropPad": ("shape",),
    "Col2Im": ("image_shape", "block_shape"),
    "ConstantOfShape": ("input",),
    "CumProd": ("axis",),
    "CumSum": ("axis",),
    "DFT": ("dft_length", "axis"),
    "Expand": ("shape",),
    "HammingWindow": ("size",),
    "HannWindow": ("size",),
    "If": ("cond",),
    "Loop": ("M",),
    "MaxUnpool": ("output_shape",),
    "MelWeightMatrix": (
        "num_mel_bins",
        "dft_length",
        "sample_rate",
        "lower_edge_hertz",
        "upper_edge_hertz",
    ),
    "OneHot": ("depth",),
    "Pad": ("pads", "axes"),
    "Range": ("start", "limit", "delta"),
    "ReduceL1": ("axes",),
    "ReduceL2": ("axes",),
    "ReduceLogSum": ("axes",),
    "ReduceLogSumExp": ("axes",),
    "ReduceMax": ("axes",),
    "ReduceMean": ("axes",),
    "ReduceMin": ("axes",),
    "ReduceProd": ("axes",),
    "ReduceSum": ("axes",),
    "ReduceSumSquare": ("axes",),
    "Reshape": ("shape",),
    "Resize": ("scales", "sizes"),
    "STFT": ("frame_step", "frame_length"),
    "Slice": ("starts", "ends", "axes", "steps"),
    "Split": ("split",),
    "SplitToSequence": ("split",),
    "Squeeze": ("axes",),
    "Tile": ("repeats",),
    "TopK": ("K",),
    "Trilu": ("k",),
    "Unsqueeze": ("axes",),
    "Upsample": ("scales",),
}


@dataclass(frozen=True)
class Refused(Exception):
    """A model that is refused: the sentence behind its name."""

    reason: str

    def __str__(self) -> str:
        return self.reason


def refusal(operator: str, place: str | None, reason: str, advice: str) -> Refused:
    """An operator that has no lowering, and what to do instead."""
    node = f" (node {place})" if place else ""
    return Refused(f"the operator {operator}{node} is not supported: {reason}; {advice}")


def name_nodes(graph: Any) -> None:
    """Gives each node its operator and its name or number as name, for messages and reports."""
    for number, node in enumerate(_nodes(graph)):
        node.name = f"{node.op_type} {node.name or number}"


def operator_of(node_name: str) -> str:
    """The operator of a node that `name_nodes` named."""
    return node_name.partition(" ")[0]


def _nodes(graph: Any) -> Iterator[Any]:
    """The nodes of a graph and of those inside it."""
    for node in graph.node:
        yield node
        for inner in subgraphs_of(node):
            yield from _nodes(inner)


def convert(model: Any) -> Any:
    """The model with operators of a version that torch-mlir knows, if ONNX can convert them."""
    version = version_of(model)
    for node in model.graph.node if version < 9 else []:
        if node.op_type == "Scan":
            reason, advice = "it is of version 8, with batches", "export it with version 9 or newer"
            raise refusal("Scan", node.name or None, reason, advice)
    if version < _LEAST_VERSION:
        converter = importlib.import_module("onnx.version_converter")
        with contextlib.suppress(RuntimeError):  # It does not know every operator.
            return converter.convert_version(model, _LEAST_VERSION)
    return model


#: torch-mlir has lowerings of few operators as they were before.
_LEAST_VERSION = 13


def simplify(model: Any) -> Any:
    """The model with known values folded and functions in place of the operators they define."""
    shape_inference = importlib.import_module("onnx.shape_inference")
    while True:
        model = shape_inference.infer_shapes(model, check_type=True, data_prop=True)
        has_changed = onnx_values.fold(model)
        has_changed |= _take_branches(model)
        has_changed |= _unroll_scans(model)
        has_changed |= onnx_rewrites.rewrite(model)
        if has_changed:
            continue
        # Functions are made for what is known of their operands.
        inlined = inline_functions(model)
        if inlined is None:
            onnx_values.drop_unused(model.graph)
            return model
        model = inlined


def _take_branches(model: Any) -> bool:
    """Replaces each `If` of a known condition by its branch; whether there was one."""
    values = Values(model)
    nodes, has_changed = [], False
    for node in model.graph.node:
        condition = values.array_of(node.input[0]) if node.op_type == "If" else None
        if condition is None or not is_own(node.domain):
            nodes.append(node)
            continue
        has_changed = True
        name = "then_branch" if condition.item() else "else_branch"
        (branch,) = (attribute.g for attribute in node.attribute if attribute.name == name)
        # Names of two branches may be the same.
        branch = compose.add_prefix_graph(branch, f"{node.output[0]}/", rename_nodes=False)
        model.graph.initializer.extend(branch.initializer)
        nodes += branch.node
        for value, result in zip(branch.output, node.output):
            nodes.append(helper.make_node("Identity", [value.name], [result], name=node.name))
    if has_changed:
        onnx_values.replace_nodes(model.graph, nodes)
    return has_changed


def _unroll_scans(model: Any) -> bool:
    """Replaces each `Scan` of few steps by its body's steps; whether there was one."""
    values = Values(model)
    nodes, has_changed = [], False
    for node in model.graph.node:
        steps = _steps_of(node, values) if node.op_type == "Scan" and is_own(node.domain) else None
        if steps is None:
            nodes.append(node)
            continue
        has_changed = True
        nodes += _unroll(node, steps, model.graph)
    if has_changed:
        onnx_values.replace_nodes(model.graph, nodes)
    return has_changed


#: A scan of more steps is refused: each one is some kernels.
_MAX_STEPS = 64


def _steps_of(node: Any, values: Values) -> int | None:
    """The steps of a scan, if they are known and few."""
    given = {a.name: helper.get_attribute_value(a) for a in node.attribute}
    count = given["num_scan_inputs"]
    axes = given.get("scan_input_axes", [0] * count)
    for name, axis in zip(node.input[len(node.input) - count :], axes):
        shape = values.shape_of(name)
        steps: int | None = shape[axis] if shape is not None else None
        if steps is None or not 0 < steps <= _MAX_STEPS:
            return None
        return steps
    return None


def _unroll(node: Any, steps: int, graph: Any) -> list[Any]:
    """The nodes of a scan's steps; adds the initializers of its body to the graph."""
    given = {a.name: helper.get_attribute_value(a) for a in node.attribute}
    body, count = given["body"], given["num_scan_inputs"]
    state_count = len(node.input) - count
    result_count = len(node.output) - state_count
    prefix = next(name for name in node.output if name)
    nodes: list[Any] = []

    def add(operator: str, inputs: list[str], result: str, **attributes: Any) -> str:
        nodes.append(helper.make_node(operator, inputs, [result], name=node.name, **attributes))
        return result

    def integers(name: str, value: Any) -> str:
        graph.initializer.append(
            onnx.numpy_helper.from_array(np.array(value, np.int64), f"{prefix}/{name}")
        )
        return f"{prefix}/{name}"

    def listed(name: str) -> list[int]:
        size = count if "input" in name else result_count
        return [*given.get(name, [0] * size)]

    states = [*node.input[:state_count]]
    found: list[list[str]] = [[] for _ in range(result_count)]
    for step in range(steps):
        mark = f"{prefix}/step_{step}/"
        inputs = [*states]
        for number, name in enumerate(node.input[state_count:]):
            axis = listed("scan_input_axes")[number]
            place = steps - 1 - step if listed("scan_input_directions")[number] else step
            index = integers(f"step_{step}/place_{number}", place)
            inputs.append(add("Gather", [name, index], f"{mark}input_{number}", axis=axis))
        part = compose.add_prefix_graph(body, mark, rename_nodes=False)
        for value, name in zip(part.input, inputs):
            add("Identity", [name], value.name)
        graph.initializer.extend(part.initializer)
        nodes.extend(part.node)
        results = [value.name for value in part.output]
        states = results[:state_count]
        for names, axis, name in zip(found, listed("scan_output_axes"), results[state_count:]):
            axes = integers(f"step_{step}/axes_{len(nodes)}", [axis])
            names.append(add("Unsqueeze", [name, axes], f"{name}/unsqueezed"))
    for name, result in zip(states, node.output):
        if result:
            add("Identity", [name], result)
    kinds = zip(found, node.output[state_count:], listed("scan_output_axes"))
    for (names, result, axis), is_reversed in zip(kinds, listed("scan_output_directions")):
        if result:
            add("Concat", names[::-1] if is_reversed else names, result, axis=axis)
    for inner in nodes:
        inner.name = inner.name or node.name
    return nodes


#: Domain of the functions that stand for operators until they are inlined.
_DOMAIN = "ftuner.functions"


def inline_functions(model: Any) -> Any | None:
    """Replaces operators by their functions; None if there is none.

    The new nodes have the names of those that they stand for.
    """
    types = {
        value.name: value.type
        for value in [*model.graph.input, *model.graph.value_info, *model.graph.output]
    }
    for tensor in model.graph.initializer:
        types[tensor.name] = helper.make_tensor_type_proto(tensor.data_type, tensor.dims)
    replaced: list[Any] = []
    for node in model.graph.node:
        function = _function_of(node, version_of(model, node.domain), types)
        if function is None:
            continue
        function.domain, function.name = _DOMAIN, f"{node.op_type}_{len(replaced)}"
        function.ClearField("opset_import")
        function.opset_import.extend(model.opset_import)
        model.functions.append(function)
        node.domain, node.op_type = function.domain, function.name
        replaced.append(node)
    if not replaced:
        return None
    # The nodes of a function follow each other without names, in the place of what they stand for.
    pending = [(node.name, {name for name in node.output if name}) for node in replaced]
    model.opset_import.append(helper.make_opsetid(_DOMAIN, 1))
    model = importlib.import_module("onnx.inliner").inline_local_functions(model)
    for node in model.graph.node:
        if node.name:
            continue
        name, missing = pending[0]
        for inner in [node, *(n for graph in subgraphs_of(node) for n in _nodes(graph))]:
            inner.name = name
        missing.difference_update(node.output)
        if not missing and len(pending) > 1:
            pending.pop(0)
    return model


def _function_of(node: Any, version: int, types: Mapping[str, Any]) -> Any | None:
    """The function that ONNX defines an operator by, if it is to be replaced."""
    if node.op_type not in _FUNCTIONS or not (is_own(node.domain) or node.domain == _PREVIEW):
        return None
    given = {a.name: helper.get_attribute_value(a) for a in node.attribute}
    if node.op_type == "Gelu" and given.get("approximate") != b"tanh":
        return None  # torch-mlir's factor of the tanh is right to four digits.
    if node.op_type == "SpaceToDepth" and given.get("mode") != b"CRD":
        return None  # torch-mlir knows the other order.
    # ONNX declares no types of what a schema tells of functions.
    schema: Any = defs.get_schema(node.op_type, version, node.domain)
    function = onnx.FunctionProto()
    if schema.has_context_dependent_function:
        missing = [name for name in node.input if name and name not in types]
        if missing:
            return None  # Until its type is known.
        best = max(v for v in schema.context_dependent_function_opset_versions if v <= version)
        operands = [types[name].SerializeToString() if name else b"" for name in node.input]
        function.ParseFromString(
            schema.get_context_dependent_function_with_opset_version(
                best, node.SerializeToString(), operands
            )
        )
    elif schema.has_function:
        best = max(v for v in schema.function_opset_versions if v <= version)
        function.ParseFromString(schema.get_function_with_opset_version(best))
    else:
        return None
    if not function.node:
        return None  # Until the rank of an operand is known.
    # The inliner does not know what an attribute is by default.
    names = {attribute.name for attribute in node.attribute}
    for name, attribute in schema.attributes.items():
        if name not in names and attribute.default_value.type:
            node.attribute.append(attribute.default_value)
    function.ClearField("attribute")
    function.attribute.extend(attribute.name for attribute in node.attribute)
    return function


#: Operators that ONNX has not settled yet.
_PREVIEW = "ai.onnx.preview"


def refuse(model: Any) -> None:
    """Raises `Refused` for operators that torch-mlir would give another meaning, or end on."""
    graph = model.graph
    values = Values(model)
    dependent = _dependent_on_data(graph)
    types = {
        value.name: value.type for value in [*graph.input, *graph.value_info, *graph.output]
    }
    types.update(
        {t.name: helper.make_tensor_type_proto(t.data_type, t.dims) for t in graph.initializer}
    )
    for node in graph.node:
        if not is_own(node.domain):
            raise refusal(
                f"{node.op_type} of the domain {node.domain}",
                node.name,
                "it is none of ONNX's own",
                "write it with operators of ONNX's own domain, or as a function of the model",
            )
        for value in [*node.input, *node.output]:
            _refuse_type(node, value, types.get(value))
        for name, value in _host_inputs(node, version_of(model)):
            if value in dependent:
                raise Refused(
                    f"the operator {operator_of(node.name)} (node {node.name}) needs its input "
                    f"{name} when the model is compiled; make '{value}' an initializer or the "
                    "result of a Constant, or compute it from shapes alone"
                )
        reason = _MEANINGS.get(node.op_type)
        if reason is not None:
            raise refusal(operator_of(node.name), node.name, *reason)
        if node.op_type == "AveragePool":
            _refuse_partial_windows(node, values)
        if node.op_type in ("GRU", "LSTM", "RNN"):
            _refuse_recurrence(node)


def explain(reason: str, place: str | None, graph: Any) -> str:
    """The sentence for what torch-mlir or FTuner does not lower.

    `place` is what `torch_mlir.place_of` told of it, or None.
    """
    name = re.sub(r"^node ", "", place or "")
    names = [node.name for node in graph.node]
    if name not in names:
        if len({*names}) != 1:
            return f"{reason}; write the model with other operators of ONNX"
        name = names[0]
    operator = operator_of(name)
    lowered = re.fullmatch(r"(torch-mlir|FTuner) does not lower (?:the operator )?([\w.]+)", reason)
    ended = _ENDED.fullmatch(reason)
    if reason == NOT_LOWERED:
        words = reason
    elif ended is not None:
        words = ended[1] + (ended[2] or "")
    elif lowered is None:
        words = "torch-mlir does not lower it as it is here"
    elif lowered[2] == operator:
        words = f"{lowered[1]} does not lower it"
    else:
        words = f"{lowered[1]} does not lower {lowered[2]}, which it becomes"
    advice = _ADVICE.get(operator, _OTHER_OPERATORS)
    return str(refusal(operator, name, words, advice))


#: How torch-mlir ended, with the operator between (`worker.Ended`).
_ENDED = re.compile(
    r"(torch-mlir (?:crashes|was killed|does not end|takes more)\b.*?)"
    r"(?: at the operator [\w.:]+)?( by the system.*| \(.*\))?"
)

#: Where no more is known.
NOT_LOWERED = "FTuner does not lower it"
_OTHER_OPERATORS = "write it with other operators of ONNX"
_OUTSIDE = "compute it outside of the model"

#: What to do instead of an operator.
_ADVICE: Mapping[str, str] = {
    **dict.fromkeys(
        ["Scatter", "ScatterElements", "ScatterND", "TensorScatter"],
        "write the new values with Concat of slices, or with Where and a mask",
    ),
    **dict.fromkeys(
        ["NonMaxSuppression", "NonZero", "Compress", "Unique", "TopK", "ImageDecoder"], _OUTSIDE
    ),
    "Dropout": "leave it out, or set training_mode to false",
}


#: Elements that tensors may have.
_ELEMENTS = frozenset(
    getattr(onnx.TensorProto, name)
    for name in (
        *("BOOL", "INT8", "INT16", "INT32", "INT64", "UINT8", "UINT16", "UINT32", "UINT64"),
        *("FLOAT16", "BFLOAT16", "FLOAT", "DOUBLE", "UNDEFINED"),
    )
)


def _refuse_type(node: Any, value: str, kind: Any) -> None:
    """Raises `Refused` for a value that FTuner has no type for."""
    if kind is None or kind.WhichOneof("value") is None:
        return
    if not kind.HasField("tensor_type"):
        what = {"sequence_type": "a sequence", "optional_type": "optional"}
        word = what.get(kind.WhichOneof("value"), "no tensor")
        raise refusal(
            operator_of(node.name), node.name, f"its value '{value}' is {word}", "use tensors alone"
        )
    element = kind.tensor_type.elem_type
    if element not in _ELEMENTS:
        name = onnx.TensorProto.DataType.Name(element)
        raise refusal(
            operator_of(node.name),
            node.name,
            f"its value '{value}' has elements of type {name}",
            "compute with those of FLOAT, FLOAT16, BFLOAT16, DOUBLE, BOOL or integers of 8 to 64 "
            "bits",
        )


def _host_inputs(node: Any, version: int) -> Iterator[tuple[str, str]]:
    """The inputs that must be known, by their names in ONNX and in the graph."""
    known = _HOST_INPUTS.get(node.op_type)
    if known is None:
        return
    schema = defs.get_schema(node.op_type, version)
    for parameter, value in zip(schema.inputs, node.input):
        if parameter.name in known and value:
            yield parameter.name, value


def _dependent_on_data(graph: Any) -> set[str]:
    """Values that an input's elements decide, not only its sizes."""
    kept = {tensor.name for tensor in graph.initializer}
    dependent = {value.name for value in graph.input} - kept
    for node in graph.node:
        if node.op_type in ("Shape", "Size"):
            continue
        used = {*node.input}
        for inner in (n for graph in subgraphs_of(node) for n in _nodes(graph)):
            used |= {*inner.input}
        if used & dependent:
            dependent |= {*node.output}
    dependent.discard("")
    return dependent


#: Operators that torch-mlir lowers to another meaning, or ends on: why, and what to do.
_MEANINGS: Mapping[str, tuple[str, str]] = {
    "GridSample": (
        "torch-mlir reads outside of the image for it",
        "write it with GatherND of clipped indices",
    ),
    "RoiAlign": ("torch-mlir does not lower it", "write it with GatherND of clipped indices"),
    **dict.fromkeys(
        ["Bernoulli", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform"]
        + ["RandomUniformLike"],
        (
            "kernels have no random numbers",
            "make the numbers outside of the model and give them as an input",
        ),
    ),
}


def _refuse_recurrence(node: Any) -> None:
    """Raises `Refused` for what torch-mlir leaves out of recurrent layers."""
    given = {a.name: helper.get_attribute_value(a) for a in node.attribute}
    optional = {4: "sequence_lens", 7: "P"}
    parts = [name for index, name in optional.items() if any(node.input[index : index + 1])]
    parts += [name for name in ("clip", "input_forget") if given.get(name)]
    if parts:
        raise refusal(
            operator_of(node.name),
            node.name,
            f"torch-mlir leaves out its {' and '.join(parts)}",
            "write the layer with MatMul and activations",
        )


def _refuse_partial_windows(node: Any, values: Values) -> None:
    """Raises `Refused` for means of windows that reach beyond the padding, which do not count."""
    given = {a.name: helper.get_attribute_value(a) for a in node.attribute}
    if not given.get("ceil_mode") or not given.get("count_include_pad"):
        return
    kernel = given["kernel_shape"]
    ones = [1] * len(kernel)
    steps, dilations = given.get("strides", ones), given.get("dilations", ones)
    pads = given.get("pads", [0] * 2 * len(kernel))
    sizes = (values.shape_of(node.input[0]) or [None] * (len(kernel) + 2))[2:]
    for axis, size in enumerate(sizes):
        extent = (kernel[axis] - 1) * dilations[axis] + 1
        rest = 0 if size is None else size + pads[axis] + pads[axis + len(kernel)] - extent
        if size is None or rest % steps[axis]:
            raise refusal(
                node.op_type,
                node.name,
                "its last windows reach beyond the padding",
                "set ceil_mode or count_include_pad to 0, or pad the input with Pad",
            )


__all__ = ["Refused", "name_nodes", "operator_of", "refusal", "refuse", "simplify"]
