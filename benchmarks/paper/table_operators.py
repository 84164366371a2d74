"""Tables of tables.py for the paper's operators: Dense, BatchMatmul, padding and traffic, SM utilisation.

Each function takes a Context and returns a section of the page. Columns `paper …` are published numbers,
`predicted …` ours.
"""

from table_tools import (
    COLOURS,
    LENGTHS,
    ROWS,
    SEARCHES,
    K,
    N,
    device_of,
    geometric_mean,
    listed,
    percent,
    published,
    roofline_us,
    source_line,
    table,
    traffic_us,
)

SYSTEMS = {"vendor": "cuBLAS", "roller": "Roller", "haotuner": "HAOTuner", "ftuner": "FTuner"}
DENSE_DEVICES = ("v100", "k80", "a100", "rtx4090")
BATCH_DEVICES = ("v100", "k80", "a100", "rtx3090", "rtx4090")
PRODUCTS = {
    "scores NT": "192 × [T, 64] × [T, 64] transposed",
    "scores NN": "192 × [T, 64] × [64, T]",
    "values NN": "192 × [T, T] × [T, 64]",
}
#: Searches of BatchMatmul, and what tables call them.
BATCH_SEARCHES = {
    "tiles": SEARCHES["default"],
    "none": [*SEARCHES["default"], "--batch-tiles=false"],
    "near": SEARCHES["near the paper"],
}
BATCH_LABELS = {"tiles": "ours", "none": "ours without batch tiles", "near": "ours near the paper"}


def ratios(times, baseline):
    """(geometric mean, share within 10 % of the baseline or below it, worst ratio, its T) of times over a baseline."""
    over = {t: times[t] / baseline[t] for t in times}
    worst = max(over, key=over.__getitem__)
    return (
        geometric_mean(over.values()),
        sum(r <= 1.1 for r in over.values()) / len(over),
        over[worst],
        worst,
    )


def measured(name, lengths=None):
    """Published milliseconds of Dense by system and T."""
    rows = [row for row in published(name) if not lengths or int(row["T"]) in lengths]
    return {
        system: {int(row["T"]): float(row[f"{system}_ms"]) for row in rows} for system in SYSTEMS
    }


def ratio_row(device, what, kind, times, paper):
    mean, close, worst, at = ratios(times, paper["vendor"])
    return [
        device,
        what,
        kind,
        f"{mean:.2f}",
        percent(close),
        f"{worst:.2f} (T = {at})",
        f"{geometric_mean([times[t] / paper['ftuner'][t] for t in times]):.2f}",
    ]


def dense_rows(context, device, per_length):
    """From search to T to predicted milliseconds; None for a search without a feasible uKernel."""
    found = {}
    for search in SEARCHES:
        shapes = context.dense_shapes(device, per_length, search, context.lengths)
        found[search] = shapes and {
            t: shape["program"]["predicted_us"] / 1e3 for t, shape in shapes.items()
        }
    return found


