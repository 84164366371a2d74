"""Judges of programs: a model of time that shares no constant with the cost models of searches,
and times that others measured.

A search chooses by its cost model, so that model is no judge of the search. Programs and devices
here are the JSON of explanations (docs/explain.md) and of device files.
"""

from __future__ import annotations

import itertools
import json
import math
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ..errors import Error

Program = Mapping[str, Any]


def blocks_of(program: Program, extents: Sequence[int]) -> list[tuple[int, Mapping[str, Any]]]:
    """(number of blocks, uKernel) of each uKernel of a product's program that has blocks."""
    result = []
    for count, ukernel in zip(program["blocks"], program["ukernels"]):
        for axis, (extent, tile) in enumerate(zip(extents, ukernel["block_tile"])):
            if axis not in (program["axis"], 2):
                count *= math.ceil(extent / tile)
        result.append((count * program["reduce_split"], ukernel))
    return [part for part in result if part[0]]


def takes(program: Program, axes: Sequence[Mapping[str, Any]]) -> bool:
    """Returns whether `roofline_us` knows the program: a product whose workers are threads."""
    kinds = [axis["kind"] for axis in axes]
    is_product = kinds.count("reduce") == 1 and kinds[2:3] == ["reduce"]
    return is_product and {"threads_m", "stages"} <= program["schedule"].keys()


def roofline_us(device: Mapping[str, Any], program: Program, extents: Sequence[int]) -> float:
    """Microseconds of a product by a roofline for each wave of blocks, only by the data sheet.

    A block multiplies its tile, padding included, and moves its tiles of both factors and of the
    result, in f32, from or to device memory; no cache helps. The blocks of an SM take the
    greater of their FLOPs / (peak of an SM · share of its lanes that they have threads for) and
    their bytes / (bandwidth / SMs). An SM holds as many blocks as threads and shared memory allow.
    A wave's blocks go to the SMs in turn, so an SM may have low and high ones of a pair, and the
    slowest SM counts. Waves follow each other; the last one has fewer blocks on each SM.
    """
    sms = device["sm_count"]
    # For each microsecond.
    peak, bandwidth = 1e6 * device["fp32_tflops"] / sms, 1e3 * device["dram_gbps"] / sms
    lanes = round(peak / (2 * device["clock_mhz"]))
    split = program["reduce_split"]
    parts = blocks_of(program, extents)
    held = math.inf
    for _, ukernel in parts:
        (m, n, k, *batch), threads = ukernel["block_tile"], ukernel["workers"]
        shared = 4 * program["schedule"]["stages"] * (m + n) * k * math.prod(batch)
        held = min(
            held,
            device["max_blocks_per_sm"],
            device["max_threads_per_sm"] // threads,
            device["shared_memory_per_sm_bytes"] // shared,
        )
    held = max(held, 1)

    def work(tile: Sequence[int]) -> tuple[float, float]:
        """FLOPs and bytes of a block."""
        m, n, step, *batch = tile
        k = math.ceil(extents[2] / split / step) * step
        points = math.prod(batch)
        return 2.0 * m * n * k * points, 4.0 * (m * k + k * n + m * n) * points

    kinds = [(count, work(ukernel["block_tile"]), ukernel["workers"]) for count, ukernel in parts]

    def time_of(on_sm: Sequence[int]) -> float:
        """Returns the time of an SM with so many blocks of each kind."""
        flops = sum(count * one[0] for count, (_, one, _) in zip(on_sm, kinds))
        moved = sum(count * one[1] for count, (_, one, _) in zip(on_sm, kinds))
        threads = sum(count * each for count, (_, _, each) in zip(on_sm, kinds))
        return float(max(flops / (peak * min(1, threads / lanes)), moved / bandwidth))

    time_us, size = 0.0, int(sms * held)
    ends = list(itertools.accumulate(count for count, _, _ in kinds))
    for start, end in _waves(ends[-1], size):
        time_us += max(map(time_of, _loads(ends, start, end, sms)))
    if split > 1:
        moved = 4 * (split + 1) * extents[0] * extents[1] * math.prod(extents[3:])
        time_us += moved / (bandwidth * sms)
    return float(time_us)


