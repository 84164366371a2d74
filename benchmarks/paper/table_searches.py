"""Tables of tables.py for the search: tuning time, SIA against throughput, batches and lengths of sentences.

Each function takes a Context and returns a section of the page. Columns `paper …` are published numbers,
`predicted …` ours.
"""

import json
import statistics

from table_tools import (
    COLOURS,
    LENGTHS,
    SEARCHES,
    K,
    N,
    eight,
    percent,
    published,
    source_line,
    spearman,
    table,
)

#: Numbers of shapes, of the 128 that the paper has.
COUNTS = (1, 2, 4, 8, 16, 32, 64, 128)
REPEATS = 3
#: Programs that a ranking may have: all of them.
ALL = 1_000_000
MAX_KERNELS = (2, 4, 16)
DATASETS = ("cola", "mnli", "wnli", "sst2", "mrpc", "qqp", "rte", "stsb")
BATCHES = (1, 2, 4, 8, 16, 32, 64, 128)


def tuned(context, paths, arguments):
    """Seconds and peak MiB from .mlir to PTX for modules one after the other: medians of REPEATS runs."""
    runs = []
    for _ in range(1 if context.lengths else REPEATS):
        wall = search = ptx = peak = 0.0
        for path in paths:
            command = context.command(path, "v100", "--ftuner-to-manifest", "--timing", *arguments)
            seconds, mebibytes, out = context.timed(command)
            reported = json.loads(out)["seconds"]
            wall, search, ptx = (
                wall + seconds,
                search + reported["compilation"],
                ptx + reported["ptx"],
            )
            peak = max(peak, mebibytes)
        runs.append((wall, search, ptx, peak))
    return [statistics.median(column) for column in zip(*runs)]


def tuning(context):
    lengths = context.lengths or LENGTHS
    modules = {
        "dense": [context.dense(16, *part) for part in eight(lengths)],
        "batchmatmul": [context.batch_matmul("scores NT", *part) for part in eight(lengths)],
    }
    seconds = {
        (row["workload"], row["system"]): row["seconds"] for row in published("compile_time.csv")
    }
    systems = ("ansor", "haotuner", "roller", "ftuner")
    first = []
    for workload, paths in modules.items():
        for search in ("default", "near the paper"):
            context.say(f"  {workload}, {search}")
            wall, compiled, ptx, peak = tuned(context, paths, SEARCHES[search])
            first.append(
                [
                    workload,
                    search,
                    *(seconds[workload, system] for system in systems),
                    f"{wall:.2f}",
                    f"{compiled:.2f}",
                    f"{ptx:.2f}",
                    f"{peak:.0f}",
                ]
            )
    by_count = {int(row["num_shapes"]): row for row in published("compile_time_by_shapes.csv")}
    second, ours = [], {}
    for count in COUNTS if not context.lengths else COUNTS[:2]:
        row, cells = by_count[count], []
        for search in ("default", "near the paper"):
            context.say(f"  {count} shapes, {search}")
            wall, _, _, peak = tuned(context, [context.dense(16, 1, count)], SEARCHES[search])
            ours.setdefault(search, {})[count] = wall
            cells += [f"{wall:.2f}", f"{peak:.0f}"]
        second.append(
            [count, *(row[f"{system}_s"] for system in ("haotuner", "roller", "ftuner")), *cells]
        )
    text = [
        "The paper's seconds are mostly those of measuring programs on the device. Ours are those of a search that "
        "measures nothing, and of generating PTX. **So they compare different work.** What they say: without a "
        "device a plan takes this long. Wall time and peak memory of the whole process, medians of "
        f"{REPEATS} runs, on a machine with two cores and other load.",
        "",
        "Eight shapes, V100. Two modules stand for the eight lengths, one for 5 to 119 and one for 128; "
        f"seconds are sums, memory is the greater. {source_line('compile_time.csv', ['workload'], 'system')}",
        "",
        table(
            [
                "workload",
                "search",
                *(f"paper {system} `seconds`" for system in systems),
                "ours, s",
                "of them plan and lowering",
                "of them PTX",
                "peak MiB",
            ],
            first,
        ),
        "",
        "Dense on V100 by number of shapes; ours are the first ones, M = 16, 32, …. "
        f"{source_line('compile_time_by_shapes.csv', ['num_shapes'])}",
        "",
        table(
            [
                "num_shapes",
                *(f"paper `{system}_s`" for system in ("haotuner", "roller", "ftuner")),
                "ours, default, s",
                "peak MiB",
                "ours, near the paper, s",
                "peak MiB",
            ],
            second,
        ),
    ]
    if context.pyplot:
        draw_tuning(context, by_count, ours)
        text += ["", "![Seconds of tuning by the number of shapes](figures/paper-tuning.svg)"]
    return "\n".join(text)


