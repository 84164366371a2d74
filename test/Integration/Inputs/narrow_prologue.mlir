// Sums with numbers along m and n, elements that no vector holds, few columns.
func.func @f(%a: tensor<17x?xbf16>, %ab: tensor<?xbf16>, %w: tensor<17x8xbf16>, %wb: tensor<8xbf16>) -> tensor<?x8xf32> {
  %c1 = arith.constant 1 : index
  %z = arith.constant 0.0 : f32
  %zb = arith.constant 0.0 : bf16
  %m = tensor.dim %a, %c1 : tensor<17x?xbf16>
  %ea = tensor.empty(%m) : tensor<17x?xbf16>
  %pa = linalg.generic {indexing_maps = [affine_map<(k, m) -> (k, m)>, affine_map<(k, m) -> (m)>, affine_map<(k, m) -> (k, m)>], iterator_types = ["parallel", "parallel"]} ins(%a, %ab : tensor<17x?xbf16>, tensor<?xbf16>) outs(%ea : tensor<17x?xbf16>) {
  ^bb0(%x: bf16, %b: bf16, %o: bf16):
    %h = arith.addf %x, %b : bf16
    %y = arith.maximumf %h, %zb : bf16
    linalg.yield %y : bf16
  } -> tensor<17x?xbf16>
  %ew = tensor.empty() : tensor<17x8xbf16>
  %pw = linalg.generic {indexing_maps = [affine_map<(k, n) -> (k, n)>, affine_map<(k, n) -> (n)>, affine_map<(k, n) -> (k, n)>], iterator_types = ["parallel", "parallel"]} ins(%w, %wb : tensor<17x8xbf16>, tensor<8xbf16>) outs(%ew : tensor<17x8xbf16>) {
  ^bb0(%x: bf16, %b: bf16, %o: bf16):
    %h = arith.addf %x, %b : bf16
    %y = arith.maximumf %h, %zb : bf16
    linalg.yield %y : bf16
  } -> tensor<17x8xbf16>
  %e = tensor.empty(%m) : tensor<?x8xf32>
  %i = linalg.fill ins(%z : f32) outs(%e : tensor<?x8xf32>) -> tensor<?x8xf32>
  %r = linalg.contract indexing_maps = [affine_map<(m, n, k) -> (k, m)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>] ins(%pa, %pw : tensor<17x?xbf16>, tensor<17x8xbf16>) outs(%i : tensor<?x8xf32>) -> tensor<?x8xf32>
  return %r : tensor<?x8xf32>
}
