"""Reads SASS as nvdisasm prints it: functions, their loops, and what instructions are encoded to wait."""

import re
import subprocess
from dataclasses import dataclass

#: An instruction with the lower half of its 128 bits, and a line with the upper half.
LOWER = re.compile(r"\s*/\*[0-9a-f]{4,}\*/\s+(@!?U?P\w+\s+)?([A-Z][A-Z0-9_]*)(.*?);?\s*/\* 0x[0-9a-f]{16} \*/")
UPPER = re.compile(r"\s*/\* 0x([0-9a-f]{16}) \*/\s*$")


@dataclass(frozen=True)
class Instruction:
    """`stall`: cycles that its warp issues nothing behind it, as encoded."""
    name: str
    operands: str
    stall: int


@dataclass
class Function:
    """Instructions in order, and loops as ranges of them: the span of a branch back."""
    name: str
    instructions: list
    loops: list

    def span_of(self, name):
        """The least loop with most instructions of a name: its begin and end; None if there is none."""
        places = [n for n, other in enumerate(self.instructions) if other.name == name]
        spans = [(end - begin, begin, end) for begin, end in self.loops
                 if 2 * sum(begin <= place < end for place in places) > len(places)]
        return min(spans)[1:] if spans else None

    def loop_of(self, name):
        """The instructions of that loop, or None."""
        span = self.span_of(name)
        return self.instructions[span[0]:span[1]] if span else None

    def innermost_loops(self, name):
        """The loops with instructions of a name that hold no smaller one of these: their instructions."""
        spans = [(begin, end) for begin, end in set(self.loops)
                 if any(other.name == name for other in self.instructions[begin:end])]
        return [self.instructions[begin:end] for begin, end in sorted(spans)
                if not any(begin <= inner and last <= end and (inner, last) != (begin, end) for inner, last in spans)]


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
            found.append(MainLoop(sum(instruction.name == name for instruction in loop),
                                  sum(instruction.stall for instruction in loop),
                                  sum(instruction.stall for instruction in loop[:first]), len(loop)))
    return found


def functions(nvdisasm, cubin):
    text = subprocess.run([nvdisasm, "-c", "-hex", cubin], capture_output=True, text=True, check=True).stdout
    result = []
    for part in re.split(r"(?m)^(?=//-+ \.text\.)", text)[1:]:
        name = re.match(r"//-+ \.text\.(\S+)", part).group(1)
        labels, instructions, branches, lower = {}, [], [], None
        for line in part.splitlines():
            if label := re.match(r"\s*(\.L_x_\d+):", line):
                labels[label.group(1)] = len(instructions)
            elif found := LOWER.match(line):
                lower = found
            elif lower and (upper := UPPER.match(line)):
                guard, opcode, rest = lower.groups()
                lower = None
                # ptxas pads copies and fences with loads that are never executed.
                if (guard or "").strip() == "@!PT":
                    continue
                target = re.search(r"`\((\.L_x_\d+)\)", rest)
                if opcode == "BRA" and target:
                    branches.append((len(instructions), target.group(1)))
                instructions.append(Instruction(opcode, rest.strip(), int(upper.group(1), 16) >> 41 & 15))
        loops = [(labels[target], place + 1) for place, target in branches if labels.get(target, place) < place]
        result.append(Function(name, instructions, loops))
    return result
