#!/usr/bin/env python3
"""Runs random graphs of one to three of ONNX's operators with unknown sizes, and compares with onnxruntime.

A third are configurations of one operator; the others compute something and then move it: permute, reshape, slice,
concat, pad, expand, gather. A graph that is not right is printed with its number; `--seed S --only NUMBER` runs it
again, and the shortest part of it that still fails is printed. The definitions are in test/Integration/onnx_cases.

The command fails if a result is wrong, or a process crashes or hangs, or more than a tenth is refused.
"""

import argparse
import collections
import sys
import warnings
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "test" / "Integration"))
warnings.simplefilter("ignore")

from onnx_cases import all_operators, chains, outcome, table, trials, workers


def text_of(graph, seed):
    """The graph as ONNX prints it, and the sizes of its inputs."""
    import onnx.printer

    model = trials.model_of([graph.part(seed)], graph.version)
    return f"{onnx.printer.to_text(model.graph)}\nsizes: {graph.points}"


def run(graphs, seed, jobs, batch):
    """The results by marks."""
    groups = collections.defaultdict(list)
    for graph in graphs:
        groups[graph.version].append(graph)
    batches = [
        group[first : first + batch]
        for group in groups.values()
        for first in range(0, len(group), batch)
    ]
    results = {}
    workers.run(batches, seed, jobs, lambda graph, result: results.__setitem__(graph.mark, result))
    return results


def shortest(graph, seed, failed):
    """The shortest beginning of a chain that fails as the whole does, and its result."""
    number = int(graph.mark[1:])
    for length in (1, 2):
        part = chains.graph(seed, number, length)
        if isinstance(part, chains.Chain) and len(part.part(seed).nodes) < len(
            graph.part(seed).nodes
        ):
            result = run([part], seed, 1, 1)[part.mark]
            if result.outcome == failed.outcome:
                return part, result
    return graph, failed


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seed", type=int, default=0, help="of graphs and values (default: 0)")
    parser.add_argument("--count", type=int, default=100, help="graphs (default: 100)")
    parser.add_argument("--only", type=int, metavar="NUMBER", help="this graph alone")
    parser.add_argument("--jobs", type=int, default=1, help="processes at once (default: 1)")
    parser.add_argument("--batch", type=int, default=16, help="graphs in one model (default: 16)")
    arguments = parser.parse_args()
    all_operators()
    numbers = range(arguments.count) if arguments.only is None else [arguments.only]
    found = [chains.graph(arguments.seed, number) for number in numbers]
    found = {graph.mark: graph for graph in found if graph is not None}
    results = run(found.values(), arguments.seed, arguments.jobs, arguments.batch)
    for mark, result in results.items():
        if result.outcome in (outcome.RIGHT, outcome.NOT_RUN):
            continue
        if result.outcome == outcome.REFUSED and arguments.only is None:
            print(f"refused {mark[1:]}: {getattr(getattr(found[mark], 'case', None), 'operator', 'chain')}: "
                  f"{table.plain(result.words)}")  # fmt: skip
            continue
        graph, result = shortest(found[mark], arguments.seed, result)
        print(
            f"{result.outcome} --seed {arguments.seed} --only {mark[1:]}: {graph.key}: {result.words}"
        )
        print(text_of(graph, arguments.seed), flush=True)
    counts = collections.Counter(result.outcome for result in results.values())
    print(
        ", ".join(
            f"{counts[name]} {name}"
            for name in (*outcome.OUTCOMES, outcome.NOT_RUN)
            if counts[name]
        )
    )
    ran = sum(counts.values()) - counts[outcome.NOT_RUN]
    bad = ran - counts[outcome.RIGHT] - counts[outcome.REFUSED]
    return bool(bad) or counts[outcome.REFUSED] > 0.1 * ran


if __name__ == "__main__":
    sys.exit(main())
