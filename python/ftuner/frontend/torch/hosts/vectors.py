"""Products with a vector, as products of matrices with one row, which FTuner takes.

Inductor makes sums of some products with one row, before a pass of its graphs sees them: small ones
on the CPU, and in its modes that search (`max-autotune`) all of them on a GPU. They stay products.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from torch.fx.experimental.symbolic_shapes import statically_known_true

import torch
from torch import Tensor

from ..graph.nodes import TYPES

aten = torch.ops.aten


def _mv(matrix: Tensor, vector: Tensor) -> Tensor:
    return torch.mm(vector.unsqueeze(0), matrix.t()).squeeze(0)


def _addmv(
    summand: Tensor, matrix: Tensor, vector: Tensor, *, beta: float = 1, alpha: float = 1
) -> Tensor:
    rows = vector.unsqueeze(0)
    # A summand of one element is broadcast along the row.
    return torch.addmm(summand, rows, matrix.t(), beta=beta, alpha=alpha).squeeze(0)


def _dot(left: Tensor, right: Tensor) -> Tensor:
    return torch.mm(left.unsqueeze(0), right.unsqueeze(1)).reshape(())


_TAKEN: dict[Any, Callable[..., Tensor]] = {
    aten.mv.default: _mv,
    aten.addmv.default: _addmv,
    aten.dot.default: _dot,
    aten.vdot.default: _dot,
}


#: Products that others decompose, and the position of the factor whose last size is that of the sum.
_KEPT = {aten.mm.default: 0, aten.addmm.default: 1, aten.bmm.default: 0}


def decompositions(others: Mapping[Any, Callable[..., Any]]) -> dict[Any, Callable[..., Any]]:
    """A table of decompositions of PyTorch's, with these for the types that FTuner takes."""

    def chosen(
        taken: Callable[..., Tensor], other: Callable[..., Any] | None
    ) -> Callable[..., Any]:
        def decompose(*arguments: Any, **options: Any) -> Any:
            tensors = [argument for argument in arguments if isinstance(argument, Tensor)]
            if all(tensor.dtype in TYPES for tensor in tensors):
                return taken(*arguments, **options)
            return other(*arguments, **options) if other else NotImplemented

        return decompose

    def kept(position: int, other: Callable[..., Any]) -> Callable[..., Any]:
        def decompose(*arguments: Any, **options: Any) -> Any:
            left, right = arguments[position : position + 2]
            # A sum of one product needs no addition.
            is_sum = not statically_known_true(left.shape[-1] == 1)
            if left.dtype in TYPES and right.dtype in TYPES and is_sum:
                return NotImplemented
            return other(*arguments, **options)

        return decompose

    table = {operator: chosen(taken, others.get(operator)) for operator, taken in _TAKEN.items()}
    for operator, position in _KEPT.items():
        if operator in others:
            table[operator] = kept(position, others[operator])
    return {**others, **table}
