"""Plans of searches that are compared: made by the compiler, and kept in a file."""

from __future__ import annotations

import hashlib
import json
import os
import re
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from . import __version__, compiler, descriptions, judges, outputs
from .errors import CompileError, Error
from .explanation import explain_data

#: Of the facts that are kept.
FORMAT_VERSION = 1


@dataclass(frozen=True)
class Strategy:
    """A strategy with options of its own."""

    #: As it was written, `gensor:virtual-threads=false`.
    label: str
    name: str
    options: Mapping[str, str]

    @staticmethod
    def parse(text: str) -> Strategy:
        """NAME, or NAME:OPTION=VALUE:…; a value may have colons. Raises `Error` for anything else."""
        name, *parts = re.split(r":(?=[a-z0-9-]+=)", text)
        options = {}
        for part in parts:
            option, _, value = part.partition("=")
            options[option.replace("-", "_")] = value
        if not re.fullmatch(r"[a-z0-9_-]+", name):
            raise Error(f"expected a strategy, or STRATEGY:OPTION=VALUE, but got '{text}'")
        return Strategy(text, name, options)


@dataclass(frozen=True)
class Answer:
    """What a search planned; `facts` are None if it found no plan, and `failure` says why."""

    seconds: float
    failure: str
    facts: dict[str, Any] | None
    #: Bytes of PTX by workload, `""` for all; None if nobody asked or it could not be generated.
    code: dict[str, int] | None = None


class State:
    """Plans that are kept in a file, a JSON object in each line. Without a path nothing is kept."""

    def __init__(self, path: str | os.PathLike[str] | None) -> None:
        self._path = None if path is None else Path(path)
        self._contents: dict[str, Any] = {}
        if self._path is None:
            return
        outputs.check_folder(str(self._path))
        if not self._path.exists():
            return
        try:
            lines = self._path.read_text(encoding="utf-8").splitlines(keepends=True)
        except (OSError, UnicodeDecodeError) as error:
            reason = getattr(error, "strerror", None) or "expected text"
            raise Error(f"cannot read '{self._path}': {reason}") from error
        if lines and not lines[-1].endswith("\n"):
            # It was cut off.
            outputs.write_one(str(self._path), "".join(lines[:-1]).encode("utf-8"))
            del lines[-1]
        for number, line in enumerate(lines, 1):
            try:
                content = json.loads(line)
                self._contents[content["key"]] = content["plan"]
            except (ValueError, KeyError, TypeError):
                raise Error(f"{self._path}:{number}: expected a plan in each line") from None

    def find(self, key: str) -> Any:
        return self._contents.get(key)

    def add(self, key: str, plan: Any) -> None:
        self._contents[key] = plan
        if self._path is None:
            return
        try:
            with open(self._path, "a", encoding="utf-8") as file:
                file.write(json.dumps({"key": key, "plan": plan}) + "\n")
        except OSError as error:
            raise outputs.cannot_write(str(self._path), error.strerror) from error


def plan(
    text: compiler.SourceText,
    device: descriptions.Description,
    strategy: Strategy,
    cost_model: str,
    options: Mapping[str, Any],
    *,
    code: bool,
    state: State,
    tell: Any = None,
) -> Answer:
    """Plans a source, or takes what the state has.

    The options of the strategy come before those of all. With `code` PTX is generated from a second
    run of the search, whose seconds do not count and which measures nothing again.
    """
    options = {**options, **strategy.options}
    key = _key(text, device, strategy.name, cost_model, options)
    kept, kept_code = state.find(key), state.find(f"{key} code") if code else None
    is_whole = kept is not None and (not code or kept_code is not None or kept["facts"] is None)
    if tell and not is_whole:
        tell(f"{strategy.label} by {cost_model} on {device.name}")
    with _one_log(options) as given:
        given = {**given, "strategy": strategy.name, "cost_model": cost_model}
        if kept is None:
            kept = _search(text, device, given)
            state.add(key, kept)
        if code and kept_code is None and kept["facts"] is not None:
            kept_code = _generate(text, device, given)
            state.add(f"{key} code", kept_code)
    return Answer(kept["seconds"], kept["failure"], kept["facts"], kept_code or None)


