"""What is known of a graph's values before a run.

Nodes of known operands become initializers, computed by ONNX's reference evaluator. So do parts of
shapes: of `Shape` and of operators that only move elements, each element is known or not.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from onnx import TensorProto, helper, numpy_helper

Array = np.ndarray[Any, Any]

#: Larger results are computed at each call, for they would be larger than what they are made of.
_MAX_ELEMENTS = 4096

#: Results differ from run to run.
_RANDOM = frozenset(
    ["Bernoulli", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform"]
    + ["RandomUniformLike"]
)

#: Operators whose result has the elements of the operands, each in a place that the others decide.
_MOVES = frozenset(
    ["Concat", "Flatten", "Gather", "Identity", "Reshape", "Slice", "Split", "Squeeze"]
    + ["Transpose", "Unsqueeze"]
)


def is_tensor_of_shape(value: Any) -> bool:
    kind = value.type
    return bool(kind.HasField("tensor_type") and kind.tensor_type.HasField("shape"))


def shape_of(value: Any) -> list[int | None]:
    """The sizes of a value of a known rank, None where one is not."""
    dims = value.type.tensor_type.shape.dim
    return [dim.dim_value if dim.HasField("dim_value") else None for dim in dims]


def is_own(domain: str) -> bool:
    """Whether a domain is ONNX's own."""
    return domain in ("", "ai.onnx")


def version_of(model: Any, domain: str = "") -> int:
    """The version of a domain's operators."""
    versions = {entry.domain: entry.version for entry in model.opset_import}
    if is_own(domain):
        return int(versions.get("", versions.get("ai.onnx", 1)))
    return int(versions.get(domain, 1))


def subgraphs_of(node: Any) -> list[Any]:
    return [
        graph
        for attribute in node.attribute
        for graph in [*attribute.graphs, *([attribute.g] if attribute.HasField("g") else [])]
    ]


def fold(model: Any) -> bool:
    """Makes initializers of the main graph's nodes whose results are known; whether there were."""
    values = Values(model)
    kept = []
    for node in model.graph.node:
        if not values.learn(node):
            kept.append(node)
    if len(kept) == len(model.graph.node):
        return False
    replace_nodes(model.graph, kept)
    for name, array in values.folded.items():
        model.graph.initializer.append(numpy_helper.from_array(array, name))
    return True


def drop_unused(graph: Any) -> None:
    """Drops the nodes and initializers of a graph that no result needs."""
    used = {value.name for value in graph.output}
    kept: list[Any] = []
    for node in reversed(graph.node):
        if used.isdisjoint(node.output):
            continue
        kept.append(node)
        used |= _names_in(node)
    replace_nodes(graph, reversed(kept))
    tensors = [copy(tensor) for tensor in graph.initializer if tensor.name in used]
    graph.ClearField("initializer")
    graph.initializer.extend(tensors)


def _names_in(node: Any) -> set[str]:
    """Values that a node, or one inside it, reads."""
    names = {*node.input}
    for graph in subgraphs_of(node):
        names |= {value.name for value in graph.output}
        names = names.union(*(_names_in(inner) for inner in graph.node))
    return names


def copy(message: Any) -> Any:
    other = type(message)()
    other.CopyFrom(message)
    return other


def replace_nodes(graph: Any, nodes: Iterable[Any]) -> None:
    """Gives a graph other nodes; some of them may be its own."""
    copies = [copy(node) for node in nodes]
    graph.ClearField("node")
    graph.node.extend(copies)


@dataclass
class _Partial:
    """A value with the places where it is known."""

    array: Array
    known: Array


