"""The command line `ftuner`: one file for each command."""

from __future__ import annotations

import argparse
import io
import os
import re
import shutil
import signal
import sys
import textwrap
import threading
import warnings
from collections.abc import Iterable, Sequence
from typing import Any, NoReturn

from .. import __version__, compiler, locations
from ..describe.listing import DeclaredOption
from ..errors import CompileWarning, Error, did_you_mean
from ..host import processes
from . import (
    bench,
    caching,
    calibrating,
    checking,
    comparing,
    compiling,
    describing,
    device_table,
    explaining,
    iree_module,
    learning,
    predicting,
    running,
    torch_library,
)
from .common import UsageError, read_source

_COMMANDS = (
    compiling,
    running,
    explaining,
    predicting,
    comparing,
    describing,
    bench,
    iree_module,
    device_table,
    checking,
    calibrating,
    learning,
    torch_library,
    caching,
)

_DESCRIPTION = """\
Compiles MLIR (linalg on tensors with dynamic sizes) to GPU kernels, runs and explains them."""

_EPILOG = """\
Options of the compiler may follow, such as --max-kernels=8 or --cost-model sia; the help of each
command that compiles lists the basic ones, and --help-all lists all. Where a file is read or
written, - is standard input or output. `ftuner COMMAND --help` has examples of each command."""


class _Parser(argparse.ArgumentParser):
    """A command; its help ends with the compiler's options if it takes them."""

    def __init__(self, **options: Any) -> None:
        options.setdefault("formatter_class", argparse.RawDescriptionHelpFormatter)
        options.setdefault("allow_abbrev", False)
        super().__init__(**options)

    def error(self, message: str) -> NoReturn:
        """Ends the program; errors about options have the form that all have."""
        super().error(re.sub(r"^argument (?=-)", "option ", message))

    def format_help(self) -> str:
        epilog = self.epilog
        if self.get_default("takes_pipeline_options"):
            options = _describe_options(with_all=self.get_default("shows_all_options"))
            self.epilog = "\n\n".join(filter(None, (options, epilog)))
        try:
            return super().format_help()
        finally:
            self.epilog = epilog


def _describe_options(*, with_all: bool) -> str:
    """The compiler's options as argparse lists its own: the basic ones, and the others by group."""
    try:
        declared = compiler.declared_options(locations.tool("ftuner-translate"))
    except Error as error:  # Help works without a compiler, too.
        return f"options of the compiler: {error}"
    # The commands have the device themselves.
    listed = [
        option for option in declared if option.name != "device" and option.level != "testing"
    ]
    basic = [option for option in listed if option.level == "basic"]
    lines = ["options of the compiler:", *_describe(basic)]
    if not with_all:
        others = len(listed) - len(basic)
        return "\n".join([*lines, f"  --help-all lists {others} others, by group"])
    groups: dict[str, list[DeclaredOption]] = {}
    for option in listed:
        if option.level != "basic":
            groups.setdefault(option.group, []).append(option)
    for group in sorted(groups):
        lines += ["", f"{group}:", *_describe(groups[group])]
    return "\n".join(lines)


def _describe(options: Iterable[DeclaredOption]) -> list[str]:
    """Lines of a help text."""
    lines = []
    width = max(40, min(shutil.get_terminal_size().columns, 100) - 2)
    for option in options:
        value = "" if option.type == "switch" else f" {option.type.upper()}"
        lines.append(f"  --{option.name}{value}")
        lines += textwrap.wrap(
            option.help, width, initial_indent=" " * 8, subsequent_indent=" " * 8
        )
    return lines


class _PrintVersion(argparse.Action):
    """Prints FTuner's version, then that of the compiler's LLVM, and ends the program."""

    def __init__(self, option_strings: Sequence[str], dest: str, **options: Any) -> None:
        super().__init__(option_strings, dest, nargs=0, **options)

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        own = f"FTuner {__version__}\n"
        try:
            tool = locations.tool("ftuner-translate")
            compiler_version = processes.run([tool, "--version"]).stdout.decode()
        except (Error, OSError):  # A package without its programs has a version, too.
            compiler_version = ""
        print(own + compiler_version.removeprefix(own), end="")
        parser.exit()


