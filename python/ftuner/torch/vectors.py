"""Products with a vector, as products of matrices with one row, which FTuner takes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor

from .partition import TYPES

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


def decompositions(others: Mapping[Any, Callable[..., Any]]) -> dict[Any, Callable[..., Any]]:
    """A table of decompositions of PyTorch's, with these for the types that FTuner takes."""

    def chosen(taken: Callable[..., Tensor], other: Callable[..., Any] | None) -> Callable[..., Any]:
        def decompose(*arguments: Any, **options: Any) -> Any:
            tensors = [argument for argument in arguments if isinstance(argument, Tensor)]
            if all(tensor.dtype in TYPES for tensor in tensors):
                return taken(*arguments, **options)
            return other(*arguments, **options) if other else NotImplemented

        return decompose

    table = {operator: chosen(taken, others.get(operator)) for operator, taken in _TAKEN.items()}
    return {**others, **table}
