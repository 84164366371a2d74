"""Small models of ONNX, and what they should compute."""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx import helper, numpy_helper

from ftuner import api
from ftuner.compiler import SourceText
from ftuner.frontend.onnx import import_proto
from ftuner.onnx_backend import CompiledModel

OPTIONS: dict[str, Any] = {"max_kernels": 1}
node = helper.make_node
Array = np.ndarray[Any, Any]


def model_of(
    nodes: list[Any],
    inputs: dict[str, tuple[Any, list[Any]]],
    outputs: dict[str, tuple[Any, list[Any]]],
    values: dict[str, Array] | None = None,
    version: int = 24,
) -> Any:
    """A model; inputs and outputs have a dtype and a shape."""

    def value(name: str, dtype: Any, shape: list[Any]) -> Any:
        kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
        return helper.make_tensor_value_info(name, kind, shape)

    graph = helper.make_graph(
        nodes,
        "model",
        [value(name, *given) for name, given in inputs.items()],
        [value(name, *given) for name, given in outputs.items()],
        [numpy_helper.from_array(array, name) for name, array in (values or {}).items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", version)], ir_version=11)


def check(model: Any, *calls: dict[str, Array], tolerance: float = 1e-5, **options: Any) -> Any:
    """Runs a model and ONNX's reference evaluator; returns what was compiled."""
    from onnx.reference import ReferenceEvaluator

    imported = import_proto(model)
    module = api.compile(SourceText.of_model(imported), emulate=True, **OPTIONS, **options)
    compiled = CompiledModel(module.functions[imported.name], model, gpu=None)
    for inputs in calls:
        for result, wanted in zip(
            compiled.run(inputs), ReferenceEvaluator(model).run(None, inputs)
        ):
            assert result.dtype == wanted.dtype and result.shape == wanted.shape
            np.testing.assert_allclose(result, wanted, rtol=tolerance, atol=tolerance)
    return compiled


def floats(rng: np.random.Generator, *shape: int) -> Array:
    return rng.standard_normal(shape).astype(np.float32)
