"""Lowering of a graph's nodes, one after the other.

A node is folded if its results are known, else written by its own lowering (`registry.lowers`), else
replaced by the function that ONNX defines it by, else left to torch-mlir (`foreign.py`), else refused. A refused
node does not end the walk, so that all refusals of a model are reported at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, MutableMapping, Sequence
from typing import Any

import onnx
from onnx import TensorProto, defs, helper, numpy_helper

from .emitter import Emitter
from .folding import fold
from .foreign import Foreign
from .functions import function_of
from .registry import Missing, Node, Refused, attributes_of, lowerings, refusal
from .steps import STRUCTURES
from .values import ELEMENTS, Value

#: The operator set of nodes that `Emitter.call` writes.
CALL_VERSION = 21

Scope = MutableMapping[str, "Value | None"]


def is_own(domain: str) -> bool:
    """Returns whether a domain is ONNX's own."""
    return domain in ("", "ai.onnx")


#: The newest operator set whose attributes the lowerings know.
NEWEST_VERSION = 28

#: Operators that ONNX has not settled yet.
PREVIEW = "ai.onnx.preview"


def _check_attributes(node: Node) -> None:
    """Refuses an attribute that a newer operator set added: a lowering would ignore it."""
    if node.version <= NEWEST_VERSION:
        return
    known = defs.get_schema(node.operator, NEWEST_VERSION, node.domain).attributes
    for name in node.attributes:
        if name not in known:
            raise node.refuse(
                f"its attribute '{name}' is newer than operator set {NEWEST_VERSION}",
                f"write the model for operator set {NEWEST_VERSION}",
            )


def version_of(opsets: Iterable[Any], domain: str = "") -> int:
    """The version of a domain's operators."""
    versions = {entry.domain: entry.version for entry in opsets}
    if is_own(domain):
        return int(versions.get("", versions.get("ai.onnx", 1)))
    return int(versions.get(domain, 1))


def subgraphs_of(node: Any) -> list[Any]:
    return [
        graph
        for attribute in node.attribute
        for graph in [*attribute.graphs, *([attribute.g] if attribute.HasField("g") else [])]
    ]


def nodes_of(graph: Any) -> Iterator[Any]:
    """The nodes of a graph and of those inside it."""
    for node in graph.node:
        yield node
        for inner in subgraphs_of(node):
            yield from nodes_of(inner)


def names_in(node: Any) -> set[str]:
    """Values that a node, or one inside it, reads."""
    names = {*node.input}
    for graph in subgraphs_of(node):
        names |= {value.name for value in graph.output}
        names = names.union(*(names_in(inner) for inner in graph.node))
    return names


#: Exceptions that lowerings raise for nodes that ONNX does not allow.
_UNFIT = (ArithmeticError, AssertionError, AttributeError, LookupError, TypeError, ValueError)


