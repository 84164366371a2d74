#!/usr/bin/env python3
"""The scenarios of DietCode's and Gensor's papers: what one plan for many shapes costs, and what it gains.

Each search strategy plans the same sources, all of them in f32; docs/scenarios.md says what the papers report.

* architectures: one product of 2048 rows whose widths N and K are 768, 2304 or 3072. One plan for all nine shapes,
  and a plan for each.
* sequence: lengths of 1 to 128: Dense NT, BatchMatmul NT and NN, two layers of BERT-base at batch 16. One plan for the
  range, and a plan for each of eight lengths.
* bert_small: the same for BERT-small (4 layers, 512 channels) at batch 1.
* layers: BERT-base with 1, 2 and 12 layers: what further layers add to search and code.
* loop: BERT-small, batch 1 and length 128, is optimised, is called for some frames, has its channels changed, and so
  on: 512, 384 and 256 channels. The total of seconds to PTX and of predicted seconds of all frames.

Seconds are CPU seconds of the compiler on this machine, of planning alone but in `loop`, where they are from linalg to
PTX. Times of kernels are predictions, by two judges: the cost model `latency`, by which all searches here choose, and
a roofline with waves, which shares no constant with it (python/ftuner/study/judges.py); kernels of other operators than
products count by `latency` under both. Nothing runs on a GPU: whom the strategy `dietcode` has measure is a stand-in,
`--measurer`, and its seconds have no measurement of a device in them.

--write FILE.md writes the tables, --csv FILE.csv what they are made of; --figure FILE.svg draws seconds and times
(matplotlib). With --state FILE a run that was stopped goes on: remove it after a change of the compiler.
"""

import argparse
import csv
import dataclasses
import hashlib
import json
import math
import os
import pathlib
import re
import resource
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable

import reports
import workloads

ROOT = pathlib.Path(workloads.ROOT).resolve()
sys.path[:0] = [str(ROOT / "python"), str(ROOT / "benchmarks/gpu")]

from ftuner.describe import descriptions, work
from ftuner.study import judges, plans
from ftuner.study.comparison import LATENCY, ROOFLINE
from ftuner_bench.workloads import Workload

JUDGES = LATENCY, ROOFLINE
STRATEGIES = ("ftuner", "roller", "gensor", "dietcode")
COLOURS = dict(zip(STRATEGIES, ("#0072B2", "#009E73", "#D55E00", "#CC79A7")))
#: DietCode's sampled lengths, its hidden widths; rows of the product: batch 16, length 128.
LENGTHS, WIDTHS, ROWS = workloads.LENGTHS, (768, 2304, 3072), 2048
LAYERS = (1, 2, 12)
#: Channels and heads of BERT-small, and as it is changed.
CHANNELS = ((512, 8), (384, 6), (256, 4))
ONE, EACH = "one plan", "a plan for each"


@dataclasses.dataclass(frozen=True)
class Case:
    """A source for several shapes.

    text: the module for some ranges of its symbols, as MLIR. shapes: the sizes of the symbols. ranges: of the symbols
    in the module that serves all shapes.
    """

    scenario: str
    title: str
    text: Callable[[dict[str, str]], str]
    ranges: dict[str, str]
    shapes: list[dict[str, int]]

    def fixed(self, shape):
        """The module for one shape."""
        return self.text({name: f"{size} to {size}" for name, size in shape.items()})


def with_ranges(text, ranges):
    """The module with other ranges of its symbols."""
    for name, range_ in ranges.items():
        text, count = re.subn(
            rf"\b{name} = #ukernel\.range<[^>]*>", f"{name} = #ukernel.range<{range_}>", text
        )
        assert count == 1, name
    return text


def list_of(sizes):
    """The range in which only these sizes count; others weigh next to nothing."""
    weights = ", ".join(f"{size} : 1.0" for size in sizes)
    step = math.gcd(*(size - sizes[0] for size in sizes))
    return f"{sizes[0]} to {sizes[-1]} step {step} weights [{weights}]"


