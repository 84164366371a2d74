"""Products of matrices, quantization, recurrent layers, and attention."""

from __future__ import annotations

from typing import Any

import numpy as np

from .case import (
    POINTS,
    Array,
    Case,
    Pick,
    between,
    constant,
    data,
    normal,
    operators,
    positive,
    weights,
)

F32, F16, F64 = np.float32, np.float16, np.float64

#: Two operands of a product that broadcast.
MATRICES = {
    "matrices": (["a", "c"], ["c", "b"]),
    "batch": (["d", "a", "c"], ["d", "c", "b"]),
    "batches": (["d", "e", "a", "c"], ["d", "e", "c", "b"]),
    "batch_left": (["d", "a", "c"], ["c", "b"]),
    "batch_right": (["a", "c"], ["d", "c", "b"]),
    "batch_of_one": (["d", "a", "c"], [1, "c", "b"]),
    "batch_of_unknown_one": (["d", "a", "c"], ["one", "c", "b"]),
    "batches_each": (["d", 1, "a", "c"], ["e", "c", "b"]),
    "vector_left": (["c"], ["c", "b"]),
    "vector_right": (["a", "c"], ["c"]),
    "vector_of_batch": (["d", "a", "c"], ["c"]),
    "vectors": (["c"], ["c"]),
}


@operators("MatMul")
def mat_mul(pick: Pick) -> Case:
    left, right = MATRICES[pick("form", [*MATRICES])]
    dtype = pick("dtype", (F32, F32, F64, np.int32, np.int64))
    return pick.case([data(dtype, *left), data(dtype, *right)], tolerance=8)


@operators("MatMulInteger")
def mat_mul_integer(pick: Pick) -> Case:
    left, right = MATRICES[pick("form", [*MATRICES][:8])]
    types = pick("left", (np.uint8, np.int8)), pick("right", (np.uint8, np.int8))
    operands: list[Any] = [
        data(kind, *shape, make=between(0, 100)) for kind, shape in zip(types, (left, right))
    ]
    points = pick("zero_points", ["none", "left", "both", "rows"])
    if points != "none":
        operands.append(constant(7, types[0]))
    if points == "both":
        operands.append(constant(3, types[1]))
    if points == "rows":
        operands.append(data(types[1], right[-1], make=between(0, 9)))
    return pick.case(operands)


@operators("Gemm")
def gemm(pick: Pick) -> Case:
    left, right = pick("transA", [None, 0, 1]), pick("transB", [None, 0, 1])
    dtype = pick("dtype", (F32, F32, F64))
    shapes: dict[str, Any] = {"none": None, "row": ["b"], "full": ["a", "b"], "column": ["a", 1], "scalar": [],
                              "one": [1], "unknown_one": ["one", "b"]}  # fmt: skip
    bias = shapes[pick("bias", [*shapes])]
    if bias is None and pick.version < 11:
        bias = shapes["row"]
        pick.properties["bias"] = "row"
    operands = [
        data(dtype, *(["c", "a"] if left else ["a", "c"])),
        data(dtype, *(["b", "c"] if right else ["c", "b"])),
    ]
    if bias is not None:
        operands.append(data(dtype, *bias))
    attributes = {
        "transA": left,
        "transB": right,
        "alpha": pick("alpha", [None, 0.5]),
        "beta": pick("beta", [None, -2.0, 0.0]),
    }
    return pick.case(operands, attributes, tolerance=8)


EQUATIONS: dict[str, list[list[Any]]] = {
    "ij,jk->ik": [["a", "b"], ["b", "c"]],
    "bij,bjk->bik": [["d", "a", "b"], ["d", "b", "c"]],
    "bhid,bhjd->bhij": [["d", "e", "a", "c"], ["d", "e", "b", "c"]],
    "abc,cd->abd": [["a", "b", "c"], ["c", "d"]],
    "ij->ji": [["a", "b"]],
    "ij->i": [["a", "b"]],
    "ii->i": [["b", "b"]],
    "ii": [["b", "b"]],
    "i,j->ij": [["a"], ["b"]],
    "i,i": [["b"], ["b"]],
    "...ij,...jk->...ik": [["d", "a", "b"], ["d", "b", "c"]],
    "...i->...": [["a", "b", "c"]],
    "ij,ij->ij": [["a", "b"], ["a", "b"]],
    "ij,jk,kl->il": [["a", "b"], ["b", "c"], ["c", "d"]],
    "bi,bj,bk->bijk": [["d", "a"], ["d", "b"], ["d", "c"]],
    "ij,jk": [["a", "b"], ["b", "c"]],
    "bij,jk->kbi": [["d", "a", "b"], ["b", "c"]],
}


