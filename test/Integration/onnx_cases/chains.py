"""Random graphs: an operator's configuration, or a chain of two or three operators with unknown sizes."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
from onnx import TensorProto, helper, numpy_helper

from .case import FAMILIES, Array, Pick
from .trials import UNKNOWN, Part, Point, Trial, trials_of

#: The operator set of chains.
VERSION = 18
#: Operators whose configurations are not parts of chains.
_SINGLE = ("Constant",)

UNARY = (
    "Relu",
    "Tanh",
    "Sigmoid",
    "Abs",
    "Neg",
    "Erf",
    "Exp",
    "Softplus",
    "HardSwish",
    "Sin",
    "Cos",
    "Sqrt2",
)
REDUCE = (
    "ReduceSum",
    "ReduceMean",
    "ReduceMax",
    "ReduceMin",
    "ReduceL2",
    "ReduceSumSquare",
    "ReduceLogSumExp",
)


@dataclasses.dataclass
class Chain:
    """A chain of operators on tensors of unknown sizes; it stands for a `Trial`.

    Attributes:
        part_: its graph.
        shapes: of the inputs, sizes by letters, which each point gives.
        points: the sizes at which it runs.
        key: says how to make it again.
    """

    key: str
    mark: str
    part_: Part
    shapes: list[list[str]]
    points: dict[str, Point]
    version: int = VERSION
    tolerance: float = 50.0
    mode: str = UNKNOWN

    def part(self, seed: int) -> Part:
        return self.part_

    def values(self, point: Point, seed: int) -> list[Array]:
        rng = np.random.default_rng([seed, *point.values()])
        shapes = [[point[letter] for letter in shape] for shape in self.shapes]
        return [np.asarray(rng.standard_normal(shape) * 0.7, np.float32) for shape in shapes]

    def by_text(self, arrays: list[Array], wanted: list[Array], seed: int) -> list[Array] | None:
        return wanted


class Builder:
    """Adds random nodes to a graph.

    Attributes:
        current: the value that the next node reads.
        rank: of it.
        is_whole: whether its sizes are at least 1 and no more is known, so that a position other than 0 may be outside.
    """

    def __init__(self, rng: np.random.Generator, mark: str) -> None:
        self.rng, self.mark = rng, mark
        self.part = Part([], [], [], [])
        self.shapes: list[list[str]] = []
        self.letters: list[str] = []
        #: Letters that a size is a multiple of, by letter.
        self.multiples: dict[str, int] = {}
        self.rank = int(rng.integers(1, 5))
        self.current = self.input([self.letter() for _ in range(self.rank)])
        #: Letters of the sizes of `current`; None for sizes that were computed.
        self.dims: list[str | None] = [*self.shapes[0]]

    def pick(self, values: Any) -> Any:
        return values[int(self.rng.integers(len(values)))]

    def letter(self) -> str:
        self.letters.append(f"s{len(self.letters)}")
        return self.letters[-1]

    def input(self, shape: list[str]) -> str:
        name = f"{self.mark}_x{len(self.part.inputs)}"
        dims = [f"{name}_{axis}" for axis in range(len(shape))]
        self.part.inputs.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, dims))
        self.shapes.append(shape)
        return name

    def constant(self, value: Any, dtype: Any = np.int64) -> str:
        name = f"{self.mark}_c{len(self.part.initializers)}"
        self.part.initializers.append(numpy_helper.from_array(np.asarray(value, dtype), name))
        return name

    def add(self, operator: str, inputs: list[str], outputs: int = 1, **attributes: Any) -> str:
        number = len(self.part.nodes)
        names = [f"{self.mark}_v{number}_{index}" for index in range(outputs)]
        node = helper.make_node(operator, inputs, names, name=f"{self.mark}_{number}", **attributes)
        self.part.nodes.append(node)
        return names[int(self.rng.integers(outputs))]

    def axis(self) -> int:
        return int(self.rng.integers(self.rank))

    def signed(self, axis: int) -> int:
        """Returns a number for the axis, which counts from the front or from the back."""
        return int(axis - self.rank * self.rng.integers(2))

    # Compute.

    def compute(self) -> None:
        kinds = [
            "unary",
            "unary",
            "binary",
            "binary",
            "reduce",
            "softmax",
            "product",
            "norm",
            "where",
            "self",
        ]
        kinds += (
            ["pool", "pool", "convolution", "instance_norm", "global"] if self.rank >= 3 else []
        )
        getattr(self, f"_{self.pick(kinds)}")()

    def _unary(self) -> None:
        name = self.pick(UNARY)
        if name == "Sqrt2":
            self.current = self.add("Sqrt", [self.add("Abs", [self.current])])
        else:
            self.current = self.add(name, [self.current])

    def _binary(self) -> None:
        kind = self.pick(["scalar", "row", "same", "ones"])
        if kind == "scalar" or None in self.dims:
            other = self.constant(0.75, np.float32)
        else:
            dims: list[Any] = [*self.dims]
            if kind == "row":
                dims = dims[-1:]
            elif kind == "ones":
                dims = [self._one() if self.rng.random() < 0.5 else dim for dim in dims]
            other = self.input(dims)
        pair = [self.current, other]
        self.current = self.add(
            self.pick(["Add", "Mul", "Sub", "Max", "Min"]), pair[:: self.pick([1, -1])]
        )

    def _one(self) -> str:
        self.letters.append(f"one{len(self.letters)}")
        return self.letters[-1]

    def _self(self) -> None:
        self.current = self.add(
            self.pick(["Mul", "Add"]), [self.current, self.add("Sigmoid", [self.current])]
        )

    def _where(self) -> None:
        zero = self.constant(0, np.float32)
        mask = self.add("Greater", [self.current, zero])
        self.current = self.add("Where", [mask, self.current, self.add("Neg", [self.current])])

    def _reduce(self) -> None:
        name, axis, keep = self.pick(REDUCE), self.axis(), self.pick([0, 1])
        if name == "ReduceMean" and None in self.dims:
            name = "ReduceSum"  # A computed size may be 0, and ONNX defines no mean of nothing.
        if name == "ReduceSum":
            self.current = self.add(
                name, [self.current, self.constant([self.signed(axis)])], keepdims=keep
            )
        else:
            axes = self.constant([self.signed(axis)])
            self.current = self.add(name, [self.current, axes], keepdims=keep)
        if keep:
            self.dims[axis] = None
        else:
            del self.dims[axis]
            self.rank -= 1

    def _softmax(self) -> None:
        if self.rank:
            self.current = self.add(
                self.pick(["Softmax", "LogSoftmax"]), [self.current], axis=self.signed(self.axis())
            )

    def _product(self) -> None:
        if self.rank < 1 or self.dims[-1] is None:
            return self._unary()
        width = self.letter()
        if self.rank == 2 and self.pick([True, False]):
            is_turned = self.pick([0, 1])
            shape = [width, self.dims[1]] if is_turned else [self.dims[1], width]
            self.current = self.add(
                "Gemm", [self.current, self.input(shape), self.input([width])], transB=is_turned
            )  # type: ignore[arg-type]
        else:
            self.current = self.add("MatMul", [self.current, self.input([self.dims[-1], width])])
        self.dims[-1] = width

    def _norm(self) -> None:
        if self.rank < 1 or self.dims[-1] is None:
            return self._unary()
        self.current = self.add(
            "LayerNormalization", [self.current, self.input([self.dims[-1]])], axis=-1
        )

    def _pool(self) -> None:
        sides = self.rank - 2
        name = self.pick(["MaxPool", "AveragePool", "LpPool"])
        kernel = [self.pick([1, 2, 3]) for _ in range(sides)]
        attributes: dict[str, Any] = {
            "kernel_shape": kernel,
            "strides": [self.pick([1, 2]) for _ in range(sides)],
        }
        if self.pick([True, False]):
            attributes["auto_pad"] = self.pick(["SAME_UPPER", "SAME_LOWER"])
        else:
            # So that a window fits in every image: onnxruntime counts a negative number of steps as one.
            attributes["pads"] = [size // 2 for size in kernel * 2]
        self.current = self.add(name, [self.current], **attributes)
        self.dims[2:] = [None] * sides

    def _convolution(self) -> None:
        sides, channels = self.rank - 2, self.dims[1]
        if channels is None:
            return self._unary()
        kernel = self.pick([1, 3])
        filters = self.constant(self.rng.standard_normal([4, 2, *[kernel] * sides]), np.float32)
        pair = self.add("Concat", [self._first_channel(), self._first_channel()], axis=1)
        self.current = self.add(
            "Conv",
            [pair, filters],
            pads=[kernel // 2] * 2 * sides,
            strides=[self.pick([1, 2])] * sides,
        )
        self.dims[1:] = [None] * (sides + 1)

    def _first_channel(self) -> str:
        return self.add(
            "Slice", [self.current, self.constant([0]), self.constant([1]), self.constant([1])]
        )

    def _instance_norm(self) -> None:
        if self.dims[1] is None:
            return self._unary()
        pair = [self.input([self.dims[1]]), self.input([self.dims[1]])]
        self.current = self.add("InstanceNormalization", [self.current, *pair])

    def _global(self) -> None:
        self.current = self.add(self.pick(["GlobalAveragePool", "GlobalMaxPool"]), [self.current])
        self.dims[2:] = [None] * (self.rank - 2)

    # Layout.

    def layout(self) -> None:
        kinds = ["reshape", "reshape", "unsqueeze", "expand", "flatten", "double_and_split"]
        if self.rank:
            kinds += [
                "transpose",
                "transpose",
                "slice",
                "slice",
                "concat",
                "pad",
                "gather",
                "tile",
                "split",
                "reverse",
            ]
        getattr(self, f"_{self.pick(kinds)}")()

    def _transpose(self) -> None:
        perm = [int(axis) for axis in self.rng.permutation(self.rank)]
        self.current = self.add("Transpose", [self.current], perm=perm)
        self.dims = [self.dims[axis] for axis in perm]

    def _size(self, axis: int) -> str:
        """A list of one size of the current value."""
        shape = self.add("Shape", [self.current])
        return self.add("Gather", [shape, self.constant([axis])], axis=0)

    def _reshape(self) -> None:
        forms = ["flat", "joined_by_sizes"] + (["columns", "joined"] if self.rank > 1 else [])
        form = self.pick(forms)
        if form == "flat" or self.rank < 2:
            self.current = self.add("Reshape", [self.current, self.constant([-1])])
            self.dims = [None]
        elif form == "columns":
            self.current = self.add("Reshape", [self.current, self.constant([0, -1])])
            self.dims = [self.dims[0], None]
        else:
            first = int(self.rng.integers(self.rank - 1))
            if form == "joined":
                rest = self.rank - first - 2
                # A zero copies the size at its place, so what follows must be one size.
                if rest:
                    first = self.rank - 2
                wanted = self.constant([0] * first + [-1])
            else:
                parts = [self._size(axis) for axis in range(first)] + [self.constant([-1])]
                parts += [self._size(axis) for axis in range(first + 2, self.rank)]
                wanted = self.add("Concat", parts, axis=0)
            self.current = self.add("Reshape", [self.current, wanted])
            self.dims[first : first + 2] = [None]
        self.rank = len(self.dims)

    def _double_and_split(self) -> None:
        """Joins a value with itself, so that one size is even, and splits that."""
        if not self.rank or self.rank > 4:
            return self._unsqueeze()
        axis = self.axis()
        pair = self.add("Concat", [self.current, self.current], axis=axis)
        parts = [2, -1] if self.pick([True, False]) else [-1, 2]
        if axis:
            lengths = (
                [self._size(index) for index in range(axis)]
                if self.pick([True, False])
                else [self.constant([0] * axis)]
            )
        else:
            lengths = []
        rest = [self._size(index) for index in range(axis + 1, self.rank)]
        wanted = self.add("Concat", [*lengths, self.constant(parts), *rest], axis=0)
        self.current = self.add("Reshape", [pair, wanted])
        self.dims[axis : axis + 1] = [None, None]
        self.rank += 1

    def _flatten(self) -> None:
        self.current = self.add(
            "Flatten", [self.current], axis=int(self.rng.integers(self.rank + 1))
        )
        self.dims, self.rank = [None, None], 2

    def _unsqueeze(self) -> None:
        axis = int(self.rng.integers(self.rank + 1))
        self.current = self.add("Unsqueeze", [self.current, self.constant([axis])])
        self.dims.insert(axis, None)
        self.rank += 1

    def _expand(self) -> None:
        axis = int(self.rng.integers(self.rank + 1))
        opened = self.add("Unsqueeze", [self.current, self.constant([axis])])
        if self.pick([True, False]):
            wanted = self.constant([3] + [1] * (self.rank - axis))
        else:
            parts = [self._size(index) for index in range(self.rank)]
            parts.insert(axis, self._size(self.axis()) if self.rank else self.constant([2]))
            wanted = self.add("Concat", parts, axis=0)
        self.current = self.add("Expand", [opened, wanted])
        self.dims.insert(axis, None)
        self.rank += 1

    def _slice(self) -> None:
        axis = self.axis()
        start, end, step = self.pick([(0, -1, 1), (1, 2**40, 1), (0, 2, 1), (-2, 2**40, 1), (0, 2**40, 2), (-1, -(2**40), -1),
                                      (-1, -(2**40), -2), (1, -1, 1)])  # fmt: skip
        values = [self.constant([value]) for value in (start, end, self.signed(axis), step)]
        self.current = self.add("Slice", [self.current, *values])
        self.dims[axis] = None

    def _reverse(self) -> None:
        axis = self.axis()
        values = [self.constant([value]) for value in (-1, -(2**63) + 1, axis, -1)]
        self.current = self.add("Slice", [self.current, *values])

    def _concat(self) -> None:
        axis = self.axis()
        other = self.add("Neg", [self.current])
        if None not in self.dims and self.pick([True, False]):
            dims: list[Any] = [*self.dims]
            dims[axis] = self.letter()
            other = self.input(dims)
        self.current = self.add("Concat", [self.current, other], axis=self.signed(axis))
        self.dims[axis] = None

    def _pad(self) -> None:
        mode = self.pick(["constant", "constant", "edge"])
        pads = [self.pick([0, 0, 1, 2]) for _ in range(2 * self.rank)]
        self.current = self.add("Pad", [self.current, self.constant(pads)], mode=mode)
        self.dims = [
            dim if not pads[i] and not pads[self.rank + i] else None
            for i, dim in enumerate(self.dims)
        ]

    def _gather(self) -> None:
        axis = self.axis()
        indices = self.pick([[0, -1, 0], [[0], [-1]], -1])
        self.current = self.add(
            "Gather", [self.current, self.constant(indices)], axis=self.signed(axis)
        )
        self.dims[axis : axis + 1] = [None] * np.ndim(indices)
        self.rank = len(self.dims)

    def _tile(self) -> None:
        repeats = [self.pick([1, 1, 2, 3]) for _ in range(self.rank)]
        self.current = self.add("Tile", [self.current, self.constant(repeats)])
        self.dims = [dim if count == 1 else None for dim, count in zip(self.dims, repeats)]

    def _split(self) -> None:
        axis = self.axis()
        pair = self.add("Concat", [self.current, self.current], axis=axis)
        self.current = self.add("Split", [pair], outputs=2, axis=self.signed(axis), num_outputs=2)


def _points(rng: np.random.Generator, letters: list[str]) -> dict[str, Point]:
    """Three points of sizes: two of any, one with sizes of 1."""
    found = {}
    for number, choices in enumerate(
        ([2, 3, 4, 5, 6, 7, 8], [1, 2, 3, 4, 5, 8, 9], [1, 1, 1, 2, 3])
    ):
        found[f"p{number}"] = {
            letter: 1 if letter.startswith("one") else int(choices[int(rng.integers(len(choices)))])
            for letter in letters
        }
    return found


def chain(seed: int, number: int, length: int | None = None) -> Chain:
    """A chain: an operator that computes, then operators of layout; of `length` steps at most."""
    rng = np.random.default_rng([seed, number])
    builder = Builder(rng, f"t{number}")
    steps = int(rng.integers(2, 4))
    for step in range(steps if length is None else min(length, steps)):
        if step == 0 or rng.random() < 0.25:
            builder.compute()
        else:
            builder.layout()
    part = builder.part
    part.outputs = [builder.current]
    points = _points(np.random.default_rng([seed, number, 1]), builder.letters)
    return Chain(f"{seed}:{number}", builder.mark, part, builder.shapes, points)


def single(seed: int, number: int) -> Trial | None:
    """A random configuration of a random operator with all sizes unknown."""
    rng = np.random.default_rng([seed, number, 2])
    names = sorted(name for name in FAMILIES if name not in _SINGLE)
    name = names[int(rng.integers(len(names)))]
    case = FAMILIES[name](Pick(rng, name))
    found = [trial for trial in trials_of(case) if trial.mode == UNKNOWN]
    if not found:
        return None
    found[0].mark = f"t{number}"
    return found[0]


def graph(seed: int, number: int, length: int | None = None) -> Chain | Trial | None:
    """Graph `number` of a seed: a chain, or one operator of three."""
    if number % 3 == 0:
        return single(seed, number)
    return chain(seed, number, length)
