"""Options of commands that replay the launches of a model."""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence

from ..describe import plotting, timeline
from ..errors import Error
from ..host import outputs
from .common import UsageError


def add_timeline(parser: argparse.ArgumentParser) -> None:
    """Adds options for the replay of launches and for files of the result."""
    parser.add_argument(
        "--streams",
        type=_parse_streams,
        metavar="N",
        help="over how many streams the launches are replayed (default: 1)",
    )
    parser.add_argument(
        "--gap",
        type=_parse_microseconds,
        metavar="MICROSECONDS",
        help="between the kernels of a stream (default: 0, as in a graph of CUDA)",
    )
    parser.add_argument(
        "--launch-interval",
        type=_parse_microseconds,
        metavar="MICROSECONDS",
        help="that the host takes to issue a kernel, which starts no sooner (default: 0, as in a graph of CUDA)",
    )
    parser.add_argument(
        "--launches", action="store_true", help="list all launches, however many there are"
    )
    parser.add_argument(
        "--timeline",
        metavar="FIGURE.svg",
        help="draw when each launch runs (.svg, .png or .pdf; Matplotlib)",
    )
    parser.add_argument(
        "--trace",
        metavar="FILE.json",
        help="write when each launch runs, for chrome://tracing and ui.perfetto.dev",
    )


def _parse_streams(text: str) -> int:
    try:
        streams = int(text)
    except ValueError:
        streams = 0
    if not 1 <= streams <= 1024:
        raise argparse.ArgumentTypeError(f"expected a number from 1 to 1024, but got '{text}'")
    return streams


def _parse_microseconds(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 <= value <= timeline.MAX_GAP:
        raise argparse.ArgumentTypeError(
            f"expected microseconds from 0 to {timeline.MAX_GAP:.0f}, but got '{text}'"
        )
    return value


def check_options(options: argparse.Namespace, has_sizes: bool = True) -> None:
    """Fills in the defaults, and refuses options without sizes, and files that cannot be written, before anything is planned."""
    for name in ("streams", "gap", "launch-interval", "launches", "timeline", "trace"):
        value = getattr(options, name.replace("-", "_"))
        if not has_sizes and value is not None and value is not False:
            raise UsageError(f"option --{name}: expected --size, at which launches are replayed")
    options.streams = 1 if options.streams is None else options.streams
    options.gap = 0.0 if options.gap is None else options.gap
    options.launch_interval = 0.0 if options.launch_interval is None else options.launch_interval
    for name in ("timeline", "trace"):
        path = getattr(options, name)
        if path is None:
            continue
        if path == outputs.STANDARD:
            raise UsageError(f"option --{name}: expected the name of a file, but got '{path}'")
        if name == "timeline":
            plotting.check_output(path)
        outputs.check_folder(path)
    if options.timeline and options.trace:
        if outputs.target_of(options.timeline) == outputs.target_of(options.trace):
            raise UsageError(
                f"option --trace: expected another file than --timeline, but got '{options.trace}'"
            )
    if options.timeline:
        plotting.load_matplotlib()


def write_files(options: argparse.Namespace, found: Sequence[timeline.Timeline]) -> None:
    """Writes the figure and the trace that were asked for."""
    if not found and (options.timeline or options.trace):
        raise Error("there is no timeline: the module has no lowering to launches")
    contents = {}
    if options.timeline:
        contents[options.timeline] = timeline.drawn(found, options.timeline)
    if options.trace:
        contents[options.trace] = timeline.trace_text(found).encode("utf-8")
    outputs.write(contents)
