"""A model of ONNX as the text of one function."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ...errors import did_you_mean
from ...host.weights import Weights
from ..importing import torch_mlir
from .emitter import Emitter
from .foreign import Foreign
from .graph import Walk, constant_of, nodes_of, refuse_type
from .projections import join_projections
from .registry import Refused
from .scalars import quoted
from .sizes import Size, symbol
from .values import ELEMENTS, UNSIGNED, Value

Bounds = "tuple[int, int | None]"


@dataclass
class Emitted:
    """An emitted model: its text, or the reasons why it is refused."""

    text: str = ""
    weights: Weights = field(default_factory=lambda: Weights({}, 0))
    refusals: list[str] = field(default_factory=list)


def emit(model: Any, ranges: Mapping[str, Any], projections: str = "joined") -> Emitted:
    """Emits a checked model whose nodes have names; changes its graph."""
    graph = model.graph
    emitter, foreign = Emitter(), Foreign(torch_mlir.lower_text)
    walk = Walk(emitter, foreign, model.opset_import)
    symbols = _Symbols(ranges)
    scope: dict[str, Value | None] = {}
    kept = {tensor.name for tensor in graph.initializer}
    inputs = [value for value in graph.input if value.name not in kept]
    if projections == "joined":
        join_projections(graph, walk.opsets_version)
    for number, value in enumerate(inputs):
        scope[value.name] = _input(value, f"%arg{number}", emitter, walk, symbols)
    attributes = symbols.attributes()
    _refuse_types(walk, graph)
    if walk.refusals:
        return Emitted(refusals=walk.refusals)
    results = walk.graph(graph, scope)
    if not walk.refusals:
        walk.refusals += foreign.finish()
    if walk.refusals or any(result is None for result in results):
        return Emitted(
            refusals=walk.refusals or ["a result of the model is not computed by a node"]
        )
    outputs = [result for result in results if result is not None]
    names = [emitter.use(value) for value in outputs]
    lines = emitter.text()
    weights = _ordered(emitter.weights, graph)
    arguments = [scope[value.name] for value in inputs]
    tensors = [value for value in arguments if value is not None]
    signature = [_argument(f"%arg{n}", value) for n, value in enumerate(tensors)]
    places = {name: n for n, name in enumerate(emitter.weights)}
    signature += [_argument(f"%weight{places[name]}", value) for name, value in weights.items()]
    types = ", ".join(value.type for value in outputs)
    attributes_ = _attributes(
        [*tensors, *weights.values()],
        outputs,
        [*(value.name for value in inputs), *weights],
        [value.name for value in graph.output],
    )
    text = "\n".join(
        [
            *emitter.aliases(),
            f"module{attributes} {{",
            f"  func.func @{_symbol_name(graph.name or 'main')}({', '.join(signature)}) -> ({types}){attributes_} {{",
            *(f"    {line}" for line in lines),
            f"    return {', '.join(names)} : {types}",
            "  }",
            "}",
            "",
        ]
    )
    arrays = {name: value.array for name, value in weights.items() if value.array is not None}
    return Emitted(text, Weights(arrays, len(tensors)))


def _symbol_name(name: str) -> str:
    return name if name.replace("_", "a").isalnum() and name.isascii() else quoted(name)


def _refuse_types(walk: Walk, graph: Any) -> None:
    """Refuses nodes of the model with operands or results of types that FTuner does not support."""
    types = {value.name: value.type for value in [*graph.input, *graph.value_info, *graph.output]}
    for node in graph.node:
        try:
            walk._refuse_foreign_domain(node, node.name)
            for name in [*node.input, *node.output]:
                refuse_type(node, node.name, name, types.get(name))
        except Refused as refused:
            walk.refusals.append(str(refused))


def _input(
    value: Any, argument: str, emitter: Emitter, walk: Walk, symbols: _Symbols
) -> Value | None:
    kind = value.type.tensor_type
    if not value.type.HasField("tensor_type") or kind.elem_type not in ELEMENTS:
        return None
    if not kind.HasField("shape"):
        walk.unknown[value.name] = (
            f"the number of dimensions of the input '{value.name}' is not known",
            "declare its shape in the model",
        )
        return None
    dims: list[Size] = []
    for index, dim in enumerate(kind.shape.dim):
        if dim.HasField("dim_value"):
            dims.append(dim.dim_value)
        else:
            dims.append(symbol(symbols.symbol_of(dim.dim_param or f"{value.name}_{index}")))
    result = Value(kind.elem_type, tuple(dims), argument, name=value.name)
    for index, size in enumerate(dims):
        if not isinstance(size, int):
            emitter.define_symbol(str(size), argument, index, result.type)
    return result


def _argument(name: str, value: Value) -> str:
    if all(isinstance(dim, int) for dim in value.dims):
        return f"{name}: {value.type}"
    sizes = ", ".join(
        f"{d} : i64" if isinstance(d, int) else json.dumps(str(d)) for d in value.dims
    )
    return f"{name}: {value.type} {{ukernel.shape = [{sizes}]}}"


def _ordered(weights: Mapping[str, Value], graph: Any) -> dict[str, Value]:
    """Weights in the order of the model's initializers, then of their use."""
    names = [tensor.name for tensor in graph.initializer]
    places = {name: place for place, name in enumerate(names)}
    return dict(sorted(weights.items(), key=lambda item: places.get(item[0], len(names))))


def _attributes(
    arguments: list[Value], results: list[Value], names: list[str], result_names: list[str]
) -> str:
    """Names of arguments and results, and which of them are unsigned."""
    lists = []
    for key, values in (("arguments", arguments), ("results", results)):
        numbers = [
            str(number)
            for number, value in enumerate(values)
            if value.kind in UNSIGNED and value.element != "i1"
        ]
        if numbers:
            lists.append(f"{key} = array<i64: {', '.join(numbers)}>")
    unsigned = f", ukernel.unsigned = {{{', '.join(lists)}}}" if lists else ""
    given = f"arguments = [{', '.join(map(quoted, names))}], results = [{', '.join(map(quoted, result_names))}]"
    return f" attributes {{ukernel.names = {{{given}}}{unsigned}}}"


class _Symbols:
    """Names of dynamic dimensions with their ranges."""

    def __init__(self, ranges: Mapping[str, Any]) -> None:
        self.ranges = ranges
        self._symbols = torch_mlir.SymbolNames()

    def symbol_of(self, name: str) -> str:
        return self._symbols.symbol_of(name)

    def attributes(self) -> str:
        """The range of each symbol, as attributes of the module."""
        names = self._symbols.given
        for name in self.ranges:
            if name not in names.values():
                known = ", ".join(names.values()) or "none"
                raise ValueError(
                    f"range: expected one of the sizes {known}, but got '{name}'"
                    + did_you_mean(name, names.values())
                )
        result = []
        for symbol_, name in names.items():
            lower, upper = self.ranges.get(name, (1, None))
            if lower < 0 or (upper is not None and upper < lower):
                raise ValueError(f"range: expected sizes of {name}, but got {lower} to {upper}")
            upper = "?" if upper is None else upper
            result.append(f"{symbol_} = #ukernel.range<{lower} to {upper}>")
        return f" attributes {{ukernel.symbols = {{{', '.join(result)}}}}}" if result else ""


__all__ = ["Emitted", "emit", "constant_of", "nodes_of", "np"]
