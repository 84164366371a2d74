"""The options and codegen paths that the compiler lists."""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import Error
from ..host import processes


@dataclass(frozen=True)
class OptionFile:
    """A file that the value of an option may name, after a prefix such as `recorded:`."""

    prefix: str
    #: "read", "write", "update", or "command" for a command line whose words may be files.
    access: str

    def path_in(self, value: str) -> str | None:
        """The path, or the command line, that a value names; None if it names none of this kind."""
        path = value.removeprefix(self.prefix)
        return path if path and value.startswith(self.prefix) else None


@dataclass(frozen=True)
class DeclaredOption:
    """An option of the pipeline, as the strategy or cost model that reads it declares it."""

    name: str
    #: "switch", "integer", "number", "file" or "string".
    type: str
    #: One line with bounds, default and readers.
    help: str
    #: "basic" on the first screen of help texts, "advanced", or "testing".
    level: str
    #: Title of the options that help texts show together.
    group: str
    #: Files that a value may name.
    files: tuple[OptionFile, ...]
    #: Values that name something built in, where a file may stand.
    builtin: frozenset[str]
    #: Values that the option takes; empty if it takes any.
    values: tuple[str, ...]
    #: Names of the strategies and cost models that read it.
    readers: frozenset[str]

    @staticmethod
    def parse(data: Mapping[str, Any]) -> DeclaredOption:
        return DeclaredOption(
            name=data["name"],
            type=data["type"],
            help=data["help"],
            level=data["level"],
            group=data["group"],
            files=tuple(OptionFile(**file) for file in data.get("files", [])),
            builtin=frozenset(data.get("builtin", [])),
            values=tuple(data.get("values", [])),
            readers=frozenset(reader["name"] for reader in data["read_by"] if "name" in reader),
        )


@functools.cache
def listed(tool: Path) -> Mapping[str, Any]:
    """Returns the compiler's lists of its `options` and its codegen `paths`."""
    run = processes.run([tool, "--list-options"])
    try:
        content: dict[str, Any] = json.loads(run.stdout)
        options = [DeclaredOption.parse(option) for option in content["options"]]
        paths = [(path["name"], path["gated"]) for path in content["paths"]]
        if not options or not paths:
            raise ValueError
    except (ValueError, KeyError, TypeError):
        words = run.stderr.decode(errors="replace").strip()
        raise Error(f"{tool} does not list its options: {words or 'expected JSON'}") from None
    return content


@functools.cache
def options(tool: Path) -> Mapping[str, DeclaredOption]:
    """The pipeline's options by name, sorted."""
    return {option["name"]: DeclaredOption.parse(option) for option in listed(tool)["options"]}


@functools.cache
def gates(tool: Path) -> frozenset[str]:
    """Gated families by their names: "PATH" of a whole path, "PATH.FIELD" of a schedule's field.

    They compete only where they were proven, or where a user names the path.
    """
    paths = listed(tool)["paths"]
    fields = {
        f"{path['name']}.{field['name']}"
        for path in paths
        for field in path["schedule"]["fields"]
        if field["gated"]
    }
    return frozenset({path["name"] for path in paths if path["gated"]} | fields)


def values(tool: Path, option: str) -> list[str]:
    """Returns the values that an option takes; empty unless they are a list of names."""
    known = options(tool)
    return [*known[option].values] if option in known else []
