"""Built-in device descriptions, and those made of a driver's attributes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import ftuner
from ftuner.describe import descriptions
from ftuner.describe.descriptions import describe, resolve
from ftuner.describe.prediction import predict
from ftuner.host import nvml, runtime
from ftuner.study import comparison, trees
from handmade import ROOT
from models import MATMUL


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
        if field in ("name", "source") or field.startswith("measured_"):
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
    for field in ("fp32_tflops", "tf32_tflops", "f16_tflops", "bf16_tflops", "i8_tops"):
        assert made[field] == pytest.approx(known["h200"][field] / 4, rel=0.01)
    compiles(made, tmp_path)


def test_peaks_that_differ() -> None:
    """The device's own by its name, else the least: no peak is promised that it may lack."""
    first = ftuner.devices()["h200"]
    second = {**first, "f16_tflops": first["f16_tflops"] / 2}
    known = {"first": first, "second": second}
    for name, wanted in (("GPU", second), ("The First", first), ("Second", second)):
        made = describe(name, H200, known)
        assert made["f16_tflops"] == pytest.approx(wanted["f16_tflops"], rel=0.01), name
        assert made["tf32_tflops"] == pytest.approx(first["tf32_tflops"], rel=0.01)
    without_known = describe("GPU", {**H200, "COMPUTE_CAPABILITY_MINOR": 0}, {})
    assert "tf32_tflops" not in without_known and without_known["architecture"] == "Hopper"


# Tesla V100 PCIe, P100 PCIe and A100 PCIe as their drivers describe them, where they differ.
V100 = {
    **H200, "CLOCK_RATE": 1380000, "MULTIPROCESSOR_COUNT": 80, "MEMORY_CLOCK_RATE": 877000,
    "GLOBAL_MEMORY_BUS_WIDTH": 4096, "L2_CACHE_SIZE": 6291456, "COMPUTE_CAPABILITY_MAJOR": 7,
    "MAX_SHARED_MEMORY_PER_MULTIPROCESSOR": 98304, "MAX_SHARED_MEMORY_PER_BLOCK_OPTIN": 98304,
}  # fmt: skip
A100 = {
    **H200, "CLOCK_RATE": 1410000, "MULTIPROCESSOR_COUNT": 108, "MEMORY_CLOCK_RATE": 1215000,
    "GLOBAL_MEMORY_BUS_WIDTH": 5120, "L2_CACHE_SIZE": 41943040, "COMPUTE_CAPABILITY_MAJOR": 8,
    "MAX_SHARED_MEMORY_PER_MULTIPROCESSOR": 167936, "MAX_SHARED_MEMORY_PER_BLOCK_OPTIN": 166912,
}  # fmt: skip


@pytest.mark.parametrize(
    "name, attributes, twin",
    [
        ("NVIDIA H200", H200, "h200"),
        ("Tesla V100-PCIE-16GB", V100, "v100-pcie"),
        ("Tesla V100-SXM2-32GB", {**V100, "CLOCK_RATE": 1530000}, "v100"),
        ("NVIDIA A100-PCIE-40GB", A100, "a100-pcie"),
        ("NVIDIA A100-SXM4-40GB", A100, "a100"),
        ("NVIDIA A100-SXM4-80GB", {**A100, "MEMORY_CLOCK_RATE": 1593000}, "a100-80gb"),
        # Another bandwidth, number of SMs or clock: not the card that is known.
        ("NVIDIA A100 80GB PCIe", {**A100, "MEMORY_CLOCK_RATE": 1512000}, None),
        ("NVIDIA H100 PCIe", {**H200, "MULTIPROCESSOR_COUNT": 114}, None),
        ("NVIDIA H200 NVL", {**H200, "CLOCK_RATE": 1785000}, None),
        ("NVIDIA H900", H200, None),
    ],
)
def test_power_limit(
    name: str, attributes: dict[str, int], twin: str | None, tmp_path: Path
) -> None:
    """The board power of a built-in device is taken only if the GPU is that device."""
    known = ftuner.devices()
    made = describe(name, attributes, known)
    if twin is None:
        assert "board_power_watts" not in made
    else:
        assert made["board_power_watts"] == known[twin]["board_power_watts"]
        assert made["source"]["board_power_watts"].startswith(f"built-in device {twin}:")
    compiles(made, tmp_path)


class FakeNvml:
    """NVML of one GPU of 375 W; `fails` names functions that return an error."""

    def __init__(self, fails: tuple[str, ...] = (), milliwatts: int = 375000) -> None:
        self.fails, self.milliwatts = fails, milliwatts
        self.open = 0

    def _result(self, function: str) -> int:
        return 3 if function in self.fails else 0

    def nvmlInit_v2(self) -> int:
        self.open += self._result("init") == 0
        return self._result("init")

    def nvmlShutdown(self) -> int:
        self.open -= 1
        return 0

    def nvmlDeviceGetHandleByPciBusId_v2(self, bus_id: bytes, handle: Any) -> int:
        assert bus_id == b"0000:65:00.0"
        handle._obj.value = 77
        return self._result("handle")

    def nvmlDeviceGetPowerManagementDefaultLimit(self, handle: Any, milliwatts: Any) -> int:
        assert handle.value == 77
        milliwatts._obj.value = self.milliwatts
        return self._result("limit")


