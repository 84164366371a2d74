"""ONNX's operators by its own node tests, and what the importer rewrites, folds and refuses."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ftuner

onnx = pytest.importorskip("onnx")
pytest.importorskip("iree.compiler")

from onnx import TensorProto, helper

from ftuner.frontend.onnx import import_proto
from ftuner.onnx_backend import Backend, prepare, run_model, run_node
from onnx_models import OPTIONS, Array, check, floats, model_of, node
from scale import SCALE

sys.path.insert(0, str(Path(__file__).parents[2] / "tools" / "coverage"))
import onnx_node_tests as node_tests

#: Node tests whose results are ONNX's own.
PASSED = """
    add_uint8 maxpool_2d_uint8 qlinearmatmul_2D_uint8_float32 dynamicquantizelinear
    attention_4d_gqa_with_past_and_present attention_4d_diff_heads_mask4d_padded_kv
    rms_normalization_2d_axis1 rotary_embedding swish swiglu mvn
    linear_attention_gated_delta causal_conv_with_state_basic sce_mean_3d nllloss_NCd1
    gelu_tanh_2 shape_example spacetodepth_crd_mode_example bitshift_right_int32_negative_shift
    det_2d l2normalization_axis_0 matmul_4d_1d scan9_sum
""".split()

#: Node tests that are refused by a sentence with the operator and the change to make.
REFUSED = """
    if loop11 reduce_sum_keepdims_random reshape_reduced_dims scatternd nonzero_example bernoulli
    bernoulli_expanded
    equal_string identity_opt cast_FLOAT_to_FLOAT8E4M3FN roialign_aligned_true
    ai_onnx_ml_binarizer
    scan_sum quantizelinear_int4 shape_start_greater_than_end
