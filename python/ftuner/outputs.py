"""Files that are written for the user: each in one step, all or none."""

from __future__ import annotations

import contextlib
import os
import stat
import sys
import tempfile
from pathlib import Path
from typing import Any, Iterator, Mapping, Sequence

from .errors import Error


# What stands for standard input and output where a file is asked for.
STANDARD = "-"


def target_of(path: str) -> tuple[str, int]:
    """The regular file that is or will be at the path, behind links, and its permissions."""
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


def cannot_write(path: str, reason: Any) -> Error:
    return Error(f"cannot write '{path}': {reason}")


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
                handle, name = tempfile.mkstemp(dir=os.path.dirname(target), prefix=".ftuner-")
                temporary.append((target, name))
                os.close(handle)
                os.chmod(name, mode)
            except OSError as failure:
                raise cannot_write(path, failure.strerror) from failure
        yield [name for _, name in temporary]
        for target, name in temporary:
            try:
                os.replace(name, target)
            except OSError as failure:
                raise cannot_write(target, failure.strerror) from failure
    finally:
        for _, name in temporary:
            Path(name).unlink(missing_ok=True)


def write(contents: Mapping[str, bytes]) -> None:
    """Writes the files: all of them, or none if one cannot be."""
    with replacing([*contents]) as names:
        for (path, content), name in zip(contents.items(), names):
            try:
                Path(name).write_bytes(content)
            except OSError as failure:
                raise cannot_write(path, failure.strerror) from failure


def write_one(path: str, content: bytes) -> None:
    """Writes a file, standard output for `-`, or a device or pipe that is there."""
    if path == STANDARD:
        sys.stdout.flush()
        sys.stdout.buffer.write(content)
        sys.stdout.buffer.flush()
        return
    if os.path.isfile(path) or os.path.isdir(path) or not os.path.exists(path):
        write({path: content})
        return
    try:
        with open(path, "wb") as file:
            file.write(content)
    except OSError as failure:
        raise cannot_write(path, failure.strerror) from failure
