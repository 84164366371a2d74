"""`ftuner devices`."""

from __future__ import annotations

import argparse
import json
from typing import Any

from .. import outputs
from ..descriptions import devices, query_device
from .common import UsageError, print_json, table, write_text

_EPILOG = """\
examples:
  ftuner devices                         the built-in ones
  ftuner devices h200                    one of them as JSON
  ftuner devices --query -o my-gpu.json  describe the GPU of this machine"""


def add_parser(commands: Any) -> None:
    parser: argparse.ArgumentParser = commands.add_parser(
        "devices",
        help="list device descriptions, or describe the live GPU",
        description="Lists the built-in devices, shows one, or describes the GPU of this machine.",
        epilog=_EPILOG,
    )
    parser.add_argument("name", nargs="?", help="show this one as JSON")
    parser.add_argument(
        "--query",
        nargs="?",
        type=int,
        const=0,
        metavar="INDEX",
        help="describe a live GPU (the first, or that of the index) through its driver",
    )
    parser.add_argument("-o", "--output", help="write the description to a file, or to -")
    parser.add_argument("--json", action="store_true", help="all descriptions as JSON")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> None:
    if options.query is not None and options.name is not None:
        raise UsageError("expected a name or --query, but got both")
    if options.output and options.query is None and options.name is None:
        raise UsageError("option --output needs a name or --query")
    if options.query is None and options.name is None:
        known = devices()
        if options.json:
            print_json(known)
        else:
            print(_table(known))
        return
    if options.query is not None:
        description = query_device(options.query)
    else:
        known = devices()
        if options.name not in known:
            raise UsageError(f"expected one of {', '.join(known)}, but got '{options.name}'")
        description = known[options.name]
    if options.output:
        write_text(options.output, json.dumps(description, indent=2) + "\n")
        if options.output != outputs.STANDARD:
            print(options.output)
    else:
        print_json(description)


def _table(known: dict[str, dict[str, Any]]) -> str:
    header = ("name", "architecture", "capability", "SMs", "MHz", "f32 TFLOP/s", "DRAM GB/s", "W")
    fields = (
        "architecture",
        "compute_capability",
        "sm_count",
        "clock_mhz",
        "fp32_tflops",
        "dram_gbps",
        "board_power_watts",
    )
    rows = [(name, *(device[field] for field in fields)) for name, device in known.items()]
    return table(rows, header)
