"""PyTorch tensors: on the CPU for the emulator, on CUDA for the GPU.

Imported only when a caller passes a tensor, so that PyTorch is there already.
"""

from __future__ import annotations

import functools
from collections.abc import Hashable
from contextlib import AbstractContextManager, ExitStack
from typing import TYPE_CHECKING, Any

import numpy as np

import torch

from .. import runtime
from ..elements import ElementType
from . import torch_calls
from .base import ALIGNMENT, Buffer, Memory
from .streams import stream_handle

if TYPE_CHECKING:
    from ..function import Function


class TorchMemory(Memory):
    """Tensors of one device. Results and workspaces come from PyTorch's allocator."""

    name = "torch"

    def __init__(self, device: torch.device) -> None:
        self.device = device

    @property
    def kind(self) -> str:
        return f"a PyTorch tensor on {self.device}"

    @staticmethod
    def accepts(type: ElementType) -> frozenset[Hashable]:
        return torch_calls.accepted_dtypes(type)

    def read(self, value: Any) -> Buffer:
        if not isinstance(value, torch.Tensor):
            raise TypeError(f"expected {self.kind}, but got {type(value).__qualname__}")
        if value.device != self.device:
            raise ValueError(f"expected {self.kind}, but got one on {value.device}")
        if value.layout is not torch.strided:
            raise ValueError(f"expected a dense tensor, but got layout {value.layout}")
        if not value.is_contiguous():
            raise ValueError(
                f"expected a contiguous tensor (row-major), but got strides {value.stride()} "
                f"for shape {tuple(value.shape)}; Tensor.contiguous copies it"
            )
        if value.is_neg():
            raise ValueError("expected a tensor as it is in memory, but got a negated view of one")
        if value.requires_grad and torch.is_grad_enabled():
            raise ValueError(
                "expected a tensor that needs no gradient, for compiled functions have none, "
                "but got one with requires_grad; call under torch.no_grad() or detach it"
            )
        return value.data_ptr(), value.dtype, value.shape

    def read_output(self, value: Any) -> Buffer:
        return self.read(value)

    def place(self, array: np.ndarray[Any, Any]) -> Any:
        if array.dtype.name == "bfloat16":
            return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16).to(self.device)
        return torch.from_numpy(array).to(self.device)

    def empty(self, type: ElementType, shape: tuple[int, ...]) -> tuple[Any, int]:
        tensor = torch.empty(shape, dtype=getattr(torch, type.numpy_name), device=self.device)
        return tensor, tensor.data_ptr()

    def workspace(self, size: int) -> tuple[Any, int]:
        memory = torch.empty(size + ALIGNMENT - 1, dtype=torch.uint8, device=self.device)
        return memory, -(-memory.data_ptr() // ALIGNMENT) * ALIGNMENT

    def fast(self, function: Function) -> Any:
        if torch_calls.find() is None:
            return None
        return torch_calls.function_of(function) or False


class TorchCpuMemory(TorchMemory):
    def __init__(self, device: torch.device) -> None:
        super().__init__(device)
        self.stream = runtime.get().emulator_stream


class TorchCudaMemory(TorchMemory):
    """Tensors of a GPU. Kernels run on the caller's stream, or else on PyTorch's current one.

    Results and workspace are allocated on that stream, so the allocator reuses them only for what
    comes later on it.
    """

    is_gpu = True

    def __init__(self, device: torch.device, stream: Any) -> None:
        super().__init__(device)
        current: int = torch.cuda.current_stream(device).cuda_stream
        self.stream = current if stream is None else stream_handle(stream)
        # The stream where it is not the current one.
        self.other: torch.cuda.Stream | None = None
        if self.stream != current:
            external: Any = torch.cuda.ExternalStream
            self.other = external(self.stream, device=device)

    def read(self, value: Any) -> Buffer:
        buffer = super().read(value)
        if self.other is not None:
            # The allocator knows of the current stream only.
            value.record_stream(self.other)
        return buffer

    def activate(self) -> AbstractContextManager[Any]:
        stack = ExitStack()
        index = self.device.index
        if torch.cuda.current_device() != index:
            stack.enter_context(torch.cuda.device(index))
        if self.other is not None:
            stack.enter_context(torch.cuda.stream(self.other))
        # PyTorch makes the context current lazily: a new thread lacks a context.
        runtime.get().select_device(index)
        return stack


def memory_of(tensor: torch.Tensor, stream: Any) -> TorchMemory:
    """The memory that a tensor is in. Raises `ValueError` for devices other than CPU and CUDA."""
    device = tensor.device
    if device.type == "cuda":
        return TorchCudaMemory(device, stream)
    if device.type != "cpu":
        raise ValueError(f"expected a PyTorch tensor on cpu or cuda, but got one on {device}")
    return _cpu_memory()


@functools.cache
def _cpu_memory() -> TorchCpuMemory:
    """Has no state of a call, so one object serves all."""
    return TorchCpuMemory(torch.device("cpu"))
