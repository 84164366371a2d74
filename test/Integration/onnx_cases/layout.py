"""Operators that move elements: views, slices, gathers, and operators that need only sizes."""

from __future__ import annotations

from typing import Any

import numpy as np

from .case import Array, Case, Pick, constant, data, operators, sizes

F32, F16, F64 = np.float32, np.float16, np.float64
TYPES = (F32, F32, F16, F64, np.int32, np.int64, np.uint8, bool)


@operators("Reshape")
def reshape(pick: Pick) -> Case:
    forms: dict[str, tuple[list[Any], Any]] = {
        "flat": (["a", "b", "c"], constant([-1])),
        "rows": (["a", "b", 4], constant([-1, 4])),
        "rows_of_unknown": (["a", "4*b"], constant([-1, 4])),
        "keep_first": (["a", "b", "c"], constant([0, -1])),
        "keep_two": (["a", "b", 6], constant([0, 0, 2, 3])),
        "split": (["a", "6*b"], constant([0, -1, 6])),
        "regroup": (["2*a", "3*b"], constant([-1, 6])),
        "regroup_less": (["4*a", "6"], constant([-1, 12])),
        "computed": (["a", "b", "c"], sizes("a", "b*c")),
        "computed_all": (["a", "b", "c"], sizes("c", "a*b")),
        "computed_rest": (["a", "b", "c"], sizes("b", -1)),
        "heads": (["a", "b", "2*c"], sizes("a", "b", 2, -1)),
        "merge_heads": (["a", "b", 2, 3], sizes("a", "b", -1)),
        "one": (["a", "b"], constant([1, -1, 1])),
        "scalar": ([1, 1], constant(np.zeros(0))),
        "copies": (["a", "b", "c"], constant([0, 0, 0])),
    }
    shape, wanted = forms[pick("form", [*forms])]
    attributes = {}
    if pick.version >= 14:
        attributes["allowzero"] = pick("allowzero", [None, 0, 1])
    return pick.case([data(pick("dtype", TYPES), *shape), wanted], attributes)


@operators("Flatten")
def flatten(pick: Pick) -> Case:
    shape = pick("shape", [["a", "b", "c"], ["a", "b", "d", "c"], ["a"]])
    axis = pick("axis", [None, 0, 1, 2, 3, -1])
    if axis is not None and (axis > len(shape) or axis < 0 and pick.version < 11):
        axis = pick.properties["axis"] = 0
    return pick.case([data(pick("dtype", TYPES), *shape)], {"axis": axis})


@operators("Squeeze", "Unsqueeze")
def squeeze(pick: Pick) -> Case:
    if pick.operator == "Squeeze":
        shape: list[Any] = pick("shape", [[1, "a", 1, "b"], ["a", 1], [1, "a", "one"]])
        axes = pick("axes", [None, [0], [-1], [1], [0, 2], [2, 0]])
        ones = [index for index, size in enumerate(shape) if size in (1, "one")]
        if axes is not None and not {axis % len(shape) for axis in axes} <= {*ones}:
            axes = pick.properties["axes"] = [ones[-1]]
        if axes is None and "one" in shape:
            axes = pick.properties["axes"] = [0, 2]
    else:
        shape = pick("shape", [["a", "b"], ["a"], []])
        axes = pick("axes", [[0], [-1], [0, 2], [1, 0], [1]])
        if any(not -len(shape) - len(axes) <= axis < len(shape) + len(axes) for axis in axes):
            axes = pick.properties["axes"] = [0]
    if pick.version < 11 and axes and min(axes) < 0:
        axes = pick.properties["axes"] = (
            None if pick.operator == "Squeeze" and "one" not in shape else [0]
        )
    operand = data(pick("dtype", TYPES), *shape)
    if pick.version >= 13:
        return pick.case([operand] + ([constant(axes)] if axes is not None else []))
    return pick.case([operand], {"axes": axes})


@operators("Transpose")
def transpose(pick: Pick) -> Case:
    perm = pick(
        "perm", [None, [1, 0], [0, 2, 1], [2, 0, 1], [0, 2, 3, 1], [0, 3, 1, 2], [3, 2, 1, 0], [0]]
    )
    shape = ["a", "b", "c", "d"][: len(perm) if perm else 3]
    return pick.case([data(pick("dtype", TYPES), *shape)], {"perm": perm})


