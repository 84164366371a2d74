// A step holds all of k: the main loop is none.
func.func @f(%a: tensor<?x32xf16>, %w: tensor<4096x32xf16>) -> tensor<?x4096xf32> {
  %c0 = arith.constant 0 : index
  %m = tensor.dim %a, %c0 : tensor<?x32xf16>
  %z = arith.constant 0.0 : f32
  %e = tensor.empty(%m) : tensor<?x4096xf32>
  %i = linalg.fill ins(%z : f32) outs(%e : tensor<?x4096xf32>) -> tensor<?x4096xf32>
  %r = linalg.contract indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (m, n)>] ins(%a, %w : tensor<?x32xf16>, tensor<4096x32xf16>) outs(%i : tensor<?x4096xf32>) -> tensor<?x4096xf32>
  return %r : tensor<?x4096xf32>
}
