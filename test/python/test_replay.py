"""Replays of a model's launches: streams, gaps, figures and traces; `ftuner predict` (docs/replay.md)."""

from __future__ import annotations

import importlib
import json
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import ftuner
from commands import run_command
from ftuner import compiler
from ftuner.describe import kept_explanations, prediction, replay, timeline, work
from ftuner.host import cache
from ftuner.latency import vendor
from handmade import ROOT
from models import MATMUL

ATTENTION = ROOT / "examples" / "attention.mlir"


# --- by hand -------------------------------------------------------------------------


def makespan(
    durations: list[float],
    after: list[tuple[int, ...]],
    queues: int,
    gap: float = 0.0,
    interval: float = 0.0,
) -> float:
    return replay.makespan(
        replay.replay(replay.assign(durations, after, queues, gap, interval), gap, interval)
    )


#: a (5) → b (3), c (4) → d (1), which waits for both.
DIAMOND = ([5.0, 3.0, 4.0, 1.0], [(), (0,), (0,), (1, 2)])


def test_streams_by_hand() -> None:
    assert makespan(*DIAMOND, 1) == 13
    # b stays behind a, c runs beside it, d follows c, which ends last.
    assert makespan(*DIAMOND, 2) == 10
    assert [launch.queue for launch in replay.assign(*DIAMOND, 2)] == [0, 0, 1, 1]
    assert makespan(*DIAMOND, 5) == 10
    # With gaps of 2: a 0 to 5, b 7 to 10, c 7 to 11, d 13 to 14. On one stream 3 gaps between 4 launches.
    assert makespan(*DIAMOND, 2, gap=2) == 14
    assert makespan(*DIAMOND, 1, gap=2) == 13 + 3 * 2
    # What does not depend is spread: 4 launches of 2 on 1, 2, 3 and 4 streams.
    assert [makespan([2.0] * 4, [()] * 4, queues) for queues in (1, 2, 3, 4)] == [8, 4, 4, 2]


def test_streams_run_their_launches_in_order() -> None:
    # The last one is ready before the second, but behind it on the stream.
    placed = replay.replay(replay.assign([5.0, 1.0, 2.0], [(), (0,), ()], 1))
    assert [(item.launch, item.start) for item in placed] == [(0, 0), (1, 5), (2, 6)]
    launches = replay.assign([1.0, 6.0, 2.0, 3.0], [(), (), (1,), (0,)], 2)
    assert [launch.queue for launch in launches] == [0, 1, 1, 0]
    for queues in (1, 2, 3):
        placed = replay.replay(replay.assign([1.0, 6.0, 2.0, 3.0], [(), (), (1,), (0,)], queues))
        placed_by_launch = {item.launch: item for item in placed}
        assert (
            placed_by_launch[2].start >= placed_by_launch[1].end
            and placed_by_launch[3].start >= placed_by_launch[0].end
        )
    # 3 follows 2 on the stream that is free behind the gap of 2, and 1 has 6 for itself.
    order = ([1.0, 6.0, 1.0, 1.0, 1.0, 1.0, 2.0], [(), (), (0,), (2,), (3,), (4,), ()])
    assert replay.makespan(replay.replay(replay.assign(*order, 2, 3), 3)) == 17
    # No gap follows a launch without kernels, and the three kernels of the second have two gaps.
    launches = replay.assign([2.0, 6.0, 0.0, 2.0], [()] * 4, 1, 5, kernels=[1, 3, 0, 1])
    placed = replay.replay(launches, 5)
    assert [(item.start, item.end) for item in placed] == [(0, 2), (7, 23), (28, 28), (28, 30)]
    with pytest.raises(ValueError, match="at least 1"):
        replay.assign([1.0], [()], 0)
    with pytest.raises(ValueError, match="not before it"):
        replay.assign([1.0, 1.0], [(1,), ()], 1)


def placed(
    durations: list[float], *arguments: Any, kernels: list[int] | None = None
) -> list[tuple[float, ...]]:
    """Issue, start and end of each launch."""
    after, queues, gap, interval = arguments
    found = replay.replay(
        replay.assign(durations, after, queues, gap, interval, kernels), gap, interval
    )
    return [
        (item.issue, item.start, item.end) for item in sorted(found, key=lambda item: item.launch)
    ]