def draw_tuning(context, by_count, ours):
    figure, axis = context.pyplot.subplots(figsize=(6, 3.4), layout="constrained")
    for system, label in (("haotuner", "HAOTuner"), ("roller", "Roller"), ("ftuner", "FTuner")):
        axis.plot(
            list(by_count),
            [float(row[f"{system}_s"]) for row in by_count.values()],
            color=COLOURS[system],
            linewidth=0.8,
            label=f"paper: {label}, mostly measuring",
        )
    for search, times in ours.items():
        axis.plot(
            list(times),
            list(times.values()),
            "o-",
            color=COLOURS[search],
            markersize=3,
            linewidth=1.8,
            label=f"ours: {search}, nothing is measured",
        )
    axis.set_yscale("log")
    axis.set_xlabel("shapes of Dense, V100")
    axis.set_ylabel("seconds")
    axis.grid(alpha=0.3)
    axis.legend(fontsize=7, frameon=False)
    context.save(figure, "paper-tuning.svg")


def pool_figures(scores, speeds):
    """(programs, Spearman, mean of the tied best scores, best of the first ten) of a pool; shares of the best speed.

    Programs with equal scores keep their order.
    """
    best = max(speeds)
    tied = [speed for score, speed in zip(scores, speeds) if score == max(scores)]
    order = sorted(range(len(scores)), key=lambda index: -scores[index])
    return (
        len(scores),
        spearman(scores, speeds),
        statistics.fmean(tied) / best,
        max(speeds[index] for index in order[:10]) / best,
    )


def our_pool(context, search, lengths):
    """From T to (scores by SIA, predicted TFLOP/s) of the programs that a search ranks for Dense on V100."""
    arguments = [
        *SEARCHES[search],
        *([] if search == "near the paper" else ["--cost-model=sia"]),
        f"--top-k={ALL}",
    ]
    pools = {}
    # Tiles are divisors of the range's sizes: 128, too, is in a range of seven.
    for part in [(14, 128, 19) if part == (128, 128, 1) else part for part in eight(lengths)]:
        _, _, out = context.timed(
            context.command(context.dense(16, *part), "v100", "--ftuner-to-manifest", *arguments)
        )
        for ranking in json.loads(out)["workloads"][0]["rankings"]:
            rows = ranking["shape"][0]
            programs = [program for program in ranking["programs"] if program["predicted_us"]]
            if rows // 16 not in lengths:
                continue
            pools[rows // 16] = (
                [program["score"] for program in programs],
                [2 * rows * N * K / program["predicted_us"] / 1e6 for program in programs],
            )
    return pools


