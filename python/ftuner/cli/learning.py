"""`ftuner learn`."""

from __future__ import annotations

import argparse
from typing import Any, Callable

from .. import outputs
from ..errors import Error
from ..progress import Progress
from ..tables import table
from . import tuning_predictors
from .common import UsageError, parse_pairs, print_json

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
        "(docs/program-trees.md). No search uses them yet.",
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
        help="folds of shapes, 0 to 9, to leave out and to judge by, with commas between",
    )
    train.add_argument(
        "--size",
        choices=("small", "paper"),
        default="small",
        help="of the network: 0.2 or 14 million numbers (default: %(default)s)",
    )
    train.add_argument(
        "--predictor-kind",
        choices=("cdmpp", "no-structure", "boosted-trees"),
        default="cdmpp",
        help="cdmpp reads trees; a network and boosted trees that read the mean of their statements are "
        "baselines (default: %(default)s)",
    )
    train.add_argument("--epochs", type=_number(1), default=100, help="default: %(default)s")
    train.add_argument(
        "--batch", type=_number(2), help="programs of a step (default: 128, or 600 for --size=paper)"
    )
    train.add_argument("--seed", type=_number(0), default=0, help="default: %(default)s")
    train.add_argument(
        "--loss",
        choices=("both", "squared", "relative", "squared-relative"),
        default="both",
        help="of transformed labels (default: %(default)s)",
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
        help="leave out the places of statements in their tree",
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
        "--by", choices=("device", "operator"), help="tell errors of each apart, beside those of all"
    )
    evaluate.add_argument(
        "--folds", default="", metavar="FOLDS", help="folds of shapes alone, 0 to 9 (default: all)"
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
        "paths", nargs="*", metavar="FILE|FOLDER", help="measurements: .csv or .jsonl (or .gz, .xz of these), or folders of them"
    )
    data.add_argument("-o", "--output", required=True, metavar="FILE", help="file to write")
    data.add_argument(
        "--device-files",
        action="append",
        default=[],
        metavar="FILE",
        help="description of a device that rows name (once for each)",
    )
    _add_devices(data)
    data.add_argument(
        "--sources", default="", metavar="NAMES", help="formats alone, with commas between (default: all)"
    )
    data.add_argument(
        "--rows", type=_number(1), default=0, metavar="N", help="at most so many of each file (default: all)"
    )
    data.add_argument(
        "--synthetic",
        type=_number(1),
        default=0,
        metavar="N",
        help="so many programs of this compiler besides, labelled by the latency model (default: none)",
    )
    data.add_argument("--seed", type=_number(0), default=0, help="of what is drawn (default: %(default)s)")
    data.add_argument("--json", action="store_true", help="print the table as JSON")
    data.set_defaults(run=_data)


def _add_rows(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "rows", nargs="+", metavar="ROWS", help="measurements (.csv, .csv.gz, .csv.xz), or a data set"
    )
    _add_devices(parser)


def _add_devices(parser: argparse.ArgumentParser) -> None:
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


def _number(least: int) -> Callable[[str], int]:
    def parse(text: str) -> int:
        if not (text.isascii() and text.isdecimal() and int(text) >= least):
            raise argparse.ArgumentTypeError(f"expected a whole number from {least} on, but got '{text}'")
        return int(text)

    return parse


def _folds(text: str, option: str) -> list[int]:
    try:
        folds = [int(word) for word in text.split(",") if word.strip()]
    except ValueError:
        folds = [-1]
    if any(not 0 <= fold <= 9 for fold in folds):
        raise UsageError(f"{option}: expected folds from 0 to 9, but got '{text}'")
    return folds


def _data(options: argparse.Namespace) -> None:
    try:
        import scipy  # noqa: F401
    except ImportError as error:
        raise Error("ftuner learn data needs SciPy: pip install 'ftuner[learned]'") from error
    from ..learned import sources

    if not options.paths and not options.synthetic:
        raise UsageError("expected files or folders of measurements, or --synthetic")
    if options.output == outputs.STANDARD:
        raise UsageError("--output: expected the name of a file, but got '-'")
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
        print_json({"rows": len(data), "tasks": tasks, "hash": digest, "counts": counts, "left_out": left_out})
        return
    columns = ["source", "device", "operator", "kind", "knowledge", "rows"]
    print(table([[row[name] for name in columns] for row in counts], columns))
    if left_out:
        print()
        print(table([[row["rows"], row["file"], row["why"]] for row in left_out], ["left out", "file", "why"]))
    print(f"\n{len(data)} rows of {tasks} tasks on {len(data.device_names)} devices, hash {digest[:16]}")


def _learned() -> Any:
    try:
        import scipy  # noqa: F401
        import sklearn  # noqa: F401
        import torch  # noqa: F401
    except ImportError as error:
        raise Error("ftuner learn needs PyTorch, SciPy and scikit-learn: pip install 'ftuner[learned]'") from error
    from .. import learned
    from ..learned import boosted, checkpoint, dataset, kinds, network, sampling, training  # noqa: F401

    return learned


