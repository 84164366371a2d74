"""Buffers for measurements and for checks."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch

from .machine import Machine
from .workloads import BYTES, Workload

TYPES = {
    "f32": torch.float32,
    "f16": torch.float16,
    "bf16": torch.bfloat16,
    "i32": torch.int32,
    "i8": torch.int8,
}

# Poison, by bytes of an element: quiet NaNs that no arithmetic makes, as integers. As i32 it is far
# beyond sums of i8; operands of one byte have it in their guard bands only.
POISON = {4: (0x7FDEAD01, torch.int32), 2: (0x7FDE, torch.int16), 1: (0x7E, torch.int8)}
GUARD_ELEMENTS = 1024

# Sets of buffers for a cold cache hold this many times the L2 cache together.
COLD_FACTOR = 2.5
MOST_SETS = 2048

Buffers = tuple[torch.Tensor, torch.Tensor, torch.Tensor]


def refill(tensor: torch.Tensor, generator: torch.Generator | None = None) -> torch.Tensor:
    """Random data in place: normal, or all integers of a byte."""
    if tensor.is_floating_point():
        return tensor.normal_(generator=generator)
    return tensor.random_(-128, 128, generator=generator)


def spoil(result: torch.Tensor) -> None:
    """Values in place that no product has."""
    result.fill_(float("nan") if result.is_floating_point() else POISON[4][0])


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
            elements = self.wanted // BYTES[element] + 2 * largest
            memory = torch.empty(elements, dtype=TYPES[element], device=machine.device)
            self.memory[element] = refill(memory, generator)

    def sets(self, workload: Workload, size: int) -> list[Buffers]:
        """Sets of (A, B, C) for T = size, aligned to 256 bytes, as many as a cold cache takes."""
        memory = self.memory[workload.element]
        elements = _set_elements(workload, size)
        count = math.ceil(self.wanted / (workload.element_bytes * elements))
        count = min(max(2, min(MOST_SETS, count)), memory.numel() // elements)
        result = []
        for number in range(count):
            offset = number * elements
            views = []
            for shape, element in _operands(workload, size):
                length = _memory_elements(workload, shape, element)
                memory_of = memory[offset : offset + length].view(TYPES[element])
                views.append(memory_of[: math.prod(shape)].view(shape))
                offset += length
            result.append(tuple(views))
        return result


def _operands(workload: Workload, size: int) -> list[tuple[tuple[int, ...], str]]:
    """Shapes and types of A, B and C."""
    a, b = workload.argument_shapes(size)
    c = workload.result_shape(size)
    return [(a, workload.element), (b, workload.element), (c, workload.result_element)]


def _memory_elements(workload: Workload, shape: Sequence[int], element: str) -> int:
    """The elements of memory, which are the workload's, that an operand takes."""
    step = 256 // workload.element_bytes
    elements = math.prod(shape) * BYTES[element] // workload.element_bytes
    return (elements + step - 1) // step * step


def _set_elements(workload: Workload, size: int) -> int:
    return sum(_memory_elements(workload, *operand) for operand in _operands(workload, size))


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
            (self.bits[: self.start] == self.poison).all()
            and (self.bits[end:] == self.poison).all()
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


def guarded(element: str, shape: Sequence[int], device: str, offset: int = 0) -> Guarded:
    """A guarded buffer of elements of a type."""
    return Guarded(shape, device, offset, TYPES[element])


def reference(workload: Workload, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """FTuner's result in float64."""
    b = workload.multiplied(b).double()
    product = torch.matmul(a.double(), b.transpose(-1, -2) if workload.transposed else b)
    return torch.nn.functional.gelu(product) if workload.gelu else product
