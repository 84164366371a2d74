"""Parts of learned predictors, by numbers that were worked out by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest

from ftuner.learned import encoding, labels, replay

torch = pytest.importorskip("torch")

from ftuner.learned import moments, network, sampling  # noqa: E402


def test_positions_are_sines_and_cosines() -> None:
    codes = encoding.positional_encoding([1, 4], 4)
    for place, code in zip((1, 4), codes):
        # Θ^(2δ / N): 1 for the first pair, 100 for the second of two.
        wanted = [math.sin(place), math.cos(place), math.sin(place / 100), math.cos(place / 100)]
        assert code == pytest.approx(wanted, abs=1e-6)
    assert encoding.positional_encoding(np.zeros((3, 5)), 164).shape == (3, 5, 164)


@pytest.mark.parametrize(
    ("target", "wanted"), [([0.0, 0.5, 1.0], 0.104167), ([0.0, 0.25, 1.0], 0.225172), ([0.0, 1.0], 0.0)]
)
def test_central_moments_of_samples(target: list[float], wanted: float) -> None:
    of = moments.central_moment_discrepancy(torch.tensor([[0.0], [1.0]]), torch.tensor(target)[:, None])
    assert float(of) == pytest.approx(wanted, abs=1e-6)


def test_wider_intervals_count_less() -> None:
    source, target = torch.tensor([[0.0], [2.0]]), torch.tensor([[0.0], [1.0], [2.0]])
    # The example above, twice as wide.
    of = moments.central_moment_discrepancy(source, target, width=2.0)
    assert float(of) == pytest.approx(0.104167, abs=1e-6)


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
