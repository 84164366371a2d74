"""Norms as each front end writes them: one kernel of rows each, with all sizes known, with some and with none."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper
from torch.export import Dim
from torch.nn import functional as F

import ftuner
import ftuner.torch as ft
import torch
from ftuner.frontend.onnx import import_proto
from torch import Tensor, nn

pytest.importorskip("iree.compiler")
pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning")

Array = np.ndarray[Any, Any]
Norm = Callable[[Tensor, Tensor], Tensor]

SHAPE = (3, 6, 40)
#: The sizes that a program knows of a tensor of `SHAPE`, and sizes of later calls with its dynamic sizes.
SIZES = {"known": (), "some": (0,), "none": (0, 1, 2)}
CALLS = {"known": [SHAPE], "some": [SHAPE, (5, 6, 40)], "none": [SHAPE, (2, 6, 67)]}
DIMS = Dim("B", min=2, max=64), Dim("S", min=2, max=64), Dim("C", min=2, max=512)


def compile_norms(text: str, count: int) -> ftuner.Function:
    """The function of a text that computes so many norms by a kernel of rows each."""
    module = ftuner.compile(text, device="a100", max_kernels=1, emulate=True, cost_model="sia")
    (function,) = module.functions.values()
    (record,) = module.manifest["functions"]
    work = record["work"]
    assert not work["fallback_kernels"], [kernel["location"] for kernel in work["fallback_kernels"]]
    assert [norm["launches"] for norm in work["workloads"]] == [1] * count, work["workloads"]
    return function


def check(found: Any, exact: Array, label: str, tolerance: float = 2e-6) -> None:
    found = np.asarray(found)
    assert found.shape == exact.shape, label
    assert np.abs(found.astype(np.float64) - exact).max() <= tolerance * max(
        1, np.abs(exact).max()
    ), label


# PyTorch.


def by_mean(x: Tensor, w: Tensor) -> Tensor:
    centered = x - x.mean(-1, keepdim=True)
    return centered * torch.rsqrt((centered**2).mean(-1, keepdim=True) + 1e-5) * w


def by_variance(x: Tensor, w: Tensor) -> Tensor:
    variance = x.var(-1, unbiased=False, keepdim=True)
    return (x - x.mean(-1, keepdim=True)) / torch.sqrt(variance + 1e-5) * w


def by_deviation(x: Tensor, w: Tensor) -> Tensor:
    return (x - x.mean(-1, keepdim=True)) / (x.std(-1, keepdim=True) + 1e-5) * w


def by_var_mean(x: Tensor, w: Tensor) -> Tensor:
    variance, mean = torch.var_mean(x, -1, keepdim=True, correction=0)
    return (x - mean) * torch.rsqrt(variance + 1e-5) * w


def by_squares(x: Tensor, w: Tensor) -> Tensor:
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * w


NORMS: dict[str, Norm] = {
    "layer_norm": lambda x, w: F.layer_norm(x, (x.shape[-1],), w, w),
    "layer_norm of two dimensions": lambda x, w: F.layer_norm(x, x.shape[1:]),
    "layer_norm of all dimensions": lambda x, w: F.layer_norm(x, x.shape),
    "rms_norm": lambda x, w: F.rms_norm(x, (x.shape[-1],), w),
    "instance_norm": lambda x, w: F.instance_norm(x),
    "group_norm": lambda x, w: F.group_norm(x, 3),
    "mean": by_mean,
    "variance": by_variance,
    "deviation": by_deviation,
    "var_mean": by_var_mean,
    "squares": by_squares,
    "softmax": lambda x, w: torch.softmax(x, -1) * w,
}  # fmt: skip
#: Programs that torch-mlir's own pipelines lower with each size dynamic.
STOCK = [name for name in NORMS if name not in ("instance_norm", "group_norm")]


class Norms(nn.Module):
    """Norms of separate tensors."""

    def __init__(self, names: Sequence[str]) -> None:
        super().__init__()
        self.names = names

    def forward(self, xs: list[Tensor], ws: list[Tensor]) -> list[Tensor]:
        return [NORMS[name](x, w) for name, x, w in zip(self.names, xs, ws)]


def inputs_of(names: Sequence[str], shape: Sequence[int]) -> tuple[list[Tensor], list[Tensor]]:
    return [torch.randn(*shape) for _ in names], [torch.randn(shape[-1]) for _ in names]


def dynamic_shapes(names: Sequence[str], known: str) -> tuple[Any, Any]:
    dims = {dim: DIMS[dim] for dim in SIZES[known]}
    return [dims for _ in names], [{0: DIMS[2]} if 2 in dims else {} for _ in names]


def check_torch(text: str, names: Sequence[str], known: str) -> None:
    function = compile_norms(text, len(names))
    for shape in CALLS[known]:
        xs, ws = inputs_of(names, shape)
        found = function(*(x.numpy() for x in [*xs, *ws]))
        for name, x, w, result in zip(names, xs, ws, found):
            check(result, NORMS[name](x.double(), w.double()).numpy(), f"{name}, {shape}")


@pytest.mark.parametrize("known", SIZES)
def test_torch_export(known: str) -> None:
    names = list(NORMS)
    shapes = dynamic_shapes(names, known)
    text = ft.export(Norms(names), inputs_of(names, SHAPE), dynamic_shapes=shapes).text
    check_torch(text, names, known)


def stock_linalg(names: Sequence[str], known: str) -> str:
    """Returns a program as torch-mlir's own pipelines lower it."""
    from iree.compiler import ir, passmanager
    from iree.compiler.extras import fx_importer

    shapes = dynamic_shapes(names, known)
    program = torch.export.export(Norms(names), inputs_of(names, SHAPE), dynamic_shapes=shapes)
    context = ir.Context()
    importer = fx_importer.FxImporter(context=context)
    importer.import_program(program.run_decompositions(), func_name="main")
    passes = "torchdynamo-export-to-torch-backend-pipeline,torch-backend-to-linalg-on-tensors-backend-pipeline"
    passmanager.PassManager.parse(f"builtin.module({passes})", context).run(
        importer.module.operation
    )
    return str(importer.module)


