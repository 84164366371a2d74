"""`ftuner compare`."""

from __future__ import annotations

import argparse
import re
import sys
from dataclasses import dataclass
from typing import Any

from .. import locations
from ..describe import listing
from ..describe.tables import table
from ..errors import Error, did_you_mean
from ..host import outputs
from ..study import (
    comparison,
    comparison_page,
    comparison_text,
    growth,
    paper_comparison,
    papers,
    plans,
)
from ..study.comparison import FILE_JUDGES, LATENCY, STRATEGIES, Comparison
from .common import (
    DEFAULT_DEVICE,
    DEVICE_HELP,
    UsageError,
    add_source,
    has_standard_output,
    parse_pairs,
    write_text,
)

_EPILOG = """\
examples:
  ftuner compare examples/dense.mlir --device v100,h200 --page dense.html
  ftuner compare bert.onnx --range T=1:128 --state plans.jsonl --csv bert.csv
  ftuner compare examples/dense.mlir --strategies gensor,gensor:virtual-threads=false,roller
  ftuner compare examples/dense.mlir --strategies dietcode,ftuner --measurer gpu --budget 1000
  ftuner compare examples/dense.mlir --judge recorded=v100.jsonl --judge simulated=accel-sim.jsonl
  ftuner compare examples/dense.mlir --growth 1,16,256,4096
  ftuner compare --paper dietcode"""

#: Programs of each sampled shape that are measured where a measurer is given and no number is.
_MEASURE_TOP = 10


def add_parser(commands: Any) -> None:
    parser: argparse.ArgumentParser = commands.add_parser(
        "compare",
        help="compare what search strategies and cost models choose",
        description="Plans a source by every strategy under every cost model, and ranks what they "
        "chose under several judges (docs/compare.md). Kernels run with --measurer gpu alone.",
        epilog=_EPILOG,
    )
    add_source(parser, is_optional=True)
    parser.add_argument(
        "--device",
        metavar="DEVICES",
        help=f"{DEVICE_HELP}; several with commas between (default: {DEFAULT_DEVICE}, or those of the paper)",
    )
    parser.add_argument(
        "--strategies",
        metavar="NAMES",
        help="search strategies, with commas between; one may have options of its own, "
        f"gensor:virtual-threads=false (default: {','.join(STRATEGIES)}, or those of the paper)",
    )
    parser.add_argument(
        "--cost-models",
        default=LATENCY,
        metavar="NAMES",
        help="cost models that they rank programs by (default: %(default)s)",
    )
    parser.add_argument(
        "--budget",
        type=int,
        metavar="NUMBER",
        help="most programs that a search has measured for a workload: --measure-budget; with "
        f"--measurer and without --measure-top, {_MEASURE_TOP} of each sampled shape are measured",
    )
    parser.add_argument(
        "--judge",
        action="append",
        default=[],
        metavar="NAME=FILE",
        help=f"a log of measurements as one more judge, NAME is {' or '.join(FILE_JUDGES)}",
    )
    parser.add_argument(
        "--paper",
        metavar="NAME",
        help=f"the workloads of a paper on its device, beside what it reports: {', '.join(papers.NAMES)}",
    )
    parser.add_argument(
        "--growth",
        metavar="NUMBERS",
        help="compare for a range that ends at each of these sizes, with commas between",
    )
    parser.add_argument("--no-code", action="store_true", help="generate no PTX to count its bytes")
    parser.add_argument(
        "--state",
        metavar="FILE",
        help="keep each plan there, and take from there what was planned before",
    )
    parser.add_argument("--json", action="store_true", help="docs/compare.md describes it")
    parser.add_argument("--csv", metavar="FILE", help="write the table there")
    parser.add_argument("--page", metavar="FILE", help="write a page with figures there (HTML)")
    parser.add_argument(
        "--programs",
        metavar="FILE",
        help="write the chosen programs there, for a simulator: lines that lack microseconds",
    )
    parser.set_defaults(run=run)


def _check(name: str, known: list[str]) -> None:
    if name not in known:
        raise UsageError(
            f"expected names of {', '.join(known)}, with commas between, but got "
            f"'{name}'{did_you_mean(name, known)}"
        )


def _names(text: str) -> list[str]:
    return list(dict.fromkeys(name.strip() for name in text.split(",")))


def _strategies(text: str) -> list[str]:
    names = plans.split(text)
    try:
        for name in names:
            plans.Strategy.read(name)
    except Error as error:
        raise UsageError(str(error)) from None
    return names


def _cost_models(text: str) -> list[str]:
    names = _names(text)
    known = listing.values(locations.tool("ftuner-translate"), "cost-model")
    for name in names:
        _check(name, known)
    return names


