"""Telling how far something is that takes long.

On a terminal one line of standard error is written over and over, and wiped in the end; elsewhere
nothing is. `FTUNER_PROGRESS` says otherwise: `always` writes lines of text where standard error is
no terminal, `never` nothing anywhere; `auto` is the default. The logger `ftuner` gets the same lines
at the level INFO.
"""

from __future__ import annotations

import logging
import os
import sys
import threading
import time
from typing import Any

from ..errors import Error

VARIABLE = "FTUNER_PROGRESS"

_logger = logging.getLogger("ftuner")


def is_drawn() -> bool:
    """Returns whether a line on a terminal is written over and over."""
    return _mode() != "never" and sys.stderr is not None and sys.stderr.isatty()


def is_written() -> bool:
    """Returns whether progress is written as lines, since the output is not a terminal."""
    return _mode() == "always" and sys.stderr is not None and not sys.stderr.isatty()


def _mode() -> str:
    mode = os.environ.get(VARIABLE) or "auto"
    if mode not in ("auto", "always", "never"):
        raise Error(f"{VARIABLE}: expected auto, always or never, but got '{mode}'")
    return mode


def is_reported() -> bool:
    """Returns whether progress is shown or logged anywhere."""
    return is_drawn() or is_written() or _logger.isEnabledFor(logging.INFO)


def draw(text: str) -> None:
    """Writes over the terminal's line."""
    print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)


class Progress:
    """Says that something is going on, for how long, and how many of its `total` parts are done.

    A context manager. `advance` may be called from any thread. What goes on within something else
    that is told, or beside it, says nothing.
    """

    _current: Progress | None = None
    _tell = threading.Lock()

    def __init__(self, activity: str, total: int = 0) -> None:
        self._activity = activity
        self._total = total
        self._done = 0
        self._stage = ""
        self._lock = threading.Lock()
        self._begin = 0.0
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self._is_written = is_written()

    def __enter__(self) -> Progress:
        self._begin = time.monotonic()
        with Progress._tell:
            if Progress._current is not None:
                return self
            Progress._current = self
        self._say(self._activity)
        if is_drawn():
            self._thread = threading.Thread(target=self._show, daemon=True)
            self._thread.start()
        return self

    def __exit__(self, *_: Any) -> None:
        if self._thread is not None:
            self._stop.set()
            self._thread.join()
            draw("")
        with Progress._tell:
            if Progress._current is self:
                Progress._current = None

    def advance(self) -> None:
        """One part is done."""
        with self._lock:
            self._done += 1
            self._say(self._text())

    @staticmethod
    def begin_stage(text: str) -> None:
        """Adds a stage to a report without parts: `STAGE`, or `STAGE, 3 of 8`."""
        current = Progress._current
        if current is None or current._total:
            return
        with current._lock:
            stage = text.partition(",")[0]
            is_new = stage != current._stage.partition(",")[0]
            current._stage = text
            if is_new:
                current._say(current._text())

    def _text(self) -> str:
        parts = f"{self._done} of {self._total}" if self._total else self._stage
        parts = f": {parts}" if parts else ""
        return f"{self._activity}{parts}, {time.monotonic() - self._begin:.1f} s"

    def _say(self, text: str) -> None:
        if Progress._current is not self:
            return
        _logger.info(text)
        if self._is_written:
            print(f"ftuner: {text}", file=sys.stderr, flush=True)

    def _show(self) -> None:
        while not self._stop.wait(0.2):
            draw(self._text())
