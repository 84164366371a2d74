"""The backend of torch.compile."""

from __future__ import annotations

import contextlib
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import fx
from torch._dynamo.backends.common import aot_autograd
from torch._functorch.aot_autograd import make_boxed_func
from torch._guards import detect_fake_mode
from torch.nn.attention import SDPBackend, sdpa_kernel

import ftuner
from ftuner import compiler, locations

from .constants import restart_with_constants
from .importer import ImportedRegion, import_region, replace_region
from .library import Library, Settings
from .partition import NotTaken, RegionFinder, flops_of, hint, is_product, reason_to_leave
from .report import Left, count_call, update


@dataclass(frozen=True)
class Options:
    """Options of the backend, given as ``torch.compile(..., options={...})``.

    All others go to `ftuner.compile`, such as ``max_kernels=8``.
    """

    #: As in `ftuner.compile`. None: the GPU that the tensors are on ("cuda"), or
    #: "h200" for tensors on the CPU, which run in the emulator.
    device: Any = None
    #: As in `ftuner.compile`. None: for tensors on the CPU only.
    emulate: bool | None = None
    #: "sdpa" leaves scaled_dot_product_attention to PyTorch; "math" takes it
    #: apart into products and a softmax.
    attention: str = "sdpa"
    #: Leave to PyTorch what FTuner cannot compile, with a warning, instead of
    #: raising ftuner.CompileError.
    fallback: bool = False
    compile: dict[str, Any] = field(default_factory=dict)

    @staticmethod
    def parse(options: dict[str, Any] | None) -> Options:
        """Raises TypeError and ValueError for options that are not valid."""
        remaining = dict(options or {})
        names = ("attention", "device", "emulate", "fallback")
        given = {name: remaining.pop(name) for name in names if name in remaining}
        # The compiler is asked only where options need it: it is not where a cache is all there is.
        others = [name for name in remaining if name not in ("cache", "cubins")]
        of_pipeline = _pipeline_options() if others else set()
        for name in others:
            if name.replace("-", "_") not in of_pipeline:
                known = ", ".join(sorted({*names, "cache", "cubins", *of_pipeline}))
                raise TypeError(f"expected an option of the backend ({known}), but got {name!r}")
        flags = {name: given.get(name) for name in ("emulate", "fallback")}
        for name, value in {**flags, "cache": remaining.get("cache")}.items():
            if not isinstance(value, (bool, type(None))):
                raise TypeError(f"expected option {name} to be True or False, but got {value!r}")
        attention = given.get("attention", "sdpa")
        if attention not in ("sdpa", "math"):
            raise ValueError(f"expected option attention 'sdpa' or 'math', but got {attention!r}")
        return Options(compile=remaining, **given)

    def with_precision(self) -> Options:
        """With PyTorch's own setting for products of float32, unless the option is given."""
        if "precision" in self.compile or not _allows_tf32():
            return self
        return replace(self, compile={**self.compile, "precision": "tf32"})


def _allows_tf32() -> bool:
    """Whether PyTorch may round factors of float32 products to tf32 on a GPU.

    That is what torch.set_float32_matmul_precision, allow_tf32 and fp32_precision set. PyTorch's
    compiler guards it: with another setting it compiles again.
    """
    setting = torch.backends.cuda.matmul
    # Newer versions of PyTorch refuse to read allow_tf32 where fp32_precision was set.
    precision = getattr(setting, "fp32_precision", None)
    return setting.allow_tf32 if precision is None else precision == "tf32"


def _pipeline_options() -> set[str]:
    known = compiler.pipeline_options(locations.tool("ftuner-translate")) - {"device"}
    return {name.replace("-", "_") for name in known}


class Kernel(torch.nn.Module):
    """Calls an FTuner function: tensors, then scalars as tensors of one element."""

    def __init__(self, function: Callable[..., torch.Tensor], num_tensors: int) -> None:
        super().__init__()
        self.function = function
        self.num_tensors = num_tensors

    def forward(self, *arguments: torch.Tensor) -> torch.Tensor:
        tensors = list(arguments[: self.num_tensors])
        copied = 0
        for position, tensor in enumerate(tensors):
            if not tensor.is_contiguous():
                tensors[position] = tensor.contiguous()
                copied += 1
            elif tensor.data_ptr() % tensor.element_size():
                tensors[position] = tensor.clone()
                copied += 1
        scalars = [argument.item() for argument in arguments[self.num_tensors :]]
        if torch.is_grad_enabled():
            # Gradients are what the graph of the backward pass computes.
            with torch.no_grad():
                result = self.function(*tensors, *scalars)
        else:
            result = self.function(*tensors, *scalars)
        count_call(copied)
        return result


_library = Library()


def _location(node: fx.Node) -> str:
    """File and line of the model that a node computes."""
    lines = [line.strip() for line in (node.meta.get("stack_trace") or "").splitlines()]
    files = [line for line in lines if line.startswith("File ")]
    return files[-1] if files else ""


#: Operators that give a tensor and compute nothing, beside views.
_WITHOUT_KERNEL = {
    "_unsafe_view", "empty", "empty_like", "empty_strided", "empty_permuted", "new_empty",
    "new_empty_strided", "lift_fresh_copy",
}  # fmt: skip


