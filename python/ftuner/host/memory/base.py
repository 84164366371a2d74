"""The interface of the memory that the arguments of a call are in."""

from __future__ import annotations

import abc
from collections.abc import Hashable, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

import numpy as np

from ..elements import ElementType

if TYPE_CHECKING:
    from ..function import Function

ALIGNMENT = 256
"""Alignment of a workspace, in bytes (docs/abi.md)."""


# A tensor in memory: its address, its dtype (an element of `accepts`) and its shape. It is a plain
# tuple, since every call makes some.
Buffer = tuple[int, Hashable, Sequence[int]]


class Memory(abc.ABC):
    """Tensors of one kind on one device, for the time of one call.

    Methods raise `TypeError` or `ValueError` without saying which argument it is
    about; the caller knows.
    """

    # Name of the kind of memory.
    name: str
    # True if a GPU runs the kernels.
    is_gpu = False
    # Address of the stream for the runtime.
    stream: int

    @property
    @abc.abstractmethod
    def kind(self) -> str:
        """This memory in words, for messages."""

    @staticmethod
    @abc.abstractmethod
    def accepts(type: ElementType) -> frozenset[Hashable]:
        """The dtypes that arguments of a type may have."""

    @abc.abstractmethod
    def read(self, value: Any) -> Buffer:
        """Finds an argument; it must be of this kind, on this device, contiguous."""

    @abc.abstractmethod
    def read_output(self, value: Any) -> Buffer:
        """Finds a result that the caller gives; it must also be writable."""

    @abc.abstractmethod
    def place(self, array: np.ndarray[Any, Any]) -> Any:
        """A contiguous array of the host as an argument in this memory, copied if it must be."""

    @abc.abstractmethod
    def empty(self, type: ElementType, shape: tuple[int, ...]) -> tuple[Any, int]:
        """A new tensor for a result, and its address."""

    @abc.abstractmethod
    def workspace(self, size: int) -> tuple[Any, int]:
        """Returns an owner that keeps a workspace of `size` bytes alive until the call has
        returned, and the address of the workspace."""

    def fast(self, function: Function) -> Any:
        """Returns the object of `torch_calls` that serves common calls with this kind of memory.

        None: not made yet; False: cannot be made.
        """
        return None

    def describe(self, dtype: Hashable) -> str:
        """A dtype in words."""
        return str(dtype)

    def activate(self) -> AbstractContextManager[Any]:
        """Makes the device current to the thread, for memories of a GPU."""
        raise NotImplementedError
