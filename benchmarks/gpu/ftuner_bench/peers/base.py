"""What a peer is."""

from __future__ import annotations

import abc

import torch

from ..buffers import Buffers
from ..machine import Call
from ..workloads import Workload


class Peer(abc.ABC):
    """Another way to compute the products."""

    name: str

    def prepare(self, workload: Workload, buffers: Buffers, size: int) -> None:
        """What is done once for a workload and is not timed, on an example of T = size."""

    @abc.abstractmethod
    def bind(self, workload: Workload, size: int, buffers: Buffers) -> Call:
        """A call that computes C = A · B.

        It writes C, or returns a new tensor. What depends on the shape alone, such as
        the choice of an algorithm, is done here.
        """

    def facts(self, workload: Workload, size: int) -> dict[str, object]:
        """What it chose, for the record."""
        return {}


def operand_b(workload: Workload, b: torch.Tensor) -> torch.Tensor:
    """B as [batch,] K, N, a view."""
    return b.transpose(-1, -2) if workload.transposed else b
