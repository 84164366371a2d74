#!/usr/bin/env python3
"""Compares figures of the documentation with what the tools say.

The counts of the search in README.md, docs/search.md (the table of
benchmarks/cpu/search_table.py) and docs/benchmarks.md are those of the plans that
the front end makes. With --fix the pages get the counts of today.
"""

import os
import re
import sys
import tempfile

import harness

ROOT = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
sys.path.insert(0, os.path.join(ROOT, "benchmarks", "cpu"))
import workloads

NUMBER = r"\d{1,3}(?:,\d{3})*"


class Plans:
    """Statistics of the search, each plan made once."""

    def __init__(self, h):
        self.h, self.known = h, {}

    def statistics(self, workload, device, cost_model="latency"):
        key = workload, device, cost_model
        if key not in self.known:
            with tempfile.TemporaryDirectory() as folder:
                path = os.path.join(folder, "source.mlir")
                if workload == "example":
                    path = os.path.join(ROOT, "examples", "dense.mlir")
                elif workload == "BatchMatmul":
                    workloads.write_batch_matmul(path)
                else:
                    workloads.write(path, workloads.RANGES[workload.removeprefix("Dense, ")])
                done = self.h.tool(
                    "ftuner-opt",
                    path,
                    f"--ftuner-front-end=device={device} cost-model={cost_model}",
                )
            if done.returncode != 0:
                raise RuntimeError(done.stderr)
            (text,) = re.findall(r"statistics = \{([^}]*)\}", done.stdout)
            self.known[key] = {
                name: float(value) for name, value in re.findall(r"(\w+) = ([-\d.eE+]+) :", text)
            }
        return self.known[key]


def replace(text, pattern, value, problems, what):
    """The text with the one number that the pattern's group is, made `value`."""
    found = re.search(pattern, text)
    if not found:
        problems.append(f"{what}: expected a figure that matches {pattern!r}")
        return text
    wanted = f"{int(value):,}"
    if found.group(1) != wanted:
        problems.append(f"{what}: expected {wanted}, but the page says {found.group(1)}")
    return text[: found.start(1)] + wanted + text[found.end(1) :]


def readme(text, plans, problems):
    statistics = plans.statistics("example", "h200")
    for name, label in (
        ("after_cross_pick", "after cross pick"),
        ("candidates", "candidates"),
        ("families", "families"),
    ):
        text = replace(
            text,
            rf"search: .*\b{label} ({NUMBER})",
            statistics[name],
            problems,
            f"README.md, {label}",
        )
    return text


def search(text, plans, problems):
    (header,) = re.findall(r"^\| count \|(.*)\|$", text, re.MULTILINE)
    columns = [column.strip().split(", ", 1) for column in header.split("|")]

    def row(match):
        name, cells = match.group(1), [cell.strip() for cell in match.group(2).split("|")]
        for number, (device, workload) in enumerate(columns):
            statistics = plans.statistics(workload, device)
            wanted = f"{int(statistics.get(name, 0)):,}"
            if cells[number] != wanted:
                problems.append(
                    f"docs/search.md, {name}, {device}, {workload}: expected {wanted}, "
                    f"but the page says {cells[number]}"
                )
                cells[number] = wanted
        return f"| `{name}` | " + " | ".join(cells) + " |"

    start = text.index("| count |")
    end = text.index("\n\n", start)
    table = re.sub(
        rf"^\| `(\w+)` \| ((?:{NUMBER} \| ?){{{len(columns) - 1}}}{NUMBER}) \|$",
        row,
        text[start:end],
        flags=re.MULTILINE,
    )
    return text[:start] + table + text[end:]


def benchmarks(text, plans, problems):
    for rows, workload in (("1 to 128", "Dense, M = T"), ("16 to 2048", "Dense, M = 16·T")):
        for model in ("latency", "sia", "sia-program"):
            text = replace(
                text,
                rf"\| {rows} \| `{model}` \| .* µs \| .* s \| ({NUMBER}) \|",
                plans.statistics(workload, "h200", model)["candidates"],
                problems,
                f"docs/benchmarks.md, candidates of {rows}, {model}",
            )
    return text


def main():
    h, options = harness.start(
        __doc__, {"--fix": {"action": "store_true", "help": "write today's counts"}}
    )
    plans = Plans(h)

    def check(name, page):
        path, problems = os.path.join(ROOT, name), []
        with open(path, encoding="utf-8") as file:
            text = file.read()
        fixed = page(text, plans, problems)
        if options.fix and fixed != text:
            with open(path, "w", encoding="utf-8") as file:
                file.write(fixed)
        return [] if options.fix else problems

    # One after the other: they share plans.
    h.add(
        "figures of the documentation",
        lambda: [
            problem
            for name, page in (
                ("README.md", readme),
                ("docs/search.md", search),
                ("docs/benchmarks.md", benchmarks),
            )
            for problem in check(name, page)
        ],
    )
    h.finish()


if __name__ == "__main__":
    main()
