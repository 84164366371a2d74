"""`ftuner compare`: entries, judges, ranks, files, pages."""

from __future__ import annotations

import csv
import dataclasses
import json
import math
import re
import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

import ftuner
from commands import run_command
from ftuner.describe import explanation
from ftuner.study import (
    charts,
    comparison,
    comparison_page,
    comparison_text,
    judges,
    paper_comparison,
    papers,
    plans,
)
from ftuner.study.comparison import LATENCY, MEASURED, ROOFLINE, WHOLE, Comparison, Entry, Group
from ftuner.study.plans import Strategy
from models import MATMUL

STRATEGIES = ("ftuner", "roller")
#: A measurer: wide blocks are fast.
COMMAND = (
    "command:python3 -c 'import json,sys; r=json.loads(sys.stdin.readline()); "
    't=r["family"]["ukernels"][-1]["block_tile"]; print(json.dumps({"microseconds":10+t[0]/8+99/t[1]}))\''
)


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("sources") / "matmul.mlir"
    path.write_text(MATMUL)
    return path


@pytest.fixture(scope="module")
def state(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Plans of all tests of this file."""
    return tmp_path_factory.mktemp("state") / "state.jsonl"


@pytest.fixture(scope="module")
def found(source: Path, state: Path) -> Comparison:
    return comparison.compare(source, device="v100", strategies=STRATEGIES, state=state)


def entry(strategy: str, latency: list[float], roofline: list[Any], weights: Any = None) -> Entry:
    times: dict[str, list[float | None]] = {LATENCY: [*latency], ROOFLINE: roofline}
    sizes = [[size] for size in range(len(latency))]
    given = weights or [1.0] * len(latency)
    return Entry("s", "d", "w", strategy, "sia", 1.0, sizes=sizes, weights=given, times=times)


def test_ranks_are_those_of_geometric_means() -> None:
    group = Group(
        [
            entry("a", [1, 8], [1.0, 1.0]),
            entry("b", [2, 2], [1.0, 3.0]),
            entry("c", [2, 2], [None, 2.0]),
            entry("d", [4, 2], []),
        ]
    )
    # The best at each size: 1 and 2.
    root = math.sqrt(2)
    assert group.ratios(LATENCY) == pytest.approx({0: 2, 1: root, 2: root, 3: 2})
    assert group.ranks(LATENCY) == {0: 3, 1: 1, 2: 1, 3: 3}
    # Sizes that the judge knows of all rows that it knows at all; other rows have no rank.
    assert group.common(ROOFLINE) == [1]
    assert group.ratios(ROOFLINE) == pytest.approx({0: 1, 1: 3, 2: 2})
    assert group.ranks(ROOFLINE) == {0: 1, 1: 3, 2: 2}
    assert group.ratios(MEASURED) == {}
    notes = comparison_text.notes_of(Comparison([*group.entries]), group)
    assert notes == ["roofline knows 1 of 2 sizes of all rows"]


def test_weights_count() -> None:
    group = Group([entry("a", [1, 4], [], [3.0, 1.0]), entry("b", [2, 2], [], [3.0, 1.0])])
    assert group.ratios(LATENCY) == pytest.approx({0: 2**0.25, 1: 2**0.75})
    assert group.entries[0].predicted_us == 1.75


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
    # With 10 low and 10 high blocks each SM has one of both; with 12 and 8 two SMs have two low ones.
    low = {"block_tile": [32, 64, 16], "workers": 1024}
    pair = {**program, "blocks": [10, 10], "ukernels": [low, *program["ukernels"]]}
    flops = (2 * 32 * 64 * 256 + 2 * 64 * 64 * 256) / 256_000
    bytes_ = 4 * ((32 * 256 + 256 * 64 + 32 * 64) + (64 * 256 + 256 * 64 + 64 * 64)) / 10_000
    expected = max(flops, bytes_)
    assert judges.roofline_us(device, pair, [960, 64, 256]) == pytest.approx(expected)
    uneven = {**pair, "blocks": [12, 8]}
    assert judges.roofline_us(device, uneven, [896, 64, 256]) == pytest.approx(expected)


def test_each_strategy_is_what_explain_says(source: Path, found: Comparison) -> None:
    assert [one.strategy for one in found.entries] == [*STRATEGIES]
    for one in found.entries:
        data = explanation.explain_data(source, device="v100", strategy=one.strategy)
        (workload,) = data["workloads"]
        assert one.times[LATENCY] == [s["program"]["predicted_us"] for s in workload["shapes"]]
        assert one.kernels == len(workload["families"])
        assert one.samples == workload["statistics"]["shapes"]
        assert all(0 <= share < 1 for share in one.size_padding)
        assert all(0 < share <= 1 for share in one.size_sm_use)
        assert one.looked_at and one.rejected_by_paths and one.seconds > 0
        assert all(time_us and time_us > 0 for time_us in one.times[ROOFLINE])
        assert one.own_judges == [LATENCY]
    (group,) = found.groups
    assert sorted(group.ranks(LATENCY).values()) == [1, 2]


def test_figures_in_files_of_their_own() -> None:
    """Figures are XML, name their lines, and draw values without neighbours as marks."""
    series = [charts.Series("a < b", [1.0, None, 3.0], 0), charts.Series("c", [None, 2.0, None], 1)]
    for has_marks in (False, True):
        text = charts.document(
            charts.lines("title", "x", "y", [1.0, 2.0, 3.0], series, has_marks=has_marks), series
        )
        root = ElementTree.fromstring(text)
        assert root.tag == "{http://www.w3.org/2000/svg}svg"
        assert [one.text for one in root.iter("{http://www.w3.org/2000/svg}text")][-2:] == [
            "a < b",
            "c",
        ]
        paths = [
            one.get("d", "")
            for one in root.iter("{http://www.w3.org/2000/svg}path")
            if one.get("class") == "line"
        ]
        # Marks of each series, then its key. A place without a length is drawn by its round ends.
        assert len(paths) == 4 and [path.count("h0") for path in paths] == (
            [2, 1, 0, 0] if has_marks else [0] * 4
        )


def test_bytes_of_code() -> None:
    ptx = ".version 8\n.visible .entry f_0_k0(\n)\n{}\n.visible .entry f_0_k1_sum(\n)\n"
    ptx += ".visible .entry g_0_k0(\n)\n.visible .entry fill(\n)\n"
    first = ptx.index(".visible .entry g_0") - ptx.index(".visible")
    last = ptx.index(".visible .entry fill") - ptx.index(".visible .entry g_0")
    assert plans.code_bytes(ptx) == {"": len(ptx), "f_0": first, "g_0": last}


def test_a_strategy_has_options_of_its_own(source: Path, state: Path) -> None:
    spec = Strategy.parse("ftuner:max-kernels=2:measurer=model:latency")
    assert (spec.name, spec.options) == (
        "ftuner",
        {"max_kernels": "2", "measurer": "model:latency"},
    )
    few = comparison.compare(
        source,
        device="v100",
        strategies=["roller", "roller:max-kernels=1"],
        state=state,
        code=False,
    )
    assert few.entries[0].kernels > few.entries[1].kernels == 1
    assert [one.code_bytes for one in few.entries] == [None, None]


def test_values_with_commas() -> None:
    assert plans.split("dietcode:instance-sizes=5,24,43,ftuner, gensor:virtual-threads=false,roller:max-kernels=2") == [
        "dietcode:instance-sizes=5,24,43", "ftuner", "gensor:virtual-threads=false", "roller:max-kernels=2",
    ]  # fmt: skip
    assert plans.split("gensor:virtual-threads=false,gensr") == [
        "gensor:virtual-threads=false",
        "gensr",
    ]


def test_devices_with_one_name() -> None:
    device = ftuner.devices()["v100"]
    with pytest.raises(ftuner.Error, match="expected one device of the name 'v100'"):
        comparison.prepare(device=["v100", {**device, "sm_count": 10}])
    assert len(comparison.prepare(device=["v100", device]).devices) == 1


def test_a_state_is_taken_up(source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    state = tmp_path / "state.jsonl"
    messages: list[str] = []

    def compare() -> Comparison:
        return comparison.compare(
            source,
            device="v100",
            strategies=STRATEGIES,
            state=state,
            code=False,
            tell=messages.append,
        )

    first = compare()
    assert messages == ["ftuner by latency on v100", "roller by latency on v100"]
    # The last line was cut off: that plan is made again, the other one is not.
    lines = state.read_text().splitlines(keepends=True)
    state.write_text(lines[0] + lines[1][:100])
    messages.clear()
    compare()
    assert messages == ["roller by latency on v100"]
    monkeypatch.setattr(plans, "explain_data", None)
    third = compare()
    assert third.rows()[0] == first.rows()[0]
    assert third.csv() == compare().csv() and third.json() == compare().json()
    assert comparison_page.page(third, "t") == comparison_page.page(compare(), "t")
    # Only its end is missing.
    state.write_text(lines[0] + lines[1].rstrip("\n"))
    compare()
    assert state.read_text() == lines[0] + lines[1].rstrip("\n")
    plans.State(state).add("key", {})
    *before, added = state.read_text().splitlines(keepends=True)
    assert before == lines and json.loads(added)["plan"] == {} and added.endswith("\n")
    # A plan that lacks a field, or has another number, is told from the one that was kept.
    for old, new in (
        ('"workers"', '"worker"'),
        ('"occ": 0.', '"occ": 1.'),
        ('"key": "', '"key": "0'),
    ):
        damaged = lines[1].replace(old, new, 1)
        assert damaged != lines[1]
        state.write_text(lines[0] + damaged)
        with pytest.raises(ftuner.Error, match="state.jsonl:2: expected the plan that was kept"):
            compare()
        assert state.read_text() == lines[0] + damaged
    # Older versions wrote no checksum, and no search finds what they kept.
    state.write_text('{"key": "k", "plan": {}}\n')
    assert plans.State(state).find("k") is None
    state.write_text("{}\n" + lines[1])
    with pytest.raises(ftuner.Error, match="state.jsonl:1: expected a plan in each line"):
        compare()


def test_files_that_are_no_state(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    line = '{"key": "a", "plan": {}}\n'
    for text, number in (
        ("notes", 1),
        ("{", 1),
        (line + "notes", 2),
        (line + '{"key": 1}', 2),
        ("\n", 1),
    ):
        path.write_text(text)
        with pytest.raises(ftuner.Error, match=f"notes.txt:{number}: expected a plan"):
            plans.State(path)
        assert path.read_text() == text
    # What was cut off is there until the next plan.
    path.write_text(line + '{"key": "b')
    state = plans.State(path)
    assert path.read_text() == line + '{"key": "b'
    state.add("c", {})
    assert path.read_text().startswith(line + '{"key": "c", ') and plans.State(path).find("c") == {}


def test_failures_are_not_kept(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = tmp_path / "state.jsonl"

    def compare(strategy: str, code: bool = False) -> Comparison:
        return comparison.compare(
            source, device="v100", strategies=(strategy,), state=state, code=code
        )

    with pytest.raises(comparison.NoPlan, match="max-kernels"):
        compare("roller:max-kernels=0")
    assert not state.exists()

    def fail(*_: Any) -> None:
        raise ftuner.CompileError("t.mlir:1: error: no code", "")

    with monkeypatch.context() as patch:
        patch.setattr(plans, "_generate", fail)
        found = compare("roller", code=True)
    assert found.entries[0].code_bytes is None
    assert "roller by latency: no code: no code" in comparison_text.text(found)
    assert len(state.read_text().splitlines()) == 1
    assert compare("roller", code=True).entries[0].code_bytes


def test_what_a_plan_is_kept_by(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    text, device = ftuner.compiler.read_source(source), ftuner.describe.descriptions.resolve("v100")  # type: ignore[attr-defined]

    def key(**options: Any) -> str:
        return plans._key(text, device, "dietcode", LATENCY, options)

    for options in (
        {"transfer_from": "file"}, {"measurer": "recorded:file"}, {"measure_log": "file"},
        {"calibration": str(tmp_path / "file")},
    ):  # fmt: skip
        Path("file").write_text("{}")
        first = key(**options)
        assert key(**options) == first
        Path("file").write_text("{ }")
        assert key(**options) != first
    first = key()
    monkeypatch.setattr(ftuner.cache, "compiler_identity", lambda: "another one")
    assert key() != first


def test_several_workloads_together(tmp_path: Path, state: Path) -> None:
    second = MATMUL.replace("@matmul", "@second").replace("x64x", "x96x").replace(", 64]", ", 96]")
    body = [text[text.index("func.func") : text.rindex("}")] for text in (MATMUL, second)]
    head = MATMUL[: MATMUL.index("func.func")]
    path = tmp_path / "two.mlir"
    path.write_text(head + "".join(body) + "}\n")
    both = comparison.compare(
        path, device="v100", strategies=STRATEGIES, state=state, counts={"second": 3}
    )
    parts, whole = both.groups[:-1], both.groups[-1]
    assert [group.key[2] for group in both.groups] == ["matmul_0", "second_0", WHOLE]
    for i, one in enumerate(whole.entries):
        sums = parts[0].entries[i], parts[1].entries[i]
        expected = [(sums[0].predicted_us or 0) + 3 * (sums[1].predicted_us or 0)]
        assert one.times[LATENCY] == pytest.approx(expected)
        assert one.kernels == sum(part.kernels for part in sums) and one.count == 4
        assert one.code_bytes and one.code_bytes > sum(part.code_bytes or 0 for part in sums) > 0


# ------------------------------------------------------------------------------------------------
# Judges that are files
# ------------------------------------------------------------------------------------------------


def simulate(requests: list[dict[str, Any]], path: Path) -> Path:
    """A log in which Roller's kernels are as fast as they are narrow."""
    lines = [
        {
            **one,
            "measurer": "toy",
            "microseconds": 1.0 + one["family"]["ukernels"][0]["block_tile"][1],
        }
        for one in requests
    ]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def test_a_simulator_judges_programs(
    source: Path, state: Path, found: Comparison, tmp_path: Path
) -> None:
    path = simulate(found.requests, tmp_path / "simulated.jsonl")
    judged = comparison.compare(
        source, device="v100", strategies=STRATEGIES, state=state, judged_by={"simulated": path}
    )
    facts = explanation.explain_data(source, device="v100", strategy="roller")["workloads"][0]
    widths = [
        1 + facts["families"][shape["family"]]["ukernels"][0]["block_tile"][1]
        for shape in facts["shapes"]
    ]
    assert judged.entries[1].times["simulated"] == widths
    assert judged.entries[1].own_judges == [LATENCY]
    assert "simulated.jsonl, measured by toy" in comparison_text.text(judged)
    # Programs without a line are not known, and neither are those that failed.
    lines = path.read_text().splitlines(keepends=True)
    failed = {**json.loads(lines[0]), "failure": "no launch"}
    path.write_text(lines[0] + "".join(lines[2:]) + json.dumps(failed) + "\n" + lines[1][:-9])
    judged = comparison.compare(
        source, device="v100", strategies=STRATEGIES, state=state, judged_by={"simulated": path}
    )
    assert [
        i for i, time_us in enumerate(judged.entries[0].times["simulated"]) if time_us is None
    ] == [0, 1]


def test_what_a_search_measured_is_a_judge_of_others(
    source: Path, state: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Paths may be relative, although the compiler runs in a separate folder.
    monkeypatch.chdir(tmp_path)
    log = Path("log.jsonl")
    options: dict[str, Any] = dict(device="v100", strategies=("roller",), code=False)
    measured = comparison.compare(
        source, **options, measurer=COMMAND, measure_top=1, measure_budget=6, measure_log=str(log)
    )
    (one,) = measured.entries
    assert one.measured == 6 and one.measurer.startswith("command:")
    known = [i for i, time_us in enumerate(one.times[MEASURED]) if time_us is not None]
    assert known and one.own_judges == [LATENCY, MEASURED]
    # The plan of the search without measurements, by the log; some programs are in both.
    judged = comparison.compare(source, **options, state=state, judged_by={"recorded": log})
    times = judged.entries[0].times["recorded"]
    assert [i for i, time_us in enumerate(times) if time_us is not None]
    assert judged.entries[0].own_judges == [LATENCY]
    own = comparison.compare(
        source, **options, measurer=f"recorded:{log}", measure_top=1, judged_by={"recorded": log}
    )
    assert own.entries[0].own_judges == [LATENCY, MEASURED, "recorded"]


def test_a_stand_in_is_no_judge(source: Path, found: Comparison, tmp_path: Path) -> None:
    stood_in = comparison.compare(
        source, device="v100", strategies=("ftuner",), cost_models=("sia",), code=False,
        measurer="model:latency", measure_top=2, measure_budget=20,
    )  # fmt: skip
    (one,) = stood_in.entries
    assert one.measured > 0 and set(one.times[MEASURED]) == {None}
    # It optimised what stood in.
    assert one.own_judges == [LATENCY]
    assert "model:latency@v100 stood in" in comparison_text.text(stood_in)
    path = tmp_path / "model.jsonl"
    line = {**found.requests[0], "measurer": "model:latency", "microseconds": 1.0}
    path.write_text(json.dumps(line) + "\n")
    with pytest.raises(ftuner.Error, match="expected times that were measured: 1 lines are predic"):
        judges.RecordedTimes(path)


def test_learned_models_have_relative_paths(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    options: dict[str, Any] = dict(strategy="dietcode", trials=30, measure_budget=40)
    options.update(measurer="model:latency", cache=False)
    ftuner.compile(source, device="a100", save_model="learned.json", **options)
    assert Path("learned.json").exists()
    arguments = [
        f"--{name.replace('_', '-')}={value}" for name, value in options.items() if name != "cache"
    ]
    arguments += ["--transfer-from=learned.json", "--save-model=second.json", "-o", "t.so"]
    result = run_command("compile", source, "--device=h200", *arguments)
    assert result.returncode == 0 and Path("second.json").exists(), result.stderr


# ------------------------------------------------------------------------------------------------
# Papers
# ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", papers.NAMES)
def test_papers_are_whole(name: str, tmp_path: Path) -> None:
    """Every workload is MLIR, every figure is of a workload and has as many values as sizes."""
    paper = papers.load(name)
    names = {workload.name for workload in paper.workloads}
    assert paper.systems[paper.reference] in paper.strategies
    for reported in paper.reported:
        assert reported.workload in names and reported.source
        values = reported.values.values()
        for value in values:
            assert not isinstance(value, list) or len(value) == max(1, len(reported.sizes))
        assert all(1 <= size <= 128 for size in reported.sizes)
    modules = [workload.text() for workload in paper.workloads]
    path = tmp_path / "all.mlir"
    path.write_text("\n// -----\n".join(modules))
    tool = ftuner.locations.tool("ftuner-opt")  # type: ignore[attr-defined]
    checked = subprocess.run([tool, path, "--split-input-file"], capture_output=True, text=True)
    assert checked.returncode == 0, checked.stderr


def test_figures_beside_those_of_a_paper() -> None:
    paper = papers.load("ftuner")
    (dense,) = (one for one in paper.reported if (one.kind, one.workload) == ("ms", "dense"))
    times = [float(size) for size in range(1, 129)]
    entries = [
        Entry(
            "dense.mlir", "v100", "dense_0", strategy, LATENCY, 2.0, weights=[1.0] * 128,
            sizes=[[size] for size in range(1, 129)], size_sm_use=[0.5] * 128,
            times={LATENCY: [factor * time_us for time_us in times], ROOFLINE: []},
        )
        for strategy, factor in (("ftuner", 1.0), ("roller", 1.5))
    ]  # fmt: skip
    header, rows = paper_comparison.tabulate(paper, Comparison(entries), "v100")
    by_figure = {(row[1], row[2]): row[3:] for row in rows}
    pairs = list(zip(dense.values["roller"], dense.values["ftuner"]))
    expected = math.exp(sum(math.log(r / f) for r, f in pairs) / len(pairs))
    assert by_figure["dense", "time of roller / ftuner"] == [f"{expected:.3f}", "1.500", "-"]
    # No strategy stands for the vendor's library, and the other workloads have no plans.
    assert by_figure["dense", "time of vendor / ftuner"][1:] == ["-", "-"]
    assert by_figure["batch_matmul", "time of roller / ftuner"][1:] == ["-", "-"]
    assert by_figure["dense", "SM use of ftuner, mean (ours: of waves)"][1] == "50.0 %"
    assert header[:2] == ["source", "workload"]


def test_flops_of_gensors_operators() -> None:
    flops = {one.name: one.parts[0].flops for one in papers.load("gensor").workloads}
    assert flops["M1"] == 2 * 8192**3 and flops["V3"] == 2 * 16384 * 1000
    assert flops["C1"] == 2 * 128 * 256 * 14 * 14 * 256 * 9
    assert flops["P3"] == 128 * 617 * 10 * 10 * 9


def test_a_paper_is_compared(state: Path) -> None:
    paper = papers.load("gensor")
    names = ("V1", "P1")
    few = dataclasses.replace(
        paper,
        workloads=[one for one in paper.workloads if one.name in names],
        reported=[one for one in paper.reported if one.workload in names],
    )
    # Without the path of chains, a pooling has no plan.
    roller = "roller:paths=simt"
    found = paper_comparison.run(few, strategies=[roller], code=False, state=state)
    header, rows = paper_comparison.tabulate(few, found, "rtx4090")
    by_figure = {(row[1], row[2]): dict(zip(header, row)) for row in rows}
    row = by_figure["V1", "TFLOP/s of roller"]
    (planned,) = (one for one in found.entries if one.workload == "V1_0")
    time_us = planned.times[LATENCY][0]
    assert (row["source"], row["reported"]) == ("Table VI", "0.23")
    assert time_us and row["latency*"] == f"{2 * 16384**2 / time_us / 1e6:.2f}"
    # Fallback kernels compute a pooling: their bound stands there, and is called one.
    (missing,) = (one for one in found.entries if one.source == "P1.mlir")
    assert missing.bound_us and missing.times == {}
    bound = f"fallback kernels take at least {missing.bound_us:,.1f} µs (a bound) on rtx4090"
    assert missing.failure == f"no uKernel computes it; {bound}"
    text = comparison_text.text(found)
    assert bound in text and "no plan" not in text
    flops = few.workloads[names.index("P1")].parts[0].flops
    assert flops is not None
    at_most = f"at most {flops / missing.bound_us / 1e6:.2f} (bound)"
    assert by_figure["P1", "TFLOP/s of roller"]["latency*"] == at_most


def test_dietcode_searches_for_the_sizes_of_a_paper(state: Path) -> None:
    paper = papers.load("dietcode")
    names = ("batch_nn", "bert_base")
    few = dataclasses.replace(
        paper,
        workloads=[one for one in paper.workloads if one.name in names],
        reported=[one for one in paper.reported if one.workload in names],
    )
    per_shape = "dietcode:dietcode-mode=per-shape:trials=20"
    dense = next(one for one in paper.workloads if one.name == "dense")
    own = paper_comparison._at_sizes(paper, dense, Strategy.parse("dietcode"), {})
    assert own and own.options == {"instance_sizes": "80,384,688,992,1296,1600,1904,2048"}
    found = paper_comparison.run(
        few, strategies=[per_shape, "dietcode:trials=20"], code=False, state=state
    )
    assert [one.workload for one in found.entries if one.strategy == per_shape] == ["batch_nn_0"]
    assert all(one.samples == 8 for one in found.entries if one.source == "batch_nn.mlir")
    assert found.notes[0].startswith("nimble: expected dietcode:dietcode-mode=loop-partitioning")
    assert found.notes[1].startswith(f"{per_shape} is left out of bert_base")
    # One strategy of its name and mode stands for a system.
    _, rows = paper_comparison.tabulate(few, found, "t4")
    by_figure = {(row[1], row[2]): row[3:] for row in rows}
    assert by_figure["batch_nn", "dietcode is faster than ansor"][1] != "-"
    assert by_figure["batch_nn", "dietcode is faster than nimble"][1] == "-"


def test_a_paper_on_other_devices(tmp_path: Path) -> None:
    device = tmp_path / "card.json"
    device.write_text(json.dumps({**ftuner.devices()["v100"], "name": "card"}))
    paper = papers.load("gensor")
    few = dataclasses.replace(
        paper, workloads=[one for one in paper.workloads if one.name in ("V1", "P1")], reported=[]
    )
    options: dict[str, Any] = dict(strategies=["roller"], code=False)
    found = paper_comparison.run(few, device=str(device), **options)
    assert paper_comparison.devices_of(found) == ["card"]
    # An error of all workloads is not a failure of one.
    state = tmp_path / "state.jsonl"
    state.write_text("notes\n")
    with pytest.raises(ftuner.Error, match="state.jsonl:1: expected a plan"):
        paper_comparison.run(few, state=state, **options)
    messages: list[str] = []
    with pytest.raises(
        ftuner.Error, match="option --calibration: expected a file or one of .*, but got 'none'"
    ):
        paper_comparison.run(few, calibration="none", tell=messages.append, **options)
    assert not messages


@pytest.mark.everything
@pytest.mark.parametrize("name", papers.NAMES)
def test_papers_by_the_command(name: str, tmp_path: Path) -> None:
    arguments = ["compare", "--paper", name, "--strategies", "ftuner,roller", "--no-code", "--json"]
    result = run_command(*arguments, "--page", tmp_path / "page.html")
    assert result.returncode == 0, result.stderr
    data = json.loads(result.stdout)
    ((title, rows),) = data["tables"].items()
    assert title.startswith("Reported and predicted, ") and rows
    assert title in (tmp_path / "page.html").read_text()


# ------------------------------------------------------------------------------------------------
# The command and its files
# ------------------------------------------------------------------------------------------------


def test_command(source: Path, state: Path, tmp_path: Path) -> None:
    table, page, programs = (tmp_path / name for name in ("t.csv", "p.html", "programs.jsonl"))
    arguments = ["compare", source, "--device", "v100,h200", "--strategies", "ftuner,random"]
    arguments += ["--cost-models", "latency,sia", "--state", state, "--max-kernels=4"]
    result = run_command(*arguments, "--csv", table, "--page", page, "--programs", programs)
    assert result.returncode == 0, result.stderr
    lines = result.stdout.splitlines()
    assert lines[0].startswith(f"{source} on v100, matmul_0: ")
    assert "code KB" in lines[1] and lines[1].split()[-2:] == ["latency", "roofline"]
    assert [line.split()[:2] for line in lines[2:6]] == [
        ["ftuner", "latency"], ["ftuner", "sia"], ["random", "latency"], ["random", "sia"],
    ]  # fmt: skip
    assert lines[2].count("*") == 1 and lines[3].count("*") == 0
    rows = list(csv.DictReader(table.read_text().splitlines()))
    assert len(rows) == 8 and all(int(row["kernels"]) <= 4 for row in rows)
    assert {row["device"] for row in rows} == {"v100", "h200"}
    assert all(int(row["code_bytes"]) > 1000 and float(row["predicted_us"]) > 0 for row in rows)
    again = run_command(*arguments, "--json")
    data = json.loads(again.stdout)
    assert [row["latency_rank"] for row in data["rows"]] == [
        int(row["latency_rank"]) for row in rows
    ]
    assert [str(row["seconds"]) for row in data["rows"]] == [row["seconds"] for row in rows]
    requests = [json.loads(line) for line in programs.read_text().splitlines()]
    assert requests and set(requests[0]) == {
        "format_version",
        "device",
        "workload",
        "family",
        "shape",
    }
    check_page(page)


class Page(HTMLParser):
    """Reads a page for tests: elements that are open in the end, counts of elements, addresses."""

    EMPTY = ("meta", "path", "circle", "br")

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.counts: dict[str, int] = {}
        self.addresses: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.counts[tag] = self.counts.get(tag, 0) + 1
        self.addresses += [
            str(value) for name, value in attrs if name in ("src", "href", "xlink:href")
        ]
        if tag not in self.EMPTY or not self.get_starttag_text().endswith("/>"):  # type: ignore[union-attr]
            self.open += [tag] if tag != "meta" else []

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.counts[tag] = self.counts.get(tag, 0) + 1

    def handle_endtag(self, tag: str) -> None:
        assert self.open and self.open.pop() == tag


def check_page(path: Path) -> None:
    """The page is whole, needs nothing from elsewhere, and all its values are numbers."""
    text = path.read_text()
    page = Page(text)
    assert page.open == [] and page.addresses == []
    assert not re.search(r"https?://|@import|url\(|<script", text)
    assert "NaN" not in text and "inf" not in re.sub(r"<style>.*?</style>", "", text, flags=re.S)
    # For each device: a table; ranks, and times and losses under two judges; the names of lines.
    assert page.counts["table"] == 2 and page.counts["figure"] == 2 * 5


def browser() -> str | None:
    names = ("chromium", "chromium-headless-shell", "google-chrome")
    return next((path for path in map(shutil.which, names) if path), None)


@pytest.mark.everything
@pytest.mark.skipif(browser() is None, reason="no browser: install chromium-headless-shell")
@pytest.mark.parametrize("scheme", [0, 1], ids=["dark", "light"])
def test_a_browser_opens_the_page(found: Comparison, tmp_path: Path, scheme: int) -> None:
    from PIL import Image

    path, picture = tmp_path / "page.html", tmp_path / "page.png"
    path.write_text(comparison_page.page(found, "Searches"))
    command = [
        str(browser()),
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--window-size=1200,1400",
    ]
    command += [f"--user-data-dir={tmp_path}", f"--blink-settings=preferredColorScheme={scheme}"]
    shown = subprocess.run(
        [*command, "--dump-dom", path.as_uri()], capture_output=True, text=True, timeout=120
    )
    assert shown.stdout.count("<svg") == path.read_text().count("<svg"), shown.stderr
    assert "roller" in shown.stdout
    subprocess.run(
        [*command, f"--screenshot={picture}", path.as_uri()],
        check=True,
        timeout=120,
        capture_output=True,
    )
    image = Image.open(picture).convert("RGB")
    colours = {colour for _, colour in image.getcolors(1 << 24)}
    page, ink, first = [
        ((21, 24, 27), (232, 232, 232), (86, 180, 233)),
        ((255, 255, 255), (27, 27, 27), (0, 114, 178)),
    ][scheme]
    assert image.getpixel((2, 2)) == page and ink in colours and first in colours


def test_growth(source: Path, tmp_path: Path) -> None:
    arguments = ["compare", source, "--device", "v100", "--strategies", "roller", "--no-code"]
    result = run_command(*arguments, "--growth", "2,64", "--page", tmp_path / "growth.html")
    assert result.returncode == 0, result.stderr
    lines = [line.split() for line in result.stdout.splitlines()[2:]]
    assert [line[:3] for line in lines] == [["2", "v100", "roller"], ["64", "v100", "roller"]]
    # Seconds, samples, looked at.
    assert [line[5] for line in lines] == ["2", "64"]
    assert int(lines[0][6].replace(",", "")) < int(lines[1][6].replace(",", ""))
    assert (tmp_path / "growth.html").read_text().count("<figure>") >= 3


def test_ends_are_checked_before_anything_is_planned(tmp_path: Path) -> None:
    text = (Path(__file__).parents[2] / "examples/dense.mlir").read_text()
    path, state = tmp_path / "from.mlir", tmp_path / "state.jsonl"
    path.write_text(text.replace("range<1 to", "range<8 to"))
    result = run_command(
        "compare", path, "--growth", "9,7", "--state", state, "--strategies", "roller"
    )
    assert result.returncode == 1 and "expected a size from 8 on, but got 7" in result.stderr
    assert not state.exists()


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["--strategies", "gensr"], 2, "did you mean gensor?"),
        (
            ["--strategies", "gensor:virtual-threads"],
            2,
            "expected a strategy, or STRATEGY:OPTION=VALUE",
        ),
        (
            ["--strategies", "gensor:virtual-threds=false"],
            2,
            "gensor has no option 'virtual-threds'; did you mean virtual-threads?",
        ),
        (["--strategies", "gensor:cost-model=sia"], 2, "see --cost-models"),
        (["--strategies", "gensor:strategy=roller"], 2, "see --strategies"),
        (["--cost-models", ""], 2, "expected names of"),
        (["--strategy=roller"], 2, "expected --strategies and --cost-models"),
        (["--device", "v1000"], 1, "unknown device 'v1000'"),
        (["--json", "--csv", "-"], 2, "one option that writes to standard output"),
        (["--judge", "model=x"], 2, "expected recorded or simulated"),
        (["--judge", "recorded"], 2, "expected NAME=VALUE"),
        (["--judge", "recorded=none.jsonl"], 1, "cannot read 'none.jsonl'"),
        (["--budget", "5"], 2, "--budget: expected a --measurer"),
        (["--paper", "ftuner"], 2, "expected a source or --paper"),
        (["--growth", "5,x"], 2, "--growth: expected sizes"),
        (["--growth", "²"], 2, "--growth: expected sizes"),
        (["--page", "none/page.html"], 1, "cannot write 'none/page.html'"),
        (["--state", "none/state.jsonl"], 1, "cannot write 'none/state.jsonl'"),
        (["--state", "/"], 1, "cannot read '/'"),
    ],
)
def test_what_is_wrong(source: Path, arguments: list[str], code: int, message: str) -> None:
    result = run_command("compare", source, *arguments)
    assert result.returncode == code, result.stdout + result.stderr
    assert message in result.stderr and "Traceback" not in result.stderr


