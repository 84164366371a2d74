"""`ftuner devices`."""

from __future__ import annotations

import argparse
import json
from typing import Any

from ..describe.descriptions import devices, query_device, resolve
from ..describe.measured import read_bandwidths, with_measured
from ..describe.tables import table
from ..errors import Error
from ..host import outputs
from .common import UsageError, print_json, write_text

#: Fields that measured rates are checked against.
_NEEDED = ("name", "sm_count", "clock_mhz", "l2_mib")

_EPILOG = """\
examples:
  ftuner devices                         the built-in ones
  ftuner devices h200                    one of them as JSON
  ftuner devices --query -o my-gpu.json  describe the GPU of this machine
  ftuner devices my-gpu.json --measured bandwidths.json -o my-gpu.json
                                         add the rates that were measured on it"""


def add_parser(commands: Any) -> None:
    parser: argparse.ArgumentParser = commands.add_parser(
        "devices",
        help="list device descriptions, or describe the live GPU",
        description="Lists the built-in devices, shows one, or describes the GPU of this machine. "
        "Adds measured rates to a description.",
        epilog=_EPILOG,
    )
    parser.add_argument(
        "name",
        nargs="?",
        help="show this one as JSON; with --measured, the path of a description, too",
    )
    parser.add_argument(
        "--query",
        nargs="?",
        type=int,
        const=0,
        metavar="INDEX",
        help="describe a live GPU (the first, or that of the index) through its driver",
    )
    parser.add_argument(
        "--measured",
        metavar="FILE",
        help="add the fields measured_… from what benchmarks/gpu/bandwidths.cu printed on the card",
    )
    parser.add_argument("-o", "--output", help="write the description to a file, or to -")
    parser.add_argument("--json", action="store_true", help="all descriptions as JSON")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> None:
    if options.query is not None and options.name is not None:
        raise UsageError("expected a name or --query, but got both")
    if options.output and options.query is None and options.name is None:
        raise UsageError("option --output: expected a name or --query")
    if options.measured and options.query is None and options.name is None:
        raise UsageError("option --measured: expected a name or --query")
    if options.query is None and options.name is None:
        known = devices()
        if options.json:
            print_json(known)
        else:
            print(_table(known))
        return
    if options.query is not None:
        description = query_device(options.query)
    elif options.measured:
        description = _described(options.name)
    else:
        known = devices()
        if options.name not in known:
            raise UsageError(f"expected one of {', '.join(known)}, but got '{options.name}'")
        description = known[options.name]
    if options.measured:
        description = with_measured(description, read_bandwidths(options.measured))
    if options.output:
        write_text(options.output, json.dumps(description, indent=2) + "\n")
        if options.output != outputs.STANDARD:
            print(options.output)
    else:
        print_json(description)


def _described(name: str) -> dict[str, Any]:
    """A built-in description, or that of a file."""
    content = resolve(name).content()
    missing = [field for field in _NEEDED if field not in content]
    if missing:
        raise Error(f"device '{name}': expected the field '{missing[0]}'")
    return content


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
