"""Arithmetic of sizes in exported graphs, as operators that torch-mlir lowers.

PyTorch writes formulas of sizes with Python's functions: ``8 - n % 8``, ``torch.sym_min(n, m)``,
``math.trunc(torch.sym_float(n) * 0.5)``. Each one becomes operators of ATen on numbers. A float
that only one rounding separates from a quotient of integers, such as ``n * 0.5`` or ``n / 3``, is
remembered as that quotient, so that its floor is an integer division, which the compiler's
analyses of sizes understand; others are computed in double precision, as Python does.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeAlias

from torch.export import ExportedProgram
from torch.utils._sympy.value_ranges import bound_sympy

import ftuner
import torch
from torch import fx

aten = torch.ops.aten
prim = torch.ops.prim

#: A number, or the node that computes one.
Number: TypeAlias = int | float | fx.Node

#: Floats with larger numerators or denominators are not taken for fractions: a size of 31 bits
#: times such a numerator is exact in double precision.
_MAX_PART = 2**21

_SQUARE_ROOT: Any = getattr(torch, "_sym_sqrt")

#: Operators on integers and on floats, by the functions of Python that PyTorch writes.
_BINARY: dict[Any, tuple[Any, Any]] = {
    operator.add: (aten.add.int, aten.add.float),
    operator.sub: (aten.sub.int, aten.sub.float),
    operator.mul: (aten.mul.int, aten.mul.float),
    operator.truediv: (None, aten.div.float),
    operator.lt: (aten.lt.int, aten.lt.float),
    operator.le: (aten.le.int, None),
    operator.gt: (aten.gt.int, aten.gt.float),
    operator.ge: (aten.ge.int, aten.ge.float),
    operator.eq: (aten.eq.int, aten.eq.float),
    operator.ne: (aten.ne.int, None),
}

#: Overloads with a number in the place of a tensor, by overloads whose second operand is one.
_SCALAR_OVERLOADS = {
    aten.add.Tensor: aten.add.Scalar,
    aten.sub.Tensor: aten.sub.Scalar,
    aten.mul.Tensor: aten.mul.Scalar,
    aten.div.Tensor: aten.div.Scalar,
    aten.div.Tensor_mode: aten.div.Scalar_mode,
    aten.eq.Tensor: aten.eq.Scalar,
    aten.ne.Tensor: aten.ne.Scalar,
    aten.lt.Tensor: aten.lt.Scalar,
    aten.le.Tensor: aten.le.Scalar,
    aten.gt.Tensor: aten.gt.Scalar,
    aten.ge.Tensor: aten.ge.Scalar,
    aten.remainder.Tensor: aten.remainder.Scalar,
    aten.fmod.Tensor: aten.fmod.Scalar,
}

#: Overloads for a number in the place of the first operand, which becomes the second one.
_SWAPPED_OVERLOADS = {
    aten.sub.Tensor: aten.rsub.Scalar,
    aten.add.Tensor: aten.add.Scalar,
    aten.mul.Tensor: aten.mul.Scalar,
    aten.eq.Tensor: aten.eq.Scalar,
    aten.ne.Tensor: aten.ne.Scalar,
    aten.lt.Tensor: aten.gt.Scalar,
    aten.le.Tensor: aten.ge.Scalar,
    aten.gt.Tensor: aten.lt.Scalar,
    aten.ge.Tensor: aten.le.Scalar,
}


@dataclass(frozen=True)
class _Quotient:
    """A float that is the correctly rounded quotient of two integers, the lower one positive."""

    numerator: int | fx.Node
    denominator: int | fx.Node

    @property
    def is_exact(self) -> bool:
        """True if no rounding happened, so that the float may be computed with."""
        lower = self.denominator
        return isinstance(lower, int) and lower & (lower - 1) == 0


class NotSupported(Exception):
    """A formula that no operator computes."""


def lower_sizes(program: ExportedProgram) -> None:
    """Replaces the formulas of sizes of a program.

    Raises `ftuner.CompileError` for a formula that a result needs and that FTuner cannot lower.
    """
    formulas = Formulas(program.graph)
    for node in list(program.graph.nodes):
        if node.op != "call_function":
            continue
        if not isinstance(node.meta.get("val"), (torch.SymInt, torch.SymFloat, torch.SymBool)):
            formulas.take_numbers(node)
            continue
        try:
            formulas.replace(node)
        except NotSupported:
            continue
    program.graph.eliminate_dead_code()
    for node in program.graph.nodes:
        if node.op == "call_function" and not isinstance(node.target, torch._ops.OperatorBase):
            if isinstance(node.meta.get("val"), (torch.SymInt, torch.SymFloat, torch.SymBool)):
                name = getattr(node.target, "__name__", str(node.target))
                reason = f"FTuner does not compute sizes by '{name.lstrip('_')}'"
                raise ftuner.CompileError(f"cannot import the model: {reason}", reason)


def _value(number: Number) -> Any:
    return number.meta["val"] if isinstance(number, fx.Node) else number


def _is_float(number: Number) -> bool:
    return isinstance(_value(number), (float, torch.SymFloat))


def _bounds(number: Number) -> tuple[float, float]:
    """The minimum and the maximum of a size's formula; infinite if not known."""
    value = _value(number)
    if isinstance(value, (int, float)):
        return value, value
    found = bound_sympy(value.node.expr, value.node.shape_env.var_to_range)
    return tuple(  # type: ignore[return-value]
        float(bound) if bound.is_number and bound.is_finite else sign * math.inf
        for bound, sign in ((found.lower, -1), (found.upper, 1))
    )


