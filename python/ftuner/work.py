"""What a compiled function computes with FTuner's kernels, and what with fallback kernels."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any, Mapping


@dataclass(frozen=True)
class WorkReport:
    """The work of one function. As a text: `summary`, and a line for each operator.

    Attributes:
        function: its name in the source.
        data: its entry `work` of the manifest (docs/manifest.md); empty for libraries of earlier
            versions, which do not tell.
    """

    function: str
    data: Mapping[str, Any]

    @classmethod
    def of(cls, manifest: Mapping[str, Any], function: str) -> WorkReport:
        """The report that a manifest has."""
        entry = next(entry for entry in manifest["functions"] if entry["name"] == function)
        return cls(function, entry.get("work") or {})

    @property
    def products(self) -> int:
        """How many products became workloads of uKernels."""
        return len(self.data.get("workloads", ()))

    @property
    def fallback_kernels(self) -> int:
        """How many fallback kernels a call launches, loops counted once."""
        return len(self.data.get("fallback_kernels", ()))

    @property
    def operators(self) -> Counter[str]:
        """The operators that became fallback kernels, and how many of each."""
        return Counter(kernel["operator"] for kernel in self.data.get("fallback_kernels", ()))

    @property
    def warning(self) -> str | None:
        """A sentence where uKernels carry little of the work."""
        return self.data.get("warning")

    @property
    def summary(self) -> str:
        """One line: the shares of uKernels at the last sizes, and the number of fallback kernels."""
        if not self.data:
            return f"{self.function}: its library does not tell"
        share = self.data["shares"][-1]
        parts = [
            f"{share[key]:.1%} of the {what}"
            for key, what in (("flops_share", "FLOPs"), ("time_share", "predicted time"))
            if share[key] is not None
        ]
        sizes = ", ".join(f"{name} = {size}" for name, size in share["sizes"].items())
        count = self.fallback_kernels
        return (
            f"{self.function}: "
            + (f"uKernels carry {' and '.join(parts)}" if parts else "no share of uKernels is known")
            + (f" at {sizes}" if sizes else "")
            + f", {count} fallback {'kernel' if count == 1 else 'kernels'}"
        )

    def __str__(self) -> str:
        lines = [self.summary]
        lines += [f"  {count} x {operator}" for operator, count in self.operators.most_common()]
        return "\n".join(lines)
