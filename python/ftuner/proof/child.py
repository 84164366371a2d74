"""The process that runs families on a GPU: `python -m ftuner.proof.child GPU FILE`.

The file names families and their libraries. A line of JSON on standard output says what is about to
run, and another what came of it, so that whoever watches can name what hung, or ended the process.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import Error
from ..host import runtime
from ..host.function import Function
from ..host.memory.dlpack import DeviceArray
from ..host.module import load
from . import numbers
from .families import Family, sets

#: Bytes before and after each operand, which nothing may write.
_GUARD = 1024
_POISON = 0xFF  # NaN in every type of floats.


class _Operand:
    """An operand on the GPU between guard bands."""

    def __init__(
        self, type: str, shape: tuple[int, ...], content: bytes, offset: int, gpu: int
    ) -> None:
        self.begin = _GUARD + offset
        self.before = np.full(len(content) + 2 * _GUARD + offset, _POISON, np.uint8)
        self.before[self.begin : self.begin + len(content)] = np.frombuffer(content, np.uint8)
        self.bytes = len(content)
        self.memory = DeviceArray.from_numpy(self.before.view(np.int8), gpu)
        self.array = DeviceArray.from_memory(self.memory, type, shape, self.begin)

    def read(self) -> np.ndarray[Any, Any]:
        return self.memory.numpy().view(np.uint8)

    def content(self) -> bytes:
        return self.read()[self.begin : self.begin + self.bytes].tobytes()

    def is_intact(self, is_output: bool) -> bool:
        """Returns whether only what may be written was."""
        after = self.read()
        if is_output:
            after[self.begin : self.begin + self.bytes] = _POISON
        return bool(np.array_equal(after, self.before))


def _run_shape(
    function: Function, family: Family, sizes: dict[str, int], gpu: int
) -> list[tuple[float, float]]:
    """The relative error of each result at one shape, and the largest that is right.

    Raises `Error` where memory of others was written.
    """
    given = numbers.arguments(family, sizes)
    operands = [
        _Operand(type, array.shape, array.tobytes(), family.offset * array.itemsize, gpu)
        for (type, _), array in zip(family.operands(), given)
    ]
    results = []
    for (type, axes), described in zip(family.results(), function.signature.results):
        shape = tuple(sizes[axis] for axis in axes)
        content = bytes([_POISON]) * (int(np.prod(shape)) * described.type.bytes)
        results.append(_Operand(type, shape, content, 0, gpu))
    function(*(operand.array for operand in operands), out=[result.array for result in results])
    runtime.get().synchronize(0)
    if not all(result.is_intact(is_output=True) for result in results):
        raise Error("memory beside a result was written")
    if not all(operand.is_intact(is_output=False) for operand in operands):
        raise Error("an argument, or memory beside it, was written")
    errors = []
    for result, (type, _), wanted in zip(
        results, family.results(), numbers.expected(family, given)
    ):
        got = numbers.result_of(type, result.content(), wanted.shape)
        errors.append((numbers.relative_error(got, wanted), numbers.tolerance(family, type)))
    return errors


def _run(family: Family, library: str, gpu: int) -> dict[str, Any]:
    (function,) = load(library).functions.values()
    worst = 0.0
    for sizes in family.shapes():
        text = ", ".join(f"{axis} = {size}" for axis, size in sizes.items())
        try:
            errors = _run_shape(function, family, sizes, gpu)
        except Error as failure:
            ends = failure.code is not None
            words = f"{text}: {failure}"
            return {"status": "failed", "words": words, "ends": ends, "is_wrong": not ends}
        for error, max_error in errors:
            worst = max(worst, error)
            if not error <= max_error:
                words = f"{text}: relative error {error:.3g}, expected at most {max_error:.3g}"
                return {"status": "failed", "words": words, "is_wrong": True}
    return {"status": "passed", "error": worst}


def _tell(line: dict[str, Any]) -> None:
    print(json.dumps(line), flush=True)


def main(gpu: int, file: Path) -> None:
    jobs = json.loads(file.read_text(encoding="utf-8"))
    known = {
        (family.group, family.name): family for one in sets().values() for family in one.families
    }
    runtime.get().select_device(gpu)
    _tell({"ready": True})
    for number, job in enumerate(jobs):
        _tell({"begin": number})
        outcome = _run(known[job["group"], job["name"]], job["library"], gpu)
        # A failure in the driver may have broken the context.
        ends = outcome.pop("ends", False)
        _tell({"end": number, **outcome})
        if ends:
            break


if __name__ == "__main__":
    try:
        main(int(sys.argv[1]), Path(sys.argv[2]))
    except Error as failure:
        sys.exit(f"error: {failure}")
