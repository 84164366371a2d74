"""Parts of learned predictors, by numbers that were worked out by hand."""

from __future__ import annotations

import argparse
import contextlib
import csv
import dataclasses
import hashlib
import importlib.util
import io
import json
import math
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ftuner
from commands import run_command
from ftuner.cli import main
from ftuner.describe import replay
from ftuner.latency.measurements.rows import Devices
from ftuner.latency.model import Launches, model
from ftuner.learned import encoding, labels

torch = pytest.importorskip("torch")

from ftuner.learned import (
    boosted,
    checkpoint,
    dataset,
    kinds,
    moments,
    network,
    sampling,
    training,
    transfer,
)


def test_positions_are_sines_and_cosines() -> None:
    codes = encoding.positional_encoding([1, 4], 4)
    for place, code in zip((1, 4), codes):
        # Θ^(2δ / N): 1 for the first pair, 100 for the second of two.
        wanted = [math.sin(place), math.cos(place), math.sin(place / 100), math.cos(place / 100)]
        assert code == pytest.approx(wanted, abs=1e-6)
    assert encoding.positional_encoding(np.zeros((3, 5)), 164).shape == (3, 5, 164)


@pytest.mark.parametrize(
    ("target", "wanted"),
    [([0.0, 0.5, 1.0], 0.104167), ([0.0, 0.25, 1.0], 0.225172), ([0.0, 1.0], 0.0)],
)
def test_central_moments_of_samples(target: list[float], wanted: float) -> None:
    discrepancy = moments.central_moment_discrepancy(
        torch.tensor([[0.0], [1.0]]), torch.tensor(target)[:, None]
    )
    assert float(discrepancy) == pytest.approx(wanted, abs=1e-6)


def test_wider_intervals_count_less() -> None:
    source, target = torch.tensor([[0.0], [2.0]]), torch.tensor([[0.0], [1.0], [2.0]])
    # The example above, twice as wide.
    discrepancy = moments.central_moment_discrepancy(source, target, width=2.0)
    assert float(discrepancy) == pytest.approx(0.104167, abs=1e-6)


def test_the_paper_counts_its_parameters() -> None:
    full = network.parameters_of(network.Predictor(network.Architecture(), [5]))
    assert full == pytest.approx(13.77e6, rel=1e-3)
    small = network.parameters_of(network.Predictor(network.SMALL, [5]))
    assert 0.1e6 < small < 0.25e6


def test_each_number_of_statements_has_a_head() -> None:
    torch.manual_seed(0)
    predictor = network.Predictor(network.SMALL, [4, 6]).eval()
    device = torch.randn(3, 8)
    for count in (4, 6):
        label, latent = predictor(torch.randn(3, count, 164), device)
        assert label.shape == (3,) and latent.shape == (3, 32)
    with pytest.raises(ValueError, match="expected programs of 4, 6 statements, but got 5"):
        predictor(torch.randn(3, 5, 164), device)
    with pytest.raises(ValueError, match="expected one of product, sum, concatenation"):
        network.Architecture(combine="mean")


@pytest.mark.parametrize("kind", labels.KINDS)
def test_labels_come_back(kind: str) -> None:
    rng = np.random.default_rng(11)
    microseconds = np.exp(rng.normal(3, 1.5, 400))
    transform = labels.Labels.fit(microseconds, kind)
    transformed = transform.forward(microseconds)
    assert transform.backward(transformed) == pytest.approx(microseconds, rel=2e-3)
    if kind != "none":
        assert transformed.min() == pytest.approx(1)
    copy = labels.Labels.of_json(transform.as_json())
    assert copy.forward(microseconds) == pytest.approx(transformed)
    # Any output of a predictor is a time.
    times = transform.backward(np.array([-1e6, -10.0, 0.0, 1e6]))
    assert np.isfinite(times).all() and (times > 0).all()


def test_box_cox_makes_skewed_labels_normal() -> None:
    rng = np.random.default_rng(5)
    microseconds = np.exp(rng.normal(2, 1, 5000))
    transformed = labels.Labels.fit(microseconds).forward(microseconds)
    centred = (transformed - transformed.mean()) / transformed.std()
    assert abs((centred**3).mean()) < 0.1
    with pytest.raises(ValueError, match="positive labels"):
        labels.Labels.fit([1.0, 0.0])
    with pytest.raises(ValueError, match="expected one of box-cox"):
        labels.Labels.fit([1.0], "log")


