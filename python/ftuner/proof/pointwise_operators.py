"""Chains of elementwise operators that families compute: their text and their results.

The text is a `ukernel.pointwise` with one loop p, or with two loops m and n. Elements of 16 bits
are widened, and results rounded. Operators with windows reduce three taps t0 of each point first.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Window:
    """Reduction of a window at each point of an operator.

    Attributes:
        positions: the positions of each input, in place of its loops.
        padded: whether an input is padded by zeros.
        start: the number from which the accumulator `%acc` starts.
        lines: the body for one tap; it knows the inputs as `%v0`, `%v1`, ….
        value: the next accumulator.
    """

    positions: tuple[str, ...]
    padded: tuple[bool, ...]
    start: str
    lines: Sequence[str]
    value: str

    TAPS = 3


@dataclass(frozen=True)
class PointwiseOperator:
    """One operator.

    Attributes:
        loops: the loops, in their order.
        inputs, outputs: the loops of each operand, by dimension. The first output has all of them
            in their order.
        lines: the body; it knows the elements of the inputs as `%v0`, `%v1`, …, all f32. With
            windows it knows the accumulator as `%acc` instead.
        values: the values that the body makes of each output.
        expected: the outputs, from the inputs; all in float64.
        window: the reduction before `lines`; None if there is none.
    """

    loops: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    lines: Sequence[str]
    values: tuple[str, ...]
    expected: Callable[..., list[Array]]
    window: Window | None = None

    @property
    def taps(self) -> tuple[int, ...]:
        """The tile of a family along the taps."""
        return () if self.window is None else (Window.TAPS,)

    def maps(self) -> str:
        """The indexing maps: with several loops the axis of all points comes before them."""
        axes = [self.loops] if len(self.loops) == 1 else ["p", *self.loops]
        operands = [", ".join(operand) for operand in (*self.inputs, *self.outputs)]
        if self.window is not None:
            axes = ["p", "t", *(self.loops if len(self.loops) > 1 else ""), "t0"]
            operands[: len(self.inputs)] = self.window.positions
        return ", ".join(f"affine_map<({', '.join(axes)}) -> ({operand})>" for operand in operands)

    def regions(self, type: str) -> str:
        """The text from the taps on, for elements of this type."""
        if self.window is None:
            return f"map {self._region(type, len(self.inputs), self.lines, self.values)}"
        window = self.window
        padded = ", ".join(f"0.0 : {type}" if is_padded else "unit" for is_padded in window.padded)
        start = (
            f"{{\n          %first = arith.constant {window.start} : f32"
            "\n          ukernel.yield %first : f32\n        }"
        )
        reduce = self._region(type, len(self.inputs), window.lines, (window.value,), is_tap=True)
        map = self._region(type, 0, self.lines, self.values, has_accumulator=True)
        return f"taps = [{Window.TAPS}] padded = [{padded}] start {start} reduce {reduce} map {map}"

    def _region(
        self,
        type: str,
        inputs: int,
        lines: Sequence[str],
        values: tuple[str, ...],
        is_tap: bool = False,
        has_accumulator: bool = False,
    ) -> str:
        """A body; `is_tap` says that it makes the next accumulator."""
        is_narrow = type != "f32"
        names = [f"%{'a' if is_narrow else 'v'}{number}" for number in range(inputs)]
        body = [
            f"%v{number} = arith.extf {name} : {type} to f32"
            for number, name in enumerate(names)
            if is_narrow
        ]
        body += lines
        yielded = "f32" if is_tap else type
        if is_narrow and not is_tap:
            narrow = tuple(f"%n{number}" for number in range(len(values)))
            body += [
                f"{name} = arith.truncf {value} : f32 to {type}"
                for name, value in zip(narrow, values)
            ]
            values = narrow
        body.append(f"ukernel.yield {', '.join(values)} : {', '.join(yielded for _ in values)}")
        text = "\n          ".join(body)
        arguments = [f"{name}: {type}" for name in names]
        if is_tap or has_accumulator:
            arguments.append("%acc: f32")
        return f"{{\n        ^bb0({', '.join(arguments)}):\n          {text}\n        }}"


def _windows(image: Array, axis: int) -> list[Array]:
    """The image at each of three taps along an axis, with zeros around it."""
    edges = [(1, 1) if number == axis else (0, 0) for number in range(image.ndim)]
    padded = np.pad(image, edges)
    size = image.shape[axis]
    return [np.take(padded, np.arange(tap, tap + size), axis) for tap in range(Window.TAPS)]


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
    # A pool along the elements of a row, padded.
    "row_pool": PointwiseOperator(
        loops="mn",
        inputs=("mn",),
        outputs=("mn",),
        lines=("%q = arith.mulf %acc, %acc : f32",),
        values=("%q",),
        expected=lambda x: [np.square(np.maximum.reduce(_windows(x, 1)))],
        window=Window(
            positions=("m, n + t0 - 1",),
            padded=(True,),
            start="0xFF800000",
            lines=("%m = arith.maximumf %acc, %v0 : f32",),
            value="%m",
        ),
    ),
    # A convolution of each column by its own filter, padded.
    "column_filter": PointwiseOperator(
        loops="mn",
        inputs=("mn", "tn"),
        outputs=("mn",),
        lines=(),
        values=("%acc",),
        expected=lambda x, w: [sum(tap * w[number] for number, tap in enumerate(_windows(x, 0)))],
        window=Window(
            positions=("m + t0 - 1, n", "t0, n"),
            padded=(True, False),
            start="0.0",
            lines=("%m = math.fma %v0, %v1, %acc : f32",),
            value="%m",
        ),
    ),
}
