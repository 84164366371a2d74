"""Operators that reduce, and operators that reduce and then scale: norms, softmaxes, losses."""

from __future__ import annotations

from typing import Any

import numpy as np

from .case import Array, Case, Pick, constant, data, normal, operators, positive, special, weights

F32, F16, F64 = np.float32, np.float16, np.float64


def _log_sum_exp(x: Array, axis: Any, keepdims: bool) -> Array:
    wide = x.astype(np.float64)
    top = np.max(wide, axis=axis, keepdims=True, initial=-np.inf)
    top = np.where(np.isfinite(top), top, 0)
    total = np.log(np.exp(wide - top).sum(axis=axis, keepdims=True)) + top
    return total if keepdims else np.squeeze(total, axis=axis)


def with_nan(reduce: Any) -> Any:
    """The extreme as NumPy has it, which keeps NaN."""

    def compute(case: Case, arrays: list[Array], wanted: list[Array]) -> list[Array]:
        x = arrays[0]
        axes = case.attributes.get("axes")
        if len(arrays) > 1 and arrays[1] is not None:
            axes = [int(axis) for axis in arrays[1]]
        if not axes and case.attributes.get("noop_with_empty_axes"):
            return [x]
        keep = bool(case.attributes.get("keepdims", 1))
        kind = x.astype(np.uint8) if x.dtype == bool else x
        return [
            np.asarray(reduce(kind, axis=tuple(axes) if axes else None, keepdims=keep)).astype(
                x.dtype
            )
        ]

    return compute


@operators(
    *(
        "ReduceL1",
        "ReduceL2",
        "ReduceLogSum",
        "ReduceLogSumExp",
        "ReduceMax",
        "ReduceMean",
        "ReduceMin",
    ),
    *("ReduceProd", "ReduceSum", "ReduceSumSquare"),
)
def reduction(pick: Pick) -> Case:
    name = pick.operator
    extreme = name in ("ReduceMax", "ReduceMin")
    kinds: tuple[Any, ...] = (F32, F32, F64, np.int32, np.int64)
    if name.startswith("ReduceLog"):
        kinds = (F32, F32, F64)
    if extreme:
        kinds += (np.int8, np.uint8, bool)
    dtype = pick("dtype", kinds)
    shape = pick("shape", [["a", "b", "c"], ["b", "c"], ["a"], ["a", 1, "c", "d"]])
    rank = len(shape)
    axes = pick("axes", [None, [0], [-1], [0, -1], [1], [1, 2], []])
    if (
        axes is not None
        and any(not -rank <= axis < rank for axis in axes)
        or rank == 1
        and axes == [0, -1]
    ):
        axes = pick.properties["axes"] = [-1]
    attributes = {"keepdims": pick("keepdims", [None, 0, 1])}
    make = pick("values", [special, normal])
    if name == "ReduceLogSum":
        make = positive
    operands: list[Any] = [data(dtype, *shape, make=make)]
    if pick.version >= (13 if name == "ReduceSum" else 18):
        attributes["noop_with_empty_axes"] = pick("noop", [None, 0, 1])
        if axes is not None:
            operands.append(constant(axes))
    else:
        if axes == []:
            axes = pick.properties["axes"] = None
        attributes["axes"] = axes
    more: dict[str, Any] = {}
    if extreme:
        more = {
            "reference": with_nan(np.max if name == "ReduceMax" else np.min),
            "departure": "onnxruntime drops NaN" if np.dtype(dtype).kind == "f" else "",
        }
        if not more["departure"]:
            more = {}
    if name == "ReduceMean":
        more = {"reference": lambda case, arrays, wanted: wanted if arrays[0].size else None,
                "departure": "means of no elements, which ONNX does not define, are left out"}  # fmt: skip
    if name == "ReduceProd" and np.dtype(dtype).kind != "f":
        more = {
            "reference": with_nan(_product),
            "departure": "onnxruntime's integers do not wrap around",
        }
    if name == "ReduceLogSumExp":
        more = {
            "reference": with_nan(_log_sum_exp),
            "departure": "onnxruntime drops NaN beside infinities",
        }
    return pick.case(operands, attributes, tolerance=4, **more)


def _product(x: Array, **places: Any) -> Array:
    return np.prod(x, dtype=x.dtype, **places)


