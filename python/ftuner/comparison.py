"""`compare`: what search strategies and cost models choose for one source (docs/compare.md)."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import math
import os
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from . import __version__, compiler, descriptions, judges, outputs
from .errors import CompileError, Error
from .explanation import explain_data

#: Ranks under the model that a search optimises say how well it optimises, not how good it is.
LATENCY, ROOFLINE, MEASURED = "latency", "roofline", "measured"
JUDGES = (LATENCY, ROOFLINE, MEASURED)
FORMAT_VERSION = 1

#: Statistics that count what a strategy looked at, the first that it has.
_LOOKED_AT = ("looked_at", "states", "candidates", "programs")


@dataclass(frozen=True)
class Entry:
    """What one strategy chose under one cost model for one workload."""

    workload: str
    strategy: str
    cost_model: str
    #: Of planning and explaining the whole source.
    seconds: float
    looked_at: int | None
    rejected_by_paths: int | None
    measured: int
    #: Who measured for the search; empty where nobody did.
    measurer: str
    kernels: int
    #: Means over the sizes, by their weights: points of the iteration space beyond the shape over
    #: all of them, and the share of busy SMs in all waves.
    padding: float
    sm_use: float
    #: Sizes, their weights, and by judge the microseconds of each; None: it does not know it.
    sizes: list[list[int]]
    weights: list[float]
    times: dict[str, list[float | None]]
    #: Why there is no plan; empty if there is one.
    failure: str = ""

    @property
    def is_judged_by_itself(self) -> bool:
        """Whether the judge `latency` is what the search optimised."""
        return self.cost_model == LATENCY


@dataclass(frozen=True)
class Comparison:
    """Entries of all workloads of a source on a device."""

    device: str
    source: str
    entries: list[Entry]

    def workloads(self) -> list[str]:
        return list(dict.fromkeys(entry.workload for entry in self.entries))

    def of(self, workload: str) -> list[Entry]:
        return [entry for entry in self.entries if entry.workload == workload]

    def ratios(self, workload: str, judge: str) -> dict[int, float]:
        """By entry: geometric mean over the sizes of its time over the best of all entries.

        Of sizes and entries that the judge knows; entries that it does not know at some size where
        it knows others are left out.
        """
        entries = self.of(workload)
        columns = [(i, entry.times.get(judge, [])) for i, entry in enumerate(entries)]
        known = {
            i: [time_us for time_us in times if time_us is not None]
            for i, times in columns
            if times and None not in times
        }
        best = [min(times) for times in zip(*known.values())]
        result = {}
        for i, times in known.items():
            weights = entries[i].weights
            logs = [
                weight * math.log(time_us / least)
                for weight, time_us, least in zip(weights, times, best)
            ]
            result[i] = math.exp(sum(logs) / sum(weights))
        return result

    def ranks(self, workload: str, judge: str) -> dict[int, int]:
        """By entry: 1 for the least ratio; equal ratios have equal ranks."""
        ratios = self.ratios(workload, judge)
        return {
            i: 1 + sum(other < ratio * (1 - 1e-9) for other in ratios.values())
            for i, ratio in ratios.items()
        }

    def rows(self) -> list[dict[str, Any]]:
        """One for each entry, as in the table."""
        rows = []
        for workload in self.workloads():
            ratios = {judge: self.ratios(workload, judge) for judge in JUDGES}
            ranks = {judge: self.ranks(workload, judge) for judge in JUDGES}
            for i, entry in enumerate(self.of(workload)):
                row: dict[str, Any] = {
                    "workload": workload,
                    "strategy": entry.strategy,
                    "cost_model": entry.cost_model,
                    "seconds": round(entry.seconds, 2),
                    "looked_at": entry.looked_at,
                    "rejected_by_paths": entry.rejected_by_paths,
                    "measured": entry.measured,
                    "measurer": entry.measurer,
                    "kernels": entry.kernels,
                    "padding": entry.padding,
                    "sm_use": entry.sm_use,
                    "judged_by_itself": entry.is_judged_by_itself,
                    "failure": entry.failure,
                }
                for judge in JUDGES:
                    row[f"{judge}_ratio"] = ratios[judge].get(i)
                    row[f"{judge}_rank"] = ranks[judge].get(i)
                rows.append(row)
        return rows

    def json(self) -> str:
        data = {
            "format_version": FORMAT_VERSION,
            "device": self.device,
            "source": self.source,
            "rows": self.rows(),
            "entries": [vars(entry) for entry in self.entries],
        }
        return json.dumps(data, indent=1) + "\n"

    def csv(self) -> str:
        text = io.StringIO()
        rows = self.rows()
        writer = csv.DictWriter(text, list(rows[0]) if rows else [], lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
        return text.getvalue()


def compare(
    source: compiler.Source,
    *,
    device: descriptions.Device = "h200",
    strategies: Sequence[str] = ("ftuner", "roller", "gensor", "dietcode"),
    cost_models: Sequence[str] = (LATENCY,),
    state: str | os.PathLike[str] | None = None,
    tell: Any = None,
    **options: Any,
) -> Comparison:
    """Plans a source by every strategy under every cost model, and judges what they chose.

    `options` are those of `compile`, for all of them. With `state`, a file of JSON lines, what was
    planned before is taken from there, and what is planned now is added. `tell` is called with a
    line for each plan. A strategy that finds no plan has an entry that says why. Raises `Error`
    where none does.
    """
    text = compiler.read_source(source)
    description = descriptions.resolve(device)
    known = _State(state)
    planned = []
    for strategy in strategies:
        for cost_model in cost_models:
            key = _key(text, description, strategy, cost_model, options)
            answer = known.find(key)
            if answer is None:
                if tell:
                    tell(f"{strategy} by {cost_model}")
                answer = _plan(text, device, strategy, cost_model, options)
                known.add(key, answer)
            planned.append((strategy, cost_model, answer))
    if not any(answer["data"] for _, _, answer in planned):
        raise Error(planned[0][2]["failure"] if planned else "expected a strategy and a cost model")
    names = list(
        dict.fromkeys(
            workload["name"]
            for _, _, answer in planned
            for workload in (answer["data"] or {}).get("workloads", [])
        )
    )
    entries = []
    for name in names:
        for strategy, cost_model, answer in planned:
            found = [one for one in (answer["data"] or {}).get("workloads", []) if one["name"] == name]
            seconds = answer["seconds"]
            if found:
                device_facts = description.content()
                entries.append(_entry(found[0], device_facts, strategy, cost_model, seconds))
            else:
                failure = answer["failure"] or "the workload was not formed"
                entries.append(_failed(name, strategy, cost_model, seconds, failure))
    return Comparison(description.name, text.name, entries)


class _State:
    """Plans that are kept in a file, a JSON object in each line."""

    def __init__(self, path: str | os.PathLike[str] | None) -> None:
        self._path = None if path is None else Path(path)
        self._answers: dict[str, dict[str, Any]] = {}
        if self._path is None or not self._path.exists():
            return
        lines = self._path.read_text(encoding="utf-8").splitlines(keepends=True)
        if lines and not lines[-1].endswith("\n"):
            # It was cut off.
            outputs.write_one(str(self._path), "".join(lines[:-1]).encode("utf-8"))
            del lines[-1]
        for number, line in enumerate(lines, 1):
            try:
                content = json.loads(line)
                self._answers[content.pop("key")] = {
                    name: content[name] for name in ("seconds", "failure", "data")
                }
            except (ValueError, KeyError, AttributeError, TypeError):
                raise Error(f"{self._path}:{number}: expected a plan in each line") from None

    def find(self, key: str) -> dict[str, Any] | None:
        return self._answers.get(key)

    def add(self, key: str, answer: dict[str, Any]) -> None:
        self._answers[key] = answer
        if self._path is not None:
            with open(self._path, "a", encoding="utf-8") as file:
                file.write(json.dumps({"key": key, **answer}) + "\n")


def _key(
    text: compiler.SourceText,
    description: descriptions.Description,
    strategy: str,
    cost_model: str,
    options: Mapping[str, Any],
) -> str:
    parts = [__version__, description.text, strategy, cost_model]
    parts += [f"{name}={value}" for name, value in sorted(options.items())]
    return hashlib.sha256(repr(parts).encode() + text.content).hexdigest()


def _plan(
    text: compiler.SourceText,
    device: descriptions.Device,
    strategy: str,
    cost_model: str,
    options: Mapping[str, Any],
) -> dict[str, Any]:
    start = time.perf_counter()
    data, failure = None, ""
    try:
        data = explain_data(
            text, device=device, strategy=strategy, cost_model=cost_model, **options
        )
    except CompileError as error:
        failure = str(error).splitlines()[0]
    return {"seconds": time.perf_counter() - start, "failure": failure, "data": data}


def _first(statistics: Mapping[str, float], names: Iterable[str]) -> int | None:
    return next((int(statistics[name]) for name in names if name in statistics), None)


def _rejected(statistics: Mapping[str, float]) -> int | None:
    """Candidates that no codegen path can emit; of the paper's rules, those of whole warps."""
    if "rejected_by_path" in statistics:
        return int(statistics["rejected_by_path"])
    if "states" in statistics or "candidates_whole_warps" not in statistics:
        return None
    return int(statistics["candidates_whole_warps"] - statistics["candidates_emittable"])