@pytest.mark.parametrize("known", SIZES)
def test_linalg_of_torch_mlir(known: str) -> None:
    """Variances are in f64 there."""
    text = stock_linalg(STOCK, known)
    assert "xf64>" in text
    check_torch(text, STOCK, known)


def test_torch_compile() -> None:
    names = list(NORMS)
    compiled = torch.compile(
        Norms(names),
        backend="ftuner",
        fullgraph=True,
        options={"host": "eager", "rows": "always", "cost_model": "sia", "max_kernels": 1},
    )
    for shape in CALLS["some"]:
        xs, ws = inputs_of(names, shape)
        for x in xs:
            torch._dynamo.mark_dynamic(x, 0, min=2, max=64)
        with torch.no_grad():
            found = compiled(xs, ws)
        for name, x, w, result in zip(names, xs, ws, found):
            check(result, NORMS[name](x.double(), w.double()).numpy(), f"{name}, {shape}")
    report = ft.report()
    assert report.row_functions == len(names) and not report.operators and not report.rows_left


# ONNX.

F32, F16, BF16 = TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.BFLOAT16
#: Operator, type, number of inputs and of results, attributes.
NODES: list[tuple[str, int, int, int, dict[str, Any]]] = [
    ("LayerNormalization", F32, 3, 1, {}),
    ("LayerNormalization", F32, 2, 3, {"axis": 1, "epsilon": 1e-3}),
    ("LayerNormalization", F32, 3, 1, {"axis": 0}),
    ("LayerNormalization", F16, 3, 3, {"axis": -1, "stash_type": 1}),
    ("LayerNormalization", BF16, 3, 1, {"axis": -2}),
    ("RMSNormalization", F32, 2, 1, {"axis": -1}),
    ("RMSNormalization", F16, 2, 1, {"axis": 1, "epsilon": 1e-3}),
    ("Softmax", F32, 1, 1, {"axis": -1}),
    ("Softmax", F16, 1, 1, {"axis": 1}),
    ("LogSoftmax", F32, 1, 1, {}),
    ("InstanceNormalization", F32, 3, 1, {}),
    ("GroupNormalization", F32, 3, 1, {"num_groups": 6}),
    ("MeanVarianceNormalization", F32, 1, 1, {"axes": [2]}),
]
TOLERANCE = {F32: 2e-6, F16: 2e-3, BF16: 1.6e-2}


def parameter_shape(operator: str, axis: int, shape: Sequence[Any]) -> list[Any]:
    return (
        [shape[1]]
        if operator in ("InstanceNormalization", "GroupNormalization")
        else [*shape[axis:]]
    )


