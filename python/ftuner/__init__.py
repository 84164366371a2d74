"""FTuner: fast GPU kernels for tensors whose sizes are known only at run time.

    module = ftuner.compile("dense.mlir", device="h200")
    y = module.dense(x, w, bias)

Functions take NumPy arrays (in the emulator), PyTorch tensors, or anything that speaks DLPack.
"""

from __future__ import annotations

from ._version import version as __version__
from .api import compile
from .describe.descriptions import devices, query_device
from .describe.explanation import Explanation, explain
from .describe.prediction import predict
from .describe.timeline import Timeline
from .errors import CacheError, CompileError, CompileWarning, Error
from .host import cache
from .host.function import Function
from .host.memory.dlpack import DeviceArray
from .host.module import Module, load
from .host.signature import Signature, Value

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