@operators("Expand")
def expand(pick: Pick) -> Case:
    forms: dict[str, tuple[list[Any], Any, list[Any]]] = {
        "known": ([3, 1], constant([2, 3, 4]), []),
        "ones": (["a", 1], constant([1, 4]), []),
        "less": (["a", "b"], constant([1]), []),
        "unknown_one": (["a", "one"], constant([1, 4]), []),
        "computed": ([1, "b"], sizes("a", "b"), [data(F32, "a")]),
        "computed_more": (["b", 1], sizes("a", "b", "c"), [data(F32, "a", "c")]),
        "computed_one": (["one", "b"], sizes("a", "b"), [data(F32, "a")]),
        "scalar": ([], sizes("a", 3), [data(F32, "a")]),
    }
    shape, wanted, sources = forms[pick("form", [*forms])]
    return pick.case([data(pick("dtype", TYPES), *shape), wanted], sources=sources)


@operators("Tile")
def tile(pick: Pick) -> Case:
    repeats = pick("repeats", [[1, 2], [3, 1], [2, 2, 2], [1, 1], [2], [0, 2]])
    shape = ["a", "b", "c"][: len(repeats)]
    return pick.case([data(pick("dtype", TYPES), *shape), constant(repeats)])


@operators("Concat")
def concat(pick: Pick) -> Case:
    count, rank = pick("count", [1, 2, 3]), pick("rank", [1, 2, 3])
    axis = pick("axis", [0, 1, 2, -1, -2])
    if not -rank <= axis < rank or axis < 0 and pick.version < 11:
        axis = pick.properties["axis"] = 0
    operands, dtype = [], pick("dtype", TYPES)
    for number in range(count):
        shape: list[Any] = ["a", "b", "c"][:rank]
        shape[axis] = ["e", "d", 2][number]
        operands.append(data(dtype, *shape))
    return pick.case(operands, {"axis": axis})


@operators("Split")
def split(pick: Pick) -> Case:
    parts = pick("parts", [[2, 4], [1, 1, 4], "equal", "equal_of_unknown", [6], [0, 6]])
    axis = pick("axis", [None, 0, 1, -1])
    if axis == -1 and pick.version < 11:
        axis = pick.properties["axis"] = 1
    is_list = isinstance(parts, list)
    size: Any = 6 if is_list or parts == "equal" else "2*b"
    count = len(parts) if is_list else 2
    shape: list[Any] = ["a", "c"]
    shape[axis or 0] = size
    if is_list and pick("size", ["known", "unknown"]) == "unknown":
        shape[axis or 0] = "6*one"
    operands, attributes = [data(pick("dtype", TYPES), *shape)], {"axis": axis}
    if is_list:
        if pick.version >= 13:
            operands.append(constant(parts))
        else:
            attributes["split"] = parts
    elif pick.version >= 18:
        attributes["num_outputs"] = count
        if parts == "equal_of_unknown" and pick("rest", [False, True]):
            shape[axis or 0] = "b"
            operands = [data(operands[0].dtype, *shape)]
    return pick.case(operands, attributes, outputs=count)


#: Starts, ends, axes, steps.
SLICES: dict[str, tuple[Any, Any, Any, Any]] = {
    "front": ([0], [2], [1], None),
    "inner": ([1, 1], [-1, 3], [0, 1], None),
    "tail": ([-2], [9999], [1], None),
    "all": ([0, 0], [2**40, 2**40], None, None),
    "steps": ([0, 1], [9, 9], [0, 2], [2, 3]),
    "back": ([-1], [-(2**40)], [1], [-1]),
    "back_steps": ([-2, 5], [-99, 0], [-1, 1], [-2, -1]),
    "empty": ([3], [1], [0], None),
    "beyond": ([50], [60], [1], None),
    "negative_axes": ([1], [-1], [-1], None),
    "no_axes": ([0, 1, 0], [1, 3, 2], None, None),
}


@operators("Slice")
def slices(pick: Pick) -> Case:
    starts, ends, axes, steps = SLICES[pick("form", [*SLICES])]
    operand = data(pick("dtype", TYPES), "a", "b", "c")
    if pick.version < 10:
        if steps is not None or axes and min(axes) < 0:
            pick.properties["form"] = "inner"
            starts, ends, axes, steps = SLICES["inner"]
        return pick.case([operand], {"starts": starts, "ends": ends, "axes": axes})
    kind = pick("indices", (np.int64, np.int32))
    if kind == np.int32:
        ends = [max(min(end, 2**31 - 1), -(2**31) + 1) for end in ends]
    more = [constant(starts, kind), constant(ends, kind)]
    if axes is not None or steps is not None:
        more.append(constant(axes if axes is not None else [*range(len(starts))], kind))
    if steps is not None:
        more.append(constant(steps, kind))
    return pick.case([operand, *more])


