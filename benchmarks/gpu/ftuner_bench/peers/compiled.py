"""torch.compile with dynamic shapes, Inductor with its defaults or with autotuning.

Autotuning runs without CUDA graphs of its own: all contestants are captured alike.
Static sizes are marked as such, T alone is dynamic, and one compilation serves all
sizes; recompilations are counted.
"""

from __future__ import annotations

import functools

import torch._dynamo

import torch

from ..buffers import Buffers
from ..machine import Call
from ..workloads import Workload
from .base import Peer


class Compiled(Peer):
    def __init__(self, name: str, options: dict[str, str]):
        self.name, self.options = name, options
        self.functions: dict[str, Call] = {}
        self.graphs = 0

    def prepare(self, workload: Workload, buffers: Buffers, size: int) -> None:
        transposed = workload.transposed

        def product(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
            return torch.matmul(a, b.transpose(-1, -2) if transposed else b)

        # A code object of its own for each, for recompilations are counted by code.
        product.__code__ = product.__code__.replace(co_name=f"{self.name}_{workload.name}")
        before = _graphs()
        self.functions[workload.name] = torch.compile(product, dynamic=True, **self.options)
        self.bind(workload, size, buffers)()
        self.graphs += _graphs() - before

    def bind(self, workload: Workload, size: int, buffers: Buffers) -> Call:
        if size == 1:
            raise ValueError("torch.compile specialises sizes of 1: another compilation")
        a, b, _ = buffers
        for tensor, shape, other in zip(
            (a, b), workload.argument_shapes(size), workload.argument_shapes(size + 1)
        ):
            for axis in range(len(shape)):
                if shape[axis] == other[axis]:
                    torch._dynamo.mark_static(tensor, axis)
        return functools.partial(self.functions[workload.name], a, b)

    def facts(self, workload: Workload, size: int) -> dict[str, object]:
        return {"graphs_compiled_before": _graphs()}


def _graphs() -> int:
    return int(torch._dynamo.utils.counters["stats"]["unique_graphs"])
