"""Chains of elementwise operators that families compute: their text and their results.

The text is a `ukernel.pointwise` with one loop p, or with two loops m and n. Elements of 16 bits
are widened, and results rounded.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class PointwiseOperator:
    """One operator.

    Attributes:
        loops: the loops, in their order.
        inputs, outputs: the loops of each operand, by dimension. The first output has all of them
            in their order.
        lines: the body; it knows the elements of the inputs as `%v0`, `%v1`, …, all f32.
        values: the values that the body makes of each output.
        expected: the outputs, from the inputs; all in float64.
    """

    loops: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    lines: Sequence[str]
    values: tuple[str, ...]
    expected: Callable[..., list[Array]]

    def maps(self) -> str:
        """The indexing maps: with several loops the axis of all points comes before them."""
        axes = self.loops if len(self.loops) == 1 else f"p{self.loops}"
        maps = (
            f"affine_map<({', '.join(axes)}) -> ({', '.join(operand)})>"
            for operand in (*self.inputs, *self.outputs)
        )
        return ", ".join(maps)

    def region(self, type: str) -> str:
        """The body, for elements of this type."""
        is_narrow = type != "f32"
        names = [f"%{'a' if is_narrow else 'v'}{number}" for number in range(len(self.inputs))]
        body = [
            f"%v{number} = arith.extf {name} : {type} to f32"
            for number, name in enumerate(names)
            if is_narrow
        ]
        body += self.lines
        values = self.values
        if is_narrow:
            values = tuple(f"%n{number}" for number in range(len(values)))
            body += [
                f"{name} = arith.truncf {value} : f32 to {type}"
                for name, value in zip(values, self.values)
            ]
        body.append(f"ukernel.yield {', '.join(values)} : {', '.join(type for _ in values)}")
        text = "\n          ".join(body)
        arguments = ", ".join(f"{name}: {type}" for name in names)
        return f"{{\n        ^bb0({arguments}):\n          {text}\n        }}"


_SUM = ("%s = arith.addf %v0, %v1 : f32",)

OPERATORS = {
    "vector_sum": PointwiseOperator(
        loops="p",
        inputs=("p", "p"),
        outputs=("p",),
        lines=_SUM,
        values=("%s",),
        expected=lambda x, y: [x + y],
    ),
    # A bias for each column, and two results.
    "bias": PointwiseOperator(
        loops="mn",
        inputs=("mn", "n"),
        outputs=("mn", "mn"),
        lines=(*_SUM, "%q = arith.mulf %s, %s : f32"),
        values=("%s", "%q"),
        expected=lambda x, bias: [x + bias, np.square(x + bias)],
    ),
    # One element for each row.
    "row_scale": PointwiseOperator(
        loops="mn",
        inputs=("mn", "m"),
        outputs=("mn",),
        lines=("%s = arith.mulf %v0, %v1 : f32",),
        values=("%s",),
        expected=lambda x, scale: [x * scale[:, None]],
    ),
    "transposed_sum": PointwiseOperator(
        loops="mn",
        inputs=("mn", "nm"),
        outputs=("mn",),
        lines=_SUM,
        values=("%s",),
        expected=lambda x, y: [x + y.T],
    ),
}
