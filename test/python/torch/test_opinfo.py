"""PyTorch's own samples of products, through the backend: those of benchmarks/torch/opinfo.py that are quick."""

from __future__ import annotations

import pytest

from checks import load_script
from scale import SCALE



opinfo = load_script("benchmarks/torch/opinfo.py")

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
