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

// -----

// An operator that reads a maximum with the reduced dimension kept computes
// without it, like the operators of the rows.
// CHECK-LABEL: @kept_maximum
// CHECK: %[[E:.*]] = linalg.generic {{.*}} ins(%{{.*}} : tensor<?x4x2xf32>) outs(%{{.*}} : tensor<?x4x2xi1>)
// CHECK: arith.cmpf
// CHECK-NOT: tensor.collapse_shape
// CHECK: linalg.generic {{.*}} ins(%[[E]],
func.func @kept_maximum(%m: tensor<?x4x2xf32>, %x: tensor<?x4x2x16xf32>, %w: tensor<?x4x16x8xf32>, %o: tensor<?x4x2x8xf32>) -> tensor<?x4x2x8xf32> {
  %c0 = arith.constant 0 : index
  %ninf = arith.constant 0xFF800000 : f32
  %zero = arith.constant 0.0 : f32
  %b = tensor.dim %m, %c0 : tensor<?x4x2xf32>
  %joined = tensor.collapse_shape %m [[0], [1, 2]] : tensor<?x4x2xf32> into tensor<?x8xf32>
  %kept = tensor.expand_shape %joined [[0], [1, 2]] output_shape [%b, 8, 1] : tensor<?x8xf32> into tensor<?x8x1xf32>
  %e = tensor.empty(%b) : tensor<?x8x1xi1>
  %is = linalg.generic {indexing_maps = [affine_map<(i, j, k) -> (i, j, k)>, affine_map<(i, j, k) -> (i, j, k)>], iterator_types = ["parallel", "parallel", "parallel"]} ins(%kept : tensor<?x8x1xf32>) outs(%e : tensor<?x8x1xi1>) {
  ^bb0(%v: f32, %u: i1):
    %c = arith.cmpf oeq, %v, %ninf : f32
    linalg.yield %c : i1
  } -> tensor<?x8x1xi1>
  %s = tensor.collapse_shape %is [[0], [1, 2]] : tensor<?x8x1xi1> into tensor<?x8xi1>
  %split = tensor.expand_shape %s [[0], [1, 2]] output_shape [%b, 4, 2] : tensor<?x8xi1> into tensor<?x4x2xi1>
  %p = linalg.generic {indexing_maps = [affine_map<(i, j, k, l) -> (i, j, k)>, affine_map<(i, j, k, l) -> (i, j, k, l)>, affine_map<(i, j, k, l) -> (i, j, k, l)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%split, %x : tensor<?x4x2xi1>, tensor<?x4x2x16xf32>) outs(%x : tensor<?x4x2x16xf32>) {
  ^bb0(%c: i1, %v: f32, %u: f32):
    %y = arith.select %c, %zero, %v : f32
    linalg.yield %y : f32
  } -> tensor<?x4x2x16xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(b, h, t, d, l) -> (b, h, t, l)>, affine_map<(b, h, t, d, l) -> (b, h, l, d)>, affine_map<(b, h, t, d, l) -> (b, h, t, d)>], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]} ins(%p, %w : tensor<?x4x2x16xf32>, tensor<?x4x16x8xf32>) outs(%o : tensor<?x4x2x8xf32>) {
  ^bb0(%q: f32, %r: f32, %u: f32):
    %m1 = arith.mulf %q, %r : f32
    %a = arith.addf %u, %m1 : f32
    linalg.yield %a : f32
  } -> tensor<?x4x2x8xf32>
  return %y : tensor<?x4x2x8xf32>
}

// -----

// A single head of keys that is transposed, and whose own dimension a reshape
// drops, is transposed without it.
// CHECK-LABEL: @single_head
// CHECK: %[[K:.*]] = tensor.collapse_shape %{{.*}} : tensor<?x?x1x64xf32> into tensor<?x?x64xf32>
// CHECK-NOT: tensor.{{collapse|expand}}_shape
// CHECK: return
func.func @single_head(%q: tensor<?x8x64xf32>, %k: tensor<?x?x1x64xf32>, %t: tensor<?x1x?x64xf32>, %o: tensor<?x8x?xf32>) -> tensor<?x8x?xf32> {
  %h = linalg.transpose ins(%k : tensor<?x?x1x64xf32>) outs(%t : tensor<?x1x?x64xf32>) permutation = [0, 2, 1, 3]
  %s = tensor.collapse_shape %h [[0, 1], [2], [3]] : tensor<?x1x?x64xf32> into tensor<?x?x64xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(b, m, n, d) -> (b, m, d)>, affine_map<(b, m, n, d) -> (b, n, d)>, affine_map<(b, m, n, d) -> (b, m, n)>], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%q, %s : tensor<?x8x64xf32>, tensor<?x?x64xf32>) outs(%o : tensor<?x8x?xf32>) {
  ^bb0(%a: f32, %c: f32, %u: f32):
    %m = arith.mulf %a, %c : f32
    %r = arith.addf %u, %m : f32
    linalg.yield %r : f32
  } -> tensor<?x8x?xf32>
  return %y : tensor<?x8x?xf32>
}

