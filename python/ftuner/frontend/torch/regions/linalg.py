"""Text of an FTuner function: operators that share loops, as linalg.

A function is a list of operators, each one `linalg.generic`. Each gives one tensor: elementwise
from tensors of as many or fewer loops, or reduced along the last loop of the function. That loop is
the *row* of reductions such as softmax, and the summed loop of a product. A row whose dimensions do not
lie side by side has several loops, the last ones::

    t0[p0, p1, ...] = sum over r of arg0[...] * arg1[...]
    t1[p0, p1, ...] = epilogue(t0[...], arg2[...], ...)

A tensor is read at one loop for each of its dimensions. Arguments are f32, f16, bf16 or i1, and
contiguous; of an argument the function may read a part. Weights are arguments, so they are never part of the text. Arithmetic is in f32, and a
narrower result is rounded where its operator ends, as PyTorch rounds it, and where instructions
say so.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

#: Extent of a loop: an int, or the name of a symbol.
Size = int | str
#: A value of instructions: ``x0`` (an element of an operand), ``s0`` (a scalar of the function), ``v0``
#: (the result of an instruction), one of the names below, or a constant.
Value = str | float


#: Values of instructions: the number of elements of a row (f32), the position of an element in its row
#: (i32), the last position that a kernel knows (i32), a boolean that is false.
COUNT, POSITION, LAST, FALSE = "count", "position", "last", "false"

_LAST = 2**31 - 1

#: Operations that join two values of a reduction, and their neutral elements.
_START = {
    "arith.addf": 0.0,
    "arith.maximumf": float("-inf"),
    "arith.minimumf": float("inf"),
    "arith.addi": 0,
    "arith.minsi": _LAST,
}


@dataclass(frozen=True)
class Instruction:
    """One operation of arith or math on scalars.

    ``operation`` is its name, ``attributes`` the text between name and operands ("ogt," of
    arith.cmpf), ``suffix`` the type after the colon.
    """

    operation: str
    operands: tuple[Value, ...]
    attributes: str = ""
    suffix: str = "f32"


@dataclass(frozen=True)
class Range:
    """Sizes that a symbol takes; ``upper`` is None without a limit.

    ``weights`` has sizes, ascending, and how often they occur; empty: equally often.
    """

    lower: int
    upper: int | None
    weights: tuple[tuple[int, float], ...] = ()

    def __str__(self) -> str:
        upper = "?" if self.upper is None else self.upper
        weights = ", ".join(f"{size} : {weight:.9e}" for size, weight in self.weights)
        return f"#ukernel.range<{self.lower} to {upper}{f' weights [{weights}]' * bool(weights)}>"


@dataclass(frozen=True)
class Operand:
    """A tensor that an operator reads: an argument, or the result of an operator before.

    ``name`` is ``arg0`` (an argument) or ``t0`` (an operator's result).
    """

    name: str
    loops: tuple[int, ...]
    kind: str


@dataclass(frozen=True)
class PartOfDim:
    """A dimension of an argument that is read in part.

    Attributes:
        loop: the loop that walks the part; None: the part is one element.
        offset: the first element that is read.
        extent: the number of elements of the dimension.
    """

    loop: int | None
    offset: int
    extent: Size


@dataclass(frozen=True)
class Part:
    """The dimensions of an argument of which a part is read: a loop walks all of a dimension, or a part."""

    dims: tuple[int | PartOfDim, ...]


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
class LinalgFunction:
    """A function; `str()` is its module as MLIR text.

    Arguments are tensors, then scalars (f32). The last ``num_reduced`` of ``loops`` are reduced.
    """

    name: str
    loops: tuple[Size, ...]
    #: The loops of the dimensions of each tensor argument, and the types of their elements.
    arguments: tuple[tuple[int, ...], ...]
    types: tuple[str, ...]
    num_scalars: int
    operators: tuple[Operator, ...]
    #: The operands that are returned.
    results: tuple[Operand, ...]
    symbols: tuple[tuple[str, Range], ...]
    #: The part of each argument that is read, None for all of it. `arguments` has the loops of the
    #: part. Empty: all arguments are read as wholes.
    parts: tuple[Part | None, ...] = ()
    num_reduced: int = 1
    #: The number of kernels that the function may have; with several, one may be a fallback kernel.
    max_kernels: int = 1

    @property
    def row_sizes(self) -> tuple[Size, ...]:
        """The sizes whose product is the number of elements of a row."""
        return self.loops[len(self.loops) - self.num_reduced :]

    def part_of(self, argument: int) -> Part | None:
        """The part of an argument that is read; None: all of it."""
        return self.parts[argument] if self.parts else None

    def dims_of(self, argument: int) -> tuple[int | PartOfDim, ...]:
        """The dimensions of an argument as a whole."""
        part = self.part_of(argument)
        return self.arguments[argument] if part is None else part.dims

    def sizes_of(self, argument: int) -> list[Size]:
        """The sizes of an argument as a whole."""
        dims = self.dims_of(argument)
        return [dim.extent if isinstance(dim, PartOfDim) else self.loops[dim] for dim in dims]

    def source_of(self, symbol: str) -> tuple[int, int]:
        """The first argument with a dimension of that symbol, and the dimension."""
        return next(
            (number, dim)
            for number in range(len(self.arguments))
            for dim, size in enumerate(self.sizes_of(number))
            if size == symbol
        )

    @property
    def result_sizes(self) -> tuple[tuple[int | tuple[int, int], ...], ...]:
        """Sizes of each result: numbers, or a tensor argument and a dimension that has it."""

        def size_of(size: Size) -> int | tuple[int, int]:
            return size if isinstance(size, int) else self.source_of(size)

        return tuple(
            tuple(size_of(self.loops[loop]) for loop in result.loops) for result in self.results
        )

    @property
    def rows_of_weight(self) -> int | None:
        """The loop of the rows, in a product of rows with a weight; else None.

        A weight is a factor whose two sizes are known. The rows are a loop of the result and of
        the other factor, which has no more loops than this and that of the sum.
        """
        first, reduce = self.operators[0], len(self.loops) - 1
        if [one.name for one in first.operands] != ["arg0", "arg1"] or not first.combine:
            return None
        lhs, rhs = ({*loops} - {reduce} for loops in self.arguments[:2])
        if len(self.loops) != 3 or len(lhs) != 1 or lhs & rhs:
            return None
        if not all(isinstance(self.loops[loop], int) for loop in self.arguments[1]):
            return None
        return lhs.pop()

    def with_leading_loop(self, argument: int, loop: int) -> LinalgFunction:
        """The function whose argument has one more loop, before its others."""
        name, loops = f"arg{argument}", (loop, *self.arguments[argument])

        def changed(operator: Operator) -> Operator:
            operands = (
                replace(one, loops=loops) if one.name == name else one for one in operator.operands
            )
            return replace(operator, operands=tuple(operands))

        arguments = [*self.arguments]
        arguments[argument] = loops
        parts = [*self.parts]
        if (part := self.part_of(argument)) is not None:
            parts[argument] = Part((loop, *part.dims))
        operators = tuple(map(changed, self.operators))
        return replace(self, arguments=tuple(arguments), parts=tuple(parts), operators=operators)

    def __str__(self) -> str:
        return _Printer(self).text()


def tensor_type(sizes: Iterable[Size], element: str) -> str:
    """The type of a tensor; sizes that have names are dynamic."""
    return (
        "tensor<" + "".join(f"{s if isinstance(s, int) else '?'}x" for s in sizes) + f"{element}>"
    )


def argument_text(number: int, sizes: Sequence[Size], element: str) -> str:
    """A tensor argument in a function's signature, with the names of its sizes."""
    text = f"%arg{number}: {tensor_type(sizes, element)}"
    if all(isinstance(size, int) for size in sizes):
        return text
    shape = ", ".join(f'"{size}"' if isinstance(size, str) else str(size) for size in sizes)
    return f"{text} {{ukernel.shape = [{shape}]}}"


def size_lines(size: str, number: int, dim: int, type_: str) -> list[str]:
    """Reads a symbol from a dimension of an argument of that type."""
    return [
        f"    %dim_{size} = arith.constant {dim} : index",
        f"    %{size} = tensor.dim %arg{number}, %dim_{size} : {type_}",
    ]


def module_text(
    name: str,
    symbols: Iterable[tuple[str, Range]],
    arguments: Sequence[str],
    num_scalars: int,
    results: str,
    lines: Iterable[str],
) -> str:
    """A module of one function, whose last arguments are scalars of f32. `results`: its types."""
    ranges = ", ".join(f"{symbol} = {range_}" for symbol, range_ in symbols)
    attributes = f" attributes {{ukernel.symbols = {{{ranges}}}}}" if ranges else ""
    scalars = [f"%scalar{number}: f32" for number in range(num_scalars)]
    signature = ",\n      ".join([*arguments, *scalars])
    return "\n".join(
        [
            f"module{attributes} {{",
            f"  func.func @{name}(",
            f"      {signature}) -> {results} {{",
            *lines,
            "  }",
            "}",
            "",
        ]
    )


def format_constant(value: float) -> str:
    """A constant of f32, exact."""
    (bits,) = struct.unpack("<I", struct.pack("<f", _round_to_f32(value)))
    rounded = struct.unpack("<f", struct.pack("<I", bits))[0]
    if rounded != rounded or rounded in (float("inf"), float("-inf")):
        return f"0x{bits:08X}"
    return f"{rounded:.9e}"


def _round_to_f32(value: float) -> float:
    try:
        struct.pack("<f", value)
    except OverflowError:
        return float("inf") if value > 0 else float("-inf")
    return value


class _Printer:
    def __init__(self, function: LinalgFunction) -> None:
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
            types if len(function.results) == 1 else f"({types})",
            [
                *constants,
                *self.sizes(),
                *(f"    {name} = {text}" for text, name in self.empties.items()),
                *(line for number in range(len(function.arguments)) for line in self.part(number)),
                *self.lines,
                f"    return {results} : {types}",
            ],
        )

    # Types, sizes and constants

    def tensor_type(self, loops: Sequence[int], kind: str) -> str:
        return tensor_type([self.function.loops[loop] for loop in loops], kind)

    def argument(self, number: int) -> str:
        function = self.function
        return argument_text(number, function.sizes_of(number), function.types[number])

    def part(self, number: int) -> Iterator[str]:
        """The part of an argument that is read, unless that is all."""
        function = self.function
        if function.part_of(number) is None:
            return
        offsets, sizes = [], []
        for dim in function.dims_of(number):
            loop = dim.loop if isinstance(dim, PartOfDim) else dim
            size: Size = 1 if loop is None else function.loops[loop]
            offsets.append(str(dim.offset if isinstance(dim, PartOfDim) else 0))
            sizes.append(f"%{size}" if isinstance(size, str) else str(size))
        whole = tensor_type(function.sizes_of(number), function.types[number])
        part = self.tensor_type(function.arguments[number], function.types[number])
        ones = ", ".join("1" for _ in sizes)
        yield (
            f"    %part{number} = tensor.extract_slice %arg{number}[{', '.join(offsets)}]"
            f" [{', '.join(sizes)}] [{ones}] : {whole} to {part}"
        )

    def operand_text(self, operand: Operand) -> str:
        """An operand of an operator: an argument, the part of one that is read, or a result."""
        name = operand.name
        if name.startswith("arg") and self.function.part_of(int(name[3:])) is not None:
            name = name.replace("arg", "part")
        return f"%{name}"

    def sizes(self) -> list[str]:
        """Each symbol, from the first argument that has it, and the length of a row."""
        function = self.function
        lines: list[str] = []
        for size in dict.fromkeys(function.loops):
            if not isinstance(size, str):
                continue
            number, dim = function.source_of(size)
            kind = tensor_type(function.sizes_of(number), function.types[number])
            lines += size_lines(size, number, dim, kind)
        known = math.prod(size for size in function.row_sizes if isinstance(size, int))
        factors = [f"%{size}" for size in function.row_sizes if isinstance(size, str)]
        if not factors or not any(map(self.counts, function.operators)):
            return lines
        if known != 1:
            lines.append(f"    %count_known = arith.constant {known} : index")
            factors.append("%count_known")
        count, *others = factors
        for number, factor in enumerate(others):
            lines.append(f"    %count_{number} = arith.muli {count}, {factor} : index")
            count = f"%count_{number}"
        return [
            *lines,
            f"    %count_i64 = arith.index_cast {count} : index to i64",
            f"    %{COUNT} = arith.sitofp %count_i64 : i64 to f32",
        ]

    @staticmethod
    def counts(operator: Operator, name: str = COUNT) -> bool:
        """Returns whether an operator reads such a value."""
        return any(name in instruction.operands for instruction in operator.instructions)

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
        """Loops in the order of the operand that has all; without such an operand, the result's loops first."""
        if not operator.combine:
            return list(operator.loops)
        longest = max((operand.loops for operand in operator.operands), key=len)
        if set(operator.loops) <= set(longest):
            return list(longest)
        return [*operator.loops, *(loop for loop in longest if loop not in operator.loops)]

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
            return (
                f"affine_map<({names}) -> ({', '.join(f'd{loops.index(loop)}' for loop in walk)})>"
            )

        operands = operator.operands
        maps = [map_of(operand.loops) for operand in operands] + [map_of(operator.loops)]
        kinds = ", ".join(
            '"parallel"' if loop in operator.loops else '"reduction"' for loop in loops
        )
        types = ", ".join(self.tensor_type(operand.loops, operand.kind) for operand in operands)
        ins = ", ".join(map(self.operand_text, operands))
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
        if value == COUNT:
            sizes = [size for size in self.function.row_sizes if isinstance(size, int)]
            if len(sizes) == self.function.num_reduced:
                return self.constant(float(math.prod(sizes)))
        return f"%scalar{value[1:]}" if value[0] == "s" else f"%{value}"
