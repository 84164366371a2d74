// RUN: ftuner-test-opt %s -ukernel-normalize-linalg -ukernel-form-workloads -split-input-file | FileCheck %s

// What products of other types than f32 become: the accumulator is in f32 or
// i32, and the epilogue rounds it where the program's result is narrower.

// CHECK-LABEL: func.func @half
// CHECK-DAG: %[[ZERO:.*]] = arith.constant 0.0{{0*}}e+00 : f32
// CHECK: ukernel.workload ins(%{{.*}}, %{{.*}} : tensor<?x16xf16>, tensor<16x8xf16>) init(%[[ZERO]] : f32) outs(%{{.*}} : tensor<?x8xf16>)
// CHECK: ^bb0(%[[A:.*]]: f16, %[[B:.*]]: f16, %[[C:.*]]: f32):
// CHECK-DAG: %[[X:.*]] = arith.extf %[[A]] : f16 to f32
// CHECK-DAG: %[[Y:.*]] = arith.extf %[[B]] : f16 to f32
// CHECK: %[[P:.*]] = arith.mulf %[[X]], %[[Y]] : f32
// CHECK: %[[S:.*]] = arith.addf %[[C]], %[[P]] : f32
// CHECK: ukernel.yield %[[S]] : f32
// CHECK: } epilogue {
// CHECK: ^bb0(%[[ACC:.*]]: f32):
// CHECK: %[[R:.*]] = arith.truncf %[[ACC]] : f32 to f16
// CHECK: ukernel.yield %[[R]] : f16
func.func @half(%a: tensor<?x16xf16>, %b: tensor<16x8xf16>) -> tensor<?x8xf16> {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f16
  %m = tensor.dim %a, %c0 : tensor<?x16xf16>
  %e = tensor.empty(%m) : tensor<?x8xf16>
  %f = linalg.fill ins(%zero : f16) outs(%e : tensor<?x8xf16>) -> tensor<?x8xf16>
  %r = linalg.matmul ins(%a, %b : tensor<?x16xf16>, tensor<16x8xf16>) outs(%f : tensor<?x8xf16>) -> tensor<?x8xf16>
  return %r : tensor<?x8xf16>
}

// -----

// A result in f32 is the accumulator: no epilogue.
// CHECK-LABEL: func.func @wide_result
// CHECK: ukernel.workload ins(%{{.*}}, %{{.*}} : tensor<4x16xbf16>, tensor<16x8xbf16>) init(%{{.*}} : f32) outs(%{{.*}} : tensor<4x8xf32>)
// CHECK: arith.extf {{.*}} : bf16 to f32
// CHECK-NOT: epilogue
// CHECK: return
func.func @wide_result(%a: tensor<4x16xbf16>, %b: tensor<16x8xbf16>) -> tensor<4x8xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4x8xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<4x8xf32>) -> tensor<4x8xf32>
  %r = linalg.matmul ins(%a, %b : tensor<4x16xbf16>, tensor<16x8xbf16>) outs(%f : tensor<4x8xf32>) -> tensor<4x8xf32>
  return %r : tensor<4x8xf32>
}

// -----

