"""Configurations of operators, and the choice of the configurations to try.

A family's function builds one random configuration: it asks a `Pick` for each property, e.g.
`pick("axis", [-1, 0, 1])`, which draws one of the values and notes it. Of many random configurations
`covering.choose` keeps few that have all pairs of properties together.

Sizes are written as formulas of letters: the operand `["a", "2*b", 3]` has two sizes that may be unknown, and one that
is always known. A *point* gives each letter a size.
"""

from __future__ import annotations

import dataclasses
import functools
import re
import sys
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from onnx import defs

sys.path.insert(0, str(Path(__file__).parents[1]))
import covering

Array = np.ndarray
#: The last operator set that is tried, and the first.
FIRST, LAST = 7, 24

#: Sizes of letters: a point of even sizes, and so on. `one` is 1 always, but not known.
POINTS = {
    "even": {"a": 2, "b": 4, "c": 6, "d": 2, "e": 4, "h": 8, "w": 6, "v": 4, "n": 2},
    "odd": {"a": 3, "b": 5, "c": 7, "d": 3, "e": 1, "h": 7, "w": 9, "v": 5, "n": 3},
    "one": dict.fromkeys("abcdehwvn", 1),
    "zero": {"a": 0, "b": 3, "c": 4, "d": 2, "e": 2, "h": 5, "w": 6, "v": 4, "n": 2},
}


@dataclasses.dataclass
class Operand:
    """An input of an operator.

    Attributes:
        dtype: the type of its elements.
        shape: formulas of sizes; numbers are known sizes.
        make: makes values of a shape; None for the default values of the dtype.
        is_constant: whether it is an initializer; its sizes are then the same at all points.
        sizes: formulas of sizes that the operand lists as its elements: computed in the model from the shapes of
            other operands.
    """

    dtype: Any
    shape: Sequence[int | str]
    make: Callable[..., Array] | None = None
    is_constant: bool = False
    sizes: Sequence[int | str] | None = None


@dataclasses.dataclass
class Case:
    """A configuration.

    Attributes:
        operator, version: of ONNX.
        operands: None for one that is left out.
        attributes: of the node; an array is a tensor.
        outputs: the number of results; a list of flags names the results that are asked for.
        properties: what was picked.
        reference: computes the results by ONNX's text where onnxruntime departs from it, of the case, the operands and
            onnxruntime's results; None if the point is to be left out.
        departure: how onnxruntime departs.
        tolerance: factor on the tolerance of the type of element.
        points: other points than `POINTS`, by name.
        sources: further inputs of the model, whose sizes operands list.
    """

    operator: str
    version: int
    operands: list[Operand | None]
    attributes: dict[str, Any] = dataclasses.field(default_factory=dict)
    outputs: int | list[bool] = 1
    properties: dict[str, Any] = dataclasses.field(default_factory=dict)
    reference: Callable[..., Any] | None = None
    departure: str = ""
    tolerance: float = 1.0
    points: dict[str, dict[str, int]] | None = None
    sources: list[Operand] = dataclasses.field(default_factory=list)

    @property
    def name(self) -> str:
        """Says what was picked, as a word that is unique among an operator's cases."""
        return " ".join(
            f"{key}={value}" for key, value in self.properties.items() if key != "version"
        )

    @property
    def seed(self) -> int:
        return zlib.crc32(f"{self.operator} {self.version} {self.name}".encode())


def size_of(formula: int | str, point: dict[str, int]) -> int:
    if isinstance(formula, int):
        return formula
    return eval(formula, {"one": 1, "max": max, "min": min}, point)


def letters_of(formula: int | str) -> set[str]:
    return set() if isinstance(formula, int) else set(re.findall(r"\b[a-z]\b", formula))


class Pick:
    """Draws properties, and notes them."""

    def __init__(self, rng: np.random.Generator, operator: str) -> None:
        self.rng = rng
        self.operator = operator
        self.properties: dict[str, Any] = {}
        self.version = self("version", versions_of(operator))

    def __call__(self, name: str, values: Sequence[Any]) -> Any:
        value = values[int(self.rng.integers(len(values)))]
        self.properties[name] = getattr(value, "__name__", value)
        return value

    def case(
        self, operands: list[Operand | None], attributes: dict[str, Any] | None = None, **more: Any
    ) -> Case:
        """The case of these operands; attributes that are None are left out."""
        given = {key: value for key, value in (attributes or {}).items() if value is not None}
        return Case(
            self.operator, self.version, operands, given, properties=self.properties, **more
        )


