"""`ftuner trees`."""

from __future__ import annotations

import argparse
from typing import Any

from ..host.progress import Progress
from ..study.trees import trees_data, trees_text
from .common import SIZES, UsageError, add_sizes, add_source, parse_shapes, print_json

_EPILOG = f"""\
{SIZES}

examples:
  ftuner trees examples/dense.mlir --size T=53
  ftuner trees examples/attention.mlir --device a100 --size B=1,T=128 --json --features"""


def add_parser(commands: Any) -> None:
    parser: argparse.ArgumentParser = commands.add_parser(
        "trees",
        help="show the loops and statements of each launch",
        description="Shows each launch of a model as the tree of loops and statements that learned "
        "cost models read, uKernels and fallback kernels alike.",
        epilog=_EPILOG,
    )
    add_source(parser)
    add_sizes(parser, "dynamic sizes, and those of further calls")
    parser.add_argument("--json", action="store_true", help="docs/program-trees.md describes it")
    parser.add_argument(
        "--features", action="store_true", help="with --json: the numbers of each statement, too"
    )
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> None:
    if options.features and not options.json:
        raise UsageError("option --features: expected --json beside it")
    sizes = parse_shapes(options.size)
    with Progress(f"describing {options.source.name}"):
        if options.json:
            data = trees_data(
                options.source,
                sizes,
                device=options.device,
                has_features=options.features,
                **options.pipeline,
            )
        else:
            text = trees_text(options.source, sizes, device=options.device, **options.pipeline)
    if options.json:
        print_json(data)
    else:
        print(text, end="")
