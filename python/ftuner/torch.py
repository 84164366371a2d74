"""FTuner as a backend of torch.compile.

    model = torch.compile(model, backend="ftuner", dynamic=True, options={"device": "h200"})

Installed packages are found by PyTorch itself; from a source tree, importing this
module registers the backend. The code is in `ftuner.frontend.torch`.
"""

from __future__ import annotations

from .frontend.torch import (
    ExportedModel,
    InductorPass,
    Left,
    Options,
    Report,
    aoti_compile_and_package,
    backend,
    build_library,
    capture_sizes,
    export,
    inductor_pass,
    report,
    reset_report,
)

__all__ = [
    "ExportedModel",
    "InductorPass",
    "Left",
    "Options",
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
