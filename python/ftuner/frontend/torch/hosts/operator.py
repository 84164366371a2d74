"""The operator of PyTorch that calls compiled functions, for graphs that PyTorch keeps.

There is one, `ftuner::product`, for all functions of products. Graphs outlive the process that compiled them,
so a call carries all that its function can be made from again::

    ftuner::product(Tensor[] tensors, Tensor[] scalars, str key, str recipe) -> Tensor

`recipe` is the text of a `Recipe`, and `key` its hash and the place of the call in its graph. A process
makes a function at the first call that needs it, from the cache of compiled functions or, where that
has it not, by compiling it.

A second one, `ftuner::chosen_product`, also has what PyTorch runs at sizes where it is predicted to be
faster. `choice` is the text of a `Choice`, which decides by the sizes of the tensors, and `sizes` are
those that the alternative takes::

    ftuner::chosen_product(Tensor[] tensors, Tensor[] scalars, SymInt[] sizes, str key, str recipe,
                           str choice) -> Tensor

A third one calls functions of rows, which may have several results::

    ftuner::row_reduction(Tensor[] tensors, Tensor[] scalars, str key, str recipe) -> Tensor[]

CUDA graphs may capture them: launches are captured as they are, also where a first call loads kernels,
and memory comes from PyTorch's allocator. Calls with scalars are of other overloads, named `scalars`,
which say that they are not for CUDA graphs: a graph would repeat the value of its capture.
"""

from __future__ import annotations

import functools
import hashlib
import json
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import ftuner
import torch
from torch import Tensor

from ..capture import note
from ..graph.nodes import Unsupported
from ..library import LIBRARY
from ..regions.choice import Selector
from ..regions.linalg import LinalgFunction
from ..regions.steps import KINDS
from ..report import count_cached, count_cached_rows, count_call, count_pytorch_call
from ..settings import Settings, check_format

#: The version of the text of a recipe.
FORMAT = 2

DTYPES = {name: dtype for dtype, name in KINDS.items()}


def call(
    function: Callable[..., Any],
    tensors: Sequence[Tensor],
    scalars: Sequence[Tensor],
    out: Tensor | None = None,
    *,
    gives_list: bool = False,
) -> Any:
    """Calls a compiled function; scalars are tensors of one element.

    `out` is a tensor to write the only result to. Several results are a tuple; with `gives_list` the
    results are a list, however many there are.
    """
    arguments = list(tensors)
    copied = 0
    for position, tensor in enumerate(arguments):
        if not tensor.is_contiguous():
            arguments[position] = tensor.contiguous()
            copied += 1
        elif tensor.data_ptr() % tensor.element_size():
            arguments[position] = tensor.clone()
            copied += 1
    values = [scalar.item() for scalar in scalars]
    named = {} if out is None else {"out": out}
    if torch.is_grad_enabled():
        # Gradients are what the graph of the backward pass computes.
        with torch.no_grad():
            result = function(*arguments, *values, **named)
    else:
        result = function(*arguments, *values, **named)
    count_call(copied)
    if gives_list:
        return list(result) if isinstance(result, tuple) else [result]
    return result


#: Sizes of a result: numbers, or a tensor argument and a dimension that has it.
Sizes = Sequence["int | tuple[int, int]"]


def result_shape(sizes: Sizes, tensors: Sequence[Tensor]) -> list[int]:
    """The shape of a result for these arguments."""
    return [size if isinstance(size, int) else tensors[size[0]].shape[size[1]] for size in sizes]


def call_pytorch(
    selector: Selector,
    tensors: Sequence[Tensor],
    scalars: Sequence[Tensor],
    sizes: Sequence[int],
    shape: Sequence[int],
) -> Tensor:
    """Runs what PyTorch computes in place of a function, whose result has this shape."""
    with torch.no_grad():
        result = selector.run_pytorch(*tensors, *scalars, *sizes)
    count_pytorch_call()
    return result.reshape(shape)


@dataclass(frozen=True)
class Result:
    """A result of a function: its type as in MLIR, and each size: a number, or an argument and a
    dimension of it."""

    type: str
    sizes: tuple[int | tuple[int, int], ...]


@dataclass(frozen=True)
class Recipe:
    """Source and settings of a function, and its results."""

    name: str
    mlir: str
    settings: Settings
    results: tuple[Result, ...]

    #: Functions that PyTorch's caches keep are one kernel.
    max_kernels = 1

    def __str__(self) -> str:
        return self.mlir

    @staticmethod
    def for_function(function: LinalgFunction, settings: Settings) -> Recipe:
        results = tuple(
            Result(result.kind, sizes)
            for result, sizes in zip(function.results, function.result_sizes)
        )
        return Recipe(function.name, str(function), settings, results)

    def write(self) -> str:
        """The text that `read` reads. Raises TypeError for settings that no text can hold."""
        settings = {
            "device": self.settings.device,
            "emulate": self.settings.emulate,
            "options": dict(self.settings.options),
        }
        fields = {
            "format": FORMAT,
            "name": self.name,
            "mlir": self.mlir,
            "settings": settings,
            "results": [(result.type, result.sizes) for result in self.results],
        }
        return json.dumps(fields, sort_keys=True, default=_plain)

    @staticmethod
    @functools.cache
    def read(text: str) -> Recipe:
        fields = json.loads(text)
        check_format("a graph with functions", FORMAT, fields["format"])
        results = (
            Result(
                kind,
                tuple(size if isinstance(size, int) else (size[0], size[1]) for size in sizes),
            )
            for kind, sizes in fields["results"]
        )
        return Recipe(
            fields["name"], fields["mlir"], Settings(**fields["settings"]), tuple(results)
        )

    def empty_results(self, tensors: Sequence[Tensor]) -> list[Tensor]:
        """Tensors like the results for these arguments, with nothing in them."""
        return [
            tensors[0].new_empty(result_shape(result.sizes, tensors), dtype=DTYPES[result.type])
            for result in self.results
        ]


