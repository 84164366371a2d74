#!/usr/bin/env python3
"""Compares the pages of papers with the options that there are, and docs/paper.md with what the search counts.

Each option of the last column of a page's table exists and has the default that the page says, and each option that the
page's strategy reads, and not every other strategy too, is there. Values of options that the page names are values.
The tables of counts of docs/paper.md are those of today; with --fix the page gets them.
"""

import json
import os
import re
import sys
import tempfile

import harness

ROOT = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
sys.path.insert(0, os.path.join(ROOT, "benchmarks", "cpu"))
import workloads

PAGE = os.path.join(ROOT, "docs", "paper.md")
#: Pages that compare a strategy with its paper, and mistakes that the check must find: text of the page, and what it
#: becomes.
STRATEGIES = {
    "ftuner": (
        "paper.md",
        [
            ("`psi` = `0.5`", "`psi` = `0.4`"),
            ("`psi-count` = `10`", ""),
            ("`zeta` = `0`", "`zetta` = `0`"),
            ("pool=single", "pool=pair"),
        ],
    ),
    "gensor": ("gensor.md", [("`walks` = `16`", "`walks` = `17`"), ("`gensor-back` = `0.25`", "")]),
    "dietcode": (
        "dietcode.md",
        [("`trials` = `1000`", "`trials` = `200`"), ("`pad-term` = `true`", "")],
    ),
}
#: Pages that must not call a mode the paper's search.
PAGES = ("README.md", "docs", "benchmarks/cpu")
CLAIM = re.compile(
    r"(is|are|as) the paper's( own)? search|search is the paper's|exactly the paper's search",
    re.IGNORECASE,
)


def as_text(value):
    return (
        str(value).lower()
        if isinstance(value, bool)
        else f"{value:g}"
        if isinstance(value, float)
        else str(value)
    )


def table_of(text):
    """The rows of the table of steps, cells by column."""
    lines = text[text.index("| step |") :].split("\n\n")[0].splitlines()
    header, _, *rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return [dict(zip(header, row)) for row in rows], [
        row for row in rows if len(row) != len(header)
    ]


def read_by(strategy, options):
    """Names of the options that a strategy reads, and not every other one too."""
    strategies = next(option for option in options if option["name"] == "strategy")["values"]
    result = set()
    for option in options:
        readers = {
            reader.get("name")
            for reader in option["read_by"]
            if reader["kind"] in ("strategy", "baseline")
        }
        if strategy in readers and readers != set(strategies):
            result.add(option["name"])
    return result


def problems_of(text, options, strategy):
    known = {option["name"]: option for option in options}
    rows, ragged = table_of(text)
    problems = [f"expected as many cells as columns, but got {row}" for row in ragged]
    named = {}
    for row in rows:
        for name, default in re.findall(r"`([\w-]+)` = `([^`]*)`", row["options"]):
            if name in named:
                problems.append(f"option '{name}' is in two rows")
            named[name] = default
            if name not in known:
                problems.append(f"there is no option '{name}'")
            elif as_text(known[name]["default"]) != default:
                problems.append(
                    f"option '{name}': expected the default {as_text(known[name]['default'])}, "
                    f"but the page says {default}"
                )
        left = re.sub(r"`[\w-]+` = `[^`]*`(, )?", "", row["options"]).strip()
        if left:
            problems.append(
                f"row '{row['step']}': expected options with their defaults, but got '{left}'"
            )
    problems += [
        f"option '{name}' of the strategy {strategy} is in no row"
        for name in sorted(read_by(strategy, options) - set(named))
    ]
    # Combinations that the page names: `name=value name=value`.
    for span in re.findall(r"`([\w-]+=[^`]*)`", text):
        for part in span.split():
            name, _, value = part.partition("=")
            if name not in known:
                problems.append(f"`{span}`: there is no option '{name}'")
            elif value not in known[name].get("values", [value]):
                problems.append(f"`{span}`: '{name}' has no value '{value}'")
    # Values by themselves, where a row has one option with values.
    values = {value for name in named for value in known.get(name, {}).get("values", [])}
    for row in rows:
        for value in re.findall(r"`([a-z]+)`", row["here"]):
            if value not in values and value not in known:
                problems.append(f"row '{row['step']}': there is no value `{value}`")
    return problems


