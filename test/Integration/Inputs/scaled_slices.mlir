// Few columns and a long k: slices of k, with a factor that is scaled.
module attributes {ukernel.symbols = {M = #ukernel.range<1 to 8192>}} {
  func.func @f(%a0: tensor<3x?x4096xf32> {ukernel.shape = [3, "M", 4096]}, %a1: tensor<3x64x4096xf32>, %a2: f32, %a3: tensor<?x3x64xf32> {ukernel.shape = ["M", 3, 64]}, %a4: f32) -> (tensor<?x3x64xf32>) {
    %v1 = tensor.empty() : tensor<3x64x4096xf32>
    %v2 = linalg.generic {indexing_maps = [affine_map<(b, n, k) -> (b, n, k)>, affine_map<(b, n, k) -> (b, n, k)>], iterator_types = ["parallel", "parallel", "parallel"]} ins(%a1 : tensor<3x64x4096xf32>) outs(%v1 : tensor<3x64x4096xf32>) {
    ^bb0(%i0: f32, %o: f32):
      %y = arith.mulf %i0, %a2 : f32
      linalg.yield %y : f32
    } -> tensor<3x64x4096xf32>
    %v3 = linalg.contract indexing_maps = [affine_map<(b, m, n, k) -> (b, m, k)>, affine_map<(b, m, n, k) -> (b, n, k)>, affine_map<(b, m, n, k) -> (m, b, n)>] ins(%a0, %v2 : tensor<3x?x4096xf32>, tensor<3x64x4096xf32>) outs(%a3 : tensor<?x3x64xf32>) -> tensor<?x3x64xf32>
    %v4 = arith.constant 1 : index
    %v5 = tensor.dim %a0, %v4 : tensor<3x?x4096xf32>
    %v6 = tensor.empty(%v5) : tensor<?x3x64xf32>
    %v7 = linalg.generic {indexing_maps = [affine_map<(m, b, n) -> (m, b, n)>, affine_map<(m, b, n) -> (m, b, n)>], iterator_types = ["parallel", "parallel", "parallel"]} ins(%v3 : tensor<?x3x64xf32>) outs(%v6 : tensor<?x3x64xf32>) {
    ^bb0(%i0: f32, %o: f32):
      %t0 = arith.mulf %i0, %a4 : f32
      linalg.yield %t0 : f32
    } -> tensor<?x3x64xf32>
    return %v7 : tensor<?x3x64xf32>
  }
}
