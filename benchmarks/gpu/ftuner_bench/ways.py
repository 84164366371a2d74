"""Ways to compute a case, FTuner's and PyTorch's: which are right, and how long they take."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import torch

from . import buffers
from .machine import Call
from .session import Session
from .timing import compare_captured

SAMPLE_MICROSECONDS = 1000.0
# Of results in each type, where PyTorch's own error is not larger.
TOLERANCES = {"f32": 1e-4, "f16": 1e-2, "bf16": 5e-2}


def tensors(value: Any) -> list[torch.Tensor]:
    """Those of a result, one or several."""
    return list(value) if isinstance(value, (tuple, list)) else [value]


def compile_ahead(function: Callable[..., Any], inputs: Sequence[torch.Tensor]) -> None:
    """Calls a function of torch.compile once. If it fails, so does the check, which says why."""
    try:
        function(*inputs)
    except Exception:
        pass


@dataclasses.dataclass
class Checked:
    """What became of each way by its name.

    calls: of ways that are right. errors: relative, against float64. problems: in words.
    """

    names: Sequence[str]
    calls: dict[str, list[Call]] = dataclasses.field(default_factory=dict)
    errors: dict[str, float] = dataclasses.field(default_factory=dict)
    problems: dict[str, str] = dataclasses.field(default_factory=dict)

    @property
    def passed(self) -> bool:
        return "ftuner" not in self.problems

    def times(
        self, session: Session, mode: str, rounds: int, uncaptured: set[str]
    ) -> Iterator[tuple[str, dict[str, float] | None, dict[str, Any]]]:
        """The name of each way, the summary of its times, and what a record says beside it.

        uncaptured: ways that a graph did not take, which are not tried again.
        """
        summaries, failures = compare_captured(
            session.machine,
            self.calls,
            mode,
            session.thorough(rounds),
            uncaptured,
            SAMPLE_MICROSECONDS,
        )
        for way in self.names:
            problem = self.problems.get(way) or failures.get(way)
            yield way, summaries.get(way), {"error": self.errors.get(way), "problem": problem}


def check(
    session: Session,
    title: str,
    type_name: str,
    ways: Mapping[str, Callable[..., Any]],
    inputs: Sequence[tuple[torch.Tensor, ...]],
    expected: Any,
) -> Checked:
    """Compares each way's results for the first of `inputs` with those expected, in float64.

    The calls of a way are those with each of `inputs`. PyTorch's own error, of the way "eager",
    counts for the others.
    """
    checked = Checked(list(ways))
    for way in sorted(ways, key=lambda way: way != "eager"):
        function = ways[way]
        try:
            found = tensors(function(*inputs[0]))
            session.machine.synchronize()
            wanted = tensors(expected)
            errors = [buffers.relative_error(*one) for one in zip(found, wanted, strict=True)]
            checked.errors[way] = max(errors)
            most = max(TOLERANCES[type_name], 1.5 * checked.errors.get("eager", 0.0))
            if not checked.errors[way] <= most:
                raise ValueError(f"relative error {checked.errors[way]:.3g} above {most:g}")
            checked.calls[way] = [lambda f=function, some=some: f(*some) for some in inputs]
        except Exception as error:
            checked.problems[way] = f"{type(error).__name__}: {error}"[:1000]
            print(f"FAILED {title}, {way}: {checked.problems[way]}", flush=True)
    # Times are compared in the order that the ways were given in.
    checked.calls = {way: checked.calls[way] for way in ways if way in checked.calls}
    return checked
