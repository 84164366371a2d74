#!/usr/bin/env python3
"""Tables what programs of two heights gain over the best single uKernel, by device, product and search.

Dense of the paper (N = 2304, K = 768) in f32 with T and with 16·T rows, T = 1…128, and in f16; BatchMatmul of the paper
(192 × [T, 64] × [64, T]) in f32; the output projection of Llama-2-7B (N = K = 4096) in f16, 1 to 4096 rows. Each by
default, where predicted times rank programs, and near the paper (docs/paper.md), where SIA does.

At each size the best program that the search finds is held against the best program of one uKernel that it ranks, with
the tile of a candidate or of either part of a pair. The gain is the predicted time of the latter over that of the
former, less 1. Near the paper SIA ranks, so gains may be below 0. Means have the weights of the sizes.

Prints a table; --docs FILE puts it between the marks "combination gain" of a page. Nothing is measured.
"""

import argparse
import os
import sys
import tempfile

import search_table
import token_products
import workloads

# Options of a search, and the key of its best program.
SEARCHES = {"default": ([], "fastest"), "near the paper": (search_table.PAPER, "sia_choice")}
# Gains below are rounding.
MIN_GAIN = 1e-9
BEGIN, END = "<!-- combination gain: begin -->", "<!-- combination gain: end -->"


def cases(folder):
    """Paths of modules by the name of the product."""

    def path(name):
        return os.path.join(folder, name + ".mlir")

    def product(name, *arguments):
        os.makedirs(os.path.join(folder, name))
        return token_products.write_module(os.path.join(folder, name), *arguments)

    dense = {
        f"Dense, {label}, f32": workloads.write(path(f"dense{number}"), rows)
        for number, (label, rows) in enumerate(workloads.RANGES.items())
    }
    return {
        **dense,
        "BatchMatmul, f32": workloads.write_batch_matmul(path("batch")),
        "Dense, M = T, f16": product("f16", "f16", 2304, 768, "1 to 128", False),
        "Llama out, f16": product("llama", "f16", 4096, 4096, "1 to 4096", True),
    }


def mean(shapes, figure):
    weights = [shape["weight"] for shape in shapes]
    return sum(weight * figure(shape) for weight, shape in zip(weights, shapes)) / sum(weights)


def gain(slow, fast):
    return slow["predicted_us"] / fast["predicted_us"] - 1


def is_pair(program):
    return sum(count > 0 for count in program["blocks"]) > 1


def padded(program):
    return 1 / program["metrics"]["pad"] - 1


def row(tool, path, device, search):
    options, best = SEARCHES[search]
    workload = search_table.explain(tool, path, device, options)
    if workload is None:
        return ["no feasible uKernel", "", "", ""]
    shapes = workload["shapes"]
    gains = {
        shape["shape"][workload["main_axis"]]: gain(shape["best_single"], shape[best])
        for shape in shapes
    }
    pairs = [
        size
        for size, shape in zip(gains, shapes)
        if is_pair(shape[best]) and abs(gains[size]) > MIN_GAIN
    ]
    size = max(pairs, key=gains.get, default=None)
    pads = [
        f"{100 * mean(shapes, lambda shape, key=key: padded(shape[key])):.1f} %"
        for key in ("best_single", best)
    ]
    return [
        f"{len(pairs)} of {len(shapes)}",
        f"{100 * mean(shapes, lambda shape: gain(shape['best_single'], shape[best])):.2f} %",
        f"{100 * gains[size]:.1f} % ({size})" if pairs else "",
        " → ".join(pads),
    ]


def table(tool, devices):
    lines = [
        "| device | product | search | sizes with a pair | mean gain | largest gain (at) | padded, one → two |",
        "|---|---|---|---|---|---|---|",
    ]
    with tempfile.TemporaryDirectory() as folder:
        for name, path in cases(folder).items():
            for device in devices:
                for search in SEARCHES:
                    print(f"{name}, {device}, {search}", file=sys.stderr)
                    lines.append(
                        f"| {device} | {name} | {search} | "
                        + " | ".join(row(tool, path, device, search))
                        + " |"
                    )
    return "\n".join(lines)


def put(page, text):
    """Puts a table between the marks of a page."""
    with open(page, encoding="utf-8") as file:
        before, rest = file.read().split(BEGIN)
    after = rest.split(END)[1]
    with open(page, "w", encoding="utf-8") as file:
        file.write(f"{before}{BEGIN}\n\n{text}\n\n{END}{after}")


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--bin-dir", default=workloads.BIN)
    parser.add_argument("--devices", nargs="+", default=["v100", "a100", "h200"])
    parser.add_argument("--docs", metavar="FILE", help="a page with the marks")
    options = parser.parse_args()
    text = table(os.path.join(options.bin_dir, "ftuner-translate"), options.devices)
    print(text)
    if options.docs:
        put(options.docs, text)


if __name__ == "__main__":
    main()
