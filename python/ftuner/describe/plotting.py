"""Pictures of explanations (docs/explain.md): how a plan serves the sizes of each workload."""

from __future__ import annotations

import io
import itertools
import json
import math
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, BinaryIO

from ..errors import Error
from ..host import outputs

#: The version of explanations.
FORMAT_VERSION = 5
SUFFIXES = (".svg", ".png", ".pdf")

# Colours of Okabe and Ito, which colour-blind readers can tell apart.
_CHOSEN, _SINGLE, _SIA, _ROOFLINE = "#0072B2", "#D55E00", "#009E73", "#000000"
# Families outnumber the colours; white lines part them, and numbers name them.
_BAND = ("#56B4E9", "#F0E442", "#009E73", "#E69F00", "#CC79A7", "#BBBBBB")
# Terms of a predicted time from bottom to top: what a launch costs whatever it computes, what
# waits, what works.
_TERMS = {
    "launch": ("launch", "#555555"),
    "second_kernel": ("second kernel", "#8C5A2B"),
    "block_start": ("block start", "#AAAAAA"),
    "tail": ("tail of waves", "#DDDDDD"),
    "latency": ("latency", "#E69F00"),
    "issue": ("issue", "#0072B2"),
    "shared_memory": ("shared memory", "#56B4E9"),
    "l2": ("L2", "#009E73"),
    "dram": ("DRAM", "#F0E442"),
    "power": ("power limit", "#D55E00"),
}
_OTHER_TERM = "#CC79A7"
# Sizes that lie further apart than this are drawn on a logarithmic axis, times likewise.
_LOGARITHMIC_RATIO = 1024
_LOGARITHMIC_TIMES = 8
# Terms that never have this share of the time are left out.
_MIN_SHARE = 0.005
# Up to here, in percent, the axis of regrets is linear.
_LINEAR_PERCENT = 5
# With more sizes lines are drawn thinner.
_MANY_SIZES = 150

Program = dict[str, Any]
Workload = dict[str, Any]
# Label of a panel, what it draws of a program.
Panel = tuple[str, Callable[[Program], float]]

METRICS: tuple[Panel, ...] = (
    ("padding (% of the work)", lambda program: 100 * (1 - program["metrics"]["pad"])),
    ("Occ (% of SMs busy)", lambda program: 100 * program["metrics"]["occ"]),
    ("CMR (compute / memory time)", lambda program: program["metrics"]["cmr"]),
    ("score", lambda program: program["score"]),
)


def load(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Reads the JSON of an explanation. Raises `Error` for anything else."""
    try:
        explanation = json.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise Error(f"cannot read '{path}': {error.strerror}") from error
    except ValueError as error:
        raise Error(f"'{path}' is no JSON: {error}") from error
    if (
        not isinstance(explanation, dict)
        or not isinstance(explanation.get("workloads"), list)
        or not all(
            isinstance(workload, dict) and "shapes" in workload
            for workload in explanation["workloads"]
        )
    ):
        raise Error(f"'{path}': expected the JSON of ftuner-translate --ftuner-explain --json")
    version = explanation.get("format_version")
    if version != FORMAT_VERSION:
        raise Error(f"'{path}': expected format version {FORMAT_VERSION}, but got {version}")
    return explanation


def draw_plan(
    explanation: dict[str, Any],
    output: str | os.PathLike[str],
    *,
    workload: str | None = None,
    metrics: bool = False,
) -> list[Path]:
    """Draws one figure for each workload that has several sizes; returns the files.

    The figure has the predicted times over the sizes of the main axis, by how much programs are
    slower than the fastest that was seen, and the share of each term in the time of the chosen
    ones; with `metrics` instead padding, occupancy, compute-to-memory ratio and score. The suffix
    of the output is the format; with several workloads each file has the workload's name.
    `workload` chooses one by its name, or by that of an equal one. Raises `Error` where there is
    nothing to draw, no Matplotlib, or no such workload, before anything is written.
    """
    check_output(output)
    path = Path(output)
    workloads = _choose(explanation, workload)
    pyplot = load_matplotlib()
    figures = []
    contents: dict[str, bytes] = {}
    try:
        for item in workloads:
            draw = _draw_metrics if metrics else _draw_times
            try:
                figures.append(draw(pyplot, explanation, item))
            except (KeyError, TypeError, IndexError) as error:
                raise Error(f"the explanation lacks what a figure needs: {error!r}") from error
        for figure, item in zip(figures, workloads):
            target = path
            if len(workloads) > 1:
                target = path.with_name(f"{path.stem}-{item['name']}{path.suffix}")
            content = io.BytesIO()
            save_figure(figure, content, path.suffix)
            contents[str(target)] = content.getvalue()
    finally:
        for figure in figures:
            pyplot.close(figure)
    outputs.write(contents)
    return [Path(target) for target in contents]


def check_output(output: str | os.PathLike[str]) -> None:
    """Raises `Error` for a file whose suffix is no format."""
    if Path(output).suffix not in SUFFIXES:
        raise Error(
            f"expected an output that ends in one of {', '.join(SUFFIXES)}, but got '{output}'"
        )


def load_matplotlib() -> Any:
    """Matplotlib's pyplot with the settings of our figures. Raises `Error` without it."""
    try:
        import matplotlib
    except ImportError:
        raise Error(
            "Matplotlib is missing: pip install matplotlib, or use the Python of .venv, where "
            "tools/setup.sh installs it"
        ) from None
    matplotlib.use("Agg")
    # Text stays text, and equal input gives equal bytes.
    matplotlib.rcParams.update(
        {"svg.fonttype": "none", "svg.hashsalt": "ftuner", "savefig.dpi": 150}
    )
    from matplotlib import pyplot

    return pyplot


def save_figure(figure: Any, target: Path | BinaryIO, suffix: str) -> None:
    """Saves a figure without the date, in the format of one of `SUFFIXES`."""
    metadata = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}}.get(suffix)
    figure.savefig(target, format=suffix[1:], metadata=metadata)


