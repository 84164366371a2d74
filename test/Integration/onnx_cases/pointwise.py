"""Operators on each element."""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx import helper

from .case import (
    INTEGERS,
    Case,
    Pick,
    between,
    constant,
    data,
    normal,
    operators,
    positive,
    sizes,
    special,
)

F32, F16, F64 = np.float32, np.float16, np.float64
SHAPES = (["a"], ["a", "b"], ["a", "b", "c"], ["b", "a", "d", "c"], [])
MORE_SHAPES = (*SHAPES, [3, "b"], ["a", 1, "c"], ["one", "c"], [2, 3])


@operators(
    *(
        "Abs",
        "Neg",
        "Sign",
        "Ceil",
        "Floor",
        "Round",
        "Exp",
        "Sqrt",
        "Reciprocal",
        "Erf",
        "Sigmoid",
        "Tanh",
        "Relu",
    ),
    *(
        "Softplus",
        "Softsign",
        "Sin",
        "Cos",
        "Tan",
        "Atan",
        "Sinh",
        "Cosh",
        "Asinh",
        "HardSwish",
        "Mish",
        "IsNaN",
    ),
    *("Not", "BitwiseNot", "Identity", "Swish"),
)
def unary(pick: Pick) -> Case:
    only = {"Not": (bool,), "BitwiseNot": INTEGERS}
    dtypes = only.get(pick.operator, (F32, F32, F16, F64, np.int32, np.int64, np.int8, np.uint8))
    attributes = {}
    if pick.operator == "Swish":
        attributes["alpha"] = pick("alpha", [None, 0.5, -2.0])
    shapes = MORE_SHAPES if pick.operator == "Not" else SHAPES
    dtype = pick("dtype", dtypes)
    more: dict[str, Any] = {}
    if pick.operator == "Sign" and dtype == F16:
        more = {
            "reference": lambda case, arrays, wanted: [np.sign(arrays[0])],
            "departure": "onnxruntime drops NaN in f16",
        }
    return pick.case([data(dtype, *pick("shape", shapes), make=special)], attributes, **more)


@operators("Acos", "Asin", "Atanh", "Acosh", "Log")
def of_a_domain(pick: Pick) -> Case:
    dtype = pick("dtype", (F32, F16, F64))
    least, most = {"Acosh": (1, 9), "Log": (0, 9)}.get(pick.operator, (-1, 1))
    make = {"inside": between(least, most), "any": special}[pick("values", ["inside", "any"])]
    return pick.case([data(dtype, *pick("shape", SHAPES), make=make)])


@operators(
    "Elu", "Selu", "Celu", "LeakyRelu", "ThresholdedRelu", "HardSigmoid", "Shrink", "Gelu", "IsInf"
)
def with_attributes(pick: Pick) -> Case:
    names = {
        "Elu": {"alpha": [None, 0.5, -1.5]},
        "Selu": {"alpha": [None, 0.5], "gamma": [None, 2.0, -0.5]},
        "Celu": {"alpha": [None, 0.5, 3.0]},
        "LeakyRelu": {"alpha": [None, 0.5, -1.0, 2.0]},
        "ThresholdedRelu": {"alpha": [None, 0.25, -1.0]},
        "HardSigmoid": {"alpha": [None, 0.5], "beta": [None, 0.25, -1.0]},
        "Shrink": {"lambd": [None, 0.25, 1.0], "bias": [None, 0.5, -0.5]},
        "Gelu": {"approximate": [None, "none", "tanh"]},
        "IsInf": {"detect_positive": [None, 0, 1], "detect_negative": [None, 0, 1]},
    }[pick.operator]
    attributes = {name: pick(name, values) for name, values in names.items()}
    if pick.operator == "Shrink":
        dtype = pick("dtype", (F32, F16, F64))
        more: dict[str, Any] = (
            {"reference": _shrink, "departure": "onnxruntime computes f64 in f32"}
            if dtype == F64
            else {}
        )
        return pick.case(
            [data(dtype, *pick("shape", SHAPES[:4]), make=special)], attributes, **more
        )
    # Gelu's function has constants of f32.
    tolerance = 100 if pick.operator == "Gelu" else 1
    operand = data(pick("dtype", (F32, F16, F64)), *pick("shape", SHAPES[:4]), make=special)
    return pick.case([operand], attributes, tolerance=tolerance)


def _shrink(case: Case, arrays: list[Any], wanted: list[Any]) -> list[Any]:
    (x,) = arrays
    bias, limit = case.attributes.get("bias", 0.0), case.attributes.get("lambd", 0.5)
    return [np.where(x < -limit, x + bias, np.where(x > limit, x - bias, 0.0))]


