"""Operators that torch-mlir lowers.

Each node becomes a model of its own with what is known of the sizes of its operands, and a private
function of one module, which torch-mlir lowers; equal nodes share a function. Its text is written where the
main function calls it, at the place of the node.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import onnx
from onnx import defs, helper, numpy_helper

from ...errors import CompileError
from ..importing import torch_mlir
from .emitter import Emitter, is_weight
from .registry import Node, Refused
from .sizes import Expr, Size
from .values import ELEMENTS, Value, tensor_type

#: Operators that torch-mlir computes differently or not at all: the reason and an advice for each.
_MEANINGS = {
    "RoiAlign": ("torch-mlir does not lower it", "write it with GatherND of clipped indices"),
    **dict.fromkeys(
        ["Bernoulli", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform"]
        + ["RandomUniformLike"],
        (
            "kernels have no random numbers",
            "make the numbers outside of the model and give them as an input",
        ),
    ),
    **dict.fromkeys(
        ["NonMaxSuppression", "NonZero", "Compress", "Unique"],
        ("the size of its result depends on data", "compute it outside of the model"),
    ),
}

#: Advice for operators: a substitute for each.
_ADVICE = {
    **dict.fromkeys(
        ["Scatter", "ScatterElements", "ScatterND", "TensorScatter"],
        "write the new values with Concat of slices, or with Where and a mask",
    ),
    "ImageDecoder": "compute it outside of the model",
    "Dropout": "leave it out, or set training_mode to false",
}
OTHER_OPERATORS = "write it with other operators of ONNX"

#: Inputs that decide sizes, or what a kernel is: they must be known when the model is compiled.
HOST_INPUTS = {
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
    "Resize": ("scales", "sizes"),
    "STFT": ("frame_step", "frame_length"),
    "Slice": ("starts", "ends", "axes", "steps"),
    "Split": ("split",),
    "SplitToSequence": ("split",),
    "Tile": ("repeats",),
    "TopK": ("K",),
    "Trilu": ("k",),
    "Upsample": ("scales",),
    **dict.fromkeys(
        ["ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMax", "ReduceMean"]
        + ["ReduceMin", "ReduceProd", "ReduceSum", "ReduceSumSquare"],
        ("axes",),
    ),
    "Loop": ("M",),
}

#: The oldest operator set that torch-mlir knows.
_MIN_VERSION = 13
#: The name of a foreign node, which is the location of its operations.
_MARK = "ftuner.node"


class Foreign:
    """The functions of a model that torch-mlir lowers."""

    def __init__(self, lower: Callable[[str, Sequence[str]], str]) -> None:
        self._lower = lower
        self._numbers: dict[Any, int] = {}
        self._models: list[Any] = []
        self._nodes: list[Node] = []
        self._calls: list[_Call] = []

    def call(
        self, emitter: Emitter, node: Any, given: Node, wanted: Sequence[int]
    ) -> Sequence[Value | None]:
        """Emits a call of a node's function; returns its results."""
        reason = _MEANINGS.get(node.op_type)
        if reason is not None:
            raise given.refuse(*reason)
        _refuse_parts(given)
        if any(a.graphs or a.HasField("g") for a in node.attribute):
            raise given.refuse("FTuner does not lower it", OTHER_OPERATORS)
        single, operands = _single(node, given, wanted)
        try:
            inferred = onnx.shape_inference.infer_shapes(single, check_type=True, data_prop=True)
        except onnx.shape_inference.InferenceError as error:
            words = " ".join(str(error).split())[:200]
            raise given.refuse(f"ONNX finds no types for it ({words})", OTHER_OPERATORS) from None
        names = _sizes_by_name(operands)
        key = single.SerializeToString()
        number = self._numbers.setdefault(key, len(self._numbers))
        if number == len(self._models):
            inferred.graph.name = f"foreign_{number}"
            self._models.append(inferred)
            self._nodes.append(given)
        results: list[Value | None] = [None] * len(node.output)
        kept: list[Value] = []
        for index, value in zip(wanted, inferred.graph.output):
            kept.append(_result_of(value, names, given))
            results[index] = kept[-1]
        call = _Call(number, operands, kept, emitter.location)
        call.names = [emitter.use(value) for value in operands]
        for value in kept:
            value.ssa = emitter.fresh()
        emitter.line_of(call)
        for value in kept:
            assert value.ssa is not None
            value.dims = tuple(
                emitter.dim_of(value.ssa, dim, value.type) if dim_size is _UNKNOWN else dim_size
                for dim, dim_size in enumerate(value.dims)
            )
        self._calls.append(call)
        return results

    def finish(self) -> list[str]:
        """Lowers all functions; returns a sentence for each that torch-mlir does not lower."""
        if not self._models:
            return []
        try:
            parts = _split(self._lowered(self._models))
            self._fill({number: parts[f"foreign_{number}"] for number in range(len(self._models))})
            return []
        except CompileError as error:
            if len(self._models) == 1:
                return [_explain(error, self._nodes[0])]
        refusals = []
        texts: dict[int, str] = {}
        for number, (model, node) in enumerate(zip(self._models, self._nodes)):
            try:
                texts[number] = _split(self._lowered([model]))[f"foreign_{number}"]
            except CompileError as error:
                refusals.append(_explain(error, node))
        if not refusals:
            self._fill(texts)
        return refusals

    def _lowered(self, models: Sequence[Any]) -> str:
        importer = torch_mlir.load("extras.onnx_importer", "importing a model of ONNX")
        context = torch_mlir.new_context()
        with context:
            module = None
            for model in models:
                info = importer.ModelInfo(model)
                module = module or info.create_module(context=context)
                try:
                    nodes = importer.NodeImporter.define_function(info.main_graph, module.operation)
                    nodes.import_all()
                except (
                    importer.OnnxImportError,
                    NotImplementedError,
                    ValueError,
                    KeyError,
                ) as error:
                    raise CompileError(str(error), str(error)) from None
            assert module is not None
            text = str(module.operation.get_asm(enable_debug_info=True))
        return self._lower(text, (torch_mlir.FROM_ONNX, torch_mlir.TO_LINALG))

    def _fill(self, texts: dict[int, str]) -> None:
        for place, call in enumerate(self._calls):
            call.text = texts[call.number]
            call.prefix = f"%f{place}_"


