"""Positions of statements, as vectors of the length of their features (CDMPP, section 4.2)."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

# The base of the wave lengths.
THETA = 10000.0


def positional_encoding(
    ordering: npt.ArrayLike, width: int, theta: float = THETA
) -> npt.NDArray[np.float32]:
    """Sines and cosines of places in a tree's sequence: [..., statements] to [..., statements, width].

    Element 2δ is sin(place / Θ^(2δ / width)), element 2δ + 1 the cosine of the same.
    """
    places = np.asarray(ordering, np.float64)[..., None]
    pairs = np.arange(width) // 2
    angles = places / theta ** (2 * pairs / width)
    return np.where(np.arange(width) % 2 == 0, np.sin(angles), np.cos(angles)).astype(np.float32)