def test_the_host_issues_launches() -> None:
    """A kernel starts once its stream is free and its issue has ended."""
    chain: list[tuple[int, ...]] = [(), (0,), (1,)]
    # A host that is slower than the device determines the time, except for the last kernel.
    assert placed([1.0, 1.0, 1.0], chain, 1, 0, 4) == [(0, 4, 5), (4, 8, 9), (8, 12, 13)]
    # A faster host shows only at the first kernel; during a long kernel it gets ahead.
    assert placed([9.0, 9.0, 9.0], chain, 1, 0, 4) == [(0, 4, 13), (4, 13, 22), (8, 22, 31)]
    assert placed([9.0, 1.0, 1.0], chain, 1, 0, 4) == [(0, 4, 13), (4, 13, 14), (8, 14, 15)]
    # Gaps are the device's: the host does not wait for them.
    assert placed([1.0, 1.0, 1.0], chain, 1, 5, 4) == [(0, 4, 5), (4, 10, 11), (8, 16, 17)]
    assert makespan([1.0, 1.0, 1.0], chain, 1, gap=2, interval=4) == 13
    # One host for all streams: 4 launches of 2 that do not depend, issued every 3, gain nothing from a second one.
    assert [makespan([2.0] * 4, [()] * 4, queues, interval=3) for queues in (1, 2, 4)] == [
        14,
        14,
        14,
    ]
    assert {launch.queue for launch in replay.assign([2.0] * 4, [()] * 4, 4, interval=3)} == {0}
    # Every 1 they do: at 1, 2, 3, and on the first stream again, at 4 in place of 3.
    assert [makespan([2.0] * 4, [()] * 4, queues, interval=1) for queues in (1, 2, 3, 4)] == [
        9,
        6,
        6,
        6,
    ]
    # The diamond: a 3 to 8, b 8 to 11, c issued until 9, 9 to 13, d issued until 12, 13 to 14.
    assert makespan(*DIAMOND, 2, interval=3) == 14
    # Three kernels of 2 each: issued until 3, 6 and 9 they end at 11, two at once behind a long one by the device alone.
    assert placed([6.0, 1.0], [(), ()], 1, 0, 3, kernels=[3, 1]) == [(0, 3, 11), (9, 12, 13)]
    assert placed([20.0, 4.0], [(), ()], 1, 0, 3, kernels=[1, 2]) == [(0, 3, 23), (3, 23, 27)]
    # Nothing is issued for what does not happen.
    assert placed([1.0, 0.0, 1.0], [(), (), ()], 1, 0, 3, kernels=[1, 0, 1]) == [
        (0, 3, 4),
        (3, 4, 4),
        (3, 6, 7),
    ]
    # A queue runs what is ready first: the last but one, behind the second, before the last is issued.
    launches = [replay.Launch(name, 1.0) for name in "ab"] + [
        replay.Launch("c", 1.0, 1, (1,)),
        replay.Launch("d", 1.0, 1),
    ]
    assert [(item.launch, item.start) for item in replay.replay(launches, interval=1)] == [
        (0, 1),
        (1, 2),
        (2, 3),
        (3, 4),
    ]


def test_kernels_of_a_launch_differ() -> None:
    """As if each of them were a launch."""

    def end(turn: tuple[float, ...], turns: int, interval: float, gap: float = 0.0) -> float:
        arguments = (turns * sum(turn), [()], 1, gap, interval, [turns * len(turn)], [turn])
        return replay.makespan(
            replay.replay(replay.assign([arguments[0]], *arguments[1:]), gap, interval)
        )

    # A product, and the kernel that sums its slices once it is issued.
    assert end((37.0, 3.0), 1, 37) == 77 and end((20.0, 3.0), 1, 20) == 43
    assert end((3.0, 20.0), 1, 20) == 60
    random = np.random.default_rng(3)
    for _ in range(300):
        turn = tuple(random.choice([0.5, 2.0, 9.0, 30.0], random.integers(1, 4)).tolist())
        turns = int(random.integers(1, 5))
        gap, interval = random.choice([0.0, 1.5]), random.choice([0.0, 1.0, 7.0, 12.0])
        kernels = [*turn] * turns
        chain = [(i - 1,) if i else () for i in range(len(kernels))]
        assert end(turn, turns, interval, gap) == pytest.approx(
            makespan(kernels, chain, 1, gap, interval)
        )
    with pytest.raises(ValueError, match="launch 0: turns of .* do not make up 3 kernels of 5.0"):
        replay.assign([5.0], [()], 1, kernels=[3], turns=[(2.0, 3.0)])
    with pytest.raises(ValueError, match="do not make up"):
        replay.assign([6.0], [()], 1, kernels=[2], turns=[(2.0, 3.0)])


# --- explanations --------------------------------------------------------------------


def explained() -> dict[str, Any]:
    """An explanation of five launches: a sliced product, a loop, one without elements, one unknown."""
    program = {"path": "simt", "reduce_split": 4, "metrics": {"blocks": 12}}
    fallback = {
        "operator": "linalg.generic",
        "location": "x.mlir:2:1",
        "launches": 1,
        "blocks": "T",
    }
    return {
        "device": "v100", "cost_model": "latency", "calibration": "v100-pcie",
        "workloads": [
            {"name": "f_0", "equal_workloads": [], "shapes": [{"shape": [8, 64, 32], "program": program}]}
        ],
        "functions": [{
            "symbol": "f",
            "work": {
                "sizes": ["T"], "size_ranges": [[1, 16]], "shares": [{"sizes": {"T": 8}}],
                "workloads": [{
                    "workload": "f_0", "kernels_of": "f_0", "axes": ["M", "N", "K"], "extents": ["T", 64, 32],
                    "operator": "ukernel.workload", "location": "", "launches": 1, "predicted_us": [10.0],
                    "position": 1, "after": [],
                }],
                "fallback_kernels": [
                    {**fallback, "kernel": "k0", "predicted_us": [3.0], "position": 0, "after": [], "copied": "why k0"},
                    {**fallback, "kernel": "k2", "predicted_us": [8.0], "position": 2, "after": [0, 1], "launches": "T floordiv 2"},
                    {**fallback, "kernel": "k3", "predicted_us": [None], "position": 3, "after": [2], "launches": None},
                    {**fallback, "kernel": "k4", "predicted_us": [0.0], "position": 4, "after": [3]},
                ],
            },
        }],
    }  # fmt: skip


