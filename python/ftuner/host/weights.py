"""Tensors that a model keeps: the last arguments of its function.

They lie in one block, and are copied once to each device that the function is called on. A file of
them has the format safetensors, which many programs read: 8 bytes of the header's length, the
header, and the block. The header is JSON with type, shape and place of each tensor.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import math
import os
from collections.abc import Mapping
from typing import Any, BinaryIO

import numpy as np

from ..errors import Error
from . import inputs
from .memory import Memory
from .memory.base import ALIGNMENT
from .memory.host import address_of, aligned_bytes
from .signature import Signature, format_shape

#: Types of elements in the format, by NumPy's and PyTorch's names.
NAMES = {
    "float16": "F16",
    "bfloat16": "BF16",
    "float32": "F32",
    "float64": "F64",
    "bool": "BOOL",
    "int8": "I8",
    "int16": "I16",
    "int32": "I32",
    "int64": "I64",
    "uint8": "U8",
    "uint16": "U16",
    "uint32": "U32",
    "uint64": "U64",
}
_TYPES = {name: dtype for dtype, name in NAMES.items()}


class Weights:
    """Tensors by their names, in the order of the function's last arguments.

    Attributes:
        arrays: contiguous, each at a multiple of 256 bytes of one block.
        inputs: how many arguments the function has before them.
    """

    def __init__(self, arrays: Mapping[str, np.ndarray[Any, Any]], inputs: int) -> None:
        self.inputs = inputs
        places, size = {}, 0
        for name, array in arrays.items():
            places[name] = size
            size += -(-array.nbytes // ALIGNMENT) * ALIGNMENT
        memory, address = aligned_bytes(size)
        offset = address - address_of(memory)
        block = memory[offset : offset + size]
        self.arrays: dict[str, np.ndarray[Any, Any]] = {}
        for name, array in arrays.items():
            part = block[places[name] : places[name] + array.nbytes].view(array.dtype)
            self.arrays[name] = part.reshape(array.shape)
            self.arrays[name][...] = array
        self._placed: dict[str, list[Any]] = {}

    def __len__(self) -> int:
        return len(self.arrays)

    def in_memory(self, memory: Memory) -> list[Any]:
        """The tensors where a call has its arguments."""
        if memory.kind not in self._placed:
            self._placed[memory.kind] = [memory.place(array) for array in self.arrays.values()]
        return self._placed[memory.kind]

    def mismatch(self, signature: Signature) -> str | None:
        """Why they are not the last arguments of a function; None if they are."""
        arguments = signature.arguments
        if len(arguments) != self.inputs + len(self):
            return (
                f"{signature.name}: expected {len(arguments)} arguments, but got weights of a "
                f"function of {self.inputs + len(self)}"
            )
        for index, (name, array) in enumerate(self.arrays.items(), self.inputs):
            value = arguments[index]
            is_same_type = array.dtype.name in value.type.accepted and value.is_tensor
            if not is_same_type or value.shape != array.shape:
                return (
                    f"{signature.name}: expected {value} for weight {name} (argument {index}), "
                    f"but got {array.dtype.name}{format_shape(array.shape)}"
                )
        return None

    def to_bytes(self) -> bytes:
        """Returns the content of a safetensors file with these arrays."""
        header, place = {}, 0
        # The format has no gaps; with wide elements first, each element is aligned.
        arrays = sorted(self.arrays.items(), key=lambda item: -item[1].itemsize)
        for name, array in arrays:
            header[name] = {
                "dtype": NAMES[array.dtype.name],
                "shape": array.shape,
                "data_offsets": [place, place + array.nbytes],
            }
            place += array.nbytes
        # The order of the arguments. The format has only texts here.
        own = {"order": json.dumps([*self.arrays]), "inputs": str(self.inputs)}
        begin = begin_of_file({"__metadata__": own, **header}, ALIGNMENT)
        return b"".join([begin, *(array.tobytes() for _, array in arrays)])


def begin_of_file(header: Mapping[str, Any], alignment: int) -> bytes:
    """Returns the bytes before the tensors: the header and its length, padded to the alignment."""
    text = json.dumps(header).encode()
    text += b" " * (-(len(text) + 8) % alignment)
    return len(text).to_bytes(8, "little") + text


def read(path: str | os.PathLike[str]) -> Weights:
    """Reads a file that `Weights.to_bytes` made. Raises `Error` for other files."""
    content = inputs.read(path)
    with contextlib.suppress(ImportError):
        importlib.import_module("ml_dtypes")  # NumPy's bfloat16.
    try:
        begin = 8 + int.from_bytes(content[:8], "little")
        if not 8 < begin <= len(content):
            raise ValueError("it is truncated, or not of the format safetensors")
        header = json.loads(content[8:begin])
        own = header["__metadata__"]
        arrays = {}
        for name in json.loads(own["order"]):
            dtype = np.dtype(_TYPES[header[name]["dtype"]])
            first, last = header[name]["data_offsets"]
            shape = header[name]["shape"]
            if last - first != math.prod(shape) * dtype.itemsize:
                raise ValueError(f"the size of {name} does not fit its shape")
            if begin + last > len(content):
                raise ValueError(f"it is truncated before the end of {name}")
            part = np.frombuffer(content, dtype, math.prod(shape), begin + first)
            arrays[name] = part.reshape(shape)
        return Weights(arrays, int(own["inputs"]))
    except (ValueError, TypeError, AttributeError, RecursionError) as error:
        raise _no_weights(path, error) from error
    except KeyError as error:
        raise _no_weights(path, f"it does not tell {error}") from error


def _no_weights(path: str | os.PathLike[str], reason: Any) -> Error:
    return Error(f"'{os.fspath(path)}' has no weights of a model of ONNX: {reason}")


def is_own(file: BinaryIO) -> bool:
    """Returns whether a file was made by `Weights.to_bytes`."""
    size = int.from_bytes(file.read(8), "little")
    try:
        own = json.loads(file.read(min(size, _MAX_HEADER)))["__metadata__"]
        return bool(own.keys() == {"order", "inputs"})
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return False


#: Limit of the length of a header, in bytes, as the format states it.
_MAX_HEADER = 100_000_000
