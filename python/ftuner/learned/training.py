"""Training, fine-tuning and evaluation of predictors (CDMPP, sections 5 and 6)."""

from __future__ import annotations

import copy
import dataclasses
import os
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

import torch
from torch import nn

from ..errors import Error
from ..latency.model import ProgramTree
from . import files
from .checkpoint import Checkpoint
from .dataset import Dataset, device_figures, require_predictions, targets
from .encoding import positional_encoding
from .labels import KINDS, Labels
from .moments import central_moment_discrepancy
from .network import Architecture, Predictor
from .provenance import Provenance

# Format of files of predictors.
FORMAT = "ftuner-predictor"
# Format of networks that read the mean of a tree's statements (`Trained.structure` is False).
FORMAT_NO_STRUCTURE = "ftuner-predictor-no-structure"
LOSSES = ("both", "squared", "relative", "squared-relative")


@dataclasses.dataclass(frozen=True)
class Options:
    """Options of training; the defaults are the paper's except for `epochs`."""

    epochs: int = 60
    batch: int = 600
    rate: float = 1.68e-5
    decay: float = 1.3e-3
    # Weight of the relative part of the loss.
    relative: float = 1e-3
    loss: str = "both"
    transform: str = "box-cox"
    positions: bool = True
    # Read statements, rather than their mean.
    structure: bool = True
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


# Settings for the small architecture, which learns from few programs.
SMALL_RATE = 6e-4
SMALL_DECAY = 1e-5
SMALL_BATCH = 128


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


class Packed:
    """All programs of a data set as tensors, of which batches are taken fast."""

    def __init__(self, groups: list[Group], device: torch.Tensor) -> None:
        """Groups with their trees in the order of programs."""
        self.device = device
        self.groups = groups
        self._counts = [
            np.bincount(group.program.numpy(), minlength=len(device)).astype(np.int64)
            for group in groups
        ]

    def batch(self, rows: npt.NDArray[np.int64]) -> Batch:
        groups = []
        for group, counts in zip(self.groups, self._counts):
            first = np.cumsum(counts) - counts
            tree_counts = counts[rows]
            ends = np.cumsum(tree_counts)
            trees = np.arange(int(tree_counts.sum())) + np.repeat(
                first[rows] - (ends - tree_counts), tree_counts
            )
            if len(trees):
                chosen = torch.from_numpy(trees)
                place = torch.from_numpy(np.repeat(np.arange(len(rows)), tree_counts))
                groups.append(Group(group.features[chosen], place, group.share[chosen]))
        return Batch(groups, self.device[torch.from_numpy(np.asarray(rows, np.int64))])


def latents(predictor: Predictor, batch: Batch) -> torch.Tensor:
    """z of each program: of several trees the mean, by their blocks."""
    result: torch.Tensor | None = None
    for group in batch.groups:
        features = group.features
        # Batch norm has no deviation of a single row.
        is_single = predictor.training and len(features) == 1
        z = predictor.program(features.repeat(2, 1, 1) if is_single else features)
        if is_single:
            z = z[:1]
        if result is None:
            result = z.new_zeros(len(batch.device), z.shape[1])
        result = result.index_add(0, group.program, z * group.share[:, None])
    assert result is not None
    # All programs at once, so that batch norm of devices' figures sees the whole batch.
    return predictor.combine(result, batch.device)


def loss_of(options: Options, predicted: torch.Tensor, wanted: torch.Tensor) -> torch.Tensor:
    """Returns the loss of transformed labels that `options.loss` names, a mean over the programs.

    squared           the square of the error
    relative          the error, without its sign, divided by the label
    squared-relative  the square of the error divided by the label
    both              squared + `options.relative` × relative
    """
    error = predicted - wanted
    divisor = wanted.abs().clamp(min=1e-3)  # Labels near zero would give huge quotients.
    if options.loss == "squared-relative":
        return ((error / divisor) ** 2).mean()
    squared = (error**2).mean()
    if options.loss == "squared":
        return squared
    relative = (error.abs() / divisor).mean()
    return relative if options.loss == "relative" else squared + options.relative * relative


