"""Contents of a module for IREE: dispatches, kernels, constants, and FTuner's share of the work."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Report:
    """Contents of a compiled module (docs/iree.md, "The report").

    Attributes:
        dispatches: of the whole program, by IREE's statistics.
        ftuner_dispatches: number of dispatches that are FTuner's.
        kernels: FTuner's.
        ptx_bytes: of them.
        constant_bytes: of weights and other constants in the module.
        functions: what FTuner's dispatches carry of each function, and what is left to IREE.
    """

    dispatches: int
    ftuner_dispatches: int
    kernels: int
    ptx_bytes: int
    constant_bytes: int
    functions: list[dict[str, Any]]

    def as_dict(self) -> dict[str, Any]:
        return {
            "dispatches": self.dispatches,
            "ftuner_dispatches": self.ftuner_dispatches,
            "kernels": self.kernels,
            "ptx_bytes": self.ptx_bytes,
            "constant_bytes": self.constant_bytes,
            "functions": self.functions,
        }

    def __str__(self) -> str:
        lines = [
            f"{_count(self.dispatches, 'dispatch', 'es')}, {self.ftuner_dispatches} of them "
            f"FTuner's ({_count(self.kernels, 'kernel')}), constants of "
            f"{self.constant_bytes:,} bytes"
        ]
        lines += [_function_text(function) for function in self.functions]
        return "\n".join(lines)


def _count(number: int, noun: str, plural: str = "s") -> str:
    return f"{number} {noun}" + ("" if number == 1 else plural)


def _function_text(function: dict[str, Any]) -> str:
    """Shares at the greatest sizes, and the contractions that are left to IREE."""
    share = function["shares"][-1]
    parts = [
        f"{share[key]:.1%} of the {noun}"
        for key, noun in (("share", "FLOPs"), ("contraction_share", "FLOPs of products"))
        if share[key] is not None
    ]
    sizes = ", ".join(f"{name} = {size}" for name, size in share["sizes"].items())
    # IREE adds to the names of functions that do not wait.
    name = function["name"].removesuffix("$async")
    text = f"{name}: FTuner carries {' and '.join(parts) or 'nothing that is counted'}"
    text += f" at {sizes}" if sizes else ""
    lines = [text]
    for name, number in _counted([op["operator"] for op in function["left"] if op["contraction"]]):
        lines.append(f"  left to IREE: {number} × {name}")
    for name, number in _counted(function["not_counted"]):
        lines.append(f"  not counted: {number} × {name}")
    return "\n".join(lines)


def _counted(names: list[str]) -> list[tuple[str, int]]:
    return [(name, names.count(name)) for name in dict.fromkeys(names)]


def read_report(translated: Path, statistics: Path) -> Report:
    """From FTuner's report and IREE's statistics."""
    translation = json.loads(translated.read_text(encoding="utf-8"))
    program = json.loads(statistics.read_text(encoding="utf-8"))["stream-aggregate"]
    return Report(
        dispatches=program["execution"]["dispatch-count"],
        ftuner_dispatches=translation["dispatches"],
        kernels=translation["kernels"],
        ptx_bytes=translation["ptx_bytes"],
        constant_bytes=program["global"]["constant-size"],
        functions=translation["functions"],
    )
