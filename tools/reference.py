#!/usr/bin/env python3
"""Writes the reference pages in docs/reference from the TableGen sources.

With --check nothing is written; it fails where a page differs from what the
sources give.
"""

import argparse
import os
import re
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
NOTICE = "<!-- Generated from {source} by tools/reference.py: do not edit -->\n\n"

# Page: (title, source, flags of mlir-tblgen).
PAGES = {
    "ukernel.md": (None, "include/FTuner/Dialect/UKernel/IR/UKernelOps.td",
                   ["-gen-dialect-doc", "-dialect=ukernel"]),
    "transforms.md": ("Transformations", "include/FTuner/Transforms/Passes.td", ["-gen-pass-doc"]),
    "conversions.md": ("Conversions", "include/FTuner/Conversion/Passes.td", ["-gen-pass-doc"]),
    "pipelines.md": ("Passes that run pipelines", "include/FTuner/Pipelines/Passes.td", ["-gen-pass-doc"]),
}


def generate(tblgen, includes, title, source, flags):
    command = [tblgen, os.path.join(ROOT, source), "-I", os.path.join(ROOT, "include")]
    for include in includes:
        command += ["-I", include]
    run = subprocess.run(command + flags, capture_output=True, text=True)
    if run.returncode != 0:
        sys.exit(run.stderr)
    text = re.sub(r"\A<!--.*?-->\n*", "", run.stdout)
    text = text.replace("[TOC]\n\n", "")
    text = re.sub(r"[ \t]+$", "", text, flags=re.MULTILINE)
    text = re.sub(r"\n{3,}", "\n\n", text).strip() + "\n"
    heading = f"# {title}\n\n" if title else ""
    return NOTICE.format(source=source) + heading + text


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tblgen", default="mlir-tblgen", help="path of mlir-tblgen")
    parser.add_argument("--include", action="append", default=[], help="folder of MLIR's headers")
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    stale = []
    for page, (title, source, flags) in PAGES.items():
        text = generate(options.tblgen, options.include, title, source, flags)
        path = os.path.join(ROOT, "docs", "reference", page)
        known = None
        if os.path.exists(path):
            with open(path, encoding="utf-8") as file:
                known = file.read()
        if text == known:
            continue
        if options.check:
            stale.append(os.path.relpath(path, ROOT))
            continue
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
    if stale:
        sys.exit(f"error: {', '.join(stale)}: not what the sources give; "
                 "build the target ftuner-docs and commit the result")


if __name__ == "__main__":
    main()
