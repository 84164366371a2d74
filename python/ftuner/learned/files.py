"""Files of predictors: a line of JSON, then arrays one after the other as f32, little-endian (docs/learned-model.md)."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import Error
from ..host import outputs
from .dataset import device_figures

VERSION = 2
Arrays = dict[str, npt.NDArray[np.float32]]


def write(
    path: str, format: str, header: Mapping[str, Any], arrays: Mapping[str, npt.NDArray[Any]]
) -> None:
    numbers = {name: values.astype("<f4") for name, values in arrays.items()}
    blob = b"".join(values.tobytes() for values in numbers.values())
    content = {
        "format": format,
        "version": VERSION,
        **header,
        "device_figures": list(device_figures()),
        "arrays": [[name, list(values.shape)] for name, values in numbers.items()],
        "sha256": hashlib.sha256(blob).hexdigest(),
    }
    outputs.write_one(path, json.dumps(content, allow_nan=False).encode() + b"\n" + blob)


def read_header(path: str | os.PathLike[str]) -> tuple[dict[str, Any], bytes]:
    """The line, and the bytes after it. Raises `Error` for files without such a line."""
    try:
        with open(path, "rb") as file:
            line, content = file.readline(), file.read()
        header = json.loads(line)
        header["format"]
    except OSError as error:
        raise Error(f"cannot read '{path}': {error.strerror}") from error
    except (ValueError, KeyError, TypeError, UnicodeDecodeError) as error:
        raise Error(f"'{path}' is no predictor: expected a line of JSON at its begin") from error
    return header, content


def read(path: str | os.PathLike[str], formats: Sequence[str]) -> tuple[dict[str, Any], Arrays]:
    """The header and the arrays. Raises `Error` for other formats and versions, and for damaged files."""
    header, content = read_header(path)
    try:
        if header["format"] not in formats or header["version"] != VERSION:
            raise ValueError(f"expected {' or '.join(formats)} of version {VERSION}")
        if tuple(header["device_figures"]) != device_figures():
            raise ValueError("expected the figures of a device that this version reads")
        if hashlib.sha256(content).hexdigest() != header["sha256"]:
            raise ValueError("expected the numbers that its header has the hash of")
        values = np.frombuffer(content, "<f4")
        arrays: Arrays = {}
        first = 0
        for name, shape in header["arrays"]:
            size = int(np.prod(shape))
            arrays[name] = values[first : first + size].reshape(shape).astype(np.float32)
            first += size
        if first != len(values):
            raise ValueError(f"expected {first} numbers, but got {len(values)}")
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise Error(f"'{path}' is no predictor: {error}") from error
    return header, arrays
