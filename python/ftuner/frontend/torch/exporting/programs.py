"""Programs of torch.export, from each form in which PyTorch hands a model over.

A module is exported here, an `ExportedProgram` is taken as it is, and a file of
`torch.export.save` is read. Sizes have the names of `torch.export.Dim` where these are known:
from `dynamic_shapes`, or from a program that this process exported.
"""

from __future__ import annotations

import contextlib
import inspect
import os
import re
import warnings
import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import sympy
from torch._dynamo.exc import UserError
from torch.export import Dim, ExportedProgram
from torch.export.graph_signature import InputKind
from torch.fx.experimental import _config as size_options
from torch.fx.experimental.symbolic_shapes import ShapeEnv
from torch.utils import _pytree as pytree

import torch

from ....errors import CompileError, Error
from ..graph import layout as lay

#: A model's submodule in the module that is exported; a prefix of names of parameters.
_MODEL = "model"


@dataclass(frozen=True)
class Program:
    """A model as a program of ATen's operators.

    Attributes:
        program: the graph, its signature and its state.
        model: the module, where it was given.
        state: parameters and buffers by their names in the model.
        names: names of the tensors that the model takes, one for each user input of the program.
        dims: names of sizes by their expressions.
        least: declared minimum sizes of symbols.
    """

    program: ExportedProgram
    model: torch.nn.Module | None
    state: dict[str, torch.Tensor]
    names: list[str]
    dims: dict[lay.Extent, str]
    min_sizes: dict[lay.Extent, int]

    @property
    def environment(self) -> ShapeEnv | None:
        """The environment of the program's unknown sizes, which knows what the trace assumed."""
        return _environment(self.program)

    def name_of(self, target: str) -> str:
        """The name of a parameter or buffer in the model, for its name in the program."""
        prefix = f"{_MODEL}."
        return target.removeprefix(prefix) if self.model is not None else target

    def names_by_placeholder(self) -> dict[str, str]:
        """The names of the model's arguments, by the names of their placeholders."""
        inputs = [
            spec.arg.name
            for spec in self.program.graph_signature.input_specs
            if spec.kind == InputKind.USER_INPUT
        ]
        return dict(zip(inputs, self.names))

    def names_of_results(self) -> list[str]:
        """The names of the results that are in dictionaries or dataclasses; "" for others."""
        spec = self.program.call_spec.out_spec
        if spec is None:
            return []
        tree = pytree.tree_unflatten(range(spec.num_leaves), spec)
        names = []
        for path, _ in pytree.tree_flatten_with_path(tree)[0]:
            keys = [_key(step) for step in path]
            named = any(isinstance(key, str) for key in keys)
            names.append("_".join(map(str, keys)) if named else "")
        return names


class _Called(torch.nn.Module):
    """A model whose arguments are one tuple and one dictionary, as `dynamic_shapes` has them."""

    def __init__(self, model: torch.nn.Module) -> None:
        super().__init__()
        setattr(self, _MODEL, model)

    def forward(self, arguments: tuple[Any, ...], named: dict[str, Any]) -> Any:
        return getattr(self, _MODEL)(*arguments, **named)


