"""Reads PTX: entries, their loops and instruction counts."""

import glob
import os
import re
import shutil
from dataclasses import dataclass, field


def find_tool(name):
    """Path of one of CUDA's tools, or None: on PATH, in CUDA_HOME, or from a Python package."""
    root = os.path.join(os.path.dirname(__file__), "..", "..")
    candidates = [
        shutil.which(name),
        os.path.join(os.environ.get("CUDA_HOME", "/usr/local/cuda"), "bin", name),
    ]
    candidates += glob.glob(
        os.path.join(root, f".venv/lib/python*/site-packages/nvidia/*/bin/{name}")
    )
    return next((c for c in candidates if c and os.path.exists(c)), None)


def find_ptxas():
    return find_tool("ptxas")


@dataclass
class Loop:
    """Instructions that lie on a way from a label back to it."""

    instructions: list = field(default_factory=list)

    def count(self, pattern):
        return sum(1 for i in self.instructions if re.search(pattern, i))

    @property
    def fma_share(self):
        return self.count(r"^fma\.rn\.f32") / max(1, len(self.instructions))


@dataclass
class Entry:
    name: str
    lines: list

    @property
    def instructions(self):
        return [i for i in self.lines if not i.endswith(":")]

    def count(self, pattern):
        return sum(1 for i in self.instructions if re.search(pattern, i))

    def loops(self):
        labels = {line[:-1]: n for n, line in enumerate(self.lines) if line.endswith(":")}
        after, before = [[] for _ in self.lines], [[] for _ in self.lines]
        backwards = {}
        for n, line in enumerate(self.lines):
            branch = re.search(r"\bbra(\.uni)?\s+(\S+);", line)
            if branch and branch.group(2) in labels:
                target = labels[branch.group(2)]
                after[n].append(target)
                if target < n:
                    backwards.setdefault(target, []).append(n)
            # A branch that is not uniform may have been guarded.
            if (
                not (branch and branch.group(1))
                and not line.startswith("ret")
                and n + 1 < len(self.lines)
            ):
                after[n].append(n + 1)
            for target in after[n]:
                before[target].append(n)

        def reached(start, edges, end=None):
            seen, left = set(), list(start)
            while left:
                line = left.pop()
                if line in seen:
                    continue
                seen.add(line)
                if line != end:
                    left += edges[line]
            return seen

        result = []
        for head, branches in backwards.items():
            # Blocks behind a loop may stand before it, and are no loop for that.
            inside = reached([head], after)
            branches = [n for n in branches if n in inside]
            inside &= reached(branches, before, end=head)
            if branches:
                result.append(
                    Loop([self.lines[n] for n in sorted(inside) if not self.lines[n].endswith(":")])
                )
        return result

    def main_loops(self):
        """The loops with multiplications: one for each part of the family."""
        return [loop for loop in self.loops() if loop.count(r"^fma\.rn\.f32") > 0]


def entries(text):
    result, name, lines = [], None, []
    depth = 0
    begun = ""  # An instruction may go over several lines.
    for raw in text.splitlines():
        line = re.sub(r"//.*", "", raw).strip()
        match = re.match(r"\.visible \.entry ([\w$]+)\(", line) or re.match(
            r"\.entry ([\w$]+)\(", line
        )
        if match:
            name, lines, depth = match.group(1), [], 0
        if name is None:
            continue
        depth += line.count("{") - line.count("}")
        if begun or re.match(r"@|[a-z][\w.:]*(\s|$)", line):
            line = f"{begun} {line}".strip()
            begun = "" if line.endswith(";") else line
        # Drop guards such as `@%p1`, so that instructions start with their name.
        line = re.sub(r"^@!?%\w+\s+", "", line)
        if line.endswith(":") or (line.endswith(";") and not line.startswith(".")):
            lines.append(line)
        if line == "}" and depth == 0 and lines:
            result.append(Entry(name, lines))
            name = None
    return result
