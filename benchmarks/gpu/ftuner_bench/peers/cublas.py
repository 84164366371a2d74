"""cuBLAS as PyTorch calls it."""

from __future__ import annotations

import functools

import torch

from ..buffers import Buffers
from ..machine import Call
from ..workloads import Workload
from .base import Peer, operand_b


class Cublas(Peer):
    name = "cublas"

    def bind(self, workload: Workload, size: int, buffers: Buffers) -> Call:
        a, b, c = buffers
        product = torch._int_mm if workload.type == "i8" else torch.matmul
        return functools.partial(product, a, operand_b(workload, b), out=c)
