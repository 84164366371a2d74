"""The page of a comparison: one file of HTML with figures, and nothing from elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any

from . import charts
from .charts import Series
from .comparison import WHOLE, Comparison, Entry, Group
from .comparison_text import NOTES, OWN, cells_of, header_of, heading, notes_of

_STYLE = (
    charts.STYLE
    + """body{margin:0 auto;max-width:80rem;padding:1rem;background:var(--page);color:var(--ink);font:15px/1.5 system-ui,sans-serif}
h1{font-size:1.5rem}h2{font-size:1.2rem;margin-top:2.5rem}h3{font-size:1rem;margin-bottom:0.3rem}
table{border-collapse:collapse;font-size:0.88rem;font-variant-numeric:tabular-nums}
.scroll{overflow-x:auto}
th,td{padding:0.2rem 0.45rem;text-align:right;white-space:nowrap;border-bottom:1px solid var(--grid)}
th{color:var(--quiet);font-weight:600}
th.text,td.text{text-align:left}
tbody tr:nth-child(even){background:var(--band)}
td.first{font-weight:700}
.figures{display:grid;grid-template-columns:repeat(auto-fit,minmax(24rem,1fr));gap:1.5rem}
figure{margin:0}figcaption{font-weight:600;font-size:0.9rem}
.note{color:var(--quiet);font-size:0.9rem}
"""
)


def page(
    found: Comparison, title: str, tables: Sequence[tuple[str, Any]] = (), figures: str = ""
) -> str:
    """HTML of a comparison; tables (heading, (header, rows)) and figures, HTML, may come first."""
    body = [f"<h1>{escape(title)}</h1>", f'<p class="note">{escape(NOTES[0])}</p>']
    for name, (header, rows) in tables:
        body += [f"<h2>{escape(name)}</h2>", _table(header, rows, 4)]
    body.append(figures)
    numbers = _numbers(found)
    for group in found.groups:
        body += _section(found, group, numbers)
    body += [f'<p class="note">{escape(note)}</p>' for note in NOTES[1:]]
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>\n{_STYLE}</style>\n</head>\n<body>\n"
        + "\n".join(body)
        + "\n</body>\n</html>\n"
    )


def _numbers(found: Comparison) -> dict[tuple[str, str], int]:
    """A colour for each strategy and cost model, the same on the whole page."""
    labels = dict.fromkeys((entry.strategy, entry.cost_model) for entry in found.entries)
    return {label: number for number, label in enumerate(labels)}


def _table(header: Sequence[str], rows: Sequence[Sequence[str]], texts: int) -> str:
    """The first columns hold text, all others numbers; ranks of 1 stand out."""

    def cell(tag: str, i: int, text: str) -> str:
        names = [*(["text"] if i < texts else []), *(["first"] if " (1)" in text else [])]
        attribute = f' class="{" ".join(names)}"' if names else ""
        return f"<{tag}{attribute}>{escape(text)}</{tag}>"

    head = "".join(cell("th", i, text) for i, text in enumerate(header))
    lines = ["".join(cell("td", i, text) for i, text in enumerate(row)) for row in rows]
    body = "\n".join(f"<tr>{line}</tr>" for line in lines)
    return f'<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>\n{body}\n</tbody></table></div>'


def _section(found: Comparison, group: Group, numbers: dict[tuple[str, str], int]) -> list[str]:
    judged = [judge for judge in found.judges if group.ratios(judge)]
    body = [f"<h2>{escape(heading(group))}</h2>"]
    if group.plans:
        body.append(_table(header_of(judged), cells_of(found, group, judged), 2))
    body += [f'<p class="note">{escape(note)}</p>' for note in notes_of(found, group)]
    entries = [(i, entry) for i, entry in enumerate(group.entries) if not entry.failure]
    if len(entries) < 1 or not judged:
        return body

    def series(entry: Entry, values: Sequence[float | None]) -> Series:
        return Series(_label(entry, found), values, numbers[entry.strategy, entry.cost_model])

    figures = []
    if len(entries) > 1:
        ranks = {judge: group.ranks(judge) for judge in judged}
        columns = [_judge_label(group, judge) for judge in judged]
        drawn = [series(entry, [ranks[judge].get(i) for judge in judged]) for i, entry in entries]
        figures.append(
            ("Rank under each judge", charts.ranks("Rank under each judge", columns, drawn))
        )
    drawn = [series(entry, []) for _, entry in entries]
    if group.key[2] != WHOLE and len(group.sizes) > 1:
        figures += _over_sizes(group, judged, entries, series)
    body.append(charts.legend(drawn))
    body.append(
        '<div class="figures">'
        + "\n".join(
            f"<figure><figcaption>{escape(name)}</figcaption>{svg}</figure>"
            for name, svg in figures
        )
        + "</div>"
    )
    return body


def _label(entry: Entry, found: Comparison) -> str:
    models = {one.cost_model for one in found.entries}
    return entry.strategy if len(models) == 1 else f"{entry.strategy} by {entry.cost_model}"


def _judge_label(group: Group, judge: str) -> str:
    return judge + (OWN if any(judge in entry.own_judges for entry in group.plans) else "")


def _over_sizes(
    group: Group, judged: Sequence[str], entries: Sequence[tuple[int, Entry]], series: Any
) -> list[tuple[str, str]]:
    """Times over the sizes, and how far each is from the best at its size."""
    first = entries[0][1]
    places: list[float] = [size[first.main_axis] for size in group.sizes]
    label = "size of the main axis (elements)"
    if any(one >= other for one, other in zip(places, places[1:])):
        places, label = [*range(1, len(places) + 1)], "number of the size"
    figures = []
    for judge in judged:
        known = [(entry, entry.times[judge]) for _, entry in entries if any(entry.times[judge])]
        name = f"Time by {_judge_label(group, judge)}"
        drawn = [series(entry, times) for entry, times in known]
        figures.append((name, charts.lines(name, label, "microseconds", places, drawn)))
        if len(known) < 2:
            continue
        fastest = [
            min([t for t in column if t is not None], default=None)
            for column in zip(*(times for _, times in known))
        ]
        name = f"Slower than the best of them by {_judge_label(group, judge)}"
        drawn = [
            series(
                entry,
                [100 * (t / best - 1) if t and best else None for t, best in zip(times, fastest)],
            )
            for entry, times in known
        ]
        figures.append((name, charts.lines(name, label, "%", places, drawn, from_zero=True)))
    return figures
