#!/usr/bin/env python3
"""Prints a readable summary of a manifest (ftuner-translate --ftuner-to-manifest).

usage: summary.py MANIFEST.json [--sizes 1,7,53]
"""

import argparse
import json


def tile(ukernel):
    block, thread = (" × ".join(map(str, ukernel[level])) for level in ("shared_memory_tile", "register_tile"))
    return f"{block} (thread {thread})"


def figure(value):
    return f"{int(value):,}" if value == int(value) else f"{value:.2g}"


def print_workload(workload, sizes):
    statistics = workload["statistics"]
    print(f"Workload {workload['name']}:")
    print("  search: " + ", ".join(
        f"{name.replace('_', ' ')} {figure(value)}" for name, value in statistics.items()))
    print("  kernel families (block tile m × n × k):")
    for number, family in enumerate(workload["families"]):
        if family["kernel"] is None:
            continue
        parts = " + ".join(tile(u) for u in family["ukernels"])
        print(f"    {number:2} {family['kernel']}: {parts}, {family['stages']} stages, "
              f"{'vector' if family['vector_width'] > 1 else 'scalar'} accesses")
    print("  programs:")
    for program in workload["programs"]:
        if sizes and program["size"] not in sizes:
            continue
        ukernels = workload["families"][program["family"]]["ukernels"]
        cover = " + ".join(f"{count} × {u['shared_memory_tile'][program['axis']]}"
                           for count, u in zip(program["blocks"], ukernels) if count)
        print(f"    size {program['size']:4}: {cover}, family {program['family']}, "
              f"{program['padded']} padded rows")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("manifest")
    parser.add_argument("--sizes", default="", help="sizes of the main axis to show, e.g. 1,7,53")
    options = parser.parse_args()
    sizes = {int(size) for size in options.sizes.split(",") if size}
    with open(options.manifest) as file:
        manifest = json.load(file)
    device = manifest["device"]
    print(f"Device {device['name']} ({device['chip']}), {len(manifest['kernels'])} kernels")
    for stage, seconds in manifest.get("seconds", {}).items():
        print(f"  {stage.replace('_', ' ')}: {seconds:.2f} s")
    for workload in manifest["workloads"]:
        print_workload(workload, sizes)


if __name__ == "__main__":
    main()
