"""Exported programs of PyTorch as IREE's input; their weights beside it.

Weights are parameters of IREE: the module names them, and they lie in a file of the safetensors
format, so that no text ever holds them. Ranges of sizes are those of `torch.export.Dim`.
"""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from torch.export import ExportedProgram
from torch.utils._sympy.functions import FloorDiv

import torch

from ...errors import CompileError
from ...host.weights import NAMES, begin_of_file
from ..torch.exporting import decompositions
from ..torch.exporting.programs import load as load
from ..torch.exporting.programs import quiet

#: The scope of the parameters, `--parameters=model=FILE` of IREE's tools.
SCOPE = "model"

# Smaller constants are part of the module's text.
_MIN_BYTES = 1024

# MLIR's types of elements. Others are part of the module before IREE: that
# makes f32 of f64, but not in a file.
_TYPES = {
    torch.float32: "f32",
    torch.float16: "f16",
    torch.bfloat16: "bf16",
    torch.int64: "i64",
    torch.int32: "i32",
    torch.int16: "i16",
    torch.int8: "i8",
    torch.uint8: "i8",
}


def export(
    model: torch.nn.Module | ExportedProgram,
    args: tuple[Any, ...] | None,
    kwargs: dict[str, Any] | None,
    dynamic_shapes: Any,
) -> ExportedProgram:
    """The program of a model, exported with these arguments if it is a module."""
    if isinstance(model, ExportedProgram):
        if args is not None or kwargs is not None or dynamic_shapes is not None:
            raise TypeError(
                "args, kwargs and dynamic_shapes: expected none for an exported program"
            )
        return model
    if args is None:
        raise TypeError("args: expected example arguments to export the module with")
    if not isinstance(args, (tuple, list)):
        raise TypeError(
            f"args: expected a tuple of the arguments, but got {type(args).__qualname__}"
        )
    with torch.no_grad(), quiet():
        return torch.export.export(model, tuple(args), kwargs, dynamic_shapes=dynamic_shapes)


def write(
    program: ExportedProgram, folder: Path, parameters: Path, *, attention: str, name: str
) -> tuple[Path, bool]:
    """Writes the program as bytecode, in the torch dialect, and its weights.

    Returns the path of the bytecode, and whether there are weights. Raises `CompileError` where the
    importer does not know an operator.
    """
    from iree.compiler import ir
    from iree.compiler.extras import fx_importer

    table = decompositions.table_for_iree(attention == "products")
    try:
        with torch.no_grad(), quiet():
            program = program.run_decompositions(table)
    except Exception as error:
        raise CompileError(f"PyTorch cannot decompose the model: {error}", str(error)) from error
    weights = _Weights(ir)
    # The hooks of the importer are looked up by name.
    hooks = type("Hooks", (_Hooks, fx_importer.FxImporterHooks), {})(weights)
    with ir.Context() as context:
        importer = fx_importer.FxImporter(context=context, hooks=hooks)
        try:
            with _all_sizes(ir, fx_importer):
                importer.import_program(
                    program, func_name=name, import_symbolic_shape_expressions=True
                )
        except Exception as error:
            words = f"torch-mlir cannot import the model: {_reason(str(error))}"
            raise CompileError(words, str(error)) from error
        _widen_ranges(ir, importer.module)
        path = folder / "model.mlirbc"
        with path.open("wb") as file:
            importer.module.operation.write_bytecode(file)
    if weights.tensors:
        write_safetensors(parameters, weights.tensors)
    return path, bool(weights.tensors)


def _reason(words: str) -> str:
    """One sentence of what the importer says."""
    of_sizes = re.search(r"call_function: target=<(?:built-in )?function (\w+)", words)
    if of_sizes:
        return f"it does not know {of_sizes[1]} of sizes; write them with +, -, * and //"
    branches = re.search(r"operation '(\w+)' not implemented", words)
    if branches:
        hint = "; compute both results and take one by torch.where"
        return f"it does not know the operator {branches[1]}" + hint * (branches[1] == "cond")
    return words.partition("\n")[0][:300]


@contextlib.contextmanager
def _all_sizes(ir: Any, fx_importer: Any) -> Iterator[None]:
    """While it lasts, no size stops the importer.

    It then writes floor divisions, as of sizes after a convolution, and says nothing of the sizes
    of a value that it cannot write.
    """
    translate, nodes = fx_importer.sympy_expr_to_semi_affine_expr, fx_importer.GraphNodeImporter

    def translate_all(expression: Any, symbols: dict[str, Any]) -> Any:
        if isinstance(expression, FloorDiv):
            return ir.AffineExpr.get_floor_div(
                *(translate_all(argument, symbols) for argument in expression.args)
            )
        return translate(expression, symbols)

    def bind(self: Any, location: Any, node: Any) -> None:
        with contextlib.suppress(NotImplementedError):
            nodes._create_bind_symbolic_shape_ops(self, location, node)

    fx_importer.sympy_expr_to_semi_affine_expr = translate_all
    fx_importer.GraphNodeImporter = type(
        "Nodes", (nodes,), {"_create_bind_symbolic_shape_ops": bind}
    )
    try:
        yield
    finally:
        fx_importer.sympy_expr_to_semi_affine_expr = translate
        fx_importer.GraphNodeImporter = nodes


