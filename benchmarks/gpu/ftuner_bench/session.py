"""What every part is given: the bundle, the device, the time it has, where to write."""

from __future__ import annotations

import dataclasses
import pathlib
import time
from typing import TYPE_CHECKING, Any

from .bundle import Bundle, unpack_to_file
from .parts import Part
from .records import Writer
from .runtime import Library, Runtime
from .workloads import Workload

if TYPE_CHECKING:  # It needs PyTorch, and some parts do not.
    from .machine import Machine


@dataclasses.dataclass
class Session:
    """Input of a part.

    workloads: the requested workloads of the bundle of the part's groups. machine: only for
    parts that need PyTorch. deadline: a time of time.monotonic(). sizes: the requested sizes, or None
    for all.
    """

    part: Part
    bundle: Bundle
    workloads: tuple[Workload, ...]
    device: str
    runtime: Runtime
    machine: Machine  # Parts without PyTorch do not ask for it.
    write: Writer
    deadline: float
    seed: int
    sizes: list[int] | None
    skipped_peers: frozenset[str]
    scratch: pathlib.Path
    #: True if the time was too short for some measurement.
    cut_short: bool = False

    def seconds_left(self) -> float:
        return self.deadline - time.monotonic()

    def thorough(self, count: int) -> int:
        """A number of repetitions; a rehearsal, whose times do not count, makes two."""
        return min(2, count) if self.machine.rehearsal else count

    def grid(self, workload: Workload) -> list[int]:
        return workload.grid(self.sizes)

    @property
    def files(self) -> dict[str, str]:
        """Files and folders of the bundle for the described device, by their names."""
        return self.bundle.devices[self.device]["files"]

    def artefact(self, name: str) -> pathlib.Path:
        """A file of the bundle for the described device."""
        return unpack_to_file(self.bundle.folder / self.files[name])

    def folder(self, name: str) -> pathlib.Path | None:
        """A folder of the bundle; None, with a note, if the bundle was made without it."""
        if name not in self.files:
            self.write("note", text=f"the bundle was made without {name}")
            return None
        return self.bundle.folder / self.files[name]

    def library(self, workload: Workload) -> Library:
        """The compiled function of a workload, its kernels loaded."""
        library = Library(self.runtime, self.artefact("library_" + workload.name))
        library.prepare(self.machine.stream)
        return library

    def coverage(self, workload: str, wanted: list[Any], done: list[Any], what: str) -> None:
        """Records which sizes were reached, and which the time did not suffice for."""
        missing = [size for size in wanted if size not in set(done)]
        self.cut_short |= bool(missing)
        self.write(
            "coverage", workload=workload, what=what, done=sorted(done), missing=sorted(missing)
        )


def within(session: Session, shares: int) -> Share:
    """An even share of the time that is left to the part."""
    return Share(session, max(0.0, session.seconds_left()) / max(1, shares))


class Share:
    """Part of a session's time. Used up when another step like the longest would end late."""

    def __init__(self, session: Session, seconds: float):
        self.session, self.seconds = session, seconds
        self.end = session.seconds_left() - seconds
        self.longest, self.last = 0.0, session.seconds_left()

    def allows(self) -> bool:
        """Called before each step: whether there is time for it."""
        left = self.session.seconds_left()
        self.longest, self.last = max(self.longest, self.last - left), left
        return left - self.longest >= self.end

    def restart(self) -> None:
        """What happened so far was no step."""
        self.longest, self.last = 0.0, self.session.seconds_left()
