"""Checks the JSON of an explanation.

usage: explain.py EXPLANATION.json [manifest MANIFEST.json | sia EXPLANATION.json | plan MODULE.mlir]

With a manifest of the same module, families, chosen programs and predictions
must be its. With an explanation by the cost model sia, what SIA would choose
must be what it chooses there. With a planned module, its plan must hold the
families' attributes.
"""

import json
import math
import statistics
import sys

NORMAL = statistics.NormalDist()
TERMS = [
    "launch",
    "issue",
    "shared_memory",
    "l2",
    "latency",
    "block_start",
    "tail",
    "dram",
    "power",
]


def check(condition, what):
    if not condition:
        sys.exit(f"error: {what}")


def check_program(program, shape):
    tiles = [u["block_tile"] for u in program["ukernels"]]
    axis = program["axis"]
    covered = sum(count * tile[axis] for count, tile in zip(program["blocks"], tiles))
    check(covered == shape[axis] + program["padded"], f"partition {program}")
    check(
        math.isclose(
            program["score"], sum(t["weight"] * t["value"] for t in program["terms"]), abs_tol=1e-9
        ),
        f"terms of {program}",
    )
    metrics = program["metrics"]
    check(
        0 < metrics["pad"] <= 1 and 0 < metrics["occ"] <= 1 and metrics["cmr"] > 0,
        f"metrics {metrics}",
    )
    # All blocks: those along the axis times the tiles of the other space axes.
    blocks = sum(program["blocks"])
    for other, size in enumerate(shape):
        if other not in (axis, 2):
            blocks *= -(-size // tiles[0][other])
    check(metrics["blocks"] == blocks, f"blocks {metrics} of {program}")
    check_prediction(program)


def is_single(program):
    return sum(count > 0 for count in program["blocks"]) == 1


def check_prediction(program):
    time, terms = program["predicted_us"], program["predicted_terms"]
    check(math.isfinite(time) and time > 0, f"time {time}")
    check([term["name"] for term in terms] == TERMS, f"terms {terms}")
    check(all(term["us"] >= 0 for term in terms), f"terms {terms}")
    check(
        math.isclose(sum(term["us"] for term in terms), time, rel_tol=1e-9),
        f"{terms} add up to {time}",
    )
    check(
        all(math.isclose(term["share"], term["us"] / time, rel_tol=1e-9) for term in terms),
        f"shares {terms}",
    )
    figures = program["predicted_figures"]
    check(
        figures["resident_blocks"] >= 1 and figures["waves"] > 0 and figures["dram_bytes"] > 0,
        f"{figures}",
    )


def check_times(shape):
    """The programs that predicted times are compared with."""
    fastest, following = shape["fastest"], shape["next"]
    for program in (
        shape["program"],
        shape["best_single"],
        shape["sia_choice"],
        *shape.get("programs", []),
    ):
        check_program(program, shape["shape"])
        check(program["predicted_us"] >= fastest["predicted_us"], f"{program} beats {fastest}")
    check(
        math.isclose(
            shape["regret"],
            shape["program"]["predicted_us"] / fastest["predicted_us"] - 1,
            abs_tol=1e-12,
        ),
        f"regret {shape['regret']}",
    )
    check(shape["roofline_us"] > 0, "a roofline")
    confidence, gain = shape["confidence"], shape["measurement_gain"]
    if following is None:
        check(
            confidence == 1 and gain == 0, f"no next program: confidence {confidence}, gain {gain}"
        )
        return
    check_program(following, shape["shape"])
    check(
        any(following[key] != fastest[key] for key in ("ukernels", "blocks", "path", "schedule")),
        f"the next program is the fastest: {fastest}",
    )
    lead = math.log(following["predicted_us"] / fastest["predicted_us"])
    check(
        lead >= 0 and 0.5 <= confidence <= 1 and gain >= 0,
        f"lead {lead}, confidence {confidence}, gain {gain}",
    )
    deviations = NORMAL.inv_cdf(min(confidence, 1 - 1e-12))
    if 1e-6 < deviations < 6:  # The spread that the confidence tells gives the gain.
        spread = lead / deviations
        expected = spread * NORMAL.pdf(deviations) - lead * (1 - confidence)
        check(math.isclose(gain, expected, abs_tol=1e-6), f"gain {gain}, expected {expected}")


def check_summary(workload):
    shapes, summary = workload["shapes"], workload["summary"]
    weights = [shape["weight"] for shape in shapes]
    check(
        math.isclose(sum(weights), 1, rel_tol=1e-9) and min(weights) > 0, "weights that add up to 1"
    )

    def mean(values):
        return sum(weight * value for weight, value in zip(weights, values))

    for field, kind in (
        ("regret", "program"),
        ("best_single_regret", "best_single"),
        ("sia_choice_regret", "sia_choice"),
    ):
        regrets = [
            shape[kind]["predicted_us"] / shape["fastest"]["predicted_us"] - 1 for shape in shapes
        ]
        check(math.isclose(summary[field]["mean"], mean(regrets), abs_tol=1e-9), f"mean of {field}")
        check(math.isclose(summary[field]["worst"], max(regrets), abs_tol=1e-9), f"worst {field}")
        worst = [shape["shape"] for shape in shapes].index(summary[field]["worst_shape"])
        check(
            math.isclose(regrets[worst], max(regrets), abs_tol=1e-9), f"place of the worst {field}"
        )
    ratios = [shape["program"]["predicted_us"] / shape["roofline_us"] for shape in shapes]
    check(math.isclose(summary["times_roofline"], mean(ratios), rel_tol=1e-9), "times the roofline")
    for number, name in enumerate(TERMS):
        shares = [shape["program"]["predicted_terms"][number]["share"] for shape in shapes]
        check(
            math.isclose(summary["term_shares"][name], mean(shares), abs_tol=1e-9),
            f"share of {name}",
        )
    confidences = [shape["confidence"] for shape in shapes]
    above = math.inf
    for band in summary["confidence"]:
        count = sum(band["at_least"] <= confidence < above for confidence in confidences)
        check(band["shapes"] == count, f"{band}, expected {count}")
        above = band["at_least"]
    check(above == 0, "bands for all confidences")
    order = [shape["shape"] for shape in shapes]
    gains = [item["gain_of_all"] for item in summary["worth_measuring"]]
    check(gains == sorted(gains, reverse=True), f"the greatest gain first: {gains}")
    for item in summary["worth_measuring"]:
        first, last = (order.index(item[key]) for key in ("first_shape", "last_shape"))
        group = [weights[i] * shapes[i]["measurement_gain"] for i in range(first, last + 1)]
        check(
            group and math.isclose(item["gain_of_all"], sum(group), abs_tol=1e-9), f"gain of {item}"
        )
        check(
            math.isclose(item["gain"] * sum(weights[first : last + 1]), sum(group), abs_tol=1e-9),
            f"gain in {item}",
        )


def check_sia(workload, other):
    there = next(w for w in other["workloads"] if w["name"] == workload["name"])
    for shape, twin in zip(workload["shapes"], there["shapes"], strict=True):
        check(
            shape["shape"] == twin["shape"] and shape["sia_choice"] == twin["sia_choice"],
            f"SIA chooses {twin['sia_choice']} at {twin['shape']}, not {shape['sia_choice']}",
        )


def check_stages(shape):
    left = shape["candidates"]
    for stage in shape["stages"]:
        check(
            stage["before"] == left,
            f"stage {stage['name']} begins with {stage['before']}, not {left}",
        )
        left = stage["kept"]
        check(1 <= left <= stage["before"], f"stage {stage['name']} keeps {left}")
        check(stage["requirement"], "a requirement")
        dropped = stage["best_dropped"]
        check(
            dropped is None or stage["kept"] < stage["before"],
            f"stage {stage['name']} drops nothing",
        )
        check(dropped is None or isinstance(dropped["value"], (int, float)), "a figure")


def check_best_single(shape):
    best = shape["best_single"]
    for program in (
        shape["program"],
        shape["sia_choice"],
        shape["fastest"],
        *shape.get("programs", []),
    ):
        check(
            not is_single(program) or program["predicted_us"] >= best["predicted_us"] * (1 - 1e-9),
            f"{program} is a faster program of one uKernel than {best}",
        )


def check_shape(shape, workload, ranks_by_time):
    sizes = shape["shape"]
    check(len(sizes) == len(workload["axes"]), "one size for each axis")
    check_program(shape["program"], sizes)
    family = workload["families"][shape["family"]]
    check(
        all(shape["program"][key] == family[key] for key in family),
        "the program's family is the plan's",
    )
    check(
        math.isclose(
            shape["score_loss"], shape["best_score"] - shape["program"]["score"], abs_tol=1e-9
        ),
        "loss",
    )
    check_times(shape)
    check(is_single(shape["best_single"]), "a single uKernel")
    if ranks_by_time:
        check_best_single(shape)
    if "programs" not in shape:
        return
    programs = shape["programs"]
    ratings = [program["rating"] for program in programs]
    check(ratings == sorted(ratings, reverse=True), f"best first: {ratings}")
    check(
        all(program["rating"] <= program["score"] + 1e-9 for program in programs),
        "ratings up to the scores",
    )
    check(programs[0]["score"] == shape["best_score"], "the best score")
    check(
        len(programs) == min(10, shape["single_programs"] + shape["pair_programs"]),
        f"{len(programs)} programs",
    )
    check_stages(shape)


def check_manifest(workload, manifest):
    described = next(w for w in manifest["workloads"] if w["plan"] == workload["plan"])
    families = [
        {key: value for key, value in f.items() if key != "kernel"} for f in described["families"]
    ]
    explained = [
        {key: value for key, value in f.items() if key != "attribute"} for f in workload["families"]
    ]
    check(families == explained, "the manifest's families")
    programs = {program["size"]: program for program in described["programs"]}
    for shape in workload["shapes"]:
        program = programs[shape["shape"][workload["main_axis"]]]
        check(
            program["family"] == shape["family"]
            and program["blocks"] == shape["program"]["blocks"],
            f"the manifest's program {program}",
        )
    check(len(described["predictions"]) == len(workload["shapes"]), "predictions of all sizes")
    for prediction, shape in zip(described["predictions"], workload["shapes"]):
        check(
            prediction["shape"] == shape["shape"] and prediction["family"] == shape["family"],
            f"{prediction}",
        )
        check(
            math.isclose(
                prediction["predicted_us"], shape["program"]["predicted_us"], rel_tol=1e-5
            ),
            f"{prediction}, explained {shape['program']['predicted_us']}",
        )
        # The explanation looks at more programs.
        check(
            0 <= prediction["regret"] <= shape["regret"] + 1e-5,
            f"{prediction}, explained {shape['regret']}",
        )
        check(0.5 <= prediction["confidence"] <= 1, f"{prediction}")


def check_first(workload, other):
    """The first of several shapes is as it was explained alone."""
    (alone,) = next(w for w in other["workloads"] if w["name"] == workload["name"])["shapes"]
    for key in (
        "shape",
        "family",
        "entry",
        "aligned",
        "program",
        "sia_choice",
        "regret",
        "confidence",
    ):
        check(workload["shapes"][0][key] == alone[key], f"{key} of the first shape")


def check_plan(workload, text):
    """The text has a plan of these families."""
    attributes = [
        family["attribute"].removeprefix("#ukernel.family") for family in workload["families"]
    ]
    check(
        f"@{workload['plan']} <families = [{', '.join(attributes)}]" in text,
        f"a plan of {attributes}",
    )


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        explanation = json.load(file)
    check(explanation["format_version"] == 5, "version")
    for workload in explanation["workloads"]:
        for shape in workload["shapes"]:
            check_shape(shape, workload, explanation["cost_model"] == "latency")
        check_summary(workload)
        if len(sys.argv) > 3:
            with open(sys.argv[3], encoding="utf-8") as file:
                other = file.read() if sys.argv[2] == "plan" else json.load(file)
            {
                "sia": check_sia,
                "first": check_first,
                "manifest": check_manifest,
                "plan": check_plan,
            }[sys.argv[2]](workload, other)
        print(f"{workload['name']}: {len(workload['shapes'])} shapes are explained")


if __name__ == "__main__":
    main()
