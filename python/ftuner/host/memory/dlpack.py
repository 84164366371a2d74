"""Arrays of any package through DLPack (https://dmlc.github.io/dlpack/latest/), without a copy.

Objects with `__dlpack__` are read through their capsules, of version 0 (`dltensor`) and 1
(`dltensor_versioned`). A capsule is not consumed: it is held while the tensor is in use, and frees
the tensor itself when it is dropped, as the specification asks of capsules that nobody consumed.
Results are `DeviceArray`s, which speak DLPack in turn.
"""

from __future__ import annotations

import copy
import ctypes
import math
import weakref
from collections.abc import Hashable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np

from .. import runtime
from ..elements import ELEMENT_TYPES, ElementType
from .base import Buffer, Memory
from .host import address_of, aligned_bytes
from .streams import stream_handle

# DLDeviceType.
CPU, CUDA, CUDA_HOST, CUDA_MANAGED = 1, 2, 3, 13
# Flag of a DLManagedTensorVersioned.
READ_ONLY = 1


class _DLTensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


_Deleter = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class _Managed(ctypes.Structure):
    _fields_ = [("tensor", _DLTensor), ("context", ctypes.c_void_p), ("deleter", _Deleter)]


class _ManagedVersioned(ctypes.Structure):
    _fields_ = [
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("context", ctypes.c_void_p),
        ("deleter", _Deleter),
        ("flags", ctypes.c_uint64),
        ("tensor", _DLTensor),
    ]


_LEGACY_NAME = b"dltensor"
_VERSIONED_NAME = b"dltensor_versioned"

_capsule_get = ctypes.pythonapi.PyCapsule_GetPointer
_capsule_get.restype = ctypes.c_void_p
_capsule_get.argtypes = [ctypes.py_object, ctypes.c_char_p]
_capsule_is_valid = ctypes.pythonapi.PyCapsule_IsValid
_capsule_is_valid.restype = ctypes.c_int
_capsule_is_valid.argtypes = [ctypes.py_object, ctypes.c_char_p]
_capsule_new = ctypes.pythonapi.PyCapsule_New
_capsule_new.restype = ctypes.py_object
_capsule_new.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
# These two functions take a capsule that is being destroyed and must not be referred to.
_raw_capsule_get = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi)
)
_raw_capsule_is_valid = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p)(
    ("PyCapsule_IsValid", ctypes.pythonapi)
)


def _device_of(value: Any) -> tuple[int, int]:
    kind, index = value.__dlpack_device__()
    return int(kind), int(index)


def _capsule_of(value: Any, **options: Any) -> Any:
    """Asks for version 1, which says whether the tensor may be written; older objects know no
    versions."""
    try:
        return value.__dlpack__(max_version=(1, 0), **options)
    except TypeError:
        return value.__dlpack__(**options)


def _tensor_in(capsule: Any) -> tuple[_DLTensor, bool]:
    """The tensor in a capsule, and whether it is read-only."""
    if _capsule_is_valid(capsule, _VERSIONED_NAME):
        managed = _ManagedVersioned.from_address(_capsule_get(capsule, _VERSIONED_NAME))
        if managed.major != 1:
            raise ValueError(
                f"expected DLPack of version 1, but got {managed.major}.{managed.minor}"
            )
        return managed.tensor, bool(managed.flags & READ_ONLY)
    if _capsule_is_valid(capsule, _LEGACY_NAME):
        return _Managed.from_address(_capsule_get(capsule, _LEGACY_NAME)).tensor, False
    raise TypeError("expected __dlpack__ to return a capsule with a tensor, but got another object")


def _is_contiguous(tensor: _DLTensor) -> bool:
    if not tensor.strides:
        return True
    shape = tensor.shape[: tensor.ndim]
    if 0 in shape:
        return True
    expected = 1
    for size, stride in zip(reversed(shape), reversed(tensor.strides[: tensor.ndim])):
        if size != 1 and stride != expected:
            return False
        expected *= size
    return True


