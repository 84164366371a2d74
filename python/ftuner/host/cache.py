"""The compile cache: one folder for each compilation, named by a hash of all that decides it.

The folder is `FTUNER_CACHE_DIR`, else `ftuner` in `XDG_CACHE_HOME` or `~/.cache`. A second folder,
`FTUNER_SHARED_CACHE_DIR`, is read if the first has no entry, and is never written. An entry holds
the library, its header, the manifest, the PTX and `metadata.json`, which has the SHA-256 of each.
It is written to a folder beside it and renamed when it is complete, so readers see all of it or
nothing, also if a writer is killed. Writers of the same entry wait for the first. What does not
match its checksums is compiled again.
"""

from __future__ import annotations

import builtins
import contextlib
import fcntl
import functools
import hashlib
import itertools
import json
import math
import os
import platform
import shutil
import time
import uuid
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from .. import locations
from ..errors import CacheError, CompileWarning
from . import processes

FORMAT_VERSION = 1
LIBRARY, HEADER, MANIFEST, PTX = "libmodel.so", "model.h", "manifest.json", "model.ptx"
_METADATA = "metadata.json"
# Errors of reading metadata from any file: one may be nested too deeply to be parsed.
_UNREADABLE = (OSError, ValueError, RecursionError)
# Names of entries that are being written or removed begin with this.
_TEMPORARY = ".tmp-"
# Seconds between two tries to get a lock.
_SECONDS_TO_LOCK = 0.05
# Temporary folders of other machines that are older than this belong to killed processes.
_ABANDONED_SECONDS = 3600


@dataclass(frozen=True)
class Entry:
    """An entry of the cache: its key, its folder, its bytes and what it was compiled from.

    `created` and `used` are seconds since the epoch.
    """

    key: str
    folder: Path
    bytes: int
    created: float
    used: float
    source: str
    device: str
    functions: tuple[str, ...]

    @property
    def library(self) -> Path:
        return self.folder / LIBRARY


def path() -> Path:
    """The cache's folder; it need not exist yet."""
    given = os.environ.get("FTUNER_CACHE_DIR")
    if given:
        return Path(given).absolute()
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base and os.path.isabs(base) else Path.home() / ".cache") / "ftuner"


def shared_path() -> Path | None:
    """Returns the folder of the cache that is only read; None if `FTUNER_SHARED_CACHE_DIR` is not set."""
    given = os.environ.get("FTUNER_SHARED_CACHE_DIR")
    return Path(given).absolute() if given else None


def list() -> builtins.list[Entry]:  # noqa: A001
    """Complete entries, the last used first. Empty if the cache does not exist yet."""
    entries = []
    for folder in _folders():
        if not folder.name.startswith(_TEMPORARY):
            entry = _read_entry(folder)
            if entry is not None:
                entries.append(entry)
    return sorted(entries, key=lambda entry: -entry.used)


def clear(older_than: float | None = None) -> int:
    """Removes entries and returns their number.

    `older_than` keeps those that were used within so many seconds. What killed processes left
    is removed, too, and explanations that are kept. Libraries in use stay loaded.
    """
    removed = 0
    now = time.time()
    for folder in _folders():
        if folder.name.startswith(_TEMPORARY):
            if older_than is None or _age(folder) > _ABANDONED_SECONDS:
                shutil.rmtree(folder, ignore_errors=True)
            continue
        entry = _read_entry(folder)
        if older_than is None or entry is None or now - entry.used > older_than:
            removed += _remove(folder)
    if older_than is None:
        for lock in _entries_folder().glob("*.lock"):
            lock.unlink(missing_ok=True)
    _clear_explanations(older_than)
    return removed


def explanations_folder() -> Path:
    """Returns the folder of kept explanations (kept_explanations.py); it need not exist yet."""
    return path() / "explanations"


def _clear_explanations(older_than: float | None) -> None:
    for file in explanations_folder().glob("*"):
        if older_than is None or _age(file) > older_than:
            with contextlib.suppress(OSError):
                file.unlink()


