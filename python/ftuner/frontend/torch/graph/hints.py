"""Sizes that PyTorch compiles a graph for; predictions and reports use them."""

from __future__ import annotations

from typing import Any

import sympy
from torch.fx.experimental.symbolic_shapes import ShapeEnv

import torch
from torch import fx

from . import layout as lay

#: The widest extent of an axis: kernels take sizes as i32.
MAX_EXTENT = 2**31 - 1


def sizes_of(value: Any) -> Any:
    """Tensors as tuples of sizes, the expected ones where they are symbols."""
    if isinstance(value, (list, tuple)):
        return type(value)(sizes_of(item) for item in value)
    if isinstance(value, fx.Node):
        return sizes_of(value.meta.get("val"))
    if isinstance(value, torch.Tensor):
        return tuple(_size(size) for size in value.shape)
    return _size(value)


def _size(value: Any) -> Any:
    if isinstance(value, torch.SymInt):
        hint = hint_of(value)
        return 1 if hint is None else hint
    return value


def hint_of(size: torch.SymInt) -> int | None:
    """The size that PyTorch compiles for.

    The hint of an unknown size is the one that the user gave (`optimization_hint`,
    `hint_override`), or else the end of its range. None for a range without an end, and for ragged
    sizes of nested tensors, whose hint is not a number.
    """
    if size.node.has_hint():
        known = size.node.hint
        return known if isinstance(known, int) else None
    environment = size.node.shape_env
    extent = sympy.sympify(lay.extent_of(size))
    hints = {}
    for symbol in extent.free_symbols:
        hints[symbol] = _hint_of_symbol(environment, symbol)
    if None in hints.values():
        return None
    value = extent.xreplace(hints)
    return int(value) if value.is_Integer else None


def _hint_of_symbol(environment: ShapeEnv, symbol: Any) -> sympy.Integer | None:
    """The user's hint for a symbol or for an equal one, or else the end of its range."""
    known = environment.backed_var_to_val.get(symbol)
    if known is None:
        equal = [s for s, other in environment.replacements.items() if other == symbol]
        overrides = environment.var_to_hint_override
        known = next((overrides[s] for s in (symbol, *equal) if s in overrides), None)
    if known is None:
        bounds = environment.var_to_range.get(symbol)
        known = bounds.upper if bounds is not None else None
    if not isinstance(known, (int, sympy.Integer)) or known > MAX_EXTENT:
        return None  # Infinity, which is PyTorch's own.
    return sympy.Integer(known)