@contextlib.contextmanager
def all_sizes() -> Iterator[None]:
    """Lets PyTorch trace with sizes that may be 0 and 1, which it otherwise takes out of ranges."""
    with size_options.patch(backed_size_oblivious=True):  # type: ignore[attr-defined]
        yield


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Ignores warnings of PyTorch about its own code."""
    with warnings.catch_warnings():
        for kind in (FutureWarning, DeprecationWarning, UserWarning):
            warnings.simplefilter("ignore", kind)
        yield


def load(path: str | os.PathLike[str]) -> ExportedProgram:
    """Reads what `torch.export.save` wrote."""
    path = os.fspath(path)
    try:
        # PyTorch logs what it then raises.
        if not zipfile.is_zipfile(path) or _is_saved_by_torch(path):
            raise Error(f"cannot read '{path}': expected a program of torch.export.save")
        with quiet():
            program = torch.export.load(path)
        environment = _environment(program)
        # PyTorch reads ranges of formulas of sizes, too, and then fails where it expects symbols.
        for key in list(environment.var_to_range) if environment else []:
            if environment and not isinstance(key, sympy.Symbol):
                del environment.var_to_range[key]
        return program
    except Error:
        raise
    except OSError as error:
        raise Error(f"cannot read '{path}': {error.strerror or error}") from error
    except Exception as error:  # noqa: BLE001: zip files, JSON and pickles fail in many ways
        words = str(error).strip().splitlines()
        raise Error(
            f"cannot read '{path}': expected a program of torch.export.save"
            + (f" ({words[0][:200]})" if words else "")
        ) from error


def _is_saved_by_torch(path: str) -> bool:
    """Returns whether `torch.save` wrote an archive: pickled tensors or modules."""
    with zipfile.ZipFile(path) as archive:
        return any(name.endswith("/data.pkl") for name in archive.namelist())


def program_of(
    model: torch.nn.Module | ExportedProgram | str | Path,
    args: tuple[Any, ...] | None,
    kwargs: dict[str, Any] | None,
    dynamic_shapes: Any,
) -> Program:
    """The program of a model, from the arguments of `ftuner.torch.export`."""
    if isinstance(model, (str, os.PathLike)):
        model = load(model)
    if isinstance(model, ExportedProgram):
        return _taken(model, args, kwargs, dynamic_shapes)
    if not isinstance(model, torch.nn.Module):
        raise TypeError(
            "model: expected a module, a program of torch.export or the path of a saved one, "
            f"but got {type(model).__qualname__}"
        )
    if not isinstance(args, (tuple, list)):
        raise TypeError(
            f"args: expected a tuple of example arguments, but got {type(args).__qualname__}"
        )
    signature = inspect.signature(model.forward)
    bound = signature.bind(*args, **(kwargs or {}))
    positional, named = tuple(bound.args), dict(bound.kwargs)
    values = [*positional, *named.values()]
    flat = _flat_specs(signature, bound, dynamic_shapes)
    if flat is not None:
        # PyTorch wants an entry for each part of a nested argument.
        flat = [
            pytree.tree_map(lambda _: None, value) if spec is None else spec
            for value, spec in zip(values, flat)
        ]
    names = _names_of_leaves([*_parameter_names(signature, bound)], values)
    program = _export(model, positional, named, flat, names)
    state = dict([*model.named_parameters(), *model.named_buffers()])
    dims, min_sizes = _declared(program, values, flat)
    return Program(program, model, state, names, dims, min_sizes)


def _export(
    model: torch.nn.Module,
    positional: tuple[Any, ...],
    named: dict[str, Any],
    flat: list[Any] | None,
    names: Sequence[str],
) -> ExportedProgram:
    """Exports a module.

    Where a declared range does not hold for what PyTorch assumes, or PyTorch cannot tell, its
    sizes are exported without names: what is assumed is then checked when the function runs.
    """
    attempts = [flat]
    if flat is not None:
        attempts.append(pytree.tree_map(_without_name, flat))
    first: Exception | None = None
    for specs in attempts:
        shapes = None
        if specs is not None:
            given = len(positional)
            shapes = (tuple(specs[:given]), dict(zip(named, specs[given:])))
        try:
            with torch.no_grad(), all_sizes():
                return torch.export.export(
                    _Called(model),
                    (positional, named),
                    dynamic_shapes=shapes,
                    prefer_deferred_runtime_asserts_over_guards=True,
                )
        except (UserError, AssertionError, ValueError) as error:
            if isinstance(error, ValueError) and not str(error).startswith("Found the following"):
                raise
            first = first or error
    assert first is not None
    reason = _reason(str(first), names)
    words = f"cannot import the model: torch.export does not take it: {reason}"
    raise CompileError(words, str(first)) from first


def _without_name(dim: Any) -> Any:
    """A dimension of any size in its range, without a name; sizes that are formulas stay."""
    if isinstance(dim, Dim) and getattr(dim, "root", None) is None:
        return Dim.DYNAMIC(min=dim.min, max=dim.max)
    return dim


def _reason(words: str, names: Sequence[str]) -> str:
    """The first reason of an error of torch.export in one sentence, in the model's names."""
    lines = [line.strip() for line in words.splitlines() if line.strip()]
    reason = next((line[2:] for line in lines if line.startswith("- ")), lines[0] if lines else "")
    reason = re.sub(r"L\['named'\]\['(\w+)'\]", r"\1", reason)
    reason = re.sub(
        r"L\['arguments'\]\[(\d+)\](\.size\(\)\[(\d+)\])?",
        lambda found: names[int(found[1])] + (f".shape[{found[3]}]" if found[3] else ""),
        reason,
    )
    return reason.partition(". If you")[0].partition(". For more")[0].rstrip(".")[:300]


