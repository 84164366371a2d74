"""Options that the scripts of this folder share, and the places of their results.

Imported before `ftuner`, it finds the package and the built tools of this tree.
"""

from __future__ import annotations

import argparse
import dataclasses
import datetime
import json
import os
import re
import shutil
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "python"))
os.environ.setdefault("FTUNER_HOME", str(ROOT / "build" / "release"))

from ftuner.errors import Error

BEGIN = time.time()
OPTIONS: dict[str, dict[str, Any]] = {
    "data": {"required": True, "help": "folder of the published rows"},
    "out": {"required": True, "help": "folder of the results"},
    "docs": {"help": "file to put the tables into"},
    "step": {"type": int, "default": 1, "help": "take each so many-th row of a file"},
}


def parser(description: str | None, *names: str) -> argparse.ArgumentParser:
    """Returns the parser of a script, with the named options of OPTIONS."""
    result = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    for name in names:
        result.add_argument(f"--{name}", **OPTIONS[name])
    return result


def today() -> str:
    return str(datetime.datetime.now(datetime.timezone.utc).date())


def say(text: str) -> None:
    print(f"[{time.time() - BEGIN:5.0f} s] {text}", file=sys.stderr, flush=True)


def percent(value: float | None, digits: int = 1) -> str:
    return "–" if value is None or np.isnan(value) else f"{100 * value:.{digits}f} %"


def table(header: list[str], lines: list[list[str]]) -> str:
    rows = [header, ["---"] * len(header), *lines]
    return "\n".join("| " + " | ".join(row) + " |" for row in rows) + "\n"


def marks(name: str) -> re.Pattern[str]:
    """Returns the pattern of the marks around the tables of a script in a file."""
    return re.compile(rf"(<!-- {name}: begin -->\n).*?(<!-- {name}: end -->)", re.DOTALL)


def read_docs(docs: Path, name: str) -> str:
    """The text of a file. Raises `Error` if it lacks the marks of this name."""
    try:
        text = docs.read_text(encoding="utf-8")
    except OSError as failure:
        raise Error(f"cannot read '{docs}': {failure.strerror}") from failure
    except UnicodeDecodeError as failure:
        raise Error(f"cannot read '{docs}': expected text in UTF-8") from failure
    if not marks(name).search(text):
        raise Error(f"'{docs}': expected '<!-- {name}: begin -->' and '<!-- {name}: end -->'")
    return text


def put_into_docs(docs: Path, text: str, figures: Sequence[Path], name: str) -> None:
    """Replaces what is between the marks of the file."""
    new = marks(name).sub(lambda m: m[1] + "\n" + text + "\n" + m[2], read_docs(docs, name))
    docs.write_text(new, encoding="utf-8")
    (docs.parent / "figures").mkdir(exist_ok=True)
    for figure in figures:
        shutil.copyfile(figure, docs.parent / "figures" / f"latency_{figure.name}")


@dataclasses.dataclass(frozen=True)
class Report:
    """Places of a script's results: FOLDER/NAME.json and NAME.md, and the part of a file between marks."""

    folder: Path
    name: str
    docs: Path | None
    mark: str

    @classmethod
    def opened(cls, options: argparse.Namespace, name: str, mark: str = "judge") -> Report:
        """Returns the report of --out and --docs.

        Checks both before minutes of work: raises `Error` if the file has no marks, or if the
        folder cannot be made.
        """
        docs = Path(options.docs) if options.docs else None
        if docs:
            read_docs(docs, mark)
        folder = Path(options.out)
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as failure:
            raise Error(f"cannot make the folder '{folder}': {failure.strerror}") from failure
        return cls(folder, name, docs, mark)

    def write(self, data: dict[str, Any], text: str, figures: Sequence[Path] = ()) -> None:
        """Writes the figures of a script and its text, which is printed, too."""
        path = self.folder / self.name
        json_path, text_path = (path.with_name(f"{self.name}.{end}") for end in ("json", "md"))
        json_path.write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")
        text_path.write_text(text, encoding="utf-8")
        print(text)
        if self.docs:
            put_into_docs(self.docs, text, figures, self.mark)


def exit_code(run: Callable[[argparse.Namespace], int | None], options: argparse.Namespace) -> int:
    """Runs a script; returns its exit code: that of `run`, or 0. Prints an error and returns 1 for it."""
    try:
        return run(options) or 0
    except (Error, OSError) as failure:
        print(f"error: {failure}", file=sys.stderr)
        return 1
