"""When the launches of a compiled function run, by predicted times (docs/replay.md)."""

from __future__ import annotations

import io
import json
import operator
import os
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..errors import Error
from ..host import outputs
from . import plotting, replay
from .tables import count, preformatted, table
from .work import KINDS, evaluate, kind_of, known_sizes, missing_sizes

# Colours of Okabe and Ito by kind of work.
_COLOURS = dict(
    zip(
        KINDS,
        (
            "#0072B2",
            "#56B4E9",
            "#E69F00",
            "#009E73",
            "#F0E442",
            "#D55E00",
            "#BBBBBB",
            "#CC79A7",
            "#000000",
        ),
    )
)
# Launches that `Timeline.text` lists unless it is asked for all.
_SHORT_LIST = 40
#: The longest gap and launch interval, in microseconds.
MAX_GAP = 1e6
# Colour of the host in figures.
_HOST_COLOUR = "#444444"


@dataclass(frozen=True)
class Launch:
    """Launches at one place of a function, as many as a call makes there.

    Attributes:
        name: the workload, or the fallback kernel.
        operator, location: what it computes, and where in the source.
        kind: one of `work.KINDS`.
        copied: what a copy copies, and why; empty for other operators.
        shape: extents of a workload's axes; None where they do not follow from the sizes.
        path: the codegen path of a workload's program; None where its shape was not explained.
        blocks: of one launch; None where it is not known.
        kernels: how many kernels run: one for each turn of a loop around it, and a second one where slices are summed. Without
            any it has no gap.
        time: predicted microseconds of all of them; None where the work does not follow from the sizes.
        second: microseconds of a second kernel of one turn.
        after: launches that have to end before, by their numbers.
        is_in_open_loop: true in a loop whose number of turns is not known; one turn counts.
    """

    name: str
    operator: str
    location: str
    kind: str
    shape: dict[str, int] | None
    path: str | None
    blocks: int | None
    kernels: int
    time: float | None
    after: tuple[int, ...]
    is_fallback: bool
    is_in_open_loop: bool
    second: float = 0.0
    copied: str = ""

    @property
    def turn(self) -> tuple[float, ...]:
        """Microseconds of the kernels of a turn; empty if they are equal or not known."""
        if not self.second or not self.kernels or self.time is None:
            return ()
        of_turn = self.time / (self.kernels // 2)
        return of_turn - self.second, self.second


@dataclass(frozen=True)
class ScheduledLaunch:
    """A launch's stream, and microseconds since the host began: its start, its end, and the begin of its issue."""

    stream: int
    start: float
    end: float
    issue: float = 0.0


@dataclass(frozen=True)
class Timeline:
    """One call of a function at certain sizes.

    Attributes:
        device, cost_model, calibration: the device, and the source of the predictions.
        function: its C name.
        sizes: sizes of its arguments, by name.
        streams: number of streams that launches are on.
        gap: microseconds after each kernel in which its stream is idle.
        launch_interval: microseconds that the host takes to issue a kernel.
        launches: launches in the order of the host.
        placed: start and end of each launch.
        missing: sizes that were not given, which are the middle of their ranges.
        beyond: the ranges of sizes that are not in them.
    """

    device: str
    cost_model: str
    calibration: str
    function: str
    sizes: dict[str, int]
    streams: int
    gap: float
    launch_interval: float
    launches: tuple[Launch, ...]
    placed: tuple[ScheduledLaunch, ...]
    missing: tuple[str, ...] = ()
    beyond: dict[str, tuple[int, int | None]] = field(default_factory=dict)

    @property
    def sum(self) -> float:
        """Predicted microseconds of all launches, one after the other without gaps and host."""
        return sum(launch.time or 0.0 for launch in self.launches)

    @property
    def latency(self) -> float:
        """Microseconds from the host's beginning to the end of the last launch."""
        return max(
            (place.end for launch, place in zip(self.launches, self.placed) if launch.kernels),
            default=0.0,
        )

    @property
    def host(self) -> float:
        """Microseconds in which the host issues all kernels."""
        return self.kernels * self.launch_interval

    @property
    def kernels(self) -> int:
        return sum(launch.kernels for launch in self.launches)

    @property
    def unknown(self) -> int:
        """Launches without a predicted time; they count as none."""
        return sum(launch.time is None for launch in self.launches)

    @property
    def fallback_share(self) -> float:
        """The share of fallback kernels in the sum."""
        fallback_time = sum(launch.time or 0.0 for launch in self.launches if launch.is_fallback)
        return fallback_time / self.sum if self.sum else 0.0

    def by(self, key: str) -> list[dict[str, Any]]:
        """Launches, microseconds and share of the sum by `kind` or `operator`, the slowest first."""
        totals: dict[str, list[float]] = defaultdict(lambda: [0, 0.0])
        for launch in self.launches:
            total = totals[getattr(launch, key)]
            total[0] += launch.kernels
            total[1] += launch.time or 0.0
        return [
            {
                key: name,
                "kernels": int(count),
                "us": time,
                "share": time / self.sum if self.sum else 0.0,
            }
            for name, (count, time) in sorted(totals.items(), key=lambda item: -item[1][1])
        ]

    @property
    def title(self) -> str:
        """ "f_main on v100, T = 128"."""
        sizes = "".join(f", {name} = {size}" for name, size in self.sizes.items())
        return f"{self.function} on {self.device}{sizes}"

    def as_json(self) -> dict[str, Any]:
        """Returns the timeline as the JSON of docs/replay.md."""
        return {
            "device": self.device,
            "cost_model": self.cost_model,
            "calibration": self.calibration,
            "function": self.function,
            "sizes": self.sizes,
            "sizes_not_given": [*self.missing],
            "sizes_beyond_range": {name: [*ends] for name, ends in self.beyond.items()},
            "streams": self.streams,
            "gap_us": self.gap,
            "launch_interval_us": self.launch_interval,
            "host_us": self.host,
            "sum_us": self.sum,
            "replay_us": self.latency,
            "kernels": self.kernels,
            "unknown_launches": self.unknown,
            "kinds": self.by("kind"),
            "operators": self.by("operator"),
            "launches": [
                {
                    "name": launch.name,
                    "operator": launch.operator,
                    "location": launch.location,
                    "kind": launch.kind,
                    "copied": launch.copied,
                    "is_fallback": launch.is_fallback,
                    "shape": launch.shape,
                    "path": launch.path,
                    "blocks": launch.blocks,
                    "kernels": launch.kernels,
                    "is_in_open_loop": launch.is_in_open_loop,
                    "predicted_us": launch.time,
                    "issue_us": place.issue,
                    "stream": place.stream,
                    "start_us": place.start,
                    "end_us": place.end,
                    "after": [*launch.after],
                }
                for launch, place in zip(self.launches, self.placed)
            ],
        }

    def __str__(self) -> str:
        return self.text()

    def __repr__(self) -> str:
        return f"<Timeline of {self.title}: {count(self.kernels, 'kernel')}, {self.latency:.1f} µs predicted>"

    def _repr_html_(self) -> str:
        return preformatted(self.text())

    def text(self, most: int | None = _SHORT_LIST) -> str:
        """Sum and replay, times by kind, and the launches in the order in which they begin.

        Lists at most `most` launches, the first and the last ones; None: all. Raises `ValueError` for a negative number.
        """
        if most is not None and most < 0:
            raise ValueError(f"most: expected a number from 0 on, but got {most}")
        streams = "one stream" if self.streams == 1 else f"{self.streams} streams"
        lines = [
            f"Timeline of {self.title}: predicted by {self.cost_model}, calibration {self.calibration}",
            f"  {self.latency:.1f} µs on {streams}, gaps of {self.gap:g} µs; "
            f"sum of {count(self.kernels, 'kernel')} {self.sum:.1f} µs",
        ]
        if self.launch_interval:
            lines.append(
                f"  the host issues a kernel every {self.launch_interval:g} µs, all of them in {self.host:.1f} µs"
            )
        lines += [
            f"  {name} is not given: {self.sizes[name]}, the middle of its range"
            for name in self.missing
        ]
        lines += [
            f"  {name} = {self.sizes[name]} is beyond its range, {range_text(*ends)}"
            for name, ends in self.beyond.items()
        ]
        if self.unknown:
            lines.append(
                f"  {self.unknown} {_launches_are(self.unknown)} not in it: the work does not follow from the sizes"
            )
        loops = sum(launch.is_in_open_loop for launch in self.launches)
        if loops:
            lines.append(
                f"  {loops} {_launches_are(loops)} in loops whose turns are not known, and counted once"
            )
        rows = [
            [f"{total['us']:.1f}", f"{total['share']:.1%}", str(total["kernels"]), total["kind"]]
            for total in self.by("kind")
        ]
        lines += _indented(table(rows, ["µs", "of all", "kernels", "kind"]), 4)
        if most == 0:
            return "\n".join(lines)
        order = sorted(range(len(self.launches)), key=lambda i: (self.placed[i].start, i))
        hidden = 0 if most is None else max(0, len(order) - most)
        first = len(order) if most is None else (most + 1) // 2
        shown = order if not hidden else [*order[:first], *order[first + hidden :]]
        rows = [self._row(number) for number in shown]
        header = ["start µs", "end µs", "stream", "kernel", "shape", "blocks", "by", "operator"]
        text = table(rows, header).splitlines()
        if hidden:
            text.insert(1 + first, f"… {hidden} launches …")
        return "\n".join([*lines, *_indented("\n".join(text), 4)])

    def _row(self, number: int) -> list[str]:
        launch, place = self.launches[number], self.placed[number]
        shape = " × ".join(f"{size}" for size in (launch.shape or {}).values())
        end = "not known" if launch.time is None else f"{place.end:.2f}"
        blocks = "" if launch.blocks is None else str(launch.blocks)
        computed_by = "fallback" if launch.is_fallback else launch.path or ""
        computed = f"{launch.operator}: {launch.copied}" if launch.copied else launch.operator
        return [
            f"{place.start:.2f}", end, str(place.stream), launch.name, shape, blocks, computed_by, computed,
        ]  # fmt: skip


def range_text(low: int, high: int | None) -> str:
    """ "1 to 16", "1 on" without a greatest one."""
    return f"{low} on" if high is None else f"{low} to {high}"


def _launches_are(count: int) -> str:
    return "launch is" if count == 1 else "launches are"


def _indented(text: str, width: int) -> list[str]:
    return [" " * width + line for line in text.splitlines()]


def milliseconds(microseconds: float) -> str:
    """Milliseconds with four significant digits."""
    return f"{microseconds / 1000:.4g}"


def overview(found: Sequence[Timeline], limit: int | None = None) -> str:
    """A table with a row for each timeline, the first `limit` of them."""
    first = found[0]
    is_one_function = len({one.function for one in found}) == 1
    rows = []
    for one in found[:limit]:
        slowest = next(iter(one.by("kind")), None)
        sizes = [str(size) for size in one.sizes.values()]
        rows.append(
            [
                one.device,
                *(sizes if is_one_function else [one.title]),
                milliseconds(one.latency),
                milliseconds(one.sum),
                str(one.kernels),
                f"{one.fallback_share:.1%}",
                f"{slowest['kind']} {slowest['share']:.1%}" if slowest is not None else "",
                *([str(one.unknown)] if any(other.unknown for other in found) else []),
            ]
        )
    columns = first.sizes if is_one_function else ["call"]
    header = ["device", *columns, "ms", "sum ms", "kernels", "fallback", "most of it"]
    if any(one.unknown for one in found):
        header.append("launches not in it")
    how = [f", {first.streams} streams"] if first.streams > 1 else []
    how += [f", gaps of {first.gap:g} µs"] if first.gap else []
    how += (
        [f", a kernel issued every {first.launch_interval:g} µs"] if first.launch_interval else []
    )
    name = first.function if is_one_function else "Calls"
    title = f"{name}, predicted by {first.cost_model}{''.join(how)}"
    more = [] if limit is None or len(found) <= limit else [f"… {len(found) - limit} more"]
    return "\n".join([title, table(rows, header), *more])


# ------------------------------------------------------------------------------------------------
# From explanations
# ------------------------------------------------------------------------------------------------


def timelines(
    data: Mapping[str, Any], streams: int = 1, gap: float = 0.0, launch_interval: float = 0.0
) -> list[Timeline]:
    """The timelines of an explanation's functions, at each of the sizes that it was asked for.

    Args:
        data: `Explanation.data`, of explanations with sizes.
        streams: over how many streams launches that do not wait for each other are spread. Predicted times are of a
            kernel that has the device for itself, so that with more than one the replay is a lower bound.
        gap: microseconds after each kernel in which its stream is idle: 0 if a call is a graph of CUDA, at most a second.
        launch_interval: microseconds that the host takes to issue a kernel, at most a second. It issues those of all streams in
            its order and does not wait for the device; a kernel starts once its stream is free and its issue has ended.

    Raises `ValueError` for numbers that are none of these, and `Error` for a module that cannot be lowered to launches.
    """
    streams = whole_number("streams", streams)
    if streams < 1:
        raise ValueError(f"streams: expected at least 1, but got {streams}")
    for name, value in (("gap", gap), ("launch_interval", launch_interval)):
        if not isinstance(value, (int, float)) or not 0 <= value <= MAX_GAP:
            raise ValueError(
                f"{name}: expected microseconds from 0 to {MAX_GAP:.0f}, but got {value!r}"
            )
    if data["functions"] is None:
        raise Error("there is no timeline: the module has no lowering to launches")
    found = []
    for function in data["functions"]:
        for number, share in enumerate(function["work"]["shares"]):
            launches = _launches(data, function["work"], number)
            placed = _place(launches, streams, gap, launch_interval)
            sizes = share["sizes"]
            given = data["sizes"][number] if data.get("sizes") else sizes
            missing = missing_sizes(function["work"], given)
            beyond_range = beyond_ranges(function["work"], given, sizes)
            found.append(
                Timeline(
                    data["device"],
                    data["cost_model"],
                    data["calibration"],
                    function["symbol"],
                    sizes,
                    streams,
                    gap,
                    launch_interval,
                    tuple(launches),
                    tuple(placed),
                    tuple(missing),
                    beyond_range,
                )  # fmt: skip
            )
    return found


def whole_number(name: str, value: Any) -> int:
    """The value of an argument. Raises `ValueError` if it is not an integer."""
    try:
        return operator.index(value)
    except TypeError:
        raise ValueError(f"{name}: expected a whole number, but got {value!r}") from None


def beyond_ranges(
    work: Mapping[str, Any], given: Iterable[str], sizes: Mapping[str, int]
) -> dict[str, tuple[int, int | None]]:
    """The ranges of the function's sizes that given ones tell, and that are not in them."""
    known = known_sizes(work, given)
    return {
        name: (low, high)
        for name, (low, high) in zip(work["sizes"], work["size_ranges"])
        if name in known and (sizes[name] < low or (high is not None and sizes[name] > high))
    }


def _launches(data: Mapping[str, Any], work: Mapping[str, Any], number: int) -> list[Launch]:
    """The launches at the sizes with this number, in the order of the host."""
    sizes = work["shares"][number]["sizes"]
    workloads = {
        name: workload
        for workload in data["workloads"]
        for name in (workload["name"], *workload["equal_workloads"])
    }

    def value(formula: Any) -> int | None:
        return None if formula is None else round(max(0, evaluate(formula, sizes)))

    items = [*work["workloads"], *work["fallback_kernels"]]
    launches = []
    for item in sorted(items, key=lambda item: int(item["position"])):
        is_fallback = "kernel" in item
        turns = value(item["launches"])
        extents = None if is_fallback else [value(extent) for extent in item["extents"]]
        shape = program = None
        if extents is not None and None not in extents:
            shape = dict(zip(item["axes"], extents))
            program = _program(workloads.get(item["workload"]), extents)
        blocks = value(item["blocks"]) if is_fallback else None
        kernels, second = 1, 0.0
        time = item["predicted_us"][number]
        if program is not None:
            blocks = program["metrics"]["blocks"]
            if program["reduce_split"] > 1:
                kernels, second = 2, _second_kernel(program)
        launches.append(
            Launch(
                name=item["kernel"] if is_fallback else item["workload"],
                operator=item["operator"],
                location=item["location"],
                kind=kind_of(item),
                shape=shape,
                path=program["path"] if program is not None else None,
                blocks=blocks,
                # A launch without elements does not happen.
                kernels=0 if time == 0 else kernels * (1 if turns is None else turns),
                time=time,
                after=tuple(item["after"]),
                is_fallback=is_fallback,
                is_in_open_loop=turns is None,
                second=second,
                copied=item.get("copied", ""),
            )
        )
    return launches


def _second_kernel(program: Mapping[str, Any]) -> float:
    """Predicted microseconds of the kernel that sums slices; 0 where the cost model does not tell them apart.

    Slices of rows are not sums: each of their launches passes over the rows.
    """
    terms = () if program["path"] == "rows" else program.get("predicted_terms") or ()
    return next((float(term["us"]) for term in terms if term["name"] == "second_kernel"), 0.0)


def _program(workload: Mapping[str, Any] | None, extents: Sequence[int | None]) -> Any:
    """The explained program of a shape."""
    shapes = workload["shapes"] if workload is not None else ()
    return next((shape["program"] for shape in shapes if shape["shape"] == extents), None)


def _place(
    launches: Sequence[Launch], streams: int, gap: float, launch_interval: float
) -> list[ScheduledLaunch]:
    queued = replay.assign(
        [launch.time or 0.0 for launch in launches],
        [launch.after for launch in launches],
        streams,
        gap,
        launch_interval,
        [launch.kernels for launch in launches],
        [launch.turn for launch in launches],
    )
    found: list[ScheduledLaunch | None] = [None] * len(launches)
    for item in replay.replay(queued, gap, launch_interval):
        found[item.launch] = ScheduledLaunch(
            queued[item.launch].queue, item.start, item.end, item.issue
        )
    return [place for place in found if place is not None]


# ------------------------------------------------------------------------------------------------
# Files
# ------------------------------------------------------------------------------------------------


def trace(found: Iterable[Timeline]) -> dict[str, Any]:
    """The timelines as a trace that chrome://tracing and ui.perfetto.dev open.

    In the JSON object form of the Trace Event Format: a process for each timeline, a thread for each stream, a complete
    event (`ph` X, with `ts` and `dur` in microseconds) for each launch, and a flow between streams where one launch waits
    for another. With a launch interval the host is one more thread, with an event while it issues each launch.
    """
    events: list[dict[str, Any]] = []
    flows = 0
    for pid, timeline in enumerate(found, 1):
        events.append(_metadata("process_name", pid, 0, f"{timeline.title} (predicted)"))
        for stream in range(timeline.streams):
            events.append(_metadata("thread_name", pid, stream, f"stream {stream}"))
        if timeline.launch_interval:
            events.append(_metadata("thread_name", pid, timeline.streams, "host"))
        for number, (launch, place) in enumerate(zip(timeline.launches, timeline.placed)):
            at = {"pid": pid, "tid": place.stream, "ts": place.start}
            events.append(
                {
                    "name": launch.name,
                    "cat": launch.kind,
                    "ph": "X",
                    "dur": place.end - place.start,
                    **at,
                    "args": {
                        "number": number,
                        "operator": launch.operator,
                        "location": launch.location,
                        "shape": launch.shape,
                        "blocks": launch.blocks,
                        "kernels": launch.kernels,
                        "by": "fallback" if launch.is_fallback else launch.path,
                        "is_known": launch.time is not None,
                    },
                }  # fmt: skip
            )
            if timeline.launch_interval and launch.kernels:
                issue = {"ts": place.issue, "dur": launch.kernels * timeline.launch_interval}
                events.append(
                    {
                        "name": launch.name,
                        "cat": "host",
                        "ph": "X",
                        "pid": pid,
                        "tid": timeline.streams,
                        **issue,
                        "args": {"number": number, "kernels": launch.kernels},
                    }  # fmt: skip
                )
            for other in launch.after:
                before = timeline.placed[other]
                if before.stream == place.stream:
                    continue
                flows += 1
                flow = {"name": "waits", "cat": "order", "id": flows, "pid": pid}
                # A flow begins and ends within a slice.
                events.append({**flow, "ph": "s", "tid": before.stream, "ts": before.start})
                events.append(
                    {**flow, "ph": "f", "bp": "e", "tid": place.stream, "ts": place.start}
                )
    return {"traceEvents": events, "displayTimeUnit": "ns"}


def _metadata(name: str, pid: int, tid: int, value: str) -> dict[str, Any]:
    return {"name": name, "ph": "M", "pid": pid, "tid": tid, "ts": 0, "args": {"name": value}}


def trace_text(found: Iterable[Timeline]) -> str:
    """The trace as the text of a file."""
    return json.dumps(trace(found), indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def draw(found: Sequence[Timeline], output: str | os.PathLike[str]) -> Path:
    """Draws the launches of each timeline over time, a line for each stream and the host, and the shares of kinds.

    The suffix is the format, `.svg`, `.png` or `.pdf`. Raises `Error` for another one, without Matplotlib, and for no
    timeline, before anything is written.
    """
    path = Path(output)
    outputs.write({str(path): drawn(found, path)})
    return path


def drawn(found: Sequence[Timeline], output: str | os.PathLike[str]) -> bytes:
    """The content of the file that `draw` writes."""
    plotting.check_output(output)
    if not found:
        raise Error("there is no timeline to draw")
    pyplot = plotting.load_matplotlib()
    lines = sum(timeline.streams + bool(timeline.launch_interval) for timeline in found)
    figure, (over_time, shares) = pyplot.subplots(
        2,
        1,
        figsize=(10, 2.4 + 0.45 * lines + 0.35 * len(found)),
        layout="constrained",
        gridspec_kw={"height_ratios": [0.45 * lines + 0.5, 0.35 * len(found) + 0.5]},
    )
    try:
        _draw_launches(over_time, found)
        _draw_shares(shares, found)
        figure.legend(ncols=len(KINDS), fontsize=7, loc="outside lower center", frameon=False)
        functions = ", ".join(dict.fromkeys(timeline.function for timeline in found))
        over_time.set_title(
            f"{functions}, predicted by {found[0].cost_model}; nothing was measured", fontsize=10
        )
        content = io.BytesIO()
        plotting.save_figure(figure, content, Path(output).suffix)
    finally:
        pyplot.close(figure)
    return content.getvalue()


def _labels(found: Sequence[Timeline]) -> list[str]:
    """Returns the shortest labels that tell the timelines apart."""
    has_several = len({timeline.function for timeline in found}) > 1
    names: list[str] = []
    for timeline in found:
        sizes = (f"{name} = {size}" for name, size in timeline.sizes.items())
        names.append(
            ", ".join([*([timeline.function] if has_several else []), timeline.device, *sizes])
        )
    return names


def _draw_launches(axes: Any, found: Sequence[Timeline]) -> None:
    names: list[str] = []
    for timeline, label in zip(found, _labels(found)):
        if timeline.launch_interval:
            issues = [
                (place.issue, launch.kernels * timeline.launch_interval)
                for launch, place in zip(timeline.launches, timeline.placed)
                if launch.kernels
            ]
            axes.broken_barh(
                issues,
                (len(names) - 0.2, 0.4),
                facecolor=_HOST_COLOUR,
                edgecolor="white",
                linewidth=0.1,
            )
            names.append(f"{label}, host")
        for stream in range(timeline.streams):
            line = len(names)
            names.append(label if timeline.streams == 1 else f"{label}, stream {stream}")
            for kind in KINDS:
                bars = [
                    (place.start, place.end - place.start)
                    for launch, place in zip(timeline.launches, timeline.placed)
                    if place.stream == stream and launch.kind == kind and place.end > place.start
                ]
                if bars:
                    axes.broken_barh(
                        bars,
                        (line - 0.4, 0.8),
                        facecolor=_COLOURS[kind],
                        edgecolor="white",
                        linewidth=0.1,
                    )
            if stream == 0:
                axes.text(
                    timeline.latency, line, f" {timeline.latency:,.0f} µs", va="center", fontsize=8
                )
    axes.set_yticks(range(len(names)), names, fontsize=8)
    axes.invert_yaxis()
    axes.set_xlim(0, 1.12 * max(max(timeline.latency for timeline in found), 1e-9))
    axes.set_xlabel("µs")


def _draw_shares(axes: Any, found: Sequence[Timeline]) -> None:
    labels = _labels(found)
    left = [0.0] * len(found)
    shares = [
        {total["kind"]: total["share"] for total in timeline.by("kind")} for timeline in found
    ]
    for kind in KINDS:
        widths = [100 * share.get(kind, 0.0) for share in shares]
        if any(widths):
            axes.barh(
                range(len(found)), widths, left=left, color=_COLOURS[kind], label=kind, height=0.7
            )
            left = [start + width for start, width in zip(left, widths)]
    axes.set_yticks(range(len(found)), labels, fontsize=8)
    axes.invert_yaxis()
    axes.set_xlim(0, 100)
    axes.set_xlabel("share of the sum, %")
