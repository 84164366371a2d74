"""What the benchmarks of this folder share: Markdown that says when, and of which commit, it was made."""

import datetime
import pathlib
import subprocess


def commit() -> str:
    """Of the checkout, short; "no commit" outside of one."""
    command = ["git", "rev-parse", "--short", "HEAD"]
    found = subprocess.run(
        command, capture_output=True, text=True, cwd=pathlib.Path(__file__).parent
    )
    return found.stdout.strip() or "no commit"


def stamp() -> str:
    """Of predictions: the date and the commit."""
    return f"{datetime.date.today()}, {commit()}: predicted times, no GPU"


def line(cells) -> str:
    """A line of a table."""
    return "| " + " | ".join(map(str, cells)) + " |"


def table(header, rows) -> list[str]:
    """The lines of a table."""
    return [line(cells) for cells in (header, ["---"] * len(header), *rows)]


class Report:
    """What is printed, and written in the end."""

    def __init__(self) -> None:
        self.text = ""

    def line(self, text: str = "") -> None:
        print(text, flush=True)
        self.text += text + "\n"

    def row(self, cells) -> None:
        self.line(line(cells))

    def table(self, header, rows=()) -> None:
        """Behind an empty line, with these rows at first."""
        self.line()
        for text in table(header, rows):
            self.line(text)
