"""NumPy arrays, whose kernels run in the emulator."""

from __future__ import annotations

import ctypes
from collections.abc import Hashable
from typing import Any

import numpy as np

from .. import runtime
from ..elements import ElementType
from .base import ALIGNMENT, Buffer, Memory

_byte_at: Any = ctypes.c_char.from_buffer


def address_of(array: np.ndarray[Any, Any]) -> int:
    """Address of a contiguous array, 0 if it is empty.

    `__array_interface__` makes a dict, so it is only for what has no buffer: dtypes like bfloat16,
    and for arrays that may not be written.
    """
    if not array.size:
        return 0
    if array.flags.writeable:
        try:
            return ctypes.addressof(_byte_at(array))
        except (TypeError, ValueError, BufferError):
            pass
    address: int = array.__array_interface__["data"][0]
    return address


def aligned_bytes(size: int) -> tuple[np.ndarray[Any, Any], int]:
    """Memory for a workspace, and the aligned address in it."""
    memory = np.empty(size + ALIGNMENT - 1, np.uint8)
    return memory, -(-address_of(memory) // ALIGNMENT) * ALIGNMENT


class NumpyMemory(Memory):
    """Has no state of a call, so one object serves all."""

    name = "numpy"
    kind = "a NumPy array"

    def __init__(self) -> None:
        self.stream = runtime.get().emulator_stream

    @staticmethod
    def accepts(type: ElementType) -> frozenset[Hashable]:
        if type.name == "bf16":
            return frozenset() if type.numpy is None else frozenset([type.numpy])
        return frozenset(np.dtype(name) for name in type.accepted)

    def read(self, value: Any) -> Buffer:
        if not isinstance(value, np.ndarray):
            raise TypeError(f"expected {self.kind}, but got {type(value).__qualname__}")
        if isinstance(value, np.ma.MaskedArray):
            raise TypeError(f"expected {self.kind}, but got a masked one")
        if not value.flags.c_contiguous:
            raise ValueError(
                f"expected a contiguous array (row-major), but got strides {value.strides} "
                f"for shape {value.shape}; numpy.ascontiguousarray copies it"
            )
        return address_of(value), value.dtype, value.shape

    def read_output(self, value: Any) -> Buffer:
        buffer = self.read(value)
        if not value.flags.writeable:
            raise ValueError("expected a writable array, but got a read-only one")
        return buffer

    def place(self, array: np.ndarray[Any, Any]) -> Any:
        return array

    def empty(self, type: ElementType, shape: tuple[int, ...]) -> tuple[Any, int]:
        if type.numpy is None:
            raise TypeError("results of type bf16 need the package ml_dtypes, or PyTorch tensors")
        array = np.empty(shape, type.numpy)
        return array, address_of(array)

    def workspace(self, size: int) -> tuple[Any, int]:
        return aligned_bytes(size)
