"""The predicted time of a graph at the sizes that PyTorch compiles it for.

FTuner's kernels are predicted by their plans, products that stay with PyTorch by
`ftuner.latency.vendor`. All other kernels count the bytes that they must read and write: a bound from
below, which says nothing of rows that are read again or of arithmetic. Nothing predicts collectives.
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
from ftuner.latency import vendor
from torch import fx

from .graph import layout as lay
from .graph.hints import hint_of, sizes_of
from .graph.nodes import PRODUCTS, TYPES, flops_of, is_collective, launches_kernel
from .regions.choice import place_of

if TYPE_CHECKING:
    from .hosts.host import Part

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
        ftuner_us: the time of FTuner's kernels.
        others_us: the time of all others, or less than they take.
        unknown: larger operators with products in them, of which only the bytes are counted, and
            collectives, which count nothing.
    """

    ftuner_us: float
    others_us: float
    unknown: int


def predict(graph: fx.Graph, kernels: Iterable[Kernel], parts: Sequence[Part]) -> Prediction | None:
    """The times of a graph whose `parts` are calls of functions by now, beside its `kernels`.

    None without parts, without rates, and where PyTorch expects no size.
    """
    if not parts:
        return None
    rates = parts[0].function.report.data.get("rates")
    hints = dict(_hints(graph))
    sizes = [_sizes_of(part, hints) for part in parts]
    if rates is None or None in sizes:
        return None
    ftuner_us = others_us = 0.0
    for part, known_sizes in zip(parts, sizes):
        time, is_ftuners = _part_us(part, known_sizes or {})
        if is_ftuners:
            ftuner_us += time
        else:
            others_us += time
    unknown = 0
    for group in kernels:
        if not any(_size(node) for node in group):
            continue  # PyTorch launches nothing for tensors without elements.
        if is_collective(group[0]):
            unknown += 1
            continue
        time = rates["launch_us"] + rates["us_per_byte"] * _bytes(group)
        if len(group) == 1 and _is_opaque(group[0]):
            known = _vendor_us(group[0], parts[0].settings.device)
            unknown += known is None
            time = max(time, known or 0.0)
        others_us += time
    return Prediction(ftuner_us, others_us, unknown)


def launches(kernels: Iterable[Kernel]) -> Counter[str]:
    """The number of kernels that each layer of a model launches.

    A layer is named by the path of its module up to the first number, such as `encoder.layer.3`; kernels
    in none, and those of gradients, have the name "".
    """
    return Counter(next(filter(None, map(layer_of, group)), "") for group in kernels)


def layer_of(node: fx.Node) -> str:
    """The name of a node's layer, or ""."""
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


def _sizes_of(part: Part, hints: Mapping[sympy.Symbol, int]) -> dict[str, int] | None:
    """The sizes of a function, by its names; None where one is not known."""
    imported, sizes = part.imported, {}
    for name in part.function.report.sizes:
        argument, dim = place_of(name, imported)
        extent = sympy.sympify(imported.argument_shapes[argument][dim]).subs(hints)
        if not extent.is_number:
            return None
        sizes[name] = int(extent)
    return sizes


def _part_us(part: Part, sizes: Mapping[str, int]) -> tuple[float, bool]:
    """The time of a part, and whether FTuner computes it."""
    report = part.function.report
    if part.choice is not None:
        interval = part.choice.interval_at([sizes[name] for name in part.choice.sizes])
        if interval is None or not interval.is_ftuners:
            return (interval.pytorch_us if interval else 0.0), False
    share = report.share_at(sizes)
    return (share["ukernel_us"] or 0.0) + (share["fallback_us"] or 0.0), True


def _is_opaque(node: fx.Node) -> bool:
    """Returns whether an operator is a separate kernel: one that multiplies, exchanges data, or is
    a call of FTuner's."""
    return flops_of(node) is not None or is_collective(node) or not launches_kernel(node)


def _sources(node: fx.Node) -> Iterator[tuple[fx.Node, int]]:
    """The nodes that a node reads, also through views, and the bytes that it reads of each."""
    for source in node.all_input_nodes:
        read_bytes = _size(source)
        while source.op == "call_function" and not _launches(source) and source.all_input_nodes:
            source = source.all_input_nodes[0]
            read_bytes = min(read_bytes, _size(source) or read_bytes)
        yield source, read_bytes


def _launches(node: fx.Node) -> bool:
    return launches_kernel(node) or "ftuner" in str(node.target)


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
        joins: whether the host makes one kernel of operators that follow each other. It joins
            operators that have as many products before them.
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
        if not launches_kernel(node):
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
    """Bytes that a kernel reads of others, each tensor once, and that others read of it."""
    inside = set(group)
    read: dict[fx.Node, int] = {}
    written = 0
    for node in group:
        for number, (source, read_bytes) in enumerate(_sources(node)):
            if source in inside:
                continue
            if node.target in _GATHERS and number == 0:
                read_bytes = _size(node)
            read[source] = max(read.get(source, 0), read_bytes)
        if any(user not in inside for user in _readers(node)):
            written += _size(node)
    return written + sum(read.values())


def _readers(node: fx.Node) -> Iterator[fx.Node]:
    """The nodes that read a node, also through views."""
    for user in node.users:
        if user.op == "call_function" and not _launches(user):
            yield from _readers(user)
        else:
            yield user


def _vendor_us(node: fx.Node, device: Any) -> float | None:
    """The predicted time of the vendor's library for a product that stays with PyTorch."""
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
