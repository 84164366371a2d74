"""The list of the kinds of regions."""

from __future__ import annotations

from . import products, rows
from .region import RegionKind

#: The kinds of regions, in the order in which they take nodes of a graph.
KINDS: tuple[RegionKind, ...] = (products.KIND, rows.KIND)
