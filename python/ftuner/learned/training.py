"""Training and evaluation of predictors (CDMPP, sections 5.1 and 6)."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
from typing import Any, Callable, Sequence

import numpy as np
import numpy.typing as npt
import torch

from .. import outputs
from ..errors import Error
from .dataset import DEVICE_FIGURES, Dataset
from .encoding import positional_encoding
from .labels import KINDS, Labels
from .network import Architecture, Predictor
from .provenance import Provenance

# Of the files that predictors are kept in.
FORMAT = "ftuner-predictor"
VERSION = 2
LOSSES = ("both", "squared", "relative")


@dataclasses.dataclass(frozen=True)
class Options:
    """How a predictor is trained; the defaults are the paper's but for `epochs`."""

    epochs: int = 60
    batch: int = 600
    rate: float = 1.68e-5
    decay: float = 1.3e-3
    # Weight of the relative part of the loss.
    relative: float = 1e-3
    loss: str = "both"
    transform: str = "box-cox"
    positions: bool = True
    # Learn measured over what `latency` predicts, rather than microseconds.
    corrects: bool = False
    seed: int = 0

    def __post_init__(self) -> None:
        if self.epochs < 1 or self.batch < 2:
            raise ValueError("expected an epoch and batches of two programs at least")
        if self.loss not in LOSSES:
            raise ValueError(f"expected one of {', '.join(LOSSES)}, but got {self.loss!r}")
        if self.transform not in KINDS:
            raise ValueError(f"expected one of {', '.join(KINDS)}, but got {self.transform!r}")


# For the small architecture, whose gradients are larger.
SMALL_RATE = 1e-3


@dataclasses.dataclass
class Group:
    """Trees of one number of statements: features, the program of each, and its share of that program's blocks."""

    features: torch.Tensor
    program: torch.Tensor
    share: torch.Tensor


@dataclasses.dataclass
class Batch:
    """Programs: a group for each number of statements, and devices' figures, programs × figures."""

    groups: list[Group]
    device: torch.Tensor


def latents(predictor: Predictor, batch: Batch) -> torch.Tensor:
    """z of each program: of several trees the mean, by their blocks."""
    result: torch.Tensor | None = None
    for group in batch.groups:
        features, device = group.features, batch.device[group.program]
        # Batch norm has no deviation of a single row.
        is_single = predictor.training and len(features) == 1
        if is_single:
            features, device = features.repeat(2, 1, 1), device.repeat(2, 1)
        z = predictor.latent(features, device)
        if is_single:
            z = z[:1]
        if result is None:
            result = z.new_zeros(len(batch.device), z.shape[1])
        result = result.index_add(0, group.program, z * group.share[:, None])
    assert result is not None
    return result


def loss_of(options: Options, predicted: torch.Tensor, wanted: torch.Tensor) -> torch.Tensor:
    """Of transformed labels: the squared error, and a share of the relative one."""
    squared = ((predicted - wanted) ** 2).mean()
    relative = ((predicted - wanted).abs() / wanted.abs().clamp(min=1e-3)).mean()
    if options.loss == "squared":
        return squared
    return relative if options.loss == "relative" else squared + options.relative * relative


