"""Frequencies of sizes: option `histogram`, from arguments of a model to extents of products."""

from __future__ import annotations

import itertools
import math
import re
import warnings
from collections.abc import Mapping
from typing import Any

import sympy

import torch
from torch import fx

#: Sizes and their relative frequencies.
Histogram = Mapping[int, float]
#: Combinations of sizes of several symbols that are looked at: the most frequent ones.
_MAX_COMBINATIONS = 256


def check(value: Any) -> dict[str, dict[int, float]]:
    """The option, as the backend is given it. Raises TypeError and ValueError if it is not valid."""
    clause = 'expected option histogram as {"NAME.DIM": {SIZE: FREQUENCY, …}}'
    if not isinstance(value, Mapping):
        raise TypeError(f"{clause}, but got {value!r}")
    for name, histogram in value.items():
        if not isinstance(name, str) or not re.fullmatch(r"(\w+\.)+\d+", name):
            raise ValueError(f"{clause}, but got the name {name!r}")
        if not isinstance(histogram, Mapping) or not histogram:
            raise ValueError(f"{clause}, but got {histogram!r} for {name!r}")
        for size, frequency in histogram.items():
            is_size = isinstance(size, int) and not isinstance(size, bool) and size >= 0
            is_number = isinstance(frequency, (int, float)) and math.isfinite(frequency)
            if not is_size or not is_number or frequency <= 0:
                raise ValueError(
                    f"histogram of {name!r}: expected sizes from 0 on with frequencies above 0, but"
                    f" got {size!r}: {frequency!r}"
                )
    return {name: dict(histogram) for name, histogram in value.items()}


def of_symbols(
    gm: fx.GraphModule, histograms: Mapping[str, Histogram]
) -> dict[str, dict[int, float]]:
    """Histograms of the symbols that a graph of Dynamo has for the sizes.

    A size that the graph has as a constant needs none, and those outside of a marked range are left
    out. Warns of names that no argument has: the model
    was split, or the name is wrong.
    """
    if not histograms:
        return {}
    arguments: dict[str, Any] = {}
    for node in gm.graph.nodes:
        name = _argument(getattr(node.meta.get("grapharg"), "source", None))
        value = node.meta.get("example_value")
        if name and isinstance(value, torch.Tensor):
            arguments[name] = value
    symbols: dict[str, dict[int, float]] = {}
    for name, histogram in histograms.items():
        argument, dim = name.rsplit(".", 1)
        if argument not in arguments or int(dim) >= arguments[argument].dim():
            known = ", ".join(
                f"{known}.{dim}"
                for known, tensor in arguments.items()
                for dim in range(tensor.dim())
            )
            warnings.warn(
                f"histogram of '{name}': a graph has no such size of an argument, but {known or 'none'}",
                stacklevel=2,
            )
            continue
        size = arguments[argument].shape[int(dim)]
        if isinstance(size, torch.SymInt) and size.node.expr.is_symbol:
            bounds = size.node.shape_env.bound_sympy(size.node.expr)
            # A least size of 2 is PyTorch's, whose other graph for 1 may have the same functions.
            lower = 1 if bounds.lower == 2 else bounds.lower
            symbols[size.node.expr.name] = {
                value: frequency
                for value, frequency in histogram.items()
                if lower <= value <= bounds.upper
            }
    return symbols


def _argument(source: Any) -> str:
    """The name of an argument, with the keys and numbers of where it is in it: "x", "batch.x.1".

    Empty for parameters and others.
    """
    name = getattr(source, "name", "")  # A property in newer versions.
    text = str(name() if callable(name) else name)
    if not re.fullmatch(r"L(\['\w+'\]|\[\d+\])+", text):
        return ""
    return ".".join(re.findall(r"\w+", text)[1:])


def of_extent(
    extent: sympy.Expr, symbols: Mapping[str, Histogram], lower: int, upper: int | None
) -> tuple[tuple[int, float], ...]:
    """Sizes of an expression from `lower` to `upper`, ascending, with their frequencies.

    Empty where it depends on a symbol without histogram. Symbols are taken to be independent.
    """
    names = sorted(extent.free_symbols, key=lambda symbol: symbol.name)
    if not names or not all(symbols.get(symbol.name) for symbol in names):
        return ()
    combinations = sorted(
        (
            (math.prod(frequency for _, frequency in chosen), [size for size, _ in chosen])
            for chosen in itertools.product(*(symbols[symbol.name].items() for symbol in names))
        ),
        key=lambda item: -item[0],
    )[:_MAX_COMBINATIONS]
    weights: dict[int, float] = {}
    for frequency, sizes in combinations:
        size = int(extent.subs(dict(zip(names, sizes))))
        if lower <= size and (upper is None or size <= upper):
            weights[size] = weights.get(size, 0.0) + frequency
    return tuple(sorted(weights.items()))
