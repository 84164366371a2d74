// RUN: ftuner-opt %s --ukernel-prepare-host --ftuner-bufferize | FileCheck %s

// A chain needs one intermediate and no copy.
// CHECK-LABEL: func.func @chain(
// CHECK-SAME:    %[[X:.*]]: memref<?x8xf32>, %[[W:.*]]: memref<8x4xf32>, %[[OUT:.*]]: memref<?x4xf32>)
// CHECK-NOT:     memref.copy
// CHECK:         %[[T:.*]] = memref.alloc(%{{.*}}) {{.*}} : memref<?x8xf32>
// CHECK:         linalg.negf ins(%[[X]] : {{.*}}) outs(%[[T]] : memref<?x8xf32>)
// CHECK:         linalg.fill {{.*}} outs(%[[OUT]] : memref<?x4xf32>)
// CHECK:         linalg.matmul ins(%[[T]], %[[W]] : {{.*}}) outs(%[[OUT]] : memref<?x4xf32>)
// CHECK-NOT:     memref.copy
// CHECK:         return
func.func @chain(%x: tensor<?x8xf32>, %w: tensor<8x4xf32>) -> tensor<?x4xf32> {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %m = tensor.dim %x, %c0 : tensor<?x8xf32>
  %e = tensor.empty(%m) : tensor<?x8xf32>
  %t = linalg.negf ins(%x : tensor<?x8xf32>) outs(%e : tensor<?x8xf32>) -> tensor<?x8xf32>
  %o = tensor.empty(%m) : tensor<?x4xf32>
  %f = linalg.fill ins(%zero : f32) outs(%o : tensor<?x4xf32>) -> tensor<?x4xf32>
  %r = linalg.matmul ins(%t, %w : tensor<?x8xf32>, tensor<8x4xf32>) outs(%f : tensor<?x4xf32>) -> tensor<?x4xf32>
  return %r : tensor<?x4xf32>
}

// An argument in `outs` is copied, never written.
// CHECK-LABEL: func.func @accumulate(
// CHECK-SAME:    %[[X:[^:]*]]: memref<4x8xf32>, %[[W:[^:]*]]: memref<8x4xf32>, %[[C:[^:]*]]: memref<4x4xf32>, %[[OUT:[^:]*]]: memref<4x4xf32>)
// CHECK:         memref.copy %[[C]], %[[OUT]]
// CHECK:         linalg.matmul {{.*}} outs(%[[OUT]] : memref<4x4xf32>)
func.func @accumulate(%x: tensor<4x8xf32>, %w: tensor<8x4xf32>, %c: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %r = linalg.matmul ins(%x, %w : tensor<4x8xf32>, tensor<8x4xf32>) outs(%c : tensor<4x4xf32>) -> tensor<4x4xf32>
  return %r : tensor<4x4xf32>
}

// A loop runs on one buffer, that of the result.
// CHECK-LABEL: func.func @loop(
// CHECK-SAME:    %[[X:[^:]*]]: memref<4xf32>, %{{.*}}: index, %[[OUT:[^:]*]]: memref<4xf32>)
// CHECK:         memref.copy %[[X]], %[[OUT]]
// CHECK:         scf.for
// CHECK-NEXT:      linalg.add ins(%[[OUT]], %[[OUT]] : {{.*}}) outs(%[[OUT]] : memref<4xf32>)
// CHECK-NEXT:    }
// CHECK-NEXT:    return
func.func @loop(%x: tensor<4xf32>, %n: index) -> tensor<4xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%a = %x) -> tensor<4xf32> {
    %e = tensor.empty() : tensor<4xf32>
    %d = linalg.add ins(%a, %a : tensor<4xf32>, tensor<4xf32>) outs(%e : tensor<4xf32>) -> tensor<4xf32>
    scf.yield %d : tensor<4xf32>
  }
  return %r : tensor<4xf32>
}

// A loop whose step reads what it overwrites needs a second buffer, and writes
// back.
// CHECK-LABEL: func.func @turn(
// CHECK:         scf.for
// CHECK:           linalg.transpose ins(%[[OUT:.*]] : {{.*}}) outs(%[[T:.*]] : memref<4x4xf32>)
// CHECK:           memref.copy %[[T]], %[[OUT]]
func.func @turn(%x: tensor<4x4xf32>, %n: index) -> tensor<4x4xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%a = %x) -> tensor<4x4xf32> {
    %e = tensor.empty() : tensor<4x4xf32>
    %d = linalg.transpose ins(%a : tensor<4x4xf32>) outs(%e : tensor<4x4xf32>) permutation = [1, 0]
    scf.yield %d : tensor<4x4xf32>
  }
  return %r : tensor<4x4xf32>
}
