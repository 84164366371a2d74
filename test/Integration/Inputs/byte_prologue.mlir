// Bytes across k with a prologue, and a k of any length.
module attributes {ukernel.symbols = {K = #ukernel.range<1 to ?>, M = #ukernel.range<1 to 8192>}} {
  func.func @f(%a0: tensor<?x?xi8> {ukernel.shape = ["K", "M"]}, %a1: tensor<?x1028xi8> {ukernel.shape = ["K", 1028]}) -> (tensor<?x1028xi32>) {
    %v8 = arith.constant 7 : i32
    %v1 = arith.constant -100 : i8
    %v2 = arith.constant 0 : index
    %v3 = tensor.dim %a0, %v2 : tensor<?x?xi8>
    %v4 = arith.constant 1 : index
    %v5 = tensor.dim %a0, %v4 : tensor<?x?xi8>
    %v6 = tensor.empty(%v3, %v5) : tensor<?x?xi8>
    %v7 = linalg.generic {indexing_maps = [affine_map<(k, m) -> (k, m)>, affine_map<(k, m) -> (k, m)>], iterator_types = ["parallel", "parallel"]} ins(%a0 : tensor<?x?xi8>) outs(%v6 : tensor<?x?xi8>) {
    ^bb0(%i0: i8, %o: i8):
      %y = arith.maxsi %i0, %v1 : i8
      linalg.yield %y : i8
    } -> tensor<?x?xi8>
    %v9 = tensor.empty(%v5) : tensor<?x1028xi32>
    %v10 = linalg.fill ins(%v8 : i32) outs(%v9 : tensor<?x1028xi32>) -> tensor<?x1028xi32>
    %v12 = linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (k, m)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%v7, %a1 : tensor<?x?xi8>, tensor<?x1028xi8>) outs(%v10 : tensor<?x1028xi32>) {
    ^bb0(%i0: i8, %i1: i8, %o: i32):
      %e0 = arith.extui %i0 : i8 to i32
      %e1 = arith.extsi %i1 : i8 to i32
      %p = arith.muli %e0, %e1 : i32
      %q = arith.addi %o, %p : i32
      linalg.yield %q : i32
    } -> tensor<?x1028xi32>
    return %v12 : tensor<?x1028xi32>
  }
}
