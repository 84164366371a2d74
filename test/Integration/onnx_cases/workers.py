"""Runs batches of trials in processes that may crash or hang."""

from __future__ import annotations

import multiprocessing
import os
import time
from collections.abc import Callable, Sequence
from multiprocessing.connection import wait
from typing import Any

from . import outcome
from .outcome import CRASH, HANG, NOT_RUN, Result
from .trials import Trial

#: Maximum number of batches of a process, since each batch leaves a loaded library.
_BATCHES = 40


class _Worker:
    """A process, the batch that it works on, and when it began."""

    def __init__(self, seed: int, trials: dict[str, Trial]) -> None:
        context = multiprocessing.get_context("fork")
        self.pipe, other = context.Pipe()
        self.process = context.Process(target=_work, args=(other, seed, trials), daemon=True)
        self.process.start()
        other.close()
        self.batch: list[Trial] = []
        self.reported: set[str] = set()
        self.is_beside_ftuner = False
        self.until = 0.0
        self.count = 0

    def start(self, batch: list[Trial], seconds: float) -> None:
        self.batch, self.reported, self.is_beside_ftuner = batch, set(), False
        self.until = time.monotonic() + seconds
        self.count += 1
        self.pipe.send([trial.mark for trial in batch])

    def end(self) -> None:
        self.process.kill()
        self.process.join()
        self.pipe.close()


def _work(pipe: Any, seed: int, trials: dict[str, Trial]) -> None:
    outcome.hide_assembler()
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    while True:
        try:
            batch = [trials[mark] for mark in pipe.recv()]
        except EOFError:
            return
        outcome.run_batch(batch, seed, lambda mark, result: pipe.send((mark, result)))
        pipe.send(None)


def run(
    batches: Sequence[list[Trial]],
    seed: int,
    jobs: int,
    report: Callable[[Trial, Result], None],
    seconds: float = 120,
) -> None:
    """Runs the batches; reports each trial once. A batch that crashes or hangs is halved until one trial is left."""
    waiting = [list(batch) for batch in batches][::-1]
    workers: list[_Worker] = []
    trials = {trial.mark: trial for batch in batches for trial in batch}
    try:
        while waiting or any(worker.batch for worker in workers):
            for worker in [w for w in workers if not w.batch and w.count >= _BATCHES]:
                worker.end()
                workers.remove(worker)
            while waiting and any(not worker.batch for worker in workers):
                batch = waiting.pop()
                next(w for w in workers if not w.batch).start(batch, seconds + 2 * len(batch))
            while waiting and len(workers) < jobs:
                workers.append(_Worker(seed, trials))
                batch = waiting.pop()
                workers[-1].start(batch, seconds + 2 * len(batch))
            busy = [worker for worker in workers if worker.batch]
            ready = wait([worker.pipe for worker in busy], timeout=1)
            for worker in busy:
                if worker.pipe in ready:
                    _receive(worker, workers, waiting, report)
                elif time.monotonic() > worker.until:
                    _failed(
                        worker, workers, waiting, report, Result(HANG, f"no end in {seconds:.0f} s")
                    )
    finally:
        for worker in workers:
            worker.end()


def _receive(worker: _Worker, workers: list[_Worker], waiting: list[Any], report: Any) -> None:
    try:
        message = worker.pipe.recv()
    except (EOFError, ConnectionResetError):
        worker.process.join()
        code = worker.process.exitcode
        _failed(
            worker, workers, waiting, report, Result(CRASH, f"the process ended with code {code}")
        )
        return
    if message is None:
        worker.batch = []
        return
    mark, result = message
    if result is None:
        worker.is_beside_ftuner = True
        return
    if mark in worker.reported:
        return
    worker.reported.add(mark)
    report(next(trial for trial in worker.batch if trial.mark == mark), result)


def _failed(
    worker: _Worker, workers: list[_Worker], waiting: list[Any], report: Any, result: Result
) -> None:
    left = [trial for trial in worker.batch if trial.mark not in worker.reported]
    beside = worker.is_beside_ftuner
    worker.end()
    workers.remove(worker)
    if len(left) == 1:
        report(left[0], result if beside else Result(NOT_RUN, f"onnxruntime: {result.words}"))
    elif left:
        half = len(left) // 2
        waiting += [left[half:], left[:half]]
