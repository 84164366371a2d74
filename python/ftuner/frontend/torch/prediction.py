"""How long a graph is predicted to take at the sizes that PyTorch compiles it for.

FTuner's kernels by their plans, products that stay with PyTorch by `ftuner.latency.vendor`. Of
everything else the bytes are counted that it must read and write: a bound from below, since it says
nothing of rows that are read again or of arithmetic.
"""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import sympy
import torch
from torch import fx

from ftuner.latency import vendor

from . import layout as lay
from .choice import place_of
from .hints import hint_of, sizes_of
from .partition import PRODUCTS, TYPES, computes, flops_of

if TYPE_CHECKING:
    from .replacement import Product, Rows

aten = torch.ops.aten

#: Operators that read as many elements of their table as they give.
_GATHERS = {
    aten.embedding.default, aten.index.Tensor, aten.gather.default, aten.index_select.default,
}  # fmt: skip


#: The operators that one kernel computes, in their order.
Kernel = list[fx.Node]


@dataclass(frozen=True)
class Prediction:
    """Microseconds of a graph's kernels.

    Attributes:
        ftuner_us: of FTuner's.
        others_us: of all others, or less than they take.
        unknown: larger operators with products in them, of which only the bytes are counted.
    """

    ftuner_us: float
    others_us: float
    unknown: int


def predict(
    graph: fx.Graph, kernels: Iterable[Kernel], products: Sequence[Product | Rows]
) -> Prediction | None:
    """The times of a graph whose `products`, and rows, are calls of functions by now, beside its
    `kernels`.

    None without products, without rates, and where PyTorch expects no size.
    """
    if not products:
        return None
    rates = products[0].function.report.data.get("rates")
    hints = dict(_hints(graph))
    sizes = [_sizes_of(product, hints) for product in products]
    if rates is None or None in sizes:
        return None
    ftuner_us = others_us = 0.0
    for product, its_sizes in zip(products, sizes):
        time, is_ftuners = _product_us(product, its_sizes or {})
        if is_ftuners:
            ftuner_us += time
        else:
            others_us += time
    unknown = 0
    for group in kernels:
        if not any(_size(node) for node in group):
            continue  # PyTorch launches nothing for tensors without elements.
        time = rates["launch_us"] + rates["us_per_byte"] * _bytes(group)
        if len(group) == 1 and _is_opaque(group[0]):
            known = _left_us(group[0], products[0].settings.device)
            unknown += known is None
            time = max(time, known or 0.0)
        others_us += time
    return Prediction(ftuner_us, others_us, unknown)


def launches(kernels: Iterable[Kernel]) -> Counter[str]:
    """How many of the kernels each layer of a model launches.

    A layer is named by the path of its module up to the first number, such as `encoder.layer.3`;
    what is in none, or in a graph of gradients, has the name "".
    """
    return Counter(next(filter(None, map(layer_of, group)), "") for group in kernels)


def layer_of(node: fx.Node) -> str:
    """The layer that a node is of; "" if it is of none."""
    for path, _ in (node.meta.get("nn_module_stack") or {}).values():
        if match := _LAYER.match(path):
            return match[1]
    return ""


#: After the name of the model's variable, such as L['self'].
_LAYER = re.compile(r"(?:L\[[^]]*\]\.)?((?:\w+\.)*?\d+)(?:\.|$)")


def _hints(graph: fx.Graph) -> Iterator[tuple[sympy.Symbol, int]]:
    """The sizes that PyTorch compiles for, by its symbols."""
    for node in graph.nodes:
        value = node.meta.get("val")
        sizes = value.shape if isinstance(value, torch.Tensor) else [value]
        for size in sizes:
            if isinstance(size, torch.SymInt) and (hint := hint_of(size)) is not None:
                expression = size.node.expr
                if isinstance(expression, sympy.Symbol):
                    yield expression, hint


def _sizes_of(
    product: Product | Rows, hints: Mapping[sympy.Symbol, int]
) -> dict[str, int] | None:
    """The sizes of a function, by its names; None where one is not known."""
    imported, sizes = product.imported, {}
    for name in product.function.report.sizes:
        argument, dim = place_of(name, imported)
        extent = sympy.sympify(imported.argument_shapes[argument][dim]).subs(hints)
        if not extent.is_number:
            return None
        sizes[name] = int(extent)
    return sizes


