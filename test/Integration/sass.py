"""Reads SASS as nvdisasm prints it: functions, their loops, and what instructions are encoded to wait."""

import re
import subprocess
from dataclasses import dataclass

import ptx

#: An instruction with the lower half of its 128 bits, and a line with the upper half.
LOWER = re.compile(
    r"\s*/\*[0-9a-f]{4,}\*/\s+(@!?U?P\w+\s+)?([A-Z][A-Z0-9_]*)(.*?);?\s*/\* 0x[0-9a-f]{16} \*/"
)
UPPER = re.compile(r"\s*/\* 0x([0-9a-f]{16}) \*/\s*$")


@dataclass(frozen=True)
class Instruction:
    """`stall`: cycles that its warp issues nothing behind it, as encoded. `is_conditional`: under a predicate."""

    name: str
    operands: str
    stall: int
    is_conditional: bool


@dataclass
class Function:
    """Instructions in order, where their branches lead, and loops as ranges of them: the span of a branch back."""

    name: str
    instructions: list
    targets: dict
    loops: list

    def span_of(self, name):
        """The least loop with most instructions of a name: its begin and end; None if there is none."""
        places = [n for n, other in enumerate(self.instructions) if other.name == name]
        spans = [
            (end - begin, begin, end)
            for begin, end in self.loops
            if 2 * sum(begin <= place < end for place in places) > len(places)
        ]
        return min(spans)[1:] if spans else None

    def loop_of(self, name):
        """The instructions of that loop, or None."""
        span = self.span_of(name)
        return self.instructions[span[0] : span[1]] if span else None

    def innermost_loops(self, name):
        """The loops with instructions of a name that hold no smaller one of these: their instructions."""
        spans = [
            (begin, end)
            for begin, end in set(self.loops)
            if any(other.name == name for other in self.instructions[begin:end])
        ]
        return [
            self.instructions[begin:end]
            for begin, end in sorted(spans)
            if not any(
                begin <= inner and last <= end and (inner, last) != (begin, end)
                for inner, last in spans
            )
        ]


#: Instructions of tensor cores that a warp issues by itself.
PRODUCTS = ("HMMA", "IMMA")


@dataclass(frozen=True)
class MainLoop:
    """One k iteration of a warp: products, the cycles that its instructions take to issue by their stall counts, those
    of the cycles that come before the first product, and all instructions."""

    products: int
    stalls: int
    head: int
    instructions: int


def main_loops(function):
    """Of the loops of a function that multiply on tensor cores by single warps."""
    found = []
    for name in PRODUCTS:
        for loop in function.innermost_loops(name):
            first = next(n for n, instruction in enumerate(loop) if instruction.name == name)
            found.append(
                MainLoop(
                    sum(instruction.name == name for instruction in loop),
                    sum(instruction.stall for instruction in loop),
                    sum(instruction.stall for instruction in loop[:first]),
                    len(loop),
                )
            )
    return found


@dataclass(frozen=True)
class Epilogue:
    """What a warp executes for a tile behind its products, all elements inside: instructions, and the cycles that they
    take to issue by their stall counts."""

    instructions: int
    stalls: int


def epilogue(function, product, stores):
    """Behind the main loop with an instruction's name, to the end or the next tile. A branch forward is one around what
    lies outside and not taken; one back is a loop, of as many trips as make `stores` of a lane to global memory."""
    path, loops, callers, at = [], [], [], function.span_of(product)[1]
    while at < len(function.instructions):
        instruction, target = function.instructions[at], function.targets.get(at)
        path.append(at)
        at += 1
        if instruction.name == "EXIT" and not instruction.is_conditional:
            break
        if instruction.name == "RET" and callers:
            at = callers.pop()
        elif instruction.name == "CALL":
            callers.append(at)
            at = target
        elif target in path:
            loops.append((path.index(target), len(path)))
            if not instruction.is_conditional:
                beyond = [
                    function.targets[place]
                    for place in path[loops[-1][0] :]
                    if function.targets.get(place, 0) >= at
                ]
                if not beyond:
                    break
                at = beyond[0]
        elif target is not None and not instruction.is_conditional:
            if target < path[0]:
                break
            at = target

    def total(value, trips):
        values = [value(function.instructions[place]) for place in path]
        return sum(values) + (trips - 1) * sum(sum(values[begin:end]) for begin, end in loops)

    def is_store(instruction):
        return instruction.name == "STG"

    once, again = total(is_store, 1), total(is_store, 2) - total(is_store, 1)
    trips = 1 + (stores - once) // again if again else 1
    if total(is_store, trips) != stores:
        raise ValueError(
            f"{function.name}: expected {stores} stores behind the main loop, but found {once}, and "
            f"{again} in loops"
        )
    return Epilogue(
        total(lambda instruction: 1, trips), total(lambda instruction: instruction.stall, trips)
    )


def assembled(text, path):
    """The functions of a module of PTX, which is assembled in files that are named by `path`."""
    with open(path + ".ptx", "w", encoding="utf-8") as file:
        file.write(text)
    arch = re.search(r"\.target (sm_\w+)", text)[1]
    subprocess.run(
        [ptx.find_ptxas(), f"-arch={arch}", path + ".ptx", "-o", path + ".cubin"], check=True
    )
    return functions(ptx.find_tool("nvdisasm"), path + ".cubin")


def functions(nvdisasm, cubin):
    text = subprocess.run(
        [nvdisasm, "-c", "-hex", cubin], capture_output=True, text=True, check=True
    ).stdout
    result = []
    for part in re.split(r"(?m)^(?=//-+ \.text\.)", text)[1:]:
        name = re.match(r"//-+ \.text\.(\S+)", part).group(1)
        labels, instructions, branches, lower = {}, [], [], None
        for line in part.splitlines():
            if label := re.match(r"\s*(\.L_x_\d+|\$\S+):", line):
                labels[label.group(1)] = len(instructions)
            elif found := LOWER.match(line):
                lower = found
            elif lower and (upper := UPPER.match(line)):
                guard, opcode, rest = lower.groups()
                lower = None
                # ptxas pads copies and fences with loads that are never executed.
                if (guard or "").strip() == "@!PT":
                    continue
                target = re.search(r"`\(([.$][^)]+)\)", rest)
                if opcode in ("BRA", "CALL") and target:
                    branches.append((len(instructions), target.group(1)))
                # Uniform predicates of branches are operands.
                is_conditional = (
                    bool(guard) or opcode == "BRA" and bool(re.search(r"\bU?P\d", rest))
                )
                instructions.append(
                    Instruction(
                        opcode, rest.strip(), int(upper.group(1), 16) >> 41 & 15, is_conditional
                    )
                )
        targets = {place: labels[target] for place, target in branches if target in labels}
        loops = [
            (target, place + 1)
            for place, target in targets.items()
            if target < place and instructions[place].name == "BRA"
        ]
        result.append(Function(name, instructions, targets, loops))
    return result