def problems_of_presets(text, presets):
    """What the page says of presets beside what they set."""
    said = {
        name: dict(part.split("=") for part in values.split())
        for name, values in re.findall(r"\| `preset=(\w+)` \| `([^`]*)` \|", text)
    }
    known = {
        preset["name"]: {name: as_text(value) for name, value in preset["values"].items()}
        for preset in presets
    }
    return [
        f"preset '{name}': expected {known.get(name)}, but the page says {said.get(name)}"
        for name in sorted({*said, *known})
        if said.get(name) != known.get(name)
    ]


def statistics_of(h, rows, given):
    with tempfile.TemporaryDirectory() as folder:
        path = workloads.write(os.path.join(folder, "source.mlir"), rows)
        done = h.tool(
            "ftuner-opt", path, f"--ftuner-front-end=device=v100 tile-rule=divisors {given}"
        )
    if done.returncode != 0:
        raise RuntimeError(done.stderr)
    (text,) = re.findall(r"statistics = \{([^}]*)\}", done.stdout)
    return {name: float(value) for name, value in re.findall(r"(\w+) = ([-\d.eE+]+) :", text)}


def with_counts(h, text):
    """The page with the counts of today."""
    for name in ("near the paper", "near the artifact"):
        (given,) = re.findall(rf"{name} with `([^`]*)`", text)
        start = text.index(f"| {name} | M = T |")
        end = text.index("\n\n", start)
        header, rule, *lines = text[start:end].splitlines()
        labels = [cell.strip() for cell in header.strip("|").split("|")][1:]
        columns = [statistics_of(h, workloads.RANGES[label], given) for label in labels]
        for number, line in enumerate(lines):
            statistic = re.match(r"\| `(\w+)` \|", line).group(1)
            counts = " | ".join(f"{int(column.get(statistic, 0)):,}" for column in columns)
            lines[number] = f"| `{statistic}` | {counts} |"
        text = text[:start] + "\n".join([header, rule, *lines]) + text[end:]
    return text


def claims():
    """Sentences that call a mode the paper's search."""
    found = []
    for name in PAGES:
        path = os.path.join(ROOT, name)
        files = (
            [path]
            if os.path.isfile(path)
            else [
                os.path.join(folder, file)
                for folder, _, names in os.walk(path)
                for file in names
                if file.endswith((".md", ".py"))
            ]
        )
        for file in files:
            with open(file, encoding="utf-8") as stream:
                for match in CLAIM.finditer(re.sub(r"\s+", " ", stream.read())):
                    found.append(
                        f"{os.path.relpath(file, ROOT)}: '{match.group(0)}': see docs/paper.md"
                    )
    return found


def main():
    h, given = harness.start(
        __doc__, {"--fix": {"action": "store_true", "help": "write today's counts"}}
    )
    with open(PAGE, encoding="utf-8") as file:
        text = file.read()

    def page(strategy):
        name, mistakes = STRATEGIES[strategy]
        done = h.tool("ftuner-translate", "--list-options")
        if done.returncode != 0:
            return [done.stderr]
        options = json.loads(done.stdout)["options"]
        with open(os.path.join(ROOT, "docs", name), encoding="utf-8") as file:
            text = file.read()
        found = problems_of(text, options, strategy)
        # The check can fail: another default, a missing row, an unknown option and value.
        for before, after in mistakes:
            if before not in text or not problems_of(
                text.replace(before, after), options, strategy
            ):
                found.append(f"expected a problem with {after!r} in place of {before!r}")
        return found

    def presets():
        done = h.tool("ftuner-translate", "--list-options")
        if done.returncode != 0:
            return [done.stderr]
        known = json.loads(done.stdout)["presets"]
        found = problems_of_presets(text, known)
        for before, after in (("pool=exact", "pool=tight"), ("preset=artifact", "preset=code")):
            if not problems_of_presets(text.replace(before, after), known):
                found.append(f"expected a problem with {after!r} in place of {before!r}")
        return found

    def counts():
        today = with_counts(h, text)
        if given.fix:
            with open(PAGE, "w", encoding="utf-8") as file:
                file.write(today)
            return []
        return [
            f"expected {new!r}, but the page says {old!r}"
            for old, new in zip(text.splitlines(), today.splitlines())
            if old != new
        ]

    for strategy, (name, _) in STRATEGIES.items():
        h.add(f"options in docs/{name}", lambda strategy=strategy: page(strategy))
    h.add("presets in docs/paper.md", presets)
    h.add("counts in docs/paper.md", counts)
    h.add("no mode is called the paper's search", claims)
    h.finish()


if __name__ == "__main__":
    main()
