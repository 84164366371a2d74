"""The version. A wheel holds a generated file instead of this one."""

import re
from pathlib import Path

_project = Path(__file__).parents[2] / "CMakeLists.txt"
_found = re.search(r"project\(FTuner VERSION ([0-9.]+)", _project.read_text(encoding="utf-8"))
version = _found[1] if _found else "unknown"
