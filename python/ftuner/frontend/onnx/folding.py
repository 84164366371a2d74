"""Results that are known before a run.

ONNX's reference evaluator computes a node with known operands. Integers that come from shapes are
sizes: operators that move elements move them, and arithmetic computes with them.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from onnx import TensorProto, helper

from . import sizes as arithmetic
from .sizes import Size, product
from .values import MAX_ELEMENTS, Array, Value, dtype_of, kind_of

#: Results differ from run to run.
_RANDOM = frozenset(
    ["Bernoulli", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform"]
    + ["RandomUniformLike"]
)

#: Operators that only move elements of some operands, to places that the other operands decide.
_MOVES: Mapping[str, Sequence[int] | None] = {
    "Concat": None, "Expand": [0], "Flatten": [0], "Gather": [0], "GatherElements": [0], "GatherND": [0],
    "Identity": [0], "Reshape": [0], "Slice": [0], "Split": [0], "Squeeze": [0], "Tile": [0],
    "Transpose": [0], "Unsqueeze": [0], "ScatterElements": [0, 2], "ScatterND": [0, 2], "Where": [1, 2],
}  # fmt: skip

#: Operators that are computed once of large weights, too; the result may not need more memory than they.
_ON_WEIGHTS = frozenset(
    """Abs Add Ceil Clip Div Erf Exp Floor Log Max Mean Min Mul Neg Pow Reciprocal ReduceL1 ReduceL2
    ReduceLogSumExp ReduceMax ReduceMean ReduceMin ReduceSum ReduceSumSquare Relu Round Sigmoid Sign Softmax
    Softplus Sqrt Sub Sum Tanh Where""".split()
)

_INTEGERS = (TensorProto.INT32, TensorProto.INT64)


def fold(node: Any, inputs: Sequence[Value | None], version: int) -> list[Value] | None:
    """The known results of a node; None if a result is not known.

    `node` is one of ONNX whose operands are `inputs`.
    """
    if node.domain not in ("", "ai.onnx") or node.op_type in _RANDOM:
        return None
    given = [value for value in inputs if value is not None]
    if node.op_type in ("Shape", "Size") and given:
        return [_shape(node, given[0])]
    if any(a.graphs or a.HasField("g") or a.ref_attr_name for a in node.attribute):
        return None
    if all(value.array is not None for value in given):
        return _evaluated(node, inputs, version)
    if not any(value.sizes is not None for value in given):
        return None
    if node.op_type in _MOVES:
        return _moved(node, inputs, version)
    return _computed(node, given)


def _shape(node: Any, value: Value) -> Value:
    if node.op_type == "Size":
        return _of_sizes(_array_of([product(value.dims)], ()), TensorProto.INT64)
    given = {attribute.name: attribute.i for attribute in node.attribute}
    sizes = value.dims[given.get("start", 0) : given.get("end", value.rank)]
    return _of_sizes(_array_of(sizes, (len(sizes),)), TensorProto.INT64)


def _array_of(sizes: Iterable[Any], shape: Sequence[int]) -> Array:
    items = [*sizes]
    array = np.empty(len(items), object)
    for place, size in enumerate(items):
        array[place] = size
    return array.reshape(shape)


def _of_sizes(array: Array, kind: int) -> Value:
    if all(isinstance(size, int) for size in array.flat):
        return Value(kind, array.shape, array=array.astype(dtype_of(kind)))
    return Value(kind, array.shape, sizes=array)


def _evaluated(node: Any, inputs: Sequence[Value | None], version: int) -> list[Value] | None:
    arrays = [None if value is None else value.array for value in inputs]
    limit = MAX_ELEMENTS
    if node.op_type in _ON_WEIGHTS:
        limit = max(limit, *(array.size for array in arrays if array is not None))
    if any(array is not None and array.size > limit for array in arrays):
        return None
    first = arrays[0] if arrays else None
    is_widened = node.op_type == "Cast" and _is_narrow_matrix(first)
    if node.op_type == "DequantizeLinear" or is_widened:
        return None  # Values that a model stores in few bits keep these bits.
    results = evaluate(node, arrays, version, limit)
    if results is None:
        return None
    return [Value(kind_of(array.dtype), array.shape, array=array) for array in results]


def _is_narrow_matrix(array: Array | None) -> bool:
    return array is not None and array.ndim >= 2 and array.dtype in (np.int8, np.uint8)


def _elements_of(value: Value) -> Array | None:
    """The elements as objects, None where one is not known."""
    if value.array is not None:
        return value.array.astype(object)
    return value.sizes


def _moved(node: Any, inputs: Sequence[Value | None], version: int) -> list[Value] | None:
    """The evaluator moves numbers that stand for the elements."""
    moving = _MOVES[node.op_type]
    arrays: list[Array | None] = []
    elements: list[Any] = []
    kind: int = TensorProto.INT64
    for number, value in enumerate(inputs):
        if value is None:
            arrays.append(None)
        elif moving is None or number in moving:
            own = _elements_of(value)
            if own is None or own.size > MAX_ELEMENTS:
                return None
            arrays.append(np.arange(len(elements), len(elements) + own.size).reshape(own.shape))
            elements += [*own.flat]
            kind = value.kind
        elif value.array is None:
            return None
        else:
            arrays.append(value.array)
    results = evaluate(node, arrays, version)
    if results is None or kind not in _INTEGERS:
        return None
    return [
        _of_sizes(_array_of((elements[int(i)] for i in result.flat), result.shape), kind)
        for result in results
    ]


def _truncated(a: Size, b: Size) -> Size | None:
    """ONNX's division of integers rounds to zero."""
    is_plain = arithmetic.is_nonnegative(a) and arithmetic.is_positive(b)
    if isinstance(a, int) and isinstance(b, int) and b:
        return int(a / b) if abs(a) < 2**52 else None
    return arithmetic.floordiv(a, b) if is_plain or (isinstance(b, int) and b > 0) else None


