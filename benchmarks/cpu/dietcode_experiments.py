#!/usr/bin/env python3
"""Tables of what DietCode's search must show, by a cost model in the device's place.

    regret   eight sampled lengths, all 128 judged: sizes that lose more than 5 % against the best of the kernels that
             the search had measured, at that size; kernels, leaves and changes of votes
    joint    one search of eight shapes beside eight searches of one
    k        the coefficient of ragged waves, from recorded products of cuBLAS (data of docs/latency.md's judges)

Times are predictions of `latency` that stand in for measurements: nothing is measured but what `k` reads. By
build/release/bin/dietcode_regret (`ninja -C build/release dietcode_regret`). Writes Markdown.
"""

import argparse
import collections
import concurrent.futures
import csv
import gzip
import json
import math
import os
import statistics
import subprocess
import sys

import workloads

LENGTHS = workloads.LENGTHS
#: Workloads, and what a size of their main axis is of a length.
WORKLOADS = {
    "dense": ("Dense, M = T", 1),
    "dense16": ("Dense, M = 16·T", 16),
    "nt": ("BatchMatmul NT", 1),
    "nn": ("BatchMatmul NN", 1),
}
NOTICEABLE = 0.05


def search(options, workload, device, *given):
    program = os.path.join(options.bin_dir, "dietcode_regret")
    if not os.path.exists(program):
        sys.exit(f"{program} is missing: ninja -C build/release dietcode_regret")
    run = subprocess.run([program, workload, device, *given], capture_output=True, text=True)
    if run.returncode != 0:
        sys.exit(run.stderr)
    return json.loads(run.stdout)


def sizes_of(workload, lengths=LENGTHS):
    return [length * WORKLOADS[workload][1] for length in lengths]


def instances(workload, lengths=LENGTHS):
    return "instance-sizes=" + ",".join(map(str, sizes_of(workload, lengths)))


def cases(options):
    return [
        (workload, device)
        for workload in options.workloads.split(",")
        for device in options.devices.split(",")
    ]


def in_order(options, function, items):
    """Results one by one, computed side by side."""
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        yield from pool.map(function, items)


def regret_row(options, workload, device, votes):
    found = search(
        options,
        workload,
        device,
        instances(workload),
        f"trials={options.trials}",
        f"dietcode-seed={options.seed}",
        *votes,
    )
    others = [size for size in found["sizes"] if size["size"] not in sizes_of(workload)]
    losses = [size["us"] / size["best_us"] - 1 for size in others]
    families = [size["family"] for size in found["sizes"]]
    changes = sum(a != b for a, b in zip(families, families[1:]))
    return [
        f"{sum(loss > NOTICEABLE for loss in losses)} of {len(losses)}",
        f"{100 * statistics.mean(losses):.1f} %",
        f"{100 * max(losses):.0f} %",
        f"{found['statistics']['measured_programs']:.0f}",
        str(len(set(families))),
        str(found["leaves"]),
        str(changes),
    ]


def regret(options):
    print(
        "| workload | device | votes | sizes that lose more than 5 % | mean loss | most | programs measured | kernels "
        "of the sizes | leaves | changes of kernels |\n|" + "---|" * 10
    )
    kinds = {"range": (), "paper": ("vote-sizes=instances", "votes=best")}
    items = [(*case, name) for case in cases(options) for name in kinds]
    for (workload, device, name), row in zip(
        items, in_order(options, lambda item: regret_row(options, *item[:2], kinds[item[2]]), items)
    ):
        print(
            f"| {WORKLOADS[workload][0]} | {device} | {name} | " + " | ".join(row) + " |",
            flush=True,
        )


def joint_row(options, workload, device):
    """Programs measured and times at the eight sizes: jointly, and one search each."""
    scale = WORKLOADS[workload][1]

    def run(lengths, trials, *given):
        found = search(
            options,
            workload,
            device,
            instances(workload, lengths),
            f"trials={trials}",
            f"dietcode-seed={options.seed}",
            *given,
        )
        times = {size["size"]: size["us"] for size in found["sizes"]}
        return found["statistics"]["measured_programs"], [
            times[length * scale] for length in lengths
        ]

    joint_cost, joint_times = run(
        LENGTHS, options.joint_trials or options.trials, "vote-sizes=instances"
    )
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        singles = list(
            pool.map(lambda length: run((length,), options.trials, "vote-sizes=instances"), LENGTHS)
        )
    single_cost = sum(cost for cost, _ in singles)
    best = [min(a, times[0]) for a, (_, times) in zip(joint_times, singles)]
    joint = statistics.mean(a / b - 1 for a, b in zip(joint_times, best))
    single = statistics.mean(times[0] / b - 1 for (_, times), b in zip(singles, best))
    return [
        f"{joint_cost:.0f}",
        f"{single_cost:.0f}",
        f"{joint_cost / single_cost:.2f}",
        f"{100 * joint:.1f} %",
        f"{100 * single:.1f} %",
        f"{100 * (joint - single):.1f} %",
    ]


def joint(options):
    print(
        "| workload | device | programs measured: joint | eight searches | share | mean loss: joint | eight searches | "
        "joint less eight |\n|" + "---|" * 8
    )
    items = cases(options)
    for workload, device in items:
        row = joint_row(options, workload, device)
        print(f"| {WORKLOADS[workload][0]} | {device} | " + " | ".join(row) + " |", flush=True)