def architectures():
    product = workloads.models.Matmul(m=ROWS, n="N", k="K", name="dense")
    return [
        Case(
            "architectures",
            f"[{ROWS}, K] · [K, N]",
            lambda ranges: with_ranges(product.text(), ranges),
            {"N": list_of(WIDTHS), "K": list_of(WIDTHS)},
            [{"N": n, "K": k} for n in WIDTHS for k in WIDTHS],
        )
    ]


def bert(name, batch, longest=LENGTHS[-1], layers=None, small=False, **config):
    """A model of full_models.py as MLIR."""
    import full_models

    built = full_models.build(name, layers, small, **config)
    return full_models.export(built, batch, longest).text


def model_case(scenario, title, text):
    return Case(
        scenario,
        title,
        lambda ranges: with_ranges(text, ranges),
        {"T": f"1 to {LENGTHS[-1]}"},
        [{"T": length} for length in LENGTHS],
    )


def sequence(options):
    cases = []
    for form, factor, batch, n, k, title in (
        ("linear", 16, 1, 2304, 768, "Dense NT [16·T, 768] · [2304, 768]"),
        ("nt", 1, 192, 0, 64, "BatchMatmul NT [192, T, 64] · [192, T, 64]"),
        ("nn", 1, 192, 64, 0, "BatchMatmul NN [192, T, T] · [192, T, 64]"),
    ):
        product = Workload(form, title, form, factor, batch, n, k, LENGTHS[-1])
        text = product.mlir()
        declared = f"{factor} to {factor * LENGTHS[-1]} step {factor}"
        cases.append(
            Case(
                "sequence",
                title,
                lambda ranges, text=text: with_ranges(text, ranges),
                {"T": declared},
                [{"T": factor * length} for length in LENGTHS],
            )
        )
    if options.models:
        # Further layers have the same plans, as `layers` shows.
        count = options.layers or 2
        text = bert("bert_base", 16, layers=count, small=options.small)
        cases.append(model_case("sequence", f"BERT-base, batch 16, {count} layers", text))
    return cases


