"""Products of a model's graph that share an input, as one product of joined weights.

The joined weights are concatenations of parameters, which `folding.py` makes arguments of the function:
PyTorch computes them when the model is exported, and again after a parameter changed in place.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind, InputSpec, TensorArgument

import torch
from torch import fx

from ...importing.joins import Kind, Projection, Step, groups
from ..graph import layout as lay

aten = torch.ops.aten

_VIEWS = lay.VIEWS | {
    aten.flatten.using_ints,
    aten.unflatten.int,
    aten.movedim.int,
    aten._to_copy.default,
}
_PLACES = {aten.cat.default, aten.stack.default}
_PRODUCTS = {
    aten.linear.default,
    aten.matmul.default,
    aten.mm.default,
    aten.bmm.default,
    aten.addmm.default,
    aten.baddbmm.default,
    aten.convolution.default,
    aten.einsum.default,
}


@dataclass(frozen=True)
class _Product(Projection):
    """A product with a weight, and what can be joined with it.

    Attributes:
        nodes: the product, and a scale of its result where there is one.
        weight_dim: of the weight, its columns.
        bias: the vector that is added to each row; None without one.
        scale: a number that the result is multiplied by.
    """

    nodes: list[fx.Node]
    weight: fx.Node
    weight_dim: int
    bias: fx.Node | None
    scale: float


def join_projections(
    program: ExportedProgram, weights: dict[str, torch.Tensor], nodes: list[fx.Node]
) -> None:
    """Joins products of a program.

    Args:
        program: has the weights as its last inputs.
        weights: by name. Scales of columns are added.
        nodes: the placeholder of each.
    """
    for products in groups(_steps(program.graph, set(nodes))):
        _Rewriter(program, weights, nodes, products[0].nodes[0]).join(products)
    program.graph.eliminate_dead_code()


def _steps(graph: fx.Graph, weights: set[fx.Node]) -> list[Step[_Product]]:
    steps: list[Step[_Product]] = []
    scales: set[fx.Node] = set()
    for node in graph.nodes:
        if node.op == "placeholder" or node in scales:
            continue
        own = _product(node, weights)
        scales.update(own.nodes[1:] if own else ())
        result = own.nodes[-1] if own else node
        steps.append(Step(_kind_of(node), node.all_input_nodes, [result], own))
    return steps


def _kind_of(node: fx.Node) -> Kind:
    if node.op == "output" or node.target in _PLACES:
        return Kind.PLACE
    if node.target in _VIEWS:
        return Kind.VIEW
    if node.target in _PRODUCTS:
        return Kind.PRODUCT
    tags = getattr(node.target, "tags", ())
    return Kind.POINTWISE if torch.Tag.pointwise in tags else Kind.OTHER


def _product(node: fx.Node, weights: set[fx.Node]) -> _Product | None:
    """The product that a node is; None where it is not one with a weight of its own."""
    operands: list[Any] = [*node.args]
    bias, dim = None, 1
    if node.kwargs:
        return None
    if node.target == aten.linear.default:
        left, right, bias, *_ = *operands, None
        dim = 0
    elif node.target in (aten.matmul.default, aten.mm.default):
        left, right = operands
    elif node.target == aten.addmm.default:
        bias, left, right = operands
    else:
        return None
    if right not in weights or len(right.users) != 1 or left in weights:
        return None
    weight: torch.Tensor = right.meta["val"]
    dtype = node.meta["val"].dtype
    is_plain = weight.dim() == 2 and dtype.is_floating_point and weight.dtype == dtype
    if not is_plain or (bias is not None and not _is_bias(bias, weights, weight.shape[dim], dtype)):
        return None
    nodes, scale = [node], 1.0
    if len(node.users) == 1:
        (user,) = node.users
        factor = _scale_of(user, node)
        if factor is not None:
            nodes, scale = [node, user], factor
    form = (node.target, dtype, weight.device, weight.shape[1 - dim])
    columns, size = weight.shape[dim], weight.element_size()
    return _Product(left, form, columns, size, nodes, right, dim, bias, scale)


def _is_bias(node: Any, weights: set[fx.Node], columns: int, dtype: torch.dtype) -> bool:
    if node not in weights:
        return False
    value: torch.Tensor = node.meta["val"]
    return value.shape == (columns,) and value.dtype == dtype


def _scale_of(node: fx.Node, product: fx.Node) -> float | None:
    """The number that a node multiplies a product by, which is rounded to the product's type either way."""
    if node.target != aten.mul.Tensor or node.args[0] is not product:
        return None
    factor: Any = node.args[1]
    is_same_type = node.meta["val"].dtype == product.meta["val"].dtype
    return float(factor) if is_same_type and isinstance(factor, (int, float)) else None


@dataclass
class _Rewriter:
    """Joins the products of a group where the first of them stands."""

    program: ExportedProgram
    weights: dict[str, torch.Tensor]
    nodes: list[fx.Node]
    first: fx.Node

    @property
    def target(self) -> Any:
        return self.first.target

    def join(self, products: list[_Product]) -> None:
        graph, first = self.program.graph, products[0]
        name = self.first.name
        with graph.inserting_before(self.first):
            weight = self.call(
                f"{name}_weights", aten.cat.default, [p.weight for p in products], first.weight_dim
            )
            biases = self.biases(products)
            arguments: list[Any] = [first.input, weight]
            if biases is not None:
                bias = self.call(f"{name}_biases", aten.cat.default, biases)
                arguments.insert(0 if self.target == aten.addmm.default else 2, bias)
            joined = self.call(f"{name}_joined", self.target, *arguments)
            if any(product.scale != 1 for product in products):
                joined = self.call(f"{name}_scaled", aten.mul.Tensor, joined, self.scales(products))
            dim, begin = joined.meta["val"].dim() - 1, 0
            for product in products:
                end = begin + product.columns
                part = self.call(None, aten.slice.Tensor, joined, dim, begin, end)
                product.nodes[-1].replace_all_uses_with(part)
                begin = end

    def call(self, name: str | None, target: Callable[..., Any], *args: Any) -> fx.Node:
        """A new node that stands where the first product stood in the model's source."""
        node: fx.Node = self.program.graph.create_node("call_function", target, args, name=name)
        node.meta = {key: kept for key, kept in self.first.meta.items() if key != "tensor_meta"}
        node.meta["val"] = target(*fx.map_arg(args, lambda argument: argument.meta["val"]))
        return node

    def biases(self, products: list[_Product]) -> list[fx.Node] | None:
        """The bias of each product; without one, -0.0: the sum with it is each number itself."""
        given = next((product.bias for product in products if product.bias is not None), None)
        if given is None:
            return None
        return [
            self.call(None, aten.new_full.default, given, [product.columns], -0.0)
            if product.bias is None
            else product.bias
            for product in products
        ]

    def scales(self, products: list[_Product]) -> fx.Node:
        """A new weight: the scale of each column."""
        example: torch.Tensor = self.first.meta["val"]
        parts = [
            torch.full((p.columns,), p.scale, dtype=example.dtype, device=example.device)
            for p in products
        ]
        with self.program.graph.inserting_after(self.nodes[-1]):
            node: fx.Node = self.program.graph.placeholder(f"{self.first.name}_scales")
        node.meta["val"] = example.new_empty(sum(product.columns for product in products))
        spec = InputSpec(InputKind.USER_INPUT, TensorArgument(name=node.name), None)
        self.program.graph_signature.input_specs.append(spec)
        self.weights[node.name] = torch.cat(parts)
        self.nodes.append(node)
        return node