@dataclasses.dataclass
class Trained:
    """A predictor with all that turns programs into microseconds."""

    predictor: Predictor
    labels: Labels
    # Means, which are subtracted, and deviations, which divide, of features and of devices' figures.
    feature_mean: npt.NDArray[np.float32]
    feature_deviation: npt.NDArray[np.float32]
    device_mean: npt.NDArray[np.float32]
    device_deviation: npt.NDArray[np.float32]
    positions: bool = True
    corrects: bool = False
    # True if the network reads statements rather than their mean.
    structure: bool = True
    # Facts that the compiler needs to trust the predictor; `save` needs them.
    provenance: Provenance | None = None

    def pack(self, data: Dataset) -> Packed:
        """Standardised features with positions, and standardised figures of devices."""
        groups: dict[int, tuple[list[ProgramTree], list[int], list[float]]] = {}
        for place, trees in enumerate(data.trees):
            blocks = sum(tree.blocks for tree in trees)
            for tree in trees:
                count = len(tree.ordering) if self.structure else 1
                group_trees, program, share = groups.setdefault(count, ([], [], []))
                group_trees.append(tree)
                program.append(place)
                share.append(tree.blocks / blocks)
        packed = []
        for _, (group_trees, program, share) in sorted(groups.items()):
            if self.structure:
                features = (
                    np.stack([tree.features for tree in group_trees]) - self.feature_mean
                ) / self.feature_deviation
                if self.positions:
                    places = np.stack([tree.ordering for tree in group_trees])
                    codes = positional_encoding(np.arange(places.max() + 1), features.shape[-1])
                    features += codes[places]
            else:
                means = np.stack([tree.features.mean(0, keepdims=True) for tree in group_trees])
                features = (means - self.feature_mean) / self.feature_deviation
            packed.append(
                Group(
                    torch.from_numpy(features.astype(np.float32, copy=False)),
                    torch.tensor(program),
                    torch.tensor(share, dtype=torch.float32),
                )
            )
        device = (data.device_vectors[data.device] - self.device_mean) / self.device_deviation
        return Packed(packed, torch.from_numpy(device.astype(np.float32)))

    def batch(self, data: Dataset, rows: npt.NDArray[np.int64]) -> Batch:
        some = dataclasses.replace(
            data, trees=[data.trees[row] for row in rows], device=data.device[rows]
        )
        return self.pack(some).batch(np.arange(len(rows)))

    def _check(self, data: Dataset) -> None:
        """Raises `Error` for trees of a size that was not trained."""
        known = {int(count) for count in self.predictor.heads}
        if self.structure and (unknown := set(data.statements()) - known):
            raise Error(
                f"expected programs of {', '.join(map(str, sorted(known)))} statements, but got {min(unknown)}"
            )

    def latents(self, data: Dataset, size: int = 2048) -> npt.NDArray[np.float32]:
        """z of each program: programs × latent numbers. Raises `Error` for trees of a size that was not trained."""
        self.predictor.eval()
        self._check(data)
        packed = self.pack(data)
        rows = np.arange(len(data))
        with torch.no_grad():
            parts = [
                latents(self.predictor, packed.batch(rows[i : i + size])).numpy()
                for i in range(0, len(data), size)
            ]
        return (
            np.concatenate(parts)
            if parts
            else np.empty((0, self.predictor.architecture.latent), np.float32)
        )

    def predict(self, data: Dataset, size: int = 2048) -> npt.NDArray[np.float64]:
        """Microseconds of each program. Raises `Error` for trees of a size that was not trained, and for what cannot be corrected."""
        if self.corrects:
            require_predictions(data)
        z = torch.from_numpy(self.latents(data, size))
        with torch.no_grad():
            parts = [
                self.predictor.decoder(z[i : i + size])[:, 0].numpy()
                for i in range(0, len(data), size)
            ]
        times = self.labels.backward(np.concatenate(parts) if parts else np.empty(0))
        if self.corrects and self.provenance is not None:
            times = self.provenance.bounded(times)
        return times * data.predicted if self.corrects else times

    def save(self, path: str) -> None:
        """Writes the predictor to a file, the compiler's too: a line of JSON, then its numbers as f32, little-endian."""
        if self.provenance is None:
            raise ValueError("expected a predictor that says what it was trained on")
        arrays: dict[str, npt.NDArray[Any]] = {
            "feature_mean": self.feature_mean,
            "feature_deviation": self.feature_deviation,
            "device_mean": self.device_mean,
            "device_deviation": self.device_deviation,
            **self.provenance.arrays(),
            "golden_values": self.golden_values(torch.float64),
        }
        for name, tensor in self.predictor.state_dict().items():
            if not name.endswith("num_batches_tracked"):
                arrays[name] = tensor.numpy()
        header = {
            "architecture": dataclasses.asdict(self.predictor.architecture),
            "statements": [int(count) for count in self.predictor.heads],
            "labels": self.labels.as_json(),
            "positions": self.positions,
            "corrects": self.corrects,
            "golden_error": self.golden_error(),
            **self.provenance.as_json(),
        }
        files.write(path, FORMAT if self.structure else FORMAT_NO_STRUCTURE, header, arrays)

    def golden_values(self, dtype: torch.dtype = torch.float32) -> npt.NDArray[np.float64]:
        """Predicts the golden programs, computed in a type: microseconds, or ratios to `latency`."""
        assert self.provenance is not None
        predictor = copy.deepcopy(self.predictor).eval().to(dtype)
        data = self.provenance.golden.dataset()
        batch = self.pack(data).batch(np.arange(len(data)))
        groups = [
            Group(group.features.to(dtype), group.program, group.share.to(dtype))
            for group in batch.groups
        ]
        with torch.no_grad():
            z = latents(predictor, Batch(groups, batch.device.to(dtype)))
            values = self.labels.backward(predictor.decoder(z)[:, 0].numpy())
        return self.provenance.bounded(values) if self.corrects else values

    def golden_error(self) -> float:
        """Most that a reader's golden rows may differ, as a share: 10⁻⁴, or more where f32 itself is less exact.

        Batch norm of a network that was hardly trained divides by next to nothing.
        """
        exact = self.golden_values(torch.float64)
        rounding = float(np.abs(self.golden_values() / exact - 1).max())
        return min(max(1e-4, 8 * rounding), 1e-2)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Trained:
        """Raises `Error` for other files."""
        header, arrays = files.read(path, (FORMAT, FORMAT_NO_STRUCTURE))
        try:
            sizes: dict[str, Any] = {
                name: tuple(value) if isinstance(value, list) else value
                for name, value in header["architecture"].items()
            }
            predictor = Predictor(Architecture(**sizes), header["statements"])
            mean, deviation = arrays.pop("feature_mean"), arrays.pop("feature_deviation")
            card_mean, card_deviation = arrays.pop("device_mean"), arrays.pop("device_deviation")
            arrays.pop("golden_values")
            provenance = Provenance.of_json(header, arrays)
            state = {name: torch.from_numpy(array) for name, array in arrays.items()}
            missing = predictor.load_state_dict(state, strict=False)
            if missing.unexpected_keys or any(
                not key.endswith("num_batches_tracked") for key in missing.missing_keys
            ):
                raise ValueError("expected the arrays of its architecture")
            labels = Labels.of_json(header["labels"])
            return cls(
                predictor, labels, mean, deviation, card_mean, card_deviation,
                bool(header["positions"]), bool(header["corrects"]), header["format"] == FORMAT, provenance,
            )  # fmt: skip
        except (ValueError, KeyError, TypeError, AttributeError, RuntimeError) as error:
            raise Error(f"'{path}' is no predictor: {error}") from error


