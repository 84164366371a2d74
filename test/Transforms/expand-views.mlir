// RUN: ftuner-opt %s --split-input-file --pass-pipeline='builtin.module(func.func(ukernel-resolve-sizes,ukernel-expand-views),canonicalize)' | FileCheck %s

// Heads that share a key are a loop that the key's map does not have: nothing
// is repeated.
module attributes {ukernel.symbols = {B = #ukernel.range<1 to 16>, L = #ukernel.range<1 to ?>}} {
  // CHECK-LABEL: @scores
  // CHECK-SAME: %[[Q:.*]]: tensor<?x32x1x128xf32>
  // CHECK-NOT: tensor.collapse_shape
  // CHECK: tensor.expand_shape %[[Q]] {{.*}} into tensor<?x8x4x1x128xf32>
  // CHECK: linalg.generic {{.*}} "reduction"]}
  // CHECK-SAME: tensor<?x8x4x1x128xf32>, tensor<?x8x4x128x?xf32>
  // CHECK: tensor.collapse_shape {{.*}} : tensor<?x8x4x1x?xf32> into tensor<?x32x1x?xf32>
  // CHECK-NEXT: return
  func.func @scores(%q: tensor<?x32x1x128xf32> {ukernel.shape = ["B", 32, 1, 128]},
                    %k: tensor<?x8x128x?xf32> {ukernel.shape = ["B", 8, 128, "L"]}) -> tensor<?x32x1x?xf32> {
    %c0 = arith.constant 0 : index
    %c3 = arith.constant 3 : index
    %c32 = arith.constant 32 : index
    %zero = arith.constant 0.0 : f32
    %bq = tensor.dim %q, %c0 : tensor<?x32x1x128xf32>
    %bk = tensor.dim %k, %c0 : tensor<?x8x128x?xf32>
    %l = tensor.dim %k, %c3 : tensor<?x8x128x?xf32>
    %e = tensor.empty(%bk, %l) : tensor<?x8x4x128x?xf32>
    %r = linalg.generic {indexing_maps = [affine_map<(b, g, r, d, l) -> (b, g, d, l)>, affine_map<(b, g, r, d, l) -> (b, g, r, d, l)>],
                         iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]}
        ins(%k : tensor<?x8x128x?xf32>) outs(%e : tensor<?x8x4x128x?xf32>) {
      ^bb0(%x: f32, %o: f32):
        linalg.yield %x : f32
    } -> tensor<?x8x4x128x?xf32>
    %kc = tensor.collapse_shape %r [[0, 1, 2], [3], [4]] : tensor<?x8x4x128x?xf32> into tensor<?x128x?xf32>
    %qc = tensor.collapse_shape %q [[0, 1], [2], [3]] : tensor<?x32x1x128xf32> into tensor<?x1x128xf32>
    %b = arith.maxui %bq, %bk : index
    %bh = arith.muli %b, %c32 : index
    %pe = tensor.empty(%bh, %l) : tensor<?x1x?xf32>
    %pf = linalg.fill ins(%zero : f32) outs(%pe : tensor<?x1x?xf32>) -> tensor<?x1x?xf32>
    %p = linalg.batch_matmul ins(%qc, %kc : tensor<?x1x128xf32>, tensor<?x128x?xf32>) outs(%pf : tensor<?x1x?xf32>) -> tensor<?x1x?xf32>
    %parts = arith.divsi %bh, %c32 : index
    %s = tensor.expand_shape %p [[0, 1], [2], [3]] output_shape [%parts, 32, 1, %l] : tensor<?x1x?xf32> into tensor<?x32x1x?xf32>
    return %s : tensor<?x32x1x?xf32>
  }
}

// -----

// The reduction of a product is never split.
// CHECK-LABEL: @reduction
// CHECK: %[[C:.*]] = tensor.collapse_shape {{.*}} into tensor<?x768xf32>
// CHECK: linalg.matmul ins(%[[C]]
func.func @reduction(%x: tensor<?x12x64xf32>, %w: tensor<768x256xf32>, %o: tensor<?x256xf32>) -> tensor<?x256xf32> {
  %c = tensor.collapse_shape %x [[0], [1, 2]] : tensor<?x12x64xf32> into tensor<?x768xf32>
  %p = linalg.matmul ins(%c, %w : tensor<?x768xf32>, tensor<768x256xf32>) outs(%o : tensor<?x256xf32>) -> tensor<?x256xf32>
  return %p : tensor<?x256xf32>
}

// -----

// Nobody proves that n times 4 is what is expanded, so the reshape stays, and is
// checked when the function runs.
// CHECK-LABEL: @unproven
// CHECK: linalg.matmul
// CHECK: tensor.expand_shape
func.func @unproven(%x: tensor<?x8xf32>, %w: tensor<8x16xf32>, %o: tensor<?x16xf32>, %n: index) -> tensor<?x4x16xf32> {
  %p = linalg.matmul ins(%x, %w : tensor<?x8xf32>, tensor<8x16xf32>) outs(%o : tensor<?x16xf32>) -> tensor<?x16xf32>
  %s = tensor.expand_shape %p [[0, 1], [2]] output_shape [%n, 4, 16] : tensor<?x16xf32> into tensor<?x4x16xf32>
  return %s : tensor<?x4x16xf32>
}
