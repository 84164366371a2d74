#!/usr/bin/env python3
"""Checks that includes and links run one way: down the layers of tools/layers.txt.

Errors, each with its file and line: an include or a link of a folder above, or beside
in the same line of the table; headers that a layer is kept free of; folders that only
their own may include; a folder that the table does not list; a circle of folders or
of files; an exception of the table that nothing needs; a header that is included inside
a namespace.

Sources are C++, .def and TableGen files in include/FTuner, lib and tools.

With --page the table in a Markdown page, between the marks `<!-- layers: begin -->` and
`<!-- layers: end -->`, is held against layers.txt instead; --write writes it.
"""

import argparse
import os
import re
import sys
from dataclasses import dataclass, field

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
SOURCES = (".h", ".cpp", ".c", ".def", ".td")
#: Folders with sources, and what stands before the names of their folders in the table.
TREES = {"include/FTuner": "", "lib": "", "tools": "tools/"}
INCLUDE = re.compile(r'^\s*(?:#\s*)?include\s*[<"]([^">]+)[">]')
NAMESPACE = re.compile(r"^\s*(?:inline\s+)?namespace\b[^;{}]*\{\s*$")
RAW_STRING = re.compile(r'R"([^()\s\\]*)\(')
NAMESPACE_END = re.compile(r"^\s*\}\s*//\s*namespace\b")
PAGE_TABLE = re.compile(r"(<!-- layers: begin -->\n).*?(<!-- layers: end -->)", re.DOTALL)
COMMAND = re.compile(
    r"\b(ftuner_library|ftuner_baseline|ftuner_tool|add_library|add_executable|ftuner_link|target_link_libraries)\s*\(([^()]*)\)"
)
LINK_WORDS = ("LINK", "PUBLIC", "PRIVATE", "INTERFACE")


class TableError(Exception):
    pass


@dataclass(frozen=True)
class Place:
    """A folder of the table, as a file lies in it.

    name: the folder, without `*`. rank: its line's place from below. private: the folders that may
    include it, except for the folders in it and in its layer; None: all folders above.
    """

    name: str
    rank: int
    layer: str
    excluded_prefixes: tuple
    private: tuple | None


@dataclass
class Table:
    """The rules of tools/layers.txt.

    patterns: (parts, rank, layer, excluded prefixes, private) of each folder.
    rows: (layer, excluded prefixes, private, folders, the comment above) of each line.
    """

    patterns: list = field(default_factory=list)
    rows: list = field(default_factory=list)
    allowed: dict = field(default_factory=dict)  # (from, to) -> line
    path: str = ""

    def place(self, file):
        """Finds the place of a file by its name (Tree.name), or None."""
        parts, best = file.split("/"), None
        for pattern, *rest in self.patterns:
            matches = pattern == parts or (
                len(pattern) < len(parts)
                and all(one in ("*", two) for one, two in zip(pattern, parts))
            )
            # The longest pattern, and of equal ones the one that names more.
            weight = (len(pattern), sum(part != "*" for part in pattern))
            if matches and (best is None or weight > best[0]):
                best = weight, Place("/".join(parts[: len(pattern)]), *rest)
        return best[1] if best else None