@operators("ArgMax", "ArgMin")
def position(pick: Pick) -> Case:
    dtype = pick("dtype", (F32, F64, np.int32, np.int8, np.uint8))
    shape = pick("shape", [["a", "b", "c"], ["b", "c"], ["a"]])
    axis = pick("axis", [None, 0, 1, -1, 2])
    if axis is not None and axis >= len(shape):
        axis = pick.properties["axis"] = -1
    attributes = {"axis": axis, "keepdims": pick("keepdims", [None, 0, 1])}
    if pick.version >= 12:
        attributes["select_last_index"] = pick("select_last_index", [None, 0, 1])

    def ties(rng: Any, shape: Any, dtype: Any) -> Array:
        return rng.integers(0, 3, shape).astype(dtype)

    return pick.case([data(dtype, *shape, make=pick("values", [normal, ties]))], attributes)


@operators("Softmax", "LogSoftmax", "Hardmax")
def softmax(pick: Pick) -> Case:
    dtype = pick("dtype", (F32, F32, F16, F64))
    shape = pick("shape", [["a", "b", "c"], ["b", "c"], ["a"], ["a", "b", "d", "c"]])
    axis = pick("axis", [None, 0, 1, -1, 2, -2])
    if axis is not None and not -len(shape) <= axis < len(shape):
        axis = pick.properties["axis"] = -1 if pick.version >= 11 else 0
    if pick.version < 11 and axis is not None and axis < 0:
        axis = pick.properties["axis"] = 0
    if axis is None and len(shape) == 1 and pick.version < 13:
        axis = pick.properties["axis"] = 0
    scale = pick("scale", [1.0, 30.0])
    make = lambda rng, shape, dtype: normal(rng, shape, dtype, scale)
    return pick.case([data(dtype, *shape, make=make)], {"axis": axis}, tolerance=2)


@operators("LpNormalization")
def lp_normalization(pick: Pick) -> Case:
    shape = pick("shape", [["a", "b", "c"], ["b", "c"], ["a"]])
    axis = pick("axis", [None, 0, -1, 1])
    if axis is not None and axis >= len(shape):
        axis = pick.properties["axis"] = -1
    attributes = {"axis": axis, "p": pick("p", [None, 1, 2])}
    return pick.case(
        [data(pick("dtype", (F32, F64)), *shape, make=normal)], attributes, tolerance=2
    )


def _mean_variance(case: Case, arrays: list[Array], wanted: list[Array]) -> list[Array]:
    x = arrays[0].astype(np.float64)
    axes = tuple(case.attributes.get("axes", [0, 2, 3]))
    return [
        ((x - x.mean(axes, keepdims=True)) / (x.std(axes, keepdims=True) + 1e-9)).astype(np.float32)
    ]


@operators("MeanVarianceNormalization")
def mean_variance(pick: Pick) -> Case:
    axes = pick("axes", [None, [0, 2, 3], [0, 1, 2, 3], [1, 2], [-1], [0]])
    shape = ["a", "b", "h", "w"]
    return pick.case([data(F32, *shape, make=normal)], {"axes": axes}, tolerance=64, reference=_mean_variance,
                     departure="onnxruntime's variance is a difference of f32, which may be negative")  # fmt: skip


@operators("BatchNormalization")
def batch_norm(pick: Pick) -> Case:
    dtype = pick("dtype", (F32, F32, F16, F64))
    channels = pick("channels", ["b", 3])
    shape = pick("shape", [2, 3, 4, 5])
    dims = ["a", channels, "h", "w", "d"][:shape]
    attributes = {"epsilon": pick("epsilon", [None, 0.01])}
    make = [normal, normal, normal, positive]
    form = pick("parameters", ["constant", "input"]) if channels == 3 else "input"
    operand = weights if form == "constant" else data
    parameters = [operand(dtype, channels, make=one) for one in make]
    return pick.case([data(dtype, *dims), *parameters], attributes, tolerance=2)


@operators("InstanceNormalization")
def instance_norm(pick: Pick) -> Case:
    dtype = pick("dtype", (F32, F32, F64))
    channels = pick("channels", ["b", 3])
    dims = ["a", channels, "h", "w", "d"][: pick("rank", [3, 4, 5])]
    operand = weights if channels == 3 else data
    parameters = [operand(dtype, channels), operand(dtype, channels)]
    return pick.case(
        [data(dtype, *dims), *parameters], {"epsilon": pick("epsilon", [None, 0.01])}, tolerance=8
    )


