// Two factors across k, one rectified and one narrowed on the way.
module attributes {ukernel.symbols = {B = #ukernel.range<1 to 64>, C = #ukernel.range<1 to 64>, K = #ukernel.range<16 to 4096 step 16>, M = #ukernel.range<1 to 8192>, N = #ukernel.range<1 to 128>}} {
  func.func @f(%a0: tensor<?x?xbf16> {ukernel.shape = ["K", "M"]}, %a1: bf16, %a2: tensor<?x?xf32> {ukernel.shape = ["K", "N"]}, %a3: tensor<?x?xf32> {ukernel.shape = ["M", "N"]}) -> (tensor<?x?xf32>) {
    %v12 = arith.constant 0.0 : f32
    %v1 = arith.constant 0.0 : bf16
    %v2 = arith.constant 0 : index
    %v3 = tensor.dim %a0, %v2 : tensor<?x?xbf16>
    %v4 = arith.constant 1 : index
    %v5 = tensor.dim %a0, %v4 : tensor<?x?xbf16>
    %v6 = tensor.empty(%v3, %v5) : tensor<?x?xbf16>
    %v7 = linalg.generic {indexing_maps = [affine_map<(k, m) -> (k, m)>, affine_map<(k, m) -> (k, m)>], iterator_types = ["parallel", "parallel"]} ins(%a0 : tensor<?x?xbf16>) outs(%v6 : tensor<?x?xbf16>) {
    ^bb0(%i0: bf16, %o: bf16):
      %h = arith.addf %i0, %a1 : bf16
      %y = arith.maximumf %h, %v1 : bf16
      linalg.yield %y : bf16
    } -> tensor<?x?xbf16>
    %v8 = arith.constant 1 : index
    %v9 = tensor.dim %a2, %v8 : tensor<?x?xf32>
    %v10 = tensor.empty(%v3, %v9) : tensor<?x?xbf16>
    %v11 = linalg.generic {indexing_maps = [affine_map<(k, n) -> (k, n)>, affine_map<(k, n) -> (k, n)>], iterator_types = ["parallel", "parallel"]} ins(%a2 : tensor<?x?xf32>) outs(%v10 : tensor<?x?xbf16>) {
    ^bb0(%i0: f32, %o: bf16):
      %y = arith.truncf %i0 : f32 to bf16
      linalg.yield %y : bf16
    } -> tensor<?x?xbf16>
    %v13 = tensor.empty(%v5, %v9) : tensor<?x?xf32>
    %v14 = linalg.fill ins(%v12 : f32) outs(%v13 : tensor<?x?xf32>) -> tensor<?x?xf32>
    %v15 = linalg.contract indexing_maps = [affine_map<(m, n, k) -> (k, m)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>] ins(%v7, %v11 : tensor<?x?xbf16>, tensor<?x?xbf16>) outs(%v14 : tensor<?x?xf32>) -> tensor<?x?xf32>
    %v16 = tensor.empty(%v5, %v9) : tensor<?x?xf32>
    %v17 = linalg.generic {indexing_maps = [affine_map<(m, n) -> (m, n)>, affine_map<(m, n) -> (m, n)>, affine_map<(m, n) -> (m, n)>], iterator_types = ["parallel", "parallel"]} ins(%v15, %a3 : tensor<?x?xf32>, tensor<?x?xf32>) outs(%v16 : tensor<?x?xf32>) {
    ^bb0(%i0: f32, %i1: f32, %o: f32):
      %t0 = arith.mulf %i0, %i1 : f32
      %t1 = arith.maximumf %t0, %v12 : f32
      linalg.yield %t1 : f32
    } -> tensor<?x?xf32>
    return %v17 : tensor<?x?xf32>
  }
}