def _widen_ranges(ir: Any, module: Any) -> None:
    """Sizes from 2 on begin at 1.

    PyTorch takes 0 and 1 out of the range of every size, since it traces with larger ones.
    A saved program does not tell this from a least size that its user declared.
    """
    i64 = ir.IntegerType.get_signless(64)

    def widen(operation: Any) -> Any:
        if operation.name == "torch.symbolic_int":
            minimum = operation.attributes["min_val"]
            if ir.IntegerAttr(minimum).value == 2:
                operation.attributes["min_val"] = ir.IntegerAttr.get(i64, 1)
        return ir.WalkResult.ADVANCE

    module.operation.walk(widen)


class _Weights:
    """Tensors that become parameters, by their names; equal storage is one of them."""

    def __init__(self, ir: Any) -> None:
        self.ir = ir
        self.module: Any = None
        self.tensors: dict[str, torch.Tensor] = {}
        self._names: dict[tuple[Any, ...], str] = {}

    def load(self, importer: Any, tensor: torch.Tensor, target: str | None) -> Any:
        """The value of a tensor in the function; None for one that the text holds."""
        type_ = _TYPES.get(tensor.dtype)
        if type_ is None or tensor.numel() * tensor.element_size() < _MIN_BYTES:
            return None
        ir = self.ir
        shape = [*tensor.shape]
        builtin = ir.RankedTensorType.get(shape, ir.Type.parse(type_))
        key = (tensor.data_ptr(), tensor.dtype, tuple(shape), tensor.stride())
        if key not in self._names:
            self._names[key] = self._declare(target, builtin)
            self.tensors[self._names[key]] = tensor
        with ir.Location.unknown():
            loaded = ir.Operation.create(
                "util.global.load",
                results=[builtin],
                attributes={
                    "global": ir.FlatSymbolRefAttr.get(f"{SCOPE}.{self._names[key]}"),
                    "is_immutable": ir.UnitAttr.get(),
                },
            ).result
            return ir.Operation.create(
                "torch_c.from_builtin_tensor",
                results=[importer._cc.tensor_to_vtensor_type(tensor)],
                operands=[loaded],
            ).result

    def _declare(self, target: str | None, type: Any) -> str:
        ir = self.ir
        name = target or f"constant{len(self.tensors)}"
        # No function is called so.
        symbol = f"{SCOPE}.{name}"
        text = json.dumps(name)
        parameter = f'#flow.parameter.named<"{SCOPE}"::{text}> : {type}'
        attributes = {
            "sym_name": ir.StringAttr.get(symbol),
            "sym_visibility": ir.StringAttr.get("private"),
            "type": ir.TypeAttr.get(type),
            "initial_value": ir.Attribute.parse(parameter),
        }
        with ir.InsertionPoint.at_block_begin(self.module.regions[0].blocks[0]):
            with ir.Location.unknown():
                ir.Operation.create("util.global", attributes=attributes)
        return name


class _Hooks:
    """Answers to torch-mlir's importer."""

    def __init__(self, weights: _Weights) -> None:
        self._weights = weights

    def prepare_module(self, module: Any) -> None:
        self._weights.module = module

    def resolve_literal(self, importer: Any, literal: Any, info: Any) -> Any:
        if not isinstance(literal, torch.Tensor):
            return None
        return self._weights.load(importer, literal, info.input_spec.target if info else None)


# Tensors begin at multiples of this.
_ALIGNMENT = 64


def write_safetensors(path: Path, tensors: dict[str, torch.Tensor]) -> None:
    """Writes tensors in the safetensors format."""
    header: dict[str, Any] = {}
    end = 0
    for name, tensor in tensors.items():
        begin = -(-end // _ALIGNMENT) * _ALIGNMENT
        end = begin + tensor.numel() * tensor.element_size()
        header[name] = {
            "dtype": NAMES[str(tensor.dtype).removeprefix("torch.")],
            "shape": [*tensor.shape],
            "data_offsets": [begin, end],
        }
    with path.open("wb") as file:
        file.write(begin_of_file(header, _ALIGNMENT))
        start = file.tell()
        for name, tensor in tensors.items():
            file.seek(start + header[name]["data_offsets"][0])
            data = tensor.detach().cpu().contiguous().reshape(-1)
            file.write(data.view(torch.uint8).numpy().data)
