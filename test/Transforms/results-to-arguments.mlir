// RUN: ftuner-opt %s --ukernel-results-to-arguments -split-input-file -verify-diagnostics | FileCheck %s

// What is allocated and returned is computed in place.
// CHECK-LABEL: func.func @whole(
// CHECK-SAME:    %[[X:.*]]: memref<?xf32>, %[[OUT:.*]]: memref<?xf32>)
// CHECK-NOT:     memref.alloc
// CHECK:         linalg.negf ins(%[[X]] : memref<?xf32>) outs(%[[OUT]] : memref<?xf32>)
// CHECK-NOT:     memref.copy
// CHECK:         return{{$}}
func.func @whole(%x: memref<?xf32>) -> memref<?xf32>
    attributes {ukernel.abi_type = (tensor<?xf32>) -> tensor<?xf32>} {
  %c0 = arith.constant 0 : index
  %n = memref.dim %x, %c0 : memref<?xf32>
  %r = memref.alloc(%n) : memref<?xf32>
  linalg.negf ins(%x : memref<?xf32>) outs(%r : memref<?xf32>)
  return %r : memref<?xf32>
}

// Also through a reshape, with the sizes of the allocation.
// CHECK-LABEL: func.func @reshaped(
// CHECK-SAME:    %{{.*}}: memref<?x8xf32>, %[[B:.*]]: index, %[[S:.*]]: index, %[[OUT:.*]]: memref<?x?x8xf32>)
// CHECK:         %[[BS:.*]] = arith.muli %[[B]], %[[S]]
// CHECK:         %[[R:.*]] = memref.reinterpret_cast %[[OUT]] to offset: [0], sizes: [%[[BS]], 8], strides: [8, 1] : memref<?x?x8xf32> to memref<?x8xf32>
// CHECK:         linalg.negf {{.*}} outs(%[[R]] : memref<?x8xf32>)
// CHECK-NOT:     memref.copy
func.func @reshaped(%x: memref<?x8xf32>, %b: index, %s: index) -> memref<?x?x8xf32>
    attributes {ukernel.abi_type = (tensor<?x8xf32>, index, index) -> tensor<?x?x8xf32>} {
  %bs = arith.muli %b, %s : index
  %r = memref.alloc(%bs) : memref<?x8xf32>
  linalg.negf ins(%x : memref<?x8xf32>) outs(%r : memref<?x8xf32>)
  %e = memref.expand_shape %r [[0, 1], [2]] output_shape [%b, %s, 8] : memref<?x8xf32> into memref<?x?x8xf32>
  return %e : memref<?x?x8xf32>
}

// After two reshapes, the result has the type of the allocation, but other
// sizes: the allocation is a view of the result all the same.
// CHECK-LABEL: func.func @regrouped(
// CHECK-SAME:    %{{.*}}: index, %{{.*}}: index, %[[N:[a-z0-9]+]]: index, %[[OUT:[a-z0-9]+]]: memref<?x?xf32>)
// CHECK:         %[[VIEW:.*]] = memref.reinterpret_cast %[[OUT]] to offset: [0], sizes: [%{{.*}}, %[[N]]], strides: [%{{.*}}, 1] : memref<?x?xf32> to memref<?x?xf32>
// CHECK:         linalg.fill ins(%{{.*}} : f32) outs(%[[VIEW]] : memref<?x?xf32>)
func.func @regrouped(%b: index, %m: index, %n: index) -> memref<?x?xf32>
    attributes {ukernel.abi_type = (index, index, index) -> tensor<?x?xf32>} {
  %zero = arith.constant 0.0 : f32
  %rows = arith.muli %b, %m : index
  %r = memref.alloc(%rows, %n) : memref<?x?xf32>
  linalg.fill ins(%zero : f32) outs(%r : memref<?x?xf32>)
  %e = memref.expand_shape %r [[0, 1], [2]] output_shape [%b, %m, %n] : memref<?x?xf32> into memref<?x?x?xf32>
  %c = memref.collapse_shape %e [[0], [1, 2]] : memref<?x?x?xf32> into memref<?x?xf32>
  return %c : memref<?x?xf32>
}

// An argument, and a buffer that another result took, are copied.
// CHECK-LABEL: func.func @copied(
// CHECK-SAME:    %[[X:.*]]: memref<4xf32>, %[[A:.*]]: memref<4xf32>, %[[B:.*]]: memref<4xf32>, %[[C:.*]]: memref<4xf32>)
// CHECK:         linalg.negf {{.*}} outs(%[[B]] : memref<4xf32>)
// CHECK-DAG:     memref.copy %[[X]], %[[A]]
// CHECK-DAG:     memref.copy %[[B]], %[[C]]
func.func @copied(%x: memref<4xf32>) -> (memref<4xf32>, memref<4xf32>, memref<4xf32>)
    attributes {ukernel.abi_type = (tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>)} {
  %r = memref.alloc() : memref<4xf32>
  linalg.negf ins(%x : memref<4xf32>) outs(%r : memref<4xf32>)
  return %x, %r, %r : memref<4xf32>, memref<4xf32>, memref<4xf32>
}

// With several exits, each copies.
// CHECK-LABEL: func.func @exits(
// CHECK-SAME:    %[[X:.*]]: memref<4xf32>, %[[FLAG:.*]]: i1, %[[OUT:.*]]: memref<4xf32>)
// CHECK:         memref.copy %[[X]], %[[OUT]]
// CHECK:         %[[R:.*]] = memref.alloc
// CHECK:         memref.copy %[[R]], %[[OUT]]
func.func @exits(%x: memref<4xf32>, %flag: i1) -> memref<4xf32>
    attributes {ukernel.abi_type = (tensor<4xf32>, i1) -> tensor<4xf32>} {
  cf.cond_br %flag, ^a, ^b
^a:
  return %x : memref<4xf32>
^b:
  %r = memref.alloc() : memref<4xf32>
  linalg.negf ins(%x : memref<4xf32>) outs(%r : memref<4xf32>)
  return %r : memref<4xf32>
}

// -----

// expected-error @below {{expected results on ranked memrefs, but got 'index'}}
func.func @other(%i: index) -> index attributes {ukernel.abi_type = (index) -> index} {
  return %i : index
}