def _product_us(product: Product | Rows, sizes: Mapping[str, int]) -> tuple[float, bool]:
    """The time of a product, and whether FTuner computes it."""
    report = product.function.report
    if product.choice is not None:
        interval = product.choice.interval_at([sizes[name] for name in product.choice.sizes])
        if interval is None or not interval.is_ftuners:
            return (interval.pytorch_us if interval else 0.0), False
    share = report.share_at(sizes)
    return (share["ukernel_us"] or 0.0) + (share["fallback_us"] or 0.0), True


def _is_opaque(node: fx.Node) -> bool:
    """Whether an operator is a kernel of its own: one that multiplies, or a call of FTuner's."""
    return flops_of(node) is not None or not computes(node)


def _sources(node: fx.Node) -> Iterator[tuple[fx.Node, int]]:
    """What a node reads: who computed it, and the bytes through the views in between."""
    for source in node.all_input_nodes:
        least = _size(source)
        while source.op == "call_function" and not _launches(source) and source.all_input_nodes:
            source = source.all_input_nodes[0]
            least = min(least, _size(source) or least)
        yield source, least


def _launches(node: fx.Node) -> bool:
    return computes(node) or "ftuner" in str(node.target)


def _size(node: fx.Node) -> int:
    """Bytes of a node's tensors."""
    value = node.meta.get("val")
    tensors = value if isinstance(value, (tuple, list)) else [value]
    return sum(
        math.prod(sizes_of(tensor)) * tensor.dtype.itemsize
        for tensor in tensors
        if isinstance(tensor, torch.Tensor)
    )


def kernels_of(graph: fx.Graph, joins: bool) -> list[Kernel]:
    """The operators that are not FTuner's, those together that one kernel computes.

    Args:
        joins: whether the host makes one kernel of operators that follow each other. Joined is
            what has as many products before it.
    """
    level: dict[fx.Node, int] = {}
    leader: dict[fx.Node, fx.Node] = {}

    def lead(node: fx.Node) -> fx.Node:
        while leader[node] is not node:
            node = leader[node]
        return node

    for node in graph.nodes:
        sources = [source for source, _ in _sources(node)]
        level[node] = max(
            (level[source] + (_launches(source) and _is_opaque(source)) for source in sources),
            default=0,
        )
        if not computes(node):
            continue
        leader[node] = node
        if not joins or _is_opaque(node):
            continue
        for source in sources:
            if source in leader and not _is_opaque(source) and level[source] == level[node]:
                leader[lead(node)] = lead(source)
    groups: dict[fx.Node, Kernel] = defaultdict(list)
    for node in leader:
        groups[lead(node)].append(node)
    return list(groups.values())


def _bytes(group: Kernel) -> int:
    """What a kernel reads of others, each tensor once, and what others read of it."""
    inside = set(group)
    read: dict[fx.Node, int] = {}
    written = 0
    for node in group:
        for number, (source, least) in enumerate(_sources(node)):
            if source in inside:
                continue
            if node.target in _GATHERS and number == 0:
                least = _size(node)
            read[source] = max(read.get(source, 0), least)
        if any(user not in inside for user in _readers(node)):
            written += _size(node)
    return written + sum(read.values())


def _readers(node: fx.Node) -> Iterator[fx.Node]:
    """Who reads a node, also through views."""
    for user in node.users:
        if user.op == "call_function" and not _launches(user):
            yield from _readers(user)
        else:
            yield user


def _left_us(node: fx.Node, device: Any) -> float | None:
    """What the vendor's library is predicted to take for a product that stays."""
    positions = PRODUCTS.get(node.target)
    if positions is None:
        return None
    operands = [lay.operand_of(node, position) for position in positions]
    lhs, rhs = map(sizes_of, operands)
    dtype = TYPES.get(node.meta["val"].dtype)
    if dtype is None:
        return None
    product = (math.prod(lhs[:-2]), lhs[-2], rhs[-1], lhs[-1])
    times = vendor.predict(device, dtype, [product], is_transposed=lay.is_transposed(operands[1]))
    return None if times is None else float(times[0])
