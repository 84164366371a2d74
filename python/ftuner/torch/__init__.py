"""FTuner as a backend of torch.compile.

    model = torch.compile(model, backend="ftuner", dynamic=True, options={"device": "h200"})

Installed packages are found by PyTorch itself; from a source tree, importing this
module registers the backend.
"""

from __future__ import annotations

from torch._dynamo import register_backend
from torch._dynamo.backends.registry import list_backends

from .capture import capture_sizes
from .cpp_library import build_library
from .dynamo import backend
from .export import ExportedModel, export
from .inductor import InductorPass, inductor_pass
from .options import Options
from .packaging import aoti_compile_and_package
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
