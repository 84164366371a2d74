// RUN: ftuner-opt %s --ukernel-normalize-linalg | FileCheck %s

// A negative pad is a slice; what is added is padded.

// CHECK-LABEL: func @cut_and_add
// CHECK-SAME: %[[X:.*]]: tensor<?x5xf32>
// CHECK: %[[SIZE:.*]] = arith.subi
// CHECK: %[[SLICE:.*]] = tensor.extract_slice %[[X]][1, 0] [%[[SIZE]], 3] [1, 1]
// CHECK: tensor.pad %[[SLICE]] low[0, 1] high[2, 0]
func.func @cut_and_add(%x: tensor<?x5xf32>) -> tensor<?x4xf32> {
  %zero = arith.constant 0.0 : f32
  %0 = tensor.pad %x low[-1, 1] high[2, -2] {
  ^bb0(%i: index, %j: index):
    tensor.yield %zero : f32
  } : tensor<?x5xf32> to tensor<?x4xf32>
  return %0 : tensor<?x4xf32>
}

// CHECK-LABEL: func @cut
// CHECK-NOT: tensor.pad
// CHECK: tensor.extract_slice %{{.*}}[1] [2] [1] : tensor<5xf32> to tensor<2xf32>
func.func @cut(%x: tensor<5xf32>) -> tensor<2xf32> {
  %zero = arith.constant 0.0 : f32
  %0 = tensor.pad %x low[-1] high[-2] {
  ^bb0(%i: index):
    tensor.yield %zero : f32
  } : tensor<5xf32> to tensor<2xf32>
  return %0 : tensor<2xf32>
}
