// RUN: ftuner-opt %s -canonicalize -cse -split-input-file | FileCheck %s

// CHECK-LABEL: func.func @exact_dimensions
func.func @exact_dimensions(%A: memref<?x768xf32>) -> memref<?x768xf32> {
  // CHECK: ukernel.pad %{{.*}} to [112, 1] : memref<?x768xf32>
  %p = ukernel.pad %A to [112, 16] : memref<?x768xf32>
  return %p : memref<?x768xf32>
}

// CHECK-LABEL: func.func @inexact_dimensions
func.func @inexact_dimensions(%A: memref<53x?xf32>) -> memref<53x?xf32> {
  // CHECK: ukernel.pad %{{.*}} to [7, 16] : memref<53x?xf32>
  %p = ukernel.pad %A to [7, 16] : memref<53x?xf32>
  return %p : memref<53x?xf32>
}

// CHECK-LABEL: func.func @all_exact
// CHECK-SAME: %[[A:.*]]: memref<?x768xf32>
func.func @all_exact(%A: memref<?x768xf32>) -> memref<?x768xf32> {
  // CHECK-NOT: ukernel.pad
  // CHECK: return %[[A]]
  %p = ukernel.pad %A to [1, 16] : memref<?x768xf32>
  return %p : memref<?x768xf32>
}

// CHECK-LABEL: func.func @no_dimensions
// CHECK-SAME: %[[A:.*]]: memref<f32>
func.func @no_dimensions(%A: memref<f32>) -> memref<f32> {
  // CHECK: return %[[A]]
  %p = ukernel.pad %A to [] : memref<f32>
  return %p : memref<f32>
}

// -----

#mk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>

// Constants stay in the regions, which capture nothing; the result's dims are
// those of the destination; a workload without uses vanishes, one on memrefs
// does not.
// CHECK-LABEL: func.func @workloads
// CHECK-SAME: %[[A:[a-zA-Z0-9]*]]: tensor<?x8xf32>, %[[B:[a-zA-Z0-9]*]]: tensor<8x?xf32>, %[[O:[a-zA-Z0-9]*]]: tensor<?x?xf32>
func.func @workloads(%A: tensor<?x8xf32>, %B: tensor<8x?xf32>, %O: tensor<?x?xf32>,
                     %X: memref<4x8xf32>, %Y: memref<8x4xf32>, %Z: memref<4x4xf32>)
    -> (tensor<?x?xf32>, index, f32) {
  %one = arith.constant 1.0 : f32
  %c0 = arith.constant 0 : index
  // CHECK: %[[R:.*]] = ukernel.workload
  // CHECK: } epilogue {
  // CHECK: arith.constant 1.000000e+00
  // CHECK: arith.addf
  // CHECK: ukernel.yield
  // CHECK: -> tensor<?x?xf32>
  %r = ukernel.workload ins(%A, %B : tensor<?x8xf32>, tensor<8x?xf32>)
    init(%one : f32) outs(%O : tensor<?x?xf32>) maps = [#mk, #kn, #mn]
    contract {
    ^bb0(%a: f32, %b: f32, %c: f32):
      %p = arith.mulf %a, %b : f32
      %s = arith.addf %c, %p : f32
      ukernel.yield %s : f32
    } epilogue {
    ^bb0(%acc: f32):
      %c = arith.constant 1.0 : f32
      %y = arith.addf %acc, %c : f32
      ukernel.yield %y : f32
    } -> tensor<?x?xf32>
  // CHECK: ukernel.workload ins(%{{.*}}, %{{.*}} : memref<4x8xf32>, memref<8x4xf32>)
  // CHECK-NOT: ukernel.workload
  ukernel.workload ins(%X, %Y : memref<4x8xf32>, memref<8x4xf32>)
    outs(%Z : memref<4x4xf32>) maps = [#mk, #kn, #mn]
    contract {
    ^bb0(%a: f32, %b: f32, %c: f32):
      %p = arith.mulf %a, %b : f32
      %s = arith.addf %c, %p : f32
      ukernel.yield %s : f32
    }
  %unused = ukernel.workload ins(%A, %B : tensor<?x8xf32>, tensor<8x?xf32>)
    outs(%r : tensor<?x?xf32>) maps = [#mk, #kn, #mn]
    contract {
    ^bb0(%a: f32, %b: f32, %c: f32):
      %p = arith.mulf %a, %b : f32
      %s = arith.addf %c, %p : f32
      ukernel.yield %s : f32
    } -> tensor<?x?xf32>
  // CHECK: %[[D:.*]] = tensor.dim %[[O]], %{{.*}}
  // CHECK: return %[[R]], %[[D]]
  %d = tensor.dim %r, %c0 : tensor<?x?xf32>
  return %r, %d, %one : tensor<?x?xf32>, index, f32
}

// -----

#mk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>

// Casts to less static types fold into the operands.
// CHECK-LABEL: func.func @casts
// CHECK-SAME: %[[A:[a-zA-Z0-9]*]]: tensor<4x8xf32>
func.func @casts(%A: tensor<4x8xf32>, %B: tensor<8x?xf32>, %O: tensor<?x?xf32>) -> tensor<?x?xf32> {
  // CHECK: ukernel.workload ins(%[[A]], %{{.*}} : tensor<4x8xf32>, tensor<8x?xf32>)
  %a = tensor.cast %A : tensor<4x8xf32> to tensor<?x?xf32>
  %r = ukernel.workload ins(%a, %B : tensor<?x?xf32>, tensor<8x?xf32>)
    outs(%O : tensor<?x?xf32>) maps = [#mk, #kn, #mn]
    contract {
    ^bb0(%x: f32, %y: f32, %c: f32):
      %p = arith.mulf %x, %y : f32
      %s = arith.addf %c, %p : f32
      ukernel.yield %s : f32
    } -> tensor<?x?xf32>
  return %r : tensor<?x?xf32>
}

// CHECK-LABEL: func.func @asserts
// CHECK-NEXT: %[[FALSE:.*]] = arith.constant false
// CHECK-NEXT: ukernel.assert %[[FALSE]], "never holds"
// CHECK-NEXT: return
func.func @asserts() {
  %true = arith.constant true
  %false = arith.constant false
  ukernel.assert %true, "always holds"
  ukernel.assert %false, "never holds"
  return
}
