"""Checks that tests of the backend share."""

from __future__ import annotations

import copy
import importlib.util
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

import ftuner.torch as ft
import torch

ROOT = Path(__file__).parents[3]
#: Few kernels, since each test compiles its own functions.
COMPILER: dict[str, Any] = {"max_kernels": 1}
#: All products by FTuner, no rows, and nothing that Inductor compiles.
PRICED: dict[str, Any] = {**COMPILER, "host": "eager", "take": "all", "rows": "never"}
#: `PRICED` with a cost model that ranks kernels for ranges of several sizes in a tenth of the time, for tests that do
#: not depend on the chosen kernel.
OPTIONS: dict[str, Any] = {**PRICED, "cost_model": "sia"}


def load_script(path: str) -> Any:
    """The module of a script of the repository, such as "benchmarks/torch/opinfo.py"."""
    file = ROOT / path
    spec = importlib.util.spec_from_file_location(file.stem, file)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules[file.stem] = module  # Where a dataclass looks for it.
    spec.loader.exec_module(module)
    return module


def run_script(text: str, *arguments: str) -> Any:
    """The `result` of a script that runs in this process, as it would in one of its own."""
    # A process has another setting than the tests, which is part of a graph's identity.
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["-c", *arguments])
        torch.use_deterministic_algorithms(False)
        try:
            names: dict[str, Any] = {"__name__": "__main__"}
            exec(text, names)
        finally:
            torch.use_deterministic_algorithms(True)
    return names["result"]


def relative_error(actual: torch.Tensor, exact: torch.Tensor) -> float:
    """Frobenius norm of the difference by that of the exact values."""
    assert actual.shape == exact.shape
    return float((actual.double() - exact.double()).norm() / exact.double().norm())


def gradients(model: torch.nn.Module, call: Callable[..., Any], x: torch.Tensor) -> list[Any]:
    """The loss of a step, and the gradients of the input, if it has one, and of all parameters."""
    model.zero_grad()
    x = x.detach().clone().requires_grad_(x.requires_grad)
    loss = (call(x) ** 2).mean()
    loss.backward()
    of_input = [x.grad] if x.requires_grad else []
    return [loss.detach(), *of_input, *(parameter.grad.clone() for parameter in model.parameters())]


def check_gradients(
    model: torch.nn.Module,
    compiled: Any,
    x: torch.Tensor,
    *,
    factor: float = 2,
    floor: float = 3e-7,
) -> None:
    """Each error against float64 is at most ``factor`` times that of eager, and ``floor``."""
    exact = copy.deepcopy(model).double()
    found, eager = gradients(model, compiled, x), gradients(model, model, x)
    for result, other, reference in zip(found, eager, gradients(exact, exact, x.double())):
        limit = max(factor * relative_error(other, reference), floor)
        assert relative_error(result, reference) <= limit


def compile_model(model: Any, dynamic: bool = True, **options: Any) -> Any:
    return torch.compile(
        model, backend="ftuner", dynamic=dynamic, fullgraph=True, options={**OPTIONS, **options}
    )


def check_model(
    model: Any,
    inputs: Sequence[tuple[torch.Tensor, ...]],
    *,
    exact: Callable[..., Any] | None = None,
    factor: float = 2,
    floor: float = 2e-7,
    **options: Any,
) -> ft.Report:
    """Runs a compiled model on several inputs, without a second compilation.

    Each result's error against float64 is at most ``factor`` times that of eager
    (and ``floor``, where eager happens to be exact). Returns the counts.
    """
    if exact is None:
        exact = copy.deepcopy(model).double() if isinstance(model, torch.nn.Module) else model
    compiled = compile_model(model, **options)
    _mark_dynamic(inputs)
    with torch.no_grad(), torch._dynamo.config.patch(error_on_recompile=True):
        for args in inputs:
            actual, eager = compiled(*args), model(*args)
            wide = [a.double() if a.is_floating_point() else a for a in args]
            expected = exact(*wide)
            for result, other, reference in zip(*map(_tensors, (actual, eager, expected))):
                assert result.dtype == other.dtype and result.stride() == other.stride()
                limit = max(factor * relative_error(other, reference), floor)
                assert relative_error(result, reference) <= limit
    return ft.report()


def _mark_dynamic(inputs: Sequence[tuple[torch.Tensor, ...]]) -> None:
    """Gives sizes that differ between inputs a range, which is quicker to search."""
    for position, tensor in enumerate(inputs[0]):
        for dim, size in enumerate(tensor.shape):
            if any(args[position].shape[dim] != size for args in inputs[1:]):
                torch._dynamo.mark_dynamic(tensor, dim, min=2, max=128)


def _tensors(value: Any) -> list[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        return [value]
    return [tensor for item in value for tensor in _tensors(item)]
