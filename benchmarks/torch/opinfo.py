#!/usr/bin/env python3
"""PyTorch's own samples of operators that multiply matrices, through torch.compile by FTuner.

The samples are those of PyTorch's operator database (torch.testing, which needs the package expecttest), on tensors on
the CPU, with dynamic sizes. For each operator and type:

* samples, and how many of them are wrong: another shape or type than eager PyTorch gives, or an error against float64
  that is more than twice eager's and more than a few units in the last place;
* products: samples that multiply matrices, and have elements to sum: others, such as an einsum that transposes, hold no
  product when they come to a backend, or sum nothing;
* taken: those of them whose products are all FTuner's;
* why others stay, in the words of the report.

Exits with 1 if a sample is wrong. --write FILE writes what is printed, with the date and the commit before it.
"""

from __future__ import annotations

import argparse
import pathlib
import sys
import warnings
from collections import Counter
from dataclasses import dataclass, field, fields

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "python"), str(ROOT / "benchmarks/torch")]

import tables

OPERATORS = (
    "mm",
    "addmm",
    "bmm",
    "baddbmm",
    "mv",
    "addmv",
    "matmul",
    "__rmatmul__",
    "nn.functional.linear",
    "einsum",
    "inner",
    "tensordot",
    "linalg.multi_dot",
    "dot",
    "vdot",
)
TYPES = ("float32", "bfloat16", "float16")


@dataclass
class Row:
    """Results of the samples of an operator; a subclass has more counts, and their `cells`."""

    samples: int = 0
    wrong: list = field(default_factory=list)
    reasons: Counter = field(default_factory=Counter)

    def add(self, other):
        for one in fields(self):
            setattr(self, one.name, getattr(self, one.name) + getattr(other, one.name))


@dataclass
class ProductsRow(Row):
    HEADER = ["taken, of products", "why others stay"]

    products: int = 0
    taken: int = 0

    @property
    def cells(self):
        return [f"{self.taken} of {self.products}"]


def tensors(value):
    import torch

    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, (list, tuple)):
        return [tensor for item in value for tensor in tensors(item)]
    return []


def is_wrong(result, eager, exact):
    """Returns the fault of a result, or an empty text."""
    import torch

    if result.shape != eager.shape or result.dtype != eager.dtype:
        return f"{result.dtype} {tuple(result.shape)}, not {eager.dtype} {tuple(eager.shape)}"
    if not result.numel():
        return ""
    if not result.is_floating_point():
        return (
            ""
            if torch.equal(result, eager)
            else f"{int((result != eager).sum())} of {eager.numel()} differ"
        )
    norm = float(exact.norm()) or 1.0
    error, of_eager = (float((x.double() - exact).norm()) / norm for x in (result, eager))
    return (
        ""
        if error <= max(2 * of_eager, 4 * torch.finfo(result.dtype).eps)
        else f"error {error:.1e}, eager {of_eager:.1e}"
    )


def widen(value):
    import torch

    if isinstance(value, torch.Tensor):
        return value.double() if value.is_floating_point() else value
    return type(value)(map(widen, value)) if isinstance(value, (list, tuple)) else value


def check(operator, type_name, host="eager"):
    """The row of an operator and a type."""
    import torch._inductor.config

    import ftuner.torch
    import torch

    row = ProductsRow()
    for number, sample in enumerate(operator.sample_inputs("cpu", getattr(torch, type_name))):
        torch._dynamo.reset()
        ftuner.torch.reset_report()
        given = (sample.input, *sample.args)
        compiled = torch.compile(
            operator.op,
            backend="ftuner",
            dynamic=True,
            options={"max_kernels": 1, "host": host, "take": "all"},
        )
        # A graph that was found in PyTorch's caches tells less.
        with torch.no_grad(), torch._inductor.config.patch(force_disable_caches=True):
            result, eager = compiled(*given, **sample.kwargs), operator.op(*given, **sample.kwargs)
            exact = operator.op(*map(widen, given), **sample.kwargs)
        problems = [
            problem
            for one in zip(*map(tensors, (result, eager, exact)))
            if (problem := is_wrong(*one))
        ]
        report = ftuner.torch.report()
        row.samples += 1
        row.wrong += [
            f"{operator.name} {type_name}, sample {number}: {problem}" for problem in problems
        ]
        if report.products and all(operand.numel() for operand in tensors(given)):
            row.products += 1
            row.taken += not report.left
            row.reasons.update(left.reason for left in report.left)
    return row


def database(names):
    from torch.testing._internal.common_methods_invocations import op_db

    return [
        operator for operator in op_db if operator.name in names and not operator.variant_test_name
    ]


def make_parser(description, operators):
    parser = argparse.ArgumentParser(description=description.splitlines()[0])
    parser.add_argument("operators", nargs="*", help=f"of {', '.join(operators)} (default: all)")
    parser.add_argument("--types", nargs="+", choices=TYPES, default=TYPES)
    parser.add_argument("--write", metavar="FILE")
    return parser


def parse(parser, operators):
    """The options of such a parser, `operators` by name."""
    options = parser.parse_args()
    if unknown := set(options.operators) - set(operators):
        parser.error(
            f"expected some of {', '.join(operators)}, but got {', '.join(sorted(unknown))}"
        )
    options.operators = options.operators or operators
    return options


def tabulate(options, check, kind, how):
    """Prints a row for each operator and type as soon as it is known, and that of all; writes them.

    check: gives the row, of class `kind`, of an operator and a type. how: what the written table is made by. Returns 1
    where a sample is wrong.
    """
    rows, total = [], kind()

    def put(name, type_name, row, reasons):
        rows.append([name, type_name, str(row.samples), str(len(row.wrong)), *row.cells, reasons])
        print(" | ".join(rows[-1]), flush=True)

    for operator in database(options.operators):
        for type_name in options.types:
            row = check(operator, type_name)
            total.add(row)
            put(
                operator.name,
                type_name,
                row,
                "; ".join(f"{count} × {why}" for why, count in row.reasons.items()),
            )
    put("all", "", total, "")
    for problem in total.wrong:
        print(f"error: {problem}", file=sys.stderr)
    if options.write:
        header = ["operator", "type", "samples", "wrong", *kind.HEADER]
        pathlib.Path(options.write).write_text(tables.made([header, *rows], how), encoding="utf-8")
    return int(bool(total.wrong))


def main():
    parser = make_parser(__doc__, OPERATORS)
    parser.add_argument("--host", choices=("eager", "inductor"), default="eager")
    options = parse(parser, OPERATORS)
    warnings.simplefilter("ignore")
    return tabulate(
        options,
        lambda operator, type_name: check(operator, type_name, options.host),
        ProductsRow,
        f", host {options.host}",
    )


if __name__ == "__main__":
    sys.exit(main())
