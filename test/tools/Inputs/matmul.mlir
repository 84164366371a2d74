// C = A · B, A: M × 40, B: 40 × 48.
module attributes {ukernel.symbols = {M = #ukernel.range<1 to 64>}} {
  func.func @matmul(%a: tensor<?x40xf32> {ukernel.shape = ["M", 40]},
                    %b: tensor<40x48xf32>) -> tensor<?x48xf32> {
    %c0 = arith.constant 0 : index
    %zero = arith.constant 0.0 : f32
    %m = tensor.dim %a, %c0 : tensor<?x40xf32>
    %empty = tensor.empty(%m) : tensor<?x48xf32>
    %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<?x48xf32>) -> tensor<?x48xf32>
    %result = linalg.matmul ins(%a, %b : tensor<?x40xf32>, tensor<40x48xf32>)
                            outs(%init : tensor<?x48xf32>) -> tensor<?x48xf32>
    return %result : tensor<?x48xf32>
  }
}
