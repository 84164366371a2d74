#!/usr/bin/env python3
"""Compares the paper's numbers in docs/paper-tables.md with the published CSVs (benchmarks/paper/data).

A line before a table names the file and the columns that are its keys; each column `paper …` then holds what the file
has, character by character, for each row of it that the table has. Means, shares and correlations of the published
numbers are computed anew, and so are the columns `paper_…` of benchmarks/paper/predicted compared. One
table is made anew for three lengths, to see that benchmarks/paper/tables.py works.
"""

import csv
import math
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile

import harness

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAPER = ROOT / "benchmarks" / "paper"
PAGE = ROOT / "docs" / "paper-tables.md"
SOURCE = re.compile(
    r"Columns with \*paper\*: \[([\w.]+)\]\([^)]*\) by ((?:`\w+`(?:, )?)+)(?: of each `(\w+)`)?"
)
#: Tables with columns of the paper, and rows of them all together.
TABLES, ROWS = 9, 148
SYSTEMS = {"FTuner": "ftuner_ms", "HAOTuner": "haotuner_ms", "Roller": "roller_ms"}


def published(name):
    with open(PAPER / "data" / name, encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def cells(line):
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def tables_of(text):
    """(what names the source, header, rows) of each table that a line with a source precedes."""
    for match in SOURCE.finditer(text):
        lines = text[text.index("\n\n", match.end()) :].strip().split("\n\n")[0].splitlines()
        yield match, cells(lines[0]), [cells(line) for line in lines[2:]]


def check_tables(text):
    """Problems of the columns `paper …`, and how many tables and rows there were."""
    problems, tables, count = [], 0, 0
    for match, header, rows in tables_of(text):
        name, keys, system = match.group(1), re.findall(r"`(\w+)`", match.group(2)), match.group(3)
        source = published(name)
        # compile_time.csv has workloads and systems as keys, as padding.csv has T and systems.
        columns = [
            (number, *re.fullmatch(r"paper (?:(\w+) )?`(\w+)`", title).groups())
            for number, title in enumerate(header)
            if title.startswith("paper ")
        ]
        columns = [column for column in columns if column[2] in source[0]]
        if not columns or any(key not in header for key in keys):
            problems.append(
                f"{name}: expected columns {keys} and some of the paper, but got {header}"
            )
            continue
        tables += 1
        for row in rows:
            count += 1
            wanted = {key: row[header.index(key)] for key in keys}
            for number, of, column in columns:
                found = [
                    entry[column]
                    for entry in source
                    if all(entry[key] == value for key, value in wanted.items())
                    and (not system or entry[system] == of)
                ]
                if found != [row[number]]:
                    problems.append(
                        f"{name}, {wanted}, {of or ''} {column}: expected {found}, but the page says {row[number]}"
                    )
    return problems, tables, count


def ratio_cells(times, vendor):
    over = [time / base for time, base in zip(times, vendor)]
    return [
        f"{math.exp(statistics.fmean(map(math.log, over))):.2f}",
        f"{100 * sum(r <= 1.1 for r in over) / len(over):.0f} %",
    ]


def check_ratios(text):
    """The published systems over cuBLAS, of Dense and of BatchMatmul."""
    problems = []
    batch = published("batch_matmul.csv")
    sections = {
        "Dense": {device: published(f"dense_{device}.csv") for device in ("v100", "k80")},
        "BatchMatmul": {
            device: [row for row in batch if row["device"] == device]
            for device in dict.fromkeys(row["device"] for row in batch)
        },
    }
    for section, devices in sections.items():
        part = text[text.index(f"## {section}\n") :].split("\n## ")[0]
        for device, rows in devices.items():
            for system, column in SYSTEMS.items():
                wanted = ratio_cells(
                    [float(row[column]) for row in rows], [float(row["vendor_ms"]) for row in rows]
                )
                line = f"| {device} | {system} | paper, measured | {' | '.join(wanted)} |"
                if part.count(line) != 1:
                    problems.append(f"{section}: expected the line '{line} …'")
    return problems


def check_sia(text):
    """Programs and best of ten of the published pools; Spearman's correlations as they were computed elsewhere."""
    elsewhere = dict(
        zip((5, 24, 43, 62, 81, 100, 119, 128), (0.32, 0.34, 0.42, 0.75, 0.75, 0.82, 0.79, 0.77))
    )
    part = text[text.index("## SIA") :].split("\n## ")[0]
    problems = []
    for t, expected in elsewhere.items():
        pool = [
            (float(row["sia"]), float(row["gflops"]))
            for row in published("sia_vs_gflops.csv")
            if row["T"] == str(t)
        ]
        ten = max(speed for _, speed in sorted(pool, key=lambda item: -item[0])[:10]) / max(
            speed for _, speed in pool
        )
        found = re.search(
            rf"^\| {t} \| (\d+) \| (-?[\d.]+) \| \d+ % \| (\d+) % \|", part, re.MULTILINE
        )
        if not found:
            problems.append(f"SIA: expected a row for T = {t}")
        elif (int(found.group(1)), int(found.group(3))) != (len(pool), round(100 * ten)) or abs(
            float(found.group(2)) - expected
        ) > 0.011:
            problems.append(
                f"SIA: expected {len(pool)}, {expected}, {100 * ten:.0f} %, but the page says {found.group(0)}"
            )
    return problems


def check_predicted():
    problems = []
    for name in ("dense.csv", "batch_matmul.csv"):
        with open(PAPER / "predicted" / name, encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file))
        seen = 0
        for row in rows:
            columns = [column for column in row if column.startswith("paper_") and row[column]]
            if not columns:
                continue
            seen += 1
            source = published(f"dense_{row['device']}.csv" if name == "dense.csv" else name)
            (entry,) = [
                entry
                for entry in source
                if entry["T"] == row["T"] and entry.get("device", row["device"]) == row["device"]
            ]
            if any(
                float(entry[column.removeprefix("paper_")]) != float(row[column])
                for column in columns
            ):
                problems.append(f"{name}: expected {entry}, but got {row}")
        expected = 256 if name == "dense.csv" else 32
        if seen != expected:
            problems.append(
                f"{name}: expected {expected} rows with numbers of the paper, but got {seen}"
            )
    return problems


