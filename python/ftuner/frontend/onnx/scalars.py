"""Scalar arithmetic inside of a computation, by the types of ONNX."""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from onnx import TensorProto

from . import doubles
from .sizes import Size
from .values import FLOATS, HALVES, INDEX, UNSIGNED, Value, bits_of, dtype_of, element_of

if TYPE_CHECKING:
    from .emitter import Emitter

F32, BOOL, I64 = TensorProto.FLOAT, TensorProto.BOOL, TensorProto.INT64

_COMPARISONS = {"eq": "oeq", "ne": "une", "lt": "olt", "le": "ole", "gt": "ogt", "ge": "oge"}


@dataclass(frozen=True)
class Scalar:
    """A scalar of MLIR with its type in ONNX, or `INDEX`."""

    ssa: str
    kind: int

    @property
    def element(self) -> str:
        return element_of(self.kind)

    @property
    def is_float(self) -> bool:
        return self.kind in FLOATS

    @property
    def is_unsigned(self) -> bool:
        return self.kind in UNSIGNED


class Body:
    """Writes the operations of a region, one element at a time.

    Operands of a binary operation have one type. Halves are computed in f32 and rounded after each
    operation.
    """

    def __init__(self, emitter: Emitter) -> None:
        self.emitter = emitter
        self.lines: list[str] = []

    def op(self, text: str, kind: int) -> Scalar:
        """Adds an operation, whose text follows the result's name."""
        name = self.emitter.fresh()
        self.lines.append(f"{name} = {text}{self.emitter.location}")
        return Scalar(name, kind)

    def const(self, value: Any, kind: int) -> Scalar:
        return Scalar(self.emitter.scalar(value, kind), kind)

    def like(self, value: Any, other: Scalar) -> Scalar:
        return self.const(value, other.kind)

    def size(self, size: Size) -> Scalar:
        """A size as an index."""
        return Scalar(self.emitter.index(size), INDEX)

    def index(self, loop: int) -> Scalar:
        """The number of the iteration of a loop."""
        return self.op(f"linalg.index {loop} : index", INDEX)

    def extract(self, value: Value, places: Sequence[Scalar]) -> Scalar:
        """An element of a tensor at places that are indices."""
        name = self.emitter.use(value)
        return self.op(
            f"tensor.extract {name}[{', '.join(p.ssa for p in places)}] : {value.type}", value.kind
        )

    def check(self, condition: Scalar, words: str) -> None:
        """Ends the call with an error where a condition is false."""
        line = f"cf.assert {condition.ssa}, {quoted(words)}"
        self.lines.append(f"{line}{self.emitter.location}")

    def widened(self, value: Scalar) -> Scalar:
        return self.cast(value, F32) if value.kind in HALVES else value

    def _binary(self, names: tuple[str, str, str], a: Scalar, b: Scalar) -> Scalar:
        """Adds an operation on two scalars of one type.

        Args:
            names: the operation on floats, on signed and on unsigned integers.
        """
        assert a.kind == b.kind, (a, b)
        if a.kind in HALVES:
            return self.cast(self._binary(names, self.widened(a), self.widened(b)), a.kind)
        name = names[0] if a.is_float else names[2] if a.is_unsigned else names[1]
        return self.op(f"{name} {a.ssa}, {b.ssa} : {a.element}", a.kind)

    def add(self, a: Scalar, b: Scalar) -> Scalar:
        return self._binary(("arith.addf", "arith.addi", "arith.addi"), a, b)

    def sub(self, a: Scalar, b: Scalar) -> Scalar:
        return self._binary(("arith.subf", "arith.subi", "arith.subi"), a, b)

    def mul(self, a: Scalar, b: Scalar) -> Scalar:
        return self._binary(("arith.mulf", "arith.muli", "arith.muli"), a, b)

    def div(self, a: Scalar, b: Scalar) -> Scalar:
        """The quotient; integers are rounded to zero."""
        return self._binary(("arith.divf", "arith.divsi", "arith.divui"), a, b)

    def rem(self, a: Scalar, b: Scalar) -> Scalar:
        """The remainder with the sign of `a`."""
        return self._binary(("arith.remf", "arith.remsi", "arith.remui"), a, b)

    def max(self, a: Scalar, b: Scalar) -> Scalar:
        """The maximum; NaN if one is."""
        return self._binary(("arith.maximumf", "arith.maxsi", "arith.maxui"), a, b)

    def min(self, a: Scalar, b: Scalar) -> Scalar:
        return self._binary(("arith.minimumf", "arith.minsi", "arith.minui"), a, b)

    def bit_and(self, a: Scalar, b: Scalar) -> Scalar:
        return self._binary(("", "arith.andi", "arith.andi"), a, b)

    def bit_or(self, a: Scalar, b: Scalar) -> Scalar:
        return self._binary(("", "arith.ori", "arith.ori"), a, b)

    def bit_xor(self, a: Scalar, b: Scalar) -> Scalar:
        return self._binary(("", "arith.xori", "arith.xori"), a, b)

    def pow(self, a: Scalar, b: Scalar) -> Scalar:
        if a.kind == TensorProto.DOUBLE:
            return doubles.pow(self, a, b)
        return self._binary(("math.powf", "math.ipowi", "math.ipowi"), a, b)

    def floordiv(self, a: Scalar, b: int) -> Scalar:
        """The quotient of an index, rounded down."""
        return self.op(f"arith.floordivsi {a.ssa}, {self.like(b, a).ssa} : {a.element}", a.kind)

    def neg(self, a: Scalar) -> Scalar:
        if a.kind in HALVES:
            return self.cast(self.neg(self.widened(a)), a.kind)
        return (
            self.op(f"arith.negf {a.ssa} : {a.element}", a.kind)
            if a.is_float
            else self.sub(self.like(0, a), a)
        )

    def invert(self, a: Scalar) -> Scalar:
        """The logical or bitwise negation."""
        return self.bit_xor(a, self.like(True if a.kind == BOOL else -1, a))

    def unary(self, name: str, a: Scalar) -> Scalar:
        """An operation of math on floats."""
        if a.kind in HALVES:
            return self.cast(self.unary(name, self.widened(a)), a.kind)
        if a.kind == TensorProto.DOUBLE and name in doubles.FUNCTIONS:
            return doubles.FUNCTIONS[name](self, a)
        return self.op(f"math.{name} {a.ssa} : {a.element}", a.kind)

    def compare(self, predicate: str, a: Scalar, b: Scalar) -> Scalar:
        """A comparison: eq, ne, lt, le, gt, ge. With NaN only ne is true."""
        assert a.kind == b.kind, (a, b)
        a, b = self.widened(a), self.widened(b)
        if a.is_float:
            return self.op(
                f"arith.cmpf {_COMPARISONS[predicate]}, {a.ssa}, {b.ssa} : {a.element}", BOOL
            )
        if predicate not in ("eq", "ne"):
            predicate = ("u" if a.is_unsigned else "s") + predicate
        return self.op(f"arith.cmpi {predicate}, {a.ssa}, {b.ssa} : {a.element}", BOOL)

    def is_nan(self, a: Scalar) -> Scalar:
        return self.compare("ne", a, a)

    def select(self, condition: Scalar, a: Scalar, b: Scalar) -> Scalar:
        assert a.kind == b.kind and condition.kind == BOOL, (condition, a, b)
        return self.op(f"arith.select {condition.ssa}, {a.ssa}, {b.ssa} : {a.element}", a.kind)

    def clamp(self, a: Scalar, low: Scalar, high: Scalar) -> Scalar:
        return self.min(self.max(a, low), high)

    def cast(self, a: Scalar, kind: int) -> Scalar:
        """The value in another type, as ONNX's Cast converts it."""
        if a.kind == kind:
            return a
        if INDEX in (a.kind, kind):
            return self._cast_index(a, kind)
        if kind == BOOL:
            return self.compare("ne", a, self.like(0, a))
        source, target = a.element, element_of(kind)
        if a.is_float and kind in FLOATS:
            if {a.kind, kind} == {*HALVES}:
                return self.cast(self.cast(a, F32), kind)
            name = "extf" if bits_of(kind) > bits_of(a.kind) else "truncf"
            return self.op(f"arith.{name} {a.ssa} : {source} to {target}", kind)
        if a.is_float:
            return self._to_integer(self.widened(a), kind)
        if kind in FLOATS:
            if kind in HALVES:
                return self.cast(self.cast(a, F32), kind)
            name = "uitofp" if a.is_unsigned else "sitofp"
            return self.op(f"arith.{name} {a.ssa} : {source} to {target}", kind)
        if bits_of(a.kind) == bits_of(kind):
            return Scalar(a.ssa, kind)
        if bits_of(a.kind) > bits_of(kind):
            return self.op(f"arith.trunci {a.ssa} : {source} to {target}", kind)
        name = "extui" if a.is_unsigned else "extsi"
        return self.op(f"arith.{name} {a.ssa} : {source} to {target}", kind)

    def _to_integer(self, a: Scalar, kind: int) -> Scalar:
        """Rounds to zero; numbers that do not fit wrap around, as narrowed integers of 64 bits do."""
        target = element_of(kind)
        if kind in UNSIGNED and bits_of(kind) == 64:
            return self.op(f"arith.fptoui {a.ssa} : {a.element} to {target}", kind)
        if bits_of(kind) >= 32 and kind not in UNSIGNED:
            return self.op(f"arith.fptosi {a.ssa} : {a.element} to {target}", kind)
        wide = self.op(f"arith.fptosi {a.ssa} : {a.element} to i64", I64)
        return self.cast(wide, kind)

    def _cast_index(self, a: Scalar, kind: int) -> Scalar:
        if kind == INDEX:
            if a.is_float:
                return self._cast_index(self._to_integer(self.widened(a), I64), INDEX)
            name = "index_castui" if a.is_unsigned else "index_cast"
            return self.op(f"arith.{name} {a.ssa} : {a.element} to index", INDEX)
        if kind in FLOATS:
            return self.cast(self._cast_index(a, I64), kind)
        return self.op(f"arith.index_cast {a.ssa} : index to {element_of(kind)}", kind)


