"""Console scripts of a wheel that run FTuner's own programs, which the package holds."""

from __future__ import annotations

import os
import sys

from .. import locations
from ..errors import Error


def _execute(name: str) -> None:
    try:
        path = str(locations.tool(name))
        os.execv(path, [path, *sys.argv[1:]])
    except (Error, OSError) as error:
        sys.exit(f"error: {error}")


def ftuner_opt() -> None:
    _execute("ftuner-opt")


def ftuner_translate() -> None:
    _execute("ftuner-translate")


def ftuner_run() -> None:
    _execute("ftuner-run")
