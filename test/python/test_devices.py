"""Built-in device descriptions, and those made of a driver's attributes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import ftuner
from ftuner.descriptions import describe, resolve

from handmade import ROOT


def test_builtin() -> None:
    known = ftuner.devices()
    files = {path.stem for path in (ROOT / "lib" / "Device" / "devices").glob("*.json")}
    assert set(known) == files
    assert known["h200"]["sm_count"] == 132


# What the drivers of these GPUs say; clocks in kHz.
H200 = {
    "MAX_THREADS_PER_BLOCK": 1024,
    "MAX_SHARED_MEMORY_PER_BLOCK": 49152,
    "MAX_REGISTERS_PER_BLOCK": 65536,
    "CLOCK_RATE": 1980000,
    "MULTIPROCESSOR_COUNT": 132,
    "MEMORY_CLOCK_RATE": 3201000,
    "GLOBAL_MEMORY_BUS_WIDTH": 6144,
    "L2_CACHE_SIZE": 62914560,
    "MAX_THREADS_PER_MULTIPROCESSOR": 2048,
    "COMPUTE_CAPABILITY_MAJOR": 9,
    "COMPUTE_CAPABILITY_MINOR": 0,
    "MAX_SHARED_MEMORY_PER_MULTIPROCESSOR": 233472,
    "MAX_REGISTERS_PER_MULTIPROCESSOR": 65536,
    "MAX_SHARED_MEMORY_PER_BLOCK_OPTIN": 232448,
    "MAX_BLOCKS_PER_MULTIPROCESSOR": 32,
}


def compiles(description: dict[str, Any], tmp_path: Path) -> None:
    """The compiler's own checks accept the description."""
    path = tmp_path / "device.json"
    path.write_text(json.dumps(description))
    ftuner.explain(ROOT / "examples" / "dense.mlir", {"T": 8}, device=path)


def test_like_the_builtin_one(tmp_path: Path) -> None:
    """Attributes of an H200 give the built-in description."""
    known = ftuner.devices()
    made = describe("NVIDIA H200", H200, known)
    assert made["name"] == "nvidia-h200"
    source = made.pop("source")
    for field, value in known["h200"].items():
        if field in ("name", "source"):
            continue
        if isinstance(value, (int, float)):
            assert made[field] == pytest.approx(value, rel=0.03), field
        else:
            assert made[field] == value, field
    assert set(made) <= set(source)
    assert "36" in source["dram_gbps"] and "built-in device" in source["tf32_tflops"]
    compiles({**made, "source": source}, tmp_path)


def test_what_the_driver_does_not_know(tmp_path: Path) -> None:
    known = ftuner.devices()
    made = describe("NVIDIA H200", {**H200, "MEMORY_CLOCK_RATE": 0}, known)
    assert made["dram_gbps"] == known["h200"]["dram_gbps"]
    assert made["source"]["dram_gbps"] == "built-in device h200"
    with pytest.raises(ftuner.Error, match="the driver does not know the memory clock of H900"):
        describe("H900", {**H200, "MEMORY_CLOCK_RATE": 0}, known)
    with pytest.raises(ftuner.Error, match="does not know MULTIPROCESSOR_COUNT of H200: it says 0"):
        describe("H200", {**H200, "MULTIPROCESSOR_COUNT": 0}, known)
    with pytest.raises(ftuner.Error, match="known number of cores, got 77.0"):
        describe("New", {**H200, "COMPUTE_CAPABILITY_MAJOR": 77}, known)


def test_peaks_scale(tmp_path: Path) -> None:
    """Half the SMs at half the clock have a quarter of the peaks."""
    known = {"h200": ftuner.devices()["h200"]}
    half = {**H200, "MULTIPROCESSOR_COUNT": 66, "CLOCK_RATE": 990000}
    made = describe("Small", half, known)
    for field in ("fp32_tflops", "tf32_tflops", "f16_tflops"):
        assert made[field] == pytest.approx(known["h200"][field] / 4, rel=0.01)
    compiles(made, tmp_path)


def test_peaks_that_differ_are_left_out() -> None:
    first = ftuner.devices()["h200"]
    second = {**first, "f16_tflops": first["f16_tflops"] / 2}
    made = describe("GPU", H200, {"a": first, "b": second})
    assert "f16_tflops" not in made and "tf32_tflops" in made
    alone = describe("GPU", {**H200, "COMPUTE_CAPABILITY_MINOR": 0}, {})
    assert "tf32_tflops" not in alone and alone["architecture"] == "Hopper"


def test_resolve(tmp_path: Path) -> None:
    assert resolve("h200").name == "h200"
    assert resolve({"name": "mine"}).name == "mine"
    # A file of that name in the working folder is a path, not a device.
    with pytest.raises(ftuner.Error, match="unknown device"):
        resolve("../devices/h200")
    with pytest.raises(ftuner.Error, match="cannot read device file"):
        resolve(str(tmp_path))
