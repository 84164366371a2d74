"""Checks and measures everything that a bundle holds: `run.sh --help`.

Each part runs in a process of its own, so that one that fails, or hangs, leaves the
others alone. What was measured goes to one file of raw records, from which the
results are made. This process imports no PyTorch.
"""

from __future__ import annotations

import argparse
import datetime
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

from . import bundle as bundles
from . import report
from .parts import PARTS, Part
from .records import Writer, read
from .runtime import Runtime, RuntimeFailure
from .workloads import matching

# A part that is late has this long to end before it is killed, seconds.
GRACE = 25.0
# A part that would have less is not begun, seconds.
LEAST_SECONDS = 10.0
# What the figures and tables take at the end, seconds.
REPORTING = 20.0

EXIT_FAILED_CHECKS = 1
EXIT_BROKEN = 2
EXIT_NO_DEVICE = 3


def parse(arguments: list[str] | None = None) -> argparse.Namespace:
    names = ",".join(part.name for part in PARTS)
    parser = argparse.ArgumentParser(
        prog="run.sh", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--bundle", type=pathlib.Path, required=True, help=argparse.SUPPRESS)
    parser.add_argument(
        "--out",
        type=pathlib.Path,
        default=pathlib.Path("ftuner-results"),
        help="folder of the results, at most 10 files (default: %(default)s)",
    )
    parser.add_argument("--only", default="", metavar="PART,…", help=f"of {names}")
    parser.add_argument("--skip", default="", metavar="PART,…", help="the others run")
    parser.add_argument(
        "--budget",
        type=float,
        default=510.0,
        metavar="SECONDS",
        help="for everything; what does not fit is left out and said (default: %(default)s)",
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
    options = parser.parse_args(arguments)
    for name in [*options.only.split(","), *options.skip.split(",")]:
        if name and name not in names.split(","):
            parser.error(f"expected a part of {names}, but got '{name}'")
    for size in options.sizes.split(","):
        if size and not (size.isdigit() and int(size) > 0):
            parser.error(f"--sizes: expected positive integers, but got '{size}'")
    if options.seed is None:
        options.seed = random.SystemRandom().randrange(1 << 30)
    return options


def chosen_parts(options: argparse.Namespace) -> list[Part]:
    only, skipped = set(options.only.split(",")) - {""}, set(options.skip.split(","))
    return [part for part in PARTS if (not only or part.name in only) and part.name not in skipped]


class Clocks:
    """Reads the clocks while everything runs; changes no setting."""

    QUERY = "timestamp,clocks.sm,clocks.mem,temperature.gpu,power.draw,utilization.gpu"

    def __init__(self, path: pathlib.Path):
        self.process: subprocess.Popen[str] | None = None
        program = shutil.which("nvidia-smi")
        if program:
            with path.open("w") as file:
                self.process = subprocess.Popen(
                    [
                        program,
                        f"--query-gpu={self.QUERY}",
                        "--format=csv,noheader,nounits",
                        "-lms",
                        "500",
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


def start_beside(
    module: str, bundle: bundles.Bundle, scratch: pathlib.Path, *arguments: str
) -> subprocess.Popen[bytes]:
    """Starts what runs beside the parts, in a group of its own."""
    command = [sys.executable, "-m", f"{__package__}.{module}", *arguments]
    return subprocess.Popen(command, env=environment(bundle, scratch), start_new_session=True)


def run_part(
    part: Part,
    options: argparse.Namespace,
    bundle: bundles.Bundle,
    device: str,
    records: pathlib.Path,
    scratch: pathlib.Path,
    seconds: float,
) -> int:
    """The exit status of a part's process; 2 where it had to be killed."""
    command = [
        sys.executable,
        "-m",
        f"{__package__}.part",
        part.name,
        f"--bundle={bundle.folder}",
        f"--records={records}",
        f"--scratch={scratch}",
        f"--device={device}",
        f"--deadline={time.monotonic() + seconds:.1f}",
        f"--seed={options.seed}",
        f"--workloads={options.workloads}",
        f"--sizes={options.sizes}",
        f"--skip-peers={options.skip_peers}",
    ]
    if bundle.rehearsal:
        command.append("--rehearse")
    print(f"== {part.name}: {part.title} ({seconds:.0f} s)", flush=True)
    # A group of its own: compilers that it started end with it.
    process = subprocess.Popen(command, env=environment(bundle, scratch), start_new_session=True)
    try:
        status = process.wait(timeout=seconds + GRACE)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        Writer(records, part.name)(
            "error", message=f"killed {GRACE:.0f} s after its time was over", traceback=""
        )
        return EXIT_BROKEN
    if status not in (0, EXIT_FAILED_CHECKS, EXIT_BROKEN):
        Writer(records, part.name)(
            "error", message=f"its process ended with status {status}", traceback=""
        )
        return EXIT_BROKEN
    return status


def find_device(bundle: bundles.Bundle, runtime: Runtime, wanted: str) -> tuple[str, str]:
    """(the GPU's name, the described device); RuntimeFailure where there is no GPU."""
    if wanted and wanted not in bundle.devices:
        raise ValueError(
            f"--device: expected one of {', '.join(bundle.devices)}, " f"but got '{wanted}'"
        )
    if bundle.rehearsal:
        return "rehearsal on a CPU", wanted or next(iter(bundle.devices))
    runtime.device_count()
    gpu = runtime.device_name(0)
    device, known = bundle.choose_device(gpu)
    if not wanted and not known:
        print(f"warning: the bundle has no device named like {gpu}; taking {device}", flush=True)
    return gpu, wanted or device


def main(arguments: list[str] | None = None) -> int:
    options = parse(arguments)
    start = time.monotonic()
    try:
        bundle = bundles.read(options.bundle.resolve())
        matching(bundle.workloads, options.workloads)
        gpu, device = find_device(bundle, Runtime(bundle.runtime_path), options.device)
    except RuntimeFailure as error:
        print(f"error: nothing can be measured here: {error}", file=sys.stderr)
        return EXIT_NO_DEVICE
    except (OSError, ValueError) as error:
        print(f"error: {error}", file=sys.stderr)
        return EXIT_BROKEN
    try:
        options.out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        print(f"error: --out: {error}", file=sys.stderr)
        return EXIT_BROKEN
    with tempfile.TemporaryDirectory(prefix="ftuner-bench-") as folder:
        return measure(options, bundle, gpu, device, pathlib.Path(folder), start)


def measure(
    options: argparse.Namespace,
    bundle: bundles.Bundle,
    gpu: str,
    device: str,
    scratch: pathlib.Path,
    start: float,
) -> int:
    print(
        f"{gpu}, bundle {bundle.revision or 'of unknown revision'} for {device}, "
        f"seed {options.seed}",
        flush=True,
    )
    parts = chosen_parts(options)
    records = scratch / "records.jsonl"
    clocks_path = scratch / "clocks.csv"
    clocks = None if bundle.rehearsal else Clocks(clocks_path)
    background = [start_beside("builds", bundle, scratch, f"--scratch={scratch}")]
    if not bundle.rehearsal and any(part.name == "products" for part in parts):
        workers = max(1, (os.cpu_count() or 2) - 4)
        background.append(
            start_beside(
                "peers.triton_warm",
                bundle,
                scratch,
                f"--workers={workers}",
                f"--bundle={bundle.folder}",
                f"--workloads={options.workloads}",
            )
        )
    statuses: dict[str, int] = {}
    for number, part in enumerate(parts):
        left = options.budget - REPORTING - (time.monotonic() - start)
        share = part.share / sum(other.share for other in parts[number:])
        if left * share < LEAST_SECONDS:
            Writer(records, part.name)("error", message="no time was left", traceback="")
            statuses[part.name] = EXIT_BROKEN
            continue
        statuses[part.name] = run_part(
            part, options, bundle, device, records, scratch, left * share
        )
    for process in background:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGTERM)
        process.wait()
    if clocks:
        clocks.stop()
    facts = {
        "gpu": gpu,
        "device": device,
        "rehearsal": bundle.rehearsal,
        "revision": bundle.revision,
        "date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
        "seconds": round(time.monotonic() - start, 1),
        "seed": options.seed,
        "host": {
            "processor": platform.processor() or platform.machine(),
            "cpus": os.cpu_count(),
            "python": platform.python_version(),
        },
        "statuses": statuses,
        "clocks": report.clocks(clocks_path),
    }
    titles = {workload.name: workload.title for workload in bundle.workloads}
    every = list(read(records)) if records.exists() else []
    print(report.write(options.out, facts, titles, every), flush=True)
    if EXIT_FAILED_CHECKS in statuses.values():
        return EXIT_FAILED_CHECKS
    return EXIT_BROKEN if any(statuses.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