def sia(context):
    lengths = context.lengths or LENGTHS
    paper = {}
    for row in published("sia_vs_gflops.csv"):
        scores, speeds = paper.setdefault(int(row["T"]), ([], []))
        scores.append(float(row["sia"]))
        speeds.append(float(row["gflops"]) / 1e3)
    pools = {"paper": {t: paper[t] for t in lengths}}
    for search in ("near the paper", "default"):
        context.say(f"  {search}")
        pools[search] = our_pool(context, search, lengths)
    figures = {name: {t: pool_figures(*pool[t]) for t in lengths} for name, pool in pools.items()}
    lines = []
    for t in lengths:
        lines.append(
            [t]
            + [
                cell
                for name in figures
                for cell in (
                    figures[name][t][0],
                    f"{figures[name][t][1]:.2f}",
                    percent(figures[name][t][2]),
                    percent(figures[name][t][3]),
                )
            ]
        )
    labels = {
        "paper": "paper",
        "near the paper": "near the paper",
        "default": "default, ranked by SIA",
    }
    header = ["T"] + [
        f"{labels[name]}: {what}"
        for name in figures
        for what in ("programs", "Spearman", "best score", "best of ten")
    ]
    low, high = (pick(row[1] for row in figures["paper"].values()) for pick in (min, max))
    text = [
        "Dense on V100, M = 16·T. *Spearman* is the rank correlation of SIA and throughput over the programs of a "
        "shape, *best score* the mean throughput of the programs with the greatest SIA, *best of ten* that of the "
        "fastest of the ten with the greatest SIA, both as a share of the fastest program of the pool. The paper's "
        "throughput is measured, and its SIA has two decimals "
        "([sia_vs_gflops.csv](../benchmarks/paper/data/sia_vs_gflops.csv)). **Ours is predicted by the cost model "
        "`latency`**: our columns say how far SIA agrees with that model, not with a "
        "GPU.",
        "",
        table(header, lines),
        "",
        f"In the paper's pools Spearman's correlation is {low:.2f} to {high:.2f}, in ours near the paper "
        + "{:.2f} to {:.2f}.".format(
            *(pick(row[1] for row in figures["near the paper"].values()) for pick in (min, max))
        )
        + " The paper says that SIA's choice is within 10 % of the best measured program. In its own numbers the "
        "best "
        f"score is, at {sum(row[2] >= 0.9 for row in figures['paper'].values())} of {len(lengths)} values of T, "
        f"and "
        f"the best of ten at {sum(row[3] >= 0.9 for row in figures['paper'].values())}; in ours near the paper at "
        f"{sum(row[2] >= 0.9 for row in figures['near the paper'].values())} and at "
        f"{sum(row[3] >= 0.9 for row in figures['near the paper'].values())}.",
        "",
        "Equation 1 leaves its parts open, and the scales differ: the published scores go from {:.2f} to {:.2f}, "
        "ours near "
        "the paper from {:.2f} to {:.2f}.".format(
            *(
                pick(score for scores, _ in pools[name].values() for score in scores)
                for name in ("paper", "near the paper")
                for pick in (min, max)
            )
        ),
    ]
    if context.pyplot:
        draw_sia(context, pools, [t for t in (5, 43, 81, 128) if t in lengths])
        text += ["", "![Throughput over SIA](figures/paper-sia.svg)"]
    return "\n".join(text)


def draw_sia(context, pools, lengths):
    figure, axes = context.pyplot.subplots(
        2, len(lengths), figsize=(2.6 * len(lengths), 4.6), squeeze=False, layout="constrained"
    )
    for column, t in enumerate(lengths):
        for axis, name, what in (
            (axes[0][column], "paper", "paper, measured"),
            (axes[1][column], "near the paper", "ours near the paper, predicted"),
        ):
            scores, speeds = pools[name][t]
            axis.scatter(
                scores,
                speeds,
                s=3,
                color=COLOURS["ftuner" if name == "paper" else name],
                linewidths=0,
                rasterized=True,
            )
            axis.set_title(f"T = {t}: {what}", fontsize=7)
            axis.grid(alpha=0.3)
    for axis in axes[:, 0]:
        axis.set_ylabel("TFLOP/s")
    for axis in axes[1]:
        axis.set_xlabel("SIA")
    context.save(figure, "paper-sia.svg")


def lengths_of(dataset):
    """From length to share of sentences, of those with a length above 0; shares add up to 1."""
    shares = {int(row["length"]): float(row[dataset]) for row in published("glue_lengths.csv")}
    shares = {length: share for length, share in shares.items() if length and share}
    total = sum(shares.values())
    return {length: share / total for length, share in shares.items()}


def longest_of(shares, batch):
    """From length to the probability that it is that of the longest of `batch` sentences."""
    result, below = {}, 0.0
    for length, share in shares.items():
        upto = min(below + share, 1.0)
        result[length] = upto**batch - below**batch
        below = upto
    return result


