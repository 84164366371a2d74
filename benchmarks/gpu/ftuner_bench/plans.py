"""Programs of a workload's pools, compiled: what the parts `pools` and `selection` time.

The search explains each size with all programs that it ranked; their families go
into one hand-written plan, each with a size of its own, so that a kernel is emitted
for it. Runs where FTuner's tools are (prepare.py).
"""

from __future__ import annotations

import json
import pathlib
import random
import re
import subprocess
from typing import Any

from .workloads import Workload

ALL_PROGRAMS = 1000000

# Programs kept of a size: all of the best ones, and of larger pools the best of every kind and a
# sample of the others, so that the sizes of pools do not decide over the time.
BEST_PROGRAMS = 20
BEST_OF_A_KIND = 2
MOST_OF_KINDS = 36
MOST_PROGRAMS = 80
# Fields of a schedule that make another kind of program.
KIND_FIELDS = (
    *("swap_operands", "producer_warpgroups", "tma", "warpgroups_m", "warpgroups_n"),
    *("cluster_m", "cluster_n", "ping_pong"),
)


class ToolFailure(Exception):
    """A tool failed; the text is what it printed."""


def run(command: list[str]) -> str:
    process = subprocess.run(command, capture_output=True, text=True)
    if process.returncode != 0:
        raise ToolFailure(f"{' '.join(command)}\n{process.stderr.strip()}")
    return process.stdout


def family_of(program: dict[str, Any]) -> str:
    """A key that is equal for programs of one kernel."""
    return family_text(program)


def family_text(program: dict[str, Any]) -> str:
    """A family as a plan's list of families holds it.

    Partitions are not balanced: a program is launched with blocks of its own.
    """
    return re.sub(r", balanced = \d+", "", program["attribute"]).removeprefix("#ukernel.family")


def explain(
    tools: pathlib.Path, path: pathlib.Path, device: str, workload: Workload, size: int
) -> list[dict[str, Any]]:
    """All programs that the search ranked for T = size, best first; without those of two launches."""
    text = run(
        [
            str(tools / "ftuner-translate"),
            str(path),
            "--ftuner-explain",
            "--json",
            f"--device={device}",
            f"--size=T={workload.symbol_size(size)}",
            f"--top-k={ALL_PROGRAMS}",
            *workload.options(),
        ]
    )
    shape = json.loads(text)["workloads"][0]["shapes"][0]
    # Kernels of programs that need an alignment which rows of this size do not have
    # cannot run: the unaligned general family serves such a size, whichever program is best.
    programs = shape["programs"] if shape["aligned"] else []
    return [program for program in programs if program["reduce_split"] == 1]


def kind_of(program: dict[str, Any]) -> tuple[Any, ...]:
    """What programs share that copy, multiply and store in the same way, whatever their tiles are."""
    schedule = program["schedule"]
    is_persistent = schedule.get("persistent_blocks", 0) > 0
    fields = (schedule.get(name, 0) for name in KIND_FIELDS)
    return program["path"], program["reduce_split"] > 1, is_persistent, *fields


def sample(programs: list[dict[str, Any]], seed: int) -> list[tuple[int, dict[str, Any]]]:
    """(rank from 1, program): the best, the best of each kind, and a sample of the others."""
    ranked = list(enumerate(programs, 1))
    if len(ranked) <= MOST_PROGRAMS:
        return ranked
    kept = dict(ranked[:BEST_PROGRAMS])
    kinds: dict[tuple[Any, ...], list[tuple[int, dict[str, Any]]]] = {}
    for rank, program in ranked:
        kinds.setdefault(kind_of(program), []).append((rank, program))
    # The first of every kind before the second of any.
    for place in range(BEST_OF_A_KIND):
        for own in kinds.values():
            if place < len(own) and len(kept) < BEST_PROGRAMS + MOST_OF_KINDS:
                kept.update([own[place]])
    rest = [item for item in ranked if item[0] not in kept]
    kept.update(random.Random(seed).sample(rest, MOST_PROGRAMS - len(kept)))
    return sorted(kept.items())


def _unaligned_general_of(plan: str) -> str:
    """The unaligned general family of a plan, as it stands in its text."""
    families = plan[plan.index("families = [") + len("families = [") :]
    index = int(re.search(r"unaligned_general = (\d+)", plan).group(1))  # type: ignore[union-attr]
    found, depth, begin = [], 0, 0
    for place, letter in enumerate(families):
        depth += (letter in "<[") - (letter in ">]")
        if depth < 0 or (depth == 0 and letter == ","):
            found.append(families[begin:place].strip())
            begin = place + 1
        if depth < 0:
            break
    return found[index]


def module_of_families(
    tools: pathlib.Path, path: pathlib.Path, device: str, families: list[str]
) -> str:
    """The workload's module with a plan of these families (family_text) and the unaligned general one.

    A plan needs an unaligned general family whose accesses are of one element: the search's own.
    """
    text = run([str(tools / "ftuner-opt"), str(path), f"--ftuner-front-end=device={device}"])
    plan = re.search(r"ukernel\.plan @(\S+) <.*>\n", text)
    ranges = re.search(r"ranges = \[(.*?)\]", text)
    if not plan or not ranges:
        raise ToolFailure(f"ftuner-opt {path}: expected a plan and a workload in its output")
    axes = len(re.findall(r"#ukernel\.range<", ranges.group(1)))
    boxes = []
    for number in range(len(families)):
        # Multiples of 4 keep the rows of square shapes aligned.
        height = 4 * (number + 1)
        box = ", ".join([f"<{height} to {height}>"] + ["<0 to ?>"] * (axes - 1))
        boxes.append(f"<[{box}] to {number}>")
    unaligned = _unaligned_general_of(plan.group(0))
    replacement = (
        f"ukernel.plan @{plan.group(1)} <families = [{', '.join([*families, unaligned])}], "
        f"choices = [{', '.join(boxes)}], general = 0, unaligned_general = {len(families)}>\n"
    )
    return text[: plan.start()] + replacement + text[plan.end() :]
