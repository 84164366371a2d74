// The products of a layer of Llama-3-8B, for sequences of T tokens, in f16.
module attributes {ukernel.symbols = {T = #ukernel.range<1 to 128>}} {
  func.func @layer(%x: tensor<?x4096xf16> {ukernel.shape = ["T", 4096]}, %h: tensor<?x14336xf16> {ukernel.shape = ["T", 14336]},
                   %qkv: tensor<4096x6144xf16>, %o: tensor<4096x4096xf16>, %up: tensor<4096x28672xf16>, %down: tensor<14336x4096xf16>)
      -> (tensor<?x6144xf32>, tensor<?x4096xf32>, tensor<?x28672xf32>, tensor<?x4096xf32>) {
    %c0 = arith.constant 0 : index
    %zero = arith.constant 0.0 : f32
    %t = tensor.dim %x, %c0 : tensor<?x4096xf16>
    %e0 = tensor.empty(%t) : tensor<?x6144xf32>
    %i0 = linalg.fill ins(%zero : f32) outs(%e0 : tensor<?x6144xf32>) -> tensor<?x6144xf32>
    %r0 = linalg.matmul ins(%x, %qkv : tensor<?x4096xf16>, tensor<4096x6144xf16>) outs(%i0 : tensor<?x6144xf32>) -> tensor<?x6144xf32>
    %e1 = tensor.empty(%t) : tensor<?x4096xf32>
    %i1 = linalg.fill ins(%zero : f32) outs(%e1 : tensor<?x4096xf32>) -> tensor<?x4096xf32>
    %r1 = linalg.matmul ins(%x, %o : tensor<?x4096xf16>, tensor<4096x4096xf16>) outs(%i1 : tensor<?x4096xf32>) -> tensor<?x4096xf32>
    %e2 = tensor.empty(%t) : tensor<?x28672xf32>
    %i2 = linalg.fill ins(%zero : f32) outs(%e2 : tensor<?x28672xf32>) -> tensor<?x28672xf32>
    %r2 = linalg.matmul ins(%x, %up : tensor<?x4096xf16>, tensor<4096x28672xf16>) outs(%i2 : tensor<?x28672xf32>) -> tensor<?x28672xf32>
    %e3 = tensor.empty(%t) : tensor<?x4096xf32>
    %i3 = linalg.fill ins(%zero : f32) outs(%e3 : tensor<?x4096xf32>) -> tensor<?x4096xf32>
    %r3 = linalg.matmul ins(%h, %down : tensor<?x14336xf16>, tensor<14336x4096xf16>) outs(%i3 : tensor<?x4096xf32>) -> tensor<?x4096xf32>
    return %r0, %r1, %r2, %r3 : tensor<?x6144xf32>, tensor<?x4096xf32>, tensor<?x28672xf32>, tensor<?x4096xf32>
  }
}
