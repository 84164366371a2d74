"""`explain`: why a size is served by its program (docs/explain.md)."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Union

from .. import compiler
from ..host import processes
from . import descriptions, plotting
from .tables import count, preformatted
from .work import check_sizes_given

#: Sizes of one shape by name, or of several.
Sizes = Union[Mapping[str, int], Sequence[Mapping[str, int]], None]  # noqa: UP007


@dataclass(frozen=True)
class Explanation:
    """Explanation of the compiler's choices: `text` to read, `data` as in docs/explain.md."""

    text: str
    data: dict[str, Any]

    @property
    def workloads(self) -> list[dict[str, Any]]:
        """An entry for each planned workload of the source."""
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

    def __repr__(self) -> str:
        functions = self.data["functions"]
        parts = [count(len(self.workloads), "workload")]
        if functions is not None:
            parts.insert(0, count(len(functions), "function"))
        return f"<Explanation of {' and '.join(parts)} on {self.data['device']}>"

    def _repr_html_(self) -> str:
        return preformatted(self.text)


def explain(
    source: compiler.Source,
    sizes: Sizes = None,
    *,
    device: descriptions.Device | None = None,
    workload: str | None = None,
    full: bool = False,
    ranges: Mapping[str, tuple[int, int | None]] | None = None,
    projections: str = "joined",
    **options: Any,
) -> Explanation:
    """Explains the functions of a source, and the programs of its workloads.

    The text is a summary: for each function the shares of uKernels and the slowest operators, and
    a line for each workload. `workload`, by its name, has that one in full, and `full` has
    everything in full. With `sizes` (by the names of symbols or axes, `{"T": 53}`) a workload in
    full has the chosen program with its predicted time, the rejected ones, every term of their
    scores, and what the stages of the search threw out. With a list of such sizes, the source is
    planned once and there is a line for each. Without, there is a line for each size of the main
    axis, and a summary. The arguments `ranges`, `projections` and `options` are those of `compile`.
    Raises `CompileError` if the source or a size is not valid, and `ValueError` for sizes that are
    missing, and for a list whose items have other names.
    """
    text = compiler.read_source(source, ranges, projections)
    with processes.temporary_folder() as folder:
        printed, data = Path(folder, "text"), Path(folder, "json")
        view = [] if workload is None else [f"--workload={workload}"]
        view += ["--all"] if full else []
        _translate(text, sizes, device, options, "-o", str(printed), f"--report={data}", *view)
        words, content = (
            compiler.without_folder(file.read_text(encoding="utf-8"), text)
            for file in (printed, data)
        )
        found = json.loads(content)
        check_sizes(found)
        return Explanation(words, found)


def check_sizes(data: Mapping[str, Any]) -> None:
    """Raises `ValueError` if an explanation has some of the sizes of its functions, and not all."""
    for function in data["functions"] or ():
        for shape in data["sizes"]:
            check_sizes_given(function["work"], shape)


def explain_data(
    source: compiler.Source,
    sizes: Sizes = None,
    *,
    device: descriptions.Device | None = None,
    function: str | None = None,
    **options: Any,
) -> dict[str, Any]:
    """The `data` of `explain`, without the text; for the C name of a function only its part and its workloads."""
    text = compiler.read_source(source)
    chosen = () if function is None else (f"--function={function}",)
    data: dict[str, Any] = json.loads(_translate(text, sizes, device, options, "--json", *chosen))
    return data


def _translate(
    source: compiler.SourceText,
    sizes: Sizes,
    device: descriptions.Device | None,
    options: Mapping[str, Any],
    *more: str,
) -> str:
    description = descriptions.resolve(device)
    return compiler.translate(
        source,
        description,
        compiler.read_options(options, description),
        ["--ftuner-explain", *size_arguments(sizes), *more],
    )


def size_arguments(sizes: Sizes) -> list[str]:
    """A name that is given again begins the next shape."""
    shapes = [sizes or {}] if isinstance(sizes, Mapping) or sizes is None else sizes
    for shape in shapes:
        if shape.keys() != shapes[0].keys():
            raise ValueError(
                f"sizes: expected {', '.join(shapes[0])} for each shape, "
                f"but got {', '.join(shape) or 'nothing'}"
            )
    return [f"--size={name}={size}" for shape in shapes for name, size in shape.items()]
