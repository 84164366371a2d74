"""Attention of ONNX models, as one operator and as exporters write it: two products and a softmax."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx")
pytest.importorskip("iree.compiler")

from onnx_models import Array, check, floats, model_of, node
from scale import SCALE

f32 = np.float32


def counts(compiled: Any) -> tuple[int, int]:
    """Kernels of uKernels, and fallback kernels."""
    report = compiled.function.report
    return len(compiled.function.module.manifest["workloads"]), report.fallback_kernels


@pytest.mark.parametrize(
    ("heads", "groups", "is_flat", "mask", "is_causal"),
    [
        (4, 4, True, "", False),
        (6, 2, True, "", False),
        (6, 2, False, "bias", False),
        (4, 1, False, "bool", False),
        (6, 3, False, "", True),
    ],
)
def test_operator(
    rng: np.random.Generator, heads: int, groups: int, is_flat: bool, mask: str, is_causal: bool
) -> None:
    width = 8

    def shape(number: int, length: Any, batch: Any = "B") -> list[Any]:
        if is_flat:
            return [batch, length, number * width]
        return [batch, number, length, width]

    inputs: dict[str, tuple[Any, list[Any]]] = {
        "q": (f32, shape(heads, "T")),
        "k": (f32, shape(groups, "L")),
        "v": (f32, shape(groups, "L")),
    }
    if mask:
        inputs["m"] = (np.bool_ if mask == "bool" else f32, ["B", 1, "T", "L"])
    given = {"q_num_heads": heads, "kv_num_heads": groups} if is_flat else {}
    model = model_of(
        [node("Attention", [*inputs], ["y"], is_causal=int(is_causal), **given)],
        inputs,
        {"y": (f32, shape(heads, "T"))},
    )

    def call(batch: int, queries: int, keys: int) -> dict[str, Array]:
        sizes = {"B": batch, "T": queries, "L": keys}
        tensors = {}
        for name, (dtype, dims) in inputs.items():
            tensor = floats(rng, *(sizes.get(dim, dim) for dim in dims))
            tensors[name] = tensor > -1 if dtype is np.bool_ else tensor
        return tensors

    calls = [call(2, 5, 5 if is_causal else 7), call(1, 1, 1), call(3, 2, 2 if is_causal else 33)]
    compiled = check(model, *calls)
    assert counts(compiled) == (3, 0)


@pytest.mark.parametrize("scales_both", [False, True] if SCALE > 1 else [True])
def test_as_exporters_write_it(rng: np.random.Generator, scales_both: bool) -> None:
    """Reshapes, transposes, and a scale of the scores, or of queries and keys each."""
    heads, width = 3, 8
    values = {
        "split": np.array([0, 0, heads, width]),
        "joined": np.array([0, 0, heads * width]),
        "scale": np.array(width ** (-0.25 if scales_both else -0.5), f32),
    }
    nodes = []
    for name in "qkv":
        order = [0, 2, 3, 1] if name == "k" else [0, 2, 1, 3]
        nodes.append(node("Reshape", [name, "split"], [name + "_heads"]))
        nodes.append(node("Transpose", [name + "_heads"], [name + "_t"], perm=order))
    if scales_both:
        nodes += [node("Mul", [name + "_t", "scale"], [name + "_s"]) for name in "qk"]
        nodes.append(node("MatMul", ["q_s", "k_s"], ["scores"]))
    else:
        nodes.append(node("MatMul", ["q_t", "k_t"], ["products"]))
        nodes.append(node("Mul", ["products", "scale"], ["scores"]))
    nodes += [
        node("Softmax", ["scores"], ["weights"], axis=-1),
        node("MatMul", ["weights", "v_t"], ["found"]),
        node("Transpose", ["found"], ["moved"], perm=[0, 2, 1, 3]),
        node("Reshape", ["moved", "joined"], ["y"]),
    ]
    shape = ["B", "T", heads * width]
    model = model_of(
        nodes, {name: (f32, shape) for name in "qkv"}, {"y": (f32, shape)}, values, version=17
    )
    calls = [
        {name: floats(rng, batch, length, heads * width) for name in "qkv"}
        for batch, length in ((2, 5), (1, 1), (3, 18))
    ]
    assert counts(check(model, *calls)) == (3, 0)