@dataclasses.dataclass
class Trained:
    """A predictor with all that turns programs into microseconds."""

    predictor: Predictor
    labels: Labels
    # Of features and of devices' figures: what is subtracted, and what divides then.
    feature_mean: npt.NDArray[np.float32]
    feature_deviation: npt.NDArray[np.float32]
    device_mean: npt.NDArray[np.float32]
    device_deviation: npt.NDArray[np.float32]
    positions: bool = True
    corrects: bool = False
    # What the compiler needs to trust it; `save` does.
    provenance: Provenance | None = None

    def batch(self, data: Dataset, rows: npt.NDArray[np.int64]) -> Batch:
        groups: dict[int, list[tuple[npt.NDArray[np.float32], int, float]]] = {}
        for place, row in enumerate(rows):
            blocks = sum(tree.blocks for tree in data.trees[row])
            for tree in data.trees[row]:
                features = (tree.features - self.feature_mean) / self.feature_deviation
                if self.positions:
                    features = features + positional_encoding(tree.ordering, features.shape[1])
                groups.setdefault(len(tree.ordering), []).append((features, place, tree.blocks / blocks))
        device = (data.device_vectors[data.device[rows]] - self.device_mean) / self.device_deviation
        return Batch(
            [
                Group(
                    torch.from_numpy(np.stack([item[0] for item in items])),
                    torch.tensor([item[1] for item in items]),
                    torch.tensor([item[2] for item in items], dtype=torch.float32),
                )
                for _, items in sorted(groups.items())
            ],
            torch.from_numpy(device.astype(np.float32)),
        )

    def predict(self, data: Dataset, size: int = 2048) -> npt.NDArray[np.float64]:
        """Microseconds of each program. Raises `Error` for trees of a size that was not trained."""
        self.predictor.eval()
        known = {int(count) for count in self.predictor.heads}
        if unknown := set(data.statements()) - known:
            raise Error(
                f"expected programs of {', '.join(map(str, sorted(known)))} statements, but got {min(unknown)}"
            )
        parts = []
        with torch.no_grad():
            for first in range(0, len(data), size):
                batch = self.batch(data, np.arange(first, min(first + size, len(data))))
                parts.append(self.predictor.decoder(latents(self.predictor, batch))[:, 0].numpy())
        times = self.labels.backward(np.concatenate(parts) if parts else np.empty(0))
        return times * data.predicted if self.corrects else times

    def save(self, path: str) -> None:
        """Writes the predictor to a file, the compiler's too: a line of JSON, then its numbers as f32, little-endian."""
        if self.provenance is None:
            raise ValueError("expected a predictor that says what it was trained on")
        numbers = {
            "feature_mean": self.feature_mean,
            "feature_deviation": self.feature_deviation,
            "device_mean": self.device_mean,
            "device_deviation": self.device_deviation,
            **self.provenance.arrays(),
            "golden_values": self.golden_values(),
        }
        arrays = {name: values.astype("<f4") for name, values in numbers.items()}
        for name, tensor in self.predictor.state_dict().items():
            if not name.endswith("num_batches_tracked"):
                arrays[name] = tensor.numpy().astype("<f4")
        header: dict[str, Any] = {
            "format": FORMAT,
            "version": VERSION,
            "architecture": dataclasses.asdict(self.predictor.architecture),
            "statements": [int(count) for count in self.predictor.heads],
            "device_figures": list(DEVICE_FIGURES),
            "labels": self.labels.as_json(),
            "positions": self.positions,
            "corrects": self.corrects,
            **self.provenance.as_json(),
            "arrays": [[name, list(values.shape)] for name, values in arrays.items()],
        }
        blob = b"".join(values.tobytes() for values in arrays.values())
        header["sha256"] = hashlib.sha256(blob).hexdigest()
        outputs.write_one(path, json.dumps(header, allow_nan=False).encode() + b"\n" + blob)

    def golden_values(self) -> npt.NDArray[np.float32]:
        """What the predictor says of the golden programs: microseconds, or ratios to `latency`."""
        assert self.provenance is not None
        golden = self.provenance.golden
        size = len(golden.trees)
        data = Dataset(
            trees=golden.trees,
            microseconds=np.ones(size),
            device=np.arange(size),
            device_names=[""] * size,
            device_vectors=golden.device,
            task=np.zeros(size, np.int64),
            fold=np.zeros(size, np.int64),
            predicted=np.ones(size),
        )
        return self.predict(data).astype(np.float32)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Trained:
        """Raises `Error` for what is no such file."""
        try:
            with open(path, "rb") as file:
                line, content = file.readline(), file.read()
        except OSError as error:
            raise Error(f"cannot read '{path}': {error.strerror}") from error
        try:
            header = json.loads(line)
            if header["format"] != FORMAT or header["version"] != VERSION:
                raise ValueError(f"expected {FORMAT} of version {VERSION}")
            if tuple(header["device_figures"]) != DEVICE_FIGURES:
                raise ValueError("expected the figures of a device that this version reads")
            sizes: dict[str, Any] = {
                name: tuple(value) if isinstance(value, list) else value
                for name, value in header["architecture"].items()
            }
            predictor = Predictor(Architecture(**sizes), header["statements"])
            if hashlib.sha256(content).hexdigest() != header["sha256"]:
                raise ValueError("expected the numbers that its header has the hash of")
            values = np.frombuffer(content, "<f4")
            arrays, first = {}, 0
            for name, shape in header["arrays"]:
                size = int(np.prod(shape))
                arrays[name] = values[first : first + size].reshape(shape).copy()
                first += size
            if first != len(values):
                raise ValueError(f"expected {first} numbers, but got {len(values)}")
            mean, deviation = arrays.pop("feature_mean"), arrays.pop("feature_deviation")
            card_mean, card_deviation = arrays.pop("device_mean"), arrays.pop("device_deviation")
            arrays.pop("golden_values")
            provenance = Provenance.of_json(header, arrays)
            state = {name: torch.from_numpy(array) for name, array in arrays.items()}
            missing = predictor.load_state_dict(state, strict=False)
            if missing.unexpected_keys or any(not key.endswith("num_batches_tracked") for key in missing.missing_keys):
                raise ValueError("expected the arrays of its architecture")
            labels = Labels.of_json(header["labels"])
            return cls(
                predictor, labels, mean, deviation, card_mean, card_deviation,
                bool(header["positions"]), bool(header["corrects"]), provenance,
            )  # fmt: skip
        except (ValueError, KeyError, TypeError, AttributeError, RuntimeError, UnicodeDecodeError) as error:
            raise Error(f"'{path}' is no predictor: {error}") from error


