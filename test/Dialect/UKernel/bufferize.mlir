// RUN: ftuner-opt %s -one-shot-bufferize="bufferize-function-boundaries function-boundary-type-conversion=identity-layout-map" -split-input-file | FileCheck %s

#mk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>
#nm = affine_map<(m, n, k) -> (n, m)>

// The output's old value is not read with an init: it is written in place.
// CHECK-LABEL: func.func @in_place
// CHECK-SAME: %[[A:[a-zA-Z0-9]*]]: memref<?x8xf32>, %[[B:[a-zA-Z0-9]*]]: memref<8x?xf32>, %[[Z:[a-zA-Z0-9]*]]: f32)
func.func @in_place(%A: tensor<?x8xf32>, %B: tensor<8x?xf32>, %zero: f32) -> tensor<?x?xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %m = tensor.dim %A, %c0 : tensor<?x8xf32>
  %n = tensor.dim %B, %c1 : tensor<8x?xf32>
  // CHECK: %[[O:.*]] = memref.alloc
  // CHECK-NOT: memref.copy
  // CHECK: ukernel.workload ins(%[[A]], %[[B]] : memref<?x8xf32>, memref<8x?xf32>) init(%[[Z]] : f32) outs(%[[O]] : memref<?x?xf32>)
  // CHECK: contract {
  // CHECK: ukernel.yield
  // CHECK: return %[[O]]
  %O = tensor.empty(%m, %n) : tensor<?x?xf32>
  %r = ukernel.workload ins(%A, %B : tensor<?x8xf32>, tensor<8x?xf32>)
    init(%zero : f32) outs(%O : tensor<?x?xf32>) maps = [#mk, #kn, #mn]
    contract {
    ^bb0(%a: f32, %b: f32, %c: f32):
      %p = arith.mulf %a, %b : f32
      %s = arith.addf %c, %p : f32
      ukernel.yield %s : f32
    } -> tensor<?x?xf32>
  return %r : tensor<?x?xf32>
}

// -----

#mk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>

// An extra at the same point shares the output's buffer; nothing is copied.
// CHECK-LABEL: func.func @residual_in_place
// CHECK-NOT: memref.copy
// CHECK-NOT: memref.alloc
// CHECK: ukernel.workload {{.*}} extras(%[[X:.*]] : memref<4x4xf32>) outs(%[[X]] : memref<4x4xf32>)
func.func @residual_in_place(%A: tensor<4x8xf32>, %B: tensor<8x4xf32>, %X: tensor<4x4xf32>, %zero: f32) -> tensor<4x4xf32> {
  %r = ukernel.workload ins(%A, %B : tensor<4x8xf32>, tensor<8x4xf32>)
    init(%zero : f32) extras(%X : tensor<4x4xf32>) outs(%X : tensor<4x4xf32>) maps = [#mk, #kn, #mn, #mn]
    contract {
    ^bb0(%a: f32, %b: f32, %c: f32):
      %p = arith.mulf %a, %b : f32
      %s = arith.addf %c, %p : f32
      ukernel.yield %s : f32
    } epilogue {
    ^bb0(%acc: f32, %x: f32):
      %y = arith.addf %acc, %x : f32
      ukernel.yield %y : f32
    } -> tensor<4x4xf32>
  return %r : tensor<4x4xf32>
}

// -----

#mk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>
#nm = affine_map<(m, n, k) -> (n, m)>

// A transposed extra is read at other points than are written.
// CHECK-LABEL: func.func @transposed_residual
// CHECK: %[[O:.*]] = memref.alloc
// CHECK: ukernel.workload {{.*}} extras(%[[X:.*]] : memref<4x4xf32>) outs(%[[O]] : memref<4x4xf32>)
func.func @transposed_residual(%A: tensor<4x8xf32>, %B: tensor<8x4xf32>, %X: tensor<4x4xf32>, %zero: f32) -> tensor<4x4xf32> {
  %r = ukernel.workload ins(%A, %B : tensor<4x8xf32>, tensor<8x4xf32>)
    init(%zero : f32) extras(%X : tensor<4x4xf32>) outs(%X : tensor<4x4xf32>) maps = [#mk, #kn, #nm, #mn]
    contract {
    ^bb0(%a: f32, %b: f32, %c: f32):
      %p = arith.mulf %a, %b : f32
      %s = arith.addf %c, %p : f32
      ukernel.yield %s : f32
    } epilogue {
    ^bb0(%acc: f32, %x: f32):
      %y = arith.addf %acc, %x : f32
      ukernel.yield %y : f32
    } -> tensor<4x4xf32>
  return %r : tensor<4x4xf32>
}

// -----

#mk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>

// lhs is read while the output is written: a copy of it, though it dies here.
// CHECK-LABEL: func.func @lhs_as_output
// CHECK-SAME: %[[A:[a-zA-Z0-9]*]]: memref<4x4xf32>
// CHECK: %[[O:.*]] = memref.alloc
// CHECK: ukernel.workload ins(%[[A]], %{{.*}}) {{.*}} outs(%[[O]] : memref<4x4xf32>)
func.func @lhs_as_output(%A: tensor<4x4xf32>, %B: tensor<4x4xf32>, %zero: f32) -> tensor<4x4xf32> {
  %r = ukernel.workload ins(%A, %B : tensor<4x4xf32>, tensor<4x4xf32>)
    init(%zero : f32) outs(%A : tensor<4x4xf32>) maps = [#mk, #kn, #mn]
    contract {
    ^bb0(%a: f32, %b: f32, %c: f32):
      %p = arith.mulf %a, %b : f32
      %s = arith.addf %c, %p : f32
      ukernel.yield %s : f32
    } -> tensor<4x4xf32>
  return %r : tensor<4x4xf32>
}

// -----

#mk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>

// Without init the output is read: its value must survive a second use.
// CHECK-LABEL: func.func @accumulate
// CHECK-SAME: %{{.*}}: memref<4x8xf32>, %{{.*}}: memref<8x4xf32>, %[[X:[a-zA-Z0-9]*]]: memref<4x4xf32>
// CHECK: %[[O:.*]] = memref.alloc
// CHECK: memref.copy %[[X]], %[[O]]
// CHECK: ukernel.workload {{.*}} outs(%[[O]] : memref<4x4xf32>)
// CHECK: return %[[O]], %[[X]]
func.func @accumulate(%A: tensor<4x8xf32>, %B: tensor<8x4xf32>, %X: tensor<4x4xf32>) -> (tensor<4x4xf32>, tensor<4x4xf32>) {
  %r = ukernel.workload ins(%A, %B : tensor<4x8xf32>, tensor<8x4xf32>)
    outs(%X : tensor<4x4xf32>) maps = [#mk, #kn, #mn]
    contract {
    ^bb0(%a: f32, %b: f32, %c: f32):
      %p = arith.mulf %a, %b : f32
      %s = arith.addf %c, %p : f32
      ukernel.yield %s : f32
    } -> tensor<4x4xf32>
  return %r, %X : tensor<4x4xf32>, tensor<4x4xf32>
}
