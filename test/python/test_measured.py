"""Measured rates in device descriptions, from the output of benchmarks/gpu/bandwidths.cu."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import ftuner
from commands import run_command
from ftuner.describe.measured import read_bandwidths, with_measured
from ftuner.errors import Error
from handmade import ROOT

#: An output as the micro-benchmarks print it today.
SAMPLE: dict[str, Any] = {
    "name": "NVIDIA A100-SXM4-40GB",
    "sm_count": 108,
    "l2_bytes": 41943040,
    "bandwidth": [
        {"footprint_bytes": 4 << 30, "read_gbps": 1401.23, "copy_gbps": 1350.0},
        {"footprint_bytes": 1 << 20, "read_gbps": 4505.2, "copy_gbps": 3667.4},
    ],
    "shared_bytes_per_clock": 127.5,
    "shared_gbps": 19321.7,
    "fp32_tflops": 19.112,
    "clock_mhz": 1410,
}


def test_fields_and_their_sources() -> None:
    description = with_measured(ftuner.devices()["a100"], SAMPLE)
    assert description["measured_dram_gbps"] == 1401.2
    assert description["measured_shared_memory_gbps"] == 19322
    assert description["measured_fp32_tflops"] == 19.112
    source = description["source"]
    assert "NVIDIA A100-SXM4-40GB: reads from 4096 MiB" in source["measured_dram_gbps"]
    # Others are as they were.
    known = ftuner.devices()["a100"]
    assert {key: description[key] for key in known if key != "source"} == {
        key: value for key, value in known.items() if key != "source"
    }
    assert {key: source[key] for key in known["source"]} == known["source"]
    # A second run replaces the first.
    slower = {**SAMPLE, "fp32_tflops": 18.5}
    assert with_measured(description, slower)["measured_fp32_tflops"] == 18.5


def test_bytes_a_clock_stand_in_for_shared_memory() -> None:
    older = {
        key: value for key, value in SAMPLE.items() if key not in ("shared_gbps", "fp32_tflops")
    }
    description = with_measured(ftuner.devices()["a100"], older)
    assert description["measured_shared_memory_gbps"] == pytest.approx(127.5 * 108 * 1.41, rel=1e-3)
    assert "measured_fp32_tflops" not in description
    del older["clock_mhz"]
    source = with_measured(ftuner.devices()["a100"], older)["source"]
    assert "127.5 B a clock and SM, at clock_mhz" in source["measured_shared_memory_gbps"]


def test_the_h200_holds_what_the_committed_run_measured() -> None:
    known = ftuner.devices()["h200"]
    run = ROOT / "benchmarks" / "results" / "h200-2026-11-26" / "bandwidths.json"
    assert with_measured(known, read_bandwidths(run)) == known
    assert known["measured_dram_gbps"] == 4435.8


@pytest.mark.parametrize(
    "change, message",
    [
        ({"sm_count": 132}, "expected measurements of 108 SMs as device 'a100' has, but got 132"),
        ({"bandwidth": []}, "field 'bandwidth' of the measurements: expected a list"),
        ({"bandwidth": SAMPLE["bandwidth"][1:]}, "expected reads from at least four times the L2"),
        ({"shared_gbps": "fast"}, "field 'shared_gbps' of the measurements: expected a number"),
        ({"fp32_tflops": 0}, "field 'fp32_tflops' of the measurements: expected more than 0"),
    ],
)
def test_other_outputs_are_errors(change: dict[str, Any], message: str) -> None:
    with pytest.raises(Error) as raised:
        with_measured(ftuner.devices()["a100"], {**SAMPLE, **change})
    assert message in str(raised.value)


def test_command(tmp_path: Path) -> None:
    sample, own = tmp_path / "bandwidths.json", tmp_path / "mine.json"
    sample.write_text(json.dumps(SAMPLE))

    def ftuner_devices(*arguments: Any) -> Any:
        return run_command("devices", *arguments)

    done = ftuner_devices("a100", "--measured", sample, "-o", own)
    assert done.returncode == 0, done.stderr
    assert json.loads(own.read_text())["measured_dram_gbps"] == 1401.2
    # Again, of the file; the compiler takes it and uses the rates.
    done = ftuner_devices(own, "--measured", sample, "-o", own)
    assert done.returncode == 0, done.stderr
    ftuner.explain(ROOT / "examples" / "dense.mlir", {"T": 8}, device=own, bandwidths="measured")
    for arguments, code, message in (
        (["--measured", sample], 2, "option --measured: expected a name or --query"),
        (["a100", "--measured", tmp_path / "none"], 1, "cannot read"),
        (["h200", "--measured", sample], 1, "expected measurements of 132 SMs"),
        (["h201", "--measured", sample], 1, "unknown device 'h201'"),
    ):
        done = ftuner_devices(*arguments)
        assert done.returncode == code and message in done.stderr, (done.stderr, arguments)
