// Tensors of booleans behind products, which are bytes: read and written one by
// one, at sizes that allow vectors and at others.
// The last sizes of each: vectors of everything but the mask, whose rows are no whole vectors.
// RUN: ftuner-run %s --device=h200 --max-kernels=2 --check --check-bounds --function=masked --args=2x48x64xf32,2x48x64xf32,48x48xi1 --args=2x37x64xf32,2x37x64xf32,37x37xi1 --args=2x36x64xf32,2x36x64xf32,36x36xi1
// RUN: ftuner-run %s --device=h200 --max-kernels=2 --check --check-bounds --function=half --args=48x64xf16,64x96xf16,48x96xi1 --args=48x64xf16,64x72xf16,48x72xi1
// RUN: ftuner-run %s --device=v100 --max-kernels=2 --check --check-bounds --function=compared --args=32x64xf32,64x64xf32
// RUN: ftuner-run %s --device=v100 --max-kernels=2 --check --check-bounds --function=all_columns --args=32x64xf32,37x64xf32
// RUN: ftuner-run %s --device=h200 --max-kernels=2 --check --check-bounds --function=all_columns --args=33x64xf32,68x64xf32
// RUN: ftuner-run %s --device=v100 --max-kernels=2 --check --check-bounds --function=masked --args=2x36x64xf32,2x36x64xf32,36x36xi1

#lhs = affine_map<(b, m, n, k) -> (b, m, k)>
#rhs = affine_map<(b, m, n, k) -> (b, n, k)>
#out = affine_map<(b, m, n, k) -> (b, m, n)>
#id = affine_map<(b, m, n) -> (b, m, n)>
#mask = affine_map<(b, m, n) -> (m, n)>
#mn = affine_map<(m, n) -> (m, n)>
#out2 = affine_map<(m, n, k) -> (m, n)>

func.func @masked(%q: tensor<?x?x64xf32>, %k: tensor<?x?x64xf32>, %mask: tensor<?x?xi1>) -> tensor<?x?x?xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  %least = arith.constant -1.0e+4 : f32
  %b = tensor.dim %q, %c0 : tensor<?x?x64xf32>
  %m = tensor.dim %q, %c1 : tensor<?x?x64xf32>
  %n = tensor.dim %k, %c1 : tensor<?x?x64xf32>
  %e = tensor.empty(%b, %m, %n) : tensor<?x?x?xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<?x?x?xf32>) -> tensor<?x?x?xf32>
  %p = linalg.generic {indexing_maps = [#lhs, #rhs, #out], iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%q, %k : tensor<?x?x64xf32>, tensor<?x?x64xf32>) outs(%f : tensor<?x?x?xf32>) {
  ^bb0(%x: f32, %y: f32, %s: f32):
    %xy = arith.mulf %x, %y : f32
    %r = arith.addf %s, %xy : f32
    linalg.yield %r : f32
  } -> tensor<?x?x?xf32>
  %r = linalg.generic {indexing_maps = [#mask, #id, #id], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%mask, %p : tensor<?x?xi1>, tensor<?x?x?xf32>) outs(%e : tensor<?x?x?xf32>) {
  ^bb0(%is: i1, %x: f32, %o: f32):
    %y = arith.select %is, %x, %least : f32
    linalg.yield %y : f32
  } -> tensor<?x?x?xf32>
  return %r : tensor<?x?x?xf32>
}

func.func @half(%x: tensor<?x64xf16>, %w: tensor<64x?xf16>, %mask: tensor<?x?xi1>) -> tensor<?x?xf16> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f16
  %m = tensor.dim %x, %c0 : tensor<?x64xf16>
  %n = tensor.dim %w, %c1 : tensor<64x?xf16>
  %e = tensor.empty(%m, %n) : tensor<?x?xf16>
  %f = linalg.fill ins(%zero : f16) outs(%e : tensor<?x?xf16>) -> tensor<?x?xf16>
  %p = linalg.matmul ins(%x, %w : tensor<?x64xf16>, tensor<64x?xf16>) outs(%f : tensor<?x?xf16>) -> tensor<?x?xf16>
  %r = linalg.generic {indexing_maps = [#mn, #mn, #mn], iterator_types = ["parallel", "parallel"]}
      ins(%mask, %p : tensor<?x?xi1>, tensor<?x?xf16>) outs(%e : tensor<?x?xf16>) {
  ^bb0(%is: i1, %a: f16, %o: f16):
    %y = arith.select %is, %a, %zero : f16
    linalg.yield %y : f16
  } -> tensor<?x?xf16>
  return %r : tensor<?x?xf16>
}

func.func @compared(%x: tensor<?x64xf32>, %w: tensor<64x64xf32>) -> tensor<?x64xi1> {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %m = tensor.dim %x, %c0 : tensor<?x64xf32>
  %e = tensor.empty(%m) : tensor<?x64xf32>
  %e1 = tensor.empty(%m) : tensor<?x64xi1>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<?x64xf32>) -> tensor<?x64xf32>
  %p = linalg.matmul ins(%x, %w : tensor<?x64xf32>, tensor<64x64xf32>) outs(%f : tensor<?x64xf32>) -> tensor<?x64xf32>
  %r = linalg.generic {indexing_maps = [#mn, #mn], iterator_types = ["parallel", "parallel"]}
      ins(%p : tensor<?x64xf32>) outs(%e1 : tensor<?x64xi1>) {
  ^bb0(%a: f32, %o: i1):
    %y = arith.cmpf ogt, %a, %zero : f32
    linalg.yield %y : i1
  } -> tensor<?x64xi1>
  return %r : tensor<?x64xi1>
}

// No rows but those along k.
func.func @all_columns(%x: tensor<?x64xf32>, %w: tensor<?x64xf32>) -> tensor<?x?xi1> {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %m = tensor.dim %x, %c0 : tensor<?x64xf32>
  %n = tensor.dim %w, %c0 : tensor<?x64xf32>
  %e = tensor.empty(%m, %n) : tensor<?x?xf32>
  %e1 = tensor.empty(%m, %n) : tensor<?x?xi1>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<?x?xf32>) -> tensor<?x?xf32>
  %p = linalg.matmul indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>, #out2]
      ins(%x, %w : tensor<?x64xf32>, tensor<?x64xf32>) outs(%f : tensor<?x?xf32>) -> tensor<?x?xf32>
  %r = linalg.generic {indexing_maps = [#mn, #mn], iterator_types = ["parallel", "parallel"]}
      ins(%p : tensor<?x?xf32>) outs(%e1 : tensor<?x?xi1>) {
  ^bb0(%a: f32, %o: i1):
    %y = arith.cmpf ogt, %a, %zero : f32
    linalg.yield %y : i1
  } -> tensor<?x?xi1>
  return %r : tensor<?x?xi1>
}
