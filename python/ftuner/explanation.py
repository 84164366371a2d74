"""`explain`: why a size is served by its program (docs/explain.md)."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Mapping

from . import compiler, descriptions


@dataclass(frozen=True)
class Explanation:
    """What the compiler says of its choices: `text` to read, `data` as in docs/explain.md."""

    text: str
    data: dict[str, Any]

    @property
    def workloads(self) -> list[dict[str, Any]]:
        """One for each contraction of the source."""
        workloads: list[dict[str, Any]] = self.data["workloads"]
        return workloads

    def __str__(self) -> str:
        return self.text


def explain(
    source: compiler.Source,
    sizes: Mapping[str, int] | None = None,
    *,
    device: descriptions.Device = "h200",
    **options: Any,
) -> Explanation:
    """Explains the programs of every contraction of a source.

    With `sizes` (by the names of symbols or axes, `{"T": 53}`) one shape is explained: the chosen
    program, the rejected ones, every term of their scores, and what the stages of the search threw
    out. Without, there is a line for each size. `options` are those of `compile`. Raises
    `CompileError` if the source or a size is not valid.
    """
    text = compiler.read_source(source)
    description = descriptions.resolve(device)
    arguments = ["--ftuner-explain", *compiler.option_arguments(options)]
    arguments += [f"--size={name}={size}" for name, size in (sizes or {}).items()]
    printed = compiler.translate(text, description, arguments)
    data = json.loads(compiler.translate(text, description, [*arguments, "--json"]))
    return Explanation(printed, data)