def test_kinds_are_those_of_operators() -> None:
    for kind, expected in (
        ("contraction", "other products"), ("window", "windows"), ("reduction", "other rows"),
        ("copy", "moving"), ("elementwise", "computing"),
    ):  # fmt: skip
        assert work.kind_of({"operator": "linalg.generic", "kind": kind}) == expected
    # Libraries of earlier versions do not tell.
    assert work.kind_of({"operator": "linalg.conv_2d"}) == "moving"
    assert work.kind_of({"operator": "linalg.generic (math.exp)"}) == "computing"
    chain = {"operator": "ukernel.pointwise (math.exp)", "axes": ["P"], "extents": [8]}
    assert work.kind_of({**chain, "kind": "elementwise"}) == "computing"
    assert work.kind_of({**chain, "kind": "copy"}) == "moving"
    product = {"operator": "ukernel.workload", "axes": ["M", "N", "K"], "extents": ["T", 64, 32]}
    assert work.kind_of({**product, "kind": "contraction"}) == "linear"
    assert work.kind_of({**product, "kind": "window"}) == "windows"


def test_a_timeline_of_an_explanation() -> None:
    (one,) = timeline.timelines(explained())
    assert repr(one) == "<Timeline of f on v100, T = 8: 8 kernels, 21.0 µs predicted>"
    assert str(one) == one.text() and one._repr_html_().startswith("<pre>Timeline of f")
    assert [launch.name for launch in one.launches] == ["k0", "f_0", "k2", "k3", "k4"]
    # The product adds slices in a second kernel, the loop has four turns, and what has no elements is not launched.
    assert [launch.kernels for launch in one.launches] == [1, 2, 4, 1, 0]
    assert one.kernels == 8 and one.unknown == 1 and one.launches[3].is_in_open_loop
    assert one.launches[1].shape == {"M": 8, "N": 64, "K": 32} and one.launches[1].blocks == 12
    assert one.launches[0].blocks == 8 and one.launches[0].path is None
    assert one.sum == one.latency == 21
    assert one.fallback_share == pytest.approx(11 / 21)
    assert one.by("kind") == [
        {"kind": "moving", "kernels": 6, "us": 11.0, "share": 11 / 21},
        {"kind": "linear", "kernels": 2, "us": 10.0, "share": 10 / 21},
    ]
    # A gap between any two of the kernels, of which the last two are at the end.
    (with_gaps,) = timeline.timelines(explained(), gap=1)
    assert with_gaps.placed[2].end == 21 + 6 and with_gaps.sum == 21
    # The last one does not happen; that before it, of which no time is known, is one more kernel.
    assert with_gaps.latency == 28
    # Eight kernels, issued every 4: the loop of the third ends with its last kernel, issued until 28.
    (issued,) = timeline.timelines(explained(), launch_interval=4)
    assert [place.issue for place in issued.placed] == [0, 4, 12, 28, 32]
    assert [place.end for place in issued.placed] == [7, 18, 30, 32, 32]
    assert issued.latency == 32 and issued.host == 32 and issued.sum == 21
    assert "the host issues a kernel every 4 µs, all of them in 32.0 µs" in issued.text(0)
    assert "host" not in one.text(None)
    # The sums take 3 of the product's 10: issued until 8 and 12, it ends at 15 + 3.
    explanation = explained()
    explanation["workloads"][0]["shapes"][0]["program"]["predicted_terms"] = [
        {"name": "second_kernel", "us": 3.0, "share": 0.3}
    ]
    (apart,) = timeline.timelines(explanation, launch_interval=4)
    assert apart.launches[1].turn == (7, 3) and apart.placed[1].end == 18
    (slow,) = timeline.timelines(explanation, launch_interval=9)
    assert slow.placed[1].start == 18 and slow.placed[1].end == 30
    (alike,) = timeline.timelines(explained(), launch_interval=9)
    assert alike.launches[1].turn == () and alike.placed[1].end == 32
    data = issued.as_json()
    assert (
        data["launch_interval_us"] == 4
        and data["host_us"] == 32
        and data["launches"][2]["issue_us"] == 12
    )
    (two,) = timeline.timelines(explained(), streams=2)
    assert two.latency == 18 and [place.stream for place in two.placed] == [0, 1, 1, 1, 1]
    for text in (one.text(), two.text(None)):
        assert "sum of 8 kernels 21.0 µs" in text and "1 launch is not in it" in text
    assert "k2" not in one.text(0) and "… 3 launches …" in one.text(2) and "f_0" not in one.text(2)
    listed = {
        count: [name for name in ("k0", "f_0", "k2", "k3", "k4") if f" {name} " in one.text(count)]
        for count in (1, 3, 4, 5)
    }
    assert listed == {
        1: ["k0"],
        3: ["k0", "f_0", "k4"],
        4: ["k0", "f_0", "k3", "k4"],
        5: ["k0", "f_0", "k2", "k3", "k4"],
    }
    assert "… 4 launches …" in one.text(1) and "…" not in one.text(5)
    # The row of a copy says why it is there.
    (row,) = [line for line in one.text(1).splitlines() if " k0 " in line]
    assert row.endswith("linalg.generic: why k0") and one.launches[1].copied == ""
    assert [launch["copied"] for launch in data["launches"][:2]] == ["why k0", ""]
    with pytest.raises(ValueError, match="most: expected a number from 0 on, but got -1"):
        one.text(-1)
    with pytest.raises(ValueError, match="streams"):
        timeline.timelines(explained(), streams=0)
    with pytest.raises(ValueError, match="gap"):
        timeline.timelines(explained(), gap=float("nan"))
    with pytest.raises(
        ValueError, match="gap: expected microseconds from 0 to 1000000, but got 1e\\+308"
    ):
        timeline.timelines(explained(), gap=1e308)
    with pytest.raises(
        ValueError, match="launch_interval: expected microseconds from 0 to 1000000, but got -1"
    ):
        timeline.timelines(explained(), launch_interval=-1)
    with pytest.raises(ValueError, match="streams: expected a whole number, but got 1.5"):
        timeline.timelines(explained(), streams=1.5)  # type: ignore[arg-type]
    with pytest.raises(ftuner.Error, match="no lowering"):
        timeline.timelines({**explained(), "functions": None})