def main():
    h, options = harness.start(__doc__)
    text = PAGE.read_text(encoding="utf-8")

    def page():
        problems, tables, rows = check_tables(text)
        if (tables, rows) != (TABLES, ROWS):
            problems.append(
                f"expected {TABLES} tables with {ROWS} rows of the paper's numbers, but got {tables} with {rows}"
            )
        problems += check_ratios(text) + check_sia(text)
        problems += [
            f"expected the figure {figure}"
            for figure in re.findall(r"\]\((figures/[\w.-]+)\)", text)
            if not (PAGE.parent / figure).exists()
        ]
        # The checks can fail: one digit, one mean, one count.
        for check, before, after in (
            (lambda changed: check_tables(changed)[0], "0.0536091", "0.0536092"),
            (lambda changed: check_tables(changed)[0], "| 0.4268 |", "| 0.4267 |"),
            (
                check_ratios,
                "| v100 | FTuner | paper, measured | 1.18 |",
                "| v100 | FTuner | paper, measured | 1.17 |",
            ),
            (check_sia, "| 24 | 710 |", "| 24 | 709 |"),
        ):
            if before not in text or not check(text.replace(before, after)):
                problems.append(f"expected a problem with {after!r} in place of {before!r}")
        return problems

    def rehearsal():
        with tempfile.TemporaryDirectory() as folder:
            out = pathlib.Path(folder, "page.md")
            problems = []
            for name in ("batch-matmul", "sm-use"):
                done = subprocess.run(
                    [
                        sys.executable,
                        PAPER / "tables.py",
                        f"--bin-dir={options.bin_dir}",
                        "--only",
                        name,
                        "--lengths=5,43,128",
                        f"--out={out}",
                        f"--predicted={folder}",
                    ],
                    capture_output=True,
                    text=True,
                )
                if done.returncode != 0:
                    return [done.stderr]
            made = out.read_text(encoding="utf-8")
            found, tables, rows = check_tables(made)
            problems += found
            if (
                (tables, rows) != (2, 6)
                or "## BatchMatmul" not in made
                or "## Use of SMs" not in made
            ):
                problems.append(f"expected 2 tables with 6 rows, but got {tables} with {rows}")
            if "nan" in made or "none, ms" in made:
                problems.append("expected numbers alone")
            return problems

    h.add("the paper's numbers in docs/paper-tables.md", page)
    h.add("the paper's numbers in benchmarks/paper/predicted", check_predicted)
    h.add("benchmarks/paper/tables.py for three lengths", rehearsal)
    h.finish()


if __name__ == "__main__":
    main()
