"""Text of an FTuner function: one product with a pointwise epilogue, as linalg.

The product sums over one loop and writes each element of its result once::

    result[p0, p1, ...] = epilogue(sum over r of lhs[...] * rhs[...], extras[...])

Loops p0, p1, ... are the result's dimensions in order, r comes last. A tensor is
read at one loop for each of its dimensions. All tensors are f32, contiguous and
arguments of the function, so weights are never part of the text.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
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
    """Sizes that a symbol takes; ``upper`` is None where there is no limit."""

    lower: int
    upper: int | None

    def __str__(self) -> str:
        return f"#ukernel.range<{self.lower} to {'?' if self.upper is None else self.upper}>"


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

    @property
    def arguments(self) -> tuple[tuple[int, ...], ...]:
        """The loops of the dimensions of each tensor argument."""
        return (self.lhs, self.rhs, *self.extras)

    @property
    def result_loops(self) -> tuple[int, ...]:
        return tuple(range(len(self.loops) - 1))

    def __str__(self) -> str:
        return _Printer(self).text()


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
        result_type = self.tensor_type(function.result_loops)
        body = self.body(result_type)
        header = [
            f"    %{name} = arith.constant {value} : f32" for value, name in self.constants.items()
        ]
        symbols = ", ".join(f"{name} = {range_}" for name, range_ in function.symbols)
        attributes = f" attributes {{ukernel.symbols = {{{symbols}}}}}" if symbols else ""
        arguments = ",\n      ".join(
            [self.argument(number, loops) for number, loops in enumerate(function.arguments)]
            + [f"%scalar{number}: f32" for number in range(function.num_scalars)]
        )
        return "\n".join(
            [
                f"module{attributes} {{",
                f"  func.func @{function.name}(",
                f"      {arguments}) -> {result_type} {{",
                *header,
                *body,
                "  }",
                "}",
                "",
            ]
        )

    def tensor_type(self, loops: Sequence[int]) -> str:
        sizes = (self.function.loops[loop] for loop in loops)
        return "tensor<" + "".join(f"{s if isinstance(s, int) else '?'}x" for s in sizes) + "f32>"

    def argument(self, number: int, loops: Sequence[int]) -> str:
        sizes = [self.function.loops[loop] for loop in loops]
        text = f"%arg{number}: {self.tensor_type(loops)}"
        if all(isinstance(size, int) for size in sizes):
            return text
        shape = ", ".join(f'"{size}"' if isinstance(size, str) else str(size) for size in sizes)
        return f"{text} {{ukernel.shape = [{shape}]}}"

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
        lines += [
            f"    %empty = tensor.empty({sizes}) : {result_type}",
            f"    %zeros = linalg.fill ins({zero} : f32) outs(%empty : {result_type})"
            f" -> {result_type}",
        ]
        lines += self.generic(
            name="%product",
            maps=[self.map(loops, count) for loops in (*function.arguments[:2],)]
            + [self.map(function.result_loops, count)],
            iterators=["parallel"] * (count - 1) + ["reduction"],
            inputs=[(f"%arg{n}", self.tensor_type(function.arguments[n])) for n in range(2)],
            output=("%zeros", result_type),
            block=["%a", "%b", "%c"],
            body=["%x = arith.mulf %a, %b : f32", "%y = arith.addf %c, %x : f32"],
            value="%y",
        )
        if not function.epilogue and function.result == "acc":
            return lines + [f"    return %product : {result_type}"]
        identity = self.map(function.result_loops, count - 1)
        lines += self.generic(
            name="%result",
            maps=[identity]
            + [self.map(loops, count - 1) for loops in function.extras]
            + [identity],
            iterators=["parallel"] * (count - 1),
            inputs=[("%product", result_type)]
            + [
                (f"%arg{number + 2}", self.tensor_type(loops))
                for number, loops in enumerate(function.extras)
            ],
            output=("%empty", result_type),
            block=["%acc", *(f"%e{n}" for n in range(len(function.extras))), "%out"],
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
            number, dim = next(
                (number, dim)
                for number, loops in enumerate(function.arguments)
                for dim, loop in enumerate(loops)
                if function.loops[loop] == size
            )
            argument_type = self.tensor_type(function.arguments[number])
            lines += [
                f"    %dim_{size} = arith.constant {dim} : index",
                f"    %{size} = tensor.dim %arg{number}, %dim_{size} : {argument_type}",
            ]
        return lines

    def generic(
        self,
        name: str,
        maps: list[str],
        iterators: list[str],
        inputs: list[tuple[str, str]],
        output: tuple[str, str],
        block: list[str],
        body: list[str],
        value: str,
    ) -> list[str]:
        """linalg.generic on f32."""
        kinds = ", ".join(f'"{iterator}"' for iterator in iterators)
        return [
            f"    {name} = linalg.generic {{",
            f"        indexing_maps = [{(',' + chr(10) + ' ' * 25).join(maps)}],",
            f"        iterator_types = [{kinds}]}}",
            f"        ins({', '.join(n for n, _ in inputs)} : {', '.join(t for _, t in inputs)})",
            f"        outs({output[0]} : {output[1]}) {{",
            f"      ^bb0({', '.join(f'{argument}: f32' for argument in block)}):",
            *(f"        {line}" for line in body),
            f"        linalg.yield {value} : f32",
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
