"""Measured rates of a card for its description: what bandwidths.cu prints, as device fields."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..errors import Error

#: The micro-benchmarks whose output is read.
BENCHMARK = "benchmarks/gpu/bandwidths.cu"


def read_bandwidths(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Reads the output of the micro-benchmarks. Raises `Error` for other files."""
    try:
        content = json.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise Error(f"cannot read '{path}': {error.strerror}") from None
    except ValueError as error:
        raise Error(f"{path}: expected the JSON that {BENCHMARK} prints, but got {error}") from None
    if not isinstance(content, dict):
        raise Error(f"{path}: expected the object that {BENCHMARK} prints")
    return content


def with_measured(description: Mapping[str, Any], bandwidths: Mapping[str, Any]) -> dict[str, Any]:
    """The description with the fields `measured_…` and where they come from.

    Bandwidth of device memory is that of reads from the largest footprint. Outputs without
    `shared_gbps` have bytes a clock and SM instead, which count at their clock, or else at that of
    the description. Without `fp32_tflops` there is no such field. Raises `Error` for the output of
    another card, and for one that lacks what is needed.
    """
    name = description["name"]
    sms = _number(bandwidths, "sm_count")
    if sms != description["sm_count"]:
        raise Error(
            f"expected measurements of {description['sm_count']} SMs as device '{name}' has, "
            f"but got {sms:g}"
        )
    card = bandwidths.get("name", "an unnamed card")
    fields: dict[str, float] = {}
    sources: dict[str, str] = {}

    def put(field: str, value: float, source: str) -> None:
        fields[field] = float(f"{value:.5g}")
        if fields[field] == int(fields[field]):
            fields[field] = int(fields[field])
        sources[field] = f"{BENCHMARK} on {card}: {source}"

    footprint, read = _largest(bandwidths)
    if footprint < 4 * description["l2_mib"] * 2**20:
        raise Error(
            f"expected reads from at least four times the L2 cache of {description['l2_mib']:g} "
            f"MiB, but got {footprint:g} bytes at most"
        )
    put("measured_dram_gbps", read, f"reads from {footprint / 2**20:g} MiB")
    if "shared_gbps" in bandwidths:
        put(
            "measured_shared_memory_gbps",
            _number(bandwidths, "shared_gbps"),
            "16-byte reads of all SMs",
        )
    else:
        per_clock = _number(bandwidths, "shared_bytes_per_clock")
        clock = bandwidths.get("clock_mhz")
        at = "the clock that was measured" if clock else "clock_mhz"
        put(
            "measured_shared_memory_gbps",
            per_clock * sms * (clock or description["clock_mhz"]) * 1e-3,
            f"{per_clock:g} B a clock and SM, at {at}",
        )
    if "fp32_tflops" in bandwidths:
        put("measured_fp32_tflops", _number(bandwidths, "fp32_tflops"), "FMAs of all SMs")
    return _merged(description, fields, sources)


def _number(bandwidths: Mapping[str, Any], field: str) -> float:
    value = bandwidths.get(field)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise Error(f"field '{field}' of the measurements: expected a number, but got {value!r}")
    if not (math.isfinite(value) and value > 0):
        raise Error(f"field '{field}' of the measurements: expected more than 0, but got {value}")
    return value


def _largest(bandwidths: Mapping[str, Any]) -> tuple[float, float]:
    """The largest footprint in bytes, and the bandwidth of reads from it."""
    rows = bandwidths.get("bandwidth")
    if not isinstance(rows, list) or not rows or not all(isinstance(row, dict) for row in rows):
        raise Error("field 'bandwidth' of the measurements: expected a list of footprints")
    row = max(rows, key=lambda row: _number(row, "footprint_bytes"))
    return _number(row, "footprint_bytes"), _number(row, "read_gbps")


def _merged(
    description: Mapping[str, Any], fields: Mapping[str, float], sources: Mapping[str, str]
) -> dict[str, Any]:
    """The description with these fields before its sources, in place of older ones."""
    result = {
        key: value
        for key, value in description.items()
        if key != "source" and not key.startswith("measured_")
    }
    result.update(fields)
    given = description.get("source", {})
    source = dict(given) if isinstance(given, Mapping) else {"all": given}
    source = {key: text for key, text in source.items() if not key.startswith("measured_")}
    result["source"] = {**source, **sources}
    return result
