"""`ftuner compare`."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from .. import comparison, listing, locations, outputs
from ..comparison import JUDGES, LATENCY
from .common import UsageError, add_source, did_you_mean, has_standard_output, table, write_text

_EPILOG = """\
examples:
  ftuner compare examples/dense.mlir --device v100
  ftuner compare examples/dense.mlir --strategies ftuner,gensor --cost-models latency,sia --csv dense.csv
  ftuner compare examples/dense.mlir --strategies dietcode,random --measurer=model:latency --measure-top=5"""


def add_parser(commands: Any) -> None:
    parser: argparse.ArgumentParser = commands.add_parser(
        "compare",
        help="compare what search strategies and cost models choose",
        description="Plans a source by every strategy under every cost model, and ranks what they "
        "chose under several judges (docs/compare.md). Nothing is compiled.",
        epilog=_EPILOG,
    )
    add_source(parser)
    parser.add_argument(
        "--strategies",
        default="ftuner,roller,gensor,dietcode",
        metavar="NAMES",
        help="search strategies, with commas between (default: %(default)s)",
    )
    parser.add_argument(
        "--cost-models",
        default=LATENCY,
        metavar="NAMES",
        help="cost models that they rank programs by (default: %(default)s)",
    )
    parser.add_argument(
        "--state",
        metavar="FILE",
        help="keep each plan there, and take from there what was planned before",
    )
    parser.add_argument("--json", action="store_true", help="docs/compare.md describes it")
    parser.add_argument("--csv", metavar="FILE", help="write the table there")
    parser.set_defaults(run=run)


def _names(text: str, option: str) -> list[str]:
    """Names that the compiler's option of the singular takes, each once."""
    (declared,) = (
        one
        for one in listing.listed(locations.tool("ftuner-translate"))["options"]
        if one["name"] == option
    )
    names = list(dict.fromkeys(name.strip() for name in text.split(",")))
    for name in names:
        if name not in declared["values"]:
            raise UsageError(
                f"expected names of {', '.join(declared['values'])}, with commas between, but got "
                f"'{name}'{did_you_mean(name, declared['values'])}"
            )
    return names


def run(options: argparse.Namespace) -> None:
    if "strategy" in options.pipeline or "cost_model" in options.pipeline:
        raise UsageError("expected --strategies and --cost-models, each with all names")
    if options.csv is not None:
        has_standard_output(options, "csv")
    strategies = _names(options.strategies, "strategy")
    cost_models = _names(options.cost_models, "cost-model")
    found = comparison.compare(
        options.source,
        device=options.device,
        strategies=strategies,
        cost_models=cost_models,
        state=options.state,
        tell=lambda line: print(line, file=sys.stderr) if sys.stderr.isatty() else None,
        **options.pipeline,
    )
    if options.csv is not None:
        write_text(options.csv, found.csv())
    if options.json:
        print(found.json(), end="")
    elif options.csv != outputs.STANDARD:
        print(as_text(found), end="")


def _ratio(row: dict[str, Any], judge: str) -> str:
    if row[f"{judge}_ratio"] is None:
        return "-"
    itself = "*" if judge == LATENCY and row["judged_by_itself"] else ""
    return f"{row[f'{judge}_ratio']:.3f} ({row[f'{judge}_rank']}){itself}"


def _count(number: int | None) -> str:
    return "-" if number is None else f"{number:,}"


def as_text(found: comparison.Comparison) -> str:
    """A table for each workload."""
    lines = [f"{found.source} on {found.device}"]
    rows = found.rows()
    judged = [judge for judge in JUDGES if any(row[f"{judge}_ratio"] for row in rows)]
    for workload in found.workloads():
        own = [row for row in rows if row["workload"] == workload]
        planned = [row for row in own if not row["failure"]]
        cells = [
            [
                row["strategy"],
                row["cost_model"],
                f"{row['seconds']:.1f}",
                _count(row["looked_at"]),
                _count(row["rejected_by_paths"]),
                _count(row["measured"]),
                str(row["kernels"]),
                f"{row['padding']:.1%}",
                f"{row['sm_use']:.1%}",
                *(_ratio(row, judge) for judge in judged),
            ]
            for row in planned
        ]
        header = ["strategy", "cost model", "seconds", "looked at", "rejected", "measured"]
        header += ["kernels", "padding", "SM use", *judged]
        lines += ["", workload, table(cells, header)]
        lines += [f"{row['strategy']} by {row['cost_model']}: {row['failure']}" for row in own if row["failure"]]
        measurers = sorted({row["measurer"] for row in own if row["measurer"]})
        if measurers:
            lines.append(f"measured by {', '.join(measurers)}")
    lines += ["", "Judges: geometric mean over the sizes of the time over the least of all rows, and rank."]
    if any(row["judged_by_itself"] for row in rows):
        lines.append("*: the judge is the model that the search optimised.")
    return "\n".join(lines) + "\n"