def run(options: argparse.Namespace) -> None:
    if "strategy" in options.pipeline or "cost_model" in options.pipeline:
        raise UsageError("expected --strategies and --cost-models, each with all names")
    if (options.source is None) == (options.paper is None):
        raise UsageError("expected a source or --paper, and one of them")
    if options.growth is not None and options.source is None:
        raise UsageError("option --growth: expected a source")
    if options.paper is not None and options.paper not in papers.NAMES:
        known = ", ".join(papers.NAMES)
        close = did_you_mean(options.paper, papers.NAMES)
        raise UsageError(
            f"option --paper: expected one of {known}, but got '{options.paper}'{close}"
        )
    files = ("csv", "page", "programs")
    has_output = has_standard_output(options, *files)
    for name in files:
        if getattr(options, name) is not None:
            outputs.check_folder(getattr(options, name))
    _add_measuring(options)
    judged_by = parse_pairs(options.judge, "--judge")
    for name in judged_by:
        if name not in FILE_JUDGES:
            raise UsageError(
                f"option --judge: expected {' or '.join(FILE_JUDGES)}, but got '{name}'"
            )
    given: dict[str, Any] = {
        "cost_models": _cost_models(options.cost_models),
        "judged_by": judged_by,
        "code": not options.no_code,
        "state": options.state,
        "tell": _tell,
        **options.pipeline,
    }
    if options.strategies is not None:
        given["strategies"] = _strategies(options.strategies)
    if options.device is not None:
        given["device"] = _names(options.device)
    _write(options, _compare(options, given), has_output)


@dataclass(frozen=True)
class _Result:
    found: Comparison
    title: str
    #: Heading, and header and rows, of what comes before the comparison.
    tables: list[Any]
    #: Behind these tables.
    note: str = ""
    figures: str = ""


def _compare(options: argparse.Namespace, given: dict[str, Any]) -> _Result:
    if options.paper is not None:
        paper = papers.load(options.paper)
        found = paper_comparison.run(paper, **given)
        tables = [
            (f"Reported and predicted, {device}", paper_comparison.tabulate(paper, found, device))
            for device in paper_comparison.devices_of(found)
        ]
        return _Result(
            found,
            f"Workloads of {paper.title}",
            tables,
            "\n".join([paper_comparison.NOTE, *found.notes]),
        )
    if options.growth is not None:
        found = growth.compare(options.source, _ends(options.growth), **given)
        title = f"Growth of searches for {options.source.name}"
        return _Result(found, title, [(title, growth.table(found))], "", growth.figures(found))
    return _Result(
        comparison.compare(options.source, **given), f"Searches for {options.source.name}", []
    )


def _ends(text: str) -> list[int]:
    names = _names(text)
    if not all(re.fullmatch(r"0*[1-9][0-9]{0,17}", name) for name in names):
        raise UsageError(f"option --growth: expected sizes with commas between, but got '{text}'")
    return [int(name) for name in names]


def _write(options: argparse.Namespace, result: _Result, has_output: bool) -> None:
    found = result.found
    contents = {}
    if options.csv is not None:
        contents[options.csv] = found.csv()
    if options.page is not None:
        contents[options.page] = comparison_page.page(
            found, result.title, result.tables, result.figures
        )
    if options.programs is not None:
        contents[options.programs] = found.request_lines()
    outputs.write({path: text.encode("utf-8") for path, text in contents.items()})
    if options.json:
        more = {"tables": {name: rows for name, rows in map(_as_rows, result.tables)}}
        write_text(outputs.STANDARD, found.json(**(more if result.tables else {})))
    elif not has_output:
        lines = []
        for name, (header, rows) in result.tables:
            lines += [name, table(rows, header), *filter(None, [result.note]), ""]
        if options.growth is None:
            lines.append(comparison_text.text(found))
        write_text(outputs.STANDARD, "\n".join(lines).rstrip("\n") + "\n")


def _as_rows(named: Any) -> tuple[str, list[dict[str, str]]]:
    name, (header, rows) = named
    return name, [dict(zip(header, row)) for row in rows]


def _tell(line: str) -> None:
    if sys.stderr.isatty():
        print(line, file=sys.stderr)


def _add_measuring(options: argparse.Namespace) -> None:
    pipeline = options.pipeline
    if options.budget is not None:
        if "measure_budget" in pipeline:
            raise UsageError("option --budget: expected no --measure-budget beside it")
        if not pipeline.get("measurer"):
            raise UsageError("option --budget: expected a --measurer")
        pipeline["measure_budget"] = options.budget
    if pipeline.get("measurer") and not {"measure_top", "measure"} & pipeline.keys():
        pipeline["measure_top"] = _MEASURE_TOP
