"""PyTorch's own samples of products, through the backend: the quick ones of benchmarks/torch/opinfo.py."""

from __future__ import annotations

import pytest

import torch
from checks import load_script
from scale import SCALE

opinfo = load_script("benchmarks/torch/opinfo.py")
opinfo_rows = load_script("benchmarks/torch/opinfo_rows.py")

#: Operators, and how many of their samples hold products that FTuner can take.
CASES = [("mm", 1), ("addmm", 4), ("mv", 1), ("dot", 1)]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("type_name", opinfo.TYPES if SCALE > 1 else opinfo.TYPES[:1])
@pytest.mark.parametrize(("name", "products"), CASES)
def test_samples(name: str, products: int, type_name: str) -> None:
    (operator,) = opinfo.database([name])
    row = opinfo.check(operator, type_name)
    assert not row.wrong
    assert row.samples >= row.products == row.taken == products


#: Operators on rows: how many of their samples in f32 to run, the minimum number that pass, and the
#: minimum number without fallback kernels.
ROWS = [("nn.functional.rms_norm", 6, 6, 3), ("nn.functional.layer_norm", 6, 6, 3)]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("name", "max_samples", "passed", "without_fallback"), ROWS)
def test_samples_of_rows(name: str, max_samples: int, passed: int, without_fallback: int) -> None:
    (operator,) = opinfo.database([name])
    row = opinfo_rows.check(operator, "float32", max_samples)
    assert not row.wrong
    assert row.passed >= passed and row.without_fallback >= without_fallback


def test_wrong_integers_are_seen() -> None:
    right = torch.tensor([1, 2])
    assert opinfo.is_wrong(right, right, right) == ""
    assert opinfo.is_wrong(torch.tensor([1, 3]), right, right) == "1 of 2 differ"
