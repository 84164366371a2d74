"""Functions that tests compile without a graph."""

from __future__ import annotations

from ftuner.frontend.torch.regions.linalg import (
    Instruction,
    LinalgFunction,
    Operand,
    Operator,
    Range,
    Size,
    Value,
)


def product_function(
    name: str,
    loops: tuple[Size, ...],
    lhs: tuple[int, ...],
    rhs: tuple[int, ...],
    *,
    extras: tuple[tuple[int, ...], ...] = (),
    epilogue: tuple[Instruction, ...] = (),
    result: Value = "x0",
    types: tuple[str, ...],
    result_type: str = "f32",
    num_scalars: int = 0,
    symbols: tuple[tuple[str, Range], ...] = (),
) -> LinalgFunction:
    """A product of two matrices, or batches of them, and its epilogue.

    Args:
        epilogue: instructions on the product, ``x0``, and elements of the extras, ``x1``, ….
        types: types of lhs, rhs and the extras.
    """
    space = tuple(range(len(loops) - 1))
    arguments = (lhs, rhs, *extras)
    given = [
        Operand(f"arg{number}", walk, kind)
        for number, (walk, kind) in enumerate(zip(arguments, types))
    ]
    product = Operator(
        tuple(given[:2]),
        (Instruction("arith.mulf", ("x0", "x1")),),
        "v0",
        space,
        "f32",
        "arith.addf",
    )
    operators, last = [product], Operand("t0", space, "f32")
    if epilogue or result != "x0" or result_type != "f32":
        operators.append(Operator((last, *given[2:]), epilogue, result, space, result_type))
        last = Operand("t1", space, result_type)
    return LinalgFunction(
        name, loops, arguments, types, num_scalars, tuple(operators), (last,), symbols
    )