def format_scalar(value: Any, kind: int) -> str:
    """A constant of MLIR, exact."""
    if kind == BOOL:
        return "true" if value else "false"
    if kind not in FLOATS:
        number, bits = int(value), 64 if kind == INDEX else bits_of(kind)
        number &= (1 << bits) - 1
        return str(number - (1 << bits) if number >> (bits - 1) else number)
    if kind == TensorProto.DOUBLE:
        (pattern,) = struct.unpack("<Q", struct.pack("<d", float(value)))
        return f"0x{pattern:016X}"
    with np.errstate(all="ignore"):
        rounded = np.asarray(value).astype(dtype_of(kind))
    if math.isfinite(float(rounded)) and kind == F32:
        return f"{float(rounded):.9e}"
    pattern = int.from_bytes(rounded.tobytes(), "little")
    return f"0x{pattern:0{bits_of(kind) // 4}X}"


def quoted(words: str) -> str:
    """A string of MLIR."""
    parts = (
        chr(byte) if 32 <= byte < 127 and byte not in b'"\\' else f"\\{byte:02X}"
        for byte in words.encode()
    )
    return f'"{"".join(parts)}"'


def format_dense(array: Any, kind: int) -> str:
    """The elements of a constant tensor."""
    if array.size == 0:
        return "dense<>"
    if kind == BOOL:
        return f"dense<{str(array.tolist()).lower()}>"
    data = np.ascontiguousarray(array).astype(dtype_of(kind), copy=False).tobytes()
    if data == data[: len(data) // array.size] * array.size:
        return f"dense<{format_scalar(array.flat[0], kind)}>"
    return f'dense<"0x{data.hex().upper()}">'


__all__ = ["Body", "Scalar", "format_dense", "format_scalar", "quoted"]