// The program rounds the product, then adds the bias in bf16. A constant start
// is widened: 1.1 is 1.1015625 in bf16.
// CHECK-LABEL: func.func @rounds_before_bias
// CHECK-DAG: %[[START:.*]] = arith.constant 1.1015625{{.*}} : f32
// CHECK: ukernel.workload {{.*}} init(%[[START]] : f32) extras(%{{.*}} : tensor<8xbf16>)
// CHECK: } epilogue {
// CHECK: ^bb0(%[[ACC:.*]]: f32, %[[BIAS:.*]]: bf16):
// CHECK: %[[R:.*]] = arith.truncf %[[ACC]] : f32 to bf16
// CHECK: %[[S:.*]] = arith.addf %[[R]], %[[BIAS]] : bf16
// CHECK: ukernel.yield %[[S]] : bf16
#ij = affine_map<(i, j) -> (i, j)>
func.func @rounds_before_bias(%a: tensor<4x16xbf16>, %b: tensor<16x8xbf16>, %bias: tensor<8xbf16>) -> tensor<4x8xbf16> {
  %start = arith.constant 1.1 : bf16
  %e = tensor.empty() : tensor<4x8xbf16>
  %f = linalg.fill ins(%start : bf16) outs(%e : tensor<4x8xbf16>) -> tensor<4x8xbf16>
  %p = linalg.matmul ins(%a, %b : tensor<4x16xbf16>, tensor<16x8xbf16>) outs(%f : tensor<4x8xbf16>) -> tensor<4x8xbf16>
  %r = linalg.generic {indexing_maps = [#ij, affine_map<(i, j) -> (j)>, #ij], iterator_types = ["parallel", "parallel"]} ins(%p, %bias : tensor<4x8xbf16>, tensor<8xbf16>) outs(%e : tensor<4x8xbf16>) {
  ^bb0(%x: bf16, %y: bf16, %o: bf16):
    %s = arith.addf %x, %y : bf16
    linalg.yield %s : bf16
  } -> tensor<4x8xbf16>
  return %r : tensor<4x8xbf16>
}

// -----

// Tensors and scalars to start from keep their type: they are extended when the
// sum starts from them. A tensor of our own is accumulated in place.
// CHECK-LABEL: func.func @starts
// CHECK-SAME: %[[C:[a-z0-9]*]]: tensor<4x8xf16>, %[[S:[a-z0-9]*]]: f16)
// CHECK: %[[P:.*]] = ukernel.workload {{.*}} init(%[[C]] : tensor<4x8xf16>)
// CHECK: ^bb0(%{{.*}}: f16, %{{.*}}: f16, %{{.*}}: f32):
// CHECK: } epilogue {
// CHECK: %[[Q:.*]] = ukernel.workload ins(%{{.*}}, %{{.*}} : {{.*}}) outs(%[[P]] : tensor<4x8xf16>)
// CHECK: ^bb0(%{{.*}}: f16, %{{.*}}: f16, %{{.*}}: f32):
// CHECK: } epilogue {
// CHECK: ukernel.workload {{.*}} init(%[[S]] : f16)
func.func @starts(%a: tensor<4x16xf16>, %b: tensor<16x8xf16>, %c: tensor<4x8xf16>, %s: f16) -> (tensor<4x8xf16>, tensor<4x8xf16>) {
  %p = linalg.matmul ins(%a, %b : tensor<4x16xf16>, tensor<16x8xf16>) outs(%c : tensor<4x8xf16>) -> tensor<4x8xf16>
  %q = linalg.matmul ins(%a, %b : tensor<4x16xf16>, tensor<16x8xf16>) outs(%p : tensor<4x8xf16>) -> tensor<4x8xf16>
  %e = tensor.empty() : tensor<4x8xf16>
  %f = linalg.fill ins(%s : f16) outs(%e : tensor<4x8xf16>) -> tensor<4x8xf16>
  %r = linalg.matmul ins(%a, %b : tensor<4x16xf16>, tensor<16x8xf16>) outs(%f : tensor<4x8xf16>) -> tensor<4x8xf16>
  return %q, %r : tensor<4x8xf16>, tensor<4x8xf16>
}

// -----

// Integers, with and without a sign.
// CHECK-LABEL: func.func @integers
// CHECK: ukernel.workload ins(%{{.*}}, %{{.*}} : tensor<4x16xi8>, tensor<16x8xi8>) init(%{{.*}} : i32) outs(%{{.*}} : tensor<4x8xi32>)
// CHECK: ^bb0(%[[A:.*]]: i8, %[[B:.*]]: i8, %[[C:.*]]: i32):
// CHECK-DAG: arith.extui %[[A]] : i8 to i32
// CHECK-DAG: arith.extsi %[[B]] : i8 to i32
// CHECK: arith.muli
// CHECK: arith.addi
// CHECK-NOT: epilogue
// CHECK: return
func.func @integers(%a: tensor<4x16xi8>, %b: tensor<16x8xi8>) -> tensor<4x8xi32> {
  %zero = arith.constant 0 : i32
  %e = tensor.empty() : tensor<4x8xi32>
  %f = linalg.fill ins(%zero : i32) outs(%e : tensor<4x8xi32>) -> tensor<4x8xi32>
  %r = linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%a, %b : tensor<4x16xi8>, tensor<16x8xi8>) outs(%f : tensor<4x8xi32>) {
  ^bb0(%x: i8, %y: i8, %c: i32):
    %u = arith.extui %x : i8 to i32
    %s = arith.extsi %y : i8 to i32
    %p = arith.muli %u, %s : i32
    %t = arith.addi %c, %p : i32
    linalg.yield %t : i32
  } -> tensor<4x8xi32>
  return %r : tensor<4x8xi32>
}

// -----