def dense(context):
    devices = DENSE_DEVICES if not context.lengths else ("v100",)
    jobs = [(device, factor) for device in devices for factor in ROWS.values()]

    def run(job):
        context.say(f"  {job[0]}, M = {job[1]}·T")
        return dense_rows(context, *job)

    predicted = dict(zip(jobs, context.map(run, jobs)))
    lengths = sorted(predicted["v100", 16]["default"])
    papers = {
        device: measured(f"dense_{device}.csv", lengths)
        for device in ("v100", "k80")
        if device in devices
    }
    text = [
        f"[M, {K}] × [{K}, {N}]. The published figures have M = 16·T, T = 1 to 128. No numbers of the A100 and "
        f"the RTX 4090 "
        "are in the authors' repository, and none for M = T, which is harder since there are few rows; "
        "for these there are predictions alone.",
        "",
    ]
    summary = []
    for device, paper in papers.items():
        summary += [
            ratio_row(device, SYSTEMS[system], "paper, measured", paper[system], paper)
            for system in ("ftuner", "haotuner", "roller")
        ]
        summary += [
            ratio_row(device, f"ours, {search}", "predicted", times, paper)
            for search, times in predicted[device, 16].items()
            if times
        ]
    text += [
        f"Times over cuBLAS's published time, {len(lengths)} values of T, M = 16·T:",
        "",
        table(
            [
                "device",
                "system",
                "kind",
                "geometric mean",
                "within 10 % of cuBLAS, or faster",
                "worst",
                "mean over the paper's FTuner",
            ],
            summary,
        ),
        "",
    ]
    for device, paper in papers.items():
        text += [
            worse_sentence(
                device,
                f"the search {search}" if search == "near the paper" else f"the {search}",
                times,
                paper["ftuner"],
            )
            for search, times in predicted[device, 16].items()
            if times and search != "roller"
        ] + [""]
    plans = context.published_plans("Gemm_16xTx768x2304", [t for t in LENGTHS if t in lengths])
    text += [
        plan_sentence(plans, papers["v100"]["ftuner"]),
        "",
        context.calibration_sentence(devices),
        "",
    ]
    for device in papers:
        text += dense_table(device, predicted[device, 16], plans if device == "v100" else None) + [
            ""
        ]
    text += [
        "Predictions alone, over the roofline of [explanations](explain.md#roofline) (each operand moved once):",
        "",
        table(
            [
                "device",
                "rows",
                "predicted default over roofline",
                "worst",
                "predicted near the paper over default",
                "worst",
                "predicted Roller over default",
                "worst",
            ],
            [row for job in jobs for row in [roofline_row(context, *job, predicted[job])]],
        ),
    ]
    write_dense(context, predicted, papers)
    if context.pyplot:
        draw_dense(context, predicted, papers)
        text += [
            "",
            "![Throughput of Dense by T](figures/paper-dense.svg)",
            "",
            "Throughput of Dense, M = 16·T: published measurements are thin, predictions are thick.",
        ]
    return "\n".join(text)


def worse_sentence(device, what, times, paper):
    """Where a prediction is above the published time of the paper's FTuner."""
    worse = [t for t in times if times[t] > paper[t]]
    if not worse:
        return f"On {device} no prediction of {what} is above the published time of the paper's FTuner."
    most = max(worse, key=lambda t: times[t] / paper[t])
    return (
        f"On {device} {what} is predicted slower than the paper's FTuner was measured at {len(worse)} of "
        f"{len(times)} values of T, at most {times[most] / paper[most]:.2f} times as long (T = {most})"
        + (f": T = {listed(worse)}." if len(worse) <= 16 else ".")
    )


def plan_sentence(plans, paper):
    """How the model predicts the authors' own kernels."""
    over = {t: ms / paper[t] for t, ms in plans.items()}
    low, high = min(over, key=over.__getitem__), max(over, key=over.__getitem__)
    return (
        "**How far the model is off here.** The authors published plans, for a device with 80 SMs "
        "([published_kernels.csv](../benchmarks/paper/published_kernels.csv)). As kernels of ours, with two "
        "stages, they are predicted "
        f"to take {geometric_mean(over.values()):.2f} of the published time of the paper's FTuner on v100 "
        f"(geometric mean of "
        f"{len(over)} values of T), {over[low]:.2f} (T = {low}) to {over[high]:.2f} (T = {high}). The published "
        f"times may be of other "
        "plans. Read ratios of predictions to published times with this one in mind; those between predictions do "
        "not have it."
    )


def dense_table(device, predicted, plans):
    name = f"dense_{device}.csv"
    rows = []
    for row in published(name):
        t = int(row["T"])
        if t in LENGTHS and t in predicted["default"]:
            rows.append(
                [
                    t,
                    *(row[f"{system}_ms"] for system in SYSTEMS),
                    *(f"{times[t]:.4f}" if times else "none" for times in predicted.values()),
                    *([f"{plans[t]:.4f}"] if plans else []),
                ]
            )
    header = [
        "T",
        *(f"paper `{system}_ms`" for system in SYSTEMS),
        *(f"predicted {search}, ms" for search in predicted),
        *(["predicted published plan, ms"] if plans else []),
    ]
    return [f"{device}, M = 16·T. {source_line(name, ['T'])}", "", table(header, rows)]


