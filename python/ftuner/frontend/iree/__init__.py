"""Whole models for IREE's runtime; `ftuner.iree` has the public names."""

from __future__ import annotations

from .build import Compiled, compile
from .report import Report

__all__ = ["Compiled", "Report", "compile"]