@operators("Pad")
def pad(pick: Pick) -> Case:
    modes = [None, "constant", "edge", "reflect"] + (["wrap"] if pick.version >= 19 else [])
    mode = pick("mode", modes)
    pads = pick(
        "pads",
        [[0, 1, 0, 2], [1, 1, 1, 1], [0, 0, 0, 0], [0, -1, 0, 0], [1, -1, 0, 2], [0, 0, 3, 0]],
    )
    shape = ["b", "c"]
    if pick("rank", [2, 4]) == 4:
        shape, pads = ["a", "d", "b", "c"], [0, 0, *pads[:2], 0, 0, *pads[2:]]
    value = pick("value", [None, 1.5])
    dtype = pick("dtype", (F32, F32, F64, np.int32, np.int64, np.uint8))
    if pick.version < 11:
        return pick.case([data(F32, *shape)], {"mode": mode, "pads": pads, "value": value})
    operands: list[Any] = [data(dtype, *shape), constant(pads)]
    axes = pick("axes", [None, "some"]) if pick.version >= 18 else None
    if value is not None or axes:
        operands.append(None if value is None else constant(value, dtype))
    if axes:
        rank = len(shape)
        order = [rank - 1, rank - 2 - rank]
        operands[1] = constant(
            [pads[axis % rank] for axis in order] + [pads[rank + axis % rank] for axis in order]
        )
        operands.append(constant(order))
    points = {"even": {"a": 2, "d": 2, "b": 4, "c": 6}, "odd": {"a": 3, "d": 1, "b": 5, "c": 7},
              "less": {"a": 1, "d": 1, "b": 4, "c": 3}, "one": dict.fromkeys("abcd", 1),
              "zero": {"a": 0, "d": 2, "b": 4, "c": 5}}  # fmt: skip
    if mode in ("edge", "reflect", "wrap"):
        del points["one"]
        if shape[0] == "b":
            del points["zero"]
    return pick.case(operands, {"mode": mode}, points=points)


def positions(limit: int, negative: bool) -> Any:
    def make(rng: Any, shape: Any, dtype: Any) -> Array:
        return rng.integers(-limit if negative else 0, limit, shape).astype(dtype)

    return make


#: Points without sizes of zero or one along what is gathered.
_GATHERED = {
    "even": {"a": 2, "b": 4, "c": 6, "d": 2, "e": 4, "n": 2},
    "odd": {"a": 3, "b": 5, "c": 7, "d": 3, "e": 1, "n": 3},
    "one": {"a": 1, "b": 3, "c": 3, "d": 1, "e": 1, "n": 1},
    "zero": {"a": 2, "b": 3, "c": 4, "d": 0, "e": 2, "n": 2},
}


@operators("Gather")
def gather(pick: Pick) -> Case:
    axis = pick("axis", [None, 0, 1, -1, 2])
    shape: list[Any] = ["b", "b", "c"]
    indices = pick("indices", ["scalar", "list", "matrix", "constant", "constant_scalar"])
    kind = pick("kind", (np.int64, np.int32))
    make = positions(3, pick("negative", [False, True]))
    operand = {
        "scalar": data(kind, make=make),
        "list": data(kind, "d", make=make),
        "matrix": data(kind, "d", "n", make=make),
        "constant": constant([2, 0, -1], kind),
        "constant_scalar": constant(-2, kind),
    }[indices]
    return pick.case(
        [data(pick("dtype", TYPES), *shape), operand], {"axis": axis}, points=_GATHERED
    )


@operators("GatherElements")
def gather_elements(pick: Pick) -> Case:
    axis = pick("axis", [None, 0, 1, -1])
    shape: list[Any] = ["b", "c"]
    taken: list[Any] = list(shape)
    taken[axis or 0] = "d"
    make = positions(3, pick("negative", [False, True]))
    kind = pick("kind", (np.int64, np.int32))
    return pick.case([data(pick("dtype", TYPES), *shape), data(kind, *taken, make=make)], {"axis": axis},
                     points=_GATHERED)  # fmt: skip


@operators("GatherND")
def gather_nd(pick: Pick) -> Case:
    depth = pick("depth", [1, 2, 3])
    batch = pick("batch_dims", [None, 0, 1]) if pick.version >= 12 else None
    shape: list[Any] = ["b", "c", "b"]
    leading: list[Any] = pick("leading", [["d"], ["d", "n"], []])
    if batch:
        depth = pick.properties["depth"] = min(depth, 2)
        leading = ["b", *leading]
    make = positions(3, pick("negative", [False, True]))
    return pick.case([data(pick("dtype", TYPES), *shape), data(np.int64, *leading, depth, make=make)],
                     {"batch_dims": batch}, points=_GATHERED)  # fmt: skip


