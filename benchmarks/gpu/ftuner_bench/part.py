"""Runs one part in this process: `python -m ftuner_bench.part NAME …` (from run.py)."""

from __future__ import annotations

import argparse
import importlib
import pathlib
import sys
import time
import traceback
from typing import Any

from . import bundle as bundles
from .parts import PARTS, part_named
from .processes import end_with_parent
from .records import Writer
from .runtime import Runtime, RuntimeFailure
from .session import Session
from .workloads import matching


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("part", choices=[part.name for part in PARTS])
    parser.add_argument("--bundle", type=pathlib.Path, required=True)
    parser.add_argument("--records", type=pathlib.Path, required=True)
    parser.add_argument("--run", type=int, required=True, help="its number, for the records")
    parser.add_argument("--scratch", type=pathlib.Path, required=True)
    parser.add_argument("--device", required=True)
    parser.add_argument(
        "--deadline", type=float, required=True, help="of time.monotonic(), which processes share"
    )
    parser.add_argument("--short", action="store_true", help="the part has less time than it needs")
    parser.add_argument(
        "--parent", type=int, help="descriptor of a pipe that the parent keeps open"
    )
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--workloads", default="")
    parser.add_argument("--sizes", default="")
    parser.add_argument("--skip-peers", default="")
    return parser.parse_args()


def open_session(options: argparse.Namespace, write: Writer) -> Session:
    part, bundle = part_named(options.part), bundles.read(options.bundle)
    runtime = Runtime(bundle.runtime_path)
    machine: Any = None
    if part.needs_torch:
        # PyTorch takes seconds to import and must come after the runtime is known.
        from .machine import Cuda, Rehearsal

        machine = Rehearsal(runtime.emulator_stream()) if bundle.rehearsal else Cuda()
        write("machine", **machine.describe())
    workloads = matching(bundle.workloads, options.workloads)
    return Session(
        part,
        bundle,
        tuple(one for one in workloads if part.takes(one)),
        options.device,
        runtime,
        machine,
        write,
        options.deadline,
        options.seed,
        [int(size) for size in options.sizes.split(",") if size] or None,
        frozenset(options.skip_peers.split(",")) - {""},
        options.scratch,
    )


def main() -> int:
    """0: done; 1: a check failed; 2: the part broke, as the records say."""
    options = parse()
    start = time.monotonic()
    if options.parent is not None:
        end_with_parent(options.parent)
    with Writer(options.records, options.part, options.run) as write:
        try:
            session = open_session(options, write)
            module = importlib.import_module(
                f"{__package__}.{session.part.module or session.part.name}"
            )
            passed = module.measure(session)
        except (Exception, KeyboardInterrupt) as error:  # whatever it was belongs into the results
            write(
                "error",
                message=f"{type(error).__name__}: {error}",
                traceback="" if isinstance(error, RuntimeFailure) else traceback.format_exc(),
            )
            print(f"error: part {options.part}: {type(error).__name__}: {error}", file=sys.stderr)
            return 2
        write(
            "finished",
            seconds=time.monotonic() - start,
            passed=bool(passed),
            short=options.short and session.cut_short,
        )
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
