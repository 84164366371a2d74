"""FTuner as a backend of torch.compile.

    model = torch.compile(model, backend="ftuner", dynamic=True, options={"device": "h200"})

Installed packages are found by PyTorch itself; from a source tree, importing this
module registers the backend. The code is in `ftuner.frontend.torch`.
"""

from __future__ import annotations

from .frontend.torch import *  # noqa: F403
from .frontend.torch import __all__ as __all__
