"""The work of a compiled function by FTuner's kernels and by fallback kernels."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from .tables import preformatted


@dataclass(frozen=True)
class WorkReport:
    """The work of one function. As a text: `summary`, and a line for each operator.

    Attributes:
        function: its name in the source.
        data: its entry `work` of the manifest (docs/manifest.md); empty for libraries of earlier
            versions, which do not tell.
        predictions: what plans predict for the shapes that the search looked at, by the name under
            which `data` has the kernels of a workload.
    """

    function: str
    data: Mapping[str, Any]
    predictions: Mapping[str, Sequence[Mapping[str, Any]]] = field(default_factory=dict, repr=False)

    @classmethod
    def from_manifest(cls, manifest: Mapping[str, Any], function: str) -> WorkReport:
        """The report that a manifest has."""
        entry = next(entry for entry in manifest["functions"] if entry["name"] == function)
        plans = {plan["name"]: plan["predictions"] for plan in manifest.get("workloads", ())}
        return cls(function, entry.get("work") or {}, plans)

    @property
    def sizes(self) -> list[str]:
        """Names of the sizes that the work follows from."""
        return [*self.data.get("sizes", ())]

    def share_at(self, sizes: Mapping[str, int]) -> dict[str, Any]:
        """The FLOPs and the predicted time at any sizes, as an entry `shares` of the manifest.

        Nothing is compiled or searched for. Raises `ValueError` where a size is missing, unknown or
        negative, and where the library is of an earlier version, which does not tell.
        """
        if "rates" not in self.data:
            raise ValueError(f"{self.function}: its library does not tell")
        if set(sizes) != set(self.sizes) or any(size < 0 for size in sizes.values()):
            given = ", ".join(f"{name} = {size}" for name, size in sizes.items())
            names = ", ".join(self.sizes)
            raise ValueError(
                f"sizes: expected numbers from 0 on of {names or 'nothing'}, but got {given or 'nothing'}"
            )

        def value(formula: Any) -> float | None:
            return None if formula is None else max(0.0, evaluate(formula, sizes))

        implausible: list[str] = []
        flops = {True: 0.0, False: 0.0}
        times: dict[bool, float | None] = {True: 0.0, False: 0.0}
        unknown = 0
        kernels = [(True, item) for item in self.data["workloads"]]
        kernels += [(False, item) for item in self.data["fallback_kernels"]]
        for is_ours, item in kernels:
            time = (self._workload_time if is_ours else self._fallback_time)(item, value)
            roofline = self._roofline(item, value)
            if time is not None and roofline is not None and time > IMPLAUSIBLE_ROOFLINE * roofline:
                implausible.append(item["workload" if is_ours else "kernel"])
            amount = value(item["flops"])
            if amount is None or (time is None and not is_ours):
                unknown += 1
                continue
            count = value(item["launches"])
            count = 1 if count is None else count
            flops[is_ours] += count * amount
            before = times[is_ours]
            times[is_ours] = None if before is None or time is None else before + count * time
        return {
            "sizes": {name: sizes[name] for name in self.sizes},
            "ukernel_flops": flops[True],
            "fallback_flops": flops[False],
            "flops_share": _share(flops[True], flops[False]),
            "ukernel_us": times[True],
            "fallback_us": times[False],
            "time_share": _share(times[True], times[False] or 0.0),
            "unknown_kernels": unknown,
            "implausible": implausible,
        }

    def _roofline(
        self, item: Mapping[str, Any], value: Callable[[Any], float | None]
    ) -> float | None:
        """Microseconds of the operator's roofline (docs/explain.md); None where its work is not known."""
        rates = self.data["rates"]
        amount, flops = value(item["bytes"]), value(item["flops"])
        if amount is None or flops is None:
            return None
        bound = amount * rates["us_per_byte"]
        if item.get("kind") in ("contraction", "window"):
            bound = max(bound, flops * rates["us_per_flop"])
        return float(rates["launch_us"] + bound)

    def _fallback_time(
        self, item: Mapping[str, Any], value: Callable[[Any], float | None]
    ) -> float | None:
        """The bound of docs/explain.md."""
        rates = self.data["rates"]
        amounts = {key: value(item[key]) for key in ("bytes", "flops", "accesses", "thread_loads")}
        known = [amount for amount in amounts.values() if amount is not None]
        if len(known) < len(amounts):
            return None
        if amounts["bytes"] == 0 and amounts["accesses"] == 0:
            return 0.0  # Without elements nothing is launched.
        units = (rates[f"us_per_{unit}"] for unit in ("byte", "flop", "access", "thread_load"))
        bound: float = max(amount * rate for amount, rate in zip(known, units))
        return bound + float(rates["launch_us"])

    def _workload_time(
        self, item: Mapping[str, Any], value: Callable[[Any], float | None]
    ) -> float | None:
        """The time of the nearest shape that the search looked at, by the ratio of the points."""
        shape = [value(extent) for extent in item["extents"]]
        known = [extent for extent in shape if extent is not None]
        if len(known) < len(shape):
            return None
        if 0 in known:
            return 0.0
        nearest = min(
            (
                (sum(abs(math.log(a / b)) for a, b in zip(known, seen["shape"])), number, seen)
                for number, seen in enumerate(self.predictions.get(item["kernels_of"], ()))
                if len(seen["shape"]) == len(known)
            ),
            default=None,
        )
        if nearest is None:
            return None
        seen = nearest[2]
        launch = min(self.data["rates"]["launch_us"], seen["predicted_us"])
        ratio = math.prod(known) / math.prod(seen["shape"])
        return float(launch + (seen["predicted_us"] - launch) * ratio)

    @property
    def products(self) -> int:
        """Number of products, which have an axis k, that became workloads of uKernels."""
        return sum("K" in item["axes"] for item in self.data.get("workloads", ()))

    @property
    def row_reductions(self) -> int:
        """Number of reductions of rows (docs/rows.md) that became workloads of uKernels."""
        return len(self.data.get("workloads", ())) - self.products

    @property
    def fallback_kernels(self) -> int:
        """Number of fallback kernels that a call launches, with loops counted once."""
        return len(self.data.get("fallback_kernels", ()))

    @property
    def operators(self) -> Counter[str]:
        """The operators that became fallback kernels, and how many of each."""
        return Counter(kernel["operator"] for kernel in self.data.get("fallback_kernels", ()))

    @property
    def warning(self) -> str | None:
        """Sentences where uKernels carry little of the work, or a predicted time is implausible."""
        return self.data.get("warning")

    @property
    def growing(self) -> list[str]:
        """Operators that cost more than linearly in their data, with their places in the source."""
        items = (*self.data.get("workloads", ()), *self.data.get("fallback_kernels", ()))
        return [
            item["operator"] + (f" at {item['location']}" if item["location"] else "")
            for item in items
            if item.get("grows_beyond_data")
        ]

    @property
    def summary(self) -> str:
        """One line: the shares of uKernels at the last sizes, and the number of fallback kernels."""
        if not self.data:
            return f"{self.function}: its library does not tell"
        share = self.data["shares"][-1]
        parts = [
            f"{share[key]:.1%} of the {noun}"
            for key, noun in (("flops_share", "FLOPs"), ("time_share", "predicted time"))
            if share[key] is not None
        ]
        sizes = ", ".join(f"{name} = {size}" for name, size in share["sizes"].items())
        count = self.fallback_kernels
        return (
            f"{self.function}: "
            + (
                f"uKernels carry {' and '.join(parts)}"
                if parts
                else "no share of uKernels is known"
            )
            + (f" at {sizes}" if sizes else "")
            + self._open_sizes()
            + f", {count} fallback {'kernel' if count == 1 else 'kernels'}"
        )

    def _open_sizes(self) -> str:
        """Returns a remark on sizes without a declared maximum, or an empty string."""
        names = ", ".join(self.data.get("open_sizes", ()))
        return f" (no greatest {names} is declared)" if names else ""

    def __str__(self) -> str:
        lines = [self.summary]
        lines += [f"  {count} x {operator}" for operator, count in self.operators.most_common()]
        lines += [f"  costs more than linearly in its data: {place}" for place in self.growing]
        return "\n".join(lines)

    def __repr__(self) -> str:
        return f"<WorkReport of {self.summary}>"

    def _repr_html_(self) -> str:
        return preformatted(str(self))


