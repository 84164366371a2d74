#!/usr/bin/env python3
"""Counts the measurements that DietCode's search needs with and without a model of another device.

For Dense, N = 2304, K = 768, of M = 16·T or M = T rows, T = 1…128: a search on the source device saves what it learned.
On the target device, searches of 16, 32, 64, 128 … trials, without that model and with it, until the plan reaches 95 %
of the final choice, that of the search without a model and with all trials: its time over the sampled sizes is at most
1 / 0.95 of the final one, by their mean, where large sizes count, or by the geometric mean, where all count alike. A trial
is a measured micro-kernel.

Nothing runs on a GPU: the cost model 'latency' stands in for the measurer, on both devices, and its times judge plans.
So this shows what is learned from one set of constants for another, not how alike two cards are.

Writes Markdown.
"""

import argparse
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile

import workloads

#: Trials of the searches that are to reach the final choice.
POINTS = (16, 32, 64, 128, 192, 256, 384)


class Search:
    def __init__(self, tool, path):
        self.tool, self.path = tool, path

    def times(self, device, seed, trials, *options):
        """Microseconds of the plan by size."""
        run = subprocess.run(
            [
                self.tool,
                self.path,
                "--ftuner-to-manifest",
                f"--device={device}",
                "--strategy=dietcode",
                "--measurer=model:latency",
                f"--trials={trials}",
                f"--dietcode-seed={seed}",
                *options,
            ],
            capture_output=True,
            text=True,
        )
        if run.returncode != 0:
            sys.exit(run.stderr)
        return [
            one["predicted_us"] for one in json.loads(run.stdout)["workloads"][0]["predictions"]
        ]


def ratios(times, final):
    """By the mean, and by the geometric mean."""
    return (
        sum(times) / sum(final),
        math.exp(statistics.mean(math.log(time / best) for time, best in zip(times, final))),
    )


class Needed:
    """Trials of searches with a model, or of those without."""

    def __init__(self):
        self.reached, self.first = ([], []), ([], [])

    def walk(self, search, final, max_trials):
        """`search` gives the times of so many trials."""
        reached = [max_trials, max_trials]
        for count in POINTS:
            found = ratios(search(count), final)
            for way, loss in enumerate(found):
                if count == POINTS[0]:
                    self.first[way].append(loss)
                if loss <= 1 / 0.95:
                    reached[way] = min(reached[way], count)
            if max(reached) < max_trials:
                break
        for way, count in enumerate(reached):
            self.reached[way].append(count)

    def cells(self):
        """By the mean and by the geometric one: the counts, their median, and the mean loss of the first point."""
        return [
            cell
            for way in range(2)
            for cell in (
                ", ".join(map(str, self.reached[way])),
                f"{statistics.median(self.reached[way]):g}",
                f"{statistics.mean(self.first[way]):.2f}",
            )
        ]


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--bin-dir", default=workloads.BIN)
    parser.add_argument(
        "--pairs",
        default="a100:v100,v100:h100",
        help="source and target device (default: %(default)s)",
    )
    parser.add_argument(
        "--rows", default="M = 16·T,M = T", help="with commas between (default: %(default)s)"
    )
    parser.add_argument(
        "--trials",
        type=int,
        default=512,
        help="of the final choice, and of the source (default: 512)",
    )
    parser.add_argument("--seeds", type=int, default=5)
    options = parser.parse_args()
    tool = os.path.join(options.bin_dir, "ftuner-translate")
    print(
        "| rows | target | model | trials to 95 % of the mean, by seed | median | 16 trials | "
        "of the geometric mean | median | 16 trials |"
    )
    print("|" + " --- |" * 9)
    with tempfile.TemporaryDirectory() as folder:
        model = os.path.join(folder, "model.json")
        for label in options.rows.split(","):
            search = Search(
                tool, workloads.write(os.path.join(folder, "dense.mlir"), workloads.RANGES[label])
            )
            for pair in options.pairs.split(","):
                source, target = pair.split(":")
                untransferred, transferred = Needed(), Needed()
                for seed in range(options.seeds):
                    search.times(source, seed, options.trials, f"--save-model={model}")
                    final = search.times(target, seed, options.trials)
                    untransferred.walk(
                        lambda count: search.times(target, seed, count), final, options.trials
                    )
                    transferred.walk(
                        lambda count: search.times(target, seed, count, f"--transfer-from={model}"),
                        final,
                        options.trials,
                    )
                for name, needed in (("none", untransferred), (f"of {source}", transferred)):
                    print(
                        f"| {label} | {target} | {name} | {' | '.join(needed.cells())} |",
                        flush=True,
                    )


if __name__ == "__main__":
    main()
