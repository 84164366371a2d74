#!/usr/bin/env python3
"""Checks that codegen paths are known in their own folders alone.

The name of a path, in whatever case and as a part of any word, may stand in
include/FTuner/Codegen/<Path> and lib/Codegen/<Path>, and in one line of one .def file
and of one CMakeLists.txt of include, lib and tools. It stands nowhere else in
these nor in python/ftuner, file names included.
"""

import argparse
import os
import re
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
TREES = ("include", "lib", "tools", "python/ftuner")
#: Folders of the paths whose names are no words of the hardware or of other programs.
PATHS = ("Simt",)
# These tell of the folders themselves.
CHECKS = ("tools/check_path_names.py",)


def files(root):
    for top in TREES:
        for folder, folders, names in os.walk(os.path.join(root, top)):
            folders[:] = sorted(name for name in folders if name not in ("__pycache__", "build"))
            for name in sorted(names):
                yield os.path.relpath(os.path.join(folder, name), root)


def problems_of(root, path):
    """What is wrong with the places of a path's name, as FILE:LINE: what."""
    own = tuple(f"{folder}/Codegen/{path}/" for folder in ("include/FTuner", "lib"))
    word = re.compile(re.escape(path), re.IGNORECASE)
    registered = {".def": [], "CMakeLists.txt": []}
    for file in files(root):
        if file.startswith(own) or file in CHECKS:
            continue
        if word.search(file):
            yield f"{file}:1: the name of the path '{path}' is in a file's name outside its folder"
        with open(os.path.join(root, file), encoding="utf-8", errors="replace") as stream:
            for number, line in enumerate(stream, 1):
                if not word.search(line):
                    continue
                place = next((ending for ending in registered if file.endswith(ending)), None)
                text = f"{file}:{number}: '{line.strip()}'"
                if place:
                    registered[place].append(text)
                else:
                    yield f"{text} names the path '{path}' outside its folder"
    for place, lines in registered.items():
        for text in lines[1:]:
            yield f"{text} is another line of a {place} that names the path '{path}'; the first is {lines[0]}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", default=ROOT, help="folder of include, lib, tools and python")
    options = parser.parse_args()
    failed = False
    for path in PATHS:
        if not os.path.isdir(os.path.join(options.root, "lib", "Codegen", path)):
            print(f"error: lib/Codegen/{path}:1: no folder of the path '{path}'", file=sys.stderr)
            failed = True
        for problem in problems_of(options.root, path):
            print(f"error: {problem}", file=sys.stderr)
            failed = True
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
