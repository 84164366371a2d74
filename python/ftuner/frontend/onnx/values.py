"""Values of a graph while it is emitted, and the types of their elements."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from onnx import TensorProto, helper

from .sizes import Size

Array = np.ndarray[Any, Any]

#: Maximum number of elements of a folded result. Operators on weights (`folding.py`) may give as many as an operand.
MAX_ELEMENTS = 4096

#: MLIR's types of elements by ONNX's types; operations tell signed from unsigned.
ELEMENTS: dict[int, str] = {
    TensorProto.BOOL: "i1",
    TensorProto.INT8: "i8",
    TensorProto.INT16: "i16",
    TensorProto.INT32: "i32",
    TensorProto.INT64: "i64",
    TensorProto.UINT8: "i8",
    TensorProto.UINT16: "i16",
    TensorProto.UINT32: "i32",
    TensorProto.UINT64: "i64",
    TensorProto.FLOAT16: "f16",
    TensorProto.BFLOAT16: "bf16",
    TensorProto.FLOAT: "f32",
    TensorProto.DOUBLE: "f64",
}

UNSIGNED = frozenset(
    [
        TensorProto.BOOL,
        TensorProto.UINT8,
        TensorProto.UINT16,
        TensorProto.UINT32,
        TensorProto.UINT64,
    ]
)
FLOATS = frozenset(
    [TensorProto.FLOAT16, TensorProto.BFLOAT16, TensorProto.FLOAT, TensorProto.DOUBLE]
)
HALVES = frozenset([TensorProto.FLOAT16, TensorProto.BFLOAT16])
#: Kind of an index of MLIR, which no tensor of ONNX has.
INDEX = -1


def element_of(kind: int) -> str:
    return "index" if kind == INDEX else ELEMENTS[kind]


def bits_of(kind: int) -> int:
    return int(element_of(kind).lstrip("bfi"))


def dtype_of(kind: int) -> Any:
    """The type of NumPy."""
    return helper.tensor_dtype_to_np_dtype(kind)


def kind_of(dtype: Any) -> int:
    return int(helper.np_dtype_to_tensor_dtype(np.dtype(dtype)))


@dataclass(eq=False)
class Value:
    """A tensor of the graph.

    Attributes:
        kind: the type of its elements in ONNX.
        dims: its sizes.
        ssa: its name in MLIR; None until a computation needs it (`Emitter.use`).
        array: its elements, if they are known before a run.
        sizes: its elements as sizes (an array of objects, None for an unknown one), for integers
            that come from shapes.
        origin: node that made it, for operators that look at their operands.
        name: in the graph.
    """

    kind: int
    dims: tuple[Size, ...]
    ssa: str | None = None
    array: Array | None = None
    sizes: Array | None = None
    origin: Any = None
    name: str = ""

    @property
    def rank(self) -> int:
        return len(self.dims)

    @property
    def element(self) -> str:
        return element_of(self.kind)

    @property
    def type(self) -> str:
        return tensor_type(self.dims, self.element)

    @property
    def is_small(self) -> bool:
        """Returns whether the elements are known, few, and not in MLIR yet."""
        return self.array is not None and self.ssa is None and self.array.size <= MAX_ELEMENTS

    @property
    def is_float(self) -> bool:
        return self.kind in FLOATS

    @property
    def is_known(self) -> bool:
        return self.array is not None or (
            self.sizes is not None and all(size is not None for size in self.sizes.flat)
        )

    def known_sizes(self) -> list[Size] | None:
        """All elements of a list or scalar of integers as sizes; None if one is not known."""
        if self.array is not None:
            return [int(number) for number in self.array.flat]
        if self.sizes is None or not self.is_known:
            return None
        return [*self.sizes.flat]


def tensor_type(dims: Sequence[Size], element: str) -> str:
    return "tensor<" + "".join(f"{d if isinstance(d, int) else '?'}x" for d in dims) + f"{element}>"


__all__ = [
    "ELEMENTS", "FLOATS", "HALVES", "INDEX", "MAX_ELEMENTS", "UNSIGNED", "Array", "Value", "bits_of", "dtype_of",
    "element_of", "kind_of", "tensor_type",
]  # fmt: skip
