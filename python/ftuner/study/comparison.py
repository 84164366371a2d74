"""`compare`: choices of search strategies and cost models for one source (docs/compare.md)."""

from __future__ import annotations

import csv
import io
import json
import math
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from .. import compiler
from ..describe import descriptions
from ..errors import Error
from ..host import outputs
from . import judges, plans
from .plans import Answer, State, Strategy

LATENCY, ROOFLINE, MEASURED = "latency", "roofline", "measured"
#: Judges that need no file.
JUDGES = (LATENCY, ROOFLINE, MEASURED)
#: Judges that are a log of measurements.
FILE_JUDGES = ("recorded", "simulated")
FORMAT_VERSION = 2
STRATEGIES = ("ftuner", "roller", "gensor", "dietcode")
#: The name of what a source's workloads are together.
WHOLE = "(all)"

#: Statistics that count what a strategy looked at, the first that it has.
_LOOKED_AT = ("looked_at", "states", "candidates", "programs")


@dataclass(frozen=True)
class Entry:
    """Choice of one strategy under one cost model for one workload on one device."""

    source: str
    device: str
    workload: str
    strategy: str
    cost_model: str
    #: Seconds of planning and explaining the whole source.
    seconds: float
    #: Sizes that the search looked at.
    samples: int | None = None
    looked_at: int | None = None
    rejected_by_paths: int | None = None
    measured: int = 0
    #: Name of the measurer of the search; empty without one.
    measurer: str = ""
    kernels: int = 0
    #: Size of the PTX of its kernels; None if it was not generated.
    code_bytes: int | None = None
    #: Workloads of the source that are equal to it, with itself.
    count: int = 1
    #: Extents of each axis at each size, number of the main axis, weights of the sizes.
    sizes: list[list[int]] = field(default_factory=list)
    main_axis: int = 0
    weights: list[float] = field(default_factory=list)
    #: At each size, points of the iteration space beyond the shape over all of them, and the share
    #: of busy SMs in all waves.
    size_padding: list[float] = field(default_factory=list)
    size_sm_use: list[float] = field(default_factory=list)
    #: Microseconds of each size, by judge; None: the judge does not know the size.
    times: dict[str, list[float | None]] = field(default_factory=dict)
    #: Judges that the search optimised: ranks under them say how well it did, not how good it is.
    own_judges: list[str] = field(default_factory=list)
    #: The reason why the plan does not exist; empty if it exists.
    failure: str = ""
    #: The reason why its code could not be generated; empty if it was, or was not asked for.
    code_failure: str = ""
    #: Minimum microseconds of fallback kernels, without a plan; None if not known.
    bound_us: float | None = None

    def mean(self, values: Sequence[float]) -> float:
        """Over the sizes, by their weights."""
        total = sum(weight * value for weight, value in zip(self.weights, values))
        return total / sum(self.weights)

    @property
    def predicted_us(self) -> float | None:
        """Mean of the judge `latency` over the sizes."""
        times = [time_us for time_us in self.times.get(LATENCY, []) if time_us is not None]
        return self.mean(times) if times and len(times) == len(self.weights) else None


@dataclass(frozen=True)
class Group:
    """Entries of one workload on one device."""

    entries: Sequence[Entry]

    @property
    def key(self) -> tuple[str, str, str]:
        first = self.entries[0]
        return first.source, first.device, first.workload

    @property
    def plans(self) -> list[Entry]:
        return [entry for entry in self.entries if not entry.failure]

    @property
    def sizes(self) -> list[list[int]]:
        return self.plans[0].sizes if self.plans else []

    def common(self, judge: str) -> list[int]:
        """Numbers of the sizes that a judge knows of all plans that it knows at all."""
        known = [times for _, times in self._known(judge)]
        return [i for i in range(len(self.sizes)) if known and all(t[i] is not None for t in known)]

    def _known(self, judge: str) -> list[tuple[int, list[float | None]]]:
        columns = [(i, entry.times.get(judge, [])) for i, entry in enumerate(self.entries)]
        return [
            (i, times)
            for i, times in columns
            if len(times) == len(self.sizes) and any(time_us is not None for time_us in times)
        ]

    def ratios(self, judge: str) -> dict[int, float]:
        """Geometric mean of an entry's time over the minimum of all, over the common sizes, by entry."""
        common = self.common(judge)
        if not common:
            return {}
        rows = {i: [float(times[at] or 0) for at in common] for i, times in self._known(judge)}
        weights = [self.plans[0].weights[at] for at in common]
        best = [min(times) for times in zip(*rows.values())]
        return {
            i: geometric_mean([time_us / best_us for time_us, best_us in zip(times, best)], weights)
            for i, times in rows.items()
        }

    def ranks(self, judge: str) -> dict[int, int]:
        """Ranks by entry: 1 for the minimum ratio; equal ratios have equal ranks."""
        ratios = self.ratios(judge)
        return {
            i: 1 + sum(other < ratio * (1 - 1e-9) for other in ratios.values())
            for i, ratio in ratios.items()
        }


