"""Programs of a workload's pools, compiled: what the parts `pools` and `selection` time.

The search explains each size with all programs that it ranked; their families go
into one hand-written plan, each with a size of its own, so that a kernel is emitted
for it. A program with slices of k is two launches and a buffer between them, so it is a function
of its own, with a plan for its size alone. Runs where FTuner's tools are (prepare.py).
"""

from __future__ import annotations

import dataclasses
import functools
import json
import math
import pathlib
import random
import re
import subprocess
from collections.abc import Sequence
from typing import Any

from .workloads import Workload

ALL_PROGRAMS = 1000000

# Programs kept of a size: all of the best ones, and of larger pools the best of every kind and a
# sample of the others, so that the sizes of pools do not decide over the time.
BEST_PROGRAMS = 16
BEST_OF_A_KIND = 2
MOST_OF_KINDS = 24
MOST_PROGRAMS = 50
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


def family_text(program: dict[str, Any]) -> str:
    """A family as a plan's list of families holds it.

    Partitions are not balanced: a program is launched with blocks of its own.
    """
    return re.sub(r", balanced = \d+", "", program["attribute"]).removeprefix("#ukernel.family")


def options_for_pools(workload: Workload) -> list[str]:
    """Options of a workload; no kernels for CUDA cores where tensor cores compute it."""
    if workload.type not in ("f16", "bf16"):
        return workload.options()
    paths = [path for path in workload.paths.split(",") if path != "simt"]
    return dataclasses.replace(workload, paths=",".join(paths)).options()


def explain(
    tools: pathlib.Path, path: pathlib.Path, device: str, workload: Workload, size: int
) -> list[dict[str, Any]]:
    """All programs that the search ranked for T = size, best first."""
    text = run(
        [
            str(tools / "ftuner-translate"),
            str(path),
            "--ftuner-explain",
            "--json",
            f"--device={device}",
            f"--size=T={workload.symbol_size(size)}",
            f"--top-k={ALL_PROGRAMS}",
            *options_for_pools(workload),
        ]
    )
    shape = json.loads(text)["workloads"][0]["shapes"][0]
    # Kernels of programs that need an alignment which rows of this size do not have
    # cannot run: the unaligned general family serves such a size, whichever program is best.
    return list(shape["programs"]) if shape["aligned"] else []


def kind_of(program: dict[str, Any]) -> tuple[Any, ...]:
    """A key that is equal for programs that copy, multiply and store in the same way, whatever their tiles are."""
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


# The best blocks whose programs are varied, with operands as they are and swapped.
BASES = 4
SWAPPED_BASES = 3
CLUSTERS = ((1, 1), (2, 1), (1, 2))
# The best programs that get slices of k where they have fewer blocks than SMs, and how many slices.
SLICED_BASES = 2
SLICES = (2, 4, 8)
# As in the search (docs/ideas.md).
LEAST_STEPS = 4