@operators("Einsum")
def einsum(pick: Pick) -> Case:
    equation = pick("equation", [*EQUATIONS])
    dtype = pick("dtype", (F32, F32, F64, np.int32))
    return pick.case(
        [data(dtype, *shape) for shape in EQUATIONS[equation]], {"equation": equation}, tolerance=8
    )


@operators("QuantizeLinear", "DequantizeLinear")
def quantization(pick: Pick) -> Case:
    is_back = pick.operator == "DequantizeLinear"
    kind = pick("kind", (np.uint8, np.int8) + ((np.int16, np.uint16) if pick.version >= 21 else ()))
    form = pick("form", ["tensor", "tensor", "axis"] + (["blocks"] if pick.version >= 21 else []))
    if pick.version < 13 and form == "axis":
        form = pick.properties["form"] = "tensor"
    axis = pick("axis", [None, 0, -1]) if pick.version >= 13 else None
    attributes: dict[str, Any] = {"axis": axis}
    dims: list[Any] = ["a", "b", "c"]
    shape: list[Any] = {
        "tensor": [],
        "axis": [dims[1 if axis is None else axis]],
        "blocks": list(dims),
    }[form]
    if form == "blocks":
        place = 1 if axis is None else axis
        dims[place] = f"2*{dims[place]}"
        attributes["block_size"] = 2
    zero = pick("zero_point", ["none", "constant", "input"])
    if zero == "none" and kind != np.uint8 and not is_back:
        zero = pick.properties["zero_point"] = "input"
    dtype = pick("dtype", (F32, F16)) if pick.version >= 19 else F32
    source = data(kind, *dims, make=between(0, 100)) if is_back else data(dtype, *dims,
        make=lambda rng, shape, dtype: normal(rng, shape, dtype, 30))  # fmt: skip
    operands = [source, data(dtype, *shape, make=between(0.3, 2))]
    if zero == "constant" and form == "tensor":
        operands.append(constant(5, kind))
    elif zero != "none":
        operands.append(data(kind, *shape, make=between(0, 20)))
    return pick.case(operands, attributes)


@operators("DynamicQuantizeLinear")
def dynamic(pick: Pick) -> Case:
    make = pick("values", [normal, positive, between(-50, -3)])
    points = {name: point for name, point in POINTS.items() if name != "zero"}
    operand = data(F32, *pick("shape", [["a", "b"], ["b"], ["a", "b", "c"], []]), make=make)
    return pick.case([operand], outputs=3, points=points)


@operators("QLinearMatMul")
def qlinear(pick: Pick) -> Case:
    left, right = MATRICES[pick("form", [*MATRICES][:8])]
    kinds = [pick(name, (np.uint8, np.int8)) for name in ("left", "right")]
    kinds.append(kinds[0])
    scale = pick("scales", ["constant", "input"])
    scales = [constant(value, F32) if scale == "constant" else data(F32, make=between(value, value * 1.5))
              for value in (0.05, 0.04, 0.3)]  # fmt: skip
    points = [constant(5, kind) for kind in kinds]
    return pick.case([data(kinds[0], *left, make=between(0, 100)), scales[0], points[0],
                      data(kinds[1], *right, make=between(0, 100)), scales[1], points[1], scales[2], points[2]])  # fmt: skip


_GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}