def test_replay_of_two_queues() -> None:
    # a (5) → b (3, other queue) → d (1); c (4) runs in a's queue meanwhile; d waits for both.
    launches = [
        replay.Launch("a", 5), replay.Launch("b", 3, queue=1, after=(0,)), replay.Launch("c", 4, after=(0,)),
        replay.Launch("d", 1, queue=1, after=(1, 2)),
    ]  # fmt: skip
    placed = replay.replay(launches)
    times = {launches[item.launch].name: (item.start, item.end) for item in placed}
    assert times == {"a": (0, 5), "b": (5, 8), "c": (5, 9), "d": (9, 10)}
    assert replay.makespan(placed) == 10
    # With gaps of 2: b and c begin at 7, c ends at 11, and d may begin at 13.
    assert replay.makespan(replay.replay(launches, gap=2)) == 14
    one_queue = [replay.Launch(str(i), 2.0) for i in range(4)]
    assert replay.makespan(replay.replay(one_queue)) == sum(launch.duration for launch in one_queue)
    with pytest.raises(ValueError, match="wait for each other"):
        replay.replay([replay.Launch("a", 1, after=(1,)), replay.Launch("b", 1, after=(0,))])


def test_sampled_tasks_are_those_of_large_clusters() -> None:
    rng = np.random.default_rng(3)
    centres = {0: (0, 0), 1: (10, 0), 2: (0.3, 0), 3: (0, 10)}
    counts = {0: 40, 1: 20, 2: 5, 3: 10}
    rows = np.concatenate([rng.normal(centres[task], 0.05, (counts[task], 2)) for task in counts])
    task_of = np.repeat(list(counts), list(counts.values()))
    sampled = sampling.sample_tasks(rows, list(task_of), 3, seed=1)
    # 0 and 2 are one cluster, of which 0 is nearer to the centre.
    assert sampled.tasks == [0, 1, 3]
    assert sampled.radius < 1
    assert len(set(sampling.sample_tasks(rows, list(task_of), 4).tasks)) == 4
    with pytest.raises(ValueError, match="expected 1 to 4 tasks, but got 5"):
        sampling.sample_tasks(rows, list(task_of), 5)


# Schedules of products: block m, n, k, threads along m and n.
SCHEDULES = ((64, 64, 16, 16, 16), (128, 64, 16, 16, 16), (64, 128, 8, 16, 16), (32, 64, 16, 8, 16))


def write_rows(path: Path, factor: float, shapes: int = 10) -> str:
    """Programs on two cards, each as long as `latency` says, by a factor where the k tile is 8."""
    rng = np.random.default_rng(7)
    rows = []
    for shape in range(shapes):
        m, n, k = (int(64 * rng.integers(1, 24)) for _ in range(3))
        for device in ("v100", "a100"):
            for block_m, block_n, block_k, threads_m, threads_n in SCHEDULES:
                row = dict(
                    m=m, n=n, k=k, block_m=block_m, block_n=block_n, block_k=block_k, threads_m=threads_m,
                    threads_n=threads_n, stages=2, vector_width=4, batch=1, reduce_split=1,
                )  # fmt: skip
                record = {**model().program_defaults("simt"), **row}
                programs = np.array(
                    [[record.get(name, 0) for name in model().program_fields("simt")]]
                )
                parts, grids = model().programs(device, "simt", programs)
                figures = np.array([[*model().device(device)[1].values()]])
                (time,) = model().predict(
                    Launches(figures, np.zeros(1, int), parts, grids),
                    model().default_calibration(device),
                )
                us = time * (factor if block_k == 8 else 1)
                rows.append(dict(row, device=device, path="simt", us=us, fold=shape % 10))
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return str(path)


def learn(*arguments: str, code: int = 0) -> str:
    """Runs `ftuner learn` within this process; what it printed, or its errors."""
    output, errors = io.TextIOWrapper(io.BytesIO(), "utf-8"), io.StringIO()
    with contextlib.redirect_stdout(output), contextlib.redirect_stderr(errors):
        returned = main(["learn", *arguments])
    assert returned == code, errors.getvalue()
    output.flush()
    return errors.getvalue() if code else output.buffer.getvalue().decode()


