"""Trees of kernels that this compiler has not made: loops, buffers and statements by hand.

Any number may be an array with a value for each of many programs, which have the same structure: ::

    tree = Tree(len(m))
    lhs = tree.buffer("lhs", strides=[k, 0, 1], elements=m * k)
    with tree.nest(loop("m", -(-m // 64), "grid", M, 64), …):
        tree.statement("copy lhs", reads=[lhs], writes=[tile])
    ordering, features = tree.features()

The meaning of every field is in include/FTuner/Schedule/ProgramAst.h; docs/program-trees.md explains trees.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ..latency.model import model

# Axes of products, as `ftuner` numbers them.
M, N, K, BATCH = range(4)


def loop(
    name: str,
    length: Any,
    binding: str = "serial",
    axis: int | None = None,
    step: Any = 1,
    reduces: bool = False,
) -> dict[str, Any]:
    """A loop: `binding` is serial, grid, thread, virtual-thread, unrolled or vectorized; one along an axis
    moves by `step` elements of it; `reduces`: its iterations add to the same elements."""
    fields: dict[str, Any] = {"name": name, "length": length, "binding": binding}
    if axis is not None:
        fields.update(axis=axis, step=step)
    if reduces:
        fields["is_reduction"] = True
    return fields


class Tree:
    """The trees of `rows` programs of one structure."""

    def __init__(self, rows: int) -> None:
        self.rows = rows
        self._loops: list[dict[str, Any]] = []
        self._buffers: list[dict[str, Any]] = []
        self._statements: list[dict[str, Any]] = []
        self._open: list[int] = []

    def buffer(
        self,
        name: str,
        memory: str = "global",
        bytes: Any = 4,
        *,
        strides: Sequence[Any],
        elements: Any,
        tile: Sequence[Any] | None = None,
    ) -> int:
        """A buffer and its number: `memory` is global, shared or registers, `bytes` those of an element,
        `strides` elements between neighbours along each axis, `tile` the elements along each axis of what
        holds a tile, and `elements` all of it."""
        fields: dict[str, Any] = {
            "name": name,
            "memory": memory,
            "element_bytes": bytes,
            "elements": elements,
        }
        fields["strides"] = list(strides)
        if tile is not None:
            fields["tile"] = list(tile)
        self._buffers.append(fields)
        return len(self._buffers) - 1

    @contextlib.contextmanager
    def nest(self, *loops: dict[str, Any]) -> Iterator[list[int]]:
        """Loops around what is added within: their numbers. Without loops nothing is opened."""
        numbers = list(range(len(self._loops), len(self._loops) + len(loops)))
        self._loops += loops
        self._open += numbers
        yield numbers
        del self._open[len(self._open) - len(loops) :]

    def statement(
        self,
        name: str,
        operations: Mapping[str, Any] | None = None,
        *,
        reads: Sequence[int] = (),
        updates: Sequence[int] = (),
        writes: Sequence[int] = (),
        apart: Mapping[int, Mapping[int, Any]] | None = None,
    ) -> None:
        """A statement in the open loops: operations by kind ("float-multiply-add", …) of one iteration, and the
        numbers of the buffers that it reads, reads and writes, and writes. `apart` are, by buffers, distances
        between the iterations of loops by their numbers, where they do not follow from axes."""
        accesses: list[dict[str, Any]] = [
            {"buffer": buffer, "reads": does_read, "writes": does_write}
            for buffers, does_read, does_write in (
                (reads, True, False),
                (updates, True, True),
                (writes, False, True),
            )
            for buffer in buffers
        ]
        for access in accesses:
            if distances := (apart or {}).get(access["buffer"]):
                access["apart"] = [
                    {"loop": number, "distance": distance} for number, distance in distances.items()
                ]
        self._statements.append(
            {
                "name": name,
                "loops": list(self._open),
                "operations": dict(operations or {}),
                "accesses": accesses,
            }
        )

    def as_json(self) -> tuple[str, npt.NDArray[np.float64]]:
        """The tree with arrays as columns, and these: rows × columns."""
        columns: list[npt.NDArray[np.float64]] = []
        known: dict[int, int] = {}

        def column(value: Any) -> Any:
            if isinstance(value, np.generic):
                return value.item()
            if not isinstance(value, np.ndarray):
                raise TypeError(f"expected a number or an array, but got {value!r}")
            if id(value) not in known:
                known[id(value)] = len(columns)
                columns.append(np.broadcast_to(value, (self.rows,)).astype(np.float64))
            return {"column": known[id(value)]}

        text = json.dumps(
            {"loops": self._loops, "buffers": self._buffers, "statements": self._statements},
            default=column,
        )
        values = np.stack(columns, axis=1) if columns else np.empty((self.rows, 0))
        return text, np.ascontiguousarray(values)

    def features(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float32]]:
        """Places of the statements in the tree's sequence, and rows × statements × features.

        Raises `Error` for what no tree can be, with the row where it is of one.
        """
        return model().json_trees(*self.as_json())