def key_of(recipe: str, place: int) -> str:
    """The key of a call, the `place`-th of its graph: no other call of the graph has it."""
    return f"{hashlib.sha256(recipe.encode()).hexdigest()[:32]}.{place}"


def _plain(value: Any) -> Any:
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if isinstance(value, (set, frozenset)):
        return sorted(value)
    raise TypeError(f"expected options of texts, numbers and lists of them, but got {value!r}")


#: Functions by the keys of their calls.
_functions: dict[str, Callable[..., Any]] = {}


def remember(key: str, function: Callable[..., Any]) -> None:
    """Gives calls with this key a function that is compiled already."""
    _functions[key] = function


def _make(recipe: Recipe) -> Callable[..., Any]:
    (built,) = LIBRARY.get([recipe], recipe.settings)
    if isinstance(built, ftuner.CompileError):
        raise built
    if isinstance(built, Unsupported):
        raise ftuner.Error(f"{recipe.name}: {built}, though a compiled graph calls it")
    return built


def function_of(key: str, recipe: str, count: Callable[[str], None]) -> Callable[..., Any]:
    """The function of a call, which its first call makes and counts."""
    function = _functions.get(key)
    if function is None:
        made = Recipe.read(recipe)
        function = _functions[key] = _make(made)
        note(function)
        count(made.name)
    return function


def _product(tensors: list[Tensor], scalars: list[Tensor], key: str, recipe: str) -> Tensor:
    result: Tensor = call(function_of(key, recipe, count_cached), tensors, scalars)
    return result


def _fake_product(tensors: list[Tensor], scalars: list[Tensor], key: str, recipe: str) -> Tensor:
    (result,) = Recipe.read(recipe).empty_results(tensors)
    return result


def _row_reduction(
    tensors: list[Tensor], scalars: list[Tensor], key: str, recipe: str
) -> list[Tensor]:
    function = function_of(key, recipe, count_cached_rows)
    results: list[Tensor] = call(function, tensors, scalars, gives_list=True)
    return results


def _fake_row_reduction(
    tensors: list[Tensor], scalars: list[Tensor], key: str, recipe: str
) -> list[Tensor]:
    return Recipe.read(recipe).empty_results(tensors)


def _chosen_product(
    tensors: list[Tensor],
    scalars: list[Tensor],
    sizes: list[int],
    key: str,
    recipe: str,
    choice: str,
) -> Tensor:
    selector = Selector.read(choice)
    if selector.is_ftuners(tensors):
        return _product(tensors, scalars, key, recipe)
    (result,) = Recipe.read(recipe).results
    shape = result_shape(result.sizes, tensors)
    return call_pytorch(selector, tensors, scalars, sizes, shape)


def _fake_chosen_product(
    tensors: list[Tensor],
    scalars: list[Tensor],
    sizes: list[int],
    key: str,
    recipe: str,
    choice: str,
) -> Tensor:
    return _fake_product(tensors, scalars, key, recipe)


#: Tags for PyTorch's compilers, as far as this version of PyTorch has them.
TAGS = (
    "pt2_compliant_tag",
    # Tensors come as the graph says that they lie, so that none is copied at calls.
    "needs_exact_strides",
)
#: Tags of calls with scalars, which the host reads when it launches.
TAGS_OF_SCALARS = (*TAGS, "cudagraph_unsafe")

_definitions = torch.library.Library("ftuner", "DEF")  # type: ignore[no-untyped-call]
for _overload, _tags in (("", TAGS), (".scalars", TAGS_OF_SCALARS)):
    for _name, _more, _results, _operator, _fake in (
        ("product", "str key, str recipe", "Tensor", _product, _fake_product),
        (
            "chosen_product",
            "SymInt[] sizes, str key, str recipe, str choice",
            "Tensor",
            _chosen_product,
            _fake_chosen_product,
        ),
        ("row_reduction", "str key, str recipe", "Tensor[]", _row_reduction, _fake_row_reduction),
    ):
        _definitions.define(  # type: ignore[no-untyped-call]
            f"{_name}{_overload}(Tensor[] tensors, Tensor[] scalars, {_more}) -> {_results}",
            tags=tuple(getattr(torch.Tag, tag) for tag in _tags if hasattr(torch.Tag, tag)),
        )
        _definitions.impl(  # type: ignore[no-untyped-call]
            f"{_name}{_overload}", _operator, "CompositeExplicitAutograd"
        )
        torch.library.register_fake(f"ftuner::{_name}{_overload}", _fake, lib=_definitions)

#: Names of the operators.
NAMES = ("product", "chosen_product", "row_reduction")


def operator_of(name: str, has_scalars: bool) -> Any:
    """The overload of an operator for calls with or without scalars."""
    packet = getattr(torch.ops.ftuner, name)
    return packet.scalars if has_scalars else packet.default