def roofline_row(context, device, factor, predicted):
    shapes = context.dense_shapes(device, factor, "default", context.lengths)
    roof = {t: shape["roofline_us"] / 1e3 for t, shape in shapes.items()}
    cells = [device, f"M = {factor}·T" if factor > 1 else "M = T"]
    for times, base in (
        (predicted["default"], roof),
        (predicted["near the paper"], predicted["default"]),
        (predicted["roller"], predicted["default"]),
    ):
        if times:
            mean, _, worst, at = ratios(times, base)
            cells += [f"{mean:.2f}", f"{worst:.2f} (T = {at})"]
        else:
            cells += ["no feasible uKernel", ""]
    return cells


def write_dense(context, predicted, papers):
    rows = []
    for (device, factor), searches in predicted.items():
        paper = papers.get(device) if factor == 16 else None
        for t in searches["default"]:
            rows.append(
                [
                    device,
                    factor * t,
                    t,
                    *(paper[system][t] if paper else "" for system in SYSTEMS),
                    *(f"{times[t]:.6g}" if times else "" for times in searches.values()),
                ]
            )
    context.write_csv(
        "dense.csv",
        [
            "device",
            "M",
            "T",
            *(f"paper_{system}_ms" for system in SYSTEMS),
            *(f"predicted_{search.replace(' ', '_')}_ms" for search in SEARCHES),
        ],
        rows,
    )


def draw_dense(context, predicted, papers):
    devices = [device for device, factor in predicted if factor == 16]
    figure, axes = context.pyplot.subplots(
        2, -(-len(devices) // 2), figsize=(10.4, 6), squeeze=False, layout="constrained"
    )
    for axis, device in zip(axes.flat, devices):
        for system, times in papers.get(device, {}).items():
            axis.plot(
                list(times),
                [speed(t, ms) for t, ms in times.items()],
                color=COLOURS[system],
                linewidth=0.8,
                label=f"paper: {SYSTEMS[system]}, measured",
            )
        for search, times in predicted[device, 16].items():
            if times:
                axis.plot(
                    list(times),
                    [speed(t, ms) for t, ms in times.items()],
                    color=COLOURS[search],
                    linewidth=1.8,
                    linestyle=":" if search == "roller" else "-",
                    label=f"ours: {search}, predicted",
                )
        axis.set_title(
            f"{device}, M = 16·T" + ("" if device in papers else " (predictions alone)"), fontsize=9
        )
        axis.set_xlabel("T")
        axis.grid(alpha=0.3)
    for axis in axes[:, 0]:
        axis.set_ylabel("TFLOP/s")
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=4, fontsize=8, frameon=False)
    context.save(figure, "paper-dense.svg")


def speed(t, milliseconds):
    """TFLOP/s of Dense with M = 16·T."""
    return 2 * 16 * t * N * K / milliseconds / 1e9


def batch_times(context, device, product):
    """For each T the explained programs with and without batch tiles, and predicted milliseconds by two models."""
    lengths = context.lengths or LENGTHS
    figures = device_of(device)
    result: dict = {}
    for name, arguments in BATCH_SEARCHES.items():
        for t, shape in context.batch_shapes(device, product, arguments, lengths).items():
            program = shape["program"]
            tile = max(ukernel["block_tile"][3] for ukernel in program["ukernels"])
            result.setdefault(t, {})[name] = (
                program["predicted_us"] / 1e3,
                roofline_us(figures, program, shape["shape"]) / 1e3,
                tile,
                program,
            )
    return result