class _Call:
    """A call in the main function, which becomes the function's text."""

    def __init__(
        self, number: int, operands: Sequence[Value], results: Sequence[Value], location: str
    ) -> None:
        self.number = number
        self.types = [value.type for value in operands]
        self.results = results
        self.result_types = [value.type for value in results]
        self.location = location
        self.names: list[str] = []
        self.text = ""
        self.prefix = ""

    def lines(self) -> list[str]:
        """Returns the function's operations, with operands for its arguments and casts of its results."""
        text = _with_location(self.text, self.location)
        header, _, body = text.partition("{\n")
        text = re.sub(r"%([\w$.-]+)", lambda match: f"{self.prefix}{match[1]}", body)
        lines = [line for line in text.splitlines() if line.strip()]
        last = next(
            n for n in range(len(lines) - 1, -1, -1) if lines[n].lstrip().startswith("return")
        )
        returned = re.match(r"\s*return (.*?) : (.*?)( loc\(.*)?$", lines[last])
        values, types = (
            (returned[1].split(", "), _split_types(returned[2])) if returned else ([], [])
        )
        arguments = re.findall(r"%([\w$.-]+): (tensor<[^>]*>)", header)
        begin = [
            f"{self.prefix}{name} = tensor.cast {operand} : {given} to {type_}{self.location}"
            for (name, type_), operand, given in zip(arguments, self.names, self.types)
        ]
        end = [
            f"{result.ssa} = tensor.cast {value} : {type_} to {wanted}{self.location}"
            for result, value, type_, wanted in zip(self.results, values, types, self.result_types)
        ]
        return [*begin, *(line.strip() for line in lines[:last]), *end]


def _split_types(text: str) -> list[str]:
    return re.findall(r"tensor<[^>]*>", text)


def _with_location(text: str, location: str) -> str:
    """Returns the text with one location for all operations, and no locations for arguments of blocks."""
    lines = []
    for line in text.splitlines():
        plain = re.sub(
            r" loc\((?:[^()\"]|\"[^\"]*\"|\((?:[^()\"]|\"[^\"]*\"|\([^()]*\))*\))*\)", "", line
        )
        is_operation = plain.strip() and not re.search(r"([{]|^\s*\^.*:)$", plain.rstrip())
        is_end = re.fullmatch(r"\s*[}]( else [{])?", plain) is not None
        has_place = is_operation and not is_end and " loc(" in line
        lines.append(plain + (location if has_place or (is_end and " loc(" in line) else ""))
    return "\n".join(lines)


def _split(text: str) -> dict[str, str]:
    """The functions of a module by their names, without the last brace."""
    aliases = dict(re.findall(r"^(#map\d*) = (.*)$", text, re.M))
    if aliases:
        text = re.sub(r"(?m)^#map\d* = .*$", "", text)
        text = re.sub(r"#map\d*\b", lambda match: aliases[match[0]], text)
    parts = re.split(r"(?m)^\s*func\.func (?:private )?@(\w+)", text)
    found = {}
    for name, part in zip(parts[1::2], parts[2::2]):
        found[name] = part
    return found


#: End of torch-mlir in a message, with the operator between (`worker.Ended`).
_ENDED = re.compile(
    r"(torch-mlir (?:crashes|was killed|does not end|takes more)\b.*?)"
    r"(?: at the operator [\w.:]+)?( by the system.*| \(.*\))?"
)


