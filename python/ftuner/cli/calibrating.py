"""`ftuner calibrate`."""

from __future__ import annotations

import argparse
import datetime
import hashlib
import os
import re
import shlex
from pathlib import Path
from typing import Any

from ..describe import plotting
from ..errors import Error
from ..host import outputs
from .common import UsageError, parse_pairs

# The compiler reads origins of 4096; the number of rows and the date come after this.
_ORIGIN_BYTES = 4000

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
    parser.add_argument(
        "rows",
        nargs="+",
        metavar="ROWS.csv",
        help="measurements (or .csv.gz, .csv.xz); - for standard input",
    )
    parser.add_argument(
        "-o",
        "--output",
        required=True,
        help="file to write, - for standard output (then without the report); with --each a folder",
    )
    parser.add_argument(
        "--device",
        metavar="NAME|FILE",
        help="the rows' device where no column says it, else the only one to fit",
    )
    parser.add_argument(
        "--map",
        action="append",
        default=[],
        metavar="[FILE:]NAME=DEVICE",
        help="what the rows (of that file) call NAME is this built-in device, or the description at "
        "that path",
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
        "--token-step",
        type=int,
        default=1,
        metavar="N",
        help="take each N-th of the rows whose kernels are not known (default: each one)",
    )
    parser.add_argument(
        "--timing",
        choices=["host", "device"],
        help="whether times include the host's part of a launch (default: vendor rows do)",
    )
    parser.add_argument(
        "--origin", metavar="TEXT", help="what the file says of the measurements, up to 4000 bytes"
    )
    parser.add_argument("--report", metavar="FILE.md", help="write the report there, too")
    parser.add_argument(
        "--plot", metavar="FILE.svg", help="draw predicted against measured (or .png, .pdf)"
    )
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> None:
    try:
        from ..latency import calibrate, fit
    except ImportError as error:
        raise Error("ftuner calibrate needs SciPy: pip install 'ftuner[study]'") from error
    from ..latency.measurements.readers import read
    from ..latency.measurements.rows import Devices
    from ..latency.model import model

    mapping = parse_pairs(options.map, "--map")
    constants = _constants(options.constants, model().constants)
    origin = _origin(options)
    if options.plot is not None:
        plotting.check_output(options.plot)
        plotting.load_matplotlib()
    if options.rows.count(outputs.STANDARD) > 1:
        raise UsageError("expected standard input once among the rows")
    if options.report == outputs.STANDARD:
        raise UsageError("option --report: expected the name of a file, but got '-'")
    if options.each and (
        options.output in ("", outputs.STANDARD) or os.path.isfile(options.output)
    ):
        raise UsageError(f"option --each: expected a folder, but got '{options.output}'")
    prior = None if options.prior is None else model().calibration_and_deviation(options.prior)
    devices = Devices(mapping, options.device)
    host = None if options.timing is None else options.timing == "host"
    if options.token_step < 1:
        raise UsageError(f"option --token-step: expected at least 1, but got {options.token_step}")
    calibrate.progress(f"reading {', '.join(options.rows)}")
    rows = read(options.rows, devices, host, token_step=options.token_step)
    for text in rows.warnings:
        calibrate.warn(text)
    if options.device is not None:
        rows = rows[rows.device == devices.index(options.device)]
        if not len(rows):
            raise Error(f"expected rows of the device '{options.device}', but there are none")
    rows, left_out = calibrate.usable(rows)
    if not len(rows):
        raise Error(f"expected rows to fit, but there are none. {left_out}".rstrip())
    present = sorted(set(rows.device.tolist()))
    _check_outputs(options, devices, [devices.names[index] for index in present])
    done = []
    if len(present) > 1 or options.each:
        start, deviation = prior or (model().start(), calibrate.DEVIATION)
        calibrate.progress(f"fitting global constants to {len(rows)} rows")
        shared = calibrate.calibrate_all(rows, start, constants, deviation)
        if not rows.is_memory.any():
            calibrate.keep_memory(shared, model().calibration("global"))
        done.append((shared, calibrate.span_warnings(rows, start)))
        if options.each:
            # Devices of one die share what is known of it, and rows of the tensor cores alone
            # say nothing of the rest: those come last.
            plain = rows[~rows.is_tensor]
            has_others = {
                index for index in present if len(set(plain.flop[plain.device == index])) > 1
            }
            for index in sorted(present, key=lambda index: index not in has_others):
                # One size, or a few rows, would not tell a device's constants.
                own = rows[(rows.device == index) & (rows.is_tensor | (index in has_others))]
                if len(own) < fit.MIN_ROWS or len(set(own.flop)) < 2:
                    calibrate.progress(f"{devices.names[index]}: global constants, rows are few")
                    continue
                calibrate.progress(f"fitting {devices.names[index]} to {len(own)} rows")
                prior_of = shared
                if index not in has_others:
                    die = calibrate.die_of(devices.sources[index])
                    relatives = [one for one, _ in done if die and one.die == die]
                    prior_of = relatives[0] if relatives else shared
                one = calibrate.calibrate_device(
                    own, prior_of.constants, constants, shared.offset, shared.deviation
                )
                if not rows.is_memory.any():
                    calibrate.keep_memory(one, model().default_calibration(devices.sources[index]))
                done.append((one, calibrate.span_warnings(own, prior_of.constants)))
            calibrate.share_tensor([one for one, _ in done])
    else:
        start, deviation = prior or model().calibration_and_deviation("global")
        calibrate.progress(f"fitting {devices.names[present[0]]} to {len(rows)} rows")
        one = calibrate.calibrate_device(rows, start, constants, deviation=deviation)
        done.append((one, calibrate.span_warnings(rows, start)))

    reports = []
    for one, texts in done:
        for text in texts:
            calibrate.warn(f"{one.name}: {text}")
        reports.append(calibrate.report(one, texts))
    if left_out:
        reports.insert(0, left_out + "\n")
    if options.output != outputs.STANDARD:
        print("\n".join(reports), end="")
    _write(options, done, "\n".join(reports), origin)


