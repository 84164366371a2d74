"""A part of the sweep over ONNX's operators (tools/coverage/onnx_sweep.py), and of its fuzzer."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ftuner

onnx = pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")
pytest.importorskip("iree.compiler")

sys.path.insert(0, str(Path(__file__).parents[1] / "Integration"))

import refusals
from ftuner.onnx_backend import prepare
from onnx_cases import all_operators, case, chains, networks, outcome, trials
from onnx_models import OPTIONS, model_of, node
from scale import SCALE


def run(found: list[Any], size: int = 40) -> dict[str, outcome.Result]:
    """The results of trials of one operator set, by their keys."""
    results: dict[str, outcome.Result] = {}
    for number, trial in enumerate(found):
        trial.mark = f"t{number}"
    marks = {trial.mark: trial.key for trial in found}

    def tell(mark: str, result: outcome.Result | None) -> None:
        if result is not None:
            results.setdefault(marks[mark], result)

    for first in range(0, len(found), size):
        outcome.run_batch(found[first : first + size], 0, tell)
    return results


#: Operators whose results' sizes, or what they compute, depend on sizes; by operator sets.
DESIGNED = {
    case.LAST: """
        Add AffineGrid ArgMax Attention AveragePool BatchNormalization Cast CenterCropPad Clip Col2Im Concat ConstantOfShape
        Conv ConvInteger ConvTranspose DepthToSpace DynamicQuantizeLinear Einsum Expand Flatten GRU Gather GatherElements
        GatherND Gemm GridSample GroupNormalization InstanceNormalization LRN LSTM LayerNormalization LpPool
        MatMul Max MaxPool MeanVarianceNormalization Mod OneHot Pad Pow QLinearConv QuantizeLinear RNN ReduceLogSumExp
        ReduceMax Reshape Resize ReverseSequence RotaryEmbedding Slice Softmax SoftmaxCrossEntropyLoss SpaceToDepth Split
        Squeeze Tile TopK Transpose Trilu Unsqueeze Where
    """,
    11: "ArgMin Clip Gather Hardmax LogSoftmax Pad ReduceMean Resize Softmax Squeeze",
    case.FIRST: "BatchNormalization Clip Hardmax LogSoftmax PRelu Pad Slice Softmax Softsign Split Sum Upsample",
}  # fmt: skip


def designed(version: int, count: int) -> list[Any]:
    """The first configurations of each operator at an operator set, with all sizes unknown."""
    all_operators()
    runs, found = outcome.runs(trials.trials_of), []
    for operator in DESIGNED[version].split():
        chosen = [
            trial
            for one in case.choose(operator, runs, count=60)
            for trial in trials.trials_of(one)
            if trial.mode == trials.UNKNOWN and trial.version == version
        ]
        assert chosen, operator
        found += chosen[:count]
    return found


@pytest.mark.parametrize("version", DESIGNED)
def test_designed_part(version: int) -> None:
    """No result is wrong, and nothing is refused."""
    found = designed(version, SCALE)
    results = run(found)
    assert not {
        key: result
        for key, result in results.items()
        if result.outcome not in (outcome.RIGHT, outcome.NOT_RUN)
    }


def test_chains() -> None:
    """Layout after compute, of unknown sizes."""
    all_operators()
    found = [chains.chain(51, number) for number in range(16 * SCALE)]
    assert {result.outcome for result in run(found).values()} == {outcome.RIGHT}


@pytest.mark.parametrize("name, version", [
    (name, version) for name in networks.NETWORKS for version in networks.VERSIONS
    if SCALE > 1 or (name, version) in (("YOLO head", 7), ("super-resolution", 11))
])  # fmt: skip
def test_networks_by_hand(name: str, version: int) -> None:
    """Networks in the form of old public files, as tools/coverage/onnx_networks.py runs them."""
    model = networks.model_of(name, version)
    session, compiled = outcome.session_of(model), prepare(model, **OPTIONS)
    for size in networks.SIZES:
        inputs = {"data": networks.input_of(name, version, size)}
        (got,), (wanted,) = compiled.run(inputs), session.run(None, inputs)
        assert outcome.difference(got, wanted) is None, size


def test_refusals_are_sentences() -> None:
    """Operators outside of the sweep are refused in one sentence each, which names the operator and the node."""
    f32 = np.float32
    nodes = [
        node("RandomNormalLike", ["x"], ["a"], name="noise"),
        node("Abs", ["x"], ["b"], name="fine"),
        node("Bernoulli", ["x"], ["c"], name="coins"),
        node("Det", ["x"], ["d"], name="volume"),
    ]
    outputs: dict[str, Any] = {
        "a": (f32, ["N", "N"]),
        "b": (f32, ["N", "N"]),
        "c": (f32, ["N", "N"]),
        "d": (f32, []),
    }
    model = model_of(nodes, {"x": (f32, ["N", "N"])}, outputs)
    with pytest.raises(ftuner.CompileError) as refused:
        prepare(model, **OPTIONS)
    operators = ["RandomNormalLike", "Bernoulli", "Det"]
    assert not refusals.faults(str(refused.value), operators, ["noise", "coins", "volume"])
    for operator in operators:
        assert f"the operator {operator} " in str(refused.value)


@pytest.mark.parametrize("words", [
    "cannot import 'm.onnx': FIX ME: Unimplemented call_function: target=<function sym_float at 0x7f12345678>",
    "the operator Pad (node Pad p) is not supported: 'tensor.expand_shape' op expected dimension 2; write it otherwise",
    "the operator Pad (node Pad p) is not supported: torch-mlir does not lower aten.fmod.int; write it otherwise",
    "the operator Pad (node Pad p) fails at python/ftuner/frontend/torch/exporting/export.py:70",
    "the operator Pad (node Pad p) is wrong. It is bad.", "nothing in a kernel", "",
])  # fmt: skip
def test_faults_of_refusals_are_seen(words: str) -> None:
    assert refusals.faults(words, ["Pad"])


def test_differences_are_seen() -> None:
    """A result that is off, of another type or shape, or has a NaN elsewhere."""
    wanted = np.array([1.0, np.nan, np.inf], np.float32)
    assert outcome.difference(wanted.copy(), wanted) is None
    for other in (
        wanted.astype(np.float64),
        wanted[None],
        wanted + np.float32(0.001),
        np.nan_to_num(wanted),
        -wanted,
    ):
        assert outcome.difference(other, wanted)
    assert outcome.difference(np.array([3]), np.array([4]))


def test_functions_of_f64(rng: np.random.Generator) -> None:
    """Functions of f64 equal the C library's within a few units in the last place."""
    special = pytest.importorskip("scipy.special")
    functions = {
        "Exp": np.exp, "Log": np.log, "Tanh": np.tanh, "Sin": np.sin, "Cos": np.cos, "Tan": np.tan, "Erf": special.erf,
        "Softplus": lambda x: np.logaddexp(0, x), "Sigmoid": special.expit,
    }  # fmt: skip
    nodes = [node(name, ["x"], [name]) for name in functions] + [node("Pow", ["x", "y"], ["Pow"])]
    f64: Any = (np.float64, ["N"])
    model = model_of(nodes, {"x": f64, "y": f64}, {name: f64 for name in [*functions, "Pow"]})
    x = np.concatenate([
        rng.standard_normal(2000) * 3, rng.standard_normal(500) * 1e-9, rng.uniform(-700, 700, 1000),
        rng.uniform(0.5, 2, 1000), 10 ** rng.uniform(-307, 5, 500),
        [0.0, -0.0, np.inf, -np.inf, np.nan, 1, -1, 5e-324, 1e-310, 709.7, -745, 2, 3, -2, -3],
    ])  # fmt: skip
    y = np.concatenate(
        [rng.standard_normal(len(x) - 500) * 2, rng.integers(-5, 6, 500).astype(float)]
    )
    results = prepare(model, **OPTIONS).run({"x": x, "y": y})
    with np.errstate(all="ignore"):
        wanted = [function(x) for function in functions.values()] + [np.power(x, y)]
        for name, got, want in zip([*functions, "Pow"], results, wanted):
            tolerance = 2e-13 if name == "Pow" else 2e-15
            np.testing.assert_allclose(got, want, rtol=tolerance, atol=1e-320, err_msg=name)


