// Dense layer of a transformer with bias and GELU, for sequences of T tokens:
// O = gelu(X · W + bias), X: T × 768, W: 768 × 2304.
module attributes {ukernel.symbols = {T = #ukernel.range<1 to 128>}} {
  func.func @dense(%x: tensor<?x768xf32> {ukernel.shape = ["T", 768]},
                   %w: tensor<768x2304xf32>,
                   %bias: tensor<2304xf32>) -> tensor<?x2304xf32> {
    %c0 = arith.constant 0 : index
    %zero = arith.constant 0.0 : f32
    %half = arith.constant 0.5 : f32
    %one = arith.constant 1.0 : f32
    %rsqrt2 = arith.constant 0.70710678118654752 : f32
    %t = tensor.dim %x, %c0 : tensor<?x768xf32>
    %empty = tensor.empty(%t) : tensor<?x2304xf32>
    %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<?x2304xf32>) -> tensor<?x2304xf32>
    %product = linalg.matmul ins(%x, %w : tensor<?x768xf32>, tensor<768x2304xf32>)
                             outs(%init : tensor<?x2304xf32>) -> tensor<?x2304xf32>
    %result = linalg.generic {
        indexing_maps = [affine_map<(m, n) -> (m, n)>, affine_map<(m, n) -> (n)>,
                         affine_map<(m, n) -> (m, n)>],
        iterator_types = ["parallel", "parallel"]}
        ins(%product, %bias : tensor<?x2304xf32>, tensor<2304xf32>)
        outs(%empty : tensor<?x2304xf32>) {
      ^bb0(%p: f32, %b: f32, %out: f32):
        %x0 = arith.addf %p, %b : f32
        %scaled = arith.mulf %x0, %rsqrt2 : f32
        %erf = math.erf %scaled : f32
        %shifted = arith.addf %erf, %one : f32
        %x1 = arith.mulf %x0, %half : f32
        %gelu = arith.mulf %x1, %shifted : f32
        linalg.yield %gelu : f32
    } -> tensor<?x2304xf32>
    return %result : tensor<?x2304xf32>
  }
}