#: SMs of the recorded cards, and microseconds of the shortest calls of linear layers and of batched products.
CARDS = {
    "p4": (20, 55, 33),
    "p100": (56, 96, 54),
    "t4": (40, 55, 36),
    "v100": (80, 66, 48),
    "a100": (108, 55, 33),
}
#: Values that are fitted with k: microseconds before a kernel, and extra steps of K of a block.
FIXED = (0, 10, 20, 30, 45)
FILLING = (0, 16, 32, 64, 128)
MAX_WAVES = 8
MIN_GROUP = 8


def recorded_products(path):
    """By device: (operator, kernel, K, blocks, microseconds) of products without slices of K, above the floor."""
    products = collections.defaultdict(list)
    with gzip.open(path, "rt") as file:
        for row in csv.DictReader(file):
            if row["num_kernels"] != "1" or not row["tile_m"] or not row["grid_x"]:
                continue
            is_batch = row["op"] == "bmm"
            if int(row["grid_z"]) != (int(row["B"]) if is_batch else 1):
                continue
            microseconds = 1000 * float(row["latency_ms"])
            if microseconds < 2 * CARDS[row["device"]][1 + is_batch]:
                continue
            blocks = int(row["grid_x"]) * int(row["grid_y"]) * int(row["grid_z"])
            products[row["device"]].append(
                (row["op"], row["kernel"], int(row["K"]), blocks, microseconds)
            )
    return products


def k_of(products, sms, seed, numpy):
    """k with its standard error, the error of a time, and numbers of ragged products and groups.

    A group is a kernel at one number of waves, with a rate of its own (the throughput by waves that DietCode has):
    time = fixed + blocks · (K + filling) / rate / f_occ(k). Least squares of logarithms, without products beyond three
    deviations; the error by drawing groups anew.
    """
    products = [product for product in products if math.ceil(product[3] / sms) <= MAX_WAVES]
    numbers = {}
    group = numpy.array(
        [
            numbers.setdefault((op, kernel, math.ceil(blocks / sms)), len(numbers))
            for op, kernel, _, blocks, _ in products
        ]
    )
    depth, blocks, times = (numpy.array(column, float) for column in list(zip(*products))[2:])
    share = blocks / (numpy.ceil(blocks / sms) * sms)
    weight = (numpy.bincount(group)[group] >= MIN_GROUP).astype(float)
    steps = numpy.arange(0.5, 1.1, 0.002)
    combinations = [(fixed, filling, k) for fixed in FIXED for filling in FILLING for k in steps]

    def residuals(fixed, filling, k):
        rest = numpy.log(numpy.maximum(times - fixed, 1)) - numpy.log(blocks * (depth + filling))
        return rest + numpy.log(numpy.maximum(k * share + 1 - k, 1e-3))

    def losses(residual, counted):
        """Squared deviations of the residuals from their mean, by group."""
        total, first, second = (
            numpy.bincount(group, counted * part, len(numbers))
            for part in (1, residual, residual**2)
        )
        return second - first**2 / numpy.maximum(total, 1e-9)

    kept = weight
    for _ in range(3):
        by_group = numpy.array(
            [losses(residuals(*combination), kept) for combination in combinations]
        )
        best = combinations[int(by_group.sum(1).argmin())]
        residual = residuals(*best)
        means = numpy.bincount(group, kept * residual, len(numbers)) / numpy.maximum(
            numpy.bincount(group, kept, len(numbers)), 1e-9
        )
        distance = numpy.abs(residual - means[group])
        deviation = 1.4826 * numpy.median(distance[kept > 0])
        kept = weight * (distance < 3 * deviation)
    random = numpy.random.default_rng(seed)
    used = numpy.unique(group[kept > 0])
    draws = random.multinomial(len(used), numpy.full(len(used), 1 / len(used)), 500)
    found = [combinations[row][2] for row in (by_group[:, used] @ draws.T).argmin(0)]
    low, high = numpy.percentile(found, (2.5, 97.5))
    return best[2], low, high, deviation, int(kept[share < 0.98].sum()), len(used)


def fit_k(options):
    try:
        import numpy
    except ImportError:
        sys.exit("error: NumPy is missing: use the Python of .venv")
    print(
        "| device | SMs | k | 95 % | ragged products | kernels at a number of waves | error of a time |\n|"
        + "---|" * 7
    )
    products = recorded_products(os.path.join(options.data, "gemm_latency_train.csv.gz"))
    for device in sorted(products):
        sms = CARDS[device][0]
        k, low, high, deviation, ragged, groups = k_of(products[device], sms, options.seed, numpy)
        print(
            f"| {device} | {sms} | {k:.3f} | {low:.3f} to {high:.3f} | {ragged:,} | {groups} | {100 * deviation:.1f} % |",
            flush=True,
        )


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=("regret", "joint", "k"))
    parser.add_argument("--bin-dir", default=workloads.BIN)
    parser.add_argument("--workloads", default=",".join(WORKLOADS))
    parser.add_argument("--devices", default="v100,t4")
    parser.add_argument("--trials", type=int, default=1000)
    parser.add_argument("--joint-trials", type=int, help="of the joint search; by default --trials")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=1, help="searches side by side")
    parser.add_argument(
        "--data", metavar="FOLDER", help="of k: folder of gemm_latency_train.csv.gz"
    )
    options = parser.parse_args()
    if options.what == "k" and not options.data:
        parser.error("k needs --data")
    {"regret": regret, "joint": joint, "k": fit_k}[options.what](options)


if __name__ == "__main__":
    main()
