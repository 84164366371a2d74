"""Compiles the Triton kernels ahead, beside the first parts, into Triton's cache.

Triton compiles one configuration after the other while it tunes; this takes that
time out of the part that measures. Whatever fails here, or is not done in time, is
compiled there. Run by run.py.
"""

from __future__ import annotations

import argparse
import pathlib
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor

from .. import bundle as bundles
from ..processes import end_with_parent
from ..workloads import Workload, matching
from .triton_matmul import arguments, fits


def sizes(workload: Workload) -> Iterator[int]:
    """Sizes with the divisibilities that Triton compiles for: multiples of 16, and others."""
    yield workload.largest // 16 * 16
    if workload.batched:
        yield workload.largest // 2 + 3


def alike(workloads: Sequence[Workload]) -> list[Workload]:
    """Of workloads whose kernels are the same, the one with most rows."""
    result: dict[tuple[str, str], Workload] = {}
    for workload in sorted(workloads, key=lambda workload: workload.extents(workload.largest)[1]):
        result[workload.type, workload.form] = workload
    return list(result.values())


def warm(workload: Workload, size: int, number: int) -> str:
    """Compiles one configuration; what went wrong in words, or nothing."""
    try:
        from triton.runtime.jit import MockTensor

        import torch

        from ..buffers import TYPES
        from .triton_kernel import CONFIGS, kernel, precision

        config = CONFIGS[workload.type][number]
        shapes = [*workload.argument_shapes(size), workload.result_shape(size)]
        # Shapes and strides only: no memory is allocated.
        operands = [torch.empty(shape, device="meta") for shape in shapes]
        pointers = [MockTensor(TYPES[workload.element]) for _ in shapes]
        kernel.warmup(
            *arguments(workload, size, operands, pointers),
            grid=(1, workload.extents(size)[0]),
            PRECISION=precision(workload.type),
            **config.all_kwargs(),
        )
    except Exception as error:  # only time is lost
        return f"{type(error).__name__}: {error}"
    return ""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bundle", type=pathlib.Path, required=True)
    parser.add_argument("--workers", type=int, required=True)
    parser.add_argument("--workloads", default="")
    parser.add_argument("--parent", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.parent is not None:
        end_with_parent(options.parent)
    try:
        from .triton_kernel import CONFIGS
    except ImportError as error:
        print(f"note: no Triton kernels: {error}", file=sys.stderr)
        return 0
    jobs = [
        (workload, size, number)
        for workload in alike(matching(bundles.read(options.bundle).workloads, options.workloads))
        for size in sizes(workload)
        for number, config in enumerate(CONFIGS[workload.type])
        if fits(config.kwargs["BLOCK_M"], workload.extents(workload.largest)[1])
    ]
    with ProcessPoolExecutor(options.workers) as pool:
        problems = [problem for problem in pool.map(warm, *zip(*jobs)) if problem]
    for problem in sorted(set(problems))[:3]:
        print(f"note: a Triton kernel was not compiled ahead: {problem}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
