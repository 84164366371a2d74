"""`ftuner check-gpu`."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from typing import Any

from .. import compiler
from ..proof import check
from ..proof.verdicts import Outcome
from .common import UsageError, print_json

_EPILOG = """\
examples:
  ftuner check-gpu                    all codegen paths that the first GPU runs
  ftuner check-gpu --gpu 1 --json
  ftuner check-gpu --paths wgmma      one path; verdicts on others stay
  ftuner check-gpu --paths wgmma.fit_boxes   what is behind one gate of a path

What is behind a gate joins what is compiled for the card (--paths=auto) once all of its families
have passed; a path or a gate with a family that failed is left out. docs/check-gpu.md tells
more."""


def add_parser(commands: Any) -> None:
    parser: argparse.ArgumentParser = commands.add_parser(
        "check-gpu",
        help="prove the codegen paths on the GPU of this machine",
        description="Runs a fixed set of kernels of every codegen path on a GPU of this machine, "
        "compares them with the CPU's numbers, and keeps the verdict.",
        epilog=_EPILOG,
    )
    parser.add_argument(
        "--gpu", type=int, default=0, metavar="INDEX", help="which GPU (default: 0)"
    )
    parser.add_argument("--paths", help="only these codegen paths and gates, with commas between")
    parser.add_argument(
        "--timeout",
        type=float,
        default=check.SECONDS_OF_FAMILY,
        metavar="SECONDS",
        help="for one family of kernels; one that takes longer hangs (default: %(default)g)",
    )
    parser.add_argument("--json", action="store_true", help="print the verdict as JSON")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    if not options.timeout > 0:
        raise UsageError(f"option --timeout: expected seconds above 0, but got {options.timeout:g}")
    paths = None if options.paths is None else options.paths.split(",")
    report = check.check_and_keep(options.gpu, paths, compiler.build_family, options.timeout)
    if options.json:
        print_json(
            {
                "card": asdict(report.card),
                "paths": {path: asdict(verdict) for path, verdict in report.paths.items()},
                "families": [asdict(outcome) for outcome in report.outcomes],
                "file": str(report.file),
            }
        )
    else:
        _print(report)
    return 0 if all(verdict.passed for verdict in report.paths.values()) else 1


def _print(report: check.Report) -> None:
    print(report.card)
    for path, verdict in report.paths.items():
        own = [outcome for outcome in report.outcomes if outcome.path == path]
        passed = sum(outcome.status == "passed" for outcome in own)
        print(f"{path}: {passed} of {len(own)} families passed")
        for outcome in own:
            print(f"  {_line(outcome)}")
        if not verdict.passed:
            print(f"{path}: FAILED: {verdict}")
    print(report.file)


def _line(outcome: Outcome) -> str:
    if outcome.status == "passed":
        return f"{outcome.name}: passed, relative error {outcome.error:.2g}"
    words = f": {outcome.words}" if outcome.words else ""
    return f"{outcome.name}: {outcome.status.upper()}{words}"
