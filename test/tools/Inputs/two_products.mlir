// Products of other sizes: T rows, and fixed ones of few columns.
module attributes {ukernel.symbols = {T = #ukernel.range<1 to 128>}} {
  func.func @both(%x: tensor<?x64xf32> {ukernel.shape = ["T", 64]}, %w: tensor<64x64xf32>,
                  %y: tensor<2x64xf32>, %v: tensor<64x4xf32>) -> (tensor<?x64xf32>, tensor<2x4xf32>) {
    %c0 = arith.constant 0 : index
    %zero = arith.constant 0.0 : f32
    %t = tensor.dim %x, %c0 : tensor<?x64xf32>
    %empty = tensor.empty(%t) : tensor<?x64xf32>
    %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<?x64xf32>) -> tensor<?x64xf32>
    %first = linalg.matmul ins(%x, %w : tensor<?x64xf32>, tensor<64x64xf32>)
                           outs(%init : tensor<?x64xf32>) -> tensor<?x64xf32>
    %few = tensor.empty() : tensor<2x4xf32>
    %start = linalg.fill ins(%zero : f32) outs(%few : tensor<2x4xf32>) -> tensor<2x4xf32>
    %second = linalg.matmul ins(%y, %v : tensor<2x64xf32>, tensor<64x4xf32>)
                            outs(%start : tensor<2x4xf32>) -> tensor<2x4xf32>
    return %first, %second : tensor<?x64xf32>, tensor<2x4xf32>
  }
}
