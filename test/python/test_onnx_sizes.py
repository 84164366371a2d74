"""Models of ONNX whose sizes are known only at a call, beside onnxruntime."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import ftuner
from ftuner.onnx_backend import prepare

onnxruntime = pytest.importorskip("onnxruntime")

from onnx_models import OPTIONS, Array, floats, model_of, node

f32, i64 = np.float32, np.int64
INF = 2**63 - 1


def expected(model: Any, inputs: dict[str, Array]) -> list[Array]:
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    return list(session.run(None, inputs))


def check(model: Any, *calls: dict[str, Array], tolerance: float = 1e-5) -> Any:
    compiled = prepare(model, **OPTIONS)
    names = [value.name for value in model.graph.output]
    for inputs in calls:
        results = zip(names, compiled.run(inputs), expected(model, inputs))
        for name, result, wanted in results:
            assert (result.dtype, result.shape) == (wanted.dtype, wanted.shape), name
            np.testing.assert_allclose(result, wanted, rtol=tolerance, atol=tolerance, err_msg=name)
    return compiled


def model(
    nodes: list[Any],
    inputs: dict[str, tuple[Any, list[Any]]],
    results: dict[str, tuple[Any, int]],
    values: dict[str, Any] | None = None,
    version: int = 17,
) -> Any:
    """A model whose results have a type and a number of dimensions."""
    outputs = {name: (kind, [None] * rank) for name, (kind, rank) in results.items()}
    arrays = {name: np.asarray(value) for name, value in (values or {}).items()}
    found = model_of(nodes, inputs, outputs, arrays, version)
    found.ir_version = 9
    return found


def test_reshapes(rng: np.random.Generator) -> None:
    """-1 is a quotient, also of groups that cross dimensions, and of what was moved before."""
    nodes = [
        node("Reshape", ["x", "frames"], ["r"]),
        node("Mul", ["r", "r"], ["a"]),
        node("Reshape", ["x", "wide"], ["b"]),
        node("Transpose", ["x"], ["t"], perm=[0, 2, 1]),
        node("Reshape", ["t", "frames"], ["m"]),
        node("Mul", ["m", "one"], ["c"]),
        node("Reshape", ["x", "kept"], ["d"]),
        node("Shape", ["x"], ["s"]),
        node("Slice", ["s", "first", "second"], ["s0"]),
        node("Concat", ["s0", "minus"], ["s1"], axis=0),
        node("Reshape", ["x", "s1"], ["e"]),
    ]
    values = {
        "frames": [-1, 4], "wide": [-1, 12], "kept": [0, 2, -1], "one": np.ones(1, f32),
        "first": [0], "second": [1], "minus": [-1],
    }  # fmt: skip
    ranks = {"a": 2, "b": 2, "c": 2, "d": 3, "e": 2}
    built = model(
        nodes, {"x": (f32, ["b", "t", "c"])}, {k: (f32, r) for k, r in ranks.items()}, values
    )
    calls = [{"x": floats(rng, *shape)} for shape in ((3, 4, 12), (1, 12, 2), (2, 6, 8))]
    compiled = check(built, *calls)
    # 5 x 2 x 2 elements are not rows of 12.
    with pytest.raises(ftuner.Error, match="Reshape 2: expected as many elements"):
        compiled.run({"x": floats(rng, 5, 2, 2)})


def test_broadcasts(rng: np.random.Generator) -> None:
    """A size that is 1 at a call is broadcast, of products, too; others must be equal."""
    nodes = [
        node("Add", ["x", "y"], ["sum"], name="add"),
        node("MatMul", ["x", "w"], ["product"]),
    ]
    inputs = {"x": (f32, ["a", "b", 4]), "y": (f32, ["c", 1, 4]), "w": (f32, ["c", 4, 5])}
    built = model(nodes, inputs, {"sum": (f32, 3), "product": (f32, 3)})

    def call(a: int, b: int, c: int) -> dict[str, Array]:
        return {"x": floats(rng, a, b, 4), "y": floats(rng, c, 1, 4), "w": floats(rng, c, 4, 5)}

    compiled = check(built, call(3, 2, 3), call(1, 2, 3), call(4, 1, 1), call(1, 1, 1))
    with pytest.raises(ftuner.Error, match="(?<!Add add: )Add add: expected sizes of dimension 0"):
        compiled.run(call(2, 3, 3))


def test_windows_and_norms(rng: np.random.Generator) -> None:
    """Padding, numbers of elements and places are computed from sizes."""
    nodes = [
        node("InstanceNormalization", ["x", "two", "two"], ["instance"]),
        node("Reshape", ["x", "groups"], ["g"]),
        node("InstanceNormalization", ["g", "one", "one"], ["group"]),
        node("LRN", ["x"], ["lrn"], size=3),
        node("MaxPool", ["x"], ["same"], kernel_shape=[3, 2], strides=[2, 2], auto_pad="SAME_UPPER"),
        node("MaxPool", ["x"], ["max", "places"], kernel_shape=[2, 3], strides=[2, 1], pads=[0, 0, 1, 1]),
        node("AveragePool", ["x"], ["mean"], kernel_shape=[3, 3], strides=[2, 3], pads=[1, 0, 1, 1], ceil_mode=1),
        node("ArgMax", ["x"], ["last"], axis=2, select_last_index=1),
        node("DepthToSpace", ["z"], ["pixels"], blocksize=2, mode="CRD"),
    ]  # fmt: skip
    values = {"two": np.array([1, 0.5], f32), "one": np.ones(1, f32), "groups": [0, 1, -1]}
    results: dict[str, tuple[Any, int]] = {
        name: (f32, 4) for name in ("instance", "lrn", "same", "max", "mean", "pixels")
    }
    results.update(group=(f32, 3), places=(i64, 4), last=(i64, 4))
    inputs = {"x": (f32, ["b", 2, "h", "w"]), "z": (f32, ["b", 12, "h", "w"])}
    built = model(nodes, inputs, results, values, version=19)

    def call(b: int, h: int, w: int) -> dict[str, Array]:
        x = rng.integers(-4, 5, (b, 2, h, w)).astype(f32)
        return {"x": x, "z": floats(rng, b, 12, h, w)}

    check(built, call(2, 8, 6), call(1, 7, 9), call(1, 3, 4))


def test_moves(rng: np.random.Generator) -> None:
    nodes = [
        node("Pad", ["x", "cut"], ["padded"]),
        node("Pad", ["x", "around"], ["reflected"], mode="reflect"),
        node("Pad", ["x", "around"], ["wrapped"], mode="wrap"),
        node("Slice", ["x", "last", "far", "axis", "back"], ["reversed"]),
        node("Tile", ["x", "twice"], ["tiled"]),
        node("Split", ["x", "parts"], ["left", "right"], axis=1),
        node("Einsum", ["x", "x"], ["gram"], equation="ij,kj->ik"),
        node("Shape", ["x"], ["s"]),
        node("Gather", ["s", "zero"], ["rows"]),
        node("Range", ["zero", "rows", "step"], ["numbers"]),
    ]
    values = {
        "cut": [-1, 2, 1, -1], "around": [2, 1, 1, 2], "last": [-1], "far": [-INF], "axis": [0],
        "back": [-2], "twice": [1, 2], "parts": [1, 3], "zero": np.array(0), "step": np.array(2),
    }  # fmt: skip
    names = ("padded", "reflected", "wrapped", "reversed", "tiled", "left", "right", "gram")
    results: dict[str, tuple[Any, int]] = {name: (f32, 2) for name in names}
    results["numbers"] = (i64, 1)
    built = model(nodes, {"x": (f32, ["n", 4])}, results, values, version=19)
    check(built, {"x": floats(rng, 5, 4)}, {"x": floats(rng, 3, 4)})


@pytest.mark.parametrize(
    ("version", "nodes", "values"),
    [
        (10, [node("Resize", ["x", "scales"], ["y"], mode="linear")], {"scales": [1, 1, 2, 1.5]}),
        (9, [node("Upsample", ["x", "scales"], ["y"], mode="linear")], {"scales": [1, 1, 2, 2]}),
        (11, [node("Hardmax", ["x"], ["h"], axis=1), node("Softmax", ["x"], ["s"], axis=2),
              node("Add", ["h", "s"], ["y"])], {}),
        (13, [node("BatchNormalization", ["x", "v", "v", "v", "v"], ["n"]),
              node("GreaterOrEqual", ["n", "x"], ["c"]), node("Softsign", ["x"], ["s"]),
              node("Where", ["c", "n", "s"], ["y"])], {"v": [1, 2, 0.5]}),
    ],
)  # fmt: skip
def test_old_operator_sets(
    rng: np.random.Generator, version: int, nodes: list[Any], values: dict[str, Any]
) -> None:
    """Operators mean what they meant in the model's own set."""
    arrays = {name: np.array(value, f32) for name, value in values.items()}
    built = model(nodes, {"x": (f32, ["b", 3, "h", "w"])}, {"y": (f32, 4)}, arrays, version)
    check(built, {"x": floats(rng, 2, 3, 4, 5)}, {"x": floats(rng, 1, 3, 3, 2)})


