"""`ftuner explain`."""

from __future__ import annotations

import argparse
from typing import Any

from ..describe import plotting, timeline
from ..describe.explanation import check_sizes, explain, explain_data
from ..host.progress import Progress
from .common import SIZES, UsageError, add_sizes, add_source, parse_shapes, print_json
from .replaying import add_timeline, check_options, write_files

_EPILOG = f"""\
{SIZES}

examples:
  ftuner explain examples/dense.mlir --size T=53
  ftuner explain examples/attention.mlir --size B=1,T=128 --size B=16
  ftuner explain examples/dense.mlir --device a100 --cost-model=sia --json
  ftuner explain examples/dense.mlir --plot dense.svg
  ftuner explain examples/attention.mlir --size B=1,T=128 --timeline attention.svg"""


def add_parser(commands: Any) -> None:
    parser: argparse.ArgumentParser = commands.add_parser(
        "explain",
        help="say why a size is served by its program",
        description="Says which program serves a size, in which predicted time, which ones were "
        "rejected, and every term of their scores; one line for each of several shapes, and without "
        "--size for each size. With --size also when each launch of the functions runs.",
        epilog=_EPILOG,
    )
    add_source(parser)
    add_sizes(parser, "sizes of the shape, and of further ones")
    parser.add_argument("--json", action="store_true", help="docs/explain.md describes it")
    parser.add_argument(
        "--plot",
        metavar="FIGURE.svg",
        help="draw predicted times over all sizes instead (.svg, .png or .pdf; Matplotlib)",
    )
    add_timeline(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> None:
    sizes = parse_shapes(options.size)
    source = options.source
    message = f"explaining {source.name}"
    if options.plot:
        if sizes or options.json:
            raise UsageError("option --plot: expected no --size and no --json, since it draws all sizes")
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
            explanation = explain(source, sizes, device=options.device, **options.pipeline)
            data = explanation.data
    found: list[timeline.Timeline] = []
    if sizes and data["functions"] is not None:
        found = timeline.timelines(
            data, options.streams, options.gap, options.launch_interval
        )
    write_files(options, found)
    if options.json:
        print_json({**data, "timelines": [one.as_json() for one in found]} if sizes else data)
    else:
        print(explanation.text, end="")
        for one in found:
            print("\n" + one.text(**({"most": None} if options.launches else {})))