def test_sizes_that_nobody_gave() -> None:
    data = {**explained(), "sizes": [{"M": 8}]}
    (one,) = timeline.timelines(data)
    # The axis M is just T.
    assert one.missing == () and one.beyond == {}
    work = data["functions"][0]["work"]
    work["shares"] = [{"sizes": {"T": 17}}]
    (one,) = timeline.timelines(data)
    assert (
        one.beyond == {"T": (1, 16)}
        and "  T = 17 is beyond its range, 1 to 16" in one.text().splitlines()
    )
    assert (
        one.as_json()["sizes_beyond_range"] == {"T": [1, 16]}
        and one.as_json()["sizes_not_given"] == []
    )
    data["sizes"] = [{"Q": 8}]
    (one,) = timeline.timelines(data)
    assert one.as_json()["sizes_not_given"] == ["T"] and one.beyond == {}
    assert "  T is not given: 17, the middle of its range" in one.text().splitlines()


def test_names_of_formulas() -> None:
    """Names may have spaces, brackets and signs, and letters of other words."""
    kernel = {
        "kernel": "k",
        "operator": "T",
        "blocks": "x(y)*2 * 4",
        "launches": "(a b + 1) floordiv 2",
        "flops": "f * 3",
    }
    data = {
        "sizes": ["T", "a", "a b", "x(y)*2", "f", "u"],
        "workloads": [],
        "fallback_kernels": [kernel],
    }
    assert work.missing_sizes(data, ["a"]) == ["a b", "x(y)*2", "f"]
    assert work.missing_sizes(data, ["a b", "f", "x(y)*2"]) == []
    assert work.evaluate("(a b + 1) floordiv 2", {"a": 100, "a b": 7, "f": 50}) == 4
    assert work.evaluate("f floordiv 2", {"f": 9}) == 4


def check_trace(trace: dict[str, Any]) -> Counter[str]:
    """Checks events against the Trace Event Format; returns their number by phase."""
    assert set(trace) == {"traceEvents", "displayTimeUnit"} and trace["displayTimeUnit"] in (
        "ms",
        "ns",
    )
    names: dict[tuple[int, int], str] = {}
    slices: dict[tuple[int, int], list[tuple[float, float]]] = {}
    flows: dict[int, list[str]] = {}
    for event in trace["traceEvents"]:
        assert (
            isinstance(event["name"], str)
            and isinstance(event["ts"], (int, float))
            and event["ts"] >= 0
        )
        assert isinstance(event["pid"], int) and isinstance(event["tid"], int)
        thread = (event["pid"], event["tid"])
        if event["ph"] == "M":
            assert event["name"] in ("process_name", "thread_name")
            if event["name"] == "thread_name":
                names[thread] = event["args"]["name"]
        elif event["ph"] == "X":
            assert event["dur"] >= 0 and event["cat"] and isinstance(event["args"], dict)
            slices.setdefault(thread, []).append((event["ts"], event["ts"] + event["dur"]))
        else:
            assert event["ph"] in "sf" and isinstance(event["id"], int) and event["cat"]
            assert event["ph"] == "s" or event["bp"] == "e"
            flows.setdefault(event["id"], []).append(event["ph"])
            # Viewers bind a flow to the slice around it.
            assert any(start <= event["ts"] <= end for start, end in slices[thread])
    assert set(slices) <= set(names)
    assert all(phases == ["s", "f"] for phases in flows.values())
    for of_thread in slices.values():  # Slices of a thread nest or follow one another.
        of_thread.sort()
        assert all(end <= start + 1e-6 for (_, end), (start, _) in zip(of_thread, of_thread[1:]))
    return Counter(event["ph"] for event in trace["traceEvents"])


def test_traces_and_figures(tmp_path: Path) -> None:
    found = timeline.timelines(explained(), streams=2) + timeline.timelines(explained())
    counts = check_trace(json.loads(timeline.trace_text(found)))
    # Two processes, three threads, ten launches, and one that waits for another stream.
    assert counts == {"M": 5, "X": 10, "s": 1, "f": 1}
    # The host is a separate thread that issues the four launches that happen, so slowly that one stream runs all.
    issued = timeline.timelines(explained(), streams=2, launch_interval=4)
    events = timeline.trace(issued)["traceEvents"]
    assert check_trace({"traceEvents": events, "displayTimeUnit": "ns"}) == {"M": 4, "X": 9}
    host = [(event["ts"], event["dur"]) for event in events if event.get("cat") == "host"]
    assert host == [(0, 4), (4, 8), (12, 16), (28, 4)]
    assert {event["tid"] for event in events if event.get("cat") == "host"} == {2}
    pytest.importorskip("matplotlib")
    content = timeline.draw(issued, tmp_path / "host.svg").read_text()
    assert "v100, T = 8, host" in content and "v100, T = 8, stream 1" in content
    for suffix, start in ((".png", b"\x89PNG"), (".svg", b"<?xml"), (".pdf", b"%PDF")):
        path = timeline.draw(found, tmp_path / f"x{suffix}")
        content = path.read_bytes()
        assert content.startswith(start)
        assert suffix != ".svg" or b"host" not in content
        assert suffix != ".svg" or (
            b"18 \xc2\xb5s" in content and b"v100, T = 8, stream 1" in content
        )
    functions = [one for name in "gh" for one in timeline.timelines(
        {**explained(), "functions": [{**explained()["functions"][0], "symbol": name}]})]  # fmt: skip
    content = timeline.draw(functions, tmp_path / "two.svg").read_text()
    assert "g, h, predicted by latency" in content
    assert "g, v100, T = 8" in content and "h, v100, T = 8" in content
    with pytest.raises(ftuner.Error, match="ends in one of"):
        timeline.draw(found, tmp_path / "x.gif")
    with pytest.raises(ftuner.Error, match="no timeline"):
        timeline.draw([], tmp_path / "x.svg")