def key_of(parts: Mapping[str, Any]) -> str:
    """Hash of all that decides the result of a compilation, with the compiler itself."""
    everything = {
        "format_version": FORMAT_VERSION,
        "machine": platform.machine(),
        "compiler": compiler_identity(),
        **parts,
    }
    text = json.dumps(everything, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def compiler_identity() -> str:
    """Hash of the compiler, which another build of it has not."""
    return _compiler_identity(_stamp(locations.tool("ftuner-translate")))


def get(key: str, build: Callable[[Path], Mapping[str, Any]]) -> Entry:
    """The entry of a key.

    If it does not exist, `build` fills its folder and returns what to note of it.
    Raises `CacheError` if the folder cannot be used, and whatever `build` raises.
    """
    folder = _entries_folder() / key
    entry = _valid_entry(folder)
    shared = shared_path()
    if entry is None and shared is not None:
        entry = _valid_entry(shared / folder.parent.name / key, is_shared=True)
    if entry is not None:
        return entry
    try:
        _entries_folder().mkdir(parents=True, exist_ok=True)
        with lock(folder.with_suffix(".lock")):
            entry = _valid_entry(folder)
            if entry is None:
                entry = _build(folder, build)
            return entry
    except OSError as error:
        raise unusable(error, ", or compile with cache=False") from error


def unusable(error: OSError, advice: str = "") -> CacheError:
    """Returns the error for a folder that cannot be used."""
    return CacheError(
        f"{_cannot_use(error)}; set FTUNER_CACHE_DIR to a folder that can be written{advice}"
    )


def warn_unusable(error: OSError | BaseException | None) -> None:
    """Warns that the folder cannot be used, and that the work goes on without it."""
    words = f"{_cannot_use(error)}; compiling without it (FTUNER_CACHE_DIR names another folder)"
    warnings.warn(words, CompileWarning, stacklevel=3)


def _cannot_use(error: BaseException | None) -> str:
    reason = getattr(error, "strerror", None) or error
    return f"cannot use the compile cache '{path()}': {reason}"


def _build(folder: Path, build: Callable[[Path], Mapping[str, Any]]) -> Entry:
    _remove_abandoned()
    name = f"{_TEMPORARY}{folder.name[:16]}-{processes.owner()}-{uuid.uuid4().hex}"
    temporary = folder.with_name(name)
    temporary.mkdir()
    try:
        notes = build(temporary)
        files = sorted(file.name for file in temporary.iterdir())
        metadata = {
            "format_version": FORMAT_VERSION,
            "created": time.time(),
            **notes,
            **{name: _as_text(notes[name]) for name in ("source", "device")},
            "files": {name: file_checksum(temporary / name) for name in files},
        }
        (temporary / _METADATA).write_text(json.dumps(metadata, indent=1), encoding="utf-8")
        if os.path.lexists(folder):  # It is not valid, or it would have been returned.
            _remove(folder)
        temporary.rename(folder)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise
    entry = _read_entry(folder)
    if entry is None:
        raise CacheError(f"the entry '{folder}' was removed while it was written")
    return entry


def _entries_folder() -> Path:
    return path() / f"v{FORMAT_VERSION}"


def _folders() -> builtins.list[Path]:
    try:
        return sorted(entry for entry in _entries_folder().iterdir() if entry.is_dir())
    except FileNotFoundError:
        return []
    except OSError as error:
        raise CacheError(f"cannot read the compile cache '{path()}': {error.strerror}") from error


def _as_text(name: str) -> str:
    """A name that can be printed: names of files need not be Unicode."""
    return name.encode(errors="surrogateescape").decode(errors="replace")


def _is_text(value: Any) -> bool:
    """Returns whether a value is a printable text: JSON may hold half of a surrogate pair."""
    if not isinstance(value, str):
        return False
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def _is_time(value: Any) -> bool:
    """Returns whether a value is seconds since the epoch."""
    try:
        return type(value) in (int, float) and math.isfinite(value)
    except OverflowError:
        return False


def _is_name(value: Any) -> bool:
    """Returns whether a value is the name of a file in an entry's folder."""
    return _is_text(value) and "\0" not in value and Path(value).name == value != ".."


def _is_metadata(value: Any) -> bool:
    """Returns whether the fields of a value that are read are as `_build` writes them."""
    if not isinstance(value, dict) or value.get("format_version") != FORMAT_VERSION:
        return False
    files, functions = value.get("files"), value.get("functions")
    return (
        _is_time(value.get("created"))
        and _is_text(value.get("source"))
        and _is_text(value.get("device"))
        and isinstance(functions, builtins.list)
        and all(map(_is_text, functions))
        and isinstance(files, dict)
        and LIBRARY in files
        and all(_is_name(name) and _is_text(checksum) for name, checksum in files.items())
    )


def _read_metadata(folder: Path) -> dict[str, Any] | None:
    """The metadata of an entry, or None if it is missing or not valid."""
    file = folder / _METADATA
    try:
        # Others, such as pipes, may never end.
        metadata = json.loads(file.read_text(encoding="utf-8")) if file.is_file() else None
    except _UNREADABLE:
        return None
    return metadata if _is_metadata(metadata) else None


def _read_entry(folder: Path) -> Entry | None:
    """The entry by its metadata; None if it is not complete."""
    metadata = _read_metadata(folder)
    if metadata is None:
        return None
    try:
        if not all((folder / name).is_file() for name in metadata["files"]):
            return None
        return Entry(
            folder.name,
            folder,
            sum((folder / name).stat().st_size for name in metadata["files"]),
            metadata["created"],
            (folder / _METADATA).stat().st_mtime,
            metadata["source"],
            metadata["device"],
            tuple(metadata["functions"]),
        )
    except _UNREADABLE:
        return None


def _valid_entry(folder: Path, is_shared: bool = False) -> Entry | None:
    """Returns the entry if it is undamaged; records its use, unless it is shared."""
    entry, metadata = _read_entry(folder), _read_metadata(folder)
    if entry is None or metadata is None:
        return None
    try:
        for name, checksum in metadata["files"].items():
            if file_checksum(folder / name) != checksum:
                return None
    except _UNREADABLE:
        return None
    if not is_shared:
        with contextlib.suppress(OSError):  # A cache that is only read keeps no times of use.
            os.utime(folder / _METADATA)
    return entry


def _remove(folder: Path) -> bool:
    """Removes an entry in one step; False if it was gone."""
    target = folder.with_name(f"{_TEMPORARY}removed-{uuid.uuid4().hex}")
    try:
        folder.rename(target)
    except FileNotFoundError:
        return False
    except OSError as error:
        raise CacheError(f"cannot remove '{folder}': {error.strerror}") from error
    if target.is_dir() and not target.is_symlink():
        shutil.rmtree(target, ignore_errors=True)
    else:  # Whatever it is, it was no entry.
        target.unlink(missing_ok=True)
    return True


def _remove_abandoned() -> None:
    """Removes files of killed processes: at once for processes of this machine, else after a while."""
    for folder in _folders():
        if folder.name.startswith(_TEMPORARY) and (
            processes.is_abandoned(folder.name) or _age(folder) > _ABANDONED_SECONDS
        ):
            shutil.rmtree(folder, ignore_errors=True)
    for file in _entries_folder().glob("*.lock"):
        with contextlib.suppress(OSError), open(file, "a", encoding="utf-8") as handle:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            file.unlink(missing_ok=True)


def _age(folder: Path) -> float:
    try:
        return time.time() - folder.stat().st_mtime
    except OSError:
        return 0


def file_checksum(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


@contextlib.contextmanager
def lock(file: Path) -> Iterator[None]:
    """Waits for other processes and threads that build the same entry; removes the file afterwards.

    The system frees the lock of a process that ends. Entries are right without it, too; where the
    file system has no locks, two writers may do the same work.
    """
    for attempt in itertools.count():
        with open(file, "a", encoding="utf-8") as handle:
            _wait_for_lock(handle)
            # The last holder of the lock removed the file. Some file systems number a file anew each time.
            if attempt < 20 and not _is_same_file(handle.fileno(), file):
                continue
            try:
                yield
            finally:
                file.unlink(missing_ok=True)
            return


def _wait_for_lock(handle: IO[str]) -> None:
    """Returns when the lock is held, or at once if the file system has no locks."""
    while True:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            # A thread that sleeps in the system until it has the lock would not end with the others.
            processes.check_interrupted()
            time.sleep(_SECONDS_TO_LOCK)
        except OSError:
            return


def _is_same_file(handle: int, file: Path) -> bool:
    with contextlib.suppress(OSError):
        return os.path.samestat(os.fstat(handle), os.stat(file))
    return False


def _stamp(file: Path) -> tuple[str, int, int]:
    status = file.stat()
    return str(file), status.st_mtime_ns, status.st_size


@functools.cache
def _compiler_identity(stamp: tuple[str, int, int]) -> str:
    """Hash of the compiler's program and of its version, which is that of its LLVM, too."""
    tool = stamp[0]
    version = processes.run([tool, "--version"]).stdout
    return hashlib.sha256(version + Path(tool).read_bytes()).hexdigest()