class Runs:
    """Runs of the compiler, kept in a file of JSON lines."""

    def __init__(self, options):
        self.options, self.state = options, plans.State(options.state)
        self.device_facts = {}

    def get(self, title, key, make):
        """Returns the result under a key, which is made now if it is not known."""
        key = hashlib.sha256(repr(key).encode()).hexdigest()
        found = self.state.find(key)
        if found is None:
            print(title, file=sys.stderr, flush=True)
            found = make()
            self.state.add(key, found)
        return found

    def facts(self, device):
        if device not in self.device_facts:
            self.device_facts[device] = descriptions.resolve(device).content()
        return self.device_facts[device]

    def own_options(self, strategy):
        own = {"strategy": strategy}
        if self.options.max_kernels:
            own["max-kernels"] = self.options.max_kernels
        if strategy == "dietcode":
            own |= {"measurer": self.options.measurer, "trials": self.options.trials}
        return own

    def tool(self, name, *arguments):
        """Its CPU seconds."""
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        done = subprocess.run(
            [os.path.join(self.options.bin_dir, name), *arguments], capture_output=True, text=True
        )
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        if done.returncode != 0:
            sys.exit(done.stderr)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    def plan(self, title, text, shapes, strategy, device, to_ptx=False):
        """The plan of a strategy for the shapes of a module.

        seconds: CPU seconds of planning, and with `to_ptx` from linalg to PTX; programs: how many were measured, by a
        stand-in; plans and kernels: how many; ptx_bytes, with `to_ptx`; times: by judge, µs of a call at each shape.
        """
        own = self.own_options(strategy)
        key = (
            text,
            shapes,
            sorted(own.items()),
            json.dumps(self.facts(device), sort_keys=True),
            to_ptx,
        )

        def make():
            with tempfile.TemporaryDirectory(prefix="ftuner-") as folder:
                source, planned, ptx, text_file, report = (
                    os.path.join(folder, name)
                    for name in ("m.mlir", "p.mlir", "m.ptx", "m.txt", "m.json")
                )
                pathlib.Path(source).write_text(text, encoding="utf-8")
                words = [f"{name}={value}" for name, value in own.items()]
                result = {
                    "seconds": self.tool(
                        "ftuner-opt",
                        source,
                        f"--ftuner-front-end={' '.join(['device=' + device, *words])}",
                        "-o",
                        planned,
                    )
                }
                if to_ptx:
                    # The plan is kept, and nothing is searched for again.
                    result["to_ptx"] = result["seconds"] + self.tool(
                        "ftuner-translate",
                        planned,
                        "--ftuner-to-ptx",
                        f"--device={device}",
                        "-o",
                        ptx,
                    )
                    result["ptx_bytes"] = os.path.getsize(ptx)
                    result["kernels"] = pathlib.Path(ptx).read_text().count(".entry ")
                sizes = [
                    f"--size={name}={size}" for shape in shapes for name, size in shape.items()
                ]
                self.tool(
                    "ftuner-translate",
                    planned,
                    "--ftuner-explain",
                    f"--device={device}",
                    *sizes,
                    "-o",
                    text_file,
                    f"--report={report}",
                )
                data = json.loads(pathlib.Path(report).read_text())
            return result | self.judged(data, self.facts(device))

        return self.get(f"{device}, {title}: {strategy}", key, make)

    @staticmethod
    def judged(data, facts):
        """Times of the function by judge, and how many plans and families it has."""
        found = {}
        for entry in data["workloads"]:
            found |= dict.fromkeys([entry["name"], *entry["equal_workloads"]], entry)
        function = data["functions"][0]["work"]
        times = {judge: [] for judge in JUDGES}
        for number, share in enumerate(function["shares"]):
            total = share["ukernel_us"] + share["fallback_us"]
            times[LATENCY].append(total)
            for item in function["workloads"]:
                entry = found[item["workload"]]
                shape = entry["shapes"][number]
                if judges.takes(shape["program"], entry["axes"]):
                    launches = work.evaluate(item["launches"], share["sizes"])
                    time_us = judges.roofline_us(facts, shape["program"], shape["shape"])
                    total += launches * time_us - item["predicted_us"][number]
            times[ROOFLINE].append(total)
        statistics = [entry["statistics"] for entry in data["workloads"]]
        return {
            "times": times,
            "plans": len(statistics),
            "products": sum("K" in item["axes"] for item in function["workloads"]),
            "families": sum(len(entry["families"]) for entry in data["workloads"]),
            "programs": sum(int(one.get("measured_programs", 0)) for one in statistics),
        }


def ratios(times):
    """By row: geometric mean over the shapes of its time over the least of all rows."""
    best = [min(column) for column in zip(*times.values())]
    return {
        name: math.exp(sum(math.log(t / best_time) for t, best_time in zip(row, best)) / len(best))
        for name, row in times.items()
    }


def one_or_each(case, options, runs):
    """Rows of a case: for each strategy one plan, and a plan for each shape."""
    rows, times = [], {judge: {} for judge in JUDGES}
    for strategy in options.strategies:
        device = options.devices[case.scenario]
        one = runs.plan(f"{case.title}, all", case.text(case.ranges), case.shapes, strategy, device)
        each = [
            runs.plan(f"{case.title}, {shape}", case.fixed(shape), [shape], strategy, device)
            for shape in case.shapes
        ]
        joined = {
            key: sum(plan[key] for plan in each) for key in ("seconds", "families", "programs")
        }
        joined["times"] = {judge: [plan["times"][judge][0] for plan in each] for judge in JUDGES}
        for kind, plan in ((ONE, one), (EACH, joined)):
            for judge in JUDGES:
                times[judge][strategy, kind] = plan["times"][judge]
            rows.append(
                {
                    "scenario": case.scenario,
                    "case": case.title,
                    "device": device,
                    "strategy": strategy,
                    "plans": kind,
                    "seconds": plan["seconds"],
                    "programs": plan["programs"],
                    "kernels": plan["families"],
                    **{f"{judge}_us": plan["times"][judge] for judge in JUDGES},
                }
            )
    for judge in JUDGES:
        found = ratios(times[judge])
        for row in rows:
            ratio = found[row["strategy"], row["plans"]]
            row[f"{judge}_ratio"] = ratio
            row[f"{judge}_rank"] = 1 + sum(other < ratio * (1 - 1e-9) for other in found.values())
    return rows


