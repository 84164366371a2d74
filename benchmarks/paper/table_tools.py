"""What the tables of tables.py share: published numbers, plans of the tools, statistics, Markdown."""

import concurrent.futures
import csv
import json
import math
import os
import statistics
import subprocess
import sys

ROOT = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
sys.path[:0] = [os.path.join(ROOT, "benchmarks", "cpu"), os.path.join(ROOT, "python")]
import workloads  # isort: split

# Modules of test/Integration, whose path workloads adds.
import batches
import kernel_families
import published_kernels
from ftuner.study.judges import blocks_of, roofline_us  # noqa: F401

DATA = os.path.join(ROOT, "benchmarks", "paper", "data")
#: The eight lengths of all tables of the paper.
LENGTHS = (5, 24, 43, 62, 81, 100, 119, 128)
#: Rows of Dense for each T: the published figures, and the text.
ROWS = {"M = 16·T": 16, "M = T": 1}
N, K = 2304, 768
#: As many kernels as the default had when the tables were made.
KERNELS = "--max-kernels=16"
SEARCHES = {
    "default": [KERNELS],
    "near the paper": [KERNELS, "--preset=paper", "--main-axis=dynamic"],
    "roller": [KERNELS, "--strategy=roller"],
}
COLOURS = {
    "vendor": "#000000",
    "ftuner": "#CC79A7",
    "haotuner": "#56B4E9",
    "roller": "#009E73",
    "default": "#0072B2",
    "near the paper": "#D55E00",
}

#: Runs its arguments as a command; the last line of standard error has seconds and KiB.
TIMED = """
import resource, subprocess, sys, time
start = time.perf_counter()
status = subprocess.call(sys.argv[1:])
print(time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss, file=sys.stderr)
sys.exit(status)
"""


