"""The parts of a run, in order."""

from __future__ import annotations

import dataclasses


@dataclasses.dataclass(frozen=True)
class Part:
    """share: of the run's time, beside those of the other parts that run."""

    name: str
    title: str
    share: float


PARTS = (
    Part("proof", "a fixed set of kernels of every codegen path", 0.06),
    Part("correctness", "every function against float64", 0.10),
    Part("selection", "every program of the pools, and how well the score ranks them", 0.18),
    Part("products", "matrix products against cuBLAS, cuBLASLt, Triton and torch.compile", 0.46),
    Part("models", "BERT-base and GPT-2 end to end", 0.20),
    Part("forward", "models and operators by FTuner alone, kernel by kernel", 0.12),
    Part("rows", "softmax and norms of any rows and columns", 0.10),
    # Last, when no compiler runs beside it any more.
    Part("overhead", "dispatch and launch against a bare launch of the driver", 0.06),
)
