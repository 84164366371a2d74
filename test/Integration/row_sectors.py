#!/usr/bin/env python3
"""Counts the sectors of memory that plans for rows of any length move, in the emulator.

Softmax and sums, of f32 and f16, at lengths that leave rows on and off the alignment of wide accesses: loads and stores
of a row take at most 1.3 times the sectors that it lies in, and those of a row off its alignment at most 1.3 times as
many as an aligned row of one element less.
"""

import json
import math

import harness

ROWS = 64
LENGTHS = (33, 64, 65, 100, 196, 197, 333, 1000, 1001, 4095)
MOST = 1.3
SECTOR = 32
BYTES = {"f32": 4, "f16": 2}


def softmax(element):
    return (
        f"""
    %m = tensor.dim %x, %c0 : tensor<?x?x{element}>
    %n = tensor.dim %x, %c1 : tensor<?x?x{element}>
    %o = tensor.empty(%m, %n) : tensor<?x?x{element}>
    %y = linalg.softmax dimension(1) ins(%x : tensor<?x?x{element}>) outs(%o : tensor<?x?x{element}>)
      -> tensor<?x?x{element}>
    return %y : tensor<?x?x{element}>""",
        f"tensor<?x?x{element}>",
    )


def total(element):
    return (
        f"""
    %zero = arith.constant 0.0 : {element}
    %m = tensor.dim %x, %c0 : tensor<?x?x{element}>
    %o = tensor.empty(%m) : tensor<?x{element}>
    %i = linalg.fill ins(%zero : {element}) outs(%o : tensor<?x{element}>) -> tensor<?x{element}>
    %y = linalg.reduce {{ arith.addf }} ins(%x : tensor<?x?x{element}>) outs(%i : tensor<?x{element}>) dimensions = [1]
    return %y : tensor<?x{element}>""",
        f"tensor<?x{element}>",
    )


OPERATORS = {"softmax": softmax, "sum": total}


def sectors_of_rows(length, element):
    """Sectors that rows of so many elements lie in, one row after the other."""
    size = length * BYTES[element]
    return sum(math.ceil((row + 1) * size / SECTOR) - row * size // SECTOR for row in range(ROWS))


def run(tests, operator, element, device):
    body, result = OPERATORS[operator](element)
    path = tests.write(
        f"{operator}_{element}_{device}.mlir",
        f"""
module attributes {{ukernel.symbols = {{R = #ukernel.range<1 to 512>}}}} {{
  func.func @f(%x: tensor<?x?x{element}> {{ukernel.shape = ["R", "C"]}}) -> {result} {{
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index{body}
  }}
}}
""",
    )
    arguments = [f"--args={ROWS}x{length}x{element}" for length in LENGTHS]
    ran = tests.tool(
        "ftuner-run",
        path,
        f"--device={device}",
        "--executor=emulator",
        "--counters",
        "--json",
        *arguments,
    )
    if ran.returncode != 0:
        return [ran.stderr[-1200:]]
    decoder, rest, problems, loads = json.JSONDecoder(), ran.stdout.strip(), [], {}
    for length in LENGTHS:
        report, end = decoder.raw_decode(rest)
        rest = rest[end:].lstrip()
        if len(report["counters"]) != 1:
            problems.append(f"{length} elements: {len(report['counters'])} kernels")
            continue
        requests = report["counters"][0]["requests"]
        kinds = ("global_load", "global_store") if operator == "softmax" else ("global_load",)
        for kind in kinds:
            share = requests[kind]["sectors"] / sectors_of_rows(length, element)
            if not 0.99 <= share <= MOST:
                problems.append(
                    f"{length} elements: {kind} of {share:.2f} times the sectors of the rows"
                )
        loads[length] = requests["global_load"]["sectors"]
    for length in (197, 1001):
        if loads.get(length, 0) > MOST * loads.get(length - 1, 0):
            problems.append(
                f"{loads[length]} sectors of {length} elements, {loads[length - 1]} of {length - 1}"
            )
    return problems


def main():
    tests, _ = harness.start(__doc__)
    for number, operator in enumerate(OPERATORS):
        for element in BYTES:
            tests.add(
                f"{operator} {element}", run, tests, operator, element, ("v100", "h200")[number]
            )
    tests.finish()


if __name__ == "__main__":
    main()
