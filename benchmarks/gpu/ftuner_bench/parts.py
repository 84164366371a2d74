"""The parts of a run, in order: what opens gates and finds faults first, whole models last."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence


@dataclasses.dataclass(frozen=True)
class Part:
    """A part of a run, in a process of its own.

    seconds: what it needs, its start included. module: of this package, if it is not named as the
    part. types: of the workloads that it takes; empty: all. needs_torch: whether its process loads
    PyTorch. always: it has its seconds whatever is left of the run's.
    """

    name: str
    title: str
    seconds: float
    module: str = ""
    types: tuple[str, ...] = ()
    needs_torch: bool = True
    always: bool = False


PARTS = (
    Part(
        "proof",
        "a fixed set of kernels of every codegen path",
        20,
        needs_torch=False,
        always=True,
    ),
    Part("correctness", "every function against float64", 20),
    Part("bandwidths", "what the card reaches, by small kernels", 20, needs_torch=False),
    Part(
        "tensor_products",
        "products in f16, bf16 and tf32 against cuBLAS and cuBLASLt, in graphs",
        60,
        module="products",
        types=("f16", "bf16", "tf32"),
    ),
    Part("selection", "every program of the pools, and how well the score ranks them", 60),
    Part("epilogues", "products with an epilogue, fused and not", 30, module="forward"),
    Part("rows", "softmax and norms of any rows and columns", 40),
    Part("forward", "models and operators by FTuner alone, kernel by kernel", 40),
    Part(
        "products",
        "products in f32 against cuBLAS, cuBLASLt, Triton and torch.compile",
        45,
        types=("f32",),
    ),
    # When no compiler runs beside it any more.
    Part("overhead", "dispatch and launch against a bare launch of the driver", 10),
    # PyTorch compiles most of the time.
    Part("models", "BERT-base and GPT-2 end to end", 140),
)


def part_named(name: str) -> Part:
    (part,) = (part for part in PARTS if part.name == name)
    return part


def seconds_for(part: Part, rest: Sequence[Part], left: float) -> float:
    """Seconds for a part, of the seconds that are left for it and the parts after it.

    A part gets the time that it needs, and more if all parts together need less than is left.
    """
    if part.always:
        return part.seconds
    needed = part.seconds + sum(other.seconds for other in rest)
    return part.seconds * max(1.0, left / needed) if left >= part.seconds else left
