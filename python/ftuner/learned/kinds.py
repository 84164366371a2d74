"""Predictors of any kind, told by the first line of their files."""

from __future__ import annotations

import os

from . import files
from .boosted import FORMAT as BOOSTED
from .boosted import BoostedTrees
from .training import Trained


def load(path: str | os.PathLike[str]) -> Trained | BoostedTrees:
    """Raises `Error` for files that are not predictors."""
    header, _ = files.read_header(path)
    return BoostedTrees.load(path) if header["format"] == BOOSTED else Trained.load(path)
