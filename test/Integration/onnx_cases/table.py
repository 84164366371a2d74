"""The page that the sweep writes."""

from __future__ import annotations

import collections
import datetime
import re
import sys
from collections.abc import Mapping
from pathlib import Path

from .outcome import CRASH, HANG, NOT_RUN, REFUSED, RIGHT, WRONG, Result
from .trials import KNOWN, MODES, UNKNOWN, Trial

_ROOT = Path(__file__).parents[3]
PATH = _ROOT / "docs" / "onnx-sweep.md"

sys.path.insert(0, str(_ROOT / "test" / "python"))
import refusals

#: An operator counts if this share of its trials is right.
SHARE = 0.95

PAGE = """# The sweep over ONNX's operators

{date}: `{command}`, onnx {onnx}, onnxruntime {ort}.

The command runs configurations of ONNX's operators in the emulator and compares each result with that of onnxruntime,
whose optimizer is off. Every operator has the operator sets of opset 7 to 24 that changed it, its types, and the values
of its attributes in all pairs that onnxruntime runs, eight configurations at least. Each configuration is a model with
all sizes unknown, one with some, and two with none; those with unknown sizes run at even and odd sizes, 1 and 0, where
onnxruntime does. Floats have NaN and infinities in operators on each element and in reductions. `--seed` draws others.

Outside of the sweep are operators of strings, sequences, optional values, random numbers, images and signals, those
whose result's size or control flow depends on data, scans and scatters, and those that onnxruntime does not run.

Of {chosen} configurations that were chosen the command ran {ran}; {skipped} of them onnxruntime does not run. An operator
counts if {share:.0%} of its configurations are right.

| sizes | operators | that count | configurations | right | refused | wrong | crashes and hangs | others |
|---|---|---|---|---|---|---|---|---|
{totals}

## Where onnxruntime departs from ONNX's text

The text decides.

| operator | case |
|---|---|
{departures}

## By operator

*Unknown* and *known* are the shares of right configurations with all sizes unknown and with all known.

| operator | sets | configurations | right | refused | wrong | others | unknown | known |
|---|---|---|---|---|---|---|---|---|
{operators}

## What is not right

{sentences}
"""


def _row(words: str, outcomes: list[str]) -> str:
    counts = collections.Counter(outcomes)
    ended = counts[CRASH] + counts[HANG]
    others = len(outcomes) - counts[RIGHT] - counts[REFUSED] - counts[WRONG] - ended
    return f"| {words} | {len(outcomes)} | {counts[RIGHT]} | {counts[REFUSED]} | {counts[WRONG]} | {ended} | {others} |"


def share(outcomes: list[str]) -> float | None:
    return outcomes.count(RIGHT) / len(outcomes) if outcomes else None


def _percent(value: float | None) -> str:
    return "–" if value is None else f"{100 * value:.0f} %"


def plain(words: str) -> str:
    """A message without names of files, nodes and values."""
    words = re.sub(r"^cannot import '[^']*': ", "", words.partition("\n")[0])
    words = re.sub(r" \(node [^)]*\)", "", words)
    words = re.sub(r"'?\bt\d+_\w+'?|\bt\d+\b", "…", words)
    return words.replace("|", "\\|")[:300]


def grouped(
    found: Mapping[str, Trial], results: Mapping[str, Result]
) -> dict[str, list[tuple[Trial, Result]]]:
    """The trials that onnxruntime runs, by operator."""
    by_operator: dict[str, list[tuple[Trial, Result]]] = collections.defaultdict(list)
    for key, trial in found.items():
        if key in results and results[key].outcome != NOT_RUN:
            by_operator[trial.case.operator].append((trial, results[key]))
    return dict(sorted(by_operator.items()))


def totals(by_operator: Mapping[str, list[tuple[Trial, Result]]]) -> list[str]:
    """A row for each mode of sizes, and one for all."""
    rows = []
    for words, modes in (
        *((f"all {mode}" if mode in (UNKNOWN, KNOWN) else mode, (mode,)) for mode in MODES),
        ("any", MODES),
    ):
        own = {
            operator: [result.outcome for trial, result in pairs if trial.mode in modes]
            for operator, pairs in by_operator.items()
        }
        shares = [value for value in map(share, own.values()) if value is not None]
        if not shares:
            continue
        good = sum(value >= SHARE for value in shares)
        percent = f"{100 * good / max(len(shares), 1):.1f} %"
        rows.append(_row(f"{words} | {len(shares)} | {good} ({percent})", sum(own.values(), [])))
    return rows


def page(found: Mapping[str, Trial], results: Mapping[str, Result], command: str) -> str:
    from importlib.metadata import version

    by_operator = grouped(found, results)
    rows, sentences, departures = [], [], {}
    for operator, pairs in by_operator.items():
        outcomes = [result.outcome for _, result in pairs]
        counts = collections.Counter(outcomes)
        others = len(outcomes) - counts[RIGHT] - counts[REFUSED] - counts[WRONG]
        shares = [
            _percent(share([result.outcome for trial, result in pairs if trial.mode == mode]))
            for mode in (UNKNOWN, KNOWN)
        ]
        sets = ", ".join(map(str, sorted({trial.case.version for trial, _ in pairs})))
        rows.append(f"| {operator} | {sets} | {len(pairs)} | {counts[RIGHT]} | {counts[REFUSED]} | {counts[WRONG]} | {others} | "
                    f"{' | '.join(shares)} |")  # fmt: skip
        said = collections.Counter(
            (result.outcome, plain(result.words)) for _, result in pairs if result.outcome != RIGHT
        )
        sentences += [
            f"| {operator} | {count} | {name} | {words} |"
            for (name, words), count in said.most_common(12)
        ]
        departures |= {operator: trial.case.departure for trial, _ in pairs if trial.case.departure}
    table = ["| operator | configurations | outcome | words |", "|---|---|---|---|", *sentences]
    return PAGE.format(
        date=datetime.date.today().isoformat(), command=command, onnx=version("onnx"), ort=version("onnxruntime"),
        share=SHARE, chosen=len(found), ran=len(results),
        skipped=sum(result.outcome == NOT_RUN for result in results.values()), totals="\n".join(totals(by_operator)), operators="\n".join(rows),
        departures="\n".join(f"| {operator} | {words} |" for operator, words in departures.items()),
        sentences="\n".join(table) if sentences else "Nothing.",
    )  # fmt: skip


def write(found: Mapping[str, Trial], results: Mapping[str, Result], command: str) -> None:
    PATH.write_text(page(found, results, command), encoding="utf-8")


def unclear(found: Mapping[str, Trial], results: Mapping[str, Result]) -> dict[str, list[str]]:
    """The faults of refusals, by the keys of their trials."""
    faults = {
        key: refusals.faults(result.words, [found[key].case.operator])
        for key, result in results.items()
        if result.outcome == REFUSED
    }
    return {key: words for key, words in faults.items() if words}
