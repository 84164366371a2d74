"""`ftuner explain`."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

from ..describe import plotting, timeline
from ..describe.explanation import check_sizes, explain, explain_data
from ..host.progress import Progress
from .common import SIZES, UsageError, add_sizes, add_source, parse_shapes, print_json
from .replaying import add_timeline, check_options, write_files

# The number of timelines that a summary has a line for.
_MAX_TIMELINES = 6

_EPILOG = f"""\
{SIZES}

examples:
  ftuner explain examples/dense.mlir --size T=53
  ftuner explain examples/dense.mlir --size T=53 --workload dense_0
  ftuner explain examples/attention.mlir --size B=1,T=128 --size B=16
  ftuner explain examples/dense.mlir --device a100 --cost-model=sia --json
  ftuner explain examples/dense.mlir --plot dense.svg
  ftuner explain examples/attention.mlir --size B=1,T=128 --timeline attention.svg"""


def add_parser(commands: Any) -> None:
    parser: argparse.ArgumentParser = commands.add_parser(
        "explain",
        help="say why a size is served by its program",
        description="Says how long the functions of a source take, by prediction, which operators are the slowest, and "
        "which program serves each workload. With --workload or --all also which programs were rejected, and every "
        "term of their scores; one line for each of several shapes, and without --size for each size. With --size also "
        "when the launches of the functions run.",
        epilog=_EPILOG,
    )
    add_source(parser)
    add_sizes(parser, "sizes of the shape, and of further ones")
    detail = parser.add_mutually_exclusive_group()
    detail.add_argument(
        "--workload", metavar="NAME", help="print this workload in full, in place of the summary"
    )
    detail.add_argument(
        "--all", action="store_true", help="print everything in full, in place of the summary"
    )
    detail.add_argument(
        "--json", action="store_true", help="print JSON, which docs/explain.md describes"
    )
    parser.add_argument(
        "--plot",
        metavar="FIGURE.svg",
        help="draw predicted times over all sizes instead (.svg, .png or .pdf; Matplotlib)",
    )
    add_timeline(parser)
    parser.set_defaults(run=run)


def print_timelines(found: Sequence[timeline.Timeline], options: argparse.Namespace) -> None:
    """Prints the launches where they are asked for, else the kinds of one timeline, or a line for each."""
    if options.launches or options.all:
        for one in found:
            print("\n" + one.text(**({"most": None} if options.launches else {})))
    elif len(found) == 1:
        print("\n" + found[0].text(0))
    elif found:
        print("\n" + timeline.overview(found, _MAX_TIMELINES))


def run(options: argparse.Namespace) -> None:
    sizes = parse_shapes(options.size)
    source = options.source
    message = f"explaining {source.name}"
    if options.plot:
        if sizes or options.json or options.workload or options.all:
            raise UsageError(
                "option --plot: expected no --size, --json, --workload or --all, since it draws all sizes"
            )
        check_options(options, has_sizes=False)
        plotting.check_output(options.plot)
        with Progress(message):
            data = explain_data(source, device=options.device, **options.pipeline)
        for path in plotting.draw_plan(data, options.plot):
            print(path)
        return
    check_options(options, has_sizes=bool(sizes))
    with Progress(message):
        if options.json:
            data = explain_data(source, sizes, device=options.device, **options.pipeline)
            check_sizes(data)
        else:
            explanation = explain(
                source,
                sizes,
                device=options.device,
                workload=options.workload,
                full=options.all,
                **options.pipeline,
            )
            data = explanation.data
    found: list[timeline.Timeline] = []
    if sizes and data["functions"] is not None:
        found = timeline.timelines(data, options.streams, options.gap, options.launch_interval)
    write_files(options, found)
    if options.json:
        print_json({**data, "timelines": [one.as_json() for one in found]} if sizes else data)
    else:
        print(explanation.text, end="")
        if not options.workload:
            print_timelines(found, options)