def test_a_correction_learns_what_the_latency_model_lacks(tmp_path: Path) -> None:
    rows = write_rows(tmp_path / "rows.csv", factor=1.5, shapes=40)
    file = str(tmp_path / "a.predictor")
    command = [
        "train",
        rows,
        "-o",
        file,
        "--hold-out=0,1,2",
        "--correct",
        "--epochs=25",
        "--batch=32",
        "--json",
    ]
    found = json.loads(learn(*command))
    # A quarter of the programs is off by a third.
    assert found["held out, by latency"]["mean"] == pytest.approx((1 / 3) / 4, rel=1e-6)
    assert found["held out"]["mean"] < 0.04 and found["held out"]["programs"] == 96
    data = dataset.read([rows], Devices())
    assert len(set(data.task)) == 80 and sorted(data.device_names) == ["a100", "v100"]
    # The loaded predictor is the one that was saved.
    trained = training.Trained.load(file)
    held_out = data.select(data.fold < 3)
    again = training.errors(trained.predict(held_out), held_out.microseconds, held_out.task)
    assert trained.corrects and {"programs": 96, **again} == pytest.approx(found["held out"])


def test_one_seed_gives_one_predictor(tmp_path: Path) -> None:
    data = dataset.read([write_rows(tmp_path / "rows.csv", factor=1)], Devices())
    files = []
    for seed in (5, 5, 6):
        files.append(tmp_path / str(len(files)))
        training.train(data, network.SMALL, training.Options(epochs=2, seed=seed)).save(
            str(files[-1])
        )
    contents = [file.read_bytes() for file in files]
    assert contents[0] == contents[1] != contents[2]


def test_programs_of_other_sizes_are_refused(tmp_path: Path) -> None:
    data = dataset.read([write_rows(tmp_path / "rows.csv", factor=1)], Devices())
    trained = training.train(data, network.SMALL, training.Options(epochs=1))
    for tree in data.trees[3]:
        object.__setattr__(tree, "ordering", tree.ordering[:-1])
    with pytest.raises(ftuner.Error, match="expected programs of 5 statements, but got 4"):
        trained.predict(data)


def test_wrong_files_are_errors(tmp_path: Path) -> None:
    rows = write_rows(tmp_path / "rows.csv", factor=1, shapes=5)
    none = tmp_path / "none"
    none.write_bytes(b'{"format": "other", "version": 1}\n')
    cases = {
        str(
            none
        ): "is no predictor: expected ftuner-predictor or ftuner-predictor-no-structure of version 2",
        rows: "is no predictor",
        "/nowhere": "cannot read '/nowhere'",
    }
    for file, message in cases.items():
        with pytest.raises(ftuner.Error, match=message):
            training.Trained.load(file)
    target = tmp_path / "a.predictor"
    assert "none:1" in learn("train", str(none), "-o", str(target), code=1) and not target.exists()
    error = learn("train", rows, "-o", str(target), "--hold-out=12", code=2)
    assert "expected folds from 0 to 9" in error and not target.exists()
    error = learn("train", rows, "-o", str(target), "--hold-out=0,7", code=1)
    assert "--hold-out: expected folds that rows are in (0, 1, 2, 3, 4), but got 7" in error
    error = learn("train", rows, "-o", str(tmp_path / "nowhere" / "a"), code=1)
    assert "cannot write" in error
    header = tmp_path / "header.csv"
    header.write_text(Path(rows).read_text().split("\n")[0] + "\n")
    error = learn("train", str(header), "-o", str(target), code=1)
    assert f"{header}: expected rows, but there is only a header" in error
    for option in ("--loss=both", "--epochs=3", "--size=small", "--no-positions", "--batch=8"):
        error = learn(
            "train", rows, "-o", str(target), "--predictor-kind=boosted-trees", option, code=2
        )
        assert option.split("=")[0] in error and "no effect on 'boosted-trees'" in error
    error = learn(
        "train", rows, "-o", str(target), "--predictor-kind=no-structure", "--no-positions", code=2
    )
    assert "no effect on 'no-structure'" in error and not target.exists()


def test_wrong_labels_are_errors(tmp_path: Path) -> None:
    data = dataset.read([write_rows(tmp_path / "rows.csv", factor=1, shapes=4)], Devices())
    file = tmp_path / "a.predictor"
    boosted.train(data, rounds=2).save(str(file))
    line, blob = file.read_bytes().split(b"\n", 1)
    wrong: dict[str, dict[str, object]] = {
        "labels: expected one of box-cox, .*, but got 'log'": {"kind": "log"},
        "labels: expected the values of box-cox, but got 0": {"values": []},
        "labels: expected the values of none, but got 1": {"kind": "none"},
        "labels: expected finite numbers": {"deviation": float("nan")},
    }
    for message, fields in wrong.items():
        header = json.loads(line)
        header["labels"].update(fields)
        file.write_bytes(json.dumps(header).encode() + b"\n" + blob)
        with pytest.raises(ftuner.Error, match=message):
            kinds.load(file)


