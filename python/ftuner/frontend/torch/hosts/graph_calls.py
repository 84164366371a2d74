"""Calls of functions in the code that Inductor writes, without an operator of PyTorch in between.

PyTorch calls an operator by a dispatch that takes longer than a launch, and with the texts of a recipe
as arguments. So Inductor's lowering of FTuner's operators writes the texts where its code is loaded,
and calls what `bind` makes of them::

    from ftuner.frontend.torch.hosts.graph_calls import bind as ftuner_bind
    ftuner_product_0 = ftuner_bind('product', (2, 0, 0), KEY, RECIPE)
    ...
    ftuner_product_0(arg0, arg1, out=buf0)

Only code of Python is written so. In packages and with Inductor's wrapper in C++ calls are of the
operator.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

from torch._inductor import ir, lowering
from torch._inductor.virtualized import V
from torch._library.utils import get_layout_constraint_tag
from torch.utils import _pytree as pytree

import torch
from ftuner.host.function import Function
from ftuner.host.memory import torch_calls

from ..regions.choice import Selector
from ..report import count_cached, count_cached_rows
from . import operator


def bind(
    name: str, counts: tuple[int, int, int], key: str, recipe: str, *choice: str
) -> Callable[..., Any]:
    """Makes the call of an operator with some texts, which takes tensors, scalars and sizes one by one.

    That of `product` also takes `out`, the tensor to write its result to. `counts` says how many
    tensors, scalars and sizes there are.
    """
    packet = getattr(torch.ops.ftuner, name)
    tensor_count, scalar_count, _ = counts
    overload = packet.scalars if scalar_count else packet.default
    num_inputs = tensor_count + scalar_count
    selector = Selector.read(choice[0]) if choice else None
    is_rows = name == "row_reduction"
    count = count_cached_rows if is_rows else count_cached

    def call_operator(*arguments: Any, out: torch.Tensor | None = None) -> Any:
        sizes = [[*arguments[num_inputs:]]] if choice else []
        tensors, scalars = [*arguments[:tensor_count]], [*arguments[tensor_count:num_inputs]]
        if out is None:
            return overload(tensors, scalars, *sizes, key, recipe, *choice)
        if torch._C._len_torch_dispatch_stack():
            return out.copy_(overload(tensors, scalars, key, recipe))
        is_profiled = torch._C._autograd._profiler_enabled()
        with torch.profiler.record_function(f"ftuner::{name}") if is_profiled else nullcontext():
            function = operator.function_of(key, recipe, count)
            return operator.call(function, tensors, scalars, out)

    if torch_calls.build() is None:
        return call_operator

    def resolve() -> Any:
        function = operator.function_of(key, recipe, count)
        return torch_calls.function_of(function) if isinstance(function, Function) else None

    return torch_calls.graph_call(
        sum(counts),
        is_rows,
        resolve,
        call_operator,
        selector.decide if selector else None,
        selector.places if selector else (),
    )


@dataclass
class _Written:
    """Text of Inductor's code."""

    text: str

    def __repr__(self) -> str:
        return self.text


class _Call(ir.ExternKernel):
    """Code that Inductor writes for a call of one of FTuner's operators."""

    #: Gives the operator's arguments for tensors in the order of the inputs.
    unflatten_args: Callable[..., Any]
    #: Name of the call in the code; None: the operator.
    bound: str | None = None

    def _arguments(self) -> Sequence[Any]:
        inputs: Any = self.inputs
        tensors = [_Written(tensor.codegen_reference()) for tensor in inputs]
        arguments: Sequence[Any] = self.unflatten_args(tensors, self.constant_args)[0]
        return arguments

    def bind(self, wrapper: Any) -> None:
        """Writes what the code calls where it is loaded."""
        tensors, scalars, *others = self._arguments()
        texts = [other for other in others if isinstance(other, str)]
        sizes = sum(len(other) for other in others if not isinstance(other, str))
        overload: Any = self.op_overload
        name = overload.name().split("::")[1].split(".")[0]
        while (parent := getattr(wrapper, "parent_wrapper", None)) is not None:
            wrapper = parent
        self.bound = self.python_kernel_name = "ftuner_" + re.sub(r"\W", "_", f"{name}_{texts[0]}")
        wrapper.add_import_once(
            "from ftuner.frontend.torch.hosts.graph_calls import bind as ftuner_bind"
        )
        parts = (name, (len(tensors), len(scalars), sizes), *texts)
        wrapper.header.writeline(f"{self.bound} = ftuner_bind({', '.join(map(repr, parts))})")

    def codegen_args(self) -> list[str]:
        if self.bound is None:
            return super().codegen_args()
        tensors, scalars, *others = self._arguments()
        sizes = [size for other in others if not isinstance(other, str) for size in other]
        wrapper: Any = V.graph.wrapper_code
        return [wrapper.val_to_arg_str(one) for one in (*tensors, *scalars, *sizes)]


class _NewResults(_Call, ir.FallbackKernel):
    """A call that makes its results."""

    def codegen(self, wrapper: Any) -> None:
        self.bound = None
        if not _writes_operators():
            self.bind(wrapper)
            for output in self.outputs:
                # The function makes results of the sizes that it says, and each check takes as long
                # as a call.
                setattr(output, "skip_size_stride_alignment_checks", True)
        super().codegen(wrapper)


class _ToBuffer(_Call, ir.ExternKernelOut):
    """A call that writes its result to a buffer of Inductor's, which may be one that was used before."""

    def __init__(self, overload: Any, *arguments: Any) -> None:
        with V.graph.fake_mode:
            example, tensors, others, unflatten, _ = self.process_kernel(overload, *arguments)
        super().__init__(
            ir.FallbackKernel.tensor_to_layout(example),
            list(tensors),
            tuple(others),
            op_overload=overload,
        )
        self.unflatten_args = unflatten

    def codegen(self, wrapper: Any) -> None:
        self.bind(wrapper)
        super().codegen(wrapper)


def _writes_operators() -> bool:
    """Returns whether Inductor's code is not Python's, and calls operators."""
    modes = ("cpp_wrapper", "aot_mode", "fx_wrapper")
    return any(getattr(V.graph, mode, False) for mode in modes)


def _lowering_of(overload: Any) -> Callable[..., Any]:
    # PyTorch makes the result if it computes some sizes, and several results lack buffers.
    writes_to_buffer = overload.name().split(".")[0] == "ftuner::product"

    def lower(*arguments: Any) -> Any:
        if writes_to_buffer and not _writes_operators():
            return ir.TensorBox.create(_ToBuffer(overload, *arguments))
        results = _NewResults.create(overload, *arguments)
        return pytree.tree_map(
            lambda result: result.wrap_for_lowering() if isinstance(result, ir.IRNode) else result,
            results,
        )

    # As PyTorch's own handlers of fallbacks are marked.
    lower._is_fallback_handler = True  # type: ignore[attr-defined]
    return lower


@functools.cache
def install() -> None:
    """Has Inductor lower calls of FTuner's operators in this way, for the rest of the process."""
    for name in operator.NAMES:
        packet = getattr(torch.ops.ftuner, name)
        for overload in (packet.default, packet.scalars):
            tag = get_layout_constraint_tag(overload, with_default=True)
            constraint = lowering.tag_to_layout_constraint(tag)
            make_fallback: Any = lowering.make_fallback
            make_fallback(overload, layout_constraint=constraint, warn=False)
            register = lowering.register_lowering(overload, type_promotion_kind=None)
            register(_lowering_of(overload))
