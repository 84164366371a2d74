"""The text of functions."""

from __future__ import annotations

import math
import struct

import pytest

from ftuner.frontend.torch.regions.linalg import Instruction, Range, format_constant
from product_functions import product_function


@pytest.mark.parametrize("value", [0.0, 1.0, -0.1, math.pi, 1e-45, 3.4028234663852886e38, 1e-7])
def test_constants_are_exact(value: float) -> None:
    rounded = struct.unpack("<f", struct.pack("<f", value))[0]
    parsed = struct.unpack("<f", struct.pack("<f", float(format_constant(value))))[0]
    assert parsed == rounded


def test_constants_that_are_no_decimals() -> None:
    assert format_constant(math.inf) == "0x7F800000"
    assert format_constant(-math.inf) == "0xFF800000"
    assert format_constant(1e39) == "0x7F800000"
    assert int(format_constant(math.nan), 16) & 0x7FC00000 == 0x7FC00000


def test_text() -> None:
    function = product_function(
        name="addmm_relu",
        loops=("d0", 48, 32),
        lhs=(0, 2),
        rhs=(1, 2),
        extras=((1,),),
        num_scalars=1,
        epilogue=(
            Instruction("arith.addf", ("x0", "x1")),
            Instruction("arith.maximumf", ("v0", 0.0)),
            Instruction("arith.mulf", ("v1", "s0")),
        ),
        result="v2",
        symbols=(("d0", Range(2, None)),),
        types=("f32", "f32", "f32"),
        result_type="f32",
    )
    assert str(function) == _EXPECTED


_EXPECTED = """\
module attributes {ukernel.symbols = {d0 = #ukernel.range<2 to ?>}} {
  func.func @addmm_relu(
      %arg0: tensor<?x32xf32> {ukernel.shape = ["d0", 32]},
      %arg1: tensor<48x32xf32>,
      %arg2: tensor<48xf32>,
      %scalar0: f32) -> tensor<?x48xf32> {
    %c0 = arith.constant 0.000000000e+00 : f32
    %dim_d0 = arith.constant 0 : index
    %d0 = tensor.dim %arg0, %dim_d0 : tensor<?x32xf32>
    %empty0 = tensor.empty(%d0) : tensor<?x48xf32>
    %start0 = linalg.fill ins(%c0 : f32) outs(%empty0 : tensor<?x48xf32>) -> tensor<?x48xf32>
    %t0 = linalg.generic {
        indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d2)>,
                         affine_map<(d0, d1, d2) -> (d1, d2)>,
                         affine_map<(d0, d1, d2) -> (d0, d1)>],
        iterator_types = ["parallel", "parallel", "reduction"]}
        ins(%arg0, %arg1 : tensor<?x32xf32>, tensor<48x32xf32>)
        outs(%start0 : tensor<?x48xf32>) {
      ^bb0(%x0: f32, %x1: f32, %acc: f32):
        %v0 = arith.mulf %x0, %x1 : f32
        %joined = arith.addf %acc, %v0 : f32
        linalg.yield %joined : f32
    } -> tensor<?x48xf32>
    %t1 = linalg.generic {
        indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>,
                         affine_map<(d0, d1) -> (d1)>,
                         affine_map<(d0, d1) -> (d0, d1)>],
        iterator_types = ["parallel", "parallel"]}
        ins(%t0, %arg2 : tensor<?x48xf32>, tensor<48xf32>)
        outs(%empty0 : tensor<?x48xf32>) {
      ^bb0(%x0: f32, %x1: f32, %acc: f32):
        %v0 = arith.addf %x0, %x1 : f32
        %v1 = arith.maximumf %v0, %c0 : f32
        %v2 = arith.mulf %v1, %scalar0 : f32
        linalg.yield %v2 : f32
    } -> tensor<?x48xf32>
    return %t1 : tensor<?x48xf32>
  }
}
"""