def test_what_is_wrong_without_a_source() -> None:
    for arguments, message in (
        ([], "expected a source or --paper"),
        (["--paper", "detcode"], "did you mean dietcode?"),
        (["--paper", "ftuner", "--growth", "5"], "--growth: expected a source"),
    ):
        result = run_command("compare", *arguments)
        assert result.returncode == 2 and message in result.stderr


def test_logs_that_are_none(tmp_path: Path, found: Comparison) -> None:
    path = tmp_path / "log.jsonl"
    for text, message in (
        ("hello\n", "log.jsonl:1: expected a line of a log"),
        ('{"device": "v100"}\n', "log.jsonl:1: expected a line of a log"),
        (
            json.dumps({**found.requests[0], "microseconds": -1}) + "\n",
            "log.jsonl:1: expected a line",
        ),
        (
            json.dumps({**found.requests[0], "microseconds": math.inf}) + "\n",
            "log.jsonl:1: expected a line",
        ),
        (
            json.dumps({**found.requests[0], "microseconds": True}) + "\n",
            "log.jsonl:1: expected a line",
        ),
        ("", "expected times that were measured"),
        (json.dumps(found.requests[0]) + "\n", "expected times that were measured"),
    ):
        path.write_text(text)
        with pytest.raises(ftuner.Error, match=message):
            judges.RecordedTimes(path)
    # A last line without an end counts.
    path.write_text(json.dumps({**found.requests[0], "device": "t4", "microseconds": 1}))
    with pytest.raises(ftuner.Error, match="expected measurements of v100, but got those of t4"):
        comparison.compare(MATMUL, device="v100", judged_by={"recorded": path})


def test_a_source_that_no_strategy_plans(tmp_path: Path) -> None:
    path = tmp_path / "broken.mlir"
    path.write_text("func.func @f() {")
    page = tmp_path / "page.html"
    result = run_command("compare", path, "--page", page)
    assert result.returncode == 1 and "error: " in result.stderr
    assert [*tmp_path.iterdir()] == [path]