def test_top_k_of_equal_elements(rng: np.random.Generator) -> None:
    """Equal elements keep their order, and NaN is the largest."""
    nodes = [
        node("TopK", ["x", "k"], ["high", "high_at"], axis=1),
        node("TopK", ["x", "k"], ["low", "low_at"], axis=-2, largest=0),
    ]
    shape: list[Any] = ["A", "B", "C"]
    results = {
        "high": (np.float32, shape),
        "high_at": (np.int64, shape),
        "low": (np.float32, shape),
        "low_at": (np.int64, shape),
    }
    model = model_of(nodes, {"x": (np.float32, shape)}, results, {"k": np.array([3])})
    x = rng.integers(0, 4, (3, 7, 5)).astype(np.float32)
    x[0, 2] = np.nan
    compiled = prepare(model, **OPTIONS)
    high, high_at, low, low_at = compiled.run({"x": x})
    keys = np.where(np.isnan(x), np.inf, x)
    first, last = (
        np.argsort(-keys, 1, kind="stable")[:, :3],
        np.argsort(keys, 1, kind="stable")[:, :3],
    )
    np.testing.assert_array_equal(high_at, first)
    np.testing.assert_array_equal(low_at, last)
    np.testing.assert_array_equal(high, np.take_along_axis(x, first, 1))
    np.testing.assert_array_equal(low, np.take_along_axis(x, last, 1))
    with pytest.raises(
        ftuner.Error, match="TopK 0: expected at most as many elements as its axis has, but got 3"
    ):
        compiled.run({"x": x[:, :2]})
