"""Statistics of measurements. Plain Python, no dependency."""

from __future__ import annotations

import math
from collections.abc import Sequence


def quantile(values: Sequence[float], share: float) -> float:
    """The quantile by linear interpolation between order statistics."""
    if not values:
        raise ValueError("expected at least one value, but got none")
    ordered = sorted(values)
    position = share * (len(ordered) - 1)
    low = math.floor(position)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (position - low) * (ordered[high] - ordered[low])


def summary(values: Sequence[float]) -> dict[str, float]:
    """Median, quartiles, least value and count."""
    return {
        "median": quantile(values, 0.5),
        "q1": quantile(values, 0.25),
        "q3": quantile(values, 0.75),
        "min": min(values),
        "count": len(values),
    }


def geometric_mean(values: Sequence[float]) -> float:
    if not values or min(values) <= 0:
        raise ValueError(f"expected positive values, but got {min(values, default=None)}")
    return math.exp(sum(math.log(value) for value in values) / len(values))


def ranks(values: Sequence[float]) -> list[float]:
    """Ranks from 1, ties share their mean."""
    order = sorted(range(len(values)), key=values.__getitem__)
    result = [0.0] * len(values)
    start = 0
    while start < len(order):
        end = start
        while end + 1 < len(order) and values[order[end + 1]] == values[order[start]]:
            end += 1
        for position in range(start, end + 1):
            result[order[position]] = (start + end) / 2 + 1
        start = end + 1
    return result


def pearson(x: Sequence[float], y: Sequence[float]) -> float | None:
    """None where either side is constant."""
    if len(x) != len(y):
        raise ValueError(f"expected equally many values, but got {len(x)} and {len(y)}")
    if len(x) < 2:
        return None
    mean_x, mean_y = sum(x) / len(x), sum(y) / len(y)
    covariance = sum((a - mean_x) * (b - mean_y) for a, b in zip(x, y))
    spread = math.sqrt(sum((a - mean_x) ** 2 for a in x) * sum((b - mean_y) ** 2 for b in y))
    return covariance / spread if spread > 0 else None


def spearman(x: Sequence[float], y: Sequence[float]) -> float | None:
    """Spearman's rank correlation, with ties."""
    return pearson(ranks(x), ranks(y))


def kendall(x: Sequence[float], y: Sequence[float]) -> float | None:
    """Kendall's tau-b."""
    if len(x) != len(y):
        raise ValueError(f"expected equally many values, but got {len(x)} and {len(y)}")
    agreeing = only_x = only_y = 0
    for i in range(len(x)):
        for j in range(i):
            a, b = _sign(x[i] - x[j]), _sign(y[i] - y[j])
            agreeing += a * b
            only_x += a != 0
            only_y += b != 0
    scale = math.sqrt(only_x * only_y)
    return agreeing / scale if scale > 0 else None


def _sign(value: float) -> int:
    return (value > 0) - (value < 0)


def best_share(scores: Sequence[float], seconds: Sequence[float], count: int) -> float:
    """How much of the best speed the `count` programs of the highest scores reach.

    1 means that the fastest of all is among them. Equal scores count in the order
    given, which is that of the search.
    """
    first = sorted(range(len(scores)), key=lambda i: -scores[i])[:count]
    return min(seconds) / min(seconds[i] for i in first)