def test_batches_have_two_programs_at_least() -> None:
    with pytest.raises(ValueError, match="batches of two programs"):
        training.Options(batch=1)


def test_a_lone_last_row_is_trained_on(tmp_path: Path) -> None:
    data = dataset.read([write_rows(tmp_path / "rows.csv", factor=1, shapes=5)], Devices()).select(
        np.arange(33)
    )
    trained = training.train(data, network.SMALL, training.Options(epochs=2, batch=32))
    tuned = training.finetune(trained, data, None, data, training.Tuning(epochs=2, batch=32))
    for one in (trained, tuned):
        assert all(torch.isfinite(values).all() for values in one.predictor.state_dict().values())
        assert np.isfinite(one.predict(data)).all()


def test_corrections_are_of_what_latency_predicts(tmp_path: Path) -> None:
    data = dataset.read([write_rows(tmp_path / "rows.csv", factor=1, shapes=6)], Devices())
    lacks = dataclasses.replace(
        data, predicted=np.where(np.arange(len(data)) % 4 == 1, np.nan, data.predicted)
    )
    few = training.Options(epochs=1, batch=16, corrects=True)
    trained, trees = (
        training.train(data, network.SMALL, few),
        boosted.train(data, corrects=True, rounds=2),
    )
    tuning = training.Tuning(epochs=1, batch=16)
    message = r"it has none for 12 of 48 \(rows of ftuner\)"
    for run in (
        lambda: training.train(lacks, network.SMALL, few),
        lambda: boosted.train(lacks, corrects=True),
        lambda: trained.predict(lacks),
        lambda: trees.predict(lacks),
        lambda: training.finetune(trained, lacks, data, None, tuning),
        lambda: training.finetune(trained, data, None, lacks, tuning),
    ):
        with pytest.raises(ftuner.Error, match=message):
            run()
    # Only the inputs of a target count, and times need no prediction.
    tuned = training.finetune(trained, data, lacks, None, tuning)
    assert np.isfinite(tuned.predict(data)).all()
    times = boosted.train(lacks, rounds=2)
    assert np.isfinite(times.predict(lacks)).all()


def test_reports_have_no_times_that_latency_does_not_predict(tmp_path: Path) -> None:
    data = dataset.read([write_rows(tmp_path / "rows.csv", factor=1, shapes=10)], Devices())
    # Nothing on one card, and half of the other.
    card = data.device_names.index("a100")
    is_known = (data.device != card) & (np.arange(len(data)) % 8 < 6)
    rows, file = str(tmp_path / "rows.dataset"), str(tmp_path / "trees")
    dataclasses.replace(data, predicted=np.where(is_known, data.predicted, np.nan)).save(rows)
    command = ["train", rows, "-o", file, "--predictor-kind=boosted-trees", "--hold-out=0"]
    found = json.loads(learn(*command, "--json"), parse_constant=pytest.fail)
    assert found["held out"]["programs"] == 8 and found["held out, by latency"]["programs"] == int(
        is_known[data.fold == 0].sum()
    )
    found = json.loads(
        learn("evaluate", rows, f"--predictor={file}", "--by=device", "--json"),
        parse_constant=pytest.fail,
    )
    assert found["latency"]["programs"] == found["latency, v100"]["programs"] == int(is_known.sum())
    assert found["predictor, a100"]["programs"] == 40 and "latency, a100" not in found
    dataclasses.replace(data, predicted=np.full(len(data), np.nan)).save(rows)
    assert "held out, by latency" not in json.loads(
        learn(*command, "--json"), parse_constant=pytest.fail
    )


@pytest.mark.parametrize("kind", ["cdmpp", "no-structure", "boosted-trees"])
def test_each_kind_is_judged_by_folds_that_are_held_out(tmp_path: Path, kind: str) -> None:
    rows, file = write_rows(tmp_path / "rows.csv", factor=1.5), tmp_path / "predictor"
    epochs = [] if kind == "boosted-trees" else ["--epochs=1"]
    found = json.loads(
        learn(
            "train",
            rows,
            "-o",
            str(file),
            f"--predictor-kind={kind}",
            "--hold-out=0",
            "--json",
            *epochs,
        )
    )
    assert found["held out"]["programs"] == found["held out, by latency"]["programs"] == 8
    loaded = kinds.load(file)
    assert loaded.provenance is not None and loaded.provenance.devices == {"a100": 36, "v100": 36}
    assert {name: deviation.rows for name, deviation in loaded.provenance.deviations.items()} == {
        "a100": 4,
        "v100": 4,
    }