def batch_matmul(context):
    devices = BATCH_DEVICES if not context.lengths else ("v100",)
    jobs = [(device, product) for device in devices for product in PRODUCTS]

    def run(job):
        context.say(f"  {job[0]}, {job[1]}")
        return batch_times(context, *job)

    found = dict(zip(jobs, context.map(run, jobs)))
    rows = published("batch_matmul.csv")
    text = [
        "192 products, f32, at the eight lengths of the paper. The published numbers are of "
        f"{PRODUCTS['scores NT']} (*scores NT*); they have no A100. Ours are plans for 5 to 119 and one for 128. "
        f"*latency* is our cost model, which also chose the "
        "programs of the default. *roofline* is another model, which shares no constant with it: a roofline for "
        "each wave of "
        "blocks, by the data sheet alone, without a launch, caches or latencies (`roofline_us` in "
        "[judges.py](../python/ftuner/study/judges.py)). It is a check of the trend, not a better "
        "prediction.",
        "",
        batch_summary(found, rows),
        "",
    ]
    plans = context.published_plans("batch_matmul_nt_192xTx64xT", context.lengths or LENGTHS)
    text += [
        "\n".join(batch_worse(found, rows)),
        "",
        plan_sentence(plans, batch_paper(rows, "v100", "ftuner", plans)),
        "",
        warm_sentence(rows, found),
        "",
        context.calibration_sentence(devices),
        "",
        f"Scores NT. {source_line('batch_matmul.csv', ['device', 'T'])} Ours are predicted milliseconds.",
        "",
        batch_details(found, rows, plans),
        "",
        "What tiles of the batch save, predicted time without them over that with them (`--batch-tiles=false`), "
        "geometric mean over the lengths, the least and the greatest. Below 1 the plan with them is "
        "slower:",
        "",
        batch_gains(found),
        "",
        gains_sentence(found),
    ]
    write_batch(context, found, rows)
    if context.pyplot:
        draw_batch(context, found, rows)
        text += [
            "",
            "![BatchMatmul by T](figures/paper-batch-matmul.svg)",
            "",
            "Time over cuBLAS's published time: published measurements are thin, predictions are thick.",
        ]
    return "\n".join(text)


def batch_paper(rows, device, system, lengths):
    return {
        int(row["T"]): float(row[f"{system}_ms"])
        for row in rows
        if row["device"] == device and int(row["T"]) in lengths
    }


def batch_ours(found, device):
    """From a label to predicted milliseconds by T."""
    times = found[device, "scores NT"]
    return {
        f"{label}, {model}": {t: times[t][name][index] for t in sorted(times)}
        for index, model in enumerate(("latency", "roofline"))
        for name, label in BATCH_LABELS.items()
    }


def batch_summary(found, rows):
    summary = []
    for device in dict.fromkeys(device for device, _ in found):
        ours = batch_ours(found, device)
        paper = {
            system: batch_paper(rows, device, system, found[device, "scores NT"])
            for system in SYSTEMS
        }
        if not paper["vendor"]:
            continue
        for system in ("ftuner", "haotuner", "roller"):
            summary.append(
                ratio_row(device, SYSTEMS[system], "paper, measured", paper[system], paper)
            )
        summary += [
            ratio_row(device, label, "predicted", times, paper) for label, times in ours.items()
        ]
    return table(
        [
            "device",
            "system",
            "kind",
            "geometric mean over cuBLAS",
            "within 10 % of cuBLAS, or faster",
            "worst",
            "mean over the paper's FTuner",
        ],
        summary,
    )


def batch_worse(found, rows):
    sentences = []
    for device in dict.fromkeys(device for device, _ in found):
        paper = batch_paper(rows, device, "ftuner", found[device, "scores NT"])
        if paper:
            for label, what in (
                ("ours", "the default"),
                ("ours near the paper", "the search near the paper"),
            ):
                sentences.append(
                    worse_sentence(
                        device, what, batch_ours(found, device)[f"{label}, latency"], paper
                    )
                )
    sentences += ["", near_sentence(found)]
    return sentences


def near_sentence(found):
    """What the search near the paper runs where it is slowest beside the default."""
    times = found["v100", "scores NT"]
    worst = max(times, key=lambda t: times[t]["near"][0] / times[t]["tiles"][0])
    program = times[worst]["near"][3]
    m, n, _, batch = program["ukernels"][0]["block_tile"]
    rm, rn = program["ukernels"][0]["register_tile"][:2]
    return (
        f"Beside the default, the search near the paper is slowest on v100 at T = {worst}. It takes blocks of "
        f"{batch} × {m} × {n} (batch, m, n) with {rm} × {rn} elements a thread and {program['ukernels'][0]['workers']} "
        f"threads: Pad {program['metrics']['pad']:.2f}, Occ {program['metrics']['occ']:.2f} and CMR "
        f"{program['metrics']['cmr']:.2f} (equations 2, 3 and 6), {times[worst]['near'][0] / times[worst]['tiles'][0]:.1f} "
        "times the default's predicted time."
    )


