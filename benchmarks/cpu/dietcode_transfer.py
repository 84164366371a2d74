#!/usr/bin/env python3
"""Counts the measurements that DietCode's search needs with and without a model of another device.

For Dense, N = 2304, K = 768, of M = T or M = 16·T rows, T = 1…128: a search on the source device saves what it learned.
On the target device, searches of 16, 32, 64, 128, 192 … trials, without that model and with it, until the plan reaches
95 % of the final choice: the geometric mean over the sampled sizes of the plan's times is at most 1 / 0.95 of those of
the search without a model and with all trials. A trial is a measured micro-kernel.

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


def points(most):
    return [count for count in (16, 32, *range(64, most, 64)) if count < most]


class Search:
    def __init__(self, tool, path):
        self.tool, self.path = tool, path

    def times(self, device, seed, trials, *options):
        """Microseconds of the plan by size."""
        run = subprocess.run([self.tool, self.path, "--ftuner-to-manifest", f"--device={device}", "--strategy=dietcode",
                              "--measurer=model:latency", f"--trials={trials}", f"--dietcode-seed={seed}", *options],
                             capture_output=True, text=True)
        if run.returncode != 0:
            sys.exit(run.stderr)
        return [one["predicted_us"] for one in json.loads(run.stdout)["workloads"][0]["predictions"]]


def ratio(times, best):
    return math.exp(statistics.mean(math.log(time / least) for time, least in zip(times, best)))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin-dir", default=workloads.BIN)
    parser.add_argument("--pairs", default="a100:v100,v100:h100", help="source and target device (default: %(default)s)")
    parser.add_argument("--trials", type=int, default=640, help="of the final choice, and of the source (default: 640)")
    parser.add_argument("--seeds", type=int, default=5)
    options = parser.parse_args()
    tool = os.path.join(options.bin_dir, "ftuner-translate")
    print("| rows | source | target | model | measured micro-kernels to 95 %, by seed | median | "
          "first 16: time over the final choice |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    with tempfile.TemporaryDirectory() as folder:
        model = os.path.join(folder, "model.json")
        for label, text in workloads.RANGES.items():
            search = Search(tool, workloads.write(os.path.join(folder, "dense.mlir"), text))
            for pair in options.pairs.split(","):
                source, target = pair.split(":")
                needed = {False: [], True: []}
                first = {False: [], True: []}
                for seed in range(options.seeds):
                    search.times(source, seed, options.trials, f"--save-model={model}")
                    final = search.times(target, seed, options.trials)
                    for is_transferred in (False, True):
                        flags = [f"--transfer-from={model}"] if is_transferred else []
                        reached = options.trials
                        for count in points(options.trials):
                            over = ratio(search.times(target, seed, count, *flags), final)
                            if count == 16:
                                first[is_transferred].append(over)
                            if over <= 1 / 0.95:
                                reached = count
                                break
                        needed[is_transferred].append(reached)
                for is_transferred in (False, True):
                    counts = needed[is_transferred]
                    print(f"| {label} | {source if is_transferred else '-'} | {target} | "
                          f"{'transferred' if is_transferred else 'none'} | {', '.join(map(str, counts))} | "
                          f"{statistics.median(counts):g} | {statistics.mean(first[is_transferred]):.2f} |", flush=True)


if __name__ == "__main__":
    main()