def _standard(values: npt.NDArray[np.float32]) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]:
    mean, deviation = values.mean(0), values.std(0)
    return mean.astype(np.float32), np.where(deviation > 1e-6, deviation, 1).astype(np.float32)


def _standard_of_devices(data: Dataset) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]:
    """Of the devices of programs; figures that are the same on all of them are 0 on any device: nothing tells what they do."""
    vectors = data.device_vectors[np.unique(data.device)]
    mean, deviation = vectors.mean(0), vectors.std(0)
    return mean.astype(np.float32), np.where(deviation > 1e-6, deviation, 1e30).astype(np.float32)


def train(
    data: Dataset,
    architecture: Architecture,
    options: Options,
    tell: Callable[[int, float], None] = lambda epoch, loss: None,
    stop: Callable[[], bool] = lambda: False,
) -> Trained:
    """Trains a predictor; the same data, architecture and options give the same one on the same machine.

    `tell` is called with each epoch and its mean loss; `stop` may end training early.
    """
    if len(data) < 2:
        raise Error(f"expected two programs at least to train on, but got {len(data)}")
    torch.manual_seed(options.seed)
    rng = np.random.default_rng(options.seed)
    architecture = dataclasses.replace(architecture, device_figures=len(DEVICE_FIGURES))
    predictor = Predictor(architecture, data.statements())
    rows_of = np.concatenate([tree.features for trees in data.trees for tree in trees])
    targets = data.microseconds / data.predicted if options.corrects else data.microseconds
    labels = Labels.fit(targets, options.transform)
    trained = Trained(
        predictor, labels, *_standard(rows_of), *_standard_of_devices(data), options.positions, options.corrects,
        Provenance.of(data, targets),
    )  # fmt: skip
    wanted = torch.from_numpy(labels.forward(targets).astype(np.float32))
    optimizer = torch.optim.Adam(predictor.parameters(), lr=options.rate, weight_decay=options.decay)
    size = min(options.batch, len(data))
    steps = max(-(-len(data) // size) * options.epochs, 2)
    # From a tenth of the rate to ten times as much, and back.
    schedule = torch.optim.lr_scheduler.CyclicLR(
        optimizer, options.rate / 10, options.rate * 10, step_size_up=max(steps // 4, 1), cycle_momentum=False,
        mode="triangular2",
    )  # fmt: skip
    for epoch in range(options.epochs):
        predictor.train()
        losses = []
        order = rng.permutation(len(data))
        for first in range(0, len(data), size):
            rows = order[first : first + size]
            # Batch norm has no deviation of a single row.
            if len(rows) < 2:
                rows = order[first - 1 : first + 1]
            batch = trained.batch(data, rows)
            predicted = predictor.decoder(latents(predictor, batch))[:, 0]
            loss = loss_of(options, predicted, wanted[rows])
            optimizer.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            torch.nn.utils.clip_grad_norm_(predictor.parameters(), 5.0)
            optimizer.step()
            schedule.step()
            losses.append(loss.item())
        tell(epoch, float(np.mean(losses)))
        if stop():
            break
    predictor.eval()
    return trained


def errors(
    predicted: Sequence[float] | npt.NDArray[np.float64], measured: npt.NDArray[np.float64]
) -> dict[str, float | None]:
    """Mean relative error, shares of rows within 5, 10 and 20 %, and the rank correlation of Spearman (None for fewer than three rows)."""
    from scipy import stats

    off = np.abs(np.asarray(predicted) / measured - 1)
    rank = float(stats.spearmanr(predicted, measured).statistic) if len(measured) > 2 else None
    return {
        "mean": float(off.mean()),
        "within_5": float((off <= 0.05).mean()),
        "within_10": float((off <= 0.10).mean()),
        "within_20": float((off <= 0.20).mean()),
        "rank": rank,
    }
