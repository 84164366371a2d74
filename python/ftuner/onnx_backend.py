"""ONNX's interface of backends (`onnx.backend.base`) over `ftuner.compile`.

    import ftuner.onnx_backend as backend

    (y,) = backend.run_model(onnx.load("model.onnx"), [x])

The device "CPU" is the emulator, "CUDA" the GPU of that number. Keyword arguments are those of
`ftuner.compile`. The code is in `ftuner.frontend.onnx.backend`.
"""

from __future__ import annotations

from .frontend.onnx.backend import (
    Backend,
    CompiledModel,
    prepare,
    run_model,
    run_node,
    supports_device,
)

__all__ = ["Backend", "CompiledModel", "prepare", "run_model", "run_node", "supports_device"]
