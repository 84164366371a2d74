#!/usr/bin/env python3
"""Compares all strategies on BERT-base, Dense and BatchMatmul, on growing ranges, and on the papers' workloads.

Writes what `ftuner compare` prints as one file of Markdown, with the ranks under every judge first, and the sizes at
which FTuner is behind. Times are predictions. --state FILE keeps plans, so that a run that was stopped goes on; remove it
after a change of the compiler. Needs what tools/setup.sh installs.
"""

import argparse
import os
import pathlib
import sys
import warnings

import reports
import workloads

ROOT = pathlib.Path(workloads.ROOT).resolve()
os.environ.setdefault("FTUNER_HOME", str(pathlib.Path(workloads.BIN).parent))
sys.path[:0] = [str(ROOT / "python")]

from ftuner.compiler import SourceText
from ftuner.study import comparison, comparison_text, growth, paper_comparison, papers

#: Workloads of the paper, by their names in papers.json.
OPERATORS = ("dense_rows", "dense", "batch_matmul")
ENDS = [2**power for power in range(13)]
#: FTuner is behind if another plan takes less time by more than this share.
MAX_LOSS = 0.01


def bert_base(layers, small):
    import full_models

    built = full_models.build("bert_base", layers, small, False)
    return SourceText("bert_base.mlir", full_models.export(built, 16, 128).text.encode())


def markdown(header, rows):
    return "\n".join(reports.table(header, rows)) + "\n"


def fenced(text):
    return f"```\n{text.rstrip()}\n```\n"


def ranks(found):
    """A line for each workload, judge and device."""
    rows, strategies = [], list(dict.fromkeys(entry.strategy for entry in found.entries))
    for group in found.groups:
        source, device, workload = group.key
        for judge in found.judges:
            ranks_by_entry = group.ranks(judge)
            if ranks_by_entry:
                own = (
                    comparison_text.OWN
                    if any(judge in entry.own_judges for entry in group.plans)
                    else ""
                )
                cells = [str(ranks_by_entry.get(i, "-")) for i in range(len(group.entries))]
                rows.append([source, workload, device, judge + own, *cells])
    return markdown(["source", "workload", "device", "judge", *strategies], rows)


def losses_of_default(found):
    """A table of the sizes at which the default strategy's plan is slower than another plan."""
    rows = []
    for group in found.groups:
        source, device, workload = group.key
        entries = {entry.strategy: entry for entry in group.plans}
        if "ftuner" not in entries or workload == comparison.WHOLE:
            continue
        for judge in found.judges:
            at = group.common(judge)
            own = entries["ftuner"].times.get(judge, [])
            losses = [
                (own[i] / entry.times[judge][i] - 1, name, group.sizes[i])
                for name, entry in entries.items()
                for i in at
                if len(entry.times.get(judge, [])) == len(own)
            ]
            losing = {tuple(size) for loss, _, size in losses if loss > MAX_LOSS}
            if losing:
                worst, name, size = max(losses)
                rows.append(
                    [
                        source,
                        workload,
                        device,
                        judge,
                        f"{len(losing)} of {len(at)}",
                        f"{worst:.1%}",
                        name,
                        " × ".join(map(str, size)),
                    ]
                )
    return markdown(
        ["source", "workload", "device", "judge", "sizes", "worst", "against", "at"], rows
    )


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--devices", nargs="*", default=["v100", "h200"])
    parser.add_argument(
        "--parts",
        nargs="*",
        choices=("operators", "model", "growth", "papers"),
        default=["operators", "model", "growth", "papers"],
    )
    parser.add_argument("--layers", type=int, help="of BERT-base (default: as published)")
    parser.add_argument("--small", action="store_true", help="48 channels: to try this script")
    parser.add_argument("--ends", nargs="*", type=int, default=ENDS, help="of ranges")
    parser.add_argument("--state", metavar="FILE")
    parser.add_argument("--write", type=pathlib.Path, metavar="FILE")
    options = parser.parse_args()
    warnings.simplefilter("ignore")  # Warnings of torch.export about versions to come.
    given = {
        "device": options.devices,
        "state": options.state,
        "tell": lambda line: print(line, file=sys.stderr),
    }
    paper = papers.load("ftuner")
    modules = {
        one.name: SourceText(f"{one.name}.mlir", one.text().encode()) for one in paper.workloads
    }
    sources = [modules[name] for name in OPERATORS] if "operators" in options.parts else []
    if "model" in options.parts:
        sources.append(bert_base(options.layers, options.small))
    text = reports.stamp() + "\n"
    found = [comparison.compare(source, **given) for source in sources]
    if found:
        everything = comparison.Comparison([entry for one in found for entry in one.entries])
        text += f"\n## Ranks\n\n{ranks(everything)}\n## Sizes at which `ftuner` is behind\n\n{losses_of_default(everything)}"
        text += "".join(
            f"\n## {source.name}\n\n{fenced(comparison_text.text(one))}"
            for source, one in zip(sources, found)
        )
    if "growth" in options.parts:
        grown = growth.compare(modules["dense_rows"], options.ends, **given)
        header, rows = growth.table(grown)
        text += f"\n## Growth of Dense, M = T\n\n{markdown(header, rows)}"
    for name in papers.NAMES if "papers" in options.parts else ():
        paper = papers.load(name)
        one = paper_comparison.run(paper, state=given["state"], tell=given["tell"])
        text += f"\n## {paper.title}\n"
        for device in paper_comparison.devices_of(one):
            header, rows = paper_comparison.tabulate(paper, one, device)
            text += f"\nOn {device}. {paper_comparison.NOTE}\n\n{markdown(header, rows)}"
        text += "".join(f"\n{note}\n" for note in one.notes)
        text += f"\n{ranks(one)}\n{losses_of_default(one)}\n{fenced(comparison_text.text(one))}"
    print(text)
    if options.write:
        options.write.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
