// RUN: ftuner-opt %s -ukernel-form-workloads=paths=simt -verify-diagnostics -split-input-file | FileCheck %s

// What becomes no workload is left as it is, and told.

#ij = affine_map<(i, j) -> (i, j)>

// Vectors run along m, n or k, not along a batch dimension: of lhs, rhs or out.
// CHECK-LABEL: func.func @batch_inside_lhs
// CHECK: linalg.generic
func.func @batch_inside_lhs(%a: tensor<8x16x?xf32>, %b: tensor<?x16x4xf32>, %o: tensor<?x8x4xf32>) -> tensor<?x8x4xf32> {
  // expected-remark @below {{fallback: 'linalg.generic' is a contraction that no codegen path computes: simt: expected an lhs that is contiguous along m or k, an rhs along n or k, and an output that is contiguous along n}}
  %r = linalg.generic {indexing_maps = [affine_map<(b, m, n, k) -> (m, k, b)>, affine_map<(b, m, n, k) -> (b, k, n)>, affine_map<(b, m, n, k) -> (b, m, n)>], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%a, %b : tensor<8x16x?xf32>, tensor<?x16x4xf32>) outs(%o : tensor<?x8x4xf32>) {
    ^bb0(%x: f32, %y: f32, %c: f32):
      %p = arith.mulf %x, %y : f32
      %s = arith.addf %c, %p : f32
      linalg.yield %s : f32
  } -> tensor<?x8x4xf32>
  return %r : tensor<?x8x4xf32>
}
// CHECK-LABEL: func.func @batch_inside_rhs
// CHECK: linalg.generic
func.func @batch_inside_rhs(%a: tensor<?x8x16xf32>, %b: tensor<16x4x?xf32>, %o: tensor<?x8x4xf32>) -> tensor<?x8x4xf32> {
  // expected-remark @below {{fallback: 'linalg.generic' is a contraction that no codegen path computes: simt: expected an lhs that is contiguous along m or k, an rhs along n or k, and an output that is contiguous along n}}
  %r = linalg.generic {indexing_maps = [affine_map<(b, m, n, k) -> (b, m, k)>, affine_map<(b, m, n, k) -> (k, n, b)>, affine_map<(b, m, n, k) -> (b, m, n)>], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%a, %b : tensor<?x8x16xf32>, tensor<16x4x?xf32>) outs(%o : tensor<?x8x4xf32>) {
    ^bb0(%x: f32, %y: f32, %c: f32):
      %p = arith.mulf %x, %y : f32
      %s = arith.addf %c, %p : f32
      linalg.yield %s : f32
  } -> tensor<?x8x4xf32>
  return %r : tensor<?x8x4xf32>
}
// CHECK-LABEL: func.func @batch_inside_out
// CHECK: linalg.generic
func.func @batch_inside_out(%a: tensor<?x8x16xf32>, %b: tensor<?x16x4xf32>, %o: tensor<8x4x?xf32>) -> tensor<8x4x?xf32> {
  // expected-remark @below {{fallback: 'linalg.generic' is a contraction that no codegen path computes: simt: expected an lhs that is contiguous along m or k, an rhs along n or k, and an output that is contiguous along n}}
  %r = linalg.generic {indexing_maps = [affine_map<(b, m, n, k) -> (b, m, k)>, affine_map<(b, m, n, k) -> (b, k, n)>, affine_map<(b, m, n, k) -> (m, n, b)>], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%a, %b : tensor<?x8x16xf32>, tensor<?x16x4xf32>) outs(%o : tensor<8x4x?xf32>) {
    ^bb0(%x: f32, %y: f32, %c: f32):
      %p = arith.mulf %x, %y : f32
      %s = arith.addf %c, %p : f32
      linalg.yield %s : f32
  } -> tensor<8x4x?xf32>
  return %r : tensor<8x4x?xf32>
}
// CHECK-LABEL: func.func @four_batches
// CHECK: linalg.generic
func.func @four_batches(%a: tensor<2x3x2x3x8x16xf32>, %b: tensor<3x2x2x3x16x4xf32>, %o: tensor<2x3x3x2x8x4xf32>) -> tensor<2x3x3x2x8x4xf32> {
  // expected-remark @below {{fallback: 'linalg.generic' is a contraction with more than three batch dimensions}}
  %r = linalg.generic {indexing_maps = [affine_map<(a, b, c, d, m, n, k) -> (a, b, c, d, m, k)>, affine_map<(a, b, c, d, m, n, k) -> (b, a, c, d, k, n)>, affine_map<(a, b, c, d, m, n, k) -> (a, b, d, c, m, n)>], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel", "parallel", "reduction"]} ins(%a, %b : tensor<2x3x2x3x8x16xf32>, tensor<3x2x2x3x16x4xf32>) outs(%o : tensor<2x3x3x2x8x4xf32>) {
    ^bb0(%x: f32, %y: f32, %c: f32):
      %p = arith.mulf %x, %y : f32
      %s = arith.addf %c, %p : f32
      linalg.yield %s : f32
  } -> tensor<2x3x3x2x8x4xf32>
  return %r : tensor<2x3x3x2x8x4xf32>
}
// CHECK-LABEL: func.func @f64
// CHECK: linalg.matmul
func.func @f64(%a: tensor<8x16xf64>, %b: tensor<16x4xf64>, %o: tensor<8x4xf64>) -> tensor<8x4xf64> {
  // expected-remark @below {{fallback: 'linalg.matmul' is a contraction that no codegen path computes: simt: expected an accumulator of f32 or i32, but got f64; mma: expected a product of a100's tensor cores, but got one of f64}}
  %r = linalg.matmul ins(%a, %b : tensor<8x16xf64>, tensor<16x4xf64>) outs(%o : tensor<8x4xf64>) -> tensor<8x4xf64>
  return %r : tensor<8x4xf64>
}
// CHECK-LABEL: func.func @i64
// CHECK: linalg.matmul
func.func @i64(%a: tensor<8x16xi64>, %b: tensor<16x4xi64>, %o: tensor<8x4xi64>) -> tensor<8x4xi64> {
  // expected-remark @below {{fallback: 'linalg.matmul' is a contraction that no codegen path computes: simt: expected an accumulator of f32 or i32, but got i64; mma: }}
  %r = linalg.matmul ins(%a, %b : tensor<8x16xi64>, tensor<16x4xi64>) outs(%o : tensor<8x4xi64>) -> tensor<8x4xi64>
  return %r : tensor<8x4xi64>
}
// CHECK-LABEL: func.func @wide_integers
// CHECK: linalg.matmul
func.func @wide_integers(%a: tensor<8x16xf32>, %b: tensor<16x4xi32>, %o: tensor<8x4xf32>) -> tensor<8x4xf32> {
  // expected-remark @below {{fallback: 'linalg.matmul' is no contraction}}
  %r = linalg.matmul ins(%a, %b : tensor<8x16xf32>, tensor<16x4xi32>) outs(%o : tensor<8x4xf32>) -> tensor<8x4xf32>
  return %r : tensor<8x4xf32>
}
// CHECK-LABEL: func.func @matvec
// CHECK: linalg.matvec
func.func @matvec(%a: tensor<8x16xf32>, %b: tensor<16xf32>, %o: tensor<8xf32>) -> tensor<8xf32> {
  // expected-remark @below {{fallback: 'linalg.matvec' is a contraction without m, n or k dimension}}
  %r = linalg.matvec ins(%a, %b : tensor<8x16xf32>, tensor<16xf32>) outs(%o : tensor<8xf32>) -> tensor<8xf32>
  return %r : tensor<8xf32>
}
// CHECK-LABEL: func.func @several_k
// CHECK: linalg.generic
func.func @several_k(%a: tensor<8x3x16xf32>, %b: tensor<16x3x4xf32>, %o: tensor<8x4xf32>) -> tensor<8x4xf32> {
  // expected-remark @below {{fallback: 'linalg.generic' is a contraction whose reduce dimensions cannot be joined to one}}
  %r = linalg.generic {indexing_maps = [affine_map<(m, n, j, k) -> (m, j, k)>, affine_map<(m, n, j, k) -> (k, j, n)>, affine_map<(m, n, j, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction", "reduction"]} ins(%a, %b : tensor<8x3x16xf32>, tensor<16x3x4xf32>) outs(%o : tensor<8x4xf32>) {
    ^bb0(%x: f32, %y: f32, %c: f32):
      %p = arith.mulf %x, %y : f32
      %s = arith.addf %c, %p : f32
      linalg.yield %s : f32
  } -> tensor<8x4xf32>
  return %r : tensor<8x4xf32>
}
// Another reduction than a sum of products.
// CHECK-LABEL: func.func @max_plus
// CHECK: linalg.generic
func.func @max_plus(%a: tensor<4x8xf32>, %b: tensor<8x4xf32>, %o: tensor<4x4xf32>) -> tensor<4x4xf32> {
  // expected-remark @below {{fallback: 'linalg.generic' is no contraction}}
  %r = linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%a, %b : tensor<4x8xf32>, tensor<8x4xf32>) outs(%o : tensor<4x4xf32>) {
    ^bb0(%x: f32, %y: f32, %c: f32):
      %p = arith.addf %x, %y : f32
      %s = arith.maximumf %c, %p : f32
      linalg.yield %s : f32
  } -> tensor<4x4xf32>
  return %r : tensor<4x4xf32>
}

// -----

// Products whose consumers are not fused.

#ij = affine_map<(i, j) -> (i, j)>

// The product has another use.
// CHECK-LABEL: func.func @two_uses
// CHECK: %[[P:.*]] = ukernel.workload
// CHECK-NOT: epilogue
// CHECK: %[[R:.*]] = linalg.exp ins(%[[P]]
// CHECK: return %[[P]], %[[R]]
func.func @two_uses(%a: tensor<8x16xf32>, %b: tensor<16x4xf32>, %c: tensor<8x4xf32>) -> (tensor<8x4xf32>, tensor<8x4xf32>) {
  %e = tensor.empty() : tensor<8x4xf32>
  %mm = linalg.matmul ins(%a, %b : tensor<8x16xf32>, tensor<16x4xf32>) outs(%c : tensor<8x4xf32>) -> tensor<8x4xf32>
  // expected-remark @below {{fallback: 'linalg.exp' is no contraction}}
  %r = linalg.exp ins(%mm : tensor<8x4xf32>) outs(%e : tensor<8x4xf32>) -> tensor<8x4xf32>
  return %mm, %r : tensor<8x4xf32>, tensor<8x4xf32>
}
// CHECK-LABEL: func.func @index
// CHECK: ukernel.workload
// CHECK-NOT: epilogue
// CHECK: linalg.generic
func.func @index(%a: tensor<8x16xf32>, %b: tensor<16x4xf32>, %c: tensor<8x4xf32>) -> tensor<8x4xf32> {
  %e = tensor.empty() : tensor<8x4xf32>
  %mm = linalg.matmul ins(%a, %b : tensor<8x16xf32>, tensor<16x4xf32>) outs(%c : tensor<8x4xf32>) -> tensor<8x4xf32>
  // expected-remark @below {{fallback: 'linalg.generic' is no contraction}}
  %r = linalg.generic {indexing_maps = [#ij, #ij], iterator_types = ["parallel", "parallel"]} ins(%mm : tensor<8x4xf32>) outs(%e : tensor<8x4xf32>) {
    ^bb0(%x: f32, %out: f32):
      %i = linalg.index 0 : index
      %j = arith.index_cast %i : index to i32
      %k = arith.sitofp %j : i32 to f32
      %p = arith.mulf %x, %k : f32
      linalg.yield %p : f32
  } -> tensor<8x4xf32>
  return %r : tensor<8x4xf32>
}
// CHECK-LABEL: func.func @other_type
// CHECK: ukernel.workload
// CHECK-NOT: epilogue
// CHECK: linalg.generic
func.func @other_type(%a: tensor<8x16xf32>, %b: tensor<16x4xf32>, %c: tensor<8x4xf32>, %d: tensor<8x4xf64>) -> tensor<8x4xf32> {
  %e = tensor.empty() : tensor<8x4xf32>
  %mm = linalg.matmul ins(%a, %b : tensor<8x16xf32>, tensor<16x4xf32>) outs(%c : tensor<8x4xf32>) -> tensor<8x4xf32>
  // expected-remark @below {{fallback: 'linalg.generic' is no contraction}}
  %r = linalg.generic {indexing_maps = [#ij, #ij, #ij], iterator_types = ["parallel", "parallel"]} ins(%mm, %d : tensor<8x4xf32>, tensor<8x4xf64>) outs(%e : tensor<8x4xf32>) {
    ^bb0(%x: f32, %y: f64, %out: f32):
      %z = arith.truncf %y : f64 to f32
      %p = arith.mulf %x, %z : f32
      linalg.yield %p : f32
  } -> tensor<8x4xf32>
  return %r : tensor<8x4xf32>
}
// Read at two points.
// CHECK-LABEL: func.func @symmetric
// CHECK: ukernel.workload
// CHECK-NOT: epilogue
// CHECK: linalg.generic
func.func @symmetric(%a: tensor<8x16xf32>, %b: tensor<16x8xf32>, %c: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %e = tensor.empty() : tensor<8x8xf32>
  %mm = linalg.matmul ins(%a, %b : tensor<8x16xf32>, tensor<16x8xf32>) outs(%c : tensor<8x8xf32>) -> tensor<8x8xf32>
  // expected-remark @below {{fallback: 'linalg.generic' is no contraction}}
  %r = linalg.generic {indexing_maps = [#ij, affine_map<(i, j) -> (j, i)>, #ij], iterator_types = ["parallel", "parallel"]} ins(%mm, %mm : tensor<8x8xf32>, tensor<8x8xf32>) outs(%e : tensor<8x8xf32>) {
    ^bb0(%x: f32, %y: f32, %out: f32):
      %p = arith.addf %x, %y : f32
      linalg.yield %p : f32
  } -> tensor<8x8xf32>
  return %r : tensor<8x8xf32>
}
// In another block: the product is not moved into the branch.
// CHECK-LABEL: func.func @branch
// CHECK: ukernel.workload
// CHECK: scf.if
// CHECK: linalg.exp
func.func @branch(%a: tensor<8x16xf32>, %b: tensor<16x8xf32>, %c: tensor<8x8xf32>, %x: i1) -> tensor<8x8xf32> {
  %mm = linalg.matmul ins(%a, %b : tensor<8x16xf32>, tensor<16x8xf32>) outs(%c : tensor<8x8xf32>) -> tensor<8x8xf32>
  %r = scf.if %x -> tensor<8x8xf32> {
    %e = tensor.empty() : tensor<8x8xf32>
    // expected-remark @below {{fallback: 'linalg.exp' is no contraction}}
    %y = linalg.exp ins(%mm : tensor<8x8xf32>) outs(%e : tensor<8x8xf32>) -> tensor<8x8xf32>
    scf.yield %y : tensor<8x8xf32>
  } else {
    scf.yield %c : tensor<8x8xf32>
  }
  return %r : tensor<8x8xf32>
}
