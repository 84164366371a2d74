"""Transforms of microseconds to the labels that a predictor learns, and back (CDMPP, section 5.1, table 3).

Transformed labels are shifted so that the least one of the training set is 1: the relative part of the loss divides by them.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]
# Factor by which predictions may lie beyond the labels of the training set.
MAX_FACTOR = 30.0
KINDS = ("box-cox", "yeo-johnson", "quantile", "none")
# Names of fields in files (docs/learned-model.md), where they differ.
_JSON_NAMES = {"minimum": "least", "maximum": "greatest"}


@dataclasses.dataclass(frozen=True)
class Labels:
    """A transform, fitted to the labels of a training set."""

    kind: str
    # The parameter of a power transform; sorted labels of `quantile`.
    values: Array
    # Mean and deviation of what the transform gives, and what is added then.
    mean: float = 0.0
    deviation: float = 1.0
    shift: float = 0.0
    # Bounds of the labels that `backward` gives: far beyond the labels of the training set the
    # inverse of a power transform has poles. Files call them `least` and `greatest`.
    minimum: float = 1e-3
    maximum: float = 1e12

    @classmethod
    def fit(cls, microseconds: npt.ArrayLike, kind: str = "box-cox") -> Labels:
        """The transform of that kind for positive labels; raises ValueError for others, and for unknown kinds."""
        from scipy import stats

        labels = np.asarray(microseconds, np.float64)
        if kind not in KINDS:
            raise ValueError(f"expected one of {', '.join(KINDS)}, but got {kind!r}")
        if labels.size == 0 or not (np.isfinite(labels) & (labels > 0)).all():
            raise ValueError("expected positive labels, one at least")
        if kind == "box-cox":
            values = np.array(
                [stats.boxcox_normmax(labels, method="mle") if len(np.unique(labels)) > 1 else 0.0]
            )
        elif kind == "yeo-johnson":
            values = np.array(
                [stats.yeojohnson_normmax(labels) if len(np.unique(labels)) > 1 else 1.0]
            )
        elif kind == "quantile":
            values = np.sort(labels)
        else:
            values = np.empty(0)
        plain = cls(kind, values)
        raw = plain._raw(labels)
        mean, deviation = (raw.mean(), raw.std() or 1.0) if kind != "none" else (0.0, 1.0)
        minimum = ((raw - mean) / deviation).min()
        return dataclasses.replace(
            plain,
            mean=float(mean),
            deviation=float(deviation),
            shift=float(1 - minimum) if kind != "none" else 0.0,
            minimum=np.inf,
            maximum=0.0,
        ).widened(labels)

    def widened(self, labels: Array) -> Labels:
        """Returns labels whose bounds hold predictions of these labels, too."""
        return dataclasses.replace(
            self,
            minimum=min(self.minimum, max(float(labels.min()) / MAX_FACTOR, 1e-3)),
            maximum=max(self.maximum, min(float(labels.max()) * MAX_FACTOR, 1e12)),
        )

    def _raw(self, labels: Array) -> Array:
        from scipy import special, stats

        if self.kind == "box-cox":
            return np.asarray(special.boxcox(labels, self.values[0]))
        if self.kind == "yeo-johnson":
            return np.asarray(stats.yeojohnson(labels, self.values[0]))
        if self.kind == "quantile":
            ranks = np.interp(labels, self.values, np.linspace(0, 1, len(self.values)))
            return np.asarray(special.ndtri(np.clip(ranks, 1e-7, 1 - 1e-7)))
        return labels

    def forward(self, microseconds: npt.ArrayLike) -> Array:
        """Transformed labels; labels of the training set are at least 1, except for kind `none`."""
        return (
            self._raw(np.asarray(microseconds, np.float64)) - self.mean
        ) / self.deviation + self.shift

    def backward(self, transformed: npt.ArrayLike) -> Array:
        """Microseconds from `minimum` to `maximum`, for every number."""
        from scipy import special

        raw = (np.asarray(transformed, np.float64) - self.shift) * self.deviation + self.mean
        if self.kind == "box-cox":
            power = self.values[0]
            # Beyond where the transform ends, its end.
            logarithm = np.log(np.maximum(1 + power * raw, 1e-12)) / power if power else raw
            result = np.exp(np.clip(logarithm, -700, 700))
        elif self.kind == "yeo-johnson":
            power = self.values[0]
            result = (
                np.expm1(np.log1p(np.maximum(power * raw, -1 + 1e-12)) / power)
                if power
                else np.expm1(raw)
            )
        elif self.kind == "quantile":
            result = np.interp(special.ndtr(raw), np.linspace(0, 1, len(self.values)), self.values)
        else:
            result = raw
        return np.asarray(
            np.clip(
                np.nan_to_num(result, nan=self.minimum, posinf=self.maximum),
                self.minimum,
                self.maximum,
            )
        )

    def as_json(self) -> dict[str, Any]:
        fields = dict(dataclasses.asdict(self), values=[float(value) for value in self.values])
        return {_JSON_NAMES.get(name, name): value for name, value in fields.items()}

    @classmethod
    def of_json(cls, json: dict[str, Any]) -> Labels:
        """Raises ValueError or TypeError for what `as_json` does not give."""
        names = {written: name for name, written in _JSON_NAMES.items()}
        fields = {names.get(name, name): value for name, value in json.items()}
        labels = cls(**{**fields, "values": np.array(json["values"], np.float64)})
        if labels.kind not in KINDS:
            raise ValueError(f"labels: expected one of {', '.join(KINDS)}, but got {labels.kind!r}")
        count = labels.values.size
        if labels.values.ndim != 1 or not (
            count > 0 if labels.kind == "quantile" else count == (labels.kind != "none")
        ):
            raise ValueError(f"labels: expected the values of {labels.kind}, but got {count}")
        numbers = [labels.mean, labels.deviation, labels.shift, labels.minimum, labels.maximum]
        if not np.isfinite([*labels.values, *numbers]).all():
            raise ValueError("labels: expected finite numbers")
        return labels