def padded_batches(context):
    """Figure 1(b): what padding sentences to the longest of a batch costs."""
    shapes = context.explain(context.batch_matmul("scores NT", 1, 127), "v100")
    times = {shape["shape"][0]: shape["program"]["predicted_us"] for shape in shapes}
    paper = {
        (row["dataset"], int(row["batch"])): row["value"]
        for row in published("padding_vs_batch.csv")
    }
    first = []
    for dataset in DATASETS:
        shares = lengths_of(dataset)
        useful = sum(share * length**2 for length, share in shares.items())
        longest = {batch: longest_of(shares, batch) for batch in BATCHES}
        cost = {
            batch: sum(share * times[length] for length, share in longest[batch].items())
            for batch in BATCHES
        }
        padded = {
            batch: max(
                1 - useful / sum(share * length**2 for length, share in longest[batch].items()), 0.0
            )
            for batch in BATCHES
        }
        first += [
            [
                dataset,
                batch,
                paper[dataset, batch],
                f"{float(paper[dataset, batch]) / float(paper[dataset, 1]):.2f}",
                f"{cost[batch] / cost[1]:.2f}",
                percent(padded[batch]),
            ]
            for batch in BATCHES
        ]
    text = [
        "Figure 1(b). The paper's values have no unit. They grow far less than the batch does, so they are read "
        "as a cost for each "
        "sentence. Ours is the predicted time of 192 products [L, 64] × [L, 64] transposed on V100, where L is the "
        "length of the longest of so many sentences, drawn by the published lengths "
        "([glue_lengths.csv](../benchmarks/paper/data/glue_lengths.csv)), mean over the draws. Both are shown over "
        "those of a batch of one. *Padded* is the share of such products' points that pad a sentence to the "
        "longest; "
        "it is lost to any kernel, and a kernel for each length avoids it only if sentences of one length are "
        "batched.",
        "",
        source_line("padding_vs_batch.csv", ["dataset", "batch"]),
        "",
        table(
            [
                "dataset",
                "batch",
                "paper `value`",
                "over a batch of one",
                "predicted time over a batch of one",
                "padded",
            ],
            first,
        ),
    ]
    return "\n".join(text)


def sentence_lengths(context):
    """What a plan gains from knowing how long sentences are."""
    datasets = DATASETS if not context.lengths else DATASETS[:1]
    makers = {
        "Dense, M = L": (1, lambda weights: context.dense(1, 1, 127, weights=weights)),
        "Dense, M = 16·L": (16, lambda weights: context.dense(16, 1, 127, weights=weights)),
        "scores NT of BatchMatmul": (
            1,
            lambda weights: context.batch_matmul("scores NT", 1, 127, weights=weights),
        ),
    }
    distributions = {None: None, **{dataset: lengths_of(dataset) for dataset in datasets}}
    jobs = [
        (label, kernels, dataset)
        for label in makers
        for kernels in MAX_KERNELS
        for dataset in distributions
    ]

    def run(job):
        label, kernels, dataset = job
        factor, make = makers[label]
        context.say(f"  {label}, {kernels} kernels, {dataset or 'uniform'}")
        shapes = context.explain(
            make(distributions[dataset]), "v100", (f"--max-kernels={kernels}",)
        )
        return {shape["shape"][0] // factor: shape["program"]["predicted_us"] for shape in shapes}

    times = dict(zip(jobs, context.map(run, jobs)))

    def mean(label, kernels, plan, dataset):
        return sum(
            share * times[label, kernels, plan][length]
            for length, share in distributions[dataset].items()
        )

    text = [
        "A range of a symbol may have `weights` ([range](reference/ukernel.md#rangeattr)), here the published "
        "lengths "
        "of sentences, 1 to 127 ([glue_lengths.csv](../benchmarks/paper/data/glue_lengths.csv)). The table has the "
        "weighted mean of predicted times on V100 of the plan that does not know them (all lengths weigh the "
        "same) over "
        "that of the plan that does, less 1, for plans of at most 2, 4 and 16 kernels. The paper has no numbers "
        "for this.",
        "",
    ]
    lines, gains = [], {kernels: [] for kernels in MAX_KERNELS}
    for dataset in datasets:
        cells = [
            dataset,
            f"{sum(length * share for length, share in distributions[dataset].items()):.1f}",
        ]
        for label in makers:
            for kernels in MAX_KERNELS:
                gain = (
                    mean(label, kernels, None, dataset) / mean(label, kernels, dataset, dataset) - 1
                )
                gains[kernels].append(gain)
                cells.append(f"{100 * gain + 0.0:.1f}".replace("-0.0", "0.0"))
        lines.append(cells)
    text += [
        table(
            [
                "dataset",
                "mean length",
                *(f"{label}: {kernels} kernels, %" for label in makers for kernels in MAX_KERNELS),
            ],
            lines,
        ),
        "",
        "Mean over datasets and products, and the greatest: "
        + "; ".join(
            f"{kernels} kernels {percent(statistics.fmean(values), 1)}, {percent(max(values), 1)}"
            for kernels, values in gains.items()
        )
        + ".",
    ]
    every = [gain for values in gains.values() for gain in values]
    slower = [gain for gain in every if gain < -0.0005]
    if slower:
        text[-1] += (
            f" In {len(slower)} of {len(every)} cases the plan that knows the lengths is slower, by {percent(-min(slower), 1)} "
            "at most: kernels are added by what they lower the mean regret, one after the other, not by the "
            "mean time."
        )
    return "\n".join(text)
