"""Plans of searches that are compared: made by the compiler, and kept in a file."""

from __future__ import annotations

import hashlib
import json
import os
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .. import compiler, locations
from .._version import version
from ..describe import descriptions, listing
from ..describe.explanation import explain_data
from ..errors import CompileError, Error, did_you_mean
from ..host import cache, outputs, processes
from . import judges

#: Version of the facts that are kept.
FORMAT_VERSION = 2


@dataclass(frozen=True)
class Strategy:
    """A strategy with its own options."""

    #: Text of the strategy as written, e.g. `gensor:virtual-threads=false`.
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

    @staticmethod
    def read(text: str) -> Strategy:
        """`parse`, and raises `Error` for names of strategies and options that do not exist."""
        spec = Strategy.parse(text)
        tool = locations.tool("ftuner-translate")
        strategies = listing.values(tool, "strategy")
        if spec.name not in strategies:
            close = did_you_mean(spec.name, strategies)
            raise Error(f"expected names of {', '.join(strategies)}, but got '{spec.name}'{close}")
        known = compiler.pipeline_options(tool) - {"device", "strategy", "cost-model"}
        for option in (name.replace("_", "-") for name in spec.options):
            if option in ("strategy", "cost-model"):
                plural = "--strategies" if option == "strategy" else "--cost-models"
                raise Error(f"{text}: '{option}' is not an option of a strategy; see {plural}")
            if option not in known:
                close = did_you_mean(option, known)
                raise Error(f"{text}: {spec.name} has no option '{option}'{close}")
        return spec

    def reads(self, option: str) -> bool:
        """Returns whether the strategy declares an option of the compiler, or shares it."""
        declared = listing.options(locations.tool("ftuner-translate")).get(option)
        return declared is not None and self.name in declared.readers


def split(text: str) -> list[str]:
    """Strategies with commas between, each once.

    A value of an option that takes a text may have commas: it ends at a name of a strategy.
    """
    tool = locations.tool("ftuner-translate")
    strategies = listing.values(tool, "strategy")
    texts = {
        option.name
        for option in compiler.declared_options(tool)
        if option.type in ("string", "file") and not option.values
    }
    parts: list[str] = []
    for part in (part.strip() for part in text.split(",")):
        last = re.search(r".*:([a-z0-9-]+)=", parts[-1]) if parts else None
        if last and last[1] in texts and part.partition(":")[0] not in strategies:
            parts[-1] += f",{part}"
        else:
            parts.append(part)
    return list(dict.fromkeys(parts))


@dataclass(frozen=True)
class Answer:
    """Plans of a search; `facts` are None if it found no plan, and `failure` says why."""

    seconds: float
    failure: str
    facts: dict[str, Any] | None
    #: Bytes of PTX by workload, `""` for all; None if it was not asked for or could not be generated.
    code: dict[str, int] | None = None
    #: Why it could not be generated.
    code_failure: str = ""


class State:
    """Plans that are kept in a file, a JSON object in each line. Without a path nothing is kept.

    A last line that was cut off is left out, and overwritten by the next plan. Raises `Error` for a
    file that cannot be read, or has other lines or plans that were changed, and leaves it as it is.
    """

    #: Beginning of each line.
    _BEGIN = '{"key": "'

    def __init__(self, path: str | os.PathLike[str] | None) -> None:
        self._path = None if path is None else Path(path)
        self._contents: dict[str, Any] = {}
        #: Bytes of whole lines, and the bytes to write after them before the next one.
        self._whole, self._end = 0, ""
        if self._path is None:
            return
        outputs.check_folder(str(self._path))
        if not self._path.exists():
            return
        try:
            *lines, last = self._path.read_bytes().decode("utf-8").split("\n")
        except (OSError, UnicodeDecodeError) as error:
            reason = getattr(error, "strerror", None) or "expected text"
            raise Error(f"cannot read '{self._path}': {reason}") from error
        for number, line in enumerate(lines, 1):
            if not self._read(line, number):
                raise Error(f"{self._path}:{number}: expected a plan in each line")
        self._whole = sum(len(line.encode()) + 1 for line in lines)
        if self._read(last, len(lines) + 1):
            self._whole, self._end = self._whole + len(last.encode()), "\n"
        elif not (
            last.startswith(self._BEGIN) or not last or lines and self._BEGIN.startswith(last)
        ):
            raise Error(f"{self._path}:{len(lines) + 1}: expected a plan in each line")

    def _read(self, line: str, number: int) -> bool:
        """Returns whether the line has a plan.

        Lines without a checksum are of older versions, whose plans no search finds. Raises `Error`
        for a plan that is not the one that was kept.
        """
        try:
            content = json.loads(line)
            key, plan = content["key"], content["plan"]
        except (ValueError, KeyError, TypeError, RecursionError):
            return False
        if not isinstance(key, str) or not isinstance(plan, dict):
            return False
        if "checksum" not in content:
            return True
        if content["checksum"] != _checksum(key, plan):
            raise Error(
                f"{self._path}:{number}: expected the plan that was kept, but it was changed since; "
                "remove the line, and it is planned again"
            )
        self._contents[key] = plan
        return True

    def find(self, key: str) -> Any:
        return self._contents.get(key)

    def add(self, key: str, plan: Any) -> None:
        self._contents[key] = plan
        if self._path is None:
            return
        content = {"key": key, "checksum": _checksum(key, plan), "plan": plan}
        line = (self._end + json.dumps(content) + "\n").encode()
        try:
            with open(self._path, "r+b" if self._path.exists() else "wb") as file:
                file.truncate(self._whole)
                file.seek(self._whole)
                file.write(line)
        except OSError as error:
            raise outputs.cannot_write(str(self._path), error.strerror) from error
        self._whole, self._end = self._whole + len(line), ""