def test_parts_of_experiments_are_those_of_their_settings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = Path(__file__).parents[2] / "benchmarks" / "cpu" / "cdmpp_experiments.py"
    monkeypatch.syspath_prepend(str(path.parent))
    spec = importlib.util.spec_from_file_location("cdmpp_experiments", path)
    assert spec is not None and spec.loader is not None
    experiments = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "cdmpp_experiments", experiments)
    spec.loader.exec_module(experiments)
    ran = []

    def study_of(epochs: int, scale: float = 1.0, commit: str = "first") -> Any:
        study = experiments.Study(
            argparse.Namespace(data=".", state=str(tmp_path), scale=scale, epochs=epochs)
        )
        study.commit = commit

        def mean_of(card: str) -> dict[str, Any]:
            ran.append((epochs, scale, experiments.TUNING["epochs"], card))
            return {"mean": float(epochs)}

        return study, lambda: experiments.State(study, "parts").part(mean_of, "t4")["mean"]

    _, run = study_of(1)
    assert run() == run() == 1 and len(ran) == 1
    study, run = study_of(25)
    assert run() == 25 and study.commits == {"first"}
    monkeypatch.setitem(experiments.TUNING, "epochs", experiments.TUNING["epochs"] + 1)
    run()
    study_of(25, scale=0.5)[1]()
    assert len(ran) == len(set(ran)) == 4
    # A part of an earlier commit is taken, and named.
    study, run = study_of(25, commit="second")
    assert run() == 25 and len(ran) == 4 and study.commits == {"first"}


def test_synthetic_rows_are_told(tmp_path: Path) -> None:
    data = dataset.read([write_rows(tmp_path / "rows.csv", factor=1, shapes=6)], Devices())
    kind = np.where(
        (data.device_names.index("v100") == data.device) | (np.arange(len(data)) < 2),
        "synthetic",
        "measured",
    )
    rows, file = str(tmp_path / "rows.dataset"), str(tmp_path / "trees")
    mixed = dataclasses.replace(data, kind=kind)
    mixed.save(rows)
    count = int((kind == "synthetic").sum())
    for command in (
        ["train", rows, "-o", file, "--predictor-kind=boosted-trees"],
        ["evaluate", rows, f"--predictor={file}"],
    ):
        result = run_command("learn", *command, environment={"OMP_NUM_THREADS": "1"})
        assert result.returncode == 0
        assert (
            f"{count} of 48 rows are synthetic: their times are predictions of the latency model"
            in result.stderr
        )
    loaded = kinds.load(file)
    assert loaded.provenance is not None and loaded.provenance.devices == {
        "a100": 48 - count,
        "v100": 0,
    }


def test_an_interrupted_training_goes_on(tmp_path: Path) -> None:
    data = dataset.read([write_rows(tmp_path / "rows.csv", factor=1, shapes=4)], Devices())
    options = training.Options(epochs=4, seed=3, batch=16)
    path, mark = str(tmp_path / "a.checkpoint"), checkpoint.fingerprint([data], options)

    def trained(name: str, stop: bool, kept: bool) -> bytes:
        kept_state = checkpoint.Checkpoint(path, mark, seconds=0) if kept else None
        training.train(data, network.SMALL, options, stop=lambda: stop, checkpoint=kept_state).save(
            str(tmp_path / name)
        )
        return (tmp_path / name).read_bytes()

    whole = trained("whole", stop=False, kept=False)
    assert trained("part", stop=True, kept=True) != whole
    assert trained("rest", stop=False, kept=True) == whole
    # The same programs in another role, or divided otherwise, are another training.
    first, second = data.select(np.arange(20)), data.select(np.arange(20, len(data)))
    roles = ([data, first, None], [data, None, first], [first, second, None], [data, None, None])
    assert len({checkpoint.fingerprint(role, options) for role in roles}) == len(roles)
    other = checkpoint.Checkpoint(path, checkpoint.fingerprint([data], training.Options()))
    with pytest.raises(ftuner.Error, match="other rows or options"):
        training.train(data, network.SMALL, options, checkpoint=other)
    Path(path).write_bytes(b"none")
    with pytest.raises(ftuner.Error, match="is not a checkpoint"):
        training.train(data, network.SMALL, options, checkpoint=other)


