"""Tables of text."""

from __future__ import annotations

import html
from collections.abc import Sequence
from typing import Any


def count(number: int, noun: str, plural: str | None = None) -> str:
    """ "1 kernel", "2 kernels"."""
    return f"{number} {noun if number == 1 else plural or noun + 's'}"


def preformatted(text: str) -> str:
    """Returns HTML for notebooks that shows the text in its own lines."""
    return f"<pre>{html.escape(text)}</pre>"


def table(rows: Sequence[Sequence[Any]], header: Sequence[str]) -> str:
    """Columns of text; numbers are aligned to the right."""
    cells = [[str(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(header, *cells)]
    is_number = [
        bool(rows) and all(isinstance(row[i], (int, float)) for row in rows)
        for i in range(len(header))
    ]
    lines = []
    for row in [list(header), *cells]:
        parts = [
            cell.rjust(width) if right else cell.ljust(width)
            for cell, width, right in zip(row, widths, is_number)
        ]
        lines.append("  ".join(parts).rstrip())
    return "\n".join(lines)
