"""`ftuner explain`."""

from __future__ import annotations

import argparse
from typing import Any

from ..explanation import explain
from .common import add_source, existing, parse_sizes, print_json, spinner

_EPILOG = """\
examples:
  ftuner explain examples/dense.mlir --size T=53
  ftuner explain examples/dense.mlir --device a100 --cost-model=sia --json"""


def add_parser(commands: Any) -> None:
    parser: argparse.ArgumentParser = commands.add_parser(
        "explain",
        help="say why a size is served by its program",
        description="Says which program serves a size, which ones were rejected, and every term of "
        "their scores; without --size, one line for each size.",
        epilog=_EPILOG,
    )
    add_source(parser)
    parser.add_argument(
        "--size", action="append", default=[], metavar="NAME=NUMBER", help="a size of the shape"
    )
    parser.add_argument("--json", action="store_true", help="docs/explain.md describes it")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> None:
    sizes = parse_sizes(options.size)
    with spinner(f"explaining {options.source}"):
        explanation = explain(
            existing(options.source), sizes, device=options.device, **options.pipeline
        )
    if options.json:
        print_json(explanation.data)
    else:
        print(explanation.text, end="")