def test_batch_norm_settles_on_rare_numbers_of_statements(tmp_path: Path) -> None:
    """Running means of heads that see a program or two at a time are of no use."""
    data = dataset.read([write_rows(tmp_path / "rows.csv", factor=1, shapes=8)], Devices())
    for row in (1, 30):
        (tree,) = data.trees[row]
        data.trees[row] = [
            dataclasses.replace(tree, ordering=tree.ordering[:-1], features=tree.features[:-1])
        ]
    trained = training.train(data, network.SMALL, training.Options(epochs=10, batch=16, rate=6e-4))
    settled = trained.latents(data)
    packed = trained.pack(data)
    trained.predictor.train()
    with torch.no_grad():
        z = training.latents(trained.predictor, packed.batch(np.arange(len(data))))
    assert settled == pytest.approx(z.numpy(), rel=1e-3, abs=1e-3)


def test_latent_vectors_of_a_target_become_like_the_source(tmp_path: Path) -> None:
    rows = dataset.read([write_rows(tmp_path / "rows.csv", factor=1, shapes=24)], Devices())
    source, target = (rows.select(rows.device == index) for index in range(2))
    trained = training.train(source, network.SMALL, training.Options(epochs=4, batch=32, rate=6e-4))

    def apart(predictor: training.Trained) -> float:
        return float(
            training.discrepancy(
                torch.from_numpy(predictor.latents(source)),
                torch.from_numpy(predictor.latents(target)),
            )
        )

    before = trained.latents(source)
    settings = training.Tuning(epochs=12, batch=32, target_batch=64)
    aligned = training.finetune(trained, source, target, None, settings)
    plain = training.finetune(trained, source, target, None, dataclasses.replace(settings, alpha=0))
    assert apart(aligned) < 0.7 * apart(plain)
    # The predictor that is given stays as it is; times of the target are not looked at.
    assert (trained.latents(source) == before).all()
    untimed = dataclasses.replace(target, microseconds=np.full(len(target), np.nan))
    again = training.finetune(trained, source, untimed, None, settings)
    assert (again.latents(source) == aligned.latents(source)).all()
    with pytest.raises(ftuner.Error, match="expected programs of a target"):
        training.finetune(trained, source, None, None, settings)


def test_boosted_trees_are_those_of_the_library(tmp_path: Path) -> None:
    from sklearn.ensemble import HistGradientBoostingRegressor

    data = dataset.read([write_rows(tmp_path / "rows.csv", factor=2, shapes=20)], Devices())
    trained = boosted.train(data, rounds=40)
    trained.save(str(tmp_path / "trees"))
    rows = boosted.inputs(data)
    library = HistGradientBoostingRegressor(max_iter=40, early_stopping=False, random_state=0)
    library.fit(rows, trained.labels.forward(data.microseconds))
    loaded = kinds.load(tmp_path / "trees")
    assert loaded.predict(data) == pytest.approx(
        trained.labels.backward(library.predict(rows)), rel=1e-5
    )
    line, content = (tmp_path / "trees").read_bytes().split(b"\n", 1)
    header = json.loads(line)
    first = 0
    for name, shape in header["arrays"]:
        if name == "nodes":
            break
        first += 4 * math.prod(shape)
    else:
        pytest.fail("expected an array 'nodes'")
    # The first node leads to itself, which would never end, or reads a feature that does not exist.
    for field, value, message in (
        (2, 0, "children come behind"),
        (0, rows.shape[1], f"expected nodes of {rows.shape[1]} features"),
    ):
        blob = bytearray(content)
        blob[first + 4 * field : first + 4 * field + 4] = np.float32(value).tobytes()
        header["sha256"] = hashlib.sha256(blob).hexdigest()
        (tmp_path / "trees").write_bytes(json.dumps(header).encode() + b"\n" + blob)
        with pytest.raises(ftuner.Error, match=message):
            kinds.load(tmp_path / "trees")


