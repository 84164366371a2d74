"""`ftuner learn`."""

from __future__ import annotations

import argparse
from typing import Any

from ..describe.tables import table
from ..errors import Error
from ..host import outputs
from ..host.progress import Progress
from . import tuning_predictors
from .common import UsageError, parse_pairs, print_json
from .learning_common import (
    add_devices,
    checkpoint_beside,
    devices_of_rows,
    errors_of,
    errors_of_latency,
    import_learned,
    in_folds,
    number_from,
    parse_folds,
    print_errors,
    read_rows,
)  # fmt: skip

_EPILOG = """\
examples:
  ftuner learn data measurements/ -o products.dataset
  ftuner learn train programs.csv -o h200.predictor
  ftuner learn train programs.csv --hold-out=0,1 --epochs=200 -o h200.predictor
  ftuner learn evaluate programs.csv --predictor=h200.predictor --folds=0,1 --by=device
  ftuner learn sample candidates.csv --tasks=50 -o tasks.csv
  ftuner learn finetune h200.predictor --source=programs.csv --tasks=measured.csv -o new.predictor

Rows are measured programs of this compiler (docs/calibration.md, FTuner rows), or
a data set that `ftuner learn data` has made (docs/learned-data.md)."""


def add_parser(commands: Any) -> None:
    parser: argparse.ArgumentParser = commands.add_parser(
        "learn",
        help="train predictors of times on measured programs, tune them finely, and evaluate them",
        description="Predictors that learn times of programs from their trees "
        "(docs/program-trees.md). The cost model `learned` takes them (docs/learned-model.md).",
        epilog=_EPILOG,
    )
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    _add_data(actions)
    train = actions.add_parser(
        "train",
        help="train a predictor",
        description="Trains a predictor on measured programs. What stands in FILE.checkpoint is where an "
        "interrupted training of the same rows and options goes on.",
    )
    _add_rows(train)
    train.add_argument("-o", "--output", required=True, metavar="FILE", help="file to write")
    train.add_argument(
        "--hold-out",
        default="",
        metavar="FOLDS",
        help="folds to leave out and to judge by, with commas between: 0 to 4, or what the rows' column 'fold' says",
    )
    train.add_argument(
        "--size",
        choices=("small", "paper"),
        help="of the network: 0.2 or 14 million numbers (default: small)",
    )
    train.add_argument(
        "--predictor-kind",
        choices=("cdmpp", "no-structure", "boosted-trees"),
        default="cdmpp",
        help="cdmpp reads trees; no-structure, a network that is a baseline, and boosted-trees read the mean of their "
        "statements (default: %(default)s)",
    )
    train.add_argument("--epochs", type=number_from(1), help="of networks (default: 100)")
    train.add_argument(
        "--batch",
        type=number_from(2),
        help="programs of a step of networks (default: 128, or 600 for --size=paper)",
    )
    train.add_argument("--seed", type=number_from(0), default=0, help="default: %(default)s")
    train.add_argument(
        "--loss",
        choices=("both", "squared", "relative", "squared-relative"),
        help="of networks, on transformed labels (default: both)",
    )
    train.add_argument(
        "--transform",
        choices=("box-cox", "yeo-johnson", "quantile", "none"),
        default="box-cox",
        help="of labels (default: %(default)s)",
    )
    train.add_argument(
        "--no-positions",
        action="store_true",
        help="leave out the places of statements in their tree, which cdmpp reads",
    )
    train.add_argument(
        "--correct",
        action="store_true",
        help="learn how far the latency model is off, rather than times",
    )
    train.add_argument("--json", action="store_true", help="print the errors as JSON")
    train.set_defaults(run=_train)
    tuning_predictors.add_actions(actions)
    evaluate = actions.add_parser(
        "evaluate",
        help="compare a predictor with measurements",
        description="Compares predictions with measured times, beside those of the latency model.",
    )
    _add_rows(evaluate)
    evaluate.add_argument(
        "--predictor",
        required=True,
        action="append",
        metavar="FILE",
        help="what `train` or `finetune` wrote; several are compared",
    )
    evaluate.add_argument(
        "--by",
        choices=("device", "operator"),
        help="tell errors of each apart, beside those of all",
    )
    evaluate.add_argument(
        "--folds",
        default="",
        metavar="FOLDS",
        help="folds alone, as of `train --hold-out` (default: all)",
    )
    evaluate.add_argument("--json", action="store_true", help="print the errors as JSON")
    evaluate.set_defaults(run=_evaluate)