def _choose(explanation: dict[str, Any], name: str | None) -> list[Workload]:
    """The workloads to draw: those with several sizes, or the named one, or that it is equal to."""
    workloads: list[Workload] = explanation["workloads"]
    if name is not None:
        known = [
            [str(workload.get("name")), *workload.get("equal_workloads", [])]
            for workload in workloads
        ]
        workloads = [workload for workload, names in zip(workloads, known) if name in names]
        if not workloads:
            expected = ", ".join(itertools.chain.from_iterable(known))
            raise Error(f"unknown workload '{name}': expected one of {expected}")
    drawable = [workload for workload in workloads if len(workload["shapes"]) > 1]
    if not drawable:
        raise Error(
            "expected a workload with several sizes: explain without --size, "
            "a workload with a dynamic axis"
        )
    return drawable


# ------------------------------------------------------------------------------------------------
# Parts of figures
# ------------------------------------------------------------------------------------------------


def _series(workload: Workload, kind: str, value: Callable[[Program], float]) -> list[float]:
    """`value` of the programs of a kind over the sizes; NaN without a program."""
    programs = [shape[kind] for shape in workload["shapes"]]
    return [math.nan if program is None else value(program) for program in programs]


def _sizes(workload: Workload) -> list[int]:
    return [shape["shape"][workload["main_axis"]] for shape in workload["shapes"]]


def _axis_text(axis: dict[str, Any]) -> str:
    """The axis, and the symbols that its extent is a product of, unless it is called as one."""
    factors = ([str(axis["factor"])] if axis["factor"] != 1 else []) + axis["symbols"]
    if not axis["symbols"] or factors == [axis["name"]]:
        return str(axis["name"])
    return f"{axis['name']} = {' · '.join(factors)}"


def _other_axes(workload: Workload) -> str:
    """The extents of all axes but the main one; some follow the main one."""
    first, last = (workload["shapes"][index]["shape"] for index in (0, -1))
    return ", ".join(
        f"{axis['name']} = {first[index]}" if first[index] == last[index] else _axis_text(axis)
        for index, axis in enumerate(workload["axes"])
        if index != workload["main_axis"]
    )


