"""Predicted microseconds of kernels, and constants refitted from measurements.

`model()` is the compiler's own model (`model.py`). `rows` reads measurements and makes
launches of them, `fit` refits constants; `ftuner calibrate` is their command.
"""

from .model import Launches, Model, model

__all__ = ["Launches", "Model", "model"]
