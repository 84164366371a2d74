func.func @returned(%x: tensor<?x64xf32> {ukernel.shape = ["T", 64]}) -> tensor<64x?xf32> {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?x64xf32>
  %e = tensor.empty(%n) : tensor<64x?xf32>
  %r = linalg.transpose ins(%x : tensor<?x64xf32>) outs(%e : tensor<64x?xf32>) permutation = [1, 0]
  return %r : tensor<64x?xf32>
}

func.func @sliced(%x: tensor<8x8xf16>) -> tensor<8x4xf16> {
  %s = tensor.extract_slice %x[0, 2] [8, 4] [1, 1] : tensor<8x8xf16> to tensor<8x4xf16>
  return %s : tensor<8x4xf16>
}

func.func @overwritten(%x: tensor<8x8xf16>, %n: index) -> tensor<8xf16> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %one = arith.constant 1.0 : f16
  %r = scf.for %k = %c0 to %n step %c1 iter_args(%s = %x) -> tensor<8x8xf16> {
    %t = tensor.insert %one into %s[%k, %k] : tensor<8x8xf16>
    scf.yield %t : tensor<8x8xf16>
  }
  %e = tensor.empty() : tensor<8xf16>
  %y = linalg.generic {indexing_maps = [affine_map<(i) -> (i, i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]} ins(%r : tensor<8x8xf16>) outs(%e : tensor<8xf16>) {
  ^bb0(%a: f16, %o: f16):
    %b = math.exp %a : f16
    linalg.yield %b : f16
  } -> tensor<8xf16>
  return %y : tensor<8xf16>
}
