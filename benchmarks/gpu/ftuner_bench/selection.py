"""Programs of the pools timed, to see how well the score ranks them.

The bundle holds the kernels of all families and, for each size, the programs that
the search ranked with the terms of their scores (prepare.py). Each is launched
through the runtime with its own blocks, checked, and timed warm and cold in graphs.
Programs with slices of k are two launches, which a function of each makes.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import torch

from .buffers import Buffers, Pool, reference, refill, relative_error, spoil
from .machine import Call
from .runtime import Launch, Library, blocks_of
from .session import Session, within
from .timing import compare
from .workloads import Workload

ROUNDS = 5
SAMPLE_MICROSECONDS = 150.0


def measure(session: Session) -> bool:
    workloads = [
        workload for workload in session.workloads if "selection_" + workload.name in session.files
    ]
    pool = Pool(session.machine, workloads, session.seed)
    listings = {
        workload: json.loads(session.artefact("programs_" + workload.name).read_bytes())
        for workload in workloads
    }
    # Those with most sizes come last and take all the time that is left.
    workloads.sort(key=lambda workload: len(listings[workload]["sizes"]))
    every = {workload: Programs(session, workload, listings[workload]) for workload in workloads}
    # Programs that no search chose, and nobody proved, come last: one that hangs costs the others.
    jobs = [
        (workload, is_ranked)
        for is_ranked in (True, False)
        for workload in workloads
        if is_ranked or every[workload].has_unranked()
    ]
    passed = True
    for number, (workload, is_ranked) in enumerate(jobs):
        programs = every[workload]
        share = within(session, len(jobs) - number)
        wanted = [size for size in session.grid(workload) if programs.of(size, is_ranked)]
        done: list[int] = []
        for size in wanted:
            # Half a dozen milliseconds of each program; a size is measured whole.
            if not share.allows() and done:
                break
            passed &= _size(session, pool, workload, size, programs, is_ranked)
            done.append(size)
        what = "ranked programs" if is_ranked else "other programs"
        session.coverage(workload.name, wanted, done, what)
    return passed


class Programs:
    """The programs of a workload by their sizes, and how to run them."""

    def __init__(self, session: Session, workload: Workload, listing: dict[str, Any]):
        self.session, self.workload = session, workload
        self.sizes: dict[str, list[dict[str, Any]]] = listing["sizes"]
        self.library = self._open("selection_")
        manifest = json.loads(self.library.module.manifest)
        self.addresses = self.library.kernels()
        self.kernels = {kernel["entry"]: kernel for kernel in manifest["kernels"]}
        self.families = manifest["workloads"][0]["families"]
        files = session.files
        self.slices: Library | None = None
        if "slices_" + workload.name in files:
            self.slices = self._open("slices_")
            manifest = json.loads(self.slices.module.manifest)
            self.kernels |= {kernel["entry"]: kernel for kernel in manifest["kernels"]}
            # The only workload of each function has its name and a number.
            self.families_of = {
                one["name"].rpartition("_")[0]: one["families"] for one in manifest["workloads"]
            }
        self.workspace = torch.empty(0, dtype=torch.uint8)

    def of(self, size: int, is_ranked: bool) -> list[tuple[int, dict[str, Any]]]:
        """The programs of a size that the search ranked, or the others, with their numbers."""
        every = enumerate(self.sizes.get(str(size), []))
        return [one for one in every if (one[1]["rank"] is not None) == is_ranked]

    def has_unranked(self) -> bool:
        return any(self.of(int(size), False) for size in self.sizes)

    def _open(self, kind: str) -> Library:
        library = Library(self.session.runtime, self.session.artefact(kind + self.workload.name))
        library.prepare(self.session.machine.stream)
        return library

    def kernel_of(self, program: dict[str, Any]) -> dict[str, Any]:
        """The manifest's entry of a program's kernel; of two, the one that multiplies."""
        if "function" in program:
            return self.kernels[self.families_of[program["function"]][0]["kernel"]]
        return self.kernels[self.families[program["family"]]["kernel"]]

    def call(self, program: dict[str, Any], size: int, buffers: Buffers) -> Call:
        """A call that runs a program."""
        stream = self.session.machine.stream
        if "function" in program:
            return self._function(program["function"], size, buffers)
        kernel = self.kernel_of(program)
        address = self.addresses[kernel["entry"]]
        one = launch(self.session, address, kernel, program, self.workload, size, buffers)
        return lambda: one(stream)

    def _function(self, name: str, size: int, buffers: Buffers) -> Call:
        assert self.slices is not None
        sizes = self.workload.dynamic_sizes(size)
        function = self.slices.function(name, 3, len(sizes))
        count = function.workspace_bytes(*sizes)
        if self.workspace.numel() < count:
            # The one before is kept by the calls that have its address.
            self.workspace = torch.empty(
                count, dtype=torch.uint8, device=self.session.machine.device
            )
        workspace, addresses = self.workspace, [tensor.data_ptr() for tensor in buffers]
        stream = self.session.machine.stream
        return lambda: function(*addresses, *sizes, workspace.data_ptr(), stream)


def _size(
    session: Session,
    pool: Pool,
    workload: Workload,
    size: int,
    programs: Programs,
    is_ranked: bool,
) -> bool:
    chosen = programs.of(size, is_ranked)
    buffers = pool.sets(workload, size)
    a, b, c = buffers[0]
    expected = reference(workload, a, b)
    calls: dict[str, list[Call]] = {}
    passed = True
    for index, program in chosen:
        error: float | None = None
        try:
            bound = [programs.call(program, size, some) for some in buffers]
            spoil(c)
            bound[0]()
            session.machine.synchronize()
            error = relative_error(c, expected)
            if not error <= workload.tolerance:
                raise ValueError(f"relative error {error:.3g}")
            calls[str(index)] = bound
        except Exception as failure:  # of one program: the others go on
            passed = False
            session.write(
                "wrong_program",
                workload=workload.name,
                size=size,
                program=program,
                error=error,
                problem=str(failure),
            )
            print(f"FAILED {workload.name} T={size}: program {index}: {failure}", flush=True)
    times = {
        mode: compare(session.machine, calls, mode, session.thorough(ROUNDS), SAMPLE_MICROSECONDS)
        for mode in ("graph_warm", "graph_cold")
    }
    for index, program in chosen:
        kernel = programs.kernel_of(program)
        for mode, (summaries, errors) in times.items():
            if str(index) in summaries or str(index) in errors:
                session.write(
                    "program",
                    workload=workload.name,
                    size=size,
                    mode=mode,
                    program=program,
                    threads=kernel["block"][0],
                    resources=kernel["resources"],
                    shared_bytes=kernel["dynamic_shared_memory_bytes"],
                    microseconds=summaries.get(str(index)),
                    problem=errors.get(str(index)),
                )
    # What the pool's memory held was overwritten, which random data must not be for long.
    for _, _, result in buffers:
        refill(result)
    return passed


def launch(
    session: Session,
    address: int,
    kernel: dict[str, Any],
    program: dict[str, Any],
    workload: Workload,
    size: int,
    buffers: Buffers,
) -> Launch:
    """A launch of `program`, whose uKernels lie along m or n (docs/manifest.md)."""
    batch, m, n, k = workload.extents(size)
    other = 1 - program["axis"]
    beside = -(-(m, n)[other] // program["ukernels"][0]["block_tile"][other])
    grid = blocks_of(program, sum(program["blocks"]) * beside * batch)
    pointers = dict(zip(("lhs", "rhs", "output"), (tensor.data_ptr() for tensor in buffers)))
    strides = _strides(buffers)
    values = {"m": m, "n": n, "k": k, "b0": batch}
    parameters = []
    for parameter in kernel["parameters"]:
        name, kind = parameter["name"], parameter["kind"]
        if kind == "pointer":
            value = pointers[name]
        elif kind == "part":
            value = program["blocks"][0]
        elif kind == "tensor_map":
            numbers = {**strides, **values}
            value = session.runtime.tensor_map(
                kernel["entry"],
                parameter,
                pointers[parameter["pointer"]],
                *(
                    [numbers.get(extent, extent) for extent in parameter[key]]
                    for key in ("sizes", "strides")
                ),
                session.machine.stream,
            )
        else:
            value = strides[name] if kind == "stride" else values[name]
        parameters.append((kind, parameter["type"], value))
    return Launch(
        session.runtime,
        address,
        grid,
        kernel["block"][0],
        kernel["dynamic_shared_memory_bytes"],
        parameters,
    )


def _strides(buffers: Sequence[torch.Tensor]) -> dict[str, int]:
    """Strides by the names of kernel parameters: operand and dimension."""
    return {
        f"{operand}_stride{axis}": stride
        for operand, tensor in zip(("lhs", "rhs", "output"), buffers)
        for axis, stride in enumerate(tensor.stride())
    }
