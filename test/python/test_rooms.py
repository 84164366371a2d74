"""tools/check_rooms.py on small trees: what it refuses, and what it does not."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from handmade import ROOT

CLEAN = {
    "__init__.py": "from .api import compile\nfrom .host import cache\n",
    "api.py": "import ftuner.host.cache\n\n\ndef compile() -> None:\n    from . import options\n",
    "options.py": "import os\n",
    "host/__init__.py": "",
    "host/cache.py": "from typing import TYPE_CHECKING\n\nif TYPE_CHECKING:\n    from ..api import compile\n",
    "study/__init__.py": "",
    "study/papers.py": "from ..host import cache\nfrom . import plans\n",
    "study/plans.py": "",
    "cli/__init__.py": "from ..study import papers\n",
}


def check(folder: Path, changes: dict[str, str]) -> tuple[int, str]:
    """Exit status and messages for CLEAN with other files; a name from the root begins with `/`."""
    for name, text in {**CLEAN, **changes}.items():
        path = folder / name[1:] if name.startswith("/") else folder / "python" / "ftuner" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    run = subprocess.run(
        [sys.executable, str(Path(ROOT, "tools", "check_rooms.py")), f"--root={folder}"],
        capture_output=True,
        text=True,
    )
    return run.returncode, run.stderr


def test_accepts_a_clean_tree(tmp_path: Path) -> None:
    assert check(tmp_path, {}) == (0, "")


@pytest.mark.parametrize(
    "changes, message",
    [
        (
            {"options.py": "from . import api\n"},
            "python/ftuner/api.py:5: a circle of imports: ftuner.api -> ftuner.options -> ftuner.api",
        ),
        (
            {"options.py": "def late() -> None:\n    from .api import compile\n"},
            "a circle of imports",
        ),
        ({"options.py": "import ftuner.api\n"}, "a circle of imports"),
        ({"options.py": "from ftuner import compile\n"}, "a circle of imports"),
        (
            {"host/cache.py": "if TYPE_CHECKING:\n    pass\nelse:\n    from .. import api\n"},
            "a circle of imports",
        ),
        ({"study/plans.py": "from .papers import read\n"}, "a circle of imports"),
        (
            {"options.py": "from .study import plans\n"},
            "python/ftuner/options.py:1: imports ftuner.study.plans: only cli may import 'study'",
        ),
    ],
)
def test_refuses_imports(tmp_path: Path, changes: dict[str, str], message: str) -> None:
    status, messages = check(tmp_path, changes)
    assert status == 1
    assert message in messages and messages.count("error: ") == 1


@pytest.mark.parametrize(
    "folder", ["include/FTuner/Device", "lib/Device", "tools", "python/ftuner/host"]
)
def test_refuses_a_large_folder(tmp_path: Path, folder: str) -> None:
    ending = "py" if folder.startswith("python") else "h"
    before = sum(name.startswith(folder.removeprefix("python/ftuner/") + "/") for name in CLEAN)
    files = {f"/{folder}/file{number}.{ending}": "" for number in range(20 - before)}
    # Data, and what lies in rooms of the folder, do not count.
    files |= {f"/{folder}/device{number}.json": "" for number in range(30)}
    files[f"/{folder}/room/file.{ending}"] = ""
    assert check(tmp_path, files) == (0, "")
    status, messages = check(tmp_path, {f"/{folder}/one_more.{ending}": ""})
    assert status == 1
    assert messages == (
        f"error: {folder}: has 21 sources side by side, but at most 20 are allowed: give it rooms\n"
    )


def test_refuses_an_empty_tree(tmp_path: Path) -> None:
    run = subprocess.run(
        [sys.executable, str(Path(ROOT, "tools", "check_rooms.py")), f"--root={tmp_path}"],
        capture_output=True,
        text=True,
    )
    assert run.returncode == 1 and "no modules" in run.stderr
