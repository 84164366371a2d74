#!/usr/bin/env python3
"""Runs configurations of ONNX's operators in the emulator, and compares with onnxruntime.

Each operator of opset 7 to 24 at each set that changed it: attributes and types in all pairs, with all sizes unknown,
some, and none, at even and odd sizes, 1 and 0. The definitions are in test/Integration/onnx_cases.

--write makes the page docs/onnx-sweep.md. The command fails if a result is wrong, a process crashes or hangs, or a
refusal is not a sentence about the model (test/python/refusals.py).
"""

import argparse
import collections
import json
import sys
import warnings
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "test" / "Integration"))
warnings.simplefilter("ignore")

from onnx_cases import all_operators, case, outcome, table, trials, workers


def chosen(names, modes, seed, max_configurations=None, points=2):
    """The trials of operators, by their keys.

    The first configurations of an operator cover most pairs; `max_configurations` limits them.
    """
    runs = outcome.runs(trials.trials_of)
    found = {}
    for name in names:
        for one in case.choose(name, runs, seed)[:max_configurations]:
            for trial in trials.trials_of(one, points):
                if trial.mode in modes:
                    found[trial.key] = trial
    for number, trial in enumerate(found.values()):
        trial.mark = f"t{number}"
    return found


MODES_IN_ORDER = (trials.UNKNOWN, trials.KNOWN, trials.SOME)


def batches_of(found, size):
    """Trials of one operator set and mode, so many together."""
    groups = collections.defaultdict(list)
    for trial in found:
        groups[trial.version, trial.mode].append(trial)
    ordered = sorted(
        groups.items(), key=lambda item: (MODES_IN_ORDER.index(item[0][1]), -item[0][0])
    )
    return [
        group[first : first + size] for _, group in ordered for first in range(0, len(group), size)
    ]


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--operators", metavar="A,B", help="only these")
    parser.add_argument(
        "--modes", default=",".join(trials.MODES), help="of sizes (default: %(default)s)"
    )
    parser.add_argument(
        "--seed", type=int, default=0, help="of configurations and values (default: 0)"
    )
    parser.add_argument("--jobs", type=int, default=1, help="processes at once (default: 1)")
    parser.add_argument("--batch", type=int, default=24, help="trials in one model (default: 24)")
    parser.add_argument(
        "--most",
        type=int,
        metavar="N",
        help="the first configurations of each operator (default: all)",
    )
    parser.add_argument(
        "--points", type=int, default=2, help="of known sizes of a configuration (default: 2)"
    )
    parser.add_argument("--log", metavar="FILE", help="appends a line of JSON for each trial")
    parser.add_argument(
        "--resume", action="store_true", help="leaves out the trials that the log has"
    )
    parser.add_argument("--write", action="store_true", help="writes docs/onnx-sweep.md")
    parser.add_argument(
        "--verbose", action="store_true", help="prints each trial that is not right"
    )
    arguments = parser.parse_args()
    if arguments.resume and not arguments.log:
        parser.error("--resume: expected --log FILE")
    names = arguments.operators.split(",") if arguments.operators else all_operators()
    unknown = [name for name in names if name not in all_operators()]
    if unknown:
        parser.error(f"--operators: expected operators of the sweep, but got {', '.join(unknown)}")
    found = chosen(
        names, arguments.modes.split(","), arguments.seed, arguments.most, arguments.points
    )
    results = {}
    if arguments.resume and Path(arguments.log).exists():
        for line in Path(arguments.log).read_text().splitlines():
            record = json.loads(line)
            if record["key"] in found and record["seed"] == arguments.seed:
                results[record["key"]] = outcome.Result(record["outcome"], record["words"])
    log = open(arguments.log, "a" if arguments.resume else "w") if arguments.log else None

    def report(trial, result):
        results[trial.key] = result
        if log:
            words = {
                "key": trial.key,
                "seed": arguments.seed,
                "outcome": result.outcome,
                "words": result.words,
            }
            print(json.dumps(words), file=log, flush=True)
        if arguments.verbose and result.outcome not in (outcome.RIGHT, outcome.NOT_RUN):
            print(f"{result.outcome}: {trial.key}: {result.words}", flush=True)

    left = [trial for key, trial in found.items() if key not in results]
    workers.run(batches_of(left, arguments.batch), arguments.seed, arguments.jobs, report)
    if arguments.write:
        table.write(found, results, " ".join(["tools/coverage/onnx_sweep.py", *sys.argv[1:]]))
    counts = collections.Counter(result.outcome for result in results.values())
    print(
        ", ".join(
            f"{counts[name]} {name}"
            for name in (*outcome.OUTCOMES, outcome.NOT_RUN)
            if counts[name]
        )
    )
    unclear = table.unclear(found, results)
    for key, faults in [*unclear.items()][:20]:
        print(f"unclear: {key}: {'; '.join(faults)}: {results[key].words}")
    return bool(unclear) or any(
        counts[name] for name in (outcome.WRONG, outcome.CRASH, outcome.HANG)
    )


if __name__ == "__main__":
    sys.exit(main())
