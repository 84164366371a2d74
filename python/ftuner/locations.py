"""Paths of the tools, the runtime and the device descriptions.

They share a prefix: `bin/`, `lib/` and `share/ftuner/devices/` under the folder
that `FTUNER_HOME` names, or else under the package itself, where a wheel puts
them. A build tree is such a prefix, too.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from .errors import Error

RUNTIME_LIBRARY = "lib/libftrt.so.1"
LATENCY_LIBRARY = "lib/libftuner_latency.so"
DEVICES = "share/ftuner/devices"
CALIBRATIONS = "share/ftuner/calibrations"
PREDICTORS = "share/ftuner/predictors"
PROOFS = "share/ftuner/proofs"


def prefixes() -> list[Path]:
    """Folders to look in: one if `FTUNER_HOME` is set, else the folders of the package."""
    home = os.environ.get("FTUNER_HOME")
    if home:
        return [Path(home).absolute()]
    # An editable installation has two: the sources' and that of what was built.
    return [Path(folder) for folder in sys.modules[__package__].__path__]


def find(relative: str) -> Path:
    """Path of a file or folder under the prefix. Raises `Error` if it is missing."""
    for prefix in prefixes():
        path = prefix / relative
        if path.exists():
            return path
    looked = ", ".join(str(prefix) for prefix in prefixes())
    hint = (
        "FTUNER_HOME should name a build tree or an install prefix of FTuner"
        if os.environ.get("FTUNER_HOME")
        else "install the package, or set FTUNER_HOME to a build tree or an install prefix"
    )
    raise Error(f"cannot find '{relative}' in {looked}: {hint}")


def tool(name: str) -> Path:
    """Path of one of FTuner's programs, such as `ftuner-translate`."""
    path = find(f"bin/{name}")
    if not os.access(path, os.X_OK):
        raise Error(f"cannot run '{path}': it is not executable")
    return path
