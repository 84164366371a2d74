"""Sources for tests: small, so that they compile in a second or two."""

MATMUL = """
module attributes {ukernel.symbols = {T = #ukernel.range<1 to 16>}} {
  func.func @matmul(%a: tensor<?x32xf32> {ukernel.shape = ["T", 32]}, %b: tensor<32x64xf32>)
      -> tensor<?x64xf32> {
    %c0 = arith.constant 0 : index
    %zero = arith.constant 0.0 : f32
    %t = tensor.dim %a, %c0 : tensor<?x32xf32>
    %empty = tensor.empty(%t) : tensor<?x64xf32>
    %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<?x64xf32>) -> tensor<?x64xf32>
    %r = linalg.matmul ins(%a, %b : tensor<?x32xf32>, tensor<32x64xf32>)
                       outs(%init : tensor<?x64xf32>) -> tensor<?x64xf32>
    return %r : tensor<?x64xf32>
  }
}
"""

# Two functions; one with several results and a scalar, and a name that C does not allow.
POINTWISE = """
#map = affine_map<(d0, d1) -> (d0, d1)>
func.func @"scaled-sum"(%a: tensor<?x?xf32> {ukernel.shape = ["M", "N"]},
                        %b: tensor<?x?xf32> {ukernel.shape = ["M", "N"]}, %s: f32)
    -> (tensor<?x?xf32>, tensor<?x?xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %m = tensor.dim %a, %c0 : tensor<?x?xf32>
  %n = tensor.dim %a, %c1 : tensor<?x?xf32>
  %e = tensor.empty(%m, %n) : tensor<?x?xf32>
  %r:2 = linalg.generic {indexing_maps = [#map, #map, #map, #map],
                         iterator_types = ["parallel", "parallel"]}
      ins(%a, %b : tensor<?x?xf32>, tensor<?x?xf32>)
      outs(%e, %e : tensor<?x?xf32>, tensor<?x?xf32>) {
    ^bb(%x: f32, %y: f32, %u: f32, %v: f32):
      %sum = arith.addf %x, %y : f32
      %scaled = arith.mulf %sum, %s : f32
      linalg.yield %sum, %scaled : f32, f32
  } -> (tensor<?x?xf32>, tensor<?x?xf32>)
  return %r#0, %r#1 : tensor<?x?xf32>, tensor<?x?xf32>
}
func.func @double_(%a: tensor<?xTYPE>) -> tensor<?xTYPE> {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %a, %c0 : tensor<?xTYPE>
  %e = tensor.empty(%n) : tensor<?xTYPE>
  %r = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>],
                       iterator_types = ["parallel"]}
      ins(%a : tensor<?xTYPE>) outs(%e : tensor<?xTYPE>) {
    ^bb(%x: TYPE, %y: TYPE):
      %sum = arith.ADD %x, %x : TYPE
      linalg.yield %sum : TYPE
  } -> tensor<?xTYPE>
  return %r : tensor<?xTYPE>
}
"""


def pointwise(type: str) -> str:
    """POINTWISE for a type of elements."""
    add = "addi" if type.startswith("i") else "addf"
    return POINTWISE.replace("TYPE", type).replace("ADD", add)
