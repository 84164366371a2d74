"""Options and tables that the actions of `ftuner learn` share."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from typing import Any

from ..describe.tables import table
from ..errors import Error
from .common import UsageError, parse_pairs, print_json


def add_devices(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--device", metavar="NAME|FILE", help="the rows' device where no column says it"
    )
    parser.add_argument(
        "--map",
        action="append",
        default=[],
        metavar="[FILE:]NAME=DEVICE",
        help="what the rows (of that file) call NAME is this device",
    )


def number_from(minimum: int) -> Callable[[str], int]:
    def parse(text: str) -> int:
        if not (text.isascii() and text.isdecimal() and int(text) >= minimum):
            raise argparse.ArgumentTypeError(
                f"expected a whole number from {minimum} on, but got '{text}'"
            )
        return int(text)

    return parse


def parse_folds(text: str, option: str) -> list[int]:
    try:
        folds = [int(word) for word in text.split(",") if word.strip()]
    except ValueError:
        folds = [-1]
    if any(not 0 <= fold <= 9 for fold in folds):
        raise UsageError(f"{option}: expected folds from 0 to 9, but got '{text}'")
    return folds


def in_folds(data: Any, folds: Sequence[int], option: str) -> Any:
    """A mask of the rows in these folds. Raises `Error` for a fold that no row is in."""
    import numpy as np

    tenth = data.fold % 10
    present = np.unique(tenth).tolist()
    if absent := [fold for fold in folds if fold not in present]:
        expected, got = (", ".join(map(str, some)) for some in (present, absent))
        raise Error(f"{option}: expected folds that rows are in ({expected}), but got {got}")
    return np.isin(tenth, folds)


def import_learned() -> Any:
    """The package `ftuner.learned` with its modules."""
    try:
        import scipy  # noqa: F401
        import sklearn  # noqa: F401

        import torch  # noqa: F401
    except ImportError as error:
        raise Error(
            "ftuner learn needs PyTorch, SciPy and scikit-learn: pip install 'ftuner[learned]'"
        ) from error
    from .. import learned
    from ..learned import boosted, checkpoint, dataset, kinds, network, sampling, training, transfer  # noqa: F401

    return learned


def devices_of_rows(options: argparse.Namespace) -> Any:
    from ..latency.measurements.rows import Devices

    return Devices(parse_pairs(options.map, "--map"), options.device)


def read_rows(paths: Sequence[str], devices: Any, is_timed: bool = True) -> Any:
    """Reads files as one data set. Says on stderr how many of its times are not measured."""
    dataset = import_learned().dataset
    data = dataset.read(paths, devices, is_timed)
    if is_timed and (synthetic := int((data.kind == dataset.SYNTHETIC).sum())):
        print(
            f"{synthetic} of {len(data)} rows are synthetic: their times are predictions of the latency model",
            file=sys.stderr,
        )
    return data


def checkpoint_beside(output: str, data: Sequence[Any], *settings: Any) -> Any:
    """Returns the checkpoint of a training beside its output; each place of `data` is a role of programs."""
    checkpoint = import_learned().checkpoint
    return checkpoint.Checkpoint(output + ".checkpoint", checkpoint.fingerprint(data, *settings))


def errors_of(predicted: Any, data: Any) -> dict[str, Any]:
    """Errors of predictions, and of how many programs."""
    errors = import_learned().training.errors(predicted, data.microseconds, data.task)
    return {"programs": len(data), **errors}


def errors_of_latency(data: Any) -> dict[str, Any] | None:
    """Errors of the latency model on the programs that it predicts; None where it predicts none."""
    import numpy as np

    known = data.select(np.isfinite(data.predicted))
    return errors_of(known.predicted, known) if len(known) else None


def print_errors(options: argparse.Namespace, found: dict[str, dict[str, Any]]) -> None:
    if options.json:
        print_json(found)
        return

    def rank(value: float | None) -> str:
        return "-" if value is None else f"{value:.3f}"

    rows = [
        [
            name,
            str(int(errors["programs"])),
            f"{errors['mean']:.1%}",
            f"{errors['rmse']:.4g}",
            *(f"{errors[f'within_{share}']:.1%}" for share in (5, 10, 20)),
            rank(errors["rank"]),
            rank(errors["rank_by_task"]),
        ]
        for name, errors in found.items()
    ]
    header = [
        "",
        "programs",
        "mean error",
        "RMSE, us",
        "within 5 %",
        "10 %",
        "20 %",
        "rank correlation",
        "of a task",
    ]
    print(table(rows, header))
