"""Streams of other packages."""

from __future__ import annotations

import operator
from typing import Any


def stream_handle(stream: Any) -> int:
    """The address of a CUDA stream: a number, or a stream of PyTorch, CuPy or cuda.core.

    None and 0 are the default stream. Raises `TypeError` for anything else.
    """
    if stream is None:
        return 0
    protocol = getattr(stream, "__cuda_stream__", None)
    if protocol is not None:
        pair = protocol() if callable(protocol) else protocol
        return int(pair[1])
    for attribute in ("cuda_stream", "ptr"):
        handle = getattr(stream, attribute, None)
        if isinstance(handle, int):
            return handle
    try:
        return operator.index(stream)
    except TypeError:
        raise TypeError(
            f"stream: expected a CUDA stream or its address, but got {type(stream).__qualname__}"
        ) from None
