"""Checks and measures everything that a bundle holds: `run.sh --help`.

Each part runs in a process of its own, so that one that fails, or hangs, does not affect the others.
Records are written to the folder of the results as they are measured. So finished parts are kept,
whatever stops the run; another run into the same folder continues after them.
This process imports no PyTorch.
"""

from __future__ import annotations

import argparse
import datetime
import fcntl
import os
import pathlib
import platform
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from typing import Any

from . import bundle as bundles
from . import records, report
from .parts import CALL_SECONDS, PARTS, Part, of_call, seconds_for, seconds_of
from .processes import Child
from .records import Record, Writer
from .runtime import Runtime, RuntimeFailure
from .workloads import matching

# A part that is late has this long to end before it is killed, seconds.
GRACE = 25.0
# A part that would have less is not begun, seconds.
LEAST_SECONDS = 10.0
# What the figures and tables take at the end, seconds.
REPORTING = 20.0

# Files of the folder of results; report.py writes others.
RECORDS = "records.jsonl.gz"
CLOCKS = "clocks.csv"

EXIT_FAILED_CHECKS = 1
EXIT_BROKEN = 2
EXIT_NO_DEVICE = 3

# Properties that all runs into one folder must share.
COMMON = ("gpu", "device", "revision", "rehearsal", "workloads", "sizes", "skip_peers")


def parse(arguments: list[str] | None = None) -> argparse.Namespace:
    names = ",".join(part.name for part in PARTS)
    parser = argparse.ArgumentParser(
        prog="run.sh", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "call",
        nargs="?",
        default="",
        metavar="first|second",
        help="the parts of one call (default: those that the bundle was made for)",
    )
    parser.add_argument("--bundle", type=pathlib.Path, required=True, help=argparse.SUPPRESS)
    parser.add_argument(
        "--out",
        type=pathlib.Path,
        default=pathlib.Path("ftuner-results"),
        help="folder of the results, at most 8 files; parts that an earlier run finished there are "
        "kept (default: %(default)s)",
    )
    parser.add_argument("--only", default="", metavar="PART,…", help=f"of {names}")
    parser.add_argument("--skip", default="", metavar="PART,…", help="the others run")
    parser.add_argument(
        "--budget",
        type=float,
        metavar="SECONDS",
        help="for everything; parts at the end that do not fit are left out and said (default: "
        + ", ".join(f"{seconds:.0f} for {call}" for call, seconds in CALL_SECONDS.items())
        + ")",
    )
    parser.add_argument(
        "--workloads",
        default="",
        metavar="NAME,…",
        help="instead of all; patterns as of file names: '*_f16,llama_*'",
    )
    parser.add_argument("--sizes", default="", metavar="T,…", help="instead of all")
    parser.add_argument(
        "--skip-peers",
        default="",
        metavar="PEER,…",
        help="of cublas,cublaslt,triton,compile,compile_max",
    )
    parser.add_argument(
        "--device",
        default="",
        metavar="NAME",
        help="of the bundle, instead of the one that the GPU's name says",
    )
    parser.add_argument("--seed", type=int, help="of the random data (default: another each time)")
    parser.add_argument(
        "--plan",
        action="store_true",
        help="print the parts, their seconds and their bytes, and measure nothing",
    )
    parser.add_argument(
        "--report-only",
        action="store_true",
        help="make the tables of --out from the records there, which needs no GPU",
    )
    options = parser.parse_args(arguments)
    if options.call not in ("", *CALL_SECONDS):
        parser.error(f"expected the call first or second, but got '{options.call}'")
    for name in [*options.only.split(","), *options.skip.split(",")]:
        if name and name not in names.split(","):
            parser.error(f"expected a part of {names}, but got '{name}'")
    for size in options.sizes.split(","):
        if size and not (size.isdigit() and int(size) > 0):
            parser.error(f"--sizes: expected positive integers, but got '{size}'")
    return options


def chosen_parts(options: argparse.Namespace) -> list[Part]:
    only, skipped = set(options.only.split(",")) - {""}, set(options.skip.split(","))
    return [
        part
        for part in of_call(options.call)
        if (not only or part.name in only) and part.name not in skipped
    ]