class DlpackMemory(Memory):
    """Objects with `__dlpack__` on one device."""

    name = "dlpack"

    def __init__(self, device: tuple[int, int], stream: Any) -> None:
        self.device = device
        self.is_gpu = device[0] in (CUDA, CUDA_MANAGED)
        # Streams must live as long as what was allocated on them.
        self.owner = stream
        self.stream = stream_handle(stream) if self.is_gpu else runtime.get().emulator_stream
        self.capsules: list[Any] = []

    @property
    def kind(self) -> str:
        return f"an array on {device_name(self.device)} with __dlpack__"

    @staticmethod
    def accepts(type: ElementType) -> frozenset[Hashable]:
        return frozenset(type.dlpack)

    def _read(self, value: Any, is_output: bool) -> Buffer:
        if not hasattr(value, "__dlpack__") or not hasattr(value, "__dlpack_device__"):
            raise TypeError(f"expected {self.kind}, but got {type(value).__qualname__}")
        device = _device_of(value)
        if device != self.device:
            raise ValueError(f"expected {self.kind}, but got one on {device_name(device)}")
        # DLPack's number of the default stream is 1.
        options = {"stream": self.stream or 1} if self.is_gpu else {}
        capsule = _capsule_of(value, **options)
        tensor, is_read_only = _tensor_in(capsule)
        if is_output and is_read_only:
            raise ValueError("expected a writable array, but got a read-only one")
        if tensor.lanes != 1:
            raise TypeError(f"expected elements of one lane, but got {tensor.lanes}")
        shape = tuple(tensor.shape[: tensor.ndim])
        if not _is_contiguous(tensor):
            raise ValueError(
                "expected a contiguous array (row-major), but got strides "
                f"{tuple(tensor.strides[: tensor.ndim])} for shape {shape}"
            )
        self.capsules.append(capsule)
        return (tensor.data or 0) + tensor.byte_offset, (tensor.code, tensor.bits), shape

    def read(self, value: Any) -> Buffer:
        return self._read(value, is_output=False)

    def read_output(self, value: Any) -> Buffer:
        return self._read(value, is_output=True)

    def describe(self, dtype: Any) -> str:
        code, bits = dtype
        names = {0: "int", 1: "uint", 2: "float", 4: "bfloat", 5: "complex", 6: "bool"}
        return f"{names.get(code, f'code {code} of ')}{bits}"

    def place(self, array: np.ndarray[Any, Any]) -> Any:
        if self.is_gpu:
            return DeviceArray.from_numpy(array, self.device[1], stream=self.owner)
        return array

    def empty(self, type: ElementType, shape: tuple[int, ...]) -> tuple[Any, int]:
        array = DeviceArray(type.name, shape, self.device, stream=self.owner)
        # Arguments live as long as the results that depend on them.
        array._arguments = self.capsules
        return array, array.pointer

    def workspace(self, size: int) -> tuple[Any, int]:
        if not self.is_gpu:
            return aligned_bytes(size)
        library = runtime.get()
        pointer = library.allocate(size, self.stream)
        # Freed in the order of the stream, after the kernels.
        owner = _Owner()
        weakref.finalize(owner, library.free, pointer, self.stream)
        return owner, pointer

    def activate(self) -> AbstractContextManager[Any]:
        runtime.get().select_device(self.device[1])
        return nullcontext()


class _Owner:
    """Something that a finalizer can hang on."""


def device_name(device: tuple[int, int]) -> str:
    """`cuda:0`."""
    names = {CPU: "cpu", CUDA: "cuda", CUDA_HOST: "cuda_host", CUDA_MANAGED: "cuda_managed"}
    kind, index = device
    name = names.get(kind, f"device kind {kind}")
    return name if kind == CPU else f"{name}:{index}"


def memory_of(value: Any, stream: Any) -> DlpackMemory:
    """The memory that an object is in. Raises `ValueError` for devices that FTuner has no way to
    use."""
    device = _device_of(value)
    if device[0] not in (CPU, CUDA, CUDA_HOST, CUDA_MANAGED):
        raise ValueError(f"expected an array on a CPU or CUDA, but got {device_name(device)}")
    return DlpackMemory(device, stream)


def _free(pointer: int, device: int, stream: int, owner: Any) -> None:
    """Frees memory of a GPU; `owner` has kept the stream alive until now."""
    library = runtime.get()
    library.select_device(device)
    library.free(pointer, stream)


