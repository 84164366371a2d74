"""Files that the user names."""

from __future__ import annotations

import os
from pathlib import Path

from ..errors import Error


def read(path: str | os.PathLike[str]) -> bytes:
    """Reads the bytes of a file. Raises `Error` if it cannot be read."""
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise Error(f"cannot read '{os.fspath(path)}': {error.strerror}") from error


def ends_in(path: str | os.PathLike[str], *suffixes: str) -> bool:
    """Returns whether a path ends in one of the suffixes, small or capital letters."""
    return os.fspath(path).lower().endswith(suffixes)