def warm_sentence(rows, found):
    """Published times that device memory does not allow, by the data sheet."""
    parts = []
    for device in dict.fromkeys(device for device, _ in found):
        paper = batch_paper(rows, device, "ftuner", found[device, "scores NT"])
        rate = 1e6 * device_of(device)["dram_gbps"]  # bytes for each millisecond
        below = [t for t, ms in paper.items() if 4 * 192 * (2 * t * 64 + t * t) / rate > ms]
        if below:
            parts.append(f"{device} at T = {listed(below)}")
    if not parts:
        return "No published time of FTuner is below that of moving each operand once at the data sheet's bandwidth."
    return (
        "Published times of FTuner are below that of moving each operand once at the data sheet's bandwidth on "
        + "; ".join(parts)
        + ". So there the operands came from caches, or the result had not left them, "
        "whereas our predictions "
        "have both in device memory."
    )


def batch_details(found, rows, plans):
    lines = []
    for row in rows:
        t, times = int(row["T"]), found.get((row["device"], "scores NT"), {})
        if t in times:
            lines.append(
                [
                    row["device"],
                    t,
                    *(row[f"{system}_ms"] for system in SYSTEMS),
                    *(
                        f"{times[t][name][index]:.4f}"
                        for index in (0, 1)
                        for name in BATCH_SEARCHES
                    ),
                    times[t]["tiles"][2],
                    f"{plans[t]:.4f}" if row["device"] == "v100" else "",
                ]
            )
    return table(
        [
            "device",
            "T",
            *(f"paper `{system}_ms`" for system in SYSTEMS),
            *(
                f"{model}{label}"
                for model in ("latency", "roofline")
                for label in ("", ", no batch tiles", ", near the paper")
            ),
            "batch tile",
            "latency, published plan",
        ],
        lines,
    )


def batch_gains(found):
    lines = []
    for (device, product), times in found.items():
        cells = [device, f"{product}: {PRODUCTS[product]}"]
        for model in (0, 1):
            gain = {t: times[t]["none"][model] / times[t]["tiles"][model] for t in times}
            least, most = min(gain, key=gain.__getitem__), max(gain, key=gain.__getitem__)
            cells += [
                f"{geometric_mean(gain.values()):.3f}",
                f"{gain[least]:.2f} (T = {least})",
                f"{gain[most]:.2f} (T = {most})",
            ]
        tiled = [t for t in times if times[t]["tiles"][2] > 1]
        lines.append([*cells, listed(tiled) if tiled else "none"])
    return table(
        [
            "device",
            "product",
            "latency, mean",
            "least",
            "most",
            "roofline, mean",
            "least",
            "most",
            "T with a batch tile above 1",
        ],
        lines,
    )


def gains_sentence(found):
    """Where the two models agree that tiles of the batch pay."""
    tiled = [time for times in found.values() for time in times.values() if time["tiles"][2] > 1]
    if not tiled:
        return "No program has a tile of the batch."
    gains = [[time["none"][model] / time["tiles"][model] for time in tiled] for model in (0, 1)]
    agree = sum(gain > 1 for gain in gains[1])
    worse = [
        f"{device}, {product}, T = {t}"
        for (device, product), times in found.items()
        for t, time in times.items()
        if time["none"][0] < 0.98 * time["tiles"][0]
    ]
    text = (
        f"{len(tiled)} of {sum(map(len, found.values()))} programs have a tile of the batch above 1. Over these "
        f"alone the "
        f"gain is {geometric_mean(gains[0]):.3f} by latency and {geometric_mean(gains[1]):.3f} by the roofline, "
        f"which sees a gain "
        f"in {agree} of them. The roofline knows nothing that a larger block saves (starts of blocks, loads of "
        f"little "
        "width), only that fewer blocks fill SMs less evenly."
    )
    if not agree:
        text += " So the gain of tiles of the batch rests on our model alone."
    if worse:
        text += (
            " The lengths of a plan share its kernels, and with tiles of the batch others are chosen. By our "
            "own model the plan "
            "with them is over 2 % slower at: " + "; ".join(worse) + "."
        )
    return text