#: A predicted time beyond this multiple of the operator's roofline is a warning, as in the compiler
#: (`kImplausibleRoofline`).
IMPLAUSIBLE_ROOFLINE = 50

#: Kinds of the work of kernels, by `kind_of`.
KINDS = (
    "linear", "batched products", "softmax", "norms", "other rows", "computing", "moving", "windows",
    "other products",
)  # fmt: skip
#: Kinds of chains and of fallback kernels by the kinds of their operators.
_OTHER_KINDS = {
    "contraction": "other products", "reduction": "other rows", "elementwise": "computing",
    "copy": "moving",
}  # fmt: skip
# Operations on elements that tell what a reduction of rows is.
_EXPONENTIALS, _ROOTS = ("math.exp", "math.exp2"), ("math.rsqrt", "math.sqrt")


def inner_operations(operator: str) -> list[str]:
    """The names within "linalg.generic (math.exp, arith.addf)"."""
    return operator.partition(" (")[2].rstrip(")").split(", ") if " (" in operator else []


def kind_of(kernel: Mapping[str, Any]) -> str:
    """One of KINDS for an entry of `workloads` or `fallback_kernels` of a work report.

    Convolutions and pools are windows. Products without a batch are linear, the others are batched,
    and those of fallback kernels are other products. Chains of elementwise operators, and fallback
    kernels without products, reduce, compute elements, or move and fill tensors. Libraries of
    earlier versions do not tell the kind of an operator; then a fallback kernel computes if its
    operator names operations.
    """
    inner = inner_operations(kernel["operator"])
    kind = kernel.get("kind")
    if kind == "window":
        return "windows"
    if "axes" not in kernel or kind in ("elementwise", "copy"):
        return _OTHER_KINDS.get(kind or "", "computing" if inner else "moving")
    if "K" in kernel["axes"]:
        batch = [size for axis, size in zip(kernel["axes"], kernel["extents"]) if axis[0] == "B"]
        return "linear" if all(size == 1 for size in batch) else "batched products"
    if any(name in inner for name in _EXPONENTIALS):
        return "softmax"
    return "norms" if any(name in inner for name in _ROOTS) else "other rows"


