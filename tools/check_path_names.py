#!/usr/bin/env python3
"""Checks that codegen paths are known only in their own folders.

The paths are those of include/FTuner/Codegen/CodegenPaths.def. A path is named in
include/FTuner/Codegen/<Path> and lib/Codegen/<Path>, and in one line of one .def file
and of one CMakeLists.txt of include, lib and tools. It is named nowhere else in these
nor in python/ftuner, file names included. What names it:

* the path's name, in whatever case and as a part of any word;
* of a name that is a word of the hardware, too (HARDWARE_WORDS), only what means the
  path: identifiers that its own folders have and of which the name is a part, the name
  in quotes, as an attribute (`ukernel.mma`) or as a value of the option `paths`, and
  its folder. Instructions, operations of other dialects and prose may have the name;
* of a name that is a plain word (PLAIN_WORDS) the same, but the name in quotes and in
  names of files.

ALLOWED lists what is left; it is an error if nothing needs one of its lines.
"""

import argparse
import os
import re
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
TREES = ("include", "lib", "tools", "python/ftuner")
PATHS = "include/FTuner/Codegen/CodegenPaths.def"
PATH = re.compile(r"^FTUNER_CODEGEN_PATH\(\s*(\w+)", re.MULTILINE)
# These tell of the paths themselves, and of their files.
CHECKS = ("tools/check_path_names.py", "tools/check_products.py")

#: Names of paths that are also names of instructions: mma.sync, wgmma.mma_async.
HARDWARE_WORDS = ("mma", "wgmma")
#: Names of paths that are also words, such as the rows of a matrix or a table.
PLAIN_WORDS = ("chains", "rows")

#: (file, text of the line) and why the line may name a path.
ALLOWED = {
    (
        "python/ftuner/cli/checking.py",
        "--paths wgmma",
    ): "an example of a command line, in the help of the command",
    (
        "python/ftuner/latency/measurements/token_rows.py",
        "lib/Codegen/Mma/MmaWork.cpp",
    ): "says where a price that it takes over comes from",
}

IDENTIFIER = re.compile(r"[A-Za-z_]\w*")
#: One word of a name in camel case, with underscores or in capitals: SimtLayout, simt_c1,
#: FTUNER_SIMT_H.
PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
#: Foreign namespaces and dialects, whose names are not the path's.
FOREIGN = re.compile(r"(?:NVVM(?:::|_)|nvvm\.|nvgpu\.|PTX\b)\w*")


def files(root):
    for top in TREES:
        for folder, folders, names in os.walk(os.path.join(root, top)):
            folders[:] = sorted(name for name in folders if name not in ("__pycache__", "build"))
            for name in sorted(names):
                yield os.path.relpath(os.path.join(folder, name), root)


def lines_of(root, file):
    with open(os.path.join(root, file), encoding="utf-8", errors="replace") as stream:
        return stream.read().splitlines()


def own_folders(path):
    return tuple(f"{folder}/Codegen/{path.capitalize()}/" for folder in ("include/FTuner", "lib"))


def identifiers_in(text, path):
    """Finds identifiers that have the path's name as a part, but are not the name itself."""
    for name in IDENTIFIER.findall(FOREIGN.sub(" ", text)):
        if name.lower() != path and path in (part.lower() for part in PART.findall(name)):
            yield name


class Anything:
    """Finds the name itself."""

    def __init__(self, root, path):
        self.word = re.compile(re.escape(path), re.IGNORECASE)

    def is_in(self, text):
        return self.word.search(text) is not None

    is_in_name = is_in
    # Of the lines that register a path.
    is_registered = is_in


class Meant:
    """Finds names that mean the path, if the plain name may mean an instruction."""

    def __init__(self, root, path):
        self.path = path
        own = own_folders(path)
        self.identifiers = {
            name
            for file in files(root)
            if file.startswith(own)
            for line in lines_of(root, file)
            if path in line.lower()
            for name in identifiers_in(line, path)
        }
        word, folder = re.escape(path), path.capitalize()
        self.quoted = re.compile(
            rf"""(["']){word}\1|\bukernel\.{word}\b|\bpaths[ =]["']?(?:\w+,)*{word}\b|\bCodegen/{folder}\b"""
        )
        self.word = re.compile(rf"\b(?:{word}|{folder})\b")

    def is_in(self, text):
        return self.quoted.search(text) is not None or any(
            name in self.identifiers for name in identifiers_in(text, self.path)
        )

    def is_in_name(self, name):
        return self.path in (part.lower() for part in PART.findall(name))

    def is_registered(self, text):
        return self.word.search(text) is not None or self.is_in(text)


class MeantByWord(Meant):
    """Like `Meant`, for a name that is a plain word."""

    def __init__(self, root, path):
        super().__init__(root, path)
        word, folder = re.escape(path), path.capitalize()
        self.quoted = re.compile(
            rf"""#ukernel\.{word}\b|\bpaths[ =]["']?(?:\w+,)*{word}\b|\bCodegen/{folder}\b"""
        )
        self.word = re.compile(rf"PATH\({word}\b|\({folder}\)")

    def is_in_name(self, name):
        return False


def finder_of(root, path):
    if path in PLAIN_WORDS:
        return MeantByWord(root, path)
    return Meant(root, path) if path in HARDWARE_WORDS else Anything(root, path)


def problems_of(root, path, needed):
    """Yields the places where a path's name must not be, as FILE:LINE: reason."""
    own = own_folders(path)
    finder = finder_of(root, path)
    registered = {".def": [], "CMakeLists.txt": []}
    for file in files(root):
        if file.startswith(own) or file in CHECKS:
            continue
        if finder.is_in_name(file):
            yield f"{file}:1: the name of the path '{path}' is in a file's name outside its folder"
        place = next((ending for ending in registered if file.endswith(ending)), None)
        for number, line in enumerate(lines_of(root, file), 1):
            if path not in line.lower() or not (
                finder.is_registered(line) if place else finder.is_in(line)
            ):
                continue
            allowed = next((pair for pair in ALLOWED if pair[0] == file and pair[1] in line), None)
            if allowed:
                needed.add(allowed)
                continue
            text = f"{file}:{number}: '{line.strip()}'"
            if place:
                registered[place].append(text)
            else:
                yield f"{text} names the path '{path}' outside its folder"
    for place, lines in registered.items():
        for text in lines[1:]:
            yield f"{text} is another line of a {place} that names the path '{path}'; the first is {lines[0]}"


def check(root):
    """Every violation."""
    try:
        paths = PATH.findall("\n".join(lines_of(root, PATHS)))
    except OSError as error:
        yield f"{PATHS}:1: cannot be read: {error.strerror}"
        return
    if not paths:
        yield f"{PATHS}:1: no path is listed"
    needed = set()
    for path in paths:
        if not os.path.isdir(os.path.join(root, "lib", "Codegen", path.capitalize())):
            yield f"lib/Codegen/{path.capitalize()}:1: no folder of the path '{path}'"
        yield from problems_of(root, path, needed)
    for file, text in ALLOWED:
        if (file, text) not in needed and os.path.exists(os.path.join(root, file)):
            yield f"{file}:1: nothing needs the exception for '{text}'"


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--root", default=ROOT, help="folder of include, lib, tools and python")
    problems = list(check(parser.parse_args().root))
    for problem in problems:
        print(f"error: {problem}", file=sys.stderr)
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