def _computes(node: fx.Node) -> bool:
    """Whether PyTorch launches a kernel for a node: one on tensors that is no view."""
    target = node.target
    if node.op != "call_function" or not isinstance(target, torch._ops.OpOverload):
        return False
    # Views give an alias of an argument, and say so.
    computed = [
        result
        for result in target._schema.returns
        if "Tensor" in str(result.type)
        and (result.alias_info is None or result.alias_info.is_write)
    ]
    return bool(computed) and target.overloadpacket.__name__ not in _WITHOUT_KERNEL


def _operator(node: fx.Node) -> str:
    return str(node.target).removeprefix("aten.")


def _left(node: fx.Node, reason: str) -> Left:
    operator = _operator(node)
    return Left(operator, reason, _location(node), hint(reason), flops_of(node))


def _device_of(graph: fx.Graph, options: Options) -> tuple[Any, bool]:
    """The device to compile for, and whether kernels are compiled for the emulator."""
    gpus = {
        node.meta["val"].device
        for node in graph.nodes
        if is_product(node) and node.meta["val"].device.type == "cuda"
    }
    device = options.device
    if device is None:
        device = f"cuda:{min(gpu.index or 0 for gpu in gpus)}" if gpus else "h200"
    return device, not gpus if options.emulate is None else options.emulate


def _import(gm: fx.GraphModule, finder: RegionFinder) -> list[ImportedRegion]:
    fake_mode = detect_fake_mode([node.meta.get("val") for node in gm.graph.nodes])
    shape_env = fake_mode.shape_env if fake_mode else None
    return [import_region(region, shape_env) for region in finder.regions()]


def compile_graph(gm: fx.GraphModule, options: Options) -> fx.GraphModule:
    """Replaces the products of an ATen graph by calls of FTuner functions."""
    finder = RegionFinder(gm.graph)
    imported = _import(gm, finder)
    device, emulate = _device_of(gm.graph, options)
    functions = _library.get(
        [item.function for item in imported], Settings(device, emulate, options.compile)
    )
    left = [
        _left(node, reason)
        for node in gm.graph.nodes
        if (reason := finder.reasons.get(node) or reason_to_leave(node)) is not None
    ]
    names: list[str] = []
    flops = 0.0
    fused = copies = 0
    replaced: dict[fx.Node, fx.Node] = {}
    for number, (item, function) in enumerate(zip(imported, functions)):
        product = item.region.product
        if isinstance(function, ftuner.CompileError):
            left.append(_refuse(product, function, options.fallback))
            continue
        if isinstance(function, NotTaken):
            left.append(_left(product, str(function)))
            continue
        target, product_flops = f"ftuner_{number}", flops_of(product)
        gm.add_submodule(target, Kernel(function, len(item.argument_shapes)))
        try:
            copies += replace_region(item, gm.graph, target, replaced)
        except NotTaken as error:
            left.append(_left(product, str(error)))
            continue
        names.append(item.function.name)
        flops += product_flops or 0
        fused += len(item.region.emitted)
    gm.graph.eliminate_dead_code()
    gm.graph.lint()
    gm.recompile()
    stay = Counter(_operator(node) for node in gm.graph.nodes if _computes(node))
    with update() as counts:
        counts.graphs += 1
        for operator, count in stay.items():
            counts.operators[operator] = counts.operators.get(operator, 0) + count
        counts.products += len(names) + len(left)
        counts.taken += len(names)
        counts.taken_flops += flops
        counts.left += left
        counts.fused += fused
        counts.copies += copies
        for name in names:
            counts.functions[name] = counts.functions.get(name, 0) + 1
    return gm


def _refuse(product: fx.Node, error: ftuner.CompileError, fallback: bool) -> Left:
    """Raises the error with the place in the model, or warns and leaves the product."""
    where = product.meta.get("stack_trace") or ""
    message = f"FTuner could not compile {product.target} ({product.name}): {error}"
    if not fallback:
        raise ftuner.CompileError(
            f"{message}\nin the model:\n{where}", error.diagnostics
        ) from error
    warnings.warn(f"{message}; PyTorch computes it", stacklevel=2)
    return _left(product, str(error))


def backend(
    gm: fx.GraphModule,
    example_inputs: Sequence[Any],
    *,
    options: dict[str, Any] | None = None,
    mode: str | None = None,
) -> Callable[..., Any]:
    """``torch.compile(model, backend="ftuner", dynamic=True, options={...})``.

    Products of matrices and the pointwise operators after them become FTuner
    functions, everything else runs as PyTorch's own operators. See `Options`.
    """
    if mode not in (None, "default"):
        raise ValueError(f"expected no mode, but got {mode!r}")
    # Read here: the graph of gradients may be compiled when the setting is another one.
    parsed = Options.parse(options).with_precision()

    def compiler(graph: fx.GraphModule, _: Sequence[Any]) -> Callable[..., Any]:
        return make_boxed_func(compile_graph(graph, parsed).forward)

    kernels = (
        sdpa_kernel(SDPBackend.MATH) if parsed.attention == "math" else contextlib.nullcontext()
    )
    restart_with_constants(gm)
    with kernels:
        return aot_autograd(fw_compiler=compiler)(gm, example_inputs)