// -----

// A rotary embedding of halves is one operator that reads its input with the
// halves swapped: no slice, no concatenation.
// CHECK-DAG: #[[SWAP:.*]] = affine_map<(d0, d1, d2) -> (d0, -d1 + 1, d2)>
// CHECK-LABEL: @rotated_halves
// CHECK-NOT: tensor.extract_slice
// CHECK-NOT: tensor.concat
// CHECK: linalg.generic {indexing_maps = [#[[SWAP]],
// CHECK: arith.negf
// CHECK: arith.select
func.func @rotated_halves(%x: tensor<?x16xf32>, %w: tensor<16x4xf32>, %o: tensor<?x4xf32>) -> tensor<?x4xf32> {
  %c0 = arith.constant 0 : index
  %t = tensor.dim %x, %c0 : tensor<?x16xf32>
  %a = tensor.extract_slice %x[0, 0] [%t, 8] [1, 1] : tensor<?x16xf32> to tensor<?x8xf32>
  %b = tensor.extract_slice %x[0, 8] [%t, 8] [1, 1] : tensor<?x16xf32> to tensor<?x8xf32>
  %e = tensor.empty(%t) : tensor<?x8xf32>
  %n = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%b : tensor<?x8xf32>) outs(%e : tensor<?x8xf32>) {
  ^bb0(%v: f32, %u: f32):
    %m = arith.negf %v : f32
    linalg.yield %m : f32
  } -> tensor<?x8xf32>
  %r = tensor.concat dim(1) %n, %a : (tensor<?x8xf32>, tensor<?x8xf32>) -> tensor<?x16xf32>
  %c = tensor.collapse_shape %o [[0, 1]] : tensor<?x4xf32> into tensor<?xf32>
  %o2 = tensor.expand_shape %c [[0, 1]] output_shape [%t, 4] : tensor<?xf32> into tensor<?x4xf32>
  %y = linalg.matmul ins(%r, %w : tensor<?x16xf32>, tensor<16x4xf32>) outs(%o2 : tensor<?x4xf32>) -> tensor<?x4xf32>
  return %y : tensor<?x4xf32>
}

// -----

// So is one of neighbors, whose two places are a dimension of their own.
// CHECK-DAG: #[[SWAP:.*]] = affine_map<(d0, d1, d2) -> (d0, d1, -d2 + 1)>
// CHECK-LABEL: @rotated_neighbors
// CHECK-NOT: tensor.extract_slice
// CHECK-NOT: tensor.concat
// CHECK: linalg.generic {indexing_maps = [#[[SWAP]],
func.func @rotated_neighbors(%x: tensor<?x16xf32>, %w: tensor<16x4xf32>, %o: tensor<?x4xf32>) -> tensor<?x4xf32> {
  %c0 = arith.constant 0 : index
  %t = tensor.dim %x, %c0 : tensor<?x16xf32>
  %a = tensor.extract_slice %x[0, 0] [%t, 8] [1, 2] : tensor<?x16xf32> to tensor<?x8xf32>
  %b = tensor.extract_slice %x[0, 1] [%t, 8] [1, 2] : tensor<?x16xf32> to tensor<?x8xf32>
  %a1 = tensor.expand_shape %a [[0], [1, 2]] output_shape [%t, 8, 1] : tensor<?x8xf32> into tensor<?x8x1xf32>
  %b1 = tensor.expand_shape %b [[0], [1, 2]] output_shape [%t, 8, 1] : tensor<?x8xf32> into tensor<?x8x1xf32>
  %s = tensor.concat dim(2) %b1, %a1 : (tensor<?x8x1xf32>, tensor<?x8x1xf32>) -> tensor<?x8x2xf32>
  %r = tensor.collapse_shape %s [[0], [1, 2]] : tensor<?x8x2xf32> into tensor<?x16xf32>
  %y = linalg.matmul ins(%r, %w : tensor<?x16xf32>, tensor<16x4xf32>) outs(%o : tensor<?x4xf32>) -> tensor<?x4xf32>
  return %y : tensor<?x4xf32>
}