def read_table(path):
    table, layer, rank, allows, comment = Table(path=path), None, 0, False, []
    with open(path, encoding="utf-8") as file:
        lines = file.read().splitlines()
    for number, text in enumerate(lines, 1):
        words = text.partition("#")[0].split()
        if not words:
            if text.startswith(" "):
                comment.append(text.strip("# "))
            continue
        comment, above = [], " ".join(comment)
        if words[0] == "layer":
            if len(words) < 2:
                raise TableError(f"{path}:{number}: expected the name of a layer")
            rules, word = {}, None
            for option in words[2:]:
                if option in ("without", "private", "for") and option not in rules:
                    word, rules[option] = option, []
                elif word in ("without", "for"):
                    rules[word].append(option)
                else:
                    word = None
                    break
            if (
                (len(words) > 2 and word is None)
                or [] in (rules.get("without"), rules.get("for"))
                or ("for" in rules and "private" not in rules)
            ):
                raise TableError(
                    f"{path}:{number}: expected 'without PREFIX...' or 'private [for FOLDER...]', "
                    f"but got '{' '.join(words[2:])}'"
                )
            private = tuple(rules.get("for", ())) if "private" in rules else None
            layer, allows = (words[1], tuple(rules.get("without", ())), private), False
        elif words == ["allow"]:
            allows = True
        elif allows:
            if len(words) != 3 or words[1] != "->":
                raise TableError(
                    f"{path}:{number}: expected 'FOLDER -> FOLDER', but got '{' '.join(words)}'"
                )
            table.allowed[words[0], words[2]] = number
        elif layer is None:
            raise TableError(f"{path}:{number}: expected a layer before '{words[0]}'")
        else:
            for word in words:
                if any(pattern == word.split("/") for pattern, *_ in table.patterns):
                    raise TableError(f"{path}:{number}: '{word}' has a line already")
                table.patterns.append((word.split("/"), rank, *layer))
            table.rows.append((*layer, words, above))
            rank += 1
    return table


def markdown(table):
    """The table for readers, from bottom to top."""
    lines = ["| layer | folders | what they hold | rules |", "|---|---|---|---|"]
    for layer, excluded_prefixes, private, folders, comment in table.rows:
        rules = (
            [f"without {' and '.join(f'`{prefix}`' for prefix in excluded_prefixes)}"]
            if excluded_prefixes
            else []
        )
        if private is not None:
            rules.append(
                "private"
                + (
                    f", and for {' and '.join(f'`{folder}`' for folder in private)}"
                    if private
                    else ""
                )
            )
        lines.append(
            f"| {layer} | {', '.join(f'`{folder}`' for folder in folders)} | {comment} | {', '.join(rules)} |"
        )
    return "\n".join(lines) + "\n"


def check_page(path, table, writes):
    """Writes the page's table, or says that it is not that of layers.txt."""
    with open(path, encoding="utf-8") as file:
        text = file.read()
    if not PAGE_TABLE.search(text):
        sys.exit(f"error: '{path}': expected '<!-- layers: begin -->' and '<!-- layers: end -->'")
    current = PAGE_TABLE.sub(lambda marks: marks[1] + markdown(table) + marks[2], text)
    if writes:
        with open(path, "w", encoding="utf-8") as file:
            file.write(current)
    elif current != text:
        sys.exit(
            f"error: '{path}': the table of layers is not that of {table.path}: --write writes it"
        )


class Tree:
    """Sources below a root by the names that the table uses, e.g. Search/Plan.h; a name may have two files."""

    def __init__(self, root):
        self.root = root
        self.files = []  # paths from the root
        self.cmake = []
        for top in TREES:
            for folder, folders, names in os.walk(os.path.join(root, top)):
                folders.sort()
                for name in sorted(names):
                    path = os.path.relpath(os.path.join(folder, name), root)
                    if name.endswith(SOURCES):
                        self.files.append(path)
                    elif name == "CMakeLists.txt":
                        self.cmake.append(path)
        self.known = set(self.files)

    def lines(self, path):
        with open(os.path.join(self.root, path), encoding="utf-8") as file:
            return file.read().splitlines()

    @staticmethod
    def name(path):
        """The name in the table of a path from the root."""
        for top, prefix in TREES.items():
            if path.startswith(top + "/"):
                return prefix + path[len(top) + 1 :]
        return path

    def resolve(self, path, header):
        """(path from the root, or None if it is generated; name in the table) of an included file, or None."""
        if header.startswith("FTuner/"):
            found = "include/" + header
            return (found if found in self.known else None), header[len("FTuner/") :]
        neighbor = os.path.normpath(os.path.join(os.path.dirname(path), header))
        if neighbor in self.known:
            return neighbor, self.name(neighbor)
        # A folder of another library, by target_include_directories.
        ends = [file for file in self.files if file.endswith("/" + header)]
        return (ends[0], self.name(ends[0])) if len(ends) == 1 else None