def onnx_model(known: str) -> Any:
    nodes, inputs, outputs = [], [], []
    for number, (operator, kind, operands, results, attributes) in enumerate(NODES):
        shape = [None if dim in SIZES[known] else size for dim, size in enumerate(SHAPE)]
        if operator == "GroupNormalization":
            # Groups of one channel.
            shape[1] = SHAPE[1]
        axis = attributes.get("axis", -1) % 3
        of_parameters = parameter_shape(operator, axis, shape)
        names = [f"{name}{number}" for name in "xwb"[:operands]]
        found = [f"{name}{number}" for name in "ymf"[:results]]
        nodes.append(helper.make_node(operator, names, found, **attributes))
        inputs += [helper.make_tensor_value_info(name, kind, shape if name[0] == "x" else of_parameters)
                   for name in names]  # fmt: skip
        of_rows = [*shape[:axis], *[1] * (3 - axis)]
        outputs += [helper.make_tensor_value_info(name, *((kind, shape) if name[0] == "y" else (F32, of_rows)))
                    for name in found]  # fmt: skip
    graph = helper.make_graph(nodes, "model", inputs, outputs)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 23)], ir_version=10)


def exact_onnx(
    operator: str, attributes: dict[str, Any], x: Array, *parameters: Array
) -> list[Array]:
    """The results of a node in f64."""
    axes = tuple(range(attributes.get("axis", -1) % 3, 3))
    if operator.endswith("Softmax"):
        e = np.exp(x - x.max(axes[0], keepdims=True))
        y = e / e.sum(axes[0], keepdims=True)
        return [np.log(y) if operator == "LogSoftmax" else y]
    if operator in ("InstanceNormalization", "GroupNormalization", "MeanVarianceNormalization"):
        axes = (2,)
        parameters = tuple(parameter[:, None] for parameter in parameters)
    mean = x.mean(axes, keepdims=True) * (operator != "RMSNormalization")
    epsilon = attributes.get("epsilon", 0 if operator == "MeanVarianceNormalization" else 1e-5)
    factor = 1 / np.sqrt(((x - mean) ** 2).mean(axes, keepdims=True) + epsilon)
    y = (x - mean) * factor
    for parameter, update in zip(parameters, (np.multiply, np.add)):
        y = update(y, parameter)
    return [y, mean, factor]


@pytest.mark.parametrize("known", SIZES)
def test_onnx(known: str) -> None:
    """Unknown sizes lack names, so sizes of parameters are not known to be sizes of rows."""
    function = compile_norms(import_proto(onnx_model(known)).text, len(NODES))
    rng = np.random.default_rng()
    for shape in CALLS[known]:
        arguments: list[list[Array]] = []
        for operator, kind, operands, _, attributes in NODES:
            axis = attributes.get("axis", -1) % 3
            shapes = [shape, *[parameter_shape(operator, axis, shape)] * (operands - 1)]
            dtype = helper.tensor_dtype_to_np_dtype(kind)
            arguments.append([rng.standard_normal(own).astype(dtype) for own in shapes])
        results = iter(function(*(array for own in arguments for array in own)))
        for (operator, kind, _, count, attributes), own in zip(NODES, arguments):
            exact = exact_onnx(operator, attributes, *(array.astype(np.float64) for array in own))
            for wanted, _ in zip(exact, range(count)):
                check(next(results), wanted, f"{operator} {attributes} {shape}", TOLERANCE[kind])


def test_onnx_parameters_of_other_sizes() -> None:
    """A scale of another length than rows is refused at the call, with the node and both sizes."""
    shapes = {"x": [None, None], "w": [None]}
    inputs = [helper.make_tensor_value_info(name, F32, shape) for name, shape in shapes.items()]
    outputs = [helper.make_tensor_value_info("y", F32, shapes["x"])]
    for operator in ("LayerNormalization", "RMSNormalization"):
        graph = helper.make_graph(
            [helper.make_node(operator, ["x", "w"], ["y"])], "model", inputs, outputs
        )
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 23)], ir_version=10)
        function = compile_norms(import_proto(model).text, 1)
        x = np.ones((3, 8), np.float32)
        function(x, np.ones(8, np.float32))
        for length in (1, 9):
            with pytest.raises(
                ftuner.Error, match="expected input 1 to have as many elements in dimension 0"
            ):
                function(x, np.ones(length, np.float32))


# Linalg.

