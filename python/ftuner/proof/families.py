"""The fixed set of families of each codegen path: share/ftuner/proofs, a file for each.

A family is one operator by a given plan: a product, one of row_operators.py or one of
pointwise_operators.py. Its file is in the path's own folder, `proof.json`.
"""

from __future__ import annotations

import functools
import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .. import locations
from ..errors import Error
from . import pointwise_operators, row_operators

FORMAT_VERSION = 1

#: Types of factors: that of their elements, their bytes, and that of sums.
_FACTORS = {
    "f32": ("f32", 4, "f32"),
    "tf32": ("f32", 4, "f32"),
    "tf32-truncate": ("f32", 4, "f32"),
    "f16": ("f16", 2, "f32"),
    "bf16": ("bf16", 2, "f32"),
    "i8": ("i8", 1, "i32"),
}


@dataclass(frozen=True)
class Family:
    """A kernel family and the operator that it computes.

    Attributes:
        path, name: the codegen path, and what the family is called in reports.
        gate: the gate of the path that it is behind, a field of its schedules (docs/check-gpu.md);
            empty for a family of the path itself.
        type: of the elements, f32, f16 or bf16; of a product's factors also tf32, tf32-truncate or
            i8.
        schedule, tiles, axis: as `#ukernel.family` has them.
        fallback: schedule and tile of the family for operands that are not aligned.
        sizes: of the axes; several, which one module serves, where the axis is dynamic.
        offset: elements by which operands begin after an aligned address.
        capability: the least compute capability.
    """

    path: str
    name: str
    type: str
    schedule: str
    tiles: tuple[tuple[int, ...], ...]
    fallback: tuple[str, tuple[int, ...]]
    sizes: Mapping[str, int | Sequence[int]]
    axis: int = 0
    offset: int = 0
    capability: tuple[int, int] = field(default=(0, 0), kw_only=True)
    gate: str = field(default="", kw_only=True)

    @property
    def group(self) -> str:
        """The name of its set: "PATH" or "PATH.GATE"."""
        return f"{self.path}.{self.gate}" if self.gate else self.path

    @property
    def symbol(self) -> str:
        """Its function's name, of which the kernels' are made: no other family has it."""
        return re.sub(r"[^a-z0-9]+", "_", f"{self.path} {self.name}".lower()).strip("_")

    def shapes(self) -> list[dict[str, int]]:
        """The sizes of each run."""
        counts = [len(size) for size in self.sizes.values() if not isinstance(size, int)]
        return [
            {
                axis: size if isinstance(size, int) else size[number % len(size)]
                for axis, size in self.sizes.items()
            }
            for number in range(max(counts, default=1))
        ]

    def operands(self) -> list[tuple[str, str]]:
        """Type and axes of each argument."""
        raise NotImplementedError

    def results(self) -> list[tuple[str, str]]:
        """Type and axes of each result."""
        raise NotImplementedError

    def text(self) -> str:
        """The module: an operator that is formed, with its plan.

        The texts of several families, one after the other, are a module, too.
        """
        raise NotImplementedError

    def tensor(self, kind: str, axes: str) -> str:
        """The type of a tensor."""
        sizes = [self.sizes[axis] for axis in axes]
        dims = "".join(f"{size if isinstance(size, int) else '?'}x" for size in sizes)
        return f"tensor<{dims}{kind}>"


