"""An autotuned Triton kernel, tuned anew for each bucket of sizes, as is usual.

A bucket is a power of two: sizes up to 16, 32, 64 and so on.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import torch

from ..buffers import Buffers
from ..machine import Call
from ..session import Session
from ..workloads import Workload
from .base import Peer, operand_b


def bucket(size: int) -> int:
    return max(16, 1 << (size - 1).bit_length())


def fits(block: int, largest: int) -> bool:
    """Whether a block is not much larger than any extent that it meets."""
    return block <= bucket(largest)


def arguments(
    workload: Workload, size: int, operands: Sequence[torch.Tensor], pointers: Sequence[Any]
) -> list[Any]:
    """The kernel's arguments but for its configuration.

    operands: for the strides; pointers: what is passed for them.
    """
    batch, m, n, k = workload.extents(size)
    a, b, c = operands
    b = operand_b(workload, b)
    if not workload.batched:
        a, b, c = a.unsqueeze(0), b.unsqueeze(0), c.unsqueeze(0)
    return [
        *pointers,
        m,
        n,
        k,
        *a.stride(),
        *b.stride(),
        *c.stride(),
        bucket(m),
        bucket(n),
        bucket(k),
        batch,
    ]


class TritonMatmul(Peer):
    name = "triton"

    def __init__(self, session: Session):
        self.session = session

    def prepare(self, workload: Workload, buffers: Buffers, size: int) -> None:
        # Fails where Triton is missing, before anything is timed.
        self.bind(workload, size, buffers)()

    def bind(self, workload: Workload, size: int, buffers: Buffers) -> Call:
        from .triton_kernel import TUNED, precision

        batch, m, n, _ = workload.extents(size)

        def grid(meta: dict[str, int]) -> tuple[int, int]:
            return (-(-m // meta["BLOCK_M"]) * -(-n // meta["BLOCK_N"]), batch)

        # The first call of a bucket tunes it; `products` makes it before any capture.
        return functools.partial(
            TUNED[workload.type][grid],
            *arguments(workload, size, buffers, buffers),
            PRECISION=precision(workload.type),
        )

    def facts(self, workload: Workload, size: int) -> dict[str, object]:
        from .triton_kernel import TUNED

        return {"config": str(TUNED[workload.type].best_config)}
