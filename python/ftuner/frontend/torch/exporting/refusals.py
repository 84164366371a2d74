"""Refusals of exported models in the model's words: operators, lines, reasons and advice, without words of importers.

Operators without a lowering are found before a program is lowered, and are all reported at once.
"""

from __future__ import annotations

import re
from typing import Any

from torch.export import ExportedProgram

import torch
from torch import fx

from ....errors import CompileError
from ...importing.torch_mlir import NotLowered
from .effects import place_of

_BY_HAND = (
    "write it in other operators, or compute it outside of the model and pass it as an argument"
)

#: Operators that nothing lowers, by their names in PyTorch.
_WITHOUT_LOWERING = frozenset(
    """
    sort topk kthvalue median nanmedian mode msort gcd lcm igamma igammac
    special_zeta special_airy_ai special_bessel_j0 special_bessel_j1 special_bessel_y0 special_bessel_y1
    special_modified_bessel_k0 special_modified_bessel_k1 special_scaled_modified_bessel_k0
    special_scaled_modified_bessel_k1 special_chebyshev_polynomial_t
    special_chebyshev_polynomial_u special_chebyshev_polynomial_v special_chebyshev_polynomial_w
    special_hermite_polynomial_h special_hermite_polynomial_he special_laguerre_polynomial_l
    special_legendre_polynomial_p special_shifted_chebyshev_polynomial_t special_shifted_chebyshev_polynomial_u
    special_shifted_chebyshev_polynomial_v special_shifted_chebyshev_polynomial_w frexp nextafter histc histogram
    bincount linalg_cholesky_ex linalg_eigh _linalg_eigh linalg_qr _linalg_svd linalg_lu_factor_ex
    linalg_inv_ex _linalg_solve_ex _linalg_det triangular_solve
    """.split()
)

#: Words that no refusal has: addresses, unfinished code, operations, types and verifiers of the compiler.
_INTERNAL = re.compile(
    r"0x[0-9a-f]{4,}|FIX ?ME|[Uu]nimplemented|not implemented|<(?:function|class|built-in)|'\w+\.\w+' op\b|"
    r"\b(?:tensor|tm_tensor|linalg|memref|torch|vtensor|ml_program|arith)\.\w+|legalize|tensor<|object is not|"
    r"[Aa]ssert|site-packages|!torch"
)


def name_of(node: fx.Node) -> str:
    """The operator of a node by its name in PyTorch, such as `gather`."""
    target: Any = node.target
    packet = getattr(target, "overloadpacket", None)
    return str(getattr(packet or target, "__name__", None) or target)


def _operators(program: ExportedProgram) -> list[fx.Node]:
    return [node for node in program.graph.nodes if node.op == "call_function"]


def _sentence(name: str, reason: str, advice: str, place: str | None) -> str:
    at = f" ({place})" if place else ""
    return f"cannot import the model: the operator {name} is not supported: {reason}; {advice}{at}"


def _is_complex(node: fx.Node) -> bool:
    values = node.meta.get("val")
    values = values if isinstance(values, (tuple, list)) else (values,)
    return any(isinstance(value, torch.Tensor) and value.dtype.is_complex for value in values)


def _refusal(node: fx.Node) -> str | None:
    """The sentence for an operator that is known not to be lowered."""
    name, place = name_of(node), place_of(node)
    tags = getattr(node.target, "tags", ())
    if _is_complex(node):
        return _sentence(
            name,
            "it has complex numbers",
            "compute with real and imaginary parts as real tensors",
            place,
        )
    if torch.Tag.dynamic_output_shape in tags and not _has_no_mask(node):
        advice = "keep all elements and choose among them by torch.where, or compute it outside of the model"
        return _sentence(name, "the size of its result depends on data", advice, place)
    if name in _WITHOUT_LOWERING:
        return _sentence(name, "no kernel computes it", _BY_HAND, place)
    return None


def _has_no_mask(node: fx.Node) -> bool:
    """Returns whether an index, whose tag says that its size may depend on data, has no masks."""
    if name_of(node) != "index":
        return False
    indices: Any = node.args[1]
    values = [index.meta.get("val") for index in indices if isinstance(index, fx.Node)]
    return not any(
        value.dtype in (torch.bool, torch.uint8)
        for value in values
        if isinstance(value, torch.Tensor)
    )


def check_operators(program: ExportedProgram) -> None:
    """Refuses a program with operators that FTuner cannot lower: all of them at once, a line for each."""
    lines: dict[str, None] = {}
    for node in _operators(program):
        words = _refusal(node)
        if words:
            lines[words] = None
    if lines:
        text = "\n".join(lines)
        raise CompileError(text, text)


def _candidates(program: ExportedProgram, place: str | None) -> list[str]:
    """The operators on tensors of the model at a line; all of them if it is not known."""
    nodes = [
        node
        for node in _operators(program)
        if isinstance(node.target, torch._ops.OpOverload)
        and (place is None or place_of(node) == place)
    ]
    return [
        name
        for name in dict.fromkeys(map(name_of, nodes))
        if name not in ("_assert_scalar", "sym_size")
    ]


def explained(program: ExportedProgram, error: NotLowered) -> CompileError:
    """A refusal of the importer in the model's words; `program` is the model before it was decomposed."""
    known = _candidates(program, error.place)
    found = re.search(r"does not lower (?:the operator )?([\w.]+)", error.reason)
    if found is None and not _INTERNAL.search(error.reason):
        return error
    parts = found[1].split(".") if found else []
    name = next((part for part in parts if part in known), None)
    if name is None:
        # A part of a decomposed operator often has its name, as _adaptive_avg_pool2d has.
        stems = [part.strip("_") for part in parts[-2:]]
        name = next(
            (name for name in known if any(stem in name or name in stem for stem in stems if stem)),
            None,
        )
    names: list[str] = []
    if name is None:
        names = known or _candidates(program, None)
        name = names[0] if len(names) == 1 else None
    if name is None and names:
        operators = ", ".join(names[:6])
        at = f" ({error.place})" if error.place else ""
        words = (
            f"cannot import the model: one of the operators {operators} is not supported: torch-mlir does not "
            f"lower it with these arguments; {_BY_HAND}{at}"
        )
    else:
        reason = "torch-mlir does not lower it with these arguments"
        words = _sentence(name or "of the model", reason, _BY_HAND, error.place)
    return CompileError(words, error.diagnostics)


def of_importer(program: ExportedProgram, error: Exception) -> CompileError:
    """A refusal by PyTorch's importer, which raises exceptions of any kind."""
    words = " ".join(str(error).split())
    target = re.search(r"target=(?:<[^>]*?)?(?:aten\.)?(\w+)", words)
    if not _INTERNAL.search(words) and not isinstance(error, (TypeError, AttributeError)):
        return CompileError(f"cannot import the model: {words}", str(error))
    nodes = {name_of(node): node for node in _operators(program)}
    name = next(
        (part for part in re.findall(r"\w+", words) if part in nodes), target[1] if target else None
    )
    if name is None:
        names = ", ".join([*nodes][:6]) or "none"
        words = (
            f"cannot import the model: one of the operators {names} is not supported: torch-mlir's importer does "
            f"not take it with these arguments; {_BY_HAND}"
        )
        return CompileError(words, str(error))
    place = place_of(nodes[name]) if name in nodes else None
    reason = "torch-mlir's importer does not take it with these arguments"
    return CompileError(_sentence(name, reason, _BY_HAND, place), str(error))