def layers(options, runs):
    """Rows of BERT-base with some layers: search, code and predicted time at the greatest length."""
    rows = []
    shape = [{"T": LENGTHS[-1]}]
    for count in options.depths:
        text = bert("bert_base", 16, layers=count, small=options.small)
        for strategy in options.strategies:
            plan = runs.plan(
                f"BERT-base, {count} layers", text, shape, strategy, options.devices["layers"], True
            )
            rows.append(
                {
                    "scenario": "layers",
                    "case": f"BERT-base, batch 16, {count} layers",
                    "device": options.devices["layers"],
                    "strategy": strategy,
                    "layers": count,
                    "products": plan["products"],
                    "plans": plan["plans"],
                    "seconds": plan["seconds"],
                    "to_ptx": plan["to_ptx"],
                    "kernels": plan["kernels"],
                    "ptx_bytes": plan["ptx_bytes"],
                    "programs": plan["programs"],
                    **{f"{judge}_us": plan["times"][judge] for judge in JUDGES},
                }
            )
    return rows


def loop(options, runs):
    """Rows of the loop: a strategy, with the sums over its three rounds."""
    rows = []
    shape, device = {"T": LENGTHS[-1]}, options.devices["loop"]
    texts = [
        with_ranges(
            bert(
                "bert_small",
                1,
                layers=options.layers,
                small=options.small,
                width=width,
                heads=heads,
            ),
            {"T": f"{shape['T']} to {shape['T']}"},
        )
        for width, heads in CHANNELS
    ]
    for strategy in options.strategies:
        rounds = [
            runs.plan(f"BERT-small, {width} channels", text, [shape], strategy, device, True)
            for text, (width, _) in zip(texts, CHANNELS)
        ]
        rows.append(
            {
                "scenario": "loop",
                "case": "BERT-small, batch 1, T = 128",
                "device": device,
                "strategy": strategy,
                "seconds": sum(plan["seconds"] for plan in rounds),
                "to_ptx": sum(plan["to_ptx"] for plan in rounds),
                "programs": sum(plan["programs"] for plan in rounds),
                "kernels": sum(plan["kernels"] for plan in rounds),
                **{f"{judge}_us": [plan["times"][judge][0] for plan in rounds] for judge in JUDGES},
            }
        )
    return rows


def total_seconds(row, judge, frames):
    """Optimising and all frames of the loop."""
    return row["to_ptx"] + frames * sum(row[f"{judge}_us"]) * 1e-6


def table(rows):
    header, *others = [f"| {' | '.join(map(str, row))} |" for row in rows]
    return "\n".join([header, "|" + "---|" * len(rows[0]), *others]) + "\n"


def mean_ratio(row, judge):
    return f"{row[f'{judge}_ratio']:.3f} ({row[f'{judge}_rank']})"


