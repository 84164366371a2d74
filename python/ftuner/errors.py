"""Exceptions of FTuner. Bad arguments of calls are `TypeError` and `ValueError`."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class Error(RuntimeError):
    """Something failed that is not the caller's argument.

    `code` is the code of the runtime (`FTRT_ERROR_*` of ftrt.h) where the
    runtime reported it, else None.
    """

    def __init__(self, message: str, code: int | None = None) -> None:
        super().__init__(message)
        self.code = code


class CompileError(Error):
    """The compiler refused its input.

    `diagnostics` is all that the compiler printed.
    """

    def __init__(self, message: str, diagnostics: str) -> None:
        super().__init__(message)
        self.diagnostics = diagnostics


class CacheError(Error):
    """The folder of the compile cache cannot be used."""


class CompileWarning(UserWarning):
    """The compiler warned of something and went on. Modules from the cache do not warn again."""


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """A question to put after a message on an unknown name; empty if no known name is like it."""
    close = difflib.get_close_matches(name, sorted(known), n=1)
    return f"; did you mean {close[0]}?" if close else ""