def _waves(blocks: int, size: int) -> list[tuple[int, int]]:
    return [(start, min(start + size, blocks)) for start in range(0, blocks, size)]


def _loads(ends: Sequence[int], start: int, end: int, sms: int) -> set[tuple[int, ...]]:
    """Returns the loads of SMs in a wave that deals blocks to them in turn: blocks of each kind.

    `ends` are the ends of the kinds among all blocks.
    """
    loads = set()
    for first in range(start, min(start + sms, end)):
        # The blocks first, first + sms, … below the end of each kind and of the wave.
        below = [max(0, math.ceil((min(stop, end) - first) / sms)) for stop in ends]
        loads.add(tuple(now - before for before, now in zip([0, *below], below)))
    return loads


#: Fields of a family in a log; explanations have more.
FAMILY = ("path", "schedule", "axis", "reduce_split", "balanced_sms", "ukernels")
_LOG_VERSION = 3
#: Measurers that predict: none of them is a judge.
STAND_INS = ("model:", "cost-model")


def family_of(program: Program) -> dict[str, Any]:
    """The family of a log (docs/measurements.md) that is a family or program of an explanation."""
    return {name: program[name] for name in FAMILY if name in program}


class RecordedTimes:
    """Times in a log of measurements (docs/measurements.md), of a device or of a simulator.

    Lines of stand-ins, `model:NAME`, are left out. The later one of two lines of a kernel and shape
    counts. A last line that was cut off counts as none, and one without an end counts. Raises `Error`
    for a file that cannot be read, that has other lines than those of a log, or no time that anybody
    measured.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = os.fspath(path)
        self.devices: set[str] = set()
        self.measurers: set[str] = set()
        self._times: dict[tuple[str, str, str, tuple[int, ...]], float | None] = {}
        left_out = 0
        for number, line in self._lines():
            try:
                content = json.loads(line)
                version, measurer = content["format_version"], content.get("measurer", "")
                time_us = content.get("microseconds")
                key = _key(
                    content["device"], content["workload"], content["family"], content["shape"]
                )
                if not (time_us is None or _is_time(time_us)):
                    raise ValueError("microseconds")
            except (ValueError, KeyError, AttributeError, TypeError):
                raise Error(
                    f"{self.path}:{number}: expected a line of a log of measurements"
                ) from None
            if version != _LOG_VERSION or measurer.startswith(STAND_INS):
                left_out += 1
                continue
            self._times[key] = None if "failure" in content else time_us
            if self._times[key] is not None:
                self.devices.add(key[0])
                self.measurers.add(measurer)
        if not self.devices:
            why = f": {left_out} lines are predictions, or of another version" if left_out else ""
            raise Error(f"{self.path}: expected times that were measured{why}")

    def _lines(self) -> Iterator[tuple[int, str]]:
        try:
            text = Path(self.path).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            reason = getattr(error, "strerror", None) or "expected text"
            raise Error(f"cannot read '{self.path}': {reason}") from error
        lines = text.split("\n")
        if not _is_json(lines[-1]):
            del lines[-1]
        for number, line in enumerate(lines, 1):
            if line.strip():
                yield number, line

    def time_us(
        self, device: str, fingerprint: str, families: Sequence[Program], shape: Sequence[int]
    ) -> float | None:
        """Returns the time of the first known family; None if no family is known or it failed."""
        for family in families:
            key = _key(device, fingerprint, family_of(family), shape)
            if key in self._times:
                return self._times[key]
        return None


def _is_time(value: Any) -> bool:
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return is_number and 0 < value < math.inf


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


def _key(
    device: str, fingerprint: str, family: Program, shape: Sequence[int]
) -> tuple[str, str, str, tuple[int, ...]]:
    return str(device), str(fingerprint), json.dumps(family, sort_keys=True), tuple(map(int, shape))
