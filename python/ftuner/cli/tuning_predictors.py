"""`ftuner learn finetune` and `ftuner learn sample`."""

from __future__ import annotations

import argparse
import csv
import io
from pathlib import Path
from typing import Any

from ..errors import Error
from ..host import outputs
from ..host.cache import file_checksum
from ..host.progress import Progress
from .common import UsageError
from .learning_common import (
    add_devices,
    checkpoint_beside,
    devices_of_rows,
    errors_of,
    import_learned,
    number_from,
    print_errors,
    read_rows,
)  # fmt: skip


def add_actions(actions: Any) -> None:
    _add_finetune(actions)
    _add_sample(actions)


def _add_finetune(actions: Any) -> None:
    parser = actions.add_parser(
        "finetune",
        help="tune a predictor finely for other programs or another device",
        description="Tunes a predictor finely. A network keeps what rows of the source teach, makes latent vectors of the target "
        "like theirs (central moment discrepancy), and learns times of --tasks. Boosted trees become the mean of trees on "
        "source and tasks, and of what they say of the devices of the source, combined as the tasks tell.",
    )
    parser.add_argument("predictor", metavar="PREDICTOR", help="what `train` wrote")
    parser.add_argument(
        "--source",
        required=True,
        action="append",
        dest="sources",
        metavar="ROWS.csv",
        help="measurements that it was trained on; repeats",
    )
    parser.add_argument(
        "--target",
        action="append",
        dest="targets",
        default=[],
        metavar="ROWS.csv",
        help="programs to predict: no time is read of them; repeats",
    )
    parser.add_argument(
        "--tasks",
        action="append",
        default=[],
        metavar="ROWS.csv",
        help="measurements of sampled tasks of the target; repeats",
    )
    parser.add_argument("-o", "--output", required=True, metavar="FILE", help="file to write")
    add_devices(parser)
    parser.add_argument(
        "--alpha", type=_weight, help="weight of the discrepancy, of networks (default: 1)"
    )
    parser.add_argument(
        "--epochs", type=number_from(1), help="over the source, of networks (default: 20)"
    )
    parser.add_argument(
        "--batch", type=number_from(2), help="programs of a step, of networks (default: 256)"
    )
    parser.add_argument("--seed", type=number_from(0), default=0, help="default: %(default)s")
    parser.add_argument("--json", action="store_true", help="print the errors as JSON")
    parser.set_defaults(run=_finetune)


def _add_sample(actions: Any) -> None:
    parser = actions.add_parser(
        "sample",
        help="choose tasks to measure on a device",
        description="Chooses tasks (shapes on a device) whose programs stand for all: those nearest to the centres of "
        "clusters. Prints their rows as CSV, and how far other programs are from them.",
    )
    parser.add_argument(
        "rows", metavar="ROWS.csv", help="programs, measured or not (or .csv.gz, .csv.xz)"
    )
    parser.add_argument("--tasks", type=number_from(1), default=50, help="default: %(default)s")
    parser.add_argument(
        "--by", choices=("latents", "features", "random"), default="features",
        help="what clusters are of: latent vectors of --predictor, standardised features; random: none (default: %(default)s)",
    )  # fmt: skip
    parser.add_argument("--predictor", metavar="FILE", help="what `train` wrote, for --by=latents")
    add_devices(parser)
    parser.add_argument("--seed", type=number_from(0), default=0, help="default: %(default)s")
    parser.add_argument(
        "-o",
        "--output",
        default=outputs.STANDARD,
        metavar="FILE",
        help="file to write (default: standard output)",
    )
    parser.set_defaults(run=_sample)