// -----

// A rotary embedding of heads that become groups after it: its operator gets
// the loops of the groups.
// CHECK-DAG: #[[SWAP:.*]] = affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, -d3 + 1, d4)>
// CHECK-LABEL: @rotated_groups
// CHECK: %[[X:.*]] = tensor.expand_shape %{{.*}} {{\[}}[0], [1, 2], [3, 4]]
// CHECK: %[[R:.*]] = linalg.generic {indexing_maps = [#[[SWAP]],
// CHECK-SAME: ins(%[[X]] : tensor<?x2x4x2x8xf32>)
// CHECK-NOT: tensor.expand_shape
// CHECK: tensor.collapse_shape %[[R]] {{\[}}[0], [1], [2], [3, 4]]
func.func @rotated_groups(%x: tensor<?x8x16xf32>, %k: tensor<?x2x16xf32>) -> tensor<2x4x?x?xf32> {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %t = tensor.dim %x, %c0 : tensor<?x8x16xf32>
  %l = tensor.dim %k, %c0 : tensor<?x2x16xf32>
  %a = tensor.extract_slice %x[0, 0, 0] [%t, 8, 8] [1, 1, 1] : tensor<?x8x16xf32> to tensor<?x8x8xf32>
  %b = tensor.extract_slice %x[0, 0, 8] [%t, 8, 8] [1, 1, 1] : tensor<?x8x16xf32> to tensor<?x8x8xf32>
  %r = tensor.concat dim(2) %b, %a : (tensor<?x8x8xf32>, tensor<?x8x8xf32>) -> tensor<?x8x16xf32>
  %g = tensor.expand_shape %r [[0], [1, 2], [3]] output_shape [%t, 2, 4, 16] : tensor<?x8x16xf32> into tensor<?x2x4x16xf32>
  %e = tensor.empty(%t, %l) : tensor<2x4x?x?xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<2x4x?x?xf32>) -> tensor<2x4x?x?xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(h, g, i, j, d) -> (i, h, g, d)>, affine_map<(h, g, i, j, d) -> (j, h, d)>, affine_map<(h, g, i, j, d) -> (h, g, i, j)>], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]} ins(%g, %k : tensor<?x2x4x16xf32>, tensor<?x2x16xf32>) outs(%f : tensor<2x4x?x?xf32>) {
  ^bb0(%u: f32, %v: f32, %w: f32):
    %p = arith.mulf %u, %v : f32
    %s = arith.addf %w, %p : f32
    linalg.yield %s : f32
  } -> tensor<2x4x?x?xf32>
  return %y : tensor<2x4x?x?xf32>
}

// -----

// With a single head of keys the groups have a loop of extent 1, which is not
// split off: it would be dropped again, for ever.
// CHECK-LABEL: @rotated_single_group
// CHECK: linalg.generic
// CHECK: -> tensor<?x4x2x8xf32>
// CHECK: return
func.func @rotated_single_group(%x: tensor<?x4x16xf32>, %k: tensor<?x1x16xf32>) -> tensor<1x4x?x?xf32> {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %t = tensor.dim %x, %c0 : tensor<?x4x16xf32>
  %l = tensor.dim %k, %c0 : tensor<?x1x16xf32>
  %a = tensor.extract_slice %x[0, 0, 0] [%t, 4, 8] [1, 1, 1] : tensor<?x4x16xf32> to tensor<?x4x8xf32>
  %b = tensor.extract_slice %x[0, 0, 8] [%t, 4, 8] [1, 1, 1] : tensor<?x4x16xf32> to tensor<?x4x8xf32>
  %r = tensor.concat dim(2) %b, %a : (tensor<?x4x8xf32>, tensor<?x4x8xf32>) -> tensor<?x4x16xf32>
  %g = tensor.expand_shape %r [[0], [1, 2], [3]] output_shape [%t, 1, 4, 16] : tensor<?x4x16xf32> into tensor<?x1x4x16xf32>
  %e = tensor.empty(%t, %l) : tensor<1x4x?x?xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<1x4x?x?xf32>) -> tensor<1x4x?x?xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(h, g, i, j, d) -> (i, h, g, d)>, affine_map<(h, g, i, j, d) -> (j, h, d)>, affine_map<(h, g, i, j, d) -> (h, g, i, j)>], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]} ins(%g, %k : tensor<?x1x4x16xf32>, tensor<?x1x16xf32>) outs(%f : tensor<1x4x?x?xf32>) {
  ^bb0(%u: f32, %v: f32, %w: f32):
    %p = arith.mulf %u, %v : f32
    %s = arith.addf %w, %p : f32
    linalg.yield %s : f32
  } -> tensor<1x4x?x?xf32>
  return %y : tensor<1x4x?x?xf32>
}