def _constants(text: str | None, known: Any) -> list[str]:
    names = [name.strip() for name in text.split(",")] if text else []
    for name in names:
        if name not in known:
            raise UsageError(
                f"option --constants: expected some of {', '.join(known)}, but got '{name}'"
            )
    return names


def _origin(options: argparse.Namespace) -> str:
    """Returns the origin that calibrations state: by default the names of the files of rows."""
    text = options.origin or ", ".join(os.path.basename(path) for path in options.rows)
    try:
        is_good = len(text.encode("utf-8")) <= _ORIGIN_BYTES
    except UnicodeEncodeError:
        is_good = False
    if not is_good:
        hint = "" if options.origin else " as names of the rows' files, or another origin"
        raise UsageError(f"option --origin: expected UTF-8 of at most {_ORIGIN_BYTES} bytes{hint}")
    return str(text)


# Options that change constants.
_FITTING = ("device", "map", "each", "prior", "constants", "token_step", "timing")


def _command(options: argparse.Namespace) -> str:
    """The command without its outputs, and files by their names."""
    words = ["ftuner", "calibrate", *map(os.path.basename, options.rows)]
    for name in _FITTING:
        value, flag = getattr(options, name), f"--{name.replace('_', '-')}"
        if isinstance(value, list):
            words += [word for one in value for word in (flag, one)]
        elif value is True:
            words.append(flag)
        elif value not in (None, False) and (name, value) != ("token_step", 1):
            words += [flag, os.path.basename(str(value))]
    text = shlex.join(words)
    return text if len(text.encode("utf-8", "replace")) <= _ORIGIN_BYTES else ""


def _hashes(files: list[str]) -> dict[str, str]:
    """The SHA-256 of each file of rows by its name."""
    return {
        os.path.basename(path): hashlib.sha256(Path(path).read_bytes()).hexdigest()
        for path in files
        if path != outputs.STANDARD
    }


def _path_of(options: argparse.Namespace, name: str) -> str:
    """The file of the calibration with that name."""
    return os.path.join(options.output, f"{name}.json") if options.each else str(options.output)


def _check_outputs(options: argparse.Namespace, devices: Any, names: list[str]) -> None:
    """Raises `Error` for files that cannot be written, before the work begins."""
    from ..latency import calibrate

    if options.each:
        for name in names:
            if name == "global" or not re.fullmatch(r"[A-Za-z0-9_-][A-Za-z0-9._-]*", name):
                raise Error(
                    "option --each: expected devices named by letters, digits, '.', '_' and '-', other "
                    f"than 'global', but got '{name}': their names are those of files"
                )
    files = ["global", *(names if options.each else [])]
    paths = [_path_of(options, name) for name in files]
    paths += [path for path in (options.report, options.plot) if path is not None]
    paths = [path for path in paths if path != outputs.STANDARD]
    inputs = [*options.rows, *devices.sources, *([options.prior] if options.prior else [])]
    calibrate.check_outputs(paths, inputs, options.output if options.each else None)


def _write(options: argparse.Namespace, done: list[Any], report: str, origin: str) -> None:
    from ..latency import calibrate

    date = datetime.datetime.now(datetime.timezone.utc).date()
    command, data = _command(options), _hashes(options.rows)
    contents = {}
    for one, _ in done:
        number = one.errors["all"][0]
        source = calibrate.Source(f"{origin}: {number} rows, {date}", command, data)
        text = calibrate.to_text(one, source)
        contents[_path_of(options, one.name)] = text.encode("utf-8")
    if options.report is not None:
        contents[options.report] = report.encode("utf-8")
    if options.plot is not None:
        suffix = Path(options.plot).suffix
        contents[options.plot] = calibrate.plot([one for one, _ in done], suffix)
    if options.each:
        try:
            Path(options.output).mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise Error(f"cannot write '{options.output}': {error.strerror}") from error
    outputs.write(contents)
    for path in contents:
        if path != outputs.STANDARD:
            calibrate.progress(f"wrote {path}")
