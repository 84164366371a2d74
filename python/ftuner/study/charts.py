"""Figures of pages: SVG that takes its colours from the page's style, in light and in dark."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

#: Colours of Okabe and Ito, which colour-blind readers can tell apart; lighter ones for dark
#: pages. Series beyond them repeat the colours with other dashes.
_LIGHT = ("#0072B2", "#D55E00", "#009E73", "#AA4499", "#8C6D00", "#3A87AD", "#555555")
_DARK = ("#56B4E9", "#FF8A3D", "#2FD6A3", "#E39BC9", "#F0E442", "#9AD0F0", "#BBBBBB")
_MARKS = ";stroke-width:6;stroke-linecap:round"
_DASHES = ("", "6 3", "2 3", "8 3 2 3")

#: Sizes that lie further apart have a logarithmic axis, times likewise.
_LOGARITHMIC_RATIO = 64
_LOGARITHMIC_TIMES = 8

_WIDTH, _HEIGHT = 640, 300
_LEFT, _RIGHT, _TOP, _BOTTOM = 64, 12, 12, 44


def _variables(colours: Sequence[str], more: str) -> str:
    return "".join(f"--s{i}:{colour};" for i, colour in enumerate(colours)) + more


#: Style sheet of a page with these figures.
STYLE = f""":root{{color-scheme:light dark;{_variables(_LIGHT, "--page:#ffffff;--ink:#1b1b1b;--quiet:#5c5c5c;--grid:#dcdcdc;--band:#f3f5f7;")}}}
@media (prefers-color-scheme:dark){{:root{{{_variables(_DARK, "--page:#15181b;--ink:#e8e8e8;--quiet:#a5a5a5;--grid:#3a3f44;--band:#20252a;")}}}}}
svg{{width:100%;max-width:{_WIDTH}px;height:auto;display:block}}
svg text{{fill:var(--ink);font:11px system-ui,sans-serif}}
svg .grid{{stroke:var(--grid);stroke-width:1}}
svg .line{{fill:none;stroke-width:2}}
svg .dot{{stroke:var(--page);stroke-width:1.5}}
.key{{display:inline-block;margin:0 1em 0.3em 0}}
.key svg{{display:inline;width:28px;height:10px;vertical-align:middle;margin-right:0.4em}}
"""


@dataclass(frozen=True)
class Series:
    """Values over the places of a figure; None: no value."""

    label: str
    values: Sequence[float | None]
    #: Index of the colour and the dashes.
    number: int


def _stroke(number: int) -> str:
    dashes = _DASHES[number // len(_LIGHT) % len(_DASHES)]
    return f"stroke:var(--s{number % len(_LIGHT)})" + (
        f";stroke-dasharray:{dashes}" if dashes else ""
    )


def legend(series: Sequence[Series]) -> str:
    """Names of lines, as HTML."""
    keys = [
        f'<span class="key"><svg viewBox="0 0 28 10" aria-hidden="true"><path class="line" '
        f'style="{_stroke(one.number)}" d="M0 5H28"/></svg>{escape(one.label)}</span>'
        for one in series
    ]
    return f'<p class="legend">{"".join(keys)}</p>'


class _Axis:
    """Values from low to high on a length in pixels."""

    def __init__(self, values: Sequence[float], start: float, end: float, is_log: bool) -> None:
        self.is_log = is_log
        low, high = min(values), max(values)
        if low == high:
            low, high = (low / 2, high * 2) if is_log else (low - 1, high + 1)
        self.low, self.high, self.start, self.end = low, high, start, end

    def place(self, value: float) -> float:
        low, high = self.low, self.high
        if self.is_log:
            low, high, value = math.log(low), math.log(high), math.log(value)
        return self.start + (value - low) / (high - low) * (self.end - self.start)

    def ticks(self) -> list[float]:
        if self.is_log:
            first = math.floor(math.log10(self.low))
            last = math.ceil(math.log10(self.high))
            digits = (1, 2, 5) if last - first < 4 else (1,)
            steps = [digit * 10.0**power for power in range(first, last + 1) for digit in digits]
        else:
            raw = (self.high - self.low) / 8
            unit = 10.0 ** math.floor(math.log10(raw))
            step = next(unit * factor for factor in (1, 2, 5, 10) if unit * factor >= raw)
            first = math.ceil(self.low / step)
            steps = [step * i for i in range(first, math.floor(self.high / step) + 1)]
        slack = 1e-9 * abs(self.high)
        return [one for one in steps if self.low - slack <= one <= self.high + slack]


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:g}"


def _frame(description: str, body: Sequence[str]) -> str:
    return (
        f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" aria-label="{escape(description)}">'
        f"<title>{escape(description)}</title>{''.join(body)}</svg>"
    )


def lines(
    description: str,
    x_label: str,
    y_label: str,
    places: Sequence[float],
    series: Sequence[Series],
    *,
    from_zero: bool = False,
    has_marks: bool = False,
) -> str:
    """Lines over places that rise; logarithmic axes where values lie far apart.

    With `from_zero` values are percent, from 0 to 1 at least; with `has_marks` each is a mark and no line joins them.
    """
    values = [v for one in series for v in one.values if v is not None]
    is_log_y = not from_zero and min(values) > 0 and max(values) > _LOGARITHMIC_TIMES * min(values)
    is_log_x = (
        min(places) > 0 and max(places) > _LOGARITHMIC_RATIO * min(places) and len(places) < 64
    )
    x = _Axis(places, _LEFT, _WIDTH - _RIGHT, is_log_x)
    # Some room, so that no line runs along an edge.
    top = 1.05 * max(values)
    floor = 1.0 if from_zero else 0.0
    bounds = [0.95 * min(values), top] if is_log_y else [0.0, floor, *values, top]
    y = _Axis(bounds, _HEIGHT - _BOTTOM, _TOP, is_log_y)
    body = _grid(x, y, x_label, y_label)
    for one in series:
        path, is_down = "", False
        for place, value in zip(places, one.values):
            if value is None:
                is_down = False
                continue
            path += f"{'L' if is_down else 'M'}{x.place(place):.1f} {y.place(value):.1f}"
            # A line without length, whose round ends are the mark.
            path += "h0" if has_marks else ""
            is_down = not has_marks
        if path:
            body.append(
                f'<path class="line" style="{_stroke(one.number)}{_MARKS if has_marks else ""}" d="{path}">'
                f"<title>{escape(one.label)}</title></path>"
            )
    return _frame(description, body)


def _grid(x: _Axis, y: _Axis, x_label: str, y_label: str) -> list[str]:
    body = []
    for value in y.ticks():
        at = y.place(value)
        body.append(f'<path class="grid" d="M{_LEFT} {at:.1f}H{_WIDTH - _RIGHT}"/>')
        body.append(
            f'<text x="{_LEFT - 6}" y="{at + 4:.1f}" text-anchor="end">{_number(value)}</text>'
        )
    for value in x.ticks():
        at = x.place(value)
        bottom = _HEIGHT - _BOTTOM + 16
        body.append(f'<text x="{at:.1f}" y="{bottom}" text-anchor="middle">{_number(value)}</text>')
    middle = (_LEFT + _WIDTH - _RIGHT) / 2
    body.append(
        f'<text x="{middle}" y="{_HEIGHT - 8}" text-anchor="middle">{escape(x_label)}</text>'
    )
    y_middle = (_TOP + _HEIGHT - _BOTTOM) / 2
    body.append(
        f'<text x="14" y="{y_middle}" text-anchor="middle" transform="rotate(-90 14 {y_middle})">'
        f"{escape(y_label)}</text>"
    )
    return body


def document(figure: str, series: Sequence[Series]) -> str:
    """A figure as a separate SVG file, with its style and the names of its lines."""
    style = STYLE.replace("svg{", "svg{background:var(--page);", 1)
    keys = "".join(
        f'<path class="line" style="{_stroke(one.number)}" d="M450 {24 + 14 * i}h20"/>'
        f'<text x="476" y="{28 + 14 * i}">{escape(one.label)}</text>'
        for i, one in enumerate(series)
    )
    head, tail = figure.replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" ', 1).split(
        ">", 1
    )
    return f"{head}><style>{style}</style>{tail.replace('</svg>', keys + '</svg>')}\n"


def ranks(description: str, columns: Sequence[str], series: Sequence[Series]) -> str:
    """The rank of each series in each column, 1 on top, joined by lines."""
    max_rank = max([2.0, *(v for one in series for v in one.values if v is not None)])
    y = _Axis([1, max_rank], _TOP + 16, _HEIGHT - _BOTTOM, False)
    step = (_WIDTH - _LEFT - _RIGHT) / len(columns)
    places = [_LEFT + step * (i + 0.5) for i in range(len(columns))]
    body = []
    for rank in range(1, int(max_rank) + 1):
        at = y.place(rank)
        body.append(f'<path class="grid" d="M{_LEFT} {at:.1f}H{_WIDTH - _RIGHT}"/>')
        body.append(f'<text x="{_LEFT - 6}" y="{at + 4:.1f}" text-anchor="end">{rank}</text>')
    for place, column in zip(places, columns):
        bottom = _HEIGHT - _BOTTOM + 28
        body.append(
            f'<text x="{place:.1f}" y="{bottom}" text-anchor="middle">{escape(column)}</text>'
        )
    for one in series:
        # Equal ranks are drawn beside each other.
        shift = 7.0 * (one.number - (len(series) - 1) / 2)
        points = [
            (place + shift, y.place(value))
            for place, value in zip(places, one.values)
            if value is not None
        ]
        if not points:
            continue
        path = "L".join(f"{a:.1f} {b:.1f}" for a, b in points)
        body.append(f'<path class="line" style="{_stroke(one.number)}" d="M{path}"/>')
        colour = f"fill:var(--s{one.number % len(_LIGHT)})"
        body += [
            f'<circle class="dot" style="{colour}" cx="{a:.1f}" cy="{b:.1f}" r="5">'
            f"<title>{escape(one.label)}</title></circle>"
            for a, b in points
        ]
    return _frame(description, body)
