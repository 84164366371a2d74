#!/usr/bin/env python3
"""Searches that measure, on the published configurations of one product on an RTX 3090.

  rtx3090_configs.py --data DIR --out benchmarks/paper/rtx3090_configs.md --figure docs/figures/measured-rtx3090.svg

DIR holds gemm_configs_rtx3090.csv.gz: the times of 17,956 configurations of CLBlast's Xgemm (f32,
M = N = K = 4096, C = A·Bᵀ + C, column-major), from github.com/AutoTuningAssociation/benchmark_hub.

Rows as schedules of the path simt. CLBlast's columns are contiguous, so its M is n here and its N is m:
block tile [NWG, MWG, KWG], threads [NDIMC, MDIMC], one strip of NWG/NDIMC rows and MWG/MDIMC columns for
each thread. `row_schedule` gives the schedule of a row, and `row_needs` what the path lacks for it.

Programs as rows. The searches ask for tiles that the table lacks, so their times come from the nearest row
(`Table.time`): a stand-in for the card, the same for all searches, and no claim about these kernels.
The times become a log of measurements, which `--measurer=recorded:` reads.

Compared: the time of the chosen program after so many measurements, for the searches with measure-top = k,
and for random search with k draws (--strategy=random --draws=k --measure=filter), --seeds seeds.
"""

import argparse
import collections
import csv
import datetime
import gzip
import json
import math
import os
import re
import statistics
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "cpu"))
import workloads

MODULE = """
#a = affine_map<(m, n, k) -> (k, m)>
#b = affine_map<(m, n, k) -> (k, n)>
#c = affine_map<(m, n, k) -> (m, n)>
func.func @gemm(%a: tensor<4096x4096xf32>, %b: tensor<4096x4096xf32>, %c: tensor<4096x4096xf32>)
    -> tensor<4096x4096xf32> {
  %r = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%a, %b : tensor<4096x4096xf32>, tensor<4096x4096xf32>) outs(%c : tensor<4096x4096xf32>) {
  ^bb0(%x: f32, %y: f32, %s: f32):
    %p = arith.mulf %x, %y : f32
    %t = arith.addf %s, %p : f32
    linalg.yield %t : f32
  } -> tensor<4096x4096xf32>
  return %r : tensor<4096x4096xf32>
}
"""
# Rows farther from a program than this, in octaves over all fields, say nothing of it.
FARTHEST = 1.5
COUNTS = (1, 2, 3, 5, 10, 20, 50, 100, 200, 500)
NO_STRIPS = (
    " (The build had no virtual threads: the strips of a thread\nwere those that the path chooses.)"
)
COLOURS = {"ftuner": "#0072B2", "roller": "#009E73", "exhaustive": "#D55E00", "random": "#7F7F7F"}


def row_needs(row):
    """What a schedule of simt lacks for a row of the table; empty if it has all."""
    needs = []
    if not (row["SA"] and row["SB"]):
        needs.append("operands that are not staged in shared memory")
        return needs
    widths = {row["VWM"], row["VWN"]}
    if 2 in widths:
        needs.append("accesses of 2 elements")
    # Eight elements are two accesses of four.
    if len({min(width, 4) for width in widths}) > 1:
        needs.append("a width of accesses for each operand")
    return needs


def row_schedule(row):
    """The schedule of a row without needs, and its block tile. The table's kernels have one stage, where
    simt has two at least, and unroll two steps of k; which threads copy what (MDIMA, NDIMB) simt decides."""
    schedule = {
        "threads_m": row["NDIMC"],
        "threads_n": row["MDIMC"],
        "stages": 2,
        "vector_width": min(row["VWM"], 4),
        "virtual_threads_m": 1,
        "virtual_threads_n": 1,
    }
    return schedule, [row["NWG"], row["MWG"], row["KWG"]]


