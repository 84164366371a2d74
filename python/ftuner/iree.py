"""Whole models for IREE's runtime, with FTuner's kernels for their products (docs/iree.md).

    built = ftuner.iree.compile("model.pt2", "model.vmfb", device="h200")
    print(built.report)

Needs IREE's compiler, the package iree-base-compiler. The code is in `ftuner.frontend.iree`.
"""

from __future__ import annotations

from .frontend.iree import *  # noqa: F403
from .frontend.iree import __all__ as __all__