class Values:
    """What is known of the values of a model's main graph.

    Attributes:
        folded: results of nodes that `learn` took.
    """

    def __init__(self, model: Any) -> None:
        self.folded: dict[str, Array] = {}
        self._model = model
        graph = model.graph
        self._tensors = {tensor.name: tensor for tensor in graph.initializer}
        self._partial: dict[str, _Partial] = {}
        self._shapes = {
            value.name: shape_of(value)
            for value in [*graph.input, *graph.value_info, *graph.output]
            if is_tensor_of_shape(value)
        }
        self._elements = {
            value.name: value.type.tensor_type.elem_type
            for value in [*graph.input, *graph.value_info, *graph.output]
            if value.type.HasField("tensor_type") and value.type.tensor_type.elem_type
        }
        self._elements.update({name: t.data_type for name, t in self._tensors.items()})
        self._shapes.update({name: [*t.dims] for name, t in self._tensors.items()})

    def element_of(self, name: str) -> int | None:
        """A value's type of elements in ONNX."""
        return self._elements.get(name)

    def shape_of(self, name: str) -> list[int | None] | None:
        """A value's sizes, None where one is not known; None without a rank."""
        return self._shapes.get(name)

    def rank_of(self, name: str, default: int) -> int:
        return len(self._shapes[name]) if name in self._shapes else default

    def array_of(self, name: str) -> Array | None:
        """A known value."""
        if name in self.folded:
            return self.folded[name]
        if name in self._tensors:
            return _array_of(self._tensors[name])
        return None

    def learn(self, node: Any) -> bool:
        """Notes a node's results; whether all are known."""
        if not is_own(node.domain) or node.op_type in _RANDOM or subgraphs_of(node):
            return False
        if any(attribute.ref_attr_name for attribute in node.attribute):
            return False
        results = self._results_of(node)
        if results is None:
            return False
        self.folded.update(results)
        return True

    def _results_of(self, node: Any) -> dict[str, Array] | None:
        if node.op_type == "Shape" and node.input[0] in self._shapes:
            return self._shape(node, self._shapes[node.input[0]])
        if node.op_type == "Size" and node.input[0] in self._shapes:
            shape = self._shapes[node.input[0]]
            sizes = [size for size in shape if size is not None]
            if len(sizes) == len(shape):
                return {node.output[0]: np.array(np.prod(sizes, dtype=np.int64))}
        names = [name for name in node.input if name]
        if all(name in self.folded or name in self._tensors for name in names):
            return self._evaluated(node, names)
        if node.op_type in _MOVES and any(name in self._partial for name in names):
            return self._moved(node, names)
        return None

    def _shape(self, node: Any, sizes: Sequence[int | None]) -> dict[str, Array] | None:
        given = {attribute.name: attribute.i for attribute in node.attribute}
        sizes = sizes[given.get("start", 0) : given.get("end", len(sizes))]
        array = np.array([0 if size is None else size for size in sizes], np.int64)
        known = np.array([size is not None for size in sizes], np.int64)
        return self._noted(node.output[0], _Partial(array, known))

    def _noted(self, name: str, value: _Partial) -> dict[str, Array] | None:
        if value.known.all():
            return {name: value.array}
        self._partial[name] = value
        return None

    def _evaluated(self, node: Any, names: Iterable[str]) -> dict[str, Array] | None:
        tensors = [self._tensors[name] for name in names if name in self._tensors]
        if any(np.prod(tensor.dims, dtype=np.int64) > _MAX_ELEMENTS for tensor in tensors):
            return None
        operands = {name: self.array_of(name) for name in names}
        is_widened = node.op_type == "Cast" and _is_narrow_matrix(operands[node.input[0]])
        if node.op_type == "DequantizeLinear" or is_widened:
            return None  # What a model keeps in few bits stays there.
        return evaluate(self._model, node, operands)

    def _moved(self, node: Any, names: Iterable[str]) -> dict[str, Array] | None:
        """The elements that are known of an operator that moves them."""
        moving = [*node.input] if node.op_type == "Concat" else [*node.input][:1]
        arrays: dict[str, Any] = {}
        known: dict[str, Any] = {}
        for name in names:
            array = self.array_of(name)
            if array is not None:
                arrays[name] = array
                known[name] = np.ones(array.shape, np.int64) if name in moving else array
            elif name in self._partial and name in moving:
                arrays[name], known[name] = self._partial[name].array, self._partial[name].known
            else:
                return None
        values, places = evaluate(self._model, node, arrays), evaluate(self._model, node, known)
        if values is None or places is None:
            return None
        results = {
            name: self._noted(name, _Partial(values[name], places[name])) for name in values
        }
        if any(result is None for result in results.values()):
            return None
        return values


def evaluate(model: Any, node: Any, operands: dict[str, Any]) -> dict[str, Array] | None:
    """A node's results of known operands; None if they are large, or the evaluator has none."""
    results = [name for name in node.output if name]
    inputs = [
        helper.make_tensor_value_info(
            name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape
        )
        for name, array in operands.items()
    ]
    outputs = [helper.make_empty_tensor_value_info(name) for name in results]
    graph = helper.make_graph([node], "node", inputs, outputs)
    single = helper.make_model(
        graph, opset_imports=list(model.opset_import), ir_version=model.ir_version
    )
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            found = _evaluator()(single).run(None, operands)
    except Exception:  # The evaluator is not written to tell what it cannot do.
        return None
    arrays = {}
    for name, value in zip(results, found):
        if not isinstance(value, (np.ndarray, np.generic)) or value.size > _MAX_ELEMENTS:
            return None
        arrays[name] = np.asarray(value)
    return arrays


@functools.cache
def _evaluator() -> Any:
    from onnx.reference import ReferenceEvaluator

    return ReferenceEvaluator


def _is_narrow_matrix(array: Array | None) -> bool:
    return array is not None and array.ndim >= 2 and array.dtype in (np.int8, np.uint8)


def _array_of(tensor: TensorProto) -> Array:
    return np.asarray(numpy_helper.to_array(tensor))


__all__ = ["Values", "copy", "drop_unused", "evaluate", "fold", "is_own", "subgraphs_of", "version_of"]
