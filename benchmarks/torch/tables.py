"""Tables of the benchmarks beside this file, as Markdown that says when and from what it was made."""

from __future__ import annotations

import datetime
import pathlib
import subprocess


def publish(rows: list[list[str]], how: str, file: pathlib.Path | None) -> None:
    """Prints a table that `made` makes, and writes it to a file if one is given."""
    table = made(rows, how)
    print(table)
    if file:
        file.write_text(table, encoding="utf-8")


def made(rows: list[list[str]], how: str) -> str:
    """A table whose first row is its header, behind "Made on … from …" with the commit and `how`."""
    folder = pathlib.Path(__file__).parent
    commit = subprocess.run(
        ["git", "-C", str(folder), "rev-parse", "--short", "HEAD"], capture_output=True, text=True
    )
    table = [f"| {' | '.join(row)} |" for row in rows]
    table.insert(1, "|" + " --- |" * len(rows[0]))
    return "\n".join(
        [f"Made on {datetime.date.today()} from {commit.stdout.strip()}{how}.", "", *table, ""]
    )