def _checksum(key: str, plan: Mapping[str, Any]) -> str:
    return hashlib.sha256(f"{key} {json.dumps(plan, sort_keys=True)}".encode()).hexdigest()


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

    def key() -> str:
        return _key(text, device, strategy.name, cost_model, options)

    # A search that writes its model to a file must run.
    is_kept = not compiler.writes_anew(options)
    kept = state.find(key()) if is_kept else None
    kept_code = state.find(f"{key()} code") if is_kept and code else None
    if tell and (kept is None or code and kept_code is None):
        tell(f"{strategy.label} by {cost_model} on {device.name}")
    with _one_log(options) as given:
        given = {**given, "strategy": strategy.name, "cost_model": cost_model}
        if kept is None:
            start = time.perf_counter()
            try:
                facts = facts_of(explain_data(text, device=device, **given))
            except CompileError as error:
                return Answer(time.perf_counter() - start, _reason(str(error)), None)
            kept = {"seconds": time.perf_counter() - start, "facts": facts}
            if is_kept:
                # The key has the log of measurements as it is now.
                state.add(key(), kept)
        code_failure = ""
        if code and kept_code is None:
            try:
                kept_code = _generate(text, device, given)
            except CompileError as error:
                code_failure = _reason(str(error))
            else:
                if is_kept:
                    state.add(f"{key()} code", kept_code)
    return Answer(kept["seconds"], "", kept["facts"], kept_code, code_failure)


@contextmanager
def _one_log(options: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Options with a log of measurements for both runs, where somebody measures."""
    if not options.get("measurer") or options.get("measure_log"):
        yield dict(options)
        return
    with processes.temporary_folder() as folder:
        yield {**options, "measure_log": str(Path(folder, "log.jsonl"))}


def _key(
    text: compiler.SourceText,
    device: descriptions.Description,
    strategy: str,
    cost_model: str,
    options: Mapping[str, Any],
) -> str:
    """Hash of all that decides a plan, with the compiler and the contents of files."""
    given = compiler.read_options(
        {**options, "strategy": strategy, "cost_model": cost_model}, device
    )
    return cache.key_of(
        {
            "format_version": [FORMAT_VERSION, version],
            "source": hashlib.sha256(text.content).hexdigest(),
            "device": device.text,
            "options": given.identity,
        }
    )


def _reason(message: str) -> str:
    """The first error among the lines of a compiler's message."""
    lines = message.strip().splitlines()
    errors = [line.partition("error: ")[2] for line in lines if "error: " in line]
    return (errors or lines[-1:] or ["no plan"])[0]


def _latency_us(program: Mapping[str, Any]) -> float | None:
    """Returns the latency model's time of a program that another cost model predicts, or None."""
    time_us = program.get("predicted_figures", {}).get("latency_time")
    return None if time_us is None else float(time_us)


def facts_of(explanation: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the part of an explanation (docs/explain.md) that comparisons read."""
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
                "family": general[not shape["aligned"]]
                if shape["family"] is None
                else shape["family"],
                "program": {
                    # Time by the latency model, beside that of another cost model.
                    **(
                        {"latency_us": latency}
                        if (latency := _latency_us(shape["program"]))
                        else {}
                    ),
                    **{
                        name: shape["program"][name]
                        for name in programs
                        if name in shape["program"]
                    },
                },
            }
            for shape in workload["shapes"]
        ]
        workloads.append(facts)
    return {"workloads": workloads, "bounds_us": _bounds(explanation)}


def _bounds(explanation: Mapping[str, Any]) -> dict[str, float]:
    """Minimum microseconds of the fallback kernels, by function of fixed sizes without a workload."""
    bounds = {}
    for function in explanation["functions"] or ():
        work = function["work"]
        share = work["shares"][-1]
        if not work["workloads"] and not work["sizes"] and not share["unknown_kernels"]:
            bounds[function["symbol"]] = share["fallback_us"]
    return bounds


def _generate(
    text: compiler.SourceText, device: descriptions.Description, options: Mapping[str, Any]
) -> dict[str, int]:
    """Bytes of PTX by workload, and of all as `""`."""
    given = compiler.read_options(options, device)
    return code_bytes(compiler.translate(text, device, given, ["--ftuner-to-ptx"]))


def code_bytes(ptx: str) -> dict[str, int]:
    """Bytes of the kernels of each workload, NAME_k0 and so on, and of all as `""`."""
    result = {"": len(ptx.encode())}
    starts = [*re.finditer(r"^\.visible \.entry (\w+)\(", ptx, re.MULTILINE)]
    ends = [*(found.start() for found in starts[1:]), len(ptx)]
    for found, end in zip(starts, ends):
        entry = re.match(r"(.+)_k\d+(_\w+)?$", found[1])
        if entry:
            result[entry[1]] = result.get(entry[1], 0) + len(ptx[found.start() : end].encode())
    return result


def shapes_with_families(workload: Mapping[str, Any]) -> Sequence[Sequence[Mapping[str, Any]]]:
    """The plan's family, and its program as a family, for each shape of a workload's facts."""
    return [
        [workload["families"][shape["family"]], shape["program"]] for shape in workload["shapes"]
    ]