@operators("RNN", "GRU", "LSTM")
def recurrent(pick: Pick) -> Case:
    name, gates = pick.operator, _GATES[pick.operator]
    direction = pick("direction", [None, "forward", "reverse", "bidirectional"])
    count = 2 if direction == "bidirectional" else 1
    layout = pick("layout", [None, 0, 1]) if pick.version >= 14 else None
    hidden, features = 3, pick("features", [5, 4])
    steps = pick("steps", ["b", 4])
    batch: Any = "a"
    form = pick("filters", [weights, weights, data])
    attributes: dict[str, Any] = {"hidden_size": hidden, "direction": direction, "layout": layout}
    first = [batch, steps, features] if layout else [steps, batch, features]
    operands: list[Any] = [data(F32, *first), form(F32, count, gates * hidden, features),
                           form(F32, count, gates * hidden, hidden)]  # fmt: skip
    operands.append(
        weights(F32, count, 2 * gates * hidden) if pick("bias", [False, True]) else None
    )

    def lengths(rng: Any, shape: Any, dtype: Any) -> Array:
        return rng.integers(1, 4, shape).astype(dtype)

    operands.append(
        data(np.int32, batch, make=lengths) if pick("lengths", [False, False, True]) else None
    )
    state = [batch, count, hidden] if layout else [count, batch, hidden]
    initial = pick("initial", [False, True])
    operands.append(data(F32, *state) if initial else None)
    if name == "LSTM":
        operands.append(data(F32, *state) if initial else None)
        operands.append(
            weights(F32, count, 3 * hidden) if pick("peepholes", [False, False, True]) else None
        )
        attributes["input_forget"] = pick("input_forget", [None, None, 0, 1])
    if name == "GRU":
        attributes["linear_before_reset"] = pick("linear_before_reset", [None, 0, 1])
    attributes["clip"] = pick("clip", [None, None, 0.5])
    functions = {
        "RNN": [None, None, ["Relu"], ["Sigmoid"], ["Affine"], ["LeakyRelu"], ["HardSigmoid"]],
        "GRU": [None, None, ["Sigmoid", "Relu"], ["HardSigmoid", "Tanh"]],
        "LSTM": [None, None, ["Sigmoid", "Tanh", "Relu"], ["HardSigmoid", "Tanh", "Softsign"]],
    }[name]
    chosen = pick("activations", functions)
    attributes["activations"] = chosen and chosen * count
    while operands[-1] is None:
        operands.pop()
    outputs: Any = pick("outputs", [[True, True], [True, False], [False, True]])
    if name == "LSTM":
        outputs = [*outputs, outputs[1]]
    points = {"even": {"a": 2, "b": 4}, "odd": {"a": 3, "b": 5}, "one": {"a": 1, "b": 3}}
    return pick.case(operands, attributes, outputs=outputs, points=points, tolerance=16)


@operators("RotaryEmbedding")
def rotary(pick: Pick) -> Case:
    attributes: dict[str, Any] = {"interleaved": pick("interleaved", [None, 0, 1])}
    part = pick("rotary_embedding_dim", [None, 4])
    attributes["rotary_embedding_dim"] = part
    size = (part or 8) // 2
    rank = pick("rank", [4, 3])
    if rank == 3 or pick("num_heads", [False, True]):
        attributes["num_heads"] = 2
    operands = [data(F32, *(["a", 2, "b", 8] if rank == 4 else ["a", "b", 16]))]
    places = pick("positions", [True, False])
    caches = ["v+9", size] if places else ["a", "b", size]
    operands += [data(F32, *caches), data(F32, *caches)]
    if places:
        operands.append(data(np.int64, "a", "b", make=between(0, 9)))
    return pick.case(operands, attributes, tolerance=4)


@operators("Attention")
def attention(pick: Pick) -> Case:
    rank, groups = pick("rank", [4, 3]), pick("groups", [1, 2])
    heads, size = 2, 4
    attributes: dict[str, Any] = {
        "is_causal": pick("is_causal", [None, 0, 1]), "scale": pick("scale", [None, 0.3]),
        "softcap": pick("softcap", [None, 2.0]),
    }  # fmt: skip
    if rank == 3:
        attributes |= {"q_num_heads": heads * groups, "kv_num_heads": heads}

    def tensor(count: int, steps: str) -> Any:
        return (
            data(F32, "a", count, steps, size) if rank == 4 else data(F32, "a", steps, count * size)
        )

    operands: list[Any] = [tensor(heads * groups, "b"), tensor(heads, "c"), tensor(heads, "c")]
    past = pick("past", [False, True])
    total = "c+d" if past else "c"
    mask = pick("mask", [None, F32, bool, "of_heads"])
    if mask == "of_heads":
        operands.append(data(F32, "a", heads * groups, "b", total))
    else:
        operands.append(None if mask is None else data(mask, "b", total, make=normal if mask is F32 else lambda rng, shape, dtype: np.tri(*shape, 2).astype(bool)))  # fmt: skip
    outputs: Any = 1
    if past:
        operands += [data(F32, "a", heads, "d", size), data(F32, "a", heads, "d", size)]
        outputs = 3
    while operands[-1] is None:
        operands.pop()
    points = {"even": {"a": 2, "b": 4, "c": 4, "d": 2}, "odd": {"a": 1, "b": 3, "c": 5, "d": 3},
              "one": {"a": 1, "b": 1, "c": 1, "d": 1}}  # fmt: skip
    return pick.case(operands, attributes, outputs=outputs, points=points, tolerance=8)
