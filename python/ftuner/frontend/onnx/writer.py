"""Text of a function: operations at their places, sizes as arithmetic on indices, constants, weights."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from onnx import TensorProto

from . import sizes as arithmetic
from .scalars import Scalar, format_dense, format_scalar, quoted
from .sizes import Atom, Expr, Size
from .values import INDEX, Array, Value, dtype_of, element_of, kind_of, tensor_type


class Writer:
    """Writes operations with their operands; `Emitter` computes.

    Attributes:
        node: what is emitted at present, a `registry.Node`.
        weights: known values that are arguments of the function, `%weight0` and so on.
    """

    def __init__(self) -> None:
        self.node: Any = None
        self.location = ""
        self._locations: dict[str, str] = {}
        self._header: list[str] = []
        self._main: list[Any] = []
        #: Lines to which operations are added: the function, or a loop inside of it.
        self._lines: list[Any] = self._main
        self._count = 0
        self._constants: dict[str, str] = {}
        self._indices: dict[object, str] = {}
        self._checked: set[object] = set()
        self.caller: Callable[..., Any] | None = None
        self.weights: dict[str, Value] = {}

    # Text.

    def fresh(self) -> str:
        self._count += 1
        return f"%v{self._count}"

    def line(self, text: str) -> None:
        """Adds an operation."""
        self._lines.append(text + self.location)

    def line_of(self, call: Any) -> None:
        """Adds a call whose text, `call.lines()`, is known only after all nodes are emitted."""
        self._lines.append(call)

    def op(self, text: str) -> str:
        """Adds an operation with one result; returns its name."""
        name = self.fresh()
        self.line(f"{name} = {text}")
        return name

    def at(self, name: str) -> str:
        """Makes a node's name the location of the operations that follow; returns the previous location."""
        before = self.location
        alias = self._locations.setdefault(name, f"#loc{len(self._locations)}")
        self.location = f" loc({alias})"
        return before

    def text(self) -> list[str]:
        lines = [*self._header]
        for line in self._main:
            lines += [line] if isinstance(line, str) else line.lines()
        return lines

    def aliases(self) -> list[str]:
        return [f"{alias} = loc({quoted(name)})" for name, alias in self._locations.items()]

    # Sizes.

    def define_symbol(self, name: str, argument: str, dim: int, type_: str) -> None:
        """Reads a symbol from the first argument that has it."""
        atom = Atom("symbol", (name,))
        if atom in self._indices:
            return
        place = self.scalar(dim, INDEX)
        result = self.fresh()
        self._header.append(f"{result} = tensor.dim {argument}, {place} : {type_}{self.location}")
        self._indices[atom] = result

    def dim_of(self, ssa: str, dim: int, type_: str) -> Expr:
        """A new symbol for a size that only one value has."""
        place = self.scalar(dim, INDEX)
        result = self.op(f"tensor.dim {ssa}, {place} : {type_}")
        atom = Atom("symbol", (f"{result}",))
        self._indices[atom] = result
        return Expr((((atom,), 1),))

    def size_of(self, ssa: str) -> Expr:
        """An index as a size; inside of a loop the size is not combined with others, which are computed outside."""
        atom = Atom("symbol", (ssa,))
        self._indices[atom] = ssa
        size = Expr((((atom,), 1),))
        self._indices[size] = ssa
        return size

    def index(self, size: Size) -> str:
        """The name of a size as an index."""
        if isinstance(size, int):
            return self.scalar(size, INDEX)
        if size in self._indices:
            return self._indices[size]
        total = ""
        for monomial, factor in size.terms:
            names = [self._atom(atom) for atom in monomial]
            if factor not in (1, -1) or not names:
                names.append(self.scalar(factor if not names else abs(factor), INDEX))
            term = names[0]
            for name in names[1:]:
                term = self._index_op(f"arith.muli {term}, {name} : index")
            if monomial and factor < 0:
                before = total or self.scalar(0, INDEX)
                total = self._index_op(f"arith.subi {before}, {term} : index")
            else:
                total = self._index_op(f"arith.addi {total}, {term} : index") if total else term
        self._indices[size] = total
        return total

    def _index_op(self, text: str) -> str:
        """Computes sizes outside of loops, from values that are known before them."""
        name = self.fresh()
        self._main.append(f"{name} = {text}{self.location}")
        return name

    def _atom(self, atom: Atom) -> str:
        if atom in self._indices:
            return self._indices[atom]
        a, b = (self.index(operand) for operand in atom.operands)  # type: ignore[arg-type]
        if atom.kind == "floordiv":
            divisor = atom.operands[1]
            if not isinstance(divisor, int):
                # If the divisor is 0, then so is the dividend.
                b = self._index_op(f"arith.maxsi {b}, {self.scalar(1, INDEX)} : index")
            dividend = atom.operands[0]
            name = "divsi" if arithmetic.is_nonnegative(dividend) else "floordivsi"  # type: ignore[arg-type]
            result = self._index_op(f"arith.{name} {a}, {b} : index")
        elif atom.kind == "wrapped":
            is_negative = self._index_op(f"arith.cmpi slt, {a}, {self.scalar(0, INDEX)} : index")
            moved = self._index_op(f"arith.addi {a}, {b} : index")
            result = self._index_op(f"arith.select {is_negative}, {moved}, {a} : index")
        elif atom.kind == "broadcast":
            is_one = self._index_op(f"arith.cmpi eq, {a}, {self.scalar(1, INDEX)} : index")
            result = self._index_op(f"arith.select {is_one}, {b}, {a} : index")
        else:
            result = self._index_op(f"arith.{atom.kind}si {a}, {b} : index")
        self._indices[atom] = result
        return result

    def check(self, condition: str, words: str) -> None:
        """Ends the call with an error, which names the node, where a condition is false."""
        self._main.append(f"cf.assert {condition}, {quoted(words)}{self.location}")

    def is_equal(self, a: Size, b: Size) -> bool:
        """Returns whether two sizes are known to be equal."""
        return a == b or (a, b) in self._checked or (b, a) in self._checked

    def check_equal(self, a: Size, b: Size, clause: str) -> None:
        """Refuses two sizes that are never equal, and checks at run time sizes that may be.

        `clause` is a clause, such as "expected rows of its operand B like columns of A".
        """
        if self.is_equal(a, b):
            return
        difference = a - b
        if isinstance(difference, int):
            raise self.node.refuse(f"{clause}, but got {a} and {b}", "give it operands that fit")
        self._checked.add((a, b))
        left, right = self.index(a), self.index(b)
        condition = self._index_op(f"arith.cmpi eq, {left}, {right} : index")
        self.check(condition, clause)

    # Values.

    def use(self, value: Value) -> str:
        """The name of a value in MLIR, which a constant gets now."""
        if value.ssa is None:
            if value.array is not None:
                value.ssa = self._dense(value.array, value)
            else:
                assert value.sizes is not None
                value.ssa = self._from_sizes(value)
        return value.ssa

    def _dense(self, array: Array, value: Value) -> str:
        if is_weight(array, value.kind):
            name = value.name or f"constant_{len(self.weights)}"
            while name in self.weights:
                name += "_"
            self.weights[name] = value
            return f"%weight{len(self.weights) - 1}"
        return self._constant(f"arith.constant {format_dense(array, value.kind)} : {value.type}")

    def _constant(self, text: str) -> str:
        if text not in self._constants:
            name = self.fresh()
            self._header.append(f"{name} = {text}{self.location}")
            self._constants[text] = name
        return self._constants[text]

    def _from_sizes(self, value: Value) -> str:
        assert value.sizes is not None
        names = []
        for size in value.sizes.flat:
            name = self.index(size)
            names.append(self._index_op(f"arith.index_cast {name} : index to {value.element}"))
        return self._index_op(f"tensor.from_elements {', '.join(names)} : {value.type}")

    def scalar(self, value: Any, kind: int) -> str:
        """A constant scalar."""
        return self._constant(f"arith.constant {format_scalar(value, kind)} : {element_of(kind)}"
                              if kind != TensorProto.BOOL else
                              f"arith.constant {format_scalar(value, kind)}")  # fmt: skip

    def constant(self, array: Any, kind: int | None = None) -> Value:
        array = np.asarray(array)
        kind = kind_of(array.dtype) if kind is None else kind
        return Value(kind, array.shape, array=array.astype(dtype_of(kind), copy=False))

    def of_sizes(self, sizes: Sequence[Size] | Size, kind: int = TensorProto.INT64) -> Value:
        """A list of sizes, or one size, as a tensor of integers."""
        array: Array
        if isinstance(sizes, (int, Expr)):
            array = np.empty((), object)
            array[()] = sizes
        else:
            array = np.empty(len(sizes), object)
            array[:] = [*sizes]
        if all(isinstance(size, int) for size in array.flat):
            return self.constant(array.astype(np.int64).reshape(array.shape), kind)
        return Value(kind, array.shape, sizes=array)

    def empty(self, dims: Sequence[Size], kind: int) -> str:
        names = ", ".join(self.index(dim) for dim in dims if not isinstance(dim, int))
        return self.op(f"tensor.empty({names}) : {tensor_type(dims, element_of(kind))}")

    def filled(self, dims: Sequence[Size], value: Any, kind: int) -> Value:
        """A tensor of one number, or of one element (a `Scalar`)."""
        type_ = tensor_type(dims, element_of(kind))
        name = value.ssa if isinstance(value, Scalar) else self.scalar(value, kind)
        empty = self.empty(dims, kind)
        text = f"linalg.fill ins({name} : {element_of(kind)}) outs({empty} : {type_}) -> {type_}"
        return Value(kind, tuple(dims), self.op(text))

    def retype(self, value: Value, dims: Sequence[Size]) -> Value:
        """The value with sizes that are equal to its own at run time."""
        if tuple(dims) == value.dims:
            return value
        result = Value(value.kind, tuple(dims), value.ssa, value.array, value.sizes)
        if result.type != value.type:
            result.ssa = self.op(f"tensor.cast {self.use(value)} : {value.type} to {result.type}")
        else:
            result.ssa = self.use(value)
        return result


#: A known tensor with this number of elements or more is a weight.
_MIN_WEIGHT = 17
#: Up to this number, a list of integers is a constant.
_MAX_LIST = 64


def is_weight(array: Array, kind: int) -> bool:
    """Returns whether a known tensor is an argument of the function rather than part of its text."""
    is_list = array.ndim <= 1 and kind in (TensorProto.INT32, TensorProto.INT64)
    return array.size >= _MIN_WEIGHT and not (is_list and array.size <= _MAX_LIST)


__all__ = ["Writer", "is_weight"]
