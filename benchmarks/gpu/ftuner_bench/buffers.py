"""Buffers for measurements and for checks."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch

from .machine import Machine
from .workloads import Workload

TYPES = {"f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16}

# Poison, by bytes of an element: quiet NaNs that no arithmetic makes, as integers.
POISON = {4: (0x7FDEAD01, torch.int32), 2: (0x7FDE, torch.int16)}
GUARD_ELEMENTS = 1024

# Sets of buffers for a cold cache hold this many times the L2 cache together.
COLD_FACTOR = 2.5
MOST_SETS = 2048

Buffers = tuple[torch.Tensor, torch.Tensor, torch.Tensor]


class Pool:
    """Memory with random data, from which sets of operands and results are cut."""

    def __init__(self, machine: Machine, workloads: Sequence[Workload], seed: int):
        self.machine = machine
        self.wanted = int(COLD_FACTOR * machine.cache_bytes)
        generator = torch.Generator(device=machine.device).manual_seed(seed)
        self.memory = {}
        for element in dict.fromkeys(workload.element for workload in workloads):
            alike = [workload for workload in workloads if workload.element == element]
            largest = max(_set_elements(workload, workload.largest) for workload in alike)
            self.memory[element] = torch.randn(
                self.wanted // alike[0].element_bytes + 2 * largest,
                dtype=TYPES[element],
                device=machine.device,
                generator=generator,
            )

    def sets(self, workload: Workload, size: int) -> list[Buffers]:
        """Sets of (A, B, C) for T = size, aligned to 256 bytes, as many as a cold cache takes."""
        memory = self.memory[workload.element]
        elements = _set_elements(workload, size)
        count = math.ceil(self.wanted / (workload.element_bytes * elements))
        count = min(max(2, min(MOST_SETS, count)), memory.numel() // elements)
        shapes = [*workload.argument_shapes(size), workload.result_shape(size)]
        result = []
        for number in range(count):
            offset = number * elements
            views = []
            for shape in shapes:
                length = math.prod(shape)
                views.append(memory[offset : offset + length].view(shape))
                offset += _aligned(length)
            result.append(tuple(views))
        return result


def _aligned(elements: int) -> int:
    return (elements + 127) // 128 * 128


def _set_elements(workload: Workload, size: int) -> int:
    shapes = [*workload.argument_shapes(size), workload.result_shape(size)]
    return sum(_aligned(math.prod(shape)) for shape in shapes)


class Guarded:
    """A poisoned buffer between two guard bands, `offset` elements off alignment."""

    def __init__(
        self, shape: Sequence[int], device: str, offset: int = 0, type: torch.dtype = torch.float32
    ):
        self.length, self.start = math.prod(shape), GUARD_ELEMENTS + offset
        self.poison, integer = POISON[type.itemsize]
        self.bits = torch.full(
            (self.length + 2 * GUARD_ELEMENTS + offset,), self.poison, dtype=integer, device=device
        )
        self.tensor = self.bits.view(type)[self.start : self.start + self.length].view(tuple(shape))

    def fill(self, values: torch.Tensor) -> torch.Tensor:
        self.tensor.copy_(values)
        return self.tensor

    def bands_intact(self) -> bool:
        end = self.start + self.length
        return bool(
            (self.bits[: self.start] == self.poison).all() and (self.bits[end:] == self.poison).all()
        )

    def unwritten(self) -> int:
        """Elements that still hold the poison."""
        return int((self.bits[self.start : self.start + self.length] == self.poison).sum())


def relative_error(result: torch.Tensor, reference: torch.Tensor) -> float:
    """‖result − reference‖ / ‖reference‖ in float64; infinite where it is not finite."""
    difference = torch.linalg.vector_norm(result.double() - reference)
    norm = torch.linalg.vector_norm(reference)
    if float(norm) == 0.0:
        return float(difference)
    error = float(difference / norm)
    return error if math.isfinite(error) else math.inf


def guarded(workload: Workload, shape: Sequence[int], device: str, offset: int = 0) -> Guarded:
    """A guarded buffer of the workload's elements."""
    return Guarded(shape, device, offset, TYPES[workload.element])


def reference(workload: Workload, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """FTuner's product in float64."""
    b = workload.multiplied(b).double()
    return torch.matmul(a.double(), b.transpose(-1, -2) if workload.transposed else b)
