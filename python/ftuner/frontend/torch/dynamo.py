"""The backend of torch.compile."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from torch._dynamo.backends.common import aot_autograd
from torch._functorch.aot_autograd import make_boxed_func  # type: ignore[attr-defined]
from torch.nn.attention import SDPBackend, sdpa_kernel

import torch
from ftuner.host.function import Function
from ftuner.host.memory import torch_calls
from torch import fx

from .histograms import of_symbols
from .hosts.constants import restart_with_constants
from .hosts.host import Host, Part
from .hosts.inductor import compile_with_inductor
from .hosts.operator import call, call_pytorch, result_shape
from .hosts.vectors import decompositions
from .options import Options
from .regions.choice import Selector
from .regions.importing import Call
from .replacement import replace_regions
from .report import Report


def _native(function: Any) -> Any:
    """Makes the object that `torch_calls.graph_call` uses for a function."""
    return torch_calls.function_of(function) if isinstance(function, Function) else None


class Kernel(torch.nn.Module):
    """Calls an FTuner function: tensors, then scalars as tensors of one element, then sizes.

    The sizes are for the operators that PyTorch runs instead where `selector` says so.
    """

    def __init__(self, part: Part, arguments: Call, selector: Selector | None) -> None:
        super().__init__()
        self.function = part.function
        self.gives_list = part.gives_list
        self.sizes = part.imported.function.result_sizes[0]
        self.num_tensors = len(arguments.tensors)
        self.num_scalars = len(arguments.scalars)
        self.selector = selector

    def forward(self, *arguments: Any) -> Any:
        num_inputs = self.num_tensors + self.num_scalars
        tensors, scalars = arguments[: self.num_tensors], arguments[self.num_tensors : num_inputs]
        if self.selector is None or self.selector.is_ftuners(tensors):
            return call(self.function, tensors, scalars, gives_list=self.gives_list)
        shape = result_shape(self.sizes, tensors)
        return call_pytorch(self.selector, tensors, scalars, arguments[num_inputs:], shape)

    def bind(self, argument_count: int) -> Callable[..., Any]:
        """Makes the same call without Python in common calls."""
        selector = self.selector
        return torch_calls.graph_call(
            argument_count,
            self.gives_list,
            functools.partial(_native, self.function),
            self,
            selector.decide if selector else None,
            selector.places if selector else (),
        )


class _Eager(Host):
    """PyTorch runs the operators one by one; functions are submodules of the graph."""

    joins = False

    def __init__(self, gm: fx.GraphModule) -> None:
        self.gm = gm
        self.count = 0

    def call(self, graph: fx.Graph, part: Part, arguments: Call) -> fx.Node:
        target = f"ftuner_{self.count}"
        self.count += 1
        selector, sizes = None, []
        if part.choice is not None and arguments.alternative is not None:
            selector = Selector(part.choice, arguments.alternative.code)
            sizes = arguments.alternative.sizes
        self.gm.add_submodule(target, Kernel(part, arguments, selector))
        return graph.call_module(target, (*arguments.tensors, *arguments.scalars, *sizes))

    def operators(self, counts: Report) -> dict[str, int]:
        return counts.operators


def compile_graph(gm: fx.GraphModule, options: Options) -> fx.GraphModule:
    """Replaces products and rows of an ATen graph by calls of FTuner functions."""
    replace_regions(gm.graph, options, _Eager(gm))
    if torch_calls.build() is not None:
        _call_without_modules(gm)
    gm.recompile()
    return gm


def _call_without_modules(gm: fx.GraphModule) -> None:
    """Replaces calls of kernels as modules by those in which no Python runs."""
    for node in [*gm.graph.nodes]:
        kernel = gm.get_submodule(str(node.target)) if node.op == "call_module" else None
        if not isinstance(kernel, Kernel):
            continue
        with gm.graph.inserting_before(node):
            call = gm.graph.call_function(kernel.bind(len(node.args)), node.args)
        call.meta = node.meta
        node.replace_all_uses_with(call)
        gm.graph.erase_node(node)
        gm.delete_submodule(str(node.target))


def backend(
    gm: fx.GraphModule,
    example_inputs: Sequence[Any],
    *,
    options: dict[str, Any] | None = None,
    mode: str | None = None,
) -> Callable[..., Any]:
    """``torch.compile(model, backend="ftuner", dynamic=True, options={...})``.

    Products of matrices and the pointwise operators after them, and reductions of rows with what
    surrounds them, become FTuner functions, everything else is for the host: PyTorch's own operators, or
    Inductor. See `Options`. A ``mode`` is one of Inductor's, which then is the host; PyTorch
    takes either a mode or options.
    """
    if mode not in (None, "default"):
        options = {**(options or {}), "mode": mode}
    # Read here: the graph of gradients may be compiled when the setting is another one.
    parsed = Options.parse(options).with_settings()
    parsed = replace(parsed, symbols=of_symbols(gm, parsed.histogram))

    def compiler(graph: fx.GraphModule, _: Sequence[Any]) -> Callable[..., Any]:
        return make_boxed_func(compile_graph(graph, parsed).forward)

    def compiler_of_training(graph: fx.GraphModule, _: Sequence[Any]) -> Callable[..., Any]:
        return make_boxed_func(compile_graph(graph, parsed.without_rows()).forward)

    kernels = (
        sdpa_kernel(SDPBackend.MATH) if parsed.attention == "math" else contextlib.nullcontext()
    )
    restart_with_constants(gm)
    with kernels:
        if parsed.host == "inductor":
            return compile_with_inductor(gm, example_inputs, parsed)
        return aot_autograd(
            fw_compiler=compiler_of_training,
            inference_compiler=compiler,
            decompositions=decompositions({}),
        )(gm, example_inputs)