def choose_call(options: argparse.Namespace, bundle: bundles.Bundle) -> None:
    """Sets the call and the budget where none was given. Raises ValueError for a call that the bundle
    was not made for."""
    if options.call and bundle.call not in ("", options.call):
        raise ValueError(f"expected the {bundle.call} call of this bundle, but got {options.call}")
    options.call = options.call or bundle.call
    if not chosen_parts(options):
        raise ValueError(f"no part of the {options.call} call is chosen")
    if options.budget is None:
        options.budget = seconds_of(options.call)


def files_of(part: Part, bundle: bundles.Bundle, device: str) -> list[str]:
    """Paths of what the bundle holds for a part. Libraries of workloads count for the part that times
    them."""
    files = bundle.devices[device]["files"]
    if part.own_files:
        return [files[part.name]] if part.name in files else []
    module = part.module or part.name
    kinds = {"products": ["library_"], "selection": ["selection_", "slices_", "programs_"]}
    return [
        files[kind + workload.name]
        for workload in bundle.workloads
        for kind in kinds.get(module, [])
        if part.takes(workload) and kind + workload.name in files
    ]


def plan(options: argparse.Namespace, bundle: bundles.Bundle, device: str) -> str:
    """A table of the parts with their seconds and bytes, and the time and the size of it all."""
    parts = chosen_parts(options)
    seconds = sum(part.seconds for part in parts)
    rows = [
        [part.name, part.call, part.seconds, bundle.bytes_of(files_of(part, bundle, device))]
        for part in parts
    ]
    table = report.table(["part", "call", "seconds", "bytes"], rows)
    return (
        f"{table}\n\n{seconds:.0f} s of parts and {REPORTING:.0f} s of tables, of "
        f"{options.budget:.0f} s; {bundles.size_of(bundle.folder):,} bytes of the bundle"
    )


class Clocks:
    """Reads the clocks while everything runs; changes no setting."""

    QUERY = "timestamp,clocks.sm,clocks.mem,temperature.gpu,power.draw,utilization.gpu"
    MILLISECONDS = 100

    def __init__(self, path: pathlib.Path):
        self.process: subprocess.Popen[str] | None = None
        program = shutil.which("nvidia-smi")
        if program:
            with path.open("a") as file:
                self.process = subprocess.Popen(
                    [
                        program,
                        f"--query-gpu={self.QUERY}",
                        "--format=csv,noheader,nounits",
                        "-lms",
                        str(self.MILLISECONDS),
                    ],
                    stdout=file,
                    stderr=subprocess.DEVNULL,
                )

    def stop(self) -> None:
        if self.process:
            self.process.terminate()
            self.process.wait()


def environment(bundle: bundles.Bundle, scratch: pathlib.Path) -> dict[str, str]:
    """Caches of other compilers begin empty and go with the scratch folder."""
    result = dict(os.environ)
    result["TMPDIR"] = str(scratch)
    result["TORCHINDUCTOR_CACHE_DIR"] = str(scratch / "inductor")
    # Where FTuner's package finds its runtime.
    result["FTUNER_HOME"] = str(bundle.folder)
    result["TRITON_CACHE_DIR"] = str(scratch / "triton")
    return result


