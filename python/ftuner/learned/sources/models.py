"""Operators of whole models, measured one by one."""

from __future__ import annotations

import json
import re
from typing import Any

import numpy as np
import numpy.typing as npt

from ...latency.measurements import memory_rows
from ...latency.measurements.rows import fold_of, read_times
from ...latency.measurements.table import Table
from ...latency.model import ProgramTree, model
from ..dataset import PROXY, Dataset, vectors
from ..kernels import Numbers
from . import memory
from .formats import Cards, Found, Source, stem
from .products import taken_for

Shape = tuple[int, ...]
# Names of elementwise operators in the rows, and their names in `memory.ELEMENTWISE`.
_ELEMENTWISE = {
    "add": "add",
    "sub": "sub",
    "mul": "mul",
    "max": "relu",
    "truediv": "div",
    "pow": "pow",
    "tanh": "tanh",
    "bert.pooler.activation": "tanh",
    "gelu": "gelu",
    "where": "where",
    "masked_fill": "where",
    "masked_fill_": "where",
    "contiguous": "copy",
}
# Names of operators that multiply by a weight, with the module of the model before them.
_LINEAR = re.compile(
    r"\.(query|key|value|dense|q_proj|k_proj|v_proj|out_proj|fc1|fc2)$|^(lm_head|classifier|addmm)$"
)
_NORM = re.compile(r"layer_?norm$|\.ln_(1|2|f)$", re.IGNORECASE)


def _shapes(table: Table, row: int) -> tuple[list[Shape], Shape]:
    """Shapes of the inputs and of the output."""
    try:
        inputs = json.loads(table.text("input_shapes")[row])
        output = json.loads(
            re.sub(r",?\s*\)$", "]", table.text("output_shape")[row].replace("(", "["))
        )
        shapes = (
            [tuple(int(size) for size in shape) for shape in inputs],
            tuple(int(size) for size in output),
        )
    except (ValueError, TypeError) as error:
        raise table.error(
            row, "columns 'input_shapes', 'output_shape': expected lists of whole numbers"
        ) from error
    if (
        not shapes[0]
        or not all(size > 0 for shape in (*shapes[0], shapes[1]) for size in shape)
        or not shapes[1]
    ):
        raise table.error(row, "columns 'input_shapes', 'output_shape': expected positive sizes")
    return shapes


def _kind(op: str) -> str:
    """Returns the kind of an operator by its name in the rows, or "" if no program is made of it."""
    # `activation_fn` names a module, not its function: the program made of it is GELU.
    if op in _ELEMENTWISE or op.endswith(".activation_fn"):
        return "elementwise"
    if _LINEAR.search(op):
        return "linear"
    if op in ("matmul", "bmm"):
        return "bmm"
    if _NORM.search(op):
        return "layernorm"
    return "softmax" if op == "softmax" else ""