# --- commands ------------------------------------------------------------------------


def ok(*arguments: Any) -> str:
    result = run_command(*arguments)
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


def fails(code: int, message: str, *arguments: Any) -> None:
    result = run_command(*arguments)
    assert result.returncode == code, result.stdout + result.stderr
    assert message in result.stderr and "Traceback" not in result.stderr, result.stderr


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("sources") / "matmul.mlir"
    path.write_text(MATMUL)
    return path


def test_explain_has_the_timeline(source: Path, tmp_path: Path) -> None:
    trace, figure = tmp_path / "trace.json", tmp_path / "figure.svg"
    explain = ("explain", ATTENTION, "--device", "v100", "--max-kernels=2", "--size", "B=2,T=64")
    pytest.importorskip("matplotlib")
    data = json.loads(
        ok(*explain, "--json", "--trace", trace, "--timeline", figure, "--streams", 2)
    )
    (one,) = data["timelines"]
    (share,) = data["functions"][0]["work"]["shares"]
    assert one["sum_us"] == pytest.approx(share["ukernel_us"] + share["fallback_us"])
    assert one["sum_us"] >= one["replay_us"] > 0 and one["sizes"] == {"B": 2, "T": 64}
    launches = one["launches"]
    assert [launch["after"] for launch in launches if launch["kind"] == "softmax"] == [[0]]
    for launch in launches:
        assert all(launches[other]["end_us"] <= launch["start_us"] for other in launch["after"])
    assert check_trace(json.loads(trace.read_text()))["X"] == len(launches)
    assert figure.read_text().startswith("<?xml")
    matmul = ("explain", source, "--device", "v100", "--max-kernels=2")
    several = (*matmul, "--size=T=4,T=9", "--launch-interval=7")
    lines = ok(*several).splitlines()
    assert lines[-4] == "matmul, predicted by latency, a kernel issued every 7 µs"
    assert [line.split()[:2] for line in lines[-2:]] == [["v100", "4"], ["v100", "9"]]
    text = ok(*several, "--all")
    assert text.count("the host issues a kernel every 7 µs") == 2
    assert "Workload matmul_0" in text
    assert (
        "Timeline of matmul on v100, T = 4" in text and "Timeline of matmul on v100, T = 9" in text
    )
    assert "timelines" not in json.loads(ok(*matmul, "--json"))


def test_the_sum_is_that_of_compiled_models(source: Path) -> None:
    """At sizes that the search looked at, what the manifest has for whole models."""
    module = ftuner.compile(source, device="v100", emulate=False, max_kernels=2)
    (function,) = module.functions.values()
    share = function.report.data["shares"][-1]
    (one,) = ftuner.predict(source, share["sizes"], device="v100", max_kernels=2)
    assert one.sum == pytest.approx(share["ukernel_us"] + share["fallback_us"])
    assert one.latency == pytest.approx(one.sum)


def test_predict(source: Path, tmp_path: Path) -> None:
    text = ok("predict", source, "--device=v100", "--size=T=8", "--max-kernels=2")
    assert text.splitlines()[0].endswith(" ms predicted for matmul on v100, T = 8")
    # The first dimension of the first tensor is the batch, whatever it is called.
    assert ok("predict", source, "--device=v100", "--batch=8", "--max-kernels=2") == text
    trace = tmp_path / "trace.json"
    several = ("--device=v100,a100", "--size=T=8,T=16", "--max-kernels=2", "--trace", trace)
    lines = ok("predict", source, *several).splitlines()
    assert lines[0] == "matmul, predicted by latency"
    issued = ok(
        "predict", source, *several[:3], "--streams=2", "--gap=3", "--launch-interval=7"
    ).splitlines()
    assert (
        issued[0]
        == "matmul, predicted by latency, 2 streams, gaps of 3 µs, a kernel issued every 7 µs"
    )
    assert lines[1].split()[:2] == ["device", "T"]
    assert [line.split()[:2] for line in lines[2:]] == [
        [card, size] for card in ("v100", "a100") for size in ("8", "16")
    ]
    assert check_trace(json.loads(trace.read_text()))["M"] == 8
    data = json.loads(ok("predict", source, "--device=v100", "--size=T=8", "--max-kernels=2", "--json", "--gap=3",
                         "--launch-interval=1000"))  # fmt: skip
    assert data[0]["gap_us"] == 3 and data[0]["device"] == "v100"
    assert data[0]["launch_interval_us"] == 1000 and data[0]["host_us"] == 1000 * data[0]["kernels"]
    last = data[0]["launches"][-1]
    assert data[0]["replay_us"] == last["end_us"] > 1000 * data[0]["kernels"]


