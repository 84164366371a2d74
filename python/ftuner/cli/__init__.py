"""The command line `ftuner`: one file for each command."""

from __future__ import annotations

import argparse
import functools
import os
import sys
import warnings
from typing import Sequence

from .. import __version__, compiler, locations
from ..errors import CompileWarning, Error
from . import bench, caching, calibrating, compiling, device_table, explaining, running
from .common import UsageError

_COMMANDS = (compiling, running, explaining, bench, device_table, calibrating, caching)

_DESCRIPTION = """\
Compiles MLIR (linalg on tensors with dynamic sizes) to GPU kernels, runs and explains them."""

_EPILOG = """\
Options of the compiler may follow as --NAME=VALUE, such as --max-kernels=8 or --cost-model=sia;
ftuner-translate --help lists them. `ftuner COMMAND --help` has examples of each command."""


def make_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="ftuner",
        description=_DESCRIPTION,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"ftuner {__version__}")
    commands = parser.add_subparsers(
        dest="command",
        required=True,
        metavar="COMMAND",
        parser_class=functools.partial(
            argparse.ArgumentParser,
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
        ),
    )
    for command in _COMMANDS:
        command.add_parser(commands)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Runs a command; returns its exit code: 0, 1 for a failure, 2 for a wrong command line."""
    # The compiler's words are complete; the place in the package where they came up says nothing.
    warnings.showwarning = lambda message, *_: print(message, file=sys.stderr)
    warnings.simplefilter("always", CompileWarning)
    parser = make_parser()
    options, rest = parser.parse_known_args(argv)
    try:
        options.pipeline = _pipeline_options(parser, options, rest)
        return int(options.run(options) or 0)
    except UsageError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except (Error, TypeError, ValueError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except OSError as error:
        if isinstance(error, BrokenPipeError):  # The reader has seen enough.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return 1
        print(f"error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("error: interrupted", file=sys.stderr)
        return 130


def _pipeline_options(
    parser: argparse.ArgumentParser, options: argparse.Namespace, rest: Sequence[str]
) -> dict[str, str | bool]:
    """Options that are the compiler's: `--NAME=VALUE`, or `--NAME` for what is on or off."""
    pipeline: dict[str, str | bool] = {}
    for text in rest:
        name, equals, value = text.removeprefix("--").partition("=")
        if not text.startswith("--") or not getattr(options, "takes_pipeline_options", False):
            parser.error(f"unrecognized arguments: {text}")
        if name not in compiler.pipeline_options(locations.tool("ftuner-translate")):
            parser.error(f"unrecognized arguments: {text} (ftuner-translate --help lists options)")
        pipeline[name.replace("-", "_")] = value if equals else True
    return pipeline
