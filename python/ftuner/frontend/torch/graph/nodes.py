"""Facts about the nodes of an ATen graph: which multiply, which launch a kernel, and what they cost."""

from __future__ import annotations

import math
from typing import Any

from torch.utils.flop_counter import flop_registry, sdpa_flop_count

import torch
from torch import fx

from .hints import sizes_of

aten = torch.ops.aten

#: Elements that are taken, and what MLIR calls them.
TYPES = {torch.float32: "f32", torch.float16: "f16", torch.bfloat16: "bf16"}
TAKEN_TYPES = "float32, float16 or bfloat16"
#: The reason for products with vectors. It names the supported types.
_OTHER_TYPES = f"operands of other types than {TAKEN_TYPES}"
#: Products that are taken, with the positions of lhs and rhs.
PRODUCTS: dict[object, tuple[int, int]] = {
    aten.mm.default: (0, 1),
    aten.bmm.default: (0, 1),
    aten.addmm.default: (1, 2),
    aten.baddbmm.default: (1, 2),
}
_FASTPATH = (
    "PyTorch's fused layer for inference; torch.backends.mha.set_fastpath_enabled(False) takes it"
    " apart"
)
_RECURRENT = (
    "PyTorch's fused recurrent layer; torch.backends.mkldnn.set_flags(False) or, on a GPU,"
    " torch.backends.cudnn.enabled = False takes it apart"
)
#: Products that stay with PyTorch, and the reasons.
OTHER_PRODUCTS = {
    **dict.fromkeys(
        # Vector products of supported types have become products of matrices (vectors.py).
        ("aten::mv", "aten::addmv", "aten::dot", "aten::vdot"),
        _OTHER_TYPES,
    ),
    "aten::addr": "an outer product",
    "aten::convolution": "a convolution",
    "aten::convolution_backward": "a convolution",
    "aten::_grouped_mm": "a product of groups",
    "aten::_scaled_mm": "a product of scaled 8-bit types",
    "aten::_int_mm": "a product of integers",
    "aten::addbmm": "a sum over batches",
    "aten::_trilinear": "a product of three tensors",
    "aten::_transformer_encoder_layer_fwd": _FASTPATH,
    "aten::_native_multi_head_attention": _FASTPATH,
    "aten::mkldnn_rnn_layer": _RECURRENT,
    "aten::mkldnn_rnn_layer_backward": _RECURRENT,
    "aten::_cudnn_rnn": _RECURRENT,
    "aten::_cudnn_rnn_backward": _RECURRENT,
    "aten::miopen_rnn": _RECURRENT,
}
_ATTENTION = "scaled_dot_product_attention of PyTorch; the option attention='math' takes it apart"


class Unsupported(Exception):
    """A node or a region that stays with the host; the message is the reason."""


def schema_of(node: fx.Node) -> Any:
    """The schema of an operator of ATen; None for other nodes."""
    return getattr(node.target, "_schema", None)


def is_product(node: fx.Node) -> bool:
    return node.op == "call_function" and node.target in PRODUCTS


def is_write(node: fx.Node) -> bool:
    """Returns whether an operator changes tensors in place; graphs of ATen have few, at their ends."""
    schema = schema_of(node)
    return node.op == "call_function" and schema is not None and schema.is_mutable


def rejection_reason(node: fx.Node) -> str | None:
    """The reason why an operator that holds products is never taken; None for all others."""
    if node.op != "call_function":
        return None
    name = getattr(schema_of(node), "name", "")
    if name in OTHER_PRODUCTS:
        return OTHER_PRODUCTS[name]
    if "scaled_dot_product" in name:
        return _ATTENTION
    # Other matrix-multiplying operators, per PyTorch's FLOP counter.
    if not is_product(node) and getattr(node.target, "overloadpacket", None) in flop_registry:
        return "a larger operator of PyTorch that holds products"
    return None


def hint(reason: str) -> str:
    """Advice that brings a product rejected for this reason to FTuner; empty if there is none."""
    if reason.startswith("operands of ") and reason != _OTHER_TYPES:
        return f"operands of {TAKEN_TYPES} are taken: uKernels are for these types"
    return ""


#: Operators that give a tensor and launch nothing, beside views: they allocate, or wait.
_WITHOUT_KERNEL = {
    "_unsafe_view", "empty", "empty_like", "empty_strided", "empty_permuted", "new_empty",
    "new_empty_strided", "lift_fresh_copy", "wait_tensor",
}  # fmt: skip


def is_collective(node: fx.Node) -> bool:
    """Returns whether an operator exchanges data with other processes, whose time nothing predicts."""
    return getattr(node.target, "namespace", "") in ("_c10d_functional", "c10d", "c10d_functional")


def launches_kernel(node: fx.Node) -> bool:
    """Returns whether PyTorch launches a kernel for a node: one with a tensor that is not a view.

    What computes single numbers on the CPU from such numbers launches none.
    """
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
    return (
        bool(computed)
        and target.namespace != "ftuner"
        and target.overloadpacket.__name__ not in _WITHOUT_KERNEL
        and not all(_is_number_on_cpu(one.meta.get("val")) for one in (node, *node.all_input_nodes))
    )


def _is_number_on_cpu(value: Any) -> bool:
    """Returns whether a value is a number, or a tensor of one that is on the CPU."""
    return not isinstance(value, torch.Tensor) or (value.dim() == 0 and value.device.type == "cpu")


def flops_of(node: fx.Node) -> float | None:
    """FLOPs of an operator at the sizes that PyTorch compiles for; None if not known."""
    shapes = [sizes_of(argument) for argument in node.args]
    name = getattr(schema_of(node), "name", "")
    if name in ("aten::mv", "aten::addmv", "aten::dot", "aten::vdot"):
        return 2.0 * max((math.prod(s) for s in shapes if isinstance(s, tuple)), default=0)
    if "scaled_dot_product" in name and "backward" not in name:
        return float(sdpa_flop_count(*shapes[:3]))  # type: ignore[no-untyped-call]
    formula = flop_registry.get(getattr(node.target, "overloadpacket", None))
    if formula is None:
        return None
    options = {key: sizes_of(argument) for key, argument in node.kwargs.items()}
    return float(formula(*shapes, **options, out_val=sizes_of(node)))


def is_cpu_scalar(node: fx.Node) -> bool:
    value: torch.Tensor = node.meta["val"]
    return value.dim() == 0 and value.device.type == "cpu" and value.dtype.is_floating_point