def write_batch(context, found, rows):
    paper = {(row["device"], int(row["T"])): row for row in rows}
    lines = []
    for (device, product), times in found.items():
        for t in sorted(times):
            row = paper.get((device, t)) if product == "scores NT" else None
            lines.append(
                [
                    device,
                    product,
                    t,
                    *(row[f"{system}_ms"] if row else "" for system in SYSTEMS),
                    *(
                        f"{times[t][name][index]:.6g}"
                        for index in (0, 1)
                        for name in BATCH_SEARCHES
                    ),
                    times[t]["tiles"][2],
                ]
            )
    context.write_csv(
        "batch_matmul.csv",
        [
            "device",
            "product",
            "T",
            *(f"paper_{system}_ms" for system in SYSTEMS),
            *(
                f"predicted_{model}{label}_ms"
                for model in ("latency", "roofline")
                for label in ("", "_no_batch_tiles", "_near_the_paper")
            ),
            "batch_tile",
        ],
        lines,
    )


def draw_batch(context, found, rows):
    devices = [
        device
        for device in dict.fromkeys(device for device, _ in found)
        if batch_paper(rows, device, "vendor", LENGTHS)
    ]
    figure, axes = context.pyplot.subplots(
        2, -(-len(devices) // 2), figsize=(10.4, 6), squeeze=False, layout="constrained"
    )
    for axis, device in zip(axes.flat, devices):
        vendor = batch_paper(rows, device, "vendor", found[device, "scores NT"])
        for system in ("ftuner", "haotuner", "roller"):
            times = batch_paper(rows, device, system, vendor)
            axis.plot(
                list(times),
                [ms / vendor[t] for t, ms in times.items()],
                color=COLOURS[system],
                linewidth=0.8,
                marker="o",
                markersize=2,
                label=f"paper: {SYSTEMS[system]}, measured",
            )
        ours = batch_ours(found, device)
        for label, colour in (
            ("ours near the paper, latency", COLOURS["near the paper"]),
            ("ours, latency", COLOURS["default"]),
            ("ours without batch tiles, latency", "#999999"),
            ("ours, roofline", COLOURS["default"]),
        ):
            times = ours[label]
            axis.plot(
                list(times),
                [ms / vendor[t] for t, ms in times.items()],
                color=colour,
                linewidth=1.8,
                linestyle=":" if "roofline" in label else "-",
                label=f"{label}, predicted",
            )
        axis.axhline(1, color="#000000", linewidth=0.8)
        axis.set_yscale("log", base=2)
        axis.set_title(device, fontsize=9)
        axis.set_xlabel("T")
        axis.grid(alpha=0.3)
    for axis in axes[:, 0]:
        axis.set_ylabel("time over cuBLAS's")
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=4, fontsize=8, frameon=False)
    context.save(figure, "paper-batch-matmul.svg")


def dense_programs(context):
    """From search to T to (program, extents) of Dense on V100, M = 16·T, planned for T = 1…128."""
    lengths = context.lengths or LENGTHS
    found = {}
    for search in SEARCHES:
        context.say(f"  v100, {search}")
        shapes = context.dense_shapes("v100", 16, search, context.lengths)
        found[search] = {t: (shapes[t]["program"], shapes[t]["shape"]) for t in lengths}
    return found