def _share(ukernels: float | None, others: float) -> float | None:
    if ukernels is None or ukernels + others <= 0:
        return None
    return ukernels / (ukernels + others)


_OPERATORS: dict[str, Callable[[float, float], float]] = {
    "*": lambda a, b: a * b,
    "floordiv": lambda a, b: math.floor(a / b) if b else 0,
    "ceildiv": lambda a, b: math.ceil(a / b) if b else 0,
    "mod": lambda a, b: a - b * math.floor(a / b) if b else 0,
}


def _words(formula: str, sizes: Iterable[str]) -> list[str]:
    """The names, numbers and signs of a formula of these sizes."""
    # Names may have any characters; longer ones first.
    names = "|".join(re.escape(name) for name in sorted(sizes, key=len, reverse=True))
    whole = rf"(?<![^\s(-])(?:{names})(?![^\s)])|" if names else ""
    return re.findall(rf"{whole}\d+|floordiv|ceildiv|mod|[-+*()]", formula)


# Fields of an entry of `workloads` or `fallback_kernels` that the function's sizes may stand in.
_FORMULAS = ("extents", "launches", "flops", "bytes", "accesses", "thread_loads", "blocks")


def known_sizes(work: Mapping[str, Any], given: Iterable[str]) -> set[str]:
    """The function's sizes that given ones tell: by their names, or by an axis of a workload that has just this extent."""
    names = {*given}
    known = names.intersection(work["sizes"])
    names -= known  # N is the size of that name, where there is one, and not the axis.
    for item in work["workloads"]:
        axes = zip(item["axes"], item["extents"])
        known.update(extent for axis, extent in axes if axis in names and extent in work["sizes"])
    return known


def missing_sizes(work: Mapping[str, Any], given: Iterable[str]) -> list[str]:
    """The sizes that the function's work follows from, and that given ones do not tell."""
    words: set[str] = set()
    for item in (*work["workloads"], *work["fallback_kernels"]):
        for value in (item.get(key) for key in _FORMULAS):
            for formula in value if isinstance(value, list) else [value]:
                if isinstance(formula, str):
                    words.update(_words(formula, work["sizes"]))
    known = known_sizes(work, given)
    return [name for name in work["sizes"] if name in words and name not in known]


def check_sizes_given(work: Mapping[str, Any], given: Iterable[str]) -> None:
    """Raises `ValueError` unless a function's work follows from sizes of these names."""
    missing = missing_sizes(work, given)
    if missing:
        examples = ",".join(f"{name}=64" for name in missing)
        raise ValueError(
            f"the sizes {', '.join(missing)} are not known: give them by --size {examples}"
        )


def evaluate(formula: int | str, sizes: Mapping[str, int]) -> float:
    """A formula of the manifest, such as "(T + 3) * 32"."""
    if isinstance(formula, int):
        return formula
    words = _words(formula, sizes)
    words.reverse()

    def atom() -> float:
        word = words.pop()
        if word == "(":
            value = total()
            words.pop()
            return value
        if word == "-":
            return -atom()
        return sizes[word] if word in sizes else int(word)

    def product() -> float:
        value = atom()
        while words and words[-1] in _OPERATORS:
            value = _OPERATORS[words.pop()](value, atom())
        return value

    def total() -> float:
        value = product()
        while words and words[-1] in "+-":
            sign = 1 if words.pop() == "+" else -1
            value += sign * product()
        return value

    return total()
