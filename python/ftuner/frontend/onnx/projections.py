"""Products of a graph that share an input, as one product of joined weights.

The joined weights are initializers, made here once. What the products were is `Split` again, whose
results are parts that their readers read in place. Graphs inside of nodes are left as they are.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from onnx import helper, numpy_helper

from ..importing.joins import Kind, Projection, Step, groups
from .graph import is_own, names_in
from .registry import attributes_of, lowerings
from .values import FLOATS, Array

_VIEWS = frozenset(
    "Cast CastLike Dropout Expand Flatten Identity Reshape Squeeze Transpose Unsqueeze".split()
)
#: Products, except those with integers, which are not of floats only.
_PRODUCTS = frozenset("Attention Conv Einsum Gemm MatMul".split())
#: Operators that ONNX defines by functions of elements.
_POINTWISE = frozenset("SwiGLU Swish".split())


@dataclass(frozen=True)
class _Product(Projection):
    """A product with a weight, and what can be joined with it.

    Attributes:
        nodes: the product, a sum with its bias and a scale of that, where there are such nodes.
        weight: the name of the weight.
        columns_first: whether the weight is transposed (`transB`).
        bias: the vector that is added to each row; None without one.
        scale: a number that the result is multiplied by; None where there is no scale.
    """

    nodes: list[Any]
    weight: str
    columns_first: bool
    bias: Array | None
    scale: Array | None


def join_projections(graph: Any, version: int) -> None:
    """Joins products of a graph whose nodes have names and belong to an operator set."""
    joins = _Joins(graph, version)
    for products in groups(joins.steps()):
        joins.add(products)
    joins.rewrite()


class _Joins:
    """The products of a graph with what joins need to know of its values.

    Attributes:
        tensors: initializers and values of `Constant`s, by name.
        readers: the nodes that read each value.
        results: of the graph.
        replacements: the nodes that take the place of a node, by its first result.
        constants: new initializers.
        names: of all values.
    """

    def __init__(self, graph: Any, version: int) -> None:
        self.graph, self.version = graph, version
        self.tensors = {tensor.name: tensor for tensor in graph.initializer}
        self.results = {value.name for value in graph.output}
        self.readers: dict[str, list[Any]] = {}
        self.replacements: dict[str, list[Any]] = {}
        self.constants: list[Any] = []
        self.names = {*self.tensors, *(value.name for value in graph.input)}
        for node in graph.node:
            if node.op_type == "Constant" and node.attribute[0].name == "value":
                self.tensors[node.output[0]] = node.attribute[0].t
            self.names.update(node.output)
            for name in names_in(node):
                self.readers.setdefault(name, []).append(node)

    def steps(self) -> list[Step[_Product]]:
        result: list[Step[_Product]] = []
        inner: set[str] = set()
        kinds = _kinds()
        for node in self.graph.node:
            if inner.intersection(node.output):
                continue  # A bias or a scale of a product.
            own = self.product(node)
            nodes = own.nodes if own else [node]
            inner.update(name for other in nodes[1:] for name in other.output)
            kind = kinds.get(node.op_type, Kind.OTHER) if is_own(node.domain) else Kind.OTHER
            result.append(Step(kind, [*names_in(node)], [*nodes[-1].output], own))
        return [*result, Step(Kind.PLACE, [*self.results], [])]

    def product(self, node: Any) -> _Product | None:
        """The product that a node is; None where it is not one with a weight of its own."""
        if node.op_type not in ("MatMul", "Gemm") or not is_own(node.domain):
            return None
        given = attributes_of(node)
        left, right, *addends = node.input
        weight = self.tensors.get(right)
        if weight is None or left in self.tensors or len(self.readers[right]) != 1:
            return None
        is_plain = (
            weight.data_type in FLOATS and len(weight.dims) == 2 and right not in self.results
        )
        factors = (given.get("alpha", 1), given.get("beta", 1))
        if not is_plain or given.get("transA") or factors != (1, 1):
            return None
        columns_first = bool(given.get("transB"))
        columns, length = weight.dims if columns_first else reversed(weight.dims)
        nodes, bias = [node], None
        if any(addends):
            bias = self.vector(addends[0], columns)
            if bias is None:
                return None
        elif node.op_type == "MatMul":
            bias = self.follower(nodes, "Add", columns)
        scale = self.follower(nodes, "Mul", 1)
        form = (node.op_type, columns_first, weight.data_type, length)
        element_bytes = helper.tensor_dtype_to_np_dtype(weight.data_type).itemsize
        return _Product(
            left, form, columns, element_bytes, nodes, right, columns_first, bias, scale
        )

    def vector(self, name: str, columns: int) -> Array | None:
        """The numbers of a constant that is a vector, or one number without or with a dimension."""
        tensor = self.tensors.get(name)
        shapes = ([columns], []) if columns == 1 else ([columns],)
        if tensor is None or [*tensor.dims] not in shapes:
            return None
        return numpy_helper.to_array(tensor).reshape(columns)

    def follower(self, nodes: list[Any], operator: str, columns: int) -> Array | None:
        """The constant operand of the only reader of a product's result; the reader joins the nodes."""
        (result,) = nodes[-1].output
        readers = self.readers.get(result, [])
        if len(readers) != 1 or result in self.results or readers[0].op_type != operator:
            return None
        node = readers[0]
        others = [name for name in node.input if name != result]
        found = self.vector(others[0], columns) if len(others) == 1 else None
        if found is not None:
            nodes.append(node)
        return found

    def add(self, products: list[_Product]) -> None:
        """Has one product and a `Split` take the place of the first product of a group."""
        first, head = products[0], products[0].nodes[0]
        axis = 0 if first.columns_first else 1
        arrays = [numpy_helper.to_array(self.tensors[product.weight]) for product in products]
        weight = np.concatenate(arrays, axis)
        operands = [head.input[0], self.constant(weight, "+".join(p.weight for p in products))]
        # The sum with -0.0 is each number itself, while -0.0 + 0.0 is 0.0.
        bias = self.columns([(p.bias, p.columns) for p in products], -0.0, weight.dtype)
        scale = self.columns([(p.scale, p.columns) for p in products], 1, weight.dtype)
        if bias is not None and head.op_type == "Gemm":
            operands.append(bias)
        given = {key: value for key, value in attributes_of(head).items() if key == "transB"}
        nodes = [helper.make_node(head.op_type, operands, [self.fresh()], **given)]
        if bias is not None and head.op_type == "MatMul":
            nodes.append(helper.make_node("Add", [nodes[-1].output[0], bias], [self.fresh()]))
        if scale is not None:
            nodes.append(helper.make_node("Mul", [nodes[-1].output[0], scale], [self.fresh()]))
        widths = [product.columns for product in products]
        inputs, given = [nodes[-1].output[0]], {}
        if self.version < 13:
            given = {"split": widths}
        else:
            inputs.append(self.constant(np.array(widths)))
        results = [product.nodes[-1].output[0] for product in products]
        nodes.append(helper.make_node("Split", inputs, results, axis=-1, **given))
        for node in nodes:
            node.name = head.name
        for product in products:
            self.replacements |= {node.output[0]: [] for node in product.nodes}
        self.replacements[head.output[0]] = nodes

    def rewrite(self) -> None:
        """Puts the new nodes into the graph."""
        nodes = [
            node for old in self.graph.node for node in self.replacements.get(old.output[0], [old])
        ]
        del self.graph.node[:]
        self.graph.node.extend(nodes)
        self.graph.initializer.extend(self.constants)

    def columns(
        self, parts: Sequence[tuple[Array | None, int]], default: float, dtype: Any
    ) -> str | None:
        """A constant with a number for each column; None if no part has numbers."""
        if all(part is None for part, _ in parts):
            return None
        return self.constant(
            np.concatenate(
                [
                    np.full(n, default, dtype) if x is None else np.broadcast_to(x, n)
                    for x, n in parts
                ]
            )
        )

    def constant(self, array: Array, wanted: str = "joined") -> str:
        """The name of a new initializer."""
        name = self.fresh(wanted)
        self.constants.append(numpy_helper.from_array(array, name))
        return name

    def fresh(self, wanted: str = "joined") -> str:
        """A new name of a value, the wanted one where it is free."""
        name = wanted
        while name in self.names:
            name = f"{wanted}_{len(self.names)}"
        self.names.add(name)
        return name


@functools.cache
def _kinds() -> dict[str, Kind]:
    """The kinds of ONNX's operators that are not `OTHER`."""
    family = f"{__package__}.operators.pointwise"
    pointwise = {name for name, lowering in lowerings().items() if lowering.__module__ == family}
    return (
        dict.fromkeys(pointwise | _POINTWISE, Kind.POINTWISE)
        | dict.fromkeys(_VIEWS, Kind.VIEW)
        | dict.fromkeys(_PRODUCTS, Kind.PRODUCT)
        | {"Concat": Kind.PLACE}
    )