def _add_data(actions: Any) -> None:
    data = actions.add_parser(
        "data",
        help="make a data set of measurements of many kinds",
        description="Makes one data set of files of measurements, told by their columns: each row's kernel as a "
        "tree, its device and its time.",
    )
    data.add_argument(
        "paths",
        nargs="*",
        metavar="FILE|FOLDER",
        help="measurements: .csv or .jsonl (or .gz, .xz of these), or folders of them",
    )
    data.add_argument("-o", "--output", required=True, metavar="FILE", help="file to write")
    data.add_argument(
        "--device-files",
        action="append",
        default=[],
        metavar="FILE",
        help="description of a device that rows name (once for each)",
    )
    add_devices(data)
    data.add_argument(
        "--sources",
        default="",
        metavar="NAMES",
        help="formats alone, with commas between (default: all)",
    )
    data.add_argument(
        "--rows",
        type=number_from(1),
        default=0,
        metavar="N",
        help="at most so many of each file (default: all)",
    )
    data.add_argument(
        "--synthetic",
        type=number_from(1),
        default=0,
        metavar="N",
        help="so many programs of this compiler besides, labelled by the latency model (default: none)",
    )
    data.add_argument(
        "--seed", type=number_from(0), default=0, help="of what is drawn (default: %(default)s)"
    )
    data.add_argument("--json", action="store_true", help="print the table as JSON")
    data.set_defaults(run=_data)


def _add_rows(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "rows",
        nargs="+",
        metavar="ROWS",
        help="measurements (.csv, .csv.gz, .csv.xz), or a data set",
    )
    add_devices(parser)


def _data(options: argparse.Namespace) -> None:
    try:
        import scipy  # noqa: F401
    except ImportError as error:
        raise Error("ftuner learn data needs SciPy: pip install 'ftuner[learned]'") from error
    from ..learned import sources

    if not options.paths and not options.synthetic:
        raise UsageError("expected files or folders of measurements, or --synthetic")
    if options.output == outputs.STANDARD:
        raise UsageError("option --output: expected the name of a file, but got '-'")
    outputs.check_folder(options.output)
    names = [name.strip() for name in options.sources.split(",") if name.strip()]
    with Progress("reading measurements"):
        data, files = sources.gather(
            options.paths,
            parse_pairs(options.map, "--map"),
            options.device,
            options.device_files,
            names,
            options.rows,
            options.seed,
            options.synthetic,
            tell=Progress.begin_stage,
        )
        Progress.begin_stage(f"writing {len(data)} rows")
        digest = data.save(options.output)
    counts, tasks = sources.counts(data), len(set(data.task.tolist()))
    left_out = [
        dict(file=file.path, source=file.source, why=why, rows=rows)
        for file in files
        for why, rows in file.found.left_out.items()
    ]
    if options.json:
        print_json(
            {
                "rows": len(data),
                "tasks": tasks,
                "hash": digest,
                "counts": counts,
                "left_out": left_out,
            }
        )
        return
    columns = ["source", "device", "operator", "kind", "knowledge", "rows"]
    print(table([[row[name] for name in columns] for row in counts], columns))
    if left_out:
        print()
        print(
            table(
                [[row["rows"], row["file"], row["why"]] for row in left_out],
                ["left out", "file", "why"],
            )
        )
    print(
        f"\n{len(data)} rows of {tasks} tasks on {len(data.device_names)} devices, hash {digest[:16]}"
    )


# Options of `train` that only networks use: boosted trees refuse them.
_NETWORK_OPTIONS = ("size", "epochs", "batch", "loss")