#: Two shapes that broadcast, by name. The size `one` is 1, but not known.
BROADCASTS = {
    "equal": (["a", "b", "c"], ["a", "b", "c"]),
    "ones": (["a", "b", 1], [1, "b", "c"]),
    "unknown_one": (["a", "b", "c"], ["a", "one", "c"]),
    "unknown_ones": (["one", "b"], ["a", "one"]),
    "rank": (["a", "b", "c"], ["c"]),
    "rank_left": (["b", "c"], ["a", "d", "b", "c"]),
    "scalar": (["a", "b"], []),
    "one": (["a", "b"], [1]),
}


def _divisor(rng: np.random.Generator, shape: Any, dtype: Any) -> Any:
    values = special(rng, shape, dtype)
    return np.where(values == 0, 3, values).astype(dtype) if values.dtype.kind in "iu" else values


@operators(
    *(
        "Add",
        "Sub",
        "Mul",
        "Div",
        "And",
        "Or",
        "Xor",
        "Equal",
        "Less",
        "Greater",
        "LessOrEqual",
        "GreaterOrEqual",
    ),
    *("BitwiseAnd", "BitwiseOr", "BitwiseXor", "PRelu"),
)
def binary(pick: Pick) -> Case:
    logical = pick.operator in ("And", "Or", "Xor")
    if logical:
        dtype: Any = bool
    elif pick.operator.startswith("Bitwise"):
        dtype = pick("dtype", INTEGERS)
    else:
        dtype = pick(
            "dtype", (F32, F32, F16, F64, *INTEGERS, *([bool] if pick.operator == "Equal" else []))
        )
    names = [*BROADCASTS]
    if pick.operator == "PRelu":
        names.remove("rank_left"), names.remove("ones"), names.remove("unknown_ones")
    left, right = BROADCASTS[pick("broadcast", names)]
    form = pick("right", ["input", "input", "constant", "same"])
    make = _divisor if pick.operator == "Div" else special
    if form == "same" and pick.operator != "PRelu":
        right = left
    operand = data(dtype, *right, make=make)
    if form == "constant":
        pick.properties["broadcast"] = "scalar"
        operand = constant(normal(pick.rng, [], dtype) if logical else 3, dtype)
        left = ["a", "b"]
    return pick.case([data(dtype, *left, make=special), operand])


@operators("Pow", "Mod", "BitShift")
def binary_of_types(pick: Pick) -> Case:
    left, right = BROADCASTS[pick("broadcast", [*BROADCASTS])]
    attributes: dict[str, Any] = {}
    first, second = special, special
    if pick.operator == "Pow":
        dtype = pick("dtype", (F32, F64, np.int32, np.int64))
        other = pick("exponent", (F32, F64, np.int32, np.int64)) if pick.version >= 12 else dtype
        first = positive if pick("base", ["positive", "any"]) == "positive" else normal
        second = between(0, 4) if np.dtype(dtype).kind in "iu" else normal
        return pick.case(
            [data(dtype, *left, make=first), data(other, *right, make=second)], tolerance=4
        )
    if pick.operator == "Mod":
        dtype = pick("dtype", (F32, F16, F64, *INTEGERS))
        is_float = np.dtype(dtype).kind == "f"
        attributes["fmod"] = 1 if is_float else pick("fmod", [None, 0, 1])
        second = _divisor if not is_float else normal
    else:
        dtype = other = pick("dtype", (np.uint8, np.uint16, np.uint32, np.uint64))
        attributes["direction"] = pick("direction", ["LEFT", "RIGHT"])
        second = between(0, 7)
    return pick.case([data(dtype, *left, make=first), data(dtype, *right, make=second)], attributes)


@operators("Max", "Min", "Sum", "Mean")
def variadic(pick: Pick) -> Case:
    dtype = pick(
        "dtype", (F32, F16, F64, np.int32, np.int64, np.int8, np.uint8, np.uint32, np.uint64)
    )
    count = pick("count", [1, 2, 3])
    shapes = [
        *BROADCASTS[pick("broadcast", [*BROADCASTS])],
        ["c"] if pick.properties["broadcast"] == "equal" else [1],
    ]
    if pick.version < 8:
        shapes = [["a", "b", "c"]] * 3
    return pick.case([data(dtype, *shape, make=special) for shape in shapes[:count]])


@operators("Clip")
def clip(pick: Pick) -> Case:
    dtype = pick(
        "dtype", (F32, F16, F64, np.int32, np.int64, np.int8, np.uint8, np.uint32, np.uint64)
    )
    bounds = pick("bounds", ["both", "least", "most", "none", "crossed"])
    least = {"both": 1, "least": 2, "crossed": 4}.get(bounds)
    most = {"both": 4, "most": 3, "crossed": 1}.get(bounds)
    operand = data(dtype, *pick("shape", SHAPES), make=special)
    # onnxruntime takes the largest finite numbers for bounds that are left out.
    departure = "onnxruntime bounds infinities where a bound is left out"
    more_of_text: dict[str, Any] = (
        {"reference": _clip, "departure": departure} if np.dtype(dtype).kind == "f" else {}
    )
    if pick.version < 11:
        if dtype != F32:
            more_of_text = {}
        bounds_of_set = {"min": least and float(least), "max": most and float(most)}
        return pick.case([operand], bounds_of_set, **more_of_text)
    form = pick("form", ["constant", "input"])
    more = [
        None
        if bound is None
        else constant(bound, dtype)
        if form == "constant"
        else data(dtype, make=lambda rng, shape, dtype, bound=bound: np.asarray(bound, dtype))
        for bound in (least, most)
    ]
    while more and more[-1] is None:
        more.pop()
    return pick.case([operand, *more], **more_of_text)