class Formulas:
    """The formulas of one graph."""

    def __init__(self, graph: fx.Graph) -> None:
        self.graph = graph
        self.quotients: dict[fx.Node, _Quotient] = {}
        #: The formula that is replaced; new nodes stand before it, and where it stands in the model.
        self.origin: fx.Node = next(iter(graph.nodes))
        self.unary: dict[Any, Callable[[Number], Number]] = {
            operator.neg: self.negative,
            operator.pos: lambda x: x,
            operator.abs: self.absolute,
            abs: self.absolute,
            torch.sym_float: self.to_float,
            torch.sym_int: self.truncate,
            math.trunc: self.truncate,
            math.floor: self.floor,
            math.ceil: self.ceil,
            round: self.round,
            _SQUARE_ROOT: self.square_root,
            math.sqrt: self.square_root,
        }
        self.binary: dict[Any, Callable[[Number, Number], Number]] = {
            operator.floordiv: self.floor_divide,
            operator.mod: self.modulo,
            operator.pow: self.power,
            operator.truediv: self.divide,
            operator.lshift: lambda x, y: self.call(operator.mul, x, self.power(2, y)),
            operator.rshift: lambda x, y: self.floor_divide(x, self.power(2, y)),
        }

    def replace(self, node: fx.Node) -> None:
        """Replaces a formula by operators on numbers."""
        if isinstance(node.target, torch._ops.OperatorBase) and node.target not in (
            aten.sym_numel.default,
            aten.sym_size.default,
        ):
            return
        self.origin = node
        with self.graph.inserting_before(node):
            value = self.formula(node.target, node.args)
        if isinstance(value, fx.Node):
            value.meta["val"] = node.meta["val"]
        node.replace_all_uses_with(value)  # type: ignore[arg-type]
        self.graph.erase_node(node)

    def formula(self, target: Any, args: Sequence[Any]) -> Number:
        if target == aten.sym_numel.default:
            return self.elements(args[0])
        if target is round and args[1:] == (None,):
            args = args[:1]
        if target in self.unary and len(args) == 1:
            return self.unary[target](args[0])
        if target in self.binary:
            return self.binary[target](*args)
        if target in (torch.sym_min, torch.sym_max):
            return self.extreme(target, *args)
        if target is torch.sym_sum:
            total: Number = 0
            for number in args[0]:
                total = self.call(operator.add, total, number)
            return total
        if target in _BINARY:
            return self.call(target, *args)
        raise NotSupported

    def emit(self, target: Any, args: tuple[Any, ...], value: Any) -> Number:
        """A new node, or the number that it is known to be."""
        if isinstance(value, (int, float)):
            return value
        node = self.graph.call_function(target, args)
        node.meta = self.place()
        node.meta["val"] = value
        return node

    def place(self) -> dict[str, Any]:
        """The metadata of a new node about its place in the model."""
        values = ("val", "tensor_meta")
        return {key: kept for key, kept in self.origin.meta.items() if key not in values}

    def call(self, function: Any, x: Number, y: Number) -> Number:
        """One of the functions of two numbers that both integers and floats have."""
        value = function(_value(x), _value(y))
        integer, floating = _BINARY[function]
        if not _is_float(x) and not _is_float(y):
            if integer is None:
                raise NotSupported
            return self.emit(integer, (x, y), value)
        if floating is None:
            raise NotSupported
        floats = (self.to_float(x), self.to_float(y))
        result = self.emit(floating, floats, value)
        self.remember(result, self.combined(function, x, y))
        return result

    def remember(self, result: Number, quotient: _Quotient | None) -> None:
        if quotient is not None and isinstance(result, fx.Node):
            self.quotients[result] = quotient

    def quotient(self, number: Number) -> _Quotient | None:
        """A number as a quotient of integers, if it is one."""
        if isinstance(number, fx.Node):
            return self.quotients.get(number) if _is_float(number) else _Quotient(number, 1)
        if not math.isfinite(number):
            return None
        exact = Fraction(number)
        if max(abs(exact.numerator), exact.denominator) > _MAX_PART:
            return None
        return _Quotient(exact.numerator, exact.denominator)

    def combined(self, function: Any, x: Number, y: Number) -> _Quotient | None:
        """A sum, difference, product or quotient of two floats as a quotient of integers."""
        left, right = self.quotient(x), self.quotient(y)
        if left is None or right is None or not (left.is_exact and right.is_exact):
            return None
        a, b = left.denominator, right.denominator
        assert isinstance(a, int) and isinstance(b, int)
        if function is operator.mul:
            return _Quotient(self.times(left.numerator, right.numerator), a * b)
        if function in (operator.add, operator.sub):
            parts = (self.times(left.numerator, b), self.times(right.numerator, a))
            return _Quotient(self.call(function, *parts), a * b)  # type: ignore[arg-type]
        if function is operator.truediv and _bounds(right.numerator)[0] > 0:
            return _Quotient(self.times(left.numerator, b), self.times(right.numerator, a))
        return None

    def times(self, x: int | fx.Node, y: int | fx.Node) -> Any:
        if x == 1 or y == 1:
            return y if x == 1 else x
        return self.call(operator.mul, x, y)

    def elements(self, tensor: fx.Node) -> Number:
        """The number of elements of a tensor."""
        count: Number = 1
        for dim, size in enumerate(tensor.meta["val"].shape):
            extent = size
            if not isinstance(size, int):
                extent = self.emit(aten.sym_size.int, (tensor, dim), size)
            count = self.times(count, extent)  # type: ignore[arg-type]
        return count

    def to_float(self, x: Number) -> Number:
        if _is_float(x):
            return x
        if isinstance(x, int):
            return float(x)
        result = self.emit(aten.Float.Scalar, (x,), torch.sym_float(_value(x)))  # type: ignore[no-untyped-call]
        self.remember(result, self.quotient(x))
        return result

    def negative(self, x: Number) -> Number:
        if not _is_float(x):
            return self.emit(aten.neg.int, (x,), -_value(x))
        result = self.emit(aten.neg.float, (x,), -_value(x))
        quotient = self.quotient(x)
        if quotient is not None:
            numerator: Any = self.negative(quotient.numerator)
            self.remember(result, _Quotient(numerator, quotient.denominator))
        return result

    def absolute(self, x: Number) -> Number:
        if _is_float(x):
            raise NotSupported
        return x if _bounds(x)[0] >= 0 else self.extreme(torch.sym_max, x, self.negative(x))

    def extreme(self, function: Any, *numbers: Number) -> Number:
        """The least or the largest of integers."""
        if any(_is_float(number) for number in numbers):
            raise NotSupported
        operation = prim.min.int if function is torch.sym_min else prim.max.int
        result = numbers[0]
        for number in numbers[1:]:
            value = function(_value(result), _value(number))
            result = self.emit(operation, (result, number), value)
        return result

    def divide(self, x: Number, y: Number) -> Number:
        """A quotient as Python's ``/`` has it: a float."""
        if isinstance(y, fx.Node) or y != 0:
            return self.call(operator.truediv, self.to_float(x), self.to_float(y))
        raise NotSupported

    def floor_divide(self, x: Number, y: Number) -> Number:
        if _is_float(x) or _is_float(y):
            return self.to_float(self.floor(self.divide(x, y)))
        return self.emit(aten.floordiv.int, (x, y), _value(x) // _value(y))

    def modulo(self, x: Number, y: Number) -> Number:
        """The remainder with the sign of the divisor, as Python's ``%``."""
        if _is_float(x) or _is_float(y):
            raise NotSupported
        if _bounds(x)[0] >= 0 and _bounds(y)[0] > 0:
            return self.emit(aten.remainder.int, (x, y), _value(x) % _value(y))
        whole: Any = self.call(operator.mul, self.floor_divide(x, y), y)
        return self.call(operator.sub, x, whole)

    def power(self, x: Number, y: Number) -> Number:
        if y == 0.5:
            return self.square_root(x)
        if isinstance(y, (int, float)) and y < 0:
            return self.divide(1.0, self.power(x, -y))
        if isinstance(y, int) and y <= 8:
            result: Number = 1.0 if _is_float(x) else 1
            for _ in range(y):
                result = self.call(operator.mul, result, x)
            return result
        raise NotSupported

    def square_root(self, x: Number) -> Number:
        quotient = self.quotient(x)
        if quotient is None or quotient.denominator != 1:
            raise NotSupported
        return self.emit(aten.sqrt.int, (quotient.numerator,), _SQUARE_ROOT(_value(x)))

    def floor(self, x: Number) -> Number:
        if not _is_float(x):
            return x
        quotient = self.quotient(x)
        if quotient is not None:
            return self.floor_divide(quotient.numerator, quotient.denominator)
        return self.negative(self.ceil(self.negative(x)))

    def ceil(self, x: Number) -> Number:
        if not _is_float(x):
            return x
        quotient = self.quotient(x)
        if quotient is not None:
            upper: Any = self.negative(quotient.numerator)
            return self.negative(self.floor_divide(upper, quotient.denominator))
        return self.emit(aten.ceil.float, (x,), math.ceil(_value(x)))

    def truncate(self, x: Number) -> Number:
        """The integer towards zero."""
        low, high = _bounds(x)
        if low >= 0:
            return self.floor(x)
        if high <= 0:
            return self.ceil(x)
        below = self.extreme(torch.sym_min, self.ceil(x), 0)
        return self.call(operator.add, self.extreme(torch.sym_max, self.floor(x), 0), below)

    def round(self, x: Number) -> Number:
        """The nearest integer, of two the even one."""
        if not _is_float(x):
            return x
        quotient = self.quotient(x)
        if quotient is None:
            raise NotSupported
        # floor((2 n + d) / 2 d) rounds halves up; a half leaves no rest, and is odd then or even.
        doubled = self.times(quotient.denominator, 2)
        above: Any = self.call(
            operator.add, self.times(quotient.numerator, 2), quotient.denominator
        )
        nearest = self.floor_divide(above, doubled)
        has_rest = self.extreme(torch.sym_min, self.modulo(above, doubled), 1)
        is_half: Any = self.call(operator.sub, 1, has_rest)
        is_odd: Any = self.modulo(nearest, 2)
        return self.call(operator.sub, nearest, self.times(is_half, is_odd))

    def take_numbers(self, node: fx.Node) -> None:
        """Turns sizes that take the place of tensors into numbers of the operands' kind."""
        schema = getattr(node.target, "_schema", None)
        if schema is None:
            return
        self.origin = node
        for place, (parameter, number) in enumerate(zip(schema.arguments, node.args)):
            if not isinstance(parameter.type, torch.TensorType) or not isinstance(number, fx.Node):
                continue
            if not isinstance(number.meta.get("val"), (torch.SymInt, torch.SymFloat)):
                continue
            if place == 1 and node.target in _SCALAR_OVERLOADS:
                node.target = _SCALAR_OVERLOADS[node.target]
                return
            if place == 0 and node.target in _SWAPPED_OVERLOADS and not node.kwargs:
                node.target = _SWAPPED_OVERLOADS[node.target]
                node.args = (node.args[1], number)
                return
            with self.graph.inserting_before(node):
                node.update_arg(place, self.tensor_of(number, node))

    def tensor_of(self, number: fx.Node, reader: fx.Node) -> fx.Node:
        """A tensor without dimensions that has a number, in the type that an operator computes in."""
        others = [
            value
            for value in (_value(argument) for argument in reader.all_input_nodes)
            if isinstance(value, torch.Tensor)
        ]
        dtype = torch.float32 if _is_float(number) else torch.int64
        if others:
            example: Any = 0.5 if _is_float(number) else 1
            dtype = torch.result_type(others[0], example)
        node = self.graph.call_function(aten.scalar_tensor.default, (number,), {"dtype": dtype})
        node.meta = self.place()
        mode = self.origin.meta["val"].fake_mode
        with mode:
            node.meta["val"] = torch.empty((), dtype=dtype)
        return node