def tables(rows, options):
    """Markdown of all rows."""
    texts = []
    for name in dict.fromkeys(
        (row["scenario"], row["case"]) if "latency_ratio" in row else (row["scenario"], None)
        for row in rows
    ):
        scenario, case = name
        found = [row for row in rows if row["scenario"] == scenario and case in (None, row["case"])]
        device = found[0]["device"]
        if scenario == "layers":
            texts.append(f"**layers**: BERT-base, batch 16, T = 1 to {LENGTHS[-1]}, {device}\n")
            texts.append(
                table(
                    [
                        [
                            "strategy",
                            "layers",
                            "products",
                            "plans",
                            "search: CPU s",
                            "linalg to PTX: CPU s",
                            "measured",
                            "kernels",
                            "PTX: MB",
                            *(f"{judge}: ms" for judge in JUDGES),
                        ]
                    ]
                    + [
                        [
                            row["strategy"],
                            row["layers"],
                            row["products"],
                            row["plans"],
                            f"{row['seconds']:.2f}",
                            f"{row['to_ptx']:.2f}",
                            f"{row['programs']:,}",
                            row["kernels"],
                            f"{row['ptx_bytes'] / 1e6:.2f}",
                            *(f"{row[f'{judge}_us'][-1] * 1e-3:.2f}" for judge in JUDGES),
                        ]
                        for row in sorted(
                            found, key=lambda row: list(options.strategies).index(row["strategy"])
                        )
                    ]
                )
            )
        elif scenario == "loop":
            channels = ", ".join(str(width) for width, _ in CHANNELS)
            texts.append(f"**loop**: {found[0]['case']}, {channels} channels, {device}\n")
            heads = [
                f"{frames:,} frames by {judge}: s" for judge in JUDGES for frames in options.frames
            ]
            texts.append(
                table(
                    [
                        [
                            "strategy",
                            "search: CPU s",
                            "linalg to PTX: CPU s",
                            "measured",
                            *(f"a frame by {judge}: ms" for judge in JUDGES),
                            *heads,
                        ]
                    ]
                    + [
                        [
                            row["strategy"],
                            f"{row['seconds']:.2f}",
                            f"{row['to_ptx']:.2f}",
                            f"{row['programs']:,}",
                            *(
                                ", ".join(f"{time_us * 1e-3:.2f}" for time_us in row[f"{judge}_us"])
                                for judge in JUDGES
                            ),
                            *(
                                f"{total_seconds(row, judge, frames):.1f}"
                                for judge in JUDGES
                                for frames in options.frames
                            ),
                        ]
                        for row in found
                    ]
                )
            )
        else:
            count = len(found[0]["latency_us"])
            texts.append(f"**{scenario}**: {case}, {count} shapes, {device}\n")
            texts.append(
                table(
                    [["strategy", "plans", "search: CPU s", "measured", "kernels", *JUDGES]]
                    + [
                        [
                            row["strategy"],
                            row["plans"],
                            f"{row['seconds']:.2f}",
                            f"{row['programs']:,}",
                            row["kernels"],
                            *(mean_ratio(row, judge) for judge in JUDGES),
                        ]
                        for row in found
                    ]
                )
            )
    return "\n".join(texts)