def _remainder(a: Size, b: Size) -> Size | None:
    if isinstance(b, int) and b > 0:
        return a - arithmetic.floordiv(a, b) * b
    return None


_ARITHMETIC: Mapping[str, Callable[..., Size | None]] = {
    "Add": lambda a, b: a + b,
    "Sub": lambda a, b: a - b,
    "Mul": lambda a, b: a * b,
    "Div": _truncated,
    "Mod": _remainder,
    "Max": lambda *all_: functools.reduce(arithmetic.maximum, all_),
    "Min": lambda *all_: functools.reduce(arithmetic.minimum, all_),
    "Neg": lambda a: -a,
    "Abs": lambda a: a if arithmetic.is_nonnegative(a) else None,
    "Relu": lambda a: arithmetic.maximum(a, 0),
}


def _computed(node: Any, inputs: Sequence[Value]) -> list[Value] | None:
    """Arithmetic of sizes."""
    given = {a.name: helper.get_attribute_value(a) for a in node.attribute}
    operator = node.op_type
    elements = [_elements_of(value) for value in inputs]
    if any(e is None or e.size > MAX_ELEMENTS for e in elements):
        return None
    kind = inputs[0].kind
    known: list[Array] = [e for e in elements if e is not None]
    if operator == "Cast" and given.get("to") in _INTEGERS and kind in _INTEGERS:
        return [_of_sizes(known[0], int(given["to"]))]
    if operator in ("ReduceProd", "ReduceSum") and known[0].ndim <= 1:
        return _reduced(operator, known[0], given, inputs)
    if operator in ("Equal", "Greater", "Less", "GreaterOrEqual", "LessOrEqual"):
        return _compared(operator, known)
    if operator not in _ARITHMETIC or kind not in _INTEGERS or given.get("fmod"):
        return None
    try:
        operands = np.broadcast_arrays(*known)
    except ValueError:
        return None
    found = [
        None if any(item is None for item in items) else _ARITHMETIC[operator](*items)
        for items in zip(*(array.flat for array in operands))
    ]
    if any(isinstance(f, (np.generic,)) for f in found) or all(f is None for f in found):
        return None
    value = _of_sizes(_array_of(found, operands[0].shape), kind)
    return [value] if value.is_known else None


