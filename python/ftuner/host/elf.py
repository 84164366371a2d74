"""A look at a shared library before the loader maps it.

The loader crashes on a library that was cut off (it maps what the file lacks), so this is an error
here. Layout: the System V ABI, ELF-64 object files.
"""

from __future__ import annotations

import os
import struct
from typing import BinaryIO

from ..errors import Error

_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_PROGRAM_HEADER = struct.Struct("<IIQQQQQQ")
_LOAD = 1


def check_library(path: str | os.PathLike[str]) -> None:
    """Raises `Error` if the file is not a complete ELF library of 64 bits."""
    name = os.fspath(path)
    try:
        with open(name, "rb") as file:
            size = os.fstat(file.fileno()).st_size
            header = file.read(_HEADER.size)
            if header[:5] != b"\x7fELF\x02":
                raise Error(f"cannot load '{name}': it is not a shared library")
            end = _end(header, file, size)
    except OSError as error:
        raise Error(f"cannot load '{name}': {error.strerror}") from error
    if size < end:
        raise Error(
            f"cannot load '{name}': it is truncated: expected at least {end} bytes, but got {size}"
        )


def _end(header: bytes, file: BinaryIO, size: int) -> int:
    """The least size of a file with this header."""
    if len(header) < _HEADER.size:
        return _HEADER.size
    fields: tuple[int, ...] = _HEADER.unpack(header)
    program_offset, section_offset = fields[5], fields[6]
    program_size, program_count, section_size, section_count = fields[9:13]
    table_end = program_offset + program_count * program_size
    end = max(table_end, section_offset + section_count * section_size)
    if size < table_end or program_size < _PROGRAM_HEADER.size:
        return end
    file.seek(program_offset)
    table = file.read(program_count * program_size)
    for number in range(program_count):
        kind, _, offset, _, _, file_size, *_ = _PROGRAM_HEADER.unpack_from(
            table, number * program_size
        )
        if kind == _LOAD:
            end = max(end, offset + file_size)
    return end
