"""`predict`: the latency of a model from the latencies of its launches (docs/replay.md)."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .. import compiler
from ..errors import Error
from . import descriptions
from .kept_explanations import explain_kept
from .timeline import Timeline, beyond_ranges, range_text, timelines, whole_number
from .work import check_sizes_given

# Common names of the size of a batch.
_BATCH_NAMES = ("batch", "batch_size", "b", "n")


def predict(
    source: compiler.Source,
    sizes: Mapping[str, int] | Sequence[Mapping[str, int]] = (),
    *,
    batch: int | None = None,
    device: descriptions.Device | None = None,
    function: str | None = None,
    streams: int = 1,
    gap: float = 0.0,
    launch_interval: float = 0.0,
    ranges: Mapping[str, tuple[int, int | None]] | None = None,
    projections: str = "joined",
    **options: Any,
) -> list[Timeline]:
    """Predicts calls of a model: a timeline for each of the sizes, by the predicted times of the launches.

    Args:
        source, device, ranges, projections, options: as in `compile`.
        sizes: every size that the function's work follows from, by name, or by an axis that has just this size; or several
            such. Those of other functions may be among them, and need not be.
        batch: the size called batch, batch_size, B or N that is the first dimension of an argument, or else the first
            dimension of the first tensor, which may have just this size.
        function: its C name, where the source has several.
        streams, gap, launch_interval: as in `timelines`.

    Raises `CompileError` for a source that is not valid and for unknown names, `Error` for a module without launches,
    and `ValueError` for sizes that are missing, unknown, or beyond what the model declares.
    """
    text = compiler.read_source(source, ranges, projections)
    shapes = [dict(one) for one in ([sizes] if isinstance(sizes, Mapping) else sizes)] or [{}]
    for shape in shapes:
        shape.update({name: whole_number(f"sizes: {name}", size) for name, size in shape.items()})
    if batch is not None:
        batch = whole_number("batch", batch)
        name = _batch_name(text, batch, function)
        for shape in shapes:
            if name is not None and shape.setdefault(name, batch) != batch:
                raise ValueError(f"batch: {name} is {shape[name]} by its name, but got {batch}")
    _check_declared(text, shapes)
    # Without a size nothing would be explained at one shape.
    is_asked = any(shapes)
    data = explain_kept(
        text, shapes if is_asked else None, device=device, function=function, options=options
    )
    if data["functions"] is None:
        raise Error("there is no timeline: the module has no lowering to launches")
    symbols = [entry["symbol"] for entry in data["functions"]]
    if len(symbols) > 1:
        raise ValueError(f"the source has several functions, choose one: {', '.join(symbols)}")
    (entry,) = data["functions"]
    for number, shape in enumerate(shapes):
        _check_sizes(entry["work"], number, shape)
    if not is_asked:  # All sizes are fixed: any of the shares is the only one.
        entry["work"]["shares"] = entry["work"]["shares"][:1]
    return timelines(data, streams, gap, launch_interval)


def _check_sizes(work: Mapping[str, Any], number: int, given: Mapping[str, int]) -> None:
    """The sizes with this number must be all that the work follows from, and in their ranges.

    The compiler has refused names that are not sizes of the source.
    """
    check_sizes_given(work, given)
    sizes = work["shares"][number]["sizes"]
    for name, (low, high) in beyond_ranges(work, given, sizes).items():
        raise _range_error(name, low, high, sizes[name])


def _range_error(name: str, low: int, high: int | None, size: int) -> ValueError:
    return ValueError(f"sizes: expected {name} from {range_text(low, high)}, but got {size}")


def _without_comments(text: compiler.SourceText) -> str:
    words = text.content.decode(errors="replace")
    return re.sub(r'("(?:[^"\\\n]|\\.)*")|//[^\n]*', lambda found: str(found[1] or ""), words)


def _check_declared(text: compiler.SourceText, shapes: Sequence[Mapping[str, int]]) -> None:
    """Refuses sizes beyond the ranges that the text of a source declares, before it is planned."""
    for quoted, plain, low, high in re.findall(
        r'(?:"([^"]*)"|([\w.$-]+))\s*=\s*#ukernel\.range<(\d+) to (\d+)', _without_comments(text)
    ):
        name = quoted or plain
        for shape in shapes:
            size = shape.get(name)
            if size is not None and not int(low) <= size <= int(high):
                raise _range_error(name, int(low), int(high), size)


@dataclass(frozen=True)
class _Argument:
    """An argument of a function of a text.

    Attributes:
        first: its first dimension: "?" or a number; None for an argument without dimensions.
        symbol: the symbol of that dimension.
        word: prefix of the names of its sizes.
    """

    first: str | None
    symbol: str | None
    word: str


def _given_names(rest: str) -> list[str] | None:
    """The names that the attribute of a function gives its arguments, in the text after these."""
    body = re.match(
        r"[^{]*?attributes\s*\{[^\n]*?ukernel\.names\s*=\s*\{arguments\s*=\s*\[([^\]]*)\]", rest
    )
    return None if body is None else re.findall(r'"([^"]*)"', body[1])


def _arguments(words: str) -> dict[str, list[_Argument]]:
    """The arguments of the public functions of a text, by the functions' names."""
    functions: dict[str, list[_Argument]] = {}
    for head in re.finditer(r"func\.func\s+(?:public\s+)?@(?:\"([^\"]*)\"|([\w.$-]+))\s*\(", words):
        depth = 1
        end = head.end()
        for token in re.finditer(r'"(?:[^"\\]|\\.)*"|[()]', words[head.end() :]):
            depth += {"(": 1, ")": -1}.get(token[0], 0)
            if depth == 0:
                end += token.start()
                break
        arguments = []
        parts = re.split(r"%([\w.$-]+)\s*:", words[head.end() : end])
        given = _given_names(words[end:])
        for number, (name, argument) in enumerate(zip(parts[1::2], parts[2::2])):
            if given is not None:
                name = given[number] if number < len(given) else ""
            elif re.fullmatch(r"(arg)?\d+", name):
                found = re.search(r"""loc\("([^"]*)"\)""", argument)
                name = found[1] if found else ""
            word = re.sub(r"\W", "_", name, flags=re.ASCII) or f"arg{number}"
            word = f"f_{word}" if word[0].isdigit() else word
            shape = re.match(r"\s*tensor<(\?|\d+)x", argument)
            symbol = re.search(r"ukernel\.shape\s*=\s*\[\s*\"([^\"]*)\"", argument)
            arguments.append(_Argument(shape and shape[1], symbol and symbol[1], word))
        functions[head[1] or head[2]] = arguments
    return functions


def _batch_name(text: compiler.SourceText, batch: int, function: str | None) -> str | None:
    """The name of the batch's size of the function, or of the only one; None where the model has just this batch.

    Raises `ValueError` where it has another one, or does not tell.
    """
    if text.content.startswith(b"ML\xefR"):
        raise ValueError("batch: bytecode does not tell the batch: give it by its name, as a size")
    functions = _arguments(_without_comments(text))
    # C names have other characters replaced.
    arguments = next(
        (
            found
            for name, found in functions.items()
            if function is None or re.sub(r"\W", "_", name) == re.sub(r"\W", "_", function)
        ),
        [],
    )
    for argument in arguments:
        if argument.symbol is not None and argument.symbol.lower() in _BATCH_NAMES:
            return argument.symbol
    tensors = [one for one in arguments if one.first is not None]
    if not tensors:
        raise ValueError("batch: no argument is a tensor: give the batch by its name, as a size")
    tensor = tensors[0]
    if tensor.first == "?":
        return tensor.symbol or f"{tensor.word}_dim0"
    if int(str(tensor.first)) != batch:
        raise ValueError(
            f"batch: the model has a fixed batch of {tensor.first}, but got {batch}: export it with that one, or with a "
            "dynamic batch"
        )
    return None
