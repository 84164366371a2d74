"""Verdicts on codegen paths and their gates by card, driver and version, in the folder of the compile cache.

A verdict is a JSON file, `verdicts/NAME.json`, of a card with its driver, for one version of FTuner
and its compiler. What it says of a path holds for the set of families that the path has now.
"""

from __future__ import annotations

import hashlib
import json
import re
import threading
import time
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from .._version import version
from ..describe import descriptions
from ..errors import CacheError, CompileWarning, Error
from ..host import cache, nvml, outputs, runtime
from .families import sets

FORMAT_VERSION = 1
_MAJOR, _MINOR, _SM_COUNT = 75, 76, 16  # CUdevice_attribute


@dataclass(frozen=True)
class Card:
    """A GPU of this machine, as far as a verdict depends on it."""

    name: str
    capability: str
    sm_count: int
    driver: str

    @staticmethod
    def from_gpu(index: int) -> Card:
        """Raises `Error` if the GPU does not exist."""
        library = runtime.get()
        name = library.device_name(index)
        major, minor, sms = (
            library.device_attribute(index, number) for number in (_MAJOR, _MINOR, _SM_COUNT)
        )
        driver = nvml.driver_version() or f"for CUDA {library.driver_version()}"
        return Card(name, f"{major}.{minor}", sms, driver)

    def is_described_by(self, description: Mapping[str, Any]) -> bool:
        """Returns whether a device's description is of such a card: by name, capability and SMs."""
        return (
            description.get("compute_capability") == self.capability
            and description.get("sm_count") == self.sm_count
            and descriptions.is_named(self.name, str(description.get("name")))
        )

    def __str__(self) -> str:
        return f"{self.name} (compute capability {self.capability}, driver {self.driver})"


@dataclass(frozen=True)
class Outcome:
    """Outcome of a family: passed, failed, hung, refused (by the compiler), or skipped."""

    path: str
    name: str
    status: str
    words: str = ""
    error: float | None = None
    #: True if a kernel's result was wrong or it wrote beside it, which another run would not mend.
    is_wrong: bool = False


@dataclass(frozen=True)
class PathVerdict:
    """Verdict on a path: all its families passed, or one did not."""

    passed: bool
    family: str = ""
    status: str = ""
    words: str = ""

    @staticmethod
    def from_outcomes(outcomes: Iterable[Outcome]) -> PathVerdict:
        for outcome in outcomes:
            if outcome.status != "passed":
                return PathVerdict(False, outcome.name, outcome.status, outcome.words)
        return PathVerdict(True)

    def __str__(self) -> str:
        if self.passed:
            return "passed"
        return f"family '{self.family}' {self.status}" + (f" ({self.words})" if self.words else "")


def folder() -> Path:
    """Returns the folder of verdicts, which need not exist yet."""
    return cache.path() / "verdicts"


def file_of(card: Card) -> Path:
    """The file of a card's verdict; another driver, version or compiler has another one."""
    digest = hashlib.sha256(json.dumps(_key(card), sort_keys=True).encode()).hexdigest()
    slug = re.sub(r"[^a-z0-9]+", "-", card.name.lower()).strip("-")
    return folder() / f"{slug}-{digest[:16]}.json"


def _key(card: Card) -> dict[str, Any]:
    return {"card": asdict(card), "version": version, "compiler": cache.compiler_identity()}


def write(card: Card, found: Mapping[str, PathVerdict], outcomes: Iterable[Outcome]) -> Path:
    """Keeps verdicts on paths, beside those on others that are there; returns the file.

    Raises `CacheError` where the folder cannot be used.
    """
    file = file_of(card)
    paths = {
        path: {"set": sets()[path].digest, **asdict(verdict)} for path, verdict in found.items()
    }
    before = _read(file, card) or {}
    content = {
        "format_version": FORMAT_VERSION,
        **_key(card),
        "created": time.time(),
        "paths": {**before.get("paths", {}), **paths},
        "families": [
            *(one for one in before.get("families", []) if one.get("path") not in found),
            *map(asdict, outcomes),
        ],
    }
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with outputs.replacing([str(file)]) as (name,):
            Path(name).write_text(json.dumps(content, indent=1), encoding="utf-8")
    except (OSError, Error) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else error
        raise CacheError(
            f"cannot keep the verdict in '{file.parent}': {reason}; set "
            "FTUNER_CACHE_DIR to a folder that can be written"
        ) from error
    return file


def read(card: Card) -> dict[str, PathVerdict]:
    """The verdicts on paths of a card, on the sets of families as they are now."""
    verdicts = {}
    for path, entry in (_read(file_of(card), card) or {"paths": {}})["paths"].items():
        known = sets().get(path)
        if known is not None and entry["set"] == known.digest:
            verdicts[path] = PathVerdict(
                entry["passed"], entry["family"], entry["status"], entry["words"]
            )
    return verdicts


def _read(file: Path, card: Card) -> dict[str, Any] | None:
    """The content of a file; None without a file, or, with a warning, if it is not valid."""
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
        if not _is_valid(content, card):
            raise ValueError("expected a verdict on this card")
    except FileNotFoundError:
        return None
    except (OSError, ValueError, RecursionError) as error:
        warn_once(f"ignored the verdict '{file}': {error}; run ftuner check-gpu again")
        return None
    return dict(content)


def _is_valid(content: Any, card: Card) -> bool:
    """Returns whether a value is what `write` writes, as far as anybody reads it."""
    if not isinstance(content, dict) or content.get("format_version") != FORMAT_VERSION:
        return False
    if any(content.get(key) != value for key, value in _key(card).items()):
        return False
    paths, families = content.get("paths"), content.get("families")
    texts = ("set", "family", "status", "words")
    return (
        isinstance(paths, dict)
        and all(
            isinstance(entry, dict)
            and type(entry.get("passed")) is bool
            and all(isinstance(entry.get(key), str) for key in texts)
            for entry in paths.values()
        )
        and isinstance(families, list)
        and all(isinstance(family, dict) for family in families)
    )


_warned: set[str] = set()
_warned_lock = threading.Lock()


def warn_once(text: str) -> None:
    """Warns of something the first time in this process."""
    with _warned_lock:
        is_new = text not in _warned
        _warned.add(text)
    if is_new:
        warnings.warn(text, CompileWarning, stacklevel=3)