def _rows_devices(options: argparse.Namespace) -> Any:
    from ..latency.rows import Devices

    return Devices(parse_pairs(options.map, "--map"), options.device)


def _read(options: argparse.Namespace) -> Any:
    return _learned().dataset.read(options.rows, _rows_devices(options))


def _report(options: argparse.Namespace, found: dict[str, dict[str, Any]]) -> None:
    if options.json:
        print_json(found)
        return

    def rank(value: float | None) -> str:
        return "-" if value is None else f"{value:.3f}"

    rows = [
        [
            name,
            str(int(of["programs"])),
            f"{of['mean']:.1%}",
            f"{of['rmse']:.4g}",
            *(f"{of[f'within_{share}']:.1%}" for share in (5, 10, 20)),
            rank(of["rank"]),
            rank(of["rank_by_task"]),
        ]
        for name, of in found.items()
    ]
    header = ["", "programs", "mean error", "RMSE, us", "within 5 %", "10 %", "20 %", "rank correlation", "of a task"]
    print(table(rows, header))


def _train(options: argparse.Namespace) -> None:
    import numpy as np

    held_out = _folds(options.hold_out, "--hold-out")
    if options.output == outputs.STANDARD:
        raise UsageError("--output: expected the name of a file, but got '-'")
    outputs.check_folder(options.output)
    learned = _learned()
    training, network = learned.training, learned.network
    data = _read(options)
    is_held = np.isin(data.fold % 10, held_out)
    known, unseen = data.select(~is_held), data.select(is_held)
    if held_out and not len(unseen):
        raise Error("--hold-out: expected folds that rows are in, but none are")
    is_small = options.size == "small"
    checkpoint = None
    if options.predictor_kind == "boosted-trees":
        with Progress(f"training on {len(known)} programs"):
            trained = learned.boosted.train(known, options.transform, options.correct, options.seed)
    else:
        settings = training.Options(
            epochs=options.epochs,
            batch=options.batch or (training.SMALL_BATCH if is_small else 600),
            seed=options.seed,
            loss=options.loss,
            transform=options.transform,
            positions=not options.no_positions,
            structure=options.predictor_kind == "cdmpp",
            corrects=options.correct,
            **({"rate": training.SMALL_RATE, "decay": training.SMALL_DECAY} if is_small else {}),
        )
        architecture = network.SMALL if is_small else network.Architecture()
        checkpoint = _checkpoint(options.output, [known], architecture, settings)
        with Progress(f"training on {len(known)} programs", options.epochs) as progress:
            trained = training.train(
                known, architecture, settings, tell=lambda epoch, loss: progress.advance(), checkpoint=checkpoint
            )
    found = {"trained on": _errors(training, trained, known)}
    if len(unseen):
        found["held out"] = _errors(training, trained, unseen)
        found["held out, by latency"] = _of_latency(training, unseen)
        trained.provenance = trained.provenance.validated(trained, unseen)
    trained.save(options.output)
    if checkpoint:
        checkpoint.remove()
    _report(options, found)


def _checkpoint(output: str, data: Any, *settings: Any) -> Any:
    checkpoint = _learned().checkpoint
    return checkpoint.Checkpoint(output + ".checkpoint", checkpoint.fingerprint(data, *settings))


def _errors(training: Any, trained: Any, data: Any) -> dict[str, float]:
    return {"programs": len(data), **training.errors(trained.predict(data), data.microseconds, data.task)}


def _of_latency(training: Any, data: Any) -> dict[str, float]:
    return {"programs": len(data), **training.errors(data.predicted, data.microseconds, data.task)}


def _evaluate(options: argparse.Namespace) -> None:
    import numpy as np

    folds = _folds(options.folds, "--folds")
    learned = _learned()
    predictors = [learned.kinds.load(path) for path in options.predictor]
    data = _read(options)
    if folds:
        data = data.select(np.isin(data.fold % 10, folds))
        if not len(data):
            raise Error("--folds: expected folds that rows are in, but none are")
    names = ["predictor"] if len(predictors) == 1 else options.predictor
    times = {name: one.predict(data) for name, one in zip(names, predictors)}
    if np.isfinite(data.predicted).all():
        times["latency"] = data.predicted
    found = {}
    for place, rows in {"": np.ones(len(data), bool), **_groups(data, options.by)}.items():
        for name, predicted in times.items():
            errors = learned.training.errors(predicted[rows], data.microseconds[rows], data.task[rows])
            found[f"{name}, {place}" if place else name] = {"programs": int(rows.sum()), **errors}
    _report(options, found)


def _groups(data: Any, by: str | None) -> dict[str, Any]:
    """Masks of the rows of each device or operator."""
    import numpy as np

    if by == "device":
        return {data.device_names[index]: data.device == index for index in np.unique(data.device)}
    if by == "operator":
        operators = np.asarray(data.operator).astype(str)
        return {str(name): operators == name for name in np.unique(operators)}
    return {}
