"""Files that are written for the user: each in one step, all or none."""

from __future__ import annotations

import contextlib
import json
import math
import os
import signal
import stat
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ..errors import Error
from . import processes

# Name of standard input and output where a file is expected.
STANDARD = "-"


def json_text(value: Any) -> str:
    """JSON of several lines. NaN and infinities are null, since JSON lacks them."""

    def valid(value: Any) -> Any:
        if isinstance(value, dict):
            return {name: valid(element) for name, element in value.items()}
        if isinstance(value, (list, tuple)):
            return [valid(element) for element in value]
        return None if isinstance(value, float) and not math.isfinite(value) else value

    return json.dumps(valid(value), indent=1, allow_nan=False) + "\n"


def target_of(path: str) -> tuple[str, int]:
    """The regular file that is or will be at the path, after following links, and its permissions."""
    target, mode = os.path.realpath(path), stat.S_IFREG | 0o644
    try:
        mode = os.stat(target).st_mode
    except FileNotFoundError:
        pass
    except OSError as failure:
        raise cannot_write(path, failure.strerror) from failure
    if not os.path.basename(path) or not stat.S_ISREG(mode):
        raise cannot_write(path, "expected the path of a regular file")
    return target, stat.S_IMODE(mode)


def check_folder(path: str) -> None:
    """Raises `Error` if a file cannot be there for want of its folder; asked before long work."""
    if path != STANDARD and not os.path.isdir(os.path.dirname(os.path.abspath(path))):
        raise cannot_write(path, "No such file or directory")


def cannot_write(path: str, reason: Any) -> Error:
    return Error(f"cannot write '{path}': {reason}")


@contextlib.contextmanager
def _undisturbed() -> Iterator[None]:
    """Lets signals that end the program wait, so that it knows of each file that it makes."""
    before = signal.pthread_sigmask(
        signal.SIG_BLOCK, (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    )
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


#: Prefix of the names of files that are not complete yet.
_PREFIX = ".ftuner-"


@contextlib.contextmanager
def replacing(paths: Sequence[str]) -> Iterator[list[str]]:
    """Names of new files beside the paths, which take their places if nothing is raised."""
    temporary: list[tuple[str, str]] = []
    try:
        for path in paths:
            target, mode = target_of(path)
            if any(target == other for other, _ in temporary):
                raise cannot_write(path, "expected a file for each output")
            if os.path.exists(target) and not os.access(target, os.W_OK):
                raise cannot_write(path, "Permission denied")
            try:
                with _undisturbed():
                    folder = os.path.dirname(target)
                    processes.remove_abandoned(Path(folder), _PREFIX)
                    prefix = f"{_PREFIX}{processes.owner()}-"
                    handle, name = tempfile.mkstemp(dir=folder, prefix=prefix)
                    temporary.append((target, name))
                os.close(handle)
                os.chmod(name, mode)
            except OSError as failure:
                raise cannot_write(path, failure.strerror) from failure
        yield [name for _, name in temporary]
        with _undisturbed():
            for target, name in temporary:
                try:
                    os.replace(name, target)
                except OSError as failure:
                    raise cannot_write(target, failure.strerror) from failure
    finally:
        for _, name in temporary:
            Path(name).unlink(missing_ok=True)


def write(contents: Mapping[str, bytes] | Iterable[tuple[str, bytes]]) -> None:
    """Writes files: all of them, or none if one cannot be.

    Behind them comes what goes to standard output (`-`), or to devices or pipes that are there.
    """
    items = [*(contents.items() if isinstance(contents, Mapping) else contents)]
    streams = [item for item in items if _is_stream(item[0])]
    files = [item for item in items if not _is_stream(item[0])]
    with replacing([path for path, _ in files]) as names:
        for (path, content), name in zip(files, names):
            try:
                Path(name).write_bytes(content)
            except OSError as failure:
                raise cannot_write(path, failure.strerror) from failure
    for path, content in streams:
        _write_stream(path, content)


def write_one(path: str, content: bytes) -> None:
    """`write` of one file."""
    write({path: content})


def _is_stream(path: str) -> bool:
    is_file = os.path.isfile(path) or os.path.isdir(path) or not os.path.exists(path)
    return path == STANDARD or not is_file


def _write_stream(path: str, content: bytes) -> None:
    if path == STANDARD:
        sys.stdout.flush()
        sys.stdout.buffer.write(content)
        sys.stdout.buffer.flush()
        return
    try:
        with open(path, "wb") as file:
            file.write(content)
    except OSError as failure:
        raise cannot_write(path, failure.strerror) from failure
