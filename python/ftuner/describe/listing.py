"""The options and codegen paths that the compiler lists."""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..errors import Error
from ..host import processes

#: Of an option, as whoever reads it declares it.
OPTION_FIELDS = ("name", "type", "help")


@functools.cache
def listed(tool: Path) -> Mapping[str, Any]:
    """Returns the compiler's lists of its `options` and its codegen `paths`."""
    run = processes.run([tool, "--list-options"])
    try:
        content: dict[str, Any] = json.loads(run.stdout)
        options = [[option[key] for key in OPTION_FIELDS] for option in content["options"]]
        paths = [(path["name"], path["gated"]) for path in content["paths"]]
        if not options or not paths:
            raise ValueError
    except (ValueError, KeyError, TypeError):
        words = run.stderr.decode(errors="replace").strip()
        raise Error(f"{tool} does not list its options: {words or 'expected JSON'}") from None
    return content


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
    return next(
        ([*one.get("values", [])] for one in listed(tool)["options"] if one["name"] == option), []
    )
