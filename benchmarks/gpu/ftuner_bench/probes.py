"""Costs of mechanisms of Hopper: probes.cu is compiled where the GPU is, and prints a JSON object for each
of its sections, each in a process of its own.

  boxes      boxes of tensor maps whose last rows lie outside the tensor; with a fit of their price
  launches   a second kernel, with and without programmatic dependent launch
  multicast  tiles that blocks share, read by each or multicast in a cluster
"""

from __future__ import annotations

import json
import subprocess
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from .builds import built
from .session import Session

SECTIONS = ("boxes", "launches", "multicast")


def measure(session: Session) -> bool:
    if session.bundle.rehearsal:
        session.write("note", text="probes need a GPU, and were not rehearsed")
        return True
    program = built(session.scratch, "probes", max(1.0, session.seconds_left()))
    passed = True
    for section in SECTIONS:
        try:
            done = subprocess.run(
                [str(program), section],
                capture_output=True,
                text=True,
                timeout=max(1.0, session.seconds_left()),
            )
            if done.returncode != 0:
                raise RuntimeError(f"status {done.returncode}: {done.stderr.strip()}")
            found = json.loads(done.stdout)
            session.write("probe", section=section, **found)
            if section == "boxes":
                session.write("box_rows", prices=prices(found["boxes"]))
        except (RuntimeError, ValueError, subprocess.TimeoutExpired) as error:
            passed = False
            session.write(
                "error", message=f"{section}: {type(error).__name__}: {error}", traceback=""
            )
            print(f"FAILED {section}: {error}", flush=True)
    return passed


def prices(boxes: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Fits clocks of a box = fixed + inside · valid rows + outside · other rows, by least squares, for each
    number of blocks and of boxes in flight."""
    groups: dict[tuple[int, int], list[Mapping[str, Any]]] = defaultdict(list)
    for box in boxes:
        groups[box["blocks"], box["in_flight"]].append(box)
    result = []
    for (blocks, in_flight), group in sorted(groups.items()):
        terms = [(1.0, box["valid_rows"], box["box_rows"] - box["valid_rows"]) for box in group]
        clocks = [box["clocks_per_box"] for box in group]
        fit = least_squares(terms, clocks)
        if fit is None:
            continue
        errors = [
            abs(sum(a * b for a, b in zip(fit, row)) - value) / value
            for row, value in zip(terms, clocks)
        ]
        result.append(
            {
                "blocks": blocks,
                "in_flight": in_flight,
                "clocks_fixed": fit[0],
                "clocks_per_valid_row": fit[1],
                "clocks_per_row_outside": fit[2],
                "mean_error": sum(errors) / len(errors),
            }
        )
    return result


def least_squares(terms: Sequence[Sequence[float]], values: Sequence[float]) -> list[float] | None:
    """The factors of the terms, by the normal equations; None where they do not decide."""
    count = len(terms[0])
    rows = [
        [sum(row[i] * row[j] for row in terms) for j in range(count)]
        + [sum(row[i] * value for row, value in zip(terms, values))]
        for i in range(count)
    ]
    for place in range(count):
        pivot = max(range(place, count), key=lambda row: abs(rows[row][place]))
        if abs(rows[pivot][place]) < 1e-9:
            return None
        rows[place], rows[pivot] = rows[pivot], rows[place]
        for other in range(count):
            if other != place:
                factor = rows[other][place] / rows[place][place]
                rows[other] = [a - factor * b for a, b in zip(rows[other], rows[place])]
    return [rows[place][count] / rows[place][place] for place in range(count)]
