"""Objects that speak DLPack as other packages do, in every way that matters to a consumer."""

from __future__ import annotations

import ctypes
from typing import Any

from ftuner.host.memory import dlpack


class Array:
    """Hands out memory that it does not own, as asked.

    `requests` has the arguments of each `__dlpack__`; `live` counts capsules that were not freed.
    """

    def __init__(
        self,
        pointer: int,
        shape: tuple[int, ...],
        *,
        dtype: tuple[int, int] = (dlpack.ELEMENT_TYPES["f32"].dlpack[0]),
        lanes: int = 1,
        device: tuple[int, int] = (dlpack.CPU, 0),
        strides: tuple[int, ...] | None = None,
        byte_offset: int = 0,
        versioned: bool = False,
        major: int = 1,
        read_only: bool = False,
        keep: Any = None,
    ) -> None:
        self.__dict__.update(locals())
        self.requests: list[dict[str, Any]] = []
        self.live = 0

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.device

    def __dlpack__(self, **options: Any) -> Any:
        if not self.versioned and "max_version" in options:
            raise TypeError("__dlpack__() got an unexpected keyword argument 'max_version'")
        self.requests.append(options)
        holder = _Holder(self)
        capsule = dlpack._export(holder, is_versioned=self.versioned)
        managed = dlpack._exports[holder.address(self.versioned, capsule)][0]
        tensor = managed.tensor
        tensor.code, tensor.bits = self.dtype
        tensor.lanes = self.lanes
        tensor.byte_offset = self.byte_offset
        if self.strides is None:
            tensor.strides = None
        else:
            for axis, stride in enumerate(self.strides):
                tensor.strides[axis] = stride
        if self.versioned:
            managed.major = self.major
            managed.flags = dlpack.READ_ONLY if self.read_only else 0
        return capsule


class _Holder:
    """Stands for the DeviceArray that a capsule keeps alive."""

    def __init__(self, array: Array) -> None:
        self.array = array
        self.shape = array.shape
        self.pointer = array.pointer
        self.device = array.device
        self.element_type = dlpack.ELEMENT_TYPES["f32"]
        array.live += 1

    def __del__(self) -> None:
        self.array.live -= 1

    def address(self, versioned: bool, capsule: Any) -> int:
        name = b"dltensor_versioned" if versioned else b"dltensor"
        get = ctypes.pythonapi.PyCapsule_GetPointer
        address: int = get(capsule, name)
        return address