def _make_panels(
    pyplot: Any, explanation: dict[str, Any], workload: Workload, heights: Sequence[float]
) -> tuple[Any, Any]:
    """A figure with panels of these heights, above one that tells the families."""
    sizes = _sizes(workload)
    figure, panels = pyplot.subplots(
        len(heights) + 1,
        1,
        sharex=True,
        figsize=(8.5, sum(heights) + 1.4),
        layout="constrained",
        gridspec_kw={"height_ratios": [*heights, 0.45]},
    )
    for panel in panels[:-1]:
        panel.grid(True, color="#dddddd", linewidth=0.5)
        panel.set_axisbelow(True)
        panel.margins(x=0)
    if sizes[-1] > _LOGARITHMIC_RATIO * sizes[0]:
        panels[0].set_xscale("log", base=2)
    else:
        panels[0].xaxis.get_major_locator().set_params(integer=True)
    _draw_band(panels[-1], workload, sizes)
    axis = workload["axes"][workload["main_axis"]]
    panels[-1].set_xlabel(f"size of axis {_axis_text(axis)} (elements)")
    panels[0].set_title(
        f"{workload['name']} on {explanation['device']}, {_other_axes(workload)}\n"
        f"{explanation['strategy']} by {explanation['cost_model']}, "
        f"calibration {explanation['calibration']}",
        fontsize=10,
    )
    return figure, panels[:-1]


def _band_colours(families: list[int]) -> dict[int, str]:
    """A colour for each family; neighbours along the sizes differ where six colours allow it."""
    neighbours: dict[int, set[int]] = {family: set() for family in families}
    for one, other in zip(families, families[1:]):
        if one != other:
            neighbours[one].add(other)
            neighbours[other].add(one)
    colours: dict[int, str] = {}
    for family in dict.fromkeys(families):
        taken = {colours.get(other) for other in neighbours[family]}
        used = list(colours.values())
        colours[family] = min(_BAND, key=lambda colour: (colour in taken, used.count(colour)))
    return colours


def _draw_band(panel: Any, workload: Workload, sizes: list[int]) -> None:
    """One stripe for each run of sizes that one family serves, with its number."""
    families = [shape["family"] for shape in workload["shapes"]]
    colours = _band_colours(families)
    starts = [0] + [i for i in range(1, len(sizes)) if families[i] != families[i - 1]]
    # Between two sizes, as the steps of the lines are.
    places = [sizes[0], *((sizes[i - 1] + sizes[i]) / 2 for i in starts[1:]), sizes[-1]]
    panel.set_xlim(sizes[0], sizes[-1])
    to_axes = panel.transData + panel.transAxes.inverted()
    for start, left, right in zip(starts, places, places[1:]):
        panel.axvspan(
            left, right, facecolor=colours[families[start]], edgecolor="white", linewidth=0.5
        )
        first, last = (to_axes.transform((place, 0))[0] for place in (left, right))
        if last - first > 0.025:  # There is room for the number.
            panel.text(
                (first + last) / 2,
                0.5,
                str(families[start]),
                ha="center",
                va="center",
                fontsize=7,
                transform=panel.transAxes,
            )
    panel.set_yticks([])
    panel.set_ylabel("family", rotation=0, ha="right", va="center")


# ------------------------------------------------------------------------------------------------
# Times
# ------------------------------------------------------------------------------------------------

# Kinds of programs, under the keys of the JSON; the last is drawn on top. Where two agree, the
# dashes of the upper one leave the wider lower one in sight.
_KINDS: tuple[tuple[str, str, dict[str, Any]], ...] = (
    ("program", "chosen program", {"color": _CHOSEN, "linewidth": 2.4}),
    ("best_single", "best single uKernel", {"color": _SINGLE, "linewidth": 1.1, "linestyle": "--"}),
    ("sia_choice", "SIA's choice", {"color": _SIA, "linewidth": 1.1, "linestyle": "-."}),
)


def _draw_times(pyplot: Any, explanation: dict[str, Any], workload: Workload) -> Any:
    figure, (times, regrets, shares) = _make_panels(pyplot, explanation, workload, (3.6, 2.2, 3.2))
    sizes = _sizes(workload)
    shapes = workload["shapes"]
    width = 1.0 if len(sizes) <= _MANY_SIZES else 0.5
    roofline = [shape["roofline_us"] for shape in shapes]
    lowest, highest = min(roofline), max(roofline)
    for kind, label, style in _KINDS:
        style = {**style, "linewidth": width * style["linewidth"]}
        values = _series(workload, kind, lambda program: program["predicted_us"])
        times.plot(sizes, values, label=label, drawstyle="steps-mid", **style)
        highest = max([highest, *(value for value in values if not math.isnan(value))])
        fastest = [shape["fastest"]["predicted_us"] for shape in shapes]
        percents = [100 * (value / best - 1) for value, best in zip(values, fastest)]
        regrets.plot(sizes, percents, label=label, drawstyle="steps-mid", **style)
    times.plot(
        sizes, roofline, color=_ROOFLINE, linewidth=1.1, linestyle=":", label="roofline",
        drawstyle="steps-mid",
    )  # fmt: skip
    if highest > _LOGARITHMIC_TIMES * lowest:
        times.set_yscale("log")
        _label_plainly(times.yaxis, lowest, highest)
    else:
        times.set_ylim(bottom=0)
    times.set_ylabel("predicted time (µs)")
    times.legend(fontsize=8, loc="best")
    _scale_percents(regrets)
    regrets.set_ylabel("slower than the\nfastest seen (%)")
    _draw_shares(shares, workload, sizes)
    return figure


