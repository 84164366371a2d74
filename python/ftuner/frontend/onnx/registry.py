"""Operators that FTuner writes itself, and the nodes that they are given."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from onnx import defs, helper

from .sizes import Size
from .values import Array, Value

if TYPE_CHECKING:
    from .emitter import Emitter

#: Files of `operators`.
FAMILIES = (
    "shapes", "moves", "pointwise", "reductions", "norms", "products", "quantization", "matrices",
    "windows", "resize", "recurrent", "selection", "sampling", "convolutions",
    "quantized_convolutions", "attention",
)  # fmt: skip

Lowering = Callable[["Emitter", "Node"], Value | Sequence[Value]]
_LOWERINGS: dict[str, Lowering] = {}


def lowers(*operators: str) -> Callable[[Lowering], Lowering]:
    """Registers a function for operators of ONNX's own domain."""

    def register(function: Lowering) -> Lowering:
        for operator in operators:
            assert operator not in _LOWERINGS, operator
            _LOWERINGS[operator] = function
        return function

    return register


def lowerings() -> Mapping[str, Lowering]:
    for family in FAMILIES:
        importlib.import_module(f"{__package__}.operators.{family}")
    return _LOWERINGS


class Refused(Exception):
    """A node that is refused, with the sentence that follows the model's name."""


class Missing(Exception):
    """A node whose operands were refused."""


def refusal(operator: str, place: str | None, reason: str, advice: str) -> Refused:
    """An operator that is not supported, and what to do instead."""
    node = f" (node {place})" if place else ""
    return Refused(f"the operator {operator}{node} is not supported: {reason}; {advice}")


@dataclass
class Node:
    """A node of the graph with its operands.

    Attributes:
        operator: its name in ONNX.
        place: its name for messages, which begins with the operator of the model's own node.
        version: version of the operator set.
        inputs: its operands; None for one that is left out.
        attributes: its attributes by name.
        outputs: names of its results; empty for one that nothing needs.
    """

    operator: str
    place: str
    version: int
    inputs: list[Value | None]
    attributes: Mapping[str, Any]
    outputs: Sequence[str]
    domain: str = ""

    def attr(self, name: str, default: Any = None) -> Any:
        return self.attributes.get(name, default)

    def input(self, index: int) -> Value | None:
        return self.inputs[index] if index < len(self.inputs) else None

    def wants(self, index: int) -> bool:
        """Returns whether something needs a result."""
        return index < len(self.outputs) and bool(self.outputs[index])

    def refuse(self, reason: str, advice: str = "write it with other operators of ONNX") -> Refused:
        model_operator = self.place.partition(" ")[0]
        return refusal(model_operator or self.operator, self.place, reason, advice)

    def name_of(self, index: int) -> str:
        """The name of an operand in ONNX's text."""
        schema = defs.get_schema(self.operator, self.version, self.domain)
        return schema.inputs[min(index, len(schema.inputs) - 1)].name

    def numbers(self, index: int) -> list[Size]:
        """The elements of an operand as sizes. Raises `Refused` if data decide one."""
        value = self.input(index)
        assert value is not None
        numbers = value.known_sizes()
        if numbers is None:
            raise self._needs(index)
        return numbers

    def integers(self, index: int) -> list[int]:
        """The elements of an operand. Raises `Refused` if one is not known."""
        numbers = self.numbers(index)
        if not all(isinstance(number, int) for number in numbers):
            raise self._needs(index)
        return [number for number in numbers if isinstance(number, int)]

    def array(self, index: int) -> Array:
        """The elements of an operand. Raises `Refused` if one is not known."""
        value = self.input(index)
        assert value is not None
        if value.array is None:
            raise self._needs(index)
        return value.array

    def _needs(self, index: int) -> Refused:
        value = self.input(index)
        name = getattr(value, "name", None) or "it"
        words = f"'{name}'" if name != "it" else name
        operator = self.place.partition(" ")[0]
        return Refused(
            f"the operator {operator} (node {self.place}) needs its input {self.name_of(index)} when the "
            f"model is compiled; make {words} an initializer or the result of a Constant, or compute "
            "it from shapes alone"
        )


def attributes_of(node: Any) -> dict[str, Any]:
    """The attributes of a node of ONNX, strings as `str`."""

    def plain(value: Any) -> Any:
        if isinstance(value, bytes):
            return value.decode(errors="replace")
        return [plain(item) for item in value] if isinstance(value, list) else value

    return {a.name: plain(helper.get_attribute_value(a)) for a in node.attribute}


__all__ = [
    "FAMILIES",
    "Missing",
    "Node",
    "Refused",
    "attributes_of",
    "lowerings",
    "lowers",
    "refusal",
]