class Parts:
    """Runs the parts of one run, each in a process of its own."""

    def __init__(
        self,
        options: argparse.Namespace,
        bundle: bundles.Bundle,
        device: str,
        number: int,
        scratch: pathlib.Path,
    ):
        self.options, self.bundle, self.device = options, bundle, device
        self.number, self.scratch = number, scratch
        self.records = options.out / RECORDS
        self.children: list[Child] = []

    def writer(self, part: str) -> Writer:
        """Appends records of this process, while no part runs."""
        records.repair(self.records)
        return Writer(self.records, part, self.number)

    def fail(self, part: Part, words: str) -> int:
        with self.writer(part.name) as write:
            write("error", message=words, traceback="")
        return EXIT_BROKEN

    def arguments(self, part: Part, seconds: float) -> list[str]:
        options = self.options
        result = [
            part.name,
            f"--bundle={self.bundle.folder}",
            f"--records={self.records}",
            f"--run={self.number}",
            f"--scratch={self.scratch}",
            f"--device={self.device}",
            f"--deadline={time.monotonic() + seconds:.1f}",
            f"--seed={options.seed}",
            f"--workloads={options.workloads}",
            f"--sizes={options.sizes}",
            f"--skip-peers={options.skip_peers}",
        ]
        return result + (["--short"] if seconds < part.seconds else [])

    def run(self, part: Part, seconds: float) -> int:
        """Returns the exit status of a part's process; 2 if it had to be killed."""
        print(f"== {part.name}: {part.title} ({seconds:.0f} s)", flush=True)
        child = self.start("part", *self.arguments(part, seconds))
        try:
            status = child.wait(seconds + GRACE)
        except subprocess.TimeoutExpired:
            child.end()
            self.children.remove(child)
            return self.fail(part, f"killed {GRACE:.0f} s after its time was over")
        child.end()
        self.children.remove(child)
        if status not in (0, EXIT_FAILED_CHECKS, EXIT_BROKEN):
            return self.fail(part, f"its process ended with status {status}")
        records.repair(self.records)
        return status

    def start(self, module: str, *arguments: str) -> Child:
        child = Child(module, arguments, environment(self.bundle, self.scratch))
        self.children.append(child)
        return child

    def start_compilers(self, wanted: Sequence[Part]) -> None:
        """Starts the compilers of programs that the machine itself compiles, beside the first parts."""
        self.start("builds", f"--scratch={self.scratch}")
        if not self.bundle.rehearsal and any(part.name == "products" for part in wanted):
            self.start(
                "peers.triton_warm",
                f"--workers={max(1, (os.cpu_count() or 2) - 4)}",
                f"--bundle={self.bundle.folder}",
                f"--workloads={self.options.workloads}",
            )

    def end(self) -> None:
        """Ends all running processes."""
        while self.children:
            self.children.pop().end()


def find_device(bundle: bundles.Bundle, runtime: Runtime, wanted: str) -> tuple[str, str]:
    """(the GPU's name, the described device); RuntimeFailure where there is no GPU."""
    if wanted and wanted not in bundle.devices:
        raise ValueError(
            f"--device: expected one of {', '.join(bundle.devices)}, but got '{wanted}'"
        )
    if bundle.rehearsal:
        return "rehearsal on a CPU", wanted or next(iter(bundle.devices))
    runtime.device_count()
    gpu = runtime.device_name(0)
    device, known = bundle.choose_device(gpu)
    if not wanted and not known:
        print(f"warning: the bundle has no device named like {gpu}; taking {device}", flush=True)
    return gpu, wanted or device


class Stopped(BaseException):
    """A signal asks this process to end."""


def stop(number: int, frame: object) -> None:
    raise Stopped(signal.Signals(number).name)


