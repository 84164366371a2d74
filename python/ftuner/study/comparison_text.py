"""Tables of comparisons, as words for the terminal and for pages."""

from __future__ import annotations

from collections.abc import Sequence

from ..describe.tables import table
from .comparison import LATENCY, MEASURED, WHOLE, Comparison, Entry, Group

#: Behind a judge that the search itself optimised.
OWN = "*"
NOTES = (
    "Times are predictions of judges, unless a judge is a measurement. A judge's column has the "
    "geometric mean over the sizes of the time over the least of all rows, and the rank.",
    f"{OWN}: the search optimised this judge itself.",
)


def heading(group: Group) -> str:
    source, device, workload = group.key
    first = group.entries[0]
    name = f"all {first.count} operators" if workload == WHOLE else workload
    times = f", {first.count} times" if first.count > 1 and workload != WHOLE else ""
    sizes = group.sizes
    shapes = ""
    if sizes and sizes[0]:
        ends = [" × ".join(map(str, size)) for size in (sizes[0], sizes[-1])]
        shapes = (
            f": {ends[0]}" if len(sizes) == 1 else f": {ends[0]} to {ends[1]}, {len(sizes)} sizes"
        )
    return f"{source} on {device}, {name}{times}{shapes}"


def header_of(judged: Sequence[str]) -> list[str]:
    header = [
        "strategy",
        "cost model",
        "seconds",
        "samples",
        "looked at",
        "rejected",
        "measured",
        "kernels",
    ]
    return [*header, "code KB", "padding", "SM use", "predicted µs", *judged]


def cells_of(found: Comparison, group: Group, judged: Sequence[str]) -> list[list[str]]:
    """A row for each plan of a group."""
    ratios = {judge: group.ratios(judge) for judge in judged}
    ranks = {judge: group.ranks(judge) for judge in judged}

    def ratio(i: int, entry: Entry, judge: str) -> str:
        if i not in ratios[judge]:
            return "-"
        own_mark = OWN if judge in entry.own_judges else ""
        return f"{ratios[judge][i]:.3f} ({ranks[judge][i]}){own_mark}"

    return [
        [
            entry.strategy,
            entry.cost_model,
            f"{entry.seconds:.1f}",
            _count(entry.samples),
            _count(entry.looked_at),
            _count(entry.rejected_by_paths),
            _count(entry.measured),
            str(entry.kernels),
            "-" if entry.code_bytes is None else f"{entry.code_bytes / 1000:,.0f}",
            f"{entry.mean(entry.size_padding):.1%}",
            f"{entry.mean(entry.size_sm_use):.1%}",
            "-" if entry.predicted_us is None else f"{entry.predicted_us:,.1f}",
            *(ratio(i, entry, judge) for judge in judged),
        ]
        for i, entry in enumerate(group.entries)
        if not entry.failure
    ]


def _count(number: int | None) -> str:
    return "-" if number is None else f"{number:,}"


def notes_of(found: Comparison, group: Group) -> list[str]:
    """Returns remarks on what the table of a group leaves out."""
    reasons: dict[str, list[str]] = {}
    for entry in group.entries:
        if entry.failure:
            reasons.setdefault(entry.failure, []).append(f"{entry.strategy} by {entry.cost_model}")
    notes = [
        reason
        if _has_bound(group)
        else f"{'no plan' if len(searches) == len(group.entries) else ', '.join(searches)}: {reason}"
        for reason, searches in reasons.items()
    ]
    notes += [
        f"{entry.strategy} by {entry.cost_model}: no code: {entry.code_failure}"
        for entry in group.entries
        if entry.code_failure
    ]
    total = len(group.sizes)
    for judge in found.judges:
        common = group.common(judge)
        if group.key[2] == WHOLE:
            notes += _partial(found, group, judge)
        elif common and len(common) < total:
            notes.append(f"{judge} knows {len(common)} of {total} sizes of all rows")
        elif not common and judge in found.files:
            notes.append(f"{judge} knows no size of all rows")
    measurers = sorted({entry.measurer for entry in group.entries if entry.measurer})
    for measurer in measurers:
        if measurer.startswith("model:"):
            notes.append(f"{measurer} stood in for measurements of the search, and is not a judge")
        else:
            notes.append(f"{MEASURED} by {measurer}")
    notes += [f"{judge}: {name}" for judge, name in found.files.items()]
    return notes


def _has_bound(group: Group) -> bool:
    """Returns whether fallback kernels, with a known bound, stand for every plan."""
    return all(entry.bound_us is not None for entry in group.entries)


def _partial(found: Comparison, whole: Group, judge: str) -> list[str]:
    """Returns how many workloads a judge knows in all rows, unless it knows all of them."""
    source, device, _ = whole.key
    parts = [
        group
        for group in found.groups
        if group.key[:2] == (source, device) and group.key[2] != WHOLE
    ]
    known = [
        group
        for group in parts
        if all(None not in entry.times.get(judge, [None]) for entry in group.plans)
    ]
    if judge == LATENCY or not known or len(known) == len(parts):
        return []
    return [f"{judge} knows {len(known)} of {len(parts)} workloads"]


def text(found: Comparison) -> str:
    """A table for each workload on each device."""
    lines: list[str] = []
    for group in found.groups:
        judged = [judge for judge in found.judges if group.ratios(judge)]
        lines.append(heading(group))
        if group.plans:
            lines.append(table(cells_of(found, group, judged), header_of(judged)))
        lines += [*notes_of(found, group), ""]
    lines.append(NOTES[0])
    if any(entry.own_judges for entry in found.entries):
        lines.append(NOTES[1])
    return "\n".join(lines) + "\n"
