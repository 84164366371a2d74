"""Programs that FTuner runs, and temporary folders: nothing of them outlives its owner.

A program is the leader of a session of its own, so that it ends with all that it started. Beside it
a shell waits for the end of a pipe that only its owner holds. The pipe closes when the owner ends, for
whatever reason; the shell then ends the program and removes its folders.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import shutil
import signal
import subprocess
import tempfile
import threading
import time
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

_Item = TypeVar("_Item")

#: Seconds that a program has to end when it is asked to; then it is killed.
_SECONDS_TO_END = 1.0

_SHELL = "/bin/sh"

# The pipe is the standard input. A line says that the program has ended and its owner has not.
# Arguments: the number of folders, the folders, the command.
_WATCHED = """\
exec 3<&0 </dev/null
count=$1; shift
(
  trap '' HUP INT TERM
  exec >/dev/null 2>&1
  read -r line <&3 && exit
  kill -TERM -- -$$
  for tenth in 1 2 3 4 5 6 7 8 9 10; do kill -0 $$ || break; sleep 0.1; done
  kill -KILL $$
  while [ "$count" -gt 0 ]; do rm -rf -- "$1"; shift; count=$((count - 1)); done
  kill -KILL -- -$$
) &
shift "$count"
exec "$@" 3<&-
"""


class Interrupted(BaseException):
    """Raised in a thread whose `for_each` ends early, where it waits for a program or for a lock."""


class _Calls:
    """The programs that the calls of one `for_each` run."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running: set[Child] = set()
        self.is_ended = False

    def add(self, child: Child) -> None:
        with self._lock:
            self._running.add(child)
        self.check()

    def remove(self, child: Child) -> None:
        with self._lock:
            self._running.discard(child)

    def check(self) -> None:
        if self.is_ended:
            raise Interrupted

    def end(self) -> None:
        """Ends all programs, and programs that are started later."""
        self.is_ended = True
        begin = time.monotonic()
        for number in (signal.SIGTERM, signal.SIGKILL):
            with self._lock:
                for child in self._running:
                    child.send(number)
            while self._running and time.monotonic() < begin + _SECONDS_TO_END:
                time.sleep(0.01)


class _Local(threading.local):
    #: The programs of the `for_each` that the thread works for.
    calls: _Calls | None = None


_local = _Local()


def check_interrupted() -> None:
    """Raises `Interrupted` in a thread whose `for_each` ends early."""
    if _local.calls is not None:
        _local.calls.check()


def for_each(work: Callable[[_Item], object], items: Iterable[_Item], workers: int) -> None:
    """Calls `work` for each item in threads.

    An exception of a call, or of a signal's handler, passes on; programs that other calls run are
    ended, and the remaining items are skipped.
    """
    calls = _Calls()

    def call(item: _Item) -> None:
        _local.calls = calls
        try:
            calls.check()
            work(item)
        finally:
            _local.calls = None

    with ThreadPoolExecutor(workers) as pool:
        try:
            for _ in pool.map(call, items):
                pass
        except BaseException:
            calls.end()
            pool.shutdown(cancel_futures=True)
            raise


