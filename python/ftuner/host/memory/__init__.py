"""Kinds of memory that compiled functions work on.

One file for each: NumPy arrays (`host`), PyTorch tensors (`torch_tensors`), and whatever speaks
DLPack (`dlpack`). `memory_of` finds the one that a value is in.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from . import dlpack
from .base import Buffer, Memory
from .host import NumpyMemory

__all__ = ["Buffer", "Memory", "memory_of"]

_numpy: NumpyMemory | None = None


def numpy_memory() -> NumpyMemory:
    global _numpy
    if _numpy is None:
        _numpy = NumpyMemory()
    return _numpy


def memory_of(value: Any, stream: Any) -> Memory:
    """The memory of a tensor. Raises `TypeError` if the value is not a tensor."""
    # () where PyTorch is not imported.
    tensor_type: Any = getattr(sys.modules.get("torch"), "Tensor", ())
    if isinstance(value, np.ndarray):
        memory: Memory = numpy_memory()
    elif isinstance(value, tensor_type):
        from . import torch_tensors

        memory = torch_tensors.memory_of(value, stream)
    elif hasattr(value, "__dlpack__") and hasattr(value, "__dlpack_device__"):
        memory = dlpack.memory_of(value, stream)
    else:
        raise TypeError(
            "expected a NumPy array, a PyTorch tensor or another object with __dlpack__, "
            f"but got {type(value).__qualname__}"
        )
    if stream is not None and not memory.is_gpu:
        raise ValueError(f"stream: expected none for {memory.kind}, which the emulator serves")
    return memory
