"""Comparisons of the workloads of papers, and what the papers report beside them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from ..compiler import SourceText
from ..errors import Error
from . import comparison
from .comparison import LATENCY, ROOFLINE, Comparison, Entry, geometric_mean
from .papers import Paper, Reported, Workload
from .plans import Strategy

#: Header and rows.
Table = tuple[list[str], list[list[str]]]
_HEADER = ["source", "workload", "figure", "reported", "latency*", "roofline"]
NOTE = "Reported figures were measured on the paper's machine, those of the judges are predictions."
#: Judges of our columns.
_JUDGES = (LATENCY, ROOFLINE)


def run(paper: Paper, *, tell: Any = None, **options: Any) -> Comparison:
    """Compares the strategies of a paper on its workloads and devices; options as of `prepare`.

    `dietcode` searches for the sizes of the paper. A workload that no strategy plans has an entry for
    each that says why.
    """
    options.setdefault("device", list(paper.devices))
    options.setdefault("strategies", list(paper.strategies))
    searches = comparison.prepare(**options)
    entries: list[Entry] = []
    files: dict[str, str] = {}
    requests = []
    notes = _missing(paper, [spec.label for spec in searches.strategies])
    for workload in paper.workloads:
        source = SourceText(f"{workload.name}.mlir", workload.text().encode())
        counts = {part.name: part.count for part in workload.parts}
        pairs = [
            (spec, _at_sizes(paper, workload, spec, searches.options))
            for spec in searches.strategies
        ]
        notes += [
            f"{spec.label} is left out of {workload.name}, whose operators differ in their sizes"
            for spec, own in pairs
            if own is None
        ]
        specs = [own for _, own in pairs if own is not None]
        if not specs:
            continue
        own = replace(
            searches,
            strategies=specs,
            tell=(lambda line, name=workload.name: tell(f"{name}: {line}")) if tell else None,
        )
        try:
            found = own.compare(source, counts)
        except comparison.NoPlan as error:
            entries += [
                Entry(
                    source.name,
                    device.name,
                    workload.name,
                    spec.label,
                    model,
                    0.0,
                    failure=str(error),
                    bound_us=error.bounds.get(device.name),
                )  # fmt: skip
                for device in searches.devices
                for spec in specs
                for model in searches.cost_models
            ]
            continue
        entries += found.entries
        files.update(found.files)
        requests += found.requests
    if all(entry.failure for entry in entries):
        raise Error(entries[0].failure if entries else notes[-1])
    return Comparison(entries, files, requests, notes)


def _at_sizes(
    paper: Paper, workload: Workload, spec: Strategy, options: Mapping[str, Any]
) -> Strategy | None:
    """A strategy whose instances are the paper's sizes of a workload, if it reads `instance-sizes`.

    `instance-sizes` are extents of the main axis, one list for all operators. Where these differ, it
    is as it was, and None if it tunes each shape by itself.
    """
    sizes, given = paper.sizes(workload.name), {**options, **spec.options}
    if not spec.reads("instance-sizes") or not sizes or given.get("instance_sizes"):
        return spec
    if len(workload.factors) == 1:
        (factor,) = workload.factors
        own = ",".join(str(factor * size) for size in sizes)
        return replace(spec, options={**spec.options, "instance_sizes": own})
    return None if given.get("dietcode_mode") == "per-shape" else spec


def _label(paper: Paper, system: str, labels: Sequence[str]) -> str | None:
    """The strategy that stands for a system; else the only one with its name and its mode."""
    wanted = paper.systems.get(system)
    if wanted is None or wanted in labels:
        return wanted
    modes = {option for label in paper.systems.values() for option in Strategy.parse(label).options}

    def mode(label: str) -> tuple[str, dict[str, str]]:
        spec = Strategy.parse(label)
        return spec.name, {name: spec.options[name] for name in modes & spec.options.keys()}

    close = [label for label in labels if mode(label) == mode(wanted)]
    return close[0] if len(close) == 1 else None


def _missing(paper: Paper, labels: Sequence[str]) -> list[str]:
    """Notes of the systems that no strategy, or more than one, stands for."""
    return [
        f"{system}: expected {strategy}, or one strategy like it"
        for system, strategy in paper.systems.items()
        if _label(paper, system, labels) is None
    ]


def devices_of(found: Comparison) -> list[str]:
    return list(dict.fromkeys(entry.device for entry in found.entries))


def tabulate(paper: Paper, found: Comparison, device: str) -> Table:
    """Returns the paper's figures beside the figures of the plans on a device, by two judges."""
    rows = [
        row
        for reported in paper.reported
        for row in _PaperTable(paper, found, device, reported).make()
    ]
    return list(_HEADER), rows