def padding(context):
    rows = published("padding.csv")
    programs = dense_programs(context)
    device = device_of("v100")
    lengths = context.lengths or LENGTHS
    cells = {(int(row["T"]), row["system"]): row for row in rows}
    share = {
        search: {t: 1 - program["metrics"]["pad"] for t, (program, _) in found.items()}
        for search, found in programs.items()
    }
    text = [
        "Dense on V100, M = 16·T. The paper's figure has padding as a part of the time of computing. Ours is the "
        "share of computed points that are padding, 1 − Pad, of the program that is chosen: a property of the "
        "program, not a measurement. The published numbers look derived rather than measured "
        "([README](../benchmarks/paper/data/README.md)).",
        "",
        source_line("padding.csv", ["T"], "system"),
        "",
        table(
            [
                "T",
                *(f"paper {system} `padding_over_compute`" for system in SYSTEMS),
                *(f"ours, {search}" for search in share),
            ],
            [
                [
                    t,
                    *(cells[t, system]["padding_over_compute"] for system in SYSTEMS),
                    *(f"{share[search][t]:.4f}" for search in share),
                ]
                for t in lengths
            ],
        ),
        "",
        padding_sentence(cells, share, lengths),
        "",
        "Traffic in microseconds. The paper: time of accesses to device memory, and between shared memory and "
        "registers. Ours: equation 7's bytes of the default program over the data sheet's bandwidths, as if both "
        "were used "
        "alone; caches are not in it.",
        "",
        source_line("padding.csv", ["T"], "system"),
        "",
    ]
    traffic = []
    for t in lengths:
        device_us, shared_us = traffic_us(device, *programs["default"][t])
        traffic.append(
            [
                t,
                *(cells[t, system]["global_access"] for system in SYSTEMS),
                f"{device_us:.1f}",
                *(cells[t, system]["smem_reg_access"] for system in SYSTEMS),
                f"{shared_us:.1f}",
            ]
        )
    text += [
        table(
            [
                "T",
                *(f"paper {system} `global_access`" for system in SYSTEMS),
                "predicted device memory",
                *(f"paper {system} `smem_reg_access`" for system in SYSTEMS),
                "predicted shared memory",
            ],
            traffic,
        )
    ]
    whole = measured("dense_v100.csv")["ftuner"]
    over = [t for t in lengths if float(cells[t, "ftuner"]["global_access"]) > 1e3 * whole[t]]
    text += [
        "",
        f"At {len(over)} of {len(lengths)} values of T, the published time of accesses to device memory of the paper's FTuner is "
        "above its published time of the whole product (the table of Dense), so the two cannot be compared by "
        "size.",
    ]
    return "\n".join(text)


def padding_sentence(cells, share, lengths):
    paper = [float(cells[t, "ftuner"]["padding_over_compute"]) for t in lengths]
    ours = list(share["default"].values())
    worse = [
        t
        for t in lengths
        if share["default"][t] > float(cells[t, "ftuner"]["padding_over_compute"])
    ]
    return (
        f"At most, padding is {percent(max(paper), 1)} of the paper's FTuner, {percent(max(ours), 1)} of our "
        f"default, "
        f"{percent(max(share['near the paper'].values()), 1)} near the paper and "
        f"{percent(max(share['roller'].values()), 1)} "
        "of our Roller. "
        + (
            f"The default pads more than the paper's FTuner at T = {listed(worse)}."
            if worse
            else "The default pads less than the paper's FTuner at each of these T."
        )
    )


def sm_use(context):
    """Table VI: SM utilisation."""
    programs = dense_programs(context)
    peak = device_of("v100")["fp32_tflops"]
    rows = [
        row
        for row in published("sm_utilization.csv")
        if int(row["T"]) in (context.lengths or LENGTHS)
    ]
    lines, worse = [], []
    for row in rows:
        t = int(row["T"])
        cells = [t, *(row[f"{system}_pct"] for system in SYSTEMS)]
        for search in ("default", "near the paper"):
            program, (m, n, k) = programs[search][t]
            busy = 100 * program["metrics"]["occ"]
            cells += [
                f"{busy:.1f}",
                f"{100 * 2 * m * n * k / program['predicted_us'] / 1e6 / peak:.1f}",
            ]
            if search == "default" and busy < float(row["ftuner_pct"]):
                worse.append(t)
        lines.append(cells)
    paper = [float(row["ftuner_pct"]) for row in rows]
    ours = [float(cells[len(SYSTEMS) + 1]) for cells in lines]
    sentence = (
        f"The mean of Occ is {sum(ours) / len(ours):.1f} % by default, that of the paper's FTuner is "
        f"{sum(paper) / len(paper):.1f} %. "
    )
    sentence += f"Occ of the default is below it at {f'T = {listed(worse)}' if worse else 'no T'}."
    return "\n".join(
        [
            "Table VI, Dense on V100, M = 16·T, in %. The paper does not say what its utilisation is. Occ is blocks over "
            "the "
            "blocks that full waves would have (equation 3). *Share of the peak* is the program's predicted throughput "
            "over "
            f"{peak} TFLOP/s. Neither is a counter of a GPU.",
            "",
            source_line("sm_utilization.csv", ["T"]),
            "",
            table(
                [
                    "T",
                    *(f"paper `{system}_pct`" for system in SYSTEMS),
                    "Occ, default",
                    "predicted share of the peak, default",
                    "Occ, near the paper",
                    "predicted share of the peak, near the paper",
                ],
                lines,
            ),
            "",
            sentence,
        ]
    )