def _check_kind(options: argparse.Namespace) -> None:
    """Raises `UsageError` for options that would have no effect."""
    kind = options.predictor_kind
    given = [
        f"--{name}"
        for name in _NETWORK_OPTIONS
        if kind == "boosted-trees" and getattr(options, name) is not None
    ]
    if options.no_positions and kind != "cdmpp":
        given.append("--no-positions")
    if given:
        raise UsageError(
            f"option {given[0]}: expected another --predictor-kind, since it has no effect on '{kind}'"
        )


def _training_options(options: argparse.Namespace) -> Any:
    """Returns the options for training a network, with the defaults for its size."""
    training = import_learned().training
    is_small = options.size != "paper"
    return training.Options(
        epochs=options.epochs or 100,
        batch=options.batch or (training.SMALL_BATCH if is_small else 600),
        seed=options.seed,
        loss=options.loss or "both",
        transform=options.transform,
        positions=not options.no_positions,
        structure=options.predictor_kind == "cdmpp",
        corrects=options.correct,
        **({"rate": training.SMALL_RATE, "decay": training.SMALL_DECAY} if is_small else {}),
    )


def _train(options: argparse.Namespace) -> None:
    """Trains a predictor on the rows that are not held out, saves it and prints its errors."""
    held_out_folds = parse_folds(options.hold_out, "--hold-out")
    _check_kind(options)
    if options.output == outputs.STANDARD:
        raise UsageError("option --output: expected the name of a file, but got '-'")
    outputs.check_folder(options.output)
    learned = import_learned()
    data = read_rows(options.rows, devices_of_rows(options))
    is_held_out = in_folds(data, held_out_folds, "--hold-out")
    if options.correct:
        learned.dataset.require_predictions(data)
    known, unseen = data.select(~is_held_out), data.select(is_held_out)
    checkpoint = None
    if options.predictor_kind == "boosted-trees":
        with Progress(f"training on {len(known)} programs"):
            trained = learned.boosted.train(known, options.transform, options.correct, options.seed)
    else:
        network = learned.network
        architecture = network.Architecture() if options.size == "paper" else network.SMALL
        settings = _training_options(options)
        checkpoint = checkpoint_beside(options.output, [known], architecture, settings)
        with Progress(f"training on {len(known)} programs", settings.epochs) as progress:
            trained = learned.training.train(
                known,
                architecture,
                settings,
                tell=lambda epoch, loss: progress.advance(),
                checkpoint=checkpoint,
            )
    errors = {"trained on": errors_of(trained.predict(known), known)}
    if len(unseen):
        errors["held out"] = errors_of(trained.predict(unseen), unseen)
        if latency_errors := errors_of_latency(unseen):
            errors["held out, by latency"] = latency_errors
        trained.provenance = trained.provenance.validated(trained, unseen)
    trained.save(options.output)
    # Only now: a run that ends before the predictor is saved goes on from its checkpoint.
    if checkpoint:
        checkpoint.remove()
    print_errors(options, errors)


def _evaluate(options: argparse.Namespace) -> None:
    import numpy as np

    folds = parse_folds(options.folds, "--folds")
    predictors = [import_learned().kinds.load(path) for path in options.predictor]
    data = read_rows(options.rows, devices_of_rows(options))
    if folds:
        data = data.select(in_folds(data, folds, "--folds"))
    names = ["predictor"] if len(predictors) == 1 else options.predictor
    times = {name: one.predict(data) for name, one in zip(names, predictors)}
    found = {}
    for place, rows in {"": np.ones(len(data), bool), **_groups(data, options.by)}.items():
        part = data.select(rows)
        errors = {name: errors_of(predicted[rows], part) for name, predicted in times.items()}
        if of_latency := errors_of_latency(part):
            errors["latency"] = of_latency
        found.update(
            {f"{name}, {place}" if place else name: error for name, error in errors.items()}
        )
    print_errors(options, found)


def _groups(data: Any, key: str | None) -> dict[str, Any]:
    """Masks of the rows of each device or operator."""
    import numpy as np

    if key == "device":
        return {data.device_names[index]: data.device == index for index in np.unique(data.device)}
    if key == "operator":
        operators = np.asarray(data.operator).astype(str)
        return {str(name): operators == name for name in np.unique(operators)}
    return {}
