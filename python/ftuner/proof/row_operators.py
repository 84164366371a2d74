"""Operators on rows that families compute: their text as `ukernel.row_reduction`, and what is right.

An operator has m rows of r elements. Elements of 16 bits are widened, and results rounded.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
Lines = Sequence[str]

_EPSILON = 1e-5


@dataclass(frozen=True)
class RowOperator:
    """One operator.

    Lines of a body know the elements of the inputs as `%v0`, `%v1`, …, the results of the
    reductions before them as `%r0`, `%r1`, …, and the length of a row as `%length`, all f32.

    Attributes:
        inputs, outputs: the axes of each operand, m and r.
        reductions: for each the lines that make `%next` of these and of `%acc`.
        values, elements: lines, and the values that they make of each output without r, or with r.
        expected: the outputs, from the inputs; all in float64.
    """

    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    reductions: tuple[Lines, ...]
    expected: Callable[..., list[Array]]
    values: tuple[Lines, Lines] = ((), ())
    elements: tuple[Lines, Lines] = ((), ())

    def regions(self, type: str) -> str:
        """The regions of the operation, for elements of this type."""
        every = range(len(self.inputs))
        once = [number for number in every if "r" not in self.inputs[number]]
        count = len(self.reductions)
        reductions = ", ".join(
            _region(type, every, number, lines, ["%next"], is_reduction=True)
            for number, lines in enumerate(self.reductions)
        )
        return (
            f"reduce {reductions} values {_region(type, once, count, *self.values)} "
            f"map {_region(type, every, count, *self.elements)}"
        )


def _region(
    type: str,
    inputs: Sequence[int],
    results: int,
    lines: Lines,
    values: Lines,
    is_reduction: bool = False,
) -> str:
    is_narrow = type != "f32"
    arguments = [f"%{'a' if is_narrow else 'v'}{number}: {type}" for number in inputs]
    arguments += ["%length: f32", *(f"%r{number}: f32" for number in range(results))]
    body = [f"%v{number} = arith.extf %a{number} : {type} to f32" for number in inputs if is_narrow]
    body += lines
    kind = type
    if is_reduction:
        arguments.append("%acc: f32")
        kind = "f32"
    elif is_narrow:
        rounded = [f"%n{number}" for number in range(len(values))]
        body += [f"{n} = arith.truncf {value} : f32 to {type}" for n, value in zip(rounded, values)]
        values = rounded
    types = ", ".join(kind for _ in values)
    body.append(f"ukernel.yield {', '.join(values)} : {types}" if values else "ukernel.yield")
    text = "\n          ".join(body)
    return f"{{\n        ^bb0({', '.join(arguments)}):\n          {text}\n        }}"


def _softmax(x: Array) -> list[Array]:
    powers = np.exp(x - x.max(axis=1, keepdims=True))
    return [powers / powers.sum(axis=1, keepdims=True)]


def _layer_norm(x: Array, residual: Array, scale: Array, shift: Array) -> list[Array]:
    total = x + residual
    centred = total - total.mean(axis=1, keepdims=True)
    variance = np.square(centred).mean(axis=1, keepdims=True)
    return [total, centred / np.sqrt(variance + _EPSILON) * scale + shift]


_POWER = ("%d = arith.subf %v0, %r0 : f32", "%e = math.exp %d : f32")
_TOTAL = "%t = arith.addf %v0, %v1 : f32"
_CENTRED = (
    _TOTAL,
    "%mean = arith.divf %r0, %length : f32",
    "%c = arith.subf %t, %mean : f32",
)

OPERATORS = {
    "sum": RowOperator(
        inputs=("mr",),
        outputs=("m",),
        reductions=(["%next = arith.addf %acc, %v0 : f32"],),
        values=((), ("%r0",)),
        expected=lambda x: [x.sum(axis=1)],
    ),
    # Rows lie across memory.
    "sum_of_columns": RowOperator(
        inputs=("rm",),
        outputs=("m",),
        reductions=(["%next = arith.addf %acc, %v0 : f32"],),
        values=((), ("%r0",)),
        expected=lambda x: [x.sum(axis=0)],
    ),
    "extremes": RowOperator(
        inputs=("mr",),
        outputs=("m", "m"),
        reductions=(
            ["%next = arith.maximumf %acc, %v0 : f32"],
            ["%next = arith.minimumf %acc, %v0 : f32"],
        ),
        values=((), ("%r0", "%r1")),
        expected=lambda x: [x.max(axis=1), x.min(axis=1)],
    ),
    "softmax": RowOperator(
        inputs=("mr",),
        outputs=("mr",),
        reductions=(
            ["%next = arith.maximumf %acc, %v0 : f32"],
            [*_POWER, "%next = arith.addf %acc, %e : f32"],
        ),
        elements=((*_POWER, "%q = arith.divf %e, %r1 : f32"), ("%q",)),
        expected=_softmax,
    ),
    # Layer norm of the sum with a residual, which is a result, too.
    "layer_norm": RowOperator(
        inputs=("mr", "mr", "r", "r"),
        outputs=("mr", "mr"),
        reductions=(
            [_TOTAL, "%next = arith.addf %acc, %t : f32"],
            [*_CENTRED, "%s = arith.mulf %c, %c : f32", "%next = arith.addf %acc, %s : f32"],
        ),
        elements=(
            (
                *_CENTRED,
                "%variance = arith.divf %r1, %length : f32",
                f"%epsilon = arith.constant {_EPSILON:.1e} : f32",
                "%shifted = arith.addf %variance, %epsilon : f32",
                "%root = math.rsqrt %shifted : f32",
                "%normed = arith.mulf %c, %root : f32",
                "%scaled = arith.mulf %normed, %v2 : f32",
                "%y = arith.addf %scaled, %v3 : f32",
            ),
            ("%t", "%y"),
        ),
        expected=_layer_norm,
    ),
}
