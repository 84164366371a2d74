"""Operators of a function while a region grows: each reads tensors by the loops of their dimensions."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch

from ..graph.layout import Dims, Layout, Loop
from .linalg import Instruction, Value
from .pointwise import Emitter

#: Elements of tensors, and what MLIR calls them.
KINDS = {
    torch.float32: "f32",
    torch.float16: "f16",
    torch.bfloat16: "bf16",
    torch.bool: "i1",
    torch.int64: "i64",
}
FLOATS = ("f32", "f16", "bf16")


@dataclass(frozen=True)
class Tensor:
    """A value of the function: its name there, the loops of its dimensions, its type."""

    name: str
    dims: Dims
    kind: str


@dataclass
class Step:
    """An operator of the function while it grows; see `linalg.Operator`."""

    operands: list[Tensor]
    instructions: list[Instruction]
    value: Value
    dims: Dims
    kind: str
    combine: str = ""


Body = Callable[..., Value]


@dataclass
class Steps:
    """Collects the operators of a function.

    Attributes:
        reduced: the loops of a row, in the order of the dimensions.
    """

    layout: Layout = field(default_factory=Layout)
    reduced: tuple[Loop, ...] = ()
    steps: list[Step] = field(default_factory=list)

    def copy(self) -> Steps:
        return Steps(self.layout.copy(), self.reduced, [replace(step) for step in self.steps])

    def _emit(self, operands: Sequence[Tensor], body: Body) -> tuple[list[Instruction], Value]:
        emitter = Emitter()
        numbers = itertools.count()
        values = [
            operand.name if operand.name[0] == "s" else f"x{next(numbers)}" for operand in operands
        ]
        value = body(emitter, *values)
        return emitter.instructions, value

    def map(self, kind: str, dims: Dims, operands: Sequence[Tensor], body: Body) -> Tensor:
        """An elementwise operator: `body` gets an emitter and an element of each operand.

        Scalars of the function may be among the operands.
        """
        instructions, value = self._emit(operands, body)
        return self._add(Step(_tensors(operands), instructions, value, dims, kind))

    def reduce(
        self,
        combine: str,
        operands: Sequence[Tensor],
        body: Body = lambda b, x: x,
        kind: str = "f32",
        dims: Dims | None = None,
    ) -> Tensor:
        """Joins the elements of a row.

        The result has these dimensions, or else the first operand's dimensions without the row.
        """
        instructions, value = self._emit(operands, body)
        dims = self.of_row(operands[0]) if dims is None else dims
        return self._add(Step(_tensors(operands), instructions, value, dims, kind, combine))

    def _add(self, step: Step) -> Tensor:
        """The result of an operator, which may be there already."""
        known = next((n for n, other in enumerate(self.steps) if self._is_same(step, other)), None)
        if known is None:
            self.steps.append(step)
            known = len(self.steps) - 1
        return Tensor(f"t{known}", step.dims, step.kind)

    def _is_same(self, one: Step, other: Step) -> bool:
        def walk(step: Step) -> list[Loop]:
            return [loop for loops in self.layout.resolve(step.dims) for loop in loops]

        def content(step: Step) -> tuple[Any, ...]:
            names = [operand.name for operand in step.operands]
            return names, step.instructions, step.value, step.kind, step.combine

        return content(one) == content(other) and walk(one) == walk(other)

    def of_row(self, x: Tensor) -> Dims:
        """The dimensions of a statistic, each kept: no loop walks the dimensions of the row."""
        reduced = set(self.layout.leaves(self.reduced))
        dims = self.layout.resolve(x.dims)
        return tuple(tuple(loop for loop in loops if loop not in reduced) for loops in dims)


def _tensors(operands: Sequence[Tensor]) -> list[Tensor]:
    return [operand for operand in operands if operand.name[0] != "s"]