def draw(pyplot, rows, path):
    """A panel for each case with one plan or several: seconds of search, and predicted times."""
    cases = list(dict.fromkeys(row["case"] for row in rows if "latency_ratio" in row))
    columns = min(3, len(cases))
    lines = -(-len(cases) // columns)
    figure, axes = pyplot.subplots(
        lines, columns, figsize=(4.2 * columns, 3 * lines), squeeze=False, layout="constrained"
    )
    for axis, case in zip(axes.flat, cases):
        for row in rows:
            if row["case"] != case or "latency_ratio" not in row:
                continue
            colour = COLOURS.get(row["strategy"], "#000000")
            for judge, marker in zip(JUDGES, ("o", "s")):
                axis.scatter(
                    row["seconds"],
                    row[f"{judge}_ratio"],
                    marker=marker,
                    edgecolors=colour,
                    facecolors=colour if row["plans"] == ONE else "none",
                )
        axis.set_xscale("log")
        axis.xaxis.set_major_locator(pyplot.matplotlib.ticker.LogLocator(subs=(1, 2, 5)))
        axis.xaxis.set_major_formatter(pyplot.matplotlib.ticker.FormatStrFormatter("%g"))
        axis.xaxis.set_minor_locator(pyplot.matplotlib.ticker.NullLocator())
        axis.set_title(case, fontsize=8)
        axis.grid(alpha=0.3)
    for axis in list(axes.flat)[len(cases) :]:
        axis.set_visible(False)
    for axis in axes[:, 0]:
        axis.set_ylabel("time over the least")
    for axis in axes[-1]:
        axis.set_xlabel("search: CPU s")
    strategies = list(dict.fromkeys(row["strategy"] for row in rows))
    handles = [
        axes[0, 0].scatter([], [], color=COLOURS.get(name, "#000000"), label=name)
        for name in strategies
    ]
    for judge, marker in zip(JUDGES, ("o", "s")):
        for kind, face in ((ONE, "black"), (EACH, "none")):
            handles.append(
                axes[0, 0].scatter(
                    [],
                    [],
                    marker=marker,
                    edgecolors="black",
                    facecolors=face,
                    label=f"{judge}, {kind}",
                )
            )
    figure.legend(handles=handles, loc="outside upper center", ncols=4, fontsize=8, frameon=False)
    workloads.save_figure(figure, path)


def write_csv(rows, path):
    fields = list(dict.fromkeys(name for row in rows for name in row))
    with open(path, "w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, fields, lineterminator="\n")
        writer.writeheader()
        for row in rows:
            writer.writerow(
                {
                    name: " ".join(f"{item:.4f}" for item in value)
                    if isinstance(value, list)
                    else value
                    for name, value in row.items()
                }
            )


SCENARIOS = ("architectures", "sequence", "bert_small", "layers", "loop")
#: DietCode's card; Gensor's.
DEVICES = dict(zip(SCENARIOS, ("t4", "t4", "rtx4090", "t4", "orin-nano")))


def run(options, runs):
    rows = []
    for scenario in options.scenarios:
        if scenario == "layers":
            rows += layers(options, runs)
        elif scenario == "loop":
            rows += loop(options, runs)
        else:
            if scenario == "bert_small":
                text = bert("bert_small", 1, layers=options.layers, small=options.small)
                cases = [model_case(scenario, "BERT-small, batch 1", text)]
            else:
                cases = architectures() if scenario == "architectures" else sequence(options)
            for case in cases:
                rows += one_or_each(case, options, runs)
    return rows


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--bin-dir", default=workloads.BIN)
    parser.add_argument("--scenarios", nargs="*", choices=SCENARIOS, default=list(SCENARIOS))
    parser.add_argument("--strategies", nargs="*", default=list(STRATEGIES))
    parser.add_argument(
        "--device", help=f"of all scenarios (default: {', '.join(map(' '.join, DEVICES.items()))})"
    )
    parser.add_argument(
        "--measurer", default="model:latency", help="of `dietcode` (default: %(default)s)"
    )
    parser.add_argument(
        "--trials", type=int, default=200, help="of `dietcode` (default: %(default)s)"
    )
    parser.add_argument(
        "--frames", nargs="*", type=int, default=[100, 1000, 10000], help="in each round of `loop`"
    )
    parser.add_argument("--depths", nargs="*", type=int, default=list(LAYERS), help="of `layers`")
    parser.add_argument(
        "--layers", type=int, help="of the models in other scenarios (default: as published)"
    )
    parser.add_argument("--small", action="store_true", help="few channels: to try this script")
    parser.add_argument("--max-kernels", type=int)
    parser.add_argument(
        "--no-models", dest="models", action="store_false", help="leave BERT-base out of `sequence`"
    )
    parser.add_argument("--state", type=pathlib.Path, metavar="FILE")
    parser.add_argument("--write", type=pathlib.Path, metavar="FILE.md")
    parser.add_argument("--csv", type=pathlib.Path, metavar="FILE.csv")
    parser.add_argument("--figure", metavar="FILE.svg")
    options = parser.parse_args()
    options.devices = {name: options.device or device for name, device in DEVICES.items()}
    pyplot = workloads.load_pyplot(options.figure) if options.figure else None
    os.environ.setdefault("FTUNER_HOME", str(pathlib.Path(options.bin_dir).parent))
    warnings.simplefilter("ignore")  # Warnings of torch.export about versions to come.
    rows = run(options, Runs(options))
    text = (
        f"{reports.stamp()}; `dietcode` has "
        f"{options.measurer} measure, a stand-in, {options.trials:,} trials for each product\n\n"
        + tables(rows, options)
    )
    print(text, end="")
    if options.write:
        options.write.write_text(text, encoding="utf-8")
    if options.csv:
        write_csv(rows, options.csv)
    if options.figure:
        draw(pyplot, rows, options.figure)


if __name__ == "__main__":
    main()
