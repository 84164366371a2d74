#!/usr/bin/env python3
"""Checks the English of doc comments and names, as far as a script can (CONTRIBUTING.md).

In the folders of tools/english_rooms.txt, and in all folders below them, these are errors:

* a doc comment, a docstring or the title of a file that begins with Of, Those, The same, What,
  Which, Where, Whether …: it begins with a noun phrase or a verb in the third person;
* an identifier with a word such as most, least, fewest, alone, behind or but: there are max,
  min, only, after and except;
* an identifier that is a preposition or a pronoun.

The other folders are counted: how many lines break a rule. --list FOLDER prints these lines.

Sources are C, C++, .def, TableGen and Python. Of C++ an identifier counts wherever it stands
without a `.`, `->` or `::` before it; of Python where it is defined.
"""

from __future__ import annotations

import argparse
import ast
import os
import re
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
ROOMS = os.path.join("tools", "english_rooms.txt")
#: Folders with sources.
TREES = ("include", "lib", "tools", "python", "test", "benchmarks", "examples")
CPP_ENDINGS = (".h", ".hpp", ".cpp", ".c", ".cu", ".cuh", ".def", ".td")

OPENING = re.compile(
    r"(Of|Those|That of|The same|What|Which|Where|Whether|Who|Whom|Whose|Whoever|Whatever)\b"
)
#: Words in identifiers, and what stands for them.
REPLACED = {
    "most": "max",
    "least": "min",
    "fewest": "min",
    "alone": "only",
    "behind": "after",
    "but": "except",
}
#: Terms of the field, and plain English, that have such words.
TERMS = re.compile(r"(?<![a-z])(at_least|at_most|least_squares|(least|most)_significant)(?![a-z])")
PREPOSITIONS = set(
    "about above across after against along among around at before behind below beneath beside "
    "besides between beyond but by despite during except for from in inside into near of off on "
    "onto out outside over past per since through throughout till to toward towards under "
    "underneath until unto up upon via with within without".split()
)
PRONOUNS = set(
    "he her hers him his itself mine ours she somebody someone somewhat that their theirs them "
    "these they this those told us we what whatever which whichever who whoever whom whose you "
    "your yours".split()
)
#: Words of the languages and their libraries, nouns, and the two ends or sides of a thing.
ALLOWED = set("this for out up us in at from to before after inside outside above below".split())
NOT_NAMES = (PREPOSITIONS | PRONOUNS) - ALLOWED


@dataclass(frozen=True, order=True)
class Finding:
    file: str
    line: int
    text: str