@dataclass(frozen=True)
class Product(Family):
    """A product of matrices.

    Attributes:
        lhs, rhs, out: axes of the operands; m, n, k and batch axes, as einsum has them. Tiles are
            given without batch axes along which they are 1.
        split: slices of k.
        result: type of the result, where it is not that of the sums.
        bias: whether a vector along n is added.
    """

    lhs: str = "mk"
    rhs: str = "kn"
    out: str = "mn"
    split: int = 1
    result: str = ""
    bias: bool = False

    @property
    def element(self) -> str:
        return _FACTORS[self.type][0]

    @property
    def accumulator(self) -> str:
        return _FACTORS[self.type][2]

    @property
    def result_type(self) -> str:
        return self.result or self.accumulator

    def operands(self) -> list[tuple[str, str]]:
        factors = [(self.element, self.lhs), (self.element, self.rhs)]
        return [*factors, (self.accumulator, "n")] if self.bias else factors

    def results(self) -> list[tuple[str, str]]:
        return [(self.result_type, self.out)]

    def text(self) -> str:
        batches = [axis for axis in self.out if axis not in "mn"]
        axes = ["m", "n", "k", *batches]
        dynamic = {axis for axis, size in self.sizes.items() if not isinstance(size, int)}
        element, _, accumulator = _FACTORS[self.type]

        def affine_map(operand_axes: str) -> str:
            return f"affine_map<({', '.join(axes)}) -> ({', '.join(operand_axes)})>"

        a, b = self.tensor(element, self.lhs), self.tensor(element, self.rhs)
        bias, result = self.tensor(accumulator, "n"), self.tensor(self.result_type, self.out)
        lines = []
        for axis in self.out:
            if axis in dynamic:
                name, operand_axes, kind = (
                    ("a", self.lhs, a) if axis in self.lhs else ("b", self.rhs, b)
                )
                lines.append(f"%at_{axis} = arith.constant {operand_axes.index(axis)} : index")
                lines.append(f"%size_{axis} = tensor.dim %{name}, %at_{axis} : {kind}")
        sizes = ", ".join(f"%size_{axis}" for axis in self.out if axis in dynamic)
        zero = "0" if accumulator == "i32" else "0.0"
        lines.append(f"%zero = arith.constant {zero} : {accumulator}")
        lines.append(f"%e = tensor.empty({sizes}) : {result}")
        maps = [self.lhs, self.rhs, *(["n"] if self.bias else []), self.out]
        precision = {"tf32": "precision = tf32", "tf32-truncate": "precision = tf32 truncated"}
        arguments = f"%a: {a}, %b: {b}" + (f", %bias: {bias}" if self.bias else "")
        setup = "\n    ".join(lines)
        return f"""
ukernel.plan @plan_of_{self.symbol} {self._plan(len(batches))}
func.func @{self.symbol}({arguments}) -> {result} {{
    {setup}
    %r = ukernel.workload plan(@plan_of_{self.symbol}) ins(%a, %b : {a}, {b})
        init(%zero : {accumulator}) {f"extras(%bias : {bias})" if self.bias else ""}
        outs(%e : {result})
        maps = [{", ".join(map(affine_map, maps))}]
        {precision.get(self.type, "")}
        contract {{
        ^bb0(%x: {element}, %y: {element}, %s: {accumulator}):{self._product(element, accumulator)}
          ukernel.yield %t : {accumulator}
        }} {self._epilogue(accumulator)} -> {result}
    return %r : {result}
}}
"""

    def _plan(self, batches: int) -> str:
        def family(schedule: str, axis: int, tiles: Sequence[Sequence[int]], split: int) -> str:
            text = ", ".join(str([*tile, *[1] * (3 + batches - len(tile))]) for tile in tiles)
            slices = f", split = {split}" if split > 1 else ""
            return f"<#ukernel.{self.path}<{schedule}>, axis = {axis}, tiles = [{text}]{slices}>"

        families = [family(self.schedule, self.axis, self.tiles, self.split)]
        families.append(family(self.fallback[0], 0, [self.fallback[1]], 1))
        return (
            f"<families = [{', '.join(families)}], choices = [], general = 0, "
            "unaligned_general = 1>"
        )

    @staticmethod
    def _product(element: str, accumulator: str) -> str:
        letter = "i" if accumulator == "i32" else "f"
        factors, casts = ("%x", "%y"), ""
        if element != accumulator:
            cast = "extsi" if letter == "i" else "extf"
            factors = ("%xe", "%ye")
            casts = "".join(
                f"\n          {wide} = arith.{cast} {narrow} : {element} to {accumulator}"
                for wide, narrow in zip(factors, ("%x", "%y"))
            )
        return (
            f"{casts}\n          %p = arith.mul{letter} {factors[0]}, {factors[1]} : {accumulator}"
            f"\n          %t = arith.add{letter} %s, %p : {accumulator}"
        )

    def _epilogue(self, accumulator: str) -> str:
        if not self.bias and self.result_type == accumulator:
            return ""
        letter = "i" if accumulator == "i32" else "f"
        lines, value = [], "%sum"
        if self.bias:
            lines.append(f"%biased = arith.add{letter} {value}, %of_column : {accumulator}")
            value = "%biased"
        if self.result_type != accumulator:
            lines.append(f"%rounded = arith.truncf {value} : {accumulator} to {self.result_type}")
            value = "%rounded"
        arguments = f"%sum: {accumulator}" + (f", %of_column: {accumulator}" if self.bias else "")
        body = "\n          ".join([*lines, f"ukernel.yield {value} : {self.result_type}"])
        return f"epilogue {{\n        ^bb0({arguments}):\n          {body}\n        }}"


