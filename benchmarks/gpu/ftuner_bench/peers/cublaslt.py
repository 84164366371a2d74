"""cuBLASLt with the fastest of the algorithms that its heuristic names (cublaslt.cu)."""

from __future__ import annotations

import ctypes
import functools

from ..buffers import Buffers
from ..builds import built
from ..machine import Call
from ..session import Session
from ..workloads import Workload
from .base import Peer

# Algorithms asked for, and timed runs of each.
MOST_ALGORITHMS = 32
REPEATS = 5

# Types of workloads as ftuner_bench_lt_plan counts them.
TYPES = ("f32", "tf32", "f16", "bf16")


class CublasLt(Peer):
    name = "cublaslt"

    def __init__(self, session: Session):
        self.session = session
        self.library: ctypes.CDLL | None = None
        self.handle = ctypes.c_void_p()
        self.plans: dict[tuple[str, int], tuple[int, dict[str, object]]] = {}

    def prepare(self, workload: Workload, buffers: Buffers, size: int) -> None:
        if workload.type not in TYPES:
            raise ValueError(f"expected one of {', '.join(TYPES)}, but got {workload.type}")
        if self.library is not None:
            return
        library = ctypes.CDLL(str(built(self.session.scratch, "cublaslt", 60)))
        library.ftuner_bench_lt_error.restype = ctypes.c_char_p
        library.ftuner_bench_lt_run.argtypes = [ctypes.c_void_p] * 5
        library.ftuner_bench_lt_plan.argtypes = [
            ctypes.c_void_p,
            ctypes.c_int64,
            ctypes.c_int64,
            ctypes.c_int64,
            ctypes.c_int32,
            ctypes.c_int32,
            ctypes.c_int32,
            *[ctypes.c_void_p] * 4,
            ctypes.c_int32,
            ctypes.c_int32,
            *[ctypes.c_void_p] * 4,
        ]
        self.library = library
        self._check(library.ftuner_bench_lt_create(ctypes.byref(self.handle)))

    def bind(self, workload: Workload, size: int, buffers: Buffers) -> Call:
        pointers = [tensor.data_ptr() for tensor in buffers]
        key = (workload.name, size)
        if key not in self.plans:
            self.plans[key] = self._plan(workload, size, pointers)
        return functools.partial(
            self._run, self.plans[key][0], *pointers, self.session.machine.stream
        )

    def facts(self, workload: Workload, size: int) -> dict[str, object]:
        plan = self.plans.get((workload.name, size))
        return plan[1] if plan else {}

    def _plan(
        self, workload: Workload, size: int, pointers: list[int]
    ) -> tuple[int, dict[str, object]]:
        assert self.library is not None
        batch, m, n, k = workload.extents(size)
        plan, microseconds = ctypes.c_void_p(), ctypes.c_float()
        tried, best = ctypes.c_int32(), ctypes.c_int32()
        self._check(
            self.library.ftuner_bench_lt_plan(
                self.handle,
                m,
                n,
                k,
                batch,
                int(workload.transposed),
                TYPES.index(workload.type),
                *pointers,
                self.session.machine.stream,
                MOST_ALGORITHMS,
                REPEATS,
                ctypes.byref(plan),
                ctypes.byref(microseconds),
                ctypes.byref(tried),
                ctypes.byref(best),
            )
        )
        return plan.value or 0, {"algorithms": tried.value, "fastest": best.value}

    def _run(self, plan: int, a: int, b: int, c: int, stream: int) -> None:
        assert self.library is not None
        self._check(self.library.ftuner_bench_lt_run(plan, a, b, c, stream))

    def _check(self, code: int) -> None:
        if code != 0:
            assert self.library is not None
            raise RuntimeError(self.library.ftuner_bench_lt_error().decode())
