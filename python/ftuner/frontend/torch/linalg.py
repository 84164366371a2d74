"""Text of an FTuner function: one product with a pointwise epilogue, as linalg.

The product sums over one loop and writes each element of its result once::

    result[p0, p1, ...] = epilogue(sum over r of lhs[...] * rhs[...], extras[...])

Loops p0, p1, ... are the result's dimensions in order, r comes last. A tensor is
read at one loop for each of its dimensions. All tensors are f32, f16 or bf16,
contiguous and arguments of the function, so weights are never part of the text.
Sums and the epilogue are in f32; a narrower result is rounded at the end, and
where the epilogue says so.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

#: Extent of a loop: an int, or the name of a symbol.
Size = int | str
#: A value in the epilogue: ``acc``, ``e0`` (an extra), ``s0`` (a scalar), ``v0``
#: (the result of an instruction), or a constant.
Value = str | float


@dataclass(frozen=True)
class Instruction:
    """``results`` of one operation of arith or math on scalars.

    ``operation`` is its name, ``attributes`` what stands between name and
    operands ("ogt," of arith.cmpf), ``types`` the operand types if not f32.
    """

    operation: str
    operands: tuple[Value, ...]
    attributes: str = ""
    suffix: str = "f32"


@dataclass(frozen=True)
class Range:
    """Sizes that a symbol takes; ``upper`` is None where there is no limit.

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
class ProductFunction:
    """A function of one product. ``str()`` is its module as MLIR text.

    Arguments are lhs, rhs, the extras, then the scalars (f32).
    """

    name: str
    loops: tuple[Size, ...]
    lhs: tuple[int, ...]
    rhs: tuple[int, ...]
    extras: tuple[tuple[int, ...], ...]
    num_scalars: int
    epilogue: tuple[Instruction, ...]
    result: Value
    symbols: tuple[tuple[str, Range], ...]
    #: Types of the elements of lhs, rhs and the extras, and of the result.
    types: tuple[str, ...]
    result_type: str

    @property
    def arguments(self) -> tuple[tuple[int, ...], ...]:
        """The loops of the dimensions of each tensor argument."""
        return (self.lhs, self.rhs, *self.extras)

    @property
    def result_loops(self) -> tuple[int, ...]:
        return tuple(range(len(self.loops) - 1))

    @property
    def result_sizes(self) -> tuple[int | tuple[int, int], ...]:
        """Each size of the result: a number, or a tensor argument and a dimension that has it."""
        sizes = (self.loops[loop] for loop in self.result_loops)
        return tuple(size if isinstance(size, int) else self.source_of(size) for size in sizes)

    @property
    def rows_of_weight(self) -> int | None:
        """The loop of the rows, in a product of rows with a weight; else None.

        A weight is a factor whose two sizes are known. The rows are a loop of the result and of
        the other factor, which has no more loops than this and that of the sum.
        """
        reduce = len(self.loops) - 1
        lhs, rhs = {*self.lhs} - {reduce}, {*self.rhs} - {reduce}
        if len(self.loops) != 3 or len(lhs) != 1 or lhs & rhs:
            return None
        if not all(isinstance(self.loops[loop], int) for loop in self.rhs):
            return None
        return lhs.pop()

    def source_of(self, symbol: str) -> tuple[int, int]:
        """The first argument with a dimension of that symbol, and the dimension."""
        return next(
            (number, dim)
            for number, loops in enumerate(self.arguments)
            for dim, loop in enumerate(loops)
            if self.loops[loop] == symbol
        )

    def __str__(self) -> str:
        return _Printer(self).text()


