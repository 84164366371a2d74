#!/usr/bin/env python3
"""Lists plans whose predicted time differs between two builds, with the term of the latency model that moved most.

The products of benchmarks/cpu/range_regret.py, planned by each build for each device, at powers of two of the range.
A row joins sizes of one product and device whose change is beyond --share and comes from the same term. `other plan`
counts the sizes at which the two builds chose different programs, so that the change is not of one kernel's price alone.

Prints a table. --write FILE writes it with the date and the compiler's commit. Nothing is measured.
"""

import argparse
import sys
import tempfile

from range_regret import PRODUCTS
from token_products import BIN, explain, write_module, write_table


def powers_of_two(rows):
    first, last = [int(word) for word in rows.split() if word.isdigit()][:2]
    return [size for size in (2**exponent for exponent in range(13)) if first <= size <= last]


def moved_term(before, now):
    """Returns the name of the term whose change is the largest in the direction of the sum's, and the change in us."""
    terms = {term["name"]: -term["us"] for term in before["predicted_terms"]}
    for term in now["predicted_terms"]:
        terms[term["name"]] = terms.get(term["name"], 0) + term["us"]
    sign = 1 if now["predicted_us"] > before["predicted_us"] else -1
    return max(terms.items(), key=lambda item: sign * item[1])


def changes(builds, device, name, folder):
    """Yields the size, both times in us, the term that moved, and whether the plans differ."""
    path = write_module(folder, *PRODUCTS[name])
    sizes = powers_of_two(PRODUCTS[name][3])
    before, now = (
        explain(build, path, [f"--device={device}"], sizes)["shapes"] for build in builds
    )
    for size, old, new in zip(sizes, before, now):
        old, new = old["program"], new["program"]
        yield (
            size,
            old["predicted_us"],
            new["predicted_us"],
            *moved_term(old, new),
            old["attribute"] != new["attribute"],
        )


def rows(builds, device, name, share, folder):
    groups = {}
    for size, before, now, term, moved, differs in changes(builds, device, name, folder):
        if abs(now / before - 1) > share:
            groups.setdefault((term, now > before), []).append((size, before, now, moved, differs))
    for (term, _), found in groups.items():
        ratios = [100 * (now / before - 1) for _, before, now, _, _ in found]
        size, before, now, moved, _ = max(found, key=lambda change: abs(change[2] / change[1] - 1))
        yield (
            f"| {name} | {device} | {', '.join(str(change[0]) for change in found)} | {min(ratios):+.0f} to {max(ratios):+.0f} | "
            f"{term} | {size}: {before:.2f} → {now:.2f}, {term} {moved:+.2f} | {sum(change[4] for change in found)} of {len(found)} |"
        )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--before", metavar="DIR", required=True, help="the programs of the other build"
    )
    parser.add_argument("--bin-dir", default=BIN)
    parser.add_argument("--devices", nargs="+", default=["v100", "a100", "h100", "h200"])
    parser.add_argument("--products", nargs="+", choices=PRODUCTS, default=list(PRODUCTS))
    parser.add_argument(
        "--share", type=float, default=0.1, help="least change of the time that is listed"
    )
    parser.add_argument("--write", metavar="FILE")
    options = parser.parse_args()
    lines = [
        "| product | device | rows | change, % | term | largest change, µs | other plan |",
        "|---|---|---|---|---|---|---|",
    ]
    with tempfile.TemporaryDirectory() as folder:
        for device in options.devices:
            for name in options.products:
                print(f"{name}, {device}", file=sys.stderr)
                lines += rows(
                    (options.before, options.bin_dir), device, name, options.share, folder
                )
    table = "\n".join(lines)
    print(table)
    if options.write:
        write_table(
            options.write,
            "Plans whose predicted time changed",
            "Predicted, not measured; each build by its own model.",
            table,
        )


if __name__ == "__main__":
    main()