def _clip(case: Case, arrays: list[Any], wanted: list[Any]) -> list[Any]:
    x, least, most = [*arrays, None, None][:3]
    if case.version < 11:
        # Without a bound the older sets have that of the type.
        largest = np.float32(np.finfo(np.float32).max)
        least, most = (
            np.float32(case.attributes.get(name, end))
            for name, end in (("min", -largest), ("max", largest))
        )
    x = x if least is None else np.maximum(x, least)
    return [x if most is None else np.minimum(x, most)]


@operators("Where")
def where(pick: Pick) -> Case:
    shapes = {
        "equal": (["a", "b"], ["a", "b"], ["a", "b"]),
        "each": (["a", 1], [1, "b"], []),
        "unknown": (["a", "one"], ["one", "b"], ["a", "b"]),
        "condition": (["c"], ["a", "b", "c"], ["b", "one"]),
        "scalars": (["a", "b"], [], [1]),
    }[pick("broadcast", ["equal", "each", "unknown", "condition", "scalars"])]
    dtype = pick("dtype", (F32, F16, F64, np.int32, np.int64, np.uint8, bool))
    return pick.case(
        [data(bool, *shapes[0])] + [data(dtype, *shape, make=special) for shape in shapes[1:]]
    )


_CASTS = (F32, F16, F64, *INTEGERS, bool)


@operators("Cast", "CastLike")
def cast(pick: Pick) -> Case:
    dtype, to = pick("dtype", _CASTS), pick("to", _CASTS)
    kinds = {np.dtype(dtype).kind, np.dtype(to).kind}
    # Numbers that the other type has: beyond it ONNX leaves the result open.
    make: Any = between(0, 100) if np.dtype(to).kind in "u" else between(-100, 100)
    if np.dtype(dtype).kind not in "iub" and not kinds & {"i", "u"}:
        make = special
    if dtype is bool:
        make = normal
    if np.dtype(dtype).kind == "u":
        make = between(0, 100)
    operand = data(dtype, *pick("shape", SHAPES[:3]), make=make)
    if pick.operator == "CastLike":
        return pick.case([operand, data(to, "d")])
    return pick.case([operand], {"to": helper.np_dtype_to_tensor_dtype(np.dtype(to))})


@operators("Dropout")
def dropout(pick: Pick) -> Case:
    dtype = pick("dtype", (F32, F16, F64))
    operand = data(dtype, *pick("shape", SHAPES[:4]), make=special)
    outputs = pick("mask", [1, 2])
    if pick.version < 12:
        # Dropout of the older sets computes nothing when a model is used, but for its mask.
        return pick.case(
            [operand],
            {"ratio": pick("ratio", [None, 0.25])},
            outputs=outputs if pick.version >= 10 else 1,
        )
    form = pick("form", ["data", "ratio", "training", "ratio_of_zero"])
    more = {
        "data": [],
        "ratio": [constant(0.25, F32)],
        "training": [constant(0.25, F32), constant(False, bool)],
        "ratio_of_zero": [constant(0.0, F32), constant(True, bool)],
    }[form]
    return pick.case([operand, *more], outputs=outputs)


@operators("Constant")
def constants(pick: Pick) -> Case:
    kinds = ["value"]
    if pick.version >= 12:
        kinds += ["value_float", "value_floats", "value_int", "value_ints"]
    kind = pick("kind", kinds)
    dtype = pick("dtype", (F32, F64, np.int64, np.uint8, bool)) if kind == "value" else None
    value: Any = {
        "value_float": 1.5, "value_floats": [1.5, -2.0, 0.0], "value_int": 7, "value_ints": [3, -1],
    }.get(kind)  # fmt: skip
    if value is None:
        value = np.asarray(
            normal(pick.rng, pick("shape", [(), (3,), (2, 5), (0, 2), (6, 7)]), dtype)
        )
    return pick.case([], {kind: value})


@operators("ConstantOfShape")
def constant_of_shape(pick: Pick) -> Case:
    value = pick("value", [None, F32, F64, np.int64, np.int32, np.uint8, bool, F16])
    array = None if value is None else np.array([3], value)
    form = pick("form", ["constant", "computed", "empty"])
    shape = {
        "constant": constant([2, 3]),
        "computed": sizes("a", 2, "b"),
        "empty": constant(np.zeros(0)),
    }[form]
    return pick.case(
        [shape], {"value": array}, sources=[data(F32, "a", "b")] if form == "computed" else []
    )
