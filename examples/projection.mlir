// Up projection of a language model in half precision for T tokens:
// O = X · Wᵀ, X: T × 4096, W: 11008 × 4096, as PyTorch stores weights; sums in f32.
module attributes {ukernel.symbols = {T = #ukernel.range<1 to 4096>}} {
  func.func @projection(%x: tensor<?x4096xf16> {ukernel.shape = ["T", 4096]},
                        %w: tensor<11008x4096xf16>) -> tensor<?x11008xf16> {
    %c0 = arith.constant 0 : index
    %zero = arith.constant 0.0 : f16
    %t = tensor.dim %x, %c0 : tensor<?x4096xf16>
    %empty = tensor.empty(%t) : tensor<?x11008xf16>
    %init = linalg.fill ins(%zero : f16) outs(%empty : tensor<?x11008xf16>) -> tensor<?x11008xf16>
    %result = linalg.matmul
        indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>,
                         affine_map<(m, n, k) -> (m, n)>]
        ins(%x, %w : tensor<?x4096xf16>, tensor<11008x4096xf16>)
        outs(%init : tensor<?x11008xf16>) -> tensor<?x11008xf16>
    return %result : tensor<?x11008xf16>
  }
}