def _standard(
    values: npt.NDArray[np.float32],
) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]:
    mean, deviation = values.mean(0), values.std(0)
    return mean.astype(np.float32), np.where(deviation > 1e-6, deviation, 1).astype(np.float32)


def train(
    data: Dataset,
    architecture: Architecture,
    options: Options,
    tell: Callable[[int, float], None] = lambda epoch, loss: None,
    stop: Callable[[], bool] = lambda: False,
    checkpoint: Checkpoint | None = None,
) -> Trained:
    """Trains a predictor; the same data, architecture and options give the same one on the same machine.

    `tell` is called with each epoch and its mean loss; `stop` may end training early. With a checkpoint, training goes on
    from what an interrupted call left there, and gives what that would have given.
    """
    if len(data) < 2:
        raise Error(f"expected two programs at least to train on, but got {len(data)}")
    learned = targets(data, options.corrects)
    torch.manual_seed(options.seed)
    rng = np.random.default_rng(options.seed)
    architecture = dataclasses.replace(architecture, device_figures=len(device_figures()))
    if not options.structure:
        architecture = dataclasses.replace(architecture, layers=0, width=architecture.features)
    predictor = Predictor(architecture, data.statements() if options.structure else [1])
    rows_of = np.concatenate(
        [
            tree.features if options.structure else tree.features.mean(0, keepdims=True)
            for trees in data.trees
            for tree in trees
        ]
    )
    labels = Labels.fit(learned, options.transform)
    # Devices that rows are of, each once.
    devices = data.device_vectors[np.unique(data.device)]
    trained = Trained(
        predictor, labels, *_standard(rows_of), *_standard(devices), options.positions, options.corrects,
        options.structure, Provenance.from_data(data, learned),
    )  # fmt: skip
    wanted = torch.from_numpy(labels.forward(learned).astype(np.float32))
    packed = trained.pack(data)
    optimizer = torch.optim.Adam(
        predictor.parameters(), lr=options.rate, weight_decay=options.decay
    )
    size = min(options.batch, len(data))
    steps = max(-(-len(data) // size) * options.epochs, 2)
    # The rate rises from a tenth of itself to ten times as much, and falls back.
    schedule = torch.optim.lr_scheduler.CyclicLR(
        optimizer, options.rate / 10, options.rate * 10, step_size_up=max(steps // 4, 1), cycle_momentum=False,
        mode="triangular2",
    )  # fmt: skip

    def epoch() -> float:
        losses = []
        order = rng.permutation(len(data))
        for first in range(0, len(data), size):
            rows = order[first : first + size]
            # Batch norm has no deviation of a single row.
            if len(rows) < 2:
                rows = order[first - 1 : first + 1]
            predicted = predictor.decoder(latents(predictor, packed.batch(rows)))[:, 0]
            losses.append(
                _step(predictor, optimizer, schedule, loss_of(options, predicted, wanted[rows]))
            )
        return float(np.mean(losses))

    _run(options.epochs, predictor, (optimizer, schedule), rng, epoch, tell, stop, checkpoint)
    _settle(predictor, packed)
    return trained


def _settle(predictor: Predictor, packed: Packed, size: int = 4096) -> None:
    """Takes batch norm's means and deviations of all programs with the last weights.

    Running ones are of weights that changed since, and for rare numbers of statements of a few programs at a time.
    """
    sums: dict[nn.BatchNorm1d, list[Any]] = {}

    def count(norm: Any, inputs: tuple[torch.Tensor]) -> None:
        rows = inputs[0].double()
        total = sums.setdefault(norm, [0, 0.0, 0.0])
        total[0] += len(rows)
        total[1] = total[1] + rows.sum(0)
        total[2] = total[2] + (rows**2).sum(0)

    hooks = []
    predictor.train()
    for module in predictor.modules():
        if isinstance(module, nn.BatchNorm1d):
            hooks.append(module.register_forward_pre_hook(count))
        elif isinstance(module, nn.Dropout):
            module.eval()
    rows = np.random.default_rng(0).permutation(len(packed.device))
    with torch.no_grad():
        for part in np.array_split(rows, -(-len(rows) // size)):
            predictor.decoder(latents(predictor, packed.batch(part)))
        for norm, (number, total, squares) in sums.items():
            assert norm.running_mean is not None and norm.running_var is not None
            norm.running_mean.copy_(total / number)
            norm.running_var.copy_((squares / number - (total / number) ** 2).clamp(min=0))
    for hook in hooks:
        hook.remove()
    predictor.eval()


def _step(predictor: Predictor, optimizer: Any, schedule: Any, loss: torch.Tensor) -> float:
    optimizer.zero_grad()
    loss.backward()  # type: ignore[no-untyped-call]
    torch.nn.utils.clip_grad_norm_(predictor.parameters(), 5.0)
    optimizer.step()
    schedule.step()
    return loss.item()


def _run(
    epochs: int,
    predictor: Predictor,
    states: Sequence[Any],
    rng: np.random.Generator,
    epoch: Callable[[], float],
    tell: Callable[[int, float], None],
    stop: Callable[[], bool],
    checkpoint: Checkpoint | None,
) -> None:
    """Epochs, from that on which the checkpoint stands."""
    first = checkpoint.restore(predictor, states, rng) if checkpoint else 0
    for done in range(first):
        tell(done, float("nan"))
    for number in range(first, epochs):
        predictor.train()
        loss = epoch()
        if checkpoint and number + 1 < epochs:
            checkpoint.keep(number + 1, predictor, states, rng)
        tell(number, loss)
        if stop():
            break
    predictor.eval()


@dataclasses.dataclass(frozen=True)
class Tuning:
    """Options of fine-tuning for programs or devices that were not trained on (section 5.2)."""

    epochs: int = 20
    # Programs of a step: of the source, and at most so many of the target.
    batch: int = 600
    target_batch: int = 2048
    rate: float = 1e-3
    decay: float = 1e-5
    # Weight of the central moment discrepancy.
    alpha: float = 1.0
    # Weight of the loss of labelled programs of the target, against that of the source.
    labelled: float = 1.0
    relative: float = 1e-3
    loss: str = "both"
    seed: int = 0

    def __post_init__(self) -> None:
        if self.epochs < 1 or self.batch < 2 or self.target_batch < 2:
            raise ValueError("expected an epoch and batches of two programs at least")
        if self.alpha < 0 or self.labelled < 0:
            raise ValueError("expected weights of at least 0")


def discrepancy(source: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    """CMD of latent vectors, rows × numbers each: of their tanh, after standardising both by the source's batch."""
    mean, deviation = source.mean(0), source.std(0, correction=0).clamp(min=1e-5)
    return central_moment_discrepancy(
        torch.tanh((source - mean) / deviation), torch.tanh((target - mean) / deviation), width=2.0
    )


def finetune(
    trained: Trained,
    source: Dataset,
    target: Dataset | None,
    labelled: Dataset | None,
    options: Tuning,
    tell: Callable[[int, float], None] = lambda epoch, loss: None,
    stop: Callable[[], bool] = lambda: False,
    checkpoint: Checkpoint | None = None,
) -> Trained:
    """A predictor tuned finely: what the source teaches is kept, while latent vectors of the target become like the source's.

    Only inputs are read of the target; times of `labelled` programs (sampled tasks of a new device) are learned. `trained` stays
    as it is. Raises `Error` for trees of a size that was not trained, and where there is nothing to tune for.
    """
    if len(source) < 2:
        raise Error(f"expected two programs of the source at least, but got {len(source)}")
    if not (target is not None and len(target)) and not (labelled is not None and len(labelled)):
        raise Error("expected programs of a target, or labelled ones")
    parts = [source, *(part for part in (target, labelled) if part is not None)]
    for part in parts:
        trained._check(part)
        if trained.corrects and part is not target:
            require_predictions(part)
    torch.manual_seed(options.seed)
    rng = np.random.default_rng(options.seed)
    tuned = copy.deepcopy(trained)
    predictor = tuned.predictor
    data = Dataset.concatenate(parts)
    packed = tuned.pack(data)
    first_labelled = len(source) + (len(target) if target is not None else 0)
    of_target = np.arange(len(source), first_labelled)
    of_labelled = np.arange(first_labelled, len(data))
    is_known = np.ones(len(data), bool)
    is_known[of_target] = False
    times = np.where(is_known, data.microseconds, 1.0)
    learned = times / np.where(is_known, data.predicted, 1.0) if tuned.corrects else times
    wanted = torch.from_numpy(tuned.labels.forward(learned).astype(np.float32))
    size = min(options.batch, len(source))
    steps = -(-len(source) // size) * options.epochs
    optimizer = torch.optim.Adam(
        predictor.parameters(), lr=options.rate, weight_decay=options.decay
    )
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, options.rate, total_steps=max(steps, 2) + 1
    )
    as_options = Options(relative=options.relative, loss=options.loss)

    def some(rows: npt.NDArray[np.int64], maximum: int) -> npt.NDArray[np.int64]:
        return rows if len(rows) <= maximum else np.sort(rng.choice(rows, maximum, replace=False))

    def epoch() -> float:
        losses = []
        order = rng.permutation(len(source))
        for begin in range(0, len(source), size):
            rows = order[begin : begin + size]
            if len(rows) < 2:
                rows = order[begin - 1 : begin + 1]
            unknown, known = some(of_target, options.target_batch), some(of_labelled, options.batch)
            # One batch, so that batch norm sees source and target alike.
            z = latents(predictor, packed.batch(np.concatenate([rows, unknown, known])))
            predicted = predictor.decoder(z)[:, 0]
            end = len(rows) + len(unknown)
            loss = loss_of(as_options, predicted[: len(rows)], wanted[rows])
            if len(known):
                loss = loss + options.labelled * loss_of(as_options, predicted[end:], wanted[known])
            if options.alpha and len(unknown) + len(known) > 1:
                loss = loss + options.alpha * discrepancy(z[: len(rows)], z[len(rows) :])
            losses.append(_step(predictor, optimizer, schedule, loss))
        return float(np.mean(losses))

    _run(options.epochs, predictor, (optimizer, schedule), rng, epoch, tell, stop, checkpoint)
    _settle(predictor, packed)
    if tuned.provenance is not None:
        if target is not None:
            tuned.provenance = tuned.provenance.adapted(target)
        if labelled is not None and len(labelled):
            tuned.provenance = tuned.provenance.extended(
                labelled, targets(labelled, tuned.corrects)
            )
    return tuned


def errors(
    predicted: Sequence[float] | npt.NDArray[np.float64],
    measured: npt.NDArray[np.float64],
    task: npt.NDArray[np.int64] | None = None,
) -> dict[str, float | None]:
    """Returns the errors of predictions.

    `mean` relative error (MAPE / 100), `rmse` in microseconds, shares of rows within 5, 10 and 20 %, and `rank`, the rank correlation
    of Spearman (None for fewer than three rows). With `task`, `rank_by_task`: its mean over tasks of three programs and more.
    """
    times = np.asarray(predicted, np.float64)
    error = np.abs(times / measured - 1)
    found: dict[str, float | None] = {
        "mean": float(error.mean()),
        "rmse": float(np.sqrt(((times - measured) ** 2).mean())),
        "within_5": float((error <= 0.05).mean()),
        "within_10": float((error <= 0.10).mean()),
        "within_20": float((error <= 0.20).mean()),
        "rank": rank_correlation(times, measured),
    }
    if task is not None:
        ranks = [
            rank_correlation(times[task == one], measured[task == one]) for one in _of_several(task)
        ]
        known = [rank for rank in ranks if rank is not None]
        found["rank_by_task"] = float(np.mean(known)) if known else None
    return found


def _of_several(task: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    tasks, counts = np.unique(task, return_counts=True)
    return tasks[counts > 2]


def rank_correlation(
    predicted: npt.NDArray[np.float64], measured: npt.NDArray[np.float64]
) -> float | None:
    """Returns Spearman's rank correlation; None for fewer than three rows, and where all are equal."""
    from scipy import stats

    if len(measured) < 3 or np.ptp(predicted) == 0 or np.ptp(measured) == 0:
        return None
    return float(stats.spearmanr(predicted, measured).statistic)