def tensor_type(sizes: Iterable[Size], element: str) -> str:
    """The type of a tensor; sizes that have names are dynamic."""
    return "tensor<" + "".join(f"{s if isinstance(s, int) else '?'}x" for s in sizes) + f"{element}>"


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
    def __init__(self, function: ProductFunction) -> None:
        self.function = function
        self.lines: list[str] = []
        self.constants: dict[str, str] = {}

    def text(self) -> str:
        function = self.function
        result_type = self.tensor_type(function.result_loops, function.result_type)
        body = self.body(result_type)
        header = [
            f"    %{name} = arith.constant {value} : f32" for value, name in self.constants.items()
        ]
        return module_text(
            function.name,
            function.symbols,
            [self.argument(number, loops) for number, loops in enumerate(function.arguments)],
            function.num_scalars,
            result_type,
            [*header, *body],
        )

    def tensor_type(self, loops: Sequence[int], element: str) -> str:
        return tensor_type([self.function.loops[loop] for loop in loops], element)

    def argument_type(self, number: int) -> str:
        function = self.function
        return self.tensor_type(function.arguments[number], function.types[number])

    def argument(self, number: int, loops: Sequence[int]) -> str:
        function = self.function
        return argument_text(number, [function.loops[loop] for loop in loops], function.types[number])

    def map(self, loops: Sequence[int], count: int) -> str:
        names = ", ".join(f"d{loop}" for loop in range(count))
        return f"affine_map<({names}) -> ({', '.join(f'd{loop}' for loop in loops)})>"

    def constant(self, value: float) -> str:
        text = format_constant(value)
        return "%" + self.constants.setdefault(text, f"c{len(self.constants)}")

    def body(self, result_type: str) -> list[str]:
        function = self.function
        count = len(function.loops)
        lines = self.sizes()
        sizes = ", ".join(
            f"%{size}" for size in function.loops[:-1] if isinstance(size, str)
        )
        zero = self.constant(0.0)
        sums_type = self.tensor_type(function.result_loops, "f32")
        lines += [
            f"    %empty = tensor.empty({sizes}) : {sums_type}",
            f"    %zeros = linalg.fill ins({zero} : f32) outs(%empty : {sums_type}) -> {sums_type}",
        ]
        lines += self.generic(
            name="%product",
            maps=[self.map(loops, count) for loops in (*function.arguments[:2],)]
            + [self.map(function.result_loops, count)],
            iterators=["parallel"] * (count - 1) + ["reduction"],
            inputs=[(f"%arg{n}", self.argument_type(n)) for n in range(2)],
            output=("%zeros", sums_type),
            block=list(zip(("%a", "%b", "%c"), (*function.types[:2], "f32"))),
            body=["%x = arith.mulf %a, %b : f32", "%y = arith.addf %c, %x : f32"],
            value="%y",
        )
        if not function.epilogue and function.result == "acc" and function.result_type == "f32":
            return lines + [f"    return %product : {result_type}"]
        output = "%empty"
        if function.result_type != "f32":
            output = "%narrow"
            lines.append(f"    %narrow = tensor.empty({sizes}) : {result_type}")
        identity = self.map(function.result_loops, count - 1)
        extras = [f"%e{number}" for number in range(len(function.extras))]
        lines += self.generic(
            name="%result",
            maps=[identity]
            + [self.map(loops, count - 1) for loops in function.extras]
            + [identity],
            iterators=["parallel"] * (count - 1),
            inputs=[("%product", sums_type)]
            + [(f"%arg{n + 2}", self.argument_type(n + 2)) for n in range(len(function.extras))],
            output=(output, result_type),
            block=[
                ("%acc", "f32"),
                *zip(extras, function.types[2:]),
                ("%out", function.result_type),
            ],
            body=[self.instruction(n, i) for n, i in enumerate(function.epilogue)],
            value=self.value(function.result),
        )
        return lines + [f"    return %result : {result_type}"]

    def sizes(self) -> list[str]:
        """Reads each symbol of the result from the first argument that has it."""
        function = self.function
        lines: list[str] = []
        seen: set[str] = set()
        for size in function.loops[:-1]:
            if not isinstance(size, str) or size in seen:
                continue
            seen.add(size)
            number, dim = function.source_of(size)
            lines += size_lines(size, number, dim, self.argument_type(number))
        return lines

    def generic(
        self,
        name: str,
        maps: list[str],
        iterators: list[str],
        inputs: list[tuple[str, str]],
        output: tuple[str, str],
        block: list[tuple[str, str]],
        body: list[str],
        value: str,
    ) -> list[str]:
        """linalg.generic whose body is in f32; the last of ``block`` is the output's element."""
        kinds = ", ".join(f'"{iterator}"' for iterator in iterators)
        arguments: list[str] = []
        casts: list[str] = []
        for name_, kind in block:
            narrow = kind != "f32" and name_ != block[-1][0]
            arguments.append(f"{name_}{'_narrow' if narrow else ''}: {kind}")
            if narrow:
                casts.append(f"{name_} = arith.extf {name_}_narrow : {kind} to f32")
        result = block[-1][1]
        if result != "f32":
            body = [*body, f"%rounded = arith.truncf {value} : f32 to {result}"]
            value = "%rounded"
        return [
            f"    {name} = linalg.generic {{",
            f"        indexing_maps = [{(',' + chr(10) + ' ' * 25).join(maps)}],",
            f"        iterator_types = [{kinds}]}}",
            f"        ins({', '.join(n for n, _ in inputs)} : {', '.join(t for _, t in inputs)})",
            f"        outs({output[0]} : {output[1]}) {{",
            f"      ^bb0({', '.join(arguments)}):",
            *(f"        {line}" for line in (*casts, *body)),
            f"        linalg.yield {value} : {result}",
            f"    }} -> {output[1]}",
        ]

    def value(self, value: Value) -> str:
        if isinstance(value, str):
            return f"%scalar{value[1:]}" if value[0] == "s" else f"%{value}"
        return self.constant(value)

    def instruction(self, number: int, instruction: Instruction) -> str:
        operands = ", ".join(self.value(operand) for operand in instruction.operands)
        attributes = f" {instruction.attributes}" if instruction.attributes else ""
        return (
            f"%v{number} = {instruction.operation}{attributes} {operands}"
            f" : {instruction.suffix}"
        )