def split_words(name: str) -> list[str]:
    """Words of an identifier in lower case: leastGain, LEAST_GAIN and least_gain have two."""
    return [word.lower() for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", name)]


def check_name(name: str) -> str | None:
    """Returns what is wrong with an identifier, or None."""
    words = split_words(name)
    for word in TERMS.sub("", "_".join(words)).split("_"):
        if word in REPLACED:
            return f"identifier '{name}': expected '{REPLACED[word]}' in place of '{word}'"
    if len(words) == 1 and words[0] in NOT_NAMES:
        kind = "preposition" if words[0] in PREPOSITIONS else "pronoun"
        return f"identifier '{name}' is a {kind}"
    return None


def check_opening(text: str) -> str | None:
    """Returns what is wrong with the beginning of a doc comment, or None."""
    found = OPENING.match(text.strip())
    if found:
        return f"doc comment begins with '{found[1]}': expected a noun phrase or a verb"
    return None


# What is not code in C++: comments, strings and characters.
_CPP_TOKEN = re.compile(
    r"""(?P<comment>//[^\n]*|/\*.*?\*/)
      | R"(?P<mark>[^()\s\\]*)\(.*?\)(?P=mark)"
      | "(?:[^"\\\n]|\\.)*"
      | '(?:[^'\\\n]|\\.)+'
      | (?P<number>\b[0-9](?:['.\w]|[eEpP][+-])*)
      | (?P<name>[A-Za-z_]\w*)""",
    re.VERBOSE | re.DOTALL,
)
_MEMBER = re.compile(r"(\.|->|::)\s*$")
_TITLE = re.compile(r"//===-+ *(?P<file>\S+) +- +(?P<text>.*?) *-*(\*- *\S+ *-\*)?-*===//")
_DIRECTIVE = re.compile(r"[ \t]*#[ \t]*(include|if|ifdef|ifndef|elif|undef|error|pragma)\b[^\n]*")


_PROSE = re.compile(r"\[\{.*?\}\]", re.DOTALL)


def check_cpp(text: str, is_tablegen: bool = False) -> Iterator[tuple[int, str]]:
    """Yields the lines of a C++ or TableGen file that break a rule."""
    if is_tablegen:  # Descriptions and code in [{ }] are left out.
        text = _PROSE.sub(lambda prose: re.sub(r"[^\n]", " ", prose[0]), text)
    # Directives hold names of others and of files; the macros that are defined stay.
    text = _DIRECTIVE.sub(lambda line: " " * len(line[0]), text)
    line, position, previous_doc = 1, 0, -1
    for token in _CPP_TOKEN.finditer(text):
        line += text.count("\n", position, token.start())
        position = token.start()
        problem = None
        if token["comment"]:
            title = _TITLE.match(token[0])
            if title:
                problem = check_opening(title["text"])
            elif token[0].startswith("///"):
                before = text[text.rfind("\n", 0, position) + 1 : position]
                if before.strip() or previous_doc != line - 1:  # Not a comment's next line.
                    problem = check_opening(token[0].lstrip("/<"))
                previous_doc = line
        elif token["name"] and not _MEMBER.search(text, max(0, position - 8), position):
            problem = check_name(token["name"])
        if problem:
            yield line, problem


def defined_names(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Yields the names that a Python module defines, with their lines."""
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            yield node.lineno, node.name
        elif isinstance(node, ast.arg):
            yield node.lineno, node.arg
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.lineno, node.id
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.lineno, node.attr
        elif isinstance(node, ast.alias) and node.asname:
            yield node.lineno, node.asname


def check_python(text: str) -> Iterator[tuple[int, str]]:
    """Yields the lines of a Python file that break a rule."""
    tree = ast.parse(text)
    for node in ast.walk(tree):
        if isinstance(node, (ast.Module, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            docstring = ast.get_docstring(node)
            problem = check_opening(docstring) if docstring else None
            if problem:
                yield node.body[0].lineno, problem
    previous_doc = -1
    for number, line in enumerate(text.split("\n"), 1):
        stripped = line.strip()
        if stripped.startswith("#:"):
            problem = check_opening(stripped[2:]) if previous_doc != number - 1 else None
            previous_doc = number
            if problem:
                yield number, problem
    for number, name in defined_names(tree):
        problem = check_name(name)
        if problem:
            yield number, problem


def check_file(root: str, name: str) -> list[Finding]:
    with open(os.path.join(root, name), encoding="utf-8") as file:
        text = file.read()
    problems = check_python(text) if name.endswith(".py") else check_cpp(text, name.endswith(".td"))
    return sorted({Finding(name, *problem) for problem in problems})


def find_sources(root: str) -> list[str]:
    """Names of all sources, relative to the root."""
    names = []
    for tree in TREES:
        for parent, folders, files in os.walk(os.path.join(root, tree)):
            folders[:] = [folder for folder in folders if folder != "__pycache__"]
            names += [
                os.path.relpath(os.path.join(parent, file), root)
                for file in files
                if file.endswith((*CPP_ENDINGS, ".py"))
            ]
    return sorted(names)


def read_rooms(root: str) -> list[str]:
    """Returns the folders that must follow the rules; raises ValueError if one is not there."""
    rooms = []
    with open(os.path.join(root, ROOMS), encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            room = line.partition("#")[0].strip().rstrip("/")
            if room and not os.path.exists(os.path.join(root, room)):
                raise ValueError(f"{ROOMS}:{number}: expected a folder, but got '{room}'")
            if room in rooms:
                raise ValueError(f"{ROOMS}:{number}: '{room}' has a line already")
            if room:
                rooms.append(room)
    return rooms


def is_in(file: str, room: str) -> bool:
    return file == room or file.startswith(room + "/")


def room_of(file: str) -> str:
    """Names the folder that a file is counted with: two levels, and three of include and python."""
    folders = os.path.dirname(file).split("/")
    return "/".join(folders[: 3 if folders[0] in ("include", "python") else 2])


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--root", default=ROOT, help="the tree (default: that of this script)")
    parser.add_argument("--list", metavar="FOLDER", help="print what the rules say of a folder")
    options = parser.parse_args()
    try:
        rooms = read_rooms(options.root)
    except (OSError, ValueError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    status, left = 0, Counter()
    for file in find_sources(options.root):
        for finding in check_file(options.root, file):
            where = f"{finding.file}:{finding.line}"
            if options.list:
                if is_in(file, options.list.rstrip("/")):
                    print(f"{where}: {finding.text}")
            elif any(is_in(file, room) for room in rooms):
                print(f"{where}: error: {finding.text}", file=sys.stderr)
                status = 1
            else:
                left[room_of(file)] += 1
    if left:
        print(f"English: {left.total()} findings are left in folders that {ROOMS} does not list:")
        for room, count in left.most_common():
            print(f"  {count:5} {room}")
    return status


if __name__ == "__main__":
    sys.exit(main())