def published(name, folder=DATA):
    """The rows of a published CSV, its cells as they are written there."""
    with open(os.path.join(folder, name), encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


class Context:
    """What a table is made with: the tools, where files go, and which part of it is asked for."""

    def __init__(self, bin_dir, folder, figures, predicted, pyplot, lengths=None):
        self.bin_dir, self.folder, self.figures, self.predicted = (
            bin_dir,
            folder,
            figures,
            predicted,
        )
        self.pyplot, self.lengths = pyplot, lengths
        self.known, self.calibrations = {}, {}

    def say(self, text):
        print(text, file=sys.stderr, flush=True)

    def map(self, function, items):
        """The results of a function for all items, two at a time, in order."""
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            return list(pool.map(function, items))

    def command(self, path, device, *arguments):
        return [
            os.path.join(self.bin_dir, "ftuner-translate"),
            path,
            f"--device={device}",
            *arguments,
        ]

    def write(self, name, text):
        """As the harness of test/Integration, whose functions take a Context in its place."""
        path = os.path.join(self.folder, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return path

    def dense(self, per_length, first=1, last=128, step=1, weights=None):
        """A module of Dense with per_length · T rows, T = first…last; weights: from T to a share."""
        rows = f"{per_length * first} to {per_length * last} step {per_length * step}"
        name = f"dense-{per_length}-{first}-{last}-{step}"
        if weights:
            rows += (
                " weights ["
                + ", ".join(f"{per_length * t} : {share!r}" for t, share in weights.items())
                + "]"
            )
            name += f"-{abs(hash(rows))}"
        return workloads.write(os.path.join(self.folder, name + ".mlir"), f"#ukernel.range<{rows}>")

    def batch_matmul(self, product, first, last, step=1, weights=None):
        """A module of 192 products, T = first…last; product: `scores NT`, `scores NN` or `values NN`."""
        kind, layout = product.split()
        extents = {
            "b": 192,
            "m": "T",
            "n": "T" if kind == "scores" else 64,
            "k": 64 if kind == "scores" else "T",
        }
        model = batches.Batched(
            "bmk", "bkn" if layout == "NN" else "bnk", "bmn", extents, named=layout == "NN"
        )
        rows = f"{first} to {last} step {step}"
        if weights:
            rows += (
                " weights [" + ", ".join(f"{t} : {share!r}" for t, share in weights.items()) + "]"
            )
        text = model.text().replace("#ukernel.range<1 to 64>", f"#ukernel.range<{rows}>")
        return self.write(f"batch-{kind}-{layout}-{abs(hash(text))}.mlir", text)

    def explain(self, path, device, arguments=()):
        """The explained shapes of a module with one workload; None where no uKernel is feasible."""
        key = (path, device, *arguments)
        if key not in self.known:
            run = subprocess.run(
                self.command(path, device, "--ftuner-explain", "--json", *arguments),
                capture_output=True,
                text=True,
            )
            if run.returncode != 0 and "found no feasible uKernel" not in run.stderr:
                sys.exit(run.stderr)
            self.known[key] = None
            if run.returncode == 0:
                explained = json.loads(run.stdout)
                self.known[key] = explained["workloads"][0]["shapes"]
                self.calibrations[device] = explained["calibration"]
        return self.known[key]

    def calibration_sentence(self, devices):
        """Which constants predict times on which device."""
        names = ", ".join(f"`{self.calibrations[device]}` on {device}" for device in devices)
        text = f"Constants of the cost model ([calibrations](calibration.md)): {names}."
        common = [device for device in devices if self.calibrations[device] == "global"]
        if common:
            text += (
                " The global constants were fitted to other cards, so predictions are least certain on "
                + " and ".join(common)
                + "."
            )
        return text

    def dense_shapes(self, device, per_length, search, lengths=None):
        """From T to the explained shape of Dense, of a search for T = 1…128, or for the eight lengths alone."""
        parts = eight(lengths) if lengths else [(1, 128, 1)]
        found = {}
        for first, last, step in parts:
            shapes = self.explain(
                self.dense(per_length, first, last, step), device, SEARCHES[search]
            )
            if shapes is None:
                return None
            found.update({shape["shape"][0] // per_length: shape for shape in shapes})
        return found

    def batch_shapes(self, device, product, arguments, lengths):
        found = {}
        for part in eight(lengths):
            shapes = self.explain(self.batch_matmul(product, *part), device, arguments) or []
            found.update({shape["shape"][0]: shape for shape in shapes})
        return found

    def tool(self, name, *arguments):
        return subprocess.run(
            [os.path.join(self.bin_dir, name), *arguments], capture_output=True, text=True
        )

    def published_plans(self, file, lengths):
        """From T to predicted milliseconds on V100 of the kernel that the authors' dispatcher `file` gives to it."""
        with open(published_kernels.CSV, encoding="utf-8", newline="") as rows:
            kernels = [
                published_kernels.Kernel(row) for row in csv.DictReader(rows) if row["file"] == file
            ]
        found = {}
        for kernel in kernels:
            for size in kernel.sizes:
                if size["T"] in lengths:
                    found[size["T"]] = self.published_plan(kernel, size) / 1e3
        return dict(sorted(found.items()))

    def published_plan(self, kernel, size):
        whole = kernel.extents(size)
        plan = f"<families = [{kernel.family()}], choices = [], general = 0, unaligned_general = 0>"
        name = f"{kernel.label}-{size['T']}".replace(" ", "_")
        planned, problems = kernel_families.form(self, name, kernel.model(whole).text(), plan)
        sizes = ",".join(
            f"{symbol}={value}" for symbol, value in published_kernels.sizes_of(whole).items()
        )
        run = planned and self.tool(
            "ftuner-translate",
            planned,
            "--ftuner-explain",
            "--json",
            "--device=v100",
            "--cost-model=sia",
            "--paths=simt",
            "--strategy=roller",
            f"--size={sizes}",
        )
        if problems or run.returncode != 0:
            sys.exit("\n".join(problems) or run.stderr)
        return json.loads(run.stdout)["workloads"][0]["shapes"][0]["program"]["predicted_us"]

    def timed(self, command):
        """Seconds of wall time, peak memory in MiB, and output of a command; from its own usage of resources.

        A small process starts it: the peak of a child counts what its parent had when it forked.
        """
        run = subprocess.run(
            [sys.executable, "-S", "-c", TIMED, *command], capture_output=True, text=True
        )
        if run.returncode != 0:
            sys.exit(run.stderr)
        seconds, kibibytes = run.stderr.splitlines()[-1].split()
        return float(seconds), int(kibibytes) / 1024, run.stdout

    def write_csv(self, name, header, rows):
        """The numbers of a table in full, beside the page."""
        path = os.path.join(self.predicted, name)
        with open(path, "w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(header)
            writer.writerows(rows)

    def save(self, figure, name):
        workloads.save_figure(figure, os.path.join(self.figures, name))
        self.pyplot.close(figure)


def eight(lengths):
    """Ranges (first, last, step) that hold lengths: those that lie 19 apart in one, 128 by itself."""
    lengths = sorted(lengths)
    apart = [t for t in lengths if (t - 5) % 19 == 0 and t < 128]
    parts = (
        [(apart[0], apart[-1], 19)]
        if apart == list(range(apart[0], apart[-1] + 1, 19))
        else [(t, t, 1) for t in apart]
    )
    return parts + [(t, t, 1) for t in lengths if t not in apart]


def device_of(name):
    with open(
        os.path.join(ROOT, "lib", "Device", "devices", f"{name}.json"), encoding="utf-8"
    ) as file:
        return json.load(file)


def traffic_us(device, program, extents):
    """Microseconds of (device memory, shared memory) traffic by equation 7 at the data sheet's bandwidths."""
    m, n, k, *batch = extents
    points = math.prod(batch)
    parts = blocks_of(program, extents)
    rows, columns = (
        sum(program["blocks"])
        if program["axis"] == axis
        else math.ceil(extents[axis] / parts[-1][1]["block_tile"][axis])
        for axis in (0, 1)
    )
    device_bytes = 4 * points * (columns * m * k + rows * k * n + m * n)
    shared_bytes = 0
    for count, ukernel in parts:
        (bm, bn, _, *tiles), (rm, rn) = ukernel["block_tile"], ukernel["register_tile"][:2]
        staged = (bm + bn) * math.prod(tiles) + ukernel["workers"] * (rm + rn)
        shared_bytes += 4 * count * k / program["reduce_split"] * staged
    shared_rate = device["sm_count"] * device["clock_mhz"] * 128  # bytes for each microsecond
    return device_bytes / (1e3 * device["dram_gbps"]), shared_bytes / shared_rate


def geometric_mean(values):
    return math.exp(statistics.fmean(map(math.log, values)))


def ranks(values):
    """Ranks from 0, the mean of them where values are equal."""
    order = sorted(range(len(values)), key=values.__getitem__)
    result, start = [0.0] * len(values), 0
    while start < len(order):
        end = start
        while end < len(order) and values[order[end]] == values[order[start]]:
            end += 1
        for index in order[start:end]:
            result[index] = (start + end - 1) / 2
        start = end
    return result


def spearman(first, second):
    return statistics.correlation(ranks(first), ranks(second))


def percent(share, digits=0):
    return f"{100 * share:.{digits}f} %"


def table(header, rows):
    """A table of Markdown."""
    lines = ["| " + " | ".join(header) + " |", "|---" * len(header) + "|"]
    return "\n".join(lines + ["| " + " | ".join(map(str, row)) + " |" for row in rows])


def source_line(name, keys, of=""):
    """The line before a table that says where its columns `paper …` come from; a test reads it."""
    keys = ", ".join(f"`{key}`" for key in keys)
    return f"Columns with *paper*: [{name}](../benchmarks/paper/data/{name}) by {keys}" + (
        f" of each `{of}`." if of else "."
    )


def listed(numbers):
    """Numbers as text, neighbours as ranges: 1 to 4, 7."""
    parts, numbers = [], sorted(numbers)
    for number in numbers:
        if parts and number == parts[-1][1] + 1:
            parts[-1][1] = number
        else:
            parts.append([number, number])
    return ", ".join(f"{first}" if first == last else f"{first} to {last}" for first, last in parts)
