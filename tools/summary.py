#!/usr/bin/env python3
"""Prints a readable summary of a manifest (ftuner-translate --ftuner-to-manifest).

usage: summary.py MANIFEST.json [--sizes 1,7,53]
"""

import argparse
import json
import sys

#: The version of manifests.
FORMAT_VERSION = 5


def tile(ukernel):
    block, register = (
        " × ".join(map(str, ukernel[level])) for level in ("block_tile", "register_tile")
    )
    return f"{block} (register tile {register})"


# Values of fields that say nothing.
DEFAULTS = {
    "threads_batch": 1,
    "virtual_threads_m": 0,
    "virtual_threads_n": 0,
    "threads_k": 1,
    "warps_batch": 1,
}


def schedule(family):
    fields = ", ".join(
        f"{name.replace('_', ' ')} {value}"
        for name, value in family["schedule"].items()
        if DEFAULTS.get(name) != value
    )
    return f"{family['path']} ({fields})"


# Statistics of a search in the order of its stages; the manifest has them by name. Others, of other strategies, follow.
STAGES = (
    "shapes",
    "candidates_by_rules",
    "candidates_whole_warps",
    "candidates_emittable",
    "candidates_added",
    "candidates_split",
    "candidates",
    *(
        f"{figure}_{stage}"
        for stage in (
            "cross_pick",
            "set_bound",
            "space_axis",
            "reduce_axis",
            "warps",
            "pareto",
            "threads",
            "occupancy",
            "registers",
            "shared_memory",
            "padding",
            "shared_memory_cmr",
            "register_cmr",
        )
        for figure in ("after", "relaxed")
    ),
    "ukernels",
    "programs",
    "families",
    "score_loss",
    "mean_regret",
    "worst_regret",
)


def by_stage(statistics):
    order = {name: number for number, name in enumerate(STAGES)}
    return sorted(statistics.items(), key=lambda item: order.get(item[0], len(order)))


def figure(value):
    return f"{int(value):,}" if value == int(value) else f"{value:.2g}"


def print_workload(workload, sizes):
    statistics = workload["statistics"]
    print(f"Workload {workload['name']}:")
    print(
        "  search: "
        + ", ".join(
            f"{name.replace('_', ' ')} {figure(value)}" for name, value in by_stage(statistics)
        )
    )
    print("  kernel families (block tile m × n × k):")
    for number, family in enumerate(workload["families"]):
        if family["kernel"] is None:
            continue
        parts = " + ".join(tile(u) for u in family["ukernels"])
        print(f"    {number:2} {family['kernel']}: {parts}, {schedule(family)}")
    if not workload["programs"]:
        print(
            f"  programs: {len(workload['dispatch'])} entries of the dispatch decide by several axes"
        )
        return
    print("  programs:")
    for program in workload["programs"]:
        if sizes and program["size"] not in sizes:
            continue
        ukernels = workload["families"][program["family"]]["ukernels"]
        partition = " + ".join(
            f"{count} × {u['block_tile'][program['axis']]}"
            for count, u in zip(program["blocks"], ukernels)
            if count
        )
        axis = (
            "mnk"[program["axis"]] if program["axis"] < 3 else f"batch axis {program['axis'] - 3}"
        )
        print(
            f"    size {program['size']:4}: {partition} along {axis}, family {program['family']}, "
            f"{program['padded']} padded"
        )


def load(path):
    try:
        with open(path, encoding="utf-8") as file:
            manifest = json.load(file)
    except OSError as error:
        sys.exit(f"error: cannot read '{path}': {error.strerror}")
    except ValueError as error:
        sys.exit(f"error: '{path}' is no JSON: {error}")
    version = manifest.get("format_version") if isinstance(manifest, dict) else None
    if version != FORMAT_VERSION or "kernels" not in manifest:
        sys.exit(
            f"error: '{path}': expected a manifest of format version {FORMAT_VERSION}, but got {version}"
        )
    return manifest


def sizes_of(text):
    try:
        return {int(size) for size in text.split(",") if size}
    except ValueError as error:
        raise argparse.ArgumentTypeError(
            f"expected whole numbers with commas, but got '{text}'"
        ) from error


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("manifest")
    parser.add_argument(
        "--sizes", type=sizes_of, default=set(), help="sizes of the main axis to show, e.g. 1,7,53"
    )
    options = parser.parse_args()
    manifest = load(options.manifest)
    device = manifest["device"]
    kernels = len(manifest["kernels"])
    print(
        f"Device {device['name']} ({device['chip']}), {kernels} {'kernel' if kernels == 1 else 'kernels'}"
    )
    for stage, seconds in manifest.get("seconds", {}).items():
        print(f"  {stage.replace('_', ' ')}: {seconds:.2f} s")
    for workload in manifest["workloads"]:
        print_workload(workload, options.sizes)


if __name__ == "__main__":
    main()
