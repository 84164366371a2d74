"""Raw records: one JSON object a line, appended as they are measured.

So what was measured before a part ran out of time, or failed, is kept.
"""

from __future__ import annotations

import json
import pathlib
from collections.abc import Iterator
from typing import Any

Record = dict[str, Any]


class Writer:
    """Appends records of one part to a file."""

    def __init__(self, path: pathlib.Path, part: str):
        self.part = part
        self.file = path.open("a", encoding="utf-8", buffering=1)

    def __call__(self, kind: str, **fields: Any) -> None:
        """Writes a record; NaN and infinity become null, as JSON has neither."""
        line = json.dumps({"part": self.part, "kind": kind, **_plain(fields)}, allow_nan=False)
        self.file.write(line + "\n")


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))):
        return None
    return value


def read(path: pathlib.Path) -> Iterator[Record]:
    """The records of a file. A last line that was cut off is left out."""
    lines = path.read_text(encoding="utf-8").split("\n")
    for number, line in enumerate(lines, 1):
        if not line:
            continue
        try:
            record = json.loads(line)
        except json.JSONDecodeError as error:
            if number == len(lines):
                return
            raise ValueError(
                f"{path}:{number}: expected a JSON object, but got " f"{line[:60]!r}"
            ) from error
        if not isinstance(record, dict) or "part" not in record or "kind" not in record:
            raise ValueError(
                f"{path}:{number}: expected an object with 'part' and 'kind', but got "
                f"{line[:60]!r}"
            )
        yield record
