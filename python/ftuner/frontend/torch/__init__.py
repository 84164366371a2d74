"""The backend of torch.compile; `ftuner.torch` has its public names.

Importing this package registers the backend with PyTorch.
"""

from __future__ import annotations

from torch._dynamo import register_backend
from torch._dynamo.backends.registry import list_backends

from .capture import capture_sizes
from .dynamo import backend
from .exporting.export import ExportedModel, export
from .hosts.aoti import aoti_compile_and_package
from .hosts.cpp_library import build_library
from .hosts.inductor import InductorPass, inductor_pass
from .options import Options
from .report import RejectedOp, Report, report, reset_report

if "ftuner" not in list_backends(exclude_tags=()):
    register_backend(backend, name="ftuner")

__all__ = [
    "ExportedModel",
    "InductorPass",
    "Options",
    "RejectedOp",
    "Report",
    "aoti_compile_and_package",
    "backend",
    "build_library",
    "capture_sizes",
    "export",
    "inductor_pass",
    "report",
    "reset_report",
]