class Child:
    """A running program without a standard input.

    As a context manager it waits for the end of the program, or ends it if an exception passes.

    Attributes:
        process: of the program.
    """

    def __init__(
        self,
        command: Sequence[str | os.PathLike[str]],
        *,
        cwd: Path | None = None,
        env: Mapping[str, str] | None = None,
        folders: Sequence[Path] = (),
        pass_fds: Sequence[int] = (),
        stdout: Any = subprocess.PIPE,
        stderr: Any = subprocess.PIPE,
    ) -> None:
        """Starts a program.

        Args:
            command: the program and its arguments.
            cwd: where it runs.
            env: its environment, if it is not the owner's.
            folders: removed if the owner is killed, absolute.
            pass_fds: other file descriptors that it inherits.
            stdout: as for `subprocess.Popen`.
            stderr: likewise.

        Raises:
            OSError: it cannot be started.
        """
        words = [os.fspath(word) for word in command]
        if shutil.which(words[0]) is None:  # The shell would say so in its own words.
            open(words[0], "rb").close()
            raise PermissionError(13, "Permission denied", words[0])
        if os.access(_SHELL, os.X_OK):
            watched = [*map(os.fspath, folders)]
            words = [_SHELL, "-c", _WATCHED, "ftuner", str(len(watched)), *watched, *words]
        self._calls = _local.calls
        end, self._life = os.pipe()
        try:
            self.process: subprocess.Popen[bytes] = subprocess.Popen(
                words,
                cwd=cwd,
                env=env,
                stdin=end,
                stdout=stdout,
                stderr=stderr,
                pass_fds=pass_fds,
                start_new_session=True,
            )
        except BaseException:
            self._close()
            raise
        finally:
            os.close(end)
        _children.add(self)
        if self._calls is not None:
            try:
                self._calls.add(self)
            except Interrupted:
                self.end()
                raise

    def __enter__(self) -> Child:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        try:
            if kind is None:
                self.wait()
        finally:
            self.end()

    def wait(self) -> int:
        """The code of the program, once it has ended."""
        code = self.process.wait()
        self._release()
        if self._calls is not None:
            self._calls.check()
        return code

    def end(self, patience: float = _SECONDS_TO_END) -> None:
        """Ends the program, and what it started, if it runs; kills it after `patience` seconds."""
        try:
            if self._life >= 0 and self.process.returncode is None:
                if patience > 0:
                    self._signal(signal.SIGTERM)
                    with contextlib.suppress(subprocess.TimeoutExpired):
                        self.process.wait(patience)
                self._signal(signal.SIGKILL)
                with contextlib.suppress(subprocess.TimeoutExpired):
                    self.process.wait(_SECONDS_TO_END)
        except BaseException:  # Another interrupt.
            self._signal(signal.SIGKILL)
            raise
        finally:
            self._release()
            if self._calls is not None:
                self._calls.remove(self)
            for stream in (self.process.stdout, self.process.stderr):
                if stream is not None:
                    stream.close()

    def send(self, number: int) -> None:
        """Sends a signal to the program and to all that it started, if it runs."""
        if self._life >= 0:
            self._signal(number)

    def _signal(self, number: int) -> None:
        # No other process has its number as long as the shell that watches is in its group.
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid, number)

    def _release(self) -> None:
        """Ends the shell that watches."""
        if self._life >= 0:
            with contextlib.suppress(OSError):
                os.write(self._life, b"\n")
            self._close()

    def _close(self) -> None:
        life, self._life = self._life, -1
        os.close(life)

    def forget(self) -> None:
        """Leaves the program to the process that started it; for a process forked from that one."""
        if self._life >= 0:
            self._close()
            self.process.returncode = 0  # Nobody here waits for it.


_children: weakref.WeakSet[Child] = weakref.WeakSet()


def _forget_children() -> None:
    """Closes the pipes in a forked process, or programs would live as long as that."""
    for child in [*_children]:
        child.forget()
    _children.clear()


os.register_at_fork(after_in_child=_forget_children)


def run(
    command: Sequence[str | os.PathLike[str]],
    *,
    cwd: Path | None = None,
    folders: Sequence[Path] = (),
) -> subprocess.CompletedProcess[bytes]:
    """Runs a program to its end, and returns what it printed.

    Raises `OSError` if it cannot be started; an exception of a signal's handler ends it.
    """
    with Child(command, cwd=cwd, folders=folders) as child:
        printed, words = child.process.communicate()
    return subprocess.CompletedProcess(command, child.process.returncode, printed, words)


#: Prefix of the names of temporary folders.
_PREFIX = "ftuner-"


def temporary_folder() -> tempfile.TemporaryDirectory[str]:
    """A folder that is removed with the returned object; also removes folders that killed processes left."""
    base = tempfile.gettempdir()
    remove_abandoned(Path(base), _PREFIX)
    return tempfile.TemporaryDirectory(prefix=f"{_PREFIX}{owner()}-", dir=base)


def owner() -> str:
    """A word that is unique to this process, on all machines."""
    pid = os.getpid()
    return f"{_machine()}-{pid}-{_start_of(pid)}"


def is_abandoned(name: str) -> bool:
    """Returns whether a name has the word of a process of this machine that has ended."""
    words = name.split("-")
    if _machine() not in words:
        return False
    at = words.index(_machine()) + 1
    if len(words) < at + 2 or not words[at].isdecimal():
        return False
    return _start_of(int(words[at])) != words[at + 1]


def remove_abandoned(folder: Path, prefix: str) -> None:
    """Removes files with a prefix that ended processes of this machine left in a folder."""
    with contextlib.suppress(OSError):
        for entry in os.scandir(folder):
            if entry.name.startswith(prefix) and is_abandoned(entry.name):
                if entry.is_dir(follow_symlinks=False):
                    shutil.rmtree(entry.path, ignore_errors=True)
                else:
                    os.unlink(entry.path)


@functools.cache
def _machine() -> str:
    """A word for the numbers of processes: of the machine since it started, or of a container."""
    try:
        parts = Path("/proc/sys/kernel/random/boot_id").read_text() + os.readlink(
            "/proc/self/ns/pid"
        )
    except OSError:
        parts = f"{os.uname().nodename}"
    return hashlib.sha256(parts.encode()).hexdigest()[:8]


def _start_of(pid: int) -> str:
    """When a process started, in ticks since the machine did; "0" for one that does not exist."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(errors="replace")
    except OSError:
        return "0"
    fields = stat.rpartition(")")[2].split()
    return "0" if fields[0] in "ZX" else fields[19]