""".split()


#: Minimum number of ONNX's tests that pass, by operator on rows; all others are refused.
FLOORS = {
    "ArgMax": 16, "ArgMin": 16, "AveragePool": 18, "BatchNormalization": 4, "GlobalAveragePool": 2,
    "GlobalMaxPool": 2, "GroupNormalization": 4, "Hardmax": 7, "InstanceNormalization": 2,
    "LayerNormalization": 57, "LogSoftmax": 21, "LpNormalization": 6, "LpPool": 5, "MaxPool": 18,
    "MeanVarianceNormalization": 3, "RMSNormalization": 38, "ReduceMax": 2, "ReduceMin": 2,
    "Softmax": 21,
}  # fmt: skip


@pytest.fixture(scope="module")
def cases() -> Any:
    return node_tests.cases()


@pytest.mark.parametrize("name", PASSED)
def test_node_tests_that_pass(cases: Any, name: str) -> None:
    assert node_tests.outcome_of(cases[name], OPTIONS) == (node_tests.PASSED, "")


@pytest.mark.parametrize("name", REFUSED)
def test_node_tests_that_are_refused(cases: Any, name: str) -> None:
    outcome, words = node_tests.outcome_of(cases[name], OPTIONS)
    assert outcome == node_tests.REFUSED, words
    operators = {node.op_type for node in cases[name].model.graph.node}
    assert any(f"the operator {operator} " in words for operator in operators)


def test_page_keeps_floors() -> None:
    """The page of the last full run: as many passes as the floors say, and nothing wrong."""
    page = Path(node_tests.PATH).read_text(encoding="utf-8")
    table = page.partition("## By operator")[2].partition("## What refusals say")[0]
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()[4:]
    ]
    found = {row[0]: (int(row[2]), int(row[4])) for row in rows if len(row) == 5}
    for operator, min_passed in FLOORS.items():
        passed, bad = found[operator]
        assert passed >= min_passed and bad == 0, operator


@pytest.mark.parametrize("operator", FLOORS)
def test_operators_on_rows(cases: Any, operator: str) -> None:
    """All tests of the operators on rows, of the suite the first and the last."""
    own = [name for name in cases if node_tests.operator_of(name, cases) == operator]
    assert len(own) >= FLOORS[operator]
    chosen = own if SCALE > 1 else list(dict.fromkeys((own[0], own[-1])))
    outcomes = {name: node_tests.outcome_of(cases[name], OPTIONS) for name in chosen}
    bad = {name: words for name, (outcome, words) in outcomes.items()
           if outcome not in (node_tests.PASSED, node_tests.REFUSED)}  # fmt: skip
    assert not bad
    if SCALE > 1:
        passed = [name for name, (outcome, _) in outcomes.items() if outcome == node_tests.PASSED]
        assert len(passed) >= FLOORS[operator]


def test_wrong_results_are_seen(cases: Any) -> None:
    """The command tells a result that is off, of another type, or of another shape."""
    case = cases["swish"]
    inputs, (wanted,) = case.data_sets[0]
    for other in (wanted + np.float32(0.01), wanted.astype(np.float64), wanted[None]):
        changed = type(case)(**{**vars(case), "data_sets": [(inputs, [other])]})
        assert node_tests.outcome_of(changed, OPTIONS)[0] == node_tests.WRONG


def test_functions_of_dynamic_sizes(rng: np.random.Generator) -> None:
    """Attention with fewer heads of keys, after RMSNormalization and RotaryEmbedding."""
    nodes = [
        node("RMSNormalization", ["q", "scale"], ["n"], name="norm"),
        node("RotaryEmbedding", ["n", "cos", "sin", "places"], ["r"]),
        node("Attention", ["r", "k", "v"], ["y"], is_causal=1, name="attend"),
    ]
    f32 = np.float32
    inputs = {
        "q": (f32, ["batch", 4, "length", 16]),
        "k": (f32, ["batch", 2, "keys", 16]),
        "v": (f32, ["batch", 2, "keys", 16]),
        "places": (np.int64, ["batch", "length"]),
    }
    values = {"scale": floats(rng, 16), "cos": floats(rng, 32, 8), "sin": floats(rng, 32, 8)}
    model = model_of(nodes, inputs, {"y": (f32, ["batch", 4, "length", 16])}, values)

    def call(batch: int, length: int, keys: int) -> dict[str, Array]:
        return {
            "q": floats(rng, batch, 4, length, 16),
            "k": floats(rng, batch, 2, keys, 16),
            "v": floats(rng, batch, 2, keys, 16),
            "places": rng.integers(0, 32, (batch, length)),
        }

    compiled = check(model, call(2, 5, 7), call(1, 1, 1))
    report = compiled.function.report
    assert report.products == 2
    places = {kernel["location"] for kernel in report.data["fallback_kernels"]}
    # Attention has only its products and its softmax.
    assert places and places <= {"RMSNormalization norm", "RotaryEmbedding 1"}


def test_quantization_at_run_time(rng: np.random.Generator) -> None:
    """Scales and zero points that are computed, per tensor and per axis."""
    x = floats(rng, 5, 6) * 30
    nodes = [
        node("DynamicQuantizeLinear", ["x"], ["q", "s", "z"]),
        node("DequantizeLinear", ["q", "s", "z"], ["d"]),
        node("QuantizeLinear", ["d", "scales", "points"], ["a"], axis=1),
        node("DequantizeLinear", ["a", "scales", "points"], ["y"], axis=1),
    ]
    inputs = {
        "x": (np.float32, ["rows", 6]),
        "scales": (np.float32, [6]),
        "points": (np.int8, [6]),
    }
    rows: list[Any] = ["rows", 6]
    outputs = {"q": (np.uint8, rows), "a": (np.int8, rows), "y": (np.float32, rows)}
    model = model_of(nodes, inputs, outputs, version=21)
    call = {
        "x": x,
        "scales": rng.uniform(0.1, 2, 6).astype(np.float32),
        "points": rng.integers(-20, 20, 6).astype(np.int8),
    }
    check(model, call)


def test_old_constants_of_integers(rng: np.random.Generator) -> None:
    """Files before operator set 9 have Constants of integers, though ONNX allowed floats only."""
    nodes = [
        node("Constant", [], ["shape"], value=onnx.numpy_helper.from_array(np.array([0, -1]))),
        node("Constant", [], ["half"], value=onnx.numpy_helper.from_array(np.float32(0.5))),
        node("Reshape", ["x", "shape"], ["rows"]),
        node("Mul", ["rows", "half"], ["y"]),
    ]
    x: Any = (np.float32, ["N", 3, "W"])
    outputs: dict[str, Any] = {"y": (np.float32, ["N", "rest"]), "shape": (np.int64, [2])}
    model = model_of(nodes, {"x": x}, outputs, version=7)
    model.ir_version = 3
    check(model, {"x": floats(rng, 2, 3, 5)}, {"x": floats(rng, 4, 3, 1)})
    integers = {"x": (np.int64, ["N"])}
    with pytest.raises(ftuner.CompileError, match="Relu.*unsupported type"):
        import_proto(
            model_of([node("Relu", ["x"], ["y"])], integers, {"y": integers["x"]}, version=7)
        )


def test_unsigned_elements(tmp_path: Path, rng: np.random.Generator) -> None:
    """Inputs and results have the types that ONNX declares, also of a library that is loaded."""
    for dtype in (np.uint8, np.uint16, np.uint32):
        model = model_of(
            [node("Add", ["a", "b"], ["y"]), node("Cast", ["y"], ["f"], to=TensorProto.FLOAT)],
            {"a": (dtype, ["N"]), "b": (dtype, ["N"])},
            {"y": (dtype, ["N"]), "f": (np.float32, ["N"])},
        )
        big = np.iinfo(dtype).max
        a, b = np.array([big - 1, big, 3], dtype), np.array([1, 3, 4], dtype)
        check(model, {"a": a, "b": b})
    onnx.save(model, tmp_path / "model.onnx")
    module = ftuner.compile(tmp_path / "model.onnx", emulate=True, **OPTIONS)
    assert "ui32[N]" in str(module.model.signature)
    loaded = ftuner.load(module.library_path)
    assert loaded.model(a, b)[0].dtype == np.uint32
    with pytest.raises(TypeError, match="expected elements of type uint32, but got int32"):
        module(a.view(np.int32), b)
    torch = pytest.importorskip("torch")
    results = module(torch.from_numpy(a), torch.from_numpy(b))
    assert results[0].dtype == torch.uint32


def test_determinants(rng: np.random.Generator) -> None:
    """Each column's largest element is the pivot; singular matrices have 0."""
    model = model_of(
        [node("Det", ["x"], ["y"])],
        {"x": (np.float32, ["N", 5, 5])},
        {"y": (np.float32, ["N"])},
    )
    x = floats(rng, 6, 5, 5)
    x[0, 0, 0] = 0
    x[1] = np.eye(5)[[1, 0, 2, 4, 3]]
    x[2] = np.eye(5)[[4, 0, 1, 2, 3]]
    x[3] = 0
    x[4, :, 2] = 0
    (result,) = prepare(model, **OPTIONS).run({"x": x})
    np.testing.assert_allclose(result, np.linalg.det(x.astype(np.float64)), atol=1e-4)


