"""A configuration with its sizes unknown, known, or some of each; and models of several trials."""

from __future__ import annotations

import ast
import dataclasses
import warnings
import zlib
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

from .case import LAST, POINTS, Array, Case, Operand, letters_of, size_of, versions_of

UNKNOWN, SOME, KNOWN = MODES = ("unknown", "some", "known")

Point = dict[str, int]


@dataclasses.dataclass
class Part:
    """The part of a model that is a trial.

    Attributes:
        inputs: names and types of its inputs.
        outputs: names of its results.
        nodes, initializers: of the graph.
    """

    inputs: list[Any]
    outputs: list[str]
    nodes: list[Any]
    initializers: list[Any]


@dataclasses.dataclass
class Trial:
    """A configuration in a mode of sizes.

    Attributes:
        case: the configuration.
        mode: one of MODES.
        known: letters whose sizes are known; None for all, those without letters included.
        points: the sizes at which it runs, by name.
        mark: stands before the names of its values and node in a model.
    """

    case: Case
    mode: str
    known: set[str] | None
    points: dict[str, Point]
    mark: str = "t"

    @property
    def key(self) -> str:
        points = f"@{','.join(self.points)}" if self.mode == KNOWN else ""
        return f"{self.case.operator}-{self.case.version} {self.case.name} [{self.mode}{points}]"

    @property
    def version(self) -> int:
        """The operator set of the model: the last one for an operator's newest form."""
        version = self.case.version
        return LAST if version == versions_of(self.case.operator)[-1] else version

    @property
    def tolerance(self) -> float:
        return self.case.tolerance

    def part(self, seed: int) -> Part:
        return part_of(self, seed)

    def values(self, point: Point, seed: int) -> list[Array]:
        return values_of(self, point, seed)

    def by_text(self, arrays: list[Array], wanted: list[Array], seed: int) -> list[Array] | None:
        """The results by ONNX's text: onnxruntime's, unless it departs from the text; None for a point to leave out."""
        if self.case.reference is None:
            return wanted
        constants, left = constants_of(self, seed), iter(arrays)
        operands = [
            None if operand is None else constants[index] if operand.is_constant else next(left)
            for index, operand in enumerate(self.case.operands)
        ]
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            return self.case.reference(self.case, operands, wanted)

    def is_known(self, formula: int | str) -> bool:
        if isinstance(formula, int) or self.known is None:
            return True
        letters = letters_of(formula)
        return bool(letters) and letters <= self.known


def points_of(case: Case) -> dict[str, Point]:
    """The points of a case, each different one once."""
    letters = set().union(
        *(letters_of(size) for operand in inputs_of(case) for size in operand.shape)
    )
    found: dict[str, Point] = {}
    for name, point in (case.points or POINTS).items():
        own = {letter: point[letter] for letter in sorted(letters)}
        if own not in found.values():
            found[name] = own
    return found


def inputs_of(case: Case) -> list[Operand]:
    """The operands that are inputs of the model, and the sources of sizes."""
    operands = [operand for operand in case.operands if operand is not None]
    return [o for o in operands if not o.is_constant and o.sizes is None] + case.sources


def trials_of(case: Case, known_points: int = 2) -> Iterator[Trial]:
    """The trials of a case: all sizes unknown, some, and none, at so many points."""
    points, rng = points_of(case), np.random.default_rng(case.seed)
    formulas = {
        size for operand in inputs_of(case) for size in operand.shape if isinstance(size, str)
    }
    letters = sorted(set().union(*map(letters_of, formulas)))
    if formulas:
        yield Trial(case, UNKNOWN, set(), points)
    if len(letters) > 1:
        known = {letter for letter in letters if rng.random() < 0.5}
        if not 0 < len(known) < len(letters):
            known = {letters[int(rng.integers(len(letters)))]}
        base = points["odd" if rng.random() < 0.5 and "odd" in points else next(iter(points))]
        some = {
            name: {k: base[k] if k in known else v for k, v in point.items()}
            for name, point in points.items()
        }
        yield Trial(case, SOME, known, some)
    names = [*points]
    start = zlib.crc32(case.name.encode()) % len(names)
    for number in range(min(known_points, len(names)) if formulas else 1):
        name = names[(start + number) % len(names)]
        yield Trial(case, KNOWN, None, {name: points[name]})


def values_of(trial: Trial, point: Point, seed: int) -> list[Array]:
    """Random values of the inputs at a point."""
    case = trial.case
    rng = np.random.default_rng([seed, case.seed, zlib.crc32(repr(point).encode())])
    return [_value(rng, operand, point) for operand in inputs_of(case)]


