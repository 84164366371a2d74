#!/usr/bin/env python3
"""Puts what FTuner predicts beside the numbers behind the paper's figures and tables, for its operators.

    .venv/bin/python benchmarks/paper/tables.py --bin-dir build/release/bin

writes docs/paper-tables.md, figures to docs/figures/paper-*.svg, and predictions in full to benchmarks/paper/predicted.
With --only NAME one section and its figure alone are made anew. Nothing runs on a GPU: our figures are predictions of
the cost model `latency` and properties of programs; the published ones (benchmarks/paper/data) were measured by the
paper's authors.
"""

import argparse
import os
import re
import sys
import tempfile

import table_operators
import table_searches
import table_tools

SECTIONS = {
    "dense": ("Dense", table_operators.dense),
    "batch-matmul": ("BatchMatmul", table_operators.batch_matmul),
    "tuning": ("Tuning time", table_searches.tuning),
    "sia": ("SIA against throughput", table_searches.sia),
    "padding": ("Padding and traffic", table_operators.padding),
    "batches": ("Padding of batches", table_searches.padded_batches),
    "sm-use": ("Use of SMs", table_operators.sm_use),
    "lengths": ("Lengths of sentences", table_searches.sentence_lengths),
}
HEAD = """# The paper's tables

The numbers behind the figures and tables of *FTuner: A Fast Dynamic Shape Tensors Program Auto-Tuner for Deep Learning Compilers*, beside what this FTuner predicts. The published numbers are from [github.com/guesswewho/FTuner](https://github.com/guesswewho/FTuner) ([copies](../benchmarks/paper/data/README.md)), as they are written there.

**Nothing of ours was run on a GPU here.** Each figure of ours is a prediction of the [cost model](latency.md) or a property of a program. A ratio of a prediction to a published measurement contains the error of the model ([how large](latency.md)) and differences in clocks and drivers, so small differences mean nothing. Measurements on a GPU are [elsewhere](../benchmarks/results/README.md).

*Default* is the default search. *Near the paper* is `preset=paper main-axis=dynamic` ([what differs](paper.md)). *Roller* of ours is `strategy=roller`. All are planned for a range of T at once, with at most 16 kernels. Models from end to end are not on this page.

`.venv/bin/python benchmarks/paper/tables.py --bin-dir build/release/bin` writes this page, its figures and [predictions in full](../benchmarks/paper/predicted); with `--only NAME` one section of NAME = {names}."""


def sections_of(text):
    """From title to text, of the sections of a page."""
    parts = re.split(r"^## (.*)\n\n", text, flags=re.MULTILINE)
    return dict(zip(parts[1::2], (part.strip() for part in parts[2::2])))


def write_page(path, made):
    """Writes the page; sections that were not made stay."""
    known = {}
    if os.path.exists(path):
        with open(path, encoding="utf-8") as file:
            known = sections_of(file.read())
    known.update(made)
    names = ", ".join(f"`{name}`" for name in SECTIONS)
    parts = [HEAD.format(names=names)] + [
        f"## {title}\n\n{known[title]}" for title, _ in SECTIONS.values() if title in known
    ]
    with open(path, "w", encoding="utf-8") as file:
        file.write("\n\n".join(parts) + "\n")


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--bin-dir", default=table_tools.workloads.BIN)
    parser.add_argument(
        "--only", choices=SECTIONS, metavar="NAME", help="one of " + ", ".join(SECTIONS)
    )
    parser.add_argument("--out", default=os.path.join(table_tools.ROOT, "docs", "paper-tables.md"))
    parser.add_argument("--figures", default=os.path.join(table_tools.ROOT, "docs", "figures"))
    parser.add_argument(
        "--predicted", default=os.path.join(table_tools.ROOT, "benchmarks", "paper", "predicted")
    )
    parser.add_argument(
        "--lengths",
        metavar="T,T",
        help="a rehearsal with these of the eight T, on V100 alone and "
        "without figures; needs --out and --predicted elsewhere",
    )
    options = parser.parse_args()
    lengths = tuple(map(int, options.lengths.split(","))) if options.lengths else None
    if lengths and (
        options.out == parser.get_default("out")
        or options.predicted == parser.get_default("predicted")
    ):
        parser.error("--lengths: expected --out and --predicted")
    if lengths and not set(lengths) <= set(table_tools.LENGTHS):
        parser.error(f"--lengths: expected some of {table_tools.LENGTHS}, but got {lengths}")
    os.makedirs(options.predicted, exist_ok=True)
    pyplot = (
        None
        if lengths
        else table_tools.workloads.load_pyplot(os.path.join(options.figures, "paper-dense.svg"))
    )
    with tempfile.TemporaryDirectory() as folder:
        context = table_tools.Context(
            options.bin_dir, folder, options.figures, options.predicted, pyplot, lengths
        )
        for name in [options.only] if options.only else SECTIONS:
            title, make = SECTIONS[name]
            print(title, file=sys.stderr, flush=True)
            write_page(options.out, {title: make(context)})
    print(f"wrote {options.out}", file=sys.stderr)


if __name__ == "__main__":
    main()
