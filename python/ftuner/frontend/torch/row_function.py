"""Text of an FTuner function of rows: reductions along one loop and what surrounds them, as linalg.

A function is a list of operators, each one `linalg.generic`. Most give one tensor: elementwise from
tensors of as many or fewer loops, or reduced along the last loop of the function, the *row*. FTuner's
compiler forms one kernel of them (docs/rows.md). Arguments are f32, f16, bf16 or i1; arithmetic is in
f32, and a narrower result is rounded where its operator ends, as PyTorch rounds it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from .linalg import (
    Instruction, Range, Size, Value, argument_text, format_constant, module_text, size_lines, tensor_type,
)  # fmt: skip

#: Values of instructions: the number of elements of a row (f32), the position of an element in its row
#: (i32), the last position that a kernel knows (i32), a boolean that is false.
COUNT, POSITION, LAST, FALSE = "count", "position", "last", "false"

_LAST = 2**31 - 1

#: How a reduction joins two values, and what it begins with.
_START = {
    "arith.addf": 0.0,
    "arith.maximumf": float("-inf"),
    "arith.minimumf": float("inf"),
    "arith.addi": 0,
    "arith.minsi": _LAST,
}


@dataclass(frozen=True)
class Operand:
    """A tensor that an operator reads: an argument, or the result of an operator before.

    ``name`` is ``arg0`` (an argument) or ``t0`` (an operator's result).
    """

    name: str
    loops: tuple[int, ...]
    kind: str


@dataclass(frozen=True)
class Operator:
    """One `linalg.generic`.

    Instructions read ``x0``, ``x1``, … (elements of the operands, in f32 or as integers), ``s0`` (a
    scalar of the function), the values named above and results of instructions before. ``combine``
    joins what the elements of a row give ("arith.addf", …); "" where nothing is reduced.
    """

    operands: tuple[Operand, ...]
    instructions: tuple[Instruction, ...]
    value: Value
    loops: tuple[int, ...]
    kind: str
    combine: str = ""


@dataclass(frozen=True)
class RowFunction:
    """A function of rows; `str()` is its module as MLIR text.

    Arguments are tensors, then scalars (f32). Of ``loops`` the last is the row.
    """

    name: str
    loops: tuple[Size, ...]
    arguments: tuple[tuple[int, ...], ...]
    types: tuple[str, ...]
    num_scalars: int
    operators: tuple[Operator, ...]
    #: What is returned.
    results: tuple[Operand, ...]
    symbols: tuple[tuple[str, Range], ...]

    def source_of(self, symbol: str) -> tuple[int, int]:
        """The first argument with a dimension of that symbol, and the dimension."""
        return next(
            (number, dim)
            for number, loops in enumerate(self.arguments)
            for dim, loop in enumerate(loops)
            if self.loops[loop] == symbol
        )

    @property
    def result_sizes(self) -> tuple[tuple[int | tuple[int, int], ...], ...]:
        """Of each result: each size, a number, or a tensor argument and a dimension that has it."""

        def size_of(size: Size) -> int | tuple[int, int]:
            return size if isinstance(size, int) else self.source_of(size)

        return tuple(
            tuple(size_of(self.loops[loop]) for loop in result.loops) for result in self.results
        )

    def __str__(self) -> str:
        return _Printer(self).text()


class _Printer:
    def __init__(self, function: RowFunction) -> None:
        self.function = function
        self.constants: dict[tuple[str, str], str] = {}
        self.empties: dict[str, str] = {}
        self.lines: list[str] = []

    def text(self) -> str:
        function = self.function
        for number, operator in enumerate(function.operators):
            self.operator(number, operator)
        types = ", ".join(self.tensor_type(one.loops, one.kind) for one in function.results)
        results = ", ".join(f"%{one.name}" for one in function.results)
        constants = [
            f"    {name} = arith.constant {text} : {kind}"
            for (text, kind), name in self.constants.items()
        ]
        return module_text(
            function.name,
            function.symbols,
            [self.argument(number) for number in range(len(function.arguments))],
            function.num_scalars,
            f"({types})",
            [
                *constants,
                *self.sizes(),
                *(f"    {name} = {text}" for text, name in self.empties.items()),
                *self.lines,
                f"    return {results} : {types}",
            ],
        )

    # Types, sizes and constants

    def tensor_type(self, loops: Sequence[int], kind: str) -> str:
        return tensor_type([self.function.loops[loop] for loop in loops], kind)

    def argument(self, number: int) -> str:
        function = self.function
        sizes = [function.loops[loop] for loop in function.arguments[number]]
        return argument_text(number, sizes, function.types[number])

    def sizes(self) -> list[str]:
        """Each symbol, from the first argument that has it, and the length of a row."""
        function = self.function
        lines: list[str] = []
        for size in dict.fromkeys(function.loops):
            if not isinstance(size, str):
                continue
            number, dim = function.source_of(size)
            kind = self.tensor_type(function.arguments[number], function.types[number])
            lines += size_lines(size, number, dim, kind)
        length = function.loops[-1]
        if isinstance(length, str) and any(map(self.counts, function.operators)):
            lines += [
                f"    %count_i64 = arith.index_cast %{length} : index to i64",
                f"    %{COUNT} = arith.sitofp %count_i64 : i64 to f32",
            ]
        return lines

    @staticmethod
    def counts(operator: Operator, what: str = COUNT) -> bool:
        """Whether an operator reads such a value."""
        return any(what in instruction.operands for instruction in operator.instructions)

    def constant(self, value: float, kind: str = "f32") -> str:
        text = str(int(value)) if kind[0] == "i" else format_constant(value)
        return self.constants.setdefault((text, kind), f"%c{len(self.constants)}")

    def empty(self, loops: Sequence[int], kind: str) -> tuple[str, str]:
        """An empty tensor of these loops, and its type."""
        type_ = self.tensor_type(loops, kind)
        sizes = (self.function.loops[loop] for loop in loops)
        dynamic = ", ".join(f"%{size}" for size in sizes if isinstance(size, str))
        text = f"tensor.empty({dynamic}) : {type_}"
        return self.empties.setdefault(text, f"%empty{len(self.empties)}"), type_

    def filled(self, name: str, loops: Sequence[int], kind: str, value: float) -> tuple[str, str]:
        """A tensor of these loops with one value in all elements, and its type."""
        empty, type_ = self.empty(loops, kind)
        constant = self.constant(value, kind)
        self.lines.append(
            f"    {name} = linalg.fill ins({constant} : {kind}) outs({empty} : {type_}) -> {type_}"
        )
        return name, type_

    # Operators

    def operator(self, number: int, operator: Operator) -> None:
        body: list[str] = []
        arguments: list[str] = []
        for place, operand in enumerate(operator.operands):
            is_narrow = operand.kind in ("f16", "bf16")
            arguments.append(f"%x{place}{'_narrow' * is_narrow}: {operand.kind}")
            if is_narrow:
                body.append(f"%x{place} = arith.extf %x{place}_narrow : {operand.kind} to f32")
        if self.counts(operator, POSITION):
            row = self.loops_of(operator).index(len(self.function.loops) - 1)
            body += [
                f"%index = linalg.index {row} : index",
                f"%{POSITION} = arith.index_cast %index : index to i32",
            ]
        body += self.instructions(operator.instructions)
        value, kind = self.value(operator.value), operator.kind
        if operator.combine:
            start = _START[operator.combine]
            out, type_ = self.filled(f"%start{number}", operator.loops, kind, start)
            body.append(f"%joined = {operator.combine} %acc, {value} : {kind}")
            value = "%joined"
        else:
            out, type_ = self.empty(operator.loops, kind)
            if kind in ("f16", "bf16"):
                body.append(f"%rounded = arith.truncf {value} : f32 to {kind}")
                value = "%rounded"
        arguments.append(f"%acc: {kind}")
        body.append(f"linalg.yield {value} : {kind}")
        self.generic(f"%t{number}", operator, out, type_, arguments, body)

    def loops_of(self, operator: Operator) -> list[int]:
        """Loops in the order of the operand that has most; without a reduction, of the result."""
        if not operator.combine:
            return list(operator.loops)
        longest = max((operand.loops for operand in operator.operands), key=len)
        return [*(loop for loop in operator.loops if loop not in longest), *longest]

    def generic(
        self,
        result: str,
        operator: Operator,
        out: str,
        type_: str,
        arguments: list[str],
        body: list[str],
    ) -> None:
        loops = self.loops_of(operator)
        names = ", ".join(f"d{place}" for place in range(len(loops)))

        def map_of(walk: Sequence[int]) -> str:
            return f"affine_map<({names}) -> ({', '.join(f'd{loops.index(loop)}' for loop in walk)})>"

        operands = operator.operands
        maps = [map_of(operand.loops) for operand in operands] + [map_of(operator.loops)]
        kinds = ", ".join(
            '"parallel"' if loop in operator.loops else '"reduction"' for loop in loops
        )
        types = ", ".join(self.tensor_type(operand.loops, operand.kind) for operand in operands)
        ins = ", ".join(f"%{operand.name}" for operand in operands)
        self.lines += [
            f"    {result} = linalg.generic {{",
            f"        indexing_maps = [{(',' + chr(10) + ' ' * 25).join(maps)}],",
            f"        iterator_types = [{kinds}]}}",
            *([f"        ins({ins} : {types})"] if operands else []),
            f"        outs({out} : {type_}) {{",
            f"      ^bb0({', '.join(arguments)}):",
            *(f"        {line}" for line in body),
            f"    }} -> {type_}",
        ]

    def instructions(self, instructions: Sequence[Instruction]) -> Iterator[str]:
        for number, instruction in enumerate(instructions):
            operands = ", ".join(self.value(operand) for operand in instruction.operands)
            attributes = f" {instruction.attributes}" if instruction.attributes else ""
            yield f"%v{number} = {instruction.operation}{attributes} {operands} : {instruction.suffix}"

    def value(self, value: Value) -> str:
        if not isinstance(value, str):
            return self.constant(value)
        if value == LAST:
            return self.constant(_LAST, "i32")
        if value == FALSE:
            return self.constant(0, "i1")
        if value == COUNT and isinstance(length := self.function.loops[-1], int):
            return self.constant(float(length))
        return f"%scalar{value[1:]}" if value[0] == "s" else f"%{value}"

