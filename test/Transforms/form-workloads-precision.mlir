// RUN: ftuner-test-opt %s -ukernel-normalize-linalg -ukernel-form-workloads=precision=tf32 -split-input-file | FileCheck %s --implicit-check-not=truncated
// RUN: ftuner-test-opt %s -ukernel-normalize-linalg -ukernel-form-workloads=precision=tf32-truncate -split-input-file | FileCheck %s --check-prefix=TRUNCATED
// RUN: not ftuner-test-opt %s -ukernel-form-workloads=precision=tf16 2>&1 | FileCheck %s --check-prefix=UNKNOWN
// RUN: ftuner-test-opt %s -ukernel-normalize-linalg -ukernel-form-workloads -split-input-file | FileCheck %s --check-prefix=NONE

// Products of f32 may round their factors to tf32, whatever these are cast
// from; others have narrower types of their own.

// NONE-NOT: precision

// TRUNCATED-COUNT-3: precision = tf32 truncated
// TRUNCATED-NOT: precision

// UNKNOWN: option --precision: expected one of f32, tf32, tf32-truncate, but got 'tf16'

// CHECK-LABEL: func.func @plain
// CHECK: ukernel.workload
// CHECK: precision = tf32
func.func @plain(%a: tensor<4x16xf32>, %b: tensor<16x8xf32>) -> tensor<4x8xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4x8xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<4x8xf32>) -> tensor<4x8xf32>
  %r = linalg.matmul ins(%a, %b : tensor<4x16xf32>, tensor<16x8xf32>) outs(%f : tensor<4x8xf32>) -> tensor<4x8xf32>
  return %r : tensor<4x8xf32>
}

// -----

// Weights of 16 bits.
// CHECK-LABEL: func.func @beside_half
// CHECK: ukernel.workload ins(%{{.*}}, %{{.*}} : tensor<4x16xf32>, tensor<16x8xf16>)
// CHECK: precision = tf32
func.func @beside_half(%a: tensor<4x16xf32>, %b: tensor<16x8xf16>) -> tensor<4x8xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4x8xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<4x8xf32>) -> tensor<4x8xf32>
  %r = linalg.matmul ins(%a, %b : tensor<4x16xf32>, tensor<16x8xf16>) outs(%f : tensor<4x8xf32>) -> tensor<4x8xf32>
  return %r : tensor<4x8xf32>
}

// -----

// Weights of 8 bits by a scale for each column, which is part of the product.
// CHECK-LABEL: func.func @dequantized
// CHECK-NOT: linalg.generic
// CHECK: ukernel.workload ins(%{{.*}}, %{{.*}} : tensor<4x16xf32>, tensor<16x8xi8>) inputs(%{{.*}} : tensor<8xf32>)
// CHECK: precision = tf32
#kn = affine_map<(k, n) -> (k, n)>
#n = affine_map<(k, n) -> (n)>
func.func @dequantized(%a: tensor<4x16xf32>, %b: tensor<16x8xi8>, %scale: tensor<8xf32>) -> tensor<4x8xf32> {
  %zero = arith.constant 0.0 : f32
  %eb = tensor.empty() : tensor<16x8xf32>
  %w = linalg.generic {indexing_maps = [#kn, #n, #kn], iterator_types = ["parallel", "parallel"]}
      ins(%b, %scale : tensor<16x8xi8>, tensor<8xf32>) outs(%eb : tensor<16x8xf32>) {
    ^bb0(%x: i8, %s: f32, %o: f32):
      %y = arith.sitofp %x : i8 to f32
      %z = arith.mulf %y, %s : f32
      linalg.yield %z : f32
  } -> tensor<16x8xf32>
  %e = tensor.empty() : tensor<4x8xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<4x8xf32>) -> tensor<4x8xf32>
  %r = linalg.matmul ins(%a, %w : tensor<4x16xf32>, tensor<16x8xf32>) outs(%f : tensor<4x8xf32>) -> tensor<4x8xf32>
  return %r : tensor<4x8xf32>
}

// -----

// CHECK-LABEL: func.func @half
// CHECK-NOT: precision
func.func @half(%a: tensor<4x16xf16>, %b: tensor<16x8xf16>) -> tensor<4x8xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4x8xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<4x8xf32>) -> tensor<4x8xf32>
  %r = linalg.matmul ins(%a, %b : tensor<4x16xf16>, tensor<16x8xf16>) outs(%f : tensor<4x8xf32>) -> tensor<4x8xf32>
  return %r : tensor<4x8xf32>
}

// -----

// CHECK-LABEL: func.func @bytes
// CHECK-NOT: precision
func.func @bytes(%a: tensor<4x16xi8>, %b: tensor<16x8xi8>) -> tensor<4x8xi32> {
  %zero = arith.constant 0 : i32
  %e = tensor.empty() : tensor<4x8xi32>
  %f = linalg.fill ins(%zero : i32) outs(%e : tensor<4x8xi32>) -> tensor<4x8xi32>
  %r = linalg.matmul ins(%a, %b : tensor<4x16xi8>, tensor<16x8xi8>) outs(%f : tensor<4x8xi32>) -> tensor<4x8xi32>
  return %r : tensor<4x8xi32>
}
