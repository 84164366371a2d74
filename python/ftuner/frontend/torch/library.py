"""Functions that this process has compiled: each content once, for all callers.

Two products are one function if their texts differ in the function's name only, and device and
options are the same. Files that those name count by what they hold.
"""

from __future__ import annotations

import os
import re
import threading
import time
from collections.abc import Hashable, Mapping, Sequence
from concurrent.futures import CancelledError, Future
from dataclasses import dataclass, field
from typing import Protocol

import ftuner
from ftuner.host import processes
from ftuner.host.function import Function
from ftuner.host.progress import Progress

from .graph.nodes import Unsupported
from .report import update
from .settings import Settings

#: A function, or the reason why it does not exist.
Built = Function | ftuner.CompileError | Unsupported


class Source(Protocol):
    """One function, whose module in MLIR is its ``str()``."""

    @property
    def name(self) -> str: ...

    @property
    def max_kernels(self) -> int: ...


def without_name(source: Source) -> str:
    """The module's text, equal where nothing but the names of the functions differ."""
    return str(source).replace(f"func.func @{source.name}(", "func.func @function(", 1)


@dataclass(frozen=True)
class _Outcome:
    """The result of a compilation, under the name that the function was compiled with."""

    name: str
    built: Built

    def named(self, name: str) -> Built:
        """The result for a function of another name."""
        if isinstance(self.built, Function):
            return self.built if self.built.__name__ == name else self.built.renamed(name)
        if isinstance(self.built, Unsupported) or self.name == name:
            return self.built

        def rename(text: str) -> str:
            return re.sub(rf"@{re.escape(self.name)}\b", f"@{name}", text)

        return ftuner.CompileError(rename(str(self.built)), rename(self.built.diagnostics))


@dataclass(frozen=True)
class _Task:
    """A function that a thread has undertaken to compile."""

    function: Source
    future: Future[_Outcome] = field(default_factory=Future)


class Library:
    """Compiles functions that are new, several at once, and keeps them.

    Safe to call from many threads: what one of them compiles, others wait for. Errors are not kept,
    so that later requests get the reason again.
    """

    def __init__(self) -> None:
        self._tasks: dict[Hashable, _Task] = {}
        self._lock = threading.Lock()

    def get(self, functions: Sequence[Source], settings: Settings) -> list[Built]:
        """The compiled functions, each under its own name.

        Raises whatever `ftuner.compile` raises, other than `CompileError`.
        """
        identity = settings.identity()
        keys = [(without_name(one), one.max_kernels > 1, identity) for one in functions]
        while True:
            wanted: list[_Task] = []
            new_tasks: dict[Hashable, _Task] = {}
            with self._lock:
                for key, function in zip(keys, functions):
                    if key not in self._tasks:
                        self._tasks[key] = new_tasks[key] = _Task(function)
                    wanted.append(self._tasks[key])
            if new_tasks:
                self._run(new_tasks, settings)
            try:
                outcomes = [task.future.result() for task in wanted]
            except CancelledError:
                continue  # Another thread was interrupted before it had compiled this.
            return [outcome.named(f.name) for outcome, f in zip(outcomes, functions)]

    def _run(self, tasks: Mapping[Hashable, _Task], settings: Settings) -> None:
        """Compiles the functions that no other thread compiles, and reports progress."""

        def work(key: Hashable) -> None:
            task = tasks[key]
            built = _compile(task.function, settings)
            if isinstance(built, Function):
                with update() as counts:
                    counts.compiled += 1
            if isinstance(built, ftuner.CompileError):
                self._forget(key)
            task.future.set_result(_Outcome(task.function.name, built))
            progress.advance()

        begin = time.monotonic()
        title = f"compiling {len(tasks)} functions for torch.compile"
        workers = min(len(tasks), _processors())
        try:
            with Progress(title, len(tasks)) as progress:
                processes.for_each(work, tasks, workers)
        finally:
            with update() as counts:
                counts.compile_seconds += time.monotonic() - begin
            # Functions that were not reached are left to the next request.
            for key, task in tasks.items():
                if not task.future.done():
                    self._forget(key)
                    task.future.cancel()

    def _forget(self, key: Hashable) -> None:
        with self._lock:
            del self._tasks[key]


def _processors() -> int:
    """Processors that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _compile(function: Source, settings: Settings) -> Built:
    try:
        module = ftuner.compile(
            str(function), device=settings.device, emulate=settings.emulate, **settings.options
        )
    except ftuner.CompileError as error:
        return error
    (compiled,) = module.functions.values()
    simple = [k["entry"] for k in module.manifest["kernels"] if not k["workloads"]]
    if simple and function.max_kernels == 1:
        return Unsupported("simple kernels beside the uKernels: " + ", ".join(simple))
    return compiled


#: The functions that this process has compiled.
LIBRARY = Library()