def make_parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="ftuner", description=_DESCRIPTION, epilog=_EPILOG)
    parser.add_argument(
        "--version", action=_PrintVersion, help="print the versions of FTuner and LLVM, and exit"
    )
    commands = parser.add_subparsers(
        dest="command",
        required=True,
        metavar="COMMAND",
    )
    for command in _COMMANDS:
        command.add_parser(commands)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Runs a command; returns its exit code: 0, 1 for a failure, 2 for a wrong command line."""
    # The compiler's words are complete; the place in the package where they came up says nothing.
    warnings.showwarning = lambda message, *_: print(message, file=sys.stderr)
    warnings.simplefilter("always", CompileWarning)
    _heed_termination()
    if isinstance(sys.stdout, io.TextIOWrapper):  # Names of files may be anything.
        sys.stdout.reconfigure(errors="backslashreplace")
    parser = make_parser()
    try:
        options = _parse(parser, sys.argv[1:] if argv is None else list(argv))
        if getattr(options, "source", None) is not None:
            options.source = read_source(options.source, options.ranges, options.projections)
        return int(options.run(options) or 0)
    except UsageError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except (Error, TypeError, ValueError, ImportError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except OSError as error:
        if isinstance(error, BrokenPipeError):  # The reader has seen enough.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return 1
        print(f"error: {error}", file=sys.stderr)
        return 1
    except _Terminated as ending:
        print(f"error: ended by {ending.signal.name}", file=sys.stderr)
        return 128 + ending.signal
    except KeyboardInterrupt:
        print("error: interrupted", file=sys.stderr)
        return 128 + signal.SIGINT


class _Terminated(KeyboardInterrupt):
    """A signal that ends programs; like Ctrl-C, so that nothing half done stays."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.signal = signal.Signals(number)


def _heed_termination() -> None:
    """Makes an exception of signals that end programs at once, unless somebody handles them."""
    if threading.current_thread() is not threading.main_thread():
        return

    def end(number: int, _: Any) -> None:
        # A second one would end the removal of files.
        signal.signal(number, signal.SIG_IGN)
        raise _Terminated(number)

    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, end)


def _parse(parser: argparse.ArgumentParser, arguments: Sequence[str]) -> argparse.Namespace:
    """Returns the options; the compiler's options, unknown to the parser, are in `pipeline`."""
    end = arguments.index("--") if "--" in arguments else len(arguments)
    arguments, more = arguments[:end], arguments[end + 1 :]
    options, rest = parser.parse_known_args(arguments)
    if more and not getattr(options, "takes_more", False):
        parser.error(f"unrecognized arguments: {more[0]}")
    options.more = more
    takes_pipeline_options = getattr(options, "takes_pipeline_options", False)
    if takes_pipeline_options and any(text.startswith("--") and "=" not in text for text in rest):
        # The parser took the next argument for something else than a value.
        options, rest = parser.parse_known_args(_join_values(parser, arguments))
        options.more = more
    options.pipeline = {}
    for text in rest:
        name, equals, value = text.removeprefix("--").partition("=")
        declared: frozenset[str] = frozenset()
        if text.startswith("--") and takes_pipeline_options:
            declared = compiler.pipeline_options(locations.tool("ftuner-translate"))
        if name not in declared:
            known = [*_own_options(parser, options.command), *(f"--{one}" for one in declared)]
            parser.error(
                f"unrecognized arguments: {text}"
                + did_you_mean(f"--{name}" if text.startswith("--") else text, known)
                + f" (ftuner {options.command} --help lists options)"
            )
        options.pipeline[name.replace("-", "_")] = value if equals else True
    return options


def _own_options(parser: argparse.ArgumentParser, command: str) -> list[str]:
    """The options of a command that are not the compiler's."""
    (commands,) = (
        action.choices
        for action in parser._actions  # noqa: SLF001: argparse lists them nowhere else
        if isinstance(action, argparse._SubParsersAction)  # noqa: SLF001
    )
    return [text for action in commands[command]._actions for text in action.option_strings]


def _join_values(parser: argparse.ArgumentParser, arguments: Sequence[str]) -> list[str]:
    """Makes `--NAME VALUE` of the compiler's options `--NAME=VALUE`."""
    valued = compiler.valued_options(locations.tool("ftuner-translate")) - {"device"}
    joined: list[str] = []
    rest = iter(arguments)
    for text in rest:
        if text.startswith("--") and text[2:] in valued:
            value = next(rest, None)
            if value is None or value.startswith("--"):
                parser.error(f"option {text}: expected one value")
            text = f"{text}={value}"
        joined.append(text)
    return joined