class Checker:
    def __init__(self, root, table):
        self.tree, self.table = Tree(root), table
        self.problems = []
        self.needed = set()
        self.folders, self.includes = {}, {}  # graphs: from -> {to: (file, line)}
        self.unlisted = set()

    def place_of(self, name, path, line):
        place = self.table.place(name)
        folder = os.path.dirname(path)
        if place is None and folder not in self.unlisted:
            self.unlisted.add(folder)
            self.problems.append(
                f"{path}:{line}: the folder '{folder}' is in no layer of {os.path.basename(self.table.path)}"
            )
        return place

    def may_use(self, source, target):
        """Why files of one place must not use the other, or None."""
        if source.name == target.name:
            return None
        if target.rank > source.rank:
            return f"'{target.name}' (layer {target.layer}) is above '{source.name}' (layer {source.layer})"
        if target.rank == source.rank:
            return f"'{target.name}' is beside '{source.name}' in the layer {source.layer}"
        if (
            target.private is not None
            and source.layer != target.layer
            and source.name not in target.private
            and not source.name.startswith(target.name + "/")
        ):
            return f"'{target.name}' is private, but '{source.name}' does not lie below it"
        return None

    def check_use(self, source, target, path, line, use):
        """Returns whether a use counts as an edge of the graph; reports a use that breaks a rule.

        A use that the table excepts is neither an edge nor an error.
        """
        why = self.may_use(source, target)
        if why and (source.name, target.name) in self.table.allowed:
            self.needed.add((source.name, target.name))
            return False
        if why:
            self.problems.append(f"{path}:{line}: {use}: {why}")
        return True

    def check_includes(self):
        for path in self.tree.files:
            source = self.place_of(self.tree.name(path), path, 1)
            open_namespaces, text_end = 0, None
            for line, text in enumerate(self.tree.lines(path), 1):
                # Sources that programs write lie in raw strings.
                is_written = text_end is not None
                if is_written:
                    text_end = None if text_end in text else text_end
                elif begin := RAW_STRING.search(text):
                    text_end = ")" + begin.group(1) + '"'
                    text_end = None if text_end in text[begin.end() :] else text_end
                else:
                    open_namespaces += bool(NAMESPACE.match(text))
                    open_namespaces -= bool(NAMESPACE_END.match(text))
                found = INCLUDE.match(text)
                if not found or not source:
                    continue
                header = found.group(1)
                if open_namespaces > 0 and not is_written and header.endswith(".h"):
                    self.problems.append(f"{path}:{line}: includes {header} inside a namespace")
                resolved = self.tree.resolve(path, header)
                if resolved is None:
                    self.check_foreign(source, header, path, line)
                    continue
                file, name = resolved
                target = self.place_of(name, file or path, 1 if file else line)
                if not target or not self.check_use(
                    source, target, path, line, f"includes {header}"
                ):
                    continue
                ends = [
                    node if node == place.name else os.path.dirname(node)
                    for node, place in ((self.tree.name(path), source), (name, target))
                ]
                if ends[0] != ends[1]:
                    self.folders.setdefault(ends[0], {}).setdefault(ends[1], (path, line))
                if file:
                    self.includes.setdefault(path, {}).setdefault(file, (path, line))

    def check_foreign(self, source, header, path, line):
        for prefix in source.excluded_prefixes:
            if not header.startswith(prefix):
                continue
            if (source.name, prefix) in self.table.allowed:
                self.needed.add((source.name, prefix))
            else:
                self.problems.append(
                    f"{path}:{line}: includes {header}: the layer {source.layer} is without {prefix}"
                )

    def check_links(self):
        """Libraries of CMakeLists.txt: a library lies where its first source does."""
        places, uses = {}, []
        for path in self.tree.cmake:
            text = re.sub(
                r"#[^\n]*",
                lambda comment: " " * len(comment.group()),
                "\n".join(self.tree.lines(path)),
            )
            for command in COMMAND.finditer(text):
                words = [
                    (word.group(), text.count("\n", 0, command.start(2) + word.start()) + 1)
                    for word in re.finditer(r"[^\s\"]+", command.group(2))
                ]
                if not words:
                    continue
                (target, _), *rest = words
                if command.group(1) == "ftuner_baseline":
                    target = "FTuner" + target
                if command.group(1) not in ("target_link_libraries", "ftuner_link"):
                    first = next(
                        (word for word, _ in rest if word.endswith((".cpp", ".c"))),
                        "CMakeLists.txt",
                    )
                    file = os.path.normpath(os.path.join(os.path.dirname(path), first))
                    places[target] = self.table.place(self.tree.name(file))
                follows = command.group(1) in ("target_link_libraries", "ftuner_link")
                for word, line in rest:
                    if word in LINK_WORDS:
                        follows = True
                    elif word == "DEPENDS":
                        follows = False
                    elif follows:
                        uses.append((target, word, path, line))
        for target, library, path, line in uses:
            source, used = places.get(target), places.get(library)
            # A library above that has a .def list links what the list names.
            if (
                source
                and used
                and (used.private is None or source.private is not None or used.rank > source.rank)
            ):
                self.check_use(source, used, path, line, f"links {library}")

    def check_circles(self):
        for graph, kind in ((self.folders, "folders"), (self.includes, "files")):
            for circle in circles(graph):
                steps = [graph[one][two] for one, two in zip(circle, [*circle[1:], circle[0]])]
                file, line = steps[0]
                self.problems.append(
                    f"{file}:{line}: a circle of {kind}: {' -> '.join([*circle, circle[0]])} ("
                    + ", ".join(f"{file}:{line}" for file, line in steps)
                    + ")"
                )

    def check(self):
        """Every violation, as FILE:LINE: what."""
        self.check_includes()
        self.check_links()
        self.check_circles()
        table = os.path.relpath(self.table.path, self.tree.root)
        for pair, line in self.table.allowed.items():
            if pair not in self.needed:
                self.problems.append(
                    f"{table}:{line}: nothing needs the exception {pair[0]} -> {pair[1]}"
                )
        return self.problems


