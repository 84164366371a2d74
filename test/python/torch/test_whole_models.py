"""The twelve models of examples/python/torch_models.py, each from one compilation."""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path
from typing import Any

import pytest

import ftuner

pytest.importorskip("iree.compiler")
pytest.importorskip("transformers")
pytestmark = pytest.mark.filterwarnings("ignore")


def _load_models() -> Any:
    path = Path(__file__).parents[3] / "examples/python/torch_models.py"
    spec = importlib.util.spec_from_file_location("torch_models", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules["torch_models"] = module  # Where its dataclass looks for it.
    spec.loader.exec_module(module)
    return module


models = _load_models()


@pytest.mark.parametrize("name", models.MODELS)
def test_model(name: str) -> None:
    """Right at each size, every product by a uKernel, and a name of every other operator."""
    case = models.MODELS[name]()
    run = models.export(case).compile(emulate=True, max_kernels=1)
    for size in case.sizes:
        error, eager = models.errors(case, run, size)
        assert error < 4 * eager + 1e-7, f"{name} at {size}: {error}, eager {eager}"
    report = run.report
    assert report.products == case.products
    assert report.fallback_kernels == sum(report.operators.values()) > 0
    assert all(operator.startswith(("linalg.", "tensor.")) for operator in report.operators)
    assert f"{report.fallback_kernels} fallback kernels" in str(report)


@pytest.mark.parametrize("name", ["bert", "gpt2", "llama", "t5", "attention"])
def test_sizes_keep_their_names(name: str) -> None:
    """Every workload is explained by the sizes that the caller named."""
    exported = models.export(models.MODELS[name]())
    explained = ftuner.explain(exported.text, {"B": 3, "T": 17}, max_kernels=1)
    shapes = [workload["shapes"][0]["shape"] for workload in explained.workloads]
    assert shapes and all(re.fullmatch(r"[\d, \[\]]+", str(shape)) for shape in shapes)
    assert {3 * 17, 17} & {extent for shape in shapes for extent in shape}