class Table:
    """The rows with both operands staged; of those that differ in MDIMA and NDIMB the median time."""

    def __init__(self, rows):
        times = collections.defaultdict(list)
        for row in rows:
            if row["SA"] and row["SB"]:
                key = (row["NWG"], row["MWG"], row["NDIMC"], row["MDIMC"])
                times[key, (row["VWN"], row["VWM"])].append(1e3 * row["time_ms"])
        self.tiles = collections.defaultdict(dict)
        for (tile, widths), found in times.items():
            self.tiles[tile][widths] = statistics.median(found)

    def tile_time(self, tile, vector):
        """Microseconds of the nearest row; none if that is far."""

        def distance(other, mine):
            return sum(abs(math.log2(a / b)) for a, b in zip(other, mine))

        nearest = min(self.tiles, key=lambda other: (distance(other, tile), other))
        if distance(nearest, tile) > FARTHEST:
            return None
        widths = self.tiles[nearest]
        return widths[min(widths, key=lambda other: (distance(other, (vector, vector)), other))]

    def time(self, program):
        """Microseconds of a program; none for slices of k, and where a part is far from every row. Two parts
        take their rows' times by the share of the product that each computes."""
        if program["reduce_split"] != 1:
            return None
        schedule, axis = program["schedule"], program["axis"]
        total = weight = 0
        for blocks, ukernel in zip(program["blocks"], program["ukernels"]):
            tile = ukernel["block_tile"]
            if blocks == 0:
                continue
            time = self.tile_time(
                (tile[0], tile[1], schedule["threads_m"], schedule["threads_n"]),
                schedule["vector_width"],
            )
            if time is None:
                return None
            total += blocks * tile[axis] * time
            weight += blocks * tile[axis]
        return total / weight


def read_rows(path):
    with gzip.open(path, "rt", encoding="utf-8") as file:
        return [
            {
                key: value if key == "device" else float(value) if "." in value else int(value)
                for key, value in row.items()
            }
            for row in csv.DictReader(file)
        ]


class Tools:
    def __init__(self, bin_dir, folder):
        self.bin_dir = bin_dir
        self.module = os.path.join(folder, "gemm.mlir")
        with open(self.module, "w", encoding="utf-8") as file:
            file.write(MODULE)

    def run(self, tool, *arguments):
        run = subprocess.run(
            [os.path.join(self.bin_dir, tool), self.module, *arguments],
            capture_output=True,
            text=True,
        )
        if run.returncode != 0:
            sys.exit(run.stderr)
        return run.stdout

    def programs(self, *arguments):
        """All programs that a search ranks, best first."""
        text = self.run(
            "ftuner-translate",
            "--ftuner-explain",
            "--json",
            "--device=rtx3090",
            "--paths=simt",
            "--top-k=1000000",
            *arguments,
        )
        return json.loads(text)["workloads"][0]["shapes"][0]["programs"]

    def workload(self):
        line = self.run("ftuner-translate", "--ftuner-measure", "--device=rtx3090", "--paths=simt")
        return json.loads(line.split("\n")[0])["workload"]

    def chosen(self, *arguments):
        """Programs that a search had measured, and the measured time of the one that it chose."""
        text = self.run(
            "ftuner-opt", "--ftuner-front-end=device=rtx3090 paths=simt " + " ".join(arguments)
        )
        time = re.search(r"\bmeasured = \[([0-9.e+-]+)\]", text)
        count = int(re.search(r"measured_programs = (\d+)", text)[1])
        return count, float(time[1]) if time else None


def legal_rows(tools, rows):
    """How many of the rows without needs the compiler takes as plans, with their distinct schedules, and how
    many of these there are; and whether the strips of a thread are the row's, which needs virtual threads."""
    schedules = collections.Counter()
    for row in rows:
        if not row_needs(row):
            schedule, tile = row_schedule(row)
            schedules[tuple(schedule.items()), tuple(tile)] += 1
    formed = tools.run(
        "ftuner-opt", "--ukernel-attach-device=device=rtx3090", "--ukernel-form-workloads"
    )
    formed = formed.replace("ukernel.workload ins", "ukernel.workload plan(@p) ins")

    def is_legal(schedule, tile, strips):
        simt = "#ukernel.simt<threads = [{threads_m}, {threads_n}], stages = {stages}, vector = {vector_width}"
        family = f"<{simt.format(**schedule)}{strips}>, axis = 0, tiles = [{list(tile)}]>"
        general = "<#ukernel.simt<threads = [8, 16], stages = 2, vector = 1>, axis = 0, tiles = [[32, 32, 8]]>"
        plan = (
            f"ukernel.plan @p <families = [{family}, {general}], choices = [], general = 0, "
            "unaligned_general = 1>\n"
        )
        module = formed.replace("func.func @gemm", plan + "func.func @gemm", 1)
        run = subprocess.run(
            [os.path.join(tools.bin_dir, "ftuner-opt"), "--ukernel-plan-workloads", "-"],
            input=module,
            capture_output=True,
            text=True,
        )
        if run.returncode != 0 and "expected a legal plan" not in run.stderr:
            return None
        return run.returncode == 0

    strips = ", virtual_threads_m = 1, virtual_threads_n = 1"
    first_schedule, first_tile = next(iter(schedules))
    has_strips = is_legal(dict(first_schedule), first_tile, strips) is not None
    legal = [
        count
        for (schedule, tile), count in schedules.items()
        if is_legal(dict(schedule), tile, strips if has_strips else "")
    ]
    return sum(legal), len(legal), len(schedules), has_strips


