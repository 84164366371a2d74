// Products whose axes are symbols, multiples of one, and without a name.
module attributes {ukernel.symbols = {T = #ukernel.range<1 to 64>, N = #ukernel.range<8 to 512>}} {
  // M = 4 · T after the collapse, N = N.
  func.func @tokens(%a: tensor<?x4x32xf32> {ukernel.shape = ["T", 4, 32]},
                    %b: tensor<32x?xf32> {ukernel.shape = [32, "N"]}) -> tensor<?x?xf32> {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c4 = arith.constant 4 : index
    %zero = arith.constant 0.0 : f32
    %t = tensor.dim %a, %c0 : tensor<?x4x32xf32>
    %n = tensor.dim %b, %c1 : tensor<32x?xf32>
    %m = arith.muli %t, %c4 : index
    %rows = tensor.collapse_shape %a [[0, 1], [2]] : tensor<?x4x32xf32> into tensor<?x32xf32>
    %empty = tensor.empty(%m, %n) : tensor<?x?xf32>
    %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<?x?xf32>) -> tensor<?x?xf32>
    %result = linalg.matmul ins(%rows, %b : tensor<?x32xf32>, tensor<32x?xf32>)
                            outs(%init : tensor<?x?xf32>) -> tensor<?x?xf32>
    return %result : tensor<?x?xf32>
  }

  // M = N = T: one size.
  func.func @square(%a: tensor<?x32xf32> {ukernel.shape = ["T", 32]},
                    %b: tensor<32x?xf32> {ukernel.shape = [32, "T"]}) -> tensor<?x?xf32> {
    %c0 = arith.constant 0 : index
    %zero = arith.constant 0.0 : f32
    %t = tensor.dim %a, %c0 : tensor<?x32xf32>
    %empty = tensor.empty(%t, %t) : tensor<?x?xf32>
    %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<?x?xf32>) -> tensor<?x?xf32>
    %result = linalg.matmul ins(%a, %b : tensor<?x32xf32>, tensor<32x?xf32>)
                            outs(%init : tensor<?x?xf32>) -> tensor<?x?xf32>
    return %result : tensor<?x?xf32>
  }

  // No symbols: M and K have their own names.
  func.func @plain(%a: tensor<?x?xf32>, %b: tensor<?x48xf32>) -> tensor<?x48xf32> {
    %c0 = arith.constant 0 : index
    %zero = arith.constant 0.0 : f32
    %m = tensor.dim %a, %c0 : tensor<?x?xf32>
    %empty = tensor.empty(%m) : tensor<?x48xf32>
    %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<?x48xf32>) -> tensor<?x48xf32>
    %result = linalg.matmul ins(%a, %b : tensor<?x?xf32>, tensor<?x48xf32>)
                            outs(%init : tensor<?x48xf32>) -> tensor<?x48xf32>
    return %result : tensor<?x48xf32>
  }
}