def test_recurrent_layers(rng: np.random.Generator) -> None:
    """Both directions, lengths of sequences, any batch and number of steps."""
    nodes = [
        node("LSTM", ["x", "w", "r", "b", "lengths"], ["y", "h", "c"], hidden_size=3, direction="bidirectional"),
        node("GRU", ["x", "v", "u"], ["z"], hidden_size=3, direction="reverse", linear_before_reset=1),
    ]  # fmt: skip
    values = {
        "w": floats(rng, 2, 12, 5), "r": floats(rng, 2, 12, 3), "b": floats(rng, 2, 24),
        "v": floats(rng, 1, 9, 5), "u": floats(rng, 1, 9, 3),
    }  # fmt: skip
    results = {"y": (f32, 4), "h": (f32, 3), "c": (f32, 3), "z": (f32, 4)}
    inputs = {"x": (f32, ["t", "b", 5]), "lengths": (np.int32, ["b"])}
    built = model(nodes, inputs, results, values)

    def call(*lengths: int) -> dict[str, Array]:
        x = floats(rng, max(lengths), len(lengths), 5)
        return {"x": x, "lengths": np.array(lengths, np.int32)}

    check(built, call(4, 2, 1), call(3))


def test_not_a_number(rng: np.random.Generator) -> None:
    """NaN stays in clamps and extremes, and the first one is the place of an extreme."""
    nodes = [
        node("Clip", ["x", "low", "high"], ["clipped"]),
        node("Max", ["x", "low"], ["max"]),
        node("Relu", ["x"], ["relu"]),
        node("ArgMin", ["x"], ["place"], axis=1, keepdims=0),
    ]
    results: dict[str, tuple[Any, int]] = {name: (f32, 2) for name in ("clipped", "max", "relu")}
    results["place"] = (i64, 1)
    values = {"low": np.array(-1, f32), "high": np.array(1, f32)}
    built = model(nodes, {"x": (f32, ["n", 4])}, results, values)
    nan = np.nan
    x = np.array([[3, nan, -2, nan], [0.5, 2, -3, -3]], f32)
    found = prepare(built, **OPTIONS).run({"x": x})
    np.testing.assert_array_equal(found.clipped, np.clip(x, -1, 1))
    np.testing.assert_array_equal(found.max, np.maximum(x, -1))
    np.testing.assert_array_equal(found.relu, np.maximum(x, 0))
    np.testing.assert_array_equal(found.place, [1, 2])


def test_all_refusals_are_told() -> None:
    """Each node that is refused has its sentence, in the order of the model."""
    nodes = [
        node("Unique", ["x"], ["u"], name="first"),
        node("Relu", ["u"], ["r"]),
        node("NonZero", ["x"], ["y"], name="second"),
    ]
    built = model(nodes, {"x": (f32, ["n"])}, {"r": (f32, 1), "y": (i64, 2)})
    with pytest.raises(ftuner.CompileError) as refused:
        prepare(built, **OPTIONS)
    lines = str(refused.value).splitlines()
    assert [line.split("(node ")[1].split(")")[0] for line in lines] == [
        "Unique first", "NonZero second",
    ]  # fmt: skip
