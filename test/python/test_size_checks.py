"""Claims of a program about sizes are checked when it runs: a wrong claim is an error with its place, its
operand and the sizes, never a read or write outside of a tensor.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ftuner

# Each function claims more than it knows: %n is a claim of the caller, %d of the program.
CLAIMS = """
#id = affine_map<(i, j) -> (i, j)>
func.func @cast(%x: tensor<?x?xf32>) -> tensor<?x4xf32> {
  %c = tensor.cast %x : tensor<?x?xf32> to tensor<?x4xf32> loc("Reshape 7")
  return %c : tensor<?x4xf32>
}
func.func @cast_and_scale(%x: tensor<?x?xf32>) -> tensor<?x4xf32> {
  %c0 = arith.constant 0 : index
  %d = tensor.dim %x, %c0 : tensor<?x?xf32>
  %c = tensor.cast %x : tensor<?x?xf32> to tensor<?x4xf32> loc("Reshape 7")
  %e = tensor.empty(%d) : tensor<?x4xf32>
  %r = linalg.add ins(%c, %c : tensor<?x4xf32>, tensor<?x4xf32>) outs(%e : tensor<?x4xf32>) -> tensor<?x4xf32>
  return %r : tensor<?x4xf32>
}
func.func @split(%x: tensor<?xf32>, %n: index) -> tensor<?x4xf32> {
  %r = tensor.expand_shape %x [[0, 1]] output_shape [%n, 4] : tensor<?xf32> into tensor<?x4xf32> loc("View 3")
  return %r : tensor<?x4xf32>
}
func.func @split_and_scale(%x: tensor<?xf32>, %n: index) -> tensor<?x4xf32> {
  %v = tensor.expand_shape %x [[0, 1]] output_shape [%n, 4] : tensor<?xf32> into tensor<?x4xf32> loc("View 3")
  %e = tensor.empty(%n) : tensor<?x4xf32>
  %r = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%v : tensor<?x4xf32>) outs(%e : tensor<?x4xf32>) {
  ^bb0(%a: f32, %o: f32):
    %s = arith.addf %a, %a : f32
    linalg.yield %s : f32
  } -> tensor<?x4xf32> loc("Add 4")
  return %r : tensor<?x4xf32>
}
func.func @split_and_multiply(%x: tensor<?xf32>, %w: tensor<4x8xf32>, %n: index) -> tensor<?x8xf32> {
  %zero = arith.constant 0.0 : f32
  %v = tensor.expand_shape %x [[0, 1]] output_shape [%n, 4] : tensor<?xf32> into tensor<?x4xf32> loc("View 3")
  %e = tensor.empty(%n) : tensor<?x8xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<?x8xf32>) -> tensor<?x8xf32>
  %r = linalg.matmul ins(%v, %w : tensor<?x4xf32>, tensor<4x8xf32>) outs(%f : tensor<?x8xf32>) -> tensor<?x8xf32> loc("Gemm 5")
  return %r : tensor<?x8xf32>
}
func.func @regroup(%x: tensor<?x?xf32>, %n: index) -> tensor<?x4xf32> {
  %c = tensor.collapse_shape %x [[0, 1]] : tensor<?x?xf32> into tensor<?xf32>
  %r = tensor.expand_shape %c [[0, 1]] output_shape [%n, 4] : tensor<?xf32> into tensor<?x4xf32> loc("View 3")
  return %r : tensor<?x4xf32>
}
func.func @slice(%x: tensor<?xf32>, %first: index, %n: index) -> tensor<?xf32> {
  %r = tensor.extract_slice %x[%first] [%n] [1] : tensor<?xf32> to tensor<?xf32> loc("Slice 2")
  return %r : tensor<?xf32>
}
func.func @insert(%x: tensor<?xf32>, %y: tensor<?xf32>, %first: index) -> tensor<?xf32> {
  %c0 = arith.constant 0 : index
  %d = tensor.dim %x, %c0 : tensor<?xf32>
  %r = tensor.insert_slice %x into %y[%first] [%d] [1] : tensor<?xf32> into tensor<?xf32> loc("Insert 2")
  return %r : tensor<?xf32>
}
func.func @longer(%x: tensor<?xf32>, %n: index) -> tensor<?xf32> {
  %e = tensor.empty(%n) : tensor<?xf32>
  %r = linalg.exp ins(%x : tensor<?xf32>) outs(%e : tensor<?xf32>) -> tensor<?xf32> loc("Exp 1")
  return %r : tensor<?xf32>
}
func.func @sum(%x: tensor<?x3xf32>, %y: tensor<?x3xf32>) -> tensor<?x3xf32> {
  %c0 = arith.constant 0 : index
  %a = tensor.dim %x, %c0 : tensor<?x3xf32>
  %b = tensor.dim %y, %c0 : tensor<?x3xf32>
  %same = arith.cmpi eq, %a, %b : index
  cf.assert %same, "mismatched size for broadcast" loc("Add 0")
  %e = tensor.empty(%a) : tensor<?x3xf32>
  %r = linalg.add ins(%x, %y : tensor<?x3xf32>, tensor<?x3xf32>) outs(%e : tensor<?x3xf32>) -> tensor<?x3xf32>
  return %r : tensor<?x3xf32>
}
func.func @told(%x: tensor<?xf32>, %y: tensor<?xf32>) -> tensor<?xf32> {
  %c0 = arith.constant 0 : index
  %c4 = arith.constant 4 : i64
  %a = tensor.dim %x, %c0 : tensor<?xf32>
  %b = tensor.dim %y, %c0 : tensor<?xf32>
  %i = arith.index_cast %a : index to i64
  %j = arith.index_cast %b : index to i64
  %t = arith.muli %i, %c4 : i64
  %same = arith.cmpi eq, %j, %t : i64
  %some = arith.cmpi sgt, %j, %c4 : i64
  %both = arith.andi %same, %some : i1
  cf.assert %both, "y must be four times x: {1}, not {0}"
  %e = tensor.empty(%b) : tensor<?xf32>
  %r = linalg.exp ins(%y : tensor<?xf32>) outs(%e : tensor<?xf32>) -> tensor<?xf32>
  return %r : tensor<?xf32>
}
"""


@pytest.fixture(scope="module")
def module(tmp_path_factory: pytest.TempPathFactory) -> ftuner.Module:
    path: Path = tmp_path_factory.mktemp("claims") / "claims.mlir"
    path.write_text(CLAIMS)
    return ftuner.compile(path, emulate=True, cache=False, max_kernels=1)


def numbers(*shape: int) -> Any:
    return np.random.default_rng().standard_normal(shape, np.float32)


def test_true_claims(module: ftuner.Module) -> None:
    """Nothing is refused that fits, sizes of 0 and 1 included."""
    for rows in (0, 1, 5):
        x = numbers(rows, 4)
        flat, w = x.reshape(-1), numbers(4, 8)
        np.testing.assert_array_equal(module["cast"](x), x)
        np.testing.assert_allclose(module["cast_and_scale"](x), x + x)
        np.testing.assert_array_equal(module["split"](flat, rows), x)
        np.testing.assert_allclose(module["split_and_scale"](flat, rows), x + x)
        np.testing.assert_allclose(
            module["split_and_multiply"](flat, w, rows), x.astype(float) @ w, rtol=1e-4, atol=1e-5
        )
        np.testing.assert_array_equal(module["regroup"](numbers(0, 3), 0), numbers(0, 4))
        np.testing.assert_array_equal(module["slice"](flat, 0, 4 * rows), flat)
        np.testing.assert_array_equal(module["insert"](flat, flat + 1, 0), flat)
        np.testing.assert_allclose(module["longer"](flat, 4 * rows), np.exp(flat), rtol=1e-5)
    y = numbers(6, 2)
    np.testing.assert_array_equal(module["regroup"](y, 3), y.reshape(3, 4))


@pytest.mark.parametrize(
    ("name", "args", "message"),
    [
        ("cast", [(3, 5)],
         "cast: Reshape 7: expected size 4 of dimension 1, but got 5 (dimension 1 of argument 'x')"),
        ("cast", [(3, 3)],
         "Reshape 7: expected size 4 of dimension 1, but got 3 (dimension 1 of argument 'x')"),
        ("cast_and_scale", [(3, 3)],
         "Reshape 7: expected size 4 of dimension 1, but got 3 (dimension 1 of argument 'x')"),
        ("split", [(8,), 3], "expected a reshape to keep the number of elements: dimension 0 of argument 'x' is 8, but the sizes it is split into make 12"),
        ("split", [(9,), 2], "is 9, but the sizes it is split into make 8"),
        ("split", [(8,), -2], "a size is negative|of at least 0, but got -2|size of .* negative"),
        ("split_and_scale", [(8,), 3], "8.*(12|3)|(12|3).*8"),
        ("split_and_scale", [(9,), 2], "9.*8|8.*9"),
        ("split_and_multiply", [(8,), (4, 8), 3], "8.*(12|3)|(12|3).*8|2.*3|3.*2"),
        ("split_and_multiply", [(9,), (4, 8), 2], "9.*8|8.*9"),
        ("regroup", [(3, 3), 3], "9.*12|12.*9"),
        ("regroup", [(3, 3), 2], "9.*8|8.*9"),
        ("slice", [(8,), 5, 4], "Slice 2: expected a slice to lie inside its buffer: dimension 0 of argument 'x' is 8, but the slice has 4 from 5 on"),
        ("slice", [(8,), -1, 4], "is 8, but the slice has 4 from -1 on"),
        ("insert", [(4,), (6,), 3], "is 6, but the slice has 4 from 3 on"),
        ("longer", [(4,), 6], "Exp 1: expected dimension 0 of the output to equal dimension 0 of argument 'x' in an elementwise operator, but got 6 .* and 4"),
        ("sum", [(4, 3), (1, 3)],
         "sum: Add 0: mismatched size for broadcast, but got 4 (dimension 0 of argument 'x') and 1 (dimension 0 of argument 'y')"),
        ("told", [(3,), (11,)], "claims.mlir:NN: y must be four times x: 12, not 11"),
        ("told", [(1,), (4,)], "claims.mlir:NN: y must be four times x: 4, not 4"),
    ],
)  # fmt: skip
def test_wrong_claims(module: ftuner.Module, name: str, args: list[Any], message: str) -> None:
    values = [numbers(*arg) if isinstance(arg, tuple) else arg for arg in args]
    pattern = message if "|" in message or ".*" in message else re.escape(message)
    with pytest.raises(ftuner.Error, match=pattern.replace("NN", r"\d+:\d+")) as error:
        module[name](*values)
    assert "linalg" not in str(error.value) and "tensor." not in str(error.value)
