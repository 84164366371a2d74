// RUN: ftuner-opt %s --ukernel-form-workloads -split-input-file -verify-diagnostics | FileCheck %s

// The result is what it was.
// CHECK-LABEL: func.func @product(
// CHECK:         %[[EMPTY:.*]] = tensor.empty
// CHECK:         ukernel.workload ins(%{{.*}}, %{{.*}}) outs(%[[EMPTY]]
func.func @product(%x: tensor<?x40xf32>, %w: tensor<40x48xf32>) -> tensor<?x48xf32> {
  %c0 = arith.constant 0 : index
  %m = tensor.dim %x, %c0 : tensor<?x40xf32>
  // expected-note @below {{the tensor; linalg.fill would set it}}
  %e = tensor.empty(%m) : tensor<?x48xf32>
  // expected-remark @below {{undefined: linalg.matmul accumulates into a tensor.empty, whose elements nobody has set}}
  %r = linalg.matmul ins(%x, %w : tensor<?x40xf32>, tensor<40x48xf32>) outs(%e : tensor<?x48xf32>) -> tensor<?x48xf32>
  return %r : tensor<?x48xf32>
}

// -----

// Also what is no workload, and behind reshapes.
func.func @double(%x: tensor<?x40xf64>, %w: tensor<40x48xf64>, %m: index) -> tensor<?x48xf64> {
  // expected-note @below {{the tensor; linalg.fill would set it}}
  %e = tensor.empty(%m) : tensor<?xf64>
  %n = arith.constant 1 : index
  %s = tensor.expand_shape %e [[0, 1]] output_shape [%n, 48] : tensor<?xf64> into tensor<?x48xf64>
  // expected-remark @+2 {{undefined: linalg.matmul accumulates into a tensor.empty}}
  // expected-remark @+1 {{fallback}}
  %r = linalg.matmul ins(%x, %w : tensor<?x40xf64>, tensor<40x48xf64>) outs(%s : tensor<?x48xf64>) -> tensor<?x48xf64>
  return %r : tensor<?x48xf64>
}

// -----

// Elements that are read, and destinations that are not.
func.func @elements(%x: tensor<8xf32>) -> tensor<8xf32> {
  // expected-note @below {{the tensor}}
  %e = tensor.empty() : tensor<8xf32>
  // expected-remark @+2 {{undefined: linalg.add reads a tensor.empty}}
  // expected-remark @+1 {{fallback}}
  %s = linalg.add ins(%x, %e : tensor<8xf32>, tensor<8xf32>) outs(%e : tensor<8xf32>) -> tensor<8xf32>
  // expected-remark @below {{fallback}}
  %r = linalg.exp ins(%s : tensor<8xf32>) outs(%e : tensor<8xf32>) -> tensor<8xf32>
  return %r : tensor<8xf32>
}

// -----

// Once, however often workloads are formed.
func.func @both(%x: tensor<?x40xf32>, %w: tensor<40x48xf32>, %o: tensor<?x48xf32>, %h: tensor<?x40xf64>, %v: tensor<40x48xf64>, %m: index) -> (tensor<?x48xf32>, tensor<?x48xf64>) {
  // expected-note @below {{the tensor; linalg.fill would set it}}
  %e = tensor.empty(%m) : tensor<?x48xf64>
  %r = linalg.matmul ins(%x, %w : tensor<?x40xf32>, tensor<40x48xf32>) outs(%o : tensor<?x48xf32>) -> tensor<?x48xf32>
  // expected-remark @+2 {{undefined: linalg.matmul accumulates into a tensor.empty}}
  // expected-remark @+1 {{fallback}}
  %s = linalg.matmul ins(%h, %v : tensor<?x40xf64>, tensor<40x48xf64>) outs(%e : tensor<?x48xf64>) -> tensor<?x48xf64>
  return %r, %s : tensor<?x48xf32>, tensor<?x48xf64>
}