def _taken(
    program: ExportedProgram,
    args: tuple[Any, ...] | None,
    kwargs: dict[str, Any] | None,
    dynamic_shapes: Any,
) -> Program:
    """A program that someone else exported, whose ranges stay as they are."""
    state = {**program.state_dict, **program.constants}
    state = {key: value for key, value in state.items() if isinstance(value, torch.Tensor)}
    names = [
        spec.arg.name
        for spec in program.graph_signature.input_specs
        if spec.kind == InputKind.USER_INPUT
    ]
    dims = _known_names(program)
    min_sizes: dict[lay.Extent, int] = {}
    if dynamic_shapes is not None:
        examples = (args, kwargs) if args is not None else program.example_inputs
        if not examples:
            raise ValueError("args: expected example arguments beside dynamic_shapes")
        signature = inspect.signature(program.module().forward)
        bound = signature.bind(*(examples[0] or ()), **(examples[1] or {}))
        flat = _flat_specs(signature, bound, dynamic_shapes)
        values = [*bound.args, *bound.kwargs.values()]
        declared, min_sizes = _declared(program, values, flat)
        dims |= declared
    return Program(program, None, state, names, dims, min_sizes)


def _parameter_names(signature: inspect.Signature, bound: inspect.BoundArguments) -> Iterator[str]:
    """The name of each argument of a call, `others_1` for the second one of `*others`."""
    for name, value in bound.arguments.items():
        kind = signature.parameters[name].kind
        if kind is inspect.Parameter.VAR_POSITIONAL:
            yield from (f"{name}_{number}" for number in range(len(value)))
        elif kind is inspect.Parameter.VAR_KEYWORD:
            yield from value
        else:
            yield name


def _flat_specs(
    signature: inspect.Signature, bound: inspect.BoundArguments, dynamic_shapes: Any
) -> list[Any] | None:
    """Dynamic shapes as one entry for each argument of a call, in the order of the parameters."""
    if dynamic_shapes is None:
        return None
    given = bound.arguments
    count = len(bound.args) + len(bound.kwargs)
    if not isinstance(dynamic_shapes, dict):
        if len(dynamic_shapes) == count:
            return list(dynamic_shapes)
        if len(dynamic_shapes) != len(given):
            raise ValueError(
                f"dynamic_shapes: expected {count} entries, one for each argument, "
                f"but got {len(dynamic_shapes)}"
            )
        dynamic_shapes = dict(zip(given, dynamic_shapes))
    more = next((n for n in given if _kind(signature, n) is inspect.Parameter.VAR_KEYWORD), None)
    named = given[more] if more else {}
    for name in dynamic_shapes:
        if name not in given and name not in named:
            known = ", ".join(given) or "none"
            raise ValueError(
                f"dynamic_shapes: expected some of the arguments {known}, but got '{name}'"
            )
    specs: list[Any] = []
    for name, value in given.items():
        spec = dynamic_shapes.get(name)
        if _kind(signature, name) is inspect.Parameter.VAR_POSITIONAL:
            specs += spec or [None] * len(value)
        elif name == more:
            specs += [dynamic_shapes.get(key, (spec or {}).get(key)) for key in value]
        else:
            specs.append(spec)
    return specs


