"""Distance between two sets of latent vectors (CDMPP, section 5.2)."""

from __future__ import annotations

import torch

# Central moments that count.
MOMENTS = 5


def central_moment_discrepancy(
    source: torch.Tensor, target: torch.Tensor, width: float = 1.0, moments: int = MOMENTS
) -> torch.Tensor:
    """Distance of the means and the central moments of two samples: rows × features each.

    ‖E P − E Q‖ / w + Σ ‖Ω_j(P) − Ω_j(Q)‖ / w^j for j from 2 on, Ω_j the central moment of each feature, `width` w that of the
    interval in which features lie (Zellinger et al., ICLR 2017).
    """
    first, second = source.mean(0), target.mean(0)
    distance: torch.Tensor = torch.linalg.vector_norm(first - second) / width
    of_source, of_target = source - first, target - second
    for order in range(2, moments + 1):
        difference = (of_source**order).mean(0) - (of_target**order).mean(0)
        distance = distance + torch.linalg.vector_norm(difference) / width**order
    return distance