@pytest.mark.parametrize("p", [1, 2])
def test_norms_of_zeros(rng: np.random.Generator, p: int) -> None:
    nodes = [node("LpNormalization", ["x"], ["y"], axis=1, p=p)]
    value = (np.float32, ["N", 4, 3])
    model = model_of(nodes, {"x": value}, {"y": value}, version=22)
    x = floats(rng, 2, 4, 3)
    x[0, :, 1] = 0
    norm = np.linalg.norm(x, p, axis=1, keepdims=True)
    (result,) = prepare(model, **OPTIONS).run({"x": x})
    np.testing.assert_allclose(result, x / np.where(norm == 0, 1, norm), rtol=1e-5)


def test_weights_are_computed_once(rng: np.random.Generator) -> None:
    """A weight norm: the function gets the quotient as a weight, and no kernel computes it."""
    direction, scale = floats(rng, 96, 128), floats(rng, 96, 1)
    nodes = [
        node("ReduceL2", ["direction", "axes"], ["norm"], keepdims=1),
        node("Div", ["scale", "norm"], ["factor"]),
        node("Mul", ["direction", "factor"], ["weight"]),
        node("Gemm", ["x", "weight"], ["y"], transB=1),
    ]
    weights = {"direction": direction, "scale": scale, "axes": np.array([1])}
    model = model_of(
        nodes,
        {"x": (np.float32, ["N", 128])},
        {"y": (np.float32, ["N", 96])},
        weights,
        version=18,
    )
    x = floats(rng, 5, 128)
    prepared = prepare(model, **OPTIONS)
    (result,) = prepared.run({"x": x})
    weight = direction * (scale / np.linalg.norm(direction, axis=1, keepdims=True))
    np.testing.assert_allclose(result, x @ weight.T, rtol=1e-4, atol=1e-5)
    imported = import_proto(model)
    assert [*imported.weights.arrays] == ["weight"]


