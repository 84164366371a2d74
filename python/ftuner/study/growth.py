"""Growth of searches with the number of sizes in a range."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from ..compiler import SourceText
from ..errors import Error
from . import charts, comparison
from .charts import Series
from .comparison import WHOLE, Comparison, Entry

_RANGE = re.compile(rb"(#ukernel\.range<(\d+) to )\d+(?=[ >])")
_HEADER = ["sizes to", "device", "strategy", "cost model", "seconds", "samples", "looked at"]
_HEADER += ["rejected", "kernels", "code KB", "latency µs"]


def with_end(source: SourceText, end: int) -> SourceText:
    """The source with the one range of its symbols ending there.

    Raises `Error` if there is not one range with an end, or it begins after the number.
    """
    found = _RANGE.findall(source.content)
    if len(found) != 1:
        raise Error(f"{source.name}: expected one range with an end, but got {len(found)}")
    if end < int(found[0][1]):
        raise Error(f"expected a size from {int(found[0][1])} on, but got {end}")
    content = _RANGE.sub(rb"\g<1>%d" % end, source.content)
    return SourceText(f"{source.name}, to {end}", content, source.weights, source.explain)


def compare(source: SourceText, ends: Sequence[int], **options: Any) -> Comparison:
    """Compares what searches choose for a source whose range ends at one number after the other."""
    sources = [with_end(source, end) for end in ends]
    searches = comparison.prepare(**options)
    found = [searches.compare(one) for one in sources]
    entries = [entry for one in found for entry in one.entries]
    requests = [request for one in found for request in one.requests]
    return Comparison(entries, found[0].files, requests)


def table(found: Comparison) -> tuple[list[str], list[list[str]]]:
    """Header and rows: of each range the one workload, or all together."""
    rows = []
    for end, entry in _of_ranges(found):
        time_us = entry.predicted_us
        rows.append(
            [
                str(end),
                entry.device,
                entry.strategy,
                entry.cost_model,
                f"{entry.seconds:.1f}",
                *("-" if n is None else f"{n:,}" for n in (entry.samples, entry.looked_at, entry.rejected_by_paths)),
                str(entry.kernels),
                "-" if entry.code_bytes is None else f"{entry.code_bytes / 1000:,.0f}",
                entry.failure if time_us is None else f"{time_us:,.1f}",
            ]
        )  # fmt: skip
    return list(_HEADER), rows


def _of_ranges(found: Comparison) -> list[tuple[int, Entry]]:
    wholes = {entry.source for entry in found.entries if entry.workload == WHOLE}
    return [
        (int(entry.source.rpartition(" ")[2]), entry)
        for entry in found.entries
        if entry.source not in wholes or entry.workload == WHOLE
    ]


def figures(found: Comparison) -> str:
    """HTML: seconds, what was looked at, and kernels over the end of the range, for each device."""
    rows = [(end, entry) for end, entry in _of_ranges(found) if not entry.failure]
    parts = []
    for device in dict.fromkeys(entry.device for _, entry in rows):
        own = [(end, entry) for end, entry in rows if entry.device == device]
        ends = sorted({end for end, _ in own})
        labels = list(dict.fromkeys((entry.strategy, entry.cost_model) for _, entry in own))
        drawn: list[Series] = []
        for name, title in (
            ("seconds", "seconds"),
            ("looked_at", "looked at"),
            ("kernels", "kernels"),
        ):
            drawn = []
            for number, label in enumerate(labels):
                by_end = {
                    end: getattr(entry, name)
                    for end, entry in own
                    if (entry.strategy, entry.cost_model) == label
                }
                drawn.append(Series(" by ".join(label), [by_end.get(end) for end in ends], number))
            if len(ends) > 1 and any(v is not None for one in drawn for v in one.values):
                svg = charts.lines(f"{title} on {device}", "greatest size", title, ends, drawn)
                parts.append(f"<figure><figcaption>{title} on {device}</figcaption>{svg}</figure>")
        parts.append(charts.legend(drawn))
    return f'<div class="figures">{"".join(parts)}</div>'
