"""Reads SASS as nvdisasm prints it: functions and their loops."""

import re
import subprocess
from dataclasses import dataclass


@dataclass
class Function:
    """Names of instructions in order, and loops as ranges of them: the span of a branch back."""
    name: str
    instructions: list
    loops: list

    def loop_of(self, name):
        """The least loop with most instructions of a name: their names; None if there is none."""
        places = [n for n, other in enumerate(self.instructions) if other == name]
        spans = [(end - begin, begin, end) for begin, end in self.loops
                 if 2 * sum(begin <= place < end for place in places) > len(places)]
        if not spans:
            return None
        _, begin, end = min(spans)
        return self.instructions[begin:end]


def functions(nvdisasm, cubin):
    text = subprocess.run([nvdisasm, "-c", cubin], capture_output=True, text=True, check=True).stdout
    result = []
    for part in re.split(r"(?m)^(?=//-+ \.text\.)", text)[1:]:
        name = re.match(r"//-+ \.text\.(\S+)", part).group(1)
        labels, instructions, branches = {}, [], []
        for line in part.splitlines():
            label = re.match(r"\s*(\.L_x_\d+):", line)
            if label:
                labels[label.group(1)] = len(instructions)
                continue
            # ptxas pads copies and fences with loads that are never executed.
            found = re.match(r"\s*/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P\w+\s+)?([A-Z][A-Z0-9_]*)(.*)", line)
            if not found or "@!PT" in line:
                continue
            target = re.search(r"`\((\.L_x_\d+)\)", found.group(2))
            if found.group(1) == "BRA" and target:
                branches.append((len(instructions), target.group(1)))
            instructions.append(found.group(1))
        loops = [(labels[target], place + 1) for place, target in branches if labels.get(target, place) < place]
        result.append(Function(name, instructions, loops))
    return result
