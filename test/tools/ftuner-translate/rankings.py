"""Checks the rankings of a manifest with one workload.

usage: rankings.py MANIFEST.json SHAPES PROGRAMS
"""

import json
import sys


def check(condition, what):
    if not condition:
        sys.exit(f"error: {what}")


def main():
    path, shapes, programs = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    with open(path, encoding="utf-8") as file:
        rankings = json.load(file)["workloads"][0]["rankings"]
    check(len(rankings) == shapes, f"{len(rankings)} shapes")
    for ranking in rankings:
        check(
            1 <= len(ranking["programs"]) <= programs,
            f"{len(ranking['programs'])} programs of {ranking['shape']}",
        )
        scores = [program["score"] for program in ranking["programs"]]
        check(scores == sorted(scores, reverse=True), f"best first: {scores}")
        times = [program["predicted_us"] for program in ranking["programs"]]
        check(all(time > 0 for time in times) and times == sorted(times), f"fastest first: {times}")
        for program in ranking["programs"]:
            axis = program["axis"]
            covered = sum(
                count * u["block_tile"][axis]
                for count, u in zip(program["blocks"], program["ukernels"])
            )
            check(covered == ranking["shape"][axis] + program["padded"], f"partition {program}")
    check(
        any(len(ranking["programs"]) == programs for ranking in rankings),
        f"no shape with {programs} programs",
    )
    print(f"{shapes} shapes with up to {programs} programs each")


if __name__ == "__main__":
    main()
