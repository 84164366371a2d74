#!/usr/bin/env python3
"""Tables how evenly the warps of chosen programs lie on the schedulers of an SM.

For each device, Dense (N = 2304, K = 768) with M = T and M = 16·T rows, and the two
products of attention, 192 × [T, 64] × [64, T] and 192 × [T, T] × [T, 64], for
T = 1…128: the share of sizes whose program gives the busiest scheduler more than a
tenth above the mean (warps stay with the scheduler that they are dealt to, in
turn), and what that costs by the model: the mean, over those sizes, of the issue
term's share of the time times what the imbalance adds to it, an upper bound.
Nothing is measured: these are properties of the programs.

--bin-dir takes the tools of another build, to compare with. Writes Markdown.
"""

import argparse
import functools
import math
import os
import tempfile

import workloads
from search_table import explain

LEAST_IMBALANCE = 1.1
DEVICES = {"v100": 4, "a100": 4, "h200": 4, "t4": 4}
CASES = {f"Dense, {label}": functools.partial(workloads.write, rows=rows) for label, rows in workloads.RANGES.items()}
CASES["192 × [T, 64] × [64, T]"] = functools.partial(workloads.write_batch_matmul, rows="1 to 128")
CASES["192 × [T, T] × [T, 64]"] = functools.partial(workloads.write_batch_matmul, rows="1 to 128", n=64, k="T")


def imbalance(program, sms, schedulers):
    """Warps of the busiest scheduler over the mean, in the fullest round of the busiest SM."""
    tile = program["ukernels"][-1]
    threads = math.prod(s // r for s, r in zip(tile["shared_memory_tile"][:2], tile["register_tile"][:2]))
    warps = math.ceil(threads / 32)
    resident = min(program["predicted_figures"]["resident_blocks"], math.ceil(program["metrics"]["blocks"] / sms))
    return math.ceil(resident * warps / schedulers) * schedulers / (resident * warps)


def cell(shapes, sms, schedulers):
    """Share of uneven sizes, and the bound of what that costs."""
    uneven = cost = 0
    for shape in shapes:
        program = shape["program"]
        factor = imbalance(program, sms, schedulers)
        if factor <= LEAST_IMBALANCE:
            continue
        uneven += 1
        share = next(term["share"] for term in program["predicted_terms"] if term["name"] == "issue")
        cost += share * (1 - 1 / factor)
    mean = f", {100 * cost / uneven:.0f} %" if uneven else ""
    return f"{100 * uneven / len(shapes):.0f} %{mean}"


def sm_count(device):
    import json
    with open(os.path.join(workloads.ROOT, "lib", "Device", "devices", f"{device}.json"), encoding="utf-8") as file:
        return json.load(file)["sm_count"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin-dir", default=workloads.BIN)
    parser.add_argument("--devices", default=",".join(DEVICES))
    options = parser.parse_args()
    tool = os.path.join(options.bin_dir, "ftuner-translate")
    print("| device | " + " | ".join(CASES) + " |")
    print("|---" * (len(CASES) + 1) + "|")
    with tempfile.TemporaryDirectory() as folder:
        for device in options.devices.split(","):
            cells = [device]
            for write in CASES.values():
                path = write(os.path.join(folder, "workload.mlir"))
                shapes = explain(tool, path, device, [])["shapes"]
                cells.append(cell(shapes, sm_count(device), DEVICES.get(device, 4)))
            print("| " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