def _kind(signature: inspect.Signature, name: str) -> Any:
    return signature.parameters[name].kind


def _names_of_leaves(names: Sequence[str], values: Sequence[Any]) -> list[str]:
    """A name for each tensor or number of the arguments, `pair_0` for the first of a pair."""
    leaves = []
    for name, value in zip(names, values):
        for path, _ in pytree.tree_flatten_with_path(value)[0]:
            leaves.append("_".join([name, *(str(_key(step)) for step in path)]))
    return leaves


def _key(step: Any) -> Any:
    """The number, key or attribute that leads one step into nested values."""
    for attribute in ("idx", "key", "name"):
        if hasattr(step, attribute):
            return getattr(step, attribute)
    return step


def _user_values(program: ExportedProgram) -> list[Any]:
    """The value of each user input of a program."""
    nodes = {node.name: node for node in program.graph.nodes if node.op == "placeholder"}
    return [
        nodes[spec.arg.name].meta.get("val")
        for spec in program.graph_signature.input_specs
        if spec.kind == InputKind.USER_INPUT
    ]


def _environment(program: ExportedProgram) -> ShapeEnv | None:
    for value in _user_values(program):
        for size in value.shape if isinstance(value, torch.Tensor) else ():
            if isinstance(size, torch.SymInt):
                return size.node.shape_env
    return None


def _known_names(program: ExportedProgram) -> dict[lay.Extent, str]:
    """The names of sizes that a program of this process remembers."""
    environment = _environment(program)
    if environment is None:
        return {}
    given = environment.source_name_to_debug_name
    return {
        symbol: given[source.name]
        for symbol, sources in environment.var_to_sources.items()
        for source in sources
        if source.name in given
    }


def _declared(
    program: ExportedProgram, values: Sequence[Any], flat: Sequence[Any] | None
) -> tuple[dict[lay.Extent, str], dict[lay.Extent, int]]:
    """The names of sizes and the least sizes that `dynamic_shapes` declares."""
    names: dict[lay.Extent, str] = {}
    min_sizes: dict[lay.Extent, int] = {}
    if flat is None:
        return names, min_sizes
    leaves = [leaf for value, spec in zip(values, flat) for leaf in _specs(value, spec)]
    for number, (value, spec) in enumerate(zip(_user_values(program), leaves)):
        if not isinstance(value, torch.Tensor):
            continue
        for dim, wanted in spec.items() if isinstance(spec, dict) else enumerate(spec or ()):
            if not hasattr(wanted, "__name__"):
                continue
            extent = lay.extent_of(value.shape[dim])
            if isinstance(extent, int):
                raise ValueError(
                    f"dynamic_shapes: expected a program whose argument {number} has an unknown "
                    f"size '{wanted.__name__}' of dimension {dim}, but it is {extent}"
                )
            names.setdefault(extent, wanted.__name__)
            root = getattr(wanted, "root", None)
            if root is not None and len(extent.free_symbols) == 1:
                names.setdefault(next(iter(extent.free_symbols)), root.__name__)
            if isinstance(extent, sympy.Symbol):
                # A Dim without a least size has 0, which says nothing.
                min_sizes.setdefault(extent, max(wanted.min, 1))
    return names, min_sizes


def _specs(value: Any, spec: Any) -> Iterator[Any]:
    """The part of a specification that is for each leaf of an argument."""
    if isinstance(value, (tuple, list)):
        for number, item in enumerate(value):
            yield from _specs(item, spec[number] if spec is not None else None)
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from _specs(item, spec.get(key) if spec is not None else None)
    else:
        yield spec
