#!/usr/bin/env python3
"""Checks the rooms of the tree: the sizes of its folders, and the imports of the Python package.

Errors, each with its file or folder:

* a folder of include, lib, tools or python/ftuner with more than 20 sources side by side;
  LARGE lists the folders that still have more, each with the number that it must not exceed.
  It is an error if a line of LARGE is not needed any more;
* modules of python/ftuner that import each other in a circle, wherever the import statements
  stand; imports under `if TYPE_CHECKING` do not count, nor does the package of a module, which
  Python imports first;
* an import of a study: ANNEX lists the rooms that only the command line and themselves import.
"""

import argparse
import ast
import os
import sys

from check_layers import circles

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
TREES = ("include", "lib", "tools", "python/ftuner")
SOURCES = (".h", ".cpp", ".c", ".def", ".td", ".py", ".sh")
MAX_SOURCES = 20
PACKAGE = "python/ftuner"

#: Folders above the limit, and the most sources that each may have until it has rooms.
LARGE: dict = {}

#: Rooms beside the compiler, and the rooms that may import each of them.
ANNEX = {"study": ("cli",), "learned": ("cli", "study")}


def source_counts(root):
    """The number of sources in each folder, by its path from the root."""
    counts = {}
    for tree in TREES:
        for folder, folders, names in os.walk(os.path.join(root, tree)):
            folders[:] = sorted(name for name in folders if name != "__pycache__")
            counts[os.path.relpath(folder, root)] = sum(name.endswith(SOURCES) for name in names)
    return counts


def check_sizes(root, large):
    counts = source_counts(root)
    problems = [
        f"{folder}: has {count} sources side by side, but at most {large.get(folder, MAX_SOURCES)} are allowed: give it rooms"
        for folder, count in counts.items()
        if count > large.get(folder, MAX_SOURCES)
    ]
    problems += [
        f"{folder}: has {counts.get(folder, 0)} sources, so nothing needs its line in LARGE"
        for folder in large
        if counts.get(folder, 0) <= MAX_SOURCES
    ]
    return problems


def modules_of(root):
    """(path from the root, whether it is a package) of each module of the package, by its dotted name."""
    modules = {}
    parent = os.path.dirname(os.path.join(root, PACKAGE))
    for folder, folders, names in os.walk(os.path.join(root, PACKAGE)):
        folders[:] = sorted(name for name in folders if name != "__pycache__")
        for name in sorted(names):
            if name.endswith(".py"):
                path = os.path.join(folder, name)
                words = os.path.relpath(path, parent)[: -len(".py")].split(os.sep)
                is_package = words[-1] == "__init__"
                modules[".".join(words[:-1] if is_package else words)] = (
                    os.path.relpath(path, root),
                    is_package,
                )
    return modules


def is_type_checking(node):
    """Returns whether a statement is `if TYPE_CHECKING`."""
    return (
        isinstance(node, ast.If)
        and getattr(node.test, "id", getattr(node.test, "attr", "")) == "TYPE_CHECKING"
    )


def import_statements(node):
    """The import statements below a node that run, in order."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, (ast.Import, ast.ImportFrom)):
            yield child
        elif is_type_checking(child):
            for other in child.orelse:
                yield from import_statements(ast.Module([other], []))
        else:
            yield from import_statements(child)


def targets(statement, name, is_package, modules):
    """The modules that an import statement of the module `name` names."""
    if isinstance(statement, ast.Import):
        return [alias.name for alias in statement.names if alias.name in modules]
    base = statement.module or ""
    if statement.level:
        # One dot is the module's package.
        words = name.split(".") if is_package else name.split(".")[:-1]
        base = ".".join(
            [*words[: len(words) - statement.level + 1], *filter(None, [statement.module])]
        )
    if base not in modules:
        return []
    members = [f"{base}.{alias.name}" for alias in statement.names]
    return [member if member in modules else base for member in members]


def read_imports(root):
    """{module: {imported module: (file, line)}} of the package."""
    modules, imports = modules_of(root), {}
    for name, (path, is_package) in modules.items():
        with open(os.path.join(root, path), encoding="utf-8") as file:
            tree = ast.parse(file.read(), path)
        found = imports.setdefault(name, {})
        for statement in import_statements(tree):
            for target in targets(statement, name, is_package, modules):
                if target != name:
                    found.setdefault(target, (path, statement.lineno))
    return imports


def room_of(module):
    """The room of a module: the first folder below the package; empty for the package's own modules."""
    words = module.split(".")
    return words[1] if len(words) > 1 else ""


def check_imports(root):
    imports = read_imports(root)
    problems = []
    for circle in circles(imports):
        steps = [imports[one][two] for one, two in zip(circle, [*circle[1:], circle[0]])]
        file, line = steps[0]
        problems.append(
            f"{file}:{line}: a circle of imports: {' -> '.join([*circle, circle[0]])} ("
            + ", ".join(f"{file}:{line}" for file, line in steps)
            + ")"
        )
    for module, found in imports.items():
        for target, (file, line) in found.items():
            room = room_of(target)
            if room in ANNEX and room_of(module) not in (room, *ANNEX[room]):
                problems.append(
                    f"{file}:{line}: imports {target}: only {' and '.join(ANNEX[room])} may import '{room}'"
                )
    return problems, len(imports)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--root", default=ROOT, help="folder of include, lib, tools and python")
    root = parser.parse_args().root
    problems, modules = check_imports(root)
    # The list is that of this tree.
    problems += check_sizes(root, LARGE if os.path.samefile(root, ROOT) else {})
    for problem in problems:
        print(f"error: {problem}", file=sys.stderr)
    if not modules:
        sys.exit(f"error: no modules in '{os.path.join(root, PACKAGE)}'")
    if problems:
        sys.exit(1)
    print(
        f"{modules} modules without a circle; {len(LARGE)} folders with more than {MAX_SOURCES} sources"
    )


if __name__ == "__main__":
    main()
