"""FTuner: the compiled library, called as a C program would."""

from __future__ import annotations

import functools

import torch

from ..buffers import Buffers
from ..machine import Call
from ..runtime import Function
from ..session import Session
from ..workloads import Workload
from .base import Peer


class FTuner(Peer):
    name = "ftuner"

    def __init__(self, session: Session):
        self.session = session
        self.functions: dict[str, Function] = {}
        self.workspaces: dict[str, torch.Tensor] = {}

    def bind(self, workload: Workload, size: int, buffers: Buffers) -> Call:
        sizes = workload.dynamic_sizes(size)
        if workload.name not in self.functions:
            self.functions[workload.name] = self.session.library(workload).function(
                workload.name, 3, len(sizes)
            )
        function = self.functions[workload.name]
        count = function.workspace_bytes(*sizes)
        if count and (
            workload.name not in self.workspaces or self.workspaces[workload.name].numel() < count
        ):
            self.workspaces[workload.name] = torch.empty(
                count, dtype=torch.uint8, device=self.session.machine.device
            )
        workspace = self.workspaces[workload.name].data_ptr() if count else None
        return functools.partial(
            function,
            *[tensor.data_ptr() for tensor in buffers],
            *sizes,
            workspace,
            self.session.machine.stream,
        )
