"""The process that runs torch-mlir's passes, so that what they do to a process is not the user's.

There is one for each process of Python. It is kept from one import to the next, and started again
after it has crashed or was stopped. It ends with its owner (`processes`).
"""

from __future__ import annotations

import atexit
import contextlib
import fcntl
import json
import os
import selectors
import shutil
import signal
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from ...errors import Error
from ...host import processes

_PROGRAM = Path(__file__).with_name("passes.py")

#: Limits of a request: seconds of a processor, and more for each MiB of the module; bytes.
_SECONDS, _SECONDS_PER_MIB = 20.0, 600.0
_MAX_BYTES = 16 << 30
#: A request that waits for something may take so many times its seconds.
_WAITING = 5.0

#: Limits of the search for the operator that ends the process, in seconds.
_SECONDS_PER_PART = 5.0
_SECONDS_OF_SEARCH = 30.0

#: Seconds between two looks at the process.
_TICK = 0.1


@dataclass(frozen=True)
class Limits:
    """Limits of one request: seconds of a processor, and bytes of memory of the process."""

    seconds: float
    bytes: int

    @staticmethod
    def for_module(length: int) -> Limits:
        """Limits for a module of so many bytes.

        `FTUNER_IMPORT_SECONDS` and `FTUNER_IMPORT_GIB` replace the defaults. Raises `ValueError` if
        one is not a positive number.
        """
        memory = min(_MAX_BYTES, os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2)
        seconds = _number_of("FTUNER_IMPORT_SECONDS")
        gib = _number_of("FTUNER_IMPORT_GIB")
        return Limits(
            _SECONDS + _SECONDS_PER_MIB * length / (1 << 20) if seconds is None else seconds,
            memory if gib is None else int(gib * (1 << 30)),
        )


def _number_of(variable: str) -> float | None:
    text = os.environ.get(variable)
    if not text:
        return None
    with contextlib.suppress(ValueError):
        if 0 < float(text) < float("inf"):
            return float(text)
    raise ValueError(f"{variable}: expected a positive number, but got '{text}'")


