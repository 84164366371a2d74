"""Checks that the predictions of a manifest with one workload are of its families.

usage: predictions.py MANIFEST.json SHAPES
"""

import json
import sys


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        (workload,) = json.load(file)["workloads"]
    programs = {program["size"]: program for program in workload["programs"]}
    predictions = workload["predictions"]
    if len(predictions) != int(sys.argv[2]):
        sys.exit(f"error: {len(predictions)} predictions")
    for prediction in predictions:
        program = programs[prediction["shape"][0]]
        if prediction["family"] != program["family"] or prediction["predicted_us"] <= 0:
            sys.exit(f"error: {prediction} for {program}")
    print(f"{len(predictions)} shapes are predicted by their families")


if __name__ == "__main__":
    main()
