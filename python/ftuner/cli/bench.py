"""`ftuner bench`."""

from __future__ import annotations

import argparse
import csv
import io
import statistics
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from ..describe import plotting
from ..describe.tables import table
from ..errors import Error
from ..host import outputs, runtime
from ..host.function import Function
from .common import (
    SIZES,
    Inputs,
    UsageError,
    add_function,
    add_sizes,
    add_source,
    check_size_names,
    choose_function,
    compile_for,
    has_standard_output,
    parse_shapes,
    print_json,
    to_executor,
    track,
    write_text,
)

_EPILOG = f"""\
{SIZES}

examples:
  ftuner bench examples/dense.mlir --size T=1..128:16
  ftuner bench model.mlir --executor cuda --device cuda --size T=1..128 --plot dense.png

Times are wall-clock seconds of a call: the median over --repeat rounds with the spread between
the quartiles. On a GPU a round is many calls and one wait for all of them. Times of the emulator
say nothing about a GPU."""

# Calls of one round on a GPU last about this long.
_ROUND_SECONDS = 0.02


def add_parser(commands: Any) -> None:
    parser: argparse.ArgumentParser = commands.add_parser(
        "bench",
        help="time a function over sizes",
        description="Times a function of a compiled library over sizes.",
        epilog=_EPILOG,
    )
    add_source(parser)
    add_function(parser)
    add_sizes(parser, "sizes to time")
    parser.add_argument("--repeat", type=int, default=5, help="rounds of each size (default: 5)")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument(
        "--csv", metavar="FILE", help="write a table; - for standard output, with nothing else"
    )
    parser.add_argument("--plot", metavar="FILE.png", help="draw time over the size (Matplotlib)")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> None:
    shapes = parse_shapes(options.size) or [{}]
    names = list(shapes[0])
    if options.repeat < 1:
        raise UsageError(f"option --repeat: expected at least 1, but got {options.repeat}")
    is_quiet = has_standard_output(options, "csv")
    if options.plot == outputs.STANDARD:
        raise UsageError("option --plot: expected the name of a file, but got '-'")
    plotter = plotting.load_matplotlib() if options.plot else None
    check_size_names(options.source, names)
    function = choose_function(compile_for(options), options.function)
    inputs = Inputs(function.signature, options.input, options.seed)
    rows = []
    for sizes in track(shapes, "timing"):
        args = to_executor(inputs.make(sizes), options)
        rows.append({**sizes, **_measure(function, args, options)})
    where = _where(options)
    if options.csv:
        write_text(options.csv, _format_csv(rows))
    if plotter:
        _plot(plotter, options.plot, rows, names, f"{function.signature.name} {where}")
    if is_quiet:
        return
    if options.json:
        gpu = runtime.get().device_name(options.gpu) if options.executor == "cuda" else None
        report = {"function": function.signature.name, "executor": options.executor, "gpu": gpu}
        print_json({**report, "rows": rows})
        return
    print(f"{function.signature} {where}")
    header = [*names, "microseconds", "first quartile", "third quartile", "calls"]
    print(
        table(
            [
                [
                    *(row[name] for name in names),
                    *(round(row[key], 2) for key in _TIMES),
                    row["calls"],
                ]
                for row in rows
            ],
            header,
        )
    )


_TIMES = ("microseconds", "first_quartile", "third_quartile")


def _where(options: argparse.Namespace) -> str:
    if options.executor == "emulator":
        return "in the CPU emulator"
    return f"on {runtime.get().device_name(options.gpu)}"


def _measure(
    function: Function, args: Sequence[Any], options: argparse.Namespace
) -> dict[str, Any]:
    """Microseconds of one call: median and quartiles of the rounds."""
    results = function(*args)
    wait: Callable[[], None] = lambda: None  # noqa: E731
    if options.executor == "cuda":
        wait = lambda: runtime.get().synchronize(0)  # noqa: E731
    wait()

    def seconds(calls: int) -> float:
        begin = time.perf_counter()
        for _ in range(calls):
            function(*args, out=results)
        wait()
        return time.perf_counter() - begin

    calls = 1
    if options.executor == "cuda":
        calls = max(1, min(10000, round(_ROUND_SECONDS / max(seconds(1), 1e-7))))
    rounds = [seconds(calls) / calls * 1e6 for _ in range(options.repeat)]
    quartiles = (
        statistics.quantiles(rounds, n=4, method="inclusive") if len(rounds) > 1 else rounds * 3
    )
    return {
        "microseconds": statistics.median(rounds),
        "first_quartile": quartiles[0],
        "third_quartile": quartiles[2],
        "calls": calls * options.repeat,
    }


def _format_csv(rows: Sequence[dict[str, Any]]) -> str:
    stream = io.StringIO()
    writer = csv.DictWriter(stream, list(rows[0]))
    writer.writeheader()
    writer.writerows(rows)
    return stream.getvalue()


def _plot(
    pyplot: Any, path: str, rows: Sequence[dict[str, Any]], names: list[str], title: str
) -> None:
    """Time over the first size, a line for each combination of the others."""
    if not names:
        raise UsageError("option --plot: expected a --size")
    figure, axes = pyplot.subplots(figsize=(7, 4), layout="constrained")
    groups: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for row in rows:
        groups.setdefault(tuple(row[name] for name in names[1:]), []).append(row)
    for key, group in groups.items():
        label = ", ".join(f"{name}={size}" for name, size in zip(names[1:], key))
        x = [row[names[0]] for row in group]
        axes.plot(x, [row["microseconds"] for row in group], marker=".", label=label or None)
        axes.fill_between(
            x,
            [row["first_quartile"] for row in group],
            [row["third_quartile"] for row in group],
            alpha=0.3,
        )
    axes.set_xlabel(names[0])
    axes.set_ylabel("microseconds")
    axes.set_ylim(bottom=0)
    axes.set_title(title)
    if len(groups) > 1:
        axes.legend()
    content = io.BytesIO()
    try:
        figure.savefig(content, format=Path(path).suffix[1:] or None)
    except ValueError as error:
        raise Error(f"cannot write '{path}': {error}") from error
    pyplot.close(figure)
    outputs.write({path: content.getvalue()})
