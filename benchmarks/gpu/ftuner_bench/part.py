"""Runs one part in this process: `python -m ftuner_bench.part NAME …` (from run.py)."""

from __future__ import annotations

import argparse
import importlib
import pathlib
import sys
import time
import traceback

from . import bundle as bundles
from .parts import PARTS
from .records import Writer
from .runtime import Runtime, RuntimeFailure
from .workloads import matching


def main() -> int:
    """0: done; 1: a check failed; 2: the part broke, as the records say."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("part", choices=[part.name for part in PARTS])
    parser.add_argument("--bundle", type=pathlib.Path, required=True)
    parser.add_argument("--records", type=pathlib.Path, required=True)
    parser.add_argument("--scratch", type=pathlib.Path, required=True)
    parser.add_argument("--device", required=True)
    parser.add_argument(
        "--deadline", type=float, required=True, help="of time.monotonic(), which processes share"
    )
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--workloads", default="")
    parser.add_argument("--sizes", default="")
    parser.add_argument("--skip-peers", default="")
    parser.add_argument("--rehearse", action="store_true")
    options = parser.parse_args()
    start = time.monotonic()
    write = Writer(options.records, options.part)
    try:
        bundle = bundles.read(options.bundle)
        runtime = Runtime(bundle.runtime_path)
        # PyTorch takes seconds to import and must come after the runtime is known.
        from .machine import Cuda, Rehearsal
        from .session import Session

        machine = Rehearsal(runtime.emulator_stream()) if options.rehearse else Cuda()
        write("machine", **machine.describe())
        session = Session(
            bundle,
            matching(bundle.workloads, options.workloads),
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
        module = importlib.import_module(f"{__package__}.{options.part}")
        passed = module.measure(session)
    except (Exception, KeyboardInterrupt) as error:  # whatever it was belongs into the results
        write(
            "error",
            message=f"{type(error).__name__}: {error}",
            traceback="" if isinstance(error, RuntimeFailure) else traceback.format_exc(),
        )
        print(f"error: part {options.part}: {type(error).__name__}: {error}", file=sys.stderr)
        return 2
    write("finished", seconds=time.monotonic() - start, passed=bool(passed))
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
