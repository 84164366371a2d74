"""Predictors that PyTorch trained, as the compiler evaluates them; the cost model `learned` on the command line and in Python."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import numpy as np
import pytest

import ftuner
from commands import run_command
from ftuner import compiler
from ftuner.latency.model import model

torch = pytest.importorskip("torch")

from ftuner.learned import boosted, dataset, labels, network, provenance, training, transfer

SOURCE = """\
module attributes {ukernel.symbols = {T = #ukernel.range<1 to 4>}} {
  func.func @product(%x: tensor<?x64xf32> {ukernel.shape = ["T", 64]}, %w: tensor<64x64xf32>) -> tensor<?x64xf32> {
    %c0 = arith.constant 0 : index
    %zero = arith.constant 0.0 : f32
    %t = tensor.dim %x, %c0 : tensor<?x64xf32>
    %empty = tensor.empty(%t) : tensor<?x64xf32>
    %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<?x64xf32>) -> tensor<?x64xf32>
    %r = linalg.matmul ins(%x, %w : tensor<?x64xf32>, tensor<64x64xf32>) outs(%init : tensor<?x64xf32>) -> tensor<?x64xf32>
    return %r : tensor<?x64xf32>
  }
}
"""


def explained(*arguments: str, code: int = 0) -> str:
    """Returns the output of `ftuner explain`, or its errors."""
    result = run_command(
        "explain", "p.mlir", "--device=h200", "--cost-model=learned", "--json", *arguments
    )
    assert result.returncode == code, result.stderr
    return result.stderr if code else result.stdout


def records(count: int) -> np.ndarray:
    """Programs of `simt`, every third with blocks of two heights."""
    fields = model().program_fields("simt")
    rows = []
    for number in range(count):
        row = dict(
            model().program_defaults("simt"), batch=1, m=64 + 61 * number, n=256 * (1 + number % 3), k=256, block_m=64,
            block_n=64, block_k=16, threads_m=16, threads_n=16, reduce_split=1 + number % 2, stages=2, vector_width=4,
        )  # fmt: skip
        if number % 3 == 0:
            row.update(second_block=128, reduce_split=1)
        rows.append([row.get(name, 0) for name in fields])
    return np.array(rows, np.int64)


def programs(count: int) -> tuple[dataset.Dataset, np.ndarray]:
    rows = records(count)
    trees = model().trees("h200", "simt", rows)
    vectors = np.stack(
        [dataset.device_vector(model().device(name)[1]) for name in ("h200", "v100")]
    )
    rng = np.random.default_rng(1)
    golden = provenance.Golden(trees, np.repeat(vectors[:1], count, 0)).dataset()
    times = np.array(
        [10.0 + sum(tree.blocks for tree in program) for program in trees]
    ) * rng.uniform(0.8, 1.2, count)
    return (
        dataclasses.replace(
            golden,
            microseconds=times,
            device=np.arange(count) // 2 % 2,
            device_names=["h200", "v100"],
            device_vectors=vectors,
            task=np.arange(count) // 4,
            task_names=[str(task) for task in range(count)],
            predicted=times * rng.uniform(0.7, 1.4, count),
        ),
        rows,
    )


@pytest.mark.parametrize("combine", network.COMBINATIONS)
@pytest.mark.parametrize("transform", ["box-cox", "yeo-johnson", "quantile", "none"])
def test_the_compiler_equals_pytorch(tmp_path: Path, combine: str, transform: str) -> None:
    data, rows = programs(30)
    corrects = transform in ("none", "quantile")
    size = dataclasses.replace(
        network.SMALL, combine=combine, width=32, layers=1, embedding=(24,), decoder=(16, 8)
    )
    options = training.Options(
        epochs=2, transform=transform, corrects=corrects, positions=combine != "sum", rate=1e-3
    )
    trained = training.train(data, size, options)
    path = str(tmp_path / "a.predictor")
    trained.save(path)
    again = training.Trained.load(path)
    assert again.provenance is not None and again.provenance.devices == {"h200": 16, "v100": 14}
    wanted = again.predict(data)
    for card, name in enumerate(data.device_names):
        values, is_ratio = model().learned(path, name, "simt", rows)
        on_card = data.device == card
        assert is_ratio == corrects
        assert values[on_card] * (data.predicted[on_card] if corrects else 1) == pytest.approx(
            wanted[on_card], rel=1e-4
        )


@pytest.mark.parametrize("transform", labels.KINDS)
@pytest.mark.parametrize("corrects", [False, True])
def test_the_compiler_equals_boosted_trees(tmp_path: Path, transform: str, corrects: bool) -> None:
    data, rows = programs(60)
    path = str(tmp_path / "a.trees")
    boosted.train(data, transform, corrects, rounds=20).save(path)
    wanted = boosted.BoostedTrees.load(path).predict(data)
    assert len(np.unique(wanted)) > 2
    for card, name in enumerate(data.device_names):
        values, is_ratio = model().learned(path, name, "simt", rows)
        on_card = data.device == card
        assert is_ratio == corrects
        assert values[on_card] * (data.predicted[on_card] if corrects else 1) == pytest.approx(
            wanted[on_card], rel=1e-6
        )


@pytest.mark.parametrize("corrects", [False, True])
def test_the_compiler_equals_trees_tuned_for_a_device(tmp_path: Path, corrects: bool) -> None:
    data, rows = programs(60)
    source, own = data.select(data.device == 0), data.select(data.device == 1)
    trained = boosted.train(source, corrects=corrects, rounds=20)
    transfer.tune(trained, source, own).save(str(tmp_path / "tuned.trees"))
    tuned = boosted.BoostedTrees.load(tmp_path / "tuned.trees")
    # Golden programs are of both devices.
    assert (
        tuned.provenance is not None and len(np.unique(tuned.provenance.golden.device, axis=0)) == 2
    )
    for card, name in enumerate(data.device_names):
        everything = dataclasses.replace(
            data, device=np.full(len(data), card), predicted=np.ones(len(data))
        )
        values, _ = model().learned(tmp_path / "tuned.trees", name, "simt", rows)
        assert values == pytest.approx(tuned.predict(everything), rel=1e-6)
        assert len(np.unique(values)) > 2


def test_programs_unlike_those_of_the_training_are_unknown(tmp_path: Path) -> None:
    data, rows = programs(12)
    training.train(data, network.SMALL, training.Options(epochs=1)).save(
        str(tmp_path / "a.predictor")
    )
    fields = list(model().program_fields("simt"))
    rows[3, [fields.index(name) for name in ("m", "n", "k")]] = 1 << 20
    values, _ = model().learned(tmp_path / "a.predictor", "h200", "simt", rows)
    assert np.isnan(values[3]) and np.isfinite(np.delete(values, 3)).all()
    with pytest.raises(ftuner.Error, match="unknown predictor 'nonsense'"):
        model().learned("nonsense", "h200", "simt", rows)


def test_deviations_are_of_rows_that_were_not_trained_on() -> None:
    deviation = provenance.Deviation.from_predictions(
        [2.0, 2.0, 8.0, 8.0], [1.0, 2.0, 4.0, 8.0], [0, 0, 1, 1]
    )
    assert deviation.rows == 4
    # ln 2 off or not: half of the rows, and about the mean of each of two tasks.
    assert deviation.overall == pytest.approx(np.log(2) / np.sqrt(2))
    assert deviation.within_task == pytest.approx(np.log(2) / np.sqrt(2))


def test_a_tuned_predictor_was_trained_on_more(tmp_path: Path) -> None:
    data, _ = programs(16)
    first, second = data.select(data.device == 0), data.select(data.device == 1)
    trained = training.train(first, network.SMALL, training.Options(epochs=1))
    tuned = training.finetune(trained, first, None, second, training.Tuning(epochs=1))
    assert trained.provenance is not None and trained.provenance.devices == {"h200": 8}
    assert tuned.provenance is not None and tuned.provenance.devices == {"h200": 8, "v100": 8}
    tuned.save(str(tmp_path / "b.predictor"))


def test_the_search_takes_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data, _ = programs(12)
    training.train(data, network.SMALL, training.Options(epochs=1, corrects=True)).save(
        str(tmp_path / "a.predictor")
    )
    (tmp_path / "p.mlir").write_text(SOURCE)
    # Relative to the caller's folder.
    monkeypatch.chdir(tmp_path)
    found = json.loads(explained("--learned-model=a.predictor"))
    builtin = json.loads(explained("--learned-model=h200"))
    for explanation in (found, builtin):
        assert explanation["calibration"].startswith("h200+predictor-")
        program = explanation["workloads"][0]["shapes"][0]["program"]
        terms = {term["name"]: term["us"] for term in program["predicted_terms"]}
        latency = program["predicted_figures"]["latency_time"]
        assert program["predicted_us"] == pytest.approx(latency + terms["correction"], rel=1e-3)
    assert found["calibration"] != builtin["calibration"]
    (tmp_path / "b.predictor").write_bytes((tmp_path / "a.predictor").read_bytes()[:-8])
    for name, message in {
        "b.predictor": "it ends within array",
        "c.predictor": "expected a file or one of h200",
    }.items():
        error = explained(f"--learned-model={name}", code=1)
        assert "option --learned-model" in error and message in error


def test_caches_see_the_content(tmp_path: Path) -> None:
    file = tmp_path / "a.predictor"
    assert compiler.read_files({"learned_model": str(file)}) == [file]
    assert compiler.read_files({"learned_model": "h200"}) == []