@functools.cache
def versions_of(operator: str) -> list[int]:
    """The operator sets to try: the one of FIRST, and those after it that changed the operator."""
    found = sorted(
        schema.since_version
        for schema in defs.get_all_schemas_with_history()
        if schema.name == operator
        and schema.domain == ""
        and not schema.deprecated
        and schema.since_version <= LAST
    )
    changed = [version for version in found if version > FIRST]
    return ([FIRST] if any(version <= FIRST for version in found) else []) + changed


FAMILIES: dict[str, Callable[[Pick], Case]] = {}


def operators(*names: str) -> Callable[[Callable[[Pick], Case]], Callable[[Pick], Case]]:
    """Registers a function that builds a random case of each of the operators."""

    def register(build: Callable[[Pick], Case]) -> Callable[[Pick], Case]:
        for name in names:
            assert name not in FAMILIES, name
            FAMILIES[name] = build
        return build

    return register


def candidates(operator: str, seed: int, count: int) -> list[Case]:
    """Different random cases of an operator."""
    rng = np.random.default_rng([seed, zlib.crc32(operator.encode())])
    found: dict[tuple[int, str], Case] = {}
    for _ in range(count):
        case = FAMILIES[operator](Pick(rng, operator))
        found.setdefault((case.version, case.name), case)
    return list(found.values())


def choose(
    operator: str, runs: Callable[[Case], bool], seed: int = 0, least: int = 8, count: int = 500
) -> list[Case]:
    """Cases of an operator that `runs` says onnxruntime runs: they have all pairs of properties that any has."""
    left = candidates(operator, seed, count)
    chosen: list[Case] = []
    for _ in range(8):
        indices, _ = covering.choose([case.properties for case in [*chosen, *left]])
        pairs = (
            set().union(*(covering.pairs(case.properties) for case in chosen)) if chosen else set()
        )
        every = [*chosen, *left]
        wanted = [every[index] for index in indices if index >= len(chosen)]
        wanted = [case for case in wanted if covering.pairs(case.properties) - pairs]
        if not wanted:
            break
        good = [case for case in wanted if runs(case)]
        chosen += good
        kept = {id(case) for case in wanted}
        left = [case for case in left if id(case) not in kept]
    for case in left:
        if len(chosen) >= least:
            break
        if runs(case):
            chosen.append(case)
    return chosen


# Values.

FLOATS = (np.float32, np.float16, np.float64)
INTEGERS = (np.int32, np.int64, np.int8, np.uint8, np.int16, np.uint16, np.uint32, np.uint64)


def normal(rng: np.random.Generator, shape: Sequence[int], dtype: Any, scale: float = 1.0) -> Array:
    """Values of any type about 0; small integers."""
    kind = np.dtype(dtype).kind
    if kind == "b":
        return rng.integers(0, 2, shape).astype(bool)
    if kind in "iu":
        return rng.integers(0 if kind == "u" else -9, 10, shape).astype(dtype)
    return (rng.standard_normal(shape) * scale).astype(dtype)


def special(rng: np.random.Generator, shape: Sequence[int], dtype: Any) -> Array:
    """Values of any type; some floats are NaN, infinite or zeros."""
    values = np.asarray(normal(rng, shape, dtype, 2.0))
    if values.dtype.kind not in "biu" and values.size:
        places = rng.random(values.shape) < 0.15
        chosen = rng.choice(np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0]), values.shape)
        values = np.where(places, chosen, values.astype(np.float64)).astype(dtype)
    return values


def positive(rng: np.random.Generator, shape: Sequence[int], dtype: Any) -> Array:
    values = np.abs(normal(rng, shape, dtype))
    return (values + np.asarray(1 if np.dtype(dtype).kind in "iu" else 0.1, values.dtype)).astype(
        dtype
    )


def between(low: float, high: float) -> Callable[..., Array]:
    """Values from `low` up to `high`."""

    def make(rng: np.random.Generator, shape: Sequence[int], dtype: Any) -> Array:
        if np.dtype(dtype).kind in "iu":
            return rng.integers(int(low), int(high), shape).astype(dtype)
        return rng.uniform(low, high, shape).astype(dtype)

    return make


def data(dtype: Any, *shape: int | str, make: Callable[..., Array] | None = None) -> Operand:
    return Operand(dtype, list(shape), make)


def constant(value: Any, dtype: Any = np.int64) -> Operand:
    """An initializer of known values."""
    array = np.asarray(value, dtype)
    return Operand(dtype, list(array.shape), lambda rng, shape, dtype: array, is_constant=True)


def sizes(*formulas: int | str) -> Operand:
    """A list of sizes, which the model computes."""
    return Operand(np.int64, [len(formulas)], sizes=list(formulas))


def weights(dtype: Any, *shape: int, make: Callable[..., Array] | None = None) -> Operand:
    """An initializer of random values."""
    return Operand(dtype, list(shape), make, is_constant=True)
