"""Prices of the vendor's kernels against what cuBLAS took on an H200, at the ends of M and N."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import pytest

from ftuner.latency import vendor

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def ends(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks" / "latency_model"))
    return importlib.import_module("vendor_ends")


def ratios(ends: Any, rows: list[Any]) -> list[tuple[Any, float]]:
    """Rows with their predicted time over that of cuBLAS."""
    return [
        (row, time / row.measured["cublas"])
        for row, time in zip(rows, ends.predicted(rows), strict=True)
    ]


def test_few_rows_are_priced_as_measured(ends: Any) -> None:
    """The model's error is at most 20 % for a product of 1, 2, 4 or 8 rows, in f32, tf32 and f16.

    Weights of more than half of the L2 (50 MB) are priced as DRAM brings them, and held against times with cold caches.
    """
    found = ratios(ends, [row for row in ends.at_ends(ends.measured()) if row.product[0] == 1])
    assert {row.dtype for row, _ in found} == {"f32", "tf32", "f16"}
    assert len(found) > 30
    for row, ratio in found:
        if row.bytes > 25e6:
            ratio *= row.measured["cublas"] / row.cold["cublas"]
        assert 0.8 < ratio < 1.2, (row.workload, row.product, ratio)


def test_few_rows_of_batches_are_priced_too_fast(ends: Any) -> None:
    """One row is within 10 %. From two on cuBLAS takes up to twice the predicted time."""
    found = ratios(ends, [row for row in ends.at_ends(ends.measured()) if row.product[0] > 1])
    assert len(found) == 8
    for row, ratio in found:
        lowest = 0.9 if row.product[1] == 1 else 0.5
        assert lowest < ratio < 1.1, (row.workload, row.product, ratio)


def test_short_slices(ends: Any) -> None:
    """48 and 64 rows of K = 768 are sliced where that leaves 128 elements."""
    rows = [
        row
        for row in ends.measured()
        if row.workload in ("dense", "linear") and row.product[1] in (48, 64)
    ]
    assert len(rows) == 4
    for row, ratio in ratios(ends, rows):
        assert 0.8 < ratio < 1.1, (row.workload, row.product, ratio)
    seconds = vendor.second_kernels("h200", "f32", [(1, 64, 2304, 768)], is_transposed=False)
    assert seconds is not None and seconds[0] > 0


def test_how_the_right_factor_lies() -> None:
    """wgmma reads factors of f32 only along K, and kernels for few rows read them so."""
    for dtype, rows in (("tf32", 64), ("f32", 4)):
        product = [(1, rows, 2304, 768)]
        transposed = vendor.predict("h200", dtype, product)
        plain = vendor.predict("h200", dtype, product, is_transposed=False)
        assert transposed is not None and plain is not None and transposed[0] < 0.7 * plain[0]
    # 16-bit factors are read either way.
    either = [
        vendor.predict("h200", "f16", [(1, 64, 2304, 768)], is_transposed=is_transposed)
        for is_transposed in (False, True)
    ]
    assert either[0] == either[1]


def test_a_vector_by_a_matrix_is_a_matrix_by_a_vector() -> None:
    products = [(1, 1, 4096, 1024), (1, 4096, 1, 1024), (16, 1, 512, 64), (16, 512, 1, 64)]
    for device, dtype in (("h200", "f32"), ("v100", "f32"), ("a100", "bf16")):
        times = vendor.predict(device, dtype, products)
        assert times is not None
        assert times[0] == pytest.approx(times[1], rel=0.02) and times[2] == pytest.approx(
            times[3], rel=0.02
        )
