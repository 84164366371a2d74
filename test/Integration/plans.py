"""Which kernel a plan chooses for a size, read from the plan as it is printed.

The rules are those of docs/ideas.md, "Dispatch", written down once more: the first
box that holds the shape decides, aligned operands and others by lists of their own.
"""

import re

import harness


class Plan:
    """The plan of a module's one workload."""

    def __init__(self, text):
        (line,) = re.findall(r"^ *ukernel\.plan @\w+ <(.*)>$", text, re.MULTILINE)
        families, line = line.split("choices = ", 1)
        #: Elements of one access, for each family: what its schedule says.
        self.vector_widths = [
            self._vector_width(*family)
            for family in re.findall(r"<#ukernel\.(\w+)<(.*?)>", families)
        ]
        choices, self.general, line = re.split(r"general = (\d+)", line, maxsplit=1)
        unaligned, self.unaligned_general, _ = re.split(
            r"unaligned_general = (\d+)", line, maxsplit=1
        )
        self.general, self.unaligned_general = int(self.general), int(self.unaligned_general)
        self.choices, self.unaligned = self._boxes(choices), self._boxes(unaligned)

    @staticmethod
    def _vector_width(path, schedule):
        if path != "simt":
            raise ValueError(f"expected schedules of simt, but got one of {path}: {schedule}")
        return int(re.search(r"vector = (\d+)", schedule).group(1))

    @staticmethod
    def _boxes(text):
        """(ranges, family) of each choice; a range without an end has None."""
        boxes = []
        for ranges, family in re.findall(r"<\[([^\]]*)\] to (\d+)>", text):
            bounds = re.findall(r"<(\d+) to (\d+|\?)[^>]*>", ranges)
            boxes.append(
                (
                    [(int(low), None if high == "?" else int(high)) for low, high in bounds],
                    int(family),
                )
            )
        return boxes

    def family(self, shape, contiguous, misalign=0):
        """The family for a shape (m, n, k, …) with operands contiguous along these extents."""
        width = max(
            [self.vector_widths[family] for _, family in self.choices]
            + [self.vector_widths[self.general]]
        )
        is_aligned = misalign % (4 * width) == 0 and all(
            extent % width == 0 for extent in contiguous
        )
        boxes, otherwise = (
            (self.choices, self.general) if is_aligned else (self.unaligned, self.unaligned_general)
        )
        for ranges, family in boxes:
            if all(
                low <= size and (high is None or size <= high)
                for (low, high), size in zip(ranges, shape)
            ):
                return family
        return otherwise


def problems_of_launches(plan, run, shape, contiguous, misalign=0):
    """What is wrong with the launches that ftuner-run reports as JSON: there must be one, of a
    kernel of the family that the plan chooses; none where the result has no elements."""
    kernels = harness.launched(run)
    if 0 in (shape[0], shape[1]):
        return [f"{run['args']}: expected no launch, but got {kernels}"] if kernels else []
    family = plan.family(shape, contiguous, misalign)
    if len(kernels) == 1 and re.fullmatch(rf"\w+_0_k{family}", kernels[0]):
        return []
    return [f"{run['args']}: expected a launch of family {family}, but got {kernels}"]
