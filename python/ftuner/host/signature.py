"""Signatures of compiled functions, read from the manifest (docs/manifest.md)."""

from __future__ import annotations

import keyword
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from ..errors import Error
from .elements import ELEMENT_TYPES, ElementType


def format_shape(shape: Sequence[int | str | None]) -> str:
    """`[T, 768, ?]`."""
    return "[" + ", ".join("?" if size is None else str(size) for size in shape) + "]"


@dataclass(frozen=True)
class Value:
    """An argument or a result: a tensor with a shape, or a scalar.

    `shape` has a number, the name of a symbol, or None (a size without a name)
    for each dimension; a scalar has the shape None. `name` is that of the source, None if it
    gives none.
    """

    type: ElementType
    shape: tuple[int | str | None, ...] | None
    name: str | None = None

    @property
    def is_tensor(self) -> bool:
        return self.shape is not None

    def __str__(self) -> str:
        return self.type.name + ("" if self.shape is None else format_shape(self.shape))


@dataclass(frozen=True)
class Signature:
    """Names and types of one function.

    `name` is that of the source, `symbol` the C name.
    """

    name: str
    symbol: str
    result_sizes_symbol: str
    workspace_size_symbol: str
    arguments: tuple[Value, ...]
    results: tuple[Value, ...]

    @property
    def symbols(self) -> tuple[str, ...]:
        """Names of sizes in the order in which arguments have them."""
        names = [size for value in self.arguments for size in value.shape or ()]
        return tuple(dict.fromkeys(name for name in names if isinstance(name, str)))

    @cached_property
    def keywords(self) -> tuple[str, ...]:
        """A word of Python for each argument: its name, as far as Python can have it, or arg0."""
        return _words([value.name for value in self.arguments], "arg", ("out", "stream"))

    @cached_property
    def fields(self) -> tuple[str, ...] | None:
        """A word for each result, if there are several and all have names."""
        names = [value.name for value in self.results]
        if len(names) < 2 or None in names:
            return None
        return _words([name and name.lstrip("_") for name in names], "result", ())

    def label(self, index: int) -> str:
        """An argument in messages."""
        name = self.arguments[index].name
        return f"argument {index}" if name is None else f"argument '{name}'"

    def __str__(self) -> str:
        arguments = ", ".join(
            f"{value.name or f'arg{i}'}: {value}" for i, value in enumerate(self.arguments)
        )
        results = ", ".join(
            str(value) if value.name is None else f"{value.name}: {value}" for value in self.results
        )
        if len(self.results) != 1:
            results = f"({results})"
        return f"{self.name}({arguments}) -> {results}"


def _words(names: Sequence[str | None], prefix: str, taken: Sequence[str]) -> tuple[str, ...]:
    """Names as words that Python takes, each one once and none of `taken`."""
    words: list[str] = []
    for index, name in enumerate(names):
        word = re.sub(r"\W", "_", name or "") or f"{prefix}{index}"
        word = word if word.isidentifier() else f"_{word}"
        word = word if word.isidentifier() else f"{prefix}{index}"
        while word in words or word in taken or keyword.iskeyword(word):
            word += "_"
        words.append(word)
    return tuple(words)


def _read_value(entry: dict[str, Any]) -> Value:
    type_name = f"u{entry['type']}" if entry.get("unsigned") else entry["type"]
    if type_name not in ELEMENT_TYPES:
        raise Error(
            f"the manifest has an element type that this version does not know: {type_name}"
        )
    shape = entry.get("shape") if entry["kind"] == "tensor" else None
    dims = None if shape is None else tuple(shape)
    return Value(ELEMENT_TYPES[type_name], dims, entry.get("name"))


def read_signatures(manifest: dict[str, Any]) -> list[Signature]:
    """The functions of a manifest, in their order."""
    try:
        return [
            Signature(
                entry["name"],
                entry["symbol"],
                entry["result_sizes_symbol"],
                entry["workspace_size_symbol"],
                tuple(_read_value(value) for value in entry["arguments"]),
                tuple(_read_value(value) for value in entry["results"]),
            )
            for entry in manifest["functions"]
        ]
    except (KeyError, TypeError) as error:
        raise Error(f"the manifest is not valid: {error!r}") from error
