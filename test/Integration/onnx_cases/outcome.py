"""Outcomes of trials beside onnxruntime: right, or the kind of failure."""

from __future__ import annotations

import dataclasses
import os
import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .case import Array, Case
from .trials import Trial, model_of

RIGHT, WRONG, REFUSED, CALL, CRASH, HANG, OTHER = OUTCOMES = (
    "right", "wrong", "refused", "fails at call", "crash", "hang", "error",
)  # fmt: skip
#: A trial that onnxruntime does not run at any point.
NOT_RUN = "not run"

#: Relative errors that each type of element may have.
TOLERANCES = {"float64": 1e-9, "float32": 1e-5, "float16": 2e-3, "bfloat16": 1.6e-2}


@dataclasses.dataclass
class Result:
    """How a trial ended, and the words with it."""

    outcome: str
    words: str = ""


@dataclasses.dataclass
class Prepared:
    """A trial with values and what they should give, at each point that onnxruntime runs."""

    trial: Trial
    inputs: list[list[Array]]
    wanted: list[list[Array]]
    names: list[str]


#: A device with few kernels to choose from, since choosing takes most of the time on others.
OPTIONS: dict[str, Any] = {"emulate": True, "cache": False, "max_kernels": 1, "device": "p4"}


def session_of(model: Any) -> Any:
    """A session of onnxruntime, whose optimizer is off."""
    import onnxruntime as ort

    options = ort.SessionOptions()
    options.log_severity_level = 4
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    return ort.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )


def runs(trials: Callable[[Case], Any]) -> Callable[[Case], bool]:
    """Returns a function that tells whether onnxruntime has a kernel for a case."""

    def ask(case: Case) -> bool:
        trial = next(iter(trials(case)))
        try:
            session_of(model_of([trial.part(0)], trial.version))
        except Exception:
            return False
        return True

    return ask


def prepare(trial: Trial, seed: int) -> Prepared:
    """Runs onnxruntime at each point; leaves out points that it refuses."""
    part = trial.part(seed)
    found = Prepared(trial, [], [], part.outputs)
    try:
        session = session_of(model_of([part], trial.version))
    except Exception:
        return found
    names = [value.name for value in part.inputs]
    for point in trial.points.values():
        arrays = trial.values(point, seed)
        try:
            wanted = session.run(None, dict(zip(names, arrays)))
        except Exception:
            continue
        by_text = trial.by_text(arrays, wanted, seed)
        if by_text is None:
            continue
        found.inputs.append(arrays)
        found.wanted.append([np.asarray(value) for value in by_text])
    return found


def difference(got: Any, wanted: Array, factor: float = 1.0) -> str | None:
    """Describes how a result differs from the wanted one; None if it does not."""
    got = np.asarray(got)
    if got.dtype != wanted.dtype:
        return f"its type is {got.dtype}, not {wanted.dtype}"
    if got.shape != wanted.shape:
        return f"its shape is {got.shape}, not {wanted.shape}"
    if wanted.dtype.kind in "biu":
        if (got == wanted).all():
            return None
        place = tuple(int(i) for i in np.argwhere(got != wanted)[0])
        return f"{int((got != wanted).sum())} of {wanted.size} differ: at {place} {got[place]}, not {wanted[place]}"
    tolerance = TOLERANCES[wanted.dtype.name] * factor
    g, w = got.astype(np.float64), wanted.astype(np.float64)
    with np.errstate(all="ignore"):
        finite = w[np.isfinite(w)]
        size = min(max(1.0, float(np.sqrt((finite**2).mean())) if finite.size else 1.0), 1e3)
        same = (
            (g == w)
            | (np.isnan(g) & np.isnan(w))
            | (np.abs(g - w) <= tolerance * (np.abs(w) + size))
        )
        same &= np.isfinite(g) == np.isfinite(w)
    if same.all():
        return None
    place = tuple(int(i) for i in np.argwhere(~same)[0])
    return f"{int((~same).sum())} of {w.size} differ: at {place} {g[place]:.8g}, not {w[place]:.8g}"


def hide_assembler() -> None:
    """Takes ptxas out of the search path, for no machine code is wanted."""
    folders = os.environ["PATH"].split(os.pathsep)
    os.environ["PATH"] = os.pathsep.join(
        f for f in folders if not os.path.exists(os.path.join(f, "ptxas"))
    )
    os.environ["CUDA_HOME"] = os.devnull


