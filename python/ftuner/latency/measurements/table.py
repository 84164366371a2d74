"""CSV files with errors that name the line."""

from __future__ import annotations

import csv
import gzip
import io
import lzma
import math
import os
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from ...errors import Error
from ...host import outputs

_GZIP = b"\x1f\x8b"
_XZ = b"\xfd7zXZ\x00"


class Table:
    """Columns of text by name, of a CSV file (or one compressed by gzip or xz) with a header line.

    Raises `Error` with the file and the line for what is not such a file.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = os.fspath(path)
        reader = csv.reader(io.StringIO(_read(self.path), newline=""), strict=True)
        rows: list[list[str]] = []
        lines: list[int] = []
        try:
            header = [name.strip() for name in next(reader, [])]
            if not any(header):
                raise Error(f"{self.path}:1: expected a header line with the names of columns")
            for name in header:
                if header.count(name) > 1:
                    raise Error(f"{self.path}:1: expected each column once, but got '{name}' twice")
            for row in reader:
                if not row:
                    continue
                if len(row) != len(header):
                    raise Error(
                        f"{self.path}:{reader.line_num}: expected {len(header)} fields, "
                        f"but got {len(row)}"
                    )
                rows.append(row)
                lines.append(reader.line_num)
        except csv.Error as error:
            raise Error(f"{self.path}:{reader.line_num}: {error}") from error
        self.lines = np.array(lines, np.int64)
        columns = zip(*rows) if rows else ([] for _ in header)
        self.columns = {
            name: np.array([text.strip() for text in column], dtype=object)
            for name, column in zip(header, columns)
        }

    def __len__(self) -> int:
        return len(self.lines)

    def __contains__(self, column: str) -> bool:
        return column in self.columns

    def thin(self, step: int) -> None:
        """Keeps each `step`-th row."""
        self.lines = self.lines[::step]
        self.columns = {name: column[::step] for name, column in self.columns.items()}

    def keep(self, rows: npt.NDArray[np.bool_]) -> None:
        """Keeps the rows of a mask."""
        self.lines = self.lines[rows]
        self.columns = {name: column[rows] for name, column in self.columns.items()}

    def error(self, row: int, message: str) -> Error:
        """An error of a row (from 0)."""
        return Error(f"{self.path}:{self.lines[row]}: {message}")

    def text(self, column: str, default: str | None = None) -> npt.NDArray[Any]:
        """A column; the default everywhere if the file has no such column."""
        if column in self.columns:
            return self.columns[column]
        if default is None:
            raise Error(f"{self.path}:1: expected a column '{column}', but it is missing")
        return np.full(len(self), default, dtype=object)

    def numbers(
        self,
        column: str,
        default: float | None = None,
        *,
        whole: bool = False,
        low: float,
        high: float,
    ) -> npt.NDArray[np.float64]:
        """A column of numbers from `low` to `high`; empty fields are the default."""
        if column not in self.columns and default is not None:
            return np.full(len(self), float(default))
        texts = self.text(column)
        if default is not None:
            texts = np.where(texts == "", str(default), texts)
        try:
            values = texts.astype(np.float64)
        except ValueError:
            values = np.array([_number(text) for text in texts])
        is_good = (values >= low) & (values <= high)
        if whole:
            is_good &= values == np.floor(values)
        expected = "a whole number" if whole else "a number"
        self.expect(column, is_good, f"{expected} of at least {low:.10g} and at most {high:.10g}")
        return np.asarray(values, np.float64)

    def expect(self, column: str, is_good: npt.NDArray[np.bool_], expected: str) -> None:
        """An error for the first row of which `is_good` is false."""
        if not is_good.all():
            row = int(np.argmin(is_good))
            text = self.columns[column][row]
            raise self.error(row, f"column '{column}': expected {expected}, but got '{text}'")

    def choose(
        self, column: str, default: str, known: Callable[[str], Any], expected: str
    ) -> npt.NDArray[Any]:
        """`known(text)` for each text of a column; an error where that is None."""
        texts = self.text(column, default)
        values = {text: known(text) for text in sorted(set(texts))}
        is_known = np.array([values[text] is not None for text in texts], bool)
        self.expect(column, is_known, expected)
        return np.array([values[text] for text in texts], dtype=object)


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan


def _read(path: str) -> str:
    try:
        if path == outputs.STANDARD:
            data = sys.stdin.buffer.read()
        else:
            with open(path, "rb") as file:
                data = file.read()
        if data.startswith(_GZIP):
            data = gzip.decompress(data)
        elif data.startswith(_XZ):
            data = lzma.decompress(data)
    except (OSError, EOFError, gzip.BadGzipFile) as error:
        reason = getattr(error, "strerror", None) or error
        raise Error(f"cannot read the rows '{path}': {reason}") from error
    except Exception as error:  # zlib.error has no common base with the others.
        raise Error(f"cannot read the rows '{path}': {error}") from error
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise Error(f"{path}:{line}: expected text in UTF-8") from error