// -----

// Parts in their own order, or of two tensors, stay.
// CHECK-LABEL: @other_parts
// CHECK: tensor.concat dim(1)
// CHECK: tensor.concat dim(1)
func.func @other_parts(%x: tensor<?x16xf32>, %z: tensor<?x16xf32>, %w: tensor<16x4xf32>, %o: tensor<?x4xf32>, %p: tensor<?x2x2xf32>) -> (tensor<?x16xf32>, tensor<?x16xf32>, tensor<?x4xf32>) {
  %c0 = arith.constant 0 : index
  %t = tensor.dim %x, %c0 : tensor<?x16xf32>
  %a = tensor.extract_slice %x[0, 0] [%t, 8] [1, 1] : tensor<?x16xf32> to tensor<?x8xf32>
  %b = tensor.extract_slice %x[0, 8] [%t, 8] [1, 1] : tensor<?x16xf32> to tensor<?x8xf32>
  %u = tensor.dim %z, %c0 : tensor<?x16xf32>
  %d = tensor.extract_slice %z[0, 8] [%u, 8] [1, 1] : tensor<?x16xf32> to tensor<?x8xf32>
  %r = tensor.concat dim(1) %a, %b : (tensor<?x8xf32>, tensor<?x8xf32>) -> tensor<?x16xf32>
  %s = tensor.concat dim(1) %d, %a : (tensor<?x8xf32>, tensor<?x8xf32>) -> tensor<?x16xf32>
  %q = tensor.collapse_shape %p [[0], [1, 2]] : tensor<?x2x2xf32> into tensor<?x4xf32>
  %y = linalg.matmul ins(%x, %w : tensor<?x16xf32>, tensor<16x4xf32>) outs(%q : tensor<?x4xf32>) -> tensor<?x4xf32>
  return %r, %s, %y : tensor<?x16xf32>, tensor<?x16xf32>, tensor<?x4xf32>
}

// -----

// A scale in a tensor of one element is read as a scalar.
// CHECK-LABEL: @single_element
// CHECK: linalg.generic {{.*}} iterator_types = []} ins({{.*}} : tensor<f32>) outs({{.*}} : tensor<f32>)
func.func @single_element(%a: tensor<?x8xf32>, %b: tensor<8x4xf32>, %o: tensor<?x4xf32>, %z: tensor<1xf32>) -> tensor<?x4xf32> {
  %e = tensor.empty() : tensor<1xf32>
  %s = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]} ins(%z : tensor<1xf32>) outs(%e : tensor<1xf32>) {
  ^bb0(%v: f32, %u: f32):
    %n = arith.negf %v : f32
    linalg.yield %n : f32
  } -> tensor<1xf32>
  %c = tensor.collapse_shape %s [] : tensor<1xf32> into tensor<f32>
  %p = linalg.matmul ins(%a, %b : tensor<?x8xf32>, tensor<8x4xf32>) outs(%o : tensor<?x4xf32>) -> tensor<?x4xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> ()>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%p, %c : tensor<?x4xf32>, tensor<f32>) outs(%o : tensor<?x4xf32>) {
  ^bb0(%v: f32, %w: f32, %u: f32):
    %m = arith.mulf %v, %w : f32
    linalg.yield %m : f32
  } -> tensor<?x4xf32>
  return %y : tensor<?x4xf32>
}