def test_predictions_are_kept(source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A model is not planned again for what was predicted before, unless something differs."""
    asked = []
    known = kept_explanations.explain_data
    monkeypatch.setattr(
        kept_explanations,
        "explain_data",
        lambda *args, **more: asked.append(args) or known(*args, **more),
    )

    def predict(size: int, **more: Any) -> Any:
        (one,) = ftuner.predict(source, {"T": size}, **{"device": "v100", "max_kernels": 1, **more})
        return one.as_json()

    cache.clear()
    first = predict(8)
    assert predict(8) == first and len(asked) == 1
    for count, more in enumerate(({"max_kernels": 2}, {"device": "a100"}), 2):
        predict(8, **more)
        assert len(asked) == count
    assert predict(9) != first and len(asked) == 4
    # Damaged files are written again.
    for file in cache.explanations_folder().iterdir():
        content = json.loads(file.read_text())
        content["data"]["functions"] = []
        file.write_text(json.dumps(content) if len(asked) % 2 else "{")
    assert predict(8) == first and len(asked) == 5
    cache.clear()
    assert not [*cache.explanations_folder().iterdir()]


def test_wrong_predictions(source: Path, tmp_path: Path) -> None:
    trace = tmp_path / "trace.json"
    predict = ("predict", source, "--device=v100", "--max-kernels=2", "--trace", trace)
    fails(1, "unknown name 'Q': expected one of T", *predict, "--size=Q=3")
    fails(1, "expected T from 1 to 16, but got 17", *predict, "--size=T=17")
    fails(1, "expected T from 1 to 16, but got 0", *predict, "--size=T=0")
    fails(1, "the sizes T are not known", *predict)
    fails(1, "T is 4 by its name, but got 8", *predict, "--size=T=4", "--batch=8")
    fails(
        1,
        "expected one of the functions matmul, but got 'g'",
        *predict,
        "--size=T=4",
        "--function=g",
    )
    fails(2, "expected a number from 1 to 1024", *predict, "--size=T=4", "--streams=0")
    for option, value in (
        *(("gap", value) for value in ("-1", "1e308", "inf", "nan")),
        ("launch-interval", "-1"),
    ):
        fails(2, f"option --{option}: expected microseconds from 0 to 1000000, but got '{value}'",
              *predict, "--size=T=4", f"--{option}={value}")  # fmt: skip
    fails(2, "expected different devices", *predict[:2], "--size=T=4", "--device=v100,v100")
    fails(1, "unknown device 'nope'", *predict[:2], "--size=T=4", "--device=nope,v100")
    for command in ("predict", "explain"):
        fails(
            1,
            "cannot write",
            command,
            source,
            "--size=T=4",
            "--trace",
            tmp_path / "none" / "x.json",
        )
        fails(1, "ends in one of", command, source, "--size=T=4", "--timeline", tmp_path / "x.gif")
        fails(2, "expected the name of a file", command, source, "--size=T=4", "--trace=-")
        same = tmp_path / "same.svg"
        fails(
            2,
            "expected another file than --timeline",
            command,
            source,
            "--size=T=4",
            "--trace",
            same,
            "--timeline",
            same,
        )
        assert not same.exists()
    for options in (
        ("--trace", trace),
        ("--streams=1",),
        ("--gap=0",),
        ("--launch-interval=0",),
        ("--launches",),
    ):
        name = options[0].partition("=")[0]
        fails(2, f"option {name}: expected --size", "explain", source, *options)
        fails(
            2,
            f"option {name}: expected --size",
            "explain",
            source,
            "--plot",
            tmp_path / "x.svg",
            *options,
        )
    assert not trace.exists()
    fixed = tmp_path / "fixed.mlir"
    fixed.write_text(MATMUL.replace("?", "12").replace('{ukernel.shape = ["T", 32]}', "")
                     .replace("tensor.empty(%t)", "tensor.empty()"))  # fmt: skip
    fails(
        1,
        "the model has a fixed batch of 12, but got 3",
        "predict",
        fixed,
        "--device=v100",
        "--batch=3",
    )
    assert "matmul on v100\n" in ok(
        "predict", fixed, "--device=v100", "--batch=12", "--max-kernels=2"
    )


def changed(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "changed.mlir"
    path.write_text(text)
    return path


def test_sizes_without_symbols(tmp_path: Path) -> None:
    """A dynamic dimension has its own name, which also tells the axis, and the other way round."""
    source = changed(tmp_path, MATMUL.replace('{ukernel.shape = ["T", 32]}', ""))
    predict = ("predict", source, "--device=v100", "--max-kernels=2")
    text = ok(*predict, "--size=a_dim0=8")
    assert text.splitlines()[0].endswith(" ms predicted for matmul on v100, a_dim0 = 8")
    assert ok(*predict, "--size=M=8") == ok(*predict, "--batch=8") == text
    fails(1, "the sizes a_dim0 are not known", *predict)
    # A number before the tensor.
    scalar = changed(tmp_path, source.read_text().replace("@matmul(", "@matmul(%s: f32, ", 1))
    assert "matmul on v100, a_dim0 = 8" in ok("predict", scalar, *predict[2:], "--batch=8")


#: Two functions with a size each, and words that are not functions.
FUNCTIONS = """
// Try T = #ukernel.range<1 to 4>, {ukernel.shape = ["batch", 64]}.
module attributes {ukernel.symbols = {T = #ukernel.range<1 to 128>, N = #ukernel.range<1 to 64>}} {
""" + "".join(
    f"""
  func.func @{name}(%x: tensor<?x64xf32> {{ukernel.shape = ["{size}", 64]}}, %w: tensor<64x{width}xf32>) -> tensor<?x{width}xf32> {{
    %c0 = arith.constant 0 : index
    %zero = arith.constant 0.0 : f32
    %t = tensor.dim %x, %c0 : tensor<?x64xf32>
    %empty = tensor.empty(%t) : tensor<?x{width}xf32>
    %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<?x{width}xf32>) -> tensor<?x{width}xf32>
    %p = linalg.matmul ins(%x, %w : tensor<?x64xf32>, tensor<64x{width}xf32>) outs(%init : tensor<?x{width}xf32>) -> tensor<?x{width}xf32>
    return %p : tensor<?x{width}xf32>
  }}
"""
    for name, size, width in (("first", "T", 64), ("second", "N", 128))
) + "}\n"  # fmt: skip


def test_functions_of_different_sizes(tmp_path: Path) -> None:
    source = changed(tmp_path, FUNCTIONS)
    predict = ("predict", source, "--device=v100", "--max-kernels=2", "--size=T=9")
    assert "first on v100, T = 9\n" in ok(*predict, "--size=N=5", "--function=first")
    assert "second on v100, N = 5\n" in ok(*predict, "--size=N=5", "--function=second")
    # Sizes of the other function need not be given.
    assert "first on v100, T = 9\n" in ok(*predict, "--function=first")
    fails(
        1, "expected a size of 'N' for axis M of workload 'second_0'", *predict, "--function=second"
    )
    fails(
        1,
        "expected one of the functions first, second, but got 'frist'; did you mean first?",
        *predict,
        "--function=frist",
    )
    # The batch of the first is its first dimension, that of the second is called N.
    assert "second on v100, N = 6\n" in ok(*predict, "--batch=6", "--function=second")
    fails(
        1, "T is 9 by its name, but got 6", *predict, "--batch=6", "--size=N=5", "--function=first"
    )
    fails(1, "choose one: first, second", *predict, "--size=N=5")
    fails(
        1,
        "expected T from 1 to 128, but got 129",
        *predict[:-1],
        "--size=T=129,N=5",
        "--function=first",
    )


def test_the_batch_is_a_first_dimension(tmp_path: Path) -> None:
    # N is the second dimension of the weights.
    source = changed(
        tmp_path, FUNCTIONS.replace('["T", 64]', '["T", "N"]').replace("x64xf32> {", "x?xf32> {")
    )
    arguments = prediction._arguments(source.read_text())
    assert arguments["first"][0] == prediction._Argument("?", "T", "x")
    text = compiler.read_source(source)
    assert (
        prediction._batch_name(text, 3, "first") == "T"
        and prediction._batch_name(text, 3, "second") == "N"
    )
    with pytest.raises(ValueError, match="batch: expected a whole number, but got 2.5"):
        ftuner.predict(source, batch=2.5)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="sizes: T: expected a whole number, but got '8'"):
        ftuner.predict(source, {"T": "8"})  # type: ignore[dict-item]


def test_whole_models_of_operators(monkeypatch: pytest.MonkeyPatch) -> None:
    """benchmarks/cpu/replay_models.py, which needs tables that are not part of the repository."""
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks" / "cpu"))
    models = importlib.import_module("replay_models")

    def operator(name: str, output: str, inputs: str) -> Any:
        row = {
            "op": name,
            "output_shape": output,
            "input_shapes": inputs,
            "times": "3",
            "latency_us": "2.5",
        }
        return models.operator_of(row)

    linear = operator("bert.query", "(2, 8, 64)", "[[2, 8, 32], [64, 32]]")
    assert (linear.kind, linear.extents, linear.times, linear.measured_us) == (
        "product",
        (1, 16, 64, 32),
        3,
        2.5,
    )
    assert linear.key == "linear 2x8x64 of 2x8x32; 64x32" and models.kind_of(linear) == "linear"
    batched = operator("matmul", "(2, 4, 8, 8)", "[[2, 4, 8, 16], [2, 4, 16, 8]]")
    assert batched.extents == (8, 8, 8, 16) and models.kind_of(batched) == "batched products"
    assert operator("addmm", "(8, 64)", "[[64], [8, 32], [32, 64]]").extents == (1, 8, 64, 32)
    others = {
        "softmax": "softmax",
        "ln_f": "layernorm",
        "gelu": "gelu",
        "attn_drop": "nothing",
        "truediv": "relu",
    }
    for name, kind in others.items():
        assert operator(name, "(8, 64)", "[[8, 64]]").kind == kind
    assert operator("add", "(8, 64)", "[[8, 64], [8, 64]]").kind == "add"
    # Three times 4 and three of nothing, with a gap between any two that happen.
    nothing = operator("attn_drop", "(8, 64)", "[[8, 64]]")
    kernels = models.kernels_of([linear, nothing], [4.0, 0.0])
    assert models.replayed(kernels, 0) == 12
    assert models.replayed(kernels, 5) == 12 + 2 * 5
    # Issued every 6 the last one of three begins at 18; what has no elements is not issued.
    assert models.replayed(kernels, 0, 6) == 18 + 4
    assert models.launch_interval(kernels, 22) == pytest.approx(6, abs=1e-4)
    assert models.launch_interval(kernels, 12) == 0
    # A second kernel takes 3 of the 4.
    assert models.kernels_of([linear, batched], [4.0, 5.0], [3.0, 0.0]) == [
        1,
        3,
        1,
        3,
        1,
        3,
        5,
        5,
        5,
    ]


def test_second_kernels_of_products() -> None:
    """Few tokens leave SMs without work unless the vendor's library slices K, whose sums are a kernel of 2 µs at least."""
    products = [(1, 32, 768, 3072), (1, 4096, 4096, 4096), (12, 128, 128, 64)]
    for dtype in ("f32", "tf32", "f16"):
        times, seconds = (
            vendor.predict("a100", dtype, products),
            vendor.second_kernels("a100", dtype, products),
        )
        assert times is not None and seconds is not None
        assert 2 <= seconds[0] < times[0] and (seconds[1:] == 0).all()
    assert vendor.second_kernels("p100", "bf16", products) is None


def test_each_framework_has_a_host(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """benchmarks/cpu/replay_models.py"""
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks" / "cpu"))
    models = importlib.import_module("replay_models")
    rows = ["device,framework,dtype,batch,seq,implementation,latency_ms", "t4,tensorflow,f16,1,32,ft,2", "t4,pytorch,f16,1,32,ft,1",
            "t4,tensorflow,f16,1,32,xla,3", "a10,pytorch,f16,1,32,ft,4", "t4,pytorch,f16,1,32,ft_no_padding,5"]  # fmt: skip
    (tmp_path / "bert_encoder.csv").write_text("\n".join(rows) + "\n")
    assert models.encoder_cases(tmp_path) == {
        ("t4", "f16", "ft", "ft, tensorflow"): {(1, 32): 2.0}, ("t4", "f16", "ft", "ft, pytorch"): {(1, 32): 1.0},
        ("t4", "f16", "xla", "xla"): {(1, 32): 3.0},
    }  # fmt: skip


def test_operands_that_repeat(monkeypatch: pytest.MonkeyPatch) -> None:
    """Operands decide the kind of an elementwise operator in benchmarks/cpu/replay_models.py."""
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks" / "cpu"))
    models = importlib.import_module("replay_models")
    scores, output = [2, 8, 64, 64], (2, 8, 64, 64)

    def kind(name: str, inputs: list[list[int]], l2_bytes: float) -> str:
        return str(models.elementwise_of(name, output, inputs, l2_bytes))

    # A mask for all heads is read again after 64 × 64 elements of three tensors, 49,152 bytes; one of columns after 64.
    assert kind("add", [scores, [2, 1, 64, 64]], 49_151) == "add"
    assert kind("add", [scores, [2, 1, 64, 64]], 49_152) == "strided"
    assert kind("add", [scores, [2, 1, 1, 64]], 49_151) == "strided"
    assert kind("where", [[1, 1, 64, 64], scores, [1]], 1000) == "strided"
    assert kind("add", [scores, scores], 1) == "add"
    # Scalars do not make a kernel of single elements.
    assert kind("truediv", [scores, [1]], 1e9) == kind("tanh", [scores], 1000) == "relu"
    assert kind("contiguous", [scores], 1) == "strided"
    assert models.elementwise_of("contiguous", (2, 8, 64), [[2, 8, 64]], 1) == "nothing"
    assert models.elementwise_of("wte", (2, 8, 64), [[2, 8], [100, 64]], 1e9) == "relu"


def test_launches_of_encoders(monkeypatch: pytest.MonkeyPatch) -> None:
    """benchmarks/cpu/encoder_layers.py: every implementation multiplies the same, and moves what it fuses."""
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks" / "cpu"))
    layers = importlib.import_module("encoder_layers")

    def layer(*key: Any) -> Any:
        return layers.layer_of(*key, 2, 32)

    count = {
        (name, dtype): len(layer(name, dtype))
        for name in layers.IMPLEMENTATIONS
        for dtype in ("f16", "tf32")
    }
    assert count == {("torchscript", "f16"): 26, ("torchscript", "tf32"): 26, ("xla", "f16"): 22, ("xla", "tf32"): 22,
                     ("ft", "f16"): 11, ("ft", "tf32"): 14}  # fmt: skip
    assert len(layers.layer_of("ft", "f16", 1, 385)) == 14
    for name, dtype in count:
        products = [one.extents for one in layer(name, dtype) if one.kind == "product"]
        fused = [one.extents for one in layer(name, dtype) if one.kind == "attention"]
        flops = sum(2 * b * m * n * k for b, m, n, k in products) + sum(
            4 * h * t * t * d for h, t, d in fused
        )
        # 12 · 768² weights for each of 64 tokens, and two products of 32 × 32 × 64 for each of 24 heads.
        assert flops == 2 * 64 * 12 * 768**2 + 2 * 24 * 2 * 32 * 32 * 64
    softmax = [
        one.name for one in layer("xla", "f16") if one.extents[-1] == 32 and one.kind == "relu"
    ]
    assert softmax == ["maximum", "exponentials", "division"]


def test_fused_attention_by_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    """benchmarks/cpu/fused_attention.py"""
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks" / "cpu"))
    module = importlib.import_module("fused_attention")
    device = SimpleNamespace(
        figures={"sm_count": 4, "clock_mhz": 1000.0, "f16_rate": 1024.0, "dram_gbps": 1000.0},
        constants={"launch": 2.0, "stream_dram_share": 0.5},
    )
    attention = module.FusedAttention(start=1000.0, score=0.25)

    def microseconds(heads: int, tokens: int, **options: bool) -> float:
        (time,) = attention.times(
            device, *(np.array([value], float) for value in (heads, tokens, 64)), **options
        )
        return float(time)

    # A tile of 128 × 128 scores takes 16,384 · (256 / 1024 + 0.25) = 8192 cycles; two blocks of each of 8 heads on 4 SMs.
    assert microseconds(8, 256) == pytest.approx(2 + 4 * (1000 + 2 * 8192) / 1000)
    # The first block of a causal head has one tile, and the second two.
    assert microseconds(8, 256, is_causal=True) == pytest.approx(2 + 4 * (1000 + 1.5 * 8192) / 1000)
    # No block is shared out over SMs.
    assert microseconds(1, 100) == pytest.approx(2 + 9.192)
    # 512 bytes for each of 1e6 tokens at 500 bytes in a nanosecond.
    fast = module.FusedAttention(start=0.0, score=0.0)
    device.figures["f16_rate"] = 1e12
    (time,) = fast.times(device, np.array([1e6]), np.array([1.0]), np.array([64.0]))
    assert time == pytest.approx(2 + 1024)
