"""Side effects of exported models: writes to buffers and arguments, random numbers."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from torch.export import ExportedProgram
from torch.export.graph_signature import ConstantArgument, OutputKind, OutputSpec, TensorArgument

import ftuner
import torch
from torch import fx

from .programs import Program

_WRITES = {
    OutputKind.BUFFER_MUTATION: "buffer",
    OutputKind.PARAMETER_MUTATION: "parameter",
    OutputKind.USER_INPUT_MUTATION: "argument",
}


def place_of(node: fx.Node) -> str | None:
    """`FILE:LINE` of the innermost line of a node that belongs to neither PyTorch nor FTuner."""
    own = (str(Path(torch.__file__).parent), str(Path(__file__).parents[1]))
    frames = re.findall(r'File "([^"]+)", line (\d+), in', node.meta.get("stack_trace") or "")
    lines = [f"{file}:{line}" for file, line in frames if not file.startswith((*own, "<"))]
    return lines[-1] if lines else None


def check_effects(source: Program, program: ExportedProgram, mutations: str) -> None:
    """Refuses random numbers, results that are not tensors, and writes unless they are results.

    Args:
        source: the program before its operators were decomposed, and the names of its state.
        program: the decomposed program.
        mutations: "refused" or "results".
    """
    for node in program.graph.nodes:
        target = node.target
        if isinstance(target, torch._ops.OpOverload):
            if torch.Tag.nondeterministic_seeded in target.tags:
                raise _refused(
                    f"expected a model without random numbers, but {_module_of(source, node)} "
                    f"draws them by {target}",
                    node,
                    is_training(node, source),
                )
    writers = _writers(program)
    for spec in program.graph_signature.output_specs:
        if spec.kind in _WRITES and mutations == "refused":
            node = writers[spec.arg.name]
            name = source.name_of(str(spec.target))
            if spec.kind == OutputKind.USER_INPUT_MUTATION:
                name = source.names_by_placeholder()[str(spec.target)]
            words = (
                f"expected a model that changes nothing, but {_module_of(source, node)} writes "
                f"the {_WRITES[spec.kind]} '{name}'"
            )
            advice = 'or take what it writes as results by mutations="results"'
            raise _refused(words, node, is_training(node, source), advice)
    results = [
        spec.arg
        for spec in program.graph_signature.output_specs
        if spec.kind == OutputKind.USER_OUTPUT
    ]
    for number, result in enumerate(results):
        if not isinstance(result, TensorArgument):
            is_none = isinstance(result, ConstantArgument) and result.value is None
            words = (
                f"cannot import the model: expected tensors as results, but result {number} is "
                f"{'None' if is_none else 'a number'}"
            )
            raise ftuner.CompileError(words, words)


def results_of_writes(source: Program, program: ExportedProgram) -> tuple[str, ...]:
    """Makes the values that a program writes its last results; returns names of the written tensors."""
    signature = program.graph_signature
    output = next(node for node in program.graph.nodes if node.op == "output")
    values = list(zip(signature.output_specs, output.args[0]))
    writes = [(spec, value) for spec, value in values if spec.kind in _WRITES]
    if not writes:
        return ()
    results = [(spec, value) for spec, value in values if spec.kind not in _WRITES]
    names = []
    for spec, value in writes:
        name = source.name_of(str(spec.target))
        if spec.kind == OutputKind.USER_INPUT_MUTATION:
            name = source.names_by_placeholder()[str(spec.target)]
        names.append(name)
        results.append((OutputSpec(OutputKind.USER_OUTPUT, spec.arg, None), value))
    signature.output_specs[:] = [spec for spec, _ in results]
    output.args = (tuple(value for _, value in results),)
    return tuple(names)


def is_training(node: fx.Node, source: Program) -> bool:
    """Returns whether the module that a node comes from is in training mode, if that is known."""
    module = _path_and_module(source, node)[1]
    if isinstance(module, torch.nn.Module):
        return module.training
    return source.model is None or source.model.training


def _writers(program: ExportedProgram) -> dict[str, fx.Node]:
    return {node.name: node for node in program.graph.nodes}


def _path_and_module(source: Program, node: fx.Node) -> tuple[str, Any]:
    """The path in the model of the innermost module that a node comes from, and it or its type."""
    stack = list((node.meta.get("nn_module_stack") or {}).values())
    if not stack:
        return "", None
    path, kind = stack[-1][:2]
    path = source.name_of(path) if path != "model" else ""
    if source.model is not None:
        try:
            return path, source.model.get_submodule(path)
        except AttributeError:
            pass
    return path, kind


def _module_of(source: Program, node: fx.Node) -> str:
    path, module = _path_and_module(source, node)
    if module is None:
        return "it"
    kind = module if isinstance(module, str) else type(module).__name__
    if isinstance(module, type):
        kind = module.__name__
    kind = kind.rpartition(".")[2]
    return f"{kind} '{path}'" if path else f"its {kind}"


def _refused(words: str, node: fx.Node, in_training: bool, advice: str | None = None) -> ValueError:
    place = place_of(node)
    advices = ["call model.eval() before the export"] if in_training else []
    if advice is not None:
        advices.append(advice if advices else advice.removeprefix("or "))
    return ValueError(
        words + (f" ({place})" if place else "") + ("; " + ", ".join(advices) if advices else "")
    )