def geometric_mean(values: Iterable[float], weights: Iterable[float] | None = None) -> float:
    pairs = [(v, w) for v, w in zip(values, weights)] if weights else [(v, 1.0) for v in values]
    return math.exp(sum(w * math.log(v) for v, w in pairs) / sum(w for _, w in pairs))


@dataclass(frozen=True)
class Comparison:
    """Entries of all workloads of sources on devices."""

    entries: list[Entry]
    #: Name of the file and of the measurer, by judge that is a file.
    files: dict[str, str] = field(default_factory=dict)
    #: Chosen programs as requests of a measurer (docs/measurements.md), each once.
    requests: list[dict[str, Any]] = field(default_factory=list)
    #: Remarks on what the comparison leaves out.
    notes: list[str] = field(default_factory=list)

    @property
    def judges(self) -> tuple[str, ...]:
        return (*JUDGES, *self.files)

    @property
    def groups(self) -> list[Group]:
        groups: dict[tuple[str, str, str], list[Entry]] = {}
        for entry in self.entries:
            groups.setdefault((entry.source, entry.device, entry.workload), []).append(entry)
        return [Group(entries) for entries in groups.values()]

    def rows(self) -> list[dict[str, Any]]:
        """One for each entry, as in the table."""
        rows = []
        for group in self.groups:
            ratios = {judge: group.ratios(judge) for judge in self.judges}
            ranks = {judge: group.ranks(judge) for judge in self.judges}
            for i, entry in enumerate(group.entries):
                is_plan = not entry.failure
                row: dict[str, Any] = {
                    "device": entry.device,
                    "source": entry.source,
                    "workload": entry.workload,
                    "count": entry.count,
                    "strategy": entry.strategy,
                    "cost_model": entry.cost_model,
                    "seconds": round(entry.seconds, 2),
                    "samples": entry.samples,
                    "looked_at": entry.looked_at,
                    "rejected_by_paths": entry.rejected_by_paths,
                    "measured": entry.measured,
                    "measurer": entry.measurer,
                    "kernels": entry.kernels,
                    "code_bytes": entry.code_bytes,
                    "padding": entry.mean(entry.size_padding) if is_plan else None,
                    "sm_use": entry.mean(entry.size_sm_use) if is_plan else None,
                    "predicted_us": entry.predicted_us,
                    "own_judges": " ".join(entry.own_judges),
                    "failure": entry.failure,
                }
                for judge in self.judges:
                    row[f"{judge}_ratio"] = ratios[judge].get(i)
                    row[f"{judge}_rank"] = ranks[judge].get(i)
                rows.append(row)
        return rows

    def json(self, **more: Any) -> str:
        data = {
            "format_version": FORMAT_VERSION,
            "judges": list(self.judges),
            "files": self.files,
            "rows": self.rows(),
            "entries": [vars(entry) for entry in self.entries],
            **more,
        }
        return outputs.json_text(data)

    def csv(self) -> str:
        text = io.StringIO()
        rows = self.rows()
        writer = csv.DictWriter(text, list(rows[0]) if rows else [], lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
        return text.getvalue()

    def request_lines(self) -> str:
        return "".join(json.dumps(request) + "\n" for request in self.requests)


class NoPlan(Error):
    """No strategy planned a source.

    Attributes:
        bounds: by device, the microseconds that the source's fallback kernels take at least.
    """

    def __init__(self, reason: str, bounds: Mapping[str, float] | None = None) -> None:
        super().__init__(reason)
        self.bounds = dict(bounds or {})


def compare(
    source: compiler.Source, *, counts: Mapping[str, int] | None = None, **options: Any
) -> Comparison:
    """Plans a source by every strategy under every cost model on every device, and judges the plans.

    `options` are those of `prepare`. `counts` says how many calls of a function there are. A strategy
    that finds no plan has entries that say why. Raises `Error` as `prepare` does, and `NoPlan` where
    no strategy finds one.
    """
    text = compiler.read_source(source)
    return prepare(**options).compare(text, counts)


def prepare(
    *,
    device: descriptions.Device | Sequence[descriptions.Device] | None = None,
    strategies: Sequence[str] = STRATEGIES,
    cost_models: Sequence[str] = (LATENCY,),
    judged_by: Mapping[str, str | os.PathLike[str]] | None = None,
    code: bool = True,
    state: str | os.PathLike[str] | None = None,
    tell: Any = None,
    **options: Any,
) -> Searches:
    """Reads all that comparisons need beside their sources.

    `options` are those of `compile`, for all strategies; one may have its own,
    `gensor:virtual-threads=false`. `judged_by` are logs of measurements, by names of `FILE_JUDGES`.
    `code` asks for bytes of PTX. With `state`, a file of JSON lines, what was planned before is taken
    from there, and what is planned now is added. `tell` is called with a line for each plan. Raises
    `Error` for names that do not exist, for two devices with one name, for files that are not what
    they should be, and for a judge that knows none of the devices.
    """
    logs = {name: judges.RecordedTimes(path) for name, path in (judged_by or {}).items()}
    for name in logs:
        if name not in FILE_JUDGES:
            raise Error(f"expected a judge of {', '.join(FILE_JUDGES)}, but got '{name}'")
    given: list[Any] = [*device] if isinstance(device, (list, tuple)) else [device]
    devices: dict[str, descriptions.Description] = {}
    for one in map(descriptions.resolve, given):
        known = devices.setdefault(one.name, one)
        if known.text != one.text and known.content() != one.content():
            raise Error(
                f"expected one device of the name '{one.name}', but got {known.origin} and {one.origin}"
            )
    for log in logs.values():
        if not log.devices & devices.keys():
            raise Error(
                f"{log.path}: expected measurements of {', '.join(sorted(devices))}, but got those of "
                + ", ".join(sorted(log.devices))
            )
    specs = [Strategy.read(one) for one in strategies]
    if not (devices and specs and cost_models):
        raise Error("expected a device, a strategy and a cost model")
    for one in devices.values():
        for spec in specs:
            compiler.read_options({**options, **spec.options}, one)
    return Searches(
        [*devices.values()], specs, [*cost_models], logs, State(state), options, code, tell
    )


@dataclass(frozen=True)
class Searches:
    """Plans sources and judges the plans."""

    devices: Sequence[descriptions.Description]
    strategies: Sequence[Strategy]
    cost_models: Sequence[str]
    logs: Mapping[str, judges.RecordedTimes]
    state: State
    options: Mapping[str, Any]
    code: bool = True
    tell: Any = None

    def compare(
        self, text: compiler.SourceText, counts: Mapping[str, int] | None = None
    ) -> Comparison:
        entries: list[Entry] = []
        requests: dict[str, dict[str, Any]] = {}
        failures = []
        bounds: dict[str, float] = {}
        for device in self.devices:
            answers: list[tuple[Strategy, str, Answer]] = []
            for spec in self.strategies:
                for cost_model in self.cost_models:
                    answer = plans.plan(
                        text, device, spec, cost_model, self.options,
                        code=self.code, state=self.state, tell=self.tell,
                    )  # fmt: skip
                    answers.append((spec, cost_model, answer))
                    if answer.failure:
                        failures.append(answer.failure)
            maker = _Maker(text.name, device, self.logs, self.options, counts or {}, requests)
            entries += maker.make(answers)
            bound = _bound_us(answers, counts or {})
            if bound is not None:
                bounds[device.name] = bound
        if not entries:
            known = "".join(
                f"; fallback kernels take {bound_text(bound)} on {name}"
                for name, bound in bounds.items()
            )
            raise NoPlan(failures[0] if failures else f"no uKernel computes it{known}", bounds)
        files = {name: _file_label(log) for name, log in self.logs.items()}
        return Comparison(entries, files, list(requests.values()))


def bound_text(microseconds: float) -> str:
    """ "at least 823.4 µs (a bound)"."""
    return f"at least {microseconds:,.1f} µs (a bound)"


def _bound_us(
    answers: Sequence[tuple[Strategy, str, Answer]], counts: Mapping[str, int]
) -> float | None:
    """The bound of a source without workloads, each function as often as it is called."""
    found = [(answer.facts or {}).get("bounds_us") for _, _, answer in answers]
    bounds = next((bounds for bounds in found if bounds), None)
    if bounds is None:
        return None
    return float(sum(counts.get(name, 1) * time_us for name, time_us in bounds.items()))


def _file_label(log: judges.RecordedTimes) -> str:
    measurers = ", ".join(sorted(name for name in log.measurers if name))
    return os.path.basename(log.path) + (f", measured by {measurers}" if measurers else "")


@dataclass(frozen=True)
class _Maker:
    """Makes the entries of a source on a device."""

    source: str
    device: descriptions.Description
    logs: Mapping[str, judges.RecordedTimes]
    options: Mapping[str, Any]
    counts: Mapping[str, int]
    requests: dict[str, dict[str, Any]]

    def make(self, answers: Sequence[tuple[Strategy, str, Answer]]) -> list[Entry]:
        found = [
            {one["name"]: one for one in (answer.facts or {}).get("workloads", [])}
            for _, _, answer in answers
        ]
        names = list(dict.fromkeys(name for workloads in found for name in workloads))
        columns = []
        for name in names:
            column = []
            for workloads, (spec, cost_model, answer) in zip(found, answers):
                if name in workloads:
                    column.append(self._entry(workloads[name], spec, cost_model, answer))
                else:
                    failure = answer.failure or "the workload was not formed"
                    column.append(self._failed(name, spec, cost_model, answer, failure))
            columns.append(column)
        entries = [entry for column in columns for entry in column]
        if len(names) > 1 or any(entry.count > 1 for entry in entries):
            groups = [Group(column) for column in columns]
            for i, (spec, cost_model, answer) in enumerate(answers):
                entries.append(self._whole(groups, i, spec, cost_model, answer))
        return entries

    def _failed(
        self, name: str, spec: Strategy, cost_model: str, answer: Answer, failure: str
    ) -> Entry:
        return Entry(
            self.source, self.device.name, name, spec.label, cost_model, answer.seconds,
            failure=failure,
        )  # fmt: skip

    def _entry(
        self, facts: Mapping[str, Any], spec: Strategy, cost_model: str, answer: Answer
    ) -> Entry:
        shapes, statistics = facts["shapes"], facts["statistics"]
        programs = [shape["program"] for shape in shapes]
        measurer = facts["measurer"]
        is_stand_in = measurer.startswith(judges.STAND_INS)
        times: dict[str, list[float | None]] = {
            LATENCY: [program.get("latency_us", program["predicted_us"]) for program in programs],
            ROOFLINE: [self._roofline_us(facts, shape) for shape in shapes],
            MEASURED: [None if is_stand_in else p.get("measured_us") for p in programs],
        }
        for name, log in self.logs.items():
            times[name] = [
                log.time_us(self.device.name, facts["fingerprint"], families, shape["shape"])
                for families, shape in zip(plans.shapes_with_families(facts), shapes)
            ]
        self._request(facts)
        code = None if answer.code is None else answer.code.get(facts["name"])
        function = facts["name"].rpartition("_")[0]
        return Entry(
            source=self.source,
            device=self.device.name,
            workload=facts["name"],
            strategy=spec.label,
            cost_model=cost_model,
            seconds=answer.seconds,
            samples=_first(statistics, ("instances", "shapes")),
            looked_at=_first(statistics, _LOOKED_AT),
            rejected_by_paths=_rejected(statistics),
            measured=_first(statistics, ("measured_programs", "measured")) or 0,
            measurer=measurer,
            kernels=len(facts["families"]),
            code_bytes=code,
            count=facts["count"] * self.counts.get(function, 1),
            sizes=[shape["shape"] for shape in shapes],
            main_axis=facts["main_axis"],
            weights=[shape["weight"] for shape in shapes],
            size_padding=[1 - program["metrics"]["pad"] for program in programs],
            size_sm_use=[program["metrics"]["occ"] for program in programs],
            times=times,
            own_judges=self._own(spec, cost_model, measurer),
            code_failure=answer.code_failure,
        )

    def _roofline_us(self, facts: Mapping[str, Any], shape: Mapping[str, Any]) -> float | None:
        if not judges.takes(shape["program"], facts["axes"]):
            return None
        return judges.roofline_us(self.device.content(), shape["program"], shape["shape"])

    def _own(self, spec: Strategy, cost_model: str, measurer: str) -> list[str]:
        own = []
        if cost_model == LATENCY or measurer.split("@")[0] == f"model:{LATENCY}":
            own.append(LATENCY)
        if measurer and not measurer.startswith(judges.STAND_INS):
            own.append(MEASURED)
        options = {**self.options, **spec.options}
        files = {os.path.realpath(path) for path in compiler.read_files(options)}
        own += [name for name, log in self.logs.items() if os.path.realpath(log.path) in files]
        return own

    def _request(self, facts: Mapping[str, Any]) -> None:
        for (family, _), shape in zip(plans.shapes_with_families(facts), facts["shapes"]):
            request = {
                "format_version": 3,
                "device": self.device.name,
                "workload": facts["fingerprint"],
                "family": judges.family_of(family),
                "shape": shape["shape"],
            }
            self.requests.setdefault(json.dumps(request, sort_keys=True), request)

    def _whole(
        self, groups: Sequence[Group], i: int, spec: Strategy, cost_model: str, answer: Answer
    ) -> Entry:
        """The workloads together, each as often as it is there.

        Times are sums of means over the sizes, of the workloads whose plans a judge knows all.
        Padding and SM use are means by predicted time.
        """
        parts = [group.entries[i] for group in groups]
        failures = [part.failure for part in parts if part.failure]
        if failures:
            return self._failed(WHOLE, spec, cost_model, answer, failures[0])
        times: dict[str, list[float | None]] = {}
        for judge in (*JUDGES, *self.logs):
            known = [
                group.entries[i]
                for group in groups
                if all(None not in entry.times[judge] for entry in group.plans)
            ]
            total = sum(
                part.count * part.mean([time_us or 0 for time_us in part.times[judge]])
                for part in known
            )
            times[judge] = [total if known else None]
        weights = [part.count * (part.predicted_us or 0) for part in parts]

        def mean(values: Iterable[float]) -> float:
            return sum(w * value for w, value in zip(weights, values)) / sum(weights)

        return Entry(
            source=self.source,
            device=self.device.name,
            workload=WHOLE,
            strategy=spec.label,
            cost_model=cost_model,
            seconds=answer.seconds,
            samples=_sum(part.samples for part in parts),
            looked_at=_sum(part.looked_at for part in parts),
            rejected_by_paths=_sum(part.rejected_by_paths for part in parts),
            measured=sum(part.measured for part in parts),
            measurer=next((part.measurer for part in parts if part.measurer), ""),
            kernels=sum(part.kernels for part in parts),
            code_bytes=None if answer.code is None else answer.code[""],
            count=sum(part.count for part in parts),
            sizes=[[]],
            weights=[1.0],
            size_padding=[mean(part.mean(part.size_padding) for part in parts)],
            size_sm_use=[mean(part.mean(part.size_sm_use) for part in parts)],
            times=times,
            own_judges=parts[0].own_judges,
            code_failure=answer.code_failure,
        )


def _first(statistics: Mapping[str, float], names: Iterable[str]) -> int | None:
    return next((int(statistics[name]) for name in names if name in statistics), None)


def _sum(numbers: Iterable[int | None]) -> int | None:
    """None where one of them is not known."""
    known = [*numbers]
    return None if None in known else sum(number or 0 for number in known)


def _rejected(statistics: Mapping[str, float]) -> int | None:
    """Number of candidates that no codegen path can emit; for the paper's rules, among whole warps."""
    if "rejected_by_path" in statistics:
        return int(statistics["rejected_by_path"])
    if "states" in statistics or "candidates_whole_warps" not in statistics:
        return None
    return int(statistics["candidates_whole_warps"] - statistics["candidates_emittable"])