def _read(table: Table, cards: Cards) -> Found:
    device = cards.devices.index_rows(table)
    op = table.text("op").astype(str)
    microseconds = read_times(table, "latency_us")
    kinds = np.array([_kind(name) for name in op.tolist()], str)
    is_whole = op == "end_to_end"
    fastest = np.array(
        [
            microseconds[(device == index) & (kinds != "")].min(initial=np.inf)
            for index in range(len(cards.devices.names))
        ]
    )
    is_fit = microseconds >= 2 * fastest[device]
    kept = np.flatnonzero((kinds != "") & is_fit)
    shapes = {int(row): _shapes(table, int(row)) for row in kept}
    trees: dict[int, list[ProgramTree]] = {}
    predicted = np.full(len(table), np.nan)
    for index in np.unique(device[kept]).tolist():
        for kind in ("linear", "bmm"):
            some = [int(row) for row in kept if device[row] == index and kinds[row] == kind]
            if not some:
                continue
            sizes = np.array([_product(kind, *shapes[row]) for row in some], np.int64).T
            is_linear = np.full(len(some), kind == "linear")
            made, predicted[some] = taken_for(
                cards.devices.sources[index],
                "f32",
                tuple(sizes),
                is_linear,
                ~is_linear & False,
                is_linear,
            )
            trees.update(zip(some, made))
    for row in kept.tolist():
        if kinds[row] in ("linear", "bmm"):
            continue
        inputs, output = shapes[row]
        columns = output[-1]
        predicted_as = ""
        extents = np.array([int(np.prod(output)) // columns]), np.array([columns])
        if kinds[row] == "softmax":
            (trees[row],) = memory.softmax_trees(*extents, 4)
            predicted_as = "softmax"
        elif kinds[row] == "layernorm":
            (trees[row],) = memory.layer_norm_trees(*extents, 4)
            predicted_as = "layernorm"
        else:
            operations = memory.ELEMENTWISE[_ELEMENTWISE.get(op[row], "gelu")]
            # A number or a vector that all elements share is not a tensor to read.
            large = sum(np.prod(shape) * 2 > np.prod(output) for shape in inputs)
            (trees[row],) = memory.elementwise_trees(
                operations, max(int(large), 1), extents[0] * extents[1], 4
            )
            # An operator that the latency model knows, with as many tensors.
            name = _ELEMENTWISE.get(op[row], "gelu")
            if memory_rows.OPERATORS.get(name) == large + 1:
                predicted_as = name
        if predicted_as:
            predicted[row] = _predict(predicted_as, extents, cards, int(device[row]))
    model_of = table.text("model")[kept].astype(str)
    names = [
        kind if kind != "elementwise" else name.rsplit(".", 1)[-1]
        for kind, name in zip(kinds[kept].tolist(), op[kept].tolist())
    ]

    def text(*operands: Shape) -> str:
        return "; ".join("x".join(map(str, shape)) for shape in operands)

    keys = [
        f"{name} {text(shapes[row][1])} of {text(*shapes[row][0])}"
        for name, row in zip(names, kept.tolist())
    ]
    data = Dataset.make(
        [trees[row] for row in kept.tolist()],
        microseconds[kept],
        device[kept],
        cards.devices.names,
        vectors(cards.devices),
        key=keys,
        fold=np.array([fold_of(key) for key in keys], np.int64),
        predicted=predicted[kept],
        operator=np.array(
            [
                name if kind in ("linear", "bmm") else f"{name}-f32"
                for name, kind in zip(names, kinds[kept].tolist())
            ],
            str,
        ),
        source=stem(table.path),
        model=model_of,
        knowledge=PROXY,
    )
    left_out = {
        "a whole model": int(is_whole.sum()),
        "no tree of a look-up or a drop-out": int(((kinds == "") & ~is_whole).sum()),
        "below twice the least time of the card": int(((kinds != "") & ~is_fit).sum()),
    }
    return Found(data, {why: count for why, count in left_out.items() if count})


def _predict(op: str, extents: tuple[Numbers, Numbers], cards: Cards, device: int) -> float:
    """Microseconds of an operator of `memory_rows` in f32 on a device, by its number."""
    sizes = extents[0].astype(float), extents[1].astype(float)
    figures = [cards.devices.figures[device]]
    launches = memory_rows.launches_of(
        op, "2023", sizes, np.array([4.0]), figures, np.zeros(1, np.int64)
    )
    return float(
        model().predict(launches, model().default_calibration(cards.devices.sources[device]))[0]
    )


def _product(kind: str, inputs: list[Shape], output: Shape) -> tuple[int, int, int, int]:
    """Batch, M, N and K."""
    n = output[-1]
    if kind == "linear":
        # The bias of addmm comes first.
        k = inputs[1 if len(inputs) == 3 else 0][-1]
        return 1, int(np.prod(output)) // n, n, k
    return int(np.prod(output[:-2])), output[-2], n, inputs[0][-1]


def _whole(table: Table, cards: Cards) -> Found:
    """Times of a whole encoder, which do not belong to one program."""
    empty: npt.NDArray[Any] = np.empty(0)
    data = Dataset.make(
        [], empty, np.empty(0, np.int64), [], np.empty((0, 14), np.float32), key=[], fold=np.empty(0, np.int64),
        operator="", source=stem(table.path),
    )  # fmt: skip
    return Found(data, {"a whole model": len(table)})


SOURCES = [
    Source("model-operators", ("model", "op", "input_shapes", "output_shape", "latency_us"), _read),
    Source(
        "whole-models",
        ("framework", "dtype", "batch", "seq", "implementation", "latency_ms"),
        _whole,
    ),
]