@operators("DepthToSpace", "SpaceToDepth")
def blocks(pick: Pick) -> Case:
    block = pick("blocksize", [1, 2, 3])
    attributes: dict[str, Any] = {"blocksize": block}
    channels = pick("channels", ["unknown", 1, 5])
    count: Any = "d" if channels == "unknown" else channels
    if pick.operator == "DepthToSpace":
        if pick.version >= 11:
            attributes["mode"] = pick("mode", [None, "DCR", "CRD"])
        size = f"{block * block}*d" if count == "d" else block * block * count
        shape = ["a", size, "h", "w"]
    else:
        shape = ["a", count, f"{block}*h", f"{block}*w"]
    points = {"even": {"a": 2, "d": 2, "h": 2, "w": 4}, "odd": {"a": 1, "d": 3, "h": 3, "w": 5},
              "one": dict.fromkeys("adhw", 1), "zero": {"a": 0, "d": 2, "h": 2, "w": 3}}  # fmt: skip
    return pick.case([data(pick("dtype", (F32, F64)), *shape)], attributes, points=points)


@operators("Shape", "Size")
def shape(pick: Pick) -> Case:
    attributes = {}
    if pick.operator == "Shape" and pick.version >= 15:
        attributes = {
            "start": pick("start", [None, 1, -1, -9]),
            "end": pick("end", [None, 2, -1, 9]),
        }
    return pick.case(
        [data(pick("dtype", TYPES), *pick("shape", [["a", "b", "c"], ["a"], [], [2, "b"]]))],
        attributes,
    )


@operators("EyeLike")
def eye_like(pick: Pick) -> Case:
    attributes = {"k": pick("k", [None, 1, -1, 9]), "dtype": pick("to", [None, 1, 11, 6, 7])}
    return pick.case([data(pick("dtype", (F32, F64, np.int32, np.int64)), "b", "c")], attributes)


@operators("Trilu")
def trilu(pick: Pick) -> Case:
    k = pick("k", [None, 0, 1, -1, 9, -9])
    operands = [
        data(pick("dtype", TYPES), *pick("shape", [["b", "c"], ["a", "c", "b"], ["b", "b"]]))
    ]
    if k is not None:
        operands.append(constant(k))
    return pick.case(operands, {"upper": pick("upper", [None, 0, 1])})


@operators("OneHot")
def one_hot(pick: Pick) -> Case:
    axis = pick("axis", [None, 0, -1, 1])
    kind, dtype = pick("kind", (np.int64, np.int32, F32)), pick("dtype", (F32, np.int64, np.int32))
    depth = pick("depth", ["scalar", "list"])
    make = positions(8, pick("negative", [False, True]))
    shape = pick("shape", [["a", "b"], ["b"]])
    values = (
        constant([0, 1], dtype)
        if pick("values", ["constant", "input"]) == "constant"
        else data(dtype, 2)
    )
    operands = [
        data(kind, *shape, make=make),
        constant(5 if depth == "scalar" else [5], np.int64),
        values,
    ]
    return pick.case(operands, {"axis": axis})


@operators("Range")
def ranges(pick: Pick) -> Case:
    dtype = pick("dtype", (F32, F64, np.int32, np.int64))
    form = pick("form", ["up", "down", "steps", "empty", "of_size"])
    if form == "of_size":
        pick.properties["dtype"] = np.dtype(np.int64).name
        limit = sizes("b")
        limit.shape = []
        return pick.case([constant(0), limit, constant(1)], sources=[data(F32, "a", "b")])
    values = {"up": (0, 5, 1), "down": (5, -3, -2), "steps": (1, 11, 3), "empty": (3, 1, 1)}[form]
    return pick.case([constant(value, dtype) for value in values])


@operators("ReverseSequence")
def reverse_sequence(pick: Pick) -> Case:
    time = pick("time_axis", [None, 0, 1])
    batch = 1 - (time or 0)
    shape = ["b", "b", "c"][: pick("rank", [2, 3])]
    shape[batch] = "d"

    def lengths(rng: Any, shape: Any, dtype: Any) -> Array:
        return rng.integers(1, 4, shape).astype(dtype)

    return pick.case([data(pick("dtype", TYPES), *shape), data(np.int64, "d", make=lengths)],
                     {"time_axis": time, "batch_axis": None if time is None else batch}, points=_GATHERED)  # fmt: skip


@operators("CenterCropPad")
def center(pick: Pick) -> Case:
    axes = pick("axes", [None, [1], [0, 1], [-1]])
    wanted = pick("wanted", [(3, 8), (4, 4), (10, 1)])
    count = len(axes) if axes else 2
    return pick.case(
        [data(pick("dtype", (F32, np.int64)), "b", "c"), constant(list(wanted[:count]))],
        {"axes": axes},
    )
