"""Operators that are replaced by the functions that ONNX defines them by."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import onnx
from onnx import defs, helper

from .values import Value

#: Replaced by ONNX's own functions.
_FUNCTIONS = frozenset([
    "AffineGrid",
    "CausalConvWithState",
    "DynamicQuantizeLinear",
    "FlexAttention",
    "LinearAttention",
    "NegativeLogLikelihoodLoss",
    "RotaryEmbedding",
    "SoftmaxCrossEntropyLoss",
    "SwiGLU",
    "Swish",
])  # fmt: skip


def type_of(value: Value) -> Any:
    """The type of a value in ONNX; sizes that are not known have no names."""
    dims = [dim if isinstance(dim, int) else None for dim in value.dims]
    return helper.make_tensor_type_proto(value.kind, dims)


def function_of(node: Any, inputs: Sequence[Value | None], version: int) -> Any | None:
    """The function of a node of given operands; None if it is not to be replaced.

    Attributes that the node leaves out join it.
    """
    if node.op_type not in _FUNCTIONS:
        return None
    # ONNX declares no types of what a schema tells of functions.
    schema: Any = defs.get_schema(node.op_type, version, node.domain)
    function = onnx.FunctionProto()
    if schema.has_context_dependent_function:
        best = max(v for v in schema.context_dependent_function_opset_versions if v <= version)
        operands = [b"" if v is None else type_of(v).SerializeToString() for v in inputs]
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
        return None
    names = {attribute.name for attribute in node.attribute}
    for name, attribute in schema.attributes.items():
        if name not in names and attribute.default_value.type:
            node.attribute.append(attribute.default_value)
    return function


__all__ = ["function_of", "type_of"]
