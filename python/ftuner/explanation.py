"""`explain`: why a size is served by its program (docs/explain.md)."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Mapping

from . import compiler, descriptions, plotting


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

    def plot(
        self,
        output: str | os.PathLike[str],
        *,
        workload: str | None = None,
        metrics: bool = False,
    ) -> list[Path]:
        """Draws predicted times over all sizes, as `plotting.draw_plan` says; needs Matplotlib."""
        return plotting.draw_plan(self.data, output, workload=workload, metrics=metrics)

    def __str__(self) -> str:
        return self.text


def explain(
    source: compiler.Source,
    sizes: Mapping[str, int] | None = None,
    *,
    device: descriptions.Device = "h200",
    ranges: Mapping[str, tuple[int, int | None]] | None = None,
    **options: Any,
) -> Explanation:
    """Explains the programs of every contraction of a source.

    With `sizes` (by the names of symbols or axes, `{"T": 53}`) one shape is explained: the chosen
    program with its predicted time, the rejected ones, every term of their scores, and what the
    stages of the search threw out. Without, there is a line for each size, and a summary.
    `ranges` and `options` are those of `compile`. Raises `CompileError` if the source or a size is not valid.
    """
    text = compiler.read_source(source, ranges)
    description = descriptions.resolve(device)
    pipeline = compiler.read_options(options)
    printed = _translate(text, sizes, description, pipeline)
    data = json.loads(_translate(text, sizes, description, pipeline, "--json"))
    return Explanation(printed, data)


def explain_data(
    source: compiler.Source,
    sizes: Mapping[str, int] | None = None,
    *,
    device: descriptions.Device = "h200",
    **options: Any,
) -> dict[str, Any]:
    """The `data` of `explain`, without the text."""
    text = compiler.read_source(source)
    pipeline = compiler.read_options(options)
    printed = _translate(text, sizes, descriptions.resolve(device), pipeline, "--json")
    data: dict[str, Any] = json.loads(printed)
    return data


def _translate(
    source: compiler.SourceText,
    sizes: Mapping[str, int] | None,
    device: descriptions.Description,
    options: compiler.Options,
    *more: str,
) -> str:
    arguments = [f"--size={name}={size}" for name, size in (sizes or {}).items()]
    return compiler.translate(source, device, options, ["--ftuner-explain", *arguments, *more])
