"""The benchmark of scenarios, in small."""

from __future__ import annotations

import csv
import importlib.util
import os
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def test_one_plan_and_a_plan_for_each(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Ratios and ranks by two judges; a run that goes on plans nothing again."""
    monkeypatch.setattr(sys, "path", [str(ROOT / "benchmarks/cpu"), *sys.path])
    spec = importlib.util.spec_from_file_location("scenarios", ROOT / "benchmarks/cpu/scenarios.py")
    assert spec and spec.loader
    scenarios = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(scenarios)
    monkeypatch.setattr(scenarios, "WIDTHS", (768, 2304))
    table, state = tmp_path / "table.csv", tmp_path / "state.jsonl"
    arguments = (
        f"--scenarios architectures --strategies ftuner roller --state {state} --csv {table}"
    )
    if home := os.environ.get("FTUNER_HOME"):
        arguments += f" --bin-dir {home}/bin"
    monkeypatch.setattr(sys, "argv", ["scenarios.py", *arguments.split()])
    scenarios.main()
    printed, written = capsys.readouterr().out, table.read_text()
    rows = list(csv.DictReader(written.splitlines()))
    assert [(row["strategy"], row["plans"]) for row in rows] == [
        (strategy, plans)
        for strategy in ("ftuner", "roller")
        for plans in ("one plan", "a plan for each")
    ]
    for judge in ("latency", "roofline"):
        assert min(float(row[f"{judge}_ratio"]) for row in rows) >= 1
        assert "1" in {row[f"{judge}_rank"] for row in rows}
        assert all(len(row[f"{judge}_us"].split()) == 4 for row in rows)
    # A shape has one program, however it was found: no plan is much better than the shape's own plan.
    one, each = rows[:2]
    for together, separate in zip(one["latency_us"].split(), each["latency_us"].split()):
        assert float(together) == pytest.approx(float(separate), rel=0.05)
    assert int(one["kernels"]) < int(each["kernels"])
    # The last line was cut off: that plan is made again, and all others are known.
    lines = state.read_text().splitlines(keepends=True)
    assert len(lines) == 2 * 5
    state.write_text("".join(lines[:-1]) + lines[-1][:40])
    scenarios.main()
    again = capsys.readouterr()
    assert len(again.err.splitlines()) == 1 and "a plan for each" in again.out
    monkeypatch.setattr(scenarios.Runs, "tool", None)
    scenarios.main()
    assert (
        capsys.readouterr().out == again.out
        and printed.splitlines()[0] == again.out.splitlines()[0]
    )
