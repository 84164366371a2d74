"""The parts of a run in order, and the call of run.sh that each belongs to.

A machine is lent for some minutes at a time. The first call has what opens gates, finds faults and
gives the cost model its constants; the second has what is worth its time after repairs.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from .workloads import Workload

# Seconds that a call may take, its tables included.
CALL_SECONDS = {"first": 275.0, "second": 405.0}


@dataclasses.dataclass(frozen=True)
class Part:
    """A part of a run, in a process of its own.

    call: the call that it belongs to. seconds: the seconds that it needs, its start included.
    module: its module of this package, by default that of its name. groups: the groups of workloads
    (workloads.py) and workloads: the names of further ones that it takes; without both, all.
    needs_torch: whether its process loads PyTorch. always: it has its seconds whatever is left of
    the run's. own_files: the bundle holds files for this part alone.
    """

    name: str
    title: str
    seconds: float
    call: str = "first"
    module: str = ""
    groups: tuple[str, ...] = ()
    workloads: tuple[str, ...] = ()
    needs_torch: bool = True
    always: bool = False
    own_files: bool = False

    def takes(self, workload: Workload) -> bool:
        if not self.groups and not self.workloads:
            return True
        return workload.group in self.groups or workload.name in self.workloads


PARTS = (
    Part(
        "proof",
        "a fixed set of kernels of every codegen path",
        20,
        needs_torch=False,
        always=True,
        own_files=True,
    ),
    Part("bandwidths", "what the card reaches, by small kernels", 20, needs_torch=False),
    Part(
        "probes",
        "what boxes beyond a tensor, second kernels and multicast cost",
        15,
        needs_torch=False,
    ),
    Part(
        "correctness",
        "every function of this call against float64",
        15,
        groups=("f16", "bf16", "epilogue"),
    ),
    Part(
        "projections",
        "projections in f16 and bf16 at every number of rows against cuBLAS and cuBLASLt, in graphs",
        80,
        module="products",
        groups=("f16", "bf16"),
    ),
    Part(
        "pools",
        "programs on tensor cores by cluster, persistence, ping-pong, swap, consumers and slices",
        55,
        module="selection",
        groups=("f16", "bf16", "epilogue"),
    ),
    Part(
        "epilogues",
        "products with an epilogue, fused by FTuner, by Inductor and not at all",
        50,
        module="forward",
        own_files=True,
    ),
    Part(
        "checks",
        "every function of this call against float64",
        15,
        "second",
        module="correctness",
        groups=("f32", "tf32", "packed", "i8"),
    ),
    Part(
        "rows",
        "softmax and norms of any rows and columns, beside Inductor",
        55,
        "second",
        own_files=True,
    ),
    Part(
        "forward",
        "models and operators by FTuner alone, kernel by kernel",
        45,
        "second",
        own_files=True,
    ),
    Part(
        "products",
        "products in f32 against cuBLAS, cuBLASLt, Triton and torch.compile",
        45,
        "second",
        groups=("f32",),
    ),
    # When no compiler runs beside it any more.
    Part(
        "overhead",
        "dispatch and launch against a bare launch of the driver, and against Triton's",
        10,
        "second",
        workloads=("dense", "llama_out"),
    ),
    # PyTorch compiles most of the time.
    Part(
        "models",
        "BERT-base and GPT-2 end to end, whichever FTuner predicts to be faster, and all by FTuner",
        120,
        "second",
        own_files=True,
    ),
    Part(
        "integers",
        "products of i8 against cuBLAS, in graphs",
        15,
        "second",
        module="products",
        groups=("i8",),
    ),
    Part(
        "tensor_products",
        "products in tf32 and of packed weights against cuBLAS and cuBLASLt, in graphs",
        30,
        "second",
        module="products",
        groups=("tf32", "packed"),
    ),
    Part(
        "iree",
        "modules of IREE with FTuner's kernels, on IREE's CUDA runtime",
        20,
        "second",
        module="iree_modules",
        needs_torch=False,
        own_files=True,
    ),
    Part(
        "selection",
        "programs in f32, and how well the score ranks them",
        30,
        "second",
        groups=("f32",),
    ),
)


def part_named(name: str) -> Part:
    (part,) = (part for part in PARTS if part.name == name)
    return part


def of_call(call: str) -> tuple[Part, ...]:
    """The parts of a call; all without one."""
    return tuple(part for part in PARTS if not call or part.call == call)


def seconds_of(call: str) -> float:
    """Seconds that a call may take, or both calls without one."""
    return CALL_SECONDS[call] if call else sum(CALL_SECONDS.values())


def seconds_for(part: Part, rest: Sequence[Part], left: float) -> float:
    """Seconds for a part, of the seconds that are left for it and the parts after it.

    A part gets the time that it needs, and more if all parts together need less than is left.
    """
    if part.always:
        return part.seconds
    needed = part.seconds + sum(other.seconds for other in rest)
    return part.seconds * max(1.0, left / needed) if left >= part.seconds else left
