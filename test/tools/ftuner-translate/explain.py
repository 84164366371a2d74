"""Checks the JSON of an explanation.

usage: explain.py EXPLANATION.json [manifest MANIFEST.json]

With a manifest of the same module, families and chosen programs must be its.
"""

import json
import math
import sys


def check(condition, what):
    if not condition:
        sys.exit(f"error: {what}")


def check_program(program, shape):
    tiles = [u["shared_memory_tile"] for u in program["ukernels"]]
    axis = program["axis"]
    covered = sum(count * tile[axis] for count, tile in zip(program["blocks"], tiles))
    check(covered == shape[axis] + program["padded"], f"cover {program}")
    check(math.isclose(program["score"], sum(t["weight"] * t["value"] for t in program["terms"]), abs_tol=1e-9),
          f"terms of {program}")
    metrics = program["metrics"]
    check(0 < metrics["pad"] <= 1 and 0 < metrics["occ"] <= 1 and metrics["cmr"] > 0, f"metrics {metrics}")
    # All blocks: those along the axis times the tiles of the other space axes.
    blocks = sum(program["blocks"])
    for other, size in enumerate(shape):
        if other not in (axis, 2):
            blocks *= -(-size // tiles[0][other])
    check(metrics["blocks"] == blocks, f"blocks {metrics} of {program}")


def check_stages(shape):
    left = shape["candidates"]
    for stage in shape["stages"]:
        check(stage["before"] == left, f"stage {stage['name']} begins with {stage['before']}, not {left}")
        left = stage["kept"]
        check(1 <= left <= stage["before"], f"stage {stage['name']} keeps {left}")
        check(stage["requirement"], "a requirement")
        dropped = stage["best_dropped"]
        check(dropped is None or stage["kept"] < stage["before"], f"stage {stage['name']} drops nothing")
        check(dropped is None or isinstance(dropped["value"], (int, float)), "a figure")


def check_shape(shape, workload):
    sizes = shape["shape"]
    check(len(sizes) == len(workload["axes"]), "one size for each axis")
    check_program(shape["program"], sizes)
    family = workload["families"][shape["family"]]
    check(all(shape["program"][key] == family[key] for key in family), "the program's family is the plan's")
    check(math.isclose(shape["score_loss"], shape["best_score"] - shape["program"]["score"], abs_tol=1e-9), "loss")
    check_program(shape["best_single"], sizes)
    check(sum(count > 0 for count in shape["best_single"]["blocks"]) == 1, "a single uKernel")
    if "programs" not in shape:
        return
    programs = shape["programs"]
    ratings = [program["rating"] for program in programs]
    check(ratings == sorted(ratings, reverse=True), f"best first: {ratings}")
    check(all(program["rating"] <= program["score"] for program in programs), "ratings up to the scores")
    check(programs[0]["score"] == shape["best_score"], "the best score")
    check(len(programs) == min(10, shape["single_programs"] + shape["pair_programs"]), f"{len(programs)} programs")
    for program in shape["programs"]:
        check_program(program, sizes)
    check_stages(shape)


def check_manifest(workload, manifest):
    described = next(w for w in manifest["workloads"] if w["plan"] == workload["plan"])
    check([{key: f[key] for key in workload["families"][0]} for f in described["families"]] == workload["families"],
          "the manifest's families")
    programs = {program["size"]: program for program in described["programs"]}
    for shape in workload["shapes"]:
        program = programs[shape["shape"][workload["main_axis"]]]
        check(program["family"] == shape["family"] and program["blocks"] == shape["program"]["blocks"],
              f"the manifest's program {program}")


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        explanation = json.load(file)
    check(explanation["format_version"] == 1, "version")
    for workload in explanation["workloads"]:
        for shape in workload["shapes"]:
            check_shape(shape, workload)
        if len(sys.argv) > 3:
            with open(sys.argv[3], encoding="utf-8") as file:
                check_manifest(workload, json.load(file))
        print(f"{workload['name']}: {len(workload['shapes'])} shapes are explained")


if __name__ == "__main__":
    main()