def _label_plainly(axis: Any, lowest: float, highest: float) -> None:
    """Labels a logarithmic axis by numbers as people write them, a few of each decade."""
    from matplotlib import ticker

    digits = (1.0, 2.0, 5.0) if highest < 200 * lowest else (1.0,)
    axis.set_major_locator(ticker.LogLocator(subs=digits, numticks=20))
    axis.set_major_formatter(ticker.FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_formatter(ticker.NullFormatter())


def _scale_percents(panel: Any) -> None:
    """An axis from 0 that shows one percent and hundreds of them."""
    from matplotlib import ticker

    top = max([1.0, *(max(_finite(line.get_ydata())) for line in panel.get_lines())])
    if top > 2 * _LINEAR_PERCENT:
        panel.set_yscale("symlog", linthresh=_LINEAR_PERCENT, linscale=1)
        steps = [0, 2, 5, *(digit * 10**power for power in range(1, 7) for digit in (1, 2, 5))]
        ticks = [step for step in steps if step <= top * 1.1]
        if len(ticks) > 9:
            ticks = [tick for tick in ticks if str(tick)[0] in "015"]
        panel.yaxis.set_major_locator(ticker.FixedLocator(ticks))
        panel.yaxis.set_minor_locator(ticker.NullLocator())
        panel.yaxis.set_major_formatter(ticker.FuncFormatter(lambda value, _: f"{value:g}"))
    panel.set_ylim(-0.03 * top if top <= 2 * _LINEAR_PERCENT else -0.3, 1.1 * top)


def _finite(values: Any) -> list[float]:
    """The numbers among them, or 0."""
    return [float(value) for value in values if not math.isnan(value)] or [0.0]


def _draw_shares(panel: Any, workload: Workload, sizes: list[int]) -> None:
    """The share of each term in the predicted time of the chosen programs."""
    shares: dict[str, list[float]] = {}
    for index, shape in enumerate(workload["shapes"]):
        for term in shape["program"]["predicted_terms"]:
            values = shares.setdefault(term["name"], [0.0] * len(sizes))
            values[index] = 100 * term["share"]
    names = [name for name in _TERMS if name in shares]
    names += [name for name in shares if name not in _TERMS]
    bottom = [0.0] * len(sizes)
    for name in names:
        top = [low + share for low, share in zip(bottom, shares[name])]
        label, colour = _TERMS.get(name, (name, _OTHER_TERM))
        if max(shares[name]) >= 100 * _MIN_SHARE:
            panel.fill_between(
                sizes, bottom, top, step="mid", facecolor=colour, edgecolor="white",
                linewidth=0.3, label=label,
            )  # fmt: skip
        bottom = top
    panel.set_ylim(0, 100)
    panel.set_ylabel("share of the chosen\nprogram's time (%)")
    handles, labels = panel.get_legend_handles_labels()
    panel.legend(
        handles[::-1], labels[::-1], fontsize=8, loc="center left", bbox_to_anchor=(1.005, 0.5),
        frameon=False, borderaxespad=0.2,
    )  # fmt: skip


# ------------------------------------------------------------------------------------------------
# Metrics
# ------------------------------------------------------------------------------------------------


def _draw_metrics(pyplot: Any, explanation: dict[str, Any], workload: Workload) -> Any:
    figure, panels = _make_panels(pyplot, explanation, workload, [2.3] * len(METRICS))
    sizes = _sizes(workload)
    for panel, (label, value) in zip(panels, METRICS):
        for kind, name, style in _KINDS[:2]:
            panel.plot(sizes, _series(workload, kind, value), label=name, **style)
        panel.set_ylabel(label)
    best = [shape["best_score"] for shape in workload["shapes"]]
    panels[3].plot(
        sizes, best, color=_ROOFLINE, linewidth=0.9, linestyle=":", label="best program of the size"
    )
    handles, labels = panels[3].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3, fontsize=9)
    return figure
