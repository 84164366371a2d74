// Elementwise operators that stay alone become ukernel.pointwise where a path that
// computes them is chosen, and stay fallback kernels otherwise.
// RUN: ftuner-opt %s --ukernel-form-pointwise | FileCheck %s
// RUN: ftuner-opt %s --ukernel-form-pointwise=paths=rows | FileCheck %s --check-prefix=NONE
// RUN: ftuner-run %s --function=bias --device=h100 --args=33x1000xf16,1000xf16 --check | FileCheck %s --check-prefix=WIDE
// RUN: ftuner-run %s --function=bias --device=h100 --paths=rows --args=33x1000xf16,1000xf16 --check | FileCheck %s --check-prefix=FALLBACK
// RUN: ftuner-run %s --function=bias --device=h100 --args=7x197xf16,197xf16 --check | FileCheck %s --check-prefix=ODD

// RUN: ftuner-run %s --function=no_dimensions --device=h100 --args=f32,2,5xf32 --check | FileCheck %s --check-prefix=POINT

// WIDE: launches: 1 (bias_0_k{{[0-4]}}
// ODD: launches: 1 (bias_0_k{{[0-9]}}
// FALLBACK: launches: 1 (bias_fallback_0
// POINT: launches: 2 (no_dimensions_0_k{{[0-9]}}: 1 x 128, no_dimensions_1_k{{[0-9]}}

// NONE-NOT: ukernel.pointwise

// The loops follow the first output.
// CHECK-LABEL: func.func @bias
// CHECK: ukernel.pointwise ins(%{{.*}}, %{{.*}} : tensor<?x?xf16>, tensor<?xf16>) outs(%{{.*}} : tensor<?x?xf32>)
// CHECK-SAME: ranges = [#ukernel.range<0 to ?>] map
func.func @bias(%a: tensor<?x?xf16>, %b: tensor<?xf16>) -> tensor<?x?xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %m = tensor.dim %a, %c0 : tensor<?x?xf16>
  %n = tensor.dim %a, %c1 : tensor<?x?xf16>
  %e = tensor.empty(%m, %n) : tensor<?x?xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%a, %b : tensor<?x?xf16>, tensor<?xf16>) outs(%e : tensor<?x?xf32>) {
  ^bb0(%x: f16, %y: f16, %o: f32):
    %s = arith.addf %x, %y : f16
    %w = arith.extf %s : f16 to f32
    linalg.yield %w : f32
  } -> tensor<?x?xf32>
  return %r : tensor<?x?xf32>
}

// What accumulates into its output stays.
// CHECK-LABEL: func.func @accumulates
// CHECK-NOT: ukernel.pointwise
func.func @accumulates(%a: tensor<8xf32>, %b: tensor<8xf32>) -> tensor<8xf32> {
  %r = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]} ins(%a : tensor<8xf32>) outs(%b : tensor<8xf32>) {
  ^bb0(%x: f32, %o: f32):
    %s = arith.addf %x, %o : f32
    linalg.yield %s : f32
  } -> tensor<8xf32>
  return %r : tensor<8xf32>
}

// Tensors without dimensions are written as one element. Operators on them are
// fused, and operators with dimensions read them in place.
// CHECK-LABEL: func.func @no_dimensions
// CHECK-SAME: %[[A:.*]]: tensor<f32>, %[[S:.*]]: f32
// CHECK: %[[E:.*]] = tensor.expand_shape %{{.*}} [] output_shape [1] : tensor<f32> into tensor<1xf32>
// CHECK: %[[B:.*]] = tensor.expand_shape %{{.*}} [] output_shape [1] : tensor<i1> into tensor<1xi1>
// CHECK: %[[P:.*]]:2 = ukernel.pointwise ins(%[[A]], %[[S]] : tensor<f32>, f32) outs(%[[E]], %[[B]] : tensor<1xf32>, tensor<1xi1>)
// CHECK-SAME: ranges = [#ukernel.range<1 to 1>] map
// CHECK: math.exp
// CHECK: arith.mulf
// CHECK: arith.cmpf
// CHECK: %[[R:.*]] = tensor.collapse_shape %[[P]]#0 [] : tensor<1xf32> into tensor<f32>
// CHECK: ukernel.pointwise ins(%{{.*}}, %[[R]] : tensor<?xf32>, tensor<f32>)
func.func @no_dimensions(%a: tensor<f32>, %s: f32, %v: tensor<?xf32>) -> (tensor<f32>, tensor<i1>, tensor<?xf32>) {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %v, %c0 : tensor<?xf32>
  %e = tensor.empty() : tensor<f32>
  %b = tensor.empty() : tensor<i1>
  %w = tensor.empty(%n) : tensor<?xf32>
  %q = linalg.generic {indexing_maps = [affine_map<() -> ()>, affine_map<() -> ()>], iterator_types = []} ins(%a : tensor<f32>) outs(%e : tensor<f32>) {
  ^bb0(%x: f32, %o: f32):
    %y = math.exp %x : f32
    linalg.yield %y : f32
  } -> tensor<f32>
  %r:2 = linalg.generic {indexing_maps = [affine_map<() -> ()>, affine_map<() -> ()>, affine_map<() -> ()>], iterator_types = []} ins(%q : tensor<f32>) outs(%e, %b : tensor<f32>, tensor<i1>) {
  ^bb0(%x: f32, %o: f32, %p: i1):
    %y = arith.mulf %x, %s : f32
    %z = arith.cmpf olt, %x, %s : f32
    linalg.yield %y, %z : f32, i1
  } -> (tensor<f32>, tensor<i1>)
  %t = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> ()>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]} ins(%v, %r#0 : tensor<?xf32>, tensor<f32>) outs(%w : tensor<?xf32>) {
  ^bb0(%x: f32, %y: f32, %o: f32):
    %z = arith.addf %x, %y : f32
    linalg.yield %z : f32
  } -> tensor<?xf32>
  return %r#0, %r#1, %t : tensor<f32>, tensor<i1>, tensor<?xf32>
}
