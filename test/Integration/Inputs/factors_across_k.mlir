// Both factors lie across k, all sizes are dynamic: without any alignment each
// element is copied alone, from an address of its own.
func.func @f(%a: tensor<?x?xf16>, %w: tensor<?x?xf16>) -> tensor<?x?xf32> {
%cm = arith.constant 1 : index
%dm = tensor.dim %a, %cm : tensor<?x?xf16>
%cn = arith.constant 1 : index
%dn = tensor.dim %w, %cn : tensor<?x?xf16>
%z = arith.constant 0.0 : f32
%e = tensor.empty(%dm, %dn) : tensor<?x?xf32>
%i0 = linalg.fill ins(%z : f32) outs(%e : tensor<?x?xf32>) -> tensor<?x?xf32>
%r = linalg.contract indexing_maps = [affine_map<(m, n, k) -> (k, m)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>] ins(%a, %w : tensor<?x?xf16>, tensor<?x?xf16>) outs(%i0 : tensor<?x?xf32>) -> tensor<?x?xf32>
return %r : tensor<?x?xf32>
}