def _value(rng: np.random.Generator, operand: Operand, point: Point) -> Array:
    from .case import normal

    shape = [size_of(size, point) for size in operand.shape]
    return np.asarray((operand.make or normal)(rng, shape, operand.dtype), operand.dtype)


def constants_of(trial: Trial, seed: int) -> dict[int, Array]:
    """The initializers of a trial by their places among the operands; the same at all points."""
    rng = np.random.default_rng([seed, trial.case.seed])
    return {
        index: _value(rng, operand, {})
        for index, operand in enumerate(trial.case.operands)
        if operand is not None and operand.is_constant
    }


def part_of(trial: Trial, seed: int) -> Part:
    """The graph of a trial, whose names begin with its mark."""
    case, mark = trial.case, trial.mark
    part = Part([], [], [], [])
    constants = constants_of(trial, seed)
    names, dims = [], {}
    operands = list(enumerate(case.operands))
    for index, operand in operands + [
        (len(operands) + i, source) for i, source in enumerate(case.sources)
    ]:
        if operand is None:
            names.append("")
            continue
        name = f"{mark}_x{index}"
        names.append(name)
        if operand.sizes is not None:
            continue
        if operand.is_constant:
            part.initializers.append(numpy_helper.from_array(constants[index], name))
            continue
        shape = []
        for axis, size in enumerate(operand.shape):
            dims.setdefault(size, (name, axis))
            known = trial.is_known(size)
            shape.append(
                size_of(size, next(iter(trial.points.values()))) if known else f"{name}_{axis}"
            )
        kind = helper.np_dtype_to_tensor_dtype(np.dtype(operand.dtype))
        part.inputs.append(helper.make_tensor_value_info(name, kind, shape))
    for index, operand in operands:
        if operand is not None and operand.sizes is not None:
            _compute_sizes(part, operand, names[index], dims)
    wanted = case.outputs if isinstance(case.outputs, list) else [True] * case.outputs
    results = [f"{mark}_y{index}" if flag else "" for index, flag in enumerate(wanted)]
    part.outputs = [name for name in results if name]
    attributes = {
        key: numpy_helper.from_array(value, "value") if isinstance(value, np.ndarray) else value
        for key, value in case.attributes.items()
    }
    used = names[: len(case.operands)]
    part.nodes.append(helper.make_node(case.operator, used, results, name=mark, **attributes))
    return part


def _compute_sizes(
    part: Part, operand: Operand, name: str, dims: dict[Any, tuple[str, int]]
) -> None:
    """Adds nodes that compute a list of sizes, or one size, from the shapes of the inputs."""
    scalar = not operand.shape

    def fixed(value: int) -> str:
        label = f"{name}_c{len(part.initializers)}"
        part.initializers.append(
            numpy_helper.from_array(np.array(value if scalar else [value], np.int64), label)
        )
        return label

    def add(kind: str, inputs: list[str], **attributes: Any) -> str:
        label = f"{name}_n{len(part.nodes)}"
        part.nodes.append(helper.make_node(kind, inputs, [label], name=label, **attributes))
        return label

    def value(formula: int | str) -> str:
        if isinstance(formula, int):
            return fixed(formula)
        if formula in dims:
            source, axis = dims[formula]
            return add("Gather", [add("Shape", [source]), fixed(axis)], axis=0)
        node = ast.parse(formula, mode="eval").body
        assert isinstance(node, ast.BinOp), formula
        sides = [
            side.value if isinstance(side, ast.Constant) else ast.unparse(side)
            for side in (node.left, node.right)
        ]
        kinds = {ast.Mult: "Mul", ast.Add: "Add", ast.Sub: "Sub"}
        return add(kinds[type(node.op)], [value(side) for side in sides])

    found = [value(formula) for formula in operand.sizes or ()]
    part.nodes.append(
        helper.make_node("Identity", found, [name], name=f"{name}_all")
        if scalar
        else helper.make_node("Concat", found, [name], name=f"{name}_all", axis=0)
    )


def model_of(
    parts: Sequence[Part], version: int, results: dict[str, tuple[Any, int]] | None = None
) -> Any:
    """The model of these parts; results have a dtype and a rank, or no type."""
    outputs = []
    for part in parts:
        for name in part.outputs:
            if results is None:
                outputs.append(helper.make_empty_tensor_value_info(name))
            else:
                dtype, rank = results[name]
                kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
                outputs.append(helper.make_tensor_value_info(name, kind, [None] * rank))
    graph = helper.make_graph(
        [node for part in parts for node in part.nodes],
        "sweep",
        [value for part in parts for value in part.inputs],
        outputs,
        [tensor for part in parts for tensor in part.initializers],
    )
    imports = [helper.make_opsetid("", version)]
    return onnx.helper.make_model(
        graph, opset_imports=imports, ir_version=11 if version > 22 else 10
    )