def write_log(path, table, tools, seeds):
    """A log of all programs that some search ranks, with the table's times; how many have one, and of how
    many; and the least time of all."""
    programs = {}
    searches = [["--strategy=exhaustive"], ["--strategy=ftuner"], ["--strategy=roller"]]
    searches += [
        ["--strategy=random", f"--draws={COUNTS[-1]}", f"--draw-seed={seed}"]
        for seed in range(seeds)
    ]
    for arguments in searches:
        for program in tools.programs(*arguments):
            key = json.dumps(
                [
                    program["schedule"],
                    program["axis"],
                    program["reduce_split"],
                    program.get("balanced_sms"),
                    [part["block_tile"] for part in program["ukernels"]],
                ]
            )
            programs.setdefault(key, program)
    workload = tools.workload()
    times = []
    with open(path, "w", encoding="utf-8") as file:
        for program in programs.values():
            time = table.time(program)
            if time is None:
                continue
            times.append(time)
            family = {
                key: program[key]
                for key in (
                    "path",
                    "schedule",
                    "axis",
                    "reduce_split",
                    "reduce_axes",
                    "balanced_sms",
                    "ukernels",
                )
                if key in program
            }
            file.write(
                json.dumps(
                    {
                        "format_version": 3,
                        "measurer": "rtx3090 table, nearest row",
                        "device": "rtx3090",
                        "workload": workload,
                        "family": family,
                        "shape": [4096, 4096, 4096],
                        "microseconds": time,
                    }
                )
                + "\n"
            )
    return len(times), len(programs), min(times)


def compare(tools, log, seeds):
    """For each search (measurements, microseconds) at each count; for random search a list over seeds."""
    measured = [f"measurer=recorded:{log}"]
    curves = {}
    for strategy in ("ftuner", "roller", "exhaustive"):
        print(strategy, file=sys.stderr)
        curves[strategy] = [
            tools.chosen(f"strategy={strategy}", f"measure-top={count}", *measured)
            for count in COUNTS
        ]
    curves["random"] = []
    for count in COUNTS:
        print(f"random, {count} draws", file=sys.stderr)
        curves["random"].append(
            [
                tools.chosen(
                    "strategy=random",
                    f"draws={count}",
                    f"draw-seed={seed}",
                    "measure=filter",
                    *measured,
                )
                for seed in range(seeds)
            ]
        )
    everything = tools.chosen("strategy=exhaustive", "measure=filter", *measured)
    return curves, everything


