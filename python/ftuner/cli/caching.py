"""`ftuner cache`."""

from __future__ import annotations

import argparse
import re
import time
from typing import Any

from ..describe.tables import table
from ..host import cache
from .common import UsageError, print_json

_EPILOG = """\
examples:
  ftuner cache list
  ftuner cache clear --older-than 30d    what was not used for 30 days
  ftuner cache path                      FTUNER_CACHE_DIR names another"""

_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 7 * 86400}


def add_parser(commands: Any) -> None:
    parser: argparse.ArgumentParser = commands.add_parser(
        "cache",
        help="list or clear the compile cache",
        description="Lists or clears the compile cache, or prints its folder.",
        epilog=_EPILOG,
    )
    parser.add_argument("action", choices=["list", "clear", "path"])
    parser.add_argument(
        "--older-than",
        metavar="AGE",
        help="only what was not used for so long: 90s, 15m, 12h, 30d or 4w",
    )
    parser.add_argument("--json", action="store_true", help="list as JSON")
    parser.set_defaults(run=run)


def _seconds(text: str | None) -> float | None:
    if text is None:
        return None
    match = re.fullmatch(r"(\d+(?:\.\d+)?)([smhdw])", text)
    if not match:
        raise UsageError(
            f"option --older-than: expected an age such as 12h or 30d, but got '{text}'"
        )
    return float(match[1]) * _UNITS[match[2]]


def _age(seconds: float) -> str:
    for unit in ("d", "h", "m"):
        if seconds >= _UNITS[unit]:
            return f"{seconds / _UNITS[unit]:.0f}{unit}"
    return f"{max(seconds, 0):.0f}s"


def run(options: argparse.Namespace) -> None:
    age = _seconds(options.older_than)
    if options.json and options.action != "list":
        raise UsageError("option --json has no effect without list")
    if options.action == "path":
        if age is not None:
            raise UsageError("option --older-than has no effect with path")
        print(cache.path())
        return
    if options.action == "clear":
        print(f"removed {cache.clear(age)} entries")
        return
    now = time.time()
    entries = [entry for entry in cache.list() if age is None or now - entry.used > age]
    if options.json:
        print_json(
            [
                {
                    "key": entry.key,
                    "folder": str(entry.folder),
                    "bytes": entry.bytes,
                    "created": entry.created,
                    "used": entry.used,
                    "source": entry.source,
                    "device": entry.device,
                    "functions": entry.functions,
                }
                for entry in entries
            ]
        )
        return
    if not entries:
        print("the cache is empty")
        return
    rows = [
        (entry.key[:12], entry.device, f"{entry.bytes / 2**20:.1f}", _age(now - entry.used),
         entry.source, "; ".join(entry.functions))
        for entry in entries
    ]  # fmt: skip
    print(table(rows, ("key", "device", "MiB", "used", "source", "functions")))