def _explain(error: CompileError, node: Node) -> str:
    """The sentence about a node that torch-mlir does not lower."""
    reason = getattr(error, "reason", None) or ""
    lowered = re.fullmatch(r"(torch-mlir|FTuner) does not lower (?:the operator )?([\w.]+)", reason)
    operator = node.place.partition(" ")[0]
    ended = _ENDED.fullmatch(reason)
    if ended is not None:
        words = ended[1] + (ended[2] or "")
    elif lowered is None:
        words = "torch-mlir does not lower it as it is here"
    elif lowered[2] == operator:
        words = f"{lowered[1]} does not lower it"
    else:
        words = f"{lowered[1]} does not lower {lowered[2]}, which it becomes"
    return str(node.refuse(words, _ADVICE.get(operator, OTHER_OPERATORS)))


def _refuse_parts(node: Node) -> None:
    """Raises `Refused` for what torch-mlir leaves out of operators."""
    if node.operator in ("GRU", "LSTM", "RNN"):
        optional = {4: "sequence_lens", 7: "P"}
        parts = [name for index, name in optional.items() if node.input(index) is not None]
        parts += [name for name in ("clip", "input_forget") if node.attr(name)]
        if parts:
            raise node.refuse(
                f"torch-mlir leaves out its {' and '.join(parts)}",
                "write the layer with MatMul and activations",
            )
    if node.operator in ("AveragePool", "LpPool", "MaxPool") and node.attr("ceil_mode"):
        raise node.refuse(
            "its last windows reach beyond the padding",
            "set ceil_mode to 0, or pad the input with Pad",
        )


class _Unknown(Expr):
    """A size that is known only from a result."""


_UNKNOWN: Size = _Unknown((((), 0),))


def _single(node: Any, given: Node, wanted: Sequence[int]) -> tuple[Any, list[Value]]:
    """A model of one node, and the operands that are its inputs; equal nodes have equal models."""
    copy = onnx.NodeProto()
    copy.CopyFrom(node)
    copy.name = _MARK
    for field in ("input", "output"):
        copy.ClearField(field)
    host = HOST_INPUTS.get(node.op_type, ())
    names: list[str] = []
    inputs, constants, operands = [], [], []
    symbols: dict[Size, str] = {}
    for number, value in enumerate(given.inputs):
        names.append("" if value is None else f"in_{number}")
        if value is None:
            continue
        if host and value.array is None and given.name_of(number) in host:
            given.array(number)  # It is refused.
        if value.array is not None and not is_weight(value.array, value.kind):
            constants.append(numpy_helper.from_array(value.array, names[-1]))
            continue
        dims = [
            dim if isinstance(dim, int) else symbols.setdefault(dim, f"d{len(symbols)}")
            for dim in value.dims
        ]
        inputs.append(helper.make_tensor_value_info(names[-1], value.kind, dims))
        operands.append(value)
    copy.input.extend(names)
    copy.output.extend(f"out_{n}" if n in wanted else "" for n in range(len(node.output)))
    outputs = [helper.make_empty_tensor_value_info(f"out_{number}") for number in wanted]
    graph = helper.make_graph([copy], "foreign", inputs, outputs, constants)
    version = max(given.version, _MIN_VERSION) if node.domain in ("", "ai.onnx") else given.version
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid(node.domain, version)])
    try:
        defs.get_schema(node.op_type, version, node.domain)
        onnx.checker.check_node(copy, _checker_context(version))
    except (defs.SchemaError, onnx.checker.ValidationError):
        raise given.refuse(
            f"it is of operator set {given.version}",
            f"convert the model to operator set {_MIN_VERSION} or newer",
        ) from None
    return model, operands


def _checker_context(version: int) -> Any:
    context = onnx.checker.C.CheckerContext()
    context.ir_version = onnx.IR_VERSION
    context.opset_imports = {"": version}
    return context


def _sizes_by_name(operands: Sequence[Value]) -> dict[str, Size]:
    symbols: dict[Size, str] = {}
    for value in operands:
        for dim in value.dims:
            if not isinstance(dim, int):
                symbols.setdefault(dim, f"d{len(symbols)}")
    return {name: size for size, name in symbols.items()}


def _result_of(value: Any, names: dict[str, Size], given: Node) -> Value:
    kind = value.type.tensor_type
    if not value.type.HasField("tensor_type") or kind.elem_type not in ELEMENTS:
        name = onnx.TensorProto.DataType.Name(kind.elem_type)
        raise given.refuse(
            f"its result has elements of type {name}"
            if value.type.HasField("tensor_type")
            else "its result is not a tensor",
            "use tensors of FLOAT, FLOAT16, BFLOAT16, DOUBLE, BOOL or integers of 8 to 64 bits",
        )
    if not kind.HasField("shape"):
        raise given.refuse("the number of its result's dimensions is not known", OTHER_OPERATORS)
    dims: list[Size] = []
    for dim in kind.shape.dim:
        if dim.HasField("dim_value"):
            dims.append(dim.dim_value)
        else:
            dims.append(names.get(dim.dim_param, _UNKNOWN))
    return Value(kind.elem_type, tuple(dims))


__all__ = ["HOST_INPUTS", "OTHER_OPERATORS", "Foreign", "Refused", "tensor_type"]