@contextmanager
def _one_log(options: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Options with a log of measurements for both runs, where somebody measures."""
    if not options.get("measurer") or options.get("measure_log"):
        yield dict(options)
        return
    with tempfile.TemporaryDirectory(prefix="ftuner-") as folder:
        yield {**options, "measure_log": str(Path(folder, "log.jsonl"))}


def _key(
    text: compiler.SourceText,
    device: descriptions.Description,
    strategy: str,
    cost_model: str,
    options: Mapping[str, Any],
) -> str:
    parts = [__version__, str(FORMAT_VERSION), device.text, strategy, cost_model]
    parts += [f"{name}={value}" for name, value in sorted(options.items())]
    return hashlib.sha256(repr(parts).encode() + text.content).hexdigest()


def _search(
    text: compiler.SourceText, device: descriptions.Description, options: Mapping[str, Any]
) -> dict[str, Any]:
    start = time.perf_counter()
    facts, failure = None, ""
    try:
        facts = facts_of(explain_data(text, device=device, **options))
    except CompileError as error:
        failure = _reason(str(error))
    return {"seconds": time.perf_counter() - start, "failure": failure, "facts": facts}


def _reason(message: str) -> str:
    """The first error among the lines of a compiler's message."""
    lines = message.strip().splitlines()
    errors = [line.partition("error: ")[2] for line in lines if "error: " in line]
    return (errors or lines[-1:] or ["no plan"])[0]


def facts_of(explanation: Mapping[str, Any]) -> dict[str, Any]:
    """What is compared of an explanation (docs/explain.md): a small part of it."""
    names = ("name", "fingerprint", "axes", "main_axis", "families", "statistics")
    programs = (*judges.FAMILY, "blocks", "metrics", "predicted_us", "measured_us")
    workloads = []
    for workload in explanation["workloads"]:
        facts = {name: workload[name] for name in names}
        facts["count"] = 1 + len(workload["equal_workloads"])
        facts["measurer"] = next(
            (shape["measurer"] for shape in workload["shapes"] if shape.get("measurer")), ""
        )
        general = workload["general_family"], workload["unaligned_general_family"]
        facts["shapes"] = [
            {
                "shape": shape["shape"],
                "weight": shape["weight"],
                "family": general[not shape["aligned"]] if shape["family"] is None else shape["family"],
                "program": {
                    name: shape["program"][name] for name in programs if name in shape["program"]
                },
            }
            for shape in workload["shapes"]
        ]
        workloads.append(facts)
    return {"workloads": workloads}


def _generate(
    text: compiler.SourceText, device: descriptions.Description, options: Mapping[str, Any]
) -> dict[str, int]:
    """Bytes of PTX by workload, and of all as `""`; empty if it cannot be generated."""
    try:
        given = compiler.read_options(options, device)
        return code_bytes(compiler.translate(text, device, given, ["--ftuner-to-ptx"]))
    except CompileError:
        return {}


def code_bytes(ptx: str) -> dict[str, int]:
    """Bytes of the kernels of each workload, NAME_k0 and so on, and of all as `""`."""
    result = {"": len(ptx.encode())}
    starts = [*re.finditer(r"^\.visible \.entry (\w+)\(", ptx, re.MULTILINE)]
    ends = [*(found.start() for found in starts[1:]), len(ptx)]
    for found, end in zip(starts, ends):
        of = re.match(r"(.+)_k\d+(_\w+)?$", found[1])
        if of:
            result[of[1]] = result.get(of[1], 0) + len(ptx[found.start() : end].encode())
    return result


def shapes_with_families(workload: Mapping[str, Any]) -> Sequence[Sequence[Mapping[str, Any]]]:
    """For each shape of a workload's facts: the plan's family, and its program as a family."""
    return [
        [workload["families"][shape["family"]], shape["program"]] for shape in workload["shapes"]
    ]
