"""Inductor as host: FTuner computes the products of its graphs, Inductor everything else.

Inductor offers a place before its own patterns, where a graph has ATen operators only, those of a
layer such as GELU already taken apart. There a pass replaces products, with the pointwise operators
after them, by calls of FTuner's operator, and Inductor joins the rest to kernels as it always does.
What it compiled it keeps in its caches, by the identity of the pass, too, and later does without
the pass.
"""

from __future__ import annotations

import contextvars
import functools
import hashlib
import itertools
import logging
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, cast

from torch._inductor.custom_graph_pass import CustomGraphPass

import ftuner
import torch
from ftuner import latency
from ftuner.host import cache
from torch import fx

from ..options import Options
from ..regions.importing import Call
from ..replacement import replace_regions
from ..report import Report, update
from ..settings import Settings
from .host import Host, Part
from .operator import Recipe, key_of, operator_of, remember
from .packaging import PackagedHost, share_sizes
from .vectors import decompositions

#: Training graphs set this, as far as the compilation says that they are.
_is_training = contextvars.ContextVar("is_training", default=False)


class _Inductor(Host):
    """Functions are called by the operator `ftuner::product`."""

    def __init__(self) -> None:
        self._places = itertools.count()

    joins = True

    def call(self, graph: fx.Graph, part: Part, arguments: Call) -> fx.Node:
        recipe = Recipe.for_function(part.imported.function, part.settings).write()
        key = key_of(recipe, next(self._places))
        remember(key, part.function)
        tensors, scalars, alternative = arguments.tensors, arguments.scalars, arguments.alternative
        if part.choice is None or alternative is None:
            target = operator_of("row_reduction" if part.gives_list else "product", bool(scalars))
            return graph.call_function(target, (tensors, scalars, key, recipe))
        choice = part.choice.write(alternative.code)
        of_all = (tensors, scalars, alternative.sizes, key, recipe, choice)
        return graph.call_function(operator_of("chosen_product", bool(scalars)), of_all)

    def operators(self, counts: Report) -> dict[str, int]:
        return counts.inductor_operators


class InductorPass(CustomGraphPass):
    """Replaces the products of Inductor's graphs; see `inductor_pass`."""

    def __init__(self, options: Options, packaged: bool = False) -> None:
        self.options = options
        self.packaged = packaged

    def __call__(self, graph: fx.Graph) -> None:
        if self.packaged:
            share_sizes(graph)
        else:
            _call_without_operators()
        before = set(graph.nodes)
        host = PackagedHost(graph) if self.packaged else _Inductor()
        options = self.options.with_settings()
        if _is_training.get():
            options = options.without_rows()
        replace_regions(graph, options, host)
        for node in graph.nodes:
            if node not in before and node.op == "call_function":
                _set_value(node)

    def uuid(self) -> str:
        """Equal where the same graph becomes the same graph with the same functions."""
        options = self.options.with_settings()
        settings = Settings(options.device, bool(options.emulate), options.compile).identity()
        chosen = (
            options.emulate, options.fallback, options.attention, options.take, options.rows,
            options.symbols, options.dynamic,
        )  # fmt: skip
        parts = (ftuner.__version__, _sources(), _compiler(), settings, chosen, self.packaged)
        return hashlib.sha256(repr(parts).encode()).hexdigest()


@functools.cache
def _call_without_operators() -> None:
    """Has Inductor's code call functions without a dispatch of PyTorch's."""
    try:
        from . import graph_calls

        graph_calls.install()
    except (ImportError, AttributeError, TypeError) as error:
        # A PyTorch with another Inductor: its code calls operators.
        logging.getLogger("ftuner").info("graphs call operators of PyTorch: %s", error)


def _set_value(node: fx.Node) -> None:
    """Says what a new node computes, as all nodes of Inductor's graphs do."""
    values = fx.map_arg((node.args, node.kwargs), lambda argument: argument.meta["val"])
    target: Any = node.target
    node.meta["val"] = target(*values[0], **values[1])
    # Operands differ from the model's by now. Inductor gives a function's operands the
    # strides that it finds here, so that none is copied at calls.
    node.meta["eager_input_vals"] = fx.node.map_aggregate(
        values, lambda value: value if isinstance(value, torch.Tensor) else None
    )


