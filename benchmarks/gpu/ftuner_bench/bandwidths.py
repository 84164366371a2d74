"""Bandwidths that the card reaches: bandwidths.cu is compiled there, and prints a JSON object, the record."""

from __future__ import annotations

import json
import subprocess

from .builds import built
from .session import Session


def measure(session: Session) -> bool:
    if session.bundle.rehearsal:
        session.write("note", text="bandwidths needs a GPU, and was not rehearsed")
        return True
    program = built(session.scratch, "bandwidths", max(1.0, session.seconds_left() / 2))
    done = subprocess.run(
        [str(program)], capture_output=True, text=True, timeout=max(1.0, session.seconds_left())
    )
    if done.returncode != 0:
        raise RuntimeError(f"bandwidths ended with status {done.returncode}: {done.stderr.strip()}")
    session.write("bandwidths", rates=json.loads(done.stdout))
    return True