def lock(folder: pathlib.Path) -> int:
    """Returns a descriptor of the folder, into which one run may write at a time. Raises ValueError if
    another run writes to it."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        os.close(descriptor)
        raise ValueError(f"{folder}: another run writes its results there") from error
    return descriptor


def facts_of(
    options: argparse.Namespace, bundle: bundles.Bundle, gpu: str, device: str
) -> dict[str, Any]:
    return {
        "gpu": gpu,
        "device": device,
        "rehearsal": bundle.rehearsal,
        "revision": bundle.revision,
        "workloads": options.workloads,
        "sizes": options.sizes,
        "skip_peers": options.skip_peers,
        "seed": options.seed,
        "titles": {workload.name: workload.title for workload in bundle.workloads},
        "date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
        "host": {
            "processor": platform.processor() or platform.machine(),
            "cpus": os.cpu_count(),
            "python": platform.python_version(),
        },
    }


def runs_of(every: Sequence[Record]) -> list[Record]:
    return [record for record in every if record["kind"] == "run"]


def check_runs(earlier: Sequence[Record], facts: dict[str, Any], out: pathlib.Path) -> None:
    """Raises ValueError if earlier runs into the folder measured something else."""
    for run in earlier:
        for name in COMMON:
            if run[name] != facts[name]:
                words = name.replace("_", "-")
                raise ValueError(
                    f"--out: {out} has results of another {words}: expected "
                    f"'{run[name]}', but got '{facts[name]}'"
                )


def main(arguments: list[str] | None = None) -> int:
    options = parse(arguments)
    start = time.monotonic()
    if options.report_only:
        return report_only(options.out)
    try:
        bundle = bundles.read(options.bundle.resolve())
        matching(bundle.workloads, options.workloads)
        choose_call(options, bundle)
        if options.plan:
            print(plan(options, bundle, options.device or next(iter(bundle.devices))))
            return 0
        gpu, device = find_device(bundle, Runtime(bundle.runtime_path), options.device)
    except RuntimeFailure as error:
        print(f"error: nothing can be measured here: {error}", file=sys.stderr)
        return EXIT_NO_DEVICE
    except (OSError, ValueError) as error:
        print(f"error: {error}", file=sys.stderr)
        return EXIT_BROKEN
    path = options.out / RECORDS
    try:
        options.out.mkdir(parents=True, exist_ok=True)
        # Until this process ends.
        lock(options.out)
        records.repair(path)
        every = list(records.read(path)) if path.exists() else []
        earlier = runs_of(every)
        if options.seed is None:
            options.seed = (
                earlier[0]["seed"] if earlier else random.SystemRandom().randrange(1 << 30)
            )
        facts = facts_of(options, bundle, gpu, device)
        check_runs(earlier, facts, options.out)
    except (OSError, ValueError) as error:
        words = str(error)
        print(
            f"error: {words if words.startswith('--out') else f'--out: {words}'}", file=sys.stderr
        )
        return EXIT_BROKEN
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, stop)
    with tempfile.TemporaryDirectory(prefix="ftuner-bench-") as folder:
        parts = Parts(options, bundle, device, len(earlier), pathlib.Path(folder))
        return measure(parts, every, facts, start)


def measure(parts: Parts, every: Sequence[Record], facts: dict[str, Any], start: float) -> int:
    """Runs the parts that are not finished, and makes the results of all records."""
    options, bundle = parts.options, parts.bundle
    print(
        f"{facts['gpu']}, bundle {bundle.revision or 'of unknown revision'} for {parts.device}, "
        f"seed {options.seed}",
        flush=True,
    )
    done = {record["part"] for record in every if records.is_finished(record)}
    wanted = chosen_parts(options)
    for part in wanted:
        if part.name in done:
            print(f"== {part.name}: finished by an earlier run", flush=True)
    wanted = [part for part in wanted if part.name not in done]
    with parts.writer("") as write:
        write("run", **facts, parts=[part.name for part in wanted])
    clocks = None if bundle.rehearsal or not wanted else Clocks(options.out / CLOCKS)
    statuses: dict[str, int] = {}
    try:
        if wanted:
            parts.start_compilers(wanted)
        for number, part in enumerate(wanted):
            left = options.budget - REPORTING - (time.monotonic() - start)
            seconds = seconds_for(part, wanted[number + 1 :], left)
            if seconds < LEAST_SECONDS:
                statuses[part.name] = parts.fail(part, "no time was left")
                continue
            statuses[part.name] = parts.run(part, seconds)
    except Stopped as signal_:
        print(f"stopped by {signal_}", file=sys.stderr, flush=True)
        statuses[""] = EXIT_BROKEN
    finally:
        parts.end()
        if clocks:
            clocks.stop()
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    with parts.writer("") as write:
        write("ended", seconds=round(time.monotonic() - start, 1))
    return make_report(options.out, statuses)


def report_only(out: pathlib.Path) -> int:
    try:
        if not runs_of(list(records.read(out / RECORDS))):
            raise ValueError(f"{out / RECORDS}: expected the record of a run, but there is none")
        return make_report(out, {})
    except (OSError, ValueError) as error:
        print(f"error: --out: {error}", file=sys.stderr)
        return EXIT_BROKEN


def make_report(out: pathlib.Path, statuses: dict[str, int]) -> int:
    """Writes the results of all records and prints their tables; returns the exit status of the run.

    statuses: exit statuses of the parts that this run began.
    """
    every = list(records.read(out / RECORDS))
    runs = runs_of(every)
    for record in every:
        if records.is_finished(record):
            statuses.setdefault(record["part"], 0 if record["passed"] else EXIT_FAILED_CHECKS)
    seconds = sum(record["seconds"] for record in every if record["kind"] == "ended")
    facts = {
        key: value for key, value in runs[-1].items() if key not in ("part", "kind", "run", "at")
    }
    titles = facts.pop("titles")
    facts |= {
        "seconds": round(seconds, 1),
        "runs": len(runs),
        "statuses": {name: status for name, status in statuses.items() if name},
        "clocks": report.clocks(out / CLOCKS),
    }
    kept = records.chosen(record for record in every if record["part"])
    print(report.pack(out, facts, titles, kept, report.readings(out / CLOCKS)), flush=True)
    if EXIT_FAILED_CHECKS in statuses.values():
        return EXIT_FAILED_CHECKS
    return EXIT_BROKEN if any(statuses.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
