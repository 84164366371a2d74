"""`ftuner compare`: entries, judges, ranks, files."""

from __future__ import annotations

import csv
import json
import math
from pathlib import Path
from typing import Any

import pytest

import ftuner
from ftuner import comparison, explanation, judges
from ftuner.comparison import LATENCY, MEASURED, ROOFLINE, Comparison, Entry

from commands import run_command
from models import MATMUL

STRATEGIES = ("ftuner", "roller")


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("sources") / "matmul.mlir"
    path.write_text(MATMUL)
    return path


def entry(strategy: str, latency: list[float], roofline: list[Any], weights: Any = None) -> Entry:
    times: dict[str, list[float | None]] = {LATENCY: [*latency], ROOFLINE: roofline}
    sizes = [[size] for size in range(len(latency))]
    given = weights or [1.0] * len(latency)
    return Entry("w", strategy, "sia", 1.0, 1, None, 0, "", 1, 0.0, 1.0, sizes, given, times)


def test_ranks_are_those_of_geometric_means() -> None:
    found = Comparison(
        "d",
        "s",
        [
            entry("a", [1, 8], [1.0, 1.0]),
            entry("b", [2, 2], [1.0, 1.0]),
            entry("c", [2, 2], [None, 1.0]),
        ],
    )
    # The best at each size: 1 and 2.
    assert found.ratios("w", LATENCY) == pytest.approx({0: 2, 1: math.sqrt(2), 2: math.sqrt(2)})
    assert found.ranks("w", LATENCY) == {0: 3, 1: 1, 2: 1}
    # What a judge does not know has no rank.
    assert found.ranks("w", ROOFLINE) == {0: 1, 1: 1}
    assert found.ratios("w", MEASURED) == {}


def test_weights_count() -> None:
    found = Comparison(
        "d", "s", [entry("a", [1, 4], [], [3.0, 1.0]), entry("b", [2, 2], [], [3.0, 1.0])]
    )
    assert found.ratios("w", LATENCY) == pytest.approx({0: 2**0.25, 1: 2**0.75})


def test_roofline_of_waves_as_worked_by_hand() -> None:
    device = {
        "sm_count": 10, "fp32_tflops": 2.56, "clock_mhz": 1000, "dram_gbps": 100,
        "max_blocks_per_sm": 32, "max_threads_per_sm": 2048, "shared_memory_per_sm_bytes": 65536,
    }  # fmt: skip
    program = {
        "blocks": [12], "axis": 0, "reduce_split": 1, "schedule": {"stages": 2},
        "ukernels": [{"block_tile": [64, 64, 16], "workers": 1024}],
    }  # fmt: skip
    # Two blocks on an SM by threads: 20 at once. 12 blocks: two on the busiest SM, a peak of
    # 256,000 FLOPs and 10,000 bytes a microsecond for each SM.
    flops = 2 * (2 * 64 * 64 * 256) / 256_000
    bytes_ = 2 * 4 * (64 * 256 + 256 * 64 + 64 * 64) / 10_000
    expected = max(flops, bytes_)
    assert judges.roofline_us(device, program, [12 * 64, 64, 256]) == pytest.approx(expected)
    # 24 blocks: a full wave, and four blocks on as many SMs.
    more = {**program, "blocks": [24]}
    rest = max(flops, bytes_) / 2
    assert judges.roofline_us(device, more, [24 * 64, 64, 256]) == pytest.approx(expected + rest)


def test_each_strategy_is_what_explain_says(source: Path) -> None:
    found = comparison.compare(source, device="v100", strategies=STRATEGIES)
    assert [one.strategy for one in found.entries] == [*STRATEGIES]
    for one in found.entries:
        data = explanation.explain_data(source, device="v100", strategy=one.strategy)
        (workload,) = data["workloads"]
        assert one.times[LATENCY] == [s["program"]["predicted_us"] for s in workload["shapes"]]
        assert one.kernels == len(workload["families"])
        assert 0 <= one.padding < 1 and 0 < one.sm_use <= 1 and one.seconds > 0
        assert one.looked_at and one.rejected_by_paths
        assert all(time_us and time_us > 0 for time_us in one.times[ROOFLINE])
    assert sorted(found.ranks(found.workloads()[0], LATENCY).values()) == [1, 2]