def test_boosted_trees_learn_a_device_of_few_tasks(tmp_path: Path) -> None:
    """An A100 whose times are a power of what those of the V100 are: what no tree on figures of devices tells."""
    data = dataset.read([write_rows(tmp_path / "rows.csv", factor=2, shapes=60)], Devices())
    is_source = data.device == data.device_names.index("v100")
    source, target = data.select(is_source), data.select(~is_source)
    target = dataclasses.replace(target, microseconds=3 * source.microseconds**0.8)
    is_task = np.arange(len(target)) % 60 < 2 * len(SCHEDULES)
    tasks, judged = target.select(is_task), target.select(~is_task)
    trained = boosted.train(source, rounds=60)
    tuned = transfer.tune(trained, source, tasks)

    def error(predictor: boosted.BoostedTrees) -> float:
        return float(np.abs(predictor.predict(judged) / judged.microseconds - 1).mean())

    pooled = boosted.train(
        dataset.Dataset.concatenate([source, *[tasks] * transfer.WEIGHT]), labels=trained.labels
    )
    assert error(tuned) < 0.8 * error(pooled) < 0.8 * error(trained)
    # It predicts for the source what the pooled trees do, and so does its file.
    assert (tuned.predict(source) == pooled.predict(source)).all()
    tuned.save(str(tmp_path / "tuned"))
    assert (kinds.load(tmp_path / "tuned").predict(data) == tuned.predict(data)).all()
    assert tuned.provenance is not None and tuned.provenance.devices == {
        "v100": len(source),
        "a100": len(tasks),
    }
    # One program is enough, and devices with the same figures are not told apart.
    assert np.isfinite(
        transfer.tune(trained, source, tasks.select(np.arange(len(tasks)) < 1)).predict(judged)
    ).all()
    vectors = np.stack([data.device_vectors[data.device_names.index("v100")]] * 2)
    twins = [dataclasses.replace(rows, device_vectors=vectors) for rows in (source, tasks)]
    with pytest.raises(ftuner.Error, match="figures that tell the device 'a100' from 'v100'"):
        transfer.tune(trained, *twins)
    with pytest.raises(ftuner.Error, match="expected programs of the source, and tasks"):
        transfer.tune(trained, source, tasks.select(np.zeros(len(tasks), bool)))
    with pytest.raises(ftuner.Error, match="another transform than quantiles"):
        transfer.tune(boosted.train(source, "quantile", rounds=2), source, tasks)
    # Times far beyond the source's are not cut off.
    slow = dataclasses.replace(tasks, microseconds=1e4 * tasks.microseconds)
    assert np.median(
        transfer.tune(trained, source, slow).predict(slow) / slow.microseconds
    ) == pytest.approx(1, rel=0.3)


def test_boosted_trees_of_several_devices_hold_on_each(tmp_path: Path) -> None:
    data = dataset.read([write_rows(tmp_path / "rows.csv", factor=2, shapes=20)], Devices())
    names = ["v100", "a100", "like the a100"]
    vectors = np.stack(
        [data.device_vectors[data.device_names.index(name)] for name in ("v100", "a100", "a100")]
    )
    # As two cards of one maker have: the same number of SMs.
    vectors[2, 1:] += 0.25
    source = data.select(data.device == data.device_names.index("v100"))

    def on_card(card: int, factor: float) -> dataset.Dataset:
        return dataclasses.replace(
            source, device=np.full(len(source), card), device_names=names, device_vectors=vectors,
            microseconds=factor * source.microseconds, task_names=[f"{name} {card}" for name in source.task_names],
        )  # fmt: skip

    known, first, second = on_card(0, 1), on_card(1, 3), on_card(2, 10)
    few = np.arange(len(source)) < 32
    trained = boosted.train(known, rounds=40)
    one = transfer.tune(trained, known, first.select(few))
    pooled = boosted.train(
        dataset.Dataset.concatenate([known, *[first.select(few)] * transfer.WEIGHT]),
        labels=one.labels,
    )
    # A device without measurements is not taken for one that has some of its figures.
    assert (one.predict(second) == pooled.predict(second)).all()
    assert (one.predict(first) != pooled.predict(first)).any()
    both = transfer.tune(
        trained, known, dataset.Dataset.concatenate([first.select(few), second.select(few)])
    )
    for judged in (known, first, second):
        assert np.abs(both.predict(judged) / judged.microseconds - 1).mean() < 0.2
    assert both.provenance is not None and both.provenance.devices == {
        "v100": len(source),
        "a100": 32,
        "like the a100": 32,
    }
    # Tuned again, what is known of the first device has to be among the rows.
    with pytest.raises(
        ftuner.Error, match="each device of the predictor, but there are none on a100"
    ):
        transfer.tune(one, known, second.select(few))
    again = transfer.tune(
        one, dataset.Dataset.concatenate([known, first.select(few)]), second.select(few)
    )
    assert again.provenance is not None and again.provenance.devices == both.provenance.devices
    for judged in (known, first, second):
        assert np.abs(again.predict(judged) / judged.microseconds - 1).mean() < 0.2
    again.save(str(tmp_path / "again"))
    assert (kinds.load(tmp_path / "again").predict(second) == again.predict(second)).all()