@dataclass(frozen=True)
class TableFamily(Family):
    """One operator of a table, which names the axes of its inputs and outputs.

    Attributes:
        operator: its name in the table.
    """

    operator: str = ""

    @property
    def entry(self) -> row_operators.RowOperator | pointwise_operators.PointwiseOperator:
        """The operator in its table."""
        raise NotImplementedError

    def operands(self) -> list[tuple[str, str]]:
        return [(self.type, axes) for axes in self.entry.inputs]

    def results(self) -> list[tuple[str, str]]:
        return [(self.type, axes) for axes in self.entry.outputs]

    def _module(
        self, operation: str, maps: str, regions: str, plan: str, scalars: Mapping[str, str] = {}
    ) -> str:
        """The plan, and a function that makes empty results and calls the operation.

        scalars: further inputs of type f32, and the line that makes each.
        """
        inputs = [self.tensor(*operand) for operand in self.operands()]
        outputs = [self.tensor(*result) for result in self.results()]
        dynamic = {axis for axis, size in self.sizes.items() if not isinstance(size, int)}
        lines = []
        for number, axis in enumerate(self.entry.inputs[0]):
            lines.append(f"%at_{axis} = arith.constant {number} : index")
            lines.append(f"%size_{axis} = tensor.dim %x0, %at_{axis} : {inputs[0]}")
        lines += scalars.values()
        for number, (axes, output) in enumerate(zip(self.entry.outputs, outputs)):
            sizes = ", ".join(f"%size_{axis}" for axis in axes if axis in dynamic)
            lines.append(f"%e{number} = tensor.empty({sizes}) : {output}")
        setup = "\n    ".join(lines)
        given = [f"%x{number}" for number in range(len(inputs))]
        made = ", ".join(f"%e{number}" for number in range(len(outputs)))
        several = len(outputs) > 1
        values = ", ".join(f"%y#{number}" if several else "%y" for number in range(len(outputs)))
        arguments = ", ".join(f"{name}: {type}" for name, type in zip(given, inputs))
        results = ", ".join(outputs)
        return f"""
ukernel.plan @plan_of_{self.symbol} {plan}
func.func @{self.symbol}({arguments}) -> ({results}) {{
    {setup}
    %y{f":{len(outputs)}" if several else ""} = {operation} plan(@plan_of_{self.symbol})
        ins({", ".join([*given, *scalars])} : {", ".join([*inputs, *["f32"] * len(scalars)])})
        outs({made} : {results})
        maps = [{maps}]
        {regions} -> {results}
    return {values} : {results}
}}
"""


@dataclass(frozen=True)
class RowReduction(TableFamily):
    """A reduction of rows: m rows of r elements, an operator of `row_operators`.

    Attributes:
        split: slices of a row, which blocks share out.
    """

    split: int = 1

    @property
    def entry(self) -> row_operators.RowOperator:
        return row_operators.OPERATORS[self.operator]

    def text(self) -> str:
        maps = ", ".join(
            f"affine_map<(m, r) -> ({', '.join(axes)})>"
            for axes in (*self.entry.inputs, "", *self.entry.outputs)
        )
        count = (
            "%integer = arith.index_cast %size_r : index to i32\n"
            "    %count = arith.sitofp %integer : i32 to f32"
        )
        regions = self.entry.regions(self.type)
        return self._module("ukernel.row_reduction", maps, regions, self._plan(), {"%count": count})

    def _plan(self) -> str:
        def family(schedule: str, axis: int, tiles: Sequence[Sequence[int]], split: int) -> str:
            text = ", ".join(map(str, map(list, tiles)))
            slices = f", split = {split}" if split > 1 else ""
            return (
                f"<#ukernel.{self.path}<{schedule}>, axis = {axis}, tiles = [{text}], "
                f"reduce = [1]{slices}>"
            )

        families = [family(self.schedule, self.axis, self.tiles, self.split)]
        # The set's own fallback is for rows along memory; others take any alignment themselves.
        if self.entry.inputs[0].endswith("r"):
            families.append(family(self.fallback[0], 0, [self.fallback[1]], 1))
        return (
            f"<families = [{', '.join(families)}], choices = [], general = 0, "
            f"unaligned_general = {len(families) - 1}>"
        )


