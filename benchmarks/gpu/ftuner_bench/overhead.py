"""Time of a call of a compiled function on the host, in nanoseconds.

A product is called in a loop of C: the whole function, its checks, its dispatch over
sizes and the launch through the runtime; against a bare cuLaunchKernel of the same
kernel with parameters that were made before. From Python, the package's call with a
result to write to, against PyTorch's product with one. One of the products has kernels with
tensor maps, which the host encodes. Beside them a pointwise operator by torch.compile, and the
launch of the kernel that Inductor and Triton made of it. The loops take turns; the device is waited
for between them.
"""

from __future__ import annotations

import ctypes
import functools
import json
import os
import time
from collections.abc import Callable

import torch

from . import stats
from .buffers import Pool
from .builds import built
from .peers.base import operand_b
from .runtime import IMAGE_CUBIN, Launch, Library
from .selection import launch
from .session import Session
from .workloads import Workload

# Calls in a loop: fewer than the driver queues before it makes the caller wait.
CALLS = 256
LOOPS = 30
# Elements of a pointwise operator that takes the device less time than the host.
POINTWISE_ELEMENTS = 1024


Contestants = dict[str, Callable[[], float]]


def measure(session: Session) -> bool:
    workloads = [w for w in session.workloads if not w.batched and w.factor == 1]
    if not workloads:
        session.write("note", text="no workload without batches")
        return True
    for workload in workloads:
        _measure(session, workload)
    if not session.machine.rehearsal and "compile" not in session.skipped_peers:
        try:
            _take_turns(session, "pointwise", POINTWISE_ELEMENTS, _pointwise(session))
        except Exception as error:  # what Inductor keeps differs between releases
            session.write("note", text=f"no launch by Triton: {type(error).__name__}: {error}")
    return True


