"""Predictors of any kind, told by the first line of their files."""

from __future__ import annotations

import json
import os

from ..errors import Error
from .boosted import FORMAT as BOOSTED
from .boosted import BoostedTrees
from .training import Trained


def load(path: str | os.PathLike[str]) -> Trained | BoostedTrees:
    """Raises `Error` for what is no predictor."""
    try:
        with open(path, "rb") as file:
            header = json.loads(file.readline())
        is_boosted = header["format"] == BOOSTED
    except OSError as error:
        raise Error(f"cannot read '{path}': {error.strerror}") from error
    except (ValueError, KeyError, TypeError, UnicodeDecodeError) as error:
        raise Error(f"'{path}' is no predictor: {error}") from error
    return BoostedTrees.load(path) if is_boosted else Trained.load(path)
