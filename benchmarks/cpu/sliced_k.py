#!/usr/bin/env python3
"""Predicts the gain of slices of k within a block for f32 products of few rows, beside measurements on an H200.

Dense (T, 2304, 768) and linear (T, 3072, 768; weights [N, K]): predicted times of the plans without slices and with
them, FTuner's time on the card, whose plans had none, and the faster of cuBLAS and cuBLASLt (cold caches, graphs;
benchmarks/results/h200-2026-11-26-2). The prediction without slices beside FTuner's measurement says how far the model
is off at that size; the plans of then and of today may differ. Nothing here was measured with slices.

Prints a table. --write FILE writes it with the date and the compiler's commit.
"""

import argparse
import tempfile

from token_products import BIN, explain, mean, measured, write_module, write_table

# Type, columns and k, rows, and whether the weights are [N, K].
PRODUCTS = {
    "dense": ("f32", 2304, 768, "1 to 128", False),
    "linear": ("f32", 3072, 768, "1 to 2048", True),
}
# Numbers of rows; those that were measured are shown.
ROWS = (1, 2, 4, 8, 16, 32, 53, 62, 63, 64, 96, 114, 120, 128, 192, 256, 512)


def times_of(product):
    """Rows to the times of FTuner and of the faster library."""
    return {
        rows: (times["ftuner"], min(times["cublas"], times["cublaslt"]))
        for rows, times in measured("f32", product).items()
        if "ftuner" in times and "cublas" in times
    }


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--bin-dir", default=BIN)
    parser.add_argument("--device", default="h200")
    parser.add_argument("--write", metavar="FILE")
    options = parser.parse_args()
    lines = [
        "| product | rows | predicted without | FTuner measured, without | predicted with | slices | library measured "
        "| library / predicted |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    summaries = []
    with tempfile.TemporaryDirectory() as folder:
        for product in PRODUCTS:
            times = times_of(product)
            path = write_module(folder, *PRODUCTS[product])
            rows = [count for count in ROWS if count in times]
            unsliced, sliced = (
                explain(options.bin_dir, path, [f"--device={options.device}", *flags], rows)
                for flags in (["--sliced-k=false"], [])
            )
            ratios, errors = [], []
            for count, old, new in zip(rows, unsliced["shapes"], sliced["shapes"]):
                ftuner_us, library = times[count]
                before, after = (shape["program"]["predicted_us"] for shape in (old, new))
                slices = new["program"]["schedule"]["threads_k"]
                ratios.append(library / after)
                errors.append(abs(before / ftuner_us - 1))
                lines.append(
                    f"| {product} | {count} | {before:.2f} | {ftuner_us:.2f} | {after:.2f} | {slices} | {library:.2f} | "
                    f"{library / after:.2f} |"
                )
            summaries.append(
                f"{product}: the library's time over the predicted one {mean(ratios):.2f} in the mean, "
                f"{min(ratios):.2f} at least; the model is off by {sum(errors) / len(errors):.0%} in the mean, "
                f"{max(errors):.0%} at most, where it can be compared."
            )
    text = "\n".join(lines) + "\n\n" + "\n".join(f"* {line}" for line in summaries) + "\n"
    print(text, end="")
    if options.write:
        write_table(
            options.write,
            "Slices of k within a block",
            f"Predictions for {options.device} and measurements, µs.",
            text.rstrip(),
        )


if __name__ == "__main__":
    main()
