"""`ftuner torch-library`."""

from __future__ import annotations

import argparse
from typing import Any

_EPILOG = """\
examples:
  ftuner torch-library                             into the cache; prints its path
  ftuner torch-library -o lib/libftuner_torch.so   for a program with its own copy

docs/torch-export.md tells how a C++ program runs packages with it."""


def add_parser(commands: Any) -> None:
    parser: argparse.ArgumentParser = commands.add_parser(
        "torch-library",
        help="compile the library for packages of PyTorch without Python",
        description="Compiles libftuner_torch.so, which C++ programs load to run packages of "
        "AOTInductor with FTuner's functions, against the installed PyTorch, and prints its path. "
        "CXX names the compiler.",
        epilog=_EPILOG,
    )
    parser.add_argument("-o", "--output", metavar="FILE", help="write it there")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> None:
    from ..frontend.torch.hosts.cpp_library import build_library

    print(build_library(options.output, cache=options.output is None))