LINALG = """
#all = affine_map<(d0, d1) -> (d0, d1)>
#keep = affine_map<(d0, d1) -> (d0, 0)>
#row = affine_map<(d0, d1) -> (d0)>
#col = affine_map<(d0, d1) -> (d1)>
func.func @main(%x: tensor<BxSxCxf32>, %w: tensor<Cxf32>) -> tensor<BxSxCxf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %zero = arith.constant 0.0 : f32
  %eps = arith.constant 1.0e-5 : f32
  %b = tensor.dim %x, %c0 : tensor<BxSxCxf32>
  %s = tensor.dim %x, %c1 : tensor<BxSxCxf32>
  %c = tensor.dim %x, %c2 : tensor<BxSxCxf32>
  %m = arith.muli %b, %s : index
  %length = arith.index_cast %c : index to i32
  %count = arith.sitofp %length : i32 to f32
BODY
}
"""

#: Rows of a matrix, statistics with a unit dimension that reshapes add and remove.
RESHAPED = """
  %flat = tensor.collapse_shape %x [[0, 1], [2]] : tensor<BxSxCxf32> into tensor<MxCxf32>
  %e = tensor.empty(M, C) : tensor<MxCxf32>
  %e1 = tensor.empty(M) : tensor<Mxf32>
  %k1 = tensor.empty(M) : tensor<Mx1xf32>
  %start = linalg.fill ins(%zero : f32) outs(%e1 : tensor<Mxf32>) -> tensor<Mxf32>
  %sum = linalg.generic {indexing_maps = [#all, #row], iterator_types = ["parallel", "reduction"]}
      ins(%flat : tensor<MxCxf32>) outs(%start : tensor<Mxf32>) {
  ^bb0(%v: f32, %acc: f32):
    %n = arith.addf %v, %acc : f32
    linalg.yield %n : f32
  } -> tensor<Mxf32>
  %sums = tensor.expand_shape %sum [[0, 1]] output_shape [M, 1] : tensor<Mxf32> into tensor<Mx1xf32>
  %mean = linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel"]}
      ins(%sums : tensor<Mx1xf32>) outs(%k1 : tensor<Mx1xf32>) {
  ^bb0(%v: f32, %o: f32):
    %n = arith.divf %v, %count : f32
    linalg.yield %n : f32
  } -> tensor<Mx1xf32>
  %centered = linalg.generic {indexing_maps = [#all, #keep, #all], iterator_types = ["parallel", "parallel"]}
      ins(%flat, %mean : tensor<MxCxf32>, tensor<Mx1xf32>) outs(%e : tensor<MxCxf32>) {
  ^bb0(%v: f32, %u: f32, %o: f32):
    %n = arith.subf %v, %u : f32
    linalg.yield %n : f32
  } -> tensor<MxCxf32>
  %keeps = linalg.fill ins(%zero : f32) outs(%k1 : tensor<Mx1xf32>) -> tensor<Mx1xf32>
  %squares = linalg.generic {indexing_maps = [#all, #keep], iterator_types = ["parallel", "reduction"]}
      ins(%centered : tensor<MxCxf32>) outs(%keeps : tensor<Mx1xf32>) {
  ^bb0(%v: f32, %acc: f32):
    %q = arith.mulf %v, %v : f32
    %n = arith.addf %q, %acc : f32
    linalg.yield %n : f32
  } -> tensor<Mx1xf32>
  %variance = tensor.collapse_shape %squares [[0, 1]] : tensor<Mx1xf32> into tensor<Mxf32>
  %y = linalg.generic {indexing_maps = [#all, #row, #col, #all], iterator_types = ["parallel", "parallel"]}
      ins(%centered, %variance, %w : tensor<MxCxf32>, tensor<Mxf32>, tensor<Cxf32>) outs(%e : tensor<MxCxf32>) {
  ^bb0(%v: f32, %q: f32, %g: f32, %o: f32):
    %u = arith.divf %q, %count : f32
    %t = arith.addf %u, %eps : f32
    %r = math.rsqrt %t : f32
    %n = arith.mulf %v, %r : f32
    %z = arith.mulf %n, %g : f32
    linalg.yield %z : f32
  } -> tensor<MxCxf32>
  %out = tensor.expand_shape %y [[0, 1], [2]] output_shape [B, S, C] : tensor<MxCxf32> into tensor<BxSxCxf32>
  return %out : tensor<BxSxCxf32>
"""