def _weight(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1
    if not 0 <= value < 1e9:
        raise argparse.ArgumentTypeError(f"expected a number from 0 on, but got '{text}'")
    return value


def _finetune(options: argparse.Namespace) -> None:
    if options.output == outputs.STANDARD:
        raise UsageError("option --output: expected the name of a file, but got '-'")
    if not options.targets and not options.tasks:
        raise UsageError("expected --target, --tasks, or both")
    outputs.check_folder(options.output)
    learned = import_learned()
    trained = learned.kinds.load(options.predictor)
    is_network = isinstance(trained, learned.training.Trained)
    if not is_network:
        _check_trees(options)
    devices = devices_of_rows(options)
    source = read_rows(options.sources, devices)
    target = read_rows(options.targets, devices, is_timed=False) if options.targets else None
    tasks = read_rows(options.tasks, devices) if options.tasks else None
    checkpoint = None
    if is_network:
        given = {
            name: getattr(options, name)
            for name in _OF_NETWORKS
            if getattr(options, name) is not None
        }
        settings = learned.training.Tuning(**{"batch": 256, "seed": options.seed, **given})
        checkpoint = checkpoint_beside(
            options.output,
            [source, target, tasks],
            settings,
            file_checksum(Path(options.predictor)),
        )
        with Progress(f"tuning on {len(source)} programs", settings.epochs) as progress:
            tuned = learned.training.finetune(
                trained,
                source,
                target,
                tasks,
                settings,
                tell=lambda epoch, loss: progress.advance(),
                checkpoint=checkpoint,
            )
    else:
        with Progress(f"tuning on {len(source)} programs"):
            tuned = learned.transfer.tune(trained, source, tasks, options.seed)
    found = {}
    for name, part in {"source": source, "tasks": tasks}.items():
        if part is not None:
            for when, predictor in (("before", trained), ("after", tuned)):
                found[f"{name}, {when}"] = errors_of(predictor.predict(part), part)
    tuned.save(options.output)
    if checkpoint:
        checkpoint.remove()
    print_errors(options, found)


# Options that only networks use.
_OF_NETWORKS = ("alpha", "epochs", "batch")


def _check_trees(options: argparse.Namespace) -> None:
    """Raises `UsageError` for options that would have no effect on boosted trees."""
    given = [f"--{name}" for name in _OF_NETWORKS if getattr(options, name) is not None]
    if options.targets:
        given.append("--target")
    if given:
        raise UsageError(
            f"option {given[0]}: expected a network, since it has no effect on the boosted trees of '{options.predictor}'"
        )


def _sample(options: argparse.Namespace) -> None:
    import sys

    import numpy as np

    if (options.by == "latents") != (options.predictor is not None):
        raise UsageError("expected --predictor with --by=latents, and with nothing else")
    outputs.check_folder(options.output)
    learned = import_learned()
    if options.output == outputs.STANDARD and learned.dataset.is_dataset(options.rows):
        raise UsageError("option --output: expected the name of a file for the rows of a data set")
    data = read_rows([options.rows], devices_of_rows(options), is_timed=False)
    count = len(set(data.task.tolist()))
    if options.tasks > count:
        raise Error(
            f"option --tasks: expected at most {count}, the tasks that there are, but got {options.tasks}"
        )
    if options.by == "latents":
        trained = learned.kinds.load(options.predictor)
        if not isinstance(trained, learned.training.Trained):
            raise Error(f"'{options.predictor}' has boosted trees, which have no latent vectors")
        rows = trained.latents(data)
    else:
        rows = learned.sampling.standard_features(data)
    with Progress(f"choosing of {count} tasks"):
        if options.by == "random":
            found = learned.sampling.random_tasks(rows, data.task, options.tasks, options.seed)
        else:
            found = learned.sampling.sample_tasks(rows, data.task, options.tasks, options.seed)
    chosen = np.isin(data.task, found.tasks)
    if learned.dataset.is_dataset(options.rows):
        data.select(chosen).save(options.output)
    else:
        outputs.write_one(options.output, _rows_of(options.rows, chosen))
    print(
        f"{len(found.tasks)} of {count} tasks, {int(chosen.sum())} of {len(data)} programs; "
        f"others are at most {found.radius:.4g} from one of them (the epsilon of the paper's bound)",
        file=sys.stderr,
    )


def _rows_of(path: str, chosen: Any) -> bytes:
    """Returns the chosen rows of a CSV file with its header."""
    import numpy as np

    from ..latency.measurements.table import Table

    table = Table(path)
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(list(table.columns))
    writer.writerows(
        [column[row] for column in table.columns.values()] for row in np.flatnonzero(chosen)
    )
    return text.getvalue().encode()
