"""`predict`: the latency of a model from those of its launches (docs/replay.md)."""

from __future__ import annotations

import re
from typing import Any, Iterator, Mapping, Sequence

from . import compiler, descriptions
from .errors import Error, did_you_mean
from .explanation import explain_data
from .timeline import Timeline, timelines

# What exporters and people call the size of a batch.
_BATCH_NAMES = ("batch", "batch_size", "b", "n")


def predict(
    source: compiler.Source,
    sizes: Mapping[str, int] | Sequence[Mapping[str, int]] = (),
    *,
    batch: int | None = None,
    device: descriptions.Device = "h200",
    function: str | None = None,
    streams: int = 1,
    gap: float = 0.0,
    ranges: Mapping[str, tuple[int, int | None]] | None = None,
    **options: Any,
) -> list[Timeline]:
    """Predicts calls of a model: a timeline for each of the sizes, by the predicted times of the launches.

    Args:
        source, device, ranges, options: as in `compile`.
        sizes: every size that the model's work follows from, by name; or several such.
        batch: the size called batch, batch_size, B or N, or else the first dimension of the first tensor, which may
            have just this size.
        function: its C name, where the source has several.
        streams, gap: as in `timelines`.

    Raises `CompileError` for a source that is not valid and for unknown names, `Error` for a module without launches,
    and `ValueError` for sizes that are missing, unknown, or beyond what the model declares.
    """
    text = compiler.read_source(source, ranges)
    shapes = [dict(one) for one in ([sizes] if isinstance(sizes, Mapping) else sizes)] or [{}]
    if batch is not None:
        name = _batch_name(text, batch)
        for shape in shapes:
            if name is not None and shape.setdefault(name, batch) != batch:
                raise ValueError(f"batch: {name} is {shape[name]} by its name, but got {batch}")
    _check_declared(text, shapes)
    # Without a size nothing would be explained at one shape.
    asked = [shape or {} for shape in shapes]
    data = explain_data(text, asked if any(asked) else None, device=device, **options)
    if data["functions"] is None:
        raise Error("there is no timeline: the module has no lowering to launches")
    _choose_function(data, function)
    for work in (entry["work"] for entry in data["functions"]):
        for shape in shapes:
            _check_sizes(work, shape)
        if not any(asked):  # All sizes are fixed: any of the shares is the only one.
            work["shares"] = work["shares"][:1]
    return timelines(data, streams, gap)


def _choose_function(data: dict[str, Any], name: str | None) -> None:
    """Leaves the function of that name, or the only one."""
    symbols = [entry["symbol"] for entry in data["functions"]]
    if name is None and len(symbols) > 1:
        raise ValueError(f"the source has several functions, choose one: {', '.join(symbols)}")
    if name is not None and name not in symbols:
        raise ValueError(
            f"expected one of the functions {', '.join(symbols)}, but got '{name}'"
            + did_you_mean(name, symbols)
        )
    if name is not None:
        data["functions"] = [entry for entry in data["functions"] if entry["symbol"] == name]


def _formulas(work: Mapping[str, Any]) -> Iterator[str]:
    """Everything that the function's sizes may stand in."""
    for item in (*work["workloads"], *work["fallback_kernels"]):
        for value in item.values():
            for formula in value if isinstance(value, list) else [value]:
                if isinstance(formula, str):
                    yield formula


def _check_sizes(work: Mapping[str, Any], given: Mapping[str, int]) -> None:
    """Sizes must be those that the work follows from, and in their ranges."""
    known: list[str] = work["sizes"]
    for name, size in given.items():
        if name not in known:
            raise ValueError(
                f"sizes: expected one of {', '.join(known) or 'none, all are fixed'}, but got '{name}'"
                + did_you_mean(name, known)
            )
        low, high = work["size_ranges"][known.index(name)]
        if size < low or (high is not None and size > high):
            raise _range_error(name, low, high, size)
    words = {word for formula in _formulas(work) for word in re.findall(r"[^\s()*+]+", formula)}
    missing = [name for name in known if name not in given and name in words]
    if missing:
        examples = ",".join(f"{name}=64" for name in missing)
        raise ValueError(
            f"the sizes {', '.join(missing)} are not known: give them by --size {examples}"
        )


def _range_error(name: str, low: int, high: int | None, size: int) -> ValueError:
    most = "on" if high is None else f"to {high}"
    return ValueError(f"sizes: expected {name} from {low} {most}, but got {size}")


def _check_declared(text: compiler.SourceText, shapes: Sequence[Mapping[str, int]]) -> None:
    """Refuses sizes beyond the ranges that the text of a source declares, before it is planned."""
    for name, low, high in re.findall(
        rb'"?([\w.$-]+)"?\s*=\s*#ukernel\.range<(\d+) to (\d+)', text.content
    ):
        for shape in shapes:
            size = shape.get(name.decode())
            if size is not None and not int(low) <= size <= int(high):
                raise _range_error(name.decode(), int(low), int(high), size)


def _batch_name(text: compiler.SourceText, batch: int) -> str | None:
    """The name of the batch's size; None where the model has just this batch.

    Raises `ValueError` where it has another one, or does not tell.
    """
    if text.content.startswith(b"ML\xefR"):
        raise ValueError("batch: bytecode does not tell the batch: give it by its name, as a size")
    words = text.content.decode(errors="replace")
    symbols = re.findall(r'"([^"]*)"', " ".join(re.findall(r"ukernel\.shape\s*=\s*\[([^\]]*)\]", words)))
    for name in dict.fromkeys(symbols):
        if name.lower() in _BATCH_NAMES:
            return str(name)
    first = re.search(
        r"func\.func\s+(?:public\s+)?@(?:\"[^\"]*\"|[\w.$-]+)\s*\(\s*%[\w.$-]+\s*:\s*tensor<(\?|\d+)x[^>]*>"
        r"(\s*\{[^}]*?ukernel\.shape\s*=\s*\[\s*\"([^\"]*)\")?",
        words,
    )
    if first is None:
        raise ValueError("batch: the first argument is no tensor: give the batch by its name, as a size")
    if first[1] == "?":
        return str(first[3] or "arg0_dim0")
    if int(first[1]) != batch:
        raise ValueError(
            f"batch: the model has a fixed batch of {first[1]}, but got {batch}: export it with that one, or with a "
            "dynamic batch"
        )
    return None