class CallFailed(Exception):
    """The compiled model refused its inputs."""


def compute(prepared: Sequence[Prepared], seed: int) -> dict[str, list[list[Any]]]:
    """FTuner's results of the trials as one model, by mark, for each point.

    Raises what `ftuner.compile` raises, and CallFailed.
    """
    import ftuner
    from ftuner.compiler import SourceText
    from ftuner.frontend.onnx import import_proto

    parts = [one.trial.part(seed) for one in prepared]
    types = {
        name: (array.dtype, array.ndim)
        for one in prepared
        for name, array in zip(one.names, one.wanted[0])
    }
    model = model_of(parts, prepared[0].trial.version, types)
    # A size may be 0 where onnxruntime runs it, else is 1 at least.
    ranges: dict[str, tuple[int, int | None]] = {}
    for one, part in zip(prepared, parts):
        for number, value in enumerate(part.inputs):
            for axis, dim in enumerate(value.type.tensor_type.shape.dim):
                if dim.dim_param:
                    least = min(arrays[number].shape[axis] for arrays in one.inputs)
                    ranges[dim.dim_param] = (min(1, least), None)
    imported = import_proto(model, ranges, "sweep.onnx")
    module = ftuner.compile(SourceText.of_model(imported), **OPTIONS)
    function = module.functions[imported.name]
    results: dict[str, list[list[Any]]] = {one.trial.mark: [] for one in prepared}
    for turn in range(max(len(one.inputs) for one in prepared)):
        arrays = [array for one in prepared for array in one.inputs[turn % len(one.inputs)]]
        try:
            found = function(*arrays)
        except ftuner.Error as error:
            raise CallFailed(str(error)) from None
        left = iter(found if isinstance(found, tuple) else (found,))
        for one in prepared:
            results[one.trial.mark].append([next(left) for _ in one.names])
    return results


def judge(one: Prepared, results: list[list[Any]]) -> Result:
    for turn, wanted in enumerate(one.wanted):
        for number, (got, want) in enumerate(zip(results[turn], wanted)):
            words = difference(got, want, one.trial.tolerance)
            if words:
                shapes = ", ".join(str(array.shape) for array in one.inputs[turn])
                return Result(WRONG, f"result {number} of {shapes}: {words}")
    return Result(RIGHT)


def run_batch(
    trials: Sequence[Trial], seed: int, tell: Callable[[str, Result | None], None]
) -> None:
    """Runs trials of one operator set together; tells each one's result by its mark.

    Tells (mark, None) for each before FTuner is asked, so that whoever watches knows that onnxruntime did not crash.
    """
    prepared = []
    for trial in trials:
        one = prepare(trial, seed)
        if one.inputs:
            prepared.append(one)
        else:
            tell(trial.mark, Result(NOT_RUN))
    tell("", None)
    _run(prepared, seed, tell)


def _run(
    prepared: Sequence[Prepared], seed: int, tell: Callable[[str, Result | None], None]
) -> None:
    import ftuner

    if not prepared:
        return
    try:
        results = compute(prepared, seed)
    except ftuner.CompileError as error:
        outcome, words = REFUSED, str(error)
        named = _named(words, prepared)
        if len(prepared) > 1 and named:
            for mark, sentence in named.items():
                tell(mark, Result(REFUSED, sentence))
            _run([one for one in prepared if one.trial.mark not in named], seed, tell)
            return
    except CallFailed as error:
        outcome, words = CALL, str(error)
    except Exception as error:
        outcome, words = OTHER, f"{type(error).__name__}: {error}"
    else:
        for one in prepared:
            tell(one.trial.mark, judge(one, results[one.trial.mark]))
        return
    if len(prepared) == 1:
        tell(prepared[0].trial.mark, Result(outcome, words[:2000]))
        return
    half = len(prepared) // 2
    _run(prepared[:half], seed, tell)
    _run(prepared[half:], seed, tell)


def _named(words: str, prepared: Sequence[Prepared]) -> dict[str, str]:
    """The trials whose nodes a refusal names, and its sentences about each."""
    found: dict[str, str] = {}
    marks = {one.trial.mark for one in prepared}
    for line in words.splitlines():
        for mark in re.findall(r"\(node \S+ (t\d+)(?:_\w+)?\)", line):
            if mark in marks:
                found.setdefault(mark, line)
    return found