def circles(graph):
    """A shortest circle through each strongly connected part of a graph."""

    def path(start):
        """The shortest way from a node back to it, or None."""
        before, queue = {}, [start]
        for node in queue:
            for other in graph.get(node, ()):
                if other == start:
                    way = [node]
                    while way[0] != start:
                        way.insert(0, before[way[0]])
                    return way
                if other not in before:
                    before[other] = node
                    queue.append(other)
        return None

    seen, found = set(), []
    for node in graph:
        if node not in seen:
            way = path(node)
            if way and not seen & set(way):
                found.append(way)
            seen.update(way or ())
    return found


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--root", default=ROOT, help="folder of include, lib and tools")
    parser.add_argument("--table", help="default: tools/layers.txt in it")
    parser.add_argument("--page", help="check the table in this Markdown page, and no sources")
    parser.add_argument("--write", action="store_true", help="write the page's table")
    options = parser.parse_args()
    if options.write and not options.page:
        parser.error("--write needs --page")
    try:
        table = read_table(options.table or os.path.join(options.root, "tools", "layers.txt"))
    except (TableError, OSError) as error:
        sys.exit(f"error: {error}")
    if options.page:
        check_page(options.page, table, options.write)
        return
    checker = Checker(options.root, table)
    problems = checker.check()
    for problem in problems:
        print(f"error: {problem}", file=sys.stderr)
    if not checker.tree.files:
        sys.exit(f"error: no sources in '{options.root}'")
    if problems:
        sys.exit(1)
    print(
        f"{len(checker.tree.files)} files in {len(table.patterns)} folders of the table, "
        f"{len(table.allowed)} exceptions"
    )


if __name__ == "__main__":
    main()
