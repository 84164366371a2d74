"""Types of elements and scalars (docs/abi.md) in NumPy, PyTorch, DLPack and C."""

from __future__ import annotations

import ctypes
import operator
import struct
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any

import numpy as np

# Type codes of DLPack (DLDataTypeCode).
DL_INT, DL_UINT, DL_FLOAT, DL_BFLOAT, DL_BOOL = 0, 1, 2, 4, 6


def _half(value: float) -> int:
    try:
        return int.from_bytes(struct.pack("<e", value), "little")
    except OverflowError:  # Beyond the largest one.
        return 0xFC00 if value < 0 else 0x7C00


def _bfloat16(value: float) -> int:
    """Rounds to the nearest bfloat16, ties to even."""
    with np.errstate(over="ignore"):
        bits = int(np.float32(value).view(np.uint32))
    if value != value:
        return (bits >> 16) | 0x0040
    return (bits + 0x7FFF + (bits >> 16 & 1)) >> 16 & 0xFFFF


def _in_float_register(bits: int) -> ctypes.c_float:
    """A 16-bit float argument: the low bits of the register of a float."""
    return ctypes.c_float.from_buffer(ctypes.c_uint32(bits))


def _float_of(value: Any) -> float:
    if type(value) is float:
        return value
    if isinstance(value, Real):
        return float(value)
    raise TypeError(f"expected a number, but got {type(value).__qualname__}")


@dataclass(frozen=True, eq=False)
class ElementType:
    """A type by its name in the manifest, such as `f32`.

    `numpy` names the dtype of results. `accepted` names the dtypes that arguments
    may have in NumPy and PyTorch, which name them alike; integers have no sign, so
    both kinds are accepted, unless the manifest calls them unsigned (`ui8`). `dlpack`
    are the pairs of type code and bits. `ctype` is the type of a scalar argument and
    `convert` makes one from a number.
    """

    name: str
    bytes: int
    numpy_name: str
    accepted: tuple[str, ...]
    dlpack: tuple[tuple[int, int], ...]
    ctype: Any
    convert: Callable[[Any], Any]

    @property
    def numpy(self) -> np.dtype[Any] | None:
        """The dtype of results; None where neither NumPy nor ml_dtypes has it."""
        if self.name == "bf16":
            ml_dtypes = sys.modules.get("ml_dtypes")
            return None if ml_dtypes is None else np.dtype(ml_dtypes.bfloat16)
        return _DTYPES[self.numpy_name]


_DTYPES: dict[str, np.dtype[Any]] = {
    name: np.dtype(name)
    for name in (
        *("float16", "float32", "float64", "bool", "int8", "int16", "int32", "int64"),
        *("uint8", "uint16", "uint32", "uint64"),
    )
}


def _integer(name: str, bits: int, ctype: Any) -> ElementType:
    def convert(value: Any) -> int:
        number = operator.index(value)
        low, high = -(1 << (bits - 1)), (1 << bits) - 1
        if not low <= number <= high:
            raise ValueError(f"expected a number from {low} to {high}, but got {number}")
        # Integers have no sign: the upper half are negative numbers.
        return number - (1 << bits) if number >= 1 << (bits - 1) else number

    names = (f"int{bits}", f"uint{bits}")
    return ElementType(
        name, bits // 8, names[0], names, ((DL_INT, bits), (DL_UINT, bits)), ctype, convert
    )


def _unsigned(bits: int) -> ElementType:
    signed = _integer(f"ui{bits}", bits, getattr(ctypes, f"c_int{bits}"))
    name = f"uint{bits}"
    return replace(signed, numpy_name=name, accepted=(name,), dlpack=((DL_UINT, bits),))


def _index(value: Any) -> int:
    number = operator.index(value)
    if not -(1 << 63) <= number < 1 << 63:
        raise ValueError(f"expected a number of 64 bits, but got {number}")
    return number


def _boolean(value: Any) -> int:
    if isinstance(value, (bool, np.bool_)):
        return int(value)
    number = operator.index(value)
    if number not in (0, 1):
        raise ValueError(f"expected a boolean, but got {number}")
    return number


ELEMENT_TYPES: dict[str, ElementType] = {
    kind.name: kind
    for kind in (
        ElementType(
            "f16",
            2,
            "float16",
            ("float16",),
            ((DL_FLOAT, 16),),
            ctypes.c_float,
            lambda value: _in_float_register(_half(_float_of(value))),
        ),
        ElementType(
            "bf16",
            2,
            "bfloat16",
            ("bfloat16",),
            ((DL_BFLOAT, 16),),
            ctypes.c_float,
            lambda value: _in_float_register(_bfloat16(_float_of(value))),
        ),
        ElementType(
            "f32", 4, "float32", ("float32",), ((DL_FLOAT, 32),), ctypes.c_float, _float_of
        ),
        ElementType(
            "f64", 8, "float64", ("float64",), ((DL_FLOAT, 64),), ctypes.c_double, _float_of
        ),
        ElementType("i1", 1, "bool", ("bool",), ((DL_BOOL, 8),), ctypes.c_uint8, _boolean),
        _integer("i8", 8, ctypes.c_int8),
        _integer("i16", 16, ctypes.c_int16),
        _integer("i32", 32, ctypes.c_int32),
        _integer("i64", 64, ctypes.c_int64),
        *(_unsigned(bits) for bits in (8, 16, 32, 64)),
        ElementType("index", 8, "int64", ("int64",), ((DL_INT, 64),), ctypes.c_int64, _index),
    )
}
