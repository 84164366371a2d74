"""The fixed set of kernels of every codegen path (docs/check-gpu.md), before anything else.

The families are compiled when the bundle is made, with machine code for the device, and run here
as `ftuner check-gpu` runs them: one after the other in a process of its own, which is killed where
a kernel hangs. Each family's outcome is written at once. Those that failed are named, and the other
parts go on; of the path of one that hung the others are skipped.
"""

from __future__ import annotations

import dataclasses
import pathlib
import tempfile

from . import bundle
from .session import Session

# Seconds for a family after the first one, which loads the driver.
TIMEOUT = 5.0


def prepare(folder: pathlib.Path, device: str) -> tuple[int, list[str]]:
    """Compiles the families that a described device runs into `folder`; how many, and what the
    compiler refused."""
    from ftuner import compiler
    from ftuner.describe import descriptions
    from ftuner.proof import check
    from ftuner.proof.families import parse_capability, sets

    description = descriptions.resolve(device)
    capability = parse_capability(description.content()["compute_capability"])
    families = [family for one in sets().values() for family in one.for_card(capability)]
    folder.mkdir(parents=True)
    with tempfile.TemporaryDirectory() as temporary:
        libraries, refused = check.build(
            families,
            description,
            pathlib.Path(temporary),
            compiler.build_family,
            cubins=["auto"],
        )
        for symbol, library in libraries.items():
            bundle.pack(library, folder / f"{symbol}.so.xz")
    return len(libraries), [f"{one.path}, {one.name}: {one.words}" for one in refused.values()]


def measure(session: Session) -> bool:
    if session.bundle.rehearsal:
        session.write("note", text="the proof needs a GPU, and was not rehearsed")
        return True
    from ftuner.proof import check
    from ftuner.proof.families import sets
    from ftuner.proof.verdicts import Outcome

    packed = session.folder("proof")
    if packed is None:
        return True
    libraries = {path.name.split(".")[0]: path for path in sorted(packed.iterdir())}
    families = [
        family for one in sets().values() for family in one.families if family.symbol in libraries
    ]
    unpacked = {symbol: bundle.unpack_to_file(path) for symbol, path in libraries.items()}

    def record(outcome: Outcome) -> None:
        session.write("family", **dataclasses.asdict(outcome))
        if outcome.status != "passed":
            words = f"{outcome.path}, {outcome.name}: {outcome.status} {outcome.words}"
            print(f"FAILED {words}", flush=True)

    outcomes = check.run(0, families, unpacked, TIMEOUT, record)
    return all(outcome.status == "passed" for outcome in outcomes.values())