@dataclass(frozen=True)
class Pointwise(TableFamily):
    """A chain of elementwise operators, an operator of `pointwise_operators`."""

    @property
    def entry(self) -> pointwise_operators.PointwiseOperator:
        return pointwise_operators.OPERATORS[self.operator]

    def text(self) -> str:
        regions = self.entry.regions(self.type)
        return self._module("ukernel.pointwise", self.entry.maps(), regions, self._plan())

    def _plan(self) -> str:
        taps = self.entry.taps
        reduced = ", reduce = [1]" if taps else ""

        def family(schedule: str, tile: Sequence[int]) -> str:
            return (
                f"<#ukernel.{self.path}<{schedule}>, axis = 0, tiles = [{[*tile, *taps]}]{reduced}>"
            )

        families = [family(self.schedule, self.tiles[0]), family(*self.fallback)]
        return (
            f"<families = [{', '.join(families)}], choices = [], general = 0, "
            "unaligned_general = 1>"
        )


@dataclass(frozen=True)
class ProofSet:
    """The families of a path, or of one of its gates, which are proven together.

    Attributes:
        group: its name, that of the path, or "PATH.GATE".
        capability: the least compute capability of cards that it is for, or with `is_exact` the
            only one.
    """

    group: str
    capability: tuple[int, int]
    is_exact: bool
    families: tuple[Family, ...]
    #: Hash of what the file says of them.
    digest: str

    def applies_to(self, capability: tuple[int, int]) -> bool:
        if self.is_exact:
            return capability == self.capability
        return capability >= self.capability

    def for_card(self, capability: tuple[int, int]) -> list[Family]:
        """The families that a card of that compute capability runs."""
        if not self.applies_to(capability):
            return []
        return [family for family in self.families if family.capability <= capability]


def parse_capability(text: str) -> tuple[int, int]:
    """`"9.0"` as numbers, which can be compared."""
    match = re.fullmatch(r"(\d+)\.(\d+)", text)
    if not match:
        raise ValueError(f"expected a compute capability such as 9.0, but got '{text}'")
    return int(match[1]), int(match[2])


def sets() -> dict[str, ProofSet]:
    """The sets by their names. Raises `Error` if the installation lacks one or has a wrong one."""
    return _sets_in(locations.find(locations.PROOFS))


@functools.cache
def _sets_in(folder: Path) -> dict[str, ProofSet]:
    return {one.group: one for file in sorted(folder.glob("*.json")) for one in _read(file)}


def _read(file: Path) -> list[ProofSet]:
    """The set of the path of a file, and the sets of its gates."""
    try:
        data = json.loads(file.read_bytes())
        if data["format_version"] != FORMAT_VERSION:
            raise ValueError(f"expected format_version {FORMAT_VERSION}")
        min_capability = parse_capability(data["capability"])
        is_exact = bool(data.get("exact", False))
        given = data.pop("families")
        found = []
        for gate in dict.fromkeys(["", *(one.get("gate", "") for one in given)]):
            own = {**data, "families": [one for one in given if one.get("gate", "") == gate]}
            digest = hashlib.sha256(json.dumps(own).encode()).hexdigest()
            group = f"{data['path']}.{gate}" if gate else data["path"]
            found.append(ProofSet(group, min_capability, is_exact, tuple(_families(own)), digest))
        return found
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise Error(f"cannot read the families of '{file}': {error!r}") from error


def _families(data: Mapping[str, Any]) -> Iterator[Family]:
    fallback = data["unaligned"]
    for given in data["families"]:
        fields = dict(given)
        sizes = {
            axis: size if isinstance(size, int) else tuple(size)
            for axis, size in fields.pop("sizes").items()
        }
        step = fallback["step_bytes"] // _FACTORS[fields["type"]][1]
        yield _class_of(fields.get("operator"))(
            path=data["path"],
            fallback=(fallback["schedule"], (*fallback["tile"], step)),
            sizes=sizes,
            tiles=tuple(map(tuple, fields.pop("tiles"))),
            capability=parse_capability(fields.pop("capability", "0.0")),
            **fields,
        )


def _class_of(operator: str | None) -> type[Product | RowReduction | Pointwise]:
    """The kind of family that computes an operator; without one a product."""
    if operator is None:
        return Product
    return Pointwise if operator in pointwise_operators.OPERATORS else RowReduction
