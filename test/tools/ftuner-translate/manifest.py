"""Checks a manifest against the PTX that it describes."""

import json
import re
import sys


def check(condition, what):
    if not condition:
        sys.exit(f"error: {what}")


def entries(ptx):
    """Name, parameter types and threads of each entry, in order."""
    pattern = r"\.entry (\w+)\(\s*(.*?)\)\s*\.maxntid (\d+)"
    return [
        (name, re.findall(r"\.param \.(\w+)", parameters), int(threads))
        for name, parameters, threads in re.findall(pattern, ptx, re.DOTALL)
    ]


def check_kernel(kernel, entry, workloads):
    name, parameters, threads = entry
    check(kernel["entry"] == name, f"kernel {kernel['entry']} in the place of {name}")
    check(kernel["block"] == [threads, 1, 1], f"{name}: block {kernel['block']}")
    kinds = [p["kind"] for p in kernel["parameters"]]
    check(
        len(kinds) == len(parameters), f"{name}: {len(kinds)} parameters, PTX has {len(parameters)}"
    )
    for parameter, ptx_type in zip(kernel["parameters"], parameters):
        expected = {"pointer": "u64", "size": "u32", "stride": "u32", "part": "u32"}[
            parameter["kind"]
        ]
        check(ptx_type == expected, f"{name}: parameter {parameter} is {ptx_type}")
        if parameter["kind"] == "pointer":
            check(parameter["access"] in ("read", "write", "readwrite"), f"{name}: {parameter}")
    check(
        kinds == sorted(kinds, key=["pointer", "size", "stride", "part"].index),
        f"{name}: order {kinds}",
    )
    check(kernel["workloads"], f"{name} serves no workload")
    for use in kernel["workloads"]:
        family = workloads[use["workload"]]["families"][use["family"]]
        check(family["kernel"] == name, f"{name}: its family names {family['kernel']}")
        check(("part" in kinds) == (len(family["ukernels"]) == 2), f"{name}: parts")
        check(
            kernel["alignment_bytes"] == 4 * family["schedule"]["vector_width"],
            f"{name}: alignment",
        )


def check_workload(workload, rows):
    families = workload["families"]
    numbers = {entry["family"] for entry in workload["dispatch"]}
    numbers |= {workload["general_family"], workload["unaligned_general_family"]}
    check(all(families[number]["kernel"] for number in numbers), "a family without a kernel")
    check(
        families[workload["unaligned_general_family"]]["schedule"]["vector_width"] == 1,
        "the unaligned general family wants alignment",
    )
    check(
        [p["size"] for p in workload["programs"]] == list(range(1, rows + 1)),
        "programs of all sizes",
    )
    for program in workload["programs"]:
        tiles = [u["block_tile"][program["axis"]] for u in families[program["family"]]["ukernels"]]
        covered = sum(count * tile for count, tile in zip(program["blocks"], tiles))
        check(covered == program["extent"] + program["padded"], f"partition {program}")
    check(workload["statistics"], "statistics")
    check(
        workload["search"]
        == {
            "strategy": "ftuner",
            "cost_model": "latency",
            "calibration": "h200",
            "paths": ["simt", "mma", "wgmma", "rows", "chains"],
            "proven_paths": [],
        },
        "search",
    )
    check(
        [p["shape"][0] for p in workload["predictions"]] == list(range(1, rows + 1)),
        "predictions of all sizes",
    )
    programs = {program["size"]: program for program in workload["programs"]}
    for prediction in workload["predictions"]:
        check(
            prediction["family"] == programs[prediction["shape"][0]]["family"],
            f"the family of {prediction}",
        )
        check(prediction["predicted_us"] > 0 and prediction["regret"] >= 0, f"{prediction}")
        check(0.5 <= prediction["confidence"] <= 1, f"{prediction}")


def main():
    ptx_path, manifest_path, rows = sys.argv[1], sys.argv[2], int(sys.argv[3])
    with open(ptx_path) as file:
        found = entries(file.read())
    with open(manifest_path) as file:
        manifest = json.load(file)
    check(manifest["format_version"] == 5, "version")
    check("seconds" not in manifest, "seconds differ from run to run")
    workloads = {w["name"]: w for w in manifest["workloads"]}
    check(found and len(found) == len(manifest["kernels"]), f"{len(found)} entries")
    for kernel, entry in zip(manifest["kernels"], found):
        check_kernel(kernel, entry, workloads)
    for workload in workloads.values():
        check_workload(workload, rows)
    print("the manifest fits the PTX")


if __name__ == "__main__":
    main()
