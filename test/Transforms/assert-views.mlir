// RUN: ftuner-opt %s --ukernel-assert-views | FileCheck %s

// A cast to a static size is a claim; one to a dynamic size is none.

// CHECK-LABEL: func @claims
// CHECK-SAME: %[[X:.*]]: tensor<?x?x3xf32>
// CHECK: %[[DIM:.*]] = tensor.dim %[[X]], %{{.*}} : tensor<?x?x3xf32>
// CHECK: %[[SAME:.*]] = arith.cmpi eq, %[[DIM]], %{{.*}} : index
// CHECK: cf.assert %[[SAME]], "expected size 4 of dimension 1"
// CHECK-NOT: cf.assert
func.func @claims(%x: tensor<?x?x3xf32>) -> (tensor<?x4x3xf32>, tensor<?x?x?xf32>) {
  %0 = tensor.cast %x : tensor<?x?x3xf32> to tensor<?x4x3xf32>
  %1 = tensor.cast %x : tensor<?x?x3xf32> to tensor<?x?x?xf32>
  return %0, %1 : tensor<?x4x3xf32>, tensor<?x?x?xf32>
}

// Ranks say nothing of sizes here.
// CHECK-LABEL: func @ranks
// CHECK-NOT: cf.assert
func.func @ranks(%x: tensor<*xf32>) -> tensor<4xf32> {
  %0 = tensor.cast %x : tensor<*xf32> to tensor<4xf32>
  return %0 : tensor<4xf32>
}

// A pad of as many elements as it takes away is not folded.
// CHECK-LABEL: func @moved
// CHECK: tensor.pad %{{.*}} nofold low[1] high[-1]
// CHECK-LABEL: func @added
// CHECK: tensor.pad %{{.*}} low[1] high[0]
func.func @moved(%x: tensor<3xf32>) -> tensor<3xf32> {
  %c = arith.constant 1.5 : f32
  %p = tensor.pad %x low[1] high[-1] {
  ^bb0(%i: index):
    tensor.yield %c : f32
  } : tensor<3xf32> to tensor<3xf32>
  return %p : tensor<3xf32>
}

func.func @added(%x: tensor<3xf32>) -> tensor<4xf32> {
  %c = arith.constant 1.5 : f32
  %p = tensor.pad %x low[1] high[0] {
  ^bb0(%i: index):
    tensor.yield %c : f32
  } : tensor<3xf32> to tensor<4xf32>
  return %p : tensor<4xf32>
}
