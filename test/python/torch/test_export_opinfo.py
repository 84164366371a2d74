"""Quick samples of tools/coverage/torch_opinfo.py: PyTorch's own, through export with dynamic sizes."""

from __future__ import annotations

from typing import Any

import pytest

import torch
from checks import load_script

opinfo = load_script("tools/coverage/torch_opinfo.py")

#: Operators with the number of the sample that is tried.
CASES = ["maximum", "index_put", "cummax", "stack"]


@pytest.fixture(scope="module")
def operators() -> Any:
    return opinfo.database()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", CASES)
def test_samples(operators: Any, name: str) -> None:
    group, operator = operators[name]
    (sample,) = opinfo.samples_of(operator, 1).values()
    outcome, words = opinfo.outcome_of(group, operator, sample)
    assert outcome == opinfo.RIGHT, words


def test_wrong_results_are_seen() -> None:
    right = torch.tensor([1.0, torch.nan, torch.inf, 2.0])
    assert not opinfo.problem_of(right, right, right.double())
    for place, value in ((0, torch.nan), (1, 1.0), (2, -torch.inf), (3, 2.00001)):
        wrong = right.clone()
        wrong[place] = value
        assert opinfo.problem_of(wrong, right, right.double())
    assert opinfo.problem_of(right[:3], right, right.double())
    assert opinfo.problem_of(torch.tensor([1, 2]), torch.tensor([1, 3]), torch.tensor([1, 3]))