def test_a_state_is_taken_up(source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    state = tmp_path / "state.jsonl"
    told: list[str] = []
    first = comparison.compare(
        source, device="v100", strategies=STRATEGIES, state=state, tell=told.append
    )
    assert told == ["ftuner by latency", "roller by latency"]
    # The last line was cut off: that plan is made again, the other one is not.
    lines = state.read_text().splitlines(keepends=True)
    state.write_text(lines[0] + lines[1][:100])
    told.clear()
    comparison.compare(source, device="v100", strategies=STRATEGIES, state=state, tell=told.append)
    assert told == ["roller by latency"]
    monkeypatch.setattr(comparison, "_plan", None)
    third = comparison.compare(source, device="v100", strategies=STRATEGIES, state=state)
    assert third.rows()[0] == first.rows()[0]
    state.write_text("{}\n" + lines[1])
    with pytest.raises(ftuner.Error, match="state.jsonl:1: expected a plan in each line"):
        comparison.compare(source, device="v100", strategies=STRATEGIES, state=state)


def test_command(source: Path, tmp_path: Path) -> None:
    table = tmp_path / "table.csv"
    state = tmp_path / "state.jsonl"
    arguments = ["compare", source, "--device", "v100", "--strategies", "ftuner,random"]
    arguments += ["--cost-models", "latency,sia", "--state", state]
    result = run_command(*arguments, "--csv", table, "--max-kernels=4")
    assert result.returncode == 0, result.stderr
    lines = result.stdout.splitlines()
    assert "roofline" in lines[3] and "measured" in lines[3]
    assert [line.split()[:2] for line in lines[4:8]] == [
        ["ftuner", "latency"], ["ftuner", "sia"], ["random", "latency"], ["random", "sia"],
    ]  # fmt: skip
    assert lines[4].count("*") == 1 and lines[5].count("*") == 0
    rows = list(csv.DictReader(table.read_text().splitlines()))
    assert len(rows) == 4 and all(int(row["kernels"]) <= 4 for row in rows)
    again = run_command(*arguments, "--json", "--max-kernels=4")
    data = json.loads(again.stdout)
    assert [row["latency_rank"] for row in data["rows"]] == [int(row["latency_rank"]) for row in rows]
    assert [str(row["seconds"]) for row in data["rows"]] == [row["seconds"] for row in rows]


def test_measured_times_are_a_judge(source: Path) -> None:
    found = comparison.compare(
        source, device="v100", strategies=("ftuner",), measurer="model:latency", measure_top=1000
    )
    (one,) = found.entries
    assert one.measured > 0
    assert any(time_us is not None for time_us in one.times[MEASURED])


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["--strategies", "gensr"], 2, "did you mean gensor?"),
        (["--cost-models", ""], 2, "expected names of"),
        (["--strategy=roller"], 2, "expected --strategies and --cost-models"),
        (["--device", "v1000"], 1, "unknown device 'v1000'"),
        (["--json", "--csv", "-"], 2, "one option that writes to standard output"),
    ],
)
def test_what_is_wrong(source: Path, arguments: list[str], code: int, message: str) -> None:
    result = run_command("compare", source, *arguments)
    assert result.returncode == code, result.stdout + result.stderr
    assert message in result.stderr and "Traceback" not in result.stderr


def test_a_source_that_no_strategy_plans(tmp_path: Path) -> None:
    path = tmp_path / "broken.mlir"
    path.write_text("func.func @f() {")
    result = run_command("compare", path)
    assert result.returncode == 1 and "error: " in result.stderr
