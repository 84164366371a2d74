"""Explanations that `predict` keeps beside the compile cache: planning a model takes seconds.

A file of JSON for each, in `explanations` of the cache's folder, named by a hash of all that decides
it. It is written in one step. What is damaged is made again, and the oldest go.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from .. import compiler
from .._version import version
from ..host import cache
from . import descriptions
from .explanation import Sizes, explain_data, size_arguments

#: Files that are kept: some MB.
MAX_FILES = 256


def explain_kept(
    text: compiler.SourceText,
    sizes: Sizes,
    *,
    device: descriptions.Device | None,
    function: str | None,
    options: Mapping[str, Any],
) -> dict[str, Any]:
    """Returns `explain_data`, which is computed once for equal arguments."""
    description = descriptions.resolve(device)
    if compiler.writes_files(options) or options.get("measurer"):
        return explain_data(text, sizes, device=description, function=function, **options)
    key = _key(text, sizes, description, function, options)
    file = cache.explanations_folder() / f"{key}.json"
    found = _read(file, key)
    if found is None:
        found = explain_data(text, sizes, device=description, function=function, **options)
        _write(file, key, found)
    return found


def _key(
    text: compiler.SourceText,
    sizes: Sizes,
    device: descriptions.Description,
    function: str | None,
    options: Mapping[str, Any],
) -> str:
    given = compiler.read_options(options, device)
    return cache.key_of(
        {
            "version": version,
            "source": [text.name, hashlib.sha256(text.content).hexdigest()],
            "sizes": size_arguments(sizes),
            "device": device.text,
            "function": function,
            "options": given.identity,
        }
    )


def _checksum(key: str, data: Any) -> str:
    return hashlib.sha256(f"{key} {json.dumps(data, sort_keys=True)}".encode()).hexdigest()


def _read(file: Path, key: str) -> dict[str, Any] | None:
    """The explanation of a file; None without one, and where it is damaged."""
    try:
        content = json.loads(file.read_bytes())
        data: dict[str, Any] = content["data"]
        if content["checksum"] != _checksum(key, data):
            return None
        os.utime(file)
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None
    return data


def _write(file: Path, key: str, data: dict[str, Any]) -> None:
    """Keeps an explanation, if the folder can be written."""
    partial = file.with_name(f".{uuid.uuid4().hex}.partial")
    with contextlib.suppress(OSError):
        file.parent.mkdir(parents=True, exist_ok=True)
        try:
            content = {"checksum": _checksum(key, data), "data": data}
            partial.write_text(json.dumps(content), encoding="utf-8")
            partial.replace(file)
        finally:
            partial.unlink(missing_ok=True)
        files = sorted(file.parent.glob("*.json"), key=lambda one: one.stat().st_mtime)
        for old in files[:-MAX_FILES]:
            old.unlink(missing_ok=True)
