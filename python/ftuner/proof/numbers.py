"""Data for the families, and what their products are on the CPU, in float64."""

from __future__ import annotations

import zlib
from typing import Any

import numpy as np

from .families import Family

Array = np.ndarray[Any, Any]

#: Largest relative Frobenius errors. Sums are in f32; results of 16 bits may be rounded to the
#: other neighbour where sums differ in their last bits; factors that are cut off are off by up to
#: 2^-10.
_TOLERANCES = {"i32": 0.0, "f32": 3e-5, "f16": 2e-4, "bf16": 1e-3}
_TRUNCATED_TOLERANCE = 2.3e-3


def tolerance(family: Family) -> float:
    if family.type == "tf32-truncate":
        return _TRUNCATED_TOLERANCE
    return _TOLERANCES[family.result_type]


def arguments(family: Family, sizes: dict[str, int]) -> list[Array]:
    """The arguments in memory, those of bf16 as 16 bits; equal whenever they are made."""
    seed = zlib.crc32(f"{family.symbol} {sorted(sizes.items())}".encode())
    rng = np.random.default_rng(seed)

    def make(axes: str, kind: str) -> Array:
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

    made = [make(family.lhs, family.element), make(family.rhs, family.element)]
    return [*made, make("n", family.accumulator)] if family.bias else made


def expected(family: Family, given: list[Array]) -> Array:
    """The result in float64, rounded where the program rounds it."""
    lhs, rhs = (_value(array, family) for array in given[:2])
    result: Array = np.einsum(f"{family.lhs},{family.rhs}->{family.out}", lhs, rhs, optimize=True)
    if family.bias:
        axes = [axis for axis in range(result.ndim) if family.out[axis] != "n"]
        result = result + np.expand_dims(given[2].astype(np.float64), tuple(axes))
    if family.result_type == "f16":
        return result.astype(np.float16).astype(np.float64)
    if family.result_type == "bf16":
        return from_bf16(to_bf16(result.astype(np.float32)))
    return result


def _value(array: Array, family: Family) -> Array:
    """What is multiplied of a factor."""
    if family.type == "bf16":
        return from_bf16(array)
    if family.type == "tf32":
        bits = array.view(np.uint32) + np.uint32(0x1000)  # To the nearest.
        return (bits & np.uint32(0xFFFFE000)).view(np.float32).astype(np.float64)
    if family.type == "tf32-truncate":
        bits = array.view(np.uint32) & np.uint32(0xFFFFE000)
        return bits.view(np.float32).astype(np.float64)
    return array.astype(np.float64)


def result_of(family: Family, raw: bytes, sizes: dict[str, int]) -> Array:
    """A result in memory as float64."""
    shape = [sizes[axis] for axis in family.out]
    kinds = {"f32": np.float32, "f16": np.float16, "bf16": np.uint16, "i32": np.int32}
    array = np.frombuffer(raw, kinds[family.result_type]).reshape(shape)
    return from_bf16(array) if family.result_type == "bf16" else array.astype(np.float64)


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