def test_known_values_are_folded(rng: np.random.Generator) -> None:
    """Axes and shapes that are computed from constants and static sizes; an `If` of one."""
    branches = {
        f"{name}_branch": helper.make_graph(
            [node(operator, ["r", "two"], [name])],
            name,
            [],
            [helper.make_tensor_value_info(name, TensorProto.FLOAT, None)],
        )
        for name, operator in (("then", "Mul"), ("else", "Add"))
    }
    nodes = [
        node("Shape", ["x"], ["shape"]),
        node("Size", ["shape"], ["rank"]),
        node("Sub", ["rank", "one"], ["last"]),
        node("Unsqueeze", ["last", "first"], ["axes"]),
        node("ReduceSum", ["x", "axes"], ["sum"], keepdims=0),
        node("Gather", ["shape", "one"], ["columns"]),
        node("Unsqueeze", ["columns", "first"], ["listed"]),
        node("Concat", ["minus", "listed"], ["flat"], axis=0),
        node("Reshape", ["sum", "flat"], ["r"]),
        node("Equal", ["columns", "three"], ["is_three"]),
        node("If", ["is_three"], ["y"], **branches),
    ]
    values = {
        "one": np.array(1),
        "three": np.array(3),
        "first": np.array([0]),
        "minus": np.array([-1]),
        "two": np.array(2, np.float32),
    }
    result = {"y": (np.float32, ["N", 3])}
    model = model_of(nodes, {"x": (np.float32, ["N", 3, 4])}, result, values)
    check(model, {"x": floats(rng, 2, 3, 4)}, {"x": floats(rng, 1, 3, 4)})


def test_inputs_that_the_host_needs() -> None:
    """One sentence names the operator's input and the value that must be an initializer."""
    model = model_of(
        [node("Abs", ["x"], ["a"]), node("ReduceMean", ["a", "where"], ["y"], name="mean")],
        {"x": (np.float32, ["N", 4]), "where": (np.int64, [1])},
        {"y": (np.float32, [1, 1])},
    )
    with pytest.raises(ftuner.CompileError) as refused:
        prepare(model)
    assert str(refused.value) == (
        "cannot import 'model.onnx': the operator ReduceMean (node ReduceMean mean) needs its input "
        "axes when the model is compiled; make 'where' an initializer or the result of a Constant, "
        "or compute it from shapes alone"
    )


def test_backend(rng: np.random.Generator) -> None:
    """The functions that ONNX asks of a backend."""
    a, b = floats(rng, 3, 4), floats(rng, 4, 2)
    product = node("MatMul", ["a", "b"], ["y"])
    model = model_of(
        [product],
        {"a": (np.float32, [3, 4]), "b": (np.float32, [4, 2])},
        {"y": (np.float32, [3, 2])},
    )
    results = run_model(model, [a, b], **OPTIONS)
    np.testing.assert_allclose(results.y, a @ b, rtol=1e-5)
    np.testing.assert_allclose(results["y"], results[0])
    (result,) = run_node(product, [a, b], **OPTIONS)
    np.testing.assert_allclose(result, a @ b, rtol=1e-5)
    assert Backend.supports_device("CPU") and not Backend.supports_device("TPU")
    with pytest.raises(ftuner.CompileError, match="cannot import 'model.onnx'"):
        prepare(onnx.ModelProto())
