"""Raw records of a run: JSON objects, one a line, compressed and appended as they are measured.

Every process appends a member of gzip to the file and flushes after each record, so that whatever
was measured before a process, or the machine, was stopped can be read. Records carry the number of
the run that wrote them, from 0: runs into one folder complete each other.
"""

from __future__ import annotations

import json
import os
import pathlib
import time
import zlib
from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Any

Record = dict[str, Any]

# The header and the trailer of gzip.
_GZIP = 31


class Writer:
    """Appends records of one part to a file. No two writers may be open at a time."""

    def __init__(self, path: pathlib.Path, part: str, run: int = 0):
        self.part, self.run = part, run
        self.file = path.open("ab")
        self.stream = zlib.compressobj(6, zlib.DEFLATED, _GZIP)

    def __call__(self, kind: str, **fields: Any) -> None:
        """Writes a record; NaN and infinity become null, as JSON has neither."""
        head = {"part": self.part, "kind": kind, "run": self.run, "at": round(time.time(), 3)}
        line = json.dumps({**head, **_plain(fields)}, allow_nan=False) + "\n"
        self._append(self.stream.compress(line.encode()) + self.stream.flush(zlib.Z_SYNC_FLUSH))

    def close(self) -> None:
        """Completes the member."""
        self._append(self.stream.flush())
        self.file.close()

    def __enter__(self) -> Writer:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _append(self, data: bytes) -> None:
        self.file.write(data)
        self.file.flush()


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))):
        return None
    return value


def _unpack(path: pathlib.Path) -> tuple[bytes, bool]:
    """Returns the text of a file, and whether its last member is complete."""
    data, text = path.read_bytes(), b""
    while data:
        stream = zlib.decompressobj(_GZIP)
        try:
            text += stream.decompress(data)
        except zlib.error as error:
            raise ValueError(f"{path}: expected records, compressed by gzip: {error}") from error
        if not stream.eof:
            return text, False
        data = stream.unused_data
    return text, True


def read(path: pathlib.Path) -> Iterator[Record]:
    """The records of a file. A last line that was cut off is left out."""
    lines = _unpack(path)[0].decode("utf-8", errors="replace").split("\n")
    for number, line in enumerate(lines, 1):
        if not line:
            continue
        try:
            record = json.loads(line)
        except json.JSONDecodeError as error:
            if number == len(lines):
                return
            raise ValueError(
                f"{path}:{number}: expected a JSON object, but got {line[:60]!r}"
            ) from error
        if not isinstance(record, dict) or "part" not in record or "kind" not in record:
            raise ValueError(
                f"{path}:{number}: expected an object with 'part' and 'kind', but got {line[:60]!r}"
            )
        yield record


def repair(path: pathlib.Path) -> None:
    """Completes a file whose last writer was stopped, so that another can append to it."""
    if not path.exists():
        return
    text, complete = _unpack(path)
    if complete:
        return
    whole = text[: text.rfind(b"\n") + 1]
    stream = zlib.compressobj(6, zlib.DEFLATED, _GZIP)
    replace(path, stream.compress(whole) + stream.flush())


def replace(path: pathlib.Path, data: bytes) -> None:
    """Writes a file in one step."""
    partial = path.with_name(f".{path.name}.partial")
    partial.write_bytes(data)
    os.replace(partial, path)


def is_finished(record: Record) -> bool:
    """Returns true for the record of a part that ended and had all of its time."""
    return record["kind"] == "finished" and not record.get("short")


def chosen(records: Iterable[Record]) -> list[Record]:
    """Returns the records that count if several runs measured a part: the records of the run that finished
    the part, else of the run with the most records; of two such runs, the later one."""
    runs: dict[str, dict[int, list[Record]]] = defaultdict(lambda: defaultdict(list))
    for record in records:
        runs[record["part"]][record.get("run", 0)].append(record)
    result = []
    for own in runs.values():
        rank = {run: (any(map(is_finished, found)), len(found), run) for run, found in own.items()}
        result += own[max(rank, key=lambda run: rank[run])]
    return result
