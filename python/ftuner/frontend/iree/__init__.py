"""Whole models for IREE's runtime, with FTuner's kernels for their products (docs/iree.md).

    built = ftuner.iree.compile("model.pt2", "model.vmfb", device="h200")
    print(built.report)

Needs IREE's compiler, the package iree-base-compiler.
"""

from __future__ import annotations

from .build import Compiled, compile
from .report import Report

__all__ = ["Compiled", "Report", "compile"]
