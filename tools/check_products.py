#!/usr/bin/env python3
"""Checks that products are known only where they have to be.

* The positions of their axes (`matmulAxes`, `WorkloadOp::kM` and so on): in the
  views of include/FTuner/Workload and lib/Workload, and in the dialect. All others ask a
  `ContractionView`, or `ContractionAxes::forReduceAxes`.
* `ukernel.workload`, by a cast to `WorkloadOp`: in the dialect, and where it is formed. All
  others ask `OperatorOpInterface`.

ALLOWED lists what is left; it is an error if nothing needs one of its lines.

    tools/check_products.py [--count]
"""

import argparse
import os
import re
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
TREES = ("include", "lib", "tools")

#: The subject of a rule, its pattern, and the folders and files that may have it.
RULES = (
    (
        "positions of a product's axes",
        re.compile(r"\b(?:matmulAxes|k[MNK]|kFirstBatch)\b"),
        (
            "include/FTuner/Workload/",
            "lib/Workload/",
            "include/FTuner/Dialect/",
            "lib/Dialect/UKernel/IR/",
        ),
    ),
    (
        "casts to WorkloadOp",
        re.compile(r"\b(?:isa|cast|dyn_cast)(?:_\w+)?<(?:\w+::)*WorkloadOp>"),
        (
            "include/FTuner/Dialect/",
            "lib/Dialect/",
            "lib/Transforms/Workloads/FormWorkloads.cpp",
            "lib/Transforms/Workloads/WorkloadFormation.cpp",
            "lib/Analysis/WorkloadMatching.cpp",
        ),
    ),
)

#: (file, text of the line) and why.
ALLOWED = {
    (
        "include/FTuner/Schedule/KernelFamily.h",
        "uint32_t reduceAxes",
    ): "what a family has unless others are set",
    (
        "include/FTuner/Codegen/ContractionPathModel.h",
        "axes = matmulAxes",
    ): "attributes verify tiles without an operator",
    (
        "lib/Codegen/Wgmma/WgmmaModel.cpp",
        "wgmma.clusterN > 1 ?",
    ): "a schedule does not say which axes m and n are",
    ("lib/CAPI/Latency.cpp", "matmulAxes.space"): "rows of the C API are products",
    ("lib/Analysis/WorkloadMatching.cpp", "WorkloadOp::k"): "forms the operator",
    ("lib/Transforms/Linalg/PackWeights.cpp", "WorkloadOp::kK"): "packs the operator's weights",
}


def found():
    """(rule, file, number of the line, line) for each line that a rule sees outside its folders."""
    for subject, look, places in RULES:
        for top in TREES:
            for folder, _, names in os.walk(os.path.join(ROOT, top)):
                for name in sorted(names):
                    file = os.path.relpath(os.path.join(folder, name), ROOT)
                    if not name.endswith((".h", ".cpp")) or file.startswith(places):
                        continue
                    with open(os.path.join(ROOT, file), encoding="utf-8") as stream:
                        for number, line in enumerate(stream, 1):
                            if look.search(line.split("//")[0]):
                                yield subject, file, number, line


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--count", action="store_true", help="print how many lines and files of each rule are left"
    )
    options = parser.parse_args()
    errors, used, counts = [], set(), {subject: [] for subject, *_ in RULES}
    for subject, file, number, line in found():
        counts[subject].append(file)
        reason = next((key for key in ALLOWED if key[0] == file and key[1] in line), None)
        if reason:
            used.add(reason)
        else:
            errors.append(f"{file}:{number}: {subject}: {line.strip()}")
    errors += [
        f"{file}: nothing needs the exception {text!r}"
        for file, text in ALLOWED
        if (file, text) not in used
    ]
    for error in errors:
        print(f"error: {error}", file=sys.stderr)
    if options.count:
        for subject, files in counts.items():
            print(f"{subject}: {len(files)} lines in {len(set(files))} files")
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
