"""Data for the families, and what they compute of it on the CPU, in float64."""

from __future__ import annotations

import zlib
from typing import Any

import numpy as np

from . import pointwise_operators, row_operators
from .families import Family, Pointwise, Product, RowReduction

Array = np.ndarray[Any, Any]

#: Largest relative Frobenius errors. Sums are in f32; results of 16 bits may be rounded to the
#: other neighbour where sums differ in their last bits; factors that are cut off are off by up to
#: 2^-10.
_TOLERANCES = {"i32": 0.0, "f32": 3e-5, "f16": 2e-4, "bf16": 1e-3}
_TRUNCATED_TOLERANCE = 2.3e-3


def tolerance(family: Family, type: str) -> float:
    """The largest error of a result of this type."""
    return _TRUNCATED_TOLERANCE if family.type == "tf32-truncate" else _TOLERANCES[type]


def arguments(family: Family, sizes: dict[str, int]) -> list[Array]:
    """The arguments in memory, bf16 as 16 bits; they are equal whenever they are made."""
    seed = zlib.crc32(f"{family.symbol} {sorted(sizes.items())}".encode())
    rng = np.random.default_rng(seed)

    def make(kind: str, axes: str) -> Array:
        shape = [sizes[axis] for axis in axes]
        if kind in ("i8", "i32"):
            return rng.integers(-128, 128, shape).astype(np.int8 if kind == "i8" else np.int32)
        values = rng.standard_normal(shape, np.float32)
        if kind == "f16":
            return values.astype(np.float16)
        if kind == "bf16":
            return to_bf16(values)
        if family.type.startswith("tf32"):  # No ties, which paths round differently.
            return (values.view(np.uint32) | 1).view(np.float32)
        return values

    return [make(*operand) for operand in family.operands()]


def expected(family: Family, given: list[Array]) -> list[Array]:
    """The results in float64, rounded where the program rounds them."""
    if isinstance(family, Product):
        results = [_product(family, given)]
    else:
        values = [_value(array, family) for array in given]
        if isinstance(family, Pointwise):
            results = pointwise_operators.OPERATORS[family.operator].expected(*values)
        else:
            assert isinstance(family, RowReduction)
            results = row_operators.OPERATORS[family.operator].expected(*values)
    types = [type for type, _ in family.results()]
    return [_rounded(result, type) for result, type in zip(results, types)]


def _product(family: Product, given: list[Array]) -> Array:
    lhs, rhs = (_value(array, family) for array in given[:2])
    result: Array = np.einsum(f"{family.lhs},{family.rhs}->{family.out}", lhs, rhs, optimize=True)
    if family.bias:
        axes = [axis for axis in range(result.ndim) if family.out[axis] != "n"]
        result = result + np.expand_dims(given[2].astype(np.float64), tuple(axes))
    return result


def _rounded(result: Array, type: str) -> Array:
    if type == "f16":
        return result.astype(np.float16).astype(np.float64)
    if type == "bf16":
        return from_bf16(to_bf16(result.astype(np.float32)))
    return result


def _value(array: Array, family: Family) -> Array:
    """Returns the values of an argument that are computed with."""
    if family.type == "bf16":
        return from_bf16(array)
    if family.type == "tf32":
        bits = array.view(np.uint32) + np.uint32(0x1000)  # To the nearest.
        return (bits & np.uint32(0xFFFFE000)).view(np.float32).astype(np.float64)
    if family.type == "tf32-truncate":
        bits = array.view(np.uint32) & np.uint32(0xFFFFE000)
        return bits.view(np.float32).astype(np.float64)
    return array.astype(np.float64)


def result_of(type: str, raw: bytes, shape: tuple[int, ...]) -> Array:
    """A result in memory as float64."""
    kinds = {"f32": np.float32, "f16": np.float16, "bf16": np.uint16, "i32": np.int32}
    array = np.frombuffer(raw, kinds[type]).reshape(shape)
    return from_bf16(array) if type == "bf16" else array.astype(np.float64)


def relative_error(got: Array, wanted: Array) -> float:
    """Frobenius norm of the difference over that of what is right; infinite for NaN."""
    with np.errstate(invalid="ignore", over="ignore"):
        difference = float(np.linalg.norm(got - wanted))
    scale = float(np.linalg.norm(wanted))
    if not np.isfinite(difference):
        return float("inf")
    return difference / scale if scale else difference


def to_bf16(values: Array) -> Array:
    """The bits of the nearest bf16, ties to even."""
    bits = np.ascontiguousarray(values).view(np.uint32).astype(np.uint64)
    return ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype(np.uint16)


def from_bf16(bits: Array) -> Array:
    return (bits.astype(np.uint32) << 16).view(np.float32).astype(np.float64)
