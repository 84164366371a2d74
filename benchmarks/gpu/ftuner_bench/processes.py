"""Processes that a run starts: each ends, with all that it started, when the run does."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence


class Child:
    """A module of this package in a process and a group of its own.

    It gets `--parent`, the descriptor of a pipe whose other end is closed when this process ends,
    whatever ends it.
    """

    def __init__(self, module: str, arguments: Sequence[str], environment: Mapping[str, str]):
        theirs, self.ours = os.pipe()
        command = [sys.executable, "-m", f"{__package__}.{module}", *arguments]
        try:
            self.process = subprocess.Popen(
                [*command, f"--parent={theirs}"],
                env=environment,
                start_new_session=True,
                pass_fds=[theirs],
            )
        finally:
            os.close(theirs)

    def wait(self, seconds: float) -> int:
        """The exit status; subprocess.TimeoutExpired where it is late."""
        return self.process.wait(timeout=seconds)

    def end(self) -> None:
        """Kills what is left of the group."""
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.process.wait()
        os.close(self.ours)


def end_with_parent(descriptor: int) -> None:
    """Ends this process and its group when the other end of a pipe is closed."""

    def watch() -> None:
        while os.read(descriptor, 1):
            pass
        os.killpg(os.getpgid(0), signal.SIGKILL)

    threading.Thread(target=watch, daemon=True).start()