class Refused(Exception):
    """An operator that the passes refuse: reason, place and diagnostics."""

    def __init__(self, reason: str, place: str | None, diagnostics: str | None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.place = place
        self.diagnostics = diagnostics


class Ended(Exception):
    """The process ended in a request.

    Attributes:
        how: "crash", "kill" (by somebody else), "time" or "memory".
        words: how it ended, as the end of "torch-mlir … ".
        diagnostics: what it printed.
    """

    def __init__(self, how: str, words: str, diagnostics: str) -> None:
        super().__init__(words)
        self.how = how
        self.words = words
        self.diagnostics = diagnostics


def lower(module: bytes, passes: Sequence[str], limits: Limits | None = None) -> str:
    """Runs passes on a module, as text or bytecode, and returns its text with its places.

    Raises `Refused` for an operator that has no lowering, also for one at which the process ends.
    """
    limits = limits or Limits.for_module(len(module))
    with _lock:
        request = {"kind": "lower", "passes": [*passes]}
        try:
            try:
                return _request(request, module, limits)[1].decode()
            except Ended as ended:
                if ended.how != "kill":
                    raise
            # Nobody says that it was this module's fault.
            return _request(request, module, limits)[1].decode()
        except Ended as ended:
            operator, place = _find_operator(module, passes, limits, ended)
            at = f" at the operator {operator}" if operator else ""
            reason = f"torch-mlir {ended.words.format(at=at)}"
            raise Refused(reason, place, ended.diagnostics or reason) from None


def _find_operator(
    module: bytes, passes: Sequence[str], limits: Limits, ended: Ended
) -> tuple[str | None, str | None]:
    """Name and place of the operator at which the process ends; None if it is not known.

    Each form of an operator is tried on its own, rare forms first. After a crash that none of them
    repeats, the shortest beginning of the module that does is found by halves.
    """
    deadline = time.monotonic() + _SECONDS_OF_SEARCH
    small = Limits(min(_SECONDS_PER_PART, limits.seconds), limits.bytes)

    def ends_likewise(first: int, last: int) -> bool:
        request = {"kind": "lower", "passes": [*passes], "first": first, "last": last}
        try:
            _request(request, module, small)
        except Ended as other:
            return other.how == ended.how
        except (Refused, Error):
            pass
        return False

    try:
        operators = _request({"kind": "list"}, module, small)[0]["operators"]
    except (Ended, Refused, Error):
        return None, None
    counts = Counter(operator["name"] for operator in operators)
    forms = {operator["form"]: index for index, operator in reversed([*enumerate(operators)])}
    for index in sorted(forms.values(), key=lambda one: (counts[operators[one]["name"]], one)):
        if time.monotonic() > deadline:
            return None, None
        if ends_likewise(index, index):
            return operators[index]["name"], operators[index]["place"]
    if ended.how != "crash" or not operators or not ends_likewise(0, len(operators) - 1):
        return None, None
    low, high = 0, len(operators) - 1
    while low < high:
        middle = (low + high) // 2
        if time.monotonic() > deadline:
            return None, None
        if ends_likewise(0, middle):
            high = middle
        else:
            low = middle + 1
    return operators[low]["name"], operators[low]["place"]


class _Worker:
    """The running process with the pipes to and from it."""

    def __init__(self) -> None:
        self.words: IO[bytes] = tempfile.TemporaryFile()
        # Written from its beginning again for each request.
        fcntl.fcntl(self.words, fcntl.F_SETFL, os.O_APPEND)
        end, self.requests = os.pipe()
        paths = [os.path.abspath(path) for path in sys.path]
        command = [_python(), "-I", str(_PROGRAM), str(end), json.dumps(paths)]
        try:
            self.child = processes.Child(command, cwd=Path("/"), pass_fds=[end], stderr=self.words)
        except BaseException:
            os.close(self.requests)
            raise
        finally:
            os.close(end)
        os.set_blocking(self.requests, False)
        stdout = self.child.process.stdout
        assert stdout is not None
        self.answers = stdout.fileno()
        os.set_blocking(self.answers, False)

    @property
    def pid(self) -> int:
        return self.child.process.pid

    def is_running(self) -> bool:
        return self.child.process.poll() is None

    def forget(self) -> None:
        """Closes what it holds, in a process forked from the owner."""
        os.close(self.requests)
        self.words.close()

    def end(self) -> None:
        os.close(self.requests)
        self.words.close()
        self.child.end(patience=0)

    def exchange(self, message: bytes, limits: Limits) -> tuple[dict[str, Any], bytes]:
        """Sends a request and returns its answer. Raises `Ended`."""
        self.words.seek(0)
        self.words.truncate()
        watch = _Watch(self.pid, limits)
        left, got = memoryview(message), bytearray()
        header: dict[str, Any] | None = None
        with selectors.DefaultSelector() as selector:
            selector.register(self.answers, selectors.EVENT_READ)
            selector.register(self.requests, selectors.EVENT_WRITE)
            while True:
                for key, _ in selector.select(_TICK):
                    if key.fd == self.requests:
                        with contextlib.suppress(BlockingIOError, BrokenPipeError):
                            left = left[os.write(self.requests, left) :]
                        if not left:
                            selector.unregister(self.requests)
                        continue
                    part = os.read(self.answers, 1 << 20)
                    if not part:
                        raise self._crash()
                    got += part
                    if header is None and b"\n" in got:
                        line, _, rest = bytes(got).partition(b"\n")
                        header, got = json.loads(line), bytearray(rest)
                    if header is not None and len(got) == header["bytes"]:
                        return header, bytes(got)
                watch.look(self._printed)

    def _printed(self) -> str:
        self.words.seek(0)
        return self.words.read(1 << 20).decode(errors="replace").strip()

    def _crash(self) -> Ended:
        code = self.child.wait()
        printed = self._printed()
        if code == -signal.SIGKILL:
            words = "was killed{at} by the system, which may have run out of memory"
            return Ended("kill", words, printed)
        name = {
            -signal.SIGSEGV: "segmentation fault", -signal.SIGABRT: "abort", -signal.SIGBUS: "bus error",
            -signal.SIGFPE: "arithmetic error", -signal.SIGILL: "illegal instruction",
        }.get(code, f"signal {-code}" if code < 0 else f"code {code}")  # fmt: skip
        return Ended("crash", f"crashes{{at}} ({name})", printed)


class _Watch:
    """The limits of a request that runs."""

    def __init__(self, pid: int, limits: Limits) -> None:
        self._pid = pid
        self._limits = limits
        self._begin = time.monotonic()
        self._before = _usage_of(pid)[0]

    def look(self, printed: Any) -> None:
        """Raises `Ended` if the process has reached a limit."""
        seconds, memory = _usage_of(self._pid)
        limit = self._limits.seconds
        if seconds - self._before > limit or time.monotonic() - self._begin > _WAITING * limit:
            raise Ended("time", f"does not end within {limit:g} s{{at}}", printed())
        if memory > self._limits.bytes:
            gib = self._limits.bytes / (1 << 30)
            raise Ended("memory", f"takes more than {gib:.3g} GiB of memory{{at}}", printed())


def _usage_of(pid: int) -> tuple[float, int]:
    """Seconds of a processor and bytes of memory that a process has taken; 0 if it has ended."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()
    except OSError:
        return 0.0, 0
    seconds = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return seconds, int(fields[21]) * os.sysconf("SC_PAGE_SIZE")


def _python() -> str:
    """The interpreter, also where Python is part of another program."""
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    for name in (sys.executable, os.path.join(sys.exec_prefix, "bin", version)):
        if name and os.path.basename(name).startswith(("python", "pypy")) and shutil.which(name):
            return name
    found = shutil.which(version)
    if found is None:
        raise Error(f"cannot import the model: expected the program {version}, but found none")
    return found


_lock = threading.RLock()
_worker: _Worker | None = None


@contextlib.contextmanager
def _running() -> Iterator[_Worker]:
    """The worker, which ends if an exception passes."""
    global _worker
    if _worker is not None and not _worker.is_running():
        _end()
    if _worker is None:
        _worker = _Worker()
    try:
        yield _worker
    except BaseException:
        _end()
        raise


def _request(
    header: dict[str, Any], content: bytes, limits: Limits
) -> tuple[dict[str, Any], bytes]:
    """The answer to a request. Raises `Ended`, `Refused`, and `Error` if the module is not valid."""
    with _running() as worker:
        line = json.dumps({**header, "bytes": len(content)}).encode() + b"\n"
        answer, text = worker.exchange(line + content, limits)
    if _usage_of(worker.pid)[1] > limits.bytes // 2:
        _end()  # The next request has its own memory.
    if "refused" in answer:
        refused = answer["refused"]
        raise Refused(refused["reason"], refused["place"], refused["words"])
    if "failed" in answer:
        raise Error(f"cannot import the model: {answer['failed']}")
    return answer, text


def _end() -> None:
    global _worker
    worker, _worker = _worker, None
    if worker is not None:
        worker.end()


def _forget() -> None:
    """Leaves the worker to the process from which this one was forked."""
    global _lock, _worker
    _lock = threading.RLock()
    worker, _worker = _worker, None
    if worker is not None:
        worker.forget()


os.register_at_fork(after_in_child=_forget)
atexit.register(_end)
