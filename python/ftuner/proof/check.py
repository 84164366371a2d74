"""Compiles the families and watches the process that runs them."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from ..describe import descriptions
from ..errors import CompileError, Error
from ..host import processes, runtime
from ..host.progress import Progress
from . import verdicts
from .families import Family, parse_capability, sets
from .verdicts import Card, Outcome, PathVerdict

#: Compiles a family for a device to a library, with machine code for some processors. It is an
#: argument, since the compiler asks for the verdicts that checks give.
CompileFamily = Callable[[Family, descriptions.Description, Path, Sequence[str]], None]

#: Seconds for a process to start.
_SECONDS_TO_START = 60.0
#: Seconds after which a family hangs, unless a caller says otherwise.
SECONDS_OF_FAMILY = 10.0


@dataclass(frozen=True)
class Report:
    """Findings on a card."""

    card: Card
    outcomes: list[Outcome]
    paths: dict[str, PathVerdict]
    #: File of the verdicts.
    file: Path


def find_card(gpu: int) -> Card:
    """The card to check. Raises `Error`, in one sentence, without a card."""
    try:
        count = runtime.get().device_count()
    except Error as error:
        raise Error(f"there is no GPU to check: {error}") from error
    if not 0 <= gpu < count:
        raise Error(f"there is no GPU {gpu} to check: this machine has {count}")
    return Card.from_gpu(gpu)


def families_for(card: Card, paths: Sequence[str] | None = None) -> list[Family]:
    """The families of the named sets (`families.sets`), or of all, that the card runs.

    Raises `ValueError` for names of no set, and `Error` where one has nothing for the card.
    """
    known = sets()
    capability = parse_capability(card.capability)
    for path in paths or ():
        if path not in known:
            raise ValueError(f"paths: expected some of {', '.join(known)}, but got '{path}'")
        if not known[path].for_card(capability):
            raise Error(f"the codegen path {path} is not for {card}")
    return [
        family
        for path, one in known.items()
        if paths is None or path in paths
        for family in one.for_card(capability)
    ]


def check(
    gpu: int, families: Sequence[Family], compile_family: CompileFamily, timeout: float
) -> list[Outcome]:
    """Runs families on a GPU; one that takes longer than `timeout` seconds hangs.

    Where a family hung, or ended the process, others of its set are skipped. Raises `Error` where
    nothing can be run at all.
    """
    with processes.temporary_folder() as folder:
        device = descriptions.resolve(f"cuda:{gpu}")
        libraries, outcomes = build(families, device, Path(folder), compile_family, cubins=())
        compiled = [family for family in families if family.symbol in libraries]
        outcomes |= run(gpu, compiled, libraries, timeout)
    return [outcomes[family.symbol] for family in families]


def run(
    gpu: int,
    families: Sequence[Family],
    libraries: Mapping[str, Path],
    timeout: float,
    report: Callable[[Outcome], None] = lambda outcome: None,
) -> dict[str, Outcome]:
    """Runs compiled families on a GPU, as `check` does; outcomes by their symbols.

    Needs no compiler, so that families can be compiled elsewhere. `report` gets each outcome as
    soon as it is known.
    """
    outcomes: dict[str, Outcome] = {}
    todo = list(families)
    with processes.temporary_folder() as folder:
        with Progress("checking the GPU", len(todo)) as progress:
            while todo:
                found = _watch(gpu, todo, libraries, timeout, Path(folder), progress, report)
                outcomes |= found
                broken = outcomes[[*found][-1]].path  # Unless all have run.
                todo = [family for family in todo if family.symbol not in found]
                for family in todo:
                    if family.group == broken:
                        outcomes[family.symbol] = Outcome(family.group, family.name, "skipped")
                        report(outcomes[family.symbol])
                todo = [family for family in todo if family.group != broken]
    return outcomes


def check_sets(
    gpu: int,
    groups: Sequence[str] | None,
    compile_family: CompileFamily,
    timeout: float = SECONDS_OF_FAMILY,
) -> dict[str, list[Outcome]]:
    """Checks the named sets, or all, on a GPU; the outcomes of each, as `check` has them."""
    outcomes: dict[str, list[Outcome]] = {}
    for outcome in check(gpu, families_for(find_card(gpu), groups), compile_family, timeout):
        outcomes.setdefault(outcome.path, []).append(outcome)
    return outcomes


def check_and_keep(
    gpu: int, paths: Sequence[str] | None, compile_family: CompileFamily, timeout: float
) -> Report:
    """Checks the named sets, or all, on a GPU, and keeps the verdict."""
    card = find_card(gpu)
    by_set = check_sets(gpu, paths, compile_family, timeout)
    found = {path: PathVerdict.from_outcomes(own) for path, own in by_set.items()}
    outcomes = [one for own in by_set.values() for one in own]
    return Report(card, outcomes, found, verdicts.write(card, found, outcomes))


def build(
    families: Sequence[Family],
    device: descriptions.Description,
    folder: Path,
    compile_family: CompileFamily,
    *,
    cubins: Sequence[str],
) -> tuple[dict[str, Path], dict[str, Outcome]]:
    """Compiles families for a device into `folder`: libraries by symbols, and outcomes of those
    that have none. `cubins`: processors whose machine code goes with the PTX."""
    libraries: dict[str, Path] = {}
    outcomes: dict[str, Outcome] = {}

    def build_one(family: Family) -> None:
        library = folder / family.symbol / "libmodel.so"
        library.parent.mkdir()
        try:
            compile_family(family, device, library, cubins)
            libraries[family.symbol] = library
        except CompileError as error:
            words = next(
                (line for line in error.diagnostics.splitlines() if "error:" in line), str(error)
            )
            outcomes[family.symbol] = Outcome(family.group, family.name, "refused", words)
        progress.advance()

    with Progress("compiling", len(families)) as progress:
        processes.for_each(build_one, families, len(os.sched_getaffinity(0)))
    return libraries, outcomes


def _watch(
    gpu: int,
    todo: Sequence[Family],
    libraries: Mapping[str, Path],
    timeout: float,
    folder: Path,
    progress: Progress,
    report: Callable[[Outcome], None],
) -> dict[str, Outcome]:
    """Runs families in one process, until it ends or one hangs; outcomes of those that began."""
    jobs = folder / "jobs.json"
    jobs.write_text(
        json.dumps(
            [
                {"group": one.group, "name": one.name, "library": str(libraries[one.symbol])}
                for one in todo
            ]
        ),
        encoding="utf-8",
    )
    outcomes: dict[str, Outcome] = {}

    def keep(family: Family, status: str, words: str = "", **more: Any) -> None:
        outcome = Outcome(family.group, family.name, status, words, **more)
        outcomes[family.symbol] = outcome
        report(outcome)

    running: Family | None = None
    words = folder / "words"
    with _child(gpu, jobs, words) as (child, lines):
        limit = _SECONDS_TO_START
        while True:
            try:
                line = lines.get(timeout=limit)
            except queue.Empty:
                if running is None:
                    raise Error(f"the GPU did not answer within {limit:g} s") from None
                keep(running, "hung", f"no answer within {timeout:g} s")
                return outcomes
            if line is None:
                break
            limit = timeout
            if "begin" in line:
                running = todo[line["begin"]]
            elif "end" in line:
                family, running = todo[line.pop("end")], None
                keep(family, **line)
                progress.advance()
        code = child.wait()
    if running is None and outcomes:
        return outcomes
    said = words.read_text(encoding="utf-8", errors="replace").strip().splitlines()[-1:]
    reason = "; ".join([f"the process ended with code {code}", *said])
    if running is None:
        raise Error(f"no kernel can be run on the GPU: {reason}")
    keep(running, "failed", reason)
    return outcomes


_Lines = queue.Queue[Any]


@contextlib.contextmanager
def _child(gpu: int, jobs: Path, words: Path) -> Iterator[tuple[processes.Child, _Lines]]:
    """The process and the lines that it writes, None after the last; it is killed in the end."""
    lines: _Lines = queue.Queue()

    def listen(stream: IO[bytes]) -> None:
        for text in stream:
            if text.startswith(b"{"):
                lines.put(json.loads(text))
        lines.put(None)

    with words.open("wb") as errors:
        child = processes.Child(
            [sys.executable, "-m", "ftuner.proof.child", str(gpu), str(jobs)], stderr=errors
        )
    try:
        arguments = (child.process.stdout,)
        threading.Thread(target=listen, args=arguments, daemon=True).start()
        yield child, lines
    finally:
        # A kernel that the device does not give up may keep the process.
        child.end(patience=0)
