"""Elementwise operators: all of `pointwise`, and others with booleans, which products do not take."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from torch._subclasses.fake_tensor import unset_fake_temporarily

import torch
from torch import fx

from ..graph.layout import COPIES, VIEWS, stride_of
from ..graph.nodes import Unsupported, is_write
from .linalg import FALSE, Value
from .pointwise import RULES, Emitter, emit
from .steps import KINDS, Body

aten = torch.ops.aten
prims = torch.ops.prims

#: Operators that convert their operands to one type and compare them.
COMPARISONS: set[Any] = set()
#: A rule gets the emitter and the operands, of which booleans are i1.
BOOLEAN_RULES: dict[Any, Callable[..., Value]] = {}
#: Positions of operands that may be booleans, by operator; all others are made numbers.
_CONDITIONS: dict[Any, tuple[int, ...]] = {
    aten.where.self: (0,),
    aten.masked_fill.Scalar: (1,),
    aten.masked_fill.Tensor: (1,),
}

for _name, _predicate in {
    "gt": "ogt", "ge": "oge", "lt": "olt", "le": "ole", "eq": "oeq", "ne": "une",
}.items():  # fmt: skip
    for _overload in ("Scalar", "Tensor"):
        COMPARISONS.add(getattr(getattr(aten, _name), _overload))
        BOOLEAN_RULES[getattr(getattr(aten, _name), _overload)] = (
            lambda b, x, y, predicate=_predicate: b("arith.cmpf", x, y, attributes=f"{predicate},")
        )
BOOLEAN_RULES[aten.where.self] = lambda b, c, x, y: b("arith.select", c, x, y)
BOOLEAN_RULES[aten.masked_fill.Scalar] = lambda b, x, mask, value: b("arith.select", mask, value, x)
BOOLEAN_RULES[aten.masked_fill.Tensor] = BOOLEAN_RULES[aten.masked_fill.Scalar]

#: Stands for an operand among the arguments of an operator.
OPERAND = object()


def _logical(operation: str) -> Callable[..., Value]:
    return lambda b, *operands: b(operation, *operands, suffix="i1")


for _operator, _operation in {
    aten.bitwise_and.Tensor: "arith.andi",
    aten.bitwise_or.Tensor: "arith.ori",
    aten.bitwise_xor.Tensor: "arith.xori",
    aten.logical_and.default: "arith.andi",
    aten.logical_or.default: "arith.ori",
}.items():
    BOOLEAN_RULES[_operator] = _logical(_operation)
    _CONDITIONS[_operator] = (0, 1)
for _operator in (aten.bitwise_not.default, aten.logical_not.default):
    BOOLEAN_RULES[_operator] = lambda b, x: b("arith.cmpi", x, FALSE, attributes="eq,", suffix="i1")
    _CONDITIONS[_operator] = (0,)
BOOLEAN_RULES[aten.round.default] = lambda b, x: b("math.roundeven", x)

#: Operators whose result is booleans.
_GIVE_BOOLEANS = set(BOOLEAN_RULES) - {
    aten.where.self, aten.masked_fill.Scalar, aten.masked_fill.Tensor, aten.round.default,
}  # fmt: skip


#: Operators that give a tensor of another type.
CASTS = {aten._to_copy.default, prims.convert_element_type.default}


def fold_casts(graph: fx.Graph) -> None:
    """Removes casts that change nothing: PyTorch would execute each as a copy.

    A cast stays if its result leaves the graph, and if something is written before it is last read: its
    operand may be another tensor then.
    """
    order = {node: number for number, node in enumerate(graph.nodes)}
    writes = [number for node, number in order.items() if is_write(node)]
    for node in list(graph.nodes):
        if node.target not in CASTS or _leaves(node) or not _is_same(node, node.args[0]):
            continue
        last = max((order[user] for user in node.users), default=0)
        if not any(order[node] < number < last for number in writes):
            node.replace_all_uses_with(node.args[0])
            graph.erase_node(node)


def _is_same(node: fx.Node, other: fx.Node) -> bool:
    """Returns whether two tensors have one type, device and layout. Adds no guard."""
    values = (one.meta.get("val") for one in (node, other))
    known = [
        (value.dtype, value.device, [stride_of(stride) for stride in value.stride()])
        for value in values
        if isinstance(value, torch.Tensor)
    ]
    return len(known) == 2 and known[0] == known[1]


def _leaves(node: fx.Node) -> bool:
    """Returns whether a tensor, or a view of it, is a result of the graph or written to."""
    return any(
        user.op != "call_function"
        or is_write(user)
        or (user.target in VIEWS - COPIES and _leaves(user))
        for user in node.users
    )


def is_elementwise(target: Any) -> bool:
    return target in RULES or target in BOOLEAN_RULES


def rounded(value: float, dtype: torch.dtype) -> float:
    """A number as a tensor of that type has it."""
    with unset_fake_temporarily():
        return float(torch.tensor(value, dtype=dtype))


def elementwise_body(
    target: Any,
    kind: str,
    places: Sequence[Any],
    options: Mapping[str, Any],
    kinds: Sequence[str],
    compared_in: torch.dtype | None,
) -> Body:
    """The body of an elementwise operator. Raises Unsupported, as the body may.

    Args:
        kind: the type of the result.
        places: its arguments by position, `OPERAND` for those that are operands.
        options: its arguments by name, none of them an operand.
        kinds: types of the operands.
        compared_in: the narrow type that a comparison converts its operands to, if any.
    """
    conditions = _CONDITIONS.get(target, ())
    if (kind == "i1") != (target in _GIVE_BOOLEANS):
        raise Unsupported("arithmetic of booleans")

    def body(b: Emitter, *operands: Value) -> Value:
        given = iter(zip(operands, kinds))
        values: list[Any] = []
        for place, argument in enumerate(places):
            if argument is not OPERAND:
                if compared_in is not None:
                    argument = rounded(argument, compared_in)
                values.append(argument)
                continue
            value, kind = next(given)
            if compared_in is not None and kind == "f32":
                value = b.round(value, KINDS[compared_in])
            if kind == "i1" and place not in conditions:
                value = b("arith.uitofp", value, suffix="i1 to f32")
            elif kind != "i1" and place in conditions:
                raise Unsupported("a condition that is not a boolean")
            values.append(value)
        if target in BOOLEAN_RULES:
            return BOOLEAN_RULES[target](b, *values)
        return emit(b, target, values, dict(options))

    return body
