"""FTuner: fast GPU kernels for tensors whose sizes are known only at run time.

    module = ftuner.compile("dense.mlir", device="h200")
    y = module.dense(x, w, bias)

Functions take NumPy arrays (in the emulator), PyTorch tensors, or anything that speaks DLPack.
"""

from __future__ import annotations

from . import cache
from ._version import version as __version__
from .api import compile
from .descriptions import devices, query_device
from .errors import CacheError, CompileError, CompileWarning, Error
from .explanation import Explanation, explain
from .function import Function
from .memory.dlpack import DeviceArray
from .module import Module, load
from .prediction import predict
from .signature import Signature, Value
from .timeline import Timeline

__all__ = [
    "CacheError",
    "CompileError",
    "CompileWarning",
    "DeviceArray",
    "Error",
    "Explanation",
    "Function",
    "Module",
    "Signature",
    "Timeline",
    "Value",
    "__version__",
    "cache",
    "compile",
    "devices",
    "explain",
    "load",
    "predict",
    "query_device",
]