def _reduced(
    operator: str, array: Array, given: Mapping[str, Any], inputs: Sequence[Value]
) -> list[Value] | None:
    if any(item is None for item in array.flat) or not array.ndim:
        return None
    if given.get("noop_with_empty_axes"):
        return None
    total: Size = 1 if operator == "ReduceProd" else 0
    for item in array.flat:
        total = total * item if operator == "ReduceProd" else total + item
    shape = (1,) if given.get("keepdims", 1) else ()
    return [_of_sizes(_array_of([total], shape), inputs[0].kind)]


def _compared(operator: str, known: Sequence[Array]) -> list[Value] | None:
    """Comparisons whose outcome is the same for all sizes."""
    found = []
    for a, b in zip(*(array.flat for array in np.broadcast_arrays(*known))):
        if a is None or b is None:
            return None
        outcome = _outcome(operator, a, b)
        if outcome is None:
            return None
        found.append(outcome)
    array = np.array(found, bool).reshape(np.broadcast_shapes(*(k.shape for k in known)))
    return [Value(TensorProto.BOOL, array.shape, array=array)]


def _outcome(operator: str, a: Size, b: Size) -> bool | None:
    if operator in ("Less", "LessOrEqual"):
        return _outcome({"Less": "Greater", "LessOrEqual": "GreaterOrEqual"}[operator], b, a)
    difference = a - b
    if operator == "Equal":
        if difference == 0:
            return True
        is_apart = arithmetic.is_positive(difference) or arithmetic.is_positive(-difference)
        return False if is_apart else None
    if operator == "Greater":
        if arithmetic.is_positive(difference):
            return True
        return False if arithmetic.is_nonnegative(-difference) else None
    if arithmetic.is_nonnegative(difference):
        return True
    return False if arithmetic.is_positive(-difference) else None


def evaluate(
    node: Any, operands: Sequence[Array | None], version: int, limit: int = MAX_ELEMENTS
) -> list[Array] | None:
    """The results of a node whose operands are known.

    Returns:
        The results, or None if one has more than `limit` elements, or the evaluator fails.
    """
    names = [f"in_{number}" if array is not None else "" for number, array in enumerate(operands)]
    results = [f"out_{number}" if name else "" for number, name in enumerate(node.output)]
    single = type(node)()
    single.CopyFrom(node)
    for field, items in (("input", names), ("output", results)):
        single.ClearField(field)
        getattr(single, field).extend(items)
    given = {name: array for name, array in zip(names, operands) if array is not None}
    inputs = [
        helper.make_tensor_value_info(name, kind_of(array.dtype), array.shape)
        for name, array in given.items()
    ]
    outputs = [helper.make_empty_tensor_value_info(name) for name in results if name]
    graph = helper.make_graph([single], "node", inputs, outputs)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", version)])
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            found = _evaluator()(model).run(None, given)
    except (
        Exception
    ):  # The evaluator raises exceptions of any kind for nodes that it does not support.
        return None
    arrays = []
    for value in found:
        if not isinstance(value, (np.ndarray, np.generic)) or value.size > limit:
            return None
        array = np.asarray(value)
        if array.dtype == object or array.dtype.kind in "USO":
            return None
        arrays.append(array)
    return arrays


@functools.cache
def _evaluator() -> Any:
    from onnx.reference import ReferenceEvaluator

    return ReferenceEvaluator


__all__ = ["evaluate", "fold"]