def variants(
    programs: Sequence[dict[str, Any]],
    batch: int,
    extents: Sequence[int],
    sms: int,
    least_steps: int = LEAST_STEPS,
) -> list[tuple[int | None, dict[str, Any]]]:
    """(rank, program): programs that show what single mechanisms cost. Those that the search left out have
    neither rank nor score, and the compiler does not take all of them.

    extents: of the axes m, n and k. sms: of the device. least_steps: of a slice of k.
    """
    ranks = {_canonical(program): rank for rank, program in reversed([*enumerate(programs, 1)])}
    found = [
        *_schedules(programs, extents), *_slices(programs, extents, sms // batch, least_steps)
    ]  # fmt: skip
    result: dict[str, tuple[int | None, dict[str, Any]]] = {}
    for program in found:
        text = _canonical(program)
        rank = ranks.get(text)
        result.setdefault(text, (rank, programs[rank - 1]) if rank else (None, program))
    return list(result.values())


def _canonical(program: dict[str, Any]) -> str:
    """A text that is equal for programs of one kernel, in whatever order its fields stand."""
    schedule = program["schedule"]
    names = ("cluster_m", "cluster_n", "persistent_blocks", "ping_pong")
    return f"{_plain(program)} {[schedule.get(name, 0) for name in names]}"


def _plain(program: dict[str, Any]) -> str:
    """A program's family without the fields that are varied."""
    return re.sub(
        r", (cluster = \[\d+, \d+\]|persistent = \d+|ping_pong = true|balanced = \d+)",
        "",
        program["attribute"],
    )


def _slices(
    programs: Sequence[dict[str, Any]], extents: Sequence[int], blocks: int, least_steps: int
) -> list[dict[str, Any]]:
    """The best programs of fewer blocks, with slices of k, whatever a second kernel is taken to cost."""
    bases = []
    for program in programs:
        tiles = [math.ceil(a / b) for a, b in zip(extents, program["ukernels"][0]["block_tile"])]
        is_whole = program["reduce_split"] == 1 and len(program["ukernels"]) == 1
        is_taken = is_whole and not program["schedule"].get("persistent_blocks")
        if is_taken and tiles[0] * tiles[1] < blocks and tiles[2] >= SLICES[0] * least_steps:
            bases.append((program, tiles[2]))
    result = []
    for base, steps in bases[:SLICED_BASES]:
        for slices in SLICES:
            if steps < slices * least_steps:
                continue
            text = re.sub(r", balanced = \d+", "", base["attribute"])
            names = ("path", "schedule", "axis", "ukernels", "blocks")
            result.append(
                {
                    **{name: base[name] for name in names},
                    "reduce_split": slices,
                    "attribute": f"{text.removesuffix('>')}, split = {slices}>",
                }
            )
    return result


def _schedules(programs: Sequence[dict[str, Any]], extents: Sequence[int]) -> list[dict[str, Any]]:
    """The best blocks of `wgmma` with every choice of clusters, persistence and ping-pong, of which the
    search keeps what is predicted to be fastest."""
    bases: dict[tuple[Any, ...], dict[str, Any]] = {}
    for program in programs:
        schedule, tiles = program["schedule"], program["ukernels"]
        is_taken = (
            program["path"] == "wgmma" and schedule["tma"] and schedule["producer_warpgroups"]
        )
        if is_taken and len(tiles) == 1 and program["reduce_split"] == 1:
            block = [*tiles[0]["block_tile"]]
            block[0] //= schedule["cluster_m"]
            block[1] //= schedule["cluster_n"]
            names = ("swap_operands", "warpgroups_m", "warpgroups_n")
            key = (*(schedule[name] for name in names), *block)
            bases.setdefault(key, {**program, "block": block})
    numbers = [program["schedule"].get("persistent_blocks", 0) for program in programs]
    persistent = min((number for number in numbers if number), default=0)
    result = []
    for swap, most in ((0, BASES), (1, SWAPPED_BASES)):
        for key in [key for key in bases if key[0] == swap][:most]:
            for cluster in CLUSTERS:
                for blocks, ping_pong in ((0, 0), (persistent, 0), (persistent, 1)):
                    # Both sets of consumers fit beside the producers.
                    consumers = (1 + ping_pong) * key[1] * key[2]
                    if (ping_pong and not blocks) or consumers > 3:
                        continue
                    result.append(_variant(bases[key], cluster, blocks, ping_pong, extents))
    return result


def _variant(
    base: dict[str, Any],
    cluster: tuple[int, int],
    persistent: int,
    ping_pong: int,
    extents: Sequence[int],
) -> dict[str, Any]:
    tile = [*base["block"]]
    for axis, blocks in enumerate(cluster):
        tile[axis] *= blocks
    fields = ", ".join(
        text
        for text, is_there in (
            (f"cluster = [{cluster[0]}, {cluster[1]}]", cluster != (1, 1)),
            (f"persistent = {persistent}", persistent > 0),
            ("ping_pong = true", ping_pong > 0),
        )
        if is_there
    )
    text = _plain(base)
    text = text.replace(">, axis", f"{', ' * bool(fields)}{fields}>, axis", 1)
    text = re.sub(r"tiles = \[\[[^]]*\]\]", f"tiles = [[{', '.join(map(str, tile))}]]", text)
    schedule = {
        **base["schedule"],
        "cluster_m": cluster[0],
        "cluster_n": cluster[1],
        "persistent_blocks": persistent,
        "ping_pong": ping_pong,
    }
    axis = base["axis"]
    return {
        "path": base["path"],
        "schedule": schedule,
        "axis": axis,
        "reduce_split": 1,
        "ukernels": [{**base["ukernels"][0], "block_tile": tile}],
        "attribute": text,
        "blocks": [-(-extents[axis] // tile[axis])],
    }


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


@dataclasses.dataclass(frozen=True)
class _Planned:
    """A workload's module with the search's own plan.

    before, after: its text around the plan. symbol: of the plan. axes: how many the workload has.
    unaligned: the family that serves operands of any alignment, which every plan needs.
    """

    before: str
    after: str
    symbol: str
    axes: int
    unaligned: str

    def plan(self, symbol: str, families: Sequence[str], sizes: Sequence[int], general: int) -> str:
        """A plan of these families (family_text), each of which serves one size, and of the unaligned
        one; `general` is the number of that for other sizes."""
        boxes = []
        for number, size in enumerate(sizes):
            box = ", ".join([f"<{size} to {size}>"] + ["<0 to ?>"] * (self.axes - 1))
            boxes.append(f"<[{box}] to {number}>")
        return (
            f"ukernel.plan @{symbol} <families = [{', '.join([*families, self.unaligned])}], "
            f"choices = [{', '.join(boxes)}], general = {general}, "
            f"unaligned_general = {len(families)}>\n"
        )


@functools.cache
def _planned(tools: pathlib.Path, path: pathlib.Path, device: str) -> _Planned:
    # Paths that run on all devices: others have a second plan, which the library would hold, too.
    options = f"--ftuner-front-end=device={device} paths=simt,mma"
    text = run([str(tools / "ftuner-opt"), str(path), options])
    plan = re.search(r"ukernel\.plan @(\S+) <.*>\n", text)
    ranges = re.search(r"ranges = \[(.*?)\]", text)
    if not plan or not ranges:
        raise ToolFailure(f"ftuner-opt {path}: expected a plan and a workload in its output")
    return _Planned(
        text[: plan.start()],
        text[plan.end() :],
        plan.group(1),
        len(re.findall(r"#ukernel\.range<", ranges.group(1))),
        _unaligned_general_of(plan.group(0)),
    )


def module_of_families(
    tools: pathlib.Path, path: pathlib.Path, device: str, families: list[str]
) -> str:
    """The workload's module with a plan of these families (family_text), so that each has a kernel."""
    planned = _planned(tools, path, device)
    # Multiples of 4 keep the rows of square shapes aligned.
    sizes = [4 * (number + 1) for number in range(len(families))]
    return planned.before + planned.plan(planned.symbol, families, sizes, 0) + planned.after


def is_valid(tools: pathlib.Path, path: pathlib.Path, device: str, program: dict[str, Any]) -> bool:
    """Returns true if the compiler makes a kernel of a program."""
    planned = _planned(tools, path, device)
    plan = planned.plan(planned.symbol, [family_text(program)], [4], 0)
    command = [str(tools / "ftuner-translate"), "-", "--ftuner-to-ptx", f"--device={device}"]
    done = subprocess.run(
        command, input=planned.before + plan + planned.after, capture_output=True, text=True
    )
    return done.returncode == 0


def module_of_functions(
    tools: pathlib.Path,
    path: pathlib.Path,
    device: str,
    name: str,
    programs: Sequence[tuple[int, dict[str, Any]]],
) -> str:
    """The workload's module with a function for each (size, program), which runs the program at that size.

    They are called `name` and a number (function_name).
    """
    planned = _planned(tools, path, device)
    found = re.search(r"^  func\.func @.*?^  }\n", planned.after, re.MULTILINE | re.DOTALL)
    if not found:
        raise ToolFailure(f"ftuner-opt {path}: expected a function in its output")
    plans, functions = [], []
    for number, (size, program) in enumerate(programs):
        symbol, family = f"{planned.symbol}_{number}", program["attribute"]
        plans.append(
            "  " + planned.plan(symbol, [family.removeprefix("#ukernel.family")], [size], 1)
        )
        body = re.sub(rf"@{re.escape(name)}\b", f"@{function_name(name, number)}", found.group(0))
        functions.append(re.sub(rf"@{re.escape(planned.symbol)}\b", f"@{symbol}", body))
    return (
        planned.before.rstrip(" ")
        + "".join(plans)
        + planned.after[: found.start()]
        + "".join(functions)
        + planned.after[found.end() :]
    )


def function_name(workload: str, number: int) -> str:
    return f"{workload}_s{number}"
