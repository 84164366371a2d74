"""ONNX's convolutions of points and products of quantized numbers: all are uKernels. Products that share an input."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx")
pytest.importorskip("iree.compiler")

from ftuner.frontend.onnx import import_proto
from onnx_models import Array, check, floats, model_of, node

f32, i32, u8, s8 = np.float32, np.int32, np.uint8, np.int8


def integers(rng: np.random.Generator, dtype: Any, *shape: int) -> Array:
    limits = np.iinfo(dtype)
    return rng.integers(limits.min, limits.max, shape, dtype, endpoint=True)


def instructions_of(compiled: Any) -> set[str]:
    """Types of what tensor cores compute."""
    ptx = compiled.function.module.ptx
    return set(re.findall(r"mma\.sync\.aligned\.m\d+n\d+k\d+\.row\.col\.([\w.]+)", ptx))


@pytest.mark.parametrize(
    ("rank", "stride", "has_bias"), [(1, 1, True), (2, 1, True), (2, 2, False), (3, 1, False)]
)
def test_convolutions_of_points(
    rng: np.random.Generator, rank: int, stride: int, has_bias: bool
) -> None:
    """The rank is any, and sizes are known only at a call."""
    names = ["height", "width", "depth"][:rank]
    values = {"w": floats(rng, 24, 12, *[1] * rank)}
    if has_bias:
        values["b"] = floats(rng, 24)
    results: list[Any] = [*names] if stride == 1 else [None] * rank
    model = model_of(
        [node("Conv", ["x", *values], ["h"], strides=[stride] * rank), node("Relu", ["h"], ["y"])],
        {"x": (f32, ["batch", 12, *names])},
        {"y": (f32, ["batch", 24, *results])},
        values,
        version=22,
    )
    calls = [{"x": floats(rng, 3, 12, *[5, 7, 3][:rank])}, {"x": floats(rng, 1, 12, *[1] * rank)}]
    report = check(model, *calls).function.report
    assert report.products == 1
    # The bias and what follows are part of the product, and so are the points that a stride leaves out.
    assert report.fallback_kernels == 0


def integer_product(
    lhs: tuple[Any, list[Any]],
    rhs: tuple[Any, list[Any]],
    points: dict[str, tuple[Any, list[Any]]],
    values: dict[str, Array],
) -> Any:
    """A model of one product; zero points are values where they are known, else inputs."""
    given = {"a": lhs, "b": rhs, **points}
    shape = max(lhs[1], rhs[1], key=len)[:-2] + [lhs[1][-2], rhs[1][-1]]
    return model_of(
        [node("MatMulInteger", ["a", "b", *points], ["y"])],
        {name: value for name, value in given.items() if name not in values},
        {"y": (i32, shape)},
        values,
        version=10,
    )


def test_integer_products(rng: np.random.Generator) -> None:
    """Both signs, weights whose zero points are those of columns: one product of 8 bits."""
    values = {"b": integers(rng, s8, 320, 120), "q": integers(rng, s8, 120)}
    model = integer_product(
        (u8, ["rows", 320]), (s8, [320, 120]), {"p": (u8, []), "q": (s8, [120])}, values
    )
    call = {"a": integers(rng, u8, 37, 320), "p": integers(rng, u8)}
    compiled = check(model, call, device="a100")
    assert "s32.u8.s8.s32" in instructions_of(compiled)
    # The sum over rows is a product with ones; that over the weights is known.
    assert compiled.function.report.products == 2


def test_integer_products_of_symmetric_weights(rng: np.random.Generator) -> None:
    """Weights without a zero point need no sum over rows."""
    values = {"b": integers(rng, s8, 40, 24), "q": np.array(0, s8)}
    lhs = (u8, ["batch", "rows", 40])
    model = integer_product(lhs, (s8, [40, 24]), {"p": (u8, []), "q": (s8, [])}, values)
    call = {"a": integers(rng, u8, 2, 19, 40), "p": integers(rng, u8)}
    compiled = check(model, call, device="a100")
    assert "s32.u8.s8.s32" in instructions_of(compiled)
    report = compiled.function.report
    # The zero point times the sums over columns, which the epilogue subtracts, is a chain.
    assert (report.products, report.fallback_kernels) == (1, 0)
    assert [one["kind"] for one in report.data["workloads"]].count("elementwise") == 1


def test_integer_products_of_batches(rng: np.random.Generator) -> None:
    """Factors that are not weights, with batches, zero points and sums of a dynamic length."""
    model = integer_product(
        (s8, ["batch", 9, "inner"]),
        (u8, ["batch", "inner", 6]),
        {"p": (s8, []), "q": (u8, [])},
        {},
    )
    call = {
        "a": integers(rng, s8, 3, 9, 21),
        "b": integers(rng, u8, 3, 21, 6),
        "p": integers(rng, s8),
        "q": integers(rng, u8),
    }
    compiled = check(model, call, device="a100")
    assert "s32.s8.u8.s32" in instructions_of(compiled)
    assert compiled.function.report.products == 3


def test_integer_product_of_a_vector(rng: np.random.Generator) -> None:
    values = {"b": integers(rng, s8, 9, 5), "p": np.array(3, u8)}
    model = model_of(
        [node("MatMulInteger", ["a", "b", "p"], ["y"])],
        {"a": (u8, [9])},
        {"y": (i32, [5])},
        values,
        version=10,
    )
    check(model, {"a": integers(rng, u8, 9)})


def test_dynamic_quantization(rng: np.random.Generator) -> None:
    """Operands that are quantized at run time are multiplied as integers, too."""
    nodes = [
        node("DynamicQuantizeLinear", ["x"], ["q", "scale", "point"]),
        node("MatMulInteger", ["q", "w", "point"], ["h"]),
        node("Cast", ["h"], ["f"], to=1),
        node("Mul", ["scale", "w_scale"], ["s"]),
        node("Mul", ["f", "s"], ["y"]),
    ]
    values = {"w": integers(rng, s8, 128, 72), "w_scale": np.array(0.02, f32)}
    model = model_of(
        nodes, {"x": (f32, ["rows", 128])}, {"y": (f32, ["rows", 72])}, values, version=11
    )
    # Multiples of the scale, 1/32: no value lies between two quantized ones.
    points = integers(rng, u8, 21, 128)
    points.flat[:2] = 0, 255
    call = {"x": (points.astype(f32) - 117) / 32}
    compiled = check(model, call, device="a100")
    assert "s32.u8.s8.s32" in instructions_of(compiled)
    assert compiled.function.report.products == 1


@pytest.mark.parametrize("operator", ["MatMul", "Gemm"])
def test_dequantized_products(rng: np.random.Generator, operator: str) -> None:
    """Factors that are dequantized: a product of integers, scaled by columns."""
    is_gemm = operator == "Gemm"
    weights = integers(rng, s8, 136, 64) if is_gemm else integers(rng, s8, 64, 136)
    product = (
        node("Gemm", ["x", "v", "bias"], ["h"], transB=1, alpha=0.5, beta=2.0)
        if is_gemm
        else node("MatMul", ["x", "v"], ["h"])
    )
    nodes = [
        node("DequantizeLinear", ["a", "a_scale", "a_point"], ["x"]),
        node("DequantizeLinear", ["w", "w_scale", "w_point"], ["v"], axis=0 if is_gemm else 1),
        product,
        node("Relu", ["h"], ["y"]),
    ]
    values = {
        "a_scale": np.array(0.03, f32),
        "a_point": np.array(117, u8),
        "w": weights,
        "w_scale": rng.uniform(0.01, 0.02, 136).astype(f32),
        "w_point": np.zeros(136, s8),
        **({"bias": floats(rng, 136)} if is_gemm else {}),
    }
    model = model_of(
        nodes, {"a": (u8, ["rows", 64])}, {"y": (f32, ["rows", 136])}, values, version=21
    )
    compiled = check(model, {"a": integers(rng, u8, 33, 64)}, device="a100")
    assert "s32.u8.s8.s32" in instructions_of(compiled)
    report = compiled.function.report
    assert (report.products, report.fallback_kernels) == (1, 0)


def test_dequantized_products_that_stay(rng: np.random.Generator) -> None:
    """Scales along the reduced dimension, and sums that could overflow, are products of f32."""
    nodes = [
        node("DequantizeLinear", ["a", "scale"], ["x"]),
        node("DequantizeLinear", ["w", "scales"], ["v"], axis=0),
        node("MatMul", ["x", "v"], ["y"]),
    ]
    values = {
        "scale": np.array(0.03, f32),
        "w": integers(rng, s8, 20, 24),
        "scales": rng.uniform(0.01, 0.02, 20).astype(f32),
    }
    model = model_of(
        nodes, {"a": (s8, ["rows", 20])}, {"y": (f32, ["rows", 24])}, values, version=21
    )
    assert not instructions_of(check(model, {"a": integers(rng, s8, 5, 20)}, device="a100"))


@pytest.mark.parametrize(("operator", "version"), [("MatMul", 24), ("Gemm", 11)])
def test_products_that_share_an_input(
    rng: np.random.Generator, operator: str, version: int
) -> None:
    """They become one product, unless a chain of elements follows or parts of rows would not be aligned."""
    is_gemm = operator == "Gemm"
    given = {"transB": 1} if is_gemm else {}
    length, *widths = rng.integers(5, 40, 6).tolist()
    widths = [4 * width for width in widths]
    widths[4] += 1
    values: dict[str, Array] = {"scale": np.array(0.3, f32)}
    nodes = []
    for number, width in enumerate(widths):
        values[f"w{number}"] = floats(rng, length, width).T if is_gemm else floats(rng, length, width)  # fmt: skip
        has_bias = number % 2 == 0
        if has_bias:
            values[f"b{number}"] = floats(rng, width)
        inputs, result = ["x", f"w{number}"], f"p{number}"
        if has_bias and is_gemm:
            inputs.append(f"b{number}")
        nodes.append(node(operator, inputs, [result], **given))
        if has_bias and not is_gemm:
            nodes.append(node("Add", [f"b{number}", result], [f"s{number}"]))
            result = f"s{number}"
        if number == 0:
            nodes.append(node("Mul", [result, "scale"], ["scaled"]))
            result = "scaled"
        last = node("Relu" if number == 3 else "Softmax", [result], [f"y{number}"])
        nodes.append(last)
    rows = ["rows"] if is_gemm else ["batch", "rows"]
    outputs = {f"y{number}": (f32, [*rows, width]) for number, width in enumerate(widths)}
    model = model_of(nodes, {"x": (f32, [*rows, length])}, outputs, values, version)
    shapes = ((1,), (37,)) if is_gemm else ((1, 1), (3, 37))
    compiled = check(model, *({"x": floats(rng, *shape, length)} for shape in shapes))
    report = compiled.function.report
    assert (report.products, report.fallback_kernels) == (3, 0)
    separate = import_proto(model, projections="separate")
    assert {f"w{number}" for number in range(5)} <= {*separate.weights.arrays}
    with pytest.raises(ValueError, match="expected 'joined' or 'separate', but got 'both'"):
        import_proto(model, projections="both")
