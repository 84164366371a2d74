#!/usr/bin/env python3
"""Predicts f16 products by today's default plans beside what was measured on an H200.

Dense (T and 16 · T rows) and the projections of Llama-2-7B (up with both halves of the gate): the faster of cuBLAS and
cuBLASLt, FTuner's plans of then, and the prediction of today's (cold caches, graphs;
benchmarks/results/h200-2026-11-26-2). The constants of the model were fitted to other programs of FTuner's at some of
these sizes, so the columns are no independent test; FTuner's own times of then say how far the model is off.

Prints a table. --write FILE writes it with the date and the compiler's commit.
"""

import argparse
import sys
import tempfile

from token_products import BIN, explain, mean, measured, write_module, write_table

# Type, columns, k and rows of the measured workloads, and whether the weights are [N, K].
PRODUCTS = {
    "dense_f16": ("f16", 2304, 768, "1 to 128", False),
    "dense16_f16": ("f16", 2304, 768, "16 to 2048 step 16", False),
    "llama_qkv": ("f16", 12288, 4096, "1 to 4096", True),
    "llama_out": ("f16", 4096, 4096, "1 to 4096", True),
    "llama_up": ("f16", 22016, 4096, "1 to 4096", True),
    "llama_down": ("f16", 4096, 11008, "1 to 4096", True),
}
RANGES = ((1, 64), (65, 256), (257, 1024), (1025, 4096))


def predict(options, name, rows):
    """Predicted microseconds by rows."""
    with tempfile.TemporaryDirectory() as folder:
        path = write_module(folder, *PRODUCTS[name])
        shapes = explain(options.bin_dir, path, ["--device=h200", *options.flags], rows)["shapes"]
    return {shape["shape"][0]: shape["program"]["predicted_us"] for shape in shapes}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bin-dir", default=BIN)
    parser.add_argument(
        "--flags",
        nargs="+",
        default=[],
        type="--{}".format,
        help="further flags, such as failed-paths=wgmma for --failed-paths=wgmma",
    )
    parser.add_argument("--write", metavar="FILE")
    options = parser.parse_args()
    lines = [
        "| product | rows | sizes | library / predicted | ahead | library / FTuner then | FTuner then / predicted |",
        "|---|---|---|---|---|---|---|",
    ]
    all_ratios = []
    for name in PRODUCTS:
        print(name, file=sys.stderr)
        times = measured("tensor_cores", name)
        rows = sorted(times)
        predicted = predict(options, name, rows)
        for low, high in RANGES:
            own = [m for m in rows if low <= m <= high]
            if not own:
                continue
            library = {
                m: min(time for peer, time in times[m].items() if peer != "ftuner") for m in own
            }
            ratios = [library[m] / predicted[m] for m in own]
            all_ratios += ratios
            then = [m for m in own if "ftuner" in times[m]]
            lines.append(
                f"| {name} | {low} to {high} | {len(own)} | {mean(ratios):.2f} | "
                f"{100 * sum(ratio > 1 for ratio in ratios) / len(own):.0f} % | "
                f"{mean([library[m] / times[m]['ftuner'] for m in then]):.2f} | "
                f"{mean([times[m]['ftuner'] / predicted[m] for m in then]):.2f} |"
            )
    lines.append(
        f"| all | | {len(all_ratios)} | {mean(all_ratios):.2f} | "
        f"{100 * sum(ratio > 1 for ratio in all_ratios) / len(all_ratios):.0f} % | | |"
    )
    table = "\n".join(lines)
    print(table)
    if options.write:
        write_table(
            options.write,
            "Products by today's plans beside measured ones",
            "Today's plans were predicted, not measured.",
            table,
        )


if __name__ == "__main__":
    main()