def _entry(
    workload: Mapping[str, Any],
    device: Mapping[str, Any],
    strategy: str,
    cost_model: str,
    seconds: float,
) -> Entry:
    shapes, statistics = workload["shapes"], workload["statistics"]
    weights: list[float] = [shape["weight"] for shape in shapes]
    programs = [shape["program"] for shape in shapes]

    def mean(values: Iterable[float]) -> float:
        return sum(weight * value for weight, value in zip(weights, values)) / sum(weights)

    def roofline(shape: Mapping[str, Any]) -> float | None:
        if not judges.takes(shape["program"], workload["axes"]):
            return None
        return judges.roofline_us(device, shape["program"], shape["shape"])

    measured = [program.get("measured_us") for program in programs]
    return Entry(
        workload=workload["name"],
        strategy=strategy,
        cost_model=cost_model,
        seconds=seconds,
        looked_at=_first(statistics, _LOOKED_AT),
        rejected_by_paths=_rejected(statistics),
        measured=_first(statistics, ("measured_programs", "measured")) or 0,
        measurer=next((one["measurer"] for one in shapes if one.get("measurer")), ""),
        kernels=len(workload["families"]),
        padding=1 - mean(program["metrics"]["pad"] for program in programs),
        sm_use=mean(program["metrics"]["occ"] for program in programs),
        sizes=[shape["shape"] for shape in shapes],
        weights=weights,
        times={
            LATENCY: [program["predicted_us"] for program in programs],
            ROOFLINE: [roofline(shape) for shape in shapes],
            MEASURED: measured,
        },
    )


def _failed(workload: str, strategy: str, cost_model: str, seconds: float, failure: str) -> Entry:
    return Entry(
        workload, strategy, cost_model, seconds, None, None, 0, "", 0, 0.0, 0.0, [], [], {}, failure
    )
