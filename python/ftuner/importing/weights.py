"""Tensors that a model keeps: the last arguments of its function.

They lie in one block, and are copied once to each device that the function is called on. A file of
them has the format safetensors, which many programs read: 8 bytes of the header's length, the
header, and the block. The header is JSON with type, shape and place of each tensor.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from typing import Any

import numpy as np

from .. import inputs
from ..errors import Error
from ..memory import Memory
from ..memory.base import ALIGNMENT
from ..memory.host import address_of, aligned_bytes

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
    """

    def __init__(self, arrays: Mapping[str, np.ndarray[Any, Any]]) -> None:
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

    def to_bytes(self) -> bytes:
        """What a file of them holds."""
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
        # The order of the arguments.
        order = {"__metadata__": {"order": json.dumps([*self.arrays])}}
        begin = begin_of_file({**order, **header}, ALIGNMENT)
        return b"".join([begin, *(array.tobytes() for _, array in arrays)])


def begin_of_file(header: Mapping[str, Any], alignment: int) -> bytes:
    """What is before the tensors: the header with its length, a multiple of the alignment."""
    text = json.dumps(header).encode()
    text += b" " * (-(len(text) + 8) % alignment)
    return len(text).to_bytes(8, "little") + text


def read(path: str | os.PathLike[str]) -> Weights:
    """Reads a file that `Weights.to_bytes` made. Raises `Error` if it is none."""
    content = inputs.read(path)
    try:
        begin = 8 + int.from_bytes(content[:8], "little")
        header = json.loads(content[8:begin])
        arrays = {}
        for name in json.loads(header["__metadata__"]["order"]):
            dtype = np.dtype(_TYPES[header[name]["dtype"]])
            first, last = header[name]["data_offsets"]
            shape = header[name]["shape"]
            if last - first != math.prod(shape) * dtype.itemsize:
                raise ValueError(f"the size of {name} does not fit its shape")
            part = np.frombuffer(content, dtype, math.prod(shape), begin + first)
            arrays[name] = part.reshape(shape)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise Error(f"'{os.fspath(path)}' has no weights of a model: {error}") from error
    return Weights(arrays)