def spread(curves, count):
    """The quartiles over seeds of the time after at most `count` measurements, those of the seed's largest run
    that needs no more; infinite where it has none."""
    times = []
    for seed in range(len(curves[0])):
        runs = [runs[seed] for runs in curves if runs[seed][1] and runs[seed][0] <= count]
        times.append(max(runs)[1] if runs else math.inf)
    times.sort()
    return times[len(times) // 4], statistics.median(times), times[3 * len(times) // 4]


def report(options, rows, legal, logged, programs, best, curves, everything, out):
    needs = collections.Counter(tuple(row_needs(row)) for row in rows)
    table_best = min(1e3 * row["time_ms"] for row in rows)
    date = datetime.date.today().isoformat()
    out.write(
        f"# Searches that measure, on the table of an RTX 3090 ({date})\n\n"
        "Written by [rtx3090_configs.py](rtx3090_configs.py), which says how rows and programs are mapped.\n"
        "No kernel of FTuner ran: times are those of the nearest rows of the table.\n\n"
        "## Rows as schedules\n\n| rows | what a schedule of `simt` lacks for them |\n|---|---|\n"
    )
    for lacking, count in sorted(needs.items(), key=lambda item: -item[1]):
        out.write(
            f"| {count:,} | {', '.join(lacking) or 'nothing beside the stages, see the script'} |\n"
        )
    out.write(
        f"\n{needs[()]:,} of {len(rows):,} rows are schedules with `virtual_threads_m = virtual_threads_n = 1`,\n"
        f"{legal[2]} different ones. The compiler takes {legal[1]} of these as plans, which stand for {legal[0]:,} rows; the others need\n"
        f"more registers than a thread has.{'' if legal[3] else NO_STRIPS}\n"
        "The best row of all takes "
        f"{table_best:.0f} µs.\n\n## Chosen programs\n\n"
        f"{logged:,} of the {programs:,} programs that the searches rank are near a row; the best of them takes\n"
        f"{best:.0f} µs. `exhaustive` with `measure=filter` measures {everything[0]:,} and chooses one of "
        f"{everything[1]:.0f} µs.\nIn each column: microseconds of the chosen program, and in brackets how many programs were measured\n"
        "(those that are near no row are not). `ftuner` at 1 is its choice without measurements. For random\n"
        f"search: after at most so many measurements, the median of {options.seeds} seeds and the quartiles;\n"
        "`inf` where nothing was measured.\n\n"
        "| measure-top | ftuner | roller | exhaustive | random |\n|---|---|---|---|---|\n"
    )
    for index, count in enumerate(COUNTS):
        cells = []
        for strategy in ("ftuner", "roller", "exhaustive"):
            number, time = curves[strategy][index]
            cells.append(f"{time:.0f} ({number})" if time else f"not near a row ({number})")
        low, middle, high = spread(curves["random"], count)
        cells.append(f"{middle:.0f}, {low:.0f} to {high:.0f}")
        out.write(f"| {count} | " + " | ".join(cells) + " |\n")


def draw(pyplot, curves, best, path):
    figure, axis = pyplot.subplots(figsize=(6, 3.4), layout="constrained")
    for strategy in ("ftuner", "roller", "exhaustive"):
        points = [(count, time / best) for count, time in curves[strategy] if time]
        axis.plot(
            [x for x, _ in points],
            [y for _, y in points],
            "o-",
            color=COLOURS[strategy],
            label=strategy,
            markersize=3,
            linewidth=1.2,
        )
    bands = [(count, *spread(curves["random"], count)) for count in COUNTS]
    bands = [band for band in bands if math.isfinite(band[-1])]
    axis.plot(
        [band[0] for band in bands],
        [band[2] / best for band in bands],
        "o-",
        color=COLOURS["random"],
        label="random, median",
        markersize=3,
        linewidth=1.2,
    )
    axis.fill_between(
        [band[0] for band in bands],
        [band[1] / best for band in bands],
        [band[3] / best for band in bands],
        color=COLOURS["random"],
        alpha=0.2,
        label="random, quartiles",
    )
    axis.set_xscale("log")
    axis.set_xlabel("programs measured")
    axis.set_ylabel("time of the chosen program\nover the best known")
    axis.grid(alpha=0.3)
    axis.legend(fontsize=8, frameon=False)
    workloads.save_figure(figure, path)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", required=True, help="folder with gemm_configs_rtx3090.csv.gz")
    parser.add_argument("--bin-dir", default=workloads.BIN)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--out", help="Markdown; standard output without it")
    parser.add_argument("--figure", help="FILE.svg or FILE.png")
    options = parser.parse_args()
    pyplot = workloads.load_pyplot(options.figure) if options.figure else None
    rows = read_rows(os.path.join(options.data, "gemm_configs_rtx3090.csv.gz"))
    with tempfile.TemporaryDirectory() as folder:
        tools = Tools(options.bin_dir, folder)
        log = os.path.join(folder, "rtx3090.jsonl")
        legal = legal_rows(tools, rows)
        logged, programs, best = write_log(log, Table(rows), tools, options.seeds)
        curves, everything = compare(tools, log, options.seeds)
    found = (rows, legal, logged, programs, best, curves, everything)
    if options.out:
        with open(options.out, "w", encoding="utf-8") as file:
            report(options, *found, file)
    else:
        report(options, *found, sys.stdout)
    if pyplot:
        draw(pyplot, curves, best, options.figure)


if __name__ == "__main__":
    main()
