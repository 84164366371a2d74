"""Settings that functions of graphs are compiled with, and a check of formats that graphs keep."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any

import ftuner
from ftuner import compiler


def check_format(noun: str, known: int, found: int) -> None:
    """Raises `Error` for a text of another version than the known one, in what graphs keep."""
    if found != known:
        raise ftuner.Error(
            f"expected {noun} of format {known}, but got one of format {found}, which another"
            " version of FTuner has written"
        )


@dataclass(frozen=True)
class Settings:
    """Arguments of `ftuner.compile` that functions are compiled with."""

    device: Any
    emulate: bool
    options: Mapping[str, Any] = field(default_factory=dict)

    def identity(self) -> Hashable:
        """Equal where the same text becomes the same function."""
        # The place of a library does not change it.
        options = {name: value for name, value in self.options.items() if name != "cache"}
        return (
            _content(self.device),
            self.emulate,
            tuple((name, _content(options[name])) for name in sorted(options)),
            tuple(compiler.hash_files(options)),
        )


def _content(value: Any) -> Hashable:
    """A value for comparison. What may be the path of a file counts with what the file holds."""
    if isinstance(value, Mapping):
        return json.dumps(value, sort_keys=True, default=repr)
    if isinstance(value, (str, os.PathLike)):
        try:
            with open(value, "rb") as file:
                return os.fspath(value), hashlib.sha256(file.read()).hexdigest()
        except (
            OSError,
            ValueError,
        ):  # No file: a name, or an error that the compiler has words for.
            return os.fspath(value)
    return type(value).__name__, repr(value)