@operators("GroupNormalization")
def group_norm(pick: Pick) -> Case:
    dtype = pick("dtype", (F32, F32, F64))
    groups, form = pick("groups", [1, 2, 3]), pick("parameters", ["constant", "input"])
    channels: Any = groups * 2 if form == "constant" else f"{groups}*b"
    dims = ["a", channels, "h", "w", "d"][: pick("rank", [3, 4, 5])]
    operand = weights if form == "constant" else data
    count = channels if pick.version >= 21 else groups
    attributes = {"num_groups": groups, "epsilon": pick("epsilon", [None, 0.01])}
    return pick.case([data(dtype, *dims), operand(dtype, count), operand(dtype, count)], attributes,
                     tolerance=_of_f32(dtype))  # fmt: skip


@operators("LayerNormalization", "RMSNormalization")
def layer_norm(pick: Pick) -> Case:
    dtype = pick("dtype", (F32, F32, F64))
    shape = pick("shape", [["a", "b", "c"], ["b", "c"], ["a", "b", 5], ["a", "b", "d", "c"]])
    axis = pick("axis", [None, -1, 1, 0, -2])
    scaled = shape[axis if axis is not None else -1 :]
    operands = [data(dtype, *shape), data(dtype, *scaled)]
    if pick.operator == "LayerNormalization" and pick("bias", [False, True]):
        operands.append(data(dtype, *scaled))
    outputs: Any = 1
    if pick.operator == "LayerNormalization" and dtype == F32:
        outputs = pick("outputs", [1, 3])
    attributes = {
        "axis": axis,
        "epsilon": pick("epsilon", [None, 0.01]),
        "stash_type": pick("stash", [None, 1]),
    }
    return pick.case(operands, attributes, outputs=outputs, tolerance=_of_f32(dtype))


def _of_f32(dtype: Any) -> float:
    """The tolerance of what is computed in f32 (`stash_type`), whatever the operands are."""
    return 1e5 if dtype == F64 else 8


@operators("NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss")
def loss(pick: Pick) -> Case:
    dtype = pick("dtype", (F32, F32, F64))
    classes = pick("classes", [5, "v"])
    dims = {2: [], 3: ["d"], 4: ["h", "w"]}[pick("rank", [2, 3, 4])]
    ignored = pick("ignore_index", [None, 1, -1])
    weighted = pick("weight", [False, True])

    def labels(rng: Any, shape: Any, dtype: Any) -> Array:
        found = rng.integers(0, 4, shape)
        return (
            np.where(rng.random(shape) < 0.2, -1, found).astype(dtype)
            if ignored == -1
            else found.astype(dtype)
        )

    operands = [data(dtype, "a", classes, *dims),
                data(pick("labels", (np.int64, np.int32)), "a", *dims, make=labels)]  # fmt: skip
    if weighted:
        operands.append(data(dtype, classes, make=positive))
    attributes = {
        "reduction": pick("reduction", [None, "none", "sum", "mean"]),
        "ignore_index": ignored,
    }
    outputs = pick("outputs", [1, 2]) if pick.operator == "SoftmaxCrossEntropyLoss" else 1
    points = {name: {"a": a, "v": v, "d": d, "h": h, "w": w} for name, (a, v, d, h, w) in
              {"even": (2, 4, 2, 4, 6), "odd": (3, 5, 3, 3, 5), "one": (1, 4, 1, 1, 1)}.items()}  # fmt: skip
    return pick.case(operands, attributes, outputs=outputs, tolerance=4, points=points)


@operators("TopK")
def top_k(pick: Pick) -> Case:
    dtype = pick("dtype", (F32, F64, np.int64, np.int32))
    shape = pick("shape", [["a", "b", "c"], ["b", "c"], ["c"]])
    axis = pick("axis", [None, -1, 0])
    k = pick("k", [1, 2, 4])
    attributes: dict[str, Any] = {"axis": axis}
    if pick.version >= 11:
        attributes["largest"] = pick("largest", [None, 0, 1])
        attributes["sorted"] = pick("sorted", [None, 1])

    def unequal(rng: Any, shape: Any, dtype: Any) -> Array:
        count = int(np.prod(shape))
        return (rng.permutation(count) - count // 2).reshape(shape).astype(dtype)

    points = {
        "even": {"a": 4, "b": 4, "c": 6},
        "odd": {"a": 5, "b": 5, "c": 7},
        "four": {"a": 4, "b": 1, "c": 4},
    }
    if pick.version < 10:
        attributes["k"] = k
        return pick.case([data(dtype, *shape, make=unequal)], attributes, outputs=2, points=points)
    return pick.case(
        [data(dtype, *shape, make=unequal), constant([k])], attributes, outputs=2, points=points
    )
