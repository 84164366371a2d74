#!/usr/bin/env python3
"""Holds the table of ablations in docs/search.md against what they do.

The suite takes every third cell, others in each run, and with FTUNER_TEST_SCALE above 1 all. Each cell's options exist, and with them a strategy plans a product otherwise than without: other families or other
choices, for Dense with few sizes, with one row, or with the 128 sizes of the figures of the paper. Options that the table says are the default change nothing.
"""

import os
import re

import harness
from models import Matmul

PAGE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "docs", "search.md")
#: Columns of the table.
STRATEGIES = ("ftuner", "roller", "gensor", "dietcode")
#: Of `dietcode`, which measures.
MEASURED = ("measurer=model:latency", "trials=256")


def products():
    """Products by label: each option changes the plan of one."""
    return {
        "Dense": Matmul(m="M", n=2304, k=768, ranges={"M": "#ukernel.range<53 to 300 step 247>"}),
        "a row": Matmul(m=1, n=2304, k=768),
        "all rows": Matmul(
            m="M", n=2304, k=768, ranges={"M": "#ukernel.range<16 to 2048 step 16>"}
        ),
    }


def cells():
    """(strategy, name of the row, options) of the table, where a cell begins with options."""
    with open(PAGE, encoding="utf-8") as file:
        text = file.read()
    lines = text[text.index("| without |") :].split("\n\n")[0].splitlines()[2:]
    found = []
    for line in lines:
        name, *row = [cell.strip() for cell in line.strip("|").split("|")]
        for strategy, cell in zip(STRATEGIES, row, strict=True):
            # The last group of options of a cell is what differs from the default.
            groups = [group for group in re.findall(r"`([^`]*)`", cell) if "=" in group]
            if groups:
                found.append((strategy, name, groups[-1].split()))
    return found


def plan(h, path, strategy, given):
    """The families and choices of the only plan, or what went wrong."""
    options = {"strategy": strategy, "device": "v100"}
    if strategy == "dietcode":
        options |= dict(text.split("=") for text in MEASURED)
    options |= dict(text.split("=") for text in given)
    done = h.tool(
        "ftuner-opt",
        path,
        "--ftuner-front-end=" + " ".join(f"{name}={value}" for name, value in options.items()),
    )
    if done.returncode != 0:
        return None, done.stderr[-600:]
    (text,) = re.findall(r"ukernel.plan @\w+ <(families = .*?), search =", done.stdout)
    return text, ""


def check(h, strategy, ablations):
    """Problems of the ablations of a strategy: each must change a plan."""
    problems, left = [], dict(enumerate(ablations))
    bases = {}

    def base(path, given):
        # Terms of SIA are compared under SIA.
        key = (
            path,
            tuple(text for text in given if text.startswith("cost-model=") and len(given) > 1),
        )
        if key not in bases:
            bases[key] = plan(h, path, strategy, key[1])
        return bases[key]

    for label, model in products().items():
        path = h.write(f"{strategy} {label}.mlir", model.text())
        for number, (name, given) in list(left.items()):
            (without, error), (text, failure) = plan(h, path, strategy, given), base(path, given)
            if error or failure:
                problems.append(f"{name}, {' '.join(given)}: {error or failure}")
                del left[number]
            elif without != text:
                del left[number]
        if not left:
            break
    return problems + [
        f"{name}: {' '.join(given)} changes no plan" for name, given in left.values()
    ]


def main():
    h, _ = harness.start(__doc__)
    found = cells()
    if harness.SCALE == 1:
        found = found[harness.SEED % 3 :: 3]
    for strategy in STRATEGIES:
        h.add(
            strategy,
            check,
            h,
            strategy,
            [(name, given) for of, name, given in found if of == strategy],
        )

    def can_fail():
        # What changes nothing is found.
        problems = check(h, "roller", [("nothing", ["walks=2"])])
        return (
            []
            if problems == ["nothing: walks=2 changes no plan"]
            else [f"expected a problem, but got {problems}"]
        )

    h.add("an option without effect is found", can_fail)
    h.finish()


if __name__ == "__main__":
    main()