def test_nvml(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """NVML says the power limit of a GPU that is not built in; nothing asks for it to be there."""

    def limit(library: Any) -> float | None:
        monkeypatch.setattr("ctypes.CDLL", lambda name: library)
        return nvml.power_limit_watts("0000:65:00.0")

    library = FakeNvml()
    assert limit(library) == 375 and library.open == 0
    for function in ("init", "handle", "limit"):
        library = FakeNvml((function,))
        assert limit(library) is None and library.open == 0
    assert limit(FakeNvml(milliwatts=0)) is None
    assert limit(object()) is None
    monkeypatch.undo()
    monkeypatch.setattr(nvml, "LIBRARY", str(tmp_path / "missing.so"))
    assert nvml.power_limit_watts("0000:65:00.0") is None
    made = describe("NVIDIA H200", H200, ftuner.devices(), 375.0)
    assert made["board_power_watts"] == 375
    assert made["source"]["board_power_watts"] == "nvmlDeviceGetPowerManagementDefaultLimit"
    compiles(made, tmp_path)


def test_facts_of_the_capability(tmp_path: Path) -> None:
    """They are left to the compiler's rules where no built-in device has the capability."""
    fields = {
        "warp_schedulers_per_sm": 4, "issue_slots_per_sm": 4, "load_store_units_per_sm": 32,
        "process_nm": 4,
    }  # fmt: skip
    made = describe("GPU", H200, ftuner.devices())
    assert {field: made[field] for field in fields} == fields
    assert {made["source"][field] for field in fields} == {"built-in devices of 9.0"}
    without_known = describe("GPU", H200, {})
    assert not set(fields) & set(without_known)
    compiles(without_known, tmp_path)


def test_calibration(tmp_path: Path) -> None:
    """The option of the pipeline: names, paths and errors come through."""
    dense = ROOT / "examples" / "dense.mlir"

    def score(**options: Any) -> float:
        made = ftuner.explain(dense, {"T": 8}, device="t4", cost_model="latency", **options)
        return float(made.workloads[0]["shapes"][0]["program"]["score"])

    own = score()
    assert own == score(calibration="t4") != score(calibration="global")
    path = tmp_path / "mine.json"
    path.write_text(json.dumps({"name": "mine", "constants": {"launch": 50}}))
    assert score(calibration=str(path)) < score(calibration="global") - 40
    path.write_text(json.dumps({"name": "mine", "constants": {"launch": 500}}))
    with pytest.raises(ftuner.Error, match="mine.json:1: field 'constants.launch': expected a num"):
        score(calibration=str(path))
    with pytest.raises(
        ftuner.Error, match="option --calibration: expected a file or one of .*, but got 'nosuch'"
    ):
        score(calibration="nosuch")


def test_resolve(tmp_path: Path) -> None:
    assert resolve("h200").name == "h200"
    assert resolve({"name": "mine"}).name == "mine"
    # A file of that name in the working folder is a path, not a device.
    with pytest.raises(ftuner.Error, match="unknown device"):
        resolve("../devices/h200")
    with pytest.raises(ftuner.Error, match="cannot read device file"):
        resolve(str(tmp_path))


@pytest.mark.parametrize("is_live", [True, False])
def test_default_device(
    is_live: bool, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """One rule for every entry: the GPU of this machine, or h200 with a word about it."""
    descriptions._tell_default.cache_clear()
    live = {**ftuner.devices()["a100"], "name": "live"}
    monkeypatch.setattr(runtime.Runtime, "has_device", lambda _: is_live)
    monkeypatch.setattr(descriptions, "query_device", lambda index: {0: live}[index])
    monkeypatch.setattr("ftuner.proof.gates._card_at_hand", lambda *_: None)
    name, few = "live" if is_live else "h200", {"max_kernels": 1}
    assert ftuner.compile(MATMUL, emulate=False, **few).manifest["device"]["name"] == name
    assert ftuner.explain(MATMUL, {"T": 5}, **few).data["device"] == name
    assert predict(MATMUL, {"T": 5}, **few)[0].device == name
    assert trees.trees_data(MATMUL, {"T": 5}, **few)["device"] == name
    (entry,) = comparison.compare(MATMUL, strategies=("roller",), code=False, **few).entries
    assert entry.device == name
    words = "no GPU is found and no device is named: the device is h200"
    assert [record.message for record in caplog.records] == ([] if is_live else [words])