class _PaperTable:
    """The rows of what a paper reports of one workload."""

    def __init__(self, paper: Paper, found: Comparison, device: str, reported: Reported) -> None:
        self.paper, self.reported = paper, reported
        (self.workload,) = (one for one in paper.workloads if one.name == reported.workload)
        source = f"{reported.workload}.mlir"
        self.entries = [
            entry
            for entry in found.entries
            if (entry.source, entry.device) == (source, device)
            and entry.workload != comparison.WHOLE
            and not entry.failure
        ]
        # The bound where fallback kernels compute the workload, whatever the strategy is.
        self.bound = next(
            (
                entry.bound_us
                for entry in found.entries
                if (entry.source, entry.device) == (source, device) and entry.bound_us
            ),
            None,
        )
        self.labels = list(dict.fromkeys(entry.strategy for entry in found.entries))
        self.reference = paper.reference

    def make(self) -> list[list[str]]:
        values = self.reported.values
        kind = self.reported.kind
        others = [system for system in values if system != self.reference]
        if kind == "ms":
            ratios = [self._times(system, values[system]) for system in others]
            return ratios if self.reported.sizes else [self._milliseconds(), *ratios]
        if kind == "sm_use":
            return [self._sm_use(system, values[system]) for system in values]
        if kind == "tflops":
            return self._throughputs(values)
        if kind == "seconds":
            return [self._seconds(system, values[system]) for system in values]
        if kind == "search_shorter":
            return [self._shorter(system, values[system]) for system in others]
        return [self._percent(system, values[system]) for system in others]

    def _row(self, figure: str, reported: str, own: Sequence[str]) -> list[str]:
        return [self.reported.source, self.workload.name, figure, reported, *own]

    def _entries(self, system: str) -> list[Entry]:
        """Returns the entries of the strategy that stands for a system, one for each part."""
        strategy = _label(self.paper, system, self.labels)
        entries = [entry for entry in self.entries if entry.strategy == strategy]
        models = list(dict.fromkeys(entry.cost_model for entry in entries))
        return [entry for entry in entries if entry.cost_model == models[0]]

    def _sums(self, system: str, judge: str) -> list[float] | None:
        """Microseconds of all parts at each size; None where the judge does not know all."""
        entries = self._entries(system)
        columns = [entry.times.get(judge, []) for entry in entries]
        if not columns or any(None in column or not column for column in columns):
            return None
        if len({len(column) for column in columns}) != 1:
            return None
        return [
            sum(entry.count * float(time_us or 0) for entry, time_us in zip(entries, at))
            for at in zip(*columns)
        ]

    def _own_times(self, system: str, judge: str) -> list[float] | None:
        """At the sizes that are reported, of which the range has all from 1 on."""
        sums = self._sums(system, judge)
        if sums is None or not self.reported.sizes:
            return sums
        return [sums[size - 1] for size in self.reported.sizes]

    def _both(self, system: str) -> list[tuple[list[float], list[float]] | None]:
        """Microseconds of a system and of the reference, by judge."""
        result = []
        for judge in _JUDGES:
            times, reference = (
                self._own_times(system, judge),
                self._own_times(self.reference, judge),
            )
            result.append((times, reference) if times and reference else None)
        return result

    def _times(self, system: str, reported: Sequence[float]) -> list[str]:
        def ratio(times: Sequence[float], reference: Sequence[float]) -> str:
            return f"{geometric_mean([t / r for t, r in zip(times, reference)]):.3f}"

        own = [ratio(*pair) if pair else "-" for pair in self._both(system)]
        figure = f"time of {system} / {self.reference}"
        return self._row(figure, ratio(reported, self.reported.values[self.reference]), own)

    def _milliseconds(self) -> list[str]:
        """Returns the times in milliseconds at the only size."""
        columns = [self._own_times(self.reference, judge) for judge in _JUDGES]
        own = [f"{times[0] / 1000:.3f}" if times else "-" for times in columns]
        if self.bound and not any(columns):
            own[0] = f"at least {self.bound / 1000:.3f} (bound)"
        (reported,) = self.reported.values[self.reference]
        return self._row(f"milliseconds of {self.reference}", f"{reported:g}", own)

    def _percent(self, system: str, reported: float) -> list[str]:
        is_less = self.reported.kind == "less_by"

        def percent(times: Sequence[float], reference: Sequence[float]) -> str:
            shares = [1 - r / t if is_less else t / r - 1 for t, r in zip(times, reference)]
            return f"{100 * sum(shares) / len(shares):.1f} %"

        own = [percent(*pair) if pair else "-" for pair in self._both(system)]
        words = "takes less time than" if is_less else "is faster than"
        return self._row(f"{self.reference} {words} {system}", f"{reported:g} %", own)

    def _throughputs(self, values: Any) -> list[list[str]]:
        flops = self.workload.parts[0].flops
        rows = []
        for system, reported in values.items():
            own = []
            for judge in _JUDGES:
                times = self._own_times(system, judge)
                own.append(f"{flops / times[0] / 1e6:.2f}" if flops and times else "-")
            if flops and self.bound and own == ["-"] * len(_JUDGES):
                own[0] = f"at most {flops / self.bound / 1e6:.2f} (bound)"
            rows.append(self._row(f"TFLOP/s of {system}", f"{reported:g}", own))
            if system != self.reference:
                share = f"{reported / values[self.reference]:.3f}"
                pairs = [
                    f"{pair[1][0] / pair[0][0]:.3f}" if pair else "-" for pair in self._both(system)
                ]
                rows.append(self._row(f"TFLOP/s of {system} / {self.reference}", share, pairs))
        return rows

    def _sm_use(self, system: str, reported: Sequence[float]) -> list[str]:
        entries = self._entries(system)
        own = "-"
        if len(entries) == 1:
            shares = [entries[0].size_sm_use[size - 1] for size in self.reported.sizes]
            own = f"{100 * sum(shares) / len(shares):.1f} %"
        mean = sum(reported) / len(reported)
        return self._row(f"SM use of {system}, mean (ours: of waves)", f"{mean:.1f} %", [own, ""])

    def _seconds(self, system: str, reported: float) -> list[str]:
        entries = self._entries(system)
        own = f"{entries[0].seconds:.1f}" if entries else "-"
        return self._row(
            f"seconds of tuning, {system} (ours: none measured)", f"{reported:g}", [own, ""]
        )

    def _shorter(self, system: str, reported: float) -> list[str]:
        own, other = self._entries(self.reference), self._entries(system)
        ratio = f"{other[0].seconds / own[0].seconds:.2f}" if own and other else "-"
        return self._row(
            f"tuning time of {system} / {self.reference}", f"{reported:g}", [ratio, ""]
        )
