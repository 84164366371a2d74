"""Comparisons of the workloads of papers, and what the papers report beside them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from . import comparison
from .comparison import LATENCY, ROOFLINE, Comparison, Entry, geometric_mean
from .compiler import SourceText
from .errors import Error
from .papers import Paper, Reported

#: Header and rows.
Table = tuple[list[str], list[list[str]]]
_HEADER = ["source", "workload", "figure", "reported", "latency*", "roofline"]
NOTE = "Reported figures were measured on the paper's machine, those of the judges are predictions."
#: Judges of our columns.
_JUDGES = (LATENCY, ROOFLINE)


def run(paper: Paper, *, tell: Any = None, **options: Any) -> Comparison:
    """Compares the strategies of a paper on its workloads and devices; options as of `compare`.

    A workload that no strategy plans has an entry for each that says why.
    """
    options.setdefault("device", list(paper.devices))
    options.setdefault("strategies", list(paper.strategies))
    entries: list[Entry] = []
    files: dict[str, str] = {}
    requests = []
    for workload in paper.workloads:
        source = SourceText(f"{workload.name}.mlir", workload.text().encode())
        counts = {part.name: part.count for part in workload.parts}
        try:
            found = comparison.compare(
                source,
                counts=counts,
                tell=(lambda line, name=workload.name: tell(f"{name}: {line}")) if tell else None,
                **options,
            )
        except Error as error:
            reason = str(error)
            entries += [
                Entry(source.name, str(device), workload.name, strategy, model, 0.0, failure=reason)
                for device in options["device"]
                for strategy in options["strategies"]
                for model in options.get("cost_models", (LATENCY,))
            ]
            continue
        entries += found.entries
        files.update(found.files)
        requests += found.requests
    if all(entry.failure for entry in entries):
        raise Error(entries[0].failure)
    return Comparison(entries, files, requests)


def devices_of(found: Comparison) -> list[str]:
    return list(dict.fromkeys(entry.device for entry in found.entries))


def beside(paper: Paper, found: Comparison, device: str) -> Table:
    """What the paper reports, and the same figure of the plans on a device, by two judges."""
    rows = [
        row for reported in paper.reported for row in _Rows(paper, found, device, reported).make()
    ]
    return list(_HEADER), rows


class _Rows:
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

    def _row(self, figure: str, reported: str, ours: Sequence[str]) -> list[str]:
        return [self.reported.source, self.workload.name, figure, reported, *ours]

    def _entries(self, system: str) -> list[Entry]:
        """Of the strategy that stands for a system, one for each part."""
        strategy = self.paper.systems.get(system)
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

    def _ours(self, system: str, judge: str) -> list[float] | None:
        """At the sizes that are reported, of which the range has all from 1 on."""
        sums = self._sums(system, judge)
        if sums is None or not self.reported.sizes:
            return sums
        return [sums[size - 1] for size in self.reported.sizes]

    def _both(self, system: str) -> list[tuple[list[float], list[float]] | None]:
        """By judge, microseconds of a system and of the reference."""
        result = []
        for judge in _JUDGES:
            times, reference = self._ours(system, judge), self._ours(self.reference, judge)
            result.append((times, reference) if times and reference else None)
        return result

    def _times(self, system: str, reported: Sequence[float]) -> list[str]:
        def ratio(times: Sequence[float], reference: Sequence[float]) -> str:
            return f"{geometric_mean([t / r for t, r in zip(times, reference)]):.3f}"

        ours = [ratio(*pair) if pair else "-" for pair in self._both(system)]
        figure = f"time of {system} / {self.reference}"
        return self._row(figure, ratio(reported, self.reported.values[self.reference]), ours)

    def _milliseconds(self) -> list[str]:
        """Of the one size."""
        columns = [self._ours(self.reference, judge) for judge in _JUDGES]
        ours = [f"{times[0] / 1000:.3f}" if times else "-" for times in columns]
        (reported,) = self.reported.values[self.reference]
        return self._row(f"milliseconds of {self.reference}", f"{reported:g}", ours)

    def _percent(self, system: str, reported: float) -> list[str]:
        is_less = self.reported.kind == "less_by"

        def percent(times: Sequence[float], reference: Sequence[float]) -> str:
            shares = [1 - r / t if is_less else t / r - 1 for t, r in zip(times, reference)]
            return f"{100 * sum(shares) / len(shares):.1f} %"

        ours = [percent(*pair) if pair else "-" for pair in self._both(system)]
        words = "takes less time than" if is_less else "is faster than"
        return self._row(f"{self.reference} {words} {system}", f"{reported:g} %", ours)

    def _throughputs(self, values: Any) -> list[list[str]]:
        flops = self.workload.parts[0].flops
        rows = []
        for system, reported in values.items():
            ours = []
            for judge in _JUDGES:
                times = self._ours(system, judge)
                ours.append(f"{flops / times[0] / 1e6:.2f}" if flops and times else "-")
            rows.append(self._row(f"TFLOP/s of {system}", f"{reported:g}", ours))
            if system != self.reference:
                share = f"{reported / values[self.reference]:.3f}"
                pairs = [f"{pair[1][0] / pair[0][0]:.3f}" if pair else "-" for pair in self._both(system)]
                rows.append(self._row(f"TFLOP/s of {system} / {self.reference}", share, pairs))
        return rows

    def _sm_use(self, system: str, reported: Sequence[float]) -> list[str]:
        entries = self._entries(system)
        ours = "-"
        if len(entries) == 1:
            shares = [entries[0].size_sm_use[size - 1] for size in self.reported.sizes]
            ours = f"{100 * sum(shares) / len(shares):.1f} %"
        mean = sum(reported) / len(reported)
        return self._row(f"SM use of {system}, mean (ours: of waves)", f"{mean:.1f} %", [ours, ""])

    def _seconds(self, system: str, reported: float) -> list[str]:
        entries = self._entries(system)
        ours = f"{entries[0].seconds:.1f}" if entries else "-"
        return self._row(f"seconds of tuning, {system} (ours: none measured)", f"{reported:g}", [ours, ""])

    def _shorter(self, system: str, reported: float) -> list[str]:
        own, other = self._entries(self.reference), self._entries(system)
        ours = f"{other[0].seconds / own[0].seconds:.2f}" if own and other else "-"
        return self._row(f"tuning time of {system} / {self.reference}", f"{reported:g}", [ours, ""])