#: Named operators, with statistics that are broadcast to all elements.
BROADCAST = """
  %e = tensor.empty(B, S, C) : tensor<BxSxCxf32>
  %e1 = tensor.empty(B, S) : tensor<BxSxf32>
  %start = linalg.fill ins(%zero : f32) outs(%e1 : tensor<BxSxf32>) -> tensor<BxSxf32>
  %counts = linalg.fill ins(%count : f32) outs(%e1 : tensor<BxSxf32>) -> tensor<BxSxf32>
  %epsilons = linalg.fill ins(%eps : f32) outs(%e1 : tensor<BxSxf32>) -> tensor<BxSxf32>
  %sum = linalg.reduce { arith.addf } ins(%x : tensor<BxSxCxf32>) outs(%start : tensor<BxSxf32>) dimensions = [2]
  %mean = linalg.div ins(%sum, %counts : tensor<BxSxf32>, tensor<BxSxf32>) outs(%e1 : tensor<BxSxf32>) -> tensor<BxSxf32>
  %means = linalg.broadcast ins(%mean : tensor<BxSxf32>) outs(%e : tensor<BxSxCxf32>) dimensions = [2]
  %centered = linalg.sub ins(%x, %means : tensor<BxSxCxf32>, tensor<BxSxCxf32>) outs(%e : tensor<BxSxCxf32>) -> tensor<BxSxCxf32>
  %squares = linalg.square ins(%centered : tensor<BxSxCxf32>) outs(%e : tensor<BxSxCxf32>) -> tensor<BxSxCxf32>
  %power = linalg.reduce { arith.addf } ins(%squares : tensor<BxSxCxf32>) outs(%start : tensor<BxSxf32>) dimensions = [2]
  %variance = linalg.div ins(%power, %counts : tensor<BxSxf32>, tensor<BxSxf32>) outs(%e1 : tensor<BxSxf32>) -> tensor<BxSxf32>
  %shifted = linalg.add ins(%variance, %epsilons : tensor<BxSxf32>, tensor<BxSxf32>) outs(%e1 : tensor<BxSxf32>) -> tensor<BxSxf32>
  %factor = linalg.rsqrt ins(%shifted : tensor<BxSxf32>) outs(%e1 : tensor<BxSxf32>) -> tensor<BxSxf32>
  %factors = linalg.broadcast ins(%factor : tensor<BxSxf32>) outs(%e : tensor<BxSxCxf32>) dimensions = [2]
  %scales = linalg.broadcast ins(%w : tensor<Cxf32>) outs(%e : tensor<BxSxCxf32>) dimensions = [0, 1]
  %normal = linalg.mul ins(%centered, %factors : tensor<BxSxCxf32>, tensor<BxSxCxf32>) outs(%e : tensor<BxSxCxf32>) -> tensor<BxSxCxf32>
  %out = linalg.mul ins(%normal, %scales : tensor<BxSxCxf32>, tensor<BxSxCxf32>) outs(%e : tensor<BxSxCxf32>) -> tensor<BxSxCxf32>
  return %out : tensor<BxSxCxf32>
"""


def linalg_of(body: str, known: str) -> str:
    """The text with types, operands and shapes of the sizes that are known."""
    sizes = {name: None if dim in SIZES[known] else SHAPE[dim] for dim, name in enumerate("BSC")}
    sizes["M"] = None if known != "known" else SHAPE[0] * SHAPE[1]

    def type_of(match: re.Match[str]) -> str:
        return "x".join(str(sizes.get(dim, dim) or "?") for dim in match[0].split("x"))

    def dynamic(match: re.Match[str]) -> str:
        return ", ".join(f"%{name.lower()}" for name in match[0].split(", ") if sizes[name] is None)

    def shape(match: re.Match[str]) -> str:
        return ", ".join(
            str(sizes.get(name, name) or f"%{name.lower()}") for name in match[0].split(", ")
        )

    text = LINALG.replace("BODY", body)
    for place, replacement in ((r"(?<=tensor<)[^>]*", type_of), (r"(?<=empty\()[^)]*", dynamic),
                               (r"(?<=output_shape \[)[^]]*", shape)):  # fmt: skip
        text = re.sub(place, replacement, text)
    return text


@pytest.mark.parametrize("known", SIZES)
@pytest.mark.parametrize("body", [RESHAPED, BROADCAST], ids=["reshaped", "broadcast"])
def test_linalg(body: str, known: str) -> None:
    function = compile_norms(linalg_of(body, known), 1)
    for shape in CALLS[known]:
        x, w = torch.randn(*shape), torch.randn(shape[-1])
        check(function(x.numpy(), w.numpy()), by_mean(x.double(), w.double()).numpy(), f"{shape}")
