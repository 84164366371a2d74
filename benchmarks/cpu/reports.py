"""Reports of the benchmarks of this folder: Markdown that states its date and its commit."""

import datetime
import pathlib
import subprocess


def commit() -> str:
    """The short hash of the checkout's commit; "no commit" outside of a checkout."""
    command = ["git", "rev-parse", "--short", "HEAD"]
    found = subprocess.run(
        command, capture_output=True, text=True, cwd=pathlib.Path(__file__).parent
    )
    return found.stdout.strip() or "no commit"


def stamp() -> str:
    """The date and the commit of predictions."""
    return f"{datetime.date.today()}, {commit()}: predicted times, no GPU"


def line(cells) -> str:
    """A line of a table."""
    return "| " + " | ".join(map(str, cells)) + " |"


def table(header, rows) -> list[str]:
    """The lines of a table."""
    return [line(cells) for cells in (header, ["---"] * len(header), *rows)]


class Report:
    """A text that is printed, and written to a file in the end."""

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
