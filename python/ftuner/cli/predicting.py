"""`ftuner predict`."""

from __future__ import annotations

import argparse
from typing import Any

from ..describe import prediction, timeline
from ..host.progress import Progress
from .common import SIZES, UsageError, add_sizes, add_source, parse_shapes, print_json
from .replaying import add_timeline, check_options, write_files

_EPILOG = f"""\
{SIZES}

examples:
  ftuner predict bert.onnx --batch 8 --size T=128 --device a100
  ftuner predict examples/attention.mlir --batch 1 --size T=64,T=128 --device v100,a100,h100
  ftuner predict examples/dense.mlir --size T=53 --gap 3 --trace dense.json"""


def add_parser(commands: Any) -> None:
    parser: argparse.ArgumentParser = commands.add_parser(
        "predict",
        help="predict the latency of a model",
        description="Predicts how long a call of a model takes on a device, from the times of its launches: nothing is "
        "compiled or run, and no GPU is needed. Several devices or sizes give a table.",
        epilog=_EPILOG,
    )
    add_source(parser)
    parser.add_argument(
        "--batch",
        type=int,
        metavar="N",
        help="the size called batch, batch_size, B or N that is the first dimension of an argument, else the first dimension "
        "of the first tensor",
    )
    add_sizes(parser, "sizes of the model, and of further calls")
    parser.add_argument("--function", help="its name, where the source has several")
    parser.add_argument("--json", action="store_true", help="docs/replay.md describes it")
    add_timeline(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> None:
    check_options(options)
    devices = [None] if options.device is None else options.device.split(",")
    if len(set(devices)) < len(devices) or "" in devices:
        raise UsageError(f"option --device: expected different devices, but got '{options.device}'")
    shapes = parse_shapes(options.size) or [{}]
    found: list[timeline.Timeline] = []
    for device in devices:
        where = "" if device is None else f" on {device}"
        with Progress(f"predicting {options.source.name}{where}"):
            found += prediction.predict(
                options.source,
                shapes,
                batch=options.batch,
                device=device,
                function=options.function,
                streams=options.streams,
                gap=options.gap,
                launch_interval=options.launch_interval,
                **options.pipeline,
            )
    write_files(options, found)
    if options.json:
        print_json([one.as_json() for one in found])
    elif len(found) == 1:
        (one,) = found
        print(f"{timeline.milliseconds(one.latency)} ms predicted for {one.title}")
        print(one.text(None if options.launches else 0))
    else:
        print(timeline.overview(found))
        if options.launches:
            for one in found:
                print("\n" + one.text(None))
