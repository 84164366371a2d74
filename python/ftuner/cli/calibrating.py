"""`ftuner calibrate`."""

from __future__ import annotations

import argparse
import datetime
import os
from pathlib import Path
from typing import Any

from ..errors import Error
from .common import UsageError, parse_pairs

_EPILOG = """\
examples:
  ftuner calibrate rows.csv --device my-gpu.json -o my-gpu-calibration.json
  ftuner calibrate rows.csv --map a100=a100-pcie --device a100-pcie -o a100.json --plot a100.svg
  ftuner calibrate vendor.csv.gz gemm_configs_rtx3090.csv.gz --each -o calibrations/

The compiler takes the result by --calibration=FILE. docs/calibration.md describes the rows
that can be read, and the files that are written."""


def add_parser(commands: Any) -> None:
    parser: argparse.ArgumentParser = commands.add_parser(
        "calibrate",
        help="fit the constants of the latency model to measurements",
        description="Fits the constants of the cost model 'latency' to measured times of "
        "kernels: for one device, or for all. Rows of several devices give global constants.",
        epilog=_EPILOG,
    )
    parser.add_argument("rows", nargs="+", metavar="ROWS.csv", help="measurements (or .csv.gz)")
    parser.add_argument("-o", "--output", required=True, help="file to write; with --each a folder")
    parser.add_argument(
        "--device",
        metavar="NAME|FILE",
        help="the rows' device where no column says it, else the only one to fit",
    )
    parser.add_argument(
        "--map",
        action="append",
        default=[],
        metavar="NAME=DEVICE",
        help="what the rows call NAME is this built-in device, or the description at that path",
    )
    parser.add_argument(
        "--each", action="store_true", help="beside the global constants those of each device"
    )
    parser.add_argument(
        "--prior",
        metavar="NAME|FILE",
        help="calibration to start from, and to stay near where rows are few (default: global; "
        "for global constants the values before any fit)",
    )
    parser.add_argument(
        "--constants", metavar="A,B,…", help="fit these alone (default: what rows can tell)"
    )
    parser.add_argument(
        "--timing",
        choices=["host", "device"],
        help="whether times include the host's part of a launch (default: vendor rows do)",
    )
    parser.add_argument("--origin", metavar="TEXT", help="what the file says of the measurements")
    parser.add_argument("--report", metavar="FILE.md", help="write the report there, too")
    parser.add_argument("--plot", metavar="FILE.svg", help="draw predicted against measured")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> None:
    try:
        from ..latency import calibrate, fit
    except ImportError as error:
        raise Error("ftuner calibrate needs SciPy: pip install 'ftuner[calibrate]'") from error
    from ..latency.model import model
    from ..latency.rows import Devices, read

    mapping = parse_pairs(options.map, "--map")
    constants = _constants(options.constants, model().constants)
    if options.each and os.path.exists(options.output) and not os.path.isdir(options.output):
        raise UsageError(f"--each: expected a folder, but '{options.output}' is a file")
    devices = Devices(mapping, options.device)
    host = None if options.timing is None else options.timing == "host"
    calibrate.progress(f"reading {', '.join(options.rows)}")
    rows = read(options.rows, devices, host)
    if options.device is not None:
        rows = rows[rows.device == devices.index(mapping.get(options.device, options.device))]
        if not len(rows):
            raise Error(f"expected rows of the device '{options.device}', but there are none")
    for text in rows.warnings:
        calibrate.warn(text)
    rows, left_out = calibrate.usable(rows)
    present = sorted(set(rows.device.tolist()))
    done = []
    if len(present) > 1 or options.each:
        prior = model().calibration(options.prior) if options.prior else model().start()
        calibrate.progress(f"fitting global constants to {len(rows)} rows")
        shared = calibrate.calibrate_all(rows, prior, constants)
        done.append((shared, calibrate.span_warnings(rows, prior)))
        if options.each:
            for index in present:
                own = rows[rows.device == index]
                # One size, or a few rows, would not tell a device's constants.
                if len(own) < fit.FEWEST_ROWS or len(set(own.flop)) < 2:
                    calibrate.progress(f"{devices.names[index]}: global constants, rows are few")
                    continue
                calibrate.progress(f"fitting {devices.names[index]} to {len(own)} rows")
                one = calibrate.calibrate_device(
                    own, shared.constants, constants, shared.offset, shared.deviation
                )
                done.append((one, calibrate.span_warnings(own, shared.constants)))
    else:
        _expect_rows(rows)
        prior = model().calibration(options.prior or "global")
        calibrate.progress(f"fitting {devices.names[present[0]]} to {len(rows)} rows")
        one = calibrate.calibrate_device(rows, prior, constants)
        done.append((one, calibrate.span_warnings(rows, prior)))

    reports = []
    for one, texts in done:
        for text in texts:
            calibrate.warn(f"{one.name}: {text}")
        reports.append(calibrate.report(one, texts))
    if left_out:
        reports.insert(0, left_out + "\n")
    print("\n".join(reports), end="")
    _write(options, done, "\n".join(reports))


def _expect_rows(rows: Any) -> None:
    if not len(rows):
        raise Error("expected rows above twice the launch floor, but there are none")


def _constants(text: str | None, known: Any) -> list[str]:
    names = [name.strip() for name in text.split(",")] if text else []
    for name in names:
        if name not in known:
            raise UsageError(
                f"--constants: expected some of {', '.join(known)}, but got '{name}'"
            )
    return names


def _write(options: argparse.Namespace, done: list[Any], report: str) -> None:
    from ..latency import calibrate

    files = options.origin or ", ".join(os.path.basename(path) for path in options.rows)
    date = datetime.datetime.now(datetime.timezone.utc).date()
    texts = {}
    for one, _ in done:
        number = one.errors["all"][0]
        origin = f"{files}: {number} rows; ftuner calibrate, {date}"
        path = options.output
        if options.each:
            path = os.path.join(options.output, f"{one.name}.json")
        texts[path] = calibrate.to_text(one, origin)
    if options.report:
        texts[options.report] = report
    try:
        if options.each:
            Path(options.output).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise Error(f"cannot write '{options.output}': {error.strerror}") from error
    if options.plot:
        calibrate.plot([one for one, _ in done], options.plot)
    calibrate.write(texts)
    for path in texts:
        calibrate.progress(f"wrote {path}")