// A cast alone is read through: memory holds the narrow type. Casts that keep
// every value are: i8 to f16 is one.
// CHECK-LABEL: func.func @cast_weight
// CHECK-SAME: %[[A:[a-z0-9]*]]: tensor<4x16xf16>, %[[B:[a-z0-9]*]]: tensor<8x16xi8>)
// CHECK-NOT: linalg
// CHECK: ukernel.workload ins(%[[A]], %[[B]] : tensor<4x16xf16>, tensor<8x16xi8>) {{.*}} outs(%{{.*}} : tensor<4x8xf16>)
// CHECK: ^bb0(%[[X:.*]]: f16, %[[Y:.*]]: i8, %{{.*}}: f32):
// CHECK-DAG: %[[H:.*]] = arith.sitofp %[[Y]] : i8 to f16
// CHECK-DAG: %[[F:.*]] = arith.extf %[[H]] : f16 to f32
// CHECK-DAG: %[[G:.*]] = arith.extf %[[X]] : f16 to f32
// CHECK: arith.mulf %[[G]], %[[F]] : f32
#ij = affine_map<(i, j) -> (i, j)>
func.func @cast_weight(%a: tensor<4x16xf16>, %b: tensor<8x16xi8>) -> tensor<4x8xf16> {
  %zero = arith.constant 0.0 : f16
  %w = tensor.empty() : tensor<16x8xf16>
  %h = linalg.generic {indexing_maps = [affine_map<(i, j) -> (j, i)>, #ij], iterator_types = ["parallel", "parallel"]} ins(%b : tensor<8x16xi8>) outs(%w : tensor<16x8xf16>) {
  ^bb0(%x: i8, %o: f16):
    %y = arith.sitofp %x : i8 to f16
    linalg.yield %y : f16
  } -> tensor<16x8xf16>
  %e = tensor.empty() : tensor<4x8xf16>
  %f = linalg.fill ins(%zero : f16) outs(%e : tensor<4x8xf16>) -> tensor<4x8xf16>
  %r = linalg.matmul ins(%a, %h : tensor<4x16xf16>, tensor<16x8xf16>) outs(%f : tensor<4x8xf16>) -> tensor<4x8xf16>
  return %r : tensor<4x8xf16>
}

// -----

// Casts that round are part of the product, too, and stay: f32 to f16, i16 to
// f16, which does not hold all of them. Casts to what codegen paths do not
// multiply are operators of their own.
// CHECK-LABEL: func.func @rounding_casts
// CHECK: ukernel.workload ins(%{{.*}}, %{{.*}} : tensor<4x16xf32>, tensor<16x8xi16>)
// CHECK: arith.truncf {{.*}} : f32 to f16
// CHECK: arith.sitofp {{.*}} : i16 to f16
// CHECK: arith.extf {{.*}} f32 to f64
// CHECK: linalg.matmul {{.*}}xf64
func.func @rounding_casts(%a: tensor<4x16xf32>, %b: tensor<16x8xi16>, %c: tensor<4x8xf16>, %d: tensor<16x8xf64>, %g: tensor<4x8xf64>) -> (tensor<4x8xf16>, tensor<4x8xf64>) {
  %ea = tensor.empty() : tensor<4x16xf16>
  %ha = linalg.copy ins(%a : tensor<4x16xf32>) outs(%ea : tensor<4x16xf16>) -> tensor<4x16xf16>
  %eb = tensor.empty() : tensor<16x8xf16>
  %hb = linalg.copy ins(%b : tensor<16x8xi16>) outs(%eb : tensor<16x8xf16>) -> tensor<16x8xf16>
  %r = linalg.matmul ins(%ha, %hb : tensor<4x16xf16>, tensor<16x8xf16>) outs(%c : tensor<4x8xf16>) -> tensor<4x8xf16>
  %ed = tensor.empty() : tensor<4x16xf64>
  %hd = linalg.copy ins(%a : tensor<4x16xf32>) outs(%ed : tensor<4x16xf64>) -> tensor<4x16xf64>
  %s = linalg.matmul ins(%hd, %d : tensor<4x16xf64>, tensor<16x8xf64>) outs(%g : tensor<4x8xf64>) -> tensor<4x8xf64>
  return %r, %s : tensor<4x8xf16>, tensor<4x8xf64>
}

// -----

// Factors that the program rounds, or products: no sum of products.
// CHECK-LABEL: func.func @rounded_products
// CHECK-NOT: ukernel.workload
// CHECK: return
func.func @rounded_products(%a: tensor<4x16xf16>, %b: tensor<16x8xf16>, %c: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %r = linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%a, %b : tensor<4x16xf16>, tensor<16x8xf16>) outs(%c : tensor<4x8xf32>) {
  ^bb0(%x: f16, %y: f16, %s: f32):
    %p = arith.mulf %x, %y : f16
    %w = arith.extf %p : f16 to f32
    %t = arith.addf %s, %w : f32
    linalg.yield %t : f32
  } -> tensor<4x8xf32>
  return %r : tensor<4x8xf32>
}