def _measure(session: Session, workload: Workload) -> None:
    library = session.library(workload)
    function = library.function(workload.name, 3, 1)
    loop = ctypes.CDLL(str(built(session.scratch, "launch_loop", 60)))
    loop.ftuner_bench_call.restype = ctypes.c_double
    loop.ftuner_bench_launch.restype = ctypes.c_double
    pool = Pool(session.machine, [workload], session.seed)
    a, b, c = pool.sets(workload, workload.largest)[0]
    pointers = [ctypes.c_void_p(tensor.data_ptr()) for tensor in (a, b, c)]
    stream = ctypes.c_void_p(session.machine.stream)
    every = workload.grid()[: CALLS // 2]
    size = sorted(every)[len(every) * 53 // 128]
    workspace = torch.empty(
        max(1, *(function.workspace_bytes(one) for one in every)),
        dtype=torch.uint8,
        device=session.machine.device,
    )

    def calls(sizes: list[int]) -> float:
        array = (ctypes.c_int64 * len(sizes))(*sizes)
        return _valid(
            session,
            loop.ftuner_bench_call(
                ctypes.c_void_p(function.address()),
                *pointers,
                array,
                ctypes.c_int32(len(sizes)),
                ctypes.c_int32(CALLS // len(sizes)),
                ctypes.c_void_p(workspace.data_ptr()),
                stream,
            ),
        )

    contestants: Contestants = {
        "function, one size": lambda: calls([size]),
        "function, all sizes in turn": lambda: calls(every),
    }
    import ftuner

    packaged = ftuner.load(session.artefact("library_" + workload.name))[workload.name]
    x, y = a[:size], c[:size]
    b_as_is = operand_b(workload, b)
    contestants["function, by the Python package"] = lambda: _python(lambda: packaged(x, b, out=y))
    contestants["torch.matmul with out"] = lambda: _python(lambda: torch.matmul(x, b_as_is, out=y))
    if not session.machine.rehearsal:
        try:
            bare = _bare(session, library, loop, workload, size, (a, b, c))
            if bare:
                contestants["bare cuLaunchKernel"] = bare
        except Exception as error:  # the others go on
            session.write("note", text=f"{workload.name}: no bare launch: {error}")
    _take_turns(session, workload.name, size, contestants)


def _python(call: Callable[[], object]) -> float:
    start = time.perf_counter_ns()
    for _ in range(CALLS):
        call()
    return (time.perf_counter_ns() - start) / CALLS


def _pointwise(session: Session) -> Contestants:
    """A pointwise operator eagerly, by torch.compile, and as the launch of its kernel alone."""
    from torch._inductor.codecache import PyCodeCache

    x = torch.randn(POINTWISE_ELEMENTS, device=session.machine.device)
    result = torch.empty_like(x)

    def forward(x: torch.Tensor) -> torch.Tensor:
        return x * 2 + 1

    compiled = torch.compile(forward, dynamic=True)
    compiled(x)
    kernels = [
        value
        for module in PyCodeCache.modules
        for name, value in vars(module).items()
        if name.startswith("triton_") and hasattr(value, "run")
    ]
    if len(kernels) != 1:
        raise RuntimeError(f"expected one kernel of Inductor's, but got {len(kernels)}")
    launch_it = functools.partial(
        kernels[0].run, x, result, POINTWISE_ELEMENTS, stream=session.machine.stream
    )
    launch_it()
    session.machine.synchronize()
    if not torch.allclose(result, forward(x)):
        raise RuntimeError("expected the kernel's arguments to be input, output and size")
    return {
        "pointwise operator, eager": lambda: _python(lambda: torch.add(x, 1, out=result)),
        "pointwise operator, torch.compile": lambda: _python(lambda: compiled(x)),
        "pointwise operator, launch of Inductor's kernel": lambda: _python(launch_it),
    }


def _take_turns(session: Session, workload: str, size: int, contestants: Contestants) -> None:
    samples: dict[str, list[float]] = {name: [] for name in contestants}
    names = list(contestants)
    for turn in range(session.thorough(LOOPS) + 1):
        for position in range(len(names)):
            name = names[(position + turn) % len(names)]
            session.machine.synchronize()
            nanoseconds = contestants[name]()
            if turn:
                samples[name].append(nanoseconds)
    for name, values in samples.items():
        session.write(
            "host_time",
            workload=workload,
            what=name,
            size=size,
            nanoseconds=stats.summary(values),
        )


def _valid(session: Session, nanoseconds: float) -> float:
    if nanoseconds < 0:
        session.runtime.check("a call in the loop", int(-1 - nanoseconds) or -1)
    return nanoseconds


def _bare(session: Session, library: Library, loop: ctypes.CDLL, workload, size: int, buffers):
    """Launches the kernel that serves `size` by the driver alone."""
    manifest = json.loads(library.module.manifest)
    planned = manifest["workloads"][0]
    program = next(p for p in planned["programs"] if p["size"] == workload.symbol_size(size))
    family = planned["families"][program["family"]]
    if family["reduce_split"] != 1:
        session.write("note", text="no bare launch: the function makes two")
        return None
    kernel = next(k for k in manifest["kernels"] if k["entry"] == family["kernel"])
    ready: Launch = launch(
        session, 0, kernel, {**family, "blocks": program["blocks"]}, workload, size, buffers
    )
    images = [library.module.images[i] for i in range(library.module.image_count)]
    # Cubins first: the driver need not compile them.
    images.sort(key=lambda image: image.kind != IMAGE_CUBIN)
    address = ctypes.c_void_p()
    code = -1
    for image in images:
        code = loop.ftuner_bench_load(
            os.environ.get("FTRT_CUDA_DRIVER", "libcuda.so.1").encode(),
            ctypes.c_void_p(image.data),
            kernel["entry"].encode(),
            ctypes.c_int32(kernel["dynamic_shared_memory_bytes"]),
            ctypes.byref(address),
        )
        if code == 0:
            break
    if code != 0:
        session.write("error", message=f"the driver did not load {kernel['entry']}: code {code}")
        return None
    # The stream and the parameters live as long as this call does.
    stream = ctypes.c_void_p(session.machine.stream)

    def run() -> float:
        nanoseconds = loop.ftuner_bench_launch(
            address,
            ctypes.c_uint32(ready.grid),
            ctypes.c_uint32(ready.block),
            ctypes.c_uint32(ready.shared_bytes),
            stream,
            ready.pointers,
            ctypes.c_int32(CALLS),
        )
        if nanoseconds < 0:
            raise RuntimeError(f"cuLaunchKernel failed with code {int(-1 - nanoseconds)}")
        return nanoseconds

    return run
