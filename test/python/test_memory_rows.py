"""Rows of memory-bound kernels: reading, predictions, fits, and a part of the judge."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ftuner
from ftuner.latency.fit import MEMORY, error, fit_own, fit_timing
from ftuner.latency.measurements.memory_rows import (
    DEVICE_FLOOR,
    OPERATORS,
    launches_of,
    strided_launches_of,
)
from ftuner.latency.measurements.readers import read
from ftuner.latency.measurements.rows import Devices, MeasurementTable
from ftuner.latency.model import model
from handmade import ROOT

SAMPLE = ROOT / "benchmarks" / "latency_model" / "memory_rows_sample.csv"
HEADER = "op,device,dtype,rows,cols,latency_us\n"


@pytest.fixture(scope="module")
def sample() -> MeasurementTable:
    return read([SAMPLE], Devices())


def read_text(tmp_path: Path, text: str) -> MeasurementTable:
    path = tmp_path / "rows.csv"
    path.write_text(text, encoding="utf-8")
    return read([path], Devices())


def test_times_of_hosts_have_floors(sample: MeasurementTable) -> None:
    is_f32 = sample.extra["size"] == 4
    assert np.array_equal(sample.is_host, is_f32)
    assert (sample.floor[~is_f32] == DEVICE_FLOOR).all()
    # PyTorch's launches take 25 to 60 us on these hosts.
    assert sample.floor[is_f32].min() > 20 and sample.floor[is_f32].max() < 65
    assert sample.is_memory.all() and not sample.is_tensor.any()


def test_builtin_constants_predict_each_device(sample: MeasurementTable) -> None:
    rows = sample[sample.is_fit]
    for index, name in enumerate(rows.devices.names):
        some = rows[rows.device == index]
        constants = model().default_calibration(name)
        offset: Any = fit_timing(some, constants) if some.is_host.any() else 0.0
        wrong = error(some.predict(constants, offset), some.microseconds)
        # The few of an RTX 4090 determine nothing: it has the global constants.
        assert wrong < (0.25 if name == "rtx4090" else 0.12), name


def test_fit_finds_what_rows_were_made_with(sample: MeasurementTable) -> None:
    """The fit finds the constants that rows tell apart; the other constants are held."""
    rows = sample[sample.devices.index("v100-pcie") == sample.device]
    start = model().calibration("global")
    made = {**start, "stream_dram_share": 0.7, "stream_l2_bytes_per_cycle": 11.0}
    rows = dataclasses.replace(rows, microseconds=rows.predict(made, 20.0))
    rows = rows[rows.is_fit]
    found = fit_own(rows, start)
    assert set(MEMORY) & set(found.free)
    assert error(rows.predict(found.constants, found.offset), rows.microseconds) < 0.02
    assert found.constants["stream_dram_share"] == pytest.approx(0.7, rel=0.05)
    # What other kernels are priced by stays.
    assert {n: v for n, v in found.constants.items() if n not in MEMORY} == {
        n: v for n, v in start.items() if n not in MEMORY
    }


@pytest.mark.parametrize("op", sorted(OPERATORS))
def test_more_rows_and_columns_take_longer(op: str, tmp_path: Path) -> None:
    sizes = [(r, c) for r in (64, 1024, 16384, 262144) for c in (256, 1024, 4096)]
    text = HEADER + "".join(f"{op},a100-80gb,f16,{r},{c},100\n" for r, c in sizes)
    times = read_text(tmp_path, text).predict(model().calibration("global"))
    grid = times.reshape(4, 3)
    assert (np.diff(grid, axis=0) >= 0).all() and (np.diff(grid, axis=1) >= 0).all()
    # The longest are bound by DRAM at most, and read everything once at least.
    moved = OPERATORS[op] * 262144 * 4096 * 2
    assert moved / times[-1] / 1e3 < 2039


def test_elements_one_by_one_take_longer() -> None:
    """The bytes are equal; for half as many bytes the equal number of instructions counts."""
    figures = [model().device("a100-pcie")[1]]
    constants = model().calibration("a100-pcie")
    device = np.zeros(1, np.int64)

    def times(size: float) -> tuple[float, float]:
        """Times for 32768 × 1024 elements one by one, and in their order."""
        where = (np.array([32768.0]), np.array([1024.0]), np.array([size]), figures, device)
        strided = model().predict(strided_launches_of(*where), constants)
        alike = model().predict(
            launches_of("relu", "2023", where[:2], where[2], figures, device), constants
        )
        return float(strided[0]), float(alike[0])

    strided, alike = times(4)
    # A copy of permuted heads on an A100 took 221 us, 27 of them of the host.
    assert strided == pytest.approx(221 - 27, rel=0.1) and strided > 1.05 * alike
    # In 16 bits, which is not measured, instructions count for more.
    narrow, narrow_alike = times(2)
    assert narrow / narrow_alike > strided / alike


def test_bytes_tell_the_size_of_an_element(tmp_path: Path) -> None:
    text = "op,device,rows,cols,bytes,latency_us\nadd,a40,64,64,24576,5\nadd,a40,64,64,49152,5\n"
    assert read_text(tmp_path, text).extra["size"].tolist() == [2, 4]


@pytest.mark.parametrize(
    "line, message",
    [
        ("conv,a40,f16,1,1,5", "rows.csv:2: column 'op': expected one of add, pow"),
        ("add,a40,f64,1,1,5", "rows.csv:2: column 'dtype': expected one of f32, f16, bf16"),
        ("add,a40,f16,0,1,5", "rows.csv:2: column 'rows': expected a whole number of at least 1"),
        ("add,a40,f16,1,1.5,5", "rows.csv:2: column 'cols': expected a whole number"),
        ("add,a40,f16,1,1,0", "rows.csv:2: column 'latency_us'"),
        ("add,nothing,f16,1,1,5", "rows.csv:2: column 'device': expected a built-in device"),
    ],
)
def test_wrong_rows(line: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(ftuner.Error, match=message):
        read_text(tmp_path, HEADER + line + "\n")


def test_bytes_of_no_element(tmp_path: Path) -> None:
    text = "op,device,rows,cols,bytes,latency_us\nadd,a40,64,64,99999,5\n"
    with pytest.raises(ftuner.Error, match="column 'bytes': expected bytes of elements of 2 or 4"):
        read_text(tmp_path, text)


def test_hosts_add_more_to_operators_with_longer_launch_floors(sample: MeasurementTable) -> None:
    rows = sample[sample.devices.index("v100-pcie") == sample.device]
    rows = rows[rows.is_fit]
    constants = model().default_calibration("v100-pcie")
    assert rows.host_share is not None
    added = rows.predict(constants, 10.0) - rows.predict(constants, 0.0)
    assert added == pytest.approx(10 * rows.host_share)
    # A layer norm allocates three results.
    share = {op: rows.host_share[rows.extra["op"] == op] for op in ("add", "layernorm")}
    assert share["layernorm"].min() > 1.5 * share["add"].max()


def test_rows_that_begin_within_sectors_take_longer(tmp_path: Path) -> None:
    """A warp's softmax reads single elements, a long row's one vectors, and elementwise kernels no rows."""

    def slower(op: str, cols: int) -> float:
        """The time for one column less than that of an aligned row, over its own, in bytes."""
        text = HEADER + "".join(f"{op},v100-pcie,f32,200000,{c},9999\n" for c in (cols, cols - 1))
        aligned, other = read_text(tmp_path, text).predict(model().calibration("v100-pcie"))
        return float(other / (cols - 1) / (aligned / cols))

    assert 1.1 < slower("softmax", 1024) < 1.25
    assert slower("softmax", 4096) < 1.05
    assert slower("add", 1024) == pytest.approx(1, abs=1e-3)