def test_commands_tune_and_sample(tmp_path: Path) -> None:
    rows = write_rows(tmp_path / "rows.csv", factor=1.5, shapes=12)
    with open(rows, newline="") as file:
        every = list(csv.DictReader(file))

    def write(name: str, some: list[dict[str, str]], left_out: tuple[str, ...] = ()) -> str:
        with (tmp_path / name).open("w", newline="") as file:
            names = [column for column in some[0] if column not in left_out]
            writer = csv.DictWriter(file, names, extrasaction="ignore")
            writer.writeheader()
            writer.writerows(some)
        return str(tmp_path / name)

    source = write("source.csv", [row for row in every if row["device"] == "v100"])
    target = write("target.csv", [row for row in every if row["device"] == "a100"], ("us",))
    # No time is read of a target: its column may be empty, too.
    empty = write("empty.csv", [{**row, "us": ""} for row in every if row["device"] == "a100"])
    tasks, first, second = (str(tmp_path / name) for name in ("tasks.csv", "first", "second"))
    learn("train", source, "-o", first, "--epochs=3", "--predictor-kind=no-structure")
    learn("train", source, "-o", first, "--epochs=3")
    learn("sample", target, "--tasks=3", "--by=latents", f"--predictor={first}", "-o", tasks)
    with open(tasks, newline="") as file:
        sampled = list(csv.DictReader(file))
    # All programs of three shapes.
    assert len(sampled) == 12 and len({(row["m"], row["n"], row["k"]) for row in sampled}) == 3
    measured = {(row["m"], row["n"], row["k"]) for row in sampled}
    known = [
        row
        for row in every
        if row["device"] == "a100" and (row["m"], row["n"], row["k"]) in measured
    ]
    assert (
        learn("sample", empty, "--tasks=3", "--by=latents", f"--predictor={first}").count("\n")
        == 13
    )
    labelled = write("labelled.csv", known)
    command = [
        "finetune",
        first,
        f"--source={source}",
        f"--target={empty}",
        f"--tasks={labelled}",
        "-o",
        second,
    ]
    found = json.loads(learn(*command, "--epochs=6", "--json"))
    assert (
        found["tasks, after"]["mean"] < found["tasks, before"]["mean"]
        and found["tasks, after"]["programs"] == 12
    )
    assert not list(tmp_path.glob("*.checkpoint"))
    learn("train", rows, "-o", str(tmp_path / "trees"), "--predictor-kind=boosted-trees")
    text = learn(
        "evaluate",
        rows,
        f"--predictor={second}",
        f"--predictor={tmp_path / 'trees'}",
        "--by=device",
    )
    assert "latency, a100" in text and f"{second}, v100" in text
    # Trees of the source, tuned by the same tasks.
    old, new = str(tmp_path / "old.trees"), str(tmp_path / "new.trees")
    learn("train", source, "-o", old, "--predictor-kind=boosted-trees")
    found = json.loads(
        learn("finetune", old, f"--source={source}", f"--tasks={labelled}", "-o", new, "--json")
    )
    assert (
        found["tasks, after"]["mean"] < found["tasks, before"]["mean"]
        and found["tasks, after"]["programs"] == 12
    )
    # Wrong ways to ask.
    assert "--target: expected a network" in learn(
        "finetune", str(tmp_path / "trees"), *command[2:], code=2
    )
    assert "--epochs: expected a network" in learn(
        "finetune",
        str(tmp_path / "trees"),
        f"--source={source}",
        f"--tasks={labelled}",
        "-o",
        second,
        "--epochs=3",
        code=2,
    )
    assert "--target, --tasks" in learn(
        "finetune", first, f"--source={source}", "-o", second, code=2
    )
    assert "at most 12" in learn("sample", target, "--tasks=13", code=1)
    assert "--predictor with --by=latents" in learn("sample", target, "--by=latents", code=2)
    assert "us are missing" in learn("train", target, "-o", second, code=1)
