// RUN: ftuner-test-opt %s -ukernel-normalize-linalg -ukernel-form-workloads -split-input-file | FileCheck %s

// Elementwise operators before a product that become part of it.

// Autocast: both factors are rounded on the way in.
// CHECK-LABEL: func.func @round
// CHECK-NOT: linalg.generic
// CHECK: ukernel.workload ins(%arg0, %arg1 : tensor<?x16xf32>, tensor<16x8xf32>) init(
// CHECK: ^bb0(%[[A:.*]]: f32, %[[B:.*]]: f32, %[[C:.*]]: f32):
// CHECK-DAG: %[[AH:.*]] = arith.truncf %[[A]] : f32 to bf16
// CHECK-DAG: %[[BH:.*]] = arith.truncf %[[B]] : f32 to bf16
// CHECK-DAG: %[[X:.*]] = arith.extf %[[AH]] : bf16 to f32
// CHECK-DAG: %[[Y:.*]] = arith.extf %[[BH]] : bf16 to f32
// CHECK: %[[P:.*]] = arith.mulf %[[X]], %[[Y]] : f32
// CHECK: arith.addf %[[C]], %[[P]] : f32
// CHECK: return
#ij = affine_map<(i, j) -> (i, j)>
module attributes {ukernel.symbols = {T = #ukernel.range<1 to 128>}} {
  func.func @round(%a: tensor<?x16xf32> {ukernel.shape = ["T", 16]}, %b: tensor<16x8xf32>) -> tensor<?x8xf32> {
    %c0 = arith.constant 0 : index
    %zero = arith.constant 0.0 : f32
    %m = tensor.dim %a, %c0 : tensor<?x16xf32>
    %ea = tensor.empty(%m) : tensor<?x16xbf16>
    %eb = tensor.empty() : tensor<16x8xbf16>
    %ah = linalg.generic {indexing_maps = [#ij, #ij], iterator_types = ["parallel", "parallel"]}
        ins(%a : tensor<?x16xf32>) outs(%ea : tensor<?x16xbf16>) {
      ^bb0(%x: f32, %o: bf16):
        %h = arith.truncf %x : f32 to bf16
        linalg.yield %h : bf16
    } -> tensor<?x16xbf16>
    %bh = linalg.generic {indexing_maps = [#ij, #ij], iterator_types = ["parallel", "parallel"]}
        ins(%b : tensor<16x8xf32>) outs(%eb : tensor<16x8xbf16>) {
      ^bb0(%x: f32, %o: bf16):
        %h = arith.truncf %x : f32 to bf16
        linalg.yield %h : bf16
    } -> tensor<16x8xbf16>
    %e = tensor.empty(%m) : tensor<?x8xf32>
    %f = linalg.fill ins(%zero : f32) outs(%e : tensor<?x8xf32>) -> tensor<?x8xf32>
    %r = linalg.matmul ins(%ah, %bh : tensor<?x16xbf16>, tensor<16x8xbf16>) outs(%f : tensor<?x8xf32>) -> tensor<?x8xf32>
    return %r : tensor<?x8xf32>
  }
}

// -----

// Weights of 8 bits with a scale for each column and one for all; the transpose
// is only read in another order.
// CHECK-LABEL: func.func @dequantize
// CHECK-NOT: linalg.generic
// CHECK: ukernel.workload ins(%arg0, %arg1 : tensor<4x16xf16>, tensor<8x16xi8>)
// CHECK-SAME: inputs(%arg2, %arg3 : tensor<8xf16>, f16) init(
// CHECK-SAME: maps = [#[[A:.*]], #[[W:.*]], #[[S:.*]], #[[ONE:.*]], #[[OUT:.*]]]
// CHECK: ^bb0(%{{.*}}: f16, %[[B:.*]]: i8, %[[S:.*]]: f16, %[[T:.*]]: f16, %{{.*}}: f32):
// CHECK: %[[F:.*]] = arith.sitofp %[[B]] : i8 to f16
// CHECK: %[[G:.*]] = arith.mulf %[[F]], %[[S]] : f16
// CHECK: %[[H:.*]] = arith.mulf %[[G]], %[[T]] : f16
// CHECK: arith.extf %[[H]] : f16 to f32
// CHECK: return
#ji = affine_map<(i, j) -> (j, i)>
#j = affine_map<(i, j) -> (j)>
#ij = affine_map<(i, j) -> (i, j)>
func.func @dequantize(%a: tensor<4x16xf16>, %w: tensor<8x16xi8>, %s: tensor<8xf16>, %t: f16) -> tensor<4x8xf32> {
  %zero = arith.constant 0.0 : f32
  %ew = tensor.empty() : tensor<16x8xf16>
  %wh = linalg.generic {indexing_maps = [#ji, #j, #ij], iterator_types = ["parallel", "parallel"]}
      ins(%w, %s : tensor<8x16xi8>, tensor<8xf16>) outs(%ew : tensor<16x8xf16>) {
    ^bb0(%x: i8, %y: f16, %o: f16):
      %f = arith.sitofp %x : i8 to f16
      %g = arith.mulf %f, %y : f16
      %h = arith.mulf %g, %t : f16
      linalg.yield %h : f16
  } -> tensor<16x8xf16>
  %e = tensor.empty() : tensor<4x8xf32>
  %i = linalg.fill ins(%zero : f32) outs(%e : tensor<4x8xf32>) -> tensor<4x8xf32>
  %r = linalg.matmul ins(%a, %wh : tensor<4x16xf16>, tensor<16x8xf16>) outs(%i : tensor<4x8xf32>) -> tensor<4x8xf32>
  return %r : tensor<4x8xf32>
}

// -----

// 2304 columns are 18 tiles, each of which would round the rows again.
// CHECK-LABEL: func.func @too_many_tiles
// CHECK: linalg.generic
// CHECK: arith.truncf
// CHECK: ukernel.workload ins(%{{.*}}, %arg1 : tensor<4x16xf16>, tensor<16x2304xf16>)
#ij = affine_map<(i, j) -> (i, j)>
func.func @too_many_tiles(%a: tensor<4x16xf32>, %b: tensor<16x2304xf16>) -> tensor<4x2304xf32> {
  %zero = arith.constant 0.0 : f32
  %ea = tensor.empty() : tensor<4x16xf16>
  %ah = linalg.generic {indexing_maps = [#ij, #ij], iterator_types = ["parallel", "parallel"]}
      ins(%a : tensor<4x16xf32>) outs(%ea : tensor<4x16xf16>) {
    ^bb0(%x: f32, %o: f16):
      %h = arith.truncf %x : f32 to f16
      linalg.yield %h : f16
  } -> tensor<4x16xf16>
  %e = tensor.empty() : tensor<4x2304xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<4x2304xf32>) -> tensor<4x2304xf32>
  %r = linalg.matmul ins(%ah, %b : tensor<4x16xf16>, tensor<16x2304xf16>) outs(%f : tensor<4x2304xf32>) -> tensor<4x2304xf32>
  return %r : tensor<4x2304xf32>
}

// -----

// Transcendental functions are computed once; so is what others read, too.
// CHECK-LABEL: func.func @not_recomputed
// CHECK-COUNT-2: linalg.generic
// CHECK: ukernel.workload
// CHECK-NOT: inputs
// CHECK: return
#ij = affine_map<(i, j) -> (i, j)>
func.func @not_recomputed(%a: tensor<4x16xf32>, %b: tensor<16x8xf32>) -> (tensor<4x8xf32>, tensor<16x8xf32>) {
  %zero = arith.constant 0.0 : f32
  %two = arith.constant 2.0 : f32
  %ea = tensor.empty() : tensor<4x16xf32>
  %eb = tensor.empty() : tensor<16x8xf32>
  %ah = linalg.generic {indexing_maps = [#ij, #ij], iterator_types = ["parallel", "parallel"]}
      ins(%a : tensor<4x16xf32>) outs(%ea : tensor<4x16xf32>) {
    ^bb0(%x: f32, %o: f32):
      %h = math.exp %x : f32
      linalg.yield %h : f32
  } -> tensor<4x16xf32>
  %bh = linalg.generic {indexing_maps = [#ij, #ij], iterator_types = ["parallel", "parallel"]}
      ins(%b : tensor<16x8xf32>) outs(%eb : tensor<16x8xf32>) {
    ^bb0(%x: f32, %o: f32):
      %h = arith.mulf %x, %two : f32
      linalg.yield %h : f32
  } -> tensor<16x8xf32>
  %e = tensor.empty() : tensor<4x8xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<4x8xf32>) -> tensor<4x8xf32>
  %r = linalg.matmul ins(%ah, %bh : tensor<4x16xf32>, tensor<16x8xf32>) outs(%f : tensor<4x8xf32>) -> tensor<4x8xf32>
  return %r, %bh : tensor<4x8xf32>, tensor<16x8xf32>
}

// -----

// Masks stay: paths do not read vectors of booleans.
// CHECK-LABEL: func.func @masked
// CHECK: linalg.generic
// CHECK: ukernel.workload
// CHECK-NOT: i1
// CHECK: return
#ij = affine_map<(i, j) -> (i, j)>
func.func @masked(%a: tensor<4x16xf16>, %mask: tensor<4x16xi1>, %b: tensor<16x8xf16>) -> tensor<4x8xf32> {
  %zero = arith.constant 0.0 : f32
  %none = arith.constant 0.0 : f16
  %ea = tensor.empty() : tensor<4x16xf16>
  %ah = linalg.generic {indexing_maps = [#ij, #ij, #ij], iterator_types = ["parallel", "parallel"]}
      ins(%a, %mask : tensor<4x16xf16>, tensor<4x16xi1>) outs(%ea : tensor<4x16xf16>) {
    ^bb0(%x: f16, %m: i1, %o: f16):
      %h = arith.select %m, %x, %none : f16
      linalg.yield %h : f16
  } -> tensor<4x16xf16>
  %e = tensor.empty() : tensor<4x8xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<4x8xf32>) -> tensor<4x8xf32>
  %r = linalg.matmul ins(%ah, %b : tensor<4x16xf16>, tensor<16x8xf16>) outs(%f : tensor<4x8xf32>) -> tensor<4x8xf32>
  return %r : tensor<4x8xf32>
}
