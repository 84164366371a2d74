"""Part 1: every function at many sizes against float64, before anything is timed.

Fresh random data for each check, results poisoned with NaN between guard bands. A
check fails on a relative error above that of its type (TOLERANCES of workloads.py), on an
element that was not written, on a guard band or an operand that changed.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence

import torch

from .buffers import TYPES, Guarded, guarded, reference, refill, relative_error
from .runtime import Function
from .session import Session, within
from .workloads import Workload


def measure(session: Session) -> bool:
    passed = _threads(session)
    passed &= _graph(session)
    for number, workload in enumerate(session.workloads):
        function = _function(session, workload)
        share = within(session, len(session.workloads) - number)
        wanted = [*session.grid(workload)[:2], *workload.beyond(), *session.grid(workload)[2:]]
        done = []
        for position, size in enumerate(wanted):
            # The ends and what is beyond are checked whatever the time.
            if not share.allows() and position > 6:
                break
            # Every fifth check has operands off alignment, which other kernels serve.
            passed &= check(
                session,
                function,
                workload,
                size,
                seed=position,
                offset=1 if position % 5 == 4 else 0,
            )
            done.append(size)
        session.coverage(workload.name, wanted, done, "checks")
    return passed


def check(
    session: Session, function: Function, workload: Workload, size: int, seed: int, offset: int
) -> bool:
    """Checks one size and records what came out."""
    device = session.machine.device
    generator = torch.Generator(device=device).manual_seed(
        session.seed * 1000003 + seed * 4099 + size
    )
    operands = []
    for shape in workload.argument_shapes(size):
        operands.append(_operand(workload, shape, device, generator, offset))
    originals = [operand.tensor.clone() for operand in operands]
    result = guarded(workload.result_element, workload.result_shape(size), device, offset)
    problems = []
    try:
        call(session, function, workload, size, operands, result)
        session.machine.synchronize()
    except Exception as error:
        problems.append(f"{type(error).__name__}: {error}")
    expected = reference(workload, *originals)
    error = relative_error(result.tensor, expected) if result.length else 0.0
    if not error <= workload.tolerance:
        problems.append(f"relative error {error:.3g} above {workload.tolerance:g}")
    if result.unwritten():
        problems.append(f"{result.unwritten()} elements were not written")
    if not result.bands_intact():
        problems.append("memory beside the result was written")
    for name, operand, original in zip("AB", operands, originals):
        if not torch.equal(operand.tensor, original) or not operand.bands_intact():
            problems.append(f"operand {name} was written")
    session.write(
        "check", workload=workload.name, size=size, offset=offset, error=error, problems=problems
    )
    for problem in problems:
        print(f"FAILED {workload.name} T={size}: {problem}", flush=True)
    return not problems


def _operand(
    workload: Workload,
    shape: Sequence[int],
    device: str,
    generator: torch.Generator | None = None,
    offset: int = 0,
) -> Guarded:
    """A guarded buffer of random elements."""
    operand = guarded(workload.element, shape, device, offset)
    values = torch.empty(*shape, dtype=TYPES[workload.element], device=device)
    operand.fill(refill(values, generator))
    return operand


def _function(session: Session, workload: Workload) -> Function:
    return session.library(workload).function(workload.name, 3, len(workload.dynamic_sizes(1)))


def call(
    session: Session,
    function: Function,
    workload: Workload,
    size: int,
    operands: Sequence[Guarded],
    result: Guarded,
    stream: int | None = None,
) -> None:
    sizes = workload.dynamic_sizes(size)
    workspace = torch.empty(
        max(1, function.workspace_bytes(*sizes)), dtype=torch.uint8, device=session.machine.device
    )
    function(
        *[operand.tensor.data_ptr() for operand in operands],
        result.tensor.data_ptr(),
        *sizes,
        workspace.data_ptr(),
        session.machine.stream if stream is None else stream,
    )


def _threads(session: Session) -> bool:
    """Two threads on two streams at once, each with its own data."""
    workload = session.workloads[0]
    function = _function(session, workload)
    device = session.machine.device
    problems: list[str] = []

    def work(number: int) -> None:
        stream = torch.cuda.Stream() if not session.machine.rehearsal else None
        handle = stream.cuda_stream if stream else session.machine.stream
        generator = torch.Generator(device=device).manual_seed(session.seed + number)
        for size in session.grid(workload)[number:40:2]:
            if stream:
                torch.cuda.set_stream(stream)
            operands = [
                _operand(workload, shape, device, generator)
                for shape in workload.argument_shapes(size)
            ]
            result = guarded(workload.result_element, workload.result_shape(size), device)
            try:
                call(session, function, workload, size, operands, result, handle)
                if stream:
                    stream.synchronize()
            except Exception as error:
                problems.append(f"thread {number}, T={size}: {type(error).__name__}: {error}")
                return
            expected = reference(workload, *[operand.tensor for operand in operands])
            error = relative_error(result.tensor, expected)
            if not error <= workload.tolerance or not result.bands_intact():
                problems.append(f"thread {number}, T={size}: relative error {error:.3g}")

    threads = [threading.Thread(target=work, args=(number,)) for number in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    session.machine.synchronize()
    session.write(
        "check", workload=workload.name, what="two threads, two streams", problems=problems
    )
    for problem in problems:
        print(f"FAILED two threads: {problem}", flush=True)
    return not problems


def _graph(session: Session) -> bool:
    """Captured into a graph and replayed with other data in the same buffers."""
    workload = session.workloads[0]
    function = _function(session, workload)
    device, problems = session.machine.device, []
    for size in session.grid(workload)[:4]:
        operands = [_operand(workload, shape, device) for shape in workload.argument_shapes(size)]
        result = guarded(workload.result_element, workload.result_shape(size), device)
        sizes = workload.dynamic_sizes(size)
        workspace = torch.empty(
            max(1, function.workspace_bytes(*sizes)), dtype=torch.uint8, device=device
        )
        arguments = [
            *[operand.tensor.data_ptr() for operand in operands],
            result.tensor.data_ptr(),
            *sizes,
            workspace.data_ptr(),
            session.machine.stream,
        ]
        replay = session.machine.capture([lambda a=arguments: function(*a)], 1)
        for operand in operands:
            refill(operand.tensor)
        replay()
        session.machine.synchronize()
        expected = reference(workload, *[operand.tensor for operand in operands])
        error = relative_error(result.tensor, expected)
        if not error <= workload.tolerance:
            problems.append(f"T={size}: relative error {error:.3g} after the replay of a graph")
    session.write("check", workload=workload.name, what="replay of a graph", problems=problems)
    for problem in problems:
        print(f"FAILED {problem}", flush=True)
    return not problems