class Walk:
    """Emits nodes.

    Attributes:
        refusals: sentences, in the order of the nodes.
        unknown: why an input of the graph cannot be used, by its name.
    """

    def __init__(self, emitter: Emitter, foreign: Foreign, opsets: Sequence[Any]) -> None:
        self.emitter = emitter
        self.foreign = foreign
        self.opsets = opsets
        self.refusals: list[str] = []
        self.unknown: dict[str, tuple[str, str]] = {}
        self.opsets_version = version_of(opsets)
        self._lowerings = lowerings()
        emitter.caller = self._call

    def graph(self, graph: Any, scope: Scope, place: str | None = None) -> list[Value | None]:
        """Emits a graph's nodes; returns its results, None for one that a refused node makes."""
        for tensor in graph.initializer:
            scope[tensor.name] = constant_of(tensor)
        for tensor in graph.sparse_initializer:
            scope[tensor.values.name] = None
        used = {value.name for value in graph.output}
        needed = []
        for node in reversed(graph.node):
            if not used.isdisjoint(node.output):
                needed.append(node)
                used |= names_in(node)
        for node in reversed(needed):
            self.node(node, scope, self.opsets, used, place)
        return [scope.get(value.name) for value in graph.output]

    def node(
        self,
        node: Any,
        scope: Scope,
        opsets: Sequence[Any],
        used: set[str] | None = None,
        place: str | None = None,
    ) -> None:
        """Emits a node; its results join the scope."""
        place = place or node.name
        before, location = self.emitter.node, self.emitter.at(place)
        results: Sequence[Value | None]
        try:
            self._refuse_foreign_domain(node, place)
            inputs = [self._operand(node, name, scope, place) for name in node.input]
            outputs = [name if used is None or name in used else "" for name in node.output]
            structure = STRUCTURES.get(node.op_type) if is_own(node.domain) else None
            if structure is not None:
                results = structure(self, node, inputs, scope, place)
            else:
                results = self.apply(
                    node, inputs, version_of(opsets, node.domain), place, opsets, outputs
                )
        except Refused as refused:
            if str(refused) not in self.refusals:
                self.refusals.append(str(refused))
            results = [None] * len(node.output)
        except Missing:
            results = [None] * len(node.output)
        self.emitter.node, self.emitter.location = before, location
        for name, result in zip(node.output, results):
            if name:
                scope[name] = result
                if result is not None and not result.name:
                    result.name = name

    def _operand(self, node: Any, name: str, scope: Scope, place: str) -> Value | None:
        if not name:
            return None
        if name in self.unknown:
            raise refusal(place.partition(" ")[0], place, *self.unknown[name])
        value = scope.get(name)
        if value is None:
            raise Missing()
        return value

    def apply(
        self,
        node: Any,
        inputs: Sequence[Value | None],
        version: int,
        place: str,
        opsets: Sequence[Any],
        outputs: Sequence[str],
    ) -> Sequence[Value | None]:
        """The results of a node for given operands."""
        wanted = [number for number, name in enumerate(outputs) if name]
        folded = fold(node, inputs, version)
        if folded is not None:
            names = [number for number, name in enumerate(node.output) if name]
            by_number = dict(zip(names, folded))
            return [by_number.get(number) for number in range(len(node.output))]
        attributes = attributes_of(node)
        given = Node(node.op_type, place, version, [*inputs], attributes, outputs, node.domain)
        self.emitter.node = given
        lowering = self._lowerings.get(node.op_type) if is_own(node.domain) else None
        if lowering is not None:
            _check_attributes(given)
            try:
                found = lowering(self.emitter, given)
            except _UNFIT as error:
                # ONNX's checker accepts attributes and shapes that no operator has.
                raise given.refuse(
                    f"its operands and attributes do not fit together ({type(error).__name__})",
                    "check the model beside another runtime",
                ) from error
            results = [found] if isinstance(found, Value) else [*found]
            for result in results:
                if result.origin is None:
                    result.origin = given
            return results
        function = function_of(node, inputs, version)
        if function is not None:
            return self._function(function, node, inputs, place)
        return self.foreign.call(self.emitter, node, given, wanted)

    def _function(
        self, function: Any, node: Any, inputs: Sequence[Value | None], place: str
    ) -> Sequence[Value | None]:
        """The results of the function by which ONNX defines an operator."""
        scope: dict[str, Value | None] = dict(zip(function.input, inputs))
        absent = {name for name, value in scope.items() if value is None}
        absent |= {*function.input[len(inputs) :]}
        given = {attribute.name: attribute for attribute in node.attribute}
        opsets = [*function.opset_import]
        if not any(is_own(entry.domain) for entry in opsets):
            opsets += [entry for entry in self.opsets if is_own(entry.domain)]
        for inner in function.node:
            copy = _with_attributes(inner, given)
            for number, name in enumerate(copy.input):
                if name in absent:
                    copy.input[number] = ""
            self.node(copy, scope, opsets, None, place)
        results = [scope.get(name) for name in function.output[: len(node.output)]]
        if any(result is None and name for result, name in zip(results, node.output)):
            raise Missing()
        return results

    def _call(
        self,
        operator: str,
        values: Sequence[Value | None],
        outputs: int,
        attributes: Mapping[str, Any],
    ) -> Any:
        node = helper.make_node(
            operator,
            ["" if value is None else f"in_{number}" for number, value in enumerate(values)],
            [f"out_{number}" for number in range(outputs)],
            **attributes,
        )
        before = self.emitter.node
        opsets = [helper.make_opsetid("", CALL_VERSION)]
        results = self.apply(node, values, CALL_VERSION, before.place, opsets, [*node.output])
        self.emitter.node = before
        return results[0] if outputs == 1 else [*results]

    def _refuse_foreign_domain(self, node: Any, place: str) -> None:
        if not is_own(node.domain) and node.domain != PREVIEW:
            raise refusal(
                f"{node.op_type} of the domain {node.domain}",
                place,
                "it is not an operator of ONNX's own",
                "write it with operators of ONNX's own domain, or as a function of the model",
            )


def _with_attributes(node: Any, given: Mapping[str, Any]) -> Any:
    """A node of a function with the attributes that the function was given."""
    copy = onnx.NodeProto()
    copy.CopyFrom(node)
    copy.ClearField("attribute")
    for attribute in node.attribute:
        if attribute.ref_attr_name:
            if attribute.ref_attr_name not in given:
                continue
            own = copy.attribute.add()
            own.CopyFrom(given[attribute.ref_attr_name])
            own.name = attribute.name
            continue
        own = copy.attribute.add()
        own.CopyFrom(attribute)
        for graph in [own.g, *own.graphs] if own.HasField("g") or own.graphs else []:
            nodes = [_with_attributes(inner, given) for inner in graph.node]
            graph.ClearField("node")
            graph.node.extend(nodes)
    return copy


def constant_of(tensor: Any) -> Value | None:
    """The value of an initializer; None if its elements are not FTuner's."""
    if tensor.data_type not in ELEMENTS:
        return None
    array = numpy_helper.to_array(tensor)
    return Value(tensor.data_type, array.shape, array=array, name=tensor.name)


def refuse_type(node: Any, place: str, value: str, kind: Any) -> None:
    """Raises `Refused` for a value of a type that FTuner does not support."""
    if kind is None or kind.WhichOneof("value") is None:
        return
    operator = place.partition(" ")[0]
    if not kind.HasField("tensor_type"):
        nouns = {"sequence_type": "a sequence", "optional_type": "optional"}
        word = nouns.get(kind.WhichOneof("value"), "no tensor")
        raise refusal(operator, place, f"its value '{value}' is {word}", "use tensors alone")
    element = kind.tensor_type.elem_type
    if element not in ELEMENTS and element != TensorProto.UNDEFINED:
        name = TensorProto.DataType.Name(element)
        raise refusal(
            operator,
            place,
            f"its value '{value}' has elements of type {name}",
            "compute with those of FLOAT, FLOAT16, BFLOAT16, DOUBLE, BOOL or integers of 8 to 64 bits",
        )


__all__ = ["Walk", "is_own", "names_in", "nodes_of", "refuse_type", "subgraphs_of", "version_of"]