@functools.cache
def _sources() -> str:
    """Hash of the modules that decide how a graph is compiled: these, and the modules of prices."""
    digest = hashlib.sha256()
    for folder in (Path(__file__).parents[1], Path(latency.__file__).parent):
        for file in sorted(folder.rglob("*.py")):
            digest.update(file.read_bytes())
    return digest.hexdigest()


def _compiler() -> str:
    try:
        return cache.compiler_identity()
    except ftuner.Error:  # No compiler is there: all functions come from a cache.
        return ""


def inductor_pass(*, packaged: bool = False, **options: Any) -> InductorPass:
    """FTuner as a pass for callers that give options to Inductor themselves.

        torch.compile(model, options={"post_grad_custom_pre_pass": ftuner.torch.inductor_pass()})

    Beside a pass of one's own, PyTorch takes a list of both. Options are those of the backend,
    without ``host``, ``attention``, ``mode`` and ``histogram``.

    With ``packaged`` graphs hold the compiled functions themselves, as packages of AOTInductor need
    it; `aoti_compile_and_package` sets it.
    """
    for name in ("host", "attention", "mode", "histogram"):
        if name in options:
            raise TypeError(f"expected no option {name} of inductor_pass: the backend has it")
    return InductorPass(Options.parse(options), packaged)


def joined_passes(known: Any, own: InductorPass) -> Any:
    """Passes that Inductor has, and then FTuner's. Older versions of PyTorch take one pass only."""
    others = known if isinstance(known, (list, tuple)) else [known] if known else []
    return [*others, own] if others else own


class _Decompositions(dict[Any, Callable[..., Any]]):
    """Inductor's decompositions, without the decompositions of products with a vector.

    PyTorch's caches have it in their keys. Only how it is made can be written there, not the
    functions.
    """

    def __init__(self) -> None:
        from torch._inductor.decomposition import select_decomp_table

        super().__init__(decompositions(select_decomp_table()))

    def __reduce__(self) -> tuple[Any, ...]:
        return _Decompositions, ()


#: Launches of Inductor's kernels in the code that it writes, for CPUs and for GPUs.
_LAUNCH = re.compile(r"^ +(?:cpp_fused\w*\(|triton_\w+\.run\()", re.MULTILINE)


def _compile_and_count(gm: fx.GraphModule, example_inputs: Sequence[Any], **options: Any) -> Any:
    """Inductor's compilation of one graph, forwards or backwards, with its kernels counted.

    Graphs from PyTorch's caches have their code, too.
    """
    from torch._inductor.compile_fx import compile_fx_inner

    token = _is_training.set(not options.get("is_inference", False))
    try:
        compiled = compile_fx_inner(gm, example_inputs, **options)
    finally:
        _is_training.reset(token)
    with update() as counts:
        counts.inductor_kernels += len(_LAUNCH.findall(getattr(compiled, "source_code", "")))
    return compiled


def compile_with_inductor(
    gm: fx.GraphModule, example_inputs: Sequence[Any], options: Options
) -> Callable[..., Any]:
    """A graph of Dynamo, compiled by Inductor with its products computed by FTuner.

    Inductor's configuration differs for this graph only.
    """
    from torch._inductor import config
    from torch._inductor.compile_fx import compile_fx

    passes = joined_passes(config.post_grad_custom_pre_pass, InductorPass(options))
    patches = {
        **torch._inductor.list_mode_options(options.mode),
        "post_grad_custom_pre_pass": passes,
        # Products with other sizes than the model's, for kernels that are not called.
        "shape_padding": False,
    }
    compiled = compile_fx(
        gm,
        example_inputs,
        inner_compile=_compile_and_count,
        config_patches=patches,
        decompositions=_Decompositions(),
    )
    return cast("Callable[..., Any]", compiled)