class DeviceArray:
    """An array in memory of FTuner's runtime, for callers without PyTorch.

    Contiguous and row-major. `type` is the name of its element type as in MLIR (`f32`), `shape` a
    tuple, `device` DLPack's pair of kind and index. Other packages take it without a copy through
    `__dlpack__` or `__cuda_array_interface__`; `numpy()` copies it to the host.

    Memory of a GPU is allocated and freed in the order of `stream` (None: the default stream),
    which must exist as long as the array does.
    """

    def __init__(
        self,
        type: str,
        shape: tuple[int, ...],
        device: tuple[int, int] = (CUDA, 0),
        *,
        stream: Any = None,
    ) -> None:
        if type not in ELEMENT_TYPES:
            raise ValueError(f"expected one of {', '.join(ELEMENT_TYPES)}, but got {type!r}")
        self.element_type = ELEMENT_TYPES[type]
        self.type = type
        self.shape = tuple(shape)
        self.nbytes = math.prod(self.shape) * self.element_type.bytes
        self._arguments: Any = None
        self._host: Any = None
        if device[0] in (CUDA, CUDA_MANAGED):
            self.device = (CUDA, device[1])
            self.stream = stream_handle(stream)
            self.pointer = runtime.get().allocate(self.nbytes, self.stream)
            if self.pointer:
                weakref.finalize(self, _free, self.pointer, device[1], self.stream, stream)
        else:
            self.device = (CPU, 0)
            self.stream = runtime.get().emulator_stream
            self._host, self.pointer = aligned_bytes(self.nbytes)

    @staticmethod
    def from_numpy(
        array: np.ndarray[Any, Any], device: int = 0, *, stream: Any = None
    ) -> DeviceArray:
        """Copies an array to a GPU. Returns when the copy is done."""
        for element_type in ELEMENT_TYPES.values():
            if array.dtype.name == element_type.numpy_name:
                break
        else:
            raise TypeError(f"expected a dtype that FTuner knows, but got {array.dtype}")
        library = runtime.get()
        library.select_device(device)
        result = DeviceArray(element_type.name, array.shape, (CUDA, device), stream=stream)
        if array.size:
            source = np.ascontiguousarray(array)
            library.copy(result.pointer, address_of(source), result.nbytes, result.stream)
            library.synchronize(result.stream)
        return result

    @staticmethod
    def from_memory(
        memory: DeviceArray, type: str, shape: tuple[int, ...], offset: int
    ) -> DeviceArray:
        """An array in the memory of another one, which it keeps, `offset` bytes from its start."""
        result = copy.copy(memory)
        result.element_type = ELEMENT_TYPES[type]
        result.type = type
        result.shape = tuple(shape)
        result.nbytes = math.prod(result.shape) * result.element_type.bytes
        result.pointer = memory.pointer + offset
        result._arguments = memory
        return result

    def numpy(self) -> np.ndarray[Any, Any]:
        """A copy on the host, made when all work of the stream is done."""
        dtype = self.element_type.numpy
        if dtype is None:
            raise TypeError("arrays of type bf16 need the package ml_dtypes")
        array = np.empty(self.shape, dtype)
        if self.nbytes:
            library = runtime.get()
            if self.device[0] == CUDA:
                library.select_device(self.device[1])
            library.copy(address_of(array), self.pointer, self.nbytes, self.stream)
            library.synchronize(self.stream)
        return array

    def __repr__(self) -> str:
        sizes = "x".join(str(size) for size in (*self.shape, self.type))
        return f"<ftuner.DeviceArray {sizes} on {device_name(self.device)}>"

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        dtype = self.element_type.numpy
        if self.device[0] != CUDA or dtype is None or dtype.kind == "V":
            raise AttributeError("__cuda_array_interface__")
        return {
            "shape": self.shape,
            "typestr": dtype.str,
            "data": (self.pointer, False),
            "version": 3,
            # 1 is the default stream.
            "stream": self.stream or 1,
        }

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.device

    def __dlpack__(
        self,
        *,
        stream: int | None = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> Any:
        """A capsule for another package. Raises `BufferError` where it would take a copy."""
        if copy or (dl_device is not None and tuple(dl_device) != self.device):
            raise BufferError("a DeviceArray is never copied; numpy() copies it to the host")
        # -1: the consumer takes care of the order. None: the default stream.
        if self.device[0] == CUDA and stream != -1 and (stream or 1) != (self.stream or 1):
            library = runtime.get()
            library.select_device(self.device[1])
            library.synchronize(self.stream)
        return _export(self, is_versioned=max_version is not None and max_version[0] >= 1)


# Structures that consumers still use, by address, with what they need.
_exports: dict[int, tuple[Any, ...]] = {}


def _delete_tensor(address: int | None) -> None:
    _exports.pop(address or 0, None)


def _free_unused(capsule: int) -> None:
    """Frees the tensor of a capsule that was not consumed."""
    for name in (_LEGACY_NAME, _VERSIONED_NAME):
        if _raw_capsule_is_valid(capsule, name):
            _exports.pop(_raw_capsule_get(capsule, name) or 0, None)


_delete = _Deleter(_delete_tensor)
_destroy_capsule = ctypes.PYFUNCTYPE(None, ctypes.c_void_p)(_free_unused)

# Capsules may be destroyed after this module was: what they refer to stays for good.
for _used in (_delete, _destroy_capsule, _LEGACY_NAME, _VERSIONED_NAME):
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(_used))


def _export(array: DeviceArray, is_versioned: bool) -> Any:
    rank = len(array.shape)
    shape = (ctypes.c_int64 * max(rank, 1))(*array.shape)
    strides = (ctypes.c_int64 * max(rank, 1))()
    step = 1
    for axis in reversed(range(rank)):
        strides[axis] = step
        step *= max(array.shape[axis], 1)
    managed: Any = _ManagedVersioned() if is_versioned else _Managed()
    if is_versioned:
        managed.major, managed.minor = 1, 0
    managed.deleter = _delete
    tensor = managed.tensor
    tensor.data = array.pointer
    tensor.device_type, tensor.device_id = array.device
    tensor.ndim = rank
    (tensor.code, tensor.bits), tensor.lanes = array.element_type.dlpack[0], 1
    tensor.shape = ctypes.cast(shape, ctypes.POINTER(ctypes.c_int64))
    tensor.strides = ctypes.cast(strides, ctypes.POINTER(ctypes.c_int64))
    address = ctypes.addressof(managed)
    _exports[address] = (managed, shape, strides, array)
    name = _VERSIONED_NAME if is_versioned else _LEGACY_NAME
    return _capsule_new(address, name, ctypes.cast(_destroy_capsule, ctypes.c_void_p))
