"""Checks of refusals: each must be one sentence about the user's model, without words of internals."""

from __future__ import annotations

import re

#: Words of other projects and of this one's inside, each with what it is.
_INTERNALS = {
    "an address": r"\b0x[0-9a-fA-F]{4,}",
    "a word of unfinished code": r"FIX ?ME|TODO|[Uu]nimplemented|not implemented",
    "an operation of a dialect": (
        r"\b(?:affine|arith|bufferization|builtin|cf|complex|func|gpu|linalg|llvm|math|memref|ml_program|onnx|prim|"
        r"scf|shape|tensor|tm_tensor|ukernel|util|vector)\.[a-z_]\w*"
    ),
    "an operator of the importer": r"\b(?:torch\.)?(?:aten|prims|torchvision|operator|vtensor)\.\w+|\btorch\.onnx\.",
    "a type of the compiler": r"\b(?:tensor|memref|vector)<|!torch|#map|\baffine_map\b",
    "a path of the package": r"(?:python/ftuner|site-packages|/ftuner/)\S*|\b\w+\.(?:cpp|h|py):\d+",
    "a place that is not the model's": r"<unknown>|loc\(|-:\d+:\d+",
    "a message of a verifier": r"'\w+\.\w+' op\b|failed to legalize|Assertion|LLVM ERROR|Traceback",
}  # fmt: skip


def faults(
    words: str, operators: list[str] | None = None, nodes: list[str] | None = None
) -> list[str]:
    """The faults of a refusal; an empty list for a good one.

    Args:
        words: the message; each of its lines is a refusal.
        operators: of the model, of which every line names one; None if it need not.
        nodes: their names, likewise.
    """
    found = [] if words.strip() else ["it says nothing"]
    for line in filter(None, (line.strip() for line in words.splitlines())):
        # A file's name may be anything.
        bare = re.sub(r"^(cannot (?:import|compile) )'[^']*'", r"\1''", line)
        found += [
            f"{problem}: {match[0]}"
            for problem, form in _INTERNALS.items()
            if (match := re.search(form, bare))
        ]
        if re.search(r"[.!?] [A-Z]", bare):
            found.append("more than one sentence")
        if operators is not None and not any(
            re.search(rf"\b{re.escape(name)}\b", line) for name in operators
        ):
            found.append("no operator of the model")
        if nodes is not None and not any(
            re.search(rf"\b{re.escape(name)}\b", line) for name in nodes
        ):
            found.append("no node of the model")
    return found
